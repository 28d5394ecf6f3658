"""Progress of long work, and how it is shown: a bar in a terminal or a notebook, lines in the log of a batch job.

`State` holds the progress. `show` shows it while the work lasts, but not for work of less than a second.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, TextIO

from omnizarr.nodes import wording
from omnizarr.support import workers
from omnizarr.support.locks import RLock

AT_FIRST: Final = 1.0
"""Seconds until a bar is shown."""
IN_LOGS: Final = 10.0
"""Seconds between lines without a terminal."""
_REFRESH: Final = 0.1
_WINDOW: Final = 30.0
"""Seconds over which the rate is averaged."""
_WIDTH: Final = 12
_NARROWEST: Final = 40


@dataclass(slots=True)
class State:
    """The progress of some work.

    Attributes
    ----------
    doing : str
        The kind of work, as one word.
    total : int or None
        Total bytes of elements; None if unknown.
    done : int
        Bytes done so far.
    total_chunks : int or None
        Total number of chunks (shards).
    chunks : int
        Chunks done so far.
    unit : str
        The unit of `chunks`.
    path : str or None
        Path of the current array.
    """

    doing: str
    total: int | None = None
    total_chunks: int | None = None
    unit: str = "chunk"
    done: int = 0
    chunks: int = 0
    path: str | None = None
    started: float = field(default_factory=time.monotonic)
    _seen: deque[tuple[float, int]] = field(default_factory=deque, repr=False)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def share(self) -> float | None:
        """The share that is done, from 0 to 1; None if the total is unknown."""
        for done, total in ((self.done, self.total), (self.chunks, self.total_chunks)):
            if total:
                return min(1.0, done / total)
        return None

    @property
    def rate(self) -> float:
        """Recent rate in bytes per second."""
        now = time.monotonic()
        self._seen.append((now, self.done))
        while len(self._seen) > 1 and now - self._seen[1][0] > _WINDOW:
            self._seen.popleft()
        then, before = (self.started, 0) if now - self.started < _WINDOW else self._seen[0]
        return (self.done - before) / max(now - then, 1e-6)

    @property
    def left(self) -> float | None:
        """Estimated remaining seconds; None if unknown."""
        share = self.share
        if not share or self.seconds < AT_FIRST:
            return None
        if self.total and (rate := self.rate) > 0:
            return (self.total - self.done) / rate
        return self.seconds * (1 - share) / share

    def amounts(self) -> str:
        """Return a text: the amount that is done, and the total.

        >>> State("converting", 4 * 2**30, 40, done=2**30, chunks=10).amounts()
        '1.0 GiB of 4.0 GiB, 10 of 40 chunks'
        >>> State("counting", unit="key", chunks=1200).amounts()
        '1,200 keys'
        """
        return ", ".join(filter(None, (self._bytes(), self._count())))

    def words(self, width: int | None = None) -> str:
        """Return the state on one line; with a limit of characters, its most important parts.

        >>> state = State("converting", 1000, 4, done=500, chunks=2, path="/temp")
        >>> state.words()
        'converting /temp: 50 %, 500 B of 1000 B, 2 of 4 chunks'
        >>> state.words(40)
        'converting: 50 %, 500 B of 1000 B'
        """
        path = f" {self.path}" if self.path else ""
        parts = self._parts()
        while True:
            text = f"{self.doing}{path}: {', '.join(part for _, part in parts)}"
            if width is None or len(text) <= width:
                return text
            if path:
                path = ""
            elif len(parts) > 1:
                parts.remove(max(parts))
            else:
                return text[:width]

    def _parts(self) -> list[tuple[int, str]]:
        """Return the parts in reading order. Those with the highest number are dropped first."""
        share, left = self.share, self.left
        is_known = bool(self.done) and self.seconds >= AT_FIRST
        found = [
            (0, "" if share is None else f"{int(100 * share)} %"),
            (2, self._bytes()),
            (3, self._count()),
            (4, f"{wording.size(int(self.rate))}/s" if is_known else ""),
            (1, "" if left is None else f"{duration(left)} left"),
        ]
        return [(rank, text) for rank, text in found if text]

    def _bytes(self) -> str:
        total = "" if self.total is None else f" of {wording.size(self.total)}"
        return f"{wording.size(self.done)}{total}" if self.done or self.total else ""

    def _count(self) -> str:
        if not (self.chunks or self.total_chunks or not self._bytes()):
            return ""
        counted = self.chunks if self.total_chunks is None else self.total_chunks
        done = "" if self.total_chunks is None else f"{self.chunks:,} of "
        return f"{done}{wording.plural(counted, self.unit)}"


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(7.2), duration(75), duration(3700)
    ('7 s', '1 min 15 s', '1 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


# -- displays -----------------------------------------------------------------


class _Shown(Protocol):
    """A display of a state."""

    first: float
    """Seconds until it is drawn first."""
    every: float
    """Seconds between two drawings."""

    def draw(self, state: State) -> None:
        """Show the state."""

    def clear(self) -> None:
        """Remove the display."""

    def close(self, state: State) -> None:
        """Stop showing."""


class Terminal:
    """A bar in the last line of a terminal, which disappears when the work is done."""

    first, every = AT_FIRST, _REFRESH

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_drawn = False
        self._signs = ("█", "░") if _has_signs(stream) else ("#", ".")

    def draw(self, state: State) -> None:
        """Draw the line again."""
        width = _columns() - 1
        share = state.share
        bar = ""
        if share is not None and width > _NARROWEST:
            full = int(share * _WIDTH)
            bar = f"{self._signs[0] * full}{self._signs[1] * (_WIDTH - full)} "
        self._write(f"\r\x1b[2K{bar}{state.words(width - len(bar))}")
        self._is_drawn = True

    def clear(self) -> None:
        """Remove the line."""
        if self._is_drawn:
            self._write("\r\x1b[2K")
            self._is_drawn = False

    def close(self, _: State) -> None:
        """Remove the line."""
        self.clear()

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone
            self._stream.write(text)
            self._stream.flush()


class Lines:
    """A line from time to time, for the log of a batch job."""

    first = every = IN_LOGS

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_begun = False

    def draw(self, state: State) -> None:
        """Print a line."""
        self._has_begun = True
        with suppress(OSError, ValueError):  # the stream is closed
            self._stream.write(f"{state.words()}\n")
            self._stream.flush()

    def clear(self) -> None:
        """Keep the lines."""

    def close(self, state: State) -> None:
        """Print the last line, if there were others."""
        if self._has_begun:
            self.draw(state)


class Notebook:
    """A bar in the output of a notebook cell."""

    first, every = AT_FIRST, 0.5

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    def draw(self, state: State) -> None:
        """Draw the bar, or draw it again."""
        escape = import_module("html").escape
        share = "" if state.share is None else f' value="{state.share:.4f}"'
        text = self._display.HTML(f"<progress{share}></progress> <code>{escape(state.words())}</code>")
        if self._handle is None:
            self._handle = self._display.display(text, display_id=True)
        else:
            self._handle.update(text)

    def clear(self) -> None:
        """Keep the output of the cell."""

    def close(self, state: State) -> None:
        """Draw it for the last time, if it was drawn."""
        if self._handle is not None:
            self.draw(state)


def shown(stream: TextIO | None = None) -> _Shown | None:
    """Return the display for a notebook, a terminal, or the log of a batch job; None if there is none."""
    display = _notebook()
    if display is not None:
        return Notebook(display)
    stream = sys.stderr if stream is None else stream
    if stream is None or getattr(stream, "closed", False):
        return None
    is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    return Terminal(stream) if is_terminal else Lines(stream)


class Showing:
    """Draws a state from time to time, in a thread of its own, until it is closed."""

    def __init__(self, state: State, where: _Shown) -> None:
        self.state = state
        self._where = where
        self._end = SimpleQueue[None]()  # an `Event` is not safe from Ctrl-C
        self._guard = RLock()
        _showing.append(self)
        self._thread = workers.start(self._run, "omnizarr-progress")

    def _run(self) -> None:
        pause = self._where.first
        while True:
            try:
                return self._end.get(timeout=pause)
            except Empty:
                with self._guard:
                    self._where.draw(self.state)
            pause = self._where.every

    def clear(self) -> None:
        """Make room for other lines."""
        with self._guard:
            self._where.clear()

    def close(self) -> None:
        """Stop showing. Called again after an interrupt, it continues."""
        if self in _showing:
            self._end.put(None)
            self._thread.wait()
            self._where.close(self.state)
            _showing.remove(self)


_showing: list[Showing] = []
_last: list[State] = []


@contextmanager
def show(state: State, where: _Shown | None) -> Iterator[State]:
    """Show a state while the work lasts."""
    remember(state)
    if where is None:
        yield state
        return
    showing = Showing(state, where)
    try:
        yield state
    finally:
        try:
            showing.close()
        except BaseException:  # on Ctrl-C
            showing.close()
            raise


def remember(state: State) -> None:
    """Make `last` return this state."""
    _last[:] = [state]


def last() -> State | None:
    """Return the state of the work that was started last; None if there was none."""
    return _last[0] if _last else None


def clear() -> None:
    """Remove bars, to print something else in their place. They are drawn again."""
    for showing in _showing:
        showing.clear()


def _notebook() -> Any:
    """Return the function that displays HTML in a notebook cell; None outside of notebooks."""
    if "IPython" not in sys.modules:
        return None
    shell = import_module("IPython").get_ipython()
    return import_module("IPython.display") if type(shell).__name__ == "ZMQInteractiveShell" else None


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def _has_signs(stream: TextIO) -> bool:
    try:
        "█░".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
