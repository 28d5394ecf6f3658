"""Writers: small writes to one array, gathered in memory, so that each chunk or shard is stored once.

A chunk waits until it must make room for others, or until `flush` or `close`. Then what was written of it is stored
like one ordinary write: the whole chunk without reading, a part of it together with what is stored, under the same
lock or condition (`omnizarr.engine.write`, `omnizarr.engine.reference.write_masked`). So other writers of other parts
of the chunk lose nothing.

Appended elements wait as one block, the tail. It is stored by `omnizarr.nodes.resizing.append`, up to an end of chunks:
data first, the shape last, behind what other writers have appended by then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import numpy as np

from omnizarr import engine, indexing
from omnizarr.codecs.contract import AnyArray
from omnizarr.engine import Binding, reference
from omnizarr.errors import ReadOnlyError, SelectionError, StoreClosedError
from omnizarr.indexing import Piece, Plan
from omnizarr.model import ArrayMetadata
from omnizarr.model.grids import Grid
from omnizarr.nodes import bindings, resizing, unsaved
from omnizarr.nodes.indexers import Fields, Indexed, Planner, fields_dtype, select_fields
from omnizarr.nodes.pending import Pending, own, referred
from omnizarr.nodes.reading import too_large
from omnizarr.nodes.resizing import AppendedShape
from omnizarr.nodes.writing import converted_value
from omnizarr.stores import pool
from omnizarr.support import amounts
from omnizarr.support.locks import RLock

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from omnizarr.nodes.location import StorePath

Coords = tuple[int, ...]

_TAIL: Final = 32 * 2**20
"""Bytes of appended elements that are stored as soon as they end where chunks end."""


@dataclass(frozen=True, slots=True)
class WriterStats:
    """What a writer has stored.

    Attributes
    ----------
    nbytes_written : int
        Bytes of the elements that were written to the writer, before compression.
    nbytes_stored : int
        Bytes of the elements that it has stored, before compression. A chunk of which a part is stored counts whole.
    chunks_stored : int
        How often it has stored a chunk, or a part of one. With shards, chunks are shards.
    chunks_early : int
        How often it has stored a part of a chunk only to make room for others. If the rest is written later, that
        chunk is read and written again: give the writer more memory, or write in the order of the chunks.
    """

    nbytes_written: int = 0
    nbytes_stored: int = 0
    chunks_stored: int = 0
    chunks_early: int = 0


class ArrayWriter(Indexed):
    """Gathers small writes to an array, and stores each chunk (with shards: each shard) once. See `Array.writer`.

    Selections and values are those of the array. Reading through the writer shows what was written, stored or not.
    Threads can share it; other processes cannot.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=(0, 3), shards=(1000, 3), chunks=(10, 3), dtype="float32")
    >>> with array.writer() as writer:
    ...     for number in range(5):
    ...         _ = writer.append(np.full((1, 3), number))
    ...     writer[0, 0] = 7
    ...     print(writer.shape, array.shape)
    (5, 3) (0, 3)
    >>> array.shape, writer.stats.chunks_stored
    ((5, 3), 1)
    """

    __slots__ = (
        "__weakref__", "_appends", "_array", "_bytes", "_doubt", "_is_closed", "_is_storing", "_most", "_pending",
        "_stats", "_tail", "_virtual", "lock",
    )  # fmt: skip

    def __init__(self, array: Any, memory: int | str | None = None) -> None:
        if array.read_only:
            raise ReadOnlyError("the array is read-only", store=str(array.store), path=array.path)
        asked = amounts.limit(memory, "memory")
        self._array = array
        least = _largest_chunk(self._bound())
        if asked is not None and asked < least:
            raise ValueError(
                f"a memory of {memory!r} is too small: expected at least {least} bytes, the size of one chunk"
            )
        self._most = max(array.config.bytes_in_flight, 2 * least) if asked is None else asked
        self.lock = RLock()
        self._is_closed = False
        self._stats = WriterStats()
        self._appends = False  # as far as is known
        self._forget()
        unsaved.know(self)

    def _forget(self) -> None:
        self._pending: dict[Coords, Pending] = {}
        self._bytes = 0  # of them
        # Where appended elements may have been stored, and how many, although that has failed.
        self._doubt: tuple[int, int] | None = None
        self._tail: _Tail | None = None
        self._virtual: tuple[ArrayMetadata, int, Binding] | None = None
        self._is_storing = False

    def begin_anew(self) -> None:
        """Start empty in a forked child: what waits belongs to its parent."""
        self.lock = RLock()
        self._forget()

    # -- properties ----------------------------------------------------------------

    @property
    def array(self) -> Any:
        """The array. Its shape does not include appended elements that are not stored yet."""
        return self._array

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension, including appended ones that are not stored yet.

        This does not wait for a thread that stores some of them.
        """
        tail = self._tail  # before the shape, and once: another thread may store it
        shape: tuple[int, ...] = self._array.shape
        if tail is None:
            return shape
        return (*shape[: tail.axis], tail.stop, *shape[tail.axis + 1 :])

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        dtype: np.dtype[Any] = self._array.dtype
        return dtype

    @property
    def store_path(self) -> StorePath:
        """The place of the array."""
        where: StorePath = self._array.store_path
        return where

    @property
    def store(self) -> Any:
        """The store of the array."""
        return self._array.store

    @property
    def path(self) -> str:
        """The path of the array in its store."""
        path: str = self._array.path
        return path

    @property
    def nbytes_waiting(self) -> int:
        """Bytes in memory that wait to be stored. This does not wait for a thread that stores some of them."""
        return self._used()

    @property
    def stats(self) -> WriterStats:
        """What the writer has stored so far."""
        return self._stats

    def __len__(self) -> int:
        return self.shape[0] if self.ndim else len(self._array)

    # -- reading -------------------------------------------------------------------

    def __getitem__(self, selection: Any) -> Any:
        """Return the selected elements, as `Array.__getitem__` does, with what was written and is not stored yet.

        Those have the values that were written, also if a codec will round them.
        """
        fields, selection = indexing.pop_fields(selection) if self.dtype.names is not None else (None, selection)
        return self._get(indexing.plan, selection, None, fields)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:  # noqa: FBT001 - NumPy's
        if copy is False:
            raise ValueError("elements in a store cannot be had without a copy")
        return np.asarray(self[...], dtype)

    def _get(self, planner: Planner, selection: Any, _out: None, fields: Fields) -> Any:
        with self.lock:
            self._check_open()
            binding = self._binding()
            plan = self._plan(planner, selection, binding.grid)
            if fields is not None:
                fields_dtype(binding.spec.dtype, fields)  # which refuses those that do not exist
            try:
                buffer = np.empty(plan.buffer_shape, binding.spec.dtype, self._array.order)
            except (MemoryError, ValueError) as error:  # ValueError: more than any array can have
                raise too_large(binding, plan) from error
            self._read(binding, plan, buffer)
        result = plan.as_result(buffer)
        if fields is not None:
            result = select_fields(result, fields)
        return result if plan.shape else result[()]

    def _read(self, binding: Binding, plan: Plan, buffer: AnyArray) -> None:
        concurrency = self._array.config.concurrency
        waiting = [] if not (self._pending or self._tail) else list(self._found(binding, plan))
        only_here = {piece.coords for piece, _, written in waiting if written is None or written.all()}
        if not waiting:
            engine.read(binding, plan, buffer, concurrency)
        elif binding.policy.missing == "fill":
            if len(only_here) < len(plan):
                engine.read(binding, plan, buffer, concurrency)
        else:
            # A chunk of which a part waits is not missing.
            partly = {piece.coords for piece, *_ in waiting}
            reference.read(binding, [piece for piece in plan if piece.coords not in partly], buffer, concurrency)
            rest = [piece for piece, *_ in waiting if piece.coords not in only_here]
            if rest:
                reference.read(binding.filling(), rest, buffer, concurrency)
        for piece, values, written in waiting:
            if written is None:
                buffer[(*piece.out_selection, ...)] = values
            elif written.any():
                part = buffer[(*piece.out_selection, ...)].copy()
                part[written] = values[written]
                buffer[(*piece.out_selection, ...)] = part

    def _found(self, binding: Binding, plan: Plan) -> Iterator[tuple[Piece, AnyArray, AnyArray | None]]:
        """Yield the pieces of which something waits: their values, and which of these (None: all)."""
        for piece in plan:
            image = self._image(binding, piece.coords)
            if image is not None:
                values, written = image
                selection = (*piece.chunk_selection, ...)
                yield piece, values[selection], None if written is None else written[selection]

    def _image(self, binding: Binding, coords: Coords) -> tuple[AnyArray, AnyArray | None] | None:
        """Return what waits of a chunk: its values, and a mask; None if nothing waits."""
        pending, tail = self._pending.get(coords), self._tail
        box = binding.grid.slices_of(coords)
        shape = tuple(part.stop - part.start for part in box)
        if tail is None or box[tail.axis].stop <= tail.start:
            if pending is None:
                return None
            if pending.values.shape == shape:
                return pending.values, pending.written(shape)
        values: AnyArray = np.empty(shape, binding.spec.dtype)
        written: AnyArray = np.zeros(shape, np.bool_)
        if pending is not None:
            values[tuple(map(slice, pending.values.shape))] = pending.values
            found = pending.written(shape)
            written[...] = True if found is None else found
        if tail is not None and box[tail.axis].stop > tail.start:
            part = box[tail.axis]
            first = max(part.start, tail.start)
            here = (*(slice(None),) * tail.axis, slice(first - part.start, None))
            there = (*box[: tail.axis], slice(first - tail.start, part.stop - tail.start), *box[tail.axis + 1 :])
            values[here] = tail.values[there]
            written[here] = True
        return values, written

    # -- writing -------------------------------------------------------------------

    def __setitem__(self, selection: Any, value: ArrayLike) -> None:
        """Write elements, as `Array.__setitem__` does. They wait in memory, and raise the same errors at once."""
        fields, selection = indexing.pop_fields(selection) if self.dtype.names is not None else (None, selection)
        self._set(indexing.plan, selection, value, fields)

    def _set(self, planner: Planner, selection: Any, value: Any, fields: Fields) -> None:
        with self.lock:
            self._check_open()
            binding = self._binding()
            plan = self._plan(planner, selection, binding.grid)
            if fields is not None:  # of elements whose other fields may be stored or wait
                self._store_all()
                self._array._set(planner, selection, value, fields)  # noqa: SLF001 - a part of Array
                return
            said = self._array._metadata  # noqa: SLF001 - a part of Array
            converted = converted_value(value, binding.spec.dtype, plan.shape, binding, said)
            if math.prod(plan.shape):
                self._write(binding, plan, plan.as_buffer(converted))
                self._note(nbytes_written=converted.nbytes)

    def _write(self, binding: Binding, plan: Plan, value: AnyArray) -> None:
        if self._tail is not None and self._write_tail(binding, plan, value):
            return
        whole: list[tuple[Coords, AnyArray]] = []
        for coords, selection, places, is_whole in plan:
            part = value[(*places, ...)]
            if is_whole and part.shape == binding.chain_for(coords).spec.shape:
                whole.append((coords, part))
            else:
                self._keep(binding, coords, selection, part)
        if whole:
            self._store_whole(binding, plan, value, whole)

    def _store_whole(self, binding: Binding, plan: Plan, value: AnyArray, whole: list[tuple[Coords, AnyArray]]) -> None:
        """Store chunks that need not wait, as they are complete and nothing of them waits."""
        if len(whole) == len(plan):
            engine.write(binding, plan, value, self._array.config.concurrency)
        else:
            pool.run(lambda each: _store_box(binding, binding.grid.slices_of(each[0]), each[1]), *self._share(whole))
        for coords, part in whole:
            self._drop(coords)
            self._note(chunks_stored=1, nbytes_stored=part.nbytes)

    def _keep(self, binding: Binding, coords: Coords, selection: tuple[Any, ...], part: AnyArray) -> None:
        grid = binding.grid
        shape = tuple(each.stop - each.start for each in grid.slices_of(coords))
        pending = self._pending.get(coords)
        if pending is not None and not pending.covers(shape):  # the array has become longer
            self._store([coords])
            pending = None
        if pending is None:
            self._make_room(math.prod(shape) * binding.spec.dtype.itemsize)
            try:
                pending = Pending(shape, binding.spec.dtype)
            except (MemoryError, ValueError) as error:  # ValueError: more than any array can have
                chain = binding.chain_for(coords)
                raise reference.too_large(binding, chain, binding.key_of(coords), coords) from error
        self._wait()
        self._drop(coords)  # the last written is last
        try:
            pending.put(selection, part)
        finally:
            self._pending[coords] = pending
            pending.counted = pending.nbytes
            self._bytes += pending.counted
        self._make_room(0)

    def _drop(self, coords: Coords) -> None:
        pending = self._pending.pop(coords, None)
        if pending is not None:
            self._bytes -= pending.counted

    def _write_tail(self, binding: Binding, plan: Plan, value: AnyArray) -> bool:
        """Write into appended elements that wait. Return whether that is all: otherwise, they are stored now."""
        tail = self._tail
        assert tail is not None  # noqa: S101 - the caller has looked
        places: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        others = False
        reaches = False
        for coords, selection, out, _ in plan:
            box = binding.grid.slices_of(coords)
            if box[tail.axis].stop <= tail.start:
                others = True
                continue
            low, high = _bounds(selection[tail.axis])
            start = box[tail.axis].start
            reaches = reaches or start + high > tail.start
            others = others or start + low < tail.start
            if reaches and others:
                self._store_tail()
                return False
            origins = [part.start - (tail.start if axis == tail.axis else 0) for axis, part in enumerate(box)]
            places.append((tuple(_moved(each, by) for each, by in zip(selection, origins, strict=True)), out))
        if others:
            return False
        for moved, out in places:
            tail.values[(*moved, ...)] = own(value[(*out, ...)])
        return True

    def append(self, data: ArrayLike, axis: int = 0) -> AppendedShape:
        """Add elements at the end of a dimension, as `Array.append` does. They wait in memory.

        The array gets longer when they are stored, data first. If another writer appends meanwhile, every block
        is stored, one after another: the blocks of this writer are then further behind than its ``region`` said.

        Raises
        ------
        ShapeError
            If `data` does not fit.
        NotRepresentableError
            If the array is a variable of NCZarr, as for `Array.append`.
        ValueTypeError
            If `data` cannot be converted to the data type of the array.
        """
        with self.lock:
            self._check_open()
            if not self._appends:
                self._array._check_lengths_are_free()  # noqa: SLF001 - a part of Array
                self._appends = True
            shape, where = self.shape, self.store_path
            block, at, region = resizing.fitting(where, data, axis, shape)
            binding = self._bound()
            said = self._array._metadata  # noqa: SLF001 - a part of Array
            values = converted_value(block, binding.spec.dtype, tuple(block.shape), binding, said)
            if not values.shape[at]:
                return AppendedShape(shape, region)
            self._note(nbytes_written=values.nbytes)
            if self._tail is not None and self._tail.axis != at:
                self._store_tail()
            if self._tail is None:
                if self._uses_whole(values, at, shape):
                    return AppendedShape(self.shape, region)
                self._tail = _Tail(at, self._array.shape[at])
            self._wait()
            tail, before = self._tail, self._tail.count
            tail.add(values)
            try:
                self._trim()
            except BaseException:  # who gets an error may append again
                if self._tail is tail:
                    tail.count = before
                raise
            return AppendedShape(self.shape, region)

    def append_if_it_waits(self, block: AnyArray, axis: int) -> AppendedShape | None:
        """Append a block if it only has to wait, and return what `append` does; otherwise do nothing, and return None.

        The store is not asked, and no other thread is waited for.
        """
        held: list[bool] = []
        try:
            held.extend(map(self.lock.acquire, (False,)))  # an interrupt does not come before it is noted
            tail = self._tail
            if not held[0] or self._is_closed or tail is None or block.dtype.hasobject:
                return None
            if not -self.ndim <= axis < self.ndim or tail.axis != axis % self.ndim:
                return None
            is_small = tail.nbytes + block.nbytes < self._batch() and self._used() + block.nbytes <= self._most
            return self.append(block, axis) if is_small else None
        finally:
            if any(held):
                self.lock.release()

    def _uses_whole(self, values: AnyArray, axis: int, shape: tuple[int, ...]) -> bool:
        """Store a large block directly, up to where chunks end, and keep the rest. Return whether that was done."""
        if values.nbytes < self._batch():
            return False
        start = shape[axis]
        cut = self._end_of_chunks(axis, start + values.shape[axis]) - start
        if cut <= 0:
            return False
        at = (slice(None),) * axis
        self._append(values[(*at, slice(cut))], axis)
        if cut < values.shape[axis]:
            self._tail = _Tail(axis, self._array.shape[axis])
            self._wait()
            self._tail.add(values[(*at, slice(cut, None))])
        return True

    def _batch(self) -> int:
        return min(_TAIL, self._most // 4)

    def _end_of_chunks(self, axis: int, length: int) -> int:
        """Return where the last chunk ends that is complete if the array has a length along a dimension."""
        grown = (*self._array.shape[:axis], length, *self._array.shape[axis + 1 :])
        grid = resizing.grid_of(self._bound().metadata, grown)
        _, start, size = grid.axes[axis].find(length - 1)
        return length if start + size == length else start

    def _trim(self) -> None:
        """Store appended elements if they are many: up to where chunks end, or all if the memory has no room."""
        tail = self._tail
        assert tail is not None  # noqa: S101 - the caller has added to it
        if tail.nbytes >= self._batch():
            end = self._end_of_chunks(tail.axis, tail.stop)
            if end > tail.start and (end - tail.start) * tail.row_bytes >= self._batch():
                self._store_tail(end - tail.start)
                return
        if self._used() > self._most:
            self._make_room(0)
            if self._tail is not None and self._used() > self._most:
                self._note(chunks_early=1)
                self._store_tail()

    # -- storing -------------------------------------------------------------------

    def flush(self) -> None:
        """Store everything that waits. If that fails, what could not be stored still waits, and you can try again."""
        with self.lock:
            self._check_open()
            self._store_all()

    def store_waiting(self) -> None:
        """Store everything that waits, before a fork or at the end of the program."""
        with self.lock:
            if not self._is_closed:
                self._store_all()

    def close(self) -> None:
        """Store everything that waits. A second call does nothing.

        If storing fails, the writer stays open, so that you can call this again.
        """
        with self.lock:
            if not self._is_closed:
                self._store_all()
                self._is_closed = True

    def discard(self) -> None:
        """Drop what waits, and close the writer. What is already stored stays."""
        with self.lock:
            self._forget()
            self._is_closed = True
            unsaved.forget(self)

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an exception, too: what was written before is stored, as if there were no writer.
        self.close()

    def _store_all(self) -> None:
        if self._is_storing:  # a fork or an exit within
            return
        self._is_storing = True
        try:
            self._store(sorted(self._pending))
            if self._tail is not None:
                self._store_tail()
        finally:
            self._is_storing = False
        unsaved.forget(self)

    def _wait(self) -> None:
        unsaved.wait(self)

    def _used(self) -> int:
        tail = self._tail  # once: another thread may store it
        return self._bytes + (0 if tail is None else tail.nbytes)

    def _make_room(self, need: int) -> None:
        """Store chunks until there is room: complete ones first, of the others those that were written longest ago."""
        used = self._used() + need
        if used <= self._most:
            return
        complete = [coords for coords, each in self._pending.items() if each.is_complete]
        left = self._most - self._most // 4  # several at a time, on several threads
        chosen = _until(self._pending, complete, used - left)
        if chosen:
            used -= sum(self._pending[coords].nbytes for coords in chosen)
            self._store(chosen)
        if used > self._most and self._pending:
            left = self._most - self._most // 16  # so that chunks are not looked through for each that is added
            chosen = _until(self._pending, list(self._pending), used - left)
            self._note(chunks_early=len(chosen))
            self._store(chosen)

    def _store(self, several: list[Coords]) -> None:
        """Store chunks, and forget each as soon as it is stored."""
        if not several:
            return
        binding, stored = self._bound(), list[Coords]()

        def store(coords: Coords) -> None:  # on any thread, while this one holds the lock
            _store_pending(binding, coords, self._pending[coords])
            stored.append(coords)

        try:
            pool.run(store, *self._share(several))
        finally:
            size = sum(self._pending[coords].values.nbytes for coords in stored)
            for coords in stored:
                self._drop(coords)
            self._note(chunks_stored=len(stored), nbytes_stored=size)

    def _share(self, several: list[Any]) -> tuple[list[Any], int, int]:
        """Return items, how many threads store them, and how many each takes at a time."""
        binding = self._bound()
        at_once = max(pool.default_concurrency(), binding.store.features.concurrency)
        return several, min(self._array.config.concurrency or at_once, binding.most_in_flight, len(several)), 1

    def _store_tail(self, count: int | None = None) -> None:
        """Store the first of the appended elements, by default all of them, and keep the others."""
        tail = self._tail
        assert tail is not None  # noqa: S101 - the callers have looked
        count = tail.count if count is None else count
        if self._doubt is not None:
            start, doubtful = self._doubt
            doubtful = min(doubtful, tail.count)
            if self._is_there(tail.rows(0, doubtful), tail.axis, start):
                self._cut(doubtful)
                count -= doubtful
            self._doubt = None
            tail = self._tail
            if tail is None or count <= 0:
                return
        self._doubt = self._array.shape[tail.axis], count
        self._append(tail.rows(0, count), tail.axis)
        self._cut(count)
        self._doubt = None

    def _cut(self, count: int) -> None:
        """Forget the first of the appended elements: they are stored now."""
        tail, left = self._tail, None
        assert tail is not None  # noqa: S101 - the callers have looked
        rest = tail.rows(count, tail.count)
        if rest.shape[tail.axis]:
            left = _Tail(tail.axis, self._array.shape[tail.axis])
            left.add(rest)
        self._tail = left  # at once: `shape` is read by threads without the lock

    def _is_there(self, block: AnyArray, axis: int, start: int) -> bool:
        """Return whether a block has been appended at an index, although the store has reported an error."""
        self._array.refresh()
        stop = start + block.shape[axis]
        if self._array.shape[axis] < stop:
            return False
        found = np.asarray(self._array[(*(slice(None),) * axis, slice(start, stop))])
        if block.dtype.hasobject or block.dtype.kind == "T":
            return bool(np.array_equal(found, block))
        return found.tobytes() == block.tobytes()  # also NaN

    def _append(self, block: AnyArray, axis: int) -> None:
        array = self._array
        before = array.shape[axis]
        array._append(block, axis)  # noqa: SLF001 - a part of Array
        counts = [part.stop - part.start for part in self._touched(axis, before)]  # which `len` could not count
        self._note(chunks_stored=math.prod(counts), nbytes_stored=block.nbytes)

    def _touched(self, axis: int, start: int) -> list[range]:
        grid = self._bound().grid
        if 0 in grid.shape:
            return [range(0)]
        ranges = [range(count) for count in grid.grid_shape]
        ranges[axis] = range(grid.axes[axis].find(start)[0], grid.grid_shape[axis])
        return ranges

    def _note(self, **more: int) -> None:
        self._stats = replace(self._stats, **{name: getattr(self._stats, name) + each for name, each in more.items()})

    # -- the array -----------------------------------------------------------------

    def _bound(self) -> Binding:
        """Return the binding of the array, as it is stored."""
        array = self._array
        binding: Binding = (array._state.bound or array._bind()).binding  # noqa: SLF001 - a part of Array
        return binding

    def _binding(self) -> Binding:
        """Return a binding of the array as it will be, with appended elements that wait."""
        binding, tail = self._bound(), self._tail
        if tail is None:
            self._virtual = None
            return binding
        known = self._virtual
        if known is None or known[0] is not binding.metadata or known[1] != tail.stop:
            longer = resizing.with_shape(binding.metadata, self.shape)
            known = self._virtual = binding.metadata, tail.stop, bindings.bind(self.store_path, longer, binding.policy)
        return known[2]

    def _plan(self, planner: Planner, selection: Any, grid: Grid) -> Plan:
        try:
            return planner(selection, grid)
        except SelectionError as error:
            raise error.add(store=str(self.store), path=self.path)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError(
                "the writer is closed",
                store=str(self.store),
                path=self.path,
                remedy="write to the array, or get another writer of it",
            )

    # -- Python protocols ----------------------------------------------------------

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{self.nbytes_waiting} bytes wait"
        return f"<ArrayWriter of {self._array!r}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a writer cannot be sent to another process: send its array, and get a writer of that there with "
            "array.writer()"
        )

    def __dask_tokenize__(self) -> object:
        return self._array.__dask_tokenize__()


class _Tail:
    """Elements that were appended along one dimension and are not stored yet."""

    __slots__ = ("_rows", "_size", "axis", "count", "start")

    def __init__(self, axis: int, start: int) -> None:
        self.axis = axis
        self.start = start
        self.count = 0
        self._rows: AnyArray | None = None
        self._size = 0

    def add(self, values: AnyArray) -> None:
        """Add a block at the end."""
        rows = np.moveaxis(own(values), self.axis, 0)
        held, needed = self.count, self.count + len(rows)
        if self._rows is None or needed > len(self._rows):
            roomy = np.empty((max(needed, 2 * held), *rows.shape[1:]), rows.dtype)
            if self._rows is not None:
                roomy[:held] = self._rows[:held]
            self._rows = roomy
        self._rows[held:needed] = rows
        self._size += referred(rows)
        self.count = needed  # last, so that an interrupt leaves either the old or the new state

    @property
    def stop(self) -> int:
        """The index behind the last element."""
        return self.start + self.count

    @property
    def row_bytes(self) -> int:
        """Bytes of one index along the dimension."""
        return 0 if self._rows is None or not len(self._rows) else self._rows.nbytes // len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.count * self.row_bytes + self._size

    @property
    def values(self) -> AnyArray:
        """The elements: a view, which can be changed."""
        return self.rows(0, self.count)

    def rows(self, start: int, stop: int) -> AnyArray:
        """Return a view of a part, counted from the first of them."""
        assert self._rows is not None  # noqa: S101 - a tail has elements as soon as others see it
        return np.moveaxis(self._rows[start:stop], 0, self.axis)


def _store_pending(binding: Binding, coords: Coords, pending: Pending) -> None:
    """Store what was written of a chunk, as far as it lies in the array now."""
    grid = binding.grid
    if not all(at < count for at, count in zip(coords, grid.grid_shape, strict=True)):
        return  # the array has become shorter
    whole = grid.slices_of(coords)
    box: tuple[Any, ...] = tuple(
        slice(part.start, min(part.stop, outer.stop - outer.start), 1)
        for part, outer in zip(pending.bounds(), whole, strict=True)
    )
    if any(part.start >= part.stop for part in box):
        return
    values: AnyArray = pending.values[(*box, ...)]
    if pending.is_complete or pending.mask is None:
        there = tuple(
            slice(part.start + outer.start, part.stop + outer.start) for part, outer in zip(box, whole, strict=True)
        )
        _store_box(binding, there, values)
    else:
        reference.write_masked(binding, coords, box, values, pending.mask[box])


def _store_box(binding: Binding, box: tuple[slice, ...], values: AnyArray) -> None:
    plan = indexing.basic(box, binding.grid)
    engine.write(binding, plan, values, None)


def _largest_chunk(binding: Binding) -> int:
    """Return the bytes of the largest chunk, as far as it lies in the array."""
    grid = binding.grid
    lengths = [min(max(axis.sizes, default=0), axis.length) for axis in grid.axes]
    return max(1, math.prod(lengths) * binding.spec.dtype.itemsize)


def _until(table: dict[Coords, Pending], several: list[Coords], enough: int) -> list[Coords]:
    """Return the first of several chunks that together take enough bytes."""
    chosen = []
    for coords in several:
        if enough <= 0:
            break
        chosen.append(coords)
        enough -= table[coords].nbytes
    return chosen


def _bounds(selector: Any) -> tuple[int, int]:
    """Return the first selected index, and the end of the last one."""
    if isinstance(selector, slice):
        return selector.start, selector.stop
    return int(selector.min()), int(selector.max()) + 1


def _moved(selector: Any, by: int) -> Any:
    """Return a selector of the same elements, counted from another one."""
    if isinstance(selector, slice):
        return slice(selector.start + by, selector.stop + by, selector.step)
    return selector + by
