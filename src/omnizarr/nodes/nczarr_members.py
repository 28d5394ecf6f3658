"""What the groups of NCZarr say of the nodes below them: lists of members, and dimensions that variables refer to.

netCDF-C finds only nodes that are listed, and opens no dataset that lists a missing one.

Spec: NCZarr, "NCZarr versus Pure Zarr".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from omnizarr.formats import documents
from omnizarr.formats.conventions import nczarr, nczarr_metadata
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata, dimensions
from omnizarr.nodes import consolidated, hierarchy, nczarr_objects
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.naming import lists_members
from omnizarr.nodes.nczarr_objects import group_at

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
    beside = {} if lists_members(group.metadata) else _beside(group.where, group.metadata, (nczarr.GROUP_OBJECT,))
    lists = nczarr_metadata.find(group.metadata, beside)
    named: Mapping[NodeType, tuple[str, ...]] = {"array": lists.arrays or (), "group": lists.groups or ()}
    kind = next((kind for kind, names in named.items() if where.name in names), None)
    is_nczarr = lists_members(group.metadata) or bool(beside)
    return Listed(is_nczarr, marks if isinstance(marks, Mapping) else None, kind)


def _beside(where: StorePath, metadata: Metadata, names: Sequence[str]) -> dict[str, Mapping[str, JSON]]:
    """Return the objects of netCDF-C 4.8.0 with these names beside the documents of a node; not broken ones."""
    if metadata.dialect != "v2":
        return {}
    found = nczarr_objects.objects_beside(where, names)
    return {name: mark for name, mark in found.items() if isinstance(mark, Mapping)}


def keeps_lists(where: StorePath, group: GroupMetadata) -> bool:
    """Return whether a group lists its members, in its document or, as netCDF-C 4.8.0 does, beside it."""
    return lists_members(group) or (group.dialect == "v2" and where.store.exists(where.prefix + nczarr.GROUP_OBJECT))


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
    _update_beside(group.where, group.metadata, (nczarr.GROUP_OBJECT,), lambda mark: _relisted(mark, where.name, kind))


def _update_beside(
    where: StorePath,
    metadata: Metadata,
    names: Sequence[str],
    change: Callable[[Mapping[str, JSON]], Mapping[str, JSON]],
) -> None:
    """Change the objects of netCDF-C 4.8.0 with these names beside the documents of a node, if there are some."""
    if not _beside(where, metadata, names):
        return
    with where.lock():
        for name, mark in _beside(where, metadata, names).items():
            changed = change(mark)
            if changed != mark:
                where.store.set(where.prefix + name, documents.render(changed))


def enter_new(where: StorePath, metadata: Metadata) -> None:
    """Update the entry of a node that was created: netCDF-C opens no dataset that lists an array without marks."""
    is_known = isinstance(metadata, GroupMetadata) or nczarr_metadata.find(metadata).references is not None
    enter(where, metadata.node_type if is_known else None)


def enter_below(group: StorePath, where: StorePath, new: Metadata | Listed | None) -> None:
    """Update the entries of a node below a group, and of the groups between them, which may be new.

    `new` is what was created there, or the entry that the node had elsewhere; None if it is gone.
    """
    if new is not None:
        for above in where.ancestors():
            if len(above.path) > len(group.path):
                enter(above, "group")
    if isinstance(new, Listed):
        enter(where, new.kind, new.marks)
    elif new is None:
        enter(where, None)
    else:
        enter_new(where, new)


def is_listed_below(group: StorePath, metadata: GroupMetadata, where: StorePath) -> bool:
    """Return whether a group, or the group directly above a node below it, lists its members."""
    if lists_members(metadata):
        return True
    if where.parent.path == group.path:
        return keeps_lists(group, metadata)
    return listed(where).is_nczarr


def _group_above(where: StorePath) -> Found[GroupMetadata] | None:
    return group_at(where.parent) if where.path else None


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

    Return, in sentences, which lead to dimensions of the dataset that it comes from, and to nothing here, or to those
    of a group that is not above the array: netCDF-C opens no dataset that lists such an array.
    """
    if source.path == target.path:
        return ()
    home, there = _dataset_of(source), _dataset_of(target)
    old, new = (f"/{place.prefix[len(top.prefix) :]}" for place, top in ((source, home), (target, there)))
    has_left = (source.store.origin(), home.path) != (target.store.origin(), there.path)
    lost: dict[str, str] = {}
    beyond: dict[str, str] = {}

    def led(place: StorePath, reference: Any) -> Any:
        if not isinstance(reference, str):
            return reference
        if reference.startswith(old) or old == "/":
            return new + reference.removeprefix(old)
        if has_left:
            lost.setdefault(place.path, reference)
        return reference

    is_beside = any(target.store.exists(place.prefix + nczarr.GROUP_OBJECT) for place in (target, target.parent))
    for place, metadata in list(consolidated.walk_from(target, target.store.features.concurrency)):
        lead = partial(led, place)
        if is_beside and isinstance(metadata, ArrayMetadata):
            names = nczarr_metadata.OBJECTS["array"]
            _update_beside(place, metadata, names, partial(_with_references, lead=lead))
        if metadata is None or not nczarr.notes_of(metadata):
            continue

        def changed(now: Any, lead: Callable[[Any], Any] = lead) -> Any:
            return replace(
                now,
                attributes=_with_references(now.attributes, lead),
                unknown=_with_references(now.unknown, lead),
            )

        if changed(metadata) != metadata:
            kind: Any = type(metadata)
            hierarchy.update(place, kind, changed, metadata.dialect)
        if (name := _out_of_reach(place, there, changed(metadata))) is not None:
            beyond[place.path] = name
            enter(place, None)
    return (
        *(f"/{path}: refers to dimension {name!r}, which stayed behind" for path, name in lost.items()),
        *(
            f"/{path}: refers to dimension {name!r}, which no group above it has: NCZarr does not list the array"
            for path, name in beyond.items()
        ),
    )


def _dataset_of(where: StorePath) -> StorePath:
    """Return the root of the dataset of NCZarr that a place is in: the outermost group above it that lists members."""
    for place in where.ancestors():
        group = group_at(place)
        if group is not None and keeps_lists(group.where, group.metadata):
            return group.where
    return where


def _out_of_reach(where: StorePath, dataset: StorePath, metadata: Metadata) -> str | None:
    """Return the dimension that an array refers to although no group above the array has it; None if there is none."""
    within = f"/{where.path[len(dataset.prefix) :]}"
    references = nczarr_metadata.find(metadata).references if isinstance(metadata, ArrayMetadata) else None
    return next((name for name in references or () if not within.startswith(f"{name.rpartition('/')[0]}/")), None)


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
