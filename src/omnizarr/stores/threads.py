"""Locks by name among the threads of this process.

A lock exists only while somebody holds it or waits for it. No lock is made when this module is
imported, and a forked child starts without any, so a fork never inherits one that is held.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class _Entry:
    """A lock, and how many hold it or wait for it."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.users = 0


_entries: dict[Hashable, _Entry] = {}
_guards: dict[str, threading.Lock] = {}


def _start_anew() -> None:
    """Forget the parent's locks: the threads that held them do not exist in the child."""
    _entries.clear()
    _guards.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def _guard() -> threading.Lock:
    """Return the lock of the table itself; `dict.setdefault` is atomic, so all threads get the same."""
    return _guards.get("guard") or _guards.setdefault("guard", threading.Lock())


@contextmanager
def lock(name: Hashable) -> Iterator[None]:
    """Keep other threads that lock `name` out while the ``with`` block runs; the same thread may enter twice."""
    with _guard():
        entry = _entries.setdefault(name, _Entry())
        entry.users += 1
    try:
        with entry.lock:
            yield
    finally:
        with _guard():
            entry.users -= 1
            # In a child forked within the block, the table no longer knows the entry.
            if not entry.users and _entries.get(name) is entry:
                del _entries[name]
