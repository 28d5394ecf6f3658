"""n5_default: the blocks of N5 in "default" mode: a header with the block's shape, then its elements.

Configuration: ``codecs``: ``transpose`` that reverses the axes, ``bytes`` (big-endian), at most one compressor.
A block may be smaller than the chunk (N5 truncates at the edges of an array). The remaining elements are fill values.
Blocks are written in full size.

Spec: zarr-extensions, "n5_default"; N5 4.0.0, "File-system specification".
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omnizarr.codecs import chain
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.record import A2B, Name, Record
from omnizarr.codecs.streams import changed_by, limit_of
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, OmnizarrError
from omnizarr.model import Named

_SPEC: Final = 'zarr-extensions, "n5_default"'
_TYPES: Final = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)} | {"float32", "float64"}
_LARGEST: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class N5Default:
    """An N5 block."""

    codecs: tuple[Named, ...]
    inner: chain.Chain
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """The header, and the result of the inner codecs."""
        longer = changed_by(self.inner.encoded, self._header)
        # Blocks of other writers may be truncated.
        return BytesSpec(None, 1, limit_of(longer), longer.remedy)

    @property
    def _header(self) -> int:
        return 4 + 4 * len(self.decoded.shape)

    def encode(self, array: AnyArray) -> Buffer:
        """Return header and elements."""
        shape = self.decoded.shape
        return struct.pack(f">HH{len(shape)}I", 0, len(shape), *shape) + self.inner.encode(array)

    def decode(self, data: Buffer) -> AnyArray:
        """Return the elements, with the fill value where the block is smaller."""
        ndim = len(self.decoded.shape)
        if len(data) < self._header:
            raise ChunkSizeError("too short for the header of a block", found=f"{len(data)} bytes",
                                 expected=f"at least {self._header} bytes", spec=_SPEC)  # fmt: skip
        mode, dimensions, *shape = struct.unpack_from(f">HH{ndim}I", data)
        if mode != 0 or dimensions != ndim:
            raise ChunkError("the block is of another mode or dimensionality", spec=_SPEC,
                             found=f"mode {mode}, {dimensions} dimensions",
                             expected=f"mode 0 (default), {ndim} dimensions")  # fmt: skip
        rest = memoryview(data)[self._header :]
        if tuple(shape) == self.decoded.shape:
            return self.inner.decode(rest)
        if any(length > most for length, most in zip(shape, self.decoded.shape, strict=True)):
            raise ChunkSizeError("the block is larger than the chunk", found=tuple(shape), expected=self.decoded.shape)
        block = chain.bind(self.codecs, replace(self.decoded, shape=tuple(shape))).decode(rest)
        out = np.full(self.decoded.shape, self.decoded.fill_value, self.decoded.dtype)
        out[tuple(map(slice, shape))] = block
        return out


def bind(configuration: Configuration, decoded: ArraySpec) -> N5Default:
    """Return the codec."""
    fields = Fields(configuration, ("codecs",), _SPEC)
    documents = fields.raw("codecs")
    if not isinstance(documents, list | tuple) or not 2 <= len(documents) <= 3:
        raise fields.reject("codecs", "malformed list of codecs", documents, "transpose, bytes, perhaps a compressor")
    codecs = tuple(itertools.starmap(fields.codec, enumerate(documents)))
    axes = codecs[0].configuration.get("order")
    if codecs[0].name != "transpose" or axes not in ("F", list(range(len(decoded.shape)))[::-1]):
        raise fields.reject("codecs/0", "not the full transposition", documents[0], "transpose, axes reversed")
    endian = codecs[1].configuration.get("endian")
    if codecs[1].name != "bytes" or (endian != "big" and decoded.dtype.itemsize > 1):
        raise fields.reject("codecs/1", "not the big-endian bytes codec", documents[1], 'bytes with "endian": "big"')
    if decoded.data_type.named.name not in _TYPES or any(length > _LARGEST for length in decoded.shape):
        raise CodecError("N5 has no such blocks", found=decoded.data_type.named.name, expected=sorted(_TYPES),
                         spec=_SPEC)  # fmt: skip
    try:
        return N5Default(codecs, chain.bind(codecs, decoded), decoded)
    except OmnizarrError as error:
        if error.pointer is not None:
            error.pointer = f"/configuration{error.pointer}"
        raise


CODECS = (
    Record(
        id="n5_default", kind=A2B, names={"n5_default": Name(bind, status="registered")},
        parameters={"codecs": list}, v2="-", compresses=True,
    ),
)  # fmt: skip
