"""omnizarr.bytes_filter: a filter of arrays that follows a filter of bytes.

This occurs only in Zarr v2, where the filter reads the bytes as an array of its own dtype. No document has this name.
Configuration: ``id`` and the parameters of the numcodecs filter: ``astype``, ``delta``, ``fixedscaleoffset``,
``packbits`` or ``quantize``.
Agrees with numcodecs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omnizarr.codecs import registry
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import ArraySpec, ArrayToArray, Buffer, BytesSpec, Configuration
from omnizarr.codecs.elements import ElementFilter
from omnizarr.codecs.record import B2B, Name, Record
from omnizarr.codecs.streams import check_size
from omnizarr.errors import ChunkSizeError, CodecError
from omnizarr.model import Named
from omnizarr.model.datatypes import bind as bind_data_type

_FILTERS: Final = ("astype", "delta", "fixedscaleoffset", "packbits", "quantize")


@dataclass(frozen=True, slots=True)
class BytesFilter:
    """A filter of arrays applied to bytes."""

    bound: Callable[[int], ArrayToArray]
    """The filter for a number of bytes."""
    size_of: Callable[[Buffer], int]
    """The decoded size of encoded bytes."""
    decoded: BytesSpec
    encoded: BytesSpec

    def encode(self, data: Buffer) -> Buffer:
        """Return the bytes of the filtered array."""
        return _memory(self.bound(len(data)).encode(np.frombuffer(data, np.uint8) if len(data) else _NOTHING))

    def decode(self, data: Buffer) -> Buffer:
        """Return the bytes that were filtered."""
        size = self.size_of(data)
        check_size(size, self.decoded)
        codec = self.bound(size)
        row = np.frombuffer(data, np.uint8) if len(data) else _NOTHING
        return _memory(codec.decode(row.view(codec.encoded.dtype)))


_NOTHING: Final = np.empty(0, np.uint8)


def _memory(array: Any) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def bind(configuration: Configuration, decoded: BytesSpec) -> BytesFilter:
    """Return the codec."""
    codec_id = configuration.get("id")
    if codec_id not in _FILTERS:
        raise CodecError("the filter cannot stand behind a filter of bytes", codec=str(codec_id), found=codec_id,
                         expected=f"one of {', '.join(_FILTERS)}")  # fmt: skip
    parameters = {name: value for name, value in configuration.items() if name != "id"}
    if codec_id == "packbits":
        Fields(parameters, ())
        return _finished(_bind_to("numcodecs.packbits", parameters, "bool"), _bools, decoded)
    bound = _bind_to(f"numcodecs.{codec_id}", parameters, "uint8")
    # Zero bytes are a whole number of any elements, which is enough to learn the dtypes.
    codec = bound(0)
    if not isinstance(codec, ElementFilter):
        raise CodecError("the filter is not a filter of elements", found=codec_id)
    seen, made = codec.seen.itemsize, codec.made.itemsize

    def size_of(data: Buffer) -> int:
        if len(data) % made:
            raise ChunkSizeError(
                "no whole number of elements", found=f"{len(data)} bytes", expected=f"multiples of {made}"
            )
        return len(data) // made * seen

    return _finished(bound, size_of, decoded)


def _bind_to(name: str, parameters: Mapping[str, Any], data_type: str) -> Callable[[int], ArrayToArray]:
    kind = bind_data_type(Named(data_type))

    def bound(size: int) -> ArrayToArray:
        codec: ArrayToArray = registry.find(name)(parameters, ArraySpec((size,), kind, kind.default_fill_value))
        return codec

    return bound


def _bools(data: Buffer) -> int:
    if not len(data) > 0 or data[0] > 7 or (len(data) == 1 and data[0]):
        raise ChunkSizeError("too short for packed bits", found=f"{len(data)} bytes")
    return 8 * (len(data) - 1) - data[0]


def _finished(
    bound: Callable[[int], ArrayToArray], size_of: Callable[[Buffer], int], decoded: BytesSpec
) -> BytesFilter:
    sizes = [None if n is None else bound(n).encoded.nbytes for n in (decoded.nbytes,)]
    # At most one element of the largest type for each byte.
    return BytesFilter(bound, size_of, decoded, BytesSpec(sizes[0]))


# no document has this name
CODECS = (Record(id="omnizarr.bytes_filter", kind=B2B, names={"omnizarr.bytes_filter": Name(bind)}),)
