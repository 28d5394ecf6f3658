"""The chunks of an array, wherever they are: which are stored, and what they hold."""

from __future__ import annotations

import itertools
import math
import operator
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omnizarr import engine, indexing
from omnizarr.codecs.contract import AnyArray, Buffer, ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.engine.binding import most_stored
from omnizarr.errors import ChunkError, OmnizarrError, StoreError
from omnizarr.model import ArrayMetadata, datatypes, grids, keys
from omnizarr.model.grids import Coords, Grid
from omnizarr.model.key_forms import KeyEncoding
from omnizarr.nodes import chunking, holdings
from omnizarr.nodes.bindings import in_its_document
from omnizarr.nodes.location import StorePath, chunk_prefix, dialect_of
from omnizarr.stores import Store, pool, verbs
from omnizarr.stores.base import NOT_LISTED
from omnizarr.support.locks import RLock
from omnizarr.tools.streaming.regions import Box, Regions

_VARIABLE: Final = 256
"""Assumed bytes of an element of variable size."""
_MOST_LOOKED_FOR: Final = 1000
"""Number of chunks that are requested from a store that cannot list, to find out whether one is missing."""
_MOST_REASONS: Final = 1000
"""Maximum number of broken chunks whose errors are kept."""
_LONGEST_REASON: Final = 300
_FEW: Final = 1024
"""Up to this number of chunks in a box, each is requested, whether or not it is stored."""
_MOST_LISTED: Final = 2**18
"""Maximum number of stored chunks whose coordinates are kept."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """Where the chunks of an array are, even if they cannot be decoded."""

    where: StorePath
    metadata: ArrayMetadata
    store: Store
    prefix: str
    encoding: KeyEncoding
    grid: Grid
    keys: tuple[str, ...] | None = None
    """What is stored below the array, relative to it, if a listing of more than that has told."""

    @classmethod
    def of(
        cls,
        where: StorePath,
        metadata: ArrayMetadata,
        store: Store | None = None,
        known: tuple[str, ...] | None = None,
    ) -> Chunks:
        """Return the chunks of the array at a place, which need not have a document yet.

        `store` replaces the store of the place; `known` are the keys that are stored below the array. Raises what
        binding grid and key encoding raises.
        """
        metadata = dialect_of(where, metadata).keyspace.settle(metadata)
        try:
            encoding = keys.bind(metadata.chunk_key_encoding)
            grid = grids.bind(metadata.chunk_grid, metadata.shape)
        except OmnizarrError as error:
            raise error.add(store=str(where.store), path=where.path)
        return cls(where, metadata, store or where.store, chunk_prefix(where, metadata), encoding, grid, known)

    def key_of(self, coords: Coords) -> str:
        """Return the store key of a chunk."""
        return self.prefix + self.encoding.encode(coords)

    def value_of(self, coords: Coords) -> Buffer | None:
        """Return the stored bytes of a chunk; None if it is not stored.

        Raises StoreLimitError if it is larger than its metadata allow; then nothing is read.
        """
        return verbs.get_within(self.store, self.key_of(coords), self.most_stored)

    @property
    def most_stored(self) -> int:
        """How many bytes a stored chunk may have. With codecs that are not known here, there is no bound."""
        try:
            return most_stored(self.metadata, ChunkPolicy())
        except OmnizarrError:
            return sys.maxsize

    def bind(self, policy: ChunkPolicy) -> Binding:
        """Return what reading and writing elements needs; raises what `omnizarr.engine.bind` raises."""
        try:
            return engine.bind(self.metadata, self.store, self.prefix, policy, self.where.path)
        except OmnizarrError as error:
            raise in_its_document(error, self.where, self.metadata)

    def coords_of(self, key: str) -> Coords | None:
        """Return the coordinates of the chunk with a store key; None if no chunk of the array has it."""
        coords = self.encoding.decode(key[len(self.prefix) :], len(self.grid.shape))
        is_inside = coords is not None and all(map(operator.lt, coords, self.grid.grid_shape))
        return coords if is_inside else None

    def listed(self) -> Iterator[Coords]:
        """Yield the coordinates of the chunks that are stored, in a store that lists.

        Raises one of `NOT_LISTED` if it does not; StoreError if there are too many to be asked for.
        """
        if self.keys is None:
            return holdings.found(self.store, self.prefix, self.encoding, self.grid)
        known = (f"{self.where.prefix}{key}" for key in self.keys)
        found = (self.coords_of(key) for key in known if key.startswith(self.prefix))
        return (coords for coords in found if coords is not None)

    def sizes(self) -> Iterator[tuple[Coords, int]]:
        """Yield the same coordinates, each with the size of the chunk in bytes."""
        if holdings.is_asked(self.store):
            for _, (at, nbytes) in pool.gather(
                lambda at: (at, self.store.size(self.key_of(at))), self.stored(), self.store.features.concurrency
            ):
                if nbytes is not None:
                    yield at, nbytes
            return
        for key, size in verbs.list_sizes(self.store, self.prefix):
            coords = self.coords_of(key)
            if coords is not None:
                yield coords, size

    def stored(self) -> Iterator[Coords]:
        """Yield the coordinates of the chunks that are stored; of a store that lists not all, or none, of all.

        Raises StoreError if there are too many of these.
        """
        yield from self.known()[1]

    def known(self) -> tuple[bool, Iterator[Coords]]:
        """Return whether the store lists exactly the chunks that are stored, and what `stored` yields."""
        if holdings.is_asked(self.store) and self.grid.nchunks <= holdings.MOST_ASKED_FOR:
            return False, self.grid.coords()  # a reader requests each of them
        found = self.listed()
        try:
            first = list(itertools.islice(found, 1))
        except NOT_LISTED as error:
            if self.grid.nchunks > holdings.MOST_ASKED_FOR:
                raise StoreError(
                    f"the store cannot be listed, and there may be {self.grid.nchunks} chunks: {error}",
                    store=str(self.store),
                    path=self.where.path,
                ) from error
            return False, self.grid.coords()
        return True, itertools.chain(first, found)

    def lacks_some(self) -> bool:
        """Return whether a chunk is missing; True if it would take too long to tell."""
        if not holdings.is_asked(self.store):
            with suppress(*NOT_LISTED):
                return sum(1 for _ in self.listed()) < self.grid.nchunks
        if self.grid.nchunks > _MOST_LOOKED_FOR:
            return True
        candidates = map(self.key_of, self.grid.coords())
        return not all(pool.results(self.store.exists, candidates, max(self.store.features.concurrency, 1)))

    def element_bytes(self) -> int:
        """Return about how much memory an element takes."""
        data_type = datatypes.bind(self.metadata.data_type, self.metadata.byte_order)
        return data_type.dtype.itemsize if data_type.is_fixed_size else _VARIABLE

    def values_bytes(self) -> int:
        """Return about how much memory all elements take; 0 if unknown."""
        try:
            return math.prod(self.grid.shape) * self.element_bytes()
        except OmnizarrError:
            return 0


class Listing:
    """The stored chunks of an array, listed once it is read in boxes that have many chunks.

    Of a grid of 10^15 chunks, a box can have millions, of which three are stored: only those are read.
    """

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self._lock = RLock()
        self._stored: list[Coords] | None = None
        has_transformers = binding.base is not None
        self._is_of_use = binding.store.features.listing == "complete" and not has_transformers

    def within(self, box: Box) -> list[Coords] | None:
        """Return the stored chunks in a box; None if it is best read as a whole."""
        grid = self._binding.grid
        if not self._is_of_use or any(part.stop <= part.start for part in box):
            return None
        ends = [
            (axis.find(part.start)[0], axis.find(part.stop - 1)[0]) for axis, part in zip(grid.axes, box, strict=True)
        ]
        number = math.prod(last - first + 1 for first, last in ends)
        stored = self._listed() if number > _FEW else None
        if stored is None:
            return None
        begin, end = bisect_left(stored, (ends[0][0],)), bisect_left(stored, (ends[0][1] + 1,))
        found = [
            coords
            for coords in itertools.islice(stored, begin, end)
            if all(first <= at <= last for at, (first, last) in zip(coords, ends, strict=True))
        ]
        return found if 2 * len(found) < number else None

    def _listed(self) -> list[Coords] | None:
        with self._lock:
            if self._stored is None and self._is_of_use:
                binding = self._binding
                found = holdings.found(binding.store, binding.prefix, binding.keys, binding.grid)
                try:
                    self._stored = sorted(itertools.islice(found, _MOST_LISTED + 1))
                except NOT_LISTED:
                    self._is_of_use = False
                if self._stored and len(self._stored) > _MOST_LISTED:
                    self._stored, self._is_of_use = None, False
            return self._stored


def read(
    binding: Binding,
    box: Box,
    concurrency: int | None,
    broken: dict[str, str] | None = None,
    listing: Listing | None = None,
) -> AnyArray:
    """Return a part of an array; chunks that cannot be read are entered in `broken`, if it exists.

    With `listing`, only chunks that are stored are asked for.
    """
    found = indexing.basic(box, binding.grid)
    out = np.empty(found.buffer_shape, binding.spec.dtype)
    stored = listing.within(box) if listing is not None else None
    if stored is not None:
        _read_into(out, binding, box, map(binding.grid.slices_of, stored), concurrency, broken)
        return out
    try:
        engine.read(binding, found, out, concurrency)
    except ChunkError:
        if broken is None:
            raise
        _read_into(out, binding, box, pieces(binding, box), 1, broken)
    return out


def _read_into(
    out: AnyArray,
    binding: Binding,
    box: Box,
    parts: Iterable[Box],
    concurrency: int | None,
    broken: dict[str, str] | None,
) -> None:
    """Read parts of a box into its elements; the others are the fill value."""
    out[...] = box_of(binding.spec.fill_value, out.dtype)

    def read_one(part: Box) -> None:
        part = tuple(map(overlap, part, box))
        ends = zip(part, box, strict=True)
        place = tuple(slice(piece.start - whole.start, piece.stop - whole.start) for piece, whole in ends)
        try:
            out[place] = read(binding, part, concurrency)
        except ChunkError as error:
            if broken is None:
                raise
            note(broken, error.key or "", error)

    in_flight = concurrency or max(pool.default_concurrency(), binding.store.features.concurrency)
    for _ in pool.gather(read_one, parts, max(in_flight, 1)):
        pass


def pieces(binding: Binding, box: Box) -> Iterator[Box]:
    """Yield the parts of a box that are in one chunk each, of the smallest that can be read alone."""
    grid = fine(binding)
    chunks = Regions(grid, (1,) * len(grid.axes))
    own, lifted = box[: len(grid.axes)], box[len(grid.axes) :]
    for number in chunks.touched(own):
        yield tuple(overlap(*both) for both in zip(own, chunks.box(number), strict=True)) + lifted


def overlap(one: slice, other: slice) -> slice:
    """Return the elements along a dimension that are in both slices."""
    return slice(max(one.start, other.start), min(one.stop, other.stop))


def fine(binding: Binding) -> Grid:
    """Return the grid of the smallest chunks that can be read alone."""
    inner = chunking.inner_chunk_shape(binding.metadata.codecs)
    if inner is None or not binding.chain.reads_part:
        return binding.grid
    return grids.bind(grids.regular(inner), binding.grid.shape)


def box_of(value: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Return an array without dimensions that holds a value, which may be a list."""
    box = np.empty((), dtype)
    box[()] = value
    return box


def shape_of(box: Box) -> tuple[int, ...]:
    """Return the lengths of a box."""
    return tuple(part.stop - part.start for part in box)


def note(broken: dict[str, str], key: str, error: ChunkError) -> None:
    """Enter a chunk that cannot be read, and why."""
    if key not in broken:
        reason = ChunkError(error.message, codec=error.codec, found=error.found, expected=error.expected)
        broken[key] = str(reason)[:_LONGEST_REASON] if len(broken) < _MOST_REASONS else ""


def part_of(values: AnyArray, part: Box) -> AnyArray:
    """Return a part of an array as an array, if it has no dimensions too."""
    selection: tuple[Any, ...] = (*part, ...)
    found: AnyArray = values[selection]
    return found
