"""A cache of decoded chunks for overlapping selections, valid as long as the stored chunks do not change.

The stamp of a value (`omnizarr.stores.Store.stamp`) tells whether it changed. The cache asks for it before and after a
chunk is read, and before a cached chunk is used. Without stamps, nothing is cached.

The cache holds whole chunks, and the inner chunks of shards. If reading an inner chunk means decoding the whole
shard, or if a shard holds shards, the reference engine caches nothing.

If a process forks while another thread uses a cache, the cache stays locked in the child. So threads never wait for a
cache: if it is in use, they continue without it.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import count, product
from typing import Any, Final, NamedTuple, Protocol, SupportsIndex, TypeAlias

import numpy as np

from omnizarr.codecs.chain import Chain
from omnizarr.codecs.contract import AnyArray, Source
from omnizarr.codecs.sharding import Sharding
from omnizarr.errors import SettingError
from omnizarr.stores import threads, verbs
from omnizarr.stores.base import Stamped, Store, answers_itself
from omnizarr.stores.wrap.wrappers import WrapperStore
from omnizarr.support import amounts
from omnizarr.support.locks import RLock

Place: TypeAlias = tuple[int, ...]
"""Number of the array, coordinates of the chunk, and coordinates of the inner chunk in a shard."""

_BYTES_PER_CHARACTER: Final = 4
_IMMUTABLE: Final = {bytes, str, int, float, complex, bool, type(None)}

_MOST_NUMBERED: Final = 10_000


class ChunkCache:
    """A cache of decoded chunks, shared by all arrays that are opened with it.

    Parameters
    ----------
    limit : int or str
        Number of bytes of decoded chunks to keep, also as text: ``"500MB"``. The least recently used chunks are
        dropped first.

    Notes
    -----
    A cached chunk is used only if the stored chunk has not changed. Other processes and pickled copies begin
    with an empty cache of the same limit.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> cache = omnizarr.ChunkCache(1_000_000)
    >>> root = omnizarr.open_group({}, mode="w", config={"chunk_cache": cache})
    >>> root["a"], root["b"] = np.arange(1000), np.ones(500)
    >>> _ = root["a"][5], root["b"][7], root["b"][8]
    >>> cache.nbytes
    12000
    """

    __slots__ = ("__weakref__", "_count", "_kept", "_numbers", "limit")

    def __init__(self, limit: SupportsIndex | str) -> None:
        self.limit = amounts.nbytes(limit)
        if self.limit < 0:
            raise SettingError("a cache cannot have less than no bytes", found=self.limit, expected="0 or more")
        self._kept: _Keeper = _Kept(self.limit)
        self._count = count()
        self._numbers: dict[tuple[Store, str, Chain], int] = {}

    @property
    def nbytes(self) -> int:
        """Number of bytes in the cache."""
        return self._kept.nbytes

    def number_of(self, store: Store, prefix: str, chain: Chain) -> int:
        """Return the number of an array. Arrays with the same chunks and the same decoding have the same number."""
        # Before Python 3.14, `next` of `count` is not atomic without the GIL.
        with threads.lock((ChunkCache, id(self))):
            if len(self._numbers) >= _MOST_NUMBERED:
                self._numbers.clear()  # numbers are not used again, so old entries expire
            try:
                return self._numbers.setdefault((store, prefix, chain), next(self._count))
            except TypeError:  # a store that cannot be hashed
                return next(self._count)

    def shared_with(self, native: Any) -> Any:
        """Return the native engine's cache. From then on, the reference engine uses it too."""
        with threads.lock((ChunkCache, id(self))):
            if isinstance(self._kept, _Kept):
                self._kept = native.ChunkCache(min(self.limit, sys.maxsize))
            return self._kept

    def get(self, place: Place, stamp: Hashable) -> AnyArray | None:
        """Return the cached chunk of a place, if it was decoded from the value with this stamp."""
        found = self._kept.get(place)
        return found[1] if found is not None and found[0] == stamp else None

    def peek(self, place: Place) -> tuple[Hashable, AnyArray] | None:
        """Return the cached chunk of a place, and the stamp of the value from which it was decoded."""
        return self._kept.get(place)

    def put(self, place: Place, stamp: Hashable, chunk: AnyArray) -> None:
        """Cache a copy of a chunk, or the chunk itself if it owns its memory.

        The caller must not change it afterwards.
        """
        nbytes = nbytes_of(chunk)
        if nbytes is None or nbytes > self.limit:
            return
        if chunk.base is not None:  # a view of a larger array, or memory of another library
            chunk = chunk.copy(order="K")
        chunk.flags.writeable = False
        self._kept.put(place, (stamp, chunk), nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return ChunkCache, (self.limit,)

    def __repr__(self) -> str:
        return f"ChunkCache({self.limit})"


_Value: TypeAlias = tuple[Hashable, AnyArray]


class _Keeper(Protocol):
    """The container of the chunks: `_Kept`, or the native engine's, which both engines then share."""

    @property
    def nbytes(self) -> int: ...
    def get(self, place: Place) -> _Value | None: ...
    def put(self, place: Place, value: _Value, nbytes: int) -> None: ...


# Seconds to wait for a cache in use: longer than a thread is kept from running, and not for ever, as a child that was
# forked while a thread of its parent had the cache would.
_PATIENCE: Final = 0.01


class _Kept:
    """Values up to a number of bytes. The least recently used values are dropped first."""

    def __init__(self, limit: int) -> None:
        self.nbytes = 0
        self._limit = limit
        self._values: OrderedDict[Place, tuple[_Value, int]] = OrderedDict()
        self._lock = RLock()  # tells whether this thread holds the lock

    def get(self, place: Place) -> _Value | None:
        try:
            if not self._lock.acquire(timeout=_PATIENCE):
                return None
            found = self._values.get(place)
            if found is None:
                return None
            self._values.move_to_end(place)
            return found[0]
        finally:
            try:  # noqa: SIM105 - see `omnizarr.stores.interrupts`: the first call lets go
                self._lock.release()
            except RuntimeError:  # it was not taken
                pass

    def put(self, place: Place, value: _Value, nbytes: int) -> None:
        try:
            if not self._lock.acquire(timeout=_PATIENCE):
                return
            # Other threads read `nbytes` meanwhile, and Ctrl-C can interrupt at any time. So `nbytes` is never
            # less than the bytes kept, and never above the limit.
            _, freed = self._values.pop(place, (None, 0))
            self.nbytes -= freed
            while self._values and self.nbytes + nbytes > self._limit:
                _, (_, freed) = self._values.popitem(last=False)
                self.nbytes -= freed
            self.nbytes += nbytes
            self._values[place] = value, nbytes
        finally:
            try:  # noqa: SIM105 - see `omnizarr.stores.interrupts`: the first call lets go
                self._lock.release()
            except RuntimeError:  # it was not taken
                pass


def nbytes_of(chunk: AnyArray) -> int | None:
    """Return an upper bound of a chunk's memory in bytes; None if it is unknown, or if the chunk could change.

    >>> nbytes_of(np.zeros((2, 3))), nbytes_of(np.array([b"abc", None])), nbytes_of(np.array([{}, None]))
    (48, 68, None)
    """
    if chunk.dtype.kind == "T":
        return chunk.nbytes + _BYTES_PER_CHARACTER * int(np.strings.str_len(chunk).sum())
    if not chunk.dtype.hasobject:
        return chunk.nbytes
    items = chunk.ravel(order="K").tolist()
    if not _IMMUTABLE.issuperset(map(type, items)):
        return None  # readers get the objects themselves
    return chunk.nbytes + sum(map(sys.getsizeof, items))


def has_stamps(store: Store) -> bool:
    """Return whether a store can distinguish versions of a value, without a request."""
    while isinstance(store, WrapperStore):
        store = store.store
    return answers_itself(store, verbs.stamp)


# -- reading --------------------------------------------------------------------------


class Stored(NamedTuple):
    """A chunk as it is stored."""

    chain: Chain
    place: Place
    source: Source
    """Fetches it, or parts of it."""
    stamp: Callable[[], Hashable | None]
    """Returns its stamp now."""
    fetch: Callable[[Hashable | None], Stamped | None]
    """Returns the value with its stamp; None if the stamp is still the given one."""


def read(cache: ChunkCache, stored: Stored, selection: tuple[Any, ...], out: AnyArray) -> bool | None:
    """Set ``out[...] = decoded[selection]``, from the cache, or after adding the chunk to the cache.

    Returns False if the chunk is missing, and None, without changing `out`, if the chunk cannot be cached.
    """
    chain, shard = stored.chain, stored.chain.serializer[1]
    kept, keep = chain.spec, _read_whole
    if isinstance(shard, Sharding):
        if (
            chain.filters
            or chain.compressors
            or shard.edges is not None
            or isinstance(shard.inner.serializer[1], Sharding)
        ):
            return None
        if not all(isinstance(part, slice) and part.step == 1 for part in selection):
            return None
        kept, keep = shard.inner.spec, _read_inner
    if not out.size or (kept.nbytes or 0) > cache.limit:
        return None
    return keep(cache, stored, selection, out)


def _read_whole(cache: ChunkCache, stored: Stored, selection: tuple[Any, ...], out: AnyArray) -> bool | None:
    stamp, chunk = cache.peek(stored.place) or (None, None)
    fetched = stored.fetch(stamp)
    if fetched is not None:
        if fetched.value is None:
            return False
        chunk = stored.chain.decode(fetched.value)
        if fetched.stamp is not None:
            cache.put(stored.place, fetched.stamp, chunk)
    if chunk is None:  # the store answers "not modified" to a request that was not conditional
        return None
    out[...] = chunk[selection]
    return True


def _read_inner(cache: ChunkCache, stored: Stored, selection: tuple[slice, ...], out: AnyArray) -> bool | None:
    """Copy the inner chunks of a shard that a box touches into `out`.

    Unless all are cached, read all of them in one request.
    """
    stamp = stored.stamp()
    if stamp is None:
        return None
    shard: Any = stored.chain.serializer[1]
    lengths: tuple[int, ...] = shard.inner.spec.shape
    runs = [range(part.start // size, -(-part.stop // size)) for part, size in zip(selection, lengths, strict=True)]
    edges = [slice(run.start * size, run.stop * size, 1) for run, size in zip(runs, lengths, strict=True)]
    numbers = list(product(*runs))
    chunks = [cache.get((*stored.place, *coords), stamp) for coords in numbers]
    kept = [chunk for chunk in chunks if chunk is not None]
    box = np.empty([edge.stop - edge.start for edge in edges], stored.chain.spec.dtype)
    # The part of the box in each inner chunk.
    sides = [
        [slice(n * size, n * size + size) for n in range(len(run))] for run, size in zip(runs, lengths, strict=True)
    ]
    parts = list(product(*sides))
    if len(kept) == len(parts):
        for part, chunk in zip(parts, kept, strict=True):
            box[part] = chunk
    elif not stored.chain.read(stored.source, tuple(edges), box):
        return False
    elif stored.stamp() == stamp:
        for part, coords in zip(parts, numbers, strict=True):
            cache.put((*stored.place, *coords), stamp, box[part])
    out[...] = box[tuple(_shifted(part, -edge.start) for part, edge in zip(selection, edges, strict=True))]
    return True


def _shifted(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)
