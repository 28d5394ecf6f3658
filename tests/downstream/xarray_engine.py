"""xarray's own tests of Zarr, with the engine ``omnizarr`` and `omnizarr.interop.xarray.to_zarr`."""

from __future__ import annotations

from tests.downstream.suite import Suite
from tests.downstream.themselves import FAIL_TOO

TESTS = ("xarray.tests.test_backends", "xarray.tests.test_backends_datatree", "xarray.tests.test_backends_api")
OPTIONS = ("-k", "zarr or Zarr")

_COUNTS = "counts calls of methods of zarr-python; omnizarr does not call them"
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

_CODECS = "codecs are included only in v3, and as documents write them: both writers take that, for every format"
_WORDS = "a FileNotFoundError in other words, with names that come near"
_NO_WARNING = "no warning: without consolidated metadata, members are looked up side by side"
_PHONY = "opens: dimensions without a name are called phony_dim_0 and so on"
_ZEROS = "zeros are stored where the fill value is undefined"
_MASKS = "use_zarr_fill_value_as_mask=False is obeyed; the engine `zarr` leaves it out of account in v2"

KNOWN = {
    **FAIL_TOO["xarray"],
    "::test_read_non_consolidated_warning*": _NO_WARNING,
    "::TestZarrDatatreeIO::test_to_zarr_not_consolidated*": _NO_WARNING,
    "::test_non_existent_store*": _WORDS,
    "::test_compressor_encoding*": _CODECS,
    "::test_check_encoding_is_consistent_after_append[2]": _CODECS,
    "::TestZarrDatatreeIO::test_zarr_encoding*": _CODECS,
    "::test_zarr_fill_value_setting[2-*": _MASKS,
    "::test_raises_key_error_on_invalid_zarr_store*": _PHONY,
    "::TestZarrDatatreeIO::test_to_zarr_compute_false[zarr_format=2]": _ZEROS,
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
