"""A directory within a `LocalStore` that no listing shows. What is made there is exchanged for what is below a prefix.

Its name is reserved, so nothing in it is a key of the store. The exchange renames files and directories, and copies
nothing. If it fails, it is undone. A killed writer leaves its directory behind. The next writer that stages something
in the same store removes it, unless the exchange had begun: then it holds old values, and stays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

from omnizarr.stores.base import RESERVED, as_prefix
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.local.folders import Folder, close_all

try:
    import fcntl
except ImportError:  # Windows: what a killed writer leaves is not removed there
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".new"
_FRESH, _OLD = "new", "old"
_ATTEMPTS = 1000  # to remove what others still write to


@contextmanager
def staged(store: LocalStore) -> Iterator[Staging]:
    """Yield a new directory, which is removed at the end."""
    _sweep(store)
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
        self._name = _new_name()
        self._files: list[int] = []  # at most one
        self._is_undone = False  # whether old values may be in the directory
        self.store = store.below(os.path.join(self._name, _FRESH))

    def begin(self) -> None:
        """Create the directory, and lock it."""
        with self._target.made("") as root:
            root.mkdir(self._name)
            with root.below(self._name) as own:
                own.mkdir(_FRESH)
                if fcntl is not None:
                    own.read_into(self._files)
        _try_lock(self._files)

    def remove(self) -> None:
        """Remove the directory. A second call does nothing.

        Threads and processes that were given up may still write in it. By another name they find it no more, and do not
        make it again, as it has no document: only what they have begun still comes.
        """
        if not self._is_undone:
            aside = _new_name()
            with suppress(OSError), self._target.opened("") as root:
                with suppress(OSError):  # Windows renames nothing in which a file is open
                    root.rename(self._name, root, aside)
                for name in (self._name, aside):
                    for _attempt in range(_ATTEMPTS):
                        root.remove_tree(name)
                        if not root.has(name):
                            break
        close_all(self._files)

    def is_whole(self) -> bool:
        """Return whether the directory is still there: a writer that replaces the whole hierarchy removes it."""
        with suppress(OSError):
            path = os.path.join(self._target.root, self._name)
            return not self._files or os.path.samestat(os.stat(path), os.fstat(self._files[0]))
        return False

    def exchange(self, prefix: str, turn: Callable[[str], int | None]) -> bool:
        """Replace all that is below a prefix by what was made here.

        Parameters
        ----------
        prefix : str
        turn : callable
            When a name is put into place: those with the highest number last. They are removed first. None: it stays
            where it is.

        Returns
        -------
        bool
            False, with nothing done, if the file system cannot rename from here to there.
        """
        with ExitStack() as stack:
            folder = stack.enter_context(self._target.opened(as_prefix(prefix)[:-1]))
            own = stack.enter_context(self._target.opened("")).below(self._name)
            stack.callback(own.close)
            fresh = stack.enter_context(own.below(_FRESH))
            own.mkdir(_OLD)
            self._is_undone = True
            old = stack.enter_context(own.below(_OLD))
            try:
                return self._exchanged(folder, fresh, old, turn)
            finally:
                if not self._is_undone:
                    with suppress(OSError):  # it has the old values, if all went well
                        own.rmdir(_OLD)
                self._target.forget()

    def _exchanged(self, folder: Folder, fresh: Folder, old: Folder, turn: Callable[[str], int | None]) -> bool:
        done: list[tuple[str, Folder, Folder]] = []
        try:
            for names, source, target in ((_names(folder), folder, old), (_names(fresh), fresh, folder)):
                turns = sorted(
                    ((at, name) for name in names if (at := turn(name)) is not None), reverse=source is folder
                )
                for _, name in turns:
                    done.append((name, source, target))
                    source.rename(name, target, name)
            self._is_undone = False
        except BaseException as error:
            for name, source, target in reversed(done):
                with suppress(FileNotFoundError):  # interrupted before it was renamed
                    target.rename(name, source, name)
            self._is_undone = False
            if isinstance(error, OSError):
                return False
            raise
        if self._target.fsync:
            folder.sync()
        return True


def _new_name() -> str:
    return f"{RESERVED}{os.urandom(8).hex()}{_SUFFIX}"


def _names(folder: Folder) -> list[str]:
    """Return the names of all that is in a directory, without locks and temporary files."""
    return [entry.name for entry in folder.scan() if not entry.name.startswith(RESERVED)]


def _sweep(store: LocalStore) -> None:
    """Remove what killed writers have left."""
    if fcntl is None:
        return
    with suppress(OSError), store.opened("") as folder:
        for entry in list(folder.scan()):
            if entry.name.startswith(RESERVED) and entry.name.endswith(_SUFFIX):
                _remove_left(folder, entry.name)


def _remove_left(folder: Folder, name: str) -> None:
    opened: list[int] = []
    try:
        with suppress(OSError), folder.below(name) as left:
            left.read_into(opened)
            if opened and _try_lock(opened) and not left.has(_OLD):
                folder.remove_tree(name)
    finally:
        close_all(opened)


def _try_lock(opened: list[int]) -> bool:
    """Lock the open directory, if there is one and its file system has locks; return whether it is locked."""
    with suppress(OSError):
        for file in opened:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
