"""One pool of threads for the process, created at first use, and again after a fork.

Threads decode on all processors, and wait for many answers of a store at once. A waiting thread costs some
microseconds, and hardly any memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain, islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from omnizarr.support.locks import RLock

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

_MOST_THREADS: Final = 512

_state: dict[str, ThreadPoolExecutor] = {}


def default_concurrency() -> int:
    """Return the default number of threads for one read or write: one per usable core."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def executor() -> ThreadPoolExecutor:
    """Return the pool, for work that does not come in items. A thread of the pool may use the pool itself."""
    pool = _state.get("pool")
    if pool is None:
        # Two threads that arrive here at once create two pools; the unused one has no thread yet. Imported here,
        # because the import takes a tenth of the time of importing omnizarr.
        threads = import_module("concurrent.futures").ThreadPoolExecutor
        pool = _state.setdefault("pool", threads(_MOST_THREADS, thread_name_prefix="omnizarr"))
    return pool


if hasattr(os, "register_at_fork"):
    # The threads of the pool do not exist in the child.
    os.register_at_fork(after_in_child=_state.clear)


def helpers(work: Callable[[], None]) -> list[Future[None]]:
    """Let a thread of the pool help. At the end of the program, when no more threads can start, there is no help."""
    try:
        return [executor().submit(work)]
    except RuntimeError:
        return []


def run(task: Callable[[T], object], items: Iterable[T], workers: int, batch: int) -> None:
    """Call `task` on every item, with `workers` threads including the calling one.

    Threads take items in batches when they become free, so the caller's iterator is never ahead of the work by
    more than a batch per thread. The first exception (or Ctrl-C in the calling thread) stops the other threads
    after their current item, and is raised.
    """
    if workers <= 1:
        for item in items:
            task(item)
    else:
        _run(task, iter(items), workers, batch)


def _run(task: Callable[[T], object], iterator: Iterator[T], workers: int, batch: int) -> None:
    guard = RLock()
    is_stopped = False  # no `Event`: setting one is a call that Ctrl-C could prevent

    def take() -> list[T]:
        with guard:
            return list(islice(iterator, batch))

    def work() -> None:
        nonlocal is_stopped
        try:
            while not is_stopped and (taken := take()):
                for item in taken:
                    if is_stopped:
                        return
                    task(item)
        except BaseException:
            is_stopped = True
            raise

    futures: list[Future[None]] = []
    try:
        for _ in range(workers - 1):
            futures += helpers(work)
        work()
    except BaseException:
        is_stopped = True
        raise
    finally:
        # Wait until no thread uses the caller's memory.
        _wait(futures)
    for future in futures:
        if not future.cancelled():
            future.result()


def _wait(futures: list[Future[None]]) -> None:
    for future in futures:
        # A thread that never began (the pool is busy) has nothing left to do.
        if not future.cancel():
            future.exception()


def gather(task: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[tuple[int, R]]:
    """Yield (position of the item, result of `task`) in the order in which results arrive, with `workers` at a time.

    Items are taken when there is room for their results: at most twice as many as there are workers are in work
    or waiting. The first exception is raised after all threads have stopped. They also stop when the caller stops
    early.
    """
    iterator = iter(items)
    first = list(islice(iterator, workers)) if workers > 1 else []
    if len(first) <= 1:
        for position, item in enumerate(chain(first, iterator)):
            yield position, task(item)
        return
    crew = _Crew(task, chain(first, iterator), len(first))
    try:
        while (landed := crew.land()) is not None:
            yield landed
    finally:
        crew.dismiss()


class _Crew(Generic[T, R]):
    """The threads that work on the items of one `gather`."""

    def __init__(self, task: Callable[[T], R], items: Iterator[T], workers: int) -> None:
        self._task = task
        self._items = enumerate(items)
        self._workers = workers
        self._landed: SimpleQueue[tuple[int, R | None, BaseException | None]] = SimpleQueue()
        self._futures: list[Future[None]] = []
        self._guard = RLock()
        self._at_work = 0  # items taken whose result is not in the queue yet
        self._pending = 0  # items taken and not yet returned to the caller
        self._more = True

    def land(self) -> tuple[int, R] | None:
        """Return the next result; None at the end."""
        while True:
            self._call_for_help()
            if not self._at_work and self._landed.empty():
                # All threads of the pool may be waiting for crews, so the caller does the jobs that have not
                # begun.
                taken = self._take()
                if taken is None and not self._at_work and self._landed.empty():
                    return None
                if taken is not None:
                    self._do(*taken)
            position, result, error = self._landed.get()
            with self._guard:
                self._pending -= 1
            if error is not None:
                raise error
            return position, cast("R", result)

    def dismiss(self) -> None:
        """Stop taking jobs, and wait for those that are running."""
        with self._guard:
            self._more = False
        _wait(self._futures)

    def _call_for_help(self) -> None:
        self._futures = [future for future in self._futures if not future.done()]
        with self._guard:
            room = 2 * self._workers - self._pending if self._more else 0
        for _ in range(min(self._workers - len(self._futures), room)):
            self._futures += helpers(self._work)

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            self._do(*taken)

    def _take(self) -> tuple[int, T] | None:
        with self._guard:
            if not self._more or self._at_work >= self._workers or self._pending >= 2 * self._workers:
                return None
            try:
                taken = next(self._items, None)
            except BaseException as error:  # noqa: BLE001 - raised where the result is taken
                self._more, taken = False, None
                self._pending += 1
                self._landed.put((-1, None, error))
            if taken is None:
                self._more = False
                return None
            self._at_work += 1
            self._pending += 1
            return taken

    def _do(self, position: int, item: T) -> None:
        try:
            landed: tuple[int, R | None, BaseException | None] = position, self._task(item), None
        except BaseException as error:  # noqa: BLE001 - raised where the result is taken
            landed = position, None, error
        with self._guard:
            self._landed.put(landed)
            self._at_work -= 1
