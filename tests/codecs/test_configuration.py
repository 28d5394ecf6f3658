import pytest

from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.registry import find
from omnizarr.errors import MetadataError, OmnizarrError
from tests.codecs.cases import FLOATS, NUMBERS, TEXT, array_spec

WRONG_FOR_BYTES = [
    ("gzip", {"level": 10}, "level"),
    ("gzip", {"level": -1}, "level"),
    ("gzip", {"level": True}, "level"),
    ("gzip", {"level": "5"}, "level"),
    ("gzip", {"level": 1.5}, "level"),
    ("gzip", {"levle": 1}, "levle"),
    ("numcodecs.zlib", {"level": None}, "level"),
    ("numcodecs.bz2", {"level": 0}, "level"),
    ("numcodecs.lzma", {"format": 4}, "format"),
    ("numcodecs.lzma", {"format": 3}, "filters"),
    ("numcodecs.lzma", {"check": 2}, "check"),
    ("numcodecs.lzma", {"preset": 10}, "preset"),
    ("numcodecs.lzma", {"filters": [{"id": 12345}]}, "filters"),
    ("numcodecs.lzma", {"filters": "all"}, "filters"),
    ("numcodecs.lzma", {"format": 3, "filters": [{"id": 33, "dict_size": 2**31}]}, "filters"),
    ("numcodecs.lz4", {"acceleration": 2**40}, "acceleration"),
    ("zstd", {"level": 23}, "level"),
    ("zstd", {"checksum": 1}, "checksum"),
    ("blosc", {"cname": "lzo"}, "cname"),
    ("blosc", {}, "cname"),
    ("blosc", {"cname": "lz4", "clevel": 10}, "clevel"),
    ("blosc", {"cname": "lz4", "shuffle": "bits"}, "shuffle"),
    ("blosc", {"cname": "lz4", "shuffle": 3}, "shuffle"),
    ("blosc", {"cname": "lz4", "shuffle": True}, "shuffle"),
    ("blosc", {"cname": "lz4", "typesize": -1}, "typesize"),
    ("blosc", {"cname": "lz4", "blocksize": -1}, "blocksize"),
    ("crc32c", {"location": "end"}, "location"),
    ("numcodecs.crc32", {"location": "middle"}, "location"),
    ("numcodecs.jenkins_lookup3", {"initval": -1}, "initval"),
    ("numcodecs.shuffle", {"elementsize": -1}, "elementsize"),
    ("conditional", {"codecs": "gzip"}, "codecs"),
    ("conditional", {"codecs": [1]}, "codecs/0"),
    ("conditional", {"codecs": [], "header_bits": 3}, "header_bits"),
    ("conditional", {"codecs": [{"name": "gzip", "configuration": {"level": 99}}]}, "codecs/0/configuration/level"),
]
WRONG_FOR_ARRAYS = [
    ("numcodecs.delta", {"dtype": "<q9"}, "dtype"),
    ("numcodecs.delta", {"dtype": "|O"}, "dtype"),
    ("numcodecs.delta", {"dtype": "<i4", "astype": 4}, "astype"),
    ("numcodecs.delta", {"dtype": "<i4,<i4"}, "dtype"),
    ("numcodecs.fixedscaleoffset", {"offset": 0, "dtype": "<i4"}, "scale"),
    ("numcodecs.fixedscaleoffset", {"offset": 0, "scale": 0, "dtype": "<i4"}, "scale"),
    ("numcodecs.fixedscaleoffset", {"offset": "0", "scale": 1, "dtype": "<i4"}, "offset"),
    ("numcodecs.quantize", {"digits": 1, "dtype": "<i4"}, "dtype"),
    ("numcodecs.astype", {"decode_dtype": "<i4"}, "encode_dtype"),
    ("bitround", {}, "keepbits"),
    ("bitround", {"keepbits": 0}, "keepbits"),
    ("packbits", {"padding_encoding": "start"}, "padding_encoding"),
    ("packbits", {"first_bit": 5, "last_bit": 4}, "last_bit"),
    ("packbits", {"last_bit": 32}, "last_bit"),
    ("scale_offset", {"scale": 0}, "scale"),
    ("scale_offset", {"scale": 0.5}, "scale"),
    ("scale_offset", {"offset": None}, "offset"),
    ("scale_offset", {"shift": 1}, "shift"),
    ("cast_value", {}, "data_type"),
    ("cast_value", {"data_type": "int33"}, "data_type"),
    ("cast_value", {"data_type": "int8", "rounding": "up"}, "rounding"),
    ("cast_value", {"data_type": "int8", "out_of_range": "saturate"}, "out_of_range"),
    ("cast_value", {"data_type": "float32", "out_of_range": "wrap"}, "out_of_range"),
    ("cast_value", {"data_type": "int8", "scalar_map": []}, "scalar_map"),
    ("cast_value", {"data_type": "int8", "scalar_map": {"encode": [[1]]}}, "scalar_map/encode"),
    ("cast_value", {"data_type": "int8", "scalar_map": {"encode": [[1, 300]]}}, "scalar_map/encode/0"),
    ("reshape", {"shape": "all"}, "shape"),
    ("reshape", {"shape": [-1, -1]}, "shape"),
    ("reshape", {"shape": [[1], [0]]}, "shape"),
    ("reshape", {"shape": [[0, 2]]}, "shape"),
    ("reshape", {"shape": [7, 7]}, "shape"),
    ("reshape", {"shape": [True, 120]}, "shape"),
    ("numcodecs.json2", {"encoding": "rot13"}, "encoding"),
    ("numcodecs.json2", {"separators": [","]}, "separators"),
    ("numcodecs.msgpack2", {"raw": 1}, "raw"),
    ("numcodecs.pickle", {"protocol": 99}, "protocol"),
    ("numcodecs.pcodec", {"level": 13}, "level"),
    ("numcodecs.pcodec", {"delta_spec": "none", "delta_encoding_order": 1}, "delta_encoding_order"),
    ("zfp", {"mode": "fast"}, "mode"),
    ("zfp", {"mode": "reversible", "rate": 1}, "rate"),
    ("zfp", {"mode": "fixed_rate"}, "rate"),
    ("numcodecs.zfpy", {"mode": 1}, "mode"),
    ("n5_default", {"codecs": []}, "codecs"),
    ("n5_default", {"codecs": ["bytes", "bytes"]}, "codecs/0"),
]


def refused(name, configuration, decoded, field):
    with pytest.raises(OmnizarrError) as caught:
        find(name)(configuration, decoded)
    assert caught.value.pointer == f"/configuration/{field}"
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("name", "configuration", "field"), WRONG_FOR_BYTES)
def test_wrong_field_of_a_bytes_codec_is_pointed_at(name, configuration, field):
    refused(name, configuration, BytesSpec(100, 4), field)


@pytest.mark.parametrize(("name", "configuration", "field"), WRONG_FOR_ARRAYS)
def test_wrong_field_of_an_array_codec_is_pointed_at(name, configuration, field):
    refused(name, configuration, array_spec(NUMBERS), field)


@pytest.mark.parametrize(
    ("name", "configuration", "array"),
    [
        ("numcodecs.delta", {"dtype": "<i4"}, TEXT),
        ("numcodecs.delta", {"dtype": "<i8"}, NUMBERS[:3, :3]),
        ("numcodecs.bitround", {"keepbits": 3}, NUMBERS),
        ("bitround", {"keepbits": 3}, TEXT),
        ("numcodecs.packbits", {}, NUMBERS),
        ("numcodecs.categorize", {"labels": ["a"]}, NUMBERS),
        ("scale_offset", {}, TEXT),
        ("cast_value", {"data_type": "int8"}, TEXT),
        ("cast_value", {"data_type": "bool"}, NUMBERS),
        ("packbits", {}, TEXT),
        ("vlen-utf8", {}, NUMBERS),
        ("vlen-bytes", {}, NUMBERS),
        ("zfp", {"mode": "reversible"}, NUMBERS.astype("u8")),
        ("zfp", {"mode": "reversible"}, NUMBERS.reshape(2, 5, 2, 3, 2)),
        ("zfp", {"mode": "expert", "minbits": 2, "maxbits": 1, "maxprec": 1, "minexp": 1}, FLOATS),
        ("numcodecs.zfpy", {}, NUMBERS.astype("u1")),
        ("numcodecs.pcodec", {}, TEXT),
    ],
)
def test_array_of_another_kind_is_refused(name, configuration, array):
    with pytest.raises(OmnizarrError):
        find(name)(configuration, array_spec(array))


def test_unknown_field_is_answered_with_a_similar_one():
    with pytest.raises(MetadataError) as caught:
        find("gzip")({"levle": 1}, BytesSpec(1))
    assert caught.value.remedy == "did you mean 'level'?"


def test_integral_float_is_treated_as_the_integer():
    assert find("gzip")({"level": 5.0}, BytesSpec(1)).level == 5


@pytest.mark.parametrize("configuration", [None, [], "level", 1])
def test_configuration_that_is_no_object_is_refused(configuration):
    with pytest.raises(MetadataError):
        find("gzip")(configuration, BytesSpec(1))
