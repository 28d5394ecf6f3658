"""bz2: streams of bzip2.

Configuration: ``level``, 1 to 9, default 1.
Agrees with Python's bz2: several streams are one value; bytes after them are ignored.
"""

from __future__ import annotations

import bz2
from dataclasses import dataclass

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import B2B, ONE, STRONG, Name, Record, filter_of_level, with_level
from omnizarr.codecs.streams import Decompressor, StreamCodec

_MAGIC = b"BZh"


@dataclass(frozen=True, slots=True)
class Bz2(StreamCodec):
    """bzip2."""

    broken = (OSError, EOFError)

    level: int
    decoded: BytesSpec

    def encode(self, data: Buffer) -> Buffer:
        """Return one stream."""
        return bz2.compress(data, self.level)

    def start(self) -> Decompressor:
        """Return a decompressor."""
        return bz2.BZ2Decompressor()

    def ends(self, rest: bytes) -> bool:
        """Ignore bytes that do not begin a stream."""
        return rest[:3] != _MAGIC


def bind(configuration: Configuration, decoded: BytesSpec) -> Bz2:
    """Return the codec."""
    return Bz2(Fields(configuration, ("level",)).integer("level", 1, 1, 9), decoded)


CODECS = (
    Record(
        id="bz2", kind=B2B, names={"numcodecs.bz2": Name(bind, ONE), "bz2": Name(bind)}, parameters={"level": int},
        note="Python's bz2", compresses=True, words=with_level("bzip2"), decodes_with={},
        hdf5=filter_of_level(307, "bz2", 1, 9), **STRONG,
    ),
)  # fmt: skip
