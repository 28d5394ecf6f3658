"""Moving the chunks of one array to another, and comparing the two: in parallel, and in bounded memory.

Chunks whose bytes mean the same on both sides are copied as they are. Others are read and written region by region: a
region is made of whole chunks of the target, so that each is written once, and whole.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from omnizarr import datatypes, engine, grids, indexing, keys, layout
from omnizarr.codecs.contract import AnyArray, Buffer, ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.errors import (
    ChunkError,
    CodecError,
    NotRepresentableError,
    OmnizarrError,
    StoreError,
    UnknownExtensionError,
)
from omnizarr.grids import Coords, Grid
from omnizarr.keys import KeyEncoding
from omnizarr.model import UNDEFINED, ArrayMetadata
from omnizarr.places import StorePath, chunk_prefix, dialect_of
from omnizarr.stores import Store, pool
from omnizarr.stores.wrappers import WrapperStore
from omnizarr.tools.converting.regions import Box, Regions, plan
from omnizarr.tools.translation import Translation

Tick = Callable[[int], None]

_MOVED_BYTES: Final = 96 * 1024 * 1024
"""Of elements in memory at a time, unless one chunk has more."""
_COMPARED_BYTES: Final = 48 * 1024 * 1024
"""The same, of each of two arrays that are compared."""
_VARIABLE: Final = 256
"""Bytes that an element of variable size is taken to have."""
_MOST_ASKED_FOR: Final = 10**7
"""Of a store that cannot be listed, so many chunks are asked for one by one."""
_MOST_FILLED: Final = 10**8
"""So many chunks that are missing in the source are written, where missing ones would mean something else."""
_UNREADABLE: Final = (ChunkError, CodecError, UnknownExtensionError, MemoryError)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Where the chunks of an array are, whether or not anybody can decode them."""

    where: StorePath
    metadata: ArrayMetadata
    store: Store
    prefix: str
    encoding: KeyEncoding
    grid: Grid

    @classmethod
    def of(cls, where: StorePath, metadata: ArrayMetadata, store: Store | None = None) -> Chunks:
        """Return the chunks of the array at a place, which need not have a document yet.

        `store` stands for that of the place. Raises what binding grid and key encoding raises.
        """
        metadata = dialect_of(where, metadata).keyspace.settle(metadata)
        try:
            encoding = keys.bind(metadata.chunk_key_encoding)
            grid = grids.bind(metadata.chunk_grid, metadata.shape)
        except OmnizarrError as error:
            raise error.add(store=str(where.store), path=where.path)
        return cls(where, metadata, store or where.store, chunk_prefix(where, metadata), encoding, grid)

    def key_of(self, coords: Coords) -> str:
        """Return the store key of a chunk."""
        return self.prefix + self.encoding.encode(coords)

    def bind(self, policy: ChunkPolicy) -> Binding:
        """Return what reading and writing elements needs; raises what `omnizarr.engine.bind` raises."""
        return engine.bind(self.metadata, self.store, self.prefix, policy, self.where.path)

    def listed(self) -> Iterator[Coords]:
        """Yield the coordinates of the chunks that a listing shows. Raises StoreError, NotImplementedError."""
        for key in self.store.list_prefix(self.prefix):
            coords = self.encoding.decode(key[len(self.prefix) :], len(self.grid.shape))
            if coords is not None and all(at < count for at, count in zip(coords, self.grid.grid_shape, strict=True)):
                yield coords

    def stored(self) -> Iterator[Coords]:
        """Yield the coordinates of the chunks that are stored; of a store that cannot be listed, of all.

        Raises StoreError if there are too many of these.
        """
        found = self.listed()
        try:
            first = list(itertools.islice(found, 1))
        except (StoreError, NotImplementedError) as error:
            if self.grid.nchunks > _MOST_ASKED_FOR:
                raise StoreError(
                    f"the store cannot be listed, and there may be {self.grid.nchunks} chunks: {error}",
                    store=str(self.store),
                    path=self.where.path,
                ) from error
            yield from self.grid.coords()
            return
        yield from first
        yield from found

    def element_bytes(self) -> int:
        """Return about how much memory an element takes."""
        data_type = datatypes.bind(self.metadata.data_type, self.metadata.byte_order)
        return data_type.dtype.itemsize if data_type.is_fixed_size else _VARIABLE

    def values_bytes(self) -> int:
        """Return about how much memory all elements take; 0 if nobody knows."""
        try:
            return math.prod(self.grid.shape) * self.element_bytes()
        except OmnizarrError:
            return 0


class Tally(WrapperStore):
    """A store that counts the values that are set through it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.values = 0
        self.nbytes = 0
        self._guard = threading.Lock()

    def set(self, key: str, value: Buffer) -> None:
        """Hand on, and count."""
        super().set(key, value)
        with self._guard:
            self.values += 1
            self.nbytes += len(value)

    def __repr__(self) -> str:
        return repr(self.store)


class Moved(NamedTuple):
    """What was written."""

    how: Literal["copied", "encoded"]
    chunks: int
    nbytes: int


class Compared(NamedTuple):
    """How two arrays were found to be equal."""

    how: Literal["values", "bytes"]
    why: str = ""
    """Why no values were compared."""


@dataclass(frozen=True, slots=True)
class Move:
    """From one array to another, for which there may be no document yet.

    Attributes
    ----------
    source, target : StorePath
    translation : Translation
        Of an array.
    concurrency : int, optional
        Chunks in flight at a time.
    allow_pickle : bool
    resume : bool
        Chunks that the target has already are whole, and stay.
    """

    source: StorePath
    target: StorePath
    translation: Translation
    concurrency: int | None = None
    allow_pickle: bool = False
    resume: bool = False

    @property
    def _workers(self) -> int:
        return self.concurrency or pool.default_concurrency()

    def _budget(self, nbytes: int, before: Binding, after: Binding) -> int:
        """Return how much of so much memory is for one copy of elements: a change of their type takes another."""
        is_same = self.translation.values == "same" and before.spec.dtype == after.spec.dtype
        return nbytes if is_same else nbytes // 2

    def sides(self, store: Store | None = None) -> tuple[Chunks, Chunks]:
        """Return the chunks of both arrays."""
        before, after = self.translation.source, self.translation.target
        if not isinstance(before, ArrayMetadata) or not isinstance(after, ArrayMetadata):
            raise TypeError("only arrays have chunks")
        return Chunks.of(self.source, before), Chunks.of(self.target, after, store)

    def will_copy(self) -> bool:
        """Return whether chunks are copied as they are: not if missing ones must be written, and there are some."""
        if not self.translation.same_bytes:
            return False
        source = self.sides()[0]
        return self.translation.same_fill or sum(1 for _ in source.stored()) >= source.grid.nchunks

    def run(self, tick: Tick) -> Moved:
        """Write the chunks of the target; `tick` is called with the bytes of elements that are done.

        Raises
        ------
        ChunkError
            If a chunk of the source cannot be decoded.
        CodecError, UnknownExtensionError
            If the codecs of the source, or of the target, cannot be run.
        NotRepresentableError
            If missing chunks must be written, and there are too many.
        StoreError
        """
        tally = Tally(self.target.store)
        source, target = self.sides(tally)
        if self.will_copy():
            self._copy(source, target, tick)
            return Moved("copied", tally.values, tally.nbytes)
        self._encode(source, target, tick)
        return Moved("encoded", tally.values, tally.nbytes)

    def strays(self) -> Iterator[str]:
        """Yield the keys of chunks that the target has already; none if it cannot be listed."""
        target = self.sides()[1]
        try:
            yield from map(target.key_of, target.listed())
        except (StoreError, NotImplementedError):
            return

    def _copy(self, source: Chunks, target: Chunks, tick: Tick) -> None:
        size = math.prod(source.grid.chunk_shape or ()) * _element_bytes(source)

        def copy(coords: Coords) -> None:
            key = source.key_of(coords)
            try:
                if not (self.resume and target.store.exists(target.key_of(coords))):
                    value = source.store.get(key)
                    if value is not None:
                        target.store.set(target.key_of(coords), value)
            except OmnizarrError as error:
                raise error.add(store=str(source.store), path=self.source.path, key=key, coords=coords)
            tick(size)

        pool.run(copy, source.stored(), max(1, min(self._workers, _MOVED_BYTES // max(size, 1))), 1)

    def _encode(self, source: Chunks, target: Chunks, tick: Tick) -> None:
        reading = source.bind(ChunkPolicy(missing="fill", allow_pickle=self.allow_pickle))
        writing = target.bind(ChunkPolicy(allow_pickle=self.allow_pickle))
        item = max(source.element_bytes(), target.element_bytes())
        regions = plan(
            target.grid,
            _like(source.grid, target.grid),
            item,
            self._budget(_MOVED_BYTES, reading, writing),
            self._workers,
        )
        for number in self._wanted(source, regions):
            if self.resume and all(target.store.exists(target.key_of(coords)) for coords in regions.chunks(number)):
                continue
            box = regions.box(number)
            values = self._read_as_target(reading, writing, box)
            engine.write(writing, indexing.basic(box, writing.grid), values, self.concurrency)
            tick(values.size * item)

    def _wanted(self, source: Chunks, regions: Regions) -> Iterator[int]:
        """Yield the regions that must be written."""
        if self.translation.same_fill:
            ndim = len(regions.grid.shape)
            yield from regions.holding(_lifted(source.grid.slices_of(coords), ndim) for coords in source.stored())
            return
        if regions.grid.nchunks > _MOST_FILLED:
            raise NotRepresentableError(
                "the fill value cannot be carried, so that all chunks would have to be written, and there are too many",
                path=self.source.path,
                found=f"{regions.grid.nchunks} chunks",
                remedy="leave this array out, or write values to the chunks that matter",
            )
        yield from range(regions.total)

    def _read_as_target(self, reading: Binding, writing: Binding, box: Box) -> AnyArray:
        """Return a part of the source as the target's data type, and in its shape."""
        values = self.translation.carry(_read(reading, box[: len(reading.grid.shape)], self.concurrency))
        shape = tuple(part.stop - part.start for part in box)
        cast: AnyArray = values.astype(writing.spec.dtype, copy=False)
        return cast.reshape(shape)

    # -- comparing -----------------------------------------------------------------

    def compare(self, tick: Tick) -> Compared:
        """Read both arrays again, and return how they were found to be equal: bit for bit.

        Raises ChunkError if they are not; it says where.
        """
        source, target = self.sides()
        try:
            self._compare_values(source, target, tick)
        except _SourceUnreadableError as error:
            if not self.translation.same_bytes or not self.translation.same_fill:
                raise error.reason from None
            self._compare_bytes(source, target, tick)
            return Compared("bytes", str(error.reason))
        return Compared("values")

    def _compare_values(self, source: Chunks, target: Chunks, tick: Tick) -> None:
        try:
            reading = source.bind(ChunkPolicy(missing="fill", allow_pickle=self.allow_pickle))
        except _UNREADABLE as error:
            raise _SourceUnreadableError(error) from error
        again = target.bind(ChunkPolicy(missing="fill", allow_pickle=self.allow_pickle))
        self._compare_fill(reading, again)
        item = max(source.element_bytes(), target.element_bytes())
        regions = plan(
            _fine(again),
            _like(source.grid, again.grid),
            item,
            self._budget(_COMPARED_BYTES, reading, again),
            self._workers,
        )
        ndim = len(again.grid.shape)
        boxes = itertools.chain(
            (_lifted(source.grid.slices_of(coords), ndim) for coords in source.stored()),
            (target.grid.slices_of(coords) for coords in target.stored()),
        )
        for number in regions.holding(boxes):
            box = regions.box(number)
            try:
                expected = self._read_as_target(reading, again, box)
            except _UNREADABLE as error:
                raise _SourceUnreadableError(error) from error
            found = _read(again, box, self.concurrency)
            at = first_difference(expected, found)
            if at is not None:
                raise self._difference(box, at, expected, found)
            tick(expected.size * item)

    def _compare_fill(self, reading: Binding, again: Binding) -> None:
        if not self.translation.same_fill or UNDEFINED in (reading.metadata.fill_value, again.metadata.fill_value):
            return
        expected = _box_of(reading.spec.fill_value, reading.spec.dtype)
        expected = self.translation.carry(expected).astype(again.spec.dtype, copy=False)
        found = _box_of(again.spec.fill_value, again.spec.dtype)
        if first_difference(expected, found) is not None:
            raise ChunkError(
                "missing chunks of the target do not hold what those of the source hold",
                store=str(self.target.store),
                path=self.target.path,
                pointer="/fill_value",
                found=repr(found[()]),
                expected=repr(expected[()]),
            )

    def _difference(self, box: Box, at: Coords, expected: AnyArray, found: AnyArray) -> ChunkError:
        place = tuple(part.start + index for part, index in zip(box, at, strict=True))
        region = ", ".join(f"{part.start}:{part.stop}" for part in box)
        return ChunkError(
            f"verification failed: the target differs from the source in the region [{region}], first at {place}",
            store=str(self.target.store),
            path=self.target.path,
            found=repr(found[at]),
            expected=repr(expected[at]),
            remedy="let nothing write to the source, and convert again with overwrite=True",
        )

    def _compare_bytes(self, source: Chunks, target: Chunks, tick: Tick) -> None:
        size = math.prod(source.grid.chunk_shape or ()) * _element_bytes(source)

        def compare(coords: Coords) -> None:
            key = target.key_of(coords)
            expected, found = source.store.get(source.key_of(coords)), target.store.get(key)
            if expected is None and found is None:
                return
            if expected is None or found is None or memoryview(expected) != memoryview(found):
                raise ChunkError(
                    "verification failed: the chunk of the target has other bytes than that of the source",
                    store=str(target.store),
                    path=self.target.path,
                    key=key,
                    coords=coords,
                    found="nothing" if found is None else f"{len(found)} bytes",
                    expected="nothing" if expected is None else f"{len(expected)} bytes",
                    remedy="convert again with overwrite=True",
                )
            tick(size)

        pool.run(compare, itertools.chain(source.stored(), target.stored()), self._workers, 1)


class _SourceUnreadableError(Exception):
    """Elements of the source cannot be had."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _element_bytes(chunks: Chunks) -> int:
    try:
        return chunks.element_bytes()
    except OmnizarrError:
        return 0


def _read(binding: Binding, box: Box, concurrency: int | None) -> AnyArray:
    found = indexing.basic(box, binding.grid)
    out = np.empty(found.buffer_shape, binding.spec.dtype)
    engine.read(binding, found, out, concurrency)
    return out


def _lifted(box: Box, ndim: int) -> Box:
    """Return a part of an array without dimensions as one of an array that has one element instead."""
    return box + (slice(0, 1),) * (ndim - len(box))


def _like(grid: Grid, other: Grid) -> Grid:
    """Return a grid with as many dimensions as another one, which has more only if this one has none."""
    return grid if len(grid.shape) == len(other.shape) else other


def _fine(binding: Binding) -> Grid:
    """Return the grid of the smallest chunks that can be read alone."""
    inner = layout.inner_chunk_shape(binding.metadata.codecs)
    if inner is None or not binding.chain.reads_part:
        return binding.grid
    return grids.bind(grids.regular(inner), binding.grid.shape)


def _box_of(value: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Return an array without dimensions that holds a value, which may be a list."""
    box = np.empty((), dtype)
    box[()] = value
    return box


def first_difference(left: AnyArray, right: AnyArray) -> Coords | None:
    """Return where two arrays of one shape and data type differ first; None if they do not, bit for bit.

    Strings and objects are compared with ``==``; what pads the fields of a structure does not count.

    Examples
    --------
    >>> first_difference(np.array([0.0, 1.0]), np.array([-0.0, 1.0]))
    (0,)
    >>> first_difference(np.array([np.nan]), np.array([np.nan])) is None
    True
    """
    differs = _differs(left, right)
    if not differs.any():
        return None
    return tuple(int(at) for at in np.unravel_index(int(np.argmax(differs.reshape(-1))), left.shape))


def _differs(left: AnyArray, right: AnyArray) -> AnyArray:
    dtype = left.dtype
    if dtype.names is not None:
        result = np.zeros(left.shape, np.bool_)
        for name in dtype.names:
            inner = _differs(left[name], right[name])
            result |= inner.reshape(*left.shape, -1).any(axis=-1) if inner.ndim > left.ndim else inner
        return result
    if dtype.kind == "T":
        return np.asarray(left != right)
    if dtype.hasobject:
        pairs = zip(left.reshape(-1), right.reshape(-1), strict=True)
        return np.fromiter((not _is_same(*pair) for pair in pairs), np.bool_, left.size).reshape(left.shape)
    if not dtype.itemsize:
        return np.zeros(left.shape, np.bool_)
    word = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}.get(dtype.itemsize)
    one, other = (np.ascontiguousarray(array).reshape(-1) for array in (left, right))
    if word is not None:
        return np.asarray(one.view(word) != other.view(word)).reshape(left.shape)
    rows = (one.size, dtype.itemsize)
    different = one.view(np.uint8).reshape(rows) != other.view(np.uint8).reshape(rows)
    return np.asarray(different.any(axis=1)).reshape(left.shape)


def _is_same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        one, other = np.asarray(left), np.asarray(right)
        return one.shape == other.shape and one.dtype == other.dtype and not _differs(one, other).any()
    if isinstance(left, float) and isinstance(right, float) and left != left:  # noqa: PLR0124 - NaN
        return right != right  # noqa: PLR0124
    if isinstance(left, list | tuple) and type(left) is type(right) and len(left) == len(right):
        return all(map(_is_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return all(_is_same(value, right[name]) for name, value in left.items())
    return type(left) is type(right) and bool(left == right)
