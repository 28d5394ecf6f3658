"""Where the chunks of a dataset are: all five indexes of chunks, as columns of numbers.

Spec: HDF5 File Format Specification, III.A "B-trees", VII "Appendix C: Types of Indexes for Dataset Chunks".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.readers.hdf5 import btrees
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.source import SEAL, Cursor, Source

ALL: Final = 0xFFFFFFFF
"""The filter mask of a chunk to which no filter was applied."""

_COUNTABLE: Final = 1 << 62
_FIXED: Final = "a block of a fixed array"
_EXTENSIBLE: Final = "a block of an extensible array"
_LEAST: Final = 512  # chunks of a grid of which a few are found without reading the whole index
_NODES: Final = 96  # nodes of a whole index that are read in the time that a few nodes take
_AT_ONCE: Final = 256  # parts of an index that are fetched together


@dataclass(frozen=True, slots=True)
class Chunks:
    """The stored chunks of a dataset, in the order of their numbers.

    Attributes
    ----------
    numbers : array of int64
        The number of each chunk in the grid, counted in C order.
    offsets, lengths : array of uint64
        Where its bytes are in the file.
    skipped : array of uint32 or None
        Which filters were not applied to it, by bits: bit 0 is the first. None: all were applied to all chunks.
    grid : tuple of int
        The number of chunks along each dimension.
    """

    numbers: NDArray[np.int64]
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint64]
    skipped: NDArray[np.uint32] | None
    grid: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.numbers)


def read(dataset: Dataset) -> Chunks:
    """Return the stored chunks of a chunked dataset.

    Chunks that lie beyond the shape are left out: they stay in the file after a dataset has shrunk. Raises
    MetadataError if the index is broken, or a chunk lies beyond the end of the file.
    """
    layout, shape = dataset.layout, dataset.shape
    source = dataset.header.source
    grid = tuple(-(-length // step) for length, step in zip(shape, layout.chunk_shape, strict=True))
    if prod(grid) >= _COUNTABLE:
        raise source.broken(dataset.header.address, "the dataset has too many chunks to count", found=grid)
    if layout.address is None or not prod(grid):
        empty = np.empty(0, np.uint64)
        return Chunks(np.empty(0, np.int64), empty, empty, None, grid)
    numbers, addresses, lengths, masks = _INDEXES[layout.index](dataset, grid)
    if layout.has_raw_edges and dataset.filters:
        masks[_on_edge(numbers, grid, shape, layout.chunk_shape)] = ALL
    offsets = addresses + np.uint64(source.base)
    _check(dataset, offsets, lengths)
    order = np.argsort(numbers, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        numbers, offsets, lengths, masks = numbers[order], offsets[order], lengths[order], masks[order]
    if len(numbers) > 1 and (numbers[1:] == numbers[:-1]).any():
        raise source.broken(layout.address, "the index of chunks has a chunk twice")
    masks &= np.uint32((1 << min(32, len(dataset.filters))) - 1)
    return Chunks(numbers, offsets, lengths, masks if masks.any() else None, grid)


_Columns = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32]]


def _columns(numbers: Any, addresses: Any, lengths: Any, masks: Any) -> _Columns:
    count = len(numbers)
    return (
        np.ascontiguousarray(numbers, np.int64),
        _column(addresses, count, np.uint64),
        _column(lengths, count, np.uint64),
        _column(masks, count, np.uint32),
    )


def _column(values: Any, count: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    """Return a column of its own memory; one number is that of all rows."""
    if isinstance(values, int):
        return np.full(count, values, dtype)
    column: NDArray[Any] = np.ascontiguousarray(values, dtype)
    return column if column.base is None and column is not values else column.copy()


def chunk_bytes(dataset: Dataset) -> int:
    """Return the bytes of a chunk without filters."""
    return prod(dataset.layout.chunk_shape) * dataset.datatype.size


def _check(dataset: Dataset, offsets: NDArray[np.uint64], lengths: NDArray[np.uint64]) -> None:
    source = dataset.header.source
    size = np.uint64(source.size)
    wrong = (offsets > size) | (lengths > size - np.minimum(offsets, size))
    if wrong.any():
        at = int(wrong.argmax())
        raise source.broken(
            int(offsets[at]) - source.base,
            "a chunk lies beyond the end of the file",
            found=f"{int(lengths[at])} bytes",
            expected=f"a file of {source.size} bytes",
            remedy="is the file complete?",
        )


def _on_edge(
    numbers: NDArray[np.int64], grid: tuple[int, ...], shape: tuple[int, ...], chunk_shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Return which chunks the edge of the array cuts."""
    found = np.zeros(len(numbers), np.bool_)
    for at, length, step, count in zip(np.unravel_index(numbers, grid), shape, chunk_shape, grid, strict=True):
        if length % step:
            found |= at == count - 1
    return found


def _numbers(scaled: NDArray[np.uint64], grid: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the numbers of chunks by their coordinates, and which of them are within the grid."""
    inside = np.ones(len(scaled), np.bool_)
    for axis, count in enumerate(grid):  # a column at a time: rows are short, and NumPy is slow along short rows
        inside &= scaled[:, axis] < np.uint64(count)
    kept = scaled if inside.all() else scaled[inside]
    numbers = np.zeros(len(kept), np.int64)
    for axis, count in enumerate(grid):
        numbers *= count
        numbers += kept[:, axis].astype(np.int64)
    return numbers, inside


# -- B-trees ------------------------------------------------------------------------


def _tree(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    source, address = dataset.header.source, _address(dataset)
    rank = len(grid)
    entries = btrees.chunk_entries(source, address, rank)
    offsets = entries["offsets"][:, :rank]
    numbers, inside = _numbers(_scaled(dataset, offsets), grid)
    entries = entries if inside.all() else entries[inside]
    return _columns(numbers, entries["child"], entries["size"], entries["mask"])


def _scaled(dataset: Dataset, offsets: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the coordinates of chunks in the grid by those of their first elements."""
    chunk_shape = dataset.layout.chunk_shape
    scaled = np.empty(offsets.shape, np.uint64, "F")
    for axis, step in enumerate(map(np.uint64, chunk_shape)):
        column = np.floor_divide(offsets[:, axis], step, out=scaled[:, axis])
        if (column * step != offsets[:, axis]).any():
            raise dataset.header.source.broken(
                _address(dataset), "a chunk is not on the grid", expected=f"multiples of {chunk_shape}"
            )
    return scaled


class _Node(NamedTuple):
    """A node of a version 1 B-tree: for each entry the number of its first chunk, and what it leads to."""

    level: int
    numbers: list[int]
    children: list[int]
    lengths: list[int]


class Seeker:
    """Finds chunks of a dataset with a version 1 B-tree, reading only the nodes that lead to them.

    Nodes are kept. As each is one of a level below its parent, a loop ends.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._nodes: dict[int, _Node] = {}
        layout = dataset.layout
        self.grid = tuple(-(-length // step) for length, step in zip(dataset.shape, layout.chunk_shape, strict=True))
        nodes = prod(self.grid) // (2 * dataset.header.source.chunk_rank)
        self._most = max(1, nodes // 2)
        self._left = max(1, nodes // _NODES)

    @classmethod
    def of(cls, dataset: Dataset) -> Seeker | None:
        """Return what finds chunks; None if reading the whole index takes about the same time."""
        layout = dataset.layout
        if layout.index != "tree" or layout.address is None or layout.has_raw_edges:
            return None
        found = cls(dataset)
        return found if _LEAST <= prod(found.grid) < _COUNTABLE else None

    def seek(self, numbers: Sequence[int]) -> tuple[list[int], list[int | None]] | None:
        """Return offsets and lengths of chunks by number; a length is None if there is no chunk.

        Return None if the whole index is better read: much of it is needed, or a chunk skips filters, or others are not
        in the grid. Raises MetadataError for what is broken on the way.
        """
        places: dict[int, list[int]] = {_address(self._dataset): list(numbers)}
        level: int | None = None
        has_read = False
        found: dict[int, tuple[int, int]] = {}
        while places:
            missing = [each for each in places if each not in self._nodes]
            if missing and not has_read:
                self._left -= 1
                has_read = True
            if self._left < 0 or len(self._nodes) + len(missing) > self._most:
                return None
            if missing and not self._read(missing, level):
                return None
            below: dict[int, list[int]] = {}
            for address, wanted in places.items():
                node = self._nodes[address]
                if level is not None and node.level != level:
                    return None  # the whole index says what is wrong
                for number in wanted:
                    at = bisect_right(node.numbers, number) - 1
                    if at < 0:
                        continue
                    if node.level:
                        below.setdefault(node.children[at], []).append(number)
                    elif node.numbers[at] == number:
                        found[number] = node.children[at], node.lengths[at]
            level = node.level - 1
            places = below
        nothing = 0, None
        pairs = [found.get(number, nothing) for number in numbers]
        return [offset for offset, _ in pairs], [length for _, length in pairs]

    def _read(self, addresses: list[int], level: int | None) -> bool:
        """Read nodes; return False if they have what only the whole index tells."""
        dataset, rank = self._dataset, len(self.grid)
        source = dataset.header.source
        own, entries, counts = btrees.chunk_nodes(source, addresses, rank, level)
        scaled = _scaled(dataset, entries["offsets"][:, :rank])
        beyond = scaled[:, 1:] >= np.array(self.grid[1:], np.uint64)
        if beyond.any() or (not own and len(entries) and entries["mask"].any()):
            return False
        weights = np.array([prod(self.grid[axis + 1 :]) for axis in range(rank)], np.int64)
        if len(scaled) and int(scaled[:, 0].max()) * int(weights[0]) >= _COUNTABLE:
            return False
        numbers = scaled.astype(np.int64) @ weights
        children = entries["child"].astype(np.uint64)
        lengths = entries["size"].astype(np.uint64)
        if not own:
            children = children + np.uint64(source.base)
            _check(dataset, children, lengths)
        columns = numbers.tolist(), children.tolist(), lengths.tolist()
        start = 0
        for address, count in zip(addresses, counts.tolist(), strict=True):
            of_node = [column[start : start + count] for column in columns]
            if any(first >= second for first, second in pairwise(of_node[0])):
                return False
            self._nodes[address] = _Node(own, *of_node)
            start += count
        return True


def _tree_2(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    source, address = dataset.header.source, _address(dataset)
    is_filtered = bool(dataset.filters)
    rank, o = len(grid), source.offset_size
    size, blocks = btrees.record_blocks(source, address, {11 if is_filtered else 10})
    data = np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, size)
    wide = size - o - 4 - 8 * rank
    if (is_filtered and not 1 <= wide <= 8) or (not is_filtered and size != o + 8 * rank):
        raise source.broken(address, "the records of chunks have an unknown size", found=size)
    scaled = data[:, size - 8 * rank :].copy().view("<u8").reshape(-1, rank)
    numbers, inside = _numbers(scaled, grid)
    return _elements(dataset, numbers, data[inside, : size - 8 * rank])


# -- arrays of elements -------------------------------------------------------------


def _elements(dataset: Dataset, numbers: NDArray[np.int64], rows: NDArray[np.uint8]) -> _Columns:
    """Return the columns for elements of an index: an address, and if there are filters, bytes and filter mask."""
    source = dataset.header.source
    o = source.offset_size
    width = rows.shape[1]
    wide = width - o - 4
    if (dataset.filters and not 1 <= wide <= 8) or (not dataset.filters and width != o):
        raise source.broken(_address(dataset), "the elements of the index of chunks have an unknown size", found=width)
    addresses = _uints(rows[:, :o])
    there = addresses != np.uint64((1 << 8 * o) - 1)
    if not there.all():
        numbers, rows, addresses = numbers[there], rows[there], addresses[there]
    if not dataset.filters:
        return _columns(numbers, addresses, chunk_bytes(dataset), 0)
    return _columns(numbers, addresses, _uints(rows[:, o : o + wide]), _uints(rows[:, o + wide :]))


def _uints(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the little-endian numbers in rows of bytes."""
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, : rows.shape[1]] = rows
    return wide.view("<u8").ravel()


def _address(dataset: Dataset) -> int:
    return dataset.layout.address or 0


def _most(dataset: Dataset) -> tuple[int | None, ...]:
    """Return the number of chunks along each dimension that the dataset may grow to."""
    pairs = zip(dataset.dataspace.most, dataset.layout.chunk_shape, strict=True)
    return tuple(None if length is None else -(-length // step) for length, step in pairs)


def _in_grid(positions: NDArray[np.int64], most: tuple[int, ...], grid: tuple[int, ...], first: int) -> Any:
    """Return the numbers of elements of an index in the grid, and which of them are in it.

    `most` are the lengths by which the index counts, with dimension `first` in front.
    """
    order = [first, *(axis for axis in range(len(grid)) if axis != first)]
    rest = positions.copy()
    scaled = np.empty((len(positions), len(grid)), np.uint64)
    for axis in reversed(order[1:]):
        rest, scaled[:, axis] = np.divmod(rest, max(1, most[axis]))
    scaled[:, first] = rest
    return _numbers(scaled, grid)


def _single(dataset: Dataset, _grid: tuple[int, ...]) -> _Columns:
    length, mask = dataset.layout.single or (chunk_bytes(dataset), 0)
    return _columns([0], [_address(dataset)], [length], [mask])


def _implicit(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    source, size = dataset.header.source, chunk_bytes(dataset)
    most = _bounded(dataset)
    if prod(grid) * size > source.size:
        raise source.broken(_address(dataset), "chunks lie beyond the end of the file", found=f"{prod(grid)} chunks")
    positions = np.arange(prod(most) if prod(most) * size <= source.size else prod(grid), dtype=np.int64)
    numbers, inside = _in_grid(positions, most, grid, 0)
    addresses = positions[inside].astype(np.uint64) * np.uint64(size) + np.uint64(_address(dataset))
    return _columns(numbers, addresses, size, 0)


def _bounded(dataset: Dataset) -> tuple[int, ...]:
    most = _most(dataset)
    lengths = tuple(each for each in most if each is not None)
    if len(lengths) != len(most) or prod(lengths) >= _COUNTABLE:
        raise dataset.header.source.broken(
            _address(dataset), "a dataset with this index of chunks must have a largest shape", found=most
        )
    return lengths


def _fixed(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    source = dataset.header.source
    most = _bounded(dataset)
    o = source.offset_size
    cursor = source.sealed(_address(dataset), 8 + source.length_size + o + SEAL, "a fixed array", b"FAHD")
    cursor.version("the fixed array", 0)
    cursor.skip(1)
    size, bits, stated = cursor.uint(1), cursor.uint(1), cursor.length()
    block = cursor.address_or_none()
    if not size or bits > 40 or stated < prod(most):
        cursor.fail("the sizes of the fixed array are not valid", found=stated, expected=f"{prod(most)} elements")
    if block is None:
        return _columns([], [], [], [])
    head = 6 + o
    count, page = prod(most), 1 << bits
    if stated <= page:
        data = source.sealed(block, head + stated * size + SEAL, _FIXED, b"FADB").data
        rows = np.frombuffer(data, np.uint8, count * size, head).reshape(-1, size)
        positions = np.arange(count, dtype=np.int64)
    else:
        pages = -(-stated // page)
        end = head + (pages + 7) // 8
        block_head = source.sealed(block, end + SEAL, _FIXED, b"FADB").data[head:end]
        marks = np.unpackbits(np.frombuffer(block_head, np.uint8))[:pages]
        rows, positions = _pages(source, block + end + SEAL, marks, page, size, stated)
        rows, positions = rows[positions < count], positions[positions < count]
    numbers, inside = _in_grid(positions, most, grid, 0)
    return _elements(dataset, numbers, rows[inside])


def _pages(
    source: Source, start: int, marks: NDArray[np.uint8], page: int, size: int, count: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the elements of those pages that are marked, and their positions. A checksum follows each page."""
    rows, positions = [np.empty((0, size), np.uint8)], [np.empty(0, np.int64)]
    step = page * size + SEAL
    for at, number in enumerate(stored := np.flatnonzero(marks).tolist()):
        if not at % _AT_ONCE:
            source.expect((start + each * step for each in stored[at : at + _AT_ONCE]), step)
        length = min(page, count - number * page)
        data = source.sealed(start + number * step, length * size + SEAL, "a page of a fixed array").data
        rows.append(np.frombuffer(data, np.uint8, length * size).reshape(-1, size))
        positions.append(np.arange(number * page, number * page + length, dtype=np.int64))
    return np.concatenate(rows), np.concatenate(positions)


def _extensible(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    source = dataset.header.source
    most = _most(dataset)
    growing = [axis for axis, length in enumerate(most) if length is None]
    length = 12 + 6 * source.length_size + source.offset_size + SEAL
    cursor = source.sealed(_address(dataset), length, "an extensible array", b"EAHD")
    if len(growing) != 1:
        cursor.fail("a dataset with this index of chunks must grow along one dimension", found=most)
    array = _Extensible.read(cursor)
    axis = growing[0]
    lengths = tuple(1 if length is None else length for length in most)
    if prod(lengths) * grid[axis] >= _COUNTABLE:
        cursor.fail("the dataset has too many chunks to count", found=grid)
    rows, positions = array.elements(prod(lengths) * grid[axis])
    numbers, inside = _in_grid(positions, lengths, grid, axis)
    return _elements(dataset, numbers, rows[inside])


@dataclass(frozen=True, slots=True)
class _Extensible:
    """An extensible array: an index block, data blocks that become larger, and secondary blocks of their addresses."""

    source: Source
    size: int
    bits: int
    in_index: int
    least: int
    pointers: int
    page_bits: int
    count: int
    block: int | None

    @classmethod
    def read(cls, cursor: Cursor) -> _Extensible:
        cursor.version("the extensible array", 0)
        cursor.skip(1)
        size, bits, in_index, least, pointers, page_bits = (cursor.uint(1) for _ in range(6))
        for _ in range(4):
            cursor.length()
        count = cursor.length()
        cursor.length()
        block = cursor.address_or_none()
        valid = size and 0 < bits <= 64 and least.bit_count() == pointers.bit_count() == 1 and page_bits <= 40
        if not valid or pointers < 2 or least.bit_length() > bits:
            cursor.fail("the sizes of the extensible array are not valid", found=(size, bits, least, pointers))
        return cls(cursor.source, size, bits, in_index, least, pointers, page_bits, count, block)

    def elements(self, most: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the elements that are stored, as rows of bytes, and their positions; not those from `most` on."""
        found = _Elements(self, min(self.count, most))
        if self.block is not None:
            self._read(self.block, found)
        return np.concatenate(found.rows), np.concatenate(found.positions)

    def _read(self, block: int, found: _Elements) -> None:
        o = self.source.offset_size
        supers = 1 + self.bits - (self.least.bit_length() - 1)
        first_super = 2 * (self.pointers.bit_length() - 1)
        addresses = 2 * (self.pointers - 1) + max(0, supers - first_super)
        length = 6 + o + self.in_index * self.size + addresses * o + SEAL
        index = self.source.sealed(block, length, "the first block of an extensible array", b"EAIB")
        index.skip(2 + o)
        found.add(index.take(self.in_index * self.size), 0)
        start = self.in_index
        self._expect(index, min(supers, first_super))
        for number in range(supers):
            if start >= found.count:
                break
            blocks, length = 1 << number // 2, self.least << (number + 1) // 2
            table, marks = index, 0
            if number >= first_super:
                address = index.address_or_none()
                if address is None:
                    start += blocks * length
                    continue
                table, marks = self._secondary(address, blocks, length, found)
            # The marks of all blocks follow each other bit by bit, in more bytes than they need.
            bits, pages = np.unpackbits(np.frombuffer(table.take(blocks * marks), np.uint8)), length >> self.page_bits
            for each in range(blocks):
                if number >= first_super and not each % _AT_ONCE:
                    some = min(blocks - each, _AT_ONCE, -(-max(0, found.count - start) // length))
                    self.source.expect(_following(table, some), self._head + length * self.size + 4 * (pages + 1))
                at = table.address_or_none()
                if at is not None and start < found.count:
                    self._block(at, start, length, bits[each * pages : (each + 1) * pages], found)
                start += length

    def _expect(self, index: Cursor, supers: int) -> None:
        """Fetch the first data blocks, whose addresses are in the index block, and the secondary blocks behind them."""
        lengths = (self.least << (number + 1) // 2 for number in range(supers) for _ in range(1 << number // 2))
        largest = self._head + max(lengths, default=0) * self.size
        self.source.expect(_following(index, (index.left - SEAL) // self.source.offset_size), largest)

    @property
    def _head(self) -> int:
        """Bytes in front of the elements of a block."""
        return 6 + self.source.offset_size + (self.bits + 7) // 8

    def _secondary(self, address: int, blocks: int, length: int, found: _Elements) -> tuple[Cursor, int]:
        """Return a cursor over the marks of pages, then the addresses of data blocks; and the bytes of marks of one."""
        head = self._head
        marks = ((length >> self.page_bits) + 7) // 8 if length > 1 << self.page_bits else 0
        size = head + blocks * (marks + self.source.offset_size) + SEAL
        found.walk.visit(address, size)
        table = self.source.sealed(address, size, "a block of addresses of an extensible array", b"EASB")
        table.skip(head - 4)
        return table, marks

    def _block(self, address: int, start: int, length: int, marks: NDArray[np.uint8], found: _Elements) -> None:
        head = self._head
        page = 1 << self.page_bits
        size = head + (length * self.size if length <= page else 0) + SEAL
        found.walk.visit(address, size)
        block = self.source.sealed(address, size, _EXTENSIBLE, b"EADB").data
        if length <= page:
            found.add(block[head:-SEAL], start)
            return
        size = page * self.size + SEAL
        for number in np.flatnonzero(marks).tolist():
            at = address + head + SEAL + number * size
            found.walk.visit(at, size)
            data = self.source.sealed(at, size, "a page of an extensible array").data
            found.add(data[:-SEAL], start + number * page)


def _following(cursor: Cursor, count: int) -> list[int]:
    """Return the next addresses that are defined, without taking them."""
    at = cursor.at
    found = [cursor.address_or_none() for _ in range(min(count, cursor.left // cursor.source.offset_size))]
    cursor.at = at
    return [each for each in found if each is not None]


class _Elements:
    """Elements of an extensible array as they are found; none from `count` on."""

    def __init__(self, array: _Extensible, count: int) -> None:
        self.count, self.size = count, array.size
        self.walk = array.source.visits("an extensible array")
        self.rows = [np.empty((0, array.size), np.uint8)]
        self.positions = [np.empty(0, np.int64)]

    def add(self, data: bytes, start: int) -> None:
        """Add the elements of a block, of which the first has position `start`."""
        kept = min(len(data) // self.size, max(0, self.count - start))
        self.rows.append(np.frombuffer(data, np.uint8, kept * self.size).reshape(-1, self.size))
        self.positions.append(np.arange(start, start + kept, dtype=np.int64))


_INDEXES: Final = {
    "tree": _tree,
    "single": _single,
    "implicit": _implicit,
    "fixed": _fixed,
    "extensible": _extensible,
    "tree 2": _tree_2,
}
