"""Selections: what a user asks for becomes a plan, chunk by chunk.

`plan` understands what stands between the brackets of ``array[...]``; `basic`, `orthogonal`,
`coordinate`, `mask` and `block` one kind of selection each; `subplan` what a piece says about
a chunk that is itself made of chunks.
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
