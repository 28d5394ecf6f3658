"""gzip: deflate streams with gzip headers and CRC-32 checksums.

Names: v2 ``gzip``; v3 ``gzip`` (core), ``numcodecs.gzip``.
Configuration: ``level``, 0 to 9, in v3 required by the text (6 if missing); v2 1 if missing, and -1 allowed.
Agrees with Python's gzip: several members are one value, zeros after the last are ignored,
anything else there is an error. Members are written without a time, so that equal chunks are equal bytes.

Spec: Zarr v3, "Gzip codec"; RFC 1952.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.streams import Decompressor, compressed, fill, inflate
from omnizarr.codecs.zlib import GZIP_HEADER, Inflater
from omnizarr.errors import ChunkError

_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Gzip:
    """Deflate with gzip headers."""

    level: int
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return compressed(self.decoded)

    def encode(self, data: Buffer) -> Buffer:
        """Return one member."""
        return zlib.compress(data, self.level, GZIP_HEADER)

    def decode(self, data: Buffer) -> Buffer:
        """Return what all members decode to."""
        return inflate(_start, data, self.decoded, _ends)

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with what all members decode to."""
        fill(out, self.decode(data))


def _start() -> Decompressor:
    return Inflater(GZIP_HEADER)


def _ends(rest: bytes) -> bool:
    if rest[:2] == _MAGIC:
        return False
    if rest.strip(b"\0"):
        raise ChunkError("bytes follow the gzip stream", found=rest[:8].hex(), expected="another member, or the end")
    return True


def bind(configuration: Configuration, decoded: BytesSpec) -> Gzip:
    """Return the codec of Zarr v3."""
    return Gzip(Fields(configuration, ("level",), 'Zarr v3, "Gzip codec"').integer("level", 6, 0, 9), decoded)


def bind_numcodecs(configuration: Configuration, decoded: BytesSpec) -> Gzip:
    """Return the codec of numcodecs."""
    return Gzip(Fields(configuration, ("level",)).integer("level", 1, -1, 9), decoded)
