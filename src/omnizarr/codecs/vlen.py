"""vlen-utf8, vlen-bytes, vlen-array: items of variable length.

Names: v2 ``vlen-utf8``, ``vlen-bytes``, ``vlen-array``; v3 ``vlen-utf8``, ``vlen-bytes`` (zarr-extensions) and all
three as ``numcodecs.<name>``; ``zarrs.vlen_v2`` is the first or the second, by the data type.
Configuration: none; for ``vlen-array``, ``dtype``, a type string.
Format: the number of items, then for each item its size in bytes and its bytes, in C order. Numbers are
little-endian and have 32 bits. Agrees with numcodecs. In memory text is a ``StringDType``, bytes and arrays are
objects. Fixed-width text and bytes are accepted as well, because zarr-python 3.0 wrote them.

``vlen-utf8`` also stores the proposed data type ``json``: its items are JSON texts.

Spec: zarr-extensions, "vlen-utf8", "vlen-bytes".
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np

from omnizarr.codecs.configuration import AnyDType, Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.elements import row_of
from omnizarr.codecs.record import A2B, MOST, Name, Record, plain
from omnizarr.codecs.streams import ObjectCodec, parsed, variable
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.model.datatypes import json_values
from omnizarr.model.datatypes.json_values import JsonValues
from omnizarr.settings import engines

_PREFIX: Final = 4


class Items(Protocol):
    """The form of items in memory, and their stored form."""

    def encode(self, row: AnyArray) -> Buffer:
        """Return count, sizes and items. Raises TypeError or ValueError for other items."""

    def decode(self, data: Buffer, count: int) -> Any:
        """Return the items, as a list or an array of objects. Raises ValueError for invalid bytes."""


@dataclass(frozen=True, slots=True)
class Vlen(ObjectCodec):
    """Items of variable length, each after its size."""

    items: Items
    empty: Any
    """What is stored for None."""
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size, or of any that can be parsed."""
        return parsed(self.decoded) if isinstance(self.items, _Values) else variable(self.decoded)

    def encode(self, array: AnyArray) -> Buffer:
        """Return count, sizes and items."""
        row = row_of(array).astype(object, copy=False)
        missing = np.equal(row, np.array(None, dtype=object)) if self.empty is not None else None
        if missing is not None and missing.any():
            row = row.copy()
            row[missing] = self.empty
        try:
            return self.items.encode(row)
        except (ValueError, TypeError, OverflowError) as error:
            raise CodecError(f"cannot encode: {error}") from error

    def decode(self, data: Buffer) -> AnyArray:
        """Return the items."""
        count = self._count(data)
        if count == 0:
            return np.empty(self.decoded.shape, self.decoded.dtype)
        try:
            items = self.items.decode(data, count)
        except (ValueError, TypeError, OverflowError) as error:
            if isinstance(error, ChunkError):
                raise
            raise ChunkError(f"cannot decode: {error}") from error
        if self.decoded.dtype.kind == "T":
            return np.array(items, self.decoded.dtype).reshape(self.decoded.shape)
        row = np.empty(count, object)
        row[:] = items
        return row.astype(self.decoded.dtype, copy=False).reshape(self.decoded.shape)

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


def _split(data: Buffer, count: int) -> list[Buffer]:
    """Return the bytes of each item. Raises ChunkSizeError if they are cut off."""
    found, position, end = [], _PREFIX, len(data)
    number = int.from_bytes
    for _ in range(count):
        start = position + _PREFIX
        position = start + number(data[start - _PREFIX : start], "little")
        if position > end:
            raise ChunkSizeError("an item is cut off", found=f"{end} bytes", expected=f"at least {position} bytes")
        found.append(data[start:position])
    return found


def _join(items: Sequence[bytes]) -> bytes:
    sizes = [len(item).to_bytes(_PREFIX, "little") for item in items]
    parts = chain.from_iterable(zip(sizes, items, strict=True))
    return b"".join([len(items).to_bytes(_PREFIX, "little"), *parts])


@dataclass(frozen=True, slots=True)
class _Strings:
    """Text or bytes; the native engine splits and joins them faster."""

    is_text: bool

    def encode(self, row: AnyArray) -> Buffer:
        items, native = row.tolist(), engines.module()
        if hasattr(native, "join"):
            with suppress(TypeError):  # an item is not a string
                return native.join(items, self.is_text)  # type: ignore[no-any-return]
        return _join([self._encoded(item) for item in items])

    def _encoded(self, item: Any) -> bytes:
        if isinstance(item, str if self.is_text else bytes):
            return item.encode() if isinstance(item, str) else item
        if isinstance(item, int) and item == 0:  # the fill of unwritten elements
            return b""
        raise TypeError(f"{item!r} is not {'text' if self.is_text else 'bytes'}")

    def decode(self, data: Buffer, count: int) -> Any:
        native = engines.module()
        if hasattr(native, "split") and int.from_bytes(data[:_PREFIX], "little") == count:
            with suppress(ValueError):  # the error is explained below
                return native.split(data, self.is_text)
        items = _split(data, count)
        return [str(item, "utf-8") if self.is_text else bytes(item) for item in items]


@dataclass(frozen=True, slots=True)
class _Arrays:
    """Arrays of one dimension, whole numbers of elements in the byte order of the dtype."""

    dtype: AnyDType

    def encode(self, row: AnyArray) -> Buffer:
        return _join([np.ascontiguousarray(() if item is None else item, self.dtype).tobytes() for item in row])

    def decode(self, data: Buffer, count: int) -> Any:
        row = np.empty(count, object)
        for number, item in enumerate(_split(data, count)):
            if len(item) % self.dtype.itemsize:
                raise ChunkError("an item holds no whole number of elements", found=f"{len(item)} bytes",
                                 expected=f"a multiple of {self.dtype.itemsize}")  # fmt: skip
            row[number] = np.array(np.frombuffer(item, self.dtype) if len(item) else (), self.dtype)
        return row


@dataclass(frozen=True, slots=True)
class _Values:
    """JSON values as text."""

    def encode(self, row: AnyArray) -> Buffer:
        return _join([json_values.dumps(item) for item in row.tolist()])

    def decode(self, data: Buffer, count: int) -> Any:
        row = np.empty(count, object)
        for number, item in enumerate(_split(data, count)):
            try:
                row[number] = json_values.loads(bytes(item))
            except ValueError as error:
                raise ChunkError(f"an element is not JSON: {error}", found=f"element {number} of the chunk",
                                 expected="a JSON value") from error  # fmt: skip
        return row


def bind_utf8(configuration: Configuration, decoded: ArraySpec) -> Vlen:
    """Return the codec of text."""
    Fields(configuration, (), 'zarr-extensions, "vlen-utf8"')
    if isinstance(decoded.data_type.scalars, JsonValues):
        return Vlen(_Values(), None, decoded)
    _check_kind(decoded, "TOU", "string")
    return Vlen(_Strings(is_text=True), "", decoded)


def bind_bytes(configuration: Configuration, decoded: ArraySpec) -> Vlen:
    """Return the codec of bytes."""
    Fields(configuration, (), 'zarr-extensions, "vlen-bytes"')
    _check_kind(decoded, "OS", "bytes")
    return Vlen(_Strings(is_text=False), b"", decoded)


def bind_array(configuration: Configuration, decoded: ArraySpec) -> Vlen:
    """Return the codec of ragged arrays."""
    dtype = Fields(configuration, ("dtype",)).dtype("dtype")
    _check_kind(decoded, "O", "omnizarr.vlen_array")
    return Vlen(_Arrays(dtype), None, decoded)


def bind_any(configuration: Configuration, decoded: ArraySpec) -> Vlen:
    """Return the codec of text for strings, that of bytes for others."""
    Fields(configuration, (), "zarrs, vlen_v2")
    if decoded.data_type.named.name == "string":
        return bind_utf8({}, decoded)
    _check_kind(decoded, "O", "string or bytes")
    return bind_bytes({}, decoded)


def _check_kind(decoded: ArraySpec, kinds: str, expected: str) -> None:
    if decoded.dtype.kind not in kinds:
        raise CodecError("the codec is made for another data type", found=decoded.data_type.named.name,
                         expected=expected)  # fmt: skip


CODECS = (
    Record(
        id="vlen-utf8", kind=A2B,
        names={"vlen-utf8": Name(bind_utf8, MOST, "registered"), "numcodecs.vlen-utf8": Name(bind_utf8)},
        words="text of any length", decodes_with={}, **plain("vlen-utf8"),
    ),
    Record(
        id="vlen-bytes", kind=A2B,
        names={"vlen-bytes": Name(bind_bytes, MOST, "registered"), "numcodecs.vlen-bytes": Name(bind_bytes)},
        words="byte strings of any length", decodes_with={}, **plain("vlen-bytes"),
    ),
    Record(
        id="vlen-array", kind=A2B, names={"numcodecs.vlen-array": Name(bind_array)}, parameters={"dtype": str},
        words="rows of any length",
    ),
    Record(
        id="zarrs.vlen_v2", kind=A2B, names={"zarrs.vlen_v2": Name(bind_any)}, v2="-",
        words="items of any length", note="`vlen-utf8` or `vlen-bytes`, by the data type",
    ),
)  # fmt: skip
