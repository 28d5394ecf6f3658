"""The same data in omnizarr and zarr-python 3, in one program.

`to_zarr_python` and `from_zarr_python` pass on a node or a store without copying data. Stores are adapted both
ways: `OmnizarrStore` is a store of zarr-python around one of omnizarr, `ZarrPythonStore` the reverse.

zarr-python takes no locks: the guarantees of omnizarr for writers that share a chunk or a document hold only
among those that write through omnizarr.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from typing import Any, ParamSpec, TypeAlias, TypeVar, overload

from omnizarr.api.opening import open_array, open_group
from omnizarr.errors import ReadOnlyError
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath
from omnizarr.stores import MemoryStore, PrefixStore, ReadOnlyStore, Store, verbs
from omnizarr.stores.base import Buffer, Span, as_prefix
from omnizarr.tools.translate.translated import TranslatedStore

# The first of these reports if zarr-python is missing.
# isort: off
from omnizarr.stores.remote.zarr_python import ZarrPythonStore as ZarrPythonStore, native
from omnizarr.interop.zarr_pipeline import Pipeline as Pipeline, accelerate as accelerate
import zarr
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.abc.store import Store as TheirStore
from zarr.core.buffer import Buffer as TheirBuffer
from zarr.core.buffer import BufferPrototype, default_buffer_prototype
# isort: on

T = TypeVar("T")
P = ParamSpec("P")
_List: TypeAlias = list  # within the classes, `list` is a method

_BATCH = 1000  # keys listed per call in a thread


# -- nodes -------------------------------------------------------------------------


@overload
def to_zarr_python(node: Array) -> zarr.Array[Any]: ...
@overload
def to_zarr_python(node: Group) -> zarr.Group: ...
@overload
def to_zarr_python(node: Store) -> TheirStore: ...
def to_zarr_python(node: Array | Group | Store) -> zarr.Array[Any] | zarr.Group | TheirStore:
    """Return the same array, group or store as an object of zarr-python.

    Parameters
    ----------
    node : Array, Group or Store
        An object of omnizarr. Nothing is copied: what one library writes, the other one reads.

    Returns
    -------
    zarr.Array, zarr.Group or zarr.abc.store.Store
        The object is writable if `node` is. A group that was opened without its consolidated metadata does not use it.

        Nodes of a format that zarr-python does not read (Zarr v1, the drafts of v3) are shown through an
        `omnizarr.storage.TranslatedStore`, as the root of a hierarchy of v3. They are always read-only.

    Raises
    ------
    NotRepresentableError
        If something would be lost in v3. ``to_zarr_python(TranslatedStore(...))`` shows the rest.
    TypeError
        If `node` is another object.

    Examples
    --------
    >>> import omnizarr
    >>> from omnizarr.interop.zarr_python import to_zarr_python
    >>> ours = omnizarr.create_array({}, shape=(4,), dtype="int16")
    >>> theirs = to_zarr_python(ours)
    >>> theirs[1:3] = 7
    >>> ours[:]
    array([0, 7, 7, 0], dtype=int16)
    """
    if isinstance(node, Store):
        return _store_to_zarr_python(node)
    if not isinstance(node, Array | Group):
        raise TypeError(f"{type(node).__name__} is neither an Array nor a Group nor a Store of omnizarr")
    where = (
        _place_of(node)
        if node.zarr_format in (2, 3)
        else {"store": OmnizarrStore(TranslatedStore(node, strict=True)), "zarr_format": 3, "mode": "r"}
    )
    if isinstance(node, Array):
        return zarr.open_array(**where)
    return zarr.open_group(**where, use_consolidated=None if node.is_consolidated else False)


def _place_of(node: Array | Group) -> dict[str, Any]:
    """Return the place of a node for zarr-python, as keywords."""
    mode = "r" if node.read_only else "r+"
    store = _store_to_zarr_python(node.store)
    return {"store": store, "path": node.path, "zarr_format": node.zarr_format, "mode": mode}


@overload
def from_zarr_python(node: zarr.Array[Any]) -> Array: ...
@overload
def from_zarr_python(node: zarr.Group) -> Group: ...
@overload
def from_zarr_python(node: TheirStore) -> Store: ...
def from_zarr_python(node: zarr.Array[Any] | zarr.Group | TheirStore) -> Array | Group | Store:
    """Return the same array, group or store as an object of omnizarr.

    Parameters
    ----------
    node : zarr.Array, zarr.Group or zarr.abc.store.Store
        An object of zarr-python 3. Nothing is copied: what one library writes, the other one reads.

    Returns
    -------
    Array, Group or Store
        The object is writable if `node` is. A group that was opened without its consolidated metadata does not use it.

    Raises
    ------
    TypeError
        If `node` is another object.

    Notes
    -----
    If omnizarr knows the data of a store (a directory, an archive open for reading, a store of obstore, a
    filesystem of fsspec), it opens the data with its own store and all its guarantees for writers. Any other
    store is used through its own methods: see `ZarrPythonStore`.

    Examples
    --------
    >>> import zarr
    >>> from omnizarr.interop.zarr_python import from_zarr_python
    >>> theirs = zarr.create_array({}, shape=(4,), dtype="int16")
    >>> ours = from_zarr_python(theirs)
    >>> ours[1:3] = 7
    >>> theirs[:]
    array([0, 7, 7, 0], dtype=int16)
    """
    if isinstance(node, TheirStore):
        return native(node)
    if not isinstance(node, zarr.Array | zarr.Group):
        raise TypeError(f"{type(node).__name__} is neither an Array nor a Group nor a Store of zarr-python 3")
    where = StorePath(native(node.store), node.path)
    if isinstance(node, zarr.Array):
        return open_array(where, zarr_format=node.metadata.zarr_format)
    is_consolidated = node.metadata.consolidated_metadata is not None
    return open_group(where, zarr_format=node.metadata.zarr_format, use_consolidated=None if is_consolidated else False)


def _store_to_zarr_python(store: Store) -> TheirStore:
    if isinstance(store, ZarrPythonStore) and store.read_only == store.store.read_only:
        return store.store
    return OmnizarrStore(store)  # not all of their stores can make a read-only view


# -- a store of zarr-python around one of omnizarr --------------------------------------


class OmnizarrStore(TheirStore):
    """A store of omnizarr in the form that zarr-python 3 needs.

    Parameters
    ----------
    store : Store
        The store. Closing this one closes it.
    read_only : bool, optional
        Whether to refuse to write. The default is that of `store`.

    Raises
    ------
    ReadOnlyError
        If ``read_only=False`` and `store` is read-only.

    Notes
    -----
    Values in memory are read directly, those of other stores in a thread, so that reads overlap and the event
    loop continues. The methods without ``async`` (`get_sync`, ...) block.

    A prefix ends at a name, with or without a slash at its end: ``"a"`` means ``"a/..."``, never ``"ab/..."``.

    Examples
    --------
    >>> import zarr
    >>> from omnizarr.storage import MemoryStore
    >>> from omnizarr.interop.zarr_python import OmnizarrStore
    >>> values = {}
    >>> _ = zarr.create_array(OmnizarrStore(MemoryStore(values)), shape=(4,), dtype="int16")
    >>> list(values)
    ['zarr.json']
    """

    supports_writes = True
    supports_deletes = True

    @property
    def supports_listing(self) -> bool:
        """That of the store."""
        return self._store.supports_listing

    def __init__(self, store: Store, *, read_only: bool | None = None) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"{type(store).__name__} is not a store of omnizarr")
        if read_only is None:
            read_only = store.read_only
        elif store.read_only and not read_only:
            raise ReadOnlyError("the store is read-only", store=repr(store), remedy="leave out read_only=False")
        super().__init__(read_only=read_only)
        self._store = store if store.read_only == read_only else store.with_read_only(read_only)
        self._waits = _waits(store)

    @property
    def store(self) -> Store:
        """The store of omnizarr."""
        return self._store

    async def _run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function`, in a thread if it may have to wait for a disk."""
        if self._waits:
            return await asyncio.to_thread(function, *args, **kwargs)
        return function(*args, **kwargs)

    # -- reading

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> TheirBuffer | None:
        """Return the value, or a part of it, cut at the end of the value; None if the key is missing."""
        return await self._run(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> TheirBuffer | None:
        """Like `get`, but blocking."""
        return _as_theirs(self._store.get(key, _span_of(byte_range)), prototype)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> _List[TheirBuffer | None]:
        """Return several values, or parts of them, in the order of the requests."""
        requests = [(key, _span_of(byte_range)) for key, byte_range in key_ranges]

        def get_many() -> _List[TheirBuffer | None]:
            values: _List[TheirBuffer | None] = [None] * len(requests)
            for position, value in verbs.get_many(self._store, requests):
                values[position] = _as_theirs(value, prototype)
            return values

        return await self._run(get_many)

    async def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""
        return await self._run(self._store.exists, key)

    async def getsize(self, key: str) -> int:
        """Return the size of a value in bytes. Raises FileNotFoundError if there is no such key."""
        size = await self._run(self._store.size, key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    async def getsize_prefix(self, prefix: str) -> int:
        """Return the size of all values under `prefix` in bytes."""

        def sizes() -> int:
            return sum(size for _, size in verbs.list_sizes(self._store, prefix))

        return await self._run(sizes)

    # -- writing

    async def set(self, key: str, value: TheirBuffer) -> None:
        """Store a value; others see it whole or not at all."""
        await self._run(self.set_sync, key, value)

    def set_sync(self, key: str, value: TheirBuffer) -> None:
        """Like `set`, but blocking."""
        self._check_writable()
        self._store.set(key, _as_ours(value))

    async def set_if_not_exists(self, key: str, value: TheirBuffer) -> None:
        """Store a value unless there is one. Of several callers, exactly one succeeds."""
        self._check_writable()
        await self._run(verbs.set_if_absent, self._store, key, _as_ours(value))

    async def delete(self, key: str) -> None:
        """Remove a key. Removing a missing key is not an error."""
        await self._run(self.delete_sync, key)

    def delete_sync(self, key: str) -> None:
        """Like `delete`, but blocking."""
        self._check_writable()
        self._store.delete(key)

    async def delete_dir(self, prefix: str) -> None:
        """Remove everything under `prefix`."""
        self._check_writable()
        await self._run(verbs.delete_prefix, self._store, prefix)

    # -- listing

    async def list(self) -> AsyncIterator[str]:
        """Yield every key."""
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield every key under `prefix`."""
        keys = await self._run(self._store.list_prefix, prefix)
        while batch := await self._run(_take, keys):
            for key in batch:
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names of keys and prefixes directly under `prefix`."""
        keys, prefixes = await self._run(self._store.list_dir, prefix)
        skip = len(as_prefix(prefix))
        for name in (*keys, *prefixes):
            yield name[skip:].removesuffix("/")

    # -- the store itself

    def with_read_only(self, read_only: bool = False) -> OmnizarrStore:  # noqa: FBT001, FBT002 - zarr-python's
        """Return a writable store for the same values, or (True) a read-only one."""
        return type(self)(self._store.with_read_only(read_only))

    def close(self) -> None:
        """Close the store of omnizarr. An archive is written then."""
        super().close()
        self._store.close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OmnizarrStore) and self._store == other._store and self.read_only == other.read_only

    def __hash__(self) -> int:
        return hash((OmnizarrStore, self._store))

    def __repr__(self) -> str:
        return f"OmnizarrStore({self._store!r})"


def _waits(store: Store) -> bool:
    """Return whether the methods of a store may take long enough to be worth a thread."""
    while isinstance(store, ReadOnlyStore | PrefixStore):
        store = store.store
    return not isinstance(store, MemoryStore)


def _take(keys: Iterator[str]) -> _List[str]:
    return list(islice(keys, _BATCH))


def _span_of(byte_range: ByteRequest | None) -> Span | None:
    match byte_range:
        case None:
            return None
        case RangeByteRequest(start=start, end=end) if start >= 0:
            return (start, max(start, end))
        case OffsetByteRequest(offset=offset) if offset >= 0:
            return (offset, None)
        case SuffixByteRequest(suffix=0):
            return (0, 0)
        case SuffixByteRequest(suffix=suffix) if suffix > 0:
            return (-suffix, None)
        case _:
            raise ValueError(f"Unexpected byte_range, got {byte_range!r}")


def _as_theirs(value: Buffer | None, prototype: BufferPrototype | None) -> TheirBuffer | None:
    if value is None:
        return None
    return (prototype or default_buffer_prototype()).buffer.from_bytes(value)


def _as_ours(value: TheirBuffer) -> Buffer:
    if not isinstance(value, TheirBuffer):
        raise TypeError(f"a value must be a Buffer of zarr-python, not {type(value).__name__}")
    return value.as_numpy_array().view("B").data
