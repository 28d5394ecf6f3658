"""xarray's own tests of Zarr, with the engine ``omnizarr`` and `omnizarr.interop.xarray.to_zarr`."""

from __future__ import annotations

from tests.downstream.suite import Suite

TESTS = ("xarray.tests.test_backends", "xarray.tests.test_backends_datatree", "xarray.tests.test_backends_api")
OPTIONS = ("-k", "zarr or Zarr")

_COUNTS = "counts calls of methods of zarr-python, which nobody calls here"
_OWN = "is about functions of xarray's engine `zarr` alone"
_OURS = "is about other engines"

APART = {
    "::TestZarrDictStore::test_async_load_multiple_variables*": _COUNTS,
    "::TestZarrDictStore::test_concurrent_load_multiple_objects*": _COUNTS,
    "::TestZarrDictStore::test_indexing[*": _COUNTS,
    "::TestZarrWriteEmpty::test_avoid_excess_metadata_calls*": _COUNTS,
    "::test_hidden_zarr_keys*": "writes to a ZarrStore of xarray, and opens that",
    "::test_dimension_names*": "writes to a ZarrStore of xarray, and opens that",
    "::test_cache_members*": _OWN,
    "::test_encode_zarr_attr_value": _OWN,
    "::test_extract_zarr_variable_encoding": _OWN,
    "::test_zarr_entrypoint": _OWN,
    "::test_default_engine_nczarr_no_netcdf4_python": _OURS,
}

_CODECS = "codecs are told as documents write them, which both writers take, and in v3 alone"

KNOWN = {
    "::test_read_non_consolidated_warning*": "no warning: members are looked up side by side without consolidated metadata",
    "::test_non_existent_store*": "a FileNotFoundError in other words, with what comes near",
    "::test_compressor_encoding*": _CODECS,
    "::TestZarrDatatreeIO::test_zarr_encoding*": _CODECS,
    "::test_raises_key_error_on_invalid_zarr_store*": "opens: dimensions without a name are called phony_dim_0 and so on",
    "::TestDataArrayToZarr::*ZipStore*": "a ZipStore of zarr-python that is open for writing; fails with zarr-python too",
    "::TestZarrDatatreeIO::test_to_zarr_compute_false*zarr_format=2*": "zeros are stored where the fill value is undefined",
}

SUITES = (
    Suite("xarray backends as they are", "xarray", TESTS, installed=True, options=OPTIONS, apart=APART),
    Suite(
        "xarray, engine omnizarr",
        "xarray",
        TESTS,
        plugin="xarray_engine",
        installed=True,
        options=OPTIONS,
        known=KNOWN,
        apart=APART,
    ),
)
