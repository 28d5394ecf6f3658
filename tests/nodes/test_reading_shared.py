"""Selections of the same chunks, read together: a store that answers in Python is asked for each chunk once."""

import asyncio
import threading
import time
from collections import Counter

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr import aio, data
from omnizarr.codecs.chain import Chain
from omnizarr.errors import ChunkError, StoreError
from omnizarr.stores import FsspecStore, MemoryStore, MetricsStore, PrefixStore, Store, answers, verbs
from omnizarr.stores.base import Features

SHAPE = (64, 50)
KINDS = {
    "raw": {"chunks": (16, 25), "compressors": None},
    "zstd": {"chunks": (16, 25)},
    "shards": {"chunks": (4, 25), "shards": (16, 50)},
    "blosc of v2": {"chunks": (16, 25), "zarr_format": 2},
    "big-endian": {"chunks": (16, 25), "dtype": ">f4", "compressors": None},
}
ROWS = [np.s_[row] for row in range(0, 60, 3)]
MIXED = [np.s_[3:40:5, ::-7], np.s_[60, 49], (np.array([0, 63, 5]), slice(None)), np.s_[...], np.s_[10:12, 20:30]]


class Counting(MemoryFileSystem):
    """Files in memory, whose requests are counted."""

    protocol = "counting"
    cachable = False

    def __init__(self):
        super().__init__()
        self.requests = Counter()

    def cat_file(self, path, start=None, end=None, **options):
        self.requests[path] += 1
        return super().cat_file(path, start=start, end=end, **options)


@pytest.fixture(params=KINDS)
def array(request):
    options = {"dtype": "f4", **KINDS[request.param]}
    name = f"/{request.param}.zarr"
    made = omnizarr.create_array(FsspecStore(MemoryFileSystem(), name), shape=SHAPE, fill_value=7, **options)
    made[:48] = values()[:48]  # the last chunks are missing
    yield omnizarr.open_array(FsspecStore(Counting(), name))
    MemoryFileSystem().rm(name, recursive=True)


def values():
    found = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
    found[48:] = 7
    return found


@pytest.mark.parametrize("selections", [ROWS, MIXED], ids=["rows", "mixed"])
@pytest.mark.parametrize("concurrency", [None, 1, 3])
def test_values_are_those_of_each_selection_by_itself(array, selections, concurrency):
    found = omnizarr.read_many([(array, each) for each in selections], concurrency=concurrency)
    for selection, part in zip(selections, found, strict=True):
        np.testing.assert_array_equal(part, values()[selection])


def test_elements_are_converted_for_each_selection(array):
    out = [np.empty(50, "f8"), None, np.empty(50, "c16")]
    found = omnizarr.read_many([(array, 1), (array, 2), (array, 1)], out=out)
    for row, part, dtype in zip((1, 2, 1), found, ("f8", array.dtype, "c16"), strict=True):
        np.testing.assert_array_equal(part, values()[row])
        assert part.dtype == dtype


def test_rows_of_a_chunk_need_the_requests_of_one(array):
    requests = array.store.fs.requests
    requests.clear()
    array[0:16]
    once = sum(requests.values())
    requests.clear()
    omnizarr.read_many([(array, row) for row in range(16)])
    assert sum(requests.values()) == once
    requests.clear()
    omnizarr.read_many([(array, (5, column)) for column in (0, 0, 1)])
    assert sum(requests.values()) <= (2 if array.shards is None else 3)  # of a shard, the index and an inner chunk


def test_a_broken_chunk_is_named(array):
    key = "c/0/0" if array.metadata.zarr_format == 3 else "0.0"
    array.store.set(key, b"\x01\x02\x03")
    with pytest.raises(ChunkError, match=key):
        omnizarr.read_many([(array, 0), (array, 1), (array, 40)])


class Own(Store):
    """A store of a user, which answers requests for several keys at once."""

    features = Features()

    def __init__(self, values, concurrency=1):
        self.values, self.requests, self.rounds, self.broken = values, Counter(), 0, ""
        self.features = Features(concurrency=concurrency)

    def get(self, key, span=None):
        if key == self.broken:
            raise StoreError("out of order", key=key)
        self.requests[key] += 1
        value = self.values.get(key)
        return value if value is None or span is None else value[slice(*span)]

    @answers(verbs.get_many)
    def _get_many(self, requests):
        self.rounds += 1
        return iter([(position, self.get(*request)) for position, request in enumerate(requests)])

    def set(self, key, value):
        self.values[key] = bytes(value)

    def delete(self, key):
        self.values.pop(key, None)

    def list(self):
        return iter(list(self.values))


class Derived(MemoryStore):
    """A subclass of a store, which the native engine does not know."""

    def __init__(self, values, requests):
        super().__init__(values)
        self.requests = requests

    def get(self, key, span=None):
        self.requests[key] += 1
        return super().get(key, span)


def own(values):
    store = Own(values)
    return store, store.requests


def far(values):
    store = Own(values, concurrency=8)
    return store, store.requests


def derived(values):
    requests = Counter()
    return Derived(values, requests), requests


def wrapped(values):
    store = Own({f"below/{key}": value for key, value in values.items()})
    return MetricsStore(PrefixStore(store, "below")), store.requests


STORES = {each.__name__: each for each in (own, far, derived, wrapped)}


def opened(kind, make):
    stored = {}
    omnizarr.create_array(stored, shape=SHAPE, fill_value=7, **{"dtype": "f4", **KINDS[kind]})[:48] = values()[:48]
    store, requests = make(stored)
    array = omnizarr.open_array(store, mode="r")
    array[0, 0]  # so that all is there that is looked up once
    requests.clear()
    return array, requests


def chunks_of(array, requests):
    """Return the requests for chunks, which are not those for the documents of the array."""
    return {key: number for key, number in requests.items() if not key.rpartition("/")[2].startswith((".z", "zarr"))}


bounds = [st.one_of(st.integers(-n, n - 1), st.slices(n), st.lists(st.integers(0, n - 1), max_size=4)) for n in SHAPE]


@pytest.mark.parametrize("kind", ["zstd", "shards"])
@given(
    make=st.sampled_from([*STORES.values()]),
    selections=st.lists(st.tuples(*bounds), min_size=2, max_size=6),
    is_awaited=st.booleans(),
)
def test_any_selections_ask_once_for_a_chunk(kind, make, selections, is_awaited):
    array, requests = opened(kind, make)
    several = [np.ix_(*each) if all(isinstance(axis, list) for axis in each) else each for each in selections]
    wanted = [(array, each) for each in several]
    found = asyncio.run(aio.read_many(wanted)) if is_awaited else omnizarr.read_many(wanted)
    for selection, part in zip(several, found, strict=True):
        np.testing.assert_array_equal(part, values()[selection])
    asked = chunks_of(array, requests)
    if kind == "shards":  # of each, the index and the inner chunks, or all of it
        assert max(asked.values(), default=0) <= 1 + 8
    else:
        assert set(asked.values()) <= {1}


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_joins_and_loaders_ask_once_for_a_chunk(kind, make):
    array, requests = opened(kind, make)
    rows = [(array, row) for row in range(SHAPE[0])]
    ways = {
        "read_many": lambda: np.stack(omnizarr.read_many(rows)),
        "aio": lambda: np.stack(asyncio.run(aio.read_many(rows))),
        "join": lambda: omnizarr.stack([array.lazy[row] for row in range(SHAPE[0])]).read(),
        "loader": lambda: next(iter(data.Loader({"x": array}, batch=SHAPE[0])))["x"],
    }
    for name, read in ways.items():
        requests.clear()
        np.testing.assert_array_equal(read(), values(), err_msg=name)
        assert set(chunks_of(array, requests).values()) == {1}, name


def test_a_store_that_answers_for_many_is_asked_for_many():
    array, _ = opened("zstd", own)
    array.store.rounds = 0
    omnizarr.read_many([(array, row) for row in range(SHAPE[0])])
    assert array.store.rounds == 1


def test_a_chunk_that_a_round_cannot_fetch_is_named():
    array, _ = opened("zstd", own)
    array.store.broken = "c/1/0"
    with pytest.raises(StoreError) as caught:
        omnizarr.read_many([(array, row) for row in range(SHAPE[0])])
    assert (caught.value.key, caught.value.coords) == ("c/1/0", (1, 0))


def test_inner_chunks_are_decoded_once(monkeypatch):
    array, _ = opened("shards", derived)
    decoded, plain = [], Chain._fill

    def fill(chain, stored, out):
        decoded.append(chain.spec.shape)
        return plain(chain, stored, out)

    monkeypatch.setattr(Chain, "_fill", fill)
    omnizarr.read_many([(array, row) for row in range(48)])
    assert sum(shape == (4, 25) for shape in decoded) <= 48 // 4 * 2


def test_a_broken_inner_chunk_that_is_not_wanted_does_no_harm():
    array, _ = opened("shards", own)
    whole = bytearray(array.store.values["c/0/0"])
    whole[:8] = bytes(8)  # the first inner chunk in the file, which is that of rows 0 to 3
    array.store.values["c/0/0"] = bytes(whole)
    rows = range(4, 16)
    for row, found in zip(rows, omnizarr.read_many([(array, row) for row in rows]), strict=True):
        np.testing.assert_array_equal(found, values()[row])
    with pytest.raises(ChunkError, match="c/0/0"):
        omnizarr.read_many([(array, row) for row in range(16)])


def test_a_cancelled_task_soon_asks_for_no_more():
    array, _ = opened("zstd", lambda stored: (Own(stored, concurrency=2), Counter()))
    plain, begun = array.store.get, threading.Event()

    def get(key, span=None):
        begun.set()
        time.sleep(0.02)
        return plain(key, span)

    async def read():
        task = asyncio.ensure_future(aio.read_many([(array, row) for row in range(64)]))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    array.store.requests.clear()
    array.store.get = get
    assert asyncio.run(read())
    assert sum(array.store.requests.values()) < 8  # chunks
