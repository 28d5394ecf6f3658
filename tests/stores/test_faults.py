import time

import pytest

from omnizarr.errors import StoreError
from omnizarr.stores import MemoryStore
from omnizarr.stores.faults import FaultyStore
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
    store.get_spans("a", [(0, 1), (2, 4)])
    store.read_into("a", memoryview(bytearray(6)))
    store.stamp("a")
    list(store.get_many([("a", None), ("a", (0, 1))]))
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
    store.set_many([("a", b"012345"), ("b", b"012345")])
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
