"""Small FITS files, written by the rules of the standard, for tests without astropy."""

from __future__ import annotations

import gzip

import numpy as np

BLOCK = 2880
BITS = {"u1": 8, "i2": 16, "i4": 32, "i8": 64, "f4": -32, "f8": -64}


def card(name, value=None):
    """Return a card: a text that is complete, or a name and its value."""
    if value is None:
        return name.ljust(80)[:80]
    if isinstance(value, bool):
        said = f"{'T' if value else 'F':>20}"
    elif isinstance(value, str):
        said = f"'{value.replace(chr(39), chr(39) * 2):<8}'"
    else:
        said = f"{value!r:>20}"
    return f"{name:<8}= {said}".ljust(80)[:80]


def padded(data, by=b"\0"):
    return data + by * (-len(data) % BLOCK)


def header(cards):
    lines = [card(*each) if isinstance(each, tuple) else card(each) for each in cards]
    return padded("".join((*lines, card("END"))).encode("ascii"), b" ")


def image(values=None, cards=(), *, extension=False, code=None, shape=None):
    """Return a unit with an image; without values, one that only has a header."""
    first = ("XTENSION", "IMAGE") if extension else ("SIMPLE", True)
    code = code or ("u1" if values is None else values.dtype.str[1:])
    shape = shape if shape is not None else () if values is None else values.shape
    sizes = [(f"NAXIS{number}", length) for number, length in enumerate(reversed(shape), 1)]
    counts = [("PCOUNT", 0), ("GCOUNT", 1)] if extension else []
    data = b"" if values is None else values.astype(f">{code}").tobytes()
    return header([first, ("BITPIX", BITS[code]), ("NAXIS", len(shape)), *sizes, *counts, *cards]) + padded(data)


def table(columns, rows, cards=(), *, kind="BINTABLE", heap=b"", width=None):
    """Return a unit with a table. `columns` are cards by column; `rows` is the bytes of each row."""
    width = len(rows[0]) if rows else width or 0
    numbered = [(f"{name}{at}", value) for at, column in enumerate(columns, 1) for name, value in column.items()]
    counts = [("PCOUNT", len(heap)), ("GCOUNT", 1), ("TFIELDS", len(columns))]
    sizes = [("NAXIS", 2), ("NAXIS1", width), ("NAXIS2", len(rows))]
    data = b"".join(rows) + heap
    return header([("XTENSION", kind), ("BITPIX", 8), *sizes, *counts, *numbered, *cards]) + padded(
        data, b" " if kind == "TABLE" else b"\0"
    )


RECORDS = np.array(
    [(1, 2.5, b"abc", [1, 2, 3], b"T", b"\xa0"), (-7, np.nan, b"d  ", [4, 5, 6], b"F", b"\x40")],
    [("a", ">i2"), ("b", ">f8"), ("c", "S4"), ("d", ">i4", 3), ("e", "S1"), ("f", "S1")],
)
COLUMNS = [
    {"TTYPE": "a", "TFORM": "I", "TUNIT": "m", "TNULL": -7},
    {"TTYPE": "b", "TFORM": "D"},
    {"TTYPE": "c", "TFORM": "4A"},
    {"TTYPE": "d", "TFORM": "3J", "TZERO": 2147483648},
    {"TTYPE": "e", "TFORM": "L"},
    {"TTYPE": "f", "TFORM": "3X"},
]


def rows_of(records):
    return [record.tobytes() for record in records]


def heaps():
    """Return units with columns of variable length, and with tiles."""
    rows = [np.array(row, ">i4").tobytes() for row in ([2, 0, 3, 12], [1, 8, 0, 0])]
    lists = [{"TTYPE": "n", "TFORM": "1PJ(2)"}, {"TTYPE": "t", "TFORM": "PA(3)"}]
    yield table(lists, rows, heap=np.arange(3, dtype=">i4").tobytes() + b"abc")
    plio = np.array([0, 7, -100, 9, 0, 0, 0, 0x4003, 0x2005], ">i2").tobytes()
    for name, tile in (("GZIP_1", gzip.compress(np.arange(9, dtype=">i4").tobytes())), ("PLIO_1", plio)):
        rows = [np.array([len(tile), 0], ">i4").tobytes() + np.array([2.0, 1.0], ">f8").tobytes()]
        forms = [{"TTYPE": "COMPRESSED_DATA", "TFORM": "1PB"}, {"TTYPE": "ZSCALE", "TFORM": "D"}]
        sizes = [("ZNAXIS", 2), ("ZNAXIS1", 3), ("ZNAXIS2", 3), ("ZTILE1", 3), ("ZTILE2", 3)]
        cards = [("ZIMAGE", True), ("ZCMPTYPE", name), ("ZBITPIX", -32), *sizes, ("ZQUANTIZ", "SUBTRACTIVE_DITHER_1")]
        yield table([*forms, {"TTYPE": "ZZERO", "TFORM": "D"}], rows, cards, heap=tile)


def sample():
    """Return a file with units of all kinds."""
    values = np.arange(60).reshape(3, 4, 5)
    lines = [b"   1" + b" 1.5E2 " + b"ab ", b"    " + b" -2.5D0" + b"c d", b" ***" + b" 7     " + b"ef "]
    decimal = [
        {"TTYPE": "n", "TFORM": "I4", "TBCOL": 1, "TNULL": "***"},
        {"TTYPE": "x", "TFORM": "E7.2", "TBCOL": 5},
        {"TTYPE": "t", "TFORM": "A3", "TBCOL": 12},
    ]
    return b"".join(
        (
            image(cards=[("OBJECT", "M 31"), "COMMENT first", "HISTORY one", "HISTORY two"]),
            image(values, [("EXTNAME", "SCI"), ("EXTVER", 1), ("BUNIT", "Jy"), ("CTYPE3", "FREQ")], extension=True,
                  code="i2"),
            image(values - 2**15, [("EXTNAME", "SCI"), ("EXTVER", 2), ("BZERO", 32768), ("BLANK", -32768)],
                  extension=True, code="i2"),
            table(COLUMNS, rows_of(RECORDS), [("EXTNAME", "EVENTS")]),
            table(decimal, lines, kind="TABLE"),
            *heaps(),
        )
    )  # fmt: skip
