"""Stores around other stores."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, TypeVar

from omnizarr.stores import verbs
from omnizarr.stores.base import Buffer, Features, Listing, Span, Store, Verb, as_prefix, check_key

T = TypeVar("T")


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
    def features(self) -> Features:
        """The features of the wrapped store."""
        return self.store.features

    _replaced: ClassVar[frozenset[str]] = frozenset()
    """The methods that subclasses replace."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "handle" not in vars(cls):
            cls._replaced |= {verb.name for verb in verbs.METHODS if verb.name in vars(cls)}

    def handle(self, verb: Verb[..., Any], *args: Any) -> Any:
        """Pass a request on to the wrapped store: override this method to see or change each.

        It gets the requests of all methods and of all functions of `omnizarr.stores.verbs`. NotImplemented asks for the
        default implementation of the verb, which uses the methods of this wrapper. So it is if a subclass replaces a
        method for which the verb stands: nothing bypasses the method.
        """
        name = self._answers.get(verb)
        if name is not None:
            return getattr(self, name)(*args)
        if verb.writes:
            self.check_writable()
        return verb(self.store, *args) if self._passes_on(verb) else NotImplemented

    def _passes_on(self, verb: Verb[..., Any]) -> bool:
        # A method that a subclass replaces comes here as ``super().exists``, to be passed on.
        return not verb.bypasses and (verb.name in self._replaced or self._replaced.isdisjoint(verb.uses))

    def _request(self, verb: Verb[..., T], *args: Any) -> T:
        answer = self.handle(verb, *args)
        return verb.default(self, *args) if answer is NotImplemented else answer

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Pass the request on."""
        return self._request(verbs.get, key, span)

    def exists(self, key: str) -> bool:
        """Pass the request on."""
        return self._request(verbs.exists, key)

    def size(self, key: str) -> int | None:
        """Pass the request on."""
        return self._request(verbs.size, key)

    def set(self, key: str, value: Buffer) -> None:
        """Pass the request on."""
        self._request(verbs.set, key, value)

    def delete(self, key: str) -> None:
        """Pass the request on."""
        self._request(verbs.delete, key)

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Pass the request on."""
        return self._request(verbs.lock, key)

    def list(self) -> Iterator[str]:
        """Pass the request on."""
        return self._request(verbs.list)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Pass the request on."""
        return self._request(verbs.list_prefix, prefix)

    def list_dir(self, prefix: str) -> Listing:
        """Pass the request on."""
        return self._request(verbs.list_dir, prefix)

    @property
    def place(self) -> str:
        """The value of the wrapped store."""
        return self.store.place

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

    features = WrapperStore.features
    runs_in_event_loops = True

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self.prefix = as_prefix(prefix)

    def _full(self, key: str) -> str:
        check_key(key)
        return self.prefix + key

    def _above(self, prefix: str) -> str:
        return self.prefix + as_prefix(prefix)

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read below the prefix."""
        check_key(key)
        return self.store.get(self.prefix + key, span)

    def exists(self, key: str) -> bool:
        """Look below the prefix."""
        check_key(key)
        return self.store.exists(self.prefix + key)

    def size(self, key: str) -> int | None:
        """Look below the prefix."""
        check_key(key)
        return self.store.size(self.prefix + key)

    def set(self, key: str, value: Buffer) -> None:
        """Write below the prefix."""
        self.check_writable()
        check_key(key)
        self.store.set(self.prefix + key, value)

    def _below(self, verb: Verb[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments with the keys and prefixes of the wrapped store."""
        if verb is verbs.has_any:
            names = tuple(args[1])
            for name in names:
                check_key(as_prefix(args[0]) + name)
            return self._above(args[0]), names
        match verb.names:
            case "key":
                return self._full(args[0]), *args[1:]
            case "keys":
                return map(self._full, args[0]), *args[1:]
            case "pairs":
                return ((self._full(key), other) for key, other in args[0]), *args[1:]
            case "two keys":
                return tuple(map(self._full, args))
            case "prefix":
                return self._above(args[0]), *args[1:]
            case "two prefixes":
                return tuple(map(self._above, args))
        return args

    def handle(self, verb: Verb[..., Any], *args: Any) -> Any:
        """Pass the request on, below the prefix."""
        if verb.names == "key" and type(self) is PrefixStore:  # most requests
            if verb.bypasses:
                return NotImplemented
            if verb.writes:
                self.check_writable()
            check_key(args[0])
            return verb(self.store, self.prefix + args[0], *args[1:])
        skip: Any = len(self.prefix)
        if verb is verbs.list:
            return self.list_prefix("")
        answer: Any = super().handle(verb, *self._below(verb, args))
        if answer is NotImplemented:
            return NotImplemented
        if verb is verbs.list_prefix:
            answer = (key[skip:] for key in answer)
        elif verb in (verbs.list_sizes, verbs.list_digests):
            answer = ((key[skip:], said) for key, said in answer)
        elif verb is verbs.list_dir:
            answer = answer.below(self.prefix)
        return answer

    @property
    def place(self) -> str:
        """The place of the store, with the prefix appended."""
        place = self.store.place
        return f"{place.rstrip('/')}/{self.prefix[:-1]}" if place else ""

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
