"""Gates before databases: many threads can be inside, or one alone, and none while the process forks.

What a database keeps in memory about its files (locks above all) does not hold in a forked child, and using it there
destroys data. So before a fork everybody leaves, and what is open is closed; parent and child open it anew when they
need it.

Each thread has a lock of its own at each gate: to be inside is to hold it, to be alone is to hold all of them. So
there is no count of threads inside, which a Ctrl-C could make wrong.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakSet, ref

T = TypeVar("T")

_FORK_PATIENCE: Final = 5.0
_VISIT_PATIENCE: Final = 1.0

_Lock: TypeAlias = Any
"""An RLock: `threading` does not declare what is used of it here."""
_KIND: Final[Any] = type(threading.RLock())


class Gate:
    """Threads that `enter` share the resource behind the gate; a thread that comes in by `alone` has it to itself.

    Neither may be entered within the other, by the same thread.

    Parameters
    ----------
    close : callable
        Called with no thread inside before the process forks: closes what a child must not have.
    abandon : callable
        Called in a child if a thread was still inside after some seconds: drops open resources without closing them.
    """

    def __init__(self, close: Callable[[], None], abandon: Callable[[], None]) -> None:
        self._close = close
        self._abandon = abandon
        self._is_alone = False  # as the process forks
        self._begin()
        with _registry:
            _gates.add(self)

    def _begin(self) -> None:
        self._door: _Lock = threading.RLock()  # held by who waits to be alone, or newcomers would keep him waiting
        self._own = threading.local()
        self._locks: list[ref[_Lock]] = []

    def enter(self) -> AbstractContextManager[object]:
        """Return what lets the calling thread be inside with others, in a ``with`` statement."""
        with self._door:
            try:
                return self._own.lock  # type: ignore[no-any-return]
            except AttributeError:
                lock = threading.RLock()
                self._locks = [known for known in self._locks if known() is not None]  # of threads that have not ended
                self._locks.append(ref(lock))
                self._own.lock = lock
                return lock

    def alone(self, work: Callable[[bool], T], patience: float | None = None) -> T:
        """Return `work(True)`, with no other thread inside, or `work(False)` if one stays longer than `patience`.

        With False at once if the calling thread itself is inside, as when an object is collected there.
        """
        held: list[_Lock] = []
        releases = _releases(held)
        try:
            return work(self._close_doors(held, patience))
        finally:
            any(releases)  # one call into C, which no Ctrl-C interrupts

    def visit(self, work: Callable[[], object]) -> None:
        """Call `work` while no thread can be alone; not if one is for long, as a fork closes all anyway."""
        held: list[_Lock] = []
        releases = _releases(held)
        try:
            if _take(self._door, held, time.monotonic() + _VISIT_PATIENCE):
                work()
        finally:
            any(releases)

    def _close_doors(self, held: list[_Lock], patience: float | None) -> bool:
        """Let no thread in, wait until all are out, and return whether so. `held` gets each lock before it is taken."""
        deadline = None if patience is None else time.monotonic() + patience
        if _is_held(self._own.__dict__.get("lock")) or not _take(self._door, held, deadline):
            return False
        locks = [lock for known in self._locks if (lock := known()) is not None]
        taken = [_take(lock, held, deadline) for lock in locks]  # as many as can be, also if one cannot
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
    """Return whether this thread holds it."""
    return lock is not None and bool(lock._is_owned())  # noqa: SLF001 - `threading.Condition` asks so too


def _releases(held: list[_Lock]) -> map[None]:
    """Return what releases, as it is gone through, those of the locks that this thread holds, and gives only None."""
    return map(_KIND.release, filter(_KIND._is_owned, held))  # noqa: SLF001


_gates: WeakSet[Gate] = WeakSet()
_registry: _Lock = threading.RLock()
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
    # What a Ctrl-C keeps the first one from doing, the second does: Python goes on after it.
    os.register_at_fork(after_in_parent=_after_fork, after_in_child=_after_fork)
