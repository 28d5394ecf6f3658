"""What is done to elements on their way from a chunk into a result, so that no second pass over the result is needed.

A `Conversion` is a function of arrays. The reference engine calls it for the elements of each piece. The native engine
gets the same as types and numbers, where it can compute the very same bits (``rust/src/convert.rs``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from omnizarr.codecs.contract import AnyArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBERS: Final = frozenset("iuf")
_EXACT: Final = 2**53
"""Integers below this are exact as float64."""

Packed: TypeAlias = "tuple[float | None, float | None, list[bytes], bytes | None, bytes | None]"
"""A scale, an offset, the bytes of numbers that are missing, of the lowest valid one and of the highest."""
Step: TypeAlias = "tuple[str, str, Packed | None]"
"""One step for the native engine: the types of elements and of results, and what packed numbers mean (None: a cast)."""


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """Elements of one data type become elements of another one, each by itself.

    Attributes
    ----------
    dtype : numpy.dtype
        Data type of the results.
    apply : callable
        Returns the results for an array of elements, in its shape.
    steps : tuple, optional
        The same for the native engine; None: it cannot do the same.
    """

    dtype: np.dtype[Any]
    apply: Callable[[NDArray[Any]], NDArray[Any]]
    steps: tuple[Step, ...] | None = None


def cast(dtype: np.dtype[Any], to: np.dtype[Any]) -> Conversion:
    """Return the conversion that `numpy.ndarray.astype` is."""
    step = cast_step(dtype, to)
    return Conversion(to, lambda values: values.astype(to), None if step is None else (step,))


def cast_step(dtype: np.dtype[Any], to: np.dtype[Any]) -> Step | None:
    """Return the step of a cast; None if the native engine cannot do it."""
    return (dtype.str, to.str, None) if _is_number(dtype) and _is_number(to) else None


def unpack_step(
    dtype: np.dtype[Any],
    to: np.dtype[Any],
    scale: float | None,
    offset: float | None,
    missing: Sequence[Any],
    valid: tuple[Any, Any],
) -> Step | None:
    """Return the step that unpacks numbers: ``number * scale + offset``, and NaN for those that are marked.

    Parameters
    ----------
    dtype, to : numpy.dtype
        Data types of stored numbers and of results.
    scale, offset : float or None
    missing : sequence of scalar
        Compared with ``==``, as NumPy does it.
    valid : tuple of scalar or None
        The lowest and the highest valid number, of the type of the stored ones.

    Returns
    -------
    tuple or None
        None if the native engine cannot do it.
    """
    if not (_is_number(dtype) and _is_number(to) and to.kind == "f"):
        return None
    with np.errstate(over="ignore"):
        factors = [to.type(number) for number in (scale, offset) if number is not None]
    if not np.isfinite(factors).all():
        return None
    marks = [_bytes_of(mark, dtype) for mark in missing]
    bounds = [None if bound is None else _bytes_of(bound, dtype) for bound in valid]
    if None in marks or any(not found for bound, found in zip(valid, bounds, strict=True) if bound is not None):
        return None
    low, high = bounds
    return dtype.str, to.str, (scale, offset, [mark for mark in marks if mark], low, high)


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _NUMBERS and (dtype.kind != "f" or dtype.itemsize in (4, 8))


def _bytes_of(mark: Any, dtype: np.dtype[Any]) -> bytes | None:
    """Return the bytes of the number that alone is equal to a mark; b"" if there is none, None if that is not known."""
    native = dtype.newbyteorder("=")
    if isinstance(mark, np.generic):
        return mark.tobytes() if mark.dtype == native else None
    if type(mark) not in (int, float):
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            found = native.type(mark)
        return found.tobytes() if np.isfinite(found) or mark != mark else None  # noqa: PLR0124 - NaN
    if isinstance(mark, float):
        if mark != mark or not mark.is_integer():  # noqa: PLR0124 - NaN
            return b""
        if abs(mark) >= _EXACT:
            return None
    bounds = np.iinfo(native)
    return np.array(int(mark), native).tobytes() if bounds.min <= mark <= bounds.max else b""


def joined(conversions: Sequence[Conversion]) -> Conversion:
    """Return conversions as one of which each takes the results of the one before it."""
    if len(conversions) == 1:
        return conversions[0]

    def apply(values: AnyArray) -> AnyArray:
        for conversion in conversions:
            values = conversion.apply(values)
        return values

    steps: list[Step] = []
    for conversion in conversions:
        if conversion.steps is None:
            return Conversion(conversions[-1].dtype, apply)
        steps += conversion.steps
    return Conversion(conversions[-1].dtype, apply, tuple(steps))
