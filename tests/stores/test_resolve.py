import pickle
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path, PurePosixPath
from types import MappingProxyType

import pytest

import omnizarr
from omnizarr.errors import InvalidKeyError, NodeExistsError, NodeNotFoundError, ReadOnlyError, StoreError
from omnizarr.stores import LocalStore, MemoryStore, PrefixStore, ZipStore, resolve

MODES = ["r", "r+", "a", "w", "w-", "x"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [str, Path])
def test_path_is_a_local_store_and_nothing_is_created(tmp_path, kind, mode):
    store, path = resolve(kind(tmp_path / "data.zarr"), mode)
    assert isinstance(store, LocalStore)
    assert store.root == str(tmp_path / "data.zarr")
    assert store.read_only == (mode == "r")
    assert path == ""
    assert list(tmp_path.iterdir()) == []


def test_file_url_is_a_local_store(tmp_path):
    (tmp_path / "a b").mkdir()
    for url in ((tmp_path / "a b").as_uri(), f"file://localhost{(tmp_path / 'a b').as_posix()}"):
        store, path = resolve(url)
        assert (store, path) == (LocalStore(tmp_path / "a b", read_only=True), "")


def test_tilde_is_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert resolve("~/data.zarr")[0].root == str(tmp_path / "data.zarr")


def test_zip_path_is_a_zip_store(tmp_path):
    store, path = resolve(tmp_path / "data.zip", "w")
    with store:
        assert isinstance(store, ZipStore)
        assert path == ""
        store.set("zarr.json", b"{}")
    store, path = resolve(str(tmp_path / "data.zip"))
    assert store.read_only
    assert list(store.list()) == ["zarr.json"]
    with pytest.raises(NodeExistsError):
        resolve(tmp_path / "data.zip", "w-")


def test_missing_archive_is_not_found(tmp_path):
    with pytest.raises(NodeNotFoundError):
        resolve(tmp_path / "data.zip")
    assert list(tmp_path.iterdir()) == []


def test_archive_by_another_name_is_a_zip_store(tmp_path):
    with zipfile.ZipFile(tmp_path / "data.zarr", "w") as archive:
        archive.writestr("zarr.json", b"{}")
    assert isinstance(resolve(tmp_path / "data.zarr")[0], ZipStore)


def test_directory_called_zip_is_a_local_store(tmp_path):
    (tmp_path / "data.zip").mkdir()
    assert isinstance(resolve(tmp_path / "data.zip")[0], LocalStore)


def test_other_file_is_an_error(tmp_path):
    (tmp_path / "data.nc").write_bytes(b"who knows")
    with pytest.raises(StoreError, match="neither") as caught:
        resolve(tmp_path / "data.nc")
    assert caught.value.store == str(tmp_path / "data.nc")


@pytest.mark.parametrize(
    ("names", "top"),
    [
        (["data.zarr/zarr.json", "data.zarr/c/0"], "data.zarr"),
        (["data.zarr/", "data.zarr/.zarray", "__MACOSX/data.zarr/._.zarray", ".DS_Store"], "data.zarr"),
        (["zarr.json", "a/zarr.json"], ""),
        (["a/zarr.json", "b/zarr.json"], ""),
        ([], ""),
    ],
)
def test_folder_packed_by_hand_is_the_root(tmp_path, names, top):
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    assert resolve(tmp_path / "data.zip")[1] == top


def test_named_memory_is_shared_under_its_name():
    store, path = resolve("memory://test-name", "w")
    store.set("a", b"1")
    again, _ = resolve("memory://test-name", "r")
    assert again.get("a") == b"1"
    assert again.read_only
    assert path == ""
    assert resolve("memory://test-name/a/b")[1] == "a/b"
    assert resolve("memory://another-name", "a")[0].get("a") is None


def test_looking_for_named_memory_does_not_create_it():
    resolve("memory://never-written", "r+")[0].set("a", b"1")
    assert resolve("memory://never-written", "r")[0].get("a") is None


def test_path_in_memory_cannot_leave_it():
    with pytest.raises(InvalidKeyError):
        resolve("memory://name/../b")


def test_dictionary_is_a_memory_store_on_it():
    values = {}
    resolve(values, "w")[0].set("a", b"1")
    assert values == {"a": b"1"}
    assert resolve(values, "r")[0].read_only


def test_mapping_that_cannot_be_written_is_read():
    values = MappingProxyType({"a": b"1"})
    assert resolve(values, "r")[0].get("a") == b"1"
    with pytest.raises(ReadOnlyError):
        resolve(values, "a")


def test_none_is_new_memory():
    first, second = resolve(None, "w")[0], resolve(None, "w")[0]
    first.set("a", b"1")
    assert second.get("a") is None


def test_store_is_itself():
    store = PrefixStore(MemoryStore(), "a")
    assert resolve(store, "a") == (store, "")
    view, _ = resolve(store, "r")
    assert view.read_only
    assert resolve(view, "r")[0] is view
    with pytest.raises(ReadOnlyError) as caught:
        resolve(view, "r+")
    assert caught.value.remedy


# -- URLs of others


@pytest.mark.parametrize(
    ("url", "near"), [("s4://bucket/a", "s3://"), ("htps://host/a", "https://"), ("memry://a", "memory://")]
)
def test_unknown_scheme_is_an_error_that_asks_for_the_nearest(url, near):
    with pytest.raises(StoreError, match="no store is known") as caught:
        resolve(url)
    assert near in caught.value.remedy


def test_unknown_scheme_without_fsspec_says_what_to_install(monkeypatch):
    monkeypatch.setattr("omnizarr.stores.remote.fsspec.known_protocols", list)
    with pytest.raises(StoreError, match=r"omnizarr\[fsspec\]"):
        resolve("quite-unknown://a")


@pytest.mark.parametrize("url", ["s4://user:hidden@bucket/a?signature=hidden", "quite-unknown://me:hidden@a#hidden"])
def test_credentials_of_a_url_are_in_no_error(url):
    with pytest.raises(StoreError) as caught:
        resolve(url, storage_options={"secret": "hidden"})
    assert "hidden" not in str(caught.value)
    assert "hidden" not in str(pickle.loads(pickle.dumps(caught.value)))


def test_file_of_another_machine_is_refused():
    with pytest.raises(StoreError, match="another machine"):
        resolve("file://elsewhere/data.zarr")


@pytest.mark.parametrize("url", ["s3://bucket/a", "https://host/a", "memory://a"])
def test_path_that_was_a_url_is_refused(url):
    with pytest.raises(ValueError, match="as a str"):
        resolve(PurePosixPath(url))


@pytest.mark.parametrize("storelike", [{}, None, "data.zarr", Path("data.zarr"), "file:///data.zarr", "memory://a"])
def test_options_that_mean_nothing_are_refused(storelike):
    with pytest.raises(StoreError, match="mean nothing") as caught:
        resolve(storelike, storage_options={"secret": "hidden"})
    assert "hidden" not in str(caught.value)
    assert caught.value.found == ["secret"]


# -- what other libraries call a store


def test_filesystem_of_fsspec_is_a_store(tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    store, path = resolve(fsspec.filesystem("memory"), "a")
    assert (repr(store), path) == ("FsspecStore('memory://')", "")
    assert resolve(fsspec.get_mapper("memory://a/b"), "a")[0].path == "/a/b"
    assert resolve(fsspec.get_mapper("memory://a/b"), "r")[0].read_only
    assert resolve(fsspec.get_mapper(str(tmp_path)), "r+") == (LocalStore(tmp_path), "")


def test_url_with_fsspec_before_it_is_served_by_fsspec():
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    store, path = resolve("fsspec+memory://a/b", "a")
    assert (repr(store), path) == ("FsspecStore('memory://a/b')", "")


def test_chain_of_urls_is_served_by_fsspec(tmp_path):
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a/zarr.json", b"{}")
    url = f"zip://a::file://{(tmp_path / 'x.zip').as_posix()}"
    store, path = resolve(url)
    assert path == ""
    assert list(store.list()) == ["zarr.json"]
    assert store.get("zarr.json", (0, 1)) == b"{"
    assert resolve(url, None)[0].read_only
    with pytest.raises(ReadOnlyError, match="for reading"):
        resolve(url, "a")


def test_upath_is_the_store_that_it_leads_to(tmp_path):
    upath = pytest.importorskip("upath", reason="universal_pathlib is not installed")
    assert resolve(upath.UPath(tmp_path), "a") == (LocalStore(tmp_path), "")
    assert resolve(upath.UPath(tmp_path.as_uri()), "a") == (LocalStore(tmp_path), "")
    assert repr(resolve(upath.UPath("memory://a/b"), "a")[0]) == "FsspecStore('memory://a/b')"


def test_store_of_obstore_is_an_object_store():
    obstore = pytest.importorskip("obstore", reason="obstore is not installed")
    store, path = resolve(obstore.store.MemoryStore(), "a")
    assert type(store).__name__ == "ObjectStore"
    assert path == ""


def test_store_of_zarr_python_is_a_store(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")
    assert resolve(zarr.storage.LocalStore(tmp_path), "a") == (LocalStore(tmp_path), "")
    place = zarr.storage.StorePath(zarr.storage.MemoryStore(), "a/b")
    store, path = resolve(place, "r")
    assert (type(store).__name__, store.read_only, path) == ("ZarrPythonStore", True, "a/b")
    read_only = zarr.storage.LocalStore(tmp_path, read_only=True)
    with pytest.raises(ReadOnlyError):
        resolve(read_only, "r+")
    assert resolve(read_only, None)[0].read_only


def test_mapping_that_another_library_made_is_a_mapping():
    theirs = type("NestedDirectoryStore", (dict,), {"__module__": "zarr.storage"})()
    resolve(theirs, "a")[0].set("a", b"1")
    assert theirs == {"a": b"1"}


@pytest.mark.parametrize("module", ["zarr", "fsspec", "upath", "obstore"])
def test_other_things_of_these_libraries_are_no_stores(module):
    pytest.importorskip(module, reason=f"{module} is not installed")
    with pytest.raises(TypeError, match="is not a store"):
        resolve(type("Thing", (), {"__module__": module})())


@pytest.mark.parametrize("mode", ["r+", "r"])
def test_no_mode_is_the_one_that_the_store_allows(mode):
    values = {"a": b"1"}
    assert resolve(values if mode == "r+" else MappingProxyType(values), None)[0].read_only == (mode == "r")


@pytest.mark.parametrize("thing", [3, b"path", [("a", b"1")], object()])
def test_anything_else_is_a_type_error(thing):
    with pytest.raises(TypeError, match="is not a store"):
        resolve(thing)


@pytest.mark.parametrize("mode", ["rw", "", 1, "R"])
def test_unknown_mode_is_refused(mode):
    with pytest.raises(ValueError, match="mode"):
        resolve({}, mode)


def test_empty_path_is_refused():
    with pytest.raises(ValueError, match="empty"):
        resolve("")


@pytest.mark.parametrize("name", ["data.sqlite", "DATA.SQLITE3", "data.sqldb"])
def test_name_of_a_database_is_an_sqlite_store(tmp_path, name):
    for mode in ("r", "a"):
        store, path = resolve(tmp_path / name, mode)
        assert (type(store).__name__, store.read_only, path) == ("SQLiteStore", mode == "r", "")
    assert list(tmp_path.iterdir()) == []


def test_existing_sqlite_database_that_ends_in_db_is_an_sqlite_store(tmp_path):
    with closing(sqlite3.connect(tmp_path / "data.db")) as connection:
        connection.execute("CREATE TABLE other(x)")
    assert type(resolve(tmp_path / "data.db")[0]).__name__ == "SQLiteStore"


@pytest.mark.parametrize("name", ["data.zarr", "data", "data.lmdb.zarr"])
@pytest.mark.parametrize("kind", ["sqlite", "lmdb", "lmdb directory"])
def test_database_whose_name_does_not_say_so_is_opened_by_its_url(tmp_path, name, kind):
    path = tmp_path / name
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE other(x)")
    else:
        lmdb = pytest.importorskip("lmdb", reason="lmdb is not installed")
        lmdb.open(str(path), subdir=kind == "lmdb directory").close()
    url = f"{kind.split()[0]}://{path}"
    with pytest.raises(StoreError, match="does not say so") as caught:
        resolve(path)
    assert url in caught.value.remedy
    with resolve(url)[0] as store:
        assert list(store.list()) == []


def test_file_of_lmdb_in_a_hierarchy_does_not_hide_it(tmp_path):
    omnizarr.create_group(tmp_path / "data.zarr")
    (tmp_path / "data.zarr" / "data.mdb").write_bytes(b"")
    assert isinstance(resolve(tmp_path / "data.zarr")[0], LocalStore)


def test_path_that_ends_in_db_and_is_no_database_is_a_directory(tmp_path):
    assert isinstance(resolve(tmp_path / "data.db", "w")[0], LocalStore)


@pytest.mark.parametrize("name", ["data.lmdb", "data.mdb", "DATA.LMDB"])
@pytest.mark.parametrize("subdir", [True, False])
def test_lmdb_database_is_an_lmdb_store(tmp_path, name, subdir):
    lmdb = pytest.importorskip("lmdb", reason="lmdb is not installed")
    lmdb.open(str(tmp_path / name), subdir=subdir).close()
    for mode in ("r", "r+"):
        store, path = resolve(tmp_path / name, mode)
        assert (type(store).__name__, store.read_only, path) == ("LMDBStore", mode == "r", "")
        store.close()
    assert type(resolve(tmp_path / "new.lmdb", "w")[0]).__name__ == "LMDBStore"


def test_directory_that_is_called_lmdb_and_is_none_is_a_local_store(tmp_path):
    (tmp_path / "data.lmdb").mkdir()
    assert isinstance(resolve(tmp_path / "data.lmdb")[0], LocalStore)
