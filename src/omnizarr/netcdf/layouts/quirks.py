"""Arrays as their writers meant them: what old versions of netCDF-C wrote wrong, corrected.

Spec: NCZarr; the mistakes are those of netCDF-C 4.8.0 to 4.9.2, by what they wrote.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, Named, Note, datatypes
from omnizarr.netcdf import types
from omnizarr.netcdf.header import Attribute

CHAR: Final = Named("null_terminated_bytes", {"length_bytes": 1})
_DEFAULT_OF_SIX_DIGITS: Final = 9.96921e36
_SPEC: Final = "NCZarr"

Version = tuple[int, ...]


class Writer(NamedTuple):
    """The program that wrote a dataset.

    Attributes
    ----------
    is_nczarr : bool
        Whether there are marks of NCZarr.
    version : tuple of int, optional
        Of netCDF-C, from ``_NCProperties``.
    layout : {"A", "B", "C", "D"}, optional
    """

    is_nczarr: bool
    version: Version | None
    layout: str | None

    @property
    def is_netcdf(self) -> bool:
        """Whether some netCDF library wrote it."""
        return self.is_nczarr or self.version is not None

    @property
    def hides_fill(self) -> bool:
        """Whether ``_FillValue`` is stored as the array's fill value alone: so in netCDF-C's pull request 2918."""
        return self.layout == "E" and self.version is not None

    @property
    def mislabels(self) -> bool:
        """Whether elements called big-endian are little-endian: so until 4.9.3."""
        if self.layout == "D":
            return False
        if self.layout in {"A", "B"}:
            return True
        return self.version is not None and (4, 8) <= self.version < (4, 9, 3)

    @property
    def has_narrow_char(self) -> bool:
        """Whether char is called ``<U1`` and has one byte: so until 4.9.0."""
        if self.layout in {"A", "B"}:
            return True
        return self.layout is None and self.version is not None and (4, 8) <= self.version < (4, 9, 1)

    @property
    def loses_scalars(self) -> bool:
        """Whether the fill value is stored in place of a scalar's data: so in 4.8."""
        return self.version is not None and (4, 8) <= self.version < (4, 8, 2)


def as_meant(metadata: ArrayMetadata, writer: Writer, alias: str | None) -> tuple[ArrayMetadata, tuple[Note, ...]]:
    """Return an array's metadata with elements as its writer meant them, and notes of what was corrected."""
    notes: list[Note] = []
    metadata = _text(metadata, writer, alias, notes)
    if writer.mislabels and _endian(metadata) == "big":
        metadata = replace(metadata, codecs=tuple(_little(codec) for codec in metadata.codecs))
        message = "big-endian by its dtype, little-endian as netCDF-C before 4.9.3 stored it"
        notes.append(Note("/dtype", message, _SPEC))
    return metadata, tuple(notes)


def _text(metadata: ArrayMetadata, writer: Writer, alias: str | None, notes: list[Note]) -> ArrayMetadata:
    named = metadata.data_type
    if alias in {"char", "json"} and named.name == "uint8":
        return _of_bytes(metadata, 1)
    length = datatypes_length(named)
    if alias == "string" and length:
        return _of_bytes(metadata, length)
    if writer.has_narrow_char and named.name == "fixed_length_utf32" and named.configuration.get("length_bytes") == 4:
        notes.append(Note("/dtype", "U1 with one byte per element, as netCDF-C before 4.9.1 stored char", _SPEC))
        return _of_bytes(metadata, 1)
    return metadata


def datatypes_length(named: Named) -> int:
    """Return the number of bytes of a type of raw bits; 0 for others."""
    length = named.configuration.get("length_bytes")
    if named.name == "raw_bytes" and isinstance(length, int):
        return length
    digits = named.name[1:]
    return int(digits) // 8 if named.name[:1] == "r" and digits.isascii() and digits.isdecimal() else 0


def _of_bytes(metadata: ArrayMetadata, length: int) -> ArrayMetadata:
    """Return an array whose elements are byte strings instead."""
    plain = tuple(Named("bytes") if codec.name == "bytes" else _narrow(codec) for codec in metadata.codecs)
    named = Named("null_terminated_bytes", {"length_bytes": length})
    fill = UNDEFINED if metadata.fill_value is UNDEFINED else _fill_of_bytes(metadata, metadata.fill_value, named)
    return replace(metadata, data_type=named, codecs=plain, fill_value=fill)


def _fill_of_bytes(metadata: ArrayMetadata, fill: JSON, named: Named) -> JSON:
    """Return the fill value of an array that has one, as one of byte strings."""
    target = datatypes.bind(named)
    try:
        value = datatypes.bind(metadata.data_type, metadata.byte_order).fill_from_json(fill)
    except OmnizarrError:
        return ""
    raw = value.encode("utf-8", "replace") if isinstance(value, str) else np.asarray(value).tobytes()
    return target.fill_to_json(np.bytes_(raw[: target.dtype.itemsize]))


def _narrow(codec: Named) -> Named:
    if codec.name == "numcodecs.shuffle" and codec.configuration.get("elementsize") == 4:
        return Named(codec.name, {**codec.configuration, "elementsize": 1})
    return codec


def _endian(metadata: ArrayMetadata) -> JSON:
    return next((codec.configuration.get("endian") for codec in metadata.codecs if codec.name == "bytes"), None)


def _little(codec: Named) -> Named:
    return Named("bytes", {**codec.configuration, "endian": "little"}) if codec.name == "bytes" else codec


# -- fill values ------------------------------------------------------------------------------


def with_fill(
    metadata: ArrayMetadata, nc_type: types.AnyType, attribute: Attribute | None, writer: Writer
) -> tuple[ArrayMetadata, tuple[Note, ...]]:
    """Return an array's metadata with the fill value that its writer meant, and notes.

    netCDF-C prints fill values with six digits; ``_FillValue`` may have more.
    """
    try:
        data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
        wanted = _wanted_fill(metadata, data_type, nc_type, attribute, writer)
        if wanted is None:
            return metadata, ()
        value, message = wanted
        fill = data_type.fill_to_json(data_type.cast(value))
    except OmnizarrError:
        return metadata, ()
    return replace(metadata, fill_value=fill), (Note("/fill_value", message, _SPEC),)


def with_default(metadata: ArrayMetadata, nc_type: types.AnyType) -> ArrayMetadata:
    """Return an array's metadata with netCDF's default as fill value."""
    data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    if not isinstance(nc_type, types.NcType):
        return metadata
    default = b"" if nc_type.is_text and data_type.dtype.kind == "S" else nc_type.default_fill
    return replace(metadata, fill_value=data_type.fill_to_json(data_type.cast(default)))


def fill_attribute(metadata: ArrayMetadata, nc_type: types.AnyType) -> Attribute | None:
    """Return the ``_FillValue`` that is stored as the array's fill value alone; None if it is the default."""
    if not isinstance(nc_type, types.NcType) or metadata.fill_value is UNDEFINED:
        return None
    try:
        value = datatypes.bind(metadata.data_type).fill_from_json(metadata.fill_value)
    except OmnizarrError:
        return None
    if not nc_type.is_text:
        return None if value == nc_type.default_fill else Attribute(nc_type, np.array([value], nc_type.dtype))
    text = bytes(value).rstrip(b"\0").decode("utf-8", "surrogateescape")
    return Attribute.of(text if nc_type is types.CHAR else [text]) if text else None


def mask_of_xarray(metadata: ArrayMetadata, nc_type: types.AnyType) -> Attribute | None:
    """Return the fill value of an array of v2 that xarray wrote, which masks it; None if there is none."""
    members = (*metadata.attributes, *metadata.unknown)
    is_theirs = metadata.dialect == "v2" and "_ARRAY_DIMENSIONS" in members
    if not is_theirs or any(name.lower().startswith("_nczarr") for name in members):
        return None
    if metadata.fill_value is UNDEFINED or not isinstance(nc_type, types.NcType):
        return None
    try:
        data_type = datatypes.bind(metadata.data_type)
        value = data_type.fill_from_json(metadata.fill_value)
    except OmnizarrError:
        return None
    if data_type.dtype.kind in "mM":
        return None
    if not nc_type.is_text:
        return Attribute(nc_type, np.array([value], nc_type.dtype))
    text = value if isinstance(value, str) else bytes(value).rstrip(b"\0").decode("utf-8", "surrogateescape")
    return Attribute.of([text] if nc_type is types.STRING else text or "\0")


def _wanted_fill(
    metadata: ArrayMetadata,
    data_type: datatypes.DataType,
    nc_type: types.AnyType,
    attribute: Attribute | None,
    writer: Writer,
) -> tuple[Any, str] | None:
    if metadata.fill_value is UNDEFINED:
        if attribute is None or not writer.is_netcdf:
            return None
        return _value_of(attribute), "null, taken from _FillValue"
    if nc_type is types.CHAR:
        char = bytes(data_type.fill_from_json(metadata.fill_value))
        return _wanted_char(char, attribute) if writer.is_netcdf else None
    if nc_type not in (types.FLOAT, types.DOUBLE):
        return None
    found = float(data_type.fill_from_json(metadata.fill_value))
    if attribute is not None and attribute.type is nc_type and len(attribute.value) == 1:
        exact = float(attribute.value[0])
        if f"{exact:g}" == f"{found:g}" and exact != found and np.isfinite(exact):
            return exact, f"{found!r}, read as {exact!r}: _FillValue has more digits"
    is_default = found == float(nc_type.dtype.type(_DEFAULT_OF_SIX_DIGITS))
    if writer.is_netcdf and is_default and found != float(nc_type.default_fill):
        return nc_type.default_fill, f"{_DEFAULT_OF_SIX_DIGITS!r}, read as the default {float(nc_type.default_fill)!r}"
    return None


def _wanted_char(found: bytes, attribute: Attribute | None) -> tuple[bytes, str] | None:
    """Return the char that the attribute has and the array lacks: netCDF-C 4.10 writes digits as numbers."""
    if attribute is None or attribute.type is not types.CHAR:
        return None
    wanted: bytes = _value_of(attribute)
    return (wanted, f"{found!r}, taken from _FillValue") if len(wanted) == 1 and wanted != found else None


def _value_of(attribute: Attribute) -> Any:
    if isinstance(attribute.value, str):
        return attribute.value.encode("utf-8", "surrogateescape")
    return attribute.value[0] if len(attribute.value) else None
