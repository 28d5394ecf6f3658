"""A writer that is killed leaves every key completely old or completely new, and blocks no other writer."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import omnizarr
from tests.repeats import runs

pytestmark = pytest.mark.slow

KILLS = runs(20)
SHAPE, CHUNKS = (64, 64), (16, 16)

# Writes the numbers 1, 2, 3, ... over the whole array, whole chunks and parts of chunks by turns, for ever.
WRITER = """
import sys, omnizarr
array = omnizarr.open_array(sys.argv[1], mode="r+")
number = int(sys.argv[2])
print("ready", flush=True)
while True:
    number += 1
    array[...] = number
    number += 1
    array[1:-1, 1:-1] = number
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
@pytest.mark.parametrize("layout", [{"zarr_format": 2}, {"zarr_format": 3, "shards": (32, 32)}], ids=["v2", "shards"])
def test_every_chunk_is_wholly_old_or_wholly_new(tmp_path, layout):
    rng = random.Random(5)
    path = tmp_path / "a.zarr"
    array = omnizarr.create_array(path, shape=SHAPE, chunks=CHUNKS, dtype="int64", fill_value=0, **layout)
    array[...] = -1
    side = layout.get("shards", CHUNKS)[0]
    for kill in range(KILLS // 2):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(kill * 1_000_000)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.03))
        writer.send_signal(signal.SIGKILL)
        writer.wait(10)
        writer.stdout.close()
        found = omnizarr.open_array(path, mode="r")[...]
        for top in range(0, SHAPE[0], side):
            for left in range(0, SHAPE[1], side):
                # One write puts one number into the inside of a chunk, and one into what the other leaves of its rim.
                inside = found[top : top + side, left : left + side][1:-1, 1:-1]
                assert (inside == inside[0, 0]).all()
        # The next writer is not held up by what the dead one held.
        began = time.monotonic()
        array[1:-1, 1:-1] = -kill
        assert time.monotonic() - began < 60
        np.testing.assert_array_equal(array[1:-1, 1:-1], -kill)


# Writes the numbers 1, 2, 3, ... over the whole array, row by row, and appends rows, through a writer.
GATHERING = """
import sys, numpy as np, omnizarr
array = omnizarr.open_array(sys.argv[1], mode="r+")
log = omnizarr.open_array(sys.argv[2], mode="r+")
number = int(sys.argv[3])
print("ready", flush=True)
with array.writer() as rows, log.writer() as appended:
    while True:
        number += 1
        for row in range(64):
            rows[row] = number
        rows.flush()
        for _ in range(20):
            appended.append(np.arange(len(appended), len(appended) + 1)[:, None] + np.zeros((1, 4), int))
        appended.flush()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
@pytest.mark.parametrize("layout", [{"zarr_format": 2}, {"zarr_format": 3, "shards": (32, 32)}], ids=["v2", "shards"])
def test_a_killed_array_writer_leaves_each_chunk_old_or_new_and_blocks_nobody(tmp_path, layout):
    rng = random.Random(6)
    path, log = tmp_path / "a.zarr", tmp_path / "log.zarr"
    array = omnizarr.create_array(path, shape=SHAPE, chunks=CHUNKS, dtype="int64", fill_value=0, **layout)
    omnizarr.create_array(log, shape=(0, 4), chunks=(8, 4), dtype="int64", fill_value=-1)
    side = layout.get("shards", CHUNKS)[0]
    for kill in range(KILLS // 2):
        command = [sys.executable, "-c", GATHERING, str(path), str(log), str(kill * 1_000_000)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        writer.wait(10)
        writer.stdout.close()
        found = omnizarr.open_array(path, mode="r")[...]
        for top in range(0, SHAPE[0], side):
            for left in range(0, SHAPE[1], side):
                chunk = found[top : top + side, left : left + side]
                assert (chunk == chunk[0, 0]).all()
        appended = omnizarr.open_array(log, mode="r")[...]
        np.testing.assert_array_equal(appended, np.arange(len(appended))[:, None] + np.zeros((1, 4)))
        assert len(appended) % 20 == 0
        began = time.monotonic()
        array[1:-1, 1:-1] = -kill
        assert time.monotonic() - began < 60
        array[...] = -kill
