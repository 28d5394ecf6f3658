"""Coroutines for synchronous code: they run on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Coroutine
from typing import Any, Final, TypeVar

from omnizarr.stores.remote import loops

T = TypeVar("T")

_own: Final = loops.OwnLoop("omnizarr-as-zarr")


class SyncError(Exception):
    """`sync` was called on the event loop that it would have to wait for."""


def _get_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop; start it when it is first asked for."""
    return _own.get()


def sync(
    coro: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop | None = None, timeout: float | None = None
) -> T:
    """Run a coroutine and return its result. Raises SyncError on the event loop that would have to run it."""
    waiting = coro if timeout is None else asyncio.wait_for(coro, timeout)
    try:
        return loops.run(waiting, loop or _get_loop())
    except RuntimeError as error:
        if "event loop that it runs on" in str(error):
            raise SyncError("Calling sync() from within a running loop") from error
        raise


async def _collect_aiterator(data: AsyncIterable[T]) -> tuple[T, ...]:
    return tuple([item async for item in data])


def collect_aiterator(data: AsyncIterable[T]) -> tuple[T, ...]:
    """Return all that an asynchronous iterator yields."""
    return sync(_collect_aiterator(data))
