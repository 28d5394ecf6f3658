"""Asynchronous arrays and groups: the functions of `omnizarr` for event loops.

The names are those of zarr-python's `zarr.api.asynchronous`. Requests to object stores are coroutines, with up to
`Features.concurrency` requests at a time for all tasks of a loop together, and without threads. Large chunks are
decoded in as many threads as there are cores, and do not use a `chunk_cache`. For every other store, each call
waits in one of a few threads. Errors, results and guarantees are those of the synchronous functions of the same
names.

The asynchronous functions share the code of the synchronous ones. Functions that read from an object store are called
in the loop's thread, in greenlets, which let the loop continue while they wait (`omnizarr.stores.asynchronous`). A
codec chain leaves fetching to its caller, which here is a coroutine (`omnizarr.aio.transfer`), so that large chunks
are decoded in a thread. Functions that write documents run in a thread.

A cancelled task leaves no other task behind. What it has written stays, and each chunk and document is whole. If
a thread is working for the task, the task waits for its end.

>>> import asyncio
>>> import numpy as np
>>> from omnizarr import aio
>>> async def main():
...     root = await aio.open_group({}, mode="w")
...     await root.setitem("temp", np.linspace(0, 1, 5))
...     temp = await root.getitem("temp")
...     return await temp.getitem(slice(None, None, 2))
>>> asyncio.run(main())
array([0. , 0.5, 1. ])
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, ParamSpec

from omnizarr.aio.array import AsyncArray, read_many
from omnizarr.aio.group import AsyncGroup, awaited
from omnizarr.aio.opening import opened
from omnizarr.aio.writer import AsyncArrayWriter
from omnizarr.api import creating, opening
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.stores.tasks import waited

__all__ = [
    "AsyncArray",
    "AsyncArrayWriter",
    "AsyncGroup",
    "array",
    "consolidate_metadata",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "empty",
    "from_array",
    "full",
    "group",
    "ones",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "read_many",
    "zeros",
]


P = ParamSpec("P")


def _array(function: Callable[P, Array]) -> Callable[P, Coroutine[Any, Any, AsyncArray]]:
    return _awaiting(function)  # type: ignore[no-any-return]


def _group(function: Callable[P, Group]) -> Callable[P, Coroutine[Any, Any, AsyncGroup]]:
    return _awaiting(function)  # type: ignore[no-any-return]


def _node(function: Callable[P, Array | Group]) -> Callable[P, Coroutine[Any, Any, AsyncArray | AsyncGroup]]:
    return _awaiting(function)  # type: ignore[no-any-return]


def _awaiting(function: Callable[..., Any]) -> Any:
    """Return a function as a coroutine function with the same name and keywords."""
    call: Callable[..., Coroutine[Any, Any, Any]] = opened if function.__module__ == opening.__name__ else waited

    @wraps(function)
    async def awaiting(*args: Any, **options: Any) -> Any:
        arguments = map(_sync, args)
        return awaited(await call(function, *arguments, **{name: _sync(value) for name, value in options.items()}))

    awaiting.__module__ = __name__
    summary = (function.__doc__ or "").partition("\n")[0].partition("; see `")[0].rstrip(".")
    awaiting.__doc__ = f"{summary}; as `omnizarr.{function.__name__}`, to be awaited."
    return awaiting


def _sync(node: Any) -> Any:
    """Return the synchronous array or group of an asynchronous one."""
    if isinstance(node, AsyncArray):
        return node.array
    return node.group if isinstance(node, AsyncGroup) else node


open = _node(opening.open)  # noqa: A001 - the name that zarr has for it
open_array = _array(opening.open_array)
open_group = _group(opening.open_group)
open_consolidated = _group(opening.open_consolidated)

create_array = _array(creating.create_array)
create = _array(creating.create)
array = _array(creating.array)
empty = _array(creating.empty)
zeros = _array(creating.zeros)
ones = _array(creating.ones)
full = _array(creating.full)
from_array = _array(creating.from_array)
create_group = _group(creating.create_group)
group = _group(creating.group)
consolidate_metadata = _group(creating.consolidate_metadata)


async def create_hierarchy(
    *, store: Any, nodes: Mapping[str, ArrayMetadata | GroupMetadata], overwrite: bool = False
) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
    """Create many nodes, and yield path and node of each."""
    made = await waited(lambda: list(creating.create_hierarchy(store=_sync(store), nodes=nodes, overwrite=overwrite)))
    for path, node in made:
        yield path, awaited(node)
