"""Moving the chunks of one array to another, and comparing the two: in parallel, and in bounded memory.

Chunks whose bytes mean the same on both sides are copied unchanged. Where only the compressors differ, each chunk is
decompressed and compressed again. Others are read and written block by block, in one pass or through temporary objects
(see `omnizarr.tools.convert.routes`): what is written last is made of whole chunks of the target, so that each is
written once, and whole.

A chunk of the source that cannot be read does not stop the others. It is reported; its bytes are copied unchanged, or
where elements are encoded again, the target holds the fill value in their place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, NamedTuple

from omnizarr import engine, indexing
from omnizarr.codecs.chain import losses
from omnizarr.codecs.contract import AnyArray, Buffer, ChunkPolicy
from omnizarr.codecs.gzip import Gzip, from_zlib
from omnizarr.codecs.zlib import Zlib
from omnizarr.engine import Binding, budget
from omnizarr.errors import (
    ChunkError,
    CodecError,
    NotRepresentableError,
    OmnizarrError,
    Remedy,
    UnknownExtensionError,
    Wording,
)
from omnizarr.model import UNDEFINED, ArrayMetadata
from omnizarr.model.grids import Coords, Grid
from omnizarr.nodes.copying import Copier, Sizes
from omnizarr.nodes.digests import Listed, Names, Unlike
from omnizarr.nodes.location import StorePath
from omnizarr.stores import MemoryStore, Store, pool, verbs
from omnizarr.stores.base import NOT_LISTED
from omnizarr.support.progress import Tick
from omnizarr.tools.convert import temporary
from omnizarr.tools.convert.routes import Constraints, Pass, Room, Route, coarse, passes, regions_of, route
from omnizarr.tools.convert.temporary import TemporaryObjects
from omnizarr.tools.streaming.chunks import (
    Chunks,
    Listing,
    box_of,
    fine,
    note,
    overlap,
    part_of,
    pieces,
    read,
    shape_of,
)
from omnizarr.tools.streaming.equality import first_difference
from omnizarr.tools.streaming.executors import Executor, InTwo, Job, Tally, Written
from omnizarr.tools.streaming.regions import Box, Regions, plan
from omnizarr.tools.translate.translation import Translation

_SHARED_BYTES: Final = 16 * 1024 * 1024
"""Size from which elements are worth sending to another process."""
_SHARED_CHUNKS: Final = 256
"""Maximum number of chunks that are sent together."""
_FEWEST: Final = 1
"""Up to this number of chunks, to read both takes no more requests than to list both."""
_FEW: Final = 256
"""Maximum number of stored chunks that are remembered."""
_MOST_FILLED: Final = 10**8
"""Maximum number of missing chunks that are written, if missing chunks have another meaning in the target."""
_UNDECODABLE: Final = (CodecError, UnknownExtensionError, MemoryError)
"""Errors that mean that no chunk of an array can be decoded here, broken or not."""


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
    listed: int = 0
    """How many chunks were not read, as both stores list the same digests."""


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
    temporary : StorePath, optional
        What temporary objects may be below until `discard`. Without it there is but one pass, however often that reads
        the source.
    is_new : bool
        The target had no chunks before, so that it has none but those that `run` wrote.
    known : tuple
        The keys that are stored below the source, and below the target that `run` does not write; None if not known.
    """

    source: StorePath
    target: StorePath
    translation: Translation
    concurrency: int | None = None
    allow_pickle: bool = False
    resume: bool = False
    max_memory: int | None = None
    compares: bool = True
    temporary: StorePath | None = None
    is_new: bool = False
    known: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None)
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Both sides, and the chunks of the source, if they are few: what was found once."""

    def __reduce__(self) -> tuple[type[Move], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, each.name) for each in fields(self) if each.init)

    @property
    def at_once(self) -> int:
        """How many chunks one process works on at a time."""
        stores = self.source.store, self.target.store
        return self.concurrency or max(pool.default_concurrency(), *(store.features.concurrency for store in stores))

    @property
    def memory(self) -> int:
        """Bytes of elements in memory at a time."""
        return self.max_memory or budget.for_blocks()

    def sides(self, store: Store | None = None) -> tuple[Chunks, Chunks]:
        """Return the chunks of both arrays. `store` replaces the store of the target."""
        before, after = self.translation.source, self.translation.target
        if not isinstance(before, ArrayMetadata) or not isinstance(after, ArrayMetadata):
            raise TypeError("only arrays have chunks")
        if store is not None:
            return self.sides()[0], Chunks.of(self.target, after, store)
        if "sides" not in self._known:
            source = Chunks.of(self.source, before, known=self.known[0])
            self._known["sides"] = source, Chunks.of(self.target, after, known=self.known[1])
        found: tuple[Chunks, Chunks] = self._known["sides"]
        return found

    def _stored(self) -> Iterator[Coords]:
        """Yield the coordinates of the stored chunks of the source, which is listed once if they are few."""
        known = self._known.get("stored")
        if known is not None:
            yield from known
            return
        found = self.sides()[0].stored()
        first = list(itertools.islice(found, _FEW + 1))
        if len(first) <= _FEW:
            self._known["stored"] = first
        seen = 0
        for coords in itertools.chain(first, found):
            seen += hash((coords,))
            yield coords
        self._known.setdefault("seen", seen)

    def has_moved(self) -> bool:
        """Return whether chunks of the source came or went since `run` began; False if the store does not tell."""
        before, seen = self.translation.source, self._known.get("seen")
        if seen is None or not isinstance(before, ArrayMetadata):
            return False
        is_listed, found = Chunks.of(self.source, before).known()
        return is_listed and sum(hash((coords,)) for coords in found) != seen

    def goes_by_chunks(self) -> bool:
        """Return whether stored chunks are moved one by one: not if some are missing that must be written.

        Nor if they are made of other arrays when they are asked for, which takes longer than to read elements.
        """
        source = self.sides()[0]
        made = verbs.elements(source.store, source.prefix)
        if not self.translation.same_elements or not (made is None or made.passes_on()):
            return False
        return self.translation.same_fill or not source.lacks_some()

    def check_memory(self) -> None:
        """Raise ValueError if `max_memory` is less than moving one chunk of the target takes."""
        if self.max_memory is None or self.translation.same_elements:
            return
        source, target = self.sides()
        chunk = math.prod(max((*axis.sizes, 1)) for axis in target.grid.axes)
        needed = chunk * max(_element_bytes(source), _element_bytes(target))
        if needed > self.max_memory:
            raise ValueError(
                Wording(
                    f"{{max_memory}}: one chunk (or shard) of the target, /{self.target.path}, "
                    f"has {needed} bytes of elements",
                    max_memory=self.max_memory,
                )
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
        source = self.sides()[0]
        self._known.pop("stored", None)
        self._known.pop("seen", None)
        by_chunks, is_copy = self.goes_by_chunks(), self.translation.same_bytes
        # Nothing that comes later finds broken chunks, if the two sides are not compared.
        there = self._there() if self.compares or (by_chunks and is_copy) else None
        if by_chunks:
            move = self if there is None else replace(self, resume=False)
            job = move._of_chunks(_Copying if is_copy else _Recompressing, executor.width)  # noqa: SLF001 - of its kind
            wanted = self._stored() if there is None else self._lacking(there, job.chunk_bytes, tick)
            return Moved("copied" if is_copy else "recompressed", *executor.run(job, wanted, tick))
        sides = self.bound()  # here already, as what cannot be bound here is not sent to others
        found = self._route(sides, executor.width)
        shelves = self._shelves(sides, found)
        if shelves:
            temporary.remove(self._shelf_place(), but=shelves if self.resume else ())
        written = Written()
        broken: dict[str, str] = {}
        for number, blocks in enumerate(found.blocks):
            numbers = self._wanted(source, blocks)
            if there is not None and number == len(found.blocks) - 1:
                numbers = self._blocks_lacking(there, blocks, numbers)
            written = executor.run(_Encoding(self, found, shelves, number), numbers, tick)
            broken.update(written.broken)
        return Moved("encoded", written.values, written.nbytes, broken)

    def _there(self) -> Names | None:
        """Return the keys that a remote target has already; None if it must be asked for each."""
        store, target = self.target.store, self.sides()[1]
        is_asked = store.features.concurrency <= 1 or store.features.listing != "complete"
        if not self.resume or is_asked or self._at_most(_FEWEST):
            return None
        with suppress(*NOT_LISTED):
            return Names(map(hash, store.list_prefix(target.prefix)))
        return None

    def _at_most(self, number: int) -> bool:
        """Return whether the source is known to have no more chunks."""
        keys = self.known[0]
        return keys is not None and len(keys) <= number

    def _lacking(self, there: Names, chunk_bytes: int, tick: Tick) -> Iterator[Coords]:
        """Yield the chunks of the source that the target lacks."""
        target = self.sides()[1]
        for coords in self._stored():
            if target.key_of(coords) in there:
                tick(chunk_bytes)
            else:
                yield coords

    def _blocks_lacking(self, there: Names, blocks: Grid, wanted: Iterator[int]) -> Iterator[int]:
        """Yield the blocks of which the target lacks chunks."""
        target, regions = self.sides()[1], regions_of(blocks)
        for number in wanted:
            if not all(target.key_of(coords) in there for coords in _chunks_in(target.grid, regions.box(number))):
                yield number

    def passes(self, width: int = 1) -> tuple[Pass, ...]:
        """Return the passes of `run`; none if chunks are moved one by one, or cannot be read here."""
        if self.goes_by_chunks():
            return ()
        try:
            sides = self.bound()
        except OmnizarrError:
            return ()
        given = self._constraints(sides, width)
        return passes(self._route(sides, width), given)

    def count_written(self) -> int:
        """Return how many chunks of the target elements are written to, where they are encoded again."""
        source, target = self.sides()
        return sum(1 for _ in self._wanted(source, target.grid))

    def smallest_read(self, sides: Sides) -> Grid:
        """Return the smallest chunks of the source that can be read alone, with the dimensions of the target."""
        return _like(fine(sides.reading), sides.target.grid)

    def discard(self) -> None:
        """Remove temporary objects, if there are any."""
        if self.temporary is not None:
            temporary.remove(self._shelf_place())

    def _route(self, sides: Sides, width: int) -> Route:
        can_hold = temporary.can_hold(sides.writing.spec, sides.target.metadata)
        return route(self._constraints(sides, width), may_stage=self.temporary is not None and can_hold)

    def _constraints(self, sides: Sides, width: int) -> Constraints:
        is_same = self.translation.values == "same" and sides.reading.spec.dtype == sides.writing.spec.dtype
        memory = self.memory if is_same else self.memory // 2  # a change of the type takes another copy of elements
        source, target = self.smallest_read(sides), sides.target.grid
        return Constraints(
            source, target, sides.item_bytes, memory, self.at_once, width, self.compares, is_far=self._is_far
        )

    @property
    def _is_far(self) -> bool:
        stores = (self.source.store, self.target.store, *(() if self.temporary is None else (self.temporary.store,)))
        return any(store.features.concurrency > 1 for store in stores)

    def _shelves(self, sides: Sides, found: Route) -> tuple[TemporaryObjects, ...]:
        if self.temporary is None or found.is_direct:
            return ()
        held = [self._held(sides.source, blocks) for blocks in found.blocks[:-1]]
        spec, metadata = sides.writing.spec, sides.target.metadata
        return temporary.shelves(self._shelf_place(), found, spec, metadata, held, self._fill_of(sides))

    def _shelf_place(self) -> StorePath:
        """Return the prefix of the temporary objects of this array."""
        if self.temporary is None:
            raise TypeError("there is no place for temporary objects")
        return temporary.place_of(self.temporary, self.target.path)

    def _held(self, source: Chunks, blocks: Grid) -> frozenset[int] | None:
        """Return the blocks that are written; None: all."""
        wanted = frozenset(self._wanted(source, blocks))
        return None if len(wanted) == blocks.nchunks else wanted

    def _fill_of(self, sides: Sides) -> AnyArray:
        """Return the value of missing chunks of the source, in the form of the target."""
        value = box_of(sides.reading.spec.fill_value, sides.reading.spec.dtype)
        carried: AnyArray = self.translation.carry(value).astype(sides.writing.spec.dtype, copy=False)
        return carried

    def _of_chunks(self, kind: type[_OfChunks], width: int) -> _OfChunks:
        """Return a job that deals with chunks; they are sent in groups small enough for all processes to get some."""
        source = self.sides()[0]
        size = math.prod(source.grid.chunk_shape or ()) * _element_bytes(source)
        most = min(_SHARED_CHUNKS, source.grid.nchunks // (2 * width), min(_SHARED_BYTES, self.memory) // max(size, 1))
        return kind(self, size, max(1, most))

    def strays(self) -> Iterator[str]:
        """Yield the keys of chunks that the target has already; none if it cannot be listed."""
        target = self.sides()[1]
        try:
            yield from map(target.key_of, target.listed())
        except NOT_LISTED:
            return

    def bound(self, store: Store | None = None) -> Sides:
        """Return both arrays, prepared for reading and writing elements."""
        source, target = self.sides(store)
        return Sides.of(source, target, source.bind(self._policy()), target.bind(self._policy()))

    def _policy(self) -> ChunkPolicy:
        return ChunkPolicy(missing="fill", allow_pickle=self.allow_pickle)

    def _wanted(self, source: Chunks, blocks: Grid) -> Iterator[int]:
        """Yield the blocks that must be written."""
        regions = regions_of(blocks)
        if self.translation.same_fill:
            ndim = len(blocks.shape)
            yield from regions.holding(_lifted(source.grid.slices_of(coords), ndim) for coords in self._stored())
            return
        nchunks = self.sides()[1].grid.nchunks
        if nchunks > _MOST_FILLED:
            raise NotRepresentableError(
                "the fill value cannot be carried, so that all chunks would have to be written, and there are too many",
                path=self.source.path,
                found=f"{nchunks} chunks",
                remedy="leave this array out, or write values to the chunks that matter",
            )
        yield from range(regions.total)

    def read_as_target(self, sides: Sides, box: Box, broken: dict[str, str] | None = None) -> AnyArray:
        """Return a part of the source as the target's data type, and in its shape.

        If there is `broken`, chunks that cannot be read are entered there, and their elements are the fill value.
        """
        part = box[: len(sides.reading.grid.shape)]
        values = read(sides.reading, part, self.concurrency, broken, sides.listing)
        cast: AnyArray = self.translation.carry(values).astype(sides.writing.spec.dtype, copy=False)
        return cast.reshape(shape_of(box))

    # -- comparing -----------------------------------------------------------------

    def compare(self, executor: Executor, tick: Tick, *, by_digests: bool = False) -> Compared:
        """Read both arrays again, and return how they were found to be equal: bit for bit.

        Unreadable chunks of the source are not compared, but named. With `by_digests`, chunks are not read of which
        both stores list the same digests. Raises ChunkError, with the place, if anything else differs.
        """
        source, target = self.sides()
        unlike = self._unlike() if by_digests else None
        try:
            done = (
                self._compare_values(executor, source, target, tick)
                if unlike is None
                else self._compare_unlike(executor, unlike, tick)
            )
        except SourceUnreadableError as error:
            if not self.translation.same_bytes or not self.translation.same_fill:
                raise error.reason from None
            both: Iterable[Any] = itertools.chain(self._stored(), target.stored()) if unlike is None else unlike
            executor.run(self._of_chunks(_ComparingBytes, executor.width), both, tick)
            return Compared("bytes", str(error.reason))
        listed = 0 if unlike is None else unlike.equal
        return Compared("bytes" if listed else "values", broken=done.broken, listed=listed)

    def _unlike(self) -> Unlike | None:
        """Return the chunks that may differ, by the digests of both listings; None if those cannot tell, or do not pay.

        Two listings must tell more than two requests.
        """
        source, target = self.sides()
        is_copy = self.translation.same_bytes and self.translation.same_fill and self.goes_by_chunks()
        if not is_copy or self._at_most(_FEWEST):
            return None
        if source.metadata.storage_transformers or target.metadata.storage_transformers:
            return None
        return Unlike.of(*(Listed(side.store, (side.prefix,), side.coords_of) for side in (source, target)))

    def _compare_unlike(self, executor: Executor, unlike: Unlike, tick: Tick) -> Written:
        """Compare the values of chunks that may differ: side by side if they are few, or in blocks of chunks."""
        sides = self._compared_sides()
        found, width = self._same_chunks(sides), 1
        chunks = iter(unlike)
        first = list(itertools.islice(chunks, _FEW + 1))
        if len(first) <= _FEW:
            found = Route((sides.target.grid,), rooms=found.rooms, ahead=(False,))
            size = math.prod(max((*axis.sizes, 1)) for axis in sides.target.grid.axes) * sides.item_bytes
            width = max(1, min(self.at_once, found.rooms[0].reading // max(size, 1)))
        boxes = (sides.target.grid.slices_of(coords) for coords in itertools.chain(first, chunks))
        job = _Comparing(self, found, (), 0, width)
        return executor.run(job, regions_of(found.blocks[0]).holding(boxes), tick)

    def _are_empty(self) -> bool:
        """Return whether both arrays are known to have no chunks, and to need none."""
        source, target = self.sides()
        return self.translation.same_fill and source.keys == () and (self.is_new or target.keys == ())

    def _compared_sides(self) -> Sides:
        """Return both arrays, prepared for reading, after comparing fill values. Without chunks, no store is set up."""
        source, target = self.sides()
        if self._are_empty():
            source, target = (replace(side, store=MemoryStore()) for side in (source, target))
        try:
            reading = source.bind(self._policy())
        except _UNDECODABLE as error:
            raise SourceUnreadableError(error) from error
        sides = Sides.of(source, target, reading, target.bind(self._policy()))
        self._compare_fill(sides.reading, sides.writing)
        return sides

    def _compare_values(self, executor: Executor, source: Chunks, target: Chunks, tick: Tick) -> Written:
        sides = self._compared_sides()
        ndim = len(target.grid.shape)
        are_ours = self.is_new and self.translation.same_fill
        if self._are_empty():
            return Written()
        found = self._same_chunks(sides) if self.goes_by_chunks() else self._route(sides, executor.width)
        shelves = self._shelves(sides, found)
        broken: dict[str, str] = {}
        for number, blocks in enumerate(found.blocks):
            is_last = number == len(found.blocks) - 1
            has_others = is_last and not are_ours
            boxes = itertools.chain(
                (_lifted(source.grid.slices_of(coords), ndim) for coords in self._stored()),
                (target.grid.slices_of(coords) for coords in (target.stored() if has_others else ())),
            )
            job: Job[int] = (_Comparing if is_last else _ComparingTemporary)(self, found, shelves, number)
            broken.update(executor.run(job, regions_of(blocks).holding(boxes), tick).broken)
        return Written(broken=broken)

    def _same_chunks(self, sides: Sides) -> Route:
        """Return the blocks in which two arrays with the same chunks are compared, in half of the memory each.

        Of far stores, a block takes a quarter, and the next one another: it is read meanwhile.
        """
        half, grid = self.memory // 2, fine(sides.writing)
        block = half // 2 if self._is_far else half
        regions = plan(grid, _like(sides.source.grid, grid), sides.item_bytes, block, self.at_once)
        blocks = coarse(grid, regions.per_axis)
        taken = math.prod(max((*axis.sizes, 1)) for axis in blocks.axes) * sides.item_bytes
        return Route((blocks,), rooms=(Room(half, half),), ahead=(2 * taken <= half,))

    def _compare_fill(self, reading: Binding, again: Binding) -> None:
        if not self.translation.same_fill or UNDEFINED in (reading.metadata.fill_value, again.metadata.fill_value):
            return
        expected = box_of(reading.spec.fill_value, reading.spec.dtype)
        expected = self.translation.carry(expected).astype(again.spec.dtype, copy=False)
        found = box_of(again.spec.fill_value, again.spec.dtype)
        if first_difference(expected, found) is not None:
            raise ChunkError(
                "missing chunks of the target do not hold what those of the source hold",
                store=str(self.target.store),
                path=self.target.path,
                pointer="/fill_value",
                found=repr(found[()]),
                expected=repr(expected[()]),
            )

    def kept(self, sides: Sides, box: Box, values: AnyArray) -> AnyArray:
        """Return what codecs of the target that lose something keep of the elements of a box."""
        apart = replace(sides.target, store=MemoryStore()).bind(self._policy())
        engine.write(apart, indexing.basic(box, apart.grid), values, self.concurrency)
        return read(apart, box, self.concurrency)

    def check_equal(self, box: Box, part: Box, expected: AnyArray, found: AnyArray) -> None:
        """Raise ChunkError, with the place, if elements differ. They are a part of a part of the array."""
        at = first_difference(expected, found)
        if at is None:
            return
        ends = [(whole.start + inner.start, whole.start + inner.stop) for whole, inner in zip(box, part, strict=True)]
        place = tuple(start + index for (start, _), index in zip(ends, at, strict=True))
        region = ", ".join(f"{start}:{stop}" for start, stop in ends)
        raise ChunkError(
            f"verification failed: the target differs from the source in the region [{region}], first at {place}",
            store=str(self.target.store),
            path=self.target.path,
            found=repr(found[at]),
            expected=repr(expected[at]),
            remedy=Remedy(
                "let nothing write to the source, use codecs that keep all values, and convert with {overwrite}",
                overwrite=True,
            ),
        )


class Sides(NamedTuple):
    """Both arrays, and what reading the one and writing (or reading) the other needs."""

    source: Chunks
    target: Chunks
    reading: Binding
    writing: Binding
    listing: Listing
    """Of the source."""
    target_listing: Listing
    """For reading the target when it is complete."""

    @classmethod
    def of(cls, source: Chunks, target: Chunks, reading: Binding, writing: Binding) -> Sides:
        """Return both, with nothing listed yet."""
        return cls(source, target, reading, writing, Listing(reading), Listing(writing))

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
    """Work on the stored bytes of each chunk."""

    move: Move
    chunk_bytes: int
    """Of the elements of a chunk; 0 if unknown."""
    share: int

    @property
    def at_once(self) -> int:
        return max(1, min(self.move.at_once, self.move.memory // max(self.chunk_bytes, 1)))


@dataclass(frozen=True)
class _Copying(_OfChunks):
    """Copy it unchanged."""

    @property
    def at_once(self) -> int:
        # Without a limit of the user, the copier keeps to the bytes in flight.
        return self.move.at_once if self.move.max_memory is None else super().at_once

    def begin(self, broken: dict[str, str]) -> tuple[Callable[[Coords], int], Tally]:
        tally = Tally(self.move.target.store)
        source, target = self.move.sides()
        keeps: Literal["all", "none"] = "all" if self.move.resume else "none"
        sizes = Sizes(self.chunk_bytes + self.chunk_bytes // 64)  # some are larger when they are compressed
        copy_value = Copier(source.store, target.store, keeps, most=source.most_stored, sizes=sizes).copier()

        def copy(coords: Coords) -> int:
            key = source.key_of(coords)
            try:
                done = copy_value(key, target.key_of(coords))
            except OmnizarrError as error:
                raise error.add(store=str(source.store), path=self.move.source.path, key=key, coords=coords)
            if done.is_written:
                tally.count(done.nbytes)
            return self.chunk_bytes

        return copy, tally


@dataclass(frozen=True)
class _Recompressing(_OfChunks):
    """Copy its decompressed bytes, compressed by another codec."""

    @property
    def checks_first(self) -> bool:
        return True

    def begin(self, broken: dict[str, str]) -> tuple[Callable[[Coords], int], Tally]:
        tally = Tally(self.move.target.store)
        source, target = self.move.sides(tally)
        become = recompressing(self.move.bound())

        def copy(coords: Coords) -> int:
            key = source.key_of(coords)
            try:
                is_there = self.move.resume and target.store.exists(target.key_of(coords))
                # Nothing that comes later finds broken chunks, if the two sides are not compared.
                value = None if is_there and self.move.compares else source.value_of(coords)
                if value is not None:
                    try:
                        value = become(coords, value)
                    except ChunkError as error:
                        note(broken, key, error)
                    if not is_there:
                        target.store.set(target.key_of(coords), value)
            except OmnizarrError as error:
                raise error.add(store=str(source.store), path=self.move.source.path, key=key, coords=coords)
            return self.chunk_bytes

        return copy, tally


def recompressing(sides: Sides) -> Callable[[Coords, Buffer], Buffer]:
    """Return a function that decompresses a chunk of the source and compresses it for the target.

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
    """Compare it with the stored chunk of the other array."""

    def begin(self, _: dict[str, str]) -> tuple[Callable[[Coords], int], None]:
        source, target = self.move.sides()

        def compare(coords: Coords) -> int:
            return self.chunk_bytes if compare_bytes(source, target, coords) else 0

        return compare, None


@dataclass(frozen=True)
class _OfBlocks(Job[int]):
    """Work on the elements of each block, usually one after the other: the engine uses threads itself.

    The next block may be read while one is written.
    """

    move: Move
    route: Route
    shelves: tuple[TemporaryObjects, ...]
    number: int
    """Of the pass."""
    width: int = 1
    """How many blocks one process works on at a time."""

    @property
    def at_once(self) -> int:
        return self.width

    @property
    def before(self) -> TemporaryObjects | None:
        """Temporary objects that are read; None: the source is."""
        return self.shelves[self.number - 1] if self.number else None

    @property
    def after(self) -> TemporaryObjects | None:
        """Temporary objects that are written, or compared with; None: the target is."""
        return self.shelves[self.number] if self.number < len(self.shelves) else None

    @property
    def is_ahead(self) -> bool:
        """Whether there is memory for the next block beside one."""
        return self.route.ahead[self.number]

    def done(self, values: AnyArray, sides: Sides) -> int:
        """Return how many bytes of all that is to be done are done with a block."""
        return values.size * sides.item_bytes // len(self.route.blocks)


@dataclass(frozen=True)
class _Encoding(_OfBlocks):
    """Read it, and write it."""

    @property
    def value_bytes(self) -> int:
        """Return the bytes of the elements of a chunk that are done when it is written."""
        target = self.move.sides()[1]
        if self.after is not None or target.grid.chunk_shape is None:
            return 0
        return math.prod(target.grid.chunk_shape) * _element_bytes(target) // len(self.route.blocks)

    def begin(self, broken: dict[str, str]) -> tuple[InTwo[int, AnyArray | None], Tally]:
        tally = Tally(self.move.target.store)
        move, sides = self.move, self.move.bound(tally)
        blocks = regions_of(self.route.blocks[self.number])

        def take(number: int) -> AnyArray | None:
            box = blocks.box(number)
            if move.resume and self._is_there(number, box, sides.target):
                if self.before is None and not move.compares:
                    move.read_as_target(sides, box, broken)
                return None
            return self.before.read(number) if self.before else move.read_as_target(sides, box, broken)

        def use(number: int, block: list[AnyArray | None], take_next: Callable[[], object]) -> int:
            if block[0] is None:
                return 0
            done = self.done(block[0], sides)
            if self.is_ahead:
                take_next()
            if self.after is None:
                plan = indexing.basic(blocks.box(number), sides.writing.grid)
                engine.write(sides.writing, plan, block[0], move.concurrency)
            else:
                self.after.write(number, block, (lambda: None) if self.is_ahead else take_next)
            return done

        return InTwo(take, use), tally

    def _is_there(self, number: int, box: Box, target: Chunks) -> bool:
        if self.after is not None:
            return self.after.is_there(number)
        return all(target.store.exists(target.key_of(coords)) for coords in _chunks_in(target.grid, box))


@dataclass(frozen=True)
class _ComparingTemporary(_OfBlocks):
    """Read it from the source, or from temporary objects, and compare it with the temporary objects made of it."""

    def begin(self, broken: dict[str, str]) -> tuple[InTwo[int, AnyArray], None]:
        move, after = self.move, self.shelves[self.number]
        sides = move.bound()
        blocks = regions_of(self.route.blocks[self.number])

        def take(number: int) -> AnyArray:
            # If chunks cannot be read, both arrays hold the fill value.
            return self.before.read(number) if self.before else move.read_as_target(sides, blocks.box(number), broken)

        def compare(number: int, block: list[AnyArray], take_next: Callable[[], object]) -> int:
            box, (expected,) = blocks.box(number), block
            if self.is_ahead:
                take_next()
            after.each(number, lambda part, found: move.check_equal(box, part, part_of(expected, part), found))
            return self.done(expected, sides)

        return InTwo(take, compare), None


@dataclass(frozen=True)
class _Comparing(_OfBlocks):
    """Read it from the source, or from temporary objects, and compare it with the target."""

    def begin(self, broken: dict[str, str]) -> tuple[InTwo[int, AnyArray | None], None]:
        move = self.move
        sides = move.bound()
        blocks = regions_of(self.route.blocks[self.number])
        parts = self._parts(sides)
        is_copy = move.translation.same_bytes and move.translation.same_fill
        is_lossy = not is_copy and any(losses(sides.writing.chain))

        def take(number: int) -> AnyArray | None:
            return self._expected(sides, number, blocks.box(number))

        def compare(number: int, block: list[AnyArray | None], take_next: Callable[[], object]) -> int:
            box, (expected,) = blocks.box(number), block
            if self.is_ahead:
                take_next()
            if expected is None:
                for part in pieces(sides.reading, box):
                    compare_part(part)
                return math.prod(shape_of(box)) * sides.item_bytes // len(self.route.blocks)
            compare_box(box, expected)
            return self.done(expected, sides)

        def compare_part(part: Box) -> None:
            """Compare the elements of one chunk of the source.

            If it cannot be read, compare its bytes if they were copied.
            """
            try:
                expected = move.read_as_target(sides, part)
            except ChunkError as error:
                note(broken, error.key or "", error)
                if is_copy and error.coords is not None:
                    compare_bytes(sides.source, sides.target, error.coords)
                return
            compare_box(part, expected)

        def compare_box(box: Box, expected: AnyArray) -> None:
            if is_lossy:
                expected = move.kept(sides, box, expected)
            for number in parts.touched(box):
                whole = tuple(map(overlap, box, parts.box(number)))
                part = tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(whole, box, strict=True))
                found = read(sides.writing, whole, move.concurrency, listing=sides.target_listing)
                move.check_equal(box, part, part_of(expected, part), found)

        return InTwo(take, compare), None

    def _parts(self, sides: Sides) -> Regions:
        """Return the parts of the target that are read at a time."""
        grid, room = fine(sides.writing), self.route.rooms[self.number].writing
        return regions_of(coarse(grid, plan(grid, grid, sides.item_bytes, room, self.move.at_once).per_axis))

    def _expected(self, sides: Sides, number: int, box: Box) -> AnyArray | None:
        """Return the elements of a block; None if one of its chunks is broken."""
        try:
            return self.before.read(number) if self.before else self.move.read_as_target(sides, box)
        except ChunkError:
            return None
        except _UNDECODABLE as error:
            raise SourceUnreadableError(error) from error


def compare_bytes(source: Chunks, target: Chunks, coords: Coords) -> bool:
    """Return whether a chunk is stored; raise ChunkError if the two arrays have not stored the same bytes."""
    key = target.key_of(coords)
    expected, found = source.value_of(coords), target.value_of(coords)
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
            remedy=Remedy("convert again with {overwrite}", overwrite=True),
        )
    return True


def _element_bytes(chunks: Chunks) -> int:
    try:
        return chunks.element_bytes()
    except OmnizarrError:
        return 0


def _chunks_in(grid: Grid, box: Box) -> Iterator[Coords]:
    """Return an iterator over the coordinates of the chunks that a part of the array is in."""
    ends = ((axis.find(part.start)[0], axis.find(part.stop - 1)[0]) for axis, part in zip(grid.axes, box, strict=True))
    return itertools.product(*(range(first, last + 1) for first, last in ends))


def _lifted(box: Box, ndim: int) -> Box:
    """Return a part of an array without dimensions as one of an array that has one element instead."""
    return box + (slice(0, 1),) * (ndim - len(box))


def _like(grid: Grid, other: Grid) -> Grid:
    """Return a grid with as many dimensions as another one, which has more only if this one has none."""
    return grid if len(grid.shape) == len(other.shape) else other
