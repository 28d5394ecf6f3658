"""Write z5.n5.zip and zarr2.n5.zip, with z5py 3.0.2 and zarr-python 2.18.7: ``python make.py``."""

import shutil
import tempfile
from pathlib import Path

import numcodecs
import numpy as np
import z5py
import zarr

HERE = Path(__file__).parent
TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
COMPRESSORS = {
    "raw": None,
    "gzip": numcodecs.GZip(1),
    "zlib": numcodecs.Zlib(1),
    "bzip2": numcodecs.BZ2(1),
    "xz": numcodecs.LZMA(preset=1),
    "blosc": numcodecs.Blosc("zstd", 3, 2),
    "zstd": numcodecs.Zstd(3),
    "lz4": numcodecs.LZ4(),
}


def values(dtype):
    return (np.arange(3 * 5 * 6) % 120 + 1).reshape(3, 5, 6).astype(dtype)


def pairs(names):
    return [(dtype, name) for dtype in TYPES for name in names if dtype in {"int16", "float64"} or name == "gzip"]


with tempfile.TemporaryDirectory() as folder:
    file = z5py.File(f"{folder}/z5/z5.n5", "w")
    for dtype, name in pairs(["raw", "gzip", "bzip2", "xz", "blosc", "lz4", "zstd"]):
        made = file.create_dataset(f"{dtype}/{name}", shape=(3, 5, 6), chunks=(2, 3, 4), dtype=dtype, compression=name)
        made[...] = values(dtype)
        made.attrs["resolution"] = [4, 4, 40]
    root = zarr.open_group(zarr.N5FSStore(f"{folder}/zarr2/zarr2.n5"), mode="w")
    root.attrs["title"] = "a volume"
    for dtype, name in pairs(COMPRESSORS):
        root.create_dataset(f"{dtype}/{name}", data=values(dtype), chunks=(2, 3, 4), compressor=COMPRESSORS[name])
    for name in ("z5", "zarr2"):
        shutil.make_archive(str(HERE / f"{name}.n5"), "zip", f"{folder}/{name}/{name}.n5")
