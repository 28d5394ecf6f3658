"""Say where arrays lie in another convention: GeoZarr, CF or GDAL, from what any of them says, where that is exact.

What is there stays: attributes are added, and beside the arrays a grid mapping and coordinates, which CF and GDAL need.
A conversion asks `additions` what to add, and reads the coordinates from which a transform follows (`needed`).
What the wanted convention cannot say exactly is a loss, with the reason.

Spec: those of `projections`; https://github.com/zarr-conventions/spatial; CF conventions, chapters 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.formats.conventions import gdal, georeference, presentation, projections
from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.formats.conventions.georeference import Georeference
from omnizarr.formats.conventions.projections import Form
from omnizarr.formats.conventions.registered import cf, proj, records, spatial
from omnizarr.formats.conventions.registered.proj import Crs
from omnizarr.formats.conventions.registered.spatial import Affine
from omnizarr.model import JSON, ArrayMetadata, Loss, Metadata, dimensions

NAME: Final = "georeference"
"""Of the convention, and the wish for one of `FORMS`."""
GEOZARR: Final = "geozarr"
CF: Final = "cf"
GDAL: Final = "gdal"
FORMS: Final = (GEOZARR, CF, GDAL)
_TITLES: Final = {GEOZARR: "proj: and spatial:", CF: "a grid mapping of CF", GDAL: "GDAL"}
_ROTATED: Final = "{} finds it in coordinates along y and x, and this map is rotated"
_COORDINATE: Final = "georeference coordinate"
_MADE: Final = "georeference"
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


@dataclass
class _Said:
    """What one array gets."""

    path: str
    attributes: dict[str, JSON] = field(default_factory=dict)
    added: list[Added] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def lose(self, what: str, why: str) -> None:
        self.losses.append(Loss(self.path, _ATTRIBUTES, what, why))


def needed(nodes: Nodes) -> Iterator[str]:
    """Yield the paths of the coordinates that `give` is to be called with."""
    yield from dict.fromkeys(
        path
        for at, node in nodes.items()
        if isinstance(node, ArrayMetadata) and (place := _place(at, nodes)) is not None
        for path in _axes(at, node, nodes, place).coordinates
        if path is not None
    )


def give(nodes: Nodes, path: str, values: np.ndarray[Any, Any] | None) -> None:
    """Remember the coordinates at a path; None if they cannot be read."""
    nodes.memos[_COORDINATE, path] = None if values is None else line_of(values)


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
    return (
        (float(exact[0]), float(step)) if step != 0 and off <= max(2 * digits, np.spacing(abs(exact).max())) else None
    )


def additions(nodes: Nodes) -> Iterator[Added]:
    """Yield the arrays that are to be added to a hierarchy, whose coordinates were given."""
    for path, node in nodes.items():
        if isinstance(node, ArrayMetadata) and _recognise(path, nodes):
            yield from _of(path, nodes).added


def _recognise(path: str, nodes: Nodes) -> bool:
    return NAME in nodes.wishes and isinstance(nodes[path], ArrayMetadata) and _place(path, nodes) is not None


def _carry(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    said = _of(path, nodes)
    if not isinstance(metadata, ArrayMetadata):
        return Carried(metadata)
    attributes = {**metadata.attributes, **said.attributes}
    if nodes.wishes[NAME] == GEOZARR:
        known = [each for each in (spatial.SPATIAL, proj.PROJ) if any(key in attributes for key in each.keys)]
        attributes = records.with_records(attributes, known) if known else attributes
    written = [f"{', '.join(said.attributes)} written"] if said.attributes else []
    return Carried(replace(metadata, attributes=attributes), (*written, *said.remarks), tuple(said.losses))


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    return iter(())


# -- what is known -----------------------------------------------------------------------------------------------------


def _place(path: str, nodes: Nodes) -> Georeference | None:
    """Return where an array lies, if it is a map: its two dimensions are known."""
    node = nodes[path]
    found = georeference.of(path, nodes)
    if not isinstance(node, ArrayMetadata) or found is None:
        return None
    return found if _axes(path, node, nodes, found).names != ("", "") else None


def _axes(path: str, array: ArrayMetadata, nodes: Nodes, place: Georeference) -> Axes:
    own = dimensions.names_of(array) or ()
    known = presentation.dimensions_of(path, array, nodes, None)
    names = place.placement.dimensions if place.placement is not None else None
    if names is None:
        roles = {each.role: each.name or "" for each in reversed(known)}
        names = (roles.get("y", ""), roles.get("x", ""))
    if not all(name and name in own for name in names) or names[0] == names[1]:
        return Axes(("", ""), (-1, -1), (None, None))
    at = own.index(names[0]), own.index(names[1])
    return Axes(names, at, (known[at[0]].coordinate, known[at[1]].coordinate))


def _of(path: str, nodes: Nodes) -> _Said:
    """Return what an array gets; it is found out once, for all arrays that share what is added."""
    key = _MADE, path
    if key in nodes.memos:
        found: _Said = nodes.memos[key]
        return found
    said = nodes.memos[key] = _Said(path)
    node, place = nodes[path], _place(path, nodes)
    if isinstance(node, ArrayMetadata) and place is not None:
        axes = _axes(path, node, nodes, place)
        transform, why = _transform(nodes, place, axes)
        form = nodes.wishes[NAME]
        if form == GEOZARR:
            _as_geozarr(said, nodes, place, axes, transform, why)
        elif form == CF:
            _as_cf(said, nodes, place, axes, transform)
        else:
            _as_gdal(said, nodes, place, axes, transform)
    return said


def _transform(nodes: Nodes, place: Georeference, axes: Axes) -> tuple[Affine | None, str]:
    """Return the transform of an array, of corners of elements; or why there is none."""
    if place.placement is not None and place.placement.transform is not None:
        found = place.placement.transform
        if place.placement.registration == "node":
            found = found._replace(c=found.c - (found.a + found.b) / 2, f=found.f - (found.d + found.e) / 2)
        return (found, "") if found.is_invertible else (None, "its transform cannot be undone")
    lines = []
    for name, path in zip(axes.names, axes.coordinates, strict=True):
        line = nodes.memos.get((_COORDINATE, path)) if path is not None else None
        if path is None or line is None:
            return None, f"it has no coordinates at equal distances along {name!r}"
        units = nodes[path].attributes.get("units")
        if projections.is_other_unit(units, place.crs):
            return None, f"its coordinates along {name!r} are in {units!r}, and the system counts in another unit"
        lines.append(line)
    (y, down), (x, right) = lines
    return Affine(right, 0.0, x - right / 2, 0.0, down, y - down / 2), ""


def _mapping(path: str, nodes: Nodes) -> Mapping[str, Any] | None:
    node = nodes[path]
    return georeference.grid_mapping(path, node, nodes) if isinstance(node, ArrayMetadata) else None


def _why_not_in_metres(crs: Crs, mapping: Mapping[str, Any] | None, nodes: Nodes, axes: Axes) -> str:
    """Return why attributes of CF cannot be taken for metres: the false easting is in the unit of the coordinates."""
    is_text = crs.code is not None or crs.wkt is not None or crs.projjson is not None
    if is_text or not any((mapping or {}).get(name) for name in ("false_easting", "false_northing")):
        return ""
    for path in axes.coordinates:
        units = None if path is None else nodes[path].attributes.get("units")
        if isinstance(units, str) and projections.is_other_unit(units, None):
            return f"its false easting and northing are in the unit of the coordinates, {units!r}"
    return ""


# -- what is written ---------------------------------------------------------------------------------------------------


def _as_geozarr(said: _Said, nodes: Nodes, place: Georeference, axes: Axes, transform: Affine | None, why: str) -> None:
    if place.crs is not None and proj.said_of(said.path, nodes) is None:
        mapping = _mapping(said.path, nodes)
        why_not = _why_not_in_metres(place.crs, mapping, nodes, axes)
        _add(said, Form({}, (), why_not) if why_not else projections.as_proj(place.crs, mapping), "proj:", place)
    there = spatial.placement_of(said.path, nodes)
    if there is not None and (there.transform is not None or there.bbox is not None):
        return
    if transform is None:
        said.remarks.append(f"no spatial: is written, as {why}")
        return
    node: Any = nodes[said.path]
    shape = node.shape[axes.at[0]], node.shape[axes.at[1]]
    registration = "pixel" if there is None else there.registration
    if registration == "node":
        transform = transform._replace(
            c=transform.c + (transform.a + transform.b) / 2, f=transform.f + (transform.d + transform.e) / 2
        )
    said.attributes |= {
        spatial.DIMENSIONS: list(axes.names),
        spatial.TRANSFORM: list(transform),
        spatial.BBOX: list(transform.bounds(*shape, registration)),
    }


def _as_gdal(said: _Said, nodes: Nodes, place: Georeference, axes: Axes, transform: Affine | None) -> None:
    if place.crs is not None and gdal.system_of(nodes[said.path]) is None:
        mapping = _mapping(said.path, nodes)
        why_not = _why_not_in_metres(place.crs, mapping, nodes, axes)
        _add(said, Form({}, (), why_not) if why_not else projections.as_gdal(place.crs, mapping), gdal.CRS, place)
    _add_coordinates(said, nodes, place, axes, transform)


def _as_cf(said: _Said, nodes: Nodes, place: Georeference, axes: Axes, transform: Affine | None) -> None:
    _add_coordinates(said, nodes, place, axes, transform)
    is_rotated = transform is not None and not transform.is_straight
    mapping = _mapping(said.path, nodes)
    if place.crs is None or mapping is not None:
        if is_rotated and georeference.GEOTRANSFORM not in (mapping or {}):
            said.lose("its place", _ROTATED.format(_TITLES[CF]))
        return
    form = projections.as_mapping(place.crs)
    if not form.attributes:
        _add(said, form, cf.GRID_MAPPING, place)
        if is_rotated:
            said.lose("its place", _ROTATED.format(_TITLES[CF]))
        return
    group, _, own = said.path.rpartition("/")
    if not own:
        said.lose("a grid mapping", "the array is alone: convert its group, in which there is room for one")
        return
    attributes = dict(form.attributes)
    if transform is not None:
        attributes[georeference.GEOTRANSFORM] = " ".join(map(repr, map(float, transform.of_gdal())))
    if is_rotated:
        said.remarks.append("the map is rotated: GeoTransform alone says its place, which CF does not define")
    name, is_new = _free(nodes, group, attributes)
    said.remarks += form.remarks
    said.attributes[cf.GRID_MAPPING] = name
    if is_new:
        said.added.append(Added(_in(group, name), (), np.zeros((), "i4"), attributes))


def _free(nodes: Nodes, group: str, attributes: dict[str, JSON]) -> tuple[str, bool]:
    """Return a name for a grid mapping in a group, and whether it is new: arrays with the same one share it."""
    made = nodes.memos.setdefault((_MADE, f"{group}/"), {})
    for name, there in made.items():
        if there == attributes:
            return name, False
    number = 0
    while (name := f"{projections.MAPPING}_{number}" if number else projections.MAPPING) in made or (
        _in(group, name) in nodes
    ):
        number += 1
    made[name] = attributes
    return name, True


def _add(said: _Said, form: Form, what: str, place: Georeference) -> None:
    """Add the attributes of a form, or account for what it cannot say."""
    said.attributes |= form.attributes
    said.remarks += form.remarks
    if not form.attributes and place.crs is not None:
        said.lose(f"the coordinate reference system {place.crs.label}, as {what}", form.why)


def _add_coordinates(said: _Said, nodes: Nodes, place: Georeference, axes: Axes, transform: Affine | None) -> None:
    """Add coordinates along y and x where there are none, as the transform gives them."""
    missing = [number for number, path in enumerate(axes.coordinates) if path is None]
    if not missing or transform is None:
        return
    if not transform.is_straight:
        if nodes.wishes[NAME] == GDAL:
            said.lose("its place", _ROTATED.format(_TITLES[GDAL]))
        return
    group, _, own = said.path.rpartition("/")
    if not own:
        said.lose("its place", "the array is alone: convert its group, in which there is room for coordinates")
        return
    node: Any = nodes[said.path]
    made = nodes.memos.setdefault((_COORDINATE, f"{group}/"), {})
    starts = (transform.f, transform.e), (transform.c, transform.a)
    for number in missing:
        name, (start, step) = axes.names[number], starts[number]
        line = start + step / 2, step, node.shape[axes.at[number]]
        if made.setdefault(name, line) != line or _in(group, name) in nodes:
            said.lose(f"its coordinates along {name!r}", f"another array is or becomes {_in(group, name)!r}")
        elif (name, "added") not in made:
            made[name, "added"] = line
            values = line[0] + step * np.arange(line[2])
            attributes: dict[str, JSON] = dict(projections.of_axis(place.crs, "X" if number else "Y"))
            said.added.append(Added(_in(group, name), (name,), values, attributes))


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
