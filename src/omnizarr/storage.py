"""Stores, under the module name that zarr-python uses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from omnizarr import stores
from omnizarr.nodes.location import StorePath
from omnizarr.stores import (
    Buffer,
    Features,
    LocalStore,
    MemoryStore,
    PrefixStore,
    ReadOnlyStore,
    Store,
    WrapperStore,
    resolve,
)

if TYPE_CHECKING:
    from omnizarr.nodes.lazy.store import LazyStore
    from omnizarr.stores import (
        CacheStore,
        FsspecStore,
        LMDBStore,
        MetricsStore,
        ObjectStore,
        ReferenceStore,
        SQLiteStore,
        SynchronizedStore,
        ZipStore,
    )
    from omnizarr.stores.wrap.logged import LoggingStore
    from omnizarr.tools.translate.translated import TranslatedStore

StoreLike: TypeAlias = Store | StorePath | str | os.PathLike[str] | Mapping[str, Buffer] | None
"""What you can pass as a store: a store, a place in one, a path, a URL, a dictionary, or None (a new store in memory).

Stores of other libraries are accepted without being named here, because they need not be installed: stores of obstore
and of zarr-python 3 (with its ``StorePath``), filesystems of fsspec, ``FSMap`` and ``UPath``. See `resolve`.
"""

__all__ = [
    "CacheStore",
    "Features",
    "FsspecStore",
    "LMDBStore",
    "LazyStore",
    "LocalStore",
    "LoggingStore",
    "MemoryStore",
    "MetricsStore",
    "ObjectStore",
    "PrefixStore",
    "ReadOnlyStore",
    "ReferenceStore",
    "SQLiteStore",
    "Store",
    "StoreLike",
    "StorePath",
    "SynchronizedStore",
    "TranslatedStore",
    "WrapperStore",
    "ZipStore",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name == "LoggingStore":  # slow to import, and rarely used
        return import_module("omnizarr.stores.wrap.logged").LoggingStore
    if name == "LazyStore":
        return import_module("omnizarr.nodes.lazy.store").LazyStore
    if name == "TranslatedStore":
        return import_module("omnizarr.tools.translate.translated").TranslatedStore
    if name in __all__:
        return getattr(stores, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
