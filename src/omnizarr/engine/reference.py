"""The reference engine: it defines the result of a plan, in Python with NumPy.

Reading: each piece fetches its chunk, decodes it and copies the selected part into the result, or decodes
directly into place if the chunk is contiguous there. Writing: a piece that covers its chunk encodes and stores it
without a lock. Any other piece (also for a chunk that the array's edge cuts) reads, changes and stores its chunk
with `Store.update`, so that writers of disjoint regions never lose each other's elements.

In slow stores, as many pieces are processed at once as the store wants requests: a thread waits for its chunk,
decodes it, and takes the next piece, so that some are decoded while others arrive. In an event loop
(`omnizarr.stores.waiting`), each piece is a task, and threads decode and encode large chunks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from omnizarr.codecs.chain import Chain, memory_of, set_fill
from omnizarr.codecs.contract import AnyArray, Buffer, Span
from omnizarr.codecs.sharding import Sharding
from omnizarr.codecs.streams import TOO_LOW
from omnizarr.engine import cache
from omnizarr.errors import ChunkMemoryError, ChunkSizeError, OmnizarrError, StoreLimitError
from omnizarr.indexing import Piece, Pieces
from omnizarr.stores import Store, pool, verbs, waiting
from omnizarr.stores.base import Change, Reader, answers_itself, parts_of
from omnizarr.stores.local.directory import LocalStore

if TYPE_CHECKING:
    from omnizarr.engine.binding import Binding

T = TypeVar("T")
P = ParamSpec("P")

# With fewer bytes per thread, passing work to a thread costs more than it saves.
_BYTES_PER_WORKER = 512 * 1024
# Chunks below these sizes (bytes) are processed by one thread: the interpreter's lock makes several slower than
# one.
_SMALLEST_RAW = 512 * 1024
_SMALLEST_WRITTEN = 16 * 1024
_SMALLEST_ENCODED = 8 * 1024
# A thread takes work in batches of about this many bytes, so that small chunks need few hand-overs.
_BYTES_PER_BATCH = 256 * 1024
_SHARE_WANTED = 8  # a chunk is fetched at once if an eighth of it is wanted, in parts,
_MOST_WHOLE = 64 * 1024 * 1024  # and it is not larger than this
_MOST_CELLS = 4096  # of a selection with more inner chunks, these are not remembered
_LEAST_IN_LOOP = 8  # pieces at once, even if answers are so fast that threads do not pay
# In an event loop, chunks up to this size, or with a quarter of it stored, are decoded and encoded in the loop, because
# passing them to a thread takes as long.
_SMALL_IN_LOOP = 128 * 1024


def read(binding: Binding, plan: Pieces, out: AnyArray, concurrency: int | None = None) -> None:
    """Fill `out`, of the plan's `buffer_shape` and any strides, with the selected elements, converted if necessary.

    Raises
    ------
    ChunkError
        If a stored chunk is broken; the error names its key and coordinates.
    ChunkNotFoundError
        If a chunk is missing, and the array was opened with ``missing="error"``.
    """
    pieces = len(plan)
    found: list[bool] = []
    if pieces == 1:
        for piece in plan:
            _read_piece(binding, out, found, piece)
    else:
        workers, batch = _share(binding, pieces, concurrency, _smallest_read(binding))
        pool.run(partial(_read_piece, binding, out, found), plan, workers, batch)
    if pieces and not found:
        check_home(binding)


Parts = Sequence[tuple["Binding", Piece, AnyArray]]
"""Pieces of one chunk, and the arrays to fill. The bindings differ in nothing but what is done to elements."""


def read_parts(parts: Parts, fetched: tuple[Buffer | None] | None = None) -> None:
    """Read pieces of the same chunk into several arrays, like `read`, and ask the store for the chunk once.

    `fetched` has the stored chunk, if the caller has asked for it.
    """
    binding, piece, _ = parts[0]
    found: list[bool] = []
    shared = None
    if binding.cache is None:
        wanted = sum(_size_of(out, each[2]) for _, each, out in parts)
        shared = _Shared(binding, piece[0], wanted, [each[1] for _, each, _ in parts], fetched)
    for each, piece, out in parts:
        _read_piece(each, out, found, piece, shared)
    if not found:
        check_home(binding)


def read_parts_of_many(chunks: Sequence[Parts]) -> None:
    """Call `read_parts` for several chunks of one array, for which the store is asked at once."""
    binding = chunks[0][0][0]
    left = dict(enumerate(chunks))
    keys = [binding.key_of(parts[0][1][0]) for parts in chunks]
    with suppress(OmnizarrError):
        for position, value in verbs.get_many_within(binding.store, keys, binding.chain.most_stored):
            read_parts(left[position], (value,))
            del left[position]
    for parts in left.values():  # one of them is broken, or cannot be fetched: this says which, and why
        read_parts(parts)


def asks_for_many(binding: Binding) -> bool:
    """Return whether `read_parts_of_many` asks the store fewer times than `read_parts` would."""
    store = binding.store
    is_answered = answers_itself(store, verbs.get_many) or answers_itself(store, verbs.get_many_within)
    return is_answered and binding.cache is None and not binding.chain.reads_part


def check_home(binding: Binding) -> None:
    """Raise ArrayNotFoundError if an array without any stored chunk in a read does not exist any more."""
    store = binding.base or binding.store
    if isinstance(store, LocalStore):
        store.check_home()
    if binding.if_nothing is not None:
        binding.if_nothing()


def write(binding: Binding, plan: Pieces, value: AnyArray, concurrency: int | None = None) -> None:
    """Store `value`, of the plan's `buffer_shape` (or broadcast to it), into the selected elements."""
    smallest = _SMALLEST_WRITTEN if binding.chain.is_raw else _SMALLEST_ENCODED
    workers, batch = _share(binding, len(plan), concurrency, smallest)
    pool.run(partial(_write_piece, binding, value), plan, workers, batch)


def write_fields(
    binding: Binding, plan: Pieces, names: Sequence[str], value: AnyArray, ndim: int, concurrency: int | None = None
) -> None:
    """Store `value` into some fields of the selected elements. Other fields do not change.

    `value` has the shape of the plan's buffer, with `ndim` dimensions, and these fields; or it is the value of a
    single field, which may be an array: then its own dimensions come last.
    """
    workers, batch = _share(binding, len(plan), concurrency, _SMALLEST_ENCODED)
    pool.run(partial(_write_fields_of_piece, binding, names, value, ndim), plan, workers, batch)


def write_masked(
    binding: Binding, coords: tuple[int, ...], box: tuple[slice, ...], values: AnyArray, mask: AnyArray
) -> None:
    """Store those values of a box of a chunk where a mask is true. Other elements do not change."""
    key = binding.key_of(coords)
    chain = binding.chain_for(coords)

    def change(old: Buffer | None) -> Buffer | None:
        elements = np.empty(values.shape, binding.spec.dtype)
        if old is None:
            set_fill(elements, binding.spec)
        else:
            (chain.filling or chain).decode_part(old, box, elements)
        elements[mask] = values[mask]
        return _changed(binding.store, chain, box, elements, old)

    try:
        _update(binding.store, key, chain, change)
    except OmnizarrError as error:
        raise error.add(store=str(binding.store), path=binding.path, key=key, coords=coords)
    except (MemoryError, OverflowError) as error:
        raise too_large(binding, chain, key, coords) from error


def readers(binding: Binding, chunks: int, concurrency: int | None) -> int:
    """Return how many threads are to read a number of chunks."""
    return max(1, _share(binding, chunks, concurrency, _smallest_read(binding))[0])


def _smallest_read(binding: Binding) -> int:
    return _SMALLEST_RAW if binding.chain.is_raw else _SMALLEST_ENCODED


def _share(binding: Binding, pieces: int, concurrency: int | None, smallest: int) -> tuple[int, int]:
    """Return the number of threads, and the number of pieces that each takes at a time."""
    chunk_bytes = max(1, binding.chain.spec.nbytes or _BYTES_PER_WORKER)
    at_once = binding.store.features.concurrency
    if waiting.here.call is not None:
        at_once = max(at_once, _LEAST_IN_LOOP)
    if at_once > 1:
        return min(concurrency or at_once, binding.most_in_flight, pieces), 1
    batch = max(1, _BYTES_PER_BATCH // chunk_bytes)
    if concurrency is None:
        # Threads take turns in Python; only C code and the kernel run concurrently in between.
        if chunk_bytes < smallest:
            return 1, batch
        concurrency = pool.default_concurrency()
    return min(concurrency, pieces, -(-pieces * chunk_bytes // _BYTES_PER_WORKER)), batch


def _read_piece(
    binding: Binding, out: AnyArray, found: list[bool], piece: Piece, shared: _Shared | None = None
) -> None:
    coords, chunk_selection, out_selection, whole = piece
    key = binding.prefix + binding.keys.encode(coords)
    chain = binding.chain_for(coords) if binding.chunks_differ else binding.chain
    conversion = binding.conversion
    try:
        if conversion is not None or np.ndarray in map(type, out_selection):
            # Scattered places have no view.
            part = np.empty(_shape_of(out, out_selection), dtype=binding.spec.dtype)
            is_there = _read_chunk(binding, chain, coords, key, chunk_selection, part, shared, whole=False)
            if is_there and not found:
                found.append(True)
            out[out_selection] = part if conversion is None else conversion.apply(part)
            return
        # The Ellipsis makes a view of a 0-d result, too.
        view = out[(*out_selection, ...)]
        is_whole = whole and view.shape == chain.spec.shape  # and the array's edge does not cut it
        if _read_chunk(binding, chain, coords, key, chunk_selection, view, shared, whole=is_whole) and not found:
            found.append(True)
    except StoreLimitError as error:
        wrong_size = _of_wrong_size(binding, chain, key)
        if wrong_size is None:
            raise error.add(store=str(binding.store), path=binding.path, key=key, coords=coords)
        raise wrong_size.add(store=str(binding.store), path=binding.path, key=key, coords=coords) from error
    except OmnizarrError as error:
        raise error.add(store=str(binding.store), path=binding.path, key=key, coords=coords)
    except (MemoryError, OverflowError) as error:
        raise too_large(binding, chain, key, coords) from error


def _of_wrong_size(binding: Binding, chain: Chain, key: str) -> ChunkSizeError | None:
    """Return the error for a chunk that is larger than allowed; None if it is only too large for the memory."""
    size, expected = binding.store.size(key), chain.encoded.nbytes
    if size is None:
        return None
    found = ChunkSizeError("the chunk has the wrong size", found=f"{size} bytes")
    if expected is not None and size != expected:
        return found.add(expected=f"{expected} bytes")
    if size > chain.most_stored:
        return found.add(expected=f"at most {chain.most_stored} bytes", remedy=TOO_LOW)
    return None


def too_large(binding: Binding, chain: Chain, key: str, coords: tuple[int, ...]) -> ChunkMemoryError:
    """Return the error for a chunk that is too large for the memory."""
    size = chain.spec.nbytes
    return ChunkMemoryError(
        "the chunk is too large for the available memory",
        store=str(binding.store),
        path=binding.path,
        key=key,
        coords=coords,
        found=f"shape {chain.spec.shape}" + ("" if size is None else f", {size} bytes"),
        remedy="give it more memory, or store it in smaller chunks",
    )


def _read_chunk(
    binding: Binding,
    chain: Chain,
    coords: tuple[int, ...],
    key: str,
    selection: tuple[Any, ...],
    out: AnyArray,
    shared: _Shared | None,
    *,
    whole: bool,
) -> bool:
    """Set `out` to the selected part of a chunk, or (`whole`) to all of it, and return whether it is stored."""
    is_there = None if shared is None else shared.read(selection, out)
    if shared is None and binding.cache is not None and waiting.here.call is None and cache.has_stamps(binding.store):
        stored = cache.Stored(
            chain,
            (binding.number, *coords),
            partial(_fetch, binding, chain, key),
            partial(verbs.stamp, binding.store, key),
            partial(verbs.get_stamped, binding.store, key),
        )
        is_there = cache.read(binding.cache, stored, selection, out)
    if is_there is None:
        is_there = _read_whole(binding, chain, key, out) if whole else _read_part(binding, chain, key, selection, out)
    if not is_there:
        chain.fill_missing(out)
    return is_there


def _read_whole(binding: Binding, chain: Chain, key: str, view: AnyArray) -> bool:
    """Decode a chunk. Return False if it is missing."""
    if chain.is_raw and view.flags.c_contiguous and (view.nbytes <= _SMALL_IN_LOOP or waiting.here.call is None):
        size = verbs.read_into(binding.store, key, memory_of(view))
        if size is None:
            return False
        if size != view.nbytes:
            raise ChunkSizeError("the chunk has the wrong size", found=f"{size} bytes", expected=f"{view.nbytes} bytes")
        return True
    data = verbs.get_within(binding.store, key, chain.most_stored)
    if data is None:
        return False
    _computed(chain, len(data), chain.decode_into, data, view)
    return True


def _computed(chain: Chain, stored: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a function that decodes or encodes a chunk. In an event loop, a thread calls it."""
    call = waiting.here.call
    if call is None or (chain.spec.nbytes or sys.maxsize) <= _SMALL_IN_LOOP or stored <= _SMALL_IN_LOOP // 4:
        return function(*args, **kwargs)
    return call.compute(partial(function, *args, **kwargs))


def _read_part(binding: Binding, chain: Chain, key: str, chunk_selection: tuple[Any, ...], view: AnyArray) -> bool:
    """Decode the part of a chunk that the selection needs. Return False if the chunk is missing."""
    if chain.reads_part:
        read = verbs.pinned(binding.store, key)
        source = partial(_fetch, binding, chain, key) if read is None else _Pinned(binding, chain, key, read)
        return chain.read(source, chunk_selection, view, partial(_computed, chain))
    data = verbs.get_within(binding.store, key, chain.most_stored)
    if data is None:
        return False
    _computed(chain, len(data), chain.decode_part, data, chunk_selection, view)
    return True


def _shape_of(out: AnyArray, selection: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape of ``out[selection]`` without copying its elements."""
    stand_in: AnyArray = np.broadcast_to(np.empty((), dtype=np.bool_), out.shape)[selection]
    return stand_in.shape


def _size_of(out: AnyArray, selection: tuple[Any, ...]) -> int:
    return math.prod(_shape_of(out, selection))


def _fetch(binding: Binding, chain: Chain, key: str, spans: Sequence[Span] | None) -> Sequence[Buffer] | None:
    if spans is None:
        value = verbs.get_within(binding.store, key, chain.most_stored)
        return None if value is None else [value]
    return verbs.get_spans(binding.store, key, spans)


class _Pinned:
    """A source of parts of one version of a value. A request for all of it returns the current version."""

    is_pinned = True

    def __init__(self, binding: Binding, chain: Chain, key: str, read: Reader) -> None:
        self._whole = partial(_fetch, binding, chain, key, None)
        self._read = read

    def __call__(self, spans: Sequence[Span] | None) -> Sequence[Buffer] | None:
        return self._whole() if spans is None else self._read(spans)


class _Shared:
    """A chunk of which several parts are read: what is fetched for one of them is there for all.

    If much of it is wanted, it is fetched at once. Its elements are kept, and those of inner chunks as far as they are
    wanted, so that each is decoded once.
    """

    def __init__(
        self,
        binding: Binding,
        coords: tuple[int, ...],
        wanted: int,
        selections: Sequence[tuple[Any, ...]],
        fetched: tuple[Buffer | None] | None = None,
    ) -> None:
        self._chain = chain = binding.chain_for(coords)
        key = binding.key_of(coords)
        self._fetch = partial(_fetch, binding, chain, key)
        size = math.prod(chain.spec.shape)
        self._is_whole = wanted * _SHARE_WANTED >= size and (chain.spec.nbytes or sys.maxsize) <= _MOST_WHOLE
        read = verbs.pinned(binding.store, key) if chain.reads_part and not self._is_whole else None
        self.is_pinned = read is not None
        self._source = self._fetch if read is None else _Pinned(binding, chain, key, read)
        self._value: list[Sequence[Buffer] | None] = []
        if fetched is not None:
            self._value.append(None if fetched[0] is None else [fetched[0]])
        self._parts: dict[tuple[Span, ...], Sequence[Buffer] | None] = {}
        self._elements: AnyArray | None = None
        self._cell: tuple[int, ...] = ()
        """Shape of the inner chunks, if several selections need one of them; () if not."""
        self._decoded: set[tuple[int, ...]] = set()
        """The inner chunks that are among the elements."""
        serializer = chain.serializer[1]
        if self._is_whole and isinstance(serializer, Sharding) and not (chain.filters or serializer.inner.is_raw):
            cell = serializer.inner.spec.shape
            found = [_cells_of(selection, chain.spec.shape, cell) or set() for selection in selections]
            if sum(map(len, found)) > len(set().union(*found)):
                self._cell = cell

    def read(self, selection: tuple[Any, ...], out: AnyArray) -> bool:
        """Set ``out[...] = decoded[selection]``. Return False if nothing is stored."""
        chain = self._chain
        if chain.reads_part:
            cells = _cells_of(selection, chain.spec.shape, self._cell) if self._cell else None
            if cells is None or (box := self._box_of(cells)) is None:
                return chain.read(self, selection, out, partial(_computed, chain))
            elements = self._kept()
            if box:
                if not chain.read(self, box, elements[box], partial(_computed, chain)):
                    return False
                self._decoded |= cells
            out[...] = elements[selection]
            return True
        value = self(None)
        if value is None:
            return False
        if self._elements is None:
            _computed(chain, len(value[0]), chain.decode_into, value[0], self._kept())
        out[...] = self._kept()[selection]
        return True

    def _kept(self) -> AnyArray:
        if self._elements is None:
            self._elements = self._chain.empty()
        return self._elements

    def _box_of(self, cells: set[tuple[int, ...]]) -> tuple[slice, ...] | None:
        """Return what to decode for some inner chunks: () if nothing; None if they form no box."""
        missing = cells - self._decoded
        if not missing:
            return ()
        first, last = (tuple(map(which, zip(*missing, strict=True))) for which in (min, max))
        if math.prod(b - a + 1 for a, b in zip(first, last, strict=True)) != len(missing):
            return None
        lengths = zip(first, last, self._cell, self._chain.spec.shape, strict=True)
        return tuple(slice(a * n, min((b + 1) * n, length), 1) for a, b, n, length in lengths)

    def __call__(self, spans: Sequence[Span] | None) -> Sequence[Buffer] | None:
        """Return parts of the stored chunk, or all of it: a source for `Chain.read`."""
        if spans is not None and not self._is_whole:
            wanted = tuple(spans)
            if wanted not in self._parts:
                self._parts[wanted] = self._source(spans)
            return self._parts[wanted]
        if not self._value:
            self._value.append(self._fetch(None))
        value = self._value[0]
        return value if value is None or spans is None else parts_of(value[0], spans)


def _cells_of(selection: tuple[Any, ...], shape: tuple[int, ...], cell: tuple[int, ...]) -> set[tuple[int, ...]] | None:
    """Return in which inner chunks a selection lies; None if that is not worth finding out."""
    along: list[AnyArray] = []
    for each, length, n in zip(selection, shape, cell, strict=True):
        if isinstance(each, slice):
            numbers = np.arange(*each.indices(length))
        elif isinstance(each, int | np.integer):
            numbers = np.array([each])
        else:
            return None
        along.append(np.unique(numbers // n))
    if not 0 < math.prod(map(len, along)) <= _MOST_CELLS:
        return None
    return set(product(*(numbers.tolist() for numbers in along)))


def _write_piece(binding: Binding, value: AnyArray, piece: Piece) -> None:
    coords, chunk_selection, out_selection, whole = piece
    key = binding.prefix + binding.keys.encode(coords)
    chain = binding.chain_for(coords) if binding.chunks_differ else binding.chain
    part = value[(*out_selection, ...)]
    try:
        if whole and part.shape == chain.spec.shape:
            _store(binding, key, _computed(chain, part.nbytes, chain.encode_unless_empty, part))
            return
        # A chunk at the array's edge may hold more by now, because another writer may have enlarged the array.
        _update(binding.store, key, chain, partial(_changed, binding.store, chain, chunk_selection, part))
    except OmnizarrError as error:
        raise error.add(store=str(binding.store), path=binding.path, key=key, coords=coords)
    except (MemoryError, OverflowError) as error:
        raise too_large(binding, chain, key, coords) from error


def _write_fields_of_piece(binding: Binding, names: Sequence[str], value: AnyArray, ndim: int, piece: Piece) -> None:
    coords, chunk_selection, out_selection, _ = piece
    key = binding.key_of(coords)
    chain = binding.chain_for(coords)
    part = value[(*out_selection, ...)]
    # The field may be an array, whose dimensions come last.
    shape = part.shape[: part.ndim - (value.ndim - ndim)]

    def change(old: Buffer | None) -> Buffer | None:
        elements = np.empty(shape, binding.spec.dtype)
        if old is None:
            elements[...] = binding.spec.fill_value
        else:
            (chain.filling or chain).decode_part(old, chunk_selection, elements)
        for name in names:
            elements[name] = part if part.dtype.names is None else part[name]
        return _changed(binding.store, chain, chunk_selection, elements, old)

    try:
        _update(binding.store, key, chain, change)
    except OmnizarrError as error:
        raise error.add(store=str(binding.store), path=binding.path, key=key, coords=coords)
    except (MemoryError, OverflowError) as error:
        raise too_large(binding, chain, key, coords) from error


def _update(store: Store, key: str, chain: Chain, change: Change) -> None:
    call = waiting.here.call
    if call is None:
        store.update(key, change)
    elif store.features.exclusion != "condition":  # a thread holds its lock
        call.block(partial(store.update, key, change))
    else:
        store.update(key, lambda old: _computed(chain, sys.maxsize, change, old))


def _changed(
    store: Store, chain: Chain, selection: tuple[Any, ...], part: AnyArray, old: Buffer | None
) -> Buffer | None:
    """Return the stored form of a chunk with `part` in it."""
    new = chain.write(old, selection, part)
    if new is None and old is not None and store.features.exclusion == "condition":
        # Another writer may be changing another part: it must find the value that it read, or notice the change.
        return chain.encode(chain.empty())
    return new


def _store(binding: Binding, key: str, data: Buffer | None) -> None:
    if data is None:
        binding.store.delete(key)
    else:
        binding.store.set(key, data)
