"""Chunks that a view has encoded, kept in bounded memory for as long as what they were made of stays the same.

A reader over HTTP that asks for a chunk in many ranges, or many readers at a time, then cost one encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from omnizarr.codecs.contract import Buffer
from omnizarr.stores import Store, pool, threads, verbs
from omnizarr.stores.wrap.cache_backends import Entry, MemoryBackend

MOST_KEPT: Final = 64 * 2**20
"""Bytes of encoded chunks that one view keeps."""
MOST_SOURCES: Final = 64
"""A chunk that is made of more stored chunks is not kept: asking for their stamps could cost more than encoding it."""
_MISSING: Final = "missing"


class EncodedChunks:
    """Encoded chunks of one view, by their keys. The least recently used are dropped.

    Parameters
    ----------
    limit : int
        Bytes.
    """

    def __init__(self, limit: int = MOST_KEPT) -> None:
        self._shelf = MemoryBackend(limit)

    def get(
        self, key: str, how: Hashable, sources: Sequence[tuple[Store, str]], encode: Callable[[], Buffer | None]
    ) -> Buffer | None:
        """Return the chunk with a key: the one that is kept, if it is current, otherwise what `encode` returns.

        Threads that ask for one key at a time wait for the first of them.

        Parameters
        ----------
        key : str
        how : hashable
            Equal as long as equal stored chunks become equal chunks.
        sources : sequence of (Store, str)
            Stores and keys of what the chunk is made of. All have stamps (`Store.stamp`) or are missing, or nothing is
            kept.
        encode : callable
        """
        with threads.lock((EncodedChunks, id(self), key)):
            before = _stamps(sources)
            if before is None:
                return encode()
            known = self._shelf.get((key, None))
            if known is not None and known.stamp == (how, before):
                return known.value
            value = encode()
            if before == _stamps(sources):
                self._shelf.put((key, None), Entry(value, (how, before), self._shelf.clock()))
            return value


def _stamps(sources: Sequence[tuple[Store, str]]) -> tuple[Hashable, ...] | None:
    """Return the stamps of values, in the order of their keys; None if one that is stored has none."""

    def stamp(source: tuple[Store, str]) -> Hashable | None:
        store, key = source
        found = verbs.stamp(store, key)
        return _MISSING if found is None and not store.exists(key) else found

    if len(sources) > MOST_SOURCES:
        return None
    most = max((store.features.concurrency for store, _ in sources), default=1)
    found = dict(pool.gather(stamp, sources, min(len(sources), most)))
    stamps = tuple(found[number] for number in range(len(sources)))
    return None if None in stamps else stamps
