"""Attributes: in object headers, and in heaps where there are many.

Spec: HDF5 File Format Specification, IV.A.2.m "The Attribute Message", IV.A.2.v "The Attribute Info Message".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from omnizarr.errors import MetadataError
from omnizarr.readers.hdf5 import btrees, datatypes, heaps, messages
from omnizarr.readers.hdf5.datatypes import Dataspace, Datatype
from omnizarr.readers.hdf5.messages import Header
from omnizarr.readers.hdf5.source import Cursor, decode

_SIZES: Final = struct.Struct("<3H")  # of name, datatype and dataspace


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute in its stored form."""

    name: str
    datatype: Datatype
    dataspace: Dataspace
    raw: bytes
    address: int


def read(header: Header, broken: list[tuple[str, MetadataError]] | None = None) -> list[Attribute]:
    """Return the attributes of an object: in the order in which they were made if the file keeps it, or by name.

    Those that the header of the object holds lie in that order, whether or not they are numbered.

    Parameters
    ----------
    header : Header
    broken : list, optional
        To which the errors of broken attributes are added, with their names. Without it the first one is raised.
    """
    found: list[tuple[int | None, Attribute]] = []
    for order, cursor in _cursors(header, broken):
        try:
            found.append((order, _attribute(cursor)))
        except MetadataError as error:
            if broken is None:
                raise
            broken.append((_name(cursor), error))
    if found and all(order is not None for order, _ in found):
        found.sort(key=lambda each: each[0] or 0)
    elif len(found) > sum(message.kind == messages.ATTRIBUTE for message in header.messages):
        found.sort(key=lambda each: each[1].name)
    return [each for _, each in found]


def _cursors(header: Header, broken: list[tuple[str, MetadataError]] | None) -> Iterator[tuple[int | None, Cursor]]:
    """Yield where attributes are described, each with its order."""
    for message in header.messages:
        if message.kind == messages.ATTRIBUTE:
            yield message.order, Cursor(header.source, message.address, message.data)
    info = header.find(messages.ATTRIBUTE_INFO)
    if info is None:
        return
    try:
        yield from _in_heap(info)
    except MetadataError as error:
        if broken is None:
            raise
        broken.append(("", error))


def _in_heap(info: Cursor) -> Iterator[tuple[int | None, Cursor]]:
    source = info.source
    info.version("the attribute info", 0)
    flags = info.uint(1)
    info.skip(2 if flags & 1 else 0)
    heap_at, names = info.address_or_none(), info.address_or_none()
    if heap_at is None or names is None:
        return
    heap = heaps.fractal(source, heap_at)
    for record in btrees.records(source, names, {8}):
        cursor = Cursor(source, names, record)
        identifier, own = Cursor(source, names, cursor.take(8)), cursor.uint(1)
        order = cursor.uint(4) if flags & 1 else None
        data = (
            messages.in_shared_heap(identifier, messages.ATTRIBUTE)
            if own & 2
            else heap.get(identifier.take(heap.id_length))
        )
        yield order, Cursor(source, heap_at, data)


def _name(cursor: Cursor) -> str:
    """Return the name of a broken attribute; "" if that is broken, too."""
    try:
        again = Cursor(cursor.source, cursor.address, cursor.data)
        version = again.version("the attribute", 1, 2, 3)
        again.skip(1)
        size = again.uint(2)
        again.skip(5 if version == 3 else 4)
        return decode(again.take(size).split(b"\0")[0])
    except MetadataError:
        return ""


def _attribute(cursor: Cursor) -> Attribute:
    source, address = cursor.source, cursor.address
    version = cursor.version("the attribute", 1, 2, 3)
    flags = cursor.uint(1) if version > 1 else cursor.uint(1) & 0
    sizes = cursor.unpack(_SIZES)
    if version == 3:
        cursor.skip(1)
    parts = []
    for size in sizes:
        start = cursor.at
        parts.append(Cursor(source, address + start, cursor.take(size)))
        if version == 1:
            cursor.align(start)
    name = decode(parts[0].data.split(b"\0")[0])
    kind = datatypes.shared_datatype(parts[1]) if flags & 1 else datatypes.datatype(parts[1])
    if flags & 2:
        parts[2] = Cursor(source, address, messages.shared_data(parts[2], messages.DATASPACE))
    space = datatypes.dataspace(parts[2])
    size = space.count * kind.size
    if size > cursor.left:
        cursor.fail(f"the value of the attribute {name!r} ends too early", found=cursor.left, expected=size)
    return Attribute(name, kind, space, cursor.take(size), address)
