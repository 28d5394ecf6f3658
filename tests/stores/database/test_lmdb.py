import errno
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from typing import ClassVar

import pytest

from omnizarr.errors import MissingDependencyError, StoreError, StoreLimitError
from omnizarr.stores import verbs
from tests.stores.contract import StoreContract, in_threads
from tests.stores.database.contract import DATA, DatabaseContract, check_array_of_zarr_python_2, run

lmdb = pytest.importorskip("lmdb", reason="lmdb is not installed")

from omnizarr.stores import LMDBStore  # noqa: E402
from omnizarr.stores.database import lmdb as databases  # noqa: E402


class TestLMDBStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with LMDBStore(tmp_path / "a b%" / "data.lmdb") as store:
            yield store
        assert [entry.name for entry in (tmp_path / "a b%").glob("*")] in ([], ["data.lmdb"])


class TestLMDBStoreInAFileThatHasToGrow(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with LMDBStore(tmp_path / "data.lmdb", subdir=False, map_size=2**15) as store:
            yield store


class TestLMDBDatabase(DatabaseContract):
    kind = LMDBStore
    options: ClassVar = {"subdir": False, "map_size": 2**20}

    def make_small(self):
        return partial(LMDBStore, map_size=2**16)

    def check(self, path):
        assert records(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.lmdb"


@pytest.fixture
def store(path):
    with LMDBStore(path) as store:
        yield store


def records(path, *, subdir=True):
    """What another program finds. No other process may have the database open."""
    with lmdb.open(str(path), subdir=subdir, readonly=True) as environment, environment.begin() as transaction:
        return dict(transaction.cursor())


def in_another_process(path, statement):
    code = f"import lmdb, sys\nwith lmdb.open(sys.argv[1]) as e, e.begin(write=True) as t: {statement}"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


# -- the database


@pytest.mark.parametrize("subdir", [True, False])
def test_lmdb_finds_keys_and_values(path, subdir):
    with LMDBStore(path, subdir=subdir) as store:
        verbs.set_many(store, [("a/b", b"\0\xff"), ("ä", b"")])
    assert path.is_dir() == subdir
    assert records(path, subdir=subdir) == {b"a/b": b"\0\xff", "ä".encode(): b""}
    with LMDBStore(path, subdir=not subdir, read_only=True) as store:  # one that exists stays what it is
        assert store.get("a/b") == b"\0\xff"


def test_reader_that_came_first_sees_what_is_written(path):
    reader, writer = LMDBStore(path, read_only=True), LMDBStore(path)
    assert reader.get("a") is None
    writer.set("a", b"1")
    assert reader.get("a") == b"1"
    writer.close()
    with LMDBStore(path, read_only=True) as first:
        assert first.get("a") == b"1"  # opens the database read-only
        with first.with_read_only(read_only=False) as second:
            second.set("a", b"2")
        assert first.get("a") == b"2"
    reader.close()


def test_keys_that_are_none_are_ignored(path):
    with lmdb.open(str(path)) as environment, environment.begin(write=True) as transaction:
        for key in (b"../up", b"/x", b"\xff", b"a/b", b"a//b"):
            transaction.put(key, b"1")
    with LMDBStore(path) as store:
        assert list(store.list()) == ["a/b"]
        assert store.list_dir("") == ([], ["a/"])


@pytest.mark.parametrize("data", [b"not a database at all" * 500, bytes(32768), b""])
@pytest.mark.parametrize("verb", ["get", "set"])
def test_file_that_is_no_database_is_an_error(path, data, verb):
    path.write_bytes(data)
    with LMDBStore(path) as store:
        if not data and verb == "set":  # as a new one begins
            store.set("a", b"1")
            return
        with pytest.raises(StoreError) as caught:
            store.get("a") if verb == "get" else store.set("a", b"")
        assert caught.value.store == repr(store)


def test_truncated_database_is_an_error(path):
    with LMDBStore(path, subdir=False) as store:
        verbs.set_many(store, ((f"c/{i}", bytes(300_000)) for i in range(20)))
    os.truncate(path, path.stat().st_size // 2)
    with LMDBStore(path) as store, pytest.raises(StoreError, match="truncated"):
        store.get("c/19")


def test_missing_library_is_reported_with_its_remedy(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(MissingDependencyError, match="omnizarr\\[lmdb\\]"):
        LMDBStore(path)


@pytest.mark.parametrize("options", [{"path": ""}, {"map_size": 0}])
def test_what_is_not_valid_is_refused(path, options):
    with pytest.raises(ValueError, match=r"empty|positive"):
        LMDBStore(**{"path": path, **options})


# -- keys and values


def test_key_that_is_too_long_is_refused_and_is_missing(store):
    longest, longer = "k" * 511, "k" * 512
    store.set(longest, b"1")
    assert store.get(longest) == b"1"
    for write in (
        lambda: store.set(longer, b""),
        lambda: verbs.set_many(store, [(longer, b"")]),
        lambda: verbs.set_if_absent(store, longer, b""),
        lambda: verbs.set_partial(store, longer, 0, b"1"),
    ):
        with pytest.raises(StoreLimitError) as caught:
            write()
        assert (caught.value.key, caught.value.found) == (longer, "512 bytes")
    assert store.get(longer) is None
    store.delete(longer)
    assert list(store.list_prefix("p" * 600)) == []
    assert store.list_dir("p" * 600) == ([], [])
    assert list(store.list()) == [longest]


def test_value_stays_what_it_was_when_it_is_replaced(store):
    store.set("a", b"old" * 10_000)
    value, part = store.get("a"), store.get("a", (0, 3))
    for number in range(20):
        store.set("a", bytes([number]) * 30_000)
    assert value == b"old" * 10_000
    assert part == b"old"


def test_map_grows_by_itself_also_when_another_process_made_it_grow(path):
    with LMDBStore(path, map_size=2**16) as store:
        store.set("a", bytes(10))
        before = store.get("a")
        store.set("b", bytes(2**20))
        verbs.set_many(store, ((f"c/{i}", bytes(50_000)) for i in range(40)))
        assert store.update("d", lambda _: bytes(2**22)) is None
        assert (store.get("a"), store.size("b"), store.size("d")) == (before, 2**20, 2**22)
        code = "store = LMDBStore(sys.argv[1]); store.set('e', bytes(2**25)); store.close()"
        run(LMDBStore, code, path).communicate()
        assert store.size("e") == 2**25
        store.set("f", b"1")
    assert sorted(records(path))[:2] == [b"a", b"b"]


def test_map_that_cannot_grow_is_reported(path, monkeypatch):
    real = lmdb.open

    def refuse(path, map_size, **options):
        if map_size > 2**20:
            raise lmdb.MemoryError("Cannot allocate memory")
        return real(path, map_size=map_size, **options)

    monkeypatch.setattr(lmdb, "open", refuse)
    with LMDBStore(path, map_size=2**18) as store:
        store.set("a", b"1")
        with pytest.raises(StoreLimitError, match="larger"):
            verbs.set_many(store, ((f"b/{i}", bytes(2**16)) for i in range(70)))
        assert store.get("a") == b"1"
        store.set("a", b"2")
        assert list(store.list()) == ["a"]


def test_threads_write_while_the_map_grows(path):
    with LMDBStore(path, map_size=2**15) as store:

        def work(number):
            for turn in range(20):
                store.set(f"{number}/{turn}", bytes([number]) * 20_000)
                assert store.get(f"{number}/{turn}") == bytes([number]) * 20_000

        in_threads(work, range(6))
        assert len(list(store.list())) == 120


def test_stamp_changes_with_every_change_and_never_returns(path, store):
    seen = set()
    for number in range(10):
        store.set("a", b"same")
        seen.add(verbs.stamp(store, "a"))
        if number % 3 == 0:
            store.delete("a")
    assert len(seen) == 10
    store.set("a", b"same")
    before = verbs.stamp(store, "a")
    assert verbs.get_stamped(store, "a", before) is None
    assert verbs.get_stamped(store, "a") == (b"same", before)
    in_another_process(path, "t.put(b'a', b'other')")
    assert verbs.stamp(store, "a") not in (None, before)


# -- several writers


def test_update_begins_again_when_a_program_without_locks_was_faster(store):
    store.set("n", b"1")
    calls = []

    def change(old):
        calls.append(old)
        if len(calls) == 1:
            store.set("n", b"5")
        return old + b"!"

    store.update("n", change)
    assert calls == [b"1", b"5"]
    assert store.get("n") == b"5!"
    store.update("n", lambda _: None)
    assert store.get("n") is None


# -- the store itself


def test_database_is_open_once_also_if_a_store_is_closed_while_a_thread_reads(path, monkeypatch):
    monkeypatch.setattr(databases, "_PATIENCE", 0.05)
    store = LMDBStore(path)
    store.set("a", b"1")
    entered, leave = threading.Event(), threading.Event()

    def look(_):
        entered.set()
        return leave.wait(10)

    reader = threading.Thread(target=store._read, args=(look,))
    reader.start()
    assert entered.wait(10)
    store.close()
    with LMDBStore(path) as again:
        again.set("b", again.get("a"))
        leave.set()
        reader.join(10)
        assert again.get("b") == b"1"
    assert records(path) == {b"a": b"1", b"b": b"1"}


# -- zarr-python 2 (see data/README.md)


@pytest.mark.parametrize("name", ["zarr2.lmdb", "zarr2_file.lmdb"])
def test_array_that_zarr_python_2_wrote_is_read_and_written(tmp_path, name):
    copy = shutil.copytree if (DATA / name).is_dir() else shutil.copy
    copy(DATA / name, tmp_path / name)
    with LMDBStore(tmp_path / name) as store:
        check_array_of_zarr_python_2(store)


FILL = """
import os, sys
from omnizarr.stores import LMDBStore  # noqa: E402

folder, room = sys.argv[1], int(sys.argv[2])
status = os.statvfs(folder)
with open(folder + "/ballast", "wb") as file:
    file.write(bytes(max(0, status.f_bavail * status.f_frsize - room)))
store = LMDBStore(folder + "/a.lmdb")
written = 0
try:
    while True:
        store.set(f"k{written}", bytes([written]) * 20_000)
        written += 1
except OSError as error:
    print(error.errno, flush=True)
assert [store.get(f"k{number}") for number in range(written)] == [bytes([number]) * 20_000 for number in range(written)]
os.unlink(folder + "/ballast")
store.set("more", b"1")
assert sorted(store.list()) == sorted([*(f"k{number}" for number in range(written)), "more"])
store.close()
"""


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory):
    """A disk of one megabyte."""
    folder = tmp_path_factory.mktemp("disk")
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if mount is None or sys.platform != "linux" or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk, on Linux")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("room", [1, 4096, 8192, 20_000, 100_000, 300_000])
def test_full_disk_is_an_error_and_leaves_what_was_stored(small_disk, room):
    # In a process of its own: it used to be ended by SIGBUS.
    for left in small_disk.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(small_disk), str(room)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{errno.ENOSPC}\n")
