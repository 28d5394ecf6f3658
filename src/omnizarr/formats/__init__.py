"""On-disk formats: from documents to the model, and back.

Each dialect is one value, `omnizarr.formats.contract.Dialect`. None of its functions does I/O, and translating a
document never needs the codecs that it names.
"""

from __future__ import annotations

from typing import Final

from omnizarr.formats.contract import Consolidated, Dialect
from omnizarr.formats.older import DRAFT2019, DRAFT2020, V0, V1
from omnizarr.formats.v2 import V2
from omnizarr.formats.v3 import V3

DIALECTS: Final[tuple[Dialect, ...]] = (V3, V2, V1, V0, DRAFT2019, DRAFT2020)
"""The dialects in the order of detection."""

__all__ = [
    "DIALECTS",
    "DRAFT2019",
    "DRAFT2020",
    "V0",
    "V1",
    "V2",
    "V3",
    "Consolidated",
    "Dialect",
    "dialect_named",
    "dialects_for",
]

_BY_NAME: Final = {dialect.name: dialect for dialect in DIALECTS}


def dialect_named(name: str) -> Dialect:
    """Return a dialect by the name that a model has."""
    return _BY_NAME[name]


def dialects_for(zarr_format: int | str | None) -> tuple[Dialect, ...]:
    """Return the dialects for ``zarr_format=``; all for None, in the order of detection.

    Raises ValueError if there is none.
    """
    if zarr_format is None:
        return DIALECTS
    wanted = str(zarr_format)
    found = tuple(dialect for dialect in DIALECTS if wanted in {dialect.name, str(dialect.zarr_format)})
    if not found:
        known = ", ".join(str(dialect.zarr_format) for dialect in DIALECTS)
        raise ValueError(f"there is no Zarr format {zarr_format!r}; known: {known}")
    return found
