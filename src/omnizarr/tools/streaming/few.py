"""The stored chunks of arrays that have few of them, from one listing of a hierarchy.

In a remote store, each listing is a request: of 10,000 arrays without chunks, or with one, a single listing tells in
10 or 20 requests what 10,000 would.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Final

from omnizarr.formats import DIALECTS
from omnizarr.formats.paths import Above
from omnizarr.nodes.location import StorePath
from omnizarr.stores.base import NOT_LISTED

_MOST: Final = 8
"""Chunks of an array whose keys are kept."""
_WORTH_IT: Final = 32
"""Keys that are listed for each array, at most, if all else that a listing would tell is of no use."""
_ENOUGH: Final = 1000
"""Keys that are listed in any case: one request."""
_DOCUMENTS: Final = frozenset(
    name for dialect in DIALECTS if dialect.entry_point is None for name in dialect.keyspace.documents("")
)


class FewChunks:
    """The keys below arrays, without documents: of those that have at most eight.

    Parameters
    ----------
    top : StorePath
        What is listed.
    arrays : collection of str
        The paths of arrays below, as the store knows them.
    """

    def __init__(self, top: StorePath, arrays: Collection[str]) -> None:
        self._arrays = arrays
        self._above = Above(arrays)
        self._number = len(arrays)
        self._found: dict[str, str | None] = {}
        self._is_whole = False
        self._top = top
        store = top.store
        self.is_of_use = len(arrays) > 1 and store.features.listing == "complete" and top.home is None
        """Whether a listing tells which chunks are stored."""

    def noting(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield all keys of a listing as they are, and note those of chunks."""
        if not self.is_of_use:
            yield from keys
            return
        found = self._found
        for key in keys:
            path = next(self._above.of(key), None)
            if path is not None and key.rpartition("/")[2] not in _DOCUMENTS:
                name = key[len(path) + 1 if path else 0 :]
                known = found.get(path, "")
                if known is not None:
                    many = "\0" in name or known.count("\0") >= _MOST - 1
                    found[path] = None if many else sys.intern(f"{known}\0{name}" if known else name)
            yield key
        self._is_whole = True

    def look(self) -> None:
        """Note the keys of a listing that is made for this; none if it fails, or if there are many."""
        if not self.is_of_use:
            return
        most = _ENOUGH + _WORTH_IT * self._number
        with suppress(*NOT_LISTED):
            keys = self._top.store.list_prefix(self._top.prefix)
            for number, _ in enumerate(self.noting(keys)):
                if number >= most:
                    break
        if not self._is_whole:
            self._found.clear()

    def again(self) -> FewChunks:
        """Return what a new listing tells."""
        now = FewChunks(self._top, self._arrays)
        now.look()
        return now

    def of(self, path: str) -> tuple[str, ...] | None:
        """Return the keys below an array, relative to it; None if they are many, or not known."""
        if not self._is_whole:
            return None
        found = self._found.get(path, "")
        return None if found is None else tuple(found.split("\0")) if found else ()
