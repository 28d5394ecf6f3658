"""Basic selections (integers, slices, Ellipsis, newaxis), and block selections, which count in chunks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, Final, TypeGuard

import numpy as np

from omnizarr.errors import BoundsCheckError, SelectionError
from omnizarr.indexing.plans import Part, Piece, Plan, Product, strided
from omnizarr.model.grids import Axis, Grid

_ALL: Final = slice(None)


def basic(selection: Any, grid: Grid) -> Plan:
    """Return the plan for NumPy's basic indexing.

    Parameters
    ----------
    selection : int, slice, Ellipsis, None, or a tuple of these
        Anything with ``__index__`` is an integer, except booleans.
    grid : Grid

    Raises
    ------
    SelectionError
        If there are too many items, two Ellipses, or items of other kinds.
    BoundsCheckError
        If an integer is outside the array.

    Examples
    --------
    >>> from omnizarr.model import grids
    >>> grid = grids.bind(grids.regular((4, 4)), (6, 3))
    >>> plan = basic((slice(None, None, -1), 2), grid)
    >>> plan.shape, plan.buffer_shape
    ((6,), (6, 1))
    >>> [(piece.coords, piece.chunk_selection[0], piece.out_selection[0]) for piece in plan]
    [((0, 0), slice(0, 4, 1), slice(5, 1, -1)), ((1, 0), slice(0, 2, 1), slice(1, None, -1))]
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    if len(items) != len(grid.axes):
        items = expand(items, len(grid.axes))
    plan = _in_one_chunk(items, grid)
    return in_chunks(expand(items, len(grid.axes)), grid) if plan is None else plan


def _in_one_chunk(items: tuple[Any, ...], grid: Grid) -> Plan | None:
    """Return the plan for the most common small read without detours; None for anything else.

    One int or plain slice per dimension, step 1, all within one chunk of a regular grid.
    """
    if len(items) != len(grid.axes):
        return None
    coords, inner, outer, buffer_shape, shape = [], [], [], [], []
    whole = True
    for item, axis in zip(items, grid.axes, strict=True):
        length, size = axis.length, axis.size
        if type(item) is slice:
            try:
                start, stop, step = item.indices(length)
            except (TypeError, ValueError):
                return None
            if step != 1:
                return None
            shape.append(stop - start)
        elif type(item) is int:
            start = item if item >= 0 else item + length
            stop = start + 1
        else:
            return None
        if not (0 <= start < stop <= length and size):
            return None
        number = start // size
        base = number * size
        points = stop - start
        if stop > base + size:
            return None
        if points != size and points != length - base:
            whole = False
        coords.append(number)
        inner.append(slice(start - base, stop - base, 1))
        outer.append(slice(0, points, 1))
        buffer_shape.append(points)
    piece = Piece(tuple(coords), tuple(inner), tuple(outer), whole)
    return Plan(tuple(buffer_shape), tuple(shape), (piece,))


def part_of(item: Any, axis: Axis, number: int) -> tuple[Part, int]:
    """Return the part that an integer or a slice selects along axis `number`, and its number of elements."""
    if isinstance(item, slice):
        start, stop, step = slice_indices(item, axis.length, number)
        if step > 0:
            points = -((start - stop) // step) if start < stop else 0
            return strided(axis, start, step, points), points
        points = -((stop - start) // -step) if stop < start else 0
        return strided(axis, start + (points - 1) * step, -step, points, backwards=True), points
    if not is_integer(item):
        raise SelectionError(
            f"unsupported item of a selection for dimension {number}",
            found=item,
            expected="an integer, slice, Ellipsis or None",
            remedy="index with arrays and lists through .oindex or .vindex",
        )
    return strided(axis, checked_index(operator.index(item), axis.length, number), 1, 1), 1


def in_chunks(
    items: Sequence[Any],
    grid: Grid,
    part_of: Callable[[Any, Axis, int], tuple[Part, int]] = part_of,
    product: Callable[[Sequence[Part]], Product] = Product,
) -> Plan:
    """Return the plan for any expanded selection whose items concern one axis each.

    `part_of` returns the part of an item along an axis, and its number of elements.
    """
    axes = iter(grid.axes)
    parts: list[Part] = []
    lengths, shape = [], []
    for item in items:
        if item is None:
            shape.append(1)
            continue
        part, length = part_of(item, next(axes), len(parts))
        parts.append(part)
        lengths.append(length)
        if isinstance(item, slice) or not is_integer(item):
            shape.append(length)
    return Plan(tuple(lengths), tuple(shape), product(parts))


def is_integer(item: Any) -> TypeGuard[int]:
    """Whether an item of a selection is one integer, including NumPy's and 0-d arrays of them, but no boolean."""
    if isinstance(item, (bool, np.bool_)):
        return False
    if isinstance(item, np.ndarray):
        return item.ndim == 0 and item.dtype.kind in "iu"
    return hasattr(item, "__index__") and not getattr(item, "shape", ())


def checked_index(index: int, length: int, number: int) -> int:
    """Return an index counted from the start. Raises BoundsCheckError."""
    if -length <= index < length:
        return index if index >= 0 else index + length
    raise out_of_bounds(index, length, number)


def out_of_bounds(index: int, length: int, number: int) -> BoundsCheckError:
    """Return the error for an index outside dimension `number`."""
    return BoundsCheckError(
        f"index out of bounds for dimension {number} with length {length}",
        found=index,
        expected=f"{-length} to {length - 1}" if length else "no index at all",
    )


def slice_indices(item: slice, length: int, number: int) -> tuple[int, int, int]:
    """Return start, stop and step of a slice of dimension `number`. Raises SelectionError."""
    try:
        return item.indices(length)
    except (TypeError, ValueError) as error:
        raise SelectionError(
            f"unsupported slice for dimension {number}: {error}", found=item, expected="integers or None, step not 0"
        ) from None


def expand(items: Sequence[Any], ndim: int) -> tuple[Any, ...]:
    """Return a selection with Ellipsis expanded, so that it has one item per dimension, besides newaxis."""
    for item in items:
        if item is None or item is Ellipsis:
            break
    else:
        if len(items) <= ndim:
            return (*items, *(_ALL,) * (ndim - len(items)))
    ellipses = [at for at, item in enumerate(items) if isinstance(item, EllipsisType)]
    if len(ellipses) > 1:
        raise SelectionError("a selection can have only one Ellipsis", found=f"{len(ellipses)} of them")
    given = sum(item is not None for item in items) - len(ellipses)
    if given > ndim:
        raise SelectionError("too many indices for the array", found=given, expected=f"at most {ndim}")
    missing = (_ALL,) * (ndim - given)
    at = ellipses[0] if ellipses else len(items)
    return (*items[:at], *missing, *items[at + 1 :])


def block(selection: Any, grid: Grid) -> Plan:
    """Return the plan for a selection of chunks: integers and slices (of step 1) count chunks. No axis is dropped.

    Raises
    ------
    SelectionError
        If there are too many items, or items of other kinds.
    BoundsCheckError
        If an integer is outside the grid.

    Examples
    --------
    >>> from omnizarr.model import grids
    >>> grid = grids.bind(grids.regular((4, 4)), (6, 3))
    >>> block((-1, slice(None)), grid).shape
    (2, 3)
    """
    items = expand(selection if isinstance(selection, tuple) else (selection,), len(grid.axes))
    if len(items) != len(grid.axes):
        raise SelectionError("a selection of blocks cannot add axes", found="None", expected="integers and slices")
    return basic(tuple(map(_elements_of_blocks, items, grid.axes, range(len(items)))), grid)


def _elements_of_blocks(item: Any, axis: Axis, number: int) -> slice:
    """Return the elements of the chunks that an integer or a slice selects along one axis."""
    if isinstance(item, slice):
        start, stop, step = slice_indices(item, axis.count, number)
        if step != 1:
            raise SelectionError(f"blocks can only be selected at step 1, dimension {number}", found=item)
    elif is_integer(item):
        start = checked_index(operator.index(item), axis.count, number)
        stop = start + 1
    else:
        raise SelectionError(
            f"unsupported item of a selection of blocks for dimension {number}",
            found=item,
            expected="an integer, slice or Ellipsis",
        )
    if start >= stop:
        return slice(0, 0)
    end, size = axis.chunk(stop - 1)
    return slice(axis.chunk(start)[0], min(end + size, axis.length))
