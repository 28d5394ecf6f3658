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

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.codecs import pictures
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import A2B, B2B, Name, Record
from omnizarr.codecs.streams import compressed, limit_of
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.model import JSON

_WIDEST: Final = 65500
"""The longest side of a JPEG picture in libjpeg."""
_LOST: Final = "a picture stores no such values"


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
            return bytes(pictures.library("jpeg").jpeg8_encode(picture, level=self.quality))
        except pictures.BROKEN as error:
            raise CodecError(f"the chunk cannot be encoded as a JPEG picture: {error}", codec="jpeg") from error

    def decode(self, data: Buffer) -> AnyArray:
        """Return the chunk."""
        with pictures.reading("jpeg"):
            found = pictures.decoded("jpeg", bytes(data), prod(self.decoded.shape) // self._samples)
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
            data = bytes(pictures.library("jpegxl").jpegxl_encode(picture, **given))
        except pictures.BROKEN as error:
            raise CodecError(f"the chunk cannot be encoded as a JPEG XL picture: {error}", codec="jpegxl") from error
        if given.get("lossless") and not np.array_equal(self.decode(data), array, equal_nan=array.dtype.kind == "f"):
            raise CodecError(_LOST, codec="jpegxl", found="other values after decoding",
                             expected=f"values of {self.options.get('bitspersample')} bits",
                             remedy="choose more bitspersample")  # fmt: skip
        return data

    def decode(self, data: Buffer) -> AnyArray:
        """Return the chunk."""
        shape = self._native
        out: AnyArray = np.empty(shape, self.decoded.dtype)
        at = len(shape) - 2 - (len(shape) == 4 or (len(shape) == 3 and shape[-1] <= _MOST_SAMPLES))
        with pictures.reading("jpegxl"):
            pictures.decoded("jpegxl", bytes(data), shape[at : at + 2], keeporientation=True, out=out)
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
        return bytes(pictures.library("lzw").lzw_encode(bytes(data)))

    def decode(self, data: Buffer) -> Buffer:
        """Return the bytes."""
        most = limit_of(self.decoded)
        try:
            found = bytes(
                pictures.library("lzw").lzw_decode(bytes(data), **({} if most is None else {"out": most + 1}))
            )
        except pictures.BROKEN as error:
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
