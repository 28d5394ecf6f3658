"""Orders: which sample comes when. Any place of an order is computed without those before it.

``"full"`` is a permutation of all samples. ``"blocks"`` puts blocks of samples (those that begin in one chunk, or in
one shard) in random order, and permutes the samples of as many consecutive blocks as `memory` holds, so that each chunk
is read once. All depends only on the arrays, on numbers that the user gives, and on the epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from omnizarr.data.permutations import Permutation, key_of
from omnizarr.data.sources import Field, Part
from omnizarr.errors import SettingError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_MOST_BLOCKS: Final = 2**20
_MOST_SORTED: Final = 2**24
_SHARDS: Final = 8
"""Shards that must be mixed with each other, so that they are the blocks."""
_SHARE: Final = 3
"""The part of the memory that holds the blocks that are mixed: while these are used, the next ones are read."""


class Order(Protocol):
    """The samples of one epoch."""

    @property
    def mixed(self) -> int:
        """Number of samples among which neighbours are drawn."""

    def __call__(self, places: Integers) -> Integers:
        """Return the samples at some places."""


class InOrder:
    """Samples as they are stored."""

    mixed = 1

    def __call__(self, places: Integers) -> Integers:
        """Return the places."""
        return places


class Full:
    """A permutation of all samples."""

    def __init__(self, count: int, key: int) -> None:
        self.mixed = count
        self._permutation = Permutation(count, key)

    def __call__(self, places: Integers) -> Integers:
        """Return the samples at some places."""
        return self._permutation(places)


class Blocks:
    """Blocks in random order, of which some are mixed with each other at a time."""

    def __init__(self, blocks: _OfField, key: int, together: int) -> None:
        self._blocks = blocks
        self._key = key
        sizes = blocks.sizes
        self._order = Permutation(len(sizes), key_of(key, 0))(np.arange(len(sizes)))
        self._ends = np.cumsum(sizes[self._order])
        self._together = together
        lasts = np.minimum(np.arange(together, len(sizes) + together, together), len(sizes)) - 1
        self._window_ends = self._ends[lasts]
        self.mixed = int(np.diff(self._window_ends, prepend=0).max(initial=1))
        self._known: dict[int, Permutation] = {}

    def __call__(self, places: Integers) -> Integers:
        """Return the samples at some places."""
        numbers = np.searchsorted(self._window_ends, places, side="right")
        mixed = np.empty_like(places)
        for number in np.unique(numbers).tolist():
            rows = numbers == number
            start = int(self._window_ends[number - 1]) if number else 0
            mixed[rows] = self._permutation(number, start)(places[rows] - start) + start
        at = np.searchsorted(self._ends, mixed, side="right")
        blocks = self._order[at]
        return self._blocks.samples(blocks, mixed - (self._ends[at] - self._blocks.sizes[blocks]))

    def _permutation(self, number: int, start: int) -> Permutation:
        found = self._known.get(number)
        if found is None:
            if len(self._known) > 1:
                del self._known[min(self._known)]
            found = Permutation(int(self._window_ends[number]) - start, key_of(self._key, 1, number))
            self._known[number] = found
        return found


class _OfPart:
    """The blocks of one part: of a grid of places, boxes of them; of other places, those that begin in one cell."""

    def __init__(self, part: Part, lengths: Sequence[int], epoch: int, most: int) -> None:
        step = part.windows.step
        self._members: Any = None
        if step is None:
            if part.count > _MOST_SORTED:
                raise SettingError(
                    "too many windows at random or given places to group them by chunks",
                    found=part.count,
                    expected=f"at most {_MOST_SORTED}",
                    remedy='use shuffle="full"',
                )
            starts = part.starts(np.arange(part.count, dtype=np.int64), epoch)
            numbers = np.zeros(part.count, dtype=np.int64)
            for axis, n in enumerate(lengths):
                numbers = numbers * -(-part.shape[part.axes[axis]] // n) + starts[:, axis] // n
            self._members = np.argsort(numbers, kind="stable")
            _, self.sizes = np.unique(numbers, return_counts=True)
            self._firsts = np.cumsum(self.sizes) - self.sizes
            return
        self._counts = part.windows.counts
        extents = list(self._counts)
        for axis, n in zip(part.axes, lengths, strict=True):
            extents[axis] = max(1, min(self._counts[axis], round(n / step[axis])))
        grid = [-(-n // each) for n, each in zip(self._counts, extents, strict=True)]
        while math.prod(grid) > most:
            axis = max(range(len(grid)), key=grid.__getitem__)
            extents[axis] *= 2
            grid[axis] = -(-self._counts[axis] // extents[axis])
        self._extents, self._grid = extents, grid
        sizes = np.ones((), dtype=np.int64)
        for n, extent, number in zip(self._counts, extents, grid, strict=True):
            along = np.full(number, extent, dtype=np.int64)
            along[-1:] = n - extent * (number - 1)
            sizes = sizes[..., None] * along
        self.sizes = sizes.reshape(-1)

    def samples(self, blocks: Integers, offsets: Integers) -> Integers:
        """Return the samples at some offsets in blocks."""
        if self._members is not None:
            listed: Integers = self._members[self._firsts[blocks] + offsets]
            return listed
        found = np.zeros_like(offsets)
        coords = np.unravel_index(blocks, self._grid)
        lengths = [
            np.minimum(extent, n - at * extent)
            for n, extent, at in zip(self._counts, self._extents, coords, strict=True)
        ]
        rest = offsets
        stride = 1
        for axis in range(len(self._grid) - 1, -1, -1):
            rest, within = rest // lengths[axis], rest % lengths[axis]
            found += (coords[axis] * self._extents[axis] + within) * stride
            stride *= self._counts[axis]
        return found


class _OfField:
    """The blocks of all parts of a field."""

    def __init__(self, field: Field, make: Callable[[Part, int], _OfPart]) -> None:
        most = max(1, _MOST_BLOCKS // len(field.parts))
        self._parts = [make(part, most) for part in field.parts]
        self.sizes: Integers = np.concatenate([part.sizes for part in self._parts])
        self._firsts = np.cumsum([0, *(len(part.sizes) for part in self._parts)])
        self._samples = [int(end) - part.count for end, part in zip(field.ends, field.parts, strict=True)]

    def samples(self, blocks: Integers, offsets: Integers) -> Integers:
        """Return the samples at some offsets in blocks."""
        if len(self._parts) == 1:
            return self._parts[0].samples(blocks, offsets)
        found = np.empty_like(offsets)
        numbers = np.searchsorted(self._firsts, blocks, side="right") - 1
        for number in np.unique(numbers).tolist():
            rows = numbers == number
            inner = self._parts[number].samples(blocks[rows] - self._firsts[number], offsets[rows])
            found[rows] = inner + self._samples[number]
        return found


def make(fields: Sequence[Field], shuffle: str | None, seed: int, memory: int) -> Callable[[int], Order]:
    """Return the function that makes the order of an epoch."""
    count = fields[0].count
    if shuffle is None:
        return lambda _: InOrder()
    if shuffle == "full":
        return lambda epoch: Full(count, key_of(seed, epoch))
    if shuffle != "blocks":
        raise SettingError("there is no such way to shuffle", found=shuffle, expected='"full", "blocks" or None')
    lead = max(fields, key=lambda field: (not field.is_held, field.sample_nbytes))
    budget = max(0, memory) // _SHARE
    nbytes = sum(field.sample_nbytes for field in fields)

    def lengths_of(part: Part) -> Sequence[int]:
        shards = part.shard_lengths
        if shards is not None:
            per_cell = math.prod(-(-shard // n) for shard, n in zip(shards, part.lengths, strict=True))
            if part.cell_nbytes * per_cell * nbytes * _SHARDS <= budget * max(1, part.sample_nbytes):
                return shards
        return part.lengths

    def of_epoch(epoch: int) -> Order:
        blocks = _OfField(lead, lambda part, most: _OfPart(part, lengths_of(part), epoch, most))
        largest = max(int(blocks.sizes.max(initial=1)), 1)
        at_once = max(largest * nbytes, lead.largest_cell * nbytes // max(1, lead.sample_nbytes), 1)
        if not len(blocks.sizes):
            return InOrder()
        return Blocks(blocks, key_of(seed, epoch), max(1, budget // at_once))

    return of_epoch


def bounds(count: int, rank: int, world: int) -> tuple[int, int]:
    """Return the places of an order that one of several processes has: each place belongs to one.

    >>> [bounds(10, rank, 3) for rank in range(3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    return rank * count // world, (rank + 1) * count // world


def steps_of(count: int, batch: int, rank: int, world: int, *, drop_last: bool) -> int:
    """Return the number of batches that one of several processes has in an epoch."""
    if drop_last:
        return count // world // batch  # the same for all
    start, stop = bounds(count, rank, world)
    return -(-(stop - start) // batch)
