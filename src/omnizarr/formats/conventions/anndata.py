"""AnnData's convention: attributes of each element state its type.

Its documents are the same in all formats. Only attributes of arrays and groups must be converted.

Spec: anndata, "On-disk format".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.formats.reader import is_list
from omnizarr.model import Metadata

_TYPE: Final = "encoding-type"
_VERSION: Final = "encoding-version"
_COLUMNS: Final = "column-order"
_INDEX: Final = "_index"
_PARTS: Final = {
    "categorical": ("codes", "categories"),
    "csr_matrix": ("data", "indices", "indptr"),
    "csc_matrix": ("data", "indices", "indptr"),
    "nullable-integer": ("values", "mask"),
    "nullable-boolean": ("values", "mask"),
}
"""The members of a group of each type."""


def is_element(node: Metadata) -> bool:
    """Return whether a node is an element that anndata wrote."""
    return _TYPE in node.attributes and _VERSION in node.attributes


def _recognise(path: str, nodes: Nodes) -> bool:
    return is_element(nodes[path])


def _carry(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    return Carried(metadata)


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    attributes = nodes[path].attributes
    kind = attributes[_TYPE]
    if kind == "dataframe":
        columns = attributes.get(_COLUMNS)
        parts = [(f"{_COLUMNS}/{at}", name) for at, name in enumerate(columns if is_list(columns) else ())]
        parts.append((_INDEX, attributes.get(_INDEX)))
    else:
        parts = [(_TYPE, name) for name in _PARTS.get(str(kind), ())]
    for pointer, name in parts:
        inside = f"{path}/{name}" if path else str(name)
        if inside not in nodes:
            message = f"anndata reads the {kind} from a node that does not exist"
            yield Fault("anndata-missing-node", path, f"/attributes/{pointer}", message, found=name)


ANNDATA: Final = Convention(
    name="anndata",
    title="AnnData",
    spec="https://anndata.readthedocs.io/en/stable/fileformat-prose.html",
    attributes=frozenset({_TYPE, _VERSION, _COLUMNS, _INDEX}),
    recognise=_recognise,
    carry=_carry,
    faults=_faults,
)
