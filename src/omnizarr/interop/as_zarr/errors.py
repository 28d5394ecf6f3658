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

NegativeStepError = ArrayIndexError  # nothing raises it here: steps can be negative


class ZarrFutureWarning(FutureWarning):
    """What will change."""


class UnstableSpecificationWarning(ZarrFutureWarning):
    """What is written has no specification that stays."""


class ZarrDeprecationWarning(DeprecationWarning):
    """What should not be used any more."""


class ZarrUserWarning(UserWarning):
    """What is probably not meant."""


class ZarrRuntimeWarning(RuntimeWarning):
    """What is without effect."""


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
