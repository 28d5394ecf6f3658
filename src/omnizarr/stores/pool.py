"""One pool of threads for the process, created at first use, and again after a fork.

Threads decode on all processors, and wait for many answers of a store at once. A waiting thread costs some
microseconds, and hardly any memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from queue import SimpleQueue
from time import perf_counter
from typing import Final, Generic, TypeVar, cast

from omnizarr.stores import waiting
from omnizarr.support.locks import RLock
from omnizarr.support.workers import Job, Pool, rest

T = TypeVar("T")
R = TypeVar("R")

_MOST_THREADS: Final = 512
_QUICK: Final = 0.0005
"""Seconds of a task for which a thread does not pay."""
_SOME: Final = 8
"""Tasks that may be slow before threads help, besides half of them: the first import what all others share."""

_threads: Final = Pool("omnizarr", _MOST_THREADS)


def default_concurrency() -> int:
    """Return the default number of threads for one read or write: one per usable core."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _is_helped(job: Job) -> bool:
    """Let a thread of the pool help. At the end of the program, when no more threads can start, there is no help."""
    try:
        _threads.submit(job)
    except RuntimeError:
        return False
    return True


def run(task: Callable[[T], object], items: Iterable[T], workers: int, batch: int) -> None:
    """Call `task` on every item, with `workers` threads including the calling one.

    Threads take items in batches when they become free, so the caller's iterator is never ahead of the work by
    more than a batch per thread. The first exception (or Ctrl-C in the calling thread) stops the other threads
    after their current item, and is raised.
    """
    if workers <= 1:
        for item in items:
            task(item)
    elif waiting.here.call is not None:
        for _ in waiting.here.call.gather(task, items, workers):
            pass
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

    jobs = [Job(work) for _ in range(workers - 1)]
    try:
        all(map(_is_helped, jobs))
        work()
        rest(jobs)
    except BaseException:
        is_stopped = True
        rest(jobs)  # no thread uses the caller's memory any more
        raise
    for job in jobs:
        if job.error is not None:
            try:
                raise job.error
            finally:
                del job, jobs[:]  # which the traceback would keep, and with them itself


def gather(task: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[tuple[int, R]]:
    """Yield (position of the item, result of `task`) in the order in which results arrive, with `workers` at a time.

    Items are taken when there is room for their results: at most twice as many as there are workers are in work
    or waiting. The first exception is raised after all threads have stopped. They also stop when the caller stops
    early. Keep this iterator in no variable, and so in no comprehension: after Ctrl-C, the traceback would keep it, and
    the tasks would go on.
    """
    iterator = iter(items)
    first = list(islice(iterator, workers)) if workers > 1 else []
    if len(first) <= 1:
        for position, item in enumerate(chain(first, iterator)):
            yield position, task(item)
        return
    if waiting.here.call is not None:
        yield from waiting.here.call.gather(task, chain(first, iterator), workers)
        return
    crew = _GatherThreads(task, chain(first, iterator), len(first))
    try:
        yield from crew.results()  # no loop here: Python 3.13 leaves its jump back out of the block that is guarded
    finally:
        try:
            crew.dismiss()
        except BaseException:  # on Ctrl-C: threads must not go on unknown
            crew.dismiss()
            raise


def relay(
    take: Callable[[T], R], use: Callable[[T, list[R], Callable[[], object]], object], items: Iterable[T]
) -> None:
    """Call `take` on every item, and `use` with the result, one after the other; the next is taken while one is used.

    `use` is called with the item, a list that holds the result, and a function that lets a thread take the next item.
    It calls that at most once, in any thread, when there is room for the next result; it may empty the list before. If
    it does not, the next item is taken when it has returned. The first exception, or Ctrl-C, is raised when no thread
    is at work any more.
    """
    iterator = iter(items)
    coming = list(islice(iterator, 1))
    held: list[R] = []
    jobs: list[Job] = []
    try:
        while coming:
            item = coming[0]
            _wait(jobs)
            if not held:
                held.append(take(item))
            coming, given = list(islice(iterator, 1)), held
            held, jobs = [], []
            use(item, given, partial(_take_next, take, coming, held, jobs))
            given.clear()
    except BaseException:
        rest(jobs)
        del jobs[:]  # which the traceback would keep, and with them itself
        raise


def _wait(jobs: list[Job]) -> None:
    """Wait for jobs that have begun, and cancel the others; raise the error of one."""
    for job in jobs:
        if not job.cancel():
            job.wait()
        if job.error is not None:
            raise job.error


def _take_next(take: Callable[[T], R], coming: list[T], held: list[R], jobs: list[Job]) -> None:
    """Let a thread take the next item, unless there is none, or no thread; in an event loop, calls wait themselves."""
    if coming and waiting.here.call is None:
        jobs.append(Job(lambda: held.append(take(coming[0]))))  # known before it can begin
        if not _is_helped(jobs[0]):
            jobs.pop()


def gather_near(task: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[tuple[int, R]]:
    """Yield the same as `gather`, for files of this machine: threads help only if the tasks are slow.

    Opening a file that the system has in memory takes some microseconds, which threads of Python multiply. So the
    caller does one task after the other until they take longer than threads would cost, as on a network file system.
    """
    iterator = iter(items)
    slow, done = 0, 0
    for item in iterator:
        begun = perf_counter()
        result = task(item)
        slow += perf_counter() - begun > _QUICK  # not their sum: a busy processor can halt any task for a long time
        yield done, result
        done += 1
        if 2 * slow > done + _SOME:
            break
    for position, result in gather(task, iterator, workers):
        yield done + position, result


def results(task: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yield the results of `gather` without the positions of their items."""
    return map(itemgetter(1), gather(task, items, workers))


class _GatherThreads(Generic[T, R]):
    """The threads that work on the items of one `gather`."""

    def __init__(self, task: Callable[[T], R], items: Iterator[T], workers: int) -> None:
        self._task = task
        self._items = enumerate(items)
        self._workers = workers
        self._landed: SimpleQueue[tuple[int, R | None, BaseException | None]] = SimpleQueue()
        self._jobs: list[Job] = []
        self._guard = RLock()
        self._at_work = 0  # items taken whose result is not in the queue yet
        self._pending = 0  # items taken and not yet returned to the caller
        self._more = True

    def results(self) -> Iterator[tuple[int, R]]:
        """Yield the results until the end."""
        while (landed := self.land()) is not None:
            yield landed

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
        rest(self._jobs)

    def _call_for_help(self) -> None:
        self._jobs = [job for job in self._jobs if not job.is_over]
        with self._guard:
            room = 2 * self._workers - self._pending if self._more else 0
        for _ in range(min(self._workers - len(self._jobs), room)):
            self._jobs.append(Job(self._work))  # known before it can begin
            if not _is_helped(self._jobs[-1]):
                self._jobs.pop()

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
