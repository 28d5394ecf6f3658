"""Of a grid of very many chunks, only those that are stored are asked for."""

import numpy as np
import pytest

import omnizarr
from omnizarr.model import grids
from omnizarr.stores import MemoryStore
from omnizarr.tools.streaming.regions import Regions
from tests.fakes import FaultyStore

LENGTH = 10**15
STORED = {0: 1, 77: 2, LENGTH - 1: 3}


@pytest.fixture
def vast():
    store = FaultyStore(MemoryStore())
    array = omnizarr.create_array(store, shape=LENGTH, chunks=1, dtype="u1", compressors=None)
    for index, value in STORED.items():
        array[index] = value
    store.log.clear()
    return store


def chunks_asked(store):
    return [key for verb, key in store.log if verb.startswith(("get", "read")) and key.startswith("c/")]


@pytest.mark.parametrize(
    "use",
    [
        omnizarr.stat,
        omnizarr.digest,
        lambda store: omnizarr.convert(store, MemoryStore(), zarr_format=2),
        lambda store: omnizarr.convert(store, MemoryStore(), chunks=10**6),
    ],
    ids=["stat", "digest", "convert", "convert to larger chunks"],
)
def test_tools_ask_for_stored_chunks_only(vast, use):
    with omnizarr.config.set(engine="reference"):
        use(vast)
    assert {"c/0", "c/77", f"c/{LENGTH - 1}"} <= set(chunks_asked(vast))
    assert len(chunks_asked(vast)) < 50


def test_values_of_a_vast_array_arrive(vast):
    target = MemoryStore()
    omnizarr.convert(vast, target, chunks=10**6)
    array = omnizarr.open_array(target, mode="r")
    expected = np.zeros(100, "u1")
    expected[[0, 77]] = 1, 2
    np.testing.assert_array_equal(array[:100], expected)
    assert array[-1] == 3
    assert array[10**14] == 0


def test_regions_of_a_wide_box_are_made_when_they_are_due():
    regions = Regions(grids.bind(grids.regular((1,)), (2**62,)), (1,))
    found = regions.holding([(slice(10, 2**61),), (slice(5, 6),), (slice(2**40, 2**62),)])
    assert [next(found) for _ in range(3)] == [5, 10, 11]


def test_lengths_of_too_many_chunks_are_refused(vast):
    array = omnizarr.open_array(vast, mode="r")
    with pytest.raises(omnizarr.errors.MetadataError, match=r"at most 10,000,000"):
        _ = array.read_chunk_sizes
    assert next(iter(array)) == 1
