"""fixedscaleoffset: ``round((x - offset) * scale)`` in another type.

Configuration: ``offset``, ``scale`` (numbers), ``dtype``, ``astype`` (default: ``dtype``), type strings of v2.
Agrees with numcodecs; results that do not fit into ``astype`` wrap around.

Spec: zarr-extensions, "scale_offset", section on numcodecs.fixedscaleoffset.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from omnizarr.codecs.configuration import AnyDType, Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration, Description
from omnizarr.codecs.elements import ElementFilter, filter_of
from omnizarr.codecs.record import A2A, MOST, Name, Record, brief

_EXACT: Final = 2**53
"""Integers up to this size are exact as float64."""


def _scale(offset: float, scale: float, row: AnyArray) -> AnyArray:
    return np.around((row - offset) * scale)


def _unscale(offset: float, scale: float, row: AnyArray) -> AnyArray:
    return (row / scale) + offset


def bind(configuration: Configuration, decoded: ArraySpec) -> ElementFilter:
    """Return the codec."""
    fields = Fields(configuration, ("offset", "scale", "dtype", "astype"))
    offset, scale = fields.number("offset"), fields.number("scale")
    if scale == 0:
        raise fields.reject("scale", "a scale of zero cannot be undone", scale, "a number other than 0")
    seen = fields.dtype("dtype", decoded.dtype)
    made = fields.dtype("astype", seen)
    for name, dtype in (("dtype", seen), ("astype", made)):
        if dtype.kind not in "biufc":
            raise fields.reject(name, f"{name!r} is not a numeric type", dtype.str, "a numeric type string")
    loss = _loss(offset, scale, seen, made)
    forward, backward = partial(_scale, offset, scale), partial(_unscale, offset, scale)
    return filter_of(decoded, seen, made, forward, backward, loss, _native(offset, scale, seen, made))


def _loss(offset: float, scale: float, seen: AnyDType, made: AnyDType) -> str:
    if seen.kind in "biu" and float(scale).is_integer() and float(offset).is_integer():
        return ""  # unless numbers do not fit, which a comparison shows
    rounding = f"multiples of {abs(1 / scale):g} stay: absolute error at most {abs(0.5 / scale):g}"
    return f"{rounding}; numbers that {made.name} cannot hold wrap around" if made.kind in "biu" else rounding


def _native(offset: float, scale: float, seen: AnyDType, made: AnyDType) -> Description | None:
    if seen.kind != "f" or any(isinstance(number, int) and abs(number) > _EXACT for number in (offset, scale)):
        return None
    if made.kind in "iu" and isinstance(scale, int) and not np.iinfo(made).min <= scale <= np.iinfo(made).max:
        return None  # NumPy needs it to have the type that it divides.
    return "fixedscaleoffset", float(offset), float(scale)


CODECS = (
    Record(
        id="fixedscaleoffset", kind=A2A, names={"numcodecs.fixedscaleoffset": Name(bind, MOST)},
        parameters={"offset": float, "scale": float, "dtype": str, "astype": str}, note="rounded when encoding",
        native=True,
        words=lambda given: f"(x - {brief(given.get('offset', '?'))}) * {brief(given.get('scale', '?'))}, rounded",
        is_inexact=True, memory_type="dtype", result_type=lambda given: given.get("astype") or given.get("dtype"),
    ),
)  # fmt: skip
