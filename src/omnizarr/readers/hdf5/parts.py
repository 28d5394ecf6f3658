"""Parts of datasets of any datatype, read as `omnizarr.readers.hdf5.elements` gives them: only what is stored.

This is for programs that want elements as the file has them. Arrays of numbers are read faster through
`omnizarr.readers.hdf5.store`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError
from omnizarr.readers.hdf5 import chunks, elements, filters
from omnizarr.readers.hdf5.datasets import Dataset

Selection: TypeAlias = tuple[slice, ...]

_FEW: Final = 1 << 10
"""Chunks of a selection that are looked up one by one; of more, all stored ones are compared with the selection."""


class Parts:
    """The elements of a dataset that lie in the file itself.

    Parameters
    ----------
    dataset : Dataset
        Compact, contiguous or chunked.
    name_of : callable
        Returns the path of an object by its address, for references.
    """

    def __init__(self, dataset: Dataset, name_of: Callable[[int], str]) -> None:
        self._dataset = dataset
        self._name_of = name_of
        self._table: chunks.Chunks | None = None
        self._last: tuple[int, NDArray[Any]] | None = None

    def read(self, selection: Selection) -> Iterator[tuple[Selection, NDArray[Any]]]:
        """Yield the stored parts of a selection, with their places in the dataset, of any shape that fits these.

        selection: one slice per dimension, within the shape, with step 1.
        """
        if any(each.start >= each.stop for each in selection):
            return
        if self._dataset.layout.storage == "chunked":
            yield from self._in_chunks(selection)
        else:
            yield from self._in_rows(selection)

    def values(self, raw: bytes) -> NDArray[Any]:
        """Return elements from their bytes."""
        return elements.values(self._dataset.header.source, self._dataset.datatype, raw, self._name_of)

    # -- elements that are not divided ----------------------------------------------------------

    def _in_rows(self, selection: Selection) -> Iterator[tuple[Selection, NDArray[Any]]]:
        """Yield runs of elements that follow each other."""
        layout, shape, size = self._dataset.layout, self._dataset.shape, self._dataset.datatype.size
        if layout.storage == "contiguous" and layout.address is None:
            return
        axis = len(shape)
        while axis and _length(selection[axis - 1]) == shape[axis - 1]:
            axis -= 1
        axis = max(0, axis - 1)
        outer = [range(each.start, each.stop) for each in selection[:axis]]
        steps = [prod(shape[at + 1 :]) for at in range(len(shape))]
        inner = selection[axis:]
        count = prod(map(_length, inner))
        begin = inner[0].start * steps[axis] if inner else 0
        for place in itertools.product(*outer):
            start = begin + sum(at * step for at, step in zip(place, steps, strict=False))
            raw = self._bytes(start * size, count * size)
            found = self.values(raw)
            where = (*(slice(at, at + 1) for at in place), *inner)
            yield where, found.reshape((*map(_length, where), *found.shape[1:]))

    def _bytes(self, start: int, length: int) -> bytes:
        layout = self._dataset.layout
        if layout.storage == "contiguous":
            return self._dataset.header.source.read((layout.address or 0) + start, length)
        found = layout.data[start : start + length]
        if len(found) < length:
            raise MetadataError("a compact dataset has fewer elements than its shape says")
        return found

    # -- chunks -------------------------------------------------------------------------------

    def _in_chunks(self, selection: Selection) -> Iterator[tuple[Selection, NDArray[Any]]]:
        lengths = self._dataset.layout.chunk_shape
        if self._table is None:
            self._table = chunks.read(self._dataset)
        for at in self._wanted(self._table, selection, lengths):
            number = int(self._table.numbers[at])
            corner = _corner(number, self._table.grid, lengths)
            whole = self._chunk(at)
            where = tuple(
                slice(max(each.start, start), min(each.stop, start + length))
                for each, start, length in zip(selection, corner, lengths, strict=True)
            )
            inside = tuple(
                slice(each.start - start, each.stop - start) for each, start in zip(where, corner, strict=True)
            )
            yield where, whole[inside]

    @staticmethod
    def _wanted(table: chunks.Chunks, selection: Selection, lengths: Sequence[int]) -> Iterator[int]:
        """Yield the rows of stored chunks that a selection meets."""
        limits = [
            range(each.start // length, -(-each.stop // length))
            for each, length in zip(selection, lengths, strict=True)
        ]
        if prod(map(len, limits)) > min(_FEW, len(table)):
            places = np.unravel_index(table.numbers, table.grid) if table.grid else ()
            inside = np.ones(len(table), np.bool_)
            for coordinates, limit in zip(places, limits, strict=True):
                inside &= (coordinates >= limit.start) & (coordinates < limit.stop)
            yield from np.flatnonzero(inside).tolist()
            return
        for coords in itertools.product(*limits):
            number = 0
            for coordinate, count in zip(coords, table.grid, strict=True):
                number = number * count + coordinate
            at = int(np.searchsorted(table.numbers, number))
            if at < len(table) and table.numbers[at] == number:
                yield at

    def _chunk(self, at: int) -> NDArray[Any]:
        """Return the elements of a stored chunk; the last one is kept."""
        if self._last is None or self._last[0] != at:
            dataset, table = self._dataset, self._table
            assert table is not None  # noqa: S101 - the caller has read it
            source = dataset.header.source
            skipped = 0 if table.skipped is None else int(table.skipped[at])
            data = source.read(int(table.offsets[at]) - source.base, int(table.lengths[at]))
            raw = filters.decode(dataset.filters, skipped, data, dataset.datatype.size, chunks.chunk_bytes(dataset))
            found = self.values(bytes(raw))
            self._last = at, found.reshape((*dataset.layout.chunk_shape, *found.shape[1:]))
        return self._last[1]


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _corner(number: int, grid: Sequence[int], lengths: Sequence[int]) -> tuple[int, ...]:
    corner = []
    for count, length in zip(reversed(grid), reversed(lengths), strict=True):
        number, at = divmod(number, count)
        corner.append(at * length)
    return tuple(reversed(corner))
