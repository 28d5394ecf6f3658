"""Converting elements between an array and a netCDF variable.

Spec: NCZarr, Appendix D ("Support for string types"), Appendix E, "Supported Types".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ValueTypeError
from omnizarr.model.datatypes.optional import VALID, VALUE, is_optional
from omnizarr.netcdf import types
from omnizarr.netcdf.types import AnyType, UserType
from omnizarr.support.warned import warn

AnyArray: TypeAlias = NDArray[Any]
Conversion: TypeAlias = Callable[[AnyArray], AnyArray]


def decoder(dtype: np.dtype[Any], nc_type: AnyType, fill: Any = None, *, warns: bool = True) -> Conversion | None:
    """Return a function that converts an array's values to netCDF's, of the type's dtype; None if they are the same.

    Missing elements of a dtype that has them become `fill`. If there are others of that value, there is a warning,
    unless `warns` is False.

    >>> text = decoder(np.dtype("S4"), types.STRING)
    >>> text(np.array([b"ab", b""], "S4"))
    array(['ab', ''], dtype=object)
    """
    if is_optional(dtype):
        return _filler(decoder(dtype[VALUE], nc_type), nc_type, fill, warns=warns)
    if isinstance(nc_type, UserType):
        if dtype == nc_type.dtype:
            return None
        if dtype.kind == "c" or nc_type.kind == "compound":
            return lambda values: (
                np.ascontiguousarray(values, dtype.newbyteorder("=")).view(nc_type.dtype).reshape(values.shape)
            )
        return lambda values: values.astype(nc_type.dtype)
    if nc_type is types.STRING:
        return None if dtype == types.STRING.dtype else _texts
    if nc_type is types.CHAR:
        return None if dtype == types.CHAR.dtype else _chars
    if dtype.kind in "mM":
        return lambda values: values.astype(dtype.newbyteorder("=")).view("i8").astype(nc_type.dtype)
    return None if dtype == nc_type.dtype else lambda values: values.astype(nc_type.dtype)


def encoder(dtype: np.dtype[Any], nc_type: AnyType, fill: Any = None, *, truncate: bool = False) -> Conversion | None:
    """Return a function that converts netCDF's values to an array's; None if they are the same.

    `fill` means missing elements in an array of a dtype that has them.

    Raises
    ------
    ValueTypeError
        Raised by the function: for text that is longer than the elements of the array, unless `truncate` is True.
    """
    if is_optional(dtype):
        return _divider(encoder(dtype[VALUE], nc_type), dtype, fill)
    if isinstance(nc_type, UserType):
        return lambda values: _from_user(values, dtype)
    if nc_type is types.STRING:
        return _text_encoder(dtype, truncate=truncate)
    if nc_type is types.CHAR:
        return None if dtype == types.CHAR.dtype else lambda values: _from_chars(values, dtype)
    if dtype.kind in "mM":
        return lambda values: values.astype("i8").view(dtype.newbyteorder("=")).astype(dtype)
    return None if dtype == nc_type.dtype else lambda values: values.astype(dtype)


def equals(values: Any, value: Any) -> Any:
    """Return which of some elements are a value; NaN is NaN.

    >>> equals(np.array([1, np.nan]), np.float64("nan"))
    array([False,  True])
    """
    if isinstance(value, float | np.floating) and np.isnan(value):
        return np.isnan(values) if not isinstance(values, str) else False
    return values == value


def _filler(inner: Conversion | None, nc_type: AnyType, fill: Any, *, warns: bool) -> Conversion:
    def decode(found: AnyArray) -> AnyArray:
        if is_optional(found.dtype):
            given, missing = found[VALUE], ~found[VALID]
        else:  # a masked array
            given, missing = np.ma.getdata(found), np.ma.getmaskarray(found)
        values = np.array(given if inner is None else inner(given), nc_type.dtype)
        if warns and np.any(equals(values, fill) & ~missing):
            warn(
                f"elements of the value {fill!r}, which is the _FillValue, look as if they were missing: "
                "omnizarr.open_array tells them apart"
            )
        values[missing] = fill
        return values

    return decode


def _divider(inner: Conversion | None, dtype: np.dtype[Any], fill: Any) -> Conversion:
    def encode(values: AnyArray) -> AnyArray:
        records = np.zeros(values.shape, dtype)
        there = ~np.isnan(values) if fill != fill else np.asarray(values != fill)  # noqa: PLR0124 - NaN
        records[VALID] = there
        records[VALUE][there] = (values if inner is None else inner(values))[there]
        if dtype[VALUE].kind == "O":
            records[VALUE][~there] = ""
        return records

    return encode


def _from_user(values: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return values of a user-defined type as elements of an array, which have the same bytes but for their order."""
    if values.dtype.names is None:
        if dtype.kind == "b" and values.dtype.kind in "iu" and not np.isin(values, (0, 1)).all():
            raise ValueTypeError(
                "an enumeration of booleans holds another value",
                found=values[~np.isin(values, (0, 1))].ravel()[:4].tolist(),
                expected="0 or 1",
            )
        return values.astype(dtype)
    same = np.ascontiguousarray(values).view(dtype.newbyteorder("=")).reshape(values.shape)
    return same.astype(dtype, copy=False)


def _texts(values: AnyArray) -> AnyArray:
    """Return text of any form as objects of str."""
    if values.dtype.kind == "V":
        values = values.view(f"S{values.dtype.itemsize}")
    out = np.empty(values.shape, object)
    if values.dtype.kind == "S":
        out.ravel()[:] = [each.decode("utf-8", "surrogateescape") for each in values.ravel().tolist()]
    else:
        out.ravel()[:] = [each if type(each) is str else _text(each) for each in values.ravel().tolist()]
    return out


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)


def _chars(values: AnyArray) -> AnyArray:
    if values.dtype.kind == "U":
        return np.char.encode(values, "latin-1").astype("S1")
    return np.ascontiguousarray(values).view("S1").reshape(values.shape)


def _from_chars(values: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    if dtype.kind == "U":
        return np.char.decode(values, "latin-1").astype(dtype)
    return np.ascontiguousarray(values, "S1").view(dtype).reshape(values.shape)


def _text_encoder(dtype: np.dtype[Any], *, truncate: bool) -> Conversion | None:
    if dtype.kind in "SV":
        width = dtype.itemsize

        def encode(values: AnyArray) -> AnyArray:
            data = [
                (each if isinstance(each, bytes) else _text(each).encode("utf-8", "surrogateescape"))
                for each in values.ravel().tolist()
            ]
            if not truncate:
                _refuse_long(data, width)
            return np.array(data, f"S{width}").reshape(values.shape).view(dtype)

        return encode
    if dtype.kind == "U":
        width = dtype.itemsize // 4

        def check(values: AnyArray) -> AnyArray:
            data = [_text(each) for each in values.ravel().tolist()]
            if not truncate:
                _refuse_long(data, width)
            return np.array(data, dtype).reshape(values.shape)

        return check
    return None


def _refuse_long(items: list[Any], width: int) -> None:
    """Raise ValueTypeError for the first item that does not fit. netCDF-C would cut it silently."""
    for item in items:
        if len(item) > width:
            unit = "bytes" if isinstance(item, bytes) else "characters"
            raise ValueTypeError(
                "a string is longer than the variable stores",
                found=f"{len(item)} {unit}: {item[:40]!r}{'...' if len(item) > 40 else ''}",
                expected=f"at most {width}",
                remedy="create the variable with maxstrlen=, or allow it to be cut with set_auto_truncate(True)",
            )
