"""How much of a hierarchy is stored: chunks present of those expected, bytes, ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass

from omnizarr.nodes import info
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is stored of an array, or of all arrays in a group.

    Attributes
    ----------
    arrays : int
        Number of arrays counted.
    chunks_stored, chunks_expected : int
        Chunks (with shards: shards) that are in the store, and that there could be.
    bytes_stored : int
        Bytes in the store, documents included.
    bytes_logical : int
        Bytes of the elements in memory; arrays whose elements have no fixed size count 0.
    """

    arrays: int
    chunks_stored: int
    chunks_expected: int
    bytes_stored: int
    bytes_logical: int

    @property
    def ratio(self) -> float:
        """Logical bytes per stored byte; NaN if nothing is stored."""
        return self.bytes_logical / self.bytes_stored if self.bytes_stored else math.nan


def info_complete(node: Array | Group) -> Statistics:
    """Return what is stored of an array, or of all arrays below a group.

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=(8,), chunks=(2,), dtype="int64", compressors=None, fill_value=0)
    >>> array[:3] = 1
    >>> statistics = info_complete(array)
    >>> statistics.chunks_stored, statistics.chunks_expected, statistics.bytes_logical
    (2, 4, 64)
    """
    below = [node] if isinstance(node, Array) else [found for _, found in node.members(None)]
    arrays = [found for found in below if isinstance(found, Array)]
    counted = [info.of_array(array, complete=True) for array in arrays]
    return Statistics(
        arrays=len(arrays),
        chunks_stored=sum(card.chunks_stored or 0 for card in counted),
        chunks_expected=sum(card.chunks_expected or 0 for card in counted),
        bytes_stored=info.stored_bytes(node.store_path),
        bytes_logical=sum(card.nbytes or 0 for card in counted),
    )
