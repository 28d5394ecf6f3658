"""The functions that create arrays and groups, and some for whole hierarchies."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Unpack

import numpy as np

from omnizarr.api.opening import IGNORED, locate, located, warn_ignored
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.nodes import consolidated, creating, detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.group import Group, create_nodes
from omnizarr.nodes.hierarchy import Above
from omnizarr.nodes.info_tree import Tree
from omnizarr.nodes.options import (
    ArrayOptions,
    CopyOptions,
    CreateOptions,
    LikeFillOptions,
    LikeOptions,
    PlacedFillOptions,
    PlacedOptions,
    StoreLike,
    shows,
)
from omnizarr.settings import engines


@shows(ArrayOptions)
def create_array(
    store: StoreLike,
    *,
    name: str | None = None,
    zarr_format: int | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    synchronizer: Any = None,
    **options: Unpack[ArrayOptions],
) -> Array:
    """Create an array.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
        Where to create the array.
    name : str, optional
        Path within the store. Missing groups above it are created too.
    shape : int or tuple of int
        Number of elements along each dimension.
    dtype : data type
        A NumPy dtype or its name, ``"string"``, ``"bytes"``, a name or document of Zarr v3.
    data : array_like, optional
        Values to store. They also determine `shape` and `dtype`. Arrays of other libraries, such as tensors of torch,
        are read by NumPy's protocol or by DLPack.
    chunks : tuple of int, int, "auto", True, False
        Shape of a chunk (with shards: of an inner chunk). "auto" and True: a shape that suits most uses. False:
        one chunk. An integer: this length along each dimension, for chunks of at most 256 MiB. -1 or None for a
        dimension: its whole length. A list of lengths for a dimension: a rectilinear grid. A dictionary with
        ``"name"`` and ``"configuration"``: any chunk grid.
    shards : tuple of int, dict, "auto", optional
        Shape of a shard; a dictionary has ``"shape"`` and ``"index_location"``.
    filters, serializer, compressors
        One codec or several: codecs of `omnizarr.codecs` or numcodecs, names or dictionaries. None: no codec.
        "auto": the defaults of the data type, with Zstandard as compressor.
    fill_value : scalar, optional
        Value of elements that were never written. The default is zero. None means undefined in Zarr v2, and
        zero in other formats.
    order : {"C", "F"}, optional
        Memory layout of results; for Zarr v2, of the stored chunks.
    zarr_format : {2, 3}, optional
        The default is the format of the group above, otherwise 3.
    attributes : mapping, optional
    chunk_key_encoding : dict, optional
        ``{"name": "default" or "v2", "separator": "/" or "."}``.
    dimension_names : tuple of (str or None), optional
        Zarr v3 only.
    storage_options : mapping, optional
        Options of the store, such as credentials; see `omnizarr.stores.resolve`.
    synchronizer : object, optional
        A lock that all writers share, for stores without locks; see `omnizarr.open`.
    overwrite : bool
        Replace existing nodes.
    config, missing, allow_pickle, write_empty_chunks, concurrency
        Settings of the open array; see `ArrayConfig`.
    write_data : bool
        Whether to write `data`. False: use only its shape and data type.
    object_codec : codec, optional
        The codec for Python objects (Zarr v2 only).
    codecs : list of codecs, optional
        All codecs in one list, instead of `filters`, `serializer` and `compressors`.
    compressor, dimension_separator
        Older names of `compressors` and of the separator in `chunk_key_encoding`.
    storage_transformers : list of (str, dict), optional
        Storage transformers between the array and the store, starting at the array (Zarr v3 only); see
        `omnizarr.engine.transformers`.

    Returns
    -------
    Array

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        If a node exists and `overwrite` is False. If several programs create the same array at once, one succeeds.
    MetadataError, CodecError
        If a keyword is not valid, or contradicts another one.
    NotRepresentableError
        If the format cannot express the array.

    Examples
    --------
    >>> import omnizarr
    >>> from omnizarr.codecs import GzipCodec
    >>> array = omnizarr.create_array(
    ...     {}, shape=(6, 6), dtype="int16", chunks=(2, 2), shards=(4, 4), compressors=GzipCodec(level=1), fill_value=-1
    ... )
    >>> array[1, 2:4] = 7
    >>> array[:2, :4]
    array([[-1, -1, -1, -1],
           [-1, -1,  7,  7]], dtype=int16)
    """
    where, _, above = located(store, name, "a", storage_options, synchronizer)
    return creating.new_array(where, zarr_format=zarr_format, above=Above(beyond=above), **options)


@shows(CreateOptions)
def create(shape: int | Iterable[int] | None = None, **options: Unpack[CreateOptions]) -> Array:
    """Create an array, by default in memory, with the keywords of older zarr-python.

    Parameters
    ----------
    shape : int or tuple of int
    store : path, URL, Store, StorePath, mutable mapping or None
        Where to create it; None: in memory.
    path : str, optional
        Path within the store.
    mode : {"a", "w", "w-"}, optional
        "w" replaces an existing node; "w-" raises an error if one exists.
    zarr_format, storage_options, synchronizer
        As for `create_array`.
    chunk_shape, chunks
        Shape of a chunk; only one of them can be given.
    dtype : data type
        Default float64.
    **options
        Keywords of `create_array`, and `compressor`, `dimension_separator`.
    """
    asked: dict[str, Any] = dict(options)
    warn_ignored({name: asked.pop(name) for name in IGNORED & asked.keys()})
    store, path, mode = asked.pop("store", None), asked.pop("path", None), asked.pop("mode", None)
    storage_options, synchronizer = asked.pop("storage_options", None), asked.pop("synchronizer", None)
    where, _, above = located(store, path, "a", storage_options, synchronizer)
    chunk_shape = asked.pop("chunk_shape", None)
    if chunk_shape is not None:
        if asked.get("chunks", "auto") != "auto":
            raise ValueError("Only one of chunk_shape or chunks can be provided.")
        asked["chunks"] = chunk_shape
    if mode == "w":
        asked["overwrite"] = True
    if asked.get("dtype") is None and asked.get("data") is None:
        asked["dtype"] = np.dtype("float64")
    return creating.new_array(where, shape=shape, above=Above(beyond=above), **asked)


@shows(PlacedOptions)
def array(data: Any, **options: Unpack[PlacedOptions]) -> Array:
    """Create an array that holds `data`, by default in memory. Keywords are those of `create`."""
    return create(data=data, **options)


@shows(PlacedOptions)
def empty(shape: Any, **options: Unpack[PlacedOptions]) -> Array:
    """Create an array whose elements are not set. They read as the fill value. Keywords are those of `create`."""
    return create(shape, **options)


@shows(PlacedOptions)
def zeros(shape: Any, **options: Unpack[PlacedOptions]) -> Array:
    """Create an array of zeros. Keywords are those of `create`."""
    options.setdefault("fill_value", 0)
    return create(shape, **options)


@shows(PlacedOptions)
def ones(shape: Any, **options: Unpack[PlacedOptions]) -> Array:
    """Create an array of ones. Keywords are those of `create`."""
    options.setdefault("fill_value", 1)
    return create(shape, **options)


@shows(PlacedFillOptions)
def full(shape: Any, fill_value: Any, **options: Unpack[PlacedFillOptions]) -> Array:
    """Create an array in which every element has the same value. Keywords are those of `create`."""
    return create(shape, fill_value=fill_value, **options)


@shows(LikeOptions)
def empty_like(a: Any, **options: Unpack[LikeOptions]) -> Array:
    """Create an array with the shape, data type, chunks and codecs of `a`. Keywords are those of `create`."""
    return create(**creating.like(a, options))


@shows(LikeOptions)
def zeros_like(a: Any, **options: Unpack[LikeOptions]) -> Array:
    """Create an array of zeros with the shape, data type, chunks and codecs of `a`. Keywords are those of `create`."""
    return create(**creating.like(a, {"fill_value": 0, **options}))


@shows(LikeOptions)
def ones_like(a: Any, **options: Unpack[LikeOptions]) -> Array:
    """Create an array of ones with the shape, data type, chunks and codecs of `a`. Keywords are those of `create`."""
    return create(**creating.like(a, {"fill_value": 1, **options}))


@shows(LikeFillOptions)
def full_like(a: Any, fill_value: Any, **options: Unpack[LikeFillOptions]) -> Array:
    """Create an array of one value with the shape, data type, chunks and codecs of `a`.

    Keywords are those of `create`.
    """
    return create(**creating.like(a, {"fill_value": fill_value, **options}))


@shows(CopyOptions)
def from_array(
    store: StoreLike,
    *,
    data: Any,
    name: str | None = None,
    chunks: Any = "keep",
    shards: Any = "keep",
    filters: Any = "keep",
    compressors: Any = "keep",
    serializer: Any = "keep",
    storage_options: Mapping[str, Any] | None = None,
    synchronizer: Any = None,
    **options: Unpack[CopyOptions],
) -> Array:
    """Create an array from another one, of any library, block by block.

    Parameters
    ----------
    store, name, storage_options, synchronizer
        As for `create_array`.
    data : array
        The array to copy.
    write_data : bool
        Whether to copy the values. False: only the metadata.
    chunks, shards, filters, compressors, serializer
        "keep": the same as in `data`, if it has them and the format is the same. Other values are those of
        `create_array`.
    **options
        Other keywords of `create_array`.
    """
    asked = {
        "chunks": chunks,
        "shards": shards,
        "filters": filters,
        "compressors": compressors,
        "serializer": serializer,
    }
    changed = {keyword: value for keyword, value in asked.items() if not (isinstance(value, str) and value == "keep")}
    data = creating.readable(data)
    found = creating.like(data, {**options, **changed})
    if changed.keys() & {"filters", "compressors", "serializer", "chunks", "shards"}:
        found.pop("codecs", None)
    if isinstance(data, Array) and "attributes" not in options:
        found["attributes"] = data.attrs.asdict()
    where, _, above = located(store, name, "a", storage_options, synchronizer)
    return creating.new_array(where, data=data, above=Above(beyond=above), **found)


def create_group(
    store: StoreLike,
    *,
    path: str | None = None,
    zarr_format: int | str | None = None,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    synchronizer: Any = None,
) -> Group:
    """Create a group, and missing groups above it.

    Parameters
    ----------
    store, zarr_format, storage_options, synchronizer
        As for `create_array`.
    path : str, optional
        Path within the store.
    overwrite : bool
        Replace an existing node, with everything below it.
    attributes : mapping, optional

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        If a node exists and `overwrite` is False.
    """
    where, _, above = located(store, path, "a", storage_options, synchronizer)
    found = creating.new_group(where, zarr_format, attributes, overwrite=overwrite, above=Above(beyond=above))
    return Group(found.where, found.metadata)


def group(
    store: StoreLike | None = None,
    *,
    overwrite: bool = False,
    path: str | None = None,
    zarr_format: int | str | None = None,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    synchronizer: Any = None,
    **ignored: Any,
) -> Group:
    """Return the group at a place, by default in memory.

    Create it if there is none. Keywords are those of `create_group`.
    """
    warn_ignored(ignored)
    where, _ = locate(store, path, "a", storage_options, synchronizer)
    metadata = creating.new_group_metadata(where, creating.dialect_for_new(where, zarr_format), attributes)
    found = (
        creating.add_group(where, metadata, overwrite=True) if overwrite else creating.require_group(where, metadata)
    )
    return Group(found.where, found.metadata)


def create_hierarchy(
    *, store: Any, nodes: Mapping[str, ArrayMetadata | GroupMetadata], overwrite: bool = False
) -> Iterator[tuple[str, Array | Group]]:
    """Create many nodes, and yield path and node of each, missing groups above them included.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
    nodes : mapping of str to metadata
        Metadata by path. Missing groups above these nodes are created too.
    overwrite : bool
        Replace existing nodes that are among `nodes`.

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=(4,), dtype="int16")
    >>> [path for path, _ in omnizarr.create_hierarchy(store={}, nodes={"a/t": array.metadata})]
    ['', 'a', 'a/t']
    """
    where, _ = locate(store, None, "a", None)
    yield from create_nodes(where, nodes, overwrite=overwrite)


def consolidate_metadata(
    store: StoreLike,
    path: str | None = None,
    zarr_format: int | str | None = None,
    *,
    remove: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Group:
    """Store copies of all documents below a group in one document, and return the group opened from them.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        Look only for this format.
    remove : bool
        Delete the consolidated metadata instead.
    storage_options : mapping, optional
        Options of the store, such as credentials; see `omnizarr.stores.resolve`.

    Examples
    --------
    >>> import omnizarr
    >>> values = {}
    >>> _ = omnizarr.create_array(values, name="ocean/temp", shape=(4,), dtype="float32")
    >>> omnizarr.consolidate_metadata(values).is_consolidated
    True
    >>> omnizarr.consolidate_metadata(values, remove=True).is_consolidated
    False
    """
    where, _ = locate(store, path, "r+", storage_options)
    found = detection.open_group(where, zarr_format)
    if remove:
        consolidated.remove(found.where, found.metadata.dialect)
        return Group(found.where, replace(found.metadata, consolidated=None), ArrayConfig())
    metadata, copies = consolidated.consolidate(found.where, found.metadata.dialect)
    return Group(found.where, metadata, ArrayConfig(), copies)


def tree(grp: Group, expand: bool | None = None, level: int | None = None) -> Tree:  # noqa: FBT001 - zarr's signature
    """Return a drawing of the nodes below a group; see `Group.tree`."""
    return grp.tree(expand, level)


def print_debug_info() -> None:
    """Print the versions to include in a bug report."""
    print(f"platform: {platform.platform()}")  # noqa: T201 - what it is for
    metadata = import_module("importlib.metadata")  # it takes 10 ms, and is rarely needed
    print(f"python: {sys.version.split()[0]}")  # noqa: T201
    print(f"engine: {engines.name()}")  # noqa: T201
    for package in ("omnizarr", "numpy", "numcodecs", "google-crc32c", "zfpy", "pcodec", "ml_dtypes", "zarr"):
        try:
            print(f"{package}: {metadata.version(package)}")  # noqa: T201
        except metadata.PackageNotFoundError:
            print(f"{package}: not installed")  # noqa: T201
