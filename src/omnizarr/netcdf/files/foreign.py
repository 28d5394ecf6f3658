"""Attributes of HDF5 that the netCDF model cannot express, as attributes with a form, and back.

Spec: HDF5 File Format, "The Datatype Message", "The Dataspace Message".
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import UnknownDataTypeError
from omnizarr.model import JSON
from omnizarr.netcdf import forms, types
from omnizarr.netcdf.files.libraries import h5py
from omnizarr.netcdf.header import Attribute, Form
from omnizarr.netcdf.layouts.attributes import unparse

NON_COORDINATE: Final = "_nc4_non_coord_"
"""Prefix of the name of a variable that has the name of a dimension without being its coordinate."""

_FAILURES: Final = (TypeError, ValueError, KeyError, UnknownDataTypeError, UnicodeDecodeError, RuntimeError)
"""Errors of NumPy, h5py and this library for types and values that cannot be converted."""


def read(owner: Any, name: str, stored: Any) -> Attribute | None:
    """Return an attribute of a type that netCDF does not have, or None if it has no form either."""
    try:
        found = owner.attrs[name]
        shape = None if isinstance(found, h5py.Empty) else stored.shape
        if shape is None:
            found = np.empty(0, found.dtype)
        return _read(owner, stored.get_type(), np.asarray(found), shape)
    except _FAILURES:
        return None


def _read(owner: Any, h5_type: Any, values: NDArray[Any], shape: tuple[int, ...] | None) -> Attribute | None:
    if isinstance(h5_type, h5py.h5t.TypeEnumID) and values.dtype.kind == "b":
        return formed(types.BYTE, values.ravel().astype("i1"), shape, "bool")
    if isinstance(h5_type, h5py.h5t.TypeEnumID):
        base = types.of_dtype(values.dtype)
        members = h5py.check_enum_dtype(h5_type.dtype) or {}
        labels: dict[str, JSON] = {name: int(each) for name, each in members.items()}
        return formed(base, values.ravel().astype(base.dtype), shape, {"enum": labels})
    if values.dtype == np.dtype("f2"):
        return formed(types.FLOAT, values.ravel().astype("f4"), shape, "float16")
    if values.dtype.kind == "c":
        part = types.of_dtype(np.dtype(f"f{values.dtype.itemsize // 2}"))
        native = np.ascontiguousarray(values.ravel(), values.dtype.newbyteorder("="))
        return formed(part, native.view(part.dtype), shape, values.dtype.newbyteorder("=").name)
    if isinstance(h5_type, h5py.h5t.TypeCompoundID):
        of_type: JSON = {"compound": forms.fields_of(values.dtype)}
        return in_json(forms.items_of(values.reshape(shape or values.shape)), shape, of_type)
    if isinstance(h5_type, h5py.h5t.TypeOpaqueID):
        of_type = {"opaque": h5_type.get_size(), "tag": h5_type.get_tag().decode("ascii")}
        return formed(types.CHAR, base64.b64encode(values.tobytes()).decode(), shape, of_type)
    if isinstance(h5_type, h5py.h5t.TypeVlenID) and isinstance(
        h5_type.get_super(), (h5py.h5t.TypeIntegerID, h5py.h5t.TypeFloatID)
    ):
        inner = types.of_dtype(h5_type.get_super().dtype).dtype
        of_type = {"vlen": inner.newbyteorder("<").str}
        return in_json(lists(values if shape == () else values.reshape(shape or (0,)), shape), shape, of_type)
    if isinstance(h5_type, h5py.h5t.TypeReferenceID) and h5_type.equal(h5py.h5t.STD_REF_OBJ):
        paths = np.empty(values.size, object)
        paths[:] = [_path(owner, each) for each in values.ravel()]
        return formed(types.STRING, paths, shape, "reference")
    return None


def lists(values: Any, shape: tuple[int, ...] | None) -> JSON:
    """Return sequences as lists, in lists for each dimension."""
    if shape == ():  # h5py gives the numbers themselves
        each = values[()] if values.dtype == object else values
        return list(each.tolist())
    return [lists(np.asarray(each), shape[1:] if shape else ()) for each in values]


def _path(owner: Any, reference: Any) -> str:
    """Return the path of what a reference refers to; "" if it refers to nothing. Raises ValueError if it has none."""
    if not reference:
        return ""
    name = owner.file[reference].name
    if not name:
        raise ValueError(reference)
    return str(name)


def formed(nc_type: types.NcType, value: Any, shape: tuple[int, ...] | None, of_type: JSON) -> Attribute | None:
    """Return an attribute in a form; None if it does not fit."""
    form: Form = {**({} if shape is None else {"shape": list(map(int, shape))}), "type": of_type}
    made = forms.formed(Attribute(nc_type, value), form)
    return made if made.form is not None else None


def in_json(items: JSON, shape: tuple[int, ...] | None, of_type: JSON) -> Attribute | None:
    """Return an attribute whose text is JSON, in a form; None if it does not fit."""
    return formed(types.CHAR, unparse([] if shape is None else items), shape, of_type)


def shaped(attribute: Attribute, shape: tuple[int, ...] | None, *, is_netcdf: bool) -> Attribute:
    """Return an attribute of a type of netCDF with its shape, if netCDF-C would write another one.

    It writes texts as scalars, numbers and strings as vectors, and nothing as a null dataspace. Programs that read
    netCDF take vectors of length 1 for scalars; in HDF5 files that no netCDF library has written, they are vectors.
    """
    if shape is None or (attribute.type is types.CHAR and not shape):
        return attribute
    usual = len(shape) == 1 and shape[0] and (is_netcdf or shape != (1,))
    return attribute if usual else replace(attribute, form={"shape": list(map(int, shape))})


# -- writing ------------------------------------------------------------------------------------------


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
    other = f"{above}{slash}{NON_COORDINATE}{name}"
    return group[other if other in group else path]
