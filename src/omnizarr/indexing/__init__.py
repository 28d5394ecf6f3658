"""Selections: what a user asks for becomes a plan, chunk by chunk.

`plan` understands what stands between the brackets of ``array[...]``; `basic`, `orthogonal`,
`coordinate`, `mask` and `block` one kind of selection each; `subplan` what a piece says about
a chunk that is itself made of chunks.

A plan (`Plan`) is a row of pieces (`Piece`), one for each chunk that it touches:

- Each element of the buffer belongs to exactly one piece, each chunk to at most one.
- Selections have one item per dimension; points have one dimension in the buffer. An integer selects a slice of length
  1: only `Plan.shape` knows that it drops the axis, and that newaxis adds one. So a whole piece has the shape of its
  chunk, cut at the edge of the array.
- Slices hold explicit Python integers. Negative steps are in `Piece.out_selection`; there the stop may be None.
- One array in a selection is 1-d, and the rest are slices. Several are an open mesh that stands side by side, with
  slices only before and after it; or they are points, 1-d, with slices anywhere. As in NumPy, the dimension of points
  is in place of the arrays if they are neighbours, else first.
- Arrays that vary along dimensions of their own become slices or lists of their axis; only those that depend on each
  other become points.
- A mask, a list and a slice that mean the same give the same plan; stretches of a list are slices within the chunks.
- Of an element that is asked for twice, the last value written wins.
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
    """Plan what stands between the brackets of ``array[...]``.

    Integers, slices, Ellipsis and newaxis select as in NumPy, and so do arrays and masks among them. But a
    single list or mask of one dimension selects along its axis, which stays in its place wherever there are integers.

    Raises
    ------
    SelectionError
        If the selection makes no sense.
    BoundsCheckError
        If an index lies outside the array.

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
