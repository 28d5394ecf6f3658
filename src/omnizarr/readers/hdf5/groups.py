"""Groups: links by name, in symbol tables (old), in object headers and in heaps (new).

Spec: HDF5 File Format Specification, III.B "Group Symbol Table Nodes", IV.A.2.c "The Link Info Message".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from omnizarr.readers.hdf5 import btrees, heaps, messages
from omnizarr.readers.hdf5.messages import Header
from omnizarr.readers.hdf5.source import Cursor, decode

_OF_GROUPS: Final = frozenset({messages.SYMBOL_TABLE, messages.LINK_INFO, messages.LINK})


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a group.

    Attributes
    ----------
    name : str
    kind : {"hard", "soft", "external", "other"}
    address : int or None
        Of a hard link: the object header.
    target : str
        Of a soft or external link: the path.
    file : str
        Of an external link: the file.
    order : int or None
        When it was made, relative to others.
    """

    name: str
    kind: Literal["hard", "soft", "external", "other"]
    address: int | None = None
    target: str = ""
    file: str = ""
    order: int | None = None


def is_group(header: Header) -> bool:
    """Return whether an object is a group."""
    return any(each.kind in _OF_GROUPS for each in header.messages)


def read(header: Header) -> dict[str, Link]:
    """Return the links of a group: in the order in which they were made if the file keeps it, or by name."""
    table = header.find(messages.SYMBOL_TABLE)
    found = _old(table) if table is not None else _new(header)
    if all(each.order is not None for each in found):
        found.sort(key=lambda each: each.order or 0)
    else:
        found.sort(key=lambda each: each.name)
    links = {each.name: each for each in found}
    if len(links) != len(found):
        raise header.source.broken(header.address, "two links of a group have one name")
    return links


def _old(cursor: Cursor) -> list[Link]:
    source = cursor.source
    tree, heap = cursor.defined("the B-tree of a group"), heaps.local(source, cursor.defined("the names of a group"))
    found = []
    walk = source.visits("the symbol tables of a group")
    form, undefined = source.form("NAI4x16s"), (1 << 8 * source.offset_size) - 1
    for at in btrees.leaves(source, tree):
        head = source.cursor(at, 8)
        head.signature(b"SNOD")
        head.version("the symbol table", 1)
        head.skip(1)
        count = head.uint(2)
        walk.visit(at, 8 + count * form.size)
        # The text of the format says bytes of an address, and the HDF5 library writes those of a length.
        for name_at, address, kind, scratch in form.iter_unpack(source.read(at + 8, count * form.size)):
            name = decode(heaps.text_at(heap, name_at))
            if kind == 2:
                target = decode(heaps.text_at(heap, int.from_bytes(scratch[:4], "little")))
                found.append(Link(name, "soft", target=target))
            else:
                found.append(Link(name, "hard", None if address == undefined else address))
    return found


def _new(header: Header) -> list[Link]:
    source = header.source
    found = [_link(each) for each in header.each(messages.LINK)]
    info = header.find(messages.LINK_INFO)
    if info is None:
        return found
    info.version("the link info", 0)
    flags = info.uint(1)
    info.skip(8 if flags & 1 else 0)
    heap_at, names = info.address_or_none(), info.address_or_none()
    if heap_at is None or names is None:
        return found
    heap = heaps.fractal(source, heap_at)
    found += (
        _link(Cursor(source, heap_at, heap.get(record[4 : 4 + heap.id_length])))
        for record in btrees.records(source, names, {5})
    )
    return found


def _link(cursor: Cursor) -> Link:
    cursor.version("the link", 1)
    flags = cursor.uint(1)
    kind = cursor.uint(1) if flags & 8 else 0
    order = cursor.uint(8) if flags & 4 else None
    cursor.skip(1 if flags & 16 else 0)
    name = decode(cursor.take(cursor.uint(1 << (flags & 3))))
    if kind == 0:
        return Link(name, "hard", cursor.address_or_none(), order=order)
    value = cursor.take(cursor.uint(2))
    if kind == 1:
        return Link(name, "soft", target=decode(value), order=order)
    if kind == 64:
        file, _, target = value[1:].rstrip(b"\0").partition(b"\0")
        return Link(name, "external", target=decode(target), file=decode(file), order=order)
    return Link(name, "other", order=order)
