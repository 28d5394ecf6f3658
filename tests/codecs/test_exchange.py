"""Chunks and documents of zarr-python, TensorStore and numcodecs are read, and theirs are written."""

import json
import warnings

import numcodecs
import numpy as np
import pytest

from omnizarr.codecs import chain
from omnizarr.codecs.contract import ArraySpec
from omnizarr.model import Named
from omnizarr.model.datatypes import bind, parse

zarr = pytest.importorskip("zarr", reason="zarr-python writes and reads the chunks")

INTEGERS = (np.arange(60, dtype="<i4") ** 2 % 500).reshape(6, 10)
FLOATS = np.linspace(-5, 5, 60).reshape(6, 10)
BOOLS = INTEGERS % 3 == 0

CASES = [
    ("compressors", "Blosc", {"cname": "zstd", "clevel": 3, "shuffle": 2}, INTEGERS),
    ("compressors", "Blosc", {"clevel": 5}, FLOATS),
    ("compressors", "LZ4", {"acceleration": 2}, INTEGERS),
    ("compressors", "Zstd", {"level": 3}, INTEGERS),
    ("compressors", "Zlib", {"level": 3}, INTEGERS),
    ("compressors", "GZip", {"level": 3}, INTEGERS),
    ("compressors", "BZ2", {"level": 3}, INTEGERS),
    ("compressors", "LZMA", {"preset": 1}, INTEGERS),
    ("compressors", "Shuffle", {"elementsize": 4}, INTEGERS),
    ("compressors", "CRC32", {}, INTEGERS),
    ("compressors", "CRC32C", {}, INTEGERS),
    ("compressors", "Adler32", {}, INTEGERS),
    ("compressors", "Fletcher32", {}, INTEGERS),
    ("compressors", "JenkinsLookup3", {}, INTEGERS),
    ("filters", "Delta", {"dtype": "<i4"}, INTEGERS),
    ("filters", "Delta", {"dtype": "<i4", "astype": "<i2"}, INTEGERS),
    ("filters", "FixedScaleOffset", {"offset": 1, "scale": 2, "dtype": "<i4", "astype": "<i2"}, INTEGERS),
    ("filters", "AsType", {"encode_dtype": "<f4", "decode_dtype": "<i4"}, INTEGERS),
    ("filters", "Quantize", {"digits": 2, "dtype": "<f8"}, FLOATS),
    ("filters", "BitRound", {"keepbits": 8}, FLOATS),
    ("filters", "PackBits", {}, BOOLS),
    ("serializer", "PCodec", {"level": 4}, INTEGERS),
]


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they warn that these codecs are in no specification
        return function(*arguments, **options)


def written_by_zarr_python(array, **options):
    store = zarr.storage.MemoryStore()
    made = quietly(zarr.create_array, store, data=array, chunks=array.shape, **options)
    document = json.loads(store._store_dict["zarr.json"].to_bytes())
    return store, document, quietly(lambda: made[...])


def our_chain(document):
    codecs = [Named(codec["name"], codec.get("configuration", {})) for codec in document["codecs"]]
    data_type = document["data_type"]
    named = Named(data_type) if isinstance(data_type, str) else Named(**data_type)
    bound = bind(named)
    fill = bound.fill_from_json(document["fill_value"])
    return chain.bind(codecs, ArraySpec(tuple(document["shape"]), bound, fill))


def exchange(array, **options):
    store, document, expected = written_by_zarr_python(array, **options)
    key = next(key for key in store._store_dict if key.startswith("c"))
    ours = our_chain(document)
    np.testing.assert_array_equal(ours.decode(store._store_dict[key].to_bytes()), expected)
    store._store_dict[key] = zarr.core.buffer.cpu.Buffer.from_bytes(bytes(ours.encode(array)))
    np.testing.assert_array_equal(quietly(lambda: zarr.open_array(store)[...]), expected)


@pytest.mark.parametrize(("place", "name", "options", "array"), CASES)
def test_numcodecs_family_in_v3(place, name, options, array):
    codecs = quietly(lambda: __import__("zarr.codecs.numcodecs", fromlist=[name]))
    codec = quietly(getattr(codecs, name), **options)
    stack = {"compressors": None, "filters": None, place: codec}
    exchange(array, **stack)


@pytest.mark.parametrize(
    "codecs",
    [
        ["GzipCodec"],
        ["ZstdCodec"],
        ["BloscCodec"],
        ["Crc32cCodec"],
        ["BloscCodec", "Crc32cCodec"],
        ["ZstdCodec", "GzipCodec", "Crc32cCodec"],
    ],
)
def test_codecs_of_zarr_python(codecs):
    exchange(INTEGERS, compressors=[getattr(zarr.codecs, name)() for name in codecs])


def test_text_of_zarr_python():
    text = np.array([["a", "löwe", ""], ["x" * 300, "猫", "b"]], dtype=np.dtypes.StringDType())
    exchange(text, compressors=[zarr.codecs.ZstdCodec()])


@pytest.mark.parametrize(
    "codecs",
    [
        [{"name": "gzip", "configuration": {"level": 5}}],
        [{"name": "zstd", "configuration": {"level": 5}}],
        [
            {
                "name": "blosc",
                "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0},
            }
        ],
        [{"name": "zstd", "configuration": {"level": 5}}, {"name": "crc32c"}],
    ],
)
def test_codecs_of_tensorstore(codecs, tmp_path):
    ts = pytest.importorskip("tensorstore", reason="TensorStore writes and reads the chunks")
    document = {
        "shape": [6, 10],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [6, 10]}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, *codecs],
        "fill_value": 0,
    }
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path)}}
    array = ts.open({**spec, "metadata": document}, create=True).result()
    array[...] = INTEGERS
    chunk = tmp_path / "c/0/0"
    ours = our_chain(document)
    np.testing.assert_array_equal(ours.decode(chunk.read_bytes()), INTEGERS)
    chunk.write_bytes(bytes(ours.encode(INTEGERS[::-1])))
    np.testing.assert_array_equal(ts.open(spec).result().read().result(), INTEGERS[::-1])


@pytest.mark.parametrize(
    ("codec_id", "items", "named"),
    [
        ("vlen-utf8", ["a", "", "löwe", "猫" * 40], Named("string")),
        ("vlen-bytes", [b"a", b"", b"\0\xff", b"x" * 300], Named("bytes")),
        ("json2", [1, None, "s", {"a": [1.5]}], Named("omnizarr.object")),
        ("msgpack2", [1, None, "s", {"a": [1.5]}], Named("omnizarr.object")),
        ("pickle", [1, None, "s", {"a": (1.5,)}], Named("omnizarr.object")),
    ],
)
def test_object_codecs_agree_with_numcodecs(codec_id, items, named):
    from tests.codecs.cases import bound

    array = np.array(items, dtype=object)
    theirs = numcodecs.get_codec({"id": codec_id})
    ours = bound(f"numcodecs.{codec_id}", {}, array, named=named, allow_pickle=True)
    stored = bytes(theirs.encode(array))
    assert bytes(ours.encode(array)) == stored
    assert ours.decode(stored).tolist() == items


def test_zfp_of_numcodecs_agrees():
    zfpy = pytest.importorskip("zfpy", reason="zfpy compresses")
    from tests.codecs.cases import bound

    ours = bound("numcodecs.zfpy", {"mode": 4, "tolerance": 0.01}, FLOATS)
    stored = zfpy.compress_numpy(FLOATS, tolerance=0.01, write_header=True)
    assert ours.encode(FLOATS) == stored
    np.testing.assert_array_equal(ours.decode(stored), zfpy.decompress_numpy(stored))


def test_pcodec_agrees_with_numcodecs():
    numcodecs_pcodec = pytest.importorskip("numcodecs.pcodec", reason="pcodec compresses")
    from tests.codecs.cases import bound

    theirs = numcodecs_pcodec.PCodec(level=4)
    ours = bound("numcodecs.pcodec", {"level": 4}, INTEGERS)
    np.testing.assert_array_equal(ours.decode(theirs.encode(INTEGERS)), INTEGERS)
    np.testing.assert_array_equal(np.asarray(theirs.decode(ours.encode(INTEGERS))).reshape(6, 10), INTEGERS)
    assert parse("int32").dtype == INTEGERS.dtype
