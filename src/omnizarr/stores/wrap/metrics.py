"""A store that counts: requests, bytes and seconds, per verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

from omnizarr.stores import threads
from omnizarr.stores.base import Store
from omnizarr.stores.wrap.observed import Asked, ObservedStore, Spans


class Figures(NamedTuple):
    """What is known of several requests."""

    requests: int = 0
    nbytes: int = 0
    """Bytes that were read or written."""
    seconds: float = 0.0
    """Added up: of requests that were under way at once, the time of each counts."""
    failed: int = 0
    """How many of them raised something."""

    def plus(self, other: Figures) -> Figures:
        """Return what is known of these and of others together."""
        return Figures(
            self.requests + other.requests,
            self.nbytes + other.nbytes,
            self.seconds + other.seconds,
            self.failed + other.failed,
        )


class Traced(NamedTuple):
    """One request that has ended."""

    verb: str
    key: str
    span: Spans
    """The part of the value that was asked for, or several; None: all of it, or nothing is read."""
    nbytes: int | None
    """Bytes that were read or written; None if there were none to be moved: no such key, a listing, ..."""
    start: float
    """Of `time.perf_counter`."""
    seconds: float
    failed: bool


@dataclass(frozen=True)
class Report:
    """What a `MetricsStore` has counted; its `str` is a table.

    Attributes
    ----------
    verbs : mapping of str to Figures
        By verb, in the order in which they were first used.
    max_in_flight : int
        The most requests that were ever under way at once.
    """

    verbs: Mapping[str, Figures] = field(default_factory=dict)
    max_in_flight: int = 0

    @property
    def total(self) -> Figures:
        """Of all verbs together."""
        return reduce(Figures.plus, self.verbs.values(), Figures())

    def __str__(self) -> str:
        rows = [(verb, figures) for verb, figures in self.verbs.items()]
        rows.append(("all", self.total))
        width = max(len(verb) for verb, _ in rows)
        lines = [f"{'':<{width}}  requests         bytes    seconds  failed"]
        lines += [
            f"{verb:<{width}}  {one.requests:>8,}  {one.nbytes:>12,}  {one.seconds:>9.3f}  {one.failed:>6,}"
            for verb, one in rows
        ]
        return "\n".join([*lines, f"at most {self.max_in_flight} at once"])


class MetricsStore(ObservedStore):
    """A store that counts requests, bytes and seconds; then it does what the store below does.

    Costs some microseconds per request. Each key of `get_many`, `set_many` and `delete_many` counts as a `get`, `set`
    or `delete`, each call of what `pinned` returns as a `get` or `get_spans`. `lock` does not count, but what is read
    and written under it does. In copies that are pickled counting begins anew.

    Parameters
    ----------
    store : Store
        Where the values really are.
    on_request : callable, optional
        Called with a `Traced` when a request has ended, by the thread that made it.

    Examples
    --------
    >>> import omnizarr
    >>> from omnizarr.stores import MemoryStore
    >>> values = {}
    >>> _ = omnizarr.create_array(values, data=[1.0, 2.0, 3.0], chunks=(2,), compressors=None)
    >>> store = MetricsStore(MemoryStore(values))
    >>> omnizarr.open_array(store, mode="r")[...].sum()
    np.float64(6.0)
    >>> store.report().total.requests
    3
    >>> store.report().total.nbytes == sum(map(len, values.values()))
    True
    """

    def __init__(self, store: Store, *, on_request: Callable[[Traced], object] | None = None) -> None:
        super().__init__(store)
        self.on_request = on_request
        self._counted = _Counted()

    def report(self) -> Report:
        """Return what has been counted up to now; of requests under way nothing yet."""
        counted = self._counted
        with counted.guard:
            return Report(MappingProxyType(dict(counted.verbs)), counted.max_in_flight)

    def reset(self) -> None:
        """Start counting anew."""
        counted = self._counted
        with counted.guard:
            counted.verbs.clear()
            counted.max_in_flight = counted.in_flight

    def _begin(self, verb: str, key: str, span: Spans = None) -> Asked:
        counted = self._counted
        with counted.guard:
            counted.in_flight += 1
            counted.max_in_flight = max(counted.max_in_flight, counted.in_flight)
        return super()._begin(verb, key, span)

    def _end(self, asked: Asked, moved: int | None, seconds: float, *, failed: bool) -> None:
        counted = self._counted
        with counted.guard:
            counted.in_flight -= 1
            known = counted.verbs.get(asked.verb, Figures())
            counted.verbs[asked.verb] = known.plus(Figures(1, moved or 0, seconds, int(failed)))
        if self.on_request is not None:
            self.on_request(Traced(asked.verb, asked.key, asked.span, moved, asked.start, seconds, failed))


class _Counted:
    """What read-only views of a store count together; other processes count for themselves."""

    def __init__(self) -> None:
        self.verbs: dict[str, Figures] = {}
        self.in_flight = 0
        self.max_in_flight = 0

    @property
    def guard(self) -> AbstractContextManager[object]:
        """What keeps other threads out; a forked child does not find it taken."""
        return threads.lock((id(self), "figures"))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Counted, ()
