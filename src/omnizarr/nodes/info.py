"""Facts about a node as plain values: its metadata, and how much of it is stored.

Cards (`info_card`), HTML (`info_html`), trees (`info_tree`), `omnizarr.tools.describe` and the command line show
them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from omnizarr.errors import OmnizarrError
from omnizarr.formats import dialect_named
from omnizarr.formats.conventions.ome.summary import summary
from omnizarr.metadata import as_model
from omnizarr.model import (
    JSON,
    UNDEFINED,
    ArrayMetadata,
    GroupMetadata,
    Named,
    Note,
    datatypes,
    dimensions,
    grids,
    thawed,
)
from omnizarr.model.datatypes.fixed_point import FixedPoint
from omnizarr.model.datatypes.optional import NAME, NAMES
from omnizarr.model.datatypes.structs import named_from_json
from omnizarr.nodes import chunking, wording
from omnizarr.nodes.location import StorePath
from omnizarr.stores import PrefixStore, Store
from omnizarr.support.text import visible

Consolidated = Literal["none", "current", "stale", "broken", "not compared"]
"""State of the consolidated metadata of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFacts:
    """The facts of an array.

    Attributes
    ----------
    path : str
        Without a leading slash.
    data_type : str
        The data type as one word.
    chunks, shards : tuple of int or None
        None: the shapes differ or the grid is unknown (`chunks`), or there are no shards (`shards`).
    itemsize : int or None
        Bytes of an element in memory; None if they depend on the values.
    chain : tuple of Named
        The codecs.
    expected : int or None
        Number of possible chunks (with shards: shards); None if unknown.
    stored : int or None
        Number of stored chunks; None if unknown or not counted.
    bytes_stored : int or None
        Number of stored bytes, documents included; None if unknown, 0 if not counted.
    problem : str or None
        Why its elements cannot be read.
    writers : str or None
        How the store keeps writers of parts of one chunk apart; None: by locks, as in directories and memory.
    meaning : mapping
        What conventions say of it: `omnizarr.formats.conventions.meaning`.
    """

    path: str
    zarr_format: int | str
    dialect: str
    data_type: str
    shape: tuple[int, ...]
    dimension_names: tuple[str | None, ...] | None
    chunks: tuple[int, ...] | None
    shards: tuple[int, ...] | None
    itemsize: int | None
    fill_value: JSON
    has_fill_value: bool
    chain: tuple[Named, ...]
    expected: int | None
    attributes: Mapping[str, JSON]
    notes: tuple[Note, ...]
    stored: int | None = None
    bytes_stored: int | None = 0
    problem: str | None = None
    writers: str | None = None
    meaning: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """What is stored under one key: chunks or shards."""
        return "chunk" if self.shards is None else "shard"

    @property
    def codecs(self) -> tuple[str, ...]:
        """The codecs in plain words."""
        return tuple(wording.codecs(self.chain))

    @property
    def bytes_logical(self) -> int | None:
        """Bytes of the elements in memory; None if they depend on the values."""
        return self.nbytes_of(self.shape)

    @property
    def chunk_nbytes(self) -> int | None:
        """Bytes of a whole chunk in memory; None if they depend on the values."""
        return None if self.chunks is None else self.nbytes_of(self.chunks)

    def nbytes_of(self, shape: tuple[int, ...]) -> int | None:
        """Return the bytes that a number of elements takes in memory; None if they depend on the values."""
        return None if self.itemsize is None else self.itemsize * math.prod(shape)

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
            **({"meaning": dict(self.meaning)} if self.meaning else {}),
            "notes": [_note(note) for note in self.notes],
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """The facts of a group.

    Attributes
    ----------
    path : str
        Without a leading slash.
    consolidated : {"none", "current", "stale", "broken", "not compared"}
        State of its consolidated metadata. In a remote store, its copies are used, and not compared.
    stale : tuple of str
        Paths relative to the group where the copies differ from the documents.
    problem : str or None
        What is wrong with the consolidated metadata.
    meaning : mapping
        What conventions say of it: `omnizarr.formats.conventions.meaning`.
    """

    path: str
    zarr_format: int | str
    dialect: str
    is_implicit: bool
    consolidated: Consolidated
    stale: tuple[str, ...]
    attributes: Mapping[str, JSON]
    notes: tuple[Note, ...]
    problem: str | None = None
    meaning: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def ome(self) -> dict[str, Any]:
        """What it holds, if it has metadata of OME-Zarr: `omnizarr.formats.conventions.ome.summary`."""
        return summary(GroupMetadata(dialect=self.dialect, attributes=self.attributes))

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON."""
        ome = self.ome
        return {
            "path": f"/{self.path}",
            "node_type": "group",
            "zarr_format": self.zarr_format,
            "dialect": self.dialect,
            "implicit": self.is_implicit,
            "consolidated": {"state": self.consolidated, "stale": list(self.stale)},
            "attributes": dict(self.attributes),
            **({"meaning": dict(self.meaning)} if self.meaning else {}),
            **({"ome_zarr": ome} if ome else {}),
            "notes": [_note(note) for note in self.notes],
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class UnreadableFacts:
    """A node whose metadata cannot be read, and the reason."""

    path: str
    problem: str

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON."""
        return {"path": f"/{self.path}", "node_type": "unreadable", "problem": self.problem}


Facts = ArrayFacts | GroupFacts | UnreadableFacts


def of_array(where: StorePath, metadata: ArrayMetadata) -> ArrayFacts:
    """Return the facts in the metadata of an array. Nothing is counted.

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=(8,), chunks=(2,), dtype="int64", compressors="gzip", fill_value=0)
    >>> facts = of_array(array.store_path, array.metadata)
    >>> facts.chunks, facts.expected, facts.bytes_logical, facts.codecs
    ((2,), 4, 64, ('gzip level 5',))
    """
    grid = _grid(metadata)
    inner, outer = chunking.inner_chunk_shape(metadata.codecs), None if grid is None else grid.chunk_shape
    return ArrayFacts(
        path=where.path,
        zarr_format=dialect_named(metadata.dialect).zarr_format,
        dialect=metadata.dialect,
        data_type=type_name(metadata),
        shape=metadata.shape,
        dimension_names=dimensions.names_of(as_model(metadata)),
        chunks=outer if inner is None else inner,
        shards=None if inner is None else outer,
        itemsize=_item_size(metadata),
        fill_value=None if metadata.fill_value is UNDEFINED else thawed(metadata.fill_value),
        has_fill_value=metadata.fill_value is not UNDEFINED,
        chain=metadata.codecs,
        expected=None if grid is None else grid.nchunks,
        attributes=metadata.attributes,
        notes=metadata.notes,
    )


def is_array(node: Any) -> bool:
    """Return whether a node is an array."""
    return hasattr(type(node), "shape")


def engine_name(array: Any) -> str | None:
    """Return the engine of an array; None if no engine supports it, or the requested one is missing."""
    try:
        return str(array.engine)
    except OmnizarrError:
        return None


def type_name(metadata: ArrayMetadata) -> str:
    """Return the data type as one word: NumPy's name if it has one, otherwise the document's."""
    try:
        data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    except OmnizarrError:
        return metadata.data_type.name
    dtype = data_type.dtype
    if isinstance(data_type.scalars, FixedPoint):
        return data_type.scalars.words
    if metadata.data_type.name in NAMES:
        inner = replace(metadata, data_type=named_from_json(metadata.data_type.configuration))
        return f"{NAME}[{type_name(inner)}]"
    if dtype.hasobject or dtype.kind == "T":
        return metadata.data_type.name.removeprefix("omnizarr.")
    return str(dtype)


def store_name(store: Store) -> str:
    """Return what a store is in one word, and its place: ``local /data/era5.zarr``.

    The word is its class without "Store"; for a part of a store, the class of that store.

    >>> from omnizarr.stores import MemoryStore
    >>> store_name(MemoryStore())
    'memory'
    """
    inner = store
    while isinstance(inner, PrefixStore):
        inner = inner.store
    word = type(inner).__name__.removesuffix("Store").lower()
    return visible(f"{word} {store.place}".rstrip())


def _item_size(metadata: ArrayMetadata) -> int | None:
    try:
        data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    except OmnizarrError:
        return None
    return data_type.dtype.itemsize if data_type.is_fixed_size else None


def _grid(metadata: ArrayMetadata) -> grids.Grid | None:
    """Return the grid of the chunks (shards); None if it is unknown."""
    try:
        return grids.bind(metadata.chunk_grid, metadata.shape)
    except OmnizarrError:
        return None


def _note(note: Note) -> dict[str, str]:
    return {"pointer": note.pointer, "message": note.message, "spec": note.spec}
