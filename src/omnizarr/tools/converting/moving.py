"""Moving the chunks of one array to another, and comparing the two: in parallel, and in bounded memory.

Chunks whose bytes mean the same on both sides are copied as they are. Where only the compressors differ, each chunk is
decompressed and compressed again. Others are read and written region by region: a region is made of whole chunks of the
target, so that each is written once, and whole.

A chunk of the source that cannot be read does not stop the others. It is reported; its bytes are copied as they are, or
where elements are encoded anew, the target holds the fill value in their place.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from omnizarr import engine, indexing
from omnizarr.codecs.contract import AnyArray, Buffer, ChunkPolicy
from omnizarr.codecs.gzip import Gzip, from_zlib
from omnizarr.codecs.zlib import Zlib
from omnizarr.engine import Binding
from omnizarr.errors import (
    ChunkError,
    CodecError,
    NotRepresentableError,
    OmnizarrError,
    StoreError,
    UnknownExtensionError,
)
from omnizarr.model import UNDEFINED, ArrayMetadata, datatypes, grids, keys
from omnizarr.model.grids import Coords, Grid
from omnizarr.model.keys import KeyEncoding
from omnizarr.nodes import chunking
from omnizarr.nodes.location import StorePath, chunk_prefix, dialect_of
from omnizarr.stores import Store, pool
from omnizarr.tools.converting.executors import Executor, Job, Tally, Tick, Written
from omnizarr.tools.converting.regions import Box, Regions, plan
from omnizarr.tools.translation import Translation

_MOVED_BYTES: Final = 96 * 1024 * 1024
"""Of elements in memory at a time, unless one chunk has more."""
_SHARED_BYTES: Final = 16 * 1024 * 1024
"""Of elements that are worth being sent to another process."""
_SHARED_CHUNKS: Final = 256
"""So many chunks at most are sent together."""
_LEAST_REGION: Final = 8 * 1024 * 1024
"""Bytes of a region that is not made smaller for there to be more."""
_VARIABLE: Final = 256
"""Bytes that an element of variable size is taken to have."""
_MOST_ASKED_FOR: Final = 10**7
"""Of a store that cannot be listed, so many chunks are asked for one by one."""
_MOST_FILLED: Final = 10**8
"""So many chunks that are missing in the source are written, where missing ones would mean something else."""
_MOST_LOOKED_FOR: Final = 1000
"""The same, to find out whether any chunk is missing."""
_MOST_REASONS: Final = 1000
"""Of so many broken chunks it is remembered why they cannot be read."""
_LONGEST_REASON: Final = 300
_UNDECODABLE: Final = (CodecError, UnknownExtensionError, MemoryError)
"""What is raised where no chunk of an array can be decoded here, broken or not."""


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

    def coords_of(self, key: str) -> Coords | None:
        """Return the coordinates of the chunk with a store key; None if no chunk of the array has it."""
        coords = self.encoding.decode(key[len(self.prefix) :], len(self.grid.shape))
        is_inside = coords is not None and all(map(operator.lt, coords, self.grid.grid_shape))
        return coords if is_inside else None

    def listed(self) -> Iterator[Coords]:
        """Yield the coordinates of the chunks that a listing shows. Raises StoreError, NotImplementedError."""
        for key in self.store.list_prefix(self.prefix):
            coords = self.coords_of(key)
            if coords is not None:
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

    def lacks_some(self) -> bool:
        """Return whether a chunk is missing; True if it would take too long to tell."""
        try:
            return sum(1 for _ in self.listed()) < self.grid.nchunks
        except (StoreError, NotImplementedError):
            if self.grid.nchunks > _MOST_LOOKED_FOR:
                return True
        found = pool.gather(
            lambda coords: self.store.exists(self.key_of(coords)), self.grid.coords(), max(self.store.concurrency, 1)
        )
        return not all(is_there for _, is_there in found)

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


class Moved(NamedTuple):
    """What was written."""

    how: Literal["copied", "recompressed", "encoded"]
    chunks: int
    nbytes: int
    broken: Mapping[str, str]
    """Keys of chunks of the source that could not be read, and why."""


class Compared(NamedTuple):
    """How two arrays were found to be equal."""

    how: Literal["values", "bytes"]
    why: str = ""
    """Why no values were compared."""
    broken: Mapping[str, str] = {}
    """Keys of chunks of the source that could not be read, and why: they were not compared."""


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
    max_memory : int, optional
        Bytes of elements in memory at a time, unless one chunk has more.
    compares : bool
        `compare` will follow, and find all chunks that cannot be read.
    """

    source: StorePath
    target: StorePath
    translation: Translation
    concurrency: int | None = None
    allow_pickle: bool = False
    resume: bool = False
    max_memory: int | None = None
    compares: bool = True

    @property
    def at_once(self) -> int:
        """How many chunks one process works on at a time."""
        stores = self.source.store, self.target.store
        return self.concurrency or max(pool.default_concurrency(), *(store.concurrency for store in stores))

    @property
    def memory(self) -> int:
        """Bytes of elements in memory at a time."""
        return self.max_memory or _MOVED_BYTES

    def sides(self, store: Store | None = None) -> tuple[Chunks, Chunks]:
        """Return the chunks of both arrays; `store` stands for that of the target."""
        before, after = self.translation.source, self.translation.target
        if not isinstance(before, ArrayMetadata) or not isinstance(after, ArrayMetadata):
            raise TypeError("only arrays have chunks")
        return Chunks.of(self.source, before), Chunks.of(self.target, after, store)

    def goes_by_chunks(self) -> bool:
        """Return whether stored chunks are moved one by one: not if some are missing that must be written."""
        return self.translation.same_elements and (self.translation.same_fill or not self.sides()[0].lacks_some())

    def check_memory(self) -> None:
        """Raise ValueError if `max_memory` is less than moving one chunk of the target takes."""
        if self.max_memory is None or self.translation.same_elements:
            return
        source, target = self.sides()
        chunk = math.prod(max((*axis.sizes, 1)) for axis in target.grid.axes)
        needed = chunk * max(_element_bytes(source), _element_bytes(target))
        if needed > self.max_memory:
            raise ValueError(
                f"max_memory={self.max_memory}: one chunk (or shard) of the target, /{self.target.path}, "
                f"has {needed} bytes of elements"
            )

    def run(self, executor: Executor, tick: Tick) -> Moved:
        """Write the chunks of the target; `tick` is called with the bytes of elements that are done.

        Raises
        ------
        CodecError, UnknownExtensionError
            If the codecs of the source, or of the target, cannot be run.
        NotRepresentableError
            If missing chunks must be written, and there are too many.
        SchedulerError
            If the cluster that does the work is lost.
        StoreError
        """
        source, target = self.sides()
        if self.goes_by_chunks():
            is_copy = self.translation.same_bytes
            job = self._of_chunks(_Copying if is_copy else _Recompressing, executor.width)
            return Moved("copied" if is_copy else "recompressed", *executor.run(job, source.stored(), tick))
        sides = self.bound()  # here already, as what cannot be bound here is not sent to others
        regions = self._regions(target.grid, sides, self.memory, executor.width)
        wanted = self._wanted(source, regions)
        return Moved("encoded", *executor.run(_Encoding(self, regions.per_axis), wanted, tick))

    def _of_chunks(self, kind: type[_OfChunks], width: int) -> _OfChunks:
        """Return a job that deals with chunks; few enough are sent together for so many processes to have some."""
        source = self.sides()[0]
        size = math.prod(source.grid.chunk_shape or ()) * _element_bytes(source)
        most = min(_SHARED_CHUNKS, source.grid.nchunks // (2 * width), min(_SHARED_BYTES, self.memory) // max(size, 1))
        return kind(self, size, max(1, most))

    def strays(self) -> Iterator[str]:
        """Yield the keys of chunks that the target has already; none if it cannot be listed."""
        target = self.sides()[1]
        try:
            yield from map(target.key_of, target.listed())
        except (StoreError, NotImplementedError):
            return

    def bound(self, store: Store | None = None) -> Sides:
        """Return both arrays with what reading and writing elements needs."""
        source, target = self.sides(store)
        return Sides(source, target, source.bind(self._policy()), target.bind(self._policy()))

    def _policy(self) -> ChunkPolicy:
        return ChunkPolicy(missing="fill", allow_pickle=self.allow_pickle)

    def _regions(self, grid: Grid, sides: Sides, memory: int, width: int) -> Regions:
        """Return regions that so much memory is enough for; small enough for so many processes to have some."""
        is_same = self.translation.values == "same" and sides.reading.spec.dtype == sides.writing.spec.dtype
        memory = memory if is_same else memory // 2  # a change of the type takes another copy of elements
        if width > 1:
            memory = min(memory, max(_LEAST_REGION, math.prod(grid.shape) * sides.item_bytes // (2 * width)))
        return plan(grid, _like(sides.source.grid, grid), sides.item_bytes, memory, self.at_once)

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

    def read_as_target(self, sides: Sides, box: Box, broken: dict[str, str] | None = None) -> AnyArray:
        """Return a part of the source as the target's data type, and in its shape.

        If there is `broken`, chunks that cannot be read are entered there, and their elements are the fill value.
        """
        part = box[: len(sides.reading.grid.shape)]
        values = _read(sides.reading, part, self.concurrency, broken)
        cast: AnyArray = self.translation.carry(values).astype(sides.writing.spec.dtype, copy=False)
        return cast.reshape(_shape_of(box))

    # -- comparing -----------------------------------------------------------------

    def compare(self, executor: Executor, tick: Tick) -> Compared:
        """Read both arrays again, and return how they were found to be equal: bit for bit.

        What chunks of the source hold that cannot be read is not compared, but the chunks are named. Raises ChunkError
        if anything else differs; it says where.
        """
        source, target = self.sides()
        try:
            return Compared("values", broken=self._compare_values(executor, source, target, tick).broken)
        except SourceUnreadableError as error:
            if not self.translation.same_bytes or not self.translation.same_fill:
                raise error.reason from None
            both = itertools.chain(source.stored(), target.stored())
            executor.run(self._of_chunks(_ComparingBytes, executor.width), both, tick)
            return Compared("bytes", str(error.reason))

    def _compare_values(self, executor: Executor, source: Chunks, target: Chunks, tick: Tick) -> Written:
        try:
            reading = source.bind(self._policy())
        except _UNDECODABLE as error:
            raise SourceUnreadableError(error) from error
        sides = Sides(source, target, reading, target.bind(self._policy()))
        self._compare_fill(sides.reading, sides.writing)
        # Of each of the two arrays that are compared.
        regions = self._regions(_fine(sides.writing), sides, self.memory // 2, executor.width)
        ndim = len(regions.grid.shape)
        boxes = itertools.chain(
            (_lifted(source.grid.slices_of(coords), ndim) for coords in source.stored()),
            (target.grid.slices_of(coords) for coords in target.stored()),
        )
        return executor.run(_Comparing(self, regions.per_axis), regions.holding(boxes), tick)

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

    def difference(self, box: Box, at: Coords, expected: AnyArray, found: AnyArray) -> ChunkError:
        """Return the error that says where the two arrays differ."""
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


class Sides(NamedTuple):
    """Both arrays, and what reading the one and writing (or reading) the other needs."""

    source: Chunks
    target: Chunks
    reading: Binding
    writing: Binding

    @property
    def item_bytes(self) -> int:
        """About how much memory an element takes."""
        return max(self.source.element_bytes(), self.target.element_bytes())


class SourceUnreadableError(Exception):
    """Elements of the source cannot be had."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(reason)  # which is all that a pickle of it holds
        self.reason = reason


@dataclass(frozen=True)
class _OfChunks(Job[Coords]):
    """What is done with the stored bytes of each chunk."""

    move: Move
    chunk_bytes: int
    """Of the elements of a chunk; 0 if nobody knows."""
    share: int

    @property
    def at_once(self) -> int:
        return max(1, min(self.move.at_once, self.move.memory // max(self.chunk_bytes, 1)))


@dataclass(frozen=True)
class _Copying(_OfChunks):
    """Copy it as it is."""

    def begin(self, broken: dict[str, str]) -> tuple[Callable[[Coords], int], Tally]:
        tally = Tally(self.move.target.store)
        source, target = self.move.sides(tally)
        size = self.chunk_bytes
        become = self.changing()

        def copy(coords: Coords) -> int:
            key = source.key_of(coords)
            try:
                is_there = self.move.resume and target.store.exists(target.key_of(coords))
                value = None if is_there and not self.finds_broken else source.store.get(key)
                if value is not None:
                    try:
                        value = become(coords, value)
                    except ChunkError as error:
                        _note(broken, key, error)
                    if not is_there:
                        target.store.set(target.key_of(coords), value)
            except OmnizarrError as error:
                raise error.add(store=str(source.store), path=self.move.source.path, key=key, coords=coords)
            return size

        return copy, tally

    @property
    def finds_broken(self) -> bool:
        """Whether to look at chunks that the target already has: no other step would find broken ones."""
        return False

    def changing(self) -> Callable[[Coords, Buffer], Buffer]:
        """Return what makes a chunk of the target of one of the source; it raises ChunkError if that is broken."""
        return lambda _, value: value


@dataclass(frozen=True)
class _Recompressing(_Copying):
    """Copy what is compressed in it, and compress that otherwise."""

    @property
    def finds_broken(self) -> bool:
        return not self.move.compares

    def changing(self) -> Callable[[Coords, Buffer], Buffer]:
        return recompressing(self.move.bound())


def recompressing(sides: Sides) -> Callable[[Coords, Buffer], Buffer]:
    """Return what makes a chunk of the target of one of the source by decompressing and compressing it.

    It raises ChunkError if the chunk is broken.
    """

    def recompress(coords: Coords, value: Buffer) -> Buffer:
        before, after = sides.reading.chain_for(coords), sides.writing.chain_for(coords)
        match [codec for _, codec in (*before.compressors, *after.compressors)]:
            case [Zlib(decoded=decoded), Gzip()]:
                return from_zlib(value, decoded)
        return after.compress(before.decompress(value))

    return recompress


@dataclass(frozen=True)
class _ComparingBytes(_OfChunks):
    """Compare it with what the other array has stored."""

    def begin(self, _: dict[str, str]) -> tuple[Callable[[Coords], int], None]:
        source, target = self.move.sides()

        def compare(coords: Coords) -> int:
            return self.chunk_bytes if compare_bytes(source, target, coords) else 0

        return compare, None


@dataclass(frozen=True)
class _OfRegions(Job[int]):
    """What is done with the elements of each region; one at a time, as the engine has threads of its own."""

    move: Move
    per_axis: tuple[int, ...]

    @property
    def at_once(self) -> int:
        return 1


@dataclass(frozen=True)
class _Encoding(_OfRegions):
    """Read it from the one array, and write it to the other."""

    def begin(self, broken: dict[str, str]) -> tuple[Callable[[int], int], Tally]:
        tally = Tally(self.move.target.store)
        sides = self.move.bound(tally)
        regions = Regions(sides.target.grid, self.per_axis)

        def encode(number: int) -> int:
            target = sides.target
            if self.move.resume and all(target.store.exists(target.key_of(at)) for at in regions.chunks(number)):
                if not self.move.compares:
                    self.move.read_as_target(sides, regions.box(number), broken)
                return 0
            box = regions.box(number)
            values = self.move.read_as_target(sides, box, broken)
            engine.write(sides.writing, indexing.basic(box, sides.writing.grid), values, self.move.concurrency)
            return values.size * sides.item_bytes

        return encode, tally


@dataclass(frozen=True)
class _Comparing(_OfRegions):
    """Read it from both arrays, and compare."""

    def begin(self, broken: dict[str, str]) -> tuple[Callable[[int], int], None]:
        move = self.move
        sides = move.bound()
        regions = Regions(_fine(sides.writing), self.per_axis)
        is_copy = move.translation.same_bytes and move.translation.same_fill

        def compare(number: int) -> int:
            box = regions.box(number)
            try:
                expected = move.read_as_target(sides, box)
            except ChunkError:
                for part in _pieces(sides.reading, box):
                    compare_part(part)
                return math.prod(_shape_of(box)) * sides.item_bytes
            except _UNDECODABLE as error:
                raise SourceUnreadableError(error) from error
            compare_box(box, expected)
            return expected.size * sides.item_bytes

        def compare_part(part: Box) -> None:
            """Compare what one chunk of the source holds; if it cannot be read, its bytes, where they were copied."""
            try:
                expected = move.read_as_target(sides, part)
            except ChunkError as error:
                _note(broken, error.key or "", error)
                if is_copy and error.coords is not None:
                    compare_bytes(sides.source, sides.target, error.coords)
                return
            compare_box(part, expected)

        def compare_box(box: Box, expected: AnyArray) -> None:
            found = _read(sides.writing, box, move.concurrency)
            at = first_difference(expected, found)
            if at is not None:
                raise move.difference(box, at, expected, found)

        return compare, None


def compare_bytes(source: Chunks, target: Chunks, coords: Coords) -> bool:
    """Return whether a chunk is stored; raise ChunkError if the two arrays have not stored the same bytes."""
    key = target.key_of(coords)
    expected, found = source.store.get(source.key_of(coords)), target.store.get(key)
    if expected is None and found is None:
        return False
    if expected is None or found is None or memoryview(expected) != memoryview(found):
        raise ChunkError(
            "verification failed: the chunk of the target has other bytes than that of the source",
            store=str(target.store),
            path=target.where.path,
            key=key,
            coords=coords,
            found="nothing" if found is None else f"{len(found)} bytes",
            expected="nothing" if expected is None else f"{len(expected)} bytes",
            remedy="convert again with overwrite=True",
        )
    return True


def _note(broken: dict[str, str], key: str, error: ChunkError) -> None:
    """Enter a chunk that cannot be read, and why."""
    if key not in broken:
        reason = ChunkError(error.message, codec=error.codec, found=error.found, expected=error.expected)
        broken[key] = str(reason)[:_LONGEST_REASON] if len(broken) < _MOST_REASONS else ""


def _element_bytes(chunks: Chunks) -> int:
    try:
        return chunks.element_bytes()
    except OmnizarrError:
        return 0


def _read(binding: Binding, box: Box, concurrency: int | None, broken: dict[str, str] | None = None) -> AnyArray:
    """Return a part of an array; chunks that cannot be read are entered in `broken`, if it is there."""
    found = indexing.basic(box, binding.grid)
    out = np.empty(found.buffer_shape, binding.spec.dtype)
    try:
        engine.read(binding, found, out, concurrency)
    except ChunkError:
        if broken is None:
            raise
        out[...] = _box_of(binding.spec.fill_value, out.dtype)
        for part in _pieces(binding, box):
            ends = zip(part, box, strict=True)
            place = tuple(slice(piece.start - whole.start, piece.stop - whole.start) for piece, whole in ends)
            try:
                out[place] = _read(binding, part, concurrency)
            except ChunkError as error:
                _note(broken, error.key or "", error)
    return out


def _pieces(binding: Binding, box: Box) -> Iterator[Box]:
    """Yield the parts of a box that lie in one chunk each, of the smallest that can be read alone."""
    grid = _fine(binding)
    chunks = Regions(grid, (1,) * len(grid.axes))
    own, lifted = box[: len(grid.axes)], box[len(grid.axes) :]
    for number in chunks.touched(own):
        yield tuple(_overlap(*both) for both in zip(own, chunks.box(number), strict=True)) + lifted


def _overlap(one: slice, other: slice) -> slice:
    return slice(max(one.start, other.start), min(one.stop, other.stop))


def _shape_of(box: Box) -> tuple[int, ...]:
    return tuple(part.stop - part.start for part in box)


def _lifted(box: Box, ndim: int) -> Box:
    """Return a part of an array without dimensions as one of an array that has one element instead."""
    return box + (slice(0, 1),) * (ndim - len(box))


def _like(grid: Grid, other: Grid) -> Grid:
    """Return a grid with as many dimensions as another one, which has more only if this one has none."""
    return grid if len(grid.shape) == len(other.shape) else other


def _fine(binding: Binding) -> Grid:
    """Return the grid of the smallest chunks that can be read alone."""
    inner = chunking.inner_chunk_shape(binding.metadata.codecs)
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
