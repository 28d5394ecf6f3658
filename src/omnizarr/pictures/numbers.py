"""Values of any data type as numbers that a picture can show, and how such a number is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.support.text import text_of_time

_NUMERIC: Final = "biufcmM"
_DATE_UNITS: Final = ("D", "h", "m", "s", "ms", "us", "ns")
_COMPARABLE: Final = frozenset({"W", *_DATE_UNITS})
"""Units that NumPy compares with each other over the range of all of them."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Values as floats.

    Attributes
    ----------
    values : numpy.ndarray of float64
        NaN where there is no number, or where it is not shown.
    missing : numpy.ndarray of bool
        Where a value means that data is missing; `values` is NaN there.
    label : callable
        Returns the text of a number, given the number and its distance from its neighbours (0: unknown).
    remark : str
        How the values were changed, such as "magnitude"; "" if they were not.
    counts : tuple of int, optional
        NaN, missing, and all of the values that these represent; None: those of these values.
    """

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    label: Callable[[float, float], str]
    remark: str = ""
    counts: tuple[int, int, int] | None = None

    @property
    def nan_count(self) -> int:
        """Values that are NaN (or NaT) and not missing."""
        return int(np.count_nonzero(np.isnan(self.values) & ~self.missing))

    @property
    def range(self) -> tuple[float, float] | None:
        """Smallest and largest value that are finite; None if none is."""
        finite = self.values[np.isfinite(self.values)]
        return (float(finite.min()), float(finite.max())) if finite.size else None

    def limits(self, percentiles: tuple[float, float]) -> tuple[float, float] | None:
        """Return the values at two percentiles; the smallest and largest, if these are the same."""
        finite = self.values[np.isfinite(self.values)]
        if not finite.size:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # between the smallest and the largest float
            low, high = (float(value) for value in np.percentile(finite, percentiles))
        return (low, high) if low < high and np.isfinite([low, high]).all() else self.range


def are_numbers(dtype: np.dtype[Any]) -> bool:
    """Return whether values of a data type can be numbers."""
    return dtype.kind in _NUMERIC or (
        dtype.kind == "V" and dtype.names is None and dtype.type.__module__.startswith("ml_dtypes")
    )


def numbers_of(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Numbers:
    """Return values as numbers: of complex numbers the magnitude.

    >>> numbers = numbers_of(np.array([3 + 4j, 0]))
    >>> numbers.values.tolist(), numbers.remark
    ([5.0, 0.0], 'magnitude')
    """
    hidden = np.zeros(values.shape, np.bool_) if missing is None else missing
    label: Callable[[float, float], str] = decimal
    remark = ""
    kind = values.dtype.kind
    if kind in "mM":
        floats, label = _of_times(values), _time_label(values.dtype)
    elif kind == "c":
        # In double precision: the magnitude of a large number in single precision may be none.
        floats, remark = np.abs(values.astype(np.complex128)), "magnitude"
    else:
        floats = values.astype(np.float64)
        if kind == "b":
            label = _truth
        elif kind in "iu":
            label = _whole
    return Numbers(np.where(hidden, np.nan, floats), hidden, label, remark)


def decimal(value: float, step: float = 0) -> str:
    """Return a number with enough digits to distinguish it from one that is `step` away.

    >>> decimal(0.1 + 0.2, 0.1), decimal(120.0), decimal(273.15, 20), decimal(1234567.0, 1), decimal(1.5e-9)
    ('0.3', '120', '273', '1234567', '1.5e-09')
    """
    if not np.isfinite(value):
        return str(value)
    if not step or not np.isfinite(step):
        return f"{value:.5g}"
    if abs(value) >= 1e9 or step < 1e-5:
        digits = max(1, int(np.ceil(np.log10(max(abs(value), step)) - np.log10(step))) + 1)
        return f"{value:.{min(digits, 15)}g}"
    digits = max(0, int(-np.floor(np.log10(step) + 1e-9)))
    return f"{round(value, digits) + 0.0:.{digits}f}"


def between(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return where values are on a scale from 0, at `low`, to 1, at `high`.

    >>> between(np.array([-1.0, 0, 1.5]), -1, 1).tolist(), between(np.array([0.0]), -1.7e308, 1.7e308).tolist()
    ([0.0, 0.5, 1.25], [0.5])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(high - low):
            return (values - low) / (high - low)
        return (values / 2 - low / 2) / (high / 2 - low / 2)


def dates(values: NDArray[Any]) -> list[str]:
    """Return times in the coarsest unit, from days on, that represents all of them exactly.

    Times whose own unit is years, months, or less than a nanosecond keep it. Times without a unit are numbers.

    >>> dates(np.array(["2026-01-01T00:00", "2026-02-01T12:00"], "M8[m]")), dates(np.array(["2026-02"], "M8[M]"))
    (['2026-01-01T00', '2026-02-01T12'], ['2026-02'])
    """
    if np.datetime_data(values.dtype)[0] not in _COMPARABLE:
        return [text_of_time(value) for value in values]
    for unit in _DATE_UNITS:
        if bool((np.isnat(values) | (values.astype(f"M8[{unit}]") == values)).all()):
            return [str(text) for text in np.datetime_as_string(values, unit=unit, casting="unsafe")]
    return [str(value) for value in values]


def _of_times(values: NDArray[Any]) -> NDArray[np.float64]:
    whole = values.astype(np.int64)
    return np.where(np.isnat(values), np.nan, whole.astype(np.float64))


def _time_label(dtype: np.dtype[Any]) -> Callable[[float, float], str]:
    native = dtype.newbyteorder("=")

    def label(value: float, step: float) -> str:
        time = np.array([round(value)], np.int64).view(native)
        if dtype.kind == "m":
            return str(time[0])
        if np.datetime_data(dtype)[0] not in _COMPARABLE:
            return dates(time)[0]
        apart = np.array(max(1, round(step)), np.int64).view(native.str.replace("M8", "m8"))
        unit = next((unit for unit in _DATE_UNITS if np.timedelta64(1, unit) <= apart), None)
        return dates(time if unit is None else time.astype(f"M8[{unit}]"))[0]

    return label


def _whole(value: float, step: float) -> str:
    return decimal(value, max(step, 1))


def _truth(value: float, _: float) -> str:
    return {0.0: "False", 1.0: "True"}.get(value, "")
