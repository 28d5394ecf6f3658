"""Operations on files and directories that the local store needs: read, write, rename, remove."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Hashable
from contextlib import suppress
from functools import partial

from omnizarr.stores.base import Buffer, fill

WINDOWS = os.name == "nt"
HAS_PREADV = hasattr(os, "preadv")

# A directory, a pipe, a socket or a circular link is not a value either.
_ABSENCE = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ENXIO,
    errno.ESPIPE,
    errno.ELOOP,
}
if WINDOWS:
    _ABSENCE |= {errno.EINVAL, errno.EACCES}  # a name that is not possible; a directory

_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
# O_NONBLOCK: do not wait for the writer of a named pipe.
READ_LINK = os.O_RDONLY | _COMMON | getattr(os, "O_NONBLOCK", 0)
READ = READ_LINK | getattr(os, "O_NOFOLLOW", 0)
FOLLOWS_LINKS = not hasattr(os, "O_NOFOLLOW")  # on Windows, opening does not report links, so check
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON


# Nanoseconds after which a change certainly falls into another tick of the clock: ten of the longest ticks. The
# second is for file systems that store no fractions of seconds (at most hundredths); some count in steps of two
# seconds.
_SETTLED = 100_000_000
_SETTLED_COARSELY = 3_000_000_000
_COARSE = 10_000_000


def is_absence(error: OSError) -> bool:
    """Return whether an error means that there is no such file."""
    return error.errno in _ABSENCE


def read(file: int, start: int, length: int) -> Buffer:
    """Return `length` bytes from `start` on; fewer only if the file ends before."""
    if hasattr(os, "pread"):
        value = os.pread(file, length, start)
    else:
        os.lseek(file, start, os.SEEK_SET)
        value = os.read(file, length)
    if len(value) == length:
        return value
    # The operating system reads at most 2 GiB at once, and a network file system may read less.
    whole = bytearray(length)
    size = read_into(file, memoryview(whole), start)
    return memoryview(whole)[:size]


def read_into(file: int, out: memoryview, start: int) -> int:
    """Fill `out` from the file, from `start` on, and return how many bytes the file has from there."""
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    available = max(0, status.st_size - start)
    out = out.cast("B")[:available]
    done = 0
    while done < len(out):
        if HAS_PREADV:
            size = os.preadv(file, (out[done:],), start + done)
        else:
            os.lseek(file, start + done, os.SEEK_SET)
            size = fill(out[done:], memoryview(os.read(file, min(len(out) - done, 2**24))))
        if not size:
            return done
        done += size
    return available


def stamp(file: int) -> Hashable | None:
    """Return a stamp that distinguishes the content of an open file from all others that its name ever has.

    None if there is no such stamp. File systems count time in ticks (1 to 10 ms; some in seconds), and reuse the
    numbers of removed files. If two values are written within a tick, the second can look exactly like the first.
    So a file has a stamp only if its last change is well before the current time; every later write shows another
    time. A change in the future shows that clocks disagree.
    """
    now = time.time_ns()  # taken before the file is checked, because a thread may have to wait in between
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        return None
    return identity(status) if unsettled(now, status.st_mtime_ns, status.st_ctime_ns) <= 0 else None


def identity(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """Return what changes when a file is written, replaced, or given other permissions: numbers, size and times.

    A file that is written twice within a tick of the clock can look the same after both. The change of the inode that
    comes last is for those who do not mind that a new name or other permissions look like another content.
    """
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def unsettled(now: int, *times: int) -> int:
    """Return for how many nanoseconds from `now` on a change of a file may still leave it with the same times.

    Zero or less: every later change shows other times.
    """
    return max(times) + (_SETTLED if any(each % _COARSE for each in times) else _SETTLED_COARSELY) - now + 1


def write_new(path: str, value: Buffer, *, fsync: bool, folder: int | None = None) -> None:
    """Write `value` to a file that must not exist yet. `folder` is the open directory that the path is relative to."""
    create = os.open if folder is None else partial(os.open, dir_fd=folder)  # both are of C: see `interrupts`
    (file,) = map(create, (path,), (_CREATE,), (0o666,))
    try:
        if (written := os.write(file, value)) != len(value):
            _write_rest(file, value, written)
        if fsync:
            os.fsync(file)
    finally:
        os.close(file)


def _write_rest(file: int, value: Buffer, written: int) -> None:
    """Write what one call did not write: the operating system writes at most 2 GiB at once."""
    rest = memoryview(value).cast("B")[written:]
    while rest:
        rest = rest[os.write(file, rest) :]


def discard(path: str) -> None:
    """Remove a file, if possible."""
    with suppress(OSError):
        os.unlink(path)


def sync_directory(folder: str) -> None:
    """Wait until the names in a directory are on the disk."""
    if WINDOWS:  # directories cannot be opened there
        return
    try:
        (file,) = map(os.open, (folder,), (os.O_RDONLY | _COMMON,))  # see `interrupts`
    except FileNotFoundError:  # removed again
        return
    try:
        os.fsync(file)
    finally:
        os.close(file)


def is_in_the_way(path: str) -> bool:
    """Return whether something that is not a directory has the name of a needed directory."""
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        return os.path.islink(path)


def _replace_patiently(source: str, target: str) -> None:
    """Rename. On Windows this fails while another program has the target open, so try repeatedly."""
    for attempt in range(50):
        try:
            os.replace(source, target)
        except PermissionError:
            if os.path.isdir(target):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target) from None
            time.sleep(0.001 * attempt)
        else:
            return
    os.replace(source, target)


def _link(source: str, target: str) -> None:
    """Give a file a second name, unless that exists, and remove the first name."""
    os.link(source, target)
    os.unlink(source)


replace = _replace_patiently if WINDOWS else os.replace
rename_to_free = os.rename if WINDOWS else _link  # on Windows, `rename` never replaces a file
