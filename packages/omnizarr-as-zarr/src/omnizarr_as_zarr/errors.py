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
    """Future changes."""


class UnstableSpecificationWarning(ZarrFutureWarning):
    """Written data has no final specification."""


class ZarrDeprecationWarning(DeprecationWarning):
    """Deprecated features."""


class ZarrUserWarning(UserWarning):
    """Probable mistakes."""


class ZarrRuntimeWarning(RuntimeWarning):
    """Arguments or settings without effect."""


_OURS = {"omnizarr", "omnizarr_as_zarr"}


def warn(message: str, category: type[Warning]) -> None:
    """Give a warning at the first line outside of omnizarr."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
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
