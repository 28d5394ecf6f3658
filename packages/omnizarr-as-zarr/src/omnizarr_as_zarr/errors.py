"""The errors of omnizarr under the names of zarr-python, and its warnings."""

from __future__ import annotations

from omnizarr.errors import (
    ArrayIndexError,
    ArrayNotFoundError,
    BaseZarrError,
    BoundsCheckError,
    ContainsArrayAndGroupError,
    ContainsArrayError,
    ContainsGroupError,
    DataTypeValidationError,
    GroupNotFoundError,
    MetadataValidationError,
    NodeNotFoundError,
    NodeTypeValidationError,
    UnknownCodecError,
    VindexInvalidSelectionError,
)
from omnizarr.support.warned import warn as warn

NegativeStepError = ArrayIndexError  # nothing raises it here: steps can be negative


class IncompatibleNodeError(ContainsArrayError, ContainsGroupError, TypeError):
    """There is an array where a group is required, or a group where an array is."""


class ZarrFutureWarning(FutureWarning):
    """Future changes."""


class UnstableSpecificationWarning(ZarrFutureWarning):
    """Written data has no final specification."""


class ZarrDeprecationWarning(DeprecationWarning):
    """Deprecated features."""


class ZarrUserWarning(UserWarning):
    """Probable mistakes."""


class ZarrRuntimeWarning(RuntimeWarning):
    """Arguments or settings without effect."""


__all__ = [
    "ArrayIndexError",
    "ArrayNotFoundError",
    "BaseZarrError",
    "BoundsCheckError",
    "ContainsArrayAndGroupError",
    "ContainsArrayError",
    "ContainsGroupError",
    "DataTypeValidationError",
    "GroupNotFoundError",
    "MetadataValidationError",
    "NegativeStepError",
    "NodeNotFoundError",
    "NodeTypeValidationError",
    "UnknownCodecError",
    "UnstableSpecificationWarning",
    "VindexInvalidSelectionError",
    "ZarrDeprecationWarning",
    "ZarrFutureWarning",
    "ZarrRuntimeWarning",
    "ZarrUserWarning",
]
