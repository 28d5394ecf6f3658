"""Where a `CacheStore` keeps values: in memory, or in another store that processes can share.

Cached values are looked up by key and span. If there are too many, the least recently used are dropped. A shelf
may lose anything at any time, but never returns wrong data.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from omnizarr.stores import threads, verbs
from omnizarr.stores.base import Buffer, Span, Store
from omnizarr.support.warned import warn

Name: TypeAlias = tuple[str, Span | None]
"""A key, and the part of its value; None: all of it."""

_OVERHEAD: Final = 256  # approximate bytes of memory that an entry takes in addition to its value
_SHARE: Final = 8  # a shared shelf is scanned again after an eighth of its limit has been written
_ROOM: Final = 0.9  # of the limit, that stays filled when entries are dropped


class Entry(NamedTuple):
    """A cached value."""

    value: Buffer | None
    """None: the key is missing."""
    stamp: Hashable | None
    checked: float
    """When it was requested, by the clock of the shelf. The store's answer is at least as new."""


class CacheBackend(Protocol):
    """The place of entries."""

    clock: Callable[[], float]

    @property
    def nbytes(self) -> int:
        """Bytes in the cache, as far as known."""

    def usable(self, stamp: Hashable | None) -> Hashable | None:
        """Return a stamp in a form that can be stored; None if that is not possible."""

    def get(self, name: Name) -> Entry | None:
        """Return the entry, if it is intact."""

    def put(self, name: Name, entry: Entry) -> None:
        """Store an entry. One that is too large is ignored, and the old one is dropped."""

    def touch(self, name: Name, entry: Entry) -> None:
        """Note that an entry was confirmed as current."""

    def drop(self, name: Name) -> None:
        """Drop an entry to make room."""

    def clear(self) -> None:
        """Drop everything."""


class MemoryBackend:
    """Entries in the memory of this process."""

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, limit: int | None) -> None:
        self.nbytes = 0
        self._limit = math.inf if limit is None else limit
        self._entries: OrderedDict[Name, Entry] = OrderedDict()

    def usable(self, stamp: Hashable | None) -> Hashable | None:
        """Return the stamp: any stamp can be stored."""
        return stamp

    def get(self, name: Name) -> Entry | None:
        """Look the entry up."""
        with threads.lock(id(self)):
            entry = self._entries.get(name)
            if entry is not None:
                self._entries.move_to_end(name)
            return entry

    def put(self, name: Name, entry: Entry) -> None:
        """Store the entry, and drop others if there is no room."""
        with threads.lock(id(self)):
            self._forget(name)
            cost = _cost(name, entry)
            if cost > self._limit:
                return
            self._entries[name] = entry
            self.nbytes += cost
            while self.nbytes > self._limit:
                self._forget(next(iter(self._entries)))

    def touch(self, name: Name, entry: Entry) -> None:
        """Replace the entry."""
        with threads.lock(id(self)):
            if name in self._entries and self._entries[name].stamp == entry.stamp:
                self._entries[name] = entry

    def drop(self, name: Name) -> None:
        """Drop the entry."""
        with threads.lock(id(self)):
            self._forget(name)

    def clear(self) -> None:
        """Drop everything."""
        with threads.lock(id(self)):
            self._entries.clear()
            self.nbytes = 0

    def _forget(self, name: Name) -> None:
        old = self._entries.pop(name, None)
        if old is not None:
            self.nbytes -= _cost(name, old)


def _cost(name: Name, entry: Entry) -> int:
    return len(entry.value or b"") + len(name[0]) + _OVERHEAD


_FOLDER: Final = "omnizarr-cache/"
_MAGIC: Final = b"ozc1"
_DIGEST: Final = 16
_HEAD: Final = struct.Struct(f"<4s{_DIGEST}sdI")  # magic, checksum of the rest, `Entry.checked`, size of the JSON


class StoreBackend:
    """Entries in a store, one value each. Processes can share it.

    Each value contains its name and a checksum, so a torn or moved value is not used. The total size is counted
    again after an eighth of the limit has been written; until then, other processes may have added more. If the
    store fails, it is no longer used, after a warning.

    Parameters
    ----------
    store : Store
    limit : int or None
        Maximum number of bytes, for all users of the store together.
    namespace : str
        Identity of the cached data.
    """

    clock: Callable[[], float] = staticmethod(time.time)

    def __init__(self, store: Store, limit: int | None, namespace: str) -> None:
        self._store = store
        self.nbytes = 0
        self._limit = math.inf if limit is None else limit
        self._namespace = namespace
        self._checked: dict[str, tuple[Hashable, float]] = {}
        self._files: dict[str, tuple[float, int]] = {}  # when each was last used, and its size
        self._unseen = math.inf  # bytes written since the last scan
        self._has_warned = False

    def usable(self, stamp: Hashable | None) -> Hashable | None:
        """Return the stamp, if it can be written and read again."""
        return stamp if _is_plain(stamp) else None

    def get(self, name: Name) -> Entry | None:
        """Read the entry, and check that it is intact."""
        file = self._file(name)
        try:
            record = self._store.get(file)
        except OSError as error:
            self._warn(error)
            return None
        entry = None if record is None else _parse(file, record)
        if record is None or entry is None:
            return None
        with threads.lock(id(self)):
            self._count(file, self.clock(), len(record))
        stamp, checked = self._checked.get(file, (None, 0.0))
        return entry._replace(checked=checked) if stamp == entry.stamp and checked > entry.checked else entry

    def put(self, name: Name, entry: Entry) -> None:
        """Write the entry, and remove others if there is no room."""
        file = self._file(name)
        record = _render(file, entry)
        if len(record) > self._limit:
            self.drop(name)
            return
        try:
            self._store.set(file, record)
            with threads.lock(id(self)):
                self._count(file, self.clock(), len(record))
                self._unseen += len(record)
                self._make_room()
        except OSError as error:
            self._warn(error)

    def touch(self, name: Name, entry: Entry) -> None:
        """Remember when it was requested. Other processes ask for themselves."""
        self._checked[self._file(name)] = entry.stamp, entry.checked

    def drop(self, name: Name) -> None:
        """Remove the entry."""
        self._remove(self._file(name))

    def clear(self) -> None:
        """Remove everything, including entries of other processes."""
        with threads.lock(id(self)):
            self._files.clear()
            self._checked.clear()
            self.nbytes = 0
            try:
                verbs.delete_prefix(self._store, _FOLDER)
            except OSError as error:
                self._warn(error)

    def _file(self, name: Name) -> str:
        digest = hashlib.blake2b(repr((self._namespace, name)).encode("utf-8", "surrogatepass"), digest_size=20)
        text = digest.hexdigest()
        return f"{_FOLDER}{text[:2]}/{text[2:]}"

    def _count(self, file: str, used: float, size: int) -> None:
        """Note that an entry exists."""
        self._uncount(file)
        self._files[file] = used, size
        self.nbytes += size

    def _uncount(self, file: str) -> None:
        """Note that an entry does not exist."""
        _, size = self._files.pop(file, (0.0, 0))
        self.nbytes -= size

    def _remove(self, file: str) -> None:
        with threads.lock(id(self)):
            self._uncount(file)
            self._checked.pop(file, None)
        try:
            self._store.delete(file)
        except OSError as error:
            self._warn(error)

    def _make_room(self) -> None:
        if self._unseen > self._limit / _SHARE:
            self._look_through()
        if self.nbytes <= self._limit:
            return
        for file, _ in sorted(self._files.items(), key=lambda item: item[1]):
            if self.nbytes <= _ROOM * self._limit:
                return
            self._remove(file)

    def _look_through(self) -> None:
        """Find out what other processes have added and removed."""
        self._unseen = 0.0
        if self._limit == math.inf:
            return
        there = set(self._store.list_prefix(_FOLDER))
        for file in self._files.keys() - there:
            self._uncount(file)
            self._checked.pop(file, None)
        for file in there - self._files.keys():
            size = self._store.size(file)
            head = self._store.get(file, (0, _HEAD.size))
            if size is not None and head is not None:
                checked = _HEAD.unpack(head)[2] if len(head) == _HEAD.size else 0.0
                self._count(file, checked if math.isfinite(checked) else 0.0, size)

    def _warn(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            text = f"the cache {self._store!r} does not work, and is done without: {error}"
            warn(text, RuntimeWarning)


def namespace_of(store: Store) -> str:
    """Return an identity of the data of a store that is the same in all processes.

    If a store is identified by something that exists only in this process (the id of an object), another process,
    or a later object with the same id, must not get the same name. Then the name is unique.
    """
    origin = store.origin()
    return repr(origin) if _is_text(origin) else f"process {os.urandom(16).hex()}"


def _is_text(origin: Any) -> bool:
    if isinstance(origin, tuple):
        return all(map(_is_text, origin))
    return origin is None or type(origin) in (str, bool)


def _is_plain(stamp: Any) -> bool:
    """Return whether a stamp can be written as JSON and read back as the same value."""
    if type(stamp) is tuple:
        return all(map(_is_plain, stamp))
    return stamp is None or type(stamp) in (str, int, bool)


def _render(file: str, entry: Entry) -> bytes:
    head = json.dumps({"stamp": entry.stamp, "missing": entry.value is None}).encode()
    checked = struct.pack("<dI", entry.checked, len(head))
    value = b"" if entry.value is None else entry.value
    return b"".join([_MAGIC, _digest(file, checked, head, value), checked, head, value])


def _parse(file: str, record: Buffer) -> Entry | None:
    """Return the arguments of `_render`; None if these are not its bytes for this name."""
    whole = memoryview(record)
    if len(whole) < _HEAD.size:
        return None
    magic, digest, checked, size = _HEAD.unpack_from(whole)
    head, value = whole[_HEAD.size : _HEAD.size + size], whole[_HEAD.size + size :]
    if magic != _MAGIC or digest != _digest(file, whole[len(_MAGIC) + _DIGEST : _HEAD.size], head, value):
        return None
    said = json.loads(bytes(head))
    return Entry(None if said["missing"] else value, _as_tuples(said["stamp"]), checked)


def _digest(file: str, *parts: Buffer) -> bytes:
    digest = hashlib.blake2b(file.encode(), digest_size=_DIGEST)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _as_tuples(stamp: Any) -> Any:
    return tuple(map(_as_tuples, stamp)) if isinstance(stamp, list) else stamp
