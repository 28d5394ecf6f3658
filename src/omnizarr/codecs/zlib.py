"""zlib: a deflate stream with a zlib header and an Adler-32 checksum.

Names: v1 and v2 ``zlib``; v3 ``numcodecs.zlib``, and ``zlib`` as zarrs writes it (neither is registered).
Configuration: ``level``, -1 to 9, default 1.
Agrees with numcodecs: bytes after the end of the stream are ignored.

Spec: RFC 1950.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.streams import Decompressor, StreamCodec
from omnizarr.errors import ChecksumError, ChunkError

ZLIB_HEADER: Final = 15
GZIP_HEADER: Final = 31


class Inflater:
    """A zlib decompressor that accepts -1 for "no limit", like those of bz2 and lzma."""

    __slots__ = ("_stream",)

    def __init__(self, wbits: int) -> None:
        self._stream = zlib.decompressobj(wbits)

    @property
    def eof(self) -> bool:
        """Whether the end of the stream has been reached."""
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the stream."""
        return self._stream.unused_data

    def decompress(self, data: Buffer, max_length: int = -1) -> bytes:
        """Return at most `max_length` bytes."""
        try:
            return self._stream.decompress(data, max(max_length, 0))
        except zlib.error as error:
            kind = ChecksumError if "incorrect data check" in str(error) else ChunkError
            raise kind(f"the compressed bytes are broken: {error}") from error


@dataclass(frozen=True, slots=True)
class Zlib(StreamCodec):
    """Deflate with a zlib header."""

    level: int
    decoded: BytesSpec

    def encode(self, data: Buffer) -> Buffer:
        """Return one stream."""
        return zlib.compress(data, self.level)

    def start(self) -> Decompressor:
        """Return a decompressor."""
        return Inflater(ZLIB_HEADER)

    def ends(self, rest: bytes) -> bool:
        """Return True: there is only one stream."""
        return True


def bind(configuration: Configuration, decoded: BytesSpec) -> Zlib:
    """Return the codec."""
    return Zlib(Fields(configuration, ("level",)).integer("level", 1, -1, 9), decoded)
