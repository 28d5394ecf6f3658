"""astype: the elements in another type.

Configuration: ``encode_dtype``, ``decode_dtype``, type strings of v2.
Agrees with numcodecs: casts as NumPy does, without checking for loss.
"""

from __future__ import annotations

from functools import partial

from omnizarr.codecs.configuration import AnyDType, Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration
from omnizarr.codecs.elements import ElementFilter, filter_of
from omnizarr.codecs.numbers import loss_of_cast
from omnizarr.codecs.record import A2A, ONE, Name, Record, brief


def _cast(dtype: AnyDType, row: AnyArray) -> AnyArray:
    # Only the real part is kept. NumPy does the same, but warns.
    if row.dtype.kind == "c" and dtype.kind not in "cSUb":
        row = row.real
    return row.astype(dtype, copy=False)


def bind(configuration: Configuration, decoded: ArraySpec) -> ElementFilter:
    """Return the codec."""
    fields = Fields(configuration, ("encode_dtype", "decode_dtype"))
    made = fields.dtype("encode_dtype")
    seen = fields.dtype("decode_dtype", decoded.dtype)
    return filter_of(
        decoded,
        seen,
        made,
        partial(_cast, made),
        partial(_cast, seen),
        loss_of_cast(seen, made) if made.kind in "biufc" and seen.kind in "biufc" else "",
        ("astype",),
    )


CODECS = (
    Record(
        id="astype", kind=A2A, names={"numcodecs.astype": Name(bind, ONE)},
        parameters={"encode_dtype": str, "decode_dtype": str}, note="as NumPy casts", native=True,
        words=lambda given: f"as {brief(given.get('encode_dtype', '?'))}", is_inexact=True,
        memory_type="decode_dtype", result_type=lambda given: given.get("encode_dtype"),
    ),
)  # fmt: skip
