"""Named locks for the threads of this process.

A lock exists only while a thread holds it or waits for it. Importing this module creates no lock, and a forked
child starts without any, so a fork never inherits a held lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable
from contextlib import AbstractContextManager
from weakref import ref

from omnizarr.support.locks import RLock

_FEW = 1000

_locks: dict[Hashable, ref[threading.RLock]] = {}
_guards: dict[str, threading.RLock] = {}
_most = [_FEW]  # entries of the table before unused locks are removed


def _start_anew() -> None:
    """Forget the parent's locks: the threads that held them do not exist in the child."""
    _locks.clear()
    _guards.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def _guard() -> threading.RLock:
    """Return the lock of the table. `dict.setdefault` is atomic, so all threads get the same."""
    return _guards.get("guard") or _guards.setdefault("guard", RLock())


def lock(name: Hashable) -> AbstractContextManager[object]:
    """Return a lock that excludes other threads that lock `name`. The same thread may enter twice.

    No Ctrl-C can interrupt between acquiring it and entering the block (see `omnizarr.support.locks`).
    """
    with _guard():
        known = _locks.get(name)
        found = None if known is None else known()
        if found is None:
            if len(_locks) >= _most[0]:
                _sweep()
            found = RLock()
            _locks[name] = ref(found)
        return found


def _sweep() -> None:
    for name, known in list(_locks.items()):
        if known() is None:
            del _locks[name]
    _most[0] = max(_FEW, 2 * len(_locks))
