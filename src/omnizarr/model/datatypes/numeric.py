"""Booleans and numbers: bool, integers, floats, complex numbers.

Spec: Zarr v3 core, "Core data types" and "fill_value"; zarr-extensions for the small floats.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnizarr.model import JSON
from omnizarr.model.datatypes.data_type import AnyDType, OfDtype, bytes_of, reject, scalar_of

EXACT_BITS = 53
"""Bits of an integer that fit into a float64."""

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
"""The drafts wrote ``+Infinity``."""


class Bool(OfDtype):
    """True or false, one byte."""

    __slots__ = ()

    def default(self) -> Any:
        """Return the zero of the type."""
        return np.False_

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if not isinstance(value, bool):
            raise reject("the fill value is not a boolean", at, value, "true or false")
        return np.bool_(value)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return bool(scalar)

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if isinstance(value, bool | np.bool_) or (_is_integer(value) and value in (0, 1)):
            return np.bool_(value)
        raise reject("the fill value is not a boolean", at, value, "True or False")


@dataclass(frozen=True, slots=True)
class Integer:
    """Integers from `lowest` to `highest`."""

    dtype: AnyDType
    lowest: int
    highest: int
    blank_is_zero: bool = False
    """NCZarr's char type is uint8 with the fill value ``""``."""

    def default(self) -> Any:
        """Return the zero of the type."""
        return self._make(0)

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if value == "" and self.blank_is_zero:
            return self.default()
        # Some writers print every number as a float: z5 writes 0.0. An integral float states its integer.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise reject("the fill value is not an integer", at, value, self._range())
        return self._checked(value, at)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return int(scalar)

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if isinstance(value, float | np.floating) and float(value).is_integer():
            value = int(value)
        if _is_integer(value) or (isinstance(value, np.generic) and value.dtype == self.dtype):
            return self._checked(int(value), at)
        raise reject("the fill value is not an integer", at, value, self._range())

    def _checked(self, value: int, at: str) -> Any:
        if not self.lowest <= value <= self.highest:
            raise reject(f"the fill value is out of the range of {self.dtype.name}", at, value, self._range())
        return self._make(value)

    def _make(self, value: int) -> Any:
        return np.array(value, self.dtype)[()]

    def _range(self) -> str:
        return f"an integer from {self.lowest} to {self.highest}"


@dataclass(frozen=True, slots=True)
class Float:
    """Binary floating-point numbers of any width.

    `nan` holds the bits of ``"NaN"``: the positive quiet NaN with only the top mantissa bit set. None if the type
    has no NaN.
    """

    dtype: AnyDType
    nan: int | None
    has_infinity: bool = True

    def default(self) -> Any:
        """Return the zero of the type."""
        return scalar_of(bytes(self.dtype.itemsize), self.dtype)

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if isinstance(value, str):
            if value.startswith("0x"):
                digits = 2 * self.dtype.itemsize
                if not re.fullmatch(rf"0x[0-9a-fA-F]{{{digits}}}", value):
                    raise reject("the fill value has the wrong form", at, value, f"0x and {digits} hexadecimal digits")
                return self._from_bits(int(value, 16))
            if value not in NON_FINITE:
                raise reject("the fill value is not a number", at, value, self._forms())
            value = NON_FINITE[value]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise reject("the fill value is not a number", at, value, self._forms())
        # Return the nearest number of the type, half to even.
        if isinstance(value, float) and math.isnan(value):
            if self.nan is None:
                raise reject(f"{self.dtype.name} has no NaN", at, "NaN", "a finite number")
            return self._from_bits(self.nan)
        number = float(_to_odd(value)) if self.dtype.itemsize < 8 else _nearest(value)  # bytes of float64
        with np.errstate(all="ignore"):
            if self.dtype.kind != "f" and self.dtype.itemsize > 1:
                result = np.array(_to_odd_float32(number)).astype(self.dtype)[()]
            else:
                result = np.array(number, np.float64).astype(self.dtype)[()]
        if np.isnan(result) or (math.isinf(number) and not self.has_infinity):
            raise reject(f"the fill value is out of the range of {self.dtype.name}", at, value, "a number in range")
        return result

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        with np.errstate(invalid="ignore"):  # ml_dtypes changes signalling NaNs
            is_nan = np.isnan(scalar)
        if is_nan:
            bits = int.from_bytes(bytes_of(scalar, self.dtype), "big" if _is_big(self.dtype) else "little")
            return "NaN" if bits == self.nan else f"0x{bits:0{2 * self.dtype.itemsize}x}"
        number = float(scalar)
        if math.isinf(number):
            return "Infinity" if number > 0 else "-Infinity"
        return number

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        dtype = value.dtype if isinstance(value, np.generic) else None
        if dtype is not None and dtype.newbyteorder("=") == self.dtype.newbyteorder("="):
            return value
        if _is_integer(value):
            value = int(value)
        elif isinstance(value, np.floating):
            # A NumPy float as a Python float, rounding a longdouble so that a second rounding is right.
            wide = float(value)
            if value.dtype.itemsize > 8 and math.isfinite(wide) and wide != value:  # bytes of float64
                toward = -math.inf if value < wide else math.inf
                is_odd = int(np.float64(wide).view(np.uint64)) & 1
                value = wide if is_odd else math.nextafter(wide, toward)
            else:
                value = wide
        elif dtype is not None and dtype.kind == "V" and not isinstance(value, np.void):
            value = float(value)  # a number of another ml_dtypes type
        return self.from_json(value, at)

    def _from_bits(self, bits: int) -> Any:
        data = bits.to_bytes(self.dtype.itemsize, "big")
        return scalar_of(data if _is_big(self.dtype) else data[::-1], self.dtype)

    def _forms(self) -> str:
        digits = 2 * self.dtype.itemsize
        return f'a number, "NaN", "Infinity", "-Infinity", or "0x" and {digits} hexadecimal digits'


@dataclass(frozen=True, slots=True)
class Complex:
    """Complex numbers: two floats."""

    dtype: AnyDType
    part: Float

    def default(self) -> Any:
        """Return the zero of the type."""
        return scalar_of(bytes(self.dtype.itemsize), self.dtype)

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:  # real, imaginary
            raise reject("the fill value is not a complex number", at, value, "a list of two: real and imaginary part")
        return self._join([self.part.from_json(part, f"{at}/{i}") for i, part in enumerate(value)])

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        parts = np.frombuffer(bytes_of(scalar, self.dtype), self.part.dtype)
        return [self.part.to_json(part) for part in parts]

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        dtype = value.dtype if isinstance(value, np.generic) else None
        if dtype is not None and dtype.newbyteorder("=") == self.dtype.newbyteorder("="):
            return value
        if isinstance(value, complex | np.complexfloating):
            return self._join([self.part.cast(part, at) for part in (value.real, value.imag)])
        if isinstance(value, float | np.floating) or _is_integer(value):
            return self._join([self.part.cast(value, at), self.part.default()])
        return self.from_json(value, at)

    def _join(self, parts: list[Any]) -> Any:
        return scalar_of(b"".join(bytes_of(part, self.part.dtype) for part in parts), self.dtype)


def _is_big(dtype: AnyDType) -> bool:
    """Whether the most significant byte comes first (ml_dtypes are always native, whatever newbyteorder returns)."""
    return dtype.byteorder == ">" or (dtype.byteorder != "<" and sys.byteorder == "big")


def _is_integer(value: Any) -> bool:
    """Whether `value` is an integer; False for a timedelta64, which NumPy derives from its integers."""
    return isinstance(value, int | np.integer | np.bool_) and not isinstance(value, np.timedelta64)


def _nearest(value: float) -> float:
    """Return the float64 nearest to `value`, which may be an integer of any size."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _to_odd(value: float) -> float:
    """Return a float64 that rounds to any narrower type like `value` itself.

    Only integers can have more bits than fit. Their last kept bit tells whether bits were lost.
    """
    if not isinstance(value, int) or (excess := abs(value).bit_length() - EXACT_BITS) <= 0:
        return float(value)
    magnitude = abs(value)
    kept = magnitude >> excess
    if kept << excess != magnitude:
        kept |= 1
    try:
        return math.copysign(math.ldexp(kept, excess), value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _to_odd_float32(number: float) -> np.float32:
    """Return a float32 that rounds to bfloat16 like `number`, because ml_dtypes rounds to float32 first."""
    with np.errstate(all="ignore"):
        narrow = np.float32(number)
    if not math.isfinite(number) or float(narrow) == number or int(narrow.view(np.uint32)) & 1:
        return narrow
    odd: np.float32 = np.nextafter(narrow, np.float32(-math.inf if number < float(narrow) else math.inf))
    return odd
