"""Chunks of which the native engine itself writes parts: no element is lost, and errors are those of Python."""

from __future__ import annotations

import asyncio
import math
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine
from omnizarr.errors import ConflictError, StoreAccessError, StoreError, StoreLimitError
from omnizarr.stores import ObjectStore, conflicts
from omnizarr.stores.remote import object as objects
from tests.concurrency import crews, scenarios
from tests.engine.both import needs_posix
from tests.engine.remote import ZSTD, failure, needs_remote, packed, respond, run
from tests.faultproxy import Answer, Call, Hang, Refuse, Reset
from tests.stores.recording import FAST, recording

pytest.importorskip("obstore", reason="the extra cloud is not installed")

pytestmark = needs_remote

PAIR = ("native", "python")
VALUES = np.arange(1, 65, dtype="i4").reshape(8, 8)
OPTIONS = {"access_key_id": "mine", "secret_access_key": "secret-of-mine", "region": "us-east-1", **FAST}
LAYOUTS = {
    "raw": {"compressors": None},
    "zstd": {"compressors": ZSTD},
    "transposed": {"compressors": ZSTD, "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    "shards": {"compressors": ZSTD, "chunks": (2, 2), "shards": (4, 4)},
    "compressed shards": packed(2, 2),
    "v2": {"zarr_format": 2},
}


@pytest.fixture
def server():
    """A server that keeps the conditions of S3."""
    with recording(has_conditions=True) as server:
        yield server


def mine(server):
    return {**OPTIONS, "endpoint": server.url()}


def create(url, options, **how):
    how = {"shape": VALUES.shape, "chunks": (4, 4), "dtype": "i4", "fill_value": 0, "compressors": ZSTD, **how}
    return omnizarr.create_array(url, storage_options=options, **how)


def by(fetch, url, options, **how):
    """Open an array whose chunks are stored natively, or by way of Python."""
    with omnizarr.config.set({"fetch": fetch}):
        array = omnizarr.open_array(url, mode="r+", storage_options=options, **how)
        assert engine.is_remote(array._bind().binding) == (fetch == "native")
        return array


class Sync:
    """Writes as an array does."""

    def __init__(self, *args, **how):
        self.array = by(*args, **how)

    def write(self, selection, value):
        self.array[selection] = value


class Awaited(Sync):
    """Writes as a task does."""

    def write(self, selection, value):
        asyncio.run(aio.AsyncArray(self.array).setitem(selection, value))


WAYS = (Sync, Awaited)


@pytest.fixture
def without_python(monkeypatch):
    """Let no chunk be written by way of Python: keys of chunks are given to no method that writes."""

    def refuse(where, verb):
        function = getattr(where, verb)

        def ask(self, key, *args, **kwargs):
            assert not key.startswith(("c/", "0.", "1.")), "Python was asked to write"
            return function(self, key, *args, **kwargs)

        monkeypatch.setattr(where, verb, ask)

    for verb in ("set", "delete", "update"):
        refuse(ObjectStore, verb)


# -- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cloud", ["s3_server", "azurite_server", "gcs_server"])
def test_parts_and_whole_chunks_are_stored_without_python(request, cloud, layout, way, without_python):
    place = request.getfixturevalue(cloud).fresh()
    create(f"{place.url}/ä %41", place.options, **{"compressors": "auto", **LAYOUTS[layout]})
    writer, expected = way("native", f"{place.url}/ä %41", place.options), np.zeros_like(VALUES)
    for selection, value in (
        ((slice(1, 7), slice(2, 5)), VALUES[1:7, 2:5]),  # missing chunks
        ((slice(None, None, 3), slice(None, None, -2)), VALUES[::3, ::-2]),
        (..., VALUES),
        ((0, 0), 9),
        ((slice(4, 8), slice(0, 8)), 0),
        ((slice(3, 5), slice(3, 5)), -VALUES[3:5, 3:5]),
    ):
        writer.write(selection, value)
        expected[selection] = value
        found = omnizarr.open_array(f"{place.url}/ä %41", mode="r", storage_options=place.options)
        np.testing.assert_array_equal(found[...], expected)


@pytest.mark.parametrize("way", WAYS)
def test_cut_chunks_at_the_edge_keep_what_is_beyond_it(place, way, without_python):
    """Another writer may have made the array longer."""
    long = create(f"{place.url}/a", place.options, shape=(4,), chunks=(4,))
    writer = way("native", f"{place.url}/a", place.options)
    long.resize(3)
    short = way("native", f"{place.url}/a", place.options)
    long.resize(4)
    writer.write(slice(3, 4), 4)
    short.write(slice(0, 3), [1, 2, 3])
    assert long[...].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_chunks_of_only_the_fill_value_are_stored_if_they_were(server, layout, way):
    """Another writer may be changing another part: it must find the value that it read, or notice the change."""
    stored = []
    for fetch in PAIR:
        create(f"s3://bucket/{fetch}", mine(server), **{"compressors": "auto", **LAYOUTS[layout]})
        writer = way(fetch, f"s3://bucket/{fetch}", mine(server))
        writer.write((slice(0, 4), slice(0, 2)), 1)
        writer.write((slice(0, 4), slice(0, 3)), 0)
        writer.write((slice(4, 6), slice(4, 6)), 0)
        assert not [path for verb, path, _ in server.requests() if verb == "DELETE"]
        stored.append({path.partition(fetch)[2]: value for path, value in server.values.items() if fetch in path})
    assert stored[0] == stored[1]
    assert len(stored[0]) == 2  # with the document


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", [{}, {"shards": (512, 1024)}], ids=["chunks", "shards"])
def test_parts_of_large_chunks_are_encoded_while_others_are_on_their_way(place, how, way, without_python):
    create(f"{place.url}/a", place.options, shape=(1024, 2048), chunks=(256, 512), dtype="f8", **how)
    values = np.random.default_rng(1).integers(1, 100, (1024, 2048)).astype("f8")
    writer = way("native", f"{place.url}/a", place.options)
    for columns in (slice(0, None, 2), slice(1, None, 2)):
        writer.write((slice(None), columns), values[:, columns])
    np.testing.assert_array_equal(writer.array[...], values)


def test_empty_chunks_are_not_written_to_if_they_stay_empty(server, without_python):
    create("s3://bucket/a", mine(server))
    array = by("native", "s3://bucket/a", mine(server))
    server.requests()
    array[1:7, 1:7] = 0
    assert Counter(verb for verb, _, _ in server.requests()) == {"GET": 4}


# -- requests --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_part_is_one_request_to_read_and_one_to_write(server, way):
    asked = []
    for fetch in PAIR:
        create(f"s3://bucket/{fetch}", mine(server))
        by("python", f"s3://bucket/{fetch}", mine(server))[0, 0] = 1
        writer = way(fetch, f"s3://bucket/{fetch}", mine(server))
        writer.write((5, 0), 1)  # the server is asked, once, whether it keeps conditions
        server.requests()
        writer.write((0, 1), 2)  # into a chunk of others: of one that it has just stored, it may still know the value
        writer.write((5, 5), 3)
        names = ("if-match", "if-none-match", "x-amz-meta-omnizarrwrite")
        asked.append(
            [
                (verb, path.partition(fetch)[2], *(len(headers.get(name, "")) for name in names))
                for verb, path, headers in server.requests()
            ]
        )
    assert asked[0] == asked[1]
    there, absent = asked[0][:2], asked[0][2:]
    assert [request[:2] for request in there] == [("GET", "/c/0/0"), ("PUT", "/c/0/0")]
    assert [request[:2] for request in absent] == [("GET", "/c/1/1"), ("PUT", "/c/1/1")]
    assert (there[1][2] > 0, there[1][3:]) == (True, (0, 32))
    assert absent[1][2:] == (0, 1, 32)


@pytest.mark.parametrize("way", WAYS)
def test_many_chunks_are_under_way_at_once(server, way):
    create("s3://bucket/a", mine(server), shape=(4, 160))
    writer = way("native", "s3://bucket/a", mine(server))
    under_way, most, lock = set(), [0], threading.Lock()

    def slow(handler):
        with lock:
            under_way.add(handler)
            most[0] = max(most[0], len(under_way))
        time.sleep(0.1)
        with lock:
            under_way.remove(handler)
        return False

    server.answer = server.put_answer = slow
    writer.write((slice(0, 2), slice(None)), 1)
    assert most[0] >= 20
    server.answer = None
    assert (writer.array[...] == np.repeat([1, 1, 0, 0], 160).reshape(4, 160)).all()


def test_no_more_chunks_are_under_way_than_allowed(server):
    create("s3://bucket/a", mine(server), shape=(4, 160))
    array = by("native", "s3://bucket/a", mine(server), config={"concurrency": 3})
    under_way, most, lock = set(), [0], threading.Lock()

    def slow(handler):
        with lock:
            under_way.add(handler)
            most[0] = max(most[0], len(under_way))
        time.sleep(0.01)
        with lock:
            under_way.remove(handler)
        return False

    server.answer = server.put_answer = slow
    array[0:2] = 1
    assert most[0] <= 3


# -- other writers ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("before", ["absent", "present"])
def test_what_another_writer_stores_in_between_is_kept(place, proxy, before, way, without_python):
    array = create(f"{place.url}/a", place.options)
    if before == "present":
        array[...] = VALUES
    other = by("native", f"{place.url}/a", place.options)
    writer = way("native", f"{place.url}/a", {**place.at(proxy.endpoint).options, **FAST})
    expected = array[...]
    # Between reading and writing, twice; and what was read has been deleted the third time.
    steps = iter([((0, 0), -1), ((3, 3), -2), ((slice(0, 4), slice(0, 4)), 0)])
    proxy.fault(Call(lambda: other.__setitem__(*next(steps))), method="PUT", path="/c/0/0", times=3)
    writer.write((1, slice(1, 3)), [5, 6])
    expected[:4, :4] = 0
    expected[1, 1:3] = 5, 6
    np.testing.assert_array_equal(other[...], expected)
    chunk = [request.method for request in proxy.log if request.path.endswith("/c/0/0")]
    assert [method for method in chunk if method != "HEAD"][:8] == ["GET", "PUT"] * 4


@pytest.mark.parametrize("way", WAYS)
def test_writers_that_are_always_too_slow_give_up_with_the_same_error(server, way, monkeypatch):
    monkeypatch.setattr(conflicts, "PATIENCE", 0.5)
    create("s3://bucket/a", mine(server))[...] = VALUES
    errors = []
    for fetch in PAIR:
        server.put_answer = None
        writer = way(fetch, "s3://bucket/a", mine(server))
        server.put_answer = lambda handler: handler.path.endswith("c/1/0") and (handler.respond(412) or True)
        begun = time.monotonic()
        errors.append(failure(lambda writer=writer: writer.write((5, 2), 9)))
        assert 0.5 < time.monotonic() - begun < 10
    assert errors[0] == errors[1]
    assert errors[0][0] is ConflictError
    assert "0.5 seconds" in errors[0][1]
    server.put_answer = None
    np.testing.assert_array_equal(by("python", "s3://bucket/a", mine(server))[...], VALUES)


@pytest.mark.parametrize("layout", ["plain", "shards", "v2"])
def test_threads_lose_nothing_in_shared_chunks(place, layout, without_python):
    layouts = {"plain": {}, "shards": {"shards": scenarios.SHARDS}, "v2": {"zarr_format": 2}}
    how = {"shape": scenarios.SHAPE, "chunks": scenarios.CHUNKS, "compressors": "auto", **layouts[layout]}
    create(f"{place.url}/a", place.options, **how)
    arrays = [by("native", f"{place.url}/a", place.options) for _ in range(8)]
    scenarios.in_threads(arrays, seed=1)
    np.testing.assert_array_equal(arrays[0][...], scenarios.values())


@pytest.mark.parametrize("layout", ["plain", "shards"])
def test_tasks_lose_nothing_in_shared_chunks(place, layout, without_python):
    layouts = {"plain": {}, "shards": {"shards": scenarios.SHARDS}}
    create(f"{place.url}/a", place.options, shape=scenarios.SHAPE, chunks=scenarios.CHUNKS, **layouts[layout])
    array = aio.AsyncArray(by("native", f"{place.url}/a", place.options))
    wanted = scenarios.values()

    async def write():
        regions = [region for share in scenarios.regions(1, 4) for region in share]
        await asyncio.gather(*(array.setitem(region, wanted[region]) for region in regions))

    asyncio.run(write())
    np.testing.assert_array_equal(array.array[...], wanted)


def test_processes_and_python_lose_nothing_in_shared_chunks(place):
    """Processes of threads write natively, and one thread of this process by way of Python."""
    with crews.Crew(2) as crew:
        create(f"{place.url}/a", place.options, shape=scenarios.SHAPE, chunks=scenarios.CHUNKS)
        where = f"{place.url}/a", dict(place.options)
        shares = scenarios.regions(3, 9)
        with ThreadPoolExecutor(1) as pool:
            python = pool.submit(scenarios.write_regions, by("python", *where), shares[8])
            crew(write_shares, [(where, shares[4 * number : 4 * number + 4]) for number in range(2)])
            python.result()
        np.testing.assert_array_equal(omnizarr.open_array(where[0], storage_options=where[1])[...], scenarios.values())


def write_shares(where, shares):
    array = by("native", *where)
    crews.in_threads(len(shares), lambda number: scenarios.write_regions(array, shares[number]))


@needs_posix
def test_a_forked_child_writes_parts(server):
    create("s3://bucket/a", mine(server))[...] = VALUES
    script = """
        import os, signal, sys
        import omnizarr
        omnizarr.config.set({"fetch": "native"})
        options = {"access_key_id": "mine", "secret_access_key": "x", "region": "r", "endpoint": sys.argv[1]}
        array = omnizarr.open_array("s3://bucket/a", mode="r+", storage_options=options)
        array[0, 0] = -1
        child = os.fork()
        if not child:
            signal.alarm(30)
            array[0, 1] = -2
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        """
    assert run(script, server.url()).split() == ["0"]
    expected = VALUES.copy()
    expected[0, :2] = -1, -2
    np.testing.assert_array_equal(by("python", "s3://bucket/a", mine(server))[...], expected)


# -- errors ----------------------------------------------------------------------------------


def slam(handler):
    handler.close_connection = True
    return True


ANSWERS = {
    **{str(code): respond(code, b"secret-of-mine and more") for code in (400, 401, 403, 404, 405, 429, 500, 501, 503)},
    "an error in XML": respond(500, b"<Error><Code>Oops</Code><Message>no</Message></Error>"),
    "no such bucket": respond(404, b"<Code>NoSuchBucket</Code>"),
    "slammed": slam,
    "a redirect to itself": lambda handler: handler.respond(307, Location=handler.path) or True,
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("verb", ["GET", "PUT"])
def test_every_failure_is_the_same_error(server, verb, answer, monkeypatch):
    monkeypatch.setattr(conflicts, "PATIENCE", 0.3)
    create("s3://bucket/a", mine(server))[...] = VALUES
    errors, asked = [], []
    for way in WAYS:
        for fetch in PAIR:
            server.answer = server.put_answer = None
            writer = way(fetch, "s3://bucket/a", mine(server))
            if verb == "PUT":
                server.put_answer = ANSWERS[answer]
            elif answer != "404":  # that is no error
                server.answer = ANSWERS[answer]
            else:
                server.answer = ANSWERS["no such bucket"]
            server.requests()
            errors.append(failure(lambda writer=writer: writer.write((5, 2), 9)))
            asked.append(len(server.requests()))
    assert errors[0] == errors[1] == errors[2] == errors[3]
    assert "secret-of-mine" not in repr(errors)
    server.answer = server.put_answer = None
    np.testing.assert_array_equal(by("python", "s3://bucket/a", mine(server))[...], VALUES)
    if answer in {"401", "403", "429", "500", "503"}:
        assert asked[0] == asked[1]  # nothing is tried twice as often


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layout", ["raw", "zstd", "shards"])
def test_old_values_that_are_broken_are_the_same_errors_and_stay(server, layout, way):
    create("s3://bucket/a", mine(server), **LAYOUTS[layout])[...] = VALUES
    (path,) = [path for path in server.values if path.endswith("c/1/0")]
    for broken in (server.values[path][:-3], b"", bytes(100), server.values[path] + b"1"):
        server.values[path] = broken
        errors = [
            failure(lambda fetch=fetch: way(fetch, "s3://bucket/a", mine(server)).write((5, 2), 9)) for fetch in PAIR
        ]
        assert errors[0] == errors[1]
        assert (errors[0][2]["key"], errors[0][2]["coords"]) == ("c/1/0", (1, 0))
        assert server.values[path] == broken


@pytest.mark.parametrize("tag", [lambda _: None, lambda value: f'W/"{hash(value)}"'], ids=["none", "weak"])
def test_servers_that_tell_no_versions_apart_are_not_written_to(server, tag):
    array = create("s3://bucket/a", mine(server))
    array[...] = VALUES
    before = dict(server.values)
    server.tag = tag
    errors = [failure(lambda way=way, fetch=fetch: way(fetch, "s3://bucket/a", mine(server)).write((5, 2), 9))
              for way in WAYS for fetch in PAIR]  # fmt: skip
    assert errors[0] == errors[1] == errors[2] == errors[3]
    assert server.values == before


@pytest.mark.parametrize("way", WAYS)
def test_servers_that_take_no_notice_of_conditions_are_found_out(server, way):
    errors = []
    for fetch in PAIR:
        server.has_conditions = True
        array = create(f"s3://bucket/{fetch}", mine(server))
        objects._keep_conditions.discard(array.store.origin()[0])  # as if another process had created it
        writer = way(fetch, f"s3://bucket/{fetch}", mine(server))
        server.has_conditions = False
        errors.append(failure(lambda writer=writer: writer.write((5, 2), 9)))
    assert errors[0][0] is errors[1][0] is StoreError
    assert errors[0][1].replace("native", "python") == errors[1][1]
    assert "no notice" in errors[0][1]


def test_a_value_that_is_too_large_is_not_fetched(server):
    create("s3://bucket/a", mine(server), compressors=None)[...] = VALUES
    server.values["/bucket/a/c/0/0"] = bytes(2001)
    writers = [way(fetch, "s3://bucket/a", {**mine(server), "max_value_bytes": 2000}) for way in WAYS for fetch in PAIR]
    errors = [failure(lambda writer=writer: writer.write((0, 0), 9)) for writer in writers]
    assert errors[0] == errors[1] == errors[2] == errors[3]
    assert errors[0][0] is StoreLimitError


LOST = [Reset(), Refuse(), Hang(), Hang(done=True), Answer(503), Answer(503, done=True), Answer(500, done=True)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", LOST, ids=repr)
@pytest.mark.parametrize("before", ["absent", "present"])
@pytest.mark.sampled(9)
def test_a_part_whose_answer_is_lost_is_stored_once(place, proxy, fault, before, way, without_python):
    """It was stored, and what another writer did afterwards is not undone."""
    array = create(f"{place.url}/a", place.options)
    if before == "present":
        array[...] = VALUES
    expected = array[...]
    retries = {"read_timeout": 1, "max_retries": 5, "backoff": {"init_backoff": timedelta(seconds=0.02),
               "max_backoff": timedelta(seconds=0.2), "base": 2}}  # fmt: skip
    writer = way("native", f"{place.url}/a", {**place.at(proxy.endpoint).options, **retries})
    writer.write((7, 7), 9)  # the server keeps conditions
    proxy.fault(fault, method="PUT", path="/c/0/0")
    writer.write((1, slice(1, 3)), [5, 6])
    assert proxy.struck == 1
    expected[1, 1:3], expected[7, 7] = (5, 6), 9
    np.testing.assert_array_equal(array[...], expected)
    if getattr(fault, "done", True) and not isinstance(fault, Refuse):
        # It is recognized, and not read and written again.
        chunk = [request.method for request in proxy.log if request.path.endswith("/c/0/0")]
        assert chunk.count("GET") == 1
        assert chunk[-1] == "HEAD"


@pytest.mark.parametrize("whose", ["ours", "others"])
def test_a_part_whose_answer_is_lost_is_known_by_its_mark(server, whose):
    create("s3://bucket/a", mine(server))[...] = VALUES
    options = {**mine(server), "max_retries": 3, "backoff": {"init_backoff": timedelta(seconds=0.1)}}
    array = by("native", "s3://bucket/a", options)
    array[7, 7] = 0
    other = by("python", "s3://bucket/a", mine(server))
    other[7, 7] = 64
    is_lost = []

    def lose(handler):
        if handler.path.endswith("/c/0/0") and not is_lost:
            is_lost.append(handler)
            if whose == "ours":
                handler.store()
            else:
                other[0, 0] = -1
            return slam(handler)
        return False

    server.put_answer = lose
    server.requests()
    array[1, 1] = -5
    expected = VALUES.copy()
    expected[1, 1], expected[0, 0] = -5, 1 if whose == "ours" else -1
    np.testing.assert_array_equal(other[...], expected)


@pytest.mark.parametrize("fetch", PAIR)
def test_a_refused_part_whose_answer_is_lost_is_written_again(server, fetch):
    """A server may break the connection off before it has read a large value that it refuses."""
    create("s3://bucket/a", mine(server))[...] = VALUES
    array = by(fetch, "s3://bucket/a", {**mine(server), "max_retries": 1})
    array[7, 7] = 0
    other = by("python" if fetch == "native" else "native", "s3://bucket/a", mine(server))
    began, slammed = [], []

    def refuse(handler):
        if not handler.path.endswith("/c/0/0"):
            return False
        if not began:
            began.append(handler)
            other[0, 0] = -1
        if handler.is_condition_met():
            return False
        slammed.append(handler)
        return slam(handler)

    server.put_answer = refuse
    array[1, 1] = -5
    assert slammed
    expected = VALUES.copy()
    expected[0, 0], expected[1, 1], expected[7, 7] = -1, -5, 0
    np.testing.assert_array_equal(other[...], expected)


@pytest.mark.parametrize("way", WAYS)
def test_one_chunk_that_fails_is_named_and_nothing_is_under_way_afterwards(server, way):
    create("s3://bucket/a", mine(server), shape=(16, 16))
    for fetch in PAIR:
        writer = way(fetch, "s3://bucket/a", mine(server))
        server.put_answer = lambda handler: (
            respond(403)(handler) if handler.path.endswith("/c/1/2") else time.sleep(0.1)
        )
        with pytest.raises(StoreAccessError) as caught:
            writer.write((slice(1, 15), slice(1, 15)), 3)
        before = dict(server.values)
        assert (caught.value.key, caught.value.coords) == ("c/1/2", (1, 2))
        time.sleep(0.4)
        if fetch == "native":
            assert server.values == before
        server.put_answer = None


@needs_posix
def test_nothing_is_under_way_after_an_interrupt(server):
    create("s3://bucket/a", mine(server), shape=(40, 40))
    array = by("native", "s3://bucket/a", mine(server), config={"concurrency": 4})
    server.put_answer = lambda _: time.sleep(0.2)
    main = threading.main_thread().ident
    threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        array[1:39, 1:39] = 1
    before = {key: value for key, value in server.values.items() if "/c/" in key}
    assert 0 < len(before) < 100
    time.sleep(0.5)
    assert {key: value for key, value in server.values.items() if "/c/" in key} == before


@needs_posix
def test_an_interrupt_ends_a_writer_that_is_always_too_slow(server):
    create("s3://bucket/a", mine(server))[...] = VALUES
    array = by("native", "s3://bucket/a", mine(server))
    server.put_answer = respond(412)
    main = threading.main_thread().ident
    threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        array[0, 0] = -1
    assert time.monotonic() - begun < 10


# -- event loops -----------------------------------------------------------------------------


def test_errors_of_one_task_do_not_stop_others(server):
    create("s3://bucket/a", mine(server))
    array = aio.AsyncArray(by("native", "s3://bucket/a", mine(server)))
    server.put_answer = lambda handler: handler.path.endswith("c/1/1") and (handler.respond(403) or True)

    async def main():
        parts = (array.setitem((row, row), row + 1) for row in range(8))
        whole = array.setitem((slice(0, 4), slice(4, 8)), 7)
        return await asyncio.gather(*parts, whole, return_exceptions=True)

    *done, whole = asyncio.run(main())
    assert [type(result) for result in done] == [type(None)] * 4 + [StoreAccessError] * 4
    assert whole is None
    expected = np.diag([1, 2, 3, 4, 0, 0, 0, 0])
    expected[:4, 4:] = 7
    np.testing.assert_array_equal(array.array[...], expected)


@pytest.mark.parametrize("selection", [..., (slice(1, 7), slice(1, 7))], ids=["whole", "part"])
def test_nothing_is_under_way_after_a_task_was_cancelled(server, selection):
    create("s3://bucket/a", mine(server), shape=(40, 40))
    array = aio.AsyncArray(by("native", "s3://bucket/a", mine(server), config={"concurrency": 4}))
    server.put_answer = lambda _: time.sleep(0.2)
    value = np.ones((40, 40), "i4")

    async def main():
        task = asyncio.create_task(array.setitem((slice(1, 39), slice(1, 39)), value[1:39, 1:39]))
        other = asyncio.create_task(array.setitem((0, 0), 5))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = {key: values for key, values in server.values.items() if key.endswith(("/1/1", "/9/9"))}
        value[...] = 9
        await other
        await asyncio.sleep(0.5)
        assert {key: values for key, values in server.values.items() if key.endswith(("/1/1", "/9/9"))} == before

    asyncio.run(main())
    found = array.array[...]
    assert found[0, 0] == 5
    assert set(np.unique(found)) == {0, 1, 5}


@pytest.mark.parametrize("selection", [(slice(0, 4), slice(0, 4)), (1, 1)], ids=["whole", "part"])
def test_a_server_that_does_not_answer_keeps_no_cancelled_task(place, proxy, selection):
    array = create(f"{place.url}/a", place.options)
    array[...] = VALUES
    writer = aio.AsyncArray(by("native", f"{place.url}/a", place.at(proxy.endpoint).options))
    proxy.fault(Hang(), method="PUT", times=math.inf)

    async def main():
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.setitem(selection, -1), 0.3)
        return time.monotonic() - begun

    assert asyncio.run(main()) < 10
    np.testing.assert_array_equal(array[...], VALUES)


def test_loops_end_with_writes_under_way(server):
    create("s3://bucket/a", mine(server))
    array = aio.AsyncArray(by("native", "s3://bucket/a", mine(server)))
    server.put_answer = lambda _: time.sleep(0.2)

    async def main():
        asyncio.create_task(array.setitem((1, 1), 1))  # noqa: RUF006 - it is to be left behind
        asyncio.create_task(array.setitem(..., 1))  # noqa: RUF006
        await asyncio.sleep(0.05)

    for _ in range(3):
        asyncio.run(main())
    server.put_answer = None
    array.array[1, 1] = 2
    assert array.array[1, 1] == 2


def test_loops_that_are_closed_leave_nothing_behind(server):
    create("s3://bucket/a", mine(server))
    array = aio.AsyncArray(by("native", "s3://bucket/a", mine(server)))
    server.put_answer = lambda _: time.sleep(0.2)
    loop = asyncio.new_event_loop()
    task = loop.create_task(array.setitem((1, 1), 1))
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
    task._log_destroy_pending = False
    del task, loop
    server.put_answer = None
    asyncio.run(array.setitem((1, 2), 2))
    assert array.array[1, 2] == 2


def test_what_was_read_under_a_lock_is_a_condition(place):
    array = create(f"{place.url}/a", place.options, shape=(4,), chunks=(2,), compressors=None)
    array[...] = 1
    mine, other = (ObjectStore.from_url(f"{place.url}/a", place.options) for _ in range(2))
    array = omnizarr.open_array(mine, mode="r+")
    assert engine.is_remote(array._bind().binding)
    with mine.lock("c/0"):
        mine.get("c/0")
        task = threading.Thread(target=other.set, args=("c/0", np.array([5, 6], "i4").tobytes()))
        task.start()
        task.join()
        with pytest.raises(StoreError):
            asyncio.run(aio.AsyncArray(array).setitem(slice(0, 2), 2))
    np.testing.assert_array_equal(array[...], [5, 6, 1, 1])
