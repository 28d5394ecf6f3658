"""From a plan back to its selection: which element of the array each element of the buffer is.

A store that has no chunks, but makes them of other arrays when they are asked for, selects from those arrays instead.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from omnizarr.indexing.arrays import Ungrouped
from omnizarr.indexing.plans import Fixed, Part, Plan, Points, Product, Run, as_array
from omnizarr.indexing.transforms import Along, Listed, Output, Transform
from omnizarr.model.grids import Axis, Grid


def transform_of(plan: Plan, grid: Grid) -> Transform:
    """Return the transform from positions in the buffer of a plan to positions in the array.

    Raises TypeError for pieces that are none of `omnizarr.indexing`.

    Examples
    --------
    >>> from omnizarr.indexing import basic
    >>> from omnizarr.model import grids
    >>> grid = grids.bind(grids.regular((4, 4)), (6, 3))
    >>> transform_of(basic((slice(5, None, -2), 1), grid), grid).outputs
    (Along(dim=0, indices=range(5, -1, -2)), Along(dim=1, indices=range(1, 2)))
    """
    shape, pieces = plan.buffer_shape, plan.pieces
    if isinstance(pieces, Product):
        each = zip(pieces.parts, grid.axes, range(len(shape)), shape, strict=True)
        return Transform(shape, [_along(*wanted) for wanted in each])
    if isinstance(pieces, Points | Ungrouped):
        return _of_points(pieces, grid, shape)
    if isinstance(pieces, tuple) and len(pieces) <= 1:
        outputs: list[Output] = []
        for piece in pieces:
            for dim, (number, inner, axis) in enumerate(zip(*piece[:2], grid.axes, strict=True)):
                start, _ = axis.chunk(number)
                outputs.append(Along(dim, range(start + inner.start, start + inner.stop, inner.step)))
        return Transform(shape, outputs or [0] * len(grid.axes))
    raise TypeError(f"pieces of a kind that is not known: {type(pieces).__name__}")


def _along(part: Part, axis: Axis, dim: int, length: int) -> Output:
    """Return the positions that one part selects; `dim` is its dimension in a buffer that is `length` long there."""
    if isinstance(part, Fixed):
        return _of_fixed(part, axis, dim, length)
    first = part if isinstance(part, Run) else part.runs[0]
    start = axis.length - first.visible + first.start
    indices = range(start, start + first.step * length, first.step)
    return Along(dim, indices[::-1] if first.flip else indices)


def _of_fixed(part: Fixed, axis: Axis, dim: int, length: int) -> Output:
    if part.chunks == 1 and not any(part.arrays):
        inner: Any = part.inner[0]
        outer: Any = part.outer[0]
        start, _ = axis.chunk(part.numbers[0])
        indices = range(start + inner.start, start + inner.stop, inner.step)
        return Along(dim, indices[::-1] if outer.step < 0 else indices)
    found = np.zeros(length, np.intp)
    for number, within, places in zip(part.numbers, part.inner, part.outer, strict=True):
        found[places] = as_array(within) + axis.chunk(number)[0]
    return Listed((dim,), found) if length else Along(dim, range(0))


def _of_points(pieces: Points | Ungrouped, grid: Grid, shape: tuple[int, ...]) -> Transform:
    place = pieces.place
    others = [axis for axis in range(len(grid.axes)) if axis not in pieces.axes]
    outputs: dict[int, Output] = {}
    if pieces.rest is not None:
        dims = [dim for dim in range(len(shape)) if dim != place]
        for axis, part, dim in zip(others, pieces.rest.parts, dims, strict=True):
            outputs[axis] = _along(part, grid.axes[axis], dim, shape[dim])
    if isinstance(pieces, Ungrouped):
        columns = [column.reshape(-1) for column in pieces.indices]
    else:
        counts = [stop - start for start, stop in pairwise(pieces.bounds)]
        columns = []
        for axis, coords, places in zip(pieces.axes, pieces.coords, pieces.places, strict=True):
            starts = np.array([grid.axes[axis].chunk(number)[0] for number in coords.tolist()], np.intp)
            found = np.repeat(starts, counts) + places
            if pieces.order is not None:
                sorted_, found = found, np.empty_like(found)
                found[pieces.order] = sorted_
            columns.append(found)
    outputs.update((axis, Listed((place,), column)) for axis, column in zip(pieces.axes, columns, strict=True))
    return Transform(shape, [outputs[axis] for axis in range(len(grid.axes))])
