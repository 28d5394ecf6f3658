"""The meaning of attributes for values and dimensions of an array: CF (as xarray and netCDF write), or OME-Zarr."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions import calendars, display, presentation
from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.georeference import Georeference
from omnizarr.metadata import as_model
from omnizarr.nodes import info
from omnizarr.nodes.packing import Packing
from omnizarr.nodes.showing.around import Around
from omnizarr.nodes.showing.slices import as_selector
from omnizarr.pictures import axes
from omnizarr.pictures.numbers import decimal

if TYPE_CHECKING:
    from omnizarr.nodes.array import Array

_MOST_OF_CHUNK: Final = 2**26
"""Bytes of a decoded chunk that is read for the coordinates at a corner."""
_GREGORIAN: Final = np.datetime64("1582-10-15")


class Corners(NamedTuple):
    """Coordinates of the elements of a picture, at its corners.

    Attributes
    ----------
    auxiliary : presentation.Auxiliary
    values : numpy.ndarray of float64
        Of the first and the last row and column; NaN where they are not known, or no numbers.
    """

    auxiliary: presentation.Auxiliary
    values: NDArray[np.float64]

    @property
    def rises(self) -> bool:
        """Whether they rise from the first row to the last."""
        first, last = (row[np.isfinite(row)] for row in self.values)
        return bool(first.size and last.size and last.mean() > first.mean())

    @property
    def words(self) -> str:
        """Name, range and unit."""
        known = self.values[np.isfinite(self.values)]
        if not known.size:
            return self.auxiliary.name
        low, high = float(known.min()), float(known.max())
        ends = " to ".join(decimal(end, (high - low) / 100) for end in dict.fromkeys((low, high)))
        return f"{self.auxiliary.name} {ends} {self.auxiliary.units or ''}".strip()


class Neighbours(Protocol):
    """The nodes around an array by their paths in the store; see `around.Around`."""

    def array(self, path: str) -> Array | None:
        """Return the array at a path; None if there is none."""

    def nodes(self) -> Nodes:
        """Return the metadata of all."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What documents say of an array: see `presentation`.

    Attributes
    ----------
    array : Array
    around : Neighbours
    image : presentation.Image or None
        The image of OME-Zarr that it is a level of.
    dimensions : tuple of presentation.Dimension
    auxiliaries : tuple of presentation.Auxiliary
        Coordinates along several dimensions; none of a coarser level.
    place : Georeference or None
        Where it lies on the earth.
    """

    array: Array
    around: Neighbours
    image: presentation.Image | None
    dimensions: tuple[presentation.Dimension, ...]
    auxiliaries: tuple[presentation.Auxiliary, ...] = ()
    place: Georeference | None = None
    _corners: dict[Any, list[Corners]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, array: Array, around: Neighbours | None = None) -> Setting:
        """Read what there is around an array."""
        around = Around(array) if around is None else around
        nodes = around.nodes()
        image = presentation.image_of(array.path, nodes)
        model = array._metadata  # noqa: SLF001 - `metadata` would copy all attributes
        known = presentation.dimensions_of(array.path, model, nodes, image)
        found, place = presentation.on_earth(known, array.path, model, nodes) if image is None else (known, None)
        names = [dimension.name for dimension in found]
        beside = presentation.auxiliaries(array.path, model, names, nodes)
        return cls(array, around, image, tuple(found), beside, place)

    def level(self, number: int) -> Setting | None:
        """Return that of another level of the image; None if it does not exist, or has other dimensions."""
        image = self.image
        path = None if image is None else next(islice(image.paths(), number, None), None)
        array = None if path is None else self.around.array(path)
        if image is None or array is None or array.ndim != self.array.ndim or 0 in array.shape:
            return None
        other = image._replace(level=image.level._replace(number=number))
        model = array._metadata  # noqa: SLF001 - see `of`
        found = presentation.dimensions_of(array.path, model, self.around.nodes(), other)
        return Setting(array, self.around, other, found)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions, "" for none."""
        return tuple(each.name or "" for each in self.dimensions)

    @property
    def channels(self) -> int | None:
        """The dimension of an image's channels, if these are described."""
        described = self.image is not None and self.image.channels
        return next((at for at, each in enumerate(self.dimensions) if each.role == "c"), None) if described else None

    @property
    def packing(self) -> Packing:
        """What the attributes mean for stored values."""
        return packing_of(self.array, fills=self.image is None)

    def axis(self, number: int, places: range | NDArray[np.int64]) -> axes.Axis:
        """Return a dimension with the coordinates at some places.

        They come from the array with its coordinates, otherwise from OME-Zarr, otherwise they are the places.
        """
        dimension = self.dimensions[number]
        name = dimension.name or ""
        with suppress(OmnizarrError):
            found = self.read(number, as_selector(places) if isinstance(places, range) else places)
            if found is not None:
                return axes.Axis(name, *of_axis(*found))
        numbers = np.arange(places.start, places.stop, places.step) if isinstance(places, range) else places
        if dimension.step is not None:
            return axes.Axis(name, dimension.units or "", dimension.origin + dimension.step * numbers)
        return axes.Axis(name, "", numbers)

    def read(self, number: int, selector: Any) -> tuple[Mapping[str, Any], NDArray[Any]] | None:
        """Return the attributes of the array with the coordinates of a dimension, and some of these, unpacked.

        None if there is no such array.
        """
        path = self.dimensions[number].coordinate
        beside = None if path is None else self.around.array(path)
        if beside is None:
            return None
        return beside.metadata.attributes, unpacked(beside, np.asarray(beside.get_orthogonal_selection((selector,))))

    def corners(self, chosen: Sequence[int | range], shown: Sequence[int]) -> list[Corners]:
        """Return coordinates along both dimensions of a picture, at its corners.

        Parameters
        ----------
        chosen : sequence of (int or range)
            For each dimension the index or the indices of the picture.
        shown : sequence of int
            The dimensions of its rows and columns.
        """
        asked = tuple(chosen), tuple(shown)
        if asked in self._corners:
            return self._corners[asked]
        found = self._corners[asked] = []
        for auxiliary in self.auxiliaries:
            array = self.around.array(auxiliary.path)
            if array is None or not set(shown) <= set(auxiliary.dimensions):
                continue
            values = np.full((2, 2), np.nan)
            with suppress(OmnizarrError):
                values = self._at_corners(array, auxiliary, chosen, shown)
            found.append(Corners(auxiliary, values))
        return found

    def _at_corners(
        self, array: Array, auxiliary: presentation.Auxiliary, chosen: Sequence[int | range], shown: Sequence[int]
    ) -> NDArray[np.float64]:
        nothing = np.full((2, 2), np.nan)
        facts = info.of_array(array.store_path, array._metadata)  # noqa: SLF001 - see `of`
        if array.dtype.kind not in "iuf" or (facts.nbytes_of(facts.chunks or array.shape) or 0) > _MOST_OF_CHUNK:
            return nothing
        ends = [each if isinstance(each, int) else (each[0], each[-1]) for each in chosen]
        wanted = [ends[dimension] for dimension in auxiliary.dimensions]
        places = [(each,) if isinstance(each, int) else tuple(sorted({*each})) for each in wanted]
        stored = np.asarray(array.get_orthogonal_selection(tuple(list(each) for each in places)))
        values = unpacked(array, stored).astype(np.float64)
        for at, (each, read) in enumerate(zip(wanted, places, strict=True)):
            asked = (each,) if isinstance(each, int) else each
            values = values.take([read.index(index) for index in asked], at)
        order = [auxiliary.dimensions.index(dimension) for dimension in shown]
        return np.moveaxis(values, order, (0, 1)).reshape(2, 2)

    def coordinate(self, number: int, index: int) -> str:
        """Return the name of a dimension with the position of an index on it.

        It is ``time=3 (2026-01-04)``, ``z=3``, or ``3``.
        """
        name, axis = self.dimensions[number].name, self.axis(number, range(index, index + 1))
        ticks = axis.ticks(1)
        text = f"{ticks[0].text} {axis.unit}".strip() if ticks else ""
        shown = f"{name}={index}" if name else str(index)
        return f"{shown} ({text})" if text and text != str(index) else shown


def unpacked(array: Array, stored: NDArray[Any]) -> NDArray[Any]:
    """Return what stored coordinates mean: NaN, or NaT of times, where they are missing."""
    values, hidden = packing_of(array, fills=False).decoded(stored)
    return values if hidden is None or not hidden.any() else np.where(hidden, np.nan, values)


# -- values ----------------------------------------------------------------------


def packing_of(array: Array, *, fills: bool) -> Packing:
    """Return what the attributes of an array mean for its stored values; see `Packing.of_array`."""
    return Packing.of_array(as_model(array.metadata), fills=fills)


def unit_and_values(attributes: Mapping[str, Any], values: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the unit of unpacked values, and what they mean: times as such, if NumPy has them.

    >>> unit_and_values({"units": "days since 2026-01-01"}, np.array([0, 1]))[1].astype("M8[D]").tolist()
    [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]
    """
    unit = presentation.units_of(attributes) or ""
    if values.dtype.kind not in "iuf":
        return unit, values
    times = calendars.Times.of(attributes)
    found = None if times is None else _in_numpy(times, values)
    return ("", found) if found is not None else (unit, values)


def _in_numpy(times: calendars.Times, values: NDArray[Any]) -> NDArray[np.datetime64] | None:
    """Return the times that numbers mean; None if they are of another calendar than NumPy's."""
    calendar = times.calendar
    if calendar not in (calendars.GREGORIAN, calendars.STANDARD):
        return None
    since = values.astype(np.float64) * times.unit
    with np.errstate(invalid="ignore"):
        is_time = np.abs(since) < 2.0**62
        found = (times.start + np.where(is_time, since, 0).round().astype(np.int64)).view("M8[us]")
    found[~is_time] = np.datetime64("NaT", "us")
    # Before that day, the standard calendar is not that of NumPy.
    return None if calendar is calendars.STANDARD and bool((found < _GREGORIAN).any()) else found


def of_axis(attributes: Mapping[str, Any], values: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the unit of coordinates, and what they mean: times of any calendar as such, or as text.

    >>> of_axis({"units": "days since 2000-02-29", "calendar": "360_day"}, np.array([0, 1, 2]))[1].tolist()
    ['2000-02-29', '2000-02-30', '2000-03-01']
    """
    unit, meant = unit_and_values(attributes, values)
    times = calendars.Times.of(attributes) if meant.dtype.kind in "iuf" else None
    return (unit, meant) if times is None else ("", times.texts(meant))


def label_of(attributes: Mapping[str, Any], values: NDArray[Any]) -> Callable[[float, float], str] | None:
    """Return how a number that means a time of a calendar of its own is written; None if they mean none."""
    times = calendars.Times.of(attributes) if values.dtype.kind in "iuf" else None
    return None if times is None else times.text


def flags_of(attributes: Mapping[str, Any], values: NDArray[Any]) -> tuple[display.Flag, ...]:
    """Return what integers mean by the attributes of flags; none for other values."""
    return display.flags(attributes) if values.dtype.kind in "iu" else ()


def flag_label(flags: Sequence[display.Flag]) -> Callable[[float, float], str]:
    """Return how a number is written that has a meaning by flags: by that.

    >>> label = flag_label(display.flags({"flag_values": [0, 1], "flag_meanings": "no_data cloud"}))
    >>> label(0, 1), label(7, 1)
    ('no data', '7')
    """

    def label(value: float, step: float) -> str:
        whole = round(value) if math.isfinite(value) else None
        found = [] if whole is None or whole != value else [flag for flag in flags if flag.applies(whole)]
        return ", ".join(flag.meaning.replace("_", " ") for flag in found) or decimal(value, max(step, 1))

    return label
