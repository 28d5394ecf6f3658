"""Ways of selecting."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from omnizarr.aio.array import AsyncIndexer
from omnizarr.errors import BoundsCheckError, VindexInvalidSelectionError
from omnizarr.views import Indexer

BasicSelection: TypeAlias = Any
OrthogonalSelection: TypeAlias = Any
CoordinateSelection: TypeAlias = Any
MaskSelection: TypeAlias = Any
BlockSelection: TypeAlias = Any
Selection: TypeAlias = Any
Fields: TypeAlias = str | list[str] | tuple[str, ...]

BlockIndex = OIndex = VIndex = Indexer


class AsyncOIndex(AsyncIndexer):
    """Orthogonal selections, to be awaited."""

    __slots__ = ()

    async def getitem(self, selection: Any) -> Any:
        """Return the selected elements."""
        return await super().getitem(selection)

    async def setitem(self, selection: Any, value: ArrayLike) -> None:
        """Store elements."""
        await super().setitem(selection, value)


class AsyncVIndex(AsyncIndexer):
    """Selections of single elements, to be awaited."""

    __slots__ = ()

    async def getitem(self, selection: Any) -> Any:
        """Return the selected elements."""
        return await super().getitem(selection)


__all__ = [
    "AsyncOIndex",
    "AsyncVIndex",
    "BlockIndex",
    "BoundsCheckError",
    "OIndex",
    "VIndex",
    "VindexInvalidSelectionError",
]
