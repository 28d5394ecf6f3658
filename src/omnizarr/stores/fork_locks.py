"""Gates around databases. Many threads can be inside, or one alone; none while the process forks.

What a database keeps in memory about its files (locks above all) is not valid in a forked child, and using it
there destroys data. So before a fork all threads leave and open resources are closed. Parent and child open them
again when they need them.

Each thread has a lock of its own at each gate. A thread inside holds its lock; a thread alone holds all of them.
So there is no count of threads that Ctrl-C could make wrong.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakSet, ref

from omnizarr.support.locks import RLock

T = TypeVar("T")

_FORK_PATIENCE: Final = 5.0
_VISIT_PATIENCE: Final = 1.0

_Lock: TypeAlias = Any
"""An RLock: `threading` does not declare the methods used here."""
_KIND: Final[Any] = type(threading.RLock())


class Gate:
    """Threads in `enter` share the resource behind the gate. A thread in `alone` has it to itself.

    A thread must not enter one within the other.

    Parameters
    ----------
    close : callable
        Called before the process forks, with no thread inside. It closes what a child must not have.
    abandon : callable
        Called in a child if a thread was still inside after some seconds. It drops open resources without closing them.
    """

    def __init__(self, close: Callable[[], None], abandon: Callable[[], None]) -> None:
        self._close = close
        self._abandon = abandon
        self._is_alone = False  # like the state while the process forks
        self._begin()
        with _registry:
            _gates.add(self)

    def _begin(self) -> None:
        self._door: _Lock = RLock()  # held by a thread that waits to be alone
        self._own = threading.local()
        self._locks: list[ref[_Lock]] = []

    def enter(self) -> AbstractContextManager[object]:
        """Return a context manager for being inside together with other threads."""
        with self._door:
            try:
                return self._own.lock  # type: ignore[no-any-return]
            except AttributeError:
                lock = RLock()
                self._locks = [known for known in self._locks if known() is not None]  # of living threads
                self._locks.append(ref(lock))
                self._own.lock = lock
                return lock

    def alone(self, work: Callable[[bool], T], patience: float | None = None) -> T:
        """Return `work(True)`, with no other thread inside, or `work(False)` if a thread stays longer than `patience`.

        `work(False)` is called immediately if the calling thread itself is inside, for example when an object is
        collected there.
        """
        held: list[_Lock] = []
        releases = _releases(held)
        try:
            return work(self._close_doors(held, patience))
        finally:
            any(releases)  # one call into C, which no Ctrl-C interrupts

    def visit(self, work: Callable[[], object]) -> None:
        """Call `work` while no thread can be alone.

        Skip it if one stays alone for long; a fork closes everything anyway.
        """
        held: list[_Lock] = []
        releases = _releases(held)
        try:
            if _take(self._door, held, time.monotonic() + _VISIT_PATIENCE):
                work()
        finally:
            any(releases)

    def _close_doors(self, held: list[_Lock], patience: float | None) -> bool:
        """Admit no thread, wait until all have left, and return whether they have.

        `held` gets each lock before it is taken.
        """
        deadline = None if patience is None else time.monotonic() + patience
        if _is_held(self._own.__dict__.get("lock")) or not _take(self._door, held, deadline):
            return False
        locks = [lock for known in self._locks if (lock := known()) is not None]
        taken = [_take(lock, held, deadline) for lock in locks]  # as many as possible, even if one cannot be taken
        return all(taken)

    def _before_fork(self, held: list[_Lock]) -> None:
        self._is_alone = self._close_doors(held, _FORK_PATIENCE)
        if self._is_alone:
            self._close()

    def _after_fork_in_child(self) -> None:
        self._begin()
        if not self._is_alone:
            self._abandon()


def _take(lock: _Lock, held: list[_Lock], deadline: float | None) -> bool:
    held.append(lock)
    return bool(lock.acquire(timeout=-1 if deadline is None else max(0.0, deadline - time.monotonic())))


def _is_held(lock: _Lock | None) -> bool:
    """Return whether this thread holds the lock."""
    return lock is not None and bool(lock._is_owned())  # noqa: SLF001 - `threading.Condition` asks so too


def _releases(held: list[_Lock]) -> map[None]:
    """Return an iterator that releases those of the locks that this thread holds, and yields only None."""
    return map(_KIND.release, filter(_KIND._is_owned, held))  # noqa: SLF001


_gates: WeakSet[Gate] = WeakSet()
_registry: _Lock = RLock()
_held: list[_Lock] = []  # while the process forks


def _before_fork() -> None:
    _held.append(_registry)
    _registry.acquire()
    gates = list(_gates)
    for gate in gates:
        gate._is_alone = False  # noqa: SLF001
    for gate in gates:
        gate._before_fork(_held)  # noqa: SLF001


def _after_fork() -> None:
    any(_releases(_held))
    _held.clear()


def _after_fork_in_child() -> None:
    for gate in list(_gates):
        gate._after_fork_in_child()  # noqa: SLF001
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
    # If Ctrl-C interrupts the first call, the second one finishes the work.
    os.register_at_fork(after_in_parent=_after_fork, after_in_child=_after_fork)
