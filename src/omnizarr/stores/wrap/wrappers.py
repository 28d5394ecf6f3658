"""Stores around other stores."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Exclusion,
    Listing,
    Reader,
    Request,
    Span,
    Stamped,
    Store,
    as_prefix,
    check_key,
    replaces_set_alone,
)


class WrapperStore(Store):
    """A store that passes every request on to another one; a base class for stores that do something in addition.

    Parameters
    ----------
    store : Store
        The store to wrap. Closing the wrapper closes it.
    """

    runs_in_event_loops = False
    """Whether the methods do nothing but ask the wrapped store and, briefly, compute.

    `omnizarr.aio` then needs no threads for them. They must hold no lock while they ask. Set it to True in your class;
    a subclass does not inherit it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read_only = store.read_only

    @property
    def concurrency(self) -> int:
        """The value of the wrapped store."""
        return self.store.concurrency

    @property
    def exclusion(self) -> Exclusion:
        """The value of the wrapped store."""
        return self.store.exclusion

    @property
    def sets_unlocked(self) -> bool:
        """The value of the wrapped store."""
        return self.store.sets_unlocked and not replaces_set_alone(self, WrapperStore)

    @property
    def is_shared(self) -> bool:
        """The value of the wrapped store."""
        return self.store.is_shared

    @property
    def supports_listing(self) -> bool:
        """The value of the wrapped store."""
        return self.store.supports_listing

    @property
    def lists_everything(self) -> bool:
        """The value of the wrapped store."""
        return self.store.lists_everything

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Pass the request on."""
        return self.store.get(key, span)

    def get_within(self, key: str, most: int) -> Buffer | None:
        """Pass the request on, unless a subclass reads in another way."""
        if type(self).get is WrapperStore.get:
            return self.store.get_within(key, most)
        return super().get_within(key, most)

    def get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Pass the request on, unless a subclass reads in another way."""
        own = type(self)
        if own.get is WrapperStore.get and own.get_within is WrapperStore.get_within:
            return self.store.get_many_within(keys, most)
        return super().get_many_within(keys, most)

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Pass the request on."""
        return self.store.get_many(requests)

    def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Pass the request on."""
        return self.store.get_spans(key, spans)

    def read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Pass the request on."""
        return self.store.read_into(key, out, start)

    def has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Pass the request on."""
        return self.store.has_any(prefix, names)

    def exists(self, key: str) -> bool:
        """Pass the request on."""
        return self.store.exists(key)

    def size(self, key: str) -> int | None:
        """Pass the request on."""
        return self.store.size(key)

    def stamp(self, key: str) -> Hashable | None:
        """Pass the request on."""
        return self.store.stamp(key)

    def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Pass the request on."""
        return self.store.get_stamped(key, unless)

    def get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Pass the request on, unless a subclass reads in another way."""
        if type(self).get_stamped is WrapperStore.get_stamped:
            return self.store.get_stamped_within(key, unless, most)
        return super().get_stamped_within(key, unless, most)

    def pinned(self, key: str) -> Reader | None:
        """Pass the request on."""
        return self.store.pinned(key)

    def set(self, key: str, value: Buffer) -> None:
        """Pass the request on."""
        self.check_writable()
        self.store.set(key, value)

    def check_storable(self, key: str) -> None:
        """Pass the request on."""
        self.store.check_storable(key)

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Pass the request on."""
        self.check_writable()
        self.store.set_many(items)

    def set_if_absent(self, key: str, value: Buffer) -> bool:
        """Pass the request on."""
        self.check_writable()
        return self.store.set_if_absent(key, value)

    def set_partial(self, key: str, start: int, value: Buffer) -> None:
        """Pass the request on."""
        self.check_writable()
        self.store.set_partial(key, start, value)

    def delete(self, key: str) -> None:
        """Pass the request on."""
        self.check_writable()
        self.store.delete(key)

    def delete_many(self, keys: Iterable[str]) -> None:
        """Pass the request on."""
        self.check_writable()
        self.store.delete_many(keys)

    def delete_prefix(self, prefix: str) -> None:
        """Pass the request on."""
        self.check_writable()
        self.store.delete_prefix(prefix)

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Pass the request on."""
        self.check_writable()
        return self.store.lock(key)

    def list(self) -> Iterator[str]:
        """Pass the request on."""
        return self.store.list()

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Pass the request on."""
        return self.store.list_prefix(prefix)

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Pass the request on."""
        return self.store.list_sizes(prefix)

    def list_dir(self, prefix: str) -> Listing:
        """Pass the request on."""
        return self.store.list_dir(prefix)

    def origin(self) -> tuple[Hashable, str]:
        """Pass the request on."""
        return self.store.origin()

    def above(self) -> tuple[Store, str] | None:
        """Pass the request on. The result has no wrapper, which may know this store only."""
        return self.store.above()

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002
        """Return the same wrapper around a read-only store, or (False) around a writable one."""
        clone = copy.copy(self)
        clone.store = self.store.with_read_only(read_only)
        clone.read_only = read_only
        return clone

    def close(self) -> None:
        """Pass the request on."""
        self.store.close()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.store))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"


class ReadOnlyStore(WrapperStore):
    """A read-only view of a store.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> ReadOnlyStore(MemoryStore()).set("a", b"")
    Traceback (most recent call last):
    ...
    omnizarr.errors.ReadOnlyError: ReadOnlyStore(MemoryStore(<0 keys at 0x...>)): the store is read-only; ...
    """

    runs_in_event_loops = True

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read_only = True

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002
        """Return this view, or (False) a writable store."""
        return self if read_only else self.store.with_read_only(read_only=False)


class PrefixStore(WrapperStore):
    """The keys under one prefix of a store, as a store of its own. Keys outside the prefix cannot be reached.

    Parameters
    ----------
    store : Store
        The store.
    prefix : str
        The prefix, with or without a slash at the end.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> store = PrefixStore(MemoryStore({"a/b/c": b"1", "d": b"2"}), "a")
    >>> list(store.list()), store.get("b/c")
    (['b/c'], b'1')
    """

    lists_everything = WrapperStore.lists_everything
    runs_in_event_loops = True

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self.prefix = as_prefix(prefix)

    def _full(self, key: str) -> str:
        check_key(key)
        return self.prefix + key

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read below the prefix."""
        return self.store.get(self._full(key), span)

    def get_within(self, key: str, most: int) -> Buffer | None:
        """Read below the prefix."""
        return self.store.get_within(self._full(key), most)

    def get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Read below the prefix."""
        return self.store.get_many_within(map(self._full, keys), most)

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Read below the prefix."""
        return self.store.get_many((self._full(key), span) for key, span in requests)

    def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read below the prefix."""
        return self.store.get_spans(self._full(key), spans)

    def read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Read below the prefix."""
        return self.store.read_into(self._full(key), out, start)

    def has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Look below the prefix."""
        prefix, names = as_prefix(prefix), list(names)
        for name in names:
            check_key(prefix + name)
        return self.store.has_any(self.prefix + prefix, names)

    def exists(self, key: str) -> bool:
        """Look below the prefix."""
        return self.store.exists(self._full(key))

    def size(self, key: str) -> int | None:
        """Look below the prefix."""
        return self.store.size(self._full(key))

    def stamp(self, key: str) -> Hashable | None:
        """Look below the prefix."""
        return self.store.stamp(self._full(key))

    def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Read below the prefix."""
        return self.store.get_stamped(self._full(key), unless)

    def get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Read below the prefix."""
        return self.store.get_stamped_within(self._full(key), unless, most)

    def pinned(self, key: str) -> Reader | None:
        """Read below the prefix."""
        return self.store.pinned(self._full(key))

    def set(self, key: str, value: Buffer) -> None:
        """Write below the prefix."""
        super().set(self._full(key), value)

    def check_storable(self, key: str) -> None:
        """Check it below the prefix."""
        super().check_storable(self._full(key))

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Write below the prefix."""
        super().set_many((self._full(key), value) for key, value in items)

    def set_if_absent(self, key: str, value: Buffer) -> bool:
        """Write below the prefix."""
        return super().set_if_absent(self._full(key), value)

    def set_partial(self, key: str, start: int, value: Buffer) -> None:
        """Write below the prefix."""
        super().set_partial(self._full(key), start, value)

    def delete(self, key: str) -> None:
        """Delete below the prefix."""
        super().delete(self._full(key))

    def delete_many(self, keys: Iterable[str]) -> None:
        """Delete below the prefix."""
        super().delete_many(self._full(key) for key in keys)

    def delete_prefix(self, prefix: str) -> None:
        """Delete below the prefix."""
        super().delete_prefix(self.prefix + as_prefix(prefix))

    def copy_value(self, key: str, target: str) -> bool:
        """Copy below the prefix."""
        self.check_writable()
        return self.store.copy_value(self._full(key), self._full(target))

    def move_prefix(self, prefix: str, target: str) -> bool:
        """Move below the prefix."""
        self.check_writable()
        return self.store.move_prefix(self.prefix + as_prefix(prefix), self.prefix + as_prefix(target))

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock below the prefix."""
        return super().lock(self._full(key))

    def list(self) -> Iterator[str]:
        """List below the prefix."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """List below the prefix."""
        skip = len(self.prefix)
        return (key[skip:] for key in self.store.list_prefix(self.prefix + as_prefix(prefix)))

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """List below the prefix."""
        skip = len(self.prefix)
        return ((key[skip:], size) for key, size in self.store.list_sizes(self.prefix + as_prefix(prefix)))

    def list_dir(self, prefix: str) -> Listing:
        """List below the prefix."""
        return self.store.list_dir(self.prefix + as_prefix(prefix)).below(self.prefix)

    def origin(self) -> tuple[Hashable, str]:
        """Return the origin of the store, with the prefix appended."""
        data, path = self.store.origin()
        return data, f"{path}/{self.prefix[:-1]}".strip("/")

    def above(self) -> tuple[Store, str] | None:
        """Return a store with a shorter prefix, or none."""
        prefix, _, name = self.prefix[:-1].rpartition("/")
        return (PrefixStore(self.store, prefix) if prefix else self.store), name

    def __repr__(self) -> str:
        return f"PrefixStore({self.store!r}, {self.prefix!r})"
