"""bitround: numbers rounded to a number of bits, so that they compress better. Decoding does nothing.

Configuration: ``keepbits``: bits of the mantissa that stay; of integers (not with numcodecs), bits that stay from the
highest set one on. At least 1 (numcodecs: 0).
Agrees with numcodecs and zarrs: ties go to the even neighbour, integers saturate, negative ones are rounded
as the unsigned integers of the same bits. NaNs do not change.

Spec: zarr-extensions, "bitround".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Configuration, Description
from omnizarr.codecs.numbers import native_of
from omnizarr.codecs.record import A2A, MOST, Name, Record, brief
from omnizarr.errors import CodecError

_MANTISSA: Final = {"float16": 10, "float32": 23, "float64": 52, "bfloat16": 7}
_PARTS: Final = {"complex64": "f4", "complex128": "f8", "complex32": "f2"}
_SPEC: Final = 'zarr-extensions, "bitround"'


@dataclass(frozen=True, slots=True)
class BitRound:
    """Rounding to a number of bits."""

    keepbits: int
    part: np.dtype[Any]
    """Type of the elements, or of their real and imaginary parts, in the machine's byte order."""
    mantissa: int | None
    """Bits of the mantissa; None for integers."""
    encoded: ArraySpec

    @property
    def loss(self) -> str:
        """The bits that are rounded away."""
        if self.mantissa is None:
            bits = 8 * self.part.itemsize
            text = f"{self.keepbits} bits stay: relative error at most 2^-{self.keepbits}"
            return "" if self.keepbits >= bits else text
        if self.keepbits >= self.mantissa:
            return ""
        return f"{self.keepbits} of {self.mantissa} mantissa bits stay: relative error at most 2^-{self.keepbits + 1}"

    def describe_native(self, spec: ArraySpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        nbytes, width = spec.nbytes, self.part.itemsize
        if nbytes is None or nbytes >= 2**63 or self.keepbits > 64:
            return None
        return "bitround", nbytes // width, width, not spec.dtype.isnative, self.mantissa or 0, self.keepbits

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the rounded numbers."""
        native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
        words = native.reshape(-1).view(f"u{self.part.itemsize}")
        if self.mantissa is None:
            rounded = _round(words, _lengths(words).astype(np.int64) - self.keepbits)
        elif self.keepbits >= self.mantissa:
            return array
        else:
            rounded = _round(words, np.int64(self.mantissa - self.keepbits))
            is_nan = np.isnan(native.reshape(-1).view(self.part))
            rounded[is_nan] = words[is_nan]
        return rounded.view(native.dtype).reshape(array.shape).astype(array.dtype, copy=False)

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the array unchanged."""
        return array


def _round(words: NDArray[Any], dropped: Any) -> NDArray[Any]:
    """Return unsigned integers with the `dropped` lowest bits rounded away."""
    kind = words.dtype.type
    drop = np.maximum(dropped, 0).astype(words.dtype)
    half = (kind(1) << np.maximum(drop, kind(1)) - kind(1)) - kind(1)
    added = words + ((words >> drop & kind(1)) + half)
    added[added < words] = np.iinfo(words.dtype).max
    rounded: NDArray[Any] = np.where(drop > 0, added >> drop << drop, words)
    return rounded


def _lengths(words: NDArray[Any]) -> NDArray[Any]:
    """Return the number of bits up to the highest set one."""
    smeared = words.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < words.dtype.itemsize * 8:
            smeared |= smeared >> words.dtype.type(shift)
    lengths: NDArray[Any] = np.bitwise_count(smeared)
    return lengths


def bind(configuration: Configuration, decoded: ArraySpec) -> BitRound:
    """Return the codec of zarr-extensions."""
    keepbits = Fields(configuration, ("keepbits",), _SPEC).integer("keepbits", low=1)
    dtype = native_of(decoded.dtype)
    if dtype.kind in "iumM":
        return BitRound(keepbits, dtype, None, decoded)
    part = np.dtype(_PARTS[dtype.name]) if dtype.name in _PARTS else dtype
    if part.name not in _MANTISSA:
        raise _unfit(decoded, "a floating-point, complex, integer or time type")
    return BitRound(keepbits, part, _MANTISSA[part.name], decoded)


def bind_numcodecs(configuration: Configuration, decoded: ArraySpec) -> BitRound:
    """Return the codec of numcodecs."""
    fields = Fields(configuration, ("keepbits",))
    dtype = native_of(decoded.dtype)
    if dtype.kind != "f" or dtype.name not in _MANTISSA:
        raise _unfit(decoded, "float16, float32 or float64")
    mantissa = _MANTISSA[dtype.name]
    return BitRound(fields.integer("keepbits", low=0, high=mantissa), dtype, mantissa, decoded)


def _unfit(decoded: ArraySpec, expected: str) -> CodecError:
    return CodecError(
        "elements of this type cannot be rounded", found=decoded.data_type.named.name, expected=expected, spec=_SPEC
    )


CODECS = (
    Record(
        id="bitround", kind=A2A,
        names={"bitround": Name(bind, status="registered"), "numcodecs.bitround": Name(bind_numcodecs, MOST)},
        parameters={"keepbits": int}, note="loses bits when encoding", native=True,
        words=lambda given: f"rounded to {brief(given.get('keepbits', '?'))} bits of mantissa",
    ),
)  # fmt: skip
