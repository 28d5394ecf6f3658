"""Encodings of chunks: raw, compressed_segmentation, and the pictures jpeg, png and jxl.

Chunks at the far edges hold only what is inside the volume; chunks of Zarr have one size. So such a chunk is completed
with zeros.

Spec: Neuroglancer, "Chunk encoding" and "Compressed segmentation format".
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs import pictures
from omnizarr.errors import (
    ChunkError,
    ChunkSizeError,
    CodecError,
    Remedy,
    Setting,
)
from omnizarr.readers.precomputed.volume import SPEC, Scale, Three
from omnizarr.settings import config
from omnizarr.stores.base import Buffer

_GZIP: Final = b"\x1f\x8b"
_GROWTH: Final = 64  # bytes of a chunk for one that is stored
_SLACK: Final = 1 << 16
_AT_ONCE: Final = 1 << 20  # elements of compressed_segmentation that are unpacked together
_WIDTHS: Final = (0, 1, 2, 4, 8, 16, 32)


def most_stored(scale: Scale) -> int:
    """Return how many bytes a stored chunk may have."""
    return 4 * scale.nbytes + _SLACK


def chunk_of(scale: Scale, at: Three, stored: Buffer) -> Buffer:
    """Return a stored chunk as a chunk of Zarr.

    Raises
    ------
    ChunkError
        If it is broken.
    ChunkSizeError
        If it holds more or fewer voxels than there are.
    CodecError
        If its encoding cannot be decoded.
    MissingDependencyError
        If a package is missing.
    """
    shape = scale.shape_at(at)
    size = math.prod(shape) * scale.channels * scale.dtype.itemsize
    if bytes(stored[:2]) == _GZIP and not (scale.encoding == "raw" and len(stored) == size):
        stored = unpacked(stored, most_stored(scale))
    if scale.encoding == "raw":
        if len(stored) != size:
            raise ChunkSizeError("the chunk has the wrong size", found=f"{len(stored)} bytes",
                                 expected=f"{size} bytes", spec=SPEC)  # fmt: skip
        if shape == scale.chunk:
            return stored
        _check_room(scale, len(stored))
        found = np.frombuffer(stored, scale.dtype).reshape(scale.channels, *shape[::-1])
    else:
        decode = _DECODERS.get(scale.encoding)
        if decode is None:
            raise CodecError(
                "chunks with this encoding cannot be read",
                codec=scale.encoding,
                found=scale.encoding,
                expected=f"one of raw, {', '.join(_DECODERS)}",
                remedy="cloudvolume reads it, and can copy the volume with another encoding",
            )
        _check_room(scale, len(stored))
        found = decode(scale, shape, bytes(stored))
    whole = np.zeros((scale.channels, *scale.chunk[::-1]), scale.dtype)
    x, y, z = shape
    whole[:, :z, :y, :x] = found
    return whole.reshape(-1).view(np.uint8).data


def unpacked(data: Buffer, most: int) -> bytes:
    """Return what a gzip stream holds, which may be at most `most` bytes. Raises ChunkError."""
    stream = zlib.decompressobj(wbits=31)
    try:
        found = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise ChunkError(f"a gzip stream is broken: {error}", codec="gzip", spec=SPEC) from error
    if len(found) > most:
        raise ChunkSizeError("a gzip stream holds too much", codec="gzip", found=f"more than {most} bytes",
                             expected=f"at most {most} bytes", spec=SPEC)  # fmt: skip
    if not stream.eof:
        raise ChunkError("a gzip stream is cut off", codec="gzip", found=f"{len(data)} bytes", spec=SPEC)
    return found


def _check_room(scale: Scale, stored: int) -> None:
    """Raise ChunkError if a few bytes would become a very large chunk."""
    most = max(config.get("array.variable_chunk_bytes"), _GROWTH * stored)
    if scale.nbytes > most:
        raise ChunkError(
            f"{stored} stored bytes would become a chunk of the full size",
            found=f"{scale.nbytes} bytes",
            expected=f"at most {most} bytes",
            remedy=Remedy(
                "if that is what was written, raise {setting}", setting=Setting("array.variable_chunk_bytes")
            ),
            spec=SPEC,
        )


# -- segmentations -----------------------------------------------------------------------------


def _segmentation(scale: Scale, shape: Three, data: bytes) -> NDArray[Any]:
    """Return the labels of all channels."""
    words = np.frombuffer(data, "<u4", len(data) // 4)
    if len(words) < scale.channels:
        raise _broken(f"{len(data)} bytes", f"the places of {scale.channels} channels")
    found = np.empty((scale.channels, *shape[::-1]), scale.dtype)
    for channel, start in enumerate(words[: scale.channels].tolist()):
        if start > len(words):
            raise _broken(f"channel {channel} at byte {4 * start}", f"at most {len(data)} bytes")
        found[channel] = _labels(scale, shape, words[start:])
    return found


def _labels(scale: Scale, shape: Three, words: NDArray[Any]) -> NDArray[Any]:
    """Return the labels of one channel: blocks, each with a table of labels and packed numbers of its entries."""
    block = scale.block
    grid = [-(-length // each) for length, each in zip(shape, block, strict=True)]
    count, voxels = math.prod(grid), math.prod(block)
    room = count * voxels * scale.dtype.itemsize
    most = max(config.get("array.variable_chunk_bytes"), scale.nbytes)
    if room > most:
        raise _broken(f"blocks of {block} voxels, which are {room} bytes", f"at most {most} bytes")
    if 2 * count > len(words):
        raise _broken(f"{len(words)} words", f"{2 * count} for the heads of {count} blocks")
    heads = words[: 2 * count].reshape(count, 2).astype(np.int64)
    tables, widths, starts = heads[:, 0] & 0xFFFFFF, heads[:, 0] >> 24, heads[:, 1]
    blocks = np.empty((count, voxels), scale.dtype)
    known = 0
    for width in _WIDTHS:
        (chosen,) = np.nonzero(widths == width)
        known += len(chosen)
        step = max(_AT_ONCE // voxels, 1)
        for at in range(0, len(chosen), step):
            some = chosen[at : at + step]
            blocks[some] = _unpack(words, tables[some], starts[some], width, voxels, scale.dtype)
    if known != count:
        odd = next(each for each in widths.tolist() if each not in _WIDTHS)
        raise _broken(f"{odd} bits for a voxel", f"one of {_WIDTHS}")
    whole = blocks.reshape(*grid[::-1], *block[::-1]).transpose(0, 3, 1, 4, 2, 5)
    z, y, x = (each * length for each, length in zip(grid[::-1], block[::-1], strict=True))
    return whole.reshape(z, y, x)[: shape[2], : shape[1], : shape[0]]


def _unpack(
    words: NDArray[Any], tables: NDArray[Any], starts: NDArray[Any], width: int, voxels: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return the labels of blocks whose voxels have `width` bits."""
    size = dtype.itemsize // 4
    if width:
        bits = np.arange(voxels, dtype=np.int64) * width
        places = starts[:, None] + (bits >> 5)[None]
        last = int(starts.max()) + int(bits[-1] >> 5)
        if last >= len(words):
            raise _broken(f"voxels at word {last}", f"at most {len(words)} words")
        entries = words[places].astype(np.int64) >> (bits & 31)[None] & (1 << width) - 1
    else:
        entries = np.zeros((len(starts), 1), np.int64)
    places = tables[:, None] + entries * size
    last = int(places.max()) + size
    if last > len(words):
        raise _broken(f"a label at word {last - 1}", f"at most {len(words)} words")
    found: NDArray[Any] = words[places]
    if size > 1:
        found = found.astype("<u8") | words[places + 1].astype("<u8") << np.uint64(32)
    return found


def _broken(found: str, expected: str) -> ChunkError:
    return ChunkError("the chunk is cut off, or broken", codec="compressed_segmentation", found=found,
                      expected=expected, spec="Neuroglancer, Compressed segmentation format")  # fmt: skip


# -- pictures ----------------------------------------------------------------------------------


def _picture(scale: Scale, shape: Three, data: bytes) -> NDArray[Any]:
    """Return the voxels of a picture of any width and height, which has all of them."""
    name = scale.encoding
    voxels = math.prod(shape)
    with pictures.reading(name, SPEC):
        found = pictures.decoded(_PICTURES[name], data, voxels)
    if found.size != voxels * scale.channels or found.dtype.itemsize != scale.dtype.itemsize:
        raise ChunkSizeError(
            "the picture has other channels or elements",
            codec=name,
            found=f"{found.dtype} {found.shape}",
            expected=f"{scale.data_type}, {voxels} pixels, {scale.channels} channels",
            spec=SPEC,
        )
    x, y, z = shape
    return found.reshape(z, y, x, scale.channels).transpose(3, 0, 1, 2)


_PICTURES: Final = {"jpeg": "jpeg", "png": "png", "jxl": "jpegxl", "jpegxl": "jpegxl"}
"""Of encodings. The last is the name of CloudVolume."""
_DECODERS: Final[dict[str, Callable[[Scale, Three, bytes], NDArray[Any]]]] = {
    "compressed_segmentation": _segmentation,
    **dict.fromkeys(_PICTURES, _picture),
}
