"""The metadata of nodes in the terms of Zarr v3: metadata, grids, chunk keys and data types, as frozen values."""

from omnizarr.model.metadata import (
    JSON,
    UNDEFINED,
    ArrayMetadata,
    GroupMetadata,
    Loss,
    Metadata,
    Named,
    Note,
    Problem,
    Report,
    Spelling,
    Undefined,
    strict,
    thawed,
)

__all__ = [
    "JSON",
    "UNDEFINED",
    "ArrayMetadata",
    "GroupMetadata",
    "Loss",
    "Metadata",
    "Named",
    "Note",
    "Problem",
    "Report",
    "Spelling",
    "Undefined",
    "strict",
    "thawed",
]
