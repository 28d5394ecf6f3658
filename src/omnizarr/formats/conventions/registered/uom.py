"""``uom``: the unit of the elements of an array, in UCUM.

Spec: https://github.com/clbarnes/zarr-convention-uom, v1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered.records import Checking, Known, unchanged
from omnizarr.formats.reader import is_object
from omnizarr.model import Metadata

KEY: Final = "uom"
_UCUM: Final = "ucum"
_UNIT: Final = re.compile(r"[\x21-\x7e]+")
"""The letters of UCUM: those of ASCII that can be seen, without spaces."""

UOM: Final = Known(
    name="uom",
    uuid="3bbe438d-df37-49fe-8e2b-739296d46dfb",
    schema_url="https://raw.githubusercontent.com/clbarnes/zarr-convention-uom/refs/tags/v1/schema.json",
    spec_url="https://github.com/clbarnes/zarr-convention-uom/blob/v1/README.md",
    description="Units of measurement for Zarr arrays",
    repositories=("clbarnes/zarr-convention-uom",),
    keys=(KEY,),
    nodes=("array",),
    state="proposal",
)


def unit_of(node: Metadata) -> str | None:
    """Return the unit of the elements of an array; None if it says none."""
    found = node.attributes.get(KEY)
    ucum = found.get(_UCUM) if is_object(found) else None
    unit = ucum.get("unit") if is_object(ucum) else None
    return unit if isinstance(unit, str) and unit else None


def _recognise(path: str, nodes: Nodes) -> bool:
    node = nodes[path]
    found = node.attributes.get(KEY)
    return UOM.is_declared(node) or (is_object(found) and _UCUM in found)


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    node = nodes[path]
    at = Checking(UOM, path, node, "uom-invalid")
    yield from at.about()
    found = node.attributes.get(KEY)
    ucum = found.get(_UCUM) if is_object(found) else None
    if not is_object(ucum):
        yield at.fault((KEY, _UCUM), "no unit in the form of the convention", found, "an object with ucum")
        return
    for name in ("unit", "version"):
        if ucum.get(name) is not None and not isinstance(ucum[name], str):
            yield at.fault((KEY, _UCUM, name), f"the {name} is no text", ucum[name], "a text")
    unit = unit_of(node)
    if unit is not None and not _UNIT.fullmatch(unit):
        message = "units of UCUM have no spaces, and no letters outside of ASCII"
        yield at.fault((KEY, _UCUM, "unit"), message, unit, "kg.m/s2, for example")


CONVENTION: Final = Convention(
    name="uom",
    title="uom",
    spec=UOM.spec_url,
    attributes=frozenset({KEY}),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)
