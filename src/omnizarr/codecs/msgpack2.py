"""msgpack2: Python objects as MessagePack: a list of the items, then the dtype, then the shape.

Names: v2 ``msgpack2``, and ``msgpack`` (before numcodecs 0.6: without the shape); v3 ``numcodecs.msgpack2``,
``numcodecs.msgpack``.
Configuration: ``use_bin_type`` (true if missing), ``use_single_float``, ``raw`` (false if missing).
Agrees with numcodecs. Needs the package msgpack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.json2 import listed, unlisted
from omnizarr.codecs.record import A2B, Name, Record
from omnizarr.codecs.streams import ObjectCodec, parsed
from omnizarr.errors import ChunkError, CodecError
from omnizarr.support.lazy import Lazy

msgpack: Any = Lazy("msgpack")


@dataclass(frozen=True, slots=True)
class MsgPack(ObjectCodec):
    """Objects as MessagePack."""

    use_bin_type: bool
    use_single_float: bool
    raw: bool
    has_shape: bool
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size that can be parsed."""
        return parsed(self.decoded)

    def encode(self, array: AnyArray) -> Buffer:
        """Return the packed list."""
        items = listed(array, has_shape=self.has_shape)
        try:
            packed: bytes = msgpack.packb(items, use_bin_type=self.use_bin_type, use_single_float=self.use_single_float)
        except (ValueError, TypeError, OverflowError) as error:
            raise CodecError(f"cannot encode: {error}") from error
        return packed

    def decode(self, data: Buffer) -> AnyArray:
        """Return the items."""
        try:
            items: Any = msgpack.unpackb(data, raw=self.raw, strict_map_key=False)
        except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
            raise ChunkError(f"not MessagePack: {error}") from error
        return unlisted(items, self.decoded, has_shape=self.has_shape)


def bind(configuration: Configuration, decoded: ArraySpec) -> MsgPack:
    """Return the codec with the shape."""
    return _bind(configuration, decoded, has_shape=True)


def bind_msgpack(configuration: Configuration, decoded: ArraySpec) -> MsgPack:
    """Return the older codec, without the shape."""
    return _bind(configuration, decoded, has_shape=False)


def _bind(configuration: Configuration, decoded: ArraySpec, *, has_shape: bool) -> MsgPack:
    # numcodecs before 0.6 had "encoding" instead of "raw".
    fields = Fields(configuration, (*_FIELDS, "encoding"))
    return MsgPack(
        fields.boolean("use_bin_type", default=True),
        fields.boolean("use_single_float", default=False),
        fields.boolean("raw", default=False),
        has_shape,
        decoded,
    )


_FIELDS: Final = ("use_bin_type", "use_single_float", "raw")
_PACKAGE: Final = ("msgpack", "msgpack")

CODECS = (
    Record(
        id="msgpack2", kind=A2B, names={"numcodecs.msgpack2": Name(bind)}, parameters=dict.fromkeys(_FIELDS, bool),
        package=_PACKAGE, words="objects as MessagePack",
    ),
    Record(
        id="msgpack", kind=A2B, names={"numcodecs.msgpack": Name(bind_msgpack)},
        parameters=dict.fromkeys(_FIELDS, bool), package=_PACKAGE,
    ),
)  # fmt: skip
