"""Asynchronous groups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast, overload

from omnizarr import metadata as public
from omnizarr.aio.array import AsyncArray
from omnizarr.aio.nodes import reading, writing
from omnizarr.aio.opening import opened
from omnizarr.api import opening
from omnizarr.errors import NodeNotFoundError
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.info_tree import Tree
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.members import UnreadableNode
from omnizarr.nodes.node import NodeProperties
from omnizarr.stores.tasks import waited

if TYPE_CHECKING:
    from omnizarr.nodes.info_card import GroupInfo
    from omnizarr.pictures.picture import Picture

T = TypeVar("T")
P = ParamSpec("P")

# Types of what a path leads to and what a group lists, for type checkers.
AnyNode: TypeAlias = "AsyncArray | AsyncGroup"
Member: TypeAlias = "AsyncArray | AsyncGroup | UnreadableNode"


def awaited(node: Any) -> Any:
    """Return the asynchronous array or group of a synchronous one."""
    if isinstance(node, Array):
        return AsyncArray(node)
    return AsyncGroup(node) if isinstance(node, Group) else node


def _array(
    method: Callable[Concatenate[Group, P], Array],
) -> Callable[Concatenate[AsyncGroup, P], Coroutine[Any, Any, AsyncArray]]:
    """Return a method of `Group` that creates an array as a method of `AsyncGroup`, with the same keywords."""

    @wraps(method)
    async def awaiting(self: AsyncGroup, *args: Any, **options: Any) -> Any:
        return await self._write(partial(method, self.group), *args, **_at_hand(options))

    awaiting.__module__, awaiting.__qualname__ = __name__, f"AsyncGroup.{method.__name__}"
    return cast("Callable[Concatenate[AsyncGroup, P], Coroutine[Any, Any, AsyncArray]]", awaiting)


class AsyncGroup(NodeProperties):
    """A group in a store, with coroutines to look up, create and remove members.

    You get asynchronous groups from `omnizarr.aio.open_group`, `omnizarr.aio.create_group` and other asynchronous
    groups. They behave like `omnizarr.Group`.

    Parameters
    ----------
    group : Group
        The synchronous group.

    Examples
    --------
    >>> import asyncio
    >>> from omnizarr import aio
    >>> async def main():
    ...     root = await aio.create_group({})
    ...     await root.create_array("atmos/temp", shape=(365, 180), dtype="float32")
    ...     return [path async for path, _ in root.members(max_depth=None)]
    >>> asyncio.run(main())
    ['atmos', 'atmos/temp']
    """

    __slots__ = ("__weakref__", "group")

    group: Group
    """The synchronous group."""

    def __init__(self, group: Group) -> None:
        self.group = group

    @classmethod
    async def open(
        cls, store: Any, *, zarr_format: int | str | None = None, use_consolidated: bool | str | None = None
    ) -> AsyncGroup:
        """Return the group at a store, a `StorePath`, a path or a URL. Raises GroupNotFoundError."""
        place = store.group if isinstance(store, AsyncGroup) else store
        options: dict[str, Any] = {"zarr_format": zarr_format, "use_consolidated": use_consolidated}
        return cls(await opened(opening.open_group, place, **options))

    # -- properties ---------------------------------------------------------------

    @property
    def _where(self) -> StorePath:
        return self.group.store_path

    @property
    def _metadata(self) -> GroupMetadata:
        return self.group._metadata  # noqa: SLF001 - its other half

    @property
    def metadata(self) -> public.GroupMetadata:
        """The metadata of the group."""
        return self.group.metadata

    @property
    def attrs(self) -> dict[str, Any]:
        """A copy of the attributes, as they were when the group was last opened or changed."""
        return self.group.attrs.asdict()

    async def info(self) -> GroupInfo:
        """Return a summary of the metadata, which states whether there is consolidated metadata.

        Print it to read it.
        """
        await self.is_consolidated()  # look for it now, so that the summary need not
        return self.group.info

    async def info_complete(self) -> GroupInfo:
        """Return the summary of `info` with the number of members at all depths."""
        complete = await self._read(lambda group: group.info_complete())
        counts = {name: getattr(complete, name) for name in ("members", "arrays", "groups")}
        return replace(await self.info(), **counts)

    async def is_consolidated(self) -> bool:
        """Return whether members come from consolidated metadata."""
        return await self._read(lambda group: group.is_consolidated)

    # -- members ------------------------------------------------------------------

    async def _read(self, function: Callable[[Group], T]) -> T:
        """Return the result of `function` for the group."""
        return await reading(self.group.store, function, self.group)

    async def _nodes(self, function: Callable[[Group], Any]) -> Any:
        """Return the result of `function` for the group, with asynchronous nodes."""
        return _awaited_all(await self._read(function))

    async def getitem(self, key: str) -> AnyNode:
        """Return the array or group at a path below this one. Raises NodeNotFoundError (a KeyError)."""
        found: AnyNode = await self._nodes(lambda group: group[key])
        return found

    @overload
    async def get(self, key: str) -> AnyNode | None: ...
    @overload
    async def get(self, key: str, default: T) -> AnyNode | T: ...
    async def get(self, key: str, default: Any = None) -> Any:
        """Return the array or group at a path, or `default` if there is none."""
        try:
            return await self.getitem(key)
        except NodeNotFoundError:
            return default

    async def get_array(self, key: str) -> AsyncArray:
        """Return the array at a path. Raises ArrayNotFoundError, or ContainsGroupError if there is a group."""
        array: AsyncArray = await self._nodes(lambda group: group.get_array(key))
        return array

    async def get_group(self, key: str) -> AsyncGroup:
        """Return the group at a path. Raises GroupNotFoundError, or ContainsArrayError if there is an array."""
        group: AsyncGroup = await self._nodes(lambda group: group.get_group(key))
        return group

    async def contains(self, member: str) -> bool:
        """Return whether there is a node at a path below this one."""
        return await self._read(lambda group: member in group)

    async def nmembers(self, max_depth: int | None = 0) -> int:
        """Return the number of nodes below. `max_depth` is that of `members`."""
        return await self._read(lambda group: group.nmembers(max_depth))

    async def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> AsyncIterator[tuple[str, Member]]:
        """Yield path and node of each node below. Keywords are those of `omnizarr.Group.members`."""

        def members(group: Group) -> list[tuple[str, object]]:
            return list(group.members(max_depth, use_consolidated_for_children=use_consolidated_for_children))

        for member in await self._nodes(members):
            yield member

    async def keys(self) -> AsyncIterator[str]:
        """Yield the names of the direct members."""
        for name in await self._read(lambda group: list(group.keys())):
            yield name

    async def groups(self) -> AsyncIterator[tuple[str, AsyncGroup]]:
        """Yield name and group of each direct member that is a group."""
        for name, node in await self._nodes(lambda group: list(group.groups())):
            yield name, node

    async def group_keys(self) -> AsyncIterator[str]:
        """Yield the names of the direct members that are groups."""
        async for name, _ in self.groups():
            yield name

    async def group_values(self) -> AsyncIterator[AsyncGroup]:
        """Yield the direct members that are groups."""
        async for _, group in self.groups():
            yield group

    async def arrays(self) -> AsyncIterator[tuple[str, AsyncArray]]:
        """Yield name and array of each direct member that is an array."""
        for name, node in await self._nodes(lambda group: list(group.arrays())):
            yield name, node

    async def array_keys(self) -> AsyncIterator[str]:
        """Yield the names of the direct members that are arrays."""
        async for name, _ in self.arrays():
            yield name

    async def array_values(self) -> AsyncIterator[AsyncArray]:
        """Yield the direct members that are arrays."""
        async for _, array in self.arrays():
            yield array

    async def tree(self, level: int | None = None, *, max_nodes: int = 500) -> Tree:
        """Return a drawing of the nodes below. See `omnizarr.Group.tree`."""
        return await self._read(lambda group: group.tree(level=level, max_nodes=max_nodes))

    # -- creating and removing ----------------------------------------------------------

    async def _write(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return awaited(await writing(self.group.store, function, *args, **kwargs))

    async def create_group(
        self, name: str, *, overwrite: bool = False, attributes: Mapping[str, Any] | None = None
    ) -> AsyncGroup:
        """Create a group below this one, and missing groups between them, and return it."""
        made: AsyncGroup = await self._write(self.group.create_group, name, overwrite=overwrite, attributes=attributes)
        return made

    async def require_group(self, name: str, overwrite: bool = False) -> AsyncGroup:  # noqa: FBT001, FBT002 - zarr's
        """Return the group at a path. Create it if there is none."""
        made: AsyncGroup = await self._write(self.group.require_group, name, overwrite)
        return made

    async def require_groups(self, *names: str) -> tuple[AsyncGroup, ...]:
        """Return the groups at several paths. Create missing ones."""
        made = await writing(self.group.store, self.group.require_groups, *names)
        return tuple(map(AsyncGroup, made))

    create_array = _array(Group.create_array)
    require_array = _array(Group.require_array)
    empty = _array(Group.empty)
    zeros = _array(Group.zeros)
    ones = _array(Group.ones)
    full = _array(Group.full)

    async def create_hierarchy(
        self, nodes: Mapping[str, ArrayMetadata | GroupMetadata], *, overwrite: bool = False
    ) -> AsyncIterator[tuple[str, AnyNode]]:
        """Create many nodes below this group, and yield path and node of each."""
        made = await writing(self.group.store, lambda: list(self.group.create_hierarchy(nodes, overwrite=overwrite)))
        for path, node in made:
            yield path, awaited(node)

    async def setitem(self, key: str, value: Any) -> None:
        """Store values as an array at a path.

        An existing array is replaced; an existing group raises ContainsGroupError.
        """
        await writing(self.group.store, self.group.__setitem__, key, _sync(value))

    async def delitem(self, key: str) -> None:
        """Remove the node at a path and all nodes below it. Raises NodeNotFoundError if there is none."""
        await writing(self.group.store, self.group.__delitem__, key)

    async def move(self, source: str, dest: str) -> None:
        """Move a node and all nodes below it to another path in this group. See `omnizarr.Group.move`."""
        await writing(self.group.store, self.group.move, source, dest)

    # -- metadata ------------------------------------------------------------------

    async def update_attributes(self, new_attributes: Mapping[str, Any]) -> AsyncGroup:
        """Set several attributes in one atomic change, and return the group."""
        await writing(self.group.store, self.group.update_attributes, new_attributes)
        return self

    async def refresh(self) -> None:
        """Read the metadata again, in case another program changed it."""
        while True:
            since = self.group._metadata  # noqa: SLF001
            metadata = await self._read(Group._stored)  # noqa: SLF001
            if self.group._metadata is since or self.group._metadata is metadata:  # noqa: SLF001
                break  # otherwise something else has changed it meanwhile
        self.group._metadata = metadata  # noqa: SLF001

    async def show(
        self,
        selection: Any = (),
        *,
        colormap: str = "viridis",
        limits: tuple[float, float] | None = None,
        percentiles: tuple[float, float] = (2, 98),
        rgb: bool | None = None,
        size: tuple[int, int] = (520, 400),
    ) -> Picture:
        """Return a picture of the group, as `Group.show` does."""
        call = partial(self.group.show, selection, colormap=colormap, limits=limits, percentiles=percentiles)
        return await waited(partial(call, rgb=rgb, size=size))

    # -- Python protocols ----------------------------------------------------------------

    def __repr__(self) -> str:
        return repr(self.group).replace("<Group", "<AsyncGroup", 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncGroup) and self.group == other.group

    def __hash__(self) -> int:
        return hash((AsyncGroup, self.group))


def _awaited_all(found: Any) -> Any:
    return type(found)(map(_awaited_all, found)) if isinstance(found, list | tuple) else awaited(found)


def _sync(value: Any) -> Any:
    """Return the synchronous array of an asynchronous one; other arrays unchanged."""
    return value.array if isinstance(value, AsyncArray) else value


def _at_hand(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _sync(value) for name, value in options.items()}
