"""Object headers of both versions: the messages that say what an object is.

Messages that several objects share are looked up in the object, or the heap, that holds them.
Spec: HDF5 File Format Specification, IV.A "Data Object Headers".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from omnizarr.readers.hdf5 import heaps
from omnizarr.readers.hdf5.source import SEAL, Cursor, Source

DATASPACE, LINK_INFO, DATATYPE, OLD_FILL, FILL, LINK, EXTERNAL, LAYOUT = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08
FILTERS, ATTRIBUTE, SHARED_TABLE, CONTINUATION, SYMBOL_TABLE = 0x0B, 0x0C, 0x0F, 0x10, 0x11
CHUNK_RANK, ATTRIBUTE_INFO, REFERENCES, IMAGES = 0x13, 0x15, 0x16, 0x18

_HEAD: Final = struct.Struct("<HHB3x")  # of a message: type, bytes, flags
_OLD: Final = struct.Struct("<xHII")  # behind the version of old headers: number of messages, links, bytes
_SHORT: Final = struct.Struct("<BHB")  # the same in new headers
_SHARED: Final = 2
_MUST_KNOW: Final = 1 << 7  # "fail if unknown, always"
_LAST: Final = 0x18  # the highest type of a message that the specification defines
_BOGUS: Final = 0x09  # the one below that which it never defines
_BLOCKS: Final = 1 << 12  # continuations of one header
_DEPTH: Final = 8  # shared messages that lead to shared messages


class Message(NamedTuple):
    """A message of an object header.

    Attributes
    ----------
    kind : int
        Its type.
    address : int
        Where it is.
    data : bytes
    order : int or None
        When it was made, relative to others of its type.
    """

    kind: int
    address: int
    data: bytes
    order: int | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """An object header.

    Attributes
    ----------
    address : int
    messages : tuple of Message
    links : int
        How many hard links lead to it.
    """

    source: Source
    address: int
    messages: tuple[Message, ...]
    links: int

    def find(self, kind: int) -> Cursor | None:
        """Return a cursor over the first message of a type; None if there is none."""
        for each in self.messages:
            if each.kind == kind:
                return Cursor(self.source, each.address, each.data)
        return None

    def each(self, kind: int) -> Iterator[Cursor]:
        """Yield cursors over all messages of a type."""
        return (Cursor(self.source, each.address, each.data) for each in self.messages if each.kind == kind)


def read(source: Source, address: int) -> Header:
    """Return the object header at an address.

    Raises MetadataError if there is none, or if it contains messages that a reader must know.
    """
    found: Header | None = source.memo.get(("header", address))
    if found is None:
        found = source.memo["header", address] = _read(source, address, 0)
    return found


def _read(source: Source, address: int, depth: int) -> Header:
    cursor = source.head(address, 64)
    is_new = cursor.data[:4] == b"OHDR"
    if is_new:
        raw, links = _new(source, cursor), 1
    else:
        raw, links = _old(source, cursor)
    messages = []
    for message, flags in raw:
        if (message.kind > _LAST or message.kind == _BOGUS) and flags & _MUST_KNOW:
            raise source.broken(message.address, "an object has a message of a later version", found=message.kind)
        if message.kind == REFERENCES and is_new and len(message.data) >= 5:
            links = int.from_bytes(message.data[1:5], "little")
        messages.append(_shared(source, message, depth) if flags & _SHARED else message)
    return Header(source, address, tuple(messages), links)


def _old(source: Source, cursor: Cursor) -> tuple[list[tuple[Message, int]], int]:
    cursor.version("the object header", 1)
    # Some writers state a wrong number of messages, and libhdf5 does not need it either.
    _, links, size = cursor.unpack(_OLD)
    walk = source.visits("an object header")
    blocks = [(cursor.address + 16, size)]
    found: list[tuple[Message, int]] = []
    for at, length in blocks:
        walk.visit(at, length)
        block = source.cursor(at, length)
        start = 0
        while length - start >= _HEAD.size:
            kind, length_here, flags = _HEAD.unpack_from(block.data, start)
            start += _HEAD.size
            if start + length_here > length:
                block.at = start
                block.take(length_here)  # which says what is wrong
            found.append((Message(kind, at + start, block.data[start : start + length_here]), flags))
            start += length_here
            if kind == CONTINUATION:
                _continue(found[-1][0], source, blocks)
    return found, links


def _new(source: Source, cursor: Cursor) -> list[tuple[Message, int]]:
    cursor.skip(4)
    cursor.version("the object header", 2)
    flags = cursor.uint(1)
    cursor.skip((16 if flags & 32 else 0) + (4 if flags & 16 else 0))
    size = cursor.uint(1 << (flags & 3))
    walk = source.visits("an object header")
    title, signature, skipped = "an object header", b"OHDR", cursor.at
    blocks = [(cursor.address, skipped + size + SEAL)]
    found: list[tuple[Message, int]] = []
    for start, whole in blocks:
        walk.visit(start, whole)
        block = source.sealed(start, whole, title, signature)
        block.at = skipped
        head, end = 6 if flags & 4 else 4, whole - SEAL
        while block.at + head <= end:
            kind, length_here, own = block.unpack(_SHORT)
            order = block.uint(2) if flags & 4 else None
            place = start + block.at
            if block.at + length_here > end:
                block.fail("a message ends after its object header", found=length_here, expected=end - block.at)
            found.append((Message(kind, place, block.take(length_here), order), own))
            if kind == CONTINUATION:
                _continue(found[-1][0], source, blocks)
        title, signature, skipped = "a part of an object header", b"OCHK", 4
    return found


def _continue(message: Message, source: Source, blocks: list[tuple[int, int]]) -> None:
    cursor = Cursor(source, message.address, message.data)
    if len(blocks) > _BLOCKS:
        cursor.fail("an object header has too many parts")
    blocks.append((cursor.defined("the rest of the object header"), cursor.length()))


def _shared(source: Source, message: Message, depth: int) -> Message:
    """Return the message to which a shared message leads."""
    cursor = Cursor(source, message.address, message.data)
    data = shared_data(cursor, message.kind, depth)
    return Message(message.kind, message.address, data, message.order)


def shared_data(cursor: Cursor, kind: int, depth: int = 0) -> bytes:
    """Return the data of the message of a type to which a shared message leads."""
    source = cursor.source
    if depth > _DEPTH:
        cursor.fail("a shared message leads to itself")
    version = cursor.version("the shared message", 1, 2, 3)
    place = cursor.uint(1)
    if version == 3 and place == 1:
        return in_shared_heap(cursor, kind)
    if version == 1:
        cursor.skip(6 + source.length_size)
    address = cursor.defined("a shared message")
    found = _read(source, address, depth + 1).find(kind)
    if found is None:
        cursor.fail("the object that should hold a shared message has none", found=address)
    return found.data


def in_shared_heap(cursor: Cursor, kind: int) -> bytes:
    """Return the data of the shared message of a type whose identifier comes next."""
    source = cursor.source
    name = cursor.take(8)
    if source.shared is None:
        cursor.fail("the file has no table of shared messages")
    o = source.offset_size
    count = source.shared_indexes
    length = 4 + count * (14 + 2 * o) + SEAL
    table = source.sealed(source.shared, length, "the table of shared messages", b"SMTB")
    for _ in range(count):
        table.skip(2)
        kinds = table.uint(2)
        table.skip(4 + 2 + 2 + 2 + o)
        heap = table.address_or_none()
        if kinds >> kind & 1 and heap is not None:
            return heaps.fractal(source, heap).get(name)
    raise source.broken(cursor.address, "no heap of the file has shared messages of this type", found=kind)


def read_extension(source: Source, address: int) -> None:
    """Note in `source` what the extension of the superblock says."""
    header = read(source, address)
    ranks, table = header.find(CHUNK_RANK), header.find(SHARED_TABLE)
    if ranks is not None:
        ranks.version("the ranks of B-trees", 0)
        source.chunk_rank = ranks.uint(2) or 32
    if table is not None:
        table.version("the table of shared messages", 0)
        source.shared = table.address_or_none()
        source.shared_indexes = table.uint(1)
    images = header.find(IMAGES)
    if images is not None:
        images.version("the image of the cache", 0)
        source.put_images(_images(images))


def _images(message: Cursor) -> Iterator[tuple[int, bytes]]:
    """Yield structures that a writer has kept together, each with its address."""
    source = message.source
    address, length = message.address_or_none(), message.length()
    if address is None or length <= SEAL:
        return
    cursor = source.sealed(address, length, "the image of the cache", b"MDCI")
    cursor.version("the image of the cache", 0)
    cursor.skip(1)
    cursor.length()
    for _ in range(cursor.uint(4)):
        cursor.skip(8)
        parents = cursor.uint(2)
        cursor.skip(4)
        at, size = cursor.defined("a structure in the image of the cache"), cursor.length()
        cursor.skip(parents * source.offset_size)
        yield at, cursor.take(size)
