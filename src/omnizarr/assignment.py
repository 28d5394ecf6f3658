"""Values that a user assigns: converted to the array's data type, broadcast to the selection, or refused.

What is refused is refused before anything is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr import engine
from omnizarr.engine import Binding
from omnizarr.errors import ShapeError, ValueTypeError
from omnizarr.indexing import Plan

AnyArray: TypeAlias = NDArray[Any]


_TEXT = ("string", "variable_length_utf8")
_BYTES = ("bytes", "variable_length_bytes")


def write_values(binding: Binding, plan: Plan, value: Any, concurrency: int | None) -> None:
    """Store a user's value into the elements of a plan; refuse it as a whole, or write it."""
    converted = converted_value(value, binding.spec.dtype, plan.shape, binding)
    if not math.prod(plan.shape):
        return
    engine.write(binding, plan, plan.as_buffer(converted), concurrency)


def converted_value(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...], binding: Binding) -> AnyArray:
    """Return what a user assigns, in the array's data type and broadcast to a selection's shape.

    Raises ShapeError, ValueTypeError.
    """
    try:
        array = _objects(value, shape) if dtype.hasobject else _elements(value, dtype)
        _check_items(array, binding.spec.data_type.named.name)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueTypeError(
            f"the value cannot be converted: {error}",
            store=str(binding.store),
            path=binding.path,
            found=f"{type(value).__name__} {getattr(value, 'dtype', '')}".strip(),
            expected=f"what NumPy converts to {dtype}",
        ) from error
    # NumPy lets go of leading dimensions of length 1 in an assignment.
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
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


def _check_items(array: AnyArray, data_type: str) -> None:
    """Raise TypeError for objects that codecs would refuse too late, or make something else of."""
    if array.dtype != object:
        return
    if data_type in _TEXT and any(item is None for item in array.flat):
        raise TypeError("None is not text; write an empty string instead")  # NumPy makes it "None"
    if data_type in _BYTES:
        for item in array.flat:
            if item is not None and not isinstance(item, bytes | bytearray | memoryview):
                raise TypeError(f"{item!r:.50} is not bytes")


def _elements(value: Any, dtype: np.dtype[Any]) -> AnyArray:
    if isinstance(value, np.ndarray) or (hasattr(value, "__array__") and hasattr(value, "dtype")):
        return np.asarray(value).astype(dtype, copy=False)
    return np.asarray(value, dtype)


def _objects(value: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return objects as an array of a shape, where a list or an array may be an object itself."""
    if isinstance(value, np.ndarray) and value.dtype == object:
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
        return np.stack([_objects(item, shape[1:]) for item in items])
    return array
