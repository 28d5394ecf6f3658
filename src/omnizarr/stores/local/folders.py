"""Open directories. What is done in one does not lead elsewhere, even if its path does meanwhile.

Somebody who may write into a hierarchy can replace a directory by a symbolic link at any moment: after it was looked
at, and before something in it is deleted, moved or replaced. So a directory is opened, step by step from the root and
without following links, and each name is looked up in the open one.

Windows has no such calls. There, a directory is checked immediately before each use.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Self

from omnizarr.stores.base import RESERVED, Buffer
from omnizarr.stores.local import filelocks, files

_CALLS = {os.open, os.unlink, os.rmdir, os.rename, os.mkdir, os.stat}
CAN_OPEN = os.supports_dir_fd >= _CALLS and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
"""Whether the operating system has calls for names in open directories."""
_ROOT = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_BELOW = _ROOT | getattr(os, "O_NOFOLLOW", 0)
_LINK = {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}
_MOST_OPEN = 32  # directories at a time; a program may have a few hundred open files


class Folder:
    """An open directory, and the one that it is in. Close it.

    Parameters
    ----------
    path : str
        The topmost directory. It may be a link.
    names : list of str
        The way from there. NotADirectoryError or an error like it says that there is a link on it.
    """

    __slots__ = ("_files", "names", "top")

    def __init__(self, path: str, names: list[str]) -> None:
        self.top, self.names = path, names
        self._files: list[int] = []  # the last is this directory
        if not CAN_OPEN:
            _check(path, names)
            return
        try:
            self._files.extend(map(os.open, (path,), (_ROOT,)))  # see `interrupts`
            for name in names:
                self._step(name)
        except BaseException:
            self.close()
            raise

    def _step(self, name: str) -> None:
        files = self._files
        files.extend(map(partial(os.open, dir_fd=files[-1]), (name,), (_BELOW,)))
        if len(files) > 2:  # only the one above is needed
            any(map(os.close, map(files.pop, (0,))))

    def close(self) -> None:
        """Close it. A second call does nothing."""
        while self._files:
            any(map(os.close, map(self._files.pop, (-1,))))  # in one call: see `interrupts`

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def file(self) -> int | None:
        """The descriptor, for ``dir_fd=``; None where there is none."""
        return self._files[-1] if self._files else None

    def place(self, name: str) -> str:
        """Return the name to be used together with `file`."""
        return name if self._files else os.path.join(self.top, *self.names, name)

    def below(self, name: str) -> Folder:
        """Open a directory in this one, which is no link."""
        found = object.__new__(Folder)
        found.top, found.names, found._files = self.top, [*self.names, name], []
        if self._files:
            found._files.extend(map(partial(os.open, dir_fd=self._files[-1]), (name,), (_BELOW,)))
        else:
            _check(found.top, found.names)
        return found

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Yield what is in it. The paths of the entries mean nothing."""
        with os.scandir(self._files[-1] if self._files else self.place("")) as entries:
            yield from entries

    def is_folder(self, name: str) -> bool:
        """Return whether a name is that of a directory, and of no link."""
        with suppress(OSError):
            return stat.S_ISDIR(os.stat(self.place(name), dir_fd=self.file, follow_symlinks=False).st_mode)
        return False

    def has(self, name: str) -> bool:
        """Return whether there is something by a name."""
        try:
            os.stat(self.place(name), dir_fd=self.file, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def mkdir(self, name: str) -> None:
        """Make a directory."""
        os.mkdir(self.place(name), dir_fd=self.file)

    def unlink(self, name: str) -> None:
        """Remove a file or a link."""
        os.unlink(self.place(name), dir_fd=self.file)

    def rmdir(self, name: str) -> None:
        """Remove an empty directory."""
        os.rmdir(self.place(name), dir_fd=self.file)

    def write_new(self, name: str, value: Buffer, *, fsync: bool = False) -> None:
        """Write a file that must not exist yet."""
        files.write_new(self.place(name), value, fsync=fsync, folder=self.file)

    def rename(self, name: str, other: Folder, new: str) -> None:
        """Move something to another open directory."""
        os.rename(self.place(name), other.place(new), src_dir_fd=self.file, dst_dir_fd=other.file)

    def sync(self) -> None:
        """Wait until the names in it are on the disk."""
        if self._files:
            os.fsync(self._files[-1])

    def remove(self) -> None:
        """Remove this directory, if it is empty. Raises OSError, also for the topmost one."""
        if not self.names:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), self.top)
        os.rmdir(self.names[-1] if self._files else self.place(""), dir_fd=self._files[0] if self._files else None)

    def remove_tree(self, name: str) -> None:
        """Remove a directory in it with everything below. A link is removed, not followed."""
        try:
            mode = os.stat(self.place(name), dir_fd=self.file, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return
        if stat.S_ISLNK(mode):
            with suppress(OSError):
                self.unlink(name)
        elif stat.S_ISDIR(mode):
            way = _Way(self)
            try:
                folder = way.to((name,))
                if folder is not None:
                    folder.clear()
            finally:
                way.close()
            with suppress(OSError):
                self.rmdir(name)

    def clear(self) -> None:
        """Remove everything in it. What others create meanwhile may stay."""
        found: list[tuple[str, ...]] = [()]
        way = _Way(self)
        try:
            for names in found:
                folder = way.to(names)
                if folder is not None:
                    found += [(*names, name) for name in _cleared(folder)]
            for names in reversed(found[1:]):
                folder = way.to(names[:-1])
                if folder is not None:
                    with suppress(OSError):
                        folder.rmdir(names[-1])
        finally:
            way.close()


class _Way:
    """The open directories on the way to the one that is needed: most that follow are in the same."""

    def __init__(self, top: Folder) -> None:
        self._top = top
        self._open: list[Folder] = []  # from the top down
        self._deep: list[Folder] = []  # the one further down that is in use

    def to(self, names: tuple[str, ...]) -> Folder | None:
        """Return the directory, which is closed by the next call; None if it is gone, or is none any more."""
        kept = 0
        for folder, name in zip(self._open, names, strict=False):
            if folder.names[-1] != name:
                break
            kept += 1
        self.close(kept)
        here = self._open[-1] if self._open else self._top
        for name in names[kept:]:
            opened = self._open if len(self._open) < _MOST_OPEN else self._deep
            try:
                opened.extend(map(here.below, (name,)))
            except OSError as error:
                if error.errno in _LINK:  # it has taken the place of the directory
                    with suppress(OSError):
                        here.unlink(name)
                elif error.errno != errno.ENOENT:
                    raise
                return None
            here = opened[-1]
            while len(self._deep) > 1:
                self._deep.pop(0).close()
        return here

    def close(self, kept: int = 0) -> None:
        """Close all but the first ones."""
        while self._deep:
            self._deep.pop().close()
        while len(self._open) > kept:
            self._open.pop().close()


def _cleared(folder: Folder) -> list[str]:
    """Remove the files in a directory, and return the names of directories in it."""
    folders = []
    file, above = folder.file, folder.place("")
    for entry in folder.scan():
        name = entry.name
        if entry.is_dir(follow_symlinks=False):
            folders.append(name)
        elif name.startswith(RESERVED) and name.endswith(filelocks.SUFFIX):
            filelocks.discard(above + name, file)
        else:
            with suppress(FileNotFoundError):
                os.unlink(above + name, dir_fd=file)
    return folders


def _check(path: str, names: list[str]) -> None:
    """Raise an error if there is no directory, or a link on the way to it."""
    if not os.path.isdir(os.path.join(path, *names)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    for depth in range(len(names)):
        place = os.path.join(path, *names[: depth + 1])
        if os.path.islink(place):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), place)
