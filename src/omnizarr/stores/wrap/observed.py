"""The base of stores that observe the requests to another store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from omnizarr.stores import verbs
from omnizarr.stores.base import Buffer, Buffers, Reader, Request, Span, Stamped, Store, Verb, answers
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

    features = WrapperStore.features

    def _begin(self, verb: str, key: str, span: Spans = None) -> Asked:
        """Note that a request begins. An exception here prevents the request, and `_end` is not called."""
        return Asked(verb, key, span, time.perf_counter())

    def _end(self, asked: Asked, moved: int | None, seconds: float, *, failed: bool) -> None:
        """Note that a request has ended. `moved` is the number of bytes; None if no value was transferred."""

    def _target(self, key: str) -> Store:
        """Return the store that answers reading requests for a key."""
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

    def handle(self, verb: Verb[..., Any], *args: Any) -> Any:
        """Observe the request and pass it on."""
        if verb in _UNSEEN or verb in self._answers or not self._passes_on(verb):
            return super().handle(verb, *args)
        if verb in _ONE_BY_ONE:
            return NotImplemented
        if verb in _LISTINGS:
            place = args[0] if args else ""
            return self._listed(verb.name, place, lambda: self._send(verb, *args))
        label, span, measure = _FACTS.get(verb, (verb.name, _no_span, _nothing))
        return self._run(
            (label, args[0] if args else "", span(*args)), lambda: self._send(verb, *args), partial(measure, args)
        )

    def _send(self, verb: Verb[..., Any], *args: Any) -> Any:
        return super().handle(verb, *args) if verb.writes or verb.names != "key" else verb(self._target(args[0]), *args)

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Pass requests on, and observe each from when it is taken until its value arrives."""
        under_way: dict[int, Asked] = {}

        def taken() -> Iterator[Request]:
            for position, (key, span) in enumerate(requests):
                under_way[position] = self._begin("get", key, span)
                yield key, span

        try:
            for position, value in verbs.get_many(self.store, taken()):
                begun = under_way.pop(position)
                self._end(begun, length(value), time.perf_counter() - begun.start, failed=False)
                yield position, value
        finally:
            for begun in under_way.values():
                self._end(begun, None, time.perf_counter() - begun.start, failed=True)

    @answers(verbs.pinned)
    def _pinned(self, key: str) -> Reader | None:
        """Pass the request on, and observe each call of the returned function."""
        read = verbs.pinned(self._target(key), key)
        if read is None:
            return None

        def watched(spans: Sequence[Span] | None) -> Buffers | None:
            asked = ("get", key, None) if spans is None else ("get_spans", key, tuple(spans))
            return self._run(asked, lambda: read(spans), total)

        return watched

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


def _no_span(*_: object) -> None:
    pass


def _nothing(_args: Any, _answer: Any) -> None:
    pass


def _value(_args: Any, answer: Buffer | None) -> int | None:
    return length(answer)


def _stamped(_args: Any, answer: Stamped | None) -> int | None:
    return None if answer is None else length(answer.value)


def _written(args: Any, _answer: Any) -> int:
    return len(args[-1])


_UNSEEN: Final = frozenset[Verb[..., Any]](
    {
        *(verbs.lock, verbs.check_storable, verbs.as_stored, verbs.remembered),
        *(verbs.access, verbs.elsewhere, verbs.elements, verbs.blocks, verbs.chunks),
        *(verbs.divided, verbs.places, verbs.replaces_text),
    }
)
_ONE_BY_ONE: Final = frozenset[Verb[..., Any]](
    {verbs.get_many_within, verbs.has_any, verbs.set_many, verbs.delete_many, verbs.set_in_new_folder}
)
_LISTINGS: Final = frozenset[Verb[..., Any]]({verbs.list, verbs.list_prefix, verbs.list_sizes, verbs.list_digests})
_FACTS: Final[dict[Verb[..., Any], tuple[str, Callable[..., Spans], Callable[[Any, Any], int | None]]]] = {
    verbs.get: ("get", lambda _, span=None: span, _value),
    verbs.get_within: ("get", _no_span, _value),
    verbs.get_spans: ("get_spans", lambda _, spans: tuple(spans), lambda _, answer: total(answer)),
    verbs.read_into: (
        "read_into",
        lambda _, out, start=0: (start, start + out.nbytes),
        lambda args, size: None if size is None else min(size, args[1].nbytes),
    ),
    verbs.get_stamped: ("get_stamped", _no_span, _stamped),
    verbs.get_stamped_within: ("get_stamped", _no_span, _stamped),
    verbs.set: ("set", _no_span, _written),
    verbs.set_if_absent: ("set_if_absent", _no_span, lambda args, was_set: len(args[1]) if was_set else 0),
    verbs.set_partial: ("set_partial", lambda _, start, value: (start, start + len(value)), _written),
}
"""Name, parts of the value, and how many bytes were transferred, of the verbs that transfer values."""
