"""Where on the earth an array lies: what the registered conventions, GDAL, CF and GeoTIFF say of it.

The first that says something counts: ``proj:`` and ``spatial:``, GDAL's ``_CRS``, a grid mapping of CF, and the
attributes that omnizarr gives to GeoTIFF. Coordinates of CF are elements, so they are not looked at here.

Spec: the modules of `registered`; GDAL, "Zarr driver"; CF conventions, section 5.6, "Horizontal Coordinate Reference
Systems, Grid Mappings, and Projections".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from omnizarr.formats.conventions import axes, gdal
from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.registered import cf, proj, spatial
from omnizarr.formats.conventions.registered.proj import Crs
from omnizarr.formats.conventions.registered.records import numbers
from omnizarr.formats.conventions.registered.spatial import Affine, Placement
from omnizarr.model import ArrayMetadata, dimensions

GEOTRANSFORM: Final = "GeoTransform"
"""GDAL's attribute of a grid mapping: its six numbers, as a text."""
_OF_TIFF: Final = "geotransform"
_WKT: Final = (cf.CRS_WKT, "spatial_ref")


class Georeference(NamedTuple):
    """What is known of the place of an array.

    Attributes
    ----------
    crs : Crs or None
    placement : Placement or None
    sources : tuple of str
        The conventions that say it.
    """

    crs: Crs | None
    placement: Placement | None
    sources: tuple[str, ...]


def of(path: str, nodes: Nodes) -> Georeference | None:
    """Return the place of the array at a path, or of the arrays of a group; None if nothing says it."""
    node = nodes[path]
    if isinstance(node, ArrayMetadata) and len(node.shape) < 2:
        return None
    crs, placement = proj.said_of(path, nodes), spatial.placement_of(path, nodes)
    sources = ["proj:"] if crs is not None else []
    sources += ["spatial:"] if placement is not None else []
    if isinstance(node, ArrayMetadata):
        if crs is None:
            crs = gdal.system_of(node)
            sources += ["GDAL"] if crs is not None else []
        mapping = grid_mapping(path, node, nodes)
        if crs is None and mapping is not None:
            crs = system_of_mapping(mapping)
            sources += ["CF"] if crs is not None else []
        if placement is None:
            transform = _transform_of_mapping(mapping or {}) or _transform_of_tiff(path, nodes)
            names = rows_and_columns(node)
            if transform is not None and names is not None:
                own = dimensions.names_of(node) or ()
                shape = (node.shape[own.index(names[0])], node.shape[own.index(names[1])])
                placement = Placement(names, transform, shape)
                sources += ["GDAL"] if "GDAL" not in sources else []
    found = crs is not None or placement is not None
    return Georeference(crs, placement, tuple(sources)) if found else None


def rows_and_columns(array: ArrayMetadata) -> tuple[str, str] | None:
    """Return the names of the dimensions of an array that are y and x by their names; None if it has not both."""
    names = dimensions.names_of(array) or ()
    roles = {axes.role_of(name, names=names): name for name in reversed(names) if name}
    rows, columns = roles.get("y"), roles.get("x")
    return (rows, columns) if rows is not None and columns is not None else None


def grid_mapping(path: str, array: ArrayMetadata, nodes: Nodes) -> Mapping[str, Any] | None:
    """Return the attributes of the grid mapping that an array names; None if it names none, or it is not there."""
    said = array.attributes.get(cf.GRID_MAPPING)
    name = said.split(":")[0].strip() if isinstance(said, str) else ""
    if not name or "/" in name or not path:
        return None
    found = next((node for at in cf.places_of(path, name) if (node := nodes.get(at)) is not None), None)
    return found.attributes if isinstance(found, ArrayMetadata) else None


def system_of_mapping(mapping: Mapping[str, Any]) -> Crs | None:
    """Return the coordinate reference system of a grid mapping: its WKT, else its name alone."""
    wkt = next((text for name in _WKT if isinstance(text := mapping.get(name), str) and text), None)
    name = mapping.get("grid_mapping_name")
    if wkt is None and not isinstance(name, str):
        return None
    return Crs(wkt=wkt, other=None if wkt is not None else f"grid mapping {name}")


def _transform_of_mapping(mapping: Mapping[str, Any]) -> Affine | None:
    said = mapping.get(GEOTRANSFORM)
    try:
        return of_gdal([float(each) for each in said.split()]) if isinstance(said, str) else None
    except ValueError:
        return None


def _transform_of_tiff(path: str, nodes: Nodes) -> Affine | None:
    for at in (path, path.rpartition("/")[0]):
        node = nodes.get(at)
        found = of_gdal(node.attributes.get(_OF_TIFF)) if node is not None else None
        if found is not None:
            return found if at == path else None  # of a group, it is that of the full resolution
    return None


def of_gdal(six: object) -> Affine | None:
    """Return the transform from GDAL's order of its numbers; None if there are no six."""
    found = numbers(six, 6)
    return None if found is None else Affine(found[1], found[2], found[0], found[4], found[5], found[3])
