"""`omnizarr.support.suggestions`, and what errors make of it."""

import os
import time

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.stores import LocalStore, MemoryStore
from omnizarr.support.suggestions import near_directories, near_names
from tests.fakes import FaultyStore


def remedy(*args, **options):
    with pytest.raises(errors.NodeNotFoundError) as caught:
        omnizarr.open(*args, **options)
    return caught.value.remedy


@pytest.fixture
def data(tmp_path):
    """data/g.zarr/foo/bar/baz and data/g.zarr/foo/other; the path of data."""
    root = omnizarr.create_group(tmp_path / "data" / "g.zarr")
    root["foo/bar/baz"] = np.arange(3)
    root["foo/other"] = np.arange(3)
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("g.zar", "g.zarr"),
        ("G.ZARR", "g.zarr"),
        ("g.zarr/fo", "g.zarr/foo"),
        ("g.zarr/foo/bax/baz", "g.zarr/foo/bar/baz"),
        ("g.zar/foo/bar/baz", "g.zarr/foo/bar/baz"),
        ("g.zar/fo/bax/bas", "g.zarr/foo/bar/baz"),
        ("g.zarr/foo/bax/quite-another", "g.zarr/foo/bar"),
        ("../dta/g.zarr", "g.zarr"),
    ],
)
def test_path_in_one_string(data, typed, meant):
    assert remedy(str(data / typed)) == f"did you mean {os.path.normpath(data / meant)!r}?"


@pytest.mark.parametrize("make_store", [lambda data: str(data / "g.zarr"), lambda data: LocalStore(data / "g.zarr")])
def test_path_within_a_directory(data, make_store):
    assert remedy(make_store(data), path="foo/bax/baz") == "did you mean 'foo/bar/baz'?"


def test_path_within_a_store_whose_directory_is_misspelt(data):
    assert remedy(str(data / "g.zar"), path="foo/bar") == f"did you mean {str(data / 'g.zarr/foo/bar')!r}?"


def test_path_within_another_store(data):
    store = MemoryStore()
    omnizarr.copy_store(omnizarr.open_group(data / "g.zarr").store, store)
    assert remedy(store, path="fo/bax/baz") == "did you mean 'foo/bar/baz'?"
    assert remedy(store, path="foo/bar/bas") == "did you mean 'foo/bar/baz'?"


def test_several_names_come_near():
    store = MemoryStore()
    omnizarr.create_array(store, name="temp1", shape=3, dtype="i4")
    omnizarr.create_array(store, name="temp2", shape=3, dtype="i4")
    assert remedy(store, path="temp") == "did you mean 'temp2' or 'temp1'?"


def test_nothing_comes_near(data):
    assert "create it" in remedy(str(data / "quite-another"))


def test_nothing_is_below_an_array(data):
    assert remedy(str(data / "g.zarr"), path="foo/other/cc") == (
        "there is an array at /foo/other, and nothing can lie below an array"
    )


@pytest.mark.parametrize("typed", ["ocean", "ocaen.zip", "ocean.zi"])
def test_misspelt_archive(tmp_path, typed):
    with omnizarr.open_group(tmp_path / "ocean.zip", mode="w") as root:
        root["a"] = [1]
    assert remedy(str(tmp_path / typed)) == f"did you mean {str(tmp_path / 'ocean.zip')!r}?"


def test_large_directory_is_not_listed_in_full(tmp_path, monkeypatch):
    listed = 0
    scandir = os.scandir

    class Counting:
        def __init__(self, path):
            self.entries = scandir(path)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.entries.close()

        def __iter__(self):
            return self

        def __next__(self):
            nonlocal listed
            listed += 1
            return next(self.entries)

    for number in range(3000):
        (tmp_path / f"{number}.zarr").mkdir()
    monkeypatch.setattr(os, "scandir", Counting)
    near_directories(tmp_path / "x.zarr")
    assert listed <= 2000


def test_chunks_of_an_array_are_not_listed():
    store = FaultyStore(MemoryStore())
    omnizarr.create_array(store, name="a", data=np.arange(10), chunks=1)
    store.reset()
    remedy(store, path="a/b")
    # One asks for a group without a document, two for the draft of 2019 without an entry point.
    assert store.requests["list_dir"] == 3


def test_many_long_names_take_little_time():
    start = time.perf_counter()
    near_names("x" * 200, ["xy" * 100 + str(number) for number in range(10**6)])
    assert time.perf_counter() - start < 5


def test_directory_that_may_not_be_listed_makes_no_suggestion(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert near_directories(tmp_path / "a") == []
