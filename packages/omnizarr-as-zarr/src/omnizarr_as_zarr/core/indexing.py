"""Ways of selecting."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from omnizarr.aio.indexers import AsyncIndexer
from omnizarr.errors import BoundsCheckError, VindexInvalidSelectionError
from omnizarr.nodes.indexers import Indexer

BasicSelection: TypeAlias = Any
OrthogonalSelection: TypeAlias = Any
CoordinateSelection: TypeAlias = Any
MaskSelection: TypeAlias = Any
BlockSelection: TypeAlias = Any
Selection: TypeAlias = Any
Fields: TypeAlias = str | list[str] | tuple[str, ...]

BlockIndex = OIndex = VIndex = Indexer


def is_orthogonal(selection: Any, ndim: int) -> bool:
    """Return whether a selection means to zarr-python what it means to ``oindex``, where NumPy means something else.

    Such are one list or array beside integers and slices, and masks of several dimensions.

    >>> is_orthogonal((0, slice(None), [0, 1]), 3), is_orthogonal(([True, False], [0, 1]), 2)
    (True, True)
    >>> is_orthogonal(([1, 2], [0, 1]), 2), is_orthogonal((slice(None), [0, 1]), 2)
    (False, False)
    """
    if not isinstance(selection, tuple):
        return False
    items = [item for item in selection if not isinstance(item, str)]  # the names of fields
    lists = [np.asarray(item) for item in items if isinstance(item, (list, np.ndarray)) and np.ndim(item)]
    if not lists or any(each.ndim != 1 or each.dtype.kind not in "iub" for each in lists):
        return False
    if len(lists) == 1:
        others = [item for item in items if not isinstance(item, (list, np.ndarray))]
        has_integers = any(isinstance(item, (int, np.integer)) for item in others)
        return has_integers and all(isinstance(item, (int, np.integer, slice, EllipsisType)) for item in others)
    return len(lists) == len(items) == ndim and any(each.dtype.kind == "b" for each in lists)


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
