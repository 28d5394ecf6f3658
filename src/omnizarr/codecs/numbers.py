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


def loss_of_cast(before: np.dtype[Any], after: np.dtype[Any]) -> str:
    """Return what numbers lose when they become numbers of another type; "" if nothing.

    >>> loss_of_cast(np.dtype("f8"), np.dtype("f4"))
    'relative error at most 2^-24; numbers beyond 3.40282e+38 become infinite'
    >>> loss_of_cast(np.dtype("i2"), np.dtype("f4")), loss_of_cast(np.dtype("f4"), np.dtype("i2"))
    ('', 'fractions, and numbers that int16 cannot hold')
    """
    before, after = native_of(before), native_of(after)
    if before.kind in "iu" and after.kind in "fc":
        digits = np.finfo(after).nmant + 1
        bits = 8 * before.itemsize - (before.kind == "i")
        return "" if bits <= digits else f"relative error at most 2^-{digits}"
    if np.can_cast(before, after, "safe"):
        return ""
    if before.kind == after.kind and before.kind in "fc":
        found = np.finfo(after)
        return f"relative error at most 2^-{found.nmant + 1}; numbers beyond {float(found.max):g} become infinite"
    if before.kind == "c":
        return "imaginary parts"
    rest = f"numbers that {after.name} cannot hold"
    return f"fractions, and {rest}" if before.kind == "f" else rest


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
    return None
