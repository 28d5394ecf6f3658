"""Decoded chunks that are kept: never others than those that are stored, never more than asked for."""

import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.engine import cache
from omnizarr.errors import ChunkError, ChunkNotFoundError, SettingError
from omnizarr.stores import LocalStore, MemoryStore, PrefixStore, Store, ZipStore, verbs
from tests.engine.both import ENGINES, needs_native, needs_posix, opened
from tests.fakes import FaultyStore

PLENTY = 10_000_000
SETTLED = 0.15
"""Seconds after which a file that was written has a stamp."""

each_engine = pytest.mark.parametrize(
    "engine", [pytest.param(engine, marks=needs_native if engine == "native" else ()) for engine in ENGINES]
)
LAYOUTS = {
    "chunks": {"chunks": (4, 5)},
    "compressed": {"chunks": (4, 5), "compressors": "gzip"},
    "v2 in F order": {"chunks": (4, 5), "zarr_format": 2, "order": "F", "compressors": {"id": "zlib", "level": 1}},
    "shards": {"chunks": (2, 5), "shards": (8, 10)},
    "chunks of several shapes": {"chunks": [[4, 6, 7], [5, 10, 5]]},
}
each_layout = pytest.mark.parametrize("layout", [pytest.param(layout, id=name) for name, layout in LAYOUTS.items()])
VALUES = np.arange(17 * 20, dtype="uint16").reshape(17, 20)
SELECTIONS = [
    (slice(None), slice(None)),
    (slice(3, 9), slice(4, 6)),
    (5, 7),
    (slice(None, None, -3), slice(1, None, 2)),
    (slice(16, 17), slice(None)),
    ([1, 2, 16], slice(3, 12)),
    np.s_[..., 0],
    (slice(4, 4), slice(None)),
]


def stored(store, layout, values=VALUES):
    """Store `values`, and wait until files have stamps."""
    omnizarr.create_array(store, data=values, overwrite=True, **layout)
    if not isinstance(store, (dict, MemoryStore, FaultyStore)):
        time.sleep(SETTLED)
    return store


def kept(store, engine, nbytes=PLENTY, **options):
    """Open an array that `engine` serves, with a cache of its own, and return both."""
    chunks = omnizarr.ChunkCache(nbytes)
    return opened(store, engine, config={"chunk_cache": chunks, **options}), chunks


class CountingStore(FaultyStore):
    """A store that also counts how often it was asked for a value that had changed, and so had to be fetched."""

    def handle(self, verb, *args):
        found = super().handle(verb, *args)
        if verb is verbs.get_stamped and found is not None:
            self.requests["fetched"] += 1
        return found


def counted(layout, values=VALUES):
    """Return a store that counts requests, with an array in it."""
    store = CountingStore(MemoryStore())
    stored(store, layout, values)
    return store


def fetched(store):
    """Return how often something was fetched since this was last asked."""
    number = sum(store.requests[verb] for verb in ("get", "get_spans", "read_into", "fetched"))
    store.reset()
    return number


# -- values -----------------------------------------------------------------------------


@each_engine
@each_layout
@pytest.mark.parametrize("place", ["memory", "directory"])
def test_values_are_the_same_with_a_cache_the_first_time_and_the_second(tmp_path, engine, layout, place):
    array, chunks = kept(stored({} if place == "memory" else tmp_path / "a.zarr", layout), engine)
    for _ in range(3):
        for selection in SELECTIONS:
            np.testing.assert_array_equal(array.oindex[selection], VALUES[selection], strict=True)
        np.testing.assert_array_equal(array.vindex[[0, 16, 3], [19, 0, 4]], VALUES[[0, 16, 3], [19, 0, 4]])
    assert chunks.nbytes > 0


@each_engine
@each_layout
def test_what_another_array_writes_is_seen_at_once(engine, layout):
    store = stored({}, layout)
    array, _ = kept(store, engine)
    other = omnizarr.open_array(store, mode="r+")
    expected = VALUES.copy()
    for number in range(20):
        other[number % 17, 3:9] = expected[number % 17, 3:9] = number + 1000
        np.testing.assert_array_equal(array[:], expected)


@each_engine
@each_layout
def test_what_is_written_through_the_array_itself_is_seen_at_once(tmp_path, engine, layout):
    array, _ = kept(stored(tmp_path / "a.zarr", layout), engine)
    expected = VALUES.copy()
    for number in range(20):
        np.testing.assert_array_equal(array[:], expected)
        array[number % 17, 3:9] = expected[number % 17, 3:9] = number + 1000


@each_engine
@each_layout
def test_deleted_chunks_are_seen_at_once(tmp_path, engine, layout):
    path = stored(tmp_path / "a.zarr", layout)
    array, chunks = kept(path, engine)
    np.testing.assert_array_equal(array[:], VALUES)
    assert chunks.nbytes
    for key in list(LocalStore(path).list()):
        if "zarr" not in key and ".z" not in key:
            LocalStore(path).delete(key)
    assert not array[:].any()


@each_engine
@each_layout
def test_resizing_and_appending_keep_the_cache_and_the_values(engine, layout):
    if isinstance(layout["chunks"], list):
        layout = {"chunks": (4, 5)}
    array, chunks = kept(stored({}, layout), engine)
    np.testing.assert_array_equal(array[:], VALUES)
    array.append(VALUES[:6])
    expected = np.concatenate([VALUES, VALUES[:6]])
    np.testing.assert_array_equal(array[:], expected)
    array.resize((10, 20))
    np.testing.assert_array_equal(array[:], VALUES[:10])
    array.resize((12, 20))
    np.testing.assert_array_equal(array[:], np.concatenate([VALUES[:10], np.zeros((2, 20), "u2")]))
    assert array.config.chunk_cache is chunks


@each_engine
@pytest.mark.parametrize("layout", [LAYOUTS["compressed"], LAYOUTS["shards"]], ids=["chunks", "shards"])
def test_values_never_lag_behind_their_writer(tmp_path, engine, layout):
    stored(tmp_path / "a.zarr", layout, np.zeros((8, 10), "u4"))
    readers = [kept(tmp_path / "a.zarr", engine)[0] for _ in range(2)]
    writer = omnizarr.open_array(tmp_path / "a.zarr", mode="r+")
    for number in range(1, 400):
        if number % 100 == 50:
            time.sleep(SETTLED)  # time enough for a stamp, and to keep something; then writes follow at once
            for reader in readers:
                assert (reader[:] == number - 1).all()
        writer[:] = number
        for reader in readers:
            assert (reader[:] == number).all()


@each_engine
def test_values_never_lag_behind_a_writer_in_another_process(tmp_path, engine):
    path = stored(tmp_path / "a.zarr", LAYOUTS["compressed"], np.zeros((8, 10), "u4"))
    script = f"""
        import sys, omnizarr
        array = omnizarr.open_array({str(path)!r}, mode="r+")
        for line in sys.stdin:
            array[:] = int(line)
            print(line.strip(), flush=True)
    """
    array, _ = kept(path, engine)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        for number in range(1, 200):
            if number % 50 == 25:
                time.sleep(SETTLED)
            before = array[:]
            assert (before == number - 1).all()
            writer.stdin.write(f"{number}\n")
            writer.stdin.flush()
            writer.stdout.readline()
            assert (array[:] == number).all()
        writer.stdin.close()


@each_engine
def test_missing_chunks_are_the_fill_value_and_not_kept(engine):
    store = {}
    omnizarr.create_array(store, shape=(8, 8), chunks=(4, 4), dtype="int8", fill_value=7)
    array, chunks = kept(store, engine)
    for _ in range(2):
        assert (array[:] == 7).all()
    assert chunks.nbytes == 0
    omnizarr.open_array(store, mode="r+")[:4, :4] = 1
    assert (array[:4, :4] == 1).all()


@each_engine
@pytest.mark.parametrize("options", [{}, {"shards": (8, 8)}], ids=["chunks", "shards"])
def test_missing_chunks_are_errors_where_they_shall_be(engine, options):
    store = {}
    omnizarr.create_array(store, shape=(8, 8), chunks=(4, 4), dtype="int8", **options)[:4, :4] = 1
    array, _ = kept(store, engine, missing="error")
    filling, _ = kept(store, engine)
    for _ in range(2):
        assert (array[:4, :4] == 1).all()
        assert int(filling[:].sum()) == 16
        with pytest.raises(ChunkNotFoundError):
            array[:]


@each_engine
def test_broken_chunk_is_an_error_each_time(engine):
    store = stored({}, LAYOUTS["compressed"])
    good = store["c/0/0"]
    array, _ = kept(store, engine)
    store["c/0/0"] = good[:-9]
    for _ in range(2):
        with pytest.raises(ChunkError):
            array[0]
    store["c/0/0"] = good
    np.testing.assert_array_equal(array[0], VALUES[0])


@each_engine
def test_results_may_be_changed(engine):
    array, _ = kept(stored({}, {"chunks": (17, 20)}), engine)
    for _ in range(3):
        result = array[:]
        np.testing.assert_array_equal(result, VALUES)
        result[:] = 0


@each_engine
def test_arrays_without_dimensions_and_without_elements_are_read(engine):
    array, _ = kept(stored({}, {}, np.array(5.5)), engine)
    assert [array[()], array[...]] == [5.5, 5.5]
    empty, _ = kept(stored({}, {"chunks": (2, 2)}, np.zeros((0, 3))), engine)
    assert empty[:].shape == (0, 3)


@each_engine
def test_big_endian_values_are_kept_unchanged(engine):
    values = VALUES.astype(">f8")
    array, chunks = kept(stored({}, {"chunks": (5, 5), "zarr_format": 2}, values), engine)
    for _ in range(2):
        np.testing.assert_array_equal(array[2:9], values[2:9], strict=True)
    assert chunks.nbytes


@each_engine
def test_threads_read_right_values_while_others_write(tmp_path, engine):
    path = stored(tmp_path / "a.zarr", {"chunks": (4, 5), "compressors": "gzip"}, np.zeros((16, 20), "i8"))
    array, chunks = kept(path, engine, nbytes=5 * 4 * 5 * 8)  # room for five of 16 chunks
    done = threading.Event()

    def read(seed):
        random = np.random.default_rng(seed)
        last = np.zeros((4, 4), "i8")
        while not done.is_set():
            row, column = random.integers(0, 4, 2)
            chunk = array[row * 4 : row * 4 + 4, column * 5 : column * 5 + 5]
            assert (chunk == chunk[0, 0]).all()
            assert chunk[0, 0] >= last[row, column], "older than what this thread has seen"
            last[row, column] = chunk[0, 0]
            assert chunks.nbytes <= chunks.limit

    def write():
        writer = omnizarr.open_array(path, mode="r+")
        for number in range(1, 60):
            writer[4 * (number % 4) : 4 * (number % 4) + 4] = number
            time.sleep(0.02)
        done.set()

    with ThreadPoolExecutor(5) as pool:
        tasks = [pool.submit(read, seed) for seed in range(4)]
        try:
            pool.submit(write).result()
        finally:
            done.set()
        for task in tasks:
            task.result()


# -- what is kept -----------------------------------------------------------------------


@pytest.mark.parametrize("layout", [LAYOUTS[name] for name in ("chunks", "compressed", "shards")])
def test_what_is_kept_is_not_fetched_again(layout):
    store = counted(layout)
    array, _ = kept(store, "reference")
    np.testing.assert_array_equal(array[3:9, 4:6], VALUES[3:9, 4:6])
    assert fetched(store)
    np.testing.assert_array_equal(array[4:8, 4:6], VALUES[4:8, 4:6])
    np.testing.assert_array_equal(array[3, 5], VALUES[3, 5])
    assert fetched(store) == 0
    np.testing.assert_array_equal(array[3:13, 4:6], VALUES[3:13, 4:6])
    assert fetched(store)


@needs_native
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count what is read")
@pytest.mark.parametrize("layout", [LAYOUTS[name] for name in ("compressed", "shards")])
def test_what_the_native_engine_keeps_is_not_read_again(tmp_path, layout):
    def bytes_read():
        return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])

    def cost(run):
        before = bytes_read()
        run()
        return bytes_read() - before

    values = np.random.default_rng(0).integers(0, 2**16, (800, 1000)).astype("u2")
    layout = {**layout, "chunks": (200, 500), **({"shards": (400, 1000)} if "shards" in layout else {})}
    array, chunks = kept(stored(tmp_path / "a.zarr", layout, values), "native")
    gc.collect()
    assert cost(lambda: array[:]) > values.nbytes / 2
    assert chunks.nbytes == values.nbytes
    again = []
    assert cost(lambda: again.append(array[:])) < 10_000
    np.testing.assert_array_equal(again[0], values)


@each_engine
def test_no_more_is_kept_than_asked_for(engine):
    chunk_bytes = 4 * 5 * 2
    array, chunks = kept(stored({}, {"chunks": (4, 5)}), engine, nbytes=3 * chunk_bytes + 1)
    for row in range(17):
        array[row]
        assert chunks.nbytes <= 3 * chunk_bytes
    assert chunks.nbytes == 3 * chunk_bytes
    np.testing.assert_array_equal(array[:], VALUES)


@each_engine
def test_chunk_that_is_larger_than_the_cache_is_read_and_not_kept(engine):
    array, chunks = kept(stored({}, {"chunks": (17, 20)}), engine, nbytes=VALUES.nbytes - 1)
    for _ in range(2):
        np.testing.assert_array_equal(array[:], VALUES)
    assert chunks.nbytes == 0


@each_engine
def test_nothing_is_kept_unless_asked_for(engine):
    array = opened(stored({}, {"chunks": (4, 5)}), engine)
    assert array.config.chunk_cache == 0
    assert "Chunk cache" not in str(array.info)


def test_what_was_not_used_for_longest_goes_first():
    store = counted({"chunks": (1, 20)})
    array, _ = kept(store, "reference", nbytes=3 * 40)
    for row in (0, 1, 2, 0, 3):
        array[row]
    fetched(store)
    array[0], array[2], array[3]
    assert fetched(store) == 0
    array[1]
    assert fetched(store) == 1


def test_value_that_changes_while_it_is_read_is_not_kept():
    values = stored({}, {"chunks": (17, 20)})
    old, new = values["c/0/0"], stored({}, {"chunks": (17, 20)}, VALUES + 1)["c/0/0"]

    class Changing(MemoryStore):
        def get(self, key, span=None):
            value = super().get(key, span)
            if key == "c/0/0":
                self.store_dict[key] = new
            return value

    array, chunks = kept(Changing(values), "reference")
    np.testing.assert_array_equal(array[:], VALUES)
    assert chunks.nbytes == 0
    np.testing.assert_array_equal(array[:], VALUES + 1)
    assert chunks.nbytes == VALUES.nbytes
    values["c/0/0"] = old
    np.testing.assert_array_equal(array[:], VALUES)


def test_store_without_stamps_is_read_again_each_time():
    class Plain(Store):
        def __init__(self, values):
            self.values = values

        def get(self, key, span=None):
            value = self.values.get(key)
            return value if value is None or span is None else value[slice(*span)]

        def set(self, key, value):
            self.values[key] = bytes(value)

        def delete(self, key):
            self.values.pop(key, None)

        def list(self):
            return iter(list(self.values))

    store = stored(Plain({}), {"chunks": (4, 5)})
    chunks = omnizarr.ChunkCache(PLENTY)
    array = omnizarr.open_array(store, mode="r+", config={"chunk_cache": chunks})
    omnizarr.open_array(store, mode="r+")[:] = 3
    assert (array[:] == 3).all()
    omnizarr.open_array(store, mode="r+")[:] = 4
    assert (array[:] == 4).all()
    assert chunks.nbytes == 0


def test_stores_in_python_are_served_by_the_engine_that_asks_them(tmp_path):
    with omnizarr.create_group(ZipStore(tmp_path / "a.zip", mode="w")).store as store:
        omnizarr.create_array(store, name="x", data=VALUES, chunks=(4, 5))
    time.sleep(SETTLED)
    stored(tmp_path / "a" / "x", {"chunks": (4, 5)})
    with ZipStore(tmp_path / "a.zip") as store:
        for where, path in [(store, "x"), (PrefixStore(LocalStore(tmp_path), "a"), "x")]:
            chunks = omnizarr.ChunkCache(PLENTY)
            array = omnizarr.open_array(where, path=path, mode="r", config={"chunk_cache": chunks})
            assert array.engine == "reference"
            for _ in range(2):
                np.testing.assert_array_equal(array[2:7], VALUES[2:7])
            assert chunks.nbytes == 2 * 4 * 4 * 5 * 2


@pytest.mark.parametrize(
    "values",
    [
        np.array(["a", "", "long" * 100, "ä\U0001f600"] * 5, dtype=np.dtypes.StringDType()),
        np.array([b"a", b"", b"long" * 100, b"\0"] * 5, dtype=object),
    ],
    ids=["texts", "bytes"],
)
def test_texts_and_bytes_are_kept_and_counted(values):
    options = {"dtype": "string"} if values.dtype.kind == "T" else {"dtype": "bytes"}
    store = CountingStore(MemoryStore())
    omnizarr.create_array(store, shape=(20,), chunks=(4,), **options)[:] = values
    array, chunks = kept(store, "reference")
    fetched(store)
    for _ in range(2):
        assert array[:].tolist() == values.tolist()
    assert fetched(store) == 5
    assert chunks.nbytes >= 5 * 400


def test_objects_that_could_be_changed_are_not_kept():
    assert cache.nbytes_of(np.array([{"a": 1}, None], dtype=object)) is None
    assert cache.nbytes_of(np.array([b"abc", "d", 1, None], dtype=object)) > 4 * 8


@needs_posix
@each_engine
def test_forked_child_reads_though_the_cache_was_in_use(engine):
    array, _ = kept(stored({}, {"chunks": (4, 5)}), engine)
    done = threading.Event()

    def use():
        while not done.is_set():
            array[:]

    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(use) for _ in range(2)]
        try:
            for _ in range(10):
                child = os.fork()
                if not child:
                    os._exit(0 if (array[3:9] == VALUES[3:9]).all() else 1)
                deadline = time.monotonic() + 30
                while (result := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
                    time.sleep(0.01)
                if not result[0]:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                assert result == (child, 0)
        finally:
            done.set()
        for task in tasks:
            task.result()


# -- one cache, many arrays -------------------------------------------------------------


def test_arrays_share_a_cache_and_its_limit():
    chunks = omnizarr.ChunkCache(VALUES.nbytes + 100)
    config = {"chunk_cache": chunks}
    arrays = [omnizarr.open_array(stored({}, {"chunks": (17, 20)}, VALUES + n), config=config) for n in range(3)]
    for _ in range(2):
        for number, array in enumerate(arrays):
            np.testing.assert_array_equal(array[:], VALUES + number)
            assert chunks.nbytes == VALUES.nbytes


@needs_native
def test_both_engines_share_one_limit():
    chunks = omnizarr.ChunkCache(VALUES.nbytes)
    stores = {engine: stored({}, {"chunks": (17, 20)}) for engine in ENGINES}
    arrays = [opened(store, engine, config={"chunk_cache": chunks}) for engine, store in stores.items()]
    for _ in range(2):
        for array in arrays:
            np.testing.assert_array_equal(array[:], VALUES)
            assert chunks.nbytes == VALUES.nbytes


def test_array_that_is_looked_up_again_finds_what_was_kept():
    store = CountingStore(MemoryStore())
    omnizarr.create_array(store, name="a/b", data=VALUES, chunks=(4, 5))
    with omnizarr.config.set({"engine": "reference"}):
        root = omnizarr.open_group(store, mode="r", config={"chunk_cache": omnizarr.ChunkCache(PLENTY)})
        np.testing.assert_array_equal(root["a/b"][:], VALUES)
        store.reset()
        np.testing.assert_array_equal(root["a/b"][:], VALUES)
    assert fetched(store) == 1  # the document of the array


def test_arrays_that_decode_the_same_bytes_differently_do_not_share_chunks():
    store = stored({}, {"chunks": (17, 20), "zarr_format": 2})
    config = {"chunk_cache": omnizarr.ChunkCache(PLENTY)}
    first = omnizarr.open_array(store, mode="r+", config=config)
    np.testing.assert_array_equal(first[:], VALUES)
    store[".zarray"] = store[".zarray"].replace(b'"<u2"', b'">u2"')
    second = omnizarr.open_array(store, mode="r+", config=config)
    np.testing.assert_array_equal(second[:], VALUES.view(">u2"))
    np.testing.assert_array_equal(first[:], VALUES)


def test_the_setting_of_the_process_counts_for_what_is_opened_later():
    store = stored({}, {"chunks": (4, 5)})
    with omnizarr.config.set({"array.chunk_cache": 1000}):
        array = omnizarr.open_array(store)
    assert array.config.chunk_cache == 1000
    assert array.with_config({"missing": "error"}).config.chunk_cache == 1000
    assert "Chunk cache" in str(array.info)


def test_cache_is_shown_by_info():
    store = stored({}, {"chunks": (4, 5)})
    for config in (2048, omnizarr.ChunkCache(2048)):
        array = omnizarr.open_array(store, config={"chunk_cache": config})
        assert "Chunk cache  : 2048 (2.0K)" in str(array.info).replace("Chunk cache ", "Chunk cache  ").replace(
            "   ", "  "
        )


def test_pickled_copies_have_caches_of_the_same_limit(tmp_path):
    path = stored(tmp_path / "a.zarr", {"chunks": (4, 5)})
    shared = omnizarr.ChunkCache(1000)
    arrays = [omnizarr.open_array(path, mode="r", config={"chunk_cache": shared}) for _ in range(2)]
    arrays[0][:]
    first, second = pickle.loads(pickle.dumps(arrays))
    assert first.config.chunk_cache is second.config.chunk_cache
    assert (first.config.chunk_cache.limit, first.config.chunk_cache.nbytes) == (1000, 0)
    np.testing.assert_array_equal(first[:], VALUES)
    alone = pickle.loads(pickle.dumps(omnizarr.open_array(path, mode="r", config={"chunk_cache": 500})))
    assert alone.config.chunk_cache == 500


@pytest.mark.parametrize("limit", [-1, -(2**70)])
def test_cache_of_less_than_no_bytes_is_refused(limit):
    with pytest.raises(SettingError):
        omnizarr.ChunkCache(limit)
    with pytest.raises(ValueError, match="chunk_cache"):
        omnizarr.ArrayConfig(chunk_cache=limit)


@pytest.mark.parametrize("limit", [1.5, "1 GB more"])
def test_cache_of_what_is_no_number_of_bytes_is_refused(limit):
    with pytest.raises((TypeError, ValueError)):
        omnizarr.ChunkCache(limit)
    with pytest.raises(ValueError, match="chunk_cache"):
        omnizarr.ArrayConfig(chunk_cache=limit)


@each_engine
def test_cache_may_be_larger_than_any_memory(engine):
    array, chunks = kept(stored({}, {"chunks": (4, 5)}), engine, nbytes=2**70)
    np.testing.assert_array_equal(array[:], VALUES)
    assert chunks.nbytes
