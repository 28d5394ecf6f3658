"""Filters of HDF5 as codecs of Zarr, and their inverse for chunks that the reader decodes itself.

A filter whose bytes equal those of a codec becomes that codec, whose record knows its parameters. LZF, LZ4 and
bitshuffle frame their data in their own ways, and scaleoffset has no codec: chunks with these are decoded here, all but
the last with the package imagecodecs.

Spec: HDF5, "The Filter Pipeline Message"; the registered filters of the HDF Group.
"""

from __future__ import annotations

import importlib
import importlib.util
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from omnizarr.codecs import chain as chains
from omnizarr.codecs import registry
from omnizarr.codecs.contract import ArraySpec, Buffer
from omnizarr.codecs.record import Record
from omnizarr.errors import ChunkError, CodecError, MissingDependencyError, OmnizarrError
from omnizarr.formats.filters import load_codec
from omnizarr.model import JSON, Named, datatypes
from omnizarr.readers.hdf5.datasets import Filter

_SHUFFLE: Final = 2
_SZIP: Final = 4
_BLOSC: Final = 32001
_LZF, _LZ4, _BITSHUFFLE, _SCALEOFFSET = 32000, 32004, 32008, 6
_SCALEOFFSET_HEAD: Final = 21
_SLACK: Final = 64  # bytes of which filters make a chunk longer

_NAMES: Final = {
    5: "nbit",
    6: "scaleoffset",
    32000: "lzf",
    32004: "lz4",
    32008: "bitshuffle",
    32013: "zfp",
    32026: "blosc2",
}
_SMALLEST_BLOCK: Final = 8  # elements that bitshuffle takes at once
_BITSHUFFLE_BLOCK: Final = 8192  # bytes of a block of bitshuffle, unless its parameters say otherwise


def title(one: Filter) -> str:
    """Return the name of a filter, for people."""
    known = _by_number().get(one.number)
    name = _NAMES.get(one.number) or (known.id if known is not None else one.name.split(":")[0].strip())
    return name or f"number {one.number}"


@cache
def _by_number() -> dict[int, Record]:
    return {record.hdf5.number: record for record in registry.records() if record.hdf5 is not None}


def codec(one: Filter, size: int) -> Named | None:
    """Return the codec with the same bytes as a filter; None if there is none. `size`: bytes of an element."""
    record = _by_number().get(one.number)
    if record is None or record.hdf5 is None:
        return None
    given = one.parameters
    if one.number == _SHUFFLE and given:
        size = given[0] or size
    try:
        configuration: dict[str, JSON] = record.hdf5.load(_fitted(one, record), size)
    except (CodecError, ValueError, IndexError):
        return None
    if one.number == _SZIP:
        if len(given) < 4:
            return None
        configuration |= {"bits-per-pixel": given[2], "pixels-per-scanline": given[3]}
        configuration |= {"endian": "big" if given[0] & 16 else "little"}
    return load_codec(record.id, configuration, size)


def _fitted(one: Filter, record: Record) -> tuple[int, ...]:
    """Return as many parameters as the codec takes. The filter of Blosc has defaults for the last of them."""
    wanted = 0 if record.hdf5 is None else record.hdf5.length
    given = one.parameters
    if one.number == _BLOSC:
        given = (*given, *(0, 0, 0, 0, 5, 1, 0)[len(given) :])
    return given[:wanted]


def can_decode(chain: Sequence[Filter], size: int) -> bool:
    """Return whether chunks with these filters can be decoded: of those after an own one, few can."""
    has_own = False
    for each in chain:
        if each.number in _OWN:
            has_own = True
        elif codec(each, size) is None or (has_own and each.number not in _STEPS):
            return False
    return True


def lacking(chain: Sequence[Filter]) -> str:
    """Return the package that is missing to decode chunks; "" if none is."""
    if (
        any(each.number in _OWN and each.number != _SCALEOFFSET for each in chain)
        and importlib.util.find_spec("imagecodecs") is None
    ):
        return "imagecodecs"
    return ""


def decode(chain: Sequence[Filter], skipped: int, data: Buffer, size: int, length: int) -> Buffer:
    """Return a chunk without its filters.

    Parameters
    ----------
    chain : sequence of Filter
    skipped : int
        Which of them were not applied, by bits.
    data : bytes
    size : int
        Bytes of an element.
    length : int
        Bytes of the chunk.

    Raises
    ------
    ChunkError
        If the bytes are broken.
    MissingDependencyError
        If a package is missing.
    """
    left = [each for number, each in enumerate(chain) if not skipped >> number & 1]
    while any(each.number in _OWN for each in left):
        last = left.pop()
        try:
            data = (_OWN | _STEPS)[last.number](last, bytes(data), size, length)
        except ImportError as error:
            raise MissingDependencyError(
                f"the filter {title(last)} needs the package imagecodecs", remedy="pip install imagecodecs"
            ) from error
        except (ValueError, RuntimeError, OverflowError, MemoryError, KeyError, IndexError, zlib.error) as error:
            if isinstance(error, OmnizarrError):
                raise
            raise ChunkError(f"the filter {title(last)} cannot decode the chunk: {error}") from error
    codecs = [codec(each, size) for each in left]
    named = [each for each in codecs if each is not None]
    if len(named) != len(codecs):
        raise ChunkError("a filter of the chunk has no codec", found=[title(each) for each in left])
    return _undone(named, data, length)


def _undone(codecs: Sequence[Named], data: Buffer, length: int) -> Buffer:
    """Return what codecs have encoded, of a known number of bytes."""
    uint8 = datatypes.bind(Named("uint8"))
    bound = chains.bind((Named("bytes"), *codecs), ArraySpec((length,), uint8, uint8.default_fill_value))
    return np.ascontiguousarray(bound.decode(data)).data


# -- filters with their own frames ---------------------------------------------------


def _imagecodecs() -> Any:
    return importlib.import_module("imagecodecs")


def _lzf(_one: Filter, data: bytes, _size: int, length: int) -> bytes:
    return bytes(_imagecodecs().lzf_decode(data, out=length + _SLACK))


def _lz4(_one: Filter, data: bytes, _size: int, length: int) -> bytes:
    """Decode blocks after the size of the data, the size of a block, and before each its own size, all big-endian."""
    whole, block = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:12], "big")
    if whole != length or not block:
        raise ValueError(f"{whole} bytes in blocks of {block}, expected {length} bytes")
    return _blocks(data, 12, length, block, _imagecodecs().lz4_decode)


def _blocks(data: bytes, at: int, length: int, block: int, unpack: Any) -> bytes:
    parts = []
    while length:
        own = min(block, length)
        packed = int.from_bytes(data[at : at + 4], "big")
        part = data[at + 4 : at + 4 + packed]
        if not packed or len(part) != packed:
            raise ValueError("a block ends too early")
        parts.append(part if packed == own else bytes(unpack(part, out=own)))
        if len(parts[-1]) != own:
            raise ValueError("a block is too short")
        at, length = at + 4 + packed, length - own
    return b"".join(parts)


def _bitshuffle(one: Filter, data: bytes, size: int, length: int) -> bytes:
    """Decode shuffled bits, which may be compressed by LZ4 or Zstandard in blocks."""
    size = one.parameters[2] if len(one.parameters) > 2 and one.parameters[2] else size
    elements = one.parameters[3] if len(one.parameters) > 3 else 0
    compression = one.parameters[4] if len(one.parameters) > 4 else 0
    if length % size:
        raise ValueError(f"{length} bytes are not elements of {size}")
    if not compression:
        return _unshuffled(data, size, length, elements)
    if int.from_bytes(data[:8], "big") != length:
        raise ValueError("the chunk has another size")
    block = int.from_bytes(data[8:12], "big") // size
    unpack = {2: _imagecodecs().lz4_decode, 3: _imagecodecs().zstd_decode}[compression]
    if not block or block % _SMALLEST_BLOCK:
        raise ValueError(f"blocks of {block} elements")
    count, at, parts = length // size, 12, []
    while count >= _SMALLEST_BLOCK:
        own = min(block, count - count % _SMALLEST_BLOCK)
        packed = int.from_bytes(data[at : at + 4], "big")
        if not packed or at + 4 + packed > len(data):
            raise ValueError("a block ends too early")
        part = bytes(unpack(data[at + 4 : at + 4 + packed], out=own * size))
        parts.append(_unshuffled(part, size, own * size, own))
        at, count = at + 4 + packed, count - own
    return b"".join((*parts, data[at : at + count * size]))


def _unshuffled(data: bytes, size: int, length: int, block: int) -> bytes:
    if len(data) != length:
        raise ValueError(f"{len(data)} bytes, expected {length}")
    block = block or max(_SMALLEST_BLOCK, _BITSHUFFLE_BLOCK // size // _SMALLEST_BLOCK * _SMALLEST_BLOCK)
    parts, count, at = [], length // size, 0
    while count >= _SMALLEST_BLOCK:
        own = min(block, count - count % _SMALLEST_BLOCK)
        bits = np.unpackbits(np.frombuffer(data, np.uint8, own * size, at), bitorder="little").reshape(8 * size, own)
        parts.append(np.packbits(np.ascontiguousarray(bits.T), bitorder="little").tobytes())
        at, count = at + own * size, count - own
    return b"".join((*parts, data[at:]))


def _scaleoffset(one: Filter, data: bytes, size: int, length: int) -> bytes:
    """Decode numbers above the smallest one, in as few bits as they need, after it and the number of bits."""
    factor, is_float, order = one.parameters[1], one.parameters[3] == 1, "<>"[one.parameters[6] == 1]
    bits, count = int.from_bytes(data[:4], "little"), length // size
    smallest, packed = data[5:13], data[_SCALEOFFSET_HEAD:]
    if bits >= 8 * size:
        if len(packed) < length:
            raise ValueError("the chunk ends too early")
        return packed[:length]
    wide = np.zeros((count, 64), np.uint8)
    found = np.unpackbits(np.frombuffer(packed, np.uint8, (count * bits + 7) // 8))[: count * bits]
    wide[:, 64 - bits :] = found.reshape(count, bits)
    steps = np.packbits(wide, axis=1).view(">u8").ravel().astype(np.uint64)
    kind = "f" if is_float else "u"
    if is_float:
        scale = np.array(10.0 ** (factor - (factor >> 31 << 32)), f"f{size}")
        values = steps.astype(np.int64).astype(f"f{size}") / scale + np.frombuffer(smallest[:size], f"<f{size}")[0]
    else:
        values = (steps + np.uint64(int.from_bytes(smallest, "little"))).astype(f"u{size}")
    if one.parameters[7] == 1 and bits:
        fill = b"".join(each.to_bytes(4, "little") for each in one.parameters[8:])[:size]
        values[steps == np.uint64((1 << bits) - 1)] = np.frombuffer(fill, f"<{kind}{size}")[0]
    raw: bytes = values.astype(f"{order}{kind}{size}").tobytes()
    return raw


def _deflate(_one: Filter, data: bytes, _size: int, length: int) -> bytes:
    """Decode data of at most as many bytes as own filters need for a chunk."""
    most = length + length // 8 + 1024
    inflating = zlib.decompressobj()
    found = inflating.decompress(data, most)
    if not inflating.eof:
        raise ValueError("the stream is cut off, or too long")
    return found


def _unshuffle(one: Filter, data: bytes, size: int, _length: int) -> bytes:
    return bytes(_undone([Named("numcodecs.shuffle", {"elementsize": (*one.parameters, size)[0]})], data, len(data)))


def _check(_one: Filter, data: bytes, _size: int, _length: int) -> bytes:
    return bytes(_undone([Named("numcodecs.fletcher32")], data, max(0, len(data) - 4)))


_OWN: Final = {_LZF: _lzf, _LZ4: _lz4, _BITSHUFFLE: _bitshuffle, _SCALEOFFSET: _scaleoffset}
_STEPS: Final = {1: _deflate, _SHUFFLE: _unshuffle, 3: _check}
"""Filters that may come after those of `_OWN`, where the number of decoded bytes is not known."""
