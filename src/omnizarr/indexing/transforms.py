"""Selections that compose: which element of an array each element of a result is.

A `Transform` maps each position in a result to a position in an array, axis by axis, as TensorStore's index transforms
do. `basic`, `orthogonal` and `coordinate` selections become transforms, and so do transpositions, broadcasts and new
dimensions. `Transform.compose` makes one of two, at a cost that does not depend on the lengths of dimensions unless
there are lists of indices.

Source: https://google.github.io/tensorstore/index_space.html
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from omnizarr.errors import SelectionError
from omnizarr.indexing.arrays import as_index_array, is_array_like, wrapped
from omnizarr.indexing.plans import Integers
from omnizarr.indexing.slices import checked_index, expand, is_integer, slice_indices

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Along(NamedTuple):
    """Positions along an axis that follow one dimension of the result."""

    dim: int
    indices: range


class Listed(NamedTuple):
    """Positions along an axis that depend on several dimensions of the result, or follow no constant step."""

    dims: tuple[int, ...]
    """In ascending order."""
    indices: Integers
    """One dimension for each of `dims`, of its length, or of length 1 if the positions do not depend on it."""


Output: TypeAlias = "int | Along | Listed"


class Transform:
    """Where the elements of a result are in an array.

    Parameters
    ----------
    shape : tuple of int
        Shape of the result.
    outputs : tuple of int, Along or Listed
        For each axis of the array: one position, or where positions come from. No dimension has an `Along` and
        something else.
    """

    __slots__ = ("outputs", "shape")

    def __init__(self, shape: Sequence[int], outputs: Iterable[Output]) -> None:
        self.shape = tuple(shape)
        self.outputs = tuple(outputs)

    def compose(self, inner: Transform) -> Transform:
        """Return the transform that first selects with `self`, then from the result with `inner`.

        >>> rows = of_selection(slice(10, 20, 2), (30,))
        >>> rows.compose(of_selection(slice(None, None, -1), rows.shape)).outputs
        (Along(dim=0, indices=range(18, 8, -2)),)
        """
        return Transform(inner.shape, [_composed(output, inner.outputs) for output in self.outputs])

    def shifted(self, axis: int, by: int) -> Transform:
        """Return the same transform for an array that begins `by` later along an axis."""
        outputs = list(self.outputs)
        output = outputs[axis]
        if isinstance(output, int):
            outputs[axis] = output - by
        elif isinstance(output, Along):
            indices = output.indices
            outputs[axis] = Along(output.dim, range(indices.start - by, indices.stop - by, indices.step))
        else:
            outputs[axis] = Listed(output.dims, output.indices - by)
        return Transform(self.shape, outputs)

    def cut(self, dim: int, first: int, last: int) -> Transform:
        """Return the transform of the positions from `first` to `last` (exclusive) of one dimension."""
        if last - first == self.shape[dim]:
            return self
        outputs: list[Output] = []
        for output in self.outputs:
            if isinstance(output, Along) and output.dim == dim:
                outputs.append(Along(dim, output.indices[first:last]))
            elif isinstance(output, Listed) and dim in output.dims:
                at = output.dims.index(dim)
                outputs.append(Listed(output.dims, output.indices[(slice(None),) * at + (slice(first, last),)]))
            else:
                outputs.append(output)
        return Transform((*self.shape[:dim], last - first, *self.shape[dim + 1 :]), outputs)

    def within(self, axis: int, start: int, stop: int) -> Transform | None:
        """Return the part of the result that lies between two positions along an axis; None if nothing does.

        The part is given as a transform from the result: compose with it.
        """
        output = self.outputs[axis]
        if isinstance(output, int):
            return identity(self.shape) if start <= output < stop else None
        if isinstance(output, Along):
            first, last = between(output.indices, start, stop)
            return identity(self.shape).cut(output.dim, first, last) if first < last else None
        return self._listed_within(output, start, stop)

    def _listed_within(self, output: Listed, start: int, stop: int) -> Transform | None:
        # All dimensions on which lists depend together become one dimension of points.
        dims = set(output.dims)
        lists = [other.dims for other in self.outputs if isinstance(other, Listed)]
        while True:
            more = dims.union(*(other for other in lists if dims.intersection(other)))
            if more == dims:
                break
            dims = more
        together = sorted(dims)
        is_inside = (output.indices >= start) & (output.indices < stop)
        shape = [self.shape[dim] for dim in together]
        aligned = _aligned(is_inside, output.dims, together)
        points = np.nonzero(np.broadcast_to(aligned, shape))
        if not points[0].size:
            return None
        others = [dim for dim in range(len(self.shape)) if dim not in dims]
        place = sum(dim < together[0] for dim in others)
        lengths = [self.shape[dim] for dim in others]
        new = {dim: at + (at >= place) for at, dim in enumerate(others)}
        return Transform(
            (*lengths[:place], points[0].size, *lengths[place:]),
            [
                Along(new[dim], range(length)) if dim in new else Listed((place,), points[together.index(dim)])
                for dim, length in enumerate(self.shape)
            ],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Transform, (self.shape, self.outputs)

    def __repr__(self) -> str:
        return f"Transform({self.shape}, {self.outputs})"


def _composed(output: Output, inner: Sequence[Output]) -> Output:
    if isinstance(output, int):
        return output
    if isinstance(output, Along):
        indices, then = output.indices, inner[output.dim]
        if isinstance(then, int):
            return indices[then]
        if isinstance(then, Along):
            return Along(then.dim, range_of(indices, then.indices))
        return Listed(then.dims, indices.start + indices.step * then.indices)
    return _listed(output, [inner[dim] for dim in output.dims])


def _listed(output: Listed, then: Sequence[Output]) -> Output:
    """Return the list in which each dimension of a list is replaced."""
    dims = sorted({dim for each in then if not isinstance(each, int) for dim in dims_of(each)})
    at: list[Any] = []
    for each, length in zip(then, output.indices.shape, strict=True):
        if length == 1:  # positions do not depend on this dimension
            at.append(0)
        elif isinstance(each, int):
            at.append(each)
        else:
            values = _range_array(each.indices) if isinstance(each, Along) else each.indices
            at.append(_aligned(values, dims_of(each), dims))
    found = output.indices[tuple(at)]
    if np.ndim(found) == 0:
        return int(found)
    varying = [axis for axis in range(found.ndim) if found.shape[axis] != 1]
    if not varying:
        return int(found.reshape(-1)[0])
    return Listed(tuple(dims[axis] for axis in varying), found.reshape([found.shape[axis] for axis in varying]))


def dims_of(output: Along | Listed) -> tuple[int, ...]:
    """Return the dimensions of the result on which positions along an axis depend."""
    return (output.dim,) if isinstance(output, Along) else output.dims


def _range_array(indices: range) -> Integers:
    return np.arange(len(indices), dtype=np.int64) * indices.step + indices.start


def _aligned(values: NDArray[Any], dims: Sequence[int], among: Sequence[int]) -> NDArray[Any]:
    """Return values with one dimension for each of `among`, of length 1 where they have none."""
    lengths = dict(zip(dims, values.shape, strict=True))
    return values.reshape([lengths.get(dim, 1) for dim in among])


def range_of(indices: range, part: range) -> range:
    """Return the positions in a range that another range selects."""
    start = indices.start + indices.step * part.start
    step = indices.step * part.step
    return range(start, start + step * len(part), step)


def between(indices: range, start: int, stop: int) -> tuple[int, int]:
    """Return from which to which member (exclusive) a range lies between two numbers."""
    step = indices.step
    if step > 0:
        first, last = -((indices.start - start) // step), -((indices.start - stop) // step)
    else:
        first, last = -((stop - 1 - indices.start) // -step), -((start - 1 - indices.start) // -step)
    return max(0, first), min(len(indices), last)


def identity(shape: Sequence[int]) -> Transform:
    """Return the transform that selects everything."""
    return Transform(shape, [Along(dim, range(length)) for dim, length in enumerate(shape)])


def transposed(shape: Sequence[int], axes: Sequence[int]) -> Transform:
    """Return the transform whose dimensions are the axes of an array in another order."""
    return Transform(
        [shape[axis] for axis in axes], [Along(axes.index(axis), range(length)) for axis, length in enumerate(shape)]
    )


def broadcast(shape: Sequence[int], to: Sequence[int]) -> Transform:
    """Return the transform that repeats dimensions of length 1, and adds dimensions before the first.

    Raises SelectionError if the shape cannot be broadcast.
    """
    added = len(to) - len(shape)
    if added < 0 or any(old not in (1, new) for old, new in zip(shape, to[added:], strict=True)):
        raise SelectionError(
            "the shape cannot be broadcast",
            found=f"shape {tuple(shape)}",
            expected=f"dimensions of length 1 or those of {tuple(to)}",
        )
    return Transform(
        to,
        [
            Along(added + axis, range(old)) if old == new else 0
            for axis, (old, new) in enumerate(zip(shape, to[added:], strict=True))
        ],
    )


def reshaped(shape: Sequence[int], to: Sequence[int]) -> Transform | None:
    """Return the transform that adds and drops dimensions of length 1; None if that does not make the shape.

    Raises SelectionError if the shapes have different numbers of elements.
    """
    if math.prod(shape) != math.prod(to) or any(length < 0 for length in to):
        raise SelectionError("the shapes have different numbers of elements", found=tuple(to), expected=tuple(shape))
    long, new = [axis for axis, n in enumerate(shape) if n != 1], [dim for dim, n in enumerate(to) if n != 1]
    if [shape[axis] for axis in long] != [to[dim] for dim in new]:
        return None
    places = dict(zip(long, new, strict=True))
    return Transform(to, [Along(places[axis], range(n)) if axis in places else 0 for axis, n in enumerate(shape)])


def of_selection(selection: Any, shape: Sequence[int]) -> Transform:
    """Return the transform of a selection of ``array[...]``.

    Selections are those of `omnizarr.indexing.plan`, with its errors.
    """
    given = selection if isinstance(selection, tuple) else (selection,)
    items = _without_masks(given, shape)
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    if not arrays or (len(arrays) == 1 and arrays[0].ndim == 1):
        return _independent(items, shape)
    return _dependent(items, shape, are_apart=_is_ellipsis_between(given))


def _is_ellipsis_between(items: Sequence[Any]) -> bool:
    """Return whether an Ellipsis keeps arrays and integers apart, as it does even if it means no axis."""
    places = [at for at, item in enumerate(items) if item is Ellipsis]
    joined = [at for at, item in enumerate(items) if not (item is None or item is Ellipsis or isinstance(item, slice))]
    return bool(places) and joined[0] < places[0] < joined[-1]


def orthogonal(selection: Any, shape: Sequence[int]) -> Transform:
    """Return the transform of a selection of ``array.oindex[...]``."""
    items = []
    axis = 0
    for item in expand(selection if isinstance(selection, tuple) else (selection,), len(shape)):
        is_list = item is not None and is_array_like(item)
        items.append(_as_indices(as_index_array(item, axis), shape, axis) if is_list else item)
        if is_list and items[-1].ndim != 1:
            raise SelectionError(
                f"an array in an orthogonal selection must have one dimension, dimension {axis}",
                found=f"shape {items[-1].shape}",
                remedy="index with arrays of coordinates through .vindex",
            )
        axis += item is not None
    return _independent(items, shape)


def coordinate(selection: Any, shape: Sequence[int]) -> Transform:
    """Return the transform of a selection of ``array.vindex[...]``: coordinates along all dimensions, or a mask."""
    items = selection if isinstance(selection, tuple) else (selection,)
    if len(items) == 1 and len(shape) != 1:
        mask = np.asarray(items[0])
        if mask.dtype == np.bool_ and mask.ndim == len(shape):
            return of_selection(mask, shape)
    if len(items) != len(shape) or any(
        isinstance(item, slice) or item in (None, Ellipsis) for item in items if not is_array_like(item)
    ):
        raise SelectionError(
            "a selection by coordinates needs one array or integer for each dimension",
            found=f"{len(items)} items",
            expected=f"{len(shape)}",
        )
    return _dependent(_without_masks(items, shape), shape)


def _without_masks(items: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """Return items for one axis each, with integers, slices, None, and arrays of integers counted from the start."""
    arrays: list[Any] = []
    for item in items:
        if isinstance(item, (bool, np.bool_)):
            raise SelectionError("a boolean does not select", found=item, expected="a mask of the array's shape")
        if is_array_like(item):
            array = as_index_array(item)
            is_mask = array.dtype == np.bool_ and array.ndim > 1
            arrays.extend([_Mask(array, axis) for axis in range(array.ndim)] if is_mask else [array])
        else:
            arrays.append(item)
    found: list[Any] = []
    axis = 0
    for item in expand(tuple(arrays), len(shape)):
        if isinstance(item, _Mask):
            found.append(item.indices(shape, axis))
        elif isinstance(item, np.ndarray) and item.ndim:
            found.append(_as_indices(item, shape, axis))
        elif item is None or isinstance(item, slice):
            found.append(item)
        elif is_integer(item):
            found.append(operator.index(item))
        else:
            raise _unsupported(item, axis)
        axis += item is not None
    return found


def _unsupported(item: Any, axis: int) -> SelectionError:
    return SelectionError(
        f"unsupported item of a selection for dimension {axis}",
        found=item,
        expected="an integer, slice, list, mask, Ellipsis or None",
    )


class _Mask:
    """One axis of a mask with several dimensions."""

    def __init__(self, mask: NDArray[Any], axis: int) -> None:
        self.mask, self.axis = mask, axis

    def indices(self, shape: Sequence[int], axis: int) -> Integers:
        first = axis - self.axis
        if self.mask.shape != tuple(shape[first : first + self.mask.ndim]):
            raise SelectionError(
                "the mask has another shape than the dimensions that it selects from",
                found=self.mask.shape,
                expected=tuple(shape[first : first + self.mask.ndim]),
            )
        return np.nonzero(self.mask)[self.axis]


def _as_indices(array: NDArray[Any], shape: Sequence[int], axis: int) -> Integers:
    if array.dtype == np.bool_:
        if array.shape != (shape[axis],):
            raise SelectionError(
                f"the mask does not fit dimension {axis}",
                found=f"length {array.size}",
                expected=f"length {shape[axis]}",
            )
        return np.flatnonzero(array)
    return wrapped(array, shape[axis], axis)


def _range_along(item: slice, length: int, axis: int) -> range:
    return range(*slice_indices(item, length, axis))


def _independent(items: Sequence[Any], shape: Sequence[int]) -> Transform:
    lengths: list[int] = []
    outputs: list[Output] = []
    for item in items:
        axis = len(outputs)
        if item is None:
            lengths.append(1)
        elif isinstance(item, slice):
            indices = _range_along(item, shape[axis], axis)
            outputs.append(Along(len(lengths), indices))
            lengths.append(len(indices))
        elif isinstance(item, np.ndarray):
            outputs.append(Listed((len(lengths),), item))
            lengths.append(item.size)
        elif is_integer(item):
            outputs.append(checked_index(operator.index(item), shape[axis], axis))
        else:
            raise _unsupported(item, axis)
    return Transform(lengths, outputs)


def _dependent(items: Sequence[Any], shape: Sequence[int], *, are_apart: bool = False) -> Transform:
    """Return the transform of arrays that NumPy broadcasts with each other, and with integers.

    `are_apart` says that there is something between them that is not among the items.
    """
    is_joined = [item is not None and not isinstance(item, slice) for item in items]
    arrays = []
    axis = 0
    for item, joined in zip(items, is_joined, strict=True):
        if joined:
            arrays.append(
                item
                if isinstance(item, np.ndarray)
                else np.asarray(checked_index(operator.index(item), shape[axis], axis))
            )
        axis += item is not None
    try:
        points = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        raise SelectionError(
            "arrays of indices cannot be broadcast together", found=", ".join(str(array.shape) for array in arrays)
        ) from None
    positions = [at for at, joined in enumerate(is_joined) if joined]
    are_adjacent = not are_apart and positions[-1] - positions[0] == len(positions) - 1
    lengths: list[int] = [] if are_adjacent else list(points)
    first = 0
    outputs: list[Any] = []
    for at, (item, joined) in enumerate(zip(items, is_joined, strict=True)):
        if are_adjacent and at == positions[0]:
            first = len(lengths)
            lengths += points
        if joined:
            outputs.append(None)
        elif item is None:
            lengths.append(1)
        else:
            indices = _range_along(item, shape[len(outputs)], len(outputs))
            outputs.append(Along(len(lengths), indices))
            lengths.append(len(indices))
    listed = iter(arrays)
    return Transform(
        lengths, [_of_points(next(listed), first, len(points)) if each is None else each for each in outputs]
    )


def _of_points(array: NDArray[Any], first: int, ndim: int) -> Output:
    """Return the positions along one axis of points, whose dimensions begin at `first`."""
    if array.ndim == 0:
        return int(array)
    dims = range(first + ndim - array.ndim, first + ndim)
    varying = [at for at, length in enumerate(array.shape) if length != 1]
    if not varying:
        return int(array.reshape(-1)[0])
    return Listed(tuple(dims[at] for at in varying), array.reshape([array.shape[at] for at in varying]))
