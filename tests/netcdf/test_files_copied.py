"""Conversions of netCDF and HDF5 files: chunks that are copied unchanged, and only what is stored."""

from concurrent.futures import ThreadPoolExecutor

import h5py
import netCDF4
import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.netcdf import files

FAR = 10**15


@pytest.fixture
def chunked(tmp_path):
    """A file of whole chunks, of chunks that the edge cuts, and of an unlimited dimension."""
    values = np.arange(30 * 50).reshape(30, 50)
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as ds:
        ds.createDimension("t", None)
        ds.createDimension("x", 50)
        ds.createVariable("whole", "f4", ("t", "x"), zlib=True, chunksizes=(10, 25))[:] = values
        ds.createVariable("cut", "i2", ("t", "x"), zlib=True, chunksizes=(7, 20))[:] = values
        ds.createVariable("plain", "i4", ("t", "x"), chunksizes=(10, 25))[:] = values
    return tmp_path / "x.nc", values


def test_whole_chunks_are_copied_byte_for_byte(chunked, tmp_path):
    path, values = chunked
    done = omnizarr.convert(path, tmp_path / "x.zarr", zarr_format=2)
    assert {each.path: each.how for each in done.nodes if each.node_type == "array"} == {
        "whole": "copied", "cut": "encoded", "plain": "copied",
    }  # fmt: skip
    with h5py.File(path) as file:
        stored = {name: file[name].id.read_direct_chunk((0, 0))[1] for name in ("whole", "cut", "plain")}
    for name, chunk in stored.items():
        assert (tmp_path / "x.zarr" / name / "0.0").read_bytes() == chunk
        np.testing.assert_array_equal(omnizarr.open(tmp_path / "x.zarr")[name][...], values)


def test_what_the_edge_cuts_is_filled_beyond_it(chunked, tmp_path):
    path, values = chunked
    omnizarr.convert(path, tmp_path / "x.zarr", zarr_format=2)
    with netcdf.Dataset(tmp_path / "x.zarr", "a") as ds:
        ds["whole"][34] = 0
        assert ds["cut"].shape == (35, 50)
        assert ds["cut"][30:].mask.all()
        np.testing.assert_array_equal(ds["cut"][:30], values)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_vast_dataset_takes_the_time_of_what_is_stored(tmp_path, zarr_format, libver):
    with h5py.File(tmp_path / "x.h5", "w", libver=libver) as file:
        dataset = file.create_dataset("v", (FAR,), "u1", chunks=(1,), maxshape=(None,))
        for at in (0, 77, 10**6):
            dataset[at] = 1
        file.create_dataset("w", (FAR,), "f8")
    assert omnizarr.convert(tmp_path / "x.h5", tmp_path / "x.zarr", zarr_format=zarr_format).is_lossless
    found = omnizarr.open(tmp_path / "x.zarr")
    assert found["v"].nchunks_initialized == 3
    assert found["v"][[0, 1, 77, 10**6, FAR - 1]].tolist() == [1, 0, 1, 1, 0]
    assert found["w"][FAR - 1] == 0


def test_a_copy_equals_its_file(chunked, tmp_path):
    path, _ = chunked
    for target in ("x.zarr", f"file://{tmp_path}/nczarr.zarr#mode=nczarr"):
        place = tmp_path / target if "/" not in target else target
        omnizarr.convert(path, place)
    for target in ("x.zarr", "nczarr.zarr"):
        for sides in ((path, tmp_path / target), (tmp_path / target, path)):
            found = omnizarr.diff(*sides)
            assert found.equal, str(found)
            assert "NCZarr" in str(found)
    with netcdf.Dataset(tmp_path / "x.zarr", "a") as ds:
        ds["plain"].units = "m"
    assert not omnizarr.diff(path, tmp_path / "x.zarr").equal


def test_types_that_netcdf_lacks_are_told_or_converted(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["half"] = np.array([0.5, np.nan, 65504], "f2")
        file["to"] = np.array([file["half"].ref], h5py.ref_dtype)
        h5py.h5d.create(file.id, b"bits", h5py.h5t.STD_B8LE, h5py.h5s.create_simple((2,)))
    done = omnizarr.convert(tmp_path / "x.h5", tmp_path / "x.zarr")
    assert not done.losses
    remarks = {each.path: " ".join(each.remarks) for each in done.nodes}
    for name, word in {"half": "float16", "to": "references", "bits": "bits"}.items():
        assert word in remarks[name]
    found = omnizarr.open(tmp_path / "x.zarr")
    np.testing.assert_array_equal(found["half"][...], np.array([0.5, np.nan, 65504], "f4"))
    assert found["to"][...].tolist() == ["/half"]
    assert found["bits"][...].tolist() == [0, 0]


def test_files_are_read_by_several_threads(chunked):
    path, values = chunked
    with files.open_file(path) as source, ThreadPoolExecutor(4) as pool:
        parts = [(slice(at, at + 3), slice(0, 50)) for at in range(0, 30, 3)]
        for part, found in zip(parts, pool.map(lambda part: source.read("/whole", part), parts), strict=True):
            np.testing.assert_array_equal(found, values[part])
