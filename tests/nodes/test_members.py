"""Names of members that are listed and counted; `tests/nodes/test_group.py` tests what a group lists."""

import omnizarr
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore


def test_listing_a_group_looks_at_its_members_once():
    store = FaultyStore(MemoryStore())
    group = omnizarr.create_group(store)
    group.create_group("a")
    store.reset()
    assert list(group) == ["a"]
    assert store.requests == {"list_dir": 1, "get": 1}


def test_length_of_a_group_is_that_of_the_moment_whatever_iterators_there_are():
    group = omnizarr.create_group({})
    group.create_group("a")
    names = iter(group)
    assert len(group) == 1
    group.create_group("b")
    assert len(group) == 2
    assert next(names) == "a"
    again = iter(group)
    assert next(again) == "a"
    group.create_group("c")
    assert len(group) == 3
    iter(group)
    assert (len(group), list(group), sorted(group)) == (3, ["a", "b", "c"], ["a", "b", "c"])
