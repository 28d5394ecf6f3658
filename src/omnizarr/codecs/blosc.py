"""blosc: blocks that are shuffled and compressed, as C-Blosc 1 writes them.

Names: v1 and v2 ``blosc``; v3 ``blosc`` (core), ``numcodecs.blosc``.
Configuration: ``cname`` (blosclz, lz4, lz4hc, snappy, zlib, zstd), ``clevel`` 0 to 9, ``shuffle`` (noshuffle,
shuffle, bitshuffle; numcodecs writes 0, 1, 2, and -1 for automatic), ``typesize``
(item size if missing), ``blocksize`` (0: the library chooses). Decoding needs none of them.
Agrees with numcodecs and zarr-python. At most 2 GiB can be encoded at once. Snappy can be encoded only if numcodecs has
been built with it; it is decoded without, and so is what zarr 1.1 wrote with Zstandard 0.7 (see `blosc_frames`).

Spec: Zarr v3, "Blosc codec".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from omnizarr.codecs import blosc_frames
from omnizarr.codecs.compiled import blosc
from omnizarr.codecs.configuration import REQUIRED, Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.streams import Compressor, check_size
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError

_FIELDS: Final = ("cname", "clevel", "shuffle", "typesize", "blocksize")
_COMPRESSORS: Final = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_SHUFFLES: Final = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
_AUTOMATIC: Final = -1
_HEADER: Final = blosc_frames.HEADER
_FORMAT: Final = 2
_LARGEST: Final = 2**31 - 1 - _HEADER
_MAX_TYPESIZE: Final = 255
_SPEC: Final = 'Zarr v3, "Blosc codec"'


@dataclass(frozen=True, slots=True)
class Blosc(Compressor):
    """C-Blosc 1."""

    cname: str
    clevel: int
    shuffle: int
    typesize: int
    blocksize: int
    decoded: BytesSpec

    def encode(self, data: Buffer) -> Buffer:
        """Return one Blosc buffer."""
        if len(data) > _LARGEST:
            raise CodecError(
                "Blosc cannot encode so many bytes at once", found=f"{len(data)} bytes",
                expected=f"at most {_LARGEST} bytes", remedy="choose smaller chunks or another compressor",
            )  # fmt: skip
        try:
            return blosc.compress(  # type: ignore[no-any-return]
                data, self.cname.encode(), self.clevel, self.shuffle, self.blocksize, self.typesize
            )
        except (RuntimeError, ValueError) as error:
            raise CodecError(f"cannot encode: {error}", found=self.cname) from error

    def decode(self, data: Buffer) -> Buffer:
        """Return the content of the buffer."""
        size = _size(data)
        check_size(size, self.decoded)
        return _run(data, size, None) if size else b""

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with the content of the buffer."""
        size = _size(data)
        check_size(size, BytesSpec(len(out)))
        if size:
            _run(data, size, out)


def _size(data: Buffer) -> int:
    """Return the size in the header, after checking everything that the library would trust."""
    if len(data) < _HEADER:
        raise ChunkSizeError("too short for Blosc", found=f"{len(data)} bytes", expected=f"at least {_HEADER} bytes")
    if data[0] != _FORMAT:
        raise ChunkError("not the format of Blosc 1", found=f"version {data[0]}", expected=f"version {_FORMAT}")
    size, block, stored = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12))
    if stored > len(data):
        raise ChunkSizeError("the compressed bytes are cut off", found=f"{len(data)} bytes", expected=f"{stored} bytes")
    if stored < _HEADER or size > _LARGEST or (size and not 0 < block <= size) or data[3] == 0:
        raise ChunkError("the Blosc header is broken", found=bytes(data[:_HEADER]).hex())
    return size


def _run(data: Buffer, size: int, out: memoryview | None) -> Buffer:
    if blosc_frames.is_needed(data, has_snappy=_has_snappy()):
        out = memoryview(bytearray(size)) if out is None else out
        blosc_frames.decode_into(data, out)
        return out
    try:
        return blosc.decompress(data, out)  # type: ignore[no-any-return]
    except (RuntimeError, ValueError, TypeError, MemoryError) as error:
        raise ChunkError(f"the compressed bytes are broken: {error}") from error


@lru_cache(maxsize=1)
def _has_snappy() -> bool:
    return "snappy" in blosc.list_compressors()


def bind(configuration: Configuration, decoded: BytesSpec) -> Blosc:
    """Return the codec of Zarr v3."""
    fields = Fields(configuration, _FIELDS, _SPEC)
    return _bind(fields, decoded, REQUIRED)


def bind_numcodecs(configuration: Configuration, decoded: BytesSpec) -> Blosc:
    """Return the codec of numcodecs."""
    return _bind(Fields(configuration, _FIELDS), decoded, "lz4")


def _bind(fields: Fields, decoded: BytesSpec, cname: str) -> Blosc:
    cname = fields.choice("cname", {name: name for name in _COMPRESSORS}, cname)
    shuffle = _shuffle(fields, decoded.item_size)
    typesize = fields.integer("typesize", None, 0) if fields.has("typesize") else 0
    typesize = typesize or decoded.item_size
    return Blosc(
        cname=cname,
        clevel=fields.integer("clevel", 5, 0, 9),
        shuffle=shuffle,
        # The library treats larger items as bytes.
        typesize=typesize if typesize <= _MAX_TYPESIZE else 1,
        blocksize=fields.integer("blocksize", 0, 0, _LARGEST),
        decoded=decoded,
    )


def _shuffle(fields: Fields, item_size: int) -> int:
    value = fields.raw("shuffle", 1)
    if isinstance(value, str):
        return fields.choice("shuffle", _SHUFFLES)
    numbers: Sequence[int] = (_AUTOMATIC, *_SHUFFLES.values())
    if isinstance(value, bool) or value not in numbers:
        raise fields.reject("shuffle", "unknown 'shuffle'", value, f"one of {', '.join(map(repr, _SHUFFLES))}")
    if value == _AUTOMATIC:
        return 2 if item_size == 1 else 1
    return int(value)
