"""Groups: definitions happen whole or not at all."""

import numpy as np
import pytest

from omnizarr.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    SettingError,
    StoreError,
)
from omnizarr.netcdf import Dataset
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore

LAYOUTS = ["A", "B", "C", "D", "pure", "v3", "pure-v3"]


def filled(target, layout="D"):
    dataset = Dataset(target, "w", layout=layout)
    dataset.createDimension("x", 3)
    group = dataset.createGroup("g")
    group.createDimension("y", 2)
    dataset.createVariable("v", "i4", ("x",))[:] = [1, 2, 3]
    group.createVariable("w", "i4", ("x", "y"))[:] = np.arange(6).reshape(3, 2)
    return dataset


CHANGES = {
    "createDimension": lambda ds: ds.createDimension("new", 4),
    "createGroup": lambda ds: ds.createGroup("new"),
    "createVariable": lambda ds: ds.createVariable("new", "i4", ("x",)),
    "renameDimension": lambda ds: ds.renameDimension("x", "new"),
    "renameVariable": lambda ds: ds.renameVariable("v", "new"),
    "renameGroup": lambda ds: ds.renameGroup("g", "new"),
    "setncattr": lambda ds: ds.setncattr("new", 1),
}


def seen(dataset):
    """Return all names, dimensions and data."""
    return {
        group.path: (
            {name: len(each) for name, each in group.dimensions.items()},
            {name: (each.dimensions, each[:].tolist()) for name, each in group.variables.items()},
            group.ncattrs(),
        )
        for group in dataset.walk()
    }


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_memory_knows_after_a_change_is_what_is_stored(layout, change):
    store = MemoryStore()
    dataset = filled(store, layout)
    before = seen(dataset)
    CHANGES[change](dataset)
    after = seen(dataset)
    assert after != before
    found = seen(Dataset(store))
    if "pure" in layout:  # dimensions belong to the variables that use them
        after, found = ({path: each[1:] for path, each in which.items()} for which in (after, found))
    assert found == after


@pytest.mark.parametrize("verb", ["set", "delete", "get"])
@pytest.mark.parametrize("layout", ["A", "D", "v3", "pure"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_fails_loses_nothing(layout, change, verb):
    nth = 0
    happened = True
    while happened:
        nth += 1
        store = FaultyStore(MemoryStore())
        dataset = filled(store, layout)
        before = seen(dataset)
        store.reset()
        store.fail(verb, nth)
        try:
            CHANGES[change](dataset)
            happened = False
        except StoreError:
            pass
        store.reset()
        for found in (dataset, Dataset(store)):
            data = sorted(str(values) for each in seen(found).values() for _, values in each[1].values())
            missing = [values for each in before.values() for _, values in each[1].values() if str(values) not in data]
            assert missing == []
        if happened:
            assert "new" not in dataset.variables or change == "renameVariable"
            if change == "createVariable":
                assert "new" not in Dataset(store).variables
                dataset.createVariable("new", "i4", ("x",))


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "no such"},
        {"chunksizes": (9, 9)},
        {"chunksizes": (-1,)},
        {"zlib": True, "complevel": 99},
        {"fill_value": "text"},
        {"fill_value": 1e300},
        {"fill_value": 2**31},
        {"fill_value": np.int64(2**31)},
        {"fill_value": float("nan")},
        {"fill_value": 1.5},
        {"endian": "middle"},
        {"maxstrlen": 0},
        {"maxstrlen": 2**31},
        {"chunk_cache": -1},
        {"least_significant_digit": "a"},
        {"significant_digits": 3},
    ],
    ids=str,
)
def test_a_variable_that_cannot_be_leaves_nothing_behind(options):
    store = {}
    dataset = filled(store)
    before = dict(store)
    with pytest.raises((SettingError, MetadataError, ValueError)):
        dataset.createVariable("new", "i4", ("x",), **options)
    assert store == before
    assert "new" not in dataset.variables


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_changes_in_a_dataset_that_is_read_only(change):
    store = {}
    filled(store)
    with pytest.raises(ReadOnlyError), Dataset(store) as dataset:
        CHANGES[change](dataset)


def test_the_length_of_a_dimension_is_an_integer():
    dataset = Dataset({}, "w")
    with pytest.raises(TypeError):
        dataset.createDimension("x", 3.5)
    assert not dataset.dimensions


def test_two_datasets_do_not_define_one_dimension_twice():
    store = {}
    first = Dataset(store, "w")
    second = Dataset(store, "a")
    first.createDimension("x", 3)
    with pytest.raises(NodeExistsError):
        second.createDimension("x", 4)
    assert len(Dataset(store).dimensions["x"]) == 3


def test_renaming_missing_data_or_over_existing_data_is_refused():
    dataset = filled({})
    with pytest.raises(NodeNotFoundError):
        dataset.renameVariable("nothing", "w")
    with pytest.raises(NodeExistsError):
        dataset.renameVariable("v", "g")
    with pytest.raises(NodeExistsError):
        dataset.renameGroup("g", "v")
    assert seen(dataset) == seen(filled({}))


def test_chunks_of_a_rename_that_failed_do_not_become_data():
    store = FaultyStore(MemoryStore())
    dataset = filled(store)
    store.reset()
    store.fail("set", 3)
    with pytest.raises(StoreError):
        dataset.renameVariable("v", "new")
    store.reset()
    assert dataset.createVariable("new", "i4", ("x",))[:].mask.all()
