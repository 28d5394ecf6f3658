"""Directories that others replace by links while something in them is deleted or moved."""

import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import omnizarr
from omnizarr.errors import InvalidKeyError
from omnizarr.stores import LocalStore, verbs
from omnizarr.stores.local import folders
from omnizarr.stores.local.folders import Folder
from tests.attacks import racing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links as POSIX has them")


@pytest.mark.parametrize("functions", ["native", "python"])
@pytest.mark.parametrize("verb", ["delete_prefix", "clear", "delete_many", "move_prefix", "delete", "set", "lock"])
def test_link_that_takes_the_place_of_a_directory_leads_nothing_outside(verb, functions, tmp_path, monkeypatch):
    if functions == "python":
        monkeypatch.setattr(folders, "native", lambda: None)
    elif folders.native() is None:
        pytest.skip("the native engine is not to be used")
    tries = list(racing.race(verb, tmp_path / "place", tmp_path / "outside"))
    is_one_call = functions == "native" and verb in {"delete_prefix", "clear", "delete_many"}
    assert len(tries) > (2 if is_one_call else 10)
    assert [harm for harm in tries if harm] == []


def test_nothing_outside_is_deleted_while_another_thread_swaps(tmp_path):
    outside = tmp_path / "outside"
    (outside / "b").mkdir(parents=True)
    kept = [outside / "b" / str(number) for number in range(50)]
    for path in kept:
        path.write_bytes(b"kept")
    root, spare, is_over = tmp_path / "x" / "a", tmp_path / "spare", threading.Event()

    def swap():
        while not is_over.is_set():
            with suppress(OSError):
                root.rename(spare)
                root.symlink_to(outside)
                root.unlink()
                spare.rename(root)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(50):
            store = LocalStore(tmp_path / "x")
            with suppress(OSError):
                (root / "b").mkdir(parents=True)
                for path in kept:
                    (spare if spare.exists() else root).joinpath("b", path.name).touch()
            with suppress(OSError):
                verbs.delete_prefix(store, "a/")
            with suppress(OSError):
                verbs.delete_many(store, [f"a/b/{path.name}" for path in kept])
    finally:
        is_over.set()
        thread.join()
    assert [path.read_bytes() for path in kept if path.exists()] == [b"kept"] * len(kept)


def test_documents_go_first_those_that_make_a_node_before_others():
    names = ["0.0", ".zattrs", ".zarray", "c", ".zmetadata", "zarr.json", "zzz", "meta", "x.array.json"]
    expected = [".zmetadata", ".zarray", "zarr.json", "meta", "x.array.json", ".zattrs", "0.0", "c", "zzz"]
    assert sorted(names, key=folders.turn) == expected  # `removal.rs` has the same test


class TestNodes:
    """Nodes that go in one step, with the document as the lock file."""

    @pytest.fixture
    def store(self, tmp_path):
        if not hasattr(folders.native(), "delete_node"):
            pytest.skip("the native engine is not to be used")
        store = LocalStore(tmp_path)
        for key in ("g/a/zarr.json", "g/a/c/0/1", "g/b/.zarray"):
            store.set(key, b"{}")
        return store

    def test_node_goes_with_everything_below_and_what_is_empty_above(self, store):
        assert store.delete_node("g/a", "zarr.json")
        assert list(store.list()) == ["g/b/.zarray"]
        assert store.delete_node("g/b", "zarr.json", whole=False)
        assert not (Path(store.root) / "g").exists()

    @pytest.mark.parametrize(
        "make",
        [
            lambda at: (at / "zarr.json").unlink(),
            lambda at: (at / "x").hardlink_to(at / "zarr.json"),
            lambda at: (at / "zarr.json").chmod(0o600),
            lambda at: (at / ".omnizarr-zarr.json.lock").touch(),
            lambda at: at.symlink_to(at.rename(at.parent / "c")),
        ],
        ids=["no document", "hard link", "private", "lock file", "link"],
    )
    def test_what_is_unusual_stays_for_the_usual_way(self, make, store):
        at = Path(store.root) / "g" / "a"
        make(at)
        before = sorted(at.parent.rglob("*"))
        assert not store.delete_node("g/a", "zarr.json")
        assert sorted(at.parent.rglob("*")) == before

    def test_more_than_the_document_stays_if_not_asked_for(self, store):
        assert not store.delete_node("g/a", "zarr.json", whole=False)
        assert sorted(store.list_prefix("g/a/")) == ["g/a/c/0/1", "g/a/zarr.json"]

    @pytest.mark.parametrize("folder", ["../out", ".", "g/../g/a", "g//a", "/g/a"])
    def test_what_is_no_key_is_refused(self, folder, store):
        with pytest.raises(InvalidKeyError):
            store.delete_node(folder, "zarr.json")
        assert len(list(store.list())) == 3

    def test_lock_file_of_a_deletion_that_was_killed_is_named_and_goes_with_the_next(self, tmp_path):
        array = omnizarr.create_group(tmp_path).create_array("a", shape=(4,), chunks=(2,), dtype="i2")
        array[...] = 1
        lock = (tmp_path / "a" / "zarr.json").rename(tmp_path / "a" / ".omnizarr-zarr.json.lock")
        assert lock.stat().st_size > 0
        assert {"lock-file", "orphan-chunks"} == {finding.code for finding in omnizarr.check(tmp_path)}
        assert list(omnizarr.open_group(tmp_path, mode="r")) == []
        omnizarr.create_array(tmp_path / "a", shape=(4,), chunks=(2,), dtype="i2", overwrite=True)
        assert not lock.exists()
        omnizarr.delete_node(tmp_path / "a")
        assert [path.name for path in tmp_path.iterdir()] == ["zarr.json"]

    def test_holder_of_the_lock_is_waited_for(self, tmp_path):
        group = omnizarr.create_group(tmp_path)
        group.create_array("a", shape=(4,), dtype="i2")
        thread = threading.Thread(target=group.__delitem__, args=("a",))
        with LocalStore(tmp_path).lock("a/zarr.json"):
            thread.start()
            thread.join(0.05)
            assert thread.is_alive()
            assert (tmp_path / "a" / "zarr.json").exists()
        thread.join()
        assert [path.name for path in tmp_path.iterdir()] == ["zarr.json"]


@pytest.fixture(params=[True, False], ids=["with open directories", "by paths"])
def can_open(request, monkeypatch):
    monkeypatch.setattr(folders, "CAN_OPEN", request.param and folders.CAN_OPEN)


@pytest.mark.usefixtures("can_open")
class TestTrees:
    def test_all_goes_but_what_links_lead_to(self, tmp_path):
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "x").touch()
        deep = tmp_path / "top" / "/".join("d" * 80)
        deep.mkdir(parents=True)
        for name in ("x", ".omnizarr-x.lock", ".omnizarr-x.tmp"):
            (deep / name).touch()
        (deep / "link").symlink_to(tmp_path / "kept")
        (tmp_path / "top" / "link").symlink_to(tmp_path / "kept")
        with Folder(str(tmp_path), []) as folder:
            folder.remove_tree("top")
            folder.remove_tree("missing")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
        assert [path.name for path in (tmp_path / "kept").iterdir()] == ["x"]

    def test_link_is_no_directory(self, tmp_path):
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "link").symlink_to("a")
        with pytest.raises(OSError) as caught:
            Folder(str(tmp_path), ["link", "b"])
        assert caught.value.errno in folders.LINK

    def test_keys_behind_links_within_the_store_are_deleted(self, tmp_path):
        store = LocalStore(tmp_path)
        store.set("a/b", b"")
        (tmp_path / "link").symlink_to("a")
        store.delete("link/b")
        assert list(store.list()) == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "link"]

    def test_directory_is_moved(self, tmp_path):
        store = LocalStore(tmp_path)
        store.set("a/b/c", b"x")
        assert verbs.move_prefix(store, "a/b/", "d/e/")
        assert list(store.list()) == ["d/e/c"]
        assert not (tmp_path / "a").exists()
