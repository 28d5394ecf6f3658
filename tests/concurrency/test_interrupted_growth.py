"""Arrays that become longer or shorter: who is killed at any system call, or finds the disk full, leaves no mixture.

By default a child is killed at a few of its system calls; `RUNS=1000` goes through all of them.
"""

import itertools
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.nodes import resizing
from tests.concurrency import victim
from tests.engine.both import ENGINES, needs_native
from tests.repeats import runs

pytestmark = pytest.mark.slow

KILLS = runs(6)
OLD = np.arange(20, dtype="i4").reshape(5, 4) + 100
FILL = -1
FORMATS = {"v2": {"zarr_format": 2}, "v3": {}, "shards": {"shards": (4, 4)}}
STORES = {**FORMATS, "sqlite": {"suffix": "sqlite"}}
AFTER = {
    "append": np.concatenate([OLD, np.full((6, 4), 2)]),
    "shrink": OLD[:3, :3],
    "grow": np.pad(OLD, ((0, 4), (0, 5)), constant_values=FILL),
}


@pytest.fixture(scope="module", params=[pytest.param(e, marks=needs_native) if e == "native" else e for e in ENGINES])
def victims(request):
    if not victim.can_trace():
        pytest.skip("no strace, or it may not trace")
    with victim.Victims(request.param) as victims:
        yield victims


def builder(folder, *, littered=True, suffix="zarr", **layout):
    """Return what makes a new array, with values beyond its edge as another writer has left them."""
    number = itertools.count()

    def build():
        path = str(folder / f"{next(number)}.{suffix}")
        array = omnizarr.create_array(path, shape=OLD.shape, chunks=(2, 2), dtype="i4", fill_value=FILL, **layout)
        if littered:
            longer = resizing.with_shape(array.metadata, (12, 12))
            omnizarr.Array(array.store_path, longer, array.config)[...] = 999
        array[...] = OLD
        return path

    return build


def check(path, states):
    """Fail unless an array is in one of these states, and stays so as far as it reaches when it becomes longer."""
    check_array(omnizarr.open_array(path, mode="r+"), states)


def check_array(array, states):
    state = array[...]
    assert any(np.array_equal(state, each) for each in states), state.tolist()
    array.resize(12, 12)
    expected = np.full((12, 12), FILL)
    expected[: state.shape[0], : state.shape[1]] = state
    np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize("layout", STORES)
@pytest.mark.parametrize("change", AFTER)
def test_who_is_killed_leaves_the_old_state_or_the_new(tmp_path, victims, change, layout):
    seen = 0
    for path in victims.attempts(change, builder(tmp_path, **STORES[layout]), KILLS):
        check(path, [OLD, AFTER[change]])
        seen += 1
    assert seen >= 6


def settled(url, options):
    """Wait until an array stays the same: a server goes on with what a client sent before it was killed."""
    before = None
    for _ in range(50):
        now = omnizarr.open_array(url, mode="r", storage_options=options)[...]
        if before is not None and np.array_equal(now, before):
            return
        before = now
        time.sleep(0.1)


@pytest.mark.parametrize("change", AFTER)
def test_who_is_killed_between_requests_to_s3_leaves_the_old_state_or_the_new(s3_server, change):
    if not victim.can_trace():
        pytest.skip("no strace, or it may not trace")
    place = s3_server.fresh()
    number = itertools.count()

    def build():
        url = f"{place.url}/{next(number)}.zarr"
        array = omnizarr.create_array(url, data=OLD, chunks=(2, 2), fill_value=FILL, storage_options=place.options)
        longer = resizing.with_shape(array.metadata, (12, 12))
        omnizarr.Array(array.store_path, longer, array.config)[6:] = 999
        return url

    seen = 0
    with victim.Victims("reference", place.options) as victims:
        for url in victims.attempts(change, build, KILLS, victim.REMOTE_CALLS):
            settled(url, place.options)
            array = omnizarr.open_array(url, mode="r+", storage_options=place.options)
            states = [OLD, AFTER[change]]
            if change == "append":  # the place is claimed first: chunks that were not written hold the fill value
                state = array[...]
                claimed = AFTER[change].copy()
                claimed[len(OLD) :] = np.where(state[len(OLD) :] == 2, 2, FILL) if len(state) > len(OLD) else FILL
                states.append(claimed)
            check_array(array, states)
            seen += 1
    assert seen >= 6


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if mount is None or subprocess.run([mount, *options], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("engine", [pytest.param(e, marks=needs_native) if e == "native" else e for e in ENGINES])
@pytest.mark.parametrize("layout", FORMATS)
def test_who_finds_the_disk_full_leaves_the_old_state_or_the_new_and_nothing_else(small_disk, engine, layout):
    failures = 0
    with omnizarr.config.set({"engine": engine}):
        for change, pages in itertools.product(AFTER, range(0, 16, 3)):
            path = builder(small_disk, littered=False, **FORMATS[layout])()
            before = files(path)
            fill_up(small_disk, pages)
            error = error_of(change, path)
            if error is not None:
                failures += 1
                assert "No space" in str(error)
                # All that can be removed is; to clear a chunk that the edge cuts needs room.
                assert change != "append" or files(path) == before
            (small_disk / "filler").unlink()
            check(path, [OLD, AFTER[change]])
            shutil.rmtree(path)
    assert failures >= 3


def error_of(change, path):
    try:
        victim.CHANGES[change](path)
    except errors.StoreError as error:
        return error
    return None


def fill_up(folder, pages):
    """Leave room for so many pages."""
    room = os.statvfs(folder)
    with (folder / "filler").open("wb") as filler:
        filler.write(bytes(max(room.f_bavail - pages, 0) * room.f_frsize))


def files(path):
    return sorted(str(found) for found in Path(path).rglob("*") if found.is_file())
