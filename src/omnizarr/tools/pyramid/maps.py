"""The GeoZarr metadata of a map: its place on the earth, and its present or future resolutions.

A map in a new place has a group for each resolution, with its coordinates, so that programs that do not know the
conventions find its place, too. Beside an array, resolutions are arrays in the same group.

Spec: https://github.com/zarr-conventions, multiscales, spatial: and proj:.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from omnizarr.api.creating import create_array
from omnizarr.errors import MetadataError, NotRepresentableError, OmnizarrError, Remedy
from omnizarr.formats.conventions import gdal, georeference, presentation, projections
from omnizarr.formats.conventions.registered import cf, multiscales, proj, records, spatial
from omnizarr.formats.conventions.registered.proj import Crs
from omnizarr.formats.conventions.registered.spatial import Affine
from omnizarr.model import ArrayMetadata, GroupMetadata, dimensions, thawed
from omnizarr.nodes import detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.showing.around import Around
from omnizarr.tools.pyramid.images import Axis, Image, Level, without_group

_MOST_COORDINATES: Final = 2**24
_REGULAR: Final = 0.01
"""How many steps a coordinate may be off its place: coordinates are often stored as float32."""
_OF_ONE_LEVEL: Final = frozenset({
    *spatial.SPATIAL.keys, *proj.PROJ.keys, records.LIST, multiscales.KEY, proj.GEO, "geotransform", "GeoKeys", "crs",
    "ModelPixelScale", "ModelTiepoint", "ModelTransformation",
})  # fmt: skip
"""Attributes of an array that its resolutions do not get: their group says it, or it is not true of them."""
_RESAMPLED: Final = {"mean": "average", "nearest": "nearest", "mode": "mode", "max": "max", "min": "min"}


@dataclass(frozen=True, slots=True)
class Map(Image):
    """A map whose resolutions are to be made.

    Attributes
    ----------
    rows_columns : (int, int)
        The dimensions of y and x.
    transform : Affine
    registration : str
    crs : Crs or None
    name : str
        Of the array in the group of each resolution; "" if the resolutions are arrays in one group.
    mapping : mapping
        Attributes of the grid mapping that the array names.
    said_of_axes : mapping of str to mapping
        Attributes of the coordinates, by name.
    """

    rows_columns: tuple[int, int]
    transform: Affine
    registration: str
    crs: Crs | None
    name: str
    mapping: Mapping[str, Any]
    said_of_axes: Mapping[str, Mapping[str, Any]]

    def path_of(self, number: int) -> str:
        """Return the path of a level below the first."""
        if self.name:
            return f"{number}/{self.name}"
        return str(int(self.first.path) + number) if self.first.path.isdecimal() else f"{self.first.path}_{number}"

    def asset_of(self, level: Level) -> str:
        """Return what the layout calls a level."""
        return level.path.rpartition("/")[0] or level.path if self.name else level.path

    def transform_of(self, level: Level) -> Affine:
        """Return the transform of a level."""
        at_y, at_x = self.rows_columns
        fy, fx = (level.scale[axis] / self.first.scale[axis] for axis in (at_y, at_x))
        made = self.transform
        made = made._replace(a=made.a * fx, b=made.b * fy, d=made.d * fx, e=made.e * fy)
        if self.registration == "node":  # of the centres of elements, which move
            row, column = (
                (level.translation[axis] - self.first.translation[axis]) / self.first.scale[axis]
                for axis in (at_y, at_x)
            )
            x, y = self.transform.at(column, row)
            made = made._replace(c=x, f=y)
        return made

    def shape_of(self, level: Level) -> tuple[int, int]:
        """Return the rows and columns of a level."""
        return level.shape[self.rows_columns[0]], level.shape[self.rows_columns[1]]

    def said(self, levels: Sequence[Level], method: str) -> dict[str, Any]:
        """Return the attribute ``multiscales`` with the levels."""
        layout: list[dict[str, Any]] = []
        for number, level in enumerate(levels):
            above = levels[max(number - 1, 0)]
            scale = [now / was for now, was in zip(level.scale, above.scale, strict=True)]
            moved = [
                (now - was) / step if self.registration == "node" else 0.0
                for now, was, step in zip(level.translation, above.translation, above.scale, strict=True)
            ]
            layout.append(
                {
                    "asset": self.asset_of(level),
                    **({"derived_from": self.asset_of(above)} if number else {}),
                    "transform": {"scale": scale, "translation": moved},
                    **({"resampling_method": _RESAMPLED[method]} if number else {}),
                    spatial.SHAPE: list(self.shape_of(level)),
                    spatial.TRANSFORM: list(self.transform_of(level)),
                }
            )
        return {"layout": layout, **({"resampling_method": _RESAMPLED[method]} if len(levels) > 1 else {})}

    def attributes(self, old: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of the group with another ``multiscales``."""
        at_y, at_x = self.rows_columns
        known = [multiscales.MULTISCALES, spatial.SPATIAL, *([proj.PROJ] if self.crs is not None else [])]
        bounds = self.transform.bounds(*self.shape_of(self.first), self.registration)
        said = {
            **{name: value for name, value in old.items() if name not in _OF_ONE_LEVEL or name == records.LIST},
            multiscales.KEY: dict(entry),
            spatial.DIMENSIONS: [self.names[at_y], self.names[at_x]],
            spatial.BBOX: list(bounds),
            **({spatial.REGISTRATION: self.registration} if self.registration != "pixel" else {}),
            **_written(self.crs),
        }
        return records.with_records(said, known)

    def of_level(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of the array of a level, from those of the full resolution."""
        kept = {name: value for name, value in attributes.items() if name not in _OF_ONE_LEVEL}
        if self.crs is None:
            return kept
        kept |= {} if gdal.CRS in kept else gdal.attributes(self.crs)
        if self.name and self.mapping and cf.GRID_MAPPING not in kept:
            kept[cf.GRID_MAPPING] = projections.MAPPING
        return kept

    def accompany(self, levels: Sequence[Level]) -> None:
        """Write coordinates and grid mapping beside the array of each level, if it has a group of its own."""
        if not self.name:
            return
        at_y, at_x = self.rows_columns
        first = detection.open_array(self.group.where / self.first.path)
        full = Array(first.where, first.metadata)
        for name, value in self.of_level(full.attrs.asdict()).items():
            if name not in full.attrs:
                full.attrs[name] = value
        mapping = str(full.attrs.get(cf.GRID_MAPPING, projections.MAPPING)).split(":")[0].strip()
        for level in levels:
            group = self.group.where / self.asset_of(level)
            transform = self.transform_of(level)
            if transform.is_straight:
                half = 0.0 if self.registration == "node" else 0.5
                for axis, start, step in ((at_y, transform.f, transform.e), (at_x, transform.c, transform.a)):
                    values = start + step * (np.arange(level.shape[axis]) + half)
                    known = self.said_of_axes.get(self.names[axis], {})
                    said = {**projections.of_axis(self.crs, "Y" if axis == at_y else "X"), **known}
                    _write(group, self.names[axis], values, (self.names[axis],), said)
            if self.mapping and mapping and "/" not in mapping:
                six = " ".join(map(repr, transform.of_gdal()))
                _write(group, mapping, np.zeros((), "i4"), (), {**self.mapping, georeference.GEOTRANSFORM: six})

    def remarks(self, method: str) -> tuple[str, ...]:
        """Return what to know about the map."""
        found = []
        if self.crs is None:
            found.append("no coordinate reference system is known: set proj:code in the group, if there is one")
        elif self.name and not self.mapping:
            found.append("without pyproj, xarray finds the system only in proj:code, and GDAL in _CRS")
        if not self.name:
            found.append(
                "the resolutions are arrays of one group, which xarray cannot open; a target gives each its own"
            )
        return tuple(found)

    def placed(self, where: StorePath) -> Map:
        """Return the map in a new group, which may have some of its levels."""
        group = detection.open_group(where)
        return replace(self, group=group, **_listed(group.metadata, self))


def _write(group: StorePath, name: str, values: Any, names: tuple[str, ...], said: Mapping[str, Any]) -> None:
    create_array(group / name, data=values, dimension_names=names, attributes=dict(said), zarr_format=3, overwrite=True)


def _written(crs: Crs | None) -> dict[str, Any]:
    """Return the one form of a system that is written: texts before v0.1 allow no second one."""
    said = {} if crs is None else crs.attributes()
    form = next((key for key in (proj.CODE, proj.WKT, proj.PROJJSON) if key in said), None)
    return {} if form is None else {form: thawed(said[form])}


# -- finding out -------------------------------------------------------------------------------------------------------


def of_new(found: Found[ArrayMetadata]) -> Map:
    """Return the map in a new group, whose full resolution is a copy of an array. Raises the errors of `find`."""
    name = found.where.name or "data"
    return _map(found, Found(found.where, GroupMetadata(dialect="v3")), f"0/{name}", name)


def find(where: StorePath) -> Map:
    """Return the map of a group, or the map whose full resolution is the array at a place.

    Raises
    ------
    NotRepresentableError
        If the conventions cannot express it: the format is not Zarr v3, or its place is not known or not regular.
    MetadataError
        If a group is no map.
    """
    found = detection.open_node(where)
    if isinstance(found.metadata, GroupMetadata):
        group = Found(found.where, found.metadata)
        entries = multiscales.layout(found.metadata)
        asset = multiscales.asset_of(entries[0]) if entries else None
        if asset is None:
            raise MetadataError(
                "the group has no resolutions",
                store=str(where.store),
                path=where.path,
                remedy="name the array that is the full resolution",
            )
        first = detection.open_node(group.where / asset)
        name = ""
        if isinstance(first.metadata, GroupMetadata):
            name = _only_array(first.where)
            first = detection.open_node(first.where / name)
        path = f"{asset}/{name}" if name else asset
        made = _map(Found(first.where, _array(first)), group, path, name)
        return replace(made, **_listed(group.metadata, made))
    if not found.where.path:
        raise without_group(where)
    group = detection.open_group(found.where.parent)
    made = _map(Found(found.where, _array(found)), group, found.where.name, "")
    return replace(made, **_listed(group.metadata, made))


def is_map(found: Found[Any]) -> bool:
    """Return whether a node is a group that lists resolutions of a map."""
    return bool(multiscales.layout(found.metadata))


def _array(found: Found[Any]) -> ArrayMetadata:
    if isinstance(found.metadata, ArrayMetadata):
        return found.metadata
    raise MetadataError("the full resolution is no array", store=str(found.where.store), path=found.where.path)


def _only_array(group: StorePath) -> str:
    """Return the name of the array of a resolution that has rows and columns."""
    names = [
        found.where.name
        for found in (detection.detect(group / each) for each in detection.children(group))
        if found is not None and isinstance(found.metadata, ArrayMetadata) and len(found.metadata.shape) >= 2
    ]
    if len(names) == 1:
        return names[0]
    raise MetadataError(
        "the resolution has several arrays, or none",
        store=str(group.store),
        path=group.path,
        found=", ".join(names) or "none",
        remedy="make the levels of each array in a place of its own",
    )


def _listed(group: GroupMetadata, made: Map) -> dict[str, Any]:
    """Return the entry and the other levels of a group that lists the map."""
    entry = thawed(group.attributes.get(multiscales.KEY))
    entries = multiscales.layout(group)
    if not isinstance(entry, dict) or not entries or multiscales.asset_of(entries[0]) != made.asset_of(made.first):
        return {"entry": {}, "others": ()}
    assets = [asset for each in entries[1:] if (asset := multiscales.asset_of(each)) is not None]
    return {"entry": entry, "others": tuple(f"{asset}/{made.name}" if made.name else asset for asset in assets)}


def _map(found: Found[ArrayMetadata], group: Found[GroupMetadata], path: str, name: str) -> Map:
    where, array = found.where, found.metadata
    if array.dialect != "v3":
        raise NotRepresentableError(
            "GeoZarr needs the names of dimensions of Zarr v3",
            store=str(where.store),
            path=where.path,
            found=array.dialect,
            remedy="convert it to v3 first",
        )
    node = Array(where, array)
    around = Around(node)
    nodes = around.nodes()
    place = georeference.of(where.path, nodes) if len(array.shape) >= 2 else None
    known = presentation.dimensions_of(where.path, array, nodes, None)
    own = dimensions.names_of(array) or ()
    rows_columns = presentation.rows_and_columns(array, known, place)
    if rows_columns is None or not all(own):
        raise NotRepresentableError(
            "the array has no dimensions that are known to be y and x",
            store=str(where.store),
            path=where.path,
            found=f"dimensions {list(own)}" if own else "dimensions without names",
            remedy="name its dimensions, as y and x or lat and lon",
        )
    at_y, at_x = rows_columns
    placement = (place.placement if place is not None else None) or spatial.Placement()
    transform, registration = placement.transform, placement.registration
    coordinates = {axis: known[axis].coordinate for axis in (at_y, at_x)}
    if transform is None:
        transform = _of_coordinates(around, where, array, coordinates, at_y, at_x)
    if not transform.is_invertible:
        raise NotRepresentableError(
            "the transform of the array cannot be undone", store=str(where.store), path=where.path, found=str(transform)
        )
    mapping = georeference.grid_mapping(where.path, array, nodes)
    crs = _system(place.crs if place is not None else None, mapping, where)
    if mapping is None and crs is not None and crs.wkt is not None:
        mapping = projections.as_mapping(crs).attributes
    steps = [1.0] * len(own)
    starts = [0.0] * len(own)
    if transform.is_straight:
        (starts[at_y], steps[at_y]), (starts[at_x], steps[at_x]) = transform.lines(registration)
    axes = tuple(Axis(str(each), "space" if number in (at_y, at_x) else "other") for number, each in enumerate(own))
    said_of_axes = {
        str(own[axis]): {key: thawed(value) for key, value in nodes[at].attributes.items()}
        for axis, at in coordinates.items()
        if at is not None
    }
    return Map(
        group=group,
        version="",
        axes=axes,
        first=Level(path, tuple(array.shape), tuple(steps), tuple(starts)),
        others=(),
        entry={},
        is_label=False,
        has_flat_chunks=False,
        rows_columns=rows_columns,
        transform=transform,
        registration=registration,
        crs=crs,
        name=name,
        mapping={key: thawed(value) for key, value in (mapping or {}).items()},
        said_of_axes=said_of_axes,
    )


def _of_coordinates(
    around: Around, where: StorePath, array: ArrayMetadata, coordinates: Mapping[int, str | None], at_y: int, at_x: int
) -> Affine:
    """Return the transform that the coordinates of the centres of elements give."""
    found: dict[int, tuple[float, float]] = {}
    for axis in (at_y, at_x):
        path = coordinates[axis]
        values = None
        if path is not None and array.shape[axis] <= _MOST_COORDINATES:
            node = around.array(path)
            values = None if node is None else np.asarray(node[...])
        place = {"store": str(where.store), "path": where.path}
        if values is None or values.ndim != 1 or values.dtype.kind not in "iuf" or len(values) < 2:
            raise NotRepresentableError(
                "nothing says where the array lies: it has no transform, and no coordinates for y and x",
                **place,
                remedy="set spatial:dimensions, spatial:transform and proj:code as its attributes",
            )
        values = values.astype("f8")
        step = (values[-1] - values[0]) / (len(values) - 1)
        off = np.abs(values - (values[0] + step * np.arange(len(values))))
        if not np.isfinite(values).all() or step == 0 or off.max() > _REGULAR * abs(step):
            raise NotRepresentableError(
                "the coordinates are not at equal distances, so no transform gives them", **place, found=repr(path)
            )
        found[axis] = (float(values[0] - step / 2), float(step))
    return Affine(found[at_x][1], 0.0, found[at_x][0], 0.0, found[at_y][1], found[at_y][0])


def _system(crs: Crs | None, mapping: Mapping[str, Any] | None, where: StorePath) -> Crs | None:
    """Return a coordinate reference system with a code or WKT2, and with WKT if pyproj is there to write it."""
    if crs is None:
        return None
    known = proj.systems_of_proj()
    try:
        if known is not None:
            given = crs.code or crs.identifier or crs.projjson or crs.wkt
            system = known.from_user_input(thawed(_wkt_of(crs, mapping, where) if given is None else given))
            code = crs.code or crs.identifier
            if code is None and (authority := system.to_authority(min_confidence=100)) is not None:
                code = ":".join(authority)
            return Crs(code=code, wkt=system.to_wkt())
    except NotRepresentableError:
        raise
    except Exception as error:
        raise _unknown(crs, where, str(error)) from error
    if crs.wkt is not None and crs.identifier is None and crs.code is None and crs.wkt[:6] in ("PROJCS", "GEOGCS"):
        raise _unknown(crs, where, "WKT1 without a code")
    if crs.code or crs.wkt or crs.projjson:
        return crs if crs.code is not None else crs._replace(code=crs.identifier)
    raise _unknown(crs, where, crs.label)


def _wkt_of(crs: Crs, mapping: Mapping[str, Any] | None, where: StorePath) -> str:
    """Return the text of a system that attributes of CF say. Raises NotRepresentableError if they do not say all."""
    exact = projections.as_proj(crs, mapping)
    if not exact.attributes:
        raise _unknown(crs, where, exact.why)
    return str(exact.attributes[proj.WKT])


def _unknown(crs: Crs, where: StorePath, why: str) -> OmnizarrError:
    return NotRepresentableError(
        "the coordinate reference system cannot be written as proj:",
        store=str(where.store),
        path=where.path,
        found=f"{crs.label}: {why}" if why != crs.label else why,
        remedy=Remedy("install pyproj, which knows more systems, or set proj:code"),
    )
