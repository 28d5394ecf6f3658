"""Values in an LMDB database: a tree of keys in a file that processes map into their memory.

The layout is that of zarr-python 2: keys and values are records of the unnamed database. Its keys are ASCII, ours are
UTF-8.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar

from omnizarr.errors import (
    MissingDependencyError,
    OmnizarrError,
    StoreAccessError,
    StoreError,
    StoreLimitError,
)
from omnizarr.stores import system, verbs
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Listing,
    Parts,
    Span,
    Stamped,
    Store,
    answers,
    as_prefix,
    bounds,
    check_key,
    fill,
    is_key,
    listing,
)
from omnizarr.stores.database.base import PAGE, DatabaseStore, Record
from omnizarr.stores.database.lmdb_pages import check_pages
from omnizarr.stores.fork_locks import Gate
from omnizarr.support import amounts, extras
from omnizarr.support.locks import RLock

T = TypeVar("T")
Transaction: TypeAlias = Any  # lmdb has no types

MAP_SIZE: Final = 2**30 if os.name != "nt" else 2**26  # on Windows the file is as large as the map
MAX_KEY: Final = 511
"""Maximum bytes of a key in usual builds of LMDB."""

_MAX_READERS: Final = 1024
_LOCK_SIZE: Final = 2**17  # of the lock file: 64 bytes for each reader, and a header
_LEAST_ROOM: Final = 2**16
_PATIENCE: Final = 5.0
_TRIES: Final = 1000  # to look at a state before other writers replace its record


class LMDBStore(DatabaseStore["_Environment"]):
    """A store in an LMDB database (extra ``lmdb``).

    Parameters
    ----------
    path : path
        The database: a directory that holds ``data.mdb``, or the file itself. A new database is created with
        its first value.
    read_only : bool, default False
        Whether to refuse to write.
    map_size : int or str, optional
        Initial size of the memory map in bytes, also as text: ``"10GiB"``. It grows automatically.
    subdir : bool, default True
        Whether a new database is a directory, or (False) a file with its lock file beside it. An existing
        database does not change.
    fsync : bool, default False
        Whether to wait after each change until it is on the disk. Otherwise only `close` waits, and a crash of
        the operating system (not of a program) before that may damage the database.
    check : bool, default True
        Whether to check all pages with keys when the database is opened. LMDB does not check them: reading a damaged
        file without this can end the process. It takes about 0.3 s for a million keys.

    Notes
    -----
    Each method is one transaction, `set_many` one for several megabytes. Threads and processes of one machine
    can read and write at the same time. A process opens a database only once, for all its stores. Keys have at
    most 511 bytes. `lock` takes a lock file beside the database, so writers of different keys do not wait for
    each other.

    Values are copied out of the map; reading a part copies only that part. Another program that changes the file while
    it is open can end the process.

    Spec: none; the layout is that of ``zarr.LMDBStore`` of zarr-python 2.18.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with LMDBStore(folder.name + "/data.lmdb") as store:
    ...     store.set("a/c/0", b"0123456789")
    ...     store.get("a/c/0", (1, 5)), store.size("a/c/0"), store.list_dir("")
    (b'1234', 10, Listing(keys=[], prefixes=['a/']))
    >>> folder.cleanup()
    """

    kind = "lmdb"
    url_options = frozenset({"check", "fsync", "map_size", "subdir"})

    features = DatabaseStore.features

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        map_size: int | str = MAP_SIZE,
        subdir: bool = True,
        fsync: bool = False,
        check: bool = True,
    ) -> None:
        path = os.fspath(path)
        if not path:
            raise ValueError("the path of a database cannot be empty")
        map_size = amounts.nbytes(map_size)
        if map_size <= 0:
            raise ValueError(f"map_size is {map_size}, must be positive")
        self.path = os.path.abspath(path)
        self.read_only = read_only
        self.map_size = map_size
        self.subdir = subdir
        self.fsync = fsync
        self.check = check
        self._open()

    def _open(self) -> None:
        user = _User()
        self._database = environment = _acquire(self, user)
        self._finalizer = weakref.finalize(self, _release, environment, user)

    # -- transactions -------------------------------------------------------------

    def _read(self, work: Callable[[Transaction], T], key: str | None = None) -> T | None:
        """Return the result of `work` for one state of the database; None if there is no database."""
        return self._opened(key).run(work, repr(self), key, writes=False)

    def _write(self, work: Callable[[Transaction], T], key: str | None = None, size: int = 0) -> T:
        """Return the result of `work`, which changes the database completely or not at all. It may be called again."""
        result = self._opened(key).run(
            lambda transaction: (work(transaction),), repr(self), key, writes=True, size=size
        )
        assert result is not None  # noqa: S101 - writers create the database
        return result[0]

    # -- reading ------------------------------------------------------------------

    def _view(self, key: str, look: Callable[[Transaction, memoryview], T]) -> T | None:
        """Return the result of `look` for the value of `key`, which is in the map as long as the transaction lasts."""
        check_key(key)
        raw = key.encode()
        if len(raw) > MAX_KEY:
            return None

        def work(transaction: Transaction) -> T | None:
            value = transaction.get(raw)
            return None if value is None else look(transaction, memoryview(value))

        return self._read(work, key)

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Copy the value, or only the part that `span` means."""
        return self._view(key, lambda _, value: bytes(_cut(value, span)))

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Copy the value, unless it is too large."""

        def look(_: Transaction, value: memoryview) -> bytes:
            verbs.check_limit(self, key, len(value), most)
            return bytes(value)

        return self._view(key, look)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Copy the parts of the value in one transaction."""
        spans = list(spans)

        def look(_: Transaction, value: memoryview) -> Buffers:
            return Parts([bytes(_cut(value, span)) for span in spans], len(value))

        return self._view(key, look)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Copy from the map directly into `out`."""
        return self._view(key, lambda _, value: fill(out, value[start:]))

    def size(self, key: str) -> int | None:
        """Return the size of the value, without reading it."""
        return self._view(key, lambda _, value: value.nbytes)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the version of the whole database: every change of any value changes the stamps of all values."""
        return self._view(key, lambda transaction, _: self._stamp_of(transaction))

    @answers(verbs.get_stamped)
    def _get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Copy the value and its stamp in one transaction."""

        def look(transaction: Transaction, value: memoryview) -> tuple[Stamped | None]:
            stamp = self._stamp_of(transaction)
            return (None if stamp == unless else Stamped(bytes(value), stamp),)

        found = self._view(key, look)
        return Stamped(None, None) if found is None else found[0]

    def _stamp_of(self, transaction: Transaction) -> Hashable:
        return self._opened().token, transaction.id()

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Write the record."""
        self.check_writable()
        raw, view = self._record(key, value)
        self._write(lambda transaction: transaction.put(raw, view), key, len(view))

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Write the record, if there is none."""
        self.check_writable()
        raw, view = self._record(key, value)
        return bool(self._write(lambda transaction: transaction.put(raw, view, overwrite=False), key, len(view)))

    def _put(self, records: Sequence[Record], size: int) -> None:
        self._write(lambda transaction: [transaction.put(*record) for record in records], size=size)

    def _seen(self, key: str) -> tuple[Buffer | None, object]:
        value = self.get(key)
        return value, value

    def _replace(self, key: str, new: Buffer | None, seen: object) -> None:
        raw, view = self._record(key, b"" if new is None else new)

        def replace(transaction: Transaction) -> None:
            if transaction.get(raw) != seen:
                raise self._conflict(key)
            if new is None:
                transaction.delete(raw)
            else:
                transaction.put(raw, view)

        self._write(replace, key, len(view))

    def _record(self, key: str, value: Buffer) -> Record:
        verbs.check_storable(self, key)
        return key.encode(), memoryview(value).cast("B")

    @answers(verbs.check_storable)
    def _check_storable(self, key: str) -> None:
        """Check the length of the key, too."""
        check_key(key)
        raw = key.encode()
        if len(raw) > MAX_KEY:
            raise StoreLimitError(
                "LMDB cannot keep a key of this length",
                store=repr(self),
                key=key,
                found=f"{len(raw)} bytes",
                expected=f"at most {MAX_KEY} bytes",
                remedy="choose shorter names, or another store",
            )

    @answers(verbs.delete_prefix)
    def _delete_prefix(self, prefix: str) -> None:
        """Delete a range of records in one transaction. Freed space is used again; the file does not shrink."""
        self.check_writable()
        start = as_prefix(prefix).encode()

        def work(transaction: Transaction) -> None:
            with transaction.cursor() as cursor:
                there = _seek(cursor, start)
                while there and bytes(cursor.key()).startswith(start):
                    there = cursor.delete() and bool(cursor.key())

        if self._is_there():
            self._write(work)

    def _delete_all(self, keys: Sequence[str]) -> None:
        raws = [raw for key in keys if len(raw := key.encode()) <= MAX_KEY]
        if raws:
            self._write(lambda transaction: [transaction.delete(raw) for raw in raws])

    def _is_there(self) -> bool:
        return bool(self._read(lambda _: True))

    # -- listing ------------------------------------------------------------------

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield a range of keys in the order of their bytes."""
        return self._list(as_prefix(prefix).encode())

    def _list(self, prefix: bytes) -> Iterator[str]:
        last = b""

        def page(transaction: Transaction) -> list[bytes]:
            found: list[bytes] = []
            with transaction.cursor() as cursor:
                there = _seek(cursor, last or prefix)
                if there and last and bytes(cursor.key()) == last:
                    there = cursor.next()
                while there and len(found) < PAGE and (raw := bytes(cursor.key())).startswith(prefix):
                    _check_order(found[-1] if found else last, raw)
                    found.append(raw)
                    there = cursor.next()
            return found

        # No transaction is open while the caller uses them, because it would keep deleted records.
        while raws := self._read(page):
            yield from filter(is_key, map(_name, raws))
            last = raws[-1]

    def list_dir(self, prefix: str) -> Listing:
        """Step from entry to entry, skipping everything below them."""
        start = as_prefix(prefix).encode()
        skip = len(start)

        def work(transaction: Transaction) -> list[bytes]:
            found: list[bytes] = []
            with transaction.cursor() as cursor:
                there = _seek(cursor, start)
                while there and (raw := bytes(cursor.key())).startswith(start):
                    _check_order(found[-1] if found else b"", raw)
                    slash = raw.find(b"/", skip)
                    found.append(raw if slash < 0 else raw[: slash + 1])
                    # 0 follows the slash.
                    there = cursor.next() if slash < 0 else cursor.set_range(raw[:slash] + b"0")
            return found

        return listing(map(_name, self._read(work) or ()), as_prefix(prefix))

    # -- the store itself ---------------------------------------------------------

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002
        """Return a store for the same database."""
        return LMDBStore(
            self.path,
            read_only=read_only,
            map_size=self.map_size,
            subdir=self.subdir,
            fsync=self.fsync,
            check=self.check,
        )


class _User:
    """An open store that uses an environment."""


class _Environment:
    """A database that this process has open, at most once, as LMDB demands."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.users: weakref.WeakSet[_User] = weakref.WeakSet()
        self.token = object()  # of the transactions since it was opened
        self._opened: Any = None
        self._writes = False
        self._checked: object = None
        self._opening = RLock()
        self._gate = Gate(self._close, self._abandon)
        self._lmdb = _library()

    def configure(self, *, subdir: bool, map_size: int, fsync: bool, check: bool) -> None:
        """Set how it is opened next time."""
        self._subdir, self._map_size, self._fsync, self._check = subdir, map_size, fsync, check

    def run(
        self, work: Callable[[Transaction], T], store: str, key: str | None, *, writes: bool, size: int = 0
    ) -> T | None:
        """Return the result of `work` in a transaction; None if there is nothing to read."""
        while True:
            seen = self.token
            try:
                with self._gate.enter():
                    environment = self._environment(writes=writes)
                    if environment is not None:
                        with environment.begin(write=writes, buffers=True) as transaction:
                            return work(transaction)
                    elif not writes and not self._exists():
                        return None
                self._reopen(seen, writes=writes)
            except self._lmdb.MapFullError as error:
                self._grow(seen, size, error, store, key)
            except self._lmdb.MapResizedError:  # another process has enlarged it
                self._reopen(seen)
            except self._lmdb.Error as error:
                raise self._failure(error, size).add(store=store, key=key) from error
            except OmnizarrError as error:
                raise error.add(store=store, key=key) from error.__cause__

    def close(self) -> None:
        """Close the database when no thread is inside."""
        self._gate.alone(self._close_synced, _PATIENCE)

    def _close_synced(self, is_alone: bool) -> None:  # noqa: FBT001 - what a gate says
        if is_alone and self._opened is not None:
            if self._writes and not self._fsync:
                self._opened.sync(True)  # noqa: FBT003 - lmdb's own
            self._close()

    def _environment(self, *, writes: bool) -> Any:
        """Return the open database; None if it must be opened (again) for this, or does not exist."""
        with self._opening:
            if self._opened is None and (writes or self._exists()):
                token = object()
                opened = self._open(writes=writes)
                self.token, self._opened, self._writes = token, opened, writes
        return self._opened if self._writes or not writes else None

    def _open(self, *, writes: bool) -> Any:
        folder = self.path if self._is_directory() else os.path.dirname(self.path)
        if writes:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
        there = os.path.getsize(self._file()) if self._exists() else 0
        self._reserve(is_new=not there)
        options = {
            "subdir": self._is_directory(),
            "map_size": max(self._map_size, there),
            "readonly": not writes,
            "create": writes,
            "sync": self._fsync,
            "metasync": self._fsync,
            "max_readers": _MAX_READERS,
        }
        try:
            environment = self._lmdb.open(self.path, **options)
        except self._lmdb.Error:
            if writes or os.access(folder, os.W_OK):
                raise
            options["lock"] = False  # a read-only medium
            environment = self._lmdb.open(self.path, **options)
        try:
            if options.get("lock", True):
                environment.reader_check()  # slots of readers that were killed
            self._check_whole(environment, writes=writes)
        except BaseException:
            environment.close()  # it could not be opened again meanwhile
            raise
        return environment

    def _check_whole(self, environment: Any, *, writes: bool) -> None:
        """Raise StoreError if using the pages would kill the process. Once for each file, not again after it grew."""
        status = os.stat(self._file())
        file = status.st_dev, status.st_ino, writes
        if not self._check or self._checked == file:
            return
        for _ in range(_TRIES):
            with environment.begin() as transaction:
                if check_pages(self._file(), transaction.id(), writes=writes):
                    self._checked = file
                    return
        raise StoreError("the database cannot be checked", found="a record of its state that no transaction has")

    def _reserve(self, *, is_new: bool) -> None:
        """Raise StoreError if the disk is full: writing into a mapped file without room for it would kill the process.

        Only the lock file is mapped for writing. The database itself is written like ordinary files.
        """
        folder = self.path if self._is_directory() else os.path.dirname(self.path)
        if not hasattr(os, "posix_fallocate") or (os.path.exists(folder) and not os.access(folder, os.W_OK)):
            return
        if is_new and _room(os.path.dirname(self.path)) < _LEAST_ROOM:  # half of the first page is not a database
            raise system.full()
        try:
            os.makedirs(folder, exist_ok=True)
            name = os.path.join(self.path, "lock.mdb") if self._is_directory() else f"{self.path}-lock"
            (file,) = map(os.open, (name,), (os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,), (0o755,))  # see `interrupts`
            try:
                # Never larger than it is: processes that have it open know only the existing slots.
                os.posix_fallocate(file, 0, os.fstat(file).st_size or _LOCK_SIZE)
            finally:
                os.close(file)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise system.full() from error

    def _is_directory(self) -> bool:
        return os.path.isdir(self.path) or (self._subdir and not os.path.exists(self.path))

    def _file(self) -> str:
        return os.path.join(self.path, "data.mdb") if self._is_directory() else self.path

    def _exists(self) -> bool:
        return os.path.exists(self._file())

    def _reopen(self, seen: object, *, writes: bool = False) -> None:
        """Close the database, unless it has been opened again. The next use opens it."""

        def work(_: bool) -> None:  # noqa: FBT001 - what a gate says
            if self.token is seen or (writes and not self._writes):
                self._close()
            if writes and self._opened is None:
                self._environment(writes=True)

        self._gate.alone(work)

    def _grow(self, seen: object, size: int, error: Exception, store: str, key: str | None) -> None:
        """Enlarge the map for `size` more bytes."""

        def work(_: bool) -> None:  # noqa: FBT001 - what a gate says
            if self.token is not seen or self._opened is None:
                return
            old = self._opened.info()["map_size"]
            self._close()
            smaller, self._map_size = self._map_size, 2 * old + 2 * size
            try:
                self._environment(writes=True)
            except self._lmdb.Error as failure:
                self._map_size = smaller
                raise StoreLimitError(
                    f"the map of the database cannot be made larger: {failure}",
                    store=store,
                    key=key,
                    found=f"{old} bytes",
                    expected=f"at least {old + size} bytes",
                ) from error

        self._gate.alone(work)

    def _close(self) -> None:
        try:
            if self._opened is not None:
                self._opened.close()
        finally:
            self._opened = None
            self._writes = False

    def _abandon(self) -> None:
        """Forget in a child what the parent has open. Closing it would release the parent's locks."""
        self._opening = RLock()
        _abandoned.append(self._opened)
        self._opened = None
        self._writes = False

    def _failure(self, error: Exception, size: int) -> StoreError:
        """Return the omnizarr error for one of LMDB. `size` bytes were to be written."""
        lmdb = self._lmdb
        # LMDB reports a short write as a device error.
        is_broken_off = "Input/output error" in str(error) and _room(os.path.dirname(self._file())) < size + _LEAST_ROOM
        if is_broken_off or "No space left" in str(error):
            return system.full()
        if isinstance(error, lmdb.InvalidError | lmdb.VersionMismatchError):
            return StoreError(f"not an LMDB database of this version: {error}", remedy="is it of another format?")
        if isinstance(error, lmdb.CorruptedError | lmdb.PageNotFoundError | lmdb.PanicError):
            return StoreError(f"the database is damaged: {error}", remedy="take a copy")
        if isinstance(error, lmdb.ReadonlyError | lmdb.LockError):
            return StoreAccessError(f"the database cannot be opened: {error}", remedy=system.DENIED)
        if isinstance(error, lmdb.BadValsizeError | lmdb.ReadersFullError):
            return StoreLimitError(f"LMDB cannot do it: {error}")
        return system.named_in(str(error)) or StoreError(f"LMDB cannot do it: {error}")


# Includes databases without a store while a thread is inside, because a database must not be opened twice.
_environments: weakref.WeakValueDictionary[str, _Environment] = weakref.WeakValueDictionary()
_registry = RLock()  # a store can be collected, and so closed, at any time
_abandoned: list[Any] = []


def _start_anew() -> None:
    """Create a new lock in a child process, where its holder does not exist."""
    global _registry  # noqa: PLW0603
    _registry = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def _acquire(store: LMDBStore, user: _User) -> _Environment:
    """Return the environment that all stores for one database share."""
    path = os.path.realpath(store.path)
    with _registry:
        environment = _environments.get(path)
        if environment is None:
            environment = _environments[path] = _Environment(path)
        if not environment.users:
            environment.configure(subdir=store.subdir, map_size=store.map_size, fsync=store.fsync, check=store.check)
        environment.users.add(user)
        return environment


def _release(environment: _Environment, user: _User) -> None:
    """Close unused databases."""
    with _registry:
        environment.users.discard(user)
        if not environment.users:
            environment.close()


def _room(folder: str) -> int:
    """Return how many more bytes fit on the disk."""
    try:
        status = os.statvfs(folder)
    except (AttributeError, OSError):  # Windows
        return 2**62
    return status.f_bavail * status.f_frsize


def _library() -> Any:
    try:
        return import_module("lmdb")
    except ImportError as error:
        raise MissingDependencyError("LMDB needs the package lmdb", remedy=extras.remedy("lmdb")) from error


def _cut(value: memoryview, span: Span | None) -> memoryview:
    if span is None:
        return value
    start, length = bounds(span, value.nbytes)
    return value[start : start + length]


def _seek(cursor: Any, start: bytes) -> bool:
    """Move to the first key that is not less than `start`."""
    # Keys longer than the longest possible one do not exist, and neither do names with longer beginnings.
    return bool(cursor.set_range(start) if start else cursor.first()) if len(start) <= MAX_KEY else False


def _check_order(last: bytes, raw: bytes) -> None:
    """Raise StoreError if keys are not in order: a listing of them would not end."""
    if raw <= last:
        raise StoreError("the database is damaged", found=f"key {raw!r} after {last!r}", expected="keys in order")


def _name(raw: bytes) -> str:
    """Return the name of a record, whether or not it is a key."""
    return raw.decode(errors="surrogateescape")  # with characters that no key can have, where it is not UTF-8


open_place = LMDBStore.open_place
