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

_MARK = "fails with zarr-python too: the mark skip_if_param is in a conftest that is not installed"
_NO_ARCHIVE = "to open an archive that is not there is an error at once here, at first use there"
_REQUESTS = "a group is looked for in the formats before v3 too, which takes more requests"

KNOWN_IN_XARRAY = {
    "::test_indexing[*sel-Variable]": _MARK,
    "::test_hidden_zarr_keys[3]": _MARK,
    "::test_dimension_names[2]": _MARK,
    "::test_zarr_fill_value_in_encoding_on_read[2]": _MARK,
    "::test_shard_encoding_with_dask[2]": f"{_MARK}; Zarr v2 has no shards",
    "::TestDataArrayToZarr::*[ZipStore]": "fails with zarr-python too: an archive opened for reading is written",
    "::TestZarrRegionAuto::*ZipStore]": _NO_ARCHIVE,
    "::test_avoid_excess_metadata_calls*": "counts calls of AsyncGroup.getitem, through which groups do not go here",
    "::TestInstrumentedZarrStore::test_append": _REQUESTS,
    "::TestInstrumentedZarrStore::test_region_write": _REQUESTS,
}
KNOWN_IN_DASK = {"::test_zarr_risky_shards_warns": "fails with zarr-python too"}
KNOWN_IN_OME_ZARR = {
    "::test_write_multiscale_labels_storage_options[V05*": (
        "asks whether arrays have `dimension_names`, which those of zarr-python have not, and expects names that it "
        "did not give"
    ),
    "::test_s3_info*": "needs the network",
    "::test_class_reader*": "needs the network",
    "*download*": "needs the network",
}

SUITES = (
    Suite(
        "dask.array, zarr is omnizarr",
        "dask",
        ("dask.array.tests.test_array_core",),
        plugin=PLUGIN,
        is_first=True,
        installed=True,
        options=("-k", "zarr"),
        known=KNOWN_IN_DASK,
    ),
    Suite(
        "xarray, zarr is omnizarr",
        "xarray",
        XARRAY,
        plugin=PLUGIN,
        is_first=True,
        installed=True,
        options=("-k", "zarr or Zarr"),
        known=KNOWN_IN_XARRAY,
    ),
    Suite("ome-zarr, zarr is omnizarr", "ome-zarr", ("tests",), plugin=PLUGIN, is_first=True, known=KNOWN_IN_OME_ZARR),
    Suite("anndata, zarr is omnizarr", "anndata", ("tests",), plugin=PLUGIN, is_first=True, options=("-k", "zarr")),
)
