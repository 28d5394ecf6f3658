"""Chunks that the native engine stores itself: the same values, keys and errors as by way of Python."""

from __future__ import annotations

import gzip
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import omnizarr
from omnizarr import engine
from omnizarr.errors import ConflictError, StoreError
from omnizarr.stores import MemoryStore, ObjectStore
from tests.engine.both import needs_posix
from tests.engine.remote import VALUES, ZSTD, failure, needs_remote, respond, run
from tests.engine.test_remote import LAYOUTS, PASSING
from tests.faultproxy import FaultProxy
from tests.stores.recording import FAST, recording

pytest.importorskip("obstore", reason="the extra cloud is not installed")

pytestmark = needs_remote

PAIR = ("native", "python")
WHOLE = (slice(16, 64), slice(32, 80))
"""Nine chunks of 16 by 16."""


@pytest.fixture
def server():
    with recording() as server:
        yield server


def document(**how):
    """Return what describes an array, by key."""
    store = MemoryStore()
    how = {"chunks": (16, 16), "dtype": "i4", "fill_value": 7, **how}
    omnizarr.create_array(store, shape=VALUES.shape, **how)
    return {key: bytes(store.get(key)) for key in store.list()}


def make(server, path, **how):
    """Describe an array below a path of a web server, and return its URL."""
    server.values.update({f"{path}/{key}": value for key, value in document(**how).items()})
    return server.url(path)


def by(fetch, url, options=FAST, **how):
    """Open an array whose chunks are stored natively, or by way of Python."""
    with omnizarr.config.set({"fetch": fetch}):
        array = omnizarr.open_array(url, mode="r+", storage_options=options, **how)
        assert engine.is_remote(array._bind().binding) == (fetch == "native")
        return array


# -- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", ["s3_server", "azurite_server", "gcs_server"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_cloud_gets_the_same_keys_and_values(request, cloud, layout):
    place = request.getfixturevalue(cloud).fresh()
    how = {"chunks": (16, 16), "dtype": "i4", "fill_value": 7, **LAYOUTS[layout]}
    held = VALUES.astype(how["dtype"])
    held[:32, :32] = 7
    stored = []
    for fetch in PAIR:
        url = f"{place.url}/ä %41/{fetch}.zarr"
        omnizarr.create_array(url, shape=VALUES.shape, storage_options=place.options, **how)
        array = by(fetch, url, place.options)
        array[...] = VALUES  # also what is deleted next
        array[...] = held
        array[3:20, 5:50] = 8
        store = ObjectStore.from_url(url, place.options)
        values = {key: bytes(store.get(key)) for key in store.list()}
        if layout == "two compressors":
            # The engines encode gzip differently, and Python writes parts of chunks with the engine in Python.
            for key in values:
                row, _, column = key.removeprefix("c/").partition("/")
                if key.startswith("c/") and (row == "6" or column == "5" or (int(row) < 2 and int(column) < 4)):
                    values[key] = b""
        if layout == "compressed shards":  # the engines encode gzip differently
            values = {key: gzip.decompress(value) if key.startswith("c/") else value for key, value in values.items()}
        stored.append(values)
        expected = held.copy()
        expected[3:20, 5:50] = 8
        np.testing.assert_array_equal(by("python", url, place.options)[...], expected)
    assert stored[0] == stored[1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_web_server_gets_the_same_keys_and_values(server, layout):
    for fetch in PAIR:
        array = by(fetch, make(server, f"/{fetch}", **LAYOUTS[layout]))
        array[...] = VALUES
        array[3:20, 5:50] = 8
        array[16:64, 32:80] = VALUES[16:64, 32:80].T[:48, :48]
    values = [{key[len(path) :]: value for key, value in server.values.items() if key.startswith(path)}
              for path in ("/native", "/python")]  # fmt: skip
    assert values[0] == values[1]


def test_whole_chunks_are_stored_without_python(s3_server, monkeypatch):
    def never(*_, **__):
        raise AssertionError("Python was asked to write")

    place = s3_server.fresh()
    omnizarr.create_array(
        f"{place.url}/a", shape=VALUES.shape, chunks=(16, 16), dtype="i4", fill_value=7, storage_options=place.options
    )
    array = by("native", f"{place.url}/a", place.options)
    for verb in ("set", "delete", "update"):
        monkeypatch.setattr(ObjectStore, verb, never)
    array[WHOLE] = VALUES[WHOLE]
    array[16:32, 32:48] = 7
    expected = VALUES.copy()
    expected[16:32, 32:48] = 7
    np.testing.assert_array_equal(array[WHOLE], expected[WHOLE])
    assert len([*ObjectStore.from_url(f"{place.url}/a/c", place.options).list()]) == 8


@pytest.mark.parametrize("how", [{}, {"shards": (512, 1024)}], ids=["chunks", "shards"])
def test_large_chunks_are_encoded_while_others_are_on_their_way(s3_server, how):
    place = s3_server.fresh()
    array = omnizarr.create_array(
        f"{place.url}/a", shape=(1024, 2048), chunks=(256, 512), dtype="f8", compressors=ZSTD,
        storage_options=place.options, **how,
    )  # fmt: skip
    values = np.random.default_rng(1).integers(0, 100, array.shape).astype("f8")
    array = by("native", f"{place.url}/a", place.options)
    array[...] = values
    np.testing.assert_array_equal(by("python", f"{place.url}/a", place.options)[...], values)


def test_a_server_without_conditions_gets_the_same_values(s3_server):
    place = s3_server.fresh()
    options = {**place.options, "conditional_put": "disabled"}
    omnizarr.create_array(
        f"{place.url}/a", shape=VALUES.shape, chunks=(16, 16), dtype="i4", fill_value=7, storage_options=options
    )
    by("native", f"{place.url}/a", options)[...] = VALUES  # whole chunks and parts
    np.testing.assert_array_equal(by("python", f"{place.url}/a", options)[...], VALUES)


def test_threads_write_different_chunks_at_once(s3_server):
    place = s3_server.fresh()
    omnizarr.create_array(f"{place.url}/a", shape=(96, 80), chunks=(8, 8), dtype="i4", storage_options=place.options)
    array = by("native", f"{place.url}/a", place.options)

    def write(first):
        array[first : first + 8] = VALUES[first : first + 8, :80]

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(write, range(0, 96, 8)))
    np.testing.assert_array_equal(array[...], VALUES[:96, :80])


@needs_posix
def test_a_forked_child_stores_whole_chunks(server):
    array = by("native", make(server, "/data/a"))
    array[16:32, 16:32] = 1
    script = """
        import os, signal, sys
        import omnizarr
        omnizarr.config.set({"fetch": "native"})
        array = omnizarr.open_array(sys.argv[1], mode="r+")
        array[16:32, 16:32] = 1
        child = os.fork()
        if not child:
            signal.alarm(30)
            array[32:48, 16:48] = 2
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        """
    assert run(script, server.url("/data/a")).split() == ["0"]
    assert (array[16:32, 16:32] == 1).all()
    assert (array[32:48, 16:48] == 2).all()


def test_requests_look_the_same(server):
    asked = []
    for fetch in PAIR:
        array = by(
            fetch, make(server, "/data/a"), {**FAST, "headers": {"Authorization": "Bearer x"}, "user_agent": "me"}
        )
        server.requests()
        array[16:32, 16:32] = VALUES[16:32, 16:32]
        asked.append(server.requests())
    asked[1][0][2].pop("accept-encoding", None)  # only Python's client says how it takes the answer
    assert asked[0] == asked[1]
    assert [(verb, path) for verb, path, _ in asked[0]] == [("PUT", "/data/a/c/1/1")]


# -- errors ----------------------------------------------------------------------------------


def cut(handler):
    handler.close_connection = True
    return True


ANSWERS = {
    **{
        str(code): respond(code, b"key-of-mine and more") for code in (400, 401, 403, 404, 405, 409, 412, 500, 501, 503)
    },
    "no such bucket": respond(404, b"<Code>NoSuchBucket</Code>"),
    "slammed": cut,
    "a redirect to itself": lambda handler: handler.respond(307, Location=handler.path) or True,
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_failure_is_the_same_error(server, answer):
    errors = []
    for fetch in PAIR:
        server.put_answer = None
        array = by(fetch, make(server, "/data/a"), {**FAST, "headers": {"Authorization": "key-of-mine"}})
        server.put_answer = ANSWERS[answer]
        errors.append(failure(lambda array=array: array.__setitem__((slice(16, 32), slice(16, 32)), 1)))
    assert errors[0] == errors[1]
    assert "key-of-mine" not in repr(errors)
    assert not [key for key in server.values if "/c/" in key]


@pytest.mark.parametrize("answer", ["403", "500", "slammed"])
def test_one_chunk_that_fails_is_named_and_nothing_is_under_way_afterwards(server, answer):
    for fetch in PAIR:
        server.values.clear()
        server.put_answer = None
        array = by(fetch, make(server, "/data/a"))
        server.put_answer = lambda handler: ANSWERS[answer](handler) if handler.path.endswith("/2/3") else (
            time.sleep(0.1)
        )  # fmt: skip
        with pytest.raises(StoreError) as caught:
            array[WHOLE] = VALUES[WHOLE]
        before = dict(server.values)
        assert (caught.value.key, caught.value.coords) == ("c/2/3", (2, 3))
        time.sleep(0.3)
        assert server.values == before


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_faults_that_pass_are_not_noticed(s3_server, fault):
    place = s3_server.fresh()
    with FaultProxy(s3_server.endpoint) as proxy:
        options = {**place.at(proxy.endpoint).options, **FAST, "read_timeout": 1, "max_retries": 20}
        omnizarr.create_array(
            f"{place.url}/a", shape=VALUES.shape, chunks=(16, 16), dtype="i4", storage_options=place.options
        )
        array = by("native", f"{place.url}/a", options)
        proxy.fault(fault, method="PUT", path="/c/", times=3)
        array[...] = VALUES
        assert proxy.struck == 3
        array = omnizarr.open_array(f"{place.url}/a", storage_options=place.options)
        np.testing.assert_array_equal(array[...], VALUES)


def test_a_server_that_does_not_read_what_it_refuses_is_no_obstacle(server):
    """It answers at once; the connection is of no use while the rest is sent."""
    array = by("native", make(server, "/data/a", chunks=(100, 90), dtype="f8"), {**FAST, "max_retries": 3})
    failed = []

    def refuse_once(handler):
        if failed:
            return False
        failed.append(handler)
        handler.respond(503)
        return True

    server.put_answer = refuse_once
    array[...] = VALUES
    np.testing.assert_array_equal(by("python", server.url("/data/a"))[...], VALUES)


def test_what_was_read_under_a_lock_is_a_condition(s3_server):
    place = s3_server.fresh()
    array = omnizarr.create_array(
        f"{place.url}/a", shape=(4,), chunks=(2,), dtype="i4", compressors=None, storage_options=place.options
    )
    array[...] = 1
    mine, other = (ObjectStore.from_url(f"{place.url}/a", place.options) for _ in range(2))
    array = omnizarr.open_array(mine, mode="r+")
    assert engine.is_remote(array._bind().binding)
    with mine.lock("c/0"):
        mine.get("c/0")
        task = threading.Thread(target=other.set, args=("c/0", np.array([5, 6], "i4").tobytes()))
        task.start()
        task.join()
        with pytest.raises(ConflictError):
            array[:2] = 2
    np.testing.assert_array_equal(array[...], [5, 6, 1, 1])


@needs_posix
def test_nothing_is_under_way_after_an_interrupt(server):
    array = by("native", make(server, "/data/a"), {**FAST, "concurrency": 4})
    server.put_answer = lambda _: time.sleep(0.2)
    main = threading.main_thread().ident
    threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        array[...] = VALUES
    before = {key: value for key, value in server.values.items() if "/c/" in key}
    assert 0 < len(before) < 42
    time.sleep(0.5)
    assert {key: value for key, value in server.values.items() if "/c/" in key} == before
