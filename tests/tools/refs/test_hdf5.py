"""References to the chunks of HDF5 and netCDF-4 files."""

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NotRepresentableError

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


def make(path, start=0, mask=False):
    """Store t[time, x] in two chunks, compressed with shuffle and zlib; `mask`: the second chunk is not compressed."""
    values = np.arange(start * 4, start * 4 + 40, dtype="f4").reshape(10, 4)
    with h5py.File(path, "w") as file:
        t = file.create_dataset("t", shape=(10, 4), dtype="f4", chunks=(5, 4), compression="gzip", shuffle=True)
        t[...] = values
        if mask:
            t.id.write_direct_chunk((5, 0), values[5:].tobytes(), filter_mask=3)
        for name, data in (("time", np.arange(start, start + 10)), ("x", np.arange(4.0))):
            file[name] = data
            file[name].make_scale(name)
        file["time"].attrs["units"] = "days since 2000-01-01"
        t.dims[0].attach_scale(file["time"])
        t.dims[1].attach_scale(file["x"])
    return values


@pytest.mark.parametrize("ending", ["json", "parq"])
def test_xarray_reads_equal_values_from_the_file(tmp_path, ending):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("kerchunk", reason="kerchunk is not installed")
    values = make(tmp_path / "a.nc")
    made = omnizarr.references(tmp_path / "a.nc", tmp_path / f"r.{ending}", zarr_format=2)
    assert {each.path: (each.chunks, each.files) for each in made.arrays}["t"] == (2, 1)
    np.testing.assert_array_equal(omnizarr.open(tmp_path / f"r.{ending}")["t"][...], values)
    with xr.open_dataset(str(tmp_path / f"r.{ending}"), engine="kerchunk", mask_and_scale=False) as dataset:
        np.testing.assert_array_equal(dataset["t"].values, values)


def test_files_become_one(tmp_path):
    parts = [make(tmp_path / f"{start}.nc", start) for start in (0, 10)]
    omnizarr.references([tmp_path / "0.nc", tmp_path / "10.nc"], tmp_path / "r.json", along="time")
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.json")["t"][...], np.concatenate(parts))


def test_a_chunk_that_skips_filters_is_refused(tmp_path):
    make(tmp_path / "a.nc", mask=True)
    with pytest.raises(NotRepresentableError, match="skips codecs"):
        omnizarr.references(tmp_path / "a.nc", tmp_path / "r.json")
