"""`omnizarr.opening`."""

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.places import StorePath
from omnizarr.stores import MemoryStore

FORMATS = (2, 3)
VALUES = np.arange(12).reshape(3, 4)


@pytest.fixture(params=FORMATS)
def store(request):
    """`/` holds `g/x`, an array."""
    store = MemoryStore()
    omnizarr.create_group(store, zarr_format=request.param).create_array("g/x", data=VALUES, chunks=(2, 2))
    return store


class TestOpen:
    def test_finds_what_is_there(self, store):
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

    def test_mode_w_minus_refuses_what_is_there(self, store):
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
        omnizarr.open_group(store, synchronizer=None, cache_attrs=None)
        with pytest.warns(UserWarning, match="synchronizer"):
            omnizarr.open_group(store, synchronizer=object())
        with pytest.raises(TypeError):
            omnizarr.open_group(store, colour="red")
        with pytest.raises(errors.StoreError):
            omnizarr.open(store, storage_options={"anon": True})

    def test_open_like(self, store):
        array = omnizarr.open(store, path="g/x")
        with pytest.raises(errors.ArrayNotFoundError):
            omnizarr.open_like(array, MemoryStore())
        assert omnizarr.open_like(array, MemoryStore(), mode="a").chunks == (2, 2)
