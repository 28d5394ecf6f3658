"""Plans: all chunks that a selection touches, and what of each goes where.

Along each dimension a selection is a *part*: how many chunks it touches there, and for
each of them the number, the selection within, the place in the buffer, and whether it is
covered. The pieces of a plan are the product of its parts. `itertools` walks it, so that
a piece costs a fraction of a microsecond and no Python function runs for it.
"""

from __future__ import annotations

import itertools
import math
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from omnizarr.grids import Axis

Integers: TypeAlias = NDArray[np.int64]
Selector: TypeAlias = "slice | Integers"
Columns: TypeAlias = tuple[Sequence[int], Sequence[Selector], Sequence[Selector], Sequence[bool]]
"""Chunk numbers, selections within the chunks, places in the buffer, whether chunks are covered."""

# Columns are made for so many chunks at a time: an array may have more chunks than memory has bytes.
_WINDOW: Final = 2**14


class Piece(NamedTuple):
    """What a plan says about one chunk.

    Selections have one item per dimension of what they select from; slices have explicit integers.
    """

    coords: tuple[int, ...]
    """Of the chunk, in the grid."""
    chunk_selection: tuple[Any, ...]
    """Within the chunk: slices with positive steps (stop never past the array's edge) or integer arrays,
    which stand side by side and broadcast with each other."""
    out_selection: tuple[Any, ...]
    """Within the buffer: slices of any step, or integer arrays likewise.
    ``buffer[out_selection].shape == chunk[chunk_selection].shape``."""
    whole: bool
    """Every element of the chunk that lies inside the array is selected, in C order."""


class Pieces(Protocol):
    """The pieces of a plan, made as they are asked for."""

    def __iter__(self) -> Iterator[Piece]:
        """Return an iterator over the pieces, one per chunk touched."""

    def __len__(self) -> int:
        """Return the number of pieces (``sys.maxsize`` if there are more)."""


class Plan:
    """All chunks that a selection touches.

    Each element of the buffer belongs to exactly one piece, and each chunk to at most one. An
    iteration may be repeated, and may stop at any time. An element of the array may be asked
    for more than once (by a list); written so, it gets the last of its values.

    Parameters
    ----------
    buffer_shape : tuple of int
        Of the buffer that the pieces fill, or take their values from.
    shape : tuple of int
        Of what the user gets: ``buffer.reshape(shape)``. Indexing with an integer drops an
        axis here, and ``numpy.newaxis`` adds one; the buffer knows of neither.
    pieces : Pieces
    """

    __slots__ = ("buffer_shape", "pieces", "shape")

    def __init__(self, buffer_shape: tuple[int, ...], shape: tuple[int, ...], pieces: Pieces) -> None:
        self.buffer_shape = buffer_shape
        self.shape = shape
        self.pieces = pieces

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"Plan(buffer_shape={self.buffer_shape}, shape={self.shape}, {len(self)} pieces)"

    @property
    def whole(self) -> bool:
        """Whether every chunk touched is covered. Costs as much as an iteration that stops at the first that is not."""
        return all(piece[3] for piece in self.pieces)


class Fixed(NamedTuple):
    """A part whose columns are at hand."""

    numbers: Sequence[int]
    inner: Sequence[Selector]
    outer: Sequence[Selector]
    wholes: Sequence[bool]
    arrays: tuple[bool, bool] = (False, False)
    """Whether there are arrays in `inner`, and in `outer`."""

    @property
    def chunks(self) -> int:
        """Number of chunks touched."""
        return len(self.numbers)

    def columns(self, start: int, stop: int) -> Columns:
        """Return the columns of some of the chunks touched, counted from 0."""
        numbers, inner, outer, wholes, _ = self
        if stop - start == len(numbers):
            return numbers, inner, outer, wholes
        return numbers[start:stop], inner[start:stop], outer[start:stop], wholes[start:stop]


class Run(NamedTuple):
    """A part that touches several chunks of one size: elements at a constant, positive step."""

    first: int
    """Number of the chunk that lies at `origin`."""
    size: int
    """Elements per chunk."""
    visible: int
    """Elements of the array from `origin` on."""
    start: int
    """First element, from `origin`."""
    step: int
    """Positive."""
    points: int
    """Number of elements."""
    out: int
    """Place of the first element in the buffer, counted in the direction of the run."""
    flip: int
    """Length of the buffer if the run fills it backwards, else 0."""

    @property
    def arrays(self) -> tuple[bool, bool]:
        """Whether there are arrays among the selectors: none."""
        return False, False

    @property
    def chunks(self) -> int:
        """Number of chunks touched."""
        if self.step > self.size:
            return self.points  # no two of them in one chunk
        return (self.start + (self.points - 1) * self.step) // self.size - self.start // self.size + 1

    def columns(self, start: int, stop: int) -> Columns:
        """Return the columns of some of the chunks touched, counted from 0."""
        if self.step == 1:
            numbers, inner, outer, wholes = self._dense(start, stop)
        else:
            numbers, inner, outer, wholes = self._sparse(start, stop)
        if self.flip:
            outer = [_flipped(selector, self.flip) for selector in outer]
        return numbers, inner, outer, wholes

    def _dense(self, start: int, stop: int) -> tuple[Sequence[int], list[slice], list[slice], list[bool]]:
        """Make columns for step 1. Only the first and the last chunk can be cut."""
        size = self.size
        chunk = self.start // size
        head = self.start - chunk * size  # places within the first chunk touched
        tail = head + self.points
        shift = self.out - head
        chunks = stop - start
        inner = [slice(0, size, 1)] * chunks
        outer = [slice(at, at + size, 1) for at in range(start * size + shift, stop * size + shift, size)]
        wholes = [True] * chunks
        for at in {0, chunks - 1}:
            base = (start + at) * size
            low, high = max(head - base, 0), min(tail - base, size)
            inner[at] = slice(low, high, 1)
            outer[at] = slice(base + low + shift, base + high + shift, 1)
            wholes[at] = high - low == min(size, self.visible - chunk * size - base)
        first = self.first + chunk
        return range(first + start, first + stop), inner, outer, wholes

    def _sparse(self, start: int, stop: int) -> tuple[list[int], list[slice], list[slice], list[bool]]:
        numbers, inner, outer, wholes = [], [], [], []
        size, step = self.size, self.step
        for at in range(start, stop):
            # The chunk at hand is that of the first point if chunks are long, that of the nth if steps are.
            chunk = self.start // size + at if step <= size else (self.start + at * step) // size
            base = chunk * size
            low = max(0, -((self.start - base) // step))
            high = min(self.points, -((self.start - base - size) // step))
            place = self.start + low * step - base
            numbers.append(self.first + chunk)
            inner.append(slice(place, place + (high - low - 1) * step + 1, step))
            outer.append(slice(self.out + low, self.out + high, 1))
            wholes.append(high - low == min(size, self.visible - base))
        return numbers, inner, outer, wholes


class Chain:
    """A part made of several runs, over chunks of several sizes."""

    __slots__ = ("_ends", "_runs")

    arrays = (False, False)

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._ends = list(itertools.accumulate(run.chunks for run in runs))

    @property
    def chunks(self) -> int:
        """Number of chunks touched."""
        return self._ends[-1]

    def columns(self, start: int, stop: int) -> Columns:
        """Return the columns of some of the chunks touched, counted from 0."""
        at = bisect_right(self._ends, start)
        columns: tuple[list[Any], list[Any], list[Any], list[Any]] = ([], [], [], [])
        while start < stop:
            run, end = self._runs[at], self._ends[at]
            base = end - run.chunks
            for column, more in zip(columns, run.columns(start - base, min(stop, end) - base), strict=True):
                column.extend(more)
            start = end
            at += 1
        return columns


Part: TypeAlias = "Fixed | Run | Chain"


def _flipped(selector: slice, length: int) -> slice:
    """Return where the elements of a slice (step 1) lie in a buffer that is filled backwards."""
    stop = length - 1 - selector.stop
    return slice(length - 1 - selector.start, stop if stop >= 0 else None, -1)


def strided(axis: Axis, start: int, step: int, points: int, *, backwards: bool = False) -> Part:
    """Return the part that selects `points` elements from `start` on, at a positive step.

    The elements fill the buffer from its end if `backwards`.
    """
    if not points:
        return Fixed((), (), (), ())
    last = start + (points - 1) * step
    number, base, size = axis.find(start)
    if last < base + size:
        outer = slice(points - 1, None, -1) if backwards else slice(0, points, 1)
        whole = points == min(size, axis.length - base)
        return Fixed((number,), (slice(start - base, last - base + 1, step),), (outer,), (whole,))
    runs = []
    flip = points if backwards else 0
    done = 0
    for origin, first, size, chunks in axis.segments_between(start, last):
        here = min(points - done, -((start + done * step - origin - size * chunks) // step))
        if here > 0:
            begin = start + done * step - origin
            runs.append(Run(first, size, axis.length - origin, begin, step, here, done, flip))
            done += here
    return runs[0] if len(runs) == 1 else Chain(runs)


_make_piece = partial(tuple.__new__, Piece)


class Product:
    """The pieces of a plan that is a product of parts, one per dimension."""

    __slots__ = ("_inner_span", "_outer_span", "_parts")

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._inner_span = _span([part.arrays[0] for part in parts])
        self._outer_span = _span([part.arrays[1] for part in parts])

    def __len__(self) -> int:
        return min(math.prod(part.chunks for part in self._parts), sys.maxsize)

    def __iter__(self) -> Iterator[Piece]:
        counts = [part.chunks for part in self._parts]
        if max(counts, default=0) <= _WINDOW:
            return self._pieces([(0, count) for count in counts])
        return itertools.chain.from_iterable(map(self._pieces, _windows(counts)))

    def _pieces(self, window: Iterable[tuple[int, int]]) -> Iterator[Piece]:
        columns = [part.columns(*bounds) for part, bounds in zip(self._parts, window, strict=True)]
        inner: list[Sequence[Selector]] = [column[1] for column in columns]
        outer: list[Sequence[Selector]] = [column[2] for column in columns]
        if self._inner_span:
            _open_mesh(inner, self._inner_span)
        if self._outer_span:
            _open_mesh(outer, self._outer_span)
        pieces = zip(
            itertools.product(*[column[0] for column in columns]),
            itertools.product(*inner),
            itertools.product(*outer),
            map(all, itertools.product(*[column[3] for column in columns])),
            strict=True,
        )
        return cast("Iterator[Piece]", map(_make_piece, pieces))


def _windows(counts: Sequence[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Divide a box of chunks into boxes of at most `_WINDOW` along each dimension."""
    if not counts:
        yield ()
        return
    for start in range(0, counts[0], _WINDOW):
        for rest in _windows(counts[1:]):
            yield ((start, min(start + _WINDOW, counts[0])), *rest)


def _span(arrays: Sequence[bool]) -> range:
    """Return the axes from the first to the last that is selected from by arrays; nothing if there is only one.

    NumPy selects from each of several axes independently only if all of them are given as arrays of an
    open mesh, and leaves them in their place only if no slice stands between them.
    """
    axes = [axis for axis, is_array in enumerate(arrays) if is_array]
    return range(axes[0], axes[-1] + 1) if len(axes) > 1 else range(0)


def _open_mesh(columns: list[Sequence[Selector]], span: range) -> None:
    """Turn the selectors of the axes in a span into arrays as `numpy.ix_` makes them."""
    for axis in span:
        shape = [1] * len(span)
        shape[axis - span.start] = -1
        columns[axis] = [as_array(selector).reshape(shape) for selector in columns[axis]]


def as_array(selector: Selector) -> Integers:
    """Return the elements that a selector selects."""
    if isinstance(selector, slice):
        stop = -1 if selector.stop is None else selector.stop  # only backwards, to the very first element
        return np.arange(selector.start, stop, selector.step, dtype=np.int64)
    return selector


class Points:
    """The pieces of a plan that selects single elements.

    Parameters
    ----------
    coords : sequence of arrays
        Chunk numbers along each dimension, one item per piece.
    bounds : sequence of int
        Piece ``i`` has the points ``bounds[i]`` to ``bounds[i + 1]``.
    places : sequence of arrays
        Places within the chunks along each dimension, one item per point.
    order : array, optional
        Places of the points in the buffer; None: one after the other.
    """

    __slots__ = ("_bounds", "_coords", "_order", "_places")

    def __init__(
        self, coords: Sequence[Integers], bounds: Sequence[int], places: Sequence[Integers], order: Integers | None
    ) -> None:
        self._coords = coords
        self._bounds = bounds
        self._places = places
        self._order = order

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __iter__(self) -> Iterator[Piece]:
        coords = zip(*(column.tolist() for column in self._coords), strict=True)
        for at, (start, stop) in zip(coords, itertools.pairwise(self._bounds), strict=True):
            out = slice(start, stop, 1) if self._order is None else self._order[start:stop]
            yield Piece(at, tuple([places[start:stop] for places in self._places]), (out,), whole=False)
