"""The suites that `make downstream` runs, from the modules beside this one."""

from __future__ import annotations

from importlib import import_module

from tests.downstream.suite import Suite

MODULES = ("themselves", "under_the_name", "zarr_named", "xarray_engine", "pipeline", "netcdf4_named")
"""Each has a tuple `SUITES`."""

SUITES: tuple[Suite, ...] = tuple(
    suite for module in MODULES for suite in import_module(f"tests.downstream.{module}").SUITES
)
