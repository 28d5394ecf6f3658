"""base64: bytes as text of the standard alphabet.

Configuration: none.
Agrees with numcodecs; white space is ignored, anything else outside the alphabet is an error.

Spec: RFC 4648, section 4.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import B2B, NONE, Name, Record
from omnizarr.codecs.streams import fill, sized
from omnizarr.errors import ChunkError


@dataclass(frozen=True, slots=True)
class Base64:
    """Base64 with the standard alphabet."""

    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Four bytes for three."""
        nbytes, most = self.decoded.nbytes, self.decoded.max_nbytes
        # Writers may wrap lines, so the size is a bound only if it is not exact.
        return BytesSpec(
            None if nbytes is None else _length(nbytes),
            1,
            None if most is None else _length(most) * 17 // 16,
            self.decoded.remedy,
        )

    def encode(self, data: Buffer) -> Buffer:
        """Return the text, in ASCII."""
        return base64.b64encode(data)

    def decode(self, data: Buffer) -> Buffer:
        """Return the bytes."""
        try:
            decoded = base64.b64decode(data, validate=True)
        except binascii.Error:
            try:
                decoded = base64.b64decode(b"".join(bytes(data).split()), validate=True)
            except binascii.Error as error:
                raise ChunkError(f"not base64: {error}") from error
        return sized(decoded, self.decoded)

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with the bytes."""
        fill(out, self.decode(data))


def _length(nbytes: int) -> int:
    return 4 * ((nbytes + 2) // 3)


def bind(configuration: Configuration, decoded: BytesSpec) -> Base64:
    """Return the codec."""
    Fields(configuration, ())
    return Base64(decoded)


CODECS = (
    Record(
        id="base64", kind=B2B, names={"numcodecs.base64": Name(bind, NONE), "base64": Name(bind)},
        note="Python's base64", replaced_by=lambda _given, _item_size: None,
    ),
)  # fmt: skip
