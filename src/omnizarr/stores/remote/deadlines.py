"""Timeouts for libraries that only let you cancel their coroutines."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from omnizarr.stores import threads
from omnizarr.support import workers
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = Lazy("asyncio")

T = TypeVar("T")

_loops: dict[str, asyncio.AbstractEventLoop] = {}
_abandoned: list[asyncio.AbstractEventLoop] = []
"""Loops of the parent. Closing one in a child would close what wakes the parent's loop."""


def _start_anew() -> None:
    """Forget the loop in a child, where the thread that ran it does not exist."""
    _abandoned.extend(_loops.values())
    _loops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that runs in a thread of its own, because the caller's thread may already run one."""
    with threads.lock(__name__):
        while "loop" not in _loops:
            # The thread itself publishes the loop, because a loop that does not run would never answer.
            made = SimpleQueue[None]()
            workers.start(partial(_serve, made), "omnizarr-deadlines")
            made.get()
        return _loops["loop"]


def _serve(made: SimpleQueue[None]) -> None:
    loop = asyncio.new_event_loop()
    is_first = _loops.setdefault("loop", loop) is loop  # the thread that started the other one was interrupted
    made.put(None)
    if is_first:
        loop.run_forever()
    loop.close()


def within(seconds: float, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the result of the coroutine. If it takes too long, cancel it and raise TimeoutError.

    >>> import asyncio
    >>> within(10, lambda: asyncio.sleep(0, "done"))
    'done'
    """

    async def limited() -> T:
        return await asyncio.wait_for(ask(), seconds)

    return asyncio.run_coroutine_threadsafe(limited(), _loop()).result()
