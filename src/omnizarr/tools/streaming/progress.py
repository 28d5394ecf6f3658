"""How far streaming is, in bytes of elements."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Progress:
    """Tells a bar such as ``tqdm.tqdm`` of the bytes that are done. Threads may call it.

    Parameters
    ----------
    bar : callable, optional
        Called with ``total=``, ``desc=``, ``unit="B"`` and ``unit_scale=True``.
    total : int
    doing : str
        What is done, as the bar shows it.
    """

    def __init__(self, bar: Callable[..., Any] | None, total: int, doing: str) -> None:
        self._bar = None if bar is None else bar(total=total, desc=doing, unit="B", unit_scale=True)
        self._left = 0
        self._guard = threading.Lock()

    def begin(self, nbytes: int) -> None:
        """Begin with an array of so many bytes; the one before is done, whatever it had."""
        self.tick(self._left)
        self._left = nbytes

    def tick(self, nbytes: int) -> None:
        """So many more are done."""
        with self._guard:
            nbytes = min(nbytes, self._left)
            self._left -= nbytes
            if nbytes and self._bar is not None:
                self._bar.update(nbytes)

    def close(self) -> None:
        """Let the bar go."""
        if self._bar is not None:
            self._bar.close()
