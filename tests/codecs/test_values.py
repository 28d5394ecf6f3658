"""`omnizarr.codecs.values`."""

import dataclasses
import json

import pytest

from omnizarr import codecs
from omnizarr.codecs.values import named, value_of
from omnizarr.model import Named


@pytest.mark.parametrize(
    ("value", "document"),
    [
        (codecs.BytesCodec(), {"name": "bytes", "configuration": {"endian": "little"}}),
        (codecs.BytesCodec(endian=None), {"name": "bytes"}),
        (codecs.GzipCodec(level=1), {"name": "gzip", "configuration": {"level": 1}}),
        (codecs.ZstdCodec(), {"name": "zstd", "configuration": {"level": 0, "checksum": False}}),
        (codecs.Crc32cCodec(), {"name": "crc32c"}),
        (codecs.VLenUTF8Codec(), {"name": "vlen-utf8"}),
        (codecs.VLenBytesCodec(), {"name": "vlen-bytes"}),
        (codecs.TransposeCodec(order=(1, 0)), {"name": "transpose", "configuration": {"order": [1, 0]}}),
        (codecs.ScaleOffset(offset=1), {"name": "scale_offset", "configuration": {"offset": 1, "scale": 1}}),
        (
            codecs.CastValue(data_type="uint8"),
            {"name": "cast_value", "configuration": {"data_type": "uint8", "rounding": "nearest-even"}},
        ),
        (
            codecs.BloscCodec(typesize=4, shuffle="shuffle"),
            {
                "name": "blosc",
                "configuration": {"typesize": 4, "cname": "zstd", "clevel": 5, "shuffle": "shuffle", "blocksize": 0},
            },
        ),
        (codecs.Codec("acme.squeeze", {"hard": True}), {"name": "acme.squeeze", "configuration": {"hard": True}}),
        (
            codecs.ShardingCodec(chunk_shape=(2, 2), codecs=[codecs.BytesCodec(), "crc32c"]),
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [2, 2],
                    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                    "index_location": "end",
                },
            },
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_value_and_document_are_the_same(value, document):
    assert value.to_dict() == document
    assert value_of(document) == value
    assert value_of(value) is value
    assert value_of(named(value)) == value
    assert named(value) == Named(document["name"], document.get("configuration", {}))


def test_values_are_frozen_and_comparable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        codecs.GzipCodec().level = 3
    assert codecs.GzipCodec(level=3) == codecs.GzipCodec(level=3) != codecs.GzipCodec(level=4)
    assert hash(codecs.ShardingCodec(chunk_shape=[2])) == hash(codecs.ShardingCodec(chunk_shape=(2,)))


def test_objects_of_other_libraries_are_understood_by_their_document():
    class Theirs:
        def to_dict(self):
            return {"name": "gzip", "configuration": {"level": 2}}

    assert value_of(Theirs()) == codecs.GzipCodec(level=2)


def test_configuration_that_a_value_cannot_hold_stays_unchanged():
    assert value_of({"name": "gzip", "configuration": {"speed": 2}}) == codecs.Codec("gzip", {"speed": 2})


@pytest.mark.parametrize("value", [5, None, {"id": "gzip"}, {"name": 3}], ids=repr)
def test_what_is_no_codec(value):
    with pytest.raises(TypeError):
        value_of(value)


@pytest.mark.parametrize(
    ("with_member", "with_string"),
    [
        (codecs.BytesCodec(endian=codecs.Endian.big), codecs.BytesCodec(endian="big")),
        (codecs.BloscCodec(cname=codecs.BloscCname.lz4hc), codecs.BloscCodec(cname="lz4hc")),
        (codecs.BloscCodec(shuffle=codecs.BloscShuffle.bitshuffle), codecs.BloscCodec(shuffle="bitshuffle")),
        (
            codecs.ShardingCodec(chunk_shape=(2,), index_location=codecs.ShardingCodecIndexLocation.start),
            codecs.ShardingCodec(chunk_shape=(2,), index_location="start"),
        ),
    ],
    ids=["endian", "cname", "shuffle", "index_location"],
)
def test_member_of_an_enumeration_is_its_string(with_member, with_string):
    assert with_member == with_string
    assert repr(with_member) == repr(with_string)
    assert json.dumps(with_member.to_dict()) == json.dumps(with_string.to_dict())


def test_field_of_few_words_is_a_member_and_a_string():
    endian = codecs.BytesCodec(endian="little").endian
    assert endian is codecs.Endian.little
    assert (endian, endian.value) == ("little", "little")


def test_word_that_is_none_is_kept_to_be_refused_later():
    assert codecs.BloscCodec(cname="nothing").cname == "nothing"
