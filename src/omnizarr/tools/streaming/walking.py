"""Walking through the elements of arrays in blocks of whole chunks, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from omnizarr.codecs.contract import AnyArray, ChunkPolicy
from omnizarr.engine import Binding, budget
from omnizarr.errors import OmnizarrError, Wording
from omnizarr.model import ArrayMetadata
from omnizarr.model.grids import Grid
from omnizarr.nodes.location import StorePath
from omnizarr.stores import pool
from omnizarr.tools.streaming.chunks import Chunks, Listing, fine, read
from omnizarr.tools.streaming.regions import Box, Regions, plan


@dataclass(frozen=True, slots=True)
class Effort:
    """How much may be done at a time.

    Attributes
    ----------
    max_memory : int, optional
        Bytes of elements in memory at a time; default: 96 MiB, or the setting `bytes_in_flight` if it is less; unless
        one chunk has more.
    concurrency : int, optional
        Chunks in flight at a time.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    """

    max_memory: int | None = None
    concurrency: int | None = None
    allow_pickle: bool = False

    def __post_init__(self) -> None:
        for name in ("max_memory", "concurrency"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}={value}: expected at least 1")

    @property
    def memory(self) -> int:
        """Bytes of elements in memory at a time."""
        return self.max_memory or budget.for_blocks()


@dataclass(frozen=True)
class Elements:
    """The elements of an array, to be read in this process or in another one.

    `known` are the keys that are stored below the array, relative to it, if they are known.
    """

    where: StorePath
    metadata: ArrayMetadata
    effort: Effort
    known: tuple[str, ...] | None = None

    def __reduce__(self) -> tuple[type[Elements], tuple[Any, ...]]:
        return type(self), (self.where, self.metadata, self.effort, self.known)

    @cached_property
    def chunks(self) -> Chunks:
        """Where its chunks are."""
        return Chunks.of(self.where, self.metadata, known=self.known)

    def values_bytes(self) -> int:
        """Return roughly how much memory all of them take; 0 if that is unknown."""
        try:
            return self.chunks.values_bytes()
        except OmnizarrError:
            return 0

    def bind(self) -> Binding:
        """Return what reading them needs; raises what `omnizarr.engine.bind` raises."""
        return self._bound

    @cached_property
    def _bound(self) -> Binding:
        return self.chunks.bind(ChunkPolicy(missing="fill", allow_pickle=self.effort.allow_pickle))

    def reader(self, at_once: int) -> Callable[[Box], AnyArray]:
        """Return a function that reads a box, for `at_once` threads that call it concurrently."""
        binding = self.bind()
        listing = Listing(binding)
        in_flight = self.effort.concurrency or max(pool.default_concurrency(), self.where.store.features.concurrency)
        concurrency = max(1, in_flight // at_once)

        def read_box(box: Box) -> AnyArray:
            try:
                return read(binding, box, concurrency, listing=listing)
            except OmnizarrError as error:
                raise error.add(store=str(self.where.store), path=self.where.path)

        return read_box


class Walk(NamedTuple):
    """How an array is walked through.

    Attributes
    ----------
    regions : Regions
        The blocks.
    at_once : int
        Number of threads, each of which reads and processes a block.
    """

    regions: Regions
    at_once: int

    def holding(self, arrays: Iterable[Elements]) -> Iterator[int]:
        """Yield, in order, the blocks that hold a stored chunk of any of the arrays."""
        return BlocksToVisit(self, arrays).numbers


class BlocksToVisit:
    """The numbers of the blocks that hold a stored chunk of any of the arrays, in order; and what they leave out.

    Attributes
    ----------
    elements : int
        In the blocks that were given out.
    gap : int, optional
        The first block that was left out, in which all elements are the fill value; known when all were given out.
    stored : int, optional
        How many chunks of the arrays are stored, when blocks are given out; None if listings do not tell.
    """

    def __init__(self, laid: Walk, arrays: Iterable[Elements]) -> None:
        self._regions = laid.regions
        self.numbers = laid.regions.holding(self._boxes(arrays))
        self.elements = 0
        self.gap: int | None = None
        self.stored: int | None = 0

    def _boxes(self, arrays: Iterable[Elements]) -> Iterator[Box]:
        for each in arrays:
            chunks = each.chunks
            is_listed, found = chunks.known()
            number = 0
            for number, coords in enumerate(found, 1):  # noqa: B007 - the last one counts
                yield chunks.grid.slices_of(coords)
            self.stored = self.stored + number if is_listed and self.stored is not None else None

    def __iter__(self) -> Iterator[int]:
        due = 0
        for number in self.numbers:
            if self.gap is None and number != due:
                self.gap = due
            due = number + 1
            self.elements += math.prod(part.stop - part.start for part in self._regions.box(number))
            yield number
        if self.gap is None and due < self._regions.total:
            self.gap = due


def walk(grid: Grid, others: Iterable[Grid], item_bytes: int, effort: Effort) -> Walk:
    """Return blocks of whole cells of a grid, laid so that the chunks of other grids are read few times.

    Parameters
    ----------
    grid : Grid
    others : iterable of Grid
        Of arrays of the same shape.
    item_bytes : int
        That an element takes in memory, in all arrays that are read together.
    effort : Effort

    Raises
    ------
    ValueError
        If `max_memory` is less than one cell takes.
    """
    others = list(others)
    threads = effort.concurrency or pool.default_concurrency()
    cells = _longest(grid)
    cell = max(1, item_bytes * math.prod(cells))
    if effort.max_memory is not None and cell > effort.max_memory:
        raise ValueError(
            Wording(
                f"{{max_memory}}: expected at least {cell}, the bytes of elements of one block",
                max_memory=effort.max_memory,
            )
        )
    longest = [max(lengths) for lengths in zip(_longest(grid), *map(_longest, others), strict=True)]
    wanted = max(1, item_bytes * math.prod(longest))
    at_once = max(1, min(threads, effort.memory // wanted))
    room = effort.memory // at_once
    if effort.max_memory is None:  # what reads a large chunk reads it once
        room = max(room, item_bytes * math.prod(-(-n // side) * side for n, side in zip(longest, cells, strict=True)))
    regions = Regions(grid, (1,) * len(grid.axes))
    for other in others:
        found = plan(grid, other, item_bytes, room)
        regions = max(regions, found, key=lambda each: math.prod(each.per_axis))
    return Walk(regions, at_once)


def _longest(grid: Grid) -> tuple[int, ...]:
    return tuple(min(max((*axis.sizes, 1)), max(axis.length, 1)) for axis in grid.axes)


def chunks_of(elements: Elements) -> Grid:
    """Return the grid of the smallest chunks of an array that can be read alone."""
    return fine(elements.bind())
