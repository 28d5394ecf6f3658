"""zfp: numbers as a zfp stream without a header; the configuration replaces the header.

Configuration: ``mode``: reversible; fixed_accuracy with ``tolerance``; fixed_rate with ``rate``; fixed_precision with
``precision``; expert with ``minbits``, ``maxbits``, ``maxprec`` and ``minexp``. Of expert streams, the package zfpy
reads all (behind a header that says the same), and writes those of another mode.
Types: int32, int64, float32, float64; int8, uint8, int16, uint16 and float16 are promoted as specified.
Agrees with zarrs. Needs the package zfpy.

Spec: zarr-extensions, "zfp".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration
from omnizarr.codecs.numbers import native_of
from omnizarr.codecs.record import A2B, Name, Record
from omnizarr.codecs.zfpy import TYPES, check_shape, compress, loss_of, padded, padded_size
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.support.lazy import Lazy

zfpy: Any = Lazy("zfpy")

_SPEC: Final = 'zarr-extensions, "zfp"'
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "reversible": (),
    "fixed_accuracy": ("tolerance",),
    "fixed_rate": ("rate",),
    "fixed_precision": ("precision",),
    "expert": ("minbits", "maxbits", "maxprec", "minexp"),
}
_HEADER: Final = 84
"""Bits of the header of a stream before its mode."""
_LONG: Final = 0xFFF
"""The first bits of a mode of 64 bits."""
_MOST_BITS: Final = 16658
"""zfp's ``ZFP_MAX_BITS``, ``ZFP_MAX_PREC`` and ``ZFP_MIN_EXP`` mean no limit."""
_MOST_PLANES: Final = 64
_LEAST_EXPONENT: Final = -1074
_PROMOTED: Final = {"int8": "i4", "uint8": "i4", "int16": "i4", "uint16": "i4", "float16": "f4"}


@dataclass(frozen=True, slots=True)
class Zfp:
    """A zfp stream without a header."""

    parameters: Mapping[str, Any]
    type: np.dtype[Any]
    """The parameters of zfp."""
    decoded: ArraySpec
    expert: tuple[int, int, int, int] | None = None
    """Those of the mode "expert"."""

    @property
    def encoded(self) -> BytesSpec:
        """Any size, but never much more than the array has."""
        return BytesSpec(None, max_nbytes=padded_size(self.decoded.shape, self.type.itemsize))

    @property
    def loss(self) -> str:
        """What the mode of zfp does not keep."""
        if self.expert is not None and not self.parameters:
            return "the parameters of the expert mode say how much stays: the error has no known bound"
        return loss_of(self.parameters)

    def encode(self, array: AnyArray) -> Buffer:
        """Return the stream. Raises CodecError for an expert mode that is not the same as another mode."""
        if self.expert is not None and not self.parameters:
            raise CodecError("the package zfpy writes no zfp stream of this expert mode",
                             pointer="/configuration/mode", found=self.expert,
                             expected="what another mode means: reversible, fixed_precision or fixed_accuracy",
                             spec=_SPEC)  # fmt: skip
        return compress(_promoted(array, self.type), self.parameters, has_header=False)

    def decode(self, data: Buffer) -> AnyArray:
        """Return the array."""
        shape = self.decoded.shape or (1,)
        if len(data) == 0 or len(data) > padded_size(shape, self.type.itemsize):
            raise ChunkSizeError("no zfp stream of this array has this size", found=f"{len(data)} bytes")
        stored = padded(data, shape, self.type.itemsize)
        try:
            if self.expert is not None:
                return self._expert(stored, shape, self.expert)
            ztype = zfpy.dtype_to_ztype(self.type)
            array = zfpy._decompress(stored, ztype, shape, **self.parameters)  # noqa: SLF001  the only way
        except (ValueError, TypeError, RuntimeError) as error:
            raise ChunkError(f"the zfp stream is broken: {error}") from error
        return _demoted(np.asarray(array), self.decoded.dtype).reshape(self.decoded.shape)

    def _expert(self, stored: bytes, shape: tuple[int, ...], expert: tuple[int, int, int, int]) -> AnyArray:
        """Decode a stream behind a header, which ends within a byte, so that all bits of the stream move."""
        minbits, maxbits, maxprec, minexp = expert
        plain = zfpy.compress_numpy(np.zeros(shape, self.type), write_header=True, precision=1)
        header = int.from_bytes(plain[:16], "little") & ((1 << _HEADER) - 1)
        mode = _LONG | (minbits - 1) << 12 | (maxbits - 1) << 27 | (maxprec - 1) << 42 | (minexp + 16495) << 49
        bits = header | mode << _HEADER | int.from_bytes(stored, "little") << (_HEADER + 64)
        array = zfpy.decompress_numpy(bits.to_bytes(len(stored) + 32, "little"))
        return _demoted(np.asarray(array), self.decoded.dtype).reshape(self.decoded.shape)


def _promoted(array: AnyArray, kind: np.dtype[Any]) -> AnyArray:
    dtype = array.dtype
    if kind.kind == "f" or dtype.itemsize == kind.itemsize:
        return array.astype(kind, copy=False)
    bits = 8 * dtype.itemsize
    middle = 1 << (bits - 1) if dtype.kind == "u" else 0
    promoted: AnyArray = (array.astype(kind) - kind.type(middle)) << (31 - bits)
    return promoted


def _demoted(array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    if array.dtype.kind == "f" or dtype.itemsize == array.dtype.itemsize:
        with np.errstate(over="ignore"):
            return array.astype(dtype, copy=False)
    bits = 8 * dtype.itemsize
    middle = 1 << (bits - 1) if dtype.kind == "u" else 0
    info = np.iinfo(dtype)
    demoted: AnyArray = np.clip((array >> (31 - bits)) + middle, info.min, info.max).astype(dtype)
    return demoted


def bind(configuration: Configuration, decoded: ArraySpec) -> Zfp:
    """Return the codec."""
    every = sorted({name for names in _PARAMETERS.values() for name in names})
    fields = Fields(configuration, ("mode", *every), _SPEC)
    mode = fields.choice("mode", {name: name for name in _PARAMETERS})
    for name in configuration:
        if name != "mode" and name not in _PARAMETERS[mode]:
            raise fields.reject(name, f"the mode {mode!r} has no {name!r}", configuration[name], "no such field")
    dtype = native_of(decoded.dtype)
    if dtype.name not in TYPES and dtype.name not in _PROMOTED:
        raise CodecError("zfp has no such elements", found=decoded.data_type.named.name,
                         expected=", ".join((*TYPES, *_PROMOTED)), spec=_SPEC)  # fmt: skip
    check_shape(decoded)
    kind = np.dtype(_PROMOTED.get(dtype.name, dtype))
    if mode == "expert":
        least, most = fields.integer("minbits", low=0, high=2**15), fields.integer("maxbits", low=1, high=2**15)
        planes = fields.integer("maxprec", low=1, high=128)
        expert = max(1, least), most, planes, fields.integer("minexp", low=-16495, high=16272)
        if expert[0] > expert[1]:
            raise fields.reject("minbits", "minbits is more than maxbits", expert[0], f"at most {expert[1]}")
        return Zfp(_same_mode(expert), kind, decoded, expert)
    parameters: dict[str, Any] = {}
    for name in _PARAMETERS[mode]:
        value = fields.integer(name, low=1, high=128) if name == "precision" else fields.number(name)
        if value < 0 or (name == "rate" and value == 0):
            raise fields.reject(name, f"{name!r} is out of range", value, "a positive number")
        parameters[name] = value
    return Zfp(parameters, kind, decoded)


def _same_mode(expert: tuple[int, int, int, int]) -> dict[str, Any]:
    """Return the parameters of another mode that mean the same as those of the expert mode; none if no mode does."""
    minbits, maxbits, maxprec, minexp = expert
    if minbits > 1 or maxbits < _MOST_BITS:
        return {}
    if minexp <= _LEAST_EXPONENT:
        return {"precision": maxprec} if minexp == _LEAST_EXPONENT else {}
    return {"tolerance": 2.0**minexp} if maxprec >= _MOST_PLANES and minexp < 1024 else {}


CODECS = (
    Record(
        id="zfp", kind=A2B, names={"zfp": Name(bind, status="registered")},
        parameters={"mode": str, "tolerance": float, "rate": float, "precision": int}, v2="-",
        package=("zfpy", "zfp"), compresses=True, is_inexact=lambda given: given.get("mode") != "reversible",
        remedy="re-encode with numcodecs.zfpy (which adds a header), or write v3",
    ),
)  # fmt: skip
