"""The bytes of elements in a digest: the same for equal elements, whatever they are stored as.

The manual ("Digests") has the same in a table. All numbers are little-endian. Equal are elements as
`omnizarr.tools.streaming.equality.unequal` says: so each NaN becomes the same one, and -0.0 becomes 0.0.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from omnizarr.codecs.contract import AnyArray
from omnizarr.errors import NotRepresentableError
from omnizarr.model import thawed
from omnizarr.tools.streaming.equality import is_complex, is_small

_LENGTH: Final = struct.Struct("<Q")


def canonical_json(value: Any) -> bytes:
    """Return JSON as digests have it: sorted names, no spaces, UTF-8.

    >>> canonical_json({"b": [1, 2.0], "a": "ü"}).decode()
    '{"a":"ü","b":[1,2.0]}'
    """
    text = json.dumps(thawed(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def serialized(values: AnyArray) -> Any:
    """Return the bytes of elements in C order, one after the other.

    Raises NotRepresentableError for objects that are not JSON.
    """
    dtype = values.dtype
    if dtype.kind == "T":
        return b"".join(_with_length(text.encode("utf-8", "surrogatepass")) for text in values.reshape(-1).tolist())
    if dtype.hasobject:
        return b"".join(map(_of_object, values.reshape(-1).tolist()))
    return _plain(values)


def _plain(values: AnyArray) -> Any:
    """Return elements of a fixed size as a contiguous array of their bytes."""
    dtype = values.dtype
    if dtype.names is not None and dtype.fields is not None:
        rows = [_rows(values[name], values.ndim) for name in dtype.names]
        return np.concatenate(rows, axis=1) if rows else b""
    if dtype.kind in "fc" or (is_small(dtype) and dtype.kind not in "iu"):
        return _octets(_as_numbers(values))
    if is_small(dtype):
        return _octets(values)
    return _octets(np.ascontiguousarray(values, dtype.newbyteorder("<")))


def _as_numbers(values: AnyArray) -> AnyArray:
    """Return floats, or complex numbers, with one NaN and one zero."""
    if is_complex(values.dtype):
        parts = np.stack([values.real, values.imag], axis=-1)
        return _as_numbers(parts)
    if is_small(values.dtype):
        found = np.array(values, order="C")
        is_integral = "int" in values.dtype.name
        if not is_integral:
            _settle(found)
        return found
    found = np.empty(values.shape, values.dtype.newbyteorder("<"))
    with np.errstate(invalid="ignore"):
        np.add(values, 0.0, out=found)  # which turns -0.0 into 0.0
    is_nan = np.isnan(found)
    if is_nan.any():
        found[is_nan] = np.nan
    return found


def _settle(values: AnyArray) -> None:
    """Make all NaN of a small type one, and all zeros."""
    is_nan = values != values  # noqa: PLR0124 - NaN alone differs from itself
    if is_nan.any():
        values[is_nan] = np.array(np.nan).astype(values.dtype)
    is_zero = values == 0
    if is_zero.any():
        values[is_zero] = np.array(0.0).astype(values.dtype)


def _octets(values: AnyArray) -> AnyArray:
    if not values.dtype.itemsize:
        return np.empty(0, np.uint8)
    return values.reshape(-1).view(np.uint8)


def _rows(values: AnyArray, ndim: int) -> AnyArray:
    """Return the bytes of a field: a row for each element."""
    count = int(np.prod(values.shape[:ndim], dtype=np.int64))
    return np.asarray(_plain(values), np.uint8).reshape(count, -1)


def _with_length(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _of_object(value: Any) -> bytes:
    if isinstance(value, str):
        return _with_length(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes | bytearray | memoryview):
        return _with_length(bytes(value))
    if isinstance(value, np.ndarray):
        return _LENGTH.pack(value.size) + bytes(serialized(value))
    if value is None or isinstance(value, bool | int | float | list | tuple | Mapping):
        try:
            return _with_length(canonical_json(value))
        except (TypeError, ValueError) as error:
            raise _unknown(value) from error
    raise _unknown(value)


def _unknown(value: Any) -> NotRepresentableError:
    return NotRepresentableError(
        "an object has no digest, as it is neither text, bytes, an array nor JSON", found=type(value).__name__
    )
