"""Places of data, and the cost of reading there.

The figures are round ones, for comparing layouts and not for predicting times. Those of a local disk are of a
solid-state drive whose files are not in the page cache, those of an object store of S3 from a machine in the same
region. What a request and decoding cost the processor is between omnizarr and zarr-python as docs/benchmarks.md
measures them ("Small chunks", "Stores that are far away"): data is read by other programs too. Guides recommend chunks
of 100 kB to 16 MB as they are stored, zarr-python at least 1 MB in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_KIB: Final = 1024
_MIB: Final = 1024**2


@dataclass(frozen=True, slots=True)
class Place:
    """What reading costs.

    Attributes
    ----------
    name : str
        As the user types it.
    title : str
    latency : float
        Seconds between a request and its answer.
    at_once : int
        Requests under way at a time.
    per_request : float
        Seconds of the processor for each request.
    bytes_per_second : float
        Of stored bytes.
    least_chunk : int
        Stored bytes of a chunk in a shard, below which requests and indexes cost more than they save.
    least_object : int
        Stored bytes of a chunk that is an object of its own.
    most_chunk : int
        Stored bytes of a chunk at most.
    shard : int
        Stored bytes of a shard, about.
    """

    name: str
    title: str
    latency: float
    at_once: int
    per_request: float
    bytes_per_second: float
    least_chunk: int
    least_object: int
    most_chunk: int
    shard: int


LOCAL: Final = Place("local", "local disk", 1e-4, 8, 1e-4, 2e9, 128 * _KIB, 512 * _KIB, 16 * _MIB, 64 * _MIB)
OBJECT: Final = Place("object", "object store", 3e-2, 64, 2e-4, 2e8, 128 * _KIB, _MIB, 16 * _MIB, 128 * _MIB)
DECODED_PER_SECOND: Final = 1e9
"""Bytes of elements that are decoded in a second, anywhere."""
PLACES: Final = {place.name: place for place in (LOCAL, OBJECT)}
