"""Read-only stores of values in files, or in memory: what manifests and sets of references have in common."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from omnizarr.errors import OmnizarrError
from omnizarr.stores import pool, ranges, verbs
from omnizarr.stores.base import Buffer, Buffers, Request, Span, answers, as_prefix, cut
from omnizarr.stores.ranges import Range
from omnizarr.stores.shown import ReadOnlyStore

ALL: Final = (0, None)


class Wanted(NamedTuple):
    """A part of a value that is requested."""

    position: int
    key: str
    span: Span
    found: Any
    """The value itself, its place in a file, or None."""


class PartStore(ReadOnlyStore):
    """A read-only store of parts of files.

    A subclass says what the place of a value is (`_Place`), finds it, and reads values that lie near each other.
    """

    _Place: ClassVar[type]
    """The class of places in files. Everything else that `_find` returns is the value itself."""

    # -- what a subclass says ------------------------------------------------------------

    @abstractmethod
    def _find(self, key: str) -> Any:
        """Return the value of a key or its place; None if there is none."""

    @abstractmethod
    def _range(self, place: Any, span: Span) -> Range | None:
        """Return the bytes of a file that hold a part of a value; None if they do not follow one another."""

    @abstractmethod
    def _known_size(self, place: Any) -> int | None:
        """Return how many bytes the value at a place has, without asking for them; None if that is unknown."""

    @abstractmethod
    def _parts(self, group: list[Wanted], most: int | None) -> Buffers:
        """Read what `ranges.neighbours` has put together. Values of more than `most` bytes raise StoreLimitError."""

    # -- reading -----------------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return a value from memory, or read it from its file."""
        found = self._find(key)
        if not isinstance(found, self._Place):
            return None if found is None else cut(found, span)
        return self._values([Wanted(0, key, ALL if span is None else span, found)], None)[0][1]

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Read the value, unless it is too large."""
        ((_, value),) = self._get_each([(key, None)], most)
        return value

    @answers(verbs.get_many_within)
    def _get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Read concurrently, and neighbours together."""
        return self._get_each(((key, None) for key in keys), most)

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Read concurrently, and neighbours together."""
        return self._get_each(requests, None)

    def _get_each(self, requests: Iterable[Request], most: int | None) -> Iterator[tuple[int, Buffer | None]]:
        """Yield the values; with `most`, raise StoreLimitError for those of more bytes."""
        groups = ranges.neighbours(self._wanted(requests, most), self._range_of)
        read = partial(self._values, most=most)
        for group in groups:
            if isinstance(group[0].found, self._Place):  # values in memory need no threads
                for _, values in pool.gather(read, itertools.chain([group], groups), self.features.concurrency):
                    yield from values
            else:
                yield from read(group)

    def _wanted(self, requests: Iterable[Request], most: int | None) -> Iterator[Wanted]:
        """Yield the requests with what they lead to."""
        for position, (key, span) in enumerate(requests):
            found = self._find(key)
            if most is not None and found is not None:
                size = self._known_size(found) if isinstance(found, self._Place) else len(found)
                verbs.check_limit(self, key, size or 0, most)
            yield Wanted(position, key, ALL if span is None else span, found)

    def _range_of(self, wanted: Wanted) -> Range | None:
        return self._range(wanted.found, wanted.span) if isinstance(wanted.found, self._Place) else None

    def _values(self, group: list[Wanted], most: int | None) -> list[tuple[int, Buffer | None]]:
        """Read what lies together."""
        first = group[0]
        if not isinstance(first.found, self._Place):
            return [(first.position, None if first.found is None else cut(first.found, first.span))]
        try:
            parts = self._parts(group, most)
        except OmnizarrError as error:
            raise error.add(key=first.key)
        return [(each.position, part) for each, part in zip(group, parts, strict=True)]

    def exists(self, key: str) -> bool:
        """Whether there is a value, or a place of it. This does not look for the file."""
        return self._find(key) is not None

    @answers(verbs.has_any)
    def _has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Whether there is one of them."""
        prefix = as_prefix(prefix)
        return any(self.exists(prefix + name) for name in names)

    def list(self) -> Iterator[str]:
        """Yield all keys."""
        return self.list_prefix("")
