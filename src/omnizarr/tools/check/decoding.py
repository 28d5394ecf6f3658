"""Decoding stored chunks to check them, by this process or by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from omnizarr.engine import Binding, budget
from omnizarr.errors import StoreError
from omnizarr.stores import verbs
from omnizarr.tools.check import chunks
from omnizarr.tools.check.chunks import Trouble
from omnizarr.tools.check.keyspace import Chunk
from omnizarr.tools.streaming.executors import Question

_UNREADABLE = "unreadable-key"


class Stored(NamedTuple):
    """A stored chunk, as it is sent to the worker that decodes it."""

    path: str
    binding: Binding
    coords: tuple[int, ...]
    key: str

    @classmethod
    def of(cls, chunk: Chunk) -> Stored:
        """Return a chunk without the inventory that it was found in."""
        return cls(chunk.owner.node.path, chunk.binding, chunk.coords, chunk.key)


class DecodedChunk(NamedTuple):
    """What is wrong with a chunk."""

    path: str
    key: str
    nbytes: int
    troubles: tuple[Trouble, ...]


def at_once(workers: int, largest: int, max_memory: int | None) -> int:
    """Return how many chunks may be decoded at a time, of which the largest takes so many bytes, and as many stored."""
    memory = budget.total() if max_memory is None else max_memory
    return max(1, min(workers, memory // max(2 * largest, 1)))


@dataclass(frozen=True)
class Decoding(Question[Stored, DecodedChunk]):
    """Read a chunk and decode it, `most` of them at a time."""

    most: int
    share: int = 16

    @property
    def at_once(self) -> int:
        """How many chunks are decoded at the same time."""
        return self.most

    def begin(self) -> Callable[[Stored], tuple[int, DecodedChunk]]:
        """Return what decodes a chunk."""

        def look(stored: Stored) -> tuple[int, DecodedChunk]:
            value = None
            try:
                value = verbs.get_within(stored.binding.store, stored.key, stored.binding.chain.most_stored)
                found = () if value is None else chunks.check_data(stored.binding, stored.coords, value)
                troubles = tuple(found)
            except StoreError as error:
                troubles = (Trouble(_UNREADABLE, error.message, error.found),)
            nbytes = 0 if value is None else len(value)
            return nbytes, DecodedChunk(stored.path, stored.key, nbytes, troubles)

        return look
