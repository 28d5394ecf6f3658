"""The base classes of codecs in zarr-python: for ``isinstance``, and for your own codecs."""

from __future__ import annotations

from abc import ABC
from typing import Any

from omnizarr.codecs import values


class Codec(ABC):  # noqa: B024 - made to be derived from, and registered with
    """A codec."""

    is_fixed_size: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the codec as a v3 document writes it."""
        raise NotImplementedError


class ArrayArrayCodec(Codec):
    """Array to array."""


class ArrayBytesCodec(Codec):
    """Array to bytes."""


class BytesBytesCodec(Codec):
    """Bytes to bytes."""


class ArrayBytesCodecPartialDecodeMixin:
    """A codec that can decode a part of a chunk."""


class ArrayBytesCodecPartialEncodeMixin:
    """A codec that can encode a part of a chunk."""


class CodecPipeline:
    """The codecs of an array: here they run in omnizarr's engine."""


for _kind, _codecs in {
    ArrayArrayCodec: (values.TransposeCodec, values.ScaleOffset, values.CastValue),
    ArrayBytesCodec: (values.BytesCodec, values.ShardingCodec, values.VLenBytesCodec, values.VLenUTF8Codec),
    BytesBytesCodec: (values.BloscCodec, values.Crc32cCodec, values.GzipCodec, values.ZstdCodec),
}.items():
    for _codec in _codecs:
        _kind.register(_codec)
