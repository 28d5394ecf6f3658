"""Nodes in their hierarchy: names, groups that are missing, formats side by side, nodes where there can be none.

Spec: Zarr v3 core, "Node names", "Conceptual model"; Zarr v2, "Hierarchies".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

from omnizarr.errors import NodeNameError, OmnizarrError
from omnizarr.formats.paths import prefix
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata
from omnizarr.nodes import detection, wording
from omnizarr.nodes.location import StorePath
from omnizarr.stores.local.zip import ozx_faults
from omnizarr.tools.check.inventory import Inventory, Node
from omnizarr.tools.check.report import Findings

_RULE = "opening takes v3 before v2 before v1"
_OF_GROUPS = {"v2": 'Zarr v2, "Hierarchies"', "v3": 'Zarr v3, "Conceptual model"'}


def check_places(findings: Findings, where: StorePath, inventory: Inventory) -> None:
    """Report nodes in the wrong places."""
    for found, expected in ozx_faults(where.store):
        findings.add("ome-zip", where.path, "the archive is no single-file OME-Zarr as RFC-9 recommends it",
                     found=found, expected=expected)  # fmt: skip
    for path, nodes in inventory.nodes.items():
        _check_side_by_side(findings, path, nodes)
        for node in nodes:
            _check_above(findings, where, inventory, node)
    _check_names(findings, where, inventory)
    _check_groups(findings, where, inventory)
    _check_reach(findings, where, inventory)
    for path, key in inventory.loose:
        name = key.rpartition("/")[2]
        if name in {".zattrs", "__zattr__"}:
            findings.add("attributes-without-node", path, "attributes, but no document of a node", key=key)
        else:
            findings.add("lost-entry-point", path, "a document of a draft of v3, but no entry point above it", key=key)


# One place


def _check_side_by_side(findings: Findings, path: str, nodes: list[Node]) -> None:
    first, *others = nodes
    for other in others:
        names = f"{wording.format_name(first.dialect.name)} and {wording.format_name(other.dialect.name)}"
        if first.metadata is None or other.metadata is None:
            continue
        differing = _difference(first.metadata, other.metadata)
        if differing:
            findings.add(
                "formats-disagree",
                path,
                f"documents of {names} lie here and differ in {differing}; {_RULE}",
                key=other.marker.key,
            )
        else:
            findings.add("two-formats", path, f"documents of {names} lie here; {_RULE}", key=other.marker.key)


def _difference(one: Metadata, other: Metadata) -> str:
    """Return the difference between two documents of one node; "" if they agree."""
    if isinstance(one, GroupMetadata) and isinstance(other, GroupMetadata):
        return ""
    if not isinstance(one, ArrayMetadata) or not isinstance(other, ArrayMetadata):
        return "the kind of node"
    if one.shape != other.shape:
        return "the shape"
    names = {_plain_type(metadata.data_type.name) for metadata in (one, other)}
    return "the data type" if len(names) > 1 else ""


def _plain_type(name: str) -> str:
    return {"variable_length_utf8": "string", "variable_length_bytes": "bytes", "structured": "struct"}.get(name, name)


# What is above


def _above(where: StorePath, path: str) -> Iterator[str]:
    """Yield the paths above a node, the nearest first, up to where the check began."""
    while len(path) > len(where.path):
        path = path.rpartition("/")[0]
        if len(path) >= len(where.path):
            yield path


def _check_above(findings: Findings, where: StorePath, inventory: Inventory, node: Node) -> None:
    name = node.dialect.name
    for path in _above(where, node.path):
        above = inventory.nodes.get(path)
        if not above:
            continue
        same = [one for one in above if one.dialect.name == name]
        arrays = [one for one in above if isinstance(one.metadata, ArrayMetadata)]
        if arrays and len(arrays) == len(above):
            findings.add(
                "node-below-array",
                node.path,
                f"a node below the array at /{path}",
                key=node.marker.key,
                spec=_OF_GROUPS.get(name, ""),
            )
        elif not same and node.dialect.has_groups and node.where.home is None:
            other = wording.format_name(above[0].dialect.name)
            message = f"a node of {wording.format_name(name)} below a group of {other}"
            is_made = "format" in node.where.store.about()  # by a reader, of a file
            if not is_made and not any(
                one.dialect.name in {n.dialect.name for n in above} for one in inventory.nodes[node.path]
            ):
                findings.add("mixed-formats", node.path, message, key=node.marker.key)
        return


def _check_groups(findings: Findings, where: StorePath, inventory: Inventory) -> None:
    """Enter the groups that have no document, each once."""
    seen: dict[tuple[str, str], bool] = {}  # whether there is a node at a path, or above it
    for node in inventory:
        name = node.dialect.name
        if name not in _OF_GROUPS:
            continue
        new: list[str] = []
        has_above = False
        for path in _above(where, node.path):
            if (path, name) in seen:
                has_above = seen[path, name]
                break
            new.append(path)
        for path in reversed(new):
            is_there = bool(inventory.nodes.get(path))
            if not is_there and (has_above or path == where.path):
                # Without a group above, it may be a directory of hierarchies, and none itself.
                document = node.dialect.group_document
                findings.add(
                    "missing-group" if has_above else "missing-root",
                    path,
                    f"nodes lie below, but there is no {document}",
                    key=prefix(path) + document,
                    spec=_OF_GROUPS[name],
                )
            has_above = seen[path, name] = has_above or is_there


def _check_reach(findings: Findings, where: StorePath, inventory: Inventory) -> None:
    """Report possible nodes for which the store has no keys."""
    groups = {node.path: node.where for node in inventory if isinstance(node.metadata, GroupMetadata)}
    for place in {where.path: where, **groups}.values():
        if len(inventory.nodes.get(place.path, ())) and place.path not in groups:
            continue  # an array
        names = detection.unreachable(place)
        for name, found in detection.load_children(place, names, ""):
            if isinstance(found, OmnizarrError):
                findings.add("unreachable-node", f"{place.prefix}{name}", found.message, found=found.found)


# Names


def _check_names(findings: Findings, where: StorePath, inventory: Inventory) -> None:
    members: dict[str, list[str]] = {}
    reported: dict[str, set[str]] = {}
    for node in inventory:
        done = reported.setdefault(node.dialect.name, set())
        for path in (node.path, *_above(where, node.path)):
            parent, _, name = path.rpartition("/")
            if path == where.path or not name or path in done:
                break  # those above have been told with it
            done.add(path)
            _check_name(findings, node, path, name)
            members.setdefault(parent, []).append(path)
    for parent, paths in members.items():
        for names in _alike(paths, str.casefold):
            if len({unicodedata.normalize("NFC", name) for name in names}) > 1:
                _add_siblings(findings, inventory, parent, names)
        for names in _alike(paths, partial(unicodedata.normalize, "NFC")):
            listed = ", ".join(ascii(name) for name in names)
            findings.add("names-look-alike", parent, f"members have names that look the same: {listed}")


def _alike(paths: Sequence[str], form: Callable[[str], str]) -> Iterator[list[str]]:
    """Yield the names at the ends of several paths that have one form but differ, sorted."""

    def form_of(path: str) -> str:
        return form(path.rpartition("/")[2])

    for _, several in groupby(sorted(paths, key=form_of), form_of):
        names = {path.rpartition("/")[2] for path in several}  # one path can be that of nodes of several formats
        if len(names) > 1:
            yield sorted(names)


def _add_siblings(findings: Findings, inventory: Inventory, parent: str, names: list[str]) -> None:
    nodes = [node for name in names for node in inventory.nodes.get(prefix(parent) + name, ())]
    forbidden = [node for node in nodes if not node.dialect.has_cases]
    message = f"members have names that differ by case only: {', '.join(map(repr, names))}"
    if forbidden:
        findings.add("names-differ-by-case", parent, message, severity="error",
                     spec='Zarr v3 draft of 2019, "Node names"')  # fmt: skip
    else:
        findings.add("names-differ-by-case", parent, message)


def _check_name(findings: Findings, node: Node, path: str, name: str) -> None:
    key = node.marker.key if path == node.path else None
    try:
        node.dialect.check_name(name)
    except NodeNameError as error:
        findings.add("invalid-node-name", path, error.message, key=key, found=error.found, expected=error.expected,
                     spec=error.spec)  # fmt: skip
    reason = node.dialect.why_reserved(name)
    if reason:
        findings.add("reserved-node-name", path, reason, key=key, found=repr(name), spec='Zarr v3, "Node names"')
    if not unicodedata.is_normalized("NFC", name):
        findings.add("name-not-normalized", path, "the name is not in form NFC", key=key, found=ascii(name))
