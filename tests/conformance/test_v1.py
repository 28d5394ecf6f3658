"""Zarr v1, sentence by sentence: array stores written by hand from the text."""

import json
import struct
import zlib

import numcodecs
import numpy as np
import pytest

import omnizarr
from omnizarr.stores import LocalStore, MemoryStore
from tests.conformance.raw import document, keys, store

pytestmark = pytest.mark.rules

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


# Data types


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


def test_chunks_have_the_keys_of_the_text():
    array = opened({"0.0": b"\1", "2.4": b"\2"}, shape=[10, 10], chunks=[1, 1], **RAW)
    assert (array[0, 0], array[2, 4], array.nchunks) == (1, 2, 100)
    assert np.argwhere(array[...] == 2).tolist() == [[2, 4]]
    made = MemoryStore()
    large = omnizarr.create_array(made, shape=(10000, 10000), chunks=(1000, 1000), dtype="u1", zarr_format=1)
    large[0, 0] = large[2999, 4000] = 1
    assert keys(made) == ["0.0", "2.4", "attrs", "meta"]


# Attributes


def test_attrs_are_there_also_when_empty():
    made = MemoryStore()
    array = omnizarr.create_array(made, shape=(3,), dtype="<f4", zarr_format=1)
    assert bytes(made.get("attrs")).split() == [b"{}"]
    array.attrs["a"] = 1
    del array.attrs["a"]
    assert document(made, "attrs") == {}


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
