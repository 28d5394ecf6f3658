"""Locks among processes (and threads): one lock file beside what is locked, there only while it is.

Whoever wants in creates the file (or opens the one that is there), takes the operating system's lock
on it, and checks that the path still leads to the file that was locked; if not, tries again.
Whoever leaves removes the file while still holding it. So

- a holder that is killed leaves at most an empty file: its lock died with it, and the next one to
  come takes the file over and removes it;
- what happens to the value meanwhile (created, deleted, replaced by a rename) does not matter. A lock on the
  value's own file would move to another file at each write;
- a forked child does not inherit it;
- machines that share the file system exclude each other as far as it hands locks on (NFS does).

Windows cannot remove a file that is open, but there nothing that is open can be removed by others either:
the file is locked by polling, and removed by the last one to leave.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.stores import threads
from omnizarr.stores.base import RESERVED

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

_descriptors: set[int] = set()  # of lock files that are held


def _let_go() -> None:
    """In a forked child: close the parent's lock files, or they would stay locked if the parent is killed."""
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()
    _held.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)

_held = threading.local()  # paths that this thread holds already: {path: depth}


SUFFIX = ".lock"
"""How the names of lock files end, so that who clears a directory knows them."""


@contextmanager
def lock(path: str, make_parent: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file `path` while the ``with`` block runs; the same thread may enter twice.

    `make_parent` is called whenever the directory of `path` is missing.
    """
    depths: dict[str, int] = _held.__dict__.setdefault("depths", {})
    if path in depths:
        depths[path] += 1
        try:
            yield
        finally:
            depths[path] -= 1
        return
    with _exclusive(path, make_parent):
        depths[path] = 1
        try:
            yield
        finally:
            depths.pop(path, None)


@contextmanager
def _exclusive(path: str, make_parent: Callable[[], None]) -> Iterator[None]:
    process = os.getpid()
    taken: list[int] = []  # by now ours to release, wherever a Ctrl-C comes in between
    try:
        if _is_acquired(path, make_parent, taken):
            yield
        else:  # the file system has no locks: at least the threads exclude each other
            with threads.lock(path):
                yield
    finally:
        try:
            _release(path, process, taken)
        except BaseException:  # a Ctrl-C: a lock that was left would keep even ourselves out from now on
            _release(path, process, taken)
            raise


def _is_acquired(path: str, make_parent: Callable[[], None], taken: list[int]) -> bool:
    """Put the descriptor of the locked file into `taken`; return False if the file system knows no locks."""
    try:
        return _acquire(path, make_parent, taken)
    except OmnizarrError:
        raise
    except OSError as error:
        failure = StoreError(f"cannot be locked: {error.strerror}", found=path)
        failure.errno = error.errno
        raise failure from error


def _acquire(path: str, make_parent: Callable[[], None], taken: list[int]) -> bool:
    while True:
        try:
            descriptor = os.open(path, _OPEN, 0o666)
        except FileNotFoundError:
            make_parent()
            continue
        except PermissionError:
            # On Windows: about to be removed. Elsewhere: another user's, or we may not write here at all.
            if msvcrt is None and not os.access(os.path.dirname(path), os.W_OK):
                raise
            try:
                descriptor = os.open(path, os.O_RDONLY | (_OPEN & ~(os.O_RDWR | os.O_CREAT)))
            except FileNotFoundError:
                continue
            except PermissionError:
                if msvcrt is None:
                    raise
                time.sleep(_POLL_SECONDS)
                continue
        try:
            _lock_file(descriptor)
            if _is_at(path, descriptor):
                _descriptors.add(descriptor)
                taken.append(descriptor)
                return True
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _UNSUPPORTED:
                raise
            with suppress(OSError):
                os.unlink(path)
            warnings.warn(
                f"the file system of {path!r} does not lock files: other processes are not kept out",
                RuntimeWarning,
                stacklevel=2,
            )
            return False
        except BaseException:  # interrupted while waiting
            _give_up(path, descriptor, taken)
            raise
        os.close(descriptor)


def discard(path: str) -> None:
    """Remove a lock file that nobody holds; one that is held stays, or a second holder could come in."""
    with suppress(OSError):
        if msvcrt is None:
            descriptor = os.open(path, _OPEN & ~os.O_CREAT)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(path, descriptor):
                    os.unlink(path)
            finally:
                os.close(descriptor)
        else:
            os.unlink(path)


def _give_up(path: str, descriptor: int, taken: list[int]) -> None:
    """Let go of a lock file that is not among those to be released."""
    if descriptor not in taken:
        _descriptors.discard(descriptor)
        os.close(descriptor)
        discard(path)


def is_held(besides: str | None = None) -> bool:
    """Return whether this thread holds any lock file, so that it may enter some locks twice.

    Those that lock a file of the name `besides` do not count.
    """
    depths: dict[str, int] | None = _held.__dict__.get("depths")
    if not depths:
        return False
    ending = f"{RESERVED}{besides}{SUFFIX}"
    return besides is None or not all(path.endswith(ending) for path in depths)


def _release(path: str, process: int, taken: list[int]) -> None:
    """Remove the lock file and let go of it; begun again after an interrupt, do what is left to do."""
    if os.getpid() != process:  # a child forked within the block holds nothing
        return
    for descriptor in taken:
        _descriptors.discard(descriptor)
        with suppress(OSError):
            if msvcrt is None and _is_at(path, descriptor):
                os.unlink(path)
        with suppress(OSError):
            if msvcrt is None:  # a child that was forked meanwhile may have the file open still
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(taken.pop())
        if msvcrt is not None:
            with suppress(OSError):  # still open elsewhere: the last one removes it
                os.unlink(path)


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


def _is_at(path: str, descriptor: int) -> bool:
    """Return whether `path` still leads to the open file."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))
