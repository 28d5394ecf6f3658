"""Inner chunks that do not divide the shard: the edge of the shard cuts the last ones.

Spec: zarr-specs, pull request 370.
"""

import itertools
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import errors

MISSING = 2**64 - 1
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
SHAPE, SHARD, INNER = (23, 14), (10, 7), (4, 3)


def sharding(inner, codecs=(BYTES,), **more):
    options = {"chunk_shape": list(inner), "codecs": list(codecs), "index_codecs": [BYTES], **more}
    return {"name": "sharding_indexed", "configuration": options}


def by_hand(values, shard, inner):
    """Return the shards of an array by their keys, as plain NumPy makes them."""
    stored = {}
    for outer in np.ndindex(*(-(-n // s) for n, s in zip(values.shape, shard, strict=True))):
        block = np.zeros(shard, values.dtype)
        part = values[tuple(slice(c * s, (c + 1) * s) for c, s in zip(outer, shard, strict=True))]
        block[tuple(slice(n) for n in part.shape)] = part
        chunks = []
        for coords in np.ndindex(*(-(-s // i) for s, i in zip(shard, inner, strict=True))):
            cut = block[tuple(slice(c * i, (c + 1) * i) for c, i in zip(coords, inner, strict=True))]
            chunks.append(np.ascontiguousarray(cut).tobytes() if cut.any() else b"")
        starts = itertools.accumulate((len(chunk) for chunk in chunks), initial=0)
        index = b"".join(
            struct.pack("<QQ", *((start, len(chunk)) if chunk else (MISSING, MISSING)))
            for start, chunk in zip(starts, chunks, strict=False)
        )
        stored["c/" + "/".join(map(str, outer))] = b"".join(chunks) + index
    return stored


def made(shape=SHAPE, shard=SHARD, inner=INNER, dtype="<i4", store=None, **options):
    return omnizarr.create_array(
        {} if store is None else store, shape=shape, chunks=shard, dtype=dtype, fill_value=0,
        serializer=sharding(inner, **options), compressors=None,
    )  # fmt: skip


VALUES = np.arange(1, 1 + 23 * 14, dtype="<i4").reshape(SHAPE)


def test_shards_are_read_and_written_as_the_proposal_says():
    store = {}
    array = made(store=store)
    array[...] = VALUES
    expected = by_hand(VALUES, SHARD, INNER)
    assert {key: bytes(value) for key, value in store.items() if key != "zarr.json"} == expected
    theirs = {"zarr.json": store["zarr.json"], **expected}
    np.testing.assert_array_equal(omnizarr.open(theirs)[...], VALUES)
    np.testing.assert_array_equal(omnizarr.open(theirs)[9:11, 6], VALUES[9:11, 6])
    assert {finding.code for finding in omnizarr.check(theirs, data=True)} == {"uneven-inner-chunks"}


def boxes(shape):
    """Return a strategy for slices, some with steps, some empty."""
    axes = [st.tuples(st.integers(0, n), st.integers(0, n), st.integers(1, 4)).map(lambda s: slice(*s)) for n in shape]
    return st.tuples(*axes)


@settings(deadline=None)
@given(st.data())
def test_parts_are_read_and_written_like_numpy(data):
    codecs = data.draw(st.sampled_from([(BYTES,), (BYTES, {"name": "gzip", "configuration": {"level": 1}})]))
    array, expected = made(codecs=codecs), np.zeros(SHAPE, "<i4")
    for number in range(1, 4):
        selection = data.draw(boxes(SHAPE))
        array[selection] = number
        expected[selection] = number
        selection = data.draw(boxes(SHAPE))
        np.testing.assert_array_equal(array[selection], expected[selection])
    np.testing.assert_array_equal(array[...], expected)
    rows = data.draw(st.lists(st.integers(0, 22), max_size=5))
    np.testing.assert_array_equal(array.oindex[rows], expected[rows])


def test_missing_inner_chunks_and_empty_edges():
    store = {}
    array = made(store=store)
    array[8:10, 6] = 7
    rows = struct.unpack("<18Q", store["c/0/0"][-9 * 16 :])
    assert [row != MISSING for row in rows[::2]] == [False] * 8 + [True]
    assert rows[-1] == 2 * 1 * 4
    assert array[8:10, 6].tolist() == [7, 7]
    array[8:10, 6] = 0
    assert set(store) == {"zarr.json"}


def test_through_every_store(tmp_path):
    array = made(store=tmp_path / "a.zarr", codecs=(BYTES, {"name": "zstd", "configuration": {"level": 1}}))
    array[...] = VALUES
    array = omnizarr.open(tmp_path / "a.zarr")
    np.testing.assert_array_equal(array[3:12, 5:9], VALUES[3:12, 5:9])
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / "b.zarr", zarr_format=2)
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "b.zarr")[...], VALUES)
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / "c.zarr")
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "c.zarr")[...], VALUES)
    array.resize((12, 14))
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "a.zarr")[...], VALUES[:12])


def test_an_inner_chunk_of_the_wrong_size_is_no_value():
    store = {}
    made(store=store)[...] = VALUES
    shard = bytearray(store["c/0/0"])
    shard[-8:] = struct.pack("<Q", 3 * 4)  # the corner has 2 * 1 elements
    store["c/0/0"] = bytes(shard)
    with pytest.raises(errors.ChunkSizeError, match=r"inner chunk \(2, 2\)"):
        omnizarr.open(store)[9, 6]
    assert "wrong-chunk-size" in {finding.code for finding in omnizarr.check(store, data=True)}


def test_inner_chunks_larger_than_the_shard_are_refused():
    with pytest.raises(errors.CodecError, match="larger than the shard"):
        made(inner=(11, 3))


def test_shards_that_only_few_programs_read_must_be_asked_for():
    with pytest.raises(errors.CodecError, match="divide") as caught:
        omnizarr.create_array({}, shape=10, dtype="i4", chunks=3, shards=(4,))
    assert "serializer" in str(caught.value)


def test_a_shard_within_a_shard_is_cut_too():
    store = {}
    inner = sharding((2,))
    array = omnizarr.create_array(
        store, shape=20, chunks=10, dtype="u1", fill_value=0, compressors=None,
        serializer={"name": "sharding_indexed", "configuration": {
            "chunk_shape": [4], "codecs": [inner], "index_codecs": [BYTES]}},
    )  # fmt: skip
    array[...] = np.arange(1, 21)
    np.testing.assert_array_equal(omnizarr.open(store)[7:13], np.arange(8, 14))


def test_a_hostile_shard_does_not_fill_the_memory():
    document = {
        "zarr_format": 3, "node_type": "array", "shape": [10**15], "data_type": "uint8",
        "fill_value": 0, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10**15]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [sharding((3,))],
    }  # fmt: skip
    array = omnizarr.open({"zarr.json": json.dumps(document).encode(), "c/0": b"x" * 100})
    with pytest.raises((errors.ShardIndexError, errors.ChunkError)):
        array[5:9]
