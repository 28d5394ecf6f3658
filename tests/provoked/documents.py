"""Errors of stored documents: text that is not JSON, and metadata that break the format."""

import numpy as np

import omnizarr
from tests.provoked.cases import case, document, hierarchy

PLACE = "{at}/x.zarr/ocean/temp"
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def holding(name, kind, *says, remedy=None, **changes):
    """Put an array with a changed document into the table; it is read with `get`."""

    def prepare(at):
        hierarchy(at)
        document(at, **changes)
        place = at / "x.zarr/ocean/temp"
        return lambda: omnizarr.open_array(place)[:], ["get", place]

    prepare.__name__ = name
    case(kind, PLACE, "key 'zarr.json'", *says, remedy=remedy, key="zarr.json")(prepare)


def of_v2(name, kind, *says, remedy=None, **changes):
    """The same for an array of Zarr v2."""

    def prepare(at):
        root = omnizarr.create_group(at / "x.zarr", zarr_format=2)
        root.create_array("ocean/temp", data=np.arange(24, dtype="int16").reshape(4, 6), chunks=(2, 3))
        document(at, ".zarray", **changes)
        place = at / "x.zarr/ocean/temp"
        return lambda: omnizarr.open_array(place)[:], ["get", place]

    prepare.__name__ = name
    case(kind, PLACE, "key '.zarray'", *says, remedy=remedy, key=".zarray")(prepare)


def reading(name, text, *says, remedy="correct the document", file="zarr.json"):
    """Put an array whose document has other text into the table."""

    def prepare(at):
        hierarchy(at)
        (at / "x.zarr/ocean/temp" / file).write_bytes(text)
        place = at / "x.zarr/ocean/temp"
        return lambda: omnizarr.open(place), ["info", place]

    prepare.__name__ = name
    case(ValueError, PLACE, f"key '{file}'", *says, remedy=remedy, key=file)(prepare)


reading(
    "json_with_a_missing_comma", b'{"zarr_format": 3,\n "shape": [4 6]}', "not valid JSON (line 2, column 14)", "found "
)
reading("json_that_breaks_off", b'{"zarr_format": 3,\n "node_type": "arr', "not valid JSON (line 2, column 15)")
reading("empty_document", b"", "document is empty")
reading("document_that_is_no_text", b"\xff\xfe{", "not UTF-8 (byte 0)")
reading("member_twice", b'{"zarr_format":3,"zarr_format":3,"node_type":"group"}', "'zarr_format' occurs more than once")
reading("list_as_document", b"[]", "not an object", "found []", "expected an object", remedy=None)

holding("another_zarr_format", ValueError, "/zarr_format", "found 9, expected 3", zarr_format=9)
holding(
    "unknown_node_type",
    ValueError,
    "/node_type",
    "found arrow",
    '"array" or "group"',
    node_type="arrow",
)
holding(
    "unknown_codec",
    ValueError,
    "/codecs/1",
    "codec 'zstdd'",
    "unknown codec",
    remedy="did you mean 'zstd'",
    codecs=[BYTES, {"name": "zstdd", "configuration": {}}],
)
holding(
    "level_of_a_codec",
    ValueError,
    "/codecs/1/configuration/level",
    "codec 'gzip'",
    "found 99",
    "from 0 to 9",
    codecs=[BYTES, {"name": "gzip", "configuration": {"level": 99}}],
)
holding(
    "order_of_codecs",
    ValueError,
    "/codecs/0",
    "codec 'gzip'",
    "not allowed in this position",
    codecs=[{"name": "gzip", "configuration": {"level": 1}}, BYTES],
)
holding(
    "unknown_data_type",
    TypeError,
    "/data_type",
    "unknown data type",
    "found int17",
    remedy="did you mean 'int1",
    data_type="int17",
)
holding("no_data_type_in_a_document", ValueError, "/data_type", "data_type is missing", data_type=None)
holding(
    "unknown_chunk_grid",
    ValueError,
    "/chunk_grid/name",
    "found hexagonal",
    "expected 'regular'",
    chunk_grid={"name": "hexagonal", "configuration": {}},
)
holding(
    "grid_of_other_dimensions",
    ValueError,
    "/chunk_grid",
    "found [2]",
    "shape [4, 6]",
    chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2]}},
)
holding(
    "grid_with_a_length_of_zero",
    ValueError,
    "chunk_shape/0",
    "found 0",
    "from 1",
    chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 3]}},
)
holding(
    "unknown_key_encoding",
    ValueError,
    "/chunk_key_encoding/name",
    "found v7",
    "'default' or 'v2'",
    chunk_key_encoding={"name": "v7"},
)
holding(
    "unknown_storage_transformer",
    ValueError,
    "/storage_transformers/0",
    "found foo",
    remedy="a package can add it",
    storage_transformers=[{"name": "foo"}],
)
holding(
    "member_that_must_be_understood",
    ValueError,
    "/extra",
    "unknown member 'extra'",
    extra={"must_understand": True, "name": "x"},
)
holding("negative_length_in_a_document", ValueError, "/shape/0", "found -4", shape=[-4, 6])
holding("shape_that_is_text", ValueError, "/shape", "not a list", "expected a list", shape="4")
holding(
    "fill_value_of_another_type",
    ValueError,
    "/fill_value",
    "found NaN",
    "from -32768",
    fill_value="NaN",
)
holding(
    "fill_value_out_of_range",
    ValueError,
    "/fill_value",
    "range of int16",
    "100000",
    fill_value=100000,
)
holding("no_fill_value", ValueError, "/fill_value", "fill_value is missing", fill_value=None)
holding(
    "names_for_other_dimensions",
    ValueError,
    "/dimension_names",
    "found ['y']",
    "shape [4, 6]",
    dimension_names=["y"],
)
holding("attributes_that_are_a_list", ValueError, "/attributes", "found [1]", "an object", attributes=[1])
INDEX = [BYTES, {"name": "crc32c"}]
holding(
    "inner_chunks_larger_than_the_shard",
    ValueError,
    "sharding_indexed",
    "found (2, 4)",
    "the shard's shape (2, 3)",
    codecs=[
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 4], "codecs": [BYTES], "index_codecs": INDEX}}
    ],
)
holding(
    "inner_chunks_of_other_dimensions",
    ValueError,
    "sharding_indexed",
    "found [2]",
    "2 positive integers",
    codecs=[
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": [BYTES], "index_codecs": INDEX}}
    ],
)


of_v2(
    "level_of_a_compressor_of_v2",
    ValueError,
    "at /compressor/level",
    "codec 'numcodecs.gzip'",
    "found 99",
    compressor={"id": "gzip", "level": 99},
)
of_v2(
    "unknown_compressor_of_v2",
    ValueError,
    "at /compressor",
    "unknown codec",
    remedy="did you mean 'numcodecs.zstd'",
    compressor={"id": "zstdd"},
)
of_v2(
    "filter_of_v2_for_another_type",
    ValueError,
    "at /filters/0",
    "made for another data type",
    "found int16, expected <f8",
    filters=[{"id": "delta", "dtype": "<f8"}],
)
of_v2("compressor_of_v2_without_an_id", ValueError, "at /compressor/id", "without an id", compressor={"level": 1})


@case(ValueError, "{at}/x.zarr", "key '.zattrs'", "not valid JSON (line 1, column 7)", remedy="correct the document")
def attributes_of_v2_that_are_no_json(at):
    omnizarr.create_array(at / "x.zarr", shape=3, dtype="i4", zarr_format=2)
    (at / "x.zarr/.zattrs").write_text('{"a": }')
    return lambda: omnizarr.open(at / "x.zarr"), ["info", at / "x.zarr"]
