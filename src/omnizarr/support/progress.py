"""Progress of long work, and how it is shown: a bar in a terminal or a notebook, lines in the log of a batch job.

`Progress` is what every function takes as ``progress=``, `Tracker` reports to it, `State` holds how far the work is.
What omnizarr shows itself appears after a second.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, Self, TextIO, TypeAlias, TypeVar

from omnizarr.support import terminals, text, workers
from omnizarr.support.locks import RLock

T = TypeVar("T")


class Bar(Protocol):
    """What shows progress, as those of ``tqdm.tqdm`` do.

    If it has ``set_postfix_str``, that is called with the path of the current array.
    """

    def update(self, n: int, /) -> object:
        """Add to what is done."""

    def close(self) -> object:
        """Stop showing."""


Progress: TypeAlias = Callable[..., Bar] | Callable[[int], object] | Bar | bool | None
"""Values of ``progress=``: True, a class of bars, a bar, or a function that gets each increase.

What makes a bar, such as ``tqdm.tqdm``, is called with ``total=``, ``desc=``, ``unit=`` and ``unit_scale=``. That bar
is closed at the end; a bar that you give stays open.
"""

Tick: TypeAlias = Callable[[int], object]
"""A function that is called with each increase."""

AT_FIRST: Final = 1.0
"""Seconds until a bar is shown."""
IN_LOGS: Final = 10.0
"""Seconds between lines without a terminal."""
_REFRESH: Final = 0.1
_WINDOW: Final = 30.0
"""Seconds over which the rate is averaged."""
_WIDTH: Final = 12
_NARROWEST: Final = 40
_AT_ONCE: Final = 1000
"""Items of a listing between two reports."""


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
    note : str
        What else is worth knowing.
    """

    doing: str
    total: int | None = None
    total_chunks: int | None = None
    unit: str = "chunk"
    done: int = 0
    chunks: int = 0
    path: str | None = None
    note: str = ""
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
            words = f"{self.doing}{path}: {', '.join(part for _, part in parts)}"
            if width is None or len(words) <= width:
                return words
            if path:
                path = ""
            elif len(parts) > 1:
                parts.remove(max(parts))
            else:
                return words[:width]

    def _parts(self) -> list[tuple[int, str]]:
        """Return the parts in reading order. Those with the highest number are dropped first."""
        share, left = self.share, self.left
        is_known = bool(self.done) and self.seconds >= AT_FIRST
        found = [
            (0, "" if share is None else f"{int(100 * share)} %"),
            (2, self._bytes()),
            (3, self._count()),
            (4, f"{text.size(int(self.rate))}/s" if is_known else ""),
            (1, "" if left is None else f"{text.duration(round(left))} left"),
            (5, self.note),
        ]
        return [(rank, words) for rank, words in found if words]

    def _bytes(self) -> str:
        total = "" if self.total is None else f" of {text.size(self.total)}"
        return f"{text.size(self.done)}{total}" if self.done or self.total else ""

    def _count(self) -> str:
        if not (self.chunks or self.total_chunks or not self._bytes()):
            return ""
        counted = self.chunks if self.total_chunks is None else self.total_chunks
        done = "" if self.total_chunks is None else f"{self.chunks:,} of "
        return f"{done}{text.plural(counted, self.unit)}"


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

    def _write(self, words: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone
            self._stream.write(words)
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
        html = self._display.HTML(f"<progress{share}></progress> <code>{escape(state.words())}</code>")
        if self._handle is None:
            self._handle = self._display.display(html, display_id=True)
        else:
            self._handle.update(html)

    def clear(self) -> None:
        """Keep the output of the cell."""

    def close(self, state: State) -> None:
        """Draw it for the last time, if it was drawn."""
        if self._handle is not None:
            self.draw(state)


def shown(stream: TextIO | None = None) -> _Shown | None:
    """Return the display for a notebook, a terminal, or the log of a batch job; None if there is none."""
    display = notebook()
    if display is not None:
        return Notebook(display)
    stream = sys.stderr if stream is None else stream
    if stream is None or getattr(stream, "closed", False):
        return None
    return Terminal(stream) if terminals.understands_escapes(stream) else Lines(stream)


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

    def update(self, n: int, /) -> None:
        """Do nothing: the state is looked at when it is drawn."""

    def close(self) -> None:
        """Stop showing, even if Ctrl-C interrupts."""
        try:
            self._close()
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        if self in _showing:
            self._end.put(None)
            self._thread.wait()
            self._where.close(self.state)
            _showing.remove(self)


_showing: list[Showing] = []
_last: list[State] = []


def last() -> State | None:
    """Return the state of the work that was started last; None if there was none."""
    return _last[0] if _last else None


def clear() -> None:
    """Remove bars, to print something else in their place. They are drawn again."""
    for showing in _showing:
        showing.clear()


# -- reports -------------------------------------------------------------------


class Tracker:
    """Reports what is done to what the user gave as ``progress=``. Threads may call it.

    Parameters
    ----------
    progress : Progress
    doing : str
        What is done, as the bar shows it.
    total : int, optional
        How many bytes of elements that makes.
    chunks : int, optional
        How many chunks, or units of `count`, that makes.
    unit : str
        What a bar counts: "B" is bytes; anything else is the name of what `count` counts.
    times : int
        How often the bytes of an array are counted: twice, if it is compared after it was written. Chunks are
        counted the first time, in proportion to the bytes.
    """

    def __init__(
        self,
        progress: Progress,
        doing: str,
        total: int | None = None,
        *,
        chunks: int | None = None,
        unit: str = "B",
        times: int = 1,
    ) -> None:
        self.state = State(doing, total, chunks, "chunk" if unit == "B" else unit)
        if not isinstance(getattr(progress, "__self__", None), Tracker):  # otherwise it is a part of other work
            _last[:] = [self.state]
        self._times = times
        self._is_ours = progress is True or callable(progress)
        self._bar: Any = _bar(progress, self.state, unit, total if unit == "B" else chunks)
        self._left: int | None = None
        self._nbytes = self._chunks = self._before = 0
        self._guard = RLock()

    def begin(self, nbytes: int, path: str | None = None, chunks: int = 0) -> None:
        """Begin an array of `nbytes` in `chunks`. The rest of the previous array counts as done."""
        self.tick(self._left or 0)
        with self._guard:
            self._before += self._chunks
            self.state.chunks = self._before
            self._left = self._nbytes = nbytes
            self._chunks = chunks
            self.state.path = f"/{path}" if path else self.state.path
        if path and hasattr(self._bar, "set_postfix_str"):
            self._bar.set_postfix_str(f"/{path}", refresh=False)

    def tick(self, nbytes: int) -> None:
        """Count bytes of elements; of an array that has begun, at most those that are left."""
        with self._guard:
            if self._left is not None:
                nbytes = min(nbytes, self._left)
                self._left -= nbytes
            self.state.done += nbytes
            if self._nbytes and self._left is not None:
                counted = self._chunks * self._times * (self._nbytes - self._left) // self._nbytes
                self.state.chunks = self._before + min(self._chunks, counted)
            if nbytes and self._bar is not None:
                self._bar.update(nbytes)

    def count(self, count: int, nbytes: int = 0, path: str | None = None) -> None:
        """Count units, with the bytes that they have and the path of their array."""
        with self._guard:
            self.state.chunks += count
            self.state.done += nbytes
            self.state.path = f"/{path}" if path else None
            if count and self._bar is not None:
                self._bar.update(count)

    def note(self, words: str) -> None:
        """Show words after the numbers, in place of those shown so far; bars of others as they show a path."""
        self.state.note = words
        if hasattr(self._bar, "set_postfix_str"):
            self._bar.set_postfix_str(words, refresh=False)

    def counted(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, and count them, many at once."""
        number = 0
        for number, item in enumerate(items, 1):
            if number % _AT_ONCE == 0:
                self.count(_AT_ONCE)
            yield item
        self.count(number % _AT_ONCE)

    @contextmanager
    def phase(self, doing: str) -> Iterator[None]:
        """Say for a while that something else is done."""
        before, self.state.doing = self.state.doing, doing
        try:
            yield
        finally:
            self.state.doing = before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Close the bar. Without an error, what was left of the last array counts as done."""
        try:
            if kind is None and self._left is not None:
                self.begin(0)
        finally:
            if self._bar is not None and self._is_ours:
                self._bar.close()


class _Function:
    """A function of each increase, as a bar."""

    def __init__(self, update: Tick) -> None:
        self.update = update

    def close(self) -> None:
        """Do nothing."""


def _bar(progress: Progress, state: State, unit: str, total: int | None) -> Bar | None:
    """Return what shows a state as ``progress=`` asks for it; None if nothing is to be shown."""
    if progress is None or progress is False:
        return None
    if progress is True:
        where = shown()
        return None if where is None else Showing(state, where)
    if callable(progress):
        make: Any = progress
        options = {"total": total, "desc": state.doing, "unit": unit, "unit_scale": True}
        made: Bar = make(**options) if _takes(make, options) else _Function(make)
        return made
    if hasattr(progress, "update"):
        return progress
    raise TypeError(f"progress={progress!r}: expected True, a bar such as those of tqdm, or a function of a number")


def _takes(function: Callable[..., Any], options: dict[str, Any]) -> bool:
    """Return whether a function takes these keywords: it makes a bar then."""
    try:
        inspect.signature(function).bind(**options)
    except TypeError:
        return False
    except ValueError:  # a function in C that does not say what it takes
        return isinstance(function, type)
    return True


def silent(_: int) -> None:
    """Report nothing."""


def notebook() -> Any:
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
