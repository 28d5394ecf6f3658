"""Wrapper stores on object stores: their verbs as coroutines, and arrays that are read through them."""

import asyncio
import logging
import math
import threading

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.errors import ReadOnlyError, StoreError
from omnizarr.storage import LoggingStore
from omnizarr.stores import CacheStore, MetricsStore, PrefixStore, ReadOnlyStore, verbs
from omnizarr.stores.asynchronous import called, is_awaitable
from tests.aio.stores import Counting, objects, run
from tests.fakes import FaultyStore
from tests.stores.test_asynchronous import Awaited, AwaitedContract


class TestPrefixStore(AwaitedContract):
    @pytest.fixture
    def store(self):
        return Awaited(PrefixStore(objects(), "below/this"))


class TestMetricsStore(AwaitedContract):
    @pytest.fixture
    def store(self):
        return Awaited(MetricsStore(objects()))


class TestSeveral(AwaitedContract):
    @pytest.fixture
    def store(self):
        return Awaited(LoggingStore(PrefixStore(MetricsStore(objects()), "a"), log_level=logging.DEBUG))


class TestCacheStore(AwaitedContract):
    @pytest.fixture(params=[0, 3600, math.inf])
    def store(self, request):
        return Awaited(CacheStore(objects(), max_age=request.param))


WRAPPERS = {
    "prefix": lambda store: PrefixStore(store, "some"),
    "metrics": MetricsStore,
    "logging": LoggingStore,
    "read-only": ReadOnlyStore,
    "cache": CacheStore,
    "cache around metrics": lambda store: CacheStore(MetricsStore(store)),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_array_is_read_without_a_thread(wrap, monkeypatch):
    below = objects()
    prefix = "some" if wrap is WRAPPERS["prefix"] else ""
    values = np.arange(100)
    omnizarr.create_array(below, name=f"{prefix}/a".strip("/"), data=values, chunks=5)
    counting = Counting(monkeypatch, delay=0.01)
    monkeypatch.setattr(threading.Thread, "start", lambda _: pytest.fail("a thread was started"))

    async def main():
        array = await aio.open_array(wrap(below), path="a", mode="r")
        return await array.getitem(...)

    np.testing.assert_array_equal(run(main()), values)
    assert counting.most == 8  # as many as an object store in memory wants


def test_metrics_count_what_is_awaited(monkeypatch):
    below = objects()
    store = MetricsStore(below)
    Counting(monkeypatch, delay=0.02)

    async def main():
        await called(store.set, "a", b"0123456789")
        await asyncio.gather(
            called(store.get, "a"),
            called(store.get, "a", (2, 5)),
            called(verbs.get_spans, store, "a", [(0, 1), (8, None)]),
        )
        await called(verbs.pinned(store, "a"), None)
        await called(store.exists, "b")
        await called(store.delete, "a")

    run(main())
    report = store.report()
    counted = {verb: (figures.requests, figures.nbytes) for verb, figures in report.verbs.items()}
    assert counted == {"set": (1, 10), "get": (3, 23), "get_spans": (1, 3), "exists": (1, 0), "delete": (1, 0)}
    assert report.max_in_flight == 3
    assert report.verbs["get"].seconds >= 0.06


def test_metrics_count_failures(monkeypatch):
    store = MetricsStore(objects())
    counting = Counting(monkeypatch)
    counting.failures["some/where/a"] = OSError("no")
    with pytest.raises(StoreError):
        run(called(store.get, "a"))
    assert store.report().verbs["get"].failed == 1
    assert store.report().max_in_flight == 1


@pytest.mark.parametrize("verb", ["set", "update", "delete"])
@pytest.mark.parametrize("wrap", [ReadOnlyStore, lambda store: MetricsStore(ReadOnlyStore(store))])
def test_read_only_stores_are_not_written(verb, wrap):
    below = objects()
    below.set("a", b"1")
    arguments = {"set": ("a", b"2"), "update": ("a", lambda _: b"2"), "delete": ("a",)}[verb]
    with pytest.raises(ReadOnlyError):
        run(called(getattr(wrap(below), verb), *arguments))
    assert below.get("a") == b"1"


def test_nothing_above_a_prefix_can_be_reached():
    below = objects()
    below.set("outside", b"1")
    with pytest.raises(StoreError):
        run(called(PrefixStore(below, "a").get, "../outside"))


def test_cache_asks_whether_a_value_is_the_same(monkeypatch):
    below = objects()
    below.set("a", b"old")
    metrics = MetricsStore(below)
    store = CacheStore(metrics)

    async def main():
        assert await called(store.get, "a") == await called(store.get, "a") == b"old"
        below.set("a", b"new")
        assert bytes(await called(store.get, "a", (1, 3))) == b"ew"
        assert [bytes(part) for part in await called(verbs.pinned(store, "a"), [(0, 1)])] == [b"n"]
        await called(store.update, "a", lambda old: bytes(old) + b"er")
        assert await called(store.get, "a") == b"newer"
        await called(store.delete, "a")
        assert await called(store.get, "a") is None

    run(main())
    assert store.info()[:3] == (0, 2, 4)
    assert metrics.report().verbs["get_stamped"].requests == 6


def test_cache_that_need_not_ask_sends_no_requests():
    metrics = MetricsStore(objects())
    store = CacheStore(metrics, max_age=math.inf)

    async def main():
        await called(store.set, "a", b"0123456789")
        metrics.reset()
        assert await called(store.get, "a") == b"0123456789"
        assert await called(verbs.get_spans, store, "a", [(0, 1), (8, None)]) == [b"0", b"89"]
        assert await called(verbs.pinned(store, "a"), [(2, 4)]) == [b"23"]
        assert await called(store.exists, "a")
        assert await called(store.size, "a") == 10

    run(main())
    assert metrics.report().total.requests == 0


def test_cache_forgets_what_could_not_be_written(monkeypatch):
    below = objects()
    store = CacheStore(below, max_age=math.inf)
    counting = Counting(monkeypatch)

    async def main():
        await called(store.set, "a", b"old")
        counting.failures["some/where/a"] = OSError("no")
        with pytest.raises(StoreError):
            await called(store.set, "a", b"new")
        counting.failures.clear()
        below.set("a", b"other")
        return await called(store.get, "a")

    assert run(main()) == b"other"


def test_cache_does_not_keep_an_answer_older_than_a_write(monkeypatch):
    below = objects()
    below.set("a", b"old")
    store = CacheStore(below, max_age=math.inf)
    counting = Counting(monkeypatch)
    ask = counting.__getattr__("get_async")

    async def overtaken(*args, **kwargs):
        answer = await ask(*args, **kwargs)
        store.set("a", b"new")
        return answer

    counting.get_async = overtaken

    async def main():
        return await called(store.get, "a"), await called(store.get, "a")

    assert run(main()) == (b"old", b"new")


def test_wrappers_that_do_more_are_waited_for_in_threads(tmp_path):
    class Subclass(PrefixStore):
        """May do anything."""

    for store in (
        Subclass(objects(), "a"),
        CacheStore(objects(), tmp_path),
        FaultyStore(objects()),
        MetricsStore(CacheStore(objects(), tmp_path)),
    ):
        assert not is_awaitable(store)
