"""Asynchronous transfer of chunks between memory and stores: the same plans and engines.

For object stores, the reference engine is called in the loop. Large chunks are decoded and encoded in as many threads
as there are cores, so that the loop continues. For other stores, the engine of the array is called in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from threading import Event
from typing import Any, Final
from weakref import WeakKeyDictionary

from omnizarr import engine
from omnizarr.aio import fetching
from omnizarr.codecs.contract import AnyArray
from omnizarr.engine import Binding, reference
from omnizarr.indexing import Pieces, Plan
from omnizarr.nodes import reading
from omnizarr.nodes.reading import Prepared
from omnizarr.stores import LocalStore, MemoryStore, Store
from omnizarr.stores.asynchronous import called, is_awaitable
from omnizarr.stores.tasks import near, stoppable, waited

# Selections up to this size are copied in the loop, because passing them to a thread takes as long.
_SMALL: Final = 128 * 1024


async def read(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None = None) -> None:
    """Fill `out` like `omnizarr.engine.read`, and raise the same errors."""
    pieces: Pieces = plan
    if engine.is_remote(binding):
        rest = await fetching.read(binding, plan, out, concurrency)
        if rest is None:
            if binding.if_nothing is not None and engine.may_be_gone(binding, out):
                await waited(binding.if_nothing)
            return
        left, is_complete, error = rest
        engine.raise_of(binding, left, error)
        if is_complete:
            wanted = set(left)
            pieces = [piece for piece in plan if piece.coords in wanted]
    if is_awaitable(binding.store):
        await called(reference.read, binding, pieces, out, concurrency)
    elif isinstance(binding.store, MemoryStore) and out.nbytes <= _SMALL:
        engine.read(binding, plan, out, concurrency)
    elif binding.store.features.concurrency <= 1:
        await _read_near(binding, plan, out, concurrency)
    else:
        await waited(engine.read, binding, plan, out, concurrency)


def groups(jobs: Sequence[Prepared]) -> list[list[Prepared]]:
    """Return which selections to read by one call of `fill`: those of one array whose chunks Python fetches."""
    found: dict[int, list[Prepared]] = {}
    for job in jobs:
        binding = job.binding
        is_shared = binding.asks_store and binding.elements is None and not engine.is_remote(binding)
        found.setdefault(id(binding.plain if is_shared else job), []).append(job)
    return [*found.values()]


async def fill(jobs: Sequence[Prepared], concurrency: int | None) -> None:
    """Fill the buffers of a group. The store is asked once for a chunk that several of its selections need."""
    if len(jobs) == 1:
        (job,) = jobs
        await read(job.binding, job.plan, job.buffer, concurrency)
        return
    store = jobs[0].binding.store
    if is_awaitable(store):
        await called(reading.fill, jobs, concurrency)
        return
    stop = Event()
    function = partial(reading.fill, jobs, concurrency, stop.is_set)
    await (near if store.features.concurrency <= 1 else stoppable)(function, stop.set)


async def _read_near(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None) -> None:
    """Read from a store that answers immediately. Selections that are read at the same time decode each chunk once."""
    if not engine.is_stoppable(binding):
        await near(partial(engine.read, binding, plan, out, concurrency))
        return
    readers = _readers.setdefault(asyncio.get_running_loop(), {}).setdefault(id(binding.plain), _Readers())
    if readers.count and readers.shared is None:
        readers.shared = engine.shared_chunks(binding)
    readers.count += 1
    limits = engine.Limits(shared=readers.shared)
    try:
        await near(partial(engine.read_within, limits, binding, plan, out, concurrency), limits.stop)
    finally:
        readers.count -= 1
        if not readers.count:
            del _readers[asyncio.get_running_loop()][id(binding.plain)]


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
        await called(reference.write, binding, pieces, value, concurrency)
    elif isinstance(binding.store, MemoryStore) and value.nbytes <= _SMALL:
        engine.write(binding, plan, value, concurrency)
    elif binding.store.features.concurrency <= 1 and not _waits_for_disk(binding.store):
        await near(partial(engine.write, binding, plan, value, concurrency), writes=True)
    else:
        await waited(engine.write, binding, plan, value, concurrency)


def _waits_for_disk(store: Store) -> bool:
    """Return whether a thread that writes waits most of the time."""
    return isinstance(store, LocalStore) and store.fsync
