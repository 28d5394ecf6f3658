"""A cache of bytes in front of a store: in memory, in a directory, or in any other store.

How current values are
    A value is cached with its stamp (in object stores, its ETag). When it is read again, one request asks the store
    whether the stamp is still the same (`verbs.get_stamped`). If so, no value is transferred. So by default
    (``max_age=0``), you never read a value older than your request, and values without a stamp are not cached.
    With `max_age`, the store is not asked again for this many seconds, not even about missing keys. Use
    ``max_age=math.inf`` for data that never changes. ``max_age="once"`` asks once about each value since the
    `CacheStore` was made: what was requested before that is confirmed with one request.

Parts of values
    Parts are cut from cached values. With `max_age`, parts of other values are cached, too, with the stamp of their
    value, and used if that is its stamp now: two parts never belong to different versions. That needs a store that
    tells stamps with parts, as object stores do; otherwise parts are passed through. With ``max_age=math.inf`` there is
    only one version, and stamps do not matter.

Writers
    You read what you write through the cache immediately. Values written by others are seen at the next request to the
    store. A thread that holds a `lock` (also in `update`, and when a part of a chunk is written) bypasses the cache for
    every key, so that it changes the current value.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from omnizarr.errors import ConflictError, SettingError
from omnizarr.stores import threads, verbs, waiting
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Parts,
    Reader,
    Request,
    Span,
    Stamped,
    Store,
    Verb,
    answers,
    as_prefix,
    cut,
    fill,
    parts_of,
)
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.wrap.cache_backends import CacheBackend, Entry, MemoryBackend, Name, StoreBackend, namespace_of
from omnizarr.stores.wrap.wrappers import WrapperStore
from omnizarr.support import amounts

Place: TypeAlias = "Store | str | os.PathLike[str] | None"

DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024
_VERSION: Final = (0, 0)
"""The part without bytes: its entry has the stamp with which a value was last seen."""
_SLOTS: Final = 256  # keys share notes of when they were last written; too few slots cost requests, but are never wrong


class CacheInfo(NamedTuple):
    """Statistics of a `CacheStore`."""

    hits: int
    """Reads without a request to the store."""
    revalidated: int
    """Reads of a cached value after a request confirmed that it is current."""
    misses: int
    """Reads for which the store sent the value."""
    nbytes: int
    """Bytes in the cache now."""


class CacheStore(WrapperStore):
    """A store that caches what was read, up to a number of bytes. The least recently used values are dropped first.

    `omnizarr.stores.wrap.cached` explains how current values are.

    Parameters
    ----------
    store : Store
        The store to cache.
    cache : path or Store, optional
        A directory or another store for the cached values. Several processes, and caches of several stores, can
        share it. By default, values are cached in memory, only for this store and its read-only views.
    max_bytes : int, str or None, default 256 MiB
        Maximum size of the cache; None: no limit. A shared directory may exceed it by an eighth for each process.
    max_age : float or "once", default 0
        Seconds for which the store is not asked again; ``math.inf`` for data that others never change. "once": each
        value is asked for once while this store exists, also by other processes that got it pickled or forked.
    cache_set_data : bool, default True
        With `max_age`, also cache what is written.
    cache_store, max_size, max_age_seconds
        zarr-python's names of `cache`, `max_bytes` and `max_age` (there, "infinity" means ``math.inf``).

    Notes
    -----
    A pickled copy uses the same cache if it is a directory or store. A cache in memory begins empty in the copy.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> below = MemoryStore({"a": b"old"})
    >>> store = CacheStore(below)
    >>> store.get("a"), store.get("a"), store.info()[:3]
    (b'old', b'old', (0, 1, 1))
    >>> below.set("a", b"new")
    >>> store.get("a"), store.get("a", (0, 1)).tobytes()
    (b'new', b'n')
    """

    features = WrapperStore.features

    def __init__(
        self,
        store: Store,
        cache: Place = None,
        *,
        max_bytes: int | str | None = DEFAULT_MAX_BYTES,
        max_age: float | Literal["once"] = 0.0,
        cache_set_data: bool = True,
        cache_store: Store | None = None,
        max_size: int | str | None = None,
        max_age_seconds: float | Literal["infinity"] | None = None,
    ) -> None:
        super().__init__(store)
        given = max_bytes if max_size is None else max_size
        self.max_bytes = None if given is None else amounts.nbytes(given)
        if self.max_bytes is not None and self.max_bytes < 0:
            raise SettingError("a cache cannot have less than no bytes", found=self.max_bytes, expected="0 or more")
        self.max_age: float | Literal["once"] = _age(max_age if max_age_seconds is None else max_age_seconds)
        self.cache_set_data = cache_set_data
        self.cache = _as_store(cache if cache_store is None else cache_store)
        self._state = _State(store, self.cache, self.max_bytes)

    @property
    def runs_in_event_loops(self) -> bool:  # type: ignore[override]
        """Whether the cache is in memory."""
        return self.cache is None

    @property
    def is_immutable(self) -> bool:
        """Whether values are assumed never to change."""
        return self.max_age == math.inf

    def info(self) -> CacheInfo:
        """Return statistics of the cache: hits, misses and its size."""
        state = self._state
        return CacheInfo(state.hits, state.revalidated, state.misses, state.backend.nbytes)

    def clear_cache(self) -> None:
        """Drop everything in the cache, including entries of other users."""
        self._state.backend.clear()

    # -- the cache ------------------------------------------------------------------

    def _kept(self, name: Name) -> Entry | None:
        """Return the cached entry, if it is current or the store can confirm it."""
        entry = self._state.backend.get(name)
        return entry if entry is None or entry.stamp is not None or self._is_fresh(name[0], entry) else None

    def _is_fresh(self, key: str, entry: Entry) -> bool:
        """Return whether no request to the store is needed."""
        state = self._state
        if entry.checked <= state.changed_at(key):
            return False
        # If a clock was set back, entries are of the future, and mean nothing.
        if self.max_age == "once":
            return state.since <= entry.checked <= state.backend.clock()
        return 0 <= state.backend.clock() - entry.checked < self.max_age

    def _true(self, key: str, entry: Entry | None, most: int | None = None) -> Entry:
        """Return the whole value, from the cache if it is still current, otherwise from the store.

        A value of the store that has more than `most` bytes raises StoreLimitError.
        """
        state = self._state
        if entry is not None and self._is_fresh(key, entry):
            state.hits += 1
            return entry
        asked = state.backend.clock()
        known = None if entry is None else entry.stamp
        found = self._stamped(key, known, most)
        if found is None and entry is not None:
            state.revalidated += 1
            entry = entry._replace(checked=asked)
            state.backend.touch((key, None), entry)
            return entry
        return self._keep(key, found or Stamped(None, None), asked)

    def _stamped(self, key: str, unless: Hashable | None, most: int | None) -> Stamped | None:
        """Return value and stamp from the store."""
        if most is None:
            return verbs.get_stamped(self.store, key, unless)
        return verbs.get_stamped_within(self.store, key, unless, most)

    def _keep(self, key: str, found: Stamped, asked: float) -> Entry:
        """Cache what the store has sent, if it can be used later."""
        state = self._state
        state.misses += 1
        stamp = None if found.value is None else state.backend.usable(found.stamp)
        state.backend.drop((key, _VERSION))  # parts may be of an older version than this value
        if stamp is not None or self.max_age:
            state.backend.put((key, None), Entry(_settled(found.value), stamp, asked))
        return Entry(found.value, found.stamp, asked)

    def _parts(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return parts of one version of a value, and cache them."""
        if not self.is_immutable:
            return self._parts_of_version(key, spans, lambda wanted: verbs.get_spans(self.store, key, wanted or ()))
        state = self._state
        entries = {span: self._kept((key, span)) for span in spans}
        wanted = [span for span, entry in entries.items() if entry is None]
        if not wanted:
            state.hits += 1
            return [entries[span].value for span in spans]  # type: ignore[union-attr,misc]
        asked = state.backend.clock()
        parts = [self.store.get(key, wanted[0])] if len(wanted) == 1 else verbs.get_spans(self.store, key, wanted)
        if parts is None or parts[0] is None:
            self._keep(key, Stamped(None, None), asked)
            return None
        state.misses += 1
        for span, part in zip(wanted, parts, strict=True):
            entries[span] = Entry(_settled(part), None, asked)
            state.backend.put((key, span), entries[span])  # type: ignore[arg-type]
        return [entries[span].value for span in spans]  # type: ignore[union-attr,misc]

    def _parts_of_version(self, key: str, spans: Sequence[Span], read: Reader) -> Parts | None:
        """Return parts of one version of a value, with its stamp. Without one, they are not cached.

        `read` returns parts from the store, all of one version.
        """
        state = self._state
        entries = {span: state.backend.get((key, span)) for span in spans}
        version = state.backend.get((key, _VERSION))
        is_fresh = version is not None and self._is_fresh(key, version)
        seen = version.stamp if version is not None and is_fresh else None
        asked = state.backend.clock()
        if not is_fresh and all(entry is not None and entry.stamp is not None for entry in entries.values()):
            seen = self._note(key, verbs.stamp(self.store, key), asked)
        wanted = [span for span, entry in entries.items() if entry is None or seen is None or entry.stamp != seen]
        if not wanted:
            state.hits += is_fresh
            state.revalidated += not is_fresh
            return Parts([entries[span].value for span in spans], None, seen)  # type: ignore[union-attr,misc]
        found = read(wanted)
        seen = self._note(key, _stamp_of(found), asked)
        others = [entry for span, entry in entries.items() if span not in wanted]
        if found is not None and any(entry is None or entry.stamp != seen for entry in others):  # of an older version
            wanted = list(entries)
            found = read(wanted)
            seen = self._note(key, _stamp_of(found), asked)
        if found is None:
            self._keep(key, Stamped(None, None), asked)
            return None
        state.misses += 1
        parts = {span: entry.value for span, entry in entries.items() if entry is not None}
        for span, part in zip(wanted, found, strict=True):
            parts[span] = part if seen is None else _settled(part)
            if seen is not None:
                state.backend.put((key, span), Entry(parts[span], seen, asked))
        return Parts([parts[span] for span in spans], None, seen)  # type: ignore[misc]

    def _note(self, key: str, stamp: Hashable | None, asked: float) -> Hashable | None:
        """Note the stamp that a value had; return it, if entries can have it."""
        usable = self._state.backend.usable(stamp)
        if usable is not None:
            self._state.backend.put((key, _VERSION), Entry(b"", usable, asked))
        return usable

    # -- reading ------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the cached value, or ask the store."""
        if not self._state.holds():
            entry = self._kept((key, None))
            if span is None or entry is not None:
                value = self._true(key, entry).value
                return None if value is None else cut(value, span)
            if self.max_age:
                parts = self._parts(key, [span])
                return None if parts is None else parts[0]
        return self.store.get(key, span)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Return the cached value, or ask the store."""
        if self._state.holds():
            return verbs.get_within(self.store, key, most)
        value = self._true(key, self._kept((key, None)), most).value
        if value is not None:
            verbs.check_limit(self, key, len(value), most)
        return value

    @answers(verbs.get_many_within)
    def _get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Request each value with `get_within`, concurrently; within a lock, ask the store directly."""
        if self._state.holds():
            return verbs.get_many_within(self.store, keys, most)
        return verbs.get_many_within.default(self, keys, most)

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Request each value with `get`, concurrently; within a lock, ask the store directly."""
        return verbs.get_many(self.store, requests) if self._state.holds() else verbs.get_many.default(self, requests)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Cut the parts from the cached value, or ask the store."""
        if not self._state.holds():
            entry = self._kept((key, None))
            if entry is not None:
                value = self._true(key, entry).value
                return None if value is None else parts_of(value, spans)
            if self.max_age and spans:
                return self._parts(key, spans)
        return verbs.get_spans(self.store, key, spans)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Copy the cached value, or the whole value once it has been read.

        Parts of other values come from the store.
        """
        entry = None if self._state.holds() else self._kept((key, None))
        if self._state.holds() or (entry is None and start):
            return verbs.read_into(self.store, key, out, start)
        value = self._true(key, entry).value
        return None if value is None else fill(out, memoryview(value)[start:])

    def _fresh(self, key: str) -> Entry | None:
        """Return the cached value, if no request is needed."""
        if not self.max_age or self._state.holds():
            return None
        entry = self._state.backend.get((key, None))
        return entry if entry is not None and self._is_fresh(key, entry) else None

    def exists(self, key: str) -> bool:
        """Return what is known, or ask the store."""
        entry = self._fresh(key)
        return self.store.exists(key) if entry is None else entry.value is not None

    def size(self, key: str) -> int | None:
        """Return what is known, or ask the store."""
        entry = self._fresh(key)
        if entry is None:
            return self.store.size(key)
        return None if entry.value is None else len(entry.value)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return what is known, or ask the store."""
        entry = self._fresh(key)
        return verbs.stamp(self.store, key) if entry is None or entry.stamp is None else entry.stamp

    @answers(verbs.get_stamped)
    def _get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Return the cached value, or ask the store."""
        return self._current(key, unless)

    @answers(verbs.get_stamped_within)
    def _get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Return the cached value, or ask the store."""
        found = self._current(key, unless, most)
        if found is not None and found.value is not None:
            verbs.check_limit(self, key, len(found.value), most)
        return found

    def _current(self, key: str, unless: Hashable | None, most: int | None = None) -> Stamped | None:
        entry = None if self._state.holds() else self._kept((key, None))
        if entry is not None and entry.stamp is not None:
            value, stamp, _ = self._true(key, entry, most)
            return None if stamp is not None and stamp == unless else Stamped(value, stamp)
        asked = self._state.backend.clock()
        found = self._stamped(key, unless, most)
        if found is not None and not self._state.holds():
            self._keep(key, found, asked)
        return found

    @answers(verbs.pinned)
    def _pinned(self, key: str) -> Reader | None:
        """Return a function that reads parts of the cached value, or of one version in the store."""
        if self._state.holds():
            return verbs.pinned(self.store, key)
        entry = self._kept((key, None))
        if entry is not None:
            return reader_of(self._true(key, entry).value)
        if self.is_immutable:
            return lambda spans: reader_of(self.get(key))(None) if spans is None else verbs.get_spans(self, key, spans)
        below = verbs.pinned(self.store, key)
        return None if below is None else _OneVersion(self, key, below)

    def _parts_for(self, key: str, spans: Sequence[Span], below: Reader) -> Parts | None:
        """Return parts of one version, with its stamp, for a reader of one version."""
        if self.max_age and spans:
            return self._parts_of_version(key, spans, below)
        found = below(spans)
        return None if found is None else Parts(found, None)

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Write to the store, and cache the value if it can be used without asking."""
        self.check_writable()
        state = self._state
        before = state.changed_at(key)
        try:
            self.store.set(key, value)
        except BaseException:
            state.change(key)
            raise
        now = state.change(key, before)
        if now is not None and self.max_age and self.cache_set_data:
            # Later than this change, and earlier than anything after it.
            entry = Entry(bytes(memoryview(value)), None, math.nextafter(now, math.inf))
            state.backend.put((key, None), entry)

    def handle(self, verb: Verb[..., Any], *args: Any) -> Any:
        """Pass the request on, and note what it changes."""
        if not verb.writes or verb is verbs.lock:
            return super().handle(verb, *args)
        if verb is verbs.set_many:
            return NotImplemented
        if verb.names == "keys":
            args = tuple(args[0]), *args[1:]
        elif verb.names in ("prefix", "two prefixes"):
            as_prefix(args[0])
        try:
            return super().handle(verb, *args)
        finally:
            match verb.names:
                case "key":
                    self._state.change(args[0])
                case "two keys":
                    self._state.change(args[1])
                case "keys":
                    for key in args[0]:
                        self._state.change(key)
                case _:
                    self._state.change_all()

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock in the store. Reads and writes within the lock bypass the cache."""
        return self._locked(super().lock, key)

    @contextmanager
    def _locked(self, lock: Callable[[str], AbstractContextManager[object]], key: str) -> Iterator[None]:
        with lock(key), self._state.holding():
            yield

    # -- the store itself ---------------------------------------------------------

    def close(self) -> None:
        """Close the store, and the store that holds the cache."""
        super().close()
        if self.cache is not None:
            self.cache.close()

    def _identity(self) -> tuple[Any, ...]:
        return self.store, self.cache, self.max_bytes, self.max_age, self.cache_set_data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CacheStore) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((CacheStore, self.store))

    def __repr__(self) -> str:
        return f"CacheStore({self.store!r}{'' if self.cache is None else f', {self.cache!r}'})"


class _State:
    """What a `CacheStore` shares with its read-only views. It begins empty in other processes."""

    def __init__(self, store: Store, cache: Store | None, max_bytes: int | None, since: float | None = None) -> None:
        self.backend: CacheBackend = (
            MemoryBackend(max_bytes) if cache is None else StoreBackend(cache, max_bytes, namespace_of(store))
        )
        self.since = self.backend.clock() if since is None else since
        """When the cache was made, by the clock of the backend."""
        self._made_of = store, cache, max_bytes, None if cache is None else self.since
        self.hits = self.revalidated = self.misses = 0
        self._changed = [-math.inf] * _SLOTS
        self._depth: waiting.Local[list[None]] = waiting.Local(list)

    def changed_at(self, key: str) -> float:
        """Return the latest possible time at which a key was last written through this store."""
        return self._changed[hash(key) % _SLOTS]

    def change(self, key: str, since: float | None = None) -> float | None:
        """Note that a key has been written, and return when; None if others have written it after `since`."""
        with threads.lock((id(self), "changed")):
            is_alone = since is None or since == self.changed_at(key)
            now = self._later(hash(key) % _SLOTS)
        for part in (None, _VERSION):
            self.backend.drop((key, part))
        return now if is_alone else None

    def change_all(self) -> None:
        """Note that any key may have been written."""
        with threads.lock((id(self), "changed")):
            for slot in range(_SLOTS):
                self._later(slot)

    def _later(self, slot: int) -> float:
        """Return a time that is now and after all noted times, with room for one in between."""
        before = math.nextafter(math.nextafter(self._changed[slot], math.inf), math.inf)
        self._changed[slot] = max(before, self.backend.clock())
        return self._changed[slot]

    def holds(self) -> bool:
        """Return whether this thread holds a lock on any key, because one lock may protect several documents."""
        return bool(self._depth.get())

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Note that this thread holds a lock."""
        held = self._depth.own()
        held.append(None)
        try:
            yield
        finally:
            held.pop()

    def __reduce__(self) -> tuple[Any, ...]:
        return _State, self._made_of


class _OneVersion:
    """Reads parts of one version. If all of it is requested first, it comes from the cache.

    `below` reads parts of one version of the store.
    """

    def __init__(self, store: CacheStore, key: str, below: Reader) -> None:
        self._store = store
        self._key = key
        self._below = below
        self._whole: Reader | None = None
        self._has_begun = False
        self._stamp: Hashable | None = None

    def __call__(self, spans: Sequence[Span] | None) -> Buffers | None:
        if spans is None and not self._has_begun:
            self._whole = reader_of(self._store.get(self._key))
        self._has_begun = True
        if self._whole is not None or spans is None:
            return (self._whole or self._below)(spans)
        found = self._store._parts_for(self._key, spans, self._below)  # noqa: SLF001 - of its kind
        if found is None or found.stamp is None:
            if self._stamp is not None:
                raise self._changed()
            return found
        if self._stamp not in (None, found.stamp):
            raise self._changed()
        self._stamp = found.stamp
        return found

    def _changed(self) -> ConflictError:
        return ConflictError("the value has changed since it was first read", store=repr(self._store), key=self._key)


def reader_of(value: Buffer | None) -> Reader:
    """Return a function that reads parts of a value in memory."""

    def read(spans: Sequence[Span] | None) -> Buffers | None:
        if value is None:
            return None
        return [value] if spans is None else parts_of(value, spans)

    return read


def _stamp_of(parts: Buffers | None) -> Hashable | None:
    return parts.stamp if isinstance(parts, Parts) else None


def _settled(value: Buffer | None) -> Buffer | None:
    """Return a value that can no longer change, and does not keep a larger one in memory."""
    return value if value is None or type(value) is bytes else bytes(value)


def _age(age: float | str) -> float | Literal["once"]:
    if age == "infinity":
        return math.inf
    if age == "once":
        return "once"
    if not isinstance(age, (int, float)) or not age >= 0:
        raise SettingError("not an age of cached values", found=age, expected='seconds, 0 or more, or "once"')
    return age


def _as_store(cache: Place) -> Store | None:
    if cache is None or isinstance(cache, Store):
        return cache
    return LocalStore(os.path.expanduser(cache))
