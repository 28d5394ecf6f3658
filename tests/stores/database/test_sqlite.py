import multiprocessing
import os
import pickle
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import (
    ConflictError,
    StoreClosedError,
    StoreError,
    StoreLimitError,
    StoreTimeoutError,
)
from omnizarr.stores.database import base, sqlite
from omnizarr.stores.database.sqlite import SQLiteStore
from tests.stores.contract import StoreContract, in_threads

METHODS = ["spawn", "fork"] if hasattr(os, "fork") else ["spawn"]
# Many with `RUNS` in the environment; a few everywhere else, as each takes a while to start.
PROCESSES, KILLED = (4, 20) if "RUNS" in os.environ else (2, 3)
DATA = Path(__file__).parents[1] / "data"
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


def test_looking_creates_nothing(tmp_path):
    store = SQLiteStore(tmp_path / "folder" / "data.sqlite")
    assert store.get("a") is None
    assert store.get("a", (0, 1)) is None
    assert store.get_spans("a", [(0, 1)]) is None
    assert store.read_into("a", memoryview(bytearray(1))) is None
    assert store.get_stamped("a") == (None, None)
    assert store.pinned("a") is None
    assert list(store.list()) == []
    assert store.list_dir("") == ([], [])
    store.delete("a")
    store.delete_prefix("")
    store.set_many([])
    assert list(tmp_path.iterdir()) == []


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
        store.set_many([("a/b", b"\0\xff"), ("c", b"")])
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


def test_keys_that_are_none_are_passed_over(path):
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
        store.set_many(values.items())
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
                store.delete_prefix("")
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
        lambda: store.set_many([("a", huge)]),
        lambda: store.set_if_absent("a", huge),
        lambda: store.update("a", lambda _: huge),
        lambda: store.set_partial("a", 2**62, b"1"),
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
        start = time.perf_counter()
        read()
        return time.perf_counter() - start

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

    store.set_many(items())
    assert seen == [0, 1, 1, 4, 4, 4, 7, 7, 7, 10]
    assert len(list(store.list())) == 11


def test_listing_goes_page_by_page(store, monkeypatch):
    monkeypatch.setattr(sqlite, "PAGE", 7)
    keys = sorted(f"a/{i}" for i in range(50))
    store.set_many((key, b"") for key in keys)
    assert list(store.list()) == keys
    assert list(store.list_prefix("a/")) == keys


def test_list_dir_of_names_that_sort_around_the_slash(store):
    keys = ["a", "a-b", "a.b/c", "a/b", "a/c/d", "a0", "a0/x", "aä/b", "b/c", "b0", "b\U0010ffff/c", "b\U0010ffff"]
    store.set_many((key, b"") for key in keys)
    assert store.list_dir("") == (
        sorted(key for key in keys if "/" not in key),
        sorted({key.partition("/")[0] + "/" for key in keys if "/" in key}),
    )
    assert store.list_dir("a/") == (["a/b"], ["a/c/"])


# -- stamps


def test_stamp_changes_with_every_value_and_never_returns(store):
    seen = set()
    for number in range(20):
        store.set("a", b"same")
        seen.add(store.stamp("a"))
        if number % 3 == 0:
            store.delete("a")
        elif number % 3 == 1:
            store.delete_prefix("")
        elif number % 5 == 0:
            store.set("b", b"")
    assert len(seen) == 20
    assert None not in seen


def test_stamp_of_one_key_stays_while_others_are_written(store):
    store.set("a", b"1")
    before = store.stamp("a")
    store.set_many((f"b/{i}", b"") for i in range(5))
    store.delete("b/3")
    assert store.stamp("a") == before
    assert store.get_stamped("a", before) is None
    assert store.get_stamped("a") == (b"1", before)


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
    store.set_many((f"b/{i}", b"") for i in range(neighbours))
    before = store.stamp("a")
    execute(path, *statements)
    assert store.stamp("a") != before or store.get("a") == b"1"
    store.set("c", b"")
    with SQLiteStore(path) as other:
        other.set("d", b"")
        if store.get("a") != b"1":
            assert other.stamp("a") not in (None, before)


def test_database_that_only_zarr_python_2_wrote_has_no_stamps(path):
    execute(path, LAYOUT, "INSERT INTO zarr VALUES ('a', x'01')")
    with SQLiteStore(path, read_only=True) as store:
        assert store.get_stamped("a") == (b"\1", None)
        assert store.pinned("a") is None


def test_pinned_value_is_read_until_it_is_replaced(store):
    store.set("a", b"0123")
    read = store.pinned("a")
    assert read([(0, 1), (2, None)]) == [b"0", b"23"]
    assert read(None) == [b"0123"]
    store.set("a", b"4567")
    with pytest.raises(ConflictError):
        read([(0, 1)])
    assert store.pinned("missing")(None) is None


# -- several writers


def test_update_begins_anew_when_a_program_without_locks_was_faster(path, store):
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


def increment(path, times):
    with SQLiteStore(path) as store:
        for _ in range(times):
            store.update("n", lambda old: b"%d" % (int(old or 0) + 1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_processes_begin_a_database_and_count_together(path, method):
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=increment, args=(path, 25)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    with SQLiteStore(path) as store:
        assert store.get("n") == b"%d" % (25 * PROCESSES)


def fill_columns(array, part):
    for column in range(part, array.shape[1], 4):
        array[:, column] = column


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_processes_that_write_parts_of_the_same_chunks_lose_nothing(path, sharded):
    with SQLiteStore(path) as store:
        chunks = {"chunks": (8, 4), "shards": (16, 16)} if sharded else {"chunks": (16, 16)}
        array = omnizarr.create_array(store, shape=(32, 32), dtype="int32", **chunks)
        context = multiprocessing.get_context(METHODS[-1])
        processes = [context.Process(target=fill_columns, args=(array, part)) for part in range(4)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
        np.testing.assert_array_equal(array[...], np.tile(np.arange(32, dtype="int32"), (32, 1)))


def run(code, *arguments):
    code = "import sys\nfrom omnizarr.stores.database.sqlite import SQLiteStore\n" + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_killed_writer_leaves_old_or_new_values_and_no_lock(path):
    code = """
        store = SQLiteStore(sys.argv[1])
        print(flush=True)
        n = 0
        while True:
            n = n % 100 + 1
            with store.lock("0"):
                store.set_many((f"{i}", bytes([n]) * 50_000) for i in range(3))
    """
    with SQLiteStore(path, timeout=5) as store:
        store.set_many((f"{i}", bytes(50_000)) for i in range(3))
        choose = random.Random(0)
        for _ in range(KILLED):
            process = run(code, path)
            process.stdout.readline()
            time.sleep(choose.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            with store.lock("0"):
                values = {store.get(f"{i}") for i in range(3)}
                assert len(values) == 1
                assert len(set(values.pop())) == 1
                store.set("1", store.get("0"))
    assert execute(path, "PRAGMA integrity_check") == [[("ok",)]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_store_serves_parent_and_forked_child_while_threads_use_it(store):
    store.set("a", b"1")
    stop = threading.Event()

    def work(number):
        while not stop.is_set():
            store.set(f"thread/{number}", b"x" * 1000)
            assert store.get("a") == b"1"

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert store.get("a") == b"1"
                for turn in range(10):
                    store.set(f"child/{number}/{turn}", b"2")
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    stop.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 4
    assert len(list(store.list_prefix("child/"))) == 40
    assert execute(store.path, "PRAGMA integrity_check") == [[("ok",)]]


# -- the store itself


def test_closed_store_says_so(path):
    store = SQLiteStore(path)
    store.set("a", b"1")
    view = store.with_read_only()
    store.close()
    for verb in (
        lambda: store.get("a"),
        lambda: store.set("a", b""),
        lambda: store.delete("a"),
        lambda: list(store.list()),
    ):
        with pytest.raises(StoreClosedError):
            verb()
    assert view.get("a") == b"1"
    view.close()
    assert list(path.parent.iterdir()) == [path]


def test_stores_of_one_path_are_equal_also_after_pickling(path, store):
    assert store == SQLiteStore(str(path)) == pickle.loads(pickle.dumps(store))
    assert store != store.with_read_only()
    assert store.origin() == store.with_read_only().origin()


@pytest.mark.parametrize("url", ["sqlite://{}", "sqlite://localhost{}", "SQLITE://{}"])
def test_url_is_a_store(path, url):
    store, inner = sqlite.open_url(url.format(path), "a", {"timeout": 3})
    assert (store, inner, store.timeout) == (SQLiteStore(path), "", 3)
    assert sqlite.open_url(url.format(path), "r", {})[0].read_only


@pytest.mark.parametrize("url", ["sqlite://host/a", "sqlite:///", "sqlite:///a?b=c", "sqlite:///a#b"])
def test_url_with_what_a_database_has_not_is_refused(url):
    with pytest.raises(StoreError, match="URL"):
        sqlite.open_url(url, "r", {})


def test_unknown_option_is_refused():
    with pytest.raises(StoreError, match="options") as caught:
        sqlite.open_url("sqlite:///a", "r", {"token": "secret"})
    assert "secret" not in str(caught.value)


# -- zarr-python 2 (see data/README.md)


def test_array_that_zarr_python_2_wrote_is_read_and_written(tmp_path):
    shutil.copy(DATA / "zarr2.sqldb", tmp_path)
    with SQLiteStore(tmp_path / "zarr2.sqldb") as store:
        group = omnizarr.open_group(store, mode="r+")
        assert dict(group.attrs) == {"written by": "zarr-python 2.18.7"}
        np.testing.assert_array_equal(group["a"][...], np.arange(20, dtype="<i4").reshape(4, 5))
        group["a"][1, 1:4] = -1
        assert list(group["a"][1]) == [5, -1, -1, -1, 9]
    connection = sqlite3.connect(tmp_path / "zarr2.sqldb")
    # As zarr-python 2 writes: a table of more columns than two would refuse it.
    connection.execute("REPLACE INTO zarr VALUES (?, ?)", ("x", b"1"))
    connection.commit()
    connection.close()
