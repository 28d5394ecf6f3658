"""The functions of `omnizarr_as_zarr.api.synchronous`, to be awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any

from omnizarr.aio.group import awaited
from omnizarr.stores.tasks import waited
from omnizarr_as_zarr._nodes import named, plain
from omnizarr_as_zarr.api import synchronous

__all__ = list(synchronous.__all__)


def _awaiting(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return an asynchronous form of a function, which runs it in a thread.

    Nodes that it returns are asynchronous, too.
    """

    @wraps(function)
    async def call(*args: Any, **options: Any) -> Any:
        return _own(await waited(function, *args, **options))

    return call


def _own(found: Any) -> Any:
    return named(awaited(plain(found)))


array = _awaiting(synchronous.array)
consolidate_metadata = _awaiting(synchronous.consolidate_metadata)
copy = _awaiting(synchronous.copy)
copy_all = _awaiting(synchronous.copy_all)
copy_store = _awaiting(synchronous.copy_store)
create = _awaiting(synchronous.create)
create_array = _awaiting(synchronous.create_array)
create_group = _awaiting(synchronous.create_group)
empty = _awaiting(synchronous.empty)
empty_like = _awaiting(synchronous.empty_like)
from_array = _awaiting(synchronous.from_array)
full = _awaiting(synchronous.full)
full_like = _awaiting(synchronous.full_like)
group = _awaiting(synchronous.group)
load = _awaiting(synchronous.load)
ones = _awaiting(synchronous.ones)
ones_like = _awaiting(synchronous.ones_like)
open = _awaiting(synchronous.open)  # noqa: A001 - zarr-python's name
open_array = _awaiting(synchronous.open_array)
open_consolidated = _awaiting(synchronous.open_consolidated)
open_group = _awaiting(synchronous.open_group)
open_like = _awaiting(synchronous.open_like)
save = _awaiting(synchronous.save)
save_array = _awaiting(synchronous.save_array)
save_group = _awaiting(synchronous.save_group)
tree = _awaiting(synchronous.tree)
zeros = _awaiting(synchronous.zeros)
zeros_like = _awaiting(synchronous.zeros_like)


async def create_hierarchy(
    *, store: Any, nodes: Mapping[str, Any], overwrite: bool = False
) -> AsyncIterator[tuple[str, Any]]:
    """Create many nodes; yield path and node of each."""
    made = await waited(lambda: list(synchronous.create_hierarchy(store=store, nodes=nodes, overwrite=overwrite)))
    for path, node in made:
        yield path, _own(node)
