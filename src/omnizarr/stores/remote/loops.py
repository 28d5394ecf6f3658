"""Event loops of other libraries, used from threads that wait for their results.

Libraries with asynchronous stores and filesystems run an event loop in a thread. A request costs a task there and
no thread of omnizarr, so many concurrent requests are cheap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def run(coroutine: Coroutine[Any, Any, R], loop: asyncio.AbstractEventLoop) -> R:
    """Return the result of the coroutine on `loop`, which runs in another thread.

    Raises
    ------
    RuntimeError
        If the caller runs on that loop itself, which could then never answer.
    """
    _check_elsewhere(loop, coroutine.close)
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    finally:
        future.cancel()  # has an effect only if the wait was interrupted


def gather(
    task: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T], most: int, loop: asyncio.AbstractEventLoop
) -> Iterator[tuple[T, int, Future[R]]]:
    """Yield (item, its position, the future with its result) as tasks end on `loop`, where at most `most` run at once.

    Items are read as there is room. Stopping early, or an exception, cancels the requests in flight.
    """
    _check_elsewhere(loop)
    numbered = enumerate(items)
    landed: SimpleQueue[tuple[T, int, Future[R]]] = SimpleQueue()
    pending: set[Future[R]] = set()
    try:
        while True:
            for position, item in islice(numbered, most - len(pending)):
                future = asyncio.run_coroutine_threadsafe(task(item), loop)
                pending.add(future)
                future.add_done_callback(lambda done, item=item, at=position: landed.put((item, at, done)))  # type: ignore[misc]
            if not pending:
                return
            item, position, future = landed.get()
            pending.discard(future)
            yield item, position, future
    finally:
        for future in pending:
            future.cancel()


def _check_elsewhere(loop: asyncio.AbstractEventLoop, otherwise: Callable[[], object] = lambda: None) -> None:
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:  # no loop runs in this thread
        return
    if here is loop:
        otherwise()
        raise RuntimeError("a store cannot be used from a coroutine on the event loop that it runs on")
