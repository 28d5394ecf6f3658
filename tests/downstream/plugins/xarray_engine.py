"""A plugin of pytest: xarray's tests open by omnizarr's engine what they open by ``zarr``, and write by `to_zarr`."""

from __future__ import annotations

from typing import Any

import xarray
import zarr
from xarray.backends import plugins

import omnizarr
from omnizarr.interop.xarray import OmnizarrBackendEntrypoint, to_zarr
from omnizarr.stores import LocalStore
from omnizarr.stores.kinds import foreign


class Engine(OmnizarrBackendEntrypoint):
    """The engine, with the keywords that tests of the engine ``zarr`` give by the way."""

    open_dataset_parameters = (*plugins.detect_parameters(OmnizarrBackendEntrypoint.open_dataset), "mode")

    def open_dataset(self, filename_or_obj: Any, *, mode: str = "r", cache_members: bool = True, **options: Any) -> Any:
        assert mode == "r"
        return super().open_dataset(filename_or_obj, **options)


_get_backend = plugins.get_backend


def get_backend(engine: Any) -> Any:
    return Engine() if engine == "zarr" else _get_backend(engine)


def write(data: Any, *arguments: Any, **options: Any) -> Any:
    """Write as ``data.to_zarr`` does: chunks of dask are checked, as is xarray's default."""
    names = ("store", "mode", "group", "encoding")
    if isinstance(data, xarray.DataTree):
        names = ("store", "mode", "encoding", "consolidated")
    options |= dict(zip(names, arguments, strict=False))
    path = options.get("store", "")
    if isinstance(path, str) and foreign(
        path
    ):  # tests write directories of names such as temp.nc, which omnizarr refuses
        options["store"] = LocalStore(path)
    with omnizarr.config.set({"default_zarr_format": zarr.config.get("default_zarr_format")}):
        return to_zarr(data, **{"safe_chunks": True, **options})


def pytest_configure() -> None:
    plugins.get_backend = get_backend
    for kind in (xarray.Dataset, xarray.DataArray, xarray.DataTree):
        kind.to_zarr = write
