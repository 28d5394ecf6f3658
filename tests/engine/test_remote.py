"""Chunks that the native engine fetches itself: the same values and the same errors as by way of Python."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from functools import partial
from textwrap import dedent

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine
from omnizarr.errors import SettingError, StoreError
from omnizarr.stores import ObjectStore, verbs
from tests import servers
from tests.engine.both import needs_posix, outcome
from tests.engine.remote import CRC, GZIP, VALUES, ZSTD, by, chunks, failure, needs_remote, packed, put, respond, run
from tests.faultproxy import Answer, FaultProxy, Hang, Refuse, Reset, Slow, Truncate
from tests.stores.recording import FAST, recording

stores = pytest.importorskip("obstore.store")

pytestmark = needs_remote

LAYOUTS = {
    "raw": {"compressors": None},
    "zstd": {"compressors": ZSTD},
    "two compressors": {"compressors": [GZIP, CRC]},
    "transposed": {"compressors": ZSTD, "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    "large and raw": {"compressors": None, "chunks": (100, 90), "dtype": "f8"},
    "big-endian": {"compressors": None, "dtype": ">i8"},
    "shards": {"compressors": ZSTD, "shards": (32, 32)},
    "raw shards": {"compressors": None, "shards": (64, 64)},
    "compressed shards": {"chunks": (32, 32), **packed(16, 16)},
    "v2": {"zarr_format": 2},
}
SELECTIONS = {
    "all": ...,
    "window": (slice(5, 40), slice(20, 70)),
    "one": (17, 33),
    "steps": (slice(None, None, 7), slice(80, 3, -5)),
    "column": (slice(None), 4),
    "points": ([3, 99, 3, 50], [0, 89, 1, 50]),
}


def select(array, name):
    chosen = SELECTIONS[name]
    return array.vindex[chosen] if name == "points" else array[chosen]


@pytest.fixture
def server():
    with recording() as server:
        yield server


@pytest.fixture
def url(server):
    return put(server, "/data/a", compressors=ZSTD)


# -- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_selection_of_every_layout_is_the_same(server, layout):
    url = put(server, "/data/a", **LAYOUTS[layout])
    natively, otherwise = by("native", url, FAST), by("python", url, FAST)
    for name in SELECTIONS:
        assert outcome(lambda name=name: select(natively, name)) == outcome(lambda name=name: select(otherwise, name))
    many = [(natively, chosen) for name, chosen in SELECTIONS.items() if name != "points"]
    for got, (_, chosen) in zip(omnizarr.read_many(many), many, strict=True):
        np.testing.assert_array_equal(got, otherwise[chosen])

    async def awaited():
        array = aio.AsyncArray(natively)
        return await asyncio.gather(*(array.getitem(chosen) for _, chosen in many))

    for got, (_, chosen) in zip(asyncio.run(awaited()), many, strict=True):
        np.testing.assert_array_equal(got, otherwise[chosen])


@pytest.mark.parametrize("cloud", ["s3_server", "azurite_server", "gcs_server", "http_server"])
@pytest.mark.parametrize("layout", ["zstd", "raw shards"])
def test_every_cloud_is_read(request, cloud, layout):
    place = request.getfixturevalue(cloud).fresh()
    url = f"{place.url}/ä %41/a.zarr"
    if cloud == "http_server":
        store = f"{place.directory}/ä %41/a.zarr"
        url, options = f"{place.url}/%C3%A4%20%2541/a.zarr", {}
    else:
        store, options = url, place.options
    how = {"chunks": (16, 16), **LAYOUTS[layout]}
    array = omnizarr.create_array(
        store, shape=VALUES.shape, dtype="i4", fill_value=7, storage_options=options or None, **how
    )
    array[10:] = VALUES[10:]
    natively, otherwise = by("native", url, place.options), by("python", url, place.options)
    for name in SELECTIONS:
        assert outcome(lambda name=name: select(natively, name)) == outcome(lambda name=name: select(otherwise, name))


def test_a_store_of_the_user_is_taken_unchanged(server, url):
    client = {"allow_http": True, "default_headers": {"X-Of-Mine": b"1"}}
    store = stores.HTTPStore(server.url("/data"), client_options=client)
    with omnizarr.config.set({"fetch": "native"}):
        array = omnizarr.open_array(ObjectStore(store, prefix="a"), mode="r")
        assert engine.is_remote(array._bind().binding)
        server.requests()
        assert array[50, 50] == VALUES[50, 50]
    (_, path, headers), *others = server.requests()
    assert (path, headers["x-of-mine"], others) == ("/data/a/c/3/3", "1", [])
    assert headers["host"] == f"127.0.0.1:{server.server_port}"


def test_requests_look_the_same(server, url):
    asked = []
    for fetch in ("native", "python"):
        array = by(fetch, url, {**FAST, "headers": {"Authorization": "Bearer x"}, "user_agent": "me"})
        server.requests()
        assert array[50, 50] == VALUES[50, 50]
        (request,) = server.requests()
        request[2].pop("range", None)
        assert request[2].pop("accept-encoding", "identity") == "identity"
        asked.append(request)
    assert asked[0] == asked[1]


class Mine(ObjectStore):
    """A store of the user's."""


@pytest.mark.parametrize(
    "store",
    [
        lambda _: ObjectStore(stores.MemoryStore()),
        lambda url: Mine.from_url(url, {}),
        lambda url: ObjectStore.from_url(url, {"proxy_url": "http://127.0.0.1:9"}),
        lambda url: ObjectStore.from_url(url, {"allow_invalid_certificates": True}),
        lambda url: ObjectStore.from_url(url, {"http2_only": True}),
        lambda _: ObjectStore(
            stores.S3Store(
                "bucket",
                credential_provider=lambda: {"access_key_id": "a", "secret_access_key": "b", "expires_at": None},
            )
        ),
    ],
    ids=["in memory", "subclass", "proxy", "certificates", "HTTP/2", "credentials from Python"],
)
def test_what_cannot_be_carried_goes_the_old_way(server, store):
    assert verbs.access(store(server.url("/data"))) is None


def test_proxies_of_the_environment_are_honoured_by_the_old_way(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "example.com")
    assert verbs.access(ObjectStore.from_url(server.url("/data"))) is None
    assert verbs.access(ObjectStore.from_url("http://a.example.com/data")) is not None
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    assert verbs.access(ObjectStore.from_url(server.url("/data"))) is not None


@pytest.mark.parametrize(("given", "is_native"), [("", True), ("native", True), ("python", False)])
def test_the_environment_says_who_fetches(url, given, is_native):
    done = subprocess.run(
        [sys.executable, "-c", dedent(
            """
            import sys
            import omnizarr
            from omnizarr import engine
            print(engine.is_remote(omnizarr.open_array(sys.argv[1], mode="r")._bind().binding))
            """
        ), url],
        capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "OMNIZARR_FETCH": given},
    )  # fmt: skip
    assert done.stdout.split() == [str(is_native)]


def test_the_setting_is_checked():
    with pytest.raises(SettingError, match="fetch"):
        omnizarr.config.set({"fetch": "natively"})


def test_secrets_are_not_shown(server):
    store = ObjectStore.from_url("s3://bucket", {"access_key_id": "mine-id", "secret_access_key": "mine-secret"})
    assert "mine" not in repr(verbs.access(store))


# -- errors ----------------------------------------------------------------------------------


def cut(handler):
    handler.respond(206 if "Range" in handler.headers else 200, b"01234", Content_Length=100, ETag='"1"',
                    **({"Content_Range": "bytes 0-99/100"} if "Range" in handler.headers else {}))  # fmt: skip
    handler.close_connection = True
    return True


def slam(handler):
    handler.close_connection = True
    return True


ANSWERS = {
    "400": respond(400, b"why not"),
    "401": respond(401),
    "403": respond(403, b"key-of-mine and more"),
    "409": respond(409),
    "416": respond(416),
    "429": respond(429),
    "500": respond(500, b"<Error><Code>Oops</Code><Message>no</Message></Error>"),
    "501": respond(501),
    "503": respond(503),
    "no such bucket": respond(404, b"<Code>NoSuchBucket</Code>"),
    "another length": respond(200, b"01234", ETag='"1"'),
    "cut": cut,
    "slammed": slam,
    "a redirect to itself": lambda handler: handler.respond(302, Location=handler.path) or True,
    "a redirect to nowhere": respond(302),
    "garbage": lambda handler: handler.wfile.write(b"garbage\r\n\r\n") or slam(handler),
    "a wrong length": respond(200, Content_Length="x"),
}


@pytest.mark.parametrize("layout", ["raw", "zstd", "raw shards"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_every_failure_is_the_same_error(server, answer, layout):
    url = put(server, "/data/a", **LAYOUTS[layout])
    errors = []
    for fetch in ("native", "python"):
        server.answer = None
        array = by(fetch, url, {**FAST, "headers": {"Authorization": "key-of-mine"}})
        server.answer = ANSWERS[answer]
        errors.append(failure(lambda array=array: array[50, 50]))
        errors.append(failure(lambda array=array: omnizarr.read_many([(array, (50, 50)), (array, (50, 51))])))
        errors.append(failure(lambda array=array: asyncio.run(aio.AsyncArray(array).getitem((50, 50)))))
    assert errors[0] == errors[1]
    if answer != "cut":  # of a body that breaks off, the clients tell different details
        assert errors[0] == errors[3]
    assert [error[0] for error in errors] == [errors[0][0]] * 6
    assert "key-of-mine" not in repr(errors)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://no-such-host.invalid", "http://[::1]:9"])
def test_no_connection_is_the_same_error(url, endpoint):
    errors = []
    for fetch in ("native", "python"):
        store = ObjectStore.from_url(f"{endpoint}/data/a", {**FAST, "connect_timeout": 60})
        array = by(fetch, url, FAST)
        with omnizarr.config.set({"fetch": fetch}):
            binding = array._bind().binding.upon(store, "", "")
        plan = omnizarr.indexing.plan((50, 50), binding.grid)
        out = np.empty(plan.buffer_shape, "i4")
        assert engine.is_remote(binding) == (fetch == "native")
        errors.append(failure(lambda binding=binding, plan=plan, out=out: engine.read(binding, plan, out)))
    assert (errors[0][0], errors[0][2]) == (errors[1][0], errors[1][2])


def test_silent_server_is_given_up_once(server, url):
    times, errors = [], []
    for fetch in ("native", "python"):
        server.answer = None
        array = by(fetch, url, {**FAST, "read_timeout": 1, "max_retries": 1})
        server.answer = lambda _: time.sleep(4) or True
        begun = time.monotonic()
        errors.append(failure(lambda array=array: array[50, 50]))
        times.append(time.monotonic() - begun)
    assert errors[0] == errors[1]
    assert times[0] < times[1] + 1.5


def test_body_that_falls_silent_is_given_up(server, url):
    def stall(handler):
        handler.respond(200, b"01234", Content_Length=100, ETag='"1"')
        handler.wfile.flush()
        time.sleep(4)
        return True

    errors = []
    for fetch in ("native", "python"):
        server.answer = None
        array = by(fetch, url, {**FAST, "read_timeout": 0.5, "max_retries": 1})
        server.answer = stall
        begun = time.monotonic()
        errors.append(failure(lambda array=array: array[50, 50]))
        assert time.monotonic() - begun < 4
    assert errors[0][0] == errors[1][0]


@pytest.mark.parametrize("layout", ["raw", "zstd", "raw shards"])
def test_broken_chunks_are_the_same_errors(server, layout):
    url = put(server, "/data/a", **LAYOUTS[layout])
    natively, otherwise = by("native", url, FAST), by("python", url, FAST)
    for key in [key for key in server.values if "/c/" in key]:
        server.values[key] = server.values[key][:-3]
    for chosen in ((70, 70), ...):
        errors = [failure(partial(array.__getitem__, chosen)) for array in (natively, otherwise)]
        assert errors[0][0] == errors[1][0]
    assert failure(lambda: natively[70, 70]) == failure(lambda: otherwise[70, 70])


def test_missing_chunks_are_errors_if_asked_for(server, url):
    for fetch in ("native", "python"):
        array = by(fetch, url, FAST, config={"read_missing_chunks": False})
        assert failure(lambda array=array: array[0, 0])[0] is omnizarr.errors.ChunkNotFoundError


def test_value_that_is_too_large_is_not_fetched(server, url):
    options = {**FAST, "max_value_bytes": 10}
    store = ObjectStore.from_url(url, options)
    with omnizarr.config.set({"fetch": "native"}):
        binding = by("native", url, FAST)._bind().binding.upon(store, "", "")
    plan = omnizarr.indexing.plan((50, 50), binding.grid)
    assert (
        failure(lambda: engine.read(binding, plan, np.empty(plan.buffer_shape, "i4")))[0]
        is omnizarr.errors.StoreLimitError
    )


@pytest.mark.parametrize("layout", ["large and raw", "raw shards"])
def test_server_that_ignores_ranges_serves_all_the_same(server, layout):
    url = put(server, "/data/a", **LAYOUTS[layout])
    array = by("native", url, FAST)
    server.knows_ranges = False
    for name in SELECTIONS:
        np.testing.assert_array_equal(select(array, name), select(by("python", url, FAST), name))


def test_redirects_are_followed(server, url):
    array = by("native", url, FAST)
    moved = {key.replace("/data/", "/moved/"): value for key, value in server.values.items()}
    server.values.update(moved)

    def answer(handler):
        if "/data/" not in handler.path:
            return False
        handler.respond(302, Location=handler.path.replace("/data/", "/moved/"))
        return True

    server.answer = answer
    assert array[50, 50] == VALUES[50, 50]


PASSING = [Answer(503), Answer(500), Answer(429), Refuse(), Reset(), Reset(50), Truncate(50), Hang(), Slow(20_000)]


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_faults_that_pass_are_not_noticed(s3_server, fault):
    place = s3_server.fresh()
    with FaultProxy(s3_server.endpoint) as proxy:
        options = {**place.at(proxy.endpoint).options, **FAST, "read_timeout": 1, "max_retries": 20}
        array = omnizarr.create_array(
            f"{place.url}/a", shape=VALUES.shape, chunks=(16, 16), dtype="i4", storage_options=place.options
        )
        array[...] = VALUES
        array = by("native", f"{place.url}/a", options)
        proxy.fault(fault, method="GET", path="/c/", times=3)
        np.testing.assert_array_equal(array[...], VALUES)
        assert proxy.struck == 3


# -- requests --------------------------------------------------------------------------------


def test_each_chunk_is_one_request(server, url):
    array = by("native", url, FAST)
    server.requests()
    array[...]
    assert set(chunks(server).values()) == {1}


def test_a_chunk_is_fetched_once_for_all_selections(server, url):
    array, again = by("native", url, FAST), by("native", url, FAST)
    server.requests()
    wanted = [(one, (32 + number % 16, slice(32, 48))) for number in range(50) for one in (array, again)]
    for (_, chosen), got in zip(wanted, omnizarr.read_many(wanted), strict=True):
        np.testing.assert_array_equal(got, VALUES[chosen])
    assert chunks(server) == {"/data/a/c/2/2": 1}


def test_a_chunk_is_fetched_once_for_all_tasks(server, url):
    array = aio.AsyncArray(by("native", url, FAST))
    server.requests()

    async def main():
        windows = [(slice(30 + number % 10, 60), slice(20 + number % 7, 50)) for number in range(300)]
        for chosen, got in zip(windows, await asyncio.gather(*map(array.getitem, windows)), strict=True):
            np.testing.assert_array_equal(got, VALUES[chosen])

    asyncio.run(main())
    asked = chunks(server)
    assert len(asked) == 9
    assert set(asked.values()) == {1}


def test_the_index_of_a_shard_is_fetched_once_for_all_selections(server):
    url = put(server, "/data/a", **LAYOUTS["raw shards"])
    array = by("native", url, FAST)
    server.requests()
    wanted = [(array, (64 + number % 16, slice(0, 16))) for number in range(50)]
    for (_, chosen), got in zip(wanted, omnizarr.read_many(wanted), strict=True):
        np.testing.assert_array_equal(got, VALUES[chosen])
    assert chunks(server) == {"/data/a/c/1/0": 2}  # the index, and the chunk


def test_threads_that_need_a_chunk_at_once_share_requests(server, url):
    array = by("native", url, FAST)
    server.requests()
    server.answer = lambda _: time.sleep(0.3)
    start, results = threading.Barrier(40), []

    def work(number):
        start.wait()
        results.append((number, array[32 + number % 16, 33]))

    crew = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert all(got == VALUES[32 + number % 16, 33] for number, got in results)
    assert chunks(server)["/data/a/c/2/2"] <= 4


def test_a_read_sees_what_was_written_before_it_began(server, url):
    """An answer to a request that was sent before the value changed is not good enough."""
    array = by("native", url, FAST)
    new = server.values["/data/a/c/3/3"]
    came, old_values = threading.Event(), []

    def slow(handler):
        if handler.path.endswith("c/2/2") and not came.is_set():
            old = server.values[handler.path]
            came.set()
            time.sleep(1)
            handler.respond(200, old, ETag='"old"')
            return True
        return False

    server.answer = slow
    early = threading.Thread(target=lambda: old_values.append(array[32, 32]))
    early.start()
    assert came.wait(10)
    server.values["/data/a/c/2/2"] = new
    assert array[32, 32] == VALUES[48, 48]
    early.join()
    assert old_values == [VALUES[32, 32]]


def test_parts_of_two_versions_are_never_mixed(server):
    url = put(server, "/data/a", **LAYOUTS["raw shards"])
    array = by("native", url, FAST)
    old = server.values["/data/a/c/1/0"]
    new = bytes(255 - byte for byte in old[:-260]) + old[-260:]
    is_changed = []

    def change(handler):
        if handler.path.endswith("c/1/0") and handler.headers.get("Range", "").startswith("bytes=-") and not is_changed:
            is_changed.append(True)
            handler.respond(206, old[-260:], Content_Range=f"bytes {len(old) - 260}-{len(old) - 1}/{len(old)}",
                            ETag=f'"{hash(old)}"')  # fmt: skip
            server.values[handler.path] = new
            return True
        return False

    server.answer = change
    got = array[64:80, 0:60]
    whole = by("python", url, FAST)[64:80, 0:60]
    np.testing.assert_array_equal(got, whole)
    assert is_changed


# -- processes, threads, interrupts -------------------------------------------------------------


@needs_posix
def test_children_and_grandchildren_read_on(server, url):
    said = run(
        """
        import os, signal, sys, warnings
        import omnizarr
        warnings.simplefilter("ignore")
        omnizarr.config.set({"fetch": "native"})
        signal.alarm(60)
        array = omnizarr.open_array(sys.argv[1], mode="r")
        total = int(array[...].sum())

        def forked(task):
            child = os.fork()
            if not child:
                try:
                    signal.alarm(30)
                    task()
                    os._exit(0)
                finally:
                    os._exit(1)
            return child

        def join(child):
            assert os.waitpid(child, 0)[1] == 0

        def read():
            assert int(array[...].sum()) == total

        def read_and_fork():
            read()
            join(forked(read))
            read()

        for _ in range(5):
            child = forked(read_and_fork)
            read()
            join(child)
        print("done")
        """,
        url,
    )
    assert said == "done\n"


@needs_posix
def test_ctrl_c_ends_a_read_at_once(server, url):
    array_url = url
    by("native", url, FAST)
    server.answer = lambda handler: "/c/" in handler.path and (time.sleep(20) or True)
    said = run(
        """
        import os, signal, sys, threading, time
        import omnizarr
        omnizarr.config.set({"fetch": "native"})
        array = omnizarr.open_array(sys.argv[1], mode="r")
        begun = time.monotonic()
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            array[...]
        except KeyboardInterrupt:
            print(time.monotonic() - begun < 5)
        """,
        array_url,
    )
    assert said == "True\n"


def test_many_threads_read_side_by_side(server, url):
    array, wrong = by("native", url, FAST), []
    expected = by("python", url, FAST)[...]

    def work(number):
        for turn in range(5):
            chosen = slice((number + turn) % 50, 90), slice(number % 40, 80)
            if not np.array_equal(array[chosen], expected[chosen]):
                wrong.append(chosen)

    crew = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert not wrong


def test_cancelled_tasks_leave_the_memory_alone(server, url):
    array = aio.AsyncArray(by("native", url, FAST))
    go_on = threading.Event()
    server.answer = lambda _: not go_on.wait(60)
    out = np.zeros(VALUES.shape, "i4")

    async def main():
        task = asyncio.create_task(array.get_basic_selection(..., out=out))
        other = asyncio.create_task(array.getitem((50, 50)))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task  # though the server has not answered
        out[...] = -1
        go_on.set()
        assert await other == VALUES[50, 50]
        await asyncio.sleep(1)

    asyncio.run(main())
    assert (out == -1).all()


def test_loops_end_with_reads_under_way(server, url):
    array = aio.AsyncArray(by("native", url, FAST))
    server.answer = lambda _: time.sleep(0.3)

    async def main():
        asyncio.create_task(array.getitem(...))  # noqa: RUF006 - it is to be left behind
        await asyncio.sleep(0.05)

    for _ in range(3):
        asyncio.run(main())
    server.answer = None
    assert array.array[50, 50] == VALUES[50, 50]


def test_errors_of_one_task_do_not_stop_others(server, url):
    array = aio.AsyncArray(by("native", url, FAST))
    server.answer = lambda handler: handler.path.endswith("c/3/3") and (handler.respond(403) or True)

    async def main():
        return await asyncio.gather(*(array.getitem((row, row)) for row in (50, 20, 70)), return_exceptions=True)

    first, *others = asyncio.run(main())
    assert isinstance(first, StoreError)
    assert others == [VALUES[20, 20], VALUES[70, 70]]


_ = servers  # its fixtures
