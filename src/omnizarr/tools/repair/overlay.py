"""A store that keeps changes in memory only: a dry run writes into it, and reads its own changes from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

from omnizarr.stores import verbs
from omnizarr.stores.base import (
    Buffer,
    Features,
    Listing,
    Request,
    Span,
    Store,
    answers,
    as_prefix,
    check_key,
    cut,
    listing,
)


class Overlay(Store):
    """A store on another one, which is not changed.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> below = MemoryStore({"a": b"1", "b": b"2"})
    >>> store = Overlay(below)
    >>> store.set("c", b"3")
    >>> store.delete("a")
    >>> sorted(store.list()), sorted(below.list())
    (['b', 'c'], ['a', 'b'])
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.changed: dict[str, bytes | None] = {}

    @property
    def features(self) -> Features:
        """It lists what the store below does."""
        return Features(listing=self.store.features.listing)

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value that was set, or else the value of the store below."""
        check_key(key)
        if key not in self.changed:
            return self.store.get(key, span)
        value = self.changed[key]
        return None if value is None else cut(value, span)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Return the value that was set, or else the value of the store below."""
        return (
            verbs.get_within(self.store, key, most)
            if key not in self.changed
            else verbs.get_within.default(self, key, most)
        )

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Pass calls on to the store, except for changed keys."""
        wanted = list(requests)
        yield from ((number, self.get(key, span)) for number, (key, span) in enumerate(wanted) if key in self.changed)
        below = [number for number, (key, _) in enumerate(wanted) if key not in self.changed]
        for number, value in verbs.get_many(self.store, [wanted[number] for number in below]):
            yield below[number], value

    def size(self, key: str) -> int | None:
        """Return the size of the value."""
        if key not in self.changed:
            return self.store.size(key)
        value = self.changed[key]
        return None if value is None else len(value)

    def set(self, key: str, value: Buffer) -> None:
        """Remember the value."""
        check_key(key)
        self.changed[key] = bytes(value)

    def delete(self, key: str) -> None:
        """Remember that there is none."""
        check_key(key)
        self.changed[key] = None

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock nothing: there are no other writers."""
        check_key(key)
        return nullcontext()

    def list(self) -> Iterator[str]:
        """Yield every key."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys of the store below that were not deleted, and those that were set."""
        prefix = as_prefix(prefix)
        yield from (key for key in self.store.list_prefix(prefix) if key not in self.changed)
        yield from (key for key, value in self.changed.items() if value is not None and key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Combine the old values and those that were set."""
        prefix = as_prefix(prefix)
        there = self.store.list_dir(prefix)
        added = listing(
            (key for key, value in self.changed.items() if value is not None and key.startswith(prefix)), prefix
        )
        keys = {key for key in there.keys if self.changed.get(key, b"") is not None} | {*added.keys}
        return Listing(sorted(keys), sorted({*there.prefixes, *added.prefixes}), there.others)

    def origin(self) -> tuple[Hashable, str]:
        """Hand on."""
        return self.store.origin()

    def __repr__(self) -> str:
        return repr(self.store)

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002
        """Return the same store."""
        return self
