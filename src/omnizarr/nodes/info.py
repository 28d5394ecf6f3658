"""What `info` shows of a node: cards to be printed, and what must be counted for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnizarr.engine import transformers
from omnizarr.errors import OmnizarrError
from omnizarr.model import UNDEFINED, ArrayMetadata, datatypes, grids, keys
from omnizarr.nodes.detection import with_keys_in_use
from omnizarr.nodes.location import StorePath, chunk_prefix
from omnizarr.stores import PrefixStore, Store
from omnizarr.support.text import visible


class _Card:
    """Lines of names and values."""

    def items(self) -> list[tuple[str, object]]:
        """Return names and values, in order."""
        raise NotImplementedError

    def __repr__(self) -> str:
        items = self.items()
        width = max(len(name) for name, _ in items)
        return "\n".join(f"{name:<{width}} : {visible(str(value))}" for name, value in items)


@dataclass(frozen=True, repr=False)
class ArrayInfo(_Card):
    """What an array is, and, if counted, how much of it is stored."""

    zarr_format: int | str
    data_type: str
    fill_value: object
    shape: tuple[int, ...]
    shard_shape: object
    chunk_shape: object
    order: str
    read_only: bool
    store_type: str
    filters: tuple[object, ...]
    serializer: object
    compressors: tuple[object, ...]
    engine: str | None
    chunk_cache: int
    nbytes: int | None
    nbytes_stored: int | None = None
    chunks_stored: int | None = None
    chunks_expected: int | None = None

    def items(self) -> list[tuple[str, object]]:
        """Return names and values, in order."""
        rows: list[tuple[str, object]] = [
            ("Type", "Array"),
            ("Zarr format", self.zarr_format),
            ("Data type", self.data_type),
            ("Fill value", self.fill_value),
            ("Shape", self.shape),
        ]
        if self.shard_shape is not None:
            rows.append(("Shard shape", self.shard_shape))
        rows += [
            ("Chunk shape", self.chunk_shape),
            ("Order", self.order),
            ("Read-only", self.read_only),
            ("Store type", self.store_type),
            ("Filters", self.filters),
            ("Serializer", self.serializer),
            ("Compressors", self.compressors),
        ]
        if self.engine is not None:
            rows.append(("Engine", self.engine))
        if self.chunk_cache:
            rows.append(("Chunk cache", readable(self.chunk_cache)))
        if self.nbytes is not None:
            rows.append(("No. bytes", readable(self.nbytes)))
        if self.nbytes_stored is not None:
            rows.append(("No. bytes stored", readable(self.nbytes_stored)))
            if self.nbytes and self.nbytes_stored:
                rows.append(("Storage ratio", f"{self.nbytes / self.nbytes_stored:.1f}"))
        if self.chunks_stored is not None:
            what = "Chunks" if self.shard_shape is None else "Shards"
            rows.append((f"{what} stored", f"{self.chunks_stored} of {self.chunks_expected}"))
        return rows


@dataclass(frozen=True, repr=False)
class GroupInfo(_Card):
    """What a group is, and, if counted, what lies below."""

    name: str
    zarr_format: int | str
    read_only: bool
    store_type: str
    is_implicit: bool
    is_consolidated: bool
    members: int | None = None
    arrays: int | None = None
    groups: int | None = None

    def items(self) -> list[tuple[str, object]]:
        """Return names and values, in order."""
        rows: list[tuple[str, object]] = [
            ("Name", self.name),
            ("Type", "Group (implicit)" if self.is_implicit else "Group"),
            ("Zarr format", self.zarr_format),
            ("Read-only", self.read_only),
            ("Store type", self.store_type),
            ("Consolidated", self.is_consolidated),
        ]
        if self.members is not None:
            rows += [("No. members", self.members), ("No. arrays", self.arrays), ("No. groups", self.groups)]
        return rows


def of_array(array: Any, *, complete: bool = False) -> ArrayInfo:
    """Return the card of an array; `complete` counts what is stored."""
    metadata: ArrayMetadata = array.metadata
    return ArrayInfo(
        zarr_format=array.zarr_format,
        data_type=type_name(metadata),
        fill_value="undefined" if metadata.fill_value is UNDEFINED else metadata.fill_value,
        shape=metadata.shape,
        shard_shape=_or_name(lambda: array.shards, metadata),
        chunk_shape=_or_name(lambda: array.chunks, metadata),
        order=array.order,
        read_only=array.read_only,
        store_type=type(array.store).__name__,
        filters=array.filters,
        serializer=array.serializer,
        compressors=array.compressors,
        engine=engine_name(array),
        chunk_cache=getattr(array.config.chunk_cache, "limit", array.config.chunk_cache),
        nbytes=_nbytes(metadata),
        nbytes_stored=stored_bytes(array.store_path) if complete else None,
        chunks_stored=count_stored(array.store_path, metadata) if complete else None,
        chunks_expected=count_expected(metadata) if complete else None,
    )


def is_array(node: Any) -> bool:
    """Return whether a node is an array."""
    return hasattr(type(node), "shape")


def _or_name(value: Any, metadata: ArrayMetadata) -> object:
    try:
        return value()
    except OmnizarrError:
        return f"grid {metadata.chunk_grid.name!r}"


def engine_name(array: Any) -> str | None:
    """Return which engine serves an array; None if none can, or the one that is wanted is not there."""
    try:
        return str(array.engine)
    except OmnizarrError:
        return None


def _nbytes(metadata: ArrayMetadata) -> int | None:
    try:
        data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    except OmnizarrError:
        return None
    return math.prod(metadata.shape) * data_type.dtype.itemsize if data_type.is_fixed_size else None


def type_name(metadata: ArrayMetadata) -> str:
    """Return the data type in a word: NumPy's, where it has one, else the document's."""
    try:
        dtype = datatypes.bind(metadata.data_type, metadata.byte_order).dtype
    except OmnizarrError:
        return metadata.data_type.name
    if dtype.hasobject or dtype.kind == "T":
        return metadata.data_type.name.removeprefix("omnizarr.")
    return str(dtype)


def store_name(store: Store) -> str:
    """Return a store in a word: its class without "Store"; of a part of a store, that of the store."""
    while isinstance(store, PrefixStore):
        store = store.store
    return type(store).__name__.removesuffix("Store").lower()


def stored_bytes(where: StorePath) -> int:
    """Return the bytes under a node, documents included."""
    return sum(size for _, size in where.store.list_sizes(where.prefix))


def count_expected(metadata: ArrayMetadata) -> int | None:
    """Return how many chunks (shards) the array has, stored or not; None if nobody knows its grid."""
    try:
        return grids.bind(metadata.chunk_grid, metadata.shape).nchunks
    except OmnizarrError:
        return None


def count_stored(where: StorePath, metadata: ArrayMetadata) -> int:
    """Return how many chunks (shards) of the array are stored."""
    return sum(1 for _ in stored_coords(where, metadata))


def stored_coords(where: StorePath, metadata: ArrayMetadata) -> Iterator[tuple[int, ...]]:
    """Yield the coordinates of the chunks (shards) of the array that are stored."""
    prefix = chunk_prefix(where, metadata)
    encoding = keys.bind(with_keys_in_use(where, metadata).chunk_key_encoding)
    grid_shape = grids.bind(metadata.chunk_grid, metadata.shape).grid_shape
    store = transformers.apply(metadata.storage_transformers, where.store, prefix)
    for key in store.list_prefix(prefix):
        coords = encoding.decode(key[len(prefix) :], len(grid_shape))
        if coords is not None and all(n < total for n, total in zip(coords, grid_shape, strict=True)):
            yield coords


def readable(size: int) -> str:
    """Return a number of bytes, and beside it the same in a larger unit.

    >>> readable(13915645)
    '13915645 (13.3M)'
    """
    scaled, unit = float(size), ""
    for unit in ("", "K", "M", "G", "T", "P"):
        if scaled < 1024 or unit == "P":
            break
        scaled /= 1024
    return f"{size} ({scaled:.1f}{unit})" if unit else str(size)
