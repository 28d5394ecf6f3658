"""Codecs from bytes to bytes, written with NumPy and the standard library.

Those that Python lacks are written here as plainly as their formats allow: Zstandard frames of blocks that are not
compressed, LZ4 with a greedy search, Blosc around either.
"""

from __future__ import annotations

import base64
import bz2
import functools
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Json = Any


@functools.cache
def crc_table() -> tuple[int, ...]:
    """Return the table of CRC-32C, with the polynomial of RFC 3720."""
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)  # noqa: PLW2901 - the register of the algorithm
        table.append(number)
    return tuple(table)


def crc32c(data: bytes) -> int:
    """Return the checksum of RFC 3720.

    Examples
    --------
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    table, crc = crc_table(), 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def fletcher32(data: bytes) -> int:
    """Return the checksum of HDF5, of words of two bytes with the higher first."""
    one = two = 0
    for high, low in zip(data[::2], data[1::2] + b"\0" * (len(data) % 2), strict=True):
        one = (one + (high << 8 | low)) % 65535
        two = (two + one) % 65535
    return two << 16 | one


def xxh64(data: bytes) -> int:
    """Return the checksum of Zstandard frames, with seed 0.

    Examples
    --------
    >>> hex(xxh64(b""))
    '0xef46db3751d8e999'
    """
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5, mask = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, 2**64 - 1

    def turn(x: int, r: int) -> int:
        return (x << r | x >> (64 - r)) & mask

    def mix(acc: int, lane: int) -> int:
        return turn((acc + lane * p2) & mask, 31) * p1 & mask

    at = 0
    if len(data) >= 32:
        acc = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while at + 32 <= len(data):
            acc = [mix(a, lane) for a, lane in zip(acc, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        h = sum(turn(a, r) for a, r in zip(acc, (1, 7, 12, 18), strict=True)) & mask
        for a in acc:
            h = ((h ^ mix(0, a)) * p1 + p4) & mask
    else:
        h = p5
    h = (h + len(data)) & mask
    while at + 8 <= len(data):
        h = (turn(h ^ mix(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= len(data):
        h = (turn(h ^ (struct.unpack_from("<I", data, at)[0] * p1 & mask), 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        h = turn(h ^ (byte * p5 & mask), 11) * p1 & mask
    h = (h ^ h >> 33) * p2 & mask
    h = (h ^ h >> 29) * p3 & mask
    return h ^ h >> 32


def zstd(data: bytes, configuration: Json) -> bytes:
    """Write a Zstandard frame of RFC 8878: raw blocks, and one of a repeated byte where all are equal."""
    checksum = bool(configuration.get("checksum"))
    sized = configuration.get("sized", True)
    head = struct.pack("<IB", 0xFD2FB528, (0xA0 if sized else 0) | checksum << 2)
    head += struct.pack("<I", len(data)) if sized else b"\x58"  # a window of 2 MiB where no size is stated
    out, parts = head, [data[at : at + 65536] for at in range(0, len(data), 65536)] or [b""]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if len(part) > 1 and part.count(part[:1]) == len(part):
            out += (len(part) << 3 | 1 << 1 | last).to_bytes(3, "little") + part[:1]
        else:
            out += (len(part) << 3 | last).to_bytes(3, "little") + part
    return out + (struct.pack("<I", xxh64(data) & 0xFFFFFFFF) if checksum else b"")


def lz4_block(data: bytes) -> bytes:
    """Write an LZ4 block: literals, and matches that a greedy search finds."""

    def lengths(count: int, least: int) -> tuple[int, bytes]:
        extra = count - least
        if extra < 15:
            return extra, b""
        return 15, b"\xff" * ((extra - 15) // 255) + bytes([(extra - 15) % 255])

    out, at, anchor = b"", 0, 0
    seen: dict[bytes, int] = {}
    while at + 12 < len(data):  # the last match begins 12 bytes before the end
        word = data[at : at + 4]
        before, seen[word] = seen.get(word), at
        if before is None or at - before > 65535:
            at += 1
            continue
        length = 4
        while at + length < len(data) - 5 and data[before + length] == data[at + length]:  # the last 5 are literals
            length += 1
        high, more = lengths(at - anchor, 0)
        low, rest = lengths(length, 4)
        out += bytes([high << 4 | low]) + more + data[anchor:at] + struct.pack("<H", at - before) + rest
        at = anchor = at + length
    high, more = lengths(len(data) - anchor, 0)
    return out + bytes([high << 4]) + more + data[anchor:]


def lz4(data: bytes, configuration: Json) -> bytes:
    """Write the size, as numcodecs does, and an LZ4 block."""
    return struct.pack("<I", len(data)) + lz4_block(data)


def shuffled(data: bytes, size: int) -> bytes:
    """Write the first bytes of all elements, then the second ones; what is left over stays at the end."""
    whole = len(data) // size * size
    return np.frombuffer(data[:whole], np.uint8).reshape(-1, size).T.tobytes() + data[whole:]


def bitshuffled(data: bytes, size: int) -> bytes:
    """Write the lowest bits of all elements, then the next ones; Blosc 1 copies where these are no multiple of 8."""
    if len(data) % (size * 8):
        return data
    planes = np.frombuffer(data, np.uint8).reshape(-1, size).T
    bits = np.unpackbits(planes[:, :, None], axis=2, bitorder="little").transpose(0, 2, 1)
    return np.packbits(bits, axis=2, bitorder="little").tobytes()


def blosc(data: bytes, configuration: Json) -> bytes:
    """Write a buffer of Blosc 1 in one block."""
    size = configuration.get("typesize") or 1
    shuffle = configuration.get("shuffle", 1)
    flags = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 4, 0: 0, 1: 1, 2: 4}[shuffle]
    inner: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
        "lz4": (1, lz4_block),
        "lz4hc": (1, lz4_block),
        "zlib": (3, zlib.compress),
        "zstd": (4, plain_zstd),
    }
    if configuration["cname"] == "blosclz" or configuration.get("clevel") == 0 or len(data) < 16:
        head = struct.pack("<BBBBIII", 2, 1, flags | 2, size, len(data), max(len(data), 1), len(data) + 16)
        return head + data  # the flag for a mere copy
    number, squeeze = inner[configuration["cname"]]
    block = shuffled(data, size) if flags & 1 else bitshuffled(data, size) if flags & 4 else data
    body = squeeze(block)
    if len(body) >= len(block):
        body = block  # of this length, it is taken as it is
    stored = struct.pack("<II", 20, len(body)) + body
    head = struct.pack("<BBBBIII", 2, 1, flags | 16 | number << 5, size, len(data), len(data), len(stored) + 16)
    return head + stored


def plain_zstd(data: bytes) -> bytes:
    """Return a Zstandard frame, without checksum."""
    return zstd(data, {})


def with_check(value: int, data: bytes, where: str) -> bytes:
    """Put a checksum of four bytes at the start or the end."""
    stored = struct.pack("<I", value)
    return stored + data if where == "start" else data + stored


def lzma_stream(data: bytes, configuration: Json) -> bytes:
    """Write what Python's lzma does with the same parameters."""
    names = ("format", "check", "preset", "filters")
    return lzma.compress(data, **{name: configuration[name] for name in names if configuration.get(name) is not None})


CODECS: dict[str, Callable[[bytes, Json], bytes]] = {
    "gzip": lambda data, c: gzip.compress(data, c.get("level", 5), mtime=0),
    "zlib": lambda data, c: zlib.compress(data, c.get("level", 1)),
    "bz2": lambda data, c: bz2.compress(data, c.get("level", 1)),
    "lzma": lzma_stream,
    "base64": lambda data, _: base64.b64encode(data),
    "zstd": zstd,
    "lz4": lz4,
    "blosc": blosc,
    "shuffle": lambda data, c: shuffled(data, c.get("elementsize", 4)),
    "crc32c": lambda data, c: with_check(crc32c(data), data, c.get("location", "end")),
    "crc32": lambda data, c: with_check(zlib.crc32(data), data, c.get("location", "start")),
    "adler32": lambda data, c: with_check(zlib.adler32(data), data, c.get("location", "start")),
    "fletcher32": lambda data, _: with_check(fletcher32(data), data, "end"),
}


def conditional(data: bytes, configuration: Json) -> bytes:
    """Apply those codecs whose bit is set in ``mask``, which is no part of the document."""
    codecs, mask = configuration["codecs"], configuration.get("mask", 1)
    bits = configuration.get("header_bits", -(-len(codecs) // 8) * 8)
    for number, codec in enumerate(codecs):
        if mask >> number & 1:
            data = CODECS[codec["name"]](data, codec.get("configuration", {}))
    return int(mask).to_bytes(bits // 8, "little") + data


CODECS["conditional"] = conditional
