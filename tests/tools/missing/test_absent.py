"""Which chunks are missing, against a count by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.stores import MemoryStore
from omnizarr.tools.missing import absent
from tests.fakes import UnlistableStore


def covered(regions, shape):
    """Return how often each element is in a region."""
    found = np.zeros(shape, int)
    for region in regions:
        found[region] += 1
    return found


@pytest.fixture
def sparse():
    """An array of 5 × 7 in chunks of 2 × 3 with some chunks removed, and the coordinates of those that are left."""
    values = {}
    array = omnizarr.create_array(values, shape=(5, 7), chunks=(2, 3), dtype="int8", compressors=None, fill_value=0)
    array[...] = 1
    gone = {(0, 1), (1, 0), (1, 1), (1, 2), (2, 2)}
    for row, column in gone:
        del values[f"c/{row}/{column}"]
    return array, gone


def test_missing_chunks_are_those_without_a_key(sparse):
    array, gone = sparse
    found = omnizarr.missing(array)
    assert list(found) == sorted(gone)
    assert (found.count, found.stored, found.expected, found.unit) == (5, 4, 9, "chunk")
    assert set(found.keys()) == {f"c/{row}/{column}" for row, column in gone}
    assert not any(map(array.store.exists, found.keys()))


def test_regions_cover_the_elements_of_missing_chunks_once(sparse):
    array, _ = sparse
    regions = list(omnizarr.missing(array).regions())
    np.testing.assert_array_equal(covered(regions, array.shape), array[...] == 0)
    assert len(regions) < 5


@pytest.mark.parametrize("zarr_format", [1, 2, 3, "3-draft2019", "3-draft2020"])
def test_each_format(zarr_format):
    root = MemoryStore()
    array = omnizarr.create_array(
        root, name="a", shape=(4,), chunks=(1,), dtype="int8", zarr_format=zarr_format, fill_value=0
    )
    array[1:3] = 1
    found = omnizarr.missing(root, path="a")
    assert list(found) == [(0,), (3,)]
    assert not any(map(root.exists, found.keys()))
    assert omnizarr.du(root).total.stored == 2


def test_complete_and_empty_arrays():
    array = omnizarr.create_array({}, shape=(3, 3), chunks=(1, 1), dtype="int8", fill_value=0)
    assert list(omnizarr.missing(array).boxes()) == [((0, 3), (0, 3))]
    array[...] = 1
    assert list(omnizarr.missing(array)) == []
    scalar = omnizarr.create_array({}, shape=(), dtype="int8", fill_value=0)
    assert list(omnizarr.missing(scalar)) == [()]
    nothing = omnizarr.create_array({}, shape=(0, 4), chunks=(2, 2), dtype="int8")
    assert omnizarr.missing(nothing).count == 0


def test_huge_array_is_reported_by_its_few_chunks():
    array = omnizarr.create_array({}, shape=(2**62, 2**20), chunks=(2**10, 2**10), dtype="uint8", fill_value=0)
    array[5, 7] = 1
    found = omnizarr.missing(array)
    assert found.count == 2**52 * 2**10 - 1
    assert list(itertools.islice(found, 2)) == [(0, 1), (0, 2)]
    assert list(found.boxes()) == [((0, 1), (1, 2**10)), ((1, 2**52), (0, 2**10))]


@pytest.mark.parametrize("order", ["C", "F"])
def test_inner_chunks_are_those_that_the_indexes_do_not_have(order):
    filters = [] if order == "C" else [{"name": "transpose", "configuration": {"order": [1, 0]}}]
    codecs = [
        *filters,
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 3] if order == "C" else [3, 2],
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            },
        },
    ]
    array = omnizarr.create_array({}, shape=(7, 11), chunks=(4, 6), dtype="int16", fill_value=0, codecs=codecs)
    rng = np.random.default_rng(1)
    values = np.zeros((7, 11), "int16")
    for row, column in {(int(a), int(b)) for a, b in rng.integers(0, 4, (6, 2))}:
        values[2 * row : 2 * row + 2, 3 * column : 3 * column + 3] = 1
        array[2 * row : 2 * row + 2, 3 * column : 3 * column + 3] = 1
    found = omnizarr.missing(array, inner=True)
    expected = [
        (row, column)
        for row in range(4)
        for column in range(4)
        if not values[2 * row : 2 * row + 2, 3 * column : 3 * column + 3].any()
    ]
    assert list(found) == expected
    assert found.unit == "inner chunk"
    assert omnizarr.missing(array).unit == "shard"
    with pytest.raises(ValueError, match="no keys"):
        found.keys()


def test_store_that_cannot_list_is_asked_for_each_chunk(sparse):
    array, gone = sparse

    assert list(omnizarr.missing(UnlistableStore(array.store, admits=False))) == sorted(gone)


def test_group_is_refused():
    with pytest.raises(omnizarr.errors.ContainsGroupError):
        omnizarr.missing(omnizarr.create_group({}))


@given(st.data())
def test_gaps_of_both_kinds_are_the_complement(data):
    size = data.draw(st.integers(0, 70))
    there = data.draw(st.sets(st.integers(0, max(size - 1, 0)))) if size else set()
    for kind in (absent._Bits, absent._Numbers):
        found = kind(size)
        for number in there:
            found.add(number)
        assert found.count() == len(there)
        gaps = list(found.gaps())
        assert [n for start, stop in gaps for n in range(start, stop)] == sorted(set(range(size)) - there)
        assert all(stop < start for (_, stop), (start, _) in itertools.pairwise(gaps))


def test_gaps_go_on_from_one_block_to_the_next(monkeypatch):
    monkeypatch.setattr(absent, "_BLOCK", 2)
    found = absent._Bits(60)
    for number in (0, 1, 31, 59):
        found.add(number)
    assert list(found.gaps()) == [(2, 31), (32, 59)]
    assert found.count() == 4


@given(st.data())
def test_boxes_of_a_run_are_its_chunks(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=3)))
    total = int(np.prod(shape))
    start = data.draw(st.integers(0, total - 1))
    stop = data.draw(st.integers(start + 1, total))
    found = covered([tuple(slice(*ends) for ends in box) for box in absent._boxes(start, stop, shape)], shape)
    assert found.ravel().tolist() == [int(start <= n < stop) for n in range(total)]
