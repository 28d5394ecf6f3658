from __future__ import annotations

import dataclasses
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.formats import V2, V3
from omnizarr.formats.documents import parse
from omnizarr.model import UNDEFINED, ArrayMetadata, GroupMetadata, Named

QUIRKS = json.loads((Path(__file__).parent / "cases" / "quirks_v3.json").read_text("utf-8"))["nodes"]
LITTLE = Named("bytes", {"endian": "little"})
CRC32C = Named("crc32c")


def load(name):
    return V3.load(QUIRKS[name])


def new(**fields):
    """A model that no document was read for."""
    return ArrayMetadata(
        **{
            "dialect": "v3",
            "shape": (4, 6),
            "data_type": Named("float32"),
            "chunk_grid": Named("regular", {"chunk_shape": [2, 3]}),
            "chunk_key_encoding": Named("default", {"separator": "/"}),
            "fill_value": 0.0,
            "codecs": (LITTLE,),
            **fields,
        }
    )


def dump(metadata):
    return V3.dump(metadata)["zarr.json"]


def pointers(metadata):
    return [note.pointer for note in metadata.notes]


def test_other_documents_make_no_node():
    assert V3.load({}) is None
    assert V3.load({".zgroup": {"zarr_format": 2}}) is None


def test_an_empty_list_of_codecs_means_little_endian_bytes():
    metadata = load("zarrita_2023")
    assert metadata.codecs == (LITTLE,)
    assert pointers(metadata) == ["/codecs", "/dimension_names"]


def test_endian_is_the_old_name_of_bytes():
    transpose, codec = load("zarrita_2023_endian").codecs
    assert codec == Named("bytes", {"endian": "big"})
    assert transpose == Named("transpose", {"order": [1, 0]})


def test_old_spellings_within_a_shard_are_corrected():
    (codec,) = load("zarrita_2023_sharding").codecs
    assert codec.configuration["codecs"] == [
        {"name": "transpose", "configuration": {"order": [0, 1]}},
        {"name": "bytes", "configuration": {"endian": "little"}},
    ]
    assert codec.configuration["index_codecs"] == [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "crc32c"},
    ]


def test_a_null_fill_value_means_the_default():
    metadata = load("zarrita_js")
    assert metadata.fill_value == 0.0
    assert "/fill_value" in pointers(metadata)


def test_an_empty_string_means_the_default_fill_value():
    assert load("nczarr_fill").fill_value == 0


def test_bytes_without_endian_are_little_endian_with_a_note():
    metadata = load("no_endian")
    assert metadata.codecs == (LITTLE,)
    assert pointers(metadata) == ["/codecs/0/configuration"]


def test_the_id_of_numcodecs_is_left_out_with_a_note_and_written_back():
    zlib = {"name": "numcodecs.zlib", "configuration": {"id": "zlib", "level": 1}}
    shard = {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": [1, 3], "codecs": ["bytes", zlib], "index_codecs": ["bytes", zlib]},
    }
    document = {**QUIRKS["names"]["zarr.json"], "data_type": "int8", "fill_value": 0, "codecs": ["bytes", zlib]}
    metadata = V3.load({"zarr.json": document})
    assert metadata.codecs == (Named("bytes"), Named("numcodecs.zlib", {"level": 1}))
    assert pointers(metadata) == ["/codecs/1/configuration/id"]
    assert dump(dataclasses.replace(metadata, attributes={"a": 1})) == {**document, "attributes": {"a": 1}}
    metadata = V3.load({"zarr.json": {**document, "codecs": [shard]}})
    assert metadata.codecs[0].configuration["codecs"][1] == {"name": "numcodecs.zlib", "configuration": {"level": 1}}
    assert "/codecs/0/configuration/index_codecs/1/configuration/id" in pointers(metadata)


@pytest.mark.parametrize("other", ["bz2", "", None, 1])
def test_the_id_of_another_codec_is_refused(other):
    codec = {"name": "numcodecs.zlib", "configuration": {"id": other}}
    document = {**QUIRKS["names"]["zarr.json"], "codecs": ["bytes", codec]}
    with pytest.raises(MetadataError, match=r"/codecs/1/configuration/id.*expected 'zlib'"):
        V3.load({"zarr.json": document})


def test_single_bytes_need_no_endian():
    metadata = load("short_hand_names")
    assert metadata.codecs == (Named("bytes"), CRC32C)
    assert metadata.chunk_key_encoding == Named("v2")
    assert metadata.notes == ()


def test_extensions_that_may_be_skipped_are_kept():
    assert load("explicit_must_understand").codecs == (LITTLE, Named("cherry", {}, must_understand=False))


def test_unknown_names_load():
    metadata = load("unknown_extensions")
    assert metadata.data_type == Named("acme.decimal", {"digits": 9})
    assert metadata.fill_value == {"any": ["thing"]}
    assert metadata.chunk_grid.name == "acme.hex"
    assert metadata.chunk_key_encoding.name == "acme.keys"
    assert metadata.codecs == (Named("https://codec.example/x/1.0"),)
    assert metadata.storage_transformers == (Named("acme.versions"),)


def test_unknown_members_that_may_be_ignored_are_kept():
    assert load("unknown_member").unknown == {"weather": {"must_understand": False, "rain": 1}}
    assert load("group_unknown").unknown == {"x": {"must_understand": False}}


def test_chunk_length_0_of_an_empty_dimension_is_1():
    assert load("empty").chunk_grid.configuration["chunk_shape"] == [1, 3]


def test_chunk_length_0_is_not_written_once_the_dimension_has_grown():
    grown = dataclasses.replace(load("empty"), shape=(5, 6))
    assert dump(grown)["chunk_grid"]["configuration"]["chunk_shape"] == [1, 3]


def test_consolidated_metadata_is_taken_in_unread():
    assert load("group_consolidated_nested").consolidated.keys() == {"a", "a/b"}
    broken = {"zarr_format": 3, "node_type": "array"}
    group = {**QUIRKS["group"]["zarr.json"], "consolidated_metadata": {"kind": "inline", "metadata": {"x": broken}}}
    assert V3.load({"zarr.json": group}).consolidated == {"x": {"zarr.json": broken}}


def test_consolidated_metadata_of_null_is_none():
    assert load("group_consolidated_null").consolidated is None


def test_new_consolidated_metadata_is_written_inline_in_order():
    node = {"zarr_format": 3, "node_type": "group"}
    metadata = GroupMetadata(dialect="v3", consolidated={"b": {"zarr.json": node}, "a": {"zarr.json": node}})
    written = dump(metadata)["consolidated_metadata"]
    assert written == {"kind": "inline", "must_understand": False, "metadata": {"a": node, "b": node}}
    assert list(written["metadata"]) == ["a", "b"]


def test_consolidated_metadata_goes_when_it_is_none():
    metadata = dataclasses.replace(load("group_consolidated_nested"), consolidated=None)
    assert "consolidated_metadata" not in dump(metadata)


def test_a_new_array_is_written_in_the_terms_of_the_text():
    assert dump(new(dimension_names=("x", None), attributes={"a": 1})) == {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 6],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"a": 1},
        "dimension_names": ["x", None],
    }


def test_a_new_group_is_written_in_the_terms_of_the_text():
    assert dump(GroupMetadata(dialect="v3")) == {"zarr_format": 3, "node_type": "group", "attributes": {}}


def test_an_implicit_group_is_made_explicit():
    assert dump(GroupMetadata(dialect="v3", implicit=True))["node_type"] == "group"


def test_a_change_in_type_alone_is_a_change():
    document = {**QUIRKS["group"]["zarr.json"], "attributes": {"a": 1}}
    metadata = V3.load({"zarr.json": document})
    assert dump(dataclasses.replace(metadata, attributes={"a": True}))["attributes"]["a"] is True


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"shape": (4, -1)}, "/shape/1"),
        ({"codecs": ()}, "/codecs"),
        ({"codecs": (Named("bytes"),)}, "/codecs/0/configuration"),
        ({"codecs": (Named("endian", {"endian": "little"}),)}, "/codecs/0"),
        ({"codecs": (Named("transpose", {"order": "F"}), LITTLE)}, "/codecs/0/configuration/order"),
        ({"fill_value": None}, "/fill_value"),
        ({"fill_value": "x"}, "/fill_value"),
        ({"dimension_names": ("x",)}, "/dimension_names"),
        ({"chunk_grid": Named("regular", {"chunk_shape": [2]})}, "/chunk_grid/configuration/chunk_shape"),
        ({"shape": (0, 6), "chunk_grid": Named("regular", {"chunk_shape": [0, 3]})}, None),
        ({"data_type": Named("float32", {}, must_understand=False)}, None),
    ],
)
def test_what_is_new_needs_no_tolerance(fields, pointer):
    if "data_type" in fields:
        assert dump(new(**fields))["data_type"] == "float32"
        return
    with pytest.raises(MetadataError) as raised:
        dump(new(**fields))
    assert raised.value.pointer == (pointer or "/chunk_grid/configuration/chunk_shape/0")


FIELD = {"name": "a", "data_type": "int16"}


def struct(**members):
    return Named("struct", {"fields": [{**FIELD, **members}]})


def within(inner):
    return Named(
        "struct", {"fields": [{"name": "n", "data_type": {"name": inner.name, "configuration": inner.configuration}}]}
    )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"data_type": Named("omnizarr.object")}, "Python objects have no data type there"),
        ({"data_type": Named("omnizarr.vlen_array", {"data_type": "int32"})}, "ragged arrays have no data type"),
        ({"data_type": struct(shape=[2])}, "field 'a' is a sub-array"),
        ({"data_type": within(struct(byte_order=">"))}, "field 'n.a' has a byte order of its own"),
        (
            {"codecs": (LITTLE, Named("omnizarr.bytes_filter", {"id": "delta", "dtype": "|u1"}))},
            "filter 'delta' that stands after a filter of bytes",
        ),
        ({"unknown": {"_nczarr_array": {"storage": "chunked"}}}, "member '_nczarr_array' is not defined there"),
    ],
)
def test_what_only_v2_can_say_is_refused_with_a_way_out(fields, text):
    with pytest.raises(NotRepresentableError) as raised:
        dump(new(**fields))
    assert str(raised.value).startswith("cannot be written as Zarr v3: ")
    assert text in str(raised.value)
    assert raised.value.remedy


def test_codecs_of_numcodecs_always_have_a_configuration():
    codecs = dump(new(codecs=(LITTLE, Named("numcodecs.crc32"), CRC32C)))["codecs"]
    assert codecs[1:] == [{"name": "numcodecs.crc32", "configuration": {}}, {"name": "crc32c"}]


def test_numbers_of_a_configuration_that_are_not_finite_are_strings():
    codec = Named("cast_value", {"data_type": "uint8", "scalar_map": {"encode": [[float("nan"), 0]]}})
    written = dump(new(codecs=(codec, Named("bytes"))))["codecs"][0]
    assert written["configuration"]["scalar_map"] == {"encode": [["NaN", 0]]}


def test_an_undefined_fill_value_becomes_the_default():
    assert dump(new(fill_value=UNDEFINED))["fill_value"] == 0.0


def test_spellings_of_another_dialect_are_not_written():
    v2 = V2.load(
        {
            ".zarray": {
                "zarr_format": 2,
                "shape": [4],
                "chunks": [2],
                "dtype": ">i4",
                "compressor": {"id": "zstd", "level": 3},
                "fill_value": None,
                "order": "C",
                "filters": None,
            }
        }
    )
    assert dump(dataclasses.replace(v2, dialect="v3")) == {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
        "fill_value": 0,
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "big"}},
            {"name": "zstd", "configuration": {"level": 3, "checksum": False}},
        ],
        "attributes": {},
    }


@pytest.mark.parametrize(
    ("codecs", "names"),
    [
        (["gzip"], ["bytes", "gzip"]),
        ([{"name": "transpose", "configuration": {"order": [1, 0]}}], ["transpose", "bytes"]),
        ([{"name": "transpose", "configuration": {"order": [1, 0]}}, "crc32c"], ["transpose", "bytes", "crc32c"]),
    ],
)
def test_bytes_could_go_without_saying_until_july_2023(codecs, names):
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 4],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": "default",
        "fill_value": 0,
        "codecs": codecs,
    }
    metadata = V3.load({"zarr.json": document})
    assert [codec.name for codec in metadata.codecs] == names
    assert LITTLE in metadata.codecs
    assert "/codecs" in pointers(metadata)
    assert V3.dump(metadata) == {"zarr.json": document}


@pytest.mark.parametrize("member", ["data_type", "chunk_key_encoding", "chunk_grid", "codecs"])
@pytest.mark.parametrize("form", [lambda name: name, lambda name: {"name": name}], ids=["string", "object"])
def test_names_of_the_model_are_none_of_a_document(member, form):
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": "default",
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    value = form("omnizarr.bytes_filter")
    with pytest.raises(MetadataError, match=f"/{member}.*only memory"):
        V3.load({"zarr.json": {**document, member: [value] if member == "codecs" else value}})


def test_keys_of_drafts_are_not_written():
    with pytest.raises(MetadataError, match="/chunk_key_encoding"):
        V3.dump(new(chunk_key_encoding=Named("omnizarr.draft2020", {"separator": "/"})))


@pytest.mark.parametrize(
    ("extensions", "is_read"),
    [
        ([], True),
        ([{"name": "a", "must_understand": False}], True),
        ([{"name": "a", "must_understand": False}, {"name": "b"}], False),
        ([3], False),
        ("a", False),
    ],
)
def test_a_list_of_extensions_is_read_if_all_may_be_ignored(extensions, is_read):
    store = {}
    omnizarr.create_array(store, data=np.arange(3))
    store["zarr.json"] = json.dumps({**json.loads(store["zarr.json"]), "extensions": extensions}).encode()
    if is_read:
        array = omnizarr.open(store)
        array.attrs["x"] = 1
        assert json.loads(store["zarr.json"])["extensions"] == extensions
    else:
        with pytest.raises(MetadataError, match="extensions"):
            omnizarr.open(store)


def test_arrays_that_differ_in_attributes_hold_little_memory_and_write_their_own_text():
    def text(number):
        return json.dumps({**ARRAY_OF_MANY, "attributes": {"number": number}}, indent=2).encode()

    V3.load({"zarr.json": parse(text(-1))})
    tracemalloc.start()
    arrays = [V3.load({"zarr.json": parse(text(number))}) for number in range(300)]
    held = tracemalloc.get_traced_memory()[0] / len(arrays)
    tracemalloc.stop()
    assert held < 2500
    assert V3.dump(arrays[7])["zarr.json"].text.encode() == text(7)


ARRAY_OF_MANY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0.0,
    "codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
    ],
}
