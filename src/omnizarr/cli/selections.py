"""Selections on the command line, and the part of an array that one selects, read in pieces of bounded size."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import BoundsCheckError, SelectionError
from omnizarr.model.datatypes.optional import VALUE, is_optional
from omnizarr.nodes.array import Array

# Longer input is not a selection, and Python's parser need not see it.
_LONGEST: Final = 10_000

Axis: TypeAlias = "int | range | NDArray[np.intp]"


def parse(text: str) -> tuple[Any, ...]:
    """Parse a selection, as in square brackets in Python.

    Raises SelectionError if the text is not a selection.

    Examples
    --------
    >>> parse("0:10, ::2, -1")
    (slice(0, 10, None), slice(None, None, 2), -1)
    >>> parse("..., [0, 3]")
    (Ellipsis, [0, 3])
    >>> parse("[5:]")
    (slice(5, None, None),)
    """
    text = text.strip()
    if not text:
        return ()
    if len(text) > _LONGEST:
        raise _wrong(f"{text[:20]}... ({len(text)} characters)")
    tree = _tree(text)
    if tree is None and text.startswith("[") and text.endswith("]"):
        tree = _tree(text[1:-1])
    if tree is None:
        raise _wrong(text)
    items = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    selection = tuple(_selector(item, text) for item in items)
    if selection.count(Ellipsis) > 1:
        raise SelectionError("too many ellipses", found=text, expected="'...' once at most")
    return selection


def _tree(text: str) -> ast.expr | None:
    try:
        body = ast.parse(f"_[{text}]", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    # `0] + _[1` closes the bracket that is not its own.
    return body.slice if isinstance(body, ast.Subscript) and isinstance(body.value, ast.Name) else None


def _selector(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Slice):
        start, stop, step = (
            None if part is None else _bound(part, text) for part in (node.lower, node.upper, node.step)
        )
        if step == 0:
            raise SelectionError("the step of a slice cannot be 0", found=text)
        return slice(start, stop, step)
    if isinstance(node, ast.List):
        items = [_literal(item) for item in node.elts]
        if items and any(all(type(item) is kind for item in items) for kind in (int, bool, str)):
            return items
        raise _wrong(text)
    value = _literal(node)
    if value is Ellipsis or type(value) in (int, str) or (value is None and isinstance(node, ast.Constant)):
        return value
    if isinstance(node, ast.Name) and node.id == "newaxis":
        return None
    raise _wrong(text)


def _bound(node: ast.expr, text: str) -> int | None:
    value = _literal(node)
    if type(value) is int or (value is None and isinstance(node, ast.Constant)):
        return value
    raise _wrong(text)


def _literal(node: ast.expr) -> Any:
    """Return a constant, or a number with its sign; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = node.operand.value if isinstance(node.operand, ast.Constant) else None
        if type(value) is int:
            return -value if isinstance(node.op, ast.USub) else value
    return None


def _wrong(text: str) -> SelectionError:
    if text.isidentifier():
        remedy = f"type the name of a field in two pairs of quotes: \"'{text}'\""
    else:
        remedy = 'for example "0:10, ::2, -1"'
    return SelectionError(
        "not a selection",
        found=text,
        expected="integers, slices, lists, '...' and names of fields, separated by commas",
        remedy=remedy,
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an array, with one selector per dimension.

    Attributes
    ----------
    array : Array
    axes : tuple of (int, range or array of int)
        Per dimension of the array: an index, which drops the dimension, or the selected indices.
    new : tuple of int
        Positions of new dimensions of length 1 in the result, in ascending order.
    fields : str, list of str or None
    """

    array: Array
    axes: tuple[Axis, ...]
    new: tuple[int, ...] = ()
    fields: Any = None

    @property
    def kept(self) -> list[int]:
        """The dimensions of the array that are in the result."""
        return [axis for axis, selector in enumerate(self.axes) if not isinstance(selector, int)]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        lengths = [_length(selector) for selector in self.axes if not isinstance(selector, int)]
        for place in self.new:
            lengths.insert(place, 1)
        return tuple(lengths)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def read(self) -> NDArray[Any]:
        """Return the elements, in a masked array if some may be missing."""
        selection = tuple(map(_as_selector, self.axes))
        result = self.array.get_orthogonal_selection(selection, fields=self.fields)
        if is_optional(self.array.dtype) and self.fields is None:
            found = np.zeros((), self.array.dtype[VALUE]) if result is np.ma.masked else result
            return np.ma.MaskedArray(found, np.ma.getmaskarray(result)).reshape(self.shape)
        values = np.asarray(result, None if isinstance(result, (np.ndarray, np.generic)) else self.array.dtype)
        return values.reshape(self.shape)

    def blocks(self, limit: int) -> Iterator[NDArray[Any]]:
        """Yield the elements in C order, in arrays of one dimension with about `limit` elements at most."""
        if not self.size:
            return
        kept = self.kept
        lengths = [_length(self.axes[axis]) for axis in kept]
        split = 0
        while split < len(kept) and math.prod(lengths[split + 1 :]) > limit:
            split += 1
        plain = replace(self, new=())
        for outer in _indices(lengths[:split]):
            axes = list(self.axes)
            for axis, place in zip(kept, outer, strict=False):
                selector = self.axes[axis]
                axes[axis] = selector if isinstance(selector, int) else int(selector[place])
            if split == len(kept):
                yield replace(plain, axes=tuple(axes)).read().reshape(-1)
                continue
            axis = kept[split]
            # How many indices of an axis to read at a time: whole chunks, if they are not too large.
            most = max(1, limit // max(1, math.prod(lengths[split + 1 :])))
            chunks = self.array.chunks
            chunk = chunks[axis] if axis < len(chunks) else 1
            step = most - most % chunk if isinstance(chunk, int) and chunk <= most else most
            for start in range(0, lengths[split], step):
                axes[axis] = _cut(self.axes[axis], start, start + step)
                yield replace(plain, axes=tuple(axes)).read().reshape(-1)

    def edges(self, count: int) -> Part:
        """Return the part with only `count + 1` elements at each end of each dimension."""
        axes: list[Axis] = []
        for selector in self.axes:
            if isinstance(selector, int) or _length(selector) <= 2 * count + 1:
                axes.append(selector)
            else:
                ends = [*selector[: count + 1], *selector[_length(selector) - count :]]
                axes.append(np.array(ends, np.int64))
        return replace(self, axes=tuple(axes))


def select(array: Array, selection: Sequence[Any]) -> Part:
    """Return the part of an array for a selection.

    Raises
    ------
    SelectionError
        If there are too many selectors, two lists, or no such fields.
    BoundsCheckError
        If an index is outside.
    """
    items = list(selection)
    names = [item for item in items if _names_fields(item)]
    fields: Any = None
    if names:
        fields = (
            names[0]
            if len(names) == 1
            else [name for item in names for name in ([item] if isinstance(item, str) else item)]
        )
        _check_fields(array, fields)
    items = [item for item in items if not _names_fields(item)]
    taken = sum(item is not None and item is not Ellipsis for item in items)
    if taken > array.ndim or items.count(Ellipsis) > 1:
        raise SelectionError("too many selectors", found=taken, expected=f"at most {array.ndim}")
    if sum(isinstance(item, list) for item in items) > 1:
        raise SelectionError("two lists", expected="one at most", remedy="read them one after another")
    if Ellipsis not in items:
        items.append(Ellipsis)
    place = items.index(Ellipsis)
    items[place : place + 1] = [slice(None)] * (array.ndim - taken)
    return _part(array, items, fields)


def _part(array: Array, items: Sequence[Any], fields: Any) -> Part:
    axes: list[Axis] = []
    new: list[int] = []
    result_axis = 0
    for item in items:
        if item is None:
            new.append(result_axis)
        else:
            axes.append(_axis(array, len(axes), item))
        result_axis += not isinstance(item, int)
    return Part(array, tuple(axes), tuple(new), fields)


def _axis(array: Array, axis: int, item: Any) -> Axis:
    length = array.shape[axis]
    if isinstance(item, slice):
        return range(*item.indices(length))
    if isinstance(item, int):
        return _index(array, axis, item)
    if item and isinstance(item[0], bool):
        if len(item) != length:
            raise SelectionError("a mask has another length than its dimension", found=len(item), expected=length)
        return np.flatnonzero(item)
    return np.array([_index(array, axis, index) for index in item], np.int64)


def _index(array: Array, axis: int, index: int) -> int:
    length = array.shape[axis]
    if not -length <= index < length:
        raise BoundsCheckError(
            f"index out of bounds for dimension {axis} with length {length}",
            found=index,
            expected=f"{-length} to {length - 1}" if length else "none",
        )
    return index % length


def _names_fields(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, list) and isinstance(item[0], str))


def _check_fields(array: Array, fields: Any) -> None:
    known = array.dtype.names or ()
    for name in [fields] if isinstance(fields, str) else fields:
        if name not in known:
            raise SelectionError("there is no such field", found=name, expected=", ".join(known) or "none")


def _indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all indices in C order, without the memory that `itertools.product` would need."""
    for number in _count(math.prod(shape)):
        index = []
        for length in reversed(shape):
            number, place = divmod(number, length)  # noqa: PLW2901 - what is left of it
            index.append(place)
        yield tuple(reversed(index))


def _count(stop: int) -> Iterator[int]:
    number = 0
    while number < stop:
        yield number
        number += 1


def _length(selector: Axis) -> int:
    # `len` of a range is limited to a machine word; arrays can be longer.
    if isinstance(selector, range):
        return max(0, -(-(selector.stop - selector.start) // selector.step))
    return 1 if isinstance(selector, int) else int(selector.shape[0])


def _cut(selector: Axis, start: int, stop: int) -> Axis:
    return selector if isinstance(selector, int) else selector[start:stop]


def _as_selector(selector: Axis) -> Any:
    if not isinstance(selector, range):
        return selector
    if not selector:
        return slice(0, 0)
    stop = selector.start + _length(selector) * selector.step
    return slice(selector.start, None if stop < 0 else stop, selector.step)
