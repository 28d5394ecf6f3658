"""The packages that use zarr-python, unchanged, for comparison."""

from __future__ import annotations

from tests.downstream.suite import Suite

_MARK = "fails with zarr-python too: the mark skip_if_param is in a conftest that is not installed"
_NETWORK = "fails with zarr-python too where there is no network"

FAIL_TOO = {
    "dask": {"::test_zarr_risky_shards_warns": "fails with zarr-python too: dask's own configuration is missing"},
    "xarray": {
        "::test_indexing[*sel-Variable]": _MARK,
        "::test_hidden_zarr_keys[3]": _MARK,
        "::test_dimension_names[2]": _MARK,
        "::test_zarr_fill_value_in_encoding_on_read[2]": _MARK,
        "::test_shard_encoding_with_dask[2]": f"{_MARK}; Zarr v2 has no shards",
        "::TestDataArrayToZarr::*ZipStore]": "fails with zarr-python too: an archive opened for reading is written",
    },
    "ome-zarr": {
        "::test_s3_info*": _NETWORK,
        "::test_class_reader*": _NETWORK,
    },
    "zarr": {"test_examples.py::test_scripts_can_run*": "fails with zarr-python too: it runs uv"},
}
"""Tests that fail here in every configuration, by package."""

SUITES = (
    Suite("dask.array as it is", "dask", ("dask.array.tests.test_array_core",), installed=True, options=("-k", "zarr")),
    Suite("xarray as it is", "xarray", ("xarray.tests.test_backends",), installed=True, options=("-k", "zarr or Zarr")),
    Suite("ome-zarr as it is", "ome-zarr", ("tests",)),
    Suite("anndata as it is", "anndata", ("tests",), options=("-k", "zarr")),
    # `addopts` name plugins of pytest; the benchmarks need one. Names of tests hold the addresses of functions, which
    # differ from worker to worker.
    Suite("zarr-python as it is", "zarr", ("tests",), options=("-o", "addopts=", "--ignore=tests/benchmarks", "-n0")),
)
