"""Say where arrays lie in another convention: GeoZarr, CF or GDAL, from what any of them says, where that is exact.

What is there stays: attributes are added, and beside the arrays a grid mapping and coordinates, which CF and GDAL need.
A conversion asks `additions` what to add, and reads the coordinates from which a transform follows (`needed`).
What the wanted convention cannot say exactly is a loss, with the reason.

Spec: those of `projections`; https://github.com/zarr-conventions/spatial; CF conventions, chapters 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, NamedTuple, cast

import numpy as np

from omnizarr.formats.conventions import gdal, georeference, presentation, projections
from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.formats.conventions.georeference import Georeference
from omnizarr.formats.conventions.projections import Form
from omnizarr.formats.conventions.registered import cf, proj, records, spatial
from omnizarr.formats.conventions.registered.proj import Crs
from omnizarr.formats.conventions.registered.spatial import Affine
from omnizarr.model import JSON, ArrayMetadata, Loss, Metadata

NAME: Final = "georeference"
"""Of the convention, and the wish for one of `FORMS`."""
GEOZARR: Final = "geozarr"
CF: Final = "cf"
GDAL: Final = "gdal"
FORMS: Final = (GEOZARR, CF, GDAL)
_ROTATED: Final = "the map is rotated, so it has no coordinates along y and x, and in those {} looks for it"
_ALONE: Final = "the array is alone: convert its group, in which there is room for {}"
# What is remembered about a hierarchy, in `Nodes.memos`: by kind and path.
_LINE: Final = "georeference: first and step of coordinates"
_ARRAY: Final = "georeference: an array and what it gets"
_MAPPINGS: Final = "georeference: grid mappings that a group gets"
_COORDINATES: Final = "georeference: coordinates that a group gets"
_ATTRIBUTES: Final = "/attributes"


class Added(NamedTuple):
    """An array that a convention wants beside others.

    Attributes
    ----------
    path : str
    names : tuple of str
        Of its dimensions.
    values : numpy.ndarray
    attributes : dict of str to JSON
    """

    path: str
    names: tuple[str, ...]
    values: np.ndarray[Any, Any]
    attributes: dict[str, JSON]


class Axes(NamedTuple):
    """The dimensions of y and x of an array: where they are, and the paths of their coordinates."""

    names: tuple[str, str]
    at: tuple[int, int]
    coordinates: tuple[str | None, str | None]


def needed(nodes: Nodes) -> Iterator[str]:
    """Yield the paths of the coordinates that `give` is to be called with."""
    located = filter(None, (_located(path, nodes) for path in nodes))
    yield from dict.fromkeys(path for _, axes in located for path in axes.coordinates if path is not None)


def give(nodes: Nodes, path: str, values: np.ndarray[Any, Any] | None) -> None:
    """Remember the coordinates at a path; None if they cannot be read."""
    nodes.memos[_LINE, path] = None if values is None else line_of(values)


def line_of(values: np.ndarray[Any, Any]) -> tuple[float, float] | None:
    """Return first and step of coordinates at equal distances, to the last digit of their type; None of others.

    >>> line_of(np.arange(5) * 10.0 + 3)
    (3.0, 10.0)
    >>> line_of(np.array([0.0, 1.0, 2.1]))
    """
    if values.ndim != 1 or values.dtype.kind not in "iuf" or len(values) < 2:
        return None
    digits = float(np.spacing(np.abs(values).max())) if values.dtype.kind == "f" else 0.0
    exact = values.astype("f8")
    if not np.isfinite(exact).all():
        return None
    step = (exact[-1] - exact[0]) / (len(exact) - 1)
    off = np.abs(exact - (exact[0] + step * np.arange(len(exact)))).max()
    is_line = step != 0 and off <= max(2 * digits, np.spacing(np.abs(exact).max()))
    return (float(exact[0]), float(step)) if is_line else None


def additions(nodes: Nodes) -> Iterator[Added]:
    """Yield the arrays that are to be added to a hierarchy, whose coordinates were given."""
    for path in nodes:
        if _recognise(path, nodes):
            yield from _of(path, nodes).added


def _recognise(path: str, nodes: Nodes) -> bool:
    return NAME in nodes.wishes and _located(path, nodes) is not None


def _carry(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    if not isinstance(metadata, ArrayMetadata):
        return Carried(metadata)
    array = _of(path, nodes)
    attributes = {**metadata.attributes, **array.attributes}
    if nodes.wishes[NAME] == GEOZARR:
        known = [each for each in (spatial.SPATIAL, proj.PROJ) if any(key in attributes for key in each.keys)]
        attributes = records.with_records(attributes, known) if known else attributes
    written = [f"{', '.join(array.attributes)} written"] if array.attributes else []
    return Carried(replace(metadata, attributes=attributes), (*written, *array.remarks), tuple(array.losses))


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    return iter(())


# -- what is known -----------------------------------------------------------------------------------------------------


def _located(path: str, nodes: Nodes) -> tuple[Georeference, Axes] | None:
    """Return where an array lies, and its dimensions of y and x; None if it is no map."""
    array = nodes[path]
    place = georeference.of(path, nodes) if isinstance(array, ArrayMetadata) else None
    if not isinstance(array, ArrayMetadata) or place is None:
        return None
    known = presentation.dimensions_of(path, array, nodes, None)
    at = presentation.rows_and_columns(array, known, place)
    if at is None:
        return None
    rows, columns = (known[number] for number in at)
    return place, Axes((rows.name or "", columns.name or ""), at, (rows.coordinate, columns.coordinate))


def _transform(nodes: Nodes, place: Georeference, axes: Axes) -> tuple[Affine | None, str]:
    """Return the transform of an array, of corners of elements; or why there is none."""
    if place.placement is not None and place.placement.transform is not None:
        found = place.placement.transform
        if place.placement.registration == "node":
            found = found.moved(-0.5)
        return (found, "") if found.is_invertible else (None, "its transform cannot be undone")
    lines = []
    for name, path in zip(axes.names, axes.coordinates, strict=True):
        line = nodes.memos.get((_LINE, path)) if path is not None else None
        if path is None or line is None:
            return None, f"it has no coordinates at equal distances along {name!r}"
        units = nodes[path].attributes.get("units")
        if projections.is_other_unit(units, place.crs):
            return None, f"its coordinates along {name!r} are in {units!r}, and the system counts in another unit"
        lines.append(line)
    (y, down), (x, right) = lines
    return Affine(right, 0.0, x - right / 2, 0.0, down, y - down / 2), ""


# -- what is written ---------------------------------------------------------------------------------------------------


@dataclass
class _Array:
    """An array whose place is known, and what it gets.

    Attributes
    ----------
    path, nodes
        Which one it is.
    place, axes
        Where it lies, and its dimensions of y and x.
    mapping : mapping, optional
        The attributes of its grid mapping of CF.
    transform : Affine, optional
        Of corners of elements.
    why : str
        Why there is none.
    attributes, added, remarks, losses
        What it gets, what is added beside it, and what to know about both.
    """

    path: str
    nodes: Nodes
    place: Georeference
    axes: Axes
    mapping: Mapping[str, Any] | None
    transform: Affine | None
    why: str
    attributes: dict[str, JSON] = field(default_factory=dict)
    added: list[Added] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of elements along y and x."""
        node: Any = self.nodes[self.path]
        return node.shape[self.axes.at[0]], node.shape[self.axes.at[1]]

    @property
    def is_rotated(self) -> bool:
        return self.transform is not None and not self.transform.is_straight

    def lose(self, what: str, why: str) -> None:
        self.losses.append(Loss(self.path, _ATTRIBUTES, what, why))

    # -- conventions -------------------------------------------------------------------

    def to_geozarr(self) -> None:
        """Add ``proj:`` and ``spatial:``."""
        crs = self.place.crs
        if crs is not None and proj.said_of(self.path, self.nodes) is None:
            self._add_system(crs, "proj:", projections.as_proj)
        there = spatial.placement_of(self.path, self.nodes)
        if there is not None and (there.transform is not None or there.bbox is not None):
            return
        if self.transform is None:
            self.remarks.append(f"no spatial: is written, as {self.why}")
            return
        registration = "pixel" if there is None else there.registration
        transform = self.transform if registration == "pixel" else self.transform.moved(0.5)
        self.attributes |= {
            spatial.DIMENSIONS: list(self.axes.names),
            spatial.TRANSFORM: list(transform),
            spatial.BBOX: list(transform.bounds(*self.shape, registration)),
        }

    def to_gdal(self) -> None:
        """Add ``_CRS``, and coordinates."""
        crs = self.place.crs
        if crs is not None and gdal.system_of(self.nodes[self.path]) is None:
            self._add_system(crs, gdal.CRS, projections.as_gdal)
        self._add_coordinates()
        if self.is_rotated and None in self.axes.coordinates:
            self.lose("its place", _ROTATED.format("GDAL"))

    def to_cf(self) -> None:
        """Add coordinates and a grid mapping, with GDAL's ``GeoTransform``."""
        self._add_coordinates()
        crs = self.place.crs
        if crs is not None and self.mapping is None:
            is_placed = self._add_mapping(crs)
        else:
            is_placed = georeference.GEOTRANSFORM in (self.mapping or {})
        if self.is_rotated and not is_placed:
            self.lose("its place", _ROTATED.format("CF"))

    # -- their parts -------------------------------------------------------------------

    def _add_system(self, crs: Crs, name: str, of: Callable[[Crs, Mapping[str, Any] | None], Form]) -> None:
        """Add a system under a name of attributes, in a form that `of` returns; or say why it cannot be said."""
        why = self._why_not_in_metres(crs)
        form = Form({}, (), why) if why else of(crs, self.mapping)
        self._add_form(form, crs, name)

    def _add_form(self, form: Form, crs: Crs, name: str) -> None:
        self.attributes |= form.attributes
        self.remarks += form.remarks
        if not form.attributes:
            self.lose(f"the coordinate reference system {crs.label}, as {name}", form.why)

    def _why_not_in_metres(self, crs: Crs) -> str:
        """Return why attributes of CF cannot be taken for metres: the false easting is in the unit of coordinates."""
        is_text = crs.code is not None or crs.wkt is not None or crs.projjson is not None
        if is_text or not any((self.mapping or {}).get(name) for name in ("false_easting", "false_northing")):
            return ""
        for path in self.axes.coordinates:
            units = None if path is None else self.nodes[path].attributes.get("units")
            if isinstance(units, str) and projections.is_other_unit(units, None):
                return f"its false easting and northing are in the unit of the coordinates, {units!r}"
        return ""

    def _add_mapping(self, crs: Crs) -> bool:
        """Add a grid mapping, or report that there is no room for one. Return False if CF cannot express the system."""
        form = projections.as_mapping(crs)
        if not form.attributes:
            self._add_form(form, crs, cf.GRID_MAPPING)
            return False
        group, _, own = self.path.rpartition("/")
        if not own:
            self.lose("a grid mapping", _ALONE.format("one"))
            return True
        attributes = dict(form.attributes)
        if self.transform is not None:
            attributes[georeference.GEOTRANSFORM] = " ".join(map(repr, map(float, self.transform.of_gdal())))
        if self.is_rotated:
            self.remarks.append("the map is rotated: GeoTransform alone says its place, which CF does not define")
        name, is_new = self._name_of_mapping(group, attributes)
        self.remarks += form.remarks
        self.attributes[cf.GRID_MAPPING] = name
        if is_new:
            self.added.append(Added(_in(group, name), (), np.zeros((), "i4"), attributes))
        return True

    def _name_of_mapping(self, group: str, attributes: dict[str, JSON]) -> tuple[str, bool]:
        """Return a name for a grid mapping in a group, and whether it is new: arrays with the same one share it."""
        made = self.nodes.memos.setdefault((_MAPPINGS, group), {})
        for name, there in made.items():
            if there == attributes:
                return name, False
        names = (f"{projections.MAPPING}_{number}" if number else projections.MAPPING for number in count())
        name = next(name for name in names if name not in made and _in(group, name) not in self.nodes)
        made[name] = attributes
        return name, True

    def _add_coordinates(self) -> None:
        """Add coordinates along y and x where there are none, as a transform that is not rotated gives them."""
        missing = [number for number, path in enumerate(self.axes.coordinates) if path is None]
        if not missing or self.transform is None or self.is_rotated:
            return
        group, _, own = self.path.rpartition("/")
        if not own:
            self.lose("its place", _ALONE.format("coordinates"))
            return
        made = self.nodes.memos.setdefault((_COORDINATES, group), {})
        lines = self.transform.lines()
        for number in missing:
            name, (start, step), length = self.axes.names[number], lines[number], self.shape[number]
            wanted = start, step, length
            if name in made:
                if made[name] != wanted:
                    self.lose(f"its coordinates along {name!r}", "another array of its group needs other ones")
            elif _in(group, name) in self.nodes:
                self.lose(f"its coordinates along {name!r}", f"{_in(group, name)!r} exists already")
            else:
                made[name] = wanted
                values = start + step * np.arange(length)
                attributes: dict[str, JSON] = dict(projections.of_axis(self.place.crs, "X" if number else "Y"))
                self.added.append(Added(_in(group, name), (name,), values, attributes))


def _of(path: str, nodes: Nodes) -> _Array:
    """Return what an array gets; it is found out once, for all arrays that share what is added."""
    key = _ARRAY, path
    if key not in nodes.memos:
        place, axes = cast("tuple[Georeference, Axes]", _located(path, nodes))  # it was recognised
        mapping = georeference.grid_mapping(path, cast("ArrayMetadata", nodes[path]), nodes)
        array = nodes.memos[key] = _Array(path, nodes, place, axes, mapping, *_transform(nodes, place, axes))
        {GEOZARR: array.to_geozarr, CF: array.to_cf, GDAL: array.to_gdal}[nodes.wishes[NAME]]()
    found: _Array = nodes.memos[key]
    return found


def _in(group: str, name: str) -> str:
    return f"{group}/{name}" if group else name


GEOREFERENCE: Final = Convention(
    name=NAME,
    title="georeference",
    spec="https://github.com/zarr-conventions",
    attributes=frozenset(),
    recognise=_recognise,
    carry=_carry,
    faults=_faults,
)
