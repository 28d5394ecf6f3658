"""Threads of one process share settings, caches, arrays and groups, with and without the GIL.

With a GIL, a thread can be interrupted after nearly every bytecode here. Without one, threads run side by side.
"""

import asyncio
import os
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

import numpy as np
import pytest

import omnizarr
from omnizarr import engine
from omnizarr.aio import fetching
from omnizarr.engine import native
from omnizarr.nodes import detection, hierarchy, resizing
from omnizarr.settings import config
from omnizarr.stores import asynchronous
from omnizarr.support.memo import Memo
from tests.repeats import runs

THREADS = 8
ROUNDS = runs(20)
NEEDS_NO_GIL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.fixture(autouse=True)
def _frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(params=["memory", "local"])
def place(request, tmp_path):
    """Return a place for a hierarchy."""
    return omnizarr.storage.MemoryStore() if request.param == "memory" else str(tmp_path / "a.zarr")


def together(task, threads=THREADS):
    """Call ``task(number)`` in threads that start at the same moment, and return what it returned to each."""
    start = threading.Barrier(threads)

    def run(number):
        start.wait()
        return task(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


# -- the interpreter --------------------------------------------------------------------


@pytest.mark.skipif(not NEEDS_NO_GIL, reason="this Python has a GIL")
def test_using_omnizarr_does_not_enable_the_gil():
    script = """
import sys, numpy, omnizarr
array = omnizarr.create_array({}, data=numpy.arange(100), chunks=(10,), shards=(50,))
assert array[7:33].sum() == sum(range(7, 33))
print(array.engine, sys._is_gil_enabled())
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    expected = "reference" if native.engines.module() is None else "native"
    assert (done.stdout.split(), done.stderr) == ([expected, "False"], "")


def test_modules_that_are_imported_at_first_use_can_be_used_first_by_many_threads():
    script = f"""
import sys, threading
import omnizarr
sys.setswitchinterval(1e-6)
start, errors = threading.Barrier({THREADS}), []

def work(number):
    start.wait()
    try:
        root = omnizarr.create_group({{}}, zarr_format=2 + number % 2)
        array = root.create_array("a", shape=(4,), chunks=(2,), dtype="i4", compressors="auto")
        array[...] = number
        assert array[...].tolist() == [number] * 4
        assert array.info and root.tree() and array.compressors
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=work, args=(number,)) for number in range({THREADS})]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
if errors:
    raise errors[0]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# -- what the process has once ------------------------------------------------------------


def test_settings_that_threads_change_at_once_are_all_changed():
    def task(number):
        for value in range(20 * ROUNDS):
            config.set({f"buffer.of_thread_{number}": value})
        with config.set({f"codecs.of_thread_{number}": 1}):
            return config.get(f"buffer.of_thread_{number}")

    try:
        results = together(task)
        kept = [config.get(f"buffer.of_thread_{number}") for number in range(THREADS)]
        assert results == kept == [20 * ROUNDS - 1] * THREADS
        assert not [name for name in config.asdict() if name.startswith("codecs.")]
    finally:
        config.reset()


def test_setting_that_another_thread_changes_in_the_midst_of_a_change_is_kept(monkeypatch):
    other = threading.Thread(target=lambda: config.set({"array.order": "F"}))

    class Values(dict):
        def __iter__(self):  # so that copies call `keys`
            return super().__iter__()

        def keys(self):
            if not other.ident:
                other.start()
                other.join(0.2)  # it waits until this change is made
            return super().keys()

    monkeypatch.setattr(config, "_values", Values(config.asdict()))
    config.set({"concurrency": 3})
    other.join()
    assert (config.get("concurrency"), config.get("array.order")) == (3, "F")


def test_what_is_remembered_is_right_while_threads_make_it_be_forgotten():
    squares = Memo(most=2)

    def task(number):
        numbers = [(number + step) % 5 for step in range(50 * ROUNDS)]
        return [squares.get(each, lambda each=each: each * each) == each * each for each in numbers]

    assert all(chain(*together(task)))
    assert len(squares) <= 2 + THREADS


def test_tables_of_codecs_and_clients_may_be_emptied_by_another_thread(monkeypatch):
    monkeypatch.setattr(native, "_codecs", Memo(1, exact=True))
    arrays = [
        omnizarr.create_array({}, data=np.arange(8), chunks=(2,), compressors=omnizarr.codecs.GzipCodec(level=level))
        for level in range(1, 5)
    ]

    def task(number):
        return [arrays[(number + step) % 4].with_config({})[1:5].tolist() for step in range(5 * ROUNDS)]

    assert all(each == [1, 2, 3, 4] for each in chain(*together(task)))


def test_arrays_with_one_chunk_cache_that_are_opened_at_once_share_it():
    for _ in range(ROUNDS):
        root = omnizarr.create_group({})
        for number in range(THREADS):
            root.create_array(f"a{number}", data=np.full(100, number + 1, "u1"), chunks=(50,))
        cache = omnizarr.ChunkCache(10_000)

        def task(number, root=root, cache=cache):
            array = root[f"a{number}"].with_config({"chunk_cache": cache})
            return [set(array[begin : begin + 10].tolist()) for begin in (0, 20, 60)]

        assert together(task) == [[{number + 1}] * 3 for number in range(THREADS)]
        assert cache.nbytes == THREADS * 100


def test_arrays_in_one_cache_have_different_numbers():
    cache = omnizarr.ChunkCache(1000)
    binding = omnizarr.create_array({}, data=np.arange(4))._bind().binding

    def task(number):
        return [cache.number_of(binding.store, f"{number}/{each}/", binding.chain) for each in range(20 * ROUNDS)]

    numbers = list(chain(*together(task)))
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("desk", [fetching._loop_requests, partial(asynchronous._gate, ("data", 8))])
def test_event_loops_of_many_threads_begin_and_end_at_once(desk):
    async def ask():
        return desk() is desk()

    def task(_):
        return all(asyncio.run(ask()) for _ in range(2 * ROUNDS))

    assert all(together(task))


# -- nodes that threads share ---------------------------------------------------------------


def test_threads_that_first_use_a_group_find_its_consolidated_metadata(place):
    root = omnizarr.create_group(place, zarr_format=2)
    for number in range(THREADS):
        root.create_array(f"a{number}", shape=(number,), dtype="i4")
    for is_consolidated in (False, True):
        if is_consolidated:
            omnizarr.consolidate_metadata(place)
        for _ in range(ROUNDS):
            shared = omnizarr.open_group(place, mode="r")
            assert together(lambda number, root=shared: root[f"a{number}"].shape) == [(n,) for n in range(THREADS)]


@pytest.mark.parametrize("kind", ["array", "group"])
def test_thread_sees_the_attribute_that_it_has_set_through_a_shared_node(place, kind):
    root = omnizarr.create_group(place)
    node = root if kind == "group" else root.create_array("a", shape=(4,), dtype="i4")

    def task(number):
        for value in range(ROUNDS):
            node.attrs[f"of thread {number}"] = value
            assert node.attrs[f"of thread {number}"] == value
            assert node.attrs.setdefault(f"{number} {value}", value) == value
            if number == 0:
                node.refresh()
        return True

    assert all(together(task))
    assert node.attrs.asdict() == omnizarr.open(place, path=node.path, mode="r").attrs.asdict()
    assert len(node.attrs) == THREADS + THREADS * ROUNDS


def test_thread_reads_what_it_has_appended_through_a_shared_array(place):
    array = omnizarr.create_array(place, shape=(0, 3), chunks=(5, 2), dtype="i4")

    def task(number):
        for value in range(ROUNDS):
            block = np.full((2, 3), number * ROUNDS + value, "i4")
            grown = array.append(block)
            np.testing.assert_array_equal(array[grown.region], block)
        return True

    assert all(together(task))
    assert array.shape == omnizarr.open_array(place, mode="r").shape == (2 * THREADS * ROUNDS, 3)
    assert sorted(array[::2, 0].tolist()) == list(range(THREADS * ROUNDS))


def test_members_are_listed_while_others_are_made(place):
    root = omnizarr.create_group(place)

    def task(number):
        found = 0
        for value in range(ROUNDS // 4):
            root.create_array(f"a{number}/b{value}", shape=(2,), dtype="i4")
            found = sum(1 for name, _ in root.members(max_depth=None) if name.startswith(f"a{number}/"))
            assert found == value + 1
        return found

    assert together(task) == [ROUNDS // 4] * THREADS


def in_the_midst_of(monkeypatch, module, function, work):
    """Let another thread do some work when this function of a module has returned for the first time."""
    real, threads = getattr(module, function), [threading.Thread(target=work)]

    def interrupted(*args, **kwargs):
        result = real(*args, **kwargs)
        if threads:
            thread = threads.pop()
            thread.start()
            thread.join()
        return result

    monkeypatch.setattr(module, function, interrupted)


@pytest.mark.parametrize("kind", ["array", "group"])
def test_older_attributes_do_not_replace_those_that_another_thread_set_meanwhile(monkeypatch, place, kind):
    root = omnizarr.create_group(place)
    node = root if kind == "group" else root.create_array("a", shape=(4,), dtype="i4")
    in_the_midst_of(monkeypatch, hierarchy, "update", lambda: node.attrs.update(second=2))
    node.attrs["first"] = 1
    assert dict(node.attrs) == {"first": 1, "second": 2}


def test_older_shape_does_not_replace_that_which_another_thread_made_meanwhile(monkeypatch, place):
    array = omnizarr.create_array(place, shape=(0,), dtype="i4")
    in_the_midst_of(monkeypatch, resizing, "append", lambda: array.append([3, 4, 5]))
    assert array.append([1, 2]).region == (slice(0, 2),)
    assert array.shape == (5,)
    assert array[...].tolist() == [1, 2, 3, 4, 5]


def test_older_metadata_of_a_refresh_do_not_replace_those_that_another_thread_made_meanwhile(monkeypatch, place):
    array = omnizarr.create_array(place, shape=(2,), dtype="i4")
    in_the_midst_of(monkeypatch, detection, "open_array", lambda: array.resize(7))
    array.refresh()
    assert array.shape == (7,)


# -- elements -------------------------------------------------------------------------------

LAYOUTS = {
    "chunks": {"chunks": (7, 5)},
    "shards": {"chunks": (7, 5), "shards": (14, 10)},
    "v2": {"chunks": (7, 5), "zarr_format": 2},
}


@pytest.mark.parametrize("which", ["native", "reference"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_threads_open_write_and_read_their_own_columns(place, layout, which):
    if which == "native" and engine.native.engines.module() is None:
        pytest.skip("the native engine is not built")
    cache = omnizarr.ChunkCache(100_000)
    shape = (20, 3 * THREADS)  # no column of a thread begins or ends where a chunk does
    omnizarr.create_array(place, shape=shape, dtype="i4", fill_value=-1, **LAYOUTS[layout])
    shared = omnizarr.open_array(place, mode="r+", config={"engine": which, "chunk_cache": cache})

    def task(number):
        mine = (slice(None), slice(3 * number, 3 * number + 3))
        for value in range(max(1, ROUNDS // 10)):
            array = omnizarr.open_array(place, mode="r+", config={"engine": which}) if value % 2 else shared
            array[mine] = number + THREADS * value
            parts = omnizarr.read_many([(array, mine), (shared, mine), (shared, (3, mine[1])), (array, (..., mine[1]))])
            assert all((part == number + THREADS * value).all() for part in parts)
        return value

    (last,) = set(together(task))
    expected = np.repeat(np.arange(THREADS) + THREADS * last, 3)
    np.testing.assert_array_equal(shared[...], np.broadcast_to(expected, shape))
    assert shared.engine == which
