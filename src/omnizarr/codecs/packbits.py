"""packbits: elements of few bits, packed without gaps. Two codecs share the name.

- v3 ``packbits`` (zarr-extensions), array to bytes: any number of bits per element, **lowest bit first**.
  Configuration: ``padding_encoding`` (none, first_byte, last_byte), ``first_bit``, ``last_bit`` (inclusive, counted
  from the lowest; null or missing: all bits). Agrees with zarrs and TensorStore.
- v2 ``packbits``, v3 ``numcodecs.packbits``, array to array: booleans, **highest bit first**, after one byte that
  counts the padding bits. No configuration. Agrees with numcodecs.

Spec: zarr-extensions, "packbits" (which states that "first_byte" is compatible with numcodecs, but overlooks
the order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.elements import row_of
from omnizarr.codecs.record import A2A, A2B, ONE, Name, Record
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.model import Named
from omnizarr.model.datatypes import bind as bind_data_type

_SPEC: Final = 'zarr-extensions, "packbits"'
_WIDTHS: Final = {
    "bool": 1,
    "int2": 2,
    "uint2": 2,
    "int4": 4,
    "uint4": 4,
    "float4_e2m1fn": 4,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
}
"""Bits of the types that have fewer than their bytes in memory."""


@dataclass(frozen=True, slots=True)
class PackBits:
    """Elements as fields of bits."""

    padding: str
    first: int
    last: int
    components: int
    """Number of components of all elements: two for each complex number."""
    width: int
    """Bytes of a component in memory."""
    is_signed: bool
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """The size of all fields, padded to whole bytes, plus one byte if it counts the padding."""
        return BytesSpec((self._bits + 7) // 8 + (self.padding != "none"))

    @property
    def _bits(self) -> int:
        return self.components * (self.last - self.first + 1)

    def describe_native(self, _spec: ArraySpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        return (
            *("packbits", self.components, self.width, not self.decoded.dtype.isnative),
            *(self.first, self.last, self.is_signed, self.padding),
        ) if self.components <= (2**63 - 1) // 64 else None  # fmt: skip

    def encode(self, array: AnyArray) -> Buffer:
        """Return the packed bits."""
        little = row_of(array).astype(array.dtype.newbyteorder("<"), copy=False)
        bits = np.unpackbits(little.view(np.uint8), bitorder="little").reshape(self.components, 8 * self.width)
        packed = np.packbits(bits[:, self.first : self.last + 1], bitorder="little").tobytes()
        count = bytes([-self._bits % 8])
        return {"none": packed, "first_byte": count + packed, "last_byte": packed + count}[self.padding]

    def decode(self, data: Buffer) -> AnyArray:
        """Return the elements. Bits that are not stored are zero, or copies of a stored sign."""
        if len(data) != self.encoded.nbytes:
            raise ChunkSizeError("the packed bits have the wrong size", found=f"{len(data)} bytes",
                                 expected=f"{self.encoded.nbytes} bytes")  # fmt: skip
        packed = np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)
        if self.padding != "none":
            count, packed = (packed[0], packed[1:]) if self.padding == "first_byte" else (packed[-1], packed[:-1])
            if count != -self._bits % 8:
                raise ChunkError("the number of padding bits is wrong", found=int(count), expected=-self._bits % 8)
        fields = np.unpackbits(packed, count=self._bits, bitorder="little").reshape(
            self.components, self.last - self.first + 1
        )
        bits = np.zeros((self.components, 8 * self.width), np.uint8)
        bits[:, self.first : self.last + 1] = fields
        if self.is_signed:
            bits[:, self.last + 1 :] = bits[:, self.last : self.last + 1]
        dtype = self.decoded.dtype
        row: NDArray[Any] = np.packbits(bits, bitorder="little").view(dtype.newbyteorder("<"))
        return row.astype(dtype, copy=False).reshape(self.decoded.shape)


@dataclass(frozen=True, slots=True)
class PackBools:
    """Booleans as bits after the number of padding bits."""

    decoded: ArraySpec
    encoded: ArraySpec

    def describe_native(self, _spec: ArraySpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        count = self.decoded.nbytes
        return ("packbools", count) if count is not None and count < 2**63 else None

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the bytes, as an array."""
        packed = np.packbits(row_of(array).view(np.uint8))
        return np.concatenate([np.array([-array.size % 8], np.uint8), packed])

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the booleans."""
        size = int(np.prod(self.decoded.shape, dtype=np.int64))
        row = row_of(array)
        if row.shape != self.encoded.shape:
            raise ChunkSizeError("the packed bits have the wrong size", found=f"{row.size} bytes",
                                 expected=f"{self.encoded.shape[0]} bytes")  # fmt: skip
        if row[0] != -size % 8:
            raise ChunkError("the number of padding bits is wrong", found=int(row[0]), expected=-size % 8)
        return np.unpackbits(row[1:], count=size).view(self.decoded.dtype).reshape(self.decoded.shape)


def bind(configuration: Configuration, decoded: ArraySpec) -> PackBits:
    """Return the codec of zarr-extensions."""
    fields = Fields(configuration, ("padding_encoding", "first_bit", "last_bit"), _SPEC)
    padding = fields.choice("padding_encoding", {name: name for name in ("none", "first_byte", "last_byte")}, "none")
    dtype, name = decoded.dtype, decoded.data_type.named.name
    per_element = 2 if dtype.kind == "c" or name.startswith("complex") else 1
    if decoded.nbytes is None or dtype.kind in "SUT" or dtype.fields is not None or name in _OPAQUE or name[:1] == "r":
        raise CodecError("elements of this type cannot be packed", found=name, expected="booleans or numbers",
                         spec=_SPEC)  # fmt: skip
    width = dtype.itemsize // per_element
    bits = _WIDTHS.get(name, 8 * width)
    first = fields.integer("first_bit", low=0, high=bits - 1) if fields.has("first_bit") else 0
    last = fields.integer("last_bit", low=first, high=bits - 1) if fields.has("last_bit") else bits - 1
    is_signed = dtype.kind in "imM" or name in ("int2", "int4")
    components = per_element * int(np.prod(decoded.shape, dtype=np.int64))
    return PackBits(padding, first, last, components, width, is_signed, decoded)


_OPAQUE: Final = ("raw_bytes", "null_terminated_bytes", "struct", "structured")


def bind_numcodecs(configuration: Configuration, decoded: ArraySpec) -> PackBools:
    """Return the codec of numcodecs."""
    Fields(configuration, ())
    if decoded.dtype.kind not in "biu" or decoded.dtype.itemsize != 1:
        raise CodecError("only booleans can be packed", found=decoded.data_type.named.name, expected="bool")
    size = int(np.prod(decoded.shape, dtype=np.int64))
    uint8 = bind_data_type(Named("uint8"))
    return PackBools(decoded, ArraySpec((1 + (size + 7) // 8,), uint8, np.uint8(0), decoded.policy))


CODECS = (
    Record(
        id="packbits", kind=A2B, names={"packbits": Name(bind, status="registered")},
        parameters={"padding_encoding": str, "first_bit": int, "last_bit": int}, v2="-", native=True,
        words="bits packed", to_v2=lambda _given: None,
        remedy="re-encode with numcodecs.packbits (which orders the bits differently), or write v3",
    ),
    Record(
        id="packbits", kind=A2A, names={"numcodecs.packbits": Name(bind_numcodecs, ONE)},
        note="booleans, highest bit first", native=True, words="eight booleans to a byte",
        result_type=lambda _given: "|u1",
    ),
)  # fmt: skip
