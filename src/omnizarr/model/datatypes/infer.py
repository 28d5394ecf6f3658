"""Finding the data type for a NumPy dtype or a name that a user passed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from omnizarr.errors import UnknownDataTypeError
from omnizarr.model import JSON, Named
from omnizarr.model.datatypes.data_type import AnyDType, ByteOrder, DataType
from omnizarr.model.datatypes.optional import NAME as OPTIONAL
from omnizarr.model.datatypes.optional import VALUE, is_optional
from omnizarr.model.datatypes.registry import NAMES_OF_NUMPY, PLUGINS, SMALL, bind, is_known, ml_name_of, near_names
from omnizarr.model.datatypes.structs import named_from_json, named_to_json
from omnizarr.model.datatypes.times import time_configuration

NATIVE: ByteOrder = "<" if sys.byteorder == "little" else ">"

FIXED = {
    "S": ("null_terminated_bytes", 'give a width, as in "S10", or use "bytes" for any length'),
    "U": ("fixed_length_utf32", 'give a width, as in "U10", or use "string" for any length'),
    "V": ("raw_bytes", 'give a width, as in "V10"'),
}
TIMES = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}

WORDS: Mapping[Any, str] = {str: "string", "str": "string", bytes: "bytes"}
"""Names that NumPy would treat as a fixed width of zero."""

SHORT = re.compile(r"optional\[(.+)\]")
"""What users may write instead of the document of an optional type."""


def optional_of(inner: Named) -> Named:
    """Return the type of values that may be missing. The inner type has a configuration, which zarrs requires."""
    return Named(OPTIONAL, {"name": inner.name, "configuration": dict(inner.configuration)})


def from_numpy(dtype: AnyDType) -> tuple[Named, ByteOrder]:
    """Return the data type and byte order of a NumPy dtype.

    Records are packed: padding between fields (``align=True``) is dropped, because no Zarr type has it.

    Parameters
    ----------
    dtype : numpy.dtype
        Any dtype for which Zarr has a name, including records and sub-array fields.

    Returns
    -------
    named : Named
        Name and configuration in the terms of Zarr v3.
    byte_order : {"<", ">"}
        ``"<"`` if the dtype has none. If the fields of a record differ, ``"<"``, and other fields state their own.

    Raises
    ------
    UnknownDataTypeError
        If Zarr has no such type: objects (use ``"string"`` or ``"bytes"``), zero-width strings, long doubles.

    Examples
    --------
    >>> import numpy as np
    >>> from_numpy(np.dtype(">U3"))
    (Named(name='fixed_length_utf32', configuration={'length_bytes': 12}, must_understand=True), '>')
    """
    named, order = _named(dtype)
    return named, order or "<"


def parse(anything: Any) -> DataType:
    """Return the data type for what a user passed.

    Parameters
    ----------
    anything : object
        A v3 name (``"float32"``, ``"string"``, ``"r24"``), a document (``{"name": ..., "configuration": ...}``),
        a NumPy dtype or whatever ``numpy.dtype`` takes (``"<f4"``, ``np.uint8``, ``float``, ``[("x", "<i4")]``),
        ``str`` (strings of any length), ``bytes``, a `Named` or a `DataType`. ``"optional[float32]"`` is short for
        ``{"name": "optional", "configuration": {"name": "float32"}}``.

    Returns
    -------
    DataType

    Raises
    ------
    UnknownDataTypeError
        If the meaning is unknown.
    MetadataError
        If a document's configuration breaks its specification.

    Examples
    --------
    >>> parse("datetime64[ns]").named.name
    'numpy.datetime64'
    >>> parse(str).dtype
    StringDType()
    """
    if isinstance(anything, DataType):
        return anything
    if isinstance(anything, Named):
        return bind(anything, NATIVE)
    if isinstance(anything, Mapping) and "name" in anything:
        return bind(named_from_json(anything), NATIVE)
    if isinstance(anything, str | type) and anything in WORDS:
        return bind(Named(WORDS[anything]), NATIVE)
    if isinstance(anything, str) and (match := SHORT.fullmatch(anything)):
        return bind(optional_of(parse(match[1]).named), NATIVE)
    if isinstance(anything, str) and is_known(anything):
        return bind(Named(anything), NATIVE)
    if isinstance(anything, list):
        anything = _tuples(anything)
    if anything is None:
        raise _unknown(anything, "name a data type")
    try:
        dtype = np.dtype(anything)
    except (TypeError, ValueError, SyntaxError) as error:
        if isinstance(anything, str) and PLUGINS.find(anything) is not None:
            return bind(Named(anything), NATIVE)
        near = near_names(anything) if isinstance(anything, str) else None
        raise _unknown(anything, near or f"NumPy: {error}") from None
    return bind(*from_numpy(dtype))


def _named(dtype: AnyDType) -> tuple[Named, ByteOrder | None]:
    """Return the type, and its byte order if it has one."""
    if is_optional(dtype):
        inner, order = _named(dtype[VALUE])
        return optional_of(inner), order
    if dtype.names is not None:
        return _record(dtype)
    if dtype.subdtype is not None:
        raise _unknown(dtype, "put the extra dimensions into the shape of the array")
    if (name := ml_name_of(dtype)) is not None:
        if name not in SMALL:
            raise _unknown(dtype, "no Zarr type corresponds to it")
        return Named(name), None
    return _plain(dtype), _byte_order(dtype)


def _plain(dtype: AnyDType) -> Named:
    """Return the type of a dtype of NumPy's own that is not a record."""
    if dtype.kind == "T":
        return Named("string")
    if dtype.kind in TIMES:
        return Named(TIMES[dtype.kind], time_configuration(dtype))
    if dtype.kind in FIXED:
        name, remedy = FIXED[dtype.kind]
        if not dtype.itemsize:
            raise _unknown(dtype, remedy)
        return Named(name, {"length_bytes": dtype.itemsize})
    if dtype.kind == "O":
        raise _unknown(dtype, 'use "string" or "bytes"; in Zarr v2 an object codec (a filter) may say what they are')
    if (code := f"{dtype.kind}{dtype.itemsize}") not in NAMES_OF_NUMPY:
        raise _unknown(dtype, "no Zarr type corresponds to it")
    return Named(NAMES_OF_NUMPY[code])


def _record(dtype: AnyDType) -> tuple[Named, ByteOrder | None]:
    if not dtype.names or dtype.fields is None:
        raise _unknown(dtype, "a record has at least one field")
    fields: list[dict[str, JSON]] = []
    orders: list[ByteOrder | None] = []
    for name in dtype.names:
        base, shape = dtype.fields[name][0].base, dtype.fields[name][0].shape
        named, order = _named(base)
        field: dict[str, JSON] = {"name": name, "data_type": named_to_json(named)}
        if shape:
            field["shape"] = list(shape)
        fields.append(field)
        orders.append(order)
    return join_fields(fields, orders)


def join_fields(fields: list[dict[str, JSON]], orders: list[ByteOrder | None]) -> tuple[Named, ByteOrder | None]:
    """Return the record of these fields. A field states its byte order if the fields differ."""
    distinct = {order for order in orders if order is not None}
    common: ByteOrder | None = distinct.pop() if len(distinct) == 1 else "<" if distinct else None
    for field, order in zip(fields, orders, strict=True):
        if order is not None and order != common:
            field["byte_order"] = order
    return Named("struct", {"fields": fields}), common


def _byte_order(dtype: AnyDType) -> ByteOrder | None:
    match dtype.byteorder:
        case "<":
            return "<"
        case ">":
            return ">"
        case "=":
            return NATIVE
    return None


def _tuples(descr: Any) -> Any:
    """Return a descr that was stored as JSON in the form that NumPy needs: fields are tuples."""
    if not isinstance(descr, list) or not all(isinstance(field, list | tuple) for field in descr):
        return descr
    return [
        tuple(_tuples(part) if i == 1 else tuple(part) if isinstance(part, list) else part for i, part in enumerate(f))
        for f in descr
    ]


def _unknown(what: object, remedy: str) -> UnknownDataTypeError:
    return UnknownDataTypeError("not a data type", pointer="/data_type", found=repr(what), remedy=remedy)
