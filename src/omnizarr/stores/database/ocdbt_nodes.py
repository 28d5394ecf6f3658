"""Manifests and nodes of OCDBT databases: what their bytes mean.

Spec: TensorStore, "OCDBT", "Storage format".
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs.checksums import crc32c
from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.zstd import Zstd
from omnizarr.errors import ChecksumError, ChunkError, OmnizarrError, StoreError
from omnizarr.stores.base import Buffer

SPEC: Final = 'TensorStore, "OCDBT", "Storage format"'
MANIFEST: Final = 0x0CDB3A2A
NODE: Final = 0x0CDB20DE
VERSIONS: Final = 0x0CDB1234
_NAMES: Final = {MANIFEST: "manifest", NODE: "node of the B+tree", VERSIONS: "node of the tree of versions"}
_HEAD: Final = struct.Struct(">I")
_MOST_DECODED: Final = 160 << 20  # TensorStore splits nodes of 80 MiB
_MOST_KEYS: Final = 160 << 20  # bytes of all keys of a node
_MOST_KEY: Final = 65535
_MOST_ENTRIES: Final = 1 << 20
_MOST_FILES: Final = 1 << 16
_MOST_HEIGHT: Final = 64  # the format says 255; nodes of two entries would have more keys than there are numbers
_MISSING: Final = 2**64 - 1
_FAR: Final = 2**62
_MOST_ARITY: Final = 16
_WIDEST: Final = 10  # bytes of a number


class Place(NamedTuple):
    """Bytes of a data file, with the path that paths in it begin with."""

    file: str
    offset: int
    length: int
    base: str


class Version(NamedTuple):
    """A version of the database; its root is None if it is empty."""

    generation: int
    height: int
    root: Place | None
    time: int
    """In nanoseconds since 1970."""


class Older(NamedTuple):
    """A node of the tree of versions, with the last generation and the first time in it."""

    generation: int
    place: Place
    time: int
    height: int


class Manifest(NamedTuple):
    """The newest versions, and nodes with older ones. No versions: they are in numbered manifests."""

    uuid: bytes
    is_numbered: bool
    arity: int
    versions: tuple[Version, ...]
    older: tuple[Older, ...]


class Node(NamedTuple):
    """A node of the B+tree.

    Attributes
    ----------
    height : int
        0 for a leaf.
    keys : list of bytes
        In their order, without what all keys below the entry of the parent begin with.
    values : list of bytes or Place
        Of a leaf: values, or where they lie. Of others: where the children lie.
    shared : list of int
        How many bytes of each key all keys below it begin with; empty for leaves.
    weight : int
        About how much memory it takes.
    """

    height: int
    keys: list[bytes]
    values: list[bytes | Place]
    shared: list[int]
    weight: int


def broken(message: str, found: object, expected: str) -> StoreError:
    """Return the error of a broken database."""
    return StoreError(message, found=found, expected=expected, spec=SPEC)


class _Cursor:
    """Reads the body of a manifest or node from its beginning."""

    def __init__(self, data: Buffer) -> None:
        self.data = memoryview(data)
        self.at = 0

    def _short(self, size: int) -> StoreError:
        return broken("the bytes end too early", f"{len(self.data)} bytes", f"at least {self.at + size} bytes")

    def take(self, size: int) -> bytes:
        found = bytes(self.data[self.at : self.at + size])
        if len(found) < size:
            raise self._short(size)
        self.at += size
        return found

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        return int(self.numbers(1)[0])

    def numbers(self, count: int) -> NDArray[np.uint64]:
        """Return a column of numbers of 7 bits in each byte."""
        if count > len(self.data) - self.at:
            raise self._short(count)
        part = np.frombuffer(self.data[self.at : self.at + _WIDEST * count], np.uint8)
        ends = np.flatnonzero(part < 128)[:count]
        if len(ends) < count:
            raise self._short(len(part) + 1)
        starts = np.concatenate(([0], ends[:-1] + 1)) if count else ends
        widths = ends - starts + 1
        found = np.zeros(count, np.uint64)
        for place in range(int(widths.max(initial=0))):
            if place >= _WIDEST:
                raise broken("a number has too many bytes", place + 1, f"at most {_WIDEST}")
            chosen = np.flatnonzero(widths > place)
            bits = part[starts[chosen] + place].astype(np.uint64) & np.uint64(127)
            if place == _WIDEST - 1 and (bits > 1).any():
                raise broken("a number has too many bits", "more", "at most 64")
            found[chosen] |= bits << np.uint64(7 * place)
        self.at += int(ends[-1]) + 1 if count else 0
        return found

    def times(self, count: int) -> list[int]:
        return [int(each) for each in np.frombuffer(self.take(8 * count), "<u8")]

    def end(self) -> None:
        if self.at != len(self.data):
            raise broken("bytes follow the last entry", f"{len(self.data)} bytes", f"{self.at} bytes")


def unwrap(data: Buffer, magic: int) -> Buffer:
    """Return the body of a manifest or node, whose checksum is right. Raises StoreError or ChecksumError."""
    name = _NAMES[magic]
    if len(data) < 18 or _HEAD.unpack_from(data)[0] != magic:
        raise broken(f"this is no {name}", bytes(data[:4]).hex(), f"{magic:08x}")
    (length,) = struct.unpack_from("<Q", data, 4)
    if length != len(data):
        raise broken(f"the {name} has the wrong length", f"{len(data)} bytes", f"{length} bytes")
    view = memoryview(data)
    stored, found = int.from_bytes(view[-4:], "little"), crc32c(view[:-4])
    if stored != found:
        raise ChecksumError(f"the checksum of the {name} is wrong", found=f"{found:08x}", expected=f"{stored:08x}",
                            spec=SPEC)  # fmt: skip
    cursor = _Cursor(view[12:-4])
    version, compression = cursor.number(), cursor.number()
    if version or compression > 1:
        raise broken(f"an unknown form of the {name}", f"version {version}, compression {compression}",
                     "version 0, compression 0 or 1")  # fmt: skip
    body: Buffer = cursor.data[cursor.at :]
    if compression:
        try:
            body = Zstd(0, False, BytesSpec(None, max_nbytes=_MOST_DECODED)).decode(body)  # noqa: FBT003 - a checksum
        except ChunkError as error:
            raise StoreError(f"the {name} cannot be decompressed: {error.message}", found=error.found,
                             expected=error.expected, spec=SPEC) from error  # fmt: skip
    return body


def _files(cursor: _Cursor, base: str) -> list[tuple[str, str]]:
    """Return the paths of data files, with what paths in these begin with."""
    count = cursor.number()
    if count > _MOST_FILES:
        raise broken("too many data files", count, f"at most {_MOST_FILES}")
    if not count:
        return []
    prefixes = [0, *cursor.numbers(count - 1).tolist()]
    suffixes = cursor.numbers(count).tolist()
    bases = cursor.numbers(count).tolist()
    found: list[tuple[str, str]] = []
    before, total = b"", 0
    for prefix, suffix, own in zip(prefixes, suffixes, bases, strict=True):
        length = prefix + suffix
        total += length
        if prefix > len(before) or own > length or length > _MOST_KEY or total > _MOST_KEYS:
            raise broken("the table of data files is broken", f"lengths {prefix}, {suffix} and {own}",
                         f"at most {len(before)} bytes of the last path")  # fmt: skip
        before = before[:prefix] + cursor.take(suffix)
        try:
            found.append((base + before.decode(), base + before[:own].decode()))
        except UnicodeDecodeError as error:
            raise broken("the path of a data file is no text", before[:100], "UTF-8") from error
    return found


def _places(cursor: _Cursor, files: list[tuple[str, str]], count: int) -> list[Place | None]:
    """Return a column of places; None for those that are missing."""
    numbers, offsets, lengths = (cursor.numbers(count).tolist() for _ in range(3))
    return [
        _place(files, number, offset, length) for number, offset, length in zip(numbers, offsets, lengths, strict=True)
    ]


def _place(files: list[tuple[str, str]], number: int, offset: int, length: int) -> Place | None:
    if offset == length == _MISSING:
        return None
    if number >= len(files) or offset + length >= _FAR:
        raise broken("a place in data files cannot be", f"file {number}, bytes {offset} to {offset + length}",
                     f"one of {len(files)} files")  # fmt: skip
    file, base = files[number]
    return Place(file, offset, length, base)


def _versions(cursor: _Cursor, files: list[tuple[str, str]], arity: int) -> tuple[Version, ...]:
    count = cursor.number()
    if not 0 < count <= 1 << arity:
        raise broken("the number of versions cannot be", count, f"1 to {1 << arity}")
    generations = cursor.numbers(count).tolist()
    heights = list(cursor.take(count))
    places = _places(cursor, files, count)
    cursor.numbers(3 * count)  # statistics
    if max(heights) > _MOST_HEIGHT:
        raise broken("a tree is higher than it can be", max(heights), f"at most {_MOST_HEIGHT}")
    return tuple(map(Version, generations, heights, places, cursor.times(count)))


def _older(cursor: _Cursor, files: list[tuple[str, str]], most: int, height: int | None) -> tuple[Older, ...]:
    count = cursor.number()
    if count > most:
        raise broken("the number of nodes of versions cannot be", count, f"at most {most}")
    generations = cursor.numbers(count).tolist()
    places = _places(cursor, files, count)
    cursor.numbers(count)  # how many versions each has
    times = cursor.times(count)
    heights = list(cursor.take(count)) if height is None else [height] * count
    known = [place for place in places if place is not None]
    if len(known) < count:
        raise broken("a node of versions has no place", "none", "a place in a data file")
    return tuple(map(Older, generations, known, times, heights))


def manifest_of(data: Buffer) -> Manifest:
    """Return a manifest. Raises StoreError or ChecksumError."""
    cursor = _Cursor(unwrap(data, MANIFEST))
    uuid = cursor.take(16)
    kind = cursor.number()
    if kind > 1:
        raise broken("an unknown kind of manifest", kind, "0 (single) or 1 (numbered)")
    cursor.numbers(2)  # how values and nodes are written
    arity = cursor.byte()
    if not 0 < arity <= _MOST_ARITY:
        raise broken("the arity of the tree of versions cannot be", arity, f"1 to {_MOST_ARITY} bits")
    if cursor.number():
        cursor.take(4)  # the level of zstd
    if kind:
        return Manifest(uuid, is_numbered=True, arity=arity, versions=(), older=())
    files = _files(cursor, "")
    versions = _versions(cursor, files, arity)
    older = _older(cursor, files, 64, None)
    cursor.end()
    return Manifest(uuid, is_numbered=False, arity=arity, versions=versions, older=older)


def versions_of(data: Buffer, place: Place, height: int) -> tuple[Version, ...] | tuple[Older, ...]:
    """Return the entries of a node of the tree of versions. Raises StoreError or ChecksumError."""
    cursor = _Cursor(unwrap(data, VERSIONS))
    arity, own = cursor.byte(), cursor.byte()
    if own != height or not 0 < arity <= _MOST_ARITY:
        raise broken(
            "a node of versions has the wrong height or arity", f"{own}, {arity}", f"{height}, 1 to {_MOST_ARITY}"
        )
    files = _files(cursor, place.base)
    return _older(cursor, files, 1 << arity, height - 1) if height else _versions(cursor, files, arity)


def node_of(data: Buffer, place: Place, height: int) -> Node:
    """Return a node of the B+tree. Raises StoreError or ChecksumError."""
    body = unwrap(data, NODE)
    cursor = _Cursor(body)
    own = cursor.byte()
    if own != height:
        raise broken("a node of the B+tree has the wrong height", own, str(height))
    files = _files(cursor, place.base)
    count = cursor.number()
    if not 0 < count <= _MOST_ENTRIES:
        raise broken("the number of entries of a node cannot be", count, f"1 to {_MOST_ENTRIES}")
    keys, shared, room = _keys(cursor, count, is_leaf=not height)
    values: list[bytes | Place] = []
    if height:
        for each in _places(cursor, files, count):
            if each is None:
                raise broken("a child of a node has no place", "none", "a place in a data file")
            values.append(each)
        cursor.numbers(3 * count)  # statistics
    else:
        values = _values(cursor, files, count)
    cursor.end()
    return Node(height, keys, values, shared, room + len(body) + 250 * count)


def _keys(cursor: _Cursor, count: int, *, is_leaf: bool) -> tuple[list[bytes], list[int], int]:
    """Return the keys of a node, how much of each is shared by all below it, and the bytes of all keys."""
    prefixes = [0, *cursor.numbers(count - 1).tolist()]
    suffixes = cursor.numbers(count).tolist()
    shared = [] if is_leaf else cursor.numbers(count).tolist()
    keys: list[bytes] = []
    before, room = b"", 0
    for prefix, suffix in zip(prefixes, suffixes, strict=True):
        room += prefix + suffix
        if prefix > len(before) or prefix + suffix > _MOST_KEY or room > _MOST_KEYS:
            raise broken("the keys of a node are broken, or too long", f"{prefix} and {suffix} bytes",
                         f"at most {_MOST_KEY} bytes, and {_MOST_KEYS} together")  # fmt: skip
        key = before[:prefix] + cursor.take(suffix)
        if keys and key <= before:
            raise broken("the keys of a node are not in order", key[:100], f"more than {before[:100]!r}")
        keys.append(key)
        before = key
    if any(length > len(key) for length, key in zip(shared, keys, strict=False)):
        raise broken("a shared part of keys is longer than the key", max(shared), "at most the length of the key")
    return keys, shared, room


def _values(cursor: _Cursor, files: list[tuple[str, str]], count: int) -> list[bytes | Place]:
    lengths = cursor.numbers(count).tolist()
    kinds = cursor.take(count)
    if max(kinds) > 1:
        raise broken("an unknown kind of value", max(kinds), "0 (inline) or 1 (in a data file)")
    far = sum(kinds)
    numbers, offsets = (iter(cursor.numbers(far).tolist()) for _ in range(2))
    found: list[bytes | Place] = []
    for length, kind in zip(lengths, kinds, strict=True):
        if not kind:
            found.append(b"")
            continue
        place = _place(files, next(numbers), next(offsets), length)
        if place is None:
            raise broken("a value has no place", "none", "a place in a data file")
        found.append(place)
    for at, (length, kind) in enumerate(zip(lengths, kinds, strict=True)):
        if not kind:
            found[at] = cursor.take(length)
    return found


def located(error: OmnizarrError, store: str, key: str) -> OmnizarrError:
    """Return an error with the file that it is about."""
    return error.add(store=store, key=key)
