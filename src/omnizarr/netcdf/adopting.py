"""Adopting records beyond the end of unlimited dimensions, which a killed writer left: how many are complete.

Writers store chunks first, and lengths last. netCDF-C stores lengths when a dataset is synchronized or closed.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Mapping

import numpy as np

from omnizarr.codecs.chain import holds_only
from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.errors import ChunkError
from omnizarr.model import ArrayMetadata
from omnizarr.netcdf.dimension import Dimension
from omnizarr.netcdf.records import users
from omnizarr.netcdf.variable import Variable
from omnizarr.nodes import bindings, detection, hierarchy, resizing
from omnizarr.nodes.array import Array


def complete(dim: Dimension) -> int:
    """Return the length that an unlimited dimension would have with all complete records beyond its end.

    A record is complete if each variable that has anything beyond the end has all chunks of the record. Variables
    with nothing there do not count. In chunks that the end cuts, and in the last chunks, the last record with
    something else than the fill value counts as the last one. A chunk that cannot be decoded is not there: its writer
    was killed.
    """
    reaches = [_reach(variable, axis) for variable in users([dim]) for axis in _axes(variable, dim)]
    return min((each for each in reaches if each > dim.stored), default=dim.stored)


def adopt(wanted: Mapping[Dimension, int]) -> None:
    """Lengthen dimensions to include stored records: first the arrays, then the group's record of the length."""
    for variable in users(list(wanted)):
        lengths = {axis: length for dim, length in wanted.items() for axis in _axes(variable, dim)}

        def longer(metadata: ArrayMetadata, lengths: Mapping[int, int] = lengths) -> ArrayMetadata:
            shape = tuple([max(length, lengths.get(axis, 0)) for axis, length in enumerate(metadata.shape)])
            return resizing.with_shape(metadata, shape)

        hierarchy.update(variable._stored.where, ArrayMetadata, longer)
    for dim, length in wanted.items():
        dim._group._session.records.enter(dim, length)


def _axes(variable: Variable, dim: Dimension) -> list[int]:
    return [axis for axis, each in enumerate(variable._dims) if each is dim]


def _reach(variable: Variable, axis: int) -> int:
    """Return the end of the complete records along one dimension."""
    stored = variable._stored
    start = variable._dims[axis].stored
    said = detection.open_array(stored.where).metadata.shape[axis]
    # One record more, because an empty range has no chunks.
    binding = bindings.bind(stored.where, _with_length(stored.metadata, axis, start + 1), ChunkPolicy())
    size = binding.grid.axes[axis].size
    inside = [count for at, count in enumerate(binding.grid.grid_shape) if at != axis]
    if not size or not math.prod(inside):
        return max(start, said)
    rows: Counter[int] = Counter()
    for key in binding.store.list_prefix(binding.prefix):
        coords = binding.keys.decode(key.removeprefix(binding.prefix), len(stored.metadata.shape))
        if coords is not None and all(map(operator.lt, coords[:axis] + coords[axis + 1 :], inside)):
            rows[coords[axis]] += 1
    first = last = start // size
    while rows[last] == math.prod(inside):
        last += 1
    longer = _with_length(stored.metadata, axis, last * size)
    array = Array(stored.where, longer, variable._array.config)
    binding = bindings.bind(stored.where, longer, ChunkPolicy())
    for row in range(first, last):
        begin, end = max(start, row * size), (row + 1) * size
        try:
            reaches = [_filled(array, binding, row, axis, begin, across) for across in np.ndindex(*inside)]
        except ChunkError:
            if begin > row * size:
                raise
            return max(begin, said)  # the writer was killed while it wrote this chunk
        # All chunks in between are complete.
        if (begin > row * size or row == last - 1) and min(reaches) < end:
            return max(min(reaches), said)
    return max(last * size, start, said)


def _with_length(metadata: ArrayMetadata, axis: int, length: int) -> ArrayMetadata:
    return resizing.with_shape(metadata, (*metadata.shape[:axis], length, *metadata.shape[axis + 1 :]))


def _filled(array: Array, binding: Binding, row: int, axis: int, begin: int, across: tuple[int, ...]) -> int:
    """Return the end of the records in a chunk; everything after it is the fill value."""
    place = list(binding.grid.slices_of((*across[:axis], row, *across[axis:])))
    place[axis] = slice(begin, place[axis].stop)
    block = np.moveaxis(np.asarray(array[tuple(place)]), axis, 0)
    for number in range(len(block), 0, -1):
        if not holds_only(np.ascontiguousarray(block[number - 1 : number]), binding.spec):
            return begin + number
    return begin
