"""Stores, under the name that users of zarr-python look for them."""

from omnizarr.hierarchy import StorePath
from omnizarr.stores import LocalStore, MemoryStore, PrefixStore, ReadOnlyStore, Store, WrapperStore, ZipStore, resolve

__all__ = [
    "LocalStore",
    "MemoryStore",
    "PrefixStore",
    "ReadOnlyStore",
    "Store",
    "StorePath",
    "WrapperStore",
    "ZipStore",
    "resolve",
]
