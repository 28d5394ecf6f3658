"""Dask arrays of omnizarr arrays, and the other way round.

You can also pass an `omnizarr.Array` to `dask.array.from_array` and `dask.array.store`. Pickled, it takes a few
hundred bytes: its documents and its place. Its name in a graph (``dask.base.tokenize``) depends on the place
without credentials, the documents, and how it was opened. An array that is opened twice, in any process, has one
name; two arrays have two. Chunks do not count: later writes do not invalidate cached results.

The store keeps writers of different parts of a chunk apart (see `Features.exclusion`), so ``lock=False`` is right,
and nothing is lost if chunks of dask do not end at chunks of the array. It is faster if they do.

>>> import dask.array as da
>>> import omnizarr
>>> from omnizarr.interop.dask import from_zarr, to_zarr
>>> stored = to_zarr(da.arange(6, chunks=2) ** 2, {})
>>> int(from_zarr(stored).sum().compute())
55
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from omnizarr.api.opening import locate, open_array
from omnizarr.errors import MissingDependencyError, SchedulerError, ShapeError
from omnizarr.formats import dialect_named
from omnizarr.interop import rechunked
from omnizarr.interop.gates import ends_with_chunks, gathered, through_gates
from omnizarr.metadata import as_model
from omnizarr.nodes import creating, replacing
from omnizarr.nodes.array import Array
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.options import FromZarrOptions, ToZarrOptions
from omnizarr.stores import LocalStore, Store, pool
from omnizarr.support import extras
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import dask.array as da

_dask: Any = Lazy("dask")

__all__ = ["from_zarr", "to_zarr"]


def from_zarr(
    source: Any,
    *,
    chunks: Any = None,
    name: str | None = None,
    inline_array: bool = False,
    **options: Unpack[FromZarrOptions],
) -> da.Array:
    """Return a dask array of a stored array.

    Parameters
    ----------
    source : Array, path, URL, Store, StorePath or mutable mapping
    chunks : int, tuple, str, optional
        Like that of `dask.array.from_array`. The default is whole chunks (or shards) of the array, combined up
        to dask's ``array.chunk-size``; for larger shards, whole inner chunks.
    name, inline_array
        Like those of `dask.array.from_array`.
    **options
        Keywords of `open_array`, if the source is not open.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    ArrayNotFoundError
        If the array does not exist.
    MissingDependencyError
        If dask is not installed.

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, data=[[1, 2], [3, 4]], chunks=(1, 2))
    >>> from_zarr(array, chunks=(1, 2)).sum(axis=0).compute()
    array([4, 6])
    """
    arrays: Any = _arrays()
    array = source if isinstance(source, Array) and not options else open_array(source, mode="r", **options)
    result: da.Array = arrays.from_array(
        array,
        chunks=_chunks_for(array) if chunks is None else chunks,
        name=name,
        lock=False,
        inline_array=inline_array,
        meta=np.empty((0,) * array.ndim, array.dtype),
    )
    rechunked.remember(result, array)
    return result


def to_zarr(
    array: da.Array,
    target: Any,
    *,
    compute: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **options: Unpack[ToZarrOptions],
) -> Any:
    """Store a dask array.

    Parameters
    ----------
    array : dask.array.Array
        The dask array. Its shape must be known.
    target : Array, path, URL, Store, StorePath or mutable mapping
        An existing array of the same shape, or the place of a new one.
    compute : bool
        Whether to store now. If not, a new array is created, and the returned `dask.delayed.Delayed` stores the data.
    storage_options, **options
        Keywords of `create_array`, for a new array. Its chunks are those of dask, if they have one shape.

    Returns
    -------
    Array, or Delayed if not `compute`

    Raises
    ------
    ShapeError
        If the shape is unknown, or differs from that of the target.
    SchedulerError
        If values would be stored in the memory of other processes.
    NodeExistsError
        If the target exists, and ``overwrite=True`` is not among the options.
    MissingDependencyError
        If dask is not installed.

    Examples
    --------
    >>> import dask.array as da
    >>> stored = to_zarr(da.ones((4, 4), chunks=(2, 4)), {}, compressors=None)
    >>> stored.chunks, float(stored[...].sum())
    ((2, 4), 16.0)
    """
    _arrays()
    if any(math.isnan(length) for length in array.shape):
        raise ShapeError("the shape of the dask array is not known", remedy="call its compute_chunk_sizes() before")
    if isinstance(target, Array):
        stored = _fitting(target, array, options)
        _check_reachable(stored.store_path, compute=compute)
        if compute and _can_stage(stored.store) and _is_read(stored.store_path, array):
            # Store a dask array in the array that it reads from, in any order: it is read before anything is replaced.
            metadata = as_model(stored.metadata)

            def make(place: StorePath) -> None:
                _stored(array, creating.add_array(place, metadata, stored.config), compute=True)

            replacing.remade(stored.store_path, dialect_named(metadata.dialect), make)
            return stored
        waiting = _stored(array, stored, compute=compute)
        return stored if compute else waiting
    where, _ = locate(target, options.pop("name", None), "a", storage_options, options.pop("synchronizer", None))
    _check_reachable(where, compute=compute)
    layout = {} if {"chunks", "shards", "codecs"} & options.keys() else {"chunks": _regular(array.chunks)}
    new: Any = {"shape": array.shape, "dtype": array.dtype, **layout, **options}
    if compute and _can_stage(where.store):
        return creating.new_array(where, write=lambda made: _stored(array, made, compute=True), **new)
    if options.get("overwrite") and _is_read(where, array):
        raise ValueError(
            f"{where}: the data would be read from what is replaced, after its removal: "
            "write it to another place, or load it before"
        )
    stored = creating.new_array(where, **new)
    waiting = _stored(array, stored, compute=compute)
    return stored if compute else waiting


def _check_reachable(where: StorePath, *, compute: bool) -> None:
    """Raise SchedulerError if other processes would store values in the memory of this one."""
    if compute and not where.store.features.is_shared and is_elsewhere():
        raise SchedulerError(
            "the store is in the memory of this process: other processes cannot reach it",
            store=str(where.store),
            remedy="use a directory or an object store, or the scheduler 'threads'",
        )


def _stored(array: da.Array, target: Array, *, compute: bool) -> Any:
    """Store a dask array in an array of its shape, or return what does that."""
    arrays = _arrays()
    array = _in_blocks(array, target)
    is_aligned = ends_with_chunks(array.chunks, target.write_chunk_sizes)
    if compute and not is_aligned and not is_elsewhere():
        # Chunks of dask end within chunks of the array, which would be stored once for each of them.
        with gathered([target], [True]) as writers:
            return through_gates(writers, lambda targets: arrays.store(array, targets[0], lock=False))
    if target.store.features.exclusion == "process" and not is_aligned:
        # Nothing would keep writers in other processes apart.
        array = arrays.rechunk(array, _chunks_for(target, whole=True))
    if not compute:
        return arrays.store(array, target, lock=False, compute=False)
    return through_gates([target], lambda targets: arrays.store(array, targets[0], lock=False))


def _in_blocks(array: da.Array, target: Array) -> da.Array:
    """Return a dask array in chunks that suit source and target, if all that it does is to rechunk a stored array."""
    source = rechunked.source_of(array)
    if source is None:
        return array
    found = rechunked.blocks_for(source, target, _chunk_bytes(), _workers())
    if found is None:
        return array
    read, stored = found
    made: da.Array = _arrays().rechunk(from_zarr(source, chunks=read), stored)
    return made


def _chunk_bytes() -> int:
    """Return how large dask wants chunks."""
    found: int = _dask.utils.parse_bytes(_dask.config.get("array.chunk-size"))
    return found


def _workers() -> int:
    """Return how many tasks the workers of dask do at a time."""
    if not is_elsewhere():
        return pool.default_concurrency()
    client = getattr(getattr(_dask.base.get_scheduler(), "__self__", None), "ncores", None)
    return pool.default_concurrency() if client is None else sum(client().values())


def _can_stage(store: Store) -> bool:
    """Return whether all workers can reach what is made in a directory before it replaces something in a store."""
    return type(store) is LocalStore or not is_elsewhere()


def _is_read(where: StorePath, array: da.Array) -> bool:
    """Return whether the graph of a dask array reads from a place, as far as that can be seen."""
    found = (getattr(each, "value", each) for each in dict(array.__dask_graph__()).values())
    return any(isinstance(each, Array) and each.store_path.lies_in(where) for each in found)


def _arrays() -> Any:
    try:
        return import_module("dask.array")
    except ImportError as error:
        raise MissingDependencyError("this needs dask", remedy=extras.remedy("dask")) from error


def _chunks_for(array: Array, *, whole: bool = False) -> tuple[tuple[int, ...], ...]:
    """Return lengths of chunks for dask: whole chunks of the array, together about as large as dask wants them.

    For larger chunks, whole inner chunks, unless `whole` chunks are wanted.
    """
    stored = array.write_chunk_sizes
    limit = _chunk_bytes()
    if not whole and math.prod(max(lengths, default=0) for lengths in stored) * array.dtype.itemsize > limit:
        stored = array.read_chunk_sizes
    room = limit // max(array.dtype.itemsize * math.prod(max(lengths, default=1) for lengths in stored), 1)
    merged: list[tuple[int, ...]] = []
    for lengths in reversed(stored):  # the last dimension first, as elements are beside each other there
        several = max(1, min(room, len(lengths)))
        room //= several
        merged.append(tuple(sum(lengths[at : at + several]) for at in range(0, len(lengths), several)) or (0,))
    return tuple(reversed(merged))


def _fitting(target: Array, array: da.Array, options: Mapping[str, Any]) -> Array:
    if options:
        raise TypeError(f"{', '.join(options)}: not allowed for an array that exists")
    if target.shape != array.shape:
        raise ShapeError(
            "the dask array has another shape",
            store=str(target.store),
            path=target.path,
            found=array.shape,
            expected=target.shape,
        )
    return target


def _regular(chunks: tuple[tuple[int, ...], ...]) -> Any:
    """Return the shape of a chunk if all have one, except the last ones; otherwise one that suits the array."""
    if any(len({*lengths[:-1], max(lengths)}) > 1 for lengths in chunks) or any(
        max(lengths) == 0 for lengths in chunks
    ):
        return "auto"
    return tuple(lengths[0] for lengths in chunks)


def is_elsewhere() -> bool:
    """Return whether dask would compute in other processes."""
    get = _dask.base.get_scheduler()
    return get not in {None, _dask.threaded.get, _dask.local.get_sync}
