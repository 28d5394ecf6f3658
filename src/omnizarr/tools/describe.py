"""The facts of a node that a listing shows: what it is, what of it is stored, and whether it can be read here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from omnizarr.errors import OmnizarrError, UnknownExtensionError
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, Named, Note, datatypes, grids, keys
from omnizarr.nodes import consolidated, detection, info, wording
from omnizarr.nodes.array import Array
from omnizarr.nodes.detection import sizes, with_keys_in_use
from omnizarr.nodes.group import Group, UnreadableNode
from omnizarr.nodes.location import StorePath, chunk_prefix
from omnizarr.stores import LocalStore, MemoryStore, Store, WrapperStore, pool
from omnizarr.stores.wrap import synchronized

Tick = Callable[[int], None]
"""Told how many more keys have been counted."""


def _silent(_: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFacts:
    """What an array is.

    Attributes
    ----------
    path : str
        Without a leading slash.
    data_type : str
        In a word.
    chunks, shards : tuple of int or None
        None: shapes that differ, or a grid that nobody here knows (`chunks`), no shards (`shards`).
    chunk_nbytes : int or None
        Of a whole chunk in memory; None if it depends on the values.
    codecs : tuple of str
        In plain words.
    stored, expected : int or None
        Chunks (with shards: shards) that are there, and that there could be; None if it cannot be known.
    bytes_stored : int
        Documents included.
    bytes_logical : int or None
        Of the elements in memory; None if it depends on the values.
    problem : str or None
        Why its elements cannot be read here.
    writers : str or None
        How the store keeps writers of parts of one chunk apart; None: as a directory and memory do, by locks.
    """

    path: str
    zarr_format: int | str
    dialect: str
    data_type: str
    shape: tuple[int, ...]
    dimension_names: tuple[str | None, ...] | None
    chunks: tuple[int, ...] | None
    shards: tuple[int, ...] | None
    chunk_nbytes: int | None
    fill_value: JSON
    has_fill_value: bool
    codecs: tuple[str, ...]
    chain: tuple[Named, ...]
    stored: int | None
    expected: int | None
    bytes_stored: int
    bytes_logical: int | None
    attributes: Mapping[str, JSON]
    notes: tuple[Note, ...]
    problem: str | None
    writers: str | None = None

    @property
    def unit(self) -> str:
        """What lies under one key."""
        return "chunk" if self.shards is None else "shard"

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON."""
        return {
            "path": f"/{self.path}",
            "node_type": "array",
            "zarr_format": self.zarr_format,
            "dialect": self.dialect,
            "data_type": self.data_type,
            "shape": list(self.shape),
            "dimension_names": None if self.dimension_names is None else list(self.dimension_names),
            "chunks": None if self.chunks is None else list(self.chunks),
            "shards": None if self.shards is None else list(self.shards),
            **({"fill_value": self.fill_value} if self.has_fill_value else {}),
            "codecs": [{"name": codec.name, "configuration": dict(codec.configuration)} for codec in self.chain],
            "codecs_in_words": list(self.codecs),
            "stored": self.stored,
            "expected": self.expected,
            "bytes_stored": self.bytes_stored,
            "bytes_logical": self.bytes_logical,
            "ratio": self.bytes_logical / self.bytes_stored if self.bytes_stored and self.bytes_logical else None,
            "attributes": dict(self.attributes),
            **({} if self.writers is None else {"writers": self.writers}),
            "notes": [_note(note) for note in self.notes],
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """What a group is.

    Attributes
    ----------
    path : str
        Without a leading slash.
    consolidated : {"none", "current", "stale", "broken"}
        State of its consolidated metadata.
    stale : tuple of str
        Paths relative to the group where the copies do not say what the documents say.
    problem : str or None
        What is wrong with the consolidated metadata.
    """

    path: str
    zarr_format: int | str
    dialect: str
    is_implicit: bool
    consolidated: Literal["none", "current", "stale", "broken"]
    stale: tuple[str, ...]
    attributes: Mapping[str, JSON]
    notes: tuple[Note, ...]
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON."""
        return {
            "path": f"/{self.path}",
            "node_type": "group",
            "zarr_format": self.zarr_format,
            "dialect": self.dialect,
            "implicit": self.is_implicit,
            "consolidated": {"state": self.consolidated, "stale": list(self.stale)},
            "attributes": dict(self.attributes),
            "notes": [_note(note) for note in self.notes],
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class UnreadableFacts:
    """A node whose documents cannot be understood, and why."""

    path: str
    problem: str

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON."""
        return {"path": f"/{self.path}", "node_type": "unreadable", "problem": self.problem}


Facts = ArrayFacts | GroupFacts | UnreadableFacts


def members(group: Group) -> Iterator[tuple[str, Any]]:
    """Yield name and node of each member right below; where the store cannot list them, the group as unreadable."""
    try:
        yield from group.items()
    except OmnizarrError as error:
        yield "", UnreadableNode(group.store_path, error)


def walk(group: Group, max_depth: int | None = None) -> Iterator[tuple[int, Any]]:
    """Yield depth (0: right below the group) and node of each node below, a group before its members.

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
    node: Array | Group | UnreadableNode, tick: Tick = _silent, more: Mapping[str, tuple[Note, ...]] | None = None
) -> Facts:
    """Return the facts of a node; of an array its chunks are counted, of a group its consolidated metadata checked.

    `more` are further notes, by path: what a netCDF dataset has to say of its nodes.
    """
    if isinstance(node, UnreadableNode):
        return UnreadableFacts(node.path, _reason(node.error))
    try:
        facts: ArrayFacts | GroupFacts = describe_array(node, tick) if isinstance(node, Array) else describe_group(node)
    except OmnizarrError as error:  # of the store: what it cannot list or read hides none of the siblings
        return UnreadableFacts(node.path, _reason(error))
    added = (more or {}).get(node.path, ())
    return replace(facts, notes=(*facts.notes, *added)) if added else facts


def describe_all(
    nodes: Iterable[Any], tick: Tick, more: Mapping[str, tuple[Note, ...]], concurrency: int
) -> Iterator[Facts]:
    """Yield the facts of nodes in their order, several of them looked at side by side."""
    early: dict[int, Facts] = {}
    due = 0
    for position, facts in pool.gather(lambda node: describe(node, tick, more), nodes, concurrency):
        early[position] = facts
        while due in early:
            yield early.pop(due)
            due += 1


def describe_array(array: Array, tick: Tick = _silent) -> ArrayFacts:
    """Return the facts of an array, whether or not its elements can be read here.

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=(8,), chunks=(2,), dtype="int64", compressors="gzip", fill_value=0)
    >>> array[:3] = 1
    >>> facts = describe_array(array)
    >>> facts.stored, facts.expected, facts.bytes_logical, facts.codecs
    (2, 4, 64, ('gzip level 5',))
    """
    metadata = array.metadata
    problem = _problem(array)
    stored, bytes_stored = count(array.store_path, metadata, tick)
    itemsize = _item_size(metadata)
    chunks = _regular(lambda: array.chunks)
    return ArrayFacts(
        path=array.path,
        zarr_format=array.zarr_format,
        dialect=metadata.dialect,
        data_type=info.type_name(metadata),
        shape=metadata.shape,
        dimension_names=array.dimension_names,
        chunks=chunks,
        shards=_regular(lambda: array.shards),
        chunk_nbytes=None if itemsize is None or chunks is None else itemsize * math.prod(chunks),
        fill_value=None if metadata.fill_value is UNDEFINED else metadata.fill_value,
        has_fill_value=metadata.fill_value is not UNDEFINED,
        codecs=tuple(wording.codecs(metadata.codecs)),
        chain=metadata.codecs,
        stored=stored,
        expected=info.count_expected(metadata),
        bytes_stored=bytes_stored,
        bytes_logical=None if itemsize is None else itemsize * math.prod(metadata.shape),
        attributes=metadata.attributes,
        notes=(*metadata.notes, *detection.beside(array.store_path, metadata)),
        problem=problem,
        writers=_writers(array.store_path.store),
    )


def _writers(store: Store) -> str | None:
    """Return how a store keeps writers apart, where that is not plain."""
    inner = store
    while isinstance(inner, WrapperStore):
        inner = inner.store
    return None if isinstance(inner, (LocalStore, MemoryStore)) else synchronized.guarantee(store)


def describe_group(group: Group) -> GroupFacts:
    """Return the facts of a group; its consolidated metadata, if any, is compared with all documents below.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> describe_group(root).consolidated
    'none'
    """
    state, stale, problem = _consolidated(group.store_path)
    metadata = group.metadata
    return GroupFacts(
        path=group.path,
        zarr_format=group.zarr_format,
        dialect=metadata.dialect,
        is_implicit=metadata.implicit,
        consolidated=state,
        stale=stale,
        attributes=metadata.attributes,
        notes=(*metadata.notes, *detection.beside(group.store_path, metadata)),
        problem=problem,
    )


def _consolidated(
    where: StorePath,
) -> tuple[Literal["none", "current", "stale", "broken"], tuple[str, ...], str | None]:
    try:
        nodes = consolidated.read(where)
    except OmnizarrError as error:
        return "broken", (), _reason(error)
    if nodes is None:
        return "none", (), None
    stale = tuple(consolidated.differences(where, nodes))
    return ("stale" if stale else "current"), stale, None


def count(where: StorePath, metadata: ArrayMetadata, tick: Tick = _silent) -> tuple[int | None, int]:
    """Return how many chunks (shards) of an array are stored, and how many bytes lie under its path.

    The first is None if nobody here knows its grid or the keys of its chunks.
    """
    prefix = chunk_prefix(where, metadata)
    try:
        decode = keys.bind(with_keys_in_use(where, metadata).chunk_key_encoding).decode
        grid_shape = grids.bind(metadata.chunk_grid, metadata.shape).grid_shape
        stored: int | None = 0
    except OmnizarrError:
        stored = None
    if metadata.storage_transformers and stored is not None:  # keys below them are not those of chunks
        with suppress(UnknownExtensionError):
            return info.count_stored(where, metadata), sum(_sizes(where, tick))
        return None, sum(_sizes(where, tick))
    total = 0
    for key, size in sizes(where):
        total += size
        if stored is not None and key.startswith(prefix):
            coords = decode(key[len(prefix) :], len(grid_shape))
            stored += coords is not None and all(n < length for n, length in zip(coords, grid_shape, strict=True))
        tick(1)
    return stored, total


def _sizes(where: StorePath, tick: Tick) -> Iterator[int]:
    for _, size in sizes(where):
        tick(1)
        yield size


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


def _item_size(metadata: ArrayMetadata) -> int | None:
    try:
        data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    except OmnizarrError:
        return None
    return data_type.dtype.itemsize if data_type.is_fixed_size else None


def _regular(shape: Callable[[], Any]) -> tuple[int, ...] | None:
    """Return the one shape of all chunks, or None."""
    try:
        lengths = shape()
    except OmnizarrError:
        return None
    return lengths if isinstance(lengths, tuple) and all(isinstance(length, int) for length in lengths) else None


def _note(note: Note) -> dict[str, str]:
    return {"pointer": note.pointer, "message": note.message, "spec": note.spec}
