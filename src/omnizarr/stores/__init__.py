"""Keys and bytes: where the documents and the chunks of a hierarchy live."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnizarr.stores.base import Buffer, Listing, Request, Span, Store
from omnizarr.stores.local import LocalStore
from omnizarr.stores.memory import MemoryStore
from omnizarr.stores.resolve import resolve
from omnizarr.stores.wrappers import PrefixStore, ReadOnlyStore, WrapperStore

if TYPE_CHECKING:
    from omnizarr.stores.fsspec import FsspecStore
    from omnizarr.stores.lmdb import LMDBStore
    from omnizarr.stores.object import ObjectStore
    from omnizarr.stores.sqlite import SQLiteStore
    from omnizarr.stores.zip import ZipStore

__all__ = [
    "Buffer",
    "FsspecStore",
    "LMDBStore",
    "Listing",
    "LocalStore",
    "MemoryStore",
    "ObjectStore",
    "PrefixStore",
    "ReadOnlyStore",
    "Request",
    "SQLiteStore",
    "Span",
    "Store",
    "WrapperStore",
    "ZipStore",
    "resolve",
]


# By the modules that hold them: they need more than the others do, which takes time to import.
_LATE = {
    "FsspecStore": "fsspec",
    "LMDBStore": "lmdb",
    "ObjectStore": "object",
    "SQLiteStore": "sqlite",
    "ZipStore": "zip",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f"omnizarr.stores.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
