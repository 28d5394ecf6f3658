"""Names of constants and types that zarr-python keeps in one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, Final, Literal, TypeAlias

JSON: TypeAlias = Any
AccessModeLiteral: TypeAlias = Literal["r", "r+", "a", "w", "w-"]
ANY_ACCESS_MODE: Final = frozenset({"r", "r+", "a", "w", "w-"})
BytesLike: TypeAlias = bytes | bytearray | memoryview
ShapeLike: TypeAlias = Iterable[int] | int
ChunkCoords: TypeAlias = tuple[int, ...]
ZarrFormat: TypeAlias = Literal[2, 3]
NodeType: TypeAlias = Literal["array", "group"]
MemoryOrder: TypeAlias = Literal["C", "F"]
DimensionNames: TypeAlias = Iterable[str | None] | None
NamedConfig: TypeAlias = Mapping[str, Any]

ZARR_JSON: Final = "zarr.json"
ZARRAY_JSON: Final = ".zarray"
ZGROUP_JSON: Final = ".zgroup"
ZATTRS_JSON: Final = ".zattrs"
ZMETADATA_V2_JSON: Final = ".zmetadata"


def product(tup: Iterable[int]) -> int:
    """Return the product of lengths."""
    return math.prod(tup)


def ceildiv(a: float, b: float) -> int:
    """Return how many parts of length `b` it takes for `a`."""
    return 0 if a == 0 else math.ceil(a / b)


def parse_shapelike(data: ShapeLike) -> tuple[int, ...]:
    """Return lengths as a tuple. Raises ValueError for negative ones, TypeError for what are not integers."""
    if isinstance(data, Integral):
        if data < 0:
            raise ValueError(f"Expected a non-negative integer. Got {data} instead.")
        return (int(data),)
    if not isinstance(data, Iterable):
        raise TypeError(f"Expected an integer or an iterable of integers. Got {data} instead.")
    lengths = tuple(data)
    if not all(isinstance(length, Integral) for length in lengths):
        raise TypeError(f"Expected an iterable of integers. Got {data} instead.")
    if any(length < 0 for length in lengths):
        raise ValueError(f"Expected all values to be non-negative. Got {data} instead.")
    return tuple(map(int, lengths))
