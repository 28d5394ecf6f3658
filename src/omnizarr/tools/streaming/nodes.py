"""The nodes of a hierarchy and their meaning, whatever their format.

What a node means is what its conventions make of it in Zarr v3: `convert` carries it by the same functions. So the
dimension names of xarray are not an attribute in any format, and a mask is one in all. How elements are stored does not
belong to it: neither chunks, codecs, byte order, nor the fill value, which tells only what chunks hold that are not
stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, cast

import numpy as np

from omnizarr.api.opening import locate
from omnizarr.errors import OmnizarrError
from omnizarr.formats import conventions, dialect_named
from omnizarr.formats.conventions import Nodes
from omnizarr.model import JSON, ArrayMetadata, Metadata, Named, datatypes, thawed
from omnizarr.model.datatypes import DataType
from omnizarr.model.datatypes.fixed_point import FixedPoint
from omnizarr.model.datatypes.optional import NAME as OPTIONAL
from omnizarr.model.datatypes.optional import Optional
from omnizarr.nodes import bindings, detection, naming
from omnizarr.nodes.detection import Found
from omnizarr.nodes.kept import KeptNodes
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.stores import pool
from omnizarr.tools.convert.sources import Source
from omnizarr.tools.streaming.equality import is_small
from omnizarr.tools.streaming.few import FewChunks
from omnizarr.tools.streaming.walking import Effort, Elements

_CANONICAL: Final = "v3"
"""The format with members for what other formats express by conventions."""
_BATCH: Final = 256
_MADE: Final = 256
"""Nodes that are kept as they were made, for the next question about them."""
_PLAIN: Final = {"variable_length_utf8": "string", "variable_length_bytes": "bytes"}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a node is, apart from how it is stored.

    Attributes
    ----------
    kind : {"array", "group"}
    attributes : mapping
    shape, dimension_names : tuple, optional
        Of an array. Without a single name there are none.
    data_type : str, optional
        Of an array: a name that is the same in all formats.
    """

    kind: str
    attributes: Mapping[str, JSON]
    shape: tuple[int, ...] | None = None
    data_type: str | None = None
    dimension_names: tuple[str | None, ...] | None = None

    @classmethod
    def of(cls, path: str, nodes: Nodes) -> Meaning:
        """Return what the node at a path means, given the nodes of its hierarchy."""
        carried = conventions.carry(path, nodes, nodes[path], _CANONICAL).metadata
        if not isinstance(carried, ArrayMetadata):
            return cls("group", conventions.oldest(path, replace(carried, dialect=_CANONICAL)).attributes)
        names = carried.dimension_names
        return cls(
            "array",
            carried.attributes,
            carried.shape,
            type_name(carried),
            names if names is not None and any(name is not None for name in names) else None,
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A node that was found.

    Attributes
    ----------
    path : str
        Below the topmost node.
    found : Found, optional
        None if it cannot be read.
    meaning : Meaning, optional
        The same.
    array : Found, optional
        The same node, if it is an array, with the chunk keys that its writer used.
    error : OmnizarrError, optional
        Why it cannot be read.
    known : tuple of str, optional
        The keys that are stored below an array, relative to it, if they are few and were listed.
    """

    path: str
    found: Found[Metadata] | None = None
    meaning: Meaning | None = None
    array: Found[ArrayMetadata] | None = None
    error: OmnizarrError | None = None
    known: tuple[str, ...] | None = None

    def elements(self, effort: Effort) -> Elements | None:
        """Return the elements of an array; None of another node."""
        return None if self.array is None else Elements(self.array.where, self.array.metadata, effort, self.known)


class Hierarchy(NamedTuple):
    """A node that a user means, with all below it.

    Attributes
    ----------
    name : str
        What the user calls it.
    top : Found
    nodes : mapping of str to Node
        By path below the topmost, parents first.
    """

    name: str
    top: Found[Metadata]
    nodes: NodesBelow


def hierarchy(opened: ExitStack, store: Any, path: str | None, zarr_format: Any, options: Any) -> Hierarchy:
    """Return the node that a user means and all below it.

    A store that is made for that is closed with `opened`. Raises NodeNotFoundError, StoreError.
    """
    where = _located(opened, store, path, options)
    return _read(where, shown(store, path, where), zarr_format)


def hierarchies(opened: ExitStack, places: Iterable[tuple[Any, str | None]], options: Any) -> Iterator[Hierarchy]:
    """Yield the same for several stores and paths. Those in remote stores are read side by side."""
    located = []
    for store, path in places:
        where = _located(opened, store, path, options)
        located.append((where, shown(store, path, where)))
    is_far = all(where.store.features.concurrency > 1 for where, _ in located)
    found = dict(pool.gather(lambda each: _read(*each), located, len(located) if is_far else 1))
    yield from (found[position] for position in range(len(located)))


def _located(opened: ExitStack, store: Any, path: str | None, options: Any) -> StorePath:
    is_url = isinstance(store, str) and "://" in store
    where, _ = locate(store, path, "r", options if is_url else None)
    if isinstance(store, (str, os.PathLike)):
        opened.callback(where.store.close)
    return where


def _read(where: StorePath, name: str, zarr_format: Any = None) -> Hierarchy:
    top = detection.open_node(where, zarr_format)
    source = Source(top)
    nodes = NodesBelow(top.where)
    for each in source.walk(source.top(top), concurrency=where.store.features.concurrency):
        nodes.add(each.path, each.found)
    source.check_is_whole()
    nodes.end()
    return Hierarchy(name, top, nodes)


class NodesBelow(Mapping[str, Node]):
    """The nodes of a hierarchy, each made when it is asked for: there may be many.

    Parameters
    ----------
    where : StorePath
        The topmost.
    """

    def __init__(self, where: StorePath) -> None:
        self._where = where
        self._read = KeptNodes()
        self.errors: dict[str, OmnizarrError] = {}
        """Why some cannot be read, by path."""
        self._paths: dict[str, None] | None = None
        """All in their order, if some of them cannot be read."""
        self._elsewhere: dict[str, StorePath] = {}
        """Places that do not follow from the path."""
        self._open: list[tuple[str, Found[ArrayMetadata]]] = []
        """The last arrays whose documents do not say which keys their chunks have."""
        self._keys: dict[str, Named] = {}
        """How the chunk keys of those are made that differ from what is usual."""
        self._all = Nodes(self._read)
        self._made: list[Node | None] = [None] * _MADE

    def add(self, path: str, found: Found[Metadata] | OmnizarrError) -> None:
        """Add a node, or the error that says why it cannot be read."""
        if isinstance(found, OmnizarrError):
            if self._paths is None:
                self._paths = dict.fromkeys(self._read)
            self.errors[path] = found
        else:
            self._read.add(path, found.metadata)
            expected = self._expected(path)
            if found.where != expected or found.where.home != expected.home:
                self._elsewhere[path] = found.where
            if isinstance(found.metadata, ArrayMetadata) and _has_other_keys(found.metadata):
                self._open.append((path, Found(found.where, replace(found.metadata, attributes={}))))
                if len(self._open) >= _BATCH:
                    self.end()
        if self._paths is not None:
            self._paths[path] = None

    def _expected(self, path: str) -> StorePath:
        return self._where.at(f"{self._where.prefix}{path}") if path else self._where

    def end(self) -> None:
        """Ask the store which keys the chunks of the last arrays have, if their documents leave that open."""
        open_ones, self._open = self._open, []
        workers = self._where.store.features.concurrency
        for path, encoding in pool.results(_keys_in_use, open_ones, workers):
            if encoding is not None:
                self._keys[path] = encoding

    def __getitem__(self, path: str) -> Node:
        slot = hash(path) % _MADE
        made = self._made[slot]
        if made is None or made.path != path:
            made = self._made[slot] = self._make(path)
        return made

    def _make(self, path: str) -> Node:
        error = self.errors.get(path)
        if error is not None:
            return Node(path, error=error)
        found = Found(self._place(path), self._read[path])
        if not self.is_array(path):
            return Node(path, found, Meaning.of(path, self._all))
        return Node(path, found, Meaning.of(path, self._all), self.array(path), known=self._known(path))

    def _place(self, path: str) -> StorePath:
        return self._elsewhere.get(path) or self._expected(path)

    def is_array(self, path: str) -> bool:
        """Return whether a node is an array that can be read."""
        return path not in self.errors and self._read.is_array(path)

    def array(self, path: str) -> Found[ArrayMetadata]:
        """Return an array, with the chunk keys that its writer used."""
        metadata = cast("ArrayMetadata", self._read[path])
        keys = self._keys.get(path)
        return Found(self._place(path), metadata if keys is None else replace(metadata, chunk_key_encoding=keys))

    def elements(self, path: str, effort: Effort) -> Elements:
        """Return the elements of an array."""
        array = self.array(path)
        return Elements(array.where, array.metadata, effort, self._known(path))

    def _known(self, path: str) -> tuple[str, ...] | None:
        place = self._place(path)
        return self.few.of(place.path) if place.store is self._where.store else None

    @cached_property
    def few(self) -> FewChunks:
        """What a listing has told of the chunks of all arrays; none was made yet."""
        return FewChunks(self._where, frozenset(self._place(path).path for path in self if self.is_array(path)))

    def look_for_chunks(self) -> None:
        """List the chunks of all arrays together, where it saves requests, and nothing else has done so."""
        if naming.is_far(self._where.store):
            self.few.look()

    def __contains__(self, path: object) -> bool:
        return path in self._read or path in self.errors

    def __iter__(self) -> Iterator[str]:
        return iter(self._read if self._paths is None else self._paths)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._read if self._paths is None else self._paths)

    def __len__(self) -> int:
        return len(self._read) + len(self.errors)

    @property
    def metadata(self) -> Mapping[str, Metadata | None]:
        """The metadata of each; None for those that cannot be read."""
        return self._read if self._paths is None else _MetadataOf(self)

    def read(self, path: str) -> Metadata | None:
        """Return the metadata of one; None if it cannot be read."""
        return None if path in self.errors else self._read[path]


def _has_other_keys(metadata: ArrayMetadata) -> bool:
    """Return whether the store is asked which keys the chunks of an array have."""
    return bool(dialect_named(metadata.dialect).other_keys(metadata))


def _keys_in_use(item: tuple[str, Found[ArrayMetadata]]) -> tuple[str, Named | None]:
    path, found = item
    metadata = bindings.with_keys_in_use(found.where, found.metadata)
    return path, None if metadata is found.metadata else metadata.chunk_key_encoding


class _MetadataOf(Mapping[str, Metadata | None]):
    """The metadata of nodes, of which some cannot be read."""

    def __init__(self, nodes: NodesBelow) -> None:
        self._nodes = nodes

    def __getitem__(self, path: str) -> Metadata | None:
        return self._nodes.read(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def metadata_of(hierarchy: Hierarchy) -> Mapping[str, Metadata | None]:
    """Return the metadata of all nodes by path; None for those that cannot be read."""
    return hierarchy.nodes.metadata


def shown(given: Any, path: str | None, where: StorePath) -> str:
    """Return what a user calls a place."""
    if not isinstance(given, (str, os.PathLike)):
        return str(where)
    place = os.fsdecode(given) if isinstance(given, os.PathLike) else given
    return f"{place.rstrip('/')}/{path.strip('/')}" if path else place


def documents_of(found: Found[Any]) -> Iterable[str]:
    """Return the keys that the documents of a node may have."""
    return dialect_of(found.where, found.metadata).keyspace.documents(found.where.path).values()


# Names of data types


def type_name(array: ArrayMetadata) -> str:
    """Return a name for the data type of an array that is the same in all formats and byte orders.

    Examples
    --------
    >>> from omnizarr.formats import V2
    >>> array = V2.load({".zarray": {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": ">M8[10s]", "order": "C",
    ...     "compressor": None, "filters": None, "fill_value": 0}})
    >>> type_name(array)
    'datetime64[10s]'
    """
    try:
        data_type = datatypes.bind(array.data_type, array.byte_order)
    except OmnizarrError:
        return _spelled(array.data_type.name, array.data_type.configuration)
    return name_of(data_type)


def name_of(data_type: DataType) -> str:
    """Return the same for a data type that is bound."""
    if isinstance(data_type.scalars, Optional):
        return f"{OPTIONAL}[{name_of(data_type.scalars.inner)}]"
    if isinstance(data_type.scalars, FixedPoint):
        return data_type.scalars.words
    if data_type.is_fixed_size:
        return _of_dtype(data_type.dtype)
    return _spelled(_PLAIN.get(data_type.named.name, data_type.named.name), data_type.named.configuration)


def _spelled(name: str, configuration: Mapping[str, JSON]) -> str:
    return f"{name}{json.dumps(thawed(configuration), sort_keys=True)}" if configuration else name


def _of_dtype(dtype: np.dtype[Any]) -> str:
    if dtype.subdtype is not None:
        return f"{_of_dtype(dtype.base)}{list(dtype.shape)}"
    if dtype.names is not None and dtype.fields is not None:
        fields = (f"{json.dumps(name)}: {_of_dtype(dtype.fields[name][0])}" for name in dtype.names)
        return f"{{{', '.join(fields)}}}"
    if is_small(dtype):
        return dtype.name
    match dtype.kind:
        case "U":
            return f"text[{dtype.itemsize // 4}]"
        case "S":
            return f"bytes[{dtype.itemsize}]"
        case "V":
            return f"raw[{dtype.itemsize}]"
    return dtype.name
