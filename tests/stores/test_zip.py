import io
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import pytest

from omnizarr.errors import (
    ChecksumError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreClosedError,
    StoreError,
)
from omnizarr.stores import ZipStore, archive
from tests.stores.contract import StoreContract, in_threads


class TestZipStore(StoreContract):
    picklable = False

    @pytest.fixture
    def store(self, tmp_path):
        with ZipStore(tmp_path / "data.zip", mode="w") as store:
            yield store
        assert list(tmp_path.iterdir()) == [tmp_path / "data.zip"]


class TestZipStoreDeflated(StoreContract):
    picklable = False

    @pytest.fixture
    def store(self, tmp_path):
        with ZipStore(tmp_path / "data.zip", mode="a", compression=zipfile.ZIP_DEFLATED) as store:
            yield store


class TestZipStoreInAFileObject(StoreContract):
    picklable = False

    @pytest.fixture
    def store(self):
        with ZipStore(io.BytesIO(), mode="w") as store:
            yield store


class TestZipStoreOnAnArchiveThatIsThere(StoreContract):
    """As if what is in the archive had been deleted just before."""

    picklable = False

    @pytest.fixture
    def store(self, tmp_path):
        with ZipStore(tmp_path / "data.zip", mode="w") as store:
            store.set("old/value", b"old")
        with ZipStore(tmp_path / "data.zip", mode="r+") as store:
            store.delete("old/value")
            yield store


COMPRESSIONS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.zip"


def contents(path):
    """What another program finds in the archive; it must be in order, without duplicates."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == len(set(names))
        return {name: archive.read(name) for name in names}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_zipfile_reads_what_is_written(path, compression):
    with ZipStore(path, mode="w", compression=compression) as store:
        store.set("a/b", b"1" * 1000)
        store.set("c", b"")
        assert bytes(store.get("a/b", (10, 12))) == b"11"
    assert contents(path) == {"a/b": b"1" * 1000, "c": b""}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_zipfile_writes_is_read(path, compression):
    value = bytes(range(256)) * 100
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("a/b", value)
        archive.mkdir("folder") if hasattr(archive, "mkdir") else archive.writestr("folder/", b"")
    store = ZipStore(path)
    assert store.get("a/b") == value
    assert bytes(store.get("a/b", (100, 300))) == value[100:300]
    assert list(store.list()) == ["a/b"]
    out = bytearray(50)
    assert store.read_into("a/b", memoryview(out), 25) == len(value) - 25
    assert out == value[25:75]


@pytest.mark.parametrize("mode", ["a", "r+"])
def test_existing_archive_is_added_to(path, mode):
    with ZipStore(path, mode="w") as store:
        store.set_many([("keep", b"1"), ("replace", b"2"), ("delete", b"3")])
    with ZipStore(path, mode=mode) as store:
        assert store.get("keep") == b"1"
        store.set("replace", b"22")
        store.delete("delete")
        store.set("new", b"4")
    assert contents(path) == {"keep": b"1", "replace": b"22", "new": b"4"}


def test_overwritten_and_deleted_entries_take_no_room_after_closing(path):
    with ZipStore(path, mode="w") as store:
        for i in range(20):
            store.set("a", bytes([i]) * 100_000)
            store.set("b", bytes(100_000))
        store.delete("b")
    assert contents(path) == {"a": bytes([19]) * 100_000}
    assert path.stat().st_size < 101_000
    with ZipStore(path, mode="a") as store:
        store.delete("a")
        store.set("c", b"1")
    assert path.stat().st_size < 1000


def test_last_of_several_entries_of_one_name_counts(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"first")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"last")
    with ZipStore(path) as store:
        assert store.get("a") == b"last"
        assert list(store.list()) == ["a"]
    with ZipStore(path, mode="a") as store:
        store.set("b", b"")
    assert contents(path) == {"a": b"last", "b": b""}


def test_entries_that_are_no_keys_are_not_there(path):
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../up", "/root", "a/../../b", "a//b", "good"):
            archive.writestr(name, b"1")
    assert list(ZipStore(path).list()) == ["good"]
    assert ZipStore(path).list_dir("") == (["good"], [])


def test_closing_without_changes_leaves_the_file_alone(path):
    with ZipStore(path, mode="w") as store:
        store.set("a", b"1")
    before = path.stat()
    with ZipStore(path, mode="a") as store:
        store.get("a")
        store.delete("missing")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("mode", ["w", "a", "x", "w-"])
def test_new_archive_without_entries_is_an_archive(path, mode):
    ZipStore(path, mode=mode).close()
    assert contents(path) == {}


def test_modes_that_need_or_refuse_an_archive(path):
    for mode in ("r", "r+"):
        with pytest.raises(NodeNotFoundError):
            ZipStore(path, mode=mode)
    assert not path.exists()
    ZipStore(path, mode="w").close()
    for mode in ("x", "w-"):
        with pytest.raises(NodeExistsError):
            ZipStore(path, mode=mode)
    with pytest.raises(ValueError, match="mode"):
        ZipStore(path, mode="rb")


def test_archive_that_appears_meanwhile_is_not_overwritten_in_mode_x(path):
    store = ZipStore(path, mode="x")
    store.set("a", b"mine")
    with ZipStore(path, mode="w") as other:
        other.set("a", b"theirs")
    with pytest.raises(NodeExistsError):
        store.close()
    assert contents(path) == {"a": b"theirs"}
    assert list(path.parent.iterdir()) == [path]


def test_mode_w_begins_anew_and_keeps_the_old_archive_until_closed(path):
    with ZipStore(path, mode="w") as store:
        store.set("old", b"1")
    store = ZipStore(path, mode="w")
    store.set("new", b"2")
    assert store.get("old") is None
    assert contents(path) == {"old": b"1"}
    store.close()
    assert contents(path) == {"new": b"2"}


def test_reading_mode_does_not_write(path):
    ZipStore(path, mode="w").close()
    store = ZipStore(path)
    assert store.read_only
    with pytest.raises(ReadOnlyError):
        store.set("a", b"")
    with pytest.raises(ReadOnlyError):
        store.with_read_only(read_only=False)
    with pytest.raises(ReadOnlyError):
        ZipStore(path, mode="r", read_only=False)
    store = ZipStore(path, mode="a", read_only=True)
    with pytest.raises(ReadOnlyError):
        store.set("a", b"")


def test_closed_store_says_so(path):
    store = ZipStore(path, mode="w")
    store.set("a", b"1")
    store.close()
    for verb in (
        lambda: store.get("a"),
        lambda: store.set("a", b""),
        lambda: list(store.list()),
        lambda: store.size("a"),
    ):
        with pytest.raises(StoreClosedError):
            verb()


def test_archive_opened_for_reading_pickles(path):
    with ZipStore(path, mode="w") as store:
        store.set("a", b"1")
    store = ZipStore(path)
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert copy.get("a") == b"1"


def test_store_that_nobody_closed_is_written_when_it_is_forgotten(path):
    store = ZipStore(path, mode="w")
    store.set("a", b"1")
    del store
    assert contents(path) == {"a": b"1"}


def test_store_that_nobody_closed_is_written_when_the_program_ends(path):
    run("store = ZipStore(sys.argv[1], mode='w'); store.set('a', b'1'); sys.exit()", path).wait(60)
    assert contents(path) == {"a": b"1"}


def run(code, *arguments):
    code = "import os, sys\nfrom omnizarr.stores import ZipStore\n" + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)])


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_killed_writer_leaves_the_archive_old_or_new(path):
    code = """
        n = 1
        while True:
            n = n % 100 + 1
            with ZipStore(sys.argv[1], mode="a") as store:
                for i in range(3):
                    store.set(f"{i}", bytes([n]) * 10_000)
                store.delete("0")
                store.set("0", bytes([n]) * 10_000)
    """
    with ZipStore(path, mode="w") as store:
        store.set_many((f"{i}", bytes(10_000)) for i in range(3))
    choose = random.Random(0)
    for _ in range(10):
        process = run(code, path)
        time.sleep(0.15 + choose.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        values = contents(path)
        assert sorted(values) == ["0", "1", "2"]
        assert len(set(values.values())) == 1


def test_failed_closing_leaves_the_old_archive(path, monkeypatch):
    with ZipStore(path, mode="w") as store:
        store.set("a", b"1")
    store = ZipStore(path, mode="a")
    store.set("b", b"2")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        store.close()
    assert contents(path) == {"a": b"1"}
    assert list(path.parent.iterdir()) == [path]


def test_temporary_file_goes_also_when_closing_it_fails(path, monkeypatch):
    class OnFullDisk(io.FileIO):
        def close(self):
            if not self.closed:
                super().close()
                raise OSError(28, "No space left on device")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "open", OnFullDisk, raising=False)
    monkeypatch.setattr(os, "fsync", fail)
    store = ZipStore(path, mode="w")
    store.set("a", b"1")
    with pytest.raises(OSError, match="No space"):
        store.close()
    assert list(path.parent.iterdir()) == []


def test_file_object_is_read_and_written(path):
    file = io.BytesIO()
    with ZipStore(file, mode="a") as store:
        store.set_many([("a", b"1" * 1000), ("b", b"2")])
    assert contents(file) == {"a": b"1" * 1000, "b": b"2"}
    with ZipStore(file, mode="a") as store:
        assert store.get("b") == b"2"
        store.delete("a")
        store.set("b", b"3")
    assert contents(file) == {"b": b"3"}
    assert len(file.getvalue()) < 300
    assert not file.closed


def test_threads_read_and_write_at_once(path):
    values = {f"{i}": bytes([i]) * 1000 for i in range(64)}
    with ZipStore(path, mode="w", compression=zipfile.ZIP_DEFLATED) as store:

        def work(part):
            for key in list(values)[part::4]:
                store.set(key, values[key])
                assert store.get(key) == values[key]

        in_threads(work, range(4))
    assert contents(path) == values
    for source in (path, io.BytesIO(path.read_bytes())):
        with ZipStore(source) as store:

            def check(_, store=store):
                assert {key: store.get(key) for key in values} == values

            in_threads(check, range(4))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_child_reads_but_does_not_write(path):
    with ZipStore(path, mode="w") as store:
        store.set("a", b"1")
    reader, writer = ZipStore(path), ZipStore(path, mode="a")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert reader.get("a") == b"1"
            writer.close()
            writer.set("b", b"2")
        except StoreError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.set("c", b"3")
    writer.close()
    assert contents(path) == {"a": b"1", "c": b"3"}


@pytest.mark.parametrize("data", [b"", b"not a zip file at all", b"PK\x03\x04" + bytes(100), b"PK\x05\x06" + bytes(10)])
def test_file_that_is_no_archive_is_a_store_error(path, data):
    path.write_bytes(data)
    with pytest.raises(StoreError, match="not a zip archive"):
        ZipStore(path)
    with pytest.raises((StoreError, NodeNotFoundError)):
        ZipStore(io.BytesIO(data))


def test_changed_bytes_are_noticed(path):
    with ZipStore(path, mode="w") as store:
        store.set("a", b"0123456789")
    path.write_bytes(path.read_bytes().replace(b"0123456789", b"0123X56789"))
    with pytest.raises(ChecksumError) as caught:
        ZipStore(path).get("a")
    assert caught.value.key == "a"
    assert caught.value.found != caught.value.expected
    with pytest.raises(ChecksumError):
        ZipStore(path).read_into("a", memoryview(bytearray(10)))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_any_broken_archive_is_a_store_error_or_reads_the_truth(path, compression):
    value = bytes(range(100)) * 10
    with ZipStore(path, mode="w", compression=compression) as store:
        store.set("a/b", value)
    good = path.read_bytes()
    choose = random.Random(1)
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(choose.randrange(1, 4)):
            bad[choose.randrange(len(bad))] = choose.randrange(256)
        if choose.random() < 0.3:
            del bad[choose.randrange(len(bad)) :]
        try:
            with ZipStore(io.BytesIO(bad)) as store:
                assert store.get("a/b") in (value, None)
        except (StoreError, ChecksumError, NodeNotFoundError):
            pass


def test_encrypted_entry_is_a_store_error(path):
    with ZipStore(path, mode="w") as store:
        store.set("a", b"1")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match="encrypted"):
        ZipStore(path).get("a")


def test_second_of_two_writers_is_told_and_undoes_nothing(tmp_path):
    path = tmp_path / "data.zip"
    with ZipStore(path, mode="w") as store:
        store.set("old", b"1")
    first, second = ZipStore(path, mode="r+"), ZipStore(path, mode="r+")
    first.set("first", b"2")
    second.set("second", b"3")
    first.close()
    with pytest.raises(StoreError, match="somebody else"):
        second.close()
    with ZipStore(path) as store:
        assert sorted(store.list()) == ["first", "old"]


def test_stamp_tells_versions_of_an_entry_apart(tmp_path):
    path = tmp_path / "data.zip"
    with ZipStore(path, mode="w") as store:
        store.set("a", b"abc")
        first = store.stamp("a")
        assert first is not None
        assert store.stamp("a") == first
        store.set("a", b"abc")
        assert store.stamp("a") != first
    time.sleep(0.2)
    with ZipStore(path, mode="a") as store:
        old = store.stamp("a")
        assert old is not None
        assert store.stamp("a") == old
        store.set("a", b"xyz")
        assert store.stamp("a") not in (old, None)


def test_archive_that_only_just_changed_or_is_no_file_has_no_stamps(tmp_path):
    path = tmp_path / "data.zip"
    with ZipStore(path, mode="w") as store:
        store.set("a", b"abc")
    time.sleep(0.2)
    with ZipStore(path) as store:
        assert store.stamp("a") is not None
        os.utime(path)
        assert store.stamp("a") is None
    with ZipStore(io.BytesIO(path.read_bytes())) as store:
        assert store.stamp("a") is None
