import pickle
import time

import pytest

from omnizarr.errors import StoreError
from omnizarr.stores import MemoryStore, WrapperStore, verbs
from omnizarr.stores.base import answers
from tests.fakes import FaultyStore
from tests.stores.contract import StoreContract, in_threads


class TestFaultyStore(StoreContract):
    @pytest.fixture
    def store(self):
        return FaultyStore(MemoryStore())


def test_requests_are_counted_by_verb():
    store = FaultyStore(MemoryStore())
    store.set("a", b"0123456789")
    store.get("a", (0, 4))
    store.get("missing")
    verbs.get_spans(store, "a", [(0, 1), (2, 4)])
    verbs.read_into(store, "a", memoryview(bytearray(6)))
    verbs.stamp(store, "a")
    list(verbs.get_many(store, [("a", None), ("a", (0, 1))]))
    assert store.requests == {"set": 1, "get": 4, "get_spans": 1, "read_into": 1, "stamp": 1}
    assert store.bytes_written == 10
    assert store.bytes_read == 4 + 3 + 6 + 10 + 1
    assert store.log[0] == ("set", "a")
    store.reset()
    assert not store.requests
    assert store.bytes_read == 0


def test_nth_request_fails_and_does_nothing():
    store = FaultyStore(MemoryStore())
    store.set("a", b"1")
    store.fail("set", 2)
    store.set("b", b"1")
    with pytest.raises(StoreError) as caught:
        store.set("c", b"1")
    assert caught.value.key == "c"
    store.set("d", b"1")
    assert sorted(store.list()) == ["a", "b", "d"]


def test_fault_may_be_any_exception():
    store = FaultyStore(MemoryStore())
    store.fail("get", error=TimeoutError("slow"))
    with pytest.raises(TimeoutError):
        store.get("a")
    assert store.get("a") is None


def test_torn_write_keeps_the_beginning():
    store = FaultyStore(MemoryStore())
    store.tear(2, keep=3)
    verbs.set_many(store, [("a", b"012345"), ("b", b"012345")])
    assert bytes(store.get("a")) == b"012345"
    assert bytes(store.get("b")) == b"012"


def test_requests_take_their_time():
    store = FaultyStore(MemoryStore(), delay=0.02)
    began = time.perf_counter()
    store.get("a")
    assert time.perf_counter() - began >= 0.02


def test_threads_are_counted_correctly():
    store = FaultyStore(MemoryStore())
    in_threads(lambda _: [store.get("a") for _ in range(100)], range(8))
    assert store.requests["get"] == 800


class Pinning(WrapperStore):
    """A store that can read parts of one version of a value."""

    @answers(verbs.pinned)
    def _pinned(self, key):
        value = self.store.get(key)
        return lambda spans: [value] if spans is None else [value[slice(*span)] for span in spans]


def test_new_verbs_are_counted_once():
    store = FaultyStore(Pinning(MemoryStore({"a": b"0123456789"})))
    value, stamp = verbs.get_stamped(store, "a")
    assert value == b"0123456789"
    assert verbs.get_stamped(store, "a", stamp) is None
    read = verbs.pinned(store, "a")
    assert store.requests == {"get_stamped": 2}
    assert read([(0, 2), (4, 5)]) == [b"01", b"4"]
    assert read(None) == [b"0123456789"]
    assert store.requests == {"get_stamped": 2, "get_spans": 1, "get": 1}
    assert store.bytes_read == 10 + 3 + 10


def test_reader_of_a_store_that_pins_nothing_is_none():
    assert verbs.pinned(FaultyStore(MemoryStore({"a": b"1"})), "a") is None


def test_readers_of_pinned_values_can_fail():
    store = FaultyStore(Pinning(MemoryStore({"a": b"0123456789"})))
    store.fail("get_spans", error=ConnectionResetError())
    with pytest.raises(ConnectionResetError):
        verbs.pinned(store, "a")([(0, 1)])


def test_update_goes_through_lock_get_and_set():
    store = FaultyStore(MemoryStore({"a": b"1"}))
    store.update("a", lambda old: bytes(old) + b"2")
    assert store.log == [("lock", "a"), ("get", "a"), ("set", "a")]


def test_many_at_once_take_no_longer_than_one():
    store = FaultyStore(MemoryStore({"a": b"1"}), delay=0.05, concurrency=16)
    assert sorted(verbs.get_many(store, [("a", None)] * 16)) == [(number, b"1") for number in range(16)]
    assert 1 < store.max_in_flight <= 16
    assert store.in_flight == 0


def test_one_after_another_is_one_in_flight():
    store = FaultyStore(MemoryStore())
    list(verbs.get_many(store, [("a", None)] * 16))
    assert store.max_in_flight == 1


def test_jitter_changes_the_order_of_answers():
    store = FaultyStore(MemoryStore(), jitter=0.02, concurrency=8)
    orders = {tuple(position for position, _ in verbs.get_many(store, [("a", None)] * 8)) for _ in range(5)}
    assert len(orders) > 1


def test_slow_request_takes_its_time_once():
    store = FaultyStore(MemoryStore())
    store.slow("get", 2, seconds=0.05)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        store.get("a")
        times.append(time.perf_counter() - began)
    assert times[1] >= 0.05 > max(times[0], times[2])


def test_frozen_key_answers_as_before_for_a_while():
    store = FaultyStore(MemoryStore({"a": b"old"}))
    stamp = verbs.stamp(store, "a")
    store.freeze("a", reads=2)
    store.set("a", b"newer")
    assert verbs.get_stamped(store, "a") == (b"old", stamp)
    assert store.size("a") == 3
    assert store.get("a") == b"newer"


def test_frozen_key_may_be_one_that_was_not_there():
    store = FaultyStore(MemoryStore())
    store.freeze("a")
    store.set("a", b"1")
    assert store.get("a") is None
    assert store.get("a") == b"1"


def test_failed_requests_are_in_flight_no_more():
    store = FaultyStore(MemoryStore())
    store.fail("get")
    with pytest.raises(StoreError):
        store.get("a")
    assert store.in_flight == 0
    list(store.list())
    next(store.list_prefix(""), None)
    assert store.in_flight == 0


def test_copy_that_was_pickled_counts_and_fails_equally():
    store = FaultyStore(MemoryStore(), delay=0.01)
    store.get("a")
    store.fail("get", 2)
    copy = pickle.loads(pickle.dumps(store))
    copy.get("a")
    with pytest.raises(StoreError):
        copy.get("a")
    assert (copy.requests["get"], store.requests["get"]) == (3, 1)
