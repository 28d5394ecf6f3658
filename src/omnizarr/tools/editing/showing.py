"""Report progress to the user's progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnizarr.tools.progress import State
from omnizarr.tools.streaming.progress import Shows, start

Show = Shows


@contextmanager
def shown(progress: Show, total: int | None, what: str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of bytes that were just processed."""
    state = State(what, total)
    bar = start(progress, state)

    def tick(nbytes: int) -> None:
        state.done += nbytes
        if bar is not None:
            bar.update(nbytes)

    try:
        yield tick
    finally:
        if bar is not None:
            bar.close()
