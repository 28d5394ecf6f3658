"""What netCDF makes of the data types of Zarr.

Spec: NCZarr, "The NCZarr Data Model", "Appendix D", "Appendix E", "Supported Types".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.model import ArrayMetadata, Named, Note, datatypes
from omnizarr.model.datatypes.optional import NAMES as OPTIONAL
from omnizarr.model.datatypes.structs import named_from_json
from omnizarr.netcdf import types
from omnizarr.netcdf.types import AnyType, UserType

BOOL: Final = UserType("_bool_t", "enum", np.dtype("u1"), {"FALSE": 0, "TRUE": 1}, types.UBYTE)

_COMPLEX: Final[Mapping[str, AnyType]] = {
    name: UserType(f"_Complex{bits}_t", "compound", np.dtype([("i", part), ("j", part)]))
    for bits, part, names in (
        (64, "f4", ("complex64", "complex_float32")),
        (128, "f8", ("complex128", "complex_float64")),
    )
    for name in names
}
_EXACT: Final[Mapping[str, AnyType]] = {
    **{each.dtype.name: each for each in types.TYPES.values() if not each.is_text},
    **dict.fromkeys(
        ("fixed_length_utf32", "string", "variable_length_utf8", "bytes", "variable_length_bytes"), types.STRING
    ),
}
_WIDER: Final[Mapping[str, AnyType]] = {
    "float16": types.FLOAT,
    "bfloat16": types.FLOAT,
    "int2": types.BYTE,
    "int4": types.BYTE,
    "uint2": types.UBYTE,
    "uint4": types.UBYTE,
    "numpy.datetime64": types.INT64,
    "numpy.timedelta64": types.INT64,
}
_RAW: Final = re.compile(r"r([0-9]{1,10})")
_SPEC: Final = 'NCZarr, "Supported Types"'


class Elements(NamedTuple):
    """The type of a variable, with remarks."""

    type: AnyType
    notes: tuple[Note, ...] = ()


def of(metadata: ArrayMetadata, name: str, *, is_char: bool = False) -> Elements | None:
    """Return the type that netCDF has for an array's elements; None if it cannot know them.

    `name` is the variable's, after which records are called. `is_char`: one byte is a char, not a string of length 1.
    """
    named = metadata.data_type
    if named.name == "null_terminated_bytes":
        is_one = named.configuration.get("length_bytes") == 1
        return Elements(types.CHAR if is_char and is_one else types.STRING)
    if named.name in _EXACT:
        return Elements(_EXACT[named.name])
    if named.name in _WIDER:
        return _shown(named, _WIDER[named.name])
    if named.name == "bool":
        return _shown(named, BOOL)
    if named.name in _COMPLEX:
        return _shown(named, _COMPLEX[named.name])
    match = _RAW.fullmatch(named.name)
    length = int(match[1]) // 8 if match else named.configuration.get("length_bytes")
    length = length if isinstance(length, int) and (match or named.name == "raw_bytes") else 0
    if length:
        return _shown(named, UserType(f"_opaque_{length}_t", "opaque", np.dtype(f"V{length}")))
    if named.name in OPTIONAL:
        return _of_optional(metadata, name)
    make = _MADE.get(named.name)
    return None if make is None else make(metadata, name)


def _shown(named: Named, nc_type: AnyType) -> Elements:
    return Elements(nc_type, (Note("/data_type", f"{named.name}, shown as {nc_type.name}", _SPEC),))


def _compound(metadata: ArrayMetadata, name: str) -> Elements | None:
    try:
        dtype = datatypes.bind(metadata.data_type).dtype
    except OmnizarrError:
        return None
    return _shown(metadata.data_type, UserType(f"_{name}_t", "compound", dtype))


def without_missing(metadata: ArrayMetadata) -> ArrayMetadata:
    """Return an array whose elements may be missing as one whose elements are netCDF's fill value there.

    Raises OmnizarrError if this is not known.
    """
    inner = named_from_json(metadata.data_type.configuration)
    plain = replace(metadata, data_type=inner, fill_value=None)
    known = of(plain, "")
    if known is None or not isinstance(known.type, types.NcType):
        return metadata
    data_type = datatypes.bind(inner)
    return replace(plain, fill_value=data_type.fill_to_json(data_type.cast(known.type.default_fill)))


def _of_optional(metadata: ArrayMetadata, name: str) -> Elements | None:
    """Return the type of elements that may be missing: that of the others, if it can have a fill value."""
    try:
        plain = without_missing(metadata)
    except OmnizarrError:
        return None
    if plain is metadata:
        return None
    known = of(plain, name)
    if known is None:
        return None
    message = f"elements that may be missing, shown as {known.type.name} with _FillValue"
    return Elements(known.type, (Note("/data_type", message, _SPEC),))


def _ragged(metadata: ArrayMetadata, name: str) -> Elements | None:
    try:
        item = named_from_json(metadata.data_type.configuration.get("data_type"))
    except OmnizarrError:
        return None
    base = _EXACT.get(item.name)
    if not isinstance(base, types.NcType):
        return None
    return _shown(metadata.data_type, UserType(f"_{name}_t", "vlen", np.dtype(object), base=base))


_MADE: Final[Mapping[str, Callable[[ArrayMetadata, str], Elements | None]]] = {
    "struct": _compound,
    "structured": _compound,
    "omnizarr.vlen_array": _ragged,
}
