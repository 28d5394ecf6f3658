"""After a fork, reading and writing go on: in the parent and in the child, whatever other threads were doing.

Parents are processes of their own, so that those that hang can be ended, and no thread of the tests is forked.
"""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest

import omnizarr
from tests.engine.both import RUNS, needs_native, needs_posix, opened

pytestmark = [needs_native, needs_posix]

PRELUDE = """
import multiprocessing, os, signal, sys, threading, time, warnings
import numpy as np
import omnizarr

omnizarr.config.set({"engine": "native"})
warnings.simplefilter("ignore", DeprecationWarning)  # of Python, to fork with threads: that is what is tested
path, runs = sys.argv[1], int(sys.argv[2])
signal.alarm(90)  # ends whatever hangs

def open_to_write():
    array = omnizarr.open_array(path, mode="r+")
    assert array.engine == "native"
    return array

def forked(task):
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            task()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    return child

def join(children):
    assert not any([os.waitpid(child, 0)[1] for child in children])

def expected(shape):
    return np.arange(shape[0] * shape[1], dtype="i4").reshape(shape)
"""


@pytest.fixture(params=["chunks", "shards"])
def path(request, tmp_path):
    shards = {"shards": (64, 64)} if request.param == "shards" else {}
    values = np.arange(512 * 512, dtype="i4").reshape(512, 512)
    omnizarr.create_array(tmp_path / "a.zarr", data=values, chunks=(32, 32), **shards)
    return tmp_path / "a.zarr"


def run(script, path, runs=RUNS):
    """Run a parent that forks."""
    command = [sys.executable, "-c", PRELUDE + dedent(script), str(path), str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_workers_read_after_the_parent_has_read_with_several_threads(path):
    # With RUNS=100: a thousand reads each.
    run(
        """
        array = open_to_write()
        wanted = expected(array.shape)
        np.testing.assert_array_equal(array.get_basic_selection(..., concurrency=4), wanted)

        def work(seed):
            rng = np.random.default_rng(seed)
            for _ in range(10 * runs):
                top, left = rng.integers(0, 500, 2)
                part = slice(top, top + 40), slice(left, left + 40)
                assert (array[part] == wanted[part]).all()
            assert (array.get_basic_selection(..., concurrency=4) == wanted).all()

        join([forked(lambda seed=seed: work(seed)) for seed in range(8)])
        """,
        path,
    )


def test_workers_write_after_the_parent_has_written_with_several_threads(path):
    run(
        """
        array = open_to_write()
        array.set_basic_selection(..., 0, concurrency=4)

        def work(number):
            for row in range(number, 64, 8):  # eight writers in every chunk
                array[row] = expected(array.shape)[row]

        join([forked(lambda number=number: work(number)) for number in range(8)])
        np.testing.assert_array_equal(array[:64], expected(array.shape)[:64])
        """,
        path,
    )
    assert not list(path.rglob(".omnizarr-*"))


def test_a_fork_while_threads_read_and_write_does_no_harm(path):
    run(
        """
        array, cached = open_to_write(), omnizarr.open_array(path, mode="r", config={"chunk_cache": 2**20})
        wanted = expected(array.shape)
        stop = threading.Event()

        def read():
            while not stop.is_set():
                assert (array.get_basic_selection(..., concurrency=2) == wanted).all()
                assert (cached[:70, :70] == wanted[:70, :70]).all()

        def write():
            while not stop.is_set():
                array[256:300, 3:40] = wanted[256:300, 3:40]

        def work():
            assert (array[100:200] == wanted[100:200]).all()
            assert (cached[:70, :70] == wanted[:70, :70]).all()
            array[256:290, 5:70] = wanted[256:290, 5:70]
            assert (array.get_basic_selection(..., concurrency=4) == wanted).all()

        threads = [threading.Thread(target=task) for task in (read, read, write)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2 * runs):
                join([forked(work), forked(work)])
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert (array[...] == wanted).all()
        """,
        path,
    )
    assert not list(path.rglob(".omnizarr-*"))


def test_a_fork_at_the_very_first_use_does_no_harm(path):
    # What threads make when they first need it is made already, or not begun: a child must not wait for them.
    for _ in range(max(2, RUNS // 3)):
        run(
            """
            array = open_to_write()
            wanted = expected(array.shape)
            go = threading.Event()

            def wait_and_work():
                go.wait()
                work()

            def work():  # a child cannot wait as well: Python's own lock of an event may be held
                assert (array[3:9, ::-1] == wanted[3:9, ::-1]).all()
                assert (array.vindex[[1, 100], [3, 4]] == wanted[[1, 100], [3, 4]]).all()
                array[3:9, 1:4] = wanted[3:9, 1:4]

            threads = [threading.Thread(target=wait_and_work) for _ in range(8)]
            for thread in threads:
                thread.start()
            sys.setswitchinterval(1e-5)
            go.set()
            children = []
            for _ in range(12):
                time.sleep(0)
                children.append(forked(work))
            join(children)
            for thread in threads:
                thread.join()
            """,
            path,
        )


def test_a_pool_of_forked_processes_reads_and_writes(path):
    run(
        """
        array = open_to_write()
        wanted = expected(array.shape)
        array[...]

        def work(row):  # of the inherited array, and of one that came as a message
            array[row] = wanted[row] + 1
            return int(array[row].sum())

        def read(args):
            mine, row = args
            return int(mine[row].sum())

        context = multiprocessing.get_context("fork")
        with context.Pool(4) as pool:
            rows = range(0, 512, 9)
            sums = [int((wanted[row] + 1).sum()) for row in rows]
            assert pool.map_async(work, rows, 3).get(60) == sums
            assert pool.map_async(read, [(array, row) for row in rows], 3).get(60) == sums
        """,
        path,
    )


def test_a_child_keeps_no_lock_of_a_parent_that_is_killed(path):
    # The parent is killed in the midst of writing; its child lives on, and holds nothing.
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            PRELUDE
            + dedent(
                """
                array = open_to_write()

                def write(number):
                    while True:
                        array[1 + number : 31 - number, 1:-1] = -1

                for number in range(4):
                    threading.Thread(target=write, args=(number,), daemon=True).start()
                time.sleep(0.3)
                children = [forked(lambda: time.sleep(30)) for _ in range(5)]
                print(*children, flush=True)
                time.sleep(60)
                """
            ),
            str(path),
            "1",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    children = [int(child) for child in parent.stdout.readline().split()]
    try:
        assert len(children) == 5
        parent.kill()
        parent.wait(10)
        writer = [sys.executable, "-c", PRELUDE + "open_to_write()[0:40] = 7", str(path), "1"]
        done = subprocess.run(writer, capture_output=True, text=True, timeout=20, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    finally:
        parent.kill()
        parent.stdout.close()
        for child in children:
            subprocess.run(["kill", "-9", str(child)], check=False)
    assert (opened(path, "native")[0:40] == 7).all()
