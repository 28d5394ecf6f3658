"""szip: extended Rice coding like HDF5's filter 4, after the size of the data in four bytes, little-endian.

Configuration: ``mask`` (4 for entropy coding, 32 for nearest neighbours; other bits are ignored),
``pixels-per-block`` (even, 2 to 32), and what HDF5 determines itself and netCDF-C does not write:
``bits-per-pixel`` (the size of elements if missing), ``endian`` ("little", default, or "big"),
``pixels-per-scanline``. Documents of v2 do not have the last three: reading one fills them in from shape,
chunks and data type (`omnizarr.formats.filters`). Agrees with HDF5 and netCDF-C. Needs the package imagecodecs.

Spec: HDF5, "Szip Compression in HDF Products"; CCSDS 121.0-B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import B2B, Filter, Name, Parameters, Record, between, integer
from omnizarr.codecs.streams import SLACK, Compressor, check_size
from omnizarr.errors import ChunkError, CodecError
from omnizarr.model import JSON, Named
from omnizarr.support.lazy import Lazy

imagecodecs: Any = Lazy("imagecodecs")

_HEADER: Final = 4
_MAX_SIZE: Final = 2**32 - 1
_MAX_PIXELS_PER_BLOCK: Final = 32
_MAX_BLOCKS_PER_SCANLINE: Final = 128
_ALWAYS: Final = 1 | 128
"""ALLOW_K13 and RAW of the library szip."""
_ORDERS: Final = {"little": 8, "big": 16}
CODINGS: Final = {"ec": 4, "nn": 32}
FITTED: Final = ("bits-per-pixel", "pixels-per-scanline", "endian")
"""Parameters that netCDF-C does not write, because HDF5 determines them."""


@dataclass(frozen=True, slots=True)
class Szip(Compressor):
    """Rice coding of pixels, in blocks in scanlines.

    Attributes
    ----------
    parameters : tuple of int
        Mask, pixels per block, bits per pixel, pixels per scanline.
    decoded : BytesSpec
    """

    parameters: tuple[int, int, int, int]
    decoded: BytesSpec

    def encode(self, data: Buffer) -> Buffer:
        """Return the size and the coded pixels."""
        size = len(data)
        if size > _MAX_SIZE:
            raise CodecError("szip takes less than 4 GiB at once", found=size)
        try:
            coded = imagecodecs.szip_encode(bytes(data), *self.parameters, out=2 * size + SLACK) if size else b""
        except (ValueError, RuntimeError) as error:
            raise CodecError(f"cannot encode: {error}") from error
        return size.to_bytes(_HEADER, "little") + bytes(coded)

    def decode(self, data: Buffer) -> Buffer:
        """Return the pixels."""
        if len(data) < _HEADER:
            raise ChunkError("no szip stream", found=f"{len(data)} bytes", expected=f"at least {_HEADER}")
        size = int.from_bytes(data[:_HEADER], "little")
        check_size(size, self.decoded)
        try:
            pixels = imagecodecs.szip_decode(bytes(data[_HEADER:]), *self.parameters, out=size) if size else b""
        except (ValueError, RuntimeError) as error:
            raise ChunkError(f"the szip stream is broken: {error}") from error
        if len(pixels) != size:
            raise ChunkError("the szip stream is cut off", found=f"{len(pixels)} bytes", expected=f"{size} bytes")
        return pixels


def bind(configuration: Configuration, decoded: BytesSpec) -> Szip:
    """Return the codec."""
    fields = Fields(configuration, ("mask", "pixels-per-block", *FITTED), "HDF5, szip")
    pixels = fields.integer("pixels-per-block", low=2, high=_MAX_PIXELS_PER_BLOCK)
    if pixels % 2:
        raise fields.reject("pixels-per-block", "'pixels-per-block' is odd", pixels, "an even number")
    bits = fields.integer("bits-per-pixel", 8 * decoded.item_size, 1, 64)
    if 24 < bits < 64 and bits != 32:
        raise fields.reject("bits-per-pixel", "szip has no such pixels", bits, "1 to 24, 32 or 64")
    if not fields.has("pixels-per-scanline"):
        raise CodecError(
            "szip needs the length of a scanline",
            found=dict(configuration),
            expected="pixels-per-scanline",
            remedy="netCDF takes the last dimension's, and at least one block must fit into a chunk",
        )
    scanline = fields.integer("pixels-per-scanline", low=1, high=_MAX_BLOCKS_PER_SCANLINE * pixels)
    mask = fields.integer("mask", low=0, high=_MAX_SIZE) & sum(CODINGS.values())
    order = fields.choice("endian", _ORDERS, "little")
    return Szip((mask | order | _ALWAYS, pixels, bits, scanline), decoded)


def _from_hdf5(parameters: tuple[int, ...], _item_size: int) -> dict[str, JSON]:
    mask, pixels = parameters
    if pixels % 2:
        raise CodecError("szip takes even numbers of pixels per block", codec="szip", found=pixels)
    size = between("pixels per block of szip", pixels, 2, _MAX_PIXELS_PER_BLOCK)
    return {"mask": mask, "pixels-per-block": size}


def _to_hdf5(given: Parameters) -> tuple[int, ...]:
    return integer(given, "mask", CODINGS["nn"]), integer(given, "pixels-per-block", 8)


CODECS = (
    Record(
        id="szip", kind=B2B, names={"numcodecs.szip": Name(bind)},
        parameters={
            "mask": int,
            "pixels-per-block": int,
            "bits-per-pixel": int,
            "pixels-per-scanline": int,
            "endian": str,
        },
        v2="`szip`, with the first two", package=("imagecodecs", "szip"), compresses=True,
        to_v2=lambda given: {name: value for name, value in given.items() if name not in FITTED},
        hdf5=Filter(4, 2, _from_hdf5, _to_hdf5), replaced_by=lambda _given, _item_size: Named("gzip", {"level": 5}),
    ),
)  # fmt: skip
