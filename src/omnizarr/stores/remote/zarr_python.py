"""Values in a store of zarr-python 3, its own or one of another library, such as Icechunk."""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from omnizarr.errors import MissingDependencyError, StoreError
from omnizarr.stores import failures, threads, verbs
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Features,
    Listing,
    Request,
    Span,
    Store,
    answers,
    as_prefix,
    check_key,
    is_key,
    listing,
)
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.remote import loops
from omnizarr.support import extras, workers
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.stores.local import zip as archives
    from omnizarr.stores.remote import fsspec as files
    from omnizarr.stores.remote import object as objects
else:
    files = Lazy("omnizarr.stores.remote.fsspec")
    objects = Lazy("omnizarr.stores.remote.object")
    archives = Lazy("omnizarr.stores.local.zip")

try:
    import zarr
    from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
    from zarr.abc.store import Store as TheirStore
    from zarr.core import sync
    from zarr.core.buffer import default_buffer_prototype
    from zarr.storage import FsspecStore as TheirFsspecStore
    from zarr.storage import LocalStore as TheirLocalStore
    from zarr.storage import LoggingStore as TheirLoggingStore
    from zarr.storage import MemoryStore as TheirMemoryStore
    from zarr.storage import ObjectStore as TheirObjectStore
    from zarr.storage import StorePath as TheirStorePath
    from zarr.storage import WrapperStore as TheirWrapperStore
    from zarr.storage import ZipStore as TheirZipStore
except ImportError as _error:
    raise MissingDependencyError(
        f"sharing stores with zarr-python needs the package 'zarr', which cannot be imported ({_error})",
        remedy=extras.remedy("zarr"),
    ) from _error
if zarr.__name__ != "zarr":
    raise MissingDependencyError(
        "sharing stores with zarr-python needs zarr-python itself",
        found=f"the module {zarr.__name__} under its name",
        remedy="use that one's own stores and nodes",
    )
if "set_partial_values" in TheirStore.__abstractmethods__:  # methods that a store needed before 3.1.3
    raise MissingDependencyError(
        "sharing stores with zarr-python needs a later release of it",
        found=zarr.__version__,
        expected="3.1.3 or later",
        remedy=extras.remedy("zarr"),
    )

T = TypeVar("T")
_List: TypeAlias = list  # within the class, `list` is a method

_LARGE: Final = 1 << 26  # bytes; before a larger part of a value is read, the size of the value is requested
_PROBE: Final = 1 << 24  # bytes; if a bounded value has more, its size is requested
_WITH_SIZES: Final = TheirLocalStore, TheirZipStore
_BOUNDED: Final = *_WITH_SIZES, TheirFsspecStore, TheirObjectStore
"""Stores that report a size quickly, or accept a range past the end of a value. Others may fail."""
_MANY: Final = 64  # requests at once on their event loop
# zarr-python 3.1.6 reads from memory without its event loop, which takes ten times as long.
_MEMORY_ANSWERS_AT_ONCE: Final = hasattr(TheirMemoryStore, "get_sync")

# A class derived from these may make values when it is asked for them.
_COMPLETE: Final = frozenset({TheirMemoryStore, TheirLocalStore, TheirZipStore, TheirObjectStore})
_PASSING_ON: Final = frozenset({TheirWrapperStore, TheirLoggingStore})


def _running_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of zarr-python, which it starts at its first use.

    A thread lets it do that, because no Ctrl-C comes there: after one in between, the loop would never run.
    """
    if sync.loop[0] is None:
        workers.start(sync._get_loop, "omnizarr-zarr-python").wait()  # noqa: SLF001 - zarr-python has no other way
    return sync._get_loop()  # noqa: SLF001


class ZarrPythonStore(Store):
    """An adapter for a store of zarr-python 3.

    Parameters
    ----------
    store : zarr.abc.store.Store
        The store. Closing this one closes it.

    Notes
    -----
    Each method runs on the event loop of zarr-python and waits for it, so you cannot use it from a coroutine on
    that loop. `get_many` sends up to 64 requests at once, except for stores in memory and in local files.

    `lock`, and with it `set_if_absent` and `set_partial`, excludes only threads of this process that use the
    same store through omnizarr, because stores of zarr-python have no locks. Whether writes are atomic depends
    on the store.

    If a key is also a prefix of others, `list_dir` lists it as a key.

    Examples
    --------
    >>> import zarr.storage
    >>> from omnizarr.interop.zarr_python import ZarrPythonStore
    >>> store = ZarrPythonStore(zarr.storage.MemoryStore())
    >>> store.set("a/b", b"abc")
    >>> store.get("a/b", (1, None)), list(store.list())
    (b'bc', ['a/b'])
    """

    def __init__(self, store: TheirStore) -> None:
        if not isinstance(store, TheirStore):
            raise TypeError(f"{type(store).__name__} is not a store of zarr-python 3")
        self._store = store
        self.read_only = store.read_only
        self._features: Features | None = None

    @property
    def store(self) -> TheirStore:
        """The store of zarr-python."""
        return self._store

    @property
    def features(self) -> Features:
        """64 concurrent requests, but 1 in memory and in local files; not shared, unless omnizarr's own store would be.

        The listing is complete if the class of the store is known to list every key: those of zarr-python itself, and
        Icechunk's.
        """
        if self._features is None:
            innermost, store = _innermost(self._store), self._store
            while type(store) in _PASSING_ON:
                store = store._store  # type: ignore[attr-defined]  # noqa: SLF001
            of_data, own = native(innermost), native(store)
            is_complete = _lists_all(store) if isinstance(own, ZarrPythonStore) else own.features.listing == "complete"
            self._features = Features(
                1 if isinstance(innermost, (TheirMemoryStore, TheirLocalStore, TheirZipStore)) else _MANY,
                is_shared=not isinstance(of_data, ZarrPythonStore) and of_data.features.is_shared,
                listing="none" if not self._store.supports_listing else "complete" if is_complete else "partial",
            )
        return self._features

    # -- reading ------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read the value, or a part of it."""
        check_key(key)
        if _MEMORY_ANSWERS_AT_ONCE and isinstance(self._store, TheirMemoryStore):
            value = self._store.get_sync(key)
            return None if value is None else (value if span is None else value[slice(*span)]).to_bytes()
        return self._await(self._read(key, span), key)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Read the value, unless it is too large."""
        if not isinstance(_innermost(self._store), _BOUNDED):
            return verbs.get_within.default(self, key, most)
        check_key(key)
        return self._await(self._read_within(key, most), key)

    async def _read_within(self, key: str, most: int) -> Buffer | None:
        if isinstance(_innermost(self._store), _WITH_SIZES):
            verbs.check_limit(self, key, await self._size(key) or 0, most)
            return await self._ask(key, None)
        first = min(most, _PROBE) + 1
        value = await self._ask(key, RangeByteRequest(0, first))
        if value is None or len(value) < first:
            return value
        verbs.check_limit(self, key, await self._size(key) or 0, most)
        return await self._ask(key, None)

    @answers(verbs.get_many_within)
    def _get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Read concurrently on the event loop of zarr-python."""
        if self.features.concurrency == 1 or not isinstance(_innermost(self._store), _BOUNDED):
            yield from verbs.get_many_within.default(self, keys, most)
            return

        def task(key: str) -> Coroutine[Any, Any, Buffer | None]:
            check_key(key)
            return self._read_within(key, most)

        for key, position, call in loops.gather(task, keys, self.features.concurrency, _running_loop()):
            yield position, self._told(call.result, key)

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Read concurrently on the event loop of zarr-python."""
        if self.features.concurrency == 1:
            yield from verbs.get_many.default(self, requests)
            return

        def task(request: Request) -> Coroutine[Any, Any, Buffer | None]:
            check_key(request[0])
            return self._read(*request)

        for (key, _), position, call in loops.gather(task, requests, self.features.concurrency, _running_loop()):
            yield position, self._told(call.result, key)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read one part, or several of a value that cannot change; otherwise cut them from the whole value."""
        if not spans or not (len(spans) == 1 or _is_snapshot(self._store)):
            return verbs.get_spans.default(self, key, spans)
        parts = dict(verbs.get_many(self, ((key, span) for span in spans)))
        found = [part for _, part in sorted(parts.items(), key=itemgetter(0)) if part is not None]
        return found if len(found) == len(spans) else None

    async def _read(self, key: str, span: Span | None) -> Buffer | None:
        if span is None or span == (0, None):
            return await self._ask(key, None)
        start, stop = span
        if start < 0:
            return await self._read_last(key, -start)
        if stop is None:
            return await self._ask(key, OffsetByteRequest(start))
        if stop - start > _LARGE:  # some of their stores allocate as much as is requested
            stop = min(stop, await self._size(key) or 0)
        if stop <= start:  # an error for some of their stores
            return b"" if await self._there(key) else None
        return await self._ask(key, RangeByteRequest(start, stop))

    async def _read_last(self, key: str, length: int) -> Buffer | None:
        value = await self._ask(key, SuffixByteRequest(length))
        if value is None or len(value) == length:
            return value
        # The value is shorter than requested, and their stores disagree on what they return then.
        value = await self._ask(key, None)
        return None if value is None else value[-length:]

    async def _ask(self, key: str, byte_range: ByteRequest | None) -> Buffer | None:
        try:
            value = await self._store.get(key, default_buffer_prototype(), byte_range)
        except Exception as error:
            if _cannot_be_there(error, key):
                return None
            if byte_range is None or not failures.is_past_the_end(error):
                raise
            return b"" if await self._there(key) else None
        return None if value is None else self._bytes(value)

    def _bytes(self, value: Any) -> Buffer:
        """Return the bytes of a value of theirs."""
        found: bytes = value.to_bytes()
        return found

    async def _size(self, key: str) -> int | None:
        try:
            return await self._store.getsize(key) if await self._there(key) else None
        except FileNotFoundError:
            return None

    async def _there(self, key: str) -> bool:
        try:
            return await self._store.exists(key)
        except Exception as error:
            if _cannot_be_there(error, key):
                return False
            raise

    def exists(self, key: str) -> bool:
        """Ask the store."""
        check_key(key)
        return self._await(self._there(key), key)

    def size(self, key: str) -> int | None:
        """Ask for the size, if the key exists: their LocalStore also has sizes of directories."""
        check_key(key)
        return self._await(self._size(key), key)

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Store a copy of the value."""
        self.check_writable()
        check_key(key)
        data = default_buffer_prototype().buffer.from_bytes(memoryview(value).tobytes())
        self._await(self._store.set(key, data), key)

    def delete(self, key: str) -> None:
        """Remove the key. Raises StoreError if it exists and the store cannot remove anything."""
        self.check_writable()
        if not self.exists(key):  # their LocalStore would remove a directory of that name, with everything in it
            return
        try:
            self._await(self._store.delete(key), key)
        except NotImplementedError as error:
            raise StoreError("the store cannot remove a value", store=repr(self), key=key) from error

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock the key for the threads of this process that use this store, or the same dictionary."""
        self.check_writable()
        check_key(key)
        return threads.lock((id(self._values), key))

    @property
    def _values(self) -> object:
        """What stores can share: a dictionary becomes a new MemoryStore each time it is opened."""
        return getattr(self._store, "_store_dict", self._store)

    # -- listing ------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """Yield the current keys."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the current keys under `prefix`."""
        prefix = as_prefix(prefix)
        keys = self._await(_collect(self._store.list_prefix(prefix)), prefix)
        return (key for key in keys if key.startswith(prefix) and is_key(key))

    def list_dir(self, prefix: str) -> Listing:
        """List the names, and ask which of them are keys."""
        prefix = as_prefix(prefix)

        async def found() -> Listing:
            names = {
                prefix + name.rstrip("/") for name in await _collect(self._store.list_dir(prefix.removesuffix("/")))
            }
            asked = list(filter(is_key, names))
            are_keys = await asyncio.gather(*map(self._there, asked))
            keys = {name for name, is_one in zip(asked, are_keys, strict=True) if is_one}
            return listing((name if name in keys else f"{name}/" for name in names), prefix)

        return self._await(found(), prefix)

    # -- the store itself ---------------------------------------------------------

    def _await(self, answer: Coroutine[Any, Any, T], key: str = "") -> T:
        """Run a coroutine on the event loop of zarr-python, and return its result."""
        return self._told(partial(loops.run, answer, _running_loop()), key)

    def _told(self, result: Callable[[], T], key: str) -> T:
        try:
            return result()
        except Exception as error:
            # An error that a store of theirs raises itself (such as a ValueError) is about how it was called.
            if type(error).__module__ == "builtins" and not isinstance(error, OSError):
                raise
            raise failures.translate(error, self, key)

    def origin(self) -> tuple[Hashable, str]:
        """Return the origin of omnizarr's own store for the same data, or the identity of the store.

        It looks behind stores of zarr-python that wrap others and do not change keys.
        """
        inner = _innermost(self._store)
        if isinstance(inner, TheirLocalStore):
            return LocalStore(inner.root).origin()
        if isinstance(inner, TheirZipStore):
            return ("zip", os.path.realpath(inner.path)), ""
        if isinstance(inner, TheirMemoryStore):
            return ("mapping", id(inner._store_dict)), ""  # noqa: SLF001 - two stores can share it
        store = native(inner)
        return (("zarr-python", id(inner)), "") if isinstance(store, ZarrPythonStore) else store.origin()

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002
        """Return a read-only store for the same data, or (False) a writable one."""
        upgrade = self._store.read_only and not read_only
        clone = ZarrPythonStore(self._store.with_read_only(read_only=False)) if upgrade else copy.copy(self)
        clone.read_only = read_only
        return clone

    def close(self) -> None:
        """Close the store of zarr-python."""
        self._store.close()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZarrPythonStore) or self.read_only != other.read_only:
            return False
        return self._values is other._values or self._store == other._store

    def __hash__(self) -> int:
        return hash((ZarrPythonStore, type(self._store)))

    def __repr__(self) -> str:
        return f"ZarrPythonStore({self._store!r})"


def native(store: TheirStore) -> Store:
    """Return a store for the same data: omnizarr's own if it knows the data, otherwise an adapter."""
    inner = getattr(store, "store", None)
    if isinstance(inner, Store):  # a store of omnizarr, wrapped for zarr-python
        return inner
    # Classes derived from these may behave differently. (Their MemoryStore holds buffers that only they can
    # read.)
    if type(store) is TheirLocalStore:
        return LocalStore(store.root, read_only=store.read_only)
    if type(store) is TheirZipStore and store.read_only and getattr(store, "_zmode", None) == "r":
        return archives.ZipStore(store.path)
    if type(store) is TheirObjectStore:
        adapted = objects.adapt(store.store, "r" if store.read_only else "a", {})
        return ZarrPythonStore(store) if adapted is None else adapted[0]
    if type(store) is TheirFsspecStore:
        return files.upon(store.fs, store.path, read_only=store.read_only or None)
    return ZarrPythonStore(store)


def adapt(storelike: Any, mode: str, options: Mapping[str, Any]) -> tuple[Store, str] | None:
    """Return store and path for a Store or StorePath of zarr-python; None for other objects."""
    path = ""
    if isinstance(storelike, TheirStorePath):
        storelike, path = storelike.store, storelike.path
    if not isinstance(storelike, TheirStore):
        return None
    if options:
        raise StoreError("storage_options mean nothing to a store that exists already", found=sorted(options))
    return native(storelike), path


def _innermost(store: TheirStore) -> TheirStore:
    while isinstance(store, TheirWrapperStore):
        store = store._store  # noqa: SLF001
    return store


def _lists_all(store: TheirStore) -> bool:
    return type(store) in _COMPLETE or _is_snapshot(store)


def _is_snapshot(store: TheirStore) -> bool:
    """Return whether no other writer can change what the store shows, as in sessions of Icechunk."""
    return type(_innermost(store)).__module__.partition(".")[0] == "icechunk"


def _cannot_be_there(error: Exception, key: str) -> bool:
    """Return whether a store that holds only Zarr reports that the key is none of Zarr, as Icechunk and tifffile do."""
    if type(error) is KeyError:
        return error.args == (key,) or f"key not found at `{key}`" in str(error)
    of_icechunk = type(error).__module__.partition(".")[0] == "icechunk"
    return of_icechunk and any(each in str(error) for each in ("invalid zarr key", "node not found at"))


async def _collect(keys: AsyncIterator[str]) -> _List[str]:
    return [key async for key in keys]
