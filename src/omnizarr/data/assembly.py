"""Steps become batches: cells are read, and samples are copied out of them into place."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from omnizarr import engine
from omnizarr.data import fetching
from omnizarr.data.batches import Spare
from omnizarr.data.fetching import Box
from omnizarr.data.keeping import Batch, Cell, Step, Use
from omnizarr.data.sources import Field, Part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

Failed = list[tuple[int, str, Exception]]
"""Position of a sample in its batch, its field, and why it cannot be read."""


class _Passing(NamedTuple):
    """A cell, or a sample alone, that is read when its step is put together."""

    box: Box
    position: int
    """Position of the cell in its `Use`."""
    is_single: bool


class Assembler:
    """Reads the cells of steps, and puts steps together. Threads share it.

    Parameters
    ----------
    fields : sequence of Field
    passing : int
        Bytes of cells that are read at a time while a step is put together, at least one cell.
    threads : int
        Threads that put steps together at the same time.
    indexes : object, optional
        Where indexes of shards are kept: see `fetching.read`.
    spare : Spare, optional
        Memory for cells.
    """

    def __init__(
        self, fields: Sequence[Field], passing: int, threads: int, indexes: Any = None, spare: Spare | None = None
    ) -> None:
        self._fields = fields
        self._spare = spare
        self._indexes = indexes
        largest = max((field.largest_cell for field in fields), default=0)
        self._passing = max(passing // threads, largest, 1)
        self._turn = threading.Semaphore(max(1, passing // self._passing))
        self.nbytes_read = 0

    def read(self, step: Step) -> None:
        """Read the cells that a step has to read. What is wrong with one is kept in it."""
        try:
            boxes = []
            for cell in step.misses:
                part, number = self._fields[cell.field].part_of(cell.number)
                place = part.box_of(number)
                data = self._memory_of(cell, [each.stop - each.start for each in place], part.dtype)
                boxes.append(Box(part.array, place, data))
            for at, error in read(boxes, self._indexes):
                step.misses[at].error = error
        except Exception as error:  # noqa: BLE001 - the step that uses a cell raises it
            for cell in step.misses:
                cell.error = error
        finally:
            step.is_read.set()

    def _memory_of(self, cell: Cell, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
        nbytes = math.prod(shape) * dtype.itemsize
        if self._spare is None or dtype.hasobject or dtype.kind == "T" or not 0 < nbytes <= cell.nbytes:
            cell.data = np.empty(shape, dtype)
            return cell.data
        cell.memory = self._spare.take(cell.nbytes)
        cell.data = cell.memory[:nbytes].view(dtype).reshape(shape)
        return cell.data

    def put(self, step: Step, outs: Sequence[NDArray[Any]]) -> Failed:
        """Fill the memory of a batch, and return the samples that cannot be read."""
        failed: Failed = []
        for number, (field, use, out) in enumerate(zip(self._fields, step.uses, outs, strict=True)):
            if use is None:
                hold(field, step.batch, out)
                continue
            scatter(field, use, _in_memory(field, use, step.cells[number], failed), out)
            self._pass(field, step, number, use, out, failed)
        return failed

    def _pass(self, field: Field, step: Step, number: int, use: Use, out: NDArray[Any], failed: Failed) -> None:
        single = [self._single(field, use, position, out) for position in sorted(step.single[number])]
        if single:
            self._read_passing(field, use, single, out, failed)
        for group in self._groups(field, use, sorted(step.passing[number])):
            with self._turn:
                boxes = []
                for position in group:
                    part, cell = field.part_of(use.cells[position])
                    place = part.box_of(cell)
                    data: NDArray[Any] = np.empty([each.stop - each.start for each in place], part.dtype)
                    boxes.append(_Passing(Box(part.array, place, data), position, is_single=False))
                self._read_passing(field, use, boxes, out, failed)
                del boxes

    def _groups(self, field: Field, use: Use, positions: Sequence[int]) -> Iterator[list[int]]:
        group: list[int] = []
        nbytes = 0
        for position in positions:
            more = field.part_of(use.cells[position])[0].cell_nbytes
            if group and nbytes + more > self._passing:
                yield group
                group, nbytes = [], 0
            group.append(position)
            nbytes += more
        if group:
            yield group

    def _single(self, field: Field, use: Use, position: int, out: NDArray[Any]) -> _Passing:
        part, cell = field.part_of(use.cells[position])
        at = use.bounds[position]
        sample = int(use.samples[at])
        _, outer, place = part.piece_of(cell, use.starts[at].tolist())
        target = out[sample : sample + 1] if part.is_rows else out[sample]
        return _Passing(Box(part.array, place, target[outer]), position, is_single=True)

    def _read_passing(
        self, field: Field, use: Use, passing: Sequence[_Passing], out: NDArray[Any], failed: Failed
    ) -> None:
        errors = dict(read([each.box for each in passing], self._indexes))
        found = []
        for at, each in enumerate(passing):
            if at in errors:
                _fail(field, use, each.position, errors[at], failed)
            elif not each.is_single:
                found.append((each.position, each.box.out))
        scatter(field, use, found, out)


def _in_memory(field: Field, use: Use, cells: Mapping[int, Cell], failed: Failed) -> list[tuple[int, NDArray[Any]]]:
    """Return the positions in `Use.cells` and the elements of cells that are in memory, once they are there."""
    found = []
    for position, number in enumerate(use.cells):
        cell = cells.get(number)
        if cell is None:
            continue
        cell.owner.is_read.wait()
        data = cell.data
        if cell.error is not None or data is None:
            error = cell.error or RuntimeError("a cell was dropped before it was used")
            _fail(field, use, position, error, failed)
        else:
            found.append((position, data))
    return found


def read(boxes: Sequence[Box], indexes: Any) -> list[tuple[int, Exception]]:
    """Read boxes together, and return those that cannot be read: if there is one, halves are read to find it."""
    if not boxes:
        return []
    try:
        fetching.read(boxes, indexes)
    except Exception as error:  # noqa: BLE001 - readers of any kind
        if len(boxes) == 1:
            return [(0, error)]
        half = len(boxes) // 2
        others = read(boxes[half:], indexes)
        return [*read(boxes[:half], indexes), *((half + at, of_box) for at, of_box in others)]
    return []


def _fail(field: Field, use: Use, position: int, error: Exception, failed: Failed) -> None:
    samples = use.samples[use.bounds[position] : use.bounds[position + 1]]
    failed.extend((sample, field.name, error) for sample in samples.tolist())


def scatter(field: Field, use: Use, found: Sequence[tuple[int, NDArray[Any]]], out: NDArray[Any]) -> None:
    """Copy what samples have of cells, which come with their positions in `Use.cells`, into place."""
    groups: dict[int, tuple[Part, list[tuple[int, NDArray[Any]]]]] = {}
    if len(field.parts) == 1:
        groups[0] = field.parts[0], list(found)
    else:
        for each in found:
            part, _ = field.part_of(use.cells[each[0]])
            groups.setdefault(id(part), (part, []))[1].append(each)
    for part, some in groups.values():
        if not some:
            continue
        places = _places(use, [position for position, _ in some], len(part.axes))
        if not engine.place_samples(out, [data for _, data in some], places, part.size, part.axes):
            for position, data in some:
                _scatter(field, use, position, out, data)


def _places(use: Use, positions: Sequence[int], axes: int) -> tuple[list[int], Integers, Integers]:
    """Return the bounds of the uses of some cells, and these uses."""
    samples, starts = use.samples, use.starts[:, :axes]
    if len(positions) == len(use.cells):
        return use.bounds, samples, starts
    rows = np.concatenate([np.arange(use.bounds[each], use.bounds[each + 1]) for each in positions])
    counts = [use.bounds[each + 1] - use.bounds[each] for each in positions]
    return [0, *np.cumsum(counts).tolist()], samples[rows], starts[rows]


def _scatter(field: Field, use: Use, position: int, out: NDArray[Any], data: NDArray[Any]) -> None:
    part, cell = field.part_of(use.cells[position])
    start, stop = use.bounds[position], use.bounds[position + 1]
    samples, starts = use.samples[start:stop], use.starts[start:stop]
    if part.is_rows and part.axes == (0,):
        if stop - start == 1:
            out[int(samples[0])] = data[int(starts[0, 0])]
        else:
            out[samples] = data[starts[:, 0]]
        return
    target = out[:, None] if part.is_rows else out
    for sample, first in zip(samples.tolist(), starts.tolist(), strict=True):
        inner, outer, _ = part.piece_of(cell, first)
        target[sample][outer] = data[inner]


def hold(field: Field, batch: Batch, out: NDArray[Any]) -> None:
    """Copy samples out of arrays in memory."""
    indexes, epoch = batch.indexes, batch.epoch
    if len(field.parts) == 1:
        _of_part(field.parts[0], indexes, epoch, out, None)
        return
    numbers = np.searchsorted(field.ends, indexes, side="right")
    for number in np.unique(numbers).tolist():
        part = field.parts[number]
        rows = np.flatnonzero(numbers == number)
        _of_part(part, indexes[rows] - (int(field.ends[number]) - part.count), epoch, out, rows)


def _of_part(part: Part, indexes: Integers, epoch: int, out: NDArray[Any], rows: Integers | None) -> None:
    if part.is_rows:
        if rows is None:
            out[...] = part.array[indexes]
        else:
            out[rows] = part.array[indexes]
        return
    starts = part.starts(indexes, epoch).tolist()
    for at, first in enumerate(starts):
        box = [slice(None)] * len(part.shape)
        for axis, start in zip(part.axes, first, strict=True):
            box[axis] = slice(start, start + part.size[axis])
        out[at if rows is None else int(rows[at])] = part.array[tuple(box)]


def explain(error: Exception, name: str, sample: int, epoch: int, step: int) -> Exception:
    """Return an error that says which sample could not be read."""
    note = f"while sample {sample} of {name!r} was read, in epoch {epoch}, step {step}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error
