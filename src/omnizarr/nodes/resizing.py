"""Growing and shrinking arrays in an order that never shows readers missing data.

Growing writes data first and metadata last, shrinking writes metadata first; both under the lock of the node,
after reading its documents again.

Data stored beyond an array's edge has no meaning: a killed writer or another program has left it. Growing first
removes or overwrites what is stored between the old and the new edge. It checks only the chunks there, and the
chunks that the old edge cuts.

In a store without locks for all writers, but with conditional writes (`Features.exclusion` is "condition"), `append`
makes the array longer first. This reserves a place for its block that no other writer gets. Until the block is
written, readers see the fill value there. Old data there is removed before, on condition that no other writer has
reserved the place meanwhile.

Spec: Zarr v3 core, "Resizing".
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from omnizarr import engine, indexing
from omnizarr.codecs.chain import holds_only
from omnizarr.codecs.contract import AnyArray, ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.errors import ConflictError, OmnizarrError, ReadOnlyError, ShapeError, StoreError
from omnizarr.model import UNDEFINED, ArrayMetadata, datatypes, grids
from omnizarr.nodes import bindings, detection, hierarchy, new_metadata
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.renewing import Change
from omnizarr.nodes.writing import write_values
from omnizarr.stores import conflicts, pool, verbs
from omnizarr.stores.base import Buffer

Shape = tuple[int, ...]
Coords = tuple[int, ...]
Region = tuple[slice, ...]
Write = Callable[[Binding], None]
"""Writes data into the chunks of the array in its future shape."""
Covers = Callable[[Shape, Shape], Shape]
"""Returns, for the old and the new shape, the shape up to which `Write` stores everything that is added."""

# Up to this many chunks, requesting each costs less than a listing, which may contain all chunks.
_MANY = 10_000
# The same limit, if a listing might contain at most ten times as many.
_MANY_OF_MORE = 1_000_000
# Number of chunks that are looked up to find out whether most are stored. The golden ratio spreads them.
_SAMPLE = 16
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
# This many chunks are read without checking whether they exist.
_FEW = 100
# Number of keys in one page of a listing.
_PAGE = 1000


class AppendedShape(tuple[int, ...]):  # noqa: SLOT001 - see `region`
    """The new shape that `Array.append` returns; `region` is the position of the appended block."""

    # A subclass of tuple cannot have slots, because the length of a tuple varies.
    region: tuple[slice, ...]

    def __new__(cls, shape: tuple[int, ...], region: tuple[slice, ...]) -> Self:
        """Return the shape with its region."""
        self = super().__new__(cls, shape)
        self.region = region
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return AppendedShape, (tuple(self), self.region)


def resize(
    where: StorePath,
    shape: Any,
    policy: ChunkPolicy,
    zarr_format: int | str | None = None,
    committed: Callable[[ArrayMetadata], None] | None = None,
) -> ArrayMetadata:
    """Give an array a new shape, and remove elements outside of it. Return its new metadata.

    `committed` is called with the metadata as soon as it is stored. Raises ShapeError for another number of
    dimensions, MetadataError for an invalid shape.
    """
    try:
        new_shape = new_metadata.parse_shape(shape)
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)
    growth = Growth(where, lambda _: new_shape, policy, zarr_format)
    _refuse_read_only(where)
    with Change(where) as noted:
        return _resize(growth, new_shape, noted, committed)


@conflicts.retried
def _resize(
    growth: Growth, new_shape: Shape, noted: Change, committed: Callable[[ArrayMetadata], None] | None
) -> ArrayMetadata:
    where = growth.where
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
        grown = growth.of(metadata)
        if any(map(operator.gt, new_shape, metadata.shape)):
            _blank(growth, grown)
        return grown.document

    with where.lock():
        metadata = hierarchy.update_locked(where, ArrayMetadata, change, noted, growth.zarr_format)
        if committed is not None:
            committed(metadata)
        if any(map(operator.lt, new_shape, before[0].shape)):
            try:
                _clear_outside(_clearing(where, before[0], growth.policy), new_shape)
            except OmnizarrError as error:
                raise _half_shrunk(where, new_shape, error) from error
    return metadata


def append(
    where: StorePath,
    data: Any,
    axis: int,
    policy: ChunkPolicy,
    concurrency: int | None,
    zarr_format: int | str | None = None,
) -> tuple[ArrayMetadata, Region]:
    """Write a block at the end of a dimension. Return the new metadata, and the position of the block.

    Raises ShapeError if `data` does not fit.
    """
    _refuse_read_only(where)
    block = data if hasattr(data, "shape") and hasattr(data, "dtype") else _as_array(data)
    landed: list[Region] = []

    def longer(shape: Shape) -> Shape:
        _, _, region = fitting(where, block, axis, shape)
        landed[:] = [region]
        return tuple(part.stop for part in region)

    def write(binding: Binding) -> None:
        write_values(binding, indexing.basic(landed[0], binding.grid), block, concurrency)

    grown = grow(Growth(where, longer, policy, zarr_format), write, everything)
    return grown.document, landed[0]


def fitting(where: StorePath, data: Any, axis: int, shape: Shape) -> tuple[Any, int, Region]:
    """Return a block as an array, the dimension that it makes longer, counted from 0, and the block's future position.

    Raises ShapeError if it does not fit an array of this shape.
    """
    block = data if hasattr(data, "shape") and hasattr(data, "dtype") else _as_array(data)
    at = _axis(where, axis, len(shape))
    _check_fits(where, tuple(block.shape), shape, at)
    start = shape[at]
    new_shape = (*shape[:at], start + block.shape[at], *shape[at + 1 :])
    region = tuple(
        slice(start, length) if dimension == at else slice(0, length) for dimension, length in enumerate(new_shape)
    )
    return block, at, region


@dataclass(frozen=True, slots=True)
class Growth:
    """An array that should become longer.

    Attributes
    ----------
    where : StorePath
    longer : callable
        Returns the new shape for the current one, which may be the same. It is called again if another writer
        is faster.
    policy : ChunkPolicy
    zarr_format : int or str, optional
    meant : ArrayMetadata, optional
        Chunks and minimum length of the array, if they differ from its document.
    """

    where: StorePath
    longer: Callable[[Shape], Shape]
    policy: ChunkPolicy
    zarr_format: int | str | None = None
    meant: ArrayMetadata | None = None

    def of(self, metadata: ArrayMetadata) -> Grown:
        """Return the growth of an array with such a document."""
        stored = before = metadata.shape
        if self.meant is not None:
            before = tuple(map(max, stored, self.meant.shape))
        shape = self.longer(before)
        document = metadata if shape == stored else with_shape(metadata, shape)
        return Grown(stored, before, document, document if self.meant is None else with_shape(self.meant, shape))


class Grown(NamedTuple):
    """The states of an array that grows."""

    stored: Shape
    """The metadata in the document."""
    before: Shape
    """Elements beyond this belong to no writer."""
    document: ArrayMetadata
    """The new shape."""
    meant: ArrayMetadata
    """The chunks, and the new shape."""


def everything(_: Shape, new: Shape) -> Shape:
    """Say that all elements are written that an array gets along one dimension: see `Covers`."""
    return new


def grow(growth: Growth, write: Write | None = None, covers: Covers | None = None) -> Grown:
    """Make an array longer, after `write` has stored the new data.

    Elements that it does not write read as the fill value.

    Parameters
    ----------
    growth : Growth
    write : callable, optional
        Stores data in the array that it gets. If it fails, the array does not change.
    covers : callable, optional
        Up to which shape `write` stores everything that is added, if the array grows along one dimension. What lies
        there already need not be looked for.

    Returns
    -------
    Grown
        The stored state.
    """
    _refuse_read_only(growth.where)
    grown = None
    try:
        with Change(growth.where) as noted:
            if write is None or growth.where.store.features.exclusion != "condition":
                grown = _grow(growth, write, noted, covers)
            else:
                grown = _claim(growth, noted)
                write(_bind(growth.where, grown.meant, growth.policy))
    except BaseException:  # of `write`, or of copies above that could not be renewed
        if grown is not None:
            # Otherwise what was added would be visible, though the caller gets an error.
            with suppress(OmnizarrError):
                take_back(growth, grown)
        raise
    return grown


@conflicts.retried
def _grow(growth: Growth, write: Write | None, noted: Change, covers: Covers | None) -> Grown:
    """Like `grow`, data first, for stores whose locks exclude other writers."""
    begun: list[Grown] = []

    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        grown = growth.of(metadata)
        begun[:] = [grown]
        covered = grown.before if covers is None else covers(grown.before, grown.meant.shape)
        if grown.document is not metadata and covered != grown.meant.shape:
            _blank(growth, grown._replace(before=covered))
        if write is not None:
            binding = _bind(growth.where, grown.meant, growth.policy)
            binding = binding.beyond(_counts(binding.grid, grown.before))
            if covered == grown.meant.shape:
                _drop_partly_covered(binding, grown.before)
            write(binding)
        return grown.document

    with growth.where.lock():
        try:
            hierarchy.update_locked(growth.where, ArrayMetadata, change, noted, growth.zarr_format)
        except BaseException:
            if write is not None and begun and begun[0].document.shape != begun[0].stored:
                with suppress(OmnizarrError):
                    _undo(growth, begun[0])
            raise
    return begun[0]


def _undo(growth: Growth, grown: Grown) -> None:
    """Remove what was written in vain, unless the document was stored in spite of the error."""
    if _has_shape(growth, grown.stored):
        _clear_outside(_clearing(growth.where, grown.meant, growth.policy), grown.before)


def _has_shape(growth: Growth, shape: Shape) -> bool:
    return detection.open_array(growth.where, growth.zarr_format).metadata.shape == shape


@conflicts.retried
def _claim(growth: Growth, noted: Change) -> Grown:
    """Make an array longer, with only the fill value there."""
    begun: list[Grown] = []

    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        grown = growth.of(metadata)
        begun[:] = [grown]
        if grown.document is not metadata:
            _blank(growth, grown)
        return grown.document

    with growth.where.lock():
        hierarchy.update_locked(growth.where, ArrayMetadata, change, noted, growth.zarr_format)
    return begun[0]


def take_back(growth: Growth, grown: Grown) -> None:
    """Restore the old length of an array, unless another writer has made it longer. Remove what was added."""
    if grown.document.shape == grown.stored:
        return
    binding = _clearing(growth.where, grown.meant, growth.policy)
    with Change(growth.where) as noted:
        if binding.store.features.exclusion == "condition":
            # Before another writer reserves the place.
            _clear_grown(binding, grown.before)
            _shorten(growth, grown, noted)
            return
        with growth.where.lock():
            _shorten(growth, grown, noted)
            if _has_shape(growth, grown.stored):
                _clear_outside(binding, grown.before)


@conflicts.retried
def _shorten(growth: Growth, grown: Grown, noted: Change) -> None:
    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        return with_shape(metadata, grown.stored) if metadata.shape == grown.document.shape else metadata

    with growth.where.lock():
        hierarchy.update_locked(growth.where, ArrayMetadata, change, noted, growth.zarr_format)


def _half_shrunk(where: StorePath, shape: Shape, error: OmnizarrError) -> OmnizarrError:
    """Return the error that explains a failed removal."""
    remedy = "what is left there is never seen; omnizarr check lists it, omnizarr repair deletes it"
    message = f"the array has its new shape {shape}, but what is stored beyond it could not all be removed"
    # Nothing must be repeated: the shape is right.
    kind = StoreError if isinstance(error, ConflictError) else type(error)
    failure = kind(f"{message}: {error.message}", remedy=remedy)
    if isinstance(error, StoreError) and isinstance(failure, StoreError):
        failure.errno = error.errno
    known = {name: getattr(error, name) for name in error.FIELDS}
    return failure.add(**known).add(store=str(where.store), path=where.path)


def with_shape(metadata: ArrayMetadata, shape: Shape) -> ArrayMetadata:
    """Return the metadata of the array with another shape. Chunks do not move."""
    if shape == metadata.shape:
        return metadata
    return replace(metadata, shape=shape, chunk_grid=grids.resized(metadata.chunk_grid, metadata.shape, shape))


def grid_of(metadata: ArrayMetadata, shape: Shape) -> grids.Grid:
    """Return the chunks that the array has with another shape."""
    return grids.bind(with_shape(metadata, shape).chunk_grid, shape)


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
    # Partial writes must read first, and a chunk may be missing.
    return bindings.bind(where, metadata, replace(policy, missing="fill"))


def _clearing(where: StorePath, metadata: ArrayMetadata, policy: ChunkPolicy) -> Binding:
    """Return a binding for clearing, also if the document has no fill value."""
    if metadata.fill_value is not UNDEFINED:
        return _bind(where, metadata, policy)
    data_type = datatypes.bind(metadata.data_type, metadata.byte_order)
    known = replace(metadata, fill_value=data_type.fill_to_json(data_type.default_fill_value))
    # Other readers may return anything for a missing chunk of this array, so none may be missing.
    return _bind(where, known, replace(policy, write_empty_chunks=True))


def _blank(growth: Growth, grown: Grown) -> None:
    """Make everything that is added to an array read as the fill value, whatever is stored there."""
    before = grown.before
    if 0 in grown.meant.shape:
        return
    binding = _clearing(growth.where, grown.meant, growth.policy)
    kept = _counts(binding.grid, before)
    fresh = _stored_outside(binding, binding.grid.grid_shape, kept)
    inside = _uncut(binding, before, kept)
    # Reading a missing chunk costs no more than checking whether it exists.
    is_few = math.prod(kept) - math.prod(inside) <= _FEW
    cut = list(_outside(kept, inside)) if is_few else _stored_outside(binding, kept, inside)
    workers = binding.store.features.concurrency
    holds = dict(pool.gather(partial(_holds_beyond, binding, before), cut, workers))
    dirty = [coords for position, coords in enumerate(cut) if holds[position]]
    if binding.store.features.exclusion != "condition":
        verbs.delete_many(binding.store, map(binding.key_of, fresh))
        for coords in dirty:
            _fill_beyond(binding, before, coords)
        return
    try:
        for coords in (*fresh, *dirty):
            change = partial(_blanked, growth, grown, binding, coords)
            binding.store.update(binding.key_of(coords), change)
    except _OvertakenError:
        where = growth.where
        raise ConflictError("the array has another shape by now", store=str(where.store), path=where.path) from None


class _OvertakenError(Exception):
    """Another writer has changed the array's shape: repeat the whole change, not only this chunk."""


def _blanked(growth: Growth, grown: Grown, binding: Binding, coords: Coords, old: Buffer | None) -> Buffer | None:
    """Return a chunk without what is beyond a shape. Raises an error if another writer has reserved that place.

    Writers make the array longer before they write there. If it is not longer after the chunk was read, the data
    beyond belongs to no writer, and it is replaced only if it is still the same.
    """
    before = grown.before
    if not _has_shape(growth, grown.stored):
        raise _OvertakenError
    if old is None:
        return None
    chain = binding.chain_for(coords)
    new: Buffer | None = old
    if all(map(operator.lt, coords, _counts(binding.grid, before))):
        for box in _boxes_beyond(binding, before, coords):
            origins = [part.start for part in binding.grid.slices_of(coords)]
            selection = tuple(
                slice(part.start - origin, part.stop - origin, 1) for part, origin in zip(box, origins, strict=True)
            )
            shape = tuple(part.stop - part.start for part in box)
            new = chain.write(new, selection, np.broadcast_to(_fill_of(binding), shape))
    else:
        new = None
    return chain.encode(chain.empty()) if new is None else new


def _drop_partly_covered(binding: Binding, before: Shape) -> None:
    """Delete the chunks beyond an old shape that will be partly overwritten: their old content must not stay."""
    grid = binding.grid
    if 0 in grid.shape or grid.shape == before:
        return
    whole = tuple(
        axis.count - 1 if old < axis.length < sum(axis.chunk(axis.count - 1)) else axis.count
        for axis, old in zip(grid.axes, before, strict=True)
    )
    # Chunks that the old edge cuts hold data.
    partly = tuple(map(max, whole, _counts(grid, before)))
    if partly != grid.grid_shape and (left := _stored_outside(binding, grid.grid_shape, partly)):
        verbs.delete_many(binding.store, map(binding.key_of, left))


def _clear_outside(binding: Binding, shape: Shape) -> None:
    """Delete the chunks outside a smaller shape, and clear the outer part of kept chunks."""
    kept = _counts(binding.grid, shape)
    _delete_chunks(binding, kept)
    if 0 in kept:
        return
    for coords in _stored_outside(binding, kept, _uncut(binding, shape, kept)):
        _fill_beyond(binding, shape, coords)


def _clear_grown(binding: Binding, before: Shape) -> None:
    """Set everything that was added to an array to the fill value, except what others have appended after it."""
    for dimension, (old, new) in enumerate(zip(before, binding.grid.shape, strict=True)):
        if old < new:
            region = tuple(
                slice(old, new) if at == dimension else slice(0, length) for at, length in enumerate(binding.grid.shape)
            )
            plan = indexing.basic(region, binding.grid)
            engine.write(binding, plan, np.broadcast_to(_fill_of(binding), plan.buffer_shape))


def _fill_of(binding: Binding) -> AnyArray:
    fill = np.empty((), binding.spec.dtype)
    fill[()] = binding.spec.fill_value
    return fill


def _counts(grid: grids.Grid, shape: Shape) -> Shape:
    """Return how many chunks along each dimension hold elements of a shape, within the array."""
    return tuple(
        axis.find(length - 1)[0] + 1 if 0 < length < axis.length else (axis.count if length else 0)
        for axis, length in zip(grid.axes, shape, strict=True)
    )


def _uncut(binding: Binding, shape: Shape, counts: Shape) -> Shape:
    """Return how many of the first chunks along each dimension are completely inside a shape, within the array."""
    # Only the last one along a dimension can be cut.
    return tuple(
        count - 1 if count and sum(axis.chunk(count - 1)) > length and axis.length > length else count
        for axis, count, length in zip(binding.grid.axes, counts, shape, strict=True)
    )


def _boxes_beyond(binding: Binding, shape: Shape, coords: Coords) -> Iterator[Region]:
    """Yield the parts of a chunk within the array, but outside a smaller shape. They may overlap."""
    box = binding.grid.slices_of(coords)
    for dimension, (part, length) in enumerate(zip(box, shape, strict=True)):
        if part.stop > length:
            yield (*box[:dimension], slice(length, part.stop), *box[dimension + 1 :])


def _holds_beyond(binding: Binding, shape: Shape, coords: Coords) -> bool:
    """Return whether a chunk holds anything except the fill value outside a smaller shape."""
    for box in _boxes_beyond(binding, shape, coords):
        plan = indexing.basic(box, binding.grid)
        found = np.empty(plan.buffer_shape, binding.spec.dtype)
        engine.read(binding, plan, found)
        if not holds_only(found, binding.spec):
            return True
    return False


def _fill_beyond(binding: Binding, shape: Shape, coords: Coords) -> None:
    """Set the part of a chunk outside a smaller shape to the fill value."""
    for box in _boxes_beyond(binding, shape, coords):
        plan = indexing.basic(box, binding.grid)
        engine.write(binding, plan, np.broadcast_to(_fill_of(binding), plan.buffer_shape))


def _stored_outside(binding: Binding, totals: Shape, kept: Shape) -> list[Coords]:
    """Return the stored chunks among the first along each dimension, outside the first `kept` ones.

    Missing chunks are not visited: a sparse array may have any number of them.
    """
    count = math.prod(totals) - math.prod(kept)
    if not count:
        return []
    if count <= _FEW and binding.store.features.concurrency == 1:
        return [coords for coords in _outside(totals, kept) if binding.store.exists(binding.key_of(coords))]
    prefixes = _prefixes(binding, totals, kept, count)
    if not prefixes:
        look, workers = partial(_if_stored, binding), binding.store.features.concurrency
        return list(itertools.chain.from_iterable(pool.results(look, _outside(totals, kept), workers)))
    return [
        coords
        for prefix in prefixes
        for coords in _stored(binding, prefix)
        if all(map(operator.lt, coords, totals)) and not all(map(operator.lt, coords, kept))
    ]


def _if_stored(binding: Binding, coords: Coords) -> list[Coords]:
    return [coords] if binding.store.exists(binding.key_of(coords)) else []


def _prefixes(binding: Binding, totals: Shape, kept: Shape, count: int) -> list[str]:
    """Return the prefixes to list to find this many chunks; none if requesting each costs less.

    The number of other chunks in the listing is unknown; it is at most the number of chunks of the array.
    """
    keys, store, at_most = binding.keys, binding.store, binding.grid.nchunks
    if store.features.listing != "complete":
        return []
    # After the last dimension with something outside, all keys are needed.
    depth = 1 + max(at for at, (total, inner) in enumerate(zip(totals, kept, strict=True)) if inner < total)
    rows = math.prod(totals[:depth]) - math.prod(kept[:depth])
    has_rows = keys.separator == "/" and not keys.tail and depth < len(totals) and 10 * rows <= count
    turns = count / store.features.concurrency
    if store.features.concurrency == 1:
        few = count <= _MANY or (count <= _MANY_OF_MORE and 10 * count <= at_most and not has_rows)
    else:
        few = count <= _MANY and turns <= 1 + (count if has_rows else at_most) / _PAGE
    if few:
        return []
    if has_rows and rows <= _MANY:
        return [f"{binding.prefix}{keys.encode(row)}/" for row in _outside(totals[:depth], kept[:depth])]
    return [binding.prefix]


def _stored(binding: Binding, prefix: str) -> Iterator[Coords]:
    """Yield the coordinates of the stored chunks below a prefix."""
    skip = len(binding.prefix)
    for key in binding.store.list_prefix(prefix):
        coords = binding.keys.decode(key[skip:], len(binding.grid.shape))
        if coords is not None:
            yield coords


def _delete_chunks(binding: Binding, kept: Shape) -> None:
    """Delete the chunks outside the first ones along each dimension."""
    totals = binding.grid.grid_shape
    doomed: Iterator[Coords] | list[Coords] = _outside(totals, kept)
    if math.prod(totals) - math.prod(kept) > _MANY and not _are_mostly_stored(binding, totals, kept):
        doomed = _stored_outside(binding, totals, kept)
    verbs.delete_many(binding.store, map(binding.key_of, doomed))


def _are_mostly_stored(binding: Binding, totals: Shape, kept: Shape) -> bool:
    """Return whether deleting all chunks outside the first ones costs less than listing those that are stored.

    Some chunks are looked up where there are many.
    """
    if binding.store.features.concurrency > 1:
        return False
    for block in _blocks(totals, kept):
        lengths = [part.stop - part.start for part in block]  # which `len` could not count
        count = math.prod(lengths)
        if count > _MANY:
            missing = 0
            for number in range(_SAMPLE):
                place = int(count * (number * _GOLDEN_RATIO % 1))
                coords = []
                for part, length in zip(block, lengths, strict=True):
                    place, at = divmod(place, length)
                    coords.append(part[at])
                missing += not binding.store.exists(binding.key_of(tuple(coords)))
            if missing > _SAMPLE // 4:
                return False
    return True


def _outside(totals: Shape, kept: Shape) -> Iterator[Coords]:
    """Yield the coordinates of chunks outside the first `kept` ones along each dimension, each once."""
    for block in _blocks(totals, kept):
        yield from itertools.product(*block)


def _blocks(totals: Shape, kept: Shape) -> Iterator[list[range]]:
    """Yield the same chunks as blocks: ranges of coordinates along each dimension."""
    for dimension, count in enumerate(kept):
        ranges = [
            range(kept[at]) if at < dimension else range(count if at == dimension else 0, total)
            for at, total in enumerate(totals)
        ]
        if all(ranges):  # otherwise `product` would make the others in vain, and they may be long
            yield ranges


def _refuse_read_only(where: StorePath) -> None:
    if where.store.read_only:
        raise ReadOnlyError("the store is read-only", store=str(where.store), path=where.path)
