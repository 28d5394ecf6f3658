"""Fill values above Zarr: the attribute ``_FillValue`` in the form of xarray in v3, and the defaults of netCDF.

Spec: xarray, "Zarr Encoding Specification"; ``FillValueCoder`` of ``xarray.backends.zarr``.

In v2 the mask of a variable is `fill_value` of its array. In v3 it is the attribute ``_FillValue``, whose
form depends on the data type, as JSON has no numbers for NaN and infinity:

=================  =====================================================================
data type          form
=================  =====================================================================
float              base64 of the value as a little-endian double, whatever the size
complex            a list of two such texts: real and imaginary part
integer            a number
bool               ``true`` or ``false``
bytes              base64
text               the text
=================  =====================================================================

xarray writes the forms of bytes and text, and cannot read them: it opens no v3 hierarchy that has one.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from omnizarr.model import JSON

NETCDF_DEFAULTS: Final[Mapping[str, Any]] = {
    "i1": np.int8(-127),
    "i2": np.int16(-32767),
    "i4": np.int32(-2147483647),
    "i8": np.int64(-9223372036854775806),
    "u1": np.uint8(255),
    "u2": np.uint16(65535),
    "u4": np.uint32(4294967295),
    "u8": np.uint64(18446744073709551614),
    "f4": np.float32(9.9692099683868690e36),
    "f8": np.float64(9.9692099683868690e36),
}
"""netCDF's values of unwritten elements, by kind and size of the data type; from netcdf.h."""

_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DOUBLE: Final = struct.Struct("<d")


def encode(value: Any) -> JSON:
    """Return the form in which xarray writes `value`, a NumPy scalar (or 0-d array), as ``_FillValue`` in v3.

    Raises
    ------
    TypeError
        If xarray has no form for values of this type.

    Examples
    --------
    >>> encode(np.float32(-9))
    'AAAAAAAAIsA='
    >>> encode(np.int16(-9))
    -9
    """
    scalar = np.asarray(value)
    kind = scalar.dtype.kind
    item = scalar[()]
    if kind == "f":
        return _double(float(item))
    if kind == "c":
        return [_double(float(item.real)), _double(float(item.imag))]
    if kind in "iu":
        return int(item)
    if kind == "b":
        return bool(item)
    if kind == "S":
        return base64.b64encode(bytes(item)).decode("ascii")
    if kind in "UT" or isinstance(item, str):
        return str(item)
    raise TypeError(
        f"_FillValue of {scalar.dtype}: xarray has no form for it; expected a bool, a number, bytes or text"
    )


def decode(json: JSON, dtype: np.dtype[Any] | np.dtypes.StringDType) -> Any:
    """Return the scalar of `dtype` for the attribute ``_FillValue`` of a v3 array; None if it is not valid.

    Forms of other programs are accepted as well: numbers for floats, the words "NaN", "Infinity" and "-Infinity",
    bytes as plain text, and lists of one value.

    Examples
    --------
    >>> decode("AAAAAAAAIsA=", np.dtype("float32"))
    np.float32(-9.0)
    >>> decode(-9, np.dtype("float32"))
    np.float32(-9.0)
    >>> decode(300, np.dtype("int8")) is None
    True
    """
    kind = dtype.kind
    if isinstance(json, Sequence) and not isinstance(json, str) and len(json) == 1:
        return decode(json[0], dtype)
    if kind in "fc":
        number = _float_of(json) if kind == "f" else _complex_of(json)
        return None if number is None else _as_float(number, dtype)
    if kind in "iu":
        if isinstance(json, float):
            integer = int(json) if json.is_integer() else None
        else:
            integer = int(json) if isinstance(json, int) else None
        limits = np.iinfo(dtype)
        return dtype.type(integer) if integer is not None and limits.min <= integer <= limits.max else None
    if kind == "b":
        return np.bool_(json) if isinstance(json, bool) or json in (0, 1) else None
    if not isinstance(json, str):
        return None
    if kind == "S":
        # None if neither fits into `size` bytes.
        for data in (_from_base64(json), json.encode()):
            if data is not None and len(data) <= dtype.itemsize:
                return np.bytes_(data)
        return None
    if kind == "U":
        return np.str_(json) if len(json) <= dtype.itemsize // 4 else None
    return json if kind in "TO" else None


def in_form(attributes: Mapping[str, JSON], dtype: np.dtype[Any] | np.dtypes.StringDType) -> Mapping[str, JSON]:
    """Return the attributes of an array with ``_FillValue`` in the form that xarray reads in v3, if it is a number.

    Others write numbers as they are, and two arrays that are joined can get a data type that neither had.

    >>> in_form({"_FillValue": -9}, np.dtype("float32"))
    {'_FillValue': 'AAAAAAAAIsA='}
    """
    stated = attributes.get("_FillValue")
    if stated is None or dtype.kind not in "iufc" or (value := decode(stated, dtype)) is None:
        return attributes
    return {**attributes, "_FillValue": encode(value)}


def bytes_of(json: JSON) -> bytes | None:
    """Return the bytes of any length for the attribute ``_FillValue``: base64, or plain text; None if it is no text.

    >>> bytes_of("TkE="), bytes_of("no base64")
    (b'NA', b'no base64')
    """
    if not isinstance(json, str):
        return None
    found = _from_base64(json)
    return json.encode() if found is None else found


def _double(value: float) -> str:
    return base64.b64encode(_DOUBLE.pack(value)).decode("ascii")


def _float_of(json: JSON) -> float | None:
    if isinstance(json, int | float):
        try:
            return float(json)
        except OverflowError:
            return None
    if not isinstance(json, str):
        return None
    if json in _WORDS:
        return _WORDS[json]
    data = _from_base64(json)
    return float(_DOUBLE.unpack(data)[0]) if data is not None and len(data) == _DOUBLE.size else None


def _complex_of(json: JSON) -> complex | None:
    parts = json if isinstance(json, Sequence) and not isinstance(json, str) else (json, 0)
    if len(parts) != 2:
        return None
    real, imaginary = _float_of(parts[0]), _float_of(parts[1])
    return None if real is None or imaginary is None else complex(real, imaginary)


def _as_float(number: complex, dtype: np.dtype[Any]) -> Any:
    """Return `number` as a scalar of `dtype`; None if it is finite and too large for it."""
    with np.errstate(over="ignore"):
        scalar = dtype.type(number)
    return scalar if np.isfinite(scalar) or not np.isfinite(number) else None


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
