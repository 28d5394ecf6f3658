"""The `bytes` codec: array to bytes. The elements in C order, each in the configured byte order.

Names: v3 `bytes`, and `endian` in documents of 2022 and 2023. Configuration: ``endian`` is "little" or "big";
it may be absent for types of single bytes. If it is absent for other types, the data is little-endian, as in
zarr-python.

Fields of a record with their own byte order keep it. Any byte except 0 is true. Agrees with: zarr-python,
TensorStore, zarrs.

Spec: Zarr v3, "Bytes codec"; zarr-extensions for the layout of each data type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from omnizarr.codecs import spans
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration, Description, Reading
from omnizarr.codecs.record import A2B, ALL, Name, Record
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from omnizarr.model.datatypes.data_type import AnyDType

_SPEC = 'Zarr v3, "Bytes codec"'
_ORDERS: Final[dict[str, Literal["<", ">"]]] = {"little": "<", "big": ">"}
# Chunks up to this size are fetched whole: finding out what to omit takes longer.
_SMALL = 64 * 1024
# Offsets are counted in int64.
_LARGEST = 2**63 - 1
_LAST_CODE_POINT = 0x10FFFF
# Records with more fields that need conversion are left to NumPy.
_MOST_FIXES = 64
_DTYPES_OF = ("numpy", "ml_dtypes")
# Types of ml_dtypes that use only some bits of a byte, and give wrong results if the unused bits are set.
_LOW_BITS = {"float4_e2m1fn": 0x0F, "float6_e2m3fn": 0x3F, "float6_e3m2fn": 0x3F}


@dataclass(frozen=True, slots=True)
class Bytes:
    """The memory of an array, in a stated byte order.

    Attributes
    ----------
    decoded : ArraySpec
    stored : numpy.dtype
        Data type of the stored elements.
    carrier : numpy.dtype
        Data type of the elements in memory, with types whose bytes NumPy can swap.
    nbytes : int
        Size of the stored chunk.
    is_plain : bool
        Whether any bytes of the right size are valid memory of the decoded array.
    """

    decoded: ArraySpec
    stored: AnyDType
    carrier: AnyDType
    nbytes: int
    is_plain: bool

    @property
    def encoded(self) -> BytesSpec:
        """The exact size of the chunk and of an element."""
        return BytesSpec(self.nbytes, max(1, self.stored.itemsize), self.nbytes)

    def describe_native(self, _spec: ArraySpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        fixes: list[Description] = []
        for fix in _fixes(self.decoded.dtype, self.stored, 0):
            if fix is None or len(fixes) == _MOST_FIXES:
                return None
            fixes.append(fix)
        size = self.decoded.dtype.itemsize
        return ("bytes", size, tuple(fixes)) if size else None

    def encode(self, array: AnyArray) -> Buffer:
        """Return the bytes of `array`: a view of its memory if it has the right order already."""
        if array.shape != self.decoded.shape:
            raise CodecError("the array has the wrong shape", found=array.shape, expected=self.decoded.shape)
        if self.nbytes == 0:
            return b""
        if array.dtype != self.decoded.dtype:
            array = array.astype(self.decoded.dtype)
        array = np.ascontiguousarray(array)
        if self.carrier != self.decoded.dtype:
            array = array.view(self.carrier)
        if self.stored != self.carrier:
            array = array.astype(self.stored)
        return array.reshape(-1).view(np.uint8).data

    def decode(self, data: Buffer) -> AnyArray:
        """Return the array: a view of `data` if it has the right order already.

        Raises
        ------
        ChunkSizeError
            If `data` has another size than the array.
        ChunkError
            If text contains numbers that are not Unicode code points.
        """
        if len(data) != self.nbytes:
            raise _wrong_size(len(data), self.nbytes)
        return self._from_stored(self._view(data))

    def reading(self, selection: tuple[Any, ...], out: AnyArray, *, is_pinned: bool = False) -> Reading:
        """Set ``out[...] = decoded[selection]``, and request only the needed runs of bytes.

        Returns False if nothing is stored. A wrong chunk size is detected if the source knows the size, or if the
        chunk ends before all requested runs.
        """
        wanted = None if self.nbytes <= _SMALL else self._spans_of(selection)
        if wanted is None:
            return (yield from self._reading_all(selection, out))
        values = yield wanted
        if values is None:
            return False
        size = getattr(values, "size", None)
        if size is not None and size != self.nbytes:
            raise _wrong_size(size, self.nbytes)
        if any(len(value) != stop - start for (start, stop), value in zip(wanted, values, strict=True)):
            # Reading all of it shows how short it is.
            return (yield from self._reading_all(selection, out))
        # Untouched memory is never allocated: only the fetched runs take memory.
        chunk = np.empty(self.nbytes, np.uint8)
        for (start, stop), value in zip(wanted, values, strict=True):
            chunk[start:stop] = np.frombuffer(value, np.uint8)
        out[...] = self._from_stored(self._view(chunk.data)[selection])
        return True

    def _reading_all(self, selection: tuple[Any, ...], out: AnyArray) -> Reading:
        values = yield None
        if values is None:
            return False
        if len(values[0]) != self.nbytes:
            raise _wrong_size(len(values[0]), self.nbytes)
        out[...] = self._from_stored(self._view(values[0])[selection])
        return True

    def _view(self, data: Buffer) -> AnyArray:
        """Return the stored chunk as an array."""
        if self.nbytes == 0:
            return np.zeros(self.decoded.shape, self.stored)
        return np.ndarray(self.decoded.shape, self.stored, data)

    def _from_stored(self, array: AnyArray) -> AnyArray:
        """Return stored elements in their form in memory."""
        if self.stored != self.carrier:
            array = np.asarray(array).astype(self.carrier)
        if self.carrier != self.decoded.dtype:
            array = array.view(self.decoded.dtype)
        return array if self.is_plain else _valid(array)

    def _spans_of(self, selection: tuple[Any, ...]) -> Sequence[tuple[int, int]] | None:
        """Return the runs of bytes for the selection, or None if the whole chunk should be fetched."""
        if self.nbytes > _LARGEST:
            return None
        runs = spans.of_selection(selection, self.decoded.shape, self.stored.itemsize)
        return runs if 0 < spans.size_of(runs) <= self.nbytes // 2 else None


def _fixes(decoded: AnyDType, stored: AnyDType, offset: int) -> Iterator[Description | None]:
    """Yield the conversions of a stored element, besides copying; None if they cannot be described."""
    if decoded.itemsize != stored.itemsize:
        yield None
    elif decoded.fields is not None and decoded.names is not None:
        if stored.fields is None or stored.names != decoded.names:
            yield None
            return
        for name in decoded.names:
            (field, at), (stored_field, stored_at) = decoded.fields[name][:2], stored.fields[name][:2]
            if at != stored_at:
                yield None
            yield from _fixes(field, stored_field, offset + at)
    elif decoded.subdtype is not None:
        base, stored_base = decoded.base, stored.base
        count = decoded.itemsize // base.itemsize if base.itemsize else 0
        if base.fields is None:
            yield from _leaf_fixes(base, stored_base, offset, count)
            return
        for number in range(count):
            yield from _fixes(base, stored_base, offset + number * base.itemsize)
    else:
        yield from _leaf_fixes(decoded, stored, offset, 1)


def _leaf_fixes(decoded: AnyDType, stored: AnyDType, offset: int, count: int) -> Iterator[Description | None]:
    """Yield the same for `count` adjacent values that are not records."""
    kind, size = decoded.kind, decoded.itemsize
    is_foreign = decoded.type.__module__ not in _DTYPES_OF
    if is_foreign or kind in "OT" or (kind in "fc" and size > (8 if kind == "f" else 16)):
        yield None
    if stored.names is not None:  # the two parts of a complex number of ml_dtypes
        parts, differs = 2, not stored[0].isnative
    else:
        parts = 2 if kind == "c" else size // 4 if kind == "U" else 1
        differs = size > 1 and stored.isnative != decoded.isnative
    if differs:
        yield "swap", offset, size // parts, parts * count
    if kind == "b":
        yield "bool", offset, count
    elif kind == "U":
        yield "text", offset, parts * count, not decoded.isnative
    elif decoded.name in _LOW_BITS:
        yield "mask", offset, count, _LOW_BITS[decoded.name]


def bind(configuration: Configuration, decoded: ArraySpec) -> Bytes:
    """Return the codec for arrays like `decoded`.

    Raises
    ------
    MetadataError
        If ``endian`` is neither "little" nor "big", or the configuration has other members.
    CodecError
        If the elements have no fixed size.

    Examples
    --------
    >>> from omnizarr.model import datatypes
    >>> codec = bind({"endian": "big"}, ArraySpec((2,), datatypes.parse("uint16"), np.uint16(0)))
    >>> codec.encode(np.array([1, 2], "u2")).hex()
    '00010002'
    """
    fields = Fields(configuration, ("endian",), _SPEC)
    # zarr-python omits it, or writes null, to mean little-endian.
    order = fields.choice("endian", _ORDERS) if fields.has("endian") else "<"
    if not decoded.data_type.is_fixed_size:
        raise CodecError(
            "the elements have no fixed size",
            found=_described(decoded),
            expected="a data type of fixed size",
            remedy="use 'vlen-utf8' for strings, 'vlen-bytes' for bytes, or an object codec",
            spec=_SPEC,
        )
    dtype = decoded.dtype
    carrier = _carrier(dtype, "=")
    stored = _carrier(decoded.data_type.with_byte_order(order).dtype, order)
    nbytes = math.prod(decoded.shape) * stored.itemsize
    return Bytes(decoded, stored, carrier, nbytes, is_plain=stored == carrier and _any_bytes_are_valid(dtype))


def _described(decoded: ArraySpec) -> str:
    name = decoded.data_type.named.name
    return "Python objects" if name == "omnizarr.object" else f"data type {name!r}"


def _carrier(dtype: AnyDType, order: str) -> AnyDType:
    """Return `dtype` with integers in place of types that NumPy cannot swap, or not always.

    Types of ml_dtypes have no byte order, hence `order`. Times without a unit keep theirs when NumPy casts them.
    """
    if dtype.names is not None and dtype.fields is not None:
        fields = [(name, _carrier(dtype.fields[name][0], order)) for name in dtype.names]
        return np.dtype(fields)
    if dtype.subdtype is not None:
        return np.dtype((_carrier(dtype.base, order), dtype.shape))
    if dtype.kind in "mM":
        return np.dtype(f"{dtype.str[0]}i8")
    if dtype.isbuiltin != 2 or dtype.itemsize == 1:
        return dtype
    if dtype.kind == "c" or dtype.name.endswith("complex32"):
        part = f"{order}u{dtype.itemsize // 2}"
        return np.dtype([("real", part), ("imag", part)])
    return np.dtype(f"{order}u{dtype.itemsize}")


def _any_bytes_are_valid(dtype: AnyDType) -> bool:
    """Return whether NumPy accepts any bytes as elements of `dtype`."""
    if dtype.names is not None and dtype.fields is not None:
        return all(_any_bytes_are_valid(dtype.fields[name][0]) for name in dtype.names)
    return dtype.base.kind not in "bU" and dtype.base.name not in _LOW_BITS


def _valid(array: AnyArray) -> AnyArray:
    """Return `array` with booleans 0 or 1, and unused bits 0. Raises ChunkError if text contains no code points."""
    dtype = array.dtype
    if dtype.names is not None:
        if not array.flags.writeable:
            array = array.copy()
        for name in dtype.names:
            field = array[name]
            if not _any_bytes_are_valid(field.dtype):
                field[...] = _valid(field)
        return array
    if dtype.kind == "b":
        octets = array.view(np.uint8)
        return octets != 0 if octets.size and octets.max() > 1 else array
    if dtype.name in _LOW_BITS:
        return (array.view(np.uint8) & _LOW_BITS[dtype.name]).view(dtype)
    if dtype.kind == "U" and array.size and dtype.itemsize:
        points = np.ascontiguousarray(array).reshape(-1).view(f"{dtype.str[0]}u4")
        if points.max() > _LAST_CODE_POINT:
            found = f"{points.max():#x}"
            raise ChunkError("text holds a number that is not a code point", found=found, expected="at most 0x10ffff")
    return array


def _wrong_size(found: int, expected: int) -> ChunkSizeError:
    return ChunkSizeError("the chunk has the wrong size", found=f"{found} bytes", expected=f"{expected} bytes")


_NAMES = {"bytes": Name(bind, ALL, "core"), "endian": Name(bind)}  # the second until 2023
CODECS = (
    Record(
        id="bytes", kind=A2B, names=_NAMES, parameters={"endian": str}, v2="the byte order in `dtype`", native=True,
        words=lambda given: "big-endian" if given.get("endian") == "big" else "",
    ),
)  # fmt: skip
