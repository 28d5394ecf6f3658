"""User-defined types in Zarr: what their elements are there, and the mark by which netCDF finds the type again.

An enumeration becomes integers with ``flag_values`` and ``flag_meanings``, or booleans if it is h5py's; a compound
becomes records, or complex numbers if it is h5py's; opaque values become raw bits. netCDF-C opens no dataset with
anything but numbers and text, so layouts for it have only enumerations.

Spec: CF conventions, "Flags"; zarr-extensions ``structured``, the name of ``struct`` that all of zarr-python 3 knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions.nczarr_metadata import SPEC, NodeMarks
from omnizarr.formats.reader import is_integer, is_list, is_object
from omnizarr.model import JSON, ArrayMetadata, Note, datatypes
from omnizarr.model.datatypes.structs import named_to_json
from omnizarr.netcdf import types
from omnizarr.netcdf.header import Attribute, VariableHeader
from omnizarr.netcdf.layouts import attributes
from omnizarr.netcdf.layouts.attributes import Style
from omnizarr.netcdf.layouts.xarray import FILL_VALUE, DocumentAttributes
from omnizarr.netcdf.types import AnyType, NcType, UserType

MARK: Final = "user_type"
_VALUES, _MEANINGS, _DTYPE = "flag_values", "flag_meanings", "dtype"
_FLAGS: Final = (_VALUES, _MEANINGS, "flag_masks")
_BOOLEAN: Final = {"FALSE": 0, "TRUE": 1}
_FOR_NETCDF: Final = frozenset({"A", "B", "C", "D", "E"})
_DEEPEST: Final = 32
_LARGEST: Final = 2**31


# -- elements ------------------------------------------------------------------------------


def why_not(layout: str, of_type: AnyType) -> str:
    """Return why a layout has no elements for a type; "" if it has.

    >>> why_not("D", UserType("raw_t", "opaque", np.dtype("V5")))
    'NCZarr has no types that a program defines'
    """
    if isinstance(of_type, NcType) or (of_type.kind == "enum" and of_type.base is not None):
        return ""
    if of_type.kind in {"vlen", "enum"} or layout in _FOR_NETCDF:
        return "NCZarr has no types that a program defines"
    if any(bool(each.metadata and "enum" in each.metadata) for each in _leaves(of_type.dtype)):
        return "a field is an enumeration, which records of Zarr have not"
    dtype = elements_of(of_type)
    try:
        datatypes.parse(dtype)
    except OmnizarrError as error:
        return f"Zarr has no such type: {error.message}"
    if layout in {"v3", "pure-v3"} and any(each.subdtype for each in _leaves(dtype)):
        return "a field is an array, which records of Zarr v3 have not"
    return ""


def elements_of(user: UserType) -> np.dtype[Any]:
    """Return the dtype of elements of a type in Zarr, of the same bytes.

    >>> elements_of(UserType("t", "compound", np.dtype([("n", "i4"), ("name", "S1", 8)])))
    dtype([('n', '<i4'), ('name', 'S8')])
    """
    dtype = user.dtype
    if dtype.names == ("r", "i") and dtype[0] == dtype[1] and dtype[0].kind == "f" and dtype.itemsize in (8, 16):
        return np.dtype(f"c{dtype.itemsize}")
    return _with_text(dtype)


def _with_text(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a record with text in place of the vectors of characters that netCDF has."""
    if dtype.names:
        return np.dtype([(name, _with_text(dtype[name])) for name in dtype.names])
    if dtype.subdtype:
        base, shape = dtype.subdtype
        if base == types.CHAR.dtype:
            base, shape = np.dtype(f"S{shape[-1]}"), shape[:-1]
        return np.dtype((_with_text(base), shape))
    return dtype


def _leaves(dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    """Return the types of all fields, and those of fields of arrays."""
    if dtype.names:
        return [leaf for name in dtype.names for leaf in _leaves(dtype[name])]
    if dtype.subdtype:
        return [dtype, *_leaves(dtype.base)]
    return [dtype]


def is_nested(user: UserType) -> bool:
    """Return whether fields of records are themselves records or arrays.

    >>> is_nested(UserType("t", "compound", np.dtype([("v", "f4", 2)])))
    True
    """
    dtype = elements_of(user)
    return any(dtype[name].names or dtype[name].subdtype for name in dtype.names or ())


def _is_boolean(user: UserType) -> bool:
    """Return whether a type is h5py's for booleans."""
    return user.kind == "enum" and user.base is types.BYTE and dict(user.members) == _BOOLEAN


def plain(layout: str, header: VariableHeader) -> tuple[VariableHeader, np.dtype[Any] | None]:
    """Return a variable in the form of a layout, and the dtype of its elements; None if that follows from its type.

    netCDF-C opens no dataset of v2 with booleans, and nothing masks a boolean, so these are bytes there.
    """
    user = header.type
    if isinstance(user, NcType):
        return header, None
    if user.kind == "enum" and user.base is not None:
        if layout in {"v3", "pure-v3"} and _is_boolean(user) and FILL_VALUE not in header.attributes:
            return header, np.dtype(bool)
        return replace(header, type=user.base), None
    return header, elements_of(user)


def spelled(dtype: np.dtype[Any], zarr_format: int) -> Any:
    """Return what a new array is to have for a dtype: in v3, records by their old name."""
    if zarr_format == 2 or not dtype.names:
        return dtype.newbyteorder("<")
    return _document(dtype)


def _document(dtype: np.dtype[Any]) -> Any:
    if not dtype.names:
        return named_to_json(datatypes.from_numpy(dtype)[0])
    return {"name": "structured", "configuration": {"fields": [[each, _document(dtype[each])] for each in dtype.names]}}


# -- attributes and marks ----------------------------------------------------------------------


def understood(
    header: VariableHeader, in_document: DocumentAttributes, layout: str, style: Style
) -> DocumentAttributes:
    """Return attributes with those that tell others what the numbers of an enumeration mean, unless a file has some."""
    user = header.type
    if isinstance(user, NcType) or layout == "A":
        return in_document
    added: dict[str, JSON] = {}
    recorded: dict[str, JSON] = {}
    for name, attribute in _added(user, layout, header.attributes).items():
        value, of_type = attributes.write(attribute, style)
        added[name] = value
        if of_type is not None:
            recorded[name] = of_type
    return in_document._replace(
        values={**in_document.values, **added},
        types={**in_document.types, **recorded},
        added=(*in_document.added, *added),
    )


def _added(user: UserType, layout: str, own: Mapping[str, Attribute]) -> dict[str, Attribute]:
    if user.kind != "enum" or user.base is None:
        return {}
    if _is_boolean(user) and FILL_VALUE not in own:
        if layout in {"v3", "pure-v3"}:
            return {}
        if layout in {"xarray", "pure"} and _DTYPE not in own:
            return {_DTYPE: Attribute.of("bool")}
    return {} if any(name in own for name in _FLAGS) else _flags(user, user.base)


def _flags(user: UserType, base: NcType) -> dict[str, Attribute]:
    if not user.members:
        return {}
    values = np.array(list(user.members.values()), base.dtype)
    meanings = " ".join("_".join(name.split()) or "_" for name in user.members)
    return {_VALUES: Attribute(base, values), _MEANINGS: Attribute.of(meanings)}


def mark_of(header: VariableHeader) -> dict[str, JSON]:
    """Return what a mark says of a variable's type."""
    user = header.type
    if isinstance(user, NcType):
        return {}
    mark: dict[str, JSON] = {"name": user.name, "kind": user.kind}
    if user.kind == "enum" and user.base is not None:
        mark |= {"base": user.base.name, "members": dict(user.members)}
    elif user.kind == "compound":
        mark["fields"] = _fields(user.dtype)
    return {MARK: mark}


def _fields(dtype: np.dtype[Any]) -> JSON:
    """Return the fields of a record as JSON: names, types, and the shapes of arrays."""
    found: list[JSON] = []
    for name in dtype.names or ():
        base, shape = dtype[name].base, dtype[name].shape
        of_type: JSON = _fields(base) if base.names else base.newbyteorder("<").str
        found.append([name, of_type, list(shape)] if shape else [name, of_type])
    return found


# -- reading ------------------------------------------------------------------------


def believed(found: NodeMarks, array: ArrayMetadata) -> tuple[NodeMarks, UserType | None]:
    """Return the marks of an array without what its documents do not bear out any more, and its type."""
    if not found.user_type:
        return found, None
    user = _user_type(found.user_type, array)
    if user is None:
        message = "NCZarr's type of the variable does not fit its elements: ignored"
        notes = (*found.notes, Note("/data_type", message, SPEC))
        return replace(found, added=tuple(each for each in found.added if each not in _OURS), notes=notes), None
    if user.kind == "enum" and user.base is not None and found.added:
        flags = {name: attributes.write(each, "none")[0] for name, each in _flags(user, user.base).items()}
        wanted = {**flags, _DTYPE: "bool"}
        if any(array.attributes.get(each) != wanted[each] for each in found.added if each in _OURS and each in wanted):
            found = replace(found, added=tuple(each for each in found.added if each not in _OURS))
    return found, user


_OURS: Final = (_VALUES, _MEANINGS, _DTYPE)


def _user_type(mark: Mapping[str, JSON], array: ArrayMetadata) -> UserType | None:
    """Return the type that a mark describes; None if it describes none that elements of the array can be."""
    name, kind = mark.get("name"), mark.get("kind")
    try:
        dtype = np.dtype(datatypes.bind(array.data_type).dtype).newbyteorder("=")
    except (OmnizarrError, TypeError):
        return None
    if not isinstance(name, str) or not name:
        return None
    if kind == "enum":
        base, members = types.TYPES.get(str(mark.get("base"))), mark.get("members")
        if base is None or base.dtype.kind not in "iu" or not is_object(members):
            return None
        limits = np.iinfo(base.dtype)
        if not all(is_integer(each) and limits.min <= each <= limits.max for each in members.values()):
            return None
        user = UserType(name, "enum", base.dtype, {key: int(str(each)) for key, each in members.items()}, base)
        return user if dtype == base.dtype or (dtype.kind == "b" and _is_boolean(user)) else None
    if kind == "opaque":
        return UserType(name, "opaque", dtype) if dtype.kind == "V" and not dtype.names else None
    made = _read_fields(mark.get("fields")) if kind == "compound" else None
    if made is None:
        return None
    user = UserType(name, "compound", made)
    return user if elements_of(user) == dtype else None


def _read_fields(document: JSON, depth: int = 0) -> np.dtype[Any] | None:
    """Return the record that `_fields` described; None if there is none such."""
    if not is_list(document) or not document or depth > _DEEPEST:
        return None
    fields: list[Any] = []
    for each in document:
        if not is_list(each) or len(each) not in (2, 3) or not isinstance(each[0], str):
            return None
        shape = each[2] if len(each) == 3 else []
        if not is_list(shape) or not all(is_integer(length) and 0 < length < _LARGEST for length in shape):
            return None
        of_type: Any = _read_fields(each[1], depth + 1) if is_list(each[1]) else each[1]
        if of_type is None:
            return None
        fields.append((each[0], of_type, tuple(shape)))
    try:
        dtype = np.dtype(fields)
    except (TypeError, ValueError, SyntaxError):
        return None
    return None if dtype.hasobject else dtype.newbyteorder("=")
