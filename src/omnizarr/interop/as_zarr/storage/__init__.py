"""The stores of zarr-python, upon those of omnizarr."""

from __future__ import annotations

from omnizarr.interop.as_zarr.storage._classes import (
    FsspecStore,
    LocalStore,
    LoggingStore,
    MemoryStore,
    ObjectStore,
    StoreLike,
    StorePath,
    WrapperStore,
    ZipStore,
    make_store,
    make_store_path,
)

GpuMemoryStore = MemoryStore  # which takes what it is given: there is no memory of a GPU here

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
