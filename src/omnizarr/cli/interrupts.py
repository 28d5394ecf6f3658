"""Ctrl-C: the first one stops a command cleanly, the second immediately; long commands print how to continue."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType
from typing import Final

from omnizarr.cli import progress
from omnizarr.errors import OmnizarrError
from omnizarr.support import terminals

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())

_STOPPING: Final = "stopping; press Ctrl-C again to stop immediately\n"
_RESUME: Final = "--resume"
_WITHOUT: Final = "--overwrite"


class Stopped(KeyboardInterrupt):
    """An interruption of work that can be continued.

    Attributes
    ----------
    advice : str
        What to type.
    """

    def __init__(self, advice: str) -> None:
        super().__init__(advice)
        self.advice = advice


@contextmanager
def twice(words: Sequence[str]) -> Iterator[None]:
    """Let the first Ctrl-C raise KeyboardInterrupt, and the second end the process, as long as what was typed runs."""
    token = _typed.set(tuple(words))
    is_ours = threading.current_thread() is threading.main_thread()
    is_ours = is_ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        _typed.reset(token)
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(_: int, __: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if progress.so_far() is not None:
        begin = "\r\x1b[2K" if terminals.understands_escapes(sys.stderr) else ""
        with suppress(OSError):
            os.write(2, f"{begin}{_STOPPING}".encode())
    raise KeyboardInterrupt


@contextmanager
def resumable(has_begun: Callable[[], bool]) -> Iterator[None]:
    """Let an interruption within this context say how to continue.

    If `has_begun` returns False, there is nothing to continue, and the advice is to start again.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        is_begun = False
        with suppress(OmnizarrError, OSError):
            is_begun = has_begun()
        verb = "continue" if is_begun else "begin again"
        raise Stopped(f"{verb} with: {again(_typed.get(), resume=is_begun)}") from error


def again(words: Sequence[str], *, resume: bool) -> str:
    """Return the command that continues the interrupted one.

    >>> again(["convert", "my old.zarr", "new.zarr", "--overwrite"], resume=True)
    "omnizarr convert 'my old.zarr' new.zarr --resume"
    """
    kept = [word for word in words if not (resume and word in (_WITHOUT, _RESUME))]
    if resume:
        at = kept.index("--") if "--" in kept else len(kept)
        kept.insert(at, _RESUME)
    return shlex.join(["omnizarr", *kept])
