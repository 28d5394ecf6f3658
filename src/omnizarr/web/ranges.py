"""Ranges and conditions of requests for a value (RFC 9110, sections 13 and 14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from starlette.datastructures import Headers

Part: TypeAlias = tuple[int, int]
"""First byte, and the byte after the last."""

_MOST: Final = 64
"""Ranges of one request; a request with more gets the whole value."""
_spec = re.compile(r"(\d{1,18})-(\d{0,18})|-(\d{1,18})", re.ASCII).fullmatch
_tags = re.compile(r'(?:W/)?("[^"]*")').findall
_strong_tags = re.compile(r'(?:^|[\s,])("[^"]*")').findall


class Asked(NamedTuple):
    """The headers of a request that matter."""

    ranges: tuple[tuple[int | None, int | None], ...] | None
    """First and last byte of each range; (None, 8): the last 8 bytes. None: the whole value."""
    if_match: str | None
    if_none_match: str | None
    if_range: str | None

    @classmethod
    def of(cls, method: str, headers: Headers) -> Asked:
        """Parse a request. Ranges have a meaning only in GET requests."""
        ranges = parse(headers.get("range", "")) if method == "GET" else None
        return cls(ranges, headers.get("if-match"), headers.get("if-none-match"), headers.get("if-range"))

    @property
    def is_plain(self) -> bool:
        """Whether this asks for the whole value, on no condition."""
        return self == (None, None, None, None)

    def fails(self, etag: str) -> bool:
        """Return whether the value had to be another one: answered by 412."""
        return self.if_match is not None and not _matches(self.if_match, etag, _strong_tags)

    def is_known(self, etag: str) -> bool:
        """Return whether the client has this value already: answered by 304."""
        return self.if_none_match is not None and _matches(self.if_none_match, etag, _tags)

    def parts(self, etag: str, size: int) -> list[Part] | None:
        """Return the parts of a value to send, in the order asked for; an empty list is answered by 416.

        None: the whole value, as the client has another version, or asks for more bytes than there are.

        >>> Asked(((0, 1), (None, 2), (9, None)), None, None, None).parts('"a"', 6)
        [(0, 2), (4, 6)]
        """
        if self.ranges is None or self.if_range not in (None, etag):
            return None
        found = list(_satisfiable(self.ranges, size))
        return None if len(found) > 1 and sum(stop - start for start, stop in found) > size else found


def parse(text: str) -> tuple[tuple[int | None, int | None], ...] | None:
    """Return the ranges of a header; None if it asks for none, or breaks the grammar, and so means nothing.

    >>> parse("bytes=0-9, -5"), parse("bytes=9-0"), parse("rows=1-2")
    (((0, 9), (None, 5)), None, None)
    """
    unit, _, specs = text.partition("=")
    if unit.strip().lower() != "bytes":
        return None
    matches = [_spec(each.strip()) for each in specs.split(",") if each.strip()]
    ranges = []
    for match in matches:
        if match is None:
            return None
        first, last, length = (int(each) if each else None for each in match.groups())
        if first is not None and last is not None and last < first:
            return None
        ranges.append((first, last if first is not None else length))
    return tuple(ranges) if 0 < len(ranges) <= _MOST else None


def _satisfiable(ranges: Sequence[tuple[int | None, int | None]], size: int) -> Iterator[Part]:
    for first, last in ranges:
        start = max(0, size - (last or 0)) if first is None else first
        stop = size if first is None or last is None else min(size, last + 1)
        if start < stop:
            yield start, stop


def _matches(header: str, etag: str, tags: Callable[[str], list[str]]) -> bool:
    return header.strip() == "*" or etag in tags(header)
