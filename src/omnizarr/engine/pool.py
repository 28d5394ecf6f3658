"""One pool of threads for the process, made when first needed and made anew after a fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")

_state: dict[str, ThreadPoolExecutor] = {}


def default_concurrency() -> int:
    """Return how many threads serve one read or write if nobody says: one per usable core."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _executor() -> ThreadPoolExecutor:
    pool = _state.get("pool")
    if pool is None:
        # Two threads that come here at once make two pools; the one that is lost has no thread yet.
        # Imported here, as it takes a tenth of the time that importing all of omnizarr does.
        executor = import_module("concurrent.futures").ThreadPoolExecutor
        pool = _state.setdefault("pool", executor(64, thread_name_prefix="omnizarr"))
    return pool


if hasattr(os, "register_at_fork"):
    # The threads of the pool do not exist in the child.
    os.register_at_fork(after_in_child=_state.clear)


def run(task: Callable[[T], object], items: Iterable[T], workers: int, batch: int) -> None:
    """Call `task` on every item, with `workers` threads of which the caller is one.

    Items are taken in batches as threads become free, so the caller's iterator is never
    ahead of the work by more than a batch per thread. The first exception (or a Ctrl-C in
    the calling thread) stops the others after their current item, and is raised.
    """
    if workers <= 1:
        for item in items:
            task(item)
        return
    iterator = iter(items)
    guard = threading.Lock()
    stop = threading.Event()

    def take() -> list[T]:
        with guard:
            return list(islice(iterator, batch))

    def work() -> None:
        try:
            while not stop.is_set() and (taken := take()):
                for item in taken:
                    if stop.is_set():
                        return
                    task(item)
        except BaseException:
            stop.set()
            raise

    futures = [_executor().submit(work) for _ in range(workers - 1)]
    try:
        work()
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
