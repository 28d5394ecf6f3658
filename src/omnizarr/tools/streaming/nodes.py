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
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.api.opening import locate
from omnizarr.errors import OmnizarrError
from omnizarr.formats import conventions, dialect_named
from omnizarr.formats.conventions import Nodes
from omnizarr.model import JSON, ArrayMetadata, Metadata, datatypes, thawed
from omnizarr.model.datatypes import DataType
from omnizarr.model.datatypes.optional import NAME as OPTIONAL
from omnizarr.model.datatypes.optional import Optional
from omnizarr.nodes import detection
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.stores import pool
from omnizarr.tools.convert.sources import Source
from omnizarr.tools.streaming.equality import is_small

_CANONICAL: Final = "v3"
"""The format with members for what other formats express by conventions."""
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
    """

    path: str
    found: Found[Metadata] | None = None
    meaning: Meaning | None = None
    array: Found[ArrayMetadata] | None = None
    error: OmnizarrError | None = None


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
    nodes: dict[str, Node]


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
    walked = list(source.walk(source.top(top), concurrency=where.store.features.concurrency))
    found = {each.path: each.found for each in walked}
    source.check_is_whole()
    nodes = Nodes({at: each.metadata for at, each in found.items() if isinstance(each, Found)})
    workers = where.store.features.concurrency if _have_other_keys(nodes) else 1
    read = dict(pool.gather(lambda item: _node(*item, nodes), found.items(), workers))
    return Hierarchy(name, top, {at: read[position] for position, at in enumerate(found)})


def _have_other_keys(nodes: Nodes) -> bool:
    """Return whether the store is asked which keys the chunks of an array have."""
    arrays = (each for each in nodes.values() if isinstance(each, ArrayMetadata))
    return any(dialect_named(each.dialect).other_keys(each) for each in arrays)


def metadata_of(hierarchy: Hierarchy) -> dict[str, Metadata | None]:
    """Return the metadata of all nodes by path; None for those that cannot be read."""
    return {path: None if node.found is None else node.found.metadata for path, node in hierarchy.nodes.items()}


def _node(path: str, found: Found[Metadata] | OmnizarrError, nodes: Nodes) -> Node:
    if isinstance(found, OmnizarrError):
        return Node(path, error=found)
    array = None
    if isinstance(found.metadata, ArrayMetadata):
        array = Found(found.where, detection.with_keys_in_use(found.where, found.metadata))
    return Node(path, found, Meaning.of(path, nodes), array)


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
