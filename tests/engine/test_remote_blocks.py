"""Parts of large chunks that Blosc has compressed, on servers: the native engine fetches only the blocks that it needs.

NumPy says which values are right; the way of Python, which errors.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numcodecs import blosc

import omnizarr
from omnizarr import aio
from omnizarr.errors import ChunkNotFoundError, StoreLimitError
from omnizarr.stores import MemoryStore
from tests import servers
from tests.engine.both import RUNS, bits, outcome
from tests.engine.remote import by, failure, needs_remote
from tests.engine.test_remote import ANSWERS
from tests.faultproxy import FaultProxy
from tests.stores.recording import FAST, recording

pytest.importorskip("obstore", reason="the extra cloud is not installed")

pytestmark = needs_remote

CHUNK = (520, 1100)
SHAPE = (1040, 1100)
VALUES = np.random.default_rng(0).integers(0, 2**22, SHAPE).astype("i4")
"""Two chunks of 2.3 MB, which can be compressed by a quarter."""
BLOSC = {
    "name": "blosc",
    "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 65536},
}
BLOCK = 4 * 65536
"""Bytes of a decoded block: C-Blosc multiplies by the size of an item, whose bytes it compresses separately."""
HEAD = 64 * 1024
"""Bytes at the beginning of a chunk that are fetched first."""
LAYOUTS = {
    "chunks": {},
    "v2": {"zarr_format": 2},
    "shards": {"shards": SHAPE},
    "transposed": {"filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    "big-endian": {"dtype": ">i4"},
}


def documents(values=VALUES, **how):
    """Return the keys and values of an array."""
    store = MemoryStore()
    if how.get("zarr_format") == 2:
        codec = {"id": "blosc", **BLOSC["configuration"], "shuffle": 1}
        del codec["typesize"]
    else:
        codec = BLOSC
    how = {"chunks": CHUNK, "dtype": "i4", "fill_value": 7, "compressors": codec, **how}
    array = omnizarr.create_array(store, shape=SHAPE, **how)
    array[...] = values
    return {key: bytes(store.get(key)) for key in store.list()}


def put(server, name, values=VALUES, **how):
    """Store an array on a server, and return its URL."""
    for key, value in documents(values, **how).items():
        server.values[f"/{name}/{key}"] = value
    return server.url(f"/{name}")


@pytest.fixture
def server():
    with recording() as server:
        yield server


@pytest.fixture(scope="module")
def arrays():
    """Yield (array, the same by way of Python) of each layout."""
    with recording() as server:
        urls = {name: put(server, name.replace(" ", "-"), **how) for name, how in LAYOUTS.items()}
        yield {name: (by("native", url, FAST), by("python", url, FAST)) for name, url in urls.items()}


def asked(server):
    """Return the ranges that were asked for since the last time, each as (start, stop); (0, inf): the whole."""
    ranges = [headers.get("range") for _, _, headers in server.requests()]
    pairs = [text.removeprefix("bytes=").split("-") for text in ranges if text]
    return [(0, math.inf)] * ranges.count(None) + [(int(first), int(last) + 1) for first, last in pairs if first]


# -- values ----------------------------------------------------------------------------------

ROWS, COLUMNS = (st.integers(0, size - 1) for size in SHAPE)
spans = st.builds(
    lambda start, size, step: slice(start, start + size, step), ROWS, st.integers(1, 200), st.integers(1, 90)
)
selections = st.one_of(
    st.tuples(ROWS, COLUMNS),
    st.tuples(spans, COLUMNS),
    st.tuples(ROWS, spans),
    st.tuples(spans, spans),
    st.tuples(st.lists(ROWS, min_size=1, max_size=4), COLUMNS),
    st.tuples(ROWS),
)


@settings(max_examples=10 * RUNS, deadline=None)
@given(layout=st.sampled_from([*LAYOUTS]), chosen=st.lists(selections, min_size=1, max_size=4))
def test_random_selections_are_those_of_numpy(arrays, layout, chosen):
    natively, otherwise = arrays[layout]
    expected = [VALUES[np.ix_(*axes(selection))] for selection in chosen]
    got = natively.oindex[chosen[0]]
    assert bits(got, natively.dtype) == bits(np.reshape(expected[0], np.shape(got)).astype(natively.dtype))
    assert bits(got, natively.dtype) == bits(otherwise.oindex[chosen[0]], natively.dtype)
    plain = [(part, values) for part, values in zip(chosen, expected, strict=True) if not isinstance(part[0], list)]
    for got, (_, values) in zip(omnizarr.read_many([(natively, part) for part, _ in plain]), plain, strict=True):
        np.testing.assert_array_equal(got, values.reshape(np.shape(got)))

    async def awaited():
        return await asyncio.gather(*(aio.AsyncArray(natively).getitem(part) for part, _ in plain))

    for got, (_, values) in zip(asyncio.run(awaited()), plain, strict=True):
        np.testing.assert_array_equal(got, values.reshape(np.shape(got)))


def axes(selection):
    """Return the numbers along each dimension."""
    padded = (*selection, slice(None))[:2]
    return [np.atleast_1d(np.arange(size)[part]) for size, part in zip(SHAPE, padded, strict=True)]


@settings(max_examples=10 * RUNS, deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=9), columns=st.data())
def test_random_points_are_those_of_numpy(arrays, rows, columns):
    chosen = columns.draw(st.lists(COLUMNS, min_size=len(rows), max_size=len(rows)))
    for array, _ in arrays.values():
        np.testing.assert_array_equal(array.vindex[rows, chosen], VALUES[rows, chosen])


@pytest.mark.parametrize("name", ["blosclz", "lz4hc", "zlib", "zstd"])
@pytest.mark.parametrize("shuffle", [blosc.NOSHUFFLE, blosc.SHUFFLE, blosc.BITSHUFFLE])
@pytest.mark.parametrize("clevel", [0, 1])
def test_chunks_of_other_programs_are_read(server, name, shuffle, clevel):
    url = put(server, "a")
    chunk = VALUES[: CHUNK[0]]
    server.values["/a/c/0/0"] = blosc.compress(chunk.tobytes(), name.encode(), clevel, shuffle, 32_768, 4)
    array = by("native", url, FAST)
    server.requests()
    assert array[400, 33] == VALUES[400, 33]
    ranges = asked(server)
    assert ranges[0] == (0, HEAD)
    assert sum(stop - start for start, stop in ranges) < len(server.values["/a/c/0/0"]) / 4
    np.testing.assert_array_equal(array[100:103, ::7], VALUES[100:103, ::7])


# -- requests --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["chunks", "shards"])
def test_an_element_is_fetched_without_the_rest_of_its_chunk(server, layout):
    url = put(server, "a", **LAYOUTS[layout])
    array = by("native", url, FAST)
    array[0, 0]
    server.requests()
    assert array[700, 50] == VALUES[700, 50]
    requests = server.requests()
    # First the index of a shard, then the beginning of the chunk, then a block.
    assert len(requests) == (2 if layout == "chunks" else 3)
    fetched = [np.diff([*map(int, headers["range"].removeprefix("bytes=").split("-"))])[0] + 1
               for _, _, headers in requests if not headers["range"].startswith("bytes=-")]  # fmt: skip
    assert fetched[0] == HEAD
    assert sum(fetched) < HEAD + BLOCK
    assert "if-match" in requests[-1][2]


def test_selections_that_need_neighbouring_elements_share_requests(server):
    array = by("native", put(server, "a"), FAST)
    server.requests()
    wanted = [(array, (slice(300, 303), column)) for column in range(0, 1000, 20)]
    for (_, chosen), got in zip(wanted, omnizarr.read_many(wanted), strict=True):
        np.testing.assert_array_equal(got, VALUES[chosen])
    assert len(asked(server)) == 2


@pytest.mark.parametrize("compressors", [BLOSC, None], ids=["Blosc", "raw"])
def test_points_are_fetched_without_the_rest_of_their_chunk(server, compressors):
    array = by("native", put(server, "a", compressors=compressors), FAST)
    server.requests()
    # The points lie in a small part of the rectangle that they span.
    rows, columns = [900, 700, 699], [40, 1000, 3]
    np.testing.assert_array_equal(array.vindex[rows, columns], VALUES[rows, columns])
    ranges = asked(server)
    assert len(ranges) <= 3
    assert sum(stop - start for start, stop in ranges) < HEAD + 3 * BLOCK


@pytest.mark.parametrize(
    "chosen",
    [(slice(0, 400), slice(None)), (slice(None), 5), (slice(0, 520), slice(0, 90)), ...],
    ids=["most", "a column", "columns", "all"],
)
def test_a_chunk_of_which_much_is_needed_is_one_request(server, chosen):
    array = by("native", put(server, "a"), FAST)
    server.requests()
    np.testing.assert_array_equal(array[chosen], VALUES[chosen])
    assert set(asked(server)) == {(0, math.inf)}


def test_a_chunk_that_is_small_when_compressed_is_one_request(server):
    array = by("native", put(server, "a", np.full(SHAPE, 3)), FAST)
    server.requests()
    assert array[700, 50] == 3
    assert asked(server) == [(0, HEAD)]


def test_a_chunk_in_one_block_is_read(server):
    url = put(server, "a")
    chunk = VALUES[: CHUNK[0]].tobytes()
    data = blosc.compress(chunk, b"zstd", 5, blosc.SHUFFLE, len(chunk), 4)
    assert int.from_bytes(data[8:12], "little") == len(chunk)
    server.values["/a/c/0/0"] = data
    array = by("native", url, FAST)
    server.requests()
    assert array[400, 33] == VALUES[400, 33]
    assert asked(server) == [(0, math.inf), (0, HEAD)]


def test_offsets_of_more_blocks_than_the_beginning_holds_are_read_with_the_whole(server):
    url = put(server, "a")
    chunk = VALUES[: CHUNK[0]].tobytes()
    data = blosc.compress(chunk, b"zstd", 1, blosc.NOSHUFFLE, 128, 4)
    assert int.from_bytes(data[8:12], "little") * HEAD / 4 < len(chunk)
    server.values["/a/c/0/0"] = data
    assert by("native", url, FAST)[400, 33] == VALUES[400, 33]


def test_missing_chunks_take_one_request(server):
    url = put(server, "a")
    del server.values["/a/c/1/0"]
    array = by("native", url, FAST)
    server.requests()
    assert array[700, 50] == 7
    assert asked(server) == [(0, HEAD)]
    strict = by("native", url, FAST, config={"read_missing_chunks": False})
    assert failure(lambda: strict[700, 50])[0] is ChunkNotFoundError


def test_tasks_that_need_one_block_at_once_share_requests(server):
    array = aio.AsyncArray(by("native", put(server, "a"), FAST))
    server.requests()

    async def main():
        return await asyncio.gather(*(array.getitem((300, column)) for column in range(50)))

    assert asyncio.run(main()) == list(VALUES[300, :50])
    assert len(asked(server)) <= 4


def test_threads_that_need_a_chunk_at_once_share_requests_for_its_beginning(server):
    array = by("native", put(server, "a"), FAST)
    server.requests()
    server.answer = lambda _: time.sleep(0.3)
    start, results = threading.Barrier(20), []

    def work(column):
        start.wait()
        results.append((column, array[700, column]))

    crew = [threading.Thread(target=work, args=(column,)) for column in range(20)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert sorted(results) == list(enumerate(VALUES[700, :20]))
    ranges = asked(server)
    assert ranges.count((0, HEAD)) <= 4
    assert (0, math.inf) not in ranges


@pytest.mark.parametrize("layout", ["chunks", "shards"])
def test_an_element_is_fetched_from_s3_without_the_rest_of_its_chunk(s3_server, layout):
    place = s3_server.fresh()
    made = omnizarr.create_array(
        f"{place.url}/a", shape=SHAPE, chunks=CHUNK, dtype="i4", compressors=BLOSC, storage_options=place.options,
        **LAYOUTS[layout],
    )  # fmt: skip
    made[...] = VALUES
    with FaultProxy(s3_server.endpoint) as proxy:
        array = by("native", f"{place.url}/a", {**place.at(proxy.endpoint).options, **FAST})
        proxy.heal()
        assert array[700, 50] == VALUES[700, 50]
        ranges = [request.fields["range"].removeprefix("bytes=") for request in proxy.log]
    bounds = [tuple(map(int, text.split("-"))) for text in ranges if not text.startswith("-")]
    assert (len(ranges), len(bounds)) == ((2, 2) if layout == "chunks" else (3, 2))
    assert sum(last - first + 1 for first, last in bounds) < HEAD + BLOCK


# -- versions --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["chunks", "shards"])
@pytest.mark.parametrize("clevel", [0, 5])
def test_blocks_of_two_versions_are_never_mixed(server, layout, clevel):
    """At level 0, parts of both versions would fit together: nothing is compressed."""
    how = {**LAYOUTS[layout], "compressors": {**BLOSC, "configuration": {**BLOSC["configuration"], "clevel": clevel}}}
    array = by("native", put(server, "a", **how), FAST)
    after = documents(VALUES[::-1], **how)
    key = "c/1/0" if layout == "chunks" else "c/0/0"
    first, changed = server.values[f"/a/{key}"], []

    def change(handler):
        text = handler.headers.get("Range", "")
        if handler.path.endswith(key) and not changed and not text.startswith("bytes=-"):
            start, last = map(int, text.removeprefix("bytes=").split("-"))
            assert last + 1 - start == HEAD
            handler.respond(206, first[start : last + 1], Content_Range=f"bytes {start}-{last}/{len(first)}",
                            ETag=f'"{hash(first)}"')  # fmt: skip
            server.values[handler.path] = after[key]
            changed.append(True)
            return True
        return False

    server.answer = change
    # The first row is in the first 64 KiB of the chunk, the other one is not.
    np.testing.assert_array_equal(array.oindex[[520, 700], 50:60], VALUES[::-1][[520, 700], 50:60])
    assert changed


@pytest.mark.parametrize("layout", ["chunks", "shards"])
@pytest.mark.parametrize("tag", [None, 'W/"1"'])
def test_versions_that_cannot_be_told_apart_are_fetched_by_one_request(server, tag, layout):
    url = put(server, "a", **LAYOUTS[layout])
    array = by("native", url, FAST)

    def answer(handler):
        value = server.values.get(handler.path)
        if value is None or "/c/" not in handler.path:
            return False
        tags = {"ETag": tag} if tag else {}
        text = handler.headers.get("Range", "").removeprefix("bytes=")
        if not text:
            handler.respond(200, value, **tags)
            return True
        first, _, last = text.partition("-")
        start = int(first) if first else len(value) - int(last)
        stop = min(int(last) + 1, len(value)) if first else len(value)
        told = f"bytes {start}-{stop - 1}/{len(value)}"
        handler.respond(206, value[start:stop], Content_Range=told, **tags)
        return True

    server.answer = answer
    assert array[700, 50] == VALUES[700, 50]
    server.requests()
    assert array[701, 50] == VALUES[701, 50]
    ranges = asked(server)
    assert len(ranges) == 1
    if layout == "chunks":
        assert ranges == [(0, math.inf)]
    else:
        assert ranges[0][1] - ranges[0][0] > 20 * HEAD


@pytest.mark.parametrize("layout", ["chunks", "shards"])
def test_servers_that_ignore_ranges_serve_all_the_same(server, layout):
    url = put(server, "a", **LAYOUTS[layout])
    array = by("native", url, FAST)
    server.knows_ranges = False
    assert array[700, 50] == VALUES[700, 50]
    server.requests()
    assert array[701, 50] == VALUES[701, 50]
    assert asked(server)[:1] == [(0, math.inf)]


# -- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["chunks", "shards"])
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("is_later", [False, True])
def test_every_failure_is_the_same_error(server, answer, layout, is_later):
    """`is_later`: the first request for the chunk is answered as it should be."""
    url = put(server, "a", **LAYOUTS[layout])
    results = []
    for fetch in ("native", "python"):
        server.answer = None
        array = by(fetch, url, FAST)
        seen = []

        def fail(handler, seen=seen):
            text = handler.headers.get("Range", "")
            seen.append(text)
            is_beginning = text.endswith(f"-{HEAD - 1}") or text.startswith("bytes=-")
            return False if is_later and is_beginning else ANSWERS[answer](handler)

        server.answer = fail
        results.append(failure(lambda array=array: array[700, 50]))
        if fetch == "native":
            assert f"bytes=0-{HEAD - 1}" in seen or layout == "shards"
    if answer == "cut":  # of a body that breaks off, the clients tell different details
        results = [result[0] for result in results]
    assert results[0] == results[1]


@pytest.mark.parametrize("layout", ["chunks", "shards"])
def test_value_that_is_too_large_is_not_fetched(server, layout):
    url = put(server, "a", **LAYOUTS[layout])
    limit = {**FAST, "max_value_bytes": 100_000}
    errors = [failure(lambda fetch=fetch: by(fetch, url, limit)[700, 50]) for fetch in ("native", "python")]
    if layout == "chunks":
        assert errors[0][0] is StoreLimitError
    assert errors[0] == errors[1]


@settings(max_examples=5 * RUNS, deadline=None)
@given(damage=st.data(), layout=st.sampled_from(["chunks", "shards"]))
def test_damaged_chunks_are_the_same_errors_or_read_where_they_are_sound(broken, damage, layout):
    server, natively, otherwise = broken[layout]
    key = "/a/c/1/0" if layout == "chunks" else "/a/c/0/0"
    sound = server.values[key]
    data = bytearray(sound)
    begin = 0 if layout == "chunks" else sound.index(b"\x02\x01", 1_000_000)
    if damage.draw(st.booleans()):
        at = damage.draw(st.one_of(st.integers(begin, begin + 200), st.integers(0, len(data) - 1)))
        data[at] ^= damage.draw(st.integers(1, 255))
    else:
        del data[damage.draw(st.integers(0, len(data) - 1)) :]
    place = damage.draw(st.integers(CHUNK[0], SHAPE[0] - 1)), damage.draw(COLUMNS)
    try:
        server.values[key] = bytes(data)
        native, other = (outcome(partial(array.__getitem__, place)) for array in (natively, otherwise))
    finally:
        server.values[key] = sound
    assert native == other or native == bits(VALUES[place])


@pytest.fixture(scope="module")
def broken():
    with recording() as one, recording() as two:
        made = {}
        for layout, server in (("chunks", one), ("shards", two)):
            url = put(server, "a", **LAYOUTS[layout])
            made[layout] = server, by("native", url, FAST), by("python", url, FAST)
        yield made


_ = servers  # its fixtures
