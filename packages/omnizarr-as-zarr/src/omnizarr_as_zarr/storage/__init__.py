"""The stores of zarr-python, based on those of omnizarr."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from omnizarr_as_zarr.errors import ZarrDeprecationWarning, warn
from omnizarr_as_zarr.storage._classes import (
    FsspecStore,
    LocalStore,
    LoggingStore,
    MemoryStore,
    ObjectStore,
    StoreLike,
    StorePath,
    WrapperStore,
    ZipStore,
)
from omnizarr_as_zarr.storage._outer import make_store, make_store_path

GpuMemoryStore = MemoryStore  # which accepts anything: omnizarr does not use the memory of GPUs

__all__ = [
    "FsspecStore",
    "GpuMemoryStore",
    "LocalStore",
    "LoggingStore",
    "MemoryStore",
    "ObjectStore",
    "StoreLike",
    "StorePath",
    "WrapperStore",
    "ZipStore",
    "make_store",
    "make_store_path",
]


class _Verbose(ModuleType):
    """A module that warns of a setting that it had in zarr-python 2."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "default_compressor":
            warn(
                "setting zarr.storage.default_compressor is deprecated, and has no effect; give `compressors` to the "
                "functions that create arrays",
                ZarrDeprecationWarning,
            )
        else:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Verbose
