"""Departures from the letter of a format: found here, refused by readers in other languages, mended without guessing.

What a departure is comes from the texts; that it matters, from zarrs, TensorStore and zarr-python, which are asked.
"""

from __future__ import annotations

import gzip
import json
import warnings

import numcodecs
import numpy as np
import pytest

import omnizarr
from omnizarr.tools.check.codes import REPAIRABLE

tensorstore = pytest.importorskip("tensorstore", reason="TensorStore says what it refuses")
zarrista = pytest.importorskip("zarrista", reason="zarrs says what it refuses")
zarr = pytest.importorskip("zarr", reason="zarr-python says what it refuses")

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CHUNK = np.arange(2, dtype="i4").tobytes()
BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
BLOSC2 = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def spelled(document, fill):
    """Return a document with a fill value that is spelled so."""
    return json.dumps({**document, "fill_value": "FILL"}).replace('"FILL"', fill).encode()


def v3(data_type="int32", fill="0", codecs=(BYTES,), chunk=None, **members):
    grid = named("regular", chunk_shape=[2])
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": data_type,
        "chunk_grid": grid,
        "chunk_key_encoding": {"name": "default"},
        "codecs": list(codecs),
        **members,
    }
    return {"zarr.json": spelled(document, fill), **({} if chunk is None else {"c/0": chunk})}


def v2(dtype="<i4", fill="0", compressor=None, filters=None, chunk=None):
    document = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [2],
        "dtype": dtype,
        "compressor": compressor,
        "filters": filters,
        "order": "C",
    }
    return {".zarray": spelled(document, fill), **({} if chunk is None else {"0": chunk})}


def without(parameters, *names, **others):
    return {**{name: value for name, value in parameters.items() if name not in names}, **others}


def blosc(*names, **others):
    chunk = numcodecs.Blosc("lz4", 5, 1, typesize=4).encode(CHUNK)
    return v3(codecs=[BYTES, named("blosc", **without(BLOSC, *names, **others))], chunk=chunk)


def gzipped(**configuration):
    return v3(codecs=[BYTES, named("gzip", **configuration)], chunk=gzip.compress(CHUNK))


def sharded(**changes):
    inner = {"chunk_shape": [1], "codecs": [BYTES], "index_codecs": [BYTES, {"name": "crc32c"}]}
    return v3(codecs=[named("sharding_indexed", **{**inner, **changes})])


SECONDS = named("numpy.datetime64", unit="s", scale_factor=1)
STRUCT = named("struct", fields=[{"name": "a", "data_type": "int32"}])

FOUND = {
    # Zarr v3, "fill_value": "a JSON number with no fraction or exponent part"
    "v3 integer 0.0": ("integer-with-fraction", v3(fill="0.0")),
    "v3 integer 1e2": ("integer-with-fraction", v3(fill="1e2")),
    "v3 integer -0.0": ("integer-with-fraction", v3(fill="-0.0")),
    "v3 integer 1e18": ("integer-with-fraction", v3("int64", "1e18")),
    "v3 integer of 4 bits": ("integer-with-fraction", v3("int4", "1.0")),
    "v3 date 0.0": ("integer-with-fraction", v3(SECONDS, "0.0")),
    "v3 record with an integer 0.0": ("integer-with-fraction", v3(STRUCT, '{"a": 0.0}')),
    "v2 integer 0.0": ("integer-with-fraction", v2(fill="0.0")),
    "v2 date 0.0": ("integer-with-fraction", v2("<M8[s]", "0.0")),
    # the same in parameters
    "v3 gzip level 1.0": ("integer-with-fraction", gzipped(level=1.0)),
    "v3 zstd level 1.0": ("integer-with-fraction", v3(codecs=[BYTES, named("zstd", level=1.0, checksum=False)])),
    "v3 blosc clevel 5.0": ("integer-with-fraction", blosc(clevel=5.0)),
    "v3 bitround keepbits 3.0": (
        "integer-with-fraction",
        v3("float32", codecs=[named("bitround", keepbits=3.0), BYTES]),
    ),
    "v2 blosc clevel 5.0": ("integer-with-fraction", v2(compressor={**BLOSC2, "clevel": 5.0})),
    # Zarr v3, "fill_value": "Infinity"
    "v3 +Infinity": ("infinity-spelling", v3("float32", '"+Infinity"')),
    "v3 complex +Infinity": ("infinity-spelling", v3("complex64", '["+Infinity", 0.0]')),
    "v2 +Infinity": ("infinity-spelling", v2("<f4", '"+Infinity"')),
    # "Raw data types": an array of integers
    "v3 raw bits in base64": ("raw-bits-as-text", v3("r16", '"AQI="')),
    "v3 raw bits 0": ("raw-bits-as-text", v3("r16", "0")),
    # zarr-extensions, "string"; Zarr v2, "Fill value encoding"
    "v3 number for a string": ("loose-fill-value", v3("string", "0", [{"name": "vlen-utf8"}])),
    "v3 number for text": ("loose-fill-value", v3(named("fixed_length_utf32", length_bytes=8), "0")),
    "v2 number for text": ("loose-fill-value", v2("<U2", "0")),
    "v2 number for bytes": ("loose-fill-value", v2("|S2", "0")),
    "v2 text for bytes": ("loose-fill-value", v2("|S2", '"ab"')),
    "v2 number for raw bytes": ("loose-fill-value", v2("|V2", "0")),
    "v2 list for raw bytes": ("loose-fill-value", v2("|V2", "[1, 2]")),
    "v2 number for a record": ("loose-fill-value", v2([["a", "<i4"]], "0")),
    "v2 number for a boolean": ("loose-fill-value", v2("|b1", "1")),
    "v2 hexadecimal digits": ("loose-fill-value", v2("<f4", '"0x3f800000"')),
    # zarr-extensions, "struct"
    "v3 record in base64": ("legacy-struct", v3(STRUCT, '"AQAAAA=="')),
    "v3 field as a pair": ("legacy-struct", v3(named("struct", fields=[["a", "int32"]]), '{"a": 1}')),
    # "Required" in the texts of codecs and types
    "v3 gzip without level": ("missing-parameter", gzipped()),
    "v3 gzip without configuration": ("missing-parameter", v3(codecs=[BYTES, {"name": "gzip"}])),
    "v3 zstd without level": ("missing-parameter", v3(codecs=[BYTES, named("zstd", checksum=False)])),
    "v3 blosc without typesize": ("missing-parameter", blosc("typesize")),
    "v3 blosc without blocksize": ("missing-parameter", blosc("blocksize")),
    "v3 blosc without clevel": ("missing-parameter", blosc("clevel")),
    "v3 blosc without shuffle": ("missing-parameter", blosc("shuffle")),
    "v3 shard of gzip without level": ("missing-parameter", sharded(codecs=[BYTES, named("gzip")])),
    "v3 date without scale": ("missing-parameter", v3(named("numpy.datetime64", unit="s"))),
    "v2 gzip without level": ("missing-parameter", v2(compressor={"id": "gzip"}, chunk=gzip.compress(CHUNK))),
    "v2 zstd without level": ("missing-parameter", v2(compressor={"id": "zstd"})),
    "v2 blosc without shuffle": ("missing-parameter", v2(compressor=without(BLOSC2, "shuffle"))),
    "v2 blosc without clevel": ("missing-parameter", v2(compressor=without(BLOSC2, "clevel"))),
    "v2 blosc without cname": ("missing-parameter", v2(compressor=without(BLOSC2, "cname"))),
    "v2 shuffle without elementsize": ("missing-elementsize", v2(filters=[{"id": "shuffle"}])),
    "v2 delta without dtype": ("missing-parameter", v2(filters=[{"id": "delta"}])),
    # "Positive integer"
    "v3 blosc typesize 0": ("invalid-typesize", blosc(typesize=0)),
    "v3 blosc typesize 300": ("invalid-typesize", blosc(typesize=300)),
    "v3 blosc shuffle 1": ("shuffle-of-other-format", blosc(shuffle=1)),
    "v2 blosc shuffle as a word": ("shuffle-of-other-format", v2(compressor={**BLOSC2, "shuffle": "shuffle"})),
    # Zarr v2, "Data type encoding": "these MUST also include the units"
    "v2 date without unit": ("time-without-unit", v2("<M8")),
    "v3 endian null": ("null-member", v3(codecs=[named("bytes", endian=None)])),
    "v3 endian null for single bytes": ("null-member", v3("uint8", codecs=[named("bytes", endian=None)])),
    # Zarr v3.0, "codecs": "an array of objects"
    "v3 bare codec": ("short-name", v3(codecs=[BYTES, "crc32c"])),
    "v3 bare key encoding": ("short-name", v3(chunk_key_encoding="default")),
}
"""Documents with the code of what departs in them."""

SOUND = {
    "v3": v3(),
    "v3 with chunks of gzip": gzipped(level=1),
    "v3 blosc": blosc(),
    "v3 blosc without shuffle": blosc("typesize", shuffle="noshuffle"),
    "v3 floats": v3("float32", "0"),
    "v3 NaN": v3("float32", '"0x7fc00001"'),
    "v3 Infinity": v3("float32", '"-Infinity"'),
    "v3 complex": v3("complex64", "[0, 1]"),
    "v3 bool": v3("bool", "false", [{"name": "bytes"}]),
    "v3 large integer": v3("uint64", "18446744073709551615"),
    "v3 shard": sharded(),
    "v3 transpose": v3(codecs=[named("transpose", order=[0]), BYTES]),
    "v2": v2(),
    "v2 blosc": v2(compressor=BLOSC2),
    "v2 gzip": v2(compressor={"id": "gzip", "level": 1}),
    "v2 bool": v2("|b1", "false"),
    "v2 floats": v2("<f4", "1.5"),
    "v2 raw bytes": v2("|V2", '"AQI="'),
}
"""Documents exactly as specified."""


def reads(path, reader):
    """Return whether a reader opens the array and all its elements."""
    is_v3 = (path / "zarr.json").exists()
    driver = {"driver": "zarr3" if is_v3 else "zarr", "kvstore": {"driver": "file", "path": f"{path}/"}}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            match reader:
                case "tensorstore":
                    tensorstore.open(driver).result().read().result()
                case "zarrista":
                    zarrista.Array.open(zarrista.store.FilesystemStore(path), "/")[:]
                case "zarr-python":
                    zarr.open_array(path, mode="r")[:]
    except Exception:  # noqa: BLE001 - each has its own
        return False
    return True


READERS = ("tensorstore", "zarrista", "zarr-python")


@pytest.fixture
def put(tmp_path):
    """Write values into a directory, and return that."""

    def put(values):
        for key, value in values.items():
            place = tmp_path / "x.zarr" / key
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(value)
        return tmp_path / "x.zarr"

    return put


def codes(report):
    return [finding.code for finding in report if finding.code not in {"missing-chunks", "unregistered-extension"}]


@pytest.mark.parametrize("name", FOUND)
def test_departure_is_found_and_nothing_else(name, put):
    code, values = FOUND[name]
    path = put(values)
    report = omnizarr.check(path)
    assert codes(report) == [code]
    finding = next(finding for finding in report if finding.code == code)
    assert finding.pointer
    assert report.ok
    omnizarr.open(path)[...]


@pytest.mark.parametrize("name", FOUND)
def test_departure_is_refused_by_a_reader(name, put):
    path = put(FOUND[name][1])
    assert not all(reads(path, reader) for reader in READERS)


@pytest.mark.parametrize("name", [name for name, (code, _) in FOUND.items() if code in REPAIRABLE])
def test_departure_is_mended_so_that_no_reader_reads_less(name, put):
    code, values = FOUND[name]
    path = put(values)
    before = {reader for reader in READERS if reads(path, reader)}
    old = omnizarr.open(path)
    elements, fill_value = old[...], old.fill_value
    account = omnizarr.repair(path, dry_run=False, backup=False)
    if name == "v2 delta without dtype":  # no program can know it
        assert [finding.code for finding in account.left] == [code]
        return
    assert code in {action.code for action in account}
    assert account.ok
    assert codes(omnizarr.check(path)) == []
    new = omnizarr.open(path)
    assert new[...].tobytes() == elements.tobytes()
    assert new.fill_value == fill_value
    assert {reader for reader in READERS if reads(path, reader)} >= before


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_found_to_the_letter_and_all_who_know_the_type_read_it(name, put):
    path = put(SOUND[name])
    assert codes(omnizarr.check(path, strict=True)) == []
    assert [reader for reader in READERS if not reads(path, reader)] == []


@pytest.mark.parametrize(
    ("name", "pointer"),
    [
        ("v3 gzip without level", "/codecs/1/configuration/level"),
        ("v3 gzip without configuration", "/codecs/1/configuration/level"),
        ("v3 shard of gzip without level", "/codecs/0/configuration/codecs/1/configuration/level"),
        ("v3 date without scale", "/data_type/configuration/scale_factor"),
        ("v3 complex +Infinity", "/fill_value/0"),
        ("v3 record with an integer 0.0", "/fill_value/a"),
        ("v2 gzip without level", "/compressor/level"),
        ("v2 shuffle without elementsize", "/filters/0"),
    ],
)
def test_finding_points_to_the_member(name, pointer, put):
    report = omnizarr.check(put(FOUND[name][1]))
    assert [finding.pointer for finding in report if finding.code == FOUND[name][0]] == [pointer]


@pytest.mark.parametrize(
    ("name", "pointer", "value"),
    [
        ("v3 integer 1e2", "fill_value", 100),
        ("v3 integer 1e18", "fill_value", 10**18),
        ("v3 +Infinity", "fill_value", "Infinity"),
        ("v3 number for a string", "fill_value", ""),
        ("v3 record in base64", "fill_value", {"a": 1}),
        ("v2 number for bytes", "fill_value", ""),
        ("v2 text for bytes", "fill_value", "YWI="),
        ("v2 list for raw bytes", "fill_value", "AQI="),
        ("v2 number for a boolean", "fill_value", True),
        ("v2 hexadecimal digits", "fill_value", 1.0),
        ("v3 blosc without typesize", "codecs", [BYTES, named("blosc", **without(BLOSC, "typesize"), typesize=4)]),
        ("v3 blosc typesize 0", "codecs", [BYTES, named("blosc", **BLOSC)]),
        ("v3 blosc without blocksize", "codecs", [BYTES, named("blosc", **BLOSC)]),
        ("v3 blosc shuffle 1", "codecs", [BYTES, named("blosc", **BLOSC)]),
        ("v2 blosc shuffle as a word", "compressor", BLOSC2),
        ("v2 shuffle without elementsize", "filters", [{"id": "shuffle", "elementsize": 4}]),
        ("v3 date without scale", "data_type", SECONDS),
        ("v3 endian null", "codecs", [BYTES]),
        ("v3 bare codec", "codecs", [BYTES, {"name": "crc32c"}]),
    ],
)
def test_mended_document_says_what_the_text_wants(name, pointer, value, put):
    path = put(FOUND[name][1])
    omnizarr.repair(path, dry_run=False, backup=False)
    document = json.loads(_document(path))
    assert document[pointer] == value
    assert type(document[pointer]) is type(value)


def _document(path):
    return next(place for place in (path / "zarr.json", path / ".zarray") if place.exists()).read_bytes()


def test_hexadecimal_digits_that_v2_has_no_other_form_for_are_left(put):
    path = put(v2("<f4", '"0x7fc00001"'))
    account = omnizarr.repair(path, dry_run=False, backup=False)
    assert [finding.code for finding in account.left] == ["loose-fill-value"]
    assert json.loads(_document(path))["fill_value"] == "0x7fc00001"


def test_several_departures_of_one_codec_are_mended_together(put):
    path = put(v3(codecs=["bytes", "gzip"]))
    assert sorted(codes(omnizarr.check(path))) == ["missing-endian", "missing-parameter", "short-name", "short-name"]
    assert omnizarr.repair(path, dry_run=False, backup=False).ok
    assert codes(omnizarr.check(path)) == []
    assert all(reads(path, reader) for reader in READERS)


@pytest.mark.parametrize("zarr_format", ["3-draft2019", "3-draft2020"])
@pytest.mark.parametrize(
    ("dtype", "fill", "code"),
    [("int32", 0.0, "integer-with-fraction"), ("int32", 1e2, "integer-with-fraction"), ("bool", 0, "loose-fill-value")],
)
def test_fill_values_of_drafts_are_held_against_their_texts(zarr_format, dtype, fill, code):
    store = {}
    omnizarr.create_array(store, name="a", shape=(2,), dtype=dtype, zarr_format=zarr_format)
    key = next(key for key in store if "a.array" in key)
    store[key] = json.dumps({**json.loads(store[key]), "fill_value": fill}).encode()
    assert codes(omnizarr.check(store)) == [code]
    omnizarr.repair(store, dry_run=False, backup=False)
    assert codes(omnizarr.check(store)) == []
    assert json.loads(store[key])["fill_value"] == {"int32": int(fill), "bool": False}[dtype]


@pytest.mark.parametrize("zarr_format", ["3-draft2019", "3-draft2020"])
def test_gzip_of_drafts_has_a_level(zarr_format):
    store = {}
    compressor = {"id": "gzip", "level": 1}
    omnizarr.create_array(store, name="a", shape=(2,), dtype="i4", compressors=compressor, zarr_format=zarr_format)
    assert codes(omnizarr.check(store)) == []
    key = next(key for key in store if "a.array" in key)
    for spelled_as, code in ((b'"level": 1.0', "integer-with-fraction"), (None, "missing-parameter")):
        text = store[key].decode()
        changed = text.replace('"level": 1', spelled_as.decode()) if spelled_as else _without_level(text)
        assert codes(omnizarr.check({**store, key: changed.encode()})) == [code]


def _without_level(text):
    document = json.loads(text)
    for codec in (document.get("compressor"), *document.get("chunk_codecs", ())):
        if codec is not None:
            codec.get("configuration", codec).pop("level", None)
    return json.dumps(document)
