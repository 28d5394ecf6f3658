"""Selections, and the plans that they become, chunk by chunk.

`plan` handles all selections of ``array[...]``; `basic`, `orthogonal`, `coordinate`, `mask` and `block` handle
one kind of selection each; `subplan` handles the selection of a piece within a chunk that consists of chunks.

A plan (`Plan`) is a sequence of pieces (`Piece`), one for each chunk that it touches:

- Each element of the buffer belongs to exactly one piece, each chunk to at most one.
- Selections have one item per dimension; points have one dimension in the buffer. An integer selects a slice of length
  1: only `Plan.shape` records that it drops the axis, and that newaxis adds one. So a whole piece has the shape
  of its chunk, cut at the edge of the array.
- Slices hold explicit Python integers. Negative steps are in `Piece.out_selection`; there the stop may be None.
- One array in a selection is 1-d, and the rest are slices. Several are an open mesh of adjacent arrays, with slices
  only before and after it; or they are points, 1-d, with slices anywhere. As in NumPy, the dimension of points
  replaces the arrays if they are adjacent, and is first otherwise.
- Arrays that vary independently become slices or lists of their axis; only arrays that depend on each other become
  points.
- A mask, a list and a slice that mean the same give the same plan; regular runs in a list become slices within the
  chunks.
- If an element is selected twice, the last value written counts.
- ``subplan(piece.chunk_selection, inner)`` has the buffer ``chunk[piece.chunk_selection]``, in shape and order.
"""

from __future__ import annotations

from types import EllipsisType, NoneType
from typing import Any, Final

from omnizarr.indexing.arrays import coordinate, mask, orthogonal, plan_arrays, subplan
from omnizarr.indexing.fields import Fields, pop_fields
from omnizarr.indexing.plans import Piece, Pieces, Plan, place_of_points
from omnizarr.indexing.slices import basic, block
from omnizarr.model.grids import Grid

__all__ = [
    "Fields",
    "Piece",
    "Pieces",
    "Plan",
    "basic",
    "block",
    "coordinate",
    "mask",
    "orthogonal",
    "place_of_points",
    "plan",
    "pop_fields",
    "subplan",
]

_BASIC_TYPES: Final = frozenset({int, slice, EllipsisType, NoneType})


def plan(selection: Any, grid: Grid) -> Plan:
    """Return the plan for a selection of ``array[...]``.

    Integers, slices, Ellipsis and newaxis select as in NumPy, and so do arrays and masks among them. One
    exception: the axis of a single one-dimensional list or mask keeps its place, even if the selection also has
    integers.

    Raises
    ------
    SelectionError
        If the selection is not valid.
    BoundsCheckError
        If an index is outside the array.

    Examples
    --------
    >>> from omnizarr.model import grids
    >>> grid = grids.bind(grids.regular((4, 4)), (6, 3))
    >>> plan([0, 5], grid).shape, plan(([0, 5], [1, 2]), grid).shape
    ((2, 3), (2,))
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    for item in items:
        if type(item) not in _BASIC_TYPES:
            return plan_arrays(items, grid)
    return basic(items, grid)
