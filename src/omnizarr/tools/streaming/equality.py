"""When elements are equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnizarr.codecs.contract import AnyArray
from omnizarr.model.grids import Coords


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
    differs = _differs(left, right)
    if not differs.any():
        return None
    return tuple(int(at) for at in np.unravel_index(int(np.argmax(differs.reshape(-1))), left.shape))


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
