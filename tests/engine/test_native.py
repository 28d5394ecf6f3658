"""What the native engine promises besides right values: no panic, bounded memory, threads as told, a true cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr.settings import engines
from omnizarr.stores import MemoryStore, WrapperStore, verbs
from omnizarr.stores.base import answers
from tests.engine.both import ENGINES, RUNS, needs_native, opened, outcome

pytestmark = needs_native
HUGE = 2**62


# -- hostile input -----------------------------------------------------------------


def document(shape, chunks, codecs=None, dtype="int32"):
    return json.dumps({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": codecs or [{"name": "bytes", "configuration": {"endian": "little"}}],
    }).encode()  # fmt: skip


def shards(*chunk):
    inner = [{"name": "bytes", "configuration": {"endian": "little"}}]
    configuration = {"chunk_shape": chunk, "codecs": inner, "index_codecs": inner, "index_location": "end"}
    return [{"name": "sharding_indexed", "configuration": configuration}]


HOSTILE = {
    "as long as can be": ([2**63 - 1], [2**63 - 1]),
    "very many chunks": ([2**63 - 1], [1]),
    "huge in every direction": ([HUGE, HUGE, HUGE], [3, 3, 3]),
    "chunks that are huge in every direction": ([HUGE, HUGE, HUGE], [HUGE, HUGE, HUGE]),
    "a chunk beyond memory": ([2**40], [2**40]),
    "a chunk much longer than the array": ([3], [2**63 - 1]),
    "no elements, huge chunks": ([0, HUGE], [HUGE, HUGE]),
    "a shard of very many chunks": ([2**40], [2**40], shards(1)),
    "a shard beyond memory": ([HUGE], [HUGE], shards(2**61)),
    "a shard of one chunk": ([2**63 - 1], [2**63 - 1], shards(2**63 - 1)),
}
SELECTIONS = [
    slice(0, 0),
    slice(5, 2),
    slice(0, 1),
    slice(0, 2**61, 2**60),
    slice(None, None, 2**62),
    slice(None, None, -(2**62)),
    slice(-1, None),
    slice(2**62 - 3, 2**62),
    0,
    -1,
    [],
    [0, -1],
    np.array([2**61, 5]),
]


@pytest.mark.parametrize("data", [None, b"", b"\0" * 100], ids=["missing", "empty", "short"])
@pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE)
def test_hostile_metadata_does_the_same_with_both_engines(case, data):
    ndim = len(case[0])
    key = "c" + "/0" * ndim
    values = {"zarr.json": document(*case)} | ({} if data is None else {key: data})
    store = MemoryStore(dict(values))

    def with_engine(engine, task):
        with omnizarr.config.set({"engine": engine}):
            result = outcome(lambda: task(omnizarr.open_array(store, mode="r+")))
        after = dict(store.store_dict)
        store.store_dict.clear()
        store.store_dict.update(values)
        return result, after

    for selection in SELECTIONS:
        parts = (selection,) + (slice(0, 1),) * (ndim - 1)
        tasks = [lambda array, parts=parts: array.oindex[parts], lambda array, parts=parts: array[parts]]
        if data is not None:
            tasks.append(lambda array, parts=parts: array.oindex.__setitem__(parts, 7))
        for task in tasks:
            assert with_engine("native", task) == with_engine("reference", task), selection


# Nothing that would only take very long.
numbers = st.one_of(st.integers(-3, 12), st.sampled_from([-(2**63), 2**64]))
slices = st.builds(slice, numbers, st.none() | numbers, numbers)
arrays = st.lists(st.integers(-5, 12), max_size=4).map(lambda some: np.array(some, np.int64))
selectors = st.one_of(slices, arrays, st.none(), numbers, st.text(max_size=1))
pieces = st.tuples(
    st.lists(numbers, max_size=3).map(tuple),
    st.lists(selectors, max_size=3).map(tuple),
    st.lists(selectors, max_size=3).map(tuple),
    st.booleans(),
)


class Parts:
    def __init__(self, parts):
        self.parts = parts


class Runs:
    def __init__(self, runs):
        self.runs = runs


class Points:
    def __init__(self, coords, bounds, places, order):
        self.coords, self.bounds, self.places, self.order = coords, bounds, places, order


class Ungrouped:
    def __init__(self, axes, indices, grid, place, rest):
        self.axes, self.indices, self.grid, self.place, self.rest = axes, indices, grid, place, rest


runs = st.tuples(*[numbers] * 8, st.booleans())
columns = st.tuples(numbers, st.lists(numbers), st.lists(selectors), st.lists(selectors), st.lists(st.booleans()))
plans = st.one_of(
    st.lists(pieces, max_size=2).map(tuple),
    st.builds(Parts, st.lists(st.one_of(runs, columns, st.builds(Runs, st.lists(runs, max_size=2))), max_size=3)),
    st.builds(
        Points, st.lists(arrays, max_size=3), st.lists(numbers, max_size=4), st.lists(arrays, max_size=3),
        st.none() | arrays,
    ),
    st.builds(
        Ungrouped, st.lists(numbers, max_size=2), st.lists(arrays | arrays.map(lambda some: some[::-1]), max_size=3),
        st.lists(st.tuples(numbers, numbers), max_size=3), numbers,
        st.none() | st.builds(Parts, st.lists(columns, max_size=2)),
    ),
)  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"shards": (8, 6)}, {"compressors": None}], ids=["zstd", "shards", "raw"])
@pytest.mark.parametrize("shape", [(10, 9), (10, 0), (90,), ()], ids=str)
def test_a_plan_that_is_not_valid_is_refused_and_touches_nothing(options, shape):
    # Those of `omnizarr.indexing` always do; but a mistake there must not become one with memory.
    values = np.arange(80, dtype="i4").reshape(8, 10)
    engine = opened(
        omnizarr.create_array({}, data=values, chunks=(4, 3), **({**options, "fill_value": 1})).store, "native"
    )._state.bound.binding.native
    around = np.full((3, *shape), 77, "i4")

    @settings(max_examples=10 * RUNS)
    @given(plans)
    @example(())
    @example((((0, 0), (slice(0, 4, 1), slice(0, 9, 1)), (slice(0, 4, 1), slice(0, 9, 1)), True),))
    @example((((2**64,), (slice(0, 4, 1),), (slice(0, 4, 1),), True),))
    def check(plan):
        out = np.empty_like(around[1:2])
        around[1] = 5
        out[...] = 5
        for verb in (engine.read, engine.write):
            # Anything but a panic, which is not an Exception.
            with suppress(Exception):
                verb(plan, around[1:2].reshape(shape or 1), 1)
        assert (around[0] == 77).all()
        assert (around[2] == 77).all()

    check()


@pytest.mark.parametrize("points", [1, 1000])
@pytest.mark.parametrize("chunks", [(7, 5), (100, 80), (1, 1), [[60, 40], [30, 50]]], ids=str)
def test_points_are_found_whatever_the_memory_of_their_coordinates_is(tmp_path, chunks, points):
    shape = (10, 8) if chunks == (1, 1) else (100, 80)  # a chunk is a file
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    rows, columns = np.random.default_rng(0).integers([-n for n in shape], shape, (points, 2)).T
    unaligned = np.empty(8 * points + 1, "u1")[1:].view("i8")
    unaligned[:] = columns
    with omnizarr.config.set({"array.rectilinear_chunks": True}):
        omnizarr.create_array(tmp_path, data=values, chunks=chunks)
    for engine in ENGINES:
        array = opened(tmp_path, engine)
        for place in [
            (rows, columns),
            (rows.copy(), columns.astype(">i8")),
            (np.sort(rows), unaligned),
            (rows[::-1], columns.astype("i1")),
            (rows.reshape(-1, 1)[:4], columns[None, -3:]),
        ]:
            np.testing.assert_array_equal(array.vindex[place], values[place])
            changed = values.copy()
            changed[place] = 7
            array.vindex[place] = 7
            np.testing.assert_array_equal(array[...], changed)
            array.vindex[place] = values[place]
        np.testing.assert_array_equal(array[...], values)


def test_zero_size_chunks_and_steps_are_read(tmp_path):
    array = omnizarr.create_array(tmp_path, shape=(0, 5), chunks=(1, 2), dtype="i4")
    for engine in ENGINES:
        mine = opened(tmp_path, engine)
        assert mine[...].shape == (0, 5)
        assert mine[::-1, ::3].shape == (0, 2)
        assert mine.oindex[[], [1, 2]].shape == (0, 2)
        mine[...] = np.zeros((0, 5), "i4")
    assert list(array.store.list()) == ["zarr.json"]


# -- memory ------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux says how much memory was used")  # noqa: PTH110
def test_reading_takes_the_result_and_few_chunks_of_memory(tmp_path):
    # 400 MB in chunks of 8 MB with RUNS=20; half of it by default.
    count = 50 if RUNS > 10 else 25
    array = omnizarr.create_array(tmp_path, shape=(count, 1_000_000), chunks=(1, 1_000_000), dtype="i8", fill_value=0)
    for row in range(count):
        array[row] = np.arange(1_000_000) // 7 + row
    script = """
    import sys, omnizarr
    def kilobytes(name):
        return int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1])
    omnizarr.config.set({"engine": "native"})
    array = omnizarr.open_array(sys.argv[1], mode="r")
    assert array.engine == "native"
    array[0, :5]
    before = kilobytes("VmHWM")
    out = array.get_basic_selection(..., concurrency=2)
    print(kilobytes("VmHWM") - before)
    assert (out[:, 14] == range(2, 2 + len(out))).all()
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(script), tmp_path], capture_output=True, text=True, check=True, timeout=100
    )
    assert int(done.stdout) * 1024 < count * 8_000_000 + 5 * 8_000_000 + 40_000_000


# -- threads -----------------------------------------------------------------------


class Watched(WrapperStore):
    """A store that notes which threads come."""

    def __init__(self, store):
        super().__init__(store)
        self.threads = set()

    def get(self, key, span=None):
        self.note()
        return super().get(key, span)

    @answers(verbs.get_many)
    def _get_many(self, requests):
        self.note()
        return verbs.get_many(self.store, requests)

    @answers(verbs.get_spans)
    def _get_spans(self, key, spans):
        self.note()
        return verbs.get_spans(self.store, key, spans)

    def set(self, key, value):
        self.note()
        super().set(key, value)

    def note(self):
        self.threads.add(threading.get_ident())
        time.sleep(0.002)  # others come meanwhile

    def seen(self):
        threads, self.threads = self.threads, set()
        return threads


@pytest.fixture
def watched():
    store = Watched(MemoryStore())
    omnizarr.create_array(store, data=np.arange(4_000_000).reshape(40, 100_000), chunks=(1, 100_000), compressors=None)
    return store


def test_concurrency_is_stated_per_call(watched):
    array = opened(watched, "native")
    watched.seen()
    for concurrency in (1, 3):
        out = array.get_basic_selection(..., concurrency=concurrency)
        threads = watched.seen()
        assert threading.get_ident() in threads
        assert (len(threads) == 1) if concurrency == 1 else (1 < len(threads) <= concurrency)
        array.set_basic_selection(..., out, concurrency=concurrency)
        assert (len(watched.seen()) == 1) == (concurrency == 1)


def test_concurrency_is_stated_per_array(watched):
    for concurrency in (1, 3):
        array = opened(watched, "native", config={"concurrency": concurrency})
        watched.seen()
        array[...]
        assert (len(watched.seen()) == 1) == (concurrency == 1)
        array[...] = 1
        assert (len(watched.seen()) == 1) == (concurrency == 1)


def test_concurrency_is_stated_per_process(watched):
    for concurrency in (1, 3):
        with omnizarr.config.set({"concurrency": concurrency}):
            array = opened(watched, "native")
        watched.seen()
        array[...]
        assert (len(watched.seen()) == 1) == (concurrency == 1)


def test_little_work_is_done_by_the_caller_alone(watched):
    array = opened(watched, "native")
    watched.seen()
    array.get_basic_selection((slice(0, 2), slice(0, 5)), concurrency=8)
    assert len(watched.seen()) <= 2
    array.get_basic_selection((0, slice(0, 5)), concurrency=8)
    assert watched.seen() == {threading.get_ident()}


# -- kept chunks -------------------------------------------------------------------

# Seconds until a file's times tell it from whatever is written next. Chunks of files that are younger are not kept.
SETTLED = 0.05


@pytest.fixture(params=["chunks", "shards"])
def path(request, tmp_path):
    layout = {"shards": (100, 100)} if request.param == "shards" else {}
    values = np.random.default_rng(1).integers(0, 2**31, (200, 200)).astype("i4")
    omnizarr.create_array(tmp_path / "a.zarr", data=values, chunks=(50, 50), **layout)
    return tmp_path / "a.zarr"


def test_what_another_array_wrote_is_seen_through_the_cache(path):
    reader = opened(path, "native", mode="r", config={"chunk_cache": 2**24})
    for number in range(2 * RUNS):
        time.sleep(SETTLED)
        reader[...]
        engine = ENGINES[number % 2]
        opened(path, engine)[number : number + 60, 30:80] = number
        assert (reader[number : number + 60, 30:80] == number).all()
        assert np.array_equal(reader[...], opened(path, "reference")[...])


def test_what_another_process_wrote_is_seen_through_the_cache(path):
    reader = opened(path, "native", mode="r", config={"chunk_cache": 2**24})
    script = "import omnizarr, sys; omnizarr.open_array(sys.argv[1], mode='r+')[:60, :60] = int(sys.argv[2])"
    for number in range(2):
        time.sleep(SETTLED)
        reader[...]
        subprocess.run([sys.executable, "-c", script, path, str(number)], check=True, timeout=60)
        assert (reader[:60, :60] == number).all()


def test_a_chunk_that_was_removed_is_not_read_from_the_cache(path):
    reader = opened(path, "native", mode="r", config={"chunk_cache": 2**24})
    time.sleep(SETTLED)
    reader[...]
    (path / "c/0/0").unlink()
    assert (reader[:50, :50] == 0).all()


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="only Linux says how much was read")  # noqa: PTH110
@pytest.mark.parametrize("cache", [0, 2**24])
def test_windows_that_overlap_are_read_once_with_a_cache(path, cache):
    reader = opened(path, "native", mode="r", config={"chunk_cache": cache})
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())

    def nbytes_read():
        return int(Path("/proc/self/io").read_text().split()[1])

    first = reader[...]
    deadline = time.monotonic() + 5 * bool(cache)
    while time.monotonic() < deadline:  # the file system may count time in seconds
        began = nbytes_read()
        reader[...]
        if nbytes_read() - began < size / 2:
            break
        time.sleep(SETTLED)
    began = nbytes_read()
    for start in range(20):
        assert np.array_equal(
            reader[start : start + 180, start : start + 180], first[start : start + 180, start : start + 180]
        )
    read_again = nbytes_read() - began
    assert read_again < size / 2 if cache else read_again > 10 * size


def test_the_module_is_the_one_of_this_package():
    assert Path(engines.module().__file__).parent == Path(omnizarr.__file__).parent
