"""The base of stores that observe the requests to another store."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from omnizarr.stores.base import Buffer, Buffers, Listing, Reader, Request, Span, Stamped, Store
from omnizarr.stores.wrap.wrappers import WrapperStore

T = TypeVar("T")

Spans: TypeAlias = Span | tuple[Span, ...] | None
"""The requested part or parts of a value; None: all of it, or nothing is read."""


class Asked(NamedTuple):
    """A request in flight."""

    verb: str
    key: str
    span: Spans
    start: float
    """By `time.perf_counter`."""


class ObservedStore(WrapperStore):
    """A store that calls `_begin` before and `_end` after each request that it passes on; a base class.

    Each key of `get_many`, `set_many` and `delete_many` is a request of its own: a `get`, `set` or `delete`. So
    is each call of the function that `pinned` returns: a `get` or `get_spans`. A listing begins with its first
    key, and ends with the last.
    """

    lists_everything = WrapperStore.lists_everything

    def _begin(self, verb: str, key: str, span: Spans = None) -> Asked:
        """Note that a request begins. An exception here prevents the request, and `_end` is not called."""
        return Asked(verb, key, span, time.perf_counter())

    def _end(self, asked: Asked, moved: int | None, seconds: float, *, failed: bool) -> None:
        """Note that a request has ended. `moved` is the number of bytes; None if no value was transferred."""

    def _target(self, key: str) -> Store:
        """Return the store that answers requests for a key."""
        return self.store

    def _run(
        self,
        asked: tuple[str, str, Spans],
        request: Callable[[], T],
        measure: Callable[[T], int | None] = lambda _: None,
    ) -> T:
        begun = self._begin(*asked)
        moved: int | None = None
        failed = True
        try:
            result = request()
            moved = measure(result)
            failed = False
        finally:
            self._end(begun, moved, time.perf_counter() - begun.start, failed=failed)
        return result

    def _listed(self, verb: str, prefix: str, begin: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Yield keys. The time that the caller takes between them does not count."""
        begun = self._begin(verb, prefix)
        seconds, start, failed = 0.0, begun.start, True
        try:
            keys = begin()
            while (key := next(keys, None)) is not None:
                seconds += time.perf_counter() - start
                yield key
                start = time.perf_counter()
            seconds += time.perf_counter() - start
            failed = False
        except GeneratorExit:  # the caller stops early
            failed = False
            raise
        finally:
            self._end(begun, None, seconds, failed=failed)

    # -- reading ------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Observe the request and pass it on."""
        return self._run(("get", key, span), lambda: self._target(key).get(key, span), length)

    def get_within(self, key: str, most: int) -> Buffer | None:
        """Observe the request and pass it on."""
        return self._run(("get", key, None), lambda: self._target(key).get_within(key, most), length)

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Pass requests on, and observe each from when it is taken until its value arrives."""
        under_way: dict[int, Asked] = {}

        def taken() -> Iterator[Request]:
            for position, (key, span) in enumerate(requests):
                under_way[position] = self._begin("get", key, span)
                yield key, span

        try:
            for position, value in self.store.get_many(taken()):
                begun = under_way.pop(position)
                self._end(begun, length(value), time.perf_counter() - begun.start, failed=False)
                yield position, value
        finally:
            for begun in under_way.values():
                self._end(begun, None, time.perf_counter() - begun.start, failed=True)

    def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Observe the request and pass it on."""
        return self._run(("get_spans", key, tuple(spans)), lambda: self._target(key).get_spans(key, spans), total)

    def read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Observe the request and pass it on."""
        return self._run(
            ("read_into", key, (start, start + out.nbytes)),
            lambda: self._target(key).read_into(key, out, start),
            lambda size: None if size is None else min(size, out.nbytes),
        )

    def has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Observe each request."""
        return Store.has_any(self, prefix, names)

    def exists(self, key: str) -> bool:
        """Observe the request and pass it on."""
        return self._run(("exists", key, None), lambda: self._target(key).exists(key))

    def size(self, key: str) -> int | None:
        """Observe the request and pass it on."""
        return self._run(("size", key, None), lambda: self._target(key).size(key))

    def stamp(self, key: str) -> Hashable | None:
        """Observe the request and pass it on."""
        return self._run(("stamp", key, None), lambda: self._target(key).stamp(key))

    def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Observe one request, which transfers no bytes if the stamp is the same."""
        return self._run(
            ("get_stamped", key, None),
            lambda: self._target(key).get_stamped(key, unless),
            lambda found: None if found is None else length(found.value),
        )

    def get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Observe the request and pass it on."""
        return self._run(
            ("get_stamped", key, None),
            lambda: self._target(key).get_stamped_within(key, unless, most),
            lambda found: None if found is None else length(found.value),
        )

    def pinned(self, key: str) -> Reader | None:
        """Pass the request on, and observe each call of the returned function."""
        read = self._target(key).pinned(key)
        if read is None:
            return None

        def watched(spans: Sequence[Span] | None) -> Buffers | None:
            asked = ("get", key, None) if spans is None else ("get_spans", key, tuple(spans))
            return self._run(asked, lambda: read(spans), total)

        return watched

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Observe the request and pass it on."""
        self._run(("set", key, None), lambda: super(ObservedStore, self).set(key, value), lambda _: len(value))

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Set each with `set`."""
        Store.set_many(self, items)

    def set_if_absent(self, key: str, value: Buffer) -> bool:
        """Observe the request and pass it on."""
        return self._run(
            ("set_if_absent", key, None),
            lambda: super(ObservedStore, self).set_if_absent(key, value),
            lambda was_set: len(value) if was_set else 0,
        )

    def set_partial(self, key: str, start: int, value: Buffer) -> None:
        """Observe the request and pass it on."""
        self._run(
            ("set_partial", key, (start, start + len(value))),
            lambda: super(ObservedStore, self).set_partial(key, start, value),
            lambda _: len(value),
        )

    def delete(self, key: str) -> None:
        """Observe the request and pass it on."""
        self._run(("delete", key, None), lambda: super(ObservedStore, self).delete(key))

    def delete_many(self, keys: Iterable[str]) -> None:
        """Delete each with `delete`."""
        Store.delete_many(self, keys)

    def delete_prefix(self, prefix: str) -> None:
        """Observe the request and pass it on."""
        self._run(("delete_prefix", prefix, None), lambda: super(ObservedStore, self).delete_prefix(prefix))

    # -- listing ------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """Observe the request and pass it on."""
        return self._listed("list", "", self.store.list)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Observe the request and pass it on."""
        return self._listed("list_prefix", prefix, lambda: self.store.list_prefix(prefix))

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Observe the request and pass it on."""
        return self._listed("list_sizes", prefix, lambda: self.store.list_sizes(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Observe the request and pass it on."""
        return self._run(("list_dir", prefix, None), lambda: self.store.list_dir(prefix))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.store == other.store

    def __hash__(self) -> int:
        return hash((type(self), self.store))


def length(value: Buffer | None) -> int | None:
    """Return the size of a value in bytes; None for a missing value."""
    return None if value is None else len(value)


def total(values: Buffers | None) -> int | None:
    """Return the size of several values in bytes; None if there are none."""
    return None if values is None else sum(map(len, values))
