"""gzip: deflate streams with gzip headers and CRC-32 checksums.

Configuration: ``level``, 0 to 9, required in v3 by the specification (6 if missing); v2 1 if missing, and -1 allowed.
Agrees with Python's gzip: several members are one value, zeros after the last are ignored,
anything else there is an error. Members are written without a time, so that equal chunks have equal bytes.

Spec: Zarr v3, "Gzip codec"; RFC 1952.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.record import ALL, B2B, Name, Parameters, Record, with_level
from omnizarr.codecs.streams import Decompressor, StreamCodec, check_size, limit_of
from omnizarr.codecs.zlib import GZIP_HEADER, ZLIB_HEADER, Inflater, in_blosc
from omnizarr.errors import ChunkError
from omnizarr.model import Named

_MAGIC = b"\x1f\x8b"
_HEAD: Final = _MAGIC + b"\x08\0\0\0\0\0\0\xff"
"""Header of a member: deflate, without a name, a time or a system."""
_ZLIB_HEAD: Final = 2
_ZLIB_TAIL: Final = 4


@dataclass(frozen=True, slots=True)
class Gzip(StreamCodec):
    """Deflate with gzip headers."""

    level: int
    decoded: BytesSpec

    def describe_native(self, _spec: BytesSpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        return "gzip", self.level

    def encode(self, data: Buffer) -> Buffer:
        """Return one member."""
        return zlib.compress(data, self.level, GZIP_HEADER)

    def start(self) -> Decompressor:
        """Return a decompressor of one member."""
        return Inflater(GZIP_HEADER)

    def ends(self, rest: bytes) -> bool:
        """Zeros after the last member are ignored; raises ChunkError for other bytes."""
        if rest[:2] == _MAGIC:
            return False
        if rest.strip(b"\0"):
            raise ChunkError(
                "bytes follow the gzip stream", found=rest[:8].hex(), expected="another member, or the end"
            )
        return True


def from_zlib(data: Buffer, decoded: BytesSpec) -> bytes:
    """Return a zlib stream as a gzip member: the same deflate stream, with another header and checksum.

    Raises ChunkError if the stream is broken.

    Examples
    --------
    >>> zlib.decompress(from_zlib(zlib.compress(b"abc"), BytesSpec(3)), GZIP_HEADER)
    b'abc'
    """
    stream, limit = Inflater(ZLIB_HEADER), limit_of(decoded)
    # One byte more than allowed, which shows whether there is more, and lets the stream reach its end.
    plain = stream.decompress(data, -1 if limit is None else limit + 1)
    check_size(len(plain), decoded)
    if not stream.eof:
        raise ChunkError("the compressed bytes are cut off", found=f"{len(data)} bytes, {len(plain)} when decoded")
    deflated = memoryview(data)[_ZLIB_HEAD : len(data) - len(stream.unused_data) - _ZLIB_TAIL]
    tail = zlib.crc32(plain).to_bytes(4, "little") + (len(plain) % 2**32).to_bytes(4, "little")
    return b"".join((_HEAD, deflated, tail))


def bind(configuration: Configuration, decoded: BytesSpec) -> Gzip:
    """Return the codec of Zarr v3."""
    return Gzip(Fields(configuration, ("level",), 'Zarr v3, "Gzip codec"').integer("level", 6, 0, 9), decoded)


def bind_numcodecs(configuration: Configuration, decoded: BytesSpec) -> Gzip:
    """Return the codec of numcodecs."""
    return Gzip(Fields(configuration, ("level",)).integer("level", 1, -1, 9), decoded)


def _from_v2(given: Parameters, _item_size: int) -> Named | None:
    level = given.get("level", 1)
    is_plain = given.keys() <= {"level"} and type(level) is int and 0 <= level <= 9
    return Named("gzip", {"level": level}) if is_plain else None


CODECS = (
    Record(
        id="gzip", kind=B2B,
        names={
            "gzip": Name(bind, ALL, "core", ("level",)),
            "numcodecs.gzip": Name(bind_numcodecs, required=("level",)),
        },
        parameters={"level": int}, note="Python's zlib", native=True, compresses=True, words=with_level("gzip"),
        decodes_with={"level": 1}, from_v2=_from_v2, in_blosc=in_blosc,
    ),
)  # fmt: skip
