"""Loaders with ``cache=``: what was fetched from a web server is found on a disk."""

import math
import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest

import omnizarr
from omnizarr.data import Loader, Samples, windows
from omnizarr.errors import SettingError, StoreError
from omnizarr.storage import CacheStore
from tests.stores.recording import recording

ROWS = 256
VALUES = np.random.default_rng(0).integers(0, 2**31, (ROWS, 1024), dtype="int32")
STORED = {
    "chunks": {"chunks": (4, 1024)},
    "shards": {"chunks": (4, 1024), "shards": (64, 1024)},
    "small-shards": {"chunks": (1, 1024), "shards": (4, 1024)},
}


class Web:
    """An array on a web server that counts requests."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder

    def put(self, values=VALUES, **options):
        omnizarr.create_array(self.folder / "a.zarr", data=values, overwrite=True, **options)
        self.server.values.clear()
        for path in (self.folder / "a.zarr").rglob("*"):
            if path.is_file():
                self.server.values[f"/{path.relative_to(self.folder)}"] = path.read_bytes()

    def open(self):
        return omnizarr.open_array(self.server.url("/a.zarr"), mode="r")

    def asked(self):
        """Return the requests for chunks since the last time."""
        return [path for _, path, _ in self.server.requests() if "/c/" in path]

    def sent(self):
        """Return the requests for chunks since the last time that were answered with bytes."""
        return [
            path
            for method, path, headers in self.server.requests()
            if "/c/" in path and method == "GET" and "if-none-match" not in headers
        ]


@pytest.fixture
def web(tmp_path):
    pytest.importorskip("obstore", reason="the extra cloud is not installed")
    with recording() as server:
        yield Web(server, tmp_path)


def epoch_of(loader, values=VALUES):
    """Load an epoch, and check its values."""
    seen = []
    for batch in loader:
        assert np.array_equal(batch["x"], values[batch["i"]])
        seen += batch["i"].tolist()
    assert sorted(seen) == list(range(len(values)))


def loader_of(array, cache, **options):
    return Loader({"x": array, "i": np.arange(len(array))}, 16, shuffle="full", memory=300_000, cache=cache, **options)


@pytest.mark.parametrize("stored", STORED)
def test_the_second_epoch_asks_for_no_chunk(web, tmp_path, stored):
    web.put(**STORED[stored])
    loader = loader_of(web.open(), tmp_path / "cache")
    epoch_of(loader)
    assert web.asked()
    first = loader.stats.cached, loader.stats.fetched
    assert first[1] > 0
    epoch_of(loader)
    assert not web.asked()
    assert loader.stats.fetched == first[1]
    assert loader.stats.cached > first[0]


@pytest.mark.parametrize("stored", STORED)
def test_the_next_program_fetches_nothing_that_is_the_same(web, tmp_path, stored):
    web.put(**STORED[stored])
    epoch_of(loader_of(web.open(), tmp_path / "cache"))
    web.asked()
    loader = loader_of(web.open(), tmp_path / "cache")
    epoch_of(loader)
    assert not web.sent()
    epoch_of(loader)
    assert not web.asked()


@pytest.mark.parametrize("stored", STORED)
def test_the_next_program_gets_data_that_have_changed(web, tmp_path, stored):
    web.put(**STORED[stored])
    epoch_of(loader_of(web.open(), tmp_path / "cache"))
    other = VALUES[::-1].copy()
    web.put(other, **STORED[stored])
    epoch_of(loader_of(web.open(), tmp_path / "cache"), other)


def test_data_that_never_change_are_not_asked_for_again(web, tmp_path):
    web.put(**STORED["shards"])
    options = {"path": tmp_path / "cache", "max_bytes": "10MB", "max_age": math.inf}
    epoch_of(loader_of(web.open(), options))
    web.asked()
    epoch_of(loader_of(web.open(), options))
    assert not web.asked()


def test_a_cache_that_is_smaller_than_the_data_stays_within_its_size(web, tmp_path):
    web.put(**STORED["chunks"])
    cache = tmp_path / "cache"
    loader = loader_of(web.open(), {"path": cache, "max_bytes": 300_000})
    for _ in range(3):
        epoch_of(loader)
    assert sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) <= 300_000 * 9 / 8
    assert loader.stats.fetched > ROWS // 4


def test_missing_chunks_are_asked_for_once(web, tmp_path):
    values = VALUES.copy()
    values[100:200] = 0
    web.put(values, chunks=(4, 1024))
    loader = loader_of(web.open(), tmp_path / "cache")
    epoch_of(loader, values)
    web.asked()
    epoch_of(loader, values)
    assert not web.asked()


def test_views_lists_and_windows_are_read_through_the_cache(web, tmp_path):
    web.put(**STORED["shards"])
    array = web.open()
    half = ROWS // 2
    cache = tmp_path / "cache"
    loader = Loader(
        {
            "x": [array.lazy[:half], array.lazy[half:]],
            "floats": omnizarr.concat([array, array]).lazy[:ROWS].astype("float64"),
            "windows": windows(array, (1, 1024)),
            "i": np.arange(ROWS),
        },
        16,
        shuffle="full",
        cache=cache,
    )
    for number in range(2):
        for batch in loader:
            rows = VALUES[batch["i"]]
            assert np.array_equal(batch["x"], rows)
            assert np.array_equal(batch["floats"], rows)
            assert np.array_equal(batch["windows"][:, 0], rows)
        assert bool(web.asked()) == (number == 0)


def test_samples_by_number_use_the_cache(web, tmp_path):
    web.put(**STORED["shards"])
    samples = Samples({"x": web.open()}, cache=tmp_path / "cache")
    for number in range(2):
        assert np.array_equal(samples[7]["x"], VALUES[7])
        assert bool(web.asked()) == (number == 0)


def test_local_arrays_and_cached_stores_are_read_without_another_cache(web, tmp_path):
    web.put(**STORED["chunks"])
    local = omnizarr.open_array(tmp_path / "a.zarr", mode="r")
    epoch_of(loader_of(local, tmp_path / "cache"))
    remote = web.open()
    cached = omnizarr.open_array(CacheStore(remote.store), path=remote.path, mode="r")
    epoch_of(loader_of(cached, tmp_path / "cache"))
    assert not list((tmp_path / "cache").rglob("*"))


def _load(loader, epoch):
    signal.alarm(60)
    epoch_of(loader.part(0, 1, epoch))


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_share_the_cache(web, tmp_path, start):
    if start == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    web.put(**STORED["shards"])
    loader = loader_of(web.open(), tmp_path / "cache")
    epoch_of(loader)
    web.asked()
    workers = [multiprocessing.get_context(start).Process(target=_load, args=(loader, n)) for n in (1, 2)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert [each.exitcode for each in workers] == [0, 0]
    assert not web.asked()


def test_a_pickled_loader_uses_the_cache(web, tmp_path):
    web.put(**STORED["shards"])
    loader = loader_of(web.open(), tmp_path / "cache")
    epoch_of(loader)
    web.asked()
    epoch_of(pickle.loads(pickle.dumps(loader)))
    assert not web.asked()


def test_a_damaged_cache_is_fetched_again(web, tmp_path):
    web.put(**STORED["chunks"])
    epoch_of(loader_of(web.open(), tmp_path / "cache"))
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)
    epoch_of(loader_of(web.open(), tmp_path / "cache"))
    assert web.sent()


@pytest.mark.parametrize(
    ("cache", "match"),
    [
        (3, "a cache needs a directory"),
        ({"max_bytes": 5}, "a cache needs a directory"),
        ({"path": "c", "size": 5}, "no such option.*found size, expected path, max_bytes, max_age"),
        ({"path": "c", "max_age": -1}, "not an age"),
        ({"path": "c", "max_bytes": -1}, "no bytes"),
        ("", "a cache needs a directory"),
        ("s3://bucket/cache", "a directory on a local disk"),
    ],
)
def test_wrong_options_are_refused(cache, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=match):
        Loader({"x": np.arange(3)}, cache=cache)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="the directory of the cache cannot be made"):
        Loader({"x": np.arange(3)}, cache=tmp_path / "file")


def test_a_directory_of_a_user_who_is_not_there_is_refused():
    with pytest.raises(StoreError, match="the directory of the cache cannot be made"):
        Loader({"x": np.arange(3)}, cache="~unknown-user/cache")


@pytest.mark.parametrize("stored", ["shards", "small-shards"])
def test_a_shard_of_which_all_is_used_is_fetched_by_one_request(web, tmp_path, stored):
    web.put(**STORED[stored])
    count = ROWS // STORED[stored]["shards"][0]
    loader = Loader({"x": web.open(), "i": np.arange(ROWS)}, 16, shuffle="full", cache=tmp_path / "cache")
    epoch_of(loader)
    assert len(web.asked()) == count
    epoch_of(loader)
    assert not web.asked()
    epoch_of(Loader({"x": web.open(), "i": np.arange(ROWS)}, 16, shuffle="full", cache=tmp_path / "cache"))
    assert not web.sent()
