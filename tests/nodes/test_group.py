"""`omnizarr.group` and `omnizarr.tree`."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import omnizarr
from omnizarr import UnreadableNode, errors
from omnizarr.stores import MemoryStore, verbs
from tests.fakes import FaultyStore

FORMATS = (2, 3)


@pytest.fixture(params=FORMATS)
def root(request):
    """`/` holds `a` (group with array `x`), `b` (array), `c` (empty group)."""
    root = omnizarr.create_group(MemoryStore(), zarr_format=request.param)
    root.create_array("a/x", data=np.arange(4))
    root.create_array("b", shape=(2, 3), dtype="f4", chunks=(1, 3))
    root.create_group("c", attributes={"n": 1})
    return root


@pytest.fixture(params=[False, True], ids=["documents", "consolidated"])
def any_root(request, root):
    return omnizarr.consolidate_metadata(root.store) if request.param else root


class TestMembers:
    def test_by_path(self, any_root):
        assert any_root["a/x"][...].tolist() == [0, 1, 2, 3]
        assert any_root["a"]["x"] == any_root["/a//x/"]
        assert any_root["c"].attrs["n"] == 1
        assert any_root[""] is any_root

    @pytest.mark.parametrize("path", ["z", "a/z", "b/z", "a/x/y"])
    def test_nothing_there_is_a_key_error(self, any_root, path):
        with pytest.raises(errors.NodeNotFoundError):
            any_root[path]
        assert path not in any_root
        assert any_root.get(path) is None
        assert any_root.get(path, 7) == 7

    def test_keys_values_items(self, any_root):
        assert list(any_root) == list(any_root.keys()) == ["a", "b", "c"]
        assert [name for name, _ in any_root.items()] == ["a", "b", "c"]
        assert [node.basename for node in any_root.values()] == ["a", "b", "c"]
        assert len(any_root) == any_root.nmembers() == 3
        assert any_root.nmembers(max_depth=None) == 4
        with pytest.raises(ValueError, match="max_depth must be None or an integer from 0, not -1"):
            any_root.members(max_depth=-1)
        assert "a/x" in any_root
        assert 5 not in any_root
        assert any_root["c"]

    def test_arrays_and_groups(self, any_root):
        assert list(any_root.array_keys()) == ["b"]
        assert list(any_root.group_keys()) == ["a", "c"]
        assert [array.name for array in any_root.array_values()] == ["/b"]
        assert [group.name for group in any_root.group_values()] == ["/a", "/c"]
        assert dict(any_root.arrays())["b"].shape == (2, 3)
        assert dict(any_root.groups())["a"].path == "a"

    def test_members_at_all_depths(self, any_root):
        assert [path for path, _ in any_root.members(max_depth=None)] == ["a", "a/x", "b", "c"]
        assert [path for path, _ in any_root.members()] == ["a", "b", "c"]
        assert [path for path, _ in any_root["a"].members()] == ["x"]

    def test_typed_getters(self, any_root):
        assert any_root.get_array("b").shape == (2, 3)
        assert any_root.get_group("a").name == "/a"
        with pytest.raises(errors.ContainsGroupError):
            any_root.get_array("a")
        with pytest.raises(errors.ContainsArrayError):
            any_root.get_group("b")
        with pytest.raises(errors.ArrayNotFoundError):
            any_root.get_array("z")
        with pytest.raises(errors.GroupNotFoundError):
            any_root.get_group("z")

    def test_visit(self, any_root):
        seen = []
        assert any_root.visit(seen.append) is None
        assert seen == ["a", "a/x", "b", "c"]
        assert any_root.visititems(lambda path, node: node if path == "b" else None).shape == (2, 3)

    def test_unreadable_node_is_listed_beside_its_siblings(self, root):
        key = "b/.zarray" if root.zarr_format == 2 else "b/zarr.json"
        root.store.set(key, b'{"zarr_format": 3, "node_type": "array"}' if root.zarr_format == 3 else b"{}")
        nodes = dict(root.members(max_depth=None))
        assert list(nodes) == ["a", "a/x", "b", "c"]
        assert isinstance(nodes["b"], UnreadableNode)
        assert isinstance(nodes["b"].error, errors.MetadataError)
        assert nodes["b"].name == "/b"
        assert "/b" in repr(nodes["b"])
        assert list(root.array_keys()) == []
        assert "b unreadable" in repr(root.tree())
        assert "b" in root
        with pytest.raises(errors.MetadataError):
            root["b"]

    def test_array_with_an_unknown_codec_is_listed(self, root):
        if root.zarr_format == 3:
            document = root["b"].documents()["zarr.json"]
            document = {**document, "codecs": ["bytes", "acme.squeeze"]}
            root.store.set("b/zarr.json", omnizarr.formats.documents.render(document))
        else:
            document = {**root["b"].documents()[".zarray"], "compressor": {"id": "acme"}}
            root.store.set("b/.zarray", omnizarr.formats.documents.render(document))
        assert dict(root.arrays())["b"].shape == (2, 3)
        assert "b (2, 3) float32" in repr(root.tree())
        with pytest.raises(errors.UnknownCodecError):
            root["b"][0]

    def test_members_of_another_format_are_found(self, root):
        other = 5 - root.zarr_format
        omnizarr.create_array(root.store, name="mixed", shape=2, dtype="i1", zarr_format=other)
        assert root["mixed"].zarr_format == other
        assert "mixed" in list(root)

    @pytest.mark.slow
    def test_deep_hierarchy_needs_no_stack(self):
        root = omnizarr.create_group({})
        path = "/".join(["d"] * 300)
        root.store.set(f"{path}/zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
        assert root.nmembers(max_depth=None) == 300
        assert len(repr(root.tree()).splitlines()) == 301


class TestMaking:
    def test_children_have_the_format_of_the_group(self, root):
        assert root.create_group("new").zarr_format == root.zarr_format
        assert root.create_array("new/array", shape=2, dtype="i1").zarr_format == root.zarr_format

    def test_set_item(self, any_root):
        any_root["new"] = [1.5, 2]
        assert any_root["new"][...].tolist() == [1.5, 2.0]
        any_root["new"] = np.ones(3)
        assert any_root["new"].shape == (3,)
        with pytest.raises(errors.ContainsGroupError):
            any_root["a"] = [1]

    def test_delete_item(self, any_root):
        del any_root["a"]
        assert list(any_root) == ["b", "c"]
        assert not any(key.startswith("a/") for key in any_root.store.list())
        with pytest.raises(KeyError):
            del any_root["a"]

    def test_require_group(self, any_root):
        assert any_root.require_group("a")["x"].shape == (4,)
        assert any_root.require_group("new/deep").name == "/new/deep"
        assert [group.basename for group in any_root.require_groups("p", "q")] == ["p", "q"]
        with pytest.raises(errors.ContainsArrayError):
            any_root.require_group("b")
        assert any_root.require_group("b", overwrite=True).nmembers() == 0

    @pytest.mark.parametrize("zarr_format", [0, 1])
    def test_require_group_returns_a_directory_of_arrays_in_formats_without_groups(self, zarr_format):
        values = {}
        omnizarr.create_array(values, name="a/x", data=np.arange(4), zarr_format=zarr_format)
        keys = set(values)
        assert list(omnizarr.open_group(values).require_group("a")) == ["x"]
        assert set(values) == keys

    def test_require_group_in_a_race(self, root):
        with ThreadPoolExecutor(8) as pool:
            groups = list(pool.map(lambda _: root.require_group("r/s"), range(16)))
        assert {group.name for group in groups} == {"/r/s"}

    def test_require_array(self, any_root):
        assert any_root.require_array("b", shape=(2, 3), dtype="f4") == any_root["b"]
        assert any_root.require_array("b", shape=(2, 3), dtype="f8") == any_root["b"]
        assert any_root.require_dataset("new", shape=3, dtype="i2").dtype == np.int16
        for wrong in (
            {"shape": (3, 2)},
            {"shape": (2, 3), "dtype": "i2"},
            {"shape": (2, 3), "dtype": "f8", "exact": True},
        ):
            with pytest.raises(TypeError):
                any_root.require_array("b", **wrong)
        with pytest.raises(errors.ContainsGroupError):
            any_root.require_array("a", shape=1, dtype="i1")

    def test_require_array_in_a_race(self, root):
        with ThreadPoolExecutor(8) as pool:
            arrays = list(pool.map(lambda _: root.require_array("r", shape=4, dtype="i1"), range(16)))
        assert {array.shape for array in arrays} == {(4,)}

    def test_old_names(self, root):
        assert root.create_dataset("d", shape=2, dtype="i1").shape == (2,)
        assert root.create("e", shape=2, dtype="i1").shape == (2,)

    def test_filled_arrays(self, root):
        assert root.zeros(name="0", shape=2)[...].tolist() == [0.0, 0.0]
        assert root.ones(name="1", shape=2, dtype="i2")[...].tolist() == [1, 1]
        assert root.full(name="f", shape=2, fill_value=7, dtype="u1")[...].tolist() == [7, 7]
        assert root.empty(name="e", shape=2).shape == (2,)
        like = root["b"]
        for array, value in (
            (root.zeros_like(name="0l", data=like), 0),
            (root.ones_like(name="1l", data=like), 1),
            (root.full_like(name="fl", data=like, fill_value=3), 3),
            (root.empty_like(name="el", data=like), 0),
        ):
            assert (array.shape, array.dtype, array.chunks) == ((2, 3), np.float32, (1, 3))
            assert (array[...] == value).all()
        assert root.zeros_like(name="n", data=np.ones((2, 2), "i2")).dtype == np.int16

    def test_create_hierarchy(self, any_root):
        nodes = {"h/g": any_root["c"].metadata, "h/x": any_root["b"].metadata}
        made = dict(any_root.create_hierarchy(nodes))
        assert made["h/x"].shape == (2, 3)
        assert any_root["h/g"].attrs["n"] == 1

    def test_options_reach_the_arrays(self, root):
        strict = omnizarr.open_group(root.store, missing="error")
        with pytest.raises(errors.ChunkNotFoundError):
            strict["b"][...]


class TestMoving:
    def test_move(self, any_root):
        any_root.move("a", "d/e")
        assert any_root["d/e/x"][...].tolist() == [0, 1, 2, 3]
        assert "a" not in any_root
        any_root.rename("d", "f")
        assert [path for path, _ in any_root.members(None)] == ["b", "c", "f", "f/e", "f/e/x"]

    def test_move_in_a_directory_renames_it(self, tmp_path):
        root = omnizarr.create_group(tmp_path / "x.zarr")
        root.create_array("a/b", data=np.arange(4), chunks=(2,))
        file = tmp_path / "x.zarr/a/b/c/0"
        inode = file.stat().st_ino
        root.move("a", "d/e")
        assert (tmp_path / "x.zarr/d/e/b/c/0").stat().st_ino == inode
        assert not (tmp_path / "x.zarr/a").exists()
        assert sorted(path for path, _ in root.members(None)) == ["d", "d/e", "d/e/b"]
        root.create_array("a/b", data=np.arange(4) + 9, chunks=(2,))
        assert (root["a/b"][...].tolist(), root["d/e/b"][...].tolist()) == ([9, 10, 11, 12], [0, 1, 2, 3])

    def test_move_beside_files_of_others_leaves_them(self, tmp_path):
        root = omnizarr.create_group(tmp_path / "x.zarr")
        root["a"] = np.arange(4)
        (tmp_path / "x.zarr/b").mkdir()
        (tmp_path / "x.zarr/b/notes.txt").write_text("mine")
        root.move("a", "b")
        assert root["b"][...].tolist() == [0, 1, 2, 3]
        assert (tmp_path / "x.zarr/b/notes.txt").read_text() == "mine"
        assert not (tmp_path / "x.zarr/a").exists()

    def test_chunks_are_copied_by_the_object_store_itself(self, monkeypatch):
        obstore = pytest.importorskip("obstore")
        root = omnizarr.create_group(obstore.store.MemoryStore())
        root.create_array("a", data=np.arange(6), chunks=(2,))
        asked = []
        for verb in ("get", "put", "copy"):
            real = getattr(obstore, verb)
            monkeypatch.setattr(
                obstore,
                verb,
                lambda store, path, *a, verb=verb, real=real, **b: (
                    asked.append((verb, path)) or real(store, path, *a, **b)
                ),
            )
        root.move("a", "b")
        assert sorted(path for verb, path in asked if verb == "copy") == ["a/c/0", "a/c/1", "a/c/2"]
        assert not [path for verb, path in asked if verb != "copy" and "/c/" in path]
        assert root["b"][...].tolist() == list(range(6))

    def test_copy(self, any_root):
        any_root.copy("a", "d")
        assert any_root["d/x"][...].tolist() == any_root["a/x"][...].tolist()

    def test_existing_data_is_not_replaced(self, any_root):
        with pytest.raises(errors.ContainsArrayError):
            any_root.move("a", "b")
        assert "a/x" in any_root


class TestConsolidated:
    @pytest.fixture
    def consolidated(self, root):
        return omnizarr.consolidate_metadata(root.store)

    def check(self, group):
        """Compare the copies with the documents."""
        return omnizarr.open_group(group.store, check_consolidated=True)

    def test_is_used_if_there(self, consolidated):
        assert omnizarr.open(consolidated.store).is_consolidated
        assert not omnizarr.open(consolidated.store, use_consolidated=False).is_consolidated
        assert omnizarr.open_consolidated(consolidated.store).is_consolidated

    def test_members_need_no_further_reading(self, consolidated):
        class Silent(MemoryStore):
            def get(self, key, span=None):
                assert "/" not in key, key
                return super().get(key, span)

            def list(self):
                raise AssertionError

        store = Silent(consolidated.store._values)
        group = omnizarr.open_group(store)
        assert [path for path, _ in group.members(None)] == ["a", "a/x", "b", "c"]
        assert group["a/x"].shape == (4,)

    def test_must_be_there_if_asked_for(self, root):
        with pytest.raises(errors.ConsolidatedMetadataError):
            omnizarr.open_consolidated(root.store)

    def test_changes_through_the_group_keep_it_current(self, consolidated):
        consolidated.create_array("new/deep/array", data=[1, 2])
        consolidated["c"].attrs["m"] = 2
        consolidated.attrs["title"] = "t"
        consolidated["b"].resize(4, 3)
        consolidated["b"].append(np.ones((1, 3)))
        del consolidated["a"]
        consolidated.move("c", "moved")
        consolidated.require_group("more")
        fresh = self.check(consolidated)
        assert [path for path, _ in fresh.members(None)] == ["b", "more", "moved", "new", "new/deep", "new/deep/array"]
        assert fresh["b"].shape == (5, 3)
        assert fresh["moved"].attrs == {"n": 1, "m": 2}
        assert fresh.attrs["title"] == "t"

    @pytest.mark.parametrize("change", ["attribute", "new", "deleted"])
    def test_stale_copies_are_found_out(self, consolidated, change):
        # made by a program that does not know consolidated metadata
        store, is_v2 = consolidated.store, consolidated.zarr_format == 2
        group = {"zarr_format": 2} if is_v2 else {"zarr_format": 3, "node_type": "group"}
        if change == "attribute":
            document = {"late": 1} if is_v2 else {**group, "attributes": {"late": 1}}
            store.set("a/.zattrs" if is_v2 else "a/zarr.json", json.dumps(document).encode())
        elif change == "new":
            store.set("a/late/.zgroup" if is_v2 else "a/late/zarr.json", json.dumps(group).encode())
        else:
            verbs.delete_prefix(store, "a/x/")
        with pytest.raises(
            errors.ConsolidatedMetadataError, match={"attribute": "'a'", "new": "'a/late'"}.get(change, "'a/x'")
        ):
            self.check(consolidated)
        assert omnizarr.consolidate_metadata(consolidated.store)
        self.check(consolidated)

    def test_nan_is_not_stale(self, root):
        root["a"].attrs["n"] = 1
        if root.zarr_format == 2:
            root.store.set("a/.zattrs", b'{"n": NaN}')
        omnizarr.consolidate_metadata(root.store)
        self.check(root)

    def test_broken_copies_are_left_out_of_account_with_a_warning(self, consolidated):
        if consolidated.zarr_format == 2:
            consolidated.store.set(".zmetadata", b"{")
        else:
            document = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"kind": "other"}}
            consolidated.store.set("zarr.json", omnizarr.formats.documents.render(document))
        with pytest.warns(UserWarning, match="consolidated metadata is broken"):
            assert list(omnizarr.open_group(consolidated.store)) == ["a", "b", "c"]
        with pytest.raises(errors.ConsolidatedMetadataError):
            omnizarr.open_group(consolidated.store, use_consolidated=True)
        assert list(omnizarr.open_group(consolidated.store, use_consolidated=False)) == ["a", "b", "c"]

    def test_broken_copy_of_a_node_does_not_hide_the_others(self, consolidated):
        key = ".zmetadata" if consolidated.zarr_format == 2 else "zarr.json"
        text = bytes(consolidated.store.get(key)).replace(b'"float32"', b"12").replace(b'"<f4"', b"12")
        consolidated.store.set(key, text)
        nodes = dict(omnizarr.open_group(consolidated.store).members(None))
        assert list(nodes) == ["a", "a/x", "b", "c"]
        assert isinstance(nodes["b"], UnreadableNode)

    def test_other_name_of_the_document(self, root):
        if root.zarr_format == 3:
            return
        omnizarr.consolidate_metadata(root.store)
        root.store.set("meta/.zmeta", root.store.get(".zmetadata"))
        root.store.delete(".zmetadata")
        assert omnizarr.open_group(root.store, use_consolidated="meta/.zmeta").is_consolidated

    def test_part_of_a_hierarchy(self, root):
        part = omnizarr.consolidate_metadata(root.store, path="a")
        assert part.is_consolidated
        assert list(part) == ["x"]
        part["x"].attrs["n"] = 1
        assert omnizarr.open_group(root.store, path="a", check_consolidated=True)["x"].attrs["n"] == 1

    def test_pickle(self, consolidated):
        again = pickle.loads(pickle.dumps(consolidated))
        assert again.is_consolidated
        assert list(again) == ["a", "b", "c"]


class TestWhatItIs:
    def test_properties(self, root):
        group = root["a"]
        assert (group.name, group.path, group.basename) == ("/a", "a", "a")
        assert (root.name, root.basename) == ("/", "")
        assert not group.read_only
        assert repr(group) == "<Group /a memory>"
        assert group == root["a"]
        assert group != root["c"]
        assert hash(group) == hash(root["a"])

    def test_info(self, root):
        assert "Group" in repr(root.info)
        card = root.info_complete()
        assert (card.members, card.arrays, card.groups) == (4, 2, 2)

    def test_context_manager_closes_the_store(self, tmp_path):
        with omnizarr.create_group(tmp_path / "a.zip") as group:
            group["x"] = [1, 2]
        assert omnizarr.load(tmp_path / "a.zip")["x"].tolist() == [1, 2]

    def test_class_methods(self, tmp_path):
        assert omnizarr.Group.from_store(tmp_path, attributes={"a": 1}).attrs["a"] == 1
        assert omnizarr.Group.open(tmp_path).attrs["a"] == 1
        with pytest.raises(errors.GroupNotFoundError):
            omnizarr.Group.open(tmp_path / "nowhere")

    def test_tree(self, root):
        assert repr(root.tree()).splitlines() == [
            "/",
            "├── a",
            "│   └── x (4,) int64",
            "├── b (2, 3) float32",
            "└── c",
        ]
        assert repr(root.tree(level=0)).splitlines() == ["/", "├── a", "├── b (2, 3) float32", "└── c"]
        assert "only the first 2 nodes" in repr(root.tree(max_nodes=2))
        assert root.tree()._repr_html_().startswith("<pre")


class TestReplacedByItself:
    """An array made of what it replaces has its values."""

    @pytest.mark.parametrize("made", [lambda array: array, lambda array: array.astype("f4")], ids=["array", "view"])
    def test_array_at_its_own_place(self, made):
        root = omnizarr.create_group({})
        root["x"] = [1, 2, 3]
        root["x"] = made(root["x"])
        np.testing.assert_array_equal(root["x"][...], [1, 2, 3])

    def test_array_from_below(self):
        root = omnizarr.create_group({})
        root["g/x"] = [1, 2, 3]
        np.testing.assert_array_equal(root.create_array("g", data=root["g/x"], overwrite=True)[...], [1, 2, 3])


@pytest.mark.parametrize("path", ["", "/"])
def test_an_empty_path_neither_deletes_nor_replaces_the_group_itself(path):
    root = omnizarr.create_group({})
    root["x"] = [1]
    before = dict(root.store._values)
    for destroy in (
        lambda: root.__delitem__(path),
        lambda: root.create_group(path, overwrite=True),
        lambda: root.require_group(path, overwrite=True),
        lambda: root.create_array(path, shape=1, dtype="i4", overwrite=True),
        lambda: root.zeros_like(name=path, data=[1], overwrite=True),
    ):
        with pytest.raises(errors.NodeNameError):
            destroy()
    assert root.store._values == before


class TestFailingStore:
    """What a store fails to say is not taken for what does not exist."""

    def test_consolidating_fails(self):
        store = FaultyStore(MemoryStore())
        omnizarr.create_group(store).create_array("g/x", data=[1])
        store.reset()
        omnizarr.consolidate_metadata(store)
        for nth in range(1, store.requests["get"] + 1):
            store.reset()
            store.fail("get", nth)
            with suppress(errors.StoreError):
                omnizarr.consolidate_metadata(store)
            store.reset()
            assert list(omnizarr.open_group(store)["g"]) == ["x"]

    def test_no_array_of_another_format_is_made(self):
        store = FaultyStore(MemoryStore())
        omnizarr.create_group(store, zarr_format=2)
        store.fail("get")
        with pytest.raises(errors.StoreError):
            omnizarr.create_array(store, name="x", data=[1])


def test_replacing_an_array_lets_no_chunk_of_one_that_has_lost_its_documents_come_back():
    store = MemoryStore({"x/c/0": b"\1\2\3", "x/notes.txt": b"mine"})
    array = omnizarr.create_group(store).create_array(
        "x", shape=3, chunks=3, dtype="u1", compressors=None, overwrite=True
    )
    np.testing.assert_array_equal(array[...], [0, 0, 0])
    assert store.get("x/notes.txt") == b"mine"
