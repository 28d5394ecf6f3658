"""zlib: a deflate stream with a zlib header and an Adler-32 checksum.

Configuration: ``level``, -1 to 9, default 1.
Agrees with numcodecs: bytes after the end of the stream are ignored.

Spec: RFC 1950.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.record import B2B, ONE, Name, Parameters, Record, filter_of_level, integer, with_level
from omnizarr.codecs.streams import Decompressor, StreamCodec
from omnizarr.errors import ChecksumError, ChunkError
from omnizarr.model import Named

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

    def describe_native(self, _spec: BytesSpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        return "zlib", self.level

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


_HIGHEST: Final = 9
_USUAL: Final = 6


def _level(given: Parameters) -> int:
    level = integer(given, "level", 1)
    return min(level, _HIGHEST) if level >= 0 else _USUAL


def in_blosc(given: Parameters) -> tuple[str, int]:
    """Return zlib within Blosc."""
    return "zlib", _level(given)


CODECS = (
    Record(
        id="zlib", kind=B2B, names={"numcodecs.zlib": Name(bind, ONE), "zlib": Name(bind)},
        parameters={"level": int}, note="Python's zlib", native=True, compresses=True, words=with_level("zlib"),
        decodes_with={}, hdf5=filter_of_level(1, "zlib", 0, 9), in_blosc=in_blosc,
        # level 0 compresses nothing
        replaced_by=lambda given, _: Named("gzip", {"level": _level(given)}) if _level(given) else None,
    ),
)  # fmt: skip
