"""Dask arrays that are stored arrays in other chunks, and in which blocks to move these to an array.

Dask makes a task for each chunk that is stored, and several for what each takes from chunks that are read. If all that
a dask array does is to read a stored array and rechunk it, its chunks mean nothing for the result. So the plan of
`omnizarr.rechunk` chooses them: as large as dask wants them, of whole chunks of the target. If the source would be read
more than twice, blocks of whole source chunks are read, and dask moves their parts between its workers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from omnizarr.engine import budget
from omnizarr.model import grids
from omnizarr.nodes.array import Array
from omnizarr.tools.convert import routes
from omnizarr.tools.streaming import chunks

if TYPE_CHECKING:
    import dask.array as da

    from omnizarr.model.grids import Grid

_layers: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()
"""Layers of graphs that read a stored array and do nothing else, by their identity, as others can have their names."""
_read: Final[WeakValueDictionary[int, Array]] = WeakValueDictionary()
"""The arrays that they read."""
_RECHUNKS: Final = re.compile(r"rechunk-(merge|split|p2p)-[0-9a-f]{32}.*")
"""Names of layers in which dask only moves elements to other chunks."""

_Chunks = tuple[tuple[int, ...], ...]


def remember(array: da.Array, stored: Array) -> None:
    """Note that a new dask array has the elements of a stored array, and nothing else."""
    graph: Any = array.__dask_graph__()
    layer = graph.layers[array.name]
    _layers[id(layer)], _read[id(layer)] = layer, stored


def source_of(array: da.Array) -> Array | None:
    """Return the stored array that a dask array has in other chunks; None if it is not known to be one."""
    found: dict[str, Array] = {}
    others = []
    graph: Any = array.__dask_graph__()
    for name, layer in getattr(graph, "layers", {}).items():
        stored = _read.get(id(layer)) if _layers.get(id(layer)) is layer else None
        if stored is not None:
            found[f"original-{name}"] = stored
        elif not _RECHUNKS.fullmatch(name):
            others.append(name)
    if len(found) != 1 or not set(others) <= set(found) or not _RECHUNKS.fullmatch(array.name):
        return None
    (stored,) = found.values()
    return stored if (stored.shape, stored.dtype) == (array.shape, array.dtype) else None


def blocks_for(source: Array, target: Array, most: int, workers: int) -> tuple[_Chunks, _Chunks] | None:
    """Return the chunks in which to read a source, and those to store, which are whole chunks of the target.

    Return None if the sizes of elements are not known. `most` is how many bytes a block has, if no chunk of the target
    is larger; `workers`, how many blocks are in work at a time.
    """
    dtype = source.dtype
    if dtype.hasobject or dtype.kind == "T" or not source.size:
        return None
    given = routes.Constraints(
        source=chunks.fine(source._bind().binding),  # noqa: SLF001 - a part of Array
        target=grids.bind(target.metadata.chunk_grid, target.shape),
        item_bytes=dtype.itemsize,
        memory=min(most, budget.for_blocks()),
        width=max(1, workers),
    )
    found = routes.route(given)
    if found.is_direct:
        lengths = _lengths(found.blocks[0])
        return lengths, lengths
    return _lengths(found.blocks[0]), _lengths(found.blocks[-1])


def _lengths(grid: Grid) -> _Chunks:
    """Return the lengths of all chunks, cut at the array's edge."""
    found = []
    for axis in grid.axes:
        starts = [axis.chunk(number)[0] for number in range(axis.count)]
        found.append(tuple(end - start for start, end in zip(starts, [*starts[1:], axis.length], strict=True)) or (0,))
    return tuple(found)
