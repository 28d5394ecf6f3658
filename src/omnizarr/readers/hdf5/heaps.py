"""Heaps: where HDF5 keeps names (local), values of variable length (global), and links and attributes (fractal).

Spec: HDF5 File Format Specification, III.D "Local Heaps", III.E "Global Heap", III.G "Fractal Heap".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnizarr.readers.hdf5 import btrees
from omnizarr.readers.hdf5.source import SEAL, Cursor, Source

_COLLECTIONS: Final = 1 << 26  # bytes of global heaps that are kept
_DEPTH: Final = 64  # levels of indirect blocks, of which each doubles what a heap can hold


# -- local --------------------------------------------------------------------------


def local(source: Source, address: int) -> Cursor:
    """Return a cursor over the data of a local heap."""
    cursor = source.cursor(address, 8 + 2 * source.length_size + source.offset_size)
    cursor.signature(b"HEAP")
    cursor.version("the local heap", 0)
    cursor.skip(3)
    size = cursor.length()
    cursor.skip(source.length_size)
    return source.cursor(cursor.defined("the data of the local heap"), size)


def text_at(heap: Cursor, offset: int) -> bytes:
    """Return the text at an offset in a local heap."""
    heap.at = min(offset, len(heap.data))
    return heap.text()


# -- global -------------------------------------------------------------------------


class GlobalHeap:
    """The values of variable length of a file, by the address of their collection and their number in it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._collections: dict[int, dict[int, memoryview]] = {}
        self._kept = 0

    def get(self, address: int, number: int) -> memoryview:
        """Return a value. Raises MetadataError if there is none."""
        found = self._collections.get(address)
        if found is None:
            found = self._load(address)
        value = found.get(number)
        if value is None:
            raise self._source.broken(
                address, "the global heap has no such value", found=number, expected=f"one of {len(found)} numbers"
            )
        return value

    def _load(self, address: int) -> dict[int, memoryview]:
        source = self._source
        head = source.cursor(address, 8 + source.length_size)
        head.signature(b"GCOL")
        head.version("the global heap", 1)
        head.skip(3)
        size = head.length()
        cursor = source.cursor(address, size)
        cursor.skip(head.at)
        data = memoryview(cursor.data)
        found: dict[int, memoryview] = {}
        form = source.form("H6xN")
        while cursor.left >= form.size:
            number, length = cursor.unpack(form)
            if not number:
                break
            start = cursor.at
            cursor.skip(length)
            found[number] = data[start : start + length]
            cursor.align(start)
        self._kept += size
        if self._kept > _COLLECTIONS:
            self._collections, self._kept = {}, size
        self._collections[address] = found
        return found


def global_heap(source: Source) -> GlobalHeap:
    """Return the global heap of a file."""
    heap: GlobalHeap | None = source.memo.get("global heap")
    if heap is None:
        heap = source.memo["global heap"] = GlobalHeap(source)
    return heap


# -- fractal ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FractalHeap:
    """A fractal heap: objects by their identifiers."""

    source: Source
    address: int
    id_length: int
    largest: int
    huge: int | None
    width: int
    start_size: int
    direct_size: int
    bits: int
    root: int | None
    rows: int
    has_seals: bool

    def get(self, name: bytes) -> bytes:
        """Return the object with an identifier."""
        kind = name[0] >> 4 & 3 if name else 3
        if len(name) > 1 and not name[0] >> 6:
            if kind == 0:
                return self._managed(name)
            if kind == 1:
                return self._huge(name)
            if kind == 2:
                return self._tiny(name)
        raise self.source.broken(self.address, "the fractal heap has no such kind of object", found=name)

    def _tiny(self, name: bytes) -> bytes:
        if self.id_length <= 17:
            return name[1 : 2 + (name[0] & 15)]
        return name[2 : 3 + ((name[0] & 15) << 8 | name[1])]

    def _huge(self, name: bytes) -> bytes:
        source = self.source
        cursor = Cursor(source, self.address, name[1:])
        if source.offset_size + source.length_size <= self.id_length - 1:
            address = cursor.defined("an object in the fractal heap")
            return source.read(address, cursor.length())
        if self.huge is None:
            raise source.broken(self.address, "the fractal heap has no index of its large objects")
        wanted = cursor.uint(min(source.length_size, self.id_length - 1))
        for record in btrees.records(source, self.huge, {1}):
            each = Cursor(source, self.huge, record)
            address, length = each.defined("an object in the fractal heap"), each.length()
            if each.length() == wanted:
                return source.read(address, length)
        raise source.broken(self.address, "the fractal heap has no such large object", found=wanted)

    def _managed(self, name: bytes) -> bytes:
        cursor = Cursor(self.source, self.address, name[1:])
        offset = cursor.uint((self.bits + 7) // 8)
        length = cursor.uint(min((_log2(self.direct_size) + 7) // 8, _log2(max(1, self.largest)) // 8 + 1))
        if self.root is None:
            raise self.source.broken(self.address, "the fractal heap is empty", found=f"an object at {offset}")
        block, at, size = (
            (self.root, offset, self.start_size) if not self.rows else self._direct(self.root, self.rows, offset)
        )
        if at + length > size:
            raise self.source.broken(block, "an object of the fractal heap ends after its block", found=length)
        self._check_block(block, size)
        return self.source.read(block + at, length)

    def _check_block(self, block: int, size: int) -> None:
        """Check a direct block, once. Its checksum is in front of its objects, and counts as zeros."""
        source = self.source
        if ("sealed", block) in source.memo:
            return
        if not self.has_seals:
            source.cursor(block, 4).signature(b"FHDB")
            return
        cursor = source.cursor(block, size)
        cursor.signature(b"FHDB")
        start = 5 + source.offset_size + (self.bits + 7) // 8
        end = start + SEAL
        data = b"".join((cursor.data[:start], bytes(SEAL), cursor.data[end:]))
        source.check_seal(block, data, cursor.data[start:end], "a block of a fractal heap")
        source.memo["sealed", block] = True

    def _direct(self, address: int, rows: int, offset: int) -> tuple[int, int, int]:
        """Return the address of the direct block with an offset, the offset in it, and its size."""
        source = self.source
        direct_rows = _log2(self.direct_size) - _log2(self.start_size) + 2
        for _ in range(_DEPTH):
            row, start, size = 0, 0, self.start_size
            while offset >= start + self.width * size:
                start += self.width * size
                row += 1
                size = self.start_size << max(0, row - 1)
                if row >= rows:
                    raise source.broken(address, "the fractal heap has no such place", found=offset)
            column = (offset - start) // size
            entry = row * self.width + column
            cursor = self._indirect(address, rows)
            cursor.skip(1 + source.offset_size + (self.bits + 7) // 8 + entry * source.offset_size)
            child, offset = cursor.defined("a block of the fractal heap"), offset - start - column * size
            if row < direct_rows:
                return child, offset, size
            address, rows = child, _log2(size) - _log2(self.start_size * self.width) + 1
        raise source.broken(address, "the fractal heap has too many levels")

    def _indirect(self, address: int, rows: int) -> Cursor:
        """Return a cursor over an indirect block, behind its signature."""
        source = self.source
        length = 5 + source.offset_size + (self.bits + 7) // 8 + rows * self.width * source.offset_size + SEAL
        return source.sealed(address, length, "a block of addresses of a fractal heap", b"FHIB")


def fractal(source: Source, address: int) -> FractalHeap:
    """Return the fractal heap at an address."""
    heap: FractalHeap | None = source.memo.get(("heap", address))
    if heap is not None:
        return heap
    o, n = source.offset_size, source.length_size
    cursor = source.cursor(address, 26 + 3 * o + 12 * n)
    cursor.signature(b"FRHP")
    cursor.version("the fractal heap", 0)
    id_length, filters = cursor.uint(2), cursor.uint(2)
    of_filters = n + 4 + filters if filters else 0
    source.sealed(address, len(cursor.data) + of_filters, "a fractal heap", b"FRHP")
    flags = cursor.uint(1)
    largest = cursor.uint(4)
    cursor.skip(n)
    huge = cursor.address_or_none()
    cursor.skip(n + o + 8 * n)
    width, start, direct, bits = cursor.uint(2), cursor.length(), cursor.length(), cursor.uint(2)
    cursor.skip(2)
    root, rows = cursor.address_or_none(), cursor.uint(2)
    if not width or start.bit_count() != 1 or direct.bit_count() != 1 or direct < start or not 0 < bits <= 64:
        cursor.fail("the sizes of the blocks of the fractal heap are not valid", found=(width, start, direct, bits))
    if width.bit_count() != 1 or rows > bits:
        cursor.fail("the table of the fractal heap is not valid", found=(width, rows))
    if filters:
        cursor.fail("the fractal heap is compressed, which is not supported", found=f"{filters} bytes of filters")
    heap = FractalHeap(
        source, address, id_length, largest, huge, width, start, direct, bits, root, rows, bool(flags & 2)
    )
    source.memo["heap", address] = heap
    return heap


def _log2(value: int) -> int:
    return value.bit_length() - 1
