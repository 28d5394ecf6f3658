"""The common base of databases in files: methods, URLs, and lock files."""

from __future__ import annotations

import os
import weakref
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from omnizarr.errors import ConflictError, StoreClosedError, StoreError
from omnizarr.stores import conflicts, verbs
from omnizarr.stores.base import RESERVED, Buffer, Change, Features, Store, answers, as_prefix, check_key
from omnizarr.stores.local import filelocks

if TYPE_CHECKING:
    from omnizarr.stores.kinds import Place

Database = TypeVar("Database")
Record: TypeAlias = tuple[Any, memoryview]
"""A key in the form that the database has, and a value."""

PAGE: Final = 1000
"""Keys of a listing that are fetched at once."""
_BATCH: Final = 2**24  # bytes of values that are written in one transaction


class DatabaseStore(Store, Generic[Database]):
    """A store in a database in files on one machine. Each method is a transaction.

    Attributes
    ----------
    kind : str
        The name of the database system.
    path : str
        Path of the database.
    """

    kind: ClassVar[str]
    url_options: ClassVar[frozenset[str]]
    """Keywords that are allowed with a URL."""
    path: str
    read_only: bool
    _database: Database | None
    """The open resources of this process; None if the store is closed."""
    _finalizer: weakref.finalize[..., Any]

    @classmethod
    def open_place(cls, place: Place) -> tuple[Self, str]:
        """Return the store for a path, or for ``lmdb:///path/to/database``."""
        if place.path is None:
            unknown = sorted(place.of_store.keys() - cls.url_options)
            if unknown:
                expected = sorted(cls.url_options)
                raise StoreError("storage_options mean nothing to this store", found=unknown, expected=expected)
            return cls(path_of(place.text), read_only=place.read_only, **place.of_store), ""  # type: ignore[call-arg]
        place.refuse_options()
        if not place.is_named:  # what a stranger called otherwise is not handed to a library of databases
            title, scheme = cls.__name__.removesuffix("Store"), cls.kind
            raise StoreError(
                f"an {title} database whose name does not say so",
                store=place.path,
                expected=f"a name that ends in .{scheme}",
                remedy=f"if you trust where it comes from, open '{scheme}://{os.path.abspath(place.path)}'",
            )
        return cls(place.path, read_only=place.read_only), ""  # type: ignore[call-arg]

    @abstractmethod
    def _open(self) -> None:
        """Set the open resources (`_database`), and what closes them (`_finalizer`)."""

    def _opened(self, key: str | None = None) -> Database:
        """Return the open resources. Raises StoreClosedError."""
        database = self._database  # read once, because another thread may close the store
        if database is None:
            raise StoreClosedError("the store is closed", store=repr(self), key=key)
        return database

    features = Features(exclusion="lock", is_shared=True, listing="complete")

    # -- reading ------------------------------------------------------------------

    @answers(verbs.has_any)
    def _has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Look the keys up."""
        prefix = as_prefix(prefix)
        return any(self.exists(prefix + name) for name in names)

    def list(self) -> Iterator[str]:
        """Yield the keys in their order."""
        return self.list_prefix("")

    # -- writing ------------------------------------------------------------------

    @abstractmethod
    def _record(self, key: str, value: Buffer) -> Record:
        """Return what is to be stored. Raises if the database cannot store it."""

    @abstractmethod
    def _put(self, records: Sequence[Record], size: int) -> None:
        """Store records of `size` bytes in one transaction."""

    @abstractmethod
    def _seen(self, key: str) -> tuple[Buffer | None, object]:
        """Return the value, and a version that shows later whether it has changed."""

    @abstractmethod
    def _replace(self, key: str, new: Buffer | None, seen: object) -> None:
        """Store a value (None: delete it) in one transaction, if it has not changed; otherwise raise `_conflict`."""

    @abstractmethod
    def _delete_all(self, keys: Sequence[str]) -> None:
        """Delete the existing ones of the keys in one transaction."""

    @abstractmethod
    def _is_there(self) -> bool:
        """Return whether there is a database to delete from. Deleting creates none."""

    @answers(verbs.set_many)
    def _set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Store the values, several megabytes of them in one transaction."""
        self.check_writable()
        records: list[Record] = []
        size = 0
        for key, value in items:
            records.append(self._record(key, value))
            size += len(key) + len(value)
            if size >= _BATCH:
                self._put(records, size)
                records, size = [], 0
        if records:
            self._put(records, size)

    def update(self, key: str, change: Change) -> None:
        """Replace the value by the result of `change`. Takes the lock of the key.

        While `change` runs, other keys can be written. If a program that takes no locks writes this key
        meanwhile, `change` is called again.
        """
        self.check_writable()

        def once() -> None:
            with self.lock(key):
                old, seen = self._seen(key)
                new = change(old)
                if new is not old:
                    self._replace(key, new, seen)

        conflicts.retrying(once)

    def _conflict(self, key: str) -> ConflictError:
        return ConflictError("another writer has changed the value meanwhile", store=repr(self), key=key)

    def delete(self, key: str) -> None:
        """Delete the value."""
        verbs.delete_many(self, [key])

    @answers(verbs.delete_many)
    def _delete_many(self, keys: Iterable[str]) -> None:
        """Delete the values in one transaction."""
        self.check_writable()
        checked = []
        for key in keys:
            check_key(key)
            checked.append(key)
        if checked and self._is_there():
            self._delete_all(checked)

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Take a lock file beside the database. Others can write other keys meanwhile."""
        self.check_writable()
        check_key(key)
        folder, name = os.path.split(os.path.realpath(self.path))
        digest = sha256(f"{name}/{key}".encode()).hexdigest()[:40]
        file = os.path.join(folder, f"{RESERVED}{digest}{filelocks.SUFFIX}")
        return filelocks.lock(file, lambda: os.makedirs(folder, exist_ok=True), store=self, key=key)

    # -- the store itself ---------------------------------------------------------

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the database."""
        return (self.kind, os.path.realpath(self.path)), ""

    def close(self) -> None:
        """Close the database."""
        self._database = None
        self._finalizer()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_database", "_finalizer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DatabaseStore)
            and (self.kind, self.path) == (other.kind, other.path)
            and self.read_only == other.read_only
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.path))

    @property
    def place(self) -> str:
        """The path of the database."""
        return self.path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"


def path_of(url: str) -> str:
    """Return the path of a URL that has only a scheme and a path.

    >>> path_of("sqlite:///path/to/a%20b.sqlite")
    '/path/to/a b.sqlite'
    """
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path.strip("/"):
        shown = f"{parts.scheme}://{parts.path}"
        expected = f"{parts.scheme}:///path/to/database"
        raise StoreError("not the URL of a database", found=shown, expected=expected)
    path = unquote(parts.path)
    return path[1:] if os.name == "nt" and path[2:3] == ":" else path
