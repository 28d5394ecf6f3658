"""Arrays and groups to be awaited: what `omnizarr` does, in event loops.

The names are those of zarr-python's `zarr.api.asynchronous`. What is in an object store is asked for by coroutines, as
many requests at a time as `Store.concurrency` says for all tasks of a loop together, and without threads; large chunks
are decoded in as many threads as there are cores, and not looked for in a `chunk_cache`. Every other store is waited
for in a thread for each call, out of a few. Errors, results and guarantees are those of the functions of the same names
without ``await``.

A task that is cancelled leaves no others behind. What it has written by then stays, each chunk and document whole.
Where a thread is at work, the task waits for its end.

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

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

from omnizarr.aio.array import AsyncArray, read_many
from omnizarr.aio.group import AsyncGroup, awaited
from omnizarr.aio.opening import opened
from omnizarr.api import creating, opening
from omnizarr.api.opening import Mode
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.stores.tasks import waited

__all__ = [
    "AsyncArray",
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


# -- opening --------------------------------------------------------------------------


async def open(  # noqa: A001 - the name that zarr has for it
    store: Any = None,
    *,
    mode: Mode | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncArray | AsyncGroup:
    """Open the array or group at a place; keywords as those of `omnizarr.open`."""
    found: AsyncArray | AsyncGroup = await _open(opening.open, store, path, mode, storage_options, options)
    return found


async def open_array(
    store: Any = None,
    *,
    mode: Mode | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncArray:
    """Open the array at a place; keywords as those of `omnizarr.open_array`."""
    return cast("AsyncArray", await _open(opening.open_array, store, path, mode, storage_options, options))


async def open_group(
    store: Any = None,
    *,
    mode: Mode | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncGroup:
    """Open the group at a place; keywords as those of `omnizarr.open_group`."""
    return cast("AsyncGroup", await _open(opening.open_group, store, path, mode, storage_options, options))


async def open_consolidated(*args: Any, use_consolidated: bool | str = True, **options: Any) -> AsyncGroup:
    """Open the group at a place from its consolidated metadata, which must be there; as `open_group` otherwise."""
    return await open_group(*args, use_consolidated=use_consolidated, **options)


async def _open(
    function: Callable[..., Any],
    store: Any,
    path: str | None,
    mode: Mode | None,
    storage_options: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Any:
    return awaited(await opened(function, _sync(store), path, mode, storage_options, **options))


def _sync(node: Any) -> Any:
    """Return the array or group of one to be awaited."""
    if isinstance(node, AsyncArray):
        return node.array
    return node.group if isinstance(node, AsyncGroup) else node


# -- creating ---------------------------------------------------------------------------


async def _create(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return awaited(await waited(function, *map(_sync, args), **{name: _sync(value) for name, value in options.items()}))


async def create_array(store: Any, **options: Any) -> AsyncArray:
    """Create an array; keywords as those of `omnizarr.create_array`."""
    return cast("AsyncArray", await _create(creating.create_array, store, **options))


async def create(shape: Any = None, **options: Any) -> AsyncArray:
    """Create an array, by default in memory; keywords as those of `omnizarr.create`."""
    return cast("AsyncArray", await _create(creating.create, shape, **options))


async def array(data: Any, **options: Any) -> AsyncArray:
    """Create an array that holds `data`, by default in memory; keywords as those of `create`."""
    return cast("AsyncArray", await _create(creating.array, data, **options))


async def empty(shape: Any, **options: Any) -> AsyncArray:
    """Create an array whose elements are not set; keywords as those of `create`."""
    return cast("AsyncArray", await _create(creating.empty, shape, **options))


async def zeros(shape: Any, **options: Any) -> AsyncArray:
    """Create an array of zeros; keywords as those of `create`."""
    return cast("AsyncArray", await _create(creating.zeros, shape, **options))


async def ones(shape: Any, **options: Any) -> AsyncArray:
    """Create an array of ones; keywords as those of `create`."""
    return cast("AsyncArray", await _create(creating.ones, shape, **options))


async def full(shape: Any, fill_value: Any, **options: Any) -> AsyncArray:
    """Create an array of one value; keywords as those of `create`."""
    return cast("AsyncArray", await _create(creating.full, shape, fill_value, **options))


async def from_array(store: Any, *, data: Any, **options: Any) -> AsyncArray:
    """Create an array from another one; keywords as those of `omnizarr.from_array`."""
    return cast("AsyncArray", await _create(creating.from_array, store, data=data, **options))


async def create_group(store: Any, **options: Any) -> AsyncGroup:
    """Create a group, with the groups above it that are not there; keywords as those of `omnizarr.create_group`."""
    return cast("AsyncGroup", await _create(creating.create_group, store, **options))


async def group(store: Any = None, **options: Any) -> AsyncGroup:
    """Return the group at a place (by default in memory), after creating it if there is none."""
    return cast("AsyncGroup", await _create(creating.group, store, **options))


async def create_hierarchy(
    *, store: Any, nodes: Mapping[str, ArrayMetadata | GroupMetadata], overwrite: bool = False
) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
    """Create many nodes; yield path and node of each."""
    made = await waited(lambda: list(creating.create_hierarchy(store=_sync(store), nodes=nodes, overwrite=overwrite)))
    for path, node in made:
        yield path, awaited(node)


async def consolidate_metadata(store: Any, path: str | None = None, zarr_format: int | str | None = None) -> AsyncGroup:
    """Store copies of the documents of all nodes below a group with it, and return it, opened from them."""
    return cast("AsyncGroup", await _create(creating.consolidate_metadata, store, path, zarr_format))
