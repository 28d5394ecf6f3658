"""The packages upon zarr-python, as they are: what to compare with."""

from __future__ import annotations

from tests.downstream.suite import Suite

ZARR = ("tests/test_api.py", "tests/test_array.py", "tests/test_group.py")

SUITES = (
    Suite("dask.array as it is", "dask", ("dask.array.tests.test_array_core",), installed=True, options=("-k", "zarr")),
    Suite("xarray as it is", "xarray", ("xarray.tests.test_backends",), installed=True, options=("-k", "zarr or Zarr")),
    Suite("ome-zarr as it is", "ome-zarr", ("tests",)),
    Suite("anndata as it is", "anndata", ("tests",), options=("-k", "zarr")),
    Suite("zarr-python as it is", "zarr", ("tests",), options=("-o", "addopts=")),  # which name plugins of pytest
)
