import errno
import os
import pickle
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import omnizarr
from omnizarr.errors import InvalidKeyError, StoreError
from omnizarr.stores import LocalStore, verbs
from omnizarr.stores.base import answers
from omnizarr.stores.local import filelocks, files, folders
from tests.stores.contract import StoreContract, in_threads

POSIX = os.name == "posix"
needs_posix = pytest.mark.skipif(not POSIX, reason="symbolic links, signals and pipes as POSIX has them")


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        yield LocalStore(tmp_path / "data.zarr")
        assert [name for name in everything(tmp_path) if ".omnizarr-" in name] == []


class TestLocalStoreInPython(StoreContract):
    """Without the native functions for files."""

    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        monkeypatch.setattr(folders, "native", lambda: None)
        return LocalStore(tmp_path / "data.zarr")


class TestLocalStoreWithFsync(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return LocalStore(tmp_path / "data.zarr", fsync=True)


class TestLocalStoreWithoutHardLinks(StoreContract):
    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        def link(*_, **__):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(folders, "native", lambda: None)
        monkeypatch.setattr(os, "link", link)
        return LocalStore(tmp_path)


class TestLocalStoreThatIsALink(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        if not POSIX:
            pytest.skip("symbolic links need rights on Windows")
        (tmp_path / "target").mkdir()
        (tmp_path / "link").symlink_to("target")
        return LocalStore(tmp_path / "link")


class TestLocalStoreWithShortReads(StoreContract):
    """The operating system may read and write less than it was asked to."""

    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        if not POSIX:
            pytest.skip("os.pread and os.preadv")
        monkeypatch.setattr(folders, "native", lambda: None)
        pread, preadv, write, read = os.pread, os.preadv, os.write, os.read

        def short(buffers):
            return [buffers[0][:3]] if len(buffers[0]) > 3 else buffers

        monkeypatch.setattr(os, "preadv", lambda file, buffers, start: preadv(file, short(buffers), start))
        monkeypatch.setattr(os, "pread", lambda file, size, start: pread(file, min(size, 3), start))
        monkeypatch.setattr(os, "read", lambda file, size: read(file, min(size, 30_000)))
        monkeypatch.setattr(os, "write", lambda file, data: write(file, memoryview(data)[:50_000]))
        return LocalStore(tmp_path)


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


def run(code, *arguments):
    """Start a Python program that has the store."""
    code = "import os, sys, random\nfrom omnizarr.stores import LocalStore\n" + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


# -- files


@pytest.fixture(params=["native", "python"])
def functions(request, monkeypatch):
    """The functions for files: those of the native engine, and those of Python."""
    if request.param == "python":
        monkeypatch.setattr(folders, "native", lambda: None)
    elif folders.native() is None:
        pytest.skip("the native engine is not to be used")


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 1_000_000])
def test_files_of_each_size_are_read_whole(tmp_path, size):
    (tmp_path / "a").mkdir()
    value = random.Random(size).randbytes(size)
    (tmp_path / "a" / "b").write_bytes(value)
    assert LocalStore(tmp_path).get("a/b") == value


@needs_posix
@pytest.mark.usefixtures("functions")
def test_only_files_inside_are_read(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "c").write_bytes(b"secret")
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "c").write_bytes(b"value")
    (tmp_path / "in" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "in" / "same").symlink_to("a")
    (tmp_path / "in" / "file").symlink_to(tmp_path / "outside" / "c")
    (tmp_path / "in" / "other").symlink_to("a/c")
    os.mkfifo(tmp_path / "in" / "pipe")
    store = LocalStore(tmp_path / "in")
    assert store.get("same/c") == store.get("other") == store.get("a/c") == b"value"
    for key in ("out/c", "file"):
        with pytest.raises(InvalidKeyError, match="leads out of the store"):
            store.get(key)
    assert [store.get(key) for key in ("a", "pipe", "none", "a/none", "none/c", "a/c/d", "x" * 300)] == [None] * 7


@pytest.mark.usefixtures("functions")
def test_a_value_is_set_in_a_new_directory_only(tmp_path):
    store = LocalStore(tmp_path)
    assert verbs.set_in_new_folder(store, "a/doc", b"1") == ""  # nothing is known of the root
    assert everything(tmp_path) == []
    assert store.has_root()
    assert verbs.set_in_new_folder(store, "a/doc", b"1") in {"set", "alone"}
    assert (tmp_path / "a" / "doc").read_bytes() == b"1"
    assert verbs.set_in_new_folder(store, "a/doc", b"2") == verbs.set_in_new_folder(store, "a/other", b"2") == ""
    assert verbs.set_in_new_folder(store, "b/c/doc", b"2") == verbs.set_in_new_folder(store, "doc", b"2") == ""
    assert verbs.set_in_new_folder(store, "a/b/doc", bytearray(b"3")) in {"set", "alone"}
    assert everything(tmp_path) == ["a", "a/b", "a/b/doc", "a/doc"]
    assert store.get("a/doc") == b"1"
    assert store.get("a/b/doc") == b"3"


@pytest.mark.usefixtures("functions")
def test_a_value_is_set_in_a_new_root(tmp_path):
    assert verbs.set_in_new_folder(LocalStore(tmp_path / "a"), "doc", b"1") in {"set", "alone"}
    assert (tmp_path / "a" / "doc").read_bytes() == b"1"
    assert verbs.set_in_new_folder(LocalStore(tmp_path / "a"), "doc", b"2") == ""
    assert verbs.set_in_new_folder(LocalStore(tmp_path / "a"), "other", b"2") == ""
    assert verbs.set_in_new_folder(LocalStore(tmp_path / "none" / "b"), "doc", b"2") == ""
    (tmp_path / "file").write_bytes(b"")
    assert verbs.set_in_new_folder(LocalStore(tmp_path / "file"), "doc", b"2") == ""
    assert everything(tmp_path) == ["a", "a/doc", "file"]
    assert (tmp_path / "a" / "doc").read_bytes() == b"1"


def test_a_new_root_is_removed_if_its_value_cannot_be_set(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "native", lambda: None)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="No space left"):
        verbs.set_in_new_folder(LocalStore(tmp_path / "a"), "doc", b"1")
    with pytest.raises(StoreError, match="No space left"):
        omnizarr.create_array(tmp_path / "b", shape=(3,), dtype="i4")
    assert everything(tmp_path) == []


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c", "d")])
def test_files_of_the_root_are_found(tmp_path, names):
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "d").write_bytes(b"")
    assert LocalStore(tmp_path).files_at_root(names) == [name for name in names if name == "b"]
    assert LocalStore(tmp_path / "b").files_at_root(names) is None
    assert LocalStore(tmp_path / "none").files_at_root(names) is None


@needs_posix
@pytest.mark.usefixtures("functions")
def test_new_directories_and_their_files_have_the_rights_of_the_umask(tmp_path):
    store = LocalStore(tmp_path)
    store.has_root()
    old = os.umask(0o027)
    try:
        verbs.set_in_new_folder(store, "a/b", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o640


@pytest.mark.usefixtures("functions")
def test_a_subclass_sees_each_value_that_is_set(tmp_path):
    class Told(LocalStore):
        told = ()

        def set(self, key, value):
            self.told = (*self.told, key)
            super().set(key, value)

        @answers(verbs.set_if_absent)
        def _set_if_absent(self, key, value):
            self.told = (*self.told, key)
            return super()._set_if_absent(key, value)

    store = Told(tmp_path)
    store.has_root()
    assert verbs.set_in_new_folder(store, "a/b", b"1") == ""  # it would bypass `set`
    assert verbs.set_if_absent(store, "a/b", b"1")
    assert store.told == ("a/b",)


def test_values_are_files(tmp_path):
    LocalStore(tmp_path).set("a/c/0", b"abc")
    assert (tmp_path / "a" / "c" / "0").read_bytes() == b"abc"


def test_reading_creates_nothing(tmp_path):
    store = LocalStore(tmp_path / "missing")
    assert store.get("a/b") is None
    assert store.size("a") is None
    assert list(store.list()) == []
    assert store.list_dir("") == ([], [])
    store.delete("a/b")
    verbs.delete_prefix(store, "")
    assert everything(tmp_path) == []


def test_deleting_removes_empty_directories_but_not_the_root(tmp_path):
    store = LocalStore(tmp_path)
    verbs.set_many(store, [("a/b/c", b""), ("a/d", b"")])
    store.delete("a/b/c")
    assert everything(tmp_path) == ["a", "a/d"]
    store.delete("a/d")
    assert everything(tmp_path) == []
    store.set("a/b/c", b"")
    verbs.delete_prefix(store, "a/b/")
    assert everything(tmp_path) == []


@needs_posix
@pytest.mark.parametrize("wrong", ["a/../b/2", "a/b//2", "a/b/.omnizarr-x.tmp", "", "\ud800"])
def test_keys_are_deleted_up_to_one_that_is_none(tmp_path, wrong):
    for key in ("a/b/1", "a/b/2", "c/d/1", "e"):
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(b"1")
    keys = iter(["c/d/1", "none/x", "a/b", "a/b/1", wrong, "a/b/2", "e"])
    with pytest.raises(InvalidKeyError):
        verbs.delete_many(LocalStore(tmp_path), keys)
    assert sorted(name.relative_to(tmp_path).as_posix() for name in tmp_path.rglob("*")) == ["a", "a/b", "a/b/2", "e"]


@needs_posix
def test_sizes_are_those_of_all_files_whatever_their_names(tmp_path):
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    names = ["zarr.json", "c/0/1", "d/\xe9", "d/a b", "d/x:y", "e/f", ".omnizarr-x.tmp", "e/a\\b"]
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * number)
    outside.write_bytes(b"outside")
    (root / "e/out").symlink_to(outside)
    (root / "e/file").symlink_to("../c/0/1")
    (root / "folder").symlink_to("d")
    os.mkfifo(root / "pipe")
    expected = {"zarr.json": 0, "c/0/1": 1, "d/\xe9": 2, "d/a b": 3, "d/x:y": 4, "e/f": 5, "e/file": 1}
    expected |= {f"folder/{key[2:]}": size for key, size in expected.items() if key.startswith("d/")}
    store = LocalStore(root)
    assert dict(store.sizes_below("")) == dict(verbs.list_sizes(store, "")) == expected
    assert set(store.list()) == expected.keys()
    assert dict(store.sizes_below("none")) == {}


def test_new_files_have_the_rights_of_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        LocalStore(tmp_path).set("a/b", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o640


def test_root_may_be_relative_and_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = LocalStore("data.zarr")
    monkeypatch.chdir("/")
    store.set("a", b"1")
    assert everything(tmp_path) == ["data.zarr", "data.zarr/a"]


def test_value_where_a_directory_is_cannot_be_set(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a/b", b"1")
    for setter in (lambda: store.set("a", b"2"), lambda: verbs.set_if_absent(store, "a", b"2")):
        with pytest.raises(StoreError) as caught:
            setter()
        assert caught.value.key == "a"
        assert caught.value.remedy
    assert everything(tmp_path) == ["a", "a/b"]


def test_value_below_a_value_cannot_be_set(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    for write in (lambda: store.set("a/b", b"2"), lambda: store.set("a/b/c", b""), store.lock("a/b").__enter__):
        with pytest.raises(StoreError, match="parent of the key"):
            write()
    assert everything(tmp_path) == ["a"]


def test_name_that_is_too_long_is_missing_and_cannot_be_set(tmp_path):
    store = LocalStore(tmp_path)
    key = "a/" + "x" * 300
    assert store.get(key) is None
    with pytest.raises(InvalidKeyError):
        store.set(key, b"")
    with store.lock("x" * 255):
        store.set("x" * 255, b"1")
    assert store.get("x" * 255) == b"1"


def test_failed_write_leaves_the_old_value_and_no_litter(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "native", lambda: None)
    store = LocalStore(tmp_path)
    store.set("a/b", b"old")

    def full(file, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError) as caught:
        store.set("a/b", b"new")
    assert caught.value.errno == 28
    assert "No space left on device" in str(caught.value)
    assert store.get("a/b") == b"old"
    assert everything(tmp_path) == ["a", "a/b"]


def test_interrupted_write_leaves_no_litter(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "native", lambda: None)
    store = LocalStore(tmp_path)
    store.set("a/b", b"old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.set("a/b", b"new")
    assert everything(tmp_path) == ["a", "a/b"]


def test_temporary_names_are_neither_listed_nor_read_but_deleted_with_the_rest(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a/b", b"1")
    (tmp_path / "a" / ".omnizarr-1234.tmp").write_bytes(b"left by a killed writer")
    assert list(store.list()) == ["a/b"]
    assert store.list_dir("a/").keys == ["a/b"]
    with pytest.raises(InvalidKeyError):
        store.get("a/.omnizarr-1234.tmp")
    verbs.delete_prefix(store, "a/")
    assert everything(tmp_path) == []


@needs_posix
@pytest.mark.skipif(POSIX and os.geteuid() == 0, reason="root may do everything")
def test_missing_rights_are_a_store_error(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    (tmp_path / "a").chmod(0)
    with pytest.raises(StoreError, match="ermission"):
        store.get("a")


@needs_posix
def test_pipe_in_the_place_of_a_value_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "a")
    store = LocalStore(tmp_path)
    assert store.get("a") is None
    assert store.size("a") is None
    assert verbs.read_into(store, "a", memoryview(bytearray(4))) is None
    assert list(store.list()) == []


def test_names_that_are_not_utf8_are_not_listed(tmp_path):
    if sys.platform != "linux":
        pytest.skip("other file systems have only UTF-8 names")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))).write_bytes(b"")
    assert list(LocalStore(tmp_path).list()) == []


def test_store_pickles_and_compares_by_its_root(tmp_path):
    store = LocalStore(tmp_path)
    assert pickle.loads(pickle.dumps(store)) == store == LocalStore(str(tmp_path))
    assert store != LocalStore(tmp_path / "a")
    assert repr(store) == f"LocalStore({str(tmp_path)!r})"


def test_windows_names_are_checked_where_they_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[LocalStore.__module__].files, "WINDOWS", True)
    store = LocalStore(tmp_path)
    for key in ("a:b", "con", "NUL.txt", "a/aux/b", "a.", "a /b", "a?", "com1", "a*", "a\nb"):
        with pytest.raises(InvalidKeyError):
            store.set(key, b"")
    for key in (".zarray", "c/0/1", "console", "zarr.json", "common/a b"):
        store.set(key, b"")


# -- staying inside


@needs_posix
class TestLinks:
    @pytest.fixture
    def outside(self, tmp_path):
        (tmp_path / "outside" / "d").mkdir(parents=True)
        (tmp_path / "outside" / "secret").write_bytes(b"secret")
        (tmp_path / "outside" / "d" / "secret").write_bytes(b"secret")
        return tmp_path / "outside"

    @pytest.fixture
    def root(self, tmp_path, outside):
        (tmp_path / "root" / "in").mkdir(parents=True)
        (tmp_path / "root" / "in" / "value").write_bytes(b"value")
        (tmp_path / "root" / "file").symlink_to(outside / "secret")
        (tmp_path / "root" / "folder").symlink_to(outside)
        (tmp_path / "root" / "up").symlink_to("..")
        return tmp_path / "root"

    @pytest.mark.parametrize("key", ["file", "folder/secret", "folder/d/secret", "up/outside/secret"])
    def test_link_out_of_the_root_is_refused_in_reading(self, root, key):
        for verb in (
            lambda store: store.get(key),
            lambda store: store.get(key, (0, 1)),
            lambda store: verbs.get_spans(store, key, [(0, 1)]),
            lambda store: verbs.read_into(store, key, memoryview(bytearray(6))),
            lambda store: store.size(key),
            lambda store: store.exists(key),
        ):
            with pytest.raises(InvalidKeyError, match="out of the store") as caught:
                verb(LocalStore(root))
            assert caught.value.remedy

    @pytest.mark.parametrize("key", ["folder/secret", "folder/new", "folder/d/new", "up/new", "folder/new/new"])
    def test_link_out_of_the_root_is_refused_in_writing(self, root, outside, key):
        before = everything(outside.parent)
        for verb in (
            lambda store: store.set(key, b"1"),
            lambda store: verbs.set_if_absent(store, key, b"12"),
            lambda store: verbs.set_partial(store, key, 0, b"1"),
            lambda store: store.delete(key),
            lambda store: store.lock(key).__enter__(),
            lambda store: verbs.delete_prefix(store, key.rpartition("/")[0]) if "/d/" in key else store.set(key, b""),
        ):
            with pytest.raises(InvalidKeyError, match="out of the store"):
                verb(LocalStore(root))
        assert everything(outside.parent) == before
        assert (outside / "secret").read_bytes() == b"secret"

    def test_link_out_of_the_root_is_not_listed(self, root):
        store = LocalStore(root)
        assert list(store.list()) == ["in/value"]
        assert store.list_dir("") == ([], ["in/"])
        assert store.list_dir("").others == ["file", "folder/", "up/"]
        with pytest.raises(InvalidKeyError):
            store.list_dir("folder/")

    def test_writing_and_deleting_a_linked_value_leaves_its_target(self, root, outside):
        store = LocalStore(root)
        store.set("file", b"mine")
        assert store.get("file") == b"mine"
        store.delete("file")
        assert (outside / "secret").read_bytes() == b"secret"

    def test_deleting_a_prefix_does_not_follow_links(self, root, outside):
        verbs.delete_prefix(LocalStore(root), "")
        assert everything(root) == []
        assert everything(outside) == ["d", "d/secret", "secret"]

    def test_deleting_a_linked_prefix_is_refused_or_removes_the_link_alone(self, root, outside):
        store = LocalStore(root)
        with pytest.raises(InvalidKeyError):
            verbs.delete_prefix(store, "folder/")
        (root / "inner").symlink_to("in")
        verbs.delete_prefix(store, "inner/")
        assert not (root / "inner").is_symlink()
        assert (root / "in" / "value").exists()
        assert (outside / "secret").exists()

    def test_link_within_the_root_is_followed_in_reading(self, root):
        (root / "link").symlink_to("in")
        (root / "copy").symlink_to("in/value")
        store = LocalStore(root)
        assert store.get("link/value") == b"value"
        assert store.get("copy") == b"value"
        assert store.size("copy") == 5
        assert verbs.read_into(store, "copy", memoryview(bytearray(5))) == 5
        assert sorted(store.list()) == ["copy", "in/value", "link/value"]

    def test_links_in_circles_are_listed_once(self, root):
        (root / "in" / "circle").symlink_to("..")
        (root / "in" / "self").symlink_to("self")
        (root / "a").mkdir()
        (root / "b").mkdir()
        (root / "a" / "b").symlink_to("../b")
        (root / "b" / "a").symlink_to("../a")
        (root / "a" / "v").write_bytes(b"")
        keys = list(LocalStore(root).list())
        assert {"in/value", "a/v"} <= set(keys)
        assert len(keys) < 10
        assert LocalStore(root).get("in/self") is None

    def test_link_to_nothing_is_missing(self, root):
        (root / "nothing").symlink_to("missing")
        store = LocalStore(root)
        assert store.get("nothing") is None
        assert store.size("nothing") is None


def test_has_any_takes_no_name_of_another_case_for_absent(tmp_path):
    store = LocalStore(tmp_path)
    store.set("Zarr.JSON", b"")  # where file systems do not tell them apart, it exists
    assert verbs.has_any(store, "", ["zarr.json"])


@needs_posix
def test_directory_that_was_replaced_by_a_file_is_no_parent(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a/b", b"1")
    (tmp_path / "a" / "b").unlink()
    (tmp_path / "a").rmdir()
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(StoreError):
        store.set("a/c/d", b"1")


def test_directories_that_were_removed_are_made_again(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a/b/c", b"1")
    verbs.delete_prefix(LocalStore(tmp_path), "a/")
    store.set("a/d/e", b"2")
    assert store.get("a/d/e") == b"2"


# -- races


def test_setting_races_with_removing_the_directories(tmp_path):
    store, other = LocalStore(tmp_path), LocalStore(tmp_path)

    def work(i):
        for j in range(150):
            if i == 0:
                verbs.delete_prefix(other, "a/")
            else:
                store.set(f"a/b/{i}/{j}", b"value")
                store.delete(f"a/b/{i}/{j}")

    in_threads(work, range(4))
    verbs.delete_prefix(store, "")
    assert everything(tmp_path) == []


def test_readers_never_see_a_part_of_a_value(tmp_path):
    store = LocalStore(tmp_path)
    values = [bytes([i]) * (50_000 + 10_000 * i) for i in range(4)]
    store.set("a", values[0])
    stop = threading.Event()

    def read(_):
        while not stop.is_set():
            assert store.get("a") in values
            out = bytearray(80_000)
            size = verbs.read_into(store, "a", memoryview(out))
            assert bytes(out[:size]) in values

    def write(_):
        for _ in range(100):
            store.set("a", random.choice(values))
        stop.set()

    in_threads(lambda function: function(None), [read, read, write])


# -- processes


@needs_posix
def test_lock_excludes_other_processes(tmp_path):
    """Four processes in and out of one section, which leaves the key missing, new, or replaced."""
    code = """
        root, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        store, choose = LocalStore(root), random.Random(seed)
        for _ in range(rounds):
            with store.lock("a/b/key"):
                # O_EXCL says whether somebody else is inside
                inside = os.open(root + "/inside", os.O_CREAT | os.O_EXCL)
                os.close(inside)
                for _ in range(choose.randrange(3)):
                    if choose.random() < 0.5:
                        store.set("a/b/key", b"1" * choose.randrange(100))
                    else:
                        store.delete("a/b/key")
                n = store.get("n") or b"0"
                store.set("n", b"%d" % (int(n) + 1))
                os.unlink(root + "/inside")
    """
    processes = [run(code, tmp_path, seed, 150) for seed in range(4)]
    assert [process.wait(120) for process in processes] == [0] * 4
    for process in processes:
        process.stdout.close()
    assert LocalStore(tmp_path).get("n") == b"600"
    assert not any(".omnizarr-" in name for name in everything(tmp_path))


@needs_posix
def test_killed_holder_blocks_no_one_and_its_lock_file_goes_with_the_next(tmp_path):
    code = """
        with LocalStore(sys.argv[1]).lock("a/b"):
            print("inside", flush=True)
            sys.stdin.read()
            import time; time.sleep(60)
    """
    with run(code, tmp_path) as process:
        assert process.stdout.readline() == "inside\n"
        process.kill()
    store = LocalStore(tmp_path)
    assert list(store.list()) == []
    in_threads(lambda _: enter(store, "a/b"), [0])
    assert everything(tmp_path) == []


def enter(store, key):
    with store.lock(key):
        pass


@needs_posix
def test_writers_killed_at_any_moment_leave_every_value_whole(tmp_path):
    code = """
        store, n = LocalStore(sys.argv[1]), 0
        print("ready", flush=True)
        while True:
            n = (n + 1) % 250
            with store.lock(f"a/{n % 3}"):
                store.set(f"a/{n % 3}", bytes([n]) * (1 + 997 * n))
    """
    store = LocalStore(tmp_path)
    choose = random.Random(0)
    for _ in range(20):
        with run(code, tmp_path) as process:
            process.stdout.readline()
            time.sleep(choose.random() * 0.03)
            os.kill(process.pid, signal.SIGKILL)
        for i in range(3):
            value = store.get(f"a/{i}")
            if value is not None:
                assert len(value) == 1 + 997 * value[0]
                assert value == value[:1] * len(value)
        in_threads(lambda i: enter(store, f"a/{i}"), range(3))
    assert set(store.list()) <= {"a/0", "a/1", "a/2"}


@needs_posix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_child_uses_the_store_while_a_thread_of_the_parent_holds_a_lock(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with store.lock("held"):
            entered.set()
            leave.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with store.lock("other"):
                store.set("b", store.get("a") + b"2")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.get("b") == b"12"
    leave.set()
    holder.join()
    enter(store, "held")


@needs_posix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_child_forked_within_the_lock_does_not_release_it(tmp_path):
    store = LocalStore(tmp_path)
    with store.lock("a"):
        child = os.fork()
        if child == 0:
            try:
                raise SystemExit
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                # Within the child's copy of the block: it must wait for the parent.
                import signal as signals

                signals.signal(signals.SIGALRM, lambda *_: os._exit(0))
                signals.setitimer(signals.ITIMER_REAL, 0.3)
                enter(store, "a")
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert everything(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked in another way there")
@pytest.mark.parametrize(
    ("verb", "nth"), [("fcntl.flock", 1), ("os.getpid", 1), ("os.getpid", 2), ("os.unlink", 1), ("os.close", 1)]
)
def test_no_lock_is_left_by_an_interrupt(tmp_path, monkeypatch, verb, nth):
    module, _, name = verb.partition(".")
    original = getattr(sys.modules[module], name)
    calls = []

    def interrupted(*args, **more):
        result = original(*args, **more)
        calls.append(args)
        if len(calls) == nth:
            raise KeyboardInterrupt
        return result

    store = LocalStore(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[module], name, interrupted)
        with pytest.raises(KeyboardInterrupt), store.lock("a"):
            pass
    assert not list(tmp_path.iterdir())
    assert not filelocks._descriptors


def test_value_that_was_only_just_written_has_no_stamp(tmp_path):
    store = LocalStore(tmp_path)
    for _ in range(100):
        start = time.monotonic()
        store.set("a", b"abc")
        stamp = verbs.stamp(store, "a")
        if time.monotonic() - start < 0.1:  # nothing kept this thread waiting
            assert stamp is None


def test_stamp_of_a_file_is_the_same_until_it_is_written(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a", b"abc")
    first = settled_stamp(store, "a")
    assert settled_stamp(LocalStore(tmp_path), "a") == first
    store.set("a", b"abc")
    assert settled_stamp(store, "a") != first


def test_file_with_a_time_in_the_future_has_no_stamp(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a", b"abc")
    settled_stamp(store, "a")
    os.utime(tmp_path / "a", (time.time() + 1000,) * 2)
    time.sleep(0.2)
    assert verbs.stamp(store, "a") is None


@needs_posix
def test_stamp_of_a_link_is_that_of_its_target(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a", b"abc")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "c").symlink_to("/etc/hosts")
    assert settled_stamp(store, "b") == settled_stamp(store, "a")
    with pytest.raises(InvalidKeyError):
        verbs.stamp(store, "c")


@pytest.mark.parametrize(
    ("modified", "changed", "now", "is_settled"),
    [
        (10_123_456_789, 10_123_456_789, 10_223_456_789, False),
        (10_123_456_789, 10_123_456_789, 10_223_456_790, True),
        (10_123_456_789, 0, 10_223_456_789, False),
        (0, 10_123_456_789, 10_223_456_789, False),
        (20_123_456_789, 10_123_456_789, 15_000_000_000, False),
        (10_000_000_000, 10_000_000_000, 13_000_000_000, False),  # a file system that knows only seconds
        (10_000_000_000, 10_000_000_000, 13_000_000_001, True),
        (0, 10_123_456_789, 10_223_456_790, True),
    ],
)
def test_file_has_a_stamp_once_its_changes_are_back_far_enough(monkeypatch, modified, changed, now, is_settled):
    status = SimpleNamespace(
        st_mode=stat.S_IFREG, st_dev=1, st_ino=2, st_size=3, st_mtime_ns=modified, st_ctime_ns=changed
    )
    monkeypatch.setattr(files.os, "fstat", lambda _: status)
    monkeypatch.setattr(files.time, "time_ns", lambda: now)
    assert files.stamp(0) == ((1, 2, 3, modified, changed) if is_settled else None)


def settled_stamp(store, key):
    """Return the stamp of a value as soon as it has one."""
    deadline = time.monotonic() + 30
    while (stamp := verbs.stamp(store, key)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return stamp


@needs_posix
def test_directories_that_were_listed_are_not_looked_at_again(tmp_path, monkeypatch):
    for number in range(5):
        (tmp_path / "root" / f"v{number}").mkdir(parents=True)
        (tmp_path / "root" / f"v{number}" / ".zarray").write_bytes(b"{}")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".zarray").write_bytes(b"secret")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "out")
    store = LocalStore(tmp_path / "root")
    assert store.list_dir("").prefixes == [f"v{number}/" for number in range(5)]
    looks = []
    known = os.lstat
    monkeypatch.setattr(os, "lstat", lambda *given: looks.append(given) or known(*given))
    assert [bytes(store.get(f"v{number}/.zarray")) for number in range(5)] == [b"{}"] * 5
    assert not looks
    with pytest.raises(InvalidKeyError):
        store.get("link/.zarray")


@needs_posix
def test_files_that_no_key_names_are_listed_apart(tmp_path):
    root = tmp_path / "x"
    store = LocalStore(root)
    store.set("a/b", b"123")
    for name, size in {"a/.omnizarr-1.tmp": 4, "a/back\\slash": 5, ".omnizarr-c/d": 6}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(bytes(size))
    (root / "a" / "inside").symlink_to("b")
    (root / "a" / "outside").symlink_to("/etc/hostname")
    (root / "away").symlink_to("/tmp")
    sizes = {"a/.omnizarr-1.tmp": 4, "a/back\\slash": 5, "a/outside": len("/etc/hostname")}
    assert dict(store.list_unnamed("a")) == sizes
    assert dict(store.list_unnamed("")) == {**sizes, ".omnizarr-c/d": 6, "away": len("/tmp")}
    assert set(store.list()) == {"a/b", "a/inside"}
    assert list(store.list_unnamed("nothing")) == []
