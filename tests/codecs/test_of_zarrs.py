"""Codecs that zarrs alone has, or that are proposed: dimensions of length 1, items with an index."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr import errors
from omnizarr.model import Named, grids

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


@pytest.mark.parametrize(
    ("operations", "shape"),
    [
        ([], (1, 4, 1)),
        ([{"remove": 0}], (4, 1)),
        ([{"insert": 0}, {"remove": 3}], (1, 1, 4)),
        ([{"insert": 3}], (1, 4, 1, 1)),
        ([{"remove": 2}, {"remove": 0}, {"insert": 1}], (4, 1)),
    ],
)
def test_singleton_dim_inserts_and_removes_in_turn(operations, shape):
    from omnizarr.codecs import registry
    from omnizarr.codecs.contract import ArraySpec
    from omnizarr.model import datatypes

    spec = ArraySpec((1, 4, 1), datatypes.parse("uint8"), np.uint8(0))
    codec = registry.find("singleton_dim")({"operations": operations}, spec)
    values = np.arange(4, dtype="u1").reshape(1, 4, 1)
    assert codec.encode(values).shape == codec.encoded.shape == shape
    np.testing.assert_array_equal(codec.decode(codec.encode(values)), values)


@pytest.mark.parametrize(
    ("operations", "kind"),
    [
        ([{"remove": 1}], errors.CodecError),
        ([{"remove": 3}], errors.CodecError),
        ([{"insert": 4}], errors.CodecError),
        ([{"insert": 0}] * 100, errors.CodecError),
        ([{"insert": -1}], errors.MetadataError),
        ([{"insert": True}], errors.MetadataError),
        ([{"insert": 0, "remove": 0}], errors.MetadataError),
        ([{}], errors.MetadataError),
        ([3], errors.MetadataError),
        ("insert", errors.MetadataError),
    ],
)
def test_other_operations_are_refused(operations, kind):
    with pytest.raises(kind) as caught:
        omnizarr.create_array({}, shape=(1, 4, 1), dtype="u1", filters=[named("singleton_dim", operations=operations)])
    assert "/operations" in caught.value.pointer


def test_a_codec_after_it_sees_the_other_dimensions():
    values = np.arange(24.0).reshape(2, 1, 3, 4)
    filters = [named("singleton_dim", operations=[{"remove": 1}]), named("transpose", order=[2, 1, 0])]
    array = omnizarr.create_array({}, data=values, chunks=(2, 1, 3, 4), filters=filters)
    np.testing.assert_array_equal(array[1:, :, ::2], values[1:, :, ::2])


@pytest.mark.parametrize(("shape", "lengths"), [((10, 7), ((4, 4, 2), (3, 3, 1))), ((8, 2), ((4, 4), (2,)))])
def test_the_edge_cuts_chunks_of_the_bounded_grid(shape, lengths):
    grid = grids.bind(Named("zarrs.regular_bounded", {"chunk_shape": [4, 3]}), shape)
    found = tuple(tuple(axis.chunk(n)[1] for n in range(axis.count)) for axis in grid.axes)
    assert found == lengths


def test_a_bounded_grid_cannot_grow_into_chunks_that_would_move():
    array = omnizarr.create_array(
        {}, shape=8, dtype="u1", chunks=named("zarrs.regular_bounded", chunk_shape=[4]), fill_value=0
    )
    array[:] = 5
    array.resize(12)
    assert array[:].tolist() == [5] * 8 + [0] * 4
    array = omnizarr.create_array({}, shape=7, dtype="u1", chunks=named("zarrs.regular_bounded", chunk_shape=[4]))
    with pytest.raises(errors.MetadataError):
        array.resize(8)


TEXTS = st.lists(st.text(max_size=20), min_size=1, max_size=9)


@given(TEXTS, st.sampled_from(["start", "end"]), st.sampled_from(["uint32", "uint64"]))
def test_items_with_an_index(items, place, size):
    values = np.array(items, dtype="T")
    store = {}
    codec = named(
        "zarrs.vlen", index_codecs=[LITTLE], data_codecs=["bytes"], index_data_type=size, index_location=place
    )
    omnizarr.create_array(store, data=values, chunks=values.shape, serializer=codec, compressors=None, fill_value="-")
    encoded = [item.encode() for item in items]
    offsets = [0, *np.cumsum([len(item) for item in encoded]).tolist()]
    index = struct.pack(f"<{len(offsets)}{'I' if size == 'uint32' else 'Q'}", *offsets)
    prefix, data = struct.pack("<Q", len(index)), b"".join(encoded)
    stored = store.get("c/0")
    assert stored == (prefix + index + data if place == "start" else data + index + prefix) or set(items) == {"-"}
    assert omnizarr.open(store)[:].tolist() == items


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"123", "too short"),
        (struct.pack("<Q", 2**63), "cut off"),
        (struct.pack("<Q3I", 12, 1, 2, 3), "increase"),
        (struct.pack("<Q3I", 12, 0, 3, 2), "increase"),
        (struct.pack("<Q3I", 12, 0, 1, 2**32 - 1) + b"abc", "wrong size"),
        (struct.pack("<Q3I", 12, 0, 1, 2) + b"\xff\xfe", "cannot decode"),
        (struct.pack("<Q3I", 12, 0, 1, 2) + b"abc", "size"),
    ],
)
def test_a_broken_index_is_an_error(data, message):
    store = {}
    codec = named("zarrs.vlen", index_codecs=[LITTLE], data_codecs=["bytes"], index_data_type="uint32")
    omnizarr.create_array(store, shape=2, dtype=str, chunks=2, serializer=codec, compressors=None)
    store["c/0"] = data
    with pytest.raises(errors.ChunkError, match=message):
        omnizarr.open(store)[:]
