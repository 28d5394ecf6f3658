"""Compare the copies in consolidated metadata with the documents.

Spec: Zarr v3 core, "Additional fields"; for v2 a convention (``.zmetadata``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.formats.paths import prefix
from omnizarr.formats.reader import join
from omnizarr.formats.spelling import same
from omnizarr.model import JSON, GroupMetadata
from omnizarr.nodes import consolidated
from omnizarr.tools.check.inventory import Document, Inventory, Node, copy_pointer
from omnizarr.tools.check.report import Findings

_BROKEN = {"broken-consolidated-metadata", "unknown-consolidated-metadata"}


def check_copies(findings: Findings, inventory: Inventory, node: Node) -> None:
    """Enter each node below a group whose consolidated metadata differs from the documents."""
    metadata = node.metadata
    if not isinstance(metadata, GroupMetadata) or metadata.consolidated is None:
        return
    name = node.dialect.consolidated.document
    copies = node.marker if name is None else node.documents.get(name, node.marker)
    if name is not None and copies is node.marker:  # there are only the copies
        return
    if any(finding.code in _BROKEN and finding.key == copies.key for finding in findings.found):
        return
    try:
        different = consolidated.differences(node.where, metadata.consolidated)
    except StoreError as error:
        findings.add("unreadable-key", node.path, error.message, key=error.key)
        return
    except OmnizarrError:  # told where it is
        return
    for path in different:
        message = _message(inventory, node, metadata.consolidated, path)
        if message is not None:
            pointer = _pointer(inventory, node, metadata.consolidated, path)
            findings.add("stale-consolidated-metadata", node.path, message, key=copies.key, pointer=pointer)
    for pointer in _own(node, copies):
        message = "another document than the group itself has"
        findings.add("stale-consolidated-metadata", node.path, message, key=copies.key, pointer=pointer)


def _message(inventory: Inventory, node: Node, copies: Mapping[str, Mapping[str, JSON]], path: str) -> str | None:
    full = prefix(node.path) + path
    there = inventory.nodes.get(full, [])
    is_there = any(one.dialect.name == node.dialect.name for one in there)
    if any(one.base for one in there):  # reported as a node that only the copies describe
        return None
    if path in copies:
        return (
            f"another document than the node at /{full} has" if is_there else f"a copy of a node that is gone: /{full}"
        )
    return f"no copy of the node at /{full}" if is_there else None


def _pointer(inventory: Inventory, node: Node, copies: Mapping[str, Mapping[str, JSON]], path: str) -> str:
    """Return the pointer to the copy of a node in the document, whether or not it exists."""
    there = inventory.nodes.get(prefix(node.path) + path)
    name = next(iter(copies.get(path) or (there[0].documents if there else {node.dialect.array_document: None})))
    return copy_pointer(node, path, name)


def _own(node: Node, copies: Document) -> Iterator[str]:
    """Yield the pointers of copies of a v2 group's own documents that differ from the documents."""
    if node.dialect.name != "v2" or not isinstance(copies.value, Mapping):
        return
    metadata = copies.value.get("metadata")
    if not isinstance(metadata, Mapping):
        return
    values = node.values
    for name in (".zgroup", ".zattrs"):
        copy, original = (_plain(found.get(name)) for found in (metadata, values))
        if not same(copy, original):
            yield join("/metadata", name)


def _plain(document: JSON) -> JSON:
    """Return a document without what zarr-python 3 puts into copies."""
    if isinstance(document, Mapping):
        return {name: value for name, value in document.items() if name != "consolidated_metadata"}
    return document or {}
