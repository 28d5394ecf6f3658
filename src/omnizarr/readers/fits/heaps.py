"""What lies in the heap of a binary table: columns of variable length, and the tiles of compressed images.

A row says how many elements it has in the heap, and where. These numbers become the columns of a manifest when the
array is first read.

Spec: FITS Standard 4.0, sections 7.3.5 and 10.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.readers.documents import array_document, bytes_codec
from omnizarr.readers.fits import images
from omnizarr.readers.fits.headers import Source, Unit
from omnizarr.readers.fits.images import Unshown
from omnizarr.readers.fits.tables import Column, columns
from omnizarr.stores.manifests.manifest import Manifest

_TYPES: Final = {
    "B": "|u1", "L": "|S1", "I": ">i2", "J": ">i4", "K": ">i8", "E": ">f4", "D": ">f8", "C": ">c8", "M": ">c16",
    "A": "|S1",
}  # fmt: skip
_ELEMENT: Final = re.compile(r"\d*[PQ]([A-Z])(?:\(.*\))?")
_MOST_ROWS: Final = 1 << 24
_END: Final = 1 << 62
_COMPRESSIONS: Final = {
    "RICE_1": "rice", "RICE_ONE": "rice", "GZIP_1": "gzip", "GZIP_2": "gzip_shuffled", "PLIO_1": "plio",
    "HCOMPRESS_1": "hcompress", "NOCOMPRESS": "none",
}  # fmt: skip
_QUANTIZED: Final = {"NO_DITHER": 0, "SUBTRACTIVE_DITHER_1": 1, "SUBTRACTIVE_DITHER_2": 2}
_OF_TILES: Final = re.compile(
    r"Z(?:IMAGE|CMPTYPE|BITPIX|NAXIS\d*|TILE\d+|NAME\d+|VAL\d+|QUANTIZ|DITHER0|BLANK|SCALE|ZERO|SIMPLE|EXTEND|TENSION|"
    r"PCOUNT|GCOUNT|HECKSUM|DATASUM|BLOCKED)|THEAP|T(?:TYPE|FORM|UNIT|NULL|SCAL|ZERO|DISP|DIM)\d+"
)
HEAD: Final = np.dtype([("scale", ">f8"), ("zero", ">f8"), ("number", ">i8"), ("blank", ">i8"), ("kind", ">i4")])
"""What the codec must know of a tile: numbers of its row, the number of the row, and in which column it is."""
_COLUMNS: Final = ("COMPRESSED_DATA", "GZIP_COMPRESSED_DATA", "UNCOMPRESSED_DATA")


@dataclass(frozen=True)
class Rows:
    """The rows of a binary table, and its heap.

    Attributes
    ----------
    source : Source
    unit : Unit
    """

    source: Source
    unit: Unit

    def table(self) -> NDArray[np.uint8]:
        """Return all rows as bytes. Raises MetadataError if they are not all in the file."""
        rows, width = self.unit.shape
        raw = self.source.read(self.unit.start, rows * width)
        return np.frombuffer(raw, np.uint8).reshape(rows, width)

    def field(self, table: NDArray[np.uint8], column: Column, dtype: str) -> NDArray[Any]:
        """Return numbers of a column, as one row of each row."""
        part = np.ascontiguousarray(table[:, column.start : column.start + column.size])
        return part.view(dtype)

    def places(self, table: NDArray[np.uint8], column: Column) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of elements of each row, and where they begin in the file. Raises MetadataError."""
        pairs = self.field(table, column, ">i4" if column.code == "P" else ">i8").astype(np.int64)
        counts, offsets = pairs[:, 0], pairs[:, 1]
        heap = self.unit.start + self.unit.integer("THEAP", prod(self.unit.shape))
        if len(pairs) and (int(pairs.min()) < 0 or int(pairs.max()) > _END or not 0 <= heap < _END):
            raise self.source.broken(
                self.unit.start + column.start, f"the column {column.name!r} leads to no place in the heap",
                found=f"{int(pairs.min())} to {int(pairs.max())}", expected="counts and offsets from 0",
            )  # fmt: skip
        return counts, offsets + heap


# -- columns of variable length --------------------------------------------------------------


@dataclass(frozen=True)
class Ragged:
    """A column of variable length, whose rows are chunks: a count, a size, and the bytes in the heap."""

    rows: Rows
    column: Column
    itemsize: int

    def __call__(self) -> Manifest:
        """Return the manifest."""
        counts, starts = self.rows.places(self.rows.table(), self.column)
        sizes = counts * self.itemsize
        if len(sizes) and int(sizes.max()) >= 1 << 32:
            raise self.rows.source.broken(
                self.rows.unit.start, f"a row of the column {self.column.name!r} is too long",
                found=f"{int(sizes.max())} bytes", expected="less than 2**32",
            )  # fmt: skip
        heads = np.stack([np.ones(len(sizes), "<u4"), sizes.astype("<u4")], axis=1)
        starts = np.where(sizes == 0, 0, starts)
        return Manifest(starts, sizes, heads=heads.view(np.uint8).reshape(len(sizes), 8))


def ragged(source: Source, unit: Unit, column: Column) -> tuple[dict[str, Any], Ragged, bool]:
    """Return the document of a column of variable length, its manifest, and whether the document is of Zarr v3.

    Raises Unshown.
    """
    match = _ELEMENT.fullmatch(unit.string(f"TFORM{column.number}").strip().upper())
    code = "" if match is None else match[1]
    rows = unit.shape[0]
    if code not in _TYPES or column.repeat != 1:
        raise Unshown(f"its form is {unit.string(f'TFORM{column.number}').strip()!r}")
    if rows > _MOST_ROWS:
        raise Unshown(f"it has a variable length, and {rows} rows")
    form = Ragged(Rows(source, unit), column, np.dtype(_TYPES[code]).itemsize)
    if code == "A":
        document = array_document((rows,), "string", (1,), "", [{"name": "vlen-utf8"}], {}, ["row"])
        return document, form, True
    return {
        "zarr_format": 2, "shape": [rows], "chunks": [1], "dtype": "|O", "fill_value": None, "order": "C",
        "compressor": None, "filters": [{"id": "vlen-array", "dtype": _TYPES[code]}], "dimension_separator": "/",
    }, form, False  # fmt: skip


# -- compressed images --------------------------------------------------------------------------


@dataclass(frozen=True)
class Tiles:
    """The tiles of a compressed image."""

    rows: Rows
    columns: dict[str, Column]
    count: int
    scale: float
    zero: float
    blank: int

    def __call__(self) -> Manifest:
        """Return the manifest."""
        table = self.rows.table()[: self.count]
        offsets, lengths = np.zeros((2, len(table)), np.int64)
        heads = np.zeros(len(table), HEAD)
        heads["scale"], heads["zero"], heads["blank"] = self.scale, self.zero, self.blank
        heads["number"] = np.arange(len(table))
        for kind, name in reversed(list(enumerate(_COLUMNS))):
            column = self.columns.get(name)
            if column is None:
                continue
            match = _ELEMENT.fullmatch(self.rows.unit.string(f"TFORM{column.number}").strip().upper())
            size = np.dtype(_TYPES.get(match[1] if match is not None else "B", "|u1")).itemsize
            counts, starts = self.rows.places(table, column)
            has = counts > 0
            offsets[has], lengths[has], heads["kind"][has] = starts[has], counts[has] * size, kind
        for name, target, types in (
            ("ZSCALE", "scale", ">f8"), ("ZZERO", "zero", ">f8"), ("ZBLANK", "blank", ">i4"),
        ):  # fmt: skip
            column = self.columns.get(name)
            if column is not None and column.size == np.dtype(types).itemsize:
                heads[target] = self.rows.field(table, column, types)[:, 0]
        return Manifest(offsets, lengths, heads=heads.view(np.uint8).reshape(len(table), HEAD.itemsize))


def is_compressed_image(unit: Unit) -> bool:
    """Return whether a binary table is a compressed image."""
    return unit.kind == "BINTABLE" and unit.cards.get("ZIMAGE") is True


def image(source: Source, unit: Unit, attributes: dict[str, Any]) -> tuple[dict[str, Any], Tiles]:
    """Return the document of a compressed image, and its manifest. Raises Unshown."""
    axes = unit.integer("ZNAXIS")
    if not 1 <= axes <= 32 or unit.integer("ZBITPIX") not in images.DTYPES:
        raise Unshown(f"its shape or type is impossible: ZNAXIS {axes}, ZBITPIX {unit.cards.get('ZBITPIX')}")
    shape = tuple(unit.integer(f"ZNAXIS{axis}") for axis in range(axes, 0, -1))
    tile = tuple(unit.integer(f"ZTILE{axis}", shape[-1] if axis == 1 else 1) for axis in range(axes, 0, -1))
    if min(*shape, *tile) < 1:
        raise Unshown(f"its shape is impossible: {shape}, in tiles of {tile}")
    images.check_shape(shape)
    tile = tuple(min(pair) for pair in zip(shape, tile, strict=True))
    count = prod(-(-length // part) for length, part in zip(shape, tile, strict=True))
    if count > min(unit.shape[0], _MOST_ROWS):
        raise Unshown(f"it has {unit.shape[0]} tiles, and its shape needs {count}")
    stored = images.DTYPES[unit.integer("ZBITPIX")]
    found = {column.name.upper(): column for column in columns(unit, [])}
    known = {name: column for name, column in found.items() if name not in _COLUMNS or column.code in "PQ"}
    if not any(name in known for name in _COLUMNS):
        raise Unshown("it has no column of tiles")
    options = {unit.string(f"ZNAME{at}").strip().upper(): unit.integer(f"ZVAL{at}") for at in range(1, 17)}
    elements = images.image_elements(unit, stored)
    is_quantized = stored.startswith("float") and ("ZSCALE" in known or "ZSCALE" in unit.cards)
    codec = _codec(unit, stored, options, is_quantized=is_quantized)
    fill = elements.missing or 0
    attributes = {name: value for name, value in attributes.items() if not _OF_TILES.fullmatch(name)}
    own = elements.attributes()
    if units := unit.string("BUNIT"):
        own["units"] = units
    codecs = [bytes_codec("big", elements.itemsize)]
    if elements.is_shifted:
        codecs.append(elements.codecs()[1])
    codecs.append(codec)
    document = array_document(
        shape, elements.dtype, tile, fill, codecs, attributes | own, images.names_of(unit, len(shape))
    )
    if any(length % part for length, part in zip(shape, tile, strict=True)):
        parts = [
            part if not length % part else [[part, length // part], length % part]
            for length, part in zip(shape, tile, strict=True)
        ]
        document["chunk_grid"] = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": parts}}
    blank = unit.integer("ZBLANK", -(2**31)) if is_quantized else 0
    scale, zero = unit.number_of("ZSCALE", 1), unit.number_of("ZZERO", 0)
    return document, Tiles(Rows(source, unit), known, count, scale, zero, blank)


def _codec(unit: Unit, stored: str, options: dict[str, int], *, is_quantized: bool) -> dict[str, Any]:
    """Return the codec of tiles. Raises Unshown."""
    name = unit.string("ZCMPTYPE").strip().upper()
    if name not in _COMPRESSIONS:
        raise Unshown(f"its compression is {name}, which is not supported")
    given: dict[str, Any] = {"compression": _COMPRESSIONS[name], "data_type": stored}
    if name.startswith("RICE"):
        given |= {"size": options.get("BYTEPIX") or 4, "block": options.get("BLOCKSIZE") or 32}
    if name.startswith("HCOMPRESS") and options.get("SMOOTH"):
        raise Unshown(f"its compression is {name} with smoothing, which is not supported")
    if name.startswith(("RICE", "HCOMPRESS")) and stored.startswith("float") and not is_quantized:
        raise Unshown("its compression is for integers, and its elements are not")
    if is_quantized:
        method = unit.string("ZQUANTIZ").strip().upper() or "NO_DITHER"
        if method not in _QUANTIZED:
            raise Unshown(f"its numbers are rounded by {method}, which is not supported")
        given |= {"dither": _QUANTIZED[method], "seed": unit.integer("ZDITHER0", 1)}
    return {"name": "fits_tile", "configuration": given | {"quantized": is_quantized}}
