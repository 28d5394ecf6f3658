"""Fixed-point numbers: integers that mean ``integer * 2**-fractional_bits``.

In memory an element is the stored integer, so that no bit is lost: a float64 does not hold all of 64 bits. What shows
or unpacks values multiplies by `FixedPoint.step`. A fill value in a document is a number, the meaning of its integer.

Spec: zarr-extensions ``binary_fixed_point`` (proposal 40).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnizarr.model import JSON, Named
from omnizarr.model.datatypes.data_type import AnyDType, ByteOrder, DataType, bytes_of, reject, scalar_of
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import fractions
else:
    fractions = Lazy("fractions")

NAME: Final = "binary_fixed_point"
SPEC: Final = "zarr-extensions, binary_fixed_point"
BASES: Final = tuple(f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64))


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Integers of `base`, each of which means a multiple of ``2**-fraction``. A scalar is the integer."""

    dtype: AnyDType
    base: DataType
    fraction: int

    @property
    def step(self) -> float:
        """What an integer is multiplied by; exact."""
        return 2.0**-self.fraction

    @property
    def words(self) -> str:
        """The type as one word: ``binary_fixed_point[int16*2**-15]``."""
        return f"{NAME}[{self.base.named.name}*2**-{self.fraction}]"

    def default(self) -> Any:
        """Return the zero of the type."""
        return self.base.default_fill_value

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the integer that means a number, or whose bits are hexadecimal text."""
        digits = 2 * self.dtype.itemsize
        forms = f'a multiple of 2**-{self.fraction}, or "0x" and {digits} hexadecimal digits'
        if isinstance(value, str) and re.fullmatch(rf"0x[0-9a-fA-F]{{{digits}}}", value):
            return scalar_of(bytes.fromhex(value[2:]), self.dtype.newbyteorder(">")).astype(self.dtype)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise reject("the fill value is not a fixed-point number", at, value, forms, spec=SPEC)
        count = fractions.Fraction(value) * 2**self.fraction
        if count.denominator != 1:  # the text says nothing of rounding
            raise reject("the fill value lies between two numbers of the type", at, value, forms, spec=SPEC)
        limits = np.iinfo(self.dtype)
        if not limits.min <= count <= limits.max:
            low, high = (int(limit) * self.step for limit in (limits.min, limits.max))
            raise reject(
                "the fill value is out of the range of the type", at, value, f"from {low} to {high}", spec=SPEC
            )
        return np.array(int(count), self.dtype)[()]

    def to_json(self, scalar: Any) -> JSON:
        """Return the number that an integer means; its bits if a float64 does not hold that number."""
        count = int(scalar)
        if int(float(count)) == count:
            return float(count) * self.step
        return f"0x{bytes_of(scalar, self.dtype.newbyteorder('>')).hex()}"

    def cast(self, value: Any, at: str) -> Any:
        """Return the stored integer that a user passed. Floats are refused: 1.0 could mean 1 or the integer 1."""
        if isinstance(value, str):
            return self.from_json(value, at)
        if isinstance(value, bool | float | np.bool_ | np.floating):
            raise reject(
                "fixed-point numbers are passed as their stored integers", at, value,
                f"an integer: the number times 2**{self.fraction}", spec=SPEC,
            )  # fmt: skip
        return self.base.scalars.cast(value, at)


def bind_fixed_point(
    configuration: Mapping[str, JSON], byte_order: ByteOrder, bind: Callable[[Named, ByteOrder], DataType]
) -> FixedPoint:
    """Return the type that a document describes. Raises MetadataError."""
    at = "/data_type/configuration"
    name = configuration.get("base_data_type")
    if not isinstance(name, str) or name not in BASES:
        raise reject("not the type of stored integers", f"{at}/base_data_type", name, " or ".join(BASES), spec=SPEC)
    base = bind(Named(name), byte_order)
    room = 8 * base.dtype.itemsize - (base.dtype.kind == "i")
    given = {each: configuration[each] for each in ("fractional_bits", "integer_bits") if each in configuration}
    for each, bits in given.items():
        if isinstance(bits, bool) or not isinstance(bits, int) or not 0 <= bits <= room:
            raise reject("not a number of bits", f"{at}/{each}", bits, f"an integer from 0 to {room}", spec=SPEC)
    if not given:
        raise reject("the place of the point is missing", at, dict(configuration), "fractional_bits", spec=SPEC)
    fraction: Any = given.get("fractional_bits", room - given.get("integer_bits", 0))  # type: ignore[operator]
    if given.get("integer_bits", room - fraction) != room - fraction:
        expected = f"{room - fraction}: {name} has {room} bits besides the sign"
        raise reject("the bits do not add up", f"{at}/integer_bits", given["integer_bits"], expected, spec=SPEC)
    return FixedPoint(base.dtype, base, fraction)
