"""HDF5, through h5py and through netCDF4: files of their own with the same values, chunks and filters.

What h5py does not bring itself (blosc, zstd) comes from hdf5plugin, where that is installed. Files stay open: what
is measured is reading and writing, up to the page cache. The cache of decoded chunks is off, as it is for all others.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.data import LEVEL
from benchmarks.peers.contract import Peer, Unsupported, without_cache
from benchmarks.workloads import AnyArray, Dataset


class _Hdf5(Peer):
    """An array is a pair: the file, and the variable in it."""

    def region(self, array: Any, slices: tuple[slice, ...]) -> AnyArray:
        result: AnyArray = array[1][slices]
        return result

    def write(self, array: Any, values: AnyArray) -> None:
        file, variable = array
        variable[...] = values
        (file.flush if hasattr(file, "flush") else file.sync)()

    def close(self, array: Any) -> None:
        array[0].close()


def _check(dataset: Dataset) -> None:
    if dataset.shards:
        raise Unsupported("no shards")


class H5py(_Hdf5):
    """h5py."""

    def __init__(self) -> None:
        import h5py

        self._h5py = h5py

    def version(self) -> str:
        return f"{self._h5py.__version__}, HDF5 {self._h5py.version.hdf5_version}"

    def create(self, dataset: Dataset, path: Path) -> None:
        _check(dataset)
        with self._h5py.File(path, "w") as file:
            file.create_dataset(
                "data", shape=dataset.shape, chunks=dataset.chunks, dtype=dataset.dtype, **self._filters(dataset)
            )

    def _filters(self, dataset: Dataset) -> dict[str, Any]:
        if dataset.codec == "raw":
            return {}
        if dataset.codec == "gzip":
            return {"compression": "gzip", "compression_opts": LEVEL["gzip"]}
        if dataset.codec not in {"zstd", "blosc"}:
            raise Unsupported(f"no {dataset.codec}")
        if find_spec("hdf5plugin") is None:
            raise Unsupported(f"no {dataset.codec} without hdf5plugin")
        import hdf5plugin

        if dataset.codec == "zstd":
            return dict(hdf5plugin.Zstd(clevel=LEVEL["zstd"]))
        return dict(hdf5plugin.Blosc(cname="lz4", clevel=LEVEL["blosc"], shuffle=hdf5plugin.Blosc.SHUFFLE))

    def open(self, path: Path, *, cache: int = 0) -> Any:
        without_cache(cache)
        if find_spec("hdf5plugin") is not None:
            import hdf5plugin  # noqa: F401  (registers its filters)
        file = self._h5py.File(path, "r+", rdcc_nbytes=0)
        return file, file["data"]


class NetCDF4(_Hdf5):
    """netCDF4."""

    def __init__(self) -> None:
        import netCDF4

        self._netcdf4 = netCDF4
        netCDF4.set_chunk_cache(0, 1, 0)

    def version(self) -> str:
        return f"{self._netcdf4.__version__}, HDF5 {self._netcdf4.__hdf5libversion__}"

    def create(self, dataset: Dataset, path: Path) -> None:
        _check(dataset)
        filters: dict[str, dict[str, Any]] = {
            "raw": {"contiguous": False},
            "gzip": {"compression": "zlib", "complevel": LEVEL["gzip"], "shuffle": False},
            "zstd": {"compression": "zstd", "complevel": LEVEL["zstd"], "shuffle": False},
            "blosc": {"compression": "blosc_lz4", "complevel": LEVEL["blosc"], "blosc_shuffle": 1, "shuffle": False},
        }
        if dataset.codec not in filters:
            raise Unsupported(f"no {dataset.codec}")
        with self._netcdf4.Dataset(path, "w") as file:
            names = [f"d{axis}" for axis in range(len(dataset.shape))]
            for name, length in zip(names, dataset.shape, strict=True):
                file.createDimension(name, length)
            try:
                file.createVariable(
                    "data", dataset.dtype, names, chunksizes=dataset.chunks, fill_value=False, **filters[dataset.codec]
                )
            except RuntimeError as error:
                raise Unsupported(f"no {dataset.codec}: {error}")

    def open(self, path: Path, *, cache: int = 0) -> Any:
        without_cache(cache)
        file = self._netcdf4.Dataset(path, "r+")
        variable = file["data"]
        variable.set_auto_maskandscale(False)
        return file, variable
