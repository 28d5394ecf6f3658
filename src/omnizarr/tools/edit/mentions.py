"""References in groups to the nodes below them: copies of documents, NCZarr's lists, references of conventions.

Groups above a node that was added, removed or changed are updated where no guessing is necessary: NCZarr's lists of
members, besides consolidated metadata (`omnizarr.nodes.renewing`). Other references to a removed node are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.formats import DIALECTS, conventions, documents
from omnizarr.formats.conventions import Nodes, nczarr, nczarr_metadata
from omnizarr.model import JSON, GroupMetadata, Metadata, dimensions
from omnizarr.nodes import consolidated, detection, hierarchy
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.stores import bounded, pool

NodeType = Literal["array", "group"]

_LISTS: Final[Mapping[str, NodeType]] = {
    **dict.fromkeys(nczarr.ARRAYS, "array"),
    **dict.fromkeys(nczarr.GROUPS, "group"),
}
MOST_LOOKED_AT: Final = 1000
"""Largest number of nodes in a hierarchy whose conventions are checked."""


# -- NCZarr ------------------------------------------------------------------------


class Listed(NamedTuple):
    """The entry of one member in a group of NCZarr.

    Attributes
    ----------
    is_nczarr : bool
        The group keeps lists.
    marks : mapping or None
        What it says of an array, where that does not stand in the array's own document.
    """

    is_nczarr: bool
    marks: Mapping[str, JSON] | None


def listed(where: StorePath) -> Listed:
    """Return the entry of a node in the group directly above it."""
    group = _group_above(where)
    if group is None:
        return Listed(is_nczarr=False, marks=None)
    marks = nczarr_metadata.listed(group.metadata, where.name)
    is_nczarr = any(name in {**group.metadata.unknown, **group.metadata.attributes} for name in nczarr.GROUP)
    has_object = group.where.store.exists(group.where.prefix + nczarr.GROUP_OBJECT)
    return Listed(is_nczarr or has_object, marks if isinstance(marks, Mapping) else None)


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

    for place, metadata in list(_all(target, target.store.features.concurrency)):
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


# -- conventions -------------------------------------------------------------------


def around(where: StorePath, *, few: bool = False) -> dict[str, Metadata]:
    """Return the nodes above a place, at it and below it by path; empty if there are too many.

    `few`: it is known that there are not, so that many groups can be looked into at a time.
    """
    found: dict[str, Metadata] = {}
    above = list(where.ancestors())
    read = dict(pool.gather(_readable, above, where.store.features.concurrency))
    for position, place in enumerate(above):
        one = read[position]
        if one is not None:
            found[place.path] = one
    for place, each in _all(where, where.store.features.concurrency if few else 1):
        if each is not None:
            found[place.path] = each
        if len(found) > MOST_LOOKED_AT:
            return {}
    return found


def _all(where: StorePath, concurrency: int = 1) -> Iterator[tuple[StorePath, Metadata | None]]:
    """Yield place and metadata of the node at a place and all below it; None for a broken one below."""
    found = detection.detect(where)
    if found is not None:
        yield where, found.metadata
    if found is not None and isinstance(found.metadata, GroupMetadata):
        yield from consolidated.walk(found.where, concurrency=concurrency)


def _readable(where: StorePath) -> Metadata | None:
    try:
        return detection.find(where)
    except StoreError:
        raise
    except OmnizarrError:
        return None


def missed(where: StorePath, nodes: Mapping[str, Metadata]) -> tuple[str, ...]:
    """Describe references to a node in the groups above that will be wrong after its removal.

    `nodes` are those that `around` returned while it was there.
    """
    without = {path: one for path, one in nodes.items() if path != where.path and not path.startswith(where.prefix)}
    above = [place.path for place in where.ancestors() if place.path in without]
    after = _faults(above, Nodes(without))
    before = _faults(above, Nodes(nodes)) if after else []
    return tuple(text for text in after if text not in before)


def _faults(paths: list[str], nodes: Nodes) -> list[str]:
    return [
        f"/{path}: {fault.message}" + ("" if fault.found is None else f": found {fault.found!r}")
        for path in paths
        for fault in conventions.faults(path, nodes)
    ]
