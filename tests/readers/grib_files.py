"""Small GRIB messages, written by the rules of WMO, for tests without ecCodes."""

from __future__ import annotations

import struct

import numpy as np


def section(number, body):
    return struct.pack(">IB", 5 + len(body), number) + body


def packed(whole, bits):
    """Return unsigned integers of some bits, one after the other."""
    rows = [np.frombuffer(f"{int(each):0{bits}b}".encode(), "u1") - 48 for each in whole] if bits else []
    return np.packbits(np.concatenate(rows)).tobytes() if rows else b""


def level2(kind, value):
    return struct.pack(">BBI", kind, 0, value)


NO_LEVEL = b"\xff\xff\xff\xff\xff\xff"


def field2(
    values, quantity=(0, 0), level=(100, 50000), step=0, bits=12, bitmap=None, member=None, template=0, scan=0,
    bottom=NO_LEVEL, grid=None, unit=1,
):  # fmt: skip
    """Return sections 3 to 7 of a field of whole numbers."""
    rows, columns = values.shape
    corners = struct.pack(">iiBii", 50_000_000, 1_000_000, 48, 50_000_000 - 1_000_000 * (rows - 1), 1_000_000 * columns)
    described = struct.pack(">BIBBH", 0, rows * columns, 0, 0, 0 if grid is None else grid)
    described += bytes([6]) + b"\xff\0\0\0\0" * 3 + struct.pack(">IIII", columns, rows, 0, 0xFFFFFFFF)
    described += corners + struct.pack(">IIB", 1_000_000, 1_000_000, scan)
    product = struct.pack(">HHBBBBBHBBI", 0, 0 if member is None else 1, *quantity, 2, 0, 0, 0, 0, unit, step)
    product += level2(*level) + bottom + (b"" if member is None else bytes([3, member, 9]))
    flat = values.reshape(-1) if bitmap is None else values.reshape(-1)[bitmap.reshape(-1)]
    least = int(flat.min()) if flat.size else 0
    packing = struct.pack(">IHfHHBB", flat.size, template, least, 0, 0, bits, 0)
    mask = b"\xff" if bitmap is None else b"\0" + np.packbits(bitmap.reshape(-1)).tobytes()
    return b"".join((section(3, described), section(4, product), section(5, packing), section(6, mask),
                     section(7, packed(flat - least, bits))))  # fmt: skip


def message2(*fields, time=(2024, 1, 1, 0), discipline=0):
    """Return a message of edition 2."""
    when = struct.pack(">HBBBBB", *time, 0, 0)
    body = section(1, struct.pack(">HHBBB", 7, 0, 2, 1, 1) + when + b"\0\1") + b"".join(fields) + b"7777"
    return b"GRIB\0\0" + bytes([discipline, 2]) + struct.pack(">Q", 16 + len(body)) + body


def signed3(value):
    return (abs(value) | (0x800000 if value < 0 else 0)).to_bytes(3, "big")


def message1(values, parameter=11, level=(100, 500), day=1, step=0, bits=12, bitmap=None, indicator=0):
    """Return a message of edition 1."""
    rows, columns = values.shape
    flags = 0x80 | (0x40 if bitmap is not None else 0)
    ends = 0, 0, 21, 0, 0  # averages, missing, century, centre below, decimal scale
    when = 24, 1, day, 0, 0, 1, step, 0, indicator
    product = struct.pack(">BBBBBBBHBBBBBBBBBHBBBH", 2, 7, 1, 255, flags, parameter, *level, *when, *ends)
    product = (3 + len(product)).to_bytes(3, "big") + product
    grid = b"\0\xff\0" + struct.pack(">HH", columns, rows) + signed3(50_000) + signed3(-5_000) + b"\x80"
    grid += (
        signed3(50_000 - 1_000 * (rows - 1))
        + signed3(-5_000 + 1_000 * (columns - 1))
        + struct.pack(">HHBI", 1000, 1000, 0, 0)
    )
    grid = (3 + len(grid)).to_bytes(3, "big") + grid
    flat = values.reshape(-1) if bitmap is None else values.reshape(-1)[bitmap.reshape(-1)]
    least = int(flat.min())
    assert least == 0, "IBM's numbers are written for 0 only"
    mask = b"" if bitmap is None else b"\0\0\0" + np.packbits(bitmap.reshape(-1)).tobytes()
    mask = (3 + len(mask)).to_bytes(3, "big") + mask if mask else b""
    data = b"\0\0\0" + b"\0\0\0\0" + bytes([bits]) + packed(flat, bits)
    data = (3 + len(data)).to_bytes(3, "big") + data
    body = product + grid + mask + data + b"7777"
    return b"GRIB" + (8 + len(body)).to_bytes(3, "big") + b"\1" + body


def complex2(groups, *, order=0, missing=0, firsts=(), least=0, count):
    """Return sections 5 and 7 of complex packing. `groups` are (reference, width, integers)."""
    references, widths, parts = zip(*groups, strict=True)
    lengths = [len(part) for part in parts]
    packing = struct.pack(">IHfHHBB", count, 3 if order else 2, 0.0, 0, 0, 8, 0) + bytes([1, missing]) + b"\xff" * 8
    packing += struct.pack(">IBBIBIB", len(groups), 0, 8, 0, 1, lengths[-1], 8)
    extra = b""
    if order:
        packing += bytes([order, 2])
        signed = abs(least) | (0x8000 if least < 0 else 0)
        extra = b"".join(each.to_bytes(2, "big") for each in (*firsts, signed))
    bits = "".join(f"{each:0{width}b}" for _, width, part in groups for each in part if width)
    data = np.packbits(np.frombuffer(bits.encode(), "u1") - 48).tobytes() if bits else b""
    return section(5, packing), section(7, extra + bytes(references) + bytes(widths) + bytes(lengths) + data)


def sample():
    """Return a file with messages of both editions."""
    values = np.arange(20).reshape(4, 5)
    two = [
        message2(field2(values + at, level=(100, at * 10_000)), time=(2024, 1, day, 0))
        for day in (1, 2)
        for at in (5, 8)
    ]
    wind = message2(field2(values, (2, 2), (103, 10)), field2(values + 1, (2, 3), (103, 10)))
    bitmap = values % 3 > 0
    one = message1(values * bitmap, bitmap=bitmap | (values == 0)), message1(values, 61, (1, 0), step=6, indicator=4)
    return b"".join((*two, wind, message2(field2(values, (19, 7), (1, 0), member=3)), *one))


def with_packing(values, number5, number7):
    """Return a field whose sections 5 and 7 are others."""
    whole = field2(values)
    parts, at = {}, 0
    while at < len(whole):
        size, number = struct.unpack_from(">IB", whole, at)
        parts[number] = whole[at : at + size]
        at += size
    return b"".join((parts[3], parts[4], number5, parts[6], number7))


def packings():
    """Return messages of complex packing."""
    groups = [(10, 3, [1, 2, 7]), (50, 0, [0, 0]), (0, 8, [200])]
    zeros = np.zeros((2, 3), int)
    forms = [{"count": 6}, {"count": 6, "missing": 1}, {"count": 6, "order": 2, "firsts": (1, 2), "least": -3}]
    return b"".join(message2(with_packing(zeros, *complex2(groups, **form)), discipline=1) for form in forms)
