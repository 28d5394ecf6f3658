import ml_dtypes
import numpy as np
import pytest

from omnizarr.codecs import chain
from omnizarr.codecs.chain import describe, describe_chain
from omnizarr.codecs.contract import ArraySpec, BytesSpec
from omnizarr.model import Named, datatypes

BYTES = Named("bytes", {"endian": "little"})


def spec_of(dtype, shape=(4,), byte_order="<"):
    data_type = datatypes.parse(dtype).with_byte_order(byte_order)
    return ArraySpec(shape, data_type, data_type.default_fill_value)


def chain_of(*codecs, dtype="int32", shape=(4,), byte_order="<"):
    named = [codec if isinstance(codec, Named) else Named(codec[0], codec[1]) for codec in codecs]
    return describe_chain(chain.bind(named, spec_of(dtype, shape, byte_order)))


def filters_of(name, configuration, dtype):
    described = chain_of((name, configuration), BYTES, dtype=dtype)
    return None if described is None else described[0]


@pytest.mark.parametrize(
    ("name", "configuration", "wanted"),
    [
        ("gzip", {"level": 5}, ("gzip", 5)),
        ("numcodecs.gzip", {"level": -1}, ("gzip", -1)),
        ("zlib", {"level": 9}, ("zlib", 9)),
        ("zstd", {"level": -3, "checksum": True}, ("zstd", -3, True)),
        ("numcodecs.zstd", {}, ("zstd", 0, False)),
        ("lz4", {"acceleration": 7}, ("lz4", 7)),
        ("crc32c", {}, ("crc32c", False)),
        ("numcodecs.crc32c", {"location": "start"}, ("crc32c", True)),
        ("numcodecs.crc32", {}, ("crc32", True)),
        ("numcodecs.adler32", {"location": "end"}, ("adler32", False)),
        ("numcodecs.fletcher32", {}, ("fletcher32", False)),
        ("shuffle", {"elementsize": 0}, ("shuffle", 4)),
        (
            "blosc",
            {"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 64},
            ("blosc", "zstd", 1, 2, 4, 64),
        ),
    ],
)
def test_a_compressor_is_described_by_name_and_parameters(name, configuration, wanted):
    assert chain_of(BYTES, (name, configuration)) == ((), ("bytes", 4, ()), (wanted,))


@pytest.mark.parametrize("name", ["numcodecs.bz2", "numcodecs.lzma", "numcodecs.jenkins_lookup3", "numcodecs.base64"])
def test_a_compressor_that_the_native_engine_lacks_has_no_description(name):
    assert chain_of(BYTES, (name, {})) is None


# Data type, its order in memory, the order that is stored, and what is to be done to each element.
ELEMENTS = [
    ("int8", "<", "big", 1, ()),
    ("int16", "<", "little", 2, ()),
    ("int16", "<", "big", 2, (("swap", 0, 2, 1),)),
    ("int16", ">", "big", 2, ()),
    ("float64", ">", "little", 8, (("swap", 0, 8, 1),)),
    ("complex64", "<", "big", 8, (("swap", 0, 4, 2),)),
    ("complex128", "<", "big", 16, (("swap", 0, 8, 2),)),
    ("datetime64[ns]", "<", "big", 8, (("swap", 0, 8, 1),)),
    ("datetime64", "<", "big", 8, (("swap", 0, 8, 1),)),
    ("timedelta64", ">", "little", 8, (("swap", 0, 8, 1),)),
    ("bfloat16", "<", "big", 2, (("swap", 0, 2, 1),)),
    ("bool", "<", "little", 1, (("bool", 0, 1),)),
    ("S5", "<", "big", 5, ()),
    ("V3", "<", "big", 3, ()),
    ("U3", "<", "little", 12, (("text", 0, 3, False),)),
    ("U3", "<", "big", 12, (("swap", 0, 4, 3), ("text", 0, 3, False))),
    ("U3", ">", "big", 12, (("text", 0, 3, True),)),
    ("float4_e2m1fn", "<", "big", 1, (("mask", 0, 1, 0x0F),)),
    ("float6_e3m2fn", "<", "big", 1, (("mask", 0, 1, 0x3F),)),
    ("int4", "<", "big", 1, ()),
]


@pytest.mark.parametrize(("dtype", "in_memory", "endian", "item", "fixes"), ELEMENTS)
def test_bytes_are_described_by_what_makes_them_elements(dtype, in_memory, endian, item, fixes):
    assert chain_of(("bytes", {"endian": endian}), dtype=dtype, byte_order=in_memory)[1] == ("bytes", item, fixes)


def test_fields_of_a_record_are_described_by_their_places():
    dtype = np.dtype([("a", "?"), ("b", [("x", "u2"), ("y", "f8", (3,))]), ("c", "c8"), ("t", "U2", (2,))])
    described = chain_of(("bytes", {"endian": "big"}), dtype=dtype)
    assert described[1] == (
        "bytes",
        1 + 2 + 24 + 8 + 16,
        (
            ("bool", 0, 1),
            ("swap", 1, 2, 1),
            ("swap", 3, 8, 3),
            ("swap", 27, 4, 2),
            ("swap", 35, 4, 4),
            ("text", 35, 4, False),
        ),
    )


def test_records_in_a_record_are_described_one_by_one():
    dtype = np.dtype([("a", [("x", "u2"), ("y", "u1")], (2,))])
    described = chain_of(("bytes", {"endian": "big"}), dtype=dtype)
    assert described[1] == ("bytes", 6, (("swap", 0, 2, 1), ("swap", 3, 2, 1)))


def test_a_record_of_very_many_fields_has_no_description():
    assert chain_of(("bytes", {"endian": "big"}), dtype=np.dtype([(f"f{n}", "u2") for n in range(65)])) is None


def test_elements_of_variable_size_have_no_description():
    assert chain_of(("vlen-utf8", {}), dtype="string") is None


@pytest.mark.parametrize(
    ("name", "configuration", "dtype", "wanted"),
    [
        ("transpose", {"order": [0]}, "int32", ("transpose", (0,))),
        ("numcodecs.delta", {"dtype": "<i4", "astype": "<i2"}, "int32", ("delta", 4, "<i4", "<i2")),
        ("numcodecs.delta", {"dtype": "<i8"}, "datetime64[s]", ("delta", 4, "<i8", "<i8")),
        ("numcodecs.delta", {"dtype": "<f4"}, "float32", ("delta", 4, "<f4", "<f4")),
        ("numcodecs.delta", {"dtype": "|u1", "astype": "<u4"}, "int32", ("delta", 16, "|u1", "<u4")),
        ("numcodecs.delta", {"dtype": "<f4", "astype": "<f8"}, "float32", None),
        ("numcodecs.delta", {"dtype": "<u8", "astype": "<i8"}, "uint64", None),
        ("numcodecs.delta", {"dtype": "|b1"}, "bool", None),
        ("numcodecs.delta", {"dtype": "<c8"}, "complex64", None),
        ("numcodecs.delta", {"dtype": "<f2"}, "float16", None),
        (
            "numcodecs.fixedscaleoffset",
            {"offset": 1000, "scale": 10, "dtype": "<f8", "astype": "<u2"},
            "float64",
            ("fixedscaleoffset", 4, "<f8", "<u2", 1000.0, 10.0),
        ),
        ("numcodecs.fixedscaleoffset", {"offset": 0, "scale": 256, "dtype": "<f8", "astype": "|u1"}, "float64", None),
        ("numcodecs.fixedscaleoffset", {"offset": 2**53 + 1, "scale": 1, "dtype": "<f8"}, "float64", None),
        ("numcodecs.fixedscaleoffset", {"offset": 0, "scale": 10, "dtype": "<i4"}, "int32", None),
        ("numcodecs.astype", {"encode_dtype": ">f4", "decode_dtype": "<f8"}, "float64", ("astype", 4, "<f8", ">f4")),
        ("numcodecs.astype", {"encode_dtype": "<U4", "decode_dtype": "<i4"}, "int32", None),
        ("numcodecs.quantize", {"digits": 3, "dtype": "<f4"}, "float32", ("quantize", 4, "<f4", "<f4", 1024.0)),
        ("bitround", {"keepbits": 9}, "float32", ("bitround", 4, 4, False, 23, 9)),
        ("bitround", {"keepbits": 9}, "complex128", ("bitround", 8, 8, False, 52, 9)),
        ("bitround", {"keepbits": 3}, "uint16", ("bitround", 4, 2, False, 0, 3)),
        ("bitround", {"keepbits": 3}, "bfloat16", ("bitround", 4, 2, False, 7, 3)),
        ("bitround", {"keepbits": 2**70}, "uint16", None),
        ("numcodecs.bitround", {"keepbits": 0}, "float64", ("bitround", 4, 8, False, 52, 0)),
        ("numcodecs.packbits", {}, "bool", ("packbools", 4)),
        ("reshape", {"shape": [2, 2]}, "int32", None),
    ],
)
def test_a_filter_is_described_by_sizes_types_and_parameters(name, configuration, dtype, wanted):
    assert filters_of(name, configuration, dtype) == (None if wanted is None else (wanted,))


def test_elements_in_another_order_in_memory_are_stated_to_be_swapped():
    described = chain_of(("bitround", {"keepbits": 9}), BYTES, dtype="float32", byte_order=">")
    assert described[0] == (("bitround", 4, 4, True, 23, 9),)


def test_packed_bits_are_a_filter_before_plain_bytes():
    packed = ("packbits", 8, 4, False, 2, 30, False, "last_byte")
    described = chain_of(
        ("packbits", {"padding_encoding": "last_byte", "first_bit": 2, "last_bit": 30}),
        ("crc32c", {}),
        dtype="complex64",
    )
    assert described == ((packed,), ("bytes", 1, ()), (("crc32c", False),))


def test_filters_follow_each_other_by_what_they_are_bound_to():
    described = chain_of(
        ("numcodecs.astype", {"encode_dtype": "<i2", "decode_dtype": "<i4"}),
        ("numcodecs.delta", {"dtype": "<i2"}),
        BYTES,
    )
    assert described == ((("astype", 4, "<i4", "<i2"), ("delta", 4, "<i2", "<i2")), ("bytes", 2, ()), ())


def test_a_shard_is_described_with_its_chains():
    inner = ((("transpose", (1, 0)),), ("bytes", 4, ()), (("gzip", 1),))
    index = ((), ("bytes", 8, ()), (("crc32c", False),))
    configuration = {
        "chunk_shape": [2, 3],
        "codecs": [Named("transpose", {"order": [1, 0]}), BYTES, Named("gzip", {"level": 1})],
        "index_location": "start",
    }
    described = chain_of(("sharding_indexed", configuration), shape=(4, 6))
    assert described == ((), ("sharding", (2, 3), inner, index, False), ())


def test_a_shard_with_a_codec_that_is_not_known_has_no_description():
    configuration = {"chunk_shape": [2], "codecs": [BYTES, Named("numcodecs.bz2", {"level": 1})]}
    assert chain_of(("sharding_indexed", configuration)) is None


def test_a_chain_that_leaves_codecs_out_has_no_description():
    named = [BYTES, Named("example.unknown", {}, must_understand=False)]
    assert describe_chain(chain.bind(named, spec_of("int32"))) is None


def test_a_subclass_of_a_codec_has_no_description():
    gzip = chain.bind([BYTES, Named("gzip", {"level": 1})], spec_of("int32")).compressors[0][1]

    class Other(type(gzip)):
        pass

    assert describe(gzip, BytesSpec(16)) == ("gzip", 1)
    assert describe(Other(1, BytesSpec(16)), BytesSpec(16)) is None


def test_sizes_that_no_machine_has_are_not_described():
    assert chain_of(("numcodecs.packbits", {}), BYTES, dtype="bool", shape=(2**62, 4)) is None
    assert chain_of(("numcodecs.astype", {"encode_dtype": "<i2", "decode_dtype": "<i4"}), BYTES, shape=(2**62,)) is None


def test_ml_dtypes_are_in_the_order_of_the_machine():
    # What the swap of bfloat16 above rests on.
    assert np.dtype(ml_dtypes.bfloat16).isnative
