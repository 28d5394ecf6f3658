"""The data section of CDL: variables, read block by block and printed row by row.

Spec: netcdf-c, ncdump/vardata.c (`print_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.netcdf.cdl.lines import CONTINUED, Lines, escaped_bytes, escaped_name, width
from omnizarr.netcdf.header import DimensionHeader, Selection

READ_AT_ONCE: Final = 16 * 2**20
"""Bytes of a variable that are in memory and converted to text at a time."""

_TEXTS_AT_ONCE: Final = 2**16
_BYTES_OF_AN_OBJECT: Final = 64

Texts = Callable[[NDArray[Any]], list[str]]


@dataclass(frozen=True, slots=True)
class Comments:
    """Comments that tell which values stand where.

    Attributes
    ----------
    each : bool
        Behind each value; else before each row.
    fortran : bool
        Indices as Fortran counts them: from 1, the fastest first.
    """

    each: bool
    fortran: bool

    def row(self, index: Sequence[int], length: int) -> str:
        """Return what stands in a comment before a row."""
        if self.fortran:
            return ",".join(["1" if length == 1 else f"1-{length} ", *(str(each + 1) for each in reversed(index))])
        return ",".join([*map(str, index), "0" if length == 1 else f" 0-{length - 1}"])

    def value(self, index: Sequence[int], column: int) -> str:
        """Return what stands in a comment behind a value."""
        if self.fortran:
            return ",".join([str(column + 1), *(str(each + 1) for each in reversed(index))])
        return ",".join(map(str, [*index, column]))


class Rows:
    """The rows of a variable, along its last dimension; a scalar is one row of one value.

    Parameters
    ----------
    name : str
    dimensions : sequence of DimensionHeader
    texts : callable, optional
        Texts of a vector of values. None where the values are characters, and rows strings.
    lines : Lines
    comments : Comments, optional
    pads : bool
        Rows of characters are without the NULs at their end, as those are what ncgen pads them with; else with them.
    """

    def __init__(
        self,
        name: str,
        dimensions: Sequence[DimensionHeader],
        texts: Texts | None,
        lines: Lines,
        comments: Comments | None = None,
        *,
        pads: bool = True,
    ) -> None:
        self._name = name
        self._texts = texts
        self._lines = lines
        self._comments = comments
        self._pads = pads
        self._shape = tuple(each.size for each in dimensions)
        self._length = self._shape[-1] if self._shape else 1
        self._rows = math.prod(self._shape[:-1])
        # Braces surround the records of each further unlimited dimension, so they close and open at regular intervals.
        self._records = [
            math.prod(self._shape[level:-1]) for level, each in enumerate(dimensions) if level and each.unlimited
        ]
        # Strings behind one another are one string, except where each of them is a row.
        self._is_one_string = len(dimensions) < 2 or dimensions[-1].unlimited

    def printed(self, read: Callable[[Selection], NDArray[Any]], itemsize: int) -> Iterator[str]:
        """Yield the lines of the variable, from its name to the semicolon."""
        lines, name = self._lines, escaped_name(self._name)
        if len(self._shape) < 2:
            lines.position = lines.indent + width(self._name) + 4
            head = f"\n{lines.margin} {name} = "
        else:
            lines.position = lines.indent + 2
            head = f"\n{lines.margin} {name} =\n  "
        yield head
        row = column = nuls = 0
        for values in self._values(read, itemsize):
            texts = None if self._texts is None else self._texts(values)
            start = 0
            while start < len(values):
                stop = min(start + self._length - column, len(values))
                is_last = column + stop - start == self._length
                opening = "" if column else self._opening(row)
                if texts is None:
                    string, nuls = self._string(values[start:stop].tobytes(), nuls if column else 0)
                    yield opening + string + (self._closing('"', row) if is_last else "")
                else:
                    items = self._items(texts[start : stop - is_last], row, column)
                    yield opening + items + (self._closing(texts[stop - 1], row) if is_last else "")
                row, column = (row + 1, 0) if is_last else (row, column + stop - start)
                start = stop

    def _values(self, read: Callable[[Selection], NDArray[Any]], itemsize: int) -> Iterator[NDArray[Any]]:
        for selection in blocks(self._shape, max(1, READ_AT_ONCE // itemsize)):
            values = read(selection).reshape(-1)
            for start in range(0, len(values), _TEXTS_AT_ONCE):
                yield values[start : start + _TEXTS_AT_ONCE]

    def _index(self, row: int) -> list[int]:
        return [int(each) for each in np.unravel_index(row, self._shape[:-1])] if len(self._shape) > 1 else []

    def _braces(self, row: int) -> int:
        return sum(row % each == 0 for each in self._records)

    def _opening(self, row: int) -> str:
        text = "".join([self._lines.put("{") for _ in range(self._braces(row))])
        if self._comments and not self._comments.each and len(self._shape) > 1:
            comment = self._comments.row(self._index(row), self._length)
            text += f"// {escaped_name(self._name)}({comment})\n{self._lines.margin}{CONTINUED}"
            self._lines.position = self._lines.indent + len(CONTINUED)
        return text if self._texts else f'{text}"'

    def _items(self, texts: Sequence[str], row: int, column: int) -> str:
        comment = self._comment(row)
        if comment:
            return "".join([f"{text}, {comment(number)}" for number, text in enumerate(texts, start=column)])
        return self._lines.items(texts)

    def _comment(self, row: int) -> Callable[[int], str] | None:
        """Return what makes the comment behind a value, from its column."""
        comments = self._comments
        if comments is None or not comments.each:
            return None
        index, name = self._index(row), escaped_name(self._name)
        return lambda column: f"  // {name}({comments.value(index, column)})\n{CONTINUED}"

    def _closing(self, text: str, row: int) -> str:
        braces = "}" * self._braces(row + 1)
        is_last = row + 1 == self._rows
        comment = self._comment(row)
        if comment:
            return f"{text}{braces}{';' if is_last else ','}{comment(self._length - 1)}"
        # A string is never moved to the next line.
        text = f"{text}{self._lines.put(braces)}" if self._texts is None else self._lines.put(text + braces)
        self._lines.position = self._lines.indent + (0 if is_last else 2)
        return f"{text} ;\n" if is_last else f"{text},\n  "

    def _string(self, raw: bytes, nuls: int) -> tuple[str, int]:
        """Return a part of a row of characters without the NULs at its end, and their number. `nuls` precede it."""
        text = raw.rstrip(b"\0") if self._pads else raw
        if not text:
            return "", nuls + len(raw)
        return escaped_bytes(bytes(nuls) + text, in_lines=self._is_one_string), len(raw) - len(text)


def blocks(shape: tuple[int, ...], most: int) -> Iterator[Selection]:
    """Yield selections that together are all of an array, in C order, each of no more than `most` elements.

    >>> [tuple((each.start, each.stop) for each in block) for block in blocks((2, 3), 2)]
    [((0, 1), (0, 2)), ((0, 1), (2, 3)), ((1, 2), (0, 2)), ((1, 2), (2, 3))]
    >>> list(blocks((), 5))
    [()]
    """
    axis, inner = len(shape), 1
    while axis and inner * shape[axis - 1] <= most:
        axis -= 1
        inner *= shape[axis]
    whole = tuple(slice(0, length) for length in shape[axis:])
    if axis == 0:
        yield whole
        return
    step = max(1, most // inner)
    for index in np.ndindex(shape[: axis - 1]):
        outer = tuple(slice(each, each + 1) for each in index)
        for start in range(0, shape[axis - 1], step):
            yield (*outer, slice(start, min(start + step, shape[axis - 1])), *whole)


def itemsize_of(dtype: np.dtype[Any]) -> int:
    """Return the bytes that an element takes in memory, about."""
    return _BYTES_OF_AN_OBJECT if dtype.hasobject else max(1, dtype.itemsize)
