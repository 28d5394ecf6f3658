"""Libraries that make one array of many on top of zarr-python: xarray, dask, and VirtualiZarr."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import zarr

from benchmarks import data
from benchmarks.peers.contract import Peer
from benchmarks.workloads import AnyArray

HINTS = {"concat_dim": data.DIMENSIONS[0], "combine": "nested", "data_vars": "minimal", "coords": "minimal",
         "compat": "override", "join": "override"}  # fmt: skip
"""What spares xarray comparisons of the files: they fit together."""


class Xarray(Peer):
    """`open_mfdataset`, told that the files fit together; their metadata are consolidated."""

    def __init__(self) -> None:
        import xarray

        self._open: Any = xarray.open_mfdataset

    def version(self) -> str:
        return f"{version('xarray')} with zarr-python {zarr.__version__}"

    def join(self, paths: list[Path]) -> Any:
        return self._open([str(path) for path in paths], engine="zarr", consolidated=True, **HINTS)[data.VARIABLE]

    def joined_region(self, joined: Any, slices: tuple[slice, ...]) -> AnyArray:
        values: AnyArray = joined[slices].values
        return values


class Dask(Peer):
    """`dask.array.concatenate`, with threads."""

    def __init__(self) -> None:
        import dask.array

        self._dask: Any = dask.array

    def version(self) -> str:
        return f"{version('dask')} with zarr-python {zarr.__version__}"

    def join(self, paths: list[Path]) -> Any:
        opened = (zarr.open_array(path / data.VARIABLE, mode="r") for path in paths)  # from_zarr(path) takes longer
        return self._dask.concatenate([self._dask.from_zarr(array) for array in opened])

    def joined_region(self, joined: Any, slices: tuple[slice, ...]) -> AnyArray:
        values: AnyArray = joined[slices].compute(scheduler="threads")
        return values


class VirtualiZarr(Peer):
    """Virtual datasets, joined by xarray, and read by zarr-python from the manifest of their chunks."""

    def __init__(self) -> None:
        import virtualizarr
        from obspec_utils.registry import ObjectStoreRegistry
        from obstore.store import LocalStore
        from virtualizarr import manifests, parsers

        self._virtualizarr: Any = virtualizarr
        self._manifests: Any = manifests
        self._parsers: Any = parsers
        self._registry = ObjectStoreRegistry({"file://": LocalStore()})

    def version(self) -> str:
        return f"{version('virtualizarr')} with zarr-python {zarr.__version__}"

    def join(self, paths: list[Path]) -> Any:
        dataset = self._virtualizarr.open_virtual_mfdataset(
            [f"file://{path}" for path in paths], registry=self._registry, parser=self._parsers.ZarrParser(), **HINTS
        )
        group = self._manifests.ManifestGroup(arrays={data.VARIABLE: dataset[data.VARIABLE].data})
        store = self._manifests.ManifestStore(group, registry=self._registry)
        return zarr.open_group(store, mode="r")[data.VARIABLE]

    def region(self, array: Any, slices: tuple[slice, ...]) -> AnyArray:
        result: AnyArray = array[slices]
        return result
