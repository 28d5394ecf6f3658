"""Writers of disjoint regions never lose each other's elements, whatever the chunking."""

import os
import time

import numpy as np
import pytest
import zarr

import omnizarr
from tests.concurrency import scenarios
from tests.repeats import runs

pytestmark = pytest.mark.slow

# 200 runs each where time does not matter (`RUNS=200`); a few everywhere else.
RUNS = runs(10)
LAYOUTS = {
    "chunks": {"zarr_format": 3},
    "v2": {"zarr_format": 2},
    "shards": {"zarr_format": 3, "shards": scenarios.SHARDS},
}


def open_to_write(path):
    return omnizarr.open_array(path, mode="r+")


def create(store, layout):
    return omnizarr.create_array(
        store, shape=scenarios.SHAPE, chunks=scenarios.CHUNKS, dtype="int32", fill_value=0, **LAYOUTS[layout]
    )


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return request.param


@pytest.fixture(params=["memory", "local"])
def make_store(request, tmp_path):
    def make(run):
        return omnizarr.storage.MemoryStore() if request.param == "memory" else f"{tmp_path}/{run}.zarr"

    return make


def test_eight_threads_through_one_array_lose_nothing(layout, make_store):
    for run in range(RUNS):
        array = create(make_store(run), layout)
        scenarios.in_threads([array] * 8, seed=run)
        np.testing.assert_array_equal(array[...], scenarios.values())


def test_eight_threads_through_eight_arrays_lose_nothing(layout, make_store):
    for run in range(RUNS):
        store = make_store(run)
        array = create(store, layout)
        scenarios.in_threads([open_to_write(store) for _ in range(8)], seed=run)
        np.testing.assert_array_equal(array[...], scenarios.values())


@pytest.fixture(scope="module")
def processes():
    writers = scenarios.Processes(open_to_write)
    yield writers
    writers.close()


def test_four_processes_lose_nothing(layout, processes, tmp_path):
    for run in range(RUNS):
        path = f"{tmp_path}/{run}.zarr"
        array = create(path, layout)
        processes.run(path, seed=run)
        np.testing.assert_array_equal(array[...], scenarios.values())


def test_no_lock_or_temporary_file_is_left_behind(layout, tmp_path):
    array = create(tmp_path / "a.zarr", layout)
    scenarios.in_threads([array] * 8, seed=0)
    keys = {"zarr.json", ".zarray", ".zattrs"}
    for _, _, files in os.walk(tmp_path):
        assert all(name in keys or name.replace(".", "").isdigit() for name in files), files


def test_the_scenario_can_fail(tmp_path):
    """zarr-python 3 loses elements in it (zarr-python#3682), so that a run without loss means something."""
    lost = 0
    deadline = time.monotonic() + 60
    for run in range(20):
        array = zarr.create_array(
            tmp_path / f"{run}.zarr", shape=scenarios.SHAPE, chunks=scenarios.CHUNKS, shards=scenarios.SHARDS,
            dtype="int32", fill_value=0,
        )  # fmt: skip
        scenarios.in_threads([array] * 8, seed=run)
        lost += int((array[...] != scenarios.values()).sum())
        if lost or time.monotonic() > deadline:
            break
    assert lost
