"""Chunk grids: how an array is divided into chunks.

Along each dimension, a grid is a row of *segments*: runs of chunks of one size. A regular grid has one segment
per dimension, a rectilinear one as many as its document has runs. So nothing here grows with the number of
chunks. Numbers are Python integers where 64 bits might not be enough.

A package adds its own under the entry point ``omnizarr.chunk_grids``, a program with `PLUGINS`: a function
``chunk_lengths(configuration, shape)`` that returns, for each dimension, one length for all chunks, or a list of
lengths and of runs ``[length, count]``, as in the configuration of a rectilinear grid.

Spec: Zarr v3 core, "Regular chunk grid"; zarr-extensions, "Rectilinear chunk grid".
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, product
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.errors import BoundsCheckError, MetadataError, UnknownChunkGridError
from omnizarr.model import JSON, Named
from omnizarr.model.plugins import Plugins
from omnizarr.support.memo import Memo

if TYPE_CHECKING:
    from numpy.typing import NDArray

Coords: TypeAlias = tuple[int, ...]
Shape: TypeAlias = tuple[int, ...]
Integers: TypeAlias = "NDArray[np.int64]"

_POINTER: Final = "/chunk_grid/configuration"
_REGULAR: Final = 'Zarr v3, "Regular chunk grid"'
_BOUNDED: Final = "zarrs, regular_bounded"
_RECTILINEAR: Final = 'zarr-extensions, "Rectilinear chunk grid"'
_INT64_END: Final = 2**63
_MANY: Final = 64
"""From so many chunk lengths on, arrays of numbers take less time than Python."""


class Segment(NamedTuple):
    """Chunks of one size, side by side along one dimension."""

    start: int
    """Index of the first element."""
    first: int
    """Number of the first chunk."""
    size: int
    """Elements per chunk."""
    chunks: int
    """Number of chunks with elements of the array. The last one may reach past the edge."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a grid.

    Attributes
    ----------
    length : int
        Number of elements of the array along the dimension.
    count : int
        Number of chunks with elements of the array.
    size : int
        Elements per chunk; 0 if chunks differ in size, or if there are none.
    segments : tuple of Segment
    """

    length: int
    segments: tuple[Segment, ...]
    count: int = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _firsts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        segments = self.segments
        put = object.__setattr__
        put(self, "count", segments[-1].first + segments[-1].chunks if segments else 0)
        put(self, "size", segments[0].size if len(segments) == 1 else 0)
        put(self, "_starts", tuple(map(itemgetter(0), segments)))
        put(self, "_firsts", tuple(map(itemgetter(1), segments)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements per chunk in each segment."""
        return tuple(segment.size for segment in self.segments)

    def find(self, index: int) -> tuple[int, int, int]:
        """Return number, first element and size of the chunk with element `index` (0 <= index < length)."""
        start, first, size, _ = self.segments[bisect_right(self._starts, index) - 1]
        step = (index - start) // size
        return first + step, start + step * size, size

    def segments_between(self, start: int, last: int) -> tuple[Segment, ...]:
        """Return the segments with the elements from `start` to `last` (inclusive)."""
        return self.segments[bisect_right(self._starts, start) - 1 : bisect_right(self._starts, last)]

    def chunk(self, number: int) -> tuple[int, int]:
        """Return first element and (uncut) size of chunk `number`. Raises BoundsCheckError."""
        if not 0 <= number < self.count:
            raise BoundsCheckError("chunk outside the grid", found=number, expected=f"0 to {self.count - 1}")
        start, first, size, _ = self.segments[bisect_right(self._firsts, number) - 1]
        return start + (number - first) * size, size

    def locate(self, indices: Integers) -> tuple[Integers, Integers]:
        """Return the chunk numbers of elements, and their positions within these chunks.

        indices : integers of any shape, 0 <= indices < length.
        """
        if len(self.segments) < 2:
            size = self.segments[0].size if self.segments else 1
            if size >= _INT64_END:
                return np.zeros_like(indices), indices
            numbers = indices // size
            return numbers, indices - numbers * size
        # Elements beyond int64 are never requested, so segments that start there need not be searched.
        rows = [segment for segment in self.segments if segment.start < _INT64_END]
        starts, firsts, sizes = (
            np.array([min(row[column], _INT64_END - 1) for row in rows], np.int64) for column in range(3)
        )
        at = np.searchsorted(starts, indices, side="right") - 1
        numbers, places = np.divmod(indices - starts[at], sizes[at])
        return numbers + firsts[at], places


@dataclass(frozen=True, slots=True)
class Grid:
    """A chunk grid bound to the shape of an array.

    Attributes
    ----------
    named : Named
        The grid in the spelling of the document.
    shape : tuple of int
        Shape of the array, in elements.
    chunk_shape : tuple of int, optional
        The shape of all chunks (uncut at the array's edge); None if they differ.
    grid_shape : tuple of int
        Number of chunks with elements of the array along each dimension.
    axes : tuple of Axis

    Examples
    --------
    >>> grid = bind(regular((4, 4)), (6, 3))
    >>> grid.grid_shape, grid.slices_of((1, 0))
    ((2, 1), (slice(4, 6, None), slice(0, 3, None)))
    """

    named: Named
    shape: Shape
    chunk_shape: Shape | None
    axes: tuple[Axis, ...]
    grid_shape: Shape = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid_shape", tuple(axis.count for axis in self.axes))

    @property
    def nchunks(self) -> int:
        """Number of chunks with elements of the array."""
        return math.prod(self.grid_shape)

    def shape_of(self, coords: Coords) -> Shape:
        """Return the shape of one chunk, not cut at the array's edge. Raises BoundsCheckError."""
        return tuple(size for _, size in self._chunks(coords))

    def slices_of(self, coords: Coords) -> tuple[slice, ...]:
        """Return the elements of one chunk, cut at the array's edge. Raises BoundsCheckError."""
        return tuple(
            slice(start, min(start + size, length))
            for (start, size), length in zip(self._chunks(coords), self.shape, strict=True)
        )

    def _chunks(self, coords: Coords) -> list[tuple[int, int]]:
        try:
            return [axis.chunk(number) for axis, number in zip(self.axes, coords, strict=True)]
        except ValueError:  # BoundsCheckError is one; zip raises it for a wrong number of coordinates
            expected = f"coordinates within the grid of shape {self.grid_shape}"
            raise BoundsCheckError("no chunk of this grid", found=tuple(coords), expected=expected) from None

    def coords(self) -> Iterator[Coords]:
        """Return an iterator over the coordinates of all chunks, in C order."""
        if max(self.grid_shape, default=0) < 2**20:
            return product(*map(range, self.grid_shape))
        return _lazy_coords(self.grid_shape)

    def resized(self, shape: Shape) -> Named:
        """Return the document of this grid for a new shape of the array.

        Chunks do not move. If explicit chunk lengths are too short for the new length, one more chunk is added;
        if they are too long, they stay (the specification allows it).

        Raises
        ------
        MetadataError
            If the grid of another package moves chunks.
        """
        return _RESIZE.get(self.named.name, partial(_resize_other, self))(self.named, shape)


def _lazy_coords(grid_shape: Shape) -> Iterator[Coords]:
    """Like itertools.product, but without making a tuple of each range first."""
    if not grid_shape:
        yield ()
        return
    for number in range(grid_shape[0]):
        for rest in _lazy_coords(grid_shape[1:]):
            yield (number, *rest)


def regular(chunk_shape: Iterable[int]) -> Named:
    """Return the document of a regular grid.

    >>> regular((10, 20))
    Named(name='regular', configuration={'chunk_shape': [10, 20]}, must_understand=True)
    """
    return Named("regular", {"chunk_shape": [int(size) for size in chunk_shape]})


def bind(named: Named, shape: Sequence[int]) -> Grid:
    """Return the grid with a name in documents, for an array of a shape.

    Raises
    ------
    UnknownChunkGridError
        If the name is unknown.
    MetadataError
        If the configuration is broken, or does not fit the shape.

    Examples
    --------
    >>> bind(Named("rectilinear", {"kind": "inline", "chunk_shapes": [[[1, 3], 3]]}), (6,)).grid_shape
    (4,)
    """
    binder = _BINDERS.get(named.name)
    if binder is None and (chunk_lengths := PLUGINS.find(named.name)) is not None:
        binder = partial(_bind_other, chunk_lengths)
    if binder is None:
        raise UnknownChunkGridError(
            "unknown chunk grid",
            pointer="/chunk_grid/name",
            found=named.name,
            expected=" or ".join(map(repr, _BINDERS)),
        )
    return binder(named, tuple(shape))


def resized(named: Named, before: Sequence[int], shape: Shape) -> Named:
    """Return what `Grid.resized` of the grid for an array of the shape `before` does, in less time for regular ones.

    >>> resized(regular((10, 20)), (3, 5), (33, 5))
    Named(name='regular', configuration={'chunk_shape': [10, 20]}, must_understand=True)
    """
    if named.name == "regular":
        sizes: Any = named.configuration.get("chunk_shape")
        is_plain = type(sizes) is list and len(sizes) == len(shape) and len(named.configuration) == 1
        if is_plain and all([type(size) is int and size > 0 for size in sizes]):  # noqa: C419 - twice as fast
            return named
    return bind(named, before).resized(shape)


def _bind_regular(named: Named, shape: Shape) -> Grid:
    (sizes,) = _members(named, ("chunk_shape",), _REGULAR)
    sizes = _one_per_dimension(sizes, shape, "chunk_shape", _REGULAR)
    if set(map(type, sizes)) != {int} or min(sizes) < 1:
        for number, (size, length) in enumerate(zip(sizes, shape, strict=True)):
            # Zarr v2 writers divide dimensions of length 0 into chunks of length 0.
            _check_size(size, f"/chunk_shape/{number}", _REGULAR, at_least=0 if length == 0 else 1)
    return Grid(named, shape, tuple(sizes), tuple(map(_even_axis, shape, sizes)))


def _bind_bounded(named: Named, shape: Shape) -> Grid:
    """Bind the grid of zarrs: regular, but the array's edge cuts the last chunks."""
    (sizes,) = _members(named, ("chunk_shape",), _BOUNDED)
    sizes = _one_per_dimension(sizes, shape, "chunk_shape", _BOUNDED)
    for number, size in enumerate(sizes):
        _check_size(size, f"/chunk_shape/{number}", _BOUNDED)
    rows = [[[size, length // size]] * (length >= size) + [length % size] * bool(length % size)
            for length, size in zip(shape, sizes, strict=True)]  # fmt: skip
    return _of_rows(named, shape, rows)


def _bind_rectilinear(named: Named, shape: Shape) -> Grid:
    kind, rows = _members(named, ("kind", "chunk_shapes"), _RECTILINEAR)
    if kind != "inline":
        raise _wrong("unknown kind of rectilinear grid", "/kind", kind, "'inline'", _RECTILINEAR)
    rows = _one_per_dimension(rows, shape, "chunk_shapes", _RECTILINEAR)
    return _of_rows(named, shape, rows)


def _bind_other(chunk_lengths: Callable[..., Any], named: Named, shape: Shape) -> Grid:
    rows = PLUGINS.bound(named, chunk_lengths, shape)
    try:
        return _of_rows(named, shape, _one_per_dimension(rows, shape, "chunk_shapes", _RECTILINEAR))
    except MetadataError as error:
        raise PLUGINS.refuse(named, error.found, f"chunk lengths for shape {list(shape)}: {error.message}") from error


def _of_rows(named: Named, shape: Shape, rows: Sequence[Any]) -> Grid:
    """Return the grid with an integer, or a list of integers and runs, for each dimension."""
    axes = tuple(
        _uneven_axis(length, row, f"/chunk_shapes/{number}")
        for number, (length, row) in enumerate(zip(shape, rows, strict=True))
    )
    sizes = tuple(axis.size or (row if isinstance(row, int) else 0) for axis, row in zip(axes, rows, strict=True))
    return Grid(named, shape, sizes if all(sizes) else None, axes)


@lru_cache(maxsize=4096)
def _even_axis(length: int, size: int) -> Axis:
    if not length:
        return Axis(0, ())
    return Axis(length, (Segment(0, 0, size, -(-length // size)),))


def _uneven_axis(length: int, row: Any, pointer: str) -> Axis:
    """Bind one element of `chunk_shapes`: an integer, or a list of integers and runs."""
    if not isinstance(row, (list, tuple)):
        _check_size(row, pointer, _RECTILINEAR)
        return _even_axis(length, row)
    if len(row) < _MANY:
        return _axis_of_runs(length, row, pointer)
    return _long_axes.get((length, row), lambda: _axis_of_many(length, row, pointer))


_long_axes: Final[Memo[Axis]] = Memo(most=2, most_bytes=2**24, plain=True)
"""Those of long lists, by their values: opening, reading and appending ask for the same one."""


def _axis_of_many(length: int, row: Sequence[Any], pointer: str) -> Axis:
    columns = _columns(row)
    return _axis_of_runs(length, row, pointer) if columns is None else _axis_of_columns(length, *columns, pointer)


def _axis_of_runs(length: int, row: Sequence[Any], pointer: str) -> Axis:
    segments: list[Segment] = []
    start = first = 0
    for size, count in _runs(row, pointer):
        if start < length:
            used = min(count, -(-(length - start) // size))
            if segments and segments[-1].size == size:
                segments[-1] = segments[-1]._replace(chunks=segments[-1].chunks + used)
            else:
                segments.append(Segment(start, first, size, used))
            first += used
        start += size * count
    if start < length:
        raise _wrong("chunks do not reach the array's edge", pointer, f"{start} elements", length, _RECTILINEAR)
    return Axis(length, tuple(segments))


def _columns(row: Sequence[Any]) -> tuple[Integers, Integers] | None:
    """Return the sizes and counts of a list of chunk lengths; None for one that `_runs` refuses, or for large numbers.

    It takes a tenth of the time.
    """
    pairs = [(item, 1) if type(item) is int else item for item in row]
    if not set(map(type, pairs)) <= {tuple, list} or set(map(len, pairs)) != {2}:
        return None
    numbers = list(chain.from_iterable(pairs))
    if set(map(type, numbers)) != {int} or min(numbers) < 1 or max(numbers) >= _INT64_END:
        return None
    table = np.array(numbers, np.int64).reshape(-1, 2)
    sizes, counts = table[:, 0], table[:, 1]
    return (sizes, counts) if np.dot(sizes.astype(float), counts.astype(float)) < _INT64_END // 2 else None


def _axis_of_columns(length: int, sizes: Integers, counts: Integers, pointer: str) -> Axis:
    """Bind the sizes and counts of runs of chunks, side by side."""
    begins = np.flatnonzero(np.diff(sizes, prepend=0))  # sizes are at least 1
    sizes, counts = sizes[begins], np.add.reduceat(counts, begins)
    stops = np.cumsum(sizes * counts)
    if stops[-1] < length:
        raise _wrong("chunks do not reach the array's edge", pointer, f"{stops[-1]} elements", length, _RECTILINEAR)
    starts = stops - sizes * counts
    used = int(np.searchsorted(starts, length))
    if not used:
        return Axis(0, ())
    starts, sizes, counts = starts[:used], sizes[:used], counts[:used]
    counts[-1] = -(-(length - starts[-1]) // sizes[-1])
    firsts = np.cumsum(counts) - counts
    columns = (each.tolist() for each in (starts, firsts, sizes, counts))
    return Axis(length, tuple(map(_segment, zip(*columns, strict=True))))


_segment: Final[Callable[[tuple[int, ...]], Segment]] = partial(tuple.__new__, Segment)
"""`Segment._make`, without a call of Python."""


def _runs(row: Sequence[Any], pointer: str) -> Iterator[tuple[int, int]]:
    """Yield (size, count) for each element of a list of chunk lengths."""
    for number, item in enumerate(row):
        size, count = item, 1
        if isinstance(item, (list, tuple)):
            if len(item) != 2:
                raise _wrong("no run of chunks", f"{pointer}/{number}", item, "[length, count]", _RECTILINEAR)
            size, count = item
            _check_size(count, f"{pointer}/{number}/1", _RECTILINEAR)
            _check_size(size, f"{pointer}/{number}/0", _RECTILINEAR)
        else:
            _check_size(size, f"{pointer}/{number}", _RECTILINEAR)
        yield size, count


def _members(named: Named, names: tuple[str, ...], spec: str) -> list[Any]:
    """Return the members of a configuration. All must exist, and no others."""
    configuration: Mapping[str, JSON] = named.configuration
    missing = [name for name in names if name not in configuration]
    unknown = sorted(set(configuration) - set(names))
    if missing or unknown:
        message = f"{'missing' if missing else 'unknown'} member of the configuration of grid {named.name!r}"
        pointer = f"/{missing[0]}" if missing else f"/{unknown[0]}"
        raise _wrong(message, pointer, sorted(configuration), list(names), spec)
    return [configuration[name] for name in names]


def _one_per_dimension(values: Any, shape: Shape, member: str, spec: str) -> Sequence[Any]:
    if isinstance(values, (list, tuple)) and len(values) == len(shape):
        return values
    expected = f"{len(shape)} of them, one per dimension of shape {list(shape)}"
    raise _wrong("no list of chunk lengths for this array", f"/{member}", values, expected, spec)


def _check_size(size: object, pointer: str, spec: str, at_least: int = 1) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < at_least:
        raise _wrong("not a possible length", pointer, size, f"an integer, at least {at_least}", spec)


def _wrong(message: str, pointer: str, found: object, expected: object, spec: str) -> MetadataError:
    found = repr(found) if isinstance(found, str) or found is None else found
    return MetadataError(message, pointer=_POINTER + pointer, found=found, expected=expected, spec=spec)


def _resize_regular(named: Named, shape: Shape) -> Named:
    sizes: Any = named.configuration["chunk_shape"]
    grown = [size or length for size, length in zip(sizes, shape, strict=True)]  # a chunk of length 0 has no elements
    return named if grown == list(sizes) else regular(grown)


def _resize_rectilinear(named: Named, shape: Shape) -> Named:
    rows: Any = named.configuration["chunk_shapes"]
    return Named(
        named.name,
        {**named.configuration, "chunk_shapes": [_lengthen(row, n) for row, n in zip(rows, shape, strict=True)]},
        named.must_understand,
    )


def _resize_other(grid: Grid, named: Named, shape: Shape) -> Named:
    for before, after in zip(grid.axes, bind(named, shape).axes, strict=True):
        common = min(before.length, after.length)
        if common and _starts(before, common) != _starts(after, common):
            raise PLUGINS.refuse(named, f"other chunks for shape {list(shape)}", "chunks that stay where they are")
    return named


def _starts(axis: Axis, length: int) -> list[tuple[int, int, int]]:
    """Return start, number and size of the chunks that lie in the first elements: of the first chunk of each run."""
    return [segment[:3] for segment in axis.segments_between(0, length - 1)]


def _lengthen(row: Any, length: int) -> Any:
    if not isinstance(row, (list, tuple)):
        return row
    there = sum(item if isinstance(item, int) else item[0] * item[1] for item in row)  # a grid was made of them
    missing = length - there
    return [*row, missing] if missing > 0 else row


PLUGINS: Final[Plugins[Callable[[Mapping[str, JSON], Shape], Any]]] = Plugins(
    "omnizarr.chunk_grids", "chunk grid", "/chunk_grid"
)
_BINDERS: Final[Mapping[str, Callable[[Named, Shape], Grid]]] = {
    "regular": _bind_regular,
    "rectilinear": _bind_rectilinear,
    "zarrs.regular_bounded": _bind_bounded,
}
_RESIZE: Final[Mapping[str, Callable[[Named, Shape], Named]]] = {
    "regular": _resize_regular,
    "rectilinear": _resize_rectilinear,
}
