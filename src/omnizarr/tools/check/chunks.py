"""Stored chunks: their sizes, and whether they can be decoded, inner chunks of shards one by one.

Spec: Zarr v3 core, "Codecs"; "Sharding codec".
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.codecs import blosc_frames
from omnizarr.codecs.chain import Chain
from omnizarr.codecs.contract import AnyArray, Buffer
from omnizarr.codecs.sharding import Sharding
from omnizarr.engine import Binding
from omnizarr.errors import (
    ChecksumError,
    ChunkError,
    ChunkSizeError,
    MissingDependencyError,
    OmnizarrError,
    ShardIndexError,
)

_MISSING: Final = 2**64 - 1
_STEP: Final = 2**20
_ROW: Final = 16
_SEARCHED: Final = 2**20
_MOST_TRIED: Final = 1000
_SPEC: Final = 'Zarr v3, "Sharding codec"'


class Trouble(NamedTuple):
    """What is wrong with a chunk."""

    code: str
    message: str
    found: object = None
    expected: object = None
    spec: str = ""


def exact_size(binding: Binding, coords: tuple[int, ...]) -> int | None:
    """Return the required number of bytes of a stored chunk, if that is known without decoding it."""
    return binding.chain_for(coords).encoded.nbytes


def check_size(size: int, expected: int | None) -> Iterator[Trouble]:
    """Yield findings on the size of a stored chunk."""
    if expected is not None and size != expected:
        code = "wrong-chunk-size" if size else "empty-chunk"
        yield Trouble(code, "the chunk has the wrong size", f"{size} bytes", f"{expected} bytes")
    elif not size and expected is None:
        yield Trouble("empty-chunk", "the chunk is empty", "0 bytes")


def check_data(binding: Binding, coords: tuple[int, ...], data: Buffer) -> Iterator[Trouble]:
    """Yield what is wrong with a stored chunk; decodes it whole, or inner chunk by inner chunk."""
    chain = binding.chain_for(coords)
    if not len(data):
        yield from check_size(0, chain.encoded.nbytes)
        return
    yield from _check(chain, data)


def _check(chain: Chain, data: Buffer) -> Iterator[Trouble]:
    serializer = chain.serializer[1]
    if _is_legacy_zstd(chain, data):
        yield Trouble("legacy-zstd", "Blosc with frames of Zstandard 0.7, as zarr 1.1 wrote them")
    try:
        if not isinstance(serializer, Sharding):
            chain.decode(data)
        else:
            for name, codec in reversed(chain.compressors):
                data = _decode(name, codec, data)
    except OmnizarrError as error:
        yield _trouble(error)
        return
    if isinstance(serializer, Sharding):
        for trouble in _check_shard(serializer, data):
            # Data inside other data cannot be cut off.
            is_within = bool(chain.compressors) and trouble.code == "shard-tail-torn"
            yield trouble._replace(code="shard-index-broken") if is_within else trouble
        return
    rest = _trailing(chain, data)
    if rest:
        yield Trouble("trailing-bytes", f"{rest} bytes follow the compressed data")


def _decode(name: str, codec: Any, data: Buffer) -> Buffer:
    try:
        decoded: Buffer = codec.decode(data)
    except OmnizarrError as error:
        raise error.add(codec=name)
    except (ValueError, TypeError, RuntimeError, OverflowError, MemoryError) as error:
        raise ChunkError(f"cannot decode: {error}", codec=name) from error
    return decoded


def _trouble(error: OmnizarrError) -> Trouble:
    code = "undecodable-chunk"
    match error:
        case MissingDependencyError():
            code = "missing-package"
        case ChecksumError():
            code = "checksum-mismatch"
        case ShardIndexError():
            code = "shard-index-broken"
        case ChunkSizeError():
            code = "wrong-chunk-size"
    message = error.message if error.codec is None else f"codec {error.codec!r}: {error.message}"
    return Trouble(code, message, error.found, error.expected, error.spec or "")


def _is_legacy_zstd(chain: Chain, data: Buffer) -> bool:
    """Whether a chunk is Blosc with frames of Zstandard 0.7 in it."""
    if not chain.compressors or chain.compressors[-1][0].removeprefix("numcodecs.") != "blosc" or len(data) < 24:
        return False
    try:
        return blosc_frames.is_needed(data, has_snappy=True)
    except (OmnizarrError, ValueError, ArithmeticError, IndexError):
        return False  # decoding it says what is wrong


# Shards


def _check_shard(shard: Sharding, data: Buffer) -> Iterator[Trouble]:
    size = shard.index_size
    if len(data) < size:
        found, expected = f"{len(data)} bytes", f"at least {size} bytes"
        yield Trouble("shard-index-broken", "the shard is shorter than its index", found, expected, _SPEC)
        return
    view = memoryview(data)
    try:
        index: AnyArray = shard.index.decode(view[-size:] if shard.index_at_end else view[:size]).reshape(-1, 2)
    except OmnizarrError as error:
        message, intact = f"index of the shard: {error.message}", intact_size(shard, data)
        if intact is None:
            yield Trouble("shard-index-broken", message, error.found, error.expected, _SPEC)
        else:
            yield Trouble("shard-tail-torn", message, f"{len(data)} bytes, whole up to byte {intact}", spec=_SPEC)
        return
    entries: list[tuple[int, int, tuple[int, ...]]] = []
    for coords, (offset, nbytes) in zip(shard.grid.coords(), index.tolist(), strict=True):
        if offset == nbytes == _MISSING:
            continue
        if offset + nbytes > len(data):
            found, expected = f"{nbytes} bytes at offset {offset}", f"nothing beyond byte {len(data)}"
            yield Trouble("shard-index-outside", f"inner chunk {coords} is outside", found, expected, _SPEC)
            continue
        entries.append((offset, offset + nbytes, coords))
        for trouble in _check_inner(shard.inner_at(coords), view[offset : offset + nbytes]):
            code = "shard-index-broken" if trouble.code == "shard-tail-torn" else trouble.code
            yield trouble._replace(code=code, message=f"inner chunk {coords}: {trouble.message}")
    yield from _overlaps(entries, *((len(data) - size, len(data)) if shard.index_at_end else (0, size)))


def intact_size(shard: Sharding, data: Buffer) -> int | None:
    """Return the size at which a shard with a broken tail was whole; None if that is not certain.

    A writer that adds inner chunks to a shard in place, and is stopped, leaves the previous index in its old position.
    Its checksum identifies it; without a checksum, and if the index comes first, None is returned.
    """
    codecs = shard.index.compressors
    if not shard.index_at_end or [name for name, _ in codecs] != ["crc32c"] or shard.index.serializer[0] != "bytes":
        return None
    octets = np.frombuffer(data, np.uint8)
    for stop in range(len(octets), shard.index_size - 1, -_SEARCHED):
        start = max(0, stop - _SEARCHED - shard.index_size)
        for begin in _plausible(octets[start:stop], shard.index_size, start):
            entries = _entries(shard, memoryview(data)[begin : begin + shard.index_size])
            if entries is not None and all(low + size <= begin for low, size in entries if low != _MISSING):
                return begin + shard.index_size
    return None


def _plausible(octets: AnyArray, size: int, offset: int) -> list[int]:
    """Return possible begins of an index, the last one first.

    The chunk of its first row lies before it, or is missing.
    """
    places = len(octets) - size + 1
    if places <= 0 or size < _ROW:
        return []
    words = np.lib.stride_tricks.sliding_window_view(octets, _ROW)[:places]
    rows = np.ascontiguousarray(words).view("<u8")
    lowest = np.arange(offset, offset + places, dtype=np.uint64)
    is_missing = (rows == np.uint64(_MISSING)).all(axis=1)
    is_before = (rows[:, 0] <= lowest) & (rows[:, 1] <= lowest) & (rows[:, 1] > 0)
    found = np.flatnonzero(is_missing | is_before)[::-1] + offset
    return [int(place) for place in found[:_MOST_TRIED]]


def _entries(shard: Sharding, data: Buffer) -> list[tuple[int, int]] | None:
    try:
        rows = shard.index.decode(data).reshape(-1, 2).tolist()
    except OmnizarrError:
        return None
    return [(offset, nbytes) for offset, nbytes in rows]


def _check_inner(chain: Chain, data: Buffer) -> Iterator[Trouble]:
    if not len(data):
        yield Trouble("empty-chunk", "the chunk is empty", "0 bytes")
    else:
        yield from _check(chain, data)


def _overlaps(entries: list[tuple[int, int, tuple[int, ...]]], start: int, stop: int) -> Iterator[Trouble]:
    """Yield inner chunks that share bytes with others, or with the index, which is from `start` to `stop`."""
    for low, high, coords in entries:
        if low < stop and high > start and low < high:
            yield Trouble("shard-overlap", f"inner chunk {coords} overlaps the index", f"bytes {low} to {high}",
                          spec=_SPEC)  # fmt: skip
    ordered = sorted(entry for entry in entries if entry[0] < entry[1])
    for (_, end, one), (begin, _, other) in pairwise(ordered):
        if begin < end:
            yield Trouble("shard-overlap", f"inner chunks {one} and {other} overlap", f"from byte {begin}", spec=_SPEC)


# What follows compressed data


def _trailing(chain: Chain, data: Buffer) -> int:
    """Return the number of bytes after the output of the last compressor.

    Bytes that its reader refuses are not counted.
    """
    if not chain.compressors:
        return 0
    name = chain.compressors[-1][0].removeprefix("numcodecs.")
    if name == "blosc":
        return len(data) - int.from_bytes(data[12:16], "little")
    start = _STREAMS.get(name)
    if start is None:
        return 0
    return _unused(start, data)


def _inflater() -> Any:
    return _Zlib(zlib.decompressobj())


class _Zlib:
    """A decompressor of zlib with the interface of the decompressors of bz2 and lzma."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    @property
    def eof(self) -> bool:
        return bool(self.stream.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self.stream.unused_data)

    def decompress(self, data: Buffer, limit: int) -> bytes:
        return bytes(self.stream.decompress(bytes(self.stream.unconsumed_tail) + bytes(data), limit))


_STREAMS: Final[dict[str, Callable[[], Any]]] = {
    "zlib": _inflater,
    "bz2": bz2.BZ2Decompressor,
    "lzma": lzma.LZMADecompressor,
}


def _unused(start: Callable[[], Any], data: Buffer) -> int:
    stream = start()
    view = memoryview(data)
    position = 0
    try:
        while not stream.eof:
            needs = getattr(stream, "needs_input", None)
            part = view[position : position + _STEP] if needs is not False else b""
            position += len(part)
            if not stream.decompress(part, _STEP) and not len(part):
                return 0
    except (zlib.error, OSError, EOFError, lzma.LZMAError):
        return 0
    rest = len(stream.unused_data) + len(data) - position
    # Another stream may follow.
    return 0 if rest and not isinstance(stream, _Zlib) and _begins_stream(bytes(data[-rest:][:6])) else rest


def _begins_stream(data: bytes) -> bool:
    return data.startswith((b"BZh", b"\xfd7zXZ\x00"))
