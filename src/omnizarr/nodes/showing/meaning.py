"""The meaning of attributes for values and dimensions of an array: CF (as xarray and netCDF write), or OME-Zarr."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions import axes as conventional
from omnizarr.formats.conventions import calendars, display
from omnizarr.formats.conventions.axes import Role
from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.ome import reading
from omnizarr.formats.reader import is_list, is_object
from omnizarr.metadata import as_model
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata
from omnizarr.nodes import detection
from omnizarr.nodes.packing import Packing
from omnizarr.nodes.showing.slices import as_selector
from omnizarr.pictures import axes
from omnizarr.pictures.numbers import decimal

if TYPE_CHECKING:
    from omnizarr.nodes.array import Array

# Levels of images are directly below their group, or a little deeper.
_MOST_ABOVE: Final = 3
_GREGORIAN: Final = np.datetime64("1582-10-15")


@dataclass(frozen=True, slots=True)
class Scale:
    """Coordinates of an image along a dimension: ``start + step * index``."""

    start: float
    step: float
    unit: str


def level_of(array: Array) -> reading.Level | None:
    """Return which level of an OME-Zarr multiscale image an array is; None if it is none."""
    above: dict[str, Metadata] = {array.path: array.metadata}
    for where in reversed(list(array.store_path.ancestors())[-_MOST_ABOVE:]):
        with suppress(OmnizarrError):
            group = detection.find(where)
            if isinstance(group, GroupMetadata):
                above[where.path] = group
                level = reading.level(array.path, Nodes(above))
                if level is not None:
                    return level
    return None


def names_of(array: Array, level: reading.Level | None) -> tuple[str, ...]:
    """Return the names of the dimensions, "" for none."""
    names = array.dimension_names
    if names is None and level is not None:
        found = reading.axes(level.group, level.image, Nodes({}))
        if found is None and reading.is_early(level.image) and array.ndim == len(reading.FIRST_AXES):
            found = reading.FIRST_AXES
        names = found if found is not None and len(found) == array.ndim else None
    return tuple(name or "" for name in names) if names is not None else ("",) * array.ndim


def scales_of(level: reading.Level | None, ndim: int) -> tuple[Scale | None, ...]:
    """Return the scale of each dimension; None without a scale."""
    if level is None:
        return (None,) * ndim
    found = display.placement(ndim, reading.datasets(level.image)[level.number], level.image)
    if found is None:
        return (None,) * ndim
    axes_told = level.image.get("axes")
    units = [axis.get("unit") if is_object(axis) else None for axis in axes_told] if is_list(axes_told) else []
    units += [None] * (ndim - len(units))
    return tuple(
        Scale(start, step, str(unit or "")) if step else None
        for start, step, unit in zip(found.translation, found.scale, units, strict=False)
    )


# -- axes ------------------------------------------------------------------------


def axis_of(array: Array, name: str, indices: range, length: int, scale: Scale | None) -> axes.Axis:
    """Return a dimension with the coordinates at some indices.

    They come from the array of that name beside it, otherwise from OME-Zarr, otherwise they are the indices
    themselves.
    """
    return axis_at(array, name, indices, length, scale)


def axis_at(array: Array, name: str, places: range | NDArray[np.int64], length: int, scale: Scale | None) -> axes.Axis:
    """Return a dimension with the coordinates at some places; see `axis_of`."""
    beside = _beside(array, name, length)
    if beside is not None:
        with suppress(OmnizarrError):
            selector: Any = as_selector(places) if isinstance(places, range) else places
            values = np.asarray(beside.get_orthogonal_selection((selector,)))
            return axes.Axis(name, *of_axis(beside.metadata.attributes, unpacked(beside, values)))
    numbers = np.arange(places.start, places.stop, places.step) if isinstance(places, range) else places
    if scale is not None:
        return axes.Axis(name, scale.unit, scale.start + scale.step * numbers)
    return axes.Axis(name, "", numbers)


def unpacked(array: Array, stored: NDArray[Any]) -> NDArray[Any]:
    """Return what stored coordinates mean: NaN, or NaT of times, where they are missing."""
    values, hidden = packing_of(array, fills=False).decoded(stored)
    return values if hidden is None or not hidden.any() else np.where(hidden, np.nan, values)


def coordinate(array: Array, name: str, index: int, length: int, scale: Scale | None) -> str:
    """Return the name of a dimension with the position of an index on it.

    It is ``time=3 (2026-01-04)``, ``z=3``, or ``3``.
    """
    axis = axis_of(array, name, range(index, index + 1), length, scale)
    ticks = axis.ticks(1)
    text = f"{ticks[0].text} {axis.unit}".strip() if ticks else ""
    shown = f"{name}={index}" if name else str(index)
    return f"{shown} ({text})" if text and text != str(index) else shown


def role_of(array: Array, level: reading.Level | None, names: Sequence[str], dimension: int) -> Role | None:
    """Return what a dimension is to a picture: by OME-Zarr, the array with its coordinates, or its name."""
    name, kinds = names[dimension], _types(level)
    if level is not None:
        return conventional.role_of(name, kind=kinds[dimension] if len(kinds) == array.ndim else None)
    beside = _beside(array, name, array.shape[dimension])
    return conventional.role_of(name, None if beside is None else beside.metadata.attributes, names=names)


def direction_of(array: Array, name: str, length: int) -> Literal["up", "down"] | None:
    """Return where the coordinates of a dimension rise to in a picture; None without coordinates."""
    beside = _beside(array, name, length)
    return None if beside is None else conventional.direction(name, beside.metadata.attributes)


def _beside(array: Array, name: str, length: int) -> Array | None:
    """Return the array with the coordinates of a dimension; None if there is none."""
    if not name or "/" in name or name in {".", "..", array.basename} or not array.path:
        return None
    with suppress(OmnizarrError):
        found = detection.look(array.store_path.parent / name, array.metadata.dialect)
        if found is not None and isinstance(found.metadata, ArrayMetadata) and found.metadata.shape == (length,):
            return type(array)(found.where, found.metadata, array.config)
    return None


def _types(level: reading.Level | None) -> list[str | None]:
    """Return the types of an image's axes."""
    listed = None if level is None else level.image.get("axes")
    found = [axis.get("type") if is_object(axis) else None for axis in (listed if is_list(listed) else ())]
    return [kind if isinstance(kind, str) else None for kind in found]


# -- values ----------------------------------------------------------------------


def packing_of(array: Array, *, fills: bool) -> Packing:
    """Return what the attributes of an array mean for its stored values; see `Packing.of_array`."""
    return Packing.of_array(as_model(array.metadata), fills=fills)


def unit_and_values(attributes: Mapping[str, Any], values: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the unit of unpacked values, and what they mean: times as such, if NumPy has them.

    >>> unit_and_values({"units": "days since 2026-01-01"}, np.array([0, 1]))[1].astype("M8[D]").tolist()
    [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]
    """
    unit = attributes.get("units")
    unit = unit if isinstance(unit, str) else ""
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


# -- channels ----------------------------------------------------------------------


def channels_of(
    array: Array, level: reading.Level | None, names: Sequence[str]
) -> tuple[int, list[display.Channel]] | None:
    """Return the dimension of an image's channels, and how ``omero`` describes them; None if it does not."""
    dimension = next((at for at, kind in enumerate(_types(level)) if kind == "channel"), None)
    if dimension is None and "c" in names:
        dimension = names.index("c")
    if level is None or dimension is None or dimension >= array.ndim:
        return None
    with suppress(OmnizarrError):
        group = detection.find(array.store_path.at(level.group))
        if isinstance(group, GroupMetadata):
            found = display.channels(reading.members(level.group, Nodes({level.group: group})).get("omero"))
            return (dimension, found) if found else None
    return None
