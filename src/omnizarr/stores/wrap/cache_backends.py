"""Where a `CacheStore` keeps values: in memory, or in another store, which several processes may share.

What is kept is looked up by key and span, and is dropped when there is too much of it, that which was not used for
longest first. A shelf may lose anything at any time, but never gives what was not put there.
"""

from __future__ import annotations

import json
import math
import os
import struct
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from omnizarr.stores import threads
from omnizarr.stores.base import Buffer, Span, Store
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Lazy("hashlib")

Name: TypeAlias = tuple[str, Span | None]
"""A key, and which part of its value; None: all of it."""

_OVERHEAD: Final = 256  # bytes of memory that an entry takes beside its value, about
_SHARE: Final = 8  # a shared shelf is looked through again when an eighth of its limit has been put there
_ROOM: Final = 0.9  # of the limit, that is left filled when others have to go


class Entry(NamedTuple):
    """What is kept of a value."""

    value: Buffer | None
    """None: there is no such key."""
    stamp: Hashable | None
    checked: float
    """When it was asked for, by the clock of the shelf; what the store answered is not an older."""


class Shelf(Protocol):
    """Where entries are kept."""

    clock: Callable[[], float]

    @property
    def nbytes(self) -> int:
        """Bytes that are kept now, as far as it is known."""

    def usable(self, stamp: Hashable | None) -> Hashable | None:
        """Return a stamp as it can be kept; None if it cannot."""

    def get(self, name: Name) -> Entry | None:
        """Return what is kept, if it is whole."""

    def put(self, name: Name, entry: Entry) -> None:
        """Keep an entry; one that is too large is passed over, and the old one dropped."""

    def touch(self, name: Name, entry: Entry) -> None:
        """Note that an entry was found to be true still."""

    def drop(self, name: Name) -> None:
        """Forget an entry, to make room."""

    def clear(self) -> None:
        """Forget all."""


class MemoryShelf:
    """Entries in the memory of this process."""

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, limit: int | None) -> None:
        self.nbytes = 0
        self._limit = math.inf if limit is None else limit
        self._entries: OrderedDict[Name, Entry] = OrderedDict()

    def usable(self, stamp: Hashable | None) -> Hashable | None:
        """Return it: any stamp can be kept."""
        return stamp

    def get(self, name: Name) -> Entry | None:
        """Look it up."""
        with threads.lock(id(self)):
            entry = self._entries.get(name)
            if entry is not None:
                self._entries.move_to_end(name)
            return entry

    def put(self, name: Name, entry: Entry) -> None:
        """Keep it, and drop others if there is no room."""
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
        """Forget it."""
        with threads.lock(id(self)):
            self._forget(name)

    def clear(self) -> None:
        """Forget all."""
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
_HEAD: Final = struct.Struct(f"<4s{_DIGEST}sdI")  # magic, checksum of all behind it, `Entry.checked`, size of the JSON


class StoreShelf:
    """Entries in a store, one value each; processes that share it need not know of each other.

    Each value says what it is (the checksum covers its name), so one that is torn, or was moved, is not believed. How
    much there is is counted when an eighth of the limit has been written; until then, others may have put there more.
    A store that fails is done without, after a warning.

    Parameters
    ----------
    store : Store
    limit : int or None
        Bytes, of all that use the store together.
    namespace : str
        What tells the data that are cached from all others.
    """

    clock: Callable[[], float] = staticmethod(time.time)

    def __init__(self, store: Store, limit: int | None, namespace: str) -> None:
        self._store = store
        self.nbytes = 0
        self._limit = math.inf if limit is None else limit
        self._namespace = namespace
        self._checked: dict[str, tuple[Hashable, float]] = {}
        self._files: dict[str, tuple[float, int]] = {}  # when each was last used, and its size
        self._unseen = math.inf  # bytes written since all was looked through
        self._has_warned = False

    def usable(self, stamp: Hashable | None) -> Hashable | None:
        """Return the stamp if it can be written and read again."""
        return stamp if _is_plain(stamp) else None

    def get(self, name: Name) -> Entry | None:
        """Read it, and check that it is whole."""
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
        """Write it, and remove others if there is no room."""
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
        """Remember when it was asked for; other processes ask themselves."""
        self._checked[self._file(name)] = entry.stamp, entry.checked

    def drop(self, name: Name) -> None:
        """Remove it."""
        self._remove(self._file(name))

    def clear(self) -> None:
        """Remove all, also what others have put there."""
        with threads.lock(id(self)):
            self._files.clear()
            self._checked.clear()
            self.nbytes = 0
            try:
                self._store.delete_prefix(_FOLDER)
            except OSError as error:
                self._warn(error)

    def _file(self, name: Name) -> str:
        digest = hashlib.blake2b(repr((self._namespace, name)).encode("utf-8", "surrogatepass"), digest_size=20)
        text = digest.hexdigest()
        return f"{_FOLDER}{text[:2]}/{text[2:]}"

    def _count(self, file: str, used: float, size: int) -> None:
        """Note that an entry is there."""
        self._uncount(file)
        self._files[file] = used, size
        self.nbytes += size

    def _uncount(self, file: str) -> None:
        """Note that an entry is not there."""
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
        """Learn what others have put here, and what they have removed."""
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
            warnings.warn(text, RuntimeWarning, stacklevel=2)


def namespace_of(store: Store) -> str:
    """Return what tells the data of a store from all others, in all processes.

    If a store is identified by something that exists only in this process (the id of an object), another process, or a
    later object with the same id, must not get the same name: then the name is unique.
    """
    origin = store.origin()
    return repr(origin) if _is_text(origin) else f"process {os.urandom(16).hex()}"


def _is_text(origin: Any) -> bool:
    if isinstance(origin, tuple):
        return all(map(_is_text, origin))
    return origin is None or type(origin) in (str, bool)


def _is_plain(stamp: Any) -> bool:
    """Return whether a stamp can be written as JSON, and read again as the same."""
    if type(stamp) is tuple:
        return all(map(_is_plain, stamp))
    return stamp is None or type(stamp) in (str, int, bool)


def _render(file: str, entry: Entry) -> bytes:
    head = json.dumps({"stamp": entry.stamp, "missing": entry.value is None}).encode()
    checked = struct.pack("<dI", entry.checked, len(head))
    value = b"" if entry.value is None else entry.value
    return b"".join([_MAGIC, _digest(file, checked, head, value), checked, head, value])


def _parse(file: str, record: Buffer) -> Entry | None:
    """Return what `_render` was given; None if these are not its bytes, for this name."""
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
