"""Where the stored chunks of an array lie: columns of numbers, with one row for each stored chunk.

`placed` asks the store of an array: which of its values are files of their own (`verbs.folder`), or parts of files
(`verbs.extents`). `placed_within_shards` reads the indexes of shards, too. Rows are in the order of the numbers of
chunks, which count in C order of the grid. A chunk without a row is not stored. Nothing here grows with the number of
chunks that there could be; a stored chunk takes 40 bytes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.codecs.sharding import Sharding
from omnizarr.errors import NotRepresentableError, OmnizarrError, Remedy, StoreError, StoreLimitError
from omnizarr.model import ArrayMetadata, grids
from omnizarr.model import keys as chunk_keys
from omnizarr.model.grids import Coords, Grid
from omnizarr.model.key_forms import KeyEncoding
from omnizarr.nodes import bindings, chunking, holdings
from omnizarr.nodes.location import StorePath, chunk_prefix
from omnizarr.settings import config
from omnizarr.stores import Store, pool, verbs
from omnizarr.stores.base import NOT_LISTED, Buffer, Extent
from omnizarr.support.progress import Tick, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
Fetch: TypeAlias = "Callable[[Integers], Iterable[tuple[int, Buffer | None]]]"

BLOCK: Final = 1 << 16
"""Chunks for which there are Python objects at a time."""
_MOST_CHUNKS: Final = 2**63


class KeyNames:
    """Names of files that end with the keys of chunks.

    Parameters
    ----------
    base : str
        What they begin with.
    encoding : KeyEncoding
    grid_shape : tuple of int
    numbers : ndarray of int64, shape (n,)
        The numbers of the chunks.
    """

    def __init__(self, base: str, encoding: KeyEncoding, grid_shape: tuple[int, ...], numbers: Integers) -> None:
        self._base, self._encoding, self._grid_shape, self._numbers = base, encoding, grid_shape, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def at(self, rows: Integers) -> list[str]:
        """Return the names of some chunks."""
        return keys_of(self._base, self._encoding, self._grid_shape, self._numbers[rows])


class Names:
    """Names of files by number: tables of few names, and names that are made when they are asked for.

    Examples
    --------
    >>> names = Names([["a.nc", "b.nc"], ["c.nc"]])
    >>> len(names), names.at(np.array([2, 0, 2]))
    (3, ['c.nc', 'a.nc', 'c.nc'])
    """

    def __init__(self, parts: Iterable[Sequence[str] | KeyNames] = ()) -> None:
        self._parts = list(parts)
        self._starts = np.cumsum([0, *map(len, self._parts)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def parts(self) -> Sequence[Sequence[str] | KeyNames]:
        """The tables."""
        return self._parts

    def at(self, numbers: Integers) -> list[str]:
        """Return the names with some numbers, in their order."""
        found: list[str] = [""] * len(numbers)
        at = np.searchsorted(self._starts, numbers, side="right") - 1
        for part in np.unique(at).tolist():
            rows = np.flatnonzero(at == part)
            within, table = numbers[rows] - self._starts[part], self._parts[part]
            names = table.at(within) if isinstance(table, KeyNames) else map(table.__getitem__, within.tolist())
            for row, name in zip(rows.tolist(), names, strict=True):
                found[row] = name
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where the stored chunks of an array lie.

    Attributes
    ----------
    grid_shape : tuple of int
        Number of chunks along each dimension.
    numbers : ndarray of int64, shape (n,)
        Numbers of chunks in C order of the grid, ascending.
    files : ndarray of int64, shape (n,)
        The file of each, by its number in `names`.
    offsets, lengths : ndarray of int64, shape (n,)
        Its bytes in the file.
    names : Names
        Absolute paths, and URLs.
    values : mapping of int to buffer
        The bytes of further chunks, by number, that are in no file.
    fetch : callable
        Yields a row and the bytes of its chunk for each of some rows, in any order; None if it is not there any more.
    """

    grid_shape: tuple[int, ...]
    numbers: Integers
    files: Integers
    offsets: Integers
    lengths: Integers
    names: Names
    fetch: Fetch
    values: Mapping[int, Buffer] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of stored chunks."""
        return len(self.numbers) + len(self.values)

    def blocks(self) -> Iterator[slice]:
        """Yield all rows in parts for which there may be Python objects."""
        for start in range(0, len(self.numbers), BLOCK):
            yield slice(start, start + BLOCK)

    def inlined(self, most: int) -> Placement:
        """Return the same with the bytes of all chunks of less than this size as values.

        Raises StoreLimitError if these are more bytes than references may have.
        """
        rows = np.flatnonzero(self.lengths < most)
        total, limit = int(self.lengths[rows].sum()), int(config.get("references.max_bytes"))
        if total > limit:
            raise StoreLimitError(
                "the chunks that are small enough to be put into the references are too many",
                found=f"{len(rows):,} chunks of {total:,} bytes",
                expected=f"at most {limit:,} bytes",
                remedy=Remedy("lower {inline_threshold}", inline_threshold=...),
            )
        if not len(rows):
            return self
        found = {int(self.numbers[row]): bytes(value) for row, value in self.fetch(rows) if value is not None}
        kept = np.ones(len(self.numbers), bool)
        kept[rows] = False
        left, fetch = np.flatnonzero(kept), self.fetch
        return Placement(
            self.grid_shape,
            self.numbers[kept],
            self.files[kept],
            self.offsets[kept],
            self.lengths[kept],
            self.names,
            lambda some: fetch(left[some]),
            {**self.values, **found},
        )


def coords_of(numbers: Integers, grid_shape: tuple[int, ...]) -> list[Integers]:
    """Return the coordinates of chunks with some numbers: one array for each dimension."""
    found: list[Integers] = []
    for length in reversed(grid_shape):
        numbers, index = np.divmod(numbers, max(length, 1))
        found.append(index)
    return found[::-1]


def numbers_of(coords: Sequence[Integers], grid_shape: tuple[int, ...]) -> Integers:
    """Return the numbers of chunks with some coordinates."""
    numbers = np.zeros(np.broadcast_shapes(*(each.shape for each in coords)) if coords else (), np.int64)
    for index, length in zip(coords, grid_shape, strict=True):
        numbers = numbers * length + index
    return numbers


def keys_of(base: str, encoding: KeyEncoding, grid_shape: tuple[int, ...], numbers: Integers) -> list[str]:
    """Return the keys of chunks with some numbers, after `base`."""
    if not grid_shape:
        return [base + encoding.encode(())] * len(numbers)
    coords = zip(*(each.tolist() for each in coords_of(numbers, grid_shape)), strict=True)
    affixes = encoding.affixes
    if affixes is None:
        return [base + encoding.encode(each) for each in coords]
    head, separator, tail, _ = affixes
    form = f"{(base + head).replace('%', '%%')}{separator.join(['%d'] * len(grid_shape))}{tail.replace('%', '%%')}"
    return [form % each for each in coords]


# -- of an array ------------------------------------------------------------------------------


def placed(where: StorePath, metadata: ArrayMetadata, tick: Tick = silent) -> Placement:
    """Return where the stored chunks (shards) of an array lie. `tick` is called with each number of chunks found.

    Raises
    ------
    NotRepresentableError
        If chunks are no parts of files that other programs can read.
    StoreLimitError
        If there are more chunks than 64 bits can count.
    StoreError
        If the store fails, or cannot be listed and there are too many chunks to ask for.
    """
    laid = _Laid.of(where, metadata)
    try:
        base = verbs.folder(laid.store, laid.prefix)
        return laid.in_files_of_their_own(base, tick) if base is not None else laid.in_parts(tick)
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)


@dataclass(frozen=True, slots=True)
class _Laid:
    """How an array is laid out."""

    where: StorePath
    metadata: ArrayMetadata
    store: Store
    prefix: str
    encoding: KeyEncoding
    grid: Grid

    @classmethod
    def of(cls, where: StorePath, metadata: ArrayMetadata) -> _Laid:
        if metadata.storage_transformers:
            raise NotRepresentableError(
                "chunks lie as a storage transformer wants them",
                store=str(where.store),
                path=where.path,
                found=", ".join(each.name for each in metadata.storage_transformers),
            )
        metadata = bindings.with_keys_in_use(where, metadata)
        grid = grids.bind(metadata.chunk_grid, metadata.shape)
        if grid.nchunks >= _MOST_CHUNKS:
            raise StoreLimitError(
                "the array could have more chunks than can be numbered",
                store=str(where.store),
                path=where.path,
                found=f"{grid.nchunks:,}",
                expected=f"less than {_MOST_CHUNKS:,}",
            )
        encoding = chunk_keys.bind(metadata.chunk_key_encoding)
        return cls(where, metadata, where.store, chunk_prefix(where, metadata), encoding, grid)

    def _number(self, coords: Coords) -> int:
        number = 0
        for index, length in zip(coords, self.grid.grid_shape, strict=True):
            number = number * length + index
        return number

    def in_files_of_their_own(self, base: str, tick: Tick) -> Placement:
        numbers, lengths = array("q"), array("q")
        for coords, size in self._sized():
            numbers.append(self._number(coords))
            lengths.append(size)
            tick(1)
        rows, first = np.unique(_column(numbers), return_index=True)
        names = KeyNames(base, self.encoding, self.grid.grid_shape, rows)
        zeros = np.zeros(len(rows), np.int64)
        files = np.arange(len(rows), dtype=np.int64)
        columns = (files, zeros, _column(lengths)[first])
        return Placement(self.grid.grid_shape, rows, *columns, Names([names]), self._fetch_of(rows))

    def _fetch_of(self, numbers: Integers) -> Fetch:
        def fetch(rows: Integers) -> Iterator[tuple[int, Buffer | None]]:
            keys = keys_of(self.prefix, self.encoding, self.grid.grid_shape, numbers[rows])
            for position, value in verbs.get_many(self.store, ((key, None) for key in keys)):
                yield int(rows[position]), value

        return fetch

    def _sized(self) -> Iterator[tuple[Coords, int]]:
        """Yield the coordinates and the sizes of stored chunks; where nothing is listed, each chunk is asked for."""
        found = holdings.chunk_sizes(self.where, self.metadata)
        try:
            first = next(found, None)
        except NOT_LISTED as error:
            self._check_askable(error)
            yield from self._asked()
            return
        if first is not None:
            yield from _of_known_size([first])
            yield from _of_known_size(found)

    def _asked(self) -> Iterator[tuple[Coords, int]]:
        def look(coords: Coords) -> tuple[Coords, int | None]:
            return coords, self.store.size(self.prefix + self.encoding.encode(coords))

        at_once = max(self.store.features.concurrency, 1)
        return _of_known_size(pool.results(look, self.grid.coords(), at_once))

    def _check_askable(self, error: Exception) -> None:
        if self.grid.nchunks > holdings.MOST_ASKED_FOR:
            raise StoreError(
                f"the store cannot be listed, and there may be {self.grid.nchunks:,} chunks to ask for: {error}",
                expected=f"at most {holdings.MOST_ASKED_FOR:,}",
            ) from error

    def _coords(self) -> Iterator[Coords]:
        found = holdings.coords(self.where, self.metadata)
        try:
            first = next(found, None)
        except NOT_LISTED as error:
            self._check_askable(error)
            yield from self.grid.coords()
            return
        if first is not None:
            yield first
            yield from found

    def in_parts(self, tick: Tick) -> Placement:
        numbers, files, offsets, lengths = (array("q") for _ in range(4))
        known: dict[str, int] = {}
        values: dict[int, Buffer] = {}
        coords = self._coords()
        while block := list(islice(coords, BLOCK)):
            keys = (self.prefix + self.encoding.encode(each) for each in block)
            for position, found in verbs.extents(self.store, keys):
                if isinstance(found, Extent):
                    numbers.append(self._number(block[position]))
                    files.append(known.setdefault(found.file, len(known)))
                    offsets.append(found.offset)
                    lengths.append(found.length)
                elif found is not None:
                    values[self._number(block[position])] = bytes(found)
            tick(len(block))
        rows, first = np.unique(_column(numbers), return_index=True)
        file, offset, length = (_column(each)[first] for each in (files, offsets, lengths))
        names = Names([list(known)])
        return Placement(self.grid.grid_shape, rows, file, offset, length, names, self._fetch_of(rows), values)


def _of_known_size(found: Iterable[tuple[Coords, int | None]]) -> Iterator[tuple[Coords, int]]:
    return ((coords, size) for coords, size in found if size is not None)


def _column(numbers: array[int]) -> Integers:
    return np.array(numbers, np.int64)


# -- within shards ----------------------------------------------------------------------------


def placed_within_shards(where: StorePath, metadata: ArrayMetadata, tick: Tick = silent) -> Placement:
    """Return where the inner chunks of the shards of an array lie, numbered as those of an array without shards.

    The index of each shard is read. `tick` is called with each number of shards.

    Raises
    ------
    NotRepresentableError
        If inner chunks are not stored as they would be without shards.
    ShardIndexError
        If the index of a shard is broken.
    StoreError, StoreLimitError
        As for `placed`.
    """
    shape = chunking.inner_chunk_shape(metadata.codecs)
    binding = bindings.bind(where, metadata, ChunkPolicy())
    codec = binding.chain.serializer[1]
    is_plain = isinstance(codec, Sharding) and codec.edges is None and binding.chain.reads_part
    if shape is None or not isinstance(codec, Sharding) or not is_plain or binding.chunks_differ:
        raise NotRepresentableError(
            "inner chunks are not stored as they would be without shards",
            store=str(where.store),
            path=where.path,
            found=", ".join(each.name for each in metadata.codecs),
            expected="shards of one shape, whose bytes are not encoded again",
            remedy=Remedy("refer to whole shards, with {inner}", inner=False),
        )
    outer = placed(where, metadata, tick)
    read = _IndexReader(outer, codec, chunking.axes_of_shards(metadata.codecs, len(shape)), shape, metadata.shape)
    keys = chunk_keys.bind(bindings.with_keys_in_use(where, metadata).chunk_key_encoding)
    prefix, store = chunk_prefix(where, metadata), where.store

    def look(row: int) -> tuple[int, list[Integers]]:
        (key,) = keys_of(prefix, keys, outer.grid_shape, outer.numbers[row : row + 1])
        try:
            value = store.get(key, codec.index_span)
            return row, [] if value is None else read.columns(int(outer.numbers[row]), value, int(outer.lengths[row]))
        except OmnizarrError as error:
            raise error.add(store=str(store), path=where.path, key=key)

    rows = range(len(outer.numbers))
    read_all = [each for each in list(pool.results(look, rows, max(store.features.concurrency, 1))) if each[1]]
    values: dict[int, Buffer] = {}
    for number, value in outer.values.items():
        index = memoryview(value)[slice(*codec.index_span)]
        for inner, offset, length in zip(*map(np.ndarray.tolist, read.columns(number, index, len(value))), strict=True):
            values[inner] = bytes(memoryview(value)[offset : offset + length])
    none = np.zeros(0, np.int64)
    numbers, starts, lengths = (np.concatenate([none, *(columns[at] for _, columns in read_all)]) for at in range(3))
    counts = [len(columns[0]) for _, columns in read_all]
    shards = np.repeat(np.array([row for row, _ in read_all], np.int64), counts)
    order = np.argsort(numbers, kind="stable")
    numbers, starts, lengths, shards = (each[order] for each in (numbers, starts, lengths, shards))

    def fetch(rows: Integers) -> Iterator[tuple[int, Buffer | None]]:
        names = keys_of(prefix, keys, outer.grid_shape, outer.numbers[shards[rows]])
        spans = zip(starts[rows].tolist(), (starts[rows] + lengths[rows]).tolist(), strict=True)
        for position, value in verbs.get_many(store, zip(names, spans, strict=True)):
            yield int(rows[position]), value

    offsets = starts + outer.offsets[shards]
    return Placement(read.grid_shape, numbers, outer.files[shards], offsets, lengths, outer.names, fetch, values)


class _IndexReader:
    """Turns the indexes of shards into columns."""

    def __init__(
        self, outer: Placement, codec: Sharding, turned: tuple[int, ...], inner: tuple[int, ...], shape: tuple[int, ...]
    ) -> None:
        self._outer, self._codec, self._turned = outer, codec, turned
        self.grid_shape = tuple(-(-length // size) for length, size in zip(shape, inner, strict=True))
        if math.prod(self.grid_shape) >= _MOST_CHUNKS:
            raise StoreLimitError(
                "the array could have more inner chunks than can be numbered", found=f"{math.prod(self.grid_shape):,}"
            )
        inside = codec.grid.grid_shape
        self._per_shard = tuple(inside[axis] for axis in turned)

    def columns(self, number: int, index: Buffer, size: int) -> list[Integers]:
        """Return numbers, offsets in the shard, and lengths of the inner chunks of the shard with a number."""
        table = self._codec.places(index, size).reshape(*self._codec.grid.grid_shape, 2)
        table = table.transpose(*self._turned, len(self._turned))
        local = np.nonzero(table[..., 0] >= 0)
        firsts = [int(each[0]) for each in coords_of(np.array([number]), self._outer.grid_shape)]
        coords = [place + first * count for place, first, count in zip(local, firsts, self._per_shard, strict=True)]
        is_inside = np.ones(len(local[0]) if local else 1, bool)
        for each, length in zip(coords, self.grid_shape, strict=True):
            is_inside &= each < length
        picked = table[local][is_inside]
        numbers = numbers_of([each[is_inside] for each in coords], self.grid_shape)
        return [numbers.reshape(-1), picked[..., 0].reshape(-1), picked[..., 1].reshape(-1)]
