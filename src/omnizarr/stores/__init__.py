"""Keys and bytes: where the documents and the chunks of a hierarchy live."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnizarr.stores.base import Buffer, Listing, Request, Span, Store
from omnizarr.stores.local import LocalStore
from omnizarr.stores.memory import MemoryStore
from omnizarr.stores.resolve import resolve
from omnizarr.stores.wrappers import PrefixStore, ReadOnlyStore, WrapperStore

if TYPE_CHECKING:
    from omnizarr.stores.cached import CacheStore
    from omnizarr.stores.fsspec import FsspecStore
    from omnizarr.stores.lmdb import LMDBStore
    from omnizarr.stores.metrics import MetricsStore
    from omnizarr.stores.object import ObjectStore
    from omnizarr.stores.references import ReferenceStore
    from omnizarr.stores.sqlite import SQLiteStore
    from omnizarr.stores.synchronized import SynchronizedStore
    from omnizarr.stores.zip import ZipStore

__all__ = [
    "Buffer",
    "CacheStore",
    "FsspecStore",
    "LMDBStore",
    "Listing",
    "LocalStore",
    "MemoryStore",
    "MetricsStore",
    "ObjectStore",
    "PrefixStore",
    "ReadOnlyStore",
    "ReferenceStore",
    "Request",
    "SQLiteStore",
    "Span",
    "Store",
    "SynchronizedStore",
    "WrapperStore",
    "ZipStore",
    "resolve",
]


# By the modules that hold them: they need more than the others do, which takes time to import.
_LATE = {
    "CacheStore": "cached",
    "FsspecStore": "fsspec",
    "LMDBStore": "lmdb",
    "MetricsStore": "metrics",
    "ObjectStore": "object",
    "ReferenceStore": "references",
    "SQLiteStore": "sqlite",
    "SynchronizedStore": "synchronized",
    "ZipStore": "zip",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f"omnizarr.stores.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
