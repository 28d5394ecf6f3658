"""Work on many small arrays at a time: in a remote store, each of them waits for a few answers, and hardly computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Final, TypeVar

from omnizarr.errors import OmnizarrError
from omnizarr.stores import LocalStore, Store, pool
from omnizarr.support.progress import Tick, silent
from omnizarr.tools.streaming.chunks import Chunks
from omnizarr.tools.streaming.executors import Executor, Local
from omnizarr.tools.streaming.walking import Effort

T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P")

QUIET: Final[Tick] = silent
"""What tells nothing of progress, as `quiet` of `worked_on`."""
_FEW: Final = 8
"""Most chunks of an array that is read with one request at a time, beside others."""


def worked_on(
    items: Iterable[T],
    work: Callable[[T, Effort, P], R],
    arrays: Callable[[T], Iterable[Chunks]],
    effort: Effort,
    executor: Executor,
    store: Store,
    begin: Callable[[T], P],
    quiet: P,
) -> Iterator[tuple[T, R]]:
    """Yield each item with what `work` returns for it, in their order.

    Parameters
    ----------
    items : iterable
    work : callable
        Is called with an item, how much it may do at a time, and what it tells of progress. Several threads may do so.
        Its first error is raised here.
    arrays : callable
        Returns the arrays of an item. Errors of Zarr in it are those of `work`.
    effort : Effort
        For all of them together.
    executor : Executor
        Other processes are given one item after the other.
    store : Store
        Of items without arrays.
    begin : callable
        Is called with each item, in their order and in this thread, and returns what it tells of progress.
    quiet : object
        What items that are worked on together tell instead: nothing.
    """
    most = store.features.concurrency if isinstance(executor, Local) else 1

    def workers_for(item: T) -> int:
        return _workers(partial(arrays, item), effort, most) if most > 1 else 1

    for workers, several in groupby(items, workers_for):
        if workers == 1:
            for item in several:
                yield item, work(item, effort, begin(item))
            continue
        alone = replace(effort, concurrency=1, max_memory=effort.memory // workers)
        arrived: dict[int, tuple[T, R]] = {}
        first = 0
        for position, answer in pool.gather(partial(_done, work, alone, quiet), several, workers):
            arrived[position] = answer
            while first in arrived:
                item, outcome = arrived.pop(first)
                first += 1
                begin(item)
                yield item, outcome


def _done(work: Callable[[T, Effort, P], R], effort: Effort, quiet: P, item: T) -> tuple[T, R]:
    return item, work(item, effort, quiet)


def _workers(arrays: Callable[[], Iterable[Chunks]], effort: Effort, most: int) -> int:
    """Return how many items with such arrays are worked on at a time."""
    workers = most if effort.concurrency is None else min(most, effort.concurrency)
    nbytes = 0
    try:
        for chunks in arrays():
            if not isinstance(chunks.store, LocalStore):  # others beside a far store are left one at a time
                workers = min(workers, chunks.store.features.concurrency)
            if chunks.grid.nchunks > _FEW:
                return 1
            nbytes += chunks.values_bytes()
    except OmnizarrError:
        return 1
    return workers if nbytes <= effort.memory // max(workers, 1) else 1
