"""The common base of numcodecs' array filters.

Such a filter reads the elements in C order as one row of type ``seen``, and returns a row of type ``made``. Its
configuration names both types. An array of another data type is reinterpreted as bytes of that type (datetimes
are stored with ``delta`` over ``<i8``). If item sizes differ, so do the numbers of elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from omnizarr.codecs.contract import AnyArray, ArraySpec, Description
from omnizarr.errors import ChunkError, CodecError
from omnizarr.model.datatypes import bind as bind_data_type
from omnizarr.model.datatypes import from_numpy

AnyDType = np.dtype[Any]
_NATIVE_TYPES: Final = {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"}


@dataclass(frozen=True, slots=True)
class ElementFilter:
    """A filter that consists of two functions from row to row."""

    decoded: ArraySpec
    encoded: ArraySpec
    seen: AnyDType
    made: AnyDType
    forward: Callable[[AnyArray], AnyArray]
    backward: Callable[[AnyArray], AnyArray]
    loss: str = ""
    """See `omnizarr.codecs.contract.Lossy`."""
    native: Description | None = None
    """The filter as the native engine needs it, without number and types of elements; None if the engine lacks it."""

    def describe_native(self, spec: ArraySpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        nbytes, seen, made = spec.nbytes, self.seen.str, self.made.str
        if self.native is None or nbytes is None or nbytes >= 2**63 or not {seen[1:], made[1:]} <= _NATIVE_TYPES:
            return None
        name, *parameters = self.native
        return name, nbytes // self.seen.itemsize, seen, made, *parameters

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the filtered elements."""
        try:
            with np.errstate(all="ignore"):
                row = self.forward(_view(row_of(array), self.seen)).astype(self.made, copy=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise CodecError(f"cannot encode: {error}") from error
        return row.reshape(self.encoded.shape)

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the decoded elements, as far as they can be recovered."""
        try:
            with np.errstate(all="ignore"):
                row = self.backward(_view(row_of(array), self.made)).astype(self.seen, copy=False)
            return _view(row, self.decoded.dtype).reshape(self.decoded.shape)
        except (ValueError, TypeError, OverflowError) as error:
            raise ChunkError(f"cannot decode: {error}") from error


def _view(row: AnyArray, dtype: AnyDType) -> AnyArray:
    """Return the bytes of a row as elements of another type, also if no size is a multiple of the other."""
    return row if row.dtype == dtype else row.view("u1").view(dtype)


def row_of(array: AnyArray) -> AnyArray:
    """Return the elements in C order, as a view if possible."""
    return np.ascontiguousarray(array).reshape(-1)


def filter_of(
    decoded: ArraySpec,
    seen: AnyDType,
    made: AnyDType,
    forward: Callable[[AnyArray], AnyArray],
    backward: Callable[[AnyArray], AnyArray],
    loss: str = "",
    native: Description | None = None,
) -> ElementFilter:
    """Return the filter that consists of two functions, bound to arrays like `decoded`.

    Raises CodecError if the bytes of such an array are not a whole number of `seen`.
    """
    nbytes = decoded.nbytes
    if nbytes is None or nbytes % seen.itemsize:
        raise CodecError(
            "the filter is made for another data type", found=decoded.data_type.named.name, expected=seen.str
        )
    shape = decoded.shape if seen.itemsize == decoded.dtype.itemsize else (nbytes // seen.itemsize,)
    named, order = from_numpy(made)
    data_type = bind_data_type(named, order)
    encoded = ArraySpec(shape, data_type, data_type.default_fill_value, decoded.policy)
    codec = ElementFilter(decoded, encoded, seen, made, forward, backward, loss, native)
    if seen.itemsize != decoded.dtype.itemsize:
        return codec
    one = np.full(1, decoded.fill_value, decoded.dtype)
    fill = replace(codec, encoded=replace(encoded, shape=(1,))).encode(one)[0]
    return replace(codec, encoded=replace(encoded, fill_value=fill))
