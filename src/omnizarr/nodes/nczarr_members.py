"""What the groups of NCZarr say of the nodes below them: lists of members, and dimensions that variables refer to.

netCDF-C finds only nodes that are listed, and opens no dataset that lists a missing one.

Spec: NCZarr, "NCZarr versus Pure Zarr".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from omnizarr.errors import OmnizarrError, StoreAccessError
from omnizarr.formats import documents
from omnizarr.formats.conventions import nczarr, nczarr_metadata
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata, dimensions
from omnizarr.nodes import consolidated, detection, hierarchy, nczarr_objects, renewing
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.naming import is_far, lists_members, may_have_objects
from omnizarr.nodes.nczarr_objects import group_at
from omnizarr.stores.wrap.wrappers import PrefixStore
from omnizarr.support.warned import warn

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
    if not may_have_objects(metadata):
        return {}
    found = nczarr_objects.objects_beside(where, names)
    return {name: mark for name, mark in found.items() if isinstance(mark, Mapping)}


def keeps_lists(where: StorePath, group: GroupMetadata) -> bool:
    """Return whether a group lists its members, in its document or, as netCDF-C 4.8.0 does, beside it."""
    return lists_members(group) or (may_have_objects(group) and where.store.exists(where.prefix + nczarr.GROUP_OBJECT))


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
    """Update the entries of a node that was created, and of groups that were created for it.

    netCDF-C opens no dataset that lists an array without marks.
    """
    where = renewing.from_above(where) or where
    for place in where.ancestors():
        enter(place, "group")
    enter(where, _kind_for(where, metadata))
    _let_groups_list(where)


def arrive(source: StorePath, target: StorePath, marks: Mapping[str, JSON] | None = None) -> tuple[str, ...]:
    """Update the entries of a node that has come from another place, with the `marks` that its group there had of it.

    Return what `rebase` does, which is a part of this.
    """
    is_inside = listed(target).is_nczarr or _form_of_lists(target) is not None
    found = detection.detect(target) if is_inside else None
    if found is not None:
        for place in target.ancestors():
            enter(place, "group")
        kind = found.metadata.node_type if marks is not None else _kind_for(target, found.metadata)
        enter(target, kind, marks)
    remarks = rebase(source, target)
    if found is not None:
        _let_groups_list(target)
    return remarks


def arrive_where_listed(
    source: StorePath | None, where: StorePath, groups: Iterable[GroupMetadata], *, has_same_format: bool = True
) -> tuple[str, ...]:
    """Do what `arrive` does if a node came to a place in a dataset. `groups` are those above it that were read.

    Without a `source`, it was written as a dataset of its own. This asks a store far away for nothing if none of them
    lists its members. If a store begins below a group that cannot be changed, a warning says so.
    """
    target = place_in_dataset(where, groups)
    if target is None:
        return ()
    marks = None
    if source is None:
        source = StorePath(PrefixStore(target.store, target.path))
    else:
        source = renewing.from_above(source) or source
        marks = listed(source).marks if has_same_format else None
    try:
        return arrive(source, target, marks)
    except OmnizarrError as failure:
        if target.store is where.store:
            raise
        warn(f"NCZarr's lists in the groups above {where} could not be renewed: {failure}")
        return ()


def place_in_dataset(where: StorePath, groups: Iterable[GroupMetadata]) -> StorePath | None:
    """Return a place in a store that begins at the outermost group, if a group above lists its members; else None."""
    if not any(map(lists_members, groups)) and is_far(where.store):
        return None
    outer = renewing.from_above(where) or where
    return outer if is_in_dataset(outer) else None


def without_marks(value: Any) -> Any:
    """Return JSON without the members of NCZarr, and without attributes if there are no others."""
    if not isinstance(value, Mapping):
        return value
    kept = {name: without_marks(each) for name, each in value.items() if not name.startswith("_nczarr")}
    return {name: each for name, each in kept.items() if each != {} or not name.endswith(("attributes", ".zattrs"))}


def is_in_dataset(where: StorePath) -> bool:
    """Return whether a group above lists its members in its document; False if these may not be read."""
    try:
        return _form_of_lists(where) is not None
    except StoreAccessError:
        return False  # of others


def _kind_for(where: StorePath, metadata: Metadata) -> NodeType | None:
    """Return the list that may name a node; None for an array that has no marks, or whose dimensions are elsewhere.

    netCDF-C opens no dataset that lists such an array.
    """
    if isinstance(metadata, GroupMetadata):
        return "group"
    marks = nczarr_metadata.find(metadata, _beside(where, metadata, nczarr_metadata.OBJECTS["array"]))
    is_known = marks.references is not None and _out_of_reach(where, _dataset_of(where), metadata) is None
    return "array" if is_known else None


def _let_groups_list(where: StorePath) -> None:
    """Let the groups list their members that have arrays, at a place or below, which netCDF-C cannot read."""
    below = consolidated.walk_from(where, where.store.features.concurrency)
    unknown = [place.parent for place, metadata in below if metadata and _kind_for(place, metadata) is None]
    for group in {place.path: place for place in unknown}.values():
        _let_list(group)


def _let_list(where: StorePath) -> None:
    """Let a group in a dataset that has no lists have some: they leave out arrays that netCDF-C cannot read.

    It takes every array for a variable that is in a group without lists, and opens no such dataset. Another writer may
    create or remove members before the lists are there, and does not enter them then: so they are looked at again.
    """
    group, form = group_at(where), _form_of_lists(where)
    if group is None or form is None or lists_members(group.metadata):
        return
    kinds = _kinds_in(group)
    field, key, note = form
    empty: dict[str, Any] = {name: [] if isinstance(each, list | tuple) else {} for name, each in note.items()}
    lists = {name: [each for each, kind in kinds.items() if kind == _LISTS[name]] for name in note if name in _LISTS}
    new = {**empty, **lists}

    def listing(now: GroupMetadata) -> GroupMetadata:
        changed: Any = {} if lists_members(now) else {field: {**getattr(now, field), key: new}}
        return replace(now, **changed)

    hierarchy.update(where, GroupMetadata, listing, group.metadata.dialect)
    for name, kind in (dict.fromkeys(kinds) | _kinds_in(group)).items():
        if kind != kinds.get(name):
            enter(where / name, kind)


def _kinds_in(group: Found[GroupMetadata]) -> dict[str, NodeType | None]:
    """Return the names of the members of a group, with the lists that may name them."""
    kinds: dict[str, NodeType | None] = {}
    names = detection.children(group.where)
    for name, each in detection.load_children(group.where, names, group.metadata.dialect):
        if isinstance(each, Found):
            kinds[name] = _kind_for(each.where, each.metadata)
    return kinds


def _form_of_lists(where: StorePath) -> tuple[str, str, Mapping[str, JSON]] | None:
    """Return how the nearest group above has lists: in which field of its metadata, under which key, and what there."""
    for place in reversed([*where.ancestors()]):
        group = group_at(place)
        for field in ("attributes", "unknown") if group is not None else ():
            members: Mapping[str, JSON] = getattr(group.metadata, field)  # type: ignore[union-attr]
            for key in nczarr.GROUP:
                if isinstance(note := members.get(key), Mapping):
                    return field, key, note
    return None


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
