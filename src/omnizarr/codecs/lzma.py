"""lzma: xz containers, "alone" files or raw LZMA streams.

Configuration: ``format`` 1 (xz, default), 2 (alone) or 3 (raw); ``check`` (-1, default: the format's; 0, 1, 4,
10); ``preset`` 0 to 9, perhaps with bit 31 set for "extreme", or null; ``filters``: list of filter
specifications of Python's lzma, or null. GDAL adds a ``delta`` of its own, which is ignored. Agrees
with Python's lzma: several streams are one value; bytes after them are ignored.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import B2B, ONE, STRONG, Name, Record
from omnizarr.codecs.streams import Decompressor, StreamCodec, limit_of
from omnizarr.errors import CodecError

_FIELDS = ("format", "check", "preset", "filters", "delta")
_CHECKS: Final = (-1, lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_CRC64, lzma.CHECK_SHA256)
_EXTREME: Final = 1 << 31
_MEMORY: Final = 1 << 28  # liblzma needs 65 MiB for preset 9; a header may ask for 4 GiB

_XZ_MAGIC = b"\xfd7zXZ\x00"


@dataclass(frozen=True, slots=True)
class Lzma(StreamCodec):
    """LZMA in one of its containers."""

    broken = (lzma.LZMAError, EOFError, ValueError, MemoryError)

    format: int
    check: int
    preset: int | None
    filters: tuple[Mapping[str, Any], ...] | None
    decoded: BytesSpec

    def encode(self, data: Buffer) -> Buffer:
        """Return one stream."""
        try:
            return lzma.compress(data, self.format, self.check, self.preset, self.filters)
        except (lzma.LZMAError, ValueError, TypeError) as error:
            raise CodecError(f"cannot encode: {error}") from error

    def start(self) -> Decompressor:
        """Return a decompressor, which takes no more memory than the chunk may have."""
        if self.format == lzma.FORMAT_RAW:
            return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=self.filters)
        return lzma.LZMADecompressor(self.format, memlimit=_MEMORY + (limit_of(self.decoded) or _MEMORY))

    def ends(self, rest: bytes) -> bool:
        """Only xz containers can follow each other; other bytes are ignored."""
        return self.format != lzma.FORMAT_XZ or not rest.lstrip(b"\0").startswith(_XZ_MAGIC) or rest[:1] == b"\0"


def bind(configuration: Configuration, decoded: BytesSpec) -> Lzma:
    """Return the codec."""
    fields = Fields(configuration, _FIELDS)
    container = fields.integer("format", 1, 1, 3)
    check = fields.integer("check", -1, -1, 10)
    if check not in _CHECKS:
        raise fields.reject("check", "unknown 'check'", check, f"one of {', '.join(map(str, _CHECKS))}")
    preset = fields.integer("preset", None, 0, _EXTREME | 9) if fields.has("preset") else None
    if preset is not None and preset & ~_EXTREME > 9:
        raise fields.reject("preset", "'preset' is out of range", preset, "0 to 9, perhaps with bit 31 set")
    filters = fields.raw("filters", None)
    if filters is not None:
        if not isinstance(filters, list | tuple) or not filters or not all(map(_is_filter, filters)):
            raise fields.reject("filters", "malformed filters", filters, "a list of objects with an integer id")
        filters = tuple(dict(one) for one in filters)
    if container == lzma.FORMAT_RAW and filters is None:
        raise fields.reject("filters", "a raw stream needs its filters", None, "a list of filter specifications")
    codec = Lzma(container, check, preset, filters, decoded)
    try:
        # The library knows which filters and presets are compatible.
        lzma.LZMACompressor(container, check, preset, filters)
        if container == lzma.FORMAT_RAW:
            codec.start()
    except (lzma.LZMAError, ValueError, TypeError, MemoryError, OverflowError) as error:
        raise fields.reject("filters", f"no such stream can be made: {error}", dict(configuration), "fields that "
                            "go together") from error  # fmt: skip
    return codec


def _is_filter(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and "id" in value
        and all(isinstance(number, int) and not isinstance(number, bool) for number in value.values())
        and 0 <= value.get("dict_size", 0) <= _MEMORY
    )


CODECS = (
    Record(
        id="lzma", kind=B2B, names={"numcodecs.lzma": Name(bind, ONE), "lzma": Name(bind)},
        parameters={"format": int, "check": int, "preset": int, "filters": list}, note="Python's lzma",
        compresses=True, words="lzma", **STRONG,
    ),
)  # fmt: skip
