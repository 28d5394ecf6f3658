"""Long lines in few pixels: the smallest and largest element of each, so that no spike is lost between two of them.

Along one dimension of an array, elements are put into bins of equal width. All are read if a budget of decoded chunks
allows that. Otherwise the first chunks of each bin are read, or its first element if even these are too many, and
`Extremes.share` says which part of a bin that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.engine.cache import ChunkCache
from omnizarr.errors import ChunkError
from omnizarr.nodes import info

if TYPE_CHECKING:
    from omnizarr.nodes.array import Array

MOST_BYTES: Final = 2**28
"""Bytes of decoded chunks that are read for a line, unless one chunk of each bin is more."""
_CHUNK: Final = 2**12
"""Bytes that a chunk counts at least: asking for one takes as long as decoding these."""
_BLOCK: Final = 2**20
"""Elements that are read at once, or those of a chunk."""
LESS: Final = 4
_IN_CACHE: Final = 2**17
"""Elements that are compared at once."""
_CACHE: Final = 2**28
"""Bytes of decoded chunks that are kept between two reads, where chunks are large."""


class Decoded(NamedTuple):
    """What stored elements mean.

    Attributes
    ----------
    values : numpy.ndarray
        In their own type.
    numbers : numpy.ndarray of float64
        As they are compared; NaN where there is none.
    missing : int
        How many of them are missing.
    """

    values: NDArray[Any]
    numbers: NDArray[np.float64]
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Extremes:
    """The smallest and largest elements of bins.

    Attributes
    ----------
    places : numpy.ndarray of int
        Index in the array of the first element of each bin.
    width, length : int
        Elements of a bin (the last can have fewer), and of the line.
    low, high : numpy.ndarray
        Smallest and largest element of each bin, in their own type.
    low_at, high_at : numpy.ndarray of int
        How many elements of the line are before them.
    is_empty : numpy.ndarray of bool
        Bins with no number.
    counts : tuple of int
        NaN, missing, and all elements that were read.
    share : float
        Which part of each bin was read.
    error : ChunkError or None
        The first of chunks that could not be decoded, if these were to be left out.
    """

    places: NDArray[np.int64]
    width: int
    length: int
    low: NDArray[Any]
    high: NDArray[Any]
    low_at: NDArray[np.int64]
    high_at: NDArray[np.int64]
    is_empty: NDArray[np.bool_]
    counts: tuple[int, int, int]
    share: float
    error: ChunkError | None = None

    def line(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.int64]]:
        """Return both elements of each bin in their order, whether there are none, and rising positions in the line.

        The positions are those of the bins, not of the elements. A bin of one element has one.
        """
        falls = self.high_at < self.low_at
        pairs = np.stack([np.where(falls, self.high, self.low), np.where(falls, self.low, self.high)], axis=1).ravel()
        first = np.arange(len(self.low)) * self.width
        second = np.minimum(first + self.width // 2, self.length - 1)
        at = np.stack([first, second], axis=1).ravel()
        kept = np.concatenate([[True], np.diff(at) > 0])
        return pairs[kept], np.repeat(self.is_empty, 2)[kept], at[kept]


def read(
    array: Array,
    selection: Sequence[int | range],
    dimension: int,
    width: int,
    decode: Callable[[NDArray[Any]], Decoded],
    *,
    fields: str | None = None,
    most_bytes: int = MOST_BYTES,
    less: int = LESS,
    between: Callable[[], object] = lambda: None,
    skips_broken: bool = False,
) -> Extremes:
    """Read a line in bins.

    Parameters
    ----------
    array : Array
    selection : sequence of (int or range)
        For each dimension an index; for one of them the indices of the line, at least one.
    dimension : int
        That one.
    width : int
        Elements of a bin; those of the result are a little wider if there are very many.
    decode : callable
        Returns what stored elements mean.
    fields : str, optional
        Field of a record.
    most_bytes : int
        Bytes of decoded chunks, each at least 4096: of all for the whole line, otherwise `less` times less.
    less : int
        How many times less is read of a line that is too long: its chunks are far apart.
    between : callable
        Called between two reads; what it raises ends reading.
    skips_broken : bool
        Whether bins of chunks that cannot be decoded are empty. Otherwise they raise ChunkError.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> data = np.zeros(1_000_000)
    >>> data[654_321] = 7
    >>> array = omnizarr.create_array({}, data=data)
    >>> found = read(array, [range(1_000_000)], 0, 250_000, lambda stored: Decoded(stored, stored))
    >>> found.low.tolist(), found.high.tolist(), found.places.tolist(), found.share
    ([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 7.0, 0.0], [0, 250000, 500000, 750000], 1.0)
    """
    line = _line_of(selection, dimension)
    plan = _plan(array, line, dimension, width, (most_bytes, most_bytes // less))
    if not array.config.chunk_cache and plan.block > _BLOCK // 8:
        # Two reads in a row need the chunk between them.
        array = array.with_config(replace(array.config, chunk_cache=ChunkCache(_CACHE)))
    parts: list[_Part] = []
    error: ChunkError | None = None
    for bins in plan.groups(len(line)):
        between()
        try:
            parts += _part(array, selection, dimension, plan, bins, decode, fields)
        except ChunkError as broken:
            if not skips_broken:
                raise
            error = error or broken
            for one in bins:
                between()
                try:
                    parts += _part(array, selection, dimension, plan, range(one, one + 1), decode, fields)
                except ChunkError:
                    parts.append(_nothing(plan, one))
    return replace(_joined(parts, plan, line), error=error)


def _line_of(selection: Sequence[int | range], dimension: int) -> range:
    indices = selection[dimension]
    return indices if isinstance(indices, range) else range(indices, indices + 1)


class _Plan(NamedTuple):
    width: int
    """Elements of a bin."""
    run: int
    """Elements of it that are read."""
    parts: int
    """How many bins are read for one of the result, one after the other."""
    block: int
    """Elements of a chunk."""
    phase: int = 0
    """The first element of the line with which a chunk begins."""

    def starts(self, bins: range, length: int) -> NDArray[np.int64]:
        """Return where the elements begin that are read of each bin."""
        first = np.arange(bins.start, bins.stop) * self.width
        return (
            first if self.run in (1, self.width) else np.minimum(first + (self.phase - first) % self.block, length - 1)
        )

    def groups(self, length: int) -> Iterator[range]:
        """Yield numbers of bins that are read at once."""
        count = -(-length // self.width)
        size = max(1, max(_BLOCK, self.block) // self.run)
        return (range(start, min(start + size, count)) for start in range(0, count, size))


class _Part(NamedTuple):
    low: NDArray[Any]
    high: NDArray[Any]
    low_at: NDArray[np.int64]
    high_at: NDArray[np.int64]
    is_empty: NDArray[np.bool_]
    numbers: tuple[NDArray[np.float64], NDArray[np.float64]]
    counts: tuple[int, int, int]


def chunk_cost(array: Array) -> int:
    """Return the bytes that a chunk of an array counts when a line is read."""
    facts = info.of_array(array.store_path, array.metadata)
    return max(_CHUNK, facts.nbytes_of(facts.chunks or array.shape) or 0)


def _plan(array: Array, line: range, dimension: int, width: int, most_bytes: tuple[int, int]) -> _Plan:
    """Return how wide bins are, and how many elements of each are read, if the line is read as a whole, or in parts."""
    facts = info.of_array(array.store_path, array.metadata)
    chunks = facts.chunks or array.shape
    in_chunk = max(1, chunks[dimension] // abs(line.step))
    cost = chunk_cost(array)
    if width > 1 and cost * (len(line) / in_chunk) > most_bytes[0]:
        bins = -(-len(line) // width)
        count = most_bytes[1] // (bins * cost)
        if count and width >= 2 * in_chunk:
            # Whole chunks are read, from the first that begins in a bin on.
            phase = -line.start // line.step % in_chunk if line.step > 0 else 0
            return _Plan(width, min(count * in_chunk, width - in_chunk + 1), 1, in_chunk, phase)
        return _Plan(width, 1, 1, 1)
    parts = -(-width // max(_BLOCK, in_chunk))
    width = -(-width // parts)
    return _Plan(width, width, parts, in_chunk)


def _part(
    array: Array,
    selection: Sequence[int | range],
    dimension: int,
    plan: _Plan,
    bins: range,
    decode: Callable[[NDArray[Any]], Decoded],
    fields: str | None,
) -> list[_Part]:
    """Return the extremes of some bins, in pieces."""
    line = _line_of(selection, dimension)
    starts = plan.starts(bins, len(line))
    if plan.run in (1, plan.width):
        places = line[starts[0] : bins.stop * plan.width : plan.width if plan.run == 1 else 1]
        index: Any = slice(places.start, places.stop if places.stop >= 0 else None, places.step)
    else:
        wanted = (starts[:, None] + np.arange(plan.run)).ravel()
        inside = wanted[wanted < len(line)]
        index = line.start + inside * line.step
        if line.step < 0:
            index = index[::-1]
    chosen = tuple(index if at == dimension else each for at, each in enumerate(selection))
    stored = np.asarray(array.get_orthogonal_selection(chosen, fields=fields)).ravel()
    if plan.run not in (1, plan.width) and line.step < 0:
        stored = stored[::-1]
    rows = max(1, _IN_CACHE // plan.run)
    parts = []
    for row in range(0, len(bins), rows):
        piece = stored[row * plan.run : (row + rows) * plan.run]
        parts.append(_reduced(decode(piece), starts[row : row + rows], plan.run))
    return parts


def _reduced(decoded: Decoded, starts: NDArray[np.int64], run: int) -> _Part:
    """Return the extremes of bins, of `run` elements each; the last bin may lack some."""
    values, numbers, missing = decoded
    lacking = len(starts) * run - len(values)
    table = (np.concatenate([numbers, np.full(lacking, np.nan)]) if lacking else numbers).reshape(-1, run)
    rows, none = np.arange(len(starts)), lacking
    low_in, high_in = table.argmin(axis=1), table.argmax(axis=1)  # of NaN, if there is one
    is_empty = np.isnan(table[rows, low_in])
    if is_empty.any():
        is_none = np.isnan(table)
        none = int(np.count_nonzero(is_none))
        low_in = np.where(is_none, np.inf, table).argmin(axis=1)
        high_in = np.where(is_none, -np.inf, table).argmax(axis=1)
        is_empty = is_none.all(axis=1)
        for inside in (low_in, high_in):  # an infinite element is not what replaced NaN
            lost = is_none[rows, inside] & ~is_empty
            inside[lost] = (~is_none[lost]).argmax(axis=1)
    low_of, high_of = (np.minimum(rows * run + inside, len(values) - 1) for inside in (low_in, high_in))
    ends = table[rows, low_in], table[rows, high_in]
    counts = (none - lacking - missing, missing, len(values))
    return _Part(values[low_of], values[high_of], starts + low_in, starts + high_in, is_empty, ends, counts)


def _nothing(plan: _Plan, one: int) -> _Part:
    """Return a bin without numbers."""
    at, none = np.array([one * plan.width]), np.array([np.nan])
    return _Part(none, none, at, at, np.array([True]), (none, none), (0, 0, 0))


def _joined(parts: Sequence[_Part], plan: _Plan, line: range) -> Extremes:
    """Return all bins; of several that are one of the result, the extremes of all."""
    low, high, low_at, high_at, is_empty = (np.concatenate([part[at] for part in parts]) for at in range(5))
    width = plan.width * plan.parts
    if plan.parts > 1:
        numbers = [np.concatenate([part.numbers[at] for part in parts]) for at in (0, 1)]
        starts = range(0, len(low), plan.parts)
        lows = [at + int(_place(numbers[0][at : at + plan.parts], np.nanargmin)) for at in starts]
        highs = [at + int(_place(numbers[1][at : at + plan.parts], np.nanargmax)) for at in starts]
        low, low_at, high, high_at = low[lows], low_at[lows], high[highs], high_at[highs]
        is_empty = is_empty[lows]
    nan, missing, size = (sum(part.counts[at] for part in parts) for at in range(3))
    places = np.array(line[::width], np.int64)
    share = plan.run / plan.width
    counts = (nan, missing, size)
    return Extremes(places, width, len(line), low, high, low_at, high_at, is_empty, counts, share)


def _place(numbers: NDArray[np.float64], find: Callable[[NDArray[np.float64]], Any]) -> Any:
    return 0 if np.isnan(numbers).all() else find(numbers)
