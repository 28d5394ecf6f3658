"""`omnizarr.api`: opening, creating, saving, loading."""

import subprocess
import sys

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.hierarchy import StorePath
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


class TestCreate:
    def test_in_memory_by_default(self):
        assert omnizarr.zeros((2, 3))[...].tolist() == [[0.0] * 3] * 2
        assert omnizarr.ones(3, dtype="i2")[...].tolist() == [1, 1, 1]
        assert omnizarr.full(2, 5, dtype="u1")[...].tolist() == [5, 5]
        assert omnizarr.empty(2).shape == (2,)
        assert omnizarr.create(2).dtype == np.float64
        assert omnizarr.array([[1, 2]])[...].tolist() == [[1, 2]]

    @pytest.mark.parametrize(
        ("zarr_format", "options"), [(2, {}), (2, {"order": "F"}), (3, {}), (3, {"shards": (2, 4)})], ids=str
    )
    def test_like(self, zarr_format, options):
        source = omnizarr.create_array(
            {}, shape=(4, 4), chunks=(2, 2), dtype=">i2", fill_value=7, zarr_format=zarr_format, **options
        )
        for array, value in (
            (omnizarr.empty_like(source), 7),
            (omnizarr.zeros_like(source), 0),
            (omnizarr.ones_like(source), 1),
            (omnizarr.full_like(source, 9), 9),
        ):
            assert array.metadata.codecs == source.metadata.codecs
            assert (array.chunks, array.shards, array.dtype) == (source.chunks, source.shards, source.dtype)
            assert array.zarr_format == zarr_format
            assert (array[...] == value).all()
        assert omnizarr.zeros_like(np.ones(3, "f4")).dtype == np.float32
        assert omnizarr.zeros_like(source, shape=3, chunks=3, shards=None).shape == (3,)

    def test_data_says_shape_and_type(self):
        array = omnizarr.create_array({}, data=VALUES.astype("f4"))
        assert (array.shape, array.dtype) == ((3, 4), np.float32)
        assert omnizarr.create_array({}, data=[1, 2], dtype="u1").dtype == np.uint8
        with pytest.raises(errors.ShapeError):
            omnizarr.create_array({}, data=VALUES, shape=(4, 3))
        with pytest.raises(errors.MetadataError):
            omnizarr.create_array({}, dtype="i4")
        assert (omnizarr.create_array({}, data=VALUES, write_data=False)[...] == 0).all()

    def test_overwrite(self, store):
        with pytest.raises(errors.ContainsArrayError):
            omnizarr.create_array(store, name="g/x", shape=1, dtype="i1")
        assert omnizarr.create_array(store, name="g/x", shape=1, dtype="i1", overwrite=True).shape == (1,)
        with pytest.raises(errors.ContainsGroupError):
            omnizarr.create_group(store)
        assert omnizarr.create_group(store, overwrite=True).nmembers() == 0

    def test_format_is_that_of_the_group_above(self, store):
        zarr_format = omnizarr.open(store).zarr_format
        assert omnizarr.create_array(store, name="g/y", shape=1, dtype="i1").zarr_format == zarr_format
        assert omnizarr.create_group(store, path="g/z").zarr_format == zarr_format

    def test_default_format_is_a_setting(self):
        assert omnizarr.create_group({}).zarr_format == 3
        with omnizarr.config.set({"default_zarr_format": 2}):
            assert omnizarr.create_group({}).zarr_format == 2

    def test_group_opens_or_creates(self, store):
        assert omnizarr.group(store)["g/x"].shape == (3, 4)
        assert omnizarr.group().nmembers() == 0
        assert omnizarr.group(store, overwrite=True).nmembers() == 0

    def test_create_hierarchy(self, store):
        node = omnizarr.open(store, path="g/x").metadata
        assert [path for path, _ in omnizarr.create_hierarchy(store=store, nodes={"p/q": node, "p/r": node})] == [
            "p/q",
            "p/r",
        ]
        assert omnizarr.open(store, path="p/q").shape == (3, 4)

    @pytest.mark.parametrize("zarr_format", [None, *FORMATS])
    def test_from_array(self, store, zarr_format):
        source = omnizarr.open(store, path="g/x")
        source.attrs["units"] = "K"
        made = omnizarr.from_array({}, data=source, zarr_format=zarr_format)
        np.testing.assert_array_equal(made[...], VALUES)
        assert made.chunks == (2, 2)
        assert made.attrs["units"] == "K"
        assert made.zarr_format == (zarr_format or source.zarr_format)
        changed = omnizarr.from_array({}, data=source, chunks=(3, 4), compressors=None)
        assert (changed.chunks, changed.compressors) == ((3, 4), ())
        np.testing.assert_array_equal(changed[...], VALUES)

    def test_from_array_of_others(self):
        np.testing.assert_array_equal(omnizarr.from_array({}, data=VALUES)[...], VALUES)
        assert (omnizarr.from_array({}, data=VALUES, write_data=False)[...] == 0).all()

    def test_from_array_reads_block_by_block(self):
        class Big:
            shape, dtype, largest = (64, 1024, 1024), np.dtype("u1"), 0

            def __getitem__(self, region):
                shape = tuple(part.stop - part.start for part in region)
                Big.largest = max(Big.largest, int(np.prod(shape)))
                return np.broadcast_to(np.uint8(3), shape)

        made = omnizarr.from_array({}, data=Big(), chunks=(1, 1024, 1024), compressors="auto")
        assert Big.largest <= 64 * 2**20
        assert (made[::21, 0, 0] == 3).all()


class TestSaveAndLoad:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("name", ["a.zarr", "a.zip"])
    def test_one_array(self, tmp_path, zarr_format, name):
        omnizarr.save(tmp_path / name, VALUES, zarr_format=zarr_format)
        np.testing.assert_array_equal(omnizarr.load(tmp_path / name), VALUES)

    @pytest.mark.parametrize("name", ["a.zarr", "a.zip"])
    def test_several_arrays(self, tmp_path, name):
        omnizarr.save(tmp_path / name, VALUES, VALUES + 1, z=VALUES + 2)
        loaded = omnizarr.load(tmp_path / name)
        assert sorted(loaded) == ["arr_0", "arr_1", "z"]
        np.testing.assert_array_equal(loaded["z"], VALUES + 2)

    def test_saving_again_replaces(self, tmp_path):
        omnizarr.save_array(tmp_path, VALUES)
        omnizarr.save_array(tmp_path, VALUES + 1, chunks=(1, 1))
        np.testing.assert_array_equal(omnizarr.load(tmp_path), VALUES + 1)
        omnizarr.save_group(tmp_path, x=VALUES)
        assert sorted(omnizarr.load(tmp_path)) == ["x"]

    def test_saving_leaves_other_files_alone(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("ten years of work")
        omnizarr.save(tmp_path, VALUES)
        assert (tmp_path / "thesis.tex").exists()

    def test_nothing_to_save(self):
        with pytest.raises(ValueError, match="nothing"):
            omnizarr.save({})

    def test_nothing_to_load(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            omnizarr.load(tmp_path / "a")


class TestTheRest:
    def test_consolidate_metadata_wants_a_group(self, store):
        with pytest.raises(errors.ContainsArrayError):
            omnizarr.consolidate_metadata(store, path="g/x")
        with pytest.raises(errors.NodeNotFoundError):
            omnizarr.consolidate_metadata(store, path="z")

    def test_tree(self, store):
        assert "x (3, 4) int64" in repr(omnizarr.tree(omnizarr.open(store)))

    def test_print_debug_info(self, capsys):
        omnizarr.print_debug_info()
        assert "omnizarr: 0" in capsys.readouterr().out

    def test_import_loads_no_codec_library(self):
        code = "import sys, omnizarr; print(*{name.partition('.')[0] for name in sys.modules})"
        loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        assert not {"numcodecs", "google_crc32c", "zfpy", "pcodec", "rich", "click"} & set(loaded)

    def test_error_of_a_local_store_names_it(self, tmp_path):
        with pytest.raises(errors.NodeNotFoundError) as caught:
            omnizarr.open(LocalStore(tmp_path), path="a/b")
        assert str(tmp_path) in str(caught.value)
        assert caught.value.path == "a/b"


def test_one_small_read_enters_few_functions(tmp_path):
    """At most 8 of ours on the way from `array[...]` to the file, and 20 entered in all."""
    array = omnizarr.create_array(tmp_path, data=np.arange(10000).reshape(100, 100), chunks=(10, 10))
    entered, depth, seen = 0, 0, []

    def watch(frame, event, _):
        nonlocal entered, depth
        if "omnizarr" in frame.f_code.co_filename:
            entered += event == "call"
            depth += {"call": 1, "return": -1}.get(event, 0)

    def on_open(event, arguments):
        if event == "open" and str(tmp_path) in str(arguments[0]):
            seen.append((depth, entered))

    array[:10, :10]
    sys.addaudithook(on_open)
    sys.setprofile(watch)
    try:
        array[:10, :10]
    finally:
        sys.setprofile(None)
    frames, functions = seen[0]
    assert frames <= 8
    assert functions <= 20
