"""Directories of a TIFF file: each describes one page by tags.

A directory is kept as the bytes of its entries, as files have a hundred thousand of them. The values of a tag are read
when they are asked for, and never more than the file has.

Spec: TIFF 6.0; "The BigTIFF File Format"; Adobe, "TIFF Technical Note 1" (trees of directories).
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError
from omnizarr.readers.hdf5.source import Source as Bytes
from omnizarr.stores.manifests.file import File

SPEC: Final = "TIFF 6.0"
MOST_PAGES: Final = 1 << 17
"""Pages of a file that are shown. Those behind them are named as not shown."""
_MOST_ENTRIES: Final = 4096
_APART: Final = 1 << 16  # bytes between directories that are not fetched together anyway
_FEW, _MANY = 8, 128  # directories that are fetched before one leads to the next: four times as many each time
_LEAST, _RECENT = 2, 16  # distances between directories from which the next ones are guessed
_TREES: Final = 32  # pages whose trees are read together
_PER_PAGE: Final = 1 << 20  # bytes that are fetched for each, if the file is small and its pages differ much
_PER_ROUND: Final = 1 << 21  # bytes that are fetched together for pages that differ much, if the file is larger
_LEAST_IN_ROUND: Final = 4  # pages in them: with fewer, one by one takes less time, as only directories are fetched
_MOST_DIFFERING: Final = 1 << 27  # bytes of such a file: of a larger one, too much would be fetched
_SHARE: Final = 0.25  # of a page that may be fetched to find the directory behind it
_SUB: Final = 330
STRUCTURE: Final = frozenset(
    {254, 255, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 284, 292, 317, 322, 323, 324, 325, 330, 338, 339, 347}
    | {530, 32997, 32998, 50674}
)
"""Tags that say how a page is stored. All others are attributes."""
_PLACES: Final = frozenset({273, 279, 324, 325})
_FORM: Final = STRUCTURE - _PLACES - {254, 255, 330}
_ASCII: Final = 2
_DTYPES: Final[Mapping[int, str]] = {
    1: "u1", 2: "S1", 3: "u2", 4: "u4", 5: "u4", 6: "i1", 7: "u1", 8: "i2", 9: "i4", 10: "i4", 11: "f4", 12: "f8",
    13: "u4", 16: "u8", 17: "i8", 18: "u8",
}  # fmt: skip
"""NumPy's types by the number of the type. A fraction is two numbers."""
_FRACTIONS: Final = (5, 10)
_ENTRY: Final = {
    (order, is_big): struct.Struct(order + ("HHQ8s" if is_big else "HHI4s"))
    for order in "<>"
    for is_big in (False, True)
}


class Source(Bytes):
    """The bytes of a TIFF file, and how numbers are stored in it.

    Attributes
    ----------
    order : {"<", ">"}
        The order of bytes in numbers.
    is_big : bool
        Whether it is BigTIFF, which has wider numbers.
    usual : int
        Bytes of a directory as the largest so far.
    """

    spec = SPEC

    def __init__(self, file: File, order: str, *, is_big: bool) -> None:
        super().__init__(file)
        self.order, self.is_big = order, is_big
        self.usual = 256
        self._tags: tuple[int, ...] = ()
        self._last: Mapping[int, int] = {}

    @property
    def entry(self) -> struct.Struct:
        """The form of an entry of a directory: tag, type, number of values, and the values or their address."""
        return _ENTRY[self.order, self.is_big]

    def places_of(self, raw: bytes, count: int) -> Mapping[int, int]:
        """Return where the entry of each tag is in those of a directory: one object for pages with the same tags.

        Of several entries with one tag, the first one counts.
        """
        step = self.entry.size
        tags = struct.unpack(f"{self.order}{f'H{step - 2}x' * count}", raw)
        if tags != self._tags:
            places: dict[int, int] = {}
            for number, tag in enumerate(tags):
                places.setdefault(tag, number * step)
            self._tags, self._last = tags, places
        return self._last

    def number(self, address: int, size: int) -> int:
        """Return the unsigned number at an address."""
        return int.from_bytes(self.read(address, size), "little" if self.order == "<" else "big")

    def ahead(self, address: int, length: int) -> bytes:
        """Return bytes at an address; fewer, if the file ends before."""
        return self.read(address, max(0, min(length, self.size - self.base - address)))


class Entry(NamedTuple):
    """An entry of a directory."""

    type: int
    many: int
    raw: bytes
    """The values, or their address."""


class Directory:
    """A directory: entries by number.

    Attributes
    ----------
    source : Source
    address : int
        Where it lies.
    next : int
        The address of the next one; 0 for the last.
    """

    __slots__ = ("_places", "_raw", "address", "next", "source")

    def __init__(self, source: Source, address: int, raw: bytes, places: Mapping[int, int], following: int) -> None:
        self.source, self.address, self.next = source, address, following
        self._raw, self._places = raw, places  # where the entry of each tag is

    def __contains__(self, tag: int) -> bool:
        return tag in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def _entry(self, tag: int) -> Entry | None:
        at = self._places.get(tag)
        return None if at is None else Entry(*self.source.entry.unpack_from(self._raw, at)[1:])

    @property
    def structure(self) -> bytes | None:
        """What says how a page is stored, but for where; None if some of it is not in the directory itself."""
        found = []
        form = self.source.entry
        size, width = form.size, 8 if self.source.is_big else 4
        for tag, at in self._places.items():
            if tag in _FORM:
                _, kind, many, _ = form.unpack_from(self._raw, at)
                if many * int(_DTYPES.get(kind, "u8")[1]) > width:
                    return None
                found.append(self._raw[at : at + size])
            elif tag in _PLACES:
                found.append(self._raw[at : at + size - width])
        return b"".join(found)

    def differing(self, other: Directory) -> set[int]:
        """Return the tags whose values differ from those of another page, but for how it is stored."""
        found = set()
        size = self.source.entry.size
        for tag, at in self._places.items():
            there = other._places.get(tag, -size)
            if tag in STRUCTURE or self._raw[at : at + size] == other._raw[max(there, 0) : there + size]:
                continue
            entry, theirs = self._entry(tag), other._entry(tag)
            if entry is None or theirs is None or theirs[:2] != entry[:2] or self.bytes(tag) != other.bytes(tag):
                found.add(tag)
        return found

    def count(self, tag: int) -> int:
        """Return how many values a tag has."""
        entry = self._entry(tag)
        return 0 if entry is None else entry.many

    def is_text(self, tag: int) -> bool:
        """Return whether a tag is text."""
        return self._there(tag).type == _ASCII

    def is_fraction(self, tag: int) -> bool:
        """Return whether the values of a tag are fractions: pairs of numbers."""
        return self._there(tag).type in _FRACTIONS

    def bytes(self, tag: int) -> bytes:
        """Return the bytes of the values of a tag; none if there is no such tag. Raises MetadataError."""
        entry = self._entry(tag)
        if entry is None:
            return b""
        size = entry.many * self._itemsize(tag, entry)
        if size <= len(entry.raw):
            return entry.raw[:size]
        return self.source.read(self._address(entry), size)

    def span(self, tag: int) -> tuple[int, int]:
        """Return the first byte of the values of a tag that are not in the directory itself, and their size."""
        entry = self._there(tag)
        size = entry.many * self._itemsize(tag, entry)
        return (0, 0) if size <= len(entry.raw) else (self._address(entry), size)

    def _there(self, tag: int) -> Entry:
        return Entry(*self.source.entry.unpack_from(self._raw, self._places[tag])[1:])

    def _address(self, entry: Entry) -> int:
        return int.from_bytes(entry.raw, "little" if self.source.order == "<" else "big")

    def _itemsize(self, tag: int, entry: Entry) -> int:
        dtype = _DTYPES.get(entry.type)
        if dtype is None:
            raise self.broken(f"tag {tag} has an unknown type", found=entry.type)
        return int(dtype[1]) * (2 if entry.type in _FRACTIONS else 1)

    def numbers(self, tag: int) -> NDArray[Any]:
        """Return the values of a tag as numbers; none if there is no such tag. Fractions are two numbers each."""
        entry = self._entry(tag)
        if entry is None:
            return np.empty(0, np.uint32)
        dtype = _DTYPES.get(entry.type, "u1")
        dtype = "u1" if dtype == "S1" else dtype
        return np.frombuffer(self.bytes(tag), self.source.order + dtype)

    def number(self, tag: int, default: int = 0) -> int:
        """Return the first value of a tag as an integer; `default` if there is none."""
        entry = self._entry(tag)
        if entry is None or not entry.many:
            return default
        dtype = _DTYPES.get(entry.type, "")
        if dtype[:1] not in ("u", "i"):
            raise self.broken(f"tag {tag} is no integer", found=f"type {entry.type}")
        size = int(dtype[1])
        is_here = entry.many * size <= len(entry.raw)
        raw = entry.raw[:size] if is_here else self.source.read(self._address(entry), size)
        return int.from_bytes(raw, "little" if self.source.order == "<" else "big", signed=dtype[0] == "i")

    def text(self, tag: int) -> str:
        """Return the text of a tag; "" if there is none."""
        raw = self.bytes(tag).rstrip(b"\0")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def broken(self, message: str, *, found: object = None, expected: object = None) -> MetadataError:
        """Return the error that something in this directory breaks the format."""
        return self.source.broken(self.address, message, found=found, expected=expected)


def source_of(file: File) -> tuple[Source, int] | None:
    """Return the bytes of a file, and the address of its first directory; None if it is no TIFF file."""
    head = bytes(file.head(16))
    order = {b"II": "<", b"MM": ">"}.get(head[:2])
    if order is None or len(head) < 8:
        return None
    byteorder = "<" if order == "<" else ">"
    version = struct.unpack_from(byteorder + "H", head, 2)[0]
    if version == 42:
        return Source(file, order, is_big=False), struct.unpack_from(byteorder + "I", head, 4)[0]
    if version == 43 and len(head) == 16 and struct.unpack_from(byteorder + "HH", head, 4) == (8, 0):
        return Source(file, order, is_big=True), struct.unpack_from(byteorder + "Q", head, 8)[0]
    return None


def parse(source: Source, address: int) -> Directory:
    """Return the directory at an address. Raises MetadataError if it is broken."""
    head, end = (8, 8) if source.is_big else (2, 4)
    size = source.entry.size
    data = source.ahead(address, source.usual)
    count = int.from_bytes(data[:head], "little" if source.order == "<" else "big")
    if len(data) < head or not 0 < count <= _MOST_ENTRIES:
        raise source.broken(
            address, "a directory of pages has an impossible number of entries", found=count,
            expected=f"1 to {_MOST_ENTRIES}",
        )  # fmt: skip
    stop = head + count * size
    if len(data) < stop + end:
        source.usual = max(source.usual, stop + end)
        data = source.ahead(address, stop + end)
    if len(data) < stop:
        source.read(address, stop)  # which tells what is wrong
    # Some writers leave out the address of the next directory behind the last one.
    following = data[stop : stop + end] if len(data) >= stop + end else b""
    raw = data[head:stop]
    next_address = int.from_bytes(following, "little" if source.order == "<" else "big")
    return Directory(source, address, raw, source.places_of(raw, count), next_address)


class Found(NamedTuple):
    """The pages of a file."""

    pages: list[Directory]
    below: dict[int, list[Directory]]
    """Those in the tree of a page, by the number of the page."""
    notes: list[str]


class _Ahead:
    """Fetches the directories that follow, before one leads to the next, by the distances between those before.

    Pages that are not compressed lie at equal distances. Of others, the parts of the file are fetched in which the next
    directories probably begin, as long as these are small beside the pages.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._last = 0
        self._steps: deque[int] = deque(maxlen=_RECENT)
        self._many = _FEW
        self._used = 0  # directories since some were fetched
        self._asked = 1  # directories that were fetched then

    def expect(self, address: int) -> None:
        """Note the address of the next directory, and fetch others that may follow."""
        if self._last:
            self._steps.append(address - self._last)
        self._last = address
        self._used += 1
        if len(self._steps) < _LEAST or self._source.is_here(address, self._source.usual):
            return
        mean = sum(self._steps) / len(self._steps)
        if mean < _APART:
            return
        self._many = min(4 * self._many, _MANY) if 2 * self._used >= min(self._many, self._asked) else _FEW
        self._used = 0
        self._source.expect_spans(self._spans(address, mean))

    def _spans(self, address: int, mean: float) -> Iterator[tuple[int, int]]:
        """Yield where the directory at an address is, and where the next ones are in 19 of 20 cases."""
        usual, count = self._source.usual, len(self._steps)
        variance = sum((step - mean) ** 2 for step in self._steps) / (count - 1)
        deviations = 2 + 4 / (count - 1)  # as a variance of few distances says little
        yield address, address + usual
        self._asked = 1
        for number in range(1, self._many):
            margin = deviations * sqrt(variance * (number + number * number / count))
            middle = address + number * mean
            if 2 * margin > _SHARE * mean or middle - margin > self._source.size:
                break
            yield max(0, int(middle - margin)), int(middle + margin) + usual
            self._asked += 1
        if self._asked > 1:
            return
        if self._source.is_small:
            yield address, address + self._many * _PER_PAGE
        elif self._source.size <= _MOST_DIFFERING and _LEAST_IN_ROUND * mean <= _PER_ROUND:
            yield address, address + _PER_ROUND


def walk(source: Source, first: int) -> Found:
    """Return all directories of a file. Raises MetadataError if there is none that can be read."""
    found = Found([], {}, [])
    seen: set[int] = set()
    address, ahead = first, _Ahead(source)
    while address:
        if address in seen:
            found.notes.append(f"page {len(found.pages)}: the list of pages leads back to itself, and ends here")
            break
        if len(seen) >= MOST_PAGES:
            found.notes.append(f"pages from {len(found.pages)} on are not shown: the file has more than {MOST_PAGES}")
            break
        seen.add(address)
        ahead.expect(address)
        try:
            page = parse(source, address)
        except MetadataError as error:
            if not found.pages:
                raise
            found.notes.append(f"page {len(found.pages)}: not shown, nor those behind it: {error.message}")
            break
        found.pages.append(page)
        address = page.next
    if not found.pages:
        raise source.broken(first, "the file has no page", expected="the address of a directory")
    trees = [(number, page) for number, page in enumerate(found.pages) if _SUB in page]
    for start in range(0, len(trees), _TREES):
        _add_trees(source, trees[start : start + _TREES], seen, found)
    return found


def _add_trees(source: Source, trees: Sequence[tuple[int, Directory]], seen: set[int], found: Found) -> None:
    """Add the directories in the trees of pages, whose first ones are fetched together."""
    listed: list[tuple[int, Directory, list[int]]] = []
    for (number, page), task in zip(trees, source.together([partial(_listed, page) for _, page in trees]), strict=True):
        if isinstance(task, MetadataError):
            found.notes.append(f"page {number}: what is below it is not shown: {task.message}")
        else:
            listed.append((number, page, task))
    source.expect((first for _, _, addresses in listed for first in addresses), source.usual)
    for number, page, addresses in listed:
        _below(page, number, addresses, seen, found)


def _listed(page: Directory) -> list[int] | MetadataError:
    """Return the addresses of directories in the tree of a page, or why they cannot be read."""
    try:
        found: list[int] = page.numbers(_SUB).tolist()
    except MetadataError as error:
        return error
    return found


def _below(page: Directory, number: int, addresses: Sequence[int], seen: set[int], found: Found) -> None:
    """Add the directories in the tree of a page: levels, and others."""
    for first in addresses:
        address = first
        while address:
            if address in seen or len(seen) >= MOST_PAGES:
                found.notes.append(f"page {number}: what is below it leads back to itself, or has too many pages")
                return
            seen.add(address)
            try:
                each = parse(page.source, address)
            except MetadataError as error:
                found.notes.append(f"page {number}: a page below it is not shown: {error.message}")
                break
            found.below.setdefault(number, []).append(each)
            address = each.next
