"""Looking up codecs and buffers by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from omnizarr.codecs import values
from omnizarr.errors import UnknownCodecError
from omnizarr_as_zarr.codecs import numcodecs
from omnizarr_as_zarr.core.buffer import Buffer, NDBuffer

_CODECS: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        values.BloscCodec,
        values.BytesCodec,
        values.CastValue,
        values.Crc32cCodec,
        values.GzipCodec,
        values.ScaleOffset,
        values.ShardingCodec,
        values.TransposeCodec,
        values.VLenBytesCodec,
        values.VLenUTF8Codec,
        values.ZstdCodec,
    )
} | {kind.codec_name: kind for kind in (getattr(numcodecs, name) for name in numcodecs.__all__)}


def get_codec_class(key: str, reload_config: bool = False) -> type[Any]:  # noqa: FBT001, FBT002 - zarr-python's
    """Return the class of a codec's values. Raises UnknownCodecError."""
    try:
        return _CODECS[key]
    except KeyError:
        raise UnknownCodecError("there is no class for this codec", codec=key) from None


def register_codec(key: str, codec_cls: type[Any], *, qualname: str | None = None) -> None:
    """Register a class of codecs, for `get_codec_class`; it runs if it is an entry point ``zarr.codecs``, too."""
    _CODECS[key] = codec_cls


def get_buffer_class(reload_config: bool = False) -> type[Buffer]:  # noqa: FBT001, FBT002 - zarr-python's
    """Return the class that bytes are handed over as."""
    return Buffer


def get_ndbuffer_class(reload_config: bool = False) -> type[NDBuffer]:  # noqa: FBT001, FBT002 - zarr-python's
    """Return the class that arrays are handed over as."""
    return NDBuffer


def get_numcodec(data: Any) -> Any:
    """Return a codec of numcodecs. Raises ImportError if that is not installed."""
    return import_module("numcodecs").get_codec(dict(data))


__all__ = ["get_buffer_class", "get_codec_class", "get_ndbuffer_class", "get_numcodec", "register_codec"]
