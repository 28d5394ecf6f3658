import pickle
import zipfile
from pathlib import Path
from types import MappingProxyType

import pytest

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
    (tmp_path / "data.nc").write_bytes(b"CDF\x01")
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


def test_dictionary_is_a_memory_store_upon_it():
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


@pytest.mark.parametrize("url", ["s3://user:secret@bucket/a?signature=secret", "https://example.org/a", "gs://b/c"])
def test_cloud_and_web_stores_are_not_there_yet(url):
    with pytest.raises(StoreError, match="not part of this release") as caught:
        resolve(url)
    assert url.split(":")[0] in str(caught.value)
    assert "secret" not in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).found == caught.value.found


@pytest.mark.parametrize("thing", [3, b"path", [("a", b"1")], object()])
def test_anything_else_is_a_type_error(thing):
    with pytest.raises(TypeError, match="is no store"):
        resolve(thing)


@pytest.mark.parametrize("mode", ["rw", "", None, "R"])
def test_unknown_mode_is_refused(mode):
    with pytest.raises(ValueError, match="mode"):
        resolve({}, mode)


def test_empty_path_is_refused():
    with pytest.raises(ValueError, match="empty"):
        resolve("")
