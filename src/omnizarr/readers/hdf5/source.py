"""The bytes of an HDF5 file in a store, read by ranges through a small cache, and cursors over them.

Every read is checked against the size of the file before it is made, so numbers in a broken file cannot make the
reader allocate more than the file has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError, NodeNotFoundError, Remedy
from omnizarr.stores.manifests.file import File

SPEC: Final = "HDF5 File Format Specification"

_BLOCK: Final = 1 << 16  # bytes that a small read fetches
_MOST_EXPECTED: Final = 256  # blocks that are fetched at once
_CACHED: Final = 1 << 26  # bytes of blocks that are kept


class Source:
    """An HDF5 file in a store. Addresses count from its superblock, which need not be at the beginning of the file.

    Attributes
    ----------
    file : File
        What reads it: all of one version, also the chunks that are read later.
    store, key : Store, str
        Where the file is.
    size : int
        Its size in bytes.
    base : int
        The byte at which the superblock is, and addresses begin.
    version : int
        The version of its superblock.
    offset_size, length_size : int
        Bytes of an address, and of a length.
    chunk_rank : int
        Half of the number of children that a node of a version 1 B-tree of chunks has room for.
    shared : int or None
        The address of the table of shared messages.
    """

    spec = SPEC

    def __init__(self, file: File) -> None:
        self.file, self.store, self.key = file, file.store, file.key
        size = self.store.size(self.key) if file.size is None else file.size
        if size is None:
            raise NodeNotFoundError("there is no such file", store=repr(self.store), key=self.key)
        self.size = file.size = size
        self.base = self.version = 0
        self.offset_size = self.length_size = 8
        self.chunk_rank = 32
        self.shared: int | None = None
        self._blocks: dict[int, bytes] = {}
        self.memo: dict[Any, Any] = {}

    def read(self, address: int, length: int) -> bytes:
        """Return bytes at an address. Raises MetadataError if they are not all in the file."""
        start = self._checked(address, length)
        if length >= _BLOCK:
            return self._fetch(start, start + length)
        number, skip = divmod(start, _BLOCK)
        block = self._block(number)
        if skip + length <= len(block):
            return block[skip : skip + length]
        return block[skip:] + self._block(number + 1)[: length - (len(block) - skip)]

    def read_each(self, addresses: Iterable[int], length: int) -> NDArray[np.uint8]:
        """Return pieces of one length at many addresses, as rows. What lies beyond the end of the file is zero."""
        starts = [self._checked(each, 1) for each in addresses]
        rows = np.zeros((len(starts), length), np.uint8)
        spans = [(start, min(start + length, self.size)) for start in starts]
        for row, part, (start, stop) in zip(rows, self.file.read(spans) if spans else (), spans, strict=True):
            row[: stop - start] = np.frombuffer(part, np.uint8)
        return rows

    def expect(self, addresses: Iterable[int]) -> None:
        """Fetch what is at addresses that are read soon, where several requests at once save time."""
        if self.store.features.concurrency < 2:
            return
        wanted = {(self.base + each) // _BLOCK for each in addresses if 0 <= self.base + each < self.size}
        numbers = sorted(wanted - self._blocks.keys())[:_MOST_EXPECTED]
        spans = [(number * _BLOCK, min((number + 1) * _BLOCK, self.size)) for number in numbers]
        for number, part in zip(numbers, self.file.read(spans) if len(spans) > 1 else (), strict=False):
            self._blocks[number] = bytes(part)

    def cursor(self, address: int, length: int) -> Cursor:
        """Return a cursor over bytes at an address."""
        return Cursor(self, address, self.read(address, length))

    def head(self, address: int, length: int) -> Cursor:
        """Return a cursor over bytes at an address; fewer, if the file ends before."""
        return self.cursor(address, max(0, min(length, self.size - self.base - address)))

    def visits(self, title: str) -> Walk:
        """Return what checks a walk over parts of the file that cannot overlap."""
        return Walk(self, title)

    def broken(
        self,
        address: int,
        message: str,
        *,
        found: object = None,
        expected: object = None,
        remedy: str | Remedy | None = None,
    ) -> MetadataError:
        """Return the error that something at an address breaks the format."""
        return MetadataError(
            message,
            store=repr(self.store),
            key=self.key,
            pointer=f"byte {self.base + address}",
            found=found,
            expected=expected,
            remedy=remedy,
            spec=self.spec,
        )

    def _checked(self, address: int, length: int) -> int:
        start = self.base + address
        if address < 0 or length < 0 or start + length > self.size:
            raise self.broken(
                address,
                "this part of the file lies beyond its end",
                found=f"{length} bytes",
                expected=f"a file of {start + length} bytes or more, and it has {self.size}",
                remedy="is the file complete?",
            )
        return start

    def _block(self, number: int) -> bytes:
        found = self._blocks.get(number)
        if found is None:
            start = number * _BLOCK
            found = self._fetch(start, min(start + _BLOCK, self.size))
            if len(self._blocks) * _BLOCK > _CACHED:
                self._blocks = {}
            self._blocks[number] = found
        return found

    def _fetch(self, start: int, stop: int) -> bytes:
        (part,) = self.file.read([(start, stop)])
        return bytes(part)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_blocks": {}, "memo": {}}


class Walk:
    """A walk over nodes that cannot overlap: a node that comes twice, or more bytes than the file has, are errors."""

    __slots__ = ("_left", "_seen", "_source", "_title")

    def __init__(self, source: Source, title: str) -> None:
        self._source, self._title = source, title
        self._seen: set[int] = set()
        self._left = source.size

    def visit(self, address: int, length: int) -> None:
        """Note a node. Raises MetadataError if it was visited before, or if the nodes are more than the file."""
        self._left -= length
        if address in self._seen or self._left < 0:
            raise self._source.broken(address, f"{self._title} leads back to itself")
        self._seen.add(address)

    def visit_each(self, addresses: Iterable[int], length: int) -> None:
        """Note several nodes of one length."""
        for each in addresses:
            self.visit(each, length)


class Cursor:
    """A place in bytes, from which numbers and texts are taken one after the other."""

    __slots__ = ("address", "at", "data", "source")

    def __init__(self, source: Source, address: int, data: bytes) -> None:
        self.source, self.address, self.data, self.at = source, address, data, 0

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        start, stop = self.at, self.at + count
        if count < 0 or stop > len(self.data):
            self.fail("this part of the file ends too early", found=f"{self.left} bytes", expected=f"{count} or more")
        self.at = stop
        return self.data[start:stop]

    def uint(self, size: int) -> int:
        """Return the next unsigned number, of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def address_or_none(self) -> int | None:
        """Return the next address; None if it is undefined."""
        found = self.uint(self.source.offset_size)
        return None if found == (1 << (8 * self.source.offset_size)) - 1 else found

    def defined(self, title: str) -> int:
        """Return the next address, which must be defined."""
        found = self.address_or_none()
        if found is None:
            self.fail(f"the address of {title} is undefined")
        return found

    def length(self) -> int:
        """Return the next length."""
        return self.uint(self.source.length_size)

    def skip(self, count: int) -> None:
        """Skip bytes."""
        self.take(count)

    def text(self) -> bytes:
        """Return the bytes up to the next NUL, which is skipped."""
        end = self.data.find(b"\0", self.at)
        if end < 0:
            self.fail("a name has no end")
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    def align(self, start: int, to: int = 8) -> None:
        """Skip to the next multiple of `to` bytes after `start`; the end of the data counts as one."""
        self.at = min(len(self.data), start + -(-(self.at - start) // to) * to)

    def signature(self, expected: bytes) -> None:
        """Skip the signature of a structure, which must be as expected."""
        found = self.take(len(expected))
        if found != expected:
            self.at -= len(expected)
            self.fail("there is another structure here", found=found, expected=expected)

    def version(self, title: str, *known: int) -> int:
        """Return the next byte, which must be a known version."""
        found = self.uint(1)
        if found not in known:
            self.at -= 1
            self.fail(f"the version of {title} is unknown", found=found, expected=" or ".join(map(str, known)))
        return found

    def fail(self, message: str, *, found: object = None, expected: object = None) -> NoReturn:
        """Raise MetadataError for the current place."""
        raise self.source.broken(self.address + self.at, message, found=found, expected=expected)


def decode(raw: bytes) -> str:
    """Return the text of bytes, of which all that are not UTF-8 are kept."""
    return raw.decode("utf-8", "surrogateescape")
