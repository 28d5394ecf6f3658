"""Codecs: what they are (`contract`), finding them (`registry`), running them (`chain`), naming them (here).

The names below are the ones a user passes to `omnizarr.create_array`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    if name in __all__:  # who only reads has no use for them, and they take a tenth of what omnizarr takes to import
        return getattr(import_module("omnizarr.codecs.values"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
