"""vlen-utf8, vlen-bytes, vlen-array: items of any length.

Names: v2 ``vlen-utf8``, ``vlen-bytes``, ``vlen-array``; v3 ``vlen-utf8``, ``vlen-bytes`` (zarr-extensions) and all
three as ``numcodecs.<name>``.
Configuration: none; of ``vlen-array`` ``dtype``, a type string.
Format: the number of items, then per item its size in bytes and its bytes, in C order; numbers are
little-endian, of 32 bits. Agrees with numcodecs. In memory text is a ``StringDType``, bytes and arrays are objects.
Fixed-width text and bytes are taken as well: zarr-python 3.0 wrote them so.

Spec: zarr-extensions, "vlen-utf8", "vlen-bytes".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numcodecs.vlen import VLenArray, VLenBytes, VLenUTF8

from omnizarr.codecs.configuration import AnyDType, Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, Configuration
from omnizarr.codecs.elements import row_of
from omnizarr.codecs.streams import ObjectCodec
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError

_PREFIX: Final = 4


@dataclass(frozen=True, slots=True)
class Vlen(ObjectCodec):
    """Items of any length, each behind its size."""

    items: Any
    """The codec of numcodecs; it has no state."""
    empty: Any
    """What stands for None."""
    decoded: ArraySpec

    def encode(self, array: AnyArray) -> Buffer:
        """Return count, sizes and items."""
        row = row_of(array).astype(object, copy=False)
        missing = np.equal(row, np.array(None, dtype=object)) if self.empty is not None else None
        if missing is not None and missing.any():
            row = row.copy()
            row[missing] = self.empty
        elif not row.flags.writeable:
            row = row.copy()  # numcodecs asks for a writable buffer, though it does not write
        try:
            return memoryview(self.items.encode(row)).cast("B")
        except (ValueError, TypeError, RuntimeError, OverflowError, AttributeError) as error:
            raise CodecError(f"cannot encode: {error}") from error

    def decode(self, data: Buffer) -> AnyArray:
        """Return the items."""
        count = self._count(data)
        if count == 0:
            return np.empty(self.decoded.shape, self.decoded.dtype)
        try:
            row = self.items.decode(data)
            array: AnyArray = row.astype(self.decoded.dtype, copy=False)
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise ChunkError(f"cannot decode: {error}") from error
        return array.reshape(self.decoded.shape)

    def _count(self, data: Buffer) -> int:
        expected = int(np.prod(self.decoded.shape, dtype=np.int64))
        if len(data) < _PREFIX:
            raise ChunkSizeError("too short for the number of items", found=f"{len(data)} bytes",
                                 expected="at least 4 bytes")  # fmt: skip
        count = int.from_bytes(data[:_PREFIX], "little")
        if count != expected:
            raise ChunkSizeError("the number of items is wrong", found=count, expected=expected)
        if len(data) < _PREFIX * (1 + count):
            raise ChunkSizeError("the items are cut off", found=f"{len(data)} bytes",
                                 expected=f"at least {_PREFIX * (1 + count)} bytes")  # fmt: skip
        return count


@dataclass(frozen=True, slots=True)
class _Arrays:
    """`VLenArray`, made careful: items in the byte order of its dtype, whole numbers of elements."""

    codec: Any
    dtype: AnyDType

    def encode(self, row: AnyArray) -> Any:
        """Return count, sizes and items."""
        items = np.empty(row.shape, object)
        for position, item in enumerate(row):
            items[position] = np.ascontiguousarray(() if item is None else item, self.dtype).reshape(-1)
        return self.codec.encode(items)

    def decode(self, data: Buffer) -> AnyArray:
        """Return the items."""
        position, row = _PREFIX, np.empty(int.from_bytes(data[:_PREFIX], "little"), object)
        for number in range(len(row)):
            start = position + _PREFIX
            stop = start + int.from_bytes(data[position:start], "little")
            if stop > len(data) or start > len(data):
                raise ChunkSizeError(
                    "an item is cut off", found=f"{len(data)} bytes", expected=f"at least {stop} bytes"
                )
            if (stop - start) % self.dtype.itemsize:
                raise ChunkError("an item holds no whole number of elements", found=f"{stop - start} bytes",
                                 expected=f"a multiple of {self.dtype.itemsize}")  # fmt: skip
            row[number] = np.array(np.frombuffer(data[start:stop], self.dtype) if stop > start else (), self.dtype)
            position = stop
        return row


def bind_utf8(configuration: Configuration, decoded: ArraySpec) -> Vlen:
    """Return the codec of text."""
    Fields(configuration, (), 'zarr-extensions, "vlen-utf8"')
    _check_kind(decoded, "TOU", "string")
    return Vlen(VLenUTF8(), "", decoded)


def bind_bytes(configuration: Configuration, decoded: ArraySpec) -> Vlen:
    """Return the codec of bytes."""
    Fields(configuration, (), 'zarr-extensions, "vlen-bytes"')
    _check_kind(decoded, "OS", "bytes")
    return Vlen(VLenBytes(), b"", decoded)


def bind_array(configuration: Configuration, decoded: ArraySpec) -> Vlen:
    """Return the codec of ragged arrays."""
    dtype = Fields(configuration, ("dtype",)).dtype("dtype")
    _check_kind(decoded, "O", "omnizarr.vlen_array")
    return Vlen(_Arrays(VLenArray(dtype), dtype), None, decoded)


def _check_kind(decoded: ArraySpec, kinds: str, expected: str) -> None:
    if decoded.dtype.kind not in kinds:
        raise CodecError("the codec is made for another data type", found=decoded.data_type.named.name,
                         expected=expected)  # fmt: skip
