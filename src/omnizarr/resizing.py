"""Growing and shrinking arrays in the order that lets no reader see what is not there yet.

Growing writes data first and metadata last, shrinking metadata first; both under the
lock of the node, after reading its documents again.

Where a store has no locks that reach everybody, but notices when somebody was faster (`Store.exclusion` is
"condition"), whoever appends makes the array longer first, and so claims a place for their block that nobody else will
get; until the block is written, readers find the fill value there.

Spec: Zarr v3 core, "Resizing".
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from omnizarr import creation, datatypes, detection, engine, grids, hierarchy, indexing
from omnizarr.assignment import write_values
from omnizarr.codecs.contract import AnyArray, ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.errors import OmnizarrError, ReadOnlyError, ShapeError
from omnizarr.model import UNDEFINED, ArrayMetadata
from omnizarr.places import StorePath
from omnizarr.stores import conflicts

Shape = tuple[int, ...]

# Beyond so many chunks to delete, listing those that are there costs less than naming all that could be.
_MANY = 10_000


@conflicts.retried
def resize(where: StorePath, shape: Any, policy: ChunkPolicy, zarr_format: int | str | None = None) -> ArrayMetadata:
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
        metadata = hierarchy.update_locked(where, ArrayMetadata, change, zarr_format)
        if any(new < old for new, old in zip(new_shape, before[0].shape, strict=True)):
            _clear_outside(_clearing(where, before[0], policy), new_shape)
    return metadata


def append(
    where: StorePath,
    data: Any,
    axis: int,
    policy: ChunkPolicy,
    concurrency: int | None,
    zarr_format: int | str | None = None,
) -> tuple[ArrayMetadata, tuple[slice, ...]]:
    """Write a block behind the end of a dimension. Returns the new metadata, and where the block landed.

    Raises ShapeError if `data` does not fit.
    """
    _refuse_read_only(where)
    block = data if hasattr(data, "shape") and hasattr(data, "dtype") else _as_array(data)
    write = partial(_write_block, where, block, policy, concurrency)
    if where.store.exclusion == "condition":
        metadata, region, before = _grow(where, block.shape, axis, zarr_format)
        try:
            write(metadata, region, before)
        except BaseException:
            with suppress(OmnizarrError):
                _take_back(where, metadata.shape, before, zarr_format)
            raise
    else:
        metadata, region, _ = _grow(where, block.shape, axis, zarr_format, write)
    return metadata, region


Region = tuple[slice, ...]
_Write = Callable[[ArrayMetadata, Region, Shape], None]


@conflicts.retried
def _grow(
    where: StorePath, block: Shape, axis: int, zarr_format: int | str | None, write: _Write | None = None
) -> tuple[ArrayMetadata, Region, Shape]:
    """Make an array longer by a block, after writing it (if `write` does so); return where that lands, and what was."""
    landed: list[tuple[Region, Shape]] = []

    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        at = _axis(where, axis, len(metadata.shape))
        _check_fits(where, tuple(block), metadata.shape, at)
        start = metadata.shape[at]
        new_shape = (*metadata.shape[:at], start + block[at], *metadata.shape[at + 1 :])
        region = tuple(
            slice(start, length) if dimension == at else slice(0, length) for dimension, length in enumerate(new_shape)
        )
        grown = with_shape(metadata, new_shape)
        if write is not None:
            write(grown, region, metadata.shape)
        landed.append((region, metadata.shape))
        return grown

    with where.lock():
        metadata = hierarchy.update_locked(where, ArrayMetadata, change, zarr_format)
    return metadata, *landed[-1]


def _write_block(
    where: StorePath,
    block: Any,
    policy: ChunkPolicy,
    concurrency: int | None,
    grown: ArrayMetadata,
    region: Region,
    before: Shape,
) -> None:
    binding = _bind(where, grown, policy)
    try:
        write_values(binding, indexing.basic(region, binding.grid), block, concurrency)
    except BaseException:
        # Or what was written would come to light when the array grows.
        with suppress(OmnizarrError):
            _clear_region(_clearing(where, grown, policy), region, before)
        raise


@conflicts.retried
def _take_back(where: StorePath, grown: Shape, before: Shape, zarr_format: int | str | None) -> None:
    """Make an array as long again as it was, unless somebody has appended more."""

    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        return with_shape(metadata, before) if metadata.shape == grown else metadata

    with where.lock():
        hierarchy.update_locked(where, ArrayMetadata, change, zarr_format)


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
    # What is written in part must be read first, missing or not.
    return detection.bind(where, metadata, replace(policy, missing="fill"))


def _clearing(where: StorePath, metadata: ArrayMetadata, policy: ChunkPolicy) -> Binding:
    """Return a binding to clear with, also where the document has no fill value."""
    if metadata.fill_value is not UNDEFINED:
        return _bind(where, metadata, policy)
    data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    known = replace(metadata, fill_value=data_type.fill_to_json(data_type.default_fill_value))
    # Another reader may return anything for a missing chunk of this array, so none may go missing.
    return _bind(where, known, replace(policy, write_empty_chunks=True))


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
    fill = _fill_of(binding)
    for coords in _stored_at_edge(binding, shape, kept):
        box = grid.slices_of(coords)
        for dimension, (part, length) in enumerate(zip(box, shape, strict=True)):
            if part.stop > length:
                plan = indexing.basic((*box[:dimension], slice(length, part.stop), *box[dimension + 1 :]), grid)
                engine.write(binding, plan, np.broadcast_to(fill, plan.buffer_shape))


def _clear_region(binding: Binding, region: Region, before: Shape) -> None:
    """Remove a block that was written in vain; what others have appended behind it stays."""
    if binding.store.exclusion != "condition":
        _clear_outside(binding, before)
        return
    plan = indexing.basic(region, binding.grid)
    engine.write(binding, plan, np.broadcast_to(_fill_of(binding), plan.buffer_shape))


def _fill_of(binding: Binding) -> AnyArray:
    fill = np.empty((), binding.spec.dtype)
    fill[()] = binding.spec.fill_value
    return fill


def _stored_at_edge(binding: Binding, shape: Shape, kept: Shape) -> list[tuple[int, ...]]:
    """Return the chunks among the first so many along each dimension that are stored, and of which a part lies outside.

    Those that are not stored are no more than a name: of a sparse array there may be any number of them.
    """
    grid = binding.grid
    # Of a chunk inside, no part lies outside: only the last one along a dimension can be cut.
    inside = tuple(
        count - 1 if sum(axis.chunk(count - 1)) > length and axis.length > length else count
        for axis, count, length in zip(grid.axes, kept, shape, strict=True)
    )
    if math.prod(kept) - math.prod(inside) <= _MANY:
        return [coords for coords in _outside(kept, inside) if binding.store.exists(binding.key_of(coords))]
    return [
        coords
        for _, coords in _stored(binding)
        if all(map(operator.lt, coords, kept)) and not all(map(operator.lt, coords, inside))
    ]


def _stored(binding: Binding) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield key and coordinates of the chunks that are stored."""
    prefix = binding.prefix
    for key in binding.store.list_prefix(prefix):
        coords = binding.keys.decode(key[len(prefix) :], len(binding.grid.shape))
        if coords is not None:
            yield key, coords


def _delete_chunks(binding: Binding, kept: Shape) -> None:
    """Delete the chunks outside the first so many along each dimension."""
    grid = binding.grid
    if math.prod(grid.grid_shape) - math.prod(kept) <= _MANY:
        binding.store.delete_many([binding.key_of(coords) for coords in _outside(grid.grid_shape, kept)])
        return
    doomed = [key for key, coords in _stored(binding) if not all(map(operator.lt, coords, kept))]
    binding.store.delete_many(doomed)


def _outside(totals: Shape, kept: Shape) -> Iterator[tuple[int, ...]]:
    """Yield the coordinates, of so many chunks along each dimension, outside the first `kept` ones, each once."""
    for dimension, count in enumerate(kept):
        ranges = [
            range(kept[at]) if at < dimension else range(count if at == dimension else 0, total)
            for at, total in enumerate(totals)
        ]
        if all(ranges):  # or `product` would write the others out in vain, and they may be long
            yield from itertools.product(*ranges)


def _refuse_read_only(where: StorePath) -> None:
    if where.store.read_only:
        raise ReadOnlyError("the store is read-only", store=str(where.store), path=where.path)
