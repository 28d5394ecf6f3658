"""How many chunks are in flight: `bytes_in_flight` bounds them in both engines, `read_many` and `aio`."""

import asyncio

import numpy as np
import pytest

import omnizarr
from omnizarr.engine import budget, reference
from omnizarr.stores import MemoryStore
from omnizarr.stores.asynchronous import called
from tests.engine.both import needs_native
from tests.fakes import FaultyStore

VALUES = np.arange(96, dtype="i4").reshape(8, 12)
CHUNK = 2 * 2 * 4  # bytes
ENGINES = ["reference", pytest.param("native", marks=needs_native)]


def array_with(bytes_in_flight, engine, concurrency=24):
    """Return an array of 24 chunks in a store that answers late, opened while the setting holds."""
    store = FaultyStore(MemoryStore(), delay=0.02, concurrency=concurrency)
    omnizarr.create_array(store, data=VALUES, chunks=(2, 2))
    with omnizarr.config.set({"bytes_in_flight": bytes_in_flight, "engine": engine}):
        array = omnizarr.open_array(store, mode="r+")
    store.reset()
    return array


@pytest.mark.parametrize("engine", ENGINES)
def test_read_keeps_within_the_bytes_in_flight(engine):
    array = array_with(6 * CHUNK, engine)
    np.testing.assert_array_equal(array[...], VALUES)
    assert 5 <= array.store.max_in_flight <= 6


@pytest.mark.parametrize("engine", ENGINES)
def test_write_keeps_within_the_bytes_in_flight(engine):
    array = array_with(6 * CHUNK, engine)
    array[...] = VALUES + 1
    assert 5 <= array.store.max_in_flight <= 6
    np.testing.assert_array_equal(array[...], VALUES + 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_many_selections_keep_within_the_bytes_in_flight(engine):
    array = array_with(6 * CHUNK, engine)
    omnizarr.read_many([(array, ...), (array, ...)])
    assert 5 <= array.store.max_in_flight <= 6


@pytest.mark.parametrize("engine", ENGINES)
def test_four_chunks_are_in_flight_however_large_they_are(engine):
    array = array_with(1, engine)
    np.testing.assert_array_equal(array[...], VALUES)
    assert 3 <= array.store.max_in_flight <= 4


@pytest.mark.parametrize("engine", ENGINES)
def test_by_default_small_chunks_are_bounded_by_the_store_alone(engine):
    array = array_with(omnizarr.config.get("bytes_in_flight"), engine)
    np.testing.assert_array_equal(array[...], VALUES)
    assert array.store.max_in_flight > 12


def test_setting_counts_when_an_array_is_opened():
    array = array_with(6 * CHUNK, "reference")
    assert array._bind()[0].most_in_flight == 6
    assert array.with_config({"bytes_in_flight": 7 * CHUNK})._bind()[0].most_in_flight == 7


def test_coroutines_keep_within_the_bytes_in_flight():
    array = array_with(6 * CHUNK, "reference")
    binding = array._bind()[0]
    assert asyncio.run(called(reference._share, binding, 24, None, 0))[0] == 6


def test_chunks_of_unknown_size_are_treated_as_half_a_mebibyte():
    assert budget.chunks_in_flight(10 * 2**20, None) == 20


@pytest.mark.parametrize("value", [-1, "1 MB more", 1.5, True, None])
def test_setting_that_is_no_number_of_bytes_is_refused(value):
    with pytest.raises(ValueError, match="bytes_in_flight"):
        omnizarr.config.set(bytes_in_flight=value)
