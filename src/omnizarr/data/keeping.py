"""Plans of steps: which cells each step reads, which it finds in memory, and which are kept for later steps.

As the order of an epoch is known, a cell is kept if it is used again sooner than others (Belady, "A study of
replacement algorithms for a virtual-storage computer"). The plan looks some ten thousand uses ahead; what is used after
that is as far away as can be.

Of shards on another machine, a step reads what later steps need of them, too, as one request can fetch it with what the
step itself needs: what is used before the memory that is free would be full, and in any case what the next few steps
use.

Memory is taken when a step is planned, so that it is never more than the limit, whatever threads do. A step that needs
more cells than there is memory for has the rest of them *passing*: read when the step is put together, some at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import repeat
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from omnizarr.data.batches import Spare
from omnizarr.data.sources import Field
from omnizarr.support.locks import RLock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

NEVER: Final = 2**63
"""The next use of a cell that is not used again."""
_LATER: Final = 2**62
"""The next use of a cell that may be used after all that is known."""
_AHEAD: Final = 2**16
"""Uses of cells that are looked ahead."""
_AT_FIRST: Final = 2**10
"""The same for the first step, which should not wait."""
_AT_FIRST_FAR: Final = 2**14
"""The same if the first step can read what others need, which saves more than it takes."""
_MOST_STEPS: Final = 1024
RUN: Final = 16
"""Steps whose samples are computed, and which are looked at, together."""
MOST_TOGETHER: Final = 2**28
"""Bytes that a step reads for later ones."""
_SOON: Final = 4
"""Steps for which what is read together may take the memory of what is used later than by them."""
_PATIENCE_SHARE: Final = 3
"""The part of the memory for which a step waits, if steps before it will leave it, to read all of a shard at once: the
rest of the memory has chunks for the loop meanwhile."""


_NOWHERE: Final = repeat(-1)
"""The shards of cells that are in none."""


class StoppedError(Exception):
    """The loop that needed a plan has ended."""


class Batch(NamedTuple):
    """The samples of one step."""

    epoch: int
    step: int
    indexes: Integers


class Cell:
    """A cell in memory, or on its way."""

    __slots__ = (
        "data",
        "error",
        "field",
        "is_kept",
        "memory",
        "nbytes",
        "next_use",
        "number",
        "owner",
        "planned",
        "users",
    )

    def __init__(self, field: int, number: int, nbytes: int, owner: Step) -> None:
        self.field = field
        self.number = number
        self.nbytes = nbytes
        self.owner = owner
        """The step that reads it."""
        self.data: NDArray[Any] | None = None
        self.memory: NDArray[np.uint8] | None = None
        """That of `data`, if it can be used again."""
        self.error: Exception | None = None
        self.users = 0
        """Steps that are planned and need it."""
        self.planned = -1
        """Number of the last of them."""
        self.is_kept = False
        self.next_use = NEVER


class Use:
    """The cells that a step uses of one field, in order, and the samples in each."""

    __slots__ = ("bounds", "cells", "samples", "shards", "starts")

    def __init__(
        self, cells: list[int], bounds: list[int], samples: Integers, starts: Integers, shards: list[int] | None
    ) -> None:
        self.cells = cells
        self.bounds = bounds
        """The samples of cell n are those from number `bounds[n]` up to `bounds[n + 1]`."""
        self.samples = samples
        self.starts = starts
        self.shards = shards
        """The first cell of the shard of each cell, if some are far."""


def uses_of(field: Field, batches: Sequence[Batch]) -> list[Use]:
    """Return the uses of steps of one epoch: many at once, which takes less time than each alone."""
    counts = [len(batch.indexes) for batch in batches]
    indexes = batches[0].indexes if len(batches) == 1 else np.concatenate([batch.indexes for batch in batches])
    found = field.uses(indexes, batches[0].epoch)
    steps = np.repeat(np.arange(len(batches)), counts)[found.samples]
    order = np.lexsort((found.cells, steps))
    cells, steps = found.cells[order], steps[order]
    samples = found.samples[order] - np.cumsum([0, *counts[:-1]])[steps]
    starts = found.starts[order]
    is_first = np.diff(cells, prepend=-1) != 0
    ends = np.searchsorted(steps, np.arange(len(batches)), side="right").tolist()
    is_first[[end for end in ends if end < len(is_first)]] = True
    firsts = np.flatnonzero(is_first)
    cells = cells[firsts]
    listed, places = cells.tolist(), firsts.tolist()
    shards = field.shards_of(cells).tolist() if field.is_far else None
    stops = np.searchsorted(firsts, ends).tolist()
    made = []
    begin = start = 0
    for end, stop in zip(ends, stops, strict=True):
        bounds = [*places[start:stop], end] if not begin else [at - begin for at in (*places[start:stop], end)]
        part = None if shards is None else shards[start:stop]
        made.append(Use(listed[start:stop], bounds, samples[begin:end], starts[begin:end], part))
        begin, start = end, stop
    return made


class Step:
    """A step, and what it needs."""

    __slots__ = ("batch", "cells", "is_read", "misses", "number", "passing", "single", "uses")

    def __init__(self, number: int, batch: Batch, uses: list[Use | None]) -> None:
        self.number = number
        self.batch = batch
        self.uses = uses
        self.cells: list[dict[int, Cell]] = [{} for _ in uses]
        """Cells in memory, by field and number."""
        self.misses: list[Cell] = []
        """Those of them that this step reads."""
        self.passing: list[set[int]] = [set() for _ in uses]
        """Positions in `Use.cells` of cells that are read when the step is put together."""
        self.single: list[set[int]] = [set() for _ in uses]
        """Positions of cells with one sample, which is read into the batch itself."""
        self.is_read = threading.Event()


class Planner:
    """Plans one step after the other.

    Parameters
    ----------
    fields : sequence of Field
    batches : iterator of Batch
    limit : int
        Bytes of cells in memory.
    most_ahead : int
        Steps that may be planned and not put together yet, at least.
    spare : Spare
        Gets the memory of cells that are dropped.
    is_one_epoch : bool
        Whether a chunk of one sample is used once.
    is_whole : bool
        Whether all samples of an epoch are used.
    is_in_order : bool
        Whether samples come as they are stored.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        batches: Iterator[Batch],
        limit: int,
        most_ahead: int,
        spare: Spare,
        *,
        is_one_epoch: bool,
        is_whole: bool,
        is_in_order: bool,
    ) -> None:
        self._fields = fields
        self._batches = batches
        self._seen: Batch | None = None  # the first of another epoch
        self._limit = limit
        self._least_ahead = most_ahead
        total = sum(part.cells * part.cell_nbytes for field in fields if not field.is_held for part in field.parts)
        self._is_roomy = total <= limit
        is_far = any(field.is_far for field in fields)
        # What is used by neighbours only is better dropped: the memory that was used last is the fastest.
        self._fits = self._is_roomy and not is_far and not (is_in_order and is_one_epoch)
        self._spare = spare
        self._is_whole = is_whole
        self._is_one_epoch = is_one_epoch
        self._ahead: deque[Step] = deque()
        self._uses_ahead = 0
        self._horizon = _AT_FIRST_FAR if is_far else _AT_FIRST
        self._is_all_known = False
        self._count = 0
        self._future: list[dict[int, deque[int]]] = [{} for _ in fields]
        self._kept: dict[tuple[int, int], Cell] = {}
        self._furthest: list[tuple[int, int, int]] = []  # minus the next use, field, number
        self._guard = RLock()
        self._live = 0
        self._leaving = 0  # bytes of cells that are not kept, and used by steps before the one that is planned
        self._in_flight = 0
        self._freed: SimpleQueue[None] = SimpleQueue()
        self._is_stopped = False
        self.most = 0
        """The most bytes of cells that were in memory."""
        self.hits = self.reads = 0
        self.planned = 0
        """Steps that were returned."""

    def stop(self) -> None:
        """Make a thread that plans raise StoppedError."""
        self._is_stopped = True
        self._freed.put(None)

    def next(self) -> Step | None:
        """Return the next step; None after the last. One thread at a time."""
        self._look_ahead()
        if not self._ahead:
            return None
        step = self._ahead.popleft()
        number = sum(len(use.cells) for use in step.uses if use is not None)
        self._uses_ahead -= number
        self._horizon = min(_AHEAD, self._horizon + 2 * number)
        while self._in_flight >= max(self._least_ahead, min(_MOST_STEPS, _AHEAD // max(1, number))):
            self._wait()
        with self._guard:
            self._in_flight += 1
        self.planned += 1
        if self._fits:
            self._take_all(step)
            return step
        missing = []
        for at, use in enumerate(step.uses):
            if use is None:
                continue
            for position, cell in enumerate(use.cells):
                next_use = self._next_use(at, cell)
                found = self._kept.get((at, cell))
                if found is None:
                    missing.append((next_use, at, position, cell))
                else:
                    self._hit(found, step, next_use)
        missing.sort()
        for next_use, at, position, cell in missing:
            self._miss(step, next_use, at, position, cell)
        if any(use is not None and use.shards is not None for use in step.uses):
            self._read_more(step)
        with self._guard:
            for cells in step.cells:
                self._leaving += sum(cell.nbytes for cell in cells.values() if not cell.is_kept)
        return step

    def _take_all(self, step: Step) -> None:
        """Plan a step of arrays that fit into memory, which keeps all that was read."""
        for at, use in enumerate(step.uses):
            if use is None:
                continue
            cells = step.cells[at]
            for position, number in enumerate(use.cells):
                cell = self._kept.get((at, number))
                if cell is None:
                    part, _ = self._fields[at].part_of(number)
                    nbytes = part.cell_nbytes
                    if part.is_once and self._is_one_epoch and not part.is_remote:
                        step.single[at].add(position)
                        self.reads += 1
                        continue
                    cell = self._kept[at, number] = Cell(at, number, nbytes, step)
                    cell.is_kept = True
                    step.misses.append(cell)
                    self._live += nbytes
                cells[number] = cell
            self.hits += len(cells)
        self.reads += len(step.misses)
        self.hits -= len(step.misses)
        self.most = self._live

    def release(self, step: Step) -> None:
        """Free what only this step used; by any thread, when the step is put together."""
        with self._guard:
            self._in_flight -= 1
            for cells in () if self._fits else step.cells:
                for cell in cells.values():
                    cell.users -= 1
                    if not cell.is_kept and not cell.users:
                        self._leaving -= cell.nbytes
                        self._drop(cell)
        self._freed.put(None)

    # -- the future ----------------------------------------------------------------

    def _look_ahead(self) -> None:
        # If all fits into memory, the future does not matter.
        most = 1 if self._fits else 4 * _MOST_STEPS
        while not self._is_all_known and (not self._ahead or self._uses_ahead < self._horizon):
            if self._is_stopped:
                raise StoppedError
            if len(self._ahead) >= most:
                break
            batches = self._run()
            if not batches:
                self._is_all_known = True
                break
            found = [[None] * len(batches) if field.is_held else uses_of(field, batches) for field in self._fields]
            for batch, *uses in zip(batches, *found, strict=True):
                self._see(Step(self._count, batch, uses))

    def _run(self) -> list[Batch]:
        """Return the batches of the next steps of one epoch: one at first, which should not wait."""
        most = RUN if self._count else 1
        found: list[Batch] = []
        while len(found) < most:
            batch, self._seen = self._seen or next(self._batches, None), None
            if batch is None:
                break
            if found and batch.epoch != found[0].epoch:
                self._seen = batch
                break
            found.append(batch)
        return found

    def _see(self, step: Step) -> None:
        """Take notice of a step that comes after all others that are known."""
        self._ahead.append(step)
        self._count += 1
        if self._fits:
            return
        for at, use in enumerate(step.uses):
            if use is None:
                continue
            future = self._future[at]
            self._uses_ahead += len(use.cells)
            for cell in use.cells:
                known = future.get(cell)
                if known is not None:
                    known.append(step.number)
                    continue
                future[cell] = deque((step.number,))
                kept = self._kept.get((at, cell))
                if kept is not None:
                    self._keep(kept, step.number)

    def _next_use(self, field: int, cell: int) -> int:
        """Return the step after the one that is planned which uses a cell."""
        uses = self._future[field][cell]
        uses.popleft()
        if uses:
            return uses[0]
        del self._future[field][cell]
        return NEVER if self._is_all_known else _LATER

    # -- memory ----------------------------------------------------------------------

    def _hit(self, cell: Cell, step: Step, next_use: int) -> None:
        self.hits += 1
        with self._guard:
            cell.users += 1
            cell.planned = step.number
            step.cells[cell.field][cell.number] = cell
            self._keep(cell, next_use)

    def _miss(self, step: Step, next_use: int, at: int, position: int, number: int) -> None:
        field, use = self._fields[at], step.uses[at]
        assert use is not None  # noqa: S101 - it has cells
        self.reads += 1
        part, _ = field.part_of(number)
        is_alone = not part.is_remote and use.bounds[position + 1] - use.bounds[position] == 1
        if is_alone and (next_use == NEVER or (part.is_once and (self._is_one_epoch or not self._fits))):
            step.single[at].add(position)
            return
        if not self._make_room(part.cell_nbytes, next_use, step.number):
            step.passing[at].add(position)
            return
        self._take(step, at, number, part.cell_nbytes, next_use)

    def _take(self, step: Step, at: int, number: int, nbytes: int, next_use: int) -> None:
        """Let a step read a cell into memory that is free."""
        cell = Cell(at, number, nbytes, step)
        with self._guard:
            self._live += nbytes
            self.most = max(self.most, self._live)
            cell.users, cell.planned = 1, step.number
            step.cells[at][number] = cell
            step.misses.append(cell)
            if next_use != NEVER:
                self._kept[at, number] = cell
                self._keep(cell, next_use)

    def _read_more(self, step: Step) -> None:
        """Let a step read what later steps need of the shards of which it reads a part."""
        shards = self._shards_read(step)
        if not any(shards):
            return
        nbytes = [[part.cell_nbytes for part in field.parts] for field in self._fields]
        with self._guard:
            left, free, leaving = MOST_TOGETHER, self._limit - self._live, self._leaving
        patience = self._limit // _PATIENCE_SHARE
        seen: set[tuple[int, int]] = set()
        for later in self._ahead:
            is_soon = later.number <= step.number + _SOON
            if not is_soon and (free <= 0 if patience <= 0 else free + leaving <= 0):
                return
            for at, use in enumerate(later.uses):
                if use is None:
                    continue
                wanted = shards[at]
                for cell, shard in zip(use.cells, use.shards or _NOWHERE, strict=False):
                    if (at, cell) in self._kept or (at, cell) in seen:
                        continue
                    seen.add((at, cell))
                    size = nbytes[at][0] if len(nbytes[at]) == 1 else self._fields[at].part_of(cell)[0].cell_nbytes
                    free -= size
                    if shard not in wanted or left < size:
                        continue
                    is_room = free >= 0 or (is_soon and self._make_room_at_once(size, later.number))
                    if not is_room and size <= patience and free + leaving >= 0:
                        patience -= size
                        is_room = self._make_room(size, later.number, step.number)
                    if is_room:
                        left -= size
                        self.reads += 1
                        self._take(step, at, cell, size, later.number)
        if self._is_roomy and self._is_whole and not self._is_all_known:
            self._read_rest(step, shards, left)

    def _shards_read(self, step: Step) -> list[set[int]]:
        found: list[set[int]] = [set() for _ in step.uses]
        read = {(cell.field, cell.number) for cell in step.misses}
        for at, use in enumerate(step.uses):
            if use is not None and use.shards is not None:
                pairs = zip(use.cells, use.shards, strict=True)
                found[at] = {shard for cell, shard in pairs if shard >= 0 and (at, cell) in read}
        return found

    def _read_rest(self, step: Step, shards: list[set[int]], left: int) -> None:
        """Let a step read all else of its shards, as there is memory for everything."""
        for at, firsts in enumerate(shards):
            for first in firsts:
                part, within = self._fields[at].part_of(first)
                if not part.is_dense:
                    continue
                for mate in part.mates(within):
                    cell = first - within + mate
                    if (at, cell) in self._kept or left < part.cell_nbytes or cell in step.cells[at]:
                        continue
                    left -= part.cell_nbytes
                    self.reads += 1
                    self._take(step, at, cell, part.cell_nbytes, _LATER)

    def _make_room_at_once(self, nbytes: int, next_use: int) -> bool:
        """Return whether there is memory for a cell, without a wait, once cells that are used later have gone."""
        while True:
            with self._guard:
                if self._live + nbytes <= self._limit:
                    return True
            victim = self._victim(next_use)
            if victim is None:
                return False
            with self._guard:
                if victim.users:
                    heappush(self._furthest, (-victim.next_use, victim.field, victim.number))
                    return False
                victim.is_kept = False
                del self._kept[victim.field, victim.number]
                self._drop(victim)

    def _keep(self, cell: Cell, next_use: int) -> None:
        cell.next_use = next_use
        cell.is_kept = next_use != NEVER
        if not cell.is_kept:
            self._kept.pop((cell.field, cell.number), None)
            return
        if self._is_roomy:  # nothing has to go
            return
        heappush(self._furthest, (-next_use, cell.field, cell.number))
        if len(self._furthest) > 4 * len(self._kept) + _MOST_STEPS:
            self._furthest = [(-each.next_use, each.field, each.number) for each in self._kept.values()]
            heapify(self._furthest)

    def _make_room(self, nbytes: int, next_use: int, step: int) -> bool:
        """Return whether there is memory for a cell, after those that are used later than it have gone."""
        used_now = []
        try:
            while True:
                with self._guard:
                    live, leaving = self._live, self._leaving
                if live + nbytes <= self._limit:
                    return True
                if live - leaving + nbytes <= self._limit:
                    self._wait()
                    continue
                victim = self._victim(next_use)
                if victim is None:
                    return False
                if victim.planned == step:
                    used_now.append(victim)
                    continue
                with self._guard:
                    victim.is_kept = False
                    del self._kept[victim.field, victim.number]
                    if victim.users:
                        self._leaving += victim.nbytes
                    else:
                        self._drop(victim)
        finally:
            for cell in used_now:
                heappush(self._furthest, (-cell.next_use, cell.field, cell.number))

    def _victim(self, next_use: int) -> Cell | None:
        """Take the kept cell that is used last, if that is after a step."""
        while self._furthest and -self._furthest[0][0] > next_use:
            last, field, number = heappop(self._furthest)
            cell = self._kept.get((field, number))
            if cell is not None and cell.next_use == -last:
                return cell
        return None

    def _drop(self, cell: Cell) -> None:
        self._live -= cell.nbytes
        self._give_back(cell)

    def _give_back(self, cell: Cell) -> None:
        cell.data, memory, cell.memory = None, cell.memory, None
        if memory is not None:
            self._spare.give(memory)

    def end(self) -> None:
        """Give back the memory of all cells, once all steps are put together."""
        with self._guard:
            for cell in self._kept.values():
                self._give_back(cell)
            self._kept.clear()

    def _wait(self) -> None:
        if not self._is_stopped:
            self._freed.get()
        if self._is_stopped:
            self._freed.put(None)
            raise StoppedError
