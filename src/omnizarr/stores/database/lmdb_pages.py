"""The pages of an LMDB file, checked before LMDB uses them.

LMDB maps its file and follows what is written there: a number that is not valid kills the process, or never ends. Here
pages are read like an ordinary file. Each must lie in the file, be reached once, and hold only entries that lie inside
it.

Spec: none; ``mdb.c`` of LMDB 0.9, format version 1 with 64-bit numbers.
"""

from __future__ import annotations

import os
import struct
import sys
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnizarr.errors import StoreError

_META: Final = struct.Struct("=16xIIQQ48s48sQQ")  # page header, magic, version, address, map size, two trees, last page
_TREE: Final = struct.Struct("=IHHQQQQQ")  # page size, flags, depth, numbers of pages and entries, root
_MAGIC: Final = 0xBEEFC0DE
_NO_PAGE: Final = 2**64 - 1
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG, _DUPLICATES = 1, 4
_INTEGER_KEYS: Final = 8
_KINDS: Final = 0x7E  # what can be said of keys and values; other flags belong to the environment
_HEADER: Final = 16
_NODE: Final = 8
_DEEPEST: Final = 32


@dataclass(frozen=True, slots=True)
class _File:
    number: int
    page_size: int
    pages: int

    def page(self, number: int) -> bytes:
        """Return a page. Raises StoreError if it is missing."""
        data = b""
        if 1 < number < self.pages:
            data = os.pread(self.number, self.page_size, number * self.page_size)
        if len(data) < self.page_size:
            raise _damaged(f"page {number}", f"one of the {self.pages} pages of the file")
        return data


def check_pages(path: str, transaction: int, *, writes: bool) -> bool:
    """Return whether the state of `transaction` was checked; False if other writers have replaced its record.

    The transaction must be open meanwhile. Raises StoreError if the file at `path` would harm a process in which LMDB
    reads (or writes) it.
    """
    if sys.maxsize < 2**32 or not hasattr(os, "pread"):  # another layout; Windows
        return True
    (number,) = map(os.open, (path,), (os.O_RDONLY | os.O_CLOEXEC,))  # see `interrupts`
    try:
        state = _state(number, transaction)
        if state is None:
            return False
        file, free, values = state
        _check_tree(file, values, flags=0, writes=writes)
        if writes:
            _check_tree(file, free, flags=_INTEGER_KEYS, writes=True)
        return True
    finally:
        os.close(number)


def _state(number: int, transaction: int) -> tuple[_File, tuple[int, ...], tuple[int, ...]] | None:
    """Return the file, and the trees of free pages and of values in the state after `transaction`."""
    size = os.fstat(number).st_size
    (page_size,) = struct.unpack("=I", os.pread(number, 4, 40).ljust(4, b"\0"))
    if not 256 <= page_size <= 2**16 or page_size & (page_size - 1):
        raise _damaged(f"pages of {page_size} bytes", "a power of two from 256 to 65536")
    for start in (0, page_size):
        magic, version, _, _, free, values, last, found = _META.unpack(
            os.pread(number, _META.size, start).ljust(_META.size, b"\0")
        )
        if magic == _MAGIC and version == 1 and found == transaction:
            file = _File(number, page_size, min(last + 1, size // page_size))
            return file, _TREE.unpack(free), _TREE.unpack(values)
    return None


def _check_tree(file: _File, tree: tuple[int, ...], *, flags: int, writes: bool) -> None:
    _, found, depth, *_, root = tree
    if root == _NO_PAGE:
        return
    if found & _KINDS != flags or not 0 < depth <= _DEEPEST:
        raise _damaged(f"a tree with flags {found} and depth {depth}", f"flags {flags} and a depth up to {_DEEPEST}")
    seen: set[int] = set()
    level = [root]
    for above in reversed(range(depth)):
        below: list[int] = []
        for number in level:
            if number in seen:
                raise _damaged(f"page {number} twice", "each page once")
            seen.add(number)
            below += _check_page(file, number, is_leaf=not above, writes=writes)
        level = below


def _check_page(file: _File, number: int, *, is_leaf: bool, writes: bool) -> list[int]:
    """Return the pages that a page of a tree refers to, none for a leaf."""
    data = file.page(number)
    own, _, kind, lower, upper = struct.unpack_from("=QHHHH", data)
    count = (lower - _HEADER) // 2
    least = 1 if is_leaf else 2
    if own != number or kind != (_LEAF if is_leaf else _BRANCH) or count < least or lower > upper > file.page_size:
        raise _damaged(f"page {number}: header {data[:_HEADER].hex()}", "that of a leaf" if is_leaf else "a branch's")
    numbers = np.frombuffer(data, np.uint16)
    starts = np.frombuffer(data, np.uint16, count, _HEADER).astype(np.int64)
    if (starts < upper).any() or (starts > file.page_size - _NODE).any() or (starts % 2).any():
        raise _damaged(f"page {number}: entries at {starts.min()} to {starts.max()}", "entries inside the page")
    low, high, flags, keys = (numbers[starts // 2 + part].astype(np.int64) for part in range(4))
    ends = starts + _NODE + keys
    if not is_leaf:
        _check_ends(number, ends, file.page_size)
        return [int(child) for child in low | high << 16 | flags << 32]
    if (flags & _DUPLICATES).any():
        raise _damaged(f"page {number}: several values for a key", "one value for each key")
    sizes = low | high << 16
    is_big = (flags & _BIG).astype(bool)
    _check_ends(number, ends + np.where(is_big, 8, sizes), file.page_size)
    for end, size in zip(ends[is_big], sizes[is_big], strict=True):
        (first,) = struct.unpack_from("=Q", data, end)
        _check_value(file, first, int(size), writes=writes)
    return []


def _check_ends(number: int, ends: np.ndarray[tuple[int], np.dtype[np.int64]], page_size: int) -> None:
    if (ends > page_size).any():
        raise _damaged(f"page {number}: an entry that ends at byte {ends.max()}", f"entries within {page_size} bytes")


def _check_value(file: _File, first: int, size: int, *, writes: bool) -> None:
    """Check the pages of a value that has pages for itself."""
    count = -(-(_HEADER + size) // file.page_size)
    if not 1 < first <= file.pages - count:
        raise _damaged(f"a value in pages {first} to {first + count - 1}", f"one of the {file.pages} pages of the file")
    if writes:
        own, _, kind, pages = struct.unpack_from("=QHHI", file.page(first))
        if (own, kind, pages) != (first, _OVERFLOW, count):
            raise _damaged(f"page {first}: {pages} pages of kind {kind}", f"{count} pages of a value")


def _damaged(found: str, expected: str) -> StoreError:
    return StoreError(
        "the database is damaged", found=found, expected=expected, remedy="take a copy; mdb_copy may save its values"
    )
