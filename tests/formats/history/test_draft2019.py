from __future__ import annotations

import copy
import dataclasses
import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.codecs import chain
from omnizarr.codecs.contract import ArraySpec
from omnizarr.errors import (
    MetadataError,
    NodeNameError,
    NotRepresentableError,
    UnknownChunkGridError,
    UnknownCodecError,
    UnknownDataTypeError,
    UnknownExtensionError,
)
from omnizarr.formats import DRAFT2019, V2, V3, paths
from omnizarr.formats.history import draft2019
from omnizarr.formats.spelling import same
from omnizarr.model import UNDEFINED, ArrayMetadata, GroupMetadata, Named, datatypes, grids, keys
from omnizarr.nodes.location import normalize

FORMAT = "http://purl.org/zarr/spec/protocol/core/3.0"
GZIP = "http://purl.org/zarr/spec/codec/gzip"
DATETIMES = "https://purl.org/zarr/spec/protocol/extensions/datetime-dtypes/1.0"
LITTLE = Named("bytes", {"endian": "little"})
BIG = Named("bytes", {"endian": "big"})

# The two worked examples of the text, member by member.
EXAMPLE_ARRAY = {
    "zarr_format": FORMAT,
    "shape": [10000, 1000],
    "data_type": "<f8",
    "chunk_grid": {"type": "regular", "chunk_shape": [1000, 100]},
    "chunk_memory_layout": "C",
    "chunk_codecs": [{"codec": GZIP, "level": 1}],
    "fill_value": "NaN",
    "extensions": [],
    "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
}
EXAMPLE_GROUP = {"zarr_format": FORMAT, "extensions": [], "attributes": {"spam": "ham", "eggs": 42}}

# The table of core data types: identifier, name of the final v3, byte order of the elements.
TYPES = [
    ("bool", "bool", None),
    ("i1", "int8", None),
    ("<i2", "int16", "<"),
    ("<i4", "int32", "<"),
    ("<i8", "int64", "<"),
    (">i2", "int16", ">"),
    (">i4", "int32", ">"),
    (">i8", "int64", ">"),
    ("u1", "uint8", None),
    ("<u2", "uint16", "<"),
    ("<u4", "uint32", "<"),
    ("<u8", "uint64", "<"),
    ("<f2", "float16", "<"),
    ("<f4", "float32", "<"),
    ("<f8", "float64", "<"),
    (">f2", "float16", ">"),
    (">f4", "float32", ">"),
    (">f8", "float64", ">"),
    ("<c8", "complex64", "<"),
    ("<c16", "complex128", "<"),
    (">c8", "complex64", ">"),
    (">c16", "complex128", ">"),
]


def array(**members):
    """A small array document, with `members` in place of its own."""
    return {
        "zarr_format": FORMAT,
        "shape": [4, 6],
        "data_type": "<i4",
        "chunk_grid": {"type": "regular", "chunk_shape": [2, 3]},
        "chunk_memory_layout": "C",
        "chunk_codecs": [],
        "fill_value": 0,
        "extensions": [],
        "attributes": {},
        **members,
    }


def load(**members):
    return draft2019.load({"array": array(**members)})


def new(**fields):
    """A model that no document was read for."""
    return ArrayMetadata(
        **{
            "dialect": "v3-draft2019",
            "shape": (4, 6),
            "data_type": Named("int32"),
            "chunk_grid": Named("regular", {"chunk_shape": [2, 3]}),
            "chunk_key_encoding": Named("v2", {"separator": "."}),
            "fill_value": 0,
            "codecs": (LITTLE,),
            **fields,
        }
    )


def dump(metadata):
    return draft2019.dump(metadata)["array"]


def notes(metadata):
    return [note.pointer for note in metadata.notes]


def respelled(metadata):
    """The document of a model that has forgotten what was read."""
    (document,) = draft2019.dump(dataclasses.replace(metadata, spellings={})).values()
    return document


# What is read


def test_the_array_of_the_text_is_read():
    metadata = draft2019.load({"array": EXAMPLE_ARRAY})
    assert metadata.dialect == "v3-draft2019"
    assert metadata.shape == (10000, 1000)
    assert metadata.data_type == Named("float64")
    assert metadata.chunk_grid == Named("regular", {"chunk_shape": [1000, 100]})
    assert metadata.chunk_key_encoding == Named("v2", {"separator": "."})
    assert metadata.codecs == (LITTLE, Named("gzip", {"level": 1}))
    assert metadata.fill_value == "NaN"
    assert metadata.attributes == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
    assert (metadata.unknown, metadata.notes) == ({}, ())


def test_the_group_of_the_text_is_read():
    metadata = draft2019.load({"group": EXAMPLE_GROUP})
    assert isinstance(metadata, GroupMetadata)
    assert metadata.dialect == "v3-draft2019"
    assert metadata.attributes == {"spam": "ham", "eggs": 42}
    assert (metadata.unknown, metadata.notes) == ({}, ())


@pytest.mark.parametrize("name", ["array", "group"])
def test_the_examples_of_the_text_are_written_as_they_were_and_again_equally(name):
    document = {"array": EXAMPLE_ARRAY, "group": EXAMPLE_GROUP}[name]
    metadata = draft2019.load({name: document})
    assert same(draft2019.dump(metadata), {name: document})
    assert same(respelled(metadata), document)
    assert list(respelled(metadata)) == list(document)


@pytest.mark.parametrize(
    "documents",
    [
        {},
        {"zarr.json": {"zarr_format": FORMAT}},
        {"group": {"attributes": {}, "extensions": []}},
        {"array": {"shape": [4], "data_type": "<i4", "compressor": {}, "extensions": [], "attributes": {}}},
        {"array": []},
        {"group": None},
    ],
    ids=["none", "entry-point", "group-of-june", "array-of-june", "list", "null"],
)
def test_what_has_no_mark_of_may_2019_is_left_to_others(documents):
    assert draft2019.load(documents) is None


def test_an_array_and_a_group_at_one_place_are_a_problem_and_the_array_is_taken():
    problems = []
    documents = {"array": array(), "group": EXAMPLE_GROUP}
    assert draft2019.load(documents, problems.append).node_type == "array"
    assert [problem.message for problem in problems] == ["one node is both an array and a group"]


@pytest.mark.parametrize(("identifier", "name", "order"), TYPES, ids=[row[0] for row in TYPES])
def test_every_data_type_of_the_table_is_read_and_written(identifier, name, order):
    metadata = load(data_type=identifier, fill_value=None)
    assert metadata.data_type == Named(name)
    assert metadata.byte_order == (order or "<")
    assert metadata.codecs == (Named("bytes") if order is None else BIG if order == ">" else LITTLE,)
    assert metadata.notes == ()
    assert respelled(metadata)["data_type"] == identifier


@pytest.mark.parametrize("identifier", [">u2", ">u4", ">u8"])
def test_big_endian_unsigned_integers_are_read_with_a_note_and_kept(identifier):
    metadata = load(data_type=identifier)
    assert (metadata.byte_order, metadata.codecs) == (">", (BIG,))
    assert notes(metadata) == ["/data_type"]
    assert dump(dataclasses.replace(metadata, attributes={"a": 1}))["data_type"] == identifier


@pytest.mark.parametrize("identifier", ["|b1", "|u1", "<i1", "r16", "int16"])
def test_identifiers_of_other_texts_are_read_with_a_note(identifier):
    assert notes(load(data_type=identifier, fill_value=None)) == ["/data_type"]


def test_an_unknown_extension_type_is_read_as_its_fallback():
    extension = {"extension": "https://example.org/money", "type": {"currency": "EUR"}, "fallback": ">i8", "digits": 2}
    metadata = load(data_type=extension, fill_value=5)
    assert (metadata.data_type, metadata.byte_order, metadata.codecs) == (Named("int64"), ">", (BIG,))
    assert metadata.fill_value == 5
    assert notes(metadata) == ["/data_type/extension"]
    assert dump(dataclasses.replace(metadata, shape=(8, 6)))["data_type"] == extension


def test_an_unknown_extension_type_without_a_fallback_is_kept_and_cannot_be_bound():
    extension = {"extension": "https://example.org/money", "type": "EUR"}
    metadata = load(data_type=extension, fill_value="nothing", chunk_codecs=[{"codec": GZIP, "level": 1}])
    assert metadata.data_type.name == "https://example.org/money"
    assert metadata.fill_value == "nothing"
    assert dump(metadata)["data_type"] == extension
    with pytest.raises(UnknownDataTypeError):
        datatypes.bind(metadata.data_type)


def test_moments_and_durations_are_those_of_their_extension():
    extension = {"extension": DATETIMES, "type": ">M8[ns]", "fallback": ">i8"}
    metadata = load(data_type=extension, fill_value=None)
    assert metadata.data_type == Named("numpy.datetime64", {"unit": "ns", "scale_factor": 1})
    assert (metadata.byte_order, metadata.codecs, metadata.notes) == (">", (BIG,), ())
    assert respelled(metadata)["data_type"] == extension


@pytest.mark.parametrize(
    ("member", "separator"),
    [({}, "."), ({"separator": "."}, "."), ({"separator": "/"}, "/"), ({"separator": "-"}, "-")],
)
def test_the_grid_says_the_separator_of_chunk_keys(member, separator):
    metadata = load(chunk_grid={"type": "regular", "chunk_shape": [2, 3], **member})
    assert keys.bind(metadata.chunk_key_encoding).encode((1, 2)) == f"1{separator}2"
    assert metadata.notes == ()


def test_a_separator_that_is_not_ascii_leaves_a_note():
    metadata = load(chunk_grid={"type": "regular", "chunk_shape": [2, 3], "separator": "·"})
    assert keys.bind(metadata.chunk_key_encoding).encode((1, 2)) == "1·2"
    assert [note.pointer for note in metadata.notes] == ["/chunk_grid/separator"]


def test_the_default_separator_is_not_written():
    assert dump(new())["chunk_grid"] == {"type": "regular", "chunk_shape": [2, 3]}
    nested = new(chunk_key_encoding=Named("v2", {"separator": "/"}))
    assert dump(nested)["chunk_grid"] == {"type": "regular", "chunk_shape": [2, 3], "separator": "/"}


@pytest.mark.parametrize(("coords", "key"), [((1, 23, 45), "1.23.45"), ((0,), "0"), ((), "0")])
def test_chunk_keys_are_the_indices_joined(coords, key):
    lengths = [1] * len(coords)
    metadata = load(shape=lengths, chunk_grid={"type": "regular", "chunk_shape": lengths})
    assert keys.bind(metadata.chunk_key_encoding).encode(coords) == key


@pytest.mark.parametrize("kind", ["rectangular", "regular", {"a": [1]}])
def test_an_extension_of_the_grid_is_kept_and_cannot_be_bound(kind):
    grid = {"extension": "https://example.org/grid", "type": kind, "separator": 3}
    metadata = load(chunk_grid=grid)
    assert metadata.chunk_grid == Named("https://example.org/grid", {"type": kind, "separator": 3})
    assert dump(metadata)["chunk_grid"] == grid
    assert respelled(metadata)["chunk_grid"] == grid
    with pytest.raises(UnknownChunkGridError, match=r"https://example\.org/grid"):
        grids.bind(metadata.chunk_grid, metadata.shape)


def test_layout_f_is_a_transpose_first():
    metadata = load(chunk_memory_layout="F", chunk_codecs=[{"codec": GZIP, "level": 2}])
    assert metadata.codecs == (Named("transpose", {"order": [1, 0]}), LITTLE, Named("gzip", {"level": 2}))
    assert respelled(metadata)["chunk_memory_layout"] == "F"


def test_an_extension_of_the_layout_is_kept_and_cannot_be_bound():
    layout = {"extension": "https://example.org/hilbert", "type": "hilbert", "order": 3}
    metadata = load(chunk_memory_layout=layout)
    assert [codec.name for codec in metadata.codecs] == ["https://example.org/hilbert", "bytes"]
    assert dump(metadata)["chunk_memory_layout"] == layout
    assert respelled(metadata)["chunk_memory_layout"] == layout
    with pytest.raises(UnknownCodecError, match=r"https://example\.org/hilbert"):
        chain.bind(metadata.codecs, ArraySpec((2, 3), datatypes.bind(metadata.data_type), 0))


def test_codecs_are_applied_in_their_order():
    codecs = [
        {"codec": "http://purl.org/zarr/spec/codec/delta", "dtype": ">i4"},
        {"codec": "http://purl.org/zarr/spec/codec/shuffle", "elementsize": 4},
        {"codec": "http://purl.org/zarr/spec/codec/zlib", "level": 1},
        {"codec": "http://purl.org/zarr/spec/codec/crc32", "location": "end"},
    ]
    metadata = load(data_type=">i4", chunk_codecs=codecs)
    assert metadata.codecs == (
        Named("numcodecs.delta", {"dtype": ">i4"}),
        BIG,
        Named("numcodecs.shuffle", {"elementsize": 4}),
        Named("numcodecs.zlib", {"level": 1}),
        Named("numcodecs.crc32", {"location": "end"}),
    )
    assert respelled(metadata)["chunk_codecs"] == codecs


def test_an_unknown_codec_is_kept_and_cannot_be_bound():
    codecs = [{"codec": GZIP, "level": 1}, {"codec": "https://example.org/seal", "type": {"a": 1}}]
    metadata = load(chunk_codecs=codecs)
    assert metadata.codecs[-1].configuration == {"type": {"a": 1}}
    assert dump(metadata)["chunk_codecs"] == codecs
    assert respelled(metadata)["chunk_codecs"] == codecs
    with pytest.raises(UnknownCodecError):
        chain.bind(metadata.codecs, ArraySpec((2, 3), datatypes.bind(metadata.data_type), 0))


def test_parameters_in_an_object_of_their_own_are_read_with_a_note():
    codec = {"codec": GZIP, "configuration": {"level": 3}}
    metadata = load(chunk_codecs=[codec])
    assert metadata.codecs == (LITTLE, Named("gzip", {"level": 3}))
    assert notes(metadata) == ["/chunk_codecs/0/configuration"]
    assert dump(metadata)["chunk_codecs"] == [codec]
    assert respelled(metadata)["chunk_codecs"] == [{"codec": GZIP, "level": 3}]


@pytest.mark.parametrize(
    ("data_type", "fill_value", "meant", "written"),
    [
        ("bool", True, True, True),
        ("u1", 255, 255, 255),
        ("<u8", 2**64 - 1, 2**64 - 1, 2**64 - 1),
        ("<i8", -(2**63), -(2**63), -(2**63)),
        ("<f4", 1, 1.0, 1.0),
        ("<f4", -0.5, -0.5, -0.5),
        ("<f8", "NaN", "NaN", "NaN"),
        ("<f8", "Infinity", "Infinity", "+Infinity"),
        ("<f8", "+Infinity", "Infinity", "+Infinity"),
        (">f8", "-Infinity", "-Infinity", "-Infinity"),
        # IEEE 754: 1.0 is 3f800000; a quiet NaN with a payload keeps it
        ("<f4", "0x3f800000", 1.0, 1.0),
        (">f4", "0x3f800000", 1.0, 1.0),
        ("<f4", "0x7fc00001", "0x7fc00001", "0x7fc00001"),
        ("<f2", "0b0011110000000000", 1.0, 1.0),
        ("<c8", [0.5, -1], [0.5, -1.0], [0.5, -1.0]),
        (">c16", ["NaN", "+Infinity"], ["NaN", "Infinity"], ["NaN", "+Infinity"]),
        ("<f8", None, UNDEFINED, None),
        ("bool", None, UNDEFINED, None),
        ("<c8", None, UNDEFINED, None),
    ],
)
def test_fill_values_are_put_into_the_words_of_v3_and_back(data_type, fill_value, meant, written):
    metadata = load(data_type=data_type, fill_value=fill_value)
    assert same(metadata.fill_value, meant)
    assert same(dump(metadata)["fill_value"], fill_value)
    assert same(respelled(metadata)["fill_value"], written)


@pytest.mark.parametrize(
    ("data_type", "fill_value"), [("<f8", float("nan")), ("<i4", 3.0), ("bool", 0), ("<f8", "Infinity")]
)
def test_fill_values_in_other_forms_are_read_with_a_note(data_type, fill_value):
    assert notes(load(data_type=data_type, fill_value=fill_value)) == ["/fill_value"]


@pytest.mark.parametrize(
    ("found", "is_noted"),
    [
        (FORMAT, False),
        ("https://purl.org/zarr/spec/protocol/core/3.0", True),
        ("http://purl.org/zarr/spec/protocol/core/3.1", True),
        ("https://purl.org/zarr/spec/protocol/core/3.12", True),
    ],
)
def test_minor_versions_and_https_are_read(found, is_noted):
    for documents in ({"array": array(zarr_format=found)}, {"group": {**EXAMPLE_GROUP, "zarr_format": found}}):
        metadata = draft2019.load(documents)
        assert notes(metadata) == ["/zarr_format"] * is_noted
        assert draft2019.dump(metadata) == documents


def test_unknown_members_are_noted_and_kept():
    metadata = load(dimension_names=["x", "y"], **{"a/b": None})
    assert metadata.unknown == {"dimension_names": ["x", "y"], "a/b": None}
    assert notes(metadata) == ["/dimension_names", "/a~1b"]
    changed = dump(dataclasses.replace(metadata, attributes={"a": 1}))
    assert changed == array(dimension_names=["x", "y"], attributes={"a": 1}, **{"a/b": None})


def test_members_of_a_later_minor_version_are_ignored_with_one_note():
    metadata = load(zarr_format="http://purl.org/zarr/spec/protocol/core/3.1", more=1)
    assert metadata.unknown == {"more": 1}
    assert notes(metadata) == ["/zarr_format"]


@pytest.mark.parametrize("name", ["attributes", "extensions"])
@pytest.mark.parametrize("kind", ["array", "group"])
def test_absent_attributes_and_extensions_are_empty_ones(kind, name):
    document = {key: value for key, value in {"array": array(), "group": EXAMPLE_GROUP}[kind].items() if key != name}
    metadata = draft2019.load({kind: document})
    assert notes(metadata) == [f"/{name}"]
    assert draft2019.dump(metadata) == {kind: document}
    assert name in respelled(metadata)


@pytest.mark.parametrize("kind", ["array", "group"])
def test_extensions_that_need_not_be_understood_are_kept(kind):
    extensions = [{"extension": "https://example.org/x", "must_understand": False, "more": {"a": 1}}]
    document = {**{"array": array(), "group": EXAMPLE_GROUP}[kind], "extensions": extensions}
    metadata = draft2019.load({kind: document})
    assert notes(metadata) == ["/extensions/0"]
    changed = draft2019.dump(dataclasses.replace(metadata, attributes={"new": 1}))
    assert same(changed, {kind: {**document, "attributes": {"new": 1}}})


@pytest.mark.parametrize("kind", ["array", "group"])
def test_extensions_that_must_be_understood_are_refused_by_name(kind):
    extensions = [
        {"extension": "https://example.org/x", "must_understand": False},
        {"extension": "https://example.org/y", "must_understand": True},
    ]
    document = {**{"array": array(), "group": EXAMPLE_GROUP}[kind], "extensions": extensions}
    with pytest.raises(UnknownExtensionError, match=r"https://example\.org/y") as raised:
        draft2019.load({kind: document})
    assert raised.value.pointer == "/extensions/1"


def test_a_chunk_length_of_0_in_an_empty_dimension_is_1():
    metadata = load(shape=[0, 6], chunk_grid={"type": "regular", "chunk_shape": [0, 3]})
    assert metadata.chunk_grid == Named("regular", {"chunk_shape": [1, 3]})
    assert notes(metadata) == ["/chunk_grid/chunk_shape/0"]


def test_unknown_members_of_a_regular_grid_are_noted():
    metadata = load(chunk_grid={"type": "regular", "chunk_shape": [2, 3], "origin": [0, 0]})
    assert notes(metadata) == ["/chunk_grid/origin"]


# What breaks the text

MISSING = object()
BROKEN = [
    ("/zarr_format", MISSING, None, "zarr_format is missing"),
    ("/zarr_format", 3, None, "another zarr_format: found 3"),
    ("/zarr_format", None, None, "another zarr_format: found null"),
    ("/zarr_format", "http://purl.org/zarr/spec/protocol/core/4.0", None, "another zarr_format"),
    ("/zarr_format", "http://purl.org/zarr/spec/protocol/core/33.0", None, "another zarr_format"),
    ("/zarr_format", "http://purl.org/zarr/spec/protocol/core/3.0/dev", None, "another zarr_format"),
    ("/zarr_format", "", None, "another zarr_format"),
    ("/shape", MISSING, None, "shape is missing"),
    ("/shape", 24, None, "not a list: found 24"),
    ("/shape", None, None, "not a list: found null"),
    ("/shape/0", 4.0, None, "a length is not an integer"),
    ("/shape/1", True, None, "a length is not an integer"),
    ("/shape/1", -1, None, "a length is negative"),
    ("/shape/1", 2**63, None, "a length is too large"),
    ("/data_type", MISSING, None, "data_type is missing"),
    ("/data_type", None, None, "not a data type"),
    ("/data_type", ["<i4"], None, "not a data type"),
    *(("/data_type", name, None, "unknown data type") for name in ("f8", "float", "<f8 ", "|f8", "<b1", "<M8[ns]")),
    ("/data_type", 8, None, "not a data type"),
    *(
        (
            "/data_type",
            {"extension": "https://example.org/x", "type": "x", "fallback": other},
            "/data_type/fallback",
            "",
        )
        for other in ("f8", 5, {"extension": "https://example.org/x", "type": "y"})
    ),
    ("/data_type", "i4", None, "unknown data type: found i4"),
    ("/data_type", "|i4", None, "unknown data type"),
    ("/data_type", "<f16", None, "unknown data type"),
    ("/data_type", "", None, "unknown data type"),
    ("/data_type", {"type": "x"}, "/data_type/extension", "without a URI"),
    ("/data_type", {"extension": 3, "type": "x"}, "/data_type/extension", "found 3"),
    ("/data_type", {"extension": "https://example.org/x"}, "/data_type/type", "type is missing"),
    (
        "/data_type",
        {"extension": "https://example.org/x", "type": "x", "fallback": "x"},
        "/data_type/fallback",
        "no data type to fall back on",
    ),
    ("/chunk_grid", MISSING, None, "chunk_grid is missing"),
    ("/chunk_grid", None, None, "not understood: found null"),
    ("/chunk_grid", "regular", None, "not understood: found regular"),
    ("/chunk_grid/type", MISSING, None, "type is missing"),
    ("/chunk_grid/type", "rectilinear", None, "a chunk grid that the text does not define: found rectilinear"),
    ("/chunk_grid/type", ["regular"], None, "a chunk grid that the text does not define"),
    ("/chunk_grid/chunk_shape", MISSING, None, "chunk_shape is missing"),
    *(("/chunk_grid/type", other, None, "") for other in ("Regular", "", None, 1)),
    *(("/chunk_grid/chunk_shape", lengths, None, "not a list") for lengths in ("23", {"0": 2})),
    *(("/chunk_grid/chunk_shape/1", length, None, "a length is") for length in ("3", 2.5, True, None, -3)),
    ("/chunk_grid/chunk_shape", [2, 3, 1], None, "3 chunk lengths for 2 dimensions"),
    ("/chunk_grid/chunk_shape", 2, None, "not a list"),
    ("/chunk_grid/chunk_shape", [2], None, "1 chunk lengths for 2 dimensions"),
    ("/chunk_grid/chunk_shape/0", 0, None, "a chunk length is 0"),
    ("/chunk_grid/chunk_shape/1", 3.0, None, "a length is not an integer"),
    ("/chunk_grid/separator", None, None, "no separator of chunk keys: found null"),
    ("/chunk_grid/separator", 7, None, "no separator of chunk keys: found 7"),
    (
        "/chunk_grid",
        {"extension": None, "type": "x"},
        "/chunk_grid/extension",
        "an extension without a URI: found null",
    ),
    (
        "/chunk_grid",
        {"extension": "regular", "type": "x", "chunk_shape": [2, 3]},
        "/chunk_grid/extension",
        "not a URI: found regular",
    ),
    ("/chunk_grid", {"extension": "https://example.org/x"}, "/chunk_grid/type", "type is missing"),
    ("/chunk_memory_layout", MISSING, None, "chunk_memory_layout is missing"),
    ("/chunk_memory_layout", None, None, "not understood: found null"),
    ("/chunk_memory_layout", "A", None, 'not understood: found A, expected "C", "F"'),
    ("/chunk_memory_layout", ["C"], None, "not understood"),
    ("/chunk_memory_layout", {"type": "C"}, "/chunk_memory_layout/extension", "an extension without a URI"),
    ("/chunk_memory_layout", {"extension": "https://example.org/x"}, "/chunk_memory_layout/type", "type is missing"),
    ("/chunk_codecs", MISSING, None, "chunk_codecs is missing"),
    ("/chunk_codecs", None, None, "not a list: found null"),
    ("/chunk_codecs", {"codec": GZIP}, None, "not a list"),
    ("/chunk_codecs/0", GZIP, None, "not a codec"),
    *(("/chunk_codecs/0", codec, None, "not a codec") for codec in (5, [])),
    ("/chunk_codecs/0/codec", None, None, "a codec without a URI"),
    ("/chunk_codecs/0/codec", MISSING, None, "a codec without a URI"),
    ("/chunk_codecs/0/codec", 1, None, "a codec without a URI: found 1"),
    ("/chunk_codecs/0/codec", "", None, "a codec without a URI"),
    ("/fill_value", MISSING, None, "fill_value is missing"),
    ("/fill_value", 0.5, None, "not an integer"),
    ("/fill_value", True, None, "not an integer"),
    ("/fill_value", 2**31, None, "out of the range of int32"),
    ("/fill_value", "x", None, "not an integer"),
    ("/fill_value", [0], None, "not an integer"),
    ("/fill_value", {}, None, "not an integer"),
    ("/fill_value", "0x000001", None, "the fill value has the wrong form"),
    ("/extensions", None, None, "not a list: found null"),
    ("/extensions", {}, None, "not a list"),
    ("/extensions/0", "https://example.org/x", None, "not an extension"),
    ("/extensions/0/extension", MISSING, None, "an extension without a URI"),
    ("/extensions/0/extension", 1, None, "an extension without a URI: found 1"),
    ("/extensions/0/must_understand", MISSING, None, "must_understand is not a boolean"),
    ("/extensions/0/must_understand", None, None, "must_understand is not a boolean"),
    ("/extensions/0/must_understand", "false", None, "must_understand is not a boolean"),
    ("/extensions/0/must_understand", 0, None, "must_understand is not a boolean: found 0"),
    ("/extensions/0/must_understand", "no", None, "must_understand is not a boolean: found no"),
    ("/attributes", None, None, "not an object: found null"),
    ("/attributes", [], None, "not an object"),
]


def broken(pointer, value):
    document = array(
        chunk_codecs=[{"codec": GZIP, "level": 1}],
        extensions=[{"extension": "https://example.org/x", "must_understand": False}],
    )
    document = copy.deepcopy(document)
    *above, last = [int(part) if part.isdigit() else part for part in pointer.split("/")[1:]]
    parent = document
    for part in above:
        parent = parent[part]
    if value is MISSING:
        del parent[last]
    else:
        parent[last] = value
    return document


@pytest.mark.parametrize(
    ("pointer", "value", "at", "text"), BROKEN, ids=[f"{i}{row[0].replace('/', '-')}" for i, row in enumerate(BROKEN)]
)
def test_what_breaks_the_text_is_stated_where_it_is(pointer, value, at, text):
    with pytest.raises(MetadataError) as raised:
        draft2019.load({"array": broken(pointer, value)})
    assert raised.value.pointer == (at or pointer)
    assert text in str(raised.value)
    assert "draft of 2019" in raised.value.spec or raised.value.spec.startswith('Zarr v3 core, "fill_value"')


@pytest.mark.parametrize("row", range(len(BROKEN)), ids=str)
def test_all_problems_are_collected_and_something_sensible_is_returned(row):
    pointer, value, at, _ = BROKEN[row]
    problems = []
    metadata = draft2019.load({"array": broken(pointer, value)}, problems.append)
    found = [problem.pointer for problem in problems]
    # without a shape, the number of chunk lengths is wrong as well
    assert found == [at or pointer] or (pointer == "/shape" and found == ["/shape", "/chunk_grid/chunk_shape"])
    assert len(metadata.chunk_grid.configuration.get("chunk_shape", metadata.shape)) == len(metadata.shape)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/zarr_format", "3"), ("/extensions", 0), ("/extensions/0", None), ("/attributes", "x"), ("/attributes", None)],
)
def test_broken_groups_are_stated_where_they_are_broken(pointer, value):
    document = {**copy.deepcopy(EXAMPLE_GROUP), "extensions": [{}]}
    *above, last = pointer.split("/")[1:]
    if above:
        document["extensions"][0] = value
    else:
        document = {**EXAMPLE_GROUP, last: value}
    with pytest.raises(MetadataError) as raised:
        draft2019.load({"group": document})
    assert raised.value.pointer == pointer


def test_a_group_keeps_no_copies_of_its_members():
    group = draft2019.load({"group": EXAMPLE_GROUP})
    with pytest.raises(NotRepresentableError, match="consolidated metadata has no place there"):
        draft2019.dump(dataclasses.replace(group, consolidated={"a": {"array": array()}}))
    with pytest.raises(NotRepresentableError, match="there is no consolidated metadata"):
        DRAFT2019.consolidated.dump({"a": {"array": array()}})
    assert DRAFT2019.consolidated.load({"metadata": {}}) == {}


# What is written


def test_a_new_array_is_written_in_the_terms_of_the_text():
    metadata = new(
        codecs=(Named("transpose", {"order": [1, 0]}), BIG, Named("gzip", {"level": 5})),
        byte_order=">",
        data_type=Named("float64"),
        fill_value="NaN",
        attributes={"a": 1},
    )
    assert list(draft2019.dump(metadata)) == ["array"]
    assert list(dump(metadata).items()) == [
        ("zarr_format", FORMAT),
        ("shape", [4, 6]),
        ("data_type", ">f8"),
        ("chunk_grid", {"type": "regular", "chunk_shape": [2, 3]}),
        ("chunk_memory_layout", "F"),
        ("chunk_codecs", [{"codec": GZIP, "level": 5}]),
        ("fill_value", "NaN"),
        ("extensions", []),
        ("attributes", {"a": 1}),
    ]


def test_a_new_group_is_written_in_the_terms_of_the_text():
    assert draft2019.dump(GroupMetadata(dialect="v3-draft2019", attributes={"a": 1})) == {
        "group": {"zarr_format": FORMAT, "extensions": [], "attributes": {"a": 1}}
    }


def test_the_entry_point_is_that_of_june_2019():
    assert draft2019.entry() == {"zarr_format": FORMAT, "metadata_encoding": "application/json", "extensions": []}


def test_keys_are_those_of_june_2019():
    keyspace = DRAFT2019.keyspace
    assert keyspace.documents("a/b") == {"array": "meta/root/a/b.array", "group": "meta/root/a/b.group"}
    assert keyspace.documents("") == {"array": "meta/root.array", "group": "meta/root.group"}
    assert (keyspace.chunk_prefix("a/b"), keyspace.chunk_prefix("")) == ("data/a/b/", "data/")


def test_its_own_entry_point_leads_to_these_keys():
    entered = DRAFT2019.entry_point.enter(DRAFT2019.entry_point.new(), "")
    assert entered == DRAFT2019.keyspace


def test_arrays_of_other_formats_are_written_in_the_terms_of_the_draft():
    zarray = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [2],
        "dtype": "<u2",
        "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
        "fill_value": None,
        "order": "C",
        "filters": [{"id": "delta", "dtype": "<u2"}],
    }
    document = dump(V2.load({".zarray": zarray}))
    assert (document["data_type"], document["fill_value"]) == ("<u2", None)
    assert document["chunk_codecs"] == [
        {"codec": "http://purl.org/zarr/spec/codec/delta", "dtype": "<u2"},
        {
            "codec": "http://purl.org/zarr/spec/codec/blosc",
            "cname": "lz4",
            "clevel": 5,
            "shuffle": 1,
            "blocksize": 0,
        },
    ]


def test_copies_of_documents_in_other_formats_are_left_out():
    below = {"a": {"zarr.json": {"zarr_format": 3, "node_type": "group"}}}
    assert draft2019.dump(GroupMetadata(dialect="v3", consolidated=below))["group"].keys() == EXAMPLE_GROUP.keys()


def test_arrays_of_the_draft_become_v2_and_v3():
    metadata = draft2019.load({"array": EXAMPLE_ARRAY})
    assert V2.dump(metadata)[".zarray"]["compressor"] == {"id": "gzip", "level": 1}
    assert V3.dump(metadata)["zarr.json"]["data_type"] == "float64"


@pytest.mark.parametrize(
    ("fields", "what", "remedy"),
    [
        ({"dimension_names": ("x", None)}, "dimension names", "_ARRAY_DIMENSIONS"),
        ({"chunk_grid": Named("rectilinear", {"kind": "inline"})}, "chunk grid 'rectilinear'", "rechunk"),
        ({"chunk_key_encoding": Named("default")}, "chunk key encoding 'default'", "'v2'"),
        ({"storage_transformers": (Named("acme.x"),)}, "storage transformer 'acme.x'", "write v3"),
        ({"codecs": (Named("sharding_indexed", {"chunk_shape": [1, 1]}),)}, "'sharding_indexed'", "inner chunks"),
        ({"codecs": (Named("transpose", {"order": [0, 2, 1]}), LITTLE), "shape": (1, 2, 3)}, "'transpose'", "C and F"),
        ({"codecs": (Named("scale_offset", {"scale": 2}), LITTLE)}, "'scale_offset'", "numcodecs.fixedscaleoffset"),
        ({"data_type": Named("uint16"), "codecs": (BIG,)}, "data type '>u2'", "store it as '<u2'"),
        ({"data_type": Named("uint64"), "codecs": (BIG,)}, "data type '>u8'", "store it as '<u8'"),
        (
            {"data_type": Named("string"), "codecs": (Named("vlen-utf8"),), "fill_value": ""},
            "'string'",
            "write v2 or v3",
        ),
        ({"data_type": Named("fixed_length_utf32", {"length_bytes": 8}), "fill_value": ""}, "'<U2'", "uint32"),
        ({"data_type": Named("null_terminated_bytes", {"length_bytes": 8}), "fill_value": ""}, "'|S8'", "uint8"),
        ({"data_type": Named("raw_bytes", {"length_bytes": 2}), "fill_value": [0, 0]}, "'|V2'", "uint8"),
        ({"data_type": Named("r16"), "fill_value": [0, 0]}, "'|V2'", "uint8"),
        ({"data_type": Named("bfloat16")}, "'bfloat16'", "float32"),
        ({"data_type": Named("int4")}, "'int4'", "int8"),
        (
            {"data_type": Named("struct", {"fields": [{"name": "a", "data_type": "int32"}]})},
            "data type",
            "one array per field",
        ),
        (
            {"data_type": Named("numpy.datetime64", {"unit": "us", "scale_factor": 10})},
            "'<M8[10us]'",
            "a single unit",
        ),
        ({"unknown": {"_nczarr_array": {}}}, "member '_nczarr_array'", "attributes"),
    ],
)
def test_what_the_draft_lacks_is_refused_with_the_nearest_possibility(fields, what, remedy):
    with pytest.raises(NotRepresentableError) as raised:
        draft2019.dump(new(**fields))
    assert str(raised.value).startswith("cannot be written as the v3 draft of 2019: ")
    assert what in str(raised.value)
    assert remedy in raised.value.remedy


def test_unknown_members_that_changed_are_refused():
    metadata = load(more=1)
    with pytest.raises(NotRepresentableError, match="member 'more'"):
        draft2019.dump(dataclasses.replace(metadata, unknown={"more": 2}))
    assert "more" not in dump(dataclasses.replace(metadata, unknown={}))


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"shape": (4, True)}, "/shape/1"),
        ({"chunk_grid": Named("regular", {"chunk_shape": [2]})}, "/chunk_grid/chunk_shape"),
        ({"chunk_grid": Named("regular", {})}, "/chunk_grid/chunk_shape"),
        ({"fill_value": "x"}, "/fill_value"),
        ({"fill_value": 2**40}, "/fill_value"),
        ({"attributes": None}, "/attributes"),
    ],
)
def test_what_is_new_needs_no_tolerance(fields, pointer):
    with pytest.raises(MetadataError) as raised:
        draft2019.dump(new(**fields))
    assert raised.value.pointer == pointer


@pytest.mark.parametrize("separator", ["-", "", "::"])
def test_separators_of_any_text_are_kept_and_written(separator):
    grid = {"type": "regular", "chunk_shape": [2, 3], "separator": separator}
    metadata = load(chunk_grid=grid)
    assert dump(metadata)["chunk_grid"] == grid
    assert respelled(metadata)["chunk_grid"] == grid


def test_a_separator_that_does_not_tell_chunks_apart_cannot_be_bound():
    metadata = load(chunk_grid={"type": "regular", "chunk_shape": [2, 3], "separator": ""})
    with pytest.raises(MetadataError, match="separator"):
        keys.bind(metadata.chunk_key_encoding)


# Names of nodes


@pytest.mark.parametrize("name", ["a", "A", "0", "_", "-", "__a", "a.b", ".a", "..a", "zarr.json", "a" * 255])
def test_names_of_the_listed_characters_are_allowed(name):
    paths.check_draft_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "...", "a/b", "a b", "é", "a\n", "a\0", "٣", "a" * 256, 3, None])
def test_other_names_are_refused(name):
    with pytest.raises(NodeNameError):
        paths.check_draft_name(name)


def test_paths_lose_extra_slashes():
    assert normalize("/a//B/c.d/") == "a/B/c.d"
    assert normalize("/") == ""
    with pytest.raises(NodeNameError, match="'é'"):
        paths.check_draft_name("é")


# Laws over generated documents

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3)
URIS = st.from_regex(r"https?://example\.org/[a-z]{1,5}(/[0-9]\.[0-9])?", fullmatch=True)
POINTS = st.builds(lambda more, uri, kind: {**more, "extension": uri, "type": kind}, ATTRIBUTES, URIS, JSON_VALUES)
EXTENSIONS = st.lists(
    st.builds(lambda more, uri: {**more, "extension": uri, "must_understand": False}, ATTRIBUTES, URIS), max_size=2
)
FORMATS = st.sampled_from([FORMAT, FORMAT.replace("http:", "https:"), FORMAT.replace("3.0", "3.7")])
CODECS = st.sampled_from(
    [
        {"codec": GZIP, "level": 1},
        {"codec": GZIP},
        {"codec": "https://purl.org/zarr/spec/codec/zlib/1.0", "level": "3"},
        {"codec": "https://purl.org/zarr/spec/codec/blosc/1.0", "configuration": {"cname": "zstd", "shuffle": -1}},
        {"codec": "http://purl.org/zarr/spec/codec/delta", "dtype": "<f4", "astype": "<i2"},
        {"codec": "http://purl.org/zarr/spec/codec/shuffle", "elementsize": 0},
        {"codec": "https://example.org/codecs/crc32c"},
        {"codec": "https://example.org/seal", "id": 3, "codecs": [{}]},
        {"codec": "http://purl.org/zarr/spec/codec/", "level": 3},
    ]
)


@st.composite
def typed(draw):
    """A data type, and a fill value that it may have."""
    identifier = draw(st.sampled_from([row[0] for row in TYPES] + [">u2", ">u8"]))
    extension = draw(st.sampled_from([None, None, None, "https://example.org/x", DATETIMES]))
    text = identifier.lstrip("<>")
    match text[0], int(text[1:]) if text != "bool" else 0:
        case "b", _:
            fill = st.booleans()
        case "i", size:
            fill = st.integers(-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1)
        case "u", size:
            fill = st.integers(0, 2 ** (8 * size) - 1)
        case "f", size:
            words = st.sampled_from(["NaN", "Infinity", "+Infinity", "-Infinity", float("nan"), 3])
            bits = st.integers(0, 2 ** (8 * size) - 1).map(lambda bits: f"0x{bits:0{2 * size}x}")
            fill = st.floats(width=8 * size) | words | bits
        case _, size:
            part = st.floats(allow_nan=False, allow_infinity=False, width=4 * size)
            fill = st.lists(part | st.sampled_from(["NaN", "+Infinity", 0]), min_size=2, max_size=2)
    if extension == DATETIMES:
        kind = draw(st.sampled_from(["<M8[ns]", ">m8[s]"]))
        return {"extension": extension, "type": kind, "fallback": f"{kind[0]}i8"}, draw(st.integers(0, 2**40))
    data_type = identifier if extension is None else {"extension": extension, "type": 1, "fallback": identifier}
    return data_type, draw(st.none() | fill)


@st.composite
def arrays(draw):
    pairs = draw(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(1, 2**63 - 1)), max_size=4))
    grid = {"type": "regular", "chunk_shape": [chunk for _, chunk in pairs]}
    separators = st.sampled_from([{}, {"separator": "."}, {"separator": "/"}, {"separator": "-"}, {"origin": 1}])
    data_type, fill_value = draw(typed())
    members = {
        "zarr_format": draw(FORMATS),
        "shape": [length for length, _ in pairs],
        "data_type": data_type,
        "chunk_grid": draw(separators.map(lambda more: {**grid, **more}) | POINTS),
        "chunk_memory_layout": draw(st.sampled_from("CF") | POINTS),
        "chunk_codecs": draw(st.lists(CODECS, max_size=3)),
        "fill_value": fill_value,
        **draw(
            st.fixed_dictionaries({}, optional={"extensions": EXTENSIONS, "attributes": ATTRIBUTES, "x": JSON_VALUES})
        ),
    }
    return {name: members[name] for name in draw(st.permutations(list(members)))}


GROUPS = st.fixed_dictionaries(
    {"zarr_format": FORMATS, "extensions": EXTENSIONS, "attributes": ATTRIBUTES}, optional={"a/b": JSON_VALUES}
)
NODES = st.builds(lambda document: {"array": document}, arrays()) | st.builds(
    lambda document: {"group": document}, GROUPS
)


@given(NODES)
def test_dump_inverts_load(node):
    written = draft2019.dump(draft2019.load(node))
    assert same(written, node)
    assert {name: list(document) for name, document in written.items()} == {
        name: list(document) for name, document in node.items()
    }


@given(arrays(), ATTRIBUTES)
def test_new_attributes_leave_all_other_members(document, attributes):
    metadata = draft2019.load({"array": document})
    changed = dump(dataclasses.replace(metadata, attributes=attributes))
    assert same({**changed, "attributes": 0}, {**document, "attributes": 0})
    assert same(draft2019.load({"array": changed}).attributes, attributes)


@given(arrays())
def test_what_is_spelled_again_means_the_same(document):
    metadata = draft2019.load({"array": document})
    try:
        again = draft2019.load({"array": respelled(metadata)})
    except NotRepresentableError as error:
        assert error.remedy  # noqa: PT017
        return
    assert again.notes == ()
    assert same(again.fill_value, metadata.fill_value)
    assert (again.data_type, again.byte_order) == (metadata.data_type, metadata.byte_order)
    assert (again.chunk_grid, again.chunk_key_encoding) == (metadata.chunk_grid, metadata.chunk_key_encoding)
    assert same(again.codecs, metadata.codecs)


@given(arrays(), st.data())
def test_damaged_documents_are_read_or_refused_equally_by_both_attitudes(document, data):
    document = copy.deepcopy(document)
    name = data.draw(st.sampled_from([name for name in document if name != "zarr_format"]))
    document[name] = data.draw(JSON_VALUES)
    problems = []
    metadata = draft2019.load({"array": document}, problems.append)
    if problems:
        with pytest.raises(MetadataError) as raised:
            draft2019.load({"array": document})
        assert str(raised.value) == str(problems[0].error())
    else:
        assert same(draft2019.dump(metadata), {"array": document})


def test_chunks_of_the_text_decode_to_what_they_hold():
    """A chunk of two codecs, made by hand with the standard library."""
    values = np.arange(6, dtype=">i2").reshape(2, 3)
    shuffled = np.frombuffer(values.tobytes(order="F"), "u1").reshape(6, 2).T.tobytes()
    metadata = load(
        data_type=">i2",
        chunk_memory_layout="F",
        chunk_codecs=[
            {"codec": "http://purl.org/zarr/spec/codec/shuffle", "elementsize": 2},
            {"codec": "http://purl.org/zarr/spec/codec/zlib", "level": 9},
        ],
    )
    bound = datatypes.bind(metadata.data_type, metadata.byte_order)
    codecs = chain.bind(metadata.codecs, ArraySpec((2, 3), bound, bound.default_fill_value))
    assert np.array_equal(codecs.decode(zlib.compress(shuffled)), values)


# Hierarchies, their values made by hand


def hierarchy(**values):
    entry = {"zarr_format": FORMAT, "metadata_encoding": "application/json", "extensions": []}
    made = {"zarr.json": json.dumps(entry).encode()}
    for key, value in values.items():
        made[key] = value if isinstance(value, bytes) else json.dumps(value).encode()
    return made


def test_a_hierarchy_made_by_hand_is_read():
    numbers = np.arange(15, dtype=">f4").reshape(3, 5)
    grid = {"type": "regular", "chunk_shape": [2, 3]}
    codecs = [{"codec": "http://purl.org/zarr/spec/codec/zlib", "level": 1}]
    document = array(
        shape=[3, 5], data_type=">f4", chunk_grid=grid, chunk_memory_layout="F", chunk_codecs=codecs, fill_value="NaN"
    )
    corner = np.full((2, 3), -1, ">f4")
    corner[:1, :2] = numbers[2:, 3:]
    values = hierarchy(
        **{
            "meta/root/a/b.array": document,
            "data/a/b/0.0": zlib.compress(numbers[:2, :3].tobytes(order="F")),
            "data/a/b/1.1": zlib.compress(corner.tobytes(order="F")),
        }
    )
    expected = np.full((3, 5), np.nan, "f4")
    expected[:2, :3] = numbers[:2, :3]
    expected[2:, 3:] = numbers[2:, 3:]
    opened = omnizarr.open(values)
    assert np.array_equal(opened["a/b"][:], expected, equal_nan=True)
    assert [name for name, _ in opened.members()] == ["a"]


@pytest.mark.parametrize(("meta", "data", "path"), [("meta/root", "data/", ""), ("meta/root/s", "data/s/", "s")])
def test_an_array_without_dimensions_has_one_chunk_called_0(meta, data, path):
    document = array(shape=[], data_type="<i8", chunk_grid={"type": "regular", "chunk_shape": []})
    values = hierarchy(**{f"{meta}.array": document, f"{data}0": (2**40).to_bytes(8, "little")})
    assert omnizarr.open_array(values, path=path)[...] == 2**40


def test_siblings_that_differ_in_case_alone_are_not_made():
    group = omnizarr.create_group({}, zarr_format="3-draft2019")
    group.create_array("foo", shape=(1,), dtype="i1")
    with pytest.raises(NodeNameError, match="upper and lower case"):
        group.create_group("FOO")
