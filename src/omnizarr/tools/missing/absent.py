"""The chunks of an array that are not stored.

Chunks are numbered in C order. For a grid of usual size, one bit is kept for each chunk; for a larger grid, the
numbers of the stored chunks. Missing chunks are runs of numbers, which become coordinates or boxes when they are
requested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from omnizarr.api import opening
from omnizarr.codecs.sharding import Sharding
from omnizarr.errors import CodecError, StoreError
from omnizarr.model import ArrayMetadata, grids
from omnizarr.model.grids import Coords, Grid
from omnizarr.nodes import bindings, chunking, holdings
from omnizarr.nodes.array import Array
from omnizarr.stores import pool
from omnizarr.stores.base import NOT_LISTED
from omnizarr.support.progress import Progress, Tracker
from omnizarr.tools.streaming.chunks import Chunks

Box: TypeAlias = tuple[tuple[int, int], ...]

_MOST_BITS: Final = 2**30
"""Maximum number of chunks for which bits are kept."""
_MOST_ASKED_FOR: Final = 10**6
"""Maximum number of chunks that are requested one by one, if the store cannot be listed."""
_BLOCK: Final = 2**17
"""Bytes of bits that are unpacked at once."""


@dataclass(frozen=True, slots=True, eq=False)
class MissingChunks:
    """The chunks of an array that are not stored.

    Attributes
    ----------
    path : str
        Path of the array, without a leading slash.
    unit : {"chunk", "shard", "inner chunk"}
    grid_shape : tuple of int
        Number of chunks along each dimension.
    expected : int
        Number of possible chunks.
    stored : int
        Number of stored chunks.
    """

    path: str
    unit: Literal["chunk", "shard", "inner chunk"]
    expected: int
    stored: int
    _grid: Grid
    _chunks: Chunks
    _there: _Bits | _Numbers

    @property
    def count(self) -> int:
        """Number of missing chunks."""
        return self.expected - self.stored

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """Number of chunks along each dimension."""
        return self._grid.grid_shape

    def __iter__(self) -> Iterator[Coords]:
        return self.coords()

    def coords(self) -> Iterator[Coords]:
        """Yield the coordinates of missing chunks, in C order."""
        for start, stop in self._there.gaps():
            for number in range(start, stop):
                yield _unraveled(number, self.grid_shape)

    def boxes(self) -> Iterator[Box]:
        """Yield boxes of missing chunks, counted in chunks: start and stop along each dimension."""
        boxes: Iterator[Box] = chain.from_iterable(
            _boxes(start, stop, self.grid_shape) for start, stop in self._there.gaps()
        )
        for axis in range(len(self.grid_shape)):
            boxes = _joined(boxes, axis)
        return boxes

    def regions(self) -> Iterator[tuple[slice, ...]]:
        """Yield the elements of missing chunks, as selections of the array. Adjacent chunks are combined."""
        for box in self.boxes():
            parts = []
            for (first, stop), axis in zip(box, self._grid.axes, strict=True):
                start, (last, size) = axis.chunk(first)[0], axis.chunk(stop - 1)
                parts.append(slice(start, min(last + size, axis.length)))
            yield tuple(parts)

    def keys(self) -> Iterator[str]:
        """Yield the keys of missing chunks.

        Raises
        ------
        ValueError
            For inner chunks, which have no keys.
        """
        if self.unit == "inner chunk":
            raise ValueError("inner chunks have no keys of their own: ask for shards, or for coordinates")
        return map(self._chunks.key_of, self.coords())

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in values that JSON has words for."""
        return {
            "path": f"/{self.path}",
            "unit": self.unit,
            "grid_shape": list(self.grid_shape),
            "expected": self.expected,
            "stored": self.stored,
            "missing": self.count,
        }

    def __repr__(self) -> str:
        return f"<MissingChunks /{self.path}: {self.count} of {self.expected} {self.unit}s>"


def run(store: Any, *, path: str | None, inner: bool, progress: Progress, storage_options: Any) -> MissingChunks:
    """Return the chunks of an array that are not stored; see `omnizarr.missing`."""
    array = store
    if not isinstance(store, Array) or path:
        array = opening.open_array(store, mode="r", path=path, storage_options=storage_options)
    where, metadata = array.store_path, array.metadata
    chunks = Chunks.of(where, bindings.with_keys_in_use(where, metadata))
    shape = chunking.inner_chunk_shape(metadata.codecs)
    of_inner = shape if inner else None
    grid = chunks.grid if of_inner is None else grids.bind(grids.regular(of_inner), metadata.shape)
    there = _Bits(grid.nchunks) if grid.nchunks <= _MOST_BITS else _Numbers(grid.nchunks)
    with Tracker(progress, "counting", unit="key") as shown:
        listed = shown.counted(_stored(chunks, metadata))
        for coords in listed if of_inner is None else _inner_chunks(array, grid, of_inner, listed):
            there.add(_raveled(coords, grid.grid_shape))
    unit: Literal["chunk", "shard", "inner chunk"] = "chunk"
    if shape is not None:
        unit = "inner chunk" if inner else "shard"
    return MissingChunks(where.path, unit, grid.nchunks, there.count(), grid, chunks, there)


def _stored(chunks: Chunks, metadata: ArrayMetadata) -> Iterator[Coords]:
    """Yield the coordinates of stored chunks; of a store that cannot list, each chunk is asked for."""
    found = holdings.coords(chunks.where, metadata)
    try:
        first = next(found, None)
    except NOT_LISTED as error:
        if chunks.grid.nchunks > _MOST_ASKED_FOR:
            raise StoreError(
                f"the store cannot list keys, and there may be {chunks.grid.nchunks:,} chunks to ask for: {error}",
                store=str(chunks.store),
                path=chunks.where.path,
            ) from error
        yield from holdings.asked(chunks.store, chunks.prefix, chunks.encoding, chunks.grid)
        return
    if first is not None:
        yield first
    yield from found


def _inner_chunks(array: Array, grid: Grid, shape: Coords, shards: Iterable[Coords]) -> Iterator[Coords]:
    """Yield the coordinates, in the grid of all inner chunks, of those that shards say they have."""
    binding = bindings.bind(array.store_path, array.metadata, array.config.policy)
    codec = binding.chain.serializer[1]
    if isinstance(codec, Sharding) and codec.edges is not None:
        raise CodecError(
            "inner chunks that do not divide the shard form no grid",
            path=array.path,
            remedy="list shards, not inner chunks",
        )
    if not isinstance(codec, Sharding) or not binding.chain.reads_part:
        raise CodecError(
            "the index of a shard cannot be read alone", path=array.path, remedy="list shards, not inner chunks"
        )
    turned = chunking.axes_of_shards(array.metadata.codecs, len(grid.shape))

    def look(coords: Coords) -> list[Coords]:
        key = binding.prefix + binding.keys.encode(coords)
        value = binding.store.get(key, codec.index_span)
        if value is None:
            return []
        box = binding.grid.slices_of(coords)
        firsts = [part.start // size for part, size in zip(box, shape, strict=True)]
        there = np.argwhere(codec.stored(value).transpose(turned)) + firsts
        return [tuple(row) for row in there.tolist() if all(map(int.__lt__, row, grid.grid_shape))]

    return chain.from_iterable(pool.results(look, shards, max(binding.store.features.concurrency, 1)))


# -- stored chunks -------------------------------------------------------------------


class _Bits:
    """A bit for each chunk."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._bits = bytearray(-(-size // 8))

    def add(self, number: int) -> None:
        """Add a chunk."""
        self._bits[number >> 3] |= 128 >> (number & 7)

    def count(self) -> int:
        """Return how many chunks have been added."""
        return sum(part.bit_count() for part in self._parts())

    def _parts(self) -> Iterator[int]:
        for start in range(0, len(self._bits), _BLOCK):
            yield int.from_bytes(self._bits[start : start + _BLOCK], "big")

    def gaps(self) -> Iterator[tuple[int, int]]:
        """Yield start and stop of each run of chunks that have not been added."""
        begun: int | None = None
        for start in range(0, len(self._bits), _BLOCK):
            packed = np.frombuffer(self._bits, np.uint8)[start : start + _BLOCK]
            bits = np.unpackbits(packed)[: self._size - 8 * start].astype(np.int8)
            edges = np.flatnonzero(np.diff(bits, prepend=0 if begun is not None else 1))
            for edge in (edges + 8 * start).tolist():
                if begun is None:
                    begun = edge
                else:
                    yield begun, edge
                    begun = None
        if begun is not None:
            yield begun, self._size


class _Numbers:
    """The stored chunks of a grid that is mostly empty."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._numbers: set[int] = set()

    def add(self, number: int) -> None:
        """Add a chunk."""
        self._numbers.add(number)

    def count(self) -> int:
        """Return how many chunks have been added."""
        return len(self._numbers)

    def gaps(self) -> Iterator[tuple[int, int]]:
        """Yield start and stop of each run of chunks that have not been added."""
        start = 0
        for number in (*sorted(self._numbers), self._size):
            if number > start:
                yield start, number
            start = number + 1


# -- numbers and boxes -----------------------------------------------------------------


def _raveled(coords: Coords, grid_shape: Sequence[int]) -> int:
    number = 0
    for n, length in zip(coords, grid_shape, strict=True):
        number = number * length + n
    return number


def _unraveled(number: int, grid_shape: Sequence[int]) -> Coords:
    coords = []
    for length in reversed(grid_shape):
        number, n = divmod(number, length)
        coords.append(n)
    return tuple(reversed(coords))


def _boxes(start: int, stop: int, grid_shape: Sequence[int]) -> Iterator[Box]:
    """Yield the boxes that form a run of chunks.

    >>> list(_boxes(1, 6, (3, 3)))
    [((0, 1), (1, 3)), ((1, 2), (0, 3))]
    """
    if not grid_shape:
        yield ()
        return
    rest = grid_shape[1:]
    inner = math.prod(rest)
    first, skipped = divmod(start, inner)
    last, more = divmod(stop, inner)
    if first == last:
        yield from (((first, first + 1), *box) for box in _boxes(skipped, more, rest))
        return
    if skipped:
        yield from (((first, first + 1), *box) for box in _boxes(skipped, inner, rest))
        first += 1
    if first < last:
        yield ((first, last), *((0, length) for length in rest))
    if more:
        yield from (((last, last + 1), *box) for box in _boxes(0, more, rest))


def _joined(boxes: Iterable[Box], axis: int) -> Iterator[Box]:
    """Yield boxes, joining consecutive ones that are adjacent along an axis.

    >>> list(_joined([((0, 1), (2, 3)), ((1, 2), (2, 3))], 0))
    [((0, 2), (2, 3))]
    """
    held: Box | None = None
    for box in boxes:
        if held is None:
            held = box
        elif held[axis][1] == box[axis][0] and _without(held, axis) == _without(box, axis):
            held = (*held[:axis], (held[axis][0], box[axis][1]), *held[axis + 1 :])
        else:
            yield held
            held = box
    if held is not None:
        yield held


def _without(box: Box, axis: int) -> Box:
    return (*box[:axis], *box[axis + 1 :])
