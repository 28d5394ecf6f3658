"""Codecs: what they are (`contract`), finding them (`registry`), running them (`chain`), naming them (here).

The names below are the ones a user passes to `omnizarr.create_array`.
"""

from omnizarr.codecs.values import (
    BloscCodec,
    BytesCodec,
    CastValue,
    Codec,
    Crc32cCodec,
    GzipCodec,
    ScaleOffset,
    ShardingCodec,
    TransposeCodec,
    VLenBytesCodec,
    VLenUTF8Codec,
    ZstdCodec,
)

__all__ = [
    "BloscCodec",
    "BytesCodec",
    "CastValue",
    "Codec",
    "Crc32cCodec",
    "GzipCodec",
    "ScaleOffset",
    "ShardingCodec",
    "TransposeCodec",
    "VLenBytesCodec",
    "VLenUTF8Codec",
    "ZstdCodec",
]
