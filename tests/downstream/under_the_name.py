"""The packages upon zarr-python, with omnizarr under the name zarr (`omnizarr.interop.as_zarr`)."""

from __future__ import annotations

from tests.downstream.suite import Suite

PLUGIN = "named_zarr"

XARRAY = (
    "xarray.tests.test_backends",
    "xarray.tests.test_backends_api",
    "xarray.tests.test_backends_chunks",
    "xarray.tests.test_backends_common",
    "xarray.tests.test_backends_datatree",
    "xarray.tests.test_backends_lru_cache",
    "xarray.tests.test_distributed",
    "xarray.tests.test_plugins",
)

SUITES = (
    Suite(
        "dask.array, zarr is omnizarr",
        "dask",
        ("dask.array.tests.test_array_core",),
        plugin=PLUGIN,
        is_first=True,
        installed=True,
        options=("-k", "zarr"),
    ),
    Suite(
        "xarray, zarr is omnizarr",
        "xarray",
        XARRAY,
        plugin=PLUGIN,
        is_first=True,
        installed=True,
        options=("-k", "zarr or Zarr"),
    ),
    Suite("ome-zarr, zarr is omnizarr", "ome-zarr", ("tests",), plugin=PLUGIN, is_first=True),
    Suite("anndata, zarr is omnizarr", "anndata", ("tests",), plugin=PLUGIN, is_first=True, options=("-k", "zarr")),
)
