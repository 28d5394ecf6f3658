"""For event loops what `pool` is for threads: to do things side by side, and to leave to threads what would block.

Threads compute, as many as there are cores, or wait for stores that cannot be awaited, a bounded number.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Final, ParamSpec, TypeVar

from omnizarr.stores import pool

T = TypeVar("T")
P = ParamSpec("P")

_MOST_WAITING: Final = 32

_executors: dict[str, ThreadPoolExecutor] = {}

if hasattr(os, "register_at_fork"):
    # The threads do not exist in the child.
    os.register_at_fork(after_in_child=_executors.clear)


async def computed(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `function` returns, called in a thread; there are as many of these as cores.

    Who is cancelled meanwhile goes on when the function has come to its end: it may write into the caller's memory.
    """
    return await _in_thread("compute", pool.default_concurrency(), function, *args, **kwargs)


async def waited(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `function` returns, which waits for others, called in a thread; cancelled, as `computed`."""
    return await _in_thread("wait", _MOST_WAITING, function, *args, **kwargs)


async def _in_thread(kind: str, threads: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    if kind not in _executors:
        _executors[kind] = ThreadPoolExecutor(threads, thread_name_prefix=f"omnizarr-{kind}")
    context = contextvars.copy_context()
    future = _executors[kind].submit(lambda: context.run(function, *args, **kwargs))
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not future.cancel():
            await _settled([waiting])
        raise


async def run(task: Callable[[T], Awaitable[object]], items: Iterable[T], workers: int) -> None:
    """Await `task` for every item, `workers` at a time.

    Items are taken as there is room. The first exception, or being cancelled, cancels the others, and is raised when
    all have come to their end.
    """
    iterator = iter(items)
    first = list(islice(iterator, workers))
    items = chain(first, iterator)
    if len(first) <= 1:
        for item in items:
            await task(item)
        return

    async def work() -> None:
        for item in items:
            await task(item)

    tasks = [asyncio.ensure_future(work()) for _ in first]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for each in tasks:
            each.cancel()
        await _settled(tasks)
    for each in tasks:
        if not each.cancelled():
            each.result()


async def _settled(futures: Iterable[asyncio.Future[T]]) -> None:
    """Wait until all are done, also if the caller is cancelled once more; what they raise counts as seen."""
    futures = list(futures)
    while not all(future.done() for future in futures):
        try:
            await asyncio.wait(futures)
        except asyncio.CancelledError:
            continue
    for future in futures:
        if not future.cancelled():
            future.exception()
