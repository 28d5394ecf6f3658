"""Selections by names of dimensions and values of their coordinates, as xarray's ``sel`` has them.

The coordinates of a dimension are the one-dimensional array with its name, in the group of the array or in a group
above. They are read in blocks, so they can be longer than the memory. A dimension without such an array is selected by
position.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import SelectionError
from omnizarr.formats.conventions import moments, presentation
from omnizarr.formats.conventions.calendars import GREGORIAN, Calendar, Times
from omnizarr.metadata import as_model
from omnizarr.nodes import showing
from omnizarr.nodes.array import Array
from omnizarr.nodes.showing import meaning
from omnizarr.nodes.showing.around import Around
from omnizarr.support import suggestions

Scalar: TypeAlias = "str | int | float | dt.date | np.generic"
Label: TypeAlias = "Scalar | slice | list[Scalar] | tuple[Scalar, ...]"
"""A value; a slice of values, both ends included; or a list of values."""
Chosen: TypeAlias = "int | slice | list[int]"
Place: TypeAlias = "tuple[str, str, int]"
"""A dimension, the path of the array with its coordinates, and its length."""

_BLOCK: Final = 2**20
"""Coordinates that are in memory at once."""
_MOST_NAMED: Final = 8
_NO_TIME: Final = np.iinfo(np.int64).min


def positions(
    array: Array, labels: Mapping[str, Label], places: dict[Place, Chosen] | None = None
) -> tuple[Chosen, ...]:
    """Return the selection by position, one selector per dimension, for labels by the name of a dimension.

    A value selects its place and drops the dimension; a date that names less than the coordinates, such as ``2020-01``
    of days, selects all places in it. A slice selects the places between both ends, these included, in the order in
    which they are stored, whether coordinates rise or fall. An open end is the first or last place. What is found is
    entered in `places`, if it is given: the coordinates of several arrays are then read once for the same labels.

    Raises
    ------
    SelectionError
        If there is no such dimension, or no such place on it; if a slice is asked for, and the coordinates are not in
        order. It says what the dimension holds.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> lat = root.create_array("lat", data=[50.0, 45.0, 40.0], dimension_names=["lat"])
    >>> temp = root.create_array("temp", shape=(3, 4), dtype="float32", dimension_names=["lat", None])
    >>> positions(temp, {"lat": slice(40, 45)})
    (slice(1, 3, None), slice(None, None, None))
    """
    array = showing.in_its_group(array)
    names = names_of(array)
    for name in labels:
        if name not in names:
            known = ", ".join(repr(each) for each in names if each)
            near = suggestions.question(suggestions.near_names(name, [each for each in names if each]))
            raise SelectionError(
                f"there is no dimension {name!r}",
                found=repr(name),
                expected=known or "none: the dimensions have no names",
                remedy=near or None,
                store=str(array.store),
                path=array.path,
            )
    return tuple(
        _chosen(array, name, length, labels[name], {} if places is None else places) if name in labels else slice(None)
        for name, length in zip(names, array.shape, strict=True)
    )


def names_of(array: Array) -> tuple[str, ...]:
    """Return the names of the dimensions of an array, "" for none."""
    nodes = Around(array).nodes()
    names = presentation.names_of(as_model(array.metadata), presentation.image_of(array.path, nodes))
    return tuple(name or "" for name in names)


def coordinates_of(array: Array, name: str, length: int) -> Array | None:
    """Return the array with the coordinates of a dimension, from the group of the array or one above; None if none."""
    if name and array.basename == name and array.shape == (length,):
        return array
    around = Around(array, is_mixed=True)
    found = presentation.coordinate_of(array.path, name, length, around.nodes())
    return None if found is None else around.array(found[0])


def _chosen(array: Array, name: str, length: int, label: Label, places: dict[Place, Chosen]) -> Chosen:
    coordinates = coordinates_of(array, name, length)
    try:
        if coordinates is None:
            return _by_position(name, length, label)
        place = name, coordinates.path, length
        if place not in places:
            places[place] = _by_coordinates(_Axis.of(name, coordinates), length, label)
        return places[place]
    except SelectionError as error:
        raise error.add(store=str(array.store), path=array.path)


def _by_coordinates(axis: _Axis, length: int, label: Label) -> Chosen:
    if isinstance(label, list | tuple):
        found = [axis.place(each) for each in label]
        return [place for each in found for place in ([each] if isinstance(each, int) else _listed(each, length))]
    return axis.between(label) if isinstance(label, slice) else axis.place(label)


def _listed(chosen: Chosen, length: int) -> list[int]:
    if isinstance(chosen, slice):
        return list(range(*chosen.indices(length)))
    return [chosen] if isinstance(chosen, int) else chosen


def _by_position(name: str, length: int, label: Label) -> Chosen:
    """Return the selection along a dimension without coordinates: labels are positions, as in NumPy."""

    def position(value: object) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise SelectionError(
                f"dimension {name!r} has no coordinates, so it is selected by position",
                found=repr(value),
                expected=f"integers from 0 to {length - 1}",
            )
        return int(value.__index__())

    def checked(value: object) -> int:
        place = position(value)
        if not -length <= place < length:
            raise SelectionError(
                f"dimension {name!r} has no position {place}", found=place, expected=f"{-length} to {length - 1}"
            )
        return place % length

    if isinstance(label, slice):
        ends = [None if end is None else position(end) for end in (label.start, label.stop, label.step)]
        return slice(*ends)
    return [checked(each) for each in label] if isinstance(label, list | tuple) else checked(label)


@dataclass
class _Axis:
    """The coordinates of a dimension.

    Attributes
    ----------
    calendar : Calendar or None
        That of the times; None for other coordinates.
    """

    name: str
    array: Array
    times: Times | None
    calendar: Calendar | None

    @classmethod
    def of(cls, name: str, array: Array) -> _Axis:
        kind = array.dtype.kind
        times = Times.of(array.metadata.attributes) if kind in "iuf" else None
        calendar = GREGORIAN if kind == "M" else None if times is None else times.calendar
        return cls(name, array, times, calendar)

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the coordinates in blocks, each with the position of its first; times as microseconds."""
        for start in range(0, len(self.array), _BLOCK):
            yield start, self._meant(np.asarray(self.array[start : start + _BLOCK]))

    def _meant(self, values: NDArray[Any]) -> NDArray[Any]:
        if values.dtype.kind == "M":
            return values.astype("M8[us]").view(np.int64)
        values = meaning.unpacked(self.array, values) if values.dtype.kind in "iuf" else values
        if self.times is None:
            return values.astype(str) if values.dtype.kind in "OTS" else values
        whole = np.trunc(values)
        with np.errstate(invalid="ignore"):
            found = self.times.start + whole.astype(np.int64) * self.times.unit
            found += np.rint((values - whole) * self.times.unit).astype(np.int64)
        return np.where(np.isfinite(values), found, _NO_TIME)

    # -- labels ----------------------------------------------------------------------

    def place(self, label: Any) -> Chosen:
        """Return where a value is: one position, or several if a date means more than one."""
        if self.calendar is None:
            return self._matching(lambda values: values == self._value(label, values), label)
        span = self._span(label)
        found = self._matching(lambda values: (values >= span.start) & (values < span.stop), label)
        is_part = isinstance(label, str) and moments.RESOLUTIONS.index(span.resolution) < self._resolution()
        return slice(found, found + 1) if is_part and isinstance(found, int) else found

    def _matching(self, test: Callable[[NDArray[Any]], NDArray[np.bool_]], label: Any) -> Chosen:
        """Return the place with a property, or all places if there are several."""
        first = last = count = 0
        for start, values in self.blocks():
            found = np.flatnonzero(test(values))
            if found.size:
                first = first if count else start + int(found[0])
                last = start + int(found[-1])
                count += found.size
        if not count:
            raise self._nothing_at(label)
        if count == 1:
            return first
        if count == last - first + 1:
            return slice(first, last + 1)
        return [start + int(place) for start, values in self.blocks() for place in np.flatnonzero(test(values))]

    def between(self, label: slice) -> slice:
        """Return the places between two values, both included."""
        if label.step is not None and not hasattr(label.step, "__index__"):
            raise SelectionError(
                f"the step of a slice of {self.name!r} counts places", found=repr(label.step), expected="an integer"
            )
        if (label.start is None) != (label.stop is None) and self._falls():
            label = slice(label.stop, label.start, label.step)  # an open end is that of the stored order
        first = last = None
        order, before = 0, None
        for start, values in self.blocks():
            steps = values if before is None else np.concatenate([before, values])
            order = self._order(steps, order)
            before = values[-1:]
            inside = np.flatnonzero(self._inside(label, values))
            if inside.size:
                first = start + int(inside[0]) if first is None else first
                last = start + int(inside[-1])
        if first is None or last is None:
            return slice(0, 0)
        return slice(first, last + 1, label.step)

    def _falls(self) -> bool:
        """Return whether the last coordinate is smaller than the first."""
        ends = [self._meant(np.asarray(self.array[place : place + 1])) for place in (0, max(0, len(self.array) - 1))]
        first, last = (self._known(end) for end in ends)
        return bool(first.size and last.size and first[0] > last[0])

    def _known(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values without NaN and missing times."""
        if self.calendar is not None:
            return values[values > _NO_TIME]
        return values[~np.isnan(values)] if values.dtype.kind == "f" else values

    def _order(self, values: NDArray[Any], order: int) -> int:
        values = self._known(values)
        rises, falls = bool((values[1:] > values[:-1]).any()), bool((values[1:] < values[:-1]).any())
        found = 1 if rises else -1 if falls else 0
        if (rises and falls) or (found and order and found != order):
            raise SelectionError(
                f"the coordinates of dimension {self.name!r} are not in order, so a slice of them has no meaning",
                found=str(self.array.store_path),
                expected="coordinates that rise, or fall",
                remedy="select single values, or a slice of positions",
            )
        return found or order

    def _inside(self, label: slice, values: NDArray[Any]) -> NDArray[np.bool_]:
        inside = np.ones(values.shape, np.bool_)
        if self.calendar is not None:
            low, high = (None if end is None else self._span(end) for end in (label.start, label.stop))
            if low is not None and high is not None and high.start < low.start:
                low, high = high, low
            inside &= values > _NO_TIME
            inside &= True if low is None else values >= low.start
            return inside & (True if high is None else values < high.stop)
        least, most = (None if end is None else self._value(end, values) for end in (label.start, label.stop))
        if least is not None and most is not None and least > most:
            least, most = most, least
        inside &= True if least is None else values >= least
        return inside & (True if most is None else values <= most)

    def _value(self, label: Any, values: NDArray[Any]) -> Any:
        """Return a label as the coordinates have it: 40.1 for float32 is the nearest of those."""
        kind = values.dtype.kind
        if kind == "U":
            return str(label)
        try:
            number = float(label) if kind == "f" else label if hasattr(label, "__index__") else float(label)
        except (TypeError, ValueError):
            raise SelectionError(
                f"the coordinates of dimension {self.name!r} are numbers", found=repr(label), expected=self._holds()
            ) from None
        return values.dtype.type(number) if kind == "f" else number

    def _span(self, label: Any) -> moments.Interval:
        """Return the interval that a time means."""
        if isinstance(label, np.datetime64 | dt.date):
            label = str(np.array(label, "M8[us]"))
        try:
            return moments.interval_of(str(label), self.calendar or GREGORIAN)
        except ValueError as error:
            raise SelectionError(
                f"dimension {self.name!r} has times: {error}", found=repr(label), expected=self._holds()
            ) from None

    def _resolution(self) -> int:
        """Return the finest part of a time that any of them has, at least the day; a place in `moments.RESOLUTIONS`."""
        finest = moments.RESOLUTIONS.index("day")
        for _, values in self.blocks():
            known = values[values > _NO_TIME]
            while (known % moments.UNITS[moments.RESOLUTIONS[finest]]).any():
                finest += 1
        return finest

    # -- texts of errors ----------------------------------------------------------------

    def _nothing_at(self, label: Any) -> SelectionError:
        return SelectionError(
            f"dimension {self.name!r} has no place {label}", found=repr(label), expected=self._holds(label)
        )

    def _holds(self, label: Any = None) -> str:
        """Return in words what the dimension holds: all if there are few, or the number of them and both ends."""
        length = len(self.array)
        if not length:
            return "nothing: the dimension is empty"
        places = range(length) if length <= _MOST_NAMED else (0, length - 1)
        texts = [self._text(place) for place in places]
        said = ", ".join(texts) if length <= _MOST_NAMED else f"one of {length} from {texts[0]} to {texts[-1]}"
        near = None if label is None or length <= _MOST_NAMED else self._nearest(label)
        return said if near is None else f"{said}; the nearest is {self._text(near)}"

    def _text(self, place: int) -> str:
        values = np.asarray(self.array[place : place + 1])
        values = meaning.unpacked(self.array, values) if values.dtype.kind in "iuf" else values
        _, values = meaning.of_axis(self.array.metadata.attributes, values)
        text = str(values[0])
        return text.removesuffix("T00:00:00.000000").removesuffix(".000000")

    def _nearest(self, label: Any) -> int | None:
        best: tuple[float, int] | None = None
        for start, values in self.blocks():
            if values.dtype.kind not in "iuf":
                return None
            wanted = self._span(label).start if self.calendar is not None else self._value(label, values)
            apart = np.abs(values.astype(np.float64) - float(wanted))
            if not np.isnan(apart).all():
                place = int(np.nanargmin(apart))
                best = min(best or (np.inf, 0), (float(apart[place]), start + place))
        return None if best is None else best[1]
