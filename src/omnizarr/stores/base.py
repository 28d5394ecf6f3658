"""What a store is: keys and bytes.

A store maps keys to values. Four verbs make a store (`get`, `set`, `delete`, `list`); every
other one falls back on them, and a store overrides those that it can do better.
A key that is not there is ordinary and reads as None.

A set becomes visible whole or not at all. A prefix is "" or ends with a slash (one is added). Keys that break the rules
(``..``, a leading slash, ...) raise `InvalidKeyError` in every verb of every store. The tests of a store inherit
``tests/stores/contract.py``.

Latency
    Only the store knows how far away it is, so it says how many requests it wants at once (`Store.concurrency`); ask
    for several values side by side. The engine has so many threads that each wait for a chunk, decode it and take the
    next; `omnizarr.aio` drives the same codecs without threads.

Writers
    Where `Store.exclusion` is "condition" (object stores), a lock keeps out only threads of this process, and
    remembers what was read within it: `Store.set` is then a conditional put, and raises `ConflictError` if another
    writer was faster. Whatever changes a value (`Store.update`) or a document (`omnizarr.stores.conflicts.retried`)
    begins again with the reading. So a change of documents must be a function of what is stored, which may run
    several times. A chunk that becomes empty is replaced by one full of fill values, as a deletion cannot be
    conditional. Appending first clears what lies beyond the edge, then claims its place by making the array longer,
    then writes the block.

Spec: Zarr v3 core, "Abstract store interface".
"""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, NamedTuple, Self, TypeAlias

from omnizarr.errors import InvalidKeyError, ReadOnlyError
from omnizarr.stores import conflicts, pool, threads
from omnizarr.stores.access import Access

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes, C-contiguous and of format "B"; never written to by the one who receives them."""

Span: TypeAlias = tuple[int, int | None]
"""(start, stop) in bytes, half-open; a negative start counts from the end, with stop None: the last bytes."""

Request: TypeAlias = tuple[str, Span | None]
"""A key, and the part of its value that is wanted (None: all of it)."""

Buffers: TypeAlias = list[Buffer]
"""Several values, or parts of one."""

Exclusion: TypeAlias = Literal["lock", "condition", "process"]
"""How writers of one value are kept from losing each other's changes; see `Store.exclusion`."""


class Parts(list[Buffer]):
    """Parts of one value, from a store that knows how large all of it is.

    Attributes
    ----------
    size : int, optional
        In bytes.
    """

    def __init__(self, parts: Iterable[Buffer], size: int | None) -> None:
        super().__init__(parts)
        self.size = size


Change: TypeAlias = Callable[[Buffer | None], Buffer | None]
"""From the value that is there (None: none) to the one that shall be there; the very same one means: leave it."""

Reader: TypeAlias = Callable[[Sequence[Span] | None], Buffers | None]
"""Returns parts of one value (None: all of it, as one part); None if there is no such key."""

RESERVED = ".omnizarr-"
"""How the names of our own temporary files begin; no segment of a key may, so they are never read or listed."""

_SEGMENT = rf"(?!\.\.?(?:/|\Z))(?!{re.escape(RESERVED)})[^/\\\x00\ud800-\udfff]+"
_is_key = re.compile(rf"(?![A-Za-z]:(?:/|\Z)){_SEGMENT}(?:/{_SEGMENT})*").fullmatch


class _KeysAndPrefixes(NamedTuple):
    keys: list[str]
    """Keys with nothing but a name after the prefix: ``a/b``."""
    prefixes: list[str]
    """Prefixes that have keys under them: ``a/d/``."""


class Listing(_KeysAndPrefixes):
    """What stands directly under a prefix; both in sorted order, and both in full, as they would be asked for.

    Attributes
    ----------
    others : list of str
        What stands there as well, but cannot be asked for: names that no key can have, links that lead out of the
        store. No part of the tuple.
    """

    others: Sequence[str]

    def __new__(cls, keys: list[str], prefixes: list[str], others: Sequence[str] = ()) -> Self:
        """Return keys and prefixes as a tuple."""
        self = super().__new__(cls, keys, prefixes)
        self.others = others
        return self

    def below(self, prefix: str) -> Listing:
        """Return the same as it is seen from a prefix that all of it lies under."""
        skip = len(prefix)
        return Listing(*([entry[skip:] for entry in entries] for entries in (*self, self.others)))


class Stamped(NamedTuple):
    """A value, and what tells it from all others that its key ever has."""

    value: Buffer | None
    stamp: Hashable | None


class Elsewhere(NamedTuple):
    """Where chunks are that a store hands on."""

    store: Store
    names: tuple[str, str, str, str]
    """What stands before the coordinates of a chunk, between them and behind them; the key of one that has none."""


class Store(ABC):
    """Keys and their values.

    Keys are Unicode strings, names joined by ``/``: no empty name, no ``.`` or ``..``, no
    backslash, no NUL, no drive letter. They are case-sensitive. Whatever breaks these rules raises
    `InvalidKeyError`, in reading too, in every store. A prefix is ``""`` (everything) or
    ends with a slash; a missing slash is added, so that ``"a"`` never means ``"ab/..."``.

    All verbs may be called by many threads at once. A value becomes visible whole or not at
    all. Stores pickle if what they stand for can be reached from another process.

    A store of one's own defines `get`, `set`, `delete` and `list`, `lock` if it can be written
    by more than one, and whatever else it does better than the fallbacks.
    """

    read_only: bool = False
    """Every verb that writes raises `ReadOnlyError`."""

    @property
    def concurrency(self) -> int:
        """How many requests had better be on their way at once; 1 where each is answered at once.

        More than 1 means that requests have latency: to get several values, request them concurrently, by `get_many` or
        from several threads.
        """
        return 1

    @property
    def exclusion(self) -> Exclusion:
        """How writers of disjoint parts of one value are kept from losing each other's changes.

        "lock"
            `lock` excludes all other writers of the data.
        "condition"
            `lock` keeps out the other threads of this process. Within it, what this thread reads is remembered, and
            `set` raises `ConflictError`, and writes nothing, if another writer has changed that value since. Then the
            whole change has to be repeated, beginning with the reading: see `update` and `conflicts.retrying`. `delete`
            is not conditional; to remove a value that others may be changing, write an equivalent value instead.
        "process"
            `lock` keeps out the other threads of this process, and nothing else does. Programs that share
            values need a lock of their own: see `omnizarr.stores.SynchronizedStore`.
        """
        return "process"

    @property
    def is_shared(self) -> bool:
        """Whether a copy of the store that is made by pickling reaches the same data, from other processes too.

        The fallback says no: what is written elsewhere must not be lost without a word.
        """
        return False

    @property
    def supports_listing(self) -> bool:
        """Whether keys can be listed. A plain web server cannot: it answers for keys that are known already."""
        return True

    # -- reading ------------------------------------------------------------------

    @abstractmethod
    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value of `key`, or the part of it within `span`; None if there is no such key.

        A span that reaches past the end is cut there.
        """

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Yield (position of the request, value) for each request, in whichever order they arrive.

        No more than `concurrency` are on their way at once, and requests are taken only as there is room for answers.
        """
        return pool.gather(lambda request: self.get(*request), requests, self.concurrency)

    def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return several parts of one value, all of the same version of it; None if there is no such key.

        A store that knows the size of the value without asking for it returns `Parts`.
        """
        value = self.get(key)
        return None if value is None else parts_of(value, spans)

    def read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Fill `out` from the value, from byte `start` on, as far as it reaches.

        Returns how many bytes the value has from `start` on: fewer than ``out.nbytes`` if the rest of `out` was left
        alone, more if the value goes on after `out` was full. None (and `out` untouched) if there is no such key.
        """
        value = self.get(key, (start, None))
        return None if value is None else fill(out, memoryview(value))

    def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""
        return self.size(key) is not None

    def has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Return whether one of the keys that begin with `prefix` and end with one of the names may have a value.

        False is certain; True may be a file that cannot be read, or of another case.
        """
        prefix = as_prefix(prefix)
        return any(value is not None for _, value in self.get_many((prefix + name, None) for name in names))

    def size(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes; None if there is no such key."""
        value = self.get(key)
        return None if value is None else len(value)

    def stamp(self, key: str) -> Hashable | None:
        """Return what tells the value that `key` has now from all others it ever has; None if nothing does.

        If the stamp is the same before and after reading a value, and again later, the value has not changed. This is
        cheaper than reading. The default implementation returns no stamps. A missing key has none.
        """
        check_key(key)
        return None

    def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Return the value of `key` together with its stamp; None if the stamp is `unless` still.

        One request where the store can do so. The stamp is None where it is unknown.
        """
        before = self.stamp(key)
        if before is not None and before == unless:
            return None
        value = self.get(key)
        return Stamped(value, before if before is not None and before == self.stamp(key) else None)

    def pinned(self, key: str) -> Reader | None:
        """Return what reads parts of `key`, all of one version over several calls; None if the store cannot do so.

        What is returned raises `ConflictError` if the value that its first call met is there no more.
        """
        check_key(key)
        return None

    def elsewhere(self, prefix: str) -> Elsewhere | None:
        """Return where the chunks below a prefix are, if this store hands all of them on as another one has them.

        A reader gets there what this store would hand on.
        """
        as_prefix(prefix)
        return None

    def access(self) -> Access | None:
        """Return how the native engine reaches the values by itself; None if it has to ask this object for each."""
        return None

    # -- writing ------------------------------------------------------------------

    @abstractmethod
    def set(self, key: str, value: Buffer) -> None:
        """Make `value` the value of `key`; the old one stays readable until the new one is complete."""

    def check_storable(self, key: str) -> None:
        """Raise `InvalidKeyError` or `StoreLimitError` if no value can be stored under `key`; nothing is asked for it.

        What passes may fail all the same: a file system has limits of its own.
        """
        check_key(key)

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Set several keys, in their order; each is atomic by itself, all together are not."""
        for key, value in items:
            self.set(key, value)

    def set_if_absent(self, key: str, value: Buffer) -> bool:
        """Set `key` unless it has a value already; return whether it was set. Of several callers exactly one wins."""
        with self.lock(key):
            if self.exists(key):
                return False
            self.set(key, value)
            return True

    def set_partial(self, key: str, start: int, value: Buffer) -> None:
        """Put `value` into the value of `key`, from byte `start` on; bytes between its old end and `start` become 0.

        The whole value is replaced at once. Takes the lock of the key.
        """
        if start < 0:
            raise ValueError(f"a value cannot be written from byte {start}")

        def change(old: Buffer | None) -> Buffer:
            new = bytearray(old or b"")
            new.extend(bytes(max(0, start - len(new))))
            new[start : start + len(value)] = value
            return new

        self.update(key, change)

    def update(self, key: str, change: Change) -> None:
        """Replace the value of `key` by what `change` makes of it, such that changes of others are not lost.

        `change` gets the value that is there, or None; it returns the new one, None to remove it, or the very one that
        it got to leave it. Where `exclusion` is "condition" it may be called several times, and must not return None
        for a value that is there.

        Raises
        ------
        ConflictError
            If others were faster again and again.
        """

        def once() -> None:
            with self.lock(key):
                old = self.get(key)
                new = change(old)
                if new is old:
                    return
                if new is None:
                    self.delete(key)
                else:
                    self.set(key, new)

        conflicts.retrying(once)

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove `key` and its value; one that is not there already counts as removed."""

    def delete_many(self, keys: Iterable[str]) -> None:
        """Remove several keys, in their order."""
        for key in keys:
            self.delete(key)

    def delete_prefix(self, prefix: str) -> None:
        """Remove every key under `prefix`; "" empties the store."""
        self.delete_many(list(self.list_prefix(prefix)))

    def copy_value(self, key: str, target: str) -> bool:
        """Copy the value of `key` to another key of this store; return whether there was one."""
        value = self.get(key)
        if value is None:
            self.check_writable()
            check_key(target)
            return False
        self.set(target, value)
        return True

    def move_prefix(self, prefix: str, target: str) -> bool:
        """Move every key under `prefix` to `target` in one step, and return True.

        Return False, with nothing done, where the store cannot do that: where there is something under `target`, and in
        all stores but those that can rename.
        """
        self.check_writable()
        as_prefix(prefix), as_prefix(target)
        return False

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Keep all others who lock `key` out while the ``with`` block runs: to read, change and write its value.

        Excludes threads, other stores upon the same data, and other processes where the store can be reached from them.
        The same thread may enter twice. Locks of different keys do not wait for each other. A process that is killed
        leaves no lock behind. `set` and `delete` alone take no lock.

        The fallback only excludes threads that use this very object: stores that can be reached in other ways do more.
        """
        self.check_writable()
        check_key(key)
        return threads.lock((id(self), key))

    # -- listing ------------------------------------------------------------------

    @abstractmethod
    def list(self) -> Iterator[str]:
        """Yield every key, in any order."""

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key under `prefix`, in any order.

        >>> from omnizarr.stores import MemoryStore
        >>> sorted(MemoryStore({"a/b": b"", "a/c/d": b"", "e/f/g": b""}).list_prefix("a/"))
        ['a/b', 'a/c/d']
        """
        prefix = as_prefix(prefix)
        return (key for key in self.list() if key.startswith(prefix))

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield every key under `prefix` with the size of its value in bytes, in any order.

        >>> from omnizarr.stores import MemoryStore
        >>> sorted(MemoryStore({"a/b": b"12", "a/c/d": b"", "e": b"3"}).list_sizes("a/"))
        [('a/b', 2), ('a/c/d', 0)]
        """
        sizes = pool.gather(lambda key: (key, self.size(key)), self.list_prefix(prefix), self.concurrency)
        return ((key, size) for _, (key, size) in sizes if size is not None)

    def list_dir(self, prefix: str) -> Listing:
        """Return the keys and the prefixes that stand directly under `prefix`.

        >>> from omnizarr.stores import MemoryStore
        >>> MemoryStore({"a/b": b"", "a/c": b"", "a/d/e": b"", "a/f/g": b""}).list_dir("a/")
        Listing(keys=['a/b', 'a/c'], prefixes=['a/d/', 'a/f/'])
        """
        return listing(self.list_prefix(prefix), as_prefix(prefix))

    # -- the store itself ---------------------------------------------------------

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002 - zarr-python's signature
        """Return a store upon the same data that may not be written, or (False) one that may."""
        clone = copy.copy(self)
        clone.read_only = read_only
        return clone

    def close(self) -> None:  # noqa: B027 - most stores have nothing to do
        """Write what is not written yet and let go of files; twice does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def origin(self) -> tuple[Hashable, str]:
        """Return what tells these data from all others, and the path in them at which this store begins.

        Two stores that reach the same data, by whichever way, have equal origins, or one lies below the other.
        """
        return id(self), ""

    def check_writable(self) -> None:
        """Raise `ReadOnlyError` if the store may not be written."""
        if self.read_only:
            raise ReadOnlyError("the store is read-only", store=repr(self), remedy="open it in a mode that writes")

    # -- the specification's names ------------------------------------------------

    def get_partial_values(self, key_ranges: Iterable[tuple[str, Span]]) -> Sequence[Buffer | None]:
        """Return parts of values in the order asked for; a range is (start, length), length None: to the end."""
        spans = [(key, (start, None if length is None else start + length)) for key, (start, length) in key_ranges]
        values: list[Buffer | None] = [None] * len(spans)
        for position, value in self.get_many(spans):
            values[position] = value
        return values

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Call `set_partial` for each (key, start, value)."""
        for key, start, value in key_start_values:
            self.set_partial(key, start, value)

    def erase(self, key: str) -> None:
        """Call `delete`."""
        self.delete(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        """Call `delete_many`."""
        self.delete_many(keys)

    def erase_prefix(self, prefix: str) -> None:
        """Call `delete_prefix`."""
        self.delete_prefix(prefix)


class Identity:
    """An object as a stamp: equal to itself alone, and kept, so that no other one can take its place in memory.

    >>> value = b"abc"
    >>> Identity(value) == Identity(value), Identity(value) == Identity(bytes(bytearray(value)))
    (True, False)
    """

    __slots__ = ("_kept",)

    def __init__(self, kept: object) -> None:
        self._kept = kept

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._kept is other._kept

    def __hash__(self) -> int:
        return hash((Identity, id(self._kept)))


def is_key(key: str) -> bool:
    """Return whether `key` is a valid key.

    >>> [is_key(key) for key in ("zarr.json", "a/c/0/1", "", "/a", "a//b", "a/../b", "C:/a")]
    [True, True, False, False, False, False, False]
    """
    return _is_key(key) is not None


def check_key(key: str) -> None:
    """Raise `InvalidKeyError` unless `key` is a valid key."""
    if _is_key(key) is None:
        raise invalid_key(key)


def invalid_key(key: str) -> InvalidKeyError:
    """Return the error that says what is wrong with `key`."""
    names = key.split("/")
    if not key:
        reason = "a key cannot be empty"
    elif "\0" in key:
        reason = "a key cannot contain NUL"
    elif "\\" in key:
        reason = "a key cannot contain a backslash"
    elif "" in names:
        reason = "a key cannot begin or end with a slash, or contain two in a row"
    elif "." in names or ".." in names:
        reason = "a key cannot contain '.' or '..'"
    elif any(name.startswith(RESERVED) for name in names):
        reason = f"names that begin with {RESERVED!r} are for temporary files"
    elif len(names[0]) == 2 and names[0].endswith(":"):
        reason = "a key cannot begin with a drive letter"
    else:
        reason = "a key must consist of Unicode characters"
    return InvalidKeyError(reason, key=key)


def as_prefix(prefix: str) -> str:
    """Return `prefix` with the slash at its end that belongs there; raise `InvalidKeyError` if it cannot be one."""
    if prefix:
        prefix = prefix.removesuffix("/")
        check_key(prefix)
        prefix += "/"
    return prefix


def listing(names: Iterable[str], prefix: str) -> Listing:
    """Return what stands directly under `prefix`.

    `names` are all that begin with it, keys or not, or at least those directly under it; a directory has a slash at its
    end.
    """
    keys: set[str] = set()
    prefixes: set[str] = set()
    others: set[str] = set()
    skip = len(prefix)
    for name in names:
        if len(name) == skip:
            continue  # the directory itself, as some archives have it
        end = name.find("/", skip)
        entry = name if end < 0 else name[: end + 1]
        if entry in prefixes:
            continue
        if is_key(name.removesuffix("/")):
            (keys if end < 0 else prefixes).add(entry)
        elif not is_key(entry.removesuffix("/")) and not _is_temporary(entry[skip:]):
            others.add(entry)
    return Listing(sorted(keys), sorted(prefixes), sorted(others))


def _is_temporary(name: str) -> bool:
    return name.startswith(RESERVED) and not name.endswith("/")


def bounds(span: Span, size: int) -> tuple[int, int]:
    """Return the start and the length of the part of `size` bytes that `span` means.

    >>> bounds((2, 5), 10), bounds((-4, None), 10), bounds((8, 99), 10), bounds((12, None), 10)
    ((2, 3), (6, 4), (8, 2), (10, 0))
    """
    start, stop = span
    if start < 0:
        start = max(0, start + size)
    start = min(start, size)
    stop = size if stop is None else min(stop, size)
    return start, max(0, stop - start)


def cut(value: Buffer, span: Span | None) -> Buffer:
    """Return the part of `value` that `span` means, without copying it."""
    if span is None:
        return value
    start, length = bounds(span, len(value))
    return memoryview(value)[start : start + length]


def parts_of(value: Buffer, spans: Iterable[Span]) -> Parts:
    """Return the parts of `value` that spans mean, without copying them."""
    return Parts([cut(value, span) for span in spans], len(value))


def fill(out: memoryview, value: memoryview) -> int:
    """Copy as much of `value` as fits to the beginning of `out`; return the size of `value`."""
    size = min(out.nbytes, value.nbytes)
    out.cast("B")[:size] = value[:size]
    return value.nbytes
