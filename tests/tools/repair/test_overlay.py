"""An overlay holds to the contract of stores, and leaves the store below alone."""

import pytest

from omnizarr.stores import Listing, MemoryStore, verbs
from omnizarr.tools.repair.overlay import Overlay

BELOW = {"a/b": b"123", "a/c/d": b"45", "e": b"6"}


@pytest.fixture
def below():
    return MemoryStore(dict(BELOW), read_only=True)


def test_what_is_set_and_deleted_is_seen_above_and_not_below(below):
    store = Overlay(below)
    store.set("a/b", b"789")
    store.set("a/x/y", b"0")
    store.delete("e")
    assert {key: bytes(store.get(key)) for key in store.list()} == {"a/b": b"789", "a/c/d": b"45", "a/x/y": b"0"}
    assert {key: bytes(below.get(key)) for key in below.list()} == BELOW


def test_all_verbs_of_reading_agree(below):
    store = Overlay(below)
    store.set("n", b"abcdef")
    store.delete("e")
    out = bytearray(3)
    assert verbs.read_into(store, "n", memoryview(out), 2) == 4
    assert out == b"cde"
    assert [bytes(part) for part in verbs.get_spans(store, "n", [(0, 2), (-1, None)])] == [b"ab", b"f"]
    assert (store.get("e"), store.size("e"), store.exists("e"), store.exists("n"), store.size("n")) == (
        None, None, False, True, 6)  # fmt: skip
    values = dict(verbs.get_many(store, [("n", (1, 3)), ("e", None), ("a/b", None), ("x", None)]))
    assert {number: value if value is None else bytes(value) for number, value in values.items()} == {
        0: b"bc", 1: None, 2: b"123", 3: None}  # fmt: skip


def test_directory_shows_what_was_set_and_not_what_was_deleted(below):
    store = Overlay(below)
    store.set("a/new", b"")
    store.set("a/dir/x", b"")
    store.delete("a/b")
    assert store.list_dir("a/") == Listing(["a/new"], ["a/c/", "a/dir/"])


def test_lock_and_mode_of_the_store_below_do_not_matter(below):
    store = Overlay(below)
    with store.lock("e"):
        assert verbs.set_if_absent(store, "f", b"1")
    assert not store.read_only
    assert store.with_read_only() is store
