"""The facts about a node for listings: its metadata, how much is stored, and whether it can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from omnizarr.errors import OmnizarrError, UnknownExtensionError
from omnizarr.model import Note
from omnizarr.nodes import bindings, consolidated, detection, info, meaning, naming
from omnizarr.nodes import walk as walks
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.holdings import count
from omnizarr.nodes.info import ArrayFacts, Consolidated, Facts, GroupFacts, UnreadableFacts
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.members import UnreadableNode
from omnizarr.stores import LocalStore, MemoryStore, Store, WrapperStore, pool, shown
from omnizarr.stores.wrap import synchronized
from omnizarr.support.progress import Tick, silent
from omnizarr.tools.reaching import source_of
from omnizarr.tools.survey import Survey


def members(group: Group) -> Iterator[tuple[str, Any]]:
    """Yield name and node of each direct member. If the store cannot list them, the group is unreadable."""
    try:
        yield from group.items()
    except OmnizarrError as error:
        yield "", UnreadableNode(group.store_path, error)


def walk(group: Group, max_depth: int | None = None) -> Iterator[tuple[int, Any]]:
    """Yield depth (0: directly below the group) and node of each node below. A group comes before its members.

    Only the current path is kept in memory, so a hierarchy can have any size.
    """
    return walks.walk(group, _below, max_depth=max_depth)


def _below(node: Any) -> Iterator[Any] | None:
    return (member for _, member in members(node)) if isinstance(node, Group) else None


def describe(
    node: Array | Group | UnreadableNode,
    tick: Tick = silent,
    more: Mapping[str, tuple[Note, ...]] | None = None,
    survey: Survey | None = None,
) -> Facts:
    """Return the facts about a node. Chunks of arrays are counted, and consolidated metadata of groups is checked.

    `more` are further notes by path, about nodes of a netCDF dataset. With a survey, no further requests are sent
    to the store.
    """
    if isinstance(node, UnreadableNode):
        return UnreadableFacts(node.path, _reason(node.error))
    try:
        facts: ArrayFacts | GroupFacts = (
            describe_array(node, tick, survey) if isinstance(node, Array) else describe_group(node, survey)
        )
    except OmnizarrError as error:  # errors of the store: a node that it cannot list or read does not hide its siblings
        return UnreadableFacts(node.path, _reason(error))
    added = (more or {}).get(node.path, ())
    return replace(facts, notes=(*facts.notes, *added)) if added else facts


def with_meaning(facts: Facts, node: Array | Group | UnreadableNode) -> Facts:
    """Return facts with what the nodes around it say of a node, too: of place, resolutions and licence."""
    if isinstance(node, UnreadableNode) or isinstance(facts, UnreadableFacts):
        return facts
    with suppress(OmnizarrError):  # the node itself can be read, and shows
        return replace(facts, meaning=meaning.of(node))
    return facts


def describe_all(
    nodes: Iterable[Any],
    tick: Tick,
    more: Mapping[str, tuple[Note, ...]],
    concurrency: int,
    survey: Survey | None = None,
) -> Iterator[Facts]:
    """Yield the facts about nodes in order, looking at several of them concurrently."""
    early: dict[int, Facts] = {}
    due = 0
    for position, facts in pool.gather(lambda node: describe(node, tick, more, survey), nodes, concurrency):
        early[position] = facts
        while due in early:
            yield early.pop(due)
            due += 1


def describe_array(array: Array, tick: Tick = silent, survey: Survey | None = None) -> ArrayFacts:
    """Return the facts about an array, whether or not its elements can be read.

    The number of stored chunks is None if the store cannot list.

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
    notes = metadata.notes
    if survey is not None:
        stored, bytes_stored = survey.count(array)
        notes += () if survey.documents is None else detection.beside(where, metadata, survey.documents)
    else:
        counted = naming.listed(where, partial(count, where, metadata, tick))
        stored, bytes_stored = counted or (None, None)
        notes += () if counted is None else detection.beside(where, metadata)
    return replace(
        info.of_array(where, metadata),
        meaning=meaning.own(where.path, metadata),
        notes=notes,
        stored=stored,
        bytes_stored=bytes_stored,
        problem=_problem(array),
        writers=_writers(where.store),
    )


def _writers(store: Store) -> str | None:
    """Return how a store keeps writers apart, unless it does so in the usual way."""
    if not store.supports_listing:  # a web server, for reading
        return None
    inner = store
    while isinstance(inner, WrapperStore):
        inner = inner.store
    match inner.origin()[0]:
        case ("icechunk", *_):  # a snapshot, which never changes
            return None
    return None if isinstance(inner, (LocalStore, MemoryStore, shown.ReadOnlyStore)) else synchronized.guarantee(store)


def describe_group(group: Group, survey: Survey | None = None) -> GroupFacts:
    """Return the facts about a group. Its consolidated metadata, if any, is compared with all documents below.

    With a survey, only the names of these documents are compared.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> describe_group(root).consolidated
    'none'
    """
    surveyed = survey and survey.consolidated(group, is_used=source_of(group) == "consolidated")
    state, stale, problem = (*surveyed, None) if surveyed else _consolidated(group.store_path)
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
        notes=(*metadata.notes, *detection.beside(group.store_path, metadata, listed), *_of_file(group)),
        problem=problem,
        meaning=meaning.own(group.path, metadata),
    )


def _of_file(group: Group) -> Iterator[Note]:
    """Yield what of a file of another format, or of combined groups, is not shown; at the root."""
    if not group.path:
        yield from (Note("", note) for note in getattr(group.store, "notes", ()))


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
    """Return why the elements of an array cannot be read; None if they can, as far as its metadata tells."""
    try:
        bindings.bind(array.store_path, array.metadata, array.config.policy)
    except OmnizarrError as error:
        return _reason(error)
    return None


def _reason(error: OmnizarrError) -> str:
    """Return the message of an error, without the place, which is shown beside it, and the list of known names."""
    left_out = (
        {"store", "path", "expected", "remedy"} if isinstance(error, UnknownExtensionError) else {"store", "path"}
    )
    known = {name: getattr(error, name) for name in error.FIELDS if name not in left_out}
    return str(type(error)(error.message, **known))
