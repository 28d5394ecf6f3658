"""What netCDF-C may not: many threads, and processes, with one dataset, of which one dimension grows.

With RUNS=100: as often as was promised.
"""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from omnizarr.netcdf import Dataset
from tests.repeats import runs

RUNS = runs(5)
WRITERS, STEPS, WIDTH = 8, 6, 5


def made(path):
    with Dataset(path, "w") as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("x", WIDTH)
        for number in range(WRITERS):
            dataset.createVariable(f"v{number}", "i4", ("time", "x"), chunksizes=(2, WIDTH))
    return path


def fill(dataset, number):
    """Write one variable step by step: the dimension grows with the thread that is ahead."""
    variable = dataset[f"v{number}"]
    for step in range(STEPS):
        variable[step] = 1000 * number + step


def check_complete(path):
    expected = np.repeat(np.arange(STEPS, dtype="i4")[:, None], WIDTH, axis=1)
    with Dataset(path) as dataset:
        assert (dataset.dimensions["time"].size, dataset.dimensions["time"].isunlimited()) == (STEPS, True)
        for number in range(WRITERS):
            np.testing.assert_array_equal(dataset[f"v{number}"][:], expected + 1000 * number)


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("run", range(RUNS))
def test_threads_lose_nothing_through_one_dataset(tmp_path, run, buffered):
    path = made(str(tmp_path / f"{run}.zarr"))
    with Dataset(path, "a", buffered=buffered) as dataset, ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(lambda number: fill(dataset, number), range(WRITERS)))
    check_complete(path)


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("run", range(RUNS))
def test_threads_lose_nothing_through_datasets_of_their_own(tmp_path, run, buffered):
    path = made(str(tmp_path / f"{run}.zarr"))
    start = threading.Barrier(WRITERS)

    def write(number):
        with Dataset(path, "a", buffered=buffered) as dataset:
            start.wait()
            fill(dataset, number)

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(write, range(WRITERS)))
    check_complete(path)


PROCESS = """
import sys
from omnizarr.netcdf import Dataset
path, first, last, steps, buffered = sys.argv[1], *map(int, sys.argv[2:])
with Dataset(path, "a", buffered=buffered) as dataset:
    print(flush=True)
    sys.stdin.readline()
    for step in range(steps):
        for number in range(first, last):
            dataset[f"v{number}"][step] = 1000 * number + step
"""


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("run", range(max(1, RUNS // 5)))
def test_processes_lose_nothing(tmp_path, run, buffered):
    path = made(str(tmp_path / f"{run}.zarr"))
    halves = [(0, WRITERS // 2), (WRITERS // 2, WRITERS)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, path, str(first), str(last), str(STEPS), str(int(buffered))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for first, last in halves
    ]
    for each in processes:
        each.stdout.readline()  # open: both may start
    for each in processes:
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in processes:
        each.communicate()
        assert not each.returncode
    check_complete(path)


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("run", range(RUNS))
def test_a_reader_never_sees_a_length_without_its_data(tmp_path, run, buffered):
    path = str(tmp_path / f"{run}.zarr")
    with Dataset(path, "w") as dataset:
        dataset.createDimension("time", None)
        dataset.createVariable("v", "i4", ("time",), chunksizes=(3,))
    seen, done = [], threading.Event()

    def watch():
        while not done.is_set():
            with Dataset(path) as dataset:
                values = dataset["v"][:]
                seen.append(bool(np.ma.count_masked(values)) or values.tolist() != list(range(len(values))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with Dataset(path, "a", buffered=buffered) as dataset:
            for step in range(0, 20, 2):
                dataset["v"][step : step + 2] = [step, step + 1]
    finally:
        done.set()
        watcher.join()
    assert seen
    assert not any(seen)


class Waits:
    """A variable as it was found, whose attributes take until another thread has gone on."""

    def __init__(self, found):
        self.found = found
        self.asked, self.changed = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self.found, name)

    @property
    def attributes(self):
        known = self.found.attributes
        self.asked.set()
        self.changed.wait(0.3)
        return known


def test_what_a_thread_looks_at_first_does_not_undo_what_another_one_changes():
    store = {}
    with Dataset(store, "w") as dataset:
        dataset.createVariable("v", "f4").units = "m"
    dataset = Dataset(store, "a")
    variable = dataset["v"]
    slow = Waits(variable._found)
    object.__setattr__(variable, "_found", slow)
    reader = threading.Thread(target=lambda: variable.units)
    reader.start()
    assert slow.asked.wait(10)
    variable.units = "km"
    slow.changed.set()
    reader.join()
    assert variable.units == "km"
