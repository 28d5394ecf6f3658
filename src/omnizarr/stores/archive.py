"""Zip archives that can be overwritten and deleted from, and survive being interrupted.

An archive that exists is never written to. New entries go to a temporary file beside it; closing adds
the old entries that are still wanted, and renames the temporary file. Until then the archive is as it was, whatever
happens; afterwards it holds each entry once, and no bytes of entries that are gone.
"""

from __future__ import annotations

import bz2
import io
import os
import shutil
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from lzma import LZMAError
from typing import IO, Literal, NamedTuple, TypeAlias
from zipfile import (
    ZIP_BZIP2,
    ZIP_DEFLATED,
    ZIP_STORED,
    BadZipFile,
    ZipFile,
    ZipInfo,
)

from omnizarr.errors import (
    ChecksumError,
    NodeExistsError,
    NodeNotFoundError,
    OmnizarrError,
    StoreClosedError,
    StoreError,
)
from omnizarr.stores import files, threads
from omnizarr.stores.base import RESERVED, Buffer, Identity, Span, bounds

Mode: TypeAlias = Literal["r", "r+", "a", "w", "x"]

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature ... length of the name, length of the extra field
# What zipfile and the decompressors raise if an archive is broken.
_BROKEN = (
    BadZipFile,
    EOFError,
    LZMAError,
    NotImplementedError,
    OSError,
    OverflowError,
    ValueError,
    struct.error,
    zlib.error,
)
_BLOCK = 2**20

_How: TypeAlias = tuple[int, bool]
"""How entries are compressed, and whether the archive may grow beyond 4 GiB."""


class _Entry(NamedTuple):
    """Where a value is."""

    part: _Part
    info: ZipInfo


class _Part:
    """A zip file, and reading from it: without a shared position, so that threads and forked children can."""

    def __init__(self, file: IO[bytes], mode: Literal["r", "w"], how: _How, temporary: str | None = None) -> None:
        self.file = file
        self.zip = ZipFile(file, mode, *how)
        self.temporary = temporary
        self.dead = 0  # entries that were replaced or deleted
        self._offsets: dict[int, int] = {}
        try:
            self.descriptor = file.fileno() if hasattr(os, "pread") else -1
        except (AttributeError, OSError):
            self.descriptor = -1

    def read(self, info: ZipInfo, span: Span | None) -> Buffer:
        """Return the value of an entry, or a part of it; StoreError or ChecksumError whatever is broken."""
        try:
            return self._read(info, span)
        except OmnizarrError:
            raise
        except _BROKEN as error:
            raise StoreError(f"the entry cannot be read: {error}") from error

    def _read(self, info: ZipInfo, span: Span | None) -> Buffer:
        if span == (0, None):
            span = None  # all of it, which has a checksum
        if info.flag_bits & 1:
            raise StoreError("the entry is encrypted", remedy="decrypt the archive first")
        offset = self._data_offset(info)
        if info.compress_type == ZIP_STORED and span is not None:
            start, length = bounds(span, info.file_size)
            return self._bytes(offset + start, length)
        value = self._decompress(info, offset)
        if len(value) != info.file_size:
            raise StoreError("the entry is broken", found=f"{len(value)} bytes", expected=f"{info.file_size} bytes")
        if (found := zlib.crc32(value)) != info.CRC:
            raise ChecksumError(
                "the checksum of the zip entry differs", found=f"{found:#010x}", expected=f"{info.CRC:#010x}"
            )
        if span is None:
            return value
        start, length = bounds(span, len(value))
        return memoryview(value)[start : start + length]

    def _decompress(self, info: ZipInfo, offset: int) -> bytes:
        """Return the value of an entry; never much more than it says it has."""
        limit = info.file_size + 1
        if info.compress_type == ZIP_STORED:
            return self._bytes(offset, info.compress_size)
        if info.compress_type == ZIP_DEFLATED:
            return zlib.decompressobj(-15).decompress(self._bytes(offset, info.compress_size), limit)
        if info.compress_type == ZIP_BZIP2:
            return bz2.BZ2Decompressor().decompress(self._bytes(offset, info.compress_size), limit)
        with self.zip.open(info) as source:  # rare: LZMA, and whatever else this Python knows
            return source.read()

    def _data_offset(self, info: ZipInfo) -> int:
        """Return where the data of an entry begins: only the header before it knows."""
        offset = self._offsets.get(info.header_offset)
        if offset is None:
            signature, name, extra = _LOCAL_HEADER.unpack(self._bytes(info.header_offset, _LOCAL_HEADER.size))
            if signature != b"PK\x03\x04":
                raise StoreError("the archive is broken", found=signature, expected=b"PK\x03\x04")
            offset = info.header_offset + _LOCAL_HEADER.size + name + extra
            self._offsets[info.header_offset] = offset
        return offset

    def _bytes(self, start: int, length: int) -> bytes:
        # `length` comes from the archive, and memory is only for what is there.
        if length > _BLOCK:
            length_there = max(0, self._size() - start)
            if length > length_there:
                raise StoreError("the archive is truncated", found=f"{length_there} bytes", expected=f"{length} bytes")
        if self.descriptor >= 0:
            data = os.pread(self.descriptor, length, start)
            while len(data) < length:  # 2 GiB at most at once
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
        self.zip.NameToInfo.pop(key, None)  # or zipfile would warn of the duplicate that `finish` leaves out
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
        with entry.part.zip.open(old) as source, self.zip.open(info, "w", force_zip64=old.file_size >= 2**31) as target:
            shutil.copyfileobj(source, target, _BLOCK)
        return info

    def finish(self, keep: dict[str, ZipInfo]) -> None:
        """Write the directory: all entries that are to be kept, and no others."""
        self.zip.filelist[:] = [info for info in self.zip.filelist if keep.get(info.filename) is info]
        self.zip.close()
        self.file.flush()

    def discard(self) -> None:
        """Let go of the file, and remove it if it is a temporary one."""
        self.zip.fp = None  # or it would try to finish what was given up
        with suppress(OSError):  # what could not be written on a full disk cannot be flushed either
            self.file.close()
        if self.temporary is not None:
            with suppress(OSError):
                os.unlink(self.temporary)


def _identity(path: str | None) -> tuple[int, ...] | None:
    """Return what changes when a file is written or replaced; None if there is no file."""
    try:
        status = os.stat(path or "")
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Archive:
    """A zip archive as names and values; see the module.

    Parameters
    ----------
    file : str or binary file object
        Path of the archive, or an open file.
    mode : {"r", "r+", "a", "w", "x"}
        Read; read and write what exists; the same or begin a new one; begin a new one; the same, only if
        there is none.
    compression : int
        How new entries are compressed.
    """

    def __init__(self, file: str | IO[bytes], mode: Mode, compression: int, *, allow_zip64: bool) -> None:
        self.path = file if isinstance(file, str) else None
        self.writes = mode != "r"
        self._exclusive = mode == "x"
        self._target = None if isinstance(file, str) else file
        self._how = (compression, allow_zip64)
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._changed = False
        self._old: _Part | None = None
        self._new: _Part | None = None
        self.entries: dict[str, _Entry] = {}
        self._sorted: list[str] | None = None

        self._seen = _identity(self.path)
        exists = self._there()
        if mode == "x" and exists:
            raise NodeExistsError("the archive exists already", store=self.path, remedy='overwrite it with mode "w"')
        if mode in ("r", "r+") and not exists:
            raise NodeNotFoundError("there is no such archive", store=self.path)
        if exists and mode != "w":
            self._open_old()
        elif self.writes:
            self._changed = True  # an archive without entries is still to be written

    def _there(self) -> bool:
        if self._target is None:
            return os.path.exists(self.path or "")
        if not self._target.seekable():
            raise StoreError("the file object cannot seek", store=repr(self._target))
        return self._target.seek(0, io.SEEK_END) > 0

    def _open_old(self) -> None:
        try:
            file = self._target or open(self.path or "", "rb")  # noqa: SIM115 - open as long as the archive
        except OSError as error:
            raise StoreError(f"cannot be opened: {error.strerror}", store=self.path) from error
        try:
            self._old = part = _Part(file, "r", self._how)
        except _BROKEN as error:
            if file is not self._target:
                file.close()
            raise StoreError(f"not a zip archive that can be read: {error}", store=self.path) from error
        # Of several entries of one name the last counts, also if that is how they were overwritten.
        self.entries = {
            name: _Entry(part, info) for name, info in part.zip.NameToInfo.items() if not name.endswith("/")
        }
        part.dead = len(part.zip.filelist) - len(part.zip.NameToInfo)

    def read(self, name: str, span: Span | None) -> Buffer | None:
        """Return the value of `name`, or a part of it; None if there is none."""
        self._check_open()
        entry = self.entries.get(name)
        return None if entry is None else entry.part.read(entry.info, span)

    def size(self, name: str) -> int | None:
        """Return the size of the value of `name`; None if there is none."""
        self._check_open()
        entry = self.entries.get(name)
        return None if entry is None else entry.info.file_size

    def stamp(self, name: str) -> Hashable | None:
        """Return what tells the value of `name` from others it had; None if nothing does, or there is none."""
        self._check_open()
        entry = self.entries.get(name)
        if entry is None or entry.part.descriptor < 0:
            return None
        if entry.part.temporary is not None:  # nobody else writes there, and what is written is never written over
            return Identity(entry.info)
        file = files.stamp(entry.part.descriptor)
        return None if file is None else (Identity(entry.info), file)

    def names(self) -> list[str]:
        """Return all names in sorted order; not to be changed."""
        self._check_open()
        names = self._sorted
        if names is None:
            names = self._sorted = sorted(list(self.entries))  # noqa: C414 - a copy, as others may write meanwhile
        return names

    def write(self, name: str, value: Buffer) -> None:
        """Set the value of `name`."""
        with self._lock:
            self._check_open()
            old = self.entries.get(name)
            with self._failures():
                if self._new is None:
                    self._new = self._begin()
                info = self._new.write(name, value)
            self.entries[name] = _Entry(self._new, info)
            if old is None:
                self._sorted = None
            else:
                old.part.dead += 1
            self._changed = True

    def write_if_absent(self, name: str, value: Buffer) -> bool:
        """Set the value of `name` unless there is one; return whether it was set."""
        with self._lock:
            if name in self.entries:
                return False
            self.write(name, value)
            return True

    def remove(self, name: str) -> None:
        """Remove `name`, if it is there."""
        with self._lock:
            self._check_open()
            entry = self.entries.pop(name, None)
            if entry is not None:
                entry.part.dead += 1
                self._sorted = None
                self._changed = True

    def close(self) -> None:
        """Write the archive, if anything changed; until this has succeeded the old one stays."""
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
                for part in (self._old, self._new):
                    if part is not None and part.file is not self._target:
                        part.discard()

    def _commit(self) -> None:
        """Bring all entries together in one file, and put that where it belongs."""
        if self._new is not None and not self._new.dead:
            self._write_out(self._new)
            return
        part = self._begin()
        try:
            self._write_out(part)
        finally:
            part.discard()

    def _write_out(self, part: _Part) -> None:
        part.finish(
            {name: entry.info if entry.part is part else part.take(entry) for name, entry in self.entries.items()}
        )
        if self._target is not None:
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
                raise NodeExistsError("somebody else wrote the archive meanwhile", store=self.path)
            if _identity(self.path) != self._seen:
                raise StoreError(
                    "somebody else wrote the archive meanwhile: theirs is kept, nothing of this store is written",
                    store=self.path,
                    remedy="let one process at a time write an archive, or use a directory",
                )
            os.replace(part.temporary, self.path or "")
            part.temporary = None

    def _begin(self) -> _Part:
        """Return a new zip file beside the archive (for a file object: somewhere)."""
        if self._target is not None:
            return _Part(tempfile.TemporaryFile(), "w", self._how)
        folder, _ = os.path.split(self.path or "")
        os.makedirs(folder or ".", exist_ok=True)
        temporary = os.path.join(folder, f"{RESERVED}{os.urandom(8).hex()}.tmp")
        file = open(temporary, "x+b")  # noqa: SIM115 - open as long as the archive
        return _Part(file, "w", self._how, temporary)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors of the operating system into ours."""
        try:
            yield
        except OmnizarrError:
            raise
        except OSError as error:
            failure = StoreError(f"cannot be written: {error.strerror}", store=self.path)
            failure.errno = error.errno
            raise failure from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the archive is closed", store=self.path)
        if self.writes and self._process != os.getpid():
            raise StoreError("the archive is being written by another process, which forked this one", store=self.path)
