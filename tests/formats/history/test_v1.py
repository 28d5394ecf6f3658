from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.codecs import chain
from omnizarr.codecs.contract import ArraySpec
from omnizarr.errors import MetadataError, NodeNameError, NotRepresentableError
from omnizarr.formats import V1, V2, documents
from omnizarr.formats.spelling import same
from omnizarr.model import UNDEFINED, ArrayMetadata, GroupMetadata, Named, datatypes

CASES = Path(__file__).parents[1] / "cases" / "early"
NODES = {
    f"{version}-{name}": node
    for version in ("zarr_1_0", "zarr_1_1")
    for name, node in json.loads((CASES / f"{version}.json").read_text("utf-8"))["nodes"].items()
}
LITTLE = Named("bytes", {"endian": "little"})
BIG = Named("bytes", {"endian": "big"})
ZLIB = Named("numcodecs.zlib", {"level": 1})
BLOSC = Named("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0})
F = Named("transpose", {"order": [1, 0]})
META = {
    "chunks": [2, 3],
    "compression": "zlib",
    "compression_opts": 1,
    "dtype": "<i4",
    "fill_value": 42,
    "order": "C",
    "shape": [4, 6],
    "zarr_format": 1,
}


def node(**members):
    return {"meta": {**META, **members}, "attrs": {}}


def load(**members):
    return V1.load(node(**members))


def notes(metadata):
    return [note.pointer for note in metadata.notes]


def new(**fields):
    """A model that no document was read for."""
    return ArrayMetadata(
        **{
            "dialect": "v1",
            "shape": (4, 6),
            "data_type": Named("int32"),
            "chunk_grid": Named("regular", {"chunk_shape": [2, 3]}),
            "chunk_key_encoding": Named("v2", {"separator": "."}),
            "fill_value": 42,
            "codecs": (LITTLE, ZLIB),
            **fields,
        }
    )


def dump(**fields):
    return V1.dump(new(**fields))["meta"]


# The examples of the text


def test_the_example_of_the_text_with_blosc_is_understood():
    document = {
        "chunks": [1000, 1000],
        "compression": "blosc",
        "compression_opts": {"clevel": 5, "cname": "lz4", "shuffle": 1},
        "dtype": "<f8",
        "fill_value": None,
        "order": "C",
        "shape": [10000, 10000],
        "zarr_format": 1,
    }
    metadata = V1.load({"meta": document, "attrs": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}})
    assert metadata == ArrayMetadata(
        dialect="v1",
        shape=(10000, 10000),
        data_type=Named("float64"),
        chunk_grid=Named("regular", {"chunk_shape": [1000, 1000]}),
        chunk_key_encoding=Named("v2", {"separator": "."}),
        fill_value=UNDEFINED,
        codecs=(
            LITTLE,
            Named("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}),
        ),
        attributes={"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
    )
    assert metadata.notes == ()


def test_the_example_of_the_text_with_zlib_is_understood():
    metadata = load(shape=[20, 20], chunks=[10, 10])
    assert (metadata.shape, metadata.fill_value, metadata.codecs) == ((20, 20), 42, (LITTLE, ZLIB))


def test_a_structured_dtype_of_the_text_is_a_record():
    metadata = load(dtype=[["r", "|u1"], ["g", "|u1"], ["b", "|u1"]], fill_value=0)
    fields = [{"name": name, "data_type": "uint8"} for name in "rgb"]
    assert metadata.data_type == Named("struct", {"fields": fields})
    assert metadata.fill_value == {"r": 0, "g": 0, "b": 0}


def test_an_array_is_written_as_in_the_text():
    assert V1.dump(new(attributes={"foo": 42})) == {"meta": META, "attrs": {"foo": 42}}


def test_members_are_written_in_the_order_of_the_text_others_last():
    names = ["zarr_format", "shape", "chunks", "dtype", "compression", "compression_opts", "fill_value", "order"]
    assert list(dump(unknown={"other": 1})) == [*names, "other"]


# What zarr 1.0 and 1.1 wrote


@pytest.mark.parametrize("name", NODES)
def test_dump_inverts_load_over_what_zarr_1_wrote(name):
    assert same(V1.dump(V1.load(NODES[name])), NODES[name])


@pytest.mark.parametrize("name", NODES)
def test_what_zarr_1_wrote_keeps_its_members_in_order(name):
    assert list(V1.dump(V1.load(NODES[name]))["meta"]) == list(NODES[name]["meta"])


@pytest.mark.parametrize("name", NODES)
def test_what_zarr_1_wrote_can_be_rendered(name):
    rendered = documents.render(V1.dump(V1.load(NODES[name]))["meta"])
    again = V1.load({"meta": documents.parse(rendered), "attrs": {}})
    assert again.fill_value == V1.load(NODES[name]).fill_value


ODD = ("objects", "no_dimensions", "record_sub_array")


@pytest.mark.parametrize("name", [name for name in NODES if not name.endswith(ODD)])
def test_what_zarr_1_wrote_means_the_same_when_spelled_again(name):
    metadata = V1.load(NODES[name])
    again = V1.load(V1.dump(dataclasses.replace(metadata, spellings={})))
    assert dataclasses.replace(again, dialect="v1") == metadata
    assert again.notes == ()


@pytest.mark.parametrize("name", NODES)
def test_new_attributes_leave_meta_as_it_was(name):
    changed = V1.dump(dataclasses.replace(V1.load(NODES[name]), attributes={"new": 1}))
    assert same(changed, {"meta": NODES[name]["meta"], "attrs": {"new": 1}})


@pytest.mark.parametrize("name", [name for name in NODES if not name.endswith(("no_dimensions", "no_length"))])
def test_a_new_shape_leaves_all_other_members_as_they_were(name):
    metadata = V1.load(NODES[name])
    shape = (metadata.shape[0] + 7, *metadata.shape[1:])
    expected = {**NODES[name]["meta"], "shape": list(shape)}
    assert same(V1.dump(dataclasses.replace(metadata, shape=shape))["meta"], expected)


def test_options_of_lzma_are_those_of_numcodecs():
    options = {"check": 0, "filters": [{"dist": 4, "id": 3}, {"id": 33, "preset": 1}], "format": 1, "preset": None}
    metadata = V1.load(NODES["zarr_1_1-lzma_filters"])
    assert metadata.codecs == (LITTLE, Named("numcodecs.lzma", options))


# Which documents are v1's


@pytest.mark.parametrize(
    "documents",
    [{}, {"attrs": {}}, {"meta": []}, {"meta": "text"}, {"meta": None}, {"meta": {}}, {"meta": {"title": "ours"}}],
    ids=str,
)
def test_other_documents_make_no_array(documents):
    assert V1.load(documents) is None


def test_missing_attributes_are_empty_and_written():
    metadata = V1.load({"meta": META})
    assert metadata.attributes == {}
    assert [note.message for note in metadata.notes] == ["attrs is missing, read as empty"]
    assert V1.dump(metadata) == {"meta": META, "attrs": {}}


def test_other_members_are_kept():
    metadata = load(title={"any": [1]}, filters=None)
    assert metadata.unknown == {"title": {"any": [1]}, "filters": None}
    assert V1.dump(dataclasses.replace(metadata, shape=(8, 6)))["meta"]["title"] == {"any": [1]}
    assert notes(metadata) == []


def test_attributes_stay_unchanged():
    attributes = {"b": float("nan"), "a": [1, 1.0, True, None, {"c": "\xe9"}]}
    documents = {"meta": META, "attrs": attributes}
    assert same(V1.dump(V1.load(documents)), documents)


# Compression


@pytest.mark.parametrize(
    ("compression", "options", "codec"),
    [
        ("none", None, None),
        ("zlib", 0, Named("numcodecs.zlib", {"level": 0})),
        ("zlib", 9, Named("numcodecs.zlib", {"level": 9})),
        ("bz2", 1, Named("numcodecs.bz2", {"level": 1})),
        ("bz2", 9, Named("numcodecs.bz2", {"level": 9})),
        (
            "lzma",
            {"format": 2, "check": 0, "preset": 9, "filters": None},
            Named("numcodecs.lzma", {"format": 2, "check": 0, "preset": 9, "filters": None}),
        ),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}, BLOSC),
        (
            "blosc",
            {"cname": "zstd", "clevel": 0, "shuffle": 2},
            Named("blosc", {**BLOSC.configuration, "cname": "zstd", "clevel": 0, "shuffle": "bitshuffle"}),
        ),
        (
            "blosc",
            {"cname": "snappy", "clevel": 9, "shuffle": 0},
            Named("blosc", {**BLOSC.configuration, "cname": "snappy", "clevel": 9, "shuffle": "noshuffle"}),
        ),
    ],
)
def test_each_compression_is_a_codec_and_back(compression, options, codec):
    metadata = load(compression=compression, compression_opts=options)
    assert metadata.codecs == ((LITTLE,) if codec is None else (LITTLE, codec))
    assert notes(metadata) == []
    written = V1.dump(dataclasses.replace(metadata, spellings={}))["meta"]
    assert (written["compression"], written["compression_opts"]) == (compression, options)


@pytest.mark.parametrize(
    ("compression", "options", "codecs", "pointers"),
    [
        (None, None, (), ["/compression"]),
        ("none", 1, (), ["/compression_opts"]),
        ("gzip", 5, (Named("numcodecs.zlib", {"level": 5}),), ["/compression"]),
        ("zlib", None, (ZLIB,), ["/compression_opts"]),
        ("zlib", "5", (Named("numcodecs.zlib", {"level": 5}),), ["/compression_opts"]),
        ("blosc", None, (BLOSC,), ["/compression_opts"]),
        ("blosc", {"cname": "lz4"}, (BLOSC,), ["/compression_opts/clevel", "/compression_opts/shuffle"]),
        (
            "blosc",
            {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 1024},
            (BLOSC,),
            ["/compression_opts/blocksize"],
        ),
        (
            "lzma",
            None,
            (Named("numcodecs.lzma", {"format": 1, "check": 0, "preset": None, "filters": None}),),
            ["/compression_opts"],
        ),
        (
            "lzma",
            {"format": 1, "check": 0, "preset": 1, "filters": []},
            (Named("numcodecs.lzma", {"format": 1, "check": 0, "preset": 1, "filters": None}),),
            ["/compression_opts/filters"],
        ),
        (
            "lzma",
            {"format": 1, "check": 0, "preset": 1, "filters": [{"id": 33}]},
            (Named("numcodecs.lzma", {"format": 1, "check": 0, "preset": None, "filters": [{"id": 33}]}),),
            ["/compression_opts/preset"],
        ),
    ],
)
def test_other_forms_of_compression_leave_a_note_and_stay(compression, options, codecs, pointers):
    documents = node(compression=compression, compression_opts=options)
    metadata = V1.load(documents)
    assert metadata.codecs == (LITTLE, *codecs)
    assert notes(metadata) == pointers
    assert V1.dump(metadata) == documents


# Order


def test_order_f_with_blosc_is_a_transpose_first():
    metadata = load(order="F", compression="blosc", compression_opts={"cname": "lz4", "clevel": 5, "shuffle": 1})
    assert metadata.codecs == (F, LITTLE, BLOSC)
    assert notes(metadata) == []
    assert V1.dump(dataclasses.replace(metadata, spellings={}))["meta"]["order"] == "F"


@pytest.mark.parametrize(
    ("compression", "options"), [("zlib", 1), ("bz2", 1), ("none", None), ("lzma", {"format": 1, "check": 0,
     "preset": 1, "filters": None})],
)  # fmt: skip
def test_order_f_without_blosc_is_read_as_c_which_zarr_1_stored(compression, options):
    documents = node(order="F", compression=compression, compression_opts=options)
    metadata = V1.load(documents)
    assert "transpose" not in [codec.name for codec in metadata.codecs]
    assert notes(metadata) == ["/order"]
    assert V1.dump(metadata) == documents
    assert V1.dump(dataclasses.replace(metadata, spellings={}))["meta"]["order"] == "C"


def test_order_f_of_one_dimension_is_order_c():
    metadata = load(shape=[4], chunks=[2], order="F")
    assert metadata.codecs == (LITTLE, ZLIB)
    assert notes(metadata) == []


def test_a_new_array_in_order_f_is_compressed_with_blosc():
    assert dump(codecs=(F, LITTLE, BLOSC))["order"] == "F"
    with pytest.raises(NotRepresentableError) as raised:
        dump(codecs=(F, LITTLE, ZLIB))
    assert "order F with compression 'zlib'" in str(raised.value)
    assert raised.value.remedy == "use order C, or compress with blosc"


# What zarr 1.1.0 stored of [[0, 1, 2], [3, 4, 5]], of type |u1.
OF_ZARR_1_1 = [
    ("blosc", {"cname": "lz4", "clevel": 0, "shuffle": 0}, "C", "02012201060000000600000016000000000102030405"),
    ("blosc", {"cname": "lz4", "clevel": 0, "shuffle": 0}, "F", "02012201060000000600000016000000000301040205"),
    ("zlib", 1, "C", "7801636064626661050000290010"),
    ("zlib", 1, "F", "7801636064626661050000290010"),
    ("gzip", 1, "F", "7801636064626661050000290010"),
    ("none", None, "C", "000102030405"),
    ("none", None, "F", "000102030405"),
    (
        *("bz2", 1, "F"),
        "425a6831314159265359601ab39200000040007e00200021800c03272ee2ee48a70a120c03567240",
    ),
    (
        *("lzma", {"check": 0, "filters": None, "format": 1, "preset": 1}, "F"),
        "fd377a585a000000ff12d9410200210110000000a8708e8601000500010203040500000000011606c9a57dd506729e7a010000000000595a",
    ),
    (
        *("lzma", {"check": 0, "filters": None, "format": 2, "preset": 1}, "F"),
        "5d00001000ffffffffffffffff00000052500a8508e9d99ffff8a0e000",
    ),
    (
        *("lzma", {"check": 0, "filters": [{"id": 33, "preset": 1}], "format": 3, "preset": None}, "F"),
        "01000500010203040500",
    ),
]


@pytest.mark.parametrize(
    ("compression", "options", "order", "chunk"),
    OF_ZARR_1_1,
    ids=[f"{compression}-{order}-{i}" for i, (compression, _, order, _) in enumerate(OF_ZARR_1_1)],
)
def test_chunks_of_zarr_1_1_hold_what_it_stored(compression, options, order, chunk):
    metadata = load(
        shape=[2, 3], chunks=[2, 3], dtype="|u1", compression=compression, compression_opts=options, order=order
    )
    bound = datatypes.bind(metadata.data_type)
    codecs = chain.bind(metadata.codecs, ArraySpec((2, 3), bound, np.uint8(0)))
    assert codecs.decode(bytes.fromhex(chunk)).tolist() == [[0, 1, 2], [3, 4, 5]]


# Data types


@pytest.mark.parametrize(
    ("dtype", "named", "codec"),
    [
        ("<f8", Named("float64"), LITTLE),
        (">i4", Named("int32"), BIG),
        ("|b1", Named("bool"), Named("bytes")),
        ("|S12", Named("null_terminated_bytes", {"length_bytes": 12}), Named("bytes")),
        (">U2", Named("fixed_length_utf32", {"length_bytes": 8}), BIG),
        ("|V5", Named("raw_bytes", {"length_bytes": 5}), Named("bytes")),
        (">M8[10us]", Named("numpy.datetime64", {"unit": "us", "scale_factor": 10}), BIG),
    ],
)
def test_dtype_says_the_type_and_both_byte_orders(dtype, named, codec):
    metadata = load(dtype=dtype, fill_value=None)
    assert (metadata.data_type, metadata.codecs[0]) == (named, codec)
    assert metadata.byte_order == (">" if dtype[0] == ">" else "<")
    assert V1.dump(dataclasses.replace(metadata, spellings={}))["meta"]["dtype"] == dtype


def test_fields_keep_byte_orders_that_differ():
    dtype = [["a", ">i2"], ["b", [["c", "<f8"], ["d", ">U1"]]], ["e", "|S2"]]
    metadata = load(dtype=dtype, fill_value=None)
    assert V1.dump(dataclasses.replace(metadata, spellings={}))["meta"]["dtype"] == dtype


def test_one_byte_needs_no_byte_order():
    metadata = load(dtype=[["a", "u1"], ["b", "|i1"]], fill_value=None)
    assert notes(metadata) == ["/dtype/0/1"]
    for dtype in ("b1", "u1", "S12"):
        assert notes(load(dtype=dtype, fill_value=None)) == ["/dtype"]


def test_unknown_types_keep_their_name():
    documents = node(dtype="<f16", fill_value=1.5)
    metadata = V1.load(documents)
    assert metadata.data_type == Named("<f16")
    assert V1.dump(metadata) == documents


@pytest.mark.parametrize(
    ("dtype", "pointer"),
    [
        ("f8", "/dtype"),
        ("=i4", "/dtype"),
        ("|i4", "/dtype"),
        ("U3", "/dtype"),
        ("float64", "/dtype"),
        ("", "/dtype"),
        ("bfloat16", "/dtype"),
        (None, "/dtype"),
        (8, "/dtype"),
        ([], "/dtype"),
        ("<S0", "/dtype"),
        ([["a"]], "/dtype/0"),
        ([["a", "i4"]], "/dtype/0/1"),
        ([["a", "<i4"], ["a", "<i4"]], "/dtype/1/0"),
        ([["a", [["b", "bfloat16"]]]], "/dtype/0/1/0/1"),
        ([["a", "<f16"]], "/dtype/0/1"),
    ],
)
def test_what_is_no_type_is_refused(dtype, pointer):
    with pytest.raises(MetadataError) as raised:
        load(dtype=dtype, fill_value=None)
    assert raised.value.pointer == pointer
    assert raised.value.spec == 'Zarr v1, "Metadata"'


# Broken documents


@pytest.mark.parametrize("member", META)
def test_each_member_must_be_there(member):
    document = {name: value for name, value in META.items() if name != member}
    problems = []
    assert V1.load({"meta": document, "attrs": {}}, problems.append) is not None
    assert (problems[0].pointer, problems[0].message) == (f"/{member}", f"{member} is missing")
    with pytest.raises(MetadataError, match=f"{member} is missing"):
        V1.load({"meta": document, "attrs": {}})


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"zarr_format": 2}, "/zarr_format"),
        ({"zarr_format": "1"}, "/zarr_format"),
        ({"zarr_format": 1.0}, "/zarr_format"),
        ({"zarr_format": True}, "/zarr_format"),
        ({"zarr_format": None}, "/zarr_format"),
        ({"shape": 4}, "/shape"),
        ({"shape": [4, -6]}, "/shape/1"),
        ({"shape": [4, 6.0]}, "/shape/1"),
        ({"shape": [True, 6]}, "/shape/0"),
        ({"shape": [4, 2**63]}, "/shape/1"),
        ({"chunks": [2]}, "/chunks"),
        ({"chunks": [2, 0]}, "/chunks/1"),
        ({"chunks": None}, "/chunks"),
        ({"order": "A"}, "/order"),
        ({"order": "f"}, "/order"),
        ({"order": None}, "/order"),
        ({"order": ["F"]}, "/order"),
        ({"fill_value": "x"}, "/fill_value"),
        ({"fill_value": {}}, "/fill_value"),
        ({"compression": "zip"}, "/compression"),
        ({"compression": "BLOSC"}, "/compression"),
        ({"compression": 1}, "/compression"),
        ({"compression": ["zlib"]}, "/compression"),
        ({"compression": {"id": "zlib", "level": 1}}, "/compression"),
        ({"compression_opts": 10}, "/compression_opts"),
        ({"compression_opts": -1}, "/compression_opts"),
        ({"compression_opts": 1.0}, "/compression_opts"),
        ({"compression_opts": True}, "/compression_opts"),
        ({"compression_opts": "high"}, "/compression_opts"),
        ({"compression_opts": {"level": 1}}, "/compression_opts"),
        ({"compression": "bz2", "compression_opts": 0}, "/compression_opts"),
        ({"compression": "blosc", "compression_opts": 5}, "/compression_opts"),
        ({"compression": "lzma", "compression_opts": "xz"}, "/compression_opts"),
    ],
    ids=str,
)
def test_a_broken_member_is_named(members, pointer):
    problems = []
    assert V1.load(node(**members), problems.append) is not None
    assert problems[0].pointer == pointer
    with pytest.raises(MetadataError) as raised:
        load(**members)
    assert raised.value.pointer == pointer
    assert raised.value.expected
    assert raised.value.spec == 'Zarr v1, "Metadata"'


@pytest.mark.parametrize(
    ("compression", "option", "value"),
    [
        ("blosc", "cname", "brotli"),
        ("blosc", "cname", None),
        ("blosc", "cname", ["lz4"]),
        ("blosc", "clevel", 10),
        ("blosc", "clevel", "5"),
        ("blosc", "shuffle", 3),
        ("blosc", "shuffle", -1),
        ("blosc", "shuffle", True),
        ("lzma", "format", 0),
        ("lzma", "format", "xz"),
        ("lzma", "check", 2),
        ("lzma", "preset", 10),
        ("lzma", "preset", -1),
        ("lzma", "filters", {}),
        ("lzma", "filters", [3]),
        ("lzma", "filters", [{"dist": 4}]),
    ],
)
def test_a_broken_option_is_named(compression, option, value):
    options = {
        "blosc": {"cname": "lz4", "clevel": 5, "shuffle": 1},
        "lzma": {"format": 1, "check": 0, "preset": None, "filters": None},
    }[compression]
    with pytest.raises(MetadataError) as raised:
        load(compression=compression, compression_opts={**options, option: value})
    assert raised.value.pointer == f"/compression_opts/{option}"


def test_raw_lzma_needs_its_filters():
    with pytest.raises(MetadataError, match="a raw stream needs its filters") as raised:
        load(compression="lzma", compression_opts={"format": 3, "check": 0, "preset": 1, "filters": None})
    assert raised.value.pointer == "/compression_opts/filters"


@pytest.mark.parametrize("attributes", [[], "text", None, 1])
def test_attributes_are_an_object(attributes):
    with pytest.raises(MetadataError, match="attrs is not an object"):
        V1.load({"meta": META, "attrs": attributes})


# What v1 cannot express


@pytest.mark.parametrize(
    ("fields", "what", "remedy"),
    [
        ({"dimension_names": ("x", None)}, "dimension names", "_ARRAY_DIMENSIONS"),
        ({"storage_transformers": (Named("acme.x"),)}, "storage transformer 'acme.x'", "write v3"),
        ({"chunk_grid": Named("rectilinear", {"kind": "inline"})}, "chunk grid 'rectilinear'", "rechunk"),
        ({"chunk_key_encoding": Named("default")}, "chunk key encoding 'default'", "rename the chunks"),
        ({"chunk_key_encoding": Named("v2", {"separator": "/"})}, "chunk key encoding 'v2'", "separator '.'"),
        ({"codecs": (Named("sharding_indexed", {"chunk_shape": [1, 1]}),)}, "'sharding_indexed'", "inner chunks"),
        ({"codecs": (LITTLE, Named("gzip", {"level": 5}))}, "codec 'gzip'", "numcodecs.zlib"),
        ({"codecs": (LITTLE, Named("zstd", {"level": 0}))}, "codec 'zstd'", "blosc (cname lz4"),
        ({"codecs": (LITTLE, Named("numcodecs.lz4"))}, "codec 'numcodecs.lz4'", "re-encode with blosc"),
        ({"codecs": (Named("numcodecs.delta", {"dtype": "<i4"}), LITTLE)}, "codec 'numcodecs.delta'", "re-encode"),
        ({"codecs": (LITTLE, Named("crc32c"))}, "codec 'crc32c'", "re-encode"),
        ({"codecs": (LITTLE, ZLIB, BLOSC)}, "one compressor", "one of them"),
        (
            {"codecs": (Named("transpose", {"order": [1, 0, 2]}), LITTLE, BLOSC), "shape": (1, 2, 3)},
            "order of the elements",
            "order C",
        ),
        ({"codecs": (LITTLE, Named("blosc", {**BLOSC.configuration, "blocksize": 512}))}, "block size", "library"),
        ({"data_type": Named("string"), "codecs": (Named("vlen-utf8"),)}, "data type 'string'", "'<U16'"),
        ({"data_type": Named("bytes"), "codecs": (Named("vlen-bytes"),)}, "data type 'bytes'", "'|S16'"),
        ({"data_type": Named("omnizarr.object", {"object_codec": "json2"})}, "data type 'omnizarr.object'", "'<U16'"),
        ({"data_type": Named("bfloat16")}, "data type 'bfloat16'", "NumPy"),
        ({"data_type": Named("int4")}, "data type 'int4'", "NumPy"),
        ({"data_type": Named("acme.decimal")}, "data type 'acme.decimal'", "NumPy"),
        (
            {"data_type": Named("struct", {"fields": [{"name": "a", "data_type": "int8", "shape": [2]}]})},
            "fields that are arrays",
            "one field of each",
        ),
        ({"shape": (), "chunk_grid": Named("regular", {"chunk_shape": []})}, "without dimensions", "shape (1,)"),
        (
            {"data_type": Named("null_terminated_bytes", {"length_bytes": 2}), "fill_value": "6Q=="},
            "not ASCII",
            "null",
        ),
    ],
)
def test_what_v1_cannot_say_is_refused_with_the_nearest_possibility(fields, what, remedy):
    with pytest.raises(NotRepresentableError) as raised:
        V1.dump(new(**fields))
    assert str(raised.value).startswith("cannot be written as Zarr v1: ")
    assert what in str(raised.value)
    assert remedy in raised.value.remedy


@pytest.mark.parametrize("group", [GroupMetadata(dialect="v1"), GroupMetadata(dialect="v2", implicit=True)])
def test_there_are_no_groups(group):
    with pytest.raises(NotRepresentableError, match="groups have no place there") as raised:
        V1.dump(group)
    assert "directory of arrays" in raised.value.remedy


def test_there_is_no_consolidated_metadata():
    assert V1.consolidated.document is None
    assert V1.consolidated.load({}) == {}
    with pytest.raises(NotRepresentableError, match="no consolidated metadata"):
        V1.consolidated.dump({})


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"shape": (4, True)}, "/shape/1"),
        ({"chunk_grid": Named("regular", {"chunk_shape": [2]})}, "/chunks"),
        ({"chunk_grid": Named("regular", {})}, "/chunks"),
        ({"fill_value": "x"}, "/fill_value"),
        ({"codecs": (LITTLE, Named("numcodecs.zlib", {"level": -1}))}, "/compression_opts"),
        ({"codecs": (LITTLE, Named("blosc", {**BLOSC.configuration, "cname": "x"}))}, "/compression_opts/cname"),
        ({"codecs": (LITTLE, Named("numcodecs.lzma", {"format": 3}))}, "/compression_opts/filters"),
    ],
)
def test_what_is_new_needs_no_tolerance(fields, pointer):
    with pytest.raises(MetadataError) as raised:
        V1.dump(new(**fields))
    assert raised.value.pointer == pointer


def test_an_array_without_dimensions_keeps_its_documents():
    documents = node(shape=[], chunks=[])
    metadata = V1.load(documents)
    assert notes(metadata) == ["/shape"]
    assert V1.dump(dataclasses.replace(metadata, attributes={"a": 1})) == {**documents, "attrs": {"a": 1}}


def test_an_empty_dimension_has_chunks_of_one():
    documents = node(shape=[0, 6], chunks=[0, 3])
    metadata = V1.load(documents)
    assert metadata.chunk_grid == Named("regular", {"chunk_shape": [1, 3]})
    assert V1.dump(metadata) == documents


def test_an_array_of_v2_becomes_one_of_v1_with_the_same_meaning():
    document = {
        "zarr_format": 2,
        "shape": [4, 6],
        "chunks": [2, 3],
        "dtype": ">f4",
        "compressor": {"id": "blosc", "cname": "zlib", "clevel": 1, "shuffle": 2, "blocksize": 0},
        "fill_value": "NaN",
        "order": "F",
        "filters": None,
    }
    metadata = V2.load({".zarray": document, ".zattrs": {"a": 1}})
    assert V1.dump(metadata) == {
        "meta": {
            "zarr_format": 1,
            "shape": [4, 6],
            "chunks": [2, 3],
            "dtype": ">f4",
            "fill_value": "NaN",
            "compression": "blosc",
            "compression_opts": {"cname": "zlib", "clevel": 1, "shuffle": 2},
            "order": "F",
        },
        "attrs": {"a": 1},
    }
    assert dataclasses.replace(V1.load(V1.dump(metadata)), dialect="v2") == metadata


# Names and keys


def test_documents_and_chunks_are_in_one_directory():
    assert V1.keyspace.documents("a/b") == {"meta": "a/b/meta", "attrs": "a/b/attrs"}
    assert V1.keyspace.chunk_prefix("a/b") == "a/b/"
    assert V1.keyspace.documents("") == {"meta": "meta", "attrs": "attrs"}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b"])
def test_names_that_no_array_can_have(name):
    with pytest.raises(NodeNameError):
        V1.check_name(name)


def test_names_are_otherwise_free():
    V1.check_name("0.0")
    V1.check_name("meta")  # a directory is not a document
    V1.check_name("\xe9t\xe9")


# Laws


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
LEVELS = st.integers(1, 9)
COMPRESSIONS = st.one_of(
    st.tuples(st.sampled_from(["zlib", "gzip", "bz2"]), LEVELS | LEVELS.map(str) | st.none()),
    st.tuples(st.sampled_from(["none", None]), st.none() | LEVELS),
    st.tuples(
        st.just("blosc"),
        st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "cname": st.sampled_from(["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]),
                "clevel": st.integers(0, 9),
                "shuffle": st.integers(0, 2),
                "other": JSON_VALUES,
            },
        ),
    ),
    st.tuples(
        st.just("lzma"),
        st.none()
        | st.fixed_dictionaries(
            {"filters": st.sampled_from([[], [{"id": 33, "preset": 1}], [{"id": 3, "dist": 4}, {"id": 33}]])},
            optional={
                "format": st.sampled_from([1, 2]),
                "check": st.sampled_from([-1, 0, 1, 4, 10]),
                "preset": st.none() | st.integers(0, 9),
            },
        ),
    ),
)
NUMBERS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, width=32)
DTYPES = st.one_of(
    st.tuples(st.sampled_from(["<f4", ">f8", "<c8"]), NUMBERS | st.sampled_from([float("nan"), float("inf"), "NaN"])),
    st.tuples(st.sampled_from(["|b1", "|i1", "<u2", ">i8"]), st.none() | st.booleans() | st.integers(-300, 70000)),
    st.tuples(st.sampled_from(["|S3", "<U3"]), NUMBERS | st.text("ab\0", max_size=5)),
    st.tuples(st.just([["a", ">i2"], ["b", [["", "|S2"]]]]), st.sampled_from([None, 0, 1.5, [1, [0]], [-1, ["abc"]]])),
    st.tuples(st.sampled_from(["<M8[D]", ">m8[ns]"]), st.none() | st.integers(-(2**63), 2**63 - 1) | st.just("NaT")),
)
PAIRS = st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(1, 2**63 - 1)), max_size=4)


@st.composite
def nodes(draw):
    pairs, (dtype, fill_value) = draw(PAIRS), draw(DTYPES)
    compression, options = draw(COMPRESSIONS)
    extra = draw(st.dictionaries(st.text(max_size=5).map("x".__add__), JSON_VALUES, max_size=2))
    members = {
        "zarr_format": 1,
        "shape": [length for length, _ in pairs],
        "chunks": [chunk for _, chunk in pairs],
        "dtype": dtype,
        "compression": compression,
        "compression_opts": options,
        "fill_value": fill_value,
        "order": draw(st.sampled_from("CF")),
        **extra,
    }
    names = draw(st.permutations(list(members)))
    attributes = draw(st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3))
    return {"meta": {name: members[name] for name in names}, "attrs": attributes}


@given(nodes())
def test_dump_inverts_load(documents):
    written = V1.dump(V1.load(documents))
    assert same(written, documents)
    assert list(written["meta"]) == list(documents["meta"])


@given(nodes())
def test_what_is_spelled_again_means_the_same_and_needs_no_tolerance(documents):
    metadata = dataclasses.replace(V1.load(documents), spellings={})
    if not metadata.shape:
        return
    again = V1.load(V1.dump(metadata))
    assert again.notes == ()
    fields = ("shape", "data_type", "byte_order", "chunk_grid", "fill_value", "codecs", "attributes", "unknown")
    assert same([getattr(again, name) for name in fields], [getattr(metadata, name) for name in fields])


@given(nodes(), st.sampled_from(sorted(META)), JSON_VALUES)
def test_damaged_documents_are_read_or_refused_equally_by_both_attitudes(documents, member, value):
    documents = {**documents, "meta": {**documents["meta"], member: value}}
    problems = []
    V1.load(documents, problems.append)
    if problems:
        with pytest.raises(MetadataError) as raised:
            V1.load(documents)
        assert str(raised.value) == str(problems[0].error())
    else:
        assert same(V1.dump(V1.load(documents)), documents)
