"""Random numbers and permutations that are the same on every machine and with every version of NumPy.

All numbers are hashes of counters, so any of them is computed without those before it: nothing has to be replayed to go
on in the middle of an epoch, and a permutation of 10^15 samples needs no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

_MASK: Final = 2**64 - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
_SORTED: Final = 2**20
"""Lengths up to which a permutation is made by sorting: then each permutation is possible."""
_ROUNDS: Final = 8


def key_of(*words: int) -> int:
    """Return a hash of integers, of 64 bits.

    >>> key_of(1, 2) != key_of(2, 1)
    True
    """
    key = 0
    for word in words:
        key = _mixed(key ^ (word & _MASK)) ^ _mixed((word >> 64) & _MASK)
    return key


def _mixed(value: int) -> int:
    """Return the hash of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators")."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * _FIRST) & _MASK
    value = ((value ^ (value >> 27)) * _SECOND) & _MASK
    return value ^ (value >> 31)


def hashes(key: int, counters: NDArray[Any]) -> Hashes:
    """Return a number of 64 bits for each counter: the same numbers as ``key_of`` makes of one word, with a key.

    >>> hashes(7, np.arange(2)).tolist()
    [7191089600892374487, 309689372594955804]
    """
    values = counters.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64((key + _GOLDEN) & _MASK)
    values ^= values >> np.uint64(30)
    values *= np.uint64(_FIRST)
    values ^= values >> np.uint64(27)
    values *= np.uint64(_SECOND)
    values ^= values >> np.uint64(31)
    return values


def below(key: int, counters: NDArray[Any], bound: int) -> Integers:
    """Return a number from 0 to `bound` - 1 for each counter. `bound` is less than 2^62."""
    found = hashes(key, counters)
    if bound <= 2**32:  # multiplication is fairer than the remainder, and needs the high half only
        return ((found >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)
    return (found % np.uint64(bound)).astype(np.int64)


class Permutation:
    """A permutation of the numbers below a length, computed where it is asked for.

    Parameters
    ----------
    length : int
        Less than 2^62.
    key : int
        Another key is another permutation.

    Examples
    --------
    >>> sorted(Permutation(5, key=1)(np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """

    __slots__ = ("_key", "_table", "length")

    def __init__(self, length: int, key: int) -> None:
        self.length = length
        self._key = key
        self._table: Integers | None = None
        if length <= _SORTED:
            self._table = np.argsort(hashes(key, np.arange(length)), kind="stable").astype(np.int64)

    def __call__(self, places: Integers) -> Integers:
        """Return the number at each place."""
        return self._walked(places) if self._table is None else self._table[places]

    def _walked(self, places: Integers) -> Integers:
        """Return the numbers by a Feistel network over a power of four, asked again for numbers beyond the length.

        Black and Rogaway, "Ciphers with arbitrary finite domains": cycle walking.
        """
        half = -(-(self.length - 1).bit_length() // 2)
        values = self._enciphered(places.astype(np.uint64), half)
        while (beyond := values >= np.uint64(self.length)).any():
            values[beyond] = self._enciphered(values[beyond], half)
        return values.astype(np.int64)

    def _enciphered(self, values: Hashes, half: int) -> Hashes:
        bits, mask = np.uint64(half), np.uint64(2**half - 1)
        left, right = values >> bits, values & mask
        for number in range(_ROUNDS):
            left, right = right, left ^ (hashes(key_of(self._key, number), right) & mask)
        return (left << bits) | right
