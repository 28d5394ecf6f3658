"""Tables: each column is an array, whose elements are read from between those of the other columns.

Rows follow one another in the file, so that a chunk is the same few columns of some rows: a strided piece of the file.

Spec: FITS Standard 4.0, sections 7.2 and 7.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.readers.documents import array_document, bytes_codec
from omnizarr.readers.fits.headers import Unit
from omnizarr.readers.fits.images import (
    Elements,
    Unshown,
    check_shape,
    elements_of,
)
from omnizarr.stores.manifests.manifest import Strided, strided

_MOST_COLUMNS: Final = 999
_MOST_TEXT: Final = 1 << 16  # bytes of a text
_BINARY: Final = re.compile(r"(\d*)([LXBIJKAEDCMPQ])(.*)")
_DECIMAL: Final = re.compile(r"([AIFED])(\d+)(?:\.\d+)?")
_LENGTHS: Final = re.compile(r"\((\d+(?:,\d+)*)\)")
_NUMBERS: Final = {
    "B": "uint8", "I": "int16", "J": "int32", "K": "int64", "E": "float32", "D": "float64", "C": "complex64",
    "M": "complex128",
}  # fmt: skip
_BYTES: Final = {"L": 1, "A": 1, "P": 8, "Q": 16} | {code: np.dtype(name).itemsize for code, name in _NUMBERS.items()}
OF_COLUMNS: Final = re.compile(r"T(?:TYPE|FORM|UNIT|NULL|SCAL|ZERO|DISP|BCOL|DIM)\d+")
"""Keywords of columns, which are attributes of these."""
_OWN: Final = ("TTYPE", "TFORM", "TUNIT", "TDISP", "TDIM")
_SCALES: Final = ("TSCAL", "TZERO", "TNULL")
_LEAST: Final = -(2**63)


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    number : int
        Its number in FITS, from 1.
    name : str
    code : str
        The letter of its type.
    repeat : int
        Elements in a row.
    start, size : int
        The bytes of a row that it has.
    """

    number: int
    name: str
    code: str
    repeat: int
    start: int
    size: int


class Shown(NamedTuple):
    """A column as an array."""

    column: Column
    document: dict[str, Any]
    manifest: Strided


def check(unit: Unit) -> None:
    """Raise Unshown for a table with an impossible shape."""
    if len(unit.shape) != 2 or unit.integer("BITPIX") != 8:
        raise Unshown(f"a table has two axes of bytes, and it has the shape {unit.shape}")
    if not 0 <= unit.integer("TFIELDS", -1) <= _MOST_COLUMNS:
        raise Unshown(f"it has {unit.cards.get('TFIELDS')} columns, and tables have at most {_MOST_COLUMNS}")


def columns(unit: Unit, notes: list[str]) -> Iterator[Column]:
    """Yield the columns of a table. Columns with an unknown type, and all behind them, are added to the notes."""
    at, width = 0, unit.shape[-1]
    for number in range(1, unit.integer("TFIELDS") + 1):
        name = unit.string(f"TTYPE{number}").strip() or f"column {number}"
        form = unit.string(f"TFORM{number}").strip().upper()
        if unit.kind == "TABLE":
            match = _DECIMAL.fullmatch(form)
            start = unit.integer(f"TBCOL{number}") - 1
            size = int(match[2]) if match is not None and len(match[2]) < 9 else width + 1
            found = None if match is None else Column(number, name, match[1], 1, start, size)
        else:
            match = _BINARY.fullmatch(form)
            if match is None or len(match[1]) > 18:
                notes.append(f"{unit.title()}: its columns from {number} on are not shown: TFORM{number} is {form!r}")
                return
            repeat = int(match[1] or 1)
            size = -(-repeat // 8) if match[2] == "X" else repeat * _BYTES[match[2]]
            found = Column(number, name, match[2], repeat, at, size)
            at += size
        if found is None or found.start < 0 or found.start + found.size > width:
            notes.append(f"{unit.title()}: the column {name!r} is not shown: TFORM{number} is {form!r}, and a row has "
                         f"{width} bytes")  # fmt: skip
            continue
        yield found


def shown(unit: Unit, column: Column) -> Shown:
    """Return a column as an array. Raises Unshown."""
    if not column.size:
        raise Unshown("it has no elements")
    rows, width = unit.shape[0], unit.shape[1]
    shape = _lengths(unit, column)
    stored: tuple[int, ...] = (rows, *shape)
    itemsize = column.size // prod(shape)
    elements = _elements(unit, column)
    data_type: Any = elements.dtype
    fill: Any = elements.missing or 0
    codecs = elements.codecs()
    if column.code == "A":
        if itemsize > _MOST_TEXT:
            raise Unshown(f"its texts have {itemsize} bytes")
        data_type, fill = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * itemsize}}, ""
        codecs = [bytes_codec("little", 4), _codec("text", width=itemsize)]
    elif column.code == "L":
        data_type, fill, codecs = "bool", False, [bytes_codec("big", 1), _codec("logical")]
    elif column.code == "X":
        data_type, fill = "bool", False
        codecs = [bytes_codec("big", 1), _codec("bits", width=column.repeat)]
        stored, itemsize = (rows,), column.size
    elif unit.kind == "TABLE":
        given = {"missing": null} if (null := unit.string(f"TNULL{column.number}").strip()) else {}
        codecs = [bytes_codec("little", 8), _codec(data_type, width=itemsize, **given)]
    elif elements.dtype.startswith("complex"):
        fill = [0.0, 0.0]
    check_shape((*stored, itemsize))
    chunks, manifest = strided(stored, itemsize, unit.start + column.start, width)
    if column.code == "X":
        stored, chunks = (rows, column.repeat), (*chunks, column.repeat)
        manifest = replace(manifest, grid=(*manifest.grid, 1), steps=(*manifest.steps, 0))
    names = ["row", *(None for _ in stored[1:])]
    own = attributes(unit, column) | elements.attributes()
    return Shown(column, array_document(stored, data_type, chunks, fill, codecs, own, names), manifest)


def attributes(unit: Unit, column: Column) -> dict[str, Any]:
    """Return the cards of a column, with its unit as CF names it."""
    found = {card: unit.cards[name] for card in _OWN if (name := f"{card}{column.number}") in unit.cards}
    if column.code in "PQ":
        found |= {card: unit.cards[name] for card in _SCALES if (name := f"{card}{column.number}") in unit.cards}
    if units := unit.string(f"TUNIT{column.number}"):
        found["units"] = units
    return found


def _codec(elements: str, **given: Any) -> dict[str, Any]:
    return {"name": "fits", "configuration": {"elements": elements, **given}}


def _lengths(unit: Unit, column: Column) -> tuple[int, ...]:
    """Return the shape of the elements of a column in a row."""
    if unit.kind == "TABLE":
        return ()
    match = _LENGTHS.fullmatch(unit.string(f"TDIM{column.number}").replace(" ", ""))
    if match is not None and column.code != "X":
        lengths = tuple(int(each) for each in match[1].split(",")[::-1] if len(each) < 18)
        if prod(lengths) == column.repeat:
            return lengths[:-1] if column.code == "A" else lengths
    return () if column.code in "AX" or column.repeat == 1 else (column.repeat,)


def _elements(unit: Unit, column: Column) -> Elements:
    """Return the type of the elements, and what they mean."""
    if column.code not in _NUMBERS and unit.kind != "TABLE":
        return Elements("uint8")
    scale, offset = unit.number_of(f"TSCAL{column.number}", 1), unit.number_of(f"TZERO{column.number}", 0)
    if unit.kind == "TABLE":
        is_whole = column.code == "I"
        has_null = bool(unit.string(f"TNULL{column.number}").strip())
        missing = _LEAST if is_whole and has_null else None
        return Elements("int64" if is_whole else "float64", scale=scale, offset=offset, missing=missing)
    dtype = _NUMBERS[column.code]
    name = f"TNULL{column.number}"
    missing = unit.integer(name) if name in unit.cards else None
    if np.dtype(dtype).kind == "c" or not (math.isfinite(scale) and math.isfinite(offset)):
        return Elements(dtype, scale=scale, offset=offset)
    return elements_of(dtype, scale, offset, missing)
