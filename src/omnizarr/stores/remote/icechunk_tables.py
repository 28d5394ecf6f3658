"""Flatbuffers, read with NumPy: many tables of one kind at a time, as snapshots and manifests of Icechunk have them.

A table begins with the distance to its vtable, which says where in the table each field is, or that it is absent. All
positions are checked before something is read there, so that a broken file is an error. No position is followed twice,
so there are no loops.

Spec: FlatBuffers, "FlatBuffer internals".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from omnizarr.errors import StoreError
from omnizarr.stores.base import Buffer
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Lazy("numpy")

SPEC: Final = "Icechunk format specification"
_MOST: Final = (1 << 31) - 1
_TYPES: Final = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8"}


def broken(message: str, found: object = None, expected: str | None = None) -> StoreError:
    """Return the error of a file that is not as it should be."""
    return StoreError(message, found=None if found is None else str(found), expected=expected, spec=SPEC)


class Vectors(NamedTuple):
    """Vectors of several tables: where their elements begin, and how many there are. An absent one begins at 0."""

    starts: NDArray[np.int64]
    counts: NDArray[np.int64]


class Flat:
    """The bytes of a flatbuffer. Positions are arrays of int64; 0 is the position of what is absent.

    Raises
    ------
    StoreError
        From all methods, if something lies outside of the bytes.
    """

    def __init__(self, data: Buffer) -> None:
        self.data = memoryview(data).cast("B")
        self.size = len(self.data)
        if not 8 <= self.size <= _MOST:
            raise broken("a flatbuffer of this size cannot be", f"{self.size} bytes", f"8 to {_MOST} bytes")
        # A view for each width, in which an element begins at each byte.
        self._views = {
            width: np.ndarray((self.size - width + 1,), kind, self.data, 0, (1,)) for width, kind in _TYPES.items()
        }

    def numbers(self, positions: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """Return the unsigned numbers at some positions. Those of 64 bits must be less than 2**63."""
        if len(positions) and not (positions.min() >= 0 and positions.max() <= self.size - width):
            raise broken("a flatbuffer refers to bytes behind its end", f"{self.size} bytes")
        found = self._views[width][positions].astype(np.int64)
        if width == 8 and len(found) and found.min() < 0:
            raise broken("a number cannot be so large", "2**63 or more")
        return found

    def root(self) -> NDArray[np.int64]:
        """Return the position of the outermost table."""
        return self.numbers(np.zeros(1, np.int64), 4)

    def fields(self, tables: NDArray[np.int64], number: int) -> NDArray[np.int64]:
        """Return where a field of each table is."""
        distances = self.numbers(tables, 4).astype(np.uint32).view(np.int32).astype(np.int64)
        vtables = tables - distances
        sizes = self.numbers(vtables, 2)
        slot = 4 + 2 * number
        there = sizes >= slot + 2
        offsets = np.zeros_like(tables)
        offsets[there] = self.numbers(vtables[there] + slot, 2)
        found: NDArray[np.int64] = np.where(offsets > 0, tables + offsets, 0)
        return found

    def scalars(self, tables: NDArray[np.int64], number: int, width: int, default: int = 0) -> NDArray[np.int64]:
        """Return a number of each table."""
        positions = self.fields(tables, number)
        found = np.full(len(tables), default, np.int64)
        there = positions > 0
        found[there] = self.numbers(positions[there], width)
        return found

    def vectors(self, tables: NDArray[np.int64], number: int, width: int) -> Vectors:
        """Return the vectors in a field of each table, whose elements have `width` bytes."""
        return self._vectors(self.fields(tables, number), width)

    def _vectors(self, positions: NDArray[np.int64], width: int) -> Vectors:
        starts, counts = np.zeros_like(positions), np.zeros_like(positions)
        there = positions > 0
        begun = positions[there] + self.numbers(positions[there], 4)
        counts[there] = self.numbers(begun, 4)
        starts[there] = begun + 4
        if len(starts) and (starts + counts * width).max() > self.size:
            raise broken("a vector in a flatbuffer ends behind its end", f"{self.size} bytes")
        return Vectors(starts, counts)

    def tables(self, table: NDArray[np.int64], number: int) -> NDArray[np.int64]:
        """Return the tables in a vector of one table, which must be there."""
        ((start,), (count,)) = self.vectors(table, number, 4)
        if not start:
            raise broken("a field that must be there is missing in a flatbuffer", f"field {number}")
        positions: NDArray[np.int64] = start + 4 * np.arange(count, dtype=np.int64)
        return positions + self.numbers(positions, 4)

    def inner(self, tables: NDArray[np.int64], number: int) -> NDArray[np.int64]:
        """Return the table in a field of each table."""
        positions = self.fields(tables, number)
        there = positions > 0
        found = np.zeros_like(positions)
        found[there] = positions[there] + self.numbers(positions[there], 4)
        return found

    def rows(self, positions: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
        """Return `width` bytes at each position, as rows."""
        if len(positions) and not (positions.min() > 0 and positions.max() <= self.size - width):
            raise broken("a field that must be there is missing in a flatbuffer", f"{self.size} bytes")
        found: NDArray[np.uint8] = self._views[1][positions[:, None] + np.arange(width)]
        return found

    def bytes(self, vectors: Vectors, row: int = 0) -> memoryview:
        """Return the elements of one vector of bytes."""
        start = int(vectors.starts[row])
        return self.data[start : start + int(vectors.counts[row])]

    def text(self, vectors: Vectors, row: int = 0) -> str:
        """Return one string. Raises StoreError if it is none."""
        try:
            return str(self.bytes(vectors, row), "utf-8")
        except UnicodeDecodeError as error:
            raise broken("a string in a flatbuffer is not UTF-8", bytes(self.bytes(vectors, row))[:40]) from error

    def strings(self, table: NDArray[np.int64], number: int) -> list[str]:
        """Return the strings in a vector of one table."""
        ((start,), (count,)) = self.vectors(table, number, 4)
        found = self._vectors(start + 4 * np.arange(count, dtype=np.int64), 1)
        return [self.text(found, row) for row in range(int(count))]
