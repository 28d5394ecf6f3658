"""Pixels: in another size, and as a file."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from omnizarr.pictures.colours import Pixels

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BITS, _WITH_ALPHA = 8, 6


def stretched(pixels: Pixels, width: int, height: int) -> Pixels:
    """Return pixels in another size: each becomes a rectangle of its own colour.

    >>> stretched(np.eye(2, dtype=np.uint8)[..., None].repeat(4, 2), 4, 2)[..., 0].tolist()
    [[1, 1, 0, 0], [0, 0, 1, 1]]
    """
    return pixels[sampled(pixels.shape[0], height)][:, sampled(pixels.shape[1], width)]


def sampled(length: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return which of `length` elements each of `count` places along a side shows.

    >>> sampled(2, 4).tolist(), sampled(6, 3).tolist()
    ([0, 0, 1, 1], [1, 3, 5])
    """
    return ((np.arange(count) + 0.5) * length / count).astype(np.intp)


def as_png(pixels: Pixels) -> bytes:
    r"""Return pixels, with alpha, as a file.

    Spec: https://www.w3.org/TR/png-3/, sections 5.3 and 9.2.

    >>> as_png(np.zeros((2, 3, 4), np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    height, width, _ = pixels.shape
    # Each row begins with the number of its filter: 0, none.
    rows = np.zeros((height, 1 + 4 * width), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">2I5B", width, height, _EIGHT_BITS, _WITH_ALPHA, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
