"""Definitions of whole datasets."""

import numpy as np
import pytest

from omnizarr.errors import NodeNameError
from omnizarr.netcdf import Dataset, copying, types
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, VariableHeader
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore


def header(*names):
    return GroupHeader(
        dimensions={"x": DimensionHeader("x", 2)},
        variables={name: VariableHeader(name=name, type=types.INT, dimensions=("/x",)) for name in names},
    )


def test_all_variables_of_a_group_are_listed_in_one_change():
    store = FaultyStore(MemoryStore())
    dataset = Dataset(store, "w")
    store.reset()
    names = [f"v{number}" for number in range(50)]
    copying.define(dataset, header(*names))
    assert sum(key == ".zattrs" for verb, key in store.log if verb == "set") == 2  # dimensions, variables
    assert list(dataset.variables) == list(Dataset(store).variables) == names


def test_of_variables_that_cannot_all_be_none_stays():
    store = {}
    dataset = Dataset(store, "w")
    with pytest.raises(NodeNameError):
        copying.define(dataset, header("a", "b", ".zgroup"))
    assert not dataset.variables
    assert not Dataset(store).variables
    dataset.createVariable("a", "f8", ("x",))


def test_a_copy_of_a_dataset_is_the_dataset():
    source = Dataset({}, "w", layout="v3")
    source.createDimension("t")
    source.createVariable("g/v", str, ("t",))[:3] = np.array(["a", "", "long" * 30], object)
    source.setncattr("s", np.uint16([1, 2]))
    target = Dataset({}, "w")
    copying.write(target, source.as_source())
    assert target["g/v"][:].tolist() == ["a", "", "long" * 30]
    assert target.dimensions["t"].isunlimited()
    assert target.getncattr_type("s") == "ushort"
