"""Blocks of whole chunks that fit in memory, laid so that the chunks of another grid are read few times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, islice, product
from typing import Final, TypeAlias

from omnizarr.model.grids import Coords, Grid

Box: TypeAlias = tuple[slice, ...]
"""Part of an array: a slice with explicit ends for each dimension."""

_SMALL: Final = 8 * 1024 * 1024
"""Minimum bytes of a region."""
_MOST_CHUNKS: Final = 4096
"""Chunks of a region that is made larger because it is small."""
_MOST_COVERING: Final = 2**16
"""Chunks of a region that is as large as a chunk of the other grid: each takes some memory while it is read."""
_MOST_MARKS: Final = 2**24
"""From this number of regions on, the wanted regions are remembered one by one."""
_WIDE: Final = 4096
"""From this number of regions on, a box is remembered instead of the numbers of the regions."""


@dataclass(frozen=True, slots=True)
class Regions:
    """The chunks of a grid, joined in groups of this many.

    Attributes
    ----------
    grid : Grid
    per_axis : tuple of int
        Chunks in one region along each dimension.
    counts : tuple of int
        Regions along each dimension.
    """

    grid: Grid
    per_axis: tuple[int, ...]
    counts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        counts = (-(-axis.count // step) for axis, step in zip(self.grid.axes, self.per_axis, strict=True))
        object.__setattr__(self, "counts", tuple(counts))

    @property
    def total(self) -> int:
        """Number of regions."""
        return math.prod(self.counts)

    def box(self, number: int) -> Box:
        """Return the part of the array that a region covers."""
        ends = []
        for axis, step, at in zip(self.grid.axes, self.per_axis, self._index(number), strict=True):
            last = min((at + 1) * step, axis.count) - 1
            ends.append(slice(axis.chunk(at * step)[0], min(sum(axis.chunk(last)), axis.length)))
        return tuple(ends)

    def chunks(self, number: int) -> Iterator[Coords]:
        """Return an iterator over the coordinates of the chunks in a region."""
        return product(
            *(
                range(at * step, min((at + 1) * step, axis.count))
                for axis, step, at in zip(self.grid.axes, self.per_axis, self._index(number), strict=True)
            )
        )

    def touched(self, box: Box) -> Iterator[int]:
        """Yield the numbers of the regions that a part of the array is in."""
        ranges = []
        for axis, step, part in zip(self.grid.axes, self.per_axis, box, strict=True):
            if part.stop <= part.start:
                return
            ranges.append(range(axis.find(part.start)[0] // step, axis.find(part.stop - 1)[0] // step + 1))
        for index in _product(ranges):
            yield self._number(index)

    def holding(self, boxes: Iterable[Box]) -> Iterator[int]:
        """Yield, each once and in order, the numbers of the regions that any of the boxes is in.

        Takes memory for regions that are held, not for boxes; of boxes in very many regions, for boxes.
        """
        if self.total > _MOST_MARKS:
            yield from self._merged(boxes)
            return
        marks = bytearray(self.total)
        for box in boxes:
            for number in self.touched(box):
                marks[number] = 1
        at = marks.find(1)
        while at >= 0:
            yield at
            at = marks.find(1, at + 1)

    def _merged(self, boxes: Iterable[Box]) -> Iterator[int]:
        """Yield the same numbers, each when it is due: a box can be in more regions than there is memory for."""
        numbers: set[int] = set()
        wide: list[Iterator[int]] = []
        for box in boxes:
            touched = self.touched(box)
            few = list(islice(touched, _WIDE))
            if len(few) == _WIDE:
                wide.append(chain(few, touched))
            else:
                numbers.update(few)
        last = -1
        for number in merge(sorted(numbers), *wide):
            if number != last:
                yield number
            last = number

    def _index(self, number: int) -> Coords:
        index = []
        for count in reversed(self.counts):
            number, at = divmod(number, count)
            index.append(at)
        return tuple(reversed(index))

    def _number(self, index: Coords) -> int:
        number = 0
        for at, count in zip(index, self.counts, strict=True):
            number = number * count + at
        return number


def _product(ranges: Sequence[range]) -> Iterator[Coords]:
    """Like itertools.product, which makes a tuple of each range first, and a long one takes the memory."""
    if max(map(len, ranges), default=0) <= _WIDE:
        yield from product(*ranges)
        return
    for at in ranges[0]:
        for rest in _product(ranges[1:]):
            yield (at, *rest)


def plan(grid: Grid, other: Grid, item_bytes: int, budget: int, workers: int = 1) -> Regions:
    """Return regions of a grid that hold no more than `budget` bytes, or one chunk.

    Within that they are as large along each dimension as the chunks of `other`, the grid that is read from. Regions
    that are still small, or have fewer chunks than there are threads, are made larger.

    Examples
    --------
    >>> from omnizarr.model import grids
    >>> days = grids.bind(grids.regular((1, 100, 100)), (365, 100, 100))
    >>> points = grids.bind(grids.regular((365, 10, 10)), (365, 100, 100))
    >>> plan(points, days, 4, 64 * 2**20).per_axis, plan(points, days, 4, 2**20).per_axis
    ((1, 10, 10), (1, 1, 7))
    """
    sizes = [max((*axis.sizes, 1)) for axis in grid.axes]
    lengths = [min(size, axis.length or 1) for size, axis in zip(sizes, grid.axes, strict=True)]
    chunk_bytes = max(item_bytes * math.prod(lengths), 1)
    per_axis = [1] * len(grid.axes)
    for wanted in (_covering(grid, other, sizes), _aligned(grid, other, sizes)):
        _grow(per_axis, wanted, grid, min(budget // chunk_bytes, _MOST_COVERING))
    worth = min(budget, max(_SMALL, workers * chunk_bytes)) // chunk_bytes
    _grow(per_axis, list(grid.grid_shape), grid, min(worth, max(_MOST_CHUNKS, workers)))
    return Regions(grid, tuple(per_axis))


def _grow(per_axis: list[int], wanted: list[int], grid: Grid, most: int) -> None:
    """Make regions longer, the last dimension first, up to a number of chunks."""
    room = most // math.prod(per_axis)
    for at in reversed(range(len(per_axis))):
        step = min(wanted[at], per_axis[at] * room)
        if step < grid.grid_shape[at]:
            step -= step % per_axis[at]  # regions that end at chunks of the other grid keep doing so
        if step > per_axis[at]:
            room //= -(-step // per_axis[at])
            per_axis[at] = step


def _covering(grid: Grid, other: Grid, sizes: list[int]) -> list[int]:
    """Return how many chunks it takes, along each dimension, to be as long as a chunk of the other grid."""
    return [
        min(-(-max((*theirs.sizes, 1)) // size), max(ours.count, 1))
        for ours, theirs, size in zip(grid.axes, other.axes, sizes, strict=True)
    ]


def _aligned(grid: Grid, other: Grid, sizes: list[int]) -> list[int]:
    """Return how many chunks it takes, along each dimension, to end where a chunk of the other grid does."""
    return [
        min(math.lcm(size, max((*theirs.sizes, 1))) // size, max(ours.count, 1))
        for ours, theirs, size in zip(grid.axes, other.axes, sizes, strict=True)
    ]
