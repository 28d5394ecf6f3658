"""Types are those of netCDF4-python."""

import netCDF4
import numpy as np
import pytest

from omnizarr.errors import UnknownDataTypeError
from omnizarr.netcdf import Attribute, types


def test_default_fill_values_are_those_of_netcdf4():
    complex_too = dict(netCDF4.default_fillvals)
    assert dict(types.default_fillvals) == {code: fill for code, fill in complex_too.items() if code[0] != "c"}


@pytest.mark.parametrize("given", ["i1", "u2", "c", "b", "B", "h", "i", "l", "f", "d", "S1", int, float, "i8"])
def test_a_type_is_what_netcdf4_makes_of_it(tmp_path, given):
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as dataset:
        expected = dataset.createVariable("v", given).dtype
    assert types.parse(given).dtype == expected.newbyteorder("=")


@pytest.mark.parametrize(
    "given", ["c16", "f2", "M8[s]", [("a", "i4")], "no type", object()], ids=lambda each: type(each).__name__
)
def test_what_is_no_type_is_refused(given):
    with pytest.raises(UnknownDataTypeError):
        types.parse(given)


@pytest.mark.parametrize(
    "value", [5, 2.5, "text", b"by", [1, 2], ["a", "bc"], np.int16(3), np.float32([1, 2]), [2.5], ""], ids=repr
)
def test_an_attribute_is_what_netcdf4_gives_back(tmp_path, value):
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as dataset:
        dataset.setncattr("a", value)
        expected = dataset.getncattr("a")
    found = Attribute.of(value).python
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)
    if isinstance(expected, np.ndarray | np.generic):
        assert found.dtype == expected.dtype


def test_attributes_are_equal_bit_by_bit():
    nan = Attribute.of(np.float32("nan"))
    assert nan == Attribute.of(np.float32("nan"))
    assert Attribute.of(0.0) != Attribute.of(-0.0)
    assert Attribute.of(1) != Attribute.of(1.0)
    assert Attribute.of("a") != Attribute.of(["a"])
