"""Plans: all chunks that a selection touches, with a map of chunk regions to output regions.

Along each dimension, a selection is a *part*: the number of chunks that it touches, and for each of them the
chunk number, the selection within, the place in the buffer, and whether the chunk is covered. The pieces of a
plan are the product of its parts. `itertools` iterates over it, so that a piece costs a fraction of a
microsecond and no call of a Python function.
"""

from __future__ import annotations

import itertools
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from omnizarr.model.grids import Axis, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
Selector: TypeAlias = "slice | Integers"
Columns: TypeAlias = tuple[Sequence[int], Sequence[Selector], Sequence[Selector], Sequence[bool]]
"""Chunk numbers, selections within the chunks, places in the buffer, whether chunks are covered."""

# Number of chunks for which columns are made at once: an array may have more chunks than memory has bytes.
_WINDOW: Final = 2**14


class Piece(NamedTuple):
    """The plan for one chunk.

    Selections have one item per dimension of the array that they select from. Slices have explicit integers.
    """

    coords: tuple[int, ...]
    """Coordinates of the chunk in the grid."""
    chunk_selection: tuple[Any, ...]
    """Selection within the chunk: slices with positive steps (stop never past the array's edge) or integer arrays.

    The arrays broadcast with each other, either as an open mesh of adjacent arrays, or as points: 1-d, with slices
    anywhere."""
    out_selection: tuple[Any, ...]
    """Selection within the buffer: slices of any step, or integer arrays likewise.

    ``buffer[out_selection].shape == chunk[chunk_selection].shape``.
    """
    whole: bool
    """Whether every element of the chunk within the array is selected, in C order."""


class Pieces(Protocol):
    """The pieces of a plan, made when they are needed."""

    def __iter__(self) -> Iterator[Piece]:
        """Return an iterator over the pieces, one for each chunk."""

    def __len__(self) -> int:
        """Return the number of pieces (``sys.maxsize`` if there are more)."""


class Plan:
    """All chunks that a selection touches.

    Each element of the buffer belongs to exactly one piece, and each chunk to at most one. You can repeat an
    iteration, and stop it at any time. A list may select an element of the array more than once; when it is
    written, the last value counts.

    Parameters
    ----------
    buffer_shape : tuple of int
        Shape of the buffer that the pieces fill, or from which they take values.
    shape : tuple of int
        Shape of the user's result: ``buffer.reshape(shape)``. An integer drops an axis here, and
        ``numpy.newaxis`` adds one; neither changes the buffer.
    pieces : Pieces
    turned : (tuple of int, tuple of int), optional
        Lengths and axes, if NumPy's result has its dimensions in another order than the buffer: the user gets
        ``buffer.reshape(lengths).transpose(axes).reshape(shape)``.
    """

    __slots__ = ("buffer_shape", "pieces", "shape", "turned")

    def __init__(
        self,
        buffer_shape: tuple[int, ...],
        shape: tuple[int, ...],
        pieces: Pieces,
        turned: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    ) -> None:
        self.buffer_shape = buffer_shape
        self.shape = shape
        self.pieces = pieces
        self.turned = turned

    def as_result(self, buffer: NDArray[Any]) -> NDArray[Any]:
        """Return a filled buffer as the user's result."""
        if self.turned is not None:
            lengths, axes = self.turned
            buffer = buffer.reshape(lengths).transpose(axes)
        return buffer.reshape(self.shape)

    def as_buffer(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the selection's shape as a buffer. Their additional dimensions stay at the end."""
        tail = values.shape[len(self.shape) :]
        if self.turned is not None:
            lengths, axes = self.turned
            values = values.reshape(*[lengths[axis] for axis in axes], *tail)
            values = values.transpose(*np.argsort(axes), *range(len(axes), values.ndim))
        return values.reshape(self.buffer_shape + tail)

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"Plan(buffer_shape={self.buffer_shape}, shape={self.shape}, {len(self)} pieces)"

    @property
    def whole(self) -> bool:
        """Whether every chunk is covered. Costs as much as an iteration up to the first uncovered chunk."""
        return all(piece[3] for piece in self.pieces)


class Fixed(NamedTuple):
    """A part with all its columns in memory."""

    chunks: int
    """Number of chunks touched."""
    numbers: Sequence[int]
    inner: Sequence[Selector]
    outer: Sequence[Selector]
    wholes: Sequence[bool]
    arrays: tuple[bool, bool] = (False, False)
    """Whether there are arrays in `inner`, and in `outer`."""

    def columns(self, start: int, stop: int) -> Columns:
        """Return the columns of some of the chunks, counted from 0."""
        chunks, numbers, inner, outer, wholes, _ = self
        if stop - start == chunks:
            return numbers, inner, outer, wholes
        return numbers[start:stop], inner[start:stop], outer[start:stop], wholes[start:stop]


class Run(NamedTuple):
    """A part with several chunks of one size: elements at a constant, positive step."""

    chunks: int
    """Number of chunks touched."""
    first: int
    """Number of the chunk at `origin`."""
    size: int
    """Elements per chunk."""
    visible: int
    """Elements of the array from `origin` on."""
    start: int
    """First element, counted from `origin`."""
    step: int
    """Positive."""
    points: int
    """Number of elements."""
    out: int
    """Position of the first element in the buffer, counted in the direction of the run."""
    flip: int
    """Length of the buffer if the run fills it backwards, else 0."""

    def columns(self, start: int, stop: int) -> Columns:
        """Return the columns of some of the chunks, counted from 0."""
        if self.step == 1:
            numbers, inner, outer, wholes = self._dense(start, stop)
        else:
            numbers, inner, outer, wholes = [], [], [], []
            size, step = self.size, self.step
            for at in range(start, stop):
                # If chunks are long, the chunk is that of the first point; if steps are long, that of the nth point.
                chunk = self.start // size + at if step <= size else (self.start + at * step) // size
                base = chunk * size
                low = max(0, -((self.start - base) // step))
                high = min(self.points, -((self.start - base - size) // step))
                place = self.start + low * step - base
                numbers.append(self.first + chunk)
                inner.append(slice(place, place + (high - low - 1) * step + 1, step))
                outer.append(slice(self.out + low, self.out + high, 1))
                wholes.append(high - low == min(size, self.visible - base))
        if self.flip:
            outer = [_flipped(selector, self.flip) for selector in outer]
        return numbers, inner, outer, wholes

    def _dense(self, start: int, stop: int) -> tuple[Sequence[int], list[slice], list[slice], list[bool]]:
        """Return columns for step 1. Only the first and the last chunk can be cut."""
        size, place = self.size, self.start
        chunk = place // size
        head = place - chunk * size  # positions within the first chunk
        tail = head + self.points
        edge = self.visible - chunk * size
        shift = self.out - head
        chunks = stop - start
        base = start * size
        inner = [slice(0, size, 1)] * chunks
        outer = [slice(at, at + size, 1) for at in range(base + shift, base + chunks * size + shift, size)]
        wholes = [True] * chunks
        for at in (0, chunks - 1) if chunks > 1 else (0,):
            base = (start + at) * size
            low = head - base if base < head else 0
            high = tail - base if tail < base + size else size
            inner[at] = slice(low, high, 1)
            outer[at] = slice(base + low + shift, base + high + shift, 1)
            wholes[at] = high - low == size or high - low == edge - base
        first = self.first + chunk + start
        return range(first, first + chunks), inner, outer, wholes


class Chain:
    """A part of several runs, over chunks of several sizes."""

    __slots__ = ("_ends", "chunks", "runs")

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self._ends = list(itertools.accumulate(run.chunks for run in runs))
        self.chunks = self._ends[-1]
        """Number of chunks touched."""

    def columns(self, start: int, stop: int) -> Columns:
        """Return the columns of some of the chunks, counted from 0."""
        at = bisect_right(self._ends, start)
        columns: tuple[list[Any], list[Any], list[Any], list[Any]] = ([], [], [], [])
        while start < stop:
            run, end = self.runs[at], self._ends[at]
            base = end - run.chunks
            for column, more in zip(columns, run.columns(start - base, min(stop, end) - base), strict=True):
                column.extend(more)
            start = end
            at += 1
        return columns


Part: TypeAlias = "Fixed | Run | Chain"


def _flipped(selector: slice, length: int) -> slice:
    """Return the positions of the elements of a slice (step 1) in a buffer that is filled backwards."""
    stop = length - 1 - selector.stop
    return slice(length - 1 - selector.start, stop if stop >= 0 else None, -1)


def strided(axis: Axis, start: int, step: int, points: int, *, backwards: bool = False) -> Part:
    """Return the part that selects `points` elements from `start` on, at a positive step.

    With `backwards`, the elements fill the buffer from its end.
    """
    if not points:
        return Fixed(0, (), (), (), ())
    last = start + (points - 1) * step
    size = axis.size
    if size:
        number = start // size
        base = number * size
    else:
        number, base, size = axis.find(start)
    if last < base + size:
        outer = slice(points - 1, None, -1) if backwards else slice(0, points, 1)
        whole = points == size or points == axis.length - base
        return Fixed(1, (number,), (slice(start - base, last - base + 1, step),), (outer,), (whole,))
    if axis.size:
        return _run(axis.segments[0], axis.length, start, step, points, 0, points if backwards else 0)
    runs = []
    done = 0
    for segment in axis.segments_between(start, last):
        begin = start + done * step
        end = segment.start + segment.size * segment.chunks
        here = min(points - done, -((begin - end) // step))
        if here > 0:
            runs.append(_run(segment, axis.length, begin, step, here, done, points if backwards else 0))
            done += here
    return Chain(runs)


def _run(segment: Segment, length: int, start: int, step: int, points: int, out: int, flip: int) -> Run:
    """Return the run that selects elements of one segment; `start` is counted from the start of the array."""
    origin, first, size, _ = segment
    start -= origin
    # If steps are longer than chunks, no two points are in one chunk.
    chunks = points if step > size else (start + (points - 1) * step) // size - start // size + 1
    return Run(chunks, first, size, length - origin, start, step, points, out, flip)


_make_piece: Final = cast("Callable[[tuple[Any, ...]], Piece]", partial(tuple.__new__, Piece))


class Product:
    """The pieces of a plan that is a product of parts, one per dimension."""

    __slots__ = ("_inner_span", "_outer_span", "parts")

    def __init__(self, parts: Sequence[Part], inner_span: range = range(0), outer_span: range = range(0)) -> None:
        self.parts = parts
        self._inner_span = inner_span
        self._outer_span = outer_span

    def __len__(self) -> int:
        count = 1
        for part in self.parts:
            count *= part.chunks
        return min(count, sys.maxsize)

    def __iter__(self) -> Iterator[Piece]:
        window = []
        for part in self.parts:
            if part.chunks > _WINDOW:
                return itertools.chain.from_iterable(map(self._pieces, _windows([part.chunks for part in self.parts])))
            window.append((0, part.chunks))
        return self._pieces(window)

    def _pieces(self, window: Iterable[tuple[int, int]]) -> Iterator[Piece]:
        numbers, inner, outer, wholes = [], [], [], []
        for part, (start, stop) in zip(self.parts, window, strict=True):
            columns = part.columns(start, stop)
            numbers.append(columns[0])
            inner.append(columns[1])
            outer.append(columns[2])
            wholes.append(columns[3])
        if self._inner_span:
            _open_mesh(inner, self._inner_span)
        if self._outer_span:
            _open_mesh(outer, self._outer_span)
        return map(
            _make_piece,
            zip(product(*numbers), product(*inner), product(*outer), map(all, product(*wholes)), strict=True),
        )


def product_of(parts: Sequence[Part]) -> Product:
    """Return the pieces of parts that may hold arrays."""
    arrays = [part.arrays if isinstance(part, Fixed) else (False, False) for part in parts]
    return Product(parts, _span([inner for inner, _ in arrays]), _span([outer for _, outer in arrays]))


def _windows(counts: Sequence[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Divide a box of chunks into boxes of at most `_WINDOW` along each dimension."""
    if not counts:
        yield ()
        return
    for start in range(0, counts[0], _WINDOW):
        for rest in _windows(counts[1:]):
            yield ((start, min(start + _WINDOW, counts[0])), *rest)


def _span(arrays: Sequence[bool]) -> range:
    """Return the axes from the first to the last with an array; nothing if there is only one.

    NumPy selects independently along several axes only if all of them have arrays of an open mesh, and keeps the
    axes in place only if no slice is between them.
    """
    axes = [axis for axis, is_array in enumerate(arrays) if is_array]
    return range(axes[0], axes[-1] + 1) if len(axes) > 1 else range(0)


def _open_mesh(columns: list[Sequence[Selector]], span: range) -> None:
    """Turn the selectors of the axes in a range into arrays like those of `numpy.ix_`."""
    for axis in span:
        shape = [1] * len(span)
        shape[axis - span.start] = -1
        columns[axis] = [as_array(selector).reshape(shape) for selector in columns[axis]]


def as_array(selector: Selector) -> Integers:
    """Return the indices of a selector as an array."""
    if isinstance(selector, slice):
        stop = -1 if selector.stop is None else selector.stop  # only backwards, down to the first element
        return np.arange(selector.start, stop, selector.step, dtype=np.int64)
    return selector


def place_of_points(axes: Sequence[int]) -> int:
    """Return the position of the points' dimension in NumPy's result, with arrays for axes and slices for all others.

    It replaces the axes if these are adjacent, and is first otherwise.

    >>> place_of_points([1, 2]), place_of_points([1, 3])
    (1, 0)
    """
    return axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0


class Points:
    """The pieces of a plan that selects points along some axes, and slices along the others, if there are any.

    Parameters
    ----------
    axes : sequence of int
        The axes along which points are selected, in ascending order.
    coords : sequence of arrays
        Chunk numbers along each of these axes, one for each chunk with points.
    bounds : sequence of int
        Chunk ``i`` has the points ``bounds[i]`` to ``bounds[i + 1]``.
    places : sequence of arrays
        Positions within the chunks along each of these axes, one for each point.
    order : array, optional
        Positions of the points in the buffer; None: consecutive.
    rest : Product, optional
        The selection along the other axes; None: there are none.
    """

    __slots__ = ("axes", "bounds", "coords", "order", "place", "places", "rest")

    def __init__(
        self,
        axes: Sequence[int],
        coords: Sequence[Integers],
        bounds: Sequence[int],
        places: Sequence[Integers],
        order: Integers | None,
        rest: Product | None = None,
    ) -> None:
        self.axes = axes
        self.coords = coords
        self.bounds = bounds
        self.places = places
        self.order = order
        self.place = place_of_points(axes)
        """Position of the points' dimension in the buffer."""
        self.rest = rest

    def __len__(self) -> int:
        chunks = len(self.bounds) - 1
        return chunks if self.rest is None else min(chunks * len(self.rest), sys.maxsize)

    def __iter__(self) -> Iterator[Piece]:
        return self._points() if self.rest is None else self._among_slices(self.rest)

    def _points(self) -> Iterator[Piece]:
        coords = zip(*(column.tolist() for column in self.coords), strict=True)
        for at, (start, stop) in zip(coords, itertools.pairwise(self.bounds), strict=True):
            out = slice(start, stop, 1) if self.order is None else self.order[start:stop]
            yield Piece(at, tuple([places[start:stop] for places in self.places]), (out,), whole=False)

    def _among_slices(self, rest: Product) -> Iterator[Piece]:
        ndim = len(self.axes) + len(rest.parts)
        others = [axis for axis in range(ndim) if axis not in self.axes]
        # From the axes of the points followed by the others, to all axes in order.
        in_order = [(*self.axes, *others).index(axis) for axis in range(ndim)]
        place = self.place
        each: Iterable[Piece] = list(rest) if len(rest) <= _WINDOW else rest
        for at, places, out, _ in self._points():
            for coords, inner, outer, _ in each:
                numbers, selectors = at + coords, places + inner
                yield Piece(
                    tuple([numbers[axis] for axis in in_order]),
                    tuple([selectors[axis] for axis in in_order]),
                    outer[:place] + out + outer[place:],
                    whole=False,
                )
