"""How asynchronous nodes call synchronous code: in the loop, or in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from omnizarr.stores import MemoryStore, Store
from omnizarr.stores.asynchronous import called, is_awaitable
from omnizarr.stores.tasks import waited

T = TypeVar("T")
P = ParamSpec("P")


async def reading(store: Store, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `function`, which only reads from a store."""
    if is_awaitable(store):
        return await called(function, *args, **kwargs)
    return await writing(store, function, *args, **kwargs)


async def writing(store: Store, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `function`, which changes one or more nodes in a store."""
    if type(store) is MemoryStore:  # faster than a thread
        return function(*args, **kwargs)
    return await waited(function, *args, **kwargs)
