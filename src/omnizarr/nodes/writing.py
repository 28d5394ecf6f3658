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

if TYPE_CHECKING:
    from numpy.typing import NDArray

AnyArray: TypeAlias = "NDArray[Any]"


_BYTES = ("bytes", "variable_length_bytes")
_RAGGED = "omnizarr.vlen_array"


def write_values(binding: Binding, plan: Plan, value: Any, concurrency: int | None) -> None:
    """Store a user's value into the elements of a plan, completely or not at all."""
    converted = converted_value(value, binding.spec.dtype, plan.shape, binding)
    if not math.prod(plan.shape):
        return
    engine.write(binding, plan, plan.as_buffer(converted), concurrency)


def converted_value(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...], binding: Binding) -> AnyArray:
    """Return the user's value in the array's data type, broadcast to a selection's shape.

    Raises ShapeError, ValueTypeError.
    """
    try:
        array = _converted(value, dtype, shape, binding.spec.data_type.named.name)
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


def _converted(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...], data_type: str) -> AnyArray:
    is_array = hasattr(value, "__dlpack__") or (hasattr(value, "__array__") and hasattr(value, "dtype"))
    if is_array and not isinstance(value, np.generic):
        value = as_numpy(value)
    if dtype.kind == "T":
        return _text(value, dtype)
    if dtype.kind != "O":
        # A value with a data type is cast, like `astype`; one without becomes an element of the array's type.
        is_typed = isinstance(value, np.ndarray | np.generic)
        return np.asarray(value).astype(dtype, copy=False) if is_typed else np.asarray(value, dtype)
    objects = _objects(value, shape, is_ragged=data_type == _RAGGED)
    return _byte_strings(objects) if data_type in _BYTES else objects


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


def _byte_strings(array: AnyArray) -> AnyArray:
    """Return objects as `bytes`, which codecs need; None stays. Raises TypeError."""
    found = np.empty(array.shape, object)
    for number, item in enumerate(array.flat):
        if item is not None and not isinstance(item, bytes | bytearray | memoryview):
            raise TypeError(f"{item!r:.50} is not bytes")
        found.flat[number] = None if item is None else bytes(item)
    return found


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
