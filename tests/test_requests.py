"""How many requests it takes: what stores that are far away are asked for, and how much of it side by side."""

import numpy as np
import obstore.store
import pytest

import omnizarr
from omnizarr.stores import MemoryStore, ObjectStore
from omnizarr.stores.faults import FaultyStore

FAR = 32  # requests at once


def far(store, delay=0.0):
    """Return a store as one that is far away; it counts."""
    return FaultyStore(store, concurrency=FAR, delay=delay)


@pytest.fixture(scope="module")
def hierarchy():
    """A group of 500 arrays, with consolidated metadata in both formats."""
    made = {}
    for zarr_format in (2, 3):
        store = MemoryStore()
        root = omnizarr.open_group(store, mode="w", zarr_format=zarr_format)
        for number in range(500):
            root.create_array(f"a{number}", shape=(4,), dtype="f4", attributes={"number": number})
        omnizarr.consolidate_metadata(store)
        made[zarr_format] = store
    return made


def test_consolidated_hierarchy_of_500_arrays_opens_with_one_request(hierarchy):
    store = far(hierarchy[3])
    root = omnizarr.open_group(store)
    numbers = {array.attrs["number"] for _, array in root.arrays()}
    assert numbers == set(range(500))
    assert store.log == [("get", "zarr.json")]


def test_consolidated_hierarchy_of_v2_opens_with_four(hierarchy):
    store = far(hierarchy[2])
    root = omnizarr.open_group(store)
    assert len(dict(root.members())) == 500
    assert sorted(store.log) == [("get", name) for name in (".zattrs", ".zgroup", ".zmetadata", "zarr.json")]


@pytest.mark.parametrize("opener", [omnizarr.open, omnizarr.open_array])
def test_array_opens_with_one_request(hierarchy, opener):
    store = far(hierarchy[3])
    assert opener(store, path="a7", mode="r").attrs["number"] == 7
    assert store.log == [("get", "a7/zarr.json")]


def test_array_of_v2_opens_with_two_requests_at_once_if_the_format_is_said(hierarchy):
    store = far(hierarchy[2], delay=0.02)
    assert omnizarr.open_array(store, path="a7", zarr_format=2).attrs["number"] == 7
    assert sorted(store.log) == [("get", "a7/.zarray"), ("get", "a7/.zattrs")]
    assert store.max_in_flight == 2


def test_members_without_consolidation_are_a_listing_and_gets_side_by_side():
    inner = MemoryStore()
    root = omnizarr.open_group(inner, mode="w")
    for number in range(1000):
        root.create_array(f"a{number}", shape=(4,), dtype="f4")
    store = far(inner, delay=0.005)
    members = omnizarr.open_group(store).members()
    assert [name for name, _ in members] == sorted(f"a{number}" for number in range(1000))
    assert store.requests == {"get": 1001, "list_dir": 1}
    assert store.max_in_flight == FAR


def test_groups_of_one_depth_are_looked_into_side_by_side():
    inner = MemoryStore()
    root = omnizarr.open_group(inner, mode="w")
    for number in range(20):
        root.create_array(f"g{number}/b", shape=(4,), dtype="f4")
    store = far(inner, delay=0.02)
    assert len(omnizarr.open_group(store).members(max_depth=None)) == 40
    assert store.requests == {"get": 41, "list_dir": 21}
    assert store.max_in_flight == 20


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_chunks_arrive_side_by_side_one_request_each(engine):
    values = np.arange(100 * 64, dtype="f8").reshape(100, 64)
    inner = MemoryStore()
    omnizarr.create_array(inner, data=values, chunks=(1, 64))
    with omnizarr.config.set({"engine": engine}):
        store = far(inner, delay=0.02)
        array = omnizarr.open_array(store)
        store.reset()
        np.testing.assert_array_equal(array[:], values)
        assert sum(store.requests.values()) == 100
        assert store.max_in_flight == FAR


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_chunks_are_sent_side_by_side_one_request_each(engine):
    values = np.arange(100 * 64, dtype="f8").reshape(100, 64)
    store = far(MemoryStore(), delay=0.02)
    with omnizarr.config.set({"engine": engine}):
        array = omnizarr.create_array(store, shape=values.shape, dtype="f8", chunks=(1, 64))
        store.reset()
        array[:] = values
        assert store.requests == {"set": 100}
        assert store.max_in_flight == FAR
        np.testing.assert_array_equal(array[:], values)


@pytest.mark.parametrize(("concurrency", "most"), [(None, 4), (2, 2)])
@pytest.mark.parametrize("engine", ["reference", "native"])
def test_large_chunks_are_few_at_once(engine, concurrency, most, monkeypatch):
    # 128 MiB each: 256 MiB are two of them, and four are the least.
    inner = MemoryStore()
    chunk = 128 * 2**20
    omnizarr.create_array(inner, shape=(8 * chunk,), chunks=(chunk,), dtype="u1", fill_value=7, compressors="auto")
    store = far(inner, delay=0.05)
    with omnizarr.config.set({"engine": engine}):
        array = omnizarr.open_array(store, concurrency=concurrency)
        store.reset()
        assert (array[:: chunk // 2] == 7).all()
        assert store.max_in_flight == most


# -- shards -----------------------------------------------------------------------------


SHARDED = np.arange(64 * 4096, dtype="f8").reshape(64, 4096)


@pytest.fixture(scope="module")
def sharded():
    """A store of S3's kind in memory, with one shard of 2 MiB in it: 64 x 32 inner chunks of 1 KiB."""
    store = ObjectStore(obstore.store.MemoryStore(), concurrency=FAR)
    omnizarr.create_array(store, data=SHARDED, chunks=(1, 128), shards=(64, 4096), compressors=None)
    return store


@pytest.mark.parametrize(
    ("window", "spans"),
    [
        ((slice(0, 1), slice(0, 4096)), 1),  # a row: one run
        ((slice(0, 4), slice(128, 256)), 1),  # gaps of 31 KiB: closed
        ((slice(0, 64, 16), slice(0, 128)), 4),  # gaps of half a MiB: left
    ],
)
def test_window_over_a_shard_is_its_index_and_coalesced_ranges(sharded, window, spans):
    store = FaultyStore(sharded)
    array = omnizarr.open_array(store)
    store.reset()
    asked = []
    original = store.store.pinned

    def pinned(key):
        read = original(key)

        def watched(parts):
            asked.append(parts)
            return read(parts)

        return watched

    store.store.pinned = pinned
    try:
        np.testing.assert_array_equal(array[window], SHARDED[window])
    finally:
        del store.store.pinned
    index, ranges = asked
    assert index == [(-(64 * 32 * 16 + 4), None)]
    assert len(ranges) == spans


def test_whole_shard_is_one_request(sharded):
    store = FaultyStore(sharded)
    array = omnizarr.open_array(store)
    store.reset()
    np.testing.assert_array_equal(array[:], SHARDED)
    assert sum(store.requests.values()) == 1


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize("layout", [{"chunks": (1, 128), "shards": (64, 4096)}, {"chunks": (64, 4096)}])
def test_element_of_a_large_chunk_in_a_store_nearby_is_not_all_of_it(engine, layout):
    inner = MemoryStore()
    omnizarr.create_array(inner, data=SHARDED, compressors=None, **layout)
    store = FaultyStore(inner)
    with omnizarr.config.set({"engine": engine}):
        array = omnizarr.open_array(store)
        store.reset()
        assert array[3, 5] == SHARDED[3, 5]
        assert store.bytes_read < SHARDED.nbytes // 20
