"""Elements of any datatype as NumPy arrays, with values of variable length from the global heap.

Spec: HDF5 File Format Specification, III.E "Global Heap", IV.B "Data Storage".
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.readers.hdf5.datatypes import Datatype
from omnizarr.readers.hdf5.heaps import GlobalHeap
from omnizarr.readers.hdf5.source import Source, decode

_DEPTH: Final = 32


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

    Raises MetadataError if an element leads to no place in the heap.
    """
    return _values(source, datatype, raw, name_of, _heap(source))


def _heap(source: Source) -> GlobalHeap:
    heap: GlobalHeap | None = source.memo.get("global heap")
    if heap is None:
        heap = source.memo["global heap"] = GlobalHeap(source)
    return heap


def _values(
    source: Source, datatype: Datatype, raw: bytes, name_of: Callable[[int], str], heap: GlobalHeap
) -> NDArray[Any]:
    count = len(raw) // datatype.size if datatype.size else 0
    if datatype.kind == "string":
        return _objects([text(raw[at : at + datatype.size], datatype) for at in range(0, len(raw), datatype.size or 1)])
    dtype = datatype.dtype()
    if dtype is not None:
        if dtype.subdtype is not None:
            return np.frombuffer(raw, dtype.base).reshape(count, *dtype.shape)
        return np.frombuffer(raw, dtype)
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


def _starts(raw: bytes, datatype: Datatype) -> range:
    return range(0, len(raw), datatype.size)


def _vlen(
    source: Source, datatype: Datatype, base: Datatype, raw: bytes, name_of: Callable[[int], str], heap: GlobalHeap
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
