"""What stores have in common that show something else as a hierarchy: another store, files, arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

from omnizarr.errors import ReadOnlyError
from omnizarr.stores.base import Buffer, Features, Store, check_key


class ReadOnlyStore(Store):
    """A store that can only be read. A subclass says why."""

    read_only = True

    @abstractmethod
    def _refusal(self) -> ReadOnlyError:
        """Return the error of a change."""

    def set(self, key: str, value: Buffer) -> None:
        """Raise ReadOnlyError."""
        check_key(key)
        raise self._refusal()

    def delete(self, key: str) -> None:
        """Raise ReadOnlyError."""
        check_key(key)
        raise self._refusal()

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002 - zarr-python's signature
        """Return this store, which is read-only. A writable one is refused."""
        if not read_only:
            raise self._refusal()
        return self


class OverStore(Store):
    """A store that shows what another store holds. Its place and identity are those of the other, which it closes.

    Parameters
    ----------
    store : Store
        The other store.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def features(self) -> Features:
        """Those of the other store, but its locks are of other keys."""
        return replace(self.store.features, sets_unlocked=False)

    def list(self) -> Iterator[str]:
        """Yield all keys."""
        return self.list_prefix("")

    @abstractmethod
    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys under a prefix."""

    def close(self) -> None:
        """Close the other store."""
        self.store.close()

    @property
    def place(self) -> str:
        """That of the other store."""
        return self.store.place

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the other store."""
        return self.store.origin()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.store,)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.store == other.store

    def __hash__(self) -> int:
        return hash((type(self), self.store))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"
