"""Zip archives in which values can be replaced and deleted, and which survive interruptions.

An existing archive is never written to. New entries go to a temporary file beside it. Closing adds the old
entries that are still wanted, and renames the temporary file. Until then, the archive is unchanged, whatever
happens. Afterwards it holds each entry once, without the bytes of removed entries.

An archive may also be a value of a store. Then it is read in parts: first its end, which holds the directory,
then the header and data of each entry together. It is written as a whole.

Spec: PKWARE's APPNOTE.TXT, sections 4.3.6 to 4.3.16.
"""

from __future__ import annotations

import bz2
import io
import mmap
import os
import shutil
import struct
import tempfile
import time
import zlib
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from lzma import LZMAError
from typing import IO, Final, Literal, NamedTuple, TypeAlias, cast
from weakref import WeakValueDictionary
from zipfile import (
    ZIP_BZIP2,
    ZIP_DEFLATED,
    ZIP_STORED,
    BadZipFile,
    ZipExtFile,
    ZipFile,
    ZipInfo,
)

from omnizarr.errors import (
    ChecksumError,
    ConflictError,
    NodeExistsError,
    NodeNotFoundError,
    NotRepresentableError,
    OmnizarrError,
    StoreClosedError,
    StoreError,
    StoreLimitError,
)
from omnizarr.stores import system, threads, verbs
from omnizarr.stores.base import RESERVED, Buffer, Buffers, Identity, Parts, Reader, Span, Store, bounds, parts_of
from omnizarr.stores.local import files, ozx
from omnizarr.support.locks import RLock

Mode: TypeAlias = Literal["r", "r+", "a", "w", "x"]

_LOCAL_HEADER = struct.Struct("<4s2xH6xL8xHH")  # signature, flags, checksum, lengths of the name and the extra field
_END = struct.Struct("<4s8xLL")  # signature, size of the directory, where it begins
_END64_LOCATOR = struct.Struct("<4s4xQ4x")  # signature, position of the record that comes right before it
_END64_SIZE: Final = 56
_TAIL: Final = (
    2**16 + 2**10
)  # bytes of an archive to read first: the longest comment, and a directory of some hundred entries
_LARGEST_DIRECTORY: Final = 2**30
_READ_AHEAD: Final = 2**23
_NAME_IS_UTF8: Final = 0x800
_SIZES_FOLLOW: Final = 0x8  # the header does not state sizes and checksum
# What zipfile and the decompressors raise if an archive is broken.
_BROKEN = (
    BadZipFile,
    EOFError,
    LZMAError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    ValueError,
    struct.error,
    zlib.error,
)
_BLOCK = 2**20

_How: TypeAlias = tuple[int, bool]
"""How entries are compressed, and whether the archive may be larger than 4 GiB."""


class _Entry(NamedTuple):
    """The position of a value."""

    part: _Part
    info: ZipInfo


class _Part:
    """A zip file, read without a shared position, so that threads and forked children can read it."""

    def __init__(self, file: IO[bytes], mode: Literal["r", "w"], how: _How, temporary: str | None = None) -> None:
        self.file = file
        self.zip = ZipFile(file, mode, *how)
        self.temporary = temporary
        self.dead = 0  # entries that were replaced or deleted
        self.is_ozx = False
        self._offsets: dict[int, int] = {}
        try:
            self.descriptor = file.fileno() if hasattr(os, "pread") else -1
        except (AttributeError, OSError):
            self.descriptor = -1

    def read(self, info: ZipInfo, spans: Sequence[Span] | None) -> Buffers:
        """Return parts of the value of an entry (None: all of it).

        Raises StoreError or ChecksumError if it is broken.
        """
        try:
            return self._read(info, spans)
        except OmnizarrError:
            raise
        except _BROKEN as error:
            raise StoreError(f"the entry cannot be read: {error}") from error

    def _read(self, info: ZipInfo, spans: Sequence[Span] | None) -> Buffers:
        if info.flag_bits & 1:
            raise StoreError("the entry is encrypted", remedy="decrypt the archive first")
        if info.compress_type == ZIP_STORED and info.compress_size != info.file_size:
            raise StoreError("the entry is broken", found=f"{info.compress_size}", expected=f"{info.file_size} bytes")
        # Only the whole value has a checksum.
        if spans is not None and info.compress_type == ZIP_STORED and (0, None) not in spans:
            return Parts(self._fetch(info, [bounds(span, info.file_size) for span in spans]), info.file_size)
        value = self._decompress(info)
        if len(value) != info.file_size:
            raise StoreError("the entry is broken", found=f"{len(value)} bytes", expected=f"{info.file_size} bytes")
        if (found := zlib.crc32(value)) != info.CRC:
            raise ChecksumError(
                "the checksum of the zip entry differs", found=f"{found:#010x}", expected=f"{info.CRC:#010x}"
            )
        if spans is None:
            return [value]
        return parts_of(value, spans)

    def _decompress(self, info: ZipInfo) -> Buffer:
        """Return the value of an entry. It is never much larger than the entry states."""
        (data,) = self._fetch(info, [(0, info.compress_size)])
        if info.compress_type == ZIP_STORED:
            return data
        limit = info.file_size + 1
        if info.compress_type == ZIP_DEFLATED:
            return zlib.decompressobj(-15).decompress(data, limit)
        if info.compress_type == ZIP_BZIP2:
            return bz2.BZ2Decompressor().decompress(data, limit)
        with ZipExtFile(io.BytesIO(data), "r", info) as source:  # LZMA and others
            return source.read()

    def _fetch(self, info: ZipInfo, pieces: Sequence[tuple[int, int]]) -> Buffers:
        """Return parts of the stored data of an entry, given as (start, length)."""
        offset = self._data_offset(info)
        return [self._bytes(offset + start, length) for start, length in pieces]

    def _data_offset(self, info: ZipInfo) -> int:
        """Return where the data of an entry begins, which only its header tells."""
        offset = self._offsets.get(info.header_offset)
        if offset is None:
            signature, _, _, name, extra = _LOCAL_HEADER.unpack(self._bytes(info.header_offset, _LOCAL_HEADER.size))
            if signature != b"PK\x03\x04":
                raise StoreError("the archive is broken", found=signature, expected=b"PK\x03\x04")
            offset = info.header_offset + _LOCAL_HEADER.size + name + extra
            self._offsets[info.header_offset] = offset
        return offset

    def extent(self, info: ZipInfo) -> tuple[int, int]:
        """Return where the value of an entry begins, and its length.

        Raises StoreError if it is broken, NotRepresentableError if it is compressed.
        """
        if info.compress_type != ZIP_STORED or info.flag_bits & 1:
            raise NotRepresentableError(
                "an entry of the archive is compressed or encrypted there, so that no bytes of the file are its value",
                expected="entries that are stored",
                remedy="pack the archive again without compression",
            )
        try:
            return self._data_offset(info), info.file_size
        except OmnizarrError:
            raise
        except _BROKEN as error:
            raise StoreError(f"the entry cannot be read: {error}") from error

    def _bytes(self, start: int, length: int) -> bytes:
        # `length` comes from the archive; allocate memory only for existing bytes.
        if length > _BLOCK:
            length_there = max(0, self._size() - start)
            if length > length_there:
                raise StoreError("the archive is truncated", found=f"{length_there} bytes", expected=f"{length} bytes")
        if self.descriptor >= 0:
            data = os.pread(self.descriptor, length, start)
            while len(data) < length:  # at most 2 GiB at once
                more = os.pread(self.descriptor, length - len(data), start + len(data))
                if not more:
                    break
                data += more
        else:
            with threads.lock(id(self)):
                position = self.file.tell()
                self.file.seek(start)
                data = self.file.read(length)
                self.file.seek(position)
        if len(data) < length:
            raise StoreError("the archive is truncated", found=f"{len(data)} bytes", expected=f"{length} bytes")
        return data

    def _size(self) -> int:
        if self.descriptor >= 0:
            return os.fstat(self.descriptor).st_size
        with threads.lock(id(self)):
            position = self.file.tell()
            size = self.file.seek(0, io.SEEK_END)
            self.file.seek(position)
        return size

    def write(self, key: str, value: Buffer) -> ZipInfo:
        """Append an entry."""
        data = memoryview(value).cast("B")
        info = ZipInfo(key, max(time.localtime()[:6], (1980, 1, 1, 0, 0, 0)))
        info.compress_type = self.zip.compression
        info.external_attr = 0o644 << 16
        self.zip.NameToInfo.pop(key, None)  # otherwise zipfile warns of the duplicate, which `finish` omits
        self.dead += 1
        self.zip.writestr(info, data)
        self.dead -= 1  # it did not fail halfway
        self.file.flush()
        return info

    def take(self, entry: _Entry) -> ZipInfo:
        """Append an entry of another zip file."""
        old = entry.info
        info = ZipInfo(old.filename, old.date_time)
        info.compress_type, info.external_attr, info.comment = old.compress_type, old.external_attr, old.comment
        info.file_size = old.file_size
        is_large = self.is_ozx or old.file_size >= 2**31
        with entry.part.zip.open(old) as source, self.zip.open(info, "w", force_zip64=is_large) as target:
            shutil.copyfileobj(source, target, _BLOCK)
        return info

    def finish(self, keep: dict[str, ZipInfo]) -> None:
        """Write the directory with the entries to keep."""
        self.zip.filelist[:] = [info for info in self.zip.filelist if keep.get(info.filename) is info]
        self.zip.close()
        self.file.flush()

    def discard(self) -> None:
        """Close the file, and remove it if it is a temporary one."""
        self.zip.fp = None  # otherwise it would try to finish the discarded archive
        with suppress(OSError):  # what could not be written to a full disk cannot be flushed either
            self.file.close()
        if self.temporary is not None:
            with suppress(OSError):
                os.unlink(self.temporary)


class _Tail(io.RawIOBase):
    """An archive that is a value, as the file from which zipfile reads the directory."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self.read_ahead = 0
        parts = read([(-_TAIL, None)])
        if parts is None:
            raise NodeNotFoundError("there is no such archive")
        self._window = memoryview(parts[0])
        self.size = _whole_size(bytes(parts[0]))
        self._begin = self.size - len(self._window)
        self._position = 0
        if self._begin < 0:
            raise BadZipFile("the directory of the archive gives a wrong offset for itself")

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if self._position < 0:
            raise OSError("negative position")
        return self._position

    def tell(self) -> int:
        return self._position

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        start = self._position
        size = self.size - start if size is None or size < 0 else min(size, self.size - start)
        if size <= 0:
            return b""
        if size > _LARGEST_DIRECTORY:
            raise StoreLimitError(
                "the directory of the archive is too large", found=size, expected=f"at most {_LARGEST_DIRECTORY}"
            )
        if not self._begin <= start <= start + size <= self._begin + len(self._window):
            parts = self._read([(start, start + max(size, self.read_ahead))])
            self._window = memoryview(parts[0] if parts else b"")
            self._begin = start
        data = bytes(self._window[start - self._begin :][:size])
        self._position += len(data)
        return data


def _whole_size(tail: bytes) -> int:
    """Return the size that the directory states, for an archive that ends with `tail`."""
    if len(tail) < _TAIL:
        return len(tail)
    end = tail.rfind(b"PK\x05\x06")
    if not 0 <= end <= len(tail) - 22:
        raise BadZipFile("File is not a zip file")
    locator = end - _END64_LOCATOR.size
    signature, record = _END64_LOCATOR.unpack_from(tail, max(0, locator))
    if locator >= _END64_SIZE and signature == b"PK\x06\x07":
        return int(record) + len(tail) - locator + _END64_SIZE
    _, size, start = _END.unpack_from(tail, end)
    return int(size) + int(start) + len(tail) - end


class _RemotePart(_Part):
    """A zip file that is a value of a store. Header and data of an entry are read together."""

    def __init__(self, read: Reader, how: _How, *, pinned: bool) -> None:
        self._reader = read
        self.pinned = pinned
        tail = _Tail(read)
        super().__init__(cast("IO[bytes]", tail), "r", how)
        tail.read_ahead = _READ_AHEAD  # the kept entries are read in a row when the archive is rewritten
        self._starts = sorted({info.header_offset for info in self.zip.filelist} | {self.zip.start_dir})

    def _fetch(self, info: ZipInfo, pieces: Sequence[tuple[int, int]]) -> Buffers:
        begin = info.header_offset
        offset = self._offsets.get(begin)
        if offset is not None:
            parts = self._ask([(offset + start, length) for start, length in pieces])
            _check_lengths(parts, pieces)
            return parts
        name = info.orig_filename.encode("utf-8" if info.flag_bits & _NAME_IS_UTF8 else "cp437")
        least = begin + _LOCAL_HEADER.size + len(name)
        guess = self._guess(info, least)
        for _ in range(3):  # only the header tells where the data begins; mostly the guess was right
            if list(pieces) == [(0, info.compress_size)]:
                (header,) = self._ask([(begin, guess - begin + info.compress_size)])
                parts = [memoryview(header)[guess - begin :]]
            else:
                wanted = [(guess + start, length) for start, length in pieces]
                header, *parts = self._ask([(begin, least - begin), *wanted])
            offset = begin + self._header(info, name, bytes(header[: least - begin]))
            if offset == guess:
                _check_lengths(parts, pieces)
                if self.pinned:
                    self._offsets[begin] = offset
                return parts
            guess = offset
        raise StoreError("the archive changes while it is read")

    def _data_offset(self, info: ZipInfo) -> int:
        """Ask for the header of an entry alone."""
        begin = info.header_offset
        offset = self._offsets.get(begin)
        if offset is None:
            name = info.orig_filename.encode("utf-8" if info.flag_bits & _NAME_IS_UTF8 else "cp437")
            (header,) = self._ask([(begin, _LOCAL_HEADER.size + len(name))])
            offset = begin + self._header(info, name, bytes(header))
            if self.pinned:
                self._offsets[begin] = offset
        return offset

    def _guess(self, info: ZipInfo, least: int) -> int:
        """Return where the data of an entry probably begins. An entry ends where the next one begins."""
        place = bisect_right(self._starts, info.header_offset)
        end = self._starts[place] if place < len(self._starts) else 0
        guess = end - info.compress_size
        return guess if least <= guess < least + 2**16 and not info.flag_bits & _SIZES_FOLLOW else least

    def _header(self, info: ZipInfo, name: bytes, header: bytes) -> int:
        """Return the size of the header of an entry, after checking that it belongs to the entry."""
        if len(header) < _LOCAL_HEADER.size + len(name):
            raise StoreError("the archive is truncated")
        signature, flags, checksum, name_size, extra_size = _LOCAL_HEADER.unpack_from(header)
        if signature != b"PK\x03\x04" or header[_LOCAL_HEADER.size :][:name_size] != name:
            raise StoreError(
                "the archive is broken, or was replaced, or something stands before it",
                found=signature,
                expected=b"PK\x03\x04",
                remedy="open it again, or copy it and open the copy",
            )
        if not flags & _SIZES_FOLLOW and checksum != info.CRC:
            raise StoreError("the archive is broken, or was replaced", remedy="open it again")
        return int(_LOCAL_HEADER.size + name_size + extra_size)

    def _ask(self, pieces: Sequence[tuple[int, int]]) -> Buffers:
        """Return parts of the archive, given as (start, length). Fewer bytes are returned at the end."""
        parts = self._reader([(start, start + length) for start, length in pieces])
        if parts is None:
            raise StoreError("the archive does not exist any more")
        return parts


def _check_lengths(parts: Buffers, pieces: Sequence[tuple[int, int]]) -> None:
    for part, (_, length) in zip(parts, pieces, strict=True):
        if len(part) != length:
            raise StoreError("the archive is truncated", found=f"{len(part)} bytes", expected=f"{length} bytes")


class Value:
    """An archive that is a value of a store."""

    def __init__(self, store: Store, key: str) -> None:
        self.store = store
        self.key = key

    def open(self, how: _How) -> _RemotePart:
        """Read the directory. Raises NodeNotFoundError if there is no such value."""
        pinned = verbs.pinned(self.store, self.key)
        return _RemotePart(pinned or self._reader, how, pinned=pinned is not None)

    def _reader(self, spans: Sequence[Span] | None) -> Buffers | None:
        return verbs.get_spans(self.store, self.key, spans or [(0, None)])

    def version(self) -> tuple[int | None, Hashable | None]:
        """Return the version of the value: its size (None: missing), and its stamp if it has one."""
        return self.store.size(self.key), verbs.stamp(self.store, self.key)

    def replace(self, value: Buffer, seen: tuple[int | None, Hashable | None]) -> None:
        """Set the value, if it has not changed since it was read."""
        with self.store.lock(self.key):
            size, stamp = self.version()  # within the lock, the store remembers what this thread has read
            same = size == seen[0] and (stamp is None or seen[1] is None or stamp == seen[1])
            if same and size is None:
                same = verbs.set_if_absent(self.store, self.key, value)
            elif same:
                try:
                    self.store.set(self.key, value)
                except ConflictError:
                    same = False
        if not same:
            raise ConflictError("another writer was faster")

    def __repr__(self) -> str:
        return f"{self.store!r}, key {self.key!r}"


def _identity(path: str | None) -> tuple[int, ...] | None:
    """Return an identity that changes when a file is written or replaced; None if there is no file."""
    try:
        status = os.stat(path or "")
    except OSError:
        return None
    return files.identity(status)[:-1]  # who may read it is no reason to refuse a change


_changing: Final[WeakValueDictionary[str, Archive]] = WeakValueDictionary()
"""The archives of this process that have changes which are not written yet, by the places of their files."""
_claiming: Final = RLock()


class Archive:
    """A zip archive as names and values. See the module docstring.

    Parameters
    ----------
    file : str, binary file object or Value
        Path of the archive, an open file, or a value of a store.
    mode : {"r", "r+", "a", "w", "x"}
        "r": read. "r+": read and write an existing archive. "a": the same, or create one. "w": create one. "x":
        create one; it must not exist.
    compression : int
        How new entries are compressed.
    """

    def __init__(self, file: str | IO[bytes] | Value, mode: Mode, compression: int, *, allow_zip64: bool) -> None:
        self.path = repr(file) if isinstance(file, Value) else file if isinstance(file, str) else None
        self.writes = mode != "r"
        self._exclusive = mode == "x"
        self._value = file if isinstance(file, Value) else None
        self._target = None if isinstance(file, str | Value) else file
        self._how = (compression, allow_zip64)
        self._lock = RLock()
        self._process = os.getpid()
        self._closed = False
        self._changed = False
        self._place: str | None = None  # of the file that this one has changes of
        self._old: _Part | None = None
        self._new: _Part | None = None
        self._given_up: list[_Part] = []  # parts to which a write failed halfway; their earlier entries are still read
        self.entries: dict[str, _Entry] = {}
        self._sorted: list[str] | None = None

        if self._value is not None:
            self._seen_value = self._value.version() if self.writes else (None, None)
        self._seen = _identity(self.path)
        exists = self._there()
        if mode == "x" and exists:
            raise NodeExistsError("the archive exists already", store=self.path, remedy='overwrite it with mode "w"')
        if mode in ("r", "r+") and not exists:
            raise NodeNotFoundError("there is no such archive", store=self.path)
        if exists and mode != "w":
            self._open_old()
        elif self.writes:
            self._changed = True  # an archive without entries must be written, too

    def _there(self) -> bool:
        if self._value is not None:
            return not self.writes or self._seen_value[0] is not None
        if self._target is None:
            return os.path.exists(self.path or "")
        if not self._target.seekable():
            raise StoreError("the file object cannot seek", store=repr(self._target))
        return self._target.seek(0, io.SEEK_END) > 0

    def _open_old(self) -> None:
        if self._value is not None:
            try:
                self._add_old(self._value.open(self._how))
            except _BROKEN as error:
                if isinstance(error, OmnizarrError):
                    raise error.add(store=self.path) from error.__cause__
                raise StoreError(f"not a zip archive that can be read: {error}", store=self.path) from error
            return
        try:
            file = self._target or open(self.path or "", "rb")  # noqa: SIM115 - open as long as the archive
        except OSError as error:
            raise system.failure(error, "cannot be opened: {}", store=self.path) from error
        try:
            self._add_old(_Part(file, "r", self._how))
        except _BROKEN as error:
            if file is not self._target:
                file.close()
            raise StoreError(f"not a zip archive that can be read: {error}", store=self.path) from error

    def _add_old(self, part: _Part) -> None:
        self._old = part
        # If a name occurs several times, the last entry counts, also if someone overwrote it that way.
        self.entries = {
            name: _Entry(part, info) for name, info in part.zip.NameToInfo.items() if not name.endswith("/")
        }
        part.dead = len(part.zip.filelist) - len(part.zip.NameToInfo)

    def read(self, name: str, spans: Sequence[Span] | None) -> Buffers | None:
        """Return parts of the value of `name` (None: all of it); None if it is missing."""
        self._check_open()
        entry = self.entries.get(name)
        return None if entry is None else entry.part.read(entry.info, spans)

    def size(self, name: str) -> int | None:
        """Return the size of the value of `name`; None if it is missing."""
        self._check_open()
        entry = self.entries.get(name)
        return None if entry is None else entry.info.file_size

    def extent(self, name: str) -> tuple[int, int] | None:
        """Return where in the archive the value of `name` begins, and its length; None if it is missing.

        Raises NotRepresentableError if it is compressed, or is not in the archive before that is closed.
        """
        self._check_open()
        entry = self.entries.get(name)
        if entry is None:
            return None
        if entry.part is not self._old or self._changed:
            raise NotRepresentableError(
                "the archive has changes that are not written yet", remedy="close it, and open it for reading"
            )
        return entry.part.extent(entry.info)

    def stamp(self, name: str) -> Hashable | None:
        """Return the stamp of the value of `name`; None if it has no stamp, or is missing."""
        self._check_open()
        entry = self.entries.get(name)
        if entry is None:
            return None
        if isinstance(entry.part, _RemotePart):  # a pinned value stays the same, or cannot be read
            return Identity(entry.info) if entry.part.pinned else None
        if entry.part.descriptor < 0:
            return None
        if entry.part.temporary is not None:  # no other program writes there, and values are never overwritten in place
            return Identity(entry.info)
        file = files.stamp(entry.part.descriptor)
        return None if file is None else (Identity(entry.info), file)

    def ozx_faults(self) -> list[tuple[str, str]]:
        """Return what the stored archive lacks of the specification of single-file OME-Zarr; see `ozx.faults`."""
        part = self._old
        if part is None:
            return []
        infos = [info for info in part.zip.infolist() if not info.is_dir()]
        root = part.zip.NameToInfo.get("zarr.json")
        compressed = sum(info.compress_type != ZIP_STORED for info in infos)
        document = None if root is None else bytes(part.read(root, None)[0])
        return ozx.faults([info.filename for info in infos], compressed, part.zip.comment, document)

    def names(self) -> list[str]:
        """Return all names in sorted order. The caller must not change the list."""
        self._check_open()
        names = self._sorted
        if names is None:
            names = self._sorted = sorted(list(self.entries))  # noqa: C414 - a copy, as others may write meanwhile
        return names

    def write(self, name: str, value: Buffer) -> None:
        """Set the value of `name`."""
        self._check_open()  # checked before the lock, too: in a forked child it may be locked forever
        with self._lock:
            self._check_open()
            self._claim()
            old = self.entries.get(name)
            with self._failures():
                if self._new is None:
                    self._new = self._begin()
                part = self._new
                try:
                    info = part.write(name, value)
                except BaseException:
                    # zipfile may finish the entry at any time, so nothing may be written there.
                    self._given_up.append(part)
                    self._new = None
                    part.zip._writing = False  # type: ignore[attr-defined]  # noqa: SLF001 - or it would not be read
                    raise
            self.entries[name] = _Entry(part, info)
            if old is None:
                self._sorted = None
            else:
                old.part.dead += 1
            self._changed = True

    def write_if_absent(self, name: str, value: Buffer) -> bool:
        """Set the value of `name` unless it exists, and return whether it was set."""
        self._check_open()
        with self._lock:
            if name in self.entries:
                return False
            self.write(name, value)
            return True

    def remove(self, name: str) -> None:
        """Remove `name`, if it exists."""
        self._check_open()
        with self._lock:
            self._check_open()
            self._claim()
            entry = self.entries.pop(name, None)
            if entry is not None:
                entry.part.dead += 1
                self._sorted = None
                self._changed = True

    def _claim(self) -> None:
        """Become the one archive of this process that has changes of the file, until it is closed.

        Raises StoreError if another one has changes, or has written its own since this one was opened: `close` would
        have to refuse what is written here.
        """
        if self._place is not None or self.path is None or self._value is not None:
            return
        place = os.path.realpath(self.path)
        with _claiming:
            owner = _changing.get(place)
            if owner is not None and owner is not self and owner._process == self._process:  # noqa: SLF001
                raise StoreError(
                    "another object of this process has changes of this archive that are not written yet",
                    store=self.path,
                    remedy="close that one first, and open this one again; or use one object for all",
                )
            if _identity(self.path) != self._seen:
                raise StoreError(
                    "another writer has replaced the archive since it was opened: nothing can be written here",
                    store=self.path,
                    remedy="open it again",
                )
            _changing[place] = self
            self._place = place

    def _release(self) -> None:
        with _claiming:
            if self._place is not None and _changing.get(self._place) is self:
                del _changing[self._place]

    def close(self) -> None:
        """Write the archive, if anything changed. The old one stays until this has succeeded."""
        if self._process != os.getpid():
            return  # a forked child: the archive belongs to the parent
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if self.writes and self._changed:
                    with self._failures():
                        self._commit()
            finally:
                self._release()
                try:
                    self._discard()
                except BaseException:  # on Ctrl-C, no temporary file may stay
                    self._discard()
                    raise

    def discard(self) -> None:
        """Close the archive without writing it. The old one stays."""
        with self._lock:
            self._changed = False
        self.close()

    def _discard(self) -> None:
        for part in (self._old, self._new, *self._given_up):
            if part is not None and part.file is not self._target:
                part.discard()

    def _commit(self) -> None:
        """Write all entries into one file, and put it in place."""
        is_ozx = ozx.is_ozx(self._value.key if self._value is not None else self.path)
        if self._new is not None and not self._new.dead and not is_ozx:
            self._write_out(self._new)
            return
        part = self._begin()
        try:
            if is_ozx:  # entries that were written one after another are not in the order that readers expect
                part.is_ozx = True
                self.entries = {name: self.entries[name] for name in ozx.in_order(self.entries)}
                if (root := self.entries.get("zarr.json")) is not None:
                    part.zip.comment = ozx.comment_of(bytes(root.part.read(root.info, None)[0]))
            self._write_out(part)
        finally:
            part.discard()

    def _write_out(self, part: _Part) -> None:
        part.finish(
            {name: entry.info if entry.part is part else part.take(entry) for name, entry in self.entries.items()}
        )
        if self._value is not None:
            # Not closed here: the client of a remote store may release the data later.
            data = mmap.mmap(part.file.fileno(), 0, access=mmap.ACCESS_READ)
            self._value.replace(memoryview(data), self._seen_value)
        elif self._target is not None:
            part.file.seek(0)
            self._target.seek(0)
            self._target.truncate()
            shutil.copyfileobj(part.file, self._target, _BLOCK)
            self._target.flush()
        elif part.temporary is not None:
            os.fsync(part.file.fileno())
            part.file.close()
            if self._old is not None:
                self._old.file.close()  # Windows does not replace open files
            if self._exclusive and os.path.exists(self.path or ""):
                raise NodeExistsError("another writer has created the archive meanwhile", store=self.path)
            if _identity(self.path) != self._seen:
                raise StoreError(
                    "another writer has replaced the archive meanwhile; its archive is kept, and nothing is written",
                    store=self.path,
                    remedy="let one process at a time write an archive, or use a directory",
                )
            os.replace(part.temporary, self.path or "")
            part.temporary = None

    def _begin(self) -> _Part:
        """Return a new zip file beside the archive (for a file object: in the default directory)."""
        if self._target is not None or self._value is not None:
            return _Part(tempfile.TemporaryFile(), "w", self._how)
        folder, _ = os.path.split(self.path or "")
        os.makedirs(folder or ".", exist_ok=True)
        temporary = os.path.join(folder, f"{RESERVED}{os.urandom(8).hex()}.tmp")
        try:
            file = open(temporary, "x+b")  # noqa: SIM115 - open as long as the archive
            return _Part(file, "w", self._how, temporary)
        except BaseException:
            files.discard(temporary)
            raise

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors of the operating system into errors of omnizarr, and explain conflicts."""
        try:
            yield
        except ConflictError as error:  # when old entries of a value are read again, or when it is replaced
            raise ConflictError(
                "another writer has replaced the archive meanwhile; its archive is kept, and nothing is written",
                store=self._value and repr(self._value.store),
                key=self._value and self._value.key,
                remedy="let one process at a time write an archive, or use one key per value",
            ) from error
        except OmnizarrError:
            raise
        except OSError as error:
            raise system.failure(error, "cannot be written: {}", store=self.path) from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the archive is closed", store=self.path)
        if self.writes and self._process != os.getpid():
            raise StoreError("the archive is being written by another process, which forked this one", store=self.path)
