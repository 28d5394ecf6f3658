"""A process that does what a victim does, with bounds, and says how that ended."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOM = 3 << 30
"""How much address space a try may take beyond what Python has: beyond it, allocating memory fails."""
PATIENCE = 300
"""Seconds that a try may take by the clock. Only what waits for something that never comes gets there."""


@dataclass(frozen=True)
class End:
    """How a process ended."""

    output: str
    error: str | None
    is_ours: bool
    signal: str
    memory: int
    cpu: float


def run(attempt: str, home: Path, *, memory: int, cpu: int) -> End:
    """Run `attempt` in a new process, in the directory `home`."""
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryFile() as output, tempfile.NamedTemporaryFile("r") as report:
        command = [sys.executable, "-m", "tests.attacks.victim", attempt, report.name, str(memory + ROOM), str(2 * cpu)]
        process = subprocess.Popen(
            command, cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        ended, usage = _wait(process)
        output.seek(0)
        text = output.read(1 << 22).decode("utf-8", "replace")
        said = json.loads(report.read() or "{}")
    seconds = usage.ru_utime + usage.ru_stime
    return End(text, said.get("error"), said.get("is_ours", True), ended, usage.ru_maxrss << 10, seconds)


def _wait(process: subprocess.Popen[bytes]) -> tuple[str, resource.struct_rusage]:
    def stop(*_: object) -> None:
        process.kill()

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    process.returncode = os.waitstatus_to_exitcode(status)
    ended = signal.Signals(-process.returncode).name if process.returncode < 0 else ""
    return ended, usage


def main(attempt: str, report: str, memory: str, cpu: str) -> None:
    """Be the victim."""
    import numpy as np

    import omnizarr
    import omnizarr.cli

    resource.setrlimit(resource.RLIMIT_AS, (int(memory),) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    error, is_ours = None, True
    try:
        if attempt.startswith("omnizarr "):
            code = omnizarr.cli.main(attempt.split()[1:])
            error = f"exit {code}" if code else None
        else:
            exec(attempt, {"omnizarr": omnizarr, "np": np, "__name__": "__main__"})
    except SystemExit as end:
        error = f"exit {end.code}" if end.code else None
    except BaseException as found:  # noqa: BLE001 - it is what this process reports
        error, is_ours = f"{type(found).__name__}: {found}", _is_ours(found, omnizarr)
        print(error)
    Path(report).write_text(json.dumps({"error": error and error[:2000], "is_ours": is_ours}))


def _is_ours(error: BaseException, omnizarr: object) -> bool:
    from omnizarr import errors

    return isinstance(error, (errors.OmnizarrError, PermissionError, FileNotFoundError))


if __name__ == "__main__":
    main(*sys.argv[1:])
