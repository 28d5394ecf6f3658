"""The packages that use zarr-python, with omnizarr under the name zarr (`omnizarr_as_zarr`)."""

from __future__ import annotations

from tests.downstream.suite import Suite
from tests.downstream.themselves import FAIL_TOO

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

_REQUESTS = "counts requests: omnizarr reads a document again before it changes it, to keep what others have written"

KNOWN_IN_XARRAY = {
    **FAIL_TOO["xarray"],
    "::test_avoid_excess_metadata_calls*": "counts calls of AsyncGroup.getitem, through which groups do not go here",
    "::TestInstrumentedZarrStore::test_region_write": _REQUESTS,
    "::TestInstrumentedZarrStore::test_append": f"{_REQUESTS}, and to renew its copy in consolidated metadata",
    "::TestZarrDatatreeIO::test_to_zarr_compute_false[zarr_format=2]": (
        "zeros are stored where the fill value is undefined"
    ),
}
KNOWN_IN_OME_ZARR = {
    **FAIL_TOO["ome-zarr"],
    "::test_astronaut_download[V04]": "expects a .zattrs of each array; none is written where there are no attributes",
    "::test_write_multiscale_labels_storage_options[V05*": (
        "asks whether arrays have `dimension_names`, which those of zarr-python have not, and expects names that it "
        "did not give"
    ),
}

_FEWER = "counts requests: an array is asked for fewer documents here"
KNOWN_IN_ANNDATA = {
    "::test_data_access[*": _FEWER,
    "::test_lazy_array_cache[*": _FEWER,
}

SUITES = (
    Suite(
        "dask.array, zarr is omnizarr",
        "dask",
        ("dask.array.tests.test_array_core",),
        plugin=PLUGIN,
        is_named=True,
        installed=True,
        options=("-k", "zarr"),
        known=FAIL_TOO["dask"],
    ),
    Suite(
        "xarray, zarr is omnizarr",
        "xarray",
        XARRAY,
        plugin=PLUGIN,
        is_named=True,
        installed=True,
        options=("-k", "zarr or Zarr"),
        known=KNOWN_IN_XARRAY,
    ),
    Suite("ome-zarr, zarr is omnizarr", "ome-zarr", ("tests",), plugin=PLUGIN, is_named=True, known=KNOWN_IN_OME_ZARR),
    Suite(
        "anndata, zarr is omnizarr",
        "anndata",
        ("tests",),
        plugin=PLUGIN,
        is_named=True,
        options=("-k", "zarr"),
        known=KNOWN_IN_ANNDATA,
    ),
)
