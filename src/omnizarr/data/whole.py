"""Arrays that fit into memory as a whole, and whose samples lie along their first dimension.

Each array gets memory of its own shape, so that the place of an element needs no table: chunks are read into their
places when a step first needs them, and stay. The samples of a batch are then copied by one call of NumPy. What is
planned and looked up are arrays of numbers, for many steps at a time; nothing is done for each sample, and for each
chunk only when it is read.

`keeping` and `assembly` do the same for everything else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnizarr.data import assembly
from omnizarr.data.batches import Spare
from omnizarr.data.fetching import Box
from omnizarr.data.keeping import MOST_TOGETHER, RUN, Batch, StoppedError
from omnizarr.data.sources import Field, Part
from omnizarr.nodes.array import Array
from omnizarr.support.locks import RLock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_MOST_STEPS: Final = 1024
"""Steps that may be planned and not put together yet."""
_LARGE_PAGE: Final = 2**21


class Step:
    """A step, and what it needs."""

    __slots__ = ("batch", "is_read", "misses", "number", "waits")

    def __init__(self, number: int, batch: Batch) -> None:
        self.number = number
        self.batch = batch
        self.misses: list[tuple[_Held, Integers]] = []
        """The cells that this step reads."""
        self.is_read: threading.Event | None = None
        self.waits: tuple[threading.Event, ...] = ()
        """What is set when all cells are there."""


class _Held:
    """The memory of one part."""

    __slots__ = ("are_runs", "errors", "first_sample", "is_together", "known", "part", "rows", "size")

    def __init__(self, part: Part, first_sample: int, values: NDArray[Any], *, is_whole: bool) -> None:
        self.part = part
        self.first_sample = first_sample
        """Number of its first sample in the field."""
        self.size = part.size[0]
        self.rows = values
        self.known: Bools = np.zeros(part.cells, np.bool_)
        """Cells that are read by a step that is planned."""
        is_sharded = part.shard_lengths is not None
        self.is_together = is_sharded and part.is_slow and is_whole and part.is_dense
        """Whether all of a shard is read at once: by one request."""
        # A cache finds parts of shards again only if the same parts are asked for.
        self.are_runs = isinstance(part.array, Array) and (self.is_together or not (is_sharded and part.is_slow))
        """Whether neighbouring cells are read as one box."""
        self.errors: dict[int, Exception] = {}
        """Why cells cannot be read."""

    def cells_of(self, starts: Integers) -> tuple[Integers, Integers]:
        """Return the first and the last cell of samples."""
        n = self.part.lengths[0]
        first = starts // n
        return first, first if self.size == 1 else (starts + (self.size - 1)) // n

    def runs(self, cells: Integers) -> list[tuple[int, int]]:
        """Return what is read together: first cells, and the cells behind the last."""
        if not self.are_runs:
            return [(cell, cell + 1) for cell in cells.tolist()]
        ends = np.flatnonzero(np.diff(cells) != 1) + 1
        starts = cells[[0, *ends.tolist()]].tolist()
        stops = (cells[[*(ends - 1).tolist(), -1]] + 1).tolist()
        return list(zip(starts, stops, strict=True))


class Whole:
    """Plans steps, reads their cells, and puts steps together: for arrays of which `can_hold` is True.

    Parameters
    ----------
    fields : sequence of Field
    batches : iterator of Batch
    most_ahead : int
        Steps that may be planned and not put together yet, at least.
    spare : Spare
        Has the memory of the arrays.
    indexes : object, optional
        Where indexes of shards are kept: see `fetching.read`.
    is_whole : bool
        Whether all samples of an epoch are used.

    Raises
    ------
    MemoryError
        If the system does not give that much memory.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        batches: Iterator[Batch],
        most_ahead: int,
        spare: Spare,
        indexes: Any = None,
        *,
        is_whole: bool = False,
    ) -> None:
        self._fields = fields
        self._batches = batches
        self._seen: Batch | None = None  # the first of another epoch
        self._most_ahead = max(most_ahead, _MOST_STEPS)
        self._spare = spare
        self._indexes = indexes
        self._held: list[list[_Held]] = []
        for field in fields:
            held: list[_Held] = []
            for part, end in zip(field.parts, field.ends.tolist(), strict=True):
                if not field.is_held:
                    memory = spare.whole((len(self._held), len(held)), part.shape, part.dtype)
                    held.append(_Held(part, end - part.count, memory, is_whole=is_whole))
            self._held.append(held)
        self._known: list[Step] = []
        """Steps that are planned, the next one last."""
        self._reading: list[threading.Event] = []
        self._guard = RLock()
        self._touching = RLock()
        self._in_flight = 0
        self._freed: SimpleQueue[None] = SimpleQueue()
        self._is_stopped = False
        self._count = 0
        self.most = 0
        """The most bytes of cells that were in memory."""
        self.hits = self.reads = 0
        self.planned = 0
        """Steps that were returned."""

    # -- plans -----------------------------------------------------------------------

    def stop(self) -> None:
        """Make a thread that plans raise StoppedError."""
        self._is_stopped = True
        self._freed.put(None)

    def end(self) -> None:
        """Do nothing: `Spare` has the memory."""

    def next(self) -> Step | None:
        """Return the next step; None after the last. One thread at a time."""
        if not self._known:
            self._plan()
        if not self._known:
            return None
        while self._in_flight >= self._most_ahead:
            if not self._is_stopped:
                self._freed.get()
            if self._is_stopped:
                self._freed.put(None)
                raise StoppedError
        step = self._known.pop()
        with self._guard:
            self._in_flight += 1
        self.planned += 1
        self._reading = [event for event in self._reading if not event.is_set()]
        if step.is_read is not None:
            self._reading.append(step.is_read)
        step.waits = tuple(self._reading)
        return step

    def release(self, step: Step) -> None:
        """Let one more step be planned; by any thread, when a step is put together."""
        with self._guard:
            self._in_flight -= 1
            is_awaited = self._in_flight >= self._most_ahead - 1
        if is_awaited:
            self._freed.put(None)

    def _plan(self) -> None:
        """Plan some steps of one epoch: the first one alone, as it should not wait."""
        found: list[Batch] = []
        while len(found) < (RUN if self._count else 1):
            batch, self._seen = self._seen or next(self._batches, None), None
            if batch is None:
                break
            if found and batch.epoch != found[0].epoch:
                self._seen = batch
                break
            found.append(batch)
        if not found:
            return
        steps = [Step(self._count + number, batch) for number, batch in enumerate(found)]
        self._count += len(steps)
        indexes = found[0].indexes if len(found) == 1 else np.concatenate([batch.indexes for batch in found])
        numbers = np.repeat(np.arange(len(steps)), [len(batch.indexes) for batch in found])
        for field, held in zip(self._fields, self._held, strict=True):
            if len(held) == 1:
                self._see(held[0], indexes, numbers, steps)
                continue
            parts = np.searchsorted(field.ends, indexes, side="right")
            for number in np.unique(parts).tolist() if held else ():
                rows = parts == number
                self._see(held[number], indexes[rows], numbers[rows], steps)
        steps.reverse()
        self._known = steps

    def _see(self, held: _Held, indexes: Integers, numbers: Integers, steps: list[Step]) -> None:
        """Note which cells samples use, and let the step that is the first to use one read it."""
        starts = held.part.starts(indexes - held.first_sample, steps[0].batch.epoch)[:, 0]
        first, last = held.cells_of(starts)
        uses = [numbers * held.part.cells + first]
        for more in range(1, int((last - first).max(initial=0)) + 1):
            reaches = first + more <= last
            uses.append((numbers * held.part.cells + (first + more))[reaches])
        pairs = np.unique(np.concatenate(uses) if len(uses) > 1 else uses[0])  # of steps and cells, in order
        self.hits += len(pairs)
        cells = pairs % held.part.cells
        is_new = ~held.known[cells]
        if not is_new.any():
            return
        new, at = np.unique(cells[is_new], return_index=True)
        owners = (pairs[is_new] // held.part.cells)[at]
        self.hits -= len(new)
        for number in np.unique(owners).tolist():
            mine = new[owners == number]
            if held.is_together:
                left = mine[~held.known[mine]]
                self.hits += len(mine) - len(left)  # a step before has read them with others of their shard
                mine = left
                if not len(mine):
                    continue
                mine = _with_mates(held, mine)
            held.known[mine] = True
            self.reads += len(mine)
            self.most += len(mine) * held.part.cell_nbytes
            step = steps[number]
            step.misses.append((held, mine))
            step.is_read = step.is_read or threading.Event()

    # -- reading ---------------------------------------------------------------------

    def read(self, step: Step) -> None:
        """Read the cells that a step has to read. What is wrong with one is kept."""
        if step.is_read is None:
            return
        try:
            runs = [(held, run) for held, cells in step.misses for run in held.runs(cells)]
            boxes = [_box(held, *run) for held, run in runs]
            with self._touching:
                for box in boxes:
                    _touch(box.out)
            for at, error in assembly.read(boxes, self._indexes):
                held, (start, stop) = runs[at]
                if stop - start == 1:
                    held.errors[start] = error
                    continue
                single = [_box(held, cell, cell + 1) for cell in range(start, stop)]
                held.errors.update((start + each, why) for each, why in assembly.read(single, self._indexes))
        except Exception as error:  # noqa: BLE001 - the step that uses a cell raises it
            for held, cells in step.misses:
                held.errors.update(dict.fromkeys(cells.tolist(), error))
        finally:
            step.is_read.set()

    def put(self, step: Step, outs: Sequence[NDArray[Any]]) -> assembly.Failed:
        """Fill the memory of a batch, and return the samples that cannot be read."""
        for event in step.waits:
            event.wait()
        failed: assembly.Failed = []
        indexes, epoch = step.batch.indexes, step.batch.epoch
        for field, held, out in zip(self._fields, self._held, outs, strict=True):
            if not held:
                assembly.hold(field, step.batch, out)
            elif len(held) == 1:
                _copy(field, held[0], indexes, epoch, out, None, failed)
            else:
                parts = np.searchsorted(field.ends, indexes, side="right")
                for number in np.unique(parts).tolist():
                    rows = np.flatnonzero(parts == number)
                    _copy(field, held[number], indexes[rows], epoch, out, rows, failed)
        return failed


def can_hold(fields: Sequence[Field], limit: int, *, is_one_epoch: bool, is_whole: bool, is_in_order: bool) -> bool:
    """Return whether `Whole` can load fields within some bytes.

    Not those whose samples are chunks of their own that are used once, nor those that come as they are stored: they
    need no memory besides that of batches. Shards on another machine are read as a whole, so all of them must be used.
    """
    if is_in_order and is_one_epoch:
        return False
    parts = [part for field in fields if not field.is_held for part in field.parts]
    return (
        bool(parts)
        and sum(part.cells * part.cell_nbytes for part in parts) <= limit
        and all(_is_suitable(part, is_one_epoch=is_one_epoch, is_whole=is_whole) for part in parts)
    )


def _is_suitable(part: Part, *, is_one_epoch: bool, is_whole: bool) -> bool:
    return bool(
        part.axes == (0,)
        and not part.dtype.hasobject
        and part.dtype.kind != "T"
        and part.sample_nbytes > 0
        and (part.is_remote or (part.is_slow and part.shard_lengths) or not (part.is_once and is_one_epoch))
        and (not part.is_far or (is_whole and part.is_dense))
    )


def _with_mates(held: _Held, cells: Integers) -> Integers:
    """Return cells, and all others of their shards that are not read yet."""
    part = held.part
    assert part.shard_lengths is not None  # noqa: S101 - `is_far`
    each = max(1, part.shard_lengths[0] // part.lengths[0])
    firsts = np.unique(cells // each) * each
    mates = (firsts[:, None] + np.arange(each)).ravel()
    mates = mates[mates < part.cells]
    mates = mates[~held.known[mates]]
    more = np.setdiff1d(mates, cells, assume_unique=True)[: MOST_TOGETHER // max(1, part.cell_nbytes)]
    return np.union1d(cells, more)


def _box(held: _Held, start: int, stop: int) -> Box:
    """Return the box of neighbouring cells."""
    part = held.part
    rows = slice(start * part.lengths[0], min(stop * part.lengths[0], part.shape[0]), 1)
    return Box(part.array, (rows, *(slice(0, n, 1) for n in part.shape[1:])), held.rows[rows])


def _touch(memory: NDArray[Any]) -> None:
    """Let the system provide memory, whose values do not matter.

    Threads that decode into one large page would each have a page cleared for it, of which the system keeps one.
    """
    flat = memory.reshape(-1).view(np.uint8)
    flat[::_LARGE_PAGE] = 0
    flat[-1:] = 0


def _copy(
    field: Field,
    held: _Held,
    indexes: Integers,
    epoch: int,
    out: NDArray[Any],
    rows: Integers | None,
    failed: assembly.Failed,
) -> None:
    """Copy the samples of one part into place: all places of a batch, or some rows."""
    starts = held.part.starts(indexes - held.first_sample, epoch)[:, 0]
    if held.errors:
        first, last = held.cells_of(starts)
        for at, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            error = next((held.errors[cell] for cell in range(low, high + 1) if cell in held.errors), None)
            if error is not None:
                failed.append((at if rows is None else int(rows[at]), field.name, error))
    places = starts if held.size == 1 else (starts[:, None] + np.arange(held.size)).ravel()
    target = out if rows is None else np.empty((len(indexes), *out.shape[1:]), out.dtype)
    # "clip" copies into place, without a buffer: all places are there.
    np.take(held.rows, places, axis=0, out=target.reshape(len(places), *held.rows.shape[1:]), mode="clip")
    if rows is not None:
        out[rows] = target
