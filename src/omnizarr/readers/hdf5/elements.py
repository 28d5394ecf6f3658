"""Elements of any datatype as NumPy arrays, with values of variable length from the global heap.

Spec: HDF5 File Format Specification, III.E "Global Heap", IV.B "Data Storage".
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import Remedy, Setting
from omnizarr.readers.hdf5 import heaps
from omnizarr.readers.hdf5.datatypes import Bits, Datatype
from omnizarr.readers.hdf5.source import Source, decode
from omnizarr.settings import config
from omnizarr.stores.base import Buffer

_OVERHEAD: Final = 16  # bytes that an element of variable length counts, besides its own


def has_heap(datatype: Datatype) -> bool:
    """Return whether elements are, or contain, values of variable length or references."""
    if datatype.kind in {"vlen", "reference"}:
        return True
    return (datatype.base is not None and has_heap(datatype.base)) or any(
        has_heap(each) for _, _, each in datatype.fields
    )


def values(source: Source, datatype: Datatype, raw: bytes, name_of: Callable[[int], str]) -> NDArray[Any]:
    """Return the elements in `raw` as a vector.

    Numbers keep their type and byte order. Texts become str, values of variable length vectors, references the path
    that `name_of` gives for the address of an object, compounds with such members tuples: all of them objects.

    Raises MetadataError if an element leads to no place in the heap, or if the values of variable length have more
    bytes than the setting ``array.variable_chunk_bytes``: many elements can lead to one place.
    """
    return _values(source, datatype, raw, name_of, _Heap(source))


class _Heap:
    """The global heap, from which a bounded number of bytes is taken."""

    def __init__(self, source: Source) -> None:
        self._source, self._heap = source, heaps.global_heap(source)
        self._most = self._left = config.get("array.variable_chunk_bytes")

    def get(self, address: int, number: int) -> memoryview:
        """Return a value."""
        value = self._heap.get(address, number)
        self._left -= len(value) + _OVERHEAD
        if self._left < 0:
            raise self._source.broken(
                address,
                "the values of variable length of one chunk are very long",
                found=f"more than {self._most} bytes",
                remedy=Remedy(
                    "if that is what was written, raise {setting}", setting=Setting("array.variable_chunk_bytes")
                ),
            )
        return value


def _values(source: Source, datatype: Datatype, raw: bytes, name_of: Callable[[int], str], heap: _Heap) -> NDArray[Any]:
    count = len(raw) // datatype.size if datatype.size else 0
    if datatype.kind == "string":
        return _objects([text(raw[at : at + datatype.size], datatype) for at in range(0, len(raw), datatype.size or 1)])
    dtype = datatype.dtype()
    if dtype is not None:
        if dtype.subdtype is not None:
            return np.frombuffer(raw, dtype.base).reshape(count, *dtype.shape)
        return np.frombuffer(raw, dtype)
    if datatype.bits is not None and datatype.bits.dtype is not None:
        return numbers(datatype.bits, raw, datatype.size)
    if datatype.kind == "vlen" and datatype.base is not None:
        return _vlen(source, datatype, datatype.base, raw, name_of, heap)
    if datatype.kind == "reference" and datatype.name == "object reference":
        return _objects([_referred(source, raw[at : at + datatype.size], name_of) for at in _starts(raw, datatype)])
    if datatype.kind == "array" and datatype.base is not None:
        flat = _values(source, datatype.base, raw, name_of, heap)
        return flat.reshape(count, *datatype.shape)
    if datatype.kind == "compound":
        rows = np.frombuffer(raw, np.uint8).reshape(count, datatype.size)
        columns = [
            _values(source, each, rows[:, offset : offset + each.size].tobytes(), name_of, heap)
            for _, offset, each in datatype.fields
        ]
        return _objects(list(zip(*columns, strict=True)))
    return np.frombuffer(raw, f"V{datatype.size}") if count else np.empty(0, "V1")


def numbers(bits: Bits, raw: Buffer, size: int) -> NDArray[Any]:
    """Return numbers that take only some bits of `size` bytes, as a type that has them all: see `Bits.dtype`."""
    dtype = bits.dtype
    assert dtype is not None  # noqa: S101 - callers ask for it
    rows = np.frombuffer(raw, np.uint8).reshape(-1, size)
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, :size] = rows if bits.order == "<" else rows[:, ::-1]
    whole = wide.view("<u8").ravel()
    if not bits.exponent_bits:
        found = _cut(whole, bits.offset, bits.precision)
        if bits.is_signed:
            left = np.int64(64 - bits.precision)
            signed: NDArray[Any] = (found.view(np.int64) << left >> left).astype(dtype)
            return signed
        return found.astype(dtype)
    exponent = _cut(whole, bits.exponent, bits.exponent_bits).astype(np.int64)
    mantissa = _cut(whole, bits.mantissa, bits.mantissa_bits)
    one = np.float64(1 << bits.mantissa_bits)
    if bits.is_implied:
        part = mantissa.astype(np.float64) / one + (exponent > 0)
    else:
        part = mantissa.astype(np.float64) / (one / 2)
    value = np.ldexp(part, np.maximum(exponent, 1) - bits.bias)
    special = exponent == (1 << bits.exponent_bits) - 1
    value[special] = np.where(mantissa[special] == 0, np.inf, np.nan)
    floats: NDArray[Any] = np.where(_cut(whole, bits.sign, 1) > 0, -value, value).astype(dtype)
    return floats


def _cut(whole: NDArray[np.uint64], start: int, count: int) -> NDArray[np.uint64]:
    return whole >> np.uint64(start) & np.uint64((1 << count) - 1)


def packed(datatype: Datatype, raw: Buffer, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return elements as `dtype`, which has the names of a compound, and NumPy's types of all numbers."""
    rows = np.frombuffer(raw, np.uint8).reshape(-1, datatype.size)
    found = np.zeros(len(rows), dtype)
    _pack(datatype, rows, found)
    return found


def _pack(datatype: Datatype, rows: NDArray[np.uint8], out: NDArray[Any]) -> None:
    """Fill `out`, of shape (elements, ...), from elements of a datatype in rows of bytes."""
    if datatype.kind == "compound" and out.dtype.names:
        for name, offset, each in datatype.fields:
            _pack(each, rows[:, offset : offset + each.size], out[name])
    elif datatype.kind == "array" and datatype.base is not None:
        inner = np.ascontiguousarray(rows).reshape(-1, datatype.base.size)
        part = np.zeros((len(inner), *out.shape[1 + len(datatype.shape) :]), out.dtype)
        _pack(datatype.base, inner, part)
        out[...] = part.reshape(out.shape)
    elif datatype.kind == "string":
        out[...] = np.frombuffer(_cut_texts(rows, datatype.padding).tobytes(), f"S{datatype.size}")
    elif (stored := datatype.dtype()) is not None:
        out[...] = np.frombuffer(rows.tobytes(), stored).reshape(len(rows), *stored.shape)
    elif datatype.bits is not None and datatype.bits.dtype is not None:
        out[...] = numbers(datatype.bits, rows.tobytes(), datatype.size)
    else:
        raise TypeError(f"no numbers: {datatype.title()}")


def _cut_texts(rows: NDArray[np.uint8], padding: int) -> NDArray[np.uint8]:
    """Return texts, one in each row, with NULs from their first NUL on, or in place of the spaces that fill them."""
    if padding == 0:
        is_text = np.logical_and.accumulate(rows != 0, axis=1)
    elif padding == 2:
        is_text = np.logical_or.accumulate((rows != ord(" "))[:, ::-1], axis=1)[:, ::-1]
    else:
        return rows
    return np.where(is_text, rows, np.uint8(0))


def _starts(raw: bytes, datatype: Datatype) -> range:
    return range(0, len(raw), datatype.size)


def _vlen(
    source: Source, datatype: Datatype, base: Datatype, raw: bytes, name_of: Callable[[int], str], heap: _Heap
) -> NDArray[Any]:
    o = source.offset_size
    found: list[Any] = []
    for at in _starts(raw, datatype):
        length = int.from_bytes(raw[at : at + 4], "little")
        address = int.from_bytes(raw[at + 4 : at + 4 + o], "little")
        number = int.from_bytes(raw[at + 4 + o : at + 8 + o], "little")
        value = heap.get(address, number) if length and address and number else memoryview(b"")
        size = length if datatype.is_text else length * base.size
        if not value:
            size = 0
        if size > len(value):
            raise source.broken(address, "a value of variable length is longer than its place", found=size)
        if datatype.is_text:
            found.append(decode(bytes(value[:size]).split(b"\0")[0]))
        else:
            found.append(_values(source, base, bytes(value[:size]), name_of, heap))
    return _objects(found)


def _referred(source: Source, raw: bytes, name_of: Callable[[int], str]) -> str:
    address = int.from_bytes(raw[: source.offset_size], "little")
    return name_of(address) if address else ""


def text(raw: bytes, datatype: Datatype) -> str:
    """Return the text of an element of fixed length, without the NULs or spaces that fill it."""
    return decode(raw.rstrip(b" " if datatype.padding == 2 else b"\0"))


def unicode(text: str) -> str:
    """Return a text with U+FFFD in place of bytes that are not UTF-8, as netCDF4-python shows it."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _objects(items: list[Any]) -> NDArray[Any]:
    made = np.empty(len(items), object)
    if items:
        made[:] = items if not isinstance(items[0], tuple | np.ndarray) else [None] * len(items)
        if isinstance(items[0], tuple | np.ndarray):
            for at, each in enumerate(items):
                made[at] = each
    return made


def shaped(found: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a vector of elements in a shape; elements that are arrays keep their own dimensions after it."""
    return found.reshape((*shape, *found.shape[1:])) if prod(shape) == len(found) else found
