"""Attributes of HDF5, as omnizarr's own reader finds them, as attributes of netCDF: exact types, bytes and shapes.

Spec: NetCDF-4 Format (how the netCDF-4 model is in HDF5).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError, UnknownDataTypeError
from omnizarr.model import JSON
from omnizarr.netcdf import forms, types
from omnizarr.netcdf.files import foreign
from omnizarr.netcdf.header import Attribute
from omnizarr.readers.hdf5 import elements
from omnizarr.readers.hdf5.attributes import Attribute as Stored
from omnizarr.readers.hdf5.datatypes import Datatype
from omnizarr.readers.hdf5.source import Source

_FAILURES: Final = (TypeError, ValueError, KeyError, UnknownDataTypeError, MetadataError)
"""Errors of types and values that cannot be converted."""


class Reader:
    """What reads the attributes of a file.

    Parameters
    ----------
    source : Source
    name_of : callable
        Returns the path of an object by its address; "" if it has none.
    """

    def __init__(self, source: Source, name_of: Callable[[int], str]) -> None:
        self._source = source
        self._name_of = name_of
        self.is_netcdf = True
        """Whether a library for netCDF has written the file; see `foreign.shaped`."""

    def read(self, stored: Stored) -> Attribute | None:
        """Return an attribute, or None if `Attribute` has no type for it, and no form."""
        found = self._of_netcdf(stored)
        if found is not None:
            return foreign.shaped(found, stored.dataspace.shape, is_netcdf=self.is_netcdf)
        try:
            return self._foreign(stored)
        except _FAILURES:
            return None

    def elements(self, stored: Stored) -> NDArray[Any]:
        """Return the elements of an attribute, in its shape."""
        found = elements.values(self._source, stored.datatype, stored.raw, self._name_of)
        shape = stored.dataspace.shape
        return found if shape is None else elements.shaped(found, shape)

    def addresses(self, stored: Stored) -> list[int | None]:
        """Return the addresses of the objects to which the first reference of each element leads; None: to none."""
        base = stored.datatype.base
        if base is None or base.kind != "reference":
            return []
        source = self._source
        found: list[int | None] = []
        raw = Datatype("vlen", stored.datatype.size, base=Datatype("opaque", base.size, f"V{base.size}"))
        for each in elements.values(source, raw, stored.raw, self._name_of):
            address = int.from_bytes(each[0].tobytes()[: source.offset_size], "little") if len(each) else 0
            found.append(address or None)
        return found

    def _of_netcdf(self, stored: Stored) -> Attribute | None:
        """Return an attribute of a type that netCDF has, without its shape; None if netCDF does not have the type."""
        datatype, count = stored.datatype, stored.dataspace.count
        if is_text(datatype):
            if not datatype.is_text and not stored.dataspace.shape:
                return Attribute(types.CHAR, decode(stored.raw[: datatype.size] if count else b""))
            texts = texts_of(stored.raw, datatype) if not datatype.is_text else self.elements(stored).ravel()
            return Attribute(types.STRING, texts)
        is_fill = datatype.kind == "enum" and stored.name == "_FillValue" and datatype.base is not None and count
        number = datatype.base if is_fill else datatype
        nc_type = None if number is None else number_type(number)
        if nc_type is None or number is None:
            return None
        values = np.frombuffer(stored.raw, number.dtype())[:count]
        return Attribute(nc_type, values.astype(nc_type.dtype))

    def _foreign(self, stored: Stored) -> Attribute | None:
        """Return an attribute of a type that netCDF does not have, in a form; None if it has none."""
        datatype, shape = stored.datatype, stored.dataspace.shape
        if datatype.kind == "enum":
            return self._enum(stored)
        if datatype.kind == "reference" and datatype.name == "object reference":
            paths = self.elements(stored).ravel()
            if any(not path and int.from_bytes(raw, "little") for path, raw in zip(paths, _each(stored), strict=True)):
                return None
            return foreign.formed(types.STRING, paths, shape, "reference")
        if datatype.kind == "vlen" and datatype.base is not None:
            base = number_type(datatype.base)
            if base is None:
                return None
            of_type: JSON = {"vlen": base.dtype.newbyteorder("<").str}
            return foreign.in_json(_lists(self.elements(stored), shape), shape, of_type)
        dtype = datatype.dtype()
        if dtype is None:
            return None
        values = np.frombuffer(stored.raw, dtype)[: stored.dataspace.count]
        if datatype.kind == "opaque":
            of_type = {"opaque": datatype.size, "tag": datatype.name}
            return foreign.formed(types.CHAR, base64.b64encode(values.tobytes()).decode(), shape, of_type)
        if dtype == np.dtype("f2") or dtype == np.dtype(">f2"):
            return foreign.formed(types.FLOAT, values.astype("f4"), shape, "float16")
        if datatype.is_complex:
            part = types.of_dtype(np.dtype(f"f{dtype.itemsize // 2}"))
            native = np.ascontiguousarray(values, dtype.newbyteorder("="))
            return foreign.formed(part, native.view(part.dtype), shape, native.dtype.name)
        if datatype.kind == "compound":
            items = forms.items_of(values.reshape(shape or values.shape) if shape != () else values[0])
            return foreign.in_json(items, shape, {"compound": forms.fields_of(dtype)})
        return None

    @staticmethod
    def _enum(stored: Stored) -> Attribute | None:
        datatype, shape = stored.datatype, stored.dataspace.shape
        base = None if datatype.base is None else number_type(datatype.base)
        if datatype.base is None or base is None:
            return None
        values = np.frombuffer(stored.raw, datatype.base.dtype())[: stored.dataspace.count].astype(base.dtype)
        if datatype.is_bool:
            return foreign.formed(types.BYTE, values.astype("i1"), shape, "bool")
        labels: dict[str, JSON] = dict(datatype.labels)
        return foreign.formed(base, values, shape, {"enum": labels})


def _each(stored: Stored) -> list[bytes]:
    size = stored.datatype.size
    return [stored.raw[at : at + size] for at in range(0, len(stored.raw), size)]


def _lists(values: Any, shape: tuple[int, ...] | None) -> JSON:
    """Return sequences as lists, in lists for each dimension."""
    if shape is None:
        return []
    if shape == ():
        found: list[JSON] = (values[()] if values.ndim == 0 else values).tolist()
        return found
    return [_lists(each if isinstance(each, np.ndarray) else np.asarray(each), shape[1:]) for each in values]


def decode(raw: bytes) -> str:
    """Return the text of bytes, of which all that are not UTF-8 are kept."""
    return raw.decode("utf-8", "surrogateescape")


def is_text(datatype: Datatype) -> bool:
    """Return whether elements are texts, of fixed or of variable length."""
    return datatype.kind == "string" or (datatype.kind == "vlen" and datatype.is_text)


def texts_of(raw: bytes, datatype: Datatype) -> NDArray[Any]:
    """Return texts of fixed length: each up to its first NUL."""
    size = datatype.size
    starts = range(0, len(raw), size) if size else ()
    made = np.empty(len(starts), object)
    made[:] = [decode(raw[at : at + size].split(b"\0")[0]) for at in starts]
    return made


def number_type(datatype: Datatype) -> types.NcType | None:
    """Return the type of netCDF for numbers; None if it has none."""
    dtype = datatype.dtype() if datatype.kind in {"integer", "float"} else None
    if dtype is None:
        return None
    try:
        return types.of_dtype(dtype)
    except UnknownDataTypeError:
        return None
