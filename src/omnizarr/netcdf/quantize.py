"""Quantization: insignificant bits are made equal before values are stored, so that they compress better.

The three modes are bit for bit those of netCDF-C, and ``least_significant_digit`` is that of netCDF4-python. Fill
values, zeros and NaN do not change, nor do infinities, which netCDF-C may turn into NaN.

Spec: netCDF-C, "Quantization"; the algorithms are those of Zender (2016), Delaunay et al. (2019) and Kouznetsov (2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import SettingError

ATTRIBUTES: Final[Mapping[str, str]] = {
    "BitGroom": "_QuantizeBitGroomNumberOfSignificantDigits",
    "GranularBitRound": "_QuantizeGranularBitRoundNumberOfSignificantDigits",
    "BitRound": "_QuantizeBitRoundNumberOfSignificantBits",
}
"""The attribute that states how many digits, or bits, are kept, by mode."""

_BITS_PER_DIGIT = math.log(10) / math.log(2)
_DIGITS_PER_BIT = math.log(2) / math.log(10)


class _Layout(NamedTuple):
    """The layout of a floating-point type."""

    unsigned: np.dtype[Any]
    mantissa: int
    digits: int
    default_fill: Any


_FILL = 9.9692099683868690e36
_LAYOUTS: Mapping[np.dtype[Any], _Layout] = {
    np.dtype("f4"): _Layout(np.dtype("u4"), 23, 6, np.float32(_FILL)),
    np.dtype("f8"): _Layout(np.dtype("u8"), 52, 15, np.float64(_FILL)),
}


def check(mode: str, digits: int, dtype: np.dtype[Any]) -> None:
    """Raise SettingError if values of `dtype` cannot be quantized with these parameters.

    BitGroom and GranularBitRound keep 1 to 6 decimal digits of a float and 1 to 15 of a double, BitRound 1 to 23
    bits and 1 to 52. (netCDF-C before 4.10 allowed 7 digits of a float, and kept all.)

    Examples
    --------
    >>> check("BitRound", 9, np.dtype("f4"))
    """
    layout = _layout(dtype)
    if mode not in ATTRIBUTES:
        raise SettingError("no such mode of quantization", found=mode, expected=f"one of {', '.join(ATTRIBUTES)}")
    most = layout.mantissa if mode == "BitRound" else layout.digits
    if not 1 <= digits <= most:
        unit = "bits" if mode == "BitRound" else "digits"
        raise SettingError(
            f"{mode} cannot keep that many significant {unit} of {dtype.name}", found=digits, expected=f"1 to {most}"
        )


def apply(values: NDArray[Any], mode: str, digits: int, fill_value: Any = None) -> NDArray[Any]:
    """Return `values` with only `digits` significant digits, or bits, kept.

    Parameters
    ----------
    values : numpy.ndarray
        Floats or doubles. BitGroom alternately shaves and sets bits, in C order; one call corresponds to one
        write of netCDF-C.
    mode : {"BitGroom", "GranularBitRound", "BitRound"}
    digits : int
        Number of decimal digits; for BitRound, number of bits.
    fill_value : scalar, optional
        The value that does not change. The default is netCDF's default fill value.

    Returns
    -------
    numpy.ndarray
        A new array of the same type and shape.

    Examples
    --------
    >>> apply(np.array([3.14159274, 2.71828175], "f4"), "BitRound", 3).tolist()
    [3.25, 2.75]
    """
    layout = _layout(values.dtype)
    if mode not in ATTRIBUTES or digits < 1:
        check(mode, digits, values.dtype)
    result = np.array(values, values.dtype.newbyteorder("="), order="C", copy=True)
    flat = result.reshape(-1)
    fill = layout.default_fill if fill_value is None else result.dtype.type(fill_value)
    chosen = np.isfinite(flat) & (flat != fill) & (flat != 0)
    bits = flat.view(layout.unsigned)
    if mode == "BitGroom":
        # Clear the bits that are not kept in values at even positions, and set them in values at odd ones.
        dropped = layout.unsigned.type(2 ** max(layout.mantissa - (math.ceil(digits * _BITS_PER_DIGIT) + 1), 0) - 1)
        bits[0::2][chosen[0::2]] &= ~dropped
        bits[1::2][chosen[1::2]] |= dropped
    elif mode == "BitRound":
        bits[chosen] = _round(bits[chosen], layout, np.full(np.count_nonzero(chosen), digits))
    else:
        bits[chosen] = _round(bits[chosen], layout, _needed_bits(flat[chosen].astype("f8"), digits))
    return result.astype(values.dtype, copy=False)


def _round(bits: NDArray[Any], layout: _Layout, keep: NDArray[Any]) -> NDArray[Any]:
    """Round to the nearest number with `keep` bits of mantissa, halves away from zero."""
    drop = np.clip(layout.mantissa - keep, 0, layout.mantissa).astype(layout.unsigned)
    one = layout.unsigned.type(1)
    unit = one << drop
    return np.asarray((bits + (unit >> one)) & ~(unit - one))


def _needed_bits(values: NDArray[np.float64], digits: int) -> NDArray[Any]:
    """Return how many bits of its mantissa each value needs for `digits` decimal digits."""
    mantissa, exponent = np.frexp(np.abs(values))
    log = np.log10(mantissa)
    # NumPy's logarithm may be off by one in the last place, which shows where the sums below are integers.
    sums = (exponent * _DIGITS_PER_BIT + log, exponent - _BITS_PER_DIGIT * log)
    for place in np.flatnonzero(np.logical_or.reduce([np.abs(each - np.rint(each)) < 1e-9 for each in sums])):
        log[place] = math.log10(mantissa[place])
    before_point = np.floor(exponent * _DIGITS_PER_BIT + log) + 1
    last_power = np.floor(_BITS_PER_DIGIT * (before_point - digits))
    return np.asarray(np.abs(np.floor(exponent - _BITS_PER_DIGIT * log) - last_power) - 1)


def least_significant_digit(values: NDArray[Any], digit: int) -> NDArray[Any]:
    """Return `values` rounded to the power of two that keeps decimals up to `digit` after the point.

    A negative digit is before the point. Masked arrays stay masked.

    Examples
    --------
    >>> least_significant_digit(np.array([1.23456, 2.0]), 1).tolist()
    [1.25, 2.0]
    """
    try:
        exponent = math.log10(10.0 ** -float(digit))
        exponent = math.floor(exponent) if exponent < 0 else math.ceil(exponent)
        scale = np.float64(2.0 ** math.ceil(math.log2(10.0**-exponent)))
    except (TypeError, ValueError, OverflowError):
        raise SettingError("no digit that values can be rounded to", found=digit, expected="-300 to 300") from None
    return np.around(scale * values) / scale


def _layout(dtype: np.dtype[Any]) -> _Layout:
    layout = _LAYOUTS.get(dtype.newbyteorder("="))
    if layout is None:
        raise SettingError("only floats and doubles can be quantized", found=str(dtype), expected="float32 or float64")
    return layout
