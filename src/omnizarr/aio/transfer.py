"""Asynchronous transfer of chunks between memory and stores: the same plans, with one coroutine for each piece.

Reading follows the requests of codecs (`omnizarr.codecs.chain.Chain.reading`). Large chunks are decoded and
encoded in as many threads as there are cores, so that the loop continues. Stores without asynchronous methods are
left to the engine of the array, in one thread for each call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from omnizarr import engine
from omnizarr.aio import fetching
from omnizarr.codecs.chain import Chain
from omnizarr.codecs.contract import AnyArray, Buffer, Reading, Span
from omnizarr.engine import Binding, reference
from omnizarr.errors import ConflictError, OmnizarrError
from omnizarr.indexing import Piece, Pieces, Plan
from omnizarr.stores import LocalStore, MemoryStore, Store, waiting
from omnizarr.stores.asynchronous import called, is_awaitable
from omnizarr.stores.base import Change
from omnizarr.stores.tasks import computed, near, run, waited

T = TypeVar("T")

_Fetch = Callable[[Sequence[Span] | None], Sequence[Buffer] | None]

# Chunks up to this size are decoded in the loop, because passing them to a thread takes as long.
_SMALL: Final = 128 * 1024


async def read(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None = None) -> None:
    """Fill `out` like `omnizarr.engine.read`, and raise the same errors."""
    pieces: Pieces = plan
    if engine.is_remote(binding):
        rest = await fetching.read(binding, plan, out, concurrency)
        if rest is None:
            return
        left, is_complete, error = rest
        engine.raise_of(binding, left, error)
        if is_complete:
            wanted = set(left)
            pieces = [piece for piece in plan if piece.coords in wanted]
    if is_awaitable(binding.store):
        await run(partial(_read_piece, binding, out), pieces, _at_once(binding, pieces, concurrency))
    elif isinstance(binding.store, MemoryStore) and out.nbytes <= _SMALL:
        engine.read(binding, plan, out, concurrency)
    elif binding.store.concurrency <= 1:
        await _read_near(binding, plan, out, concurrency)
    else:
        await waited(engine.read, binding, plan, out, concurrency)


async def _read_near(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None) -> None:
    """Read from a store that answers immediately. Selections that are read at the same time decode each chunk once."""
    if not engine.is_stoppable(binding):
        await near(partial(engine.read, binding, plan, out, concurrency))
        return
    readers = _readers.setdefault(asyncio.get_running_loop(), {}).setdefault(id(binding), _Readers())
    if readers.count and readers.shared is None:
        readers.shared = engine.shared_chunks(binding)
    readers.count += 1
    limits = engine.Limits(shared=readers.shared)
    try:
        await near(partial(engine.read_within, limits, binding, plan, out, concurrency), limits.stop)
    finally:
        readers.count -= 1
        if not readers.count:
            del _readers[asyncio.get_running_loop()][id(binding)]


class _Readers:
    """The readers of one array in one loop."""

    def __init__(self) -> None:
        self.count = 0
        self.shared: Any = None
        """Their cache of decoded chunks, from the second reader on."""


_readers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, _Readers]] = WeakKeyDictionary()


async def write(binding: Binding, plan: Plan, value: AnyArray, concurrency: int | None = None) -> None:
    """Store `value` like `omnizarr.engine.write`, and raise the same errors."""
    if engine.is_remote(binding) and engine.can_write(binding, value):
        rest = await fetching.write(binding, plan, value, concurrency)
        if rest is None:
            return
        left, is_complete, error = rest
        engine.raise_of(binding, left, error)
        wanted = set(left)
        await _write(binding, plan, [piece for piece in plan if piece.coords in wanted], value, concurrency)
        if is_complete:
            return
    await _write(binding, plan, plan, value, concurrency)


async def _write(binding: Binding, plan: Plan, pieces: Pieces, value: AnyArray, concurrency: int | None) -> None:
    """Store the elements of `value` that some pieces of a plan select, or more of them."""
    if is_awaitable(binding.store):
        await run(partial(_write_piece, binding, value), pieces, _at_once(binding, pieces, concurrency))
    elif isinstance(binding.store, MemoryStore) and value.nbytes <= _SMALL:
        engine.write(binding, plan, value, concurrency)
    elif binding.store.concurrency <= 1 and not _waits_for_disk(binding.store):
        await near(partial(engine.write, binding, plan, value, concurrency), writes=True)
    else:
        await waited(engine.write, binding, plan, value, concurrency)


def _waits_for_disk(store: Store) -> bool:
    """Return whether a thread that writes waits most of the time."""
    return isinstance(store, LocalStore) and store.fsync


def _at_once(binding: Binding, plan: Pieces, concurrency: int | None) -> int:
    """Return how many pieces to process at once. The store limits the number of requests."""
    return max(1, min(concurrency or max(binding.store.concurrency, 8), binding.most_in_flight, len(plan)))


# -- reading --------------------------------------------------------------------------


async def _read_piece(binding: Binding, out: AnyArray, piece: Piece) -> None:
    coords, chunk_selection, out_selection, whole = piece
    key = binding.key_of(coords)
    chain = binding.chain_for(coords)
    is_scattered = any(isinstance(selector, np.ndarray) for selector in out_selection)
    # Scattered places have no view. The Ellipsis makes a view of a 0-d result, too.
    view = _like(out, out_selection) if is_scattered else out[(*out_selection, ...)]
    is_whole = whole and not is_scattered and view.shape == chain.spec.shape
    try:
        await _fill(binding.store, key, chain, None if is_whole else chunk_selection, view)
    except OmnizarrError as error:
        raise error.add(store=str(binding.store), path=binding.path, key=key, coords=coords)
    if is_scattered:
        out[out_selection] = view


async def _fill(store: Store, key: str, chain: Chain, selection: tuple[Any, ...] | None, out: AnyArray) -> None:
    """Set `out` to the selected part of a chunk, stored or not; with None, set all of it."""
    is_small = (chain.spec.nbytes or _SMALL + 1) <= _SMALL
    fetch: _Fetch = partial(_fetch, store, key, chain.most_stored)
    if selection is None:
        is_there = await _drive(_reading_whole(chain, out), fetch, is_small=is_small)
    elif not chain.reads_part:
        is_there = await _drive(chain.reading_all(selection, out), fetch, is_small=is_small)
    else:
        pinned = await called(store.pinned, key)
        reading = chain.reading(selection, out, is_pinned=pinned is not None)
        try:
            is_there = await _drive(reading, pinned or fetch, is_small=is_small)
        except ConflictError:
            # The chunk was replaced meanwhile. One request for the whole chunk returns one version.
            is_there = await _drive(chain.reading_all(selection, out), fetch, is_small=is_small)
    if not is_there:
        chain.fill_missing(out)


def _reading_whole(chain: Chain, out: AnyArray) -> Reading:
    values = yield None
    if values is None:
        return False
    chain.decode_into(values[0], out)
    return True


async def _drive(reading: Reading, fetch: _Fetch, *, is_small: bool) -> bool:
    """Answer the requests of `reading`, and return its result. Decode here or in a thread."""
    answer: Sequence[Buffer] | None = None
    while True:
        size = 0 if answer is None else sum(map(len, answer))
        is_done, wanted = (
            _step(reading, answer) if is_small or size <= _SMALL // 4 else await computed(_step, reading, answer)
        )
        if is_done:
            return wanted is True
        answer = await called(fetch, wanted)


def _step(reading: Reading, answer: Sequence[Buffer] | None) -> tuple[bool, Any]:
    """Return whether `reading` has returned, and its request or result."""
    try:
        return False, reading.send(answer)
    except StopIteration as end:  # StopIteration cannot leave a thread as an exception
        return True, end.value


def _fetch(store: Store, key: str, most: int, spans: Sequence[Span] | None) -> Sequence[Buffer] | None:
    if spans is not None:
        return store.get_spans(key, spans)
    value = store.get_within(key, most)
    return None if value is None else [value]


def _like(out: AnyArray, selection: tuple[Any, ...]) -> AnyArray:
    """Return new memory with the shape of ``out[selection]``."""
    shape = np.broadcast_to(np.False_, out.shape)[selection].shape
    return np.empty(shape, out.dtype)


# -- writing --------------------------------------------------------------------------


async def _write_piece(binding: Binding, value: AnyArray, piece: Piece) -> None:
    coords, chunk_selection, out_selection, whole = piece
    key = binding.key_of(coords)
    chain = binding.chain_for(coords)
    store = binding.store
    part = value[(*out_selection, ...)]
    try:
        if whole and part.shape == chain.spec.shape:
            data = await _made(part, chain.encode_unless_empty, part)
            await (called(store.delete, key) if data is None else called(store.set, key, data))
        else:
            # A chunk at the array's edge may hold more by now, because another writer may have enlarged the
            # array.
            change = partial(reference._changed, store, chain, chunk_selection, part)  # noqa: SLF001 - the other half
            if store.exclusion == "condition":
                await called(store.update, key, partial(_changed, change))
            else:
                await waited(store.update, key, change)
    except OmnizarrError as error:
        raise error.add(store=str(binding.store), path=binding.path, key=key, coords=coords)


async def _made(part: AnyArray, function: Callable[..., T], *args: Any) -> T:
    """Return the result of `function`, called here or, for much work, in a thread."""
    return function(*args) if part.nbytes <= _SMALL else await computed(function, *args)


def _changed(change: Change, old: Buffer | None) -> Buffer | None:
    """Return the result of `change`, made in a thread."""
    call = waiting.here.call
    assert call is not None  # noqa: S101 - see `called`
    return call.ask(None, computed, change, old)
