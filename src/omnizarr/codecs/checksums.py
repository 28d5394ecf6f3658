"""Checksums: four bytes, little-endian, before or after the data.

Names, place and configuration:

- ``crc32c`` (v3 core): after; none.
- ``crc32``, ``adler32`` (v2; v3 ``numcodecs.crc32``, ``numcodecs.adler32``): before; ``location`` "start" or "end".
- ``numcodecs.crc32c`` (v2 ``crc32c``): after; ``location``.
- ``fletcher32``, ``jenkins_lookup3`` (v2; v3 ``numcodecs.fletcher32``, ...): after; those of HDF5.
  ``jenkins_lookup3`` has ``initval``, and a ``prefix`` that can only be null in JSON.

Agree with numcodecs. Decoding returns a view of the data, without a copy.

Spec: Zarr v3, "CRC32C checksum codec"; HDF5, "Disk Format: Level 2A2j" for fletcher32.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

import numpy as np

from omnizarr.codecs import compiled
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.record import ALL, B2B, ONE, Filter, Name, Parameters, Record, plain
from omnizarr.codecs.streams import changed_by, check_size, fill
from omnizarr.errors import ChecksumError, ChunkSizeError
from omnizarr.model import Named
from omnizarr.settings import engines

_WIDTH: Final = 4
_ALL: Final = 2**32 - 1
_LOCATIONS: Final = {"start": True, "end": False}


@dataclass(frozen=True, slots=True)
class Checksum:
    """A checksum before or after the data.

    Attributes
    ----------
    checksum : callable
        Returns a 32-bit number for bytes.
    is_first : bool
        Whether the checksum comes before the data.
    decoded : BytesSpec
        The data.
    """

    checksum: Callable[[Buffer], int]
    is_first: bool
    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Four bytes more."""
        return changed_by(self.decoded, _WIDTH)

    def describe_native(self, _spec: BytesSpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        name = _NATIVE.get(self.checksum)
        return None if name is None else (name, self.is_first)

    def encode(self, data: Buffer) -> Buffer:
        """Return checksum and data."""
        stored = self.checksum(data).to_bytes(_WIDTH, "little")
        return b"".join((stored, data) if self.is_first else (data, stored))

    def decode(self, data: Buffer) -> Buffer:
        """Return a view of the data."""
        if len(data) < _WIDTH:
            raise ChunkSizeError("too short for a checksum", found=f"{len(data)} bytes", expected="at least 4 bytes")
        view = memoryview(data)
        stored, rest = (view[:_WIDTH], view[_WIDTH:]) if self.is_first else (view[-_WIDTH:], view[:-_WIDTH])
        check_size(len(rest), self.decoded)
        found = self.checksum(rest)
        expected = int.from_bytes(stored, "little")
        if found != expected:
            raise ChecksumError("checksum differs", found=f"0x{found:08x}", expected=f"0x{expected:08x}")
        return rest

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with the data."""
        fill(out, self.decode(data))


def crc32c(data: Buffer) -> int:
    """Return the CRC-32C (Castagnoli) of `data`.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    # The library accepts arrays and bytes, but no memoryviews; NumPy makes no array of zero bytes.
    return compiled.crc32c()(np.frombuffer(data, np.uint8) if len(data) else b"")  # type: ignore[no-any-return]


def _fletcher32(data: Buffer) -> int:
    return compiled.fletcher32()(data) if len(data) else 0


def _jenkins_lookup3(initval: int) -> Callable[[Buffer], int]:
    try:
        function: Any = import_module("numcodecs.jenkins").jenkins_lookup3
    except ModuleNotFoundError:
        return partial(lookup3, initval=initval)

    def checksum(data: Buffer) -> int:
        return int(function(np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8), initval))

    return checksum


def lookup3(data: Buffer, initval: int = 0) -> int:
    """Return the lookup3 hash of Bob Jenkins. numcodecs has the same, and is faster.

    >>> hex(lookup3(b"Four score and seven years ago"))
    '0x17770551'
    """
    a = b = c = (0xDEADBEEF + len(data) + initval) & _ALL
    words: list[int] = np.frombuffer(bytes(data) + bytes(-len(data) % 12), "<u4").tolist()
    for at in range(0, len(words), 3):
        a, b, c = (a + words[at]) & _ALL, (b + words[at + 1]) & _ALL, (c + words[at + 2]) & _ALL
        if at + 3 < len(words):
            a = (a - c & _ALL) ^ _turned(c, 4)
            c = (c + b) & _ALL
            b = (b - a & _ALL) ^ _turned(a, 6)
            a = (a + c) & _ALL
            c = (c - b & _ALL) ^ _turned(b, 8)
            b = (b + a) & _ALL
            a = (a - c & _ALL) ^ _turned(c, 16)
            c = (c + b) & _ALL
            b = (b - a & _ALL) ^ _turned(a, 19)
            a = (a + c) & _ALL
            c = (c - b & _ALL) ^ _turned(b, 4)
            b = (b + a) & _ALL
    if words:
        c = ((c ^ b) - _turned(b, 14)) & _ALL
        a = ((a ^ c) - _turned(c, 11)) & _ALL
        b = ((b ^ a) - _turned(a, 25)) & _ALL
        c = ((c ^ b) - _turned(b, 16)) & _ALL
        a = ((a ^ c) - _turned(c, 4)) & _ALL
        b = ((b ^ a) - _turned(a, 14)) & _ALL
        c = ((c ^ b) - _turned(b, 24)) & _ALL
    return c


@cache
def quick_lookup3() -> Callable[[bytes], int]:
    """Return the fastest function that computes the lookup3 hash of bytes: native, that of numcodecs, or `lookup3`."""
    return getattr(engines.module(), "lookup3", None) or _jenkins_lookup3(0)


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _ALL


_NATIVE: Final[Mapping[object, str]] = {
    crc32c: "crc32c",
    zlib.crc32: "crc32",
    zlib.adler32: "adler32",
    _fletcher32: "fletcher32",
}


def bind_crc32c(configuration: Configuration, decoded: BytesSpec) -> Checksum:
    """Return the codec of Zarr v3."""
    Fields(configuration, (), 'Zarr v3, "CRC32C checksum codec"')
    return Checksum(crc32c, is_first=False, decoded=decoded)


def _bind_located(
    checksum: Callable[[Buffer], int], place: str, configuration: Configuration, decoded: BytesSpec
) -> Checksum:
    fields = Fields(configuration, ("location",))
    # numcodecs treats null as the default
    where = fields.choice("location", _LOCATIONS) if fields.has("location") else _LOCATIONS[place]
    return Checksum(checksum, where, decoded)


bind_crc32 = partial(_bind_located, zlib.crc32, "start")
bind_adler32 = partial(_bind_located, zlib.adler32, "start")
bind_numcodecs_crc32c = partial(_bind_located, crc32c, "end")


def bind_fletcher32(configuration: Configuration, decoded: BytesSpec) -> Checksum:
    """Return the codec of numcodecs, which is the filter of HDF5."""
    Fields(configuration, ())
    return Checksum(_fletcher32, is_first=False, decoded=decoded)


def bind_jenkins_lookup3(configuration: Configuration, decoded: BytesSpec) -> Checksum:
    """Return the codec of numcodecs, which is the checksum of HDF5's own metadata."""
    fields = Fields(configuration, ("initval", "prefix"))
    if fields.has("prefix"):
        raise fields.reject("prefix", "a prefix cannot be read from JSON", fields.raw("prefix"), "null")
    return Checksum(_jenkins_lookup3(fields.integer("initval", 0, 0, 2**32 - 1)), is_first=False, decoded=decoded)


def _replacement(_given: Parameters, _item_size: int) -> Named:
    return Named("crc32c")


_OF_HDF5: Final = Filter(3, 0, lambda _parameters, _item_size: {}, lambda _given: ())

CODECS = (
    Record(
        id="crc32c", kind=B2B, names={"crc32c": Name(bind_crc32c, ALL, "core")}, note="google-crc32c", native=True,
        words="crc32c checksum", defaults={"location": "end"}, to_v2=plain("crc32c")["to_v2"],
    ),
    Record(
        id="crc32c", kind=B2B, names={"numcodecs.crc32c": Name(bind_numcodecs_crc32c)},
        parameters={"location": str}, v2="`crc32c` with a `location`", note="google-crc32c", native=True,
        words="crc32c checksum", defaults={"location": "end"},
        from_v2=lambda given, _: Named("crc32c") if given in ({}, {"location": "end"}) else None,
    ),
    Record(
        id="crc32", kind=B2B, names={"numcodecs.crc32": Name(bind_crc32, ONE), "crc32": Name(bind_crc32)},
        parameters={"location": str}, note="Python's zlib", native=True, words="crc32 checksum",
        defaults={"location": "start"}, replaced_by=_replacement,
    ),
    Record(
        id="adler32", kind=B2B, names={"numcodecs.adler32": Name(bind_adler32, ONE), "adler32": Name(bind_adler32)},
        parameters={"location": str}, note="Python's zlib", native=True, words="adler32 checksum",
        defaults={"location": "start"}, replaced_by=_replacement,
    ),
    Record(
        id="fletcher32", kind=B2B,
        names={"numcodecs.fletcher32": Name(bind_fletcher32, ONE), "fletcher32": Name(bind_fletcher32)},
        note="numcodecs", is_compiled=True, native=True, words="fletcher32 checksum", hdf5=_OF_HDF5,
        replaced_by=_replacement,
    ),
    Record(
        id="jenkins_lookup3", kind=B2B,
        names={
            "numcodecs.jenkins_lookup3": Name(bind_jenkins_lookup3, ONE),
            "jenkins_lookup3": Name(bind_jenkins_lookup3),
        },
        parameters={"initval": int}, note="numcodecs", words="Jenkins lookup3 checksum",
        defaults={"initval": 0, "prefix": None}, replaced_by=_replacement,
    ),
)  # fmt: skip
