"""Parts of files that lie near each other, which are fetched together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

GAP: Final = 1 << 16
"""Bytes between two parts of a file that are fetched together."""
LARGEST: Final = 1 << 22
"""Bytes from the first to the last of several parts that are fetched together."""


class Range(NamedTuple):
    """Bytes of a file."""

    file: Hashable
    """What tells files apart."""
    start: int
    stop: int
    """The end, excluded."""


def neighbours(wanted: Iterable[T], range_of: Callable[[T], Range | None]) -> Iterator[list[T]]:
    """Yield groups of neighbours in the order of `wanted`, each to be fetched by one request.

    What has no range is alone.

    >>> list(neighbours([Range("a", 0, 10), Range("a", 12, 20), Range("b", 20, 30)], lambda each: each))
    [[Range(file='a', start=0, stop=10), Range(file='a', start=12, stop=20)], [Range(file='b', start=20, stop=30)]]
    """
    group: list[T] = []
    first = last = None
    for each in wanted:
        place = range_of(each)
        if group and not (first is not None and last is not None and place is not None and _joins(first, last, place)):
            yield group
            group = []
        if not group:
            first = place
        group.append(each)
        last = place
    if group:
        yield group


def _joins(first: Range, last: Range, own: Range) -> bool:
    is_near = last.stop <= own.start <= last.stop + GAP
    return own.file == first.file and is_near and own.stop - first.start <= LARGEST
