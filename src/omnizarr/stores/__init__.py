"""Keys and bytes: where the documents and the chunks of a hierarchy live."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnizarr.stores import verbs
from omnizarr.stores.base import Buffer, Features, Listing, Request, Span, Store, answers
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.resolve import resolve
from omnizarr.stores.wrap.wrappers import PrefixStore, ReadOnlyStore, WrapperStore

if TYPE_CHECKING:
    from omnizarr.stores.database.lmdb import LMDBStore
    from omnizarr.stores.database.sqlite import SQLiteStore
    from omnizarr.stores.local.zip import ZipStore
    from omnizarr.stores.remote.fsspec import FsspecStore
    from omnizarr.stores.remote.object import ObjectStore
    from omnizarr.stores.remote.references import ReferenceStore
    from omnizarr.stores.wrap.cached import CacheStore
    from omnizarr.stores.wrap.metrics import MetricsStore
    from omnizarr.stores.wrap.synchronized import SynchronizedStore

__all__ = [
    "Buffer",
    "CacheStore",
    "Features",
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
    "answers",
    "resolve",
    "verbs",
]


# By the modules that hold them: they need more than the others do, which takes time to import.
_LATE = {
    "CacheStore": "wrap.cached",
    "FsspecStore": "remote.fsspec",
    "LMDBStore": "database.lmdb",
    "MetricsStore": "wrap.metrics",
    "ObjectStore": "remote.object",
    "ReferenceStore": "remote.references",
    "SQLiteStore": "database.sqlite",
    "SynchronizedStore": "wrap.synchronized",
    "ZipStore": "local.zip",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f"omnizarr.stores.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
