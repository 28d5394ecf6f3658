"""Common properties of data types, for ``isinstance`` and ``issubclass`` with the classes here."""

from __future__ import annotations

from abc import ABCMeta
from typing import Final

from omnizarr_as_zarr.core.dtype._classes import (
    Complex64,
    Complex128,
    DateTime64,
    FixedLengthUTF32,
    Float16,
    Float32,
    Float64,
    Int16,
    Int32,
    Int64,
    NullTerminatedBytes,
    RawBytes,
    TimeDelta64,
    UInt16,
    UInt32,
    UInt64,
    VariableLengthBytes,
    VariableLengthUTF8,
    ZDType,
    data_type_registry,
)

ENDIANNESS_STR: Final = ("little", "big")


class HasLength(metaclass=ABCMeta):  # noqa: B024 - told by `register`
    """Elements have a length that is part of the type."""


class HasEndianness(metaclass=ABCMeta):  # noqa: B024 - told by `register`
    """The bytes of an element have an order."""


class HasItemSize(metaclass=ABCMeta):  # noqa: B024 - told by `register`
    """All elements take the same number of bytes."""


class HasObjectCodec(metaclass=ABCMeta):  # noqa: B024 - told by `register`
    """Zarr v2 stores elements by a codec for objects."""


def _register() -> None:
    of_length: tuple[type[ZDType], ...] = (FixedLengthUTF32, NullTerminatedBytes, RawBytes)
    ordered: tuple[type[ZDType], ...] = (
        *(Int16, Int32, Int64, UInt16, UInt32, UInt64, Float16, Float32, Float64, Complex64, Complex128),
        *(DateTime64, TimeDelta64, FixedLengthUTF32),
    )
    varying: tuple[type[ZDType], ...] = (VariableLengthBytes, VariableLengthUTF8)
    sized = [kind for kind in data_type_registry.contents.values() if kind not in varying]
    for trait, kinds in (
        (HasLength, of_length),
        (HasEndianness, ordered),
        (HasObjectCodec, varying),
        (HasItemSize, sized),
    ):
        for kind in kinds:
            trait.register(kind)


_register()
