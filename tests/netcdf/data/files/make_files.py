"""Make the files here that ncgen did not: `python make_files.py`. The rest: see README.md."""

import h5netcdf
import h5py
import netCDF4
import numpy as np
from scipy.io import netcdf_file

with netCDF4.Dataset("filters.nc", "w") as made:
    made.createDimension("x", 128)
    for name, options in {
        "zlib": {"compression": "zlib", "complevel": 3, "shuffle": True, "fletcher32": True},
        "plain_zlib": {"compression": "zlib", "complevel": 9, "shuffle": False},
        "zstd": {"compression": "zstd", "complevel": 4},
        "bzip2": {"compression": "bzip2", "complevel": 5},
        "blosc": {"compression": "blosc_lz4", "complevel": 6, "blosc_shuffle": 1},
        "szip": {"compression": "szip", "szip_coding": "ec", "szip_pixels_per_block": 8},
        "groom": {"significant_digits": 3, "quantize_mode": "BitGroom"},
        "round": {"significant_digits": 9, "quantize_mode": "BitRound"},
    }.items():
        made.createVariable(name, "f4", ("x",), chunksizes=(64,), **options)[:] = np.arange(128) // 16

with netcdf_file("scipy.nc", "w", version=2) as made:
    made.title = b"Made by SciPy\0"
    made.createDimension("time", None)
    made.createDimension("x", 3)
    made.createVariable("t", "i2", ("time", "x"))[:] = np.arange(6).reshape(2, 3)
    made.createVariable("c", "c", ("x",))[:] = np.array([b"a", b"", b"\xff"], "S1")

with h5netcdf.File("h5netcdf.nc", "w") as made:
    made.attrs["text"] = "Größe"
    made.attrs["number"] = np.int16(7)
    made.dimensions = {"x": 2, "n": None}
    variable = made.create_variable("/g/v", ("x",), "<u4", data=np.array([1, 4294967295], "u4"))
    variable.attrs["units"] = "m"
    made.resize_dimension("n", 3)
    made.create_variable("grow", ("n",), "f8", fillvalue=-1.0)[:2] = [0.5, 1.5]

with h5py.File("plain.h5", "w", userblock_size=1024) as made:
    made["numbers"] = np.arange(6, dtype=">i4").reshape(2, 3)
    made["flag"] = np.array([True, False])
    made["pair"] = np.array([1 + 2j], "c8")
    made["half"] = np.zeros(2, "f2")
    made["names"] = np.array([b"abc", b"de"], "S5")
    made["numbers"].attrs["fixed"] = np.array([b"ab", b"c"], "S4")
    made["numbers"].attrs["scalar"] = np.float32(0.5)
    made["numbers"].attrs["flag"] = True
