"""zarrs.vlen: items of variable length, with an index of where each begins.

Configuration: ``index_codecs``, ``data_codecs``: lists of codecs; ``index_data_type``: "uint32" or "uint64";
``index_location``: "start" (default) or "end".
Format: the size of the encoded index in 64 bits (little-endian), the encoded index, the encoded bytes of all items. The
index has one offset more than there are items. With the index at the end, the order is the other way round.
Agrees with zarrs. Spec: https://codec.zarrs.dev/array_to_bytes/vlen
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from omnizarr.codecs import chain
from omnizarr.codecs.chain import Chain
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, Configuration
from omnizarr.codecs.elements import row_of
from omnizarr.codecs.record import A2B, Name, Record
from omnizarr.codecs.streams import ObjectCodec, check_size, variable
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, OmnizarrError
from omnizarr.model import Named, datatypes

_SPEC: Final = "zarrs, vlen"
_PREFIX: Final = 8


@dataclass(frozen=True, slots=True)
class IndexedVlen(ObjectCodec):
    """Items of variable length after or before their index."""

    decoded: ArraySpec
    index: Chain
    data_codecs: tuple[Named, ...]
    index_at_end: bool

    @property
    def _is_text(self) -> bool:
        return self.decoded.data_type.named.name == "string"

    def encode(self, array: AnyArray) -> Buffer:
        """Return index and items."""
        items = [self._stored(item) for item in row_of(array).tolist()]
        offsets = np.fromiter(itertools.accumulate(map(len, items), initial=0), np.uint64, len(items) + 1)
        dtype = self.index.spec.dtype
        if dtype.itemsize == 4 and int(offsets[-1]) >= 2**32:
            raise CodecError("the items are too large for offsets of 32 bits", found=f"{offsets[-1]} bytes",
                             expected="less than 4 GiB", remedy="choose smaller chunks, or uint64")  # fmt: skip
        index = bytes(self.index.encode(offsets.astype(dtype)))
        joined = b"".join(items)
        data = bytes(self._chain_of(len(joined)).encode(np.frombuffer(joined, np.uint8))) if joined else b""
        size = len(index).to_bytes(_PREFIX, "little")
        return data + index + size if self.index_at_end else size + index + data

    def decode(self, data: Buffer) -> AnyArray:
        """Return the items. Raises ChunkError, ChunkSizeError."""
        view = memoryview(data)
        if len(view) < _PREFIX:
            raise ChunkSizeError("too short for the size of the index", found=f"{len(view)} bytes",
                                 expected=f"at least {_PREFIX} bytes")  # fmt: skip
        prefix, rest = (view[-_PREFIX:], view[:-_PREFIX]) if self.index_at_end else (view[:_PREFIX], view[_PREFIX:])
        size = int.from_bytes(prefix, "little")
        if size > len(rest):
            raise ChunkSizeError("the index is cut off", found=f"{len(rest)} bytes", expected=f"at least {size} bytes")
        at = len(rest) - size if self.index_at_end else size
        index, stored = (rest[at:], rest[:at]) if self.index_at_end else (rest[:at], rest[at:])
        offsets = self.index.decode(index).astype(np.uint64)
        if int(offsets[0]) != 0 or (offsets[1:] < offsets[:-1]).any():
            raise ChunkError("the offsets of the index do not increase from 0", spec=_SPEC)
        total = int(offsets[-1])
        check_size(total, variable(self.decoded))
        items = bytes(self._chain_of(total).decode(stored)) if total else b""
        return self._array_of(items, offsets.tolist())

    def _array_of(self, items: bytes, offsets: Sequence[int]) -> AnyArray:
        parts = [items[start:stop] for start, stop in itertools.pairwise(offsets)]
        if self.decoded.dtype.kind == "T":
            try:
                return np.array([part.decode() for part in parts], self.decoded.dtype).reshape(self.decoded.shape)
            except UnicodeDecodeError as error:
                raise ChunkError(f"cannot decode: {error}") from error
        row = np.empty(len(parts), object)
        row[:] = parts
        return row.reshape(self.decoded.shape)

    def _stored(self, item: Any) -> bytes:
        if self._is_text and isinstance(item, str):
            return item.encode()
        if not self._is_text and isinstance(item, bytes | bytearray):
            return bytes(item)
        if item is None or (not self._is_text and item == 0):  # the fill of unwritten elements
            return b""
        raise CodecError(f"cannot encode: {item!r} is not {'text' if self._is_text else 'bytes'}")

    def _chain_of(self, size: int) -> Chain:
        """Return the codecs of all items, which together have `size` bytes."""
        return _bind_chain(self.data_codecs, (size,), "uint8", self.decoded, "data_codecs")


def bind(configuration: Configuration, decoded: ArraySpec) -> IndexedVlen:
    """Return the codec."""
    names = ("index_codecs", "data_codecs", "index_data_type", "index_location")
    fields = Fields(configuration, names, _SPEC)
    if decoded.data_type.named.name not in ("string", "bytes", "variable_length_bytes"):
        raise CodecError("the codec is made for other data types", found=decoded.data_type.named.name,
                         expected="string or bytes")  # fmt: skip
    index_type = fields.choice("index_data_type", {"uint32": "uint32", "uint64": "uint64"})
    index_at_end = fields.choice("index_location", {"start": False, "end": True}, "start")
    index_codecs, data_codecs = (_codecs(fields, name) for name in ("index_codecs", "data_codecs"))
    count = int(np.prod(decoded.shape, dtype=object))
    index = _bind_chain(index_codecs, (count + 1,), index_type, decoded, "index_codecs")
    _bind_chain(data_codecs, (1,), "uint8", decoded, "data_codecs")
    return IndexedVlen(decoded, index, data_codecs, index_at_end)


def _bind_chain(codecs: tuple[Named, ...], shape: tuple[int, ...], name: str, like: ArraySpec, member: str) -> Chain:
    data_type = datatypes.bind(Named(name))
    spec = replace(like, shape=shape, data_type=data_type, fill_value=data_type.dtype.type(0))
    try:
        return chain.bind(codecs, spec)
    except OmnizarrError as error:
        error.pointer = f"/configuration/{member}" + (error.pointer or "").removeprefix("/codecs")
        raise


def _codecs(fields: Fields, name: str) -> tuple[Named, ...]:
    value = fields.raw(name)
    if not isinstance(value, list | tuple):
        raise fields.reject(name, "no list of codecs", value, "a list")
    found: list[Named] = []
    for number, item in enumerate(value):
        named = Named(item) if isinstance(item, str) else item
        if isinstance(named, Mapping) and isinstance(named.get("name"), str):
            given = named.get("configuration", {})
            named = Named(named["name"], given if isinstance(given, Mapping) else {})
        if not isinstance(named, Named):
            raise fields.reject(f"{name}/{number}", "no codec", item, "an object with a name")
        found.append(named)
    return tuple(found)


CODECS = (
    Record(
        id="zarrs.vlen", kind=A2B, names={"zarrs.vlen": Name(bind)},
        parameters={"index_codecs": list, "data_codecs": list, "index_data_type": str, "index_location": str}, v2="-",
        words="items of any length, with an index", defaults={"index_location": "start"},
    ),
)  # fmt: skip
