"""Selections that the page asks for, as it writes them in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnizarr.errors import SelectionError
from omnizarr.web.plain import json_text


def range_of(start: int, stop: int, step: int, length: int) -> range:
    """Return the elements from `start` to `stop` of a dimension. Raises SelectionError."""
    if step < 1 or start < 0:
        raise SelectionError("no range of elements", found=f"{start}:{stop}:{step}", expected="steps from 1, from 0 on")
    return range(min(start, length), max(min(stop, length), min(start, length)), step)


def selection_of(select: Sequence[Any], shape: Sequence[int]) -> tuple[list[range], list[int]]:
    """Return the elements along each dimension, and the shape of the result."""
    if not isinstance(select, list | tuple) or len(select) != len(shape):
        expected = f"an integer or [start, stop, step] for each of {len(shape)} dimensions"
        raise SelectionError("a selection that does not fit", found=json_text(select), expected=expected)
    ranges, sizes = [], []
    for chosen, length in zip(select, shape, strict=True):
        if is_integer(chosen) and -length <= chosen < length:
            ranges.append(range(chosen % length, chosen % length + 1))
            continue
        if not isinstance(chosen, list | tuple) or len(chosen) not in (2, 3) or not all(map(is_integer, chosen)):
            expected = f"an integer below {length}, or [start, stop, step]"
            raise SelectionError("a selection that does not fit", found=json_text(chosen), expected=expected)
        ranges.append(range_of(chosen[0], chosen[1], chosen[2] if len(chosen) == 3 else 1, length))
        sizes.append(len(ranges[-1]))
    return ranges, sizes


def is_integer(value: object) -> bool:
    """Return whether a value in JSON is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)
