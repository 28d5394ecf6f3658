"""Fill values that programs wrote as another kind of JSON than specified: 0 for false, "1" for 1.

Spec: Zarr v3 core, "fill_value"; Zarr v2, "Fill value encoding".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from omnizarr.model import JSON
from omnizarr.model.datatypes.numeric import Bool, Integer
from omnizarr.model.datatypes.structs import Struct

_is_decimal = re.compile(r"-?[0-9]{1,20}").fullmatch


def as_meant(value: JSON, scalars: Any) -> JSON:
    """Return a fill value in its specified form; `value` unchanged if it has this form already, or is invalid.

    - 0 and 1 for booleans: zarr-python reads them.
    - Integers in a string: GDAL, for those beyond the range of its signed integers.
    - Either of these in a field of a record.

    Parameters
    ----------
    value : JSON
        The value in the document.
    scalars : object
        The scalars of a `DataType`.

    Examples
    --------
    >>> from omnizarr.model import datatypes
    >>> as_meant(0, datatypes.parse("bool").scalars), as_meant("1", datatypes.parse("int8").scalars)
    (False, 1)
    """
    match scalars:
        case Bool() if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        case Integer() if isinstance(value, str) and _is_decimal(value):
            return int(value)
        case Struct() if isinstance(value, Mapping):
            meant = dict(value)
            for field in scalars.fields:
                if field.name in meant:
                    meant[field.name] = _of_field(meant[field.name], field.data_type.scalars, len(field.shape))
            return meant if any(meant[name] is not value[name] for name in meant) else value
    return value


def _of_field(value: JSON, scalars: Any, depth: int) -> JSON:
    """Return the fill value of a field that is a sub-array of `depth` dimensions, or of one that is not."""
    if not depth:
        return as_meant(value, scalars)
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    meant = [_of_field(item, scalars, depth - 1) for item in value]
    return value if all(old is new for old, new in zip(value, meant, strict=True)) else meant
