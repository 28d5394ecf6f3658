"""Values of two stores that are certainly equal, by the digests that they list (`verbs.list_digests`): none is read."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.stores import Store, verbs
from omnizarr.stores.base import NOT_LISTED

_Digests: TypeAlias = Iterator[tuple[str, bytes | None]]
_Named: TypeAlias = tuple[Hashable, bytes | None]
"""The name of a value, which it has in both places, and its digest."""

_MOST: Final = 2**22
"""Names that are kept of a place. All others may differ."""


class Names:
    """A set of many names that does not change, made of their hashes: 8 bytes each."""

    def __init__(self, hashes: Iterable[int]) -> None:
        self._hashes = np.frombuffer(array("q", hashes), np.int64).copy()
        self._hashes.sort()

    def __contains__(self, name: Hashable) -> bool:
        found = hash(name)
        at = int(self._hashes.searchsorted(found))
        return at < len(self._hashes) and int(self._hashes[at]) == found

    def __len__(self) -> int:
        return len(self._hashes)


class Listed(NamedTuple):
    """Where values lie.

    Attributes
    ----------
    store : Store
    prefixes : sequence of str
    name_of : callable
        Returns the name of a value for its key; None if it does not count.
    """

    store: Store
    prefixes: tuple[str, ...]
    name_of: Callable[[str], Hashable | None]

    def begin(self) -> _Digests | None:
        """Return keys and digests; None if the store lists no digests, or cannot list."""
        if self.store.features.listing != "complete":
            return None
        found = self.again()
        try:
            first = list(islice(found, 1))
        except NOT_LISTED:
            return None
        return chain(first, found)

    def again(self) -> _Digests:
        """Yield keys and digests. Raises StoreError."""
        return chain.from_iterable(verbs.list_digests(self.store, prefix) for prefix in self.prefixes)

    def named(self, found: _Digests) -> Iterator[_Named]:
        """Yield names and digests."""
        return ((name, digest) for key, digest in found if (name := self.name_of(key)) is not None)


class Unlike:
    """The names of values that may differ in two places, or are only in one: no digest shows that they are equal.

    `of` makes it. Each iteration lists both, and raises StoreError.
    """

    def __init__(self, one: Listed, other: Listed, begun: tuple[_Digests, _Digests]) -> None:
        self._one, self._other = one, other
        self._begun: tuple[_Digests, _Digests] | None = begun
        self.equal = 0
        """How many values were shown to be equal, after an iteration."""

    @classmethod
    def of(cls, one: Listed, other: Listed) -> Unlike | None:
        """Return the names; None if one of the stores lists no digests."""
        here = one.begin()
        there = None if here is None else other.begin()
        return None if here is None or there is None else cls(one, other, (here, there))

    def __iter__(self) -> Iterator[Any]:
        ours, theirs = self._begun or (self._one.again(), self._other.again())
        self._begun = None
        told = 0

        def known() -> Iterator[_Named]:
            nonlocal told
            for named in self._other.named(theirs):
                told += 1
                if named[1] is not None:
                    yield named

        others, equal = Names(map(hash, islice(known(), _MOST))), array("q")
        for named in self._one.named(ours):
            if named[1] is not None and named in others:
                equal.append(hash(named))
            else:
                yield named[0]
        self.equal = len(equal)
        if told > self.equal or len(others) == _MOST:  # the other place has more, or other values
            same = Names(equal)
            yield from (named[0] for named in self._other.named(self._other.again()) if named not in same)


def equal_names(one: Listed, other: Listed) -> Names:
    """Return the names of values that are certainly equal in two places; none if one of the stores lists no digests."""
    here = one.begin()
    there = None if here is None else other.begin()
    if here is None or there is None:
        return Names(())
    others = Names(map(hash, islice((named for named in other.named(there) if named[1] is not None), _MOST)))
    return Names(hash(named[0]) for named in one.named(here) if named[1] is not None and named in others)
