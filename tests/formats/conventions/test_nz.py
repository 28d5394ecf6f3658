"""NZ-1.0 is read as netCDF, and written if it is asked for. Expected values are those of the text and of NumPy."""

import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf

NZ = "d0a980b5-c644-4dcc-85a1-283799a58f40"


def dataset():
    """Return a dataset as netCDF-C and xarray write it in Zarr v2, with what NZ-1.0 does not allow."""
    store = {}
    root = omnizarr.create_group(store, zarr_format=2, attributes={"Conventions": "CF-1.8"})
    types = {"types": {"scale_factor": "<f4", "units": ">S1"}}
    said = {"_ARRAY_DIMENSIONS": ["y", "x"], "scale_factor": 0.5, "units": "K", "_nczarr_attr": types}
    root.create_array("f", data=np.arange(6, dtype="f4").reshape(2, 3), fill_value=-9.5, attributes=said)
    root.create_array("x", data=np.arange(3), attributes={"_ARRAY_DIMENSIONS": ["x"]})
    root.create_array("other", data=np.arange(4), attributes={"_ARRAY_DIMENSIONS": ["x"]})
    root.create_array("bare", data=np.arange(4))
    return store


def test_conversion_writes_what_nz_wants():
    there = {}
    done = omnizarr.convert(dataset(), there, convention="nz")
    root = omnizarr.open(there)
    assert root.attrs["conventions"] == "NZ-1.0 CF-1.8"
    names = {name: array.dimension_names for name, array in root.arrays()}
    assert names == {"f": ("y", "x"), "x": ("x",), "other": ("x_4",), "bare": ("dim_4",)}
    assert root["f"].attrs["_FillValue"] == -9.5
    assert root["f"].attrs["_nczarr_attr"] == {"types": {"scale_factor": "float32"}}
    assert root["f"].attrs["zarr_conventions"][0]["uuid"] == NZ
    assert [code.code for code in omnizarr.check(there).findings if code.severity == "error"] == []
    lost = {(loss.path, loss.pointer) for loss in done.losses}
    assert lost == {("f", "/attributes/_FillValue"), ("other", "/dimension_names")}
    again = {}
    assert not omnizarr.convert(there, again, convention="nz").losses
    assert again == there


def test_netcdf_reads_names_types_and_masks():
    there = {}
    omnizarr.convert(dataset(), there, convention="nz")
    with netcdf.Dataset(there) as found:
        variable = found.variables["f"]
        assert variable.dimensions == ("y", "x")
        assert {name: len(each) for name, each in found.dimensions.items()} == {"x": 3, "y": 2, "x_4": 4, "dim_4": 4}
        assert (type(variable.scale_factor), type(variable._FillValue)) == (np.float32, np.float32)
        assert variable[...].tolist() == [[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]]


@pytest.mark.parametrize(
    ("value", "stored"), [(np.nan, "NaN"), (-np.inf, "-Infinity"), (1e20, float(np.float32(1e20)))]
)
def test_fill_values_have_the_form_of_json(value, stored):
    store, there = {}, {}
    said = {"_ARRAY_DIMENSIONS": ["x"]}
    omnizarr.create_group(store, zarr_format=2)
    omnizarr.create_array(store, name="a", shape=3, dtype="f4", fill_value=value, attributes=said, zarr_format=2)
    omnizarr.convert(store, there, convention="nz")
    assert omnizarr.open(there)["a"].attrs["_FillValue"] == stored


def test_other_formats_and_places_are_refused():
    with pytest.raises(ValueError, match=r"NZ-1\.0 is for Zarr v3"):
        omnizarr.convert(dataset(), {}, zarr_format=2, convention="nz")
    with pytest.raises(ValueError, match="expected one of nz"):
        omnizarr.convert(dataset(), {}, convention="stac")
    with pytest.raises(ValueError, match="no convention can be given"):
        omnizarr.convert(dataset(), in_place=True, convention="nz")


def test_datasets_of_our_netcdf_keep_their_types(tmp_path):
    with netcdf.Dataset(tmp_path / "a.zarr", "w", layout="v3") as made:
        made.createDimension("x", 3)
        variable = made.createVariable("t", "i2", ("x",), fill_value=-9)
        variable[:] = [1, 2, 3]
        variable.valid_max, variable.weight, variable.units = np.int16(90), np.float32(0.5), "K"
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / "nz.zarr", convention="nz")
    root = omnizarr.open(tmp_path / "nz.zarr")
    assert root.attrs["conventions"] == "NZ-1.0"
    types = root["t"].attrs["_nczarr_attr"]["types"]
    assert {name: types[name] for name in ("valid_max", "weight")} == {"valid_max": "int16", "weight": "float32"}
    with netcdf.Dataset(tmp_path / "nz.zarr") as found:
        variable = found.variables["t"]
        assert (type(variable.weight), variable.units, variable[...].tolist()) == (np.float32, "K", [1, 2, 3])
        assert variable._FillValue == -9
    assert [each.code for each in omnizarr.check(tmp_path / "nz.zarr").findings if each.severity != "note"] == []


def test_files_of_netcdf_become_zarr_first(tmp_path):
    with netcdf.Dataset(tmp_path / "a.zarr", "w") as made:
        made.createDimension("x", 3)
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / "a.nc")
    with pytest.raises(ValueError, match="without meaning where a netCDF file is converted"):
        omnizarr.convert(tmp_path / "a.nc", tmp_path / "there.zarr", convention="nz")
