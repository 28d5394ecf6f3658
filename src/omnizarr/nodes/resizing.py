"""Growing and shrinking arrays in the order that lets no reader see what is not there yet.

Growing writes data first and metadata last, shrinking metadata first; both under the
lock of the node, after reading its documents again.

What is stored beyond an array's edge means nothing: a killed writer, or another program, has left it. Growing first
removes what is stored between the old and the new edge, or writes over it. It looks only at the chunks there, and at
those that the old edge cuts.

In a store without locks for all writers, but with conditional writes (`Store.exclusion` is "condition"), `append` makes
the array longer first. So it claims a place for its block that no other writer gets; until
the block is written, readers find the fill value there. What lay there is removed before, on condition that no other
writer has claimed the place meanwhile.

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
from typing import Any, NamedTuple

import numpy as np

from omnizarr import engine, indexing
from omnizarr.codecs.chain import holds_only
from omnizarr.codecs.contract import AnyArray, ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.errors import ConflictError, OmnizarrError, ReadOnlyError, ShapeError, StoreError
from omnizarr.model import UNDEFINED, ArrayMetadata, datatypes, grids
from omnizarr.nodes import detection, hierarchy, new_metadata
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.writing import write_values
from omnizarr.stores import conflicts, pool
from omnizarr.stores.base import Buffer

Shape = tuple[int, ...]
Coords = tuple[int, ...]
Region = tuple[slice, ...]
Write = Callable[[ArrayMetadata], None]
"""Writes data into the array as it will be."""

# Up to so many chunks, to ask for each costs less than listing, which may be of all there are.
_MANY = 10_000
# The same where there are ten times as many that a listing might have to go through.
_MANY_OF_MORE = 1_000_000
# So many chunks are read without a look whether they are there.
_FEW = 100
# A listing brings so many keys at once.
_PAGE = 1000


@conflicts.retried
def resize(
    where: StorePath,
    shape: Any,
    policy: ChunkPolicy,
    zarr_format: int | str | None = None,
    committed: Callable[[ArrayMetadata], None] | None = None,
) -> ArrayMetadata:
    """Give an array a new shape, and remove elements outside of it. Returns its new metadata.

    `committed` is called with that as soon as it is stored.

    Raises ShapeError for another number of dimensions, MetadataError for an invalid shape.
    """
    new_shape = new_metadata.parse_shape(shape)
    growth = Growth(where, lambda _: new_shape, policy, zarr_format)
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

    _refuse_read_only(where)
    with where.lock():
        metadata = hierarchy.update_locked(where, ArrayMetadata, change, zarr_format)
        if committed is not None:
            committed(metadata)
        if any(map(operator.lt, new_shape, before[0].shape)):
            try:
                _clear_outside(_clearing(where, before[0], policy), new_shape)
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
    """Write a block behind the end of a dimension. Returns the new metadata, and where the block landed.

    Raises ShapeError if `data` does not fit.
    """
    _refuse_read_only(where)
    block = data if hasattr(data, "shape") and hasattr(data, "dtype") else _as_array(data)
    landed: list[Region] = []

    def longer(shape: Shape) -> Shape:
        at = _axis(where, axis, len(shape))
        _check_fits(where, tuple(block.shape), shape, at)
        start = shape[at]
        new_shape = (*shape[:at], start + block.shape[at], *shape[at + 1 :])
        landed[:] = [
            tuple(
                slice(start, length) if dimension == at else slice(0, length)
                for dimension, length in enumerate(new_shape)
            )
        ]
        return new_shape

    def write(grown: ArrayMetadata) -> None:
        binding = _bind(where, grown, policy)
        write_values(binding, indexing.basic(landed[0], binding.grid), block, concurrency)

    grown = grow(Growth(where, longer, policy, zarr_format), write, covers=True)
    return grown.document, landed[0]


@dataclass(frozen=True, slots=True)
class Growth:
    """An array that is to become longer.

    Attributes
    ----------
    where : StorePath
    longer : callable
        From the shape before to the one afterwards, which may be the same; called again if others are faster.
    policy : ChunkPolicy
    zarr_format : int or str, optional
    meant : ArrayMetadata, optional
        What its chunks are, and how long it is at least, if that is not what its document says.
    """

    where: StorePath
    longer: Callable[[Shape], Shape]
    policy: ChunkPolicy
    zarr_format: int | str | None = None
    meant: ArrayMetadata | None = None

    def of(self, metadata: ArrayMetadata) -> Grown:
        """Return what becomes of an array that has such a document."""
        stored = before = metadata.shape
        if self.meant is not None:
            before = tuple(map(max, stored, self.meant.shape))
        shape = self.longer(before)
        document = metadata if shape == stored else with_shape(metadata, shape)
        return Grown(stored, before, document, document if self.meant is None else with_shape(self.meant, shape))


class Grown(NamedTuple):
    """What becomes of an array that grows."""

    stored: Shape
    """What the document said."""
    before: Shape
    """Elements behind this belong to no writer."""
    document: ArrayMetadata
    """The new one."""
    meant: ArrayMetadata
    """What the chunks are, and the new shape."""


def grow(growth: Growth, write: Write | None = None, *, covers: bool = False) -> Grown:
    """Make an array longer, once `write` has stored what belongs there; what it leaves out reads as the fill value.

    Parameters
    ----------
    growth : Growth
    write : callable, optional
        Stores data in the array that it is given. If it fails, the array stays as it is.
    covers : bool
        Along one dimension the array grows, and `write` stores all that is added there.

    Returns
    -------
    Grown
        As it is stored now.
    """
    _refuse_read_only(growth.where)
    if write is not None and growth.where.store.exclusion == "condition":
        grown = _claim(growth)
        try:
            write(grown.meant)
        except BaseException:
            # Or what was written would be seen.
            with suppress(OmnizarrError):
                take_back(growth, grown)
            raise
        return grown
    return _grow(growth, write, covers=covers)


@conflicts.retried
def _grow(growth: Growth, write: Write | None, *, covers: bool) -> Grown:
    """Do as `grow`, data first: for stores whose locks keep out others."""
    begun: list[Grown] = []

    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        grown = growth.of(metadata)
        begun[:] = [grown]
        if covers:
            _drop_partly_covered(growth, grown)
        elif grown.document is not metadata:
            _blank(growth, grown)
        if write is not None:
            write(grown.meant)
        return grown.document

    with growth.where.lock():
        try:
            hierarchy.update_locked(growth.where, ArrayMetadata, change, growth.zarr_format)
        except BaseException:
            if write is not None and begun and begun[0].document.shape != begun[0].stored:
                with suppress(OmnizarrError):
                    _undo(growth, begun[0])
            raise
    return begun[0]


def _undo(growth: Growth, grown: Grown) -> None:
    """Remove what was written in vain; not if the document was stored in spite of the error."""
    if _has_shape(growth, grown.stored):
        _clear_outside(_clearing(growth.where, grown.meant, growth.policy), grown.before)


def _has_shape(growth: Growth, shape: Shape) -> bool:
    return detection.open_array(growth.where, growth.zarr_format).metadata.shape == shape


@conflicts.retried
def _claim(growth: Growth) -> Grown:
    """Make an array longer, nothing but the fill value being there."""
    begun: list[Grown] = []

    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        grown = growth.of(metadata)
        begun[:] = [grown]
        if grown.document is not metadata:
            _blank(growth, grown)
        return grown.document

    with growth.where.lock():
        hierarchy.update_locked(growth.where, ArrayMetadata, change, growth.zarr_format)
    return begun[0]


def take_back(growth: Growth, grown: Grown) -> None:
    """Make an array as long again as it was, unless another writer has made it longer. Remove what was added."""
    if grown.document.shape == grown.stored:
        return
    binding = _clearing(growth.where, grown.meant, growth.policy)
    if binding.store.exclusion == "condition":
        # Before another writer claims the place.
        _clear_grown(binding, grown.before)
        _shorten(growth, grown)
        return
    with growth.where.lock():
        _shorten(growth, grown)
        if _has_shape(growth, grown.stored):
            _clear_outside(binding, grown.before)


@conflicts.retried
def _shorten(growth: Growth, grown: Grown) -> None:
    def change(metadata: ArrayMetadata) -> ArrayMetadata:
        return with_shape(metadata, grown.stored) if metadata.shape == grown.document.shape else metadata

    with growth.where.lock():
        hierarchy.update_locked(growth.where, ArrayMetadata, change, growth.zarr_format)


def _half_shrunk(where: StorePath, shape: Shape, error: OmnizarrError) -> OmnizarrError:
    """Return the error that says what a failed removal means."""
    remedy = "what is left there is never seen; omnizarr check lists it, omnizarr repair deletes it"
    message = f"the array has its new shape {shape}, but what is stored beyond it could not all be removed"
    # Nothing is to be done again: the shape is what it should be.
    kind = StoreError if isinstance(error, ConflictError) else type(error)
    failure = kind(f"{message}: {error.message}", remedy=remedy)
    if isinstance(error, StoreError) and isinstance(failure, StoreError):
        failure.errno = error.errno
    known = {name: getattr(error, name) for name in error.FIELDS}
    return failure.add(**known).add(store=str(where.store), path=where.path)


def with_shape(metadata: ArrayMetadata, shape: Shape) -> ArrayMetadata:
    """Return the metadata of the array with another shape, chunks staying where they are."""
    if shape == metadata.shape:
        return metadata
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


def _blank(growth: Growth, grown: Grown) -> None:
    """Make all that is added to an array read as the fill value, whatever is stored there."""
    before = grown.before
    if 0 in grown.meant.shape:
        return
    binding = _clearing(growth.where, grown.meant, growth.policy)
    kept = _counts(binding.grid, before)
    fresh = _stored_outside(binding, binding.grid.grid_shape, kept)
    inside = _uncut(binding, before, kept)
    # To read one that is not stored costs no more than to ask whether it is.
    is_few = math.prod(kept) - math.prod(inside) <= _FEW
    cut = list(_outside(kept, inside)) if is_few else _stored_outside(binding, kept, inside)
    workers = binding.store.concurrency
    looked = pool.gather(partial(_holds_beyond, binding, before), cut, workers)
    dirty = [cut[position] for position, holds in looked if holds]
    if binding.store.exclusion != "condition":
        binding.store.delete_many(map(binding.key_of, fresh))
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
    """Another writer has changed the array's shape: the whole change has to be repeated, not only this chunk."""


def _blanked(growth: Growth, grown: Grown, binding: Binding, coords: Coords, old: Buffer | None) -> Buffer | None:
    """Return a chunk without what lies beyond a shape; raise if another writer has claimed that.

    Writers make the array longer before they write there. If it is no longer after the chunk was read, what was read
    belongs to no writer, and it is only replaced if it is still there.
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


def _drop_partly_covered(growth: Growth, grown: Grown) -> None:
    """Delete the chunks beyond an old shape that are written in part: what is stored there must not stay."""
    before, meant = grown.before, grown.meant
    if 0 in meant.shape or meant.shape == before:
        return
    grid = grids.bind(meant.chunk_grid, meant.shape)
    whole = tuple(
        axis.count - 1 if old < axis.length < sum(axis.chunk(axis.count - 1)) else axis.count
        for axis, old in zip(grid.axes, before, strict=True)
    )
    # Those that the old edge cuts hold data.
    partly = tuple(map(max, whole, _counts(grid, before)))
    if partly != grid.grid_shape:
        binding = _bind(growth.where, meant, growth.policy)
        binding.store.delete_many(map(binding.key_of, _stored_outside(binding, grid.grid_shape, partly)))


def _clear_outside(binding: Binding, shape: Shape) -> None:
    """Delete the chunks that lie outside a smaller shape, and clear the part of kept ones that does."""
    kept = _counts(binding.grid, shape)
    _delete_chunks(binding, kept)
    if 0 in kept:
        return
    for coords in _stored_outside(binding, kept, _uncut(binding, shape, kept)):
        _fill_beyond(binding, shape, coords)


def _clear_grown(binding: Binding, before: Shape) -> None:
    """Set all that was added to an array to the fill value; what others have appended behind it stays."""
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
    """Return how many chunks along each dimension hold elements of a shape, as far as that lies in the array."""
    return tuple(
        axis.find(length - 1)[0] + 1 if 0 < length < axis.length else (axis.count if length else 0)
        for axis, length in zip(grid.axes, shape, strict=True)
    )


def _uncut(binding: Binding, shape: Shape, counts: Shape) -> Shape:
    """Return how many of the first so many chunks along each dimension lie inside a shape, as far as the array goes."""
    # Only the last one along a dimension can be cut.
    return tuple(
        count - 1 if count and sum(axis.chunk(count - 1)) > length and axis.length > length else count
        for axis, count, length in zip(binding.grid.axes, counts, shape, strict=True)
    )


def _boxes_beyond(binding: Binding, shape: Shape, coords: Coords) -> Iterator[Region]:
    """Yield the parts of a chunk that lie in the array, but outside a smaller shape; they may overlap."""
    box = binding.grid.slices_of(coords)
    for dimension, (part, length) in enumerate(zip(box, shape, strict=True)):
        if part.stop > length:
            yield (*box[:dimension], slice(length, part.stop), *box[dimension + 1 :])


def _holds_beyond(binding: Binding, shape: Shape, coords: Coords) -> bool:
    """Return whether a chunk holds anything but the fill value outside a smaller shape."""
    for box in _boxes_beyond(binding, shape, coords):
        plan = indexing.basic(box, binding.grid)
        found = np.empty(plan.buffer_shape, binding.spec.dtype)
        engine.read(binding, plan, found)
        if not holds_only(found, binding.spec):
            return True
    return False


def _fill_beyond(binding: Binding, shape: Shape, coords: Coords) -> None:
    """Set what a chunk holds outside a smaller shape to the fill value."""
    for box in _boxes_beyond(binding, shape, coords):
        plan = indexing.basic(box, binding.grid)
        engine.write(binding, plan, np.broadcast_to(_fill_of(binding), plan.buffer_shape))


def _stored_outside(binding: Binding, totals: Shape, kept: Shape) -> list[Coords]:
    """Return the chunks that are stored of the first so many along each dimension, outside the first `kept` ones.

    Those that are not stored are no more than a name: of a sparse array there may be any number of them.
    """
    count = math.prod(totals) - math.prod(kept)
    if not count:
        return []
    prefixes = _prefixes(binding, totals, kept, count)
    if not prefixes:
        asked = pool.gather(partial(_is_stored, binding), _outside(totals, kept), binding.store.concurrency)
        return [coords for _, (coords, is_there) in asked if is_there]
    return [
        coords
        for prefix in prefixes
        for coords in _stored(binding, prefix)
        if all(map(operator.lt, coords, totals)) and not all(map(operator.lt, coords, kept))
    ]


def _is_stored(binding: Binding, coords: Coords) -> tuple[Coords, bool]:
    return coords, binding.store.exists(binding.key_of(coords))


def _prefixes(binding: Binding, totals: Shape, kept: Shape, count: int) -> list[str]:
    """Return prefixes to be listed to find so many chunks; none if to ask for each costs less.

    How many other chunks a listing goes through is not known; they are at most those that the array has.
    """
    keys, store, at_most = binding.keys, binding.store, binding.grid.nchunks
    # Behind the last dimension along which something lies outside, all keys are wanted.
    depth = 1 + max(at for at, (total, inner) in enumerate(zip(totals, kept, strict=True)) if inner < total)
    rows = math.prod(totals[:depth]) - math.prod(kept[:depth])
    has_rows = keys.separator == "/" and not keys.tail and depth < len(totals) and 10 * rows <= count
    turns = count / store.concurrency
    if store.concurrency == 1:
        few = count <= _MANY or (count <= _MANY_OF_MORE and 10 * count <= at_most and not has_rows)
    else:
        few = count <= _MANY and turns <= 1 + (count if has_rows else at_most) / _PAGE
    if few:
        return []
    if has_rows and rows <= _MANY:
        return [f"{binding.prefix}{keys.encode(row)}/" for row in _outside(totals[:depth], kept[:depth])]
    return [binding.prefix]


def _stored(binding: Binding, prefix: str) -> Iterator[Coords]:
    """Yield the coordinates of the chunks that are stored below a prefix."""
    skip = len(binding.prefix)
    for key in binding.store.list_prefix(prefix):
        coords = binding.keys.decode(key[skip:], len(binding.grid.shape))
        if coords is not None:
            yield coords


def _delete_chunks(binding: Binding, kept: Shape) -> None:
    """Delete the chunks outside the first so many along each dimension."""
    totals = binding.grid.grid_shape
    doomed: Iterator[Coords] | list[Coords] = _outside(totals, kept)
    if math.prod(totals) - math.prod(kept) > _MANY:
        doomed = _stored_outside(binding, totals, kept)
    binding.store.delete_many(map(binding.key_of, doomed))


def _outside(totals: Shape, kept: Shape) -> Iterator[Coords]:
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
