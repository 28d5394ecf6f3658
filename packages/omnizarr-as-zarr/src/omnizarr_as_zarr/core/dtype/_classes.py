"""The classes: each represents the data types of omnizarr that it names."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, ClassVar, Literal, Self

import numpy as np

from omnizarr.errors import DataTypeValidationError
from omnizarr.model import Named, datatypes
from omnizarr.model.datatypes import typestr

_V2 = 2


class ZDType:
    """A data type.

    Attributes
    ----------
    data_type : omnizarr.model.datatypes.DataType
        What it is.
    """

    dtype_cls: ClassVar[Any]
    name: ClassVar[str]
    """That of Zarr v3."""

    data_type: datatypes.DataType

    @classmethod
    def __class_getitem__(cls, item: object) -> GenericAlias:
        return GenericAlias(cls, item)

    def __init__(self, **options: Any) -> None:
        self.data_type = self._made(**options)

    def _made(self, **options: Any) -> datatypes.DataType:
        """Return what the keywords mean: the byte order of elements, and nothing else where a class is one type."""
        order = options.pop("endianness", "little")
        if options:
            raise TypeError(f"unexpected keywords {sorted(options)}")
        return datatypes.bind(Named(self.name), ">" if order == "big" else "<")

    @classmethod
    def of(cls, data_type: datatypes.DataType) -> Self:
        """Return the data type of omnizarr's. Raises DataTypeValidationError if it is of another class."""
        if not cls.stands_for(data_type):
            raise DataTypeValidationError(
                f"Invalid data type: {data_type.dtype}. Expected an instance of {cls.dtype_cls}"
            )
        self = cls.__new__(cls)
        self.data_type = data_type
        return self

    @classmethod
    def stands_for(cls, data_type: datatypes.DataType) -> bool:
        """Return whether a data type of omnizarr's is of this class."""
        return data_type.named.name == cls.name

    @classmethod
    def from_native_dtype(cls, dtype: np.dtype[Any]) -> Self:
        """Return the data type of a NumPy dtype. Raises DataTypeValidationError."""
        return cls.of(datatypes.parse(dtype))

    def to_native_dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype."""
        return self.data_type.dtype

    @classmethod
    def from_json(cls, data: Any, *, zarr_format: int) -> Self:
        """Return the data type that a document names. Raises DataTypeValidationError."""
        return cls.of(_of_json(data, zarr_format))

    def to_json(self, zarr_format: int) -> Any:
        """Return the data type as a document writes it."""
        named = self.data_type.named
        if zarr_format == _V2:
            return self._to_json_v2()
        return {"name": named.name, "configuration": dict(named.configuration)} if named.configuration else named.name

    def _to_json_v2(self) -> Any:
        order: Literal["<", ">"] = ">" if self.data_type.dtype.byteorder == ">" else "<"
        return {"name": typestr.dump(self.data_type.named, order), "object_codec_id": None}

    def default_scalar(self) -> Any:
        """Return zero; for times, NaT."""
        is_time = self.data_type.dtype.kind in "mM"
        return self.data_type.cast("NaT") if is_time else self.data_type.default_fill_value

    def cast_scalar(self, data: Any) -> Any:
        """Return a value as a scalar of this type."""
        return self.data_type.cast(data)

    def to_json_scalar(self, data: Any, *, zarr_format: int) -> Any:
        """Return a scalar as a document writes it."""
        written = self.data_type.fill_to_json(self.data_type.cast(data))
        return typestr.fill_to_v2(written, self.data_type) if zarr_format == _V2 else written

    def from_json_scalar(self, data: Any, *, zarr_format: int) -> Any:
        """Return the scalar that a document writes."""
        written: Any = typestr.fill_from_v2(data, self.data_type) if zarr_format == _V2 else data
        return self.data_type.fill_from_json(written)

    @property
    def item_size(self) -> int:
        """Bytes of an element."""
        return self.data_type.dtype.itemsize

    @property
    def endianness(self) -> str:
        """Byte order of the elements."""
        return "big" if self.data_type.dtype.byteorder == ">" else "little"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZDType) and self.data_type == other.data_type

    def __hash__(self) -> int:
        return hash(self.data_type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.data_type.dtype})"


class Bool(ZDType):
    """True and false."""

    name, dtype_cls = "bool", np.dtypes.BoolDType


class Int8(ZDType):
    """Integers of 8 bits."""

    name, dtype_cls = "int8", np.dtypes.Int8DType


class Int16(ZDType):
    """Integers of 16 bits."""

    name, dtype_cls = "int16", np.dtypes.Int16DType


class Int32(ZDType):
    """Integers of 32 bits."""

    name, dtype_cls = "int32", np.dtypes.Int32DType


class Int64(ZDType):
    """Integers of 64 bits."""

    name, dtype_cls = "int64", np.dtypes.Int64DType


class UInt8(ZDType):
    """Integers from 0 on, of 8 bits."""

    name, dtype_cls = "uint8", np.dtypes.UInt8DType


class UInt16(ZDType):
    """Integers from 0 on, of 16 bits."""

    name, dtype_cls = "uint16", np.dtypes.UInt16DType


class UInt32(ZDType):
    """Integers from 0 on, of 32 bits."""

    name, dtype_cls = "uint32", np.dtypes.UInt32DType


class UInt64(ZDType):
    """Integers from 0 on, of 64 bits."""

    name, dtype_cls = "uint64", np.dtypes.UInt64DType


class Float16(ZDType):
    """Floating-point numbers of 16 bits."""

    name, dtype_cls = "float16", np.dtypes.Float16DType


class Float32(ZDType):
    """Floating-point numbers of 32 bits."""

    name, dtype_cls = "float32", np.dtypes.Float32DType


class Float64(ZDType):
    """Floating-point numbers of 64 bits."""

    name, dtype_cls = "float64", np.dtypes.Float64DType


class Complex64(ZDType):
    """Complex numbers of 64 bits."""

    name, dtype_cls = "complex64", np.dtypes.Complex64DType


class Complex128(ZDType):
    """Complex numbers of 128 bits."""

    name, dtype_cls = "complex128", np.dtypes.Complex128DType


class _OfDtype(ZDType):
    """Data types that NumPy tells apart by more than a name."""

    def _made(self, **options: Any) -> datatypes.DataType:
        return datatypes.parse(self._dtype(**options))

    def _dtype(self, **options: Any) -> np.dtype[Any]:
        raise NotImplementedError


def _ordered(text: str, endianness: str) -> np.dtype[Any]:
    return np.dtype((">" if endianness == "big" else "<") + text)


class _Time(_OfDtype):
    kind: ClassVar[str]

    def _dtype(self, *, unit: str = "generic", scale_factor: int = 1, endianness: str = "little") -> np.dtype[Any]:  # type: ignore[override]
        return _ordered(self.kind if unit == "generic" else f"{self.kind}[{scale_factor}{unit}]", endianness)

    @property
    def unit(self) -> str:
        """Unit of the elements."""
        return np.datetime_data(self.data_type.dtype)[0]

    @property
    def scale_factor(self) -> int:
        """How many units an element counts by."""
        return np.datetime_data(self.data_type.dtype)[1]


class DateTime64(_Time):
    """Points in time."""

    name, dtype_cls, kind = "numpy.datetime64", np.dtypes.DateTime64DType, "M8"


class TimeDelta64(_Time):
    """Lengths of time."""

    name, dtype_cls, kind = "numpy.timedelta64", np.dtypes.TimeDelta64DType, "m8"


class FixedLengthUTF32(_OfDtype):
    """Strings with a maximum number of characters."""

    name, dtype_cls = "fixed_length_utf32", np.dtypes.StrDType

    def _dtype(self, *, length: int, endianness: str = "little") -> np.dtype[Any]:  # type: ignore[override]
        return _ordered(f"U{length}", endianness)

    @property
    def length(self) -> int:
        """Characters of an element."""
        return self.data_type.dtype.itemsize // 4


class NullTerminatedBytes(_OfDtype):
    """Byte strings with a maximum number of bytes."""

    name, dtype_cls = "null_terminated_bytes", np.dtypes.BytesDType

    def _dtype(self, *, length: int) -> np.dtype[Any]:  # type: ignore[override]
        return np.dtype(f"S{length}")

    @property
    def length(self) -> int:
        """Bytes of an element."""
        return self.item_size


class RawBytes(_OfDtype):
    """A fixed number of bytes without a meaning."""

    name, dtype_cls = "raw_bytes", np.dtypes.VoidDType

    @classmethod
    def stands_for(cls, data_type: datatypes.DataType) -> bool:
        """Return whether a data type of omnizarr's is of this class."""
        return data_type.dtype.kind == "V" and data_type.dtype.names is None

    def _dtype(self, *, length: int) -> np.dtype[Any]:  # type: ignore[override]
        return np.dtype(f"V{length}")

    @property
    def length(self) -> int:
        """Bytes of an element."""
        return self.item_size


class Structured(_OfDtype):
    """Records."""

    name, dtype_cls = "structured", np.dtypes.VoidDType

    @classmethod
    def stands_for(cls, data_type: datatypes.DataType) -> bool:
        """Return whether a data type of omnizarr's is of this class."""
        return data_type.dtype.names is not None

    def _dtype(self, *, fields: Any) -> np.dtype[Any]:  # type: ignore[override]
        return np.dtype([(name, field.to_native_dtype()) for name, field in fields])

    @property
    def fields(self) -> tuple[tuple[str, ZDType], ...]:
        """Name and data type of each field."""
        dtype = self.data_type.dtype
        return tuple((name, get_data_type_from_native_dtype(dtype[name])) for name in dtype.names or ())


class VariableLengthUTF8(ZDType):
    """Strings of any length."""

    name, dtype_cls = "string", np.dtypes.StringDType
    object_codec_id = "vlen-utf8"

    def _to_json_v2(self) -> Any:
        return {"name": "|O", "object_codec_id": self.object_codec_id}


class VariableLengthBytes(ZDType):
    """Byte strings of any length."""

    name, dtype_cls = "variable_length_bytes", np.dtypes.ObjectDType
    object_codec_id = "vlen-bytes"

    @classmethod
    def stands_for(cls, data_type: datatypes.DataType) -> bool:
        """Return whether a data type of omnizarr's is of this class."""
        return data_type.named.name in {"bytes", "variable_length_bytes"}

    def _to_json_v2(self) -> Any:
        return {"name": "|O", "object_codec_id": self.object_codec_id}


_CLASSES: tuple[type[ZDType], ...] = (
    *(Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, Float32, Float64),
    *(Complex64, Complex128, DateTime64, TimeDelta64, FixedLengthUTF32, NullTerminatedBytes, RawBytes, Structured),
    *(VariableLengthUTF8, VariableLengthBytes),
)


def _of_json(data: Any, zarr_format: int) -> datatypes.DataType:
    if zarr_format != _V2:
        return datatypes.parse(data)
    name, codec = (data["name"], data["object_codec_id"]) if isinstance(data, dict) else (data, None)
    if codec == "vlen-utf8":
        return datatypes.parse("string")
    if codec == "vlen-bytes":
        return datatypes.parse("bytes")
    return datatypes.bind(*typestr.load(name))


def _class_of(data_type: datatypes.DataType) -> ZDType:
    for kind in _CLASSES:
        if kind.stands_for(data_type):
            return kind.of(data_type)
    raise DataTypeValidationError(f"No Zarr data type found that matches {data_type.dtype!r}")


def get_data_type_from_native_dtype(dtype: Any) -> ZDType:
    """Return the data type of a NumPy dtype."""
    return _class_of(datatypes.parse(dtype))


def get_data_type_from_json(dtype_spec: Any, *, zarr_format: int) -> ZDType:
    """Return the data type that a document names."""
    return _class_of(_of_json(dtype_spec, zarr_format))


def parse_dtype(dtype_spec: Any, *, zarr_format: int) -> ZDType:
    """Return what a user calls a data type."""
    return dtype_spec if isinstance(dtype_spec, ZDType) else _class_of(datatypes.parse(dtype_spec))


parse_data_type = parse_dtype


class DataTypeRegistry:
    """The data types there are; they cannot be added to here."""

    @property
    def contents(self) -> dict[str, type[ZDType]]:
        """The classes, by name."""
        return {kind.name: kind for kind in _CLASSES}

    def get(self, key: str) -> type[ZDType]:
        """Return a class by name. Raises KeyError."""
        return self.contents[key]

    def match_dtype(self, dtype: np.dtype[Any]) -> ZDType:
        """Return the data type of a NumPy dtype."""
        return get_data_type_from_native_dtype(dtype)

    def match_json(self, data: Any, *, zarr_format: int) -> ZDType:
        """Return the data type that a document names."""
        return get_data_type_from_json(data, zarr_format=zarr_format)


data_type_registry = DataTypeRegistry()
