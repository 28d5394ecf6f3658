"""Making an array smaller: each block of elements becomes one.

A block has as many elements along each dimension as its factor says; at the end of a dimension it may have fewer, and
then only those that exist count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
Factors = Sequence[int]


def reduce(values: AnyArray, factors: Factors, method: str) -> AnyArray:
    """Return an array with one element for each block of another one, of the same data type.

    Parameters
    ----------
    values : ndarray
    factors : sequence of int
        Elements of a block along each dimension.
    method : str
        One of `METHODS`. ``"mean"``: integers are rounded to the nearest, halves to the even one, whatever their size.
        ``"mode"``: the most frequent value, of several the smallest. ``"max"``, ``"min"``. ``"nearest"``: the element
        at the middle of the block, of two the first. NaN counts in no block that has other values, but for nearest.

    Examples
    --------
    >>> reduce(np.array([1, 2, 2, 9, 7], "u1"), [2], "mean"), reduce(np.array([1, 2, 2, 9, 7], "u1"), [2], "max")
    (array([2, 6, 7], dtype=uint8), array([2, 9, 7], dtype=uint8))
    """
    if values.size == 0:
        shape = [-(-length // factor) for length, factor in zip(values.shape, factors, strict=True)]
        return np.zeros(shape, values.dtype)
    return METHODS[method](values, factors)


def _offsets(values: AnyArray, factors: Factors) -> Iterator[AnyArray]:
    """Yield, for each place in a block, the elements at that place; the first are of all blocks."""
    for offset in product(*(range(min(each, length)) for each, length in zip(factors, values.shape, strict=True))):
        yield values[tuple(slice(start, None, step) for start, step in zip(offset, factors, strict=True))]


def _head(of: AnyArray, like: AnyArray) -> AnyArray:
    """Return the part of an array that is as large as another one."""
    return of[tuple(slice(length) for length in like.shape)]


def _counts(values: AnyArray, factors: Factors) -> AnyArray:
    """Return how many elements the blocks have, to be broadcast against the result."""
    counts = np.ones((1,) * values.ndim, np.int64)
    for axis, (length, factor) in enumerate(zip(values.shape, factors, strict=True)):
        along = np.full(-(-length // factor), factor, np.int64)
        along[-1] = length - (len(along) - 1) * factor
        counts = counts * along.reshape([-1 if at == axis else 1 for at in range(values.ndim)])
    return counts


def _mean(values: AnyArray, factors: Factors) -> AnyArray:
    if values.dtype.kind in "fc":
        return _mean_of_floats(values, factors)
    if values.dtype.kind not in "iub":
        raise TypeError(f"elements of type {values.dtype} have no mean; use the method mode or nearest")
    return _mean_of_integers(values, factors)


def _mean_of_integers(values: AnyArray, factors: Factors) -> AnyArray:
    """Return exact means, rounded to the nearest integer, halves to the even one."""
    counts = _counts(values, factors)
    if values.dtype.itemsize == 8:
        quotients, remainders = _divided_sum(values, factors, counts)
    else:
        is_narrow = values.dtype.itemsize <= 2 and math.prod(factors) < 2**14
        total = np.zeros(next(_offsets(values, factors)).shape, np.int32 if is_narrow else np.int64)
        for part in _offsets(values, factors):
            head = _head(total, part)
            np.add(head, part, out=head, casting="unsafe")
        counts = counts.astype(total.dtype)
        quotients = total // counts
        remainders = total - quotients * counts
    is_odd = (quotients & np.ones((), quotients.dtype)).astype(bool)
    quotients += ((2 * remainders > counts) | ((2 * remainders == counts) & is_odd)).astype(quotients.dtype)
    return quotients.astype(values.dtype)


def _divided_sum(values: AnyArray, factors: Factors, counts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the sums of blocks divided by their counts, and the remainders, though the sums may be too large."""
    shape, wide = next(_offsets(values, factors)).shape, values.dtype.newbyteorder("=")
    quotients, remainders = np.zeros(shape, wide), np.zeros(shape, np.int64)
    for part in _offsets(values, factors):
        number = _head(np.broadcast_to(counts, shape), part).astype(wide)
        quotient, remainder = np.divmod(part, number)
        _head(quotients, part)[...] += quotient
        _head(remainders, part)[...] += remainder.astype(np.int64)
    more, rest = np.divmod(remainders, counts)
    quotients += more.astype(wide)
    return quotients, rest


def _mean_of_floats(values: AnyArray, factors: Factors) -> AnyArray:
    wide = np.result_type(values.dtype, np.float64)
    first = next(_offsets(values, factors))
    total, count = np.zeros(first.shape, wide), np.zeros(first.shape, np.int64)
    with np.errstate(all="ignore"):
        for part in _offsets(values, factors):
            there = ~np.isnan(part)
            _head(total, part)[...] += np.where(there, part, 0)
            _head(count, part)[...] += there
        mean = total / count
        if np.isinf(mean).any():
            mean = _mean_of_huge(values, factors, mean, count)
        return mean.astype(values.dtype)


def _mean_of_huge(values: AnyArray, factors: Factors, mean: AnyArray, count: AnyArray) -> AnyArray:
    """Return means, also of blocks of finite elements whose sum is larger than any float."""
    smaller = np.zeros_like(mean)
    has_infinite = np.zeros(mean.shape, bool)
    for part in _offsets(values, factors):
        _head(smaller, part)[...] += np.where(np.isnan(part), 0, part) / _head(count, part)
        _head(has_infinite, part)[...] |= np.isinf(part)
    most = np.finfo(mean.dtype).max
    finite = smaller if mean.dtype.kind == "c" else np.clip(smaller, -most, most)
    return np.where(np.isinf(mean) & ~has_infinite, finite, mean)


def _extreme(values: AnyArray, factors: Factors, choose: Callable[..., AnyArray]) -> AnyArray:
    if values.dtype.kind not in "iubfmM":
        raise TypeError(f"elements of type {values.dtype} have no order; use the method mode or nearest")
    parts = _offsets(values, factors)
    result = next(parts).copy()
    for part in parts:
        head = _head(result, part)
        head[...] = choose(head, part)
    return result


def _max(values: AnyArray, factors: Factors) -> AnyArray:
    return _extreme(values, factors, np.fmax)


def _min(values: AnyArray, factors: Factors) -> AnyArray:
    return _extreme(values, factors, np.fmin)


def _mode(values: AnyArray, factors: Factors) -> AnyArray:
    if values.dtype.kind not in "iubfmMSU":
        raise TypeError(f"elements of type {values.dtype} have no order; use the method nearest")
    parts = list(_offsets(values, factors))
    result = parts[0].copy()
    best = np.zeros(result.shape, np.int64)
    for part in parts:
        count = np.zeros(part.shape, np.int64)
        for other in parts:
            both = tuple(slice(min(one, two)) for one, two in zip(part.shape, other.shape, strict=True))
            count[both] += part[both] == other[both]
        head, leading = _head(result, part), _head(best, part)
        better = (count > leading) | ((count == leading) & (part < head))
        head[better], leading[better] = part[better], count[better]
    return result


def _nearest(values: AnyArray, factors: Factors) -> AnyArray:
    index = np.ix_(
        *(
            np.minimum(np.arange(0, length, factor) + (factor - 1) // 2, length - 1)
            for length, factor in zip(values.shape, factors, strict=True)
        )
    )
    return values[index]


METHODS: Final[Mapping[str, Callable[[AnyArray, Factors], AnyArray]]] = {
    "mean": _mean,
    "mode": _mode,
    "max": _max,
    "min": _min,
    "nearest": _nearest,
}
"""Functions that make one element of a block, by name."""


def shift(factor: int, method: str) -> float:
    """Return the distance from the middle of the first element of a block to the middle of the block, in elements.

    >>> shift(2, "mean"), shift(4, "mode"), shift(2, "nearest"), shift(3, "nearest")
    (0.5, 1.5, 0.0, 1.0)
    """
    return float((factor - 1) // 2) if method == "nearest" else (factor - 1) / 2
