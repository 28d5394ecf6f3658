"""How asynchronous nodes call synchronous code: reading by replay or in a thread, writing in a thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from omnizarr.aio.replay import Answers, replay
from omnizarr.nodes.array import Array
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.group import Group, UnreadableNode
from omnizarr.nodes.location import StorePath
from omnizarr.stores import MemoryStore, Store
from omnizarr.stores.asynchronous import asynchronous
from omnizarr.stores.tasks import waited

T = TypeVar("T")


async def reading(store: Store, function: Callable[[Store], T]) -> T:
    """Return the result of `function`, which only reads, for a store.

    The caller then binds nodes in it to the store (`on`).
    """
    verbs = asynchronous(store)
    if verbs is not None:
        return await replay(Answers(store), verbs, function)
    return await unreplayed(store, function)


async def unreplayed(store: Store, function: Callable[[Store], T]) -> T:
    """Return the result of `function` for a store that has no asynchronous methods."""
    # Reading from memory is faster than using a thread.
    return function(store) if type(store) is MemoryStore else await waited(function, store)


async def writing(store: Store, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return the result of `function`, which changes one or more nodes in a store."""
    if type(store) is MemoryStore:
        return function(*args, **kwargs)
    return await waited(function, *args, **kwargs)


def place_on(where: StorePath, store: Store) -> StorePath:
    """Return the same place in another store."""
    return StorePath(store, where.path, where.home)


def array_on(array: Array, store: Store, copies: Any = None) -> Array:
    """Return the same array in another store, with the given consolidated metadata or its own."""
    copies = copies or copies_on(array._snapshot, store)  # noqa: SLF001 - a part of Array
    return Array(place_on(array.store_path, store), array._metadata, array.config, copies)  # noqa: SLF001


def group_on(group: Group, store: Store, copies: Any = None) -> Group:
    """Return the same group in another store, with the given consolidated metadata or its own."""
    copies = copies or copies_on(group._copies, store)  # noqa: SLF001 - a part of Group
    return Group(place_on(group.store_path, store), group._metadata, group._config, copies)  # noqa: SLF001


def on(node: Any, store: Store, copies: Any = None) -> Any:
    """Return the same node in another store, with the given consolidated metadata or its own."""
    if isinstance(node, Array):
        return array_on(node, store, copies)
    if isinstance(node, Group):
        return group_on(node, store, copies)
    if isinstance(node, UnreadableNode):
        return UnreadableNode(place_on(node.store_path, store), node.error)
    return node


def copies_on(copies: Any, store: Store) -> Any:
    """Return the consolidated metadata of the same group in another store, or what looks for it (`Snapshot.of`)."""
    if isinstance(copies, Snapshot):
        return Snapshot(place_on(copies.root, store), copies.name, copies._nodes)  # noqa: SLF001 - they may not be read
    if isinstance(copies, partial):
        where, *rest = copies.args
        return partial(copies.func, place_on(where, store), *rest)
    return copies
