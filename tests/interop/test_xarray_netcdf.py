"""NCZarr in xarray: the engine, and xarray's own `NetCDF4DataStore` of a dataset of omnizarr, in every layout.

What is expected is what xarray makes of the same dataset in a netCDF-4 file.
"""

import pickle

import netCDF4
import numpy as np
import pytest
import xarray as xr
from xarray.backends import NetCDF4DataStore

import omnizarr
from omnizarr import netcdf
from omnizarr.netcdf.layouts import LAYOUTS

WITHOUT_UNLIMITED = {name for name, each in LAYOUTS.items() if not each.has_unlimited}
WITHOUT_STRINGS = {"A", "B"}


def define(dataset, layout):
    dataset.title = "tides"
    dataset.createDimension("time", 2 if layout in WITHOUT_UNLIMITED else None)
    dataset.createDimension("x", 3)
    dataset.createDimension("letters", 4)
    time = dataset.createVariable("time", "f8", ("time",))
    time.units = "days since 2000-01-01"
    time[:] = [0, 1.5]
    level = dataset.createVariable("level", "i2", ("time", "x"), fill_value=-9, zlib=True)
    level.setncatts({"scale_factor": 0.5, "units": "cm", "coordinates": "name"})
    level[:] = [[1, -9, 3], [4, 5, 6]]
    rounded = dataset.createVariable("rounded", "f4", ("x",), significant_digits=3)
    rounded[:] = [1.11111, 2, 3]
    name = dataset.createVariable("name", "S1", ("x", "letters"))
    name[:] = np.array([list("abcd"), list("efgh"), list("ij  ")], "S1")
    coded = dataset.createVariable("coded", "S1", ("x", "letters"))
    coded._Encoding = "utf-8"
    coded[:] = np.array(["Gr\xf6", "b", "cccc"])
    dataset.createVariable("crs", "i4", ()).grid_mapping_name = "mercator"
    dataset["crs"][...] = 7
    if layout not in WITHOUT_STRINGS:
        words = dataset.createVariable("words", str, ("x",))
        words[:] = np.array(["a", "Größe", ""], object)
    inner = dataset.createGroup("inner").createGroup("most")
    inner.createDimension("y", 2)
    inner.createVariable("v", "f4", ("y", "x"), fill_value=1e20)[:] = [[1, 2, 3], [4, 5, 1e20]]


@pytest.fixture(params=LAYOUTS)
def both(request, tmp_path):
    """Return the same dataset in a layout, and in a file."""
    with netcdf.Dataset(tmp_path / "x.zarr", "w", layout=request.param) as ours:
        define(ours, request.param)
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as theirs:
        define(theirs, request.param)
    return tmp_path / "x.zarr", tmp_path / "x.nc", request.param


def check(found, expected, *, has_types=True):
    xr.testing.assert_identical(found.load(), expected.load())
    if has_types:  # Zarr alone says of no fill value whether it masks, so xarray makes floats of integers
        assert {name: type_of(each) for name, each in found.variables.items()} == {
            name: type_of(each) for name, each in expected.variables.items()
        }
    for attributes in (found.attrs, *(each.attrs for each in found.variables.values())):
        assert not any(key.lower().startswith("_nc") or key == "_ARRAY_DIMENSIONS" for key in attributes)


def type_of(variable):
    return "text" if variable.dtype.kind in "OU" else variable.dtype


@pytest.mark.parametrize("decode_cf", [True, False])
@pytest.mark.parametrize("group", [None, "inner/most"])
def test_engine_shows_what_a_file_has(both, group, decode_cf):
    ours, theirs, layout = both
    expected = xr.open_dataset(theirs, engine="netcdf4", group=group, decode_cf=decode_cf)
    if not decode_cf and layout.startswith("pure"):
        pytest.skip("Zarr alone has another fill value for what nothing masks")
    with xr.open_dataset(ours, engine="omnizarr", group=group, decode_cf=decode_cf) as found:
        check(found, expected, has_types=not layout.startswith("pure"))


def test_engine_knows_unlimited_dimensions(both):
    ours, _, layout = both
    with xr.open_dataset(ours, engine="omnizarr") as found:
        wanted = set() if layout in WITHOUT_UNLIMITED else {"time"}
        assert set(found.encoding.get("unlimited_dims", ())) == wanted


def test_engine_opens_all_groups_as_a_tree(both):
    ours, theirs, _ = both
    with xr.open_datatree(ours, engine="omnizarr") as found, xr.open_datatree(theirs, engine="netcdf4") as expected:
        xr.testing.assert_identical(found.load(), expected.load())


def test_engine_refuses_a_variable_as_group(tmp_path):
    with netcdf.Dataset(tmp_path / "x.zarr", "w") as dataset:
        dataset.createVariable("temp", "f4")
    with pytest.raises(KeyError, match="there is a variable, not a group"):
        xr.open_dataset(tmp_path / "x.zarr", engine="omnizarr", group="temp")


def test_engine_reads_from_a_server_that_cannot_list(http_server, tmp_path):
    place = http_server.fresh()
    with netcdf.Dataset(place.directory / "x.zarr", "w") as dataset:
        define(dataset, "D")
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as theirs:
        define(theirs, "D")
    with xr.open_dataset(f"{place.url}/x.zarr", engine="omnizarr", storage_options=place.options) as found:
        check(found, xr.open_dataset(tmp_path / "x.nc", engine="netcdf4"))


# -- xarray's own store --------------------------------------------------------------------


@pytest.mark.parametrize("group", [None, "inner/most"])
def test_netcdf4_data_store_takes_a_dataset(both, group):
    ours, theirs, _ = both
    with netcdf.Dataset(ours) as dataset:
        expected = NetCDF4DataStore(netCDF4.Dataset(theirs), group=group)
        found = NetCDF4DataStore(dataset, group=group)
        check(xr.open_dataset(found), xr.open_dataset(expected))
        assert xr.open_dataset(found).encoding["unlimited_dims"] == found.get_encoding()["unlimited_dims"]
        if group:
            check(xr.open_dataset(NetCDF4DataStore(dataset[group])), xr.open_dataset(expected))


def test_netcdf4_data_store_reads_lazily_and_by_dask(both):
    ours, theirs, _ = both
    with netcdf.Dataset(ours) as dataset:
        found = xr.open_dataset(NetCDF4DataStore(dataset), chunks={})
        expected = xr.open_dataset(theirs, engine="netcdf4")
        xr.testing.assert_identical(found["level"][:, ::2].compute(), expected["level"][:, ::2].compute())
        xr.testing.assert_identical(found["level"][:, [2, 0]].compute(), expected["level"][:, [2, 0]].compute())
        xr.testing.assert_identical(pickle.loads(pickle.dumps(found))["crs"].load(), expected["crs"].load())


def test_closing_what_xarray_opened_closes_the_dataset(both):
    dataset = netcdf.Dataset(both[0])
    with xr.open_dataset(NetCDF4DataStore(dataset)):
        assert dataset.isopen()
    assert not dataset.isopen()


PACKED = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -9}
ROUNDED = {"zlib": True, "significant_digits": 3, "_FillValue": None}


def sample():
    times = np.array(["2000-01-01", "2000-01-02T12"], "M8[ns]")
    return xr.Dataset(
        {
            "t": (("time", "x"), np.array([[1, np.nan, 3], [4, 5, 6]], "f4"), {"units": "K"}, {"_FillValue": -1}),
            "packed": (
                ("x",),
                np.array([0.5, np.nan, 1.5]),
                {},
                {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -9},
            ),
            "flag": (("x",), np.array([True, False, True])),
            "fixed": (("x",), np.array([b"ab", b"c", b"def"])),
            "rounded": (
                ("x",),
                np.array([1.11111, 2, 3], "f4"),
                {},
                {"zlib": True, "significant_digits": 3, "_FillValue": None},
            ),
            "number": ((), 5),
        },
        coords={"time": ("time", times), "x": [1, 2, 3]},
        attrs={"title": "written", "half": np.float32(0.5)},
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_xarray_writes_through_its_own_store(tmp_path, layout):
    made = sample()
    if layout not in WITHOUT_STRINGS:
        made["words"] = ("x", np.array(["a", "Größe", ""], object))
        made.attrs |= {"unit": "°C", "list": ["a", "b"]}
    unlimited = () if layout in WITHOUT_UNLIMITED else ("time",)
    with (
        netcdf.Dataset(tmp_path / "x.zarr", "w", layout=layout) as ours,
        netCDF4.Dataset(tmp_path / "x.nc", "w") as theirs,
    ):
        for dataset in (ours, theirs):
            made.dump_to_store(NetCDF4DataStore(dataset), unlimited_dims=unlimited)
    with xr.open_dataset(tmp_path / "x.nc", engine="netcdf4") as expected:
        expected.load()
    with xr.open_dataset(tmp_path / "x.zarr", engine="omnizarr") as found:
        xr.testing.assert_identical(found.load(), expected)
    with netcdf.Dataset(tmp_path / "x.zarr") as dataset:
        xr.testing.assert_identical(xr.open_dataset(NetCDF4DataStore(dataset)).load(), expected)


def test_xarray_writes_into_a_group(tmp_path):
    made = sample()
    with netcdf.Dataset(tmp_path / "x.zarr", "w") as dataset:
        made.dump_to_store(NetCDF4DataStore(dataset, group="a/b", mode="w"))
    with xr.open_dataset(tmp_path / "x.zarr", engine="omnizarr", group="a/b") as found:
        xr.testing.assert_allclose(found.load(), made, rtol=1e-3)
    assert isinstance(omnizarr.open(tmp_path / "x.zarr")["a/b/t"], omnizarr.Array)
