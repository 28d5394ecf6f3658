"""Reading reshaped nodes: selections of them become selections of their base, which are read into parts of the result.

A dimension that was divided and one that was merged of several are both positions in one row of elements. Positions
that follow a constant step are read as boxes of the base, directly into the memory where they belong, seen with the
dimensions of the base. Others are read as lists of positions, of which few are in memory at a time. Either way, only
what is selected is read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.indexing.transforms import Along, Listed, Output, Transform

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_LISTED: Final = 2**16
"""Positions in one list."""
_MOST_BYTES: Final = 32 * 2**20
"""Bytes of elements that are held at once beside the result."""


class Group(NamedTuple):
    """Neighbouring axes, and the dimensions that they become."""

    axes: range
    dims: range


def groups(shape: Sequence[int], to: Sequence[int]) -> list[Group]:
    """Return the smallest groups of axes that are reshaped by themselves.

    >>> groups((8760, 5, 4), (365, 24, 20))
    [Group(axes=range(0, 1), dims=range(0, 2)), Group(axes=range(1, 3), dims=range(2, 3))]
    """
    if 0 in shape:
        return [Group(range(len(shape)), range(len(to)))]
    found = []
    axis = dim = 0
    while axis < len(shape) or dim < len(to):
        first = axis, dim
        old, new = math.prod(shape[axis : axis + 1]), math.prod(to[dim : dim + 1])
        axis, dim = min(axis + 1, len(shape)), min(dim + 1, len(to))
        while old != new:
            if old < new:
                old *= shape[axis]
                axis += 1
            else:
                new *= to[dim]
                dim += 1
        found.append(Group(range(first[0], axis), range(first[1], dim)))
    return found


def kept_dims(shape: Sequence[int], to: Sequence[int]) -> dict[int, int]:
    """Return the axes that stay dimensions of their own, and these dimensions."""
    found = {}
    for group in groups(shape, to):
        axes = [axis for axis in group.axes if shape[axis] != 1]
        dims = [dim for dim in group.dims if to[dim] != 1]
        if len(axes) == len(dims) == 1:
            found[axes[0]] = dims[0]
    return found


def chunks(lengths: Sequence[int], shape: Sequence[int], to: Sequence[int], most: int) -> tuple[int, ...]:
    """Return lengths of pieces of the reshaped array of which each is read from few pieces of the base.

    Parameters
    ----------
    lengths : sequence of int
        Those of the pieces of the base.
    shape, to : sequence of int
        The shapes of the base, and of the reshaped array.
    most : int
        Number of elements of a row that may become one piece.
    """
    found = [1] * len(to)
    for group in groups(shape, to):
        row = 1  # length of a run of elements that is a whole number of pieces, or a part of one
        for axis in group.axes:
            inner = math.prod(shape[axis + 1 : group.axes.stop])
            if min(lengths[axis], shape[axis]) > 1 or axis == group.axes.stop - 1:
                row = min(lengths[axis], shape[axis]) * inner
                break
        if len(group.axes) > 1:
            last = min(lengths[group.axes.stop - 1], shape[group.axes.stop - 1])
            row = max(min(row, most), last, 1)
        for dim in reversed(group.dims):
            found[dim] = max(1, min(to[dim], row))
            row //= max(1, to[dim])
    return tuple(found)


class Part(NamedTuple):
    """Elements of the base, and where they belong."""

    transform: Transform
    """From positions in the memory to positions in the base."""
    memory: NDArray[Any]
    copy: tuple[NDArray[Any], NDArray[Any]] | None
    """Memory that several parts fill, of which this is the first, and where its elements are to be copied then."""


@dataclass(slots=True)
class _Run:
    """Positions in a row of elements that follow a constant step, along dimensions of which the last varies fastest."""

    dims: list[int]
    indices: range


_Row: TypeAlias = "int | _Run | Listed"


def parts(shape: Sequence[int], to: Sequence[int], source: Transform, region: NDArray[Any]) -> Iterator[Part]:
    """Yield what has to be read for a selection of a reshaped array.

    Parameters
    ----------
    shape, to : sequence of int
        The shapes of the base, and of the reshaped array.
    source : Transform
        From positions in the region to positions in the reshaped array. None of its dimensions is empty.
    region : ndarray
        What is filled.
    """
    parted = groups(shape, to)
    waiting = [(source, region)]
    while waiting:
        source, region = waiting.pop()
        rows: list[_Row] = []
        halved: int | None = None
        for group in parted:
            row = _row([source.outputs[dim] for dim in group.dims], [to[dim] for dim in group.dims], source.shape)
            lengths = [shape[axis] for axis in group.axes]
            if isinstance(row, _Run) and not _is_box(row, lengths):
                row = row if len(row.indices) > _MOST_LISTED else _listed(row, source.shape)
            if isinstance(row, _Run) and not _is_box(row, lengths):
                halved = row.dims[0]
            elif isinstance(row, list):
                halved = row[0]
            if halved is not None:
                break
            rows.append(row)
        if halved is None:
            order = _order(rows, len(source.shape))
            region_in_order = region.transpose(order)
            if _can_merge(rows, region_in_order, order):
                yield from _read_into(region_in_order, order, rows, parted, shape, None)
                continue
            if region.nbytes <= _MOST_BYTES or (halved := _outer(rows, source.shape)) is None:
                memory = np.empty(region_in_order.shape, region.dtype)
                copy = memory, region_in_order
                yield from _read_into(memory, order, rows, parted, shape, copy)
                continue
        middle = source.shape[halved] // 2
        for first, last in ((middle, source.shape[halved]), (0, middle)):
            waiting.append((source.cut(halved, first, last), region[_along(halved, slice(first, last))]))


def _row(outputs: Sequence[Output], lengths: Sequence[int], shape: Sequence[int]) -> Any:
    """Return positions in the row that dimensions make; a list of one dimension if it has to be halved before."""
    begin = 0
    runs: list[tuple[int, int]] = []
    lists: list[tuple[int, Listed]] = []
    for at, output in enumerate(outputs):
        stride = math.prod(lengths[at + 1 :])
        if isinstance(output, int):
            begin += output * stride
        elif isinstance(output, Listed):
            lists.append((stride, output))
        else:
            begin += output.indices.start * stride
            if len(output.indices) > 1:
                runs.append((output.indices.step * stride, output.dim))
    runs.sort(key=lambda run: -abs(run[0]))
    if not lists and not runs:
        return begin
    steps, dims = [step for step, _ in runs], [dim for _, dim in runs]
    if not lists and all(
        outer == inner * shape[dim] for outer, inner, dim in zip(steps[:-1], steps[1:], dims[1:], strict=True)
    ):
        count = math.prod(shape[dim] for dim in dims)
        return _Run(dims, range(begin, begin + steps[-1] * count, steps[-1]))
    every = sorted({*dims, *(dim for _, output in lists for dim in output.dims)})
    if math.prod(shape[dim] for dim in every) > _MOST_LISTED:
        return [dims[0] if dims else max(every, key=lambda dim: shape[dim])]
    found = np.full([1] * len(every), begin, np.int64)
    for step, dim in runs:
        found = found + step * _aligned(np.arange(shape[dim]), (dim,), every)
    for stride, output in lists:
        found = found + stride * _aligned(output.indices, output.dims, every)
    return _shortest(Listed(tuple(every), found))


def _shortest(listed: Listed) -> int | Listed:
    """Return the same without dimensions on which positions do not depend."""
    kept = [at for at, length in enumerate(listed.indices.shape) if length != 1]
    if not kept:
        return int(listed.indices.reshape(-1)[0])
    dims = tuple(listed.dims[at] for at in kept)
    return Listed(dims, listed.indices.reshape([listed.indices.shape[at] for at in kept]))


def _aligned(values: NDArray[Any], dims: Sequence[int], among: Sequence[int]) -> NDArray[Any]:
    lengths = dict(zip(dims, values.shape, strict=True))
    return values.reshape([lengths.get(dim, 1) for dim in among])


def _listed(run: _Run, shape: Sequence[int]) -> int | Listed:
    every = sorted(run.dims)
    indices = np.arange(len(run.indices)) * run.indices.step + run.indices.start
    indices = indices.reshape([shape[dim] for dim in run.dims]).transpose([run.dims.index(dim) for dim in every])
    return _shortest(Listed(tuple(every), indices))


def _is_box(run: _Run, lengths: Sequence[int]) -> bool:
    """Return whether a run consists of few boxes of axes of these lengths."""
    return len(lengths) == 1 or lengths[-1] % abs(run.indices.step) == 0


# -- memory with the dimensions of the base ---------------------------------------------------


def _order(rows: Sequence[_Row], ndim: int) -> list[int]:
    """Return an order of dimensions in which those of each run follow each other."""
    order: list[int] = []
    of_run = {row.dims[0]: row.dims for row in rows if isinstance(row, _Run)}
    inner = {dim for dims in of_run.values() for dim in dims[1:]}
    for dim in range(ndim):
        if dim not in inner:
            order += of_run.get(dim, [dim])
    return order


def _can_merge(rows: Sequence[_Row], region: NDArray[Any], order: Sequence[int]) -> bool:
    """Return whether the dimensions of each run are one in memory."""
    for row in rows:
        if isinstance(row, _Run):
            places = [order.index(dim) for dim in row.dims]
            for outer, inner in itertools.pairwise(places):
                if region.strides[outer] != region.strides[inner] * region.shape[inner]:
                    return False
    return True


def _outer(rows: Sequence[_Row], shape: Sequence[int]) -> int | None:
    """Return a dimension whose parts can be read one by one."""
    inner = {dim for row in rows if isinstance(row, _Run) for dim in row.dims[1:]}
    found = max((dim for dim in range(len(shape)) if dim not in inner), key=lambda dim: shape[dim])
    return found if shape[found] > 1 else None


def _read_into(
    memory: NDArray[Any],
    order: Sequence[int],
    rows: Sequence[_Row],
    parted: Sequence[Group],
    shape: Sequence[int],
    copy: tuple[NDArray[Any], NDArray[Any]] | None,
) -> Iterator[Part]:
    """Yield the parts for memory whose dimensions are in an order."""
    labels = list(order)
    for row in rows:
        if isinstance(row, _Run) and len(row.dims) > 1:
            at = labels.index(row.dims[0])
            many = len(row.dims)
            merged = math.prod(memory.shape[at : at + many])
            memory = memory.reshape((*memory.shape[:at], merged, *memory.shape[at + many :]))
            del labels[at + 1 : at + many]
    for outputs, part, names in _boxes(0, rows, parted, shape, memory, labels, 1 + max(order, default=0)):
        place = {label: at for at, label in enumerate(names)}
        yield Part(Transform(part.shape, [_renamed(output, place) for output in outputs]), part, copy)
        copy = None


def _renamed(output: Output, place: dict[int, int]) -> Output:
    if isinstance(output, Along):
        return Along(place[output.dim], output.indices)
    if isinstance(output, Listed):
        dims = [place[dim] for dim in output.dims]
        order = np.argsort(dims)
        return Listed(tuple(sorted(dims)), output.indices.transpose(order))
    return output


def _boxes(
    number: int,
    rows: Sequence[_Row],
    parted: Sequence[Group],
    shape: Sequence[int],
    memory: NDArray[Any],
    labels: list[int],
    unused: int,
) -> Iterator[tuple[list[Output], NDArray[Any], list[int]]]:
    """Yield positions along the axes of the groups from `number` on, the memory, and the labels of its dimensions."""
    if number == len(rows):
        yield [], memory, labels
        return
    row = rows[number]
    lengths = [shape[axis] for axis in parted[number].axes]
    if isinstance(row, int) or not lengths:
        fixed: list[Output] = []
        if isinstance(row, int) and lengths:
            fixed += [int(each) for each in np.unravel_index(row, lengths)]
        for rest, part, names in _boxes(number + 1, rows, parted, shape, memory, labels, unused):
            yield fixed + rest, part, names
        return
    if isinstance(row, Listed):
        lists: list[Output] = [_shortest(Listed(row.dims, each)) for each in np.unravel_index(row.indices, lengths)]
        for rest, part, names in _boxes(number + 1, rows, parted, shape, memory, labels, unused):
            yield lists + rest, part, names
        return
    at, indices = labels.index(row.dims[0]), row.indices
    if len(lengths) == 1:
        for rest, part, names in _boxes(number + 1, rows, parted, shape, memory, labels, unused):
            yield [Along(row.dims[0], indices), *rest], part, names
        return
    if indices.step < 0:
        indices, memory = indices[::-1], memory[_along(at, slice(None, None, -1))]
    step, rest_of_step = indices.step, indices.start % indices.step
    steps = [*lengths[:-1], lengths[-1] // step]
    begin = indices.start // step
    for first, last, box in boxes(steps, begin, begin + len(indices)):
        part = memory[_along(at, slice(first - begin, last - begin))]
        own = {axis: unused + axis for axis, each in enumerate(box) if isinstance(each, range)}
        divided = [len(each) for each in box if isinstance(each, range)]
        part = part.reshape((*part.shape[:at], *divided, *part.shape[at + 1 :]))
        names = [*labels[:at], *own.values(), *labels[at + 1 :]]
        outputs: list[Output] = [
            Along(own[axis], each) if isinstance(each, range) else each for axis, each in enumerate(box)
        ]
        outputs[-1] = _stepped(outputs[-1], step, rest_of_step)
        for more, whole, of_all in _boxes(number + 1, rows, parted, shape, part, names, unused + len(lengths)):
            yield outputs + more, whole, of_all


def _along(axis: int, part: slice) -> Any:
    """Return the selection of a part along one axis."""
    return (*(slice(None),) * axis, part, ...)


def _stepped(output: Output, step: int, begin: int) -> Output:
    if isinstance(output, Along):
        indices = output.indices
        return Along(output.dim, range(begin + indices.start * step, begin + indices.stop * step, step))
    assert isinstance(output, int)  # noqa: S101 - a box has no lists
    return begin + output * step


def boxes(lengths: Sequence[int], first: int, last: int) -> Iterator[tuple[int, int, list[int | range]]]:
    """Yield the boxes that the elements from `first` to `last` (exclusive) of an array make, in C order.

    >>> list(boxes((4, 5), 3, 17))
    [(3, 5, [0, range(3, 5)]), (5, 15, [range(1, 3), range(0, 5)]), (15, 17, [3, range(0, 2)])]
    """
    if len(lengths) == 1:
        yield first, last, [range(first, last)]
        return
    inner = math.prod(lengths[1:])
    row, end = first // inner, last // inner
    if row * inner < first:
        stop = min((row + 1) * inner, last)
        for begin, until, box in boxes(lengths[1:], first - row * inner, stop - row * inner):
            yield row * inner + begin, row * inner + until, [row, *box]
        row += 1
    if row < end:
        yield row * inner, end * inner, [range(row, end), *map(range, lengths[1:])]
    if row <= end and end * inner < last:
        for begin, until, box in boxes(lengths[1:], 0, last - end * inner):
            yield end * inner + begin, end * inner + until, [end, *box]
