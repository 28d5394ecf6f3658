"""What tasks and threads change in the same chunk at the same time is stored together, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine
from omnizarr.errors import ConflictError, StoreAccessError
from omnizarr.stores import conflicts
from tests.engine.remote import ZSTD, failure, needs_remote, packed, respond
from tests.stores.recording import FAST, recording

pytest.importorskip("obstore", reason="the extra cloud is not installed")

pytestmark = needs_remote

OPTIONS = {"access_key_id": "mine", "secret_access_key": "secret-of-mine", "region": "us-east-1", **FAST}
ROWS = 64
VALUES = np.arange(1, ROWS * 16 + 1, dtype="i4").reshape(ROWS, 16)
LAYOUTS = {
    "raw": {"compressors": None},
    "zstd": {"compressors": ZSTD},
    "transposed": {"compressors": ZSTD, "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    "shards of rows": {"compressors": ZSTD, "chunks": (1, 16), "shards": (ROWS, 16)},
    "shards of blocks": {"compressors": ZSTD, "chunks": (16, 4), "shards": (ROWS, 16)},
    "compressed shards": packed(16, 4),
    "v2": {"zarr_format": 2},
}


@pytest.fixture
def server():
    """A server that keeps the conditions of S3."""
    with recording(has_conditions=True) as server:
        yield server


def create(server, **how):
    options = {**OPTIONS, "endpoint": server.url()}
    how = {"shape": VALUES.shape, "chunks": VALUES.shape, "dtype": "i4", "fill_value": 0, "compressors": ZSTD, **how}
    array = omnizarr.create_array("s3://bucket/a", storage_options=options, **how)
    array[0, 0] = 1  # the server is asked, once, whether it keeps conditions
    array[0, 0] = 0
    return options


def opened(options, fetch="native", **how):
    with omnizarr.config.set({"fetch": fetch}):
        array = omnizarr.open_array("s3://bucket/a", mode="r+", storage_options=options, **how)
        assert engine.is_remote(array._bind().binding) == (fetch == "native")
        return array


def counted(server):
    return Counter(verb for verb, path, _ in server.requests() if "/c/" in path or path.endswith("0.0"))


def slow(_handler):
    time.sleep(0.05)
    return False


class Gate:
    """Lets no request pass until it is opened, and answers those that waited with `then`."""

    def __init__(self, then=lambda _: False):
        self.came, self.opened, self.then = threading.Event(), threading.Event(), then

    def __call__(self, handler):
        self.came.set()
        assert self.opened.wait(30)
        return self.then(handler)


async def until(event):
    assert await asyncio.to_thread(event.wait, 30)


# -- how many requests -----------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("before", ["absent", "present"])
def test_tasks_that_write_rows_of_one_chunk_send_few_requests(server, layout, before):
    options = create(server, **{"compressors": "auto", **LAYOUTS[layout]})
    if before == "present":
        opened(options)[...] = -1
    array = aio.AsyncArray(opened(options))
    server.answer = server.put_answer = slow
    server.requests()

    async def main():
        await asyncio.gather(*(array.setitem(row, VALUES[row]) for row in range(ROWS)))

    asyncio.run(main())
    asked = counted(server)
    assert asked["PUT"] <= 3
    assert asked["GET"] <= 3
    assert set(asked) == {"GET", "PUT"}
    np.testing.assert_array_equal(opened(options, "python")[...], VALUES)


@pytest.mark.parametrize("layout", ["zstd", "shards of blocks"])
def test_threads_that_write_rows_of_one_chunk_send_few_requests(server, layout):
    options = create(server, **LAYOUTS[layout])
    arrays = [opened(options) for _ in range(4)]
    server.answer = server.put_answer = slow
    server.requests()
    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(lambda row: arrays[row % 4].__setitem__(row, VALUES[row]), range(ROWS)):
            pass
    asked = counted(server)
    assert asked["GET"] + asked["PUT"] <= 24  # by themselves: 128
    np.testing.assert_array_equal(opened(options, "python")[...], VALUES)


def test_changes_that_come_while_others_are_stored_need_no_request_to_read(server):
    options = create(server)
    array = aio.AsyncArray(opened(options))
    gate = server.put_answer = Gate()
    server.requests()

    async def main():
        first = asyncio.create_task(array.setitem(0, VALUES[0]))
        await until(gate.came)
        others = [asyncio.create_task(array.setitem(row, VALUES[row])) for row in range(1, ROWS)]
        await asyncio.sleep(0.1)
        assert not first.done()
        assert not any(other.done() for other in others)
        gate.opened.set()
        await asyncio.gather(first, *others)

    asyncio.run(main())
    assert counted(server) == {"GET": 1, "PUT": 2}
    np.testing.assert_array_equal(opened(options, "python")[...], VALUES)


def test_tasks_that_write_rows_by_way_of_python_take_turns(server):
    options = create(server)
    array = aio.AsyncArray(opened(options, "python"))
    server.answer = server.put_answer = slow
    server.requests()

    async def main():
        await asyncio.gather(*(array.setitem(row, VALUES[row]) for row in range(8)))

    asyncio.run(main())
    assert counted(server) == {"GET": 8, "PUT": 8}
    np.testing.assert_array_equal(array.array[:8], VALUES[:8])


# -- nothing is lost -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("layout", ["zstd", "shards of rows", "shards of blocks"])
def test_later_changes_of_the_same_elements_win(server, layout, seed):
    """The engine gets what tasks write in one iteration of the loop in the order in which they were made."""
    options = create(server, **LAYOUTS[layout])
    array = aio.AsyncArray(opened(options))
    random, expected = np.random.default_rng(seed), np.zeros_like(VALUES)
    changes = []
    for number in range(1, 13):
        (top, left), (height, width) = random.integers(0, (ROWS, 16)), random.integers(1, (24, 12))
        where = slice(top, top + height), slice(left, left + width)
        value = 0 if number % 5 == 0 else number
        changes.append((where, value))
    for where, value in changes:
        expected[where] = value

    async def main():
        await asyncio.gather(*(array.setitem(where, value) for where, value in changes))

    asyncio.run(main())
    np.testing.assert_array_equal(opened(options, "python")[...], expected)


def test_what_other_writers_store_in_between_is_kept(server):
    options = create(server)
    array, other = aio.AsyncArray(opened(options)), opened(options, "python")
    steps = iter(range(3))

    def interfere(handler):
        if threading.current_thread() is not own and (step := next(steps, None)) is not None:
            server.put_answer = None
            other[:, 15 - step] = -1 - step
            server.put_answer = interfere
        return False

    own = threading.current_thread()
    server.put_answer = interfere

    async def main():
        await asyncio.gather(*(array.setitem((row, slice(0, 8)), VALUES[row, :8]) for row in range(ROWS)))

    asyncio.run(main())
    expected = np.zeros_like(VALUES)
    expected[:, :8] = VALUES[:, :8]
    expected[:, 13:] = -3, -2, -1
    np.testing.assert_array_equal(other[...], expected)


@pytest.mark.parametrize("layout", ["zstd", "shards of rows"])
def test_elements_set_to_the_fill_value_replace_what_was_stored_before(server, layout):
    """An old answer that there is no chunk says nothing of what was stored after it."""
    options = create(server, **LAYOUTS[layout])
    server.values = {path: value for path, value in server.values.items() if "/c/" not in path}
    array, other = aio.AsyncArray(opened(options)), opened(options, "python")
    gate = server.answer = Gate(then=lambda handler: handler.respond(404) or True)

    async def main():
        first = asyncio.create_task(array.setitem((0, 0), 0))
        await until(gate.came)
        server.answer = None
        await asyncio.to_thread(other.__setitem__, (slice(0, 2), slice(None)), 7)
        second = asyncio.create_task(array.setitem((0, slice(4, 8)), 0))
        await asyncio.sleep(0.1)
        gate.opened.set()
        await asyncio.gather(first, second)

    asyncio.run(main())
    expected = np.zeros_like(VALUES)
    expected[:2] = 7
    expected[0, 4:8] = 0
    np.testing.assert_array_equal(other[...], expected)


def test_elements_of_chunks_that_stay_empty_need_no_request_to_write(server):
    options = create(server)
    server.values = {path: value for path, value in server.values.items() if "/c/" not in path}
    array = aio.AsyncArray(opened(options))
    server.answer = slow
    server.requests()

    async def main():
        await asyncio.gather(*(array.setitem(row, 0) for row in range(ROWS)))

    asyncio.run(main())
    asked = counted(server)
    assert set(asked) == {"GET"}
    assert asked["GET"] <= 3


def test_a_chunk_that_was_stored_in_between_stays_stored(server):
    """As if one change had been stored after the other: a reader may have seen it."""
    options = create(server)
    server.values = {path: value for path, value in server.values.items() if "/c/" not in path}
    array = aio.AsyncArray(opened(options))

    async def main():
        await asyncio.gather(array.setitem((0, 0), 5), array.setitem((0, 0), 0))

    asyncio.run(main())
    assert [path for path in server.values if "/c/" in path] == ["/bucket/a/c/0/0"]
    assert not opened(options, "python")[...].any()


def test_arrays_with_other_codecs_lose_nothing_in_the_same_chunk(server):
    options = create(server, compressors=None)
    arrays = [aio.AsyncArray(opened(options, config={"write_empty_chunks": empty})) for empty in (True, False)]
    server.answer = server.put_answer = slow

    async def main():
        await asyncio.gather(*(arrays[row % 2].setitem(row, VALUES[row]) for row in range(ROWS)))

    asyncio.run(main())
    np.testing.assert_array_equal(opened(options, "python")[...], VALUES)


# -- errors ----------------------------------------------------------------------------------


def test_an_error_goes_to_all_whose_change_was_stored_together(server):
    options = create(server)
    array = aio.AsyncArray(opened(options))
    before = dict(server.values)
    gate = server.answer = Gate()
    server.put_answer = respond(403)

    async def main():
        tasks = [asyncio.create_task(array.setitem(row, VALUES[row])) for row in range(8)]
        await until(gate.came)
        gate.opened.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(main())
    assert [type(error) for error in found] == [StoreAccessError] * 8
    assert {(error.key, error.coords) for error in found} == {("c/0/0", (0, 0))}
    assert server.values == before
    server.answer = server.put_answer = None
    asyncio.run(array.setitem(3, VALUES[3]))
    np.testing.assert_array_equal(array.array[3], VALUES[3])


@pytest.mark.parametrize("layout", ["zstd", "shards of rows"])
def test_a_broken_chunk_is_the_error_of_each_change(server, layout):
    options = create(server, **LAYOUTS[layout])
    opened(options)[...] = 1
    (path,) = [path for path in server.values if "/c/" in path]
    server.values[path] = broken = server.values[path][:-3]
    array = aio.AsyncArray(opened(options))
    expected = failure(lambda: opened(options, "python").__setitem__(3, 9))

    async def main():
        return await asyncio.gather(*(array.setitem(row, 9) for row in range(5)), return_exceptions=True)

    def throw(error):
        raise error

    for error in asyncio.run(main()):
        assert failure(lambda error=error: throw(error)) == expected
    assert server.values[path] == broken


def test_writers_that_are_always_too_slow_give_up(server, monkeypatch):
    monkeypatch.setattr(conflicts, "PATIENCE", 0.5)
    options = create(server)
    array = aio.AsyncArray(opened(options))
    server.put_answer = respond(412)

    async def main():
        begun = time.monotonic()
        found = await asyncio.gather(*(array.setitem(row, 9) for row in range(5)), return_exceptions=True)
        return found, time.monotonic() - begun

    found, took = asyncio.run(main())
    assert [type(error) for error in found] == [ConflictError] * 5
    assert 0.5 < took < 10


# -- changes that are given up ---------------------------------------------------------------


@pytest.mark.parametrize("cancelled", [0, 1], ids=["the first", "another"])
def test_a_change_that_is_given_up_before_it_is_made_is_not_stored(server, cancelled):
    options = create(server)
    array = aio.AsyncArray(opened(options))
    gate = server.answer = Gate()

    async def main():
        tasks = [asyncio.create_task(array.setitem(row, VALUES[row])) for row in range(4)]
        await until(gate.came)
        tasks[cancelled].cancel()
        await asyncio.sleep(0.1)
        gate.opened.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(main())
    assert [type(each) for each in found].count(asyncio.CancelledError) == 1
    expected = np.zeros_like(VALUES)
    expected[:4] = VALUES[:4]
    expected[cancelled] = 0
    server.answer = None
    np.testing.assert_array_equal(opened(options, "python")[...], expected)


def test_others_are_stored_when_one_is_given_up_while_they_are_sent(server):
    options = create(server)
    array = aio.AsyncArray(opened(options))
    reading, gate = Gate(), Gate()
    server.answer, server.put_answer = reading, gate

    async def main():
        tasks = [asyncio.create_task(array.setitem(row, VALUES[row])) for row in range(4)]
        await until(reading.came)
        reading.opened.set()
        await until(gate.came)
        tasks[0].cancel()
        await asyncio.sleep(3)  # longer than what is sent may go on for a task that is given up
        gate.opened.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(main())
    assert [type(each) for each in found] == [asyncio.CancelledError, *[type(None)] * 3]
    np.testing.assert_array_equal(opened(options, "python")[1:4], VALUES[1:4])


def test_a_change_that_was_given_up_undoes_nothing_that_came_after_it(server):
    """It was sent, another writer was faster, and it is not made again."""
    options = create(server)
    array = aio.AsyncArray(opened(options))
    gate = server.put_answer = Gate()

    async def main():
        tasks = [asyncio.create_task(array.setitem(row, VALUES[row])) for row in range(2)]
        await until(gate.came)
        tasks[0].cancel()
        await asyncio.sleep(0.1)
        server.put_answer = None
        await array.setitem(..., -1)  # the whole chunk: it waits for no other change
        gate.opened.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    expected = np.full_like(VALUES, -1)
    expected[1] = VALUES[1]
    np.testing.assert_array_equal(opened(options, "python")[...], expected)
