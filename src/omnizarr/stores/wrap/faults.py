"""A store for tests: it counts requests, delays them, and fails on demand."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

from omnizarr.errors import StoreError
from omnizarr.stores import threads, verbs
from omnizarr.stores.base import Buffer, Features, Request, Stamped, Store, answers
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.wrap.observed import Asked, ObservedStore, Spans

_WRITING = frozenset({"set", "set_if_absent", "set_partial"})


class FaultyStore(ObservedStore):
    """A store that counts requests and bytes, and injects faults, for tests.

    Each key of `get_many`, `set_many` and `delete_many` counts as a `get`, `set` or `delete`. Each call of the
    function that `pinned` returns counts as a `get` or `get_spans`. `get_spans` and `get_stamped` count once.

    Parameters
    ----------
    store : Store
        The store to wrap.
    delay : float, default 0
        Seconds that each request takes. Concurrent requests take no longer than one.
    jitter : float, default 0
        Maximum additional delay in seconds, at random, so that answers arrive in another order than the requests.
    concurrency : int, optional
        Number of requests that users should send at once. The default is that of the store.

    Attributes
    ----------
    requests : Counter
        How often each method was called.
    bytes_read, bytes_written : int
        Number of bytes read and written.
    log : list of (verb, key)
        All requests in order.
    in_flight, max_in_flight : int
        Number of requests in flight, and its maximum so far.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> store = FaultyStore(MemoryStore())
    >>> store.fail("set", 2)
    >>> store.set("a", b"123")
    >>> store.set("b", b"456")
    Traceback (most recent call last):
    ...
    omnizarr.errors.StoreError: ...: key 'b': injected fault in request 2 of 'set'
    >>> store.requests["set"], store.bytes_written, store.get("b")
    (2, 3, None)
    """

    def __init__(
        self, store: Store, *, delay: float = 0.0, jitter: float = 0.0, concurrency: int | None = None
    ) -> None:
        super().__init__(store)
        self.delay = delay
        self.jitter = jitter
        self.requests: Counter[str] = Counter()
        self.bytes_read = 0
        self.bytes_written = 0
        self.log: list[tuple[str, str]] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self._concurrency = concurrency
        self._faults: dict[tuple[str, int], BaseException | None] = {}
        self._slow: dict[tuple[str, int], float] = {}
        self._tears: dict[int, int] = {}
        self._frozen: dict[str, tuple[_Frozen, int]] = {}

    @property
    def _guard(self) -> AbstractContextManager[object]:
        """The lock that excludes other threads. It is free in a forked child."""
        return threads.lock((id(self), "faults"))

    @property
    def features(self) -> Features:
        """Those of the store, with the given concurrency."""
        below = self.store.features
        return below if self._concurrency is None else replace(below, concurrency=self._concurrency)

    # -- faults -------------------------------------------------------------------

    def fail(self, verb: str, nth: int = 1, error: BaseException | None = None) -> None:
        """Make the nth request of `verb` from now on raise `error` (by default a StoreError) and do nothing else."""
        with self._guard:
            self._faults[verb, self.requests[verb] + nth] = error

    def slow(self, verb: str, nth: int = 1, seconds: float = 1.0) -> None:
        """Make the nth request of `verb` from now on take this many seconds more."""
        with self._guard:
            self._slow[verb, self.requests[verb] + nth] = seconds

    def tear(self, nth: int = 1, keep: int = 0) -> None:
        """Make the nth `set` from now on store only the first `keep` bytes, like a store that is not atomic."""
        with self._guard:
            self._tears[self.requests["set"] + nth] = keep

    def freeze(self, key: str, reads: int = 1) -> None:
        """Answer the next `reads` requests for `key` with the current value, whatever is written meanwhile.

        An eventually consistent store, or a cache in front of it, does this. Value and stamp are both old.
        """
        value, stamp = verbs.get_stamped(self.store, key) or Stamped(None, None)
        with self._guard:
            self._frozen[key] = _Frozen(key, value, stamp), reads

    def reset(self) -> None:
        """Reset all counts. Faults that have not happened yet are dropped."""
        with self._guard:
            self.requests.clear()
            self._faults.clear()
            self._slow.clear()
            self._tears.clear()
            self._frozen.clear()
            self.log.clear()
            self.bytes_read = self.bytes_written = 0
            self.max_in_flight = self.in_flight

    # -- requests -----------------------------------------------------------------

    def _begin(self, verb: str, key: str, span: Spans = None) -> Asked:
        with self._guard:
            self.requests[verb] += 1
            this = verb, self.requests[verb]
            self.log.append((verb, key))
            failing = this in self._faults
            error = self._faults.pop(this, None)
            pause = self.delay + self._slow.pop(this, 0.0)
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
        begun = super()._begin(verb, key, span)
        try:
            if pause or self.jitter:
                time.sleep(pause + random.uniform(0, self.jitter))  # noqa: S311 - no secret
            if failing:
                text = f"injected fault in request {this[1]} of {verb!r}"
                raise error or StoreError(text, store=repr(self), key=key)  # noqa: TRY301 - as the wrapped store would
        except BaseException:
            self._leave()
            raise
        return begun

    def _end(self, asked: Asked, moved: int | None, seconds: float, *, failed: bool) -> None:
        self._leave(**{"written" if asked.verb in _WRITING else "read": moved or 0})

    def _leave(self, *, read: int = 0, written: int = 0) -> None:
        with self._guard:
            self.in_flight -= 1
            self.bytes_read += read
            self.bytes_written += written

    def _target(self, key: str) -> Store:
        with self._guard:
            if key not in self._frozen:
                return self.store
            frozen, reads = self._frozen.pop(key)
            if reads > 1:
                self._frozen[key] = frozen, reads - 1
            return frozen

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Request each value with `get`, up to `concurrency` at once."""
        return verbs.get_many.default(self, requests)

    def set(self, key: str, value: Buffer) -> None:
        """Store the value, or only a part of it."""
        with self._guard:
            keep = self._tears.pop(self.requests["set"] + 1, None)
        super().set(key, value if keep is None else memoryview(value)[:keep])

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Count, and pass the request on."""
        self._run(("lock", key, None), lambda: None)
        return super().lock(key)


class _Frozen(MemoryStore):
    """An old version of one value."""

    def __init__(self, key: str, value: Buffer | None, stamp: Hashable | None) -> None:
        super().__init__({} if value is None else {key: value})
        self._kept_stamp = stamp

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        return self._kept_stamp
