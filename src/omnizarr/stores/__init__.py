"""Keys and bytes: where the documents and the chunks of a hierarchy live."""

from omnizarr.stores.base import Buffer, Listing, Request, Span, Store
from omnizarr.stores.local import LocalStore
from omnizarr.stores.memory import MemoryStore
from omnizarr.stores.resolve import resolve
from omnizarr.stores.wrappers import PrefixStore, ReadOnlyStore, WrapperStore
from omnizarr.stores.zip import ZipStore

__all__ = [
    "Buffer",
    "Listing",
    "LocalStore",
    "MemoryStore",
    "PrefixStore",
    "ReadOnlyStore",
    "Request",
    "Span",
    "Store",
    "WrapperStore",
    "ZipStore",
    "resolve",
]
