"""The types of netCDF for values, attributes and variables.

Spec: NCZarr, "The NCZarr Data Model"; their default fill values are those of netcdf.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from omnizarr.errors import UnknownDataTypeError
from omnizarr.formats.conventions.fill_values import NETCDF_DEFAULTS


@dataclass(frozen=True, slots=True)
class NcType:
    """An atomic type.

    Attributes
    ----------
    name : str
        Name in CDL: ``byte``, ``char``, ..., ``string``.
    code : int
        Number in netcdf.h, which NCZarr of netCDF-C 4.8.0 writes.
    dtype : numpy.dtype
        Type of values in memory: ``S1`` for char, ``object`` (of str) for string, otherwise numbers in the byte
        order of the machine.
    default_fill : scalar
        Value of unwritten elements, of type `dtype`.
    suffix : str
        Suffix of numbers of this type in CDL.
    """

    name: str
    code: int
    dtype: np.dtype[Any]
    default_fill: Any = field(compare=False)
    suffix: str = ""

    @property
    def is_text(self) -> bool:
        """Whether the type is char or string."""
        return self.dtype.kind in "SO"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class UserType:
    """A user-defined type, or a type that netCDF can only show as one.

    NCZarr has no user-defined types, but Zarr has types that netCDF shows in this way: booleans are an enum,
    structs and complex numbers are compounds, raw bits are opaque. You can read them, but not create them.

    Attributes
    ----------
    name : str
    kind : {"enum", "compound", "opaque", "vlen"}
    dtype : numpy.dtype
        Type of values in memory: the numbers of an enum, structured for a compound, ``V<n>`` for opaque, object
        for vlen.
    members : mapping of str to int
        Names and numbers of an enum.
    base : NcType, optional
        Type of an enum's numbers, or of the items of a vlen.
    """

    name: str
    kind: Literal["enum", "compound", "opaque", "vlen"]
    dtype: np.dtype[Any]
    members: Mapping[str, int] = field(default_factory=dict)
    base: NcType | None = None

    is_text = False

    @property
    def enum_dict(self) -> dict[str, int]:
        """Names and numbers of an enum, under the name of netCDF4-python. Raises AttributeError for other types.

        Examples
        --------
        >>> from omnizarr.netcdf import types
        >>> types.UserType("kind", "enum", types.BYTE.dtype, {"land": 1, "sea": 2}, types.BYTE).enum_dict
        {'land': 1, 'sea': 2}
        """
        if self.kind != "enum":
            raise AttributeError(f"a type of kind {self.kind} has no enum_dict")
        return dict(self.members)


AnyType = NcType | UserType

BYTE: Final = NcType("byte", 1, np.dtype("i1"), NETCDF_DEFAULTS["i1"], "b")
CHAR: Final = NcType("char", 2, np.dtype("S1"), np.bytes_(b"\0"))
SHORT: Final = NcType("short", 3, np.dtype("i2"), NETCDF_DEFAULTS["i2"], "s")
INT: Final = NcType("int", 4, np.dtype("i4"), NETCDF_DEFAULTS["i4"])
FLOAT: Final = NcType("float", 5, np.dtype("f4"), NETCDF_DEFAULTS["f4"], "f")
DOUBLE: Final = NcType("double", 6, np.dtype("f8"), NETCDF_DEFAULTS["f8"])
UBYTE: Final = NcType("ubyte", 7, np.dtype("u1"), NETCDF_DEFAULTS["u1"], "UB")
USHORT: Final = NcType("ushort", 8, np.dtype("u2"), NETCDF_DEFAULTS["u2"], "US")
UINT: Final = NcType("uint", 9, np.dtype("u4"), NETCDF_DEFAULTS["u4"], "U")
INT64: Final = NcType("int64", 10, np.dtype("i8"), NETCDF_DEFAULTS["i8"], "LL")
UINT64: Final = NcType("uint64", 11, np.dtype("u8"), NETCDF_DEFAULTS["u8"], "ULL")
STRING: Final = NcType("string", 12, np.dtype(object), "")

TYPES: Final[Mapping[str, NcType]] = {
    each.name: each for each in (BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE, UBYTE, USHORT, UINT, INT64, UINT64, STRING)
}
BY_CODE: Final[Mapping[int, NcType]] = {each.code: each for each in TYPES.values()}

_OTHER_NAMES: Final[Mapping[str, NcType]] = {
    # netCDF4-python's one-letter codes, from netCDF-3
    "c": CHAR,
    "b": BYTE,
    "s": SHORT,
    "h": SHORT,
    "i": INT,
    "f": FLOAT,
    "d": DOUBLE,
    "str": STRING,
    "S1": CHAR,
    "|S1": CHAR,
    ">S1": CHAR,
}

default_fillvals: Final[Mapping[str, Any]] = {
    "S1": "\x00",
    **{
        f"{each.dtype.kind}{each.dtype.itemsize}": each.default_fill.item()
        for each in TYPES.values()
        if not each.is_text
    },
}
"""Default fill values by the type codes of netCDF4-python: ``default_fillvals["f8"]``."""


_BY_DTYPE: Final[Mapping[np.dtype[Any], NcType]] = {each.dtype: each for each in TYPES.values() if not each.is_text}


def of_dtype(dtype: np.dtype[Any]) -> NcType:
    """Return the atomic type of a NumPy type, in any byte order. ``S1`` is char, longer text is string.

    Raises UnknownDataTypeError if there is none.

    >>> of_dtype(np.dtype(">i2")), of_dtype(np.dtype("S1")), of_dtype(np.dtype("U7"))
    (short, char, string)
    """
    if dtype == np.dtype("S1"):
        return CHAR
    if dtype.kind in "SUOT":
        return STRING
    found = _BY_DTYPE.get(dtype.newbyteorder("="))
    if found is not None:
        return found
    raise UnknownDataTypeError(
        "netCDF has no such type",
        found=str(dtype),
        expected=", ".join(TYPES),
        remedy="user-defined types (enum, opaque, vlen, compound) do not exist in NCZarr" if dtype.names else None,
    )


def parse(given: Any) -> NcType:
    """Return the type for what a user passed: ``"f4"``, ``np.int16``, ``str``, ``"S1"``, ``"double"``, ``int``, ...

    Raises UnknownDataTypeError.

    >>> parse("f4"), parse(str), parse("c"), parse(">i8"), parse(int)
    (float, string, char, int64, int64)
    """
    if isinstance(given, NcType):
        return given
    if isinstance(given, str) and (given in TYPES or given in _OTHER_NAMES):
        return TYPES.get(given) or _OTHER_NAMES[given]
    if given is str:
        return STRING
    try:
        dtype = np.dtype(given)
    except TypeError:
        raise UnknownDataTypeError("netCDF has no such type", found=repr(given), expected=", ".join(TYPES)) from None
    return of_dtype(dtype)
