"""Variables that grow, and that many use at once; and what Python does with them."""

import copy
import pickle
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from omnizarr.errors import NotRepresentableError, StoreClosedError, StoreError
from omnizarr.netcdf import Dataset
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore

GROWING = ["D", "pure", "v3", "pure-v3"]


def growing(target, layout="D", chunk=4):
    dataset = Dataset(target, "w", layout=layout)
    dataset.createDimension("t")
    dataset.createDimension("x", 2)
    dataset.createVariable("a", "i4", ("t", "x"), chunksizes=(chunk, 2))
    dataset.createVariable("b", "i4", ("t",), chunksizes=(chunk,))
    return dataset


# -- growing ----------------------------------------------------------------------


@pytest.mark.parametrize("layout", GROWING)
def test_all_variables_grow_in_every_layout(layout):
    store = {}
    dataset = growing(store, layout)
    dataset["a"][0:3] = 7
    dataset["b"][4] = 8
    for found in (dataset, Dataset(store)):
        assert (found["a"].shape, found["b"].shape) == ((5, 2), (5,))
        assert found["a"][:].tolist() == [[7, 7]] * 3 + [[None, None]] * 2
        assert found["b"][:].tolist() == [None] * 4 + [8]


def test_two_dimensions_grow_at_once():
    store = {}
    with Dataset(store, "w") as dataset:
        dataset.createDimension("t")
        dataset.createDimension("n")
        dataset.createVariable("a", "i4", ("t", "n"))[2, 3] = 5
        dataset.createVariable("b", "i4", ("n",))
    with Dataset(store) as dataset:
        assert (dataset["a"].shape, dataset["b"].shape, int(dataset["a"][2, 3])) == ((3, 4), (4,), 5)


@pytest.mark.parametrize("options", [{}, {"config": {"chunk_cache": 0}}, {"zarr_format": 3}], ids=["", "bare", "v3"])
def test_a_writer_that_missed_a_growth_keeps_what_others_wrote_in_the_same_chunk(tmp_path, options):
    first = Dataset(tmp_path / "x", "w", **options)
    first.createDimension("t")
    first.createVariable("v", "i4", ("t",), chunksizes=(4,))[0] = 10
    second = Dataset(tmp_path / "x", "a")
    second["v"][1] = 11
    second["v"][5] = 15
    first["v"][0] = 20
    first["v"][2] = 12
    assert Dataset(tmp_path / "x")["v"][:].tolist() == [20, 11, 12, None, None, 15]
    first.sync()
    assert first["v"][:].tolist() == [20, 11, 12, None, None, 15]


def test_threads_that_write_one_variable_lose_nothing():
    store = {}
    variable = growing(store)["b"]
    steps = 48

    def write(number):
        for step in range(number, steps, 8):
            variable[step] = step
            assert int(variable[step]) == step

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert variable[:].tolist() == Dataset(store)["b"][:].tolist() == list(range(steps))


@pytest.mark.parametrize("layout", ["D", "v3"])
@pytest.mark.parametrize("nth", range(1, 8))
def test_a_growth_that_fails_leaves_no_length_without_data(layout, nth):
    store = FaultyStore(MemoryStore())
    dataset = growing(store, layout)
    dataset["b"][0:3] = [0, 1, 2]
    store.reset()
    store.fail("set", nth)
    for step in (3, 4, 5):
        try:
            dataset["b"][step] = step
        except StoreError:
            break
    store.reset()
    for found in (dataset, Dataset(store)):
        values = found["b"][:].tolist()
        assert values == list(range(len(values)))
        assert len(values) >= 3
    dataset["b"][5] = 5
    assert Dataset(store)["b"][:3].tolist() == [0, 1, 2]


WRITER = """
import sys
from omnizarr.netcdf import Dataset
with Dataset(sys.argv[1], "a") as dataset:
    print(flush=True)
    for step in range(100_000):
        dataset["a"][step] = step
        dataset["b"][step] = step
"""


@pytest.mark.parametrize("run", range(4))
def test_a_writer_that_is_killed_leaves_a_dataset_with_all_its_data(tmp_path, run):
    growing(tmp_path / "x").close()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "x")], stdout=subprocess.PIPE)
    writer.stdout.readline()
    time.sleep(random.Random(run).uniform(0.02, 0.5))
    writer.kill()
    writer.communicate()
    with Dataset(tmp_path / "x", "a") as dataset:
        last = len(dataset.dimensions["t"]) - 1
        assert dataset["b"][:last].tolist() == list(range(last))
        assert dataset["a"][: last + 1, 0].tolist() == list(range(last + 1))
        assert dataset.all_notes() == {}
        dataset["b"][last + 1] = -1
        assert len(dataset["a"]) == last + 2


# -- attributes that are more than attributes -----------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda variable: variable.setncattr("_FillValue", np.int32(1)),
        lambda variable: variable.delncattr("_FillValue"),
        lambda variable: variable.renameAttribute("_FillValue", "fill"),
        lambda variable: variable.renameAttribute("units", "_FillValue"),
    ],
    ids=["set", "delete", "rename", "take"],
)
def test_the_fill_value_stays_as_it_was_created(change):
    variable = Dataset({}, "w").createVariable("v", "i4", fill_value=7)
    variable.units = "K"
    with pytest.raises(NotRepresentableError):
        change(variable)
    assert (variable.ncattrs(), variable.get_fill_value()) == (["_FillValue", "units"], 7)


@pytest.mark.parametrize("layout", ["C", "D", "v3", "pure"])
def test_strings_get_another_width_while_none_are_stored(layout):
    store = {}
    dataset = Dataset(store, "w", layout=layout)
    dataset.createDimension("x", 2)
    variable = dataset.createVariable("v", str, ("x",))
    variable.units = "1"
    variable.setncattr("_nczarr_maxstrlen", np.int32(300))
    text = "\N{LATIN SMALL LETTER E WITH ACUTE}" * 150
    variable[0] = text
    assert Dataset(store)["v"][:].tolist() == [text, ""]
    assert Dataset(store)["v"].ncattrs() == ["units", "_nczarr_maxstrlen"]


def test_the_width_of_strings_that_are_stored_is_not_changed_in_part():
    store = {}
    variable = Dataset(store, "w").createVariable("v", str)
    variable[...] = "text"
    before = dict(store)
    with pytest.raises(NotRepresentableError):
        variable.setncatts({"units": "K", "_nczarr_maxstrlen": np.int32(2)})
    assert (store, variable.ncattrs()) == (before, [])


# -- Python's ways --------------------------------------------------------------------------


@pytest.mark.parametrize("again", [lambda each: pickle.loads(pickle.dumps(each)), copy.copy, copy.deepcopy])
def test_variables_and_groups_can_be_copied_and_pickled_with_their_settings(tmp_path, again):
    with Dataset(tmp_path / "x", "w") as dataset:
        variable = dataset.createVariable("g/v", "i2", fill_value=-1)
        variable.scale_factor = 0.5
        variable[...] = 4.0
        variable.set_auto_scale(False)
        copied = again(variable)
        assert (copied.full_name, copied[...], copied.scale, copied.mask) == ("/g/v", 8, False, True)
        assert again(dataset["g"]).path == "/g"


def test_names_of_attributes_are_names_of_python_too():
    variable = Dataset({}, "w").createVariable("v", "f4")
    variable.units = "K"
    assert "units" in dir(variable)
    assert vars(variable) == {"units": "K"}
    assert not hasattr(variable, "scale_factor")
    with pytest.raises(AttributeError):
        variable.shape = (2,)


def test_a_closed_dataset_is_not_read():
    dataset = Dataset({}, "w")
    variable = dataset.createVariable("v", "f4")
    dataset.close()
    dataset.close()
    for use in (lambda: variable[...], lambda: variable.units, lambda: dataset["v"], lambda: dataset.createGroup("g")):
        with pytest.raises(StoreClosedError):
            use()
    assert repr(dataset).endswith("closed")
    assert "float v()" in repr(variable)
