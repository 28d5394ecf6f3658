"""Numbers as CDL has them.

Attributes carry the type of each number (``3s``, ``1.f``), data do not: there the variable says it. Floating-point
numbers are printed with 7 digits (float) and 15 digits (double), as ncdump prints them; that is not enough to get
every number back, and `Precision` can ask for more (9 and 17 always suffice).

Spec: netcdf-c, ncdump/ncdump.c (`pr_att_valgs`, `tztrim`) and ncdump/dumplib.c (`get_fmt`, `ncfloat_val_equals`).
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.netcdf import types
from omnizarr.netcdf.types import NcType


class Precision(NamedTuple):
    """Significant digits of floating-point numbers; None is the usual number of them: 7 and 15."""

    single: int | None = None
    double: int | None = None

    def of(self, nc_type: NcType) -> int:
        """Return the digits for `nc_type`."""
        if nc_type == types.FLOAT:
            return 7 if self.single is None else self.single
        return 15 if self.double is None else self.double

    def is_given(self, nc_type: NcType) -> bool:
        """Whether it was set explicitly: then it takes precedence over the attribute ``C_format``."""
        return (self.single if nc_type == types.FLOAT else self.double) is not None


# One conversion of printf that means the same in C and Python, apart from the length of the argument, which is dropped.
# Longer than this, ncdump has no room for the result.
_C_FORMAT: Final = re.compile(
    r"(?P<before>(?:[^%\0]|%%){0,60})"
    r"%(?P<shape>[-+ 0]*\d{0,2}(?:\.\d{0,2})?)(?:hh|h|ll|l|L|q|j|z|t)?(?P<kind>[diouxXeEfFgG])"
    r"(?P<after>(?:[^%\0]|%%){0,60})"
)


def data_format(nc_type: NcType, precision: Precision, c_format: str | None = None) -> str | None:
    """Return the conversion for data of a type: that of the attribute ``C_format``, if it fits numbers of this type.

    None is the plain decimal form of an integer.

    >>> data_format(types.FLOAT, Precision()), data_format(types.FLOAT, Precision(), "%6.2lf m")
    ('%.7g', '%6.2f m')
    >>> data_format(types.SHORT, Precision()), data_format(types.SHORT, Precision(), "%s")
    (None, None)
    """
    is_float = nc_type.dtype.kind == "f"
    usual = f"%.{precision.of(nc_type)}g" if is_float else None
    found = _C_FORMAT.fullmatch(c_format or "")
    if is_float and precision.is_given(nc_type):
        return usual
    if found is None or (found["kind"] in "eEfFgG") != is_float:
        return usual
    return f"{found['before']}%{found['shape']}{found['kind']}{found['after']}"


def data(values: NDArray[Any], nc_type: NcType, conversion: str | None, fill: Any = None) -> list[str]:
    """Return the texts of a vector of numbers in a data section.

    Numbers that would be read as `fill` but are not, or as infinity, get as many digits as it takes.

    >>> data(np.array([1, 0.1, np.nan, -np.inf], "f4"), types.FLOAT, "%.7g")
    ['1', '0.1', 'NaNf', '-Infinityf']
    >>> data(np.array([-1, 255], "i2"), types.SHORT, "0x%04x")
    ['0xffffffff', '0x00ff']
    >>> data(np.array([1.0000002, 2.0000002], "f4"), types.FLOAT, "%.7g", np.float32(1))
    ['1.00000024', '2']
    """
    if conversion is None:
        return list(map(str, values.tolist()))
    if nc_type.dtype.kind != "f":
        kind = _C_FORMAT.fullmatch(conversion)
        if kind and kind["kind"] in "ouxX":
            # C hands integers over as int, or as long long, and these conversions take them for unsigned.
            values = values.astype("i4" if nc_type.dtype.itemsize < 4 else f"i{nc_type.dtype.itemsize}")
            values = values.view(f"u{values.itemsize}")
        return [conversion % each for each in values.tolist()]
    texts = [conversion % each for each in values.tolist()]
    for index in np.flatnonzero(~np.isfinite(values)).tolist():
        texts[index] = _special(values[index], nc_type)
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = np.isfinite(values) & (np.abs(values) > np.finfo(values.dtype).max / 2)
        if fill is not None and np.isfinite(fill):
            doubtful |= np.abs(values - fill) < np.abs(fill) / 8
    for index in np.flatnonzero(doubtful).tolist():
        if _reads_as_another(texts[index], nc_type, fill):
            texts[index] = _trimmed(_in_full(values[index].item(), nc_type))
    return texts


def attribute(values: NDArray[Any], nc_type: NcType, precision: Precision) -> list[str]:
    """Return the texts of the numbers of an attribute, each with its type.

    >>> attribute(np.array([1, 0.1, 1e20, np.inf], "f4"), types.FLOAT, Precision())
    ['1.f', '0.1f', '1.e+20f', 'Infinityf']
    >>> attribute(np.array([1, 100.25]), types.DOUBLE, Precision())
    ['1.', '100.25']
    >>> attribute(np.array([7], "u8"), types.UINT64, Precision())
    ['7ULL']
    """
    if nc_type.dtype.kind != "f":
        return [f"{each}{nc_type.suffix}" for each in values.tolist()]
    conversion = f"%#.{precision.of(nc_type)}g"
    return [_constant(each, nc_type, conversion) for each in values.tolist()]


def is_fill(values: NDArray[Any], fill: Any) -> NDArray[np.bool_]:
    """Return which of a vector of numbers ncdump treats as the fill value: those closer to it than a rounding error.

    >>> is_fill(np.array([1, 1 + 1e-7, 1 + 1e-6], "f4"), np.float32(1)).tolist()
    [True, True, False]
    """
    if values.dtype.kind != "f":
        return np.asarray(values == fill)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        close = np.abs(fill - values) <= np.abs(np.finfo(values.dtype).eps * values)
    if not np.isfinite(fill):
        close = np.isnan(values) if np.isnan(fill) else np.isinf(values)
    else:
        close &= np.isfinite(values)
    return np.asarray(close & ((values > 0) == (fill > 0)))


def _constant(value: float, nc_type: NcType, conversion: str) -> str:
    if not math.isfinite(value):
        return _special(value, nc_type)
    text = conversion % value
    if _reads_as_another(text, nc_type):
        text = _in_full(value, nc_type)
    return f"{_trimmed(text)}{nc_type.suffix}"


def _in_full(value: float, nc_type: NcType) -> str:
    """Return a number with as many digits as suffice for each."""
    return f"{value:#.{9 if nc_type == types.FLOAT else 17}g}"


def _reads_as_another(text: str, nc_type: NcType, fill: Any = None) -> bool:
    """Whether the text of a finite number is read as the fill value, or as infinity."""
    try:
        with np.errstate(over="ignore"):
            value = np.array([float(text)]).astype(nc_type.dtype)
    except ValueError:  # the attribute C_format adds text that is not a number
        return False
    return bool(np.isinf(value[0]) or (fill is not None and is_fill(value, fill)[0]))


def _special(value: float, nc_type: NcType) -> str:
    if math.isnan(value):
        return f"NaN{nc_type.suffix}"
    return f"{'-' if value < 0 else ''}Infinity{nc_type.suffix}"


def _trimmed(text: str) -> str:
    """Return a number without the zeros at the end of its fraction; the point stays."""
    mantissa, exponent, power = text.partition("e")
    return mantissa.rstrip("0") + exponent + power
