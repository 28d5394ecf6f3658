"""How far streaming is, in bytes of elements, and in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Protocol, Self, TypeAlias

from omnizarr.support.locks import RLock
from omnizarr.tools.progress import Showing, State, remember, shown


class Bar(Protocol):
    """What shows progress, as ``tqdm.tqdm`` does."""

    def update(self, n: int, /) -> object:
        """So many more are done."""

    def close(self) -> object:
        """All is done, or it has failed."""


Shows: TypeAlias = Callable[..., Any] | bool | None
"""What users give as ``progress=``: True, what makes a bar, such as ``tqdm.tqdm``, or a function of each increase."""

TICKED: Final = 1000
"""Keys of a listing between two reports."""


class Progress:
    """Reports the bytes and chunks that are done. Threads may call it.

    Parameters
    ----------
    bar : bool or callable, optional
        True: a bar in a terminal or a notebook, lines elsewhere. A callable: called with ``total=``, ``desc=``,
        ``unit="B"`` and ``unit_scale=True``; ``set_postfix_str``, if the bar has it, is called with the path of the
        current array.
    total : int
    doing : str
        What is done, as the bar shows it.
    chunks : int, optional
        How many chunks that makes.
    times : int
        How often the bytes of an array are counted: twice, if it is compared after it was written. Chunks are
        counted the first time, in proportion to the bytes.
    """

    def __init__(self, bar: Shows, total: int, doing: str, chunks: int | None = None, times: int = 1) -> None:
        self._times = times
        self.state = State(doing, total, chunks)
        self._bar: Any = start(bar, self.state)
        self._left = self._left_chunks = 0
        self._nbytes = self._chunks = 0
        self._before = 0
        self._guard = RLock()

    def begin(self, nbytes: int, path: str | None = None, chunks: int = 0) -> None:
        """Begin with an array of so many bytes and chunks; the one before is done, whatever it had."""
        self.tick(self._left)
        with self._guard:
            self._before += self._chunks
            self.state.chunks = self._before
            self._left = self._nbytes = nbytes
            self._chunks = chunks
            self.state.path = f"/{path}" if path else self.state.path
        if path and hasattr(self._bar, "set_postfix_str"):
            self._bar.set_postfix_str(f"/{path}", refresh=False)

    def tick(self, nbytes: int) -> None:
        """So many more are done."""
        with self._guard:
            nbytes = min(nbytes, self._left)
            self._left -= nbytes
            self.state.done += nbytes
            if self._nbytes:
                counted = self._chunks * self._times * (self._nbytes - self._left) // self._nbytes
                self.state.chunks = self._before + min(self._chunks, counted)
            if nbytes and self._bar is not None:
                self._bar.update(nbytes)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Say for a while that something else is done."""
        before, self.state.doing = self.state.doing, what
        try:
            yield
        finally:
            self.state.doing = before

    def close(self) -> None:
        """Let the bar go."""
        if self._bar is not None:
            self._bar.close()


class _Own:
    """What omnizarr shows itself: it looks at the state when it is drawn."""

    def __init__(self, state: State) -> None:
        where = shown()
        self._showing = None if where is None else Showing(state, where)

    def update(self, n: int, /) -> None:
        """Nothing has to be told."""

    def close(self) -> None:
        """Show no more."""
        if self._showing is not None:
            self._showing.close()


class _Told:
    """A function of each increase, as a bar."""

    def __init__(self, tell: Callable[[int], object]) -> None:
        self.update = tell

    def close(self) -> None:
        """Nothing has to be told."""


def start(progress: Shows, state: State, unit: str = "B") -> Bar | None:
    """Return what shows a state as ``progress=`` asks for it; None if nothing is to be shown."""
    remember(state)
    if not callable(progress):
        return _Own(state) if progress else None
    options = {"total": state.total, "desc": state.doing, "unit": unit, "unit_scale": True}
    if not _takes(progress, options):
        return _Told(progress)
    made: Bar = progress(**options)
    return made


def _takes(function: Callable[..., Any], options: dict[str, Any]) -> bool:
    """Return whether a function takes these keywords: it makes a bar then."""
    try:
        import_module("inspect").signature(function).bind(**options)
    except TypeError:
        return False
    except ValueError:  # a function in C that does not say what it takes
        return isinstance(function, type)
    return True


class Count:
    """Counts items whose number is not known before. Threads may call it."""

    def __init__(self, progress: Shows, doing: str, unit: str = "chunk") -> None:
        self.state = State(doing, unit=unit)
        self._bar = start(progress, self.state, unit)
        self._guard = RLock()

    def tick(self, count: int, nbytes: int = 0, path: str | None = None) -> None:
        """So many more are done."""
        with self._guard:
            self.state.chunks += count
            self.state.done += nbytes
            self.state.path = f"/{path}" if path else None
            if count and self._bar is not None:
                self._bar.update(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
