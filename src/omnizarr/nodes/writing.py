"""Values that a user assigns: converted to the array's data type, broadcast to the selection, or refused.

An error is raised before anything is written.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from omnizarr import engine
from omnizarr.engine import Binding
from omnizarr.errors import ShapeError, ValueTypeError
from omnizarr.indexing import Plan
from omnizarr.model import ArrayMetadata
from omnizarr.model.datatypes.data_type import Scalars
from omnizarr.model.datatypes.fixed_point import FixedPoint
from omnizarr.model.datatypes.objects import Ragged
from omnizarr.model.datatypes.optional import VALID, VALUE, Optional
from omnizarr.nodes.packing import Packing
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from omnizarr.formats.conventions import fill_values
    from omnizarr.model.datatypes import DataType
else:
    fill_values = Lazy("omnizarr.formats.conventions.fill_values")

AnyArray: TypeAlias = "NDArray[Any]"

_BYTES = frozenset({"bytes", "variable_length_bytes"})
"""Data types of bytes of any length, which NumPy cannot tell from other objects."""


def write_values(
    binding: Binding, plan: Plan, value: Any, concurrency: int | None, metadata: ArrayMetadata | None = None
) -> None:
    """Store a user's value into the elements of a plan, completely or not at all."""
    converted = converted_value(value, binding.spec.dtype, plan.shape, binding, metadata)
    if not math.prod(plan.shape):
        return
    engine.write(binding, plan, plan.as_buffer(converted), concurrency)


def converted_value(
    value: Any, dtype: np.dtype[Any], shape: tuple[int, ...], binding: Binding, metadata: ArrayMetadata | None = None
) -> AnyArray:
    """Return the user's value in the array's data type, broadcast to a selection's shape.

    `metadata`: those with the newest attributes, which can say what means missing.
    Raises ShapeError, ValueTypeError.
    """
    try:
        if binding.spec.data_type.is_optional:
            array = optional_elements(value, binding.spec.data_type, shape)
        elif _is_masked(value):
            array = _filled(value, dtype, shape, binding, metadata or binding.metadata)
        else:
            array = _converted(value, dtype, shape, binding.spec.data_type.scalars)
    except ValueTypeError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueTypeError(
            f"the value cannot be converted: {error}",
            store=str(binding.store),
            path=binding.path,
            found=f"{type(value).__name__} {getattr(value, 'dtype', '')}".strip(),
            expected=f"what NumPy converts to {dtype}",
        ) from error
    # NumPy drops leading dimensions of length 1 in an assignment.
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0, ...]
    if array.shape == shape:
        return array
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ShapeError(
            "the value does not fit the selection",
            store=str(binding.store),
            path=binding.path,
            found=f"shape {array.shape}",
            expected=f"a shape that broadcasts to {shape}",
        ) from None


def as_numpy(value: Any) -> AnyArray:
    """Return the elements of an array of any library: by NumPy's protocol, or by DLPack, also from another device."""
    # With its mask, which elements that may be missing keep. NumPy imports `np.ma` at first use, which plain arrays do
    # not need: a process that is forked meanwhile would wait for ever.
    if _is_masked(value):
        return np.asanyarray(value)
    if hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        try:
            return np.asarray(value)
        except TypeError:
            if not hasattr(value, "__dlpack__"):
                raise
    try:
        return np.from_dlpack(value)
    except (TypeError, RuntimeError, BufferError):  # it is on a device
        return np.from_dlpack(value, device="cpu")


def _is_masked(value: Any) -> bool:
    return isinstance(value, np.ndarray) and type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray)


def _filled(
    value: np.ma.MaskedArray[Any, Any],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    binding: Binding,
    metadata: ArrayMetadata,
) -> AnyArray:
    """Return a masked array with what means missing in the array. Raises ValueTypeError if nothing does."""
    scalars, mask = binding.spec.data_type.scalars, np.ma.getmaskarray(value)
    if mask.dtype.names is not None:
        mask = np.asarray(np.ma.getmaskarray(value) != np.zeros((), mask.dtype))
    if not mask.any():
        return _converted(value.data, dtype, shape, scalars)
    fill = missing_value(metadata, dtype) if dtype == binding.spec.dtype else None
    if fill is None:
        raise ValueTypeError(
            "elements are missing, which this array cannot say: the values behind the mask would become data",
            store=str(binding.store),
            path=binding.path,
            found=f"{np.count_nonzero(mask)} of {mask.size} elements are masked",
            expected="values that are all there",
            remedy="replace them first, with filled() of the masked array"
            if dtype.names is not None
            else "replace them first, with filled() of the masked array, write the attribute _FillValue to the array, "
            'or create it with a data type "optional[...]", whose elements may be missing',
        )
    values = value.data.copy()
    values[mask] = fill if values.dtype.kind in "OT" else np.zeros((), values.dtype)
    found = _converted(values, dtype, shape, scalars).copy()
    found[mask] = fill
    return found


def missing_value(metadata: ArrayMetadata, dtype: np.dtype[Any]) -> Any:
    """Return the stored value that means missing to those who read the attributes of an array; None without one."""
    marks = Packing.of_array(metadata).marks
    if marks is not None:
        return marks.fill if marks.fill is not None else next(iter(marks.missing), None)
    stated = metadata.attributes.get("_FillValue")
    if dtype.kind == "O" and metadata.data_type.name in _BYTES:
        return fill_values.bytes_of(stated)
    return fill_values.decode(stated, dtype) if dtype.kind in "SUTO" else None


def _converted(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...], scalars: Scalars) -> AnyArray:
    is_array = hasattr(value, "__dlpack__") or (hasattr(value, "__array__") and hasattr(value, "dtype"))
    if is_array and not isinstance(value, np.generic):
        value = np.asarray(as_numpy(value))
    if dtype.kind == "T":
        return _text(value, dtype)
    if isinstance(scalars, FixedPoint) and not _holds_integers(np.asarray(value)):
        raise TypeError("fixed-point numbers are written as stored integers: multiply by 2**fractional_bits first")
    if dtype.kind != "O":
        # A value with a data type is cast, like `astype`; one without becomes an element of the array's type.
        is_typed = isinstance(value, np.ndarray | np.generic)
        return np.asarray(value).astype(dtype, copy=False) if is_typed else np.asarray(value, dtype)
    objects = _objects(value, shape, is_ragged=isinstance(scalars, Ragged))
    element = getattr(scalars, "element", None)
    if element is None:
        return objects
    found = np.empty(objects.size, object)
    for number, item in enumerate(objects.flat):
        found[number] = element(item)
    return found.reshape(objects.shape)


def _holds_integers(array: AnyArray) -> bool:
    if array.dtype == object:
        return all(isinstance(each, int | np.integer) and not isinstance(each, bool) for each in array.flat)
    return array.dtype.kind in "iu" or not array.size


def optional_elements(value: Any, data_type: DataType, shape: tuple[int, ...]) -> AnyArray:
    """Return a user's value as elements that may be missing.

    Missing are `numpy.ma.masked`, None in lists and arrays of objects, what is masked in a masked array, and what
    pandas takes for missing in its own arrays. All other values are there.
    """
    scalars = data_type.scalars
    if not isinstance(scalars, Optional):
        return _converted(value, data_type.dtype, shape, scalars)
    if value is None or value is np.ma.masked:
        return scalars.filled(())
    if _is_record(value):
        return scalars.of_records(np.asarray(value))
    if isinstance(value, np.ma.MaskedArray):
        values, missing = value.data, _outer_mask(value)
    elif hasattr(value, "isna") and hasattr(value, "to_numpy"):  # of pandas
        missing = np.asarray(value.isna())
        values = value.to_numpy(dtype=object)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        values, missing = np.asarray(value), None
    elif isinstance(value, list | np.ndarray) and _dtype_of_values(scalars).names is None:
        values = np.asarray(value, object)
        missing = np.fromiter((x is None or x is np.ma.masked for x in values.flat), np.bool_, values.size)
        missing = missing.reshape(values.shape)
    else:
        values, missing = value, None
    if missing is not None and missing.any():
        values = values.copy()
        is_object, is_nested = values.dtype == object, isinstance(scalars.inner.scalars, Optional)
        zero = None if is_nested else scalars.inner.default_fill_value
        values[missing] = zero if is_object else np.zeros((), values.dtype)
    inner = optional_elements(values, scalars.inner, shape)
    return scalars.joined(inner, np.zeros(inner.shape, np.bool_) if missing is None else missing)


def _dtype_of_values(scalars: Optional) -> np.dtype[Any]:
    """Return the dtype of values without their masks, at all depths."""
    inner = scalars.inner.scalars
    return _dtype_of_values(inner) if isinstance(inner, Optional) else scalars.inner.dtype


def _is_record(value: Any) -> bool:
    """Whether a value consists of records of ``valid`` and ``value``."""
    if isinstance(value, np.ma.MaskedArray) or not isinstance(value, np.ndarray | np.void):
        return False
    return value.dtype.names == (VALID, VALUE)


def _outer_mask(value: np.ma.MaskedArray[Any, Any]) -> AnyArray:
    """Return which elements are masked; of records, those whose first field is."""
    mask: Any = np.ma.getmaskarray(value)
    while mask.dtype.names is not None:
        mask = mask[mask.dtype.names[0]]
    return np.asarray(mask)


def _text(value: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Return the text that NumPy makes of values.

    Raises an error for missing values, which would become "None" or "nan".
    """
    array = value if isinstance(value, np.ndarray) else np.asarray(value, object)
    if hasattr(array.dtype, "na_object"):
        array = array.astype(object)
    if array.dtype == object:
        for item in array.flat:
            # Only missing values differ from themselves.
            if item is None or (not isinstance(item, str) and operator.ne(item, item)):
                raise TypeError(f"{item} is not text; write an empty string instead")
    return array.astype(dtype, copy=False)


def _objects(value: Any, shape: tuple[int, ...], *, is_ragged: bool) -> AnyArray:
    """Return objects as an array of a shape, where a list or an array may be an object itself."""
    if isinstance(value, np.ndarray):
        if not value.ndim:
            return value.astype(object)
        if value.dtype == object and (shape or not is_ragged):
            return value
    if not shape or isinstance(value, (str, bytes, Mapping)):
        box = np.empty((), object)
        box[()] = value
        return box
    if isinstance(value, np.ndarray) and value.ndim <= len(shape):
        return value.astype(object)
    items = list(value) if isinstance(value, (list, tuple, np.ndarray)) else None
    if items is None:
        return np.asarray(value, dtype=object)
    array = np.empty(len(items), object)
    for position, item in enumerate(items):
        array[position] = item
    if len(shape) > 1 and all(isinstance(item, (list, tuple)) for item in items):
        return np.stack([_objects(item, shape[1:], is_ragged=is_ragged) for item in items])
    return array
