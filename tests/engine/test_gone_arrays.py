"""An array whose directory was deleted or moved raises an error, both when it is read and when it is written."""

import asyncio
import os
import pickle
import shutil

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, errors
from omnizarr.netcdf import Dataset
from omnizarr.stores import LocalStore
from tests.engine.both import ENGINES, needs_native

FORMATS = [0, 1, 2, 3, "3-draft2019", "3-draft2020"]


@pytest.fixture(params=[pytest.param(name, marks=needs_native) if name == "native" else name for name in ENGINES])
def engine(request):
    with omnizarr.config.set({"engine": request.param}):
        yield request.param


def create(root, path="", zarr_format=3, **options):
    return omnizarr.create_array(
        root, name=path or None, shape=(8, 8), chunks=(4, 4), dtype="i4", zarr_format=zarr_format, **options
    )


def files(root):
    return sorted(os.path.relpath(each, root) for each in root.rglob("*")) if root.exists() else None


TASKS = {
    "read": lambda array: array[0],
    "read all": lambda array: array[...],
    "write a part": lambda array: array.set_basic_selection(0, 2),
    "write a chunk": lambda array: array.set_basic_selection((slice(4), slice(4)), 2),
    "write all": lambda array: array.set_basic_selection(..., 2),
    "append": lambda array: array.append(np.ones((4, 8), "i4")),
    "resize": lambda array: array.resize(12, 12),
    "attributes": lambda array: array.attrs.update(a=1),
}
PLACES = [
    (zarr_format, path) for zarr_format in FORMATS for path in ("", "g/a") if zarr_format not in (0, 1) or not path
]


@pytest.mark.parametrize("used", [False, True], ids=["just opened", "used before"])
@pytest.mark.parametrize(("zarr_format", "path"), PLACES)
def test_nothing_comes_back_and_nothing_is_made(tmp_path, engine, zarr_format, path, used):
    root = tmp_path / "a.zarr"
    create(root, path, zarr_format)[...] = 1
    array = omnizarr.open_array(root, path=path, mode="r+")
    if used:
        array[0] = 1
    root.rename(tmp_path / "elsewhere")
    for name, task in TASKS.items():
        with pytest.raises(FileNotFoundError) as caught:
            task(array)
        assert isinstance(caught.value, errors.NodeNotFoundError)
        if name not in {"append", "resize", "attributes"}:
            assert "is not there any more" in str(caught.value)
            assert "open it where it is now" in str(caught.value.remedy)
        assert files(root) is None
    assert (omnizarr.open_array(tmp_path / "elsewhere", path=path)[...] == 1).all()


@pytest.mark.parametrize("zarr_format", [2, 3, "3-draft2020"])
def test_its_siblings_stay_unchanged(tmp_path, engine, zarr_format):
    root = tmp_path / "a.zarr"
    create(root, "g/b", zarr_format)[...] = 1
    array = create(root, "g/a", zarr_format)
    array[...] = 1
    del omnizarr.open_group(root, mode="r+")["g"]["a"]
    before = files(root)
    for task in TASKS.values():
        with pytest.raises(errors.NodeNotFoundError):
            task(array)
        assert files(root) == before


def test_an_array_that_was_pickled_notices_it_too(tmp_path, engine):
    root = tmp_path / "a.zarr"
    array = create(root)
    array[0] = 1
    array = pickle.loads(pickle.dumps(array))
    shutil.rmtree(root)
    for task in ("read", "write a part", "write a chunk"):
        with pytest.raises(errors.ArrayNotFoundError):
            TASKS[task](array)


@pytest.mark.parametrize(("zarr_format", "path"), PLACES)
def test_an_array_without_a_chunk_is_read_and_written(tmp_path, engine, zarr_format, path):
    root = tmp_path / "a.zarr"
    array = create(root, path, zarr_format, fill_value=7)
    assert (array[...] == 7).all()
    array[...] = 1
    array[...] = 7
    assert (omnizarr.open_array(root, path=path)[...] == 7).all()
    array[:4, :4] = 2
    assert (array[:4, :4] == 2).all()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_that_consolidated_metadata_alone_tells_of_is_read_and_written(tmp_path, engine, zarr_format):
    root = tmp_path / "a.zarr"
    create(root, "a", zarr_format, fill_value=7)
    omnizarr.consolidate_metadata(root)
    shutil.rmtree(root / "a")
    array = omnizarr.open_group(root, mode="r+")["a"]
    with pytest.warns(UserWarning, match="nothing is stored of the array /a"):
        assert (array[...] == 7).all()
    array[:4] = 1
    assert (omnizarr.open_group(root, mode="r")["a"][:4] == 1).all()


def test_an_array_that_was_converted_in_place_is_there(tmp_path, engine):
    array = create(tmp_path / "a.zarr", zarr_format=2, fill_value=7)
    omnizarr.convert(tmp_path / "a.zarr", zarr_format=3, in_place=True, remove_old=True)
    assert not (tmp_path / "a.zarr" / ".zarray").exists()
    assert (array[...] == 7).all()
    array[0] = 1
    assert (omnizarr.open_array(tmp_path / "a.zarr")[0] == 1).all()


def test_coroutines_notice_it_too(tmp_path, engine):
    create(tmp_path / "a.zarr")

    async def use():
        array = await aio.open_array(tmp_path / "a.zarr", mode="r+")
        await array.setitem(0, 1)
        shutil.rmtree(tmp_path / "a.zarr")
        with pytest.raises(errors.ArrayNotFoundError):
            await array.getitem(0)
        with pytest.raises(errors.ArrayNotFoundError):
            await array.setitem(0, 1)

    asyncio.run(use())
    assert files(tmp_path / "a.zarr") is None


def test_a_variable_of_a_dataset_notices_it(tmp_path, engine):
    with Dataset(tmp_path / "a.zarr", "w") as dataset:
        dataset.createDimension("x", 4)
        variable = dataset.createVariable("v", "i4", ("x",))
        variable[:] = 1
        shutil.rmtree(tmp_path / "a.zarr" / "v")
        with pytest.raises(FileNotFoundError, match="not there any more"):
            variable[:]
        with pytest.raises(FileNotFoundError, match="not there any more"):
            variable[:] = 2
        assert not (tmp_path / "a.zarr" / "v").exists()


def test_the_lock_of_a_store_that_is_gone_leaves_no_directory(tmp_path):
    with LocalStore(tmp_path / "none").lock("zarr.json"):
        pass
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").mkdir()
    with LocalStore(tmp_path / "empty").lock("a/zarr.json"):
        pass
    assert files(tmp_path / "empty") == []
