"""The asynchronous methods of wrapper stores, based on those of the wrapped store."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from omnizarr.stores.async_verbs import AsyncReader, AsyncVerbs
from omnizarr.stores.base import Buffer, Buffers, Change, Listing, Reader, Span, Stamped, Store, as_prefix
from omnizarr.stores.wrap.cached import CacheStore, Steps, reader_of
from omnizarr.stores.wrap.logged import LoggingStore
from omnizarr.stores.wrap.metrics import MetricsStore
from omnizarr.stores.wrap.observed import ObservedStore, Spans, length, total
from omnizarr.stores.wrap.wrappers import PrefixStore, ReadOnlyStore, WrapperStore

T = TypeVar("T")


class WrapperVerbs:
    """The methods of a store that passes requests on.

    Parameters
    ----------
    store : WrapperStore
        The wrapper.
    below : AsyncVerbs
        The asynchronous methods of the wrapped store.
    """

    def __init__(self, store: WrapperStore, below: AsyncVerbs) -> None:
        self._store = store
        self._below = below

    def _full(self, key: str) -> str:
        """Return the key in the wrapped store."""
        return key

    async def _ask(
        self,
        verb: str,
        key: str,
        span: Spans,
        request: Callable[[], Awaitable[T]],
        measure: Callable[[T], int | None] = lambda _: None,
    ) -> T:
        """Send a request to the wrapped store."""
        return await request()

    async def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value, or the part of it within `span`."""
        return await self._ask("get", key, span, lambda: self._below.get(self._full(key), span), length)

    async def get_within(self, key: str, most: int) -> Buffer | None:
        """Return the value, unless it has more than `most` bytes."""
        return await self._ask("get", key, None, lambda: self._below.get_within(self._full(key), most), length)

    async def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return several parts of one version of a value."""
        request = lambda: self._below.get_spans(self._full(key), spans)  # noqa: E731 - as all the others
        return await self._ask("get_spans", key, tuple(spans), request, total)

    def pinned(self, key: str) -> AsyncReader | None:
        """Return a function that reads parts of the version that it read first."""
        read = self._below.pinned(self._full(key))
        if read is None:
            return None

        async def reader(spans: Sequence[Span] | None) -> Buffers | None:
            verb, wanted = ("get", None) if spans is None else ("get_spans", tuple(spans))
            return await self._ask(verb, key, wanted, lambda: read(spans), total)

        return reader

    async def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Return value and stamp in one request; None if the stamp is still `unless`."""
        return await self._ask(
            "get_stamped",
            key,
            None,
            lambda: self._below.get_stamped(self._full(key), unless),
            lambda found: None if found is None else length(found.value),
        )

    async def get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Return what `get_stamped` does, unless the value has more than `most` bytes."""
        return await self._ask(
            "get_stamped",
            key,
            None,
            lambda: self._below.get_stamped_within(self._full(key), unless, most),
            lambda found: None if found is None else length(found.value),
        )

    async def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""
        return await self._ask("exists", key, None, lambda: self._below.exists(self._full(key)))

    async def size(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes."""
        return await self._ask("size", key, None, lambda: self._below.size(self._full(key)))

    async def list_dir(self, prefix: str) -> Listing:
        """Return the keys and prefixes directly under `prefix`."""
        return await self._ask("list_dir", prefix, None, lambda: self._below.list_dir(prefix))

    async def set(self, key: str, value: Buffer) -> None:
        """Set the value of `key`."""
        self._store.check_writable()
        await self._ask("set", key, None, lambda: self._below.set(self._full(key), value), lambda _: len(value))

    async def update(self, key: str, change: Change) -> None:
        """Replace the value of `key` by the result of `change`."""
        self._store.check_writable()
        await self._ask("update", key, None, lambda: self._below.update(self._full(key), change))

    async def delete(self, key: str) -> None:
        """Remove `key` and its value."""
        self._store.check_writable()
        await self._ask("delete", key, None, lambda: self._below.delete(self._full(key)))


class PrefixVerbs(WrapperVerbs):
    """The methods of a `PrefixStore`."""

    _store: PrefixStore

    def _full(self, key: str) -> str:
        return self._store._full(key)  # noqa: SLF001 - two halves of one thing

    async def list_dir(self, prefix: str) -> Listing:
        """Return the keys and prefixes directly under `prefix`."""
        above = self._store.prefix
        found = await self._below.list_dir(above + as_prefix(prefix))
        return found.below(above)


class ObservedVerbs(WrapperVerbs):
    """The methods of a store that observes its requests."""

    _store: ObservedStore

    async def _ask(
        self,
        verb: str,
        key: str,
        span: Spans,
        request: Callable[[], Awaitable[T]],
        measure: Callable[[T], int | None] = lambda _: None,
    ) -> T:
        begun = self._store._begin(verb, key, span)  # noqa: SLF001 - two halves of one thing
        moved: int | None = None
        failed = True
        try:
            result = await request()
            moved = measure(result)
            failed = False
        finally:
            self._store._end(begun, moved, time.perf_counter() - begun.start, failed=failed)  # noqa: SLF001
        return result


class CacheVerbs(WrapperVerbs):
    """The methods of a cache, from its methods in steps, with coroutines for the requests."""

    _store: CacheStore

    async def _run(self, steps: Steps[T]) -> T:
        try:
            verb, *args = next(steps)
            while True:
                try:
                    answer = await getattr(self._below, verb)(*args)
                except BaseException as error:  # noqa: BLE001 - the verb says what becomes of it
                    verb, *args = steps.throw(error)
                else:
                    verb, *args = steps.send(answer)
        except StopIteration as end:
            return cast("T", end.value)

    async def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the cached value, or ask the store."""
        return await self._run(self._store.get_steps(key, span))

    async def get_within(self, key: str, most: int) -> Buffer | None:
        """Return the cached value, or ask the store."""
        return await self._run(self._store.get_within_steps(key, most))

    async def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Cut the parts from the cached value, or ask the store."""
        return await self._run(self._store.get_spans_steps(key, spans))

    async def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Return the cached value, or ask the store."""
        return await self._run(self._store.get_stamped_steps(key, unless))

    def pinned(self, key: str) -> AsyncReader | None:
        """Return a function that reads parts of the cached value, or of one version in the store."""
        store, below = self._store, self._below.pinned(key)
        known: list[Reader] = []
        has_begun = False

        async def reader(spans: Sequence[Span] | None) -> Buffers | None:
            nonlocal has_begun
            if not has_begun and (spans is None or store.keeps(key)):
                known.append(reader_of(await self.get(key)))
            has_begun = True
            if known:
                return known[0](spans)
            if spans is not None and store.is_immutable:
                return await self.get_spans(key, spans)
            return None if below is None else await below(spans)

        return None if below is None else reader

    async def exists(self, key: str) -> bool:
        """Return what is known, or ask the store."""
        return await self._run(self._store.exists_steps(key))

    async def size(self, key: str) -> int | None:
        """Return what is known, or ask the store."""
        return await self._run(self._store.size_steps(key))

    async def set(self, key: str, value: Buffer) -> None:
        """Write to the store, and cache the value if it can be used without asking."""
        await self._run(self._store.set_steps(key, value))

    async def update(self, key: str, change: Change) -> None:
        """Change the value in the store. The cached value may be stale."""
        try:
            await super().update(key, change)
        finally:
            self._store.forget(key)

    async def delete(self, key: str) -> None:
        """Delete in the store."""
        try:
            await super().delete(key)
        finally:
            self._store.forget(key)


def _of_cache(store: CacheStore, below: AsyncVerbs) -> AsyncVerbs | None:
    """Return the asynchronous methods of a cache in memory; a cache in a directory or a store needs threads."""
    return CacheVerbs(store, below) if store.cache is None else None


WRAPPERS: Final[Mapping[type[Store], Callable[[Any, AsyncVerbs], AsyncVerbs | None]]] = {
    ReadOnlyStore: WrapperVerbs,
    PrefixStore: PrefixVerbs,
    MetricsStore: ObservedVerbs,
    LoggingStore: ObservedVerbs,
    CacheStore: _of_cache,
}
"""Wrappers with asynchronous methods, if the wrapped store has them. Subclasses may behave differently."""
