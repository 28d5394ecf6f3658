"""How the page draws an array: as numbers, complex numbers or a table."""

from __future__ import annotations

from typing import Any

from omnizarr.errors import OmnizarrError
from omnizarr.model.datatypes.optional import VALUE, is_optional
from omnizarr.nodes.array import Array


def marks_of_optional(array: Array) -> dict[str, Any]:
    """Return what NaN means in a picture of optional integers; of optional floats it may be a value."""
    dtype = array.dtype if shown_as(array) == "numbers" else None
    return {"missing": ["NaN"]} if dtype is not None and is_optional(dtype) and dtype[VALUE].kind != "f" else {}


def drawn_type(array: Array, name: str) -> str:
    """Return the data type of what is drawn of an array with the data type of a name: of optional values, float64."""
    return "float64" if shown_as(array) == "numbers" and is_optional(array.dtype) else name


def shown_as(array: Array) -> str:
    """Return how an array is drawn: as ``"numbers"``, as ``"complex"`` ones, or as a ``"table"``."""
    try:
        dtype = array.dtype
    except OmnizarrError:
        return "table"
    if is_optional(dtype):  # drawn as float64, which has all its values, and NaN
        inner = dtype[VALUE]
        is_exact = inner.itemsize <= (8 if inner.kind == "f" else 4)
        return "numbers" if inner.kind in "biuf" and is_exact else "table"
    if dtype.kind == "c":
        return "complex" if dtype.itemsize <= 16 else "table"
    if dtype.kind in "biufmM" and dtype.itemsize <= 8:
        return "numbers"
    return "numbers" if dtype.name == "bfloat16" else "table"
