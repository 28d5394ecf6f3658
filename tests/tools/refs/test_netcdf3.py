"""References to the records of netCDF-3 files, which lie between each other, and to data that are not divided."""

import json

import numpy as np
import pytest

import omnizarr

netcdf4 = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")


def make(path, records, start=0):
    """Store a[time, x], b[time], and time, with records; and c[x] without."""
    with netcdf4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        file.createDimension("x", 5)
        steps = np.arange(start, start + records)
        for name, dtype, dims in (("a", "f4", ("time", "x")), ("b", "i1", ("time",)), ("time", "f8", ("time",))):
            values = steps[:, None] * 10 + np.arange(5) if dims[1:] else steps
            file.createVariable(name, dtype, dims)[:] = values
        file["time"].units = "days since 2000-01-01"
        file.createVariable("c", "i2", ("x",))[:] = np.arange(5)
    with netcdf4.Dataset(path) as file:
        file.set_auto_mask(False)
        return {name: variable[...] for name, variable in file.variables.items()}


@pytest.mark.parametrize("ending", ["json", "parq"])
def test_each_record_of_several_variables_is_a_chunk(tmp_path, ending):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("kerchunk", reason="kerchunk is not installed")
    values = make(tmp_path / "a.nc", 7)
    made = omnizarr.references(tmp_path / "a.nc", tmp_path / f"r.{ending}")
    assert {each.path: each.chunks for each in made.arrays} == {"a": 7, "b": 7, "time": 7, "c": 1}
    group = omnizarr.open(tmp_path / f"r.{ending}")
    assert group["a"].chunks == (1, 5)
    for name, expected in values.items():
        np.testing.assert_array_equal(group[name][...], expected)
    with (
        xr.open_dataset(str(tmp_path / f"r.{ending}"), engine="kerchunk") as dataset,
        xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as expected,
    ):
        xr.testing.assert_identical(dataset.load(), expected.load())


def test_kerchunk_finds_the_same_places(tmp_path):
    kerchunk = pytest.importorskip("kerchunk.netCDF3", reason="kerchunk is not installed")
    pytest.importorskip("scipy", reason="kerchunk needs scipy to read netCDF-3")
    make(tmp_path / "a.nc", 7)
    omnizarr.references(tmp_path / "a.nc", tmp_path / "r.json")
    own = json.loads((tmp_path / "r.json").read_text())["refs"]
    other = kerchunk.NetCDF3ToZarr(str(tmp_path / "a.nc"), inline_threshold=0).translate()["refs"]
    places = {key: value[1:] for key, value in other.items() if isinstance(value, list)}
    assert places
    assert {key: own[key][1:] for key in places} == places


def test_files_become_one(tmp_path):
    parts = [make(tmp_path / f"{start}.nc", count, start) for start, count in ((0, 7), (7, 4))]
    sources = [tmp_path / "0.nc", tmp_path / "7.nc"]
    made = omnizarr.references(sources, tmp_path / "r.json", along="time")
    assert {each.path: each.chunks for each in made.arrays}["a"] == 11
    group = omnizarr.open(tmp_path / "r.json")
    for name in ("a", "b", "time"):
        np.testing.assert_array_equal(group[name][...], np.concatenate([each[name] for each in parts]))


def test_icechunk_refers_to_records(tmp_path):
    icechunk = pytest.importorskip("icechunk", reason="icechunk is not installed")
    zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")
    values = make(tmp_path / "a.nc", 3)
    omnizarr.references(tmp_path / "a.nc", f"icechunk://{tmp_path}/repo@main")
    repository = icechunk.Repository.open(
        icechunk.local_filesystem_storage(str(tmp_path / "repo")),
        authorize_virtual_chunk_access={f"file://{tmp_path}/": None},
    )
    group = zarr.open(repository.readonly_session("main").store, mode="r")
    np.testing.assert_array_equal(group["a"][...], values["a"])


def test_data_that_no_division_fits_are_divided_otherwise(tmp_path, monkeypatch):
    """The last chunk would end behind the data: Zarr has no shorter one that is not compressed."""
    monkeypatch.setattr("omnizarr.stores.manifests.manifest._MOST_BYTES", 40)
    values = np.arange(45, dtype="i4").reshape(9, 5)
    with netcdf4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        for name, length in (("y", 9), ("z", 7), ("x", 5)):
            file.createDimension(name, length)
        file.createVariable("v", "i4", ("y", "x"))[:] = values
        file.createVariable("w", "i4", ("z", "x"))[:] = values[:7]
    assert omnizarr.open(tmp_path / "a.nc", mode="r")["v"].chunks == (2, 5)
    omnizarr.references(tmp_path / "a.nc", tmp_path / "r.json")
    group = omnizarr.open(tmp_path / "r.json")
    assert (group["v"].chunks, group["w"].chunks) == ((1, 5), (1, 5))
    np.testing.assert_array_equal(group["v"][...], values)
    np.testing.assert_array_equal(group["w"][...], values[:7])
