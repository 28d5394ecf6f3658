"""Chunks of a dataset, found by those parts of its index that lead to them.

Parts are kept. After some time the whole index is better read: the engine then has all places at once.

The native engine itself reads parts of indexes in files of this machine: `Seeker.near`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError
from omnizarr.readers.hdf5 import btrees, chunks
from omnizarr.readers.hdf5.btrees import Child
from omnizarr.readers.hdf5.chunks import COUNTABLE, ExtensibleArray, FixedArray
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.source import SEAL, Cursor
from omnizarr.settings import engines
from omnizarr.stores.manifests.manifest import NOT_STORED, Manifest

# The rest is for others than the native engine in files of this machine.
_LEAST: Final = 512  # chunks of a grid of which a few are found without reading the whole index
_TIMES_FAR: Final = 6144  # chunks whose places are read in the time that reading a part takes
# The same of a file of this machine, where all parts together take about a tenth to a third of the time of the index.
_TIMES_NEAR: Final = {"tree": 1024, "fixed": 8192, "extensible": 1 << 14, "tree 2": 1 << 14}
_LEAST_NEAR: Final = {"fixed": 1 << 16, "extensible": 1 << 14, "tree 2": 1 << 14}  # chunks for which they are read
_PER_PART: Final = {"fixed": 1024, "extensible": 512, "tree 2": 64}  # chunks of a page, a block or a node
_UNDEFINED: Final = 0xFF

Found = tuple[Any, Any]
"""Offsets and lengths of chunks: buffers of numbers of 64 bits."""


class Whole(Exception):  # noqa: N818 - no error: another way is taken
    """The whole index is better read."""


class _Budget:
    """How much is read of an index before the whole is."""

    def __init__(self, parts: int, times: int, *, counts_all: bool) -> None:
        self._most = max(1, parts // 2)
        self._left = times
        self._is_new = self._counts_all = counts_all

    def begin(self) -> None:
        """Begin to look for some chunks. Raises Whole."""
        self._is_new = True
        if self._counts_all:  # as looking takes about as much time as reading
            self.take(0)

    def take(self, count: int) -> None:
        """Note parts that are read. Raises Whole."""
        if self._is_new:
            self._left -= 1
            self._is_new = False
        self._most -= count
        if self._left < 0 or self._most < 0:
            raise Whole


class _Parts(Protocol):
    """Parts of an index."""

    def find(self, numbers: memoryview, budget: _Budget) -> Found:
        """Return where chunks lie, by number. Raises Whole; MetadataError for what is broken on the way."""


class Seeker:
    """Finds chunks of a dataset by parts of its index.

    Attributes
    ----------
    near : object or None
        The native engine's object that does so without Python. None: the file is not on this machine, or there is none.
    """

    def __init__(self, parts: _Parts, budget: _Budget, near: Any = None) -> None:
        self._parts, self._budget, self.near = parts, budget, near

    @classmethod
    def of(cls, dataset: Dataset) -> Seeker | None:
        """Return what finds chunks; None if reading the whole index takes about the same time."""
        layout, source = dataset.layout, dataset.header.source
        grid = grid_of(dataset)
        count = prod(grid)
        if layout.address is None or layout.has_raw_edges or not 0 < count < COUNTABLE:
            return None
        if layout.index == "tree":
            parts, per_part = _tree_of(dataset, grid), 2 * source.chunk_rank
        elif layout.index in _PARTS:
            parts, per_part = _PARTS[layout.index](dataset, grid), _PER_PART[layout.index]
        else:
            return None
        near = _near(dataset, grid)
        is_near = not source.is_far and not isinstance(parts, _Tree)
        if near is None and count < _LEAST:
            return None
        if near is None and is_near and count < _LEAST_NEAR.get(layout.index, 0):
            return None
        times = max(1, count // (_TIMES_NEAR[layout.index] if is_near else _TIMES_FAR))
        return cls(parts, _Budget(count // per_part, times, counts_all=is_near and layout.index != "tree"), near)

    def seek(self, numbers: memoryview) -> Found | None:
        """Return offsets and lengths of chunks by number; the length of one that is not stored is `NOT_STORED`.

        Return None if the whole index is better read: much of it is needed, or a chunk skips filters, or others are not
        in the grid. Raises MetadataError for what is broken on the way.
        """
        if self.near is not None:
            try:
                offsets, lengths = self.near.seek(bytes(numbers))
            except NotImplementedError:
                return None
            return memoryview(offsets).cast("Q"), memoryview(lengths).cast("Q")
        try:
            self._budget.begin()
            return self._parts.find(numbers, self._budget)
        except Whole:
            return None

    def whole(self) -> Manifest | None:
        """Return where all chunks lie, by what was read before; None if the index is better read again."""
        return self._parts.whole() if isinstance(self._parts, _NativeTree) else None


def grid_of(dataset: Dataset) -> tuple[int, ...]:
    """Return the number of chunks along each dimension."""
    return tuple(-(-length // step) for length, step in zip(dataset.shape, dataset.layout.chunk_shape, strict=True))


def _near(dataset: Dataset, grid: tuple[int, ...]) -> Any:
    """Return what finds chunks of a file of this machine in the native engine; None if nothing does."""
    native: Any = None if engines.choice() == "reference" else engines.module()
    source, layout = dataset.header.source, dataset.layout
    status = source.status if hasattr(native, "ChunkIndex") else None
    if status is None:
        return None
    first, lengths = 0, grid
    try:
        if layout.index == "fixed":
            lengths = chunks.bounded(dataset)
        elif layout.index == "extensible":
            first, lengths = chunks.growing(dataset, grid)
        sizes = source.offset_size, 2 * source.chunk_rank, source.base, source.size
        elements = chunks.chunk_bytes(dataset), len(dataset.filters), source.length_size, first, lengths
        address = chunks.address_of(dataset)
        return native.ChunkIndex(layout.index, address, grid, layout.chunk_shape, sizes, elements, status)
    except (NotImplementedError, OverflowError, MetadataError):  # which reading the whole index tells
        return None


# -- B-trees of version 1 -----------------------------------------------------------


def _tree_of(dataset: Dataset, grid: tuple[int, ...]) -> _Parts:
    native: Any = None if engines.choice() == "reference" else engines.module()
    if hasattr(native, "ChunkTree"):
        source = dataset.header.source
        sizes = source.offset_size, 2 * source.chunk_rank, source.base, source.size
        try:
            tree = native.ChunkTree(chunks.address_of(dataset), grid, dataset.layout.chunk_shape, sizes)
        except NotImplementedError:
            return _Tree(dataset, grid)
        return _NativeTree(dataset, tree, len(grid))
    return _Tree(dataset, grid)


class _NativeTree:
    """Nodes that the native engine parses. What it refuses is left to those who read the whole index."""

    def __init__(self, dataset: Dataset, tree: Any, rank: int) -> None:
        self._source, self._tree = dataset.header.source, tree
        self._length = btrees.chunk_node_size(self._source, rank)
        # So few bytes of a file of this machine that their memory is used again.
        self._at_once = max(1, (btrees.LEVEL_BYTES if self._source.is_far else 1 << 17) // self._length)

    def find(self, numbers: memoryview, budget: _Budget) -> Found:
        """Return where chunks lie, by number."""
        asked = bytes(numbers)
        try:
            while True:
                wanted, offsets, lengths = self._tree.seek(asked)
                if wanted is None:
                    return memoryview(offsets).cast("Q"), memoryview(lengths).cast("Q")
                budget.take(len(wanted))
                self._add(wanted)
        except NotImplementedError as error:
            raise Whole from error

    def whole(self) -> Manifest | None:
        """Return where all chunks lie; None if that must be read in another way."""
        try:
            while True:
                wanted, offsets, lengths = self._tree.whole()
                if wanted is None:
                    return Manifest(np.frombuffer(offsets, np.uint64), np.frombuffer(lengths, np.uint64))
                for start in range(0, len(wanted), self._at_once):
                    self._add(wanted[start : start + self._at_once])
        except NotImplementedError:
            return None

    def _add(self, wanted: list[tuple[int, int | None]]) -> None:
        self._tree.add(wanted, self._source.read_each([address for address, _ in wanted], self._length))


class _Node(NamedTuple):
    """A node of a version 1 B-tree: for each entry the number of its first chunk, and what it leads to."""

    level: int
    numbers: list[int]
    children: list[int]
    lengths: list[int]


class _Tree:
    """Nodes of a B-tree of version 1. As each is one of a level below its parent, a loop ends."""

    def __init__(self, dataset: Dataset, grid: tuple[int, ...]) -> None:
        self._dataset, self._grid = dataset, grid
        self._nodes: dict[int, _Node] = {}

    def find(self, numbers: memoryview, budget: _Budget) -> Found:
        """Return where chunks lie, by number."""
        places: dict[int, list[int]] = {chunks.address_of(self._dataset): numbers.tolist()}
        level: int | None = None
        found: dict[int, tuple[int, int]] = {}
        while places:
            missing = [each for each in places if each not in self._nodes]
            if missing:
                budget.take(len(missing))
                self._read(missing, level)
            below: dict[int, list[int]] = {}
            for address, wanted in places.items():
                node = self._nodes[address]
                if level is not None and node.level != level:
                    raise Whole  # which says what is wrong
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
        nothing = 0, NOT_STORED
        pairs = [found.get(number, nothing) for number in numbers]
        return array("Q", [offset for offset, _ in pairs]), array("Q", [length for _, length in pairs])

    def _read(self, addresses: list[int], level: int | None) -> None:
        """Read nodes. Raises Whole if they have what only the whole index tells."""
        dataset, rank = self._dataset, len(self._grid)
        source = dataset.header.source
        own, entries, counts = btrees.chunk_nodes(source, addresses, rank, level)
        scaled = chunks.scaled_by_chunk(dataset, entries["offsets"][:, :rank])
        if not own and len(entries) and entries["mask"].any():
            raise Whole
        numbers = _keys(scaled, self._grid)
        children = entries["child"].astype(np.uint64)
        lengths = entries["size"].astype(np.uint64)
        if not own:
            children = children + np.uint64(source.base)
            chunks.check(dataset, children, lengths)
        columns = numbers.tolist(), children.tolist(), lengths.tolist()
        start = 0
        for address, count in zip(addresses, counts.tolist(), strict=True):
            of_node = [column[start : start + count] for column in columns]
            if any(first >= second for first, second in pairwise(of_node[0])):
                raise Whole
            self._nodes[address] = _Node(own, *of_node)
            start += count


def _keys(scaled: NDArray[np.uint64], grid: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the numbers of chunks by their coordinates. Raises Whole if these are beyond the grid.

    Those beyond the first dimension alone have numbers behind all others.
    """
    weights = np.array([prod(grid[axis + 1 :]) for axis in range(len(grid))], np.int64)
    if (scaled[:, 1:] >= np.array(grid[1:], np.uint64)).any():
        raise Whole
    if len(scaled) and int(scaled[:, 0].max()) * int(weights[0]) >= COUNTABLE:
        raise Whole
    found: NDArray[np.int64] = scaled.astype(np.int64) @ weights
    return found


# -- arrays of elements, and B-trees of version 2 ------------------------------------


class _Elements:
    """Parts that have elements: an address, and if there are filters, bytes and filter mask."""

    def __init__(self, dataset: Dataset, grid: tuple[int, ...]) -> None:
        self.dataset, self.grid = dataset, grid

    def rows(self, numbers: NDArray[np.int64], budget: _Budget) -> NDArray[np.uint8]:
        """Return the elements of chunks, by number, as rows of bytes; those of other chunks are undefined."""
        raise NotImplementedError

    def find(self, numbers: memoryview, budget: _Budget) -> Found:
        """Return where chunks lie, by number."""
        wanted = np.asarray(numbers).astype(np.int64)
        rows = self.rows(wanted, budget)
        dataset = self.dataset
        at, offsets, sizes, masks = chunks.elements(dataset, np.arange(len(wanted)), rows)
        if (masks & np.uint32((1 << min(32, len(dataset.filters))) - 1)).any():
            raise Whole
        offsets = offsets + np.uint64(dataset.header.source.base)
        chunks.check(dataset, offsets, sizes)
        found, lengths = np.zeros(len(wanted), np.uint64), np.full(len(wanted), NOT_STORED, np.uint64)
        found[at], lengths[at] = offsets, sizes
        return found, lengths


class _Pages(_Elements):
    """Parts of an array of elements: each has those from a position on."""

    def __init__(self, dataset: Dataset, grid: tuple[int, ...]) -> None:
        super().__init__(dataset, grid)
        self._kept: dict[int, NDArray[np.uint8] | None] = {}

    def open(self) -> tuple[int, tuple[int, ...], int]:
        """Return the first dimension, the lengths by which the index counts, and the size of an element."""
        raise NotImplementedError

    def starts(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first position of the part that each of some positions is in."""
        raise NotImplementedError

    def load(self, starts: list[int]) -> list[NDArray[np.uint8] | None]:
        """Return the elements of parts by their first positions; None if they are not stored."""
        raise NotImplementedError

    def rows(self, numbers: NDArray[np.int64], budget: _Budget) -> NDArray[np.uint8]:
        """Return the elements of chunks, by number, as rows of bytes; those of other chunks are undefined."""
        first, lengths, size = self.open()
        coords = np.unravel_index(numbers, self.grid)
        positions = coords[first].astype(np.int64)
        for axis, length in enumerate(lengths):
            if axis != first:
                positions = positions * max(1, length) + coords[axis]
        starts = self.starts(positions)
        order = np.argsort(starts, kind="stable")
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = np.diff(starts[order]) != 0
        ends = [*np.flatnonzero(is_first).tolist(), len(order)]
        known = starts[order[ends[:-1]]].tolist()
        if new := [start for start in known if start not in self._kept]:
            budget.take(len(new))
            self._kept.update(zip(new, self.load(new), strict=True))
        rows = np.full((len(numbers), size), _UNDEFINED, np.uint8)
        for number, start in enumerate(known):
            part = self._kept[start]
            if part is not None:
                chosen = order[ends[number] : ends[number + 1]]
                within = positions[chosen] - start
                is_here = within < len(part)
                rows[chosen[is_here]] = part[within[is_here]]
        return rows


class _Fixed(_Pages):
    """Pages of a fixed array."""

    _array: FixedArray | None = None
    _marks: NDArray[np.uint8]

    def open(self) -> tuple[int, tuple[int, ...], int]:
        """Read the head of the array and which pages are stored."""
        if self._array is None:
            found = FixedArray.of(self.dataset)
            if found.block is None or not found.is_paged:
                raise Whole
            self._marks, self._array = found.marks(), found
        return 0, chunks.bounded(self.dataset), self._array.size

    def starts(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first positions of pages."""
        assert self._array is not None  # noqa: S101 - `open` was called
        return positions >> self._array.bits << self._array.bits

    def load(self, starts: list[int]) -> list[NDArray[np.uint8] | None]:
        """Read pages."""
        found = self._array
        assert found is not None  # noqa: S101 - `open` was called
        numbers = [start >> found.bits for start in starts]
        stored = [each for each in numbers if self._marks[each]]
        found.expect(stored)
        pages = dict(zip(stored, found.pages(stored), strict=True))
        return [pages.get(each) for each in numbers]


class _Block(NamedTuple):
    """A data block of an extensible array, by the group of blocks of one length that it is in."""

    group: int
    number: int
    length: int
    first: int


class _Extensible(_Pages):
    """Data blocks of an extensible array, or their pages."""

    _array: ExtensibleArray | None = None
    _inner: NDArray[np.uint8]
    _addresses: list[int | None]

    def open(self) -> tuple[int, tuple[int, ...], int]:
        """Read the head of the array and the first block."""
        if self._array is None:
            found = ExtensibleArray.of(self.dataset)
            if found.block is None:
                raise Whole
            index = found.index()
            self._inner = np.frombuffer(index.take(found.in_index * found.size), np.uint8).reshape(-1, found.size)
            self._addresses = _addresses(index)
            self._tables: dict[int, tuple[NDArray[np.uint8], list[int | None]]] = {}
            self._array = found
        return *chunks.growing(self.dataset, self.grid), self._array.size

    def starts(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first positions of blocks, or of their pages."""
        array = self._opened()
        ahead = np.maximum(positions - array.in_index, 0)
        groups = np.frexp((ahead // array.least + 1).astype(np.float64))[1].astype(np.int64) - 1
        within = ahead - array.least * ((1 << groups) - 1)
        parts = np.minimum(array.least << (groups + 1) // 2, 1 << array.page_bits)
        return np.where(positions < array.in_index, 0, positions - within % parts)

    def load(self, starts: list[int]) -> list[NDArray[np.uint8] | None]:
        """Read blocks and pages, with the secondary blocks that lead to them."""
        array = self._opened()
        stored = [start for start in starts if array.in_index <= start < array.count]
        blocks = {start: _block(array, start) for start in stored}
        self._load_tables({each.group: each for each in blocks.values() if each.group >= array.first_super})
        places = {start: place for start in stored if (place := self._place(start, blocks[start])) is not None}
        largest = max((array.block_bytes(blocks[start].length) for start in places), default=0)
        array.source.expect(places.values(), max(largest, array.page_bytes if places else 0))
        lengths = {blocks[start].length for start in places}
        parts: dict[int, bytes] = {}
        for length in lengths:
            some = [start for start in places if blocks[start].length == length]
            read = array.pages if length > 1 << array.page_bits else partial(array.data, length=length)
            parts.update(zip(some, read([places[start] for start in some]), strict=True))
        found: list[NDArray[np.uint8] | None] = []
        for start in starts:
            part = self._inner if start < array.in_index else None
            if start in parts:
                part = np.frombuffer(parts[start], np.uint8).reshape(-1, array.size)
            found.append(None if part is None else part[: array.count - start])
        return found

    def _opened(self) -> ExtensibleArray:
        assert self._array is not None  # noqa: S101 - `open` was called
        return self._array

    def _load_tables(self, groups: dict[int, _Block]) -> None:
        """Read the secondary blocks of groups."""
        array = self._opened()
        direct = 2 * (array.pointers - 1)
        places = {
            group: self._addresses[direct + group - array.first_super] for group in groups if group < array.supers
        }
        new = {group: place for group, place in places.items() if place is not None and group not in self._tables}
        array.source.expect(new.values(), 1)
        for group, place in new.items():
            count, length = 1 << group // 2, groups[group].length
            table, wide = array.secondary(place, count, length)
            marks = np.unpackbits(np.frombuffer(table.take(count * wide), np.uint8))
            self._tables[group] = marks, _addresses(table)

    def _place(self, start: int, block: _Block) -> int | None:
        """Return where a block or a page is; None if it is not stored."""
        array = self._opened()
        pages = block.length >> array.page_bits if block.length > 1 << array.page_bits else 0
        if block.group < array.first_super:
            before = (2 + block.group % 2 << block.group // 2) - 2
            return None if pages else self._addresses[before + block.number]
        if block.group not in self._tables:
            return None
        marks, addresses = self._tables[block.group]
        place = addresses[block.number]
        if place is None or not pages:
            return place
        page = start - block.first >> array.page_bits
        return array.page_at(place, page) if marks[block.number * pages + page] else None


def _block(array: ExtensibleArray, start: int) -> _Block:
    """Return the block that a position is in."""
    ahead = start - array.in_index
    group = (ahead // array.least + 1).bit_length() - 1
    length = array.least << (group + 1) // 2
    within = ahead - array.least * ((1 << group) - 1)
    return _Block(group, within // length, length, start - within % length)


def _addresses(cursor: Cursor) -> list[int | None]:
    """Return the addresses that are left in a structure with a checksum at its end."""
    size = cursor.source.offset_size
    raw = np.frombuffer(cursor.take((cursor.left - SEAL) // size * size), np.uint8).reshape(-1, size)
    undefined = (1 << 8 * size) - 1
    return [None if each == undefined else each for each in btrees.uints(raw).tolist()]


class _Records(NamedTuple):
    """A node of a version 2 B-tree: the numbers of chunks, their records, and the nodes between them."""

    numbers: NDArray[np.int64]
    rows: NDArray[np.uint8]
    children: list[Child]


class _Tree2(_Elements):
    """Nodes of a B-tree of version 2. As each is one of a level below its parent, a loop ends."""

    _tree: btrees.Records | None = None
    _widths: list[int]

    def rows(self, numbers: NDArray[np.int64], budget: _Budget) -> NDArray[np.uint8]:
        """Return the records of chunks, by number, without their coordinates; those of other chunks are undefined."""
        tree = self._tree
        if tree is None:
            tree = chunks.tree_2(self.dataset)
            self._nodes: dict[tuple[int, Child], _Records] = {}
            self._widths, self._tree = tree.widths(), tree
        width = tree.size - 8 * len(self.grid)
        rows = np.full((len(numbers), width), _UNDEFINED, np.uint8)
        places = {} if tree.root is None else {tree.root: np.arange(len(numbers))}
        for level in range(tree.depth, -1, -1):
            missing = [each for each in places if (level, each) not in self._nodes]
            if missing:
                budget.take(len(missing))
                tree.expect(missing)
                for each, node in zip(missing, self._read(tree, missing, level), strict=True):
                    self._nodes[level, each] = node
            below: dict[Child, list[NDArray[np.int64]]] = {}
            for each, wanted in places.items():
                node = self._nodes[level, each]
                asked = numbers[wanted]
                at = np.searchsorted(node.numbers, asked)
                is_here = at < len(node.numbers)
                is_here[is_here] = node.numbers[at[is_here]] == asked[is_here]
                rows[wanted[is_here]] = node.rows[at[is_here], :width]
                if level:
                    left, between = wanted[~is_here], at[~is_here]
                    for child in sorted(set(between.tolist())):
                        below.setdefault(node.children[child], []).append(left[between == child])
            places = {child: np.concatenate(parts) for child, parts in below.items()}
        return rows

    def _read(self, tree: btrees.Records, nodes: list[Child], level: int) -> list[_Records]:
        read = tree.read(nodes, level, self._widths)
        rows = np.frombuffer(b"".join(data for data, _ in read), np.uint8).reshape(-1, tree.size)
        numbers = _keys(chunks.coordinates_2(rows, len(self.grid)), self.grid)
        found = []
        start = 0
        for node, (_, children) in zip(nodes, read, strict=True):
            stop = start + node.records
            own = numbers[start:stop]
            if (own[1:] <= own[:-1]).any():
                raise Whole
            found.append(_Records(own, rows[start:stop], children))
            start = stop
        return found


_PARTS: Final[dict[str, type[_Elements]]] = {"fixed": _Fixed, "extensible": _Extensible, "tree 2": _Tree2}
