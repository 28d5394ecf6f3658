"""An array that consolidated metadata list, and that has gone, is not silently read as fill values."""

import shutil
import warnings

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore

ENGINES = ["native", "reference"]


@pytest.fixture(params=[2, 3])
def hierarchy(request):
    values = {}
    root = omnizarr.create_group(values, zarr_format=request.param)
    root["ocean/temp"] = np.arange(1.0, 9.0)
    root.create_array("ocean/empty", shape=(8,), chunks=(4,), dtype="f8")
    omnizarr.consolidate_metadata(values)
    return values


def without(values, prefix):
    return {key: value for key, value in values.items() if not key.startswith(prefix)}


def far(values):
    return FaultyStore(MemoryStore(values), concurrency=32)


@pytest.mark.parametrize("engine", ENGINES)
def test_reading_an_array_that_has_gone_warns_once(hierarchy, engine):
    store = far(without(hierarchy, "ocean/temp/"))
    with omnizarr.config.set({"engine": engine}):
        array = omnizarr.open_group(store, mode="r")["ocean/temp"]
        with pytest.warns(UserWarning, match=r"nothing is stored of the array /ocean/temp .*consolidate_metadata"):
            assert (array[:] == 0).all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            array[:]


def test_reading_from_a_directory_that_was_deleted_warns(tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root["ocean/temp"] = np.arange(1.0, 9.0)
    omnizarr.consolidate_metadata(tmp_path / "x.zarr")
    shutil.rmtree(tmp_path / "x.zarr/ocean/temp")
    with pytest.warns(UserWarning, match="nothing is stored of the array"):
        assert (omnizarr.open_group(tmp_path / "x.zarr", mode="r")["ocean/temp"][:] == 0).all()
    assert [finding.code for finding in omnizarr.check(tmp_path / "x.zarr").findings] == ["stale-consolidated-metadata"]


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_that_are_there_cost_no_listing_and_warn_of_nothing(hierarchy, engine):
    store = far(hierarchy)
    with omnizarr.config.set({"engine": engine}), warnings.catch_warnings():
        warnings.simplefilter("error")
        root = omnizarr.open_group(store, mode="r")
        assert root["ocean/temp"][:].sum() == 36
        store.reset()
        empty = root["ocean/empty"]
        for _ in range(3):
            assert (empty[:] == 0).all()
        assert store.requests == {"get": 3 * 2, "exists": 1}


def test_hierarchy_with_consolidated_documents_alone_is_read(hierarchy):
    document = "ocean/temp/zarr.json" if "zarr.json" in hierarchy else "ocean/temp/.zarray"
    del hierarchy[document]
    root = omnizarr.open_group(far(hierarchy), mode="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(root["ocean/temp"][:], np.arange(1.0, 9.0))


def test_without_consolidated_metadata_nothing_is_asked():
    values = {}
    omnizarr.create_group(values).create_array("empty", shape=(8,), dtype="f8")
    store = far(values)
    array = omnizarr.open_group(store, mode="r")["empty"]
    store.reset()
    assert (array[:] == 0).all()
    assert {verb for verb, _ in store.log} == {"get"}
