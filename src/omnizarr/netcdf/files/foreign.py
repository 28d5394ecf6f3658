"""Attributes of HDF5 that the netCDF model cannot express, as attributes with a form; `hdf5` writes them.

Spec: HDF5 File Format, "The Datatype Message", "The Dataspace Message".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omnizarr.model import JSON
from omnizarr.netcdf import forms, types
from omnizarr.netcdf.header import Attribute, Form
from omnizarr.netcdf.layouts.attributes import unparse


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
