"""Read from HDF5 what netCDF4-python does not report about a netCDF-4 file: exact attributes, filters, types.

netCDF4-python returns both char and string attributes as str, without NULs and with invalid UTF-8 replaced. It knows
few filters by name, and skips variables of opaque types. h5py has all this information.

Spec: NetCDF-4 Format (how the netCDF-4 model is in HDF5).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError, UnknownDataTypeError
from omnizarr.netcdf import forms, types
from omnizarr.netcdf.files import foreign
from omnizarr.netcdf.files.libraries import h5py
from omnizarr.netcdf.files.netcdf4 import PROPERTIES
from omnizarr.netcdf.header import Attribute
from omnizarr.netcdf.types import UserType

_OF_SCALES: Final = ("CLASS", "NAME")
RESERVED: Final = frozenset({*_OF_SCALES, "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Coordinates", "_Netcdf4Dimid"})
"""Attributes of datasets with which HDF5 and netCDF-C mark dimensions."""
_HIDDEN: Final = RESERVED - {*_OF_SCALES} | {PROPERTIES, "_nc3_strict"}

_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_SZIP, _SZIP_CODINGS = 4, 4 | 32
_SHOWN_BY_NAME = (_DEFLATE, _SHUFFLE, _FLETCHER32)


def member_names(group: Any) -> list[str]:
    """Return the names of what is in an HDF5 group, in the order of definition if the file keeps it."""
    names = list(group)
    if group.id.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED:
        names.sort(key=lambda name: group.id.links.get_info(name.encode()).corder)
    return names


def members(group: Any) -> dict[str, Any]:
    """Return what is in an HDF5 group, by the names of netCDF, in the order of definition if the file keeps it."""
    found: dict[str, Any] = {}
    for name in member_names(group):
        plain = name.removeprefix(foreign.NON_COORDINATE)
        each = group.get(name)
        if each is not None and (plain != name or plain not in found):  # None: a link that leads nowhere
            found[plain] = each
    return found


# Attributes


def decode(raw: bytes) -> str:
    """Return the text of bytes, of which all that are not UTF-8 are kept."""
    return raw.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes of a text: the inverse of `decode`."""
    return text.encode("utf-8", "surrogateescape")


def read_attribute(owner: Any, name: str, *, is_netcdf: bool = True) -> Attribute | None:
    """Return an attribute of an HDF5 object, or None if `Attribute` has no type for it, and no form.

    `is_netcdf`: a library for netCDF has written the file; see `foreign.shaped`.
    """
    stored = h5py.h5a.open(owner.id, name.encode())
    has_shape = stored.get_space().get_simple_extent_type() != h5py.h5s.NULL
    found = _read_attribute(stored)
    if found is None:
        return foreign.read(owner, name, stored)
    return foreign.shaped(found, stored.shape if has_shape else None, is_netcdf=is_netcdf)


def _read_attribute(stored: Any) -> Attribute | None:
    """Return an attribute of a type that netCDF has, without its shape; None if netCDF does not have the type."""
    h5_type, space = stored.get_type(), stored.get_space()
    count = space.get_simple_extent_npoints()
    if isinstance(h5_type, h5py.h5t.TypeStringID):
        if h5_type.is_variable_str() or space.get_simple_extent_ndims():
            if not count:
                attribute_strings = []
            else:
                if h5_type.is_variable_str():
                    values = np.empty(stored.shape, h5py.string_dtype())
                    stored.read(values)
                else:
                    values = np.zeros(stored.shape, f"S{h5_type.get_size()}")
                    stored.read(values, h5_type)
                attribute_strings = [bytes(each).split(b"\0")[0] for each in values.ravel()]
            return Attribute(types.STRING, strings(attribute_strings))
        text = np.zeros((), f"S{h5_type.get_size()}")
        if count:
            stored.read(text, h5_type)  # its own type: any other conversion would end at a NUL
        return Attribute(types.CHAR, decode(text.tobytes() if count else b""))
    if isinstance(h5_type, h5py.h5t.TypeEnumID) and stored.name == b"_FillValue":
        base = _atomic(h5_type.get_super())
        if base is None or not count:
            return None
        values = np.zeros(stored.shape, h5_type.get_super().dtype)
        stored.read(values, h5_type)
        return Attribute(base, values.astype(base.dtype).ravel())
    if not isinstance(h5_type, h5py.h5t.TypeIntegerID | h5py.h5t.TypeFloatID):
        return None
    try:
        nc_type = types.of_dtype(h5_type.dtype)
    except UnknownDataTypeError:
        return None
    values = np.zeros(stored.shape if count else 0, nc_type.dtype)
    if count:
        stored.read(values)
    return Attribute(nc_type, values.ravel())


def strings(items: Iterable[bytes]) -> NDArray[Any]:
    """Return texts as a vector of objects."""
    texts = [decode(each) for each in items]
    made = np.empty(len(texts), object)
    made[:] = texts
    return made


def copy_attribute(source: Any, target: Any, name: str) -> None:
    """Copy an attribute of one HDF5 object to another, unless `read_attribute` finds no type for it."""
    attribute = read_attribute(source, name)
    if attribute is not None:
        write_attribute(target, name, attribute)


def is_hidden(owner: Any, name: str) -> bool:
    """Return whether an attribute is part of how netCDF and dimension scales are in HDF5, and no attribute itself."""
    return name in _HIDDEN or (name in _OF_SCALES and owner.attrs.get("CLASS") == b"DIMENSION_SCALE")


def is_of_netcdf(root: Any) -> bool:
    """Return whether a library for netCDF has written a file, by its name in there, or by dimension scales."""
    if PROPERTIES in root.attrs:
        return True
    return root.visititems(lambda _, each: True if isinstance(each, h5py.Dataset) and each.is_scale else None) is True


def check_properties(root: Any) -> None:
    """Raise MetadataError if the provenance of a file has a form in which netCDF-C writes beyond its memory."""
    if PROPERTIES not in root.attrs:
        return
    stored = h5py.h5a.open(root.id, PROPERTIES.encode())
    if stored.shape != () or not isinstance(stored.get_type(), h5py.h5t.TypeStringID):
        raise MetadataError(
            f"{PROPERTIES} is not one text, and netCDF-C would write beyond its memory",
            found=f"{stored.dtype} of shape {stored.shape}",
            remedy="delete the attribute with h5py",
        )


def write_attribute(owner: Any, name: str, attribute: Attribute) -> None:
    """Give an HDF5 object an attribute in the form in which netCDF-C has it; an old one of that name is replaced."""
    key = name.encode()
    if h5py.h5a.exists(owner.id, key):
        h5py.h5a.delete(owner.id, key)
    shape: Any = (attribute.form or {}).get("shape")
    if forms.kind(attribute):
        values, h5_type = foreign.values_of(owner, attribute)
        _write_values(owner, key, values, h5_type, shape, of_type=None if values.dtype.hasobject else h5_type)
        return
    if isinstance(attribute.value, str):
        raw = encode(attribute.value)
        h5_type = h5py.h5t.C_S1.copy()
        h5_type.set_size(max(len(raw), 1))
        h5_type.set_strpad(h5py.h5t.STR_NULLTERM)
        values = np.array(raw, f"S{max(len(raw), 1)}")
        extent: Sequence[int] | None = [] if raw else None
    else:
        if attribute.type is types.STRING:
            values = np.array([encode(each) for each in attribute.value], h5py.string_dtype())
        else:
            values = np.ascontiguousarray(attribute.value)
        h5_type = h5py.h5t.py_create(values.dtype, logical=True)
        extent = shape if shape is not None or not values.size else [values.size]
    # its own type: no NUL is put at the end
    _write_values(owner, key, values, h5_type, extent, of_type=h5_type if attribute.type is types.CHAR else None)


def _write_values(
    owner: Any, key: bytes, values: NDArray[Any], h5_type: Any, extent: Sequence[int] | None, *, of_type: Any
) -> None:
    """Write an attribute in a shape; without one, its dataspace is null."""
    space = h5py.h5s.create(h5py.h5s.NULL if extent is None else h5py.h5s.SCALAR)
    if extent:
        space = h5py.h5s.create_simple(tuple(extent))
    stored = h5py.h5a.create(owner.id, key, h5_type, space)
    if extent is not None and values.size:
        stored.write(values.reshape(extent), of_type)


# How a variable is stored


def storage(dataset: Any) -> dict[str, Attribute]:
    """Return the special attributes of a dataset but ``_Endianness``, which netCDF-C says."""
    created = dataset.id.get_create_plist()
    layout = {
        h5py.h5d.COMPACT: "compact",
        h5py.h5d.CONTIGUOUS: "contiguous",
        h5py.h5d.CHUNKED: "chunked",
        h5py.h5d.VIRTUAL: "virtual",
    }.get(created.get_layout(), "unknown")
    special: dict[str, Any] = {"_Storage": layout}
    if layout == "chunked":
        chunks = created.get_chunk()
        special["_ChunkSizes"] = np.array(chunks, "i4" if max(chunks) < 2**31 else "i8")
    filters = [created.get_filter(number) for number in range(created.get_nfilters())]
    by_id = {each[0]: each[2] for each in filters}
    if _FLETCHER32 in by_id:
        special["_Fletcher32"] = "true"
    if _SHUFFLE in by_id:
        special["_Shuffle"] = "true"
    if _DEFLATE in by_id:
        special["_DeflateLevel"] = np.array(by_id[_DEFLATE], "i4")
    others = [",".join(map(str, _parameters(*each[:3]))) for each in filters if each[0] not in _SHOWN_BY_NAME]
    if others:
        special["_Filter"] = "|".join(others)
    return {name: Attribute.of(value) for name, value in special.items()}


def _parameters(number: int, _flags: int, parameters: tuple[int, ...]) -> tuple[int, ...]:
    """Return a filter's number and parameters, without those that HDF5 adds to szip's two on its own."""
    if number == _SZIP and len(parameters) == 4:
        return number, parameters[0] & _SZIP_CODINGS, parameters[1]
    return number, *parameters


# Types


def named_types(group: Any) -> dict[str, tuple[Any, UserType]]:
    """Return the types that an HDF5 group defines, as HDF5 has them and as netCDF does."""
    found = {
        name: (each.id, _user_type(each.id, name))
        for name, each in members(group).items()
        if isinstance(each, h5py.Datatype)
    }
    return {name: (h5_type, each) for name, (h5_type, each) in found.items() if each is not None}


def user_type_of(dataset: Any, named: Iterable[tuple[Any, UserType]], name: str | None = None) -> UserType | None:
    """Return the type of a dataset if it is user-defined, and one that netCDF has.

    h5py does not say which of the named types it is, so that is an equal one: the one of that `name`, or the first.
    """
    h5_type = dataset.id.get_type()
    equal = [each for other, each in named if h5_type.equal(other)]
    chosen = [each for each in equal if each.name == name] or equal
    return chosen[0] if chosen else _user_type(h5_type, name or plain_name(dataset) + "_t")


def has_hidden_dimension(dimensions: Iterable[str], path: str, sizes: Container[str]) -> bool:
    """Return whether a name means several dimensions, in a group and the groups above.

    netCDF4-python looks dimensions up by name, and takes the nearest for each.
    """
    above = [path[:end] for end in range(len(path) + 1) if end == len(path) or path[end] == "/"]
    names = [each.rpartition("/")[2] for each in dimensions]
    return any(sum(f"{each}/{name}" in sizes for each in above) > 1 for name in names)


def is_half(dataset: Any) -> bool:
    """Return whether values are of 16 bits of floating point, which netCDF has as float, or not at all."""
    return bool(dataset.dtype.kind == "f" and dataset.dtype.itemsize == 2)


def plain_name(dataset: Any) -> str:
    """Return the name of a dataset in its group, as in netCDF."""
    return str(dataset.name).rpartition("/")[2].removeprefix(foreign.NON_COORDINATE)


def _user_type(h5_type: Any, name: str) -> UserType | None:
    if isinstance(h5_type, h5py.h5t.TypeEnumID):
        base = _atomic(h5_type.get_super())
        if base is None:
            return None
        labels = range(h5_type.get_nmembers())
        values = {decode(h5_type.get_member_name(each)): int(h5_type.get_member_value(each)) for each in labels}
        return UserType(name, "enum", base.dtype, values, base)
    if isinstance(h5_type, h5py.h5t.TypeOpaqueID):
        return UserType(name, "opaque", np.dtype(f"V{h5_type.get_size()}"))
    if isinstance(h5_type, h5py.h5t.TypeVlenID):
        return UserType(name, "vlen", np.dtype(object), base=_atomic(h5_type.get_super()))
    if isinstance(h5_type, h5py.h5t.TypeCompoundID):
        return UserType(name, "compound", _compound(h5_type.dtype))
    return None


def _atomic(h5_type: Any) -> types.NcType | None:
    if isinstance(h5_type, h5py.h5t.TypeStringID):
        return types.STRING if h5_type.is_variable_str() else types.CHAR
    if not isinstance(h5_type, h5py.h5t.TypeIntegerID | h5py.h5t.TypeFloatID):
        return None
    try:
        return types.of_dtype(h5_type.dtype)
    except UnknownDataTypeError:
        return None


def _compound(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "c":  # h5py sees a pair of r and i as a complex number
        part = f"f{dtype.itemsize // 2}"
        return np.dtype([("r", part), ("i", part)])
    return dtype if dtype.hasobject else _packed(dtype)


def _packed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type in the byte order of the machine, without gaps between fields, which hold nothing."""
    if dtype.names:
        return np.dtype([(name, _packed(dtype[name])) for name in dtype.names])
    if dtype.subdtype:
        return np.dtype((_packed(dtype.base), dtype.shape))
    return (
        np.dtype(dtype.newbyteorder("="), metadata=dict(dtype.metadata)) if dtype.metadata else dtype.newbyteorder("=")
    )
