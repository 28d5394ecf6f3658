"""Selections of which NumPy says that their indexing is advanced, for Hypothesis to draw."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np


@st.composite
def advanced(draw: Any, shape: tuple[int, ...], *, faults: bool = False) -> tuple[Any, ...]:
    """Draw lists, arrays, masks of several dimensions, integers, slices, newaxis and Ellipsis in any order.

    Arrays broadcast together. With `faults`, what is drawn may be such that NumPy refuses it.
    """
    whole = draw(
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=0 if draw(st.integers(0, 9)) == 0 else 1, max_side=4)
    )
    items: list[Any] = []
    axis, ndim = 0, len(shape)
    while axis < ndim:
        kinds = ["array", "array", "array", "slice", "slice", "integer", "mask", "newaxis"]
        if not any(item is Ellipsis for item in items):
            kinds += ["ellipsis", "stop"]
        kind = draw(st.sampled_from(kinds))
        if kind == "stop" and items:
            break
        if kind == "newaxis":
            items.append(None)
        elif kind == "ellipsis":
            items.append(...)
            axis += draw(st.integers(0, ndim - axis))
        elif kind == "mask":
            dims = draw(st.integers(1, ndim - axis))
            items.append(draw(_masks(shape[axis : axis + dims], whole[-1], faults=faults)))
            axis += dims
        else:
            items.append(draw(_along(kind, shape[axis], whole, faults=faults)))
            axis += 1
    if faults and draw(st.integers(0, 9)) == 0:
        items.insert(draw(st.integers(0, len(items))), draw(st.sampled_from([0, [0], ..., [0, 0, 0, 0, 0], 0.5, "x"])))
    return tuple(items)


def _along(kind: str, length: int, whole: tuple[int, ...], *, faults: bool) -> Any:
    """Return a strategy for what selects along one axis."""
    more = 1 if faults else 0
    if kind == "slice" or not length + more:
        return st.slices(length)
    numbers = st.integers(-length - more, length - 1 + more)
    if kind == "integer":
        return numbers | numbers.map(np.int16) | numbers.map(np.array)
    shapes = st.sampled_from(
        [whole, whole[-1:], tuple(1 for _ in whole), (*whole[:-1], 1), (1, *whole[1:]), (1,), (whole[-1],)]
    )
    arrays = shapes.flatmap(lambda shape: hnp.arrays(np.int64, shape, elements=numbers))
    stretch = st.integers(0, length + more - 1).map(lambda start: np.arange(start, start + whole[-1]) % max(length, 1))
    # A list of no lists has another shape than an array without elements.
    return arrays | arrays.map(lambda array: array.tolist() if array.size else array) | stretch


@st.composite
def _masks(draw: Any, shape: tuple[int, ...], count: int, *, faults: bool) -> Any:
    """Draw a mask with as many elements as arrays are broadcast with, or with one, or any."""
    if faults and draw(st.booleans()):
        return draw(hnp.arrays(bool, [length + draw(st.integers(0, 1)) for length in shape]))
    size = math.prod(shape)
    mask = np.zeros(size, bool)
    number = draw(st.sampled_from([count if count <= size else 1, 1]))
    mask[draw(st.permutations(range(size)))[:number]] = True
    return mask.reshape(shape)


def stays_in_place(selection: tuple[Any, ...]) -> bool:
    """Whether it is one of the selections of which zarr-python has another notion than NumPy.

    One list (or mask) of one dimension stays where it is, wherever there are integers.
    """
    arrays = [item for item in selection if isinstance(item, list | np.ndarray) and np.ndim(item)]
    others = any(np.ndim(item) == 0 and item is not None and type(item) not in (slice, type(...)) for item in selection)
    return len(arrays) == 1 and np.ndim(arrays[0]) == 1 and others
