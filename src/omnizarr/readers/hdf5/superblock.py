"""The superblock: how wide addresses are, where they begin, and where the root group is.

Versions 0 to 3; after a user block of any size that HDF5 allows.
Spec: HDF5 File Format Specification, II.A "Disk Format: Level 0A".
"""

from __future__ import annotations

from typing import Final

from omnizarr.errors import MetadataError
from omnizarr.readers.hdf5.source import SEAL, Cursor, Source

SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"

_OPEN: Final = 1 | 4  # for writing, and the same while others read
_SIZES: Final = (2, 4, 8)


def read(source: Source) -> tuple[int, int | None]:
    """Find the superblock and note what it says in `source`; return the addresses of the root group and of more facts.

    Raises
    ------
    MetadataError
        If the file is not HDF5, is shorter than its superblock says, or is one of several files of a family.
    """
    source.base = _position(source)
    cursor = source.head(0, 256)
    cursor.signature(SIGNATURE)
    source.version = version = cursor.version("the superblock", 0, 1, 2, 3)
    return _old(cursor, version) if version < 2 else _new(cursor)


def _position(source: Source) -> int:
    start = 0
    while start + len(SIGNATURE) <= source.size:
        if source.read(start, len(SIGNATURE)) == SIGNATURE:
            return start
        start = max(512, start * 2)
    raise MetadataError(
        "this is not an HDF5 file",
        store=repr(source.store),
        key=source.key,
        found=source.read(0, min(8, source.size)),
        expected=SIGNATURE,
    )


def _old(cursor: Cursor, version: int) -> tuple[int, None]:
    source = cursor.source
    cursor.skip(4)
    _widths(cursor)
    cursor.skip(1 + 2 + 2 + 4)
    if version == 1:
        source.chunk_rank = cursor.uint(2) or 32
        cursor.skip(2)
    base = cursor.address_or_none() or 0
    cursor.address_or_none()
    _check_end(cursor, base)
    if cursor.address_or_none() is not None:
        raise MetadataError(
            "this file is one of several, written by the driver for families or for split files",
            store=repr(source.store),
            key=source.key,
            remedy="h5repack makes one file of them",
        )
    cursor.skip(source.length_size)
    return cursor.defined("the root group"), None


def _new(cursor: Cursor) -> tuple[int, int | None]:
    _widths(cursor)
    cursor.source.sealed(0, 12 + 4 * cursor.source.offset_size + SEAL, "the superblock", SIGNATURE)
    flags = cursor.uint(1)
    cursor.source.is_open = cursor.source.version > 2 and bool(flags & _OPEN)
    base = cursor.address_or_none() or 0
    extension = cursor.address_or_none()
    _check_end(cursor, base)
    return cursor.defined("the root group"), extension


def _widths(cursor: Cursor) -> None:
    source = cursor.source
    source.offset_size, source.length_size = cursor.uint(1), cursor.uint(1)
    for size in (source.offset_size, source.length_size):
        if size not in _SIZES:
            cursor.fail("the width of addresses or lengths is unknown", found=size, expected="2, 4 or 8 bytes")


def _check_end(cursor: Cursor, base: int) -> None:
    """Check that the file is complete. A user block that was put before a file moves it, and its end."""
    source = cursor.source
    end = cursor.address_or_none()
    if end is not None and end - base + source.base > source.size:
        cursor.fail(
            "the file is shorter than it says: it was cut, or its writer did not finish",
            found=f"{source.size} bytes",
            expected=f"{end - base + source.base}",
        )
