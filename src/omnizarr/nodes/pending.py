"""Parts of chunks that wait in memory until the chunk is stored, and which of their elements have been written.

Most writers write next to what they wrote before, so that what is written is one box, which costs nothing to keep.
Only where it is no box, a mask says it, with one byte for each element.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import numpy as np

from omnizarr.codecs.contract import AnyArray

Box: TypeAlias = tuple[slice, ...]
Shape: TypeAlias = tuple[int, ...]

_COST: Final = 1024
"""Bytes that a chunk counts in addition to its values."""
_IMMUTABLE: Final = (str, bytes, int, float, complex, bool, type(None), np.generic)


class Pending:
    """The part of one chunk that has been written and not been stored.

    Parameters
    ----------
    shape : tuple of int
        Shape of the chunk, as far as it lies in the array.
    dtype : dtype
    """

    __slots__ = ("_found", "box", "counted", "mask", "size", "values")

    def __init__(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.values: AnyArray = np.empty(shape, dtype)
        self.box: Box | None = None
        """What is written, if that is a box; None if `mask` says it, or nothing is written."""
        self.mask: AnyArray | None = None
        self.size = 0
        """Bytes of what the values refer to, as text and objects do."""
        self.counted = 0
        """Bytes that the owner of this has counted for it."""
        self._found: bool | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that this takes."""
        return self.values.nbytes + self.size + _COST + (0 if self.mask is None else self.mask.nbytes)

    def put(self, selection: tuple[Any, ...], part: AnyArray) -> None:
        """Write a part of the chunk, as a piece of a plan selects it. `part` is copied."""
        part = own(part)
        self.size += referred(part)
        self.values[(*selection, ...)] = part
        self._mark(selection)  # last: after an interrupt, no element is marked that has no value

    def _mark(self, selection: tuple[Any, ...]) -> None:
        self._found = None
        if self.mask is None:
            new = as_box(selection)
            joined = None if new is None else new if self.box is None else united(self.box, new)
            if joined is not None:
                self.box = joined
                return
            mask: AnyArray = np.zeros(self.values.shape, np.bool_)
            if self.box is not None:
                mask[self.box] = True
            self.mask, self.box = mask, None
        self.mask[(*selection, ...)] = True

    @property
    def is_complete(self) -> bool:
        """Whether every element is written."""
        if self._found is None:
            if self.mask is None:
                whole = tuple(slice(0, length, 1) for length in self.values.shape)
                self._found = self.box is not None and united(self.box, whole) == self.box
            else:
                self._found = bool(self.mask.all())
                if self._found:
                    self.box, self.mask = tuple(slice(0, length, 1) for length in self.values.shape), None
        return self._found

    def bounds(self) -> Box:
        """Return the smallest box with everything that is written."""
        if self.mask is None:
            return self.box or tuple(slice(0, 0, 1) for _ in self.values.shape)
        found = []
        for axis in range(self.mask.ndim):
            others = tuple(each for each in range(self.mask.ndim) if each != axis)
            (at,) = np.nonzero(self.mask.any(axis=others))
            found.append(slice(int(at[0]), int(at[-1]) + 1, 1))
        return tuple(found)

    def covers(self, shape: Shape) -> bool:
        """Return whether a chunk of this shape fits in here."""
        return all(need <= have for need, have in zip(shape, self.values.shape, strict=True))

    def written(self, shape: Shape) -> AnyArray | None:
        """Return a mask of a shape, in which True is what is written; None if that is everything."""
        if self.is_complete and self.values.shape == shape:
            return None
        found: AnyArray = np.zeros(shape, np.bool_)
        if self.mask is not None:
            found[tuple(map(slice, self.mask.shape))] = self.mask
        elif self.box is not None:
            found[self.box] = True
        return found


def as_box(selection: Iterable[Any]) -> Box | None:
    """Return a selection as slices of step 1; None if it is something else.

    >>> as_box((slice(2, 3, 5), slice(0, 4, 1)))
    (slice(2, 3, 1), slice(0, 4, 1))
    """
    found = []
    for each in selection:
        if not isinstance(each, slice):
            return None
        if each.step != 1 and each.stop - each.start > 1:
            return None
        found.append(slice(each.start, each.stop, 1))
    return tuple(found)


def united(old: Box, new: Box) -> Box | None:
    """Return the box that two boxes are together; None if they are none.

    >>> united((slice(0, 4, 1), slice(0, 3, 1)), (slice(4, 5, 1), slice(0, 3, 1)))
    (slice(0, 5, 1), slice(0, 3, 1))
    >>> united((slice(0, 4, 1), slice(0, 3, 1)), (slice(4, 5, 1), slice(0, 2, 1)))
    """
    differing = [axis for axis, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
    if not differing:
        return old
    if len(differing) == 1:
        (axis,) = differing
        one, other = old[axis], new[axis]
        if one.start <= other.stop and other.start <= one.stop:
            joined = slice(min(one.start, other.start), max(one.stop, other.stop), 1)
            return (*old[:axis], joined, *old[axis + 1 :])
        return None
    if all(one.start <= other.start and other.stop <= one.stop for one, other in zip(old, new, strict=True)):
        return old
    if all(other.start <= one.start and one.stop <= other.stop for one, other in zip(old, new, strict=True)):
        return new
    return None


def own(part: AnyArray) -> AnyArray:
    """Return elements that the caller cannot change once they are copied: of objects such as arrays, copies."""
    if part.dtype != object or all(isinstance(item, _IMMUTABLE) for item in part.flat):
        return part
    copied = np.empty(part.size, object)
    for number, item in enumerate(part.flat):
        copied[number] = item if isinstance(item, _IMMUTABLE) else copy.deepcopy(item)
    return copied.reshape(part.shape)


def referred(part: AnyArray) -> int:
    """Return about how many bytes elements take in addition to those of the array: text, objects."""
    if part.dtype.kind == "T":
        return int(np.strings.str_len(part).sum())
    if part.dtype == object:
        return sum(getattr(item, "nbytes", 0) + sys.getsizeof(item) for item in part.flat)
    return 0
