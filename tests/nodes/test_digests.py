"""Values of two stores that are equal, by the digests that they list."""

import random

import pytest

from omnizarr.errors import StoreError
from omnizarr.nodes import digests
from omnizarr.nodes.digests import Listed, Names, Unlike
from omnizarr.stores import MemoryStore, PrefixStore, verbs
from tests.fakes import DigestStore, UnlistableStore, failing


def listed(values, hidden="\0"):
    return Listed(DigestStore(MemoryStore(values), hidden), ("",), str)


ONE = {"a": b"1", "b": b"2", "c": b"3", "d": b"4"}


@pytest.mark.parametrize(
    ("other", "unlike"),
    [
        (ONE, []),
        ({**ONE, "b": b"x"}, ["b", "b"]),  # once for each place
        ({key: ONE[key] for key in "acd"}, ["b"]),
        ({**ONE, "e": b"5"}, ["e"]),
        ({"a": b"2", "b": b"1", "c": b"3", "d": b"4"}, ["a", "a", "b", "b"]),
        ({}, ["a", "b", "c", "d"]),
    ],
)
def test_values_that_differ_or_are_in_one_place_are_told(other, unlike):
    found = Unlike.of(listed(ONE), listed(other))
    for _ in range(2):
        assert sorted(found) == unlike
        assert found.equal == len(ONE.items() & other.items())


def test_values_without_a_digest_may_differ():
    found = Unlike.of(listed(ONE, hidden="b"), listed(ONE, hidden="c"))
    assert sorted(found) == ["b", "b", "c", "c"]
    known = digests.equal_names(listed(ONE, hidden="b"), listed(ONE, hidden="c"))
    assert [name for name in ONE if name in known] == ["a", "d"]


def test_what_is_beyond_the_names_that_are_kept_may_differ(monkeypatch):
    monkeypatch.setattr(digests, "_MOST", 3)
    assert set(Unlike.of(listed(ONE), listed(ONE))) == {"d"}
    assert set(Unlike.of(listed(ONE), listed({**ONE, "e": b""}))) == {"d", "e"}


@pytest.mark.parametrize("wrap", [lambda store: store, UnlistableStore, lambda store: failing(store, StoreError("x"))])
def test_stores_that_list_no_digests_tell_nothing(wrap):
    without = Listed(wrap(MemoryStore(ONE)), ("",), str)
    assert Unlike.of(without, listed(ONE)) is None
    assert Unlike.of(listed(ONE), without) is None
    assert len(digests.equal_names(without, listed(ONE))) == 0


def test_a_listing_that_fails_later_is_an_error():
    other = MemoryStore({**ONE, "b": b"x"})
    failed = Listed(
        failing(DigestStore(other), StoreError("the connection was lost"), key="second"), ("", "second"), str
    )
    with pytest.raises(StoreError, match="connection was lost"):
        list(Unlike.of(listed(ONE), failed))


def test_digests_below_a_prefix_are_those_of_its_keys():
    inner = DigestStore(MemoryStore({f"p/{key}": value for key, value in ONE.items()}))
    assert dict(verbs.list_digests(PrefixStore(inner, "p"), "")) == dict(listed(ONE).again())


def test_names_are_found_again():
    some = {random.Random(3).randbytes(number % 9 + 2) + b"%d" % number for number in range(2000)}
    names = Names(map(hash, some))
    assert len(names) == 2000
    assert all(name in names for name in some)
    assert not any(name + b"." in names for name in some)
    assert "x" not in Names(())
