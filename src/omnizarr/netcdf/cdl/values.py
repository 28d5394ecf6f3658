"""Values of any type as CDL has them: of strings and of the types that a program defined.

Spec: netcdf-c, ncdump/dumplib.c (`ncstring_typ_tostring` and its neighbours).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnizarr.netcdf import types
from omnizarr.netcdf.cdl import numbers
from omnizarr.netcdf.cdl.lines import escaped_bytes, escaped_name, quoted
from omnizarr.netcdf.cdl.numbers import Precision
from omnizarr.netcdf.types import NcType, UserType


def texts(values: NDArray[Any], of_type: NcType | UserType, precision: Precision) -> list[str]:
    """Return the text of each of a vector of values, as it stands in data and within values of compounds.

    >>> flag = UserType("bool", "enum", np.dtype("i1"), {"FALSE": 0, "TRUE": 1}, types.BYTE)
    >>> texts(np.array([1, 0, 7]), flag, Precision())
    ['TRUE', 'FALSE', '7']
    >>> point = UserType("point", "compound", np.dtype([("x", "f4", 2), ("tag", "S1", 3)]))
    >>> print(*texts(np.array([((0.5, 1), (b"a", b"b", b""))], point.dtype), point, Precision()))
    {{0.5, 1}, {"ab"}}
    """
    if isinstance(of_type, NcType):
        if of_type == types.STRING:
            return [quoted(each) for each in values.tolist()]
        if of_type == types.CHAR:
            return [_characters(each) for each in values.tolist()]
        return numbers.data(values, of_type, numbers.data_format(of_type, precision))
    if of_type.kind == "enum":
        names = {value: escaped_name(name) for name, value in of_type.members.items()}
        return [names.get(each, str(each)) for each in values.tolist()]
    if of_type.kind == "opaque":
        return [f"0X{each.tobytes().hex().upper()}" for each in values]
    if of_type.kind == "vlen":
        return [f"{{{', '.join(_items(each, of_type.base, precision))}}}" for each in values]
    return [_compound(each, precision) for each in values]


def base_of(dtype: np.dtype[Any]) -> NcType | UserType:
    """Return the type of a member of a compound, or of the items of a vlen; of one without a name, an unnamed type."""
    if dtype.kind == "V":
        return UserType("", "compound" if dtype.names else "opaque", dtype)
    return types.of_dtype(dtype)


def _items(values: Any, base: NcType | None, precision: Precision) -> list[str]:
    values = np.asarray(values)
    return texts(values.ravel(), base or base_of(values.dtype), precision)


def _characters(raw: bytes) -> str:
    return f'"{escaped_bytes(raw.rstrip(bytes(1)))}"'


def _compound(value: np.void, precision: Precision) -> str:
    return f"{{{', '.join(_member(value[name], value.dtype[name], precision) for name in value.dtype.names or ())}}}"


def _member(value: Any, dtype: np.dtype[Any], precision: Precision) -> str:
    if dtype.subdtype is not None:
        return f"{{{', '.join(_array(np.asarray(value), dtype.base, precision))}}}"
    if dtype.hasobject and not dtype.names:
        return quoted(value) if isinstance(value, str) else f"{{{', '.join(_items(value, None, precision))}}}"
    return texts(np.array([value], dtype), base_of(dtype), precision)[0]


def _array(values: NDArray[Any], dtype: np.dtype[Any], precision: Precision) -> list[str]:
    """Return the texts of an array within a compound: one for each row of characters."""
    if dtype == types.CHAR.dtype:
        return [_characters(row.tobytes()) for row in values.reshape(-1, values.shape[-1])]
    return [_member(each, dtype, precision) for each in values.ravel()]
