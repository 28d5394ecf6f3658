"""The draft of v3 of October 2020: its worked examples, what programs wrote, and what omnizarr writes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from omnizarr.errors import ConsolidatedMetadataError, MetadataError, NodeNameError, NotRepresentableError
from omnizarr.formats import DRAFT2020
from omnizarr.formats.history.draft2020 import dump, load
from omnizarr.formats.history.draft_consolidated import dump_consolidated, load_consolidated
from omnizarr.formats.history.draft_entry import enter, entry
from omnizarr.formats.keyspaces import Early, Late, Split
from omnizarr.formats.paths import check_draft_name
from omnizarr.formats.spelling import same
from omnizarr.model import UNDEFINED, ArrayMetadata, GroupMetadata, Named, datatypes
from omnizarr.nodes.location import normalize

URI = "https://purl.org/zarr/spec/protocol/core/3.0"
LATER = "https://purl.org/zarr/spec/core/3.0"
GZIP = "https://purl.org/zarr/spec/codec/gzip/1.0"
WRITTEN = json.loads((Path(__file__).parents[1] / "draft2020" / "written.json").read_text("utf-8"))
"""Documents that zarr-python 2.12 to 2.18 and GDAL 3.6.2 wrote."""

LITTLE = Named("bytes", {"endian": "little"})
BIG = Named("bytes", {"endian": "big"})

# The examples of the text, "Entry point metadata", "Array metadata", "Group metadata"
FOO = {"extension": "http://example.org/zarr/extension/foo", "must_understand": False, "configuration": {"foo": "bar"}}
ENTRY = {"zarr_format": URI, "metadata_encoding": URI, "metadata_key_suffix": ".json", "extensions": []}
FLOATS = {
    "shape": [10000, 1000],
    "data_type": "<f8",
    "chunk_grid": {"type": "regular", "chunk_shape": [1000, 100], "separator": "/"},
    "chunk_memory_layout": "C",
    "compressor": {"codec": GZIP, "configuration": {"level": 1}},
    "fill_value": "NaN",
    "extensions": [],
    "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
}
MOMENTS = {
    **FLOATS,
    "data_type": {
        "extension": "https://purl.org/zarr/spec/protocol/extensions/datetime-dtypes/1.0",
        "type": "<M8[ns]",
        "fallback": "<i8",
    },
    "fill_value": None,
    "attributes": {},
}
GROUP = {"attributes": {"spam": "ham", "eggs": 42}}


def array(**members):
    plain = {"shape": [4, 6], "chunk_grid": {"type": "regular", "chunk_shape": [2, 3]}, "data_type": "<i4"}
    document = {**FLOATS, **plain, "fill_value": 0, "attributes": {}, **members}
    del document["compressor"]
    return {**document, **({"compressor": members["compressor"]} if "compressor" in members else {})}


def read(**members):
    return load({"array": array(**members)})


def notes(metadata):
    return [(note.pointer, note.message) for note in metadata.notes]


def new(**fields):
    """A model that no document was read for."""
    return ArrayMetadata(
        **{
            "dialect": "v3-draft2020",
            "shape": (4, 6),
            "data_type": Named("int32"),
            "chunk_grid": Named("regular", {"chunk_shape": [2, 3]}),
            "chunk_key_encoding": Named("omnizarr.draft2020", {"separator": "/"}),
            "fill_value": 0,
            "codecs": (LITTLE,),
            **fields,
        }
    )


# The worked examples


@pytest.mark.parametrize(
    "document", [{"array": FLOATS}, {"array": MOMENTS}, {"group": GROUP}], ids=["floats", "moments", "group"]
)
def test_the_examples_of_the_text_are_read_without_a_note_and_written_back(document):
    metadata = load(document)
    assert metadata.notes == ()
    assert same(dump(metadata), document)
    assert same(dump(dataclasses.replace(metadata, spellings={})), document)


def test_the_example_of_floats_means_what_the_text_says():
    metadata = load({"array": FLOATS})
    assert metadata.shape == (10000, 1000)
    assert metadata.data_type == Named("float64")
    assert metadata.chunk_grid == Named("regular", {"chunk_shape": [1000, 100]})
    assert metadata.chunk_key_encoding == Named("omnizarr.draft2020", {"separator": "/"})
    assert metadata.codecs == (LITTLE, Named("gzip", {"level": 1}))
    assert metadata.fill_value == "NaN"
    assert metadata.attributes == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}


def test_the_example_of_moments_is_read_as_such():
    metadata = load({"array": MOMENTS})
    assert metadata.data_type == Named("numpy.datetime64", {"unit": "ns", "scale_factor": 1})
    assert metadata.fill_value is UNDEFINED


def test_the_keys_of_the_text_are_those_of_its_tables():
    keys = enter(ENTRY, "")
    assert keys == DRAFT2020.keyspace == Split()
    assert keys.documents("foo/bar")["group"] == "meta/root/foo/bar.group.json"
    assert keys.documents("foo/baz")["array"] == "meta/root/foo/baz.array.json"
    assert keys.documents("")["group"] == "meta/root.group.json"
    assert keys.documents("")["array"] == "meta/root.array.json"
    assert keys.chunk_prefix("foo/baz") + "c0/0" == "data/root/foo/baz/c0/0"
    assert keys.chunk_prefix("") == "data/root/"


# The entry point


def test_the_entry_point_of_a_new_hierarchy_is_the_example_of_the_text():
    assert entry() == ENTRY


def test_an_extension_that_may_be_ignored_is_ignored():
    assert enter({**ENTRY, "extensions": [FOO]}, "") == Split()


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        (ENTRY, Split("top")),
        ({**ENTRY, "metadata_key_suffix": ""}, Split("top", suffix="")),
        ({**ENTRY, "metadata_key_suffix": ".zson"}, Split("top", suffix=".zson")),
        ({**ENTRY, "unknown": 1}, Split("top")),
        ({**ENTRY, "zarr_format": URI.replace("3.0", "3.1")}, Split("top")),
        (
            {"zarr_format": URI, "metadata_encoding": URI, "extensions": []},
            Split("top", suffix="", consolidated=None),
        ),
        (
            {"zarr_format": URI, "metadata_encoding": "application/json", "extensions": []},
            Early("top", data="data", suffix="", glued=False, consolidated=None),
        ),
        (
            {"zarr_format": URI.replace("https", "http"), "metadata_encoding": "application/json", "extensions": []},
            Early("top", data="data", suffix="", glued=False, consolidated=None, dialect="v3-draft2019"),
        ),
        (
            {"zarr_format": LATER, "metadata_encoding": {"type": "json", "metadata_key_suffix": ".json"}},
            Late("top", meta="meta", data="data", consolidated=None),
        ),
        (
            {"zarr_format": URI, "metadata_encoding": "https://purl.org/zarr/spec/metadata/json/3.0"},
            Split("top", data="data", suffix="", glued=False, consolidated=None),
        ),
    ],
    ids=["2020-10", "no suffix", "own suffix", "member", "3.1", "2020-09", "2020-07", "2019-06", "2022-11", "slashes"],
)
def test_the_entry_point_tells_the_variants_apart(document, keys):
    assert enter(document, "top") == keys
    assert enter(document, "top").entry == document


@pytest.mark.parametrize(
    "document",
    [{"zarr_format": 3, "node_type": "group"}, {"zarr_format": "3"}, {"name": "zarr"}, {}, [], None, "x", 3],
    ids=repr,
)
def test_what_is_no_uri_of_a_draft_is_left_to_other_dialects(document):
    assert enter(document, "") is None


@pytest.mark.parametrize(
    ("change", "pointer", "words"),
    [
        ({"zarr_format": URI.replace("3.0", "4.0")}, "/zarr_format", "another version of the protocol"),
        ({"zarr_format": "https://purl.org/zarr/spec/v3#array"}, "/zarr_format", "one array in the draft of February"),
        ({"zarr_format": "https://purl.org/zarr/spec/other"}, "/zarr_format", "no version of Zarr known here"),
        ({"metadata_encoding": "application/cbor"}, "/metadata_encoding", "found application/cbor"),
        ({"metadata_encoding": {"type": "cbor"}}, "/metadata_encoding", "an encoding that is not known here"),
        ({"metadata_encoding": {"type": "json", "extension": "x"}}, "/metadata_encoding", "not known here"),
        ({"metadata_encoding": "https://example.org/cbor"}, "/metadata_encoding", "found https"),
        ({"metadata_encoding": 5}, "/metadata_encoding", "found 5"),
        ({"metadata_encoding": None}, "/metadata_encoding", "found null"),
        ({"metadata_key_suffix": "/x"}, "/metadata_key_suffix", "no suffix of keys: found /x"),
        ({"metadata_key_suffix": 1}, "/metadata_key_suffix", "no suffix of keys"),
        ({"metadata_key_suffix": None}, "/metadata_key_suffix", "found null"),
        ({"extensions": {}}, "/extensions", "not a list"),
        ({"extensions": ["x"]}, "/extensions/0", "not an extension"),
        ({"extensions": [{"must_understand": False}]}, "/extensions/0/extension", "without a URI"),
        ({"extensions": [{"extension": 5, "must_understand": False}]}, "/extensions/0/extension", "without a URI"),
        ({"extensions": [{"extension": "u:x", "must_understand": 0}]}, "/extensions/0/must_understand", "found"),
        ({"extensions": [{"extension": "u:x", "must_understand": None}]}, "/extensions/0/must_understand", "found"),
        ({"extensions": [{"extension": "u:x"}]}, "/extensions/0/must_understand", "is not a boolean"),
        ({"extensions": [{"extension": "u:x", "must_understand": "false"}]}, "/extensions/0/must_understand", "found"),
        ({"extensions": [FOO, {**FOO, "must_understand": True}]}, "/extensions/1", "foo' must be understood"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("/") else "",
)
def test_a_broken_entry_point_is_an_error_that_says_where(change, pointer, words):
    with pytest.raises(MetadataError) as caught:
        enter({**ENTRY, **change}, "")
    assert caught.value.pointer == pointer
    assert words in str(caught.value)


def test_an_entry_point_without_an_encoding_is_an_error():
    with pytest.raises(MetadataError, match="metadata_encoding is missing"):
        enter({"zarr_format": URI, "extensions": []}, "")


# What programs wrote


@pytest.mark.parametrize("name", WRITTEN)
def test_what_programs_wrote_is_written_back(name):
    written = dump(load(WRITTEN[name]))
    assert same(written, WRITTEN[name])
    assert {kind: list(document) for kind, document in written.items()} == {
        kind: list(document) for kind, document in WRITTEN[name].items()
    }


@pytest.mark.parametrize("name", [name for name in WRITTEN if "array" in WRITTEN[name]])
def test_new_attributes_leave_what_else_programs_wrote(name):
    changed = dump(dataclasses.replace(load(WRITTEN[name]), attributes={"new": True}))
    assert load(changed).attributes == {"new": True}
    assert same({**changed["array"], "attributes": 0}, {**WRITTEN[name]["array"], "attributes": 0})
    assert changed["array"]["attributes"].get("filters") == WRITTEN[name]["array"]["attributes"].get("filters")


@pytest.mark.parametrize("name", [name for name in WRITTEN if WRITTEN[name].get("array", {}).get("shape")])
def test_a_new_shape_leaves_what_else_programs_wrote(name):
    metadata = load(WRITTEN[name])
    shape = tuple(2 * length for length in metadata.shape)
    changed = dump(dataclasses.replace(metadata, shape=shape))
    assert same(changed, {"array": {**WRITTEN[name]["array"], "shape": list(shape)}})


def test_filters_in_the_attributes_become_codecs():
    metadata = load(WRITTEN["zarr-filters-delta_then_astype"])
    assert metadata.attributes == {}
    assert [codec.name for codec in metadata.codecs] == ["numcodecs.delta", "numcodecs.astype", "bytes", "blosc"]


def test_an_attribute_called_filters_that_holds_no_codecs_is_one_of_the_user():
    for value in ([], "none", [{"name": "x"}], ["delta"], {"id": "delta"}):
        assert read(attributes={"filters": value}).attributes == {"filters": value}


def test_filters_are_not_lost_to_an_attribute_of_the_same_name():
    metadata = load(WRITTEN["zarr-filters-shuffle"])
    with pytest.raises(NotRepresentableError, match="attribute 'filters'"):
        dump(dataclasses.replace(metadata, attributes={"filters": "mine"}))
    with pytest.raises(NotRepresentableError, match="give it another name"):
        dump(new(attributes={"filters": [{"id": "delta"}]}))


def test_the_sharding_transformer_becomes_the_codec():
    metadata = load(WRITTEN["zarr-sharded-compressed"])
    document = WRITTEN["zarr-sharded-compressed"]["array"]
    inner = document["chunk_grid"]["chunk_shape"]
    counts = document["storage_transformers"][0]["configuration"]["chunks_per_shard"]
    assert metadata.chunk_grid == Named("regular", {"chunk_shape": [a * b for a, b in zip(inner, counts, strict=True)]})
    (sharding,) = metadata.codecs
    assert sharding.name == "sharding_indexed"
    assert sharding.configuration["chunk_shape"] == inner
    assert sharding.configuration["index_codecs"] == [{"name": "bytes", "configuration": {"endian": "little"}}]
    assert sharding.configuration["index_location"] == "end"


SHARDING = "https://purl.org/zarr/spec/storage_transformers/sharding/1.0"


def sharded(counts, **members):
    transformer = {"extension": SHARDING, "type": "indexed", "configuration": {"chunks_per_shard": counts}}
    return read(storage_transformers=[transformer], **members)


@pytest.mark.parametrize(
    ("counts", "shape"), [([2, 5], [4, 15]), ([2], [4, 3]), (2, [4, 3]), ([], [2, 3])], ids=["2", "1", "int", "0"]
)
def test_numbers_of_chunks_that_are_left_out_are_one(counts, shape):
    assert sharded(counts).chunk_grid == Named("regular", {"chunk_shape": shape})


def test_the_shard_of_a_scalar_has_one_chunk():
    members = {"shape": [], "chunk_grid": {"type": "regular", "chunk_shape": []}}
    assert sharded([1], **members).chunk_grid == Named("regular", {"chunk_shape": []})


@pytest.mark.parametrize("counts", [[0, 1], [2, 2, 2], ["2"], None, [True, 1], [2**63, 1], "2", [-1, 1]], ids=repr)
def test_broken_numbers_of_chunks_are_an_error(counts):
    with pytest.raises(MetadataError) as caught:
        sharded(counts)
    assert caught.value.pointer == "/storage_transformers/0/configuration/chunks_per_shard"


def test_the_sharding_of_a_branch_of_zarrita_becomes_the_codec():
    document = array(sharding={"chunks_per_shard": [3, 2], "format": "indexed"})
    metadata = load({"array": document})
    assert metadata.chunk_grid == Named("regular", {"chunk_shape": [6, 6]})
    assert metadata.codecs == sharded([3, 2]).codecs
    assert notes(metadata)[0][0] == "/sharding"
    assert same(dump(metadata), {"array": document})
    with pytest.raises(MetadataError, match="unknown format of shards"):
        read(sharding={"chunks_per_shard": [3, 2], "format": "morton"})


def test_a_storage_transformer_that_is_unknown_is_kept():
    dummy = {"extension": "https://purl.org/zarr/spec/storage_transformers/dummy/1.0", "type": "d", "configuration": {}}
    metadata = read(storage_transformers=[dummy])
    assert [named.name for named in metadata.storage_transformers] == [dummy["extension"]]
    assert dump(metadata)["array"]["storage_transformers"] == [dummy]


def test_a_separator_that_is_repeated_does_not_count():
    members = {"chunk_grid": {"type": "regular", "chunk_shape": [2, 3], "separator": "."}, "dimension_separator": "/"}
    assert read(**members).chunk_key_encoding.configuration == {"separator": "."}
    assert read(dimension_separator=".").chunk_key_encoding.configuration == {"separator": "."}


def test_a_document_without_a_separator_leaves_it_to_the_place():
    assert read().chunk_key_encoding == Named("omnizarr.draft2020")


def test_documents_of_zarrita_before_its_release_are_read():
    document = {
        **array(data_type="|i1", compressor=None, attributes=None, fill_value=None),
        "chunk_grid": {"type": "regular", "chunk_shape": [2, 3]},
    }
    metadata = load({"array": document})
    assert metadata.data_type == Named("int8")
    assert (metadata.attributes, metadata.fill_value) == ({}, UNDEFINED)
    assert notes(metadata) == [
        ("/attributes", "null, read as empty"),
        ("/data_type", "'|i1', read as 'i1'"),
        ("/compressor", "null, read as absent"),
    ]
    assert same(dump(metadata), {"array": document})


def test_documents_of_november_2022_are_read():
    codecs = [
        {"type": "https://purl.org/zarr/spec/codecs/transpose/1.0", "configuration": {"order": "F"}},
        {"type": "https://purl.org/zarr/spec/codecs/endian/1.0", "configuration": {"endian": "big"}},
        {"type": "https://purl.org/zarr/spec/codecs/gzip/1.0", "configuration": {"level": 1}},
    ]
    document = array(data_type="float32", codecs=codecs, dimension_names=["y", None])
    del document["chunk_memory_layout"]
    metadata = load({"array": document})
    assert metadata.data_type == Named("float32")
    assert metadata.codecs == (Named("transpose", {"order": [1, 0]}), BIG, Named("gzip", {"level": 1}))
    assert metadata.dimension_names == ("y", None)
    assert notes(metadata) == []
    assert same(dump(metadata), {"array": document})


def test_the_example_of_november_2022_is_read():
    document = {
        **{name: FLOATS[name] for name in FLOATS if name not in ("compressor", "chunk_memory_layout")},
        "codecs": [{"type": "https://purl.org/zarr/spec/codecs/gzip/1.0", "configuration": {"level": 1}}],
    }
    metadata = load({"array": document})
    assert metadata.codecs == (LITTLE, Named("gzip", {"level": 1}))
    assert same(dump(metadata), {"array": document})


@pytest.mark.parametrize(
    "document",
    [
        {"zarr_format": URI.replace("https", "http"), "attributes": {}},
        {"shape": [1], "chunk_codecs": [], "attributes": {}},
    ],
    ids=["group", "array"],
)
def test_documents_of_the_draft_of_2019_are_left_alone(document):
    assert load({"array" if "shape" in document else "group": document}) is None


# Nodes


def test_no_document_is_no_node():
    assert load({}) is None


def test_an_array_counts_before_a_group_of_the_same_name():
    documents = {"array": FLOATS, "group": GROUP}
    metadata = load(documents)
    assert isinstance(metadata, ArrayMetadata)
    assert notes(metadata) == [("", "an array and a group at one path: the array counts")]
    assert same(dump(metadata), documents)


def test_extensions_of_groups_are_ignored_and_kept():
    document = {"attributes": {}, "extensions": []}
    metadata = load({"group": document})
    assert notes(metadata) == [("/extensions", "groups have no extensions")]
    changed = dump(dataclasses.replace(metadata, attributes={"a": 1}))
    assert changed == {"group": {"attributes": {"a": 1}, "extensions": []}}


def test_unknown_members_are_ignored_and_kept():
    metadata = read(later={"a": 1})
    assert metadata.unknown == {"later": {"a": 1}}
    assert notes(metadata) == [("/later", "member 'later' is not defined, ignored")]
    assert dump(metadata)["array"]["later"] == {"a": 1}
    assert dump(load({"group": {**GROUP, "later": 1}})) == {"group": {**GROUP, "later": 1}}


def test_members_that_the_text_does_not_have_are_not_written_again():
    with pytest.raises(NotRepresentableError, match="member 'mine' is not defined there"):
        dump(new(unknown={"mine": 1}))
    with pytest.raises(NotRepresentableError, match="member 'mine'"):
        dump(GroupMetadata(dialect="v3-draft2020", unknown={"mine": 1}))


def test_an_extension_of_an_array_that_may_be_ignored_is_noted_and_kept():
    metadata = read(extensions=[FOO])
    assert notes(metadata)[-1][0] == "/extensions/0"
    assert dump(metadata)["array"]["extensions"] == [FOO]


@pytest.mark.parametrize(
    ("member", "value", "name"),
    [
        ("chunk_grid", {"extension": "https://example.org/rectilinear", "type": "r", "sizes": [[1, 3], [6]]}, "grid"),
        ("chunk_memory_layout", {"extension": "https://example.org/tiles", "type": "t"}, "layout"),
    ],
    ids=["grid", "layout"],
)
def test_extensions_of_chunks_that_are_unknown_are_kept(member, value, name):
    metadata = read(**{member: value})
    found = metadata.chunk_grid if name == "grid" else metadata.codecs[0]
    assert found.name == value["extension"]
    assert dict(found.configuration) == {key: value[key] for key in value if key != "extension"}
    assert same(dump(metadata)["array"][member], value)
    with pytest.raises(NotRepresentableError):
        dump(dataclasses.replace(metadata, spellings={}))


# Consolidated metadata


def test_consolidated_metadata_holds_the_documents_of_all_nodes():
    metadata = load(WRITTEN["zarr-consolidated"])
    assert sorted(metadata.consolidated) == ["consolidated", "g", "g/x", "y"]
    assert load(metadata.consolidated["g/x"]).data_type == Named("float32")


def test_a_group_of_which_only_consolidated_metadata_speaks_is_read_from_there():
    metadata = load(WRITTEN["zarr-consolidated_only"])
    assert metadata.attributes == {"title": "consolidated"}
    assert dump(dataclasses.replace(metadata, attributes={}))["group"] == {"attributes": {}}


def test_a_root_without_a_document_is_implied_by_consolidated_metadata():
    documents = {".zmetadata": dump_consolidated({"a": {"group": GROUP}})}
    metadata = load(documents)
    assert metadata.implicit
    assert dump(metadata) == documents
    assert dump(dataclasses.replace(metadata, attributes={"x": 1}))["group"] == {"attributes": {"x": 1}}


def test_consolidated_metadata_is_written_as_zarr_python_writes_it():
    nodes = {"": {"group": GROUP}, "a/b": {"array": FLOATS}}
    document = dump_consolidated(nodes, ENTRY)
    assert document == {
        "zarr_consolidated_format": 1,
        "metadata": {"zarr.json": ENTRY, "meta/root.group.json": GROUP, "meta/root/a/b.array.json": FLOATS},
    }
    assert load_consolidated(document) == nodes


def test_keys_that_are_no_documents_are_ignored():
    metadata = {"zarr.json": 1, "meta/root/a": 1, "data/root/a/c0": 1, "meta/root/.array.json": 1, "meta/rootx": 1}
    assert load_consolidated({"zarr_consolidated_format": 1, "metadata": metadata}) == {}


def test_names_with_periods_keep_them():
    metadata = {"meta/root/x.array.group.json": GROUP}
    assert load_consolidated({"zarr_consolidated_format": 1, "metadata": metadata}) == {"x.array": {"group": GROUP}}


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ([], ""),
        ({"zarr_consolidated_format": 2, "metadata": {}}, "/zarr_consolidated_format"),
        ({"zarr_consolidated_format": True, "metadata": {}}, "/zarr_consolidated_format"),
        ({"zarr_consolidated_format": 1}, "/metadata"),
    ],
    ids=["list", "2", "true", "missing"],
)
def test_broken_consolidated_metadata_is_an_error(document, pointer):
    with pytest.raises(ConsolidatedMetadataError) as caught:
        load_consolidated(document)
    assert caught.value.pointer == pointer


def test_changed_nodes_are_consolidated_again():
    metadata = load(WRITTEN["zarr-consolidated"])
    nodes = {name: metadata.consolidated[name] for name in ("g", "y")}
    written = dump(dataclasses.replace(metadata, consolidated=nodes))
    assert load_consolidated(written[".zmetadata"]) == {"": {"group": written["group"]}, **nodes}
    assert dump(dataclasses.replace(metadata, consolidated=None)).keys() == {"group"}
    assert dump(dataclasses.replace(metadata, consolidated={"a": {"zarr.json": {}}})).keys() == {"group"}


# Writing


def test_a_new_array_is_written_to_the_letter():
    codecs = (Named("transpose", {"order": [1, 0]}), LITTLE, Named("gzip", {"level": 5}))
    assert dump(new(codecs=codecs, attributes={"a": 1})) == {
        "array": {
            "shape": [4, 6],
            "data_type": "<i4",
            "chunk_grid": {"type": "regular", "chunk_shape": [2, 3], "separator": "/"},
            "chunk_memory_layout": "F",
            "compressor": {"codec": GZIP, "configuration": {"level": 5}},
            "fill_value": 0,
            "extensions": [],
            "attributes": {"a": 1},
        }
    }


def test_a_new_group_is_written_to_the_letter():
    assert dump(GroupMetadata(dialect="v3-draft2020", attributes={"a": 1})) == {"group": {"attributes": {"a": 1}}}


def test_without_a_compressor_there_is_no_such_member():
    assert "compressor" not in dump(new())["array"]


@pytest.mark.parametrize(
    ("codec", "uri", "configuration"),
    [
        (Named("zstd", {"level": 3, "checksum": False}), "zstd", {"level": 3}),
        (Named("numcodecs.zlib", {"level": 1}), "zlib", {"level": 1}),
        (Named("numcodecs.bz2", {"level": 9}), "bz2", {"level": 9}),
        (Named("numcodecs.lz4", {"acceleration": 1}), "lz4", {"acceleration": 1}),
        (
            Named("blosc", {"cname": "zstd", "clevel": 5, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}),
            "blosc",
            {"cname": "zstd", "clevel": 5, "shuffle": 2, "blocksize": 0},
        ),
    ],
    ids=["zstd", "zlib", "bz2", "lz4", "blosc"],
)
def test_compressors_are_written_under_the_uris_that_zarr_python_and_gdal_read(codec, uri, configuration):
    written = dump(new(codecs=(LITTLE, codec)))["array"]["compressor"]
    assert written == {"codec": f"https://purl.org/zarr/spec/codec/{uri}/1.0", "configuration": configuration}


@pytest.mark.parametrize(
    "identifier", ["bool", "i1", "u1", *(f"{o}{k}{n}" for o in "<>" for k in "iuf" for n in (2, 4, 8))]
)
def test_every_type_of_the_table_is_read_and_written(identifier):
    metadata = read(data_type=identifier, fill_value=False if identifier == "bool" else 0)
    dtype = datatypes.bind(metadata.data_type, metadata.byte_order).dtype
    assert dtype == np.dtype(identifier)
    assert metadata.notes == ()
    codec = Named("bytes") if dtype.itemsize == 1 else BIG if identifier[0] == ">" else LITTLE
    assert metadata.codecs == (codec,)
    assert dump(dataclasses.replace(metadata, spellings={}))["array"]["data_type"] == identifier


@pytest.mark.parametrize("bits", [8, 16, 24, 80])
def test_raw_types_are_read_and_written(bits):
    metadata = read(data_type=f"r{bits}", fill_value="0x" + "01" * (bits // 8))
    assert metadata.fill_value == [1] * (bits // 8)
    assert metadata.notes == ()
    written = dump(dataclasses.replace(metadata, spellings={}))["array"]
    assert (written["data_type"], written["fill_value"]) == (f"r{bits}", "0x" + "01" * (bits // 8))


@pytest.mark.parametrize(
    ("data_type", "document"),
    [
        (Named("numpy.datetime64", {"unit": "s", "scale_factor": 1}), "<M8[s]"),
        (Named("numpy.timedelta64", {"unit": "us", "scale_factor": 1}), "<m8[us]"),
    ],
    ids=["moment", "duration"],
)
def test_times_are_written_as_the_extension_of_the_text(data_type, document):
    written = dump(new(data_type=data_type))["array"]["data_type"]
    assert written == {**MOMENTS["data_type"], "type": document}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data_type": Named("complex64"), "fill_value": [0.0, 0.0]}, r"'<c8' has no place there.*draft of 2019"),
        ({"data_type": Named("string"), "fill_value": "", "codecs": (Named("vlen-utf8"),)}, "has no place there"),
        ({"data_type": Named("fixed_length_utf32", {"length_bytes": 8}), "fill_value": ""}, "'<U2' has no place"),
        ({"data_type": Named("bfloat16"), "fill_value": 0.0}, "'bfloat16' has no place"),
        ({"data_type": Named("numpy.datetime64", {"unit": "s", "scale_factor": 5})}, r"'<M8\[5s\]' has no place"),
        ({"codecs": (Named("numcodecs.delta", {"dtype": "<i4"}), LITTLE)}, "filter 'delta' has no place there"),
        ({"codecs": (LITTLE, Named("crc32c"))}, "filter 'crc32c' has no place there"),
        ({"codecs": (Named("scale_offset"), LITTLE)}, "the v3 draft of 2020: codec 'scale_offset' has no place"),
        ({"codecs": (Named("sharding_indexed", {"chunk_shape": [1, 1]}),)}, "shards have no place there.*final v3"),
        ({"dimension_names": ("y", "x")}, "dimension names have no place there.*_ARRAY_DIMENSIONS"),
        ({"chunk_grid": Named("rectilinear", {})}, "chunk grid 'rectilinear' has no place there"),
        ({"chunk_key_encoding": Named("default")}, "chunk key encoding 'default' has no place there"),
        ({"chunk_key_encoding": Named("v2")}, "chunk key encoding 'v2' has no place there"),
        ({"storage_transformers": (Named("x"),)}, "storage transformer 'x' has no place there"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_the_draft_cannot_express_is_refused(fields, words):
    with pytest.raises(NotRepresentableError, match=r"cannot be written as the v3 draft of 2020: ") as caught:
        dump(new(**fields))
    assert caught.value.remedy
    assert caught.match(words)


def test_dimension_names_that_name_nothing_are_no_loss():
    assert "dimension_names" not in dump(new(dimension_names=(None, None)))["array"]


@pytest.mark.parametrize(
    ("data_type", "value", "document"),
    [
        ("float32", "NaN", "NaN"),
        ("float32", "Infinity", "+Infinity"),
        ("float64", "-Infinity", "-Infinity"),
        ("float32", 1.5, 1.5),
        ("float32", "0x7fc00001", "0x7fc00001"),
        ("float64", "0xfff0000000000001", "0xfff0000000000001"),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("bool", True, True),
        ("r24", [1, 2, 255], "0x0102ff"),
        ("int32", UNDEFINED, None),
    ],
    ids=str,
)
def test_fill_values_are_written_in_the_terms_of_the_text(data_type, value, document):
    written = dump(new(data_type=Named(data_type), fill_value=value))["array"]["fill_value"]
    assert same(written, document)


def test_a_fill_value_out_of_range_is_not_written():
    with pytest.raises(MetadataError, match="out of the range"):
        dump(new(fill_value=2**31))


def test_big_endian_elements_are_written_as_such():
    metadata = new(codecs=(BIG,), byte_order=">")
    assert dump(metadata)["array"]["data_type"] == ">i4"


# Broken documents

MISSING = object()
BROKEN = [
    ("/shape", MISSING, "shape is missing"),
    ("/shape", 24, "not a list"),
    ("/shape/0", -1, "a length is negative"),
    ("/shape/1", 6.0, "a length is not an integer"),
    ("/data_type", MISSING, "data_type is missing"),
    ("/data_type", 7, "not a data type"),
    ("/data_type", "i4", "unknown data type: found i4"),
    *(("/data_type", name, "unknown data type") for name in ("f8", "float", "<f8 ", "|f8", "<b1", "<M8[ns]", "<i3")),
    *(("/data_type", other, "not a data type") for other in (["u1"], None)),
    *(
        ("/data_type/fallback", {"extension": "u:x", "type": "x", "fallback": other}, "no data type to fall back on")
        for other in ("foo", "f8", 5, {"extension": "u:x", "type": "y"})
    ),
    ("/data_type/extension", {"extension": 5, "type": "x", "fallback": "u1"}, "an extension without a URI"),
    ("/data_type", "=f8", "unknown data type"),
    ("/data_type", "", "unknown data type"),
    ("/data_type", "r7", "not a number of whole bytes"),
    ("/data_type/type", {"extension": "u:x"}, "type is missing"),
    ("/data_type/extension", {"type": "<c8"}, "an extension without a URI"),
    ("/data_type/fallback", {"extension": "u:x", "type": "x", "fallback": "c8"}, "no data type to fall back on"),
    ("/chunk_grid", MISSING, "chunk_grid is missing"),
    ("/chunk_grid", [2, 3], "not an object"),
    ("/chunk_grid/type", {"chunk_shape": [2, 3]}, "no type of chunk grid"),
    ("/chunk_grid/type", {"type": "hex", "chunk_shape": [2, 3]}, "no type of chunk grid: found hex"),
    ("/chunk_grid/chunk_shape", {"type": "regular"}, "chunk_shape is missing"),
    ("/chunk_grid/chunk_shape", {"type": "regular", "chunk_shape": [2]}, "1 chunk lengths for 2 dimensions"),
    *(
        ("/chunk_grid/chunk_shape", {"type": "regular", "chunk_shape": lengths}, "")
        for lengths in (2, "23", {"0": 2}, [2, 3, 1])
    ),
    *(
        ("/chunk_grid/chunk_shape/1", {"type": "regular", "chunk_shape": [2, length]}, "a length is")
        for length in ("3", 2.5, True, None, -3)
    ),
    *(("/chunk_grid/type", {"type": other, "chunk_shape": [2, 3]}, "no type") for other in ("Regular", "", None, 1)),
    *(("/chunk_grid", other, "not an object") for other in ("regular", 5, None)),
    *(("/chunk_memory_layout", other, "") for other in (["u:x"], "u:x", 5, None)),
    ("/chunk_memory_layout/type", {"extension": "u:x"}, "type is missing"),
    ("/chunk_memory_layout/extension", {"extension": 5, "type": "x"}, "an extension without a URI"),
    ("/chunk_grid/chunk_shape/0", {"type": "regular", "chunk_shape": [0, 3]}, "a chunk length is 0"),
    ("/chunk_grid/separator", {"type": "regular", "chunk_shape": [2, 3], "separator": "-"}, "no separator"),
    ("/chunk_grid/type", {"extension": "u:x"}, "type is missing"),
    ("/chunk_grid/extension", {"extension": 1, "type": "x"}, "an extension without a URI"),
    ("/chunk_memory_layout", MISSING, "chunk_memory_layout is missing"),
    ("/chunk_memory_layout", "K", "no memory layout: found K"),
    ("/chunk_memory_layout/extension", {"type": "x"}, "an extension without a URI"),
    ("/compressor", "gzip", "not an object"),
    ("/compressor/codec", {"configuration": {}}, "a compressor without a URI"),
    *(("/compressor", other, "not an object") for other in ([],)),
    *(("/compressor/codec", other, "a compressor without a URI") for other in ({}, {"codec": None})),
    ("/compressor/codec", {"codec": 1}, "a compressor without a URI: found 1"),
    ("/compressor/configuration", {"codec": GZIP, "configuration": [1]}, "not an object"),
    ("/fill_value", MISSING, "fill_value is missing"),
    ("/fill_value", "zero", "the fill value is not an integer"),
    ("/fill_value", 0.5, "the fill value is not an integer"),
    ("/fill_value", 2**31, "out of the range"),
    ("/fill_value", "0x1", "the fill value has the wrong form"),
    ("/fill_value", "0x000000001", "expected 0x and 8 hexadecimal digits"),
    ("/fill_value", "0b" + "0" * 31, "expected 0b and 32 binary digits"),
    ("/fill_value", [0], "the fill value is not an integer"),
    ("/extensions", 1, "not a list"),
    ("/extensions/0", [{**FOO, "must_understand": True}], "must be understood, and is not known here"),
    ("/extensions/0/extension", [{"must_understand": False}], "without a URI"),
    ("/extensions/0/extension", [{"extension": 5, "must_understand": False}], "without a URI"),
    *(
        ("/extensions/0/must_understand", [{"extension": "u:x", **words}], "is not a boolean")
        for words in ({}, {"must_understand": "false"}, {"must_understand": 0}, {"must_understand": None})
    ),
    ("/attributes", [], "not an object"),
    ("/storage_transformers", {}, "not a list"),
    ("/dimension_names", ["x"], "no names of dimensions"),
    ("/attributes/filters/0", [{"id": ""}], "a codec without an id"),
]


@pytest.mark.parametrize(
    ("pointer", "value", "words"),
    BROKEN,
    ids=[f"{index}{case[0]}" for index, case in enumerate(BROKEN)],
)
def test_a_broken_document_is_an_error_that_says_where(pointer, value, words):
    name, *below = pointer[1:].split("/")
    document = array()
    if value is MISSING:
        del document[name]
    elif name == "shape" and below:
        document["shape"][int(below[0])] = value
    elif below[:1] == ["filters"]:
        document["attributes"] = {"filters": value}
    else:
        document[name] = value
    with pytest.raises(MetadataError) as caught:
        load({"array": document})
    expected = f"{pointer}/id" if "filters" in pointer else pointer
    assert caught.value.pointer == expected
    assert words in str(caught.value)
    problems = []
    metadata = load({"array": document}, problems.append)
    assert expected in [problem.pointer for problem in problems]
    assert isinstance(metadata, ArrayMetadata)


@pytest.mark.parametrize("kind", ["array", "group"])
@pytest.mark.parametrize("document", [[], None, 1, "x"], ids=repr)
def test_a_document_that_is_no_object_is_an_error(kind, document):
    with pytest.raises(MetadataError, match="not an object"):
        load({kind: document})


# Names


@pytest.mark.parametrize("name", ["a", "A", "0", "-", "_", "a.b", ".a", "..a", "x.array", "a" * 255, "__x"])
def test_names_of_the_characters_of_the_text_are_allowed(name):
    check_draft_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "...", "a b", "a/b", "ä", "a" * 256, "a\n", "a\\b", 1], ids=repr)
def test_other_names_are_not(name):
    with pytest.raises(NodeNameError):
        check_draft_name(name)


def test_paths_are_put_in_order():
    assert normalize("/foo//bar/") == "foo/bar"
    assert normalize("/") == normalize("") == ""
    with pytest.raises(NodeNameError, match=r"'\.\.'"):
        normalize("foo/..")


def test_new_arrays_are_compressed_by_the_codec_that_is_registered():
    assert DRAFT2020.new_arrays.compressor == {"id": "gzip", "level": 1}
    assert DRAFT2020.new_arrays.chunk_key_encoding == Named("omnizarr.draft2020", {"separator": "/"})
