"""Smallest, largest, mean and spread of elements, part by part, in any order.

Sums are kept as fractions, so that those of integers and times are exact and those of parts of any size add up without
an error of their own. Within a part, integers are summed as distances from the smallest of them, exactly; floats in
double precision, pairwise. Spreads of parts are put together as Chan, Golub and LeVeque do.

See: T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample variance", 1983.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from omnizarr.codecs.contract import AnyArray
from omnizarr.tools.streaming.equality import is_complex, is_small, unequal, wide

_PART: Final = 2**16
"""Elements that are processed together: few enough to stay in the cache of a processor."""
_DOWN: Final = 2.0**-64
_LOW: Final = np.uint64(0xFFFFFFFF)


@dataclass(slots=True)
class Moments:
    """Statistics of some elements.

    Attributes
    ----------
    count : int
        Elements that are looked at: not NaN or NaT.
    nan, fill : int
        Elements that are NaN or NaT; that equal the fill value.
    minimum, maximum : object
        None if there are none, or elements have no order.
    sums : tuple of Fraction
        One; two of complex numbers; none of what cannot be summed. Of the finite elements.
    infinite : tuple of float
        Sums of the infinite elements.
    spread : float
        Sum of the squares of the distances from the mean.
    """

    count: int = 0
    nan: int = 0
    fill: int = 0
    minimum: Any = None
    maximum: Any = None
    sums: tuple[Fraction, ...] = ()
    infinite: tuple[float, ...] = ()
    spread: float = 0.0

    def add(self, other: Moments) -> None:
        """Take other elements in."""
        if other.count:
            if self.count and self.sums:
                self.spread += other.spread + self._apart(other)
            else:
                self.spread = other.spread
            self.sums = _added(self.sums, other.sums) if self.count else other.sums
            self.infinite = _added(self.infinite, other.infinite) if self.count else other.infinite
            self.minimum = _chosen(min, self.minimum, other.minimum)
            self.maximum = _chosen(max, self.maximum, other.maximum)
        self.count += other.count
        self.nan += other.nan
        self.fill += other.fill

    def _apart(self, other: Moments) -> float:
        total = self.count + other.count
        squares = 0.0
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            distance = _float(theirs / other.count - mine / self.count)
            squares += distance * distance
        return squares * (self.count / total) * other.count

    def times(self, number: int) -> Moments:
        """Return what is known of a number of elements, all equal to the one that this is about."""
        return Moments(
            self.count * number,
            self.nan * number,
            self.fill * number,
            self.minimum,
            self.maximum,
            tuple(each * number for each in self.sums),
            self.infinite,
        )

    def mean(self) -> Any:
        """Return the mean as a fraction, or as a float or complex number if it is not finite; None without one."""
        if not self.count or not self.sums:
            return None
        if any(self.infinite):
            parts = [each or _float(total / self.count) for each, total in zip(self.infinite, self.sums, strict=True)]
            return parts[0] if len(parts) == 1 else complex(*parts)
        means = [total / self.count for total in self.sums]
        return means[0] if len(means) == 1 else complex(*map(_float, means))

    def std(self) -> float | None:
        """Return the standard deviation, as `numpy.std` defines it."""
        if not self.count or not self.sums:
            return None
        return math.nan if any(self.infinite) else math.sqrt(self.spread / self.count)


def _added(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _chosen(choose: Any, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    return choose(one, other)


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@dataclass(slots=True)
class Fields:
    """Statistics of each field of a structure; other elements are one field without a name."""

    of: dict[tuple[str, ...], Moments] = field(default_factory=dict)

    def add(self, other: Fields) -> None:
        """Take other elements in."""
        for name, moments in other.of.items():
            self.of.setdefault(name, Moments()).add(moments)

    def times(self, number: int) -> Fields:
        """As `Moments.times`."""
        return Fields({name: moments.times(number) for name, moments in self.of.items()})


def of_elements(values: AnyArray, fill: AnyArray | None, *, skip_fill: bool) -> Fields:
    """Return what is to be known of elements.

    fill : (), of the same type; None if it is undefined. With `skip_fill`, elements that equal it are counted alone.
    """
    found = Fields()
    flat = values.reshape(-1)
    for start in range(0, len(flat), _PART):
        for name, part, filled in _fields(flat[start : start + _PART], fill):
            found.add(Fields({name: _of_part(part, filled, skip_fill=skip_fill)}))
    return found


def _fields(values: AnyArray, fill: AnyArray | None) -> Iterator[tuple[tuple[str, ...], AnyArray, AnyArray | None]]:
    """Yield the fields of a structure by name, those of structures within it too."""
    if values.dtype.names is None:
        yield (), values, fill
        return
    for name in values.dtype.names:
        for inner, part, filled in _fields(values[name], None if fill is None else fill[name]):
            yield (name, *inner), part, filled


def _of_part(values: AnyArray, fill: AnyArray | None, *, skip_fill: bool) -> Moments:
    filled = 0
    if fill is not None:
        is_fill = _equals(values, fill)
        filled = int(np.count_nonzero(is_fill))
        if skip_fill and filled:
            values = values[~is_fill]
    found = _moments(values.reshape(-1))
    found.fill = filled
    return found


def _equals(values: AnyArray, fill: AnyArray) -> AnyArray:
    if values.dtype.kind in "biuf":
        scalar = fill[()]
        if np.ndim(scalar) == 0:
            return np.asarray(np.isnan(values) if scalar != scalar else values == scalar)  # noqa: PLR0124 - NaN alone does
    everywhere = np.empty(values.shape, values.dtype)
    everywhere[...] = fill
    return ~unequal(values, everywhere)


def _moments(values: AnyArray) -> Moments:
    dtype = values.dtype
    if dtype.kind in "mM":
        is_nat = np.isnat(values)
        valid = values[~is_nat] if is_nat.any() else values
        return _of_integers(valid.astype(f"{dtype.kind}8[{_unit(dtype)}]").view(np.int64), len(values) - len(valid))
    if dtype.kind in "iu":
        return _of_integers(values, 0)
    if dtype.kind == "b":
        return _of_integers(values.view(np.uint8), 0)
    if is_complex(dtype):
        return _of_complex(wide(values))
    if dtype.kind == "f" or is_small(dtype):
        return _of_floats(wide(values))
    return _of_texts(values) if dtype.kind in "USTO" else Moments(count=len(values))


def _unit(dtype: np.dtype[Any]) -> str:
    name, count = np.datetime_data(dtype)
    return f"{count}{name}"


def _of_integers(values: AnyArray, nan: int) -> Moments:
    count = len(values)
    if not count:
        return Moments(nan=nan)
    low, high = values.min(), values.max()
    above = values.astype(f"u{values.dtype.itemsize}") - np.asarray(low).astype(f"u{values.dtype.itemsize}")
    if values.dtype.itemsize < 8:
        total = int(above.sum(dtype=np.uint64))
    else:
        total = int((above & _LOW).sum(dtype=np.uint64)) + (int((above >> np.uint64(32)).sum(dtype=np.uint64)) << 32)
    distances = above.astype(np.float64)
    distances -= total / count
    spread = _squares(distances)
    return Moments(count, nan, 0, int(low), int(high), (Fraction(total + int(low) * count),), (0.0,), spread)


def _of_floats(values: AnyArray) -> Moments:
    is_nan = np.isnan(values)
    nan = int(np.count_nonzero(is_nan))
    if nan:
        values = values[~is_nan]
    count = len(values)
    if not count:
        return Moments(nan=nan)
    low, high = float(values.min()), float(values.max())
    total, infinite, spread = _summed(values)
    return Moments(count, nan, 0, low, high, (total,), (infinite,), spread)


def _summed(values: AnyArray) -> tuple[Fraction, float, float]:
    """Return the sum of the finite elements, that of the infinite ones, and the spread."""
    with np.errstate(all="ignore"):
        total, infinite = float(values.sum()), 0.0
        if not math.isfinite(total):
            is_finite = np.isfinite(values)
            infinite = float(values[~is_finite].sum()) if not is_finite.all() else 0.0
            values = values[is_finite]
            exact = Fraction(float((values * _DOWN).sum())) / Fraction(_DOWN)
        else:
            exact = Fraction(total)
        distances = values - _float(exact / max(len(values), 1))
        return exact, infinite, _squares(distances)


def _squares(values: AnyArray) -> float:
    """Return the sum of squares; the values are overwritten. Not by BLAS, which has threads of its own."""
    return float(np.multiply(values, values, out=values).sum())


def _of_complex(values: AnyArray) -> Moments:
    is_nan = np.isnan(values)
    nan = int(np.count_nonzero(is_nan))
    if nan:
        values = values[~is_nan]
    if not len(values):
        return Moments(nan=nan)
    real, imag = (_summed(np.ascontiguousarray(part)) for part in (values.real, values.imag))
    return Moments(len(values), nan, 0, None, None, (real[0], imag[0]), (real[1], imag[1]), real[2] + imag[2])


def _of_texts(values: AnyArray) -> Moments:
    items = values.tolist()
    if not items or not all(isinstance(item, str | bytes) for item in items):
        return Moments(count=len(items))
    return Moments(len(items), minimum=min(items), maximum=max(items))
