"""Compare ids of cells with the grid that attributes say: they exist at its level, and none is there twice.

Spec: https://github.com/zarr-conventions/dggs.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions import Nodes
from omnizarr.formats.conventions.registered import dggs
from omnizarr.formats.conventions.registered.dggs import Grid
from omnizarr.formats.paths import prefix
from omnizarr.nodes import detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.location import StorePath
from omnizarr.tools.check.inventory import Inventory
from omnizarr.tools.check.report import Findings

_BLOCK: Final = 2**20
_MOST_SORTED: Final = 2**24
"""Ids that are compared with each other, at most: they need memory together."""


def check_cells(findings: Findings, where: StorePath, inventory: Inventory, nodes: Nodes) -> None:
    """Report the arrays whose ids are no cells of their grid. Paths of `nodes` are below `where`."""
    above = prefix(where.path)
    for path, grid in dggs.coordinates(nodes):
        full = f"{above}{path}"
        try:
            found = detection.open_array(where.at(full))
            wrong = _wrong(Array(found.where, found.metadata), grid)
        except OmnizarrError:
            continue  # chunks and documents that cannot be read are findings of their own
        if wrong is not None:
            message, value, expected = wrong
            key = inventory.nodes[full][0].marker.key
            findings.add("dggs-cells", full, message, key=key, found=value, expected=expected or None)


def _wrong(array: Array, grid: Grid) -> tuple[str, object, str] | None:
    """Return what is wrong with the ids of an array: in words, the id, and what is right; None: nothing."""
    if array.dtype.kind not in "iu":
        return "ids of cells are no integers", str(array.dtype), "integers"
    keeps = grid.compression != "ranges" and array.ndim == 1 and array.size <= _MOST_SORTED
    kept = []
    for start in range(0, len(array), _BLOCK) if array.ndim else ():
        ids = np.asarray(array[start : start + _BLOCK])
        wrong = grid.faults_of_ids(ids)
        if wrong is not None:
            return wrong
        if grid.compression == "ranges" and ids.ndim == 2 and (ids[:, 0] > ids[:, 1]).any():
            return "a range of ids ends before it starts", ids[ids[:, 0] > ids[:, 1]][0].tolist(), ""
        if keeps:
            kept.append(ids)
    sorted_ids = np.sort(np.concatenate(kept)) if kept else np.empty(0, "i8")
    twice = sorted_ids[1:][sorted_ids[1:] == sorted_ids[:-1]]
    return ("a cell is there twice", twice[0].item(), "") if len(twice) else None
