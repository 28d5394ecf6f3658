"""Datatypes and dataspaces of HDF5.

Spec: HDF5 File Format Specification, IV.A.2.b "The Dataspace Message", IV.A.2.d "The Datatype Message".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from omnizarr.readers.hdf5 import messages
from omnizarr.readers.hdf5.source import Cursor, decode

Kind: TypeAlias = Literal[
    "integer",
    "float",
    "time",
    "string",
    "bitfield",
    "opaque",
    "compound",
    "reference",
    "enum",
    "vlen",
    "array",
    "complex",
]

_KINDS: Final[tuple[Kind, ...]] = (
    *("integer", "float", "time", "string", "bitfield", "opaque", "compound", "reference", "enum", "vlen", "array"),
    "complex",
)
_DEPTH: Final = 32  # datatypes within datatypes
_RANK: Final = 32
_UNLIMITED: Final = (1 << 64) - 1
_WIDEST_NUMBER: Final = 8  # bytes of a number whose bits the reader moves

# size, position and bits of exponent, position and bits of mantissa, bias
_FLOATS: Final = {
    (2, 10, 5, 0, 10, 15): "f2",
    (4, 23, 8, 0, 23, 127): "f4",
    (8, 52, 11, 0, 52, 1023): "f8",
}
_ORDERS: Final[dict[int, Literal["<", ">"]]] = {0: "<", 1: ">"}
_OTHER_FLOATS: Final = {
    (2, 7, 8, 0, 7, 127): "bfloat16",
    (1, 3, 4, 0, 3, 7): "float8_e4m3",
    (1, 2, 5, 0, 2, 15): "float8_e5m2",
}


class Bits(NamedTuple):
    """Where the bits of a number are in its bytes, counted from the least significant.

    Attributes
    ----------
    order : {"<", ">"}
    offset, precision : int
        The first bit that belongs to the number, and how many do.
    is_signed : bool
        Of integers.
    sign, exponent, exponent_bits, mantissa, mantissa_bits, bias : int
        Of floats; the positions count from bit 0 of the bytes.
    is_implied : bool
        Of floats: whether the highest bit of the mantissa is not stored.
    """

    order: Literal["<", ">"]
    offset: int
    precision: int
    is_signed: bool = False
    sign: int = 0
    exponent: int = 0
    exponent_bits: int = 0
    mantissa: int = 0
    mantissa_bits: int = 0
    bias: int = 0
    is_implied: bool = True

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The NumPy type that has all such numbers; None if none has."""
        if self.exponent_bits:
            most = (1 << self.exponent_bits) - 2 - self.bias
            for code, exponent, mantissa in (("f4", 127, 23), ("f8", 1023, 52)):
                if self.bias <= exponent and most <= exponent and self.mantissa_bits <= mantissa:
                    return np.dtype(code)
            return None
        size = next((each for each in (1, 2, 4, 8) if self.precision <= 8 * each), 0)
        return np.dtype(f"{'i' if self.is_signed else 'u'}{size}") if size else None


@dataclass(frozen=True, slots=True)
class Datatype:
    """A datatype.

    Attributes
    ----------
    kind : str
    size : int
        Bytes of an element.
    code : str
        The type in NumPy, if NumPy has these bytes as a number or as bytes; otherwise "".
    name : str
        A name for people: "float80", "time".
    base : Datatype or None
        Of enumerations, arrays, complex numbers and values of variable length: the type of what they are made of.
    fields : tuple of (str, int, Datatype)
        Of compounds: name, offset and type of each member.
    labels : dict of str to int
        Of enumerations.
    shape : tuple of int
        Of arrays.
    is_text : bool
        Of values of variable length: whether they are texts.
    is_utf8 : bool
        Of texts.
    padding : int
        Of texts: 0 if a NUL ends them, 1 if NULs fill them, 2 if spaces do.
    bits : Bits or None
        Of numbers that NumPy does not have: where their bits are.
    """

    kind: Kind
    size: int
    code: str = ""
    name: str = ""
    base: Datatype | None = None
    fields: tuple[tuple[str, int, Datatype], ...] = ()
    labels: dict[str, int] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    is_text: bool = False
    is_utf8: bool = False
    padding: int = 0
    bits: Bits | None = None

    @property
    def is_bool(self) -> bool:
        """Whether it is an enumeration of FALSE and TRUE in one byte, as h5py writes booleans."""
        return self.kind == "enum" and self.size == 1 and self.labels == {"FALSE": 0, "TRUE": 1}

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex number: of HDF5 2, or a compound of r and i, as h5py writes them."""
        return self.complex_code() != ""

    def complex_code(self) -> str:
        """Return the type in NumPy of a complex number; "" if it is none."""
        part = None
        if self.kind == "complex" and self.base is not None:
            part = self.base
        elif self.kind == "compound" and [each[0] for each in self.fields] == ["r", "i"]:
            (_, first, part), (_, second, other) = self.fields
            if part != other or first or second != part.size or self.size != 2 * part.size:
                return ""
        if part is None or part.kind != "float" or part.size not in {4, 8} or not part.code:
            return ""
        return f"{part.code[0]}c{2 * part.size}"

    def dtype(self) -> np.dtype[np.generic] | None:
        """Return the NumPy type of the stored bytes; None if there is none, as for values in heaps."""
        if self.is_bool:
            return np.dtype("?")
        if code := self.complex_code():
            return np.dtype(code)
        if self.kind in {"enum", "complex"} and self.base is not None:
            return None if self.kind == "complex" else self.base.dtype()
        if self.kind == "array" and self.base is not None:
            inner = self.base.dtype()
            return None if inner is None else np.dtype((inner, self.shape))
        if self.kind == "compound":
            types = [each.dtype() for _, _, each in self.fields]
            if not types or any(each is None for each in types):
                return None
            return np.dtype(
                {
                    "names": [name for name, _, _ in self.fields],
                    "formats": types,
                    "offsets": [offset for _, offset, _ in self.fields],
                    "itemsize": self.size,
                }
            )
        return np.dtype(self.code) if self.code else None

    def title(self) -> str:
        """Return what it is, for people."""
        return self.name or self.code or self.kind


@dataclass(frozen=True, slots=True)
class Dataspace:
    """A shape; that of a null dataspace is None.

    Attributes
    ----------
    shape : tuple of int or None
    most : tuple of (int or None)
        The largest shape that it may grow to; None: without a limit.
    """

    shape: tuple[int, ...] | None
    most: tuple[int | None, ...] = ()

    @property
    def count(self) -> int:
        """The number of elements."""
        return 0 if self.shape is None else prod(self.shape)


def dataspace(cursor: Cursor) -> Dataspace:
    """Return the dataspace of a message."""
    return cursor.source.parsed(cursor, _dataspace)


def _dataspace(cursor: Cursor) -> Dataspace:
    version = cursor.version("the dataspace", 1, 2)
    rank, flags = cursor.uint(1), cursor.uint(1)
    if version == 1:
        cursor.skip(5)
    elif cursor.uint(1) == 2:
        return Dataspace(None)
    if rank > _RANK:
        cursor.fail("the dataspace has too many dimensions", found=rank, expected=f"{_RANK} at most")
    shape = tuple(cursor.length() for _ in range(rank))
    most: tuple[int | None, ...] = shape
    if flags & 1:
        limit = (1 << 8 * cursor.source.length_size) - 1
        lengths = [cursor.length() for _ in range(rank)]
        most = tuple(None if each == limit else each for each in lengths)
    if any(each >> 63 for each in shape):
        cursor.fail("the lengths of the dataspace are not valid", found=shape)
    return Dataspace(shape, most)


def datatype(cursor: Cursor) -> Datatype:
    """Return the datatype that begins at a cursor, which it moves to the end of the datatype."""
    return cursor.source.parsed(cursor, _outermost)


def _outermost(cursor: Cursor) -> Datatype:
    return _datatype(cursor, 0)


def shared_datatype(cursor: Cursor) -> Datatype:
    """Return the datatype to which a cursor over a shared message leads."""
    return datatype(Cursor(cursor.source, cursor.address, messages.shared_data(cursor, messages.DATATYPE)))


def _datatype(cursor: Cursor, depth: int) -> Datatype:
    if depth > _DEPTH:
        cursor.fail("datatypes lie too deep within each other")
    first, bits, size = cursor.uint(1), cursor.uint(3), cursor.uint(4)
    version, number = first >> 4, first & 15
    if number >= len(_KINDS) or not 1 <= version <= 5:
        cursor.at -= 8
        cursor.fail("the class of the datatype is unknown", found=f"class {number} of version {version}")
    kind = _KINDS[number]
    if not size and kind != "string":
        cursor.fail("a datatype has no size")
    if kind in {"integer", "bitfield"}:
        return _integer(cursor, kind, bits, size)
    if kind == "time":
        cursor.skip(2)
        return Datatype(kind, size, name="time")
    if kind == "string":
        return Datatype(kind, size, f"S{size}", is_utf8=bits >> 4 & 15 == 1, padding=bits & 15)
    if kind == "opaque":
        return Datatype(kind, size, f"V{size}", name=decode(cursor.take(bits & 255).split(b"\0")[0]))
    if kind == "reference":
        return Datatype(kind, size, name=_reference(bits))
    return _composed(cursor, kind, version, bits, size, depth)


def _composed(cursor: Cursor, kind: Kind, version: int, bits: int, size: int, depth: int) -> Datatype:
    if kind == "float":
        return _float(cursor, bits, size)
    if kind == "compound":
        return _compound(cursor, version, bits & 0xFFFF, size, depth)
    if kind == "enum":
        return _enum(cursor, version, bits & 0xFFFF, size, depth)
    if kind == "array":
        return _array(cursor, version, size, depth)
    base = _datatype(cursor, depth + 1)
    if kind == "vlen":
        is_text = bits & 15 == 1
        return Datatype(kind, size, base=base, is_text=is_text, is_utf8=bits >> 8 & 15 == 1, padding=bits >> 4 & 15)
    return Datatype(kind, size, base=base)


def _reference(bits: int) -> str:
    names = ("object reference", "region reference", "object reference", "region reference", "attribute reference")
    return names[min(bits & 15, 4)] + (" of HDF5 1.12" if bits & 15 > 1 else "")


def _integer(cursor: Cursor, kind: Kind, bits: int, size: int) -> Datatype:
    order: Literal["<", ">"] = ">" if bits & 1 else "<"
    is_signed = kind == "integer" and bool(bits & 8)
    offset, precision = cursor.uint(2), cursor.uint(2)
    letter = "i" if is_signed else "u"
    if size in {1, 2, 4, 8} and not offset and precision == 8 * size:
        return Datatype(kind, size, f"{order if size > 1 else '|'}{letter}{size}")
    sign = "signed" if is_signed else "unsigned"
    fits = size <= _WIDEST_NUMBER and 0 < precision <= 8 * size - offset
    return Datatype(
        kind,
        size,
        name=f"{sign} integer of {precision} bits from bit {offset} of {size} bytes",
        bits=Bits(order, offset, precision, is_signed) if fits else None,
    )


def _float(cursor: Cursor, bits: int, size: int) -> Datatype:
    order: Literal["<", ">"] | None = _ORDERS.get(bits & 0x41)
    sign = bits >> 8 & 255
    offset, precision = cursor.uint(2), cursor.uint(2)
    exponent, exponent_bits, mantissa, mantissa_bits = (cursor.uint(1) for _ in range(4))
    form = (size, exponent, exponent_bits, mantissa, mantissa_bits, cursor.uint(4))
    is_whole = not offset and precision == 8 * size and sign == 8 * size - 1 and bits >> 4 & 3 == 2
    if is_whole and order is not None and (code := _FLOATS.get(form)):
        return Datatype("float", size, order + code)
    name = _OTHER_FLOATS.get(form, "") if is_whole else ""
    if name and order == ">" and size > 1:
        name = f"big-endian {name}"
    name = name or f"float of {precision} bits in {size} bytes"
    has_bits = (
        size <= _WIDEST_NUMBER
        and bits >> 4 & 3 in {0, 2}
        and 0 < exponent_bits <= 8 * size - exponent
        and 0 < mantissa_bits <= 8 * size - mantissa
        and sign < 8 * size
    )
    if not has_bits or order is None:
        return Datatype("float", size, name=name)
    is_implied = bits >> 4 & 3 == 2
    places = Bits(order, offset, precision, sign=sign, is_implied=is_implied)
    places = places._replace(exponent=exponent, exponent_bits=exponent_bits, bias=form[-1])
    places = places._replace(mantissa=mantissa, mantissa_bits=mantissa_bits)
    return Datatype("float", size, name=name, bits=places)


def _compound(cursor: Cursor, version: int, count: int, size: int, depth: int) -> Datatype:
    fields = []
    for _ in range(count):
        start = cursor.at
        name = decode(cursor.text())
        if version < 3:
            cursor.align(start)
        offset = cursor.uint(4 if version < 3 else (size.bit_length() + 7) // 8)
        shape: tuple[int, ...] = ()
        if version == 1:
            rank = cursor.uint(1)
            cursor.skip(3 + 4 + 4)
            lengths = [cursor.uint(4) for _ in range(4)]
            shape = tuple(lengths[: min(rank, 4)])
        member = _datatype(cursor, depth + 1)
        if shape:
            member = Datatype("array", member.size * prod(shape), base=member, shape=shape)
        if offset + member.size > size:
            cursor.fail("a member of a compound datatype lies outside of it", found=name)
        fields.append((name, offset, member))
    if len({name for name, _, _ in fields}) != count:
        cursor.fail("two members of a compound datatype have one name")
    return Datatype("compound", size, fields=tuple(fields))


def _enum(cursor: Cursor, version: int, count: int, size: int, depth: int) -> Datatype:
    base = _datatype(cursor, depth + 1)
    names = []
    for _ in range(count):
        start = cursor.at
        names.append(decode(cursor.text()))
        if version < 3:
            cursor.align(start)
    if base.size != size:
        cursor.fail("an enumeration has another size than its numbers", found=size, expected=base.size)
    is_signed, order = base.code[1:2] == "i", "big" if base.code[:1] == ">" else "little"
    values = [int.from_bytes(cursor.take(size), order, signed=is_signed) for _ in names]  # type: ignore[arg-type]
    labels = dict(zip(names, values, strict=True))
    return Datatype("enum", size, base.code, base.name, base=base, labels=labels, bits=base.bits)


def _array(cursor: Cursor, version: int, size: int, depth: int) -> Datatype:
    rank = cursor.uint(1)
    if rank > _RANK:
        cursor.fail("an array datatype has too many dimensions", found=rank)
    if version < 3:
        cursor.skip(3)
    shape = tuple(cursor.uint(4) for _ in range(rank))
    if version < 3:
        cursor.skip(4 * rank)
    base = _datatype(cursor, depth + 1)
    if base.size * prod(shape) != size:
        cursor.fail("the size of an array datatype is wrong", found=size, expected=base.size * prod(shape))
    return Datatype("array", size, base=base, shape=shape)
