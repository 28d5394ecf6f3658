"""Locks that users supply, for stores that cannot keep writers apart; and what each store guarantees."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, TypeAlias

from omnizarr.stores import threads, verbs
from omnizarr.stores.base import Buffer, Exclusion, Features, Store, answers
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.wrap.wrappers import WrapperStore

Synchronizer: TypeAlias = Any
"""An object with ``[key] -> context manager``, a callable of the same, or one context manager for all keys."""

# The user's locks that a thread of this process holds.
_entered: Final[set[Hashable]] = set()
if hasattr(os, "register_at_fork"):
    # The threads that hold them do not exist in the child.
    os.register_at_fork(after_in_child=_entered.clear)

_SENTENCES: Final[dict[Exclusion, str]] = {
    "lock": "kept apart by locks",
    "condition": "kept apart by conditional writes",
    "process": "kept apart within one process only: others need synchronizer=",
}


class SynchronizedStore(WrapperStore):
    r"""A store whose `lock` also takes a lock that you supply.

    If all writers use the same lock, writers of parts of one value do not lose each other's changes, in all
    processes and on all machines that the lock reaches.

    Parameters
    ----------
    store : Store
        The store to wrap.
    synchronizer : object
        One of three: an object for which ``synchronizer[key]`` is a context manager (`ThreadSynchronizer` and
        `ProcessSynchronizer` of zarr-python 2, a dictionary); a callable for which ``synchronizer(key)`` is
        one; or one context manager for all keys (`dask.distributed.Lock`, `filelock.FileLock`,
        `fasteners.InterProcessLock`, a lock of redis).

    Notes
    -----
    Within this process, threads wait in front of your lock, and its holder may enter again. So your lock need
    not be reentrant or safe for threads. The keys are those of the store. A lock for all keys admits one writer
    at a time. Locks and conditional writes of the store itself still apply.

    Examples
    --------
    >>> import threading
    >>> from omnizarr.stores import MemoryStore, verbs
    >>> store = SynchronizedStore(MemoryStore(), threading.Lock())
    >>> with store.lock("a"), store.lock("a"):
    ...     verbs.set_partial(store, "a", 1, b"x")
    >>> store.get("a")
    b'\x00x'
    """

    def __init__(self, store: Store, synchronizer: Synchronizer) -> None:
        super().__init__(store)
        self.synchronizer = synchronizer
        self._lock_of = _locks_of(synchronizer)  # raises an error if it supplies no locks

    @property
    def features(self) -> Features:
        """The user's lock excludes all writers that use it. Conditional writes of the store stay conditional."""
        below = self.store.features
        return replace(below, exclusion="lock") if below.exclusion == "process" else below

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Take the user's lock, then that of the store."""
        return self._locked(key, super().lock)

    @contextmanager
    def _locked(self, key: str, lock: Callable[[str], AbstractContextManager[object]]) -> Iterator[None]:
        name = (id(self.synchronizer), None if _is_one(self.synchronizer) else key)
        # A lock for all keys is taken before the lock of any key, because its holder may need the locks of other
        # keys, too.
        with threads.lock(("synchronizer", name)):
            if name in _entered:
                with lock(key):
                    yield
                return
            with _within(self._lock_of(key)):
                try:
                    _entered.add(name)
                    with lock(key):
                        yield
                finally:
                    _entered.discard(name)

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Check and set under the lock."""
        with self.lock(key):
            return verbs.set_if_absent(self.store, key, value)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock_of"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock_of=_locks_of(state["synchronizer"]))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SynchronizedStore)
            and self.store == other.store
            and (self.synchronizer is other.synchronizer or self.synchronizer == other.synchronizer)
        )

    def __hash__(self) -> int:
        return hash((SynchronizedStore, self.store))

    def __repr__(self) -> str:
        return f"SynchronizedStore({self.store!r}, {type(self.synchronizer).__name__})"


def guarantee(store: Store) -> str:
    """Return a description of how writers of disjoint parts of one value are kept from losing each other's changes.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore, WrapperStore
    >>> guarantee(MemoryStore())
    'kept apart by locks'
    """
    return _SENTENCES[store.features.exclusion]


@contextmanager
def _within(lock: AbstractContextManager[Any]) -> Iterator[None]:
    """Hold a lock of the user. Ctrl-C leaves it free if it is written in C, like those of `threading`."""
    kind, held = type(lock), list[Any]()
    try:
        held.extend(map(kind.__enter__, (lock,)))  # nothing interrupts between taking the lock and noting it
        yield
    finally:
        if held:
            kind.__exit__(lock, None, None, None)


def _is_one(synchronizer: Synchronizer) -> bool:
    """Return whether an object is a context manager: one lock for all keys."""
    return hasattr(type(synchronizer), "__enter__") and hasattr(type(synchronizer), "__exit__")


def _locks_of(synchronizer: Synchronizer) -> Callable[[str], AbstractContextManager[Any]]:
    """Return a function that returns the user's lock of a key."""
    if _is_one(synchronizer):
        return lambda _: synchronizer
    found: Any = getattr(synchronizer, "__getitem__", synchronizer)
    if callable(found):
        return found  # type: ignore[no-any-return]
    raise TypeError(
        f"{type(synchronizer).__name__} gives no locks: synchronizer must be a context manager, "
        "or give one for a key, as synchronizer[key] or synchronizer(key)"
    )
