"""A conversion of a source that changes meanwhile has what it holds at the end, or says what it has not."""

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import LocalStore, MemoryStore
from tests.fakes import FaultyStore, WatchedStore

HOWS = {"same chunks": {}, "other chunks": {"chunks": (5,)}}


def converted(old, change, **options):
    """Convert, and change the source once a chunk is stored; return the report and the target."""
    target, changes = MemoryStore(), [change]

    def before(verb, key):
        if verb == "set" and "/c/" in key and changes:
            changes.pop()()

    return omnizarr.convert(old, WatchedStore(target, before), **options), target


@pytest.fixture(params=["directory", "remote"])
def store(request, tmp_path):
    place = LocalStore(tmp_path / "old.zarr") if request.param == "directory" else MemoryStore()
    return FaultyStore(place, concurrency=8) if request.param == "remote" else place


def fill(store, chunks):
    """Make arrays with this many chunks, of which the last ones are missing."""
    root = omnizarr.create_group(store, zarr_format=2)
    for name in "ab":
        array = root.create_array(name, shape=2 * chunks, chunks=2, dtype="i4", fill_value=7, compressors=None)
        array[: 2 * chunks - 4] = np.arange(2 * chunks - 4)
    return root


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("chunks", [5, 20, 300])
def test_chunks_that_are_added_are_in_it(store, chunks, how, verify):
    root = fill(store, chunks)

    def add():
        root["a"][-2:] = -1
        root["b"][-4:-2] = -2

    done, target = converted(store, add, zarr_format=3, verify=verify, **HOWS[how])
    found = omnizarr.open_group(target)
    assert all(np.array_equal(found[name][...], root[name][...]) for name in "ab")
    assert (done.verified, "/a" in str(done)) == (verify, True)
    assert "converted twice" in str(done)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("chunks", [5, 20, 300])
def test_chunks_that_are_removed_are_not_in_it(store, chunks, how):
    root = fill(store, chunks)
    done, target = converted(store, lambda: store.delete("b/0"), zarr_format=3, **HOWS[how])
    found = omnizarr.open_group(target)
    assert found["b"][:2].tolist() == [7, 7]
    assert all(np.array_equal(found[name][...], root[name][...]) for name in "ab")
    assert done.verified


def test_a_source_that_goes_on_changing_is_named():
    store, target, number = MemoryStore(), MemoryStore(), iter(range(20, 100))
    array = omnizarr.create_array(store, shape=100, chunks=1, dtype="i4", zarr_format=2)
    array[:20] = 1

    def before(verb, key):
        if verb == "set" and key.startswith("c/"):
            array[next(number)] = 2

    done = omnizarr.convert(store, WatchedStore(target, before), zarr_format=3, verify=False)
    assert "goes on changing" in str(done)


def test_a_source_that_stays_is_listed_twice_at_most():
    source = FaultyStore(MemoryStore(), concurrency=8)
    fill(source, 5)
    source.log.clear()
    omnizarr.convert(source, FaultyStore(MemoryStore(), concurrency=8), zarr_format=3)
    assert [asked for asked in source.log if asked[0] == "list_prefix"] == [("list_prefix", "")] * 2
