"""Records of named fields.

Spec: zarr-extensions ``struct``, and its legacy name ``structured``. A field may also have ``shape`` (a
sub-array) and ``byte_order`` (if it differs from its record's). Zarr v2 has both, v3 neither.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.model import JSON, Named
from omnizarr.model.datatypes.data_type import (
    AnyDType,
    ByteOrder,
    DataType,
    bytes_from_base64,
    bytes_of,
    bytes_to_base64,
    is_blank,
    reject,
    scalar_of,
)

SPEC = "zarr-extensions, struct"
DEEPEST = 32
"""Maximum depth of nested records."""
LARGEST = 2**31 - 1
"""Maximum bytes of an item in NumPy."""
MOST = 2**20
"""Maximum number of scalars of a record, with those in sub-arrays and nested records: fill values are lists."""


Bind: TypeAlias = Callable[[Named, ByteOrder], DataType]
"""What binds a name."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record."""

    name: str
    data_type: DataType
    shape: tuple[int, ...] = ()
    has_own_order: bool = False
    """Its own byte order, whatever that of the codec."""

    @property
    def little(self) -> AnyDType:
        """NumPy dtype of the field (of an element of a sub-array), as a little-endian `bytes` codec stores it."""
        if self.has_own_order:
            return self.data_type.dtype
        scalars = self.data_type.scalars
        return scalars.little if isinstance(scalars, Struct) else self.data_type.with_byte_order("<").dtype

    @property
    def count(self) -> int:
        """Number of scalars, including those in sub-arrays and nested records."""
        scalars = self.data_type.scalars
        each = sum(field.count for field in scalars.fields) if isinstance(scalars, Struct) else 1
        return each * math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Struct:
    """Records."""

    dtype: AnyDType
    fields: tuple[Field, ...]
    little: AnyDType
    """The same record in the form that a little-endian `bytes` codec stores."""
    is_legacy: bool = False
    """Whether it is called ``structured``, and has fill values in base64."""

    def default(self) -> Any:
        """Return the zero of the type."""
        return scalar_of(bytes(self.dtype.itemsize), self.dtype)  # zero consists of zero bytes

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if isinstance(value, str) and value:
            return self.from_base64(value, self.little, at)
        if is_blank(value):
            return self.default()
        if not isinstance(value, Mapping):
            raise reject("the fill value is not a record", at, value, "an object with every field", spec=SPEC)
        names = {field.name for field in self.fields}
        for name in value:
            if name not in names:
                expected = [field.name for field in self.fields]
                raise reject("the fill value has a field too many", f"{at}/{_token(name)}", name, expected, spec=SPEC)
        parts = []
        for field in self.fields:
            if field.name not in value:
                raise reject("the fill value lacks a field", at, list(value), f"also {field.name!r}", spec=SPEC)
            read = field.data_type.scalars.from_json
            parts.append(_read_nested(read, value[field.name], field.shape, f"{at}/{_token(field.name)}"))
        return self._join(parts)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        if self.is_legacy:
            return bytes_to_base64(np.asarray(scalar, self.dtype).astype(self.little).tobytes())
        return self._by_field(scalar)

    def _by_field(self, scalar: Any) -> JSON:
        record = np.asarray(scalar, self.dtype)
        return {field.name: _nest(field, record[field.name]) for field in self.fields}

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if isinstance(value, np.void) and value.dtype == self.dtype:
            return scalar_of(value.tobytes(), self.dtype)  # A copy, because it may be a view into the user's array.
        if isinstance(value, bytes):
            return self._from_bytes(value, self.dtype, at)
        if isinstance(value, np.void) and value.dtype.names:
            value = {name: value[name] for name in value.dtype.names}
        if isinstance(value, tuple | list) and len(value) == len(self.fields):
            value = {field.name: item for field, item in zip(self.fields, value, strict=True)}
        if not isinstance(value, Mapping):
            if isinstance(value, tuple | list | np.void):
                raise reject("the fill value is no such record", at, repr(value), f"{len(self.fields)} fields")
            return self.from_json(value, at)
        missing = [field.name for field in self.fields if field.name not in value]
        if missing or len(value) != len(self.fields):
            raise reject("the fill value has other fields", at, list(value), [field.name for field in self.fields])
        parts = []
        for field in self.fields:
            item = value[field.name]
            item = item.tolist() if isinstance(item, np.ndarray) and field.data_type.dtype.names else item
            cast = field.data_type.scalars.cast
            parts.append(_read_nested(cast, item, field.shape, f"{at}/{_token(field.name)}"))
        return self._join(parts)

    def from_base64(self, value: str, stored: AnyDType, at: str) -> Any:
        """Return the record with the item bytes `value`, of dtype `stored`."""
        return self._from_bytes(bytes_from_base64(value, at), stored, at)

    def _join(self, parts: list[list[Any]]) -> Any:
        """Return the record whose fields have these scalars (several for a sub-array)."""
        data = b"".join(
            bytes_of(scalar, field.data_type.dtype)
            for field, scalars in zip(self.fields, parts, strict=True)
            for scalar in scalars
        )
        return scalar_of(data, self.dtype)

    def _from_bytes(self, data: bytes, dtype: AnyDType, at: str) -> Any:
        if len(data) != dtype.itemsize:
            raise reject("the fill value has the wrong length", at, f"{len(data)} bytes", f"{dtype.itemsize} bytes")
        scalar = scalar_of(np.frombuffer(data, dtype).astype(self.dtype).tobytes(), self.dtype)
        try:
            self._by_field(scalar)
        except (ValueError, SystemError) as error:  # NumPy's errors for a code point beyond U+10FFFF.
            raise reject(f"the fill value is no such record ({error})", at, data.hex(), str(self.dtype)) from None
        return scalar


@dataclass(frozen=True, slots=True)
class Pair(Struct):
    """Complex numbers of small floats, for which NumPy has no type: records of a real and an imaginary part."""

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for a list of two."""
        if is_blank(value):
            return self.default()
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != len(PARTS):
            raise reject("the fill value is not a complex number", at, value, "a list of two: real and imaginary part")
        return Struct.from_json(self, dict(zip(PARTS, value, strict=True)), at)

    def to_json(self, scalar: Any) -> JSON:
        """Return the list of both parts."""
        parts = self._by_field(scalar)
        return [parts[name] for name in PARTS] if isinstance(parts, Mapping) else parts

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed: a complex number, a record, or a list of two."""
        if isinstance(value, int | float | complex | np.number) and not isinstance(value, bool):
            value = complex(value)
            value = {"real": value.real, "imag": value.imag}
        return Struct.cast(self, value, at)


@dataclass(frozen=True, slots=True)
class FixedList(Struct):
    """Lists of one length: records whose only field is an array. Spec: zarr-extensions ``fixed_size_list``."""

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for a list."""
        if is_blank(value):
            return self.default()
        (field,) = self.fields
        return self._join([_read_nested(field.data_type.scalars.from_json, value, field.shape, at)])

    def to_json(self, scalar: Any) -> JSON:
        """Return the list."""
        (field,) = self.fields
        return _nest(field, np.asarray(scalar, self.dtype)[field.name])

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed: a list, an array, or a record."""
        (field,) = self.fields
        if isinstance(value, np.void) and value.dtype.names == (field.name,):
            value = value[field.name]
        if isinstance(value, bytes):
            return self._from_bytes(value, self.dtype, at)
        if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
            return self.from_json(value, at)
        return self._join([_read_nested(field.data_type.scalars.cast, value, field.shape, at)])


LIST = "fixed_size_list"
ITEMS = "items"
"""The name of the field in memory."""


def bind_list(configuration: Mapping[str, JSON], byte_order: ByteOrder, bind: Bind, depth: int = 0) -> FixedList:
    """Return the type of lists that a document describes; the elements of lists of lists are one array.

    Raises MetadataError, UnknownDataTypeError.
    """
    at = "/data_type/configuration"
    if depth >= DEEPEST:
        raise reject("types are nested too deeply", at, f"{depth} levels", f"at most {DEEPEST}", spec=LIST)
    size = configuration.get("list_size")
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
        raise reject("not the size of a list", f"{at}/list_size", size, f"an integer from 1 to {MOST}", spec=LIST)
    document: dict[str, JSON] = {"name": ITEMS, "data_type": configuration.get("base_data_type"), "shape": [size]}
    field = _bind_field(document, byte_order, bind, at)
    if field.count > MOST or field.data_type.dtype.itemsize * math.prod(field.shape) > LARGEST:
        raise reject("the list is too large", f"{at}/list_size", size, f"at most {MOST} scalars", spec=LIST)
    dtype = np.dtype([(ITEMS, field.data_type.dtype, field.shape)])
    return FixedList(dtype, (field,), np.dtype([(ITEMS, field.little, field.shape)]))


def with_lists(named: Named) -> Named:
    """Return a record whose fields with a shape are lists of one length, as documents of v3 can have them."""

    def changed(field: Any) -> dict[str, JSON]:
        field = dict(field)
        data_type = field["data_type"]
        if isinstance(data_type, Mapping) and data_type.get("name") == "struct":
            data_type = named_to_json(with_lists(named_from_json(data_type)))
        for size in reversed(field.pop("shape", ())):
            data_type = {"name": LIST, "configuration": {"base_data_type": data_type, "list_size": size}}
        return {**field, "data_type": data_type}

    fields: Any = named.configuration["fields"]
    return Named(named.name, {"fields": [changed(field) for field in fields]})


PARTS = ("real", "imag")


def pair_of(part: DataType) -> Pair:
    """Return the complex numbers whose parts have a type."""
    dtype = np.dtype([(name, part.dtype) for name in PARTS])
    return Pair(dtype, tuple(Field(name, part) for name in PARTS), dtype)


def bind_struct(named: Named, byte_order: ByteOrder, bind: Bind, depth: int = 0) -> Struct:
    """Return the record type that a document describes.

    Raises
    ------
    MetadataError
        If the configuration breaks the specification.
    UnknownDataTypeError
        If a field's type is unknown.
    """
    at = "/data_type/configuration/fields"
    documents = named.configuration.get("fields")
    if isinstance(documents, str) or not isinstance(documents, Sequence) or not documents:
        raise reject("not the fields of a record", at, documents, "a list of at least one field", spec=SPEC)
    if depth >= DEEPEST:
        raise reject("records are nested too deeply", at, f"{depth} levels", f"at most {DEEPEST}", spec=SPEC)
    fields = tuple(_bind_field(document, byte_order, bind, f"{at}/{i}") for i, document in enumerate(documents))
    names = set()
    for i, field in enumerate(fields):
        if field.name in names:
            raise reject("two fields have one name", f"{at}/{i}/name", field.name, "unique names", spec=SPEC)
        names.add(field.name)
    if (size := sum(field.data_type.dtype.itemsize * math.prod(field.shape) for field in fields)) > LARGEST:
        raise reject("the record is too large", at, f"{size} bytes", f"at most {LARGEST}", spec=None)
    if (count := sum(field.count for field in fields)) > MOST:
        raise reject("the record has too many elements", at, count, f"at most {MOST}", spec=None)
    dtype = np.dtype([(field.name, field.data_type.dtype, field.shape) for field in fields])
    little = np.dtype([(field.name, field.little, field.shape) for field in fields])
    return Struct(dtype, fields, little, is_legacy=named.name == "structured")


def _bind_field(document: JSON, byte_order: ByteOrder, bind: Bind, at: str) -> Field:
    if isinstance(document, Sequence) and not isinstance(document, str) and len(document) == 2:
        document = {"name": document[0], "data_type": document[1]}  # the legacy form: [name, data type]
    if not isinstance(document, Mapping):
        raise reject("not a field", at, document, "an object with name and data_type", spec=SPEC)
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise reject("not the name of a field", f"{at}/name", name, "a non-empty string", spec=SPEC)
    for member in document:
        if member not in ("name", "data_type", "shape", "byte_order"):
            raise reject("not a member of a field", f"{at}/{_token(member)}", member, "name, data_type", spec=SPEC)
    order = document.get("byte_order", byte_order)
    if order not in ("<", ">"):
        raise reject("not a byte order", f"{at}/byte_order", order, '"<" or ">"', spec=None)
    try:
        data_type = bind(named_from_json(document.get("data_type")), "<" if order == "<" else ">")
    except MetadataError as error:
        inner = (error.pointer or "").removeprefix("/data_type")
        error.pointer = f"{at}/data_type{inner}"
        raise
    if not data_type.is_fixed_size:
        raise reject("a field has no fixed size", f"{at}/data_type", data_type.named.name, "a type that has", spec=SPEC)
    shape = _shape(document.get("shape", ()), f"{at}/shape")
    while isinstance(data_type.scalars, FixedList):  # an array within the record
        (items,) = data_type.scalars.fields
        shape, data_type = shape + items.shape, items.data_type
    return Field(name, data_type, shape, has_own_order="byte_order" in document)


def named_from_json(document: JSON, at: str = "/data_type") -> Named:
    """Return the data type in a document: a name, or an object with a name and a configuration.

    Raises
    ------
    MetadataError
        If it is neither.
    """
    if isinstance(document, str):
        return Named(document)
    if not isinstance(document, Mapping) or not isinstance(document.get("name"), str):
        raise reject("not a data type", at, document, "a name, or an object with a name", spec=None)
    configuration = document.get("configuration", {})
    if not isinstance(configuration, Mapping):
        raise reject("not a configuration", f"{at}/configuration", configuration, "an object", spec=None)
    for member in document:
        if member not in ("name", "configuration", "must_understand"):
            raise reject("not a member of a data type", f"{at}/{_token(member)}", member, "name, configuration")
    return Named(str(document["name"]), configuration)


def named_to_json(named: Named) -> JSON:
    """Return the document of a data type: its name, or an object with its configuration."""
    if not named.configuration:
        return named.name
    return {"name": named.name, "configuration": dict(named.configuration)}


def _shape(document: JSON, at: str) -> tuple[int, ...]:
    if isinstance(document, str) or not isinstance(document, Sequence):
        raise reject("not the shape of a sub-array", at, document, "a list of lengths", spec=None)
    lengths = []
    for i, length in enumerate(document):
        if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= LARGEST:
            raise reject("not a length", f"{at}/{i}", length, f"an integer from 1 to {LARGEST}", spec=None)
        lengths.append(length)
    if len(lengths) > DEEPEST or math.prod(lengths) > MOST:
        raise reject("the sub-array is too large", at, lengths, f"at most {MOST} elements", spec=None)
    return tuple(lengths)


def _nest(field: Field, values: Any) -> JSON:
    """Return the JSON form of a field: nested lists for a sub-array."""
    if not field.shape:
        return field.data_type.scalars.to_json(values[()])
    flat = iter([field.data_type.scalars.to_json(value) for value in values.reshape(-1)])
    return _group(flat, field.shape)


def _group(flat: Any, shape: tuple[int, ...]) -> JSON:
    if len(shape) == 1:
        return list(itertools.islice(flat, shape[0]))
    return [_group(flat, shape[1:]) for _ in range(shape[0])]


def _read_nested(read: Callable[[Any, str], Any], value: Any, shape: tuple[int, ...], at: str) -> list[Any]:
    """Return the scalars of a field in C order, each read by `read`."""
    if not shape:
        return [read(value, at)]
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray) or len(value) != shape[0]:
        raise reject("the fill value is no such sub-array", at, value, f"a list of {shape[0]}", spec=None)
    return [x for i, item in enumerate(value) for x in _read_nested(read, item, shape[1:], f"{at}/{i}")]


def _token(name: object) -> str:
    """Return `name` as a token of a JSON pointer (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")
