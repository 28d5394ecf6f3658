"""Nodes of every kind support weak references, as caches of other programs do."""

import asyncio
import gc
import pickle
import weakref

import pytest

import omnizarr
from omnizarr import aio, netcdf
from omnizarr.stores import LocalStore, MemoryStore, SQLiteStore, ZipStore


async def awaited(kind):
    store = MemoryStore()
    group = await aio.create_group(store)
    return group if kind == "group" else await group.create_array("x", shape=2, dtype="i4")


def dataset():
    made = netcdf.Dataset({}, "w")
    made.createDimension("n", 2)
    made.createVariable("v", "i4", ("n",))
    made.createGroup("g")
    return made


MADE = {
    "array": lambda _: omnizarr.create_array({}, shape=2, dtype="i4"),
    "group": lambda _: omnizarr.create_group({}),
    "awaited array": lambda _: asyncio.run(awaited("array")),
    "awaited group": lambda _: asyncio.run(awaited("group")),
    "dataset": lambda _: dataset(),
    "variable": lambda _: dataset()["v"],
    "dimension": lambda _: dataset().dimensions["n"],
    "netcdf group": lambda _: dataset()["g"],
    "memory": lambda _: MemoryStore(),
    "directory": LocalStore,
    "archive": lambda path: ZipStore(path / "a.zip", mode="w"),
    "database": lambda path: SQLiteStore(path / "a.sqlite"),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.sampled(4)
def test_weak_reference_lasts_as_long_as_the_object(make, tmp_path):
    made = make(tmp_path)
    reference = weakref.ref(made)
    assert reference() is made
    if hasattr(made, "close"):
        made.close()
    del made
    gc.collect()
    assert reference() is None


def test_node_pickles_though_it_is_referred_to():
    made = MADE["group"](None)
    reference = weakref.ref(made)
    copy = pickle.loads(pickle.dumps(made))
    assert reference() is made
    assert copy.metadata == made.metadata
