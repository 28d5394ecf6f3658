"""Selections of other kinds, awaited: of asynchronous arrays and their writers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from omnizarr import indexing
from omnizarr.nodes.indexers import AnyArray, ArrayIndex, Index, Planner, points

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class AsyncIndexed:
    """What elements are read from and written to by selections of other kinds, too."""

    __slots__ = ()

    @property
    def oindex(self) -> AsyncIndexer:
        """Orthogonal selections: ``await array.oindex.getitem(([0, 2], slice(None), mask))``."""
        return AsyncIndexer(self, indexing.orthogonal)

    @property
    def vindex(self) -> AsyncIndexer:
        """Selections by coordinates or by a mask: ``await array.vindex.getitem(([0, 2], [1, 1]))``."""
        return AsyncIndexer(self, points)

    @property
    def blocks(self) -> AsyncIndexer:
        """Selections of whole chunks: ``await array.blocks.getitem((0, slice(1, None)))``."""
        return AsyncIndexer(self, indexing.block)


class AsyncIndexer:
    """Another kind of selection: ``await array.oindex.getitem(...)``."""

    __slots__ = ("_array", "_planner")

    def __init__(self, array: AsyncIndexed, planner: Planner) -> None:
        self._array: Any = array
        self._planner = planner

    @overload
    async def getitem(self, selection: ArrayIndex) -> AnyArray: ...
    @overload
    async def getitem(self, selection: Index) -> Any: ...
    async def getitem(self, selection: Any) -> Any:
        """Return the selected elements."""
        fields, selection = indexing.pop_fields(selection)
        return await self._array._get(self._planner, selection, None, fields)  # noqa: SLF001 - a part of it

    async def setitem(self, selection: Index, value: ArrayLike) -> None:
        """Store elements."""
        fields, selection = indexing.pop_fields(selection)
        await self._array._set(self._planner, selection, value, fields)  # noqa: SLF001 - a part of it
