"""Answers of object stores: versions of values, their parts, and the requests that get them."""

from __future__ import annotations

import mmap
import os
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from omnizarr.errors import StoreError
from omnizarr.stores.base import Buffer, Buffers, Span, bounds
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import obstore
else:
    obstore = Lazy("obstore")

_GAP: Final = 128 * 1024  # bytes between two parts that arrive sooner than the answer to another request
MOST_AT_ONCE: Final = 16 * 2**20
"""Bytes up to which parts are fetched as one, and up to which a value is read without requesting its size."""
LARGE: Final = 4 * 2**20
"""Bytes from which on it pays to receive a value in pieces, so that it is in memory once."""
_PIECE: Final = 2**20
_SUM: Final = re.compile(r"(?!0{32})[0-9a-f]{32}(-[1-9][0-9]{0,4})?")
_OF_NOTHING: Final = "d41d8cd98f00b204e9800998ecf8427e"
"""The MD5 sum of no bytes, which is also what some servers say that do not know the sum."""
FARTHEST: Final = 2**53
"""Some servers cannot parse larger numbers; no object is this large."""


def max_value_bytes_of_machine() -> int:
    """Return a quarter of this machine's memory, but at least 1 GiB."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        memory = 0
    return max(memory // 4, 2**30)


class Version(NamedTuple):
    """The version of a value as the server reports it: enough to read or replace this version, and no other."""

    e_tag: str | None
    version: str | None

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Version | None:
        """Return the version in `meta`; None if it is not certain."""
        e_tag, version = meta.get("e_tag"), meta.get("version")
        if e_tag is None or e_tag.startswith("W/"):  # a weak ETag may stay the same when the bytes change
            e_tag = None
        return None if e_tag is None and version is None else cls(e_tag, version)

    def condition(self) -> dict[str, str]:
        """Return this version in the form that obstore expects."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Answer(NamedTuple):
    """Bytes of a value, from byte `start` on, with their metadata."""

    data: Buffer
    start: int
    meta: Mapping[str, Any]

    def cut(self, span: Span) -> Buffer | None:
        """Return the part of the value within `span`; None if it is incomplete."""
        start, length = bounds(span, self.meta["size"])
        if not length:
            return b""
        start -= self.start
        if start < 0 or start + length > len(self.data):
            return None
        return memoryview(self.data)[start : start + length]


class Read(NamedTuple):
    """Parts of one version of a value, with their metadata."""

    parts: Buffers
    meta: Mapping[str, Any]


Seen: TypeAlias = Version | Literal["absent", "unknown"]
"""What a thread remembers about a key that it has read: its version, that it was missing, or that this is unknown."""


def body_of(result: obstore.GetResult) -> Buffer:
    """Return the bytes of an answer. Raises StoreError if their number is not the announced one."""
    # obstore's `bytes` would read whatever arrives, for as long as it arrives.
    start, stop = result.range
    return of_length(next(result.stream(stop - start), b""), stop - start)


def received(result: obstore.GetResult) -> Buffer:
    """Do what `body_of` does, for an answer of obstore. A large one is in memory once while it arrives."""
    start, stop = result.range
    length, at = stop - start, 0
    if length < LARGE:
        return body_of(result)
    parts = result.stream(_PIECE)
    first: Buffer = next(parts, b"")
    if len(first) >= length:
        return of_length(first, length)
    whole = _room_for(length)
    for part in chain((first,), parts):
        if at + len(part) > length:
            raise _other_length(at + len(part), length)
        whole[at : at + len(part)] = memoryview(part)
        at += len(part)
    return of_length(whole[:at].toreadonly(), length)


def _room_for(length: int) -> memoryview:
    """Return memory that the system gets back as soon as nothing uses it: what threads free, `malloc` may keep."""
    if sys.platform == "win32":
        return memoryview(mmap.mmap(-1, length))
    return memoryview(mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def of_length(data: Buffer, length: int) -> Buffer:
    """Return the body of an answer, or the beginning of one that is too long.

    Raises StoreError unless it is complete.
    """
    if len(data) != length:
        raise _other_length(len(data), length)
    return data


def _other_length(found: int, length: int) -> StoreError:
    shown = f"{found} bytes" if found < length else f"more than {length} bytes"
    return StoreError("the answer is shorter or longer than announced", found=shown, expected=length)


def are_same(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Return whether both are of the same version: by ETag, or, if that is weak or missing, also by size and date."""
    if one is None or other is None:
        return one is other
    facts = ("e_tag", "version") if Version.of(one) else ("e_tag", "version", "size", "last_modified")
    return all(one.get(fact) == other.get(fact) for fact in facts)


def digest_of(meta: Mapping[str, Any]) -> bytes | None:
    """Return the size and the ETag of a value in S3 as a digest; None if that is not made of the bytes of the value.

    Without encryption, it is their MD5 sum, or one of the sums of the parts of an upload. Servers that do not know the
    sum, or encrypt, give another number to each upload, or none, or zeros.

    >>> digest_of({"size": 3, "e_tag": '"900150983cd24fb0d6963f7d28e17f72"'})
    b'3 900150983cd24fb0d6963f7d28e17f72'
    """
    tag = str(meta.get("e_tag") or "").strip('"')
    if _SUM.fullmatch(tag) is None or (tag == _OF_NOTHING and meta["size"]):
        return None
    return f"{meta['size']} {tag}".encode()


def excludes(condition: Any, found: Mapping[str, Any] | None) -> bool:
    """Return whether the condition of a write cannot hold, because of the version that is stored; None: of no value.

    >>> excludes("create", {"e_tag": "1"}), excludes({"e_tag": "1"}, None), excludes({"e_tag": "1"}, {"e_tag": "1"})
    (True, True, False)
    """
    if condition == "create":
        return found is not None
    if found is None:
        return True
    wanted, tag = condition.get("e_tag"), found.get("e_tag")
    return wanted is not None and tag is not None and not tag.startswith("W/") and wanted != tag


def grouped(spans: Sequence[Span]) -> list[Span | None]:
    """Return the requests for all spans: near ones are combined, and so are all that count from the end.

    >>> grouped([(0, 10), (300_000, None), (20, 30), (5, 5), (-4, None), (-8, -2)])
    [(0, 30), (300000, None), (-8, None)]
    """
    groups: list[Span | None] = []
    first, last = 0, -1
    for start, stop in sorted((a, FARTHEST if b is None else b) for a, b in spans if a >= 0 and (b is None or a < b)):
        if last >= 0 and start <= last + _GAP and (start < last or max(stop, last) - first <= MOST_AT_ONCE):
            last = max(last, stop)
        else:
            if last >= 0:
                groups.append((first, last))
            first, last = start, stop
    if last >= 0:
        groups.append((first, None if last == FARTHEST else last))
    if (end := min((start for start, _ in spans), default=0)) < 0:
        groups.append((end, None))
    return groups
