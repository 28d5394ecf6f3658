"""Arrays whose elements may be missing, converted to netCDF files; netCDF4-python reads them."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

import omnizarr
from omnizarr import netcdf
from omnizarr.errors import NotRepresentableError


def stored(values, dtype, **options):
    """Return a hierarchy with one array."""
    place = {}
    root = omnizarr.create_group(place)
    root.create_array("a", data=values, dtype=f"optional[{dtype}]", dimension_names=["x"], **options)
    return place


def masked(*values):
    return np.ma.MaskedArray([0 if value is None else value for value in values], [value is None for value in values])


LARGEST = 9.9692099683868690e36
CASES = {
    "int64": (masked(2**62 + 1, None, -5), "int64", {}, -9223372036854775806),
    "uint8": (masked(0, None, 7), "uint8", {}, 255),
    "the default is taken": (masked(-127, None, -128), "int8", {}, 127),
    "own": (masked(5, None, 6), "int16", {"attributes": {"_FillValue": 3}}, 3),
    "own, and taken": (masked(5, None, 6), "int16", {"attributes": {"_FillValue": 5}}, -32768),
    "NaN is a value": (masked(float("nan"), None, 1.5), "float64", {}, LARGEST),
    "float16": (masked(1.5, None, 0), "float16", {}, np.float32(LARGEST)),
    "both are values": (masked(float("nan"), None, LARGEST), "float64", {}, -np.finfo("f8").max),
    "scaled": (masked(5, None, 6), "int16", {"attributes": {"scale_factor": 0.5}}, -32767),
}


@pytest.mark.parametrize("name", CASES)
def test_missing_elements_get_a_value_that_no_other_has(name, tmp_path):
    values, dtype, options, fill = CASES[name]
    report = omnizarr.convert(stored(values, dtype, **options), tmp_path / "a.nc", strict=True)
    assert any("may be missing" in each for node in report.nodes for each in node.remarks)
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        found, variable = file["a"][:], file["a"]
        assert variable.dimensions == ("x",)
        assert variable._FillValue == fill
        assert np.ma.getmaskarray(found).tolist() == values.mask.tolist()
        factor = options.get("attributes", {}).get("scale_factor", 1)
        np.testing.assert_array_equal(found.compressed(), values.compressed() * factor)
    with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as dataset:
        assert np.isnan(dataset["a"].values[1])


@pytest.mark.parametrize(("texts", "fill"), [(["a", None, "b"], ""), (["", None, "b"], "NA")])
def test_missing_text_gets_a_text_that_no_other_is(texts, fill, tmp_path):
    omnizarr.convert(stored(texts, "string"), tmp_path / "a.nc", strict=True)
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["a"][:].tolist() == [fill if text is None else text for text in texts]
        assert file["a"]._FillValue == fill


def test_what_no_fill_value_can_mean_is_left_out_with_the_reason(tmp_path):
    place = stored(masked(*range(256), None), "uint8")
    omnizarr.open_group(place, mode="r+").create_array("b", data=[True, None], dtype="optional[bool]")
    with pytest.raises(NotRepresentableError):
        omnizarr.convert(place, tmp_path / "a.nc", strict=True)
    report = omnizarr.convert(place, tmp_path / "a.nc")
    told = " ".join(loss.why for node in report.nodes for loss in node.losses)
    assert "all values of the type" in told
    assert "missing elements of bool" in told
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert not file.variables


@pytest.mark.parametrize(("dtype", "first"), [("uint8", 0), ("int8", -128)])
def test_all_values_of_a_small_type_are_kept_if_none_is_missing(dtype, first, tmp_path):
    values = list(range(first, first + 256))
    place = stored(np.ma.MaskedArray(values, False), dtype, attributes={"units": "K"})
    report = omnizarr.convert(place, tmp_path / "a.nc", strict=True)
    assert any("no _FillValue is written" in each for node in report.nodes for each in node.remarks)
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        file.set_auto_mask(False)  # or it masks the default fill value of netCDF
        assert (file["a"][:].tolist(), file["a"].ncattrs()) == (values, ["units"])


def test_variables_of_the_library_are_masked_arrays():
    place = stored(masked(5, None, 6), "int32")
    with netcdf.Dataset(place, "r+") as dataset:
        variable = dataset["a"]
        assert variable[:].tolist() == [5, None, 6]
        assert (variable[0], variable[1] is np.ma.masked) == (5, True)
        variable[:2] = masked(None, 8)
    assert omnizarr.open_array(place, path="a")[...].tolist() == [None, 8, 6]


def test_elements_that_look_as_if_they_were_missing_are_said_when_they_are_read(tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    values = np.ma.array(np.array([255, 254, 1], "u1"), mask=[0, 0, 1])
    root.create_array("a", data=values, dtype="optional[uint8]", dimension_names=["x"])
    with netcdf.Dataset(tmp_path / "x.zarr") as dataset:
        with pytest.warns(UserWarning, match="look as if they were missing"):
            assert dataset["a"][:].tolist() == [None, 254, None]
        assert dataset["a"][1:].tolist() == [254, None]


def test_the_remark_of_text_without_missing_elements_names_no_mask(tmp_path):
    place = stored(np.array(["", "NA", "<NA>", "missing"], object), "string")
    report = omnizarr.convert(place, tmp_path / "a.nc", strict=True)
    (remark,) = [each for node in report.nodes for each in node.remarks if "no _FillValue is written" in each]
    assert "masks" not in remark
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["a"][:].tolist() == ["", "NA", "<NA>", "missing"]
