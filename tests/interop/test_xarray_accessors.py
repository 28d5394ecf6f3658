"""What omnizarr adds to objects of xarray."""

import threading
import warnings
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import omnizarr
from omnizarr.interop.xarray import accessors, load
from omnizarr.stores import MemoryStore, WrapperStore


class Meeting(WrapperStore):
    """A store that takes its time: what is read of chunks waits until others are read too."""

    @property
    def features(self):
        return replace(self.store.features, concurrency=4)

    def __init__(self, store, number):
        super().__init__(store)
        self.barrier = threading.Barrier(number, timeout=30)

    def get(self, key, span=None):
        if "/c/" in key:
            self.barrier.wait()
        return super().get(key, span)


@pytest.fixture
def store():
    data = xr.Dataset({name: ("x", np.arange(3) + at) for at, name in enumerate("abc", 1)}, attrs={"title": "t"})
    tree = xr.DataTree.from_dict({"/": data, "/below": data})
    store = MemoryStore()
    tree.omnizarr.to_zarr(store)
    return store


def test_variables_are_loaded_side_by_side(store):
    found = xr.open_dataset(Meeting(store, 3), engine="omnizarr")
    assert load(found) is found
    assert found["c"].variable._in_memory
    assert found["c"].values.tolist() == [3, 4, 5]


def test_groups_of_a_tree_are_loaded_side_by_side(store):
    found = xr.open_datatree(Meeting(store, 6), engine="omnizarr").omnizarr.load()
    assert found["below/b"].values.tolist() == [2, 3, 4]


def test_data_array_is_loaded(store):
    found = xr.open_dataset(store, engine="omnizarr")["a"][1:]
    assert found.omnizarr.load().variable._in_memory
    assert found.values.tolist() == [2, 3]


def test_what_is_not_stored_here_is_loaded_too():
    found = xr.Dataset({"a": ("x", da.arange(3)), "b": ("x", [1, 2, 3])}).omnizarr.load(scheduler="synchronous")
    assert isinstance(found["a"].data, np.ndarray)


def test_registering_twice_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accessors.register()
    assert isinstance(xr.Dataset().omnizarr, accessors.Accessor)


@pytest.mark.parametrize("kind", [xr.Dataset, xr.DataArray])
def test_accessor_writes(kind):
    data = xr.DataArray([1.5], dims="x", name="v")
    data = data.to_dataset() if kind is xr.Dataset else data
    values = {}
    group = data.omnizarr.to_zarr(values, "w", "deep", encoding={"v": {"chunks": (1,)}})
    assert group.path == "deep"
    assert omnizarr.open(values)["deep/v"][...].tolist() == [1.5]
