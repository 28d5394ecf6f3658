"""All that shows or unpacks values decodes them in one way: as netCDF4-python does, and in the engine as xarray does.

One table of attributes is written by netCDF4-python to a file, and by xarray to Zarr. What netCDF4-python and xarray
read from the file is the expected result.
"""

import itertools
import json
import warnings
from urllib.parse import urlencode

import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.nodes import showing
from omnizarr.pictures.contents import Style

netCDF4 = pytest.importorskip("netCDF4", reason="no netCDF4-python")  # noqa: N816 - its name
xarray = pytest.importorskip("xarray", reason="no xarray")
viewing = pytest.importorskip("omnizarr.web.viewing", reason="no Starlette")

from tests.web.client import ask  # noqa: E402

NAN = np.nan
CASES = {
    "nothing": ("i2", [1, 2, 3], {}),
    "fill": ("i2", [1, -9, 3], {"_FillValue": np.int16(-9)}),
    "fill NaN": ("f4", [1, NAN, 3], {"_FillValue": np.float32(NAN)}),
    "fill of single precision": ("f4", [1, 1e20, 3], {"_FillValue": np.float32(1e20)}),
    "missing": ("i2", [1, -9, 3], {"missing_value": np.int16(-9)}),
    "missing of single precision": ("f4", [1, 1e20, 3], {"missing_value": np.float32(1e20)}),
    "two missing": ("i2", [1, -9, -8], {"missing_value": np.array([-9, -8], "i2")}),
    "fill and two missing": (
        "i4",
        [7, -9, -8, 3],
        {"_FillValue": np.int32(7), "missing_value": np.array([-9, -8], "i4")},
    ),
    "missing that the type cannot hold": ("u1", [1, 247, 3], {"missing_value": np.int16(-9)}),
    "scale": ("i2", [1, 2, 3], {"scale_factor": 0.1}),
    "offset": ("u1", [1, 2, 3], {"add_offset": -0.5}),
    "scale and offset of single precision": (
        "i2",
        [1, 2, 3],
        {"scale_factor": np.float32(0.25), "add_offset": np.float32(273)},
    ),
    "scale of floats": ("f4", [1, 2, 3], {"scale_factor": 2.0}),
    "scale and fill": ("i2", [1, -9, 3], {"scale_factor": 0.5, "add_offset": 9.0, "_FillValue": np.int16(-9)}),
    "unsigned": ("i1", [1, -1, -128], {"_Unsigned": "true", "_FillValue": np.int8(0)}),
    "unsigned with fill and scale": (
        "i1",
        [1, -1, -128],
        {"_Unsigned": "true", "_FillValue": np.int8(-1), "scale_factor": 0.5},
    ),
    "flags": (
        "u1",
        [0, 1, 2, 9],
        {"flag_values": np.array([0, 1, 2], "u1"), "flag_meanings": "clear cloud snow", "_FillValue": np.uint8(200)},
    ),
}
"""Type, stored values and attributes that netCDF4-python and xarray decode in the same way."""

VALID = {
    "range": ("i2", [-1, 0, 50, 100, 101], {"valid_range": np.array([0, 100], "i2")}),
    "least": ("i2", [-1, 0, 50], {"valid_min": np.int16(0)}),
    "most": ("i2", [-1, 0, 50], {"valid_max": np.int16(10)}),
    "least and most": ("f4", [-1, 0, 50], {"valid_min": np.float32(0), "valid_max": np.float32(10)}),
    "range before least": ("i2", [-1, 0, 50], {"valid_range": np.array([0, 10], "i2"), "valid_min": np.int16(-5)}),
    "of stored values": (
        "i2",
        [-1, 0, 50, 100, 101],
        {"valid_range": np.array([0, 100], "i2"), "scale_factor": 0.5, "add_offset": 10.0},
    ),
    "that the type cannot hold": ("i2", [-1, 0, 50], {"valid_range": np.array([0.5, 10.5])}),
    "of three values": ("i2", [-1, 0, 50], {"valid_range": np.array([0, 10, 20], "i2")}),
    "and NaN": ("f4", [1, 2, NAN], {"valid_range": np.array([0, 1.5], "f4")}),
    "unsigned": (
        "i1",
        [1, -1, -128, -56],
        {"_Unsigned": "true", "valid_range": np.array([2, -56], "i1"), "_FillValue": np.int8(0)},
    ),
    "unsigned with missing": (
        "i2",
        [1, -1, -32768],
        {"_Unsigned": "true", "missing_value": np.int16(-32768), "_FillValue": np.int16(0)},
    ),
}
"""What xarray does not read: these values are data to it, and to our engine."""

FORMATS = (2, 3)


class Both:
    """Stored values with attributes, as variable ``v`` of a netCDF file and of a hierarchy, and those who read them."""

    def __init__(self, folder, case, zarr_format):
        dtype, stored, attributes = case
        self.file, self.place = folder / "v.nc", str(folder / "v.zarr")
        values = np.array(stored, dtype)
        others = dict(attributes)
        with netCDF4.Dataset(self.file, "w") as dataset:
            dataset.createDimension("x", len(values))
            variable = dataset.createVariable("v", dtype, ("x",), fill_value=others.pop("_FillValue", None))
            variable.set_auto_maskandscale(False)
            variable[:] = values
            variable.setncatts(others)
        dataset = xarray.Dataset({"v": (("x",), values, attributes)})
        dataset.to_zarr(self.place, zarr_format=zarr_format, consolidated=False)

    def by_netcdf4(self):
        with netCDF4.Dataset(self.file) as dataset:
            return filled(dataset["v"][:])

    def by_xarray(self):
        with xarray.open_dataset(self.file, engine="netcdf4") as dataset:
            return dataset["v"].values

    def faces(self):
        array = omnizarr.open_group(self.place, mode="r")["v"]
        content = showing.picture_of(array, (), Style(), (80, 20), rgb=None).page.content
        return {
            "netcdf": filled(netcdf.Dataset(self.place)["v"][:]),
            "lazy": array.lazy.unpack()[...],
            "show": content.numbers.values,
            "view": self.by_view(),
            "view's line": self.by_line(),
            "page": self.by_page(array),
        }

    def by_engine(self):
        with xarray.open_dataset(self.place, engine="omnizarr") as dataset:
            return dataset["v"].values

    def asked(self, question, **query):
        app = viewing.viewer(self.place, page=self.page())
        return json.loads(ask(app, f"/api/0/{question}?{urlencode({'path': 'v', **query})}", host="127.0.0.1").body)

    def page(self):
        folder = self.file.parent / "page"
        folder.mkdir(exist_ok=True)
        (folder / "index.html").touch()
        return folder

    def by_view(self):
        found = self.asked("values", select="[[0,99]]")["values"]
        return np.array([NAN if text == "missing" else float(text) for text in found])

    def by_line(self):
        found = self.asked("line", dimension=0, at="[0]")
        assert found["low"] == found["high"]
        return np.array(found["low"], "f8")

    def by_page(self, array):
        """Return what `drawable` of the page makes of stored values; viewer/test/dtypes.test.ts tests that it does."""
        facts, stored = self.asked("info")["array"], array[...]
        meant = stored.view(facts["kind"] + stored.dtype.str[2:]) if facts["kind"] else stored
        numbers = meant.astype("f8")
        low, high = (default if facts[name] is None else facts[name] for name, default in BOUNDS.items())
        hidden = np.isin(numbers, np.array(facts["missing"], "f8")) | (numbers < low) | (numbers > high)
        return np.where(hidden, NAN, numbers * facts["scale"] + facts["offset"])


BOUNDS = {"low": -np.inf, "high": np.inf}


def filled(values):
    return np.ma.filled(values.astype("f8"), NAN)


def check(values, expected, face):
    np.testing.assert_allclose(np.asarray(values, "f8"), np.asarray(expected, "f8"), rtol=1e-7, err_msg=face)


@pytest.mark.parametrize(("name", "zarr_format"), list(itertools.product(CASES, FORMATS)))
def test_all_decode_as_netcdf4_and_xarray_do(name, zarr_format, tmp_path):
    both = Both(tmp_path, CASES[name], zarr_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of attributes that are not used, by all
        expected = both.by_netcdf4()
        check(both.by_xarray(), expected, "xarray")
        for face, values in {**both.faces(), "engine": both.by_engine()}.items():
            check(values, expected, face)


@pytest.mark.parametrize(("name", "zarr_format"), list(itertools.product(VALID, FORMATS)))
def test_values_that_are_not_valid_are_missing_except_in_xarray(name, zarr_format, tmp_path):
    both = Both(tmp_path, VALID[name], zarr_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = both.by_netcdf4()
        for face, values in both.faces().items():
            check(values, expected, face)
        check(both.by_engine(), both.by_xarray(), "engine")


def test_unsigned_integers_that_mean_signed_ones(tmp_path):
    """netCDF4-python does not read this; xarray does."""
    case = ("u1", [1, 255, 128], {"_Unsigned": "false", "_FillValue": np.uint8(0)})
    both = Both(tmp_path, case, 3)
    faces = both.faces()
    check(faces.pop("netcdf"), both.by_netcdf4(), "netcdf")
    check(both.by_xarray(), [1, -1, -128], "xarray")
    for face, values in {**faces, "engine": both.by_engine()}.items():
        check(values, [1, -1, -128], face)


@pytest.mark.parametrize("attributes", [{"missing_value": 1e20}, {"_FillValue": 1e20}, {"missing_value": [1e20, -1]}])
def test_numbers_of_json_are_of_the_type_of_the_array(attributes):
    """JSON has no single precision: 1e20 is the float32 next to it."""
    array = omnizarr.create_array({}, data=np.array([1, 1e20, 3], "f4"), attributes=attributes)
    assert array.lazy.unpack()[...].tolist()[::2] == [1, 3]
    assert np.isnan(array.lazy.unpack()[1])


@pytest.mark.parametrize("value", [255, -1, [255]])
def test_marks_of_unsigned_bytes_are_written_either_way(value):
    array = omnizarr.create_array({}, data=np.array([1, -1], "i1"))
    array.attrs.update({"_Unsigned": "true", "missing_value": value})
    np.testing.assert_array_equal(array.lazy.unpack()[...], [1, NAN])


def test_netcdf_own_fill_value_means_elements_that_were_never_written(tmp_path):
    """But in bytes, where every value may be one, and in xarray, which masks none that no attribute names."""
    place = tmp_path / "a.zarr"
    with netcdf.Dataset(place, "w") as dataset:
        dataset.createDimension("x", 3)
        dataset.createVariable("v", "i4", ("x",))[:2] = [1, 2]
    array = omnizarr.open_group(place, mode="r")["v"]
    assert netcdf.Dataset(place)["v"][:].tolist() == [1, 2, None]
    np.testing.assert_array_equal(array.lazy.unpack()[...], [1, 2, NAN])
    shown = showing.picture_of(array, (), Style(), (80, 20), rgb=None).page.content.numbers.values
    np.testing.assert_array_equal(shown, [1, 2, NAN])


def test_masked_elements_are_stored_as_what_xarray_masks(tmp_path):
    """In v2 that is the fill value of the array, which is no attribute in netCDF."""
    both = Both(tmp_path, CASES["fill"], 2)
    with netcdf.Dataset(both.place, "r+") as dataset:
        assert dataset["v"].ncattrs() == []
        dataset["v"][:2] = np.ma.masked_array([5, 6], [True, False])
    check(both.by_engine(), [NAN, 6, 3], "engine")
