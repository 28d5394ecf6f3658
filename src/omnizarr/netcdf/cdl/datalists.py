"""The data of variables, as lists of values in CDL.

Facts from netCDF-C's ncgen (semantics.c, generate.c, genchar.c).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.netcdf import types
from omnizarr.netcdf.cdl import literals
from omnizarr.netcdf.cdl.literals import Literal, Text
from omnizarr.netcdf.cdl.times import Times
from omnizarr.netcdf.header import DimensionHeader, Selection
from omnizarr.netcdf.types import NcType

_BRACES = re.compile(f"{literals.STRING_PATTERN}|{literals.CHAR_PATTERN}|{literals.COMMENT_PATTERN}|[{{}}]")
_MAXIMUM_DEPTH: Final = 64
# Lists of only decimal numbers and fill marks take the short way; an octal number or a fill mark that touches
# a number does not.
_PLAIN = re.compile(r"(?:[-+0-9.eE,\s_]++|NaNf?|Infinityf?)*+", re.ASCII)
_OCTAL = re.compile(r"0(?<![0-9.]0)(?<![eE]0)(?<![eE][+-]0)[0-9]", re.ASCII)
_TOUCHING_MARK = re.compile(r"_(?:[^,\s]|(?<=[^,\s]_))", re.ASCII)


class _Block(NamedTuple):
    """The values between two braces, or a whole list."""

    start: int
    end: int
    blocks: list[_Block]


class _Run(NamedTuple):
    """Values that follow each other, and how many elements of each outer part of the dimensions precede them."""

    outer: tuple[int, ...]
    values: NDArray[Any]


@dataclass(slots=True)
class DataList:
    """The data of one variable: parsed first, laid out once the lengths of all dimensions are known.

    Attributes
    ----------
    type : NcType
    dimensions : sequence of DimensionHeader
        Unlimited ones of length 0.
    fill : scalar
        What elements without data hold.
    times : Times, optional
        What numbers mean as times, if the attributes of the variable define it; then dates are written for numbers.
    sizes : dict of int to int
        How long the unlimited dimensions are at least, by their position.
    """

    type: NcType
    dimensions: Sequence[DimensionHeader]
    fill: Any
    times: Times | None = None
    sizes: dict[int, int] = field(default_factory=dict)
    _runs: list[_Run] = field(default_factory=list)

    def parse(self, text: Text, start: int, end: int) -> None:
        """Take the list of values at `start` up to `end`."""
        starts = [0, *(n for n, each in enumerate(self.dimensions) if n and each.unlimited), len(self.dimensions)]
        # The braces of a list as a tree.
        whole = _Block(start, end, [])
        if "{" in text.text[start:end]:
            path = [(start, whole.blocks)]
            for match in _BRACES.finditer(text.text, start, end):
                if match[0] == "{":
                    if len(path) > _MAXIMUM_DEPTH:
                        raise text.error("braces too deep", match.start(), expected=f"at most {_MAXIMUM_DEPTH} levels")
                    path.append((match.end(), []))
                elif match[0] == "}":
                    opened, inside = path.pop()
                    path[-1][1].append(_Block(opened, match.start(), inside))
        self._take(text, whole, list(pairwise(starts)), ())

    def _take(self, text: Text, block: _Block, parts: Sequence[tuple[int, int]], index: tuple[int, ...]) -> None:
        """Take a block: of other blocks, one for each element of the first part, or of values in the last."""
        (first, last), inner = parts[0], parts[1:]
        if inner:
            _check_separators(text, block)
            count = len(block.blocks)
            for number, each in enumerate(block.blocks):
                self._take(text, each, inner, (*index, number))
        else:
            if block.blocks:
                raise text.error(
                    "values in braces where none belong",
                    block.blocks[0].start - 1,
                    expected="values",
                    remedy="braces enclose what belongs to an unlimited dimension that is not the first of a variable",
                )
            values = self._values(text, block, first, last)
            count = len(values)
            if count:
                self._runs.append(_Run(index, values))
        is_open = first < last and self.dimensions[first].unlimited
        rest = math.prod(each.size for each in self.dimensions[first + is_open : last])
        if is_open and rest:
            self.sizes[first] = max(self.sizes.get(first, 0), -(-count // rest))
        elif count > rest:
            raise text.error(
                "more values than the variable has elements",
                block.start,
                found=f"{count} values",
                expected=f"at most {rest}",
                remedy="make the dimension longer or unlimited, or correct the list",
            )

    def _values(self, text: Text, block: _Block, first: int, last: int) -> NDArray[Any]:
        if self.type is types.CHAR:
            row = self.dimensions[last - 1].size if last - first > 1 else 1
            found = literals.literals(text, block.start, block.end)
            return np.frombuffer(_rows(text, found, row, self.fill), "S1")
        plain = None if self.type is types.STRING else _plain(text.text[block.start : block.end], self.type, self.fill)
        if plain is not None:
            return plain
        found = literals.literals(text, block.start, block.end)
        if self.times is not None and not self.type.is_text:
            found = [self._number(text, each, self.times) for each in found]
        return literals.values(text, found, self.type, self.fill)

    def _number(self, text: Text, literal: Literal, times: Times) -> Literal:
        """Return the number for a date; literals that are not text stay unchanged."""
        if literal.type is not types.STRING or literal.value is None:
            return literal
        number = times.number(literal.value.decode("utf-8", "replace"))
        if number is None or (self.type.dtype.kind in "iu" and not number.is_integer()):
            raise text.error(
                "not the date of a number of this variable",
                literal.start,
                literal.end,
                expected=f"a date as ncdump -t prints it, of a value of type {self.type}",
                remedy="write the number",
            )
        return literal._replace(type=types.DOUBLE, value=number)

    def laid_out(self, shape: Sequence[int]) -> Values:
        """Return the values of the variable, whose dimensions now have these lengths."""
        starts = [0, *(n for n, each in enumerate(self.dimensions) if n and each.unlimited)]
        strides = [math.prod(shape[each:]) for each in starts[1:]]
        return Values(
            tuple(shape),
            np.array(self.fill, self.type.dtype),
            np.array([sum(map(math.prod, zip(each.outer, strides, strict=True))) for each in self._runs], "i8"),
            np.array([0, *np.cumsum([len(each.values) for each in self._runs])], "i8"),
            np.concatenate([each.values for each in self._runs]) if self._runs else np.empty(0, self.type.dtype),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The elements of a variable that have values, in runs along the elements in C order; all others are filled.

    So a variable of a billion elements, of which ten are listed, takes the memory of ten.
    """

    shape: tuple[int, ...]
    fill: NDArray[Any]
    starts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    values: NDArray[Any]

    def read(self, selection: Selection) -> NDArray[Any]:
        """Return the elements of a selection."""
        if len(self.starts) == 1 and len(self.values) == math.prod(self.shape):
            return np.array(self.values.reshape(self.shape)[selection], self.values.dtype)
        result = np.full(tuple(max(0, each.stop - each.start) for each in selection), self.fill)
        if not len(self.starts) or not result.size:
            return result
        shape, filled = result.shape, result
        if selection:  # beyond the last value there is nothing to look up
            row = math.prod(self.shape[1:])
            end = int(self.starts[-1] + self.offsets[-1] - self.offsets[-2])
            rows = slice(selection[0].start, min(selection[0].stop, -(-end // row)))
            filled = result[: max(0, rows.stop - rows.start)]
            selection, shape = (rows, *selection[1:]), filled.shape
        flat = np.zeros(shape, "i8")
        for axis, each in enumerate(selection):
            steps = np.arange(each.start, each.stop) * math.prod(self.shape[axis + 1 :])
            flat += steps.reshape((-1,) + (1,) * (len(shape) - axis - 1))
        run = np.maximum(np.searchsorted(self.starts, flat, "right") - 1, 0)
        inside = flat - self.starts[run]
        is_set = (inside >= 0) & (inside < np.diff(self.offsets)[run])
        filled[is_set] = self.values[(self.offsets[run] + inside)[is_set]]
        return result


def unbalanced(listed: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
    """Return the brace of a list of values that has no partner, if there is one.

    >>> unbalanced("1, '}' }")
    <re.Match object; span=(7, 8), match='}'>
    """
    if "{" not in listed and "}" not in listed:
        return None
    opened: list[re.Match[str]] = []
    for match in _BRACES.finditer(listed, start, len(listed) if end is None else end):
        if match[0] == "{":
            opened.append(match)
        elif match[0] == "}":
            if not opened:
                return match
            opened.pop()
    return opened[-1] if opened else None


def _check_separators(text: Text, block: _Block) -> None:
    """Raise MetadataError unless a block holds other blocks, with commas between them."""
    at = block.start
    for number, each in enumerate((*block.blocks, None)):
        stop = block.end if each is None else each.start - 1
        between = literals.without_comments(text.text[at:stop])
        if between.strip() != ("," if number and each is not None else ""):
            skipped = len(between) - len(between.lstrip())
            raise text.error(
                "not a list of values in braces",
                at + skipped,
                expected="{...}, {...}, ...",
                remedy="an unlimited dimension that is not the first of a variable needs its values in braces",
            )
        at = stop if each is None else each.end + 1


def _plain(listed: str, nc_type: NcType, fill: Any) -> NDArray[Any] | None:
    """Return the values of a list of decimal numbers and fill marks; None if it is another, or anything is wrong."""
    listed = literals.without_comments(listed)
    if not _PLAIN.fullmatch(listed) or _OCTAL.search(listed):
        return None
    if not listed.strip():
        return np.empty(0, nc_type.dtype)
    convert = float if nc_type.dtype.kind == "f" else int
    if "N" in listed or "I" in listed:
        listed = listed.replace("NaNf", "NaN").replace("Infinityf", "Infinity")
    try:
        if "_" not in listed:
            numbers = list(map(convert, listed.split(",")))
        elif _TOUCHING_MARK.search(listed):
            return None
        else:
            numbers = [fill.item() if each.strip() == "_" else convert(each) for each in listed.split(",")]
        wide = np.array(numbers, "f8" if convert is float else "u8" if nc_type is types.UINT64 else "i8")
    except (ValueError, OverflowError):
        return None
    if convert is float:
        with np.errstate(over="ignore"):
            narrow = wide.astype(nc_type.dtype)
        return narrow if np.count_nonzero(np.isinf(narrow)) == listed.count("Infinity") else None
    if nc_type.dtype.itemsize < 8:
        low, high = literals.limits(nc_type)
        if wide.min() < low or wide.max() > high:
            return None
    return wide.astype(nc_type.dtype)


def _rows(text: Text, found: Sequence[Literal], row: int, fill: bytes) -> bytes:
    """Return the characters of a list: each string fills up whole rows, single characters in sequence make a string.

    Of an empty row nothing is made. A fill mark is a character among characters, otherwise a row.
    """
    parts = []
    for each in _strings(text, found, fill):
        parts.append(each)
        if row > 1:
            parts.append(fill * (row if not each else -len(each) % row))
    return b"".join(parts)


def _strings(text: Text, found: Sequence[Literal], fill: bytes) -> Iterator[bytes]:
    has_characters = any(each.type not in {None, types.STRING} for each in found)
    characters: list[bytes] = []
    for each in found:
        part = literals.characters(text, each, fill)
        if each.type is types.STRING or not has_characters:
            if characters:
                yield b"".join(characters)
                characters.clear()
            yield part
        else:
            characters.append(part)
    if characters:
        yield b"".join(characters)
