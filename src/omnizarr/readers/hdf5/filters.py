"""Filters of HDF5 as codecs of Zarr, and their inverse for chunks that the reader decodes itself.

A filter whose bytes equal those of a codec becomes that codec, whose record knows its parameters. LZF, LZ4, bitshuffle,
ZFP and Blosc 2 frame their data in their own ways, nbit and scaleoffset have no codec: chunks with these are decoded
here, with the packages of `_PACKAGES`.

Spec: HDF5, "The Filter Pipeline Message"; the registered filters of the HDF Group.
"""

from __future__ import annotations

import importlib
import importlib.util
import zlib
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.codecs import chain as chains
from omnizarr.codecs import registry
from omnizarr.codecs.contract import ArraySpec, Buffer
from omnizarr.codecs.record import Record
from omnizarr.codecs.zfpy import padded, padded_size
from omnizarr.errors import ChunkError, CodecError, MissingDependencyError, OmnizarrError
from omnizarr.formats.filters import load_codec
from omnizarr.model import JSON, Named, datatypes
from omnizarr.readers.hdf5.datasets import Filter

_SHUFFLE: Final = 2
_SZIP: Final = 4
_BLOSC: Final = 32001
_NBIT, _SCALEOFFSET = 5, 6
_LZF, _LZ4, _BITSHUFFLE, _ZFP, _BLOSC2 = 32000, 32004, 32008, 32013, 32026
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
_RANK: Final = 8  # of arrays in Blosc 2
_BITS: Final = 1 << 24  # bits of elements that are put together at once
_LARGEST_ELEMENT: Final = 1 << 16  # bytes of an element with the filter nbit
_ZFP_HEAD, _ZFP_LONG_HEAD = 96, 148  # bits of the header of a stream of zfp
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


def why_not(chain: Sequence[Filter], size: int) -> str:
    """Return why chunks with these filters cannot be decoded here; "" if they can."""
    if not can_decode(chain, size):
        names = [title(each) for each in chain if codec(each, size) is None]
        return f"no codec is known for the filter {', '.join(names)}"
    package = lacking(chain)
    return f"its filters need the package {package}" if package else ""


def lacking(chain: Sequence[Filter]) -> str:
    """Return the package that is missing to decode chunks; "" if none is."""
    packages = (_PACKAGES.get(each.number, "") for each in chain)
    return next((each for each in packages if each and importlib.util.find_spec(each) is None), "")


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
            package = _PACKAGES.get(last.number, "imagecodecs")
            raise MissingDependencyError(
                f"the filter {title(last)} needs the package {package}", remedy=f"pip install {package}"
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


def _nbit(one: Filter, data: bytes, size: int, length: int) -> bytes:
    """Decode elements of which only the bits that their datatype uses are stored, the most significant first."""
    given = one.parameters
    if len(given) > 1 and given[1]:  # all bits are used
        return data[:length]
    places, at = _places(given, 3, 0)
    if at > len(given) or len(places) > 8 * size or (len(places) and not 0 <= min(places) <= max(places) < 8 * size):
        raise ValueError("the parameters do not fit the elements")
    count, width = length // size, len(places)
    if len(data) * 8 < count * width:
        raise ValueError(f"{len(data)} bytes, expected {(count * width + 7) // 8}")
    packed, to, parts = np.frombuffer(data, np.uint8), np.asarray(places, np.intp), []
    step = max(8, _BITS // (8 * size) // 8 * 8)
    for first in range(0, count, step):
        own = min(step, count - first)
        start = first * width // 8
        bits = np.unpackbits(packed[start : start + (own * width + 7) // 8])[: own * width]
        wide = np.zeros((own, 8 * size), np.uint8)
        wide[:, to] = bits.reshape(own, width)
        parts.append(np.packbits(wide, axis=1).tobytes())
    return b"".join(parts)


def _places(given: Sequence[int], at: int, start: int) -> tuple[list[int], int]:
    """Return to which bits of an element its stored bits belong, and the next parameter.

    Bits count through the bytes of the element, the most significant bit of each first.
    """
    kind, size = given[at], given[at + 1]
    if size > _LARGEST_ELEMENT:
        raise ValueError(f"elements of {size} bytes")
    if kind == 1:
        is_big, precision, offset = given[at + 2], given[at + 3], given[at + 4]
        if precision + offset > 8 * size:
            raise ValueError(f"{precision} bits from bit {offset} of {size} bytes")
        found = []
        for bit in range(offset + precision - 1, offset - 1, -1):
            byte = size - 1 - bit // 8 if is_big else bit // 8
            found.append(8 * (start + byte) + 7 - bit % 8)
        return found, at + 5
    if kind == 2:
        inner, behind = _places(given, at + 2, 0)
        each = given[at + 3]
        if not each or size % each or size // each * len(inner) > 8 * size:
            raise ValueError(f"arrays of {size} bytes of elements of {each}")
        return [8 * (start + number * each) + bit for number in range(size // each) for bit in inner], behind
    if kind == 3:
        members, found, at = given[at + 2], [], at + 3
        for _ in range(members):
            inner, behind = _places(given, at + 1, start + given[at])
            found, at = found + inner, behind
            if len(found) > 8 * size:
                raise ValueError("the members of a compound overlap")
        return found, at
    return list(range(8 * start, 8 * (start + size))), at + 2


def _blosc2(_one: Filter, data: bytes, _size: int, length: int) -> bytes:
    """Decode a contiguous frame of Blosc 2: a header of MessagePack with fixed places, chunks, and their offsets."""
    if data[2:10] != b"b2frame\0":
        raise ValueError("this is no frame of Blosc 2")
    head, whole = _signed(data, 11, 4), _signed(data, 30, 8)
    packed, chunk = _signed(data, 39, 8), _signed(data, 58, 4)
    shapes = _shapes_of_b2nd(data[:head])
    if not 0 < head <= len(data) or not 0 <= packed <= len(data) - head or chunk <= 0:
        raise ValueError("the header of the frame is not valid")
    if shapes is not None and length % prod(shapes[1]):
        raise ValueError(f"an array of shape {shapes[1]}, expected {length} bytes")
    expected = length if shapes is None else length // prod(shapes[1]) * prod(shapes[2])
    if whole != expected:
        raise ValueError(f"{whole} bytes, expected {expected}")
    count = -(-whole // chunk)
    offsets = np.frombuffer(_blosc2_chunk(data, head + packed, 8 * count), "<i8")
    parts = []
    for number, offset in enumerate(offsets.tolist()):
        own = min(chunk, whole - number * chunk)
        if offset >= 0:
            parts.append(_blosc2_chunk(data, head + offset, own))
        elif offset >> 56 & 7 in {1, 4}:  # zeros, or bytes without a value
            parts.append(bytes(own))
        else:
            raise ValueError("a chunk of the frame has a special value that is not known")
    found = b"".join(parts)
    return found if shapes is None else _from_blocks(found, *shapes, length)


def _signed(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big", signed=True)


def _blosc2_chunk(data: bytes, start: int, length: int) -> bytes:
    """Decode a chunk within a frame, whose header says how many bytes it has, and how many it decodes to."""
    stated, packed = (int.from_bytes(data[start + at : start + at + 4], "little") for at in (4, 12))
    if stated != length or not 0 < packed <= len(data) - start:
        raise ValueError(f"a chunk of {packed} bytes with {stated}, expected {length}")
    return bytes(_imagecodecs().blosc2_decode(data[start : start + packed], out=length)) if length else b""


_Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _shapes_of_b2nd(head: bytes) -> _Shapes | None:
    """Return the shapes of a block, of the array, and of the array in whole blocks; None for data without a shape.

    The metadata "b2nd" have three vectors of MessagePack: shape and chunk shape, which are equal, and block shape.
    """
    at = head.find(b"b2nd")
    if at < 0:
        return None
    at = int.from_bytes(head[at + 5 : at + 9], "big") + 5  # behind the type and the length of the metadata
    rank = head[at + 2] if head[at + 1 : at + 2] == b"\x00" else 0
    if not 0 < rank <= _RANK:
        raise ValueError("the metadata b2nd are not valid")
    at += 3
    shape = _integers(head, at, rank, 8)
    at += 1 + 9 * rank
    chunk = _integers(head, at, rank, 4)
    at += 1 + 5 * rank
    block = _integers(head, at, rank, 4)
    if shape != chunk or any(not 0 < step <= size for step, size in zip(block, shape, strict=True)):
        raise ValueError(f"an array of shape {shape} in chunks of {chunk} and blocks of {block}")
    return block, shape, tuple(-(-length // step) * step for length, step in zip(shape, block, strict=True))


def _integers(head: bytes, at: int, rank: int, size: int) -> tuple[int, ...]:
    return tuple(_signed(head, at + 2 + number * (1 + size), size) for number in range(rank))


def _from_blocks(
    data: bytes, block: tuple[int, ...], shape: tuple[int, ...], whole: tuple[int, ...], length: int
) -> bytes:
    """Return the elements of an array, which lie in blocks."""
    item = length // prod(shape)
    rank = len(shape)
    counts = tuple(size // step for size, step in zip(whole, block, strict=True))
    order = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
    rows = np.frombuffer(data, f"V{item}").reshape(*counts, *block).transpose(order).reshape(whole)
    found: bytes = rows[tuple(slice(0, size) for size in shape)].tobytes()
    return found


def _zfp(one: Filter, data: bytes, size: int, length: int) -> bytes:
    """Decode a stream whose header is among the parameters, after the version of the filter."""
    zfpy = importlib.import_module("zfpy")
    head = b"".join(each.to_bytes(4, "little") for each in one.parameters[1:])
    words = int.from_bytes(head, "little")
    if head[:3] != b"zfp":
        raise ValueError("the parameters have no header of zfp")
    mode = words >> _ZFP_HEAD - 12 & 0xFFF
    bits = _ZFP_LONG_HEAD if mode == 0xFFF else _ZFP_HEAD
    axes = (words >> 34 & 3) + 1
    wide = 48 // axes
    shape = tuple((words >> 36 + wide * axis & (1 << wide) - 1) + 1 for axis in reversed(range(axes)))
    item = (4, 8)[words >> 32 & 1]
    if item != size or prod(shape) * item != length:
        raise ValueError(f"numbers of {item} bytes in the shape {shape}, expected {length} bytes")
    stream = (words & (1 << bits) - 1) | int.from_bytes(data[: padded_size(shape, item)], "little") << bits
    whole = stream.to_bytes((stream.bit_length() + 7) // 8, "little")
    found: bytes = np.ascontiguousarray(zfpy.decompress_numpy(padded(whole, shape, item) + bytes(32))).tobytes()
    if len(found) != length:
        raise ValueError(f"{len(found)} bytes, expected {length}")
    return found


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


_OWN: Final = {
    _NBIT: _nbit,
    _SCALEOFFSET: _scaleoffset,
    _LZF: _lzf,
    _LZ4: _lz4,
    _BITSHUFFLE: _bitshuffle,
    _ZFP: _zfp,
    _BLOSC2: _blosc2,
}
_PACKAGES: Final = {
    _LZF: "imagecodecs",
    _LZ4: "imagecodecs",
    _BITSHUFFLE: "imagecodecs",
    _ZFP: "zfpy",
    _BLOSC2: "imagecodecs",
}
_STEPS: Final = {1: _deflate, _SHUFFLE: _unshuffle, 3: _check}
"""Filters that may come after those of `_OWN`, where the number of decoded bytes is not known."""
