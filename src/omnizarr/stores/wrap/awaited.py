"""The verbs of wrapper stores as coroutines, upon those of the store below."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from omnizarr.stores.async_verbs import AsyncReader, AsyncVerbs
from omnizarr.stores.base import Buffer, Buffers, Change, Listing, Span, Store, as_prefix
from omnizarr.stores.wrap.logged import LoggingStore
from omnizarr.stores.wrap.metrics import MetricsStore
from omnizarr.stores.wrap.observed import ObservedStore, Spans, length, total
from omnizarr.stores.wrap.wrappers import PrefixStore, ReadOnlyStore, WrapperStore

T = TypeVar("T")


class WrapperVerbs:
    """The verbs of a store that hands each of them on.

    Parameters
    ----------
    store : WrapperStore
        The wrapper.
    below : AsyncVerbs
        The verbs of the store that it wraps.
    """

    def __init__(self, store: WrapperStore, below: AsyncVerbs) -> None:
        self._store = store
        self._below = below

    def _full(self, key: str) -> str:
        """Return the key in the store below."""
        return key

    async def _ask(
        self,
        verb: str,
        key: str,
        span: Spans,
        request: Callable[[], Awaitable[T]],
        measure: Callable[[T], int | None] = lambda _: None,
    ) -> T:
        """Send a request to the store below."""
        return await request()

    async def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value, or the part of it within `span`."""
        return await self._ask("get", key, span, lambda: self._below.get(self._full(key), span), length)

    async def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return several parts of one version of a value."""
        request = lambda: self._below.get_spans(self._full(key), spans)  # noqa: E731 - as all the others
        return await self._ask("get_spans", key, tuple(spans), request, total)

    def pinned(self, key: str) -> AsyncReader | None:
        """Return what reads parts of the version that it met first."""
        read = self._below.pinned(self._full(key))
        if read is None:
            return None

        async def reader(spans: Sequence[Span] | None) -> Buffers | None:
            verb, wanted = ("get", None) if spans is None else ("get_spans", tuple(spans))
            return await self._ask(verb, key, wanted, lambda: read(spans), total)

        return reader

    async def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""
        return await self._ask("exists", key, None, lambda: self._below.exists(self._full(key)))

    async def size(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes."""
        return await self._ask("size", key, None, lambda: self._below.size(self._full(key)))

    async def list_dir(self, prefix: str) -> Listing:
        """Return what stands directly under `prefix`."""
        return await self._ask("list_dir", prefix, None, lambda: self._below.list_dir(prefix))

    async def set(self, key: str, value: Buffer) -> None:
        """Make `value` the value of `key`."""
        self._store.check_writable()
        await self._ask("set", key, None, lambda: self._below.set(self._full(key), value), lambda _: len(value))

    async def update(self, key: str, change: Change) -> None:
        """Replace the value of `key` by what `change` makes of it."""
        self._store.check_writable()
        await self._ask("update", key, None, lambda: self._below.update(self._full(key), change))

    async def delete(self, key: str) -> None:
        """Remove `key` and its value."""
        self._store.check_writable()
        await self._ask("delete", key, None, lambda: self._below.delete(self._full(key)))


class PrefixVerbs(WrapperVerbs):
    """The verbs of what stands under one prefix of a store."""

    _store: PrefixStore

    def _full(self, key: str) -> str:
        return self._store._full(key)  # noqa: SLF001 - two halves of one thing

    async def list_dir(self, prefix: str) -> Listing:
        """Return what stands directly under `prefix`."""
        above = self._store.prefix
        found = await self._below.list_dir(above + as_prefix(prefix))
        return found.below(above)


class ObservedVerbs(WrapperVerbs):
    """The verbs of a store that watches its requests."""

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


WRAPPERS: Final[Mapping[type[Store], Callable[[Any, AsyncVerbs], AsyncVerbs]]] = {
    ReadOnlyStore: WrapperVerbs,
    PrefixStore: PrefixVerbs,
    MetricsStore: ObservedVerbs,
    LoggingStore: ObservedVerbs,
}
"""Wrappers whose verbs can be awaited, if those of the store below can. A subclass may do something else."""
