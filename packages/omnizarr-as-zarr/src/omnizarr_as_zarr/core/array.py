"""Arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

from omnizarr.nodes.config import ArrayConfig
from omnizarr_as_zarr._nodes import Array, AsyncArray
from omnizarr_as_zarr.api.asynchronous import create_array, from_array

AnyArray: TypeAlias = Array
AnyAsyncArray: TypeAlias = AsyncArray
ArrayConfigLike: TypeAlias = Any
ArrayConfigParams: TypeAlias = Any
CompressorsLike: TypeAlias = Any
FiltersLike: TypeAlias = Any
SerializerLike: TypeAlias = Any
ShardsLike: TypeAlias = Any
ChunksLike: TypeAlias = Any

__all__ = ["AnyArray", "AnyAsyncArray", "Array", "ArrayConfig", "AsyncArray", "create_array", "from_array"]
