"""``dggs``: elements along one dimension are cells of a discrete global grid system, such as HEALPix or H3.

A group says it for the arrays directly below it, and an array for itself alone: it takes nothing from its group then.
The ids of the cells are elements of another array, which `Grid.faults_of_ids` compares with the grid.

Spec: https://github.com/zarr-conventions/dggs, v1; HEALPix (Górski et al. 2005), section 5; H3, "Bit layout of
indexes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered.records import Checking, Known, unchanged
from omnizarr.formats.reader import is_object
from omnizarr.model import JSON, ArrayMetadata, Metadata, dimensions

KEY: Final = "dggs"
HEALPIX: Final = "healpix"
H3: Final = "h3"
_DEEPEST: Final[Mapping[str, int]] = {HEALPIX: 29, H3: 15}
_BY_NUMBER: Final = ("nested", "ring")
"""Schemes of HEALPix whose ids count the cells of one level."""
_COMPRESSIONS: Final = ("none", "compacted", "ranges")
_AXES: Final = ("semimajor_axis", "semiminor_axis", "inverse_flattening")
_BASE_CELLS: Final = 122
_NO_DIGIT: Final = 7

DGGS: Final = Known(
    name="dggs",
    uuid="7b255807-140c-42ca-97f6-7a1cfecdbc38",
    schema_url="https://raw.githubusercontent.com/zarr-conventions/dggs/refs/tags/v1/schema.json",
    spec_url="https://github.com/zarr-conventions/dggs/blob/v1/README.md",
    description="Discrete Global Grid Systems convention for zarr",
    repositories=("zarr-conventions/dggs",),
    keys=(KEY,),
    nodes=("array", "group"),
    state="proposal",
)


class Grid(NamedTuple):
    """A grid, as attributes say it.

    Attributes
    ----------
    name : str
    level : int or None
        None: cells have several levels.
    dimension : str
        The dimension along which cells are.
    coordinate : str or None
        Name of the array with the ids of the cells; None: all cells are there, in their order.
    compression : str
    scheme : str or None
        How ids of HEALPix count.
    """

    name: str
    level: int | None
    dimension: str
    coordinate: str | None
    compression: str
    scheme: str | None

    @property
    def cells(self) -> int | None:
        """How many cells the whole grid has; None if that is not known.

        >>> Grid("healpix", 2, "cells", None, "none", "nested").cells, Grid("h3", 1, "cell", "id", "none", None).cells
        (192, 842)
        """
        if self.level is None or not 0 <= self.level <= _DEEPEST.get(self.name, -1):
            return None
        level = int(self.level)
        return 12 * int(4**level) if self.name == HEALPIX else 2 + 120 * int(7**level)

    def plain(self) -> dict[str, JSON]:
        """Return what is known, without what is not."""
        known = self._asdict() | {"cells": self.cells}
        return {name: value for name, value in known.items() if value is not None}

    def faults_of_ids(self, ids: NDArray[Any]) -> tuple[str, Any, str] | None:
        """Return what is wrong with the first wrong id among some: in words, the id, and what is right; None: nothing.

        Ids of grids that are not known here are all right.

        >>> grid = Grid("healpix", 0, "cells", "ids", "none", "nested")
        >>> grid.faults_of_ids(np.array([11, 12]))
        ('there is no such cell', 12, '0 to 11 at level 0')
        """
        if self.level is None or self.cells is None or ids.dtype.kind not in "iu":
            return None
        if self.name == HEALPIX and (self.scheme or "nested") in _BY_NUMBER and self.compression != "compacted":
            most = self.cells if self.compression == "ranges" else self.cells - 1  # a range may end after the last cell
            wrong = (ids < 0) | (ids > most)
            expected = f"0 to {self.cells - 1} at level {self.level}"
        elif self.name == H3 and self.compression == "none":
            wrong = ~_are_h3(ids.astype(np.uint64), self.level)
            expected = f"cells of H3 at level {self.level}"
        else:
            return None
        return ("there is no such cell", ids[wrong][0].item(), expected) if wrong.any() else None


def _are_h3(ids: NDArray[np.uint64], level: int) -> NDArray[np.bool_]:
    """Return which ids are cells of H3 at a level.

    >>> _are_h3(np.array([0x8928308280FFFFF, 0x8828308281FFFFF, 5], "u8"), 9)
    array([ True, False, False])
    """

    def bits(first: int, count: int) -> NDArray[np.uint64]:
        return (ids >> np.uint64(first)) & np.uint64(2**count - 1)

    # One reserved bit, the mode of cells, three reserved bits, the level, the base cell, and 15 digits of three bits.
    right = (bits(63, 1) == 0) & (bits(59, 4) == 1) & (bits(56, 3) == 0) & (bits(52, 4) == level)
    right &= bits(45, 7) < _BASE_CELLS
    for digit in range(1, _DEEPEST[H3] + 1):
        found = bits(45 - 3 * digit, 3)
        right &= (found != _NO_DIGIT) if digit <= level else (found == _NO_DIGIT)
    return np.asarray(right)


def own(node: Metadata | None) -> Grid | None:
    """Return the grid that a node says itself; None if it says none that can be understood."""
    said = node.attributes.get(KEY) if node is not None else None
    if not is_object(said):
        return None
    name, level, dimension = (said.get(key) for key in ("name", "refinement_level", "spatial_dimension"))
    coordinate, compression, scheme = (said.get(key) for key in ("coordinate", "compression", "indexing_scheme"))
    if not isinstance(name, str) or not isinstance(dimension, str) or not (level is None or _is_level(level)):
        return None
    return Grid(
        name.lower(),
        level,
        dimension,
        coordinate if isinstance(coordinate, str) else None,
        compression if isinstance(compression, str) else "none",
        scheme if isinstance(scheme, str) else None,
    )


def said_of(path: str, nodes: Nodes) -> Grid | None:
    """Return the grid of a node: its own, or that of its group if it has the dimension of the cells."""
    node = nodes[path]
    if KEY in node.attributes or not path:
        return own(node)
    found = own(nodes.get(path.rpartition("/")[0]))
    if found is None or not isinstance(node, ArrayMetadata):
        return None
    return found if found.dimension in (dimensions.names_of(node) or ()) else None


def coordinates(nodes: Nodes) -> Iterator[tuple[str, Grid]]:
    """Yield the arrays that have ids of cells, by path, each with its grid."""
    found: dict[str, Grid] = {}
    for path, node in nodes.items():
        grid = own(node)
        if grid is not None and grid.coordinate is not None:
            at = _beside(path, node, grid.coordinate)
            if isinstance(nodes.get(at), ArrayMetadata):
                found.setdefault(at, grid)
    yield from found.items()


def _beside(path: str, node: Metadata, name: str) -> str:
    group = path.rpartition("/")[0] if isinstance(node, ArrayMetadata) else path
    return f"{group}/{name}" if group else name


def _is_level(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _recognise(path: str, nodes: Nodes) -> bool:
    return DGGS.is_used(nodes[path])


# -- what is wrong -----------------------------------------------------------------------------------------------------


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    node = nodes[path]
    at = Checking(DGGS, path, node, "dggs-invalid")
    yield from at.about()
    said = node.attributes.get(KEY)
    if not is_object(said):
        yield at.fault((KEY,), "no grid in the form of the convention", said, "an object with name")
        return
    forms = list(_of_form(at, said))
    yield from forms
    grid = own(node)
    if grid is not None and not forms:
        yield from _of_arrays(at, grid, nodes)


def _of_form(at: Checking, said: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the members that are missing, or of the wrong kind."""
    name, level, coordinate = (said.get(key) for key in ("name", "refinement_level", "coordinate"))
    if not isinstance(name, str) or not name or name != name.lower():
        yield at.fault((KEY, "name"), "the grid has no name in small letters", name, "healpix, for example")
    if "refinement_level" not in said or not (level is None or _is_level(level)):
        yield at.fault((KEY, "refinement_level"), "no level", level, "an integer from 0 on, or null")
    elif isinstance(level, int) and level > _DEEPEST.get(str(name), level):
        yield at.fault((KEY, "refinement_level"), f"{name} has no such level", level, f"at most {_DEEPEST[str(name)]}")
    if not isinstance(said.get("spatial_dimension"), str):
        message = "the dimension of the cells is not named"
        yield at.fault((KEY, "spatial_dimension"), message, said.get("spatial_dimension"), "a text")
    compression = said.get("compression")
    if coordinate is not None and not isinstance(coordinate, str):
        yield at.fault((KEY, "coordinate"), "not the name of an array", coordinate, "a text")
    if "compression" in said and compression not in _COMPRESSIONS:
        expected = " or ".join(_COMPRESSIONS)
        yield at.fault((KEY, "compression"), "a compression that the convention does not define", compression, expected)
    elif coordinate is None and "compression" in said:
        yield at.fault((KEY, "compression"), "a compression of ids, and no array has ids", compression, "coordinate")
    if level is None and "refinement_level" in said and (coordinate is None or compression not in (None, "none")):
        message = "cells of several levels need ids without compression"
        yield at.fault((KEY, "refinement_level"), message, level, "an integer")
    ellipsoid = said.get("ellipsoid")
    if ellipsoid is not None and not _is_ellipsoid(ellipsoid):
        expected = "semimajor_axis in metres, and semiminor_axis or inverse_flattening"
        yield at.fault((KEY, "ellipsoid"), "not in the form of the convention", ellipsoid, expected)


def _is_ellipsoid(said: Any) -> bool:
    if not is_object(said) or "semimajor_axis" not in said or not {*said} <= {"name", *_AXES}:
        return False
    numbers = [said[name] for name in _AXES if name in said]
    are_numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) and each >= 0 for each in numbers)
    return are_numbers and len(numbers) < len(_AXES) and isinstance(said.get("name", ""), str)


def _of_arrays(at: Checking, grid: Grid, nodes: Nodes) -> Iterator[Fault]:
    """Yield where the grid and the arrays disagree."""
    if isinstance(at.node, ArrayMetadata):
        arrays = {at.path: at.node}
    else:
        arrays = {_beside(at.path, at.node, name): array for name, array in nodes.arrays_in(at.path).items()}
    of_ids = None if grid.coordinate is None else _beside(at.path, at.node, grid.coordinate)
    lengths = {
        path: array.shape[names.index(grid.dimension)]
        for path, array in sorted(arrays.items(), key=lambda item: item[0] == of_ids)
        if grid.dimension in (names := dimensions.names_of(array) or ())
    }
    if not lengths:
        message = "no array that the grid describes has the dimension of the cells"
        yield at.fault((KEY, "spatial_dimension"), message, grid.dimension, None, "dggs-arrays")
        return
    path, length = next(iter(lengths.items()))
    if grid.coordinate is None:
        if grid.cells is not None and length != grid.cells:
            message = f"without ids all cells are there, and {path.rpartition('/')[2]!r} has another length"
            yield at.fault((KEY, "coordinate"), message, length, grid.cells, "dggs-arrays")
        return
    there = nodes.get(of_ids or "")
    if not isinstance(there, ArrayMetadata):
        message = "the array with the ids of the cells does not exist"
        yield at.fault((KEY, "coordinate"), message, grid.coordinate, None, "dggs-arrays")
    elif grid.compression == "ranges" and (len(there.shape) != 2 or there.shape[1] != 2):
        message = "ranges of ids have a shape of two columns"
        yield at.fault(
            (KEY, "coordinate"), message, list(there.shape), [there.shape[0] if there.shape else 0, 2], "dggs-arrays"
        )
    elif grid.compression == "compacted" and len(there.shape) != 1:
        yield at.fault((KEY, "coordinate"), "ids have one dimension", list(there.shape), None, "dggs-arrays")
    elif grid.compression == "none" and there.shape != (length,):
        message = f"the ids are not as many as the cells of {path.rpartition('/')[2]!r}"
        yield at.fault((KEY, "coordinate"), message, list(there.shape), [length], "dggs-arrays")


CONVENTION: Final = Convention(
    name="dggs",
    title="DGGS",
    spec=DGGS.spec_url,
    attributes=frozenset({KEY}),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)
