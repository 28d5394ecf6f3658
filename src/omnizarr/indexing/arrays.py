"""Selections with arrays: orthogonal (one list or mask per axis), coordinates (single elements), masks.

Lists and masks that are equal to a slice become that slice, so that the form of a selection does not matter.
The others are grouped by chunk with at most one sort. Single elements are grouped when a plan is run, which the native
engine does itself.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.errors import SelectionError
from omnizarr.indexing.plans import (
    Fixed,
    Integers,
    Part,
    Piece,
    Plan,
    Points,
    Product,
    Selector,
    place_of_points,
    product_of,
)
from omnizarr.indexing.slices import basic, expand, in_chunks, is_integer, out_of_bounds, part_of
from omnizarr.model.grids import Axis, Grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

AnyArray: TypeAlias = "NDArray[Any]"
_INT64_END: Final = 2**63
_FEW: Final = 12  # number of chunks from which processing all of them at once is faster
_MOST_COUNTED: Final = 2**16
"""Points in at most this number of chunks, or in four chunks for each point, can be grouped by counting."""


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


def wrapped(array: AnyArray, length: int, number: int) -> Integers:
    """Return the integers of an array counted from the start of axis `number`. Raises BoundsCheckError."""
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
    """Return the slice that is equal to 1-d indices counted from the start; the indices if there is none."""
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


def forward_slice_or_array(indices: Integers) -> Selector:
    """Return the slice with positive step that is equal to 1-d indices; the indices if there is none."""
    selector = _slice_or_array(indices)
    return indices if isinstance(selector, slice) and selector.step < 0 else selector


def orthogonal(selection: Any, grid: Grid) -> Plan:
    """Return the plan for a selection that selects independently along each axis.

    Parameters
    ----------
    selection : tuple
        Integers (which drop the axis), slices, 1-d lists or arrays of integers (in any order, repeated,
        negative), 1-d masks of the axis' length; Ellipsis and None as in NumPy.
    grid : Grid

    Raises
    ------
    SelectionError, BoundsCheckError

    Examples
    --------
    >>> from omnizarr.model import grids
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
    """Return the plan for one item per axis: integer, slice, or array of indices without an equal slice."""
    if not any(isinstance(item, np.ndarray) for item in items):
        return basic(tuple(items), grid)
    return in_chunks(items, grid, _part_of, product_of)


def _part_of(item: Any, axis: Axis, number: int) -> tuple[Part, int]:
    if isinstance(item, np.ndarray):
        return _listed(item, axis), item.size
    return part_of(item, axis, number)


def _simplest(item: Any, number: int, axis: Axis) -> Any:
    """Return an item of an orthogonal selection, with lists and masks replaced by equal slices."""
    if is_array_like(item):
        return _slice_or_array(_indices_along(item, axis, number))
    return operator.index(item) if is_integer(item) else item


def _indices_along(item: Any, axis: Axis, number: int) -> Integers:
    """Return the indices that a list, array or mask selects along one axis, counted from its start."""
    array = as_index_array(item, number)
    if array.ndim != 1:
        raise SelectionError(
            f"an array in an orthogonal selection must have one dimension, dimension {number}",
            found=f"shape {array.shape}",
            remedy="index with arrays of coordinates through .vindex",
        )
    if array.dtype != np.bool_:
        return wrapped(array, axis.length, number)
    if array.size != axis.length:
        raise _unfitting_mask(array.size, axis.length, number)
    return np.flatnonzero(array).astype(np.int64, copy=False)


def _unfitting_mask(found: int | None, length: int, number: int) -> SelectionError:
    return SelectionError(
        f"the mask does not fit dimension {number}", found=f"length {found}", expected=f"length {length}"
    )


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
    """Return how many elements of a chunk are inside the array."""
    start, size = axis.chunk(chunk)
    return min(size, axis.length - start)


def _order(numbers: Integers, chunks: int) -> Integers | None:
    """Return a stable order that sorts elements by chunk; None if they are sorted."""
    if not np.any(numbers[1:] < numbers[:-1]):
        return None
    # NumPy sorts 16 bits by radix, several times faster.
    keys = numbers.astype(np.uint16) if chunks <= 2**16 else numbers
    return np.argsort(keys, kind="stable")


def _bounds(numbers: Integers) -> list[int]:
    """Return the starts of runs of equal values, and the end."""
    edges: list[int] = np.flatnonzero(numbers[1:] != numbers[:-1]).tolist()
    return [0, *[edge + 1 for edge in edges], numbers.size]


def _selectors(values: Integers, bounds: Sequence[int]) -> list[Selector]:
    """Return ``values[bounds[i]:bounds[i + 1]]`` for all i, as equal slices with positive steps if possible."""
    if len(bounds) <= _FEW:
        return [forward_slice_or_array(values[start:stop]) for start, stop in pairwise(bounds)]
    steps = np.diff(values)
    bends = np.concatenate([[0], np.cumsum(steps[1:] != steps[:-1])]) if steps.size else np.zeros(1, np.int64)
    starts, stops = np.array(bounds[:-1]), np.array(bounds[1:])
    # A run is even if its step does not change between its second and its second last element.
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
    """Return the plan for single elements: one integer or array of integers per dimension, broadcast together.

    The result has the broadcast shape. A mask of the array's shape is handled by `mask`.

    Raises
    ------
    SelectionError, BoundsCheckError

    Examples
    --------
    >>> from omnizarr.model import grids
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
    shape = _broadcast([array.shape for array in arrays])
    indices = [wrapped(array, n, number) for number, (array, n) in enumerate(zip(arrays, grid.shape, strict=True))]
    return _together(indices, grid, shape, 0)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which arrays of these shapes are broadcast."""
    if len(set(shapes)) == 1:
        return shapes[0]  # a shortcut, because NumPy is slow here
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise SelectionError(
            "arrays used as indices do not broadcast together",
            found=f"shapes {', '.join(map(str, shapes))}",
            remedy="select along each dimension independently with .oindex",
        ) from None


def _spread(column: Integers, shape: tuple[int, ...]) -> Integers:
    """Return a column broadcast to a shape, in one dimension."""
    return (column if column.shape == shape else np.broadcast_to(column, shape)).reshape(-1)


def _points(
    axes: Sequence[int], indices: Sequence[Integers], rest: Sequence[tuple[Part, int]], grid: Grid
) -> tuple[tuple[int, ...], Points | Ungrouped]:
    """Return the shape of the buffer and the pieces for points along some axes, and parts along the others.

    The points are given by arrays that broadcast together and are inside the array.
    """
    shape = _broadcast([column.shape for column in indices])
    columns = [_spread(column, shape) for column in indices]
    points = columns[0].size
    along = [grid.axes[axis] for axis in axes]
    lengths = [length for _, length in rest]
    lengths.insert(place_of_points(axes), points)
    others = product_of([part for part, _ in rest]) if rest else None
    loose = Ungrouped(axes, columns, along, others)
    is_counted = math.prod(axis.count for axis in along) <= max(_MOST_COUNTED, 4 * points)
    return tuple(lengths), loose if is_counted and all(axis.size for axis in along) else loose.grouped()


class Ungrouped:
    """The pieces of a plan that selects points, which are grouped by chunk when the pieces are needed.

    Parameters
    ----------
    axes : sequence of int
        As in `omnizarr.indexing.plans.Points`.
    indices : sequence of arrays
        The elements along each of these axes, counted from the start of the array, one for each point.
    along : sequence of Axis
        These axes.
    rest : Product, optional
        As in `omnizarr.indexing.plans.Points`.
    """

    __slots__ = ("_along", "_grouped", "axes", "indices", "place", "rest")

    def __init__(
        self, axes: Sequence[int], indices: Sequence[Integers], along: Sequence[Axis], rest: Product | None
    ) -> None:
        self._along = along
        self._grouped: Points | None = None
        self.axes = axes
        self.indices = indices
        self.place = place_of_points(axes)
        self.rest = rest

    def __len__(self) -> int:
        return len(self.grouped())

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.grouped())

    @property
    def grid(self) -> list[tuple[int, int]]:
        """Length and number of the chunks along each of the axes."""
        return [(axis.size, axis.count) for axis in self._along]

    def grouped(self) -> Points:
        """Return the points grouped by chunk."""
        if self._grouped is None:
            self._grouped = _grouped(self.axes, self.indices, self._along, self.rest)
        return self._grouped


def _grouped(axes: Sequence[int], indices: Sequence[Integers], along: Sequence[Axis], rest: Product | None) -> Points:
    """Return points grouped by chunk, with at most one sort."""
    located = [axis.locate(column) for axis, column in zip(along, indices, strict=True)]
    numbers = [column for column, _ in located]
    places = [column for _, column in located]
    counts = [axis.count for axis in along]
    chunks = math.prod(counts)
    if chunks < _INT64_END:
        flat = numbers[0]
        for column, count in zip(numbers[1:], counts[1:], strict=True):
            flat = flat * count + column
    else:
        flat = _ranks(numbers)
        chunks = flat.size
    order = _order(flat, chunks)
    if order is not None:
        flat = flat[order]
        numbers = [column[order] for column in numbers]
        places = [column[order] for column in places]
    bounds = _bounds(flat)
    coords = [column[bounds[:-1]] for column in numbers]
    return Points(axes, coords, bounds, places, order, rest)


def _ranks(columns: Sequence[Integers]) -> Integers:
    """Return the rank of each row (one value of each column), for more chunks than int64 can count."""
    order = np.lexsort(columns[::-1])
    change = np.zeros(order.size, np.bool_)
    for column in columns:
        sorted_column = column[order]
        change[1:] |= sorted_column[1:] != sorted_column[:-1]
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.cumsum(change)
    return ranks


def mask(selection: Any, grid: Grid) -> Plan:
    """Return the plan for the elements where a mask of the array's shape is True. The result has one dimension.

    Raises
    ------
    SelectionError
        If the mask is not a boolean array of that shape.

    Examples
    --------
    >>> import numpy as np
    >>> from omnizarr.model import grids
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
    # A mask that is a product of masks along the axes (such as a box) needs no coordinates of single elements.
    along = [
        np.flatnonzero(array.any(axis=tuple(other for other in range(array.ndim) if other != axis)))
        for axis in range(array.ndim)
    ]
    if math.prod(column.size for column in along) == points:
        plan = _independent([_slice_or_array(column) for column in along], grid)
        return Plan(plan.buffer_shape, (points,), plan.pieces)
    return _together(np.nonzero(array), grid, (points,), 0)


def subplan(selection: tuple[Any, ...], grid: Grid) -> Plan:
    """Return the plan for the `chunk_selection` of a piece within the chunk, which is itself an array with a grid.

    Parameters
    ----------
    selection : tuple
        A `Piece.chunk_selection`: slices with positive steps, or arrays as in pieces.
    grid : Grid
        Grid of the chunk.

    Returns
    -------
    Plan
        Its buffer is ``chunk[selection]``, in shape and order.

    Examples
    --------
    >>> from omnizarr.model import grids
    >>> inner = grids.bind(grids.regular((2,)), (4,))
    >>> [tuple(piece) for piece in subplan((slice(1, 3, 1),), inner)]
    [((0,), (slice(1, 2, 1),), (slice(0, 1, 1),), False), ((1,), (slice(0, 1, 1),), (slice(1, 2, 1),), False)]
    """
    axes = [axis for axis, item in enumerate(selection) if isinstance(item, np.ndarray)]
    if not axes:
        return basic(selection, grid)
    if len(axes) > 1 and selection[axes[0]].ndim == 1:
        rest = [_part_of(item, grid.axes[axis], axis) for axis, item in enumerate(selection) if axis not in axes]
        shape, pieces = _points(axes, [selection[axis] for axis in axes], rest, grid)
        return Plan(shape, shape, pieces)
    return orthogonal(tuple(i.reshape(-1) if isinstance(i, np.ndarray) else i for i in selection), grid)


def plan_arrays(items: tuple[Any, ...], grid: Grid) -> Plan:
    """Return the plan for a selection of ``array[...]`` that may contain arrays."""
    items = tuple(as_index_array(item) if is_array_like(item) else item for item in items)
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    if len(items) == len(arrays) == 1 and arrays[0].dtype == np.bool_ and arrays[0].ndim == len(grid.axes):
        return mask(items, grid)
    dims = [array.ndim for array in arrays if array.ndim]
    if not dims:
        return basic(items, grid)
    # The axis of a single one-dimensional list or mask keeps its place, even among integers, as in zarr-python.
    return orthogonal(items, grid) if dims == [1] else _advanced(items, grid)


class _Column(NamedTuple):
    """A selection along one axis that depends on selections along others."""

    indices: NDArray[Any]
    length: int | None
    """The length of the axis, if it was a mask that fits it."""


def _columns_of(item: Any) -> list[_Column]:
    """Return one column for each axis with an integer, an array of integers or a mask."""
    array = as_index_array(item)
    if array.dtype == np.bool_:
        return [_Column(places, length) for places, length in zip(array.nonzero(), array.shape, strict=True)]
    return [_Column(array, None)]


def _advanced(items: tuple[Any, ...], grid: Grid) -> Plan:
    """Return the plan for NumPy's advanced indexing, where arrays, masks and integers are broadcast together.

    The broadcast dimensions are in the result where they are in the selection, or first if there is anything
    between them.
    """
    flat: list[Any] = []
    shapes: list[tuple[int, ...]] = []
    places: list[int] = []
    for place, item in enumerate(items):
        if is_integer(item) or (isinstance(item, np.ndarray) and item.ndim):
            columns = _columns_of(item)
            flat += columns
            shapes += [column.indices.shape for column in columns]
            places.append(place)
        else:
            flat.append(item)
    shape = _broadcast(shapes)
    expanded = expand(flat, len(grid.axes))
    missing = len(expanded) - len(flat) + any(item is Ellipsis for item in items)
    is_together = places[-1] - places[0] == len(places) - 1
    before = sum(missing if item is Ellipsis else 1 for item in items[: places[0]]) if is_together else 0
    return _together(_within(expanded, grid, is_empty=0 in shape), grid, shape, before)


def _within(items: Sequence[Any], grid: Grid, *, is_empty: bool) -> Iterator[Any]:
    """Yield items with columns as indices counted from the start of their axes.

    Raises BoundsCheckError. If arrays together select nothing, their indices are not checked, as in NumPy.
    """
    axes = enumerate(grid.axes)
    for item in items:
        if item is None:
            yield item
            continue
        number, axis = next(axes)
        if not isinstance(item, _Column):
            yield item
        elif item.length not in (None, axis.length):
            raise _unfitting_mask(item.length, axis.length, number)
        elif is_empty and item.indices.ndim:
            yield np.zeros(item.indices.shape, np.int64)
        else:
            yield wrapped(item.indices, axis.length, number)


def _together(items: Iterable[Any], grid: Grid, shape: tuple[int, ...], place: int) -> Plan:
    """Return the plan for one item per axis (and newaxis): slices, and arrays that are broadcast to `shape` together.

    The dimensions of that shape begin at `place` in the result.
    """
    columns: dict[int, Integers] = {}
    parts: dict[int, tuple[Part, int]] = {}
    selectors: dict[int, Any] = {}
    spans: dict[int, tuple[int, ...]] = {}  # the dimensions of the result along which each axis varies
    others: list[int] = []
    for item in items:
        axis = len(spans)
        if isinstance(item, np.ndarray):
            first = place + len(shape) - item.ndim
            spans[axis] = tuple([first + dim for dim, length in enumerate(item.shape) if length != 1])
            columns[axis] = item
            continue
        if item is not None:
            spans[axis] = (len(others) + (len(shape) if len(others) >= place else 0),)
            selectors[axis] = item
            parts[axis] = part_of(item, grid.axes[axis], axis)
        others.append(1 if item is None else parts[axis][1])
    result = (*others[:place], *shape, *others[place:])
    if 0 in shape:
        return Plan((0,), result, ())
    # An array that varies independently selects independently.
    counts = Counter(dim for axis in columns for dim in spans[axis])
    alone = [axis for axis in columns if all(counts[dim] == 1 for dim in spans[axis])]
    selectors.update({axis: _slice_or_array(columns[axis].reshape(-1)) for axis in alone})
    if len(alone) == len(columns):
        ordered = range(len(spans))
        plan = _independent([selectors[axis] for axis in ordered], grid)
        return Plan(plan.buffer_shape, result, plan.pieces, _turned([spans[axis] for axis in ordered], result))
    # The others become points, and so do arrays without an equal slice, which would have to be broadcast with
    # them.
    points = [axis for axis in columns if columns[axis].size == 1 or not isinstance(selectors.get(axis), slice)]
    rest = [axis for axis in range(len(spans)) if axis not in points]
    parts.update({axis: part_of(selectors[axis], grid.axes[axis], axis) for axis in rest if axis not in parts})
    buffer_shape, pieces = _points(points, [columns[axis] for axis in points], [parts[axis] for axis in rest], grid)
    varying = [spans[axis] for axis in rest]
    varying.insert(place_of_points(points), tuple(sorted({dim for axis in points for dim in spans[axis]})))
    return Plan(buffer_shape, result, pieces, _turned(varying, result))


def _turned(spans: Sequence[tuple[int, ...]], result: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return how a buffer becomes a result, if more than its shape changes.

    `spans` are the dimensions of the result along which each dimension of the buffer varies.
    """
    dims = [dim for span in spans for dim in span]
    axes = sorted(range(len(dims)), key=dims.__getitem__)
    moving = [axis for axis in axes if result[dims[axis]] != 1]
    if moving == sorted(moving):
        return None
    return tuple([result[dim] for dim in dims]), tuple(axes)
