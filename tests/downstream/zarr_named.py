"""zarr-python's own tests of what it does, with omnizarr under the name zarr (`omnizarr_as_zarr`)."""

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
    "tests/test_metadata/test_consolidated.py",
    "tests/test_sync.py",
    "tests/test_tree.py",
    "tests/test_v2.py",
    "tests/test_zarr.py",
)
"""Not those of its stores, buffers, data types, metadata classes, chunk grids and plug-ins: omnizarr has others."""

_INNER = "a function or an attribute that is zarr-python's own, and that no other package uses"
_DATA_TYPES = "compares with zarr-python's own classes of data types"
_CLASSES = "makes metadata, codecs or cards by zarr-python's own classes"
_LOOP = "the event loop and the threads of zarr-python"
_BUFFERS = "the asynchronous stores and buffers of zarr-python"
_SETTINGS = "the settings of zarr-python that choose its own classes"

_APART = {
    _INNER: (
        "test_asynchronous.py::test_get_shape_chunks*",
        "test_asynchronous.py::test_like_args*",
        "test_array.py::test_nchunks_initialized*",
        "test_array.py::test_chunks_initialized*",
        "test_array.py::test_write_empty_chunks_behavior*",
        "test_array.py::test_chunk_encoding_no_object_codec_errors*",
        "test_array.py::test_unknown_object_codec_default_*",
        "test_array.py::test_iter_*",
        "test_array.py::test_chunk_grid_shape*",
        "test_array.py::test_resize_growing_skips_chunk_enumeration*",
        "test_array.py::test_with_config*",
        "test_array.py::test_auto_partition_*",
        "test_api.py::test_init_order_warns",
        "TestCreateArray::test_v?_chunk_encoding*",
        "TestCreateArray::test_chunk_key_encoding*",
        "TestCreateArray::test_default_filters_compressors*",
        "test_info.py::*",
        "test_codecs.py::test_morton_*",
        "test_numcodecs.py::test_is_numcodec*",
        "test_numcodecs.py::test_generic_checksum*",
        "test_numcodecs.py::test_generic_bytes_codec*",
        "TestCreateArray::test_with_data[async*",
        "test_common.py::test_parse_name_*",
        "test_group.py::test_create_nodes*",
        "test_group.py::test_create_hierarchy*",
        "test_group.py::test_group_create_hierarchy*",
        "test_group.py::TestParseHierarchyDict::*",
        "test_group.py::test_create_rooted_hierarchy_*",
        "test_group.py::test_build_metadata_v3*",
        "test_group.py::test_get_roots*",
        "test_group.py::test_group_getitem[*True]",
        "test_indexing.py::test_normalize_integer_selection",
        "test_indexing.py::test_replace_ellipsis",
        "test_indexing.py::test_slice_selection_uints",
        "test_indexing.py::test_iter_*",
        "test_indexing.py::test_get_block_selection_1d",
        "TestConsolidated::test_consolidated_metadata_backwards_compatibility",
    ),
    _DATA_TYPES: (
        "TestCreateArray::test_default_endianness*",
        "test_vlen.py::test_vlen_string*",
        "test_group.py::test_group_child_iterators[*True]",
    ),
    _CLASSES: (
        "test_array.py::TestInfo::*",
        "test_group.py::TestInfo::*",
        "test_group.py::test_asyncgroup_create_array*",
        "test_blosc.py::test_tunable_attrs_param*",
        "test_codecs.py::test_invalid_metadata[*",
        "supports_sync",
        "_codec_sync_roundtrip",
        "test_consolidated.py::TestConsolidated::test_consolidated",
        "test_consolidated.py::TestConsolidated::test_consolidated_sync",
        "test_consolidated.py::TestConsolidated::test_consolidated_metadata_from_dict",
        "test_consolidated.py::TestConsolidated::test_flatten",
        "test_consolidated.py::TestConsolidated::test_invalid_metadata_raises",
        "test_consolidated.py::TestConsolidated::test_consolidated_metadata_v2",
        "test_consolidated.py::test_consolidated_metadata_encodes_special_chars*",
    ),
    _LOOP: ("test_sync.py::*",),
    _BUFFERS: (
        "test_config.py::test_config_buffer_implementation",
        "test_config.py::test_config_ndbuffer_implementation*",
        "test_indexing.py::test_get_basic_selection_*",
        "test_indexing.py::test_get_selection_out",
        "test_indexing.py::test_accessed_chunks*",
    ),
    _SETTINGS: (
        "test_config.py::test_fully_qualified_name",
        "test_config.py::test_config_codec_pipeline_class*",
        "test_config.py::test_config_codec_implementation*",
        "test_config.py::test_config_defaults_set",
        "test_config.py::test_warning_on_missing_codec_config",
        "test_config.py::test_deprecated_config*",
    ),
}

_KEEPS_FILES = "overwriting a node keeps the files of other programs beside it, which zarr-python deletes"
_KEEPS_ATTRIBUTES = "updating attributes keeps the others, which zarr-python's `update_attributes_async` drops"
_CUT_IS_GONE = "elements that are cut off are gone, also when the array grows again; zarr-python shows the old ones"
_REFUSES = "refuses a node of another format at the same place, which would hide the one that is there"
_NO_DUPLICATES = "a zip archive gets no second entry of a name, so there is no warning of one"
_NO_EMPTY = "members and documents that a format makes optional are left out where they are empty"
_NUMPY = "selections that zarr-python refuses mean what they mean in NumPy"
_WORDS = "the words of a message"
_WARNS = "an object beside the nodes, or a second document, is not warned of here"
_PERMITS = "permits what zarr-python refuses"
_REQUESTS = "asks the store otherwise, and less often"
_RENEWED = "consolidated metadata is renewed with each change, so that none is stale"
_COPIES = "consolidated metadata is read from the store, and not changed in memory"

_KNOWN = {
    _KEEPS_FILES: (
        "test_api.py::test_no_overwrite_array[True-*",
        "test_api.py::test_no_overwrite_group[True-*",
        "test_api.py::test_no_overwrite_open[w-open*",
    ),
    _KEEPS_ATTRIBUTES: ("test_group.py::test_group_update_attributes_async*",),
    _CUT_IS_GONE: ("test_array.py::test_resize_2d*",),
    _REFUSES: ("test_api.py::test_v2_and_v3_exist_at_same_path*",),
    _NO_DUPLICATES: (
        "test_sharding.py::test_sharding_partial_overwrite[zip-*",
        "test_group.py::test_group[zip-*",
        "test_group.py::test_group_members[zip-*-True]",
        "test_group.py::test_group_get_with_default[zip-*",
        "test_group.py::test_group_delitem[zip-zarr3-True]",
        "test_group.py::test_group_update_attributes[zip-*",
        "test_group.py::test_asyncgroup_update_attributes[zip-*",
        "test_group.py::test_group_members_async[zip-True]",
        "test_group.py::test_members_name[zip-*-True]",
        "test_group.py::TestConsolidated::test_group_getitem_consolidated[zip]",
    ),
    _NO_EMPTY: (
        "test_array.py::test_create_creates_parents[2-*",
        "test_group.py::test_create_creates_parents[*-zarr2]",
        "test_array.py::test_nbytes_stored*",
    ),
    _NUMPY: (
        "test_indexing.py::test_fancy_indexing_doesnt_mix_with_implicit_slicing",
        "test_indexing.py::test_get_orthogonal_selection_1d_int",
        "test_indexing.py::test_get_orthogonal_selection_2d",
        "test_indexing.py::test_?et_block_selection_2d",
    ),
    _WORDS: (
        "test_asynchronous.py::test_open_no_array",
        "TestCreateArray::test_create_invalid_v2_arguments[kwargs0-*",
        "TestCreateArray::test_v2_no_shards*",
        "test_array.py::test_storage_transformers[3-*",
        "test_sharding.py::test_invalid_shard_shape",
    ),
    _WARNS: (
        "test_group.py::test_group_members[*-zarr2-True]",
        "test_group.py::test_open_ambiguous_node",
    ),
    _PERMITS: (
        "test_api.py::test_no_overwrite_load",
        "test_api.py::test_unimplemented_kwarg_warnings[synchronizer]",
        "test_api.py::test_v2_with_v3_compressor",
        "TestCreateArray::test_create_invalid_v2_arguments[kwargs2-*",
        "TestCreateArray::test_data_ignored_params*",
        "TestCreateArray::test_invalid_v3_arguments[kwargs1-*",
        "TestCreateArray::test_invalid_v3_arguments[kwargs2-*",
        "TestCreateArray::test_invalid_v3_arguments[kwargs3-*",
    ),
    _REQUESTS: ("test_array.py::test_create_array_with_data_num_gets*",),
    _RENEWED: ("test_consolidated.py::TestConsolidated::test_use_consolidated_false[?]",),
    _COPIES: (
        "test_group.py::test_group_members_async[*-True]",
        "test_consolidated.py::TestConsolidated::test_use_consolidated_for_children_members",
    ),
}


def _by_test(reasons: dict[str, tuple[str, ...]]) -> dict[str, str]:
    return {test: reason for reason, tests in reasons.items() for test in tests}


SUITES = (
    Suite(
        "zarr-python, zarr is omnizarr",
        "zarr",
        TESTS,
        plugin="named_zarr_own",
        # Its own options ask for plugins of pytest, and its warnings are errors, those of a later pytest too. Names of
        # its tests hold the addresses of objects, which differ from worker to worker.
        options=("-o", "addopts=", "-W", "ignore:Passing a non-Collection", "--continue-on-collection-errors", "-n0"),
        known=_by_test(_KNOWN),
        apart=_by_test(_APART),
    ),
)
