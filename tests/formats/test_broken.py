"""Documents that break their format: which error, where, and in which words."""

from __future__ import annotations

import copy

import pytest

from omnizarr.errors import ConsolidatedMetadataError, MetadataError, UnknownDataTypeError
from omnizarr.formats import V2, V3
from omnizarr.model import ArrayMetadata

V3_ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}
V3_GROUP = {"zarr_format": 3, "node_type": "group"}
V2_ARRAY = {
    "zarr_format": 2,
    "shape": [4, 6],
    "chunks": [2, 3],
    "dtype": "<f4",
    "compressor": {"id": "zlib", "level": 1},
    "fill_value": 0,
    "order": "C",
    "filters": None,
}

MISSING = object()

# (base document, pointer of what is changed, its new value, pointer of the problem, class, text)
BROKEN = [
    (V3_ARRAY, "/zarr_format", MISSING, None, MetadataError, "zarr_format is missing: expected 3"),
    (V3_ARRAY, "/zarr_format", 2, None, MetadataError, "another zarr_format: found 2, expected 3"),
    (V3_ARRAY, "/zarr_format", 3.0, None, MetadataError, "found 3.0, expected 3"),
    (V3_ARRAY, "/zarr_format", "3", None, MetadataError, "another zarr_format"),
    (V3_ARRAY, "/zarr_format", 4, None, MetadataError, "another zarr_format"),
    (V3_ARRAY, "/zarr_format", True, None, MetadataError, "another zarr_format"),
    (V3_ARRAY, "/zarr_format", None, None, MetadataError, "another zarr_format"),
    (V3_GROUP, "/zarr_format", MISSING, None, MetadataError, "zarr_format is missing"),
    (V3_GROUP, "/zarr_format", 2, None, MetadataError, "another zarr_format"),
    (V3_GROUP, "/zarr_format", "https://purl.org/zarr/spec/protocol/core/3.0", None, MetadataError, "draft of 2020"),
    (V3_ARRAY, "/node_type", MISSING, None, MetadataError, 'node_type is missing: expected "array" or "group"'),
    (V3_ARRAY, "/node_type", "table", None, MetadataError, "unknown node_type: found table"),
    (V3_ARRAY, "/node_type", ["array"], None, MetadataError, "unknown node_type"),
    (V3_ARRAY, "/node_type", "Array", None, MetadataError, "unknown node_type"),
    (V3_ARRAY, "/node_type", None, None, MetadataError, "unknown node_type"),
    (V3_GROUP, "/node_type", MISSING, None, MetadataError, "node_type is missing"),
    (V3_GROUP, "/node_type", "", None, MetadataError, "unknown node_type"),
    (V3_ARRAY, "/shape", MISSING, None, MetadataError, "shape is missing"),
    (V3_ARRAY, "/shape", None, None, MetadataError, "not a list: found null, expected a list"),
    (V3_ARRAY, "/shape", 24, None, MetadataError, "not a list: found 24"),
    (V3_ARRAY, "/shape/0", True, None, MetadataError, "a length is not an integer: found True"),
    (V3_ARRAY, "/shape/1", 6.0, None, MetadataError, "a length is not an integer: found 6.0"),
    (V3_ARRAY, "/shape/1", "6", None, MetadataError, "a length is not an integer"),
    (V3_ARRAY, "/shape/1", -1, None, MetadataError, "a length is negative: found -1"),
    (V3_ARRAY, "/shape/0", 2**63, None, MetadataError, "a length is too large: found 9223372036854775808"),
    (V3_ARRAY, "/data_type", MISSING, None, MetadataError, "data_type is missing"),
    (V3_ARRAY, "/data_type", 7, None, MetadataError, "not an extension: found 7"),
    (V3_ARRAY, "/data_type", "", None, MetadataError, "not an extension"),
    (V3_ARRAY, "/data_type", {"configuration": {}}, "/data_type/name", MetadataError, "an extension without a name"),
    (V3_ARRAY, "/data_type", {"name": 3}, "/data_type/name", MetadataError, "an extension without a name: found 3"),
    (
        V3_ARRAY,
        "/data_type",
        {"name": "float32", "must_understand": False},
        "/data_type/must_understand",
        MetadataError,
        "must_understand cannot be false here",
    ),
    (
        V3_ARRAY,
        "/data_type",
        {"name": "float32", "configuration": []},
        "/data_type/configuration",
        MetadataError,
        "not an object",
    ),
    (
        V3_ARRAY,
        "/data_type",
        {"name": "numpy.datetime64", "configuration": {"unit": "fortnight", "scale_factor": 1}},
        "/data_type/configuration/unit",
        MetadataError,
        "fortnight",
    ),
    (V3_ARRAY, "/chunk_grid", MISSING, None, MetadataError, "chunk_grid is missing"),
    (V3_ARRAY, "/chunk_grid", ["regular"], None, MetadataError, "not an extension"),
    (V3_ARRAY, "/chunk_grid", 2, None, MetadataError, "not an extension"),
    (V3_ARRAY, "/chunk_grid/name", MISSING, None, MetadataError, "an extension without a name"),
    (V3_ARRAY, "/chunk_grid/name", 5, None, MetadataError, "an extension without a name: found 5"),
    (
        V3_ARRAY,
        "/chunk_grid",
        "regular",
        "/chunk_grid/configuration/chunk_shape",
        MetadataError,
        "chunk_shape is missing",
    ),
    (
        V3_ARRAY,
        "/chunk_grid/configuration/chunk_shape",
        [2],
        None,
        MetadataError,
        "1 chunk lengths for 2 dimensions: found [2], expected 2, one per dimension of shape [4, 6]",
    ),
    (V3_ARRAY, "/chunk_grid/configuration/chunk_shape/1", 0, None, MetadataError, "a chunk length is 0"),
    (V3_ARRAY, "/chunk_grid/configuration/chunk_shape/1", 1.5, None, MetadataError, "a length is not an integer"),
    (V3_ARRAY, "/chunk_grid/must_understand", False, None, MetadataError, "must_understand cannot be false here"),
    (V3_ARRAY, "/chunk_grid/must_understand", "false", None, MetadataError, "not a boolean: found false"),
    (V3_ARRAY, "/chunk_grid/extra", 1, None, MetadataError, "unknown member 'extra' in an extension"),
    (V3_ARRAY, "/chunk_key_encoding", MISSING, None, MetadataError, "chunk_key_encoding is missing"),
    (V3_ARRAY, "/chunk_key_encoding", ["default"], None, MetadataError, "not an extension"),
    (V3_ARRAY, "/chunk_key_encoding/name", MISSING, None, MetadataError, "an extension without a name"),
    (V3_ARRAY, "/chunk_key_encoding/name", 1, None, MetadataError, "an extension without a name: found 1"),
    (V3_ARRAY, "/chunk_key_encoding/configuration", [], None, MetadataError, "not an object"),
    (V3_ARRAY, "/chunk_key_encoding/configuration/separator", "-", None, MetadataError, "no separator of chunk keys"),
    (V3_ARRAY, "/fill_value", MISSING, None, MetadataError, "fill_value is missing"),
    (V3_ARRAY, "/fill_value", "nan", None, MetadataError, "fill value"),
    (V3_ARRAY, "/fill_value", [0], None, MetadataError, "fill value"),
    (V3_ARRAY, "/fill_value", True, None, MetadataError, "fill value"),
    (V3_ARRAY, "/codecs", {"name": "bytes"}, None, MetadataError, "not a list"),
    (V3_ARRAY, "/codecs", "bytes", None, MetadataError, "not a list"),
    (V3_ARRAY, "/codecs", None, None, MetadataError, "not a list"),
    (V3_ARRAY, "/codecs/0", 3, None, MetadataError, "not an extension"),
    (V3_ARRAY, "/codecs/0", [], None, MetadataError, "not an extension"),
    (V3_ARRAY, "/codecs/0/name", 1, None, MetadataError, "an extension without a name: found 1"),
    (V3_ARRAY, "/codecs/0/name", MISSING, None, MetadataError, "an extension without a name"),
    (V3_ARRAY, "/codecs/0/configuration", None, None, MetadataError, "not an object: found null"),
    (
        V3_ARRAY,
        "/codecs/0",
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1], "codecs": [{}]}},
        "/codecs/0/configuration/codecs/0/name",
        MetadataError,
        "an extension without a name",
    ),
    (V3_ARRAY, "/attributes", [], None, MetadataError, "not an object"),
    (V3_ARRAY, "/attributes", "foo", None, MetadataError, "not an object"),
    (V3_ARRAY, "/attributes", None, None, MetadataError, "not an object"),
    (V3_GROUP, "/attributes", [["foo", 42]], None, MetadataError, "not an object"),
    (V3_GROUP, "/attributes", 1, None, MetadataError, "not an object"),
    (V3_ARRAY, "/dimension_names", "xy", None, MetadataError, "not a list: found xy"),
    (V3_ARRAY, "/dimension_names", {"x": 0, "y": 1}, None, MetadataError, "not a list"),
    (V3_ARRAY, "/dimension_names", [], None, MetadataError, "0 names for 2 dimensions"),
    (V3_ARRAY, "/dimension_names", ["x", "y", "z"], None, MetadataError, "3 names for 2 dimensions"),
    (V3_ARRAY, "/dimension_names", ["x"], None, MetadataError, "1 names for 2 dimensions"),
    (V3_ARRAY, "/dimension_names", ["x", 1], "/dimension_names/1", MetadataError, "no name of a dimension: found 1"),
    (V3_ARRAY, "/storage_transformers", {}, None, MetadataError, "not a list"),
    (V3_ARRAY, "/storage_transformers", [1], "/storage_transformers/0", MetadataError, "not an extension"),
    (V3_ARRAY, "/storage_transformers", [None], "/storage_transformers/0", MetadataError, "not an extension"),
    (V3_ARRAY, "/storage_transformers", [{}], "/storage_transformers/0/name", MetadataError, "without a name"),
    (V3_ARRAY, "/storage_transformers", [{"name": 5}], "/storage_transformers/0/name", MetadataError, "without a name"),
    (
        V3_ARRAY,
        "/storage_transformers",
        [{"name": "x", "configuration": []}],
        "/storage_transformers/0/configuration",
        MetadataError,
        "not an object",
    ),
    (V3_ARRAY, "/weather", {"rain": 1}, None, MetadataError, "unknown member 'weather'"),
    (V3_ARRAY, "/weather", "x", None, MetadataError, "unknown member 'weather'"),
    (V3_ARRAY, "/weather", None, None, MetadataError, "unknown member 'weather'"),
    (V3_ARRAY, "/weather", [], None, MetadataError, "unknown member 'weather'"),
    (V3_ARRAY, "/weather", {"must_understand": True}, None, MetadataError, "unknown member 'weather'"),
    (V3_GROUP, "/weather", {"must_understand": "false"}, None, MetadataError, "unknown member 'weather'"),
    (V3_GROUP, "/weather", {}, None, MetadataError, "unknown member 'weather'"),
    (V3_ARRAY, "/a~1b", 1, None, MetadataError, "unknown member 'a/b'"),
    (V3_ARRAY, "/weather", {"must_understand": 0}, None, MetadataError, "unknown member 'weather'"),
    (V3_GROUP, "/shape", [1], None, MetadataError, "unknown member 'shape'"),
    (V3_GROUP, "/attributes", None, None, MetadataError, "not an object: found null"),
    (V3_GROUP, "/consolidated_metadata", [], None, ConsolidatedMetadataError, "not an object"),
    (
        V3_GROUP,
        "/consolidated_metadata",
        {"kind": "elsewhere", "metadata": {}},
        "/consolidated_metadata/kind",
        ConsolidatedMetadataError,
        "unknown kind",
    ),
    (
        V3_GROUP,
        "/consolidated_metadata",
        {"metadata": {"a/b": 1}},
        "/consolidated_metadata/metadata/a~1b",
        ConsolidatedMetadataError,
        "the document of a node is not an object",
    ),
    (V2_ARRAY, "/zarr_format", MISSING, None, MetadataError, "zarr_format is missing"),
    (V2_ARRAY, "/zarr_format", 3, None, MetadataError, "another zarr_format: found 3, expected 2"),
    (V2_ARRAY, "/shape", MISSING, None, MetadataError, "shape is missing"),
    (V2_ARRAY, "/shape/0", True, None, MetadataError, "a length is not an integer"),
    (V2_ARRAY, "/shape/0", 2**63, None, MetadataError, "a length is too large"),
    (V2_ARRAY, "/chunks", 2, None, MetadataError, "not a list: found 2"),
    (V2_ARRAY, "/chunks", [2, 3, 1], None, MetadataError, "3 chunk lengths for 2 dimensions"),
    (V2_ARRAY, "/chunks/0", 0, None, MetadataError, "a chunk length is 0"),
    (V2_ARRAY, "/dtype", MISSING, None, MetadataError, "dtype is missing"),
    (V2_ARRAY, "/dtype", None, None, MetadataError, "not a data type: found null"),
    (V2_ARRAY, "/dtype", "f4", None, MetadataError, "a byte order"),
    (V2_ARRAY, "/dtype", "<M8[fortnight]", None, MetadataError, "fortnight"),
    (V2_ARRAY, "/dtype", [["a", "<f4"], ["a", "<f4"]], "/dtype/1/0", MetadataError, "names that differ"),
    (V2_ARRAY, "/dtype", [["a", "<f16"]], "/dtype/0/1", UnknownDataTypeError, "unknown data type: found <f16"),
    (V2_ARRAY, "/fill_value", MISSING, None, MetadataError, "fill_value is missing"),
    (V2_ARRAY, "/fill_value", "x", None, MetadataError, "fill value"),
    (V2_ARRAY, "/order", "A", None, MetadataError, 'no order: found A, expected "C" or "F"'),
    (V2_ARRAY, "/order", MISSING, None, MetadataError, "order is missing"),
    (V2_ARRAY, "/compressor", MISSING, None, MetadataError, "compressor is missing"),
    (V2_ARRAY, "/compressor", "zlib", None, MetadataError, "not a codec: found zlib"),
    (V2_ARRAY, "/compressor/id", MISSING, None, MetadataError, "a codec without an id"),
    (V2_ARRAY, "/compressor/id", 5, None, MetadataError, "a codec without an id: found 5"),
    (V2_ARRAY, "/filters", {"id": "delta"}, None, MetadataError, "not a list"),
    (V2_ARRAY, "/filters", ["delta"], "/filters/0", MetadataError, "not a codec: found delta"),
    (
        V2_ARRAY,
        "/filters",
        [{"id": "delta", "dtype": "float99"}],
        "/filters/0",
        MetadataError,
        "filter 'delta' names no data type: found float99",
    ),
    (V2_ARRAY, "/dimension_separator", "-", None, MetadataError, 'found -, expected "." or "/"'),
]


def change(document, pointer, value):
    document = copy.deepcopy(document)
    *above, last = (token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])
    place = document
    for token in above:
        place = place[int(token) if isinstance(place, list) else token]
    last = int(last) if isinstance(place, list) else last
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return document


def load(base, document, *report):
    if base is V2_ARRAY:
        return V2.load({".zarray": document}, *report)
    return V3.load({"zarr.json": document}, *report)


broken = pytest.mark.parametrize(
    ("base", "changed", "value", "pointer", "kind", "text"),
    BROKEN,
    ids=[f"v{'2' if case[0] is V2_ARRAY else '3'}{case[1]}-{'' if case[2] is MISSING else case[2]}" for case in BROKEN],
)


@broken
def test_open_raises_the_problem_with_its_place(base, changed, value, pointer, kind, text):
    with pytest.raises(MetadataError) as raised:
        load(base, change(base, changed, value))
    error = raised.value
    assert type(error) is kind
    assert error.pointer == (pointer or changed)
    assert text in str(error)
    assert error.spec or error.remedy


@broken
def test_check_goes_on_after_a_problem(base, changed, value, pointer, kind, text):
    problems = []
    document = change(base, changed, value)
    metadata = load(base, document, problems.append)
    assert (pointer or changed, kind) in [(p.pointer, p.kind) for p in problems]
    assert any(text in str(problem.error()) for problem in problems)
    if not changed.startswith("/node_type"):
        assert metadata is not None
        if isinstance(metadata, ArrayMetadata) and changed != "/shape":
            assert len(metadata.shape) == 2


def test_check_collects_every_problem():
    problems = []
    V3.load(
        {"zarr.json": {**V3_ARRAY, "shape": [4, -1], "codecs": [7], "fill_value": "x", "attributes": 3, "more": 1}},
        problems.append,
    )
    assert sorted(problem.pointer for problem in problems) == [
        "/attributes",
        "/codecs/0",
        "/fill_value",
        "/more",
        "/shape/1",
    ]
    assert all(problem.spec for problem in problems)


@pytest.mark.parametrize("document", [None, [], 3, "x", True])
def test_documents_that_are_no_objects_are_refused(document):
    with pytest.raises(MetadataError, match="not an object"):
        V3.load({"zarr.json": document})
    with pytest.raises(MetadataError, match=r"\.zarray is not an object"):
        V2.load({".zarray": document})
    with pytest.raises(MetadataError, match=r"\.zgroup is not an object"):
        V2.load({".zgroup": document})
    with pytest.raises(MetadataError, match=r"\.zattrs is not an object"):
        V2.load({".zgroup": {"zarr_format": 2}, ".zattrs": document})
    with pytest.raises(ConsolidatedMetadataError, match="not an object"):
        V2.load({".zgroup": {"zarr_format": 2}, ".zmetadata": document})


def test_a_node_with_both_zarray_and_zgroup_is_refused():
    with pytest.raises(MetadataError, match=r"both \.zarray and \.zgroup; delete the wrong one"):
        V2.load({".zarray": V2_ARRAY, ".zgroup": {"zarr_format": 2}})


@pytest.mark.parametrize("number", [2, None, True, "1"])
def test_other_formats_of_zmetadata_are_refused(number):
    with pytest.raises(ConsolidatedMetadataError) as raised:
        V2.load({".zgroup": {"zarr_format": 2}, ".zmetadata": {"zarr_consolidated_format": number, "metadata": {}}})
    assert raised.value.pointer == "/zarr_consolidated_format"
