"""Locks that Ctrl-C leaves free.

Python raises KeyboardInterrupt after a call of a function written in C. Up to Python 3.13, a ``with`` statement of a
lock of `threading` has no such place between taking the lock and entering the block. From 3.14 on it calls
``__enter__`` like any function, before the block begins: an interrupt there would leave the lock held for ever.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

__all__ = ["RLock"]

_OfThreading: Final[Any] = type(threading.RLock())


class _Lock(_OfThreading):  # type: ignore[misc]
    """An RLock whose ``__enter__`` releases it again if Ctrl-C interrupts."""

    def __enter__(self) -> bool:
        held: list[bool] = []
        try:
            held.extend(map(self.acquire, (True,)))  # nothing interrupts between taking the lock and noting it
        except BaseException:
            if held:
                self.release()
            raise
        return True


RLock: Final[Callable[[], threading.RLock]] = _Lock if sys.version_info >= (3, 14) else threading.RLock
"""Return a new lock that the same thread may take again. For ``with`` statements, like that of `threading`."""
