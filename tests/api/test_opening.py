"""`omnizarr.api.opening`."""

import gc
import os
import weakref
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.nodes import detection
from omnizarr.storage import StorePath
from omnizarr.stores import LocalStore, MemoryStore

FORMATS = (2, 3)
VALUES = np.arange(12).reshape(3, 4)


@pytest.fixture(params=FORMATS)
def store(request):
    """`/` holds `g/x`, an array."""
    store = MemoryStore()
    omnizarr.create_group(store, zarr_format=request.param).create_array("g/x", data=VALUES, chunks=(2, 2))
    return store


class TestOpen:
    def test_finds_existing_data(self, store):
        assert isinstance(omnizarr.open(store), omnizarr.Group)
        assert isinstance(omnizarr.open(store, path="g/x"), omnizarr.Array)
        assert omnizarr.open_group(store, path="g").name == "/g"
        np.testing.assert_array_equal(omnizarr.open_array(store, path="/g/x/")[...], VALUES)

    @pytest.mark.parametrize("opener", [omnizarr.open, omnizarr.open_array, omnizarr.open_group])
    @pytest.mark.parametrize("mode", [None, "r", "r+"])
    def test_never_creates(self, tmp_path, opener, mode):
        with pytest.raises(errors.NodeNotFoundError) as caught:
            opener(tmp_path / "nothing", mode=mode)
        assert not (tmp_path / "nothing").exists()
        assert isinstance(caught.value, FileNotFoundError)

    def test_misspelt_directory_says_which_comes_near(self, tmp_path):
        omnizarr.create_group(tmp_path / "ocean.zarr")
        with pytest.raises(errors.NodeNotFoundError, match=r"did you mean .*ocean\.zarr"):
            omnizarr.open(tmp_path / "oecan.zarr")

    def test_misspelt_path_says_which_comes_near(self, store):
        with pytest.raises(errors.ArrayNotFoundError, match="did you mean 'g/x'"):
            omnizarr.open_array(store, path="g/xx")

    def test_wrong_kind(self, store):
        with pytest.raises(errors.ContainsGroupError):
            omnizarr.open_array(store)
        with pytest.raises(errors.ContainsArrayError):
            omnizarr.open_group(store, path="g/x")

    def test_mode_r_does_not_write(self, store):
        array = omnizarr.open(store, path="g/x", mode="r")
        with pytest.raises(errors.ReadOnlyError):
            array[0] = 1
        with pytest.raises(errors.ReadOnlyError):
            omnizarr.open_group(store, mode="r").create_group("n")

    def test_read_only_store_opens_read_only(self, store):
        assert omnizarr.open(store.with_read_only()).read_only
        with pytest.raises(errors.ReadOnlyError):
            omnizarr.open(store.with_read_only(), mode="r+")

    def test_mode_a_opens_or_creates(self, store):
        assert omnizarr.open_group(store, mode="a", path="new").name == "/new"
        assert omnizarr.open(store, mode="a", path="g/x").shape == (3, 4)
        assert omnizarr.open_array(store, mode="a", path="g/x", shape=(9,), dtype="i1").shape == (3, 4)
        assert omnizarr.open_array(store, mode="a", path="g/y", shape=(9,), dtype="i1").shape == (9,)
        assert isinstance(omnizarr.open(store, mode="a", path="other"), omnizarr.Group)
        assert isinstance(omnizarr.open(store, mode="a", path="another", shape=2, dtype="i1"), omnizarr.Array)
        with pytest.raises(errors.ArrayNotFoundError):
            omnizarr.open_array(store, mode="a", path="nothing")

    def test_mode_w_replaces(self, store):
        assert omnizarr.open(store, mode="w", path="g/x", shape=2, dtype="i1").shape == (2,)
        assert omnizarr.open_group(store, mode="w", path="g").nmembers() == 0
        assert "g" in omnizarr.open(store)

    def test_mode_w_minus_refuses_existing_data(self, store):
        with pytest.raises(errors.ContainsGroupError):
            omnizarr.open_group(store, mode="w-", path="g")
        with pytest.raises(errors.ContainsArrayError):
            omnizarr.open_array(store, mode="w-", path="g/x", shape=2, dtype="i1")
        assert omnizarr.open_group(store, mode="w-", path="h").nmembers() == 0

    def test_unknown_mode(self, store):
        with pytest.raises(ValueError, match="mode"):
            omnizarr.open(store, mode="rw")

    def test_behaviour_is_per_open(self, store):
        omnizarr.create_array(store, name="sparse", shape=4, dtype="i1", chunks=2)
        for array in (
            omnizarr.open(store, path="sparse", missing="error"),
            omnizarr.open_array(store, path="sparse", missing="error"),
            omnizarr.open_group(store, missing="error")["sparse"],
            omnizarr.open(store, missing="error")["sparse"],
            omnizarr.open_array(store, path="sparse", config={"read_missing_chunks": False}),
        ):
            with pytest.raises(errors.ChunkNotFoundError):
                array[...]
        assert omnizarr.open_array(store, path="sparse", write_empty_chunks=True).config.write_empty_chunks

    def test_store_paths_and_groups_are_stores(self, store):
        group = omnizarr.open(store)
        assert omnizarr.open(StorePath(store, "g"), path="x").shape == (3, 4)
        assert omnizarr.open(group, path="g/x").shape == (3, 4)
        assert omnizarr.create_array(group["g"].store_path, name="z", shape=1, dtype="i1").path == "g/z"

    def test_keywords_of_zarr_python_that_have_no_meaning(self, store):
        omnizarr.open_group(store, chunk_store=None, cache_attrs=None)
        with pytest.warns(UserWarning, match="cache_attrs"):
            omnizarr.open_group(store, cache_attrs=True)
        with pytest.raises(TypeError):
            omnizarr.open_group(store, colour="red")
        with pytest.raises(errors.StoreError):
            omnizarr.open(store, storage_options={"anon": True})

    def test_open_like(self, store):
        array = omnizarr.open(store, path="g/x")
        with pytest.raises(errors.ArrayNotFoundError):
            omnizarr.open_like(array, MemoryStore())
        assert omnizarr.open_like(array, MemoryStore(), mode="a").chunks == (2, 2)


def change_all(value):
    """Change everything in nested JSON that can be changed."""
    if isinstance(value, dict):
        for member in list(value.values()):
            change_all(member)
        value["changed"] = True
    elif isinstance(value, list):
        for item in value:
            change_all(item)
        value.append("changed")


class TestRemembered:
    """What documents say is remembered from one opening to the next; this must not be visible."""

    @pytest.fixture(params=FORMATS)
    def root(self, request, tmp_path):
        """Two arrays with equal documents."""
        root = omnizarr.create_group(tmp_path / "root", zarr_format=request.param)
        for name in ("a", "b"):
            root.create_array(
                name,
                data=VALUES,
                chunks=(2, 2),
                attributes={"nested": {"list": [1, {"x": 2}]}, "list": [1, 2]},
                fill_value=7,
            )
        return omnizarr.open_group(tmp_path / "root")

    def test_document_changed_by_others_is_seen_by_the_next_opening(self, root):
        first = root["a"]
        omnizarr.open_array(root.store, path="a").attrs["list"] = [3, 4]
        assert (first.attrs["list"], root["a"].attrs["list"]) == ([1, 2], [3, 4])

    def test_document_of_the_same_size_and_time_is_seen(self, tmp_path, root):
        name = tmp_path / "root" / "a" / ("zarr.json" if root.zarr_format == 3 else ".zarray")
        assert root["a"].fill_value == 7
        before = name.stat()
        name.write_bytes(name.read_bytes().replace(b'"fill_value": 7', b'"fill_value": 8'))
        os.utime(name, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert name.stat().st_size == before.st_size
        assert (root["a"].fill_value, root["b"].fill_value) == (8, 7)

    def test_equal_arrays_have_attributes_of_their_own(self, root):
        a, b = root["a"], root["b"]
        a.attrs["mine"] = True
        a.attrs["nested"]["list"].append("changed")
        assert "mine" not in b.attrs
        assert b.attrs["nested"] == root["b"].attrs["nested"] == {"list": [1, {"x": 2}]}

    def test_changing_popped_attributes_changes_nothing_else(self, root):
        change_all(root["a"].attrs.pop("nested"))
        assert root["b"].attrs["nested"] == {"list": [1, {"x": 2}]}

    @pytest.mark.parametrize("take", [lambda attrs: attrs.pop("nested"), lambda attrs: attrs.popitem()[1]])
    def test_changing_popped_attributes_changes_nothing_that_is_changed_later(self, root, take):
        for name in "ab":
            root[name].attrs.put({"nested": {"list": [1, {"x": 2}]}})
        other = root["b"]
        change_all(take(root["a"].attrs))
        other.attrs["mine"] = 1
        assert other.attrs["nested"] == root["b"].attrs["nested"] == {"list": [1, {"x": 2}]}
        assert other.attrs.pop("nested") == {"list": [1, {"x": 2}]}

    @pytest.mark.parametrize(
        "parts",
        [
            lambda array: [array.documents()],
            lambda array: [array.attrs.asdict()],
            lambda array: [array.metadata.attributes, array.metadata.unknown, array.metadata.chunk_grid.configuration],
            lambda array: [array.metadata.data_type.configuration, array.metadata.chunk_key_encoding.configuration],
            lambda array: [codec.configuration for codec in array.metadata.codecs],
            lambda array: [codec.configuration for codec in (array.serializer, *array.filters, *array.compressors)],
            lambda array: [array.metadata.to_dict()],
        ],
        ids=["documents", "attrs", "metadata", "names", "codecs", "codec values", "to_dict"],
    )
    def test_changing_what_an_array_returns_changes_nothing_else(self, root, parts):
        before = root["b"].documents(), root["b"].attrs.asdict(), repr(root["b"].metadata)
        for part in parts(root["a"]):
            change_all(part)
        array = root["b"]
        assert (array.documents(), array.attrs.asdict(), repr(array.metadata)) == before
        np.testing.assert_array_equal(array[...], VALUES)

    def test_changing_what_a_group_returns_changes_nothing_else(self, root):
        root.attrs["list"] = [1]
        omnizarr.consolidate_metadata(root.store)
        group = omnizarr.open_group(root.store)
        for part in (
            group.metadata.attributes,
            group.metadata.consolidated,
            group.documents(),
            group.metadata.to_dict(),
        ):
            change_all(part)
        again = omnizarr.open_group(root.store)
        assert again.attrs["list"] == [1]
        assert sorted(again) == ["a", "b"]
        np.testing.assert_array_equal(again["a"][...], VALUES)

    def test_broken_document_is_broken_each_time_until_it_is_mended(self, tmp_path, root):
        name = tmp_path / "root" / "a" / ("zarr.json" if root.zarr_format == 3 else ".zarray")
        good = name.read_bytes()
        name.write_bytes(good.replace(b'"shape"', b'"shap"'))
        for _ in range(2):
            with pytest.raises(errors.MetadataError) as caught:
                root["a"]
            assert (caught.value.path, caught.value.key) == ("a", f"a/{name.name}")
        name.write_bytes(good)
        np.testing.assert_array_equal(root["a"][...], VALUES)

    def test_removed_document_is_missing(self, tmp_path, root):
        assert "a" in root
        (tmp_path / "root" / "a" / ("zarr.json" if root.zarr_format == 3 else ".zarray")).unlink()
        assert "a" not in root
        assert "b" in root

    def test_equal_bytes_under_another_name_are_another_document(self):
        # As .zgroup the bytes make a group; as zarr.json they are broken, as .zattrs attributes.
        data = b'{"zarr_format": 2}'
        assert omnizarr.open({".zgroup": data}).zarr_format == 2
        assert omnizarr.open({".zgroup": data, ".zattrs": data}).attrs == {"zarr_format": 2}
        with pytest.raises(errors.MetadataError, match="zarr_format"):
            omnizarr.open({"zarr.json": data})

    def test_large_documents_are_not_kept(self):
        store = MemoryStore()
        omnizarr.create_group(store, attributes={"text": "x" * 100_000})
        before = len(detection._remembered)
        assert len(omnizarr.open_group(store).attrs["text"]) == 100_000
        assert len(detection._remembered) == before

    def test_stores_are_not_kept(self, root):
        store = LocalStore(root.store.root)
        omnizarr.open_group(store)["a"][...]
        gone = weakref.ref(store)
        del store
        gc.collect()
        assert gone() is None

    def test_many_threads_open_the_same_and_others(self, root):
        for number in range(20):
            root.create_array(f"n{number}", shape=(number,), dtype="i2")

        def look(_):
            return [root[f"n{number}"].shape for number in range(20)], root["a"].shape

        with ThreadPoolExecutor(8) as pool:
            assert set(map(repr, pool.map(look, range(40)))) == {repr(([(n,) for n in range(20)], (3, 4)))}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nothing_is_written_beside_the_only_folder_of_an_archive(tmp_path, zarr_format):
    document = {2: ".zgroup", 3: "zarr.json"}[zarr_format]
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(f"top/{document}", f'{{"zarr_format": {zarr_format}, "node_type": "group"}}')
    makers = [
        lambda: omnizarr.open_group(tmp_path / "x.zip", mode="r+").create_array("a", data=[1, 2]),
        lambda: omnizarr.create_array(tmp_path / "x.zip", name="b/c", data=[3], zarr_format=zarr_format),
        lambda: omnizarr.Group.open(tmp_path / "x.zip"),
        lambda: omnizarr.create_group(tmp_path / "x.zip", path="d", zarr_format=zarr_format),
    ]
    for make in makers:
        make().store.close()
        assert all(name.startswith("top/") for name in zipfile.ZipFile(tmp_path / "x.zip").namelist())
    assert omnizarr.open(tmp_path / "x.zip")["b/c"][:].tolist() == [3]
    omnizarr.create_group(tmp_path / "x.zip", overwrite=True, zarr_format=zarr_format).store.close()
    assert zipfile.ZipFile(tmp_path / "x.zip").namelist() == [f"top/{document}"]
