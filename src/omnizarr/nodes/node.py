"""The common base of arrays and groups: a place in a store, metadata documents and attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from omnizarr.formats import dialect_named
from omnizarr.model import JSON, Metadata, thawed
from omnizarr.nodes import stored
from omnizarr.nodes.attributes import Attributes, Attrs
from omnizarr.nodes.location import StorePath
from omnizarr.stores import Store


class NodeProperties(ABC):
    """The place of a node and its format."""

    __slots__ = ()

    @property
    @abstractmethod
    def _where(self) -> StorePath:
        """Store and path."""

    @property
    @abstractmethod
    def _metadata(self) -> Metadata:
        """The metadata when it was last read or written."""

    @property
    def store_path(self) -> StorePath:
        """The place of the node: store and path.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root["ocean"].store_path.path
        'ocean'
        """
        return self._where

    @property
    def store(self) -> Store:
        """The store that holds the node.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> type(root["ocean"].store).__name__
        'MemoryStore'
        """
        return self._where.store

    @property
    def path(self) -> str:
        """Path within the store, without a leading slash.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root["ocean/temp"].path
        'ocean/temp'
        """
        return self._where.path

    @property
    def name(self) -> str:
        """Path with a leading slash.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root["ocean/temp"].name
        '/ocean/temp'
        """
        return f"/{self._where.path}"

    @property
    def basename(self) -> str:
        """Last part of the path.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root["ocean/temp"].basename
        'temp'
        """
        return self._where.name

    @property
    def read_only(self) -> bool:
        """Whether the node cannot be written.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> omnizarr.open_group(root.store, "r").read_only
        True
        """
        return self._where.store.read_only

    @property
    def zarr_format(self) -> int | str:
        """The format of the node: 3, 2, 1, ``"3-draft2020"`` or ``"3-draft2019"``.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.zarr_format
        3
        """
        return dialect_named(self._metadata.dialect).zarr_format


class Node(NodeProperties):
    """An array or a group in a store."""

    __slots__ = ("__weakref__", "_where")

    _where: StorePath

    @abstractmethod
    def refresh(self) -> None:
        """Read the metadata again, in case another program changed it."""

    @abstractmethod
    def _change_attributes(self, change: Callable[[Attrs], Attrs]) -> None:
        """Store the attributes that `change` returns for the current ones."""

    def documents(self) -> dict[str, JSON]:
        """Return the stored metadata documents by name: ``{"zarr.json": {...}}``.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.documents()
        {'zarr.json': {...'node_type': 'group'...}}
        """
        return {name: thawed(document) for name, document in stored.dump(self._where, self._metadata).items()}

    @property
    def attrs(self) -> Attributes:
        """The attributes. Every change is stored immediately.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.attrs["title"] = "buoys"
        >>> root.attrs
        {'title': 'buoys'}
        """
        return Attributes(self._where, lambda: self._metadata.attributes, self._change_attributes, self.refresh)

    def _token(self, *more: object) -> tuple[object, ...]:
        """Return the token from which dask makes names: the same in every process, and without credentials.

        Nodes opened from the same place have the same token if their documents were the same when they were last read.
        Chunks do not count. For a store in memory, the place is the mapping that holds the values.
        """
        data, base = self._where.store.origin()
        path = f"{base}/{self.path}".strip("/")
        return f"omnizarr.{type(self).__name__}", repr(data), path, repr(self._metadata), *more
