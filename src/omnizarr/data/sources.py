"""Fields: where the samples of arrays lie, and in which cells.

A field consists of parts, one behind the other. Each is an array with boxes of one size at some places: the samples.
The *cells* of a part are the pieces in which its array is read and kept: the inner chunks along the axes along which
places differ, and everything along the others. So cells are never read in part, and their numbers say all about them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from omnizarr import engine
from omnizarr.data.permutations import below, key_of
from omnizarr.errors import BoundsCheckError, SettingError, ShapeError, ValueTypeError
from omnizarr.nodes import chunking
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.lazy.view import LazyArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Integers = NDArray[np.int64]

MOST: Final = 2**62
"""Samples or cells that can be numbered."""
_MOST_LISTED: Final = 2**24
"""Places that are listed one by one."""
_COORD_NBYTES: Final = 21
"""Bytes of a coordinate in the key of a shard, at most."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Boxes of one size in an array, each of which is a sample. `windows` makes them.

    Attributes
    ----------
    array : Array, LazyArray or numpy.ndarray
    size : tuple of int
        Length of a window along each dimension.
    counts : tuple of int
        Number of places along each dimension; of places that do not form a grid, their number.
    step : tuple of int or None
        Distance of neighbouring places along each dimension; None: they do not form a grid.
    at : numpy.ndarray or None
        The first element of each window along each dimension, if you gave them.
    seed : int
        What random places depend on, besides the epoch.
    """

    array: Any
    size: tuple[int, ...]
    counts: tuple[int, ...]
    step: tuple[int, ...] | None = None
    at: Integers | None = None
    seed: int = 0

    def __len__(self) -> int:
        return math.prod(self.counts)

    def __repr__(self) -> str:
        how = (
            "random"
            if self.step is None and self.at is None
            else "listed"
            if self.step is None
            else f"step {self.step}"
        )
        return f"<Windows {self.size} of {self.array!r}, {len(self)} {how}>"


def windows(
    array: Any,
    size: int | Sequence[int | None],
    *,
    step: int | Sequence[int] | None = None,
    random: int | None = None,
    at: ArrayLike | None = None,
    seed: int = 0,
) -> Windows:
    """Return windows of an array, as samples for a `Loader`: in a grid, at random places, or at places that you give.

    Parameters
    ----------
    array : Array, LazyArray or numpy.ndarray
    size : int or sequence of (int or None)
        Length of a window along each dimension; one number is that of all dimensions. None, and dimensions that are
        left out at the end: all elements.
    step : int or sequence of int, optional
        Distance of neighbouring windows along each dimension. The default is their size: they tile the array. Elements
        at the end that fill no window are left out.
    random : int, optional
        Number of windows at random places. Each epoch draws others. Arrays of one shape with the same `size`, `random`
        and `seed` have theirs at the same places: an image and its mask.
    at : array_like of int, optional
        First elements of the windows, of shape (windows, dimensions).
    seed : int
        For `random`.

    Returns
    -------
    Windows

    Raises
    ------
    ShapeError
        If a window is larger than the array, or does not fit its dimensions.
    BoundsCheckError
        If a window in `at` reaches beyond the array.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> volume = omnizarr.create_array({}, data=np.arange(64).reshape(4, 4, 4), chunks=(2, 2, 2))
    >>> len(omnizarr.data.windows(volume, 2)), len(omnizarr.data.windows(volume, 2, step=1))
    (8, 27)
    >>> len(omnizarr.data.windows(volume, (2, None), random=100, seed=1))
    100
    """
    array = _readable(array)
    shape: tuple[int, ...] = array.shape
    given = list(size) if isinstance(size, Iterable) else [operator.index(size)] * len(shape)
    if len(given) > len(shape) or not shape:
        raise ShapeError("a window needs a length for each dimension", found=size, expected=f"up to {len(shape)}")
    given += [None] * (len(shape) - len(given))
    lengths = tuple(n if one is None else operator.index(one) for one, n in zip(given, shape, strict=True))
    for axis, (length, n) in enumerate(zip(lengths, shape, strict=True)):
        if not 0 < length <= n:
            raise ShapeError(
                f"the window does not fit along dimension {axis}", found=f"length {length}", expected=f"1 to {n}"
            )
    if sum(each is not None for each in (step, random, at)) > 1:
        raise SettingError("windows are in a grid, at random or at given places", expected="one of step, random, at")
    if at is not None:
        places = _places(at, shape, lengths)
        return Windows(array, lengths, (len(places),), at=places)
    if random is not None:
        return Windows(array, lengths, (_positive(random, "random"),), seed=operator.index(seed))
    if step is None:
        steps = lengths
    elif isinstance(step, int | np.integer):
        steps = (_positive(step, "step"),) * len(shape)
    else:
        steps = tuple(_positive(one, "step") for one in step)
        steps += lengths[len(steps) :]
    if len(steps) != len(shape):
        raise ShapeError("a step needs a length for each dimension", found=step, expected=f"up to {len(shape)}")
    counts = tuple((n - length) // each + 1 for n, length, each in zip(shape, lengths, steps, strict=True))
    return Windows(array, lengths, counts, step=steps)


def _places(at: ArrayLike, shape: tuple[int, ...], lengths: tuple[int, ...]) -> Integers:
    try:
        places = np.asarray(at)
    except ValueError as error:
        raise ShapeError(
            "places need one row of integers for each window", found="rows of different lengths"
        ) from error
    if places.ndim != 2 or places.shape[1] != len(shape) or places.dtype.kind not in "iu":
        raise ShapeError(
            "places need one row of integers for each window",
            found=f"shape {places.shape}, {places.dtype}",
            expected=f"shape (windows, {len(shape)})",
        )
    bad = ((places < 0) | (places > np.subtract(shape, lengths))).any(axis=1)
    if bad.any():
        first = int(bad.argmax())
        raise BoundsCheckError(
            f"window {first} reaches beyond the array",
            found=f"{tuple(places[first].tolist())} of size {lengths}",
            expected=f"within {shape}",
        )
    return places.astype(np.int64)


def _positive(value: Any, name: str) -> int:
    number = operator.index(value)
    if number < 1:
        raise SettingError(f"{name} must be positive", found=number, expected="1 or more")
    return number


def _readable(source: Any) -> Any:
    """Return an array that can be read in parts; lists of numbers and tensors become NumPy arrays."""
    if isinstance(source, Array | LazyArray | np.ndarray):
        return source
    if hasattr(source, "read") and hasattr(source, "lazy"):
        return source
    found = None
    if hasattr(source, "__len__") and not isinstance(source, str | bytes | Mapping | AbstractSet | Group):
        found = np.asarray(source)
    if found is None or found.dtype.hasobject:
        raise ValueTypeError(
            "not an array that can be loaded",
            found=type(source).__name__,
            expected="omnizarr.Array, omnizarr.LazyArray, numpy.ndarray, windows of these, or a list of them",
            remedy="open it first: omnizarr.open_array, omnizarr.open_like; of a group, take one of its arrays",
        )
    return found


# -- parts -----------------------------------------------------------------------


class Uses(NamedTuple):
    """Which cells some samples use, and where these cells begin; one row for each pair of a sample and a cell."""

    samples: Integers
    """Position among the samples that were asked for."""
    cells: Integers
    """Number of the cell in the field."""
    starts: Integers
    """First element of the sample along each axis that has cells, counted from the start of the cell."""


class Part:
    """The samples of one array.

    Parameters
    ----------
    source : Windows, Array, LazyArray or numpy.ndarray
        What is no `Windows` has its rows as samples, which lose their first dimension.
    """

    def __init__(self, source: Any) -> None:
        self.is_rows = not isinstance(source, Windows)
        if self.is_rows:
            array = _readable(source)
            if not array.shape:
                raise ShapeError("an array without dimensions has no samples", found="shape ()")
            source = Windows(array, (1, *array.shape[1:]), (array.shape[0],), step=(1, *array.shape[1:]))
        self.windows: Windows = source
        self.array = source.array
        self.shape: tuple[int, ...] = self.array.shape
        self.size = source.size
        self.sample_shape = self.size[1:] if self.is_rows else self.size
        self.dtype: np.dtype[Any] = self.array.dtype
        self.count = len(source)
        self.is_held = isinstance(self.array, np.ndarray)
        """Whether all elements are in memory."""
        ndim = len(self.shape)
        self.axes = tuple(axis for axis in range(ndim) if self.size[axis] < self.shape[axis]) or (0,)[:ndim]
        """Axes along which places differ."""
        chunks, shards = _chunks_of(self.array)
        self.lengths = tuple(min(chunks[axis], self.shape[axis]) or 1 for axis in self.axes)
        """Length of a cell along each of `axes`."""
        self.shard_lengths = None if shards is None else tuple(shards[axis] for axis in self.axes)
        pairs = [] if shards is None else list(zip(self.shape, shards, chunks, strict=True))
        self._shards = math.prod(-(-n // max(1, shard)) for n, shard, _ in pairs)
        self._entries = math.prod(-(-shard // max(1, chunk)) for _, shard, chunk in pairs)
        self.grid = tuple(-(-self.shape[axis] // n) for axis, n in zip(self.axes, self.lengths, strict=True))
        """Number of cells along each of `axes`."""
        self.cells: int = math.prod(self.grid)
        whole = [self.size[axis] for axis in range(ndim) if axis not in self.axes]
        self.cell_nbytes = math.prod(self.lengths) * math.prod(whole) * self.dtype.itemsize
        self.sample_nbytes = math.prod(self.size) * self.dtype.itemsize
        if self.count > MOST or self.cells > MOST:
            raise ShapeError("more samples or cells than can be numbered", found=max(self.count, self.cells))
        step = self.windows.step
        self.is_once = step is not None and all(
            self.size[axis] == n and each % n == 0
            for axis, n, each in zip(self.axes, self.lengths, [step[axis] for axis in self.axes], strict=True)
        )
        """Whether each sample is a cell of its own."""

    def starts(self, indexes: Integers, epoch: int) -> Integers:
        """Return the first element of samples along each of `axes`, of shape (samples, axes)."""
        found = self.windows
        if found.at is not None:
            return found.at[indexes][:, self.axes]
        if found.step is None:
            drawn = [
                below(key_of(found.seed, epoch, axis), indexes, self.shape[axis] - self.size[axis] + 1)
                for axis in self.axes
            ]
            return np.stack(drawn, axis=1)
        if len(self.axes) == 1 and math.prod(found.counts) == found.counts[self.axes[0]]:
            return (indexes * found.step[self.axes[0]])[:, None]
        places = np.unravel_index(indexes, found.counts)
        return np.stack([places[axis] * found.step[axis] for axis in self.axes], axis=1).astype(np.int64)

    def uses(self, indexes: Integers, epoch: int) -> Uses:
        """Return the cells that samples use."""
        starts = self.starts(indexes, epoch)
        lengths = np.array(self.lengths, dtype=np.int64)
        sizes = np.array([self.size[axis] for axis in self.axes], dtype=np.int64)
        first = starts // lengths
        last = (starts + sizes - 1) // lengths
        samples = np.arange(len(indexes), dtype=np.int64)
        most = (last - first).max(axis=0).tolist() if len(indexes) else [0] * len(lengths)
        found = []
        for steps in product(*(range(n + 1) for n in most)):
            cells = first + np.array(steps, dtype=np.int64)
            is_there = (cells <= last).all(axis=1)
            if is_there.all():
                found.append((samples, cells, starts - cells * lengths))
            elif is_there.any():
                cells = cells[is_there]
                found.append((samples[is_there], cells, starts[is_there] - cells * lengths))
        if len(found) == 1:
            rows, cells, within = found[0]
        else:
            rows, cells, within = (np.concatenate(columns) for columns in zip(*found, strict=True))
        numbers = cells[:, 0].copy()
        for axis in range(1, len(self.grid)):
            numbers *= self.grid[axis]
            numbers += cells[:, axis]
        return Uses(rows, numbers, within)

    def coords_of(self, cell: int) -> tuple[int, ...]:
        """Return the coordinates of a cell along each of `axes`."""
        coords = []
        for n in reversed(self.grid):
            cell, at = divmod(cell, n)
            coords.append(at)
        return tuple(reversed(coords))

    def box_of(self, cell: int) -> _Box:
        """Return where a cell lies in the array. Along other axes it has what samples have: all elements."""
        box = [slice(0, n, 1) for n in self.shape]
        for axis, at, n in zip(self.axes, self.coords_of(cell), self.lengths, strict=True):
            box[axis] = slice(at * n, min(at * n + n, self.shape[axis]), 1)
        return tuple(box)

    @property
    def is_far(self) -> bool:
        """Whether its cells lie in shards, of which the native engine fetches parts from another machine."""
        return self.shard_lengths is not None and self.is_remote

    @cached_property
    def is_remote(self) -> bool:
        """Whether the native engine fetches its cells from another machine."""
        if not isinstance(self.array, Array):
            return False
        binding = (self.array._state.bound or self.array._bind()).binding  # noqa: SLF001 - a part of Array
        if binding.index is not None:  # samples need all of it
            binding.read_index()
        return engine.is_remote(binding)

    @cached_property
    def is_slow(self) -> bool:
        """Whether its store is on another machine, perhaps behind a cache."""
        return isinstance(self.array, Array) and self.array.store.features.concurrency > 1

    @property
    def index_nbytes(self) -> tuple[int, int]:
        """Bytes that the index of a shard takes in memory, and those of all shards; 0 if none is fetched by itself."""
        if not self.is_far:
            return 0, 0
        key = len(str(self.array.store)) + len(self.array.path) + _COORD_NBYTES * (1 + len(self.shape))
        one = engine.shard_index_nbytes(self._entries, key)
        return one, one * self._shards

    @cached_property
    def is_dense(self) -> bool:
        """Whether each cell has a part of a sample in every epoch."""
        step = self.windows.step
        return step is not None and all(
            step[axis] <= max(n, self.size[axis])
            and self.shape[axis] - (self.windows.counts[axis] - 1) * step[axis] - self.size[axis] < n
            for axis, n in zip(self.axes, self.lengths, strict=True)
        )

    def shards_of(self, cells: Integers) -> Integers:
        """Return the first cell of the shard of each cell."""
        assert self.shard_lengths is not None  # noqa: S101 - `is_far`
        found = np.zeros_like(cells)
        stride = 1
        rest = cells
        for number, length, shard in reversed(list(zip(self.grid, self.lengths, self.shard_lengths, strict=True))):
            rest, at = rest // number, rest % number
            found += (at - at % max(1, shard // length)) * stride
            stride *= number
        return found

    def mates(self, cell: int) -> list[int]:
        """Return all cells of the shard of a cell."""
        if self.shard_lengths is None:
            return []
        ranges = []
        for at, n, shard, most in zip(self.coords_of(cell), self.lengths, self.shard_lengths, self.grid, strict=True):
            per_shard = max(1, shard // n)
            first = at - at % per_shard
            ranges.append(range(first, min(first + per_shard, most)))
        numbers = []
        for coords in product(*ranges):
            number = 0
            for at, most in zip(coords, self.grid, strict=True):
                number = number * most + at
            numbers.append(number)
        return numbers

    def piece_of(self, cell: int, starts: Sequence[int]) -> tuple[_Box, _Box, _Box]:
        """Return where a sample and a cell meet: in the cell, in the sample, and in the array.

        `starts` are those of `Uses`.
        """
        inner = [slice(0, n, 1) for n in self.shape]
        outer = list(inner)
        place = list(inner)
        for axis, at, n, start in zip(self.axes, self.coords_of(cell), self.lengths, starts, strict=True):
            low, high = max(start, 0), min(start + self.size[axis], n)
            inner[axis] = slice(low, high, 1)
            outer[axis] = slice(low - start, high - start, 1)
            place[axis] = slice(at * n + low, at * n + high, 1)
        return tuple(inner), tuple(outer), tuple(place)


_Box = tuple[slice, ...]


def _chunks_of(array: Any) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the shape in which an array is decoded, and that of its shards, if it has any."""
    if isinstance(array, np.ndarray):
        return array.shape, None
    if isinstance(array, Array):
        grid = array._grid  # noqa: SLF001 - a part of Array
        outer = tuple(max(axis.sizes, default=1) for axis in grid.axes)
        inner = chunking.inner_chunk_shape(array._metadata.codecs)  # noqa: SLF001
        return (outer, None) if inner is None else (tuple(inner), outer)
    return tuple(array.chunks), None


# -- fields ----------------------------------------------------------------------


class Field:
    """One entry of the batches: parts with samples of one shape and data type, one behind the other."""

    def __init__(self, name: str, source: Any, through: Callable[[Any], Any] | None = None) -> None:
        self.name = name
        several = isinstance(source, list | tuple) and bool(source) and not any(map(np.isscalar, source))
        if several and all(isinstance(each, list | tuple) for each in source):
            several = False
        parts = source if several else [source]
        self.parts = [Part(each if through is None else through(each)) for each in parts]
        first = self.parts[0]
        self.sample_shape, self.dtype = first.sample_shape, first.dtype
        for number, part in enumerate(self.parts):
            if (part.sample_shape, part.dtype) != (self.sample_shape, self.dtype):
                raise ShapeError(
                    f"{name!r}: the samples of array {number} are not like those of array 0",
                    found=f"shape {part.sample_shape}, {part.dtype}",
                    expected=f"shape {self.sample_shape}, {self.dtype}",
                )
        self.ends = np.cumsum([part.count for part in self.parts])
        self.firsts = np.cumsum([0, *(part.cells for part in self.parts)])
        self.count = int(self.ends[-1])
        self.is_held = all(part.is_held for part in self.parts)
        self.sample_nbytes = first.sample_nbytes
        self.largest_cell = max((part.cell_nbytes for part in self.parts if not part.is_held), default=0)

    def uses(self, indexes: Integers, epoch: int) -> Uses:
        """Return the cells that samples use, for those parts that have to be read."""
        if len(self.parts) == 1:
            return self.parts[0].uses(indexes, epoch)
        found = []
        numbers = np.searchsorted(self.ends, indexes, side="right")
        for number in np.unique(numbers).tolist():
            part = self.parts[number]
            rows = np.flatnonzero(numbers == number)
            uses = part.uses(indexes[rows] - (self.ends[number] - part.count), epoch)
            found.append(uses._replace(samples=rows[uses.samples], cells=uses.cells + self.firsts[number]))
        axes = {each.starts.shape[1] for each in found}
        if len(axes) > 1:  # a part with a single sample may have fewer axes along which places differ
            most = max(axes)
            found = [
                each._replace(starts=np.pad(each.starts, ((0, 0), (0, most - each.starts.shape[1])))) for each in found
            ]
        return Uses(*(np.concatenate(columns) for columns in zip(*found, strict=True)))

    @cached_property
    def is_far(self) -> bool:
        """Whether cells of a part are `Part.is_far`."""
        return any(part.is_far for part in self.parts)

    def shards_of(self, cells: Integers) -> Integers:
        """Return the first cell of the shard of each cell; -1 if it is in no shard that is far."""
        if len(self.parts) == 1:
            return self.parts[0].shards_of(cells)
        found = np.full_like(cells, -1)
        numbers = np.searchsorted(self.firsts, cells, side="right") - 1
        for number in np.unique(numbers).tolist():
            if self.parts[number].is_far:
                rows = numbers == number
                first = self.firsts[number]
                found[rows] = self.parts[number].shards_of(cells[rows] - first) + first
        return found

    def part_of(self, cell: int) -> tuple[Part, int]:
        """Return the part of a cell, and its number there."""
        if len(self.parts) == 1:
            return self.parts[0], cell
        number = int(np.searchsorted(self.firsts, cell, side="right")) - 1
        return self.parts[number], cell - int(self.firsts[number])


def fields_of(sources: Any, through: Callable[[Any], Any] | None = None) -> list[Field]:
    """Return the fields of a mapping of names to sources. Raises ShapeError if they have different lengths.

    `through` returns what to read instead of a source.
    """
    items: Iterable[tuple[Any, Any]]
    try:
        items = list(sources.items())
    except AttributeError:
        raise ValueTypeError(
            "a loader needs a name for each array",
            found=type(sources).__name__,
            expected='a mapping such as {"x": images, "y": labels}',
        ) from None
    if not items:
        raise ShapeError("a loader needs at least one array", found="an empty mapping")
    fields = [Field(str(name), source, through) for name, source in items]
    if len({field.count for field in fields}) > 1:
        raise ShapeError(
            "the arrays have different numbers of samples",
            found=", ".join(f"{field.name!r}: {field.count}" for field in fields),
            expected="the same number for all",
            remedy="select the part that they share, as in images.lazy[:1000]",
        )
    return fields
