"""A store for tests: it counts what it is asked for, and fails when it is told to."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from omnizarr.errors import StoreError
from omnizarr.stores.base import Buffer, Buffers, Listing, Request, Span, Store
from omnizarr.stores.wrappers import WrapperStore


class FaultyStore(WrapperStore):
    """A store that counts requests and bytes, and injects faults; for tests.

    Each key of `get_many`, `set_many` and `delete_many` counts as a `get`, `set` or `delete`; `get_spans` counts once.

    Parameters
    ----------
    store : Store
        Where the values really are.
    delay : float, default 0
        Seconds that each request takes.

    Attributes
    ----------
    requests : Counter
        How often each verb was called.
    bytes_read, bytes_written : int
        How many bytes went through.
    log : list of (verb, key)
        Every request in its order.

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

    def __init__(self, store: Store, *, delay: float = 0.0) -> None:
        super().__init__(store)
        self.delay = delay
        self.requests: Counter[str] = Counter()
        self.bytes_read = 0
        self.bytes_written = 0
        self.log: list[tuple[str, str]] = []
        self._faults: dict[tuple[str, int], BaseException | None] = {}
        self._tears: dict[int, int] = {}
        self._guard = threading.Lock()

    def fail(self, verb: str, nth: int = 1, error: BaseException | None = None) -> None:
        """Make the nth request of `verb` from now on raise `error` (by default a StoreError) and do nothing else."""
        with self._guard:
            self._faults[verb, self.requests[verb] + nth] = error

    def tear(self, nth: int = 1, keep: int = 0) -> None:
        """Make the nth `set` from now on store only the first `keep` bytes, as a store that is not atomic would."""
        with self._guard:
            self._tears[self.requests["set"] + nth] = keep

    def reset(self) -> None:
        """Start counting anew; faults that have not happened yet are forgotten."""
        with self._guard:
            self.requests.clear()
            self._faults.clear()
            self._tears.clear()
            self.log.clear()
            self.bytes_read = self.bytes_written = 0

    def _request(self, verb: str, key: str) -> int:
        with self._guard:
            self.requests[verb] += 1
            number = self.requests[verb]
            self.log.append((verb, key))
            failing = (verb, number) in self._faults
            error = self._faults.pop((verb, number), None)
        if self.delay:
            time.sleep(self.delay)
        if failing:
            raise error or StoreError(f"injected fault in request {number} of {verb!r}", store=repr(self), key=key)
        return number

    def _count(self, *, read: int = 0, written: int = 0) -> None:
        with self._guard:
            self.bytes_read += read
            self.bytes_written += written

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Count and hand on."""
        self._request("get", key)
        value = super().get(key, span)
        self._count(read=0 if value is None else len(value))
        return value

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Ask for each with `get`."""
        return Store.get_many(self, requests)

    def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Count and hand on."""
        self._request("get_spans", key)
        values = super().get_spans(key, spans)
        self._count(read=sum(map(len, values or ())))
        return values

    def read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Count and hand on."""
        self._request("read_into", key)
        size = super().read_into(key, out, start)
        self._count(read=min(size or 0, out.nbytes))
        return size

    def exists(self, key: str) -> bool:
        """Count and hand on."""
        self._request("exists", key)
        return super().exists(key)

    def size(self, key: str) -> int | None:
        """Count and hand on."""
        self._request("size", key)
        return super().size(key)

    def stamp(self, key: str) -> Hashable | None:
        """Count and hand on."""
        self._request("stamp", key)
        return super().stamp(key)

    def set(self, key: str, value: Buffer) -> None:
        """Count and hand on, or only a part of it."""
        number = self._request("set", key)
        keep = self._tears.pop(number, None)
        super().set(key, value if keep is None else memoryview(value)[:keep])
        self._count(written=len(value) if keep is None else keep)

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Set each with `set`."""
        Store.set_many(self, items)

    def set_if_absent(self, key: str, value: Buffer) -> bool:
        """Count and hand on."""
        self._request("set_if_absent", key)
        was_set = super().set_if_absent(key, value)
        self._count(written=len(value) if was_set else 0)
        return was_set

    def set_partial(self, key: str, start: int, value: Buffer) -> None:
        """Count and hand on."""
        self._request("set_partial", key)
        super().set_partial(key, start, value)
        self._count(written=len(value))

    def delete(self, key: str) -> None:
        """Count and hand on."""
        self._request("delete", key)
        super().delete(key)

    def delete_many(self, keys: Iterable[str]) -> None:
        """Delete each with `delete`."""
        Store.delete_many(self, keys)

    def delete_prefix(self, prefix: str) -> None:
        """Count and hand on."""
        self._request("delete_prefix", prefix)
        super().delete_prefix(prefix)

    def lock(self, key: str) -> AbstractContextManager[None]:
        """Count and hand on."""
        self._request("lock", key)
        return super().lock(key)

    def list(self) -> Iterator[str]:
        """Count and hand on."""
        self._request("list", "")
        return super().list()

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Count and hand on."""
        self._request("list_prefix", prefix)
        return super().list_prefix(prefix)

    def list_dir(self, prefix: str) -> Listing:
        """Count and hand on."""
        self._request("list_dir", prefix)
        return super().list_dir(prefix)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_guard"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _guard=threading.Lock())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FaultyStore) and self.store == other.store

    def __hash__(self) -> int:
        return hash((FaultyStore, self.store))
