"""Plans to move elements into chunks of another shape: in one pass, or through temporary objects.

A pass reads blocks and writes each of them; a block fits in memory. Blocks made of whole chunks of the target do where
they touch few chunks of the source more than once. Otherwise the first pass reads blocks of whole source chunks,
and the last one writes blocks of whole target chunks. In between are temporary objects: what a block of the one shares
with a block of the other, its *cell*, is in one piece. So each chunk is read once and written once, however large the
array is.

Cells shrink with the square of the memory. Where they become so small that requests cost more than bytes, more passes
come in between, with blocks of intermediate shapes.

Where two blocks of a pass fit in memory, the next one is read while one is written. Blocks become smaller for that only
if it takes no more requests: where these take the time, twice as many blocks gain nothing.

See: the algorithm of rechunker (https://rechunker.readthedocs.io/en/latest/algorithm.html), whose temporary array has
chunks of one shape, so that blocks must be multiples of them. Cells need not be of one shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from omnizarr.model import grids
from omnizarr.model.grids import Axis, Grid, Segment
from omnizarr.tools.streaming.regions import Regions, plan

_MOST_READ: Final = 2.0
"""Maximum number of times that a direct route reads the source."""
_REQUEST: Final = 32 * 1024
"""Bytes that can be moved in the time that one request takes."""
_MOST_STAGES: Final = 6
"""Maximum number of arrays of temporary objects, one after the other."""
_LEAST_OBJECT: Final = 64 * 1024
"""Bytes of a temporary object that has room for more cells."""
_MOST_BESIDE: Final = 8
"""Cells for which there is room beside a block. Room for more makes blocks small, and then requests take the time."""
_MOST_EDGES: Final = 2**20
"""Maximum number of chunk edges that are compared one by one."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the elements of an array. All numbers are upper bounds: chunks that are missing are not moved.

    Attributes
    ----------
    reads, writes : {"source", "temporary", "target"}
    blocks : int
        Parts of the array that are moved one after the other.
    bytes_read, bytes_written : int
        Of elements, decoded.
    requests_read, requests_written : int
        Chunks, or objects and parts of them: those that are read more than once count more than once.
    memory : int
        Bytes of elements in memory at a time.
    """

    reads: Literal["source", "temporary"]
    writes: Literal["temporary", "target"]
    blocks: int
    bytes_read: int
    bytes_written: int
    requests_read: int
    requests_written: int
    memory: int

    @property
    def times_read(self) -> float:
        """How often each element is read on average."""
        return self.bytes_read / max(self.bytes_written, 1)


class Room(NamedTuple):
    """Bytes for cells, temporary objects, and elements to compare with, in memory beside the blocks of a pass."""

    reading: int
    """For those that a block is read from."""
    writing: int
    """For those that are written from a block, or compared with it."""


class Stage(NamedTuple):
    """Temporary objects between two passes."""

    before: Grid
    """Blocks of the pass that writes them."""
    after: Grid
    """Blocks of the pass that reads them."""
    joined: int
    """Cells of one block, in C order, that are in one object."""
    cell_bytes: int
    """Of the largest cell."""

    @property
    def is_read_in_place(self) -> bool:
        """Whether the elements of a cell are next to each other in the block that reads it: it needs no other room."""
        cell = [min(*map(_longest, pair)) for pair in zip(self.before.axes, self.after.axes, strict=True)]
        split = next((at for at, length in enumerate(cell) if length > 1), len(cell))
        return cell[split + 1 :] == [_longest(axis) for axis in self.after.axes[split + 1 :]]


@dataclass(frozen=True, slots=True)
class Route:
    """The passes of one array.

    Attributes
    ----------
    blocks : tuple of Grid
        Of each pass.
    stages : tuple of Stage
        What is between each pass and the next.
    rooms : tuple of Room
        Of each pass.
    ahead : tuple of bool
        Of each pass: whether there is memory to read the next block while one is written, or compared.
    """

    blocks: tuple[Grid, ...]
    stages: tuple[Stage, ...] = ()
    rooms: tuple[Room, ...] = ()
    ahead: tuple[bool, ...] = ()

    @property
    def is_direct(self) -> bool:
        """There is one pass."""
        return not self.stages


class Constraints(NamedTuple):
    """The constraints of a route.

    Attributes
    ----------
    source : Grid
        The smallest chunks of the source that can be read alone.
    target : Grid
        The chunks of the target.
    item_bytes : int
        Of an element.
    memory : int
        Bytes of elements in memory at a time.
    workers : int
        Threads that read and write chunks.
    width : int
        Blocks that are worked on at a time, each in so much memory.
    compares : bool
        Source and target will be compared, block by block.
    is_far : bool
        Requests take so long that reading should not wait for writing.
    """

    source: Grid
    target: Grid
    item_bytes: int
    memory: int
    workers: int = 1
    width: int = 1
    compares: bool = False
    is_far: bool = False


def route(given: Constraints, *, may_stage: bool = True) -> Route:
    """Return the route that moves least, of those that read the source twice at most.

    Examples
    --------
    >>> from omnizarr.model import grids
    >>> shape = (4096, 256, 256)
    >>> days, points = (grids.bind(grids.regular(chunks), shape) for chunks in [(4, 256, 256), (4096, 16, 16)])
    >>> len(route(Constraints(days, points, 4, 2**31)).blocks), len(route(Constraints(days, points, 4, 2**24)).blocks)
    (1, 2)
    """
    direct = _direct(given)
    if not may_stage or _times_read(given.source, direct.blocks[0]) <= _MOST_READ:
        return direct
    found = [_staged(given, between) for between in range(_MOST_STAGES)]
    return min(found, key=lambda each: _cost(each, given))


def passes(found: Route, given: Constraints) -> tuple[Pass, ...]:
    """Return what each pass of a route does at most."""
    nbytes = math.prod(given.target.shape) * given.item_bytes
    made = []
    for number, blocks in enumerate(found.blocks):
        before = found.stages[number - 1] if number else None
        after = found.stages[number] if number < len(found.stages) else None
        times = _times_read(given.source, blocks) if before is None else 1.0
        read = _count(given.source, blocks) if before is None else _count(before.before, before.after)
        is_ahead = found.ahead[number]
        buffers = [
            max(stage.cell_bytes, min(room, 2 * stage.cell_bytes * stage.joined))
            for stage, room in zip((before, after), found.rooms[number], strict=True)
            if stage is not None and not (is_ahead and stage is before and stage.is_read_in_place)
        ]
        beside = (sum if is_ahead else max)(buffers or [0])
        made.append(
            Pass(
                reads="source" if before is None else "temporary",
                writes="target" if after is None else "temporary",
                blocks=blocks.nchunks,
                bytes_read=round(nbytes * times),
                bytes_written=nbytes,
                requests_read=read,
                requests_written=given.target.nchunks if after is None else _objects(after),
                memory=min((1 + is_ahead) * _largest(blocks) * given.item_bytes + beside, nbytes),
            )
        )
    return tuple(made)


# -- direct ------------------------------------------------------------------------


def _direct(given: Constraints) -> Route:
    """Return the route of one pass."""
    memory = given.memory * 3 // 4 if given.compares else given.memory
    blocks = _blocks_within(memory, given)
    if given.is_far and not _are_ahead(blocks, memory, given):
        smaller = _blocks_within(memory // 2, given)
        if _are_ahead(smaller, memory, given) and _count(given.source, smaller) <= _count(given.source, blocks):
            blocks = smaller
    room = max(given.memory - memory, 1)
    return Route((blocks,), rooms=(Room(room, room),), ahead=(_are_ahead(blocks, memory, given),))


def _blocks_within(memory: int, given: Constraints) -> Grid:
    """Return blocks of whole target chunks."""
    regions = plan(given.target, given.source, given.item_bytes, _for_each(memory, given), given.workers)
    return coarse(given.target, regions.per_axis)


def _are_ahead(blocks: Grid, memory: int, given: Constraints) -> bool:
    """Whether two blocks are within memory; parts of a cluster have a block each."""
    return given.width == 1 and 2 * _largest(blocks) * given.item_bytes <= memory


def _for_each(memory: int, given: Constraints) -> int:
    """Return the memory for one block, if all workers need some."""
    if given.width == 1:
        return memory
    share = math.prod(given.target.shape) * given.item_bytes // (2 * given.width)
    return min(memory, max(_LEAST_SHARE, share))


_LEAST_SHARE: Final = 8 * 1024 * 1024
"""Bytes of a block below which blocks are not made smaller to get more of them."""


def _times_read(source: Grid, blocks: Grid) -> float:
    """Return how many times the source is read if each block reads all chunks that it touches."""
    return _count(source, blocks) / max(source.nchunks, 1)


# -- staged --------------------------------------------------------------------------


def _staged(given: Constraints, between: int) -> Route:
    """Return the route through temporary objects with `between` passes between the first and the last."""
    memory, workers = _for_each(given.memory, given), min(given.workers, _MOST_BESIDE)
    reading, writing = _Side(given.source), _Side(given.target)
    _grow(reading, writing, given.item_bytes, memory, workers, between)
    first, last = reading.blocks(), writing.blocks()
    grids_of_all = [first, *_between(first, last, between), last]
    stages = []
    for before, after in pairwise(grids_of_all):
        cell = _largest_cell(before, after) * given.item_bytes
        room = max(memory - max(_largest(before), _largest(after)) * given.item_bytes, cell)
        joined = max(1, max(min(room // (2 * workers), memory // 8), _LEAST_OBJECT) // max(cell, 1))
        stages.append(Stage(before, after, joined if joined * cell <= room else 1, cell))
    largest = max(map(_largest, grids_of_all)) * given.item_bytes
    rooms, ahead = [], []
    for number, blocks in enumerate(grids_of_all):
        around = stages[max(number - 1, 0) : number + 1]
        beside = sum(stage.cell_bytes for stage in around if stage.after is not blocks or not stage.is_read_in_place)
        compared = memory // 8 if given.compares and blocks is last else 0
        is_ahead = _are_ahead(blocks, memory - max(workers * beside, compared), given)
        room = max(memory - (2 * _largest(blocks) * given.item_bytes if is_ahead else largest), 1)
        is_shared = is_ahead and beside > 0 and (len(around) > 1 or compared > 0)
        room = room // 2 if is_shared else room
        in_place = workers * around[0].cell_bytes if is_ahead and not beside else 0
        rooms.append(Room(max(room, in_place), room))
        ahead.append(is_ahead)
    return Route(tuple(grids_of_all), tuple(stages), tuple(rooms), tuple(ahead))


def _cost(found: Route, given: Constraints) -> int:
    """Return bytes moved through temporary objects, with those that requests are worth."""
    nbytes = math.prod(given.target.shape) * given.item_bytes
    requests = sum(_count(stage.before, stage.after) + _objects(stage) for stage in found.stages)
    return 2 * nbytes * len(found.stages) + requests * _REQUEST


class _Side:
    """Blocks of whole chunks that are made larger step by step."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.per_axis = [1] * len(grid.axes)
        self.axes = list(grid.axes)

    def try_step(self, at: int, step: int) -> Axis:
        """Return an axis with `step` chunks in each block."""
        return _coarse_axis(self.grid.axes[at], step)

    def take(self, at: int, step: int, axis: Axis) -> None:
        """Make blocks so long along an axis."""
        self.per_axis[at], self.axes[at] = step, axis

    def blocks(self) -> Grid:
        """Return the blocks as a grid."""
        return _grid(self.axes)


def _grow(reading: _Side, writing: _Side, item_bytes: int, memory: int, workers: int, between: int) -> None:
    """Make the blocks of both sides as large as memory allows, always where that saves most cells."""
    while True:
        best: tuple[float, _Side, int, int, Axis] | None = None
        cells = [_cells(*pair) for pair in zip(reading.axes, writing.axes, strict=True)]
        for side, other in ((reading, writing), (writing, reading)):
            for at, axis in enumerate(side.axes):
                for step in _steps(side, other, at, item_bytes, memory):
                    longer = side.try_step(at, step)
                    axes = [*side.axes[:at], longer, *side.axes[at + 1 :]]
                    if not _fits(axes, other.axes, item_bytes, memory, workers, between):
                        continue
                    saved = math.log(cells[at] / _cells(longer, other.axes[at]))
                    worth = saved / math.log(_longest(longer) / _longest(axis))
                    if saved > 0 and (best is None or worth > best[0]):
                        best = worth, side, at, step, longer
        if best is None:
            return
        _, side, at, step, longer = best
        side.take(at, step, longer)


def _steps(side: _Side, other: _Side, at: int, item_bytes: int, memory: int) -> Iterator[int]:
    """Yield how many chunks a block might have along an axis, if more than now."""
    now, count = side.per_axis[at], side.grid.axes[at].count
    if now >= count:
        return
    most = memory * now // max(_volume(side.axes) * item_bytes, 1)
    chunk = _longest(side.grid.axes[at])
    covering = -(-_longest(other.axes[at]) // chunk)
    for step in sorted(
        {min(step, count) for step in (now + 1, 2 * now, covering, most * 3 // 4, most * 7 // 8, count)}
    ):
        if step > now and min(step * chunk, side.grid.axes[at].length) > _longest(side.axes[at]):
            yield step


def _fits(
    axes: Sequence[Axis], others: Sequence[Axis], item_bytes: int, memory: int, workers: int, between: int
) -> bool:
    """Whether a block, and the largest cells that the threads work on, are within memory."""
    block = _volume(axes) * item_bytes
    if between:  # cells are smaller than blocks in any case
        return block <= memory * 3 // 4
    cell = item_bytes
    for one, other in zip(axes, others, strict=True):
        cell *= min(_longest(one), _longest(other))
    return block + workers * cell <= memory


def _between(first: Grid, last: Grid, count: int) -> Iterator[Grid]:
    """Yield blocks whose shapes lead from those of the first pass to those of the last, by equal ratios."""
    for number in range(1, count + 1):
        share = number / (count + 1)
        lengths = []
        for one, other, length in zip(first.axes, last.axes, first.shape, strict=True):
            small, large = sorted((_longest(one), _longest(other)))
            wanted = _longest(one) ** (1 - share) * _longest(other) ** share
            lengths.append(max(1, min(int(wanted / small) * small, large, length)))
        yield grids.bind(grids.regular(lengths), first.shape)


# -- grids -----------------------------------------------------------------------------


def coarse(grid: Grid, per_axis: Sequence[int]) -> Grid:
    """Return the grid in which each chunk joins several adjacent chunks of another, cut at the array's edge.

    Examples
    --------
    >>> from omnizarr.model import grids
    >>> coarse(grids.bind(grids.regular((2, 3)), (10, 10)), (2, 3)).axes[1].length
    10
    """
    return _grid([_coarse_axis(axis, step) for axis, step in zip(grid.axes, per_axis, strict=True)])


def _grid(axes: Sequence[Axis]) -> Grid:
    shape = tuple(axis.length for axis in axes)
    sizes = tuple(axis.size for axis in axes)
    whole = sizes if all(sizes) else None
    return Grid(grids.regular(sizes), shape, whole, tuple(axes))


def _coarse_axis(axis: Axis, step: int) -> Axis:
    if step == 1 or not axis.count:
        return axis
    if axis.size:
        return Axis(axis.length, (Segment(0, 0, axis.size * step, -(-axis.count // step)),))
    segments: list[Segment] = []
    for number, first in enumerate(range(0, axis.count, step)):
        start = axis.chunk(first)[0]
        size = sum(axis.chunk(min(first + step, axis.count) - 1)) - start
        if segments and segments[-1].size == size:
            segments[-1] = segments[-1]._replace(chunks=segments[-1].chunks + 1)
        else:
            segments.append(Segment(start, number, size, 1))
    return Axis(axis.length, tuple(segments))


def _longest(axis: Axis) -> int:
    """Return the length of the longest chunk, cut at the array's edge."""
    return max(1, min(max(axis.sizes, default=1), axis.length))


def _volume(axes: Sequence[Axis]) -> int:
    return math.prod(map(_longest, axes))


def _largest(grid: Grid) -> int:
    """Return the number of elements of the largest chunk."""
    return _volume(grid.axes)


def _largest_cell(one: Grid, other: Grid) -> int:
    """Return how many elements a chunk of the one shares with one of the other at most."""
    return math.prod(min(_longest(a), _longest(b)) for a, b in zip(one.axes, other.axes, strict=True))


def _count(one: Grid, other: Grid) -> int:
    """Return how many pairs of chunks share elements."""
    return math.prod(_cells(*pair) for pair in zip(one.axes, other.axes, strict=True))


def _cells(one: Axis, other: Axis) -> int:
    """Return into how many parts the edges of both cut an axis."""
    if not one.length:
        return 0
    last = one.length - 1
    if one.size and other.size:
        return last // one.size + last // other.size - last // math.lcm(one.size, other.size) + 1
    few, many = sorted((one, other), key=lambda axis: axis.count)
    if few.count > _MOST_EDGES:
        return one.count + other.count
    shared = sum(many.find(edge)[1] == edge for edge in (few.chunk(number)[0] for number in range(1, few.count)))
    return one.count + other.count - 1 - shared


def _objects(stage: Stage) -> int:
    """Return how many temporary objects there are at most."""
    cells = _count(stage.before, stage.after)
    return min(cells, cells // stage.joined + stage.before.nchunks)


def regions_of(blocks: Grid) -> Regions:
    """Return blocks as regions of one chunk each."""
    return Regions(blocks, (1,) * len(blocks.axes))
