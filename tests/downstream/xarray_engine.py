"""xarray's own tests of Zarr, with the engine ``omnizarr`` and `omnizarr.interop.xarray.to_zarr`."""

from __future__ import annotations

from tests.downstream.suite import Suite

TESTS = ("xarray.tests.test_backends", "xarray.tests.test_backends_datatree", "xarray.tests.test_backends_api")
OPTIONS = ("-k", "zarr or Zarr")

SUITES = (
    Suite("xarray backends as they are", "xarray", TESTS, installed=True, options=OPTIONS),
    Suite(
        "xarray, engine omnizarr",
        "xarray",
        TESTS,
        plugin="xarray_engine",
        installed=True,
        options=OPTIONS,
    ),
)
