"""Codecs: what they are (`contract`), finding them (`registry`), running them (`chain`), naming them (here).

The names below are the ones a user passes to `omnizarr.create_array`.
"""

from omnizarr.codecs.values import (
    BloscCname,
    BloscCodec,
    BloscShuffle,
    BytesCodec,
    CastValue,
    Codec,
    Crc32cCodec,
    Endian,
    GzipCodec,
    ScaleOffset,
    ShardingCodec,
    ShardingCodecIndexLocation,
    TransposeCodec,
    VLenBytesCodec,
    VLenUTF8Codec,
    ZstdCodec,
)

__all__ = [
    "BloscCname",
    "BloscCodec",
    "BloscShuffle",
    "BytesCodec",
    "CastValue",
    "Codec",
    "Crc32cCodec",
    "Endian",
    "GzipCodec",
    "ScaleOffset",
    "ShardingCodec",
    "ShardingCodecIndexLocation",
    "TransposeCodec",
    "VLenBytesCodec",
    "VLenUTF8Codec",
    "ZstdCodec",
]
