from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.formats import V2, V3
from omnizarr.model import UNDEFINED, ArrayMetadata, GroupMetadata, Named

QUIRKS = json.loads((Path(__file__).parent / "cases" / "quirks_v2.json").read_text("utf-8"))["nodes"]
LITTLE = Named("bytes", {"endian": "little"})
BIG = Named("bytes", {"endian": "big"})


def array(**members):
    return {
        ".zarray": {
            "zarr_format": 2,
            "shape": [4, 6],
            "chunks": [2, 3],
            "dtype": "<f4",
            "compressor": None,
            "fill_value": 0.0,
            "order": "C",
            "filters": None,
            **members,
        }
    }


def load(**members):
    return V2.load(array(**members))


def new(**fields):
    """A model that no document was read for."""
    return ArrayMetadata(
        **{
            "dialect": "v2",
            "shape": (4, 6),
            "data_type": Named("float32"),
            "chunk_grid": Named("regular", {"chunk_shape": [2, 3]}),
            "chunk_key_encoding": Named("v2", {"separator": "."}),
            "fill_value": 0.0,
            "codecs": (LITTLE,),
            **fields,
        }
    )


def dump(metadata):
    return V2.dump(metadata)[".zarray"]


def test_other_documents_make_no_node():
    assert V2.load({}) is None
    assert V2.load({".zattrs": {"a": 1}}) is None
    assert V2.load({".zmetadata": {"zarr_consolidated_format": 1, "metadata": {"a/.zgroup": {}}}}) is None
    assert V2.load({"zarr.json": {}}) is None


@pytest.mark.parametrize(
    ("dtype", "data_type", "byte_order", "codec"),
    [
        ("<f4", Named("float32"), "<", LITTLE),
        (">i2", Named("int16"), ">", BIG),
        ("|b1", Named("bool"), "<", Named("bytes")),
        ("|S3", Named("null_terminated_bytes", {"length_bytes": 3}), "<", Named("bytes")),
        (">U2", Named("fixed_length_utf32", {"length_bytes": 8}), ">", BIG),
        ("|V5", Named("raw_bytes", {"length_bytes": 5}), "<", Named("bytes")),
        (">M8[10us]", Named("numpy.datetime64", {"unit": "us", "scale_factor": 10}), ">", BIG),
    ],
)
def test_dtype_says_the_type_and_both_byte_orders(dtype, data_type, byte_order, codec):
    metadata = load(dtype=dtype, fill_value=None)
    assert (metadata.data_type, metadata.byte_order, metadata.codecs) == (data_type, byte_order, (codec,))
    assert dump(dataclasses.replace(metadata, spellings={}))["dtype"] == dtype


@pytest.mark.parametrize(
    ("filters", "data_type", "codec"),
    [
        ([{"id": "vlen-utf8"}], Named("string"), Named("vlen-utf8")),
        ([{"id": "vlen-bytes"}], Named("bytes"), Named("vlen-bytes")),
        (
            [{"id": "vlen-array", "dtype": ">i4"}],
            Named("omnizarr.vlen_array", {"data_type": "int32"}),
            Named("numpy", {}),
        ),
        ([{"id": "json2", "strict": True}], Named("omnizarr.object", {"object_codec": "json2"}), None),
        ([{"id": "msgpack2"}], Named("omnizarr.object", {"object_codec": "msgpack2"}), None),
        ([{"id": "pickle", "protocol": 5}], Named("omnizarr.object", {"object_codec": "pickle"}), None),
    ],
)
def test_the_object_codec_says_what_objects_are(filters, data_type, codec):
    metadata = load(dtype="|O", filters=filters, fill_value=0, compressor={"id": "bz2", "level": 1})
    (step,) = filters
    assert metadata.data_type == data_type
    if codec is None or codec.name == "numpy":
        codec = Named(f"numcodecs.{step['id']}", {key: value for key, value in step.items() if key != "id"})
    assert metadata.codecs == (codec, Named("numcodecs.bz2", {"level": 1}))


def test_categorised_objects_are_strings():
    labels = {"id": "categorize", "labels": ["a", "b"], "dtype": "|O", "astype": "<u2"}
    metadata = load(dtype="|O", filters=[labels], fill_value="")
    assert metadata.data_type == Named("string")
    assert metadata.codecs == (
        Named("numcodecs.categorize", {"labels": ["a", "b"], "dtype": "|O", "astype": "<u2"}),
        LITTLE,
    )


def test_fill_value_0_of_strings_is_the_empty_string():
    assert load(dtype="|O", filters=[{"id": "vlen-utf8"}], fill_value=0).fill_value == ""


def test_objects_without_an_object_codec_load_with_a_note():
    metadata = V2.load(QUIRKS["object_without_codec"])
    assert metadata.data_type == Named("omnizarr.object", {"object_codec": None})
    assert [note.pointer for note in metadata.notes] == ["/filters"]


def test_fixed_width_strings_with_the_vlen_codec_are_strings_of_any_length():
    metadata = V2.load(QUIRKS["zarr_python_3_0_fixed_with_vlen"])
    assert metadata.data_type == Named("string")
    assert metadata.codecs == (Named("vlen-utf8"),)
    assert [note.pointer for note in metadata.notes] == ["/dtype"]


def test_a_null_fill_value_is_undefined():
    metadata = load(fill_value=None)
    assert metadata.fill_value is UNDEFINED
    assert dump(dataclasses.replace(metadata, spellings={}))["fill_value"] is None


@pytest.mark.parametrize(
    ("dtype", "fill_value", "meant"),
    [
        ("<f8", "NaN", "NaN"),
        ("<f8", float("nan"), "NaN"),
        ("<f8", float("-inf"), "-Infinity"),
        ("<i4", 0.0, 0),
        ("|b1", 1, True),
        ("<u8", 2**64 - 1, 2**64 - 1),
        ("<c8", [0.0, "NaN"], [0.0, "NaN"]),
        ("|S3", "YWI=", "YWI="),
        ("<U3", "ab", "ab"),
    ],
)
def test_fill_values_are_put_into_the_words_of_v3(dtype, fill_value, meant):
    assert load(dtype=dtype, fill_value=fill_value).fill_value == meant


def test_bare_nan_as_fill_value_has_a_note():
    assert [note.pointer for note in load(fill_value=float("nan")).notes] == ["/fill_value"]


def test_structured_fill_values_are_records():
    metadata = V2.load(QUIRKS["struct_base64"])
    assert metadata.fill_value == {"a": 1, "b": [1.0, 2.0]}
    fields = metadata.data_type.configuration["fields"]
    assert [field.get("byte_order") for field in fields] == [">", None]
    assert fields[1]["shape"] == [2]
    assert dump(dataclasses.replace(metadata, spellings={})) == {
        **QUIRKS["struct_base64"][".zarray"],
        "dimension_separator": ".",
    }


def test_order_f_is_a_transpose_first():
    metadata = load(order="F", filters=[{"id": "delta", "dtype": "<f4"}])
    assert [codec.name for codec in metadata.codecs] == ["transpose", "numcodecs.delta", "bytes"]
    assert metadata.codecs[0].configuration == {"order": [1, 0]}


@pytest.mark.parametrize(("member", "separator"), [({}, "."), ({"dimension_separator": "/"}, "/")])
def test_dimension_separator_is_that_of_the_v2_key_encoding(member, separator):
    assert load(**member).chunk_key_encoding == Named("v2", {"separator": separator})


def test_unknown_members_are_kept():
    assert V2.load(QUIRKS["netcdf_c_nczarr_members"]).unknown.keys() == {"_nczarr_array"}
    assert V2.load(QUIRKS["netcdf_c_superblock"]).unknown.keys() == {"_nczarr_superblock"}


def test_unknown_types_keep_their_name():
    assert V2.load(QUIRKS["unknown_dtype"]).data_type == Named("<f16")


def test_a_group_without_attributes_has_no_zattrs():
    assert V2.dump(GroupMetadata(dialect="v2")) == {".zgroup": {"zarr_format": 2}}
    assert V2.dump(GroupMetadata(dialect="v2", attributes={"a": 1}))[".zattrs"] == {"a": 1}


def test_an_empty_zattrs_stays_and_an_absent_one_stays_away():
    group = {".zgroup": {"zarr_format": 2}}
    assert V2.dump(V2.load(group)) == group
    assert V2.dump(V2.load({**group, ".zattrs": {}})) == {**group, ".zattrs": {}}
    emptied = dataclasses.replace(V2.load({**group, ".zattrs": {"a": 1}}), attributes={})
    assert V2.dump(emptied) == {**group, ".zattrs": {}}


def test_a_new_array_is_written_in_the_terms_of_the_text():
    codecs = (Named("transpose", {"order": [1, 0]}), BIG, Named("gzip", {"level": 5}))
    assert V2.dump(new(codecs=codecs, byte_order=">", fill_value="NaN", attributes={"a": 1})) == {
        ".zarray": {
            "zarr_format": 2,
            "shape": [4, 6],
            "chunks": [2, 3],
            "dtype": ">f4",
            "compressor": {"id": "gzip", "level": 5},
            "fill_value": "NaN",
            "order": "F",
            "filters": None,
            "dimension_separator": ".",
        },
        ".zattrs": {"a": 1},
    }


def test_consolidated_documents_are_taken_in_by_path():
    metadata = V2.load(QUIRKS["consolidated"])
    assert metadata.consolidated == {"a": {".zarray": array(fill_value=0)[".zarray"]}}


def test_a_group_that_only_zmetadata_speaks_of_is_read():
    metadata = V2.load(QUIRKS["only_zmetadata"])
    assert isinstance(metadata, GroupMetadata)
    assert metadata.consolidated.keys() == {"a"}


def test_a_group_that_only_zmetadata_spoke_of_gets_documents_when_that_goes():
    metadata = dataclasses.replace(V2.load(QUIRKS["only_zmetadata"]), consolidated=None)
    assert V2.dump(metadata) == {".zgroup": {"zarr_format": 2}}


def test_new_attributes_reach_the_consolidated_copy():
    metadata = dataclasses.replace(V2.load(QUIRKS["consolidated"]), attributes={"b": 2})
    written = V2.dump(metadata)
    assert written[".zmetadata"]["metadata"][".zattrs"] == written[".zattrs"] == {"b": 2}
    assert written[".zmetadata"]["metadata"].keys() == {".zgroup", ".zattrs", "a/.zarray"}


def test_consolidated_metadata_inverts():
    document = QUIRKS["consolidated"][".zmetadata"]
    assert V2.consolidated.dump(V2.consolidated.load(document)) == document


def test_consolidated_metadata_of_v3_is_left_out():
    node = {"zarr_format": 3, "node_type": "group"}
    assert V2.dump(GroupMetadata(dialect="v3", consolidated={"a": {"zarr.json": node}})).keys() == {".zgroup"}
    assert V3.dump(V2.load(QUIRKS["consolidated"]))["zarr.json"].keys() == {"zarr_format", "node_type", "attributes"}


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"shape": (4, True)}, "/shape/1"),
        ({"chunk_grid": Named("regular", {"chunk_shape": [2]})}, "/chunks"),
        ({"chunk_grid": Named("regular", {})}, "/chunks"),
        ({"chunk_key_encoding": Named("v2", {"separator": "-"})}, "/dimension_separator"),
        ({"fill_value": "x"}, "/fill_value"),
    ],
)
def test_what_is_new_needs_no_tolerance(fields, pointer):
    with pytest.raises(MetadataError) as raised:
        V2.dump(new(**fields))
    assert raised.value.pointer == pointer


@pytest.mark.parametrize(
    ("fields", "what", "remedy"),
    [
        ({"dimension_names": ("x", None)}, "dimension names", "_ARRAY_DIMENSIONS"),
        ({"chunk_grid": Named("rectilinear", {"kind": "inline"})}, "chunk grid 'rectilinear'", "rechunk"),
        ({"chunk_key_encoding": Named("default")}, "chunk key encoding 'default'", "chunk key encoding 'v2'"),
        ({"storage_transformers": (Named("acme.x"),)}, "storage transformer 'acme.x'", "write v3"),
        ({"codecs": (Named("sharding_indexed", {"chunk_shape": [1, 1]}),)}, "'sharding_indexed'", "inner chunks"),
        ({"codecs": (Named("transpose", {"order": [0, 2, 1]}), LITTLE), "shape": (1, 2, 3)}, "'transpose'", "C and F"),
        ({"codecs": (Named("scale_offset", {"scale": 2}), LITTLE)}, "'scale_offset'", "numcodecs.fixedscaleoffset"),
        ({"codecs": (LITTLE, Named("acme.zip"))}, "codec 'acme.zip'", "numcodecs"),
        ({"data_type": Named("acme.decimal")}, "data type 'acme.decimal' has no place there", "v3"),
        ({"data_type": Named("string"), "codecs": (LITTLE,), "fill_value": ""}, "without an object codec", "vlen-utf8"),
        (
            {"codecs": (Named("numcodecs.delta", {"dtype": "<f4", "astype": "<i4"}), BIG)},
            "stored in the other byte order",
            "one byte order",
        ),
    ],
)
def test_what_only_v3_can_say_is_refused_with_the_nearest_possibility(fields, what, remedy):
    with pytest.raises(NotRepresentableError) as raised:
        V2.dump(new(**fields))
    assert str(raised.value).startswith("cannot be written as Zarr v2: ")
    assert what in str(raised.value)
    assert remedy in raised.value.remedy


def test_crc32c_and_strings_of_v3_have_a_place():
    metadata = new(
        dialect="v3",
        data_type=Named("string"),
        fill_value="",
        codecs=(Named("vlen-utf8"), Named("zstd", {"level": 0, "checksum": True}), Named("crc32c")),
        dimension_names=(None, None),
    )
    assert dump(metadata) == {
        "zarr_format": 2,
        "shape": [4, 6],
        "chunks": [2, 3],
        "dtype": "|O",
        "compressor": None,
        "fill_value": "",
        "order": "C",
        "filters": [{"id": "vlen-utf8"}, {"id": "zstd", "level": 0, "checksum": True}, {"id": "crc32c"}],
        "dimension_separator": ".",
    }


def test_gdal_writes_large_fill_values_as_strings():
    for value in (2**64 - 1, 2**63):
        metadata = load(dtype="<u8", fill_value=str(value))
        assert metadata.fill_value == value
        assert dump(metadata)["fill_value"] == str(value)


@pytest.mark.parametrize(("word", "meant"), [("NONE", "noshuffle"), ("BYTE", "shuffle"), ("BIT", "bitshuffle")])
def test_gdal_writes_the_shuffle_of_blosc_as_it_was_typed(word, meant):
    compressor = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": word, "blocksize": 0}
    metadata = load(compressor=compressor)
    assert metadata.codecs[-1].configuration["shuffle"] == meant
    assert [note.pointer for note in metadata.notes] == ["/compressor/shuffle"]
    assert dump(metadata)["compressor"] == compressor
