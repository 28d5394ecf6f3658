"""Types of HDF5 as types of netCDF: atomic ones, and those that users define.

Spec: NetCDF-4 Format, "User-Defined Data Types".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omnizarr.netcdf import types
from omnizarr.netcdf.files import attributes
from omnizarr.netcdf.header import Attribute
from omnizarr.netcdf.types import AnyType, NcType, UserType
from omnizarr.readers.hdf5.datatypes import Datatype


def atomic(datatype: Datatype) -> NcType | None:
    """Return the atomic type of elements; None if netCDF has none.

    Half floats, bits and references become the types that have room for them; see `remark`.
    """
    if datatype.kind == "string":
        return types.CHAR if datatype.size == 1 else types.STRING
    if datatype.kind == "vlen":
        return types.STRING if datatype.is_text else None
    if is_half(datatype):
        return types.FLOAT
    if datatype.kind == "reference":
        return types.STRING if datatype.name == "object reference" else None
    if datatype.kind == "bitfield":
        dtype = datatype.dtype()
        return None if dtype is None else types.of_dtype(dtype)
    return attributes.number_type(datatype)


def is_half(datatype: Datatype) -> bool:
    """Return whether elements are of 16 bits of floating point."""
    return datatype.kind == "float" and datatype.code[1:] == "f2"


def remark(datatype: Datatype) -> str:
    """Return what readers of netCDF see of elements that it has no type for; "" if it has one."""
    if is_half(datatype):
        return "float16 in HDF5, which netCDF does not have; here it is float, with the same values"
    if datatype.kind == "bitfield":
        return "bits in HDF5, which netCDF does not have; here they are unsigned numbers"
    if datatype.kind == "reference":
        return "references in HDF5, which netCDF does not have; here they are the paths of what is referred to"
    return ""


def of(datatype: Datatype, name: str) -> UserType | None:
    """Return a type that users define, and that netCDF has; None for others."""
    if datatype.kind == "enum":
        base = None if datatype.base is None else attributes.number_type(datatype.base)
        return None if base is None else UserType(name, "enum", base.dtype, dict(datatype.labels), base)
    if datatype.kind == "opaque":
        return UserType(name, "opaque", np.dtype(f"V{datatype.size}"))
    if datatype.kind == "vlen" and not datatype.is_text and datatype.base is not None:
        return UserType(name, "vlen", np.dtype(object), base=_item(datatype.base))
    if datatype.kind == "compound" or datatype.is_complex:
        dtype = dtype_of(datatype)
        return None if dtype is None else UserType(name, "compound", dtype)
    return None


def _item(datatype: Datatype) -> NcType | None:
    if datatype.kind == "string":
        return types.CHAR
    if datatype.kind == "vlen" and datatype.is_text:
        return types.STRING
    return attributes.number_type(datatype)


def dtype_of(datatype: Datatype) -> np.dtype[Any] | None:
    """Return the NumPy type of elements, in the byte order of the machine and without gaps; None if there is none."""
    if datatype.is_complex:
        dtype = datatype.dtype()
        part = "f4" if dtype is None or dtype.itemsize == 8 else "f8"
        return np.dtype([("r", part), ("i", part)])
    if datatype.kind == "compound":
        parts = [(name, dtype_of(each)) for name, _, each in datatype.fields]
        if not parts or any(each is None for _, each in parts):
            return None
        return np.dtype(parts)
    if datatype.kind == "array" and datatype.base is not None:
        inner = dtype_of(datatype.base)
        return None if inner is None else np.dtype((inner, datatype.shape))
    if datatype.kind == "vlen":
        held: Any = str if datatype.is_text else None if datatype.base is None else dtype_of(datatype.base)
        return None if held is None else np.dtype(object, metadata={"vlen": held})
    dtype = datatype.dtype()
    if dtype is None:
        return None
    dtype = dtype.newbyteorder("=")
    labels = datatype.labels
    return np.dtype(dtype, metadata={"enum": labels}) if labels and not datatype.is_bool else dtype


def fill(nc_type: AnyType, attribute: Attribute | None) -> Any:
    """Return what replaces elements beyond the end of a dataset."""
    if isinstance(nc_type, NcType):
        is_one = attribute is not None and attribute.type is nc_type and len(attribute.value) == 1
        return attribute.value[0] if is_one and attribute is not None else nc_type.default_fill
    if nc_type.dtype == object:
        return np.empty(0, nc_type.base.dtype if nc_type.base else object)
    return np.zeros((), nc_type.dtype)
