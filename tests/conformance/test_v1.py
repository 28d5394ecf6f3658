"""Zarr v1, sentence by sentence: array stores written by hand from the text."""

import bz2
import json
import lzma
import struct
import zlib

import numcodecs
import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.stores import LocalStore, MemoryStore
from tests.conformance.raw import document, keys, store, without

META = {
    "zarr_format": 1,
    "shape": [4, 6],
    "chunks": [2, 3],
    "dtype": "|u1",
    "compression": "zlib",
    "compression_opts": 1,
    "fill_value": 7,
    "order": "C",
}
BIG = {
    "chunks": [1000, 1000],
    "compression": "blosc",
    "compression_opts": {"clevel": 5, "cname": "lz4", "shuffle": 1},
    "dtype": "<f8",
    "fill_value": None,
    "order": "C",
    "shape": [10000, 10000],
    "zarr_format": 1,
}
EXAMPLE = {
    "chunks": [10, 10],
    "compression": "zlib",
    "compression_opts": 1,
    "dtype": "<i4",
    "fill_value": 42,
    "order": "C",
    "shape": [20, 20],
    "zarr_format": 1,
}
ATTRS = {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
RAW = {"compression": "none", "compression_opts": None}


def opened(stored=(), /, **changes):
    """Open an array whose metadata differ from META in some members."""
    return omnizarr.open(store({"meta": {**META, **changes}, "attrs": {}, **dict(stored)}))


def refused(kind=errors.MetadataError, **changes):
    with pytest.raises(kind) as caught:
        opened(**changes)[...]
    return caught.value.pointer


@pytest.fixture
def example(tmp_path):
    """The array of the example, begun from its two documents, in a directory."""
    directory = tmp_path / "example.zarr"
    directory.mkdir()
    (directory / "meta").write_text(json.dumps(EXAMPLE))
    (directory / "attrs").write_text("{}")
    return directory


def names(directory):
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith(".omnizarr"))


# Metadata


@pytest.mark.parametrize("name", sorted(without(META, "zarr_format")))
def test_array_without_a_required_key_is_refused(name):
    with pytest.raises(errors.MetadataError) as caught:
        omnizarr.open(store({"meta": without(META, name), "attrs": {}}))
    assert caught.value.pointer == f"/{name}"


def test_without_zarr_format_it_is_no_v1():
    with pytest.raises((errors.MetadataError, errors.NodeNotFoundError)):
        omnizarr.open(store({"meta": without(META, "zarr_format"), "attrs": {}}))


def test_created_array_has_the_required_keys():
    made = MemoryStore()
    omnizarr.create_array(made, shape=(3,), dtype="<f4", zarr_format=1)
    assert set(document(made, "meta")) == set(META)
    assert document(made, "meta")["zarr_format"] == 1


@pytest.mark.parametrize(
    "extra", [{"filters": [{"id": "delta"}]}, {"dimension_separator": "/"}, {"codecs": []}, {"foo": 1}]
)
def test_other_keys_do_not_alter_what_the_required_ones_say(extra):
    chunk = zlib.compress(bytes(range(6)))
    made = store({"meta": {**META, **extra}, "attrs": {}, "0.0": chunk})
    array = omnizarr.open(made)
    assert array[0].tolist() == [0, 1, 2, 7, 7, 7]
    array[3, 5] = 9
    assert zlib.decompress(bytes(made.get("1.1"))) == bytes([7, 7, 7, 7, 7, 9])


def test_array_of_10000_by_10000():
    values = np.arange(1_000_000, dtype="<f8").reshape(1000, 1000)
    chunk = numcodecs.Blosc(cname="lz4", clevel=5, shuffle=1).encode(values)
    made = store({"meta": BIG, "attrs": {}, "2.4": chunk})
    array = omnizarr.open(made)
    assert (array.shape, array.chunks, array.cdata_shape, array.nchunks) == (
        (10000, 10000),
        (1000, 1000),
        (10, 10),
        100,
    )
    assert (array.dtype, array.order, array.zarr_format) == (np.dtype("<f8"), "C", 1)
    np.testing.assert_array_equal(array[2000:3000, 4000:5000], values)
    assert array.documents()["meta"] == BIG


# Data types


@pytest.mark.parametrize("dtype", ["f8", "i4", "=i4", "|i4", "U3"])
def test_types_of_several_bytes_without_a_byte_order_are_refused(dtype):
    assert refused(dtype=dtype, fill_value=None, **RAW) == "/dtype"


@pytest.mark.parametrize("dtype", ["b1", "u1", "S12"])
def test_types_of_single_bytes_without_a_byte_order_are_read_with_a_note(dtype):
    array = opened(dtype=dtype, fill_value=None, **RAW)
    assert array.dtype == np.dtype(dtype)
    assert [note.pointer for note in array._metadata.notes] == ["/dtype"]


@pytest.mark.parametrize("dtype", ["<f8", ">i4", "|b1", "|S12"])
def test_created_arrays_say_the_byte_order(dtype):
    made = MemoryStore()
    omnizarr.create_array(made, shape=(1,), dtype=dtype, zarr_format=1)
    assert document(made, "meta")["dtype"] == dtype


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("<f8", [1.5, -2]), (">i4", [1, -2]), ("|b1", [True, False]), ("|S12", [b"a", b"twelve bytes"])],
)
def test_types_of_the_text(dtype, values):
    expected = np.array(values, dtype)
    chunk = zlib.compress(expected.tobytes())
    array = opened({"0": chunk}, shape=[2], chunks=[2], dtype=dtype, fill_value=None)
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array[...], expected)


def test_structure_of_three_bytes():
    dtype = [["r", "|u1"], ["g", "|u1"], ["b", "|u1"]]
    chunk = zlib.compress(bytes([1, 2, 3, 4, 5, 6]))
    array = opened({"0": chunk}, shape=[2], chunks=[2], dtype=dtype, fill_value=None)
    assert array.dtype == np.dtype([("r", "u1"), ("g", "u1"), ("b", "u1")])
    assert array[...].tolist() == [(1, 2, 3), (4, 5, 6)]
    assert array.documents()["meta"]["dtype"] == dtype


# Chunks


def test_a_chunk_is_what_blosc_makes_of_it_header_first():
    made = MemoryStore()
    values = np.arange(1000, dtype="<i8")
    options = {"shape": (1000,), "chunks": (1000,), "dtype": "<i8", "zarr_format": 1}
    omnizarr.create_array(made, compressors=numcodecs.Blosc(cname="lz4", clevel=5, shuffle=1), **options)[...] = values
    chunk = bytes(made.get("0"))
    version, _, flags, type_size, nbytes, _, stored = struct.unpack("<BBBBIII", chunk[:16])
    assert (version, type_size, nbytes, stored) == (2, 8, values.nbytes, len(chunk))
    assert flags & 0x1
    assert numcodecs.Blosc().decode(chunk) == values.tobytes()


@pytest.mark.parametrize(
    ("compression", "options", "compress"),
    [
        ("zlib", 1, zlib.compress),
        ("bz2", 1, bz2.compress),
        ("lzma", {"format": 1, "check": -1, "preset": None, "filters": None}, lzma.compress),
        ("none", None, bytes),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}, numcodecs.Blosc().encode),
    ],
)
def test_chunks_are_what_the_library_makes_of_the_bytes_and_nothing_else(compression, options, compress):
    array = opened({"0.0": compress(bytes(range(6)))}, compression=compression, compression_opts=options)
    assert array[:2, :3].ravel().tolist() == list(range(6))


def test_chunks_have_the_keys_of_the_text():
    array = opened({"0.0": b"\1", "2.4": b"\2"}, shape=[10, 10], chunks=[1, 1], **RAW)
    assert (array[0, 0], array[2, 4], array.nchunks) == (1, 2, 100)
    assert np.argwhere(array[...] == 2).tolist() == [[2, 4]]
    made = MemoryStore()
    large = omnizarr.create_array(made, shape=(10000, 10000), chunks=(1000, 1000), dtype="u1", zarr_format=1)
    large[0, 0] = large[2999, 4000] = 1
    assert keys(made) == ["0.0", "2.4", "attrs", "meta"]


@pytest.mark.parametrize(("dtype", "fill"), [("<i4", -5), ("<f8", 1.5), ("|b1", True)])
def test_missing_chunks_hold_the_fill_value(dtype, fill):
    array = opened(dtype=dtype, fill_value=fill)
    np.testing.assert_array_equal(array[...], np.full((4, 6), fill, dtype))


# Attributes


def test_attrs_are_there_also_when_empty():
    made = MemoryStore()
    array = omnizarr.create_array(made, shape=(3,), dtype="<f4", zarr_format=1)
    assert bytes(made.get("attrs")).split() == [b"{}"]
    array.attrs["a"] = 1
    del array.attrs["a"]
    assert document(made, "attrs") == {}


def test_array_without_attrs_is_read_with_a_note():
    array = omnizarr.open(store({"meta": META}))
    assert dict(array.attrs) == {}
    assert array[0, 0] == 7
    assert array._metadata.notes


def test_attributes_foo_bar_and_baz():
    array = omnizarr.open(store({"meta": META, "attrs": ATTRS}))
    assert dict(array.attrs) == ATTRS
    assert array.documents()["attrs"] == ATTRS


# The example at the end


def test_the_example_begins_with_two_keys(tmp_path):
    directory = tmp_path / "example.zarr"
    zlib1 = {"id": "zlib", "level": 1}
    options = {"shape": (20, 20), "chunks": (10, 10), "dtype": "<i4", "fill_value": 42}
    omnizarr.create_array(LocalStore(directory), zarr_format=1, compressors=zlib1, **options)
    assert names(directory) == ["attrs", "meta"]
    assert json.loads((directory / "meta").read_text()) == EXAMPLE
    assert json.loads((directory / "attrs").read_text()) == {}


def test_the_example_is_filled_chunk_by_chunk(example):
    array = omnizarr.open(example)
    assert (array[...] == 42).all()
    array[0:10, 0:10] = 1
    assert names(example) == ["0.0", "attrs", "meta"]
    array[0:10, 10:20] = 2
    array[10:20, :] = 3
    assert names(example) == ["0.0", "0.1", "1.0", "1.1", "attrs", "meta"]
    stored = np.frombuffer(zlib.decompress((example / "0.0").read_bytes()), "<i4")
    np.testing.assert_array_equal(stored, np.ones(100, "<i4"))
    assert [int(array[0, 10]), int(array[10, 0]), int(array[19, 19])] == [2, 3, 3]


def test_the_example_keeps_its_metadata_and_gets_attributes(example):
    array = omnizarr.open(example)
    for name, value in ATTRS.items():
        array.attrs[name] = value
    assert json.loads((example / "attrs").read_text()) == ATTRS
    assert json.loads((example / "meta").read_text()) == EXAMPLE
