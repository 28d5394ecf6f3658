"""The interface of stores, which hold keys and bytes.

A store maps keys to values. Four methods make a store (`get`, `set`, `delete`, `list`). All other methods have
default implementations based on these, and a store overrides those that it can do better.

A missing key is normal, and reads as None. A value becomes visible whole or not at all. A prefix is "" or ends
with a slash (a missing one is added). Keys that break the rules (``..``, a leading slash, ...) raise
`InvalidKeyError` in every method of every store. The tests of a store inherit ``tests/stores/contract.py``.

Latency
    Each store states how many requests to send at once (`Store.concurrency`). If it is more than 1, request several
    values concurrently. The engine has as many threads; each waits for a chunk, decodes it and takes the next.
    `omnizarr.aio` uses the same codecs without threads.

Writers
    If `Store.exclusion` is "condition" (object stores), a lock excludes only threads of this process, and remembers
    what was read within it. `Store.set` is then a conditional put, and raises `ConflictError` if another writer was
    faster. A change of a value (`Store.update`) or a document (`omnizarr.stores.conflicts.retried`) then starts again
    by reading. So a change of documents must be a function of the stored documents, and may run several times. A chunk
    that becomes empty is replaced by a chunk of fill values, because a deletion cannot be conditional. An append first
    clears what is beyond the edge, then reserves its place by making the array longer, then writes the block.

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

from omnizarr.errors import InvalidKeyError, ReadOnlyError, StoreLimitError
from omnizarr.stores import conflicts, pool, threads
from omnizarr.stores.access import Access

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes, C-contiguous and of format "B". The receiver never writes to them."""

Span: TypeAlias = tuple[int, int | None]
"""(start, stop) in bytes, half-open. A negative start counts from the end; then stop is None."""

Request: TypeAlias = tuple[str, Span | None]
"""A key, and the part of its value to read (None: all of it)."""

Buffers: TypeAlias = list[Buffer]
"""Several values, or parts of one value."""

Exclusion: TypeAlias = Literal["lock", "condition", "process"]
"""How writers of one value are kept from losing each other's changes. See `Store.exclusion`."""


InNewFolder: TypeAlias = Literal["", "set", "alone"]
"""Whether a value was set in a new directory. "alone": after that, nothing else was there."""


class Parts(list[Buffer]):
    """Parts of one value, from a store that also knows the size of the whole value.

    Attributes
    ----------
    size : int, optional
        Size of the whole value in bytes.
    """

    def __init__(self, parts: Iterable[Buffer], size: int | None) -> None:
        super().__init__(parts)
        self.size = size


Change: TypeAlias = Callable[[Buffer | None], Buffer | None]
"""Takes the stored value (None: none) and returns the new one. Returning the same object means no change."""

Reader: TypeAlias = Callable[[Sequence[Span] | None], Buffers | None]
"""Returns parts of one value (None: all of it, as one part); None if the key is missing."""

RESERVED = ".omnizarr-"
"""How names of our temporary files begin. No part of a key may begin like this, so they are never read or listed."""

TOO_LARGE = "the value is larger than it may be"

# Possessive quantifiers halve the time for long keys.
_SEGMENT = rf"(?!\.(?:\.?(?:/|\Z)|{re.escape(RESERVED[1:])}))[^/\\\x00\ud800-\udfff]++"
_is_key = re.compile(rf"(?![A-Za-z]:(?:/|\Z)){_SEGMENT}(?:/{_SEGMENT})*+").fullmatch


class _KeysAndPrefixes(NamedTuple):
    keys: list[str]
    """Keys directly under the prefix: ``a/b``."""
    prefixes: list[str]
    """Prefixes of keys further below: ``a/d/``."""


class Listing(_KeysAndPrefixes):
    """What is directly under a prefix. Keys and prefixes are sorted, and complete as you would use them in requests.

    Attributes
    ----------
    others : list of str
        Other names under the prefix, which you cannot request: names that no key can have, and links that lead
        out of the store. Not part of the tuple.
    """

    others: Sequence[str]

    def __new__(cls, keys: list[str], prefixes: list[str], others: Sequence[str] = ()) -> Self:
        """Return keys and prefixes as a tuple."""
        self = super().__new__(cls, keys, prefixes)
        self.others = others
        return self

    def below(self, prefix: str) -> Listing:
        """Return the same listing as seen from a prefix that contains all of it."""
        skip = len(prefix)
        return Listing(*([entry[skip:] for entry in entries] for entries in (*self, self.others)))


class Stamped(NamedTuple):
    """A value, and a stamp that distinguishes it from all other values that its key ever has."""

    value: Buffer | None
    stamp: Hashable | None


class Elsewhere(NamedTuple):
    """The place in another store of the chunks that a store passes on."""

    store: Store
    names: tuple[str, str, str, str]
    """Parts of a key before, between and after the coordinates; the key of a chunk without coordinates."""


class Store(ABC):
    """Keys and their values.

    Keys are Unicode strings: names joined by ``/``, with no empty name, no ``.`` or ``..``, no backslash, no NUL
    and no drive letter. They are case-sensitive. A key that breaks these rules raises `InvalidKeyError` in every
    store, for reading too. A prefix is ``""`` (everything) or ends with a slash; a missing slash is added, so
    that ``"a"`` never means ``"ab/..."``.

    Threads can share a store. A value becomes visible whole or not at all. Stores can be pickled if other
    processes can reach their data.

    To write your own store, define `get`, `set`, `delete` and `list`, and `lock` if there can be several writers.
    Override other methods that your store can do better than the default implementations.
    """

    read_only: bool = False
    """Whether every method that writes raises `ReadOnlyError`."""

    @property
    def concurrency(self) -> int:
        """How many requests to send at once; 1 if each is answered immediately.

        More than 1 means that requests have latency. To get several values, request them concurrently, with
        `get_many` or from several threads.
        """
        return 1

    @property
    def exclusion(self) -> Exclusion:
        """How writers of disjoint parts of one value are kept from losing each other's changes.

        "lock"
            `lock` excludes all other writers of the data.
        "condition"
            `lock` excludes the other threads of this process. Within it, the store remembers what this thread
            reads. If another writer has changed that value since, `set` raises `ConflictError` and writes
            nothing. Then repeat the whole change, starting with the reading: see `update` and
            `conflicts.retrying`. `delete` is not conditional; to remove a value that others may be changing,
            write an equivalent value instead.
        "process"
            `lock` excludes only the other threads of this process. Programs that share values need a lock of
            their own: see `omnizarr.stores.SynchronizedStore`.
        """
        return "process"

    @property
    def is_shared(self) -> bool:
        """Whether a pickled copy of the store reaches the same data, also in other processes.

        The default is False, so that values written elsewhere are not lost silently.
        """
        return False

    @property
    def supports_listing(self) -> bool:
        """Whether keys can be listed. A plain web server cannot list; it only answers requests for known keys."""
        return True

    @property
    def lists_everything(self) -> bool:
        """Whether the listing is known to have every key that has a value.

        Some stores make values when they are asked for them, and list few of their keys, or none. If this is False, a
        key that is not listed may have a value. So only a request for that key shows that it is missing, and tools
        ask for each chunk (see `omnizarr.nodes.holdings`).

        The default is False. Return True in your store if `list` yields every key: tools then need fewer requests. A
        subclass that has its own `get` or `exists` does not inherit the answer.
        """
        return False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if ("get" in own or "exists" in own) and "lists_everything" not in own:
            cls.lists_everything = Store.lists_everything  # type: ignore[method-assign]

    # -- reading ------------------------------------------------------------------

    @abstractmethod
    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value of `key`, or the part of it within `span`; None if the key is missing.

        A span that reaches past the end is cut there.
        """

    def get_within(self, key: str, most: int) -> Buffer | None:
        """Return the value of `key`; None if the key is missing.

        Raises StoreLimitError if it has more than `most` bytes: a store that knows the size reads nothing then.
        """
        value = self.get(key)
        if value is not None:
            self.check_limit(key, len(value), most)
        return value

    def get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Yield what `get_within` returns for each key, like `get_many`."""
        if type(self).get_within is not Store.get_within:
            yield from pool.gather(lambda key: self.get_within(key, most), keys, self.concurrency)
            return
        asked: dict[int, str] = {}

        def requests() -> Iterator[Request]:
            for position, key in enumerate(keys):
                asked[position] = key
                yield key, None

        for position, value in self.get_many(requests()):
            key = asked.pop(position)
            if value is not None:
                self.check_limit(key, len(value), most)
            yield position, value

    def check_limit(self, key: str, size: int, most: int) -> None:
        """Raise StoreLimitError if a value of this size is larger than allowed."""
        if size > most:
            raise StoreLimitError(
                TOO_LARGE,
                store=repr(self),
                key=key,
                found=f"{size} bytes",
                expected=f"at most {most} bytes",
            )

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Yield (position of the request, value) for each request, in the order in which answers arrive.

        At most `concurrency` requests are sent at once. Requests are taken from the iterable only when there is
        room for answers.
        """
        return pool.gather(lambda request: self.get(*request), requests, self.concurrency)

    def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return several parts of the same version of one value; None if the key is missing.

        A store that knows the size of the value without a further request returns `Parts`.
        """
        value = self.get(key)
        return None if value is None else parts_of(value, spans)

    def read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Fill `out` from the value, from byte `start` on, as far as it reaches.

        Returns how many bytes the value has from `start` on. If this is less than ``out.nbytes``, the rest of
        `out` is unchanged; if it is more, the value does not fit. Returns None, without changing `out`, if the
        key is missing.
        """
        value = self.get(key, (start, None))
        return None if value is None else fill(out, memoryview(value))

    def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""
        return self.size(key) is not None

    def has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Return whether one of the keys that begin with `prefix` and end with one of the names may have a value.

        False is certain. True may be a file that cannot be read, or a name with another case.
        """
        prefix = as_prefix(prefix)
        requests = ((prefix + name, None) for name in names)
        return any(map(lambda answer: answer[1] is not None, self.get_many(requests)))  # noqa: C417 - in no variable

    def size(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes; None if the key is missing."""
        value = self.get(key)
        return None if value is None else len(value)

    def stamp(self, key: str) -> Hashable | None:
        """Return a stamp that distinguishes the current value of `key` from all others; None without stamps.

        If the stamp is the same before and after reading a value, and again later, the value has not changed.
        This is cheaper than reading. The default implementation returns no stamps. A missing key has no stamp.
        """
        check_key(key)
        return None

    def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Return the value of `key` together with its stamp; None if the stamp is still `unless`.

        This is one request if the store can do so. The stamp is None if it is unknown.
        """
        before = self.stamp(key)
        if before is not None and before == unless:
            return None
        value = self.get(key)
        return Stamped(value, before if before is not None and before == self.stamp(key) else None)

    def get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Return what `get_stamped` does. Raises StoreLimitError like `get_within`."""
        if self.concurrency == 1 and type(self).size is not Store.size:  # no request that others would wait for
            self.check_limit(key, self.size(key) or 0, most)
        found = self.get_stamped(key, unless)
        if found is not None and found.value is not None:
            self.check_limit(key, len(found.value), most)
        return found

    def pinned(self, key: str) -> Reader | None:
        """Return a function that reads parts of `key`, all of one version over several calls; None if the store cannot.

        The function raises `ConflictError` if the value that its first call read has been replaced.
        """
        check_key(key)
        return None

    def elsewhere(self, prefix: str) -> Elsewhere | None:
        """Return where the chunks below a prefix are, if this store passes them all on unchanged from another store.

        A reader finds there the same chunks.
        """
        as_prefix(prefix)
        return None

    def access(self) -> Access | None:
        """Return how the native engine reaches the values directly; None if it must ask this object for each value."""
        return None

    def remembered(self) -> Sequence[str]:
        """Return the keys that this thread has read under a lock, so that `set` depends on what it has read."""
        return ()

    # -- writing ------------------------------------------------------------------

    @abstractmethod
    def set(self, key: str, value: Buffer) -> None:
        """Set the value of `key`. The old value stays readable until the new one is complete."""

    def check_storable(self, key: str) -> None:
        """Raise `InvalidKeyError` or `StoreLimitError` if no value can be stored under `key`. This sends no request.

        A key that passes may still fail, because a file system has limits of its own.
        """
        check_key(key)

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Set several keys, in their order. Each is atomic, but not all together."""
        for key, value in items:
            self.set(key, value)

    def set_if_absent(self, key: str, value: Buffer) -> bool:
        """Set `key` unless it has a value, and return whether it was set. Of several callers, exactly one succeeds."""
        with self.lock(key):
            if self.exists(key):
                return False
            self.set(key, value)
            return True

    def set_in_new_folder(self, key: str, value: Buffer) -> InNewFolder:
        """Set the first value of a directory that does not exist yet; if that is not possible, return "".

        It takes no lock, which saves most of the time of creating a small node. See `sets_unlocked`.
        """
        return ""

    def set_partial(self, key: str, start: int, value: Buffer) -> None:
        """Write `value` into the value of `key`, from byte `start` on. Bytes between its old end and `start` become 0.

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
        """Replace the value of `key` by the result of `change`, without losing changes of other writers.

        `change` gets the stored value, or None, and returns the new one. It returns None to remove the value, or
        the same object to leave it. If `exclusion` is "condition", `change` may be called several times, and must
        not return None for an existing value.

        Raises
        ------
        ConflictError
            If other writers were faster repeatedly.
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
        """Remove `key` and its value. Removing a missing key is not an error."""

    def delete_many(self, keys: Iterable[str]) -> None:
        """Remove several keys, in their order."""
        for key in keys:
            self.delete(key)

    def delete_prefix(self, prefix: str) -> None:
        """Remove every key under `prefix`. "" empties the store."""
        self.delete_many(list(self.list_prefix(prefix)))

    def copy_value(self, key: str, target: str) -> bool:
        """Copy the value of `key` to another key of this store, and return whether `key` has a value."""
        value = self.get(key)
        if value is None:
            self.check_writable()
            check_key(target)
            return False
        self.set(target, value)
        return True

    def move_prefix(self, prefix: str, target: str) -> bool:
        """Move every key under `prefix` to `target` in one step, and return True.

        Return False, without doing anything, if the store cannot rename, or if there is something under `target`.
        """
        self.check_writable()
        as_prefix(prefix), as_prefix(target)
        return False

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Exclude all others that lock `key` while the ``with`` block runs: to read, change and write its value.

        This excludes threads, other stores for the same data, and other processes that can reach the store. The
        same thread may enter twice. Locks of different keys do not wait for each other. A killed process leaves
        no lock behind. `set` and `delete` alone take no lock.

        The default implementation excludes only threads that use the same object. Stores that can be reached in
        other ways override it.
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
        keys = self.list_prefix(prefix)
        for _, (key, size) in pool.gather(lambda key: (key, self.size(key)), keys, self.concurrency):
            if size is not None:
                yield key, size

    def list_dir(self, prefix: str) -> Listing:
        """Return the keys and the prefixes directly under `prefix`.

        >>> from omnizarr.stores import MemoryStore
        >>> MemoryStore({"a/b": b"", "a/c": b"", "a/d/e": b"", "a/f/g": b""}).list_dir("a/")
        Listing(keys=['a/b', 'a/c'], prefixes=['a/d/', 'a/f/'])
        """
        return listing(self.list_prefix(prefix), as_prefix(prefix))

    # -- the store itself ---------------------------------------------------------

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002 - zarr-python's signature
        """Return a read-only store for the same data, or (False) a writable one."""
        clone = copy.copy(self)
        clone.read_only = read_only
        return clone

    def close(self) -> None:  # noqa: B027 - most stores have nothing to do
        """Write what is not written yet, and close files. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def origin(self) -> tuple[Hashable, str]:
        """Return an identity of the data, and the path in it at which this store begins.

        Two stores that reach the same data, in whatever way, have equal origins, or one is below the other.
        """
        return id(self), ""

    def above(self) -> tuple[Store, str] | None:
        """Return a store that begins one directory further up, and the name of that of this store; None if unknown."""
        return None

    @property
    def sets_unlocked(self) -> bool:
        """Whether `set_in_new_folder` can set a value whose lock another writer holds.

        Then a writer that holds the lock must create a value with `set_if_absent`. It is False for subclasses that
        override `set` alone, because they expect every value there.
        """
        return False

    def check_writable(self) -> None:
        """Raise `ReadOnlyError` if the store is read-only."""
        if self.read_only:
            raise ReadOnlyError("the store is read-only", store=repr(self), remedy="open it in a mode that writes")

    # -- the specification's names ------------------------------------------------

    def get_partial_values(self, key_ranges: Iterable[tuple[str, Span]]) -> Sequence[Buffer | None]:
        """Return parts of values in the order of the request. A range is (start, length); length None: to the end."""
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
    """An object as a stamp. It equals only itself, and is kept, so that no other object can take its place in memory.

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


def replaces_set_alone(store: Store, base: type[Store]) -> bool:
    """Return whether the class of a store has its own `set`, but the `set_if_absent` of `base`."""
    own = type(store)
    return own.set is not base.set and own.set_if_absent is base.set_if_absent


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
    """Return the error that states what is wrong with `key`."""
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
    """Return `prefix` with a slash at its end. Raises `InvalidKeyError` if it cannot be a prefix."""
    if prefix:
        prefix = prefix.removesuffix("/")
        check_key(prefix)
        prefix += "/"
    return prefix


def listing(names: Iterable[str], prefix: str) -> Listing:
    """Return what is directly under `prefix`.

    `names` are all names that begin with it, keys or not, or at least those directly under it. A directory has a
    slash at its end.
    """
    keys: set[str] = set()
    prefixes: set[str] = set()
    others: set[str] = set()
    skip = len(prefix)
    for name in names:
        if len(name) == skip:
            continue  # the directory itself, as some archives contain it
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
    """Return start and length of the part that `span` means, in a value of `size` bytes.

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
    """Return the parts of `value` that `spans` mean, without copying them."""
    return Parts([cut(value, span) for span in spans], len(value))


def fill(out: memoryview, value: memoryview) -> int:
    """Copy as much of `value` as fits to the beginning of `out`, and return the size of `value`."""
    size = min(out.nbytes, value.nbytes)
    out.cast("B")[:size] = value[:size]
    return value.nbytes
