"""scale_offset: ``(x - offset) * scale``, in the data type of the array.

Configuration: ``offset`` (0 if missing), ``scale`` (1 if missing), in the JSON form of the data type's fill values.
Agrees with zarr-python 3.4; integers that do not fit, quotients that are not integers, and finite floats that
become infinite are errors.

Spec: zarr-extensions, "scale_offset".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration
from omnizarr.codecs.numbers import Integers, numbers_of
from omnizarr.codecs.record import A2A, Name, Record, brief
from omnizarr.errors import ChunkError, CodecError, OmnizarrError

_SPEC: Final = 'zarr-extensions, "scale_offset"'


@dataclass(frozen=True, slots=True)
class ScaleOffset:
    """A linear map."""

    offset: Any
    scale: Any
    integers: Integers | None
    """None for floats."""
    encoded: ArraySpec

    @property
    def loss(self) -> str:
        """What the arithmetic of floating-point numbers rounds away."""
        if self.integers is not None or (not self.offset and math.frexp(abs(float(self.scale)))[0] == 0.5):
            return ""
        return "arithmetic is rounded to the digits of the data type"

    def encode(self, array: AnyArray) -> AnyArray:
        """Return ``(array - offset) * scale``."""
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        result: AnyArray
        if self.integers is None:
            with np.errstate(all="ignore"):
                result = ((native - self.offset) * self.scale).astype(native.dtype, copy=False)
            _check_finite(native, result, CodecError)
        else:
            # The map is monotonic: if the extremes are in range, everything in between is, too.
            offset, scale = int(self.offset), int(self.scale)
            for value in _extremes(native):
                self.integers.check(value - offset, CodecError)
                self.integers.check((value - offset) * scale, CodecError)
            result = (native - self.offset) * self.scale
        return result.astype(array.dtype, copy=False)

    def decode(self, array: AnyArray) -> AnyArray:
        """Return ``array / scale + offset``."""
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        result: AnyArray
        if self.integers is None:
            with np.errstate(all="ignore"):
                result = (native / self.scale + self.offset).astype(native.dtype, copy=False)
            _check_finite(native, result, ChunkError)
        else:
            result = self._decode_integers(native, self.integers)
        return result.astype(array.dtype, copy=False)

    def _decode_integers(self, array: AnyArray, integers: Integers) -> AnyArray:
        offset, scale = int(self.offset), int(self.scale)
        for value in _extremes(array):
            integers.check(value // scale, ChunkError)
            integers.check(value // scale + offset, ChunkError)
        wide = array.astype(np.int8) if array.dtype.kind == "V" else array
        divisor = wide.dtype.type(scale)
        if (wide % divisor).any():
            raise ChunkError("a stored integer is not a multiple of the scale", expected=f"multiples of {scale}",
                             spec=_SPEC)  # fmt: skip
        return (wide // divisor).astype(array.dtype) + self.offset  # type: ignore[no-any-return]


def _extremes(array: AnyArray) -> tuple[int, ...]:
    if array.size == 0:
        return ()
    wide = array.astype(np.int8) if array.dtype.kind == "V" else array  # the small integers of ml_dtypes
    return int(wide.min()), int(wide.max())


def _check_finite(before: AnyArray, after: AnyArray, kind: type[OmnizarrError]) -> None:
    if not (np.isfinite(after) | ~np.isfinite(before)).all():
        raise kind("a result does not fit into the data type", found="an infinite value", expected=after.dtype.name,
                   spec=_SPEC)  # fmt: skip


def bind(configuration: Configuration, decoded: ArraySpec) -> ScaleOffset:
    """Return the codec."""
    fields = Fields(configuration, ("offset", "scale"), _SPEC)
    numbers = numbers_of(decoded.data_type)
    if numbers is None:
        raise CodecError("the data type has no arithmetic", found=decoded.data_type.named.name,
                         expected="a real floating-point or integer type", spec=_SPEC)  # fmt: skip
    offset, scale = (_scalar(fields, name, decoded, default) for name, default in (("offset", 0), ("scale", 1)))
    if scale == 0:
        raise fields.reject("scale", "a scale of zero cannot be undone", 0, "another number")
    integers = numbers if isinstance(numbers, Integers) else None
    codec = ScaleOffset(offset, scale, integers, decoded)
    try:
        fill = codec.encode(np.full(1, decoded.fill_value, decoded.dtype))[0]
    except CodecError as error:
        raise error.add(pointer="/fill_value")
    return replace(codec, encoded=replace(decoded, fill_value=fill))


def _scalar(fields: Fields, name: str, decoded: ArraySpec, default: int) -> Any:
    value = fields.raw(name, default)
    try:
        if value is None:
            raise fields.reject(name, f"{name!r} is not a number", None, "a number")
        scalar = decoded.data_type.fill_from_json(value)
    except OmnizarrError as error:
        error.pointer = f"/configuration/{name}"
        raise
    return np.asarray(scalar).astype(decoded.dtype.newbyteorder("="))[()]


CODECS = (
    Record(
        id="scale_offset", kind=A2A, names={"scale_offset": Name(bind, status="registered")},
        parameters={"offset": object, "scale": object}, v2="-", note="exact, or an error when encoding",
        words=lambda given: f"(x - {brief(given.get('offset', 0))}) * {brief(given.get('scale', 1))}",
        is_inexact=True, remedy="re-encode with numcodecs.fixedscaleoffset, or write v3",
    ),
)  # fmt: skip
