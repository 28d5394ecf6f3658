"""Forms of attributes that the netCDF model cannot express: shapes, and types of HDF5 such as bool or complex.

An attribute keeps its `form` beside its value, which is a vector of a netCDF type or a text: booleans are bytes,
complex numbers are pairs, references are paths, compounds and sequences are JSON, opaque bytes are base64. HDF5 files
and the marks of Zarr layouts store the form; netCDF-C knows nothing of it.

A form is an object of JSON. Its "shape" is a list, which an attribute without any elements (a null dataspace) lacks.
Its "type", if there is one, is "bool", "float16", "complex64", "complex128", "reference", or an object: {"enum":
{label: number}}, {"compound": [[name, type, shape], ...]}, {"opaque": size, "tag": text}, {"vlen": type}.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON
from omnizarr.netcdf import types
from omnizarr.netcdf.header import Attribute, Form

COMPLEX: Final[Mapping[JSON, Any]] = {"complex64": types.FLOAT, "complex128": types.DOUBLE}
_IN_WORDS: Final[Mapping[str, str]] = {
    "bool": "false and true",
    "float16": "numbers",
    "complex64": "pairs of numbers",
    "complex128": "pairs of numbers",
    "reference": "the paths of what is referred to",
    "enum": "the numbers of the labels",
    "compound": "objects",
    "opaque": "text in base64",
    "vlen": "lists",
}
_ONE: Final = frozenset({"_FillValue", "missing_value", "scale_factor", "add_offset", "valid_min", "valid_max"})
"""Attributes that readers of Zarr expect as one number, even if HDF5 has a vector of length 1."""


def kind(attribute: Attribute) -> str:
    """Return the name of an attribute's HDF5 type; "" for types that netCDF has, too."""
    of_type = (attribute.form or {}).get("type", "")
    return str(next(iter(of_type), "")) if is_object(of_type) else str(of_type)


def remark(name: str, attribute: Attribute) -> str:
    """Return what readers see of an attribute whose type netCDF does not have."""
    of_type = kind(attribute)
    return f"attribute {name} is {of_type} in HDF5, which netCDF-C may not show; in Zarr it is {_IN_WORDS[of_type]}"


# -- in JSON ----------------------------------------------------------------------------------------


def is_json(attribute: Attribute) -> bool:
    """Return whether the text of an attribute is the JSON of a value that netCDF has no type for."""
    return kind(attribute) in {"compound", "vlen"}


def shaped(name: str, attribute: Attribute, value: JSON) -> JSON:
    """Return the JSON of an attribute, of which a layout has a scalar or a list, in its shape.

    >>> shaped("a", Attribute(types.INT, np.arange(4), {"shape": [2, 2]}), [0, 1, 2, 3])
    [[0, 1], [2, 3]]
    """
    form = attribute.form
    if form is None or "shape" not in form or isinstance(attribute.value, str):
        return value
    items: list[Any] = list(value) if is_list(value) else [value]
    if form.get("type") == "bool":
        items = [bool(each) for each in items]
    shape = _whole_shape(form)
    if shape == [1] and name in _ONE:
        first: JSON = items[0]
        return first
    array = np.empty(len(items), object)
    array[:] = items
    nested: JSON = array.reshape(shape).tolist()
    return nested


def flat(value: JSON, form: Form) -> JSON:
    """Return a list of what nested lists hold: the inverse of `shaped`.

    >>> flat([[0, 1], [2, 3]], {"shape": [2, 2]})
    [0, 1, 2, 3]
    """
    if not is_list(value) or (is_object(form.get("type")) and "enum" not in form["type"]):  # type: ignore[operator]
        return value
    found: list[JSON] = list(value)
    for _ in range(len(_whole_shape(form)) - 1):
        if not all(is_list(each) for each in found):
            break
        found = [item for each in found for item in each]  # type: ignore[union-attr]
    return found


def _whole_shape(form: Form) -> list[Any]:
    shape = form.get("shape")
    pair = [2] if isinstance(form.get("type"), str) and form["type"] in COMPLEX else []
    return [*(shape if is_list(shape) else []), *pair]


def formed(attribute: Attribute, form: JSON) -> Attribute:
    """Return an attribute with a form; without it if the value is no longer of it, as after a change by others."""
    if not is_object(form):
        return attribute
    made = replace(attribute, form={name: form[name] for name in ("shape", "type") if name in form})
    try:
        return made if _fits(made) else attribute
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, AttributeError):
        return attribute


def _fits(attribute: Attribute) -> bool:
    form, of_type, value = attribute.form or {}, kind(attribute), attribute.value
    shape = form.get("shape")
    is_shape = is_list(shape) and all(type(each) is int and each >= 0 for each in shape)
    if (of_type not in _IN_WORDS and of_type) or not (is_shape or "shape" not in form):
        return False
    if isinstance(value, str):
        return not of_type or array_of(attribute).size >= 0
    if len(value) != (math.prod(_whole_shape(form)) if is_shape else 0):
        return False
    match of_type:
        case "bool":
            return attribute.type is types.BYTE and bool(np.isin(value, (0, 1)).all())
        case "float16":
            return attribute.type is types.FLOAT and value.astype("f2").astype("f4").tobytes() == value.tobytes()
        case "reference":
            return attribute.type is types.STRING
        case "enum":
            return value.dtype.kind in "iu" and all(type(each) is int for each in _inner(form).values())
    return not of_type or attribute.type is COMPLEX.get(of_type)


def _inner(form: Form) -> Any:
    """Return what an object that is a type says first: labels, fields, a size or a type."""
    return next(iter(form["type"].values()))  # type: ignore[union-attr]


# -- in NumPy -----------------------------------------------------------------------------------------


def array_of(attribute: Attribute) -> NDArray[Any]:
    """Return the value of an attribute in its shape, and of a type of NumPy that is as in HDF5.

    References are their paths. Raises ValueError, TypeError or KeyError if the text of a compound, a sequence or
    opaque bytes is none.

    >>> array_of(Attribute(types.DOUBLE, np.arange(2.0), {"shape": [], "type": "complex128"}))
    array(0.+1.j)
    """
    form, of_type, value = attribute.form or {}, kind(attribute), attribute.value
    shape: Any = form.get("shape", [0])
    if of_type == "opaque":
        dtype = np.dtype(f"V{int(_inner(form))}")
        return np.frombuffer(base64.b64decode(str(value), validate=True), dtype).reshape(shape)
    if of_type in {"compound", "vlen"}:
        items: Any = json.loads(str(value)) if "shape" in form else []
        for _ in shape[:-1]:
            items = [item for each in items for item in each]
        items = items if shape else [items]
        if of_type == "compound":
            dtype = dtype_of(_inner(form))
            return np.array([_record(each, dtype) for each in items], dtype).reshape(shape)
        arrays = np.empty(len(items), object)
        arrays[:] = [np.array(each, np.dtype(_inner(form))) for each in items] if len(items) else []
        return arrays.reshape(shape)
    array = np.asarray(value)
    if of_type in {"bool", "float16"}:
        array = array.astype(of_type)
    elif of_type in COMPLEX:
        array = np.ascontiguousarray(array).view(of_type)
    return array.reshape(shape)


def _record(item: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.subdtype is not None:
        return [_record(each, dtype.subdtype[0]) for each in item]
    if dtype.fields is not None:
        return tuple(_record(item[name], dtype[name]) for name in dtype.names or ())
    return item.encode() if dtype.kind == "S" else item


def items_of(value: Any) -> Any:
    """Return a value of NumPy as JSON: records are objects. Raises UnicodeDecodeError for bytes that are no text.

    >>> items_of(np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]))
    [{'a': 1, 'b': 2.5}]
    """
    if isinstance(value, np.ndarray):
        return [items_of(each) for each in value] if value.ndim else items_of(value[()])
    if isinstance(value, np.void):
        return {name: items_of(value[name]) for name in value.dtype.names or ()}
    if isinstance(value, bytes):
        return value.decode()
    return value.item()


def fields_of(dtype: np.dtype[Any]) -> JSON:
    """Return a compound as JSON. Raises TypeError for fields that are not numbers, text or compounds of them."""
    fields: list[JSON] = []
    for name in dtype.names or ():
        inner, shape = dtype[name].base, list(dtype[name].shape)
        if inner.names is None and (inner.kind not in "iufS" or (inner.itemsize > 8 and inner.kind != "S")):
            raise TypeError(f"field {name} of type {inner}")
        fields.append(
            [name, inner.newbyteorder("<").str if inner.names is None else fields_of(inner), *map(int, shape)]
        )
    return fields


def dtype_of(fields: Any) -> np.dtype[Any]:
    """Return the type of NumPy that is a compound: the inverse of `fields_of`, in the byte order of the machine."""
    return np.dtype(
        [
            (name, np.dtype(inner).newbyteorder("=") if isinstance(inner, str) else dtype_of(inner), tuple(shape))
            for name, inner, *shape in fields
        ]
    )
