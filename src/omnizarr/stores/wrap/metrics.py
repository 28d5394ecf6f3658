"""A store that counts requests, bytes and seconds of each method."""

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
    """Counts of several requests."""

    requests: int = 0
    nbytes: int = 0
    """Bytes that were read or written."""
    seconds: float = 0.0
    """The sum over all requests, also of those that ran concurrently."""
    failed: int = 0
    """Number of requests that raised an error."""

    def plus(self, other: Figures) -> Figures:
        """Return the sum of these counts and others."""
        return Figures(
            self.requests + other.requests,
            self.nbytes + other.nbytes,
            self.seconds + other.seconds,
            self.failed + other.failed,
        )


class Traced(NamedTuple):
    """A completed request."""

    verb: str
    key: str
    span: Spans
    """The requested part or parts of the value; None: all of it, or nothing was read."""
    nbytes: int | None
    """Bytes that were read or written; None if no value was transferred: a missing key, a listing, ..."""
    start: float
    """Start and end, by `time.perf_counter`."""
    seconds: float
    failed: bool


@dataclass(frozen=True)
class Report:
    """The counts of a `MetricsStore`. Its `str` is a table.

    Attributes
    ----------
    verbs : mapping of str to Figures
        Counts by method, in the order of first use.
    max_in_flight : int
        Maximum number of concurrent requests.
    """

    verbs: Mapping[str, Figures] = field(default_factory=dict)
    max_in_flight: int = 0

    @property
    def total(self) -> Figures:
        """The sum over all methods."""
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
    """A store that counts requests, bytes and seconds, and passes requests on to another store.

    It costs some microseconds per request. Each key of `get_many`, `set_many` and `delete_many` counts as a
    `get`, `set` or `delete`. Each call of the function that `pinned` returns counts as a `get` or `get_spans`.
    `lock` does not count, but reads and writes within it do. A pickled copy counts from zero.

    Parameters
    ----------
    store : Store
        The store to wrap.
    on_request : callable, optional
        Called with a `Traced` when a request has ended, in the thread that made it.

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

    runs_in_event_loops = True

    def __init__(self, store: Store, *, on_request: Callable[[Traced], object] | None = None) -> None:
        super().__init__(store)
        self.on_request = on_request
        self._counted = _Counted()

    def report(self) -> Report:
        """Return the counts of completed requests."""
        counted = self._counted
        with counted.guard:
            return Report(MappingProxyType(dict(counted.verbs)), counted.max_in_flight)

    def reset(self) -> None:
        """Reset all counts."""
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
    """The counts shared by read-only views of a store. Other processes count for themselves."""

    def __init__(self) -> None:
        self.verbs: dict[str, Figures] = {}
        self.in_flight = 0
        self.max_in_flight = 0

    @property
    def guard(self) -> AbstractContextManager[object]:
        """The lock that excludes other threads. It is free in a forked child."""
        return threads.lock((id(self), "figures"))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Counted, ()
