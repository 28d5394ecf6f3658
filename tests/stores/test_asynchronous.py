import asyncio
import itertools
import threading

import pytest

import omnizarr
from omnizarr import aio
from omnizarr.engine import reference
from omnizarr.errors import ConflictError, ReadOnlyError, StoreError, StoreLimitError
from omnizarr.stores import LocalStore, MemoryStore, ObjectStore, WrapperStore, verbs
from omnizarr.stores.asynchronous import called, is_awaitable
from tests.aio.stores import Counting, objects, run
from tests.stores.contract import VALID_KEYS, StoreContract

_ITERATORS = {verbs.get_many, verbs.get_many_within, verbs.list, verbs.list_prefix, verbs.list_sizes}


class Awaited(WrapperStore):
    """A store whose methods are called in an event loop, each in a new one."""

    def handle(self, verb, *args):
        if verb is verbs.lock:
            return super().handle(verb, *args)
        if verb is verbs.pinned:
            return awaited(awaited(super().handle)(verb, *args))
        result = (lambda found: iter(list(found))) if verb in _ITERATORS else (lambda found: found)
        return awaited(super().handle, result)(verb, *args)

    def update(self, key, change):
        awaited(self.store.update)(key, change)


def awaited(function, result=lambda found: found):
    """Return a function that is called in an event loop."""
    return lambda *args: asyncio.run(called(lambda: result(function(*args))))


class AwaitedContract(StoreContract):
    @pytest.mark.parametrize("key", [key for key in VALID_KEYS if key.isprintable()])
    def test_unusual_key_is_a_key(self, store, key):
        super().test_unusual_key_is_a_key(store, key)

    # What is not awaited is tested with the store itself.
    test_pickles_or_says_why_not = None
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
        assert not is_awaitable(store)


# -- reading ---------------------------------------------------------------------------


def test_parts_far_from_each_other_are_asked_for_side_by_side(monkeypatch):
    store = objects(concurrency=8)
    value = bytes(range(256)) * 10_000
    store.set("a", value)
    counting = Counting(monkeypatch, delay=0.01)
    spans = [(0, 10), (1_000_000, 1_000_020), (2_000_000, None), (-7, None), (20, 30)]
    found = run(called(verbs.get_spans, store, "a", spans))
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
    found = run(called(verbs.get_spans, store, "a", [(0, 1), (2_999_999, None)]))
    assert [bytes(part) for part in found] == [b"b", b"b"]
    assert counting.asked["get"] == 4


def test_pinned_reader_notices_another_version():
    store = objects()
    store.set("a", b"abc" * 1_000_000)

    def reader(spans):
        return called(pinned, spans)

    pinned = verbs.pinned(store, "a")
    assert bytes(run(reader([(0, 3)]))[0]) == b"abc"
    assert [bytes(part) for part in run(reader([(3, 5), (2_000_000, 2_000_001), (-1, None)]))] == [b"ab", b"c", b"c"]
    store.set("a", b"xyz" * 1_000_000)
    for spans in ([(0, 3)], [(0, 3), (2_000_000, 2_000_001)]):
        with pytest.raises(ConflictError):
            run(reader(spans))


def test_pinned_reader_of_nothing_reads_nothing():
    assert run(called(verbs.pinned(objects(), "a"), [(0, 3)])) is None


def test_large_value_is_asked_for_whole_once_the_store_knows_that_values_are_large(monkeypatch):
    store = objects()
    value = bytes(17 * 2**20)
    store.set("a", value)
    counting = Counting(monkeypatch)
    assert len(run(called(store.get, "a"))) == len(value)
    counting.asked.clear()
    assert len(run(called(store.get, "a"))) == len(value)
    assert counting.asked == {"get": 1}


def test_value_that_is_too_large_is_refused_and_not_fetched(monkeypatch):
    store = objects(max_value_bytes=1000)
    ObjectStore(store._store, prefix="some/where").set("a", bytes(1001))
    for ask in (called(store.get, "a"), called(store.get, "a", (0, None))):
        with pytest.raises(StoreLimitError):
            run(ask)


def test_errors_name_store_and_key(monkeypatch):
    store = objects()
    counting = Counting(monkeypatch)
    counting.failures["some/where/a"] = PermissionError("secret=abc")
    with pytest.raises(StoreError) as caught:
        run(called(store.get, "a"))
    assert (caught.value.key, caught.value.store) == ("a", repr(store))


def test_more_requests_than_the_store_wants_wait(monkeypatch):
    store = objects(concurrency=9)
    counting = Counting(monkeypatch, delay=0.001)

    async def ask():
        # Other objects for the same data among them.
        other = ObjectStore(store._store, prefix="else", concurrency=9)
        await asyncio.gather(*(called(each.get, f"k{n}") for n in range(50) for each in (store, other)))

    run(ask())
    assert counting.most == 9
    assert counting.total == 100


# -- writing ---------------------------------------------------------------------------


def test_changes_of_many_tasks_are_not_lost():
    store = objects(concurrency=64)

    async def change():
        await asyncio.gather(*(called(store.update, "a", lambda old: bytes(old or b"") + b"x") for _ in range(40)))

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
        await asyncio.gather(*(called(store.update, "a", lambda old: bytes(old or b"") + b"x") for _ in range(20)))

    for thread in threads:
        thread.start()
    run(change())
    for thread in threads:
        thread.join()
    assert sorted(bytes(store.get("a"))) == sorted(b"t" * 30 + b"x" * 20)


def test_chunk_is_changed_in_a_thread_and_once_where_nobody_comes_in_between(monkeypatch):
    store = objects()
    array = omnizarr.create_array(store, shape=(200_000,), chunks=(200_000,), dtype="u1")
    counting = Counting(monkeypatch)
    names = []
    changed = reference._changed

    def change(*args):
        names.append(threading.current_thread().name)
        return changed(*args)

    monkeypatch.setattr(reference, "_changed", change)
    run(aio.AsyncArray(array).setitem(slice(1, 3), 7))
    assert array[:4].tolist() == [0, 7, 7, 0]
    assert len(names) == 1
    assert names[0].startswith("omnizarr-compute")
    assert counting.asked == {"get": 1, "put": 1}


def test_change_that_leaves_the_value_writes_nothing(monkeypatch):
    store = objects()
    store.set("a", b"abc")
    counting = Counting(monkeypatch)
    run(called(store.update, "a", lambda old: old))
    assert counting.asked["put"] == 0
    run(called(store.update, "a", lambda _: None))
    assert store.get("a") is None


def test_stores_without_conditions_are_changed_under_their_lock(monkeypatch):
    monkeypatch.setattr(ObjectStore, "_has_conditions", property(lambda _: False))
    store = objects()
    assert store.features.exclusion == "process"
    array = omnizarr.create_array(store, shape=(20,), chunks=(20,), dtype="u1")

    async def change():
        await asyncio.gather(*(aio.AsyncArray(array).setitem(number, number) for number in range(20)))

    run(change())
    assert array[...].tolist() == list(range(20))
    with pytest.raises(RuntimeError, match="thread"):  # its lock would not exclude threads
        run(called(store.update, "a", lambda _: b"x"))


def test_read_only_store_is_not_written():
    store = objects().with_read_only()
    for change in (called(store.set, "a", b""), called(store.delete, "a"), called(store.update, "a", lambda _: b"")):
        with pytest.raises(ReadOnlyError):
            run(change)


def test_writing_outside_of_a_lock_has_no_condition_after_a_change():
    store = objects()

    async def change():
        await called(store.update, "a", lambda _: b"1")
        store.set("a", b"2")
        await called(store.set, "a", b"3")

    run(change())
    store.set("a", b"4")
    assert bytes(store.get("a")) == b"4"
