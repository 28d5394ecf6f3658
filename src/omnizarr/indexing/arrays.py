"""Selections with arrays: orthogonal (one list or mask per axis), coordinates (single elements), masks.

Lists and masks that a slice could say become that slice, so that it does not matter how a
selection was written. What remains is grouped by chunk with at most one sort.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import SelectionError
from omnizarr.grids import Axis, Grid
from omnizarr.indexing.plans import Fixed, Integers, Part, Plan, Points, Selector, product_of
from omnizarr.indexing.slices import basic, expand, in_chunks, is_integer, out_of_bounds, part_of

AnyArray: TypeAlias = NDArray[Any]
_INT64_END: Final = 2**63
_FEW: Final = 12  # from so many chunks on, looking at all of them at once is the quicker way


def is_array_like(item: Any) -> bool:
    """Whether an item of a selection is a list or an array of at least one dimension."""
    if isinstance(item, (list, tuple, range)):
        return True
    return bool(getattr(item, "shape", ())) and hasattr(item, "dtype")


def as_index_array(item: Any, number: int | None = None) -> AnyArray:
    """Return a list or array of a selection as a NumPy array of integers or booleans."""
    where = "" if number is None else f" for dimension {number}"
    try:
        array = np.asarray(item)
    except ValueError as error:  # ragged lists
        raise SelectionError(f"unsupported list{where}: {error}", found=item) from None
    if array.size == 0 and not isinstance(item, np.ndarray):
        return array.astype(np.int64)  # NumPy makes floats of an empty list
    if array.dtype.kind not in "iub":
        raise SelectionError(
            f"arrays used as indices must be of integer or boolean type{where}",
            found=f"data type {array.dtype}",
            expected="integers or booleans",
        )
    return array


def _wrapped(array: AnyArray, length: int, number: int) -> Integers:
    """Return the integers of an array counted from the start of axis `number`; raises BoundsCheckError."""
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < -length or high >= length:
            raise out_of_bounds(low if low < -length else high, length, number)
        if low < 0:
            if length > _INT64_END:
                raise SelectionError(f"dimension {number} is too long for arrays of negative indices", found=length)
            # -1 + 2**63 fits into 64 bits, 2**63 does not.
            array = array.astype(np.int64)
            return np.where(array < 0, array + (length - 1) + 1, array)
    return array.astype(np.int64, copy=False)


def _slice_or_array(indices: Integers) -> slice | Integers:
    """Return the slice that selects the same as 1-d indices counted from the start; the indices if there is none."""
    points = indices.size
    if not points:
        return slice(0, 0)
    start, last = int(indices[0]), int(indices[-1])
    step = int(indices[1]) - start if points > 1 else 1
    if not step or last - start != step * (points - 1):
        return indices
    if points > 2 and not np.array_equal(indices, np.arange(points) * step + start):
        return indices
    if step > 0:
        return slice(start, last + 1, step)
    return slice(start, last - 1 if last else None, step)


def _forward_slice_or_array(indices: Integers) -> Selector:
    selector = _slice_or_array(indices)
    return indices if isinstance(selector, slice) and selector.step < 0 else selector


def orthogonal(selection: Any, grid: Grid) -> Plan:
    """Plan a selection that says independently for each axis what to select.

    Parameters
    ----------
    selection : tuple
        Of integers (which drop the axis), slices, 1-d lists or arrays of integers (in any
        order, repeated, negative), 1-d masks of the axis' length; Ellipsis and None as in NumPy.
    grid : Grid

    Raises
    ------
    SelectionError, BoundsCheckError

    Examples
    --------
    >>> from omnizarr import grids
    >>> grid = grids.bind(grids.regular((4, 4)), (6, 3))
    >>> plan = orthogonal(([5, 0, 4], [True, False, True]), grid)
    >>> plan.shape
    (3, 2)
    >>> [piece.coords for piece in plan]
    [(0, 0), (1, 0)]
    """
    items = expand(selection if isinstance(selection, tuple) else (selection,), len(grid.axes))
    axes = iter(enumerate(grid.axes))
    return _independent([item if item is None else _simplest(item, *next(axes)) for item in items], grid)


def _independent(items: Sequence[Any], grid: Grid) -> Plan:
    """Plan one item per axis: integer, slice, or array of indices that no slice can say."""
    if not any(isinstance(item, np.ndarray) for item in items):
        return basic(tuple(items), grid)
    return in_chunks(items, grid, _part_of, product_of)


def _part_of(item: Any, axis: Axis, number: int) -> tuple[Part, int]:
    if isinstance(item, np.ndarray):
        return _listed(item, axis), item.size
    return part_of(item, axis, number)


def _simplest(item: Any, number: int, axis: Axis) -> Any:
    """Return an item of an orthogonal selection with lists and masks turned into slices where that says the same."""
    if is_array_like(item):
        return _slice_or_array(_indices_along(item, axis, number))
    return operator.index(item) if is_integer(item) else item


def _indices_along(item: Any, axis: Axis, number: int) -> Integers:
    """Return what a list, array or mask selects along one axis, counted from its start."""
    array = as_index_array(item, number)
    if array.ndim != 1:
        raise SelectionError(
            f"an array in an orthogonal selection must have one dimension, dimension {number}",
            found=f"shape {array.shape}",
            remedy="index with arrays of coordinates through .vindex",
        )
    if array.dtype != np.bool_:
        return _wrapped(array, axis.length, number)
    if array.size != axis.length:
        raise SelectionError(
            f"the mask does not fit dimension {number}", found=f"length {array.size}", expected=f"length {axis.length}"
        )
    return np.flatnonzero(array).astype(np.int64, copy=False)


def _listed(indices: Integers, axis: Axis) -> Fixed:
    """Group elements by chunk."""
    numbers, places = axis.locate(indices)
    order = _order(numbers, axis.count)
    if order is not None:
        numbers, places = numbers[order], places[order]
    bounds = _bounds(numbers)
    inner = _selectors(places, bounds)
    outer: list[Selector] = (
        [slice(start, stop, 1) for start, stop in pairwise(bounds)] if order is None else _selectors(order, bounds)
    )
    chunks: list[int] = numbers[bounds[:-1]].tolist()
    wholes = [
        isinstance(selector, slice) and stop - start == _visible(axis, chunk)
        for selector, chunk, (start, stop) in zip(inner, chunks, pairwise(bounds), strict=True)
    ]
    arrays = (
        not all(isinstance(selector, slice) for selector in inner),
        not all(isinstance(selector, slice) for selector in outer),
    )
    return Fixed(len(chunks), chunks, inner, outer, wholes, arrays)


def _visible(axis: Axis, chunk: int) -> int:
    """Return how many elements of a chunk lie inside the array."""
    start, size = axis.chunk(chunk)
    return min(size, axis.length - start)


def _order(numbers: Integers, chunks: int) -> Integers | None:
    """Return what sorts elements by chunk and keeps their order within a chunk; None if they are sorted."""
    if not np.any(numbers[1:] < numbers[:-1]):
        return None
    # NumPy sorts 16 bits by radix, several times as fast.
    keys = numbers.astype(np.uint16) if chunks <= 2**16 else numbers
    return np.argsort(keys, kind="stable")


def _bounds(numbers: Integers) -> list[int]:
    """Return where equal neighbours begin, and the end."""
    edges: list[int] = np.flatnonzero(numbers[1:] != numbers[:-1]).tolist()
    return [0, *[edge + 1 for edge in edges], numbers.size]


def _selectors(values: Integers, bounds: Sequence[int]) -> list[Selector]:
    """Return ``values[bounds[i]:bounds[i + 1]]`` for all i, as slices with positive steps where that says the same."""
    if len(bounds) <= _FEW:
        return [_forward_slice_or_array(values[start:stop]) for start, stop in pairwise(bounds)]
    steps = np.diff(values)
    bends = np.concatenate([[0], np.cumsum(steps[1:] != steps[:-1])]) if steps.size else np.zeros(1, np.int64)
    starts, stops = np.array(bounds[:-1]), np.array(bounds[1:])
    # A stretch is even if its step does not change between its second and its second last element.
    first, last = np.minimum(starts, bends.size - 1), np.clip(stops - 2, 0, bends.size - 1)
    step = np.where(stops - starts > 1, steps[np.minimum(starts, steps.size - 1)] if steps.size else 1, 1)
    even = ((stops - starts <= 2) | (bends[last] == bends[first])) & (step > 0)
    return [
        slice(low, high + 1, by) if is_even else values[start:stop]
        for start, stop, low, high, by, is_even in zip(
            starts.tolist(),
            stops.tolist(),
            values[starts].tolist(),
            values[stops - 1].tolist(),
            step.tolist(),
            even.tolist(),
            strict=True,
        )
    ]


def coordinate(selection: Any, grid: Grid) -> Plan:
    """Plan a selection of single elements: one integer or array of integers per dimension, broadcast together.

    The result has the shape they broadcast to. One mask of the array's shape is planned by `mask`.

    Raises
    ------
    SelectionError, BoundsCheckError

    Examples
    --------
    >>> from omnizarr import grids
    >>> grid = grids.bind(grids.regular((4, 4)), (6, 3))
    >>> [piece.chunk_selection for piece in coordinate(([5, 0, -2], [2, 1, 1]), grid)]
    [(array([0]), array([1])), (array([1, 0]), array([2, 1]))]
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    arrays = [as_index_array(item, number) for number, item in enumerate(items)]
    if len(arrays) == 1 and arrays[0].dtype == np.bool_:
        return mask(arrays[0], grid)
    if len(arrays) != len(grid.axes) or any(array.dtype == np.bool_ for array in arrays):
        raise SelectionError(
            "no selection of coordinates",
            found=selection,
            expected=f"one integer or array of integers for each of {len(grid.axes)} dimensions, or one mask",
        )
    try:
        shape = np.broadcast_shapes(*[array.shape for array in arrays])
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise SelectionError("arrays of coordinates do not broadcast together", found=f"shapes {shapes}") from None
    indices = [_wrapped(array, n, number) for number, (array, n) in enumerate(zip(arrays, grid.shape, strict=True))]
    if _is_open_mesh(indices, len(shape)):
        return _mesh([array.reshape(-1) for array in indices], grid, shape)
    return _points(indices, grid, shape)


def _is_open_mesh(arrays: Sequence[Integers], ndim: int) -> bool:
    """Whether each array varies along an axis of its own, in order: then it selects along its own axis only."""
    varying = [axis + ndim - array.ndim for array in arrays for axis, length in enumerate(array.shape) if length != 1]
    own = all(sum(length != 1 for length in array.shape) <= 1 for array in arrays)
    return own and all(a < b for a, b in pairwise(varying))


def _mesh(indices: Sequence[Integers], grid: Grid, shape: tuple[int, ...]) -> Plan:
    """Plan 1-d indices along each axis, for a result of any shape with as many elements."""
    plan = _independent([_slice_or_array(column) for column in indices], grid)
    return Plan(plan.buffer_shape, shape, plan.pieces)


def _points(indices: Sequence[Integers], grid: Grid, shape: tuple[int, ...]) -> Plan:
    """Plan single elements, given by arrays that broadcast to `shape` and lie inside the array."""
    points = math.prod(shape)
    if not points:
        return Plan((0,), shape, ())
    located = [axis.locate(column) for axis, column in zip(grid.axes, indices, strict=True)]
    numbers = [np.broadcast_to(column, shape).reshape(-1) for column, _ in located]
    places = [np.broadcast_to(column, shape).reshape(-1) for _, column in located]
    chunks = grid.nchunks
    if chunks < _INT64_END:
        flat = numbers[0]
        for column, count in zip(numbers[1:], grid.grid_shape[1:], strict=True):
            flat = flat * count + column
    else:
        flat = _ranks(numbers)
        chunks = points
    order = _order(flat, chunks)
    if order is not None:
        flat = flat[order]
        numbers = [column[order] for column in numbers]
        places = [column[order] for column in places]
    bounds = _bounds(flat)
    return Plan((points,), shape, Points([column[bounds[:-1]] for column in numbers], bounds, places, order))


def _ranks(columns: Sequence[Integers]) -> Integers:
    """Return the rank of each row (one value of each column): for chunks too many to be counted in int64."""
    order = np.lexsort(columns[::-1])
    change = np.zeros(order.size, np.bool_)
    for column in columns:
        sorted_column = column[order]
        change[1:] |= sorted_column[1:] != sorted_column[:-1]
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.cumsum(change)
    return ranks


def mask(selection: Any, grid: Grid) -> Plan:
    """Plan the elements where a mask of the array's shape is true; the result has one dimension.

    Raises
    ------
    SelectionError
        If it is no boolean array of that shape.

    Examples
    --------
    >>> import numpy as np
    >>> from omnizarr import grids
    >>> grid = grids.bind(grids.regular((4, 4)), (6, 3))
    >>> mask(np.eye(6, 3, dtype=bool), grid).shape
    (3,)
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    array = as_index_array(items[0]) if len(items) == 1 else None
    if array is None or array.dtype != np.bool_ or array.shape != grid.shape:
        raise SelectionError(
            "no mask for this array",
            found=selection if array is None else f"{array.dtype} of shape {array.shape}",
            expected=f"one boolean array of shape {grid.shape}",
        )
    points = int(np.count_nonzero(array))
    if not points:
        return Plan((0,), (0,), ())
    if not array.ndim:
        return Plan((), (1,), basic((), grid).pieces)
    # A mask that is a product of masks along the axes (a box, say) needs no coordinates of single elements.
    along = [
        np.flatnonzero(array.any(axis=tuple(other for other in range(array.ndim) if other != axis)))
        for axis in range(array.ndim)
    ]
    if math.prod(column.size for column in along) == points:
        return _mesh(along, grid, (points,))
    return _points(np.nonzero(array), grid, (points,))


def subplan(selection: tuple[Any, ...], grid: Grid) -> Plan:
    """Plan the `chunk_selection` of a piece within the chunk, which is itself an array with a grid.

    Parameters
    ----------
    selection : tuple
        A `Piece.chunk_selection`: slices with positive steps, or arrays as pieces have them.
    grid : Grid
        Of the chunk.

    Returns
    -------
    Plan
        Its buffer is ``chunk[selection]``, in shape and order.

    Examples
    --------
    >>> from omnizarr import grids
    >>> inner = grids.bind(grids.regular((2,)), (4,))
    >>> [tuple(piece) for piece in subplan((slice(1, 3, 1),), inner)]
    [((0,), (slice(1, 2, 1),), (slice(0, 1, 1),), False), ((1,), (slice(0, 1, 1),), (slice(1, 2, 1),), False)]
    """
    arrays = [item for item in selection if isinstance(item, np.ndarray)]
    if not arrays:
        return basic(selection, grid)
    if len(arrays) > 1 and arrays[0].ndim == 1:
        return _points(arrays, grid, arrays[0].shape)
    return orthogonal(tuple(i.reshape(-1) if isinstance(i, np.ndarray) else i for i in selection), grid)


def plan_arrays(items: tuple[Any, ...], grid: Grid) -> Plan:
    """Plan what stands between the brackets of ``array[...]`` if there may be arrays in it."""
    ndim = len(grid.axes)
    items = tuple(as_index_array(item) if is_array_like(item) else item for item in items)
    arrays = [item for item in items if isinstance(item, np.ndarray) and (item.ndim or item.dtype == np.bool_)]
    if not arrays:
        return basic(items, grid)
    masks = sum(array.dtype == np.bool_ for array in arrays)
    if len(items) == masks == 1 and arrays[0].ndim == ndim:
        return mask(items, grid)
    if not masks and len(items) == ndim and all(isinstance(item, np.ndarray) or is_integer(item) for item in items):
        return coordinate(items, grid)
    if len(arrays) == 1:
        return orthogonal(items, grid)
    raise SelectionError(
        "several arrays together with slices can mean two things",
        found=f"{len(arrays)} arrays for {ndim} dimensions",
        expected="at most one array besides slices and integers",
        remedy="say which with .oindex (each axis by itself) or .vindex (coordinates of elements)",
    )
