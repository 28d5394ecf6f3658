from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError, NodeNameError, NotRepresentableError
from omnizarr.formats import V0, V2
from omnizarr.formats.spelling import same
from omnizarr.model import UNDEFINED, ArrayMetadata, GroupMetadata, Named, keys

NODES = json.loads((Path(__file__).parents[1] / "cases" / "early" / "zarr_0_4.json").read_text("utf-8"))["nodes"]
LITTLE = Named("bytes", {"endian": "little"})
BLOSC = Named("blosc", {"cname": "lz4", "clevel": 3, "shuffle": "shuffle", "typesize": 4, "blocksize": 0})
META = {
    "chunks": [2, 3],
    "clevel": 3,
    "cname": "lz4",
    "dtype": "<i4",
    "fill_value": 42,
    "shape": [4, 6],
    "shuffle": 1,
}


def new(**fields):
    """A model that no document was read for."""
    return ArrayMetadata(
        **{
            "dialect": "v0",
            "shape": (4, 6),
            "data_type": Named("int32"),
            "chunk_grid": Named("regular", {"chunk_shape": [2, 3]}),
            "chunk_key_encoding": Named("omnizarr.v0"),
            "fill_value": 42,
            "codecs": (LITTLE, BLOSC),
            **fields,
        }
    )


def test_the_example_of_the_text_is_understood():
    document = {
        "chunks": [10000, 100],
        "clevel": 3,
        "cname": "lz4",
        "dtype": "<i4",
        "fill_value": 42,
        "shape": [1000000, 1000],
        "shuffle": 1,
    }
    assert V0.load({"__zmeta__": document, "__zattr__": {"bar": 4.2, "baz": "quux", "foo": 42}}) == ArrayMetadata(
        dialect="v0",
        shape=(1000000, 1000),
        data_type=Named("int32"),
        chunk_grid=Named("regular", {"chunk_shape": [10000, 100]}),
        chunk_key_encoding=Named("omnizarr.v0"),
        fill_value=42,
        codecs=(LITTLE, BLOSC),
        attributes={"bar": 4.2, "baz": "quux", "foo": 42},
    )


@pytest.mark.parametrize("name", NODES)
def test_dump_inverts_load_over_what_zarr_0_4_wrote(name):
    assert same(V0.dump(V0.load(NODES[name])), NODES[name])
    assert list(V0.dump(V0.load(NODES[name]))["__zmeta__"]) == list(NODES[name]["__zmeta__"])


@pytest.mark.parametrize("name", NODES)
def test_what_zarr_0_4_wrote_means_the_same_when_spelled_again(name):
    metadata = V0.load(NODES[name])
    again = V0.load(V0.dump(dataclasses.replace(metadata, spellings={})))
    assert again == metadata
    assert again.notes == ()


@pytest.mark.parametrize("name", NODES)
def test_a_new_shape_leaves_all_other_members_as_they_were(name):
    metadata = V0.load(NODES[name])
    shape = (metadata.shape[0] + 7, *metadata.shape[1:])
    expected = {**NODES[name]["__zmeta__"], "shape": list(shape)}
    assert same(V0.dump(dataclasses.replace(metadata, shape=shape))["__zmeta__"], expected)


def test_attributes_are_written_once_there_are_some():
    without = V0.load({"__zmeta__": META})
    assert without.notes == ()
    assert V0.dump(without) == {"__zmeta__": META}
    assert V0.dump(dataclasses.replace(without, attributes={"a": 1})) == {"__zmeta__": META, "__zattr__": {"a": 1}}
    emptied = dataclasses.replace(V0.load({"__zmeta__": META, "__zattr__": {"a": 1}}), attributes={})
    assert V0.dump(emptied) == {"__zmeta__": META, "__zattr__": {}}


def test_null_is_an_undefined_fill_value():
    assert V0.load({"__zmeta__": {**META, "fill_value": None}}).fill_value is UNDEFINED


def test_other_members_are_kept():
    metadata = V0.load({"__zmeta__": {**META, "order": "F"}})
    assert metadata.unknown == {"order": "F"}
    assert V0.dump(metadata)["__zmeta__"]["order"] == "F"


@pytest.mark.parametrize("documents", [{}, {"__zattr__": {}}, {"meta": META}], ids=str)
def test_other_documents_make_no_array(documents):
    assert V0.load(documents) is None


@pytest.mark.parametrize("member", META)
def test_each_member_must_be_there(member):
    document = {name: value for name, value in META.items() if name != member}
    problems = []
    metadata = V0.load({"__zmeta__": document}, problems.append)
    assert (problems[0].pointer, problems[0].message) == (f"/{member}", f"{member} is missing")
    assert metadata.notes == ()
    with pytest.raises(MetadataError, match=f"{member} is missing"):
        V0.load({"__zmeta__": document})


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"shape": "4"}, "/shape"),
        ({"shape": [4, -6]}, "/shape/1"),
        ({"chunks": [2]}, "/chunks"),
        ({"chunks": [0, 3]}, "/chunks/0"),
        ({"dtype": "i4"}, "/dtype"),
        ({"dtype": None}, "/dtype"),
        ({"fill_value": "x"}, "/fill_value"),
        ({"cname": "brotli"}, "/cname"),
        ({"cname": None}, "/cname"),
        ({"clevel": 10}, "/clevel"),
        ({"clevel": True}, "/clevel"),
        ({"shuffle": 3}, "/shuffle"),
        ({"shuffle": "byte"}, "/shuffle"),
    ],
    ids=str,
)
def test_a_broken_member_is_named(members, pointer):
    problems = []
    assert V0.load({"__zmeta__": {**META, **members}}, problems.append) is not None
    assert problems[0].pointer == pointer
    with pytest.raises(MetadataError) as raised:
        V0.load({"__zmeta__": {**META, **members}})
    assert raised.value.pointer == pointer
    assert raised.value.spec == 'zarr 0.4, "Configuration metadata"'


@pytest.mark.parametrize("value", [[], "text", None, 1])
def test_documents_are_objects(value):
    with pytest.raises(MetadataError, match="__zattr__ is not an object"):
        V0.load({"__zmeta__": META, "__zattr__": value})
    problems = []
    assert V0.load({"__zmeta__": value}, problems.append) is None
    assert [problem.message for problem in problems] == ["__zmeta__ is not an object"]


def test_a_new_array_is_written_as_in_the_text():
    assert V0.dump(new()) == {"__zmeta__": META}


@pytest.mark.parametrize(
    ("fields", "what", "remedy"),
    [
        ({"codecs": (Named("transpose", {"order": [1, 0]}), LITTLE, BLOSC)}, "order F", "order C"),
        ({"codecs": (LITTLE,)}, "without compression", "blosc"),
        ({"codecs": (LITTLE, Named("numcodecs.zlib", {"level": 1}))}, "'numcodecs.zlib'", "re-encode with blosc"),
        ({"chunk_key_encoding": Named("v2", {"separator": "."})}, "chunk key encoding 'v2'", "rename the chunks"),
        ({"dimension_names": ("x", None)}, "dimension names", "_ARRAY_DIMENSIONS"),
        ({"data_type": Named("string"), "codecs": (Named("vlen-utf8"),)}, "data type 'string'", "'<U16'"),
        ({"shape": (), "chunk_grid": Named("regular", {"chunk_shape": []})}, "without dimensions", "shape (1,)"),
    ],
)
def test_what_v0_cannot_say_is_refused_with_the_nearest_possibility(fields, what, remedy):
    with pytest.raises(NotRepresentableError) as raised:
        V0.dump(new(**fields))
    assert str(raised.value).startswith("cannot be written as zarr 0.4's format: ")
    assert what in str(raised.value)
    assert remedy in raised.value.remedy


def test_there_are_no_groups():
    with pytest.raises(NotRepresentableError, match="groups have no place there"):
        V0.dump(GroupMetadata(dialect="v0"))


def test_what_is_new_needs_no_tolerance():
    with pytest.raises(MetadataError) as raised:
        V0.dump(new(codecs=(LITTLE, Named("blosc", {**BLOSC.configuration, "clevel": 11}))))
    assert raised.value.pointer == "/clevel"


def test_an_array_of_v2_has_the_same_meaning_under_other_keys():
    document = {
        "zarr_format": 2,
        "shape": [4, 6],
        "chunks": [2, 3],
        "dtype": "<i4",
        "compressor": {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 1, "blocksize": 0},
        "fill_value": 42,
        "order": "C",
        "filters": None,
    }
    metadata = V2.load({".zarray": document})
    moved = dataclasses.replace(metadata, chunk_key_encoding=V0.new_arrays.chunk_key_encoding)
    assert V0.dump(moved) == {"__zmeta__": META}


def test_chunks_are_in_a_directory_of_their_own():
    assert V0.keyspace.documents("a") == {"__zmeta__": "a/__zmeta__", "__zattr__": "a/__zattr__"}
    encoding = keys.bind(V0.load({"__zmeta__": META}).chunk_key_encoding)
    assert V0.keyspace.chunk_prefix("a") + encoding.encode((4, 2)) == "a/__zdata__/4.2.blosc"


@pytest.mark.parametrize("name", ["", "..", "a/b"])
def test_names_that_no_array_can_have(name):
    with pytest.raises(NodeNameError):
        V0.check_name(name)


PAIRS = st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(1, 2**63 - 1)), max_size=4)
FILLS = st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.floats(allow_nan=False, width=32)


@given(
    PAIRS,
    st.sampled_from(["<f4", ">f8", "<i4", "|u1", "|b1", "|S2", [["a", "<f4"], ["b", "|S1"]]]),
    FILLS,
    st.fixed_dictionaries(
        {
            "cname": st.sampled_from(["blosclz", "lz4", "lz4hc", "snappy", "zlib"]),
            "clevel": st.integers(0, 9),
            "shuffle": st.integers(0, 2),
        }
    ),
    st.none() | st.dictionaries(st.text(max_size=5), st.none() | st.floats() | st.text(max_size=5), max_size=3),
)
def test_dump_inverts_load(pairs, dtype, fill_value, options, attributes):
    document = {
        "shape": [length for length, _ in pairs],
        "chunks": [chunk for _, chunk in pairs],
        "dtype": dtype,
        "fill_value": fill_value,
        **options,
    }
    documents = {"__zmeta__": document} if attributes is None else {"__zmeta__": document, "__zattr__": attributes}
    problems = []
    metadata = V0.load(documents, problems.append)
    # a float may be out of the range of an integer
    assert {problem.pointer for problem in problems} <= {"/fill_value"}
    if not problems:
        assert same(V0.dump(metadata), documents)


def test_zstd_came_later():
    metadata = V0.load(dict(NODES[next(iter(NODES))]))
    codecs = (*metadata.codecs[:-1], Named("blosc", {**metadata.codecs[-1].configuration, "cname": "zstd"}))
    with pytest.raises(NotRepresentableError, match="blosc with zstd"):
        V0.dump(dataclasses.replace(metadata, codecs=codecs, spellings={}))
