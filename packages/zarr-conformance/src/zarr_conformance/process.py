"""The implementation's process: started, asked, timed, watched, and ended.

Everything that an implementation may do wrong ends here as one of the states of `Answer`: it prints, it refuses, it
does not know the feature, it crashes, it takes too long, it takes too much memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

Json = Any

REFUSED, UNSUPPORTED = 1, 3
"""Exit statuses: an error, and a feature that the implementation does not claim to know."""

WORDS = {0: "ok", REFUSED: "refused", UNSUPPORTED: "unsupported"}
MOST_OUTPUT = 1 << 28


@dataclass(frozen=True)
class Answer:
    """What an implementation made of one request."""

    state: str
    """``ok``, ``refused``, ``unsupported``, ``crashed``, ``timeout``, ``memory``."""
    output: bytes = b""
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Limits:
    """What an implementation may take."""

    seconds: float = 20.0
    """For one request."""
    memory: int = 3 << 30
    """Bytes in its process."""


@dataclass(frozen=True)
class Request:
    """One verb with its arguments, as the command line has them."""

    verb: str
    path: str
    selection: str | None = None
    format: str = "raw"
    case: str | None = None

    def arguments(self) -> list[str]:
        match self.verb:
            case "list":
                return [f"--list={self.path}"]
            case "write":
                return ["--write", str(self.case), self.path]
        more = [] if self.selection is None else [f"--selection={self.selection}"]
        return [f"--array_path={self.path}", *more, f"--format={self.format}"]

    def as_json(self) -> Json:
        return {
            "verb": self.verb,
            "path": self.path,
            "selection": self.selection,
            "format": self.format,
            "case": self.case,
        }


class Implementation:
    """A command to be asked: in one process that answers all requests if it can, else in a process for each."""

    def __init__(self, command: Sequence[str], limits: Limits = Limits(), *, batch: bool | None = None) -> None:
        self.command = list(command)
        self.limits = limits
        self.batch = batch
        self.about: Json = {}
        self._session: Session | None = None

    def __enter__(self) -> Self:
        if self.batch is not False:
            session = Session(self.command, self.limits)
            if session.hello is None:
                said = session.last_words()
                session.close()
                if self.batch:
                    raise RuntimeError(f"{self.command} does not answer to --batch: {said}")
                self.batch = False
            else:
                self.batch, self._session, self.about = True, session, session.hello
        return self

    def __exit__(self, *error: object) -> None:
        if self._session is not None:
            self._session.close()

    def ask(self, request: Request) -> Answer:
        """Return what the implementation answers; it never raises because of the implementation."""
        if not self.batch:
            return alone(self.command, request, self.limits)
        if self._session is None:
            self._session = Session(self.command, self.limits)
        answer = self._session.ask(request)
        if not self._session.alive:
            self._session.close()
            self._session = None
        return answer


class Session:
    """A process that answers one request after the other: a line of JSON, then as many bytes as it says."""

    def __init__(self, command: Sequence[str], limits: Limits) -> None:
        self.limits = limits
        self.alive = True
        self._errors = tempfile.TemporaryFile()
        self._number = 0
        self._parts: queue.Queue[tuple[Json, bytes] | None] = queue.Queue()
        self.hello: Json | None = None
        try:
            self._process = started([*command, "--batch"], self._errors, subprocess.PIPE)
        except OSError as error:
            raise SystemExit(f"cannot start {command[0]}: {error}") from None
        threading.Thread(target=self._receive, daemon=True).start()
        with contextlib.suppress(TimeoutError, EOFError):
            self.hello, _ = self._next(max(limits.seconds, 60))
            if not isinstance(self.hello, dict) or "zarr_conformance" not in self.hello:
                self.hello = None

    def _receive(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with contextlib.suppress(ValueError, OSError):
            while line := stream.readline():
                head = json.loads(line)
                length = min(int(head.get("length", 0)), MOST_OUTPUT)
                self._parts.put((head, stream.read(length)))
        self._parts.put(None)

    def _next(self, seconds: float) -> tuple[Json, bytes]:
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            with contextlib.suppress(queue.Empty):
                part = self._parts.get(timeout=min(left, 0.1))
                if part is None:
                    raise EOFError
                return part
            if memory_of(self._process.pid) > self.limits.memory:
                raise MemoryError

    def ask(self, request: Request) -> Answer:
        self._number += 1
        begun = time.perf_counter()
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"id": self._number, **request.as_json()}).encode() + b"\n")
            self._process.stdin.flush()
            while True:
                head, output = self._next(self.limits.seconds)
                if head.get("id") == self._number:
                    break
        except TimeoutError:
            return self._ended(Answer("timeout", message=f"no answer within {self.limits.seconds:g} s"))
        except MemoryError:
            return self._ended(Answer("memory", message=f"more than {self.limits.memory >> 20} MiB"))
        except (EOFError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            return self._ended(
                Answer("crashed", message=f"{ending(self._process.returncode)} {self.last_words()}".strip())
            )
        state = head.get("status", "refused")
        return Answer(state, output, str(head.get("message", "")), time.perf_counter() - begun)

    def _ended(self, answer: Answer) -> Answer:
        self.alive = False
        self.close()
        return answer

    def last_words(self) -> str:
        """Return the end of what the process wrote to standard error."""
        try:
            self._errors.seek(0)
        except ValueError:
            return ""
        return self._errors.read()[-600:].decode(errors="replace").strip()

    def close(self) -> None:
        stop(self._process)
        self._errors.close()


def alone(command: Sequence[str], request: Request, limits: Limits) -> Answer:
    """Run one request in a process of its own."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output:
        process = started([*command, *request.arguments()], errors, subprocess.DEVNULL, output)
        state = ""
        try:
            while process.poll() is None:
                time.sleep(0.005)
                if time.perf_counter() - begun > limits.seconds:
                    state = "timeout"
                elif memory_of(process.pid) > limits.memory:
                    state = "memory"
                if state:
                    return Answer(state, message=f"after {time.perf_counter() - begun:.1f} s")
        finally:
            stop(process)
        errors.seek(0)
        output.seek(0)
        said = errors.read()[-600:].decode(errors="replace").strip()
        code = process.returncode
        if code < 0 or code > 128:
            return Answer("crashed", message=f"{ending(code)} {said}".strip())
        return Answer(WORDS.get(code, "refused"), output.read(MOST_OUTPUT), said, time.perf_counter() - begun)


def started(
    command: Sequence[str], errors: IO[bytes], stdin: int, output: IO[bytes] | int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, so that what it starts ends with it."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(command, stdin=stdin, stdout=output, stderr=errors, env=environment, start_new_session=True)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process holds, 0 where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def ending(code: int | None) -> str:
    """Return how a process ended, in words."""
    if code is None:
        return "ended"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit status {code}"
