"""Blosc buffers that numcodecs cannot decode: with snappy inside, or Zstandard before its format was settled.

A Blosc buffer is a frame around streams of another compressor: a header of 16 bytes, the start of each block, and
for each block one stream, or one per byte of the item size, each preceded by its length. Blocks can have any
order, because the threads of the writer finished in any order. A stream as long as its content is not compressed,
and neither is anything in a buffer marked as a copy. The content of a block is shuffled, by bytes or by bits.

This module takes the frame apart, and the package cramjam decodes the streams. zarr 0.4, 1.0 and 1.1 wrote
snappy; zarr 1.1 (with C-Blosc 1.10) wrote frames of Zstandard 0.7. This module does not encode.

Spec: C-Blosc 1, "Blosc Chunk Format"; snappy, "format description".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.codecs.contract import Buffer, BytesSpec
from omnizarr.codecs.shuffle import Shuffle
from omnizarr.errors import ChunkError, ChunkSizeError, MissingDependencyError
from omnizarr.support import extras

HEADER: Final = 16
_NUMBER: Final = 4

# flags; the three highest bits are the compressor
_SHUFFLED: Final = 0x01
_COPIED: Final = 0x02
_BITSHUFFLED: Final = 0x04
_RESERVED: Final = 0x08
_UNSPLIT: Final = 0x10  # since C-Blosc 1.11
_SNAPPY: Final = 2
_ZSTD: Final = 4

# blocks of few or large items are not split
_MOST_SPLITS: Final = 16
_SHORTEST_SPLIT: Final = 128

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_07: Final = b"\x27\xb5\x2f\xfd"
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_WINDOW: Final = 1 << 20

Decompress: TypeAlias = Callable[[memoryview, memoryview], int]
"""Fills the second argument with the decoded content of the first, and returns the number of bytes."""


class Stream(NamedTuple):
    """The position of a stream in the buffer, and the size of its content."""

    start: int
    stop: int
    size: int

    @property
    def is_stored(self) -> bool:
        """Whether it is not compressed."""
        return self.stop - self.start == self.size


@dataclass(frozen=True, slots=True)
class Frame:
    """A buffer and its header: `size` bytes in blocks of `block_size`."""

    data: memoryview
    flags: int
    typesize: int
    size: int
    block_size: int

    @classmethod
    def of(cls, data: Buffer) -> Frame:
        """Return the frame of a buffer with a valid header (see `omnizarr.codecs.blosc`)."""
        size, block_size, stored = (int.from_bytes(data[at : at + _NUMBER], "little") for at in (4, 8, 12))
        return cls(memoryview(data)[:stored], data[2], data[3], size, block_size)

    @property
    def compressor(self) -> int:
        """The number of the compressor of the streams."""
        return self.flags >> 5

    @property
    def nblocks(self) -> int:
        """The number of blocks; the last may be short."""
        return -(-self.size // self.block_size)

    def blocks(self) -> Iterator[tuple[int, int, list[Stream]]]:
        """Yield start and size of the content of each block, with its streams."""
        first = HEADER + _NUMBER * self.nblocks
        if first > len(self.data):
            raise _cut_off(self.data, first)
        for number in range(self.nblocks):
            start = number * self.block_size
            size = min(self.block_size, self.size - start)
            yield start, size, self._streams(self._number(HEADER + _NUMBER * number), first, size)

    def _streams(self, position: int, first: int, size: int) -> list[Stream]:
        if position < first:
            raise ChunkError("a block of the Blosc buffer is in its header", found=position,
                             expected=f"at least {first}")  # fmt: skip
        is_split = not self.flags & _UNSPLIT and size == self.block_size and self.typesize <= _MOST_SPLITS
        count = self.typesize if is_split and size // self.typesize >= _SHORTEST_SPLIT else 1
        streams = []
        for _ in range(count):
            start = position + _NUMBER
            if start > len(self.data):
                raise _cut_off(self.data, start)
            position = start + self._number(position)
            if position > len(self.data):
                raise _cut_off(self.data, position)
            streams.append(Stream(start, position, size // count))
        return streams

    def _number(self, at: int) -> int:
        return int.from_bytes(self.data[at : at + _NUMBER], "little")


def _cut_off(data: memoryview, least: int) -> ChunkSizeError:
    return ChunkSizeError("the Blosc buffer is cut off", found=f"{len(data)} bytes", expected=f"at least {least} bytes")


def is_needed(data: Buffer, *, has_snappy: bool) -> bool:
    """Return whether a buffer with a valid header must be decoded here.

    Parameters
    ----------
    data : buffer
    has_snappy : bool
        Whether numcodecs can decode snappy.
    """
    compressor = data[2] >> 5
    if compressor != _ZSTD:
        return compressor == _SNAPPY and not has_snappy
    if data[2] & _COPIED or _is_current(data):
        return False
    frame = Frame.of(data)
    compressed = (stream for *_, streams in frame.blocks() for stream in streams if not stream.is_stored)
    stream = next(compressed, None)  # one is enough to decide, and nearly always it is the first
    return stream is not None and bytes(frame.data[stream.start : stream.start + 4]) == _ZSTD_07


def _is_current(data: Buffer) -> bool:
    """Return whether the first stream is a current frame, which it nearly always is. This check is cheap."""
    at = int.from_bytes(data[HEADER : HEADER + _NUMBER], "little")
    length = int.from_bytes(data[at : at + _NUMBER], "little")
    block_size = int.from_bytes(data[8:12], "little")
    is_stored = length in (block_size, block_size // data[3])
    return not is_stored and data[at + _NUMBER : at + 2 * _NUMBER] == _ZSTD_MAGIC


def decode_into(data: Buffer, out: memoryview) -> None:
    """Fill `out`, which has the size in the header, with the content of a buffer with a valid header.

    Raises
    ------
    ChunkError
        If the buffer is broken.
    MissingDependencyError
        If the package that decodes the streams is not installed.
    """
    frame = Frame.of(data)
    if frame.flags & _RESERVED:
        raise ChunkError("the Blosc buffer has a flag without meaning", found=hex(frame.flags))
    if frame.flags & _COPIED:
        if len(frame.data) != HEADER + frame.size:
            raise ChunkSizeError("the Blosc buffer has the wrong size", found=f"{len(frame.data)} bytes",
                                 expected=f"{HEADER + frame.size} bytes")  # fmt: skip
        out[:] = frame.data[HEADER:]
        return
    _check_apart(frame)
    decompress = _decompressor(frame.compressor)
    undo = _filter(frame)
    for start, size, streams in frame.blocks():
        target = out[start : start + size]
        if undo is None:
            _join(frame, streams, target, decompress)
        else:
            block = memoryview(bytearray(size))
            _join(frame, streams, block, decompress)
            undo(block, target)


def _check_apart(frame: Frame) -> None:
    """Raise ChunkError if streams overlap: decoding a small buffer could otherwise take very long."""
    blocks = sorted((streams[0].start, streams[-1].stop) for *_, streams in frame.blocks())
    end = 0
    for start, stop in blocks:
        if start < end:
            raise ChunkError("blocks of the Blosc buffer overlap", found=start, expected=f"at least {end}")
        end = stop + _NUMBER


def _join(frame: Frame, streams: list[Stream], out: memoryview, decompress: Decompress) -> None:
    """Fill `out` with the streams of a block, one after the other."""
    position = 0
    for stream in streams:
        source, target = frame.data[stream.start : stream.stop], out[position : position + stream.size]
        if stream.is_stored:
            target[:] = source
        else:
            size = decompress(source, target)
            if size != stream.size:
                raise ChunkSizeError("a stream in the Blosc buffer is too short", found=f"{size} bytes",
                                     expected=f"{stream.size} bytes")  # fmt: skip
        position += stream.size
    # if a block is not a multiple of the item size, its rest is in no stream
    if position < len(out):
        raise ChunkError("the blocks of the Blosc buffer cannot be split", found=f"{len(out)} bytes",
                         expected=f"a multiple of {len(streams)}")  # fmt: skip


def _decompressor(compressor: int) -> Decompress:
    """Return the function that decodes the streams. It is imported here because it is rarely needed."""
    name = "snappy" if compressor == _SNAPPY else "Zstandard 0.7"
    try:
        cramjam = import_module("cramjam")
    except ImportError as error:
        raise MissingDependencyError(
            f"Blosc with {name} needs the package 'cramjam', which cannot be imported ({error})",
            remedy=extras.remedy("legacy"),
        ) from error
    library = cramjam.snappy.decompress_raw_into if compressor == _SNAPPY else cramjam.zstd.decompress_into

    def decompress(data: memoryview, out: memoryview) -> int:
        if compressor == _ZSTD:
            _check_frame(data, len(out))
        try:
            return int(library(data, out))
        except BaseException as error:
            # broken bytes can make the library panic, which raises an exception that is not an Exception
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise ChunkError(f"the stream of {name} in the Blosc buffer is broken: {error}") from error

    return decompress


def _check_frame(data: memoryview, size: int) -> None:
    """Raise ChunkError if bytes are not a frame of Zstandard 0.7 with `size` bytes, or need too much memory."""
    magic = bytes(data[:4])
    if magic != _ZSTD_07 or len(data) < 6:
        raise ChunkError("no frame of Zstandard 0.7", found=magic.hex(), expected=_ZSTD_07.hex())
    descriptor = data[4]
    is_single = bool(descriptor & 0x20)
    at = 5 + (not is_single) + _DICTIONARY_BYTES[descriptor & 3]
    width = (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
    stated = int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0)
    if width and stated != size:
        raise ChunkSizeError("a stream in the Blosc buffer has the wrong size", found=f"{stated} bytes",
                             expected=f"{size} bytes")  # fmt: skip
    window = stated if is_single else 1 << (data[5] >> 3) + 10
    if window > max(2 * size, _WINDOW):
        raise ChunkError("the frame of Zstandard 0.7 asks for too much memory", found=f"{window} bytes")


def _filter(frame: Frame) -> Callable[[memoryview, memoryview], None] | None:
    """Return the function that undoes the shuffle of a block; None if it was not shuffled."""
    if frame.flags & _SHUFFLED and frame.typesize > 1:
        return Shuffle(frame.typesize, BytesSpec(None)).decode_into
    if frame.flags & _BITSHUFFLED:
        return lambda block, out: unshuffle_bits(block, frame.typesize, out)
    return None


def unshuffle_bits(data: Buffer, item_size: int, out: memoryview) -> None:
    """Fill `out` with items whose first bits come first, then their second bits, and so on.

    Blosc does not shuffle a block if the number of its items is not a multiple of eight, nor the bytes after the
    last item.
    """
    nitems = len(data) // item_size
    if nitems % 8 or not nitems:
        out[:] = data
        return
    whole = nitems * item_size
    rows = np.frombuffer(data, np.uint8, whole).reshape(item_size, 8, nitems // 8)
    # a bit of eight items is one byte, so the eight bits of a byte of eight items are a square of 64 bits:
    # transpose it
    squares = rows.transpose(0, 2, 1).copy().view("<u8")
    for distance, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
        swapped = (squares ^ (squares >> distance)) & mask
        squares ^= swapped ^ (swapped << distance)
    items = np.frombuffer(out, np.uint8, whole).reshape(nitems, item_size)
    np.copyto(items, squares.view(np.uint8).reshape(item_size, nitems).T)
    out[whole:] = data[whole:]
