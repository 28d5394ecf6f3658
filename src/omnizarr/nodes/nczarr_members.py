"""What the groups of NCZarr say of the nodes below them: lists of members, and dimensions that variables refer to.

netCDF-C does not look for nodes, but for those that are listed. It opens no dataset that lists one which is not there.

Spec: NCZarr, "NCZarr versus Pure Zarr".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.formats import DIALECTS, documents
from omnizarr.formats.conventions import nczarr, nczarr_metadata
from omnizarr.model import JSON, GroupMetadata, Metadata, dimensions
from omnizarr.nodes import consolidated, detection, hierarchy
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.stores import bounded

NodeType = Literal["array", "group"]

_LISTS: Final[Mapping[str, NodeType]] = {
    **dict.fromkeys(nczarr.ARRAYS, "array"),
    **dict.fromkeys(nczarr.GROUPS, "group"),
}


class Listed(NamedTuple):
    """The entry of one member in a group of NCZarr.

    Attributes
    ----------
    is_nczarr : bool
        The group keeps lists.
    marks : mapping or None
        What it says of an array, where that does not stand in the array's own document.
    kind : {"array", "group"} or None
        The list that names the member.
    """

    is_nczarr: bool
    marks: Mapping[str, JSON] | None
    kind: NodeType | None = None


def listed(where: StorePath) -> Listed:
    """Return the entry of a node in the group directly above it."""
    group = _group_above(where)
    if group is None:
        return Listed(is_nczarr=False, marks=None)
    marks = nczarr_metadata.listed(group.metadata, where.name)
    is_nczarr = any(name in {**group.metadata.unknown, **group.metadata.attributes} for name in nczarr.GROUP)
    lists = nczarr_metadata.find(group.metadata)
    named: Mapping[NodeType, tuple[str, ...]] = {"array": lists.arrays or (), "group": lists.groups or ()}
    kind = next((kind for kind, names in named.items() if where.name in names), None)
    has_object = group.where.store.exists(group.where.prefix + nczarr.GROUP_OBJECT)
    return Listed(is_nczarr or has_object, marks if isinstance(marks, Mapping) else None, kind)


def enter(where: StorePath, kind: NodeType | None, marks: Mapping[str, JSON] | None = None) -> None:
    """Update the entry of a node in the list of the group directly above it; remove the entry if the node is gone."""
    group = _group_above(where)
    if group is None:
        return
    changed = _with_member(group.metadata, where.name, kind, marks)
    if changed != group.metadata:
        hierarchy.update(
            group.where,
            GroupMetadata,
            lambda now: _with_member(now, where.name, kind, marks),
            group.metadata.dialect,
        )
    key = group.where.prefix + nczarr.GROUP_OBJECT
    if group.metadata.dialect == "v2" and group.where.store.exists(key):
        with group.where.lock():
            value = bounded.document(group.where.store, key)
            document = None if value is None else documents.parse(value)
            if isinstance(document, Mapping):
                group.where.store.set(key, documents.render(_relisted(document, where.name, kind)))


def enter_new(where: StorePath, metadata: Metadata) -> None:
    """Update the entry of a node that was created: netCDF-C opens no dataset that lists an array without marks."""
    is_known = isinstance(metadata, GroupMetadata) or nczarr_metadata.find(metadata).references is not None
    enter(where, metadata.node_type if is_known else None)


def _group_above(where: StorePath) -> Found[GroupMetadata] | None:
    if not where.path:
        return None
    try:
        found = detection.here(where.parent, DIALECTS, "group")
    except StoreError:
        raise
    except OmnizarrError:
        return None  # broken
    if found is None or not isinstance(found.metadata, GroupMetadata):
        return None
    return Found(found.where, found.metadata)


def _with_member(
    group: GroupMetadata, name: str, kind: NodeType | None, marks: Mapping[str, JSON] | None
) -> GroupMetadata:
    is_listed = nczarr_metadata.listed(group, name) is not None
    if marks is not None or (is_listed and kind != "array"):
        group = nczarr_metadata.with_listed(group, {name: marks if kind == "array" else None})
    return replace(
        group,
        attributes=_all_relisted(group.attributes, name, kind),
        unknown=_all_relisted(group.unknown, name, kind),
    )


def _all_relisted(members: Mapping[str, JSON], name: str, kind: NodeType | None) -> Mapping[str, JSON]:
    if not any(key in members for key in nczarr.GROUP):
        return members
    return {
        key: _relisted(mark, name, kind) if key in nczarr.GROUP and isinstance(mark, Mapping) else mark
        for key, mark in members.items()
    }


def _relisted(mark: Mapping[str, JSON], name: str, kind: NodeType | None) -> dict[str, JSON]:
    """Return the mark of a group with a member in the list of its kind, and in no other."""
    changed: dict[str, Any] = dict(mark)
    for key, holds in _LISTS.items():
        names = mark.get(key)
        if isinstance(names, list | tuple):
            kept = [each for each in names if each != name or kind == holds]
            changed[key] = [*kept, name] if kind == holds and name not in kept else kept
    return changed


def rebase(source: StorePath, target: StorePath) -> tuple[str, ...]:
    """Let NCZarr's references to dimensions below a node that has another place now lead there.

    Return, in sentences, which lead to dimensions of the hierarchy that it comes from, and to nothing here.
    """
    if source.path == target.path:
        return ()
    old, new = f"/{source.prefix}", f"/{target.prefix}"
    lost: dict[str, str] = {}

    def led(place: StorePath, reference: Any) -> Any:
        if not isinstance(reference, str):
            return reference
        if reference.startswith(old) and source.path:
            return new + reference[len(old) :]
        if not source.path:
            return new + reference.removeprefix("/")
        if source.store.origin() != target.store.origin():
            lost.setdefault(place.path, reference)
        return reference

    for place, metadata in list(consolidated.walk_from(target, target.store.features.concurrency)):
        if metadata is None or not nczarr.notes_of(metadata):
            continue

        def changed(now: Any, place: StorePath = place) -> Any:
            return replace(
                now,
                attributes=_with_references(now.attributes, lambda each: led(place, each)),
                unknown=_with_references(now.unknown, lambda each: led(place, each)),
            )

        if changed(metadata) != metadata:
            kind: Any = type(metadata)
            hierarchy.update(place, kind, changed, metadata.dialect)
    return tuple(f"/{path}: refers to dimension {name!r}, which stayed behind" for path, name in lost.items())


def _with_references(value: Any, lead: Callable[[Any], Any]) -> Any:
    """Return JSON with other references to dimensions in it, wherever NCZarr has them."""
    if isinstance(value, Mapping):
        return {
            key: [*map(lead, each)]
            if key in dimensions.NCZARR_REFERENCES and isinstance(each, list | tuple)
            else _with_references(each, lead)
            for key, each in value.items()
        }
    return value
