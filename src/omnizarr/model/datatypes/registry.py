"""All data types by name, and binding of names to types.

A package adds its own under the entry point ``omnizarr.data_types``, a program with `PLUGINS`: a function
``make(configuration, byte_order)`` that returns the `Scalars` of the type.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np

from omnizarr.errors import MetadataError, MissingDependencyError, UnknownDataTypeError
from omnizarr.model import JSON, Named
from omnizarr.model.datatypes.data_type import AnyDType, ByteOrder, DataType, Scalars
from omnizarr.model.datatypes.fixed_point import NAME as FIXED_POINT
from omnizarr.model.datatypes.fixed_point import bind_fixed_point
from omnizarr.model.datatypes.json_values import NAME as JSON_VALUES
from omnizarr.model.datatypes.json_values import JsonValues
from omnizarr.model.datatypes.numeric import Bool, Complex, Float, Integer
from omnizarr.model.datatypes.objects import Objects, Ragged
from omnizarr.model.datatypes.optional import NAMES as OPTIONAL
from omnizarr.model.datatypes.optional import bind_optional
from omnizarr.model.datatypes.strings import UTF32_BYTES, Bytes, FixedBytes, FixedText, Raw, Text
from omnizarr.model.datatypes.structs import LARGEST, LIST, bind_list, bind_struct, named_from_json, pair_of
from omnizarr.model.datatypes.times import KINDS, Time, time_dtype
from omnizarr.model.plugins import Plugins
from omnizarr.support import extras, suggestions

Make: TypeAlias = Callable[[Mapping[str, JSON], ByteOrder], Scalars]

PLUGINS: Final[Plugins[Make]] = Plugins("omnizarr.data_types", "data type", "/data_type")

RAW = re.compile(r"r([0-9]{1,10})")

INTEGERS = {f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}

FLOATS = {"float16": ("f2", 0x7E00), "float32": ("f4", 0x7FC00000), "float64": ("f8", 0x7FF8000000000000)}
"""NumPy's name without byte order, and the bits of "NaN"."""

COMPLEX = {
    "complex64": ("c8", "float32"),
    "complex128": ("c16", "float64"),
    "complex_float32": ("c8", "float32"),
    "complex_float64": ("c16", "float64"),
}

SMALL_FLOATS: dict[str, tuple[int | None, bool]] = {
    "bfloat16": (0x7FC0, True),
    "float8_e3m4": (0x78, True),
    "float8_e4m3": (0x7C, True),
    "float8_e4m3fn": (0x7F, False),  # not registered; TensorStore writes it
    "float8_e4m3b11fnuz": (0x80, False),
    "float8_e4m3fnuz": (0x80, False),
    "float8_e5m2": (0x7E, True),
    "float8_e5m2fnuz": (0x80, False),
    "float8_e8m0fnu": (0xFF, False),
    "float6_e2m3fn": (None, False),
    "float6_e3m2fn": (None, False),
    "float4_e2m1fn": (None, False),
}
"""Bits of "NaN" if there is one, and whether there is an infinity. The types have the same names in ml_dtypes."""

SMALL_INTEGERS = {"int2": (-2, 1), "int4": (-8, 7), "uint2": (0, 3), "uint4": (0, 15)}
"""Lowest and highest value; one byte each in memory."""

SMALL_COMPLEX = {"complex_float16": ("complex32", "float16"), "complex_bfloat16": ("bcomplex32", "bfloat16")}
"""Name in ml_dtypes (0.6 and later), and the type of the parts."""

PAIRS = {f"complex_{name}": name for name in SMALL_FLOATS if name not in ("bfloat16", "float8_e4m3fn")}
"""Complex types that no package provides for NumPy: they are records of two parts, with the type of the parts."""

SMALL = {*SMALL_FLOATS, *SMALL_INTEGERS, *SMALL_COMPLEX, *PAIRS}


def bind(named: Named, byte_order: ByteOrder = "<") -> DataType:
    """Return the data type with a name in documents.

    Parameters
    ----------
    named : Named
        Name and configuration, in the terms of Zarr v3.
    byte_order : {"<", ">"}
        Byte order in memory. Fields of a record with their own order keep it; types of ``ml_dtypes`` always
        have the machine's order.

    Returns
    -------
    DataType

    Raises
    ------
    UnknownDataTypeError
        If the name is unknown.
    MissingDependencyError
        If the type needs the package ``ml_dtypes``.
    MetadataError
        If the configuration breaks the type's specification; the pointer starts at ``/data_type``.

    Notes
    -----
    Zarr v3 core, "Data types"; zarr-extensions, ``data-types``.

    Examples
    --------
    >>> from omnizarr.model import Named
    >>> bind(Named("uint16"), byte_order=">").dtype
    dtype('>u2')
    >>> bind(Named("numpy.datetime64", {"unit": "s", "scale_factor": 10})).dtype
    dtype('<M8[10s]')
    """
    if not named.configuration and is_known(named.name):
        return _bind_plain(named.name, byte_order)
    return _bind(named, byte_order)


@functools.lru_cache(maxsize=256)
def _bind_plain(name: str, byte_order: ByteOrder) -> DataType:
    return _bind(Named(name), byte_order)


def _bind(named: Named, byte_order: ByteOrder, depth: int = 0) -> DataType:
    name, configuration = named.name, named.configuration
    if name in STRUCTS:
        _check_members(configuration, ("fields",))
        inner = functools.partial(_bind, depth=depth + 1)
        scalars: Scalars = bind_struct(named, byte_order, inner, depth)
    elif name == LIST:
        _check_members(configuration, ("base_data_type", "list_size"))
        scalars = bind_list(configuration, byte_order, functools.partial(_bind, depth=depth + 1), depth)
    elif name in OPTIONAL:
        _check_members(configuration, ("name", "configuration"))
        scalars = bind_optional(named, byte_order, functools.partial(_bind, depth=depth + 1), depth)
    elif name in TYPES:
        if name in ALONE and depth:
            raise UnknownDataTypeError(
                "the data type is not read within others",
                pointer="/data_type",
                found=name,
                expected="a type of numbers or text",
                remedy="store its elements in an array of their own",
            )
        members, make = TYPES[name]
        _check_members(configuration, members)
        scalars = make(configuration, byte_order)
    elif match := RAW.fullmatch(name):
        _check_members(configuration, ())
        bits = int(match[1])
        if bits % 8 or not 0 < bits <= 8 * LARGEST:
            raise MetadataError(
                "not a number of whole bytes",
                pointer="/data_type",
                found=f"r{bits}",
                expected="r8, r16, ...: a positive multiple of 8",
                spec='Zarr v3 core, "Core data types"',
            )
        scalars = Raw(np.dtype(f"V{bits // 8}"), as_list=True)
    elif (other := PLUGINS.find(name)) is not None:
        scalars = PLUGINS.bound(named, other, byte_order)
        if not isinstance(getattr(scalars, "dtype", None), np.dtype):
            raise PLUGINS.refuse(named, repr(scalars), "an object with a NumPy dtype and the methods of Scalars")
    else:
        raise _unknown(name)
    return DataType(named, byte_order, scalars, bind)


def is_known(name: str) -> bool:
    """Whether omnizarr has a type of this name. Its configuration or package may still be missing."""
    return name in TYPES or name in NESTED or RAW.fullmatch(name) is not None


def near_names(name: str) -> str | None:
    """Return the question whether a data type with a similar name was meant; None if there is none."""
    return suggestions.meant(name, [each for each in (*TYPES, *NESTED) if "." not in each], most=3)


def _unknown(name: str) -> UnknownDataTypeError:
    known = f"known: {', '.join(sorted([*TYPES, *NESTED]))}, r<bits>"
    return UnknownDataTypeError(
        "unknown data type",
        pointer="/data_type",
        found=name,
        expected="a registered name",
        remedy=f"{near}; {known}" if (near := near_names(name)) else known,
    )


def _check_members(configuration: Mapping[str, JSON], known: tuple[str, ...] | None) -> None:
    for member in configuration:
        if known is not None and member not in known:
            raise MetadataError(
                "the data type has no such parameter",
                pointer=f"/data_type/configuration/{member}",
                found=member,
                expected=", ".join(known) or "no configuration",
            )


def _bool(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return Bool(np.dtype(np.bool_))


def _integer(name: str, code: str) -> Make:
    def make(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
        dtype = np.dtype(byte_order + code)
        limits = np.iinfo(dtype)
        return Integer(dtype, int(limits.min), int(limits.max), blank_is_zero=name == "uint8")

    return make


def _float(code: str, nan: int) -> Make:
    def make(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
        return Float(np.dtype(byte_order + code), nan)

    return make


def _complex(code: str, part: str) -> Make:
    def make(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
        part_code, nan = FLOATS[part]
        return Complex(np.dtype(byte_order + code), Float(np.dtype(byte_order + part_code), nan))

    return make


def _small(name: str) -> Make:
    def make(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
        if name in SMALL_FLOATS:
            nan, has_infinity = SMALL_FLOATS[name]
            return Float(ml_dtype(name), nan, has_infinity)
        if name in PAIRS:
            return pair_of(bind(Named(PAIRS[name]), byte_order))
        if name in SMALL_INTEGERS:
            lowest, highest = SMALL_INTEGERS[name]
            return Integer(ml_dtype(name), lowest, highest)
        ml_name, part = SMALL_COMPLEX[name]
        dtype = ml_dtype(ml_name)
        if part in FLOATS:
            return Complex(dtype, Float(np.dtype(f"={FLOATS[part][0]}"), FLOATS[part][1]))
        return Complex(dtype, Float(ml_dtype(part), SMALL_FLOATS[part][0]))

    return make


def ml_dtype(name: str) -> AnyDType:
    """Return a dtype of the package ml_dtypes.

    Raises
    ------
    MissingDependencyError
        If the package is not installed, or is too old.
    """
    try:
        dtype: AnyDType = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError) as error:
        raise MissingDependencyError(
            f"the data type needs a recent ml_dtypes ({error})",
            pointer="/data_type",
            found=name,
            remedy=extras.remedy("ml"),
        ) from error
    return dtype


def _length(configuration: Mapping[str, JSON], unit: int = 1) -> int:
    length = configuration.get("length_bytes")
    if isinstance(length, bool) or not isinstance(length, int) or not 0 < length <= LARGEST or length % unit:
        raise MetadataError(
            "not a length",
            pointer="/data_type/configuration/length_bytes",
            found="nothing" if length is None else length,
            expected=f"an integer from {unit} to {LARGEST}" + (f", a multiple of {unit}" if unit > 1 else ""),
        )
    return length


def _raw_bytes(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return Raw(np.dtype(f"V{_length(configuration)}"), as_list=False)


def _fixed_bytes(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return FixedBytes(np.dtype(f"S{_length(configuration)}"))


def _fixed_text(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return FixedText(np.dtype(f"{byte_order}U{_length(configuration, UTF32_BYTES) // UTF32_BYTES}"))


def _text(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return Text(np.dtypes.StringDType())


def _bytes(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return Bytes(np.dtype(object))


def _time(kind: str) -> Make:
    def make(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
        return Time(time_dtype(kind, configuration, byte_order))

    return make


def _fixed_point(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return bind_fixed_point(configuration, byte_order, bind)


def _json_values(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return JsonValues(np.dtype(object))


def _objects(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    return Objects(np.dtype(object))


def _ragged(configuration: Mapping[str, JSON], byte_order: ByteOrder) -> Scalars:
    items = bind(named_from_json(configuration.get("data_type"), "/data_type/configuration/data_type"), byte_order)
    if not items.is_fixed_size:
        raise MetadataError(
            "the items of ragged arrays have no fixed size",
            pointer="/data_type/configuration/data_type",
            found=items.named.name,
            expected="a type of a fixed size",
        )
    return Ragged(np.dtype(object), items)


STRUCTS = ("struct", "structured")
NESTED = (*STRUCTS, LIST, *OPTIONAL)
"""Types that are made of other types."""

ALONE = (FIXED_POINT, JSON_VALUES)
"""Types that are not read within others: what shows values would show fixed-point numbers as integers there, and the
text of json has it for whole arrays only."""

TYPES: Mapping[str, tuple[tuple[str, ...] | None, Make]] = {
    "bool": ((), _bool),
    **{name: ((), _integer(name, code)) for name, code in INTEGERS.items()},
    **{name: ((), _float(code, nan)) for name, (code, nan) in FLOATS.items()},
    **{name: ((), _complex(code, part)) for name, (code, part) in COMPLEX.items()},
    **{name: ((), _small(name)) for name in sorted(SMALL)},
    "raw_bytes": (("length_bytes",), _raw_bytes),
    "null_terminated_bytes": (("length_bytes",), _fixed_bytes),
    "fixed_length_utf32": (("length_bytes",), _fixed_text),
    "string": ((), _text),
    "variable_length_utf8": ((), _text),
    "bytes": ((), _bytes),
    "variable_length_bytes": ((), _bytes),
    **{name: (("unit", "scale_factor"), _time(kind)) for name, kind in KINDS.items()},
    FIXED_POINT: (("base_data_type", "fractional_bits", "integer_bits"), _fixed_point),
    JSON_VALUES: ((), _json_values),
    "omnizarr.vlen_array": (("data_type",), _ragged),
    "omnizarr.object": (None, _objects),  # Its configuration is the object codec.
}
"""By name: the allowed members of its configuration (None: any), and the function that makes its scalars."""

NAMES_OF_NUMPY: Mapping[str, str] = {
    "b1": "bool",
    **{code: name for name, code in INTEGERS.items()},
    **{code: name for name, (code, _) in FLOATS.items()},
    "c8": "complex64",
    "c16": "complex128",
}
"""By NumPy's name without byte order."""


def ml_name_of(dtype: AnyDType) -> str | None:
    """Return the name of a dtype that belongs to ml_dtypes; None for other dtypes."""
    if dtype.type.__module__ != "ml_dtypes":
        return None
    names = {ml_name: name for name, (ml_name, _) in SMALL_COMPLEX.items()}
    return names.get(dtype.name, dtype.name)
