"""Stored parts of variables whose elements are in arrays of Zarr. Copies and comparisons skip all others.

A variable can have 10^15 chunks of which three are stored. Where all others read as the same fill value at both ends,
they need no look.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from omnizarr import metadata as public
from omnizarr.errors import OmnizarrError
from omnizarr.model import UNDEFINED, ArrayMetadata, grids, keys
from omnizarr.model.grids import Grid
from omnizarr.nodes import creating, equivalence, holdings
from omnizarr.nodes.copying import Copier
from omnizarr.nodes.location import chunk_prefix
from omnizarr.support.progress import Tick

if TYPE_CHECKING:
    from omnizarr.netcdf.header import Selection
    from omnizarr.nodes.array import Array

_FEW: Final = 64
"""Blocks of an array that are walked one after the other, whatever is stored."""
_MANY: Final = 4096
"""Stored chunks that are looked at by themselves, however many blocks there are."""
_BATCH: Final = 256  # chunks that are copied between two reports of progress


def has_same_fill(one: Array, other: Array, *, undefined_is_zero: bool = False) -> bool:
    """Return whether missing chunks of two arrays read as the same values, to the bit.

    `undefined_is_zero`: whether that counts as zero which v2 calls null, as readers of Zarr show it.
    """
    is_undefined = [_metadata(each).fill_value is UNDEFINED for each in (one, other)]
    if any(is_undefined) and not undefined_is_zero:
        return False
    try:
        ours, theirs = (
            np.zeros((), each.dtype) if undefined else np.asarray(each.fill_value)
            for each, undefined in zip((one, other), is_undefined, strict=True)
        )
        if theirs.dtype.kind in "OUT" or ours.dtype.kind in "OUT":
            return bool(ours == theirs)
        return ours.dtype.kind == theirs.dtype.kind and ours.astype(theirs.dtype).tobytes() == theirs.tobytes()
    except (OmnizarrError, TypeError, ValueError):
        return False


def regions(shape: tuple[int, ...], arrays: Sequence[Array]) -> Iterator[Selection] | None:
    """Yield the parts of a shape that are stored in any of some arrays of this shape.

    None: everything is to be walked, because that is not much more, or the arrays have other shapes or fill values.
    """
    first = arrays[0]
    item_size = max(first.dtype.itemsize, 1)
    blocks = math.prod(shape) * item_size // creating.BLOCK_BYTES
    if blocks <= _FEW or any(each.shape != shape for each in arrays):
        return None
    if not all(has_same_fill(first, each, undefined_is_zero=True) for each in arrays[1:]):
        return None
    found: set[tuple[tuple[int, int], ...]] = set()
    for each in arrays:
        grid = _grid(each)
        for coords in holdings.coords(each.store_path, _metadata(each)):
            found.add(tuple((part.start, part.stop) for part in grid.slices_of(coords)))
            if len(found) > max(blocks, _MANY):
                return None
    parts = (tuple(slice(*each) for each in bounds) for bounds in sorted(found))
    return itertools.chain.from_iterable(_cut(each, item_size) for each in parts)


def _cut(region: Selection, item_size: int) -> Iterator[Selection]:
    """Yield parts of a region along its first dimension, of a moderate size if rows are."""
    lengths = [each.stop - each.start for each in region]
    if not region or math.prod(lengths) * item_size <= creating.BLOCK_BYTES:
        yield region
        return
    step = max(1, creating.BLOCK_BYTES // max(1, math.prod(lengths[1:]) * item_size))
    for start in range(region[0].start, region[0].stop, step):
        yield (slice(start, min(start + step, region[0].stop)), *region[1:])


def copied(source: Array, target: Array, *, needs_all: bool, tick: Tick) -> list[Selection] | None:
    """Copy the stored chunks of an array that are chunks of another one byte for byte, and return the other parts.

    Chunks that the edge cuts are left: what they have beyond it is for other readers to see when the array grows.

    Parameters
    ----------
    source, target : Array
    needs_all : bool
        Whether the target must store all chunks.
    tick : callable
        Gets the number of bytes of elements that are copied.

    Returns
    -------
    list of selections, or None
        The chunks that are to be written otherwise. None: nothing is copied, and everything is to be written.
    """
    ours, theirs = _metadata(source), _metadata(target)
    if ours.storage_transformers or theirs.storage_transformers or not equivalence.have_same_bytes(ours, theirs):
        return None
    grid = _grid(source)
    stored = list(holdings.coords(source.store_path, ours))
    if len(stored) < math.prod(grid.grid_shape) and (needs_all or not has_same_fill(source, target)):
        return None
    left: list[Selection] = []
    whole = []
    chunk = grid.chunk_shape
    for coords in stored:
        region = grid.slices_of(coords)
        is_whole = tuple(each.stop - each.start for each in region) == chunk
        if is_whole:
            whole.append(coords)
        else:
            left.append(region)
    old, new = _key_of(source), _key_of(target)
    copier = Copier(source.store_path.store, target.store_path.store, sized=False)
    size = math.prod(chunk or ()) * target.dtype.itemsize
    for batch in _batches((old(coords), new(coords)) for coords in whole):
        copier.run(batch)
        tick(size * len(batch))
    return left


def _batches(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    rest = iter(pairs)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _key_of(array: Array) -> Callable[[tuple[int, ...]], str]:
    metadata = _metadata(array)
    prefix, encoding = chunk_prefix(array.store_path, metadata), keys.bind(metadata.chunk_key_encoding)
    return lambda coords: prefix + encoding.encode(coords)


def _metadata(array: Array) -> ArrayMetadata:
    return public.as_model(array.metadata)


def _grid(array: Array) -> Grid:
    metadata = _metadata(array)
    return grids.bind(metadata.chunk_grid, metadata.shape)
