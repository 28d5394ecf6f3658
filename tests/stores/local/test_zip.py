import gc
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

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import (
    ChecksumError,
    ConflictError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreClosedError,
    StoreError,
)
from omnizarr.stores import LocalStore, MemoryStore, PrefixStore, ZipStore, resolve, verbs
from omnizarr.stores.base import answers
from omnizarr.stores.local import archive
from tests.fakes import FaultyStore
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


class TestZipStoreInAnotherStore(StoreContract):
    picklable = False

    @pytest.fixture
    def store(self):
        values = MemoryStore()
        with ZipStore("data.zip", store=PrefixStore(values, "folder"), mode="w") as store:
            yield store
        assert list(values.list()) == ["folder/data.zip"]


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
    assert verbs.read_into(store, "a/b", memoryview(out), 25) == len(value) - 25
    assert out == value[25:75]


@pytest.mark.parametrize("mode", ["a", "r+"])
def test_existing_archive_is_added_to(path, mode):
    with ZipStore(path, mode="w") as store:
        verbs.set_many(store, [("keep", b"1"), ("replace", b"2"), ("delete", b"3")])
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
    assert ZipStore(path).list_dir("").others == ["../", "/"]
    assert ZipStore(path).list_dir("a").others == ["a/../", "a//"]


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
    path.write_bytes(packed({"a": b"theirs"}))
    with pytest.raises(NodeExistsError):
        store.close()
    assert contents(path) == {"a": b"theirs"}
    assert list(path.parent.iterdir()) == [path]


def test_mode_w_begins_again_and_keeps_the_old_archive_until_closed(path):
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


def run(code, *arguments, **options):
    code = "import os, sys\nfrom omnizarr.stores import ZipStore\n" + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **options)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_killed_writer_leaves_the_archive_old_or_new(path):
    code = """
        n = 1
        print(flush=True)
        while True:
            n = n % 100 + 1
            with ZipStore(sys.argv[1], mode="a") as store:
                for i in range(3):
                    store.set(f"{i}", bytes([n]) * 10_000)
                store.delete("0")
                store.set("0", bytes([n]) * 10_000)
    """
    with ZipStore(path, mode="w") as store:
        verbs.set_many(store, ((f"{i}", bytes(10_000)) for i in range(3)))
    choose = random.Random(0)
    for _ in range(20 if "RUNS" in os.environ else 4):
        process = run(code, path, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(choose.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
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


def test_archive_that_nobody_closed_and_that_cannot_be_written_is_one_warning(path):
    code = """
        import errno
        from omnizarr.stores.local import archive
        store = ZipStore(sys.argv[1], mode="w")
        store.set("a", b"1")
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        archive.os.fsync = full
    """
    process = run(code, path, stderr=subprocess.PIPE, text=True)
    said = process.communicate(timeout=60)[1]
    assert "RuntimeWarning: the changes of an archive that was not closed are lost" in said
    assert f"{path}: cannot be written: No space left on device; make room on the disk" in said
    assert "Exception ignored" not in said
    assert "Traceback" not in said


def test_file_object_is_read_and_written(path):
    file = io.BytesIO()
    with ZipStore(file, mode="a") as store:
        verbs.set_many(store, [("a", b"1" * 1000), ("b", b"2")])
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
        verbs.read_into(ZipStore(path), "a", memoryview(bytearray(10)))


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


def test_second_of_two_writers_is_reported_and_undoes_nothing(tmp_path):
    path = tmp_path / "data.zip"
    with ZipStore(path, mode="w") as store:
        store.set("old", b"1")
    first, second = ZipStore(path, mode="r+"), ZipStore(path, mode="r+")
    first.set("first", b"2")
    with pytest.raises(StoreError, match="another object of this process"):
        second.set("second", b"3")
    with pytest.raises(StoreError, match="another object of this process"):
        second.delete("old")
    first.close()
    with pytest.raises(StoreError, match="since it was opened"):
        second.set("second", b"3")
    second.close()
    with ZipStore(path) as store:
        assert sorted(store.list()) == ["first", "old"]
    with ZipStore(path, mode="r+") as store:
        store.set("second", b"3")


@pytest.mark.parametrize("mode", ["r+", "a", "w"])
def test_writes_of_a_second_object_fail_at_once_instead_of_being_lost(tmp_path, mode):
    path = tmp_path / "data.zip"
    with ZipStore(path, mode="w") as store:
        omnizarr.create_array(store, data=np.arange(3), chunks=(1,))
    first, second = omnizarr.open_array(path, mode="r+"), omnizarr.open_array(path, mode="r+")
    first[0] = 10
    with pytest.raises(StoreError, match="another object"):
        second[1] = 20
    third = ZipStore(path, mode=mode)
    with pytest.raises(StoreError, match="another object"):
        third.set("a", b"1")
    third.discard()
    first.store.close()
    second.store.close()
    third = omnizarr.open_array(path, mode="r+")
    third[1] = 20
    third.store.close()
    assert omnizarr.open_array(path, mode="r")[...].tolist() == [10, 20, 2]


def test_archive_that_was_discarded_or_dropped_lets_another_one_write(tmp_path):
    path = tmp_path / "data.zip"
    ZipStore(path, mode="w").close()
    first = ZipStore(path, mode="r+")
    first.set("a", b"1")
    first.discard()
    second = ZipStore(path, mode="r+")
    second.set("b", b"2")
    del second
    gc.collect()
    with ZipStore(path, mode="r+") as third:
        third.set("c", b"3")
    with ZipStore(path) as store:
        assert sorted(store.list()) == ["b", "c"]


def test_stamp_tells_versions_of_an_entry_apart(tmp_path):
    path = tmp_path / "data.zip"
    with ZipStore(path, mode="w") as store:
        store.set("a", b"abc")
        first = verbs.stamp(store, "a")
        assert first is not None
        assert verbs.stamp(store, "a") == first
        store.set("a", b"abc")
        assert verbs.stamp(store, "a") != first
    time.sleep(0.2)
    with ZipStore(path, mode="a") as store:
        old = verbs.stamp(store, "a")
        assert old is not None
        assert verbs.stamp(store, "a") == old
        store.set("a", b"xyz")
        assert verbs.stamp(store, "a") not in (old, None)


def test_archive_that_only_just_changed_or_is_no_file_has_no_stamps(tmp_path):
    path = tmp_path / "data.zip"
    with ZipStore(path, mode="w") as store:
        store.set("a", b"abc")
    time.sleep(0.2)
    with ZipStore(path) as store:
        assert verbs.stamp(store, "a") is not None
        os.utime(path)
        assert verbs.stamp(store, "a") is None
    with ZipStore(io.BytesIO(path.read_bytes())) as store:
        assert verbs.stamp(store, "a") is None


# -- archives that are values of other stores


def packed(values, compression=zipfile.ZIP_STORED, *, comment=b"", force_zip64=False):
    """An archive as zipfile writes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        for name, value in values.items():
            with target.open(zipfile.ZipInfo(name), "w", force_zip64=force_zip64) as entry:
                entry.write(value)
        target.comment = comment
    return file.getvalue()


def far(data):
    return FaultyStore(MemoryStore({"a/data.zip": data}))


@pytest.mark.parametrize(("compression", "number"), [*((how, 3) for how in COMPRESSIONS), (zipfile.ZIP_STORED, 3000)])
def test_archive_in_a_store_is_opened_by_its_end_and_entries_by_one_request_each(compression, number):
    values = {f"c/{i}": bytes([i % 256]) * 500 + b"%d" % i for i in range(number)}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        for name, value in values.items():
            target.writestr(name, value)
    inner = far(file.getvalue())
    with ZipStore("a/data.zip", store=inner) as store:
        assert sum(inner.requests.values()) == (1 if number == 3 else 2)
        assert inner.bytes_read <= 2 * archive._TAIL + 100 * number
        assert list(store.list()) == sorted(values)
        assert store.size("c/2") == len(values["c/2"])
        inner.reset()
        for key in ("c/0", "c/2", "c/1"):
            assert store.get(key) == values[key]
        assert sum(inner.requests.values()) == 3
        assert inner.bytes_read < 3 * 700


def test_parts_of_an_entry_are_read_alone():
    value = os.urandom(100_000)
    inner = far(packed({"before": b"1", "c/0": value, "c/1": b"x"}))
    with ZipStore("a/data.zip", store=inner) as store:
        inner.reset()
        parts = verbs.get_spans(store, "c/0", [(0, 10), (-10, None), (500, 600)])
        assert [bytes(part) for part in parts] == [value[:10], value[-10:], value[500:600]]
        assert bytes(store.get("c/0", (1000, 1010))) == value[1000:1010]
        assert bytes(store.get("c/0", (99_999, 200_000))) == value[-1:]
        assert bytes(store.get("c/0", (7, 7))) == b""
        assert inner.bytes_read < 1000
        assert sum(inner.requests.values()) <= 5


def test_entries_are_asked_for_side_by_side():
    values = {f"{i}": bytes([i]) * 100 for i in range(32)}
    inner = FaultyStore(MemoryStore({"data.zip": packed(values)}), delay=0.02, concurrency=16)
    with ZipStore("data.zip", store=inner) as store:
        inner.reset()
        assert {f"{i}": value for i, value in verbs.get_many(store, ((key, None) for key in values))} == values
        assert inner.max_in_flight > 1


@pytest.mark.parametrize("how", [{"comment": b"PK" * 30_000}, {"force_zip64": True}])
@pytest.mark.parametrize("number", [1, 2000])
def test_comments_and_large_archives_are_read_in_a_store(how, number):
    values = {f"a/ä{i}": b"%d" % i for i in range(number)}
    with ZipStore("a/data.zip", store=far(packed(values, **how))) as store:
        assert {key: store.get(key) for key in store.list()} == values
        assert bytes(store.get("a/ä0", (0, 1))) == b"0"


def test_directory_of_a_zip64_archive_is_found(monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 10)  # of more entries than that, it is of the other form
    values = {f"{i}": b"%d" % i * 3000 for i in range(50)}
    data = packed(values)
    assert b"PK\x06\x07" in data
    with ZipStore("a/data.zip", store=far(data)) as store:
        assert {key: store.get(key) for key in store.list()} == values


def test_streamed_entries_are_read_in_a_store():
    class Stream(io.BytesIO):
        def seekable(self):
            return False

    file = Stream()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr("a", b"0123456789")
        target.writestr("b", b"x")
    with ZipStore("a/data.zip", store=far(file.getvalue())) as store:
        assert store.get("a") == b"0123456789"
        assert bytes(store.get("a", (2, 4))) == b"23"
        assert store.get("b") == b"x"


def test_something_before_an_archive_in_a_store_is_an_error_and_no_wrong_value():
    data = os.urandom(80_000) + packed({f"{i}": bytes([i]) * 1000 for i in range(100)})
    with ZipStore("a/data.zip", store=far(data)) as store, pytest.raises(StoreError, match="before it"):
        store.get("50")


def test_missing_archive_in_a_store_is_not_found():
    for mode in ("r", "r+"):
        with pytest.raises(NodeNotFoundError):
            ZipStore("a/none.zip", store=far(b""), mode=mode)


@pytest.mark.parametrize("data", [b"", b"not a zip file at all", bytes(100_000), b"PK\x05\x06" + bytes(10)])
def test_value_that_is_no_archive_is_a_store_error(data):
    with pytest.raises(StoreError, match="not a zip archive"):
        ZipStore("a/data.zip", store=far(data))


def test_archive_that_is_replaced_while_it_is_read_gives_no_wrong_value():
    old, new = ({f"{i}": bytes([i + add]) * 1000 for i in range(100)} for add in (0, 100))
    values = MemoryStore({"data.zip": packed(old)})
    with ZipStore("data.zip", store=values) as store:
        assert store.get("50") == old["50"]
        values.set("data.zip", packed(new))
        for span in (None, (10, 20)):
            with pytest.raises(StoreError, match="replaced"):
                store.get("50", span)
        values.delete("data.zip")
        with pytest.raises(StoreError, match="does not exist any more"):
            store.get("51")


class Pinning(MemoryStore):
    """A store that notices when a value is replaced."""

    @answers(verbs.pinned)
    def _pinned(self, key):
        first = []

        def read(spans):
            value = self.get(key)
            first.append(value)
            if first[0] is not value:
                raise ConflictError("replaced", key=key)
            return verbs.get_spans(self, key, spans)

        return read


def test_pinned_archive_has_stamps_and_raises_when_it_is_replaced():
    values = Pinning({"data.zip": packed({"a": b"0123456789"})})
    with ZipStore("data.zip", store=values) as store:
        stamp = verbs.stamp(store, "a")
        assert stamp is not None
        assert bytes(store.get("a", (2, 4))) == b"23"
        assert bytes(store.get("a", (4, 6))) == b"45"
        values.set("data.zip", packed({"a": b"9876543210"}))
        with pytest.raises(ConflictError):
            store.get("a")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_any_broken_archive_in_a_store_is_a_store_error_or_reads_the_truth(compression):
    value = bytes(range(100)) * 10
    good = packed({"a/b": value, "c": b""}, compression)
    choose = random.Random(1)
    for number in range(300):
        bad = bytearray(good)
        for _ in range(choose.randrange(1, 4)):
            bad[choose.randrange(len(bad))] = choose.randrange(256)
        if choose.random() < 0.3:
            del bad[choose.randrange(len(bad)) :]
        inner = MemoryStore({"x": bytes(archive._TAIL * (number % 2)) + bytes(bad)})
        try:
            with ZipStore("x", store=inner) as store:
                assert store.get("a/b") in (value, None)
        except (StoreError, ChecksumError, NodeNotFoundError):
            pass


def test_archive_in_a_store_is_written_by_one_put():
    values = MemoryStore()
    inner = FaultyStore(values)
    with ZipStore("a/data.zip", store=inner, mode="w") as store:
        verbs.set_many(store, [("keep", b"1" * 100), ("replace", b"2"), ("delete", b"3")])
        assert list(values.list()) == []
    assert contents(io.BytesIO(values.get("a/data.zip"))) == {"keep": b"1" * 100, "replace": b"2", "delete": b"3"}
    inner.reset()
    with ZipStore("a/data.zip", store=inner, mode="r+") as store:
        assert store.get("keep") == b"1" * 100
        store.set("replace", b"22")
        store.delete("delete")
        store.set("new", b"4")
    assert (inner.requests["set"], inner.requests["set_if_absent"]) == (1, 0)
    assert contents(io.BytesIO(values.get("a/data.zip"))) == {"keep": b"1" * 100, "replace": b"22", "new": b"4"}
    inner.reset()
    with ZipStore("a/data.zip", store=inner, mode="a"):
        pass
    assert inner.requests["set"] == 0


def test_kept_entries_are_read_in_a_row_when_an_archive_in_a_store_is_written_again():
    inner = far(packed({f"{i}": bytes([i]) * 10_000 for i in range(100)}))
    with ZipStore("a/data.zip", store=inner, mode="r+") as store:
        store.delete("7")
    assert sum(inner.requests.values()) < 12
    assert len(contents(io.BytesIO(inner.store.get("a/data.zip")))) == 99


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("mode", ["w", "a"])
def test_second_of_two_writers_of_an_archive_in_a_store_is_reported(mode, there):
    values = MemoryStore({"data.zip": packed({"old": b"1"})} if there else {})
    store = ZipStore("data.zip", store=values, mode=mode)
    store.set("mine", b"1")
    theirs = packed({"theirs": b"2"})
    values.set("data.zip", theirs)
    with pytest.raises(ConflictError, match="another writer") as caught:
        store.close()
    assert (caught.value.store, caught.value.key) == (repr(values), "data.zip")
    assert values.get("data.zip") == theirs


def test_modes_of_an_archive_in_a_store():
    values = MemoryStore()
    ZipStore("data.zip", store=values, mode="x").close()
    with pytest.raises(NodeExistsError):
        ZipStore("data.zip", store=values, mode="x")
    with pytest.raises(ReadOnlyError):
        ZipStore("data.zip", store=values.with_read_only(), mode="a")
    assert ZipStore("data.zip", store=values).read_only


def test_archive_in_a_store_pickles_with_it(tmp_path):
    LocalStore(tmp_path).set("data.zip", packed({"a": b"1"}))
    store = ZipStore("data.zip", store=LocalStore(tmp_path))
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert copy.get("a") == b"1"
    assert copy.origin() == store.origin() != ZipStore(tmp_path / "data.zip").origin()


def test_url_of_an_archive_in_a_store_is_a_zip_store():
    store, path = resolve("memory://zipped/a%20b/data.zip", "w")
    with store:
        assert path == ""
        store.set("top/zarr.json", b"{}")
    store, path = resolve("memory://zipped/a%20b/data.zip")
    assert isinstance(store, ZipStore)
    assert (path, list(store.list())) == ("top", ["top/zarr.json"])
    assert list(resolve("memory://zipped")[0].list()) == ["a b/data.zip"]
    with pytest.raises(NodeNotFoundError):
        resolve("memory://zipped/other.zip")


def test_folder_of_a_store_that_is_called_zip_stays_one():
    resolve("memory://folders", "w")[0].set("data.zip/zarr.json", b"{}")
    store, path = resolve("memory://folders/data.zip")
    assert (type(store), path) == (MemoryStore, "data.zip")


def test_archive_on_s3_is_written_on_condition_and_read_by_its_url(s3_server):
    place = s3_server.fresh()
    url = f"{place.url}/a b/data.zip"
    store, path = resolve(url, "w", place.options)
    verbs.set_many(store, [("top/zarr.json", b"{}"), ("top/c/0", b"0123456789" * 10_000)])
    store.close()
    store, path = resolve(url, "r", place.options)
    assert path == "top"
    assert bytes(store.get("top/c/0", (10, 15))) == b"01234"
    first, second = (resolve(url, "r+", place.options)[0] for _ in range(2))
    first.set("top/first", b"1")
    second.set("top/second", b"2")
    first.close()
    with pytest.raises(ConflictError, match="another writer"):
        second.close()
    with pytest.raises(ConflictError):  # it is not the one any more of which the directory was read
        store.get("top/zarr.json")
    assert sorted(resolve(url, "r", place.options)[0].list()) == ["top/c/0", "top/first", "top/zarr.json"]


def test_archive_on_a_web_server_is_read_by_its_url(http_server):
    place = http_server.fresh()
    (place.directory / "a b.zip").write_bytes(packed({f"c/{i}": bytes([i]) * 1000 for i in range(100)}))
    store, path = resolve(f"{place.url}/a%20b.zip", "r", place.options)
    assert (path, store.read_only) == ("c", True)
    answers = dict(verbs.get_many(store, ((f"c/{i}", None) for i in range(100))))
    assert answers == {i: bytes([i]) * 1000 for i in range(100)}
    assert [bytes(part) for part in verbs.get_spans(store, "c/7", [(0, 2), (-1, None)])] == [bytes([7]) * 2, bytes([7])]
    with pytest.raises(NodeNotFoundError):
        resolve(f"{place.url}/none.zip", "r", place.options)
