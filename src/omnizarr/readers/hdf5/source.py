"""The bytes of an HDF5 file in a store, read by ranges through a small cache, and cursors over them.

Every read is checked against the size of the file before it is made, so numbers in a broken file cannot make the
reader allocate more than the file has.

Where each request takes time, they are few: the beginning of a file is fetched first, `Source.together` and
`Source.expect` fetch what several things need together, and blocks behind one that is missing come with it, as long
as such blocks are used.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs import checksums
from omnizarr.errors import MetadataError, NodeNotFoundError, OmnizarrError, Remedy
from omnizarr.stores.base import Buffers
from omnizarr.stores.manifests.file import FIRST, File
from omnizarr.support.memo import Memo

T = TypeVar("T")

SPEC: Final = "HDF5 File Format Specification"

_BLOCK: Final = 1 << 16  # bytes that a small read fetches
NEAR: Final = 1 << 13
"""The same of a file of this machine, where memory for more takes longer than another read."""
_MOST_NEAR: Final = 8  # blocks that are read with one behind others that were read
_MOST_EXPECTED: Final = 256  # blocks that are fetched at once
_CACHED: Final = 1 << 26  # bytes of blocks that are kept, where each request takes time
_CACHED_NEAR: Final = 1 << 22  # the same elsewhere: the system keeps files of this machine
_GAP: Final = 4  # blocks between two that are wanted, with which they are fetched by one request
_TOGETHER: Final = 64  # blocks that one request fetches
_AHEAD: Final = 2  # blocks that are fetched with one that is missing: twice as many the first time
_MOST_AHEAD: Final = 32
_SMALL: Final = 1 << 25  # bytes of a file of which more is fetched ahead in any case: it takes less time than requests
_TASKS: Final = 1024  # that `together` does side by side
_SHORT: Final = 256  # bytes of a message that are compared with others
_parsed: Final[Memo[tuple[Any, int]]] = Memo(4096, exact=True)
_UNDEFINED: Final = b"\xff" * 8
_CODES: Final = {2: "H", 4: "I", 8: "Q"}  # of widths that a superblock may have
SEAL: Final = 4
"""Bytes of a checksum of metadata."""
_ROUNDS: Final = 64  # after which it does them one after the other


class _Missing(Exception):  # noqa: N818 - no error: what is missing is fetched
    """A task needs bytes that are not here yet."""


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
    shared_indexes : int
        How many indexes that table has.
    is_far : bool
        Whether each request takes time.
    is_open : bool
        Whether a writer has it open, or did not close it.
    """

    spec = SPEC

    def __init__(self, file: File) -> None:
        self.file, self.store, self.key = file, file.store, file.key
        if file.size is None and (file.first() is None or file.size is None):
            raise NodeNotFoundError("there is no such file", store=repr(self.store), key=self.key)
        self.size: int = file.size or 0
        self.base = self.version = 0
        self.offset_size = self.length_size = 8
        self.chunk_rank = 32
        self.shared: int | None = None
        self.shared_indexes = 0
        self.is_open = False
        self._blocks: dict[int, bytes] = {}
        self.is_far = not file.is_local and self.store.features.concurrency > 1
        self._step = NEAR if file.is_local else _BLOCK  # bytes of a block
        self._ahead = _AHEAD
        self._unused: set[int] = set()  # blocks that were fetched ahead last, and not needed yet
        self._wanted: set[int] | None = None  # blocks that tasks need, while they are tried
        self._thread = 0  # that tries them
        self._images: list[tuple[int, bytes]] = []
        self.memo: dict[Any, Any] = {}
        if self.is_far:
            self._keep(0, bytes(file.head(FIRST)))
        elif (head := file.kept_head) is not None:
            self._keep(0, bytes(head))
        file.forget_head()

    def read(self, address: int, length: int) -> bytes:
        """Return bytes at an address. Raises MetadataError if they are not all in the file."""
        start = self.base + address
        if address < 0 or length < 0 or start + length > self.size:
            self._checked(address, length)  # which says what is wrong
        if not length:
            return b""
        if length >= _BLOCK:
            return self._read_large(start, start + length)
        number, skip = divmod(start, self._step)
        stop = skip + length
        if stop <= self._step:
            block = self._blocks.get(number)
            if block is None or self._unused:
                block = self._block(number)
            return block[skip:stop]
        if self.is_far:
            return self._block(number)[skip:] + self._block(number + 1)[: stop - self._step]
        return self._read_several(number, -(-stop // self._step))[skip:stop]

    def _read_several(self, first: int, count: int) -> bytes:
        """Return blocks from `first` on, of which those that are missing are read at once."""
        blocks = [self._blocks.get(number) for number in range(first, first + count)]
        if None in blocks:
            start = first * self._step
            data = self._fetch(start, min(start + count * self._step, self.size))
            self._keep(first, data)
            return data
        return b"".join(filter(None, blocks))

    def _read_large(self, start: int, stop: int) -> bytes:
        numbers = range(start // self._step, -(-stop // self._step))
        blocks = self._blocks  # another thread may begin new ones
        missing = [number for number in numbers if number not in blocks] if self.is_far else numbers
        if missing and self._is_tried():
            self._want(missing)
        if missing:
            return self._fetch(start, stop)
        data = b"".join(blocks[number] for number in numbers)
        return data[start - numbers.start * self._step : stop - numbers.start * self._step]

    def read_each(self, addresses: Iterable[int], length: int) -> NDArray[np.uint8]:
        """Return pieces of one length at many addresses, as rows. What lies beyond the end of the file is zero."""
        starts = [self._checked(each, 1) for each in addresses]
        spans = [(start, min(start + length, self.size)) for start in starts]
        if not self.is_far and not self._images:
            parts = [
                part if len(part) == length else bytes(part).ljust(length, b"\0") for part in self.file.read(spans)
            ]
            return np.frombuffer(b"".join(parts), np.uint8).reshape(-1, length)
        rows = np.zeros((len(starts), length), np.uint8)
        known = {number for number, span in enumerate(spans) if self.is_far and self._has(span)}
        left = [span for number, span in enumerate(spans) if number not in known]
        fetched = iter(self._images_in(left, self.file.read(left)) if left else ())
        for number, (row, (start, stop)) in enumerate(zip(rows, spans, strict=True)):
            part = self.read(start - self.base, stop - start) if number in known else next(fetched)
            row[: stop - start] = np.frombuffer(part, np.uint8)
        return rows

    def sealed_each(self, parts: Sequence[tuple[int, int]], title: str, signature: bytes = b"") -> list[bytes]:
        """Return the bytes of structures by address and length, with signatures and checksums, as `sealed` checks them.

        They cannot overlap. Those of a file of this machine are read at once.
        """
        if sum(length for _, length in parts) > self.size:
            raise self.broken(parts[0][0], f"{title} is where another one is")
        found = self._read_parts(parts)
        for (address, _), data in zip(parts, found, strict=True):
            if not data.startswith(signature):
                Cursor(self, address, data).signature(signature)
            self.check_seal(address, data[:-SEAL], data[-SEAL:], title)
        return found

    def _read_parts(self, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        if not self.file.is_local or self._images:
            return [self.read(*part) for part in parts]
        base, blocks = self.base, self._blocks
        spans = [(base + address, base + address + length) for address, length in parts]
        known = [start // self._step in blocks and (stop - 1) // self._step in blocks for start, stop in spans]
        for part, (start, stop) in zip(parts, spans, strict=True):
            if start < base or stop > self.size:
                self._checked(*part)  # which says what is wrong
        left = [span for span, is_known in zip(spans, known, strict=True) if not is_known]
        fetched = iter(self.file.read(left) if left else ())
        return [
            self.read(*part) if is_known else bytes(next(fetched)) for part, is_known in zip(parts, known, strict=True)
        ]

    def _has(self, span: tuple[int, int]) -> bool:
        return all(number in self._blocks for number in range(span[0] // self._step, -(-span[1] // self._step)))

    def expect(self, addresses: Iterable[int], length: int = 1) -> None:
        """Fetch `length` bytes at addresses that are read soon, where several requests at once save time."""
        self.expect_spans((each, each + length) for each in addresses)

    def expect_spans(self, spans: Iterable[tuple[int, int]]) -> None:
        """Fetch parts of the file that are read soon, as `expect` does: each from an address to another."""
        if not self.is_far or self._wanted is not None:
            return
        numbers: set[int] = set()
        for each, end in spans:
            start = self.base + each
            if 0 <= start < self.size:
                stop = min(self.base + end, self.size)
                first = start // self._step
                numbers.update(range(first, min(-(-stop // self._step), first + _MOST_EXPECTED)))
            if len(numbers) > 2 * _MOST_EXPECTED:
                break
        self._fetch_blocks(numbers)

    @property
    def is_small(self) -> bool:
        """Whether fetching much of the file takes less time than further requests."""
        return self.size <= _SMALL

    def is_here(self, address: int, length: int) -> bool:
        """Return whether reading bytes at an address, or what the file has of them, takes no request."""
        start = self.base + address
        return not self.is_far or self._has((start, min(start + length, self.size)))

    def together(self, tasks: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Yield what tasks return, in their order.

        Where each request takes time, what all of them read is fetched together: a task that needs bytes which are not
        here begins again when they are. So it must do nothing but read.
        """
        if not self.is_far or self._wanted is not None:
            yield from (task() for task in tasks)
            return
        for start in range(0, len(tasks), _TASKS):
            some = tasks[start : start + _TASKS]
            self._try(some)
            yield from (task() for task in some)

    def _try(self, tasks: Sequence[Callable[[], object]]) -> None:
        """Fetch what tasks need, round by round. Whatever else is wrong is left to those who do them again."""
        left = list(tasks)
        for _ in range(_ROUNDS):
            self._wanted, self._thread = set(), threading.get_ident()
            try:
                left = [task for task in left if self._lacks(task)]
                wanted = self._wanted
            finally:
                self._wanted = None
            if not wanted:
                return
            self._fetch_blocks(wanted)

    @staticmethod
    def _lacks(task: Callable[[], object]) -> bool:
        """Do a task, and return whether it needs bytes that are not here."""
        try:
            task()
        except _Missing:
            return True
        except (OmnizarrError, ValueError, TypeError, ArithmeticError):
            return False
        return False

    def _is_tried(self) -> bool:
        return self._wanted is not None and self._thread == threading.get_ident()

    def _want(self, numbers: Sequence[int]) -> NoReturn:
        """Note blocks that a task needs, and those behind them: what belongs together lies together."""
        assert self._wanted is not None  # noqa: S101 - as a task is tried
        if len(self._wanted) < _MOST_EXPECTED:
            last = -(-self.size // self._step) - 1
            self._wanted.update((*numbers[:_MOST_EXPECTED], min(numbers[-1] + 1, last)))
        raise _Missing

    def cursor(self, address: int, length: int) -> Cursor:
        """Return a cursor over bytes at an address."""
        return Cursor(self, address, self.read(address, length))

    def sealed(self, address: int, length: int, title: str, signature: bytes = b"") -> Cursor:
        """Return a cursor over a structure of which the last four bytes are the checksum of the others.

        The signature comes first, and the cursor is behind it. Raises MetadataError if either is wrong.
        """
        cursor = Cursor(self, address, self.read(address, length))
        cursor.signature(signature)
        self.check_seal(address, cursor.data[:-SEAL], cursor.data[-SEAL:], title)
        return cursor

    def check_seal(self, address: int, data: bytes, seal: bytes, title: str) -> None:
        """Raise MetadataError if `seal` is not the checksum of the bytes of a structure."""
        found = checksums.quick_lookup3()(data)
        if found != int.from_bytes(seal, "little"):
            raise self.broken(
                address,
                f"the checksum of {title} is wrong: some of its bytes have changed",
                found=f"0x{found:08x}",
                expected=f"0x{int.from_bytes(seal, 'little'):08x}",
            )

    def head(self, address: int, length: int) -> Cursor:
        """Return a cursor over bytes at an address; fewer, if the file ends before."""
        return self.cursor(address, max(0, min(length, self.size - self.base - address)))

    def parsed(self, cursor: Cursor, parse: Callable[[Cursor], T]) -> T:
        """Return what a cursor at its beginning leads to. It is parsed once for all short messages that are equal.

        That is what `parse` makes of the message itself, without the file that it is in.
        """
        if cursor.at or len(cursor.data) > _SHORT:
            return parse(cursor)
        key = parse, cursor.data, self.offset_size, self.length_size
        known = _parsed.known(key)
        if known is None:
            found = parse(cursor)
            _parsed.put(key, (found, cursor.at))
            return found
        found, cursor.at = known
        return found

    def form(self, of_widths: str) -> struct.Struct:
        """Return a form of numbers, in which ``A`` is an address and ``N`` a length."""
        return _form(of_widths, self.offset_size, self.length_size)

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
            if self._is_tried():
                self._want([number])
            start, stop = self._span_of(number)
            data = self._fetch(start * self._step, min(stop * self._step, self.size))
            self._keep(start, data)
            if self.is_far:
                self._unused.update(range(start, stop))
            # Not from those that are kept: another thread may have begun new ones.
            found = data[(number - start) * self._step : (number - start + 1) * self._step]
        if self._unused:
            self._unused.discard(number)
        return found

    def _span_of(self, number: int) -> tuple[int, int]:
        """Return which blocks are fetched if one is missing: more than before if most of those before were used."""
        if not self.is_far:
            count = 1  # more where a file is read from one end to the other
            while count < _MOST_NEAR and number - count in self._blocks:
                count += 1
            return number, min(number + count, -(-self.size // self._step))
        is_of_use = 2 * len(self._unused) < self._ahead or self.is_small
        self._ahead = min(2 * self._ahead, _MOST_AHEAD) if is_of_use else max(1, self._ahead // 2)
        self._unused.clear()
        first = number // self._ahead * self._ahead
        start = stop = number
        while start > first and start - 1 not in self._blocks:
            start -= 1
        last = min(first + self._ahead, -(-self.size // self._step))
        while stop < last and stop not in self._blocks:
            stop += 1
        return start, max(stop, number + 1)

    def _fetch_blocks(self, wanted: Iterable[int]) -> None:
        """Fetch blocks, near ones by one request."""
        numbers = sorted(number for number in wanted if number not in self._blocks)[:_MOST_EXPECTED]
        runs: list[list[int]] = []
        for number in numbers:
            if runs and number - runs[-1][1] <= _GAP and number + 1 - runs[-1][0] <= _TOGETHER:
                runs[-1][1] = number + 1
            else:
                runs.append([number, number + 1])
        spans = [(start * self._step, min(stop * self._step, self.size)) for start, stop in runs]
        parts = self._images_in(spans, self.file.read(spans)) if spans else ()
        for (start, _), part in zip(runs, parts, strict=True):
            self._keep(start, bytes(part))

    def _keep(self, first: int, data: bytes) -> None:
        """Keep whole blocks of bytes that begin with block `first`, and the last one of the file."""
        count = len(data) // self._step
        if count * self._step < len(data) and first * self._step + len(data) == self.size:
            count += 1
        if (len(self._blocks) + count) * self._step > (_CACHED if self.is_far else _CACHED_NEAR):
            self._blocks = {}
        for number in range(count):
            self._blocks[first + number] = data[number * self._step : (number + 1) * self._step]

    def _fetch(self, start: int, stop: int) -> bytes:
        (part,) = self._images_in([(start, stop)], self.file.read([(start, stop)]))
        return bytes(part)

    @property
    def status(self) -> tuple[str, int, int, int, int] | None:
        """What `File.status` says, if bytes of the file are at their addresses, so that others may read them there."""
        return None if self._images else self.file.status

    def put_images(self, images: Iterable[tuple[int, bytes]]) -> None:
        """Note bytes that are in the file elsewhere than at their addresses."""
        self._images = [(self._checked(address, len(data)), data) for address, data in images]
        self._blocks = {}

    def _images_in(self, spans: Sequence[tuple[int, int]], parts: Buffers) -> Buffers:
        """Return parts of the file with the images that lie in them."""
        if not self._images:
            return parts
        found: Buffers = []
        for (start, stop), part in zip(spans, parts, strict=True):
            changed = bytearray(part)
            for at, data in self._images:
                first, last = max(start, at), min(stop, at + len(data))
                if first < last:
                    changed[first - start : last - start] = data[first - at : last - at]
            found.append(bytes(changed))
        return found

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_blocks": {}, "_unused": set(), "_wanted": None, "memo": {}}


@cache
def _form(of_widths: str, offset_size: int, length_size: int) -> struct.Struct:
    return struct.Struct("<" + of_widths.replace("A", _CODES[offset_size]).replace("N", _CODES[length_size]))


def reason(error: Exception) -> str:
    """Return why a part of a file cannot be read, with its place, for a note.

    >>> reason(MetadataError("a name has no end", pointer="byte 96"))
    'a name has no end (byte 96)'
    """
    if not isinstance(error, OmnizarrError):
        return str(error)
    return f"{error.message} ({error.pointer})" if error.pointer else str(error.message)


class Walk:
    """A walk over nodes that cannot overlap: a node that comes twice, or more bytes than the file has, are errors."""

    __slots__ = ("_left", "_seen", "_source", "_title")

    def __init__(self, source: Source, title: str) -> None:
        self._source, self._title = source, title
        self._seen: set[int] = set()
        self._left = source.size

    def visit(self, address: int, length: int) -> None:
        """Note a node. Raises MetadataError if it was visited before, or if the nodes are more than the file."""
        if address in self._seen:
            self._left = -1
        self._seen.add(address)
        self.spend(address, length)

    def spend(self, address: int, length: int) -> None:
        """Note bytes of nodes that were visited. Raises MetadataError if they are more than the file."""
        self._left -= length
        if self._left < 0:
            raise self._source.broken(address, f"{self._title} leads back to itself")

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
        start = self.at
        stop = start + size
        if stop > len(self.data):
            self.take(size)  # which tells what is wrong
        self.at = stop
        return int.from_bytes(self.data[start:stop], "little")

    def address_or_none(self) -> int | None:
        """Return the next address; None if it is undefined."""
        raw = self.take(self.source.offset_size)
        return None if raw == _UNDEFINED[: len(raw)] else int.from_bytes(raw, "little")

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
        if count < 0 or self.at + count > len(self.data):
            self.take(count)
        self.at += count

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        """Return the next numbers of a form."""
        start = self.at
        if start + form.size > len(self.data):
            self.take(form.size)
        self.at = start + form.size
        return form.unpack_from(self.data, start)

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
