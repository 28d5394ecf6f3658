"""Values in a table of an SQLite database.

The table is that of zarr-python 2, ``zarr (k TEXT PRIMARY KEY, v BLOB)``, which can read and write databases of
omnizarr. A second table makes stamps possible. The number of a row grows with each value that is written, as long
as the row with the largest number is not deleted. Triggers count how often that, or anything else that could give
two values the same number, has happened.
"""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from omnizarr.errors import (
    ConflictError,
    OmnizarrError,
    StoreAccessError,
    StoreError,
    StoreLimitError,
    StoreTimeoutError,
)
from omnizarr.stores import system, verbs
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Listing,
    Parts,
    Reader,
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
from omnizarr.stores.fork_locks import Gate
from omnizarr.stores.local import files

T = TypeVar("T")

_List: TypeAlias = list  # within the class, `list` is a method

_TABLE = "CREATE TABLE IF NOT EXISTS zarr(k TEXT PRIMARY KEY, v BLOB)"
_STAMPS = "CREATE TABLE IF NOT EXISTS omnizarr_stamps(identity BLOB NOT NULL, epoch INTEGER NOT NULL)"
_TRIGGERS: Final = tuple(
    f"CREATE TRIGGER zarr_{event} BEGIN UPDATE omnizarr_stamps SET epoch = epoch + 1; END"  # noqa: S608
    for event in (
        "inserted AFTER INSERT ON zarr WHEN NEW.rowid <> (SELECT max(rowid) FROM zarr)",
        "updated AFTER UPDATE ON zarr",
        "deleted AFTER DELETE ON zarr WHEN OLD.rowid > (SELECT coalesce(max(rowid), 0) FROM zarr)",
    )
)
_COUNT_TRIGGERS: Final = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND sql IN (?, ?, ?)"

# Everything that begins with one entry of a directory is skipped by one step in the index, however much there is.
_LIST_DIR = """
    WITH RECURSIVE entry(k) AS (
        SELECT (SELECT min(k) FROM zarr WHERE k > :prefix AND k < :end)
        UNION ALL
        SELECT CASE instr(substr(k, :skip), '/')
            WHEN 0 THEN (SELECT min(z.k) FROM zarr z WHERE z.k > entry.k AND z.k < :end)
            ELSE (
                SELECT min(z.k) FROM zarr z
                WHERE z.k >= substr(entry.k, 1, :skip - 2 + instr(substr(entry.k, :skip), '/')) || '0' AND z.k < :end
            )
            END
        FROM entry WHERE k IS NOT NULL
    )
    SELECT k FROM entry WHERE k IS NOT NULL
"""
_REPLACE: Final = "REPLACE INTO zarr(k, v) VALUES (?, ?)"
_DELETE: Final = "DELETE FROM zarr WHERE k = ?"
_TICK: Final = 20_000_000
"""Nanoseconds within which two changes of a file may get the same time."""
_SIZE = "CASE typeof(v) WHEN 'blob' THEN length(v) ELSE coalesce(length(CAST(v AS BLOB)), 0) END"


class SQLiteStore(DatabaseStore["_Connections"]):
    """A store in an SQLite database.

    Parameters
    ----------
    path : path
        The database. A new one is created with its first value.
    read_only : bool, default False
        Whether to refuse to write.
    timeout : float, default 60
        Seconds to wait for other writers.
    fsync : bool, default False
        Whether to wait after each change until it is on the disk. Otherwise, a crash of the operating system
        may undo the last changes, but damages nothing.

    Notes
    -----
    Each method is one transaction, `set_many` one for several megabytes. The database is in WAL mode, so
    readers and writers do not wait for each other. A store that is read-only changes nothing, and does not roll back
    a transaction that another program left unfinished; such a database is refused. Several machines cannot share it
    over a network file system. The size of values is limited, usually to one billion bytes. `lock` takes a lock file
    beside the database, so writers of different keys work at the same time.

    omnizarr reads and writes databases of zarr-python 2, and vice versa.

    Spec: none; the table is that of ``zarr.SQLiteStore`` of zarr-python 2.18.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with SQLiteStore(folder.name + "/data.sqlite") as store:
    ...     store.set("a/c/0", b"0123456789")
    ...     verbs.set_partial(store, "a/c/0", 2, b"ab")
    ...     store.get("a/c/0", (1, 5)), store.size("a/c/0"), store.list_dir("")
    (b'1ab4', 10, Listing(keys=[], prefixes=['a/']))
    >>> folder.cleanup()
    """

    kind = "sqlite"
    url_options = frozenset({"fsync", "timeout"})

    features = DatabaseStore.features

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        timeout: float = 60.0,
        fsync: bool = False,
    ) -> None:
        path = os.fspath(path)
        if path in ("", ":memory:"):
            raise ValueError(f"{path!r} is not a path of a database; for values in memory take a MemoryStore")
        self.path = os.path.abspath(path)
        self.read_only = read_only
        self.timeout = timeout
        self.fsync = fsync
        self._open()

    def _open(self) -> None:
        connections = _Connections(self.path, read_only=self.read_only, timeout=self.timeout, fsync=self.fsync)
        self._database = connections
        self._finalizer = weakref.finalize(self, connections.close)

    # -- transactions -------------------------------------------------------------

    def _run(
        self,
        work: Callable[[_Connection], T],
        key: str | None = None,
        *,
        writes: bool = False,
        begin: str | None = None,
    ) -> T | None:
        """Return the result of `work` for a connection; None if there are no values.

        SQLite errors become omnizarr errors.

        With a statement `begin`, it is one transaction: `work` sees one state of the database, and changes it
        completely or not at all.
        """
        connections = self._opened(key)
        try:
            return connections.run(work, writes=writes, begin=begin)
        except sqlite3.Error as error:
            raise _failure(error, self.timeout).add(store=repr(self), key=key) from error
        except OmnizarrError as error:
            raise error.add(store=repr(self), key=key) from error.__cause__

    def _read(self, work: Callable[[_Connection], T], key: str | None = None) -> T | None:
        """Return the result of `work` for one state of the database; None if there are no values."""
        return self._run(work, key, begin="BEGIN")

    def _write(self, work: Callable[[_Connection], object], key: str | None = None) -> None:
        """Let `work` change the database completely or not at all, without interference of other writers."""
        self._run(work, key, writes=True, begin="BEGIN IMMEDIATE")

    def _execute(self, statement: str, parameters: Sequence[object], key: str | None = None) -> int:
        """Run a statement that is a transaction by itself, and return the number of changed rows."""
        return self._run(lambda connection: connection.execute(statement, parameters).rowcount, key, writes=True) or 0

    # -- reading ------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read the value, or only the part that `span` means."""
        check_key(key)
        if span is not None:
            values = verbs.get_spans(self, key, [span])
            return None if values is None else values[0]
        return self._run(lambda connection: connection.value(key), key)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Read the value, unless it is too large."""
        check_key(key)

        def work(connection: _Connection) -> Buffer | None:
            size = connection.size_beyond(key, most)
            if size is not None:
                verbs.check_limit(self, key, size, most)
            return connection.value(key)

        return self._run(work, key)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read only the parts of the value, in one transaction."""
        check_key(key)
        return self._read(lambda connection: connection.parts(key, spans), key)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Read what fits into `out`."""
        check_key(key)

        def work(connection: _Connection) -> tuple[int, Buffers] | None:
            size = connection.size(key)
            values = connection.parts(key, [(start, start + out.nbytes)])
            return None if size is None or values is None else (size, values)

        found = self._read(work, key)
        if found is None:
            return None
        size, values = found
        fill(out, memoryview(values[0]))
        return max(0, size - start)

    def exists(self, key: str) -> bool:
        """Look the key up in the index."""
        check_key(key)
        return bool(self._run(lambda connection: connection.one("SELECT 1 FROM zarr WHERE k = ?", key), key))

    def size(self, key: str) -> int | None:
        """Return the size of the value, without reading it."""
        check_key(key)
        return self._run(lambda connection: connection.size(key), key)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return row number and epoch; None if only programs without stamps have written here."""
        check_key(key)
        return self._read(lambda connection: connection.stamp(key), key)

    @answers(verbs.get_stamped)
    def _get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Read the value and its stamp in one transaction."""
        check_key(key)

        def work(connection: _Connection) -> tuple[Stamped | None]:
            stamp = connection.stamp(key)
            return (None if stamp is not None and stamp == unless else Stamped(connection.value(key), stamp),)

        found = self._read(work, key)
        return Stamped(None, None) if found is None else found[0]

    @answers(verbs.pinned)
    def _pinned(self, key: str) -> Reader | None:
        """Return a function that reads parts of one row; None if only programs without stamps have written here."""
        check_key(key)
        if not self._run(lambda connection: connection.has_stamps(), key):
            return None
        first: list[Hashable] = []

        def read(spans: Sequence[Span] | None) -> Buffers | None:
            def work(connection: _Connection) -> tuple[Hashable | None, Buffers | None]:
                return connection.stamp(key), connection.parts(key, spans or [(0, None)])

            stamp, values = self._read(work, key) or (None, None)
            if not first:
                first.append(stamp)
            elif stamp != first[0]:
                raise ConflictError("the value was replaced while it was read", store=repr(self), key=key)
            return values

        return read

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Replace the row."""
        self.check_writable()
        self._execute(_REPLACE, self._record(key, value), key)

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Insert a row, if there is none."""
        self.check_writable()
        return self._execute("INSERT OR IGNORE INTO zarr(k, v) VALUES (?, ?)", self._record(key, value), key) > 0

    @answers(verbs.set_partial)
    def _set_partial(self, key: str, start: int, value: Buffer) -> None:
        """Replace the row by one with `value` from byte `start` on. Takes the lock of the key."""
        self._check_size(key, start + len(value))
        verbs.set_partial.default(self, key, start, value)

    def _put(self, records: Sequence[Record], size: int) -> None:
        self._write(lambda connection: connection.executemany(_REPLACE, records))

    def _seen(self, key: str) -> tuple[Buffer | None, object]:
        return verbs.get_stamped(self, key) or Stamped(None, None)

    def _replace(self, key: str, new: Buffer | None, seen: object) -> None:
        row = None if new is None else self._record(key, new)

        def replace(connection: _Connection) -> None:
            if connection.stamp(key) != seen:
                raise self._conflict(key)
            if row is None:
                connection.execute(_DELETE, (key,))
            else:
                connection.execute(_REPLACE, row)

        self._write(replace, key)

    def _record(self, key: str, value: Buffer) -> Record:
        check_key(key)
        view = memoryview(value).cast("B")
        self._check_size(key, len(view))
        return key, view

    def _check_size(self, key: str, size: int) -> None:
        """Raise StoreLimitError if a row cannot be this large."""
        connections = self._database
        limit = size if connections is None else connections.limit
        if size > limit:
            raise StoreLimitError(
                "SQLite cannot keep a value of this size",
                store=repr(self),
                key=key,
                found=f"{size} bytes",
                expected=f"at most {limit} bytes",
                remedy="choose smaller chunks or shards, or another store",
            )

    @answers(verbs.delete_prefix)
    def _delete_prefix(self, prefix: str) -> None:
        """Delete a range of rows in one statement. Freed space is used again; the file does not shrink."""
        self.check_writable()
        between = _range(as_prefix(prefix))
        if self._is_there():
            self._execute("DELETE FROM zarr WHERE k > ? AND k < ?", between)

    def _delete_all(self, keys: Sequence[str]) -> None:
        self._write(lambda connection: connection.executemany(_DELETE, [(key,) for key in keys]))

    def _is_there(self) -> bool:
        return bool(self._run(lambda _: True))

    # -- listing ------------------------------------------------------------------

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield a range of keys in the order of the index."""
        start, end = _range(as_prefix(prefix))
        return self._list(start, end)

    def _list(self, start: str | bytes, end: str | bytes) -> Iterator[str]:
        while True:
            statement = "SELECT k FROM zarr WHERE k > CAST(? AS TEXT) AND k < ? ORDER BY k LIMIT ?"
            found = self._all(statement, (start, end, PAGE))
            # No transaction is open while the caller uses them, because it may take long, and write.
            yield from filter(is_key, (_name(key) for (key,) in found))
            if len(found) < PAGE:
                return
            (start,) = found[-1]

    def list_dir(self, prefix: str) -> Listing:
        """Step from entry to entry in the index, skipping everything below them."""
        prefix = as_prefix(prefix)
        start, end = _range(prefix)
        found = self._all(_LIST_DIR, {"prefix": start, "end": end, "skip": len(prefix) + 1})
        return listing((_name(key) for (key,) in found), prefix)

    def _all(self, statement: str, parameters: Sequence[object] | Mapping[str, object]) -> _List[tuple[Any, ...]]:
        """Return all rows of a query at once, because an unfinished query keeps its view of the database."""
        return self._run(lambda connection: connection.execute(statement, parameters).fetchall()) or []

    # -- the store itself ---------------------------------------------------------

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002
        """Return a store for the same database, with connections of its own."""
        return SQLiteStore(self.path, read_only=read_only, timeout=self.timeout, fsync=self.fsync)


_State: TypeAlias = "tuple[object, ...]"


class _Connection(sqlite3.Connection):
    """A connection, and what it knows about the database."""

    state: _State | None = None  # of the files, if SQLite has the promise that they do not change
    has_table = False  # seen once; it is never removed
    writes = False  # what writing needs exists
    _schema = -1  # the schema version for which the next attribute is valid
    _has_stamps = False

    def transact(self, begin: str, work: Callable[[_Connection], T]) -> T:
        """Return the result of `work`, which sees one state of the database and changes it completely or not at all."""
        with self:  # written in C: it commits or rolls back, even if it is interrupted
            self.execute(begin)
            return work(self)

    def one(self, statement: str, *parameters: object) -> Any:
        """Return the first column of the first row; None if there is none."""
        row = self.execute(statement, parameters).fetchone()
        return None if row is None else row[0]

    def value(self, key: str) -> bytes | None:
        """Return the value of `key`."""
        row = self.execute("SELECT v FROM zarr WHERE k = ?", (key,)).fetchone()
        if row is None:
            return None
        (value,) = row
        if value is None:
            return b""
        if not isinstance(value, bytes):
            raise StoreError("the value is a number", found=value, expected="a BLOB")
        return value

    def size_beyond(self, key: str, most: int) -> int | None:
        """Return the size of the value of `key` if it has more than `most` bytes."""
        statement = f"SELECT {_SIZE} FROM zarr WHERE k = ? AND {_SIZE} > {most:d}"  # noqa: S608
        return self.one(statement, key)  # type: ignore[no-any-return]

    def size(self, key: str) -> int | None:
        """Return the size of the value of `key`."""
        return self.one(f"SELECT {_SIZE} FROM zarr WHERE k = ?", key)  # type: ignore[no-any-return]  # noqa: S608

    def parts(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return parts of the value of `key`. Call it in a transaction."""
        row = self.execute("SELECT rowid, typeof(v) FROM zarr WHERE k = ?", (key,)).fetchone()
        if row is None:
            return None
        number, kind = row
        if kind not in (b"blob", b"text"):
            return [(self.value(key) or b"")[:0] for _ in spans]
        parts = Parts((), None)
        with self.blobopen("zarr", "v", number, readonly=True) as blob:
            parts.size = size = len(blob)
            for span in spans:
                start, length = bounds(span, size)
                blob.seek(start)
                parts.append(blob.read(length))
        return parts

    def has_stamps(self) -> bool:
        """Return whether the triggers exist. Without them, the number of a row says nothing."""
        version = self.one("PRAGMA schema_version")
        if version != self._schema:
            found = self.one(_COUNT_TRIGGERS, *_TRIGGERS)
            self._has_stamps = found == len(_TRIGGERS)
            self._schema = version
        return self._has_stamps

    def stamp(self, key: str) -> Hashable | None:
        """Return the stamp of `key`; to be called in a transaction."""
        if not self.has_stamps():
            return None
        statement = "SELECT identity, epoch, zarr.rowid FROM zarr, omnizarr_stamps WHERE k = ?"
        row = self.execute(statement, (key,)).fetchone()
        # The version of the schema: zarr-python 2 clears the table by making a new one, and numbers begin again.
        return None if row is None else (self._schema, *row)


class _Connections:
    """The connections of this process to one database; each serves one thread at a time."""

    def __init__(self, path: str, *, read_only: bool, timeout: float, fsync: bool) -> None:
        self._path = path
        self._read_only = read_only
        self._timeout = timeout
        self._fsync = fsync
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._closed = False
        self._gate = Gate(self._close_idle, self._abandon)
        with self._gate.enter(), closing(sqlite3.connect(":memory:")) as memory:
            # A row holds its key, too, and a few bytes that say what is where.
            self.limit = memory.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - 2**12

    def run(self, work: Callable[[_Connection], T], *, writes: bool, begin: str | None) -> T | None:
        """Return what `work` makes of a connection, in a transaction if `begin`; None if there is nothing to read."""
        with self._gate.enter():
            while True:
                connection = self._take(writes=writes)
                if connection is None:
                    return None
                try:
                    result = self._use(connection, work, writes=writes, begin=begin)
                except sqlite3.Error:
                    if self._is_current(connection):
                        raise
                else:
                    if self._is_current(connection):
                        return result

    def _use(
        self, connection: _Connection, work: Callable[[_Connection], T], *, writes: bool, begin: str | None
    ) -> T | None:
        try:
            self._busy.add(connection)
            if not self._prepare(connection, writes=writes):
                return None
            return work(connection) if begin is None else connection.transact(begin, work)
        finally:
            self._busy.discard(connection)
            if connection.in_transaction or not self._is_current(connection):
                connection.close()
            else:
                self._idle.append(connection)
            if self._closed:
                self._close_idle()

    def _is_current(self, connection: _Connection) -> bool:
        """Return whether the files are the same as when SQLite got the promise that they do not change."""
        return connection.state is None or connection.state == self._state()

    def _state(self) -> _State:
        """Return what changes with each change of the database: two readings of it that are equal enclose no change."""
        return _changes(self._path), _changes(self._path + "-wal")

    def close(self) -> None:
        """Close the connections; those in use, when they are given back."""
        self._closed = True
        self._gate.visit(self._close_idle)  # a fork in between would leave locks without a holder in the child

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _abandon(self) -> None:
        """In a child: forget the parent's connections; closing them would take its locks away."""
        _abandoned.extend(self._busy)
        _abandoned.extend(self._idle)
        self._busy.clear()
        self._idle.clear()

    def _take(self, *, writes: bool) -> _Connection | None:
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if self._is_current(connection):
                    return connection
                connection.close()
        if writes:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._check_journal()
            return self._connect("mode=rwc")
        if not os.path.exists(self._path):
            return None
        if not self._read_only:
            self._check_journal()
            return self._connect("mode=rw")
        # SQLite would create the files of WAL mode and, opened read-only, leave them behind. It creates none with the
        # promise that no program writes, which has to be checked before and after each use.
        state = self._settled()
        return self._connect("mode=ro" if state is None else "mode=ro&immutable=1", state)

    def _settled(self) -> _State | None:
        """Return the state of a database in WAL mode that is not in use; None if SQLite must look after it."""
        with open(self._path, "rb") as file:
            is_wal = file.read(20)[18:] == b"\2\2"
        if not is_wal or os.path.exists(self._path + "-journal"):
            return None
        state = self._state()
        recent = time.time_ns() - os.stat(self._path).st_mtime_ns
        if 0 <= recent < _TICK:  # a change in the same tick of the clock would not be seen
            time.sleep(_TICK / 1e9)
            return self._settled() if state == self._state() else None
        return state if recent > 0 and _is_empty(self._path + "-wal") else None

    def _check_journal(self) -> None:
        """Raise StoreError if an unfinished transaction would be rolled back; any program can have written its journal.

        A journal can name files that SQLite deletes at the end of the transaction.
        """
        if os.path.exists(self._path) and not _is_empty(self._path + "-journal"):
            with closing(self._connect("mode=ro")):
                pass

    def _connect(self, mode: str, state: _State | None = None) -> _Connection:
        connection = sqlite3.connect(
            f"{Path(self._path).as_uri()}?{mode}",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,  # one thread at a time
            factory=_Connection,
        )
        try:
            connection.text_factory = bytes
            connection.state = state
            # The schema of an untrusted database must not run code.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute(f"PRAGMA query_only = {'ON' if self._read_only else 'OFF'}")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._fsync else 'NORMAL'}")
            _check_encoding(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: _Connection, *, writes: bool) -> bool:
        """Return whether there is a table, and create what writing needs."""
        if writes and not connection.writes:
            _make(connection)
            connection.writes = connection.has_table = True
        if not connection.has_table:
            connection.has_table = _has_table(connection)
        return connection.has_table


_abandoned: list[_Connection] = []


def _changes(path: str) -> object:
    """Return what every change of a file changes; None if there is no such file, or it is empty."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return files.identity(found) if found.st_size else None


def _is_empty(path: str) -> bool:
    """Return whether a file is missing or empty."""
    return _changes(path) is None


def _check_encoding(connection: _Connection) -> None:
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # otherwise nothing would have been read yet
    encoding = connection.one("PRAGMA encoding")
    if encoding != b"UTF-8":  # text would have another order
        raise StoreError("the text in the database is not in UTF-8", found=encoding.decode())


def _make(connection: _Connection) -> None:
    """Create what writing needs, if it is missing."""
    if not connection.one("PRAGMA page_count"):
        # Pages of this size make it possible to find a part of a value without reading all pages before it.
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    if connection.one("PRAGMA journal_mode") != b"wal":
        with suppress(sqlite3.OperationalError):  # the database is in use: without WAL, accesses wait for each other
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if _has_table(connection) and connection.has_stamps():
        return
    connection.transact("BEGIN IMMEDIATE", _make_tables)
    _has_table(connection)


def _make_tables(connection: _Connection) -> None:
    connection.execute(_TABLE)
    connection.execute(_STAMPS)
    if not connection.one("SELECT count(*) FROM omnizarr_stamps"):
        connection.execute("INSERT INTO omnizarr_stamps VALUES (randomblob(16), 0)")
    for name, statement in zip(("inserted", "updated", "deleted"), _TRIGGERS, strict=True):
        connection.execute(f"DROP TRIGGER IF EXISTS zarr_{name}")
        connection.execute(statement)


def _has_table(connection: _Connection) -> bool:
    """Return whether there is a table of values. Raises StoreError if something else has its name."""
    kind = connection.one("SELECT type FROM sqlite_master WHERE name = 'zarr' COLLATE NOCASE")
    if kind is None:
        return False
    key = connection.one(
        "SELECT group_concat(c.name || ' ' || c.coll) FROM pragma_index_list('zarr') i, pragma_index_xinfo(i.name) c "
        "WHERE i.origin = 'pk' AND c.key"
    )
    try:
        connection.execute("SELECT rowid, k, v FROM zarr LIMIT 0")
    except sqlite3.OperationalError:
        key = None
    if kind != b"table" or key != b"k BINARY":
        raise StoreError(
            "what is called 'zarr' in the database is not a table of values",
            expected="zarr(k TEXT PRIMARY KEY, v BLOB)",
        )
    return True


def _range(prefix: str) -> tuple[str, str | bytes]:
    """Return strict lower and upper bounds of all keys that begin with `prefix`."""
    # 0 follows the slash, and bytes come after all text.
    return prefix, prefix[:-1] + "0" if prefix else b""


def _name(raw: object) -> str:
    """Return the name of a row, whether or not it is a key; "" if it is not text."""
    return raw.decode(errors="surrogateescape") if isinstance(raw, bytes) else ""


def _failure(error: sqlite3.Error, timeout: float) -> StoreError:
    """Return the omnizarr error for one of SQLite."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        return StoreAccessError(
            "the database has an unfinished transaction, whose journal lies beside it",
            expected="no journal: rolling it back changes the database, and can delete files that the journal names",
            remedy="if you trust where both files come from, open the database once with the program that wrote it, or "
            "with sqlite3; otherwise delete the journal",
        )
    code &= 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreTimeoutError(
            "others keep the database locked",
            found=f"waited for {timeout:g} seconds",
            remedy="give a longer timeout, or let other programs end their transactions",
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreError(
            f"the database is damaged: {error}", remedy="take a copy, or see what the .recover of sqlite3 saves"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError("not an SQLite database", remedy="is it of another format?")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreAccessError(f"the database cannot be written: {error}", remedy=system.DENIED)
    if code == sqlite3.SQLITE_TOOBIG:
        return StoreLimitError(f"SQLite cannot keep a value of this size: {error}", remedy="choose smaller chunks")
    if code == sqlite3.SQLITE_FULL:
        return system.full()
    refused = system.without_files() if code == sqlite3.SQLITE_CANTOPEN else None
    return refused or StoreError(f"SQLite cannot do it: {error}")


open_place = SQLiteStore.open_place
