"""How much may be in flight at once: chunks, bytes and requests. Used by both engines, `read_many` and `aio`."""

from __future__ import annotations

from typing import Final

from omnizarr.settings import config

MOST_REQUESTS: Final = 512
"""Requests in flight, over all stores that one call reads."""

_LEAST_CHUNKS: Final = 4  # however large they are: fewer would leave the connection idle
_BLOCKS: Final = 96 * 1024 * 1024
_UNKNOWN_SIZE: Final = 512 * 1024  # assumed of a chunk whose elements have variable length


def for_blocks() -> int:
    """Return how many bytes of elements a tool has in memory at a time, by default: 96 MiB, or less by the setting.

    Examples
    --------
    >>> with config.set(bytes_in_flight="32MiB"):
    ...     for_blocks() // 2**20
    32
    """
    return min(_BLOCKS, total())


def total() -> int:
    """Return how many bytes may be in flight by the setting `bytes_in_flight`, at least one.

    Examples
    --------
    >>> total() // 2**20
    256
    """
    return max(1, int(config.get("bytes_in_flight")))


def chunks_in_flight(bytes_in_flight: int, chunk_bytes: int | None) -> int:
    """Return how many chunks may be in flight, so that the decoded chunks fit into a number of bytes; at least four.

    Parameters
    ----------
    bytes_in_flight : int
        The value of `ArrayConfig.bytes_in_flight`.
    chunk_bytes : int or None
        Size of a decoded chunk; None if its elements have variable length.

    Examples
    --------
    >>> chunks_in_flight(2**28, 2**20), chunks_in_flight(2**28, 2**30)
    (256, 4)
    """
    return max(_LEAST_CHUNKS, bytes_in_flight // max(1, chunk_bytes or _UNKNOWN_SIZE))
