"""Hierarchies with one thing wrong with each: how it came about, and what a check has to find.

Written by hand, byte by byte, from the texts of the formats: nothing here comes from omnizarr. ``STORES`` is the table;
``build(case, folder)`` writes one of them into a directory.
"""

from __future__ import annotations

import bz2
import gzip
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import numcodecs
import numpy as np

Files = dict[str, bytes | None]
"""Contents by key; None: not there."""

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
CRC = {"name": "crc32c"}
V3_GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
V3_ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 4],
    "data_type": "int32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 7,
    "codecs": [BYTES],
}
V2_ARRAY = {
    "zarr_format": 2,
    "shape": [4, 4],
    "chunks": [2, 2],
    "dtype": "<i4",
    "compressor": None,
    "fill_value": 7,
    "order": "C",
    "filters": None,
}
V1_ARRAY = {
    "zarr_format": 1,
    "shape": [4, 4],
    "chunks": [2, 2],
    "dtype": "<i4",
    "compression": "none",
    "compression_opts": None,
    "fill_value": 7,
    "order": "C",
}
V0_ARRAY = {
    "shape": [4, 4],
    "chunks": [2, 2],
    "dtype": "<i4",
    "fill_value": 7,
    "cname": "lz4",
    "clevel": 1,
    "shuffle": 1,
}
URI_2019 = "http://purl.org/zarr/spec/protocol/core/3.0"
URI_2020 = "https://purl.org/zarr/spec/protocol/core/3.0"
ENTRY_2019 = {"zarr_format": URI_2019, "metadata_encoding": "application/json", "extensions": []}
ENTRY_2020 = {
    "zarr_format": URI_2020,
    "metadata_encoding": URI_2020,
    "metadata_key_suffix": ".json",
    "extensions": [],
}
D2019_ARRAY = {
    "zarr_format": URI_2019,
    "shape": [4, 4],
    "data_type": "<i4",
    "chunk_grid": {"type": "regular", "chunk_shape": [2, 2]},
    "chunk_memory_layout": "C",
    "chunk_codecs": [],
    "fill_value": 7,
    "extensions": [],
    "attributes": {},
}
D2020_ARRAY = {
    "shape": [4, 4],
    "data_type": "<i4",
    "chunk_grid": {"type": "regular", "chunk_shape": [2, 2], "separator": "/"},
    "chunk_memory_layout": "C",
    "fill_value": 7,
    "extensions": [],
    "attributes": {},
}
CHUNK = np.arange(4, dtype="<i4").tobytes()
GRID = [(0, 0), (0, 1), (1, 0), (1, 1)]
MISSING = 2**64 - 1


def text(document: Any) -> bytes:
    return json.dumps(document).encode()


def chunks(form: str, data: bytes = CHUNK, coords: Any = GRID) -> Files:
    return {form.format(*place): data for place in coords}


def v3(data: bytes = CHUNK, **changes: Any) -> Files:
    """Return a group of Zarr v3 with an array `a`, whose members are changed (None: left out)."""
    document = {name: value for name, value in {**V3_ARRAY, **changes}.items() if value is not None}
    return {"zarr.json": text(V3_GROUP), "a/zarr.json": text(document), **chunks("a/c/{}/{}", data)}


def v2(data: bytes = CHUNK, **changes: Any) -> Files:
    """Return a group of Zarr v2 with an array `a`, whose members are changed (...: left out)."""
    document = {name: value for name, value in {**V2_ARRAY, **changes}.items() if value is not ...}
    return {".zgroup": text({"zarr_format": 2}), "a/.zarray": text(document), **chunks("a/{}.{}", data)}


def v1(data: bytes = CHUNK, **changes: Any) -> Files:
    document = {name: value for name, value in {**V1_ARRAY, **changes}.items() if value is not ...}
    return {"a/meta": text(document), "a/attrs": b"{}", **chunks("a/{}.{}", data)}


def v0(data: bytes | None = None, **changes: Any) -> Files:
    data = numcodecs.Blosc("lz4", 1).encode(CHUNK) if data is None else data
    document = {name: value for name, value in {**V0_ARRAY, **changes}.items() if value is not ...}
    return {"a/__zmeta__": text(document), **chunks("a/__zdata__/{}.{}.blosc", data)}


def d2019(data: bytes = CHUNK, **changes: Any) -> Files:
    document = {name: value for name, value in {**D2019_ARRAY, **changes}.items() if value is not ...}
    group = {"zarr_format": URI_2019, "extensions": [], "attributes": {}}
    return {
        "zarr.json": text(ENTRY_2019),
        "meta/root.group": text(group),
        "meta/root/a.array": text(document),
        **chunks("data/a/{}.{}", data),
    }


def image(*levels: str, axes: Any = None, scale: Any = (1, 1)) -> dict[str, Any]:
    """Return what OME-Zarr tells of an image; its levels are `a` unless others are named."""
    steps = [{"type": "scale", "scale": scale}]
    return {
        "axes": axes or [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
        "datasets": [{"path": level, "coordinateTransformations": steps} for level in levels or ("a",)],
    }


def ome(dtype: str = "int32", names: Any = ("y", "x"), **changes: Any) -> Files:
    """Return an image of OME-Zarr 0.5 with the level `a`, whose metadata are changed (None: left out)."""
    told = {"version": "0.5", "multiscales": [image()], **changes}
    told = {name: value for name, value in told.items() if value is not None}
    files = v3(data_type=dtype, dimension_names=names)
    return {**files, "zarr.json": text({**V3_GROUP, "attributes": {"ome": told}})}


def d2020(data: bytes = CHUNK, **changes: Any) -> Files:
    document = {name: value for name, value in {**D2020_ARRAY, **changes}.items() if value is not ...}
    return {
        "zarr.json": text(ENTRY_2020),
        "meta/root.group.json": text({"attributes": {}}),
        "meta/root/a.array.json": text(document),
        **chunks("data/root/a/c{}/{}", data),
    }


SOUND: dict[str, Files] = {"v3": v3(), "v2": v2(), "v1": v1(), "v0": v0(), "2019": d2019(), "2020": d2020()}
"""Hierarchies in which nothing is wrong."""


def coded(*codecs: Any, first: bytes, rest: bytes | None = None) -> Files:
    """Return `v3` with codecs, and chunks of which the first is `first`."""
    files = v3(first if rest is None else rest, codecs=list(codecs))
    return {**files, "a/c/0/0": first}


def inlined(nodes: dict[str, Any], **changes: Any) -> bytes:
    """Return the document of a v3 group with consolidated metadata."""
    block = {"kind": "inline", "must_understand": False, "metadata": nodes, **changes}
    return text({**V3_GROUP, "consolidated_metadata": block})


def zmetadata(nodes: dict[str, Any], number: int = 1) -> bytes:
    return text({"zarr_consolidated_format": number, "metadata": {".zgroup": {"zarr_format": 2}, **nodes}})


def index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", *entry) for entry in entries)


def crc(data: bytes) -> bytes:
    return data + struct.pack("<I", google_crc32c.value(data))


def sharded(shard: bytes, index_codecs: Any = (BYTES,), inner: Any = (BYTES,)) -> Files:
    """Return `v3` with one shard for all elements, of four inner chunks."""
    sharding = {"chunk_shape": [2, 2], "codecs": list(inner), "index_codecs": list(index_codecs)}
    files = v3(
        codecs=[{"name": "sharding_indexed", "configuration": sharding}],
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
    )
    return {"zarr.json": files["zarr.json"], "a/zarr.json": files["a/zarr.json"], "a/c/0/0": shard}


def uneven() -> Files:
    """Return `v3` with one shard of the inner chunks 3 and 1 along each dimension."""
    sharding = {"chunk_shape": [3, 3], "codecs": [BYTES], "index_codecs": [BYTES]}
    files = sharded(bytes(64) + index((0, 36), (36, 12), (48, 12), (60, 4)))
    document = json.loads(files["a/zarr.json"])
    document["codecs"][0]["configuration"] = sharding
    return {**files, "a/zarr.json": text(document)}


FOUR = CHUNK * 4
PLACES = [(0, 16), (16, 16), (32, 16), (48, 16)]


@dataclass(frozen=True)
class Damaged:
    """A hierarchy with something wrong.

    Attributes
    ----------
    name : str
    files : dict
        Contents by key.
    expected : list of (code, path, key)
        What has to be found, and nothing else that is worse than a note.
    data : bool
        It shows only when chunks are decoded.
    """

    name: str
    files: Files
    expected: list[tuple[str, str, str | None]]
    data: bool = False

    def __str__(self) -> str:
        return self.name


def one(name: str, files: Files, code: str, key: str | None, path: str = "a", *, data: bool = False) -> Damaged:
    return Damaged(name, files, [(code, path, key)], data)


def build(case: Damaged, folder: Path) -> Path:
    """Write a hierarchy into a directory, and return that."""
    for key, content in case.files.items():
        if content is not None:
            place = folder / key
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    return folder


A3, A2, A1, A0 = "a/zarr.json", "a/.zarray", "a/meta", "a/__zmeta__"
A19, A20 = "meta/root/a.array", "meta/root/a.array.json"
ZLIB = {"id": "zlib", "level": 1}
STRUCT = {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int32"}]}}
BLOSC3 = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
NO_TYPESIZE = {name: value for name, value in BLOSC3.items() if name != "typesize"}
BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
TWICE = text(V3_ARRAY)[:-1] + b', "fill_value": 7}'
STRINGS = struct.pack("<I", 4) + b"".join(struct.pack("<I", 1) + b"x" for _ in range(4))

_JSON: list[Damaged] = [
    one("v3 document cut off", {**v3(), A3: text(V3_ARRAY)[:50]}, "not-json", A3),
    one("v3 document is empty", {**v3(), A3: b""}, "not-json", A3),
    one("v3 document with a trailing comma", {**v3(), A3: text(V3_ARRAY)[:-1] + b",}"}, "not-json", A3),
    one("v3 document nested without end", {**v3(), A3: b"[" * 100_000}, "not-json", A3),
    one(
        "v3 document in Latin-1", {**v3(), A3: text(V3_ARRAY)[:-1] + b', "attributes": {"x": "\xe9"}}'}, "not-utf8", A3
    ),
    one("v3 document that is a list", {**v3(), A3: b"[3]"}, "invalid-metadata", A3),
    one("v3 document with a member twice", {**v3(), A3: TWICE}, "repeated-member", A3),
    one("v3 document with a byte order mark", {**v3(), A3: b"\xef\xbb\xbf" + text(V3_ARRAY)}, "byte-order-mark", A3),
    one("v3 attributes with a byte of Latin-1", v3(attributes={"units": "\udcb0C"}), "half-surrogate", A3),
    one(
        "v2 attributes with a byte of Latin-1",
        {**v2(), "a/.zattrs": b'{"x": ["\\udcb0"]}'},
        "half-surrogate",
        "a/.zattrs",
    ),
    one("v3 attributes with a NaN", v3(attributes={"x": [float("nan")]}), "nonfinite-attribute", A3),
    one("v3 fill value is a bare NaN", v3(data_type="float32", fill_value=float("nan")), "bare-nan", A3),
    one("v2 document cut off", {**v2(), A2: text(V2_ARRAY)[:50]}, "not-json", A2),
    one("v2 attributes cut off", {**v2(), "a/.zattrs": b'{"x": '}, "not-json", "a/.zattrs"),
    one("v2 attributes with a NaN", {**v2(), "a/.zattrs": b'{"x": NaN}'}, "nonfinite-attribute", "a/.zattrs"),
    one("v2 attributes are a list", {**v2(), "a/.zattrs": b"[]"}, "invalid-metadata", "a/.zattrs"),
    one("v2 fill value is a bare NaN", v2(dtype="<f4", fill_value=float("nan")), "bare-nan", A2),
    one("v1 document cut off", {**v1(), A1: text(V1_ARRAY)[:50]}, "not-json", A1),
    one("v1 attributes cut off", {**v1(), "a/attrs": b"{"}, "not-json", "a/attrs"),
    one("v1 fill value is a bare NaN", v1(dtype="<f4", fill_value=float("nan")), "bare-nan", A1),
    one("v0 document cut off", {**v0(), A0: text(V0_ARRAY)[:30]}, "not-json", A0),
    one("2019 document cut off", {**d2019(), A19: text(D2019_ARRAY)[:50]}, "not-json", A19),
    one("2020 document cut off", {**d2020(), A20: text(D2020_ARRAY)[:50]}, "not-json", A20),
    one("2020 attributes with a NaN", d2020(attributes={"x": float("nan")}), "nonfinite-attribute", A20),
]

_METADATA: list[Damaged] = [
    one("v3 without shape", v3(shape=None), "missing-member", A3),
    one("v3 without fill value", v3(fill_value=None), "missing-member", A3),
    one("v3 with another format", v3(zarr_format=4), "wrong-zarr-format", A3),
    one("v3 with an unknown member", v3(checksum="abc"), "unknown-member", A3),
    one("v3 fill value out of range", v3(fill_value=2**40), "invalid-fill-value", A3),
    one("v3 negative shape", v3(shape=[-4, 4]), "invalid-metadata", A3),
    one("v3 names for another number of dimensions", v3(dimension_names=["x"]), "invalid-metadata", A3),
    one("v3 codecs in the wrong order", v3(codecs=[BYTES, BYTES]), "unusable-codecs", A3),
    one("v3 gzip of level 11", v3(codecs=[BYTES, {"name": "gzip", "configuration": {"level": 11}}]),
        "unusable-codecs", A3),
    one("v3 group with an unknown member", {**v3(), "zarr.json": text({**V3_GROUP, "x": 1})}, "unknown-member",
        "zarr.json", ""),
    one("v2 without chunks", v2(chunks=...), "missing-member", A2),
    one("v2 with another format", v2(zarr_format=3), "wrong-zarr-format", A2),
    one("v2 with another order", v2(order="Z"), "invalid-metadata", A2),
    one("v2 chunks of another number of dimensions", v2(chunks=[2]), "invalid-metadata", A2),
    one("v2 names for another number of dimensions", {**v2(), "a/.zattrs": b'{"_ARRAY_DIMENSIONS": ["x"]}'},
        "array-dimensions", "a/.zattrs"),
    one("v3 mask out of range", v3(attributes={"_FillValue": 2**70}, dimension_names=["y", "x"]),
        "mask-of-another-type", A3),
    one("v3 mask of a float as a number",
        v3(data_type="float32", attributes={"_FillValue": -9.5}, dimension_names=["y", "x"]), "mask-unreadable", A3),
    one("v3 coordinate of another length", {**v3(dimension_names=["y", "x"]), "x/zarr.json": text({**V3_ARRAY,
        "shape": [3], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "dimension_names": ["x"]})}, "coordinate-length", A3),
    one("v3 without a readable reference system", v3(attributes={"_CRS": {"epsg": 4326}}), "crs-unreadable", A3),
    one("anndata without categories", {**v3(), "zarr.json": text({**V3_GROUP, "attributes": {
        "encoding-type": "categorical", "encoding-version": "0.2.0"}}), "codes/zarr.json": text(V3_ARRAY)},
        "anndata-missing-node", "zarr.json", ""),
    one("ome 0.4 in v3", {**v3(dimension_names=["y", "x"]), "zarr.json": text({**V3_GROUP, "attributes": {
        "multiscales": [{**image(), "version": "0.4"}]}})}, "ome-wrong-form", "zarr.json", ""),
    one("ome 0.4 and 0.5", {**v3(dimension_names=["y", "x"]), "zarr.json": text({**V3_GROUP, "attributes": {
        "multiscales": [{**image(), "version": "0.4"}], "ome": {"version": "0.5", "multiscales": [image()]}}})},
        "ome-both-forms", "zarr.json", ""),
    one("ome without version", ome(version=None), "ome-version", "zarr.json", ""),
    one("ome of a later version", ome(version="0.9"), "ome-unknown-version", "zarr.json", ""),
    one("ome omero without channels", ome(omero={}), "ome-invalid", "zarr.json", ""),
    one("ome axes of one name", ome(names=["x", "x"], multiscales=[image(axes=[{"name": "x", "type": "space"}] * 2)]),
        "ome-axes", "zarr.json", ""),
    one("ome with an axis too many", ome(multiscales=[image(axes=[{"name": name, "type": "space"} for name in "zyx"],
        scale=[1, 1, 1])]), "ome-axes-count", "zarr.json", ""),
    one("ome with a scale too short", ome(multiscales=[image(scale=[1])]), "ome-transformations", "zarr.json", ""),
    one("ome level that is missing", ome(multiscales=[image("a", "b")]), "ome-missing-level", "zarr.json", ""),
    one("ome label that is missing", {**ome(), "labels/zarr.json": text({**V3_GROUP, "attributes": {
        "ome": {"version": "0.5", "labels": ["cells"]}}})}, "ome-missing-group", "labels/zarr.json", "labels"),
    one("ome levels from small to large", {**ome(multiscales=[image("b", "a")]), "b/zarr.json": text({**V3_ARRAY,
        "shape": [2, 2], "dimension_names": ["y", "x"]})}, "ome-level-order", "zarr.json", ""),
    one("ome level without names", ome(names=None), "ome-dimension-names", A3),
    one("ome 0.4 with flat chunks", {**v2(), ".zattrs": text({"multiscales": [{**image(), "version": "0.4"}]})},
        "ome-separator", A2),
    one("ome label of floats", ome("float32", **{"image-label": {}}), "ome-label-type", A3),
    one("2020 names that are not strings", d2020(attributes={"_ARRAY_DIMENSIONS": [1, 2]}), "array-dimensions", A20),
    one("v2 fill value of another type", v2(fill_value="seven"), "invalid-fill-value", A2),
    one("v2 with an unknown member", v2(extra=1), "extra-member", A2),
    one("v2 group with an unknown member", {**v2(), ".zgroup": text({"zarr_format": 2, "x": 1})}, "extra-member",
        ".zgroup", ""),
    one("v1 without order", v1(order=...), "missing-member", A1),
    one("v1 with another format", v1(zarr_format=7), "wrong-zarr-format", A1),
    one("v0 without cname", v0(cname=...), "missing-member", A0),
    one("2019 without codecs", d2019(chunk_codecs=...), "missing-member", A19),
    one("2019 with a negative chunk length", d2019(chunk_grid={"type": "regular", "chunk_shape": [-2, 2]}),
        "invalid-metadata", A19),
    one("2020 without memory layout", d2020(chunk_memory_layout=...), "missing-member", A20),
    one("2020 with a fill value of too few digits", d2020(fill_value="0xff"), "invalid-fill-value", A20),
    one("2020 entry point with another encoding", {**d2020(), "zarr.json": text({**ENTRY_2020,
        "metadata_encoding": "application/cbor"})}, "invalid-metadata", "zarr.json", ""),
]  # fmt: skip

_LETTER: list[Damaged] = [
    one("v3 fill value 7.0 of integers", v3(fill_value=7.0), "integer-with-fraction", A3),
    one("v2 fill value 7.0 of integers", v2(fill_value=7.0), "integer-with-fraction", A2),
    one("2019 fill value 7.0 of integers", d2019(fill_value=7.0), "integer-with-fraction", A19),
    one("2020 fill value 7.0 of integers", d2020(fill_value=7.0), "integer-with-fraction", A20),
    one("v3 gzip of level 1.0", coded(BYTES, {"name": "gzip", "configuration": {"level": 1.0}},
        first=gzip.compress(CHUNK)), "integer-with-fraction", A3),
    one("v3 fill value +Infinity", v3(data_type="float32", fill_value="+Infinity"), "infinity-spelling", A3),
    one("v2 fill value +Infinity", v2(dtype="<f4", fill_value="+Infinity"), "infinity-spelling", A2),
    one("v3 fill value of raw bits in base64", v3(data_type="r32", fill_value="AAAAAA=="), "raw-bits-as-text", A3),
    one("v2 fill value 0 of bytes", v2(dtype="|S4", fill_value=0), "loose-fill-value", A2),
    one("v2 fill value 0 of records", v2(dtype=[["a", "<i4"]], fill_value=0), "loose-fill-value", A2),
    one("2020 fill value 0 of booleans", d2020(b"\0\1\0\1", data_type="bool", fill_value=0), "loose-fill-value", A20),
    one("v3 fill value of records in base64", v3(data_type=STRUCT, fill_value="AAAAAA=="), "legacy-struct", A3),
    one("v3 gzip without level", coded(BYTES, {"name": "gzip"}, first=gzip.compress(CHUNK)), "missing-parameter", A3),
    one("v3 blosc without typesize", coded(BYTES, {"name": "blosc", "configuration": NO_TYPESIZE},
        first=numcodecs.Blosc("lz4", 5, 1).encode(CHUNK)), "missing-parameter", A3),
    one("v2 gzip without level", v2(gzip.compress(CHUNK), compressor={"id": "gzip"}), "missing-parameter", A2),
    one("v3 blosc of typesize 0", coded(BYTES, {"name": "blosc", "configuration": {**BLOSC3, "typesize": 0}},
        first=numcodecs.Blosc("lz4", 5, 1).encode(CHUNK)), "invalid-typesize", A3),
    one("v3 blosc with shuffle 1", coded(BYTES, {"name": "blosc", "configuration": {**BLOSC3, "shuffle": 1}},
        first=numcodecs.Blosc("lz4", 5, 1).encode(CHUNK)), "shuffle-of-other-format", A3),
    one("v2 blosc with shuffle as a word", v2(numcodecs.Blosc("lz4", 5, 1).encode(CHUNK),
        compressor={**BLOSC, "shuffle": "shuffle"}), "shuffle-of-other-format", A2),
    one("v2 durations without a unit", v2(bytes(32), dtype="<m8", fill_value=0), "time-without-unit", A2),
    one("v3 codec by its bare name", coded(BYTES, "crc32c", first=crc(CHUNK)), "short-name", A3),
]  # fmt: skip

_EXTENSIONS: list[Damaged] = [
    one("v3 unknown codec", v3(codecs=[BYTES, {"name": "zzip"}]), "unknown-extension", A3),
    one("v3 unknown codec in a shard", sharded(FOUR + index(*PLACES), inner=[BYTES, {"name": "zzip"}]),
        "unknown-extension", A3),
    one("v3 unknown data type", v3(data_type="int33"), "unknown-extension", A3),
    one("v3 unknown grid", v3(chunk_grid={"name": "hexagonal"}), "unknown-extension", A3),
    one("v3 unknown key encoding", v3(chunk_key_encoding={"name": "spiral"}), "unknown-extension", A3),
    one("v3 unknown storage transformer", v3(storage_transformers=[{"name": "braid"}]), "unknown-extension", A3),
    one("v3 codec that may be ignored", v3(codecs=[BYTES, {"name": "zzip", "must_understand": False}]),
        "optional-extension", A3),
    one("v3 codec that is not registered", coded(BYTES, {"name": "numcodecs.zlib", "configuration": {"level": 1}},
        first=zlib.compress(CHUNK)), "unregistered-extension", A3),
    one("v3 inner chunks that do not divide the shard", uneven(), "uneven-inner-chunks", A3),
    one("v3 codec of a private name", v3(codecs=[BYTES, {"name": "omnizarr.bytes_filter"}]), "private-extension", A3),
    one("v3 alias of a data type", v3(bytes(32), data_type="complex_float32", fill_value=[0, 0]), "extension-alias",
        A3),
    one("v2 unknown compressor", v2(compressor={"id": "zzip"}), "unknown-extension", A2),
    one("v2 unknown filter", v2(filters=[{"id": "wavelet"}]), "unknown-extension", A2),
    one("v2 unknown dtype", v2(dtype="<i5"), "unknown-extension", A2),
    one("v2 pickled objects", v2(b"", dtype="|O", filters=[{"id": "pickle", "protocol": 2}], fill_value=0),
        "pickled-objects", A2),
    one("2019 unknown codec", d2019(chunk_codecs=[{"codec": "http://example.com/zzip"}]), "unknown-extension", A19),
    one("2020 unknown codec", d2020(compressor={"codec": "http://example.com/zzip"}), "unknown-extension", A20),
]  # fmt: skip


def _mixed() -> Files:
    """Return a v2 array in a v3 group."""
    return {"zarr.json": text(V3_GROUP), A2: text(V2_ARRAY), **chunks("a/{}.{}")}


def _both(**changes: Any) -> Files:
    """Return an array with the documents of two formats over the same chunks."""
    files = v3(chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}})
    return {
        "zarr.json": files["zarr.json"],
        A3: files[A3],
        ".zgroup": text({"zarr_format": 2}),
        A2: text({**V2_ARRAY, **changes}),
        **chunks("a/{}.{}"),
    }


def _below(files: Files, group: str, array: str, source: str) -> Files:
    """Return `files` with an array in a group `g` that has no document."""
    moved = {
        key.replace("a/", f"{group}/a/", 1) if key.startswith(source) else key: data for key, data in files.items()
    }
    assert array in moved
    return moved


_HIERARCHY: list[Damaged] = [
    one("v2 array and group at one node", {**v2(), "a/.zgroup": text({"zarr_format": 2})}, "array-and-group", A2),
    one("two formats side by side", _both(), "two-formats", A2),
    Damaged("two groups of two formats", _both(), [("two-formats", "", ".zgroup"), ("two-formats", "a", A2)]),
    one("two formats that disagree", _both(shape=[4, 3]), "formats-disagree", A2),
    one("v2 array in a v3 group", _mixed(), "mixed-formats", A2),
    one("v2 group without document", _below(v2(), "g", "g/a/.zarray", "a/"), "missing-group", "g/.zgroup", "g"),
    one("v3 group without document", _below(v3(), "g", "g/a/zarr.json", "a/"), "missing-group", "g/zarr.json", "g"),
    one("v2 root without document", {**v2(), ".zgroup": None}, "missing-root", ".zgroup", ""),
    one("v3 root without document", {**v3(), "zarr.json": None}, "missing-root", "zarr.json", ""),
    Damaged("v2 array that has lost its document", {**v2(), A2: None, "a/.zattrs": b"{}"},
            [("attributes-without-node", "a", "a/.zattrs"), ("orphan-chunks", "a", "a/0.0")]),
    one("v3 array that has lost its document", {**v3(), A3: None}, "orphan-chunks", "a/c/0/0"),
    one("v1 array without attributes", {**v1(), "a/attrs": None}, "attributes-missing", A1),
    one("v3 node below an array", {**v3(), "a/b/zarr.json": text(V3_GROUP)}, "node-below-array", "a/b/zarr.json",
        "a/b"),
    one("v2 node below an array", {**v2(), "a/b/.zgroup": text({"zarr_format": 2})}, "node-below-array",
        "a/b/.zgroup", "a/b"),
    one("2020 array and group at one node", {**d2020(), "meta/root/a.group.json": text({"attributes": {}})},
        "array-and-group", A20),
    one("2020 node below an array", {**d2020(), "meta/root/a/b.group.json": text({"attributes": {}})},
        "node-below-array", "meta/root/a/b.group.json", "a/b"),
    Damaged("2020 hierarchy without entry point", {**d2020(), "zarr.json": None},
            [("lost-entry-point", "", "meta/root.group.json"), ("lost-entry-point", "", A20),
             ("orphan-chunks", "data/root/a", "data/root/a/c0/0")]),
    Damaged("2019 hierarchy without entry point", {**d2019(), "zarr.json": None},
            [("lost-entry-point", "", "meta/root.group"), ("lost-entry-point", "", A19),
             ("orphan-chunks", "data/a", "data/a/0.0")]),
    one("2020 chunks without an array", {**d2020(), "data/root/b/c0/0": CHUNK}, "orphan-chunks", "data/root/b/c0/0",
        "b"),
]  # fmt: skip


def _named(files: Files, name: str) -> Files:
    return {(name + key[1:] if key.startswith("a/") else key.replace("root/a", f"root/{name}")): data
            for key, data in files.items()}  # fmt: skip


_NAMES: list[Damaged] = [
    one("v3 name that is reserved", _named(v3(), "__a"), "reserved-node-name", "__a/zarr.json", "__a"),
    one("v3 name with a backslash", {**v3(), **_named(v3(), "b\\c")}, "unreachable-node", None, "b\\c"),
    one("2020 name with a backslash", {**d2020(), **_named(d2020(), "b\\c")}, "unreachable-node", None, "b\\c"),
    one("v3 name of periods", _named(v3(), "..."), "invalid-node-name", ".../zarr.json", "..."),
    one("2020 name with a space", _named(d2020(), "a b"), "invalid-node-name", "meta/root/a b.array.json", "a b"),
    one("v3 names that differ by case", {**v3(), **_named(v3(), "A")}, "names-differ-by-case", None, ""),
    one("v2 names that differ by case", {**v2(), **_named(v2(), "A")}, "names-differ-by-case", None, ""),
    one("2019 names that differ by case", {**d2019(), "meta/root/A.array": d2019()[A19], **chunks("data/A/{}.{}")},
        "names-differ-by-case", None, ""),
    one("v3 name that is not normalised", _named(v3(), "e\u0301"), "name-not-normalized", "e\u0301/zarr.json",
        "e\u0301"),
    Damaged("v3 names that look similar", {**_named(v3(), "e\u0301"), **_named(v3(), "\u00e9")},
            [("names-look-alike", "", None), ("name-not-normalized", "e\u0301", "e\u0301/zarr.json")]),
]  # fmt: skip

OTHER = {**V3_ARRAY, "shape": [8, 4]}
_COPIES: list[Damaged] = [
    one("v3 copy of an array that has grown", {**v3(), "zarr.json": inlined({"a": OTHER})},
        "stale-consolidated-metadata", "zarr.json", ""),
    one("v3 copy of an array that is gone", {**v3(), "zarr.json": inlined({"a": V3_ARRAY, "b": V3_ARRAY})},
        "stale-consolidated-metadata", "zarr.json", ""),
    one("v3 no copy of a new array", {**v3(), **_named(v3(), "b"), "zarr.json": inlined({"a": V3_ARRAY})},
        "stale-consolidated-metadata", "zarr.json", ""),
    one("v3 copies of an unknown kind", {**v3(), "zarr.json": inlined({}, kind="external")},
        "unknown-consolidated-metadata", "zarr.json", ""),
    one("v3 copies that are a list", {**v3(), "zarr.json": inlined([])},
        "broken-consolidated-metadata", "zarr.json", ""),
    one("v2 copy of an array that has grown", {**v2(), ".zmetadata": zmetadata({A2: {**V2_ARRAY, "shape": [8, 4]}})},
        "stale-consolidated-metadata", ".zmetadata", ""),
    one("v2 copy of an array that is gone", {**v2(), ".zmetadata": zmetadata({A2: V2_ARRAY, "b/.zarray": V2_ARRAY})},
        "stale-consolidated-metadata", ".zmetadata", ""),
    one("v2 no copy of a new array", {**v2(), ".zmetadata": zmetadata({})}, "stale-consolidated-metadata",
        ".zmetadata", ""),
    one("v2 copy of other attributes", {**v2(), ".zattrs": b'{"x": 1}', ".zmetadata": zmetadata({A2: V2_ARRAY,
        ".zattrs": {"x": 2}})}, "stale-consolidated-metadata", ".zmetadata", ""),
    one("v2 copies cut off", {**v2(), ".zmetadata": zmetadata({A2: V2_ARRAY})[:-9]}, "not-json", ".zmetadata", ""),
    one("v2 copies of an unknown format", {**v2(), ".zmetadata": zmetadata({A2: V2_ARRAY}, 2)},
        "unknown-consolidated-metadata", ".zmetadata", ""),
    one("v2 copies without metadata", {**v2(), ".zmetadata": text({"zarr_consolidated_format": 1})},
        "broken-consolidated-metadata", ".zmetadata", ""),
    Damaged("v2 nothing but copies", {**v2(), ".zgroup": None, A2: None, ".zmetadata": zmetadata({A2: V2_ARRAY})},
            [("only-consolidated", "", ".zmetadata"), ("only-consolidated", "a", ".zmetadata")]),
    one("v3 nothing but a copy of an array", {**v3(), A3: None, "zarr.json": inlined({"a": V3_ARRAY})},
        "only-consolidated", "zarr.json"),
    one("2022 array whose document is cut off", {"zarr.json": text({"zarr_format": "https://purl.org/zarr/spec/core/3.0",
        "metadata_encoding": {"type": "json", "metadata_key_suffix": ".json"}, "extensions": []}),
        "meta/array.json": b"{"}, "not-json", "meta/array.json", ""),
    one("2020 copy of an array that is gone", {**d2020(), "meta/root/consolidated/.zmetadata": text(
        {"zarr_consolidated_format": 1, "metadata": {"meta/root.group.json": {"attributes": {}}, A20: D2020_ARRAY,
         "meta/root/b.array.json": D2020_ARRAY}})}, "stale-consolidated-metadata",
        "meta/root/consolidated/.zmetadata", ""),
]  # fmt: skip

HEX = "0123456789abcdef" * 2
_KEYS: list[Damaged] = [
    one("v3 chunk beyond the shape", {**v3(), "a/c/2/0": CHUNK}, "chunk-beyond-grid", "a/c/2/0"),
    one("v2 chunk beyond the shape", {**v2(), "a/0.9": CHUNK}, "chunk-beyond-grid", "a/0.9"),
    one("v1 chunk beyond the shape", {**v1(), "a/2.2": CHUNK}, "chunk-beyond-grid", "a/2.2"),
    one("v0 chunk beyond the shape", {**v0(), "a/__zdata__/2.2.blosc": CHUNK}, "chunk-beyond-grid",
        "a/__zdata__/2.2.blosc"),
    one("2019 chunk beyond the shape", {**d2019(), "data/a/2.2": CHUNK}, "chunk-beyond-grid", "data/a/2.2"),
    one("2020 chunk beyond the shape", {**d2020(), "data/root/a/c2/0": CHUNK}, "chunk-beyond-grid", "data/root/a/c2/0"),
    one("v3 chunk key with a zero too many", {**v3(), "a/c/01/0": CHUNK}, "misspelt-chunk-key", "a/c/01/0"),
    one("v2 chunk key with a zero too many", {**v2(), "a/1.01": CHUNK}, "misspelt-chunk-key", "a/1.01"),
    one("v3 chunk key with the other separator", {**v3(), "a/c.0.0": CHUNK}, "foreign-chunk-key", "a/c.0.0"),
    one("v3 chunk key of v2", {**v3(), "a/0.0": CHUNK}, "foreign-chunk-key", "a/0.0"),
    one("v3 chunk key of the draft", {**v3(), "a/c0/0": CHUNK}, "foreign-chunk-key", "a/c0/0"),
    one("v2 chunk key with the other separator", {**v2(), "a/0/1": CHUNK}, "foreign-chunk-key", "a/0/1"),
    one("v2 chunk key of v3", {**v2(), "a/c/0/0": CHUNK}, "foreign-chunk-key", "a/c/0/0"),
    one("v2 chunk key of another number of dimensions", {**v2(), "a/0.0.0": CHUNK}, "foreign-chunk-key", "a/0.0.0"),
    one("2020 chunk key of v3", {**d2020(), "data/root/a/c/0/0": CHUNK}, "foreign-chunk-key", "data/root/a/c/0/0"),
    one("v3 scalar with a key of v2", {**v3(shape=[], chunk_grid={"name": "regular", "configuration":
        {"chunk_shape": []}}), **chunks("a/c/{}/{}", None), "a/0": CHUNK[:4]}, "foreign-chunk-key", "a/0"),
    one("v3 something else in an array", {**v3(), "a/notes.txt": b"x"}, "stray-key", "a/notes.txt"),
    one("v2 something else in an array", {**v2(), "a/notes/x.txt": b"x"}, "stray-key", "a/notes/x.txt"),
    one("v3 unfinished conversion", {**v3(), "omnizarr-conversion.json": b"{}"}, "unfinished-conversion",
        "omnizarr-conversion.json", ""),
    one("v3 unfinished conversion of an array", {**v3(), "a/omnizarr-conversion.json": b"{}"}, "unfinished-conversion",
        "a/omnizarr-conversion.json"),
    one("v3 something else in a group", {**v3(), "README.md": b"x"}, "foreign-file", "README.md", ""),
    one("v3 file of macOS", {**v3(), "a/.DS_Store": b"x"}, "system-file", "a/.DS_Store"),
    one("v2 file of Windows", {**v2(), "Thumbs.db": b"x"}, "system-file", "Thumbs.db", ""),
    one("v3 file of NFS", {**v3(), "a/c/0/.nfs000000000abc": b"x"}, "system-file", "a/c/0/.nfs000000000abc"),
    one("v3 temporary file of zarr-python 3", {**v3(), f"a/c/0/0.{HEX}.partial": b"x"}, "temporary-file",
        f"a/c/0/0.{HEX}.partial"),
    one("v2 temporary file of zarr-python 2", {**v2(), f"a/0.0.{HEX}.partial": b"x"}, "temporary-file",
        f"a/0.0.{HEX}.partial"),
    one("v1 temporary file of zarr 1", {**v1(), "a/0.0.abcd_123.partial": b"x"}, "temporary-file",
        "a/0.0.abcd_123.partial"),
    one("v3 lock of TensorStore", {**v3(), "a/c/0/0.__lock": b"x"}, "temporary-file", "a/c/0/0.__lock"),
    one("v0 lock of zarr 0.4", {**v0(), "a/__zattr__.lock": b""}, "lock-file", "a/__zattr__.lock"),
    one("temporary file of omnizarr", {**v3(), "a/c/0/.omnizarr-0123456789abcdef.tmp": b"x"}, "temporary-file",
        "a/c/0/.omnizarr-0123456789abcdef.tmp"),
    one("lock of omnizarr", {**v3(), "a/.omnizarr-zarr.json.lock": b""}, "lock-file", "a/.omnizarr-zarr.json.lock"),
    one("v2 chunks nested without saying so", {".zgroup": text({"zarr_format": 2}), A2: text(V2_ARRAY),
        **chunks("a/{}/{}")}, "undeclared-separator", A2),
    one("2020 scalar under c0", {**d2020(shape=[], chunk_grid={"type": "regular", "chunk_shape": [],
        "separator": "/"}), **chunks("data/root/a/c{}/{}", None), "data/root/a/c0": CHUNK[:4]},
        "draft-scalar-key", A20),
]  # fmt: skip

# Blosc around one stream: a frame of Zstandard 0.7 with one block, stored unchanged.
FRAME_07 = b"\x27\xb5\x2f\xfd\x20\x10\x40\x00\x10" + CHUNK + b"\xc0\x00\x00"
LEGACY = b"\x02\x01\x90\x04" + struct.pack("<IIIII", 16, 16, 24 + len(FRAME_07), 20, len(FRAME_07)) + FRAME_07

_CHUNKS: list[Damaged] = [
    one("v3 missing chunk", {**v3(), "a/c/1/1": None}, "missing-chunks", A3),
    one("v2 missing chunk of an undefined fill value", {**v2(fill_value=None), "a/1.1": None}, "undefined-chunks", A2),
    one("2020 missing chunk of an undefined fill value", {**d2020(fill_value=None), "data/root/a/c1/1": None},
        "undefined-chunks", A20),
    one("v3 empty chunk", {**v3(), "a/c/0/0": b""}, "empty-chunk", "a/c/0/0"),
    one("v3 empty compressed chunk", coded(BYTES, GZIP, first=b"", rest=gzip.compress(CHUNK)), "empty-chunk",
        "a/c/0/0"),
    one("v3 truncated chunk", {**v3(), "a/c/0/0": CHUNK[:-1]}, "wrong-chunk-size", "a/c/0/0"),
    one("v3 chunk that is too long", {**v3(), "a/c/0/0": CHUNK + b"x"}, "wrong-chunk-size", "a/c/0/0"),
    one("v2 truncated chunk", {**v2(), "a/0.0": CHUNK[:-1]}, "wrong-chunk-size", "a/0.0"),
    one("v1 truncated chunk", {**v1(), "a/0.0": CHUNK[:-1]}, "wrong-chunk-size", "a/0.0"),
    one("2019 truncated chunk", {**d2019(), "data/a/0.0": CHUNK[:-1]}, "wrong-chunk-size", "data/a/0.0"),
    one("2020 truncated chunk", {**d2020(), "data/root/a/c0/0": CHUNK[:-1]}, "wrong-chunk-size", "data/root/a/c0/0"),
    one("v3 truncated gzip", coded(BYTES, GZIP, first=gzip.compress(CHUNK)[:-9], rest=gzip.compress(CHUNK)),
        "undecodable-chunk", "a/c/0/0", data=True),
    one("v3 no gzip at all", coded(BYTES, GZIP, first=b"not gzip", rest=gzip.compress(CHUNK)), "undecodable-chunk",
        "a/c/0/0", data=True),
    one("v3 gzip of too little", coded(BYTES, GZIP, first=gzip.compress(CHUNK[:8]), rest=gzip.compress(CHUNK)),
        "wrong-chunk-size", "a/c/0/0", data=True),
    one("v3 bytes after gzip", coded(BYTES, GZIP, first=gzip.compress(CHUNK) + b"xyz", rest=gzip.compress(CHUNK)),
        "undecodable-chunk", "a/c/0/0", data=True),
    one("v3 wrong checksum", coded(BYTES, CRC, first=CHUNK + bytes(4), rest=crc(CHUNK)), "checksum-mismatch",
        "a/c/0/0", data=True),
    one("v3 torn checksum", coded(BYTES, CRC, first=crc(CHUNK)[:-2], rest=crc(CHUNK)), "wrong-chunk-size", "a/c/0/0"),
    one("v2 truncated blosc", {**v2(numcodecs.Blosc().encode(CHUNK), compressor=BLOSC),
        "a/0.0": numcodecs.Blosc().encode(CHUNK)[:-2]}, "wrong-chunk-size", "a/0.0", data=True),
    one("v2 bytes after blosc", {**v2(numcodecs.Blosc().encode(CHUNK), compressor=BLOSC),
        "a/0.0": numcodecs.Blosc().encode(CHUNK) + b"xy"}, "trailing-bytes", "a/0.0", data=True),
    one("v2 bytes after zlib", {**v2(zlib.compress(CHUNK), compressor=ZLIB), "a/0.0": zlib.compress(CHUNK) + b"xy"},
        "trailing-bytes", "a/0.0", data=True),
    one("v2 bytes after bzip2", {**v2(bz2.compress(CHUNK), compressor={"id": "bz2", "level": 1}),
        "a/0.0": bz2.compress(CHUNK) + b"xy"}, "trailing-bytes", "a/0.0", data=True),
    one("v2 zlib with a wrong checksum", {**v2(zlib.compress(CHUNK), compressor=ZLIB),
        "a/0.0": zlib.compress(CHUNK)[:-1] + b"\xff"}, "checksum-mismatch", "a/0.0", data=True),
    one("v2 text that is not UTF-8", {**v2(STRINGS, dtype="|O", filters=[{"id": "vlen-utf8"}], fill_value=""),
        "a/0.0": STRINGS[:-1] + b"\xff"}, "undecodable-chunk", "a/0.0", data=True),
    one("v1 chunk that is not Blosc", {**v1(numcodecs.Blosc().encode(CHUNK), compression="blosc", compression_opts={
        "cname": "lz4", "clevel": 5, "shuffle": 1}), "a/0.0": b"\xff" * 40}, "undecodable-chunk", "a/0.0", data=True),
    one("v1 chunk with Zstandard of 2016", {**v1(numcodecs.Blosc().encode(CHUNK), compression="blosc",
        compression_opts={"cname": "zstd", "clevel": 5, "shuffle": 1}), "a/0.0": LEGACY}, "legacy-zstd", "a/0.0",
        data=True),
    one("v0 truncated chunk", {**v0(), "a/__zdata__/0.0.blosc": numcodecs.Blosc("lz4", 1).encode(CHUNK)[:-1]},
        "wrong-chunk-size", "a/__zdata__/0.0.blosc", data=True),
    one("2020 chunk that is not gzip", {**d2020(gzip.compress(CHUNK), compressor={
        "codec": "https://purl.org/zarr/spec/codec/gzip/1.0", "configuration": {"level": 1}}),
        "data/root/a/c0/0": b"xx"}, "undecodable-chunk", "data/root/a/c0/0", data=True),
    one("shard shorter than its index", sharded(b"x" * 10), "shard-index-broken", "a/c/0/0", data=True),
    one("shard whose tail is torn", sharded(crc(FOUR + crc(index(*PLACES)))[:-20], index_codecs=[BYTES, CRC]),
        "shard-index-broken", "a/c/0/0", data=True),
    one("shard whose tail was added and is torn", sharded(
        FOUR + crc(index(*PLACES)) + FOUR + crc(index((0, 16), (136, 16), *PLACES[2:]))[:-30],
        index_codecs=[BYTES, CRC]),
        "shard-tail-torn", "a/c/0/0", data=True),
    one("shard index with a wrong checksum", sharded(FOUR + index(*PLACES) + bytes(4), index_codecs=[BYTES, CRC]),
        "shard-index-broken", "a/c/0/0", data=True),
    one("shard index that points outside", sharded(FOUR + index(*PLACES[:3], (1000, 16))), "shard-index-outside",
        "a/c/0/0", data=True),
    one("shard index that overflows", sharded(FOUR + index(*PLACES[:3], (2**64 - 8, 16))), "shard-index-outside",
        "a/c/0/0", data=True),
    one("shard index that is half missing", sharded(FOUR + index(*PLACES[:3], (MISSING, 16))), "shard-index-outside",
        "a/c/0/0", data=True),
    one("inner chunks that overlap", sharded(FOUR + index(*PLACES[:3], (40, 16))), "shard-overlap", "a/c/0/0",
        data=True),
    one("inner chunk of a wrong size", sharded(FOUR + index(*PLACES[:3], (48, 15))), "wrong-chunk-size", "a/c/0/0",
        data=True),
    one("inner chunk that cannot be decoded", sharded(FOUR + index((0, 16)) + index((MISSING, MISSING)) * 3,
        inner=[BYTES, GZIP]), "undecodable-chunk", "a/c/0/0", data=True),
    one("inner chunk without bytes", sharded(FOUR + index(*PLACES[:3], (0, 0))), "empty-chunk", "a/c/0/0", data=True),
]  # fmt: skip

ENDIAN = {"name": "endian", "configuration": {"endian": "little"}}
LETTER = {"name": "transpose", "configuration": {"order": "F"}}
SHARD = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [BYTES]}}
_WRITERS: list[Damaged] = [
    one("v2 without filters", v2(filters=...), "missing-filters", A2),
    one("v2 with an empty list of filters", v2(filters=[]), "empty-filters", A2),
    one("v2 with null for a separator", v2(dimension_separator=None), "null-separator", A2),
    one("v2 with numbers as strings", v2(zlib.compress(CHUNK), compressor={"id": "zlib", "level": "1"}),
        "numbers-as-strings", A2),
    Damaged("v2 as netCDF-C wrote it", v2(filters=[{"id": "shuffle", "elementsize": "0"}]),
            [("numbers-as-strings", "a", A2), ("zero-elementsize", "a", A2)]),
    one("v2 with shuffle as a word", v2(numcodecs.Blosc().encode(CHUNK), compressor={**BLOSC, "shuffle": "BYTE"}),
        "shuffle-word", A2),
    one("v2 fill value as a string", v2(CHUNK + CHUNK, dtype="<u8", fill_value="18446744073709551615"),
        "fill-value-as-string", A2),
    one("v3 codecs without one that makes bytes", coded(GZIP, first=gzip.compress(CHUNK)), "missing-serializer", A3),
    one("v2 with shuffle of size 0", v2(filters=[{"id": "shuffle", "elementsize": 0}]), "zero-elementsize", A2),
    one("v2 big-endian by netCDF-C 4.9.2", {**v2(dtype=">i4"), ".zattrs": text({"_NCProperties":
        "version=2,netcdf=4.9.2,nczarr=2.0.0"})}, "netcdf-byte-order", A2),
    one("NCZarr with a dimension that is nowhere", {**v2(), ".zattrs": text({"_nczarr_superblock": {"version": "2.0.0"},
        "_nczarr_group": {"dimensions": {}, "arrays": ["a"], "groups": []}}), "a/.zattrs": text({"_nczarr_array":
        {"dimension_references": ["/nowhere"], "storage": "chunked"}})}, "nczarr-repaired", A2),
    one("double by netCDF-C without a fill value of its own", {**v2(bytes(4 * 8), dtype="<f8", fill_value=9.96921e36),
        ".zattrs": text({"_NCProperties": "version=2,netcdf=4.10.1,nczarr=2.0.0"})}, "netcdf-short-fill", A2),
    one("v2 with members of NCZarr", v2(_NCZARR_ARRAY={"dimrefs": ["/x"]}), "nczarr-members", A2),
    one("v2 bytes with a byte order", v2(bytes(4), dtype="<u1"), "byte-order-of-bytes", A2),
    one("v2 type without a byte order", v2(bytes(4), dtype="u1"), "missing-byte-order", A2),
    one("v2 type by its name", v2(bytes(8), dtype="bfloat16", fill_value=0), "bare-type-name", A2),
    one("v2 fixed width with vlen-utf8", v2(STRINGS, dtype="<U3", filters=[{"id": "vlen-utf8"}], fill_value=""),
        "fixed-width-strings", A2),
    one("v2 objects without a codec", v2(dtype="|O", fill_value=0), "objects-without-codec", A2),
    one("v2 chunk length 0", v2(shape=[0, 4], chunks=[0, 2]) | chunks("a/{}.{}", None), "zero-chunk-length", A2),
    one("v3 fill value is null", {**v3(), A3: text({**V3_ARRAY, "fill_value": None})}, "null-fill-value", A3),
    one("v3 fill value is an empty string", v3(fill_value=""), "empty-fill-value", A3),
    one("v3 names are null", {**v3(), A3: text({**V3_ARRAY, "dimension_names": None})}, "null-member", A3),
    one("v3 with codec endian", v3(codecs=[ENDIAN]), "endian-codec", A3),
    one("v3 bytes without endian", v3(codecs=[{"name": "bytes"}]), "missing-endian", A3),
    one("v3 without a member codecs", v3(codecs=None), "missing-codecs", A3),
    one("v3 with the id of a codec", coded(BYTES, {"name": "numcodecs.zlib", "configuration": {"id": "zlib", "level":
        1}}, first=zlib.compress(CHUNK)), "codec-id", A3),
    one("v3 with the id of another codec", v3(codecs=[BYTES, {"name": "numcodecs.zlib", "configuration": {"id":
        "bz2"}}]), "invalid-metadata", A3),
    one("v3 with shuffle of no size", v3(codecs=[BYTES, "shuffle"]), "missing-elementsize", A3),
    one("v2 with shuffle of no size", v2(dtype="<i8", data=CHUNK + CHUNK, filters=[{"id": "shuffle"}]),
        "missing-elementsize", A2),
    one("v3 fill value as a string", v3(fill_value="7"), "fill-value-kind", A3),
    one("v3 without codecs", v3(codecs=[]), "empty-codecs", A3),
    one("v3 transpose with a letter", v3(codecs=[LETTER, BYTES]), "transpose-letter", A3),
    one("v3 shard without index codecs", {**sharded(FOUR + crc(index(*PLACES))), A3: text({**V3_ARRAY,
        "codecs": [SHARD], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}}})},
        "missing-index-codecs", A3),
    one("v1 order F that was not stored", v1(order="F"), "order-not-stored", A1),
    one("v1 gzip that is zlib", v1(zlib.compress(CHUNK), compression="gzip", compression_opts=1), "gzip-is-zlib", A1),
    one("v1 field with a title", v1(CHUNK, dtype=[[["title", "x"], "<i4"]], fill_value=None), "titled-field", A1),
    one("2020 URI without a name", d2020(numcodecs.Zstd().encode(CHUNK), compressor={
        "codec": "https://purl.org/zarr/spec/codec/", "configuration": {"level": 1}}), "codec-uri", A20),
    one("2020 filters among the attributes", d2020(attributes={"filters": [{"id": "delta", "dtype": "<i4"}]}),
        "hidden-filters", A20),
    one("2020 attributes are null", d2020(attributes=None), "tolerated-spelling", A20),
    one("2019 member that is not defined", d2019(extra=1), "extra-member", A19),
]  # fmt: skip

STORES: list[Damaged] = [
    *(*_JSON, *_METADATA, *_LETTER, *_EXTENSIONS, *_HIERARCHY, *_NAMES, *_COPIES, *_KEYS, *_CHUNKS, *_WRITERS),
]
"""All of them."""

Build = Callable[[Damaged, Path], Path]
