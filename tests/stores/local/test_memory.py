import array

import pytest

from omnizarr.stores import MemoryStore, threads, verbs
from tests.stores.contract import StoreContract, in_threads


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class OtherMapping(dict):
    """Not exactly a dictionary, so without the shortcuts for one."""


class TestMemoryStoreOnAnotherMapping(StoreContract):
    listing = "partial"

    @pytest.fixture
    def store(self):
        return MemoryStore(OtherMapping())


def test_callers_dictionary_is_shared_both_ways():
    values = {"a": b"1"}
    store = MemoryStore(values)
    store.set("b", b"2")
    values["c"] = b"3"
    assert values["b"] == b"2"
    assert store.get("c") == b"3"


def test_empty_dictionary_of_the_caller_is_shared():
    values = {}
    MemoryStore(values).set("a", b"1")
    assert values == {"a": b"1"}


def test_values_that_are_not_bytes_are_read_as_their_bytes():
    numbers = array.array("i", [1, 2, 3])
    store = MemoryStore({"a": numbers})
    assert bytes(store.get("a")) == numbers.tobytes()
    assert store.size("a") == 12
    assert bytes(store.get("a", (4, 8))) == numbers.tobytes()[4:8]


def test_what_is_no_key_is_not_listed():
    store = MemoryStore({"a": b"", "/b": b"", "../c": b"", 3: b""})
    assert list(store.list()) == ["a"]
    assert store.list_dir("") == (["a"], [])


def test_stores_on_one_dictionary_exclude_each_other():
    values = {"n": b"0"}

    def count(_):
        store = MemoryStore(values)
        for _ in range(50):
            with store.lock("n"):
                store.set("n", b"%d" % (int(store.get("n")) + 1))

    in_threads(count, range(8))
    assert values["n"] == b"400"


def test_stores_are_equal_while_their_values_are():
    values = {"a": b"1"}
    other = MemoryStore({"a": bytearray(b"1"), 5: "none of its keys"})
    assert MemoryStore(values) == MemoryStore(values) == other
    assert hash(MemoryStore(values)) == hash(other)
    other.set("a", b"2")
    assert MemoryStore(values) != other
    assert MemoryStore(values) != MemoryStore(values, read_only=True)
    assert MemoryStore(values) != MemoryStore({**values, "b": b""})


def test_locks_do_not_accumulate():
    store = MemoryStore()
    for i in range(10_000):
        with store.lock(f"a/{i}"):
            pass
    assert len(threads._locks) <= 2000


def test_get_copies_nothing():
    value = b"x" * 1000
    store = MemoryStore()
    store.set("a", value)
    assert store.get("a") is value


def test_stamp_is_the_identity_of_the_value():
    values = {"a": bytes(bytearray(b"abc"))}
    store = MemoryStore(values)
    stamp = verbs.stamp(store, "a")
    assert stamp is not None
    assert verbs.stamp(store, "a") == stamp
    assert hash(verbs.stamp(store, "a")) == hash(stamp)
    values["a"] = bytes(bytearray(b"abc"))
    assert verbs.stamp(store, "a") != stamp


def test_value_that_could_be_changed_in_place_has_no_stamp():
    assert verbs.stamp(MemoryStore({"a": bytearray(b"abc")}), "a") is None
