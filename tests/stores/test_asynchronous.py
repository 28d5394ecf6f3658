import asyncio
import itertools
import threading

import pytest

from omnizarr.errors import ConflictError, ReadOnlyError, StoreError, StoreLimitError
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore
from omnizarr.stores import asynchronous as module
from omnizarr.stores.asynchronous import asynchronous
from omnizarr.stores.base import Store
from omnizarr.stores.remote.object import ObjectStore
from tests.aio.stores import Counting, objects, run
from tests.stores.contract import VALID_KEYS, StoreContract


class Awaited(WrapperStore):
    """A store whose verbs are awaited, for those who do not."""

    @property
    def verbs(self):
        return asynchronous(self.store)

    def get(self, key, span=None):
        return asyncio.run(self.verbs.get(key, span))

    get_many = Store.get_many
    read_into = Store.read_into
    has_any = Store.has_any
    set_partial = Store.set_partial

    def get_spans(self, key, spans):
        return asyncio.run(self.verbs.get_spans(key, spans))

    def pinned(self, key):
        reader = self.verbs.pinned(key)
        return lambda spans: asyncio.run(reader(spans))

    def get_stamped(self, key, unless=None):
        return asyncio.run(self.verbs.get_stamped(key, unless))

    def exists(self, key):
        return asyncio.run(self.verbs.exists(key))

    def size(self, key):
        return asyncio.run(self.verbs.size(key))

    def set(self, key, value):
        asyncio.run(self.verbs.set(key, value))

    def update(self, key, change):
        asyncio.run(self.verbs.update(key, change))

    def delete(self, key):
        asyncio.run(self.verbs.delete(key))

    def list_dir(self, prefix):
        return asyncio.run(self.verbs.list_dir(prefix))


class AwaitedContract(StoreContract):
    lists_everything = False  # the store of the tests does not say

    @pytest.mark.parametrize("key", [key for key in VALID_KEYS if key.isprintable()])
    def test_unusual_key_is_a_key(self, store, key):
        super().test_unusual_key_is_a_key(store, key)

    # What is not awaited is tested with the store itself.
    test_pickles_or_says_why_not = None
    test_equal_stamps_are_of_equal_values = None
    test_lock_excludes_other_threads = None
    test_lock_holds_while_the_value_comes_and_goes = None


class TestInMemory(AwaitedContract):
    @pytest.fixture
    def store(self):
        return Awaited(objects())


@pytest.fixture(scope="module")
def s3(s3_server):
    """Return a bucket for this module."""
    return s3_server.fresh()


numbers = itertools.count()


class TestOnS3(AwaitedContract):
    @pytest.fixture
    def store(self, s3):
        return Awaited(ObjectStore.from_url(f"{s3.url}/{next(numbers)} %41ä", s3.options))


def test_other_stores_cannot_be_awaited(tmp_path):
    for store in (MemoryStore(), LocalStore(tmp_path), WrapperStore(objects())):
        assert asynchronous(store) is None


# -- reading ---------------------------------------------------------------------------


def test_parts_far_from_each_other_are_asked_for_side_by_side(monkeypatch):
    store = objects()
    value = bytes(range(256)) * 10_000
    store.set("a", value)
    counting = Counting(monkeypatch, delay=0.01)
    spans = [(0, 10), (1_000_000, 1_000_020), (2_000_000, None), (-7, None), (20, 30)]
    found = run(asynchronous(store).get_spans("a", spans))
    assert [bytes(part) for part in found] == [value[slice(*span)] for span in spans]
    assert counting.asked == {"get": 4}
    assert counting.most == 4


def test_parts_of_several_versions_are_asked_for_again(monkeypatch):
    store = objects()
    before, after = b"a" * 3_000_000, b"b" * 3_000_000
    store.set("a", before)
    counting = Counting(monkeypatch)
    ask = counting.__getattr__("get_async")

    is_changed = asyncio.Event()
    calls = itertools.count()

    async def changing(*args, **kwargs):
        if next(calls):
            await is_changed.wait()
        answer = await ask(*args, **kwargs)
        if not is_changed.is_set():
            store.set("a", after)
            is_changed.set()
        return answer

    counting.get_async = changing
    found = run(asynchronous(store).get_spans("a", [(0, 1), (2_999_999, None)]))
    assert [bytes(part) for part in found] == [b"b", b"b"]
    assert counting.asked["get"] == 4


def test_pinned_reader_notices_another_version():
    store = objects()
    store.set("a", b"abc" * 1_000_000)
    reader = asynchronous(store).pinned("a")
    assert bytes(run(reader([(0, 3)]))[0]) == b"abc"
    assert [bytes(part) for part in run(reader([(3, 5), (2_000_000, 2_000_001), (-1, None)]))] == [b"ab", b"c", b"c"]
    store.set("a", b"xyz" * 1_000_000)
    for spans in ([(0, 3)], [(0, 3), (2_000_000, 2_000_001)]):
        with pytest.raises(ConflictError):
            run(reader(spans))


def test_pinned_reader_of_nothing_reads_nothing():
    assert run(asynchronous(objects()).pinned("a")([(0, 3)])) is None


def test_large_value_is_asked_for_whole_once_the_store_knows_that_values_are_large(monkeypatch):
    store = objects()
    value = bytes(17 * 2**20)
    store.set("a", value)
    counting = Counting(monkeypatch)
    assert len(run(asynchronous(store).get("a"))) == len(value)
    counting.asked.clear()
    assert len(run(asynchronous(store).get("a"))) == len(value)
    assert counting.asked == {"get": 1}


def test_value_that_is_too_large_is_refused_and_not_fetched(monkeypatch):
    store = objects(max_value_bytes=1000)
    ObjectStore(store._store, prefix="some/where").set("a", bytes(1001))
    for ask in (asynchronous(store).get("a"), asynchronous(store).get("a", (0, None))):
        with pytest.raises(StoreLimitError):
            run(ask)


def test_errors_name_store_and_key(monkeypatch):
    store = objects()
    counting = Counting(monkeypatch)
    counting.failures["some/where/a"] = PermissionError("secret=abc")
    with pytest.raises(StoreError) as caught:
        run(asynchronous(store).get("a"))
    assert (caught.value.key, caught.value.store) == ("a", repr(store))
    assert "Rehearsed" not in str(caught.value)


def test_more_requests_than_the_store_wants_wait(monkeypatch):
    store = objects(concurrency=9)
    counting = Counting(monkeypatch, delay=0.001)

    async def ask():
        # Other objects for the same data among them.
        other = ObjectStore(store._store, prefix="else", concurrency=9)
        await asyncio.gather(*(asynchronous(each).get(f"k{n}") for n in range(50) for each in (store, other)))

    run(ask())
    assert counting.most == 9
    assert counting.total == 100


def test_verb_that_asks_without_end_is_left_to_a_thread(monkeypatch):
    store = objects()
    store.set("a", b"abc")
    monkeypatch.setattr(module._Question, "identity", property(lambda _: object()))
    assert bytes(run(asynchronous(store).get("a"))) == b"abc"


# -- writing ---------------------------------------------------------------------------


def test_changes_of_many_tasks_are_not_lost():
    store = objects(concurrency=64)

    async def change():
        verbs = asynchronous(store)
        await asyncio.gather(*(verbs.update("a", lambda old: bytes(old or b"") + b"x") for _ in range(40)))

    run(change())
    assert bytes(store.get("a")) == b"x" * 40


def test_changes_of_tasks_and_threads_are_not_lost():
    store = objects()
    threads = [
        threading.Thread(
            target=lambda: [store.update("a", lambda old: bytes(old or b"") + b"t") for _ in range(10)],
        )
        for _ in range(3)
    ]

    async def change():
        verbs = asynchronous(store)
        await asyncio.gather(*(verbs.update("a", lambda old: bytes(old or b"") + b"x") for _ in range(20)))

    for thread in threads:
        thread.start()
    run(change())
    for thread in threads:
        thread.join()
    assert sorted(bytes(store.get("a"))) == sorted(b"t" * 30 + b"x" * 20)


def test_change_is_made_in_a_thread_and_once_where_nobody_comes_in_between(monkeypatch):
    store = objects()
    counting = Counting(monkeypatch)
    names = []

    def change(old):
        names.append(threading.current_thread().name)
        return b"new"

    run(asynchronous(store).update("a", change))
    assert bytes(store.get("a")) == b"new"
    assert len(names) == 1
    assert names[0].startswith("omnizarr-compute")
    assert counting.asked == {"get": 1, "put": 1}


def test_change_that_leaves_the_value_writes_nothing(monkeypatch):
    store = objects()
    store.set("a", b"abc")
    counting = Counting(monkeypatch)
    run(asynchronous(store).update("a", lambda old: old))
    assert counting.asked["put"] == 0
    run(asynchronous(store).update("a", lambda _: None))
    assert store.get("a") is None


def test_stores_without_conditions_are_changed_under_their_lock(monkeypatch):
    monkeypatch.setattr(ObjectStore, "_has_conditions", property(lambda _: False))
    store = objects()
    assert store.exclusion == "process"

    async def change():
        verbs = asynchronous(store)
        await asyncio.gather(*(verbs.update("a", lambda old: bytes(old or b"") + b"x") for _ in range(20)))

    run(change())
    assert bytes(store.get("a")) == b"x" * 20


def test_read_only_store_is_not_written():
    verbs = asynchronous(objects().with_read_only())
    for change in (verbs.set("a", b""), verbs.delete("a"), verbs.update("a", lambda _: b"")):
        with pytest.raises(ReadOnlyError):
            run(change)


def test_writing_outside_of_a_lock_has_no_condition_after_a_change():
    store = objects()

    async def change():
        verbs = asynchronous(store)
        await verbs.update("a", lambda _: b"1")
        store.set("a", b"2")
        await verbs.set("a", b"3")

    run(change())
    store.set("a", b"4")
    assert bytes(store.get("a")) == b"4"
