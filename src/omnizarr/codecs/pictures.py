"""Pictures in chunks: their size is read from the head and checked before the package imagecodecs decodes them.

What the codecs ``jpeg`` and ``jpegxl``, tiles of TIFF and volumes of Neuroglancer have in common.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from omnizarr.codecs.contract import AnyArray
from omnizarr.errors import ChunkError, ChunkSizeError, MissingDependencyError, OmnizarrError
from omnizarr.support import extras
from omnizarr.support.lazy import Lazy

imagecodecs: Any = Lazy("imagecodecs")
BROKEN: Final = (ValueError, RuntimeError, OverflowError, MemoryError, struct.error, IndexError, TypeError)
"""What imagecodecs and the functions of this module raise for broken pictures."""


def library(codec: str) -> Any:
    """Return the package imagecodecs. Raises MissingDependencyError if it is not installed."""
    try:
        imagecodecs.__version__  # noqa: B018 - imports it
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"the codec {codec} needs the package imagecodecs", codec=codec, remedy=extras.remedy("tiff")
        ) from error
    return imagecodecs


@contextmanager
def reading(codec: str, spec: str | None = None) -> Iterator[None]:
    """Raise ChunkError for pictures that are broken."""
    try:
        library(codec)
        yield
    except BROKEN as error:
        if isinstance(error, OmnizarrError):
            raise
        raise ChunkError(f"the picture is broken, or not of this chunk: {error}", codec=codec, spec=spec) from error


def decoded(kind: str, data: bytes, size: int | tuple[int, ...], **options: Any) -> AnyArray:
    """Return a picture whose head says that it has `size` pixels, or this height and width. Raises one of `BROKEN`.

    `options` are those of imagecodecs.
    """
    height, width = shape_of(kind, data)
    is_right = height * width == size if isinstance(size, int) else (height, width) == size
    if not is_right:
        expected = f"{size} pixels" if isinstance(size, int) else f"{size[1]} by {size[0]} pixels"
        raise ChunkSizeError("the picture has the wrong size", codec=kind, found=f"{width} by {height} pixels",
                             expected=expected)  # fmt: skip
    if kind == "jpeg" and jpeg_shape(data)[0] != 8:
        raise ChunkSizeError("the picture has other elements", codec=kind, found=f"{jpeg_shape(data)[0]} bits",
                             expected="8 bits")  # fmt: skip
    return np.asarray(getattr(imagecodecs, _DECODERS[kind])(data, **options))


def shape_of(kind: str, data: bytes) -> tuple[int, int]:
    """Return height and width of a picture, as its head says. Raises one of `BROKEN`."""
    return _SHAPES[kind](data)


# -- heads of pictures --------------------------------------------------------------------------


def jpeg_shape(data: bytes) -> tuple[int, int, int]:
    """Return bits, height and width of a JPEG picture."""
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            at += 1
            continue
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            bits, height, width = struct.unpack(">BHH", data[at + 4 : at + 9])
            return bits, height, width
        if marker in (0xFF, 0, 1) or 0xD0 <= marker <= 0xD9:
            at += 1 if marker == 0xFF else 2
            continue
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise ValueError("a JPEG picture without a frame")


_RATIOS: Final = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
_JXL: Final = b"\xff\x0a"
_MOST_BOXES: Final = 64


def jpegxl_shape(data: bytes) -> tuple[int, int]:
    """Return height and width of a JPEG XL picture: a codestream, or one in a container."""
    at = 0 if data[:2] == _JXL else _codestream(data)
    if data[at : at + 2] != _JXL:
        raise ValueError("no JPEG XL picture")
    bits = int.from_bytes(data[at + 2 : at + 18], "little")

    def take(count: int) -> int:
        nonlocal bits
        found = bits & (1 << count) - 1
        bits >>= count
        return found

    def length(*, is_small: int) -> int:
        return 8 * (take(5) + 1) if is_small else take((9, 13, 18, 30)[take(2)]) + 1

    is_small = take(1)
    height = length(is_small=is_small)
    ratio = take(3)
    if not ratio:
        return height, length(is_small=is_small)
    above, below = _RATIOS[ratio - 1]
    return height, height * above // below


def _codestream(data: bytes) -> int:
    """Return where the codestream begins in a container."""
    at = 0
    for _ in range(_MOST_BOXES):
        if at + 8 > len(data):
            break
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, at + 8)
            head = 16
        if kind == b"jxlc":
            return at + head
        if kind == b"jxlp":
            return at + head + 4
        if size < head:
            break
        at += size
    raise ValueError("no JPEG XL picture")


def _png_shape(data: bytes) -> tuple[int, int]:
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR":
        raise ValueError("no PNG picture")
    width, height = struct.unpack(">II", data[16:24])
    return height, width


def _webp_shape(data: bytes) -> tuple[int, int]:
    """Return height and width of a WebP picture."""
    kind = data[12:16]
    if data[:4] != b"RIFF" or len(data) < 30:
        raise ValueError("no WebP picture")
    if kind == b"VP8X":
        return int.from_bytes(data[27:30], "little") + 1, int.from_bytes(data[24:27], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    width, height = struct.unpack("<HH", data[26:30])
    return height & 0x3FFF, width & 0x3FFF


_SHAPES: Final[dict[str, Callable[[bytes], tuple[int, int]]]] = {
    "jpeg": lambda data: jpeg_shape(data)[1:],
    "png": _png_shape,
    "webp": _webp_shape,
    "jpegxl": jpegxl_shape,
}
_DECODERS: Final = {"jpeg": "jpeg8_decode", "png": "png_decode", "jpegxl": "jpegxl_decode"}
