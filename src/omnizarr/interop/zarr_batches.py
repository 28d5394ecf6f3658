"""Batches of zarr-python's codec pipelines, as plans.

zarr-python takes a selection apart and hands its pipeline one item per chunk: where the chunk is, what of it is
selected, and where that goes. `planned` finds the selection again: a product of what is selected along each
dimension, or points. Only the items along the edges of a product are looked into; lists are compared to see that the
others are what the product says. Neighbouring chunks, the usual case, are compared with what a slice would say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, product
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.indexing.arrays import forward_slice_or_array
from omnizarr.indexing.plans import Fixed, Piece, Plan, Points, Run, Selector, product_of
from omnizarr.model.key_forms import KeyEncoding

Coords: TypeAlias = tuple[int, ...]
Item: TypeAlias = tuple[Any, Any, Any, Any, bool]
"""The chunk (with its ``path``), its specification, its selection, that of the buffer, and whether it is complete."""

_ALL: Final = slice(None)
_FIRST: Final = slice(0, 1, 1)
_PLAIN: Final = frozenset({int, slice})


class Planned(NamedTuple):
    """A batch as a plan."""

    plan: Plan
    dropped: Coords
    """Dimensions of the plan's buffer, of length 1, that the buffer of zarr-python lacks."""

    def view(self, buffer: Any) -> Any:
        """Return a view of the buffer of zarr-python that has all dimensions of the plan's buffer."""
        if not self.dropped:
            return buffer
        return buffer[tuple([None if axis in self.dropped else _ALL for axis in range(len(self.plan.buffer_shape))])]


class Keys:
    """The chunk keys of one array.

    Examples
    --------
    >>> from omnizarr.model import keys
    >>> from omnizarr.model import Named
    >>> found = Keys.of("a/c/1/2", keys.bind(Named("default")), 2)
    >>> found.prefix, found.coords("a/c/3/4"), found.coords("b/c/3/4")
    ('a/', (3, 4), None)
    """

    def __init__(self, prefix: str, encoding: KeyEncoding, ndim: int) -> None:
        self.prefix = prefix
        self._encoding = encoding
        self._ndim = ndim

    @classmethod
    def of(cls, key: str, encoding: KeyEncoding, ndim: int) -> Keys | None:
        """Return the keys of the array that has `key`; None if that is not a chunk key, or made by another package."""
        if encoding.affixes is None:
            return None
        last = encoding.encode((0,) * ndim).count("/") + 1
        names = key.rsplit("/", last)
        prefix = f"{names[0]}/" if len(names) > last else ""
        found = cls(prefix, encoding, ndim)
        return None if found.coords(key) is None else found

    def coords(self, key: str) -> Coords | None:
        """Return the coordinates of a chunk; None if the key is not one of these."""
        return self._encoding.decode(key[len(self.prefix) :], self._ndim) if key.startswith(self.prefix) else None

    def product(self, numbers: Sequence[Sequence[int]]) -> list[str]:
        """Return the keys of all chunks with these numbers along each dimension, in C order."""
        head, tail, join = self.prefix + self._encoding.head, self._encoding.tail, self._encoding.separator.join
        return [f"{head}{names}{tail}" for names in map(join, product(*[list(map(str, axis)) for axis in numbers]))]


def planned(batch: Sequence[Item], keys: Keys, chunk_shape: Coords, drop_axes: Coords = ()) -> Planned | None:
    """Return the plan that a batch was made of; None if it is neither a product nor points.

    Parameters
    ----------
    batch : sequence of Item
        Not empty.
    keys : Keys
        Of the array.
    chunk_shape : tuple of int
    drop_axes : tuple of int
        Dimensions that zarr-python squeezes out of what it finds.
    """
    if len(batch) == 1 and not drop_axes and (found := _single(batch[0], keys, chunk_shape)) is not None:
        return found
    paths = [item[0].path for item in batch]
    if isinstance(batch[0][3], tuple):
        return _product(batch, paths, keys, chunk_shape, drop_axes)
    return None if drop_axes else _points(batch, paths, keys, len(chunk_shape))


def _single(item: Item, keys: Keys, chunk_shape: Coords) -> Planned | None:
    """Return the plan of one chunk, without detours; None if it is selected by anything but integers and slices."""
    where, _, inner, outer, _ = item
    coords = keys.coords(where.path)
    if coords is None or type(inner) is not tuple or len(inner) != len(coords):
        return None
    if not (_PLAIN.issuperset(map(type, inner)) and type(outer) is tuple and {slice}.issuperset(map(type, outer))):
        return None
    dropped = tuple([axis for axis, selector in enumerate(inner) if type(selector) is int])
    within = tuple(map(_selector, inner))
    into = list(map(_selector, outer))
    for axis in dropped:
        into.insert(axis, _FIRST)
    shape = tuple(map(_length, within))
    if tuple(map(_length, into)) != shape:
        return None
    whole = all(selector == slice(0, size, 1) for selector, size in zip(within, chunk_shape, strict=True))
    return Planned(Plan(shape, shape, (Piece(coords, within, tuple(into), whole),)), dropped)


# -- products -----------------------------------------------------------------------


class _Edge(NamedTuple):
    """The items of a batch along one edge of their product, which begins at the first item."""

    at: Sequence[int]
    """Their places in the batch."""
    numbers: Sequence[int]
    """Length of their chunks along the dimension of the edge."""


def _product(
    batch: Sequence[Item], paths: list[str], keys: Keys, chunk_shape: Coords, drop_axes: Coords
) -> Planned | None:
    ndim = len(chunk_shape)
    _, _, inner, outer, _ = batch[0]
    if not isinstance(inner, tuple) or len(inner) != ndim:
        return None
    dropped = drop_axes or tuple([axis for axis, item in enumerate(inner) if isinstance(item, int | np.integer)])
    kept = [axis for axis in range(ndim) if axis not in dropped]
    if len(outer) != len(kept):
        return None
    edges = _box(paths, keys) or _edges(paths, keys, ndim)
    if edges is None:
        return None
    along = [[batch[at][2][axis] for at in edge.at] for axis, edge in enumerate(edges)]
    into = [[batch[at][3][place] for at in edges[axis].at] for place, axis in enumerate(kept)]
    if not (_is_product([item[2] for item in batch], along) and _is_product([item[3] for item in batch], into)):
        return None
    places = dict(zip(kept, into, strict=True))
    parts = [_part(edge.numbers, along[axis], places.get(axis), chunk_shape[axis]) for axis, edge in enumerate(edges)]
    sound = [part for part in parts if part is not None]
    if len(sound) < ndim:
        return None
    lengths = tuple([part.points if isinstance(part, Run) else sum(map(_length, part.outer)) for part in sound])
    return Planned(Plan(lengths, lengths, _pieces(sound)), dropped)


def _box(paths: list[str], keys: Keys) -> list[_Edge] | None:
    """Return the edges of chunks that are all those from the first to the last along each dimension; else None."""
    first, last = keys.coords(paths[0]), keys.coords(paths[-1])
    if not first or last is None:
        return None
    numbers = [range(low, high + 1) for low, high in zip(first, last, strict=True)]
    counts = list(map(len, numbers))
    if prod(counts) != len(paths) or keys.product(numbers) != paths:
        return None
    steps = [prod(counts[axis + 1 :]) for axis in range(len(counts))]
    return [_Edge(range(0, step * len(along), step), along) for step, along in zip(steps, numbers, strict=True)]


def _edges(paths: list[str], keys: Keys, ndim: int) -> list[_Edge] | None:
    """Return the edges of the product that chunks are in C order; None if they are none."""
    first = keys.coords(paths[0])
    if first is None:
        return None
    edges: list[_Edge] = []
    step = 1
    for axis in reversed(range(ndim)):
        places, numbers = [], []
        for at in range(0, len(paths), step):
            coords = keys.coords(paths[at])
            if coords is None:
                return None
            if coords[:axis] != first[:axis]:
                break
            places.append(at)
            numbers.append(coords[axis])
        edges.append(_Edge(places, numbers))
        step *= len(places)
    edges.reverse()
    return edges if step == len(paths) and keys.product([edge.numbers for edge in edges]) == paths else None


def _is_product(found: list[Any], parts: Sequence[Sequence[Any]]) -> bool:
    """Return whether selections are all those that have one item of each of the parts, in C order."""
    if any(isinstance(item, np.ndarray) for item in found[0]):
        found = [tuple(map(_token, selection)) for selection in found]
        parts = [list(map(_token, part)) for part in parts]
    return found == list(product(*parts))


def _token(selector: Any) -> Any:
    """Return what can be compared of a selector."""
    return selector.tobytes() if isinstance(selector, np.ndarray) else selector


def _part(numbers: Sequence[int], inner: list[Any], outer: list[Any] | None, size: int) -> Fixed | Run | None:
    """Return the part of a dimension; None if what is selected and where it goes differ in length."""
    if isinstance(numbers, range) and outer is not None and (run := _run(numbers, inner, outer, size)) is not None:
        return run
    within = [_selector(item) for item in inner]
    into = [_selector(item) for item in outer] if outer is not None else [_FIRST] * len(within)
    if list(map(_length, within)) != list(map(_length, into)):
        return None
    wholes = [isinstance(item, slice) and item == slice(0, size, 1) for item in within]
    return Fixed(len(numbers), numbers, within, into, wholes, (_has_array(within), _has_array(into)))


def _run(numbers: range, inner: list[Any], outer: list[Any], size: int) -> Run | None:
    """Return the part that neighbouring chunks are which a slice of step 1 selects; None if these are not."""
    chunks = len(numbers)
    if chunks == 1 or not {slice}.issuperset(map(type, [*inner, *outer])):
        return None
    start, stop, out = inner[0].start, inner[-1].stop, outer[0].start
    if inner != [slice(start, size, 1), *[slice(0, size, 1)] * (chunks - 2), slice(0, stop, 1)]:
        return None
    points = (chunks - 1) * size - start + stop
    bounds = [out, *range(out + size - start, out + points, size), out + points]
    if len(bounds) != chunks + 1 or outer != list(map(slice, bounds, bounds[1:])):
        return None
    # Chunks that are cut by the edge of the array do not count as covered: others may have made it longer.
    return Run(chunks, numbers[0], size, chunks * size, int(start), 1, int(points), int(out), 0)


def _has_array(selectors: Sequence[Selector]) -> bool:
    return any(isinstance(selector, np.ndarray) for selector in selectors)


def _selector(item: Any) -> Selector:
    """Return a selector of zarr-python as plans have them."""
    if isinstance(item, slice):
        return slice(int(item.start), int(item.stop), 1 if item.step is None else int(item.step))
    if isinstance(item, np.ndarray):
        indices = np.flatnonzero(item) if item.dtype == np.bool_ else item.reshape(-1)
        return forward_slice_or_array(indices.astype(np.int64, copy=False))
    return slice(int(item), int(item) + 1, 1)


def _length(selector: Selector) -> int:
    if isinstance(selector, slice):
        return len(range(selector.start, selector.stop, selector.step))
    return selector.size


def _pieces(parts: list[Fixed | Run]) -> Any:
    """Return the pieces of parts; one of slices alone unchanged, which is the shortest way."""
    single = [part for part in parts if isinstance(part, Fixed) and part.chunks == 1 and part.arrays == (False, False)]
    if len(single) < len(parts):
        return product_of(parts)
    columns = [(part.numbers[0], part.inner[0], part.outer[0]) for part in single]
    coords, inner, outer = zip(*columns, strict=True) if columns else ((), (), ())
    return (Piece(tuple(coords), tuple(inner), tuple(outer), all(part.wholes[0] for part in single)),)


# -- points -------------------------------------------------------------------------


def _points(batch: Sequence[Item], paths: list[str], keys: Keys, ndim: int) -> Planned | None:
    selections = [item[2] for item in batch]
    coords = [found for path in paths if (found := keys.coords(path)) is not None]
    if not ndim or len(coords) < len(paths) or not all(map(_is_points, selections, [ndim] * len(batch))):
        return None
    bounds = [0, *accumulate(selection[0].size for selection in selections)]
    if not _fits([item[3] for item in batch], bounds):
        return None
    order = None if isinstance(batch[0][3], slice) else np.concatenate([item[3] for item in batch]).astype(np.int64)
    places = [np.concatenate([selection[axis] for selection in selections]).astype(np.int64) for axis in range(ndim)]
    columns = list(np.array(coords, np.int64).T)
    return Planned(Plan((bounds[-1],), (bounds[-1],), Points(range(ndim), columns, bounds, places, order)), ())


def _is_points(selection: Any, ndim: int) -> bool:
    return (
        isinstance(selection, tuple)
        and len(selection) == ndim
        and all(isinstance(item, np.ndarray) and item.dtype.kind in "iu" for item in selection)
        and len({item.shape for item in selection}) == 1
        and selection[0].ndim == 1
    )


def _fits(outer: list[Any], bounds: list[int]) -> bool:
    """Return whether these are places in the buffer for points: slices that follow each other, or arrays."""
    if all(isinstance(item, slice) for item in outer):
        return outer == [slice(start, stop) for start, stop in pairwise(bounds)]
    is_list = all(isinstance(item, np.ndarray) and item.dtype.kind in "iu" and item.ndim == 1 for item in outer)
    return is_list and [0, *accumulate(item.size for item in outer)] == bounds
