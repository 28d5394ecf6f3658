"""Codecs, as values that name them."""

from __future__ import annotations

from omnizarr.codecs import (
    BloscCname,
    BloscCodec,
    BloscShuffle,
    BytesCodec,
    CastValue,
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
from omnizarr_as_zarr.codecs import numcodecs

__all__ = [
    "BloscCname",
    "BloscCodec",
    "BloscShuffle",
    "BytesCodec",
    "CastValue",
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
    "numcodecs",
]
