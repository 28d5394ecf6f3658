"""Compressed tables: each column of some rows is a tile, compressed by itself. They are chunks of the column.

The header says what the table was (``ZFORM1``, ``ZNAXIS1``, ...), and how columns are compressed (``ZCTYP1``).

Spec: FITS Standard 4.0, section 10.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omnizarr.readers.fits import headers, tables
from omnizarr.readers.fits.headers import Source, Unit
from omnizarr.readers.fits.heaps import HEAD, Rows
from omnizarr.readers.fits.images import Unshown
from omnizarr.readers.fits.tables import Column
from omnizarr.stores.manifests.manifest import Manifest

OF_TABLE: Final = re.compile(
    rf"Z(?:TABLE|TILELEN|NAXIS\d+|PCOUNT|THEAP|FORM\d+|CTYP\d+|HECKSUM|DATASUM)|THEAP|{tables.OF_COLUMNS.pattern}"
)
_COMPRESSIONS: Final = {"GZIP_1": "gzip", "GZIP_2": "gzip_shuffled", "RICE_1": "rice", "NOCOMPRESS": "none"}
_INTEGERS: Final = {"B": ("uint8", 1), "I": ("int16", 2), "J": ("int32", 4)}
_STORED: Final = {
    "L": "uint8", "X": "uint8", "A": "uint8", "B": "uint8", "I": "int16", "J": "int32", "K": "int64", "E": "float32",
    "D": "float64", "C": "float32", "M": "float64",
}  # fmt: skip
_BLOCK: Final = 32
_MOST_TILES: Final = 1 << 24


def is_compressed(unit: Unit) -> bool:
    """Return whether a binary table is one that was compressed."""
    return unit.kind == "BINTABLE" and unit.cards.get("ZTABLE") is True


@dataclass(frozen=True)
class Tiles:
    """The tiles of a column. The manifest is made when it is first needed."""

    rows: Rows
    column: Column

    def __call__(self) -> Manifest:
        """Return where the tiles lie."""
        counts, starts = self.rows.places(self.rows.table(), self.column)
        heads = np.zeros(len(counts), HEAD)
        heads["number"] = np.arange(len(counts))
        return Manifest(starts, counts, heads=heads.view(np.uint8).reshape(len(counts), HEAD.itemsize))


class Table:
    """A compressed table. Raises Unshown if its shape is impossible."""

    def __init__(self, source: Source, unit: Unit) -> None:
        tables.check(unit)
        self._rows = Rows(source, unit)
        width, rows = unit.integer("ZNAXIS1", -1), unit.integer("ZNAXIS2", -1)
        self._tile = min(unit.integer("ZTILELEN", rows) or rows, max(rows, 1))
        if width < 0 or rows < 0 or self._tile < 1 or unit.shape[0] > _MOST_TILES:
            raise Unshown(f"its shape is impossible: {rows} rows of {width} bytes, in tiles of {self._tile} rows")
        if -(-rows // self._tile) > unit.shape[0]:
            raise Unshown(f"it has {unit.shape[0]} tiles, and its {rows} rows need {-(-rows // self._tile)}")
        cards = dict(unit.cards) | {"NAXIS1": width, "NAXIS2": rows}
        for number in range(1, unit.integer("TFIELDS") + 1):
            cards[f"TFORM{number}"] = unit.cards.get(f"ZFORM{number}", "")
        self._table = unit._replace(cards=cards, start=0)

    def columns(self, notes: list[str]) -> Iterator[tuple[str, tuple[dict[str, Any], Tiles]]]:
        """Yield the name, the document and the manifest of each column; what is not shown is added to the notes."""
        unit = self._rows.unit
        stored = {column.number: column for column in tables.columns(unit, [])}
        taken: set[str] = set()
        for column in tables.columns(self._table, notes):
            try:
                found = self._column(column, stored.get(column.number))
            except Unshown as error:
                notes.append(f"{unit.title()}: the column {column.name!r} is not shown: {error}")
                continue
            yield headers.name_of_column(column.name, column.number, taken), found

    def _column(self, column: Column, stored: Column | None) -> tuple[dict[str, Any], Tiles]:
        if column.code in "PQ" or stored is None or stored.code not in "PQ":
            raise Unshown("it has a variable length, in a compressed table")
        name = self._rows.unit.string(f"ZCTYP{column.number}").strip().upper() or "GZIP_2"
        if name not in _COMPRESSIONS:
            raise Unshown(f"its compression is {name}, which is not supported")
        if name == "GZIP_2" and column.code in "CM":
            raise Unshown("its complex numbers are shuffled, which is not supported")
        dtype = _STORED[column.code]
        given: dict[str, Any] = {"compression": _COMPRESSIONS[name], "data_type": dtype}
        if name == "RICE_1":
            if column.code not in _INTEGERS:
                raise Unshown("its compression is for integers, and its elements are not")
            given |= {"data_type": _INTEGERS[column.code][0], "size": _INTEGERS[column.code][1], "block": _BLOCK}
        document = tables.shown(self._table, column).document
        rows, *rest = document["shape"]
        document["codecs"] = [*document["codecs"], {"name": "fits_tile", "configuration": given | {"quantized": False}}]
        document["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": (self._tile, *rest)}}
        if rows % self._tile:
            lengths = [[self._tile, rows // self._tile], rows % self._tile] if rows > self._tile else [rows]
            parts = [lengths, *([length] for length in rest)]
            document["chunk_grid"] = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": parts}}
        return document, Tiles(self._rows, stored)
