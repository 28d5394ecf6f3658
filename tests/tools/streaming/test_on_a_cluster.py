"""diff, digest, stat and check on the workers of a dask.distributed cluster: the same answers as here."""

import os

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import ChunkError, SchedulerError
from omnizarr.stores import LocalStore, WrapperStore
from tests.clusters import cluster

pytestmark = pytest.mark.slow

VALUES = np.random.default_rng(5).normal(size=(300, 200))


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


@pytest.fixture
def place(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr")
    root.create_array("x", data=VALUES, chunks=(10, 200))
    root.create_array("shards", data=VALUES, chunks=(10, 10), shards=(100, 100))
    omnizarr.rechunk(root, tmp_path / "b.zarr", chunks=(70, 30))
    return tmp_path


class Noted(WrapperStore):
    """A directory that notes in files which processes read chunks."""

    def __init__(self, store, log):
        super().__init__(store)
        self.log = log

    def get(self, key, span=None):
        if "/c/" in key:
            (self.log / str(os.getpid())).touch()
        return super().get(key, span)

    def __reduce__(self):
        return Noted, (self.store, self.log)


def readers(log):
    return {int(path.name) for path in log.iterdir()}


class Bar:
    def __call__(self, total, **_):
        self.total, self.done = total, 0
        return self

    def update(self, n):
        self.done += n

    def close(self):
        pass


def test_workers_alone_read_and_answers_are_the_same(client, place, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    noted = Noted(LocalStore(place / "a.zarr"), log)
    assert omnizarr.digest(noted, scheduler=client, max_memory=2 * 10**5) == omnizarr.digest(place / "b.zarr")
    here, there = omnizarr.stat(place / "a.zarr"), omnizarr.stat(noted, scheduler=client, max_memory=2 * 10**5)
    assert [(each.path, each.minimum, each.count) for each in there] == [
        (each.path, each.minimum, each.count) for each in here
    ]
    assert there["x"].mean == pytest.approx(VALUES.mean(), rel=1e-12)
    assert there["x"].std == pytest.approx(VALUES.std(), rel=1e-12)
    assert omnizarr.check(noted, data=True, scheduler=client).ok
    assert os.getpid() not in readers(log)
    assert readers(log)


def test_diff(client, place):
    omnizarr.open_array(place / "b.zarr/x", mode="r+")[111, 7] = 100
    bar = Bar()
    found = omnizarr.diff(place / "a.zarr", place / "b.zarr", scheduler=client, max_memory=10**6, progress=bar)
    (difference,) = found
    assert (difference.path, difference.values.count, difference.values.first) == ("x", 1, (111, 7))
    assert bar.done == bar.total == 2 * VALUES.nbytes
    same = omnizarr.diff(place / "a.zarr", place / "a.zarr", scheduler=client.scheduler.address)
    assert same.equal


def test_broken_chunks_are_found(client, place):
    (place / "a.zarr" / "x" / "c" / "7" / "0").write_bytes(b"broken")
    here = omnizarr.check(place / "a.zarr", data=True)
    there = omnizarr.check(place / "a.zarr", data=True, scheduler=client)
    assert [str(finding) for finding in there] == [str(finding) for finding in here]
    assert not there.ok
    with pytest.raises(ChunkError, match="x/c/7/0"):
        omnizarr.digest(place / "a.zarr", scheduler=client)


@pytest.mark.parametrize("verb", [omnizarr.stat, omnizarr.digest, lambda *a, **k: omnizarr.check(*a, data=True, **k)])
def test_memory_of_this_process_is_refused(client, verb):
    store = {}
    omnizarr.create_array(store, data=VALUES)
    with pytest.raises(SchedulerError, match="memory of this process"):
        verb(store, scheduler=client)
