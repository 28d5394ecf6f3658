"""GDAL's convention for georeferenced arrays: the attribute ``_CRS`` is their coordinate reference system.

GDAL uses the fill value of an array as its nodata value, in v3, too. So the fill value does not change.

Spec: GDAL, "Zarr driver", "SRS encoding"; GeoZarr.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.formats.conventions.registered.proj import Crs
from omnizarr.formats.reader import is_object
from omnizarr.model import ArrayMetadata, Metadata

CRS: Final = "_CRS"
_FORMS: Final = ("wkt", "projjson", "url")
_URL: Final = re.compile(r"https?://www\.opengis\.net/def/crs/([^/]+)/[^/]*/([^/]+)")
_URL_OF: Final = "http://www.opengis.net/def/crs/{}/0/{}"


def is_georeferenced(node: Metadata) -> bool:
    """Return whether GDAL knows the coordinate reference system of an array."""
    return isinstance(node, ArrayMetadata) and CRS in node.attributes


def system_of(node: Metadata) -> Crs | None:
    """Return the coordinate reference system of an array in all forms that ``_CRS`` has; None without one."""
    said = node.attributes.get(CRS)
    if not is_object(said):
        return None
    wkt, projjson, url = (said.get(form) for form in _FORMS)
    found = _URL.fullmatch(url) if isinstance(url, str) else None
    code = f"{found[1]}:{found[2]}" if found is not None else None
    crs = Crs(code, wkt if isinstance(wkt, str) else None, projjson if is_object(projjson) else None)
    return crs if crs != Crs() else None


def attributes(crs: Crs) -> dict[str, Any]:
    """Return ``_CRS`` for a coordinate reference system; nothing if GDAL has no form for it.

    >>> attributes(Crs("EPSG:32633"))
    {'_CRS': {'url': 'http://www.opengis.net/def/crs/EPSG/0/32633'}}
    """
    authority, _, code = (crs.code or "").partition(":")
    said = {"wkt": crs.wkt, "projjson": crs.projjson, "url": _URL_OF.format(authority, code) if code else None}
    kept = {form: value for form, value in said.items() if value is not None}
    return {CRS: kept} if kept else {}


def _recognise(path: str, nodes: Nodes) -> bool:
    return is_georeferenced(nodes[path])


def _carry(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    return Carried(metadata)


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    crs = nodes[path].attributes[CRS]
    if not isinstance(crs, Mapping) or not any(form in crs for form in _FORMS):
        message = "a coordinate reference system in no form that GDAL reads"
        yield Fault("crs-unreadable", path, f"/attributes/{CRS}", message, crs, f"one of {', '.join(_FORMS)}")


GDAL: Final = Convention(
    name="gdal",
    title="GDAL",
    spec="https://gdal.org/drivers/raster/zarr.html",
    attributes=frozenset({CRS}),
    recognise=_recognise,
    carry=_carry,
    faults=_faults,
)
