"""Arrays of remote stores, read through a cache on a local disk: `omnizarr.stores.CacheStore`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from omnizarr.data.sources import Windows
from omnizarr.errors import SettingError, StoreError
from omnizarr.nodes.array import Array
from omnizarr.nodes.lazy import tree
from omnizarr.nodes.lazy.deferred import Deferred
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.stores import Store, urls
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.redaction import redact
from omnizarr.stores.wrap.cached import CacheStore
from omnizarr.stores.wrap.wrappers import WrapperStore

_OPTIONS: Final = ("path", "max_bytes", "max_age")
_MAX_BYTES: Final = 10_000_000_000


class Caches:
    """The caches of the stores of a loader, in one directory.

    Parameters
    ----------
    cache : path, Store or mapping
        The directory, or ``path`` with other options of `CacheStore`.

    Raises
    ------
    SettingError, StoreError
    """

    def __init__(self, cache: Any) -> None:
        given = dict(cache) if isinstance(cache, Mapping) else {"path": cache}
        unknown = [name for name in given if name not in _OPTIONS]
        if unknown:
            raise SettingError(
                "a cache has no such option", found=", ".join(map(str, unknown)), expected=", ".join(_OPTIONS)
            )
        self._place = given.get("path")
        if isinstance(self._place, str | os.PathLike) and os.fspath(self._place):
            if urls.scheme_of(str(self._place)) is not None:
                raise SettingError(
                    "a cache needs a directory on a local disk", found=redact(str(self._place)), expected="a path"
                )
            try:
                self._place = Path(self._place).expanduser().absolute()
                self._place.mkdir(parents=True, exist_ok=True)
            except (OSError, RuntimeError) as error:  # RuntimeError: "~" of an unknown user
                raise StoreError(
                    "the directory of the cache cannot be made",
                    store=str(self._place),
                    found=str(error),
                    remedy="name a directory on a local disk that you can write to",
                ) from error
        elif not isinstance(self._place, Store):
            raise SettingError(
                "a cache needs a directory",
                found=repr(self._place),
                expected='a path, or options such as {"path": "cache", "max_bytes": "100GB"}',
            )
        self._options = {"max_bytes": _MAX_BYTES, "max_age": "once", **given}
        del self._options["path"]
        self._made: dict[Store, CacheStore] = {}
        CacheStore(MemoryStore(), self._place, **self._options)  # raises what is wrong with the options

    def through(self, source: Any) -> Any:
        """Return a source of samples whose remote arrays are read through the cache."""
        if isinstance(source, Windows):
            return replace(source, array=self.through(source.array))
        if isinstance(source, Array):
            return self._array(source)
        if isinstance(source, LazyArray):
            return LazyArray(tree.fold(source._node, self._node), source.dimension_names, source.notes)  # noqa: SLF001
        if not isinstance(source, np.ndarray) and hasattr(source, "read") and hasattr(source, "lazy"):
            return self.through(source.lazy[...])
        return source

    def counts(self) -> tuple[int, int]:
        """Return how many values were found in the cache, and how many the stores have sent."""
        infos = [each.info() for each in self._made.values()]
        return sum(each.hits + each.revalidated for each in infos), sum(each.misses for each in infos)

    def _array(self, array: Array) -> Array:
        where = array._where  # noqa: SLF001 - a part of Array
        cached = self._store(where.store)
        if cached is where.store:
            return array
        place = replace(where, store=cached)
        return Array(place, array._metadata, array._config, array._snapshot)  # noqa: SLF001

    def _store(self, store: Store) -> Store:
        if store.features.concurrency <= 1 or _is_cached(store):
            return store
        found = self._made.get(store)
        if found is None:
            found = self._made[store] = CacheStore(store, self._place, **self._options)
        return found

    def _node(self, node: tree.Node, below: list[tree.Node]) -> tree.Node:
        if isinstance(node, tree.Leaf):
            source = node.source
            if isinstance(source, Deferred) and source.is_remote:
                node = source.leaf()
                source = node.source
            return replace(node, source=self._array(source)) if isinstance(source, Array) else node
        if isinstance(node, tree.Joined):
            return replace(node, parts=tuple(below), known={})
        return node if isinstance(node, tree.Filled) else replace(node, base=below[0])


def _is_cached(store: Store) -> bool:
    while isinstance(store, WrapperStore):
        if isinstance(store, CacheStore):
            return True
        store = store.store
    return False
