"""Zarr v3.0, sentence by sentence: documents and chunks written by hand from the text, through the public interface."""

import gzip
import itertools
import json

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.codecs import chain
from omnizarr.codecs.contract import ArraySpec
from omnizarr.model import Named, datatypes
from tests.conformance.raw import document, keys, store, without
from tests.fakes import UnlistableStore

pytestmark = pytest.mark.rules

GROUP = {"zarr_format": 3, "node_type": "group"}
ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 7,
    "codecs": [{"name": "bytes"}],
}
ROWS = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10000, 1000],
    "dimension_names": ["rows", "columns"],
    "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "gzip", "configuration": {"level": 1}}],
    "fill_value": "NaN",
    "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
}
CORE = {
    "bool": "?",
    **{f"{kind}{8 * size}": f"<{kind[0]}{size}" for kind in ("int", "uint") for size in (1, 2, 4, 8)},
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
}


def opened(chunks=(), **changes):
    """Open an array whose document differs from ARRAY in some members."""
    return omnizarr.open(store({"zarr.json": {**ARRAY, **changes}, **dict(chunks)}))


def refused(kind=errors.MetadataError, **changes):
    """Return the pointer of the error with which such an array is refused, at the latest when it is read."""
    with pytest.raises(kind) as caught:
        opened(**changes)[...]
    return caught.value.pointer


# Concepts


def test_path_names_the_node_and_those_above_it():
    root = omnizarr.open(store({"zarr.json": GROUP, "foo/zarr.json": GROUP, "foo/bar/zarr.json": ARRAY}))
    bar = root["foo"]["bar"]
    assert (bar.name, bar.basename) == ("/foo/bar", "bar")
    assert root.name == "/"


@pytest.mark.parametrize("typed", ["foo/bar", "/foo/bar", "/foo/bar/"])
def test_paths_begin_with_a_slash_and_do_not_end_with_one(typed):
    bar = omnizarr.open(store({"zarr.json": GROUP, "foo/bar/zarr.json": ARRAY}), path=typed)
    assert bar.name == "/foo/bar"


@pytest.mark.parametrize("shape", [(100, 20), ()])
def test_shape_is_the_tuple_of_lengths(shape):
    grid = {"name": "regular", "configuration": {"chunk_shape": [10] * len(shape)}}
    assert opened(shape=list(shape), chunk_grid=grid).shape == shape


def test_metadata_is_under_the_keys_of_the_table():
    made = store({})
    root = omnizarr.create_group(made)
    assert keys(made) == ["zarr.json"]
    root.create_group("foo")
    root.create_group("foo/bar")
    root.create_array("foo/baz", shape=(2, 2), dtype="int8", chunks=(1, 1))
    assert keys(made) == ["foo/bar/zarr.json", "foo/baz/zarr.json", "foo/zarr.json", "zarr.json"]
    alone = store({})
    omnizarr.create_array(alone, shape=(2,), dtype="int8")
    assert keys(alone) == ["zarr.json"]


def test_data_are_under_the_key_of_the_table():
    made = store({})
    array = omnizarr.create_group(made).create_array("foo/baz", shape=(2, 2), dtype="int8", chunks=(1, 1))
    array[1, 0] = 5
    assert [key for key in keys(made) if "zarr.json" not in key] == ["foo/baz/c/1/0"]


# Array metadata


def test_an_array_has_a_document_called_zarr_json():
    chunks = {"a/c/0/0": bytes(6), "a/c/0/1": bytes(6)}
    with pytest.raises(errors.NodeNotFoundError):
        omnizarr.open_array(store(chunks), path="a")
    assert omnizarr.open_array(store({"a/zarr.json": ARRAY, **chunks}), path="a")[0].tolist() == [0] * 6


def test_array_without_codecs_as_gdal_writes_it_is_read_with_a_note():
    array = omnizarr.open(store({"zarr.json": without(ARRAY, "codecs")}))
    assert [note.pointer for note in array.metadata.notes] == ["/codecs"]


def test_shape_is_a_list_of_lengths():
    grid = {"name": "regular", "configuration": {"chunk_shape": [5, 5]}}
    array = opened(shape=[10, 20], chunk_grid=grid)
    assert (array.ndim, array.shape) == (2, (10, 20))


def test_regular_grid_of_2_by_5():
    array = opened(shape=[4, 10], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, 5]}})
    assert (array.chunks, array.cdata_shape) == ((2, 5), (2, 2))


# Fill values


@pytest.mark.parametrize("name", sorted(CORE))
def test_default_fill_value_is_recorded(name):
    made = store({})
    omnizarr.create_array(made, shape=(2,), dtype=name)
    recorded = document(made, "zarr.json")["fill_value"]
    zero = {"bool": False, "complex64": [0, 0], "complex128": [0, 0]}.get(name, 0)
    assert recorded == zero
    assert type(recorded) is not bool or name == "bool"


# Codecs in metadata


def test_no_array_is_written_without_an_array_to_bytes_codec():
    for compressors in ("auto", None, [{"name": "gzip", "configuration": {"level": 1}}]):
        made = store({})
        omnizarr.create_array(made, shape=(2,), dtype="int16", compressors=compressors)
        assert document(made, "zarr.json")["codecs"][0] == {"name": "bytes", "configuration": {"endian": "little"}}
    with pytest.raises(errors.CodecError, match="array to bytes"):
        omnizarr.create_array({}, shape=(2,), dtype="int16", codecs=[{"name": "gzip", "configuration": {"level": 1}}])


def test_documents_without_an_array_to_bytes_codec_are_read_with_a_note_and_are_no_sound_ones():
    made = store({"zarr.json": {**ARRAY, "codecs": [GZIP]}})
    assert "/codecs" in [note.pointer for note in omnizarr.open(made).metadata.notes]
    assert "missing-serializer" in [finding.code for finding in omnizarr.check(made).findings]


# Optional members


@pytest.mark.parametrize("base", [ARRAY, GROUP], ids=["array", "group"])
def test_attributes_hold_any_json(base):
    attributes = {"": None, "ä/b": [1, 2.5, True, {"deep": ["x", None]}], "zarr_format": {"must_understand": True}}
    made = store({"zarr.json": {**base, "attributes": attributes}})
    node = omnizarr.open(made)
    assert dict(node.attrs) == attributes
    node.attrs["new"] = {"a": []}
    assert document(made, "zarr.json")["attributes"] == {**attributes, "new": {"a": []}}
    with pytest.raises(errors.MetadataError, match="string"):
        node.attrs[1] = "one"


def test_dimension_names_x_y_z():
    grid = {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1]}}
    array = opened(shape=[1, 2, 3], chunk_grid=grid, dimension_names=["x", "y", "z"])
    assert array.dimension_names == ("x", "y", "z")
    assert opened().dimension_names is None


def test_dimension_names_need_not_be_distinct():
    assert opened(dimension_names=["x", "x"]).dimension_names == ("x", "x")
    assert omnizarr.create_array({}, shape=(1, 1), dtype="i1", dimension_names=["x", "x"]).dimension_names == ("x", "x")


@pytest.mark.parametrize("base", [ARRAY, GROUP], ids=["array", "group"])
def test_unknown_names_that_need_not_be_understood_are_ignored_and_kept(base):
    extra = {"must_understand": False, "name": "foo", "configuration": {"a": 1}}
    made = store({"zarr.json": {**base, "foo": extra}})
    node = omnizarr.open(made)
    node.attrs["b"] = 2
    assert document(made, "zarr.json")["foo"] == extra


def test_array_of_10000_rows_and_1000_columns():
    made = store({"zarr.json": ROWS})
    array = omnizarr.open(made)
    assert (array.shape, array.chunks, array.cdata_shape) == ((10000, 1000), (1000, 100), (10, 10))
    assert (array.dtype, array.nchunks, array.order) == (np.dtype("<f8"), 100, "C")
    assert np.isnan(array.fill_value)
    assert array.dimension_names == ("rows", "columns")
    assert dict(array.attrs) == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
    assert array.documents() == {"zarr.json": ROWS}


def test_array_of_10000_rows_and_1000_columns_with_the_codec_that_was_required_later():
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    values = np.arange(100_000, dtype="<f8").reshape(1000, 100)
    document_ = {**ROWS, "codecs": [little, *ROWS["codecs"]]}
    array = omnizarr.open(store({"zarr.json": document_, "c/9/3": gzip.compress(values.tobytes())}))
    np.testing.assert_array_equal(array[9000:, 300:400], values)
    assert np.isnan(array[:9000, 300:400]).all()


def test_made_up_data_type_is_kept_and_not_read():
    datetime = {"name": "datetime", "configuration": {"unit": "ns"}}
    example = {**without(ROWS, "dimension_names", "attributes"), "data_type": datetime, "fill_value": None}
    array = omnizarr.open(store({"zarr.json": example}))
    assert (array.shape, array.chunks) == ((10000, 1000), (1000, 100))
    assert array.documents() == {"zarr.json": example}
    with pytest.raises(errors.UnknownDataTypeError, match="datetime"):
        array[0, 0]


# Groups


def test_group_with_spam_and_eggs():
    example = {**GROUP, "attributes": {"spam": "ham", "eggs": 42}}
    group = omnizarr.open(store({"zarr.json": example}))
    assert isinstance(group, omnizarr.Group)
    assert dict(group.attrs) == {"spam": "ham", "eggs": 42}
    assert group.documents() == {"zarr.json": example}


@pytest.mark.parametrize("text", ['{"zarr_format": 3, "node_type": "group", "attributes": {"eggs": 42,}}'])
def test_trailing_comma_of_the_printed_example_is_not_json(text):
    with pytest.raises(errors.MetadataError, match="JSON"):
        omnizarr.open(store({"zarr.json": text.encode()}))


# Node names


@pytest.mark.parametrize("name", ["", ".", "..", "...", "a/..", "a/..."])
def test_empty_names_and_periods_are_refused(name):
    made = store({})
    root = omnizarr.create_group(made)
    for create in (root.create_group, lambda name: root.create_array(name, shape=(1,), dtype="i1")):
        with pytest.raises(errors.NodeNameError):
            create(name)
    assert keys(made) == ["zarr.json"]


def test_names_that_begin_with_two_underscores_are_reported():
    made = store({})
    omnizarr.create_group(made).create_array("__a", shape=(1,), dtype="i1")  # as xarray does
    assert [(finding.code, finding.path) for finding in omnizarr.check(made) if finding.severity != "note"] == [
        ("reserved-node-name", "__a")
    ]


def test_slash_separates_names_and_is_part_of_none():
    root = omnizarr.create_group({})
    root.create_group("a/b")
    assert list(root) == ["a"]
    assert list(root["a"]) == ["b"]


def test_names_are_case_sensitive():
    root = omnizarr.create_group({})
    root.create_group("foo", attributes={"is": "foo"})
    root.create_group("FOO", attributes={"is": "FOO"})
    assert [(name, node.attrs["is"]) for name, node in root.items()] == [("FOO", "FOO"), ("foo", "foo")]


# Data types and grids


@pytest.mark.parametrize(("name", "size"), [("r8", 1), ("r16", 2), ("r24", 3)])
def test_raw_types_are_so_many_bytes(name, size):
    grid = {"name": "regular", "configuration": {"chunk_shape": [2]}}
    fields = {"shape": [2], "data_type": name, "chunk_grid": grid, "fill_value": [0] * size}
    array = opened({"c/0": bytes(range(2 * size))}, **fields)
    assert array.dtype == np.dtype(f"V{size}")
    assert array[1].tobytes() == bytes(range(size, 2 * size))


def test_element_of_the_text_is_in_its_chunk():
    grid = {"name": "regular", "configuration": {"chunk_shape": [5, 20, 400]}}
    chunk = np.zeros((5, 20, 400), "u1")
    chunk[2, 10, 100] = 42
    array = opened({"c/1/7/2": chunk.tobytes()}, shape=[10, 200, 3000], chunk_grid=grid)
    assert array[7, 150, 900] == 42
    assert np.argwhere(array[...] == 42).tolist() == [[7, 150, 900]]


def test_chunks_at_the_border_have_the_full_size_and_the_fill_value_outside():
    made = store(
        {
            "zarr.json": {
                **ARRAY,
                "shape": [30, 30],
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}},
            }
        }
    )
    omnizarr.open(made)[...] = 1
    chunk = np.frombuffer(bytes(made.get("c/0/1")), "u1").reshape(16, 16)
    assert (chunk[:, :14] == 1).all()
    assert (chunk[:, 14:] == 7).all()


# Codecs


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}


def spec_of(shape=(2, 3), name="int16"):
    data_type = datatypes.bind(Named(name))
    return ArraySpec(shape, data_type, data_type.default_fill_value)


@pytest.mark.parametrize(
    ("codecs_", "changes"),
    [
        ([{"name": "bytes"}], {"data_type": "string", "fill_value": ""}),
        ([{"name": "vlen-utf8"}], {}),
        ([{"name": "transpose", "configuration": {"order": [1, 0, 2]}}, BYTES], {}),
    ],
)
def test_codec_that_does_not_fit_its_input_fails_before_a_chunk_is_read(codecs_, changes):
    with pytest.raises((errors.CodecError, errors.MetadataError)):
        opened({"c/0/0": b"not looked at"}, codecs=codecs_, **changes)[...]


def test_representations_are_determined_codec_by_codec():
    stages = (Named("transpose", {"order": [1, 0]}), Named("bytes", {"endian": "big"}), Named("crc32c"))
    bound = chain.bind(stages, spec_of((2, 3), "float64"))
    assert bound.encoded.nbytes == 2 * 3 * 8 + 4


def test_documents_refer_to_codecs_by_name():
    made = store({})
    omnizarr.create_array(
        made, shape=(2,), dtype="u1", filters=[TRANSPOSE | {"configuration": {"order": [0]}}], compressors=[GZIP]
    )
    assert [codec["name"] for codec in document(made, "zarr.json")["codecs"]] == ["transpose", "bytes", "gzip"]


# Stores and operations


def test_paths_have_those_above_them():
    made = store({})
    array = omnizarr.create_array(made, name="foo/bar", shape=(1,), dtype="i1")
    assert [above.path for above in array.store_path.ancestors()] == ["", "foo"]
    assert keys(made) == ["foo/bar/zarr.json", "foo/zarr.json", "zarr.json"]


def test_documents_tell_arrays_from_groups():
    root = omnizarr.open(
        store({"zarr.json": GROUP, "a/zarr.json": ARRAY, "b/zarr.json": GROUP, "c/x/zarr.json": ARRAY})
    )
    assert list(root.array_keys()) == ["a"]
    assert list(root.group_keys()) == ["b", "c"]


def test_groups_are_implied_by_what_is_below():
    made = store({"foo/bar/zarr.json": GROUP, "foo/baz/qux/zarr.json": ARRAY})
    root = omnizarr.open(made)
    assert list(root) == ["foo"]
    assert list(root["foo"]) == ["bar", "baz"]
    assert isinstance(root["foo/baz"], omnizarr.Group)
    assert isinstance(root["foo/baz/qux"], omnizarr.Array)
    assert [name for name, _ in root.members(max_depth=None)] == ["foo", "foo/bar", "foo/baz", "foo/baz/qux"]


def test_where_nothing_can_be_listed_paths_and_consolidated_metadata_lead_to_nodes():
    inner = store({"zarr.json": GROUP, "a/zarr.json": ARRAY})
    root = omnizarr.open(UnlistableStore(inner, admits=False))
    assert root["a"][0, 0] == 7
    with pytest.raises(errors.StoreError):
        list(root)
    omnizarr.consolidate_metadata(inner)
    assert list(omnizarr.open(UnlistableStore(inner, admits=False))) == ["a"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"data_type": "unknown"}, errors.UnknownDataTypeError),
        ({"chunk_grid": {"name": "unknown"}}, errors.UnknownChunkGridError),
        ({"chunk_key_encoding": {"name": "unknown"}}, errors.UnknownChunkKeyEncodingError),
        ({"codecs": [{"name": "unknown"}]}, errors.UnknownCodecError),
        ({"storage_transformers": [{"name": "unknown"}]}, errors.UnknownStorageTransformerError),
    ],
)
def test_extensions_are_required(changes, kind):
    array = opened({"c/0/0": bytes(6)}, **changes)
    assert array.shape == (4, 6)
    with pytest.raises(kind):
        array[...]
    with pytest.raises(kind):
        array[...] = 1


def test_erasing_the_last_member_leaves_the_group_above():
    root = omnizarr.create_group({})
    root.create_array("a/b/x", shape=(1,), dtype="i1")
    del root["a/b/x"]
    assert list(root["a"]) == ["b"]
    del root["a/b"]
    assert list(root) == ["a"]


def test_every_chunk_of_a_grid_is_read_where_it_was_written():
    array = omnizarr.create_array({}, shape=(3, 4), dtype="u1", chunks=(2, 2))
    array[...] = np.arange(12).reshape(3, 4)
    for index in itertools.product(range(3), range(4)):
        assert array[index] == 4 * index[0] + index[1]


def test_documents_are_json():
    made = store({})
    omnizarr.create_array(made, shape=(2,), dtype="f4", fill_value=np.nan, attributes={"a": 1})
    assert json.loads(bytes(made.get("zarr.json")))["fill_value"] == "NaN"
