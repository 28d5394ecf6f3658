"""quantize: floats rounded to a number of decimal digits, with powers of two.

Configuration: ``digits`` (integer), ``dtype``, ``astype`` (default: ``dtype``), type strings of floats.
Agrees with numcodecs. Decoding only casts.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from omnizarr.codecs.configuration import AnyDType, Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration
from omnizarr.codecs.elements import ElementFilter, filter_of
from omnizarr.codecs.numbers import loss_of_cast
from omnizarr.codecs.record import A2A, ONE, Name, Record, brief


def _round(scale: float, row: AnyArray) -> AnyArray:
    return np.around(scale * row) / scale


def _same(row: AnyArray) -> AnyArray:
    return row


def bind(configuration: Configuration, decoded: ArraySpec) -> ElementFilter:
    """Return the codec."""
    fields = Fields(configuration, ("digits", "dtype", "astype"))
    digits = fields.integer("digits", low=-300, high=300)
    seen = fields.dtype("dtype", decoded.dtype)
    made = fields.dtype("astype", seen)
    for name, dtype in (("dtype", seen), ("astype", made)):
        if dtype.kind != "f":
            raise fields.reject(name, f"{name!r} is not a floating-point type", dtype.str, 'such as "<f4"')
    # The smallest power of two that is at least as fine as the digits, computed as numcodecs does.
    exponent = math.log10(10.0**-digits)
    exponent = math.floor(exponent) if exponent < 0 else math.ceil(exponent)
    scale = 2.0 ** math.ceil(math.log2(10.0**-exponent))
    return filter_of(
        decoded, seen, made, partial(_round, scale), _same, _loss(digits, scale, seen, made), ("quantize", scale)
    )


def _loss(digits: int, scale: float, seen: AnyDType, made: AnyDType) -> str:
    rounding = f"{digits} decimal digits stay: absolute error at most {0.5 / scale:g}"
    return "; ".join(filter(None, (rounding, loss_of_cast(seen, made))))


CODECS = (
    Record(
        id="quantize", kind=A2A, names={"numcodecs.quantize": Name(bind, ONE)},
        parameters={"digits": int, "dtype": str, "astype": str}, note="rounded when encoding", native=True,
        words=lambda given: f"rounded to {brief(given.get('digits', '?'))} digits", memory_type="dtype",
        result_type=lambda given: given.get("astype") or given.get("dtype"),
    ),
)  # fmt: skip
