"""H-compress: tiles of FITS images as coefficients of the H-transform, by bit planes in trees. It only decodes.

A stream has a head, the bit planes of three kinds of quadrants, and the signs of coefficients that are not 0. A bit
plane is stored directly, four bits for two rows and two columns, or as a tree: each node has four bits, which say in
which quarters something is, and the nodes of a level come last to first, in a code of 3 to 6 bits.

Spec: FITS Standard 4.0, section 10.4.4; R. White, "High-performance compression of astronomical images" (1992).
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Small = NDArray[np.uint8]

_MAGIC: Final = b"\xdd\x99"
_HEAD: Final = struct.Struct(">2siiiq3B")
_MOST_PLANES: Final = 62
_CODES: Final = {
    "000": 1, "001": 2, "010": 4, "011": 8, "1000": 3, "1001": 5, "1010": 10, "1011": 12, "1100": 15, "11010": 6,
    "11011": 7, "11100": 9, "11101": 11, "11110": 13, "111110": 0, "111111": 14,
}  # fmt: skip
_TABLE: Final = [
    next((value, len(code)) for code, value in _CODES.items() if f"{bits:06b}".startswith(code)) for bits in range(64)
]
"""By the next six bits: what the code means, and how many bits it has."""


def decode(data: bytes, count: int) -> Ints:
    """Return the pixels of a tile, row by row. Raises ValueError if it is broken, or has not `count` pixels."""
    if len(data) < _HEAD.size:
        raise ValueError("the tile ends too early")
    magic, rows, columns, scale, total, *planes = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError(f"it begins with {magic!r}")
    if rows < 1 or columns < 1 or rows * columns != count:
        raise ValueError(f"it has {rows} x {columns} pixels, expected {count}")
    if max(planes) > _MOST_PLANES:
        raise ValueError(f"it has {max(planes)} bit planes")
    found = np.zeros((rows, columns), np.int64)
    reader = _Bits(data, _HEAD.size)
    top, left = (rows + 1) // 2, (columns + 1) // 2
    quadrants = (
        (found[:top, :left], planes[0]), (found[:top, left:], planes[1]), (found[top:, :left], planes[1]),
        (found[top:, left:], planes[2]),
    )  # fmt: skip
    for quadrant, number in quadrants:
        _read_planes(reader, quadrant, number)
    if reader.nibbles(1).any():
        raise ValueError("its bit planes do not end where they should")
    flat = found.reshape(-1)
    there = np.flatnonzero(flat)
    flat[there] *= 1 - 2 * reader.signs(len(there))
    flat[0] = total
    if scale > 1:
        flat *= scale
    _invert(found)
    return flat


class _Bits:
    """The bits of a stream, from the first of each byte to the last."""

    def __init__(self, data: bytes, start: int) -> None:
        self._bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=start))
        self._at = 0
        # What each six bits mean that begin at a bit: zeros follow the end.
        padded = np.concatenate([self._bits, np.zeros(6, np.uint8)])
        sixes = np.zeros(len(self._bits), np.uint8)
        for place in range(6):
            sixes |= padded[place : place + len(sixes)] << (5 - place)
        self._sixes = sixes.tobytes()

    def nibbles(self, count: int) -> Small:
        """Return numbers of four bits."""
        stop = self._at + 4 * count
        if stop > len(self._bits):
            raise ValueError("the tile ends too early")
        bits = self._bits[self._at : stop].reshape(count, 4)
        self._at = stop
        return (np.packbits(bits, axis=1)[:, 0] >> 4).astype(np.uint8)

    def codes(self, count: int) -> list[int]:
        """Return what `count` codes mean."""
        at, sixes, table = self._at, self._sixes, _TABLE
        found = []
        try:
            for _ in range(count):
                value, length = table[sixes[at]]
                at += length
                found.append(value)
        except IndexError:
            raise ValueError("the tile ends too early") from None
        self._at = at
        return found

    def signs(self, count: int) -> Ints:
        """Return bits that begin with the next whole byte."""
        start = -(-self._at // 8) * 8
        found = self._bits[start : start + count]
        if len(found) < count:
            raise ValueError("the tile ends too early")
        return found.astype(np.int64)


def _levels(rows: int, columns: int) -> int:
    """Return how often the longer side is halved until one is left."""
    return (max(rows, columns) - 1).bit_length()


def _read_planes(reader: _Bits, out: Ints, planes: int) -> None:
    """Read the bit planes of a quadrant, the highest first."""
    rows, columns = out.shape
    half = (rows + 1) // 2, (columns + 1) // 2
    for bit in range(planes - 1, -1, -1):
        form = int(reader.nibbles(1)[0])
        if form == 0:
            nodes = reader.nibbles(half[0] * half[1]).reshape(half)
        elif form == 15:
            nodes = _tree(reader, rows, columns)
        else:
            raise ValueError(f"a bit plane has form {form}")
        if nodes.any():
            out |= _quarters(nodes, rows, columns).astype(np.int64) << bit


def _tree(reader: _Bits, rows: int, columns: int) -> Small:
    """Return the lowest nodes of a tree; one node for all if none has a bit."""
    levels = _levels(rows, columns)
    nodes = np.array([reader.codes(1)], np.uint8)
    if not nodes.any():
        return nodes
    for level in range(1, levels):
        step = levels - level
        shape = (rows + (1 << step) - 1) >> step, (columns + (1 << step) - 1) >> step
        nodes = _quarters(nodes, *shape)
        there = np.flatnonzero(nodes)[::-1]
        nodes.reshape(-1)[there] = reader.codes(len(there))
    return nodes


def _quarters(nodes: Small, rows: int, columns: int) -> Small:
    """Return the four bits of each node as two rows and two columns, without those beyond the edge."""
    found = np.empty((nodes.shape[0], 2, nodes.shape[1], 2), np.uint8)
    for row in range(2):
        for column in range(2):
            found[:, row, :, column] = nodes >> (3 - 2 * row - column) & 1
    return np.ascontiguousarray(found.reshape(2 * nodes.shape[0], -1)[:rows, :columns])


# -- the H-transform ---------------------------------------------------------------------------------


def _rounded(values: Ints, step: int) -> Ints:
    """Return multiples of a power of 2, halves away from zero."""
    half = step >> 1
    return (values + np.where(values >= 0, half, max(half - 1, 0))) & -step


def _invert(coefficients: Ints) -> None:
    """Replace coefficients by pixels."""
    rows, columns = coefficients.shape
    levels = _levels(rows, columns)
    step = 1 << max(levels - 1, 0)
    coefficients[0, 0] = _rounded(coefficients[:1, :1], step << 2)[0, 0]
    for level in range(levels - 1, -1, -1):
        shape = (rows + (1 << level) - 1) >> level, (columns + (1 << level) - 1) >> level
        part = coefficients[: shape[0], : shape[1]]
        part[...] = _combined(part, 1 << level, 2 if level == 0 else 1)


def _combined(part: Ints, bit0: int, shift: int) -> Ints:
    """Return one level: sums and differences of four neighbours become these."""
    rows, columns = part.shape
    top, left = (rows + 1) // 2, (columns + 1) // 2
    shape, bit1 = (top, left), bit0 << 1

    def quadrant(values: Ints) -> Ints:
        whole = np.zeros(shape, np.int64)  # what is beyond the edge is 0
        whole[: values.shape[0], : values.shape[1]] = values
        return whole

    h0 = part[:top, :left]
    hx = quadrant(_rounded(part[top:, :left], bit1))
    hy = quadrant(_rounded(part[:top, left:], bit1))
    hc = quadrant(_rounded(part[top:, left:], bit0))
    low0 = hc & bit0
    hx = np.where(hx >= 0, hx - low0, hx + low0)
    hy = np.where(hy >= 0, hy - low0, hy + low0)
    low1 = (hc ^ hx ^ hy) & bit1
    h0 = np.where(h0 >= 0, h0 + low0 - low1, h0 + np.where(low0 == 0, low1, low0 - low1))
    found = np.empty((top, 2, left, 2), np.int64)
    found[:, 0, :, 0] = h0 - hx - hy + hc
    found[:, 0, :, 1] = h0 - hx + hy - hc
    found[:, 1, :, 0] = h0 + hx - hy - hc
    found[:, 1, :, 1] = h0 + hx + hy + hc
    return found.reshape(2 * top, 2 * left)[:rows, :columns] >> shift
