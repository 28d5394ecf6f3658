"""delta: the first element, then differences.

Configuration: ``dtype``, ``astype`` (default: ``dtype``), type strings of v2.
Agrees with numcodecs; differences that do not fit into ``astype`` wrap around.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from omnizarr.codecs.configuration import AnyDType, Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration, Description
from omnizarr.codecs.elements import ElementFilter, filter_of
from omnizarr.codecs.record import A2A, ONE, Name, Record


def _differences(made: AnyDType, row: AnyArray) -> AnyArray:
    out = np.empty(row.shape, made)
    out[:1] = row[:1]
    out[1:] = np.diff(row)
    return out


def _sums(seen: AnyDType, row: AnyArray) -> AnyArray:
    out = np.empty(row.shape, seen)
    np.cumsum(row, out=out)
    return out


def bind(configuration: Configuration, decoded: ArraySpec) -> ElementFilter:
    """Return the codec."""
    fields = Fields(configuration, ("dtype", "astype"))
    seen = fields.dtype("dtype", decoded.dtype)
    made = fields.dtype("astype", seen)
    for name, dtype in (("dtype", seen), ("astype", made)):
        if dtype.kind not in "biufcmM":
            raise fields.reject(name, f"{name!r} is not a numeric type", dtype.str, "a numeric type string")
    return filter_of(
        decoded,
        seen,
        made,
        partial(_differences, made),
        partial(_sums, seen),
        "differences of floating-point numbers are rounded" if {seen.kind, made.kind} & set("fc") else "",
        _native(seen, made),
    )


def _native(seen: AnyDType, made: AnyDType) -> Description | None:
    # Sums have the common type of both: other floats, or integers of 64 bits, would round them.
    is_rounded = np.result_type(seen, made).kind == "f" and seen.newbyteorder("=") != made.newbyteorder("=")
    return None if is_rounded else ("delta",)


CODECS = (
    Record(
        id="delta", kind=A2A, names={"numcodecs.delta": Name(bind, ONE, required=("dtype",))},
        parameters={"dtype": str, "astype": str}, note="exact", native=True, words="differences",
        is_inexact=lambda given: str(given.get("dtype", ""))[1:2] not in ("i", "u"), memory_type="dtype",
        result_type=lambda given: given.get("astype") or given.get("dtype"),
    ),
)  # fmt: skip
