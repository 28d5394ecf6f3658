"""`omnizarr.api.creating`: creating."""

import subprocess
import sys

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.stores import LocalStore, MemoryStore
from omnizarr.stores.local import folders

FORMATS = (2, 3)
VALUES = np.arange(12).reshape(3, 4)


@pytest.fixture(params=FORMATS)
def store(request):
    """`/` holds `g/x`, an array."""
    store = MemoryStore()
    omnizarr.create_group(store, zarr_format=request.param).create_array("g/x", data=VALUES, chunks=(2, 2))
    return store


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
        nodes = {"p/q": node, "p/r": node}
        # zarr-python yields the groups above that were missing, too, in another order.
        assert [path for path, _ in omnizarr.create_hierarchy(store=store, nodes=nodes)] == ["p", "p/q", "p/r"]
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


class TestTheRest:
    def test_consolidate_metadata_wants_a_group(self, store):
        with pytest.raises(errors.ContainsArrayError):
            omnizarr.consolidate_metadata(store, path="g/x")
        with pytest.raises(errors.NodeNotFoundError):
            omnizarr.consolidate_metadata(store, path="z")

    def test_tree(self, store):
        assert "x (3, 4) int64" in repr(omnizarr.tree(omnizarr.open(store)))

    def test_print_debug_info(self, capsys):
        with omnizarr.config.set({"engine": "reference"}):
            omnizarr.print_debug_info()
        lines = capsys.readouterr().out.splitlines()
        assert "engine: reference" in lines
        assert any(line.startswith("omnizarr: 0") for line in lines)

    def test_import_loads_no_codec_library(self):
        code = "import sys, omnizarr; print(*{name.partition('.')[0] for name in sys.modules})"
        loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        assert not {"numcodecs", "google_crc32c", "zfpy", "pcodec", "rich", "click"} & set(loaded)

    def test_error_of_a_local_store_names_it(self, tmp_path):
        with pytest.raises(errors.NodeNotFoundError) as caught:
            omnizarr.open(LocalStore(tmp_path), path="a/b")
        assert str(tmp_path) in str(caught.value)
        assert caught.value.path == "a/b"


def test_one_small_read_enters_few_functions(tmp_path, monkeypatch):
    """At most 9 of ours on the way from `array[...]` to the file, and 20 entered in all."""
    monkeypatch.setattr(folders, "native", lambda: None)
    omnizarr.create_array(tmp_path, data=np.arange(10000).reshape(100, 100), chunks=(10, 10))
    with omnizarr.config.set({"engine": "reference"}):  # the other opens files where no hook sees it
        array = omnizarr.open_array(tmp_path)
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
    assert frames <= 9
    assert functions <= 20


@pytest.mark.parametrize("name", ["cache_attrs", "cache_metadata", "chunk_store", "meta_array"])
def test_keywords_that_have_lost_their_effect_warn(name):
    for create in (omnizarr.create, omnizarr.zeros):
        with pytest.warns(UserWarning, match=f"{name} is without effect"):
            assert create((3,), **{name: {}}).shape == (3,)


@pytest.mark.parametrize(
    "options",
    [{"chunks": (2,), "chunk_shape": (3,)}, {"compressor": None, "compressors": None}],
)
def test_two_names_of_one_keyword_are_refused(options):
    store = {}
    with pytest.raises(ValueError, match="Only one of"):
        omnizarr.create((6,), store=store, **options)
    assert not store


class Tensor:
    """An array like those of torch: NumPy does not know its data type."""

    def __init__(self, values, *, on_device=False):
        self.values, self.on_device = values, on_device
        self.shape, self.dtype = values.shape, "torch.float32"

    def __array__(self, dtype=None, copy=None):
        if self.on_device:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return np.asarray(self.values, dtype)

    def __getitem__(self, selection):
        return Tensor(self.values[selection], on_device=self.on_device)

    def __dlpack__(self, **options):
        if self.on_device and options.get("dl_device") is None:
            raise BufferError("not on the CPU")
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OnlyDLPack:
    """An array that has no other protocol."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Cupy(Tensor):
    """An array with a data type of NumPy, on a device."""

    def __init__(self, values):
        super().__init__(values, on_device=True)
        self.dtype = values.dtype

    def __getitem__(self, selection):
        return Cupy(self.values[selection])


FOREIGN = {
    "tensor": Tensor,
    "tensor on a device": lambda values: Tensor(values, on_device=True),
    "dlpack": OnlyDLPack,
    "cupy": Cupy,
    "buffer": memoryview,
    "list": np.ndarray.tolist,
}


def _set_in_group(data):
    group = omnizarr.create_group({})
    group["a"] = data
    return group["a"]


def _assigned(data):
    array = omnizarr.create_array({}, shape=(2, 3), dtype="float32")
    array[...] = data
    return array


def _saved(data):
    values = {}
    omnizarr.save_array(values, data)
    return omnizarr.open_array(values)


STORING = {
    "create_array": lambda data: omnizarr.create_array({}, data=data, chunks=(1, 2)),
    "from_array": lambda data: omnizarr.from_array({}, data=data),
    "array": omnizarr.array,
    "group": _set_in_group,
    "assignment": _assigned,
    "save_array": _saved,
}  # fmt: skip


@pytest.mark.parametrize("way", STORING)
@pytest.mark.parametrize("kind", FOREIGN)
def test_arrays_of_other_libraries_are_stored(kind, way):
    values = np.arange(6, dtype="float32").reshape(2, 3)
    found = STORING[way](FOREIGN[kind](values))
    np.testing.assert_array_equal(found[...], values)
    assert found.dtype == (np.float64 if kind == "list" and way != "assignment" else np.float32)
