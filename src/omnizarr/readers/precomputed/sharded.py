"""Where chunks lie in shards.

Spec: Neuroglancer, "Precomputed Sharded Format".
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import OmnizarrError, ShardIndexError, StoreError
from omnizarr.readers.precomputed import volume
from omnizarr.readers.precomputed.encodings import most_stored, unpacked
from omnizarr.readers.precomputed.volume import Scale, Sharding, Three
from omnizarr.stores import verbs
from omnizarr.stores.base import Span, Store
from omnizarr.support.memo import Weighed

SPEC: Final = "Neuroglancer, Precomputed Sharded Format"
_ENTRY: Final = 16
_PAGE: Final = 4096  # entries of a shard's index that are read together
_COLUMNS: Final = 24
_FAR: Final = 2**62
_MOST_KEPT: Final = 64 << 20  # bytes of indexes
_MOST_INDEX: Final = 32 << 20  # bytes of the index of a minishard, decoded
_HALF: Final = 2**32 - 1
_shard = re.compile(r"([0-9a-f]+)\.shard").fullmatch


class Piece(NamedTuple):
    """Bytes of a file."""

    key: str
    start: int
    stop: int


class Minishard(NamedTuple):
    """The numbers of chunks, in order, and where each begins and ends."""

    numbers: NDArray[np.uint64]
    starts: NDArray[np.uint64]
    stops: NDArray[np.uint64]


class Shards:
    """The shards of a scale.

    Parameters
    ----------
    store : Store
    scale : Scale
        One with `Scale.sharding`.
    """

    def __init__(self, store: Store, scale: Scale) -> None:
        assert scale.sharding is not None  # noqa: S101 - the caller has looked
        self._store = store
        self._scale = scale
        self._sharding: Sharding = scale.sharding
        self._is_near = store.features.concurrency == 1
        self._has_looked = False
        self._pages: Weighed[bytes] = Weighed(_MOST_KEPT // 4)
        self._minishards: Weighed[Minishard] = Weighed(_MOST_KEPT)

    def find(self, at: Three) -> Piece | None:
        """Return where a chunk lies; None if it is not stored."""
        number = volume.morton(self._scale, at)
        shard, minishard = self._place(number)
        key = self._key(shard)
        found = self._minishard(key, minishard)
        if found is None:
            return None
        position = int(np.searchsorted(found.numbers, np.uint64(number)))
        if position == len(found.numbers) or int(found.numbers[position]) != number:
            return None
        return Piece(key, int(found.starts[position]), int(found.stops[position]))

    def all(self) -> Iterator[tuple[Three, int]]:
        """Yield the chunks that are stored, with the bytes that each has there."""
        prefix = f"{self._scale.folder}/"
        for key in self._store.list_prefix(prefix):
            match = _shard(key[len(prefix) :])
            if match is None or self._key(shard := int(match[1], 16)) != key:
                continue
            for minishard in self._used(key):
                found = self._minishard(key, minishard)
                if found is None:
                    continue
                for number, start, stop in zip(*(column.tolist() for column in found), strict=True):
                    at = volume.unmorton(self._scale, number)
                    if at is not None and self._place(number) == (shard, minishard):
                        yield at, stop - start

    def _used(self, key: str) -> Iterator[int]:
        """Yield the minishards of a shard that have chunks. Raises ShardIndexError if their indexes overlap."""
        size, total = self._store.size(key) or 0, 0
        for number in range(-(-(1 << self._sharding.minishard) // _PAGE)):
            page = self._page(key, number)
            if page is None:
                return
            entries = np.frombuffer(page, "<u8").reshape(-1, 2)
            for entry in np.flatnonzero(entries[:, 0] != entries[:, 1]).tolist():
                start, stop = entries[entry].tolist()
                total += stop - start
                if total > size:
                    raise ShardIndexError(
                        "the indexes of minishards are longer than the shard",
                        key=key,
                        spec=SPEC,
                        found=f"{total} bytes",
                        expected=f"at most {size} bytes",
                    )
                yield number * _PAGE + entry

    # -- indexes ------------------------------------------------------------------------

    def _place(self, number: int) -> tuple[int, int]:
        """Return the shard and the minishard of a chunk."""
        sharding = self._sharding
        number >>= sharding.preshift
        if sharding.is_hashed:
            number = murmurhash(number)
        return number >> sharding.minishard & (1 << sharding.shard) - 1, number & (1 << sharding.minishard) - 1

    def _key(self, shard: int) -> str:
        return f"{self._scale.folder}/{shard:0{-(-self._sharding.shard // 4)}x}.shard"

    def _stamp(self, key: str) -> Hashable:
        """Return what changes with a shard, where asking for it costs little. Elsewhere, shards may not change.

        None: what is read now cannot be kept.
        """
        return verbs.stamp(self._store, key) if self._is_near else ""

    def _refuse_old(self, key: str) -> None:
        """Raise StoreError if a shard is missing as it is two files, of the format before 2019."""
        if self._has_looked:
            return
        self._has_looked = True
        if self._store.exists(old := f"{key.removesuffix('shard')}index"):
            raise StoreError(
                "shards of two files are of a format that was given up",
                key=old,
                spec=SPEC,
                expected=key,
                remedy="append the .data to the .index, and call the file .shard",
            )

    def _page(self, key: str, number: int) -> bytes | None:
        """Return a part of the index of a shard; None if there is no such shard."""
        asked = key, number, self._stamp(key)
        known = None if asked[2] is None else self._pages.get(asked)
        if known is None:
            start = number * _PAGE * _ENTRY
            stop = min(start + _PAGE * _ENTRY, _ENTRY << self._sharding.minishard)
            found = self._store.get(key, (start, stop))
            if found is None:
                self._refuse_old(key)
                if not self._is_near:
                    self._pages.put(asked, b"", 0)
                return None
            if len(found) != stop - start:
                raise ShardIndexError(
                    "the shard is shorter than its index",
                    key=key,
                    spec=SPEC,
                    found=f"{start + len(found)} bytes",
                    expected=f"at least {stop} bytes",
                )
            known = bytes(found)
            if asked[2] is not None:
                self._pages.put(asked, known, len(known))
        return known or None

    def _minishard(self, key: str, number: int) -> Minishard | None:
        """Return the index of a minishard; None if it has no chunks."""
        asked = key, number, self._stamp(key)
        known = None if asked[2] is None else self._minishards.get(asked)
        if known is not None:
            return known
        page = self._page(key, number // _PAGE)
        if page is None:
            return None
        start, stop = struct.unpack_from("<QQ", page, number % _PAGE * _ENTRY)
        if start == stop:
            return None
        # Bytes of the index, if every chunk of the volume were in this minishard.
        most = min(_COLUMNS * math.prod(self._scale.grid), _MOST_INDEX)
        found = self._read(key, number, (start, stop), most)
        made = self._parsed(key, number, found)
        if asked[2] is not None:
            self._minishards.put(asked, made, sum(column.nbytes for column in made))
        return made

    def _read(self, key: str, number: int, span: tuple[int, int], most: int) -> bytes:
        base, packed = _ENTRY << self._sharding.minishard, self._sharding.index_is_packed
        start, stop = span
        room = most + most // 2 + 4096 if packed else most
        if not start < stop < _FAR or stop - start > room:
            raise ShardIndexError(
                f"the index of the minishard {number} cannot be where the shard says",
                key=key,
                found=f"bytes {start} to {stop}",
                expected=f"at most {room} bytes",
                spec=SPEC,
            )
        found = read_piece(self._store, Piece(key, base + start, base + stop))
        if packed:
            try:
                found = unpacked(found, most)
            except OmnizarrError as error:
                raise error.add(key=key)
        if len(found) % _COLUMNS or len(found) > most:
            raise ShardIndexError(
                f"the index of the minishard {number} has the wrong size",
                key=key,
                found=f"{len(found)} bytes",
                expected=f"a multiple of {_COLUMNS}, at most {most}",
                spec=SPEC,
            )
        return bytes(found)

    def _parsed(self, key: str, number: int, found: bytes) -> Minishard:
        base = _ENTRY << self._sharding.minishard
        numbers, gaps, sizes = np.frombuffer(found, "<u8").reshape(3, -1).astype(np.uint64)
        numbers = np.cumsum(numbers, dtype=np.uint64)
        stops = np.cumsum(gaps, dtype=np.uint64) + np.cumsum(sizes, dtype=np.uint64) + np.uint64(base)
        starts = stops - sizes
        most = most_stored(self._scale)
        bad = (stops < starts) | (stops >= _FAR) | (sizes > min(most, _FAR))
        if bad.any():
            where = int(np.argmax(bad))
            raise ShardIndexError(
                f"a chunk of the minishard {number} cannot be where its index says",
                key=key,
                found=f"bytes {int(starts[where])} to {int(stops[where])}",
                expected=f"at most {most} bytes",
                spec=SPEC,
            )
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            numbers, starts, stops = numbers[order], starts[order], stops[order]
        return Minishard(numbers, starts, stops)


def read_piece(store: Store, piece: Piece, span: Span | None = None) -> Any:
    """Return the bytes of a piece. Raises ShardIndexError if the file ends before."""
    start, stop = piece.start, piece.stop
    if span is not None:
        first, last = span
        if first < 0:
            first, last = max(stop - start + first, 0), None
        begin = min(start + first, stop)
        start, stop = begin, stop if last is None else max(min(piece.start + last, stop), begin)
    if start == stop:
        return b""
    found = store.get(piece.key, (start, stop))
    size = 0 if found is None else len(found)
    if size != stop - start:
        raise ShardIndexError(
            "the shard ends before what its index says",
            key=piece.key,
            spec=SPEC,
            found=f"{size} of the bytes {start} to {stop}",
            expected=f"{stop - start} bytes",
        )
    return found


def murmurhash(number: int) -> int:
    """Return the lower 64 bits of murmurhash3_x86_128 of a number of 64 bits, with the seed 0."""
    low, high = number & _HALF, number >> 32
    second = _multiplied(_rotated(_multiplied(high, 0xAB0E9789), 16), 0x38B34AE5)
    first = _multiplied(_rotated(_multiplied(low, 0x239B961B), 15), 0xAB0E9789)
    hashes = [first ^ 8, second ^ 8, 8, 8]
    hashes = _summed(hashes)
    hashes = _summed([_mixed(each) for each in hashes])
    return hashes[0] | hashes[1] << 32


def _summed(hashes: list[int]) -> list[int]:
    total = sum(hashes) & _HALF
    return [total, *((each + total) & _HALF for each in hashes[1:])]


def _multiplied(a: int, b: int) -> int:
    return a * b & _HALF


def _rotated(a: int, bits: int) -> int:
    return (a << bits | a >> 32 - bits) & _HALF


def _mixed(a: int) -> int:
    a ^= a >> 16
    a = _multiplied(a, 0x85EBCA6B)
    a ^= a >> 13
    a = _multiplied(a, 0xC2B2AE35)
    return a ^ a >> 16
