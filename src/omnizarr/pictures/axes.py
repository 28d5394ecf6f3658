"""Axes of a picture: coordinates, and the few of them that label it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.pictures.numbers import Numbers, between, dates, decimal
from omnizarr.support.text import visible

_LONGEST: Final = 16
_NICE: Final = (1, 2, 5, 10)


class Tick(NamedTuple):
    """A mark beside a picture.

    Attributes
    ----------
    place : float
        From 0, the first sample, to 1, the last one.
    text : str
    """

    place: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of a picture.

    Attributes
    ----------
    name : str
        "" if it has none.
    unit : str
        "" if it is not known.
    coordinates : numpy.ndarray
        One for each sample that is shown: numbers, times or text.
    """

    name: str
    unit: str
    coordinates: NDArray[Any]

    def __len__(self) -> int:
        return len(self.coordinates)

    @property
    def title(self) -> str:
        """Name and unit, as written beside the axis."""
        return titled(self.name, self.unit)

    def ticks(self, most: int) -> list[Tick]:
        """Return at most `most` marks, at round numbers if the coordinates are numbers that rise or fall.

        >>> [tick.text for tick in Axis("lat", "", np.linspace(-90, 90, 721)).ticks(5)]
        ['-50', '0', '50']
        """
        coordinates = self.coordinates
        if not len(coordinates) or most < 1:
            return []
        if coordinates.dtype.kind in "iuf" and len(coordinates) > 1 and most > 1:
            found = _at_round_numbers(coordinates.astype(np.float64), most, whole=coordinates.dtype.kind in "iu")
            if found:
                return found
        last = len(self) - 1
        step = max(1, math.ceil((last + 1) / most))
        places = np.arange(0, last + 1, step)
        chosen = self.coordinates[places]
        texts = dates(chosen) if chosen.dtype.kind == "M" else [_text(value) for value in chosen]
        return [Tick(float(place) / last if last else 0.0, text) for place, text in zip(places, texts, strict=True)]


def titled(name: str, unit: str) -> str:
    """Return a name with its unit.

    >>> titled("lat", "degrees_north"), titled("", "K"), titled("x", "")
    ('lat [degrees_north]', '[K]', 'x')
    """
    return visible(" ".join(part for part in (name, f"[{unit}]" if unit else "") if part))


def round_numbers(low: float, high: float, most: int, *, whole: bool = False) -> tuple[NDArray[np.float64], float]:
    """Return at most `most` round numbers between two numbers, and their distance.

    >>> round_numbers(230.1, 309.7, 5)
    (array([240., 260., 280., 300.]), 20.0)
    """
    low, high = float(low), float(high)
    span = high - low
    if math.isfinite(low) and math.isfinite(high) and not math.isfinite(span):
        halves, step = round_numbers(low / 2, high / 2, most)
        return halves * 2, step * 2
    if not span / most or not math.isfinite(span):
        return np.array([low]), 0.0
    power = 10.0 ** math.floor(math.log10(span / most))
    for factor in (*_NICE, 20, 50):
        step = max(1.0, factor * power) if whole else factor * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return np.arange(first, last + 1, dtype=np.float64) * step, step
    return np.array([low, high]), span


def ticks_between(numbers: Numbers, low: float, high: float, most: int) -> list[Tick]:
    """Return marks on a scale of values: `Tick.place` is 0 at `low` and 1 at `high`."""
    at, step = round_numbers(low, high, most)
    places = between(at, low, high).tolist()
    ticks = [Tick(place, numbers.label(value, step)) for place, value in zip(places, at.tolist(), strict=True)]
    return [tick for tick in ticks if tick.text]


def _at_round_numbers(coordinates: NDArray[np.float64], most: int, *, whole: bool) -> list[Tick]:
    steps = np.diff(coordinates)
    falls = bool((steps < 0).all())
    if not falls and not (steps > 0).all():  # NaN neither rises nor falls
        return []
    rising = coordinates[::-1] if falls else coordinates
    numbers, step = round_numbers(float(rising[0]), float(rising[-1]), most, whole=whole)
    if len(numbers) < 2:
        numbers, step = rising[[0, -1]], float(rising[-1] - rising[0]) / 100
    places = np.interp(numbers, rising, np.linspace(0, 1, len(rising)))
    found = [Tick(float(place), decimal(float(n), step)) for place, n in zip(places, numbers, strict=True)]
    return [Tick(1 - place, text) for place, text in reversed(found)] if falls else found


def _text(value: Any) -> str:
    text = decimal(float(value)) if isinstance(value, np.floating) else visible(str(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
