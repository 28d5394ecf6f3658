"""A view that asks for nothing twice."""

import pytest

from omnizarr.errors import StoreError
from omnizarr.stores import MemoryStore
from omnizarr.stores.wrap.recalling import RecallingStore
from tests.fakes import FaultyStore, UnlistableStore

VALUES = {"zarr.json": b"{}", "a/zarr.json": b"{}", "a/b/c/0": b"1", "ab": b"2"}


@pytest.fixture
def counted():
    return FaultyStore(MemoryStore(dict(VALUES)))


KEYS = [*VALUES, "a", "a/b", "a/x/y", "x", "x/y", "a/b/c/1"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("path", ["", "a", "a/b/c", "a/x", "x/y"])
def test_answers_are_those_of_the_store(counted, key, path):
    store = RecallingStore(counted)
    store.look_along(path)
    for _ in range(2):
        assert store.get(key) == VALUES.get(key)
        assert store.exists(key) == (key in VALUES)
        assert store.get(key, (0, 1)) == (None if key not in VALUES else VALUES[key][:1])
    assert store.list_dir(key) == MemoryStore(dict(VALUES)).list_dir(key)


def test_nothing_is_asked_twice(counted):
    store = RecallingStore(counted)
    for _ in range(3):
        store.get("a/zarr.json")
        store.get("nothing")
        store.list_dir("a")
    assert sorted(counted.log) == [("get", "a/zarr.json"), ("get", "nothing"), ("list_dir", "a/")]


def test_what_is_not_listed_is_not_asked_for(counted):
    store = RecallingStore(counted)
    store.look_along("a/x/y")
    assert counted.log == [("list_dir", ""), ("list_dir", "a/")]
    assert [store.get(key) for key in ("a/x/zarr.json", "a/x/y/.zarray", "q", "q/r")] == [None] * 4
    assert store.list_dir("a/x/y") == ([], [])
    assert counted.requests == {"list_dir": 2}


def test_known_values_are_not_asked_for(counted):
    store = RecallingStore(counted, {"a/zarr.json": b"{}", "gone": None})
    assert (store.get("a/zarr.json"), store.get("gone"), store.exists("gone")) == (b"{}", None, False)
    assert counted.log == []


def test_store_that_cannot_list_is_asked():
    store = RecallingStore(UnlistableStore(MemoryStore(dict(VALUES))))
    store.look_along("a/b")
    assert store.get("a/b/c/0") == b"1"
    refusing = RecallingStore(UnlistableStore(MemoryStore(dict(VALUES)), admits=False))
    refusing.look_along("a/b")
    assert refusing.get("a/b/c/0") == b"1"
    with pytest.raises(StoreError):
        refusing.list_dir("a")
