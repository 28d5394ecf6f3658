"""Missing documents whose content is known: groups above nodes, empty attributes, copied documents.

Existing documents are never overwritten.
"""

from __future__ import annotations

from typing import Final

from omnizarr.errors import OmnizarrError
from omnizarr.formats import documents
from omnizarr.model import JSON, GroupMetadata
from omnizarr.nodes import stored
from omnizarr.nodes.location import StorePath
from omnizarr.tools.check.inventory import Inventory, Node
from omnizarr.tools.check.report import Finding
from omnizarr.tools.repair.mistakes import one_line
from omnizarr.tools.repair.policy import codes_of
from omnizarr.tools.repair.report import Action
from omnizarr.tools.repair.transaction import RepairState

_GROUPS: Final = {".zgroup": "v2", "zarr.json": "v3"}
CODES: Final = codes_of("missing")
COPIED: Final = codes_of("copied")
_NO_GROUP_ABOVE: Final = (
    "create the group if all nodes below belong together, or name the code: no group above confirms it"
)


def write_copied(state: RepairState, inventory: Inventory, findings: list[Finding]) -> bool:
    """Write the documents that only consolidated metadata has; return whether there were any."""
    wrote = False
    # The deepest first: as long as the group at the top has no document, its copies are known to be all there is.
    for finding in sorted(findings, key=lambda finding: -len(finding.path)):
        if finding.code not in COPIED & state.codes:
            continue
        for node in inventory.nodes.get(finding.path, ()):
            own = _copied(node, finding)
            if own and _write(state, node.where, node, own, finding, "write the document like its copy"):
                wrote = True
    return wrote


def _copied(node: Node, finding: Finding) -> dict[str, JSON]:
    """Return the documents that a node has nowhere but in consolidated metadata."""
    if node.marker.key != finding.key:
        return {}
    if node.base:
        return node.values
    name = node.dialect.consolidated.document
    if name is None or list(node.documents) != [name]:
        return {}
    return dict(node.dialect.consolidated.load(node.marker.value, lambda _: None).get("", {}))


def write_missing(state: RepairState, inventory: Inventory, findings: list[Finding]) -> None:
    """Write the documents of groups, and empty attributes, that are missing."""
    for finding in findings:
        if finding.code not in state.codes:
            continue
        if finding.code == "attributes-missing":
            for node in inventory.nodes.get(finding.path, ()):
                if node.marker.key == finding.key and node.dialect.attributes_document is not None:
                    _write(state, node.where, node, {node.dialect.attributes_document: {}}, finding,
                           "write empty attributes")  # fmt: skip
        elif finding.code in CODES:
            _write_group(state, inventory, finding)


def _write_group(state: RepairState, inventory: Inventory, finding: Finding) -> None:
    dialect = _GROUPS[str(finding.key).rpartition("/")[2]]
    where = state.where.at(finding.path)
    above = {place.path for place in where.ancestors()}
    nodes = [node for path in above for node in inventory.nodes.get(path, ())]
    has_group = any(node.dialect.name == dialect and isinstance(node.metadata, GroupMetadata) for node in nodes)
    if finding.code == "missing-group" and not has_group and "missing-root" not in state.codes:
        state.refuse(finding, _NO_GROUP_ABOVE)
        return
    written = stored.dump(where, GroupMetadata(dialect=dialect))
    paths = {finding.path}
    if finding.code == "missing-root":  # which all groups below need as well
        below = [node.where for node in inventory if node.dialect.name == dialect and node.where.lies_in(where)]
        paths |= {above.path for place in below for above in place.ancestors() if above.lies_in(where)}
        paths -= {path for path in paths if path != finding.path and path in inventory.nodes}
    for path in sorted(paths):
        _write(state, state.where.at(path), None, dict(written), finding, "write the document of the group")


def _write(
    state: RepairState, where: StorePath, node: Node | None, own: dict[str, JSON], finding: Finding, what: str
) -> bool:
    """Write documents that do not exist: the one that makes the node last."""
    wrote = False
    keys = node.dialect.keyspace.documents(where.path) if node is not None else {}
    order = list(keys) or list(own)
    for name in sorted(own, key=lambda name: order.index(name) if name in order else -1, reverse=True):
        key = keys.get(name, f"{where.prefix}{name}")
        action = Action(code=finding.code, path=where.path, key=key, what=what, after=one_line(own[name]))
        if state.store.exists(key):
            if where.path in state.touched:  # written for the sake of another finding
                state.settle(finding)
            continue
        try:
            data = documents.render(own[name])
        except OmnizarrError as error:
            state.refuse(finding, f"write the document by hand: {error.message}")
            return False
        if state.change(key, None, data, [action], lock=where.lock_key):
            state.touched.add(where.path)
            state.settle(finding)
            wrote = True
    return wrote
