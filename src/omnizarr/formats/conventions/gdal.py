"""GDAL's convention for georeferenced arrays: the attribute ``_CRS`` is their coordinate reference system.

GDAL uses the fill value of an array as its nodata value, in v3, too. So the fill value does not change.

Spec: GDAL, "Zarr driver", "SRS encoding"; GeoZarr.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.model import ArrayMetadata, Metadata

_CRS: Final = "_CRS"
_FORMS: Final = ("wkt", "projjson", "url")


def is_georeferenced(node: Metadata) -> bool:
    """Return whether GDAL knows the coordinate reference system of an array."""
    return isinstance(node, ArrayMetadata) and _CRS in node.attributes


def _recognise(path: str, nodes: Nodes) -> bool:
    return is_georeferenced(nodes[path])


def _carry(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    return Carried(metadata)


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    crs = nodes[path].attributes[_CRS]
    if not isinstance(crs, Mapping) or not any(form in crs for form in _FORMS):
        message = "a coordinate reference system in no form that GDAL reads"
        yield Fault("crs-unreadable", path, f"/attributes/{_CRS}", message, crs, f"one of {', '.join(_FORMS)}")


GDAL: Final = Convention(
    name="gdal",
    title="GDAL",
    spec="https://gdal.org/drivers/raster/zarr.html",
    attributes=frozenset({_CRS}),
    recognise=_recognise,
    carry=_carry,
    faults=_faults,
)
