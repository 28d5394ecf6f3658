"""The value ranges of real data types: limits, infinities, NaNs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.model.datatypes import DataType


@dataclass(frozen=True, slots=True)
class Integers:
    """The integers of a type."""

    dtype: np.dtype[Any]
    """In the machine's byte order."""
    lowest: int
    highest: int

    @property
    def bits(self) -> int:
        """Width of the type (less than that of its elements in memory for ``int4``)."""
        return (self.highest - self.lowest).bit_length()

    def check(self, value: int, kind: type[OmnizarrError]) -> None:
        """Raise an error if `value` is not one of them."""
        if not self.lowest <= value <= self.highest:
            raise kind("a result does not fit into the data type", found=value,
                       expected=f"{self.lowest} to {self.highest}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Floats:
    """The floating-point numbers of a type."""

    dtype: np.dtype[Any]
    """In the machine's byte order."""
    highest: float
    beyond: float
    """The number that would follow `highest` with a larger exponent."""
    has_infinity: bool
    has_nan: bool


def native_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype in the machine's byte order. Text of variable length has none."""
    return dtype if dtype.kind == "T" else dtype.newbyteorder("=")


def numbers_of(data_type: DataType) -> Integers | Floats | None:
    """Return the value range of a real data type; None for other types."""
    name, dtype = data_type.named.name, native_of(data_type.dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return Integers(dtype, int(info.min), int(info.max))
    if name in ("int2", "int4", "uint2", "uint4"):
        bits = int(name[-1])
        return Integers(dtype, *((0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)))
    if dtype.name in ("float16", "float32", "float64"):  # ml_dtypes also has a type of kind "f"
        highest = float(np.finfo(dtype).max)
        step = highest - float(np.nextafter(np.finfo(dtype).max, dtype.type(0)))
        return Floats(dtype, highest, highest + step if dtype.itemsize < 8 else np.inf, True, True)  # noqa: FBT003
    if "float" in name and not name.startswith("complex"):
        return _small_floats(dtype)
    return None


def _small_floats(dtype: np.dtype[Any]) -> Floats:
    """Return the value range of a type of ml_dtypes, found by trying all its values."""
    words = np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}")
    with np.errstate(all="ignore"):
        values = words.view(dtype).astype(np.float64)
    finite = np.unique(values[np.isfinite(values)])
    return Floats(
        dtype,
        float(finite[-1]),
        float(2 * finite[-1] - finite[-2]),
        bool(np.isinf(values).any()),
        bool(np.isnan(values).any()),
    )
