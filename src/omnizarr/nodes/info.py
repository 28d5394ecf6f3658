"""Facts about a node as plain values: its metadata, and how much of it is stored.

Cards (`info_card`), HTML (`info_html`), trees (`info_tree`), `omnizarr.tools.describe` and the command line show
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from omnizarr.engine import transformers
from omnizarr.errors import OmnizarrError, UnknownExtensionError
from omnizarr.formats import dialect_named
from omnizarr.metadata import as_model
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, Named, Note, datatypes, dimensions, grids, keys, thawed
from omnizarr.model.grids import Coords
from omnizarr.nodes import chunking, wording
from omnizarr.nodes.detection import sizes, with_keys_in_use
from omnizarr.nodes.location import StorePath, chunk_prefix
from omnizarr.stores import PrefixStore, Store

Tick = Callable[[int], None]
"""Called with the number of additional keys counted."""


def silent(_: int) -> None:
    """Do nothing."""


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
        dtype = datatypes.bind(metadata.data_type, metadata.byte_order).dtype
    except OmnizarrError:
        return metadata.data_type.name
    if dtype.hasobject or dtype.kind == "T":
        return metadata.data_type.name.removeprefix("omnizarr.")
    return str(dtype)


def store_name(store: Store) -> str:
    """Return a store as one word: its class without "Store"; for a part of a store, the class of that store."""
    while isinstance(store, PrefixStore):
        store = store.store
    return type(store).__name__.removesuffix("Store").lower()


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


def coords_decoder(metadata: ArrayMetadata) -> Callable[[str], tuple[int, ...] | None]:
    """Return a function that returns the coordinates of a chunk (shard) for the rest of its key after `chunk_prefix`.

    It returns None for other keys. Raises the errors of binding grid and key encoding.
    """
    decode = keys.bind(metadata.chunk_key_encoding).decode
    grid_shape = grids.bind(metadata.chunk_grid, metadata.shape).grid_shape

    def coords_of(rest: str) -> tuple[int, ...] | None:
        coords = decode(rest, len(grid_shape))
        if coords is None or not all(n < length for n, length in zip(coords, grid_shape, strict=True)):
            return None
        return coords

    return coords_of


def stored_bytes(where: StorePath) -> int:
    """Return the bytes under a node, documents included."""
    return sum(_sizes(where, silent))


def stored_coords(where: StorePath, metadata: ArrayMetadata) -> Iterator[tuple[int, ...]]:
    """Yield the coordinates of the stored chunks (shards) of the array."""
    prefix, coords_of = chunk_prefix(where, metadata), key_decoder(where, metadata)
    store = transformers.apply(metadata.storage_transformers, where.store, prefix)
    for key in store.list_prefix(prefix):
        coords = coords_of(key)
        if coords is not None:
            yield coords


def stored_sizes(where: StorePath, metadata: ArrayMetadata) -> Iterator[tuple[Coords, int | None]]:
    """Yield coordinates and size in bytes of the stored chunks (shards) of the array.

    Sizes are None with storage transformers, which store something other than chunks.
    """
    if metadata.storage_transformers:
        for coords in stored_coords(where, metadata):
            yield coords, None
        return
    coords_of = key_decoder(where, metadata)
    for key, size in sizes(where):
        found = coords_of(key)
        if found is not None:
            yield found, size


def count(where: StorePath, metadata: ArrayMetadata, tick: Tick = silent) -> tuple[int | None, int]:
    """Return the number of stored chunks (shards) of an array, and the number of bytes under its path.

    The first is None if its grid or the keys of its chunks are unknown.
    """
    try:
        coords_of = key_decoder(where, metadata)
    except OmnizarrError:
        return None, sum(_sizes(where, tick))
    if metadata.storage_transformers:  # the keys below are not keys of chunks
        stored: int | None = None
        with suppress(UnknownExtensionError):
            stored = sum(1 for _ in stored_coords(where, metadata))
        return stored, sum(_sizes(where, tick))
    found = total = 0
    for key, size in sizes(where):
        found += coords_of(key) is not None
        total += size
        tick(1)
    return found, total


def counter(where: StorePath, metadata: ArrayMetadata) -> Callable[[str], bool] | None:
    """Return a function that recognises keys of chunks (shards) of an array; None if they are unknown."""
    if metadata.storage_transformers:
        return None
    try:
        coords_of = key_decoder(where, metadata)
    except OmnizarrError:
        return None
    return lambda key: coords_of(key) is not None


def key_decoder(where: StorePath, metadata: ArrayMetadata) -> Callable[[str], tuple[int, ...] | None]:
    """Return a function that returns the coordinates of the chunk (shard) for a key; None for other keys."""
    prefix = chunk_prefix(where, metadata)
    decode = coords_decoder(with_keys_in_use(where, metadata))
    return lambda key: decode(key[len(prefix) :]) if key.startswith(prefix) else None


def _sizes(where: StorePath, tick: Tick) -> Iterator[int]:
    for _, size in sizes(where):
        tick(1)
        yield size


def _note(note: Note) -> dict[str, str]:
    return {"pointer": note.pointer, "message": note.message, "spec": note.spec}
