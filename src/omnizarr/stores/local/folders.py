"""Open directories. What is done in one does not lead elsewhere, even if its path does meanwhile.

A program with write access to a hierarchy can replace a directory by a symbolic link at any moment: after it was looked
at, and before something in it is read, written, deleted or moved. So files and directories are opened by their real
paths, with no link on the way (`open_into`), and each name is looked up in an open directory (`Folder`).

The native core has one call for this, and so has macOS. Otherwise, Linux says afterwards by which path a file is open,
and elsewhere each directory is opened in the one above. Windows has no such calls. There, a directory is checked
immediately before each use.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any, Self

from omnizarr.settings import engines
from omnizarr.stores.base import RESERVED, Buffer
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.local import filelocks, files

_CALLS = {os.open, os.unlink, os.rmdir, os.rename, os.mkdir, os.stat, os.link}
CAN_OPEN = os.supports_dir_fd >= _CALLS and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
"""Whether the operating system has calls for names in open directories."""
_READABLE = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = getattr(os, "O_PATH", 0) | _READABLE  # enough to name something in it; it need not be readable
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_LINKS: int = getattr(os, "O_NOFOLLOW_ANY", 0)  # none on the whole way: only macOS has it
_OPEN_FILES = "/proc/self/fd/"  # links to the real paths of open files: only Linux has them
LINK = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR})
"""Errors that say that there may be a link on the way. The second is FreeBSD's; the last can also mean a file."""
_MAKERS = frozenset({"zarr.json", ".zarray", ".zgroup", "meta", "__zmeta__"})
"""Names of files that make a directory a node in one of the formats."""
_MOST_OPEN = 32  # directories at a time; a program may have a few hundred open files


@cache
def native() -> Any:
    """Return the extension module if it has functions for files; None if the reference engine was chosen."""
    module = None if engines.is_refused() else engines.module()
    return module if hasattr(module, "open_beneath") else None


def open_into(found: list[int], path: str, flags: int) -> None:
    """Open what a real path names, and append the descriptor to a list, so that it is known wherever Ctrl-C interrupts.

    Raises OSError; one of `LINK` if there is a link on the way.
    """
    module = native()
    if module is not None:
        found.extend(map(module.open_beneath, (path,), (flags,)))  # see `interrupts`
        return
    if _NO_LINKS or not CAN_OPEN:
        found.extend(map(os.open, (path,), (flags & ~_NO_LINK | _NO_LINKS if _NO_LINKS else flags,)))
        return
    found.extend(map(os.open, (path,), (flags,)))
    try:
        if os.readlink(f"{_OPEN_FILES}{found[-1]}") == path:
            return
    except OSError:
        pass
    any(map(os.close, map(found.pop, (-1,))))  # in one call
    _open_by_steps(found, path, flags)


def _open_by_steps(found: list[int], path: str, flags: int) -> None:
    *above, last = [name for name in path.split(os.sep) if name] or ["."]
    here: list[int] = []
    try:
        here.extend(map(os.open, (os.sep,), (_FOLDER,)))
        for name in above:
            here.extend(map(partial(os.open, dir_fd=here[-1]), (name,), (_FOLDER | _NO_LINK,)))
            any(map(os.close, map(here.pop, (0,))))
        found.extend(map(partial(os.open, dir_fd=here[-1]), (last,), (flags | _NO_LINK,)))
    finally:
        close_all(here)


def close_all(found: list[int]) -> None:
    """Close descriptors. Called again after an interrupt, it continues where it stopped."""
    while found:
        any(map(os.close, map(found.pop, (-1,))))  # in one call: see `interrupts`


class Way:
    """The way to the topmost directory of a store, which may be a link: what it is when it is first used.

    Attributes
    ----------
    path : str
        The real path, with a slash at its end, as far as it is known.
    is_settled : bool
        Whether something was opened by this path, so that no part of it was a link.
    """

    __slots__ = ("is_settled", "path")

    def __init__(self, path: str, *, is_settled: bool = False) -> None:
        self.path = path.rstrip(os.sep) + os.sep
        self.is_settled = is_settled

    def settled(self) -> str:
        """Return the real path, which is the same from now on."""
        if not self.is_settled:
            self.path = os.path.realpath(self.path).rstrip(os.sep) + os.sep
            self.is_settled = True
        return self.path

    def is_other(self) -> bool:
        """Settle the path when it led over a link, and return whether that is new, so that it is worth another try."""
        if self.is_settled:
            return False
        before = self.path
        return self.settled() != before


class Folder:
    """An open directory. Close it.

    Parameters
    ----------
    path : str
        The real path of a directory.
    names : list of str
        The way from there. An error in `LINK` says that there is a link on it.
    """

    __slots__ = ("_files", "names", "top")

    def __init__(self, path: str, names: list[str]) -> None:
        self._files: list[int] = []  # the last is this directory; the one before that, if there is one, the one above
        self.open(path, names)

    @classmethod
    def closed(cls) -> Self:
        """Return one that is yet to be opened, so that it can be closed wherever Ctrl-C interrupts."""
        found = object.__new__(cls)
        found._files = []
        return found

    def open(self, path: str, names: list[str]) -> Self:
        """Open the directory."""
        self.top, self.names = path, names
        if not CAN_OPEN:
            _check(path, names)
            return self
        try:
            open_into(self._files, self._path(len(names)), _FOLDER)
        except BaseException:
            self.close()
            raise
        return self

    def _path(self, depth: int) -> str:
        return os.path.join(self.top, *self.names[:depth]).rstrip(os.sep) or os.sep

    @classmethod
    def with_above(cls, path: str, names: list[str]) -> Self:
        """Open a directory and the one above, which `remove` needs."""
        if not names or not CAN_OPEN:
            return cls(path, names)
        found = cls(path, names[:-1])
        try:
            found._files.extend(map(partial(os.open, dir_fd=found._files[-1]), (names[-1],), (_FOLDER | _NO_LINK,)))
            found.names = names
        except BaseException:
            found.close()
            raise
        return found

    def close(self) -> None:
        """Close it. A second call does nothing."""
        close_all(self._files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Close it if Ctrl-C came between opening it and the block of a ``with`` statement, or at the end of that."""
        close_all(getattr(self, "_files", []))

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
        found._files = []
        found.top, found.names = self.top, [*self.names, name]
        if self._files:
            found._files.extend(map(partial(os.open, dir_fd=self._files[-1]), (name,), (_FOLDER | _NO_LINK,)))
        else:
            _check(found.top, found.names)
        return found

    def read_into(self, found: list[int]) -> None:
        """Open this directory for reading, and append the descriptor to a list; on Windows, do nothing."""
        for file in self._files[-1:]:
            found.extend(map(partial(os.open, dir_fd=file), (".",), (_READABLE,)))

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Yield what is in it. The paths of the entries mean nothing."""
        found: list[int] = []
        try:
            self.read_into(found)
            with os.scandir(found[0] if found else self.place("")) as entries:
                yield from entries
        finally:
            close_all(found)

    def is_folder(self, name: str) -> bool:
        """Return whether a name is that of a directory and not of a link."""
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

    def put(self, name: str, value: Buffer, *, replaces: bool = True, fsync: bool = False) -> None:
        """Write a temporary file, and give it a name: that of another, or one that is free. It is gone if that fails.

        Raises FileExistsError, among other errors of the operating system.
        """
        temporary = f"{RESERVED}{os.urandom(8).hex()}.tmp"
        try:
            try:
                self.write_new(temporary, value, fsync=fsync)
                self._settle(temporary, name, replaces=replaces)
            except BaseException:
                try:  # noqa: SIM105 - `suppress` would be called first, and a Ctrl-C could come behind it
                    os.unlink(self.place(temporary), dir_fd=self.file)
                except OSError:
                    pass
                raise
        except BaseException:
            try:  # noqa: SIM105 - again: Ctrl-C may have come in an audit hook, before the file was removed
                os.unlink(self.place(temporary), dir_fd=self.file)
            except OSError:
                pass
            raise
        if fsync:
            self.sync()

    def _settle(self, temporary: str, name: str, *, replaces: bool) -> None:
        file = self.file
        if file is None:
            (files.replace if replaces else files.rename_to_free)(self.place(temporary), self.place(name))
        elif replaces:
            os.replace(temporary, name, src_dir_fd=file, dst_dir_fd=file)
        else:
            os.link(temporary, name, src_dir_fd=file, dst_dir_fd=file, follow_symlinks=False)
            os.unlink(temporary, dir_fd=file)

    def rename(self, name: str, other: Folder, new: str) -> None:
        """Move something to another open directory."""
        os.rename(self.place(name), other.place(new), src_dir_fd=self.file, dst_dir_fd=other.file)

    def sync(self) -> None:
        """Wait until the names in it are on the disk."""
        found: list[int] = []
        try:
            self.read_into(found)
            for file in found:
                os.fsync(file)
        finally:
            close_all(found)

    def remove(self) -> None:
        """Remove this directory, if it is empty. Raises OSError, also for the topmost one."""
        if not self.names:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), self.top)
        if len(self._files) > 1:
            os.rmdir(self.names[-1], dir_fd=self._files[-2])
        else:
            with Folder(self.top, self.names[:-1]) as above:
                above.rmdir(self.names[-1])

    def remove_tree(self, name: str) -> None:
        """Remove a directory in it with everything below. A link is removed, not followed.

        In each directory, documents of nodes go first (see `turn`). Raises OSError with the path.
        """
        if self._remove_natively(name):
            return
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

    def _remove_natively(self, name: str | None) -> bool:
        """Remove a directory in it, or everything, by the native engine; return False if that cannot."""
        module = native() if self._files else None
        if not hasattr(module, "remove_tree"):
            return False
        try:
            module.remove_tree(self._files[-1], name)  # type: ignore[union-attr]
        except OSError as error:
            error.filename = os.path.join(self._path(len(self.names)), os.fsdecode(error.filename).removeprefix("./"))
            raise
        return True

    def clear(self) -> None:
        """Remove everything in it. What others create meanwhile may stay. Raises OSError with the path."""
        if self._remove_natively(None):
            return
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


@contextmanager
def entered(open_folder: Callable[[Folder], object]) -> Iterator[Folder]:
    """Yield a directory that `open_folder` opens, and close it at the end wherever Ctrl-C interrupts."""
    folder = Folder.closed()
    try:
        open_folder(folder)
        yield folder
    finally:
        try:
            folder.close()
        except BaseException:
            folder.close()
            raise


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
                if error.errno in LINK:  # it has taken the place of the directory
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
    """Remove the files in a directory, documents first, and return the names of directories in it."""
    folders: list[str] = []
    names: list[str] = []
    name = ""
    file, above = folder.file, folder.place("")
    try:
        for entry in folder.scan():
            (folders if entry.is_dir(follow_symlinks=False) else names).append(entry.name)
        for name in sorted(names, key=turn):
            if name.startswith(RESERVED) and name.endswith(filelocks.SUFFIX):
                filelocks.discard(above + name, file)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(above + name, dir_fd=file)
    except OSError as error:
        error.filename = os.path.join(folder.top, *folder.names, *filter(None, (name,)))
        raise
    return folders


def turn(name: str) -> int:
    """Return when the file of a name has its turn to be removed: first the copies of documents, then what makes a node.

    A reader that comes in between, or after the program was killed, finds no array that lacks some of its chunks or
    attributes. `rust/src/files/removal.rs` does the same.
    """
    if name == ".zmetadata":
        return 0
    if name in _MAKERS or name.endswith((".array.json", ".group.json")):
        return 1
    return 2 if name.endswith(".json") or name.startswith(".z") or name == "attrs" else 3


def make(path: str, *, fsync: bool = False) -> None:
    """Make the directory with a real path, and those above it that do not exist.

    Raises OSError; one of `LINK` if there is a link on the way.
    """
    missing: list[str] = []
    opened: list[Folder] = []
    try:
        while not opened:
            try:
                opened.append(Folder(path, []))
            except FileNotFoundError:
                path, name = os.path.split(path.rstrip(os.sep))
                if not name:
                    raise
                missing.append(name)
        make_below(opened, missing, fsync=fsync)
    finally:
        while opened:
            opened.pop().close()


def make_below(opened: list[Folder], missing: list[str], *, fsync: bool) -> None:
    """Make directories in the one that is open, the last name first, and leave the innermost open."""
    for name in reversed(missing):
        with suppress(FileExistsError):
            opened[-1].mkdir(name)
        if fsync:
            opened[-1].sync()
        opened.append(opened[-1].below(name))
        opened.pop(0).close()


def _check(path: str, names: list[str]) -> None:
    """Raise an error if there is no directory, or a link on the way to it."""
    if not os.path.isdir(os.path.join(path, *names)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    for depth in range(len(names)):
        place = os.path.join(path, *names[: depth + 1])
        if os.path.islink(place):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), place)
