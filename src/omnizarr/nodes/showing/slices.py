"""Which elements of an array a picture shows: at most two dimensions, and no more elements than it has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from omnizarr.errors import BoundsCheckError, SelectionError
from omnizarr.formats.conventions.axes import Role, colours, picture, role_of
from omnizarr.pictures.numbers import are_numbers

Axis: TypeAlias = "int | range"

_MOST_BLENDED: Final = 4


@dataclass(frozen=True, slots=True)
class Slice:
    """The shown part of an array.

    Attributes
    ----------
    axes : tuple of (int or range)
        For each dimension, the index or the indices.
    shown : tuple of int
        The dimensions of the picture: none, one, or two with the vertical one first.
    channels : int or None
        The dimension of red, green and blue, or of channels that are blended.
    assumed : tuple of int
        Dimensions for which an index was chosen automatically.
    fields : str or None
        Field of a record.
    is_blended : bool
        The channels have colours of their own.
    lit : tuple of int
        Of channels with colours, the places among those that are read which are drawn; empty: all.
    """

    axes: tuple[Axis, ...]
    shown: tuple[int, ...]
    channels: int | None = None
    assumed: tuple[int, ...] = ()
    fields: str | None = None
    is_blended: bool = False
    lit: tuple[int, ...] = ()

    def thinned(self, most: Sequence[int]) -> Slice:
        """Return the same with at most this many indices along the shown dimensions, by taking every n-th."""
        axes = list(self.axes)
        for dimension, limit in zip(self.shown, most, strict=False):
            axes[dimension] = every(self.axes[dimension], -(-_length(self.axes[dimension]) // limit))
        return replace(self, axes=tuple(axes))

    def first(self, most: Sequence[int]) -> Slice:
        """Return the same with at most this many indices along the shown dimensions, by taking the first."""
        axes = list(self.axes)
        for dimension, limit in zip(self.shown, most, strict=False):
            axes[dimension] = as_range(self.axes[dimension])[:limit]
        return replace(self, axes=tuple(axes))

    def lengths(self) -> tuple[int, ...]:
        """Return the number of indices along the shown dimensions."""
        return tuple(_length(self.axes[dimension]) for dimension in self.shown)

    def steps(self) -> tuple[int, ...]:
        """Return the distance of indices along the shown dimensions."""
        return tuple(as_range(self.axes[dimension]).step for dimension in self.shown)


def choose(
    shape: Sequence[int],
    names: Sequence[str],
    dtype: np.dtype[Any] | None,
    selection: Any = (),
    *,
    rgb: bool | None = None,
    blended: int | None = None,
    active: Sequence[bool] = (),
    roles: Sequence[Role | None] | None = None,
) -> Slice:
    """Return the part of an array that a selection shows.

    `names` are those of its dimensions, "" where there is none; `rgb` says whether the last of three dimensions holds
    red, green and blue; None: if it looks like that. `blended` is the dimension of channels that have colours of their
    own: of those selected, the first four are shown; if all are, those that are `active`. `roles` are what dimensions
    are to a picture, by default by their names.

    Raises SelectionError and BoundsCheckError.

    Examples
    --------
    >>> found = choose((12, 180, 360), ("time", "lat", "lon"), np.dtype("f4"), (3,))
    >>> found.axes, found.shown, found.assumed
    ((3, range(0, 180), range(0, 360)), (1, 2), ())
    >>> choose((512, 512, 3), ("", "", ""), np.dtype("u1")).channels
    2
    """
    roles = [role_of(name, names=names) for name in names] if roles is None else roles
    items = list(selection) if isinstance(selection, tuple) else [selection]
    fields = [item for item in items if isinstance(item, str)]
    if len(fields) > 1:
        raise SelectionError("a picture shows one field", found=fields, expected="one name")
    known = (dtype.names if dtype is not None else None) or ()
    if fields and fields[0] not in known:
        raise SelectionError("there is no such field", found=fields[0], expected=", ".join(known) or "none")
    axes = _selected(shape, [item for item in items if not isinstance(item, str)])
    kept = [dimension for dimension, axis in enumerate(axes) if isinstance(axis, range)]
    is_blended = blended in kept and len(kept) > 2 and rgb is None and dtype is not None and dtype.kind in "biuf"
    seen = dtype[fields[0]] if fields and dtype is not None else dtype
    channels = blended if is_blended else _channels(shape, axes, kept, names, seen, roles, rgb=rgb)
    lit: tuple[int, ...] = ()
    if is_blended and channels is not None:
        axes[channels], lit = _lit(as_range(axes[channels]), shape[channels], active)
    kept = [dimension for dimension in kept if dimension != channels]
    found = picture([names[at] for at in kept], [_length(axes[at]) for at in kept], lambda at: roles[kept[at]])
    shown = tuple(kept[at] for at in found)
    assumed = tuple(dimension for dimension in kept if dimension not in shown)
    for dimension in assumed:
        axis = axes[dimension]
        if isinstance(axis, range) and axis:
            axes[dimension] = axis[0]
    if any(isinstance(axes[dimension], range) for dimension in assumed):
        raise SelectionError("a dimension of length 0 has nothing to show", found=tuple(shape))
    return Slice(tuple(axes), shown, channels, assumed, fields[0] if fields else None, is_blended, lit)


def _lit(asked: range, length: int, active: Sequence[bool]) -> tuple[range, tuple[int, ...]]:
    """Return the channels to read, and the places among them of those that are drawn (empty: all).

    >>> _lit(range(6), 6, (False, True, False, True, True, False)), _lit(range(2), 6, (False,))
    ((range(1, 5), (0, 2, 3)), (range(0, 2), ()))
    """
    chosen = [number for number in asked if number >= len(active) or active[number]][:_MOST_BLENDED]
    if len(asked) < length or not chosen or chosen == list(asked[: len(chosen)]):
        return asked[: len(chosen) if len(asked) == length and chosen else _MOST_BLENDED], ()
    first, last = asked.index(chosen[0]), asked.index(chosen[-1])
    return asked[first : last + 1], tuple(asked.index(number) - first for number in chosen)


def every(axis: Axis, step: int) -> Axis:
    """Return every n-th index."""
    return axis if isinstance(axis, int) else axis[:: max(1, step)]


def as_selector(axis: Axis) -> int | slice:
    """Return a selector for the same elements of an array."""
    if isinstance(axis, int):
        return axis
    if not axis:
        return slice(0, 0)
    # In Python's slices, a negative end counts from the other side.
    return slice(axis.start, axis.stop if axis.stop >= 0 else None, axis.step)


def in_words(axis: Axis, length: int) -> str:
    """Return a selector as you would type it.

    >>> in_words(3, 9), in_words(range(0, 9), 9), in_words(range(0, 10, 4), 10), in_words(range(2, 5), 9)
    ('3', ':', '::4', '2:5')
    """
    if isinstance(axis, int):
        return str(axis)
    start = "" if axis.start == (0 if axis.step > 0 else length - 1) else str(axis.start)
    is_to_the_end = bool(axis) and not 0 <= axis[-1] + axis.step < length
    end = "" if is_to_the_end else str(axis.stop)
    return f"{start}:{end}" + ("" if axis.step == 1 else f":{axis.step}")


def _selected(shape: Sequence[int], items: list[Any]) -> list[Axis]:
    taken = sum(item is not Ellipsis for item in items)
    if taken > len(shape) or sum(item is Ellipsis for item in items) > 1:
        raise SelectionError("too many selectors", found=taken, expected=f"at most {len(shape)}")
    place = next((number for number, item in enumerate(items) if item is Ellipsis), len(items))
    filled = [*items[:place], *[slice(None)] * (len(shape) - taken), *items[place + 1 :]]
    return [_axis(item, dimension, length) for dimension, (item, length) in enumerate(zip(filled, shape, strict=True))]


def _axis(item: Any, dimension: int, length: int) -> Axis:
    if isinstance(item, slice):
        return range(*item.indices(length))
    if isinstance(item, bool) or not isinstance(item, (int, np.integer)):
        raise SelectionError(
            "this does not select a picture", found=repr(item), expected="integers, slices, an ellipsis, or a field"
        )
    if not -length <= item < length:
        raise BoundsCheckError(
            f"index out of bounds for dimension {dimension} with length {length}",
            found=int(item),
            expected=f"{-length} to {length - 1}" if length else "none",
        )
    return int(item) % length


def _channels(
    shape: Sequence[int],
    axes: Sequence[Axis],
    kept: Sequence[int],
    names: Sequence[str],
    dtype: np.dtype[Any] | None,
    roles: Sequence[Role | None],
    *,
    rgb: bool | None,
) -> int | None:
    """Return the dimension with red, green and blue (and alpha); None if there is none."""
    is_possible = len(kept) > 2 and dtype is not None and are_numbers(dtype)
    if rgb is False or not (rgb or is_possible):
        return None
    if not rgb:
        # The automatic choice is only for bytes, which pictures of cameras consist of.
        if dtype != np.uint8:
            return None
        lengths = [_length(axes[at]) for at in kept]
        found = colours([names[at] for at in kept], [shape[at] for at in kept], [roles[at] for at in kept], lengths)
        return None if found is None else kept[found]
    candidates = [at for at in kept if is_possible and _length(axes[at]) in {3, 4} and roles[at] not in ("x", "y")]
    candidates.sort(key=lambda at: (roles[at] != "c", -at))
    if not candidates:
        raise SelectionError(
            "there is no dimension of red, green and blue",
            found=f"{tuple(_length(axes[dimension]) for dimension in kept)} {dtype}",
            expected="numbers with a dimension of length 3 or 4, beside the two of a picture",
        )
    return candidates[0]


def as_range(axis: Axis) -> range:
    """Return the indices of a selector."""
    return range(axis, axis + 1) if isinstance(axis, int) else axis


def _length(axis: Axis) -> int:
    return 1 if isinstance(axis, int) else len(axis)
