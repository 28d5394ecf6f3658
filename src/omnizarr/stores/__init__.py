"""Keys and bytes: where the documents and the chunks of a hierarchy live."""

from omnizarr.stores.base import Buffer, Listing, Request, Span, Store
from omnizarr.stores.local import LocalStore
from omnizarr.stores.memory import MemoryStore

__all__ = [
    "Buffer",
    "Listing",
    "LocalStore",
    "MemoryStore",
    "Request",
    "Span",
    "Store",
]
