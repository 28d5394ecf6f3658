"""The functions that a user types: opening, creating, saving, loading.

Opening never creates, unless a mode is typed that says so:

=========  ==================================================================
``mode``   what happens
=========  ==================================================================
``None``   open what is there, to be written if the store can be written
``"r"``    open what is there, not to be written
``"r+"``   open what is there, to be written
``"a"``    open what is there, or create it
``"w"``    create; what is there is replaced
``"w-"``   create; refuse if there is something (also ``"x"``)
=========  ==================================================================
"""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from omnizarr import consolidated, hierarchy, nodes, suggestions
from omnizarr.array import Array
from omnizarr.behaviour import ArrayConfig
from omnizarr.creation import DEFAULT
from omnizarr.errors import ArrayNotFoundError, NodeNotFoundError, StoreError
from omnizarr.group import Group, create_node
from omnizarr.hierarchy import StorePath
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.stores import Store, resolve
from omnizarr.tree import Tree

Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-", "x"]
Missing: TypeAlias = Literal["fill", "error"]
_CREATING = ("a", "w", "w-", "x")
_BEHAVIOUR = ("config", "missing", "allow_pickle", "write_empty_chunks", "concurrency", "order")


# -- opening -----------------------------------------------------------------------


def open(  # noqa: A001 - the name that zarr has for it
    store: Any = None,
    *,
    mode: Mode | None = None,
    zarr_format: int | str | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    config: ArrayConfig | Mapping[str, Any] | None = None,
    **options: Any,
) -> Array | Group:
    """Open the array or group at a place.

    Parameters
    ----------
    store : path, URL, Store, StorePath, mutable mapping or None
        Where it is.
    mode : {"r", "r+", "a", "w", "w-"}, optional
        What to do if there is nothing, or something; see `omnizarr.api`. Without a creating mode, nothing is created.
    zarr_format : int or str, optional
        Look only for this format; the format of what is created.
    path : str, optional
        Path within the store.
    storage_options : mapping, optional
        For stores that take them.
    config : ArrayConfig or mapping, optional
        How arrays behave while they are open.
    **options
        For opening: `missing`, `allow_pickle`, `write_empty_chunks`, `concurrency` (see `ArrayConfig`),
        `use_consolidated`, `check_consolidated` (see `open_group`). For creating, the keywords of
        `create_array` (if `shape` or `data` is among them) or `create_group`.

    Returns
    -------
    Array or Group

    Raises
    ------
    NodeNotFoundError
        If there is nothing; it says which names come near.
    MetadataError
        If a document breaks its format.
    NodeExistsError
        In mode ``"w-"``, if there is something.

    Examples
    --------
    >>> import omnizarr
    >>> values = {}
    >>> _ = omnizarr.create_array(values, name="temp", shape=(4,), dtype="float32")
    >>> omnizarr.open(values)["temp"]
    <Array /temp (4,) float32 memory>
    """
    is_array = "shape" in options or "data" in options
    where, mode = _locate(store, path, mode, storage_options)
    if mode in _CREATING and (mode != "a" or hierarchy.find(where, zarr_format) is None):
        opener: Any = open_array if is_array else open_group
        return opener(where, mode=mode, zarr_format=zarr_format, config=config, **options)  # type: ignore[no-any-return]
    found = hierarchy.open_node(where, zarr_format)
    if isinstance(found, ArrayMetadata):
        return Array(where, found, _behaviour(config, options))
    return _opened_group(where, found, config, options)


def open_array(
    store: Any = None,
    *,
    mode: Mode | None = None,
    zarr_format: int | str | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    config: ArrayConfig | Mapping[str, Any] | None = None,
    missing: Missing | None = None,
    allow_pickle: bool | None = None,
    write_empty_chunks: bool | None = None,
    **options: Any,
) -> Array:
    """Open the array at a place.

    Parameters
    ----------
    store, mode, zarr_format, path, storage_options
        As for `open`.
    config : ArrayConfig or mapping, optional
        How it behaves while it is open.
    missing : {"fill", "error"}, optional
        What reading a chunk that is not stored means.
    allow_pickle : bool, optional
        Let pickled objects be read, which can run any code. Default False.
    write_empty_chunks : bool, optional
        Store chunks that hold nothing but the fill value. Default False.
    **options
        Keywords of `create_array`, for modes that create.

    Raises
    ------
    ArrayNotFoundError
        If there is nothing.
    ContainsGroupError
        If there is a group.
    """
    where, mode = _locate(store, path, mode, storage_options)
    behaviour = _behaviour(
        config, options, missing=missing, allow_pickle=allow_pickle, write_empty_chunks=write_empty_chunks
    )
    if mode in _CREATING and (mode != "a" or hierarchy.find(where, zarr_format) is None):
        options["overwrite"] = mode == "w"
        if options.get("shape") is None and options.get("data") is None:
            raise ArrayNotFoundError(
                "there is no array here",
                store=str(where.store),
                path=where.path,
                remedy="pass shape= and dtype=, or data=, to create it",
            )
        return nodes.new_array(where, zarr_format=zarr_format, config=behaviour, **options)
    return Array(where, hierarchy.open_array(where, zarr_format), behaviour)


def open_group(
    store: Any = None,
    *,
    mode: Mode | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | str | None = None,
    attributes: Mapping[str, Any] | None = None,
    use_consolidated: bool | str | None = None,
    check_consolidated: bool = False,
    config: ArrayConfig | Mapping[str, Any] | None = None,
    missing: Missing | None = None,
    allow_pickle: bool | None = None,
    write_empty_chunks: bool | None = None,
    concurrency: int | None = None,
    **ignored: Any,
) -> Group:
    """Open the group at a place.

    Parameters
    ----------
    store, mode, path, storage_options, zarr_format
        As for `open`.
    attributes : mapping, optional
        Of the group, if it is created.
    use_consolidated : bool or str, optional
        Take members from consolidated metadata: None, if there is any; True, it must be there; False, read the
        documents themselves. A string is the name of the document that holds it, where it is not the usual one.
    check_consolidated : bool
        Compare the consolidated metadata with all documents first.
    config, missing, allow_pickle, write_empty_chunks, concurrency
        How arrays in the group behave while they are open; see `open_array`.

    Raises
    ------
    GroupNotFoundError
        If there is nothing.
    ContainsArrayError
        If there is an array.
    ConsolidatedMetadataError
        If consolidated metadata is asked for and not there or broken, or checked and stale.
    """
    _warn_ignored(ignored)
    where, mode = _locate(store, path, mode, storage_options)
    options = {
        "use_consolidated": use_consolidated,
        "check_consolidated": check_consolidated,
        "missing": missing,
        "allow_pickle": allow_pickle,
        "write_empty_chunks": write_empty_chunks,
        "concurrency": concurrency,
    }
    if mode in _CREATING and (mode != "a" or hierarchy.find(where, zarr_format) is None):
        dialect = nodes.dialect_for_new(where, zarr_format)
        metadata = hierarchy.create(where, nodes.new_group_metadata(where, dialect, attributes), overwrite=mode == "w")
        return Group(where, metadata, _behaviour(config, options))
    return _opened_group(where, hierarchy.open_group(where, zarr_format), config, options)


def open_consolidated(*args: Any, use_consolidated: bool | str = True, **options: Any) -> Group:
    """Open the group at a place from its consolidated metadata, which must be there; as `open_group` otherwise."""
    return open_group(*args, use_consolidated=use_consolidated, **options)


def open_like(a: Any, path: Any, **options: Any) -> Array:
    """Open an array, or with ``mode="a"`` (or ``"w"``) create one like `a`; keywords as those of `open_array`."""
    return open_array(path, **nodes.like(a, options))


def _opened_group(
    where: StorePath,
    metadata: GroupMetadata,
    config: ArrayConfig | Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Group:
    snapshot = consolidated.snapshot(where, options.get("use_consolidated"))
    if snapshot is not None and options.get("check_consolidated"):
        consolidated.check(where, snapshot.nodes)
    return Group(where, metadata, _behaviour(config, options), snapshot)


def _behaviour(config: ArrayConfig | Mapping[str, Any] | None, options: Mapping[str, Any], **more: Any) -> ArrayConfig:
    named = {name: options.get(name) for name in _BEHAVIOUR if name != "config"}
    return ArrayConfig.of(config, **{**named, **{name: value for name, value in more.items() if value is not None}})


def _locate(
    store: Any, path: str | None, mode: Mode | None, storage_options: Mapping[str, Any] | None
) -> tuple[StorePath, Mode]:
    """Return the place that a user means, and the mode."""
    if storage_options:
        raise StoreError("storage_options mean nothing to this store", found=sorted(storage_options))
    if mode is not None and mode not in {"r", "r+", *_CREATING}:
        raise ValueError(f"mode={mode!r}: expected one of 'r', 'r+', 'a', 'w', 'w-'")
    if isinstance(store, (Group, Array)):
        store = store.store_path
    base = ""
    if isinstance(store, StorePath):
        store, base = store.store, store.path
    if mode is None:
        mode = "r" if isinstance(store, Store) and store.read_only else "r+"
    # What "w" replaces, and "w-" leaves alone, is a node in the store, not the store.
    try:
        opened, inner = resolve(store, "a" if mode in {"w", "w-", "x"} else mode)
    except NodeNotFoundError as error:  # of an archive that is not there
        raise error.add(remedy=suggestions.question(suggestions.near_directories(Path(error.store or "."))))
    return StorePath(opened, hierarchy.normalize("/".join((inner, base, path or "")))), mode


def _warn_ignored(options: Mapping[str, Any]) -> None:
    """Let pass what zarr-python once had a use for; raise TypeError for other names."""
    for name, value in options.items():
        if name not in {"cache_attrs", "synchronizer", "chunk_store", "meta_array", "cache_metadata"}:
            raise TypeError(f"unexpected keyword {name!r}")
        if value is not None:
            warnings.warn(f"{name} is without effect: writers are kept apart without it", UserWarning, stacklevel=3)


# -- creating ----------------------------------------------------------------------


def create_array(
    store: Any,
    *,
    name: str | None = None,
    shape: int | Iterable[int] | None = None,
    dtype: Any = None,
    data: Any = None,
    chunks: Any = "auto",
    shards: Any = None,
    filters: Any = "auto",
    compressors: Any = "auto",
    serializer: Any = "auto",
    fill_value: Any = DEFAULT,
    order: Literal["C", "F"] | None = None,
    zarr_format: int | str | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: Any = None,
    dimension_names: Iterable[str | None] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    config: ArrayConfig | Mapping[str, Any] | None = None,
    write_data: bool = True,
    missing: Missing | None = None,
    allow_pickle: bool | None = None,
    write_empty_chunks: bool | None = None,
    object_codec: Any = None,
    codecs: Any = None,
) -> Array:
    """Create an array.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
        Where to.
    name : str, optional
        Path within the store. Groups between are created too.
    shape : int or tuple of int
        Elements along each dimension.
    dtype : data type
        A NumPy dtype or its name, ``"string"``, ``"bytes"``, a name or document of Zarr v3.
    data : array_like, optional
        Values; `shape` and `dtype` are then taken from it.
    chunks : tuple of int, int, "auto", True, False
        Shape of a chunk (with shards: of an inner chunk). "auto" and True: what suits most uses; False: one chunk; an
        integer: this length along each dimension; -1 or None: all of a dimension. A list of
        lengths for a dimension makes a rectilinear grid.
    shards : tuple of int, dict, "auto", optional
        Shape of a shard; a dictionary has ``"shape"`` and ``"index_location"``.
    filters, serializer, compressors
        Codecs: values of `omnizarr.codecs`, objects of numcodecs, names or dictionaries; one or several, None for
        none, "auto" for what suits the data type (Zstandard as compressor).
    fill_value : scalar, optional
        Value of elements that are not written. Default zero. None means zero, too, but undefined for Zarr v2.
    order : {"C", "F"}, optional
        Memory layout of results; for Zarr v2, of the stored chunks.
    zarr_format : {2, 3}, optional
        Default: that of the group it lies in, else 3.
    attributes : mapping, optional
    chunk_key_encoding : dict, optional
        ``{"name": "default" or "v2", "separator": "/" or "."}``.
    dimension_names : tuple of (str or None), optional
        Zarr v3 only.
    storage_options : mapping, optional
        For stores that take them.
    overwrite : bool
        Replace what is there.
    config, missing, allow_pickle, write_empty_chunks
        How the array behaves while it is open; see `open_array`.
    write_data : bool
        Whether `data` is written, or only looked at.
    object_codec : codec, optional
        What Python objects are (Zarr v2 only).
    codecs : list of codecs, optional
        All codecs in one list, instead of filters, serializer and compressors.

    Returns
    -------
    Array

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        If there is something, and not `overwrite`; of several who create at the same time one succeeds.
    MetadataError, CodecError
        If a keyword makes no sense, or does not fit the others.
    NotRepresentableError
        If the format has no words for it.

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
    where, _ = _locate(store, name, "a", storage_options)
    return nodes.new_array(
        where,
        shape=shape,
        dtype=dtype,
        data=data,
        chunks=chunks,
        shards=shards,
        filters=filters,
        compressors=compressors,
        serializer=serializer,
        fill_value=fill_value,
        order=order,
        zarr_format=zarr_format,
        attributes=attributes,
        chunk_key_encoding=chunk_key_encoding,
        dimension_names=dimension_names,
        overwrite=overwrite,
        config=config,
        write_data=write_data,
        missing=missing,
        allow_pickle=allow_pickle,
        write_empty_chunks=write_empty_chunks,
        object_codec=object_codec,
        codecs=codecs,
    )


def create(
    shape: int | Iterable[int] | None = None,
    *,
    store: Any = None,
    path: str | None = None,
    mode: Mode | None = None,
    zarr_format: int | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    chunk_shape: Any = None,
    chunks: Any = "auto",
    dtype: Any = None,
    synchronizer: Any = None,
    **options: Any,
) -> Array:
    """Create an array, by default in memory; with the older keywords of zarr.

    Parameters
    ----------
    shape : int or tuple of int
    store : path, URL, Store, StorePath, mutable mapping or None
        Where to; None: in memory.
    path : str, optional
        Path within the store.
    mode : {"a", "w", "w-"}, optional
        "w" replaces what is there.
    zarr_format, storage_options
        As for `create_array`.
    chunk_shape, chunks
        Shape of a chunk.
    dtype : data type
        Default float64.
    **options
        Keywords of `create_array`, and `compressor`, `dimension_separator`.
    """
    _warn_ignored({"synchronizer": synchronizer})
    where, _ = _locate(store, path, "a", storage_options)
    if mode == "w":
        options["overwrite"] = True
    if dtype is None and options.get("data") is None:
        dtype = np.dtype("float64")
    return nodes.new_array(
        where,
        shape=shape,
        dtype=dtype,
        chunks=chunks if chunk_shape is None else chunk_shape,
        zarr_format=zarr_format,
        **options,
    )


def array(data: Any, **options: Any) -> Array:
    """Create an array that holds `data`, by default in memory; keywords as those of `create`."""
    return create(data=data, **options)


def empty(shape: Any, **options: Any) -> Array:
    """Create an array whose elements are not set; keywords as those of `create`."""
    return create(shape, **options)


def zeros(shape: Any, **options: Any) -> Array:
    """Create an array of zeros; keywords as those of `create`."""
    return create(shape, **{"fill_value": 0, **options})


def ones(shape: Any, **options: Any) -> Array:
    """Create an array of ones; keywords as those of `create`."""
    return create(shape, **{"fill_value": 1, **options})


def full(shape: Any, fill_value: Any, **options: Any) -> Array:
    """Create an array of one value; keywords as those of `create`."""
    return create(shape, **{"fill_value": fill_value, **options})


def empty_like(a: Any, **options: Any) -> Array:
    """Create an array like `a`: shape, data type, chunks, codecs; keywords as those of `create`."""
    return create(**nodes.like(a, options))


def zeros_like(a: Any, **options: Any) -> Array:
    """Create an array of zeros like `a`; keywords as those of `create`."""
    return create(**nodes.like(a, {"fill_value": 0, **options}))


def ones_like(a: Any, **options: Any) -> Array:
    """Create an array of ones like `a`; keywords as those of `create`."""
    return create(**nodes.like(a, {"fill_value": 1, **options}))


def full_like(a: Any, fill_value: Any, **options: Any) -> Array:
    """Create an array of one value like `a`; keywords as those of `create`."""
    return create(**nodes.like(a, {"fill_value": fill_value, **options}))


def from_array(
    store: Any,
    *,
    data: Any,
    write_data: bool = True,
    name: str | None = None,
    chunks: Any = "keep",
    shards: Any = "keep",
    filters: Any = "keep",
    compressors: Any = "keep",
    serializer: Any = "keep",
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Array:
    """Create an array from another one, of any library, block by block.

    Parameters
    ----------
    store, name, storage_options
        As for `create_array`.
    data : array
        What to copy.
    write_data : bool
        Whether values are copied, or only the rest.
    chunks, shards, filters, compressors, serializer
        "keep": as in `data`, where it has such and the format is the same; else as for `create_array`.
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
    found = nodes.like(data, {**options, **changed})
    if changed.keys() & {"filters", "compressors", "serializer", "chunks", "shards"}:
        found.pop("codecs", None)
    if isinstance(data, Array) and "attributes" not in options:
        found["attributes"] = data.attrs.asdict()
    where, _ = _locate(store, name, "a", storage_options)
    if not (hasattr(data, "shape") and hasattr(data, "dtype")):
        data = np.asarray(data)
    target = nodes.new_array(where, **found)
    if write_data:
        nodes.fill(target, data)
    return target


def create_group(
    store: Any,
    *,
    path: str | None = None,
    zarr_format: int | str | None = None,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Group:
    """Create a group, with the groups above it that are not there.

    Parameters
    ----------
    store, zarr_format, storage_options
        As for `create_array`.
    path : str, optional
        Path within the store.
    overwrite : bool
        Replace what is there, with all below it.
    attributes : mapping, optional

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        If there is something, and not `overwrite`.
    """
    where, _ = _locate(store, path, "a", storage_options)
    dialect = nodes.dialect_for_new(where, zarr_format)
    return Group(
        where, hierarchy.create(where, nodes.new_group_metadata(where, dialect, attributes), overwrite=overwrite)
    )


def group(
    store: Any = None,
    *,
    overwrite: bool = False,
    path: str | None = None,
    zarr_format: int | str | None = None,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **ignored: Any,
) -> Group:
    """Return the group at a place (by default in memory), after creating it if there is none; as `create_group`."""
    _warn_ignored(ignored)
    where, _ = _locate(store, path, "a", storage_options)
    metadata = nodes.new_group_metadata(where, nodes.dialect_for_new(where, zarr_format), attributes)
    if overwrite:
        return Group(where, hierarchy.create(where, metadata, overwrite=True))
    return Group(where, hierarchy.require(where, metadata))


def create_hierarchy(
    *, store: Any, nodes: Mapping[str, ArrayMetadata | GroupMetadata], overwrite: bool = False
) -> Iterator[tuple[str, Array | Group]]:
    """Create many nodes; yield path and node of each.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
    nodes : mapping of str to metadata
        By path; groups above that are not among them are created too.
    overwrite : bool
        Replace what is there.
    """
    where, _ = _locate(store, None, "a", None)
    for path, metadata in sorted(nodes.items()):
        yield path, create_node(where / path, metadata, overwrite=overwrite)


def consolidate_metadata(store: Any, path: str | None = None, zarr_format: int | str | None = None) -> Group:
    """Store copies of the documents of all nodes below a group with it, and return it, opened from them.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        Look only for this format.
    """
    where, _ = _locate(store, path, "r+", None)
    hierarchy.open_group(where, zarr_format)
    consolidated.consolidate(where)
    return open_group(where, zarr_format=zarr_format, use_consolidated=True)


# -- saving and loading -------------------------------------------------------------


def save(store: Any, *args: Any, zarr_format: int | str | None = None, path: str | None = None, **kwargs: Any) -> None:
    """Save arrays, as `numpy.save` does; what is there is replaced.

    Parameters
    ----------
    store : path, URL, Store, StorePath or mutable mapping
    *args : array_like
        One is saved as an array; several as the arrays ``arr_0``, ``arr_1``, ... of a group.
    zarr_format, path
        As for `create_array`.
    **kwargs : array_like
        Saved as arrays of a group, under their names.

    Raises
    ------
    ValueError
        If there is nothing to save.
    """
    if len(args) == 1 and not kwargs:
        save_array(store, args[0], zarr_format=zarr_format, path=path)
    else:
        save_group(store, *args, zarr_format=zarr_format, path=path, **kwargs)


def save_array(
    store: Any, arr: Any, *, zarr_format: int | str | None = None, path: str | None = None, **options: Any
) -> None:
    """Save an array; what is there is replaced. Keywords as those of `create`."""
    where, _ = _locate(store, path, "a", None)
    nodes.new_array(where, data=arr, zarr_format=zarr_format, **{"overwrite": True, **options})
    _close_ours(store, where.store)


def save_group(
    store: Any, *args: Any, zarr_format: int | str | None = None, path: str | None = None, **kwargs: Any
) -> None:
    """Save several arrays in a group; what is there is replaced. Arguments as for `save`."""
    arrays = {**{f"arr_{number}": value for number, value in enumerate(args)}, **kwargs}
    if not arrays:
        raise ValueError("there is nothing to save: give at least one array")
    where, _ = _locate(store, path, "a", None)
    target = create_group(where, zarr_format=zarr_format, overwrite=True)
    for name, value in arrays.items():
        target.create_array(name, data=value)
    _close_ours(store, where.store)


def load(store: Any, path: str | None = None, zarr_format: int | str | None = None) -> Any:
    """Return the values of an array, or those of the arrays in a group in a dictionary by name.

    Raises NodeNotFoundError.
    """
    node = open(store, mode="r", path=path, zarr_format=zarr_format)
    loaded = node[...] if isinstance(node, Array) else {name: member[...] for name, member in node.arrays()}
    _close_ours(store, node.store)
    return loaded


def _close_ours(given: Any, store: Store) -> None:
    """Close a store that the caller did not hand in: a zip archive is written when it is closed."""
    if not isinstance(given, (Store, StorePath, Group, Array)):
        store.close()


def tree(grp: Group, expand: bool | None = None, level: int | None = None) -> Tree:  # noqa: FBT001 - zarr's signature
    """Return a drawing of what lies below a group; see `Group.tree`."""
    return grp.tree(expand, level)


def print_debug_info() -> None:
    """Print the versions that a report of a bug should name."""
    print(f"platform: {platform.platform()}")  # noqa: T201 - what it is for
    metadata = import_module("importlib.metadata")  # 10 ms, and hardly ever needed
    print(f"python: {sys.version.split()[0]}")  # noqa: T201
    for package in ("omnizarr", "numpy", "numcodecs", "google-crc32c", "zfpy", "pcodec", "ml_dtypes", "zarr"):
        try:
            print(f"{package}: {metadata.version(package)}")  # noqa: T201
        except metadata.PackageNotFoundError:
            print(f"{package}: not installed")  # noqa: T201
