"""zarr-python's own tests of what it does, with omnizarr under the name zarr (`omnizarr.interop.as_zarr`)."""

from __future__ import annotations

from tests.downstream.suite import Suite

TESTS = (
    "tests/test_api.py",
    "tests/test_api",
    "tests/test_array.py",
    "tests/test_attributes.py",
    "tests/test_codecs",
    "tests/test_common.py",
    "tests/test_config.py",
    "tests/test_group.py",
    "tests/test_indexing.py",
    "tests/test_info.py",
    "tests/test_metadata",
    "tests/test_properties.py",
    "tests/test_store",
    "tests/test_sync.py",
    "tests/test_tree.py",
    "tests/test_v2.py",
    "tests/test_zarr.py",
    "tests/test_codec_entrypoints.py",
    "tests/test_chunk_grids.py",
    "tests/test_errors.py",
    "tests/test_examples.py",
    "tests/test_regression",
)

SUITES = (
    Suite(
        "zarr-python, zarr is omnizarr",
        "zarr",
        TESTS,
        plugin="named_zarr_own",
        # Its own options ask for plugins of pytest, and its warnings are errors, those of a later pytest too.
        options=("-o", "addopts=", "-W", "ignore:Passing a non-Collection", "--continue-on-collection-errors"),
    ),
)
