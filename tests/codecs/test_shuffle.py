import json

import numcodecs
import numpy as np
import pytest
import zarr

import omnizarr
from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.registry import find
from omnizarr.errors import ChunkSizeError
from tests.codecs.cases import PLAIN, bound


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_agrees_with_numcodecs(size):
    codec, theirs = bound("numcodecs.shuffle", {"elementsize": size}, PLAIN), numcodecs.Shuffle(size)
    assert bytes(codec.encode(PLAIN)) == bytes(theirs.encode(PLAIN))
    assert bytes(codec.decode(bytes(theirs.encode(PLAIN)))) == PLAIN


@pytest.mark.parametrize(("plain", "shuffled"), [(b"abcdABCDxy", b"aAbBcCdDxy"), (b"ab", b"ab"), (b"abcdx", b"abcdx")])
def test_bytes_left_over_stay_at_the_end(plain, shuffled):
    # as the filter of HDF5 does it; numcodecs refuses them
    codec = bound("shuffle", {"elementsize": 4}, plain)
    assert (bytes(codec.encode(plain)), bytes(codec.decode(shuffled))) == (shuffled, plain)


def test_a_checksum_of_odd_size_is_shuffled_as_netcdf_c_does():
    # what netCDF-C 4.10.2 stored of the doubles 1, 2, 3, 4, 5: fletcher32, then shuffle
    stored = bytes.fromhex("00" * 30 + "f0000810143f40404040401d3fa7")
    plain = np.arange(1.0, 6.0).astype("<f8").tobytes() + bytes.fromhex("401d3fa7")
    codec = bound("shuffle", {"elementsize": 8}, plain)
    assert bytes(codec.encode(plain)) == stored
    assert bytes(codec.decode(stored)) == plain


@pytest.mark.parametrize(("elementsize", "size"), [(0, 8), ("0", 8), ("2", 2), (4, 4), (None, 8)])
def test_size_of_items(elementsize, size):
    assert find("shuffle")({"elementsize": elementsize}, BytesSpec(80, 8)).item_size == size


def test_size_is_kept():
    codec = find("shuffle")({}, BytesSpec(None, 4, 100))
    assert (codec.encoded.nbytes, codec.encoded.max_nbytes) == (None, 100)
    with pytest.raises(ChunkSizeError):
        codec.decode(bytes(101))


TYPES = {"bool": "?", "int16": "i2", "int32": "i4", "float64": "f8", "complex128": "c16"}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
AS_FLOAT32 = {"name": "numcodecs.astype", "configuration": {"encode_dtype": "<f4", "decode_dtype": "<f8"}}
SHUFFLE = {"name": "numcodecs.shuffle", "configuration": {}}
NULL = {"name": "numcodecs.shuffle", "configuration": {"elementsize": None}}
SHARD = {
    "name": "sharding_indexed",
    "configuration": {
        "chunk_shape": [6],
        "codecs": [LITTLE, SHUFFLE],
        "index_codecs": [LITTLE, {"name": "crc32c"}],
        "index_location": "end",
    },
}
CHAINS = {
    **{name: (name, [LITTLE, SHUFFLE]) for name in TYPES},
    "null": ("float64", [LITTLE, NULL]),
    "behind an array filter": ("float64", [AS_FLOAT32, LITTLE, SHUFFLE]),
    "behind a shuffle": ("float64", [LITTLE, {"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}}, NULL]),
    "in a shard": ("float64", [SHARD]),
}


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize("chain", CHAINS)
def test_without_elementsize_zarr_python_and_omnizarr_read_each_other(chain, tmp_path):
    name, codecs = CHAINS[chain]
    data = (np.arange(12) * 1.25).astype(TYPES[name])
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [24],
        "data_type": name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [12]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": [0, 0] if name.startswith("complex") else name != "bool" and 0,
        "codecs": codecs,
    }
    path = tmp_path / "v3"
    path.mkdir()
    (path / "zarr.json").write_text(json.dumps(document))
    zarr.open_array(path, mode="r+")[:12] = data
    ours = omnizarr.open_array(path)
    np.testing.assert_array_equal(ours[:12], data)
    ours[12:] = data[::-1]
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[12:], data[::-1])
    assert json.loads((path / "zarr.json").read_text()) == document
    omnizarr.convert(path, tmp_path / "v2", zarr_format=2)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "v2", mode="r")[:], [*data, *data[::-1]])


def test_without_elementsize_numcodecs_and_zarr_v2_take_4():
    values = {}
    array = omnizarr.create_array(
        values, shape=(8,), dtype="f8", zarr_format=2, fill_value=0, filters=[numcodecs.Shuffle()], compressors=None
    )
    document = json.loads(values[".zarray"])
    del document["filters"][0]["elementsize"]
    values[".zarray"] = json.dumps(document).encode()
    values["0"] = bytes(numcodecs.Shuffle().encode(np.arange(8.0)))
    np.testing.assert_array_equal(omnizarr.open(values)[:], np.arange(8.0))
    array = omnizarr.open(values)
    array.attrs["a"] = 1
    assert json.loads(values[".zarray"]) == document
    target = {}
    omnizarr.convert(values, target, zarr_format=3)
    np.testing.assert_array_equal(omnizarr.open(target)[:], np.arange(8.0))


@pytest.mark.parametrize("sharded", [False, True])
def test_new_arrays_say_the_size(sharded):
    values = {}
    inner = omnizarr.codecs.Codec("numcodecs.shuffle")
    serializer = omnizarr.codecs.ShardingCodec(chunk_shape=(4,), codecs=[omnizarr.codecs.BytesCodec(), inner])
    options = {"serializer": serializer, "compressors": None} if sharded else {"compressors": [inner]}
    omnizarr.create_array(values, shape=(8,), chunks=(8,), dtype="f8", **options)
    document = json.loads(values["zarr.json"])
    codecs = document["codecs"][0]["configuration"]["codecs"] if sharded else document["codecs"]
    assert codecs[1] == {"name": "numcodecs.shuffle", "configuration": {"elementsize": 8}}
