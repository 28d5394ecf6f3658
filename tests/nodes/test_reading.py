import asyncio
import time

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine
from omnizarr.errors import ChunkError, SelectionError, ShapeError
from omnizarr.nodes import reading
from omnizarr.stores import MemoryStore
from tests.engine.both import needs_native
from tests.fakes import FaultyStore

SETTLED = 0.15
"""Seconds after which a file that was written has a stamp."""
VALUES = np.arange(96, dtype="i4").reshape(8, 12)


def arrays_in(*stores):
    """An array of 24 chunks in each store, each with values of its own."""
    return [
        omnizarr.create_array(store, name="a", data=VALUES * (number + 1), chunks=(2, 2))
        for number, store in enumerate(stores)
    ]


def far(delay=0.0, concurrency=8, **kwargs):
    return FaultyStore(MemoryStore(), delay=delay, concurrency=concurrency, **kwargs)


def test_results_are_those_of_the_selections_one_by_one(tmp_path):
    one, two, three = arrays_in({}, far(), tmp_path / "a")
    selections = [slice(1, 5, 2), (..., -1), (3, 4), ([1, 7], [0, 0]), VALUES > 40, (None, 2), slice(0, 0)]
    requests = [(array, selection) for array in (one, two, three) for selection in selections]
    found = omnizarr.read_many(iter(requests))
    for (number, result), (_, selection) in zip(enumerate(found), requests, strict=True):
        expected = (VALUES * (number // len(selections) + 1))[selection]
        np.testing.assert_array_equal(result, expected)
        assert type(result) is type(expected)


def test_nothing_asked_for_is_nothing_read():
    assert omnizarr.read_many([]) == []


@needs_native
@pytest.mark.parametrize("read", [omnizarr.read_many, lambda wanted: asyncio.run(aio.read_many(wanted))])
def test_arrays_without_selections_are_refused_with_how_to_write_it(read):
    array = omnizarr.create_array({}, data=np.arange(3))
    for wanted in ([array, array], [(array,)], ["ab"], [(array, 0, 1)]):
        with pytest.raises(TypeError, match=r"not a pair of an array and a selection: .*write \(array, \.\.\.\)"):
            read(wanted)


def test_selections_of_one_array_share_decoded_chunks(tmp_path, monkeypatch):
    caches = []

    def shared_chunks(binding):
        caches.append(engine.native.shared_chunks(binding))
        return caches[-1]

    monkeypatch.setattr(reading.engine, "shared_chunks", shared_chunks)
    one, two = arrays_in(tmp_path / "one", tmp_path / "two")
    one, two = one.with_config({"engine": "native"}), two.with_config({"engine": "native"})
    time.sleep(SETTLED)
    found = omnizarr.read_many([(one, (slice(0, 3), slice(0, 3))), (two, ...), (one, (slice(1, 4), 0))])
    np.testing.assert_array_equal(found[0], VALUES[:3, :3])
    np.testing.assert_array_equal(found[1], VALUES * 2)
    np.testing.assert_array_equal(found[2], VALUES[1:4, 0])
    assert [cache.nbytes for cache in caches] == [4 * 2 * 2 * 4]  # four chunks of 2 x 2 numbers


def test_fields_are_selected():
    values = np.array([(1, 2.0), (3, 4.0)], [("x", "i4"), ("y", "f8")])
    array = omnizarr.create_array({}, data=values)
    (found,) = omnizarr.read_many([(array, ("y", slice(1, 2)))])
    assert found.tolist() == [4.0]


def test_arrays_given_are_filled():
    one, two = arrays_in({}, far())
    target = np.zeros((2, 12), "i4")
    wider = np.zeros((12, 8), "f8").T
    found = omnizarr.read_many([(one, slice(2, 4)), (two, ...), (two, (0, 1))], out=[target, wider, None])
    assert found[0] is target
    assert found[1] is wider
    np.testing.assert_array_equal(target, VALUES[2:4])
    np.testing.assert_array_equal(wider, VALUES * 2)
    assert found[2] == 2


def test_array_given_may_be_a_view():
    (array,) = arrays_in(far())
    memory = np.zeros((20, 12), "i4")
    (found,) = omnizarr.read_many([(array, ...)], out=[memory[1:17:2]])
    assert found.base is memory
    np.testing.assert_array_equal(memory[1:17:2], VALUES)
    assert not memory[::2].any()


def test_array_of_another_shape_is_refused():
    (array,) = arrays_in({})
    with pytest.raises(ShapeError):
        omnizarr.read_many([(array, slice(0, 2))], out=[np.zeros((3, 12), "i4")])
    with pytest.raises(ShapeError):
        omnizarr.read_many([(array, slice(0, 2))], out=[])


def test_nothing_is_read_if_one_selection_is_not_valid():
    one, two = arrays_in(far(), far())
    one.store.reset()
    with pytest.raises(SelectionError):
        omnizarr.read_many([(one, ...), (two, 99)])
    assert not one.store.log


def test_requests_of_all_are_under_way_together():
    stores = [far(delay=0.15, concurrency=24), far(delay=0.15, concurrency=24)]
    arrays = arrays_in(*stores)
    for store in stores:
        store.reset()
    omnizarr.read_many([(array, ...) for array in arrays])
    assert all(store.max_in_flight > 1 for store in stores)


def test_no_more_requests_are_under_way_than_a_store_wants():
    (array,) = arrays_in(far(delay=0.001, concurrency=3))
    array.store.reset()
    omnizarr.read_many([(array, ...), (array, ...)])
    assert 2 <= array.store.max_in_flight <= 3


def test_no_more_requests_are_under_way_than_the_caller_wants():
    stores = [far(delay=0.001, concurrency=24), far(delay=0.001, concurrency=24)]
    arrays = arrays_in(*stores)
    for store in stores:
        store.reset()
    omnizarr.read_many([(array, ...) for array in arrays], concurrency=1)
    assert [store.max_in_flight for store in stores] == [1, 1]


def test_stores_take_turns():
    stores = [far(concurrency=2), far(concurrency=2)]
    arrays = arrays_in(*stores)
    for store in stores:
        store.reset()
    stores[0].fail("get", 13)
    with pytest.raises(omnizarr.errors.StoreError):
        omnizarr.read_many([(array, ...) for array in arrays], concurrency=1)
    assert stores[1].requests["get"] >= 12


def test_broken_chunk_is_named():
    stores = [far(), far()]
    one, two = arrays_in(*stores)
    stores[1].store.set("a/c/3/5", b"no zstd")
    with pytest.raises(ChunkError) as caught:
        omnizarr.read_many([(one, ...), (two, ...)])
    assert (caught.value.key, caught.value.coords) == ("a/c/3/5", (3, 5))
