"""Fields of GRIB messages, of editions 1 and 2. The reader of GRIB writes this name; it only reads.

A message becomes its values, little-endian float64 in the order in which the message has them; points that its bitmap
leaves out, and those that complex packing calls missing, are NaN. Configuration: ``order`` ("rows", or "columns" of
``width`` points each, which are turned into rows), ``is_alternating`` (every second row runs backwards), ``has_number``
(four bytes before the message say which of its fields is meant).

Packings: simple, complex with and without spatial differences, IEEE, constant fields; with the package imagecodecs JPEG
2000, PNG and CCSDS. Values are those that ecCodes computes, bit by bit: (X * 2^E + R) * 10^-D in float64.

Spec: WMO, Manual on Codes, FM 92 GRIB, editions 1 and 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import B2B, Name, Record
from omnizarr.codecs.streams import limit_of
from omnizarr.errors import ChunkError, CodecError
from omnizarr.model import Named
from omnizarr.support.lazy import Lazy

imagecodecs: Any = Lazy("imagecodecs")

_SPEC: Final = "WMO FM 92 GRIB"
_SLACK: Final = 1 << 16
_PER_POINT: Final = 32  # bytes that a message may have for each point, besides
_MOST_BITS: Final = 57
_MOST: Final = 2**31 - 1
_SECTIONS: Final = range(1, 8)


class Section(NamedTuple):
    """A section of edition 2: its number, and where it begins and ends."""

    number: int
    start: int
    stop: int


def sections(data: memoryview) -> Iterator[Section]:
    """Yield the sections of a message of edition 2, as far as they are complete. Raises ValueError."""
    at = 16
    while at + 5 <= len(data) and bytes(data[at : at + 4]) != b"7777":
        length, number = struct.unpack_from(">IB", data, at)
        if length < 5 or number not in _SECTIONS or at + length > len(data):
            raise ValueError(f"a section {number} of {length} bytes at byte {at}")
        yield Section(number, at, at + length)
        at += length


def signed(raw: Buffer) -> int:
    """Return an integer whose first bit is its sign."""
    found = int.from_bytes(raw, "big")
    top = 1 << (8 * len(raw) - 1)
    return -(found - top) if found & top else found


def ibm(raw: Buffer) -> float:
    """Return a number in the format of IBM's mainframes."""
    sign, exponent, mantissa = raw[0] >> 7, raw[0] & 127, int.from_bytes(raw[1:4], "big")
    return float((-1) ** sign * mantissa * 16.0 ** (exponent - 70))


def power(base: int, exponent: int) -> float:
    """Return a power as ecCodes computes it, one factor after the other."""
    found = 1.0
    for _ in range(abs(exponent)):
        found = found * base if exponent > 0 else found / base
    return found


def unpacked(data: memoryview, starts: NDArray[np.int64], widths: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Return unsigned integers of up to 57 bits, from the places of their first bits. Raises ValueError."""
    if not len(starts):
        return np.empty(0, np.int64)
    stop = int((starts + widths).max())
    if stop > 8 * len(data) or int(np.max(widths)) > _MOST_BITS:
        raise ValueError(f"{len(data)} bytes, expected {-(-stop // 8)}")
    whole = bytes(data) + bytes(8)
    words = np.ndarray((len(data) + 1,), ">u8", whole, strides=(1,))
    found = words[starts >> 3].astype(np.uint64)
    found <<= (starts & 7).astype(np.uint64)
    width = np.asarray(widths, np.uint64)
    shifted = np.where(width == 0, np.uint64(0), found >> (np.uint64(64) - np.maximum(width, np.uint64(1))))
    return shifted.astype(np.int64)


def _row(data: memoryview, count: int, width: int) -> tuple[NDArray[np.int64], memoryview]:
    """Return integers of one width, and the bytes behind them."""
    if width * count > 8 * len(data):
        raise ValueError(f"{len(data)} bytes, expected {count} integers of {width} bits")
    if not width:
        return np.zeros(count, np.int64), data
    found = unpacked(data, np.arange(count, dtype=np.int64) * width, width)
    return found, data[-(-width * count // 8) :]


# -- packings ------------------------------------------------------------------------------


class Packed(NamedTuple):
    """How integers represent values."""

    reference: float
    binary: int
    decimal: int
    bits: int

    def values(self, whole: NDArray[Any]) -> NDArray[np.float64]:
        """Return the values of integers."""
        with np.errstate(all="ignore"):
            return (whole * power(2, self.binary) + self.reference) * power(10, -self.decimal)


def _packed(section: memoryview) -> Packed:
    reference = struct.unpack_from(">f", section, 11)[0]
    return Packed(float(reference), signed(section[15:17]), signed(section[17:19]), section[19])


def _simple(packed: Packed, count: int, _section: memoryview, data: memoryview) -> NDArray[np.float64]:
    return packed.values(_row(data, count, packed.bits)[0])


def _jpeg2000(packed: Packed, count: int, _section: memoryview, data: memoryview) -> NDArray[np.float64]:
    raw = bytes(data)
    at = raw.find(b"\xff\x4f\xff\x51")
    if at < 0 or len(raw) < at + 24:
        raise ValueError("no picture of JPEG 2000")
    right, low, left, high = struct.unpack_from(">IIII", raw, at + 8)
    if (right - left) * (low - high) != count:
        raise ValueError(f"a picture of {right - left} by {low - high} points, expected {count}")
    return packed.values(np.asarray(imagecodecs.jpeg2k_decode(raw)).reshape(-1).astype(np.float64))


def _png(packed: Packed, count: int, _section: memoryview, data: memoryview) -> NDArray[np.float64]:
    raw = bytes(data)
    if raw[:4] != b"\x89PNG" or len(raw) < 26:
        raise ValueError("no picture of PNG")
    width, height = struct.unpack_from(">II", raw, 16)
    if width * height != count:
        raise ValueError(f"a picture of {width} by {height} points, expected {count}")
    found = np.asarray(imagecodecs.png_decode(raw)).reshape(count, -1)
    if found.dtype.itemsize == 2:
        found = found.astype(">u2").view(np.uint8).reshape(count, -1)
    whole = np.zeros(count, np.int64)
    for column in range(found.shape[1]):
        whole = whole * 256 + found[:, column]
    return packed.values(whole)


def _ccsds(packed: Packed, count: int, section: memoryview, data: memoryview) -> NDArray[np.float64]:
    size = 1 if packed.bits <= 8 else 2 if packed.bits <= 16 else 4
    flags, block, interval = section[21] & ~6, section[22], int.from_bytes(section[23:25], "big")
    whole = -(-count // max(1, block)) * max(1, block)  # the last block is decoded whole
    raw = imagecodecs.aec_decode(
        bytes(data), bitspersample=packed.bits, flags=flags, blocksize=block, rsi=interval, out=whole * size
    )
    return packed.values(np.frombuffer(raw, f"<u{size}", count))


def _ieee(_packed_as: Packed, count: int, section: memoryview, data: memoryview) -> NDArray[np.float64]:
    size = {1: 4, 2: 8}.get(section[11])
    if size is None:
        raise ValueError(f"numbers of precision {section[11]}")
    return np.frombuffer(data, f">f{size}", count).astype(np.float64)


def _complex(packed: Packed, count: int, section: memoryview, data: memoryview) -> NDArray[np.float64]:
    missing, groups = section[22], int.from_bytes(section[31:35], "big")
    width_reference, width_bits = section[35], section[36]
    length_reference, step, last = struct.unpack_from(">IBI", section, 37)
    length_bits = section[46]
    order, octets = (section[47], section[48]) if len(section) > 48 else (0, 0)
    if order not in (0, 1, 2) or octets > 8:
        raise ValueError(f"differences of order {order} with {octets} octets")
    if groups > count or (groups == 0) != (count == 0):
        raise ValueError(f"{groups} groups of {count} points")
    firsts = [int.from_bytes(data[octets * at : octets * (at + 1)], "big") for at in range(order)]
    least = signed(data[octets * order : octets * (order + 1)]) if order and octets else 0
    rest = data[octets * (order + 1) :] if order else data
    references, rest = _row(rest, groups, packed.bits)
    widths, rest = _row(rest, groups, width_bits)
    lengths, rest = _row(rest, groups, length_bits)
    widths = widths + width_reference
    lengths = lengths * step + length_reference
    if groups:
        lengths[-1] = last
    if int(lengths.sum()) != count or (groups and int(lengths.max()) > count):
        raise ValueError(f"groups of {int(lengths.sum())} points, expected {count}")
    each = np.repeat(widths, lengths)
    ends = np.cumsum(each)
    inside = unpacked(rest, ends - each, each)
    whole = inside + np.repeat(references, lengths)
    is_missing = np.zeros(count, np.bool_)
    for number in range(1, 3):
        if missing >= number:
            full = (np.int64(1) << np.minimum(each, 62)) - number
            is_missing |= (each > 0) & (inside == full)
            is_missing |= (each == 0) & (whole == (1 << packed.bits) - number)
    if order:
        there = whole[~is_missing] + least
        there[: min(order, len(there))] = firsts[: len(there)]
        with np.errstate(all="ignore"):
            if order == 2:
                steps = np.concatenate([there[:1], np.diff(there[:2]), there[2:]])
                steps[1:] = np.cumsum(steps[1:])
                there = np.cumsum(steps)
            else:
                there = np.cumsum(there)
        whole = whole.copy()
        whole[~is_missing] = there
    values = packed.values(whole)
    values[is_missing] = np.nan
    return values


PACKINGS: Final[dict[int, Any]] = {
    0: _simple, 2: _complex, 3: _complex, 4: _ieee, 40: _jpeg2000, 40000: _jpeg2000, 41: _png, 40010: _png, 42: _ccsds,
}  # fmt: skip
"""Packings of edition 2, by the number of their template."""


def _edition2(data: memoryview, number: int, points: int) -> NDArray[np.float64]:
    """Return the values of a field of a message of edition 2."""
    found: dict[int, memoryview] = {}
    bitmap: memoryview | None = None
    for section in sections(data):
        part = data[section.start : section.stop]
        found[section.number] = part
        if section.number == 6:
            if part[5] == 0:
                bitmap = part[6:]
            elif part[5] != 254:
                if part[5] != 255:
                    raise ValueError(f"a bitmap with the number {part[5]}, which the message does not have")
                bitmap = None
        elif section.number == 7:
            if not number:
                break
            number -= 1
    else:
        raise ValueError("the message has no such field")
    described = found[5]
    count, template = struct.unpack_from(">IH", described, 5)
    _check_points(count, bitmap, points)
    decode = PACKINGS.get(template)
    if decode is None:
        raise ValueError(f"the packing has the number {template}, which is not supported")
    packed = _packed(described) if template != 4 else Packed(0.0, 0, 0, 0)
    if template in (0, 40, 40000, 41, 40010, 42) and packed.bits == 0:
        values = np.full(count, packed.reference * power(10, -packed.decimal))
    else:
        values = decode(packed, count, described, found[7][5:])
    return _placed(values, bitmap, points)


def _check_points(count: int, bitmap: memoryview | None, points: int) -> None:
    if count > points or (bitmap is None and count != points) or (bitmap is not None and 8 * len(bitmap) < points):
        raise ValueError(f"{count} points, expected {points}")


def _placed(values: NDArray[np.float64], bitmap: memoryview | None, points: int) -> NDArray[np.float64]:
    """Return values at the points that a bitmap says."""
    if bitmap is None:
        return values
    is_there = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=points).astype(np.bool_)
    if int(is_there.sum()) != len(values):
        raise ValueError(f"a bitmap of {int(is_there.sum())} points, expected {len(values)}")
    found = np.full(points, np.nan)
    found[is_there] = values
    return found


class Edition1(NamedTuple):
    """Where the sections of a message of edition 1 begin; None for those that it does not have."""

    product: int
    grid: int | None
    bitmap: int | None
    data: int


def edition1(data: memoryview) -> Edition1:
    """Return where the sections of a message of edition 1 begin. Raises ValueError or IndexError."""
    at = 8
    flags = data[at + 7]
    begins: list[int | None] = []
    at += _length1(data, at)
    for flag in (0x80, 0x40):
        begins.append(at if flags & flag else None)
        if flags & flag:
            at += _length1(data, at)
    return Edition1(8, begins[0], begins[1], at)


def _length1(data: memoryview, at: int) -> int:
    length = int.from_bytes(data[at : at + 3], "big")
    if length < 6:
        raise ValueError(f"a section of {length} bytes at byte {at}")
    return length


def _edition1(data: memoryview, points: int) -> NDArray[np.float64]:
    """Return the values of a message of edition 1."""
    places = edition1(data)
    section = data[places.data :]
    flags, bits = section[3], section[10]
    if flags & 0xC0:
        raise ValueError("spherical harmonics, or second-order packing, which are not supported")
    bitmap = None
    if places.bitmap is not None:
        if data[places.bitmap + 4] or data[places.bitmap + 5]:
            raise ValueError("a bitmap that the message does not have")
        bitmap = data[places.bitmap + 6 : places.bitmap + _length1(data, places.bitmap)]
    packed = Packed(
        ibm(section[6:10]), signed(section[4:6]), signed(data[places.product + 26 : places.product + 28]), bits
    )
    count = points
    if bitmap is not None:
        count = int(np.unpackbits(np.frombuffer(bitmap, np.uint8)[: -(-points // 8)], count=points).sum())
    _check_points(count, bitmap, points)
    if not bits:
        return _placed(np.full(count, packed.reference * power(10, -packed.decimal)), bitmap, points)
    return _placed(_simple(packed, count, section, section[11:]), bitmap, points)


def _decoded(data: memoryview, number: int, points: int) -> NDArray[np.float64]:
    """Return the values of a field of a message."""
    if bytes(data[:4]) != b"GRIB" or data[7] not in (1, 2):
        raise ValueError("there is no message")
    return _edition1(data, points) if data[7] == 1 else _edition2(data, number, points)


# -- the codec -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grib:
    """Fields of messages.

    Attributes
    ----------
    width : int
        Points of a row, or of a column; 0 if the points have no rows.
    is_columns, is_alternating, has_number : bool
    decoded : BytesSpec
    """

    width: int
    is_columns: bool
    is_alternating: bool
    has_number: bool
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return BytesSpec(None, max_nbytes=_PER_POINT * self.points + _SLACK * 16)

    @property
    def points(self) -> int:
        """How many points a field has."""
        size = limit_of(self.decoded)
        if size is None:
            raise CodecError("the size of a chunk must be known", found=self.decoded)
        return size // 8

    def encode(self, data: Buffer) -> Buffer:
        """Raise CodecError: this codec reads files that others wrote."""
        raise CodecError("messages of GRIB files are only read", codec="grib", remedy="write another codec: zstd")

    def decode(self, data: Buffer) -> Buffer:
        """Return the values of a message."""
        view = memoryview(data)
        number = 0
        try:
            if self.has_number:
                number, view = int.from_bytes(view[:4], "big"), view[4:]
            found = _decoded(view, number, self.points)
        except (ValueError, IndexError, KeyError, struct.error, RuntimeError, OverflowError, TypeError) as error:
            raise ChunkError(f"the message cannot be decoded: {error}", spec=_SPEC) from error
        return self._ordered(found).view(np.uint8).data

    def _ordered(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values by rows, each in the direction of the first."""
        if self.width and (self.is_columns or self.is_alternating):
            lines = values.reshape(-1, self.width)
            if self.is_alternating:
                lines = lines.copy()
                lines[1::2] = lines[1::2, ::-1]
            values = (lines.T if self.is_columns else lines).reshape(-1)
        return np.ascontiguousarray(values, "<f8")


def bind(configuration: Configuration, decoded: BytesSpec) -> Grib:
    """Return the codec."""
    fields = Fields(configuration, ("width", "order", "is_alternating", "has_number"), _SPEC)
    width = fields.integer("width", 0, 0, _MOST)
    codec = Grib(
        width, fields.choice("order", {"rows": False, "columns": True}, "rows"),
        fields.boolean("is_alternating", default=False), fields.boolean("has_number", default=False), decoded,
    )  # fmt: skip
    if width and codec.points % width:
        raise fields.reject("width", "the points are no whole number of rows", width, f"a divisor of {codec.points}")
    return codec


CODECS = (
    Record(
        id="grib", kind=B2B, names={"grib": Name(bind)},
        parameters={"width": int, "order": str, "is_alternating": bool, "has_number": bool},
        v2="-", note="reads GRIB", package=("imagecodecs", "tiff"), compresses=True, only_reads=True,
        words="a message of GRIB",
        to_v2=lambda _given: None, remedy="re-encode with zstd",
        replaced_by=lambda _given, _item_size: Named("zstd", {"level": 0, "checksum": False}),
    ),
)  # fmt: skip
