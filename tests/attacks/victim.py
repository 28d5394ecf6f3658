"""A process that does what a victim does, with bounds, and reports how that ended.

One process imports omnizarr, and a child of it makes each try: a try takes milliseconds.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOM = 3 << 30
"""How much address space a try may take beyond what Python has: beyond it, allocating memory fails."""
PATIENCE = 300
"""Seconds that a try may take by the clock. Only what waits for something that never comes gets there."""


@dataclass(frozen=True)
class Order:
    """What the victim is to do, where, and within which bounds."""

    attempt: str
    home: str
    report: str
    """A directory for what the victim writes: output, and the error."""
    memory: int
    cpu: int


@dataclass(frozen=True)
class End:
    """How a try ended."""

    output: str
    error: str | None
    is_ours: bool
    signal: str
    memory: int
    cpu: float


def run(attempt: str, home: Path, *, memory: int, cpu: int) -> End:
    """Let the victim do `attempt` in the directory `home`."""
    with tempfile.TemporaryDirectory() as report:
        order = Order(attempt, str(home), report, memory, cpu)
        victim = _victim()
        victim.stdin.write(json.dumps(asdict(order)) + "\n")
        victim.stdin.flush()
        status, peak, seconds = json.loads(victim.stdout.readline())
        with (Path(report) / "output").open("rb") as output:
            text = output.read(1 << 22).decode("utf-8", "replace")
        said = Path(report) / "error"
        error, is_ours = json.loads(said.read_text()) if said.exists() else (None, True)
    code = os.waitstatus_to_exitcode(status)
    return End(text, error, is_ours, signal.Signals(-code).name if code < 0 else "", peak, seconds)


@cache
def _victim() -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.attacks.victim"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def main() -> None:
    """Follow orders until the input ends."""
    _import_all()
    for line in sys.stdin:
        order = Order(**json.loads(line))
        child = os.fork()
        if not child:
            _try(order)
        _, status, usage = os.wait4(child, 0)
        with contextlib.suppress(ProcessLookupError):  # what the try started
            os.killpg(child, signal.SIGKILL)
        print(json.dumps([status, usage.ru_maxrss << 10, usage.ru_utime + usage.ru_stime]), flush=True)


def _import_all() -> None:
    """Import what the tries import: most of them would spend more time on that than on anything else."""
    import omnizarr.cli

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(omnizarr.__path__, "omnizarr."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # so that children share these pages


def _try(order: Order) -> None:
    os.setsid()
    signal.alarm(PATIENCE)
    report = Path(order.report)
    output = os.open(report / "output", os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(output, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ["HOME"] = order.home
    os.chdir(order.home)
    resource.setrlimit(resource.RLIMIT_AS, (order.memory + ROOM,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (2 * order.cpu,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    error, is_ours = _done(order.attempt)
    sys.stdout.flush()
    (report / "error").write_text(json.dumps([error and error[:2000], is_ours]))
    os._exit(0)


def _done(attempt: str) -> tuple[str | None, bool]:
    """Return the error in which `attempt` ends, and whether it is one of omnizarr's."""
    import numpy as np

    import omnizarr
    from omnizarr import errors

    try:
        if attempt.startswith("omnizarr "):
            code = omnizarr.cli.main(attempt.split()[1:])
            return f"exit {code}" if code else None, True
        exec(attempt, {"omnizarr": omnizarr, "np": np, "__name__": "__main__"})
    except SystemExit as end:
        return f"exit {end.code}" if end.code else None, True
    except BaseException as found:  # noqa: BLE001 - it is what this process reports
        sys.stdout.write("".join(traceback.format_exception_only(found)))
        is_ours = isinstance(found, (errors.OmnizarrError, PermissionError, FileNotFoundError))
        return f"{type(found).__name__}: {found}", is_ours
    return None, True


if __name__ == "__main__":
    main()
