"""Object stores in a process that was forked from one that had used them: the answers are those of obstore."""

import os
import signal
import threading

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.errors import ConflictError, StoreError
from omnizarr.settings import engines
from omnizarr.stores import ObjectStore, verbs
from omnizarr.stores.remote import object_errors
from tests.stores.contract import in_threads

obstore = pytest.importorskip("obstore", reason="the extra cloud is not installed")

needs_native = pytest.mark.skipif(engines.module() is None, reason="the native engine is not built")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@pytest.fixture(params=["s3_server", "azurite_server", "gcs_server"])
def place(request):
    return request.getfixturevalue(request.param).fresh()


@pytest.fixture
def s3(s3_server):
    return s3_server.fresh()


@pytest.fixture
def as_child(monkeypatch):
    """Make a store that takes this process for a forked one."""

    def make(place, **options):
        monkeypatch.setitem(object_errors._pids, "pid", 0)
        return ObjectStore.from_url(f"{place.url}/below", {**place.options, **options})

    return make


@needs_native
def test_answers_are_those_of_obstore(place, as_child, monkeypatch):
    parent = ObjectStore.from_url(f"{place.url}/below", place.options)
    values = {f"a/{number}": bytes([number]) * (number * 1000) for number in range(1, 4)} | {"b": b"0123456789"}
    for key, value in values.items():
        parent.set(key, value)
    questions = [
        lambda store: {key: bytes(store.get(key)) for key in values},
        lambda store: [bytes(store.get("b", span)) for span in ((2, 5), (7, None), (-3, None), (0, 100))],
        lambda store: store.get("c"),
        lambda store: store.size("a/3"),
        lambda store: store.exists("c"),
        lambda store: sorted(store.list()),
        lambda store: sorted(verbs.list_sizes(store, "a")),
        lambda store: store.list_dir("a"),
        lambda store: store.list_dir(""),
        lambda store: store.list_dir("nothing"),
        lambda store: verbs.stamp(store, "b"),
        lambda store: verbs.get_stamped(store, "b", verbs.stamp(store, "b")),
        lambda store: bytes(verbs.pinned(store, "b")([(1, 3)])[0]),
    ]
    expected = [question(parent) for question in questions]
    child = as_child(place)

    def get(*_args, **_options):
        raise AssertionError("obstore would wait for its threads")

    monkeypatch.setattr(obstore, "get", get)
    assert [question(child) for question in questions] == expected


@needs_native
def test_changes_are_those_of_obstore(place, as_child):
    child = as_child(place)
    child.set("a", b"1")
    assert not verbs.set_if_absent(child, "a", b"2")
    assert verbs.set_if_absent(child, "b", b"2")
    with child.lock("a"):
        assert bytes(child.get("a")) == b"1"
        child.set("a", b"3")
    with child.lock("a"):
        child.get("a")
        in_threads(lambda value: child.set("a", value), [b"4"])
        with pytest.raises(ConflictError):
            child.set("a", b"5")
    assert verbs.copy_value(child, "a", "c")
    assert not verbs.copy_value(child, "nothing", "d")
    child.delete("b")
    child.delete("b")
    assert {key: bytes(child.get(key)) for key in child.list()} == {"a": b"4", "c": b"4"}
    verbs.delete_many(child, ["a", "c", "nothing"])
    assert list(child.list()) == []


@needs_native
@pytest.mark.slow
def test_a_large_value(s3, as_child):
    child = as_child(s3)
    value = np.random.default_rng(0).bytes(33 * 2**20)
    child.set("large", value)
    assert child.get("large") == value


@needs_native
def test_a_value_that_is_too_large_is_refused(s3, as_child):
    child = as_child(s3, max_value_bytes=100)
    child.set("large", bytes(101))
    for read in (child.get, lambda key: child.get(key, (0, 101)), lambda key: child.get(key, (0, None))):
        with pytest.raises(StoreError, match="too large"):
            read("large")


@needs_native
def test_errors_are_those_of_obstore(s3, as_child):
    with pytest.raises(StoreError) as of_parent:
        ObjectStore.from_url(f"{s3.url}-missing/a", s3.options).get("x")
    child = as_child(s3)
    child = ObjectStore.from_url(f"{s3.url}-missing/a", s3.options)
    with pytest.raises(StoreError) as of_child:
        child.get("x")
    assert str(of_child.value) == str(of_parent.value)


@needs_native
async def test_event_loops_are_served(s3, as_child):
    child = as_child(s3)
    array = omnizarr.create_array(child, data=np.arange(20).reshape(4, 5), chunks=(2, 2))
    same = await aio.open_array(child)
    assert (await same.getitem(...)).tolist() == array[...].tolist()


def test_a_store_that_only_obstore_can_reach_says_so(s3, as_child):
    child = as_child(s3, proxy_url="http://127.0.0.1:9")
    with pytest.raises(StoreError, match="spawn"):
        child.get("x")


def in_child(task):
    child = os.fork()
    if not child:
        try:
            signal.alarm(60)
            task()
            os._exit(0)
        finally:
            os._exit(1)
    return child


@needs_native
@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_children_read_and_write_while_threads_of_their_parent_do(s3):
    values = np.arange(10_000, dtype="int32").reshape(100, 100)
    array = omnizarr.create_array(f"{s3.url}/a", data=values, chunks=(10, 10), storage_options=s3.options)
    is_over, wrong = threading.Event(), []

    def read():
        while not is_over.is_set():
            if not np.array_equal(array[...], values):
                wrong.append(1)

    def use():
        assert np.array_equal(array[...], values)
        own = omnizarr.create_array(f"{s3.url}/{os.getpid()}", data=values, chunks=(50, 50), storage_options=s3.options)
        own[3:7] = 1
        assert omnizarr.open_array(own.store_path)[4, 4] == 1
        assert int(omnizarr.open_array(f"{s3.url}/a", storage_options=s3.options)[...].sum()) == int(values.sum())

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            children = [in_child(use) for _ in range(2)]
            assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert len(list(omnizarr.open_group(s3.url, storage_options=s3.options))) == 7
