"""One pool of threads for the process, made when first needed and made anew after a fork.

Threads serve two ends: to decode on all processors, and to wait for many answers of a store at once. A thread that
waits costs some microseconds, and no memory that matters.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain, islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

_MOST_THREADS: Final = 512

_state: dict[str, ThreadPoolExecutor] = {}


def default_concurrency() -> int:
    """Return how many threads serve one read or write by default: one per usable core."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def executor() -> ThreadPoolExecutor:
    """Return the pool, for what does not come in items: a thread of it may use the pool itself."""
    pool = _state.get("pool")
    if pool is None:
        # Two threads that come here at once make two pools; the one that is lost has no thread yet.
        # Imported here, as it takes a tenth of the time that importing all of omnizarr does.
        threads = import_module("concurrent.futures").ThreadPoolExecutor
        pool = _state.setdefault("pool", threads(_MOST_THREADS, thread_name_prefix="omnizarr"))
    return pool


if hasattr(os, "register_at_fork"):
    # The threads of the pool do not exist in the child.
    os.register_at_fork(after_in_child=_state.clear)


def helpers(work: Callable[[], None]) -> list[Future[None]]:
    """Let a thread of the pool do something too; none when the program ends, which starts no more threads."""
    try:
        return [executor().submit(work)]
    except RuntimeError:
        return []


def run(task: Callable[[T], object], items: Iterable[T], workers: int, batch: int) -> None:
    """Call `task` on every item, with `workers` threads of which the caller is one.

    Items are taken in batches as threads become free, so the caller's iterator is never
    ahead of the work by more than a batch per thread. The first exception (or a Ctrl-C in
    the calling thread) stops the others after their current item, and is raised.
    """
    if workers <= 1:
        for item in items:
            task(item)
    else:
        _run(task, iter(items), workers, batch)


def _run(task: Callable[[T], object], iterator: Iterator[T], workers: int, batch: int) -> None:
    guard = threading.Lock()
    is_stopped = False  # no `Event`: to set one takes a call, which a Ctrl-C could keep from being made

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
        # Not before every thread has let go of the caller's memory.
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
    """Yield (position of the item, result of `task`) in whichever order results arrive, `workers` at a time.

    Items are taken when there is room for their results: never are more than twice as many as there are workers at work
    or waiting to be taken. The first exception is raised, after all threads have come to rest; they also do when the
    caller stops early.
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
    """Those who work on the items of one `gather`."""

    def __init__(self, task: Callable[[T], R], items: Iterator[T], workers: int) -> None:
        self._task = task
        self._items = enumerate(items)
        self._workers = workers
        self._landed: SimpleQueue[tuple[int, R | None, BaseException | None]] = SimpleQueue()
        self._futures: list[Future[None]] = []
        self._guard = threading.Lock()
        self._at_work = 0  # items taken and not landed on the queue
        self._pending = 0  # items taken and not yet handed to the caller
        self._more = True

    def land(self) -> tuple[int, R] | None:
        """Return the next result; None if there is no more."""
        while True:
            self._call_for_help()
            if not self._at_work and self._landed.empty():
                # All threads of the pool may be waiting for crews, so the caller does the jobs that have not begun.
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
