"""Elements of FITS files that are not stored as they are in memory. The reader of FITS writes this name; it only reads.

Configuration: ``elements``, which says how they are stored:

- ``shifted``: big-endian integers of ``size`` bytes, from which half of the range is subtracted.
- ``logical``: "T" for true; all others are false.
- ``bits``: rows of ``width`` bits, the highest bit of a byte first, each in whole bytes.
- ``int64``, ``float64``: numbers as texts of ``width`` bytes. They become little-endian numbers. Nothing but spaces is
  0, and the text ``missing`` is the lowest integer, or no number.
- ``text``: texts of ``width`` bytes, which end with the first NUL, or before the spaces at their end. They become
  UTF-32, little-endian.

Spec: FITS Standard 4.0, sections 5.2.5 and 7.3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import B2B, Name, Record
from omnizarr.codecs.streams import limit_of
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError

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


CODECS = (
    Record(
        id="fits", kind=B2B, names={"fits": Name(bind)},
        parameters={"elements": str, "size": int, "width": int, "missing": str},
        v2="-", note="reads FITS", only_reads=True, words=lambda given: f"FITS's {given.get('elements')} elements",
        to_v2=lambda _given: None, remedy="re-encode without it",
        replaced_by=lambda _given, _item_size: None,
    ),
)  # fmt: skip
