"""What a GRIB file contains, as documents and manifests of arrays.

Fields of one quantity, kind of level and grid are one array, with the dimensions ``time``, ``step``, ``number`` (of the
member of an ensemble), the kind of level, and those of the grid. Dimensions of length 1 are left out, and their values
are scalar coordinates, as cfgrib names them. Each message is a chunk.

If several fields have the same place, or most places have none, then the dimension is ``message``, in the order of the
file.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.readers.documents import array_document
from omnizarr.readers.grib.grids import Grid
from omnizarr.readers.grib.messages import Messages, Parsed
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import NOT_STORED, Manifest
from omnizarr.stores.manifests.opening import Contents

_MOST_NOTES: Final = 100
_MOST_ARRAYS: Final = 1 << 13
_SPARSE: Final = 8  # places for one field, of which more than this are too many


class Axis(NamedTuple):
    """A dimension that a field has a place along."""

    name: str
    value: Callable[[Parsed], Any]
    dtype: str
    attributes: dict[str, Any]


_TIME: Final = Axis("time", lambda field: field.time, "int64", {
    "units": "seconds since 1970-01-01T00:00:00", "calendar": "proleptic_gregorian",
    "standard_name": "forecast_reference_time", "long_name": "initial time of forecast",
})  # fmt: skip
_STEP: Final = Axis("step", lambda field: field.step, "int64", {
    "units": "seconds", "standard_name": "forecast_period", "long_name": "time since forecast_reference_time",
})  # fmt: skip
_NUMBER: Final = Axis("number", lambda field: field.member or 0, "int64", {
    "units": "1", "standard_name": "realization", "long_name": "ensemble member numerical id",
})  # fmt: skip
_GRID: Final = {
    "latitude": {"units": "degrees_north", "standard_name": "latitude", "long_name": "latitude"},
    "longitude": {"units": "degrees_east", "standard_name": "longitude", "long_name": "longitude"},
}


def read(file: File) -> Contents | None:
    """Return what is in a file; None if it is no GRIB file.

    Raises
    ------
    StoreError
        If the file cannot be read.
    """
    notes: list[str] = []
    messages = Messages(file, notes)
    if not messages.is_first:
        return None
    made = _Made(notes)
    for group in _grouped(messages.fields(), notes):
        made.add(group)
    made.finish()
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES} more"]
    return Contents(made.documents, made.manifests, [file], tuple(notes), "GRIB")


class Group(NamedTuple):
    """The fields of an array, and its name."""

    name: str
    fields: list[Parsed]


def _grouped(fields: list[Parsed], notes: list[str]) -> list[Group]:
    """Return fields by array. Where a quantity is in several, their names tell the level, or what was done."""
    found: dict[tuple[Any, ...], list[Parsed]] = defaultdict(list)
    for field in fields:
        is_member = field.member is not None
        key = field.quantity, field.level, field.kind, field.grid.raw, field.other, is_member
        found[key].append(field)
    groups = list(found.values())
    if len(groups) > _MOST_ARRAYS:
        notes.append(f"arrays from {_MOST_ARRAYS} on are not shown: the file has {len(groups)}")
        groups = groups[:_MOST_ARRAYS]
    names = _names([group[0] for group in groups])
    return [Group(name, group) for name, group in zip(names, groups, strict=True)]


def _names(firsts: Sequence[Parsed]) -> list[str]:
    forms: tuple[Callable[[Parsed], str], ...] = (
        lambda field: field.quantity.name,
        lambda field: f"{field.quantity.name}_{field.level.name}",
        lambda field: f"{field.quantity.name}_{field.level.name}_{field.kind}".replace(" ", "_"),
    )
    names = [forms[0](first) for first in firsts]
    for form in forms[1:]:
        longer: dict[str, set[str]] = defaultdict(set)
        for name, first in zip(names, firsts, strict=True):
            longer[name].add(form(first))
        names = [form(first) if len(longer[name]) > 1 else name for name, first in zip(names, firsts, strict=True)]
    taken: set[str] = set()
    for at, name in enumerate(names):
        number = 1
        while names[at] in taken:
            number += 1
            names[at] = f"{name}_{number}"
        taken.add(names[at])
    return names


class _Made:
    """What has been made of the fields so far."""

    def __init__(self, notes: list[str]) -> None:
        self.documents: dict[str, bytes] = {}
        self.manifests: dict[str, Any] = {}
        self.notes = notes
        self._taken: dict[str, tuple[Any, ...]] = {}

    def finish(self) -> None:
        """Add the document of the group."""
        attributes = {"Conventions": "CF-1.7"}
        self.documents["zarr.json"] = _rendered({"zarr_format": 3, "node_type": "group", "attributes": attributes})

    def add(self, group: Group) -> None:
        """Add an array, and its coordinates."""
        first = group.fields[0]
        self._taken.setdefault(group.name, ("array",))
        level = Axis(
            first.level.name, lambda field: field.at, "float64",
            {"long_name": first.level.name, **({"units": first.level.units} if first.level.units else {})},
        )  # fmt: skip
        axes = [_TIME, _STEP, *([_NUMBER] if first.member is not None else []), level]
        places = {axis.name: sorted({axis.value(field) for field in group.fields}) for axis in axes}
        shape = tuple(len(values) for values in places.values())
        index = {axis.name: {value: at for at, value in enumerate(places[axis.name])} for axis in axes}
        numbers = np.array([
            _ravelled([index[axis.name][axis.value(field)] for axis in axes], shape) for field in group.fields
        ], np.int64)  # fmt: skip
        names: list[str] = []
        coordinates: list[str] = []
        if prod(shape) > _SPARSE * len(group.fields) or len(np.unique(numbers)) < len(numbers):
            numbers = np.arange(len(group.fields))
            lead: tuple[int, ...] = (len(group.fields),)
            names = [self._name("message", (group.name, len(group.fields)))]
            for axis in axes:
                values = [axis.value(field) for field in group.fields]
                coordinates.append(self._coordinate(f"{axis.name}_of_{names[0]}", axis, values, names[0]))
        else:
            lead = tuple(length for length in shape if length > 1)
            for axis in axes:
                values = places[axis.name]
                name = self._coordinate(axis.name, axis, values, "" if len(values) == 1 else None)
                (names if len(values) > 1 else coordinates).append(name)
        self._array(group, first.grid, lead, numbers, names, coordinates)

    def _array(
        self, group: Group, grid: Grid, lead: tuple[int, ...], numbers: NDArray[np.int64], names: list[str],
        coordinates: list[str],
    ) -> None:  # fmt: skip
        first, count = group.fields[0], prod(lead)
        offsets, lengths = np.zeros(count, np.uint64), np.full(count, NOT_STORED, np.uint64)
        offsets[numbers] = [field.start for field in group.fields]
        lengths[numbers] = [field.length for field in group.fields]
        has_number = any(field.number for field in group.fields)
        heads = None
        if has_number:
            which = np.zeros(count, ">u4")
            which[numbers] = [field.number for field in group.fields]
            heads = which.view(np.uint8).reshape(count, 4)
        self.manifests[group.name] = Manifest(offsets, lengths, heads=heads)
        configuration = grid.configuration() | ({"has_number": True} if has_number else {})
        attributes: dict[str, Any] = {"GRIB_name": first.quantity.name, "GRIB_typeOfLevel": first.level.name}
        if first.quantity.words:
            attributes |= {"long_name": first.quantity.words, "units": first.quantity.units}
        attributes |= {"GRIB_stepType": first.kind, **first.attributes, **grid.attributes}
        on_grid = [*grid.names]
        if grid.latitudes is not None and grid.longitudes is not None:
            on_grid = [
                self._line(name, values)
                for name, values in zip(on_grid, (grid.latitudes, grid.longitudes), strict=True)
            ]  # fmt: skip
        else:
            on_grid = [self._name(name, (grid.raw,)) for name in on_grid]
        if coordinates:
            attributes["coordinates"] = " ".join(coordinates)
        shape = (*lead, *grid.shape)
        codecs: list[dict[str, Any]] = [
            {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "grib", "configuration": configuration},
        ]  # fmt: skip
        chunks = (*(1 for _ in lead), *grid.shape)
        document = array_document(shape, "float64", chunks, "NaN", codecs, attributes, [*names, *on_grid])
        self.documents[f"{group.name}/zarr.json"] = _rendered(document)

    def _name(self, name: str, what: tuple[Any, ...]) -> str:
        """Return a name for a dimension: the same for what is the same."""
        number, found = 1, name
        while self._taken.setdefault(found, what) != what:
            number += 1
            found = f"{name}_{number}"
        return found

    def _coordinate(self, name: str, axis: Axis, values: list[Any], along: str | None) -> str:
        """Add the coordinate of a dimension, or along another one, and return its name. "": it is a scalar."""
        found = self._name(name, (axis.name, tuple(values), along))
        data = np.array(values, np.dtype(axis.dtype).newbyteorder("<"))
        dimensions = [] if along == "" else [found if along is None else along]
        self._stored(found, data[0] if along == "" else data, axis.attributes, dimensions)
        return found

    def _line(self, name: str, values: NDArray[np.float64]) -> str:
        found = self._name(name, (values.tobytes(),))
        self._stored(found, values.astype("<f8"), _GRID[name], [found])
        return found

    def _stored(self, path: str, data: Any, attributes: dict[str, Any], dimensions: list[str]) -> None:
        if f"{path}/zarr.json" in self.documents:
            return
        data = np.asarray(data)
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        kind = data.dtype.name
        fill = "NaN" if kind[0] == "f" else 0
        document = array_document(data.shape, kind, data.shape, fill, codecs, attributes, dimensions)
        self.documents[f"{path}/zarr.json"] = _rendered(document)
        self.documents[f"{path}/c/0" if dimensions else f"{path}/c"] = data.tobytes()


def _ravelled(place: Sequence[int], shape: Sequence[int]) -> int:
    number = 0
    for at, length in zip(place, shape, strict=True):
        number = number * length + at
    return number


def _rendered(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode("utf-8", "replace")
