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
from omnizarr.readers.hdf5 import blocks, chunks, elements, filters
from omnizarr.readers.hdf5.blocks import Blocks, Virtual
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.outside import Files, Outside
from omnizarr.readers.hdf5.virtual import Unsupported

Selection: TypeAlias = tuple[slice, ...]

_FEW: Final = 1 << 10
"""Chunks of a selection that are looked up one by one; of more, all stored ones are compared with the selection."""


class Parts:
    """The elements of a dataset.

    Parameters
    ----------
    dataset : Dataset
    name_of : callable
        Returns the path of an object by its address, for references.
    files : Files
        What the file may lead to, for elements that are in other files or datasets.
    """

    def __init__(self, dataset: Dataset, name_of: Callable[[int], str], files: Files) -> None:
        self._dataset = dataset
        self._name_of = name_of
        self._table: chunks.Chunks | None = None
        self._last: tuple[int, NDArray[Any]] | None = None
        self._files = files
        self._blocks: Blocks | None = None
        self._virtual: Virtual | None = None

    def read(self, selection: Selection) -> Iterator[tuple[Selection, NDArray[Any]]]:
        """Yield the stored parts of a selection, with their places in the dataset, of any shape that fits these.

        selection: one slice per dimension, within the shape, with step 1.
        """
        if any(each.start >= each.stop for each in selection):
            return
        if self._dataset.is_external or self._dataset.layout.storage == "virtual":
            yield from self._elsewhere(selection)
        elif self._dataset.layout.storage == "chunked":
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

    # -- elements in other files or datasets ----------------------------------------------------

    def _elsewhere(self, selection: Selection) -> Iterator[tuple[Selection, NDArray[Any]]]:
        if self._dataset.layout.storage == "virtual" and elements.has_heap(self._dataset.datatype):
            yield from self._mapped(selection)
            return
        if self._blocks is None:
            self._blocks = blocks.of(self._dataset, self._files)
        found, lengths = self._blocks, self._blocks.chunk_shape
        for coords in itertools.product(*_limits(selection, lengths)):
            number = _number(coords, found.grid)
            raw = found.fetch(number) if found.has(number) else None
            if raw is not None:
                values = self.values(raw)
                whole = values.reshape((*lengths, *values.shape[1:]))
                corner = [at * length for at, length in zip(coords, lengths, strict=True)]
                where, inside = _met(selection, corner, lengths)
                yield where, whole[inside]

    def _mapped(self, selection: Selection) -> Iterator[tuple[Selection, NDArray[Any]]]:
        """Yield elements of a virtual dataset that lie in the heaps of its sources."""
        if self._virtual is None:
            self._virtual = Virtual(self._dataset, self._files)
        for mapping in self._virtual.mappings:
            target = self._virtual.target(mapping)
            ranks = [axis.ranks(each.start, each.stop) for axis, each in zip(target, selection, strict=True)]
            if not all(first < stop for first, stop in ranks):
                continue
            try:
                opened = self._files.dataset(mapping.file, mapping.path)
                if opened is None:
                    continue
                dataset, there = opened
                indices, pairs = blocks.wanted(mapping, blocks.shape_of(dataset, there), target, ranks)
            except (Unsupported, Outside) as error:
                raise blocks.unread(mapping, error) from error
            if dataset.datatype != self._dataset.datatype:
                raise blocks.unread(mapping, Unsupported("it has another datatype"))
            places = [axis.indices(first, stop) for axis, (first, stop) in zip(target, ranks, strict=True)]
            source = Parts(dataset, self._names_of(there), there)
            fill = source.values(dataset.fill.raw or bytes(dataset.datatype.size))
            for inner, outer in _runs(indices, places, pairs):
                yield outer, np.repeat(fill, prod(map(_length, outer))).reshape([*map(_length, outer)])
                for where, found in source.read(inner):
                    shown = tuple(
                        own
                        if at is None
                        else slice(
                            own.start + where[at].start - inner[at].start, own.start + where[at].stop - inner[at].start
                        )
                        for own, at in zip(outer, pairs, strict=True)
                    )
                    yield shown, found.reshape([*map(_length, shown)])

    def _names_of(self, there: Files) -> Callable[[int], str]:
        """Return what names objects of the file of a source."""
        source = there.file.source
        if source.file is self._files.file.source.file:
            return self._name_of
        return lambda address: f"{source.key}:/{there.file.paths().get(address, '')}"

    # -- chunks -------------------------------------------------------------------------------

    def _in_chunks(self, selection: Selection) -> Iterator[tuple[Selection, NDArray[Any]]]:
        lengths = self._dataset.layout.chunk_shape
        if self._table is None:
            self._table = chunks.read(self._dataset)
        for at in self._wanted(self._table, selection, lengths):
            number = int(self._table.numbers[at])
            corner = _corner(number, self._table.grid, lengths)
            whole = self._chunk(at)
            where, inside = _met(selection, corner, lengths)
            yield where, whole[inside]

    @staticmethod
    def _wanted(table: chunks.Chunks, selection: Selection, lengths: Sequence[int]) -> Iterator[int]:
        """Yield the rows of stored chunks that a selection meets."""
        limits = _limits(selection, lengths)
        if prod(map(len, limits)) > min(_FEW, len(table)):
            places = np.unravel_index(table.numbers, table.grid) if table.grid else ()
            inside = np.ones(len(table), np.bool_)
            for coordinates, limit in zip(places, limits, strict=True):
                inside &= (coordinates >= limit.start) & (coordinates < limit.stop)
            yield from np.flatnonzero(inside).tolist()
            return
        for coords in itertools.product(*limits):
            number = _number(coords, table.grid)
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


def _runs(
    indices: Sequence[NDArray[np.int64]], places: Sequence[NDArray[np.int64]], pairs: Sequence[int | None]
) -> Iterator[tuple[Selection, Selection]]:
    """Yield parts of a source and where they are shown, in both of which elements follow each other."""
    own = {at: axis for axis, at in enumerate(pairs) if at is not None}
    along: list[list[tuple[slice, slice | None]]] = []
    for axis, each in enumerate(indices):
        to = places[own[axis]] if axis in own else each
        cuts = np.flatnonzero((np.diff(each) != 1) | (np.diff(to) != 1)) + 1
        bounds = [0, *cuts.tolist(), len(each)]
        along.append(
            [
                (
                    slice(int(each[first]), int(each[stop - 1]) + 1),
                    slice(int(to[first]), int(to[stop - 1]) + 1) if axis in own else None,
                )
                for first, stop in itertools.pairwise(bounds)
            ]
        )
    single = {
        axis: slice(int(places[axis][0]), int(places[axis][0]) + 1) for axis, at in enumerate(pairs) if at is None
    }
    for run in itertools.product(*along):
        shown = {own[axis]: to for axis, (_, to) in enumerate(run) if to is not None} | single
        yield tuple(inner for inner, _ in run), tuple(shown[axis] for axis in range(len(pairs)))


def _limits(selection: Selection, lengths: Sequence[int]) -> list[range]:
    """Return the chunks that a selection meets along each dimension."""
    return [
        range(each.start // length, -(-each.stop // length)) for each, length in zip(selection, lengths, strict=True)
    ]


def _met(selection: Selection, corner: Sequence[int], lengths: Sequence[int]) -> tuple[Selection, Selection]:
    """Return the part of a selection that is in a chunk, and its place there."""
    where = tuple(
        slice(max(each.start, start), min(each.stop, start + length))
        for each, start, length in zip(selection, corner, lengths, strict=True)
    )
    return where, tuple(slice(each.start - start, each.stop - start) for each, start in zip(where, corner, strict=True))


def _number(coords: Sequence[int], grid: Sequence[int]) -> int:
    number = 0
    for coordinate, count in zip(coords, grid, strict=True):
        number = number * count + coordinate
    return number


def _corner(number: int, grid: Sequence[int], lengths: Sequence[int]) -> tuple[int, ...]:
    corner = []
    for count, length in zip(reversed(grid), reversed(lengths), strict=True):
        number, at = divmod(number, count)
        corner.append(at * length)
    return tuple(reversed(corner))
