"""The smallest and largest elements of bins, beside NumPy."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.errors import ChunkError
from omnizarr.nodes import extremes
from omnizarr.nodes.extremes import Decoded, read
from omnizarr.stores.wrap.observed import ObservedStore


class Noting(ObservedStore):
    def __init__(self, store):
        super().__init__(store)
        self.keys = set()

    def _begin(self, verb, key, span=None):
        self.keys.add(key)
        return super()._begin(verb, key, span)


def decoded(stored):
    return Decoded(stored, stored.astype("f8"))


def bins_of(values, width):
    return [values[at : at + width] for at in range(0, len(values), width)]


def ends_of(bins):
    return [[np.nan if np.isnan(each).all() else find(each) for each in bins] for find in (np.nanmin, np.nanmax)]


numbers = st.lists(st.sampled_from([-np.inf, -1.5, 0, 2, 7, np.inf, np.nan]), min_size=1, max_size=90)


@given(
    values=numbers,
    chunk=st.integers(1, 40),
    step=st.sampled_from([1, 2, 3, -1, -2]),
    width=st.integers(1, 50),
    block=st.sampled_from([4, 16, 2**20]),
)
def test_every_element_is_looked_at(values, chunk, step, width, block):
    data = np.array(values, "f8")
    array = omnizarr.create_array({}, data=data, chunks=(chunk,))
    line = range(len(data))[::step]
    with mock.patch.multiple(extremes, _BLOCK=block, _IN_CACHE=block):
        found = read(array, [line], 0, width, decoded)
    chosen = data[::step]
    bins = bins_of(chosen, found.width)
    low, high = ends_of(bins)
    assert found.width >= width
    assert found.share == 1
    np.testing.assert_array_equal(found.low, low)
    np.testing.assert_array_equal(found.high, high)
    np.testing.assert_array_equal(found.is_empty, np.isnan(low))
    known = ~found.is_empty
    np.testing.assert_array_equal(chosen[found.low_at][known], np.array(low)[known])
    np.testing.assert_array_equal(chosen[found.high_at][known], np.array(high)[known])
    assert found.counts == (np.isnan(chosen).sum(), 0, len(chosen))
    assert found.places.tolist() == list(line[:: found.width])
    pairs, is_empty, at = found.line()
    assert len(pairs) == len(is_empty) == len(at)
    assert (np.diff(at) > 0).all()
    assert at[-1] < len(chosen)
    assert {*pairs[~is_empty].tolist()} == {*found.low[known].tolist(), *found.high[known].tolist()}


@given(length=st.integers(1, 300), chunk=st.integers(1, 20), width=st.integers(1, 90), chunks=st.integers(1, 40))
def test_reading_is_bounded(length, chunk, width, chunks):
    """Whole chunks are read, at least one of each bin, and no more than the budget otherwise."""
    data = np.random.default_rng(length).normal(size=length)
    store = Noting(omnizarr.storage.MemoryStore())
    array = omnizarr.create_array(store, data=data, chunks=(chunk,))
    store.keys.clear()
    found = read(array, [range(length)], 0, width, decoded, most_bytes=chunks * chunk * 8)
    bins = bins_of(data, width)
    assert len(found.low) == len(bins)
    for low, high, each in zip(found.low, found.high, bins, strict=True):
        assert low in each
        assert high in each
        assert low <= high
    touched = {key for key in store.keys if key.startswith("c/")}
    assert touched
    bound = max(chunks, len(bins)) if found.share < 1 else max(chunks, len(bins) if width == 1 else 0)
    assert len(touched) <= bound + 1


def test_a_spike_among_a_million():
    data = np.zeros(1_000_000, "i2")
    data[654_321] = 900
    array = omnizarr.create_array({}, data=data, chunks=(10_000,))
    found = read(array, [range(1_000_000)], 0, 5000, decoded)
    assert found.high.tolist() == [0] * 130 + [900] + [0] * 69
    assert int(found.high_at[130]) == 654_321
    assert found.high.dtype == "i2"


def test_a_line_through_other_dimensions():
    data = np.arange(600).reshape(100, 2, 3)
    array = omnizarr.create_array({}, data=data, chunks=(7, 1, 2))
    found = read(array, [range(10, 90), 1, 2], 0, 16, decoded)
    np.testing.assert_array_equal(found.low, data[10:90:16, 1, 2])
    np.testing.assert_array_equal(found.high, data[25:90:16, 1, 2])


def test_broken_chunks_raise_or_are_empty():
    store = {}
    array = omnizarr.create_array(store, data=np.arange(40.0), chunks=(10,), compressors="gzip")
    store["c/1"] = b"no gzip"
    with pytest.raises(ChunkError):
        read(array, [range(40)], 0, 5, decoded)
    found = read(array, [range(40)], 0, 5, decoded, skips_broken=True)
    assert found.is_empty.tolist() == [False, False, True, True, False, False, False, False]
    assert "gzip" in str(found.error)
    np.testing.assert_array_equal(found.low[4:], [20, 25, 30, 35])


def test_reading_stops_when_asked_to():
    array = omnizarr.create_array({}, data=np.arange(100.0), chunks=(10,))
    with mock.patch.multiple(extremes, _BLOCK=10), pytest.raises(KeyboardInterrupt):
        read(array, [range(100)], 0, 5, decoded, between=mock.Mock(side_effect=[None, None, KeyboardInterrupt]))


@pytest.mark.parametrize("length", [10**5, 10**15])
def test_number_of_chunks_is_bounded(length):
    store = Noting(omnizarr.storage.MemoryStore())
    array = omnizarr.create_array(store, shape=(length,), chunks=(1,), dtype="u1")
    array[length // 2] = 7
    store.keys.clear()
    found = read(array, [range(length)], 0, length // 100, decoded)
    assert found.share < 1
    assert len(store.keys) < 2**15
