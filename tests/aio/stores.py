"""Stores that the tests of asynchronous nodes run on, and a counter of requests."""

import asyncio
from collections import Counter

import obstore
import obstore.store

from omnizarr.stores import LocalStore, MemoryStore, ObjectStore, ZipStore
from omnizarr.stores.remote import object_coroutines
from tests.fakes import FaultyStore


def objects(**options):
    return ObjectStore(obstore.store.MemoryStore(), prefix="some/where", **options)


KINDS = {
    "memory": lambda _: MemoryStore(),
    "local": lambda path: LocalStore(path / "values"),
    "zip": lambda path: ZipStore(path / "values.zip", mode="a"),
    "slow": lambda _: FaultyStore(MemoryStore(), delay=0.0005, concurrency=8),
    "object": lambda _: objects(),
}


def run(coroutine):
    """Run a coroutine, and let no task of it be left behind."""

    async def main():
        try:
            return await asyncio.wait_for(coroutine, 60)
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert not others, "tasks are left behind"

    return asyncio.run(main())


class Counting:
    """Stands for obstore, counts what coroutines ask of it, and lets them take their time or fail."""

    def __init__(self, monkeypatch, delay=0.0):
        self.asked = Counter()
        self.log = []
        self.delay = delay
        self.in_flight = self.most = 0
        self.failures = {}
        monkeypatch.setattr(object_coroutines, "obstore", self)

    def __getattr__(self, name):
        assert name.endswith("_async")
        function = getattr(obstore, name)

        async def ask(store, path, *args, **kwargs):
            self.asked[name.removesuffix("_async")] += 1
            self.log.append((name.removesuffix("_async"), path))
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            try:
                await asyncio.sleep(self.delay)
                if path in self.failures:
                    raise self.failures[path]
                return await function(store, path, *args, **kwargs)
            finally:
                self.in_flight -= 1

        return ask

    @property
    def total(self):
        return self.asked.total()
