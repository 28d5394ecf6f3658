"""Consolidated metadata, made again from the documents that it copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnizarr.errors import MetadataError, OmnizarrError, StoreError
from omnizarr.formats import documents
from omnizarr.formats.history.draft_consolidated import dump_consolidated
from omnizarr.formats.spelling import in_order_of, same
from omnizarr.model import JSON, ArrayMetadata
from omnizarr.nodes import consolidated
from omnizarr.tools.check.inventory import Document, Inventory, Node
from omnizarr.tools.check.report import Finding
from omnizarr.tools.repair.policy import codes_of
from omnizarr.tools.repair.report import Action
from omnizarr.tools.repair.transaction import RepairState

_CODES: Final = codes_of("consolidated")
_BROKEN: Final = frozenset({"not-json", "not-utf8", "invalid-metadata"})
"""Findings that make a document of copies unreadable."""
_SPELLED: Final = frozenset({"repeated-member", "byte-order-mark", "bare-nan"})
"""Findings that disappear when a document of copies is written again."""
CODES: Final = _CODES | _BROKEN | _SPELLED
"""Findings on copies."""
_MEMBER: Final = "consolidated_metadata"
_FIRST: Final = "mend the documents first: {}"


def renew(state: RepairState, inventory: Inventory, findings: list[Finding]) -> None:
    """Rebuild consolidated metadata that is stale or broken, or has become so by a repair."""
    for node in inventory:
        document = _document_of(node)
        if document is None:
            continue
        own = [one for one in findings if one.path == node.path and _is_of_copies(one, node, document)]
        asked = [one for one in own if _code(one) in state.codes]
        is_wrong = any(one.code not in _SPELLED for one in own)
        if asked or (_is_touched(state, node) and not is_wrong):
            _renew(state, inventory, node, document.key, asked)


def _document_of(node: Node) -> Document | None:
    """Return the document that holds a group's copies, if there are any, and the group has a document besides."""
    name = node.dialect.consolidated.document
    if node.base:
        return None
    if name is not None:
        return node.documents.get(name) if list(node.documents) != [name] or node.where.home is not None else None
    value = node.marker.value
    return node.marker if isinstance(value, Mapping) and value.get("consolidated_metadata") is not None else None


def _is_of_copies(finding: Finding, node: Node, document: Document) -> bool:
    if finding.key != document.key:
        return False
    return finding.code in _CODES or (document is not node.marker and finding.code in _BROKEN | _SPELLED)


def _code(finding: Finding) -> str:
    """Return the code by which a finding is mended."""
    return "broken-consolidated-metadata" if finding.code in _BROKEN else finding.code


def _is_touched(state: RepairState, node: Node) -> bool:
    return any(not node.path or path == node.path or path.startswith(node.where.prefix) for path in state.touched)


def _renew(state: RepairState, inventory: Inventory, node: Node, key: str, findings: list[Finding]) -> None:
    with state.store.lock(node.where.lock_key):
        old = state.store.get(key)
        if old is None:
            return
        try:
            new = _render(inventory, node, key, bytes(old))
        except StoreError:
            raise
        except (OmnizarrError, KeyError, ValueError) as error:
            message = error.message if isinstance(error, OmnizarrError) else str(error)
            for finding in findings:
                state.refuse(finding, _FIRST.format(message))
            return
        if _is_same(bytes(old), new) and not any(finding.code in _SPELLED for finding in findings):
            return
        what = "make the copies again from the documents"
        actions = [
            Action(code=finding.code, path=node.path, key=key, pointer=finding.pointer, what=what)
            for finding in findings
        ] or [Action(code="stale-consolidated-metadata", path=node.path, key=key, what=what)]
        if state.change(key, old, new, actions, lock=node.where.lock_key):
            for finding in findings:
                state.settle(finding)


def _is_same(old: bytes, new: bytes) -> bool:
    """Whether two documents have the same content, in any order."""
    problems: list[object] = []
    return same(documents.parse(old, problems.append), documents.parse(new, problems.append)) and not problems


def _render(inventory: Inventory, node: Node, key: str, old: bytes) -> bytes:
    """Return the document with new copies. Raises MetadataError if documents cannot be read."""
    home = node.where.home
    nodes = _nodes(inventory, node, key)
    if home is not None:
        return documents.render(dump_consolidated(nodes, dict(home.entry) or None))
    written = node.dialect.consolidated.dump(nodes)
    if node.dialect.consolidated.document is not None:
        return documents.render(written)
    document = documents.parse(old)
    if not isinstance(document, Mapping):
        raise MetadataError("the document of the group is not an object", key=key)
    return documents.render(in_order_of({**document, _MEMBER: written}, document))


def _nodes(inventory: Inventory, node: Node, key: str) -> dict[str, Mapping[str, JSON]]:
    """Return the documents of the group's own format at it and below, by path relative to it."""
    own = {node.dialect.array_document, node.dialect.group_document, node.dialect.attributes_document}
    gathered = consolidated.gather(node.where)
    nodes: dict[str, Mapping[str, JSON]] = {
        path: found for path, found in gathered.items() if found and set(found) <= own
    }
    nodes.setdefault("", {name: value for name, value in node.values.items() if name in own})
    for other in inventory:
        if other.dialect.name != node.dialect.name or not other.path.startswith(node.where.prefix):
            continue
        path = other.path[len(node.where.prefix) :]
        # A document of this format next to one of another; or only the copy, which must stay.
        is_ours = not other.base or other.marker.key == key
        if path and path not in nodes and is_ours and not _is_below_array(inventory, other):
            nodes[path] = {name: value for name, value in other.values.items() if name in own}
    return nodes


def _is_below_array(inventory: Inventory, node: Node) -> bool:
    above = (inventory.nodes.get(place.path, ()) for place in node.where.ancestors())
    return any(isinstance(one.metadata, ArrayMetadata) for nodes in above for one in nodes)
