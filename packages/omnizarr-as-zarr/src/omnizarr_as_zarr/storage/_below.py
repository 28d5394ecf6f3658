"""From stores of zarr-python to those of omnizarr."""

from __future__ import annotations

import copy
import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path, PurePath
from typing import Any, Final

from omnizarr import stores
from omnizarr.nodes.location import StorePath as Place
from omnizarr.stores import kinds, threads, urls, verbs
from omnizarr.stores.base import Buffer, Listing, Span, answers, as_prefix, check_key, is_key, listing
from omnizarr.stores.resolve import other_format
from omnizarr_as_zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from omnizarr_as_zarr.core.buffer import default_buffer_prototype
from omnizarr_as_zarr.core.config import config
from omnizarr_as_zarr.core.sync import collect_aiterator, sync
from omnizarr_as_zarr.storage._classes import (
    VERBS,
    LoggingStore,
    OwnStore,
    StorePath,
    WrapperStore,
)

_NEAR: Final = (WrapperStore, LoggingStore)
"""Stores that answer when the store below does."""

_OWN: Final = {verb: getattr(OwnStore, verb) for verb in VERBS}


class CalledStore(stores.Store):
    """A store that another package wrote for zarr-python, or a subclass; called through its own methods.

    Parameters
    ----------
    outer : zarr.abc.store.Store
    """

    def __init__(self, outer: Store) -> None:
        self.outer = outer
        self.read_only = outer.read_only

    @property
    def _innermost(self) -> Store:
        store = self.outer
        while isinstance(store, WrapperStore):
            store = store._store  # noqa: SLF001 - whose part this is
        return store

    @property
    def features(self) -> stores.Features:
        """The number of simultaneous requests in zarr-python: such a store does not say how long a request takes."""
        if type(self.outer) in _NEAR and isinstance(self._innermost, OwnStore):
            return stores.Features(self._innermost._inner.features.concurrency)  # noqa: SLF001 - the store below
        return stores.Features(int(config.get("async.concurrency")))

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Ask for the value, or a part of it."""
        check_key(key)
        if span is not None and span[1] is not None and span[1] <= span[0]:
            return b"" if self.exists(key) else None
        value = sync(self.outer.get(key, default_buffer_prototype(), _range_of(span)))
        return None if value is None else value.to_bytes()

    @answers(verbs.has_any)
    def _has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Ask for each until one is there; no values are read."""
        prefix = as_prefix(prefix)
        return any(self.exists(prefix + name) for name in names)

    def exists(self, key: str) -> bool:
        """Ask for it."""
        check_key(key)
        return sync(self.outer.exists(key))

    def size(self, key: str) -> int | None:
        """Ask for it, if it exists."""
        return sync(self.outer.getsize(key)) if self.exists(key) else None

    def set(self, key: str, value: Buffer) -> None:
        """Store a copy of the value."""
        self.check_writable()
        check_key(key)
        sync(self.outer.set(key, default_buffer_prototype().buffer.from_bytes(memoryview(value).tobytes())))

    def delete(self, key: str) -> None:
        """Remove the key. A directory with this name is not a key, although a `LocalStore` would remove it."""
        self.check_writable()
        check_key(key)
        store = self._innermost
        if not (isinstance(store, OwnStore) and store._is_directory(key)):  # noqa: SLF001 - the store below
            sync(self.outer.delete(key))

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Take the lock of the store below, if it is one of omnizarr, else one among the threads of this process."""
        self.check_writable()
        check_key(key)
        store = self._innermost
        return store._inner.lock(key) if isinstance(store, OwnStore) else threads.lock((id(store), key))  # noqa: SLF001

    def list(self) -> Iterator[str]:
        """Yield the keys there are now."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys there are now."""
        prefix = as_prefix(prefix)
        return (key for key in collect_aiterator(self.outer.list_prefix(prefix)) if is_key(key))

    def list_dir(self, prefix: str) -> Listing:
        """List the names, and ask which of them are keys."""
        prefix = as_prefix(prefix)
        names = [prefix + name.rstrip("/") for name in collect_aiterator(self.outer.list_dir(prefix.rstrip("/")))]
        return listing((name if is_key(name) and self.exists(name) else f"{name}/" for name in names), prefix)

    def origin(self) -> tuple[Hashable, str]:
        """Return the origin of the store below."""
        store = self._innermost
        return store._inner.origin() if isinstance(store, OwnStore) else (("as_zarr", id(store)), "")  # noqa: SLF001

    def with_read_only(self, read_only: bool = True) -> stores.Store:  # noqa: FBT001, FBT002
        """Return a store on the same data that may not be written, or (False) one that may."""
        clone = copy.copy(self)
        try:
            clone.outer = self.outer.with_read_only(read_only)
        except NotImplementedError:
            if not read_only:
                raise
        clone.read_only = read_only
        return clone

    def close(self) -> None:
        """Close the store."""
        self.outer.close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CalledStore) and self.outer == other.outer and self.read_only == other.read_only

    def __hash__(self) -> int:
        return hash((CalledStore, type(self.outer)))

    def __repr__(self) -> str:
        return repr(self.outer)


def _range_of(span: Span | None) -> ByteRequest | None:
    if span is None or span == (0, None):
        return None
    start, stop = span
    if start < 0:
        return SuffixByteRequest(-start)
    return OffsetByteRequest(start) if stop is None else RangeByteRequest(start, stop)


def inner_of(store: Store) -> stores.Store:
    """Return a store of zarr-python as one of omnizarr: the wrapped one, unless its class overrides methods."""
    kind = type(store)
    if isinstance(store, OwnStore) and all(getattr(kind, verb) is own for verb, own in _OWN.items()):
        return store._inner.with_read_only() if store.read_only and not store._inner.read_only else store._inner  # noqa: SLF001
    return CalledStore(store)


def below(value: Any) -> Any:
    """Return omnizarr's equivalent of a store of zarr-python, or of a place in one; else the value itself."""
    if isinstance(value, Store):
        return inner_of(value)
    return Place(inner_of(value.store), value.path) if isinstance(value, StorePath) else value


def place_given(value: Any) -> Any:
    """Return omnizarr's equivalent of what a program gives as a store.

    A path for a new directory can end as a file of another format, such as "x.nc": omnizarr refuses that, but
    programs for zarr-python write such directories.
    """
    if isinstance(value, str | PurePath) and kinds.foreign(os.fspath(value)) is not None:
        text = str(value)
        path = urls.local_path(text) if urls.scheme_of(text) else text
        if path and not Path(path).expanduser().exists():
            store, inner = stores.resolve(value, "a")
            if not inner and other_format(store) is not None:
                return store
    return below(value)
