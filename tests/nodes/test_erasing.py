"""`omnizarr.nodes.erasing`: what overwriting removes, and what it leaves alone."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr import errors, netcdf
from omnizarr.cli import main
from omnizarr.stores import LocalStore, MemoryStore, SQLiteStore, ZipStore

FORMATS = (0, 1, 2, 3, "3-draft2019", "3-draft2020")
NEW = np.arange(6, dtype="i4").reshape(2, 3)
FOREIGN = {
    "README.txt": b"who made this",
    ".git/HEAD": b"ref",
    ".git/objects/12/34567890": b"blob",
    "notes/2024/summary.csv": b"1,2",
    "notes/c/readme.md": b"a directory called as one of chunks",
    "g/plots/1.png": b"png",
    "g/attributes.json": b"{}",
    "photos/2023/01": b"only digits, but no array above",
    "g/old/meta": b"no array of Zarr v1",
    "g/old/attrs": b"nor are these attributes of one",
}


def stores(tmp_path):
    yield "memory", MemoryStore()
    yield "local", LocalStore(tmp_path / "local")
    yield "sqlite", SQLiteStore(tmp_path / "s.sqlite")
    yield "zip", ZipStore(tmp_path / "z.zip", mode="w")


KINDS = ("memory", "local", "sqlite", "zip")


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    made = dict(stores(tmp_path))[request.param]
    yield made
    made.close()


def add_foreign(store):
    for key, value in FOREIGN.items():
        store.set(key, value)


def old_hierarchy(store, zarr_format):
    """Make a hierarchy with arrays at two depths, with chunks; v0 and v1 have no groups."""
    if zarr_format in (0, 1):
        for name in ("x", "g/y"):
            omnizarr.create_array(store, name=name, data=NEW + 100, chunks=(1, 3), zarr_format=zarr_format)
        return
    root = omnizarr.create_group(store, zarr_format=zarr_format, attributes={"old": True})
    root.create_array("x", data=NEW + 100, chunks=(1, 3))
    root.create_array("g/y", data=NEW + 100, chunks=(1, 3), attributes={"old": True})
    root.create_array("s", data=np.int32(5))
    if zarr_format in (2, 3):
        omnizarr.consolidate_metadata(store)


def contents(store):
    return {key: bytes(store.get(key)) for key in store.list()}


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_overwriting_a_group_leaves_what_is_none_of_it_and_nothing_else(store, zarr_format):
    if zarr_format not in (0, 1):
        old_hierarchy(store, zarr_format)
        add_foreign(store)
        omnizarr.create_group(store, zarr_format=3, overwrite=True)
    else:
        old_hierarchy(store, zarr_format)
        add_foreign(store)
        omnizarr.create_group(store, path="x", zarr_format=3, overwrite=True)
        omnizarr.create_group(store, path="g/y", zarr_format=3, overwrite=True)
    left = contents(store)
    assert {key: left.pop(key) for key in FOREIGN} == FOREIGN
    assert {key for key in left if not key.endswith("zarr.json")} == set()
    assert all(json.loads(value).get("attributes", {}) == {} for value in left.values())


@pytest.mark.parametrize("old", FORMATS[2:])
@pytest.mark.parametrize("new", FORMATS[2:])
def test_nothing_of_the_old_hierarchy_comes_back_as_data_of_the_new(old, new):
    store = MemoryStore()
    old_hierarchy(store, old)
    add_foreign(store)
    root = omnizarr.create_group(store, zarr_format=new, overwrite=True)
    assert dict(root.attrs) == {}
    assert list(root.array_keys()) == []
    for name, shape in (("x", (2, 3)), ("g/y", (2, 3)), ("s", ())):
        array = root.create_array(name, shape=shape, chunks=(1, 3)[: len(shape)], dtype="i4", fill_value=7)
        assert (array[...] == 7).all(), name
        assert dict(array.attrs) == {}
    assert {key: bytes(store.get(key)) for key in FOREIGN} == FOREIGN


def test_chunk_that_a_new_array_would_read_is_removed_wherever_it_comes_from():
    store = MemoryStore()
    omnizarr.create_group(store).create_group("g")
    store.set("c/0/0", b"x")
    store.set("README.txt", b"")
    array = omnizarr.create_array(store, shape=(2, 3), dtype="i4", fill_value=7, overwrite=True)
    assert (array[...] == 7).all()
    assert store.get("README.txt") == b""


def copied(group, name):
    group.create_group("source").create_array("new", data=NEW)
    group.copy("source", name, overwrite=True)


def ways(tmp_path):
    """Yield name and function of the ways in which a hierarchy replaces what is in a directory."""
    source = tmp_path / "source"
    omnizarr.create_group(source).create_array("new", data=NEW)
    cdl = tmp_path / "new.cdl"
    cdl.write_text("netcdf new { dimensions: n = 2; variables: int new(n); data: new = 1, 2; }")
    yield "open_group", lambda at: omnizarr.open_group(at, mode="w").create_array("new", data=NEW)
    yield "open_array", lambda at: omnizarr.open_array(at, mode="w", shape=(2,), dtype="i4")
    yield "create_array", lambda at: omnizarr.create_array(at, data=NEW, overwrite=True)
    yield "save", lambda at: omnizarr.save(at, NEW, overwrite=True)
    yield "save group", lambda at: omnizarr.save(at, new=NEW)
    yield "Dataset", lambda at: netcdf.Dataset(at, "w").close()
    yield "fromcdl", lambda at: netcdf.Dataset.fromcdl(cdl, at, clobber=True).close()
    yield "gen", lambda at: main(["gen", str(cdl), "-o", str(at), "--overwrite"])
    yield "convert", lambda at: omnizarr.convert(source, at, zarr_format=2, overwrite=True)
    yield "cli convert", lambda at: main(["convert", str(source), str(at), "--overwrite"])
    yield "copy", lambda at: copied(omnizarr.open_group(at.parent), at.name)
    yield "from_store", lambda at: omnizarr.Group.from_store(at, overwrite=True)


WAYS = ("open_group", "open_array", "create_array", "save", "save group", "Dataset", "fromcdl", "gen", "convert",
        "cli convert", "copy", "from_store")  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_files_of_others_stay_whichever_way_a_hierarchy_is_replaced(tmp_path, way, zarr_format):
    omnizarr.create_group(tmp_path / "above")
    place = tmp_path / "above" / "place"
    old_hierarchy(place, zarr_format)
    add_foreign(LocalStore(place))
    (place / ".git" / "refs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (place / "out").symlink_to(tmp_path / "elsewhere")
    dict(ways(tmp_path))[way](place)
    left = contents(LocalStore(place))
    assert {key: left.pop(key) for key in FOREIGN} == FOREIGN
    assert (place / ".git" / "refs").is_dir()
    assert (place / "out").is_symlink()
    node = omnizarr.open(place, mode="r")
    names = set() if isinstance(node, omnizarr.Array) else {path for path, _ in node.members(max_depth=None)}
    assert names <= {"new", "out"}  # a link that leads out of the store is shown
    assert not any("g/y" in key or key.startswith(("x/", "s/")) for key in left)
    assert not any(b"old" in value for value in left.values())


def test_links_are_not_followed(tmp_path):
    other = omnizarr.create_group(tmp_path / "store" / "other")
    other.create_array("x", data=NEW)
    place = tmp_path / "store" / "place"
    omnizarr.create_group(place)
    (place / "README.txt").write_bytes(b"")
    (place / "linked").symlink_to("../other")
    omnizarr.create_group(tmp_path / "store", path="place", overwrite=True)
    assert omnizarr.open_array(tmp_path / "store", path="other/x")[...].tolist() == NEW.tolist()
    assert (place / "README.txt").exists()
    assert not (place / "linked").exists()


def test_deleting_a_node_removes_all_that_is_there(store):
    root = omnizarr.create_group(store)
    root.create_array("a/x", data=NEW)
    store.set("a/README.txt", b"")
    del root["a"]
    assert [key for key in store.list() if key.startswith("a")] == []


class TestRefusals:
    CDL = "netcdf new { dimensions: n = 2; variables: int new(n); data: new = 1, 2; }"

    @pytest.mark.parametrize("given", [True, False])
    def test_cdl_replaces_no_dataset_unless_asked(self, tmp_path, given):
        cdl, target = tmp_path / "new.cdl", tmp_path / "new.zarr"
        cdl.write_text(self.CDL)
        omnizarr.create_group(target, attributes={"mine": 1})
        arguments = (cdl, target) if given else (cdl,)
        with pytest.raises(FileExistsError, match="clobber=True") as caught:
            netcdf.Dataset.fromcdl(*arguments)
        assert isinstance(caught.value, errors.NodeExistsError)
        assert omnizarr.open_group(target).attrs["mine"] == 1
        with netcdf.Dataset.fromcdl(*arguments, clobber=True) as made:
            assert made["new"][:].tolist() == [1, 2]

    def test_dataset_of_broken_cdl_leaves_nothing(self, tmp_path, monkeypatch):
        cdl = tmp_path / "new.cdl"
        cdl.write_text(self.CDL)
        monkeypatch.setattr("omnizarr.netcdf.copying.write", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            netcdf.Dataset.fromcdl(cdl, tmp_path / "new.zarr")
        assert list(LocalStore(tmp_path / "new.zarr").list()) == []

    @pytest.mark.parametrize("save", [omnizarr.save, omnizarr.save_array])
    def test_saving_an_array_does_not_replace_a_group_unless_asked(self, tmp_path, save):
        omnizarr.save(tmp_path, a=NEW, b=NEW)
        with pytest.raises(errors.ContainsGroupError, match="overwrite=True"):
            save(tmp_path, NEW)
        assert sorted(omnizarr.load(tmp_path)) == ["a", "b"]
        save(tmp_path, NEW, overwrite=True)
        assert omnizarr.load(tmp_path).tolist() == NEW.tolist()
        save(tmp_path, NEW + 1)
        assert omnizarr.load(tmp_path).tolist() == (NEW + 1).tolist()
        with pytest.raises(errors.ContainsArrayError):
            save(tmp_path, NEW, overwrite=False)

    def test_nor_a_group_without_a_document(self, tmp_path):
        omnizarr.create_array(tmp_path / "a", data=NEW, zarr_format=1)
        with pytest.raises(errors.ContainsGroupError):
            omnizarr.save(tmp_path, NEW)
        assert (tmp_path / "a" / "meta").exists()
