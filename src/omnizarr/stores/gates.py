"""Gates before databases: many threads are inside, or one is alone; nobody is while the process forks.

What a database keeps in memory about its files (locks above all) does not hold in a forked child, and using it there
destroys data. So before a fork everybody leaves, and what is open is closed; parent and child open it anew when they
need it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final
from weakref import WeakSet

_FORK_PATIENCE: Final = 5.0


class Gate:
    """Who comes in by `enter` shares what is behind the gate; who comes in by `alone` does not.

    Neither may be entered within the other, by the same thread.

    Parameters
    ----------
    close : callable
        Called with nobody inside before the process forks: closes what a child must not have.
    abandon : callable
        Called in a child if somebody was still inside after some seconds: forgets what is open, without closing it.
    """

    def __init__(self, close: Callable[[], None], abandon: Callable[[], None]) -> None:
        self._close = close
        self._abandon = abandon
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._waiting = 0  # to be alone: they go first, or they might wait for ever
        with _registry:
            _gates.add(self)

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Be inside with others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, patience: float | None = None) -> Iterator[bool]:
        """Be inside alone; after `patience` seconds not quite (False)."""
        with self._changed:
            self._waiting += 1
            try:
                yield self._changed.wait_for(lambda: not self._inside, patience)
            finally:
                self._waiting -= 1
                self._changed.notify_all()

    @contextmanager
    def _forking(self) -> Iterator[None]:
        process = os.getpid()
        with self.alone(_FORK_PATIENCE) as alone:
            if alone:
                self._close()
            yield
            if os.getpid() != process:
                self._inside = 0
                if not alone:
                    self._abandon()


_gates: WeakSet[Gate] = WeakSet()
_registry = threading.Lock()
_forks: list[ExitStack] = []


def _before_fork() -> None:
    _registry.acquire()
    stack = ExitStack()
    _forks.append(stack)
    for gate in list(_gates):
        stack.enter_context(gate._forking())  # noqa: SLF001


def _after_fork() -> None:
    _forks.pop().close()
    _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
