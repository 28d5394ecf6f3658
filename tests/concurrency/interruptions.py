"""Interrupts wherever Python looks for signals: what Ctrl-C does at the worst moment, at every moment.

Python runs the handler of a signal between bytecodes, at certain places only: where a function begins, behind a call of
a function written in C, where a loop jumps back. A handler that asks for the same signal again as its last act, without
passing such a place itself, is called at each of them; so the n-th can be made the one at which it raises.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from types import FrameType

_SIGNAL = getattr(signal, "SIGUSR1", signal.SIGINT)
_ask = ctypes.pythonapi.PyErr_SetInterruptEx
_ask.argtypes = [ctypes.c_int]
_ask.restype = ctypes.c_int


class _Signal(int):
    """The number of a signal that is asked for by looking at an attribute: a call would be such a place itself."""

    asked = property(_ask)


_again = _Signal(_SIGNAL)


def _lets_nothing_out(frame: FrameType) -> bool:
    """Return whether Python shows an exception here and goes on: in callbacks of weak references and finalizers."""
    above = (frame, frame.f_back, frame.f_back and frame.f_back.f_back)
    return frame.f_code.co_filename.endswith("_weakrefset.py") or any(
        each is not None and each.f_code.co_name == "__del__" for each in above
    )


class Interrupter:
    """Calls functions, and raises KeyboardInterrupt at a place of which the number is given.

    Attributes
    ----------
    seen : int
        How many places the last call came to.
    where : str
        Where the last interrupt was raised.
    """

    def __init__(self) -> None:
        self.seen = 0
        self.where = ""
        self._at = 0
        self._is_on = False
        self._before = signal.signal(_SIGNAL, self._handle)

    def close(self) -> None:
        """Let the signal mean what it meant before."""
        signal.signal(_SIGNAL, self._before)

    def _handle(self, _number: int, frame: FrameType | None) -> None:
        if not self._is_on or frame is None:
            return
        if _lets_nothing_out(frame):
            _again.asked  # noqa: B018
            return
        self.seen += 1
        if self.seen == self._at:
            self._is_on = False
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_qualname})"
            raise KeyboardInterrupt
        _again.asked  # noqa: B018 - the property is a call in C

    def __call__(self, task: Callable[[], object], at: int) -> KeyboardInterrupt | None:
        """Call `task`; return the interrupt that was raised at place `at`, None if it has fewer places."""
        self.seen, self._at, self.where = 0, at, ""
        try:
            self._is_on = True
            _again.asked  # noqa: B018
            task()
            self._is_on = False
        except KeyboardInterrupt as interrupt:
            return interrupt
        return None
