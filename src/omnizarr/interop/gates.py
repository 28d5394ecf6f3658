"""Writing with dask: once a computation has failed, no thread of this process writes any more.

If a task fails, dask raises its error at once, while threads still compute other tasks, and store their results later:
into data that was just given up and removed, or into an array that the caller has meanwhile written to again.

A scheduler with other processes gets the array itself. What runs there may go on for a while.
"""

from __future__ import annotations

import _thread
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar

from omnizarr.engine import budget
from omnizarr.errors import StoreError
from omnizarr.nodes.array import Array
from omnizarr.support.workers import Job, rest

__all__ = ["ends_with_chunks", "gathered", "through_gates"]

T = TypeVar("T")


def ends_with_chunks(
    chunks: tuple[tuple[int, ...], ...], stored: tuple[tuple[int, ...], ...], region: tuple[slice, ...] = ()
) -> bool:
    """Return whether chunks of dask, written to a region, end where stored chunks do.

    >>> ends_with_chunks(((4, 2),), ((2, 2, 2),)), ends_with_chunks(((3, 3),), ((2, 2, 2),))
    (True, False)
    """
    starts = [part.start or 0 for part in region] or [0] * len(chunks)
    return all(
        {*accumulate(ours, initial=start)} <= {0, *accumulate(theirs)}
        for ours, theirs, start in zip(chunks, stored, starts, strict=True)
    )


@contextmanager
def gathered(targets: Sequence[Array], small: Sequence[bool]) -> Iterator[list[Any]]:
    """Yield what to write to in the place of arrays: of the marked ones, writers, which store each chunk once.

    All together hold as many bytes as may be in flight, or two chunks each. They store everything at the
    end, or nothing more if the block raises an error.
    """
    count = sum(small)
    writers = {}
    for number, (target, is_small) in enumerate(zip(targets, small, strict=True)):
        if is_small:
            chunk = math.prod(max(lengths, default=1) for lengths in target.write_chunk_sizes) * target.dtype.itemsize
            writers[number] = target.writer(max(budget.total() // count, 2 * chunk, 1))
    try:
        yield [writers.get(number, target) for number, target in enumerate(targets)]
    except BaseException:
        for each in writers.values():
            each.discard()
        raise
    for each in writers.values():
        each.close()


def through_gates(targets: Sequence[Any], store: Callable[[list[Any]], T]) -> T:
    """Call `store` with what can be written to like the targets, but only until the call has ended.

    Writes that have begun by then are waited for.
    """
    gate = _Gate()
    try:
        return store([_Target(gate, target) for target in targets])
    finally:
        gate.close()


class _Gate:
    """Counts the threads that are writing, and lets no more in when it is closed."""

    def __init__(self) -> None:
        self._at_work: dict[int, Job] = {}
        self._is_closed = False

    def write(self, target: Any, selection: Any, value: Any) -> None:
        me = _thread.get_ident()
        job = self._at_work[me] = Job(partial(target.__setitem__, selection, value))
        try:
            if not self._is_closed:  # looked at after the job is known: one that is not seen by `close` sees this
                job.run()
            if not job.is_over:
                raise StoreError(
                    "the computation has failed before this was written", store=str(target.store), path=target.path
                )
            if job.error is not None:
                raise job.error
        finally:
            del self._at_work[me], job  # the traceback of its error would keep it

    def close(self) -> None:
        """Refuse those that have not begun, and wait for the others."""
        self._is_closed = True
        me = _thread.get_ident()  # of a job of its own that Ctrl-C interrupted, it would wait for ever
        rest([job for thread, job in self._at_work.copy().items() if thread != me])


class _Target:
    """An array, or a writer of one, that is written to through a gate."""

    def __init__(self, gate: _Gate, target: Any) -> None:
        self._gate = gate
        self._target = target

    def __setitem__(self, selection: Any, value: Any) -> None:
        self._gate.write(self._target, selection, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._target,)

    def __dask_tokenize__(self) -> Any:
        return self._target.__dask_tokenize__()


def _itself(target: Any) -> Any:
    return target
