"""Tiles and strips of TIFF files: their compressions, and their predictors. The reader of TIFF writes these names.

``tiff``, which only decodes, with the package imagecodecs. Configuration: ``compression`` (none, deflate, zstd, lzw,
packbits, lzma; for pictures jpeg, webp, jpegxl, jpeg2000, jpegxr, png, lerc, ccittrle, ccittfax3, ccittfax4), ``width``
(pixels in a row), ``samples`` (elements of a pixel), ``data_type`` (of what is decoded), ``fill_order`` (2: the lowest
bit of a byte comes first), ``elements`` (packed, float24, complex integers: how elements are stored) with ``bits`` and
``endian`` of the stored ones, ``tables`` and ``colours`` of JPEG, ``options`` of facsimiles. Elements that are
unpacked, and those of pictures, are little-endian.

``tiff_predictor``: differences along rows. Configuration: ``predictor`` (2: of integers, or of the bits of floats; 3:
of the bytes of floats, which are ordered by significance), ``width``, ``samples``, ``data_type``, ``endian``.

Spec: TIFF 6.0; Adobe Photoshop, "TIFF Technical Note 3".
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs import pictures
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.record import B2B, Name, Record
from omnizarr.codecs.streams import compressed, limit_of
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, OmnizarrError
from omnizarr.model import Named

imagecodecs: Any = pictures.imagecodecs

_SPEC: Final = "TIFF 6.0"
_ORDERS: Final[dict[str, Literal["<", ">"]]] = {"little": "<", "big": ">"}
_STREAMS: Final = ("none", "deflate", "zstd", "lzw", "packbits", "lzma")
_FACSIMILES: Final = ("ccittrle", "ccittfax3", "ccittfax4")
_PICTURES: Final = ("jpeg", "webp", "jpegxl", "jpeg2000", "jpegxr", "png", "lerc", *_FACSIMILES)
_ELEMENTS: Final = ("", "packed", "float24", "complex integers")
_COLOURS: Final = {"": 0, "rgb": 2, "cmyk": 5, "ycbcr": 6, "cielab": 8}
_TYPES: Final = {
    name: np.dtype(name)
    for name in (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
_MOST: Final = 2**31 - 1
_SLACK: Final = 1 << 16
_SLACKNESS: Final = 4  # how much more than a tile a picture in it may have


def _size(decoded: BytesSpec) -> int:
    size = limit_of(decoded)
    if size is None:
        raise CodecError("the size of a tile or strip must be known", found=decoded)
    return size


# -- compressions -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tiff:
    """A compression, and what stands in for elements.

    Attributes
    ----------
    compression : str
    width, samples : int
    dtype : dtype
        Of what is decoded.
    stored : str
        The order of bytes of the stored elements.
    elements : str
    bits : int
    is_reversed : bool
    colours : int
    tables : bytes
    options : int
    decoded : BytesSpec
    """

    compression: str
    width: int
    samples: int
    dtype: np.dtype[Any]
    stored: str
    elements: str
    bits: int
    is_reversed: bool
    colours: int
    tables: bytes
    options: int
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size, unless nothing is compressed."""
        if self.compression == "none" and self.decoded.nbytes is not None:
            return BytesSpec(self._stored_size(self.decoded.nbytes // self.dtype.itemsize))
        return compressed(self.decoded)

    def encode(self, data: Buffer) -> Buffer:
        """Raise CodecError: this codec reads files that others wrote."""
        raise CodecError(
            "tiles and strips of TIFF files are only read", codec="tiff", remedy="write another codec: zstd"
        )

    def decode(self, data: Buffer) -> Buffer:
        """Return the elements of a tile or strip."""
        try:
            found = self._picture(bytes(data)) if self.compression in _PICTURES else self._stream(bytes(data))
        except (*pictures.BROKEN, KeyError) as error:
            if isinstance(error, OmnizarrError):
                raise
            raise ChunkError(f"the tile or strip cannot be decoded by {self.compression}: {error}") from error
        size = _size(self.decoded)
        if found.nbytes < size and self.decoded.nbytes is not None:
            raise ChunkSizeError(
                "the tile or strip is cut off", found=f"{found.nbytes} bytes", expected=f"{size} bytes"
            )
        return found[:size]

    # -- streams --------------------------------------------------------------------

    def _stream(self, data: bytes) -> memoryview:
        size = _size(self.decoded)
        count = size // self.dtype.itemsize
        stored = self._stored_size(count)
        if self.is_reversed:
            data = bytes(imagecodecs.bitorder_decode(data))
        raw = _unpacked(self.compression, data, stored)
        if not self.elements:
            return memoryview(raw)
        if self.elements == "packed":
            if len(raw) < stored:
                raise ValueError(f"{len(raw)} bytes, expected {stored}")
            found = imagecodecs.packints_decode(raw[:stored], self.dtype, self.bits, runlen=self.width * self.samples)
        elif self.elements == "float24":
            found = imagecodecs.float24_decode(raw[: len(raw) // 3 * 3], byteorder=self.stored)
        else:
            whole = np.frombuffer(raw, f"{self.stored}i{self.bits // 16}", len(raw) // (self.bits // 16))
            found = whole.astype(f"f{self.dtype.itemsize // 2}")
        return _memory(found)

    def _stored_size(self, count: int) -> int:
        """Return how many bytes some elements are stored in."""
        if not self.elements:
            return count * self.dtype.itemsize
        if self.elements == "packed":
            row = self.width * self.samples
            return -(-count // row) * -(-row * self.bits // 8)
        return count * self.bits // 8

    # -- pictures -------------------------------------------------------------------

    def _picture(self, data: bytes) -> memoryview:
        row = self.width * self.samples
        rows = _size(self.decoded) // (row * self.dtype.itemsize)
        if self.compression in _FACSIMILES:
            return self._facsimile(data, rows)
        shape = (rows, self.width) if self.samples == 1 else (rows, self.width, self.samples)
        if self.compression == "jpeg":
            found = self._jpeg(data, rows)
        elif self.compression == "lerc":
            found = imagecodecs.lerc_decode(_bounded_lerc(data, rows * row), out=np.empty(shape, self._memory))
        elif self.compression == "webp":
            _check_picture(pictures.shape_of("webp", data), rows * self.width)
            found = imagecodecs.webp_decode(data, hasalpha=True if self.samples == 4 else None)
        elif self.compression == "png":
            _check_picture(pictures.shape_of("png", data), rows * self.width)
            found = imagecodecs.png_decode(data)
        else:
            decode = getattr(imagecodecs, {"jpeg2000": "jpeg2k"}.get(self.compression, self.compression) + "_decode")
            found = decode(data, out=np.empty(shape, self._memory))
        return self._cropped(np.asarray(found), rows)

    @property
    def _memory(self) -> np.dtype[Any]:
        return self.dtype if self.dtype.kind != "b" else np.dtype("u1")

    def _jpeg(self, data: bytes, rows: int) -> NDArray[Any]:
        bits, height, width = pictures.jpeg_shape(data)
        _check_picture((height, width), rows * self.width)
        wanted: dict[str, Any] = {}
        if self.tables:
            wanted["tables"] = self.tables
        if self.colours == _COLOURS["ycbcr"]:
            wanted["outcolorspace"] = 2
        elif self.colours == _COLOURS["rgb"]:
            if b"JFIF\0" not in data[:32]:
                wanted["colorspace"] = 2  # Aperio, and others, say nothing
            wanted["outcolorspace"] = 2
        elif self.colours == _COLOURS["cmyk"]:
            wanted["outcolorspace"] = 4
        elif not self.colours and self.samples == 1:
            wanted["outcolorspace"] = 1
        found: NDArray[Any] = imagecodecs.jpeg_decode(data, bitspersample=bits, shape=(height, width), **wanted)
        return found

    def _facsimile(self, data: bytes, rows: int) -> memoryview:
        if self.is_reversed:
            data = bytes(imagecodecs.bitorder_decode(data))
        decode = getattr(imagecodecs, f"{self.compression}_decode")
        options = {"t4options": self.options} if self.compression == "ccittfax3" else {}
        return _memory(decode(data, rows, self.width, **options))

    def _cropped(self, found: NDArray[Any], rows: int) -> memoryview:
        """Return the rows and columns of a picture that are of the tile: some writers store more."""
        shape = found.shape if found.ndim > 2 else (*found.shape, 1)
        if self.samples == 1 and self.compression == "webp":  # which has no grey
            found, shape = found[:, :, :1], (*shape[:2], 1)
        if len(shape) != 3 or shape[0] < rows or shape[1] < self.width or shape[2] != self.samples:
            raise ValueError(f"a picture of shape {found.shape}, expected {(rows, self.width, self.samples)}")
        part = found.reshape(shape)[:rows, : self.width]
        if part.dtype.itemsize != self.dtype.itemsize:
            raise ValueError(f"elements of type {part.dtype}, expected {self.dtype}")
        return _memory(part.astype(part.dtype.newbyteorder("<"), copy=False))


def _memory(array: Any) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _unpacked(compression: str, data: bytes, size: int) -> bytes:
    """Return at most `size` bytes of a stream, and a few more."""
    if compression == "none":
        return data[:size]
    if compression == "deflate":
        return bytes(imagecodecs.zlib_decode(data, out=size))
    if compression == "zstd":
        return bytes(imagecodecs.zstd_decode(data, out=size))
    if compression == "lzw":
        return bytes(imagecodecs.lzw_decode(data, out=size))
    if compression == "packbits":
        return bytes(imagecodecs.packbits_decode(data, out=size))
    return bytes(imagecodecs.lzma_decode(data, out=size))


def _check_picture(shape: tuple[int, ...], pixels: int) -> None:
    """Raise ChunkSizeError if a picture is much larger than its tile."""
    found = shape[0] * shape[1]
    if found > _SLACKNESS * pixels + _SLACK:
        raise ChunkSizeError(
            "a picture is much larger than its tile", found=f"{shape[0]} by {shape[1]} pixels",
            expected=f"{pixels} pixels",
        )  # fmt: skip


def _bounded_lerc(data: bytes, elements: int) -> bytes:
    """Return LERC data, without the compression around it that TIFF allows."""
    most = 2 * 8 * elements + _SLACK
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return bytes(imagecodecs.zstd_decode(data, out=most))
    if data[:1] == b"\x78":
        return bytes(imagecodecs.zlib_decode(data, out=most))
    return data


def bind(configuration: Configuration, decoded: BytesSpec) -> Tiff:
    """Return the codec."""
    known = ("compression", "width", "samples", "data_type", "fill_order", "elements", "bits", "endian")
    fields = Fields(configuration, (*known, "tables", "colours", "options"), _SPEC)
    compression = fields.choice("compression", {name: name for name in (*_STREAMS, *_PICTURES)})
    elements = fields.choice("elements", {name: name for name in _ELEMENTS}, "")
    dtype = fields.choice("data_type", _TYPES, "uint8")
    if (compression in _PICTURES or elements) and not fields.has("data_type"):
        raise CodecError("the data type of what is decoded is missing", found=dict(configuration), expected="data_type")
    try:
        tables = base64.b64decode(fields.text("tables", ""), validate=True)
    except binascii.Error as error:
        raise fields.reject("tables", "the tables are not in base 64", "text", "base 64") from error
    return Tiff(
        compression, fields.integer("width", low=1, high=_MOST), fields.integer("samples", 1, 1, _MOST), dtype,
        fields.choice("endian", _ORDERS, "little"), elements, fields.integer("bits", 8 * dtype.itemsize, 1, 128),
        fields.integer("fill_order", 1, 1, 2) == 2, fields.choice("colours", _COLOURS, ""), tables,
        fields.integer("options", 0, 0, 2**32 - 1), decoded,
    )  # fmt: skip


# -- predictors ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Predictor:
    """Differences along rows.

    Attributes
    ----------
    is_floating : bool
        Whether they are of bytes, ordered by significance.
    row : int
        Elements of a row.
    samples : int
    dtype : dtype
        Of the elements, in the order of bytes in which they are stored.
    decoded : BytesSpec
    """

    is_floating: bool
    row: int
    samples: int
    dtype: np.dtype[Any]
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """As many bytes."""
        return self.decoded

    def describe_native(self, _spec: BytesSpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        size, swapped = self.dtype.itemsize, not self.dtype.isnative
        return "tiff_predictor", self.row, self.samples, size, swapped, self.is_floating

    def _rows(self, data: Buffer) -> NDArray[np.uint8]:
        length = self.row * self.dtype.itemsize
        if len(data) % length:
            raise ChunkSizeError("no whole number of rows", found=f"{len(data)} bytes", expected=f"rows of {length}")
        return np.frombuffer(data, np.uint8).reshape(-1, length) if len(data) else np.empty((0, length), np.uint8)

    def encode(self, data: Buffer) -> Buffer:
        """Return the differences."""
        rows = self._rows(data)
        if not self.is_floating:
            seen = rows.view(self.dtype).reshape(len(rows), -1, self.samples).astype(self.dtype.newbyteorder("="))
            seen[:, 1:] -= seen[:, :-1].copy()
            return seen.astype(self.dtype, copy=False).reshape(-1).view(np.uint8).data
        size = self.dtype.itemsize
        big = rows.view(self.dtype).astype(self.dtype.newbyteorder(">")).view(np.uint8).reshape(len(rows), -1, size)
        planes = np.ascontiguousarray(big.transpose(0, 2, 1)).reshape(len(rows), -1, self.samples)
        planes[:, 1:] -= planes[:, :-1].copy()
        return planes.reshape(-1).data

    def decode(self, data: Buffer) -> Buffer:
        """Return the sums."""
        rows = self._rows(data)
        if not self.is_floating:
            seen = rows.view(self.dtype).reshape(len(rows), -1, self.samples)
            native = seen.astype(self.dtype.newbyteorder("="), copy=False)
            sums = np.cumsum(native, axis=1, dtype=native.dtype)
            return sums.astype(self.dtype, copy=False).reshape(-1).view(np.uint8).data
        size = self.dtype.itemsize
        planes = np.cumsum(rows.reshape(len(rows), -1, self.samples), axis=1, dtype=np.uint8)
        big = np.ascontiguousarray(planes.reshape(len(rows), size, -1).transpose(0, 2, 1))
        found = big.reshape(-1).view(self.dtype.newbyteorder(">"))
        return found.astype(self.dtype, copy=False).view(np.uint8).data


def bind_predictor(configuration: Configuration, decoded: BytesSpec) -> Predictor:
    """Return the codec."""
    fields = Fields(configuration, ("predictor", "width", "samples", "data_type", "endian"), _SPEC)
    is_floating = fields.integer("predictor", low=2, high=3) == 3
    kind = "float" if is_floating else "uint"
    dtype = fields.choice("data_type", {name: each for name, each in _TYPES.items() if name.startswith(kind)})
    samples = fields.integer("samples", 1, 1, _MOST)
    row = fields.integer("width", low=1, high=_MOST) * samples
    return Predictor(is_floating, row, samples, dtype.newbyteorder(fields.choice("endian", _ORDERS, "little")), decoded)


CODECS = (
    Record(
        id="tiff", kind=B2B, names={"tiff": Name(bind)},
        parameters={
            "compression": str, "width": int, "samples": int, "data_type": str, "fill_order": int, "elements": str,
            "bits": int, "endian": str, "tables": str, "colours": str, "options": int,
        },
        v2="-", note="reads TIFF", package=("imagecodecs", "tiff"), compresses=True,
        only_reads=True,
        words=lambda given: f"TIFF's {given.get('compression')}",
        to_v2=lambda _given: None, remedy="re-encode with zstd",
        replaced_by=lambda _given, _item_size: Named("zstd", {"level": 0, "checksum": False}),
    ),
    Record(
        id="tiff_predictor", kind=B2B, names={"tiff_predictor": Name(bind_predictor)},
        parameters={"predictor": int, "width": int, "samples": int, "data_type": str, "endian": str},
        v2="-", note="reads TIFF", words="differences along rows", only_reads=True, native=True,
        to_v2=lambda _given: None, remedy="re-encode without it, or with numcodecs.shuffle",
        replaced_by=lambda _given, _item_size: None,
    ),
)  # fmt: skip
