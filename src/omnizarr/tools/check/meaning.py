"""Check the conventions that nodes follow: the meaning of attributes and names to other programs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Final

from omnizarr.formats import conventions
from omnizarr.formats.conventions import Nodes
from omnizarr.formats.paths import prefix
from omnizarr.model import Metadata
from omnizarr.nodes.location import StorePath
from omnizarr.tools.check import cells
from omnizarr.tools.check.codes import CODES
from omnizarr.tools.check.inventory import Inventory, Node
from omnizarr.tools.check.report import Findings

_ATTRIBUTES: Final = "/attributes"
_OTHER: Final = "other-convention"


def essence(node: Node) -> Metadata | None:
    """Return the metadata of a node that conventions need; None if its documents cannot be read."""
    if node.metadata is None:
        return None
    used = _used(conventions.known())
    attributes = {name: value for name, value in node.metadata.attributes.items() if name in used}
    return replace(node.metadata, attributes=attributes, spellings={}, notes=())


def check_conventions(
    findings: Findings, place: StorePath, inventory: Inventory, essences: dict[str, Metadata], *, data: bool
) -> None:
    """Report violations of conventions by the nodes below a place; with `data`, by elements, too.

    `essences` are by full path; conventions see paths below the place.
    """
    where, above = place.path, prefix(place.path)
    nodes = Nodes({path.removeprefix(above) if path != where else "": node for path, node in essences.items()})
    if data:
        cells.check_cells(findings, place, inventory, nodes)
    for path in nodes:
        full = f"{above}{path}" if path else where
        for fault in conventions.faults(path, nodes):
            key, pointer = _place(inventory.nodes[full][0], fault.pointer)
            code = fault.code if fault.code in CODES else _OTHER
            findings.add(
                code, full, fault.message, key=key, pointer=pointer, found=fault.found, expected=fault.expected
            )


@lru_cache(4)
def _used(known: tuple[conventions.Convention, ...]) -> frozenset[str]:
    """Return the names of all attributes that conventions use."""
    return frozenset(chain.from_iterable(convention.attributes for convention in known))


def _place(node: Node, pointer: str) -> tuple[str, str]:
    """Return the key of the document that a fault is in, and where in that document it is."""
    document = node.documents.get(str(node.dialect.attributes_document))
    if pointer.startswith(_ATTRIBUTES) and document is not None:
        return document.key, pointer.removeprefix(_ATTRIBUTES)
    return node.marker.key, f"{node.base}{pointer}"
