"""A directory within a `LocalStore` that no listing shows. What is made there is exchanged for what is below a prefix.

Its name is reserved, so nothing in it is a key of the store. The exchange renames files and directories, and copies
nothing. If it fails, it is undone. A killed writer leaves its directory behind. The next writer that stages something
in the same store removes it, unless the exchange had begun: then it holds old values, and stays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress

from omnizarr.stores.base import RESERVED, as_prefix
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.local import files
from omnizarr.stores.local.directory import LocalStore

try:
    import fcntl
except ImportError:  # Windows: what a killed writer leaves is not removed there
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".new"


@contextmanager
def staged(store: LocalStore) -> Iterator[Staging]:
    """Yield a new directory, which is removed at the end."""
    _sweep(store.root)
    stage = Staging(store)
    try:
        stage.begin()
        yield stage
    finally:
        stage.remove()


class Staging:
    """The directory: see `staged`.

    Attributes
    ----------
    store : LocalStore
        Where to make what shall replace something.
    """

    def __init__(self, store: LocalStore) -> None:
        self._target = store
        self._folder = os.path.join(store.root, f"{RESERVED}{os.urandom(8).hex()}{_SUFFIX}")
        self._fresh = os.path.join(self._folder, "new")
        self._old = os.path.join(self._folder, "old")
        self._files: list[int] = []  # at most one
        self._is_undone = False  # whether old values may be in the directory
        self.store = LocalStore(self._fresh, fsync=store.fsync)

    def begin(self) -> None:
        """Create the directory, and lock it."""
        os.makedirs(self._fresh)
        self._files.extend(map(os.open, (self._folder,), (os.O_RDONLY,)) if fcntl is not None else ())
        _try_lock(self._files)

    def remove(self) -> None:
        """Remove the directory. A second call does nothing."""
        if not self._is_undone:
            _remove(self._folder)
        while self._files:
            any(map(os.close, map(self._files.pop, (-1,))))  # in one call: see `interrupts`

    def is_whole(self) -> bool:
        """Return whether the directory is still there: a writer that replaces the whole hierarchy removes it."""
        with suppress(OSError):
            return not self._files or os.path.samestat(os.stat(self._folder), os.fstat(self._files[0]))
        return False

    def exchange(self, prefix: str, turn: Callable[[str], int]) -> bool:
        """Replace all that is below a prefix by what was made here.

        Parameters
        ----------
        prefix : str
        turn : callable
            When a name is put into place: those with the highest number last. They are removed first.

        Returns
        -------
        bool
            False, with nothing done, if the file system cannot rename from here to there.
        """
        folder = os.path.join(self._target.root, as_prefix(prefix)[:-1])
        os.mkdir(self._old)
        self._is_undone = True
        done: list[tuple[str, str]] = []
        try:
            for name in sorted(_names(folder), key=turn, reverse=True):
                _rename(os.path.join(folder, name), os.path.join(self._old, name), done)
            for name in sorted(_names(self._fresh), key=turn):
                _rename(os.path.join(self._fresh, name), os.path.join(folder, name), done)
            self._is_undone = False
        except BaseException as error:
            for old, new in reversed(done):
                with suppress(FileNotFoundError):  # interrupted before it was renamed
                    os.rename(new, old)
            os.rmdir(self._old)
            self._is_undone = False
            if isinstance(error, OSError):
                return False
            raise
        finally:
            self._target.forget()
        if self._target.fsync:
            files.sync_directory(folder)
        return True


def _rename(old: str, new: str, done: list[tuple[str, str]]) -> None:
    done.append((old, new))
    os.rename(old, new)


def _names(folder: str) -> list[str]:
    """Return the names of all that is in a directory, without locks and temporary files."""
    return [name for name in os.listdir(folder) if not name.startswith(RESERVED)]


def _remove(folder: str) -> None:
    with suppress(OSError):
        files.remove_tree(folder, keep=False)


def _sweep(root: str) -> None:
    """Remove what killed writers have left."""
    if fcntl is None:
        return
    with suppress(OSError):
        for name in os.listdir(root):
            if name.startswith(RESERVED) and name.endswith(_SUFFIX):
                _remove_left(os.path.join(root, name))


def _remove_left(folder: str) -> None:
    with suppress(OSError):
        (file,) = map(os.open, (folder,), (os.O_RDONLY,))
        try:
            if _try_lock([file]) and not os.path.exists(os.path.join(folder, "old")):
                _remove(folder)
        finally:
            os.close(file)


def _try_lock(opened: list[int]) -> bool:
    """Lock the open directory, if there is one and its file system has locks; return whether it is locked."""
    with suppress(OSError):
        for file in opened:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
