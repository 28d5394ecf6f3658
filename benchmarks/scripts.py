"""A few lines of Python, run in a process of their own, with what they took: seconds, CPU time, peak of memory."""

from __future__ import annotations

import compileall
import json
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import omnizarr

_AROUND: Final = """
import json, resource, sys, time
def main():
{body}
if __name__ == "__main__":
    import numpy
    began, cpu = time.perf_counter(), time.process_time()
    found = main()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    status = open("/proc/self/status").read().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, peak = cpu + below.ru_utime + below.ru_stime, max(peak, below.ru_maxrss * 1024)
    print(json.dumps({{"seconds": seconds, "cpu": cpu, "peak": peak, "found": found}}))
"""


def measure(python: str, body: str, arguments: Sequence[str]) -> dict[str, float] | str:
    """Return what lines took, with what ran below them, and what they returned as "found"; or why they failed."""
    _compile()
    code = _AROUND.format(body="".join(f"    {line}\n" for line in body.strip().splitlines()))
    command = [python, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)  # noqa: S603
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2][:200]
    measured: dict[str, float] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return measured


@cache
def _compile() -> None:
    """Write the bytecode of omnizarr, as an installation does: otherwise each process may compile what it imports."""
    compileall.compile_dir(Path(omnizarr.__file__).parent, quiet=2)


def cell(measured: dict[str, float] | str) -> str:
    """Return what was measured, as a row of the table."""
    if isinstance(measured, str):
        return measured
    return f"{measured['seconds']:.1f} s, {measured['cpu']:.1f} s CPU, {measured['peak'] / 2**20:.0f} MiB"
