"""Chunks that are, or become, far larger than their metadata say."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zipfile
import zlib
from contextlib import closing
from functools import cache

from tests.attacks.arena import Field, attack

READS = tuple(
    f"with omnizarr.config.set(engine='{engine}'): omnizarr.open_array('{{x}}', mode='r')[{part}]"
    for engine in ("native", "reference")
    for part in ("...", "0")
)
TOOLS = ("omnizarr digest {x}", "omnizarr convert {x} {out}", "omnizarr check {x} --data")
HUGE = 900_000_000


def document(*codecs: dict[str, object], shape: int = 4, dtype: object = "uint8") -> bytes:
    """Return the document of an array with one chunk."""
    return json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [shape], "data_type": dtype, "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [shape]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": list(codecs), "attributes": {},
    }).encode()  # fmt: skip


BYTES = {"name": "bytes"}
GZIP = {"name": "gzip", "configuration": {"level": 1}}


@cache
def zeros(size: int, wbits: int = 31) -> bytes:
    """Return the compressed form of many zeros, made a piece at a time: that of gzip, or of zlib with `wbits=15`."""
    stream = zlib.compressobj(6, zlib.DEFLATED, wbits)
    piece = bytes(1 << 20)
    return b"".join(stream.compress(piece) for _ in range(size >> 20)) + stream.flush()


def sparse(field: Field, *codecs: dict[str, object]) -> None:
    """Lay an array of four bytes, with a sparse file for its chunk."""
    (field.received / "zarr.json").write_bytes(document(*codecs))
    (field.received / "c").mkdir()
    with (field.received / "c" / "0").open("wb") as file:
        file.truncate(HUGE)


@attack("data", "a chunk of 4 bytes is a sparse file of 900 MB", *READS, *TOOLS[:2], refused=True, memory=300 << 20)
def _(field: Field) -> None:
    sparse(field, BYTES)


@attack(
    "data", "a compressed chunk of 4 bytes is a sparse file of 900 MB", *READS, *TOOLS, refused=True, memory=300 << 20
)
def _(field: Field) -> None:
    sparse(field, BYTES, GZIP)


@attack("data", "a chunk of 4 bytes has 900 MB in SQLite", *READS, *TOOLS[:2], refused=True, memory=300 << 20, cpu=30)
def _(field: Field) -> None:
    with closing(sqlite3.connect(field.received / "x.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB)")
        connection.execute("INSERT INTO zarr VALUES ('zarr.json', ?)", (document(BYTES, GZIP),))
        connection.execute("INSERT INTO zarr VALUES ('c/0', zeroblob(?))", (HUGE,))


@attack(
    "data", "a chunk of 4 bytes inflates to 300 MB in a zip archive", *READS, *TOOLS[:2], refused=True, memory=300 << 20
)
def _(field: Field) -> None:
    with zipfile.ZipFile(field.received / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zarr.json", document(BYTES, GZIP))
        with archive.open("c/0", "w", force_zip64=True) as entry:
            for _piece in range(300):
                entry.write(bytes(1 << 20))


@attack("data", "a chain of 30 codecs, each of which makes more", *READS, refused=True, memory=400 << 20)
def _(field: Field) -> None:
    (field.received / "zarr.json").write_bytes(document(BYTES, *[GZIP] * 30))
    (field.received / "c").mkdir()
    value = zeros(1 << 30)
    for _step in range(3):  # each makes it smaller; the innermost ones are never reached
        value = gzip.compress(value, 9, mtime=0)
    (field.received / "c" / "0").write_bytes(value)


def objects(field: Field, codec: str, data: bytes) -> None:
    """Lay an array of four objects, whose chunk is compressed twice."""
    (field.received / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|O", "fill_value": None, "order": "C",
        "filters": [{"id": codec}], "compressor": {"id": "gzip", "level": 9},
    }))  # fmt: skip
    (field.received / "0").write_bytes(gzip.compress(data, 9, mtime=0))


@attack("data", "a chunk of msgpack2 with very many items", *READS, refused=True)
def _(field: Field) -> None:
    size = 200_000_000
    objects(field, "msgpack2", b"\xdd" + size.to_bytes(4, "big") + bytes(size))


@attack("data", "a chunk of json2 with very many items", *READS, refused=True)
def _(field: Field) -> None:
    objects(field, "json2", b"[" + b"[],[]," * 30_000_000 + b"0]")


@attack("data", "a chunk of text with very many items", *READS, refused=True)
def _(field: Field) -> None:
    size = 60_000_000
    (field.received / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|O", "fill_value": "", "order": "C",
        "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "gzip", "level": 9},
    }))  # fmt: skip
    (field.received / "0").write_bytes(gzip.compress(size.to_bytes(4, "little") + bytes(4 * size), 1, mtime=0))


@attack("data", "codecs that make gigabytes of a small chunk by the book", *READS, refused=True, memory=300 << 20)
def _(field: Field) -> None:
    (field.received / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": [10_000], "chunks": [10_000], "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": [{"id": "astype", "encode_dtype": "<U100000", "decode_dtype": "|u1"}],
        "compressor": {"id": "gzip", "level": 9},
    }))  # fmt: skip
    (field.received / "0").write_bytes(zeros(1 << 30))
