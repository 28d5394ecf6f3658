"""Words that xarray knows, where netCDF has others; and what stands beside them, so that netCDF finds its own again.

xarray masks by the fill value of an array in v2, and by the attribute ``_FillValue`` in v3, which has a form of its own
(`omnizarr.formats.conventions.fill_values`). It shows all attributes of groups, and of arrays in v2, except those that
begin with ``_nc``.

Spec: xarray, "Zarr Encoding Specification"; ``xarray.coding`` (``_Encoding``, ``_Unsigned``, ``missing_value``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions import fill_values
from omnizarr.formats.conventions.nczarr_metadata import FILTERS, SPEC, NodeMarks
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, Named, Note, datatypes
from omnizarr.netcdf import filters, types
from omnizarr.netcdf.header import Attribute, VariableHeader
from omnizarr.netcdf.layouts import attributes
from omnizarr.netcdf.types import AnyType, NcType

FILL_VALUE: Final = "_FillValue"
MISSING_VALUE: Final = "missing_value"
ENCODING: Final = "_Encoding"
UTF_8: Final = "utf-8"


class DocumentAttributes(NamedTuple):
    """The attributes of a node as a document says them.

    Attributes
    ----------
    values : dict
        By name.
    types : dict
        Their types, as the layout records them.
    nuls : dict
        How many NULs stand at the end of texts, which are left out.
    forms : dict
        Shapes and types of HDF5 that netCDF does not have.
    added : tuple of str
        Those that are none in netCDF.
    kept : dict
        Those that are left out, or stored differently.
    """

    values: dict[str, JSON]
    types: dict[str, JSON]
    nuls: dict[str, JSON]
    forms: dict[str, JSON]
    added: tuple[str, ...] = ()
    kept: Mapping[str, JSON] = {}


# -- writing ------------------------------------------------------------------------


def understood(
    header: VariableHeader, in_document: DocumentAttributes, zarr_format: Literal[2, 3]
) -> DocumentAttributes:
    """Return the attributes of a variable in words that xarray understands.

    - In v2, strings of a fixed length are text by ``_Encoding``.
    - In v3, ``_FillValue`` has a form of its own, and none for text, which only ``missing_value`` masks, nor for what
      no element can be; where ``_Unsigned`` makes unsigned numbers signed, it is signed as well.
    """
    values = dict(in_document.values)
    added: dict[str, JSON] = {}
    kept: dict[str, JSON] = {}
    attribute = header.attributes.get(FILL_VALUE)
    if zarr_format == 2:
        if header.type is types.STRING and ENCODING not in values:
            added[ENCODING] = UTF_8
    elif attribute is not None and isinstance(header.type, NcType):
        if attribute.type is header.type and header.type.is_text:
            kept[FILL_VALUE] = values.pop(FILL_VALUE)
            added |= {} if MISSING_VALUE in values else {MISSING_VALUE: kept[FILL_VALUE]}
        else:
            value = None if header.type.is_text else attributes.fill_number(attribute, header.type)
            is_signed = value is not None and value.dtype.kind == "u" and values.get("_Unsigned") == "false"
            if value is None or is_signed or attribute.type is not header.type:
                kept[FILL_VALUE] = values.pop(FILL_VALUE)  # xarray opens no array with another one
            if value is not None:
                values[FILL_VALUE] = fill_values.encode(value.view(f"i{value.dtype.itemsize}") if is_signed else value)
    text = attributes.recorded_type(Attribute.of(""), "v3" if zarr_format == 3 else "S1")
    recorded = {**in_document.types, **dict.fromkeys(added, text)}
    return in_document._replace(
        values={**values, **added}, types=recorded, added=(*in_document.added, *added), kept=kept
    )


def beside(
    header: VariableHeader, in_document: DocumentAttributes, given: Sequence[Named], stored: Sequence[Named]
) -> dict[str, JSON]:
    """Return what a mark says beside the attributes: those that are others in netCDF, no fill, and other filters.

    `given` are the codecs of the filters, `stored` those that the array has.
    """
    mark: dict[str, JSON] = {}
    if in_document.kept:
        mark["attributes"] = dict(in_document.kept)
    if in_document.added:
        mark["added"] = list(in_document.added)
    if is_no_fill(header) and FILL_VALUE not in header.attributes:
        mark["fill"] = "none"
    if tuple(given) != tuple(stored):
        mark["filters"] = {
            name: value.value if isinstance(value.value, str) else value.value.tolist()[0]
            for name, value in header.special.items()
            if name in FILTERS
        }
    return mark


def odd_types(header: VariableHeader, in_document: DocumentAttributes) -> dict[str, JSON]:
    """Return the types of attributes that their values do not show."""
    every = {**header.attributes, **header.special}
    return {
        name: of_type
        for name, of_type in in_document.types.items()
        if (name in in_document.values or name in in_document.kept)
        and name not in in_document.added
        and not (name == FILL_VALUE and every[name].type is header.type)
        and (name in in_document.kept or not attributes.is_plain(_without_nuls(every[name]), in_document.values[name]))
    }


def _without_nuls(attribute: Attribute) -> Attribute:
    value = attribute.value
    return replace(attribute, value=value.rstrip("\0")) if isinstance(value, str) else attribute


def is_no_fill(header: VariableHeader) -> bool:
    """Return whether elements that were never written are undefined."""
    found = header.special.get("_NoFill")
    return found is not None and found.value == "true"


# -- reading ------------------------------------------------------------------------


def with_nuls(attribute: Attribute, count: JSON) -> Attribute:
    """Return a text with the NULs at its end that were left out."""
    value = attribute.value
    if not isinstance(count, int) or not isinstance(value, str) or value.endswith("\0") or not 0 < count <= 2**16:
        return attribute
    return Attribute(attribute.type, value + "\0" * count)


def fill_attribute(json: JSON, array: ArrayMetadata, nc_type: AnyType) -> Attribute | None:
    """Return the ``_FillValue`` that has the form in which xarray writes it in v3; None if it has another form."""
    is_number = isinstance(nc_type, NcType) and nc_type.dtype.kind == "f"
    if array.dialect == "v2" or not isinstance(json, str) or not isinstance(nc_type, NcType) or not is_number:
        return None
    value = fill_values.decode(json, nc_type.dtype)
    return None if value is None else Attribute(nc_type, np.array([value], nc_type.dtype))


def believed(found: NodeMarks, array: ArrayMetadata, nc_type: AnyType) -> NodeMarks:
    """Return the marks of an array without what its documents do not bear out any more.

    xarray leaves the marks of a group as they are when it replaces an array.
    """
    kept, added = found.attributes, found.added
    value = kept.get(FILL_VALUE)
    if kept and not (_is_fill(value, array, nc_type) or (not added and _is_unfit(value, array, nc_type))):
        kept = {}
    if MISSING_VALUE in added and kept.get(FILL_VALUE) != array.attributes.get(MISSING_VALUE):
        added = tuple(name for name in added if name != MISSING_VALUE)
    filtered = found.filters if _are_filters(found.filters, array, nc_type) else {}
    references, notes = found.references, found.notes
    names = array.dimension_names
    if names and references is not None and [each.rpartition("/")[2] for each in references] != list(names):
        references = None
        message = "NCZarr's names of the dimensions differ from dimension_names: ignored"
        notes = (*notes, Note("/dimension_names", message, SPEC))
    elif kept is found.attributes and added is found.added and filtered is found.filters:
        return found
    return replace(found, attributes=kept, added=added, filters=filtered, references=references, notes=notes)


def _is_unfit(value: JSON, array: ArrayMetadata, nc_type: AnyType) -> bool:
    """Return whether no element of an array can be a value, and the array says no other one to be missing."""
    if value is None or FILL_VALUE in array.attributes or not isinstance(nc_type, NcType):
        return False
    return not nc_type.is_text and attributes.as_number(value, nc_type) is None


def _is_fill(value: JSON, array: ArrayMetadata, nc_type: AnyType) -> bool:
    """Return whether a value is the fill value of an array."""
    if not isinstance(nc_type, NcType) or array.fill_value is UNDEFINED or not isinstance(value, str | int | float):
        return False
    try:
        fill: Any = datatypes.bind(array.data_type, array.byte_order).fill_from_json(array.fill_value)
    except OmnizarrError:
        return False
    if nc_type.is_text:
        text = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else None
        return text == (fill.encode() if isinstance(fill, str) else bytes(fill))
    number = attributes.as_number(value, nc_type)
    return number is not None and bool(number == fill or (number != number and fill != fill))  # noqa: PLR0124 (NaN)


def _are_filters(values: Mapping[str, JSON], array: ArrayMetadata, nc_type: AnyType) -> bool:
    """Return whether filters correspond to the codecs of an array."""
    if not values:
        return True
    special = special_of(values)
    try:
        wanted = filters.widely_read(filters.chain(special, nc_type), nc_type, 2 if array.dialect == "v2" else 3)
    except OmnizarrError:
        return False
    return wanted == array.codecs[-len(wanted) :] if wanted else True


def special_of(values: Mapping[str, JSON]) -> dict[str, Attribute]:
    """Return special attributes for filters, of a mark."""
    return {
        name: Attribute.of(value if isinstance(value, str) else np.int32(value))
        for name, value in values.items()
        if isinstance(value, str) or (type(value) is int and abs(value) < 2**31)
    }
