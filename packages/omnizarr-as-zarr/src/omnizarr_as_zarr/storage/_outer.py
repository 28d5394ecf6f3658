"""From stores of omnizarr to those of zarr-python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnizarr import stores
from omnizarr.nodes.location import StorePath as Place
from omnizarr_as_zarr.abc.store import Store
from omnizarr_as_zarr.storage._below import CalledStore
from omnizarr_as_zarr.storage._classes import FsspecStore, LocalStore, MemoryStore, OwnStore, StorePath, ZipStore

_KINDS: Final[Mapping[str, type[OwnStore]]] = {
    "MemoryStore": MemoryStore,
    "LocalStore": LocalStore,
    "FsspecStore": FsspecStore,
    "ZipStore": ZipStore,
}


def outer_of(inner: stores.Store) -> Store:
    """Return a store of omnizarr as one of zarr-python."""
    if isinstance(inner, CalledStore):
        return inner.outer
    kind = _KINDS.get(type(inner).__name__, OwnStore)
    return kind._upon(inner)  # noqa: SLF001 - made for this


async def make_store(
    store_like: Any, *, mode: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> Store:
    """Return the store that is meant; see `omnizarr.stores.resolve`."""
    return (await make_store_path(store_like, mode=mode, storage_options=storage_options)).store


async def make_store_path(
    store_like: Any,
    *,
    path: str | None = "",
    mode: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> StorePath:
    """Return the place that is meant; see `omnizarr.stores.resolve`."""
    if isinstance(store_like, StorePath):
        return await StorePath.open(store_like.store, f"{store_like.path}/{path or ''}", mode)
    if isinstance(store_like, Store):
        return await StorePath.open(store_like, path or "", mode)
    inner, base = stores.resolve(store_like, mode, storage_options)
    return await StorePath.open(outer_of(inner), f"{base}/{path or ''}", mode)


def place_of(where: Place) -> StorePath:
    """Return a place of omnizarr as one of zarr-python."""
    return StorePath(outer_of(where.store), where.path)
