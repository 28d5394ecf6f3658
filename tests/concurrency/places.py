"""One array in each kind of store, and everything that is done with arrays, for tests that disturb it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import omnizarr
from omnizarr.stores import (
    CacheStore,
    FsspecStore,
    LMDBStore,
    LocalStore,
    MemoryStore,
    MetricsStore,
    ObjectStore,
    ReferenceStore,
    SQLiteStore,
    Store,
    SynchronizedStore,
    ZipStore,
    verbs,
)

LENGTH, CHUNK = 32, 8


def _fsspec(_: str) -> Store:
    import fsspec

    return FsspecStore(fsspec.filesystem("memory", skip_instance_cache=True), f"data-{os.urandom(4).hex()}.zarr")


def _object(_: str) -> Store:
    import obstore.store

    return ObjectStore(obstore.store.MemoryStore())


def _references(path: str) -> Store:
    """Return references to a file for each key of a directory; they cannot be written."""
    create(LocalStore(path))
    keys = list(LocalStore(path).list())
    return ReferenceStore({"version": 1, "refs": {key: [f"{path}/{key}"] for key in keys}}, references=[path])


STORES: dict[str, Callable[[str], Store]] = {
    "memory": lambda _: MemoryStore(),
    "local": LocalStore,
    "zip": lambda path: ZipStore(f"{path}.zip", mode="a"),
    "sqlite": lambda path: SQLiteStore(f"{path}.sqlite"),
    "lmdb": lambda path: LMDBStore(f"{path}.lmdb", map_size=2**22),
    "object": _object,
    "fsspec": _fsspec,
    "cached": lambda path: CacheStore(LocalStore(path), max_age=0),
    "cached on disk": lambda path: CacheStore(MemoryStore(), f"{path}.cache"),
    "synchronized": lambda path: SynchronizedStore(LocalStore(path), threading.Lock()),
    "metrics": lambda _: MetricsStore(MemoryStore()),
    "references": _references,
}


def create(store: Store) -> omnizarr.Array:
    """Create the array that the verbs are for; in a store that cannot be written it exists."""
    if store.read_only:
        return omnizarr.open_array(store, path="a", mode="r")
    values = np.ones(LENGTH, "i4")
    return omnizarr.create_array(store, name="a", data=values, chunks=(CHUNK,), overwrite=True, attributes={"n": 0})


def _open_another(store: Store) -> None:
    """Open and close another store on the same data, where it is not closed with the first one."""
    other = store.with_read_only(read_only=True)
    other.get("a/zarr.json")
    if isinstance(store, SQLiteStore | LMDBStore):
        other.close()


def _opened(store: Store) -> omnizarr.Array:
    return omnizarr.open_array(store, path="a", mode="r" if store.read_only else "r+")


VERBS: dict[str, Callable[[Store, omnizarr.Array], Any]] = {
    "read": lambda _, array: array[...],
    "read parts": lambda _, array: array.get_basic_selection(slice(2, 30), concurrency=2),
    "write": lambda _, array: array.set_basic_selection(..., 2),
    "write parts": lambda _, array: array.set_basic_selection(slice(3, 13), 3),
    "write with threads": lambda _, array: array.set_basic_selection(slice(3, 29), 4, concurrency=3),
    "append": lambda _, array: array.append(np.full(3, 5, "i4")),
    "attributes": lambda _, array: array.attrs.update({"n": 1, "m": "two"}),
    "open": lambda store, _: _opened(store)[:3],
    "create": lambda store, _: omnizarr.create_array(store, name="b", shape=(4,), dtype="i4", overwrite=True),
    "delete": lambda store, _: verbs.delete_prefix(store, "b/"),
    "list": lambda store, _: (list(store.list()), store.list_dir("a/")),
    "set": lambda store, _: (
        store.set("k", b"0"),
        verbs.set_if_absent(store, "l", b"1"),
        verbs.set_partial(store, "k", 1, b"2"),
    ),
    "open another store": lambda store, _: _open_another(store),
}


READS = ("read", "read parts", "open", "list", "open another store")
"""The verbs that change nothing."""


def verbs_of(store: Store) -> tuple[str, ...]:
    """Return the names of the verbs that a store has."""
    return READS if store.read_only else tuple(VERBS)


def works(store: Store) -> None:
    """Read and write through a store what the verbs read and write; raise if something is wrong."""
    array = _opened(store)
    found = array[...]
    assert set(found.tolist()) <= {0, 1, 2, 3, 4, 5, 9}, found
    if store.read_only:
        return
    array[5:27] = 9
    array[0:40] = 9
    assert (array[...][:LENGTH] == 9).all()
    array.attrs.update({"n": 2})
    array.resize((LENGTH,))
    verbs.set_partial(store, "k", 0, b"x")
    store.delete("k")
    store.delete("l")
    verbs.delete_prefix(store, "b/")
    assert omnizarr.open_array(store, path="a", mode="r").attrs["n"] == 2
