"""Nodes handed over between omnizarr and zarr-python, on one store."""

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import MissingDependencyError, ReadOnlyError, StoreError
from omnizarr.storage import LocalStore, MemoryStore, PrefixStore, ZipStore
from omnizarr.stores import verbs

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest  # noqa: E402
from zarr.core.buffer import default_buffer_prototype  # noqa: E402
from zarr.core.sync import sync  # noqa: E402

from omnizarr.interop.zarr_python import (  # noqa: E402
    OmnizarrStore,
    ZarrPythonStore,
    from_zarr_python,
    to_zarr_python,
)

# zarr-python warns of consolidated metadata in Zarr v3, and of names written twice to an archive.
pytestmark = pytest.mark.filterwarnings("ignore")

VALUES = np.arange(63, dtype="f4").reshape(7, 9)
FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])


@pytest.fixture(params=["memory", "local", "prefix", "zip"])
def ours(request, tmp_path):
    stores = {
        "memory": MemoryStore,
        "local": lambda: LocalStore(tmp_path / "x.zarr"),
        "prefix": lambda: PrefixStore(MemoryStore(), "some/where"),
        "zip": lambda: ZipStore(tmp_path / "x.zip", mode="w"),
    }
    with stores[request.param]() as store:
        yield store


@pytest.fixture(params=["memory", "local", "zip"])
def theirs(request, tmp_path):
    stores = {
        "memory": zarr.storage.MemoryStore,
        "local": lambda: zarr.storage.LocalStore(tmp_path / "x.zarr"),
        "zip": lambda: zarr.storage.ZipStore(tmp_path / "x.zip", mode="w"),
    }
    store = stores[request.param]()
    sync(store._open())
    with store:
        yield store


def fill(group):
    """Write a hierarchy; both libraries understand this."""
    group.attrs["title"] = "Größe"
    whole = group.create_array("a/whole", shape=VALUES.shape, chunks=(3, 4), dtype=VALUES.dtype)
    whole.attrs["units"] = "K"
    whole[...] = VALUES
    part = group.create_array("part", shape=VALUES.shape, chunks=(3, 4), dtype=VALUES.dtype, fill_value=-1)
    part[2:4, 3:] = VALUES[2:4, 3:]
    group.create_group("empty")


def check(group):
    """Read it again; both libraries understand this too."""
    assert dict(group.attrs) == {"title": "Größe"}
    assert sorted(name for name, _ in group.members(max_depth=None)) == ["a", "a/whole", "empty", "part"]
    assert dict(group["a/whole"].attrs) == {"units": "K"}
    np.testing.assert_array_equal(group["a/whole"][...], VALUES)
    expected = np.full_like(VALUES, -1)
    expected[2:4, 3:] = VALUES[2:4, 3:]
    np.testing.assert_array_equal(group["part"][...], expected)


# -- what one writes, the other one reads ------------------------------------------------


@FORMATS
def test_omnizarr_reads_what_zarr_python_wrote_to_its_store(ours, zarr_format):
    fill(zarr.create_group(to_zarr_python(ours), zarr_format=zarr_format))
    check(omnizarr.open_group(ours, mode="r"))


@FORMATS
def test_zarr_python_reads_what_omnizarr_wrote_to_its_store(ours, zarr_format):
    fill(omnizarr.create_group(ours, zarr_format=zarr_format))
    check(zarr.open_group(to_zarr_python(ours), mode="r"))


@FORMATS
def test_omnizarr_reads_what_zarr_python_wrote_to_a_store_of_zarr_python(theirs, zarr_format):
    fill(zarr.create_group(theirs, zarr_format=zarr_format))
    check(omnizarr.open_group(from_zarr_python(theirs), mode="r"))


@FORMATS
def test_zarr_python_reads_what_omnizarr_wrote_to_a_store_of_zarr_python(theirs, zarr_format):
    fill(omnizarr.create_group(from_zarr_python(theirs), zarr_format=zarr_format))
    check(zarr.open_group(theirs, mode="r+"))


@FORMATS
def test_archive_is_complete_after_zarr_python_closed_it(tmp_path, zarr_format):
    with to_zarr_python(ZipStore(tmp_path / "x.zip", mode="w")) as store:
        fill(zarr.create_group(store, zarr_format=zarr_format))
    check(omnizarr.open_group(tmp_path / "x.zip"))
    with zarr.storage.ZipStore(tmp_path / "x.zip") as store:
        check(zarr.open_group(store, mode="r"))
        check(from_zarr_python(zarr.open_group(store, mode="r")))


def test_shards_are_read_in_parts_both_ways():
    options = {"shape": (64, 64), "chunks": (8, 8), "shards": (32, 32), "dtype": "i4"}
    expected = np.arange(64 * 64, dtype="i4").reshape(64, 64)
    array = omnizarr.create_array({}, **options)
    array[...] = expected
    np.testing.assert_array_equal(to_zarr_python(array)[5:40, 13], expected[5:40, 13])
    array = zarr.create_array({}, **options)
    array[...] = expected
    np.testing.assert_array_equal(from_zarr_python(array)[5:40, 13], expected[5:40, 13])


def test_zarr_python_overwrites_and_deletes_in_an_archive_of_ours(tmp_path):
    with to_zarr_python(ZipStore(tmp_path / "x.zip", mode="w")) as store:
        group = zarr.create_group(store)
        group["x"] = np.zeros(3)
        group["y"] = np.zeros(3)
        group.create_array("x", data=np.ones(3), overwrite=True)
        del group["y"]
    root = omnizarr.open_group(tmp_path / "x.zip")
    assert list(root) == ["x"]
    np.testing.assert_array_equal(root["x"][...], 1)


@FORMATS
def test_uncompressed_chunks_are_changed_in_parts(ours, zarr_format):
    array = omnizarr.create_array(ours, shape=9, chunks=4, dtype="i2", compressors=None, zarr_format=zarr_format)
    array[...] = 1
    before = bytes(ours.get(next(key for key in ours.list() if key.endswith("0"))))
    theirs = to_zarr_python(array)
    theirs[1:3] = 2
    array[2:6] = 3
    assert array[...].tolist() == theirs[...].tolist() == [1, 2, 3, 3, 3, 3, 1, 1, 1]
    assert before == np.ones(4, "i2").tobytes()


# -- nodes ---------------------------------------------------------------------------


@FORMATS
def test_node_is_found_at_its_path_with_its_attributes(ours, zarr_format):
    fill(omnizarr.create_group(ours, zarr_format=zarr_format))
    array = to_zarr_python(omnizarr.open_array(ours, path="a/whole"))
    assert isinstance(array, zarr.Array)
    assert (array.path, array.metadata.zarr_format, dict(array.attrs)) == ("a/whole", zarr_format, {"units": "K"})
    back = from_zarr_python(array)
    assert back.store is ours
    assert back == omnizarr.open_array(ours, path="a/whole")
    group = to_zarr_python(omnizarr.open_group(ours, path="a"))
    assert isinstance(group, zarr.Group)
    assert list(group) == list(from_zarr_python(group)) == ["whole"]


@pytest.mark.parametrize("use_consolidated", [False, None])
@FORMATS
def test_group_keeps_to_the_consolidated_metadata_or_not(use_consolidated, zarr_format):
    store = MemoryStore()
    root = omnizarr.create_group(store, zarr_format=zarr_format)
    root.create_group("old")
    omnizarr.consolidate_metadata(store)
    for key in list(store.list_prefix("old/")):  # as a program does it that leaves the copies
        store.set(key.replace("old", "new"), store.get(key))
    expected = ["old"] if use_consolidated is None else ["new", "old"]

    group = to_zarr_python(omnizarr.open_group(store, use_consolidated=use_consolidated))
    assert sorted(group) == expected
    assert sorted(from_zarr_python(group)) == expected


@pytest.mark.parametrize("both", [2, 3])
def test_node_of_a_place_with_two_formats_is_of_the_same_format(both):
    store = MemoryStore()
    for zarr_format in (2, 3):
        array = zarr.create_array(to_zarr_python(store), shape=1, dtype="i1", zarr_format=zarr_format, fill_value=0)
        array.attrs["format"] = zarr_format
    ours = omnizarr.open_array(store, zarr_format=both)
    assert to_zarr_python(ours).attrs["format"] == both
    assert from_zarr_python(to_zarr_python(ours)).attrs["format"] == both


def test_node_that_is_read_only_stays_so(theirs):
    fill(zarr.create_group(theirs))
    if isinstance(theirs, zarr.storage.ZipStore):
        theirs.close()
        theirs = zarr.storage.ZipStore(theirs.path)
        sync(theirs._open())
    with theirs:
        group = from_zarr_python(zarr.open_group(theirs, mode="r"))
        assert group.read_only
        with pytest.raises(ReadOnlyError):
            group.attrs["x"] = 1
        again = to_zarr_python(group)
        assert again.read_only
        with pytest.raises(ValueError, match="read-only"):
            again.attrs["x"] = 1


def test_view_of_a_store_of_zarr_python_that_may_not_be_written_stays_so(theirs):
    fill(zarr.create_group(theirs))
    group = to_zarr_python(omnizarr.open_group(from_zarr_python(theirs), mode="r"))
    check(group)
    with pytest.raises(ValueError, match="read-only"):
        group.attrs["x"] = 1


@pytest.mark.parametrize("function", [to_zarr_python, from_zarr_python])
def test_anything_else_is_refused(function):
    with pytest.raises(TypeError, match="ndarray"):
        function(np.zeros(3))


# -- stores --------------------------------------------------------------------------


def test_store_comes_back_as_itself(theirs):
    assert from_zarr_python(to_zarr_python(store := MemoryStore())) is store
    if not isinstance(theirs, zarr.storage.LocalStore):
        assert to_zarr_python(from_zarr_python(theirs)) is theirs


def test_directory_of_zarr_python_is_opened_as_a_directory(tmp_path):
    store = from_zarr_python(zarr.storage.LocalStore(tmp_path, read_only=True))
    assert store == LocalStore(tmp_path, read_only=True)


def test_store_derived_from_a_directory_is_used_by_its_own_methods(tmp_path):
    class Derived(zarr.storage.LocalStore):
        pass

    assert isinstance(from_zarr_python(Derived(tmp_path)), ZarrPythonStore)


def test_stores_on_one_dictionary_are_equal_and_share_their_locks():
    values = {}
    one, other = (from_zarr_python(zarr.storage.MemoryStore(values)) for _ in range(2))
    assert one == other
    entered = threading.Event()

    def enter():
        with other.lock("a"):
            entered.set()

    thread = threading.Thread(target=enter, daemon=True)
    with one.lock("a"):
        thread.start()
        assert not entered.wait(0.05)
    thread.join(10)
    assert entered.is_set()


def test_value_that_an_archive_of_zarr_python_cannot_remove_is_a_store_error(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "x.zip", mode="w") as theirs:
        sync(theirs._open())
        store = from_zarr_python(theirs)
        store.set("a", b"1")
        with pytest.raises(StoreError) as caught:
            store.delete("a")
        assert caught.value.key == "a"
        store.delete("b")


@pytest.mark.parametrize("key", ["a", "a/b"])
def test_deleting_what_is_no_key_leaves_what_is_below(tmp_path, key):
    store = ZarrPythonStore(zarr.storage.LocalStore(tmp_path))
    store.set("a/b/c", b"1")
    store.delete(key)
    assert store.get("a/b/c") == b"1"


def test_store_of_zarr_python_that_pickles_pickles(tmp_path):
    store = ZarrPythonStore(zarr.storage.LocalStore(tmp_path))
    assert pickle.loads(pickle.dumps(store)) == store


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (RangeByteRequest(1, 1), b""),
        (RangeByteRequest(3, 1), b""),
        (RangeByteRequest(2, 99), b"23"),
        (RangeByteRequest(9, 99), b""),
        (OffsetByteRequest(0), b"0123"),
        (OffsetByteRequest(4), b""),
        (OffsetByteRequest(9), b""),
        (SuffixByteRequest(0), b""),
        (SuffixByteRequest(99), b"0123"),
    ],
)
def test_parts_are_cut_where_the_value_ends(request_, expected):
    store = to_zarr_python(MemoryStore({"a": b"0123"}))
    assert store.get_sync("a", byte_range=request_).to_bytes() == expected
    values = sync(store.get_partial_values(default_buffer_prototype(), iter([("b", request_), ("a", request_)])))
    assert values[0] is None
    assert values[1].to_bytes() == expected


@pytest.mark.parametrize("request_", [RangeByteRequest(-1, 2), OffsetByteRequest(-1), SuffixByteRequest(-1), (0, 2)])
def test_parts_that_begin_before_the_value_are_refused(request_):
    with pytest.raises(ValueError, match="Unexpected byte_range"):
        to_zarr_python(MemoryStore({"a": b"0123"})).get_sync("a", byte_range=request_)


def test_value_that_is_no_buffer_is_refused():
    with pytest.raises(TypeError, match="bytes"):
        OmnizarrStore(MemoryStore()).set_sync("a", b"1")


def test_more_keys_than_one_batch_are_listed(tmp_path):
    names = [f"a/{i}" for i in range(2500)]
    with ZipStore(tmp_path / "x.zip", mode="w") as ours:
        verbs.set_many(ours, ((name, b"") for name in names))
        assert sorted(from_zarr_python(to_zarr_python(ours)).list()) == sorted(names)
        assert sorted(ZarrPythonStore(OmnizarrStore(ours)).list_dir("a").keys) == sorted(names)


def test_module_says_what_is_missing_without_zarr_python(monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    monkeypatch.delitem(sys.modules, "omnizarr.stores.remote.zarr_python")
    monkeypatch.delitem(sys.modules, "omnizarr.interop.zarr_python")
    with pytest.raises(MissingDependencyError, match=r"omnizarr\[zarr\]"):
        import omnizarr.interop.zarr_python  # noqa: F401


def test_omnizarr_alone_does_not_import_zarr_python():
    code = "import sys, omnizarr, omnizarr.interop; sys.exit('zarr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
