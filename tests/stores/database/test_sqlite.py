import os
import random
import shutil
import sqlite3
import time
from typing import ClassVar

import pytest

from omnizarr.errors import (
    ConflictError,
    StoreError,
    StoreLimitError,
    StoreTimeoutError,
)
from omnizarr.stores import SQLiteStore, verbs
from omnizarr.stores.database import base, sqlite
from tests.stores.contract import StoreContract, in_threads
from tests.stores.database.contract import DATA, DatabaseContract, check_array_of_zarr_python_2

LAYOUT = "CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB)"


class TestSQLiteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with SQLiteStore(tmp_path / "a b%" / "data.sqlite") as store:
            yield store
        assert [file.name for file in (tmp_path / "a b%").glob("*")] in ([], ["data.sqlite"])


class TestSQLiteStoreOfZarrPython2(StoreContract):
    """In the table as zarr-python 2 makes it, with pages of its size, in its journal mode."""

    @pytest.fixture
    def store(self, tmp_path):
        execute(tmp_path / "data.sqldb", LAYOUT)
        with SQLiteStore(tmp_path / "data.sqldb") as store:
            yield store


class TestSQLiteDatabase(DatabaseContract):
    kind = SQLiteStore
    options: ClassVar = {"timeout": 3}

    def check(self, path):
        assert execute(path, "PRAGMA integrity_check") == [[("ok",)]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.sqlite"


@pytest.fixture
def store(path):
    with SQLiteStore(path) as store:
        yield store


def execute(path, *statements):
    """What another program does, and what it gets."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return [connection.execute(statement).fetchall() for statement in statements]
    finally:
        connection.close()


# -- the database


@pytest.mark.parametrize("table", [None, "CREATE TABLE other(x)"])
def test_database_without_the_table_is_empty_until_it_is_written(path, table):
    path.touch()
    if table is not None:
        execute(path, table)
    with SQLiteStore(path, read_only=True) as reader, SQLiteStore(path) as writer:
        assert reader.get("a") is None
        writer.set("a", b"1")
        assert reader.get("a") == b"1"


def test_sqlite_finds_the_table_of_zarr_python_2(path):
    with SQLiteStore(path) as store:
        verbs.set_many(store, [("a/b", b"\0\xff"), ("c", b"")])
    assert execute(path, "SELECT k, v, typeof(v) FROM zarr ORDER BY k", "PRAGMA table_info(zarr)") == [
        [("a/b", b"\0\xff", "blob"), ("c", b"", "blob")],
        [(0, "k", "TEXT", 0, None, 1), (1, "v", "BLOB", 0, None, 0)],
    ]


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE zarr(k, v)",
        "CREATE TABLE zarr(k INTEGER PRIMARY KEY, v)",
        "CREATE TABLE zarr(k TEXT PRIMARY KEY COLLATE NOCASE, v BLOB)",
        "CREATE TABLE zarr(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID",
        "CREATE TABLE zarr(k TEXT, v BLOB, w TEXT, PRIMARY KEY (k, w))",
        "CREATE TABLE zarr(k TEXT PRIMARY KEY)",
        "CREATE VIEW zarr AS SELECT 'a' AS k, x'00' AS v",
    ],
)
@pytest.mark.parametrize("verb", ["get", "set"])
def test_other_table_of_that_name_is_refused(path, schema, verb):
    execute(path, schema)
    with SQLiteStore(path) as store, pytest.raises(StoreError, match="not a table of values"):
        store.get("a") if verb == "get" else store.set("a", b"")


def test_text_in_utf_16_is_refused(path):
    execute(path, "PRAGMA encoding = 'UTF-16'", LAYOUT)
    with SQLiteStore(path) as store, pytest.raises(StoreError, match="UTF-8"):
        store.get("a")


def test_values_of_other_programs_are_bytes(path):
    execute(path, LAYOUT, "INSERT INTO zarr VALUES ('text', 'ä'), ('null', NULL), ('number', 3)")
    with SQLiteStore(path) as store:
        assert store.get("text") == "ä".encode()
        assert store.get("text", (1, None)) == "ä".encode()[1:]
        assert store.size("text") == 2
        assert (store.get("null"), store.size("null"), bytes(store.get("null", (0, 5)))) == (b"", 0, b"")
        for read in (store.get, lambda key: store.get(key, (0, 1))):
            with pytest.raises(StoreError, match="number"):
                read("number")


def test_keys_that_are_none_are_ignored(path):
    execute(path, LAYOUT, "INSERT INTO zarr VALUES ('../up', ''), ('/x', ''), (CAST(x'ff' AS TEXT), ''), ('a/b', '')")
    execute(path, "INSERT INTO zarr VALUES (x'61', ''), (NULL, '')")
    with SQLiteStore(path) as store:
        assert list(store.list()) == ["a/b"]
        assert store.list_dir("") == ([], ["a/"])


@pytest.mark.parametrize("data", [b"not a database at all" * 50, b"SQLite format 3\0" + bytes(200)])
def test_file_that_is_no_database_is_an_error(path, data):
    path.write_bytes(data)
    with SQLiteStore(path) as store:
        with pytest.raises(StoreError) as caught:
            store.get("a")
        with pytest.raises(StoreError):
            store.set("a", b"")
    assert caught.value.store == repr(store)
    assert path.read_bytes() == data


def test_damaged_database_is_an_error_or_reads_the_truth(path):
    values = {f"c/{i}": bytes([i]) * 3000 for i in range(40)}
    with SQLiteStore(path) as store:
        verbs.set_many(store, values.items())
    good = path.read_bytes()
    choose = random.Random(1)
    failed = 0
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(20):  # headers of pages: values have no checksums
            place = choose.randrange(0, len(bad), 16384) + choose.randrange(100)
            bad[place] = choose.randrange(256)
        path.write_bytes(bad[: choose.choice([len(bad), len(bad) // 2])])
        with SQLiteStore(path) as store:
            try:
                for key in list(store.list()):
                    store.get(key)
                    store.size(key)
                    store.get(key, (100, 200))
                store.list_dir("")
                store.set("new", b"1")
                verbs.delete_prefix(store, "")
            except StoreError:
                failed += 1
        for leftover in path.parent.glob("data.sqlite-*"):
            leftover.unlink()
    assert failed


def test_path_that_is_a_directory_is_an_error(tmp_path):
    with SQLiteStore(tmp_path) as store, pytest.raises(StoreError, match="SQLite"):
        store.get("a")


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_database_in_memory_is_refused(path):
    with pytest.raises(ValueError, match="MemoryStore"):
        SQLiteStore(path)


def test_read_only_medium_needs_no_files_beside_the_database(path, monkeypatch):
    with SQLiteStore(path) as store:
        store.set("a", b"1")
    connect = sqlite3.connect

    def fail(address, **options):
        if "immutable" not in address and not address.startswith(":"):
            raise sqlite3.OperationalError("unable to open database file")
        return connect(address, **options)

    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(sqlite.sqlite3, "connect", fail)
    with SQLiteStore(path, read_only=True) as store:
        assert store.get("a") == b"1"
        assert list(path.parent.iterdir()) == [path]


# -- values


def test_value_beyond_the_limit_is_refused(store):
    limit = sqlite3.connect(":memory:").getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    huge = memoryview(bytes(limit))  # of which nothing is ever touched
    for write in (
        lambda: store.set("a", huge),
        lambda: verbs.set_many(store, [("a", huge)]),
        lambda: verbs.set_if_absent(store, "a", huge),
        lambda: store.update("a", lambda _: huge),
        lambda: verbs.set_partial(store, "a", 2**62, b"1"),
    ):
        with pytest.raises(StoreLimitError) as caught:
            write()
        assert caught.value.key == "a"
        assert caught.value.remedy
    assert list(store.list()) == []


def test_part_of_a_value_is_read_without_the_rest(store):
    value = os.urandom(2**24)
    store.set("a", value)

    def seconds(read):
        start = time.thread_time()
        read()
        return time.thread_time() - start

    assert store.get("a", (-1000, None)) == value[-1000:]
    whole = min(seconds(lambda: store.get("a")) for _ in range(5))
    part = min(seconds(lambda: store.get("a", (2**23, 2**23 + 1000))) for _ in range(5))
    assert part < whole / 3


def test_set_many_takes_values_as_they_come(store, monkeypatch):
    monkeypatch.setattr(base, "_BATCH", 100)
    seen = []

    def items():
        for number in range(10):
            seen.append(len(list(store.list())))
            store.set("meanwhile", b"")  # no transaction is open
            yield f"a/{number}", bytes(40)

    verbs.set_many(store, items())
    assert seen == [0, 1, 1, 4, 4, 4, 7, 7, 7, 10]
    assert len(list(store.list())) == 11


# -- stamps


def test_stamp_changes_with_every_value_and_never_returns(store):
    seen = set()
    for number in range(20):
        store.set("a", b"same")
        seen.add(verbs.stamp(store, "a"))
        if number % 3 == 0:
            store.delete("a")
        elif number % 3 == 1:
            verbs.delete_prefix(store, "")
        elif number % 5 == 0:
            store.set("b", b"")
    assert len(seen) == 20
    assert None not in seen


def test_stamp_of_one_key_stays_while_others_are_written(store):
    store.set("a", b"1")
    before = verbs.stamp(store, "a")
    verbs.set_many(store, ((f"b/{i}", b"") for i in range(5)))
    store.delete("b/3")
    assert verbs.stamp(store, "a") == before
    assert verbs.get_stamped(store, "a", before) is None
    assert verbs.get_stamped(store, "a") == (b"1", before)


@pytest.mark.parametrize(
    "statements",
    [
        ["REPLACE INTO zarr VALUES ('a', x'02')"],
        ["DELETE FROM zarr WHERE k = 'a'", "INSERT INTO zarr VALUES ('a', x'02')"],
        ["UPDATE zarr SET v = x'02'"],
        ["DELETE FROM zarr WHERE k = 'a'", "INSERT INTO zarr(rowid, k, v) VALUES (1, 'a', x'02')"],
        ["DROP TABLE zarr", LAYOUT, "INSERT INTO zarr VALUES ('a', x'02')"],
        ["VACUUM"],
    ],
)
@pytest.mark.parametrize("neighbours", [0, 2])
def test_stamp_changes_when_another_program_writes(path, store, statements, neighbours):
    store.set("a", b"1")
    verbs.set_many(store, ((f"b/{i}", b"") for i in range(neighbours)))
    before = verbs.stamp(store, "a")
    execute(path, *statements)
    assert verbs.stamp(store, "a") != before or store.get("a") == b"1"
    store.set("c", b"")
    with SQLiteStore(path) as other:
        other.set("d", b"")
        if store.get("a") != b"1":
            assert verbs.stamp(other, "a") not in (None, before)


def test_database_that_only_zarr_python_2_wrote_has_no_stamps(path):
    execute(path, LAYOUT, "INSERT INTO zarr VALUES ('a', x'01')")
    with SQLiteStore(path, read_only=True) as store:
        assert verbs.get_stamped(store, "a") == (b"\1", None)
        assert verbs.pinned(store, "a") is None


def test_pinned_value_is_read_until_it_is_replaced(store):
    store.set("a", b"0123")
    read = verbs.pinned(store, "a")
    assert read([(0, 1), (2, None)]) == [b"0", b"23"]
    assert read(None) == [b"0123"]
    store.set("a", b"4567")
    with pytest.raises(ConflictError):
        read([(0, 1)])
    assert verbs.pinned(store, "missing")(None) is None


# -- several writers


def test_update_begins_again_when_a_program_without_locks_was_faster(path, store):
    store.set("n", b"1")
    calls = []

    def change(old):
        calls.append(old)
        if len(calls) == 1:
            execute(path, "REPLACE INTO zarr VALUES ('n', x'35')")
        return old + b"!"

    store.update("n", change)
    assert calls == [b"1", b"5"]
    assert store.get("n") == b"5!"


def test_others_write_while_a_value_is_changed(store):
    def change(old):
        in_threads(lambda key: store.set(key, b"1"), ["b", "c"])
        return b"new"

    store.update("a", change)
    assert sorted(store.list()) == ["a", "b", "c"]
    store.update("a", lambda _: None)
    assert sorted(store.list()) == ["b", "c"]


def test_database_locked_for_too_long_is_a_timeout(path, store):
    store.set("a", b"1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with SQLiteStore(path, timeout=0.05) as impatient:
        with pytest.raises(StoreTimeoutError) as caught:
            impatient.set("a", b"2")
        assert caught.value.key == "a"
        assert impatient.get("a") == b"1"
        other.execute("ROLLBACK")
        other.close()
        impatient.set("a", b"2")
    assert store.get("a") == b"2"


# -- zarr-python 2 (see data/README.md)


def test_array_that_zarr_python_2_wrote_is_read_and_written(tmp_path):
    shutil.copy(DATA / "zarr2.sqldb", tmp_path)
    with SQLiteStore(tmp_path / "zarr2.sqldb") as store:
        check_array_of_zarr_python_2(store)
    connection = sqlite3.connect(tmp_path / "zarr2.sqldb")
    # As zarr-python 2 writes: a table of more columns than two would refuse it.
    connection.execute("REPLACE INTO zarr VALUES (?, ?)", ("x", b"1"))
    connection.commit()
    connection.close()


# Stores that are only read


def test_reading_leaves_no_files_and_changes_none(path):
    with SQLiteStore(path) as store:
        store.set("a", b"1")
    before = path.stat().st_mtime_ns, path.read_bytes()
    with SQLiteStore(path, read_only=True) as store:
        assert store.get("a") == b"1"
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_reader_sees_each_change_of_other_connections(path):
    with SQLiteStore(path) as store:
        store.set("a", b"0")
    reader = SQLiteStore(path, read_only=True)
    for number in range(1, 30):
        assert reader.get("a") == str(number - 1).encode()
        with SQLiteStore(path) as writer:
            writer.set("a", str(number).encode())
            assert reader.get("a") == str(number).encode()
        if number % 3:  # the second connection of SQLite that looks at the same files
            assert SQLiteStore(path, read_only=True).get("a") == str(number).encode()
    reader.close()


def test_reader_sees_whole_transactions_beside_writers(path):
    """Writers open and close the database, so that its files of WAL mode come and go."""
    with SQLiteStore(path) as store:
        verbs.set_many(store, {str(key): b"0" * 5000 for key in range(20)}.items())
    done = []

    def write():
        for number in range(1, 60):
            with SQLiteStore(path) as writer:
                verbs.set_many(writer, {str(key): str(number % 10).encode() * 5000 for key in range(20)}.items())
        done.append(True)

    def read():
        with SQLiteStore(path, read_only=True) as reader:
            while not done:
                values = reader._all("SELECT v FROM zarr", ())
                assert len(values) == 20
                assert len(set(values)) == 1

    in_threads(lambda work: work(), [write, read])
