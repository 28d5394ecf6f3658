"""Locks between processes and threads: a lock file beside the locked file, which exists only while the lock is held.

To acquire a lock, a writer creates the file (or opens the existing one), takes the operating system's lock on it, and
checks that the path still leads to the locked file; if not, it tries again. To release the lock, it removes the file
while still holding it. So

- a killed holder leaves at most a file, which is empty, or says that a node was being deleted. The operating system
  releases its lock, and the next holder removes the file. A deletion that fails leaves its file, too;
- the value may be created, deleted or replaced by a rename meanwhile. A lock on the value's own file would be lost at
  each write;
- a forked child does not inherit it;
- machines that share the file system exclude each other if it shares locks (NFS does).

Windows cannot remove an open file, but other processes cannot remove one either. There, the file is locked by
polling, and removed by its last user.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from importlib import import_module
from typing import Protocol

from omnizarr.errors import OmnizarrError, StoreAccessError
from omnizarr.stores import system, threads
from omnizarr.stores.base import RESERVED
from omnizarr.stores.interrupts import contextmanager
from omnizarr.support.warned import warn

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # everywhere else
    msvcrt = None  # type: ignore[assignment]

_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_POLL_SECONDS = 0.002
_ATTEMPTS = 1000
_READABLE = stat.S_IRGRP | stat.S_IROTH  # read access is enough to lock a file
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH

_descriptors: set[int] = set()  # of lock files that are open


def _let_go() -> None:
    """Close the parent's lock files in a forked child. Otherwise they would stay locked if the parent is killed."""
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()
    _held.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)

_held = threading.local()  # paths of lock files that this thread holds


SUFFIX = ".lock"
"""How the names of lock files end, so that functions that clear a directory recognise them."""


class Opened(Protocol):
    """An open directory, as `omnizarr.stores.local.folders` has them."""

    @property
    def file(self) -> int | None:
        """The descriptor; None if paths are used."""

    def place(self, name: str) -> str:
        """Return the name to be used together with `file`."""


class _Named:
    """A directory that is not opened, but named by its path."""

    file: int | None = None

    def __init__(self, path: str) -> None:
        self._path = path

    def place(self, name: str) -> str:
        return os.path.join(self._path, name)


@contextmanager
def lock(
    path: str,
    make_parent: Callable[[], None],
    opened: Callable[[], AbstractContextManager[Opened]] | None = None,
    *,
    store: object = None,
    key: str | None = None,
) -> Iterator[None]:
    """Hold the lock file `path` while the ``with`` block runs. The same thread may enter twice.

    `make_parent` is called if the directory of `path` is missing. `opened` opens it, with no link on the way. Errors
    name `store` and `key`.
    """
    paths: set[str] = _held.__dict__.setdefault("paths", set())
    if path in paths:
        yield
        return
    taken = _Taken(path, opened)
    try:
        if _is_acquired(taken, make_parent, store, key):
            paths.add(path)
            yield
        else:  # the file system has no locks; at least threads exclude each other
            with threads.lock(path):
                paths.add(path)
                yield
    finally:
        try:
            paths.discard(path)
        finally:
            try:
                _release(taken)
            except BaseException:  # on Ctrl-C: a lock that stays would also exclude this process
                _release(taken)
                raise


def leave(path: str) -> None:
    """Let the lock file `path`, which this thread holds, stay when it is released, to show what it says to the next."""
    _held.__dict__.setdefault("left", set()).add(path)


class _Taken:
    """A lock file that is open, and perhaps locked. Its state is known wherever Ctrl-C interrupts."""

    __slots__ = ("descriptors", "is_locked", "name", "opened", "path", "process")

    def __init__(self, path: str, opened: Callable[[], AbstractContextManager[Opened]] | None) -> None:
        self.path = path
        folder, self.name = os.path.split(path)
        named: Opened = _Named(folder)
        self.opened = opened or (lambda: nullcontext(named))
        self.process = os.getpid()
        self.descriptors: list[int] = []  # at most one
        self.is_locked = False


def _is_acquired(taken: _Taken, make_parent: Callable[[], None], store: object, key: str | None) -> bool:
    """Open and lock the file. Return False if the file system does not support locks."""
    where = {"store": None if store is None else repr(store), "key": key}
    try:
        return _acquire(taken, make_parent)
    except OmnizarrError as error:
        raise error.add(**where)
    except PermissionError as error:
        if os.path.lexists(taken.path):
            remedy = f"remove it, if no program of {_owner(taken.path)} is writing here"
            refused = StoreAccessError(
                "there is a lock file that only its owner may open", **where, found=taken.path, remedy=remedy
            )
        else:
            # The lock is only what is written first: it says nothing to those who want to write a value.
            folder = os.path.dirname(taken.path)
            raise system.failure(error, "nothing can be written here: {}", **where, found=folder) from error
        refused.errno = error.errno
        raise refused from error
    except OSError as error:
        if os.path.lexists(taken.path):
            raise system.failure(error, "cannot be locked: {}", **where, found=taken.path) from error
        folder = os.path.dirname(taken.path)
        raise system.failure(error, "nothing can be written here: {}", **where, found=folder) from error


def _owner(path: str) -> str:
    try:
        return f"user {import_module('pwd').getpwuid(os.stat(path).st_uid).pw_name}"
    except (KeyError, OSError, ImportError):  # a user without a name, or a system without user names
        return "its owner"


def _acquire(taken: _Taken, make_parent: Callable[[], None]) -> bool:
    path = taken.path
    refused = 0  # how often in a row the file could not be opened
    while True:
        try:
            _open_or_create(taken)
        except FileExistsError:  # another user has just created it
            continue
        except (FileNotFoundError, PermissionError) as error:
            refused += 1
            if refused > _ATTEMPTS:
                raise
            if isinstance(error, FileNotFoundError):
                make_parent()
            elif msvcrt is None:
                raise
            else:  # about to be removed
                time.sleep(_POLL_SECONDS)
            continue
        refused = 0
        (descriptor,) = taken.descriptors
        try:
            _lock_file(descriptor)
            status = _status_at(path, descriptor)
            if status is not None:
                taken.is_locked = True
                _open_to_others(path, descriptor, status)
                return True
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            _close(taken)
            with suppress(OSError), taken.opened() as folder:
                os.unlink(folder.place(taken.name), dir_fd=folder.file)
            warn(
                f"the file system of {path!r} does not lock files: other processes are not kept out",
                RuntimeWarning,
            )
            return False
        _close(taken)


def _open_to_others(path: str, descriptor: int, status: os.stat_result) -> None:
    """Let all users with write access to the directory open the lock file, whatever the umask is."""
    if msvcrt is not None or status.st_mode & _READABLE == _READABLE or status.st_uid != os.geteuid():
        return
    with suppress(OSError):  # a file system without permissions
        writers = os.stat(os.path.dirname(path)).st_mode & _WRITABLE
        if writers:
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | writers | writers << 1)


def _open_or_create(taken: _Taken) -> None:
    """Open the lock file, or create it. PermissionError says that neither is allowed (on Windows: at this moment)."""
    try:
        _open(taken, _OPEN)
    except PermissionError:
        if msvcrt is not None or not os.access(os.path.dirname(taken.path), os.W_OK):
            raise
        # It belongs to another user, or the kernel denies what `access` allows: to a program in a sandbox, or with the
        # rights of another user.
        try:
            _open(taken, os.O_RDONLY | (_OPEN & ~(os.O_RDWR | os.O_CREAT)))
        except FileNotFoundError:
            _open(taken, _OPEN | os.O_EXCL)  # fails in another way if there is one by now


def _open(taken: _Taken, flags: int) -> None:
    """Open the lock file. Children that are forked from now on close it."""
    with taken.opened() as folder:
        path, create = folder.place(taken.name), partial(os.open, dir_fd=folder.file)
        taken.descriptors.extend(map(create, (path,), (flags,), (0o666,)))  # see `interrupts`
    _descriptors.update(taken.descriptors)


def _close(taken: _Taken) -> None:
    """Close the open lock file. Called again after an interrupt, it continues where it stopped."""
    for descriptor in list(taken.descriptors):
        if msvcrt is None:  # a child forked meanwhile may still have the file open
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        _descriptors.discard(descriptor)
        any(map(os.close, map(taken.descriptors.pop, (-1,))))  # in one call: see `interrupts`


def discard(path: str, folder: int | None = None) -> None:
    """Remove a lock file that is not held. A held one stays, so that there is only one holder.

    `folder` is the descriptor of the directory that `path` is relative to.
    """
    with suppress(OSError):
        if msvcrt is None:
            # see `interrupts`
            (descriptor,) = map(partial(os.open, dir_fd=folder), (path,), (_OPEN & ~os.O_CREAT,))
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(path, descriptor, folder):
                    os.unlink(path, dir_fd=folder)
            finally:
                os.close(descriptor)
        else:
            os.unlink(path)


def is_held(besides: str | None = None) -> bool:
    """Return whether this thread holds any lock file, so that it may enter some locks twice.

    Lock files for a file named `besides` do not count.
    """
    paths: set[str] | None = _held.__dict__.get("paths")
    if not paths:
        return False
    ending = f"{RESERVED}{besides}{SUFFIX}"
    return besides is None or not all(path.endswith(ending) for path in paths)


def _release(taken: _Taken) -> None:
    """Remove the lock file and close it. Called again after an interrupt, it continues where it stopped."""
    if os.getpid() != taken.process:  # a child forked within the block holds nothing
        return
    left: set[str] = _held.__dict__.get("left", set())
    if taken.path in left:
        _close(taken)
        left.discard(taken.path)
    elif msvcrt is None:
        for descriptor in list(taken.descriptors):
            with suppress(OSError):
                # An interrupted waiter also removes the file, if its holder was killed meanwhile.
                if not taken.is_locked:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with taken.opened() as folder:
                    if _is_at(folder.place(taken.name), descriptor, folder.file):
                        os.unlink(folder.place(taken.name), dir_fd=folder.file)
        _close(taken)
    elif taken.descriptors:
        _close(taken)
        with suppress(OSError):  # still open elsewhere; the last user removes it
            os.unlink(taken.path)


def _lock_file(descriptor: int) -> None:
    if msvcrt is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    while True:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            time.sleep(_POLL_SECONDS)
        else:
            return


def _is_at(path: str, descriptor: int, folder: int | None = None) -> bool:
    """Return whether `path` still leads to the open file."""
    return _status_at(path, descriptor, folder) is not None


def _status_at(path: str, descriptor: int, folder: int | None = None) -> os.stat_result | None:
    """Return the status of the open file, if `path` still leads to it."""
    try:
        there = os.lstat(path, dir_fd=folder)
    except FileNotFoundError:
        return None
    return there if os.path.samestat(there, os.fstat(descriptor)) else None
