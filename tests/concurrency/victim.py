"""A process that changes arrays and is killed while it does, at a system call of our choice.

`Victims` starts ``python -m tests.concurrency.victim``, which imports everything once, and forks a child for each
attempt; strace kills that child at the nth call of one kind.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import numpy as np

import omnizarr

CALLS = (
    *("openat", "write", "close", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat"),
    *("mkdir", "mkdirat", "rmdir", "flock", "pwrite64", "fdatasync", "fsync", "ftruncate"),
)
"""What changes files, or comes between two such calls."""

REMOTE_CALLS = ("connect", "sendto", "writev", "sendmsg", "write", "recvfrom", "read", "close")
"""What speaks to a server, or comes between."""
OPTIONS = "OMNIZARR_VICTIM_OPTIONS"
"""The variable of the environment that says how a URL is opened."""


def opened(path: str) -> omnizarr.Array:
    """Return an array to be changed."""
    options = json.loads(os.environ[OPTIONS]) if "://" in path else None
    return omnizarr.open_array(path, mode="r+", storage_options=options)


CHANGES: dict[str, Callable[[str], object]] = {
    "append": lambda path: opened(path).append(np.full((6, 4), 2, "i4")),
    "shrink": lambda path: opened(path).resize(3, 3),
    "grow": lambda path: opened(path).resize(9, 9),
    "convert": lambda path: omnizarr.convert(path, f"{path}.converted", zarr_format=2),
    "convert in place": lambda path: omnizarr.convert(path, zarr_format=3, in_place=True),
    "repair": lambda path: omnizarr.repair(path, codes=["chunk-beyond-grid"], dry_run=False, backup=f"{path}.backup"),
}


def can_trace() -> bool:
    """Whether strace is there, and may trace children of other processes."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        return False
    with subprocess.Popen(["sleep", "5"]) as sleeper:
        traced = _attached(sleeper.pid, [])
        sleeper.kill()
        if traced is not None:
            traced.wait()
        return traced is not None


def _attached(pid: int, options: list[str]) -> subprocess.Popen[bytes] | None:
    """Return a strace that is attached to a process; None if it may not be."""
    command = ["strace", "-f", "-qq", "-o", os.devnull, *options, "-p", str(pid)]  # of several -o the last one counts
    tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while tracer.poll() is None:
        with contextlib.suppress(OSError):
            if "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text():
                return tracer
        time.sleep(0.001)
    return None


class Victims:
    """Starts children, and has them killed."""

    def __init__(self, engine: str, options: dict[str, object] | None = None) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.victim"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMNIZARR_ENGINE": engine, OPTIONS: json.dumps(options)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()

    def _say(self, line: str) -> str:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(line + "\n")
        self._server.stdin.flush()
        return self._server.stdout.readline().strip()

    def _run(self, change: str, path: str, options: list[str]) -> int:
        """Have a child make a change, under strace with these options; return its exit code."""
        pid = int(self._say(json.dumps([change, path])))
        tracer = _attached(pid, options)
        assert tracer is not None
        status = int(self._say("go"))
        tracer.wait()
        return status

    def attempts(
        self, change: str, build: Callable[[], str], most: int, calls: tuple[str, ...] = CALLS
    ) -> Iterator[str]:
        """Yield paths at which a change was killed: at each call that it makes, or at so many of them."""
        with tempfile.NamedTemporaryFile("r") as log:
            assert self._run(change, build(), ["-e", "trace=" + ",".join(calls), "-o", log.name]) == 0
            # "1234  openat(...": the process, and the call.
            made = Counter(
                line.split(None, 1)[1].partition("(")[0] for line in log if "(" in line and "<..." not in line
            )
        points = [(call, nth) for call in calls for nth in range(1, made[call] + 1)]
        for call, nth in random.Random(0).sample(points, min(most, len(points))):
            path = build()
            status = self._run(change, path, ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}"])
            # Threads share the work otherwise in each run, so that one of them may come to fewer calls.
            assert status in (0, -signal.SIGKILL), status
            yield path


def serve() -> None:
    """Fork a child for each line, which makes a change on command."""
    for line in sys.stdin:
        change, path = json.loads(line)
        reads, writes = os.pipe()
        pid = os.fork()
        if not pid:
            os.read(reads, 1)
            CHANGES[change](path)
            os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        sys.stdin.readline()
        os.write(writes, b"x")
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()
        os.close(reads)
        os.close(writes)


if __name__ == "__main__":
    serve()
