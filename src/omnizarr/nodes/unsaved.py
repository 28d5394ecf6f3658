"""Values in memory that wait to be stored: those of netCDF datasets and of writers of arrays.

They are stored before the process forks, so that the child sees them and does not store them again, and when the
program ends. A child begins without them: they belong to its parent, and so do threads.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from typing import Any, Final, Protocol
from weakref import WeakSet

from omnizarr.errors import OmnizarrError
from omnizarr.stores import fork_locks  # noqa: F401 - its hooks for forks must be registered before those of this module

_FORK_PATIENCE: Final = 5.0


class Holder(Protocol):
    """What holds values that are not stored yet."""

    @property
    def lock(self) -> Any:
        """The RLock that threads hold while they add values or store them."""

    def store_waiting(self) -> None:
        """Store all values. If that fails, they stay."""

    def begin_anew(self) -> None:
        """Start empty in a forked child, with a new lock."""


_all: Final[WeakSet[Holder]] = WeakSet()
_waiting: Final[set[Holder]] = set()
_held: Final[list[Any]] = []  # locks of holders while the process forks


def know(holder: Holder) -> None:
    """Call `begin_anew` of a holder in forked children, as long as it exists."""
    _all.add(holder)


def wait(holder: Holder) -> None:
    """Keep a holder, and store what it has at the end of the program and before a fork."""
    _waiting.add(holder)


def forget(holder: Holder) -> None:
    """Say that a holder has nothing to store any more."""
    _waiting.discard(holder)


def waiting() -> list[Holder]:
    """Return what has values to store."""
    return list(_waiting)


def _store_at_exit() -> None:
    failed: list[Exception] = []
    for each in waiting():
        try:
            each.store_waiting()
        except Exception as error:  # noqa: BLE001 - all are tried, and the interpreter prints what is raised here
            failed.append(error)
    if failed:
        raise ExceptionGroup("values of netCDF datasets or array writers that were not closed are lost", failed)


def _before_fork() -> None:
    """Store what waits, and keep other threads out of the holders, unless a thread stays inside for long."""
    for each in list(_all):
        _held.append(each.lock)
        if each.lock.acquire(timeout=_FORK_PATIENCE):
            with suppress(OmnizarrError, OSError):
                each.store_waiting()


def _after_fork() -> None:
    while _held:
        lock = _held.pop()
        if lock._is_owned():  # noqa: SLF001 - threading does not declare it
            lock.release()


def _after_fork_in_child() -> None:
    _after_fork()
    for each in list(_all):
        each.begin_anew()


atexit.register(_store_at_exit)
if hasattr(os, "register_at_fork"):
    # Registered before those of the stores, which close databases: the last registered function is called first.
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
