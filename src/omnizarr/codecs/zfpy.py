"""zfpy: numbers as a zfp stream with its header.

Configuration: ``mode`` (2 fixed rate, 3 fixed precision, 4 fixed accuracy, default; 5 reversible), ``tolerance``,
``rate``, ``precision`` (the one for the mode; -1 means none), ``compression_kwargs`` (a copy of these, ignored).
Agrees with numcodecs, for int32, int64, float32 and float64 of one to four dimensions. Needs the package zfpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import A2B, Name, Record
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.support.lazy import Lazy

zfpy: Any = Lazy("zfpy")

TYPES: Final = ("int32", "int64", "float32", "float64")
MODES: Final = {2: "rate", 3: "precision", 4: "tolerance"}
_REVERSIBLE: Final = 5
_DIMENSIONS: Final = 4
_MAGIC: Final = b"zfp"


@dataclass(frozen=True, slots=True)
class Zfpy:
    """A zfp stream with a header."""

    parameters: Mapping[str, Any]
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Any size, but never much more than the array has."""
        return BytesSpec(None, max_nbytes=padded_size(self.decoded.shape, self.decoded.dtype.itemsize) + 64)

    @property
    def loss(self) -> str:
        """What the mode of zfp does not keep."""
        return loss_of(self.parameters)

    def encode(self, array: AnyArray) -> Buffer:
        """Return header and stream."""
        return compress(array, self.parameters, has_header=True)

    def decode(self, data: Buffer) -> AnyArray:
        """Return the array."""
        dtype = self.decoded.dtype.newbyteorder("=")
        if data[:3] != _MAGIC or len(data) < 12:
            raise ChunkError("no zfp stream", found=bytes(data[:4]).hex(), expected=_MAGIC.hex())
        stored = padded(data, self.decoded.shape, dtype.itemsize)
        try:
            header = zfpy.header(stored)
        except (ValueError, TypeError, RuntimeError, KeyError) as error:
            raise ChunkError(f"the zfp header is broken: {error}") from error
        sizes = tuple(header[name] for name in ("nw", "nz", "ny", "nx") if header[name])
        # some releases of zarr-python flatten chunks: the shape may be another one of the same size
        if prod(sizes) != prod(self.decoded.shape):
            raise ChunkSizeError("the zfp stream is of another shape", found=sizes, expected=self.decoded.shape)
        if np.dtype(header["type"]) != dtype:
            raise ChunkError("the zfp stream is of another type", found=str(np.dtype(header["type"])),
                             expected=str(dtype))  # fmt: skip
        try:
            array: AnyArray = zfpy.decompress_numpy(stored)
        except (ValueError, TypeError, RuntimeError) as error:
            raise ChunkError(f"the zfp stream is broken: {error}") from error
        return array.reshape(self.decoded.shape).astype(self.decoded.dtype, copy=False)


def loss_of(parameters: Mapping[str, Any]) -> str:
    """Return what zfp does not keep with these parameters; "" if it keeps everything."""
    for name, value in parameters.items():
        match name:
            case "tolerance":
                return f"absolute error at most {value:g}"
            case "rate":
                return f"{value:g} bits per number stay: the error has no bound"
            case _:
                return f"{value} bit planes of each block stay: the error has no bound"
    return ""


def compress(array: AnyArray, parameters: Mapping[str, Any], *, has_header: bool) -> bytes:
    """Return the zfp stream of an array."""
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
    try:
        return zfpy.compress_numpy(  # type: ignore[no-any-return]
            native.reshape(native.shape or (1,)), write_header=has_header, **parameters
        )
    except (ValueError, TypeError, RuntimeError) as error:
        raise CodecError(f"cannot encode: {error}") from error


def padded(data: Buffer, shape: tuple[int, ...], item_size: int) -> bytes:
    """Return a stream with zeros appended, because the library reads past the end of a truncated stream."""
    return bytes(data).ljust(padded_size(shape, item_size), b"\0")


def padded_size(shape: tuple[int, ...], item_size: int) -> int:
    """Return an upper bound of the bytes in the blocks of a stream of this shape."""
    blocks: int = prod((length + 3) // 4 for length in shape)
    values: int = 4 ** max(len(shape), 1)
    return blocks * (2 * item_size * values + 16) + 64


def check_shape(decoded: ArraySpec) -> None:
    """Raise CodecError if zfp does not support arrays of this shape."""
    if len(decoded.shape) > _DIMENSIONS or 0 in decoded.shape:
        raise CodecError("zfp has no arrays of this shape", found=decoded.shape, expected="one to four dimensions")


def bind(configuration: Configuration, decoded: ArraySpec) -> Zfpy:
    """Return the codec."""
    fields = Fields(configuration, ("mode", "tolerance", "rate", "precision", "compression_kwargs"))
    if decoded.dtype.name not in TYPES:
        raise CodecError("zfp has no such elements", found=decoded.data_type.named.name, expected=", ".join(TYPES))
    check_shape(decoded)
    mode = fields.integer("mode", 4, 2, _REVERSIBLE)
    if mode == _REVERSIBLE:
        return Zfpy({}, decoded)
    name = MODES[mode]
    value = fields.integer(name, -1) if name == "precision" else fields.number(name, -1)
    # -1 means none in numcodecs; zfp is then lossless
    return Zfpy({name: value} if value >= 0 else {}, decoded)


CODECS = (
    Record(
        id="zfpy", kind=A2B, names={"numcodecs.zfpy": Name(bind)},
        parameters={"mode": int, "tolerance": float, "rate": float, "precision": int}, package=("zfpy", "zfp"),
        compresses=True, decodes_with={}, is_inexact=lambda given: given.get("mode") != _REVERSIBLE,
    ),
)  # fmt: skip
