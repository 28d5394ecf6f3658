"""Ctrl-C ends native reads and writes soon, and leaves nothing; a writer that is killed leaves whole chunks."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from textwrap import dedent

import numpy as np
import pytest

import omnizarr
from tests.engine.both import RUNS, needs_native, needs_posix, opened

pytestmark = [needs_native, needs_posix]

PRELUDE = """
import signal, sys, time
import numpy as np
import omnizarr

omnizarr.config.set({"engine": "native"})
signal.alarm(100)
array = omnizarr.open_array(sys.argv[1], mode="r+")
assert array.engine == "native"
"""

# Seconds. Where nothing else runs it takes some 50 ms.
PATIENCE = 3
SHAPE, CHUNKS = (64, 131_072), (1, 65_536)
SLOW = {"name": "zstd", "configuration": {"level": 19, "checksum": False}}


def some_numbers():
    """Return numbers, none of them 0, that take a while to compress."""
    return np.random.default_rng(0).integers(1, 1000, SHAPE).astype("i4")


def interrupted(script, path, pause=0.4):
    """Run a script, interrupt what it does after it has said that it begins; return its last line."""
    script = dedent(script)
    child = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "begin\n"
        time.sleep(pause)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        line = child.stdout.readline()
        took = time.monotonic() - began
        rest, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert (line, rest, errors, child.returncode) == ("interrupted\n", "", "", 0)
    assert took < PATIENCE
    assert not list(path.rglob(".omnizarr-*"))


@pytest.mark.parametrize("concurrency", [1, 2])
def test_reading_ends_soon(tmp_path, concurrency):
    # Very many chunks, none of which is stored.
    array = omnizarr.create_array(tmp_path / "a.zarr", shape=(60_000_000,), chunks=(1,), dtype="u1", fill_value=3)
    array[59_999_990:] = 7
    interrupted(
        f"""
        print("begin", flush=True)
        try:
            array.get_basic_selection(..., concurrency={concurrency})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert array[59_999_980:].tolist() == [3] * 10 + [7] * 10
        """,
        tmp_path / "a.zarr",
    )


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("what", ["whole chunks", "parts of chunks", "shards"])
def test_writing_ends_soon_and_leaves_whole_chunks(tmp_path, what, concurrency):
    path = tmp_path / "a.zarr"
    shards = (1, 131_072) if what == "shards" else None
    chunks = (1, 16_384) if what == "shards" else CHUNKS
    omnizarr.create_array(path, shape=SHAPE, chunks=chunks, shards=shards, dtype="i4", fill_value=0, compressors=[SLOW])
    columns = slice(1, -1) if what == "parts of chunks" else slice(None)
    interrupted(
        f"""
        values = np.random.default_rng(0).integers(1, 1000, {SHAPE}).astype("i4")
        columns = {columns}
        print("begin", flush=True)
        try:
            array.set_basic_selection((slice(None), columns), values[:, columns], concurrency={concurrency})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        array[0, :10] = values[0, :10]
        assert (array[0, :10] == values[0, :10]).all()
        """,
        path,
    )
    found, wanted = opened(path, "native")[...], np.zeros(SHAPE, "i4")
    wanted[:, columns] = some_numbers()[:, columns]
    wanted[0, :10] = found[0, :10]
    written = 0
    for row in range(SHAPE[0]):
        for left in range(0, SHAPE[1], CHUNKS[1]):
            part = row, slice(left, left + CHUNKS[1])
            is_old = not found[part][10:].any()
            assert is_old or (found[part] == wanted[part]).all()
            written += not is_old
    assert written < 2 * SHAPE[0], "it was to be interrupted before its end"


def test_waiting_for_a_lock_ends_soon(tmp_path):
    path = tmp_path / "a.zarr"
    array = omnizarr.create_array(path, shape=(8,), chunks=(4,), dtype="i4", fill_value=0)
    array[...] = 1
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            PRELUDE + 'with array.store.lock("c/0"): print("held", flush=True); sys.stdin.read()',
            path,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        child = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + 'print("begin", flush=True)\narray[1:3] = 5', path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "begin\n"
        time.sleep(0.3)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        assert time.monotonic() - began < PATIENCE
        assert "KeyboardInterrupt" in errors
    finally:
        holder.communicate("", timeout=60)
    assert opened(path, "native")[...].tolist() == [1] * 8
    assert not list(path.rglob(".omnizarr-*"))


# Writes the numbers 1, 2, 3, ... over the whole array, whole chunks and parts of chunks by turns, for ever.
WRITER = """
number = int(sys.argv[2])
print("begin", flush=True)
while True:
    number += 1
    array.set_basic_selection(..., number, concurrency=2)
    number += 1
    array.set_basic_selection((slice(1, -1), slice(1, -1)), number, concurrency=2)
"""


@pytest.mark.parametrize("shards", [None, (128, 128)], ids=["chunks", "shards"])
def test_a_killed_writer_leaves_each_chunk_wholly_old_or_wholly_new(tmp_path, shards):
    rng = random.Random(7)
    path = tmp_path / "a.zarr"
    array = opened(
        omnizarr.create_array(path, shape=(512, 512), chunks=(64, 64), shards=shards, dtype="i8", fill_value=0).store,
        "native",
    )
    array[...] = -1
    side = (shards or (64,))[0]
    for kill in range(max(3, RUNS // 2)):
        writer = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + WRITER, str(path), str(kill * 1_000_000)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "begin\n"
        time.sleep(rng.uniform(0, 0.06))
        writer.kill()
        writer.wait(10)
        writer.stdout.close()
        found = opened(path, "native", mode="r")[...]
        assert np.array_equal(found, opened(path, "reference", mode="r")[...])
        for top in range(0, 512, side):
            for left in range(0, 512, side):
                # One write puts one number into the inside of a chunk, and one into what the other leaves of its rim.
                inside = found[top : top + side, left : left + side][1:-1, 1:-1]
                assert (inside == inside[0, 0]).all()
        began = time.monotonic()
        array[1:-1, 1:-1] = -kill
        assert time.monotonic() - began < 60, "the next writer is not held up by what the dead one held"
        assert (array[1:-1, 1:-1] == -kill).all()
