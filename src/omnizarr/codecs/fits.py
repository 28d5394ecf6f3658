"""Elements and tiles of FITS files. The reader of FITS writes these names; they only read.

``fits``: elements that are not stored as they are in memory. Configuration: ``elements``, how they are stored:

- ``shifted``: big-endian integers of ``size`` bytes, from which half of the range is subtracted.
- ``logical``: "T" for true; all others are false.
- ``bits``: rows of ``width`` bits, the highest bit of a byte first, each in whole bytes.
- ``int64``, ``float64``: numbers as texts of ``width`` bytes. They become little-endian numbers. Nothing but spaces is
  0, and the text ``missing`` is the lowest integer, or NaN.
- ``text``: texts of ``width`` bytes, which end with the first NUL, or before the spaces at their end. They become
  UTF-32, little-endian.

``fits_tile``: tiles of compressed images. They become big-endian elements. Before a tile comes what its row of the
table says of it (`HEAD`). Configuration: ``compression`` (gzip, gzip_shuffled, plio, hcompress, none, and rice with
the package imagecodecs), ``data_type`` of the elements, ``size`` and ``block`` of rice (bytes of an integer, and how
many integers are packed in one way). ``quantized``: whether the tile holds integers that represent floating-point
numbers, and then ``dither`` (0, 1 or 2, the number of the method) and its ``seed``.

Spec: FITS Standard 4.0, sections 5.2.5, 7.3.3 and 10.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs import hcompress
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import B2B, Name, Record
from omnizarr.codecs.streams import changed_by, compressed, limit_of
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.model import Named
from omnizarr.support.lazy import Lazy

imagecodecs: Any = Lazy("imagecodecs")
_SPEC: Final = "FITS Standard 4.0"
_ELEMENTS: Final = ("shifted", "logical", "bits", "text", "int64", "float64")
_MOST: Final = 2**31 - 1
_SIGN: Final = 0x80
_DECIMAL: Final = ("int64", "float64")
_EXPONENT: Final = bytes.maketrans(b"Dd", b"Ee")
_LEAST: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class Fits:
    """How elements are stored.

    Attributes
    ----------
    elements : str
    size : int
        Bytes of a shifted element.
    width : int
        Bits of a row, or bytes of a text.
    missing : str
        What means that there is no number.
    decoded : BytesSpec
    """

    elements: str
    size: int
    width: int
    missing: str
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """As many bytes as the elements take in the file."""
        size = limit_of(self.decoded)
        if size is None:
            raise CodecError("the size of a chunk must be known", found=self.decoded)
        if self.elements == "bits":
            size = size // self.width * -(-self.width // 8)
        elif self.elements == "text":
            size //= 4
        elif self.elements in _DECIMAL:
            size = size // 8 * self.width
        return BytesSpec(size)

    def encode(self, data: Buffer) -> Buffer:
        """Raise CodecError: this codec reads files that others wrote."""
        raise CodecError("elements of FITS files are only read", codec="fits", remedy="write another codec: zstd")

    def decode(self, data: Buffer) -> Buffer:
        """Return the elements."""
        expected = self.encoded.nbytes
        if len(data) != expected:
            raise ChunkSizeError(
                "a chunk of a FITS file has the wrong size", found=f"{len(data)} bytes", expected=f"{expected} bytes"
            )
        raw = np.frombuffer(data, np.uint8)
        if self.elements == "shifted":
            found = raw.copy()
            found[:: self.size] ^= _SIGN
        elif self.elements == "logical":
            found = (raw == ord("T")).view(np.uint8)
        elif self.elements == "bits":
            rows = raw.reshape(-1, -(-self.width // 8))
            found = np.unpackbits(rows, axis=1, count=self.width)
        elif self.elements == "text":
            found = _texts(raw.reshape(-1, self.width))
        else:
            found = self._numbers(bytes(data))
        return np.ascontiguousarray(found).reshape(-1).view(np.uint8).data

    def _numbers(self, data: bytes) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the numbers that texts say."""
        words = np.char.strip(np.frombuffer(data.replace(b"\0", b" "), f"S{self.width}"))
        words = np.where(words == b"", b"0", words)
        is_missing = words == self.missing.encode() if self.missing else np.zeros(len(words), np.bool_)
        words = np.where(is_missing, b"0", words)
        if self.elements == "float64":
            words = np.frombuffer(words.tobytes().translate(_EXPONENT), words.dtype)
        try:
            found = words.astype(f"<{self.elements[0]}8")
        except (ValueError, OverflowError) as error:
            raise ChunkError(f"a field in a table of a FITS file is not a number: {error}", spec=_SPEC) from error
        found[is_missing] = np.nan if self.elements == "float64" else _LEAST
        return found


def _texts(rows: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return rows of bytes as UTF-32, without what follows a NUL, and without spaces at the end."""
    is_text = np.logical_and.accumulate(rows != 0, axis=1)
    shown = np.where(is_text, rows, ord(" "))
    behind = np.logical_and.accumulate(shown[:, ::-1] == ord(" "), axis=1)[:, ::-1]
    return np.where(behind, 0, shown).astype("<u4")


def bind(configuration: Configuration, decoded: BytesSpec) -> Fits:
    """Return the codec."""
    fields = Fields(configuration, ("elements", "size", "width", "missing"), _SPEC)
    elements = fields.choice("elements", {name: name for name in _ELEMENTS})
    size, width = fields.integer("size", 1, 1, 8), fields.integer("width", 1, 1, _MOST)
    return Fits(elements, size, width, fields.text("missing", ""), decoded)


# -- tiles ---------------------------------------------------------------------------------

HEAD: Final = struct.Struct(">ddqqi")
"""Of a tile: scale and zero of quantized numbers, its number, the integer that means NaN, and where it is stored.

The last is 0 for a tile in its compression, 1 for elements in gzip that are not quantized, and 2 for plain elements.
"""
_COMPRESSIONS: Final = ("rice", "gzip", "gzip_shuffled", "plio", "hcompress", "none")
_STORED: Final = {
    name: np.dtype(name).newbyteorder(">") for name in ("uint8", "int16", "int32", "int64", "float32", "float64")
}
_RANDOM: Final = 10_000
_ZERO: Final = -2147483646
_WIDEST: Final = 8


@dataclass(frozen=True, slots=True)
class Tile:
    """A compression of tiles.

    Attributes
    ----------
    compression : str
    dtype : dtype
        Of the elements, big-endian.
    size, block : int
    is_quantized : bool
    dither, seed : int
    decoded : BytesSpec
    """

    compression: str
    dtype: np.dtype[Any]
    size: int
    block: int
    is_quantized: bool
    dither: int
    seed: int
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return changed_by(compressed(self.decoded), HEAD.size)

    def encode(self, data: Buffer) -> Buffer:
        """Raise CodecError: this codec reads files that others wrote."""
        raise CodecError("tiles of FITS files are only read", codec="fits_tile", remedy="write another codec: zstd")

    def decode(self, data: Buffer) -> Buffer:
        """Return the elements of a tile."""
        size = limit_of(self.decoded)
        if size is None or len(data) < HEAD.size:
            raise ChunkError("a tile of a FITS file has no head", found=f"{len(data)} bytes")
        count = size // self.dtype.itemsize
        scale, zero, number, blank, kind = HEAD.unpack_from(data)
        body = bytes(data[HEAD.size :])
        try:
            if kind == 1:
                found = _viewed(_inflated(body, count), count, self.dtype.kind)
            elif kind == 2:
                found = _viewed(body, count, self.dtype.kind)
            else:
                found = self._integers(body, count)
                if self.is_quantized:
                    found = self._numbers(found, scale, zero, number, blank)
        except (ValueError, RuntimeError, zlib.error, OverflowError, IndexError) as error:
            if isinstance(error, ChunkError):
                raise
            raise ChunkError(f"a tile of a FITS file cannot be decoded by {self.compression}: {error}") from error
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(found.astype(self.dtype, copy=False)).view(np.uint8).data

    def _integers(self, body: bytes, count: int) -> NDArray[Any]:
        """Return what the compression holds: numbers, as many as the tile has elements."""
        kind = "i" if self.is_quantized else self.dtype.kind
        if self.compression == "rice":
            dtype = "u1" if self.size == 1 else f"i{self.size}"
            return np.asarray(imagecodecs.rcomp_decode(body, shape=(count,), dtype=dtype, nblock=self.block))
        if self.compression == "plio":
            return _plio(body, count)
        if self.compression == "hcompress":
            return hcompress.decode(body, count)
        raw = body if self.compression == "none" else _inflated(body, count)
        if self.compression == "gzip_shuffled" and count:
            width = len(raw) // count
            raw = np.frombuffer(raw, np.uint8, width * count).reshape(width, count).T.tobytes()
        return _viewed(raw, count, kind)

    def _numbers(self, found: NDArray[Any], scale: float, zero: float, number: int, blank: int) -> NDArray[Any]:
        """Return the floating-point numbers that integers represent."""
        whole = found.astype(np.float64)
        if self.dither:
            whole = whole - _dithers(number + self.seed - 1, len(found)) + 0.5
        with np.errstate(all="ignore"):
            numbers: NDArray[Any] = whole * scale + zero
        if self.dither == 2:
            numbers[found == _ZERO] = 0
        numbers[found == blank] = np.nan
        return numbers


def _inflated(body: bytes, count: int) -> bytes:
    """Return the bytes in gzip, no more than the widest elements take."""
    unpacker = zlib.decompressobj(31)
    found = unpacker.decompress(body, _WIDEST * count + 1)
    if len(found) > _WIDEST * count or not unpacker.eof:
        raise ValueError(f"{len(found)} bytes or more, expected {count} elements")
    return found


def _viewed(raw: bytes, count: int, kind: str) -> NDArray[Any]:
    """Return bytes as big-endian numbers, whose width follows from how many there are."""
    width = len(raw) // count if count else 1
    if width * count != len(raw) or width not in (1, 2, 4, 8) or (kind == "f" and width < 4):
        raise ValueError(f"{len(raw)} bytes, expected {count} elements")
    return np.frombuffer(raw, ">u1" if width == 1 else f">{'f' if kind == 'f' else 'i'}{width}")


@cache
def _randoms() -> NDArray[np.float32]:
    """Return the random numbers of the standard."""
    found, seed = np.empty(_RANDOM, np.float32), 1
    for at in range(_RANDOM):
        seed = 16807 * seed % 2147483647
        found[at] = seed / 2147483647.0
    return found


def _dithers(first: int, count: int) -> NDArray[np.float64]:
    """Return what was added to the numbers of a tile before they were rounded."""
    table = _randoms()
    parts: list[NDArray[np.float32]] = []
    seed = first % _RANDOM
    left = count
    while left > 0:
        part = table[int(table[seed] * 500) :][:left]
        parts.append(part)
        left -= len(part)
        seed = (seed + 1) % _RANDOM
    return np.concatenate(parts).astype(np.float64) if parts else np.empty(0)


def _plio(body: bytes, count: int) -> NDArray[Any]:
    """Return the integers of a list of runs, as IRAF writes it."""
    words = np.frombuffer(body, ">i2", len(body) // 2).tolist()
    if len(words) < 3:
        raise ValueError("there is no list")
    length, at = (words[2], 3) if words[2] > 0 else ((words[4] << 15) + words[3], words[1])
    found = np.zeros(count, np.int32)
    place, value = 0, 1
    length = min(length, len(words))
    while at < length and place < count:
        code, data = words[at] >> 12, words[at] & 4095
        at += 1
        if code in (0, 4, 5):
            stop = place + data
            if code == 4:
                found[place:stop] = value
            elif code == 5 and 0 < stop <= count:
                found[stop - 1] = value
            place = stop
        elif code == 1:
            value = (words[at] << 12) + data
            at += 1
        elif code in (2, 3, 6, 7):
            value += data if code in (2, 6) else -data
            if code > 3:
                found[place] = value
                place += 1
        else:
            raise ValueError(f"there is no instruction {code}")
    return found


def bind_tile(configuration: Configuration, decoded: BytesSpec) -> Tile:
    """Return the codec."""
    known = ("compression", "data_type", "size", "block", "quantized", "dither", "seed")
    fields = Fields(configuration, known, _SPEC)
    size = fields.integer("size", 4, 1, 4)
    if size == 3:
        raise fields.reject("size", "an integer has 1, 2 or 4 bytes", size, "1, 2 or 4")
    return Tile(
        fields.choice("compression", {name: name for name in _COMPRESSIONS}), fields.choice("data_type", _STORED),
        size, fields.integer("block", 32, 1, 1 << 16), fields.boolean("quantized", default=False),
        fields.integer("dither", 0, 0, 2), fields.integer("seed", 1, -_MOST, _MOST), decoded,
    )  # fmt: skip


CODECS = (
    Record(
        id="fits", kind=B2B, names={"fits": Name(bind)},
        parameters={"elements": str, "size": int, "width": int, "missing": str},
        v2="-", note="reads FITS", only_reads=True, words=lambda given: f"FITS's {given.get('elements')} elements",
        to_v2=lambda _given: None, remedy="re-encode without it",
        replaced_by=lambda _given, _item_size: None,
    ),
    Record(
        id="fits_tile", kind=B2B, names={"fits_tile": Name(bind_tile)},
        parameters={
            "compression": str, "data_type": str, "size": int, "block": int, "quantized": bool, "dither": int,
            "seed": int,
        },
        v2="-", note="reads FITS", package=("imagecodecs", "tiff"), compresses=True, only_reads=True,
        words=lambda given: f"FITS's {given.get('compression')}",
        to_v2=lambda _given: None, remedy="re-encode with zstd",
        replaced_by=lambda _given, _item_size: Named("zstd", {"level": 0, "checksum": False}),
    ),
)  # fmt: skip
