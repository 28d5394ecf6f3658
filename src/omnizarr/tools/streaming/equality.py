"""When elements are equal: bit for bit, as values, or within a tolerance.

Two elements that have the same bits are equal in every sense; only what then differs is looked at again. So one
definition serves all: a conversion promises the bits (`first_difference`), a comparison looks for the values
(`unequal`), for which NaN is equal to NaN whatever its payload, and -0.0 to 0.0. NaT is equal to NaT. A complex number
is compared part by part, a structure field by field, whatever pads it. Objects of different types are not equal, but
floats among them are compared as floats.

Spec: IEEE 754-2019, 5.10 and 5.11, for the difference between bits and values.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from omnizarr.codecs.contract import AnyArray
from omnizarr.model.grids import Coords

_USER: Final = 2
"""Value of ``dtype.isbuiltin`` for the types of ml_dtypes."""


def first_difference(left: AnyArray, right: AnyArray) -> Coords | None:
    """Return where two arrays of one shape and data type differ first; None if they do not, bit for bit.

    Strings and objects are compared with ``==``; what pads the fields of a structure does not count.

    Examples
    --------
    >>> first_difference(np.array([0.0, 1.0]), np.array([-0.0, 1.0]))
    (0,)
    >>> first_difference(np.array([np.nan]), np.array([np.nan])) is None
    True
    """
    return first_of(_differs(left, right))


def first_of(mask: AnyArray) -> Coords | None:
    """Return the place of the first element of a mask that is true, in C order; None if there is none."""
    if not mask.any():
        return None
    return tuple(int(at) for at in np.unravel_index(int(np.argmax(mask.reshape(-1))), mask.shape))


def unequal(left: AnyArray, right: AnyArray, rtol: float = 0.0, atol: float = 0.0) -> AnyArray:
    """Return which elements of two arrays of one shape and data type are not equal as values.

    Numbers are also equal if ``abs(left - right) <= atol + rtol * abs(right)``, as for `numpy.isclose`; both tolerances
    are without effect on times, text and objects.

    Examples
    --------
    >>> unequal(np.array([0.0, 1.0, np.nan]), np.array([-0.0, 1.5, np.nan]))
    array([False,  True, False])
    >>> unequal(np.array([10, 20]), np.array([11, 40]), rtol=0.1).tolist()
    [False, True]
    """
    mask = np.ascontiguousarray(_differs(left, right))
    if mask.any():
        flat = mask.reshape(-1)
        places = np.flatnonzero(flat)
        flat[places] = _are_other_values(left.reshape(-1)[places], right.reshape(-1)[places], rtol, atol)
    return mask.reshape(left.shape)


def _are_other_values(left: AnyArray, right: AnyArray, rtol: float, atol: float) -> AnyArray:
    """Return which elements of rows (n, ...), all of which differ in their bits, have other values."""
    dtype = left.dtype
    if dtype.names is not None:
        result = np.zeros(len(left), np.bool_)
        for name in dtype.names:
            result |= unequal(left[name], right[name], rtol, atol).reshape(len(left), -1).any(axis=1)
        return result
    if dtype.kind not in "iufc" and not is_small(dtype):
        return np.ones(left.shape, np.bool_)
    if is_complex(dtype):
        parts = (np.stack([array.real, array.imag], axis=-1) for array in map(wide, (left, right)))
        one, other = parts
        same = ((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=-1)
    else:
        same = (left == right) | ((left != left) & (right != right))  # noqa: PLR0124 - NaN alone differs from itself
    if rtol or atol:
        same |= _are_close(left, right, rtol, atol)
    return ~np.asarray(same)


def _are_close(left: AnyArray, right: AnyArray, rtol: float, atol: float) -> AnyArray:
    one, other = wide(left), wide(right)
    with np.errstate(all="ignore"):
        distance = np.abs(one - other) if left.dtype.kind not in "iu" else integer_distance(left, right)
        return np.asarray(np.isfinite(one) & np.isfinite(other) & (distance <= atol + rtol * np.abs(other)))


def integer_distance(left: AnyArray, right: AnyArray) -> AnyArray:
    """Return how far integers of one type are apart, exactly, as unsigned ones.

    >>> int(integer_distance(np.array(-128, "i1"), np.array(127, "i1")))
    255
    """
    unsigned = f"u{left.dtype.itemsize}"
    high, low = np.maximum(left, right), np.minimum(left, right)
    with np.errstate(over="ignore"):  # a lone element would warn; the difference is right
        return np.asarray(high.astype(unsigned) - low.astype(unsigned))


def largest_distance(left: AnyArray, right: AnyArray) -> Any:
    """Return how far elements are apart at most; None if they are not numbers or times, or no two can be compared.

    left, right : (n,), of one data type. NaN and NaT are left out.
    """
    dtype = left.dtype
    if dtype.kind in "iu":
        return int(integer_distance(left, right).max()) if left.size else None
    if dtype.kind in "mM":
        is_time = ~(np.isnat(left) | np.isnat(right))
        one, other = (array[is_time].view(np.int64) for array in (left, right))
        if not one.size:
            return None
        distance = int(integer_distance(one, other).max())
        name, count = np.datetime_data(dtype)
        return np.array([distance]).astype(f"m8[{count}{name}]")[0] if distance < 2**63 else None
    if dtype.kind not in "fc" and not is_small(dtype):
        return None
    with np.errstate(all="ignore"):
        found = np.abs(wide(left) - wide(right))
    found = found[~np.isnan(found)]
    return float(found.max()) if found.size else None


def is_small(dtype: np.dtype[Any]) -> bool:
    """Return whether it is a number type of ml_dtypes."""
    return dtype.isbuiltin == _USER


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Return whether elements have two parts."""
    return dtype.kind == "c" or (is_small(dtype) and "complex" in dtype.name)


def wide(values: AnyArray) -> AnyArray:
    """Return numbers in double precision."""
    kind = np.complex128 if is_complex(values.dtype) else np.float64
    return values if values.dtype in (np.float64, np.complex128) else values.astype(kind)


def _differs(left: AnyArray, right: AnyArray) -> AnyArray:
    dtype = left.dtype
    if dtype.names is not None:
        result = np.zeros(left.shape, np.bool_)
        for name in dtype.names:
            inner = _differs(left[name], right[name])
            result |= inner.reshape(*left.shape, -1).any(axis=-1) if inner.ndim > left.ndim else inner
        return result
    if dtype.kind == "T":
        return np.asarray(left != right)
    if dtype.hasobject:
        pairs = zip(left.reshape(-1), right.reshape(-1), strict=True)
        return np.fromiter((not _is_same(*pair) for pair in pairs), np.bool_, left.size).reshape(left.shape)
    if not dtype.itemsize:
        return np.zeros(left.shape, np.bool_)
    word = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}.get(dtype.itemsize)
    one, other = (np.ascontiguousarray(array).reshape(-1) for array in (left, right))
    if word is not None:
        return np.asarray(one.view(word) != other.view(word)).reshape(left.shape)
    rows = (one.size, dtype.itemsize)
    different = one.view(np.uint8).reshape(rows) != other.view(np.uint8).reshape(rows)
    return np.asarray(different.any(axis=1)).reshape(left.shape)


def _is_same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        one, other = np.asarray(left), np.asarray(right)
        return one.shape == other.shape and one.dtype == other.dtype and not _differs(one, other).any()
    if isinstance(left, float) and isinstance(right, float) and left != left:  # noqa: PLR0124 - NaN
        return right != right  # noqa: PLR0124
    if isinstance(left, list | tuple) and type(left) is type(right) and len(left) == len(right):
        return all(map(_is_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return all(_is_same(value, right[name]) for name, value in left.items())
    return type(left) is type(right) and bool(left == right)
