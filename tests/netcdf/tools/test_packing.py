"""Packed variables whose attributes are float: the report gives the digits that readers of the copy unpack."""

import itertools
import re
import warnings

import netCDF4
import numpy as np
import pytest
import xarray as xr

import omnizarr
from omnizarr import netcdf

TYPES = (None, "f4", "f8", "i2")
STORED = ("i1", "u1", "i2", "i4", "i8", "f4", "f8")
CASES = [
    f"{stored}_{factor}_{offset}"
    for stored, factor, offset in itertools.product(STORED, TYPES, TYPES)
    if "f4" in {factor, offset}
]
PLAIN = ["i2_f8_None", "i2_None_f8", "f4_f8_f8"]
TOLD = re.compile(
    r"[a-z_ ]+ becomes? double: for (?P<who>.+), a stored (?P<stored>\S+) is (?P<new>\S+) \((?P<after>\w+)\), "
    r"in the file (?P<old>\S+) \((?P<before>\w+)\)"
)
TARGETS = {
    "v2": ("new.zarr", 2),
    "v3": ("new.zarr", 3),
    "for netCDF-C": ("file://{}/new.zarr#mode=nczarr", 2),
    "pure v2": ("file://{}/new.zarr#mode=zarr", 2),
    "pure v3": ("file://{}/new.zarr#mode=zarr,v3", 3),
}


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Return a file with a variable of each case, which holds the numbers from 1 to 127."""
    path = tmp_path_factory.mktemp("packed") / "packed.nc"
    with netCDF4.Dataset(path, "w") as made:
        made.createDimension("x", 127)
        for name in CASES + PLAIN:
            stored, factor, offset = name.split("_")
            variable = made.createVariable(name, stored, ("x",))
            variable.set_auto_maskandscale(False)
            if factor != "None":
                variable.scale_factor = np.dtype(factor).type(0.01 if factor[0] == "f" else 3)
            if offset != "None":
                variable.add_offset = np.dtype(offset).type(273.15)
            variable[:] = np.arange(1, 128).astype(stored)
    return path


def with_netcdf4(path):
    with netCDF4.Dataset(path) as opened:
        return {name: np.asarray(opened[name][:]) for name in CASES + PLAIN}


def with_omnizarr(path):
    with netcdf.Dataset(path) as opened:
        return {name: np.asarray(opened[name][:]) for name in CASES + PLAIN}


def with_xarray(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(path, **options) as opened:
            return {name: opened[name].values for name in CASES + PLAIN}


@pytest.mark.parametrize("target", TARGETS)
def test_the_report_says_for_each_reader_what_it_unpacks_otherwise(packed, tmp_path, target):
    url, zarr_format = TARGETS[target]
    done = omnizarr.convert(packed, url.format(tmp_path) if ":" in url else tmp_path / url, zarr_format=zarr_format)
    place = tmp_path / "new.zarr"
    kept = "pure" not in target
    by_xarray = with_xarray(place, engine="zarr", consolidated=False)
    seen = {
        'xarray with engine="zarr"' if kept else "xarray": (with_xarray(packed, engine="netcdf4"), by_xarray),
        "netCDF4-python": (with_netcdf4(packed), with_omnizarr(place)),
    }
    told = {
        node.path: {each["who"]: each for text in node.remarks if (each := TOLD.fullmatch(text))} for node in done.nodes
    }
    for name in CASES + PLAIN:
        for who, (before, after) in seen.items():
            old, new = before[name], after[name]
            said = told[name].pop(who, None)
            is_same = old.dtype == new.dtype and np.array_equal(old, new)
            assert is_same == (said is None), (name, who)
            if is_same:
                continue
            at = int(float(said["stored"])) - 1
            assert (said["before"], said["after"]) == (old.dtype, new.dtype)
            assert (said["old"], said["new"]) == (str(old[at]), str(new[at]))
            assert old[at] != new[at] or np.array_equal(old, new), (name, who)
        assert told[name] == {}


def test_the_engine_of_omnizarr_unpacks_as_before(packed, tmp_path):
    omnizarr.convert(packed, tmp_path / "new.zarr")
    new, old = with_xarray(tmp_path / "new.zarr", engine="omnizarr"), with_xarray(packed, engine="netcdf4")
    for name in CASES + PLAIN:
        np.testing.assert_array_equal(old[name], new[name], strict=True)


def test_a_packing_that_no_reader_applies_is_not_mentioned(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as made:
        made.createDimension("x", 3)
        made.createVariable("several", "i2", ("x",)).scale_factor = np.array([0.1, 0.2], "f4")
        made.createVariable("text", "S1", ("x",)).scale_factor = np.float32(0.1)
    done = omnizarr.convert(tmp_path / "a.nc", tmp_path / "a.zarr", dry_run=True)
    assert "double" not in str(done)


@pytest.mark.parametrize("mode", ["BitGroom", "GranularBitRound", "BitRound"])
def test_a_conversion_neither_rounds_nor_packs_again(tmp_path, mode):
    values = np.random.default_rng(3).normal(280, 9, 500).astype("f4")
    name = f"_Quantize{mode}NumberOfSignificant{'Bits' if mode == 'BitRound' else 'Digits'}"
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as made:
        made.createDimension("x", 500)
        variable = made.createVariable("v", "f4", ("x",))
        variable.setncattr(name, np.int32(3))  # as programs write it that round by themselves, or not at all
        variable.least_significant_digit = 1
        variable.set_auto_maskandscale(False)
        variable[:] = values
        variable.scale_factor = 0.1
    for source, target in (("old.nc", "new.zarr"), ("new.zarr", "back.nc")):
        done = omnizarr.convert(tmp_path / source, tmp_path / target)
        assert (done.losses, done.verified) == ((), True)
    assert omnizarr.open(tmp_path / "new.zarr")["v"][:].tobytes() == values.tobytes()
    with netCDF4.Dataset(tmp_path / "back.nc") as made:
        made.set_auto_maskandscale(False)
        assert made["v"][:].tobytes() == values.tobytes()
