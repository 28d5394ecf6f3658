"""Many small values in memory, compressed together: what is to be known of nodes, which are similar."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from typing import Final

_BLOCK: Final = 2**16
"""Bytes that are compressed together."""
_KEPT: Final = 8
"""Blocks that have been decompressed, for the next questions about values that lie beside each other."""
_LEVEL: Final = 1


class Packed:
    """Bytes objects by number. Threads can read at the same time, while one adds.

    Values that are added after each other, and are similar, take a tenth of their length.

    Examples
    --------
    >>> values = Packed()
    >>> values.add(b"first"), values.add(b"second")
    (0, 1)
    >>> values[1], len(values)
    (b'second', 2)
    """

    __slots__ = ("_blocks", "_ends", "_firsts", "_kept", "_open")

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._firsts = array("Q", [0])
        """The number of the first value of each block, and of the open one."""
        self._ends = array("Q")
        """Where each value ends in its block."""
        self._open = bytearray()
        """The block to which values are added."""
        self._kept: list[tuple[int, bytes]] = [(-1, b"")] * _KEPT

    def add(self, value: bytes) -> int:
        """Keep a value, and return its number."""
        self._open += value
        self._ends.append(len(self._open))
        if len(self._open) >= _BLOCK:
            self._blocks.append(zlib.compress(self._open, _LEVEL))
            self._firsts.append(len(self._ends))
            self._open = bytearray()
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> bytes:
        block = bisect_right(self._firsts, number) - 1
        begin = 0 if number == self._firsts[block] else self._ends[number - 1]
        data = self._block(block) if block < len(self._blocks) else self._open
        return bytes(data[begin : self._ends[number]])

    def _block(self, number: int) -> bytes:
        known, data = self._kept[number % _KEPT]
        if known != number:
            data = zlib.decompress(self._blocks[number])
            self._kept[number % _KEPT] = number, data
        return data

    def __len__(self) -> int:
        return len(self._ends)
