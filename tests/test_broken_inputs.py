"""Broken input is refused with an error that says where, what was found, what was expected and what to do.

One row per way to be broken: how the store is damaged, what the user does, and what the error must be. No row may
crash, hang, allocate what the input asks for, or give back numbers.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numcodecs
import numpy as np
import pytest

import omnizarr
from omnizarr import errors

pytestmark = pytest.mark.rules

Documents = dict[str, bytes]

V3 = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 4],
    "data_type": "int32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 7,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}
V2 = {
    "zarr_format": 2,
    "shape": [4, 4],
    "chunks": [2, 2],
    "dtype": "<i4",
    "compressor": None,
    "fill_value": 7,
    "order": "C",
    "filters": None,
}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CHUNK = np.arange(4, dtype="<i4").tobytes()
MISSING = 2**64 - 1


def v3(chunk: bytes | None = None, /, **changes: Any) -> Documents:
    """Return an array `a` of 4 x 4 int32 in chunks of 2 x 2, with some members changed (None: left out)."""
    document = {**V3, **changes}
    for name, value in changes.items():
        if value is None:
            del document[name]
    store = {"zarr.json": b'{"zarr_format": 3, "node_type": "group"}', "a/zarr.json": json.dumps(document).encode()}
    return store if chunk is None else {**store, "a/c/0/0": chunk}


def v2(chunk: bytes | None = None, /, **changes: Any) -> Documents:
    """Return the same array in Zarr v2."""
    store = {".zgroup": b'{"zarr_format": 2}', "a/.zarray": json.dumps({**V2, **changes}).encode()}
    return store if chunk is None else {**store, "a/0.0": chunk}


def with_codecs(*codecs: Any, chunk: bytes | None = None) -> Documents:
    return v3(chunk, codecs=list(codecs))


def sharded(shard: bytes, **changes: Any) -> Documents:
    """Return the array with one chunk of 4 x 4, a shard of four inner chunks with a bare index at its end."""
    configuration = {
        "chunk_shape": [2, 2],
        "codecs": [BYTES],
        "index_codecs": [BYTES],
        "index_location": "end",
        **changes,
    }
    return v3(
        shard,
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
        codecs=[{"name": "sharding_indexed", "configuration": configuration}],
    )


def index(*entries: tuple[int, int]) -> bytes:
    """Return a shard index: the given entries, then missing ones."""
    rows = [*entries, *[(MISSING, MISSING)] * (4 - len(entries))]
    return b"".join(struct.pack("<QQ", *row) for row in rows)


def read(path: str = "a", selection: Any = ..., **options: Any) -> Callable[[Documents], Any]:
    return lambda store: omnizarr.open_array(store, path=path, mode="r", **options)[selection]


def opening(path: str = "a", **options: Any) -> Callable[[Documents], Any]:
    return lambda store: omnizarr.open(store, path=path, mode="r", **options)


def assigning(value: Any, selection: Any = ...) -> Callable[[Documents], Any]:
    def assign(store: Documents) -> None:
        omnizarr.open_array(store, path="a", mode="r+")[selection] = value

    return assign


@dataclass
class Broken:
    """One row of the table."""

    name: str
    store: Documents
    error: type[Exception] | tuple[type[Exception], ...]
    words: list[str]
    action: Callable[[Documents], Any] = field(default_factory=read)
    has: dict[str, Any] = field(default_factory=dict)


GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
BLOSC = {
    "name": "blosc",
    "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
}
CRC = {"name": "crc32c"}
BOMB = bytes(1 << 26)

BUILTINS_OF_A_MISSING_NODE = (FileNotFoundError, KeyError, ValueError)

TABLE = [
    # Chunks: too short, too long, not what their codec makes.
    Broken("truncated raw chunk", v3(CHUNK[:-1]), errors.ChunkSizeError, ["/a", "c/0/0", "15 bytes", "16 bytes"],
           has={"key": "a/c/0/0", "path": "a", "coords": (0, 0)}),
    Broken("truncated raw chunk, read in part", v3(CHUNK[:-1]), errors.ChunkSizeError, ["c/0/0", "15 bytes", "16 bytes"],
           read(selection=(0, 0))),
    Broken("long raw chunk", v3(CHUNK + b"x"), errors.ChunkSizeError, ["c/0/0", "17 bytes", "16 bytes"]),
    Broken("empty raw chunk", v3(b""), errors.ChunkSizeError, ["c/0/0", "0 bytes", "16 bytes"]),
    Broken("truncated raw chunk, v2", v2(CHUNK[:3]), errors.ChunkSizeError, ["0.0", "3 bytes", "16 bytes"],
           has={"key": "a/0.0"}),
    Broken("truncated gzip", with_codecs(BYTES, GZIP, chunk=gzip.compress(CHUNK)[:-9]), errors.ChunkError,
           ["c/0/0", "'gzip'"], has={"codec": "gzip", "coords": (0, 0)}),
    Broken("no gzip at all", with_codecs(BYTES, GZIP, chunk=b"not gzip"), errors.ChunkError, ["c/0/0", "'gzip'"]),
    Broken("gzip of too little", with_codecs(BYTES, GZIP, chunk=gzip.compress(CHUNK[:8])), errors.ChunkSizeError,
           ["c/0/0", "8 bytes", "16 bytes"]),
    Broken("gzip of too much", with_codecs(BYTES, GZIP, chunk=gzip.compress(CHUNK * 2)), errors.ChunkSizeError,
           ["c/0/0", "16 bytes"]),
    Broken("gzip bomb", with_codecs(BYTES, GZIP, chunk=gzip.compress(BOMB)), errors.ChunkSizeError,
           ["c/0/0", "'gzip'", "16 bytes"], has={"codec": "gzip"}),
    Broken("truncated zstd", with_codecs(BYTES, ZSTD, chunk=numcodecs.Zstd().encode(CHUNK)[:-3]), errors.ChunkError,
           ["c/0/0", "'zstd'"], has={"codec": "zstd"}),
    Broken("no zstd at all", with_codecs(BYTES, ZSTD, chunk=b"\x00" * 20), errors.ChunkError, ["c/0/0", "'zstd'"]),
    Broken("zstd bomb", with_codecs(BYTES, ZSTD, chunk=numcodecs.Zstd().encode(BOMB)), errors.ChunkSizeError,
           ["c/0/0", "'zstd'", "16 bytes"]),
    Broken("truncated blosc", with_codecs(BYTES, BLOSC, chunk=numcodecs.Blosc().encode(CHUNK)[:-2]), errors.ChunkError,
           ["c/0/0", "'blosc'"]),
    Broken("no blosc at all", with_codecs(BYTES, BLOSC, chunk=b"\xff" * 40), errors.ChunkError, ["c/0/0", "'blosc'"]),
    Broken("blosc bomb", with_codecs(BYTES, BLOSC, chunk=numcodecs.Blosc().encode(BOMB)), errors.ChunkSizeError,
           ["c/0/0", "'blosc'", "16 bytes"]),
    Broken("blosc of nothing", with_codecs(BYTES, BLOSC, chunk=b""), errors.ChunkError, ["c/0/0", "'blosc'"]),
    Broken("zlib bomb, v2", v2(zlib.compress(BOMB), compressor={"id": "zlib", "level": 1}), errors.ChunkSizeError,
           ["0.0", "zlib", "16 bytes"]),
    Broken("lz4 with a huge size, v2", v2(b"\xff\xff\xff\x7f" + bytes(8), compressor={"id": "lz4", "acceleration": 1}),
           errors.ChunkError, ["0.0", "lz4"]),
    Broken("bz2 of garbage, v2", v2(b"BZh9garbage", compressor={"id": "bz2", "level": 1}), errors.ChunkError,
           ["0.0", "bz2"]),
    Broken("lzma of garbage, v2", v2(b"\xfd7zXZ\x00garbage", compressor={"id": "lzma", "format": 1, "check": -1,
           "preset": None, "filters": None}), errors.ChunkError, ["0.0", "lzma"]),
    # Checksums.
    Broken("wrong crc32c", with_codecs(BYTES, CRC, chunk=CHUNK + bytes(4)), errors.ChecksumError,
           ["c/0/0", "'crc32c'", "0x00000000"], has={"codec": "crc32c", "key": "a/c/0/0"}),
    Broken("no room for crc32c", with_codecs(BYTES, CRC, chunk=b"abc"), errors.ChunkError, ["c/0/0", "'crc32c'"]),
    Broken("wrong adler32, v2", v2(CHUNK + bytes(4), filters=[{"id": "adler32"}]), errors.ChunkError,
           ["0.0", "adler32"]),
    Broken("wrong fletcher32, v2", v2(CHUNK + bytes(4), filters=[{"id": "fletcher32"}]), errors.ChecksumError,
           ["0.0", "fletcher32"]),
    # Variable length.
    Broken("vlen count beyond the data", v2(struct.pack("<I", 2**31) + b"x", dtype="|O", filters=[{"id": "vlen-utf8"}],
           fill_value=""), errors.ChunkError, ["0.0", "vlen-utf8"]),
    Broken("vlen item beyond the data", v2(struct.pack("<II", 4, 2**30), dtype="|O", filters=[{"id": "vlen-utf8"}],
           fill_value=""), errors.ChunkError, ["0.0", "vlen-utf8"]),
    Broken("vlen of other count", v2(struct.pack("<III", 1, 1, 65)[:9], dtype="|O", filters=[{"id": "vlen-utf8"}],
           fill_value=""), errors.ChunkError, ["0.0", "vlen-utf8"]),
    Broken("vlen of bad UTF-8", v2(struct.pack("<I", 4) + (struct.pack("<I", 1) + b"\xff") * 4, dtype="|O",
           filters=[{"id": "vlen-utf8"}], fill_value=""), errors.ChunkError, ["0.0", "vlen-utf8"]),
    Broken("pickle", v2(b"cos\nsystem\n(S'true'\ntR.", dtype="|O", filters=[{"id": "pickle", "protocol": 5}],
           fill_value=None), errors.PickleDisabledError, ["pickle", "allow_pickle=True"], has={"path": "a"}),
    Broken("objects without a codec for them", v2(dtype="|O", fill_value=None), errors.CodecError, ["/a", "Python objects"]),
    # Shards.
    Broken("shard shorter than its index", sharded(b"x" * 10), errors.ShardIndexError, ["c/0/0", "sharding_indexed"],
           has={"codec": "sharding_indexed"}),
    Broken("shard index points outside", sharded(CHUNK + index((0, 16), (1000, 16))), errors.ShardIndexError,
           ["c/0/0", "1000"]),
    Broken("shard index overflows", sharded(CHUNK + index((2**64 - 8, 16))), errors.ShardIndexError, ["c/0/0"]),
    Broken("shard index half missing", sharded(CHUNK + index((MISSING, 16))), errors.ShardIndexError, ["c/0/0"]),
    Broken("inner chunk of wrong size", sharded(CHUNK + index((0, 15))), errors.ChunkSizeError,
           ["c/0/0", "15 bytes", "16 bytes"]),
    Broken("shard index with wrong checksum", sharded(CHUNK + index((0, 16)) + bytes(4), index_codecs=[BYTES, CRC]),
           errors.ChecksumError, ["c/0/0", "crc32c"]),
    Broken("inner chunks that do not divide the shard", sharded(b"", chunk_shape=[3, 3]), errors.OmnizarrError,
           ["/a", "sharding_indexed", "3"]),
    Broken("index codecs of no fixed size", sharded(b"", index_codecs=[BYTES, GZIP]), errors.OmnizarrError,
           ["/a", "sharding_indexed", "gzip"]),
    # JSON.
    Broken("JSON cut off", {"a/zarr.json": b'{"zarr_format": 3, "node'}, errors.MetadataError, ["a/zarr.json"],
           opening(), {"key": "a/zarr.json"}),
    Broken("JSON that is not an object", {"a/zarr.json": b"[3]"}, errors.MetadataError, ["a/zarr.json", "object"], opening()),
    Broken("JSON that is not UTF-8", {"a/zarr.json": b'{"\xff\xfe": 3}'}, errors.MetadataError, ["a/zarr.json"],
           opening()),
    Broken("JSON nested without end", {"a/zarr.json": b"[" * 200_000}, errors.MetadataError, ["a/zarr.json"], opening()),
    Broken("JSON number of 10,000 digits", {"a/zarr.json": b'{"zarr_format": ' + b"3" * 10_000 + b"}"},
           errors.MetadataError, ["a/zarr.json"], opening()),
    Broken("empty document", {"a/zarr.json": b""}, errors.MetadataError, ["a/zarr.json"], opening()),
    Broken("empty v2 document", {"a/.zarray": b""}, errors.MetadataError, ["a/.zarray"], opening()),
    # Documents.
    Broken("format 4", v3(zarr_format=4), errors.MetadataError, ["/zarr_format", "4", "3"], opening(),
           {"pointer": "/zarr_format"}),
    Broken("unknown node type", v3(node_type="table"), errors.MetadataError, ["/node_type", "table"], opening()),
    Broken("no shape", v3(shape=None), errors.MetadataError, ["/shape"], opening(), {"pointer": "/shape"}),
    Broken("shape of strings", v3(shape=["4", 4]), errors.MetadataError, ["/shape/0", "4"], opening()),
    Broken("shape of booleans", v3(shape=[True, 4]), errors.MetadataError, ["/shape/0", "True"], opening()),
    Broken("shape of floats", v3(shape=[4.5, 4]), errors.MetadataError, ["/shape/0", "4.5"], opening()),
    Broken("negative shape", v3(shape=[-4, 4]), errors.MetadataError, ["/shape/0", "-4"], opening()),
    Broken("shape that is not a list", v3(shape=16), errors.MetadataError, ["/shape", "16"], opening()),
    Broken("chunk shape of other length", v3(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2]}}),
           errors.MetadataError, ["/chunk_grid", "2"], has={"path": "a"}),
    Broken("chunk length 0", v3(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 2]}}),
           errors.MetadataError, ["/chunk_grid", "0"]),
    Broken("unknown grid", v3(chunk_grid={"name": "hexagonal"}), errors.UnknownChunkGridError,
           ["hexagonal", "regular"]),
    Broken("unknown data type", v3(data_type="int33"), errors.UnknownDataTypeError, ["int33"], has={"path": "a"}),
    Broken("unknown codec", with_codecs(BYTES, {"name": "zzip"}), errors.UnknownCodecError, ["zzip", "/codecs/1"],
           has={"path": "a", "codec": "zzip"}),
    Broken("misspelt codec", with_codecs(BYTES, {"name": "gzipp"}), errors.UnknownCodecError, ["gzipp", "gzip"]),
    Broken("unknown filter, v2", v2(filters=[{"id": "wavelet"}]), errors.UnknownCodecError, ["wavelet"]),
    Broken("unknown key encoding", v3(chunk_key_encoding={"name": "spiral"}), errors.UnknownChunkKeyEncodingError,
           ["spiral", "default"]),
    Broken("unknown storage transformer", v3(storage_transformers=[{"name": "braid"}]),
           errors.UnknownStorageTransformerError, ["braid"]),
    Broken("unknown member", v3(checksum="abc"), errors.MetadataError, ["checksum"], opening(), {"pointer": "/checksum"}),
    Broken("codecs of the wrong order", with_codecs(GZIP, BYTES), errors.CodecError, ["/codecs/0", "gzip", "array"]),
    Broken("two array to bytes codecs", with_codecs(BYTES, BYTES), errors.CodecError, ["/codecs/1", "bytes"]),
    Broken("transpose by no permutation", with_codecs({"name": "transpose", "configuration": {"order": [0, 0]}}, BYTES),
           errors.OmnizarrError, ["transpose", "[0, 0]"]),
    Broken("gzip level 11", with_codecs(BYTES, {"name": "gzip", "configuration": {"level": 11}}), errors.OmnizarrError,
           ["gzip", "11"]),
    Broken("blosc without a compressor", with_codecs(BYTES, {"name": "blosc", "configuration": {"cname": "zip"}}),
           errors.OmnizarrError, ["blosc", "zip"]),
    Broken("fill value out of range", v3(data_type="uint8", fill_value=256), errors.MetadataError,
           ["/fill_value", "256"]),
    Broken("fill value of another type", v3(fill_value="seven"), errors.MetadataError, ["/fill_value", "seven"]),
    Broken("no fill value", v3(fill_value=None), errors.MetadataError, ["/fill_value"], opening()),
    Broken("dimension names of other length", v3(dimension_names=["x"]), errors.MetadataError, ["/dimension_names"],
           opening()),
    Broken("attributes that are not an object", v3(attributes=[1]), errors.MetadataError, ["/attributes"], opening()),
    Broken("bad order, v2", v2(order="Z"), errors.MetadataError, ["/order", "Z"], opening()),
    Broken("bad dtype, v2", v2(dtype="<i5"), errors.UnknownDataTypeError, ["<i5"]),
    Broken("bad separator, v2", v2(dimension_separator="-"), errors.MetadataError, ["/dimension_separator", "-"],
           opening()),
    # Impossible sizes: nothing may be allocated for them.
    Broken("chunk of 2**62 elements", v3(CHUNK, shape=[2**62, 4], chunk_grid={"name": "regular",
           "configuration": {"chunk_shape": [2**62, 4]}}), (errors.OmnizarrError, MemoryError), [],
           read(selection=(0, 0))),
    Broken("shape beyond 64 bits", v3(shape=[2**70, 4]), errors.MetadataError, ["/shape/0"], opening()),
    # Paths.
    Broken("misspelt path", v3(), errors.NodeNotFoundError, ["/b"], opening("b")),
    Broken("misspelt path with a likely one", {**v3(), "temperature/zarr.json": json.dumps(V3).encode()},
           BUILTINS_OF_A_MISSING_NODE, ["temperatur", "did you mean", "temperature"], opening("temperatur")),
    Broken("no Zarr at all", {"readme.txt": b"hello"}, errors.NodeNotFoundError, ["zarr.json", ".zarray"], opening("")),
    Broken("path that climbs", v3(), (errors.NodeNameError, errors.InvalidKeyError), [".."], opening("../a")),
    Broken("array where a group is", v3(), (errors.ContainsGroupError, errors.ArrayNotFoundError), ["group"],
           lambda store: omnizarr.open_array(store, mode="r")),
    Broken("group where an array is", v3(), (errors.ContainsArrayError, errors.GroupNotFoundError), ["array"],
           lambda store: omnizarr.open_group(store, path="a", mode="r")),
    # Use.
    Broken("index outside", v3(), (errors.BoundsCheckError,), ["found 4", "dimension 0", "-4 to 3"], read(selection=(4, 0))),
    Broken("too many indices", v3(), IndexError, ["3", "2"], read(selection=(0, 0, 0))),
    Broken("value of another shape", v3(), (errors.ShapeError,), ["(3,)", "(4, 4)"], assigning(np.arange(3))),
    Broken("missing chunk refused", v3(), errors.ChunkNotFoundError, ["c/0/0", "missing"], read(missing="error"),
           {"coords": (0, 0), "path": "a"}),
    Broken("writing to what was opened to read", v3(), PermissionError, ["read"],
           lambda store: omnizarr.open_array(store, path="a", mode="r").__setitem__(..., 1)),
]  # fmt: skip


def test_there_are_at_least_sixty_ways():
    assert len(TABLE) >= 60


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_error_names_place_and_cause(case):
    before = dict(case.store)
    with pytest.raises(case.error) as caught:
        case.action(case.store)
    text = str(caught.value)
    for word in case.words:
        assert word in text
    assert "\n" not in text
    for name, value in case.has.items():
        assert getattr(caught.value, name) == value
    assert case.store == before


def test_one_unreadable_array_does_not_hide_its_siblings():
    store = {
        **v3(CHUNK),
        "broken/zarr.json": b"{",
        "strange/zarr.json": json.dumps({**V3, "data_type": "int33"}).encode(),
    }
    group = omnizarr.open_group(store, mode="r")
    assert group["a"][0, 1] == 1
    assert {"a", "strange"} <= set(dict(group.members()))
    assert "a" in str(group.tree())
