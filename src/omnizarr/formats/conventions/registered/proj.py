"""``proj:``: the coordinate reference system (CRS) of arrays.

A group says it for the arrays directly below it, and for those of its resolutions; an array for itself.

Spec: https://github.com/zarr-conventions/proj, v0.1. Versions before it were geo-proj, and the object ``geo`` of
zarr-extensions#21.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NamedTuple

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered import multiscales
from omnizarr.formats.conventions.registered.records import Checking, Known, unchanged
from omnizarr.formats.reader import is_object
from omnizarr.model import Metadata

CODE: Final = "proj:code"
WKT: Final = "proj:wkt2"
PROJJSON: Final = "proj:projjson"
GEO: Final = "geo"
"""The attribute of zarr-extensions#21: an object with ``proj``, which has the same members without prefix."""
_CODE: Final = re.compile("[^:]+:[^:]+")
_NAMED: Final = re.compile(r'\s*[A-Z_]+\s*\[\s*"((?:[^"]|"")*)"')
_IDENTIFIED: Final = re.compile(r'(?:ID|AUTHORITY)\s*\[\s*"([^"]+)"\s*,\s*"?([^"\],]+)"?[^\]]*\]\s*\]\s*\Z')

PROJ: Final = Known(
    name="proj",
    uuid="f17cb550-5864-4468-aeb7-f3180cfb622f",
    schema_url="https://raw.githubusercontent.com/zarr-conventions/proj/refs/tags/v0.1/schema.json",
    spec_url="https://github.com/zarr-conventions/proj/blob/v0.1/README.md",
    description="Coordinate reference system information for geospatial data",
    repositories=("zarr-conventions/proj", "zarr-conventions/geo-proj", "zarr-experimental/geo-proj"),
    keys=(CODE, WKT, PROJJSON),
    nodes=("array", "group"),
    state="pilot",
)


class Crs(NamedTuple):
    """A coordinate reference system, in all forms that are known.

    Attributes
    ----------
    code : str or None
        ``"EPSG:32633"``.
    wkt : str or None
    projjson : mapping or None
    other : str or None
        A name of CF's grid mapping, where nothing else is known.
    """

    code: str | None = None
    wkt: str | None = None
    projjson: Mapping[str, Any] | None = None
    other: str | None = None

    @property
    def label(self) -> str:
        """Code and name, as far as they are known.

        >>> Crs(wkt='GEOGCS["WGS 84",AUTHORITY["EPSG","4326"]]').label
        'EPSG:4326 (WGS 84)'
        """
        code, name = self.code or self.identifier, self.name
        return f"{code} ({name})" if code and name else code or name or self.other or "unknown"

    @property
    def name(self) -> str | None:
        """The name that the text or the object gives."""
        if self.projjson is not None and isinstance(self.projjson.get("name"), str):
            return str(self.projjson["name"])
        found = _NAMED.match(self.wkt or "")
        return found[1].replace('""', '"') if found else None

    @property
    def identifier(self) -> str | None:
        """The code that the text or the object ends with."""
        if self.projjson is not None and is_object(self.projjson.get("id")):
            said = self.projjson["id"]
            if "authority" in said and "code" in said:
                return f"{said['authority']}:{said['code']}"
        found = _IDENTIFIED.search(self.wkt or "")
        return f"{found[1]}:{found[2].strip()}" if found else None

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the convention."""
        known = {CODE: self.code or self.identifier, WKT: self.wkt, PROJJSON: self.projjson}
        return {key: value for key, value in known.items() if value is not None}


def own(node: Metadata | None) -> Crs | None:
    """Return the system that a node says itself; None if it says none."""
    if node is None:
        return None
    said: Mapping[str, Any] = {key: node.attributes[key] for key in PROJ.keys if key in node.attributes}
    if not said:
        geo = node.attributes.get(GEO)
        older = geo.get("proj") if is_object(geo) else None
        said = {f"proj:{key}": value for key, value in older.items()} if is_object(older) else {}
    code, wkt, projjson = said.get(CODE), said.get(WKT), said.get(PROJJSON)
    found = Crs(
        code if isinstance(code, str) and code else None,
        wkt if isinstance(wkt, str) and wkt else None,
        projjson if is_object(projjson) and projjson else None,
    )
    return found if found != Crs() else None


def said_of(path: str, nodes: Nodes) -> Crs | None:
    """Return the system of a node: its own, that of its group, or that of the group that lists its resolution."""
    found = own(nodes.get(path))
    if found is None and path:
        found = own(nodes.get(path.rpartition("/")[0]))
        level = multiscales.level_of(path, nodes) if found is None else None
        found = own(nodes.get(level.group)) if level is not None else found
    return found


def systems_of_proj() -> Any:
    """Return the class of pyproj for systems, which PROJ knows; None if pyproj is not installed."""
    try:
        return import_module("pyproj").CRS
    except ImportError:
        return None


def known_to_proj(crs: Crs) -> bool | None:
    """Return whether PROJ knows a system in all its forms; None if pyproj is not installed."""
    systems = systems_of_proj()
    if systems is None:
        return None
    with suppress(Exception):  # whatever it has against a text of others
        for each in filter(None, (crs.code, crs.wkt, crs.projjson)):
            systems.from_user_input(dict(each) if isinstance(each, Mapping) else each)
        return True
    return False


def _recognise(path: str, nodes: Nodes) -> bool:
    node = nodes[path]
    return PROJ.is_used(node) or (GEO in node.attributes and own(node) is not None)


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    node = nodes[path]
    at = Checking(PROJ, path, node, "proj-invalid")
    yield from at.about()
    said = {key: node.attributes[key] for key in PROJ.keys if node.attributes.get(key) is not None}
    crs = own(node)
    if GEO in node.attributes and not said and crs is not None:
        message = "the object of zarr-extensions#21, which few programs read"
        yield at.fault((GEO, "proj"), message, GEO, list(PROJ.keys), "convention-older")
        said = {}
    elif not said:
        yield at.fault((), "none of the forms of a coordinate reference system", None, f"one of {', '.join(PROJ.keys)}")
        return
    wrong = False
    for key, value in said.items():
        if key == PROJJSON:
            is_right = is_object(value)
        else:
            is_right = isinstance(value, str) and (
                _CODE.fullmatch(value) is not None if key == CODE else _is_balanced(value)
            )
        if not is_right:
            wrong = True
            expected = {CODE: "AUTHORITY:CODE", WKT: "a text in WKT2", PROJJSON: "an object"}[key]
            yield at.fault((key,), "not in the form of the convention", value, expected)
    if not wrong and crs is not None:
        yield from _of_systems(at, crs, said)


def _of_systems(at: Checking, crs: Crs, said: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the forms that PROJ does not know, and those of different systems."""
    first = next(iter(said), GEO)
    if known_to_proj(crs) is False:
        message = "PROJ knows no such coordinate reference system"
        yield at.fault((first,), message, crs.label, None, "proj-unknown")
    elif crs.code and crs.identifier and crs.code.upper() != crs.identifier.upper():
        message = "the forms are of different coordinate reference systems"
        yield at.fault((first,), message, crs.code, crs.identifier, "proj-contradiction")


def _is_balanced(text: str) -> bool:
    """Return whether a text could be WKT: a word with brackets, each closed.

    >>> _is_balanced('LOCAL_CS["a ]",UNIT["metre",1]]'), _is_balanced("EPSG:4326"), _is_balanced('GEOGCRS["a"')
    (True, False, False)
    """
    bare = re.sub('"[^"]*"', "", text).replace("(", "[").replace(")", "]").strip()
    depth = 0
    for letter in bare:
        depth += (letter == "[") - (letter == "]")
        if depth < 0:
            return False
    return depth == 0 and bare.endswith("]") and re.match("[A-Za-z_]+ *\\[", bare) is not None


CONVENTION: Final = Convention(
    name="proj",
    title="proj:",
    spec=PROJ.spec_url,
    attributes=frozenset({*PROJ.keys, GEO}),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)
