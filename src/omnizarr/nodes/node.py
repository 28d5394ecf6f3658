"""What arrays and groups have in common: a place in a store, documents there, and attributes in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from omnizarr.formats import dialect_named
from omnizarr.model import JSON, Metadata, thawed
from omnizarr.nodes import hierarchy
from omnizarr.nodes.attributes import Attributes, Attrs
from omnizarr.nodes.location import StorePath
from omnizarr.stores import Store


class NodeProperties(ABC):
    """Where a node is, and in which format."""

    __slots__ = ()

    @property
    @abstractmethod
    def _where(self) -> StorePath:
        """Store and path."""

    @property
    @abstractmethod
    def _metadata(self) -> Metadata:
        """What its documents said when they were last read or written."""

    @property
    def store_path(self) -> StorePath:
        """Where it is: store and path."""
        return self._where

    @property
    def store(self) -> Store:
        """The store it is in."""
        return self._where.store

    @property
    def path(self) -> str:
        """Path within the store, without a leading slash."""
        return self._where.path

    @property
    def name(self) -> str:
        """Path with a leading slash."""
        return f"/{self._where.path}"

    @property
    def basename(self) -> str:
        """Last part of the path."""
        return self._where.name

    @property
    def read_only(self) -> bool:
        """Whether it refuses to be written."""
        return self._where.store.read_only

    @property
    def zarr_format(self) -> int | str:
        """The format it is stored in: 3, 2, 1, ``"3-draft2020"``, ..."""
        return dialect_named(self._metadata.dialect).zarr_format


class Node(NodeProperties):
    """An array or a group in a store."""

    __slots__ = ("__weakref__", "_where")

    _where: StorePath

    @abstractmethod
    def refresh(self) -> None:
        """Read the documents again: others may have changed them."""

    @abstractmethod
    def _change_attributes(self, change: Callable[[Attrs], Attrs]) -> None:
        """Store what `change` makes of the attributes."""

    def documents(self) -> dict[str, JSON]:
        """Return its documents as they are stored, by name: ``{"zarr.json": {...}}``."""
        return {name: thawed(document) for name, document in hierarchy.dump(self._where, self._metadata).items()}

    @property
    def attrs(self) -> Attributes:
        """Its attributes; changes are stored at once."""
        return Attributes(self._where, lambda: self._metadata.attributes, self._change_attributes, self.refresh)

    def _token(self, *more: object) -> tuple[object, ...]:
        """Return what dask makes names of: the same in every process, and free of credentials.

        It is the same for all that are opened from the same place and have the same documents, as they were when they
        were last read; chunks are not looked at. Of values in memory, which no other process reaches, the place is the
        mapping that holds them.
        """
        data, base = self._where.store.origin()
        path = f"{base}/{self.path}".strip("/")
        return f"omnizarr.{type(self).__name__}", repr(data), path, repr(self._metadata), *more
