"""Storage transformers between an array and its store, which change keys and bytes.

An array's document lists them in ``storage_transformers``, starting at the array. Each is the store of the one
before it. Unlike codecs, they act on all keys of an array, not on the value of one chunk. No transformer is
registered officially. Add your own with `register`, or with an entry point ``omnizarr.storage_transformers``
that has the name of the transformer, and a function ``bind(configuration, store, prefix) -> Store``.

A transformer is any store around `store` that does not change keys without `prefix`. `StorageTransformer` is a
base class for the most common kind: other keys, other values.

Spec: Zarr v3 core, "Storage transformers".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

from omnizarr.errors import UnknownStorageTransformerError
from omnizarr.model import JSON, Named
from omnizarr.model.plugins import Plugins
from omnizarr.stores import verbs
from omnizarr.stores.base import (
    Buffer,
    Listing,
    Request,
    Span,
    Stamped,
    Store,
    answers,
    as_prefix,
    check_key,
    cut,
)
from omnizarr.stores.wrap.wrappers import WrapperStore

Bind: TypeAlias = Callable[[Mapping[str, JSON], Store, str], Store]
"""Takes the configuration, the wrapped store and the prefix of the array's keys, "" or "a/b/"; returns a store."""

PLUGINS: Final[Plugins[Bind]] = Plugins("omnizarr.storage_transformers", "storage transformer", "/storage_transformers")


def register(name: str, bind: Bind) -> None:
    """Register a storage transformer under `name` in this process. It takes precedence over others of that name.

    Parameters
    ----------
    name : str
        The name in documents.
    bind : callable
        ``bind(configuration, store, prefix) -> Store``.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> class Backwards(StorageTransformer):
    ...     def encode(self, value):
    ...         return bytes(value)[::-1]
    ...
    ...     decode = encode
    >>> register("example.backwards", lambda configuration, store, prefix: Backwards(store, prefix))
    >>> values = {}
    >>> store = apply(parse(["example.backwards"]), MemoryStore(values), "")
    >>> store.set("c/0", b"abc")
    >>> values, store.get("c/0", (0, 2)).tobytes()
    ({'c/0': b'cba'}, b'ab')

    With that, ``omnizarr.create_array(..., storage_transformers=["example.backwards"])`` makes an array whose chunks
    are stored backwards.
    """
    PLUGINS.register(name, bind)


def find(name: str) -> Bind | None:
    """Return the bind function of a storage transformer; None if the name is unknown.

    Raises
    ------
    MissingDependencyError
        If the transformer needs a package that is not installed.
    """
    return PLUGINS.find(name)


def parse(transformers: Iterable[Any]) -> tuple[Named, ...]:
    """Return storage transformers in the form of documents, for names, documents or values of the model."""
    return tuple(map(_parse, transformers))


def _parse(given: Any) -> Named:
    if isinstance(given, Named):
        return given
    if isinstance(given, str):
        return Named(given)
    if isinstance(given, Mapping) and isinstance(given.get("name"), str):
        return Named(given["name"], given.get("configuration") or {}, given.get("must_understand", True) is not False)
    raise TypeError(f"{given!r} is not a storage transformer: give a name, or a dictionary with name and configuration")


def apply(transformers: Sequence[Named], store: Store, prefix: str) -> Store:
    """Return the store that an array with these transformers sees, around its actual store.

    Unknown ones that need not be understood are ignored.

    Raises
    ------
    UnknownStorageTransformerError
        If a transformer is unknown.
    """
    for position in reversed(range(len(transformers))):
        named = transformers[position]
        bind = find(named.name)
        if bind is not None:
            store = bind(named.configuration, store, prefix)
        elif named.must_understand:
            raise UnknownStorageTransformerError(
                "the storage transformer is not known",
                pointer=f"/storage_transformers/{position}",
                found=named.name,
                expected="none, as none is registered officially, or one that this process knows",
                remedy=f"a package can add it under the entry point {PLUGINS.group!r}, "
                "a program with omnizarr.engine.transformers.register",
            )
    return store


class StorageTransformer(WrapperStore):
    """A store with other keys and other values than the wrapped one; a base class for storage transformers.

    Your class overrides `encode` and `decode`, or `stored_key` and `key_of`, or all four. Parts of a value are
    always cut from the whole value.

    Parameters
    ----------
    store : Store
        The wrapped store.
    prefix : str
        The prefix of the array's keys. Other keys do not change.
    """

    features = WrapperStore.features

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self.prefix = prefix

    def encode(self, value: Buffer) -> Buffer:
        """Return the stored form of a value."""
        return value

    def decode(self, value: Buffer) -> Buffer:
        """Return the value of its stored form."""
        return value

    def stored_key(self, key: str) -> str:
        """Return the key in the wrapped store; both are without the prefix."""
        return key

    def key_of(self, stored_key: str) -> str | None:
        """Return the key for one of the wrapped store; None if there is none."""
        return stored_key

    def _below(self, key: str) -> str:
        check_key(key)
        return self.prefix + self.stored_key(key[len(self.prefix) :]) if key.startswith(self.prefix) else key

    def _is_mine(self, key: str) -> bool:
        return key.startswith(self.prefix)

    def _decoded(self, key: str, value: Buffer | None) -> Buffer | None:
        return value if value is None or not self._is_mine(key) else self.decode(value)

    # -- reading ------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read and decode the whole value, and cut the part from it."""
        value = self._decoded(key, self.store.get(self._below(key)))
        return None if value is None else cut(value, span)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Read and decode the value, unless its stored form is too large."""
        value = self._decoded(key, verbs.get_within(self.store, self._below(key), most))
        if value is not None:
            verbs.check_limit(self, key, len(value), most)
        return value

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Read and decode each whole value, and cut the parts from them."""
        asked: dict[int, Request] = {}

        def below() -> Iterator[Request]:
            for position, request in enumerate(requests):
                asked[position] = request
                yield self._below(request[0]), None

        for position, stored in verbs.get_many(self.store, below()):
            key, span = asked.pop(position)
            value = self._decoded(key, stored)
            yield position, None if value is None else cut(value, span)

    def exists(self, key: str) -> bool:
        """Look for the key in the wrapped store."""
        return self.store.exists(self._below(key))

    def size(self, key: str) -> int | None:
        """Return the size of the decoded value."""
        return Store.size(self, key)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the stamp of the stored value."""
        return verbs.stamp(self.store, self._below(key))

    @answers(verbs.get_stamped)
    def _get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Read and decode the value, unless the stamp of the stored value is still the same."""
        found = verbs.get_stamped(self.store, self._below(key), unless)
        return None if found is None else Stamped(self._decoded(key, found.value), found.stamp)

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Encode and write."""
        super().set(self._below(key), self.encode(value) if self._is_mine(key) else value)

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Encode, and write unless there is a value."""
        self.check_writable()
        value = self.encode(value) if self._is_mine(key) else value
        return verbs.set_if_absent(self.store, self._below(key), value)

    def delete(self, key: str) -> None:
        """Delete the stored value."""
        super().delete(self._below(key))

    @answers(verbs.delete_many)
    def _delete_many(self, keys: Iterable[str]) -> None:
        """Delete the stored values."""
        self.check_writable()
        verbs.delete_many(self.store, map(self._below, keys))

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock the stored value."""
        return super().lock(self._below(key))

    # -- listing ------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """Yield the keys as the array sees them."""
        for stored in self.store.list():
            if not self._is_mine(stored):
                yield stored
            elif (key := self.key_of(stored[len(self.prefix) :])) is not None:
                yield self.prefix + key

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys as the array sees them. All keys of the array are listed in the wrapped store."""
        prefix = as_prefix(prefix)
        if not prefix.startswith(self.prefix):
            yield from Store.list_prefix(self, prefix)
            return
        for stored in self.store.list_prefix(self.prefix):
            key = self.key_of(stored[len(self.prefix) :])
            if key is not None and f"{self.prefix}{key}".startswith(prefix):
                yield self.prefix + key

    def list_dir(self, prefix: str) -> Listing:
        """List the keys as the array sees them."""
        return Store.list_dir(self, prefix)
