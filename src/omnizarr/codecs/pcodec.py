"""pcodec: numerical sequences as "pco" files.

Configuration: ``level`` 0 to 12 (8), ``mode_spec`` (auto, classic), ``delta_spec`` (auto, none, try_consecutive,
try_lookback), ``delta_encoding_order`` (0 to 7 or null), ``paging_spec`` (equal_pages_up_to), ``equal_pages_up_to``.
Agrees with numcodecs, for integers and floats of two to eight bytes (and of one, where the library has them).
Needs the package pcodec.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.elements import row_of
from omnizarr.codecs.record import A2B, Name, Record
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.support.lazy import Lazy

pcodec: Any = Lazy("pcodec")

_FIELDS: Final = ("level", "mode_spec", "delta_spec", "delta_encoding_order", "paging_spec", "equal_pages_up_to")
_PAGE: Final = 262144


@dataclass(frozen=True, slots=True)
class Pcodec:
    """A pco file."""

    config: Any
    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Any size, but never much more than the array has."""
        return BytesSpec(None, max_nbytes=2 * (self.decoded.nbytes or 0) + 65536)

    def encode(self, array: AnyArray) -> Buffer:
        """Return the file."""
        try:
            row = row_of(array).astype(array.dtype.newbyteorder("="), copy=False)
            packed: bytes = pcodec.standalone.simple_compress(row, self.config)
        except (ValueError, TypeError, RuntimeError) as error:
            raise CodecError(f"cannot encode: {error}") from error
        return packed

    def decode(self, data: Buffer) -> AnyArray:
        """Return the numbers."""
        size = prod(self.decoded.shape)
        # One more than needed, which shows whether there are too many.
        out = np.empty(size + 1, self.decoded.dtype.newbyteorder("="))
        try:
            progress = pcodec.standalone.simple_decompress_into(bytes(data), out)
        except BaseException as error:
            # a broken file can make the library panic, which raises an exception that is not an Exception
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise ChunkError(f"the pco file is broken: {error}") from error
        if progress.n_processed != size:
            raise ChunkSizeError("the number of elements is wrong", found=progress.n_processed, expected=size)
        return out[:size].astype(self.decoded.dtype, copy=False).reshape(self.decoded.shape)


def bind(configuration: Configuration, decoded: ArraySpec) -> Pcodec:
    """Return the codec."""
    fields = Fields(configuration, _FIELDS)
    if decoded.dtype.kind not in "iuf":
        raise CodecError("pcodec has no such elements", found=decoded.data_type.named.name, expected="int, uint, float")
    mode = fields.choice("mode_spec", {"auto": pcodec.ModeSpec.auto, "classic": pcodec.ModeSpec.classic}, "auto")
    fields.choice("paging_spec", {"equal_pages_up_to": True}, "equal_pages_up_to")
    config = pcodec.ChunkConfig(
        compression_level=fields.integer("level", 8, 0, 12),
        delta_spec=_delta(fields),
        mode_spec=mode(),
        paging_spec=pcodec.PagingSpec.equal_pages_up_to(fields.integer("equal_pages_up_to", _PAGE, 1, 2**24)),
    )
    return Pcodec(config, decoded)


def _delta(fields: Fields) -> Any:
    order = fields.integer("delta_encoding_order", None, 0, 7) if fields.has("delta_encoding_order") else None
    name = fields.choice(
        "delta_spec", {name: name for name in ("auto", "none", "try_consecutive", "try_lookback")}, "auto"
    )
    if order is not None and name in ("auto", "try_consecutive"):
        return pcodec.DeltaSpec.try_consecutive(order)
    if order is not None or name == "try_consecutive":
        raise fields.reject("delta_encoding_order", f"does not go with the 'delta_spec' {name!r}", order,
                            "an order exactly if 'delta_spec' is 'try_consecutive'")  # fmt: skip
    # "none" was called so before pcodec 1.0
    make = getattr(pcodec.DeltaSpec, name, None) or getattr(pcodec.DeltaSpec, "no_op", None)
    if make is None:
        raise CodecError("the installed pcodec cannot do this", pointer="/configuration/delta_spec", found=name)
    return make()


CODECS = (
    Record(
        id="pcodec", kind=A2B, names={"numcodecs.pcodec": Name(bind)}, parameters=dict.fromkeys(_FIELDS, object),
        package=("pcodec", "pcodec"), compresses=True, decodes_with={},
    ),
)  # fmt: skip
