"""From the digests of blocks to one: a tree that depends on the shape of an array alone.

An array is cut into blocks of 2**14 elements, those into boxes of 2**8 blocks, and so on, until one is left. Neither
chunks nor the order in which blocks are read matter. Blocks that hold only the fill value are not counted one by
one: all of one shape have the same digest, and so have boxes of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from omnizarr.codecs.contract import AnyArray
from omnizarr.errors import MissingDependencyError, Wording
from omnizarr.support import extras

Hash: TypeAlias = Callable[[Any], bytes]
"""From bytes to 32 bytes."""

SIZE: Final = 32
ALGORITHMS: Final = ("sha256", "blake2b", "blake3")

_ELEMENTS: Final = 2**14
_BLOCKS: Final = 2**8
_LONGEST: Final = 512


def hashing(algorithm: str) -> Hash:
    """Return the hash function of a name. Raises ValueError, MissingDependencyError."""
    match algorithm:
        case "sha256":
            return lambda data: hashlib.sha256(data).digest()
        case "blake2b":
            return lambda data: hashlib.blake2b(data, digest_size=SIZE).digest()
        case "blake3":
            try:
                blake3 = import_module("blake3").blake3
            except ImportError as error:
                raise MissingDependencyError("digests by BLAKE3 need blake3", remedy=extras.remedy("blake3")) from error
            return lambda data: bytes(blake3(data).digest())
    raise ValueError(Wording(f"{{algorithm}}: expected one of {', '.join(map(repr, ALGORITHMS))}", algorithm=algorithm))


def box_shape(lengths: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Return the shape of a box with a limited number of cells, with sides that are powers of two.

    From the last dimension to the first, each side is doubled until it is as long as the whole, or 512, or there is no
    more room; then once more without the limit of 512. Blocks that are short along the first dimensions can be read
    in regions that fit the chunks of most arrays.

    >>> box_shape((1000, 721, 1440), 2**14), box_shape((10**6, 3), 2**14), box_shape((10**6,), 2**14)
    ((1, 32, 512), (4096, 4), (16384,))
    """
    sides = [1] * len(lengths)
    for limit in (_LONGEST, most):
        for axis in reversed(range(len(lengths))):
            while sides[axis] < min(lengths[axis], limit) and 2 * math.prod(sides) <= most:
                sides[axis] *= 2
    return tuple(sides)


def block_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the blocks of an array."""
    return box_shape(shape, _ELEMENTS)


class HashTree:
    """The digests of the blocks of an array, as they come, in any order.

    Parameters
    ----------
    shape : tuple of int
        Of the array; no length is 0.
    hashed : callable
    fill : callable
        Returns the digest of a block of a shape that holds only the fill value.
    """

    def __init__(self, shape: tuple[int, ...], hashed: Hash, fill: Callable[[tuple[int, ...]], bytes]) -> None:
        self._shape = shape
        self._hash = hashed
        self._fill = fill
        self._sides = [block_shape(shape)]  # of the boxes of each level, in those of the level below
        counts = tuple(-(-length // side) for length, side in zip(shape, self._sides[0], strict=True))
        while math.prod(counts) > 1:
            sides = box_shape(counts, _BLOCKS)
            self._sides.append(sides)
            counts = tuple(-(-count // side) for count, side in zip(counts, sides, strict=True))
        self._extents = [self._sides[0]]  # the same in elements
        for sides in self._sides[1:]:
            self._extents.append(tuple(a * b for a, b in zip(self._extents[-1], sides, strict=True)))
        self._filled: dict[tuple[int, tuple[int, ...]], bytes] = {}
        self._pages: dict[tuple[int, ...], _Page] = {}
        self._done: dict[tuple[int, ...], bytes] = {}  # boxes of blocks
        self._only: bytes | None = None

    def add(self, start: tuple[int, ...], digests: AnyArray) -> None:
        """Enter the digests of blocks side by side.

        start : number of the first block along each dimension; digests : bytes of shape (blocks along each, 32).
        """
        if len(self._sides) == 1:
            self._only = digests.tobytes()
            return
        sides = self._sides[1]
        stop = tuple(first + count for first, count in zip(start, digests.shape, strict=False))
        ranges = (range(a // side, (b - 1) // side + 1) for a, b, side in zip(start, stop, sides, strict=True))
        for at in product(*ranges):
            page = self._pages.get(at)
            if page is None:
                page = self._pages[at] = _Page(self._children(1, at))
            low = tuple(max(a, n * side) for a, n, side in zip(start, at, sides, strict=True))
            high = tuple(min(b, (n + 1) * side) for b, n, side in zip(stop, at, sides, strict=True))
            theirs = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, start, strict=True))
            ours = tuple(slice(a - n * side, b - n * side) for a, b, n, side in zip(low, high, at, sides, strict=True))
            if page.enter(ours, digests[theirs]):
                self._done[at] = self._hash(page.digests.tobytes())
                del self._pages[at]

    def root(self) -> bytes:
        """Return the digest of all; what was not entered holds the fill value."""
        top = len(self._sides) - 1
        if top == 0:
            return self._only or self._fill_of(0, self._shape)
        for at, page in self._pages.items():
            self._done[at] = self._hash(self._completed(at, page))
        known = self._done
        for level in range(2, top + 1):
            above = {tuple(n // side for n, side in zip(at, self._sides[level], strict=True)) for at in known}
            known = {at: self._hash(b"".join(self._below(level, at, known))) for at in above}
        return known.get((0,) * len(self._shape)) or self._fill_of(top, self._shape)

    def _completed(self, at: tuple[int, ...], page: _Page) -> bytes:
        for index in np.argwhere(~page.is_there):
            place = tuple(map(int, index))
            block = tuple(n * side + inner for n, side, inner in zip(at, self._sides[1], place, strict=True))
            page.digests[place] = np.frombuffer(self._fill_of(0, self._lengths(0, block)), np.uint8)
        return page.digests.tobytes()

    def _below(self, level: int, at: tuple[int, ...], known: dict[tuple[int, ...], bytes]) -> Iterator[bytes]:
        sides = self._sides[level]
        for place in product(*map(range, self._children(level, at))):
            child = tuple(n * side + inner for n, side, inner in zip(at, sides, place, strict=True))
            yield known.get(child) or self._fill_of(level - 1, self._lengths(level - 1, child))

    def _lengths(self, level: int, at: tuple[int, ...]) -> tuple[int, ...]:
        """Return the lengths of a box in elements, cut at the array's edge."""
        extents = self._extents[level]
        return tuple(min(side, length - n * side) for side, length, n in zip(extents, self._shape, at, strict=True))

    def _children(self, level: int, at: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many boxes of the level below are in a box along each dimension."""
        extents = self._extents[level - 1]
        return tuple(-(-length // side) for length, side in zip(self._lengths(level, at), extents, strict=True))

    def _fill_of(self, level: int, lengths: tuple[int, ...]) -> bytes:
        """Return the digest of a box in which all elements equal the fill value."""
        found = self._filled.get((level, lengths))
        if found is None:
            if level == 0:
                found = self._fill(lengths)
            else:
                extents = self._extents[level - 1]
                parts = (_cut(length, side) for length, side in zip(lengths, extents, strict=True))
                found = self._hash(b"".join(self._fill_of(level - 1, each) for each in product(*parts)))
            self._filled[level, lengths] = found
        return found


def _cut(length: int, side: int) -> list[int]:
    whole, rest = divmod(length, side)
    return [side] * whole + ([rest] if rest else [])


class _Page:
    """The digests of the blocks in one box."""

    def __init__(self, counts: tuple[int, ...]) -> None:
        self.digests = np.zeros((*counts, SIZE), np.uint8)
        self.is_there = np.zeros(counts, np.bool_)

    def enter(self, place: tuple[slice, ...], digests: AnyArray) -> bool:
        """Enter some; return whether all are there."""
        self.digests[place] = digests
        self.is_there[place] = True
        return bool(self.is_there.all())
