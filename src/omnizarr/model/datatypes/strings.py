"""Bytes and text: raw bytes, fixed-length and variable-length strings.

Spec: Zarr v3 core, "Core data types" (``r*``); zarr-extensions ``bytes``, ``string``, ``fixed_length_utf32``;
zarr-python for the base64 of ``raw_bytes`` and ``null_terminated_bytes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnizarr.model import JSON
from omnizarr.model.datatypes.data_type import (
    AnyDType,
    OfDtype,
    bytes_from_base64,
    bytes_to_base64,
    is_blank,
    reject,
    scalar_of,
)

UTF32_BYTES = 4


@dataclass(frozen=True, slots=True)
class Raw:
    """Opaque items of a fixed number of bytes."""

    dtype: AnyDType
    as_list: bool
    """Whether it is written as a list of numbers (``r*``), not as base64 (``raw_bytes``)."""

    def default(self) -> Any:
        """Return the zero of the type."""
        return scalar_of(bytes(self.dtype.itemsize), self.dtype)

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if is_blank(value):
            return self.default()
        return self._checked(_bytes_from_json(value, at), value, at)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        data = scalar.tobytes()
        return list(data) if self.as_list else bytes_to_base64(data)

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if is_blank(value):
            return self.default()
        if isinstance(value, np.void):
            return self._checked(value.tobytes(), value, at)
        if isinstance(value, bytes | bytearray | memoryview):
            # NumPy pads them, too.
            return self._checked(bytes(value).ljust(self.dtype.itemsize, b"\0"), value, at)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        return self.from_json(value, at)

    def _checked(self, data: bytes, value: object, at: str) -> Any:
        if len(data) != self.dtype.itemsize:
            raise reject("the fill value has the wrong length", at, value, f"{self.dtype.itemsize} bytes")
        return scalar_of(data, self.dtype)


class FixedBytes(OfDtype):
    """Byte strings of at most a fixed length, padded with zero bytes."""

    __slots__ = ()

    def default(self) -> Any:
        """Return the zero of the type."""
        return np.bytes_(b"")

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        return np.bytes_(b"") if is_blank(value) else self._checked(_bytes_from_json(value, at), value, at)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return bytes_to_base64(bytes(scalar))

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if is_blank(value):
            return np.bytes_(b"")
        if isinstance(value, str):
            if not value.isascii():
                raise reject("the fill value is text that is not ASCII", at, value, "bytes")
            value = value.encode("ascii")
        if not isinstance(value, bytes | bytearray | memoryview):
            raise reject("the fill value is not a byte string", at, value, f"at most {self.dtype.itemsize} bytes")
        return self._checked(bytes(value), value, at)

    def _checked(self, data: bytes, value: object, at: str) -> Any:
        data = data.rstrip(b"\0")
        if len(data) > self.dtype.itemsize:
            raise reject("the fill value is too long", at, value, f"at most {self.dtype.itemsize} bytes")
        return np.bytes_(data)


class FixedText(OfDtype):
    """Text of at most a fixed number of code points, padded with U+0000."""

    __slots__ = ()

    def default(self) -> Any:
        """Return the zero of the type."""
        return np.str_("")

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if is_blank(value):
            return np.str_("")
        if not isinstance(value, str):
            raise reject("the fill value is not a string", at, value, "a string")
        return self.cast(value, at)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return str(scalar)

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if is_blank(value):
            return np.str_("")
        if not isinstance(value, str):
            raise reject("the fill value is not a string", at, value, "a string")
        value = value.rstrip("\0")
        room = self.dtype.itemsize // UTF32_BYTES
        if len(value) > room:
            raise reject("the fill value is too long", at, value, f"at most {room} code points")
        return np.str_(value)


class Text(OfDtype):
    """Text of any length. A scalar is a `str`."""

    __slots__ = ()

    def default(self) -> Any:
        """Return the zero of the type."""
        return ""

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        return self.cast(value, at)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return str(scalar)

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if is_blank(value):
            return ""
        if not isinstance(value, str):
            raise reject("the fill value is not a string", at, value, "a string")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise reject("the fill value has no UTF-8 form", at, ascii(value), "text without lone surrogates") from None
        return str(value)


class Bytes(OfDtype):
    """Byte strings of any length. A scalar is a `bytes`."""

    __slots__ = ()

    def element(self, item: Any) -> bytes | None:
        """Return what a user assigns to an element as `bytes`; None stays."""
        if item is not None and not isinstance(item, bytes | bytearray | memoryview):
            raise TypeError(f"{item!r:.50} is not bytes")
        return None if item is None else bytes(item)

    def default(self) -> Any:
        """Return the zero of the type."""
        return b""

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        return b"" if is_blank(value) else _bytes_from_json(value, at)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return bytes_to_base64(scalar)

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if is_blank(value):
            return b""
        if isinstance(value, str):
            return value.encode("utf-8")
        if not isinstance(value, bytes | bytearray | memoryview):
            raise reject("the fill value is not a byte string", at, value, "bytes")
        return bytes(value)


def _bytes_from_json(value: JSON, at: str) -> bytes:
    """Return the bytes for a list of numbers or base64 text."""
    if isinstance(value, str):
        return bytes_from_base64(value, at)
    if not isinstance(value, Sequence):
        raise reject("the fill value holds no bytes", at, value, "a list of integers from 0 to 255, or base64")
    for i, byte in enumerate(value):
        if isinstance(byte, bool) or not isinstance(byte, int) or not 0 <= byte <= 255:  # a byte
            raise reject("the fill value holds no bytes", f"{at}/{i}", byte, "an integer from 0 to 255")
    return bytes(value)  # type: ignore[arg-type]  # every item is an int, as just checked
