"""Check the conventions that nodes follow: the meaning of attributes and names to other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    findings: Findings, place: StorePath, inventory: Inventory, essences: Mapping[str, Metadata], *, data: bool
) -> None:
    """Report violations of conventions by the nodes below a place; with `data`, by elements, too.

    `essences` are by full path; conventions see paths below the place.
    """
    where = place.path
    nodes = Nodes(essences if not where else _Below(where, essences))
    if data:
        cells.check_cells(findings, place, inventory, nodes)
    for path in nodes:
        full = f"{prefix(where)}{path}" if path else where
        for fault in conventions.faults(path, nodes):
            key, pointer = _place(inventory.nodes[full][0], fault.pointer)
            code = fault.code if fault.code in CODES else _OTHER
            findings.add(
                code, full, fault.message, key=key, pointer=pointer, found=fault.found, expected=fault.expected
            )


class _Below(Mapping[str, Metadata]):
    """Nodes by their paths below the one at a path."""

    def __init__(self, where: str, nodes: Mapping[str, Metadata]) -> None:
        self._where = where
        self._nodes = nodes

    def __getitem__(self, path: str) -> Metadata:
        return self._nodes[f"{prefix(self._where)}{path}" if path else self._where]

    def __iter__(self) -> Iterator[str]:
        above = prefix(self._where)
        return (path.removeprefix(above) if path != self._where else "" for path in self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


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
