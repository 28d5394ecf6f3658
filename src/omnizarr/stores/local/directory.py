"""Values in files. Keys are the paths below one directory.

Symbolic links
    A key cannot leave the root. Keys are checked as text, and symbolic links that lead out of the root are refused in
    reading and writing, and left out of listings. The root itself may be a link; it leads to the same directory as long
    as the store is open. Links that stay inside are followed in reading; writing replaces a linked file by a regular
    file. Listings omit links to a directory above, which would never end.
    Someone may also replace directories by links while the store is open. Nothing outside is written, deleted or moved
    then, and with the native core nothing is read (see `omnizarr.stores.local.folders`), but sizes and names may be
    seen there. On Windows, directories are only checked before each use.

Limits of the file system
    If the file system does not distinguish ``A`` from ``a`` (macOS and Windows by default), these are the same key. If
    ``a`` is a value, there can be no ``a/b``, and vice versa. Windows accepts paths of more than 260 characters only
    with the option LongPathsEnabled, and never accepts some names (``con``, ``a:b``).

Writing
    A value is written to a temporary file beside it, which is then renamed. Others see the old value or the new
    one, also if the writer is killed. A killed writer leaves its temporary file behind, under a name that
    cannot be a key and is not listed; `delete_prefix` removes such files, too.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from omnizarr.errors import InvalidKeyError, OmnizarrError, StoreError, StoreLimitError
from omnizarr.stores import system, verbs
from omnizarr.stores.base import (
    RESERVED,
    Buffer,
    Buffers,
    Features,
    InNewFolder,
    Listing,
    Parts,
    Span,
    Store,
    answers,
    as_prefix,
    bounds,
    check_key,
    is_key,
)
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.local import filelocks, files, folders
from omnizarr.stores.local.folders import LINK, Folder, Way, entered, make, make_below, open_into
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Lazy("hashlib")

_List: TypeAlias = list  # within the class, `list` is a method
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV}
_MAX_KNOWN = 20_000  # directories remembered as checked
_FEW = 16  # entries of a directory up to which listing is faster than looking for names
_MAX_NAME = 255  # bytes, on most file systems; those with a lower limit raise an error
_BATCH = 10_000  # keys that are deleted in one call
_MANY = 4  # small parts of a file that are read by one call of the native engine
_SMALL = 1 << 20
_ATTEMPTS = 1000  # to create a directory that others keep removing
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_PARTLY = b"changing"  # in the lock file of a node of which something is deleted
_SPARE = bytearray(1)  # receives one byte past the end, which shows that there is more; its content is not used

# Characters and names that Windows does not allow, or that have another meaning (streams, devices).
_is_windows_key = re.compile(
    r'(?:(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:[./]|\Z))[^<>:"|?*\x01-\x1f/]*[^<>:"|?*\x01-\x1f/. ](?:/|\Z))+',
    re.IGNORECASE,
).fullmatch


class Home(NamedTuple):
    """The array whose chunks are stored."""

    folder: str
    """Its directory, a key without a slash at its end; "" for the root."""
    document: str
    """The key of a document that it has."""
    check: Callable[[], None]
    """Raises if the document does not exist any more."""


def _read_places(file: int, places: Sequence[tuple[int, int]]) -> Buffers:
    """Return parts of an open file, by start and length; shorter ones only where it ends."""
    module: Any = folders.native() if len(places) >= _MANY and max(length for _, length in places) <= _SMALL else None
    if not hasattr(module, "read_spans"):
        return [files.read(file, *place) for place in places]
    try:
        found: Buffers = module.read_spans(file, places)
    except InterruptedError:  # by a signal, which Python sees to
        return [files.read(file, *place) for place in places]
    for number, place in enumerate(places):
        if len(found[number]) < place[1]:  # the system read less, or the file has become shorter
            found[number] = files.read(file, *place)
    return found


@lru_cache(maxsize=64)
def _is_known_name(name: str) -> bool:
    """Return whether a name, such as that of a document, is a key, and so also after any prefix."""
    return is_key(name)


class LocalStore(Store):
    """A store in a directory of the local file system.

    Parameters
    ----------
    root : path
        The directory. It need not exist: the first write creates it. Reading never creates it.
    read_only : bool, default False
        Whether to refuse to write.
    fsync : bool, default False
        Wait until each value and its name are on the disk, so that a power failure loses nothing that was
        written. It costs milliseconds per value.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = LocalStore(folder.name)
    >>> store.set("a/c/0", b"abcdef")
    >>> store.get("a/c/0", (2, 4)), list(store.list())
    (b'cd', ['a/c/0'])
    >>> folder.cleanup()
    """

    home: Home | None = None
    is_missing = False
    """Whether `omnizarr.stores.resolve` found no directory when it made this store."""

    features = Features(exclusion="lock", is_shared=True, listing="complete", sets_unlocked=True)

    def __init__(self, root: str | os.PathLike[str], *, read_only: bool = False, fsync: bool = False) -> None:
        root = os.fspath(root)
        # `abspath` does the same, in five calls
        self.root = os.path.normpath(root) if root[:1] == "/" == os.sep else os.path.abspath(root)
        self.read_only = read_only
        self.fsync = fsync
        self._base = self.root.rstrip(os.sep) + os.sep
        self._way = Way(self.root)
        self._known: set[str] = set()  # parents of keys that exist inside the root

    def of_array(self, home: Home) -> LocalStore:
        """Return a store for the same files, for the chunks of an array.

        It does not create the directory of the array again if the array is deleted.
        """
        clone = object.__new__(LocalStore)
        clone.__dict__.update(self.__dict__, home=home)  # shares the set of known directories
        return clone

    def check_home(self) -> None:
        """Raise the error of `Home.check` if the array does not exist any more. Only for stores of arrays."""
        if self.home is not None:
            try:
                os.lstat(self._base + self.home.document)
            except OSError:
                self.home.check()

    def has_root(self) -> bool:
        """Return whether the directory exists."""
        if os.path.isdir(self._base):
            self._known.add("")  # so that the first value need not check again
            return True
        self._known.discard("")
        return False

    def real_root(self) -> str:
        """Return the path of the directory without links. It stays the same from now on."""
        return self._way.settled().rstrip(os.sep) or os.sep

    @property
    def knows_root(self) -> bool:
        """Whether the directory has been seen."""
        return "" in self._known

    def has_at_root(self, name: str) -> bool:
        """Return whether a name is a file directly in the directory."""
        if not os.path.isfile(self._base + name):
            return False
        self._known.add("")
        return True

    def files_at_root(self, names: Sequence[str]) -> Sequence[str] | None:
        """Return which of the names are files directly in the directory; None if that does not exist."""
        if (module := folders.native()) is None:
            return [name for name in names if os.path.isfile(self._base + name)] if self.has_root() else None
        found = module.present(self.root, names)
        if found is None:
            self._known.discard("")
            return None
        self._known.add("")
        return [names[position] for position in found]

    # -- reading ------------------------------------------------------------------

    # `get` and `read_into` are the most frequently called functions of the library; hence few frames, and no pathlib.

    def get(  # noqa: C901, PLR0912 - each function that it would call makes small reads slower
        self, key: str, span: Span | None = None, most: int | None = None
    ) -> Buffer | None:
        """Read the file. A value of more than `most` bytes raises StoreLimitError."""
        parent, slash, name = key.rpartition("/")
        if parent not in self._known or not (name.isalnum() or _is_known_name(name)) or (slash and not parent):
            check_key(key)
        if span is None and (module := folders.native()) is not None:
            value: Any = module.read_small(self._way.path + key)
            if type(value) is bytes:
                if parent not in self._known:
                    self._reached(parent)
                if most is not None:
                    verbs.check_limit(self, key, len(value), most)
                return value
            if value == errno.ENOENT:
                return None
        opened: _List[int] = []
        try:
            if not self._open_into(opened, key):
                return None
            (file,) = opened
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                return None
            if most is not None:
                verbs.check_limit(self, key, status.st_size, most)
            if span is None:
                value = os.read(file, status.st_size)
                return value if len(value) == status.st_size else files.read(file, 0, status.st_size)
            return files.read(file, *bounds(span, status.st_size))
        except StoreError:
            raise
        except OSError as error:
            raise self._failure(error, key) from error
        except (MemoryError, OverflowError):
            raise self._too_large(key, opened[0]) from None
        finally:
            for file in opened:  # at most one, and closing it is the first call: see `interrupts`
                os.close(file)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Read the file, unless it is too large."""
        return self.get(key, None, most)

    @answers(verbs.folder)
    def _folder(self, prefix: str) -> str:
        """Return the path of the directory of a prefix."""
        return f"{self.root.replace(os.sep, '/').rstrip('/')}/{as_prefix(prefix)}"

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Read the file directly into `out`."""
        parent, slash, name = key.rpartition("/")
        if parent not in self._known or not name.isalnum() or (slash and not parent):
            check_key(key)
        opened: _List[int] = []
        try:
            if not self._open_into(opened, key):
                return None
            (file,) = opened
            if files.HAS_PREADV:
                # Ask for one byte more than fits. If it is missing, the file ends here, and its size need not be
                # asked for.
                size = os.preadv(file, (out, _SPARE), start)
                if size == out.nbytes:
                    return size
            return files.read_into(file, out, start)
        except StoreError:
            raise
        except OSError as error:
            if files.is_absence(error):  # a directory
                return None
            raise self._failure(error, key) from error
        finally:
            for file in opened:  # at most one, and closing it is the first call: see `interrupts`
                os.close(file)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read the parts from one open file, so that they belong to one version."""
        check_key(key)
        opened: _List[int] = []
        try:
            if not self._open_into(opened, key):
                return None
            (file,) = opened
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                return None
            places = [bounds(span, status.st_size) for span in spans]
            return Parts(_read_places(file, places), status.st_size)
        except StoreError:
            raise
        except OSError as error:
            raise self._failure(error, key) from error
        except (MemoryError, OverflowError):
            raise self._too_large(key, opened[0]) from None
        finally:
            for file in opened:  # at most one, and closing it is the first call: see `interrupts`
                os.close(file)

    def size(self, key: str) -> int | None:
        """Return the size of the file."""
        check_key(key)
        try:
            status = os.stat(self._base + key, follow_symlinks=False)
            parent = key.rpartition("/")[0]
            if parent not in self._known:
                self._admit(parent)
            if stat.S_ISLNK(status.st_mode):
                status = os.stat(self._inside(key))
        except StoreError:
            raise
        except OSError as error:
            if files.is_absence(error):
                return None
            raise self._failure(error, key) from error
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return identity and time of change of the file; None if it changed just now (see `stores.local.files`)."""
        # Opened, because network file systems are only consistent for open files.
        check_key(key)
        opened: _List[int] = []
        try:
            return files.stamp(opened[0]) if self._open_into(opened, key) else None
        except StoreError:
            raise
        except OSError as error:
            raise self._failure(error, key) from error
        finally:
            for file in opened:  # at most one, and closing it is the first call: see `interrupts`
                os.close(file)

    @answers(verbs.has_any)
    def _has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """List the directory, if it is small. This is faster than looking for each name."""
        prefix, names = as_prefix(prefix), tuple(names)
        if not all(map(_is_known_name, names)):
            for name in names:
                check_key(prefix + name)
        try:
            with os.scandir(self._base + prefix) as entries:
                self._admit(prefix[:-1])
                found = {entry.name.casefold() for entry in islice(entries, _FEW + 1)}
        except OSError:  # it does not exist, or it may be written but not listed
            return verbs.has_any.default(self, prefix, names)
        return (
            verbs.has_any.default(self, prefix, names)
            if len(found) > _FEW
            else not found.isdisjoint(map(str.casefold, names))
        )

    def _open_into(self, opened: _List[int], key: str) -> bool:
        """Open the file, and append the descriptor to the list; return False if there is no such file."""
        # In Python alone, a second look behind each file would cost a third of reading 16 KiB, so a directory that was
        # checked once is trusted.
        module = folders.native()
        open_file = os.open if module is None else module.open_beneath
        try:
            opened.extend(map(open_file, (self._way.path + key,), (files.READ,)))  # see `interrupts`
        except OSError as error:
            if error.errno == errno.ENOENT:
                return False
            if error.errno in LINK and self._way.is_other():
                return self._open_into(opened, key)
            return self._open_otherwise(opened, key, error)
        parent = key.rpartition("/")[0]
        if module is not None:
            if parent not in self._known or not self._way.is_settled:
                self._reached(parent)
        elif parent not in self._known:
            self._admit(parent)
        if files.FOLLOWS_LINKS and os.path.islink(self._base + key):  # opening does not report links
            self._inside(key)
        return True

    def _open_otherwise(self, opened: _List[int], key: str, error: OSError) -> bool:
        """Open a file that did not open because of a symbolic link; return False if there is no such file."""
        if error.errno in LINK:
            try:
                self._admit(key.rpartition("/")[0])
                open_into(opened, self._inside(key), files.READ)
            except StoreError:
                raise
            except OSError as second:
                error = second
            else:
                return True
        if files.is_absence(error):
            return False
        raise self._failure(error, key) from error

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Write a temporary file, and rename it."""
        self.check_writable()
        verbs.check_storable(self, key)
        self._place(key, value, replaces=True)

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Write a temporary file, and rename it only if the name is free."""
        self.check_writable()
        verbs.check_storable(self, key)
        try:
            self._place(key, value, replaces=False)
        except FileExistsError:
            if self.size(key) is None and os.path.isdir(self._base + key):
                raise self._failure(IsADirectoryError(errno.EISDIR, ""), key) from None
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return verbs.set_if_absent.default(self, key, value)
        return True

    @answers(verbs.set_in_new_folder)
    def _set_in_new_folder(self, key: str, value: Buffer) -> InNewFolder:
        """Create the directory, and link the file into it. Both fail if another writer was faster."""
        self.check_writable()
        verbs.check_storable(self, key)
        parent, _, name = key.rpartition("/")
        is_possible = parent.rpartition("/")[0] in self._known if parent else "" not in self._known
        if not is_possible or self.home is not None:
            return ""
        if not self.fsync and type(self) is LocalStore and (module := folders.native()) is not None:
            folder = f"{self._way.path}{parent}" if parent else self._way.path.rstrip(os.sep)
            done = module.create_with(folder, name, value)
            if done != "directory":
                if done:
                    self._reached(parent)
                return done  # type: ignore[no-any-return]
        elif not self._make_below_known(parent):
            return ""
        self._remember(parent)
        try:
            return "set" if verbs.set_if_absent(self, key, value) else ""
        except BaseException:
            self._prune(parent)
            if not parent:
                self._remove_root()
            raise

    def delete(self, key: str) -> None:
        """Remove the file, and directories that are empty then."""
        self.check_writable()
        check_key(key)
        if (module := folders.native()) is None:
            LocalStore._delete_many(self, (key,))  # that of a subclass may call this
            return
        parent, _, name = key.rpartition("/")
        try:
            gone = module.delete_file(self._way.path, parent, name)
        except OSError as error:
            if error.errno in LINK:
                LocalStore._delete_many(self, (key,))
            elif not files.is_absence(error):
                raise self._failure(error, key) from error
        else:
            for _ in range(gone or 0):
                self._known.discard(parent)
                parent = parent.rpartition("/")[0]

    @answers(verbs.delete_many)
    def _delete_many(self, keys: Iterable[str]) -> None:
        """Remove the files, in their order. A directory that may be empty is removed when the next one has its turn.

        Removing a directory that is not empty costs more, the more files it had: it is tried once, not for each file.
        """
        self.check_writable()
        if hasattr(module := folders.native(), "delete_files"):
            keys = self._delete_natively(module, keys)
        parent: str | None = None
        opened: _List[Folder] = []  # at most one
        is_emptied = False
        try:
            for key in keys:
                check_key(key)
                above, _, name = key.rpartition("/")
                if above != parent:
                    self._leave(opened, parent, is_emptied=is_emptied)
                    parent, is_emptied = above, False
                    try:
                        opened.extend(map(self._opened_with_above, (above,)))
                    except StoreError:
                        raise
                    except OSError as error:
                        if not files.is_absence(error):
                            raise self._failure(error, key) from error
                if opened and self._remove(key, opened[0], name):
                    is_emptied = True
        finally:
            self._leave(opened, parent, is_emptied=is_emptied)

    def _delete_natively(self, module: Any, keys: Iterable[str]) -> Iterable[str]:
        """Remove files by the native engine, and return the keys from the first one on that needs a closer look."""
        keys = iter(keys)
        while batch := list(islice(keys, _BATCH)):
            try:
                count, gone = module.delete_files(self._way.path, batch)
            except UnicodeEncodeError:  # some key is none
                count, gone = 0, ()
            self._known.difference_update(gone)
            if count < len(batch):
                return chain(batch[count:], keys)
        return ()

    def _remove(self, key: str, folder: Folder, name: str) -> bool:
        """Remove a file from an open directory, and return whether it existed."""
        try:
            folder.unlink(name)
        except OSError as error:
            if not files.is_absence(error) and not folder.is_folder(name):
                raise self._failure(error, key) from error
            return False
        return True

    def _leave(self, opened: _List[Folder], parent: str | None, *, is_emptied: bool) -> None:
        """Close the open directory `parent`, and remove it and those above it that are empty."""
        for folder in opened:
            is_gone = False
            try:
                if is_emptied and parent and folder.names == parent.split("/"):  # not by a link
                    with suppress(OSError):
                        folder.remove()
                        is_gone = True
            finally:
                folder.close()
            if is_gone and parent:
                self._known.discard(parent)
                self._prune(parent.rpartition("/")[0])
        opened.clear()

    def opened(self, parent: str) -> Folder:
        """Open the directory `parent`. Links on the way to it must stay inside the root.

        Raises OSError if it does not exist.
        """
        return self._opened(parent, Folder)

    def _open_in(self, parent: str, folder: Folder) -> None:
        self._opened(parent, folder.open)

    def _opened_with_above(self, parent: str) -> Folder:
        return self._opened(parent, Folder.with_above)

    def _opened(self, parent: str, open_folder: Callable[[str, _List[str]], Folder]) -> Folder:
        try:
            folder = open_folder(self._way.path, parent.split("/") if parent else [])
        except OSError as error:
            if error.errno not in LINK:
                raise
            if self._way.is_other():
                return self._opened(parent, open_folder)
        else:
            self._way.is_settled = True
            return folder
        target, root = self._inside(parent), self._way.settled()
        return open_folder(root, [name for name in target[len(root) :].split(os.sep) if name])

    def around(self, folder: str, *, makes: bool = False) -> tuple[Folder, str]:
        """Open the directory that a directory of the store is in, and return it with the name there.

        Parameters
        ----------
        folder : str
            A key without a slash at its end; "" is the topmost directory of the store.
        makes : bool
            Whether to create what does not exist of the way.
        """
        if folder:
            above, _, name = folder.rpartition("/")
            return (self.made if makes else self.opened)(above), name
        path, name = os.path.split(self.real_root())
        if makes:
            make(path, fsync=self.fsync)
        return Folder(path, []), name

    def below(self, name: str) -> LocalStore:
        """Return a store in a directory of this one, which must not be a link."""
        return self._at(os.path.join(self.real_root(), name))

    def beside(self, name: str) -> LocalStore:
        """Return a store in a directory beside this one, which must not be a link."""
        return self._at(os.path.join(os.path.dirname(self.real_root()), name))

    def _at(self, path: str) -> LocalStore:
        found = LocalStore(path, fsync=self.fsync)
        found._way.is_settled = True
        return found

    @answers(verbs.delete_prefix)
    def _delete_prefix(self, prefix: str) -> None:
        """Remove the directory and everything in it. Links are removed, not followed."""
        self.check_writable()
        folder = as_prefix(prefix)[:-1]
        self._admit(folder)
        above, _, name = folder.rpartition("/")
        if type(self) is LocalStore and hasattr(module := folders.native(), "delete_tree"):
            try:
                module.delete_tree(self._way.path, above, name)
            except OSError as error:
                if error.errno not in LINK and not files.is_absence(error):
                    raise self._left(error, folder) from error
            else:
                self._way.is_settled = True
                self._known.clear()
                return
        try:
            with self.opened(above) as opened:
                if name:
                    opened.remove_tree(name)
                else:
                    opened.clear()
        except StoreError:
            raise
        except OSError as error:
            if not files.is_absence(error):
                raise self._left(error, folder) from error
        self._known.clear()
        if folder:
            self._prune(above)

    def _left(self, error: OSError, folder: str) -> StoreError:
        """Return the error for a directory that was not removed, with the path at which that failed."""
        path = os.path.join(self._base, folder.rpartition("/")[0], (error.filename or "").removeprefix("./"))
        return self._failure(error, folder and f"{folder}/").add(found=path)

    def delete_node(self, folder: str, lock: str, *, whole: bool = True) -> bool:
        """Remove the directory of a node under the node's lock, in one call, and return True.

        The document of the node becomes the lock file: it is gone and the lock is held in one step. To make a lock
        file and remove it takes longer than all the rest.

        Parameters
        ----------
        folder : str
            A key without a slash at its end; not "".
        lock : str
            The name in it that is locked.
        whole : bool
            Whether to remove everything in it. Otherwise, the document must be all that it holds.

        Returns
        -------
        bool
            False if it must be done in steps, and nothing was done: the lock is held, or there is a link on the way, or
            another file, or no native engine.

        Raises
        ------
        InvalidKeyError
            If `folder` is not a key.
        """
        self.check_writable()
        folder = as_prefix(folder)[:-1]
        module = folders.native()
        if not folder or type(self) is not LocalStore or not hasattr(module, "delete_node"):
            return False
        above, _, name = folder.rpartition("/")
        try:
            is_done: bool = module.delete_node(self._way.path, above, name, lock, whole)
        except OSError as error:
            raise self._left(error, folder) from error
        if is_done:
            self._way.is_settled = True
            self._known.clear()
        return is_done

    @answers(verbs.move_prefix)
    def _move_prefix(self, prefix: str, target: str) -> bool:
        """Rename the directory, unless it is a link, or the target exists."""
        self.check_writable()
        folder, new = as_prefix(prefix)[:-1], as_prefix(target)[:-1]
        if not folder or not new or not self._admit(folder) or os.path.lexists(self._base + new):
            return False
        return self._renamed(folder, self, new)

    def _renamed(self, folder: str, other: LocalStore, new: str) -> bool:
        """Rename a directory, which need not stay in this store; return whether that was possible."""
        (above, _, name), (parent, _, fresh) = folder.rpartition("/"), new.rpartition("/")
        try:
            with self.opened(above) as source:
                if not source.is_folder(name):
                    return False
                other._make_parent(parent)
                with other.opened(parent) as target:
                    if target.has(fresh):
                        return False
                    source.rename(name, target, fresh)
                    if self.fsync:
                        source.sync()
                        target.sync()
        except OSError:  # another file system, or another writer was faster
            return False
        finally:
            self._known.clear()
            other._known.clear()
        self._prune(above)
        return True

    def _lock_path(self, key: str) -> str:
        parent, slash, name = key.rpartition("/")
        if len(name) > 60:  # keeps the name of the lock file well below the limit of 255 bytes
            name = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        return f"{self._base}{parent}{slash}{RESERVED}{name}{filelocks.SUFFIX}"

    def mark_deletion(self, lock: str, *, whole: bool) -> None:
        """Write into the lock file of the key `lock`, which you hold, that a deletion has begun.

        `whole`: of the directory with everything in it. See `killed_deletion`.
        """
        with suppress(OSError):  # the file system has no locks, or a locked file cannot be written to
            descriptor = os.open(self._lock_path(lock), os.O_WRONLY | os.O_TRUNC | _NO_LINK)
            try:
                os.write(descriptor, b"deleting" if whole else _PARTLY)
            finally:
                os.close(descriptor)

    def leave_deletion(self, lock: str) -> None:
        """Let the lock file of the key `lock`, which you hold, stay when you release it: not everything is deleted."""
        filelocks.leave(self._lock_path(lock))

    def killed_deletion(self, lock: str) -> Literal["", "whole", "part"]:
        """Return what was being deleted by a deletion that ended before its end. You hold the lock of the key `lock`.

        Lock files are empty but for those of deletions: `delete_node` makes the document of the node one.
        """
        try:
            descriptor = os.open(self._lock_path(lock), os.O_RDONLY | _NO_LINK)
            try:
                found = os.read(descriptor, len(_PARTLY))
            finally:
                os.close(descriptor)
        except OSError:  # the file system has no locks
            return ""
        return "part" if found == _PARTLY else "whole" if found else ""

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        parent = key.rpartition("/")[0]
        path = self._lock_path(key)
        has_root = True

        def make_parent() -> None:
            nonlocal has_root
            has_root = os.path.isdir(self._base)
            self._make_parent(parent)

        try:
            if parent not in self._known:
                make_parent()
            with filelocks.lock(
                path, make_parent, lambda: entered(partial(self._open_in, parent)), store=self, key=key
            ):
                yield
        finally:
            # Directories that `delete` could not remove because of the lock file, or that were created for it.
            if not os.path.lexists(self._base + key):
                self._prune(parent)
                if not has_root:
                    self._remove_root()

    def _remove_root(self) -> None:
        """Remove the topmost directory, if it is empty."""
        above, name = os.path.split(self._way.path.rstrip(os.sep))
        with suppress(OSError), Folder(above, []) as folder:
            folder.rmdir(name)

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock a file beside that of the value. See `omnizarr.stores.local.filelocks`."""
        self.check_writable()
        verbs.check_storable(self, key)
        return self._locked(key)

    def _place(self, key: str, value: Buffer, *, replaces: bool) -> None:
        """Write `value` to a temporary file, and rename it to the file of `key`. Nothing is left if that fails."""
        parent, _, name = key.rpartition("/")
        for _attempt in range(_ATTEMPTS):
            try:
                self._put(parent, name, value, replaces=replaces)
            except FileNotFoundError:  # the directory does not exist, or was removed meanwhile, with everything in it
                self._make_parent(parent)
            except (StoreError, FileExistsError):
                raise
            except OSError as error:
                raise self._failure(error, key) from error
            else:
                if parent not in self._known:
                    self._remember(parent)
                return
        raise StoreError("the directory is removed again and again", store=repr(self), key=key)

    def _put(self, parent: str, name: str, value: Buffer, *, replaces: bool) -> None:
        if not self.fsync and (module := folders.native()) is not None:
            try:
                module.set_file(self._way.path + parent, name, value, replaces)
            except OSError as error:
                if error.errno not in LINK:
                    raise
            else:
                self._way.is_settled = True
                return
        with entered(partial(self._open_in, parent)) as folder:
            folder.put(name, value, replaces=replaces, fsync=self.fsync)

    def _make_parent(self, parent: str) -> None:
        """Create the directory `parent` below the root, unless it exists, and check it."""
        self._known.discard(parent)
        is_home = self.home is not None and parent == self.home.folder
        if parent and not is_home and parent.rpartition("/")[0] in self._known and self._make_below_known(parent):
            self._remember(parent)
            return
        for _attempt in range(_ATTEMPTS):
            try:
                self._create_directories(parent)
            except OmnizarrError:
                raise
            except FileNotFoundError:  # another thread or process prunes at the same time
                continue
            except OSError as error:
                raise self._failure(error, parent) from error
            self._remember(parent)
            return
        raise StoreError("the directory is removed again and again", store=repr(self), key=parent)

    def _make_below_known(self, parent: str) -> bool:
        """Create a directory directly below a checked one, and return True; return False if it needs a closer check."""
        above, _, name = parent.rpartition("/")
        try:
            if parent:
                with self.opened(above) as folder:
                    folder.mkdir(name)
                    if self.fsync:
                        folder.sync()
            else:
                above, name = os.path.split(self._way.path.rstrip(os.sep))
                with Folder(above, []) as folder:
                    folder.mkdir(name)
                    if self.fsync:
                        folder.sync()
        except (OSError, StoreError):
            return False
        return True

    def _create_directories(self, parent: str) -> None:
        """Create what does not exist of the way to the directory `parent`, from the innermost that exists."""
        opened: _List[Folder] = []
        missing: _List[str] = []
        here = parent
        try:
            while not opened:
                try:
                    opened.extend(map(self.opened, (here,)))
                except FileNotFoundError:
                    if self.home is not None and here == self.home.folder:
                        self.home.check()
                    if here:
                        here, _, name = here.rpartition("/")
                        missing.append(name)
                    else:
                        self._make_root()
            make_below(opened, missing, fsync=self.fsync)
        finally:
            while opened:
                opened.pop().close()

    def made(self, parent: str) -> Folder:
        """Open the directory `parent`, and create it if it does not exist."""
        for _attempt in range(_ATTEMPTS):
            try:
                return self.opened(parent)
            except FileNotFoundError:
                self._make_parent(parent)
        raise StoreError("the directory is removed again and again", store=repr(self), key=parent)

    def _make_root(self) -> None:
        try:
            make(self._way.path, fsync=self.fsync)
        except OSError as error:
            if error.errno not in LINK or not self._way.is_other():
                raise
            make(self._way.path, fsync=self.fsync)

    def _prune(self, parent: str) -> None:
        """Remove the directory `parent` and those above it that are empty, up to the root."""
        while parent:
            try:
                above, _, name = parent.rpartition("/")
                with Folder(self._way.path, above.split("/") if above else []) as folder:
                    folder.rmdir(name)
            except OSError:
                return
            self._known.discard(parent)
            parent = parent.rpartition("/")[0]

    # -- listing ------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """Walk through the directories."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Walk through the directories below `prefix`."""
        return self._walk(as_prefix(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """List one directory. Empty directories are listed as prefixes."""
        if len(prefix) < 2 or not prefix.endswith("/") or prefix[:-1] not in self._known:
            prefix = as_prefix(prefix)
        keys, prefixes, others = self._scan(prefix)
        if len(self._known) + len(prefixes) < _MAX_KNOWN:
            self._known.update([each[:-1] for each in prefixes])  # they exist inside the root
        return Listing(sorted(keys), sorted(prefixes), sorted(others))

    def _walk(self, prefix: str) -> Iterator[str]:
        todo = [prefix]
        while todo:
            prefix = todo.pop()
            keys, prefixes, _ = self._scan(prefix)
            yield from keys
            todo.extend(prefixes)

    def list_unnamed(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield path from the root and size of each file below `prefix` that no key names.

        These are temporary files and locks, names that no key can have, and symbolic links that lead out of the
        store.
        """
        for folder, below, names in os.walk(self._base + as_prefix(prefix)):
            links = [name for name in below if os.path.islink(os.path.join(folder, name))]
            for name in (*names, *links):
                place = os.path.join(folder, name)
                key = place[len(self._base) :].replace(os.sep, "/")
                if not is_key(key) or (os.path.islink(place) and not self._is_inside(key)):
                    with suppress(FileNotFoundError):
                        yield key, os.lstat(place).st_size

    def sizes_below(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield what `verbs.list_sizes` does, and ask for the sizes of all files of a directory at once."""
        todo = [as_prefix(prefix)]
        while todo:
            prefix = todo.pop()
            found = self._members(prefix, sizes=True)
            if found is None:
                keys, below, _ = self._looked_through(prefix)
                yield from ((key, size) for key in keys if (size := self.size(key)) is not None)
            else:
                keys, sizes, below = found
                yield from zip(keys, sizes, strict=True)
            todo += below

    def _members(self, prefix: str, *, sizes: bool = False) -> tuple[_List[str], _List[int], _List[str]] | None:
        """Return keys, sizes if asked for, and prefixes directly under `prefix`; None if some need a closer look."""
        module = folders.native()
        found = module.members(self._way.path + prefix, prefix, sizes=sizes) if hasattr(module, "members") else None
        if found is None:
            return None
        self._reached(prefix[:-1])
        return found[0], found[1], [f"{each}/" for each in found[2]]

    def _scan(self, prefix: str) -> tuple[_List[str], _List[str], _List[str]]:
        """Return keys, prefixes and other names directly under `prefix`, without links to directories above."""
        found = self._members(prefix)
        return self._looked_through(prefix) if found is None else (found[0], found[2], [])

    def _looked_through(self, prefix: str) -> tuple[_List[str], _List[str], _List[str]]:
        keys: _List[str] = []
        prefixes: _List[str] = []
        others: _List[str] = []
        above: _List[str] = []
        try:
            with os.scandir(self._base + prefix) as entries:
                self._admit(prefix[:-1])
                for entry in entries:
                    if entry.name.startswith(RESERVED):
                        continue
                    key = prefix + entry.name
                    is_link = entry.is_symlink()
                    # A drive letter is an ordinary name, except at the root.
                    is_named = is_key(entry.name) or is_key(key)
                    if not is_named or (is_link and not self._is_inside(key)):
                        others.append(f"{key}/" if os.path.isdir(entry) else key)
                        continue
                    # A link may lead in a circle; `isdir` and `isfile` return False for it.
                    if os.path.isdir(entry) if is_link else entry.is_dir():
                        if is_link:
                            above = above or self._directories_above(prefix)
                            target = os.path.realpath(self._base + key).rstrip(os.sep) + os.sep
                            if any(folder.startswith(target) for folder in above):
                                continue
                        prefixes.append(key + "/")
                    elif os.path.isfile(entry) if is_link else entry.is_file():
                        keys.append(key)
        except StoreError:
            raise
        except OSError as error:
            if not files.is_absence(error):
                raise self._failure(error, prefix) from error
        return keys, prefixes, others

    def _directories_above(self, prefix: str) -> _List[str]:
        """Return the real paths of the directories on the way to `prefix`, including its own."""
        parts = prefix.split("/")
        return [os.path.realpath(self._base + "/".join(parts[:depth])) + os.sep for depth in range(len(parts))]

    # -- staying inside -----------------------------------------------------------

    @answers(verbs.check_storable)
    def _check_storable(self, key: str) -> None:
        """Check the names by the rules for files, too."""
        check_key(key)
        if files.WINDOWS:
            if _is_windows_key(key) is None:
                raise InvalidKeyError("Windows has no such file names", store=repr(self), key=key)
        elif len(key) > _MAX_NAME // 4 and any(len(name.encode()) > _MAX_NAME for name in key.split("/")):
            expected = f"at most {_MAX_NAME} bytes"
            raise InvalidKeyError("a file name is too long", store=repr(self), key=key, expected=expected)

    def _admit(self, parent: str) -> bool:
        """Return whether the directory `parent` exists. Raises `InvalidKeyError` if a link leads out of the root."""
        if parent in self._known:
            return True
        # Start from the nearest checked directory: deep hierarchies are usually walked level by level.
        end = parent.rfind("/")
        while end > 0 and parent[:end] not in self._known:
            end = parent.rfind("/", 0, end)
        end = max(end, 0)
        mode = 0
        while end < len(parent):
            end = parent.find("/", end + 1)
            if end < 0:
                end = len(parent)
            try:
                mode = os.lstat(self._base + parent[:end]).st_mode
            except (FileNotFoundError, NotADirectoryError):
                return False
            if stat.S_ISLNK(mode):
                self._inside(parent[:end])
        if not stat.S_ISDIR(mode) and not os.path.isdir(self._base + parent):
            return False
        self._remember(parent)
        return True

    def _is_admitted(self, key: str) -> bool:
        """Like `_admit` for the directory of a key, with the errors of reading it."""
        try:
            return self._admit(key.rpartition("/")[0])
        except StoreError:
            raise
        except OSError as error:
            raise self._failure(error, key) from error

    def forget(self) -> None:
        """Look at all directories again, because some have been renamed."""
        self._known.clear()

    def _remember(self, parent: str) -> None:
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known.add(parent)

    def _reached(self, parent: str) -> None:
        """Remember a directory that was opened with no link on the way."""
        self._remember(parent)
        self._way.is_settled = True

    def _inside(self, key: str) -> str:
        """Return the target of the symbolic link `key`. Raises `InvalidKeyError` if it is outside the root."""
        root = self._way.settled().rstrip(os.sep)
        target = os.path.realpath(self._way.path + key)
        if not target.startswith(root + os.sep) and target != root:
            raise InvalidKeyError(
                "a symbolic link leads out of the store",
                store=repr(self),
                key=key,
                found=target,
                remedy="open its target as a store of its own",
            )
        return target

    def _is_inside(self, key: str) -> bool:
        try:
            self._inside(key)
        except (InvalidKeyError, OSError):
            return False
        return True

    def _failure(self, error: OSError, key: str) -> StoreError:
        """Return the error of omnizarr for one of the operating system."""
        where: dict[str, object] = {"store": repr(self), "key": key or None}
        if error.errno in (errno.EISDIR, errno.ENOTEMPTY):
            where["remedy"] = "there are keys below it; a file system has either a file or a directory of one name"
        elif error.errno in (errno.ENOTDIR, errno.EEXIST):
            if not key:
                return system.failure(error, **where, found=error.filename)
            where["remedy"] = (
                "a parent of the key is a key itself; a file system has either a file or a directory of one name"
            )
        elif error.errno == errno.ENAMETOOLONG:
            too_long = InvalidKeyError(
                error.strerror or "the name is too long", **where, remedy="choose a shorter name"
            )
            too_long.errno = error.errno
            return too_long
        return system.failure(error, **where)

    def _too_large(self, key: str, file: int) -> StoreLimitError:
        """Return the error for a file that does not fit into memory, or claims not to."""
        return StoreLimitError(
            "the value is larger than the memory that there is",
            store=repr(self),
            key=key,
            found=f"{os.fstat(file).st_size} bytes",
            remedy="find out which program wrote the file, or read it on a machine with more memory",
        )

    # -- the store itself ---------------------------------------------------------

    def origin(self) -> tuple[Hashable, str]:
        """Return the real path of the directory."""
        return "files", os.path.normcase(os.path.realpath(self.root)).replace(os.sep, "/").strip("/")

    def above(self) -> tuple[Store, str] | None:
        """Return the directory that this one is in; None for one that belongs to no hierarchy."""
        higher, name = os.path.split(self.root)
        if not name or name.startswith(RESERVED):
            return None
        store = LocalStore(higher, read_only=self.read_only)
        if self._way.is_settled and self._way.path == self._base:
            store._way.is_settled = True  # no part of it was a link
        return store, name

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": set(), "_way": Way(self.root)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and (self.root, self.read_only) == (other.root, other.read_only)

    def __hash__(self) -> int:
        return hash((LocalStore, self.root))

    @property
    def place(self) -> str:
        """The path of the directory."""
        return self.root

    def __repr__(self) -> str:
        return f"LocalStore({self.root!r})"
