"""Advice on arrays that exist, and on shapes."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import MemoryStore, MetricsStore, verbs
from tests.fakes import UnlistableStore


@pytest.fixture
def maps():
    """An array in chunks of single maps, of values that are compressed well."""
    array = omnizarr.create_array(
        {}, shape=(40, 200, 300), chunks=(1, 200, 300), dtype="float32", dimension_names=["time", "y", "x"]
    )
    array[:] = np.random.default_rng(0).integers(0, 1000, array.shape)
    return array


def test_own_layout_is_compared_with_that_advised(maps):
    advice = omnizarr.advise(maps, reads="time series")
    assert (advice.current.chunks, advice.current.shards) == ((1, 200, 300), None)
    now, advised = advice.reads(advice.current)[0], advice.reads()[0]
    assert now.requests == 40
    assert advised.requests <= 2
    assert advised.nbytes < now.nbytes


def test_ratio_is_that_of_stored_chunks(maps):
    advice = omnizarr.advise(maps)
    stored = sum(maps.store.size(f"c/{at}/0/0") for at in range(40))
    assert advice.sampled == 16
    assert advice.ratio == pytest.approx(maps.nbytes / stored, rel=0.1)
    given = omnizarr.advise(maps, ratio=2)
    assert (given.ratio, given.sampled) == (2, 0)


def test_ratio_of_shards_counts_inner_chunks_that_are_in_the_array():
    array = omnizarr.create_array({}, shape=(50, 70), chunks=(10, 10), shards=(40, 40), dtype="f8", compressors=None)
    array[:] = 1 + np.random.default_rng(0).random(array.shape)
    assert omnizarr.advise(array).ratio == pytest.approx(1, abs=0.1)


def test_store_that_cannot_list_is_asked_for_some_chunks(maps):
    assert omnizarr.advise(UnlistableStore(maps.store, admits=False)).ratio == omnizarr.advise(maps).ratio


def test_what_is_advised_can_be_created_and_takes_what_was_said():
    advice = omnizarr.advise(shape=(600, 300, 400), dtype="int16", reads=["time series", "maps"], place="object")
    store = MetricsStore(MemoryStore())
    array = omnizarr.create_array(
        store, shape=advice.shape, dtype="int16", chunks=advice.chunks, shards=advice.shards, compressors=None
    )
    array[...] = np.random.default_rng(1).integers(1, 30000, advice.shape, "int16")
    assert sum(1 for key in store.list() if key != "zarr.json") == advice.advised.objects
    array = omnizarr.open_array(store, mode="r")
    series, whole_maps, everything = advice.reads()
    rng = np.random.default_rng(2)
    places = [tuple(map(int, rng.integers(0, advice.shape))) for _ in range(40)]
    for expected, selections in (
        (series, [(slice(None), y, x) for _, y, x in places]),
        (whole_maps, [(t, slice(None), slice(None)) for t, _, _ in places]),
        (everything, [...]),
    ):
        counts = []
        for selection in selections:
            store.reset()
            array[selection]
            counts.append(store.report().total.requests)
        assert np.mean(counts) == pytest.approx(expected.requests, rel=0.15)
        assert max(counts) <= expected.most_requests


def test_formats_without_shards_get_none(maps):
    assert omnizarr.advise(shape=(10**4, 10**4), dtype="f8", zarr_format=2).shards is None
    assert omnizarr.advise(shape=(10**4, 10**4), dtype="f8").shards is not None
    assert omnizarr.advise(shape=(10**4, 10**4), dtype="f8", shards=False).shards is None
    old = omnizarr.create_array({}, shape=(10**4, 10**4), dtype="f8", zarr_format=2)
    assert omnizarr.advise(old).shards is None
    assert omnizarr.advise(old, zarr_format=3).shards is not None


def test_elements_of_any_size_are_judged_by_what_is_stored():
    array = omnizarr.create_array({}, shape=(1000,), chunks=(100,), dtype="string", compressors=None)
    with pytest.raises(ValueError, match="no chunk is stored"):
        omnizarr.advise(array)
    array[:] = np.array(["abcdefgh"] * 1000, np.dtypes.StringDType())
    assert omnizarr.advise(array).chunks == (1000,)


def test_nothing_is_written(maps):
    before = dict(verbs.list_sizes(maps.store, ""))
    omnizarr.advise(maps)
    assert dict(verbs.list_sizes(maps.store, "")) == before


def test_arguments_that_are_not_valid(maps):
    with pytest.raises(ValueError, match="give an array, or shape"):
        omnizarr.advise()
    with pytest.raises(ValueError, match="give an array, or shape"):
        omnizarr.advise(maps, shape=(3,))
    with pytest.raises(ValueError, match="give the data type"):
        omnizarr.advise(shape=(3,))
    with pytest.raises(ValueError, match="place='moon'"):
        omnizarr.advise(maps, place="moon")
    with pytest.raises(ValueError, match="ratio=-1"):
        omnizarr.advise(maps, ratio=-1)
    with pytest.raises(ValueError, match="no fixed size"):
        omnizarr.advise(shape=(3,), dtype="string")


def test_advice_is_json(maps):
    found = json.loads(json.dumps(omnizarr.advise(maps).to_dict()))
    assert found["current"]["chunks"] == [1, 200, 300]
    assert [read["name"] for read in found["advised"]["reads"]] == ["time series", "maps", "all"]


def test_it_says_what_automatic_shards_would_be_and_what_small_writes_cost():
    shape = (8760, 721, 1440)
    said = " ".join(omnizarr.advise(shape=shape, dtype="float32", reads="maps").reasons)
    made = omnizarr.create_array({}, shape=shape, dtype="float32", shards="auto")
    shards, chunks = ("×".join(map(str, lengths)) for lengths in (made.shards, made.chunks))
    assert f'shards="auto" would make shards of {shards} from chunks of {chunks}' in said
    assert "array.writer()" in said
    existing = omnizarr.create_array({}, shape=shape, dtype="float32", chunks=(24, 90, 90))
    assert 'shards="auto"' not in " ".join(omnizarr.advise(existing, reads="maps").reasons)
    alone = omnizarr.advise(shape=shape, dtype="float32", reads="maps", shards=False)
    assert "array.writer()" not in " ".join(alone.reasons)
