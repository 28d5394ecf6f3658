"""jpeg, jpegxl: chunks that are pictures; lzw.

Configuration: of ``jpeg``, ``quality`` (0 to 100, default 90); of ``jpegxl``, what the picture was encoded with, which
decoding does not need. ``lzw`` has none. All need the package imagecodecs.
``jpeg`` stores chunks of uint8 whose last dimension has length 3 in colour, and others in gray. Pictures of any width
and height that has as many pixels are read, as Neuroglancer writes them.
``jpegxl`` stores chunks in the shape (frames, height, width, samples), without frames or samples if there is one. A
third dimension of at most 4 is that of samples.
Both lose precision, ``jpegxl`` unless it is ``lossless``.

Spec: zarr-extensions, proposals "jpeg" (pull request 66), "jpegxl" and "lzw", as of November 2026.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import A2B, B2B, Name, Record
from omnizarr.codecs.streams import compressed, limit_of
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, MissingDependencyError, OmnizarrError
from omnizarr.model import JSON
from omnizarr.support import extras
from omnizarr.support.lazy import Lazy

imagecodecs: Any = Lazy("imagecodecs")
_WIDEST: Final = 65500
"""The longest side of a JPEG picture in libjpeg."""
_BROKEN: Final = (ValueError, RuntimeError, OverflowError, MemoryError, struct.error, IndexError, TypeError)
_LOST: Final = "a picture stores no such values"


def _library(name: str) -> Any:
    try:
        imagecodecs.__version__  # noqa: B018 - imports it
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"the codec {name} needs the package imagecodecs", codec=name, remedy=extras.remedy("tiff")
        ) from error
    return imagecodecs


# -- jpeg -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Jpeg:
    """A JPEG picture of a chunk."""

    quality: int
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return compressed(BytesSpec(self.decoded.nbytes))

    @property
    def _samples(self) -> int:
        return 3 if self.decoded.shape and self.decoded.shape[-1] == 3 else 1

    def encode(self, array: AnyArray) -> Buffer:
        """Return the picture."""
        pixels = prod(self.decoded.shape) // self._samples
        width = self.decoded.shape[-2 if self._samples == 3 else -1] if self.decoded.shape else 1
        height = pixels // width
        if height > _WIDEST or width > _WIDEST:
            width, height = _factors(pixels)
        shape = (height, width, 3) if self._samples == 3 else (height, width)
        picture = np.ascontiguousarray(array).reshape(shape)
        try:
            return bytes(_library("jpeg").jpeg8_encode(picture, level=self.quality))
        except _BROKEN as error:
            raise CodecError(f"the chunk cannot be encoded as a JPEG picture: {error}", codec="jpeg") from error

    def decode(self, data: Buffer) -> AnyArray:
        """Return the chunk."""
        library = _library("jpeg")
        try:
            bits, height, width = jpeg_shape(bytes(data))
            expected = prod(self.decoded.shape) // self._samples
            if height * width != expected or bits != 8:
                raise ChunkSizeError("the picture has the wrong size", codec="jpeg",
                                     found=f"{width} by {height} pixels of {bits} bits",
                                     expected=f"{expected} pixels of 8 bits")  # fmt: skip
            found: AnyArray = np.asarray(library.jpeg8_decode(bytes(data)))
        except _BROKEN as error:
            if isinstance(error, OmnizarrError):
                raise
            raise ChunkError(f"the picture is broken: {error}", codec="jpeg") from error
        if found.size != prod(self.decoded.shape):
            raise ChunkSizeError("the picture has other samples", codec="jpeg", found=f"shape {found.shape}",
                                 expected=f"{self._samples} per pixel")  # fmt: skip
        return found.reshape(self.decoded.shape)


def _factors(pixels: int) -> tuple[int, int]:
    """Return the most even sides of a picture. Raises CodecError if one is longer than a picture can be."""
    width = next(side for side in range(int(pixels**0.5) + 1, 0, -1) if pixels % side == 0)
    if pixels // width > _WIDEST:
        raise CodecError(_LOST, codec="jpeg", found=f"{pixels} pixels",
                         expected=f"sides of at most {_WIDEST} pixels", remedy="choose smaller chunks")  # fmt: skip
    return pixels // width, width


def jpeg_bind(configuration: Configuration, decoded: ArraySpec) -> Jpeg:
    """Return the codec."""
    fields = Fields(configuration, ("quality",), 'zarr-extensions, "jpeg" (proposed)')
    _expect(decoded, "jpeg", ("uint8",))
    return Jpeg(fields.integer("quality", 90, 0, 100), decoded)


# -- jpegxl -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JpegXl:
    """A JPEG XL picture of a chunk."""

    options: Mapping[str, JSON]
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return compressed(BytesSpec(self.decoded.nbytes))

    @property
    def _native(self) -> tuple[int, ...]:
        """The shape that the library gives the picture: one frame and one sample have no dimension."""
        shape = self.decoded.shape
        has_samples = len(shape) == 4 or (len(shape) == 3 and shape[-1] <= _MOST_SAMPLES)
        if has_samples and shape[-1] == 1:
            shape = shape[:-1]
            has_samples = False
        return shape[1:] if len(shape) == 3 + has_samples and shape[0] == 1 else shape

    def encode(self, array: AnyArray) -> Buffer:
        """Return the picture."""
        given = {name: value for name, value in self.options.items() if name in _OF_LIBRARY and value != "unknown"}
        picture = np.ascontiguousarray(array).reshape(self._native)
        try:
            data = bytes(_library("jpegxl").jpegxl_encode(picture, **given))
        except _BROKEN as error:
            raise CodecError(f"the chunk cannot be encoded as a JPEG XL picture: {error}", codec="jpegxl") from error
        if given.get("lossless") and not np.array_equal(self.decode(data), array, equal_nan=array.dtype.kind == "f"):
            raise CodecError(_LOST, codec="jpegxl", found="other values after decoding",
                             expected=f"values of {self.options.get('bitspersample')} bits",
                             remedy="choose more bitspersample")  # fmt: skip
        return data

    def decode(self, data: Buffer) -> AnyArray:
        """Return the chunk."""
        library, shape = _library("jpegxl"), self._native
        out: AnyArray = np.empty(shape, self.decoded.dtype)
        try:
            height, width = jpegxl_shape(bytes(data))
            at = len(shape) - 2 - (len(shape) == 4 or (len(shape) == 3 and shape[-1] <= _MOST_SAMPLES))
            if (height, width) != shape[at : at + 2]:
                raise ChunkSizeError("the picture has the wrong size", codec="jpegxl",
                                     found=f"{width} by {height} pixels",
                                     expected=f"{shape[at + 1]} by {shape[at]} pixels")  # fmt: skip
            library.jpegxl_decode(bytes(data), keeporientation=True, out=out)
        except _BROKEN as error:
            if isinstance(error, OmnizarrError):
                raise
            raise ChunkError(f"the picture is broken, or not of this chunk: {error}", codec="jpegxl") from error
        return out.reshape(self.decoded.shape)


_MOST_SAMPLES: Final = 4
_OF_LIBRARY: Final = ("lossless", "distance", "effort", "decodingspeed", "photometric", "bitspersample", "usecontainer")
_OTHERS: Final = ("primaries", "transfer")


def jpegxl_bind(configuration: Configuration, decoded: ArraySpec) -> JpegXl:
    """Return the codec."""
    fields = Fields(configuration, (*_OF_LIBRARY, *_OTHERS), 'zarr-extensions, "jpegxl" (proposed)')
    _expect(decoded, "jpegxl", ("uint8", "uint16", "float16", "float32"))
    shape = decoded.shape
    if not 2 <= len(shape) <= 4 or (len(shape) == 4 and shape[-1] > _MOST_SAMPLES):
        raise CodecError(_LOST, codec="jpegxl", found=f"chunks of shape {shape}",
                         expected="(height, width), (height, width, up to 4 samples), or frames of these",
                         remedy="put the codecs reshape and transpose before it")  # fmt: skip
    fields.integer("bitspersample", 8 * decoded.dtype.itemsize, 1, 8 * decoded.dtype.itemsize)
    fields.integer("effort", 7, 1, 10)
    fields.integer("decodingspeed", 0, 0, 4)
    fields.choice("photometric", {name: name for name in ("gray", "rgb", "xyb", "unknown")}, "unknown")
    return JpegXl(configuration, decoded)


def _expect(decoded: ArraySpec, name: str, types: tuple[str, ...]) -> None:
    if decoded.data_type.named.name not in types or decoded.dtype.byteorder == ">":
        raise CodecError(_LOST, codec=name, found=decoded.data_type.named.name, expected=" or ".join(types))


# -- lzw --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lzw:
    """Lempel-Ziv-Welch, as in TIFF."""

    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return compressed(self.decoded)

    def encode(self, data: Buffer) -> Buffer:
        """Return the compressed bytes."""
        return bytes(_library("lzw").lzw_encode(bytes(data)))

    def decode(self, data: Buffer) -> Buffer:
        """Return the bytes."""
        most = limit_of(self.decoded)
        try:
            found = bytes(_library("lzw").lzw_decode(bytes(data), **({} if most is None else {"out": most + 1})))
        except _BROKEN as error:
            raise ChunkError(f"cannot decode: {error}", codec="lzw") from error
        if most is not None and (len(found) > most or (self.decoded.nbytes is not None and len(found) != most)):
            raise ChunkSizeError("the decoded bytes have the wrong size", codec="lzw",
                                 found=f"{'more than ' if len(found) > most else ''}{min(len(found), most)} bytes",
                                 expected=f"{most} bytes")  # fmt: skip
        return found


def lzw_bind(configuration: Configuration, decoded: BytesSpec) -> Lzw:
    """Return the codec."""
    Fields(configuration, (), 'zarr-extensions, "lzw" (proposed)')
    return Lzw(decoded)


# -- headers of pictures ------------------------------------------------------------------------


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


def _is_lossy(parameters: Mapping[str, Any]) -> bool:
    return parameters.get("lossless") is not True


_NOTE: Final = "proposed; needs imagecodecs"
CODECS = (
    Record(
        id="jpeg", kind=A2B, names={"jpeg": Name(jpeg_bind)}, parameters={"quality": int}, v2="-", note=_NOTE,
        package=("imagecodecs", "tiff"), compresses=True, is_inexact=True, words="JPEG pictures",
    ),
    Record(
        id="jpegxl", kind=A2B, names={"jpegxl": Name(jpegxl_bind)},
        parameters={"lossless": bool, "distance": object, "effort": int, "decodingspeed": int, "photometric": str,
                    "primaries": str, "transfer": str, "bitspersample": int, "usecontainer": bool},
        v2="-", note=_NOTE, package=("imagecodecs", "tiff"), compresses=True, is_inexact=_is_lossy,
        words="JPEG XL pictures",
    ),
    Record(
        id="lzw", kind=B2B, names={"lzw": Name(lzw_bind)}, v2="-", note=_NOTE, package=("imagecodecs", "tiff"),
        compresses=True, words="LZW", decodes_with={},
    ),
)  # fmt: skip
