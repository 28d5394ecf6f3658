"""Values in plain JSON types, for reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.formats import documents


def plain(value: Any) -> Any:
    """Return a value in plain JSON types."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    try:
        return documents.to_json(value, quotes_nonfinite=True)
    except MetadataError:
        return str(value)
