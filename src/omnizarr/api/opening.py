"""The functions that open arrays and groups.

Opening creates nothing, unless you pass a mode that creates:

=========  ==================================================================
``mode``   what happens
=========  ==================================================================
``None``   open an existing node, for writing if the store can be written
``"r"``    open an existing node, for reading only
``"r+"``   open an existing node for reading and writing
``"a"``    open an existing node, or create it
``"w"``    create a node, and replace an existing one
``"w-"``   create a node; raise an error if one exists (also ``"x"``)
=========  ==================================================================
"""

from __future__ import annotations

import inspect
import pathlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, Unpack

from omnizarr.engine import transformers
from omnizarr.errors import ArrayNotFoundError, NodeNotFoundError, Remedy
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.nodes import consolidated, detection, outside
from omnizarr.nodes.array import Array
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.detection import Found
from omnizarr.nodes.group import Group
from omnizarr.nodes.late import hierarchy
from omnizarr.nodes.location import StorePath, normalize
from omnizarr.nodes.node import Node
from omnizarr.nodes.options import (
    IgnoredOptions,
    OpenArrayOptions,
    OpenConsolidatedOptions,
    OpenLikeOptions,
    OpenOptions,
    StoreLike,
    check,
    shows,
)
from omnizarr.nodes.options import (
    Mode as Mode,
)
from omnizarr.nodes.outside import Beyond
from omnizarr.stores import PrefixStore
from omnizarr.stores.resolve import refuse_other_format, resolve_root
from omnizarr.support import suggestions
from omnizarr.support.lazy import Lazy
from omnizarr.support.warned import warn

if TYPE_CHECKING:
    from omnizarr.nodes import creating
    from omnizarr.stores.wrap import synchronized
else:
    creating = Lazy("omnizarr.nodes.creating")
    synchronized = Lazy("omnizarr.stores.wrap.synchronized")

Missing: TypeAlias = Literal["fill", "error"]
_CREATING = ("a", "w", "w-", "x")
_BEHAVIOUR = ("missing", "allow_pickle", "write_empty_chunks", "concurrency", "order")


@shows(OpenOptions)
def open(  # noqa: A001 - the name that zarr has for it
    store: StoreLike | None = None,
    mode: Mode | None = None,
    *,
    zarr_format: int | str | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    synchronizer: Any = None,
    **options: Unpack[OpenOptions],
) -> Array | Group:
    """Open the array or group at a place.

    Parameters
    ----------
    store : path, URL, Store, StorePath, mutable mapping or None
        The place of the node.
    mode : {"r", "r+", "a", "w", "w-"}, optional
        What to do if the node exists or not; see `omnizarr.api.opening`. By default, nothing is created.
    zarr_format : int or str, optional
        Look only for this format; also the format of a new node.
    path : str, optional
        Path within the store.
    storage_options : mapping, optional
        Options of the store, such as credentials; see `omnizarr.stores.resolve`.
    synchronizer : object, optional
        A lock that all writers share, or a mapping or function that returns the lock for a key. Use it for
        stores that cannot keep writers apart; see `omnizarr.stores.SynchronizedStore`.
    **options
        For opening: `config`, `missing`, `allow_pickle`, `write_empty_chunks`, `concurrency` (see `ArrayConfig`),
        `use_consolidated`, `check_consolidated` (see `open_group`). For creating, the keywords of
        `create_array` (if `shape` or `data` is among them) or `create_group`.

    Returns
    -------
    Array or Group

    Raises
    ------
    NodeNotFoundError
        If there is no node; the error suggests similar names.
    MetadataError
        If a document breaks its format.
    NodeExistsError
        In mode ``"w-"``, if a node exists.

    Examples
    --------
    >>> import omnizarr
    >>> values = {}
    >>> _ = omnizarr.create_array(values, name="temp", shape=(4,), dtype="float32")
    >>> omnizarr.open(values)["temp"]
    <Array /temp (4,) float32 memory>
    """
    asked = _known(options, open) if options else {}
    where, mode, _ = located(store, path, mode, storage_options, synchronizer)
    through = _through(asked.get("storage_transformers"), where) if asked else where
    found = detection.detect(through, zarr_format) if mode == "a" else None
    if found is None and mode in _CREATING:
        opener: Any = open_array if "shape" in asked or "data" in asked else open_group
        return opener(where, mode="w-" if mode == "a" else mode, zarr_format=zarr_format, **asked)  # type: ignore[no-any-return]
    found = found or detection.open_node(through, zarr_format)
    if isinstance(found.metadata, ArrayMetadata):
        return Array(found.where, found.metadata, _behaviour(asked) if asked else ArrayConfig.of())
    return _opened_group(Found(found.where, found.metadata), asked)


@shows(OpenArrayOptions)
def open_array(
    store: StoreLike | None = None,
    mode: Mode | None = None,
    *,
    zarr_format: int | str | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    synchronizer: Any = None,
    **options: Unpack[OpenArrayOptions],
) -> Array:
    """Open the array at a place.

    Parameters
    ----------
    store, mode, zarr_format, path, storage_options, synchronizer
        As for `open`.
    config : ArrayConfig or mapping, optional
        Settings of the open array.
    missing : {"fill", "error"}, optional
        Reading a chunk that is not stored returns the fill value ("fill", the default) or raises
        ChunkNotFoundError ("error").
    allow_pickle : bool, optional
        Whether to read pickled objects. Reading them can run arbitrary code. The default is False.
    write_empty_chunks : bool, optional
        Whether to store chunks that hold only the fill value. The default is False.
    storage_transformers : list of (str, dict), optional
        Storage transformers to use while the array is open, in addition to those in its metadata. They must not
        change keys or bytes; a cache is an example. See `omnizarr.engine.transformers`.
    **options
        Keywords of `create_array`, for modes that create.

    Raises
    ------
    ArrayNotFoundError
        If there is no node.
    ContainsGroupError
        If there is a group.
    """
    asked = _known(options, open_array) if options else {}
    where, mode, above = located(store, path, mode, storage_options, synchronizer)
    if asked:
        where = _through(asked.pop("storage_transformers", None), where)
    there = detection.detect(where, zarr_format) if mode == "a" else None
    if there is None and mode in _CREATING:
        if asked.get("shape") is None and asked.get("data") is None:
            raise ArrayNotFoundError(
                "there is no array here",
                store=str(where.store),
                path=where.path,
                remedy=Remedy("pass {shape} and {dtype}, or {data}, to create it", shape=..., dtype=..., data=...),
            )
        new = {**asked, "overwrite": mode == "w"}
        return creating.new_array(where, zarr_format=zarr_format, above=hierarchy.Above(beyond=above), **new)
    found = detection.open_array(where, zarr_format, there)
    return Array(found.where, found.metadata, _behaviour(asked) if asked else ArrayConfig.of())


@shows(IgnoredOptions)
def open_group(
    store: StoreLike | None = None,
    mode: Mode | None = None,
    *,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    synchronizer: Any = None,
    zarr_format: int | str | None = None,
    attributes: Mapping[str, Any] | None = None,
    use_consolidated: bool | str | None = None,
    check_consolidated: bool = False,
    config: ArrayConfig | Mapping[str, Any] | None = None,
    missing: Missing | None = None,
    allow_pickle: bool | None = None,
    write_empty_chunks: bool | None = None,
    concurrency: int | None = None,
    **ignored: Unpack[IgnoredOptions],
) -> Group:
    """Open the group at a place.

    Parameters
    ----------
    store, mode, path, storage_options, synchronizer, zarr_format
        As for `open`.
    attributes : mapping, optional
        Attributes of the group, if it is created.
    use_consolidated : bool or str, optional
        Whether to use consolidated metadata. None: if there is any. True: it must exist. False: never. A
        string: the name of its document, if it is not the usual one.
    check_consolidated : bool
        Whether to compare the consolidated metadata with all documents first.
    config, missing, allow_pickle, write_empty_chunks, concurrency
        Settings of arrays in the group; see `open_array`.

    Raises
    ------
    GroupNotFoundError
        If there is no node.
    ContainsArrayError
        If there is an array.
    ConsolidatedMetadataError
        If consolidated metadata is required but missing or broken, or if the check finds that it is stale.
    """
    warn_ignored(ignored)
    where, mode, above = located(store, path, mode, storage_options, synchronizer)
    options = {
        "config": config,
        "use_consolidated": use_consolidated,
        "check_consolidated": check_consolidated,
        "missing": missing,
        "allow_pickle": allow_pickle,
        "write_empty_chunks": write_empty_chunks,
        "concurrency": concurrency,
    }
    there = detection.detect(where, zarr_format, "group") if mode == "a" else None
    if there is None and mode in _CREATING:
        new = creating.new_group(
            where, zarr_format, attributes, overwrite=mode == "w", above=hierarchy.Above(beyond=above)
        )
        return Group(new.where, new.metadata, _behaviour(options))
    found = detection.open_group(where, zarr_format, there)
    return _opened_group(found, options)


def open_file(name: StoreLike, mode: Mode | Literal["x"] = "r", **options: Any) -> Group:
    """Open a group as h5py's ``File`` does: for reading, unless another mode is given.

    Examples
    --------
    >>> import omnizarr
    >>> values = {}  # or a path: "x.zarr"
    >>> with omnizarr.File(values, "w") as root:
    ...     root["x"] = [1, 2]
    >>> omnizarr.File(values)["x"][()]
    array([1, 2])
    """
    return open_group(name, "w-" if mode == "x" else mode, **options)


def open_consolidated(
    *args: Any, use_consolidated: bool | str = True, **options: Unpack[OpenConsolidatedOptions]
) -> Group:
    """Open the group at a place from its consolidated metadata, which must exist. Otherwise this is `open_group`."""
    return open_group(*args, use_consolidated=use_consolidated, **options)


def open_like(a: Any, path: Any, **options: Unpack[OpenLikeOptions]) -> Array:
    """Open an array. With ``mode="a"`` or ``"w"``, create one like `a`. Keywords are those of `open_array`."""
    return open_array(path, **creating.like(a, options))


def _opened_group(found: Found[GroupMetadata], options: Mapping[str, Any]) -> Group:
    snapshot = Snapshot.of(found, options.get("use_consolidated"))
    if options.get("check_consolidated"):
        snapshot = consolidated.snapshot(found.where, options.get("use_consolidated"))
        if snapshot is not None:
            consolidated.check(found.where, snapshot.nodes)
    return Group(found.where, found.metadata, _behaviour(options), snapshot)


def _through(given: Iterable[Any] | None, where: StorePath) -> StorePath:
    """Return the place seen through storage transformers that you pass when you open it."""
    if not given:
        return where
    return replace(where, store=transformers.apply(transformers.parse(given), where.store, where.prefix))


def _behaviour(options: Mapping[str, Any]) -> ArrayConfig:
    return ArrayConfig.of(options.get("config"), **{name: options.get(name) for name in _BEHAVIOUR})


def _known(options: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options that have an effect.

    Raises TypeError for an option that the signature of `function` does not have.
    """
    check(options, inspect.signature(function).parameters)
    warn_ignored({name: options[name] for name in IGNORED & options.keys()})
    return {name: value for name, value in options.items() if name not in IGNORED}


def locate(
    store: Any,
    path: str | None,
    mode: Mode | None,
    storage_options: Mapping[str, Any] | None,
    synchronizer: Any = None,
) -> tuple[StorePath, Mode]:
    """Return the place and the mode for the arguments of a user."""
    where, mode, _ = located(store, path, mode, storage_options, synchronizer)
    return where, mode


def located(
    store: Any,
    path: str | None,
    mode: Mode | None,
    storage_options: Mapping[str, Any] | None,
    synchronizer: Any = None,
) -> tuple[StorePath, Mode, Beyond | None]:
    """Return what `locate` does, and what has been seen above a directory that does not exist yet."""
    if mode is not None and mode not in {"r", "r+", *_CREATING}:
        raise ValueError(f"mode={mode!r}: expected one of 'r', 'r+', 'a', 'w', 'w-'")
    base, home = "", None
    if not isinstance(store, str):
        # Nodes have an abstract base, for which `isinstance` takes ten times as long.
        place = store.store_path if Node in type(store).__mro__ else store
        if isinstance(place, StorePath):
            store, base, home = place.store, place.path, place.home
    # "w" and "w-" concern a node in the store, not the store itself.
    try:
        opened, inner = resolve_root(store, "a" if mode in {"w", "w-", "x"} else mode, storage_options)
    except NodeNotFoundError as error:  # the archive does not exist yet
        near = suggestions.question(suggestions.near_directories(pathlib.Path(error.store or ".")))
        raise error.add(remedy=near or Remedy("correct the path") | Remedy("make an archive by {mode}", mode="w"))
    if mode in _CREATING and opened is not store:
        refuse_other_format(opened)
    if mode is None:
        mode = "r" if opened.read_only else "r+"
    if synchronizer is not None:
        opened = synchronized.SynchronizedStore(opened, synchronizer)
    at = _joined(inner, base, path) if inner or base or path is not None else ""
    if path and isinstance(opened, PrefixStore) and opened is not store and mode in {"r", "r+"}:
        # The only folder of an archive may be the first node itself.
        whole = StorePath(opened.store, at)
        if detection.find(StorePath(opened, at)) is None and detection.find(whole) is not None:
            return whole, mode, None
    if home is not None:
        return StorePath(opened, base, home).at(at), mode, None
    where = StorePath(opened, at)
    above = outside.beyond(where, is_resolved=opened is not store)
    return (where if above is None else outside.entered(where, above) or where), mode, above


def _joined(inner: str, base: str, path: str | None) -> str:
    if path is not None and not isinstance(path, str):
        normalize(path)  # the archive refuses it
    return normalize("/".join((inner, base, path or "")))


IGNORED: Final = frozenset(IgnoredOptions.__annotations__)
"""Keywords of older versions of zarr-python, which have no effect."""


def warn_ignored(options: Mapping[str, Any]) -> None:
    """Accept keywords of older zarr-python with a warning; raise TypeError for other names."""
    check(options, IGNORED)
    for name, value in options.items():
        if value is not None:
            warn(f"{name} is without effect")
