"""The names that the registry of zarr-extensions has, as of its commit 4da7b37 (July 2026), and Zarr v3 core.

Spec: Zarr v3 core, "Extension points"; zarr-extensions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from omnizarr.codecs import registry

_FLOAT8 = (
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
_SMALL_FLOATS = ("bfloat16", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", *_FLOAT8)

NAMES: Final[Mapping[str, frozenset[str]]] = {
    "data type": frozenset(
        {
            *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64", "complex64", "complex128"),
            *_SMALL_FLOATS,
            *(f"complex_{name}" for name in _SMALL_FLOATS),
            *("complex_float16", "int2", "int4", "uint2", "uint4", "bytes", "string", "fixed_length_utf32"),
            *("numpy.datetime64", "numpy.timedelta64", "struct"),
        }
    ),
    "chunk grid": frozenset({"regular", "rectilinear"}),
    "chunk key encoding": frozenset({"default", "v2"}),
    "storage transformer": frozenset(),
}

ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
    "data type": {"complex_float32": "complex64", "complex_float64": "complex128", "structured": "struct"},
    "codec": {"numcodecs.bitround": "bitround"},
    "chunk grid": {},
    "chunk key encoding": {},
    "storage transformer": {},
}

_RAW = re.compile(r"r[1-9][0-9]*")


def is_registered(point: str, name: str) -> bool:
    """Return whether the registry has a name at an extension point.

    >>> is_registered("codec", "gzip"), is_registered("codec", "numcodecs.lzma"), is_registered("data type", "r16")
    (True, False, True)
    """
    if point == "codec":
        record = registry.record(name)
        return record is not None and record.names[name].status != ""
    return name in NAMES[point] or (point == "data type" and _RAW.fullmatch(name) is not None)
