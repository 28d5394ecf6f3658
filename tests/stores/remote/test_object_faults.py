"""Object stores on bad days: the right answer or a clear error, in bounded time, and never wrong data.

A proxy before a real server does the harm (tests/faultproxy.py), or the server is killed and started again.
"""

import asyncio
import contextlib
import math
import threading
import time
from datetime import timedelta

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.errors import StoreError
from omnizarr.stores import ObjectStore
from omnizarr.stores.asynchronous import called
from tests import servers
from tests.faultproxy import Answer, Delay, FaultProxy, Hang, Refuse, Reset, Slow, Truncate

OLD = np.arange(1, 64 * 64 + 1, dtype="i4").reshape(64, 64)
NEW = -OLD
LAYOUTS = {"chunks": {}, "shards": {"shards": (32, 32)}}

# Patience for tests: a request that gets no answer is sent again after a second, for three seconds.
OPTIONS = {
    "connect_timeout": 1,
    "read_timeout": 1,
    "max_retries": 100,
    "retry_timeout": 3,
    "backoff": {"init_backoff": timedelta(seconds=0.02), "max_backoff": timedelta(seconds=0.2), "base": 2},
}
PATIENT = {**OPTIONS, "retry_timeout": 20}
BOUND = 30.0
"""Seconds in which everything is over, on a slow machine too."""

PASSING = [
    Answer(503, {"Retry-After": "0"}),
    Answer(500),
    Answer(429),
    Answer(503, done=True),
    Refuse(),
    Reset(),
    Reset(50),
    Truncate(50),
    Hang(),
    Hang(done=True),
    Slow(20_000),
    Delay(0.2),
]


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return LAYOUTS[request.param]


@pytest.fixture
def proxy(s3_server):
    with FaultProxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def place(s3_server):
    return s3_server.fresh()


@pytest.fixture
def url(place):
    return f"{place.url}/a.zarr"


@pytest.fixture
def near(place):
    """Options that lead straight to the server."""
    return dict(place.options)


@pytest.fixture
def far(place, proxy):
    """Options that lead through the proxy."""
    return {**place.at(proxy.endpoint).options, **OPTIONS}


@contextlib.contextmanager
def bounded():
    started = time.monotonic()
    yield
    assert time.monotonic() - started < BOUND


def make(url, options, **how):
    array = omnizarr.create_array(
        url, shape=OLD.shape, chunks=(16, 16), dtype="i4", fill_value=0, storage_options=options, **how
    )
    array[...] = OLD
    return array


def read(url, options):
    return omnizarr.open_array(url, mode="r", storage_options=options)[...]


def test_faults_that_pass_are_not_noticed_by_readers(url, near, far, proxy, layout):
    make(url, near, **layout)
    for fault in PASSING:
        proxy.heal()
        proxy.fault(fault, method="GET", path="/c/", times=3)
        with bounded():
            np.testing.assert_array_equal(read(url, far), OLD, err_msg=repr(fault))
        assert proxy.struck == 3, fault


@pytest.mark.parametrize("fault", [Answer(503), Refuse(), Truncate(0), Hang()], ids=repr)
def test_faults_that_stay_are_errors_in_bounded_time(url, near, far, proxy, fault):
    make(url, near)
    array = omnizarr.open_array(url, mode="r+", storage_options=far | {"max_retries": 1})
    proxy.fault(fault, path="/c/", times=math.inf)
    for attempt in (lambda: array[...], lambda: array[3:20, 3:20], lambda: array.__setitem__((3, 3), 0)):
        with bounded(), pytest.raises(StoreError) as caught:
            attempt()
        assert caught.value.key.startswith("c/")
        assert servers.SECRET_KEY not in f"{caught.value} {caught.value!r}"
    proxy.heal()
    np.testing.assert_array_equal(array[...], OLD)
    np.testing.assert_array_equal(read(url, near), OLD)


@pytest.mark.slow
def test_a_closed_port_is_an_error_in_bounded_time(url, near, far, proxy):
    make(url, near)
    array = omnizarr.open_array(url, mode="r", storage_options=far)
    proxy.down()
    with bounded(), pytest.raises(StoreError):
        array[...]
    with bounded(), pytest.raises(StoreError):
        omnizarr.open(url, mode="r", storage_options=far)
    proxy.up()
    np.testing.assert_array_equal(array[...], OLD)


@pytest.mark.slow
def test_writing_through_faults_is_right_or_an_error_and_harms_nothing(url, near, far, proxy, layout):
    make(url, near, **layout)
    array = omnizarr.open_array(url, mode="r+", storage_options=far)
    window = (slice(3, 50), slice(5, 40))
    for round_, fault in enumerate(PASSING, start=2):
        proxy.heal()
        proxy.fault(fault, path="/c/", first=2, times=3)
        before = read(url, near)
        expected = before.copy()
        expected[window] = OLD[window] * round_
        try:
            with bounded():
                array[window] = expected[window]
        except StoreError:
            found = read(url, near)
            assert proxy.struck
            assert ((found == before) | (found == expected)).all(), fault
            proxy.heal()
            array[window] = expected[window]
        np.testing.assert_array_equal(read(url, near), expected, err_msg=repr(fault))


def test_a_connection_lost_in_the_middle_of_a_write_is_healed_by_writing_again(url, near, far, proxy):
    make(url, near)
    array = omnizarr.open_array(url, mode="r+", storage_options=far | {"max_retries": 0})
    proxy.fault(Reset(), method="PUT", first=5, times=math.inf)
    with pytest.raises(StoreError):
        array[...] = NEW
    found = read(url, near)
    assert ((found == OLD) | (found == NEW)).all()
    assert (found == NEW).any()
    proxy.heal()
    array[...] = NEW
    np.testing.assert_array_equal(read(url, near), NEW)


# It is unknown whether a conditional write was done; it must have been done, once.
LOST = [Reset(), Refuse(), Hang(), Hang(done=True), Answer(503), Answer(503, done=True)]


class Awaited:
    """An array or a group to be awaited, for those who do not."""

    def __init__(self, url, options):
        self.node = asyncio.run(aio.open(url, mode="r+", storage_options=options))

    def append(self, data):
        return asyncio.run(self.node.append(data))

    def write(self, selection, value):
        asyncio.run(self.node.setitem(selection, value))


class Sync:
    """An array, unchanged."""

    def __init__(self, url, options):
        self.node = omnizarr.open_array(url, mode="r+", storage_options=options)

    def append(self, data):
        return self.node.append(data)

    def write(self, selection, value):
        self.node[selection] = value


@pytest.mark.parametrize("fault", LOST, ids=repr)
@pytest.mark.parametrize("how", [Sync, Awaited])
@pytest.mark.sampled(6)
def test_appends_and_partial_writes_whose_answer_is_lost_are_done_once(url, near, far, proxy, fault, how):
    omnizarr.create_array(url, shape=(0,), chunks=(4,), dtype="i4", fill_value=-1, storage_options=near)
    array = how(url, far)
    array.append(np.array([1, 2, 3], "i4"))
    expected = [1, 2, 3]
    for nth in (1, 2):  # of the document, and of a chunk
        proxy.heal()
        proxy.fault(fault, method="PUT", first=nth)
        with bounded():
            assert array.append(np.array([4, 5, 6], "i4")).region == (slice(len(expected), len(expected) + 3),)
        expected += [4, 5, 6]
        assert proxy.struck == 1
        assert read(url, near).tolist() == expected
    proxy.heal()
    proxy.fault(fault, method="PUT")
    with bounded():
        array.write(slice(1, 3), 9)
    assert proxy.struck == 1
    assert read(url, near).tolist() == [1, 9, 9, *expected[3:]]


@pytest.mark.parametrize("fault", LOST, ids=repr)
@pytest.mark.parametrize("before", [None, b"1"], ids=["absent", "present"])
@pytest.mark.sampled(6)
def test_updates_whose_answer_is_lost_are_made_once(url, near, far, proxy, fault, before):
    straight, store = ObjectStore.from_url(url, near), ObjectStore.from_url(url, far)

    def awaited(key, change):
        asyncio.run(called(store.update, key, change))

    # When it is first written to, the server is asked whether it keeps conditions.
    for update, keys in ((store.update, "ab"), (awaited, "b")):
        for key in keys:
            straight.delete(key)
            if before is not None:
                straight.set(key, before)
            proxy.heal()
            proxy.fault(fault, method="PUT", path=f"/{key}$")
            with bounded():
                update(key, lambda old: b"1" if old is None else bytes(old) + b"1")
            assert proxy.struck == 1
            assert straight.get(key) == (before or b"") + b"1"


@pytest.mark.parametrize("fault", LOST, ids=repr)
@pytest.mark.sampled(3)
def test_attributes_and_new_nodes_survive_a_lost_answer(url, near, far, proxy, fault):
    omnizarr.create_group(url, storage_options=near)
    root = omnizarr.open_group(url, mode="r+", storage_options=far)
    for change in (lambda: root.attrs.update(a=1), lambda: root.create_array("x", shape=(2,), dtype="i4")):
        proxy.heal()
        proxy.fault(fault, method="PUT")
        with bounded():
            change()
        assert proxy.struck == 1
    again = omnizarr.open_group(url, mode="r", storage_options=near)
    assert dict(again.attrs) == {"a": 1}
    assert [name for name, _ in again.members()] == ["x"]


@pytest.mark.parametrize("fault", [Truncate(200), Reset(200), Answer(503), Hang()], ids=repr)
def test_a_listing_that_breaks_off_is_complete_or_an_error(place, url, near, far, proxy, fault):
    root = omnizarr.create_group(url, storage_options=near)
    for name in "abc":
        root.create_group(name)
    proxy.fault(fault, method="GET", path=f"^/{place.name}/?$")
    with bounded(), contextlib.suppress(StoreError):
        assert sorted(omnizarr.open_group(url, mode="r", storage_options=far)) == ["a", "b", "c"]
    assert proxy.struck == 1
    proxy.heal()
    assert sorted(omnizarr.open_group(url, mode="r", storage_options=far)) == ["a", "b", "c"]


# -- the server itself is killed ------------------------------------------------------


@pytest.fixture
def own(tmp_path):
    """A server for one test, that may be killed, and an array in it."""
    with servers.running_s3(tmp_path) as server:
        yield server


@contextlib.contextmanager
def killed_now_and_then(server, times):
    """Kill the server and start it again, so many times, while the block runs; then let it run."""

    def harm():
        for _ in range(times):
            time.sleep(0.3)
            server.process.kill()
            time.sleep(0.1)
            server.process.start()

    thread = threading.Thread(target=harm)
    thread.start()
    try:
        yield thread.is_alive
    finally:
        thread.join()


def test_readers_do_not_notice_that_the_server_is_killed_and_comes_back(own, layout):
    place = own.fresh()
    make(place.url, place.options, **layout)
    array = omnizarr.open_array(place.url, mode="r", storage_options={**place.options, **PATIENT})
    with killed_now_and_then(own, 2) as goes_on:
        while goes_on():
            np.testing.assert_array_equal(array[...], OLD)


def test_what_was_written_while_the_server_was_killed_is_there(own, layout):
    place = own.fresh()
    make(place.url, place.options, **layout)
    array = omnizarr.open_array(place.url, mode="r+", storage_options={**place.options, **PATIENT})
    expected, failures, row = OLD.copy(), 0, 0
    with killed_now_and_then(own, 2) as goes_on:
        while goes_on() or row < 10:
            row += 1
            rows = slice(row % 60, row % 60 + 4)
            expected[rows, 3:61] = row * 10_000
            try:
                array[rows, 3:61] = row * 10_000
            except StoreError:
                failures += 1
                array[rows, 3:61] = row * 10_000
    np.testing.assert_array_equal(read(place.url, place.options), expected)


def test_blocks_appended_while_the_server_is_killed_are_there_once_or_were_errors(own):
    place = own.fresh()
    omnizarr.create_array(
        place.url, shape=(0,), chunks=(4,), dtype="i4", fill_value=-1, storage_options=dict(place.options)
    )
    options = {**place.options, **PATIENT}
    array = omnizarr.open_array(place.url, mode="r+", storage_options=options)
    landed, failed, number = {}, [], 0
    with killed_now_and_then(own, 2) as goes_on:
        while goes_on() or number < 10:
            number += 1
            try:
                landed[number] = array.append(np.full(3, number, "i4")).region
            except StoreError:
                failed.append(number)
                array.refresh()
    found = read(place.url, place.options)
    for number, region in landed.items():
        assert (found[region] == number).all()
        assert (found == number).sum() == 3
    for number in failed:
        assert (found == number).sum() in (0, 3)
    assert set(np.unique(found)) <= {-1, *landed, *failed}
