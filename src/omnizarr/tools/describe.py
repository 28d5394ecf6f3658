"""The facts of a node that a listing shows: what it is, what of it is stored, and whether it can be read here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from omnizarr.errors import OmnizarrError, UnknownExtensionError
from omnizarr.model import Note
from omnizarr.nodes import consolidated, detection, info
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group, UnreadableNode
from omnizarr.nodes.info import ArrayFacts, Consolidated, Facts, GroupFacts, Tick, UnreadableFacts, count, silent
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, MemoryStore, Store, WrapperStore, pool
from omnizarr.stores.wrap import synchronized
from omnizarr.tools.reaching import source_of
from omnizarr.tools.survey import Survey


def members(group: Group) -> Iterator[tuple[str, Any]]:
    """Yield name and node of each member directly below; where the store cannot list them, the group as unreadable."""
    try:
        yield from group.items()
    except OmnizarrError as error:
        yield "", UnreadableNode(group.store_path, error)


def walk(group: Group, max_depth: int | None = None) -> Iterator[tuple[int, Any]]:
    """Yield depth (0: directly below the group) and node of each node below, a group before its members.

    Nothing is kept but the way down, so a hierarchy may be as large as it likes.
    """
    stack = [members(group)]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
            continue
        node = item[1]
        depth = len(stack) - 1
        yield depth, node
        if isinstance(node, Group) and (max_depth is None or depth < max_depth):
            stack.append(members(node))


def describe(
    node: Array | Group | UnreadableNode,
    tick: Tick = silent,
    more: Mapping[str, tuple[Note, ...]] | None = None,
    survey: Survey | None = None,
) -> Facts:
    """Return the facts of a node; of an array its chunks are counted, of a group its consolidated metadata checked.

    `more` are further notes, by path: what a netCDF dataset has to say of its nodes. With a survey, no more is asked of
    the store than that has been told.
    """
    if isinstance(node, UnreadableNode):
        return UnreadableFacts(node.path, _reason(node.error))
    try:
        facts: ArrayFacts | GroupFacts = (
            describe_array(node, tick, survey) if isinstance(node, Array) else describe_group(node, survey)
        )
    except OmnizarrError as error:  # of the store: what it cannot list or read hides none of the siblings
        return UnreadableFacts(node.path, _reason(error))
    added = (more or {}).get(node.path, ())
    return replace(facts, notes=(*facts.notes, *added)) if added else facts


def describe_all(
    nodes: Iterable[Any],
    tick: Tick,
    more: Mapping[str, tuple[Note, ...]],
    concurrency: int,
    survey: Survey | None = None,
) -> Iterator[Facts]:
    """Yield the facts of nodes in their order, several of them looked at side by side."""
    early: dict[int, Facts] = {}
    due = 0
    for position, facts in pool.gather(lambda node: describe(node, tick, more, survey), nodes, concurrency):
        early[position] = facts
        while due in early:
            yield early.pop(due)
            due += 1


def describe_array(array: Array, tick: Tick = silent, survey: Survey | None = None) -> ArrayFacts:
    """Return the facts of an array, whether or not its elements can be read here.

    How much of it is stored is None if the store cannot list.

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=(8,), chunks=(2,), dtype="int64", compressors="gzip", fill_value=0)
    >>> array[:3] = 1
    >>> facts = describe_array(array)
    >>> facts.stored, facts.expected, facts.bytes_logical, facts.codecs
    (2, 4, 64, ('gzip level 5',))
    """
    where, metadata = array.store_path, array.metadata
    stored: int | None
    bytes_stored: int | None
    notes = metadata.notes
    if survey is not None:
        stored, bytes_stored = survey.count(array)
        notes += () if survey.documents is None else detection.beside(where, metadata, survey.documents)
    elif where.store.supports_listing:
        stored, bytes_stored = count(where, metadata, tick)
        notes += detection.beside(where, metadata)
    else:
        stored = bytes_stored = None
    return replace(
        info.of_array(where, metadata),
        notes=notes,
        stored=stored,
        bytes_stored=bytes_stored,
        problem=_problem(array),
        writers=_writers(where.store),
    )


def _writers(store: Store) -> str | None:
    """Return how a store keeps writers apart, where that is not plain."""
    if not store.supports_listing:  # a web server, to be read
        return None
    inner = store
    while isinstance(inner, WrapperStore):
        inner = inner.store
    return None if isinstance(inner, (LocalStore, MemoryStore)) else synchronized.guarantee(store)


def describe_group(group: Group, survey: Survey | None = None) -> GroupFacts:
    """Return the facts of a group; its consolidated metadata, if any, is compared with all documents below.

    With a survey, only with the names of these documents.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> describe_group(root).consolidated
    'none'
    """
    told = survey and survey.consolidated(group, is_used=source_of(group) == "consolidated")
    state, stale, problem = (*told, None) if told else _consolidated(group.store_path)
    metadata = group.metadata
    listed = None if survey is None else survey.documents or frozenset()
    return GroupFacts(
        path=group.path,
        zarr_format=group.zarr_format,
        dialect=metadata.dialect,
        is_implicit=metadata.implicit,
        consolidated=state,
        stale=stale,
        attributes=metadata.attributes,
        notes=(*metadata.notes, *detection.beside(group.store_path, metadata, listed)),
        problem=problem,
    )


def _consolidated(where: StorePath) -> tuple[Consolidated, tuple[str, ...], str | None]:
    try:
        nodes = consolidated.read(where)
    except OmnizarrError as error:
        return "broken", (), _reason(error)
    if nodes is None:
        return "none", (), None
    stale = tuple(consolidated.differences(where, nodes))
    return ("stale" if stale else "current"), stale, None


def _problem(array: Array) -> str | None:
    """Return why the elements of an array cannot be read here; None if they can, as far as its metadata goes."""
    try:
        detection.bind(array.store_path, array.metadata, array.config.policy)
    except OmnizarrError as error:
        return _reason(error)
    return None


def _reason(error: OmnizarrError) -> str:
    """Return what an error says, without where (that stands beside it), and without all that would have been known."""
    left_out = (
        {"store", "path", "expected", "remedy"} if isinstance(error, UnknownExtensionError) else {"store", "path"}
    )
    known = {name: getattr(error, name) for name in error.FIELDS if name not in left_out}
    return str(type(error)(error.message, **known))
