"""Creating nodes: from the keywords of `create_array` and `create_group` to stored documents and an open node."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

import numpy as np

from omnizarr import engine
from omnizarr.engine import transformers
from omnizarr.errors import (
    ContainsArrayError,
    ContainsGroupError,
    MetadataError,
    OmnizarrError,
    Remedy,
    ShapeError,
    ValueTypeError,
)
from omnizarr.formats import dialect_named, dialects_for, documents
from omnizarr.formats import filters as v2_filters
from omnizarr.formats.contract import Dialect
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata, datatypes, grids
from omnizarr.model.grids import Grid
from omnizarr.nodes import detection, hierarchy, new_metadata, renewing, replacing
from omnizarr.nodes.array import Array
from omnizarr.nodes.attributes import to_json
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.detection import Found
from omnizarr.nodes.hierarchy import Above, Replaced
from omnizarr.nodes.late import nczarr, nczarr_members
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.naming import is_far, lists_members, may_have_objects
from omnizarr.nodes.new_metadata import Coding
from omnizarr.nodes.options import DEFAULTS, ArrayOptions, RequireOptions, check, completed
from omnizarr.nodes.writing import as_numpy
from omnizarr.settings import config as settings
from omnizarr.stores import verbs
from omnizarr.support.progress import Tick, silent
from omnizarr.support.warned import warn

# Arrays are copied in blocks of about this many bytes.
BLOCK_BYTES = 64 * 1024 * 1024

_BEHAVIOUR: Final = ("order", "write_empty_chunks", "missing", "allow_pickle", "concurrency")


def new_array(
    where: StorePath,
    *,
    zarr_format: int | str | None = None,
    snapshot: Snapshot | None = None,
    above: Above | None = None,
    write: Callable[[Array], object] | None = None,
    **options: Unpack[ArrayOptions],
) -> Array:
    """Create an array at a place, and return it. Keywords are those of `omnizarr.create_array`.

    Known nodes `above` are not read again. `write` is that of `add_array`; the default writes `data`.
    """
    asked = completed(options)
    above = above or Above()
    dialect = dialect_for_new(where, zarr_format, above)
    try:
        data, shape, dtype = _data_shape_dtype(asked["data"], asked["shape"], asked["dtype"])
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)
    config = ArrayConfig.of(asked["config"], **{name: asked[name] for name in _BEHAVIOUR})
    try:
        metadata = new_metadata.array_metadata(
            dialect,
            shape=shape,
            dtype=dtype,
            chunks=asked["chunks"],
            shards=asked["shards"],
            coding=_coding(asked, config),
            fill_value=asked["fill_value"],
            attributes=asked["attributes"],
            chunk_key_encoding=_key_encoding(asked),
            dimension_names=asked["dimension_names"],
        )
        if asked["storage_transformers"]:
            metadata = replace(metadata, storage_transformers=transformers.parse(asked["storage_transformers"]))
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)
    except RecursionError:
        raise MetadataError(
            "an argument is nested too deeply for a document",
            store=str(where.store),
            path=where.path,
            expected=f"at most {documents.MAX_DEPTH} objects and lists within each other",
        ) from None
    overwrite, is_filled = asked["overwrite"], data is not None and asked["write_data"]
    if overwrite and is_filled and write is None and not cannot_fail(data, metadata):
        write, is_filled = partial(fill, data=data), False
    array = add_array(where, metadata, config, overwrite=overwrite, snapshot=snapshot, above=above, write=write)
    if is_filled:
        fill(array, data)
    if asked["write_data"] and hasattr(data, "_replaces_text") and data._replaces_text():  # noqa: SLF001 - of our arrays
        warn(f"{where}: the data have U+FFFD in place of bytes of strings that are not UTF-8")
    return array


def _coding(asked: Mapping[str, Any], config: ArrayConfig) -> Coding:
    """Return the codecs that the keywords request."""
    compressors = asked["compressors"]
    if not _is_auto(asked["compressor"]):
        if not _is_auto(compressors):
            raise ValueError("Only one of compressor or compressors can be provided.")
        compressors = asked["compressor"]
    return Coding(
        asked["filters"],
        asked["serializer"],
        compressors,
        asked["codecs"],
        asked["object_codec"],
        config.order or "C",
    )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _key_encoding(asked: Mapping[str, Any]) -> Any:
    separator = asked["dimension_separator"]
    return asked["chunk_key_encoding"] if separator is None else {"name": "v2", "separator": separator}


def cannot_fail(data: Any, metadata: ArrayMetadata | None = None) -> bool:
    """Return whether data is in memory, and can be written after the removal of what is stored: no element is refused.

    Text may not be a number, and Python objects may not be what a codec encodes. `metadata` are those of the array, if
    it may have another data type.
    """
    if not isinstance(data, np.ndarray | np.generic):
        return False
    target = data.dtype if metadata is None else values_dtype(metadata.data_type)
    if target.kind == "T":
        return _is_text(data)
    if data.dtype.hasobject or target.hasobject:
        return False
    return data.dtype == target or (data.dtype.kind in _NUMBERS and target.kind in _NUMBERS)


_NUMBERS: Final = frozenset("biufc")


def _is_text(data: Any) -> bool:
    """Return whether all elements are text in Unicode, and none is missing."""
    if data.dtype.kind not in "OT" or hasattr(data.dtype, "na_object"):
        return False
    try:
        return all(isinstance(item, str) and item.encode() is not None for item in np.asarray(data).flat)
    except UnicodeEncodeError:
        return False


def add_array(
    where: StorePath,
    metadata: ArrayMetadata,
    config: ArrayConfig | None = None,
    *,
    overwrite: bool = False,
    snapshot: Snapshot | None = None,
    above: Above | None = None,
    new_in: Mapping[str, Sequence[Dialect]] | None = None,
    write: Callable[[Array], object] | None = None,
) -> Array:
    """Store the documents of a new array, and return it. An array that could not be read or written is refused.

    Known nodes `above` are not read again. `new_in` says that nothing is at the place, and what `create_in_new` needs.
    `write` writes the data. It may read what is replaced; if it fails, nothing is replaced. Raises the errors of
    `engine.check` and `hierarchy.create`.
    """
    config = config or ArrayConfig()
    dialect = dialect_named(metadata.dialect)
    above = above or Above()
    try:
        hierarchy.check_path(dialect, where.path)
        metadata = verbs.as_stored(where.store, where.prefix, metadata, False)  # noqa: FBT003 - verbs have no keywords
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)
    engine.check(metadata, where.store, where.prefix, config.policy, where.path)
    if overwrite and write is not None and replacing.is_taken(where, dialect, above):
        where, metadata = replacing.remade(where, dialect, lambda made: _made(made, metadata, config, write))
        enter(where, metadata, above)
    else:
        if new_in is None:
            found = hierarchy.create(where, metadata, overwrite=overwrite, above=above)
            enter(found.where, found.metadata, above)
        else:
            found = hierarchy.create_in_new(where, metadata, new_in)
        where, metadata = found.where, found.metadata
        if write is not None:
            write(Array(where, metadata, config))
    return Array(where, metadata, config, snapshot)


def enter(where: StorePath, metadata: Metadata, above: Above) -> None:
    """Let NCZarr's lists name a node that was created, if the groups above, or what it replaced, may be of NCZarr.

    For other nodes this asks for nothing. If a store begins below a group that cannot be changed, a warning says so.
    """
    replaced, unseen = above.replaced, above.unseen(where)
    if (
        any(map(lists_members, above.groups()))
        or (replaced is not None and _may_be_listed(where, replaced))
        or (unseen is not None and not is_far(where.store) and nczarr_members.is_in_dataset(unseen))
    ):
        try:
            nczarr_members.enter_new(where, metadata)
        except OmnizarrError as failure:
            if renewing.from_above(where) is None:
                raise
            warn(f"NCZarr's lists in the groups above {where} could not be renewed: {failure}")


def _may_be_listed(where: StorePath, replaced: Replaced) -> bool:
    """Return whether a group that was not read, or that netCDF-C 4.8.0 wrote, may list a node that was replaced."""
    node, is_beside = replaced
    if isinstance(node, OmnizarrError) or is_beside or nczarr.notes_of(node.metadata):
        return True
    # The marks of an array of v3 are in its group, which may be above the store.
    is_unseen = is_beside is None and may_have_objects(node.metadata)
    return (is_unseen or not where.path) and not is_far(where.store)


def _made(
    where: StorePath, metadata: ArrayMetadata, config: ArrayConfig, write: Callable[[Array], object]
) -> ArrayMetadata:
    """Create an array with its data, and return its metadata."""
    found = hierarchy.create(where, metadata)
    write(Array(found.where, found.metadata, config))
    return found.metadata


def dialect_for_new(where: StorePath, zarr_format: int | str | None, above: Above | None = None) -> Dialect:
    """Return the dialect of a new node: the requested one, else the one of the group above, else the default.

    `above` remembers what was found there.
    """
    above = above or Above()
    if zarr_format is None:
        if where.store.features.concurrency > 1:  # all of them are needed soon
            above.look_at(where.ancestors())
        for place in reversed(list(where.ancestors())):
            found = above.at(place)
            if isinstance(found, OmnizarrError):
                break
            if found is not None:
                return dialect_named(found.metadata.dialect)
        zarr_format = settings.get("default_zarr_format")
    return dialects_for(zarr_format)[0]


def new_group(
    where: StorePath,
    zarr_format: int | str | None,
    attributes: Mapping[str, Any] | None,
    *,
    overwrite: bool,
    above: Above | None = None,
) -> Found[GroupMetadata]:
    """Create a group at a place. Raises the errors of `hierarchy.create`."""
    above = above or Above()
    metadata = new_group_metadata(where, dialect_for_new(where, zarr_format, above), attributes)
    return add_group(where, metadata, overwrite=overwrite, above=above)


def add_group(
    where: StorePath, metadata: GroupMetadata, *, overwrite: bool = False, above: Above | None = None
) -> Found[GroupMetadata]:
    """Store the documents of a new group. Raises the errors of `hierarchy.create`."""
    above = above or Above()
    found = hierarchy.create(where, metadata, overwrite=overwrite, above=above)
    enter(found.where, found.metadata, above)
    return found


def require_group(where: StorePath, metadata: GroupMetadata) -> Found[GroupMetadata]:
    """Return the group at a place. Create it if there is none.

    Raises ContainsArrayError if there is an array.
    """
    entries: detection.Entries = {}
    existing = detection.detect(where, kind="group", entries=entries)
    if existing is None and not dialect_named(metadata.dialect).has_groups:
        existing = detection.implied(where)
    if existing is None:
        try:
            return add_group(where, metadata, above=Above(entries))
        except ContainsGroupError:
            existing = detection.detect(where, kind="group")  # another writer was faster
    if existing is None or not isinstance(existing.metadata, GroupMetadata):
        raise ContainsArrayError("there is an array, not a group", store=str(where.store), path=where.path)
    return Found(existing.where, existing.metadata)


def new_group_metadata(where: StorePath, dialect: Dialect, attributes: Mapping[str, Any] | None) -> GroupMetadata:
    """Return the metadata of a new group. Raises MetadataError for attributes that JSON cannot hold."""
    try:
        return GroupMetadata(dialect=dialect.name, attributes=to_json(attributes or {}))
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)


def _data_shape_dtype(data: Any, shape: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Return data, shape and data type. Shape and data type come from the data if they are not given."""
    if data is None:
        if shape is None:
            raise MetadataError(
                "no shape is given", pointer="/shape", remedy=Remedy("pass {shape} or {data}", shape=..., data=...)
            )
        return None, shape, dtype
    data = readable(data)
    if shape is not None and new_metadata.parse_shape(shape) != tuple(data.shape):
        raise ShapeError("data has another shape", found=f"shape {tuple(data.shape)}", expected=f"shape {shape}")
    return data, tuple(data.shape), _dtype_of(data) if dtype is None else dtype


def readable(data: Any) -> Any:
    """Return data that have a shape and a data type of NumPy, and can be read in parts; others as a NumPy array.

    Others are lists, arrays with DLPack only, and arrays with data types of their own, as torch and pandas have them.
    """
    if not (hasattr(data, "shape") and hasattr(data, "dtype")):
        return as_numpy(data)
    try:
        np.dtype(data.dtype)
    except TypeError:
        return as_numpy(data)
    return data


def _dtype_of(data: Any) -> Any:
    """Return the data type of data. For objects that are all strings (all bytes), return that type."""
    if isinstance(data, Array):
        return data.metadata.data_type if data.metadata.byte_order == "<" else data.dtype
    if data.dtype == np.dtype(object):
        for kind, name in ((str, "string"), (bytes, "bytes")):
            if data.size and all(isinstance(item, kind) for item in np.asarray(data).flat):
                return name
    return data.dtype


def fill(array: Array, data: Any, tick: Tick = silent) -> None:
    """Write values of the array's shape into it: at once if they are in memory, otherwise block by block.

    `tick` is called with the bytes of each block.
    """
    if isinstance(data, np.ndarray) or not hasattr(data, "__getitem__") or not array.shape:
        array[...] = data[...] if isinstance(data, Array) else as_numpy(data)
        return
    grid = grids.bind(array.metadata.chunk_grid, array.shape)
    for region in blocks(grid, array.dtype.itemsize):
        values = as_numpy(data[region])
        array[region] = values
        tick(values.nbytes)


def blocks(grid: Grid, item_size: int) -> Iterator[tuple[slice, ...]]:
    """Yield regions of whole chunks that cover an array. Small chunks are combined."""
    if 0 in grid.grid_shape:
        return
    per_axis = [1] * len(grid.axes)
    chunk_bytes = math.prod(max(axis.chunk(0)[1], 1) for axis in grid.axes) * max(item_size, 1)
    room = max(BLOCK_BYTES // max(chunk_bytes, 1), 1)
    for at in reversed(range(len(per_axis))):
        per_axis[at] = min(grid.grid_shape[at], room)
        room //= max(per_axis[at], 1)
        if room <= 1:
            break
    for first in itertools.product(
        *(range(0, count, step) for count, step in zip(grid.grid_shape, per_axis, strict=True))
    ):
        yield tuple(
            slice(axis.chunk(number)[0], min(sum(axis.chunk(min(number + step, axis.count) - 1)), axis.length))
            for axis, number, step in zip(grid.axes, first, per_axis, strict=True)
        )


def like(source: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords for a new array like another one: shape, type, chunks, and for an omnizarr array also codecs.

    Keywords in `options` take precedence.
    """
    found: dict[str, Any] = {"shape": tuple(np.shape(source)), "dtype": getattr(source, "dtype", None)}
    if found["dtype"] is None:
        found["dtype"] = np.asarray(source).dtype
    if isinstance(source, Array):
        found["dtype"] = _dtype_of(source)
        found["fill_value"] = source.fill_value
        found["chunks"] = source.chunks
        asked = options.get("zarr_format")
        if asked is None or str(asked) == str(source.zarr_format):
            found.update(
                zarr_format=source.zarr_format,
                shards=source.shards,
                dimension_names=getattr(source.metadata, "dimension_names", None),
                chunk_key_encoding=source.metadata.chunk_key_encoding,
                **codecs_of(source),
                **_transformers_of(source),
            )
    elif isinstance(getattr(source, "chunks", None), tuple):
        found["chunks"] = source.chunks
    # without a requested format, it is that of the source
    return {**found, **{name: value for name, value in options.items() if (name, value) != ("zarr_format", None)}}


def _transformers_of(array: Array) -> dict[str, Any]:
    found = array.metadata.storage_transformers
    return {"storage_transformers": found} if found else {}


def codecs_of(array: Array) -> dict[str, Any]:
    """Return keywords that give another array of the same format the same codecs."""
    if dialect_named(array.metadata.dialect).new_arrays.has_filters:
        stack = v2_filters.dump_chain(array.metadata.codecs, array.ndim)
        return {"filters": stack.filters or None, "compressors": stack.compressor, "order": stack.order}
    if array.shards is not None and len(array.metadata.codecs) > 1:
        return {"codecs": array.metadata.codecs, "chunks": array.shards, "shards": None}
    return {
        "filters": array.filters or None,
        "serializer": array.serializer,
        "compressors": array.compressors or None,
    }


def require_array(
    where: StorePath,
    *,
    shape: Any,
    dtype: Any = None,
    exact: bool = False,
    zarr_format: int | str | None = None,
    snapshot: Snapshot | None = None,
    **options: Unpack[RequireOptions],
) -> Array:
    """Return the array at a place. Create it if there is none.

    Raises ValueTypeError if there is one of another shape or data type.
    """
    check(options, DEFAULTS)
    config = ArrayConfig.of(options.get("config"), **{name: options.get(name) for name in _BEHAVIOUR})
    entries: detection.Entries = {}
    there = detection.detect(where, entries=entries)
    if there is None:
        try:
            return new_array(
                where,
                shape=shape,
                dtype=dtype,
                zarr_format=zarr_format,
                snapshot=snapshot,
                above=Above(entries),
                **options,
            )
        except ContainsArrayError:
            pass  # another writer was faster
    found = detection.open_array(where, found=there)
    array = Array(found.where, found.metadata, config, snapshot)
    if array.shape != new_metadata.parse_shape(shape):
        raise ValueTypeError(
            "there is an array of another shape",
            store=str(where.store),
            path=where.path,
            found=array.shape,
            expected=new_metadata.parse_shape(shape),
        )
    if dtype is not None:
        wanted = values_dtype(dtype)
        fits = array.dtype == wanted if exact else np.can_cast(array.dtype, wanted)
        if not fits:
            raise ValueTypeError(
                "there is an array of another data type",
                store=str(where.store),
                path=where.path,
                found=str(array.dtype),
                expected=str(wanted),
            )
    return array


def values_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy dtype for a data type that a user passed."""
    return datatypes.parse(dtype).dtype
