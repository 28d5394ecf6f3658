"""Selections of ``variable[...]``, with the meaning that netCDF4-python gives them.

Lists, arrays and masks select along their own dimension, as in ``Array.oindex``. An integer drops its dimension.
Writing past the end of an unlimited dimension makes it longer. Everything that netCDF4-python accepts means the
same here, with two exceptions: data is reshaped only if lengths of 1 are the only difference (netCDF4-python puts
2 x 3 values into 3 x 2 places), and selecting no or several values of a scalar is an error. In addition, empty
lists and arrays of unsigned integers select, data is broadcast along one dimension, too, and open slices with
steps or from the end make an unlimited dimension as long as their data needs (netCDF4-python fails, or writes
nothing). A scalar is written to all elements that slices with a stop select. Masked elements of a mask are not
selected.

Spec: netCDF4-python 1.7.5, ``Variable.__getitem__`` and ``Variable.__setitem__``.
"""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import BoundsCheckError, SelectionError, ShapeError

Indices: TypeAlias = NDArray[np.intp]
Selector: TypeAlias = "slice | Indices"
_Item: TypeAlias = "int | slice | range | NDArray[Any]"

_BASIC: Final = frozenset({int, slice, EllipsisType})
_ALL: Final = slice(None)
_LAST: Final = np.iinfo(np.intp).max - 1


class Picked(NamedTuple):
    """A completely resolved selection.

    Attributes
    ----------
    selection : tuple
        One slice or array of indices per dimension, for ``Array.oindex``. Slices have integers (a stop of None
        if a negative step reaches the first element), and indices in arrays count from the start.
    lengths : tuple of int
        Number of selected elements along each dimension: the shape of ``array.oindex[selection]``. If one is
        zero, nothing is written, nothing grows, and other selectors may be outside.
    shape : tuple of int
        The shape that the user gets: `lengths` without the dimensions dropped by integers.
    grown : tuple of int
        The shape that the variable must have: its own, or a larger one along unlimited dimensions in a write.
    """

    selection: tuple[Selector, ...]
    lengths: tuple[int, ...]
    shape: tuple[int, ...]
    grown: tuple[int, ...]

    def fit(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return data with the shape `lengths`: reshaped if only lengths of 1 differ, otherwise broadcast.

        Raises ShapeError if that is not possible. Masked values must be filled before.

        Examples
        --------
        >>> picked = for_reading((0, slice(2), slice(3)), (4, 2, 3))
        >>> picked.fit(np.zeros((2, 3))).shape, picked.fit(np.zeros(3)).shape
        ((1, 2, 3), (1, 2, 3))
        """
        if data.shape == self.lengths:
            return data
        if [n for n in data.shape if n != 1] == [n for n in self.lengths if n != 1]:
            return data.reshape(self.lengths)
        for shape in (self.lengths, self.shape):
            try:
                return np.broadcast_to(data, shape).reshape(self.lengths)
            except ValueError:
                continue
        raise ShapeError(
            "the data does not fit what it is assigned to", found=f"shape {data.shape}", expected=f"shape {self.shape}"
        )


def is_basic(elem: Any) -> bool:
    """Whether a selection has only integers, slices and an Ellipsis, which mean the same to ``Array[...]``.

    False for scalars, for which netCDF allows ``[:]`` and ``[0]``.

    >>> is_basic(3), is_basic((3, slice(2))), is_basic([3]), is_basic((..., True))
    (True, True, False, False)
    """
    if type(elem) is not tuple:
        return type(elem) in _BASIC
    return all([type(item) in _BASIC for item in elem])  # noqa: C419  (a list is twice as fast as a generator here)


def for_reading(elem: Any, shape: tuple[int, ...]) -> Picked:
    """Return the selection that ``variable[elem]`` reads, for a variable of a shape.

    Parameters
    ----------
    elem : object
        Integers (also as float or text), slices, Ellipsis, lists, arrays and masks of one dimension. Missing
        items at the end select everything.
    shape : tuple of int

    Raises
    ------
    SelectionError
        If the selection is not valid.
    BoundsCheckError
        If an index is outside the variable.

    Examples
    --------
    >>> picked = for_reading((-1, slice(1, 9), [True, False, True]), (4, 5, 3))
    >>> picked.shape, picked.selection
    ((4, 2), (slice(3, 4, 1), slice(1, 5, 1), array([0, 2])))
    """
    return _picked(elem, shape, (), ())


def for_writing(
    elem: Any, shape: tuple[int, ...], unlimited: tuple[bool, ...], data_shape: tuple[int, ...] = ()
) -> Picked:
    """Return the selection that ``variable[elem] = data`` writes, and the new lengths of unlimited dimensions.

    Along an unlimited dimension, integers, masks and the stops of slices may be past the end, and a slice without
    a stop ends where the data ends: ``variable[:] = data`` writes as many elements as `data` has, from the start.

    Parameters
    ----------
    elem : object
        As for `for_reading`.
    shape : tuple of int
        Shape of the variable before the write.
    unlimited : tuple of bool
        One per dimension.
    data_shape : tuple of int
        Shape of the data; ``()`` for a scalar.

    Raises
    ------
    SelectionError, BoundsCheckError

    Examples
    --------
    >>> for_writing(slice(None), (0, 3), (True, False), (4, 3)).grown
    (4, 3)
    >>> for_writing((7, ...), (2, 3), (True, False), (3,)).grown
    (8, 3)
    """
    rows = _rows(elem) if unlimited and unlimited[0] and True not in unlimited[1:] else None
    if rows is not None:
        rest = shape[1:]
        if 0 not in rest:
            selection = rows, *[slice(0, length, 1) for length in rest]
            count = rows.stop - rows.start
            kept = rest if type(elem) is int else (count, *rest)
            return Picked(selection, (count, *rest), kept, (max(rows.stop, shape[0]), *rest))
    return _picked(elem, shape, unlimited, data_shape)


def _rows(elem: Any) -> slice | None:
    """Return the selected rows along the first dimension, for the most common selections: one record, or several."""
    if type(elem) is int:
        return slice(elem, elem + 1, 1) if elem >= 0 else None
    if type(elem) is slice and elem.step is None and type(elem.start) is int and type(elem.stop) is int:
        return slice(elem.start, elem.stop, 1) if 0 <= elem.start < elem.stop else None
    return None


def takes_last_whole(elem: Any, shape: tuple[int, ...]) -> bool:
    """Whether a valid selection includes all of the last dimension, so that characters form complete strings.

    >>> takes_last_whole(0, (3, 8)), takes_last_whole((..., slice(4)), (3, 8)), takes_last_whole((0, 0), (3, 1))
    (True, False, False)
    """
    if not shape:
        return False
    size, number = shape[-1], len(shape) - 1
    item = _item(_expanded(elem, len(shape))[-1], number)
    if isinstance(item, int):
        return False
    selector, length, _ = _along(item, size, number, grows=False)
    return length == size and (isinstance(selector, slice) or bool(np.array_equal(selector, np.arange(size))))


def _expanded(elem: Any, ndim: int) -> tuple[Any, ...]:
    """Return one item per dimension."""
    items = elem if isinstance(elem, tuple) else (elem,)
    dots = [number for number, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise SelectionError("an ellipsis can stand only once in a selection", found=elem)
    if len(items) - len(dots) > ndim:
        raise SelectionError(
            "a selection has more items than the variable has dimensions",
            found=len(items) - len(dots),
            expected=f"at most {ndim}",
        )
    at = dots[0] if dots else len(items)
    return items[:at] + (_ALL,) * (ndim - len(items) + len(dots)) + items[at + 1 :]


def _item(item: Any, number: int) -> _Item:
    """Return an item as an integer, a slice, or an array of integers or booleans with one dimension."""
    if type(item) is int or isinstance(item, slice):
        return item
    if isinstance(item, np.ma.MaskedArray):
        # Masked elements of a mask are not selected.
        if item.dtype == np.bool_:
            item = item.filled(fill_value=False)
        else:
            if np.ma.is_masked(item):
                raise SelectionError(f"an index is masked, dimension {number}", found=item)
            item = np.asarray(item)
    try:
        if isinstance(item, str | bytes):
            return int(item)
        array = np.asarray(item)
        if array.ndim == 0:
            return _integer(array[()] if array.dtype != object else item)
    except (ValueError, TypeError, OverflowError):  # also for ragged lists
        raise _no_index(item, number) from None
    if array.ndim > 1:
        raise SelectionError(
            f"an index has more than one dimension, dimension {number}",
            found=f"shape {array.shape}",
            remedy="select along each dimension by itself, or read first and apply the mask to the result",
        )
    if not array.size and not isinstance(item, np.ndarray):
        return np.zeros(0, np.intp)  # NumPy makes floats of an empty list
    if array.dtype.kind not in "iub":
        raise _no_index(item, number)
    return array


def _integer(value: Any) -> int:
    """Return the integer of a number. netCDF4-python accepts floats, too, if nothing is lost."""
    if isinstance(value, float | np.floating):
        if not value.is_integer():
            raise ValueError(value)
        return int(value)
    return int(value) if isinstance(value, np.bool_) else operator.index(value)


def _no_index(item: Any, number: int) -> SelectionError:
    return SelectionError(
        f"no index, dimension {number}",
        found=item,
        expected="integers, slices (`:`), an ellipsis (`...`), lists and masks of one dimension",
    )


def _picked(elem: Any, shape: tuple[int, ...], unlimited: tuple[bool, ...], data_shape: tuple[int, ...]) -> Picked:
    """Return the resolved selection. Dimensions grow where `unlimited` is True (empty: none does)."""
    sizes = shape or (1,)  # netCDF4-python treats a scalar as a vector of one element
    items = [_item(item, number) for number, item in enumerate(_expanded(elem, len(sizes)))]
    if any(unlimited):
        items = _closed(items, sizes, unlimited, data_shape)
    selection: list[Selector] = []
    lengths: list[int] = []
    grown: list[int] = []
    for number, (item, size) in enumerate(zip(items, sizes, strict=True)):
        selector, length, end = _along(item, size, number, grows=bool(unlimited) and unlimited[number])
        selection.append(selector)
        lengths.append(length)
        grown.append(max(end, size))
    if not shape:
        if lengths != [1]:
            raise SelectionError("a scalar has one value", found=elem, remedy="select it with [...]")
        return Picked((), (), (), ())
    kept = tuple([length for length, item in zip(lengths, items, strict=True) if not isinstance(item, int)])
    return Picked(tuple(selection), tuple(lengths), kept, tuple(grown) if all(lengths) else shape)


def _closed(
    items: list[_Item], sizes: tuple[int, ...], unlimited: tuple[bool, ...], data_shape: tuple[int, ...]
) -> list[_Item]:
    """Return items with slices along unlimited dimensions replaced by ranges, which end where the data ends.

    The data has one length for each dimension that no integer drops, or for each dimension. Data with fewer
    dimensions starts with the first one, as in netCDF4-python, although it is broadcast later.
    """
    wanted = list(data_shape)
    if len(wanted) < len(items) and len(wanted) == sum(not isinstance(item, int) for item in items):
        rest = iter(data_shape)
        wanted = [0 if isinstance(item, int) else next(rest) for item in items]
    closed = list(items)
    for number, (item, size) in enumerate(zip(items, sizes, strict=True)):
        if not unlimited[number] or not isinstance(item, slice):
            continue
        start, stop, step = _integers_of(item, number)
        if stop is not None:
            closed[number] = range(*slice(start, stop, step).indices(max(stop, size)))
        elif not data_shape:  # a scalar written into an empty dimension is one element
            closed[number] = range(*slice(start, None, step).indices(size if sizes[-1] else 1))
        elif number < len(wanted):
            count = wanted[number]
            reach = (count - 1) * abs(step) + 1 if count and len(wanted) == len(items) else count
            if start is not None:
                start = max(start + size, 0) if start < 0 else start
                reach = start + (reach if step > 0 else 1)
            closed[number] = range(*slice(start, None, step).indices(reach))
        else:
            raise SelectionError(
                f"the data does not say how far to write along dimension {number}",
                found=f"data of shape {data_shape}",
                expected=f"{len(items)} dimensions",
                remedy="give the slice an end",
            )
    return closed


def _along(item: _Item, size: int, number: int, *, grows: bool) -> tuple[Selector, int, int]:
    """Return the selection along one dimension, its number of elements, and the end of the last one."""
    if isinstance(item, int):
        place = item + size if item < 0 else item
        if place < 0 or (place >= size and not grows):
            raise _outside(item, size, number)
        return slice(place, place + 1, 1), 1, place + 1
    if isinstance(item, slice):
        start, stop, step = _integers_of(item, number)
        item = range(*slice(start, stop, step).indices(size))
    if isinstance(item, range):
        if not item:
            return slice(0, 0, 1), 0, 0
        stop = item.stop if item.stop >= 0 else None
        return slice(item.start, stop, item.step), len(item), max(item[0], item[-1]) + 1
    if item.dtype == np.bool_:
        if item.size != size and not grows:
            raise SelectionError(
                f"the mask does not fit dimension {number}", found=f"length {item.size}", expected=f"length {size}"
            )
        item = np.flatnonzero(item)
    if not item.size:
        return slice(0, 0, 1), 0, 0
    low, high = int(item.min()), int(item.max())
    if low < -size or high > (_LAST if grows else size - 1):
        raise _outside(low if low < -size else high, size, number)
    indices = item.astype(np.intp, copy=False)
    if low < 0:
        indices = np.where(indices < 0, indices + size, indices)
    return indices, indices.size, int(indices.max()) + 1


def _integers_of(item: slice, number: int) -> tuple[int | None, int | None, int]:
    """Return start, stop and step of a slice as integers. Raises SelectionError."""
    try:
        start = None if item.start is None else operator.index(item.start)
        stop = None if item.stop is None else operator.index(item.stop)
        step = 1 if item.step is None else operator.index(item.step)
    except TypeError:
        raise SelectionError(f"a slice is made of integers, dimension {number}", found=item) from None
    if not step:
        raise SelectionError(f"the step of a slice cannot be zero, dimension {number}", found=item)
    return start, stop, step


def _outside(index: int, size: int, number: int) -> BoundsCheckError:
    return BoundsCheckError(f"an index is outside dimension {number}", found=index, expected=f"{-size} to {size - 1}")
