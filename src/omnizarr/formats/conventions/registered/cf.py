"""CF as a convention that ``zarr_conventions`` can name: its attributes stay as they are in netCDF.

Only what CF says of names of other arrays, and of a few texts, is checked. Arrays without a record are not judged.

Spec: https://github.com/zarr-conventions/CF; CF conventions 1.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered.records import Checking, Known, listed, unchanged
from omnizarr.formats.paths import upwards

CONVENTIONS: Final = "Conventions"
GRID_MAPPING: Final = "grid_mapping"
CRS_WKT: Final = "crs_wkt"
_TEXTS: Final = ("standard_name", "units", "bounds", "coordinates", "cell_methods", "cell_measures", GRID_MAPPING)
_AXES: Final = ("X", "Y", "Z", "T")
_DIRECTIONS: Final = ("up", "down")
_DECLARED: Final = re.compile(r"(^|\s)CF-[0-9]+\.[0-9]+")

CF: Final = Known(
    name="CF",
    uuid="77c308c7-4db2-4774-8b2d-aa37e9997db6",
    schema_url="https://raw.githubusercontent.com/zarr-conventions/CF/refs/tags/v1/schema.json",
    spec_url="https://cfconventions.org/Data/cf-conventions/cf-conventions-1.11/cf-conventions.html",
    description="Climate and Forecast conventions for self-describing geospatial data",
    repositories=("zarr-conventions/CF", "cf-conventions"),
    keys=(),
    nodes=("array", "group"),
    state="proposal",
    more=("version",),
)


def _recognise(path: str, nodes: Nodes) -> bool:
    return CF.is_declared(nodes[path])


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    node = nodes[path]
    at = Checking(CF, path, node, "cf-invalid")
    attributes = node.attributes
    for name in _TEXTS:
        if name in attributes and not isinstance(attributes[name], str):
            yield at.fault((name,), "CF wants a text here", attributes[name], "a text")
    for name, known in (("axis", _AXES), ("positive", _DIRECTIONS)):
        if name in attributes and attributes[name] not in known:
            yield at.fault((name,), "a word that CF does not define", attributes[name], " or ".join(known))
    said = attributes.get(CONVENTIONS)
    if said is not None and (not isinstance(said, str) or not _DECLARED.search(said)):
        yield at.fault((CONVENTIONS,), "the attribute does not name a version of CF", said, "CF-1.11, for example")
    version = next((each.get("version") for each in listed(node) if CF.is_meant_by(each)), None)
    if isinstance(version, str) and not re.fullmatch(r"[0-9]+\.[0-9]+", version):
        yield at.fault(("zarr_conventions",), "no version of CF", version, "two numbers, as in 1.11")
    for name in ("bounds", GRID_MAPPING):
        said = attributes.get(name)
        if not isinstance(said, str) or not path or ":" in said:
            continue
        if not any(place in nodes for place in places_of(path, said)):
            yield at.fault((name,), f"the array that {name} names does not exist", said, None, "cf-missing-array")


def places_of(path: str, name: str) -> Iterator[str]:
    """Yield where an array that the node at a path names can be: beside it, then in the groups above."""
    yield from (f"{group}/{name}" if group else name for group in islice(upwards(path), 1, None))


CONVENTION: Final = Convention(
    name="cf",
    title="CF",
    spec=CF.spec_url,
    attributes=frozenset({CONVENTIONS, "axis", "positive", *_TEXTS}),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)
