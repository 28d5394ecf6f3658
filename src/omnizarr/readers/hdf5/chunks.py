"""Where the chunks of a dataset are: all five indexes of chunks, as columns of numbers.

Spec: HDF5 File Format Specification, III.A "B-trees", VII "Appendix C: Types of Indexes for Dataset Chunks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.readers.hdf5 import btrees
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.source import SEAL, Cursor, Source

ALL: Final = 0xFFFFFFFF
"""The filter mask of a chunk to which no filter was applied."""

COUNTABLE: Final = 1 << 62
_FIXED: Final = "a block of a fixed array"
_EXTENSIBLE: Final = "a block of an extensible array"
AT_ONCE: Final = 256  # parts of an index that are fetched together


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
    if prod(grid) >= COUNTABLE:
        raise source.broken(dataset.header.address, "the dataset has too many chunks to count", found=grid)
    if layout.address is None or not prod(grid):
        empty = np.empty(0, np.uint64)
        return Chunks(np.empty(0, np.int64), empty, empty, None, grid)
    numbers, addresses, lengths, masks = _INDEXES[layout.index](dataset, grid)
    if layout.has_raw_edges and dataset.filters:
        masks[_on_edge(numbers, grid, shape, layout.chunk_shape)] = ALL
    offsets = addresses + np.uint64(source.base)
    check(dataset, offsets, lengths)
    if (numbers[1:] <= numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, offsets, lengths, masks = numbers[order], offsets[order], lengths[order], masks[order]
        if (numbers[1:] == numbers[:-1]).any():
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


def check(dataset: Dataset, offsets: NDArray[np.uint64], lengths: NDArray[np.uint64]) -> None:
    """Raise MetadataError if a chunk lies beyond the end of the file."""
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
    source, address = dataset.header.source, address_of(dataset)
    rank = len(grid)
    entries = btrees.chunk_entries(source, address, rank)
    offsets = entries["offsets"][:, :rank]
    numbers, inside = _numbers(scaled_by_chunk(dataset, offsets), grid)
    entries = entries if inside.all() else entries[inside]
    return _columns(numbers, entries["child"], entries["size"], entries["mask"])


def scaled_by_chunk(dataset: Dataset, offsets: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the coordinates of chunks in the grid by those of their first elements."""
    chunk_shape = dataset.layout.chunk_shape
    scaled = np.empty(offsets.shape, np.uint64, "F")
    for axis, step in enumerate(map(np.uint64, chunk_shape)):
        column = np.floor_divide(offsets[:, axis], step, out=scaled[:, axis])
        if (column * step != offsets[:, axis]).any():
            raise dataset.header.source.broken(
                address_of(dataset), "a chunk is not on the grid", expected=f"multiples of {chunk_shape}"
            )
    return scaled


def _tree_2(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    tree = tree_2(dataset)
    rank = len(grid)
    data = np.frombuffer(b"".join(tree.blocks()), np.uint8).reshape(-1, tree.size)
    numbers, inside = _numbers(coordinates_2(data, rank), grid)
    return elements(dataset, numbers, (data if inside.all() else data[inside])[:, : tree.size - 8 * rank])


def tree_2(dataset: Dataset) -> btrees.Records:
    """Return the version 2 B-tree of a dataset. Raises MetadataError."""
    source, address = dataset.header.source, address_of(dataset)
    is_filtered = bool(dataset.filters)
    rank, o = len(dataset.layout.chunk_shape), source.offset_size
    tree = btrees.Records.of(source, address, {11 if is_filtered else 10})
    wide = tree.size - o - 4 - 8 * rank
    if (is_filtered and not 1 <= wide <= 8) or (not is_filtered and tree.size != o + 8 * rank):
        raise source.broken(address, "the records of chunks have an unknown size", found=tree.size)
    return tree


def coordinates_2(rows: NDArray[np.uint8], rank: int) -> NDArray[np.uint64]:
    """Return the coordinates of chunks in the grid, which are the last in the records of a version 2 B-tree."""
    found: NDArray[np.uint64] = rows[:, rows.shape[1] - 8 * rank :].copy().view("<u8").reshape(-1, rank)
    return found


# -- arrays of elements -------------------------------------------------------------


def elements(dataset: Dataset, numbers: NDArray[np.int64], rows: NDArray[np.uint8]) -> _Columns:
    """Return the columns for elements of an index: an address, and if there are filters, bytes and filter mask."""
    source = dataset.header.source
    o = source.offset_size
    width = rows.shape[1]
    wide = width - o - 4
    if (dataset.filters and not 1 <= wide <= 8) or (not dataset.filters and width != o):
        raise source.broken(
            address_of(dataset), "the elements of the index of chunks have an unknown size", found=width
        )
    addresses = btrees.uints(rows[:, :o])
    there = addresses != np.uint64((1 << 8 * o) - 1)
    if not there.all():
        numbers, rows, addresses = numbers[there], rows[there], addresses[there]
    if not dataset.filters:
        return _columns(numbers, addresses, chunk_bytes(dataset), 0)
    return _columns(numbers, addresses, btrees.uints(rows[:, o : o + wide]), btrees.uints(rows[:, o + wide :]))


def address_of(dataset: Dataset) -> int:
    """Return the address of the index."""
    return dataset.layout.address or 0


def _most(dataset: Dataset) -> tuple[int | None, ...]:
    """Return the number of chunks along each dimension that the dataset may grow to."""
    pairs = zip(dataset.dataspace.most, dataset.layout.chunk_shape, strict=True)
    return tuple(None if length is None else -(-length // step) for length, step in pairs)


def _in_grid(positions: NDArray[np.int64], most: tuple[int, ...], grid: tuple[int, ...], first: int) -> Any:
    """Return the numbers of elements of an index in the grid, and which of them are in it.

    `most` are the lengths by which the index counts, with dimension `first` in front.
    """
    if not first and most[1:] == grid[1:]:  # they count in the same way
        inside: NDArray[np.bool_] = positions < prod(grid)
        return (positions if inside.all() else positions[inside]), inside
    order = [first, *(axis for axis in range(len(grid)) if axis != first)]
    rest = positions.copy()
    scaled = np.empty((len(positions), len(grid)), np.uint64)
    for axis in reversed(order[1:]):
        rest, scaled[:, axis] = np.divmod(rest, max(1, most[axis]))
    scaled[:, first] = rest
    return _numbers(scaled, grid)


def _single(dataset: Dataset, _grid: tuple[int, ...]) -> _Columns:
    length, mask = dataset.layout.single or (chunk_bytes(dataset), 0)
    return _columns([0], [address_of(dataset)], [length], [mask])


def _implicit(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    source, size = dataset.header.source, chunk_bytes(dataset)
    most = bounded(dataset)
    if prod(grid) * size > source.size:
        raise source.broken(address_of(dataset), "chunks lie beyond the end of the file", found=f"{prod(grid)} chunks")
    positions = np.arange(prod(most) if prod(most) * size <= source.size else prod(grid), dtype=np.int64)
    numbers, inside = _in_grid(positions, most, grid, 0)
    addresses = positions[inside].astype(np.uint64) * np.uint64(size) + np.uint64(address_of(dataset))
    return _columns(numbers, addresses, size, 0)


def bounded(dataset: Dataset) -> tuple[int, ...]:
    """Return the lengths by which an index of a dataset counts that has a largest shape. Raises MetadataError."""
    most = _most(dataset)
    lengths = tuple(each for each in most if each is not None)
    if len(lengths) != len(most) or prod(lengths) >= COUNTABLE:
        raise dataset.header.source.broken(
            address_of(dataset), "a dataset with this index of chunks must have a largest shape", found=most
        )
    return lengths


def _header(dataset: Dataset, what: str, signature: bytes, *, sizes: int, lengths: int) -> Cursor:
    """Return a cursor over the header of an array of elements: sizes of a byte, lengths, the address of a block."""
    source = dataset.header.source
    size = 6 + sizes + lengths * source.length_size + source.offset_size + SEAL
    cursor = source.sealed(address_of(dataset), size, what, signature)
    cursor.version(f"the {what.partition(' ')[2]}", 0)
    cursor.skip(1)  # whether there are filters, as the dataset says, too
    return cursor


def _fixed(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    array, most = FixedArray.of(dataset), bounded(dataset)
    if array.block is None:
        return _columns([], [], [], [])
    count = prod(most)
    if array.is_paged:
        rows, positions = _pages(array)
        rows, positions = rows[positions < count], positions[positions < count]
    else:
        rows, positions = array.elements()[:count], np.arange(count, dtype=np.int64)
    numbers, inside = _in_grid(positions, most, grid, 0)
    return elements(dataset, numbers, rows if inside.all() else rows[inside])


def _pages(array: FixedArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the elements of those pages that are marked, and their positions."""
    rows, positions = [np.empty((0, array.size), np.uint8)], [np.empty(0, np.int64)]
    stored = np.flatnonzero(array.marks()).tolist()
    for start in range(0, len(stored), AT_ONCE):
        some = stored[start : start + AT_ONCE]
        array.expect(some)
        for number, page in zip(some, array.pages(some), strict=True):
            rows.append(page)
            first = number << array.bits
            positions.append(np.arange(first, first + len(page), dtype=np.int64))
    return np.concatenate(rows), np.concatenate(positions)


@dataclass(frozen=True, slots=True)
class FixedArray:
    """A fixed array: one block of elements, in pages if there are many. A checksum follows each page.

    Attributes
    ----------
    size : int
        Bytes of an element.
    bits : int
        Of the number of elements of a page.
    count : int
        The number of elements.
    block : int or None
        The address of the block.
    """

    source: Source
    size: int
    bits: int
    count: int
    block: int | None

    @classmethod
    def of(cls, dataset: Dataset) -> FixedArray:
        """Return the index of a dataset. Raises MetadataError."""
        cursor = _header(dataset, "a fixed array", b"FAHD", sizes=2, lengths=1)
        size, bits, count = cursor.uint(1), cursor.uint(1), cursor.length()
        block = cursor.address_or_none()
        if not size or bits > 40 or count < prod(bounded(dataset)):
            expected = f"{prod(bounded(dataset))} elements"
            cursor.fail("the sizes of the fixed array are not valid", found=count, expected=expected)
        return cls(cursor.source, size, bits, count, block)

    @property
    def is_paged(self) -> bool:
        """Whether the elements are in pages."""
        return self.count > 1 << self.bits

    @property
    def _head(self) -> int:
        """Bytes of the block in front of the marks of pages, or of the elements."""
        return 6 + self.source.offset_size

    def elements(self) -> NDArray[np.uint8]:
        """Return all elements, which are not in pages, as rows of bytes."""
        data = self.source.sealed(self.block or 0, self._head + self.count * self.size + SEAL, _FIXED, b"FADB").data
        return np.frombuffer(data, np.uint8, self.count * self.size, self._head).reshape(-1, self.size)

    def marks(self) -> NDArray[np.uint8]:
        """Return for each page whether it is stored."""
        pages = -(-self.count >> self.bits)
        end = self._head + (pages + 7) // 8
        data = self.source.sealed(self.block or 0, end + SEAL, _FIXED, b"FADB").data
        return np.unpackbits(np.frombuffer(data, np.uint8, end - self._head, self._head))[:pages]

    def _place(self, number: int) -> int:
        pages = -(-self.count >> self.bits)
        start = (self.block or 0) + self._head + (pages + 7) // 8 + SEAL
        return start + number * ((self.size << self.bits) + SEAL)

    def expect(self, pages: Sequence[int]) -> None:
        """Fetch pages that are read soon together."""
        self.source.expect(map(self._place, pages), (self.size << self.bits) + SEAL)

    def pages(self, numbers: Sequence[int]) -> list[NDArray[np.uint8]]:
        """Return the elements of pages, as rows of bytes."""
        lengths = (min(1 << self.bits, self.count - (each << self.bits)) * self.size for each in numbers)
        parts = [(self._place(each), length + SEAL) for each, length in zip(numbers, lengths, strict=True)]
        found = self.source.sealed_each(parts, "a page of a fixed array")
        return [np.frombuffer(data, np.uint8, len(data) - SEAL).reshape(-1, self.size) for data in found]


def _extensible(dataset: Dataset, grid: tuple[int, ...]) -> _Columns:
    array = ExtensibleArray.of(dataset)
    axis, lengths = growing(dataset, grid)
    rows, positions = array.elements(prod(lengths) * grid[axis])
    numbers, inside = _in_grid(positions, lengths, grid, axis)
    return elements(dataset, numbers, rows if inside.all() else rows[inside])


def growing(dataset: Dataset, grid: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return which dimension may grow, and by which lengths an extensible array counts. Raises MetadataError."""
    most = _most(dataset)
    axes = [axis for axis, length in enumerate(most) if length is None]
    source, address = dataset.header.source, address_of(dataset)
    if len(axes) != 1:
        message = "a dataset with this index of chunks must grow along one dimension"
        raise source.broken(address, message, found=most)
    lengths = tuple(1 if length is None else length for length in most)
    if prod(lengths) * grid[axes[0]] >= COUNTABLE:
        raise source.broken(address, "the dataset has too many chunks to count", found=grid)
    return axes[0], lengths


@dataclass(frozen=True, slots=True)
class ExtensibleArray:
    """An extensible array: an index block, data blocks that become larger, and secondary blocks of their addresses.

    Attributes
    ----------
    size : int
        Bytes of an element.
    in_index : int
        The number of elements in the index block.
    least : int
        The number of elements of the first data blocks.
    count : int
        Elements from this one on are not stored.
    block : int or None
        The address of the index block.
    """

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
    def of(cls, dataset: Dataset) -> ExtensibleArray:
        """Return the index of a dataset. Raises MetadataError."""
        cursor = _header(dataset, "an extensible array", b"EAHD", sizes=6, lengths=6)
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
            self._read(found)
        return np.concatenate(found.rows), np.concatenate(found.positions)

    @property
    def supers(self) -> int:
        """The number of groups of data blocks: each has twice as many elements as the one before."""
        return 1 + self.bits - (self.least.bit_length() - 1)

    @property
    def first_super(self) -> int:
        """The first group of which the addresses are in a secondary block."""
        return 2 * (self.pointers.bit_length() - 1)

    def index(self) -> Cursor:
        """Return a cursor over the elements in the index block, and the addresses behind them."""
        o = self.source.offset_size
        addresses = 2 * (self.pointers - 1) + max(0, self.supers - self.first_super)
        length = 6 + o + self.in_index * self.size + addresses * o + SEAL
        index = self.source.sealed(self.block or 0, length, "the first block of an extensible array", b"EAIB")
        index.skip(2 + o)
        return index

    def _read(self, found: _Elements) -> None:
        supers, first_super = self.supers, self.first_super
        index = self.index()
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
                found.walk.visit(address, self._secondary_bytes(blocks, length))
                table, marks = self.secondary(address, blocks, length)
            # The marks of all blocks follow each other bit by bit, in more bytes than they need.
            bits, pages = np.unpackbits(np.frombuffer(table.take(blocks * marks), np.uint8)), length >> self.page_bits
            for each in range(0, blocks, AT_ONCE):
                some = min(blocks - each, AT_ONCE)
                if number >= first_super:
                    left = min(some, -(-max(0, found.count - start) // length))
                    self.source.expect(_following(table, left), self._head + length * self.size + 4 * (pages + 1))
                addresses = [table.address_or_none() for _ in range(some)]
                self._blocks(addresses, start, length, bits[each * pages : (each + some) * pages], found)
                start += some * length

    def _expect(self, index: Cursor, supers: int) -> None:
        """Fetch the first data blocks, whose addresses are in the index block, and the secondary blocks behind them."""
        lengths = (self.least << (number + 1) // 2 for number in range(supers) for _ in range(1 << number // 2))
        largest = self._head + max(lengths, default=0) * self.size
        self.source.expect(_following(index, (index.left - SEAL) // self.source.offset_size), largest)

    @property
    def _head(self) -> int:
        """Bytes in front of the elements of a block."""
        return 6 + self.source.offset_size + (self.bits + 7) // 8

    def _mark_bytes(self, length: int) -> int:
        return ((length >> self.page_bits) + 7) // 8 if length > 1 << self.page_bits else 0

    def _secondary_bytes(self, blocks: int, length: int) -> int:
        return self._head + blocks * (self._mark_bytes(length) + self.source.offset_size) + SEAL

    def secondary(self, address: int, blocks: int, length: int) -> tuple[Cursor, int]:
        """Return a cursor over the marks of pages, then the addresses of data blocks; and the bytes of marks of one."""
        size = self._secondary_bytes(blocks, length)
        table = self.source.sealed(address, size, "a block of addresses of an extensible array", b"EASB")
        table.skip(self._head - 4)
        return table, self._mark_bytes(length)

    def block_bytes(self, length: int) -> int:
        """Return the bytes of a data block, without its pages."""
        return self._head + (length * self.size if length <= 1 << self.page_bits else 0) + SEAL

    def data(self, addresses: Sequence[int], length: int) -> list[bytes]:
        """Return the elements of data blocks of one length; none if they are in pages."""
        parts = [(each, self.block_bytes(length)) for each in addresses]
        return [data[self._head : -SEAL] for data in self.source.sealed_each(parts, _EXTENSIBLE, b"EADB")]

    @property
    def page_bytes(self) -> int:
        """Bytes of a page."""
        return (self.size << self.page_bits) + SEAL

    def page_at(self, address: int, number: int) -> int:
        """Return the address of a page of a data block."""
        return address + self._head + SEAL + number * self.page_bytes

    def pages(self, addresses: Sequence[int]) -> list[bytes]:
        """Return the elements of pages."""
        parts = [(each, self.page_bytes) for each in addresses]
        return [data[:-SEAL] for data in self.source.sealed_each(parts, "a page of an extensible array")]

    def _blocks(
        self, addresses: Sequence[int | None], start: int, length: int, marks: NDArray[np.uint8], found: _Elements
    ) -> None:
        """Add the elements of data blocks that follow each other, of which the first element has position `start`."""
        starts = range(start, start + len(addresses) * length, length)
        stored = [at for at, first in enumerate(starts) if addresses[at] is not None and first < found.count]
        if not stored:
            return
        places = [addresses[at] or 0 for at in stored]
        for address in places:
            found.walk.visit(address, self.block_bytes(length))
        data = self.data(places, length)
        if length <= 1 << self.page_bits:
            for at, each in zip(stored, data, strict=True):
                found.add(each, starts[at])
            return
        pages = length >> self.page_bits
        for at, address in zip(stored, places, strict=True):
            numbers = np.flatnonzero(marks[at * pages : (at + 1) * pages]).tolist()
            for first in range(0, len(numbers), AT_ONCE):
                some = numbers[first : first + AT_ONCE]
                of_pages = [self.page_at(address, number) for number in some]
                for page_at in of_pages:
                    found.walk.visit(page_at, self.page_bytes)
                for number, page in zip(some, self.pages(of_pages), strict=True):
                    found.add(page, starts[at] + (number << self.page_bits))


def _following(cursor: Cursor, count: int) -> list[int]:
    """Return the next addresses that are defined, without taking them."""
    at = cursor.at
    found = [cursor.address_or_none() for _ in range(min(count, cursor.left // cursor.source.offset_size))]
    cursor.at = at
    return [each for each in found if each is not None]


class _Elements:
    """Elements of an extensible array as they are found; none from `count` on."""

    def __init__(self, array: ExtensibleArray, count: int) -> None:
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
