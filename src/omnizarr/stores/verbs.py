"""What stores can do, as functions. Each asks the store for a better way, and has a default implementation.

>>> from omnizarr.stores import MemoryStore, verbs
>>> store = MemoryStore({"a/b": b"12", "a/c/d": b""})
>>> sorted(verbs.list_sizes(store, "a/"))
[('a/b', 2), ('a/c/d', 0)]

The methods of `Store` are verbs, too, under the same names: a wrapper gets all requests as verbs (see `Store.handle`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeVar

from omnizarr.errors import Function, NotRepresentableError, Remedy, StoreLimitError
from omnizarr.stores import pool
from omnizarr.stores.access import Access, Blocks, Chunks, Divided, Finder
from omnizarr.stores.base import (
    TOO_LARGE,
    Buffer,
    Buffers,
    Elements,
    Elsewhere,
    Extent,
    InNewFolder,
    Method,
    Reader,
    Request,
    Span,
    Stamped,
    Store,
    Verb,
    answers_itself,
    as_prefix,
    check_key,
    fill,
    parts_of,
)

if TYPE_CHECKING:
    from omnizarr.model import ArrayMetadata

P = ParamSpec("P")
T = TypeVar("T")


def verb(
    names: str, *uses: str, writes: bool = False, bypasses: bool = False
) -> Callable[[Callable[Concatenate[Store, P], T]], Verb[P, T]]:
    """Make a verb of its default implementation."""
    return lambda default: Verb(default, names, uses, writes=writes, bypasses=bypasses)


def _method(names: str, method: Callable[Concatenate[Store, P], T], *uses: str, writes: bool = False) -> Method[P, T]:
    return Method(method, names, uses, writes=writes, bypasses=False)


# -- the methods of every store -----------------------------------------------------------

get = _method("key", Store.get)
exists = _method("key", Store.exists)
size = _method("key", Store.size)
set = _method("key", Store.set, writes=True)  # noqa: A001 - the name of the method
delete = _method("key", Store.delete, writes=True)
lock = _method("key", Store.lock, writes=True)
list = _method("", Store.list)  # noqa: A001 - the name of the method
list_prefix = _method("prefix", Store.list_prefix, "list")
list_dir = _method("prefix", Store.list_dir, "list", "list_prefix")

METHODS: Final = (get, exists, size, set, delete, lock, list, list_prefix, list_dir)

# -- reading ------------------------------------------------------------------------------


def check_limit(store: Store, key: str, size: int, most: int) -> None:
    """Raise StoreLimitError if a value of this size is larger than allowed."""
    if size > most:
        raise StoreLimitError(
            TOO_LARGE,
            store=repr(store),
            key=key,
            found=f"{size} bytes",
            expected=f"at most {most} bytes",
        )


@verb("key", "get")
def get_within(store: Store, key: str, most: int) -> Buffer | None:
    """Return the value of `key`; None if the key is missing.

    Raises StoreLimitError if it has more than `most` bytes: a store that knows the size reads nothing then.
    """
    value = store.get(key)
    if value is not None:
        check_limit(store, key, len(value), most)
    return value


@verb("keys", "get")
def get_many_within(store: Store, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
    """Yield what `get_within` returns for each key, like `get_many`."""
    if answers_itself(store, get_within):
        yield from pool.gather(lambda key: get_within(store, key, most), keys, store.features.concurrency)
        return
    asked: dict[int, str] = {}

    def requests() -> Iterator[Request]:
        for position, key in enumerate(keys):
            asked[position] = key
            yield key, None

    for position, value in get_many(store, requests()):
        key = asked.pop(position)
        if value is not None:
            check_limit(store, key, len(value), most)
        yield position, value


@verb("pairs", "get")
def get_many(store: Store, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
    """Yield (position of the request, value) for each request, in the order in which answers arrive.

    At most `concurrency` requests are sent at once. Requests are taken from the iterable only when there is
    room for answers.
    """
    return pool.gather(lambda request: store.get(*request), requests, store.features.concurrency)


@verb("key", "get")
def get_spans(store: Store, key: str, spans: Sequence[Span]) -> Buffers | None:
    """Return several parts of the same version of one value; None if the key is missing.

    A store that knows the size of the value without a further request returns `Parts`.
    """
    value = store.get(key)
    return None if value is None else parts_of(value, spans)


@verb("key", "get")
def read_into(store: Store, key: str, out: memoryview, start: int = 0) -> int | None:
    """Fill `out` from the value, from byte `start` on, as far as it reaches.

    Returns how many bytes the value has from `start` on. If this is less than ``out.nbytes``, the rest of
    `out` is unchanged; if it is more, the value does not fit. Returns None, without changing `out`, if the
    key is missing.
    """
    value = store.get(key, (start, None))
    return None if value is None else fill(out, memoryview(value))


@verb("prefix", "get", "exists")
def has_any(store: Store, prefix: str, names: Iterable[str]) -> bool:
    """Return whether one of the keys that begin with `prefix` and end with one of the names may have a value.

    False is certain. True may be a file that cannot be read, or a name with another case.
    """
    prefix = as_prefix(prefix)
    requests = ((prefix + name, None) for name in names)
    return any(map(lambda answer: answer[1] is not None, get_many(store, requests)))  # noqa: C417 - in no variable


@verb("key")
def stamp(store: Store, key: str) -> Hashable | None:
    """Return a stamp that distinguishes the current value of `key` from all others; None without stamps.

    If the stamp is the same before and after reading a value, and again later, the value has not changed.
    This is cheaper than reading. The default implementation returns no stamps. A missing key has no stamp.
    """
    check_key(key)
    return None


@verb("key", "get")
def get_stamped(store: Store, key: str, unless: Hashable | None = None) -> Stamped | None:
    """Return the value of `key` together with its stamp; None if the stamp is still `unless`.

    This is one request if the store can do so. The stamp is None if it is unknown.
    """
    before = stamp(store, key)
    if before is not None and before == unless:
        return None
    value = store.get(key)
    return Stamped(value, before if before is not None and before == stamp(store, key) else None)


@verb("key", "get")
def get_stamped_within(store: Store, key: str, unless: Hashable | None, most: int) -> Stamped | None:
    """Return what `get_stamped` does. Raises StoreLimitError like `get_within`."""
    if store.features.concurrency == 1 and type(store).size is not Store.size:  # no request that others would wait for
        check_limit(store, key, store.size(key) or 0, most)
    found = get_stamped(store, key, unless)
    if found is not None and found.value is not None:
        check_limit(store, key, len(found.value), most)
    return found


@verb("key", "get")
def pinned(store: Store, key: str) -> Reader | None:
    """Return a function that reads parts of `key`, all of one version over several calls; None if the store cannot.

    The function raises `ConflictError` if the value that its first call read has been replaced.
    """
    check_key(key)
    return None


@verb("prefix", "get", bypasses=True)
def elsewhere(store: Store, prefix: str) -> Elsewhere | None:
    """Return where the chunks below a prefix are, if this store passes them all on unchanged from another store.

    A reader finds there the same chunks.
    """
    as_prefix(prefix)
    return None


@verb("prefix", "get", bypasses=True)
def elements(store: Store, prefix: str) -> Elements | None:
    """Return what reads elements of the array with chunks below a prefix, if the store makes chunks of other arrays.

    A reader gets the same elements as from the chunks, which need not be made.
    """
    as_prefix(prefix)
    return None


@verb("prefix")
def replaces_text(store: Store, prefix: str, looks: bool) -> bool:  # noqa: FBT001
    """Return whether elements of the array below a prefix have U+FFFD for bytes of their file that are not UTF-8.

    It is asked after a copy. `looks`: the copy had all elements, so chunks that this store has not made, as others read
    them, are read. Otherwise, only those count that it has made.
    """
    as_prefix(prefix)
    return False


@verb("prefix", "get")
def folder(store: Store, prefix: str) -> str | None:
    """Return the path or URL to which the rest of a key below a prefix is appended to name its file.

    None if values are not files of their own. The result has no secrets, and ends with a slash.
    """
    as_prefix(prefix)
    return None


@verb("keys", "get")
def extents(store: Store, keys: Iterable[str]) -> Iterator[tuple[int, Extent | Buffer | None]]:
    """Yield (position of the key, which bytes of which file its value is) for each key, as answers arrive.

    None means a missing key. A value that is in no file, but in what tells the places of others, is yielded itself.

    Raises
    ------
    NotRepresentableError
        If a value is no part of a file, or is compressed there.
    """
    base = folder(store, "")
    if base is None:
        raise NotRepresentableError(
            "the values of this store are no parts of files that other programs can read",
            store=repr(store),
            expected="a directory, a zip archive, an object store, a web server, or references",
            remedy=Remedy("copy the hierarchy to one of them first: {copy_node}", copy_node=Function()),
        )

    def look(key: str) -> Extent | None:
        found = store.size(key)
        return None if found is None else Extent(base + key, 0, found)

    yield from pool.gather(look, keys, max(store.features.concurrency, 1))


@verb("", "get", "set", "delete", bypasses=True)
def access(store: Store) -> Access | None:
    """Return how the native engine reaches the values directly; None if it must ask this object for each value."""
    return None


@verb("prefix", "get", bypasses=True)
def chunks(store: Store, prefix: str) -> Chunks | None:
    """Return where the chunks of the array whose keys begin with `prefix` lie in files that the native engine can read.

    None if they are values of their own. This reads the index of the array.
    """
    return None


@verb("prefix", "get", bypasses=True)
def places(store: Store, prefix: str) -> Finder | None:
    """Return what finds chunks of the array whose keys begin with `prefix` in files that the native engine can read.

    None if they are values of their own, or `chunks` says where all of them lie. This looks for nothing yet.
    """
    return None


@verb("prefix", "get", bypasses=True)
def blocks(store: Store, prefix: str) -> Blocks | None:
    """Return how the native engine reads the chunks of an array as blocks of N5; None if they are none."""
    return None


@verb("prefix", "get", bypasses=True)
def divided(store: Store, prefix: str) -> Divided | None:
    """Return the array whose keys begin with `prefix` with smaller chunks, each of which is one piece of its file.

    None if there is no such division, or no need of one. This reads the index of the array.
    """
    return None


@verb("", bypasses=True)
def remembered(store: Store) -> Sequence[str]:
    """Return the keys that this thread has read under a lock, so that `set` depends on what it has read."""
    return ()


# -- writing ------------------------------------------------------------------------------


@verb("prefix")
def as_stored(store: Store, prefix: str, metadata: ArrayMetadata, is_copy: bool) -> ArrayMetadata:  # noqa: FBT001
    """Return the metadata of a new array as this store can hold it: the same elements in another order of bytes.

    `prefix` is that of the array, whose chunks may be written before its document. With `is_copy`, codecs and chunks
    may be others, too. A store for any array returns `metadata` itself. Raises NotRepresentableError if the store has
    no such arrays.
    """
    return metadata


@verb("key")
def check_storable(store: Store, key: str) -> None:
    """Raise `InvalidKeyError` or `StoreLimitError` if no value can be stored under `key`. This sends no request.

    A key that passes may still fail, because a file system has limits of its own.
    """
    check_key(key)


@verb("pairs", "set", writes=True)
def set_many(store: Store, items: Iterable[tuple[str, Buffer]]) -> None:
    """Set several keys, in their order. Each is atomic, but not all together."""
    for key, value in items:
        store.set(key, value)


@verb("key", "set", "lock", writes=True)
def set_if_absent(store: Store, key: str, value: Buffer) -> bool:
    """Set `key` unless it has a value, and return whether it was set. Of several callers, exactly one succeeds."""
    with store.lock(key):
        if store.exists(key):
            return False
        store.set(key, value)
        return True


@verb("key", "set", writes=True)
def set_in_new_folder(store: Store, key: str, value: Buffer) -> InNewFolder:
    """Set the first value of a directory that does not exist yet; if that is not possible, return "".

    It takes no lock, which saves most of the time of creating a small node. See `sets_unlocked`.
    """
    return ""


@verb("key", "get", "set", "lock", writes=True)
def set_partial(store: Store, key: str, start: int, value: Buffer) -> None:
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

    store.update(key, change)


@verb("keys", "delete", writes=True)
def delete_many(store: Store, keys: Iterable[str]) -> None:
    """Remove several keys, in their order."""
    for key in keys:
        store.delete(key)


@verb("prefix", "delete", writes=True)
def delete_prefix(store: Store, prefix: str) -> None:
    """Remove every key under `prefix`. "" empties the store."""
    delete_many(store, [*store.list_prefix(prefix)])


@verb("two keys", "get", "set", writes=True)
def copy_value(store: Store, key: str, target: str) -> bool:
    """Copy the value of `key` to another key of this store, and return whether `key` has a value."""
    value = store.get(key)
    if value is None:
        store.check_writable()
        check_key(target)
        return False
    store.set(target, value)
    return True


@verb("two prefixes", "get", "set", "delete", writes=True)
def move_prefix(store: Store, prefix: str, target: str) -> bool:
    """Move every key under `prefix` to `target` in one step, and return True.

    Return False, without doing anything, if the store cannot rename, or if there is something under `target`.
    """
    store.check_writable()
    as_prefix(prefix), as_prefix(target)
    return False


# -- listing ------------------------------------------------------------------------------


@verb("prefix", "list", "list_prefix", "size")
def list_sizes(store: Store, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield every key under `prefix` with the size of its value in bytes, in any order.

    >>> from omnizarr.stores import MemoryStore
    >>> sorted(list_sizes(MemoryStore({"a/b": b"12", "a/c/d": b"", "e": b"3"}), "a/"))
    [('a/b', 2), ('a/c/d', 0)]
    """
    keys = store.list_prefix(prefix)
    for _, (key, size) in pool.gather(lambda key: (key, store.size(key)), keys, store.features.concurrency):
        if size is not None:
            yield key, size


@verb("prefix", "list", "list_prefix", "get")
def list_digests(store: Store, prefix: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield every key under `prefix` with a digest of its value, in any order.

    Values with equal digests are equal, in other stores, too. Equal values may have different digests, and a value
    may have none. Raises NotImplementedError, at the latest with the first key, if the store knows no digests without
    reading: that is the default implementation.
    """
    raise NotImplementedError("the store lists no digests")


# -- the specification's names --------------------------------------------------------------


def get_partial_values(store: Store, key_ranges: Iterable[tuple[str, Span]]) -> Sequence[Buffer | None]:
    """Return parts of values in the order of the request. A range is (start, length); length None: to the end."""
    spans = [(key, (start, None if length is None else start + length)) for key, (start, length) in key_ranges]
    values: dict[int, Buffer | None] = dict(get_many(store, spans))
    return [values[position] for position in range(len(spans))]


def set_partial_values(store: Store, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
    """Call `set_partial` for each (key, start, value)."""
    for key, start, value in key_start_values:
        set_partial(store, key, start, value)
