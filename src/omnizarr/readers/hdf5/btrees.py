"""B-trees of both versions: their records, level by level.

Spec: HDF5 File Format Specification, III.A "B-trees and B-tree Nodes".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.readers.hdf5.source import SEAL, Cursor, Source, Walk

_LEVELS: Final = 64
LEVEL_BYTES: Final = 1 << 24
"""Bytes of nodes that are read at once."""
_AT_ONCE: Final = 256  # nodes that are fetched together

GROUPS, CHUNKS = 0, 1
_CHUNK_NODE: Final = np.frombuffer(b"TREE\x01", np.uint8)


def leaves(source: Source, address: int) -> Iterator[int]:
    """Yield the addresses of the symbol table nodes below a version 1 B-tree of a group, in order."""
    walk = source.visits("the B-tree of a group")
    head = 8 + 2 * source.offset_size

    def below(at: int, level: int | None) -> Iterator[int]:
        cursor = source.cursor(at, head)
        cursor.signature(b"TREE")
        if cursor.uint(1) != GROUPS:
            cursor.fail("this is not the B-tree of a group")
        own, count = cursor.uint(1), cursor.uint(2)
        if own > _LEVELS or (level is not None and own != level):
            cursor.fail("the level of a node of a B-tree is not valid", found=own, expected=level)
        length = count * (source.length_size + source.offset_size)
        walk.visit(at, head + length)
        entries = source.cursor(at + head, length)
        for _ in range(count):
            entries.skip(source.length_size)
            child = entries.defined("a node of the B-tree of a group")
            if own:
                yield from below(child, own - 1)
            else:
                yield child

    return below(address, None)


def chunk_entries(source: Source, address: int, rank: int) -> NDArray[np.void]:
    """Return the entries of the leaves of a version 1 B-tree of chunks.

    The fields are those of the file: ``size``, ``mask``, ``offsets`` (of `rank` + 1 lengths), ``child``.
    """
    walk = source.visits("the B-tree of chunks")
    level: int | None = None
    nodes: NDArray[np.uint64] = np.array([address], np.uint64)
    while True:
        parts = []
        step = max(1, LEVEL_BYTES // chunk_node_size(source, rank))
        for start in range(0, len(nodes), step):
            chosen = [int(each) for each in nodes[start : start + step]]
            walk.visit_each(chosen, 8 + 2 * source.offset_size)
            own, found, _ = chunk_nodes(source, chosen, rank, None if level is None else level - 1)
            walk.spend(chosen[0], found.nbytes)
            parts.append(found)
        entries = np.concatenate(parts) if len(parts) != 1 else parts[0]
        level = own
        if not level or not len(entries):
            return entries
        nodes = entries["child"].astype(np.uint64)


def chunk_nodes(
    source: Source, addresses: Sequence[int], rank: int, level: int | None
) -> tuple[int, NDArray[np.void], NDArray[np.uint16]]:
    """Return the level, the entries and their numbers of nodes of a version 1 B-tree of chunks, of one level.

    `level` is what it must be; None: any.
    """
    entry, most = _chunk_entry(source, rank), 2 * source.chunk_rank
    head = 8 + 2 * source.offset_size
    rows = source.read_each(addresses, head + most * entry.itemsize)
    counts = rows[:, 6:8].copy().view("<u2").ravel()
    own = rows[:, 5]
    wrong = (rows[:, :5] != _CHUNK_NODE).any(1) | (counts > most) | (own != (own[0] if level is None else level))
    if wrong.any():
        at = int(wrong.argmax())
        raise source.broken(
            addresses[at],
            "this is not a node of a B-tree of chunks",
            found=f"{rows[at, :8].tobytes()!r}",
            expected=f"TREE, type 1, level {'of its siblings' if level is None else level}, {most} entries at most",
        )
    if own[0] > _LEVELS:
        raise source.broken(addresses[0], "a B-tree has too many levels", found=int(own[0]))
    found = rows[:, head:].copy().view(entry)
    return int(own[0]), found[np.arange(most) < counts[:, None]], counts


def chunk_node_size(source: Source, rank: int) -> int:
    """Return how many bytes a node of a version 1 B-tree of chunks has, without its last key."""
    return 8 + 2 * source.offset_size + 2 * source.chunk_rank * _chunk_entry(source, rank).itemsize


def _chunk_entry(source: Source, rank: int) -> np.dtype[np.void]:
    return _entry(source.offset_size, rank)


@cache
def _entry(size: int, rank: int) -> np.dtype[np.void]:
    child = f"<u{size}"
    return np.dtype([("size", "<u4"), ("mask", "<u4"), ("offsets", "<u8", (rank + 1,)), ("child", child)])


def records(source: Source, address: int, types: Collection[int]) -> Iterator[bytes]:
    """Yield the records of a version 2 B-tree."""
    tree = Records.of(source, address, types)
    for block in tree.blocks():
        for start in range(0, len(block), tree.size):
            yield block[start : start + tree.size]


class Child(NamedTuple):
    """A node of a version 2 B-tree: where it is, and the number of its records."""

    address: int
    records: int


@dataclass(frozen=True, slots=True)
class Records:
    """A version 2 B-tree.

    Attributes
    ----------
    size : int
        Bytes of a record.
    root : Child or None
        The first node, of level `depth`.
    """

    source: Source
    kind: int
    node: int
    size: int
    depth: int
    root: Child | None

    @classmethod
    def of(cls, source: Source, address: int, types: Collection[int]) -> Records:
        """Return the tree at an address. Raises MetadataError."""
        o = source.offset_size
        cursor = source.sealed(address, 22 + o + source.length_size, "a B-tree", b"BTHD")
        cursor.version("the B-tree", 0)
        kind = cursor.uint(1)
        if kind not in types:
            cursor.fail("the records of the B-tree are of another type", found=kind, expected=sorted(types))
        node, size, depth = cursor.uint(4), cursor.uint(2), cursor.uint(2)
        cursor.skip(2)
        root, count = cursor.address_or_none(), cursor.uint(2)
        if not size or node < 10 + size or depth > _LEVELS:
            cursor.fail("the sizes of the B-tree are not valid", found=f"nodes of {node} bytes, records of {size}")
        return cls(source, kind, node, size, depth, None if root is None else Child(root, count))

    def blocks(self) -> Iterator[bytes]:
        """Yield the records, many at a time and in any order."""
        walk = self.source.visits("a B-tree")
        widths = self.widths()
        nodes = [] if self.root is None else [self.root]
        for level in range(self.depth, -1, -1):
            below: list[Child] = []
            for start in range(0, len(nodes), _AT_ONCE):
                some = nodes[start : start + _AT_ONCE]
                self.expect(some)
                for records, children in self.read(some, level, widths, walk):
                    yield records
                    below += children
            nodes = below

    def widths(self) -> list[int]:
        """Return the bytes of the numbers of records: in a node, and in all nodes below one of each level."""
        most = (self.node - 10) // self.size
        wide = _width(most)
        totals, cumulated = [0], most
        for _ in range(self.depth):
            pointer = self.source.offset_size + wide + totals[-1]
            most = max(0, self.node - 10 - pointer) // (self.size + pointer)
            cumulated = min((most + 1) * cumulated + most, 1 << 63)
            totals.append(_width(cumulated))
        return [wide, *totals]

    def expect(self, nodes: Sequence[Child]) -> None:
        """Fetch nodes that are read soon together."""
        self.source.expect((each.address for each in nodes), self.node)

    def read(
        self, nodes: Sequence[Child], level: int, widths: list[int], walk: Walk | None = None
    ) -> list[tuple[bytes, list[Child]]]:
        """Return the records of nodes of a level, and the nodes below each. Raises MetadataError."""
        pointer = self.source.offset_size + widths[0] + widths[level] if level else 0
        each, others = self.size + pointer, 6 + pointer + SEAL
        parts = [(address, others + records * each) for address, records in nodes]
        for (address, length), child in zip(parts, nodes, strict=True):
            if length > self.node:
                raise self.source.broken(address, "a node of a B-tree has too many records", found=child.records)
            if walk is not None:
                walk.visit(address, length)
        found = self.source.sealed_each(parts, "a node of a B-tree", b"BTIN" if level else b"BTLF")
        return [self._parse(child, data, level, widths) for child, data in zip(nodes, found, strict=True)]

    def _parse(self, child: Child, data: bytes, level: int, widths: list[int]) -> tuple[bytes, list[Child]]:
        if data[4] or data[5] != self.kind:
            cursor = Cursor(self.source, child.address, data)
            cursor.skip(4)
            cursor.version("the node of the B-tree", 0)
            cursor.fail("a node of the B-tree is of another type", found=data[5], expected=self.kind)
        end = 6 + child.records * self.size
        records = data[6:end]
        if not level:
            return records, []
        o, wide = self.source.offset_size, widths[0]
        pointers = np.frombuffer(data, np.uint8, len(data) - SEAL - end, end).reshape(child.records + 1, -1)
        addresses, counts = uints(pointers[:, :o]), uints(pointers[:, o : o + wide])
        undefined = addresses == np.uint64((1 << 8 * o) - 1)
        if undefined.any():
            at = child.address + end + (int(undefined.argmax()) * pointers.shape[1]) + o
            raise self.source.broken(at, "the address of a node of the B-tree is undefined")
        return records, list(map(Child, addresses.tolist(), counts.tolist()))


def uints(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the little-endian numbers in rows of bytes, which are 8 at most."""
    width = rows.shape[1]
    if width == 8:
        return np.ascontiguousarray(rows).view("<u8").ravel()
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, :width] = rows
    return wide.view("<u8").ravel()


def _width(limit: int) -> int:
    """Return the bytes that a number up to `limit` takes."""
    return (max(1, limit).bit_length() - 1) // 8 + 1
