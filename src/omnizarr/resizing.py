"""Growing and shrinking arrays in the order that lets no reader see what is not there yet.

Growing writes data first and metadata last, shrinking metadata first; both under the
lock of the node, after reading its documents again.

Spec: Zarr v3 core, "Resizing".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from omnizarr import creation, datatypes, engine, grids, hierarchy, indexing
from omnizarr.assignment import write_values
from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.errors import ReadOnlyError, ShapeError
from omnizarr.grids import Grid
from omnizarr.hierarchy import StorePath
from omnizarr.model import UNDEFINED, ArrayMetadata

Shape = tuple[int, ...]

# Beyond so many chunks to delete, listing those that are there costs less than naming all that could be.
_MANY = 10_000


def resize(where: StorePath, shape: Any, policy: ChunkPolicy) -> ArrayMetadata:
    """Give an array a new shape, and remove what lies outside. Returns its new metadata.

    Raises ShapeError for another number of dimensions, MetadataError for what is no shape.
    """
    new_shape = creation.parse_shape(shape)
    before: list[ArrayMetadata] = []

    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        if len(new_shape) != len(metadata.shape):
            raise ShapeError(
                "an array keeps its number of dimensions",
                store=str(where.store),
                path=where.path,
                found=new_shape,
                expected=f"{len(metadata.shape)} lengths",
            )
        before.append(metadata)
        return with_shape(metadata, new_shape)

    _refuse_read_only(where)
    with where.lock():
        metadata = hierarchy.update_locked(where, ArrayMetadata, change)
        if any(new < old for new, old in zip(new_shape, before[0].shape, strict=True)):
            _clear_outside(_bind(where, _with_fill_value(before[0]), policy), new_shape)
    return metadata


def append(
    where: StorePath, data: Any, axis: int, policy: ChunkPolicy, concurrency: int | None
) -> tuple[ArrayMetadata, tuple[slice, ...]]:
    """Write a block behind the end of a dimension. Returns the new metadata, and where the block landed.

    Raises ShapeError if `data` does not fit.
    """
    block = data if hasattr(data, "shape") and hasattr(data, "dtype") else _as_array(data)
    landed: list[tuple[slice, ...]] = []

    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        at = _axis(where, axis, len(metadata.shape))
        _check_fits(where, tuple(block.shape), metadata.shape, at)
        start = metadata.shape[at]
        new_shape = (*metadata.shape[:at], start + block.shape[at], *metadata.shape[at + 1 :])
        region = tuple(
            slice(start, length) if dimension == at else slice(0, length) for dimension, length in enumerate(new_shape)
        )
        grown = with_shape(metadata, new_shape)
        binding = _bind(where, grown, policy)
        write_values(binding, indexing.basic(region, binding.grid), block, concurrency)
        landed.append(region)
        return grown

    _refuse_read_only(where)
    with where.lock():
        metadata = hierarchy.update_locked(where, ArrayMetadata, change)
    return metadata, landed[0]


def with_shape(metadata: ArrayMetadata, shape: Shape) -> ArrayMetadata:
    """Return the metadata of the array with another shape, chunks staying where they are."""
    grid = grids.bind(metadata.chunk_grid, metadata.shape)
    return replace(metadata, shape=shape, chunk_grid=grid.resized(shape))


def _as_array(data: Any) -> Any:
    try:
        return np.asarray(data)
    except ValueError:  # ragged: objects, one per item
        items = list(data)
        block = np.empty(len(items), object)
        for position, item in enumerate(items):
            block[position] = item
        return block


def _axis(where: StorePath, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(
            "there is no such dimension",
            store=str(where.store),
            path=where.path,
            found=axis,
            expected=f"0 to {ndim - 1}",
        )
    return axis % ndim


def _check_fits(where: StorePath, block: Shape, shape: Shape, axis: int) -> None:
    if len(block) == len(shape) and all(
        new == old for at, (new, old) in enumerate(zip(block, shape, strict=True)) if at != axis
    ):
        return
    expected = ", ".join("any" if at == axis else str(length) for at, length in enumerate(shape))
    raise ShapeError(
        "the block does not fit the array",
        store=str(where.store),
        path=where.path,
        found=f"shape {block}",
        expected=f"shape ({expected})",
    )


def _bind(where: StorePath, metadata: ArrayMetadata, policy: ChunkPolicy) -> Binding:
    prefix = hierarchy.dialect_named(metadata.dialect).chunk_prefix(where.path)
    # What is written in part must be read first, missing or not.
    return engine.bind(metadata, where.store, prefix, replace(policy, missing="fill"), where.path)


def _with_fill_value(metadata: ArrayMetadata) -> ArrayMetadata:
    """Return metadata with a fill value to clear with, where the document has none."""
    if metadata.fill_value is not UNDEFINED:
        return metadata
    data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    return replace(metadata, fill_value=data_type.fill_to_json(data_type.default_fill_value))


def _clear_outside(binding: Binding, shape: Shape) -> None:
    """Delete the chunks that lie outside a smaller shape, and clear the part of kept ones that does."""
    grid = binding.grid
    kept = tuple(
        axis.find(length - 1)[0] + 1 if 0 < length < axis.length else (axis.count if length else 0)
        for axis, length in zip(grid.axes, shape, strict=True)
    )
    _delete_chunks(binding, kept)
    if 0 in kept:
        return
    edges = tuple(min(sum(axis.chunk(count - 1)), axis.length) for axis, count in zip(grid.axes, kept, strict=True))
    clearing = replace(binding.policy, write_empty_chunks=False)
    binding = engine.bind(binding.metadata, binding.store, binding.prefix, clearing, binding.path)
    fill = np.empty((), binding.spec.dtype)
    fill[()] = binding.spec.fill_value
    for dimension, (start, edge) in enumerate(zip(shape, edges, strict=True)):
        if start < edge:
            region = tuple(slice(start, edge) if at == dimension else slice(0, stop) for at, stop in enumerate(edges))
            plan = indexing.basic(region, grid)
            engine.write(binding, plan, np.broadcast_to(fill, plan.buffer_shape))


def _delete_chunks(binding: Binding, kept: Shape) -> None:
    """Delete the chunks outside the first so many along each dimension."""
    grid = binding.grid
    if math.prod(grid.grid_shape) - math.prod(kept) <= _MANY:
        binding.store.delete_many([binding.key_of(coords) for coords in _outside(grid, kept)])
        return
    prefix = binding.prefix
    doomed = []
    for key in binding.store.list_prefix(prefix):
        coords = binding.keys.decode(key[len(prefix) :], len(kept))
        if coords is not None and any(number >= count for number, count in zip(coords, kept, strict=True)):
            doomed.append(key)
    binding.store.delete_many(doomed)


def _outside(grid: Grid, kept: Shape) -> Iterator[tuple[int, ...]]:
    """Yield the coordinates of the chunks outside the first so many along each dimension, each once."""
    for dimension, count in enumerate(kept):
        ranges = [
            range(kept[at]) if at < dimension else range(count if at == dimension else 0, total)
            for at, total in enumerate(grid.grid_shape)
        ]
        yield from itertools.product(*ranges)


def _refuse_read_only(where: StorePath) -> None:
    if where.store.read_only:
        raise ReadOnlyError("the store is read-only", store=str(where.store), path=where.path)
