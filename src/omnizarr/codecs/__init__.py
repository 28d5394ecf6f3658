"""Codecs: their contract (`contract`), lookup (`registry`), chains (`chain`), and the values that name them (here).

You pass the classes below to `omnizarr.create_array`.
"""

from typing import TYPE_CHECKING, Any

from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.codecs import values
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
else:  # slow to import, and not needed for reading
    values = Lazy("omnizarr.codecs.values")

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
    if name in __all__:
        return getattr(values, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
