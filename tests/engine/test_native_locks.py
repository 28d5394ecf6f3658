"""Writers of both engines keep each other out, and readers see whole values, with both engines."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import omnizarr
from omnizarr.engine import reference
from omnizarr.stores import LocalStore, MemoryStore
from tests.concurrency import scenarios
from tests.engine.both import ENGINES, RUNS, needs_native, opened

pytestmark = needs_native
LAYOUTS = {"chunks": {}, "shards": {"shards": scenarios.SHARDS}}


@pytest.fixture(params=["memory", "local"])
def make_store(request, tmp_path):
    return lambda name="a": MemoryStore() if request.param == "memory" else LocalStore(tmp_path / f"{name}.zarr")


def create(store, layout):
    return omnizarr.create_array(
        store, shape=scenarios.SHAPE, chunks=scenarios.CHUNKS, dtype="int32", fill_value=0, **LAYOUTS[layout]
    )


def open_by_number(path):
    """Open with another engine in every other process."""
    return opened(path, ENGINES[int(multiprocessing.current_process().name.rpartition("-")[2]) % 2])


@pytest.fixture(scope="module")
def processes():
    writers = scenarios.Processes(open_by_number)
    yield writers
    writers.close()


# -- nothing is lost ---------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("engines", [("native",), ENGINES], ids=["native", "both"])
def test_threads_lose_nothing(layout, engines, make_store):
    for run in range(RUNS):
        store = make_store(run)
        create(store, layout)
        scenarios.in_threads([opened(store, engines[number % len(engines)]) for number in range(8)], seed=run)
        np.testing.assert_array_equal(opened(store, "reference")[...], scenarios.values())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_threads_of_one_array_lose_nothing(layout, make_store):
    for run in range(RUNS):
        store = make_store(run)
        create(store, layout)
        scenarios.in_threads([opened(store, "native")] * 8, seed=run)
        np.testing.assert_array_equal(opened(store, "reference")[...], scenarios.values())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_processes_with_different_engines_lose_nothing(layout, processes, tmp_path):
    for run in range(RUNS):
        path = f"{tmp_path}/{run}.zarr"
        create(path, layout)
        processes.run(path, seed=run)
        np.testing.assert_array_equal(opened(path, "native")[...], scenarios.values())
    assert not list(tmp_path.rglob(".omnizarr-*"))


# -- they wait for each other ------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_is_not_written_while_another_thread_holds_the_lock(engine, make_store):
    store = make_store()
    create(store, "chunks")[...] = 1
    array = opened(store, engine)
    writer = threading.Thread(target=array.set_basic_selection, args=(0, 5))
    with store.lock("c/0/0"):
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        assert (array[0] == 1).any()
        store.set("c/0/0", store.get("c/1/0"))  # what the holder writes is not lost
    writer.join(30)
    assert not writer.is_alive()
    assert (array[0] == 5).all()
    assert (array[1] == 1).all()


def test_a_part_is_not_written_while_another_process_holds_the_lock(tmp_path):
    create(tmp_path, "chunks")[...] = 1
    script = "import omnizarr, sys\nwith omnizarr.open_array(sys.argv[1], mode='r+').store.lock('c/0/0'):\n"
    script += "    print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        array = opened(tmp_path, "native")
        writer = threading.Thread(target=array.set_basic_selection, args=(0, 5))
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        holder.communicate("", timeout=30)
        writer.join(30)
        assert not writer.is_alive()
    assert (array[0] == 5).all()
    assert not list(tmp_path.rglob(".omnizarr-*"))


def is_held(lock_file):
    """Return whether the lock is held: the file is there a moment before."""
    fcntl = pytest.importorskip("fcntl")
    with suppress(FileNotFoundError), lock_file.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_lock_is_waited_for_while_a_part_is_written(tmp_path):
    # Compressing takes long enough to come in between.
    slow = {"name": "zstd", "configuration": {"level": 19, "checksum": False}}
    values = np.random.default_rng(0).integers(0, 1000, 400_000).astype("i4")
    omnizarr.create_array(tmp_path, data=values, chunks=400_000, compressors=[slow])
    array = opened(tmp_path, "native")
    lock_file = tmp_path / "c/.omnizarr-0.lock"
    writer = threading.Thread(target=array.set_basic_selection, args=(slice(1, 300), -1))
    writer.start()
    while writer.is_alive() and not is_held(lock_file):
        time.sleep(0.001)
    assert lock_file.exists()
    with array.store.lock("c/0"):
        assert (array[1:300] == -1).all()
    writer.join(30)
    assert not lock_file.exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_who_holds_the_lock_may_write_a_part(engine, make_store):
    store = make_store()
    create(store, "chunks")[...] = 1
    array = opened(store, engine)

    def write():
        with store.lock("c/0/0"):
            array[0, :3] = 5

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(20)
    assert not writer.is_alive()
    assert array[0, :5].tolist() == [5, 5, 5, 1, 1]


# -- values are whole --------------------------------------------------------------


@pytest.mark.parametrize("compressors", [None, "auto"], ids=["raw", "zstd"])
@pytest.mark.parametrize(("writes", "reads"), [("native", "reference"), ("reference", "native"), ("native", "native")])
def test_readers_see_whole_chunks_while_others_write(writes, reads, compressors, make_store):
    # Several sizes, of which some are written and read in several steps.
    store = make_store()
    omnizarr.create_array(store, shape=(400_000,), chunks=(100_000,), dtype="i8", fill_value=0, compressors=compressors)
    writer, reader = opened(store, writes), opened(store, reads, mode="r", missing="error")
    writer[...] = 1
    stop = time.monotonic() + 0.05 * RUNS
    torn, seen = [], set()

    def read():
        while time.monotonic() < stop and not torn:
            found = reader[...].reshape(4, 100_000)
            part = reader[99_990:100_010].reshape(2, 10)
            seen.update(found[:, 0].tolist())
            if (found != found[:, :1]).any() or (part != part[:, :1]).any():
                torn.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    number = 1
    while any(thread.is_alive() for thread in readers):
        number += 1
        writer[...] = number
    for thread in readers:
        thread.join()
    assert not torn
    assert len(seen) > 1


def test_who_appends_holds_the_lock_of_the_document_and_writes_chunks_natively(tmp_path, monkeypatch):
    with omnizarr.config.set({"engine": "native"}):
        array = omnizarr.create_array(tmp_path / "a", shape=(0,), chunks=(4,), dtype="i4")
    monkeypatch.setattr(reference, "write", None)
    array.append(np.arange(10))
    assert array[...].tolist() == list(range(10))
