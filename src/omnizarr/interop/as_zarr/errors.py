"""The errors of omnizarr under the names of zarr-python, and its warnings."""

from __future__ import annotations

import inspect
import warnings

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


class IncompatibleNodeError(ContainsArrayError, ContainsGroupError, TypeError):
    """There is an array where a group is required, or a group where an array is."""


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


def warn(message: str, category: type[Warning]) -> None:
    """Warn of what the first line outside of omnizarr does."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("omnizarr."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


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
