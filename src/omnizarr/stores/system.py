"""What the operating system refuses, as errors of stores: which class each number has, and what to do about it.

All stores on a disk ask here, so that one cause has one wording.
"""

from __future__ import annotations

import errno
import os
from typing import Any, Final

from omnizarr.errors import StoreAccessError, StoreError

DENIED: Final = "change the permissions of the directory, or the rules of the sandbox that this program runs in"
"""What to do about a PermissionError."""

_REMEDIES: Final = {
    errno.ENOSPC: "make room on the disk, or choose another one; values that were stored before are unchanged",
    errno.EDQUOT: "delete files of yours, or have your quota raised; values that were stored before are unchanged",
    errno.EROFS: "mount the file system for writing, or choose another place",
    errno.EFBIG: "choose smaller chunks, or raise the limit of the size of files (ulimit -f)",
    errno.EMFILE: "raise the limit of open files (ulimit -n), or close stores that you no longer need",
    errno.ENFILE: "close files of other programs, or raise the limit of the machine",
    errno.EIO: "see what the system says of the disk (dmesg), and make a copy of what can still be read",
    errno.ESTALE: "open it again: the server of the network file system has another file there now",
    errno.ENOTDIR: "a file is where a directory should be; choose another place, or move the file away",
    errno.EACCES: DENIED,
    errno.EPERM: DENIED,
}


def remedy(number: int | None) -> str | None:
    """Return what to do about an error of the operating system with this number; None if nothing is known."""
    return _REMEDIES.get(number or 0)


def failure(error: OSError, message: str = "{}", /, **fields: Any) -> StoreError:
    """Return the error of omnizarr for one of the operating system, with its number.

    Parameters
    ----------
    error : OSError
    message : str
        What is wrong; ``{}`` is what the operating system says.
    **fields
        Fields of the error; `remedy` in place of the usual one.
    """
    said = error.strerror or str(error) or type(error).__name__
    kind = StoreAccessError if isinstance(error, PermissionError) else StoreError
    made = kind(message.format(said), **fields).add(remedy=remedy(error.errno))
    made.errno = error.errno
    return made


def named_in(text: str, **fields: Any) -> StoreError | None:
    """Return the error for what a library below cites of the operating system; None if it cites nothing known."""
    for number in _REMEDIES:
        said = os.strerror(number)
        if text.rstrip().endswith(said):
            return failure(OSError(number, said), **fields)
    return None


def without_files(**fields: Any) -> StoreError | None:
    """Return the error for a process that cannot open files any more; None if it can.

    A library below may say only that a file cannot be opened.
    """
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return failure(error, **fields) if error.errno in (errno.EMFILE, errno.ENFILE) else None
    return None


def full(**fields: Any) -> StoreError:
    """Return the error for a disk that is full, as far as a library below says so."""
    return failure(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), **fields)
