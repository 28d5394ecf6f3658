"""Attributes that do not fit their variable: the conversion says so, and goes on. xarray says what readers see."""

import itertools

import numpy as np
import pytest
import xarray as xr

import omnizarr
from omnizarr.netcdf import files

CODES = {"i1": 1, "S1": 2, "i2": 3, "i4": 4, "f4": 5, "f8": 6}
"""The types of netCDF-3, with their numbers in files."""
ODD = {
    "double": ("f8", [1e20]),
    "nan": ("f8", [float("nan")]),
    "whole double": ("f8", [-99.0]),
    "int": ("i4", [70000]),
    "text": ("S1", [b"-", b"9"]),
    "empty text": ("S1", []),
    "two": ("i2", [5, 6]),
    "nothing": ("i2", []),
    "byte": ("i1", [-9]),
}
NAMES = ["_FillValue", "missing_value", "valid_range", "scale_factor", "flag_values", "_ARRAY_DIMENSIONS"]
NAMES += ["_nczarr_attr", "_NCProperties", "_Storage", "_nczarr_maxstrlen", "a/b"]


def number(value):
    return value.to_bytes(4, "big")


def padded(raw):
    return raw + b"\0" * (-len(raw) % 4)


def named(name):
    return number(len(name.encode())) + padded(name.encode())


def attribute(name, kind, values):
    raw = np.array(values, f">{kind}" if kind != "S1" else "S1").tobytes()
    return named(name) + number(CODES[kind]) + number(len(values)) + padded(raw)


def classic_file(path, kind, *attributes):
    """Write a file as scipy, old tools and hand-made programs do: netCDF-C would refuse some attributes."""
    data = np.array([1, 2, 3], f">{kind}").tobytes()
    start = b"CDF\x01" + number(0) + number(10) + number(1) + named("x") + number(3) + number(0) * 2
    start += number(11) + number(1) + named("v") + number(1) + number(0)
    start += number(12) + number(len(attributes)) + b"".join(attributes) + number(CODES[kind]) + number(len(data))
    path.write_bytes(start + number(len(start) + 4) + padded(data))
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("kind", "odd"), [*itertools.product(["i1", "i2", "f4"], ODD)])
def test_fill_value_of_any_type_is_kept_with_a_remark(tmp_path, kind, odd, zarr_format):
    of, values = ODD[odd]
    path = classic_file(tmp_path / "x.nc", kind, attribute("_FillValue", of, values))
    done = omnizarr.convert(path, tmp_path / "x.zarr", zarr_format=zarr_format)
    assert not done.losses
    told = [each.path for each in done.nodes if any("_FillValue" in one for one in each.remarks)]
    fits = (
        len(values) == 1 and of != "S1" and (kind == "f4" or values[0] in range(-128 if kind == "i1" else -32768, 128))
    )
    assert told == ([] if fits else ["v"])
    omnizarr.convert(tmp_path / "x.zarr", tmp_path / "again.zarr", zarr_format=zarr_format)
    with files.open_file(path) as source:
        wanted = source.root.variables["v"].attributes
    with omnizarr.netcdf.Dataset(tmp_path / "x.zarr") as ds:
        assert dict(ds.as_source().root.variables["v"].attributes) == dict(wanted)
        ds["v"].set_auto_mask(False)
        assert ds["v"][:].tolist() == [1, 2, 3]
    if zarr_format == 3 or fits:  # xarray opens every file; of v2 it refuses what zarr-python refuses
        with xr.open_zarr(tmp_path / "x.zarr", consolidated=False) as seen:
            assert seen["v"].values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_no_attribute_stops_a_conversion(tmp_path, name, zarr_format):
    for odd, (of, values) in ODD.items():
        path = classic_file(tmp_path / "x.nc", "i2", attribute(name, of, values))
        done = omnizarr.convert(path, tmp_path / f"{odd}.zarr", zarr_format=zarr_format)
        with omnizarr.netcdf.Dataset(tmp_path / f"{odd}.zarr") as ds:
            kept = ds.as_source().root.variables["v"].attributes
        assert name in kept or [each.pointer for each in done.losses] == [f"/attributes/{name}"]
