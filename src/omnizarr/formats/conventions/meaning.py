"""What the conventions say of one node, for all that describes nodes: place on the earth, resolutions, licence, unit.

It is made of plain values, so that it can be JSON as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from omnizarr.formats.conventions import georeference
from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.registered import REGISTERED, dggs, licence, multiscales, records, uom
from omnizarr.formats.conventions.registered.spatial import Placement
from omnizarr.formats.reader import is_object
from omnizarr.model import JSON

_MOST_LEVELS = 32
_MOST_RECORDS = 32


def of(path: str, nodes: Nodes) -> dict[str, JSON]:
    """Return what conventions say of the node at a path; only members about which a convention says something.

    Nodes around it that `nodes` does not have say nothing.

    Returns
    -------
    dict
        With ``conventions`` (names), ``crs``, ``transform`` (of column and row to x and y), ``resolution`` (of x, y),
        ``bounds`` (smallest x and y, largest x and y), ``registration``, ``spatial_dimensions`` (of y and x),
        ``georeferenced_by``, ``grid`` (of cells: ``name``, ``level``, ``dimension``, ``coordinate``, ...),
        ``levels``, ``license``, ``unit``.
    """
    node = nodes[path]
    found: dict[str, JSON] = {}
    names = [_name(record) for record in records.listed(node)[:_MOST_RECORDS]]
    if names:
        found["conventions"] = names
    place = georeference.of(path, nodes)
    if place is not None:
        if place.crs is not None:
            found["crs"] = place.crs.label
        if place.placement is not None:
            found |= _of_placement(place.placement)
        found["georeferenced_by"] = list(place.sources)
    levels = [_level(path, entry, nodes) for entry in multiscales.layout(node)[:_MOST_LEVELS]]
    if levels:
        found["levels"] = levels
    grid = dggs.said_of(path, nodes)
    if grid is not None:
        found["grid"] = grid.plain()
    said = licence.said_of(path, nodes)
    if said is not None:
        found["license"] = said
    unit = uom.unit_of(node)
    if unit is not None:
        found["unit"] = unit
    return found


def _of_placement(placement: Placement) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    if placement.transform is not None:
        found["transform"] = list(placement.transform)
        found["resolution"] = list(placement.transform.resolution)
    if placement.bounds is not None:
        found["bounds"] = list(placement.bounds)
    if placement.transform is not None or placement.bounds is not None:
        found["registration"] = placement.registration
    if placement.dimensions is not None:
        found["spatial_dimensions"] = list(placement.dimensions)
    return found


def _name(record: Any) -> str:
    known = next((each.name for each in REGISTERED if each.is_meant_by(record)), None)
    if known is not None:
        return known
    if not is_object(record):
        return "?"
    return str(next((record[key] for key in ("name", *records.IDENTIFIERS) if key in record), "?"))


def _level(path: str, entry: Any, nodes: Nodes) -> JSON:
    arrays = multiscales.arrays(path, entry, nodes)
    shape = max((array.shape for array in arrays.values()), key=len, default=None)
    said = entry.get("spatial:shape") if is_object(entry) else None
    how = entry.get("transform") if is_object(entry) else None
    scale = records.numbers(how.get("scale")) if is_object(how) else None
    lengths = list(shape) if shape is not None else list(records.lengths(said, 2) or ()) or None
    return {
        "path": multiscales.asset_of(entry),
        **({"shape": lengths} if lengths else {}),
        **({"scale": list(scale)} if scale else {}),
    }


def rows(meaning: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what `of` returns as rows of text.

    >>> list(rows({"crs": "EPSG:32633", "resolution": [10.0, 10.0], "license": "CC0-1.0"}))
    [('CRS', 'EPSG:32633'), ('resolution', '10 x 10'), ('license', 'CC0-1.0')]
    """
    if "crs" in meaning:
        yield "CRS", meaning["crs"]
    if "bounds" in meaning:
        left, bottom, right, top = map(_number, meaning["bounds"])
        centres = " (centres of elements)" if meaning.get("registration") == "node" else ""
        yield "bounds", f"x {left} to {right}, y {bottom} to {top}{centres}"
    if "resolution" in meaning:
        yield "resolution", " x ".join(map(_number, meaning["resolution"]))
    if "grid" in meaning:
        yield "grid", _of_grid(meaning["grid"])
    if "levels" in meaning:
        yield "levels", ", ".join(_words(level) for level in meaning["levels"])
    if "unit" in meaning:
        yield "unit", meaning["unit"]
    if "license" in meaning:
        yield "license", meaning["license"]
    if "conventions" in meaning:
        yield "follows", ", ".join(meaning["conventions"])


def _of_grid(grid: Mapping[str, Any]) -> str:
    level = f"level {grid['level']}" if "level" in grid else "several levels"
    ids = f"ids in {grid['coordinate']}" if "coordinate" in grid else "all cells"
    compressed = f" ({grid['compression']})" if grid["compression"] != "none" else ""
    scheme = [grid["scheme"]] if "scheme" in grid else []
    return ", ".join([grid["name"], level, *scheme, f"cells along {grid['dimension']}", f"{ids}{compressed}"])


def _words(level: Mapping[str, Any]) -> str:
    shape = level.get("shape")
    return f"{level['path']} ({' x '.join(map(str, shape))})" if shape else str(level["path"])


def _number(value: float) -> str:
    return f"{value:.10g}"
