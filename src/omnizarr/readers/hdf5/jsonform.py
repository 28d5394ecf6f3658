"""Values of attributes for documents of Zarr, and for programs that know the types of netCDF."""

from __future__ import annotations

import base64
from typing import Any, Final

import numpy as np

from omnizarr.formats.conventions import fill_values
from omnizarr.model import JSON
from omnizarr.readers.hdf5 import elements
from omnizarr.readers.hdf5.attributes import Attribute
from omnizarr.readers.hdf5.datatypes import Datatype

_FILL: Final = "_FillValue"
_DEPTH: Final = 64


def typed(value: Any, attribute: Attribute) -> Any:
    """Return a value as netCDF4-python does: a text, a number of NumPy for one element, a vector, a list of texts."""
    shape = attribute.dataspace.shape
    if shape is None:
        return "" if attribute.datatype.kind == "string" or attribute.datatype.is_text else np.empty(0)
    if value.size == 1 and value.ndim <= 1:
        one = value.ravel()[0]
        return one.replace("\0", "") if isinstance(one, str) else one
    return value.tolist() if value.dtype == object else value


def of_attribute(value: Any, attribute: Attribute, *, is_netcdf: bool, dtype: np.dtype[Any] | None) -> JSON:
    """Return the JSON of an attribute.

    Parameters
    ----------
    value : array
        Its elements, in its shape.
    attribute : Attribute
    is_netcdf : bool
        Whether a library for netCDF has written the file: vectors of one element are then scalars.
    dtype : dtype, optional
        Of the dataset, for its ``_FillValue``.
    """
    shape, datatype = attribute.dataspace.shape, attribute.datatype
    if shape is None:
        return "" if datatype.kind == "string" or datatype.is_text else []
    if attribute.name == _FILL and value.size == 1 and dtype is not None and dtype.kind in "iufbcS":
        try:
            return fill_values.encode(np.asarray(value.ravel()[0]).astype(dtype))
        except (TypeError, ValueError, OverflowError):
            pass
    if shape == () or (is_netcdf and shape == (1,)):
        return _json(value.reshape(-1)[0] if value.ndim <= 1 else value.reshape(value.shape[len(shape) :]), datatype, 0)
    return _json(value, datatype, 0)


def of_element(value: Any, datatype: Datatype) -> JSON:
    """Return the JSON of an element, whose texts are all Unicode."""
    if datatype.kind == "vlen" and not datatype.is_text and datatype.base is not None:
        return [_json(each, datatype.base, 1) for each in value]
    return _json(value, datatype, 0)


def _json(value: Any, datatype: Datatype, depth: int) -> JSON:
    if depth > _DEPTH:
        return None
    if isinstance(value, np.ndarray) and value.ndim:
        inner = datatype.base if datatype.kind == "vlen" and not datatype.is_text and depth else datatype
        return [_json(each, inner or datatype, depth + 1) for each in value]
    if datatype.kind == "array" and datatype.base is not None:
        return _json(value, datatype.base, depth)
    if isinstance(value, np.void) and value.dtype.names:
        value = tuple(value[name] for name in value.dtype.names)
    if isinstance(value, tuple):
        parts = zip(value, datatype.fields, strict=False)
        return {name: _json(each, of_type, depth + 1) for each, (name, _, of_type) in parts}
    if isinstance(value, np.void | bytes):
        raw = value if isinstance(value, bytes) else value.tobytes()
        if datatype.kind == "string":
            return elements.text(raw, datatype)
        return base64.b64encode(raw).decode("ascii")
    if isinstance(value, complex | np.complexfloating):
        return [float(value.real), float(value.imag)]
    if isinstance(value, np.generic):
        plain: JSON = value.item()
        return plain
    if depth and isinstance(value, str) and datatype.kind == "string" and datatype.padding == 0:
        return value.split("\0")[0]  # one text of netCDF keeps its NULs
    found: JSON = value
    return found
