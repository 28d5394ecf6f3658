"""Values that may be missing: ``optional`` of any other type.

In memory an element is a record of two fields: ``valid``, and ``value`` in the dtype of the inner type (text of any
length is a `str`). Where nothing is there, ``value`` is the zero of the inner type, so that equal elements have equal
bytes. The dtype is marked, so that it is not mistaken for a record with such fields: `is_optional`. Users see masked
arrays: `as_masked`.

Spec: zarr-extensions ``optional`` (proposal 33).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.model import JSON, Named
from omnizarr.model.datatypes.data_type import AnyDType, ByteOrder, DataType, bytes_of, reject, scalar_of
from omnizarr.model.datatypes.structs import DEEPEST, LARGEST, named_from_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPEC: Final = "zarr-extensions, optional"
NAME: Final = "optional"
NAMES: Final = (NAME, "zarrs.optional")
"""Those of the proposal and of zarrs 0.23."""
VALID: Final = "valid"
VALUE: Final = "value"
_MARK: Final = {"omnizarr": NAME}


def dtype_of(inner: AnyDType) -> AnyDType:
    """Return the dtype in memory of values of a dtype that may be missing."""
    return np.dtype([(VALID, np.bool_), (VALUE, object if inner.kind == "T" else inner)], metadata=_MARK)


def is_optional(dtype: AnyDType) -> bool:
    """Whether a dtype is that of values that may be missing."""
    return dtype.metadata is not None and dtype.metadata.get("omnizarr") == NAME


def as_masked(elements: NDArray[Any]) -> Any:
    """Return elements as a masked array; one element without dimensions as its value, or `numpy.ma.masked`.

    The elements of a nested type are records of their inner type.

    >>> as_masked(np.array([(True, 5), (False, 0)], dtype_of(np.dtype("u1"))))
    masked_array(data=[5, --],
                 mask=[False,  True],
           fill_value=np.uint64(999999),
                dtype=uint8)
    """
    if elements.shape == ():
        return elements[VALUE][()] if elements[VALID] else np.ma.masked
    return np.ma.MaskedArray(elements[VALUE], mask=~elements[VALID])


def absent(elements: NDArray[Any]) -> NDArray[Any]:
    """Return where elements are missing at any depth of nested types."""
    missing = ~elements[VALID]
    return missing | absent(elements[VALUE]) if is_optional(elements.dtype[VALUE]) else missing


def present(elements: NDArray[Any]) -> NDArray[Any]:
    """Return the values of elements, of the innermost type; the zero of that type for those that are missing."""
    while is_optional(elements.dtype):
        elements = elements[VALUE]
    return elements


@dataclass(frozen=True, slots=True)
class Optional:
    """Values of another type, any of which may be missing. A scalar is a record."""

    dtype: AnyDType
    inner: DataType
    has_null: ClassVar = True

    def default(self) -> Any:
        """Return the missing value."""
        return self._join(self.inner.default_fill_value, is_valid=False)

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for null, or for a list of one value of the inner type."""
        if value is None:
            return self.default()
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 1:
            raise reject("the fill value is not optional", at, value, "null, or a list of one value", spec=SPEC)
        return self._join(self.inner.scalars.from_json(value[0], f"{at}/0"), is_valid=True)

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return [self.inner.scalars.to_json(scalar[VALUE])] if scalar[VALID] else None

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed: a record, a value, `numpy.ma.masked`, None, or a form of JSON."""
        if value is None or value is np.ma.masked:
            return self.default()
        if isinstance(value, np.void) and value.dtype.names == (VALID, VALUE):
            return self._join(self.inner.cast(value[VALUE]), is_valid=True) if value[VALID] else self.default()
        if isinstance(value, list) and len(value) == 1:
            inner = value[0]
            if inner is None and not isinstance(self.inner.scalars, Optional):
                raise reject("the fill value is not optional", at, value, "null, or a list of one value", spec=SPEC)
            return self._join(self.inner.scalars.default() if inner is None else self.inner.cast(inner), is_valid=True)
        return self._join(self.inner.cast(value), is_valid=True)

    def _join(self, value: Any, *, is_valid: bool) -> Any:
        if not self.dtype.hasobject:
            return scalar_of(bytes([is_valid]) + bytes_of(value, self.inner.dtype), self.dtype)
        box = np.empty((), self.dtype)
        box[()] = (is_valid, value)
        return box[()]

    def filled(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array whose elements are all missing."""
        elements = np.empty(shape, self.dtype)
        elements[...] = self.default()
        return elements

    def joined(self, values: NDArray[Any], missing: NDArray[Any]) -> NDArray[Any]:
        """Return the elements with values of the inner type, except those that are missing."""
        elements = self.filled(values.shape)
        valid = ~missing
        elements[VALID] = valid
        elements[VALUE][valid] = values[valid]
        return elements

    def of_records(self, records: NDArray[Any]) -> NDArray[Any]:
        """Return records of ``valid`` and ``value`` as elements, with the zero where nothing is there."""
        values = records[VALUE]
        if isinstance(self.inner.scalars, Optional):
            values = self.inner.scalars.of_records(values)
        return self.joined(values, ~records[VALID].astype(np.bool_))


def bind_optional(
    named: Named, byte_order: ByteOrder, bind: Callable[[Named, ByteOrder], DataType], depth: int = 0
) -> Optional:
    """Return the type that a document describes. Raises MetadataError, UnknownDataTypeError."""
    at = "/data_type/configuration"
    if depth >= DEEPEST:
        raise reject("types are nested too deeply", at, f"{depth} levels", f"at most {DEEPEST}", spec=SPEC)
    document = named.configuration
    inner_named = named_from_json(document, at)
    if inner_named.name.startswith("omnizarr."):
        raise reject("objects cannot be optional", f"{at}/name", inner_named.name, "a type of Zarr v3", spec=SPEC)
    try:
        inner = bind(inner_named, byte_order)
    except MetadataError as error:
        error.pointer = at + (error.pointer or "").removeprefix("/data_type")
        raise
    if inner.dtype.itemsize >= LARGEST:
        raise reject("the type is too large", at, f"{inner.dtype.itemsize} bytes", f"less than {LARGEST}", spec=None)
    return Optional(dtype_of(inner.dtype), inner)
