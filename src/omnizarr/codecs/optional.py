"""optional: values that may be missing, as a mask and the values that are there.

Configuration: ``mask_codecs``, ``data_codecs``: lists of codecs, of the mask (true: there) and of the values.
Format: the sizes of the encoded mask and of the encoded values in 64 bits each (little-endian), the encoded mask, the
encoded values. The values are those that are there, in C order; if there are none, nothing is stored for them.
Agrees with zarrs, which first called it ``zarrs.optional``.

Spec: zarr-extensions, "optional" (proposal 33).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from omnizarr.codecs import chain, registry
from omnizarr.codecs.chain import Chain
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.elements import row_of
from omnizarr.codecs.record import A2B, Name, Parameters, Record
from omnizarr.codecs.streams import changed_by, limit_of, variable
from omnizarr.errors import ChunkSizeError, CodecError, OmnizarrError
from omnizarr.model import Named, datatypes
from omnizarr.model.datatypes.optional import VALID, VALUE, Optional

_SPEC: Final = "zarr-extensions, optional"
_PREFIX: Final = 8


@dataclass(frozen=True, slots=True)
class OptionalCodec:
    """A mask, then the values that are there."""

    decoded: ArraySpec
    encoded: BytesSpec
    mask: Chain
    data_codecs: tuple[Named, ...]
    inner: Chain
    """The codecs of values, if all are there."""

    def encode(self, array: AnyArray) -> Buffer:
        """Return sizes, mask and values."""
        row = row_of(array)
        mask = bytes(self.mask.encode(np.ascontiguousarray(array[VALID]).reshape(array.shape)))
        values = row[VALUE][row[VALID]]
        data = b""
        if len(values):
            data = bytes(self._chain_of(len(values)).encode(values.astype(self.inner.spec.dtype, copy=False)))
        sizes = len(mask).to_bytes(_PREFIX, "little") + len(data).to_bytes(_PREFIX, "little")
        return b"".join((sizes, mask, data))

    def decode(self, data: Buffer) -> AnyArray:
        """Return the elements. Raises ChunkSizeError."""
        view = memoryview(data)
        if len(view) < 2 * _PREFIX:
            raise ChunkSizeError("too short for the sizes of mask and values", found=f"{len(view)} bytes",
                                 expected=f"at least {2 * _PREFIX} bytes", spec=_SPEC)  # fmt: skip
        of_mask, of_data = (int.from_bytes(view[at : at + _PREFIX], "little") for at in (0, _PREFIX))
        if len(view) != 2 * _PREFIX + of_mask + of_data:
            raise ChunkSizeError("mask and values do not fill the chunk", found=f"{len(view)} bytes",
                                 expected=f"{2 * _PREFIX} + {of_mask} + {of_data} bytes", spec=_SPEC)  # fmt: skip
        start = 2 * _PREFIX + of_mask
        valid = self.mask.decode(view[2 * _PREFIX : start]).view(np.uint8) != 0
        scalars: Any = self.decoded.data_type.scalars
        elements: AnyArray = scalars.filled(self.decoded.shape)
        elements[VALID] = valid
        count = int(np.count_nonzero(valid))
        if count:
            elements[VALUE][valid] = self._chain_of(count).decode(view[start:])
        return elements

    def _chain_of(self, count: int) -> Chain:
        """Return the codecs of a number of values."""
        if (count,) == self.inner.spec.shape:
            return self.inner
        return chain.bind(self.data_codecs, replace(self.inner.spec, shape=(count,)))


def bind(configuration: Configuration, decoded: ArraySpec) -> OptionalCodec:
    """Return the codec."""
    fields = Fields(configuration, ("mask_codecs", "data_codecs"), _SPEC)
    scalars = decoded.data_type.scalars
    if not isinstance(scalars, Optional):
        raise CodecError("the codec is made for another data type", found=decoded.data_type.named.name,
                         expected="optional", spec=_SPEC)  # fmt: skip
    boolean = datatypes.bind(Named("bool"))
    mask_codecs, data_codecs = (_codecs(fields, name) for name in ("mask_codecs", "data_codecs"))
    mask_spec = replace(decoded, data_type=boolean, fill_value=np.False_)
    mask = _bind_chain(mask_codecs, mask_spec, "mask_codecs")
    value_spec = replace(
        decoded,
        shape=(math.prod(decoded.shape),),
        data_type=scalars.inner,
        fill_value=scalars.inner.default_fill_value,
    )
    inner = _bind_chain(data_codecs, value_spec, "data_codecs")
    limits = [limit_of(each.encoded) for each in (mask, inner)]
    if decoded.nbytes is None:
        encoded = changed_by(variable(decoded), 2 * _PREFIX + (limits[0] or 0))
    elif None in limits:
        encoded = BytesSpec(None, 1, None, inner.encoded.remedy)
    else:
        encoded = BytesSpec(None, 1, 2 * _PREFIX + sum(limit or 0 for limit in limits), inner.encoded.remedy)
    return OptionalCodec(decoded, encoded, mask, data_codecs, inner)


def _codecs(fields: Fields, name: str) -> tuple[Named, ...]:
    value = fields.raw(name)
    if not isinstance(value, list | tuple):
        raise fields.reject(name, "no list of codecs", value, "a list")
    return tuple(fields.codec(number, item, name) for number, item in enumerate(value))


def _bind_chain(codecs: tuple[Named, ...], spec: ArraySpec, member: str) -> Chain:
    try:
        return chain.bind(codecs, spec)
    except OmnizarrError as error:
        error.pointer = f"/configuration/{member}" + (error.pointer or "").removeprefix("/codecs")
        raise


def _words(given: Parameters) -> str:
    mask = registry.words_of_list(given.get("mask_codecs")) or ["uncompressed"]
    values = registry.words_of_list(given.get("data_codecs")) or ["uncompressed"]
    return f"values ({', then '.join(values)}) behind a mask of those that are there ({', then '.join(mask)})"


CODECS = (
    Record(
        id="optional", kind=A2B,
        names={"optional": Name(bind), "zarrs.optional": Name(bind)},
        parameters={"mask_codecs": list, "data_codecs": list}, v2="-",
        note="of the data type `optional`", words=_words, remedy="there are no optional values: write v3",
    ),
)  # fmt: skip
