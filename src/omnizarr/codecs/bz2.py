"""bz2: streams of bzip2.

Names: v1 and v2 ``bz2``; v3 ``numcodecs.bz2``, and ``bz2`` as zarrs writes it (neither is registered).
Configuration: ``level``, 1 to 9, default 1.
Agrees with Python's bz2: several streams are one value; what follows them is ignored.
"""

from __future__ import annotations

import bz2
from dataclasses import dataclass

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.streams import compressed, fill, inflate
from omnizarr.errors import ChunkError

_MAGIC = b"BZh"


@dataclass(frozen=True, slots=True)
class Bz2:
    """bzip2."""

    level: int
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return compressed(self.decoded)

    def encode(self, data: Buffer) -> Buffer:
        """Return one stream."""
        return bz2.compress(data, self.level)

    def decode(self, data: Buffer) -> Buffer:
        """Return what all streams decode to."""
        try:
            return inflate(bz2.BZ2Decompressor, data, self.decoded, lambda rest: rest[:3] != _MAGIC)
        except (OSError, EOFError) as error:
            raise ChunkError(f"the compressed bytes are broken: {error}") from error

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with what all streams decode to."""
        fill(out, self.decode(data))


def bind(configuration: Configuration, decoded: BytesSpec) -> Bz2:
    """Return the codec."""
    return Bz2(Fields(configuration, ("level",)).integer("level", 1, 1, 9), decoded)
