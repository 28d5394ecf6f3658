"""What h5py writes into netCDF-4 files: exact attributes, and values of types that netCDF4-python does not know.

netCDF4-python writes an empty text as one NUL, and cuts NULs off the end of text.

Spec: NetCDF-4 Format (how the netCDF-4 model is in HDF5).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.netcdf import forms, types
from omnizarr.netcdf.files.libraries import h5py
from omnizarr.netcdf.header import Attribute, Selection
from omnizarr.readers.hdf5 import naming

RESERVED: Final = frozenset({
    "CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Coordinates", "_Netcdf4Dimid",
})  # fmt: skip
"""Attributes of datasets with which HDF5 and netCDF-C mark dimensions."""


def encode(text: str) -> bytes:
    """Return the bytes of a text; those that are no characters are as they were."""
    return text.encode("utf-8", "surrogateescape")


def write_attribute(owner: Any, name: str, attribute: Attribute) -> None:
    """Give an HDF5 object an attribute in the form in which netCDF-C has it; an old one of that name is replaced."""
    key = name.encode()
    if h5py.h5a.exists(owner.id, key):
        h5py.h5a.delete(owner.id, key)
    shape: Any = (attribute.form or {}).get("shape")
    if forms.kind(attribute):
        values, h5_type = values_of(owner, attribute)
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


def values_of(owner: Any, attribute: Attribute) -> tuple[NDArray[Any], Any]:
    """Return the value of an attribute as h5py writes it, and its type in HDF5."""
    form: Any = attribute.form or {}
    of_type, values = forms.kind(attribute), forms.array_of(attribute)
    if of_type == "opaque":
        h5_type = h5py.h5t.create(h5py.h5t.OPAQUE, values.dtype.itemsize)
        h5_type.set_tag(str(form["type"].get("tag", "")).encode("ascii"))
        return values, h5_type
    if of_type == "enum":
        dtype = h5py.enum_dtype(form["type"]["enum"], values.dtype)
        return values.astype(dtype), h5py.h5t.py_create(dtype, logical=True)
    if of_type in {"vlen", "reference"}:
        dtype = h5py.vlen_dtype(np.dtype(form["type"]["vlen"])) if of_type == "vlen" else h5py.ref_dtype
        made = np.empty(values.size, dtype)
        for index, each in enumerate(values.ravel()):
            made[index] = each if of_type == "vlen" else (member(owner.file, each).ref if each else h5py.Reference())
        return made.reshape(values.shape), h5py.h5t.py_create(dtype, logical=True)
    return values, h5py.h5t.py_create(values.dtype, logical=True)


def member(group: Any, path: str) -> Any:
    """Return what a path leads to, also a variable that is called as a dimension and is not a coordinate of it."""
    above, slash, name = path.rpartition("/")
    other = f"{above}{slash}{naming.NON_COORDINATE}{name}"
    return group[other if other in group else path]


def write_values(dataset: Any, selection: Selection, values: NDArray[Any]) -> None:
    """Write values, and make the dataset longer where that needs it."""
    shape = tuple(max(each.stop, size) for each, size in zip(selection, dataset.shape, strict=True))
    if shape != dataset.shape:
        dataset.resize(shape)
    if dataset.dtype.kind == "c" and values.dtype.names:  # h5py's reading of a pair of r and i
        values = np.ascontiguousarray(values).view(dataset.dtype.newbyteorder("=")).reshape(values.shape)
    values = np.ascontiguousarray(values).astype(dataset.dtype, copy=False)
    # as it is stored, so that characters lose nothing, unless by reference
    of_type = None if dataset.dtype.hasobject else dataset.id.get_type()
    space = dataset.id.get_space()
    if selection:
        space.select_hyperslab(tuple(each.start for each in selection), values.shape)
    dataset.id.write(h5py.h5s.create_simple(values.shape) if selection else space, space, values, of_type)


def has_hidden_dimension(dimensions: Iterable[str], path: str, sizes: Container[str]) -> bool:
    """Return whether a name means several dimensions, in a group and the groups above.

    netCDF4-python looks dimensions up by name, and takes the nearest for each.
    """
    above = [path[:end] for end in range(len(path) + 1) if end == len(path) or path[end] == "/"]
    names = [each.rpartition("/")[2] for each in dimensions]
    return any(sum(f"{each}/{name}" in sizes for each in above) > 1 for name in names)
