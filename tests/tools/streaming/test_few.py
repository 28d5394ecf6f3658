"""`omnizarr.tools.streaming.few`: which chunks are stored, told by one listing."""

import numpy as np
import pytest

import omnizarr
from omnizarr.nodes.location import StorePath
from omnizarr.stores import MemoryStore
from omnizarr.tools.streaming.few import FewChunks
from tests.fakes import FaultyStore, UnlistableStore

KEYS = [
    "zarr.json",
    "a/zarr.json",
    "a/c/0",
    "a/c/1",
    "b/zarr.json",
    "g/zarr.json",
    "g/README",
    "g/many/zarr.json",
    *(f"g/many/c/{number}" for number in range(9)),
]


@pytest.fixture
def top():
    return StorePath(FaultyStore(MemoryStore(dict.fromkeys(KEYS, b""))))


def test_keys_of_arrays_that_have_few_are_kept(top):
    few = FewChunks(top, {"a", "b", "g/many"})
    assert list(few.noting(iter(KEYS))) == KEYS
    assert few.of("a") == ("c/0", "c/1")
    assert few.of("b") == ()
    assert few.of("g/many") is None


def test_nothing_is_known_before_a_listing_ended(top):
    few = FewChunks(top, {"a", "b"})
    next(few.noting(iter(KEYS)))
    assert few.of("b") is None


def test_listing_that_would_take_longer_than_one_for_each_array_is_given_up(top, monkeypatch):
    few = FewChunks(top, {"a", "b"})
    monkeypatch.setattr(top.store, "list_prefix", lambda _: (f"b/c/{number}" for number in range(10**9)))
    few.look()
    assert few.of("a") is None


def test_name_that_no_store_keeps_apart_from_two_is_not_believed(top, monkeypatch):
    few = FewChunks(top, {"a", "b"})
    monkeypatch.setattr(top.store, "list_prefix", lambda _: ["a/c/0\0c/1"])
    few.look()
    assert few.of("a") is None


def test_stores_that_cannot_list_are_not_asked():
    few = FewChunks(StorePath(UnlistableStore(MemoryStore(dict.fromkeys(KEYS, b"")))), {"a", "b"})
    few.look()
    assert few.of("a") is None


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_digests_and_statistics_are_the_same_with_few_chunks_and_many(zarr_format):
    near = MemoryStore()
    root = omnizarr.open_group(near, mode="w", zarr_format=zarr_format)
    for name, chunks in {"none": 4, "one": 16, "eight": 2, "sixteen": 1}.items():
        array = root.create_array(f"g/{name}", shape=(16,), chunks=(chunks,), dtype="i4", fill_value=5)
        if name != "none":
            array[:] = np.arange(16) + 100
    near.set("g/one/README", b"not a chunk")
    far = FaultyStore(MemoryStore({key: near.get(key) for key in near.list()}), concurrency=32)
    assert omnizarr.digest(far) == omnizarr.digest(near)
    assert omnizarr.stat(far) == omnizarr.stat(near)
    assert {each.path: each.missing for each in omnizarr.stat(near).arrays} == {
        "g/eight": 0, "g/none": 4, "g/one": 0, "g/sixteen": 0,
    }  # fmt: skip
    assert omnizarr.diff(far, near).equal
    assert sum(key in {"g/sixteen/c/", "g/sixteen/"} for verb, key in far.log if verb == "list_prefix") == 3
