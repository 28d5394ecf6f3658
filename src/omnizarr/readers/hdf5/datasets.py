"""Datasets: shape, datatype, fill value, layout, filters.

Spec: HDF5 File Format Specification, IV.A.2.f "The Data Storage - Fill Value Message", IV.A.2.i "The Data Layout
Message", IV.A.2.l "The Data Storage - Filter Pipeline Message".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from omnizarr.readers.hdf5 import datatypes, messages
from omnizarr.readers.hdf5.datatypes import Dataspace, Datatype
from omnizarr.readers.hdf5.messages import Header
from omnizarr.readers.hdf5.source import Cursor, decode

Storage: TypeAlias = Literal["compact", "contiguous", "chunked", "virtual"]
_STORAGE: Final[tuple[Storage, ...]] = ("compact", "contiguous", "chunked", "virtual")

Index: TypeAlias = Literal["tree", "single", "implicit", "fixed", "extensible", "tree 2"]
_INDEXES: Final[dict[int, Index]] = {1: "single", 2: "implicit", 3: "fixed", 4: "extensible", 5: "tree 2"}
_RANK: Final = 33  # with the size of an element
_PARAMETERS: Final = {"fixed": 1, "extensible": 5, "tree 2": 6}


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of chunks."""

    number: int
    name: str
    is_optional: bool
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a dataset are.

    Attributes
    ----------
    storage : {"compact", "contiguous", "chunked", "virtual"}
    address : int or None
        Of the elements, or of the index of chunks. None: none are stored.
    size : int
        Bytes of the elements, if they are contiguous.
    data : bytes
        The elements, if they are compact.
    chunk_shape : tuple of int
    index : str
        The kind of index of chunks.
    has_raw_edges : bool
        Whether chunks that the edge of the array cuts are not filtered.
    single : tuple of int or None
        Bytes and filter mask of a single filtered chunk.
    number : int
        The number of the mappings in the global heap, if the dataset is virtual.
    """

    storage: Storage
    address: int | None = None
    size: int = 0
    data: bytes = b""
    chunk_shape: tuple[int, ...] = ()
    index: Index = "tree"
    has_raw_edges: bool = False
    single: tuple[int, int] | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Fill:
    """A fill value: its bytes; None if it is the default, which is zero, or undefined."""

    raw: bytes | None
    is_defined: bool = True


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset."""

    header: Header
    datatype: Datatype
    dataspace: Dataspace
    fill: Fill
    layout: Layout
    filters: tuple[Filter, ...]
    is_external: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; () for a null dataspace."""
        return self.dataspace.shape or ()


def is_dataset(header: Header) -> bool:
    """Return whether an object is a dataset."""
    kinds = {each.kind for each in header.messages}
    return messages.LAYOUT in kinds and messages.DATASPACE in kinds


def read(header: Header) -> Dataset:
    """Return the dataset of an object header."""
    source = header.source
    space, kind, place = (header.find(each) for each in (messages.DATASPACE, messages.DATATYPE, messages.LAYOUT))
    if space is None or kind is None or place is None:
        raise source.broken(header.address, "a dataset has no dataspace, datatype or layout")
    dataspace = datatypes.dataspace(space)
    datatype = datatypes.datatype(kind)
    layout = _layout(place, dataspace, datatype)
    chain = header.find(messages.FILTERS)
    return Dataset(
        header,
        datatype,
        dataspace,
        _fill(header, datatype),
        layout,
        () if chain is None else source.parsed(chain, _filters),
        header.find(messages.EXTERNAL) is not None,
    )


def _fill(header: Header, datatype: Datatype) -> Fill:
    cursor = header.find(messages.FILL)
    if cursor is None:
        old = header.find(messages.OLD_FILL)
        if old is None:
            return Fill(None)
        size = old.uint(4)
        return Fill(_value(old, size, datatype))
    version = cursor.version("the fill value", 1, 2, 3)
    if version < 3:
        cursor.skip(2)
        is_defined = bool(cursor.uint(1))
        has_value = version == 1 or is_defined
    else:
        flags = cursor.uint(1)
        is_defined, has_value = not flags & 16, bool(flags & 32)
    if not has_value or cursor.left < 4:
        return Fill(None, is_defined)
    size = cursor.uint(4)
    if size == 0xFFFFFFFF:  # version 1: undefined
        return Fill(None, is_defined=False)
    return Fill(_value(cursor, size, datatype), is_defined)


def _value(cursor: Cursor, size: int, datatype: Datatype) -> bytes | None:
    if not size:
        return None
    if size != datatype.size:
        cursor.fail("the fill value has another size than an element", found=size, expected=datatype.size)
    return cursor.take(size)


def _layout(cursor: Cursor, space: Dataspace, datatype: Datatype) -> Layout:
    version = cursor.version("the data layout", 1, 2, 3, 4, 5)
    if version < 3:
        return _old_layout(cursor, space, datatype)
    number = cursor.uint(1)
    if number >= len(_STORAGE) or (number == 3 and version < 4):
        cursor.fail("the class of the data layout is unknown", found=number)
    storage = _STORAGE[number]
    if storage == "compact":
        return Layout(storage, data=cursor.take(cursor.uint(2)))
    if storage == "contiguous":
        return Layout(storage, cursor.address_or_none(), cursor.length())
    if storage == "virtual":
        return Layout(storage, cursor.address_or_none(), number=cursor.uint(4))
    if version == 3:
        rank = cursor.uint(1)
        address = cursor.address_or_none()
        lengths = [cursor.uint(4) for _ in range(rank)]
        return Layout(storage, address, chunk_shape=_chunk_shape(cursor, lengths, space, datatype))
    flags, rank, width = cursor.uint(1), cursor.uint(1), cursor.uint(1)
    if not 1 <= width <= 8:
        cursor.fail("the width of the lengths of chunks is not valid", found=width)
    chunk_shape = _chunk_shape(cursor, [cursor.uint(width) for _ in range(rank)], space, datatype)
    index = _INDEXES.get(kind := cursor.uint(1))
    if index is None:
        cursor.fail("the kind of the index of chunks is unknown", found=kind)
    cursor.skip(_PARAMETERS.get(index, 0))
    single = (cursor.length(), cursor.uint(4)) if index == "single" and flags & 2 else None
    return Layout(
        storage,
        cursor.address_or_none(),
        chunk_shape=chunk_shape,
        index=index,
        has_raw_edges=bool(flags & 1),
        single=single,
    )


def _old_layout(cursor: Cursor, space: Dataspace, datatype: Datatype) -> Layout:
    rank, number = cursor.uint(1), cursor.uint(1)
    if not 0 < rank <= _RANK:
        cursor.fail("the data layout has no such number of dimensions", found=rank, expected=f"1 to {_RANK}")
    cursor.skip(5)
    if number > 2:
        cursor.fail("the class of the data layout is unknown", found=number)
    storage = _STORAGE[number]
    address = None if storage == "compact" else cursor.address_or_none()
    lengths = [cursor.uint(4) for _ in range(rank)]
    if storage == "compact":
        return Layout(storage, data=cursor.take(cursor.uint(4)))
    if storage == "contiguous":
        return Layout(storage, address, space.count * datatype.size)
    return Layout(storage, address, chunk_shape=_chunk_shape(cursor, lengths, space, datatype))


def _chunk_shape(cursor: Cursor, lengths: list[int], space: Dataspace, datatype: Datatype) -> tuple[int, ...]:
    """Return the shape of chunks: the lengths without the last, which is the size of an element."""
    *chunk_shape, size = lengths or [0]
    rank = len(space.shape or ())
    if len(chunk_shape) != rank or 0 in chunk_shape or size != datatype.size:
        cursor.fail(
            "the shape of chunks does not fit the dataset",
            found=(*chunk_shape, size),
            expected=f"{rank} lengths, and {datatype.size}, the size of an element",
        )
    return tuple(chunk_shape)


def _filters(cursor: Cursor) -> tuple[Filter, ...]:
    version = cursor.version("the filter pipeline", 1, 2)
    count = cursor.uint(1)
    if version == 1:
        cursor.skip(6)
    found = []
    for _ in range(count):
        number = cursor.uint(2)
        length = cursor.uint(2) if version == 1 or number >= 256 else 0
        flags, values = cursor.uint(2), cursor.uint(2)
        start = cursor.at
        name = decode(cursor.take(length).split(b"\0")[0])
        if version == 1:
            cursor.align(start)
        parameters = tuple(cursor.uint(4) for _ in range(values))
        if version == 1 and values % 2:
            cursor.skip(min(4, cursor.left))
        found.append(Filter(number, name, bool(flags & 1), parameters))
    return tuple(found)
