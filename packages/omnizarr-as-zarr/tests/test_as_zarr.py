"""omnizarr under the name zarr. Each test that installs it does so in a process of its own."""

import json
import os
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import omnizarr
import omnizarr_as_zarr as as_zarr
from omnizarr_as_zarr._modules import ELSEWHERE, PACKAGE

ROOT = Path(__file__).parents[3]
SOURCES = [str(ROOT / "src"), str(ROOT / "packages" / "omnizarr-as-zarr" / "src"), str(ROOT)]

# zarr-python warns of consolidated metadata in Zarr v3, and of the codecs of numcodecs, and so do these.
pytestmark = pytest.mark.filterwarnings("ignore::omnizarr_as_zarr.errors.ZarrUserWarning")

# What xarray, dask, anndata, ome-zarr and their tests import, by module.
IMPORTED = {
    "zarr": "Array AsyncArray AsyncGroup Group ZipStore __version__ config consolidate_metadata create create_array "
    "empty group open open_array open_consolidated open_group ones",
    "zarr.abc.codec": "ArrayArrayCodec ArrayBytesCodec BytesBytesCodec Codec",
    "zarr.abc.store": "ByteRequest OffsetByteRequest RangeByteRequest Store SuffixByteRequest",
    "zarr.api.asynchronous": "create_array empty_like full_like ones_like open open_group open_like zeros_like",
    "zarr.buffer.cpu": "Buffer",
    "zarr.codecs": "BloscCodec BytesCodec ShardingCodec ZstdCodec",
    "zarr.codecs.blosc": "BloscCodec",
    "zarr.codecs.numcodecs": "Blosc Delta PCodec Shuffle Zlib",
    "zarr.core.array": "Array AsyncArray",
    "zarr.core.buffer": "Buffer BufferPrototype NDBuffer default_buffer_prototype",
    "zarr.core.buffer.core": "default_buffer_prototype",
    "zarr.core.common": "AccessModeLiteral ZarrFormat",
    "zarr.core.config": "config",
    "zarr.core.dtype": "Float64 Structured VariableLengthUTF8 ZDType data_type_registry parse_dtype",
    "zarr.core.dtype.common": "UnstableSpecificationWarning",
    "zarr.core.group": "ConsolidatedMetadata Group GroupMetadata",
    "zarr.core.indexing": "AsyncOIndex AsyncVIndex",
    "zarr.core.metadata": "ArrayV2Metadata ArrayV3Metadata",
    "zarr.core.sync": "sync",
    "zarr.dtype": "VariableLengthUTF8",
    "zarr.errors": "ContainsArrayError GroupNotFoundError ZarrUserWarning",
    "zarr.registry": "get_buffer_class get_codec_class register_codec",
    "zarr.storage": "FsspecStore LocalStore LoggingStore MemoryStore ObjectStore StoreLike StorePath WrapperStore "
    "ZipStore",
    "zarr.storage._common": "StorePath make_store_path",
}


def run(program, tmp_path):
    """Run a program in a process of its own, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES)}
    command = [sys.executable, "-W", "error::UserWarning:omnizarr", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_import_zarr_finds_this_package(tmp_path):
    program = f"""
    import omnizarr_as_zarr as as_zarr
    as_zarr.install()
    as_zarr.install()
    for name, parts in {IMPORTED!r}.items():
        module = __import__(name, fromlist=["_"])
        assert module.__name__.startswith("omnizarr_as_zarr"), module
        for part in parts.split():
            getattr(module, part)
    import zarr.storage
    assert zarr is as_zarr and zarr.storage is as_zarr.storage
    assert as_zarr.storage.__spec__.name == "omnizarr_as_zarr.storage"
    print(as_zarr.installed())
    """
    assert run(program, tmp_path) == ["True"]


@pytest.mark.parametrize("own", sorted(set(ELSEWHERE.values())))
def test_modules_found_under_other_names_are_there(own):
    assert import_module(f"{PACKAGE}.{own}")


def test_release_is_the_one_that_zarr_python_of_the_tests_has(tmp_path):
    zarr = pytest.importorskip("zarr")
    program = """
    import importlib.metadata, importlib.util
    import omnizarr_as_zarr as as_zarr
    as_zarr.install()
    import zarr
    print(zarr.__version__, importlib.metadata.version("zarr"), importlib.util.find_spec("zarr") is not None)
    """
    assert run(program, tmp_path) == [as_zarr.VERSION, as_zarr.VERSION, "True"]
    assert zarr.__version__ == as_zarr.VERSION


def test_uninstall_brings_zarr_python_back(tmp_path):
    pytest.importorskip("zarr")
    program = """
    import sys
    import omnizarr_as_zarr as as_zarr
    with as_zarr.under_the_name():
        import zarr.storage
        assert zarr is as_zarr
    assert not [name for name in sys.modules if name.partition(".")[0] == "zarr"]
    import zarr.storage
    print(as_zarr.installed(), zarr is as_zarr, zarr.__file__ != as_zarr.__file__, zarr.ones(2)[:].sum())
    """
    assert run(program, tmp_path) == ["False", "False", "True", "2.0"]


def test_install_refuses_where_zarr_python_is_imported(tmp_path):
    pytest.importorskip("zarr")
    program = """
    import zarr
    import omnizarr_as_zarr as as_zarr
    try:
        as_zarr.install()
    except ImportError as error:
        print("imported already" in str(error), as_zarr.installed())
    """
    assert run(program, tmp_path) == ["True", "False"]


def test_omnizarr_does_not_import_it(tmp_path):
    program = """
    import sys
    import omnizarr, omnizarr.aio, omnizarr.storage, omnizarr.netcdf, omnizarr.interop
    print(any("as_zarr" in name for name in sys.modules), any(name.startswith("zarr") for name in sys.modules))
    """
    assert run(program, tmp_path) == ["False", "False"]


def test_importing_it_changes_neither_omnizarr_nor_the_name(tmp_path):
    program = """
    import sys
    import omnizarr
    array, group = omnizarr.Array, omnizarr.Group
    import omnizarr_as_zarr
    made = omnizarr.ones(2)
    print("zarr" in sys.modules, omnizarr.Array is array, type(made) is array, hasattr(made, "async_array"))
    """
    assert run(program, tmp_path) == ["False", "True", "True", "False"]


def test_what_is_made_for_zarr_python_says_so_where_only_the_name_is_there(tmp_path):
    program = """
    from omnizarr.errors import MissingDependencyError
    import omnizarr_as_zarr as as_zarr
    as_zarr.install()
    try:
        import omnizarr.interop.zarr_python
    except MissingDependencyError as error:
        print("zarr-python")
    """
    assert run(program, tmp_path) == ["zarr-python"]


def test_a_name_that_is_missing_is_no_module(tmp_path):
    program = """
    import omnizarr_as_zarr as as_zarr
    as_zarr.install()
    for name in ("zarr.nothing", "zarr.nothing.more", "zarr.storage.nothing"):
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            print(error.name)
    """
    assert run(program, tmp_path) == ["zarr.nothing", "zarr.nothing", "zarr.storage.nothing"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each interrupt takes place in a fork")
def test_call_of_sync_that_is_interrupted_leaves_no_request_at_work(tmp_path):
    program = f"""
    from omnizarr_as_zarr.core import sync
    from tests.concurrency import starting
    starting.HERE += ("omnizarr_as_zarr/core/sync.py",)
    starting.ON_LOOPS["sync"] = lambda case: sync.sync(case.wait())
    starting.main("sync", {os.environ.get("RUNS", "5")!r})
    """
    found = json.loads(" ".join(run(program, tmp_path)))
    assert found["failures"] == []
    assert found["interrupts"]


# -- nodes ---------------------------------------------------------------------------------


def test_nodes_are_those_of_omnizarr_and_of_zarr():
    group = as_zarr.group()
    array = group.create_array("a", shape=(4,), dtype="int16")
    assert isinstance(array, omnizarr.Array)
    assert type(array) is as_zarr.Array
    assert isinstance(group["a"], as_zarr.Array)
    assert type(group.create_group("b/c")) is as_zarr.Group
    assert isinstance(array.store, as_zarr.abc.store.Store)
    assert isinstance(omnizarr.ones(2), as_zarr.Array)
    assert not isinstance(group, as_zarr.Array)
    assert [type(node) for _, node in group.members(max_depth=None)] == [as_zarr.Array, as_zarr.Group, as_zarr.Group]


def test_open_creates_as_zarr_python_does(tmp_path):
    assert type(as_zarr.open(tmp_path / "a")) is as_zarr.Group
    assert type(as_zarr.open_group(tmp_path / "b")) is as_zarr.Group
    assert as_zarr.open(tmp_path / "c", shape=(2,), dtype="u1").shape == (2,)
    with pytest.raises(FileNotFoundError):
        as_zarr.open_array(tmp_path / "d")
    with pytest.raises(FileNotFoundError):
        as_zarr.open_group(tmp_path / "e", mode="r")
    assert not (tmp_path / "e").exists()


def test_metadata_of_a_group_holds_that_of_all_below_it():
    group = as_zarr.group({}, attributes={"a": 1})
    group.create_array("x/y", shape=(2,), dtype="i4")
    assert group.metadata.consolidated_metadata is None
    copies = as_zarr.consolidate_metadata(group.store).metadata.consolidated_metadata
    assert list(copies.metadata) == ["x"]
    assert list(copies.flattened_metadata) == ["x", "x/y"]
    assert copies.flattened_metadata["x/y"].shape == (2,)
    assert group.metadata == as_zarr.core.group.GroupMetadata(zarr_format=3, attributes={"a": 1})


def test_arrays_of_v2_show_codecs_of_numcodecs():
    numcodecs = pytest.importorskip("numcodecs")
    array = as_zarr.create_array(
        {}, shape=(2,), dtype="i4", zarr_format=2, filters=[numcodecs.Delta("i4")], compressors=numcodecs.Zlib(3)
    )
    assert array.compressors == (numcodecs.Zlib(3),)
    assert array.filters == (numcodecs.Delta("<i4"),)
    assert not hasattr(array.metadata, "dimension_names")


def test_asynchronous_array_is_the_same_array():
    array = as_zarr.array(np.arange(6).reshape(2, 3))
    sync = import_module(f"{PACKAGE}.core.sync").sync
    found = array.async_array
    assert type(found) is as_zarr.AsyncArray
    assert type(found.oindex).__name__ == "AsyncOIndex"
    assert sync(found.getitem((1, slice(2)))).tolist() == [3, 4]
    assert sync(found.oindex.getitem(([0, 1], [0, 2]))).tolist() == [[0, 2], [3, 5]]
    assert sync(found.vindex.getitem(([0, 1], [0, 2]))).tolist() == [0, 5]
    assert as_zarr.Array(found) == array


def test_asynchronous_functions_return_what_is_to_be_awaited():
    api, sync = as_zarr.api.asynchronous, import_module(f"{PACKAGE}.core.sync").sync

    async def main():
        group = await api.open_group({}, mode="w")
        array = await group.create_array("a", shape=(3,), dtype="i4", fill_value=7)
        like = await api.zeros_like(array)
        found = [type(node) async for _, node in group.members()]
        return type(group), type(array), type(like), found, await like.getitem(...)

    group, array, like, found, values = sync(main())
    assert (group, array, like) == (as_zarr.AsyncGroup, as_zarr.AsyncArray, as_zarr.AsyncArray)
    assert found == [as_zarr.AsyncArray]
    assert values.tolist() == [0, 0, 0]


def test_dtype_classes_are_data_types():
    dtype = import_module(f"{PACKAGE}.core.dtype")
    group = as_zarr.group(zarr_format=2)
    array = group.create_array("a", shape=(), dtype=dtype.VariableLengthUTF8(), fill_value="")
    array[...] = "ocean"
    assert array[()] == "ocean"
    assert group.create_array("b", shape=1, dtype=dtype.Int16(endianness="big")).dtype == ">i2"
    assert dtype.Int16().to_json(3) == "int16"
    assert dtype.Int16().to_json(2)["name"] == "<i2"
    assert dtype.parse_dtype("<M8[10s]", zarr_format=3).scale_factor == 10
    assert dtype.get_data_type_from_native_dtype(np.dtype("U4")) == dtype.FixedLengthUTF32(length=4)


# -- stores -----------------------------------------------------------------------------------


def stores():
    return import_module(f"{PACKAGE}.storage")


def test_a_store_with_verbs_of_its_own_is_asked_by_them(tmp_path):
    asked = []

    class Asked(stores().LocalStore):
        async def get(self, key, prototype=None, byte_range=None):
            asked.append(key)
            return await super().get(key, prototype, byte_range)

    as_zarr.open_group(tmp_path)["a"] = np.arange(4)
    store = Asked(tmp_path, read_only=True)
    group = as_zarr.open(store, mode="r")
    assert group.store is store
    assert group["a"][2:].tolist() == [2, 3]
    assert "a/c/0" in asked


def test_a_store_whose_verbs_are_patched_is_asked_by_them(monkeypatch):
    kind, asked = stores().MemoryStore, []
    store = kind()
    original = store.set
    monkeypatch.setattr(kind, "set", lambda _, key, value: (asked.append(key), original(key, value))[1])
    as_zarr.ones(2, store=store)
    assert "zarr.json" in asked


def test_stores_of_omnizarr_are_used_unchanged(tmp_path):
    array = as_zarr.create_array(stores().LocalStore(tmp_path), shape=(2,), dtype="u1")
    assert type(array._where.store) is omnizarr.storage.LocalStore  # which the native engine knows
    assert array.store == stores().LocalStore(tmp_path)
    assert array.store.root == tmp_path


def test_verbs_of_a_store():
    sync = import_module(f"{PACKAGE}.core.sync").sync
    abc, buffer = as_zarr.abc.store, as_zarr.buffer.Buffer
    store = stores().WrapperStore[stores().MemoryStore](stores().MemoryStore())
    sync(store.set("a/b", buffer.from_bytes(b"ocean")))
    sync(store.set_if_not_exists("a/b", buffer.from_bytes(b"other")))
    parts = [None, abc.RangeByteRequest(1, 3), abc.OffsetByteRequest(3), abc.SuffixByteRequest(2)]
    found = [sync(store.get("a/b", byte_range=part)).to_bytes() for part in parts]
    assert found == [b"ocean", b"ce", b"an", b"an"]
    assert sync(store.get("nothing")) is None
    assert sync(store.getsize("a/b")) == 5
    assert store.supports_deletes
    assert store.supports_listing
    assert not store.supports_partial_writes
    assert import_module(f"{PACKAGE}.core.sync").collect_aiterator(store.list_dir("")) == ("a",)
    sync(store.clear())
    assert sync(store.is_empty(""))
    read_only = store.with_read_only(read_only=True)
    with pytest.raises(ValueError, match="read-only"):
        sync(read_only.set("a", buffer.from_bytes(b"")))


def test_a_store_without_consolidated_metadata_gets_none():
    class Without(stores().WrapperStore):
        supports_consolidated_metadata = False

    store = stores().MemoryStore()
    as_zarr.open_group(store).create_group("a")
    as_zarr.consolidate_metadata(store)
    assert as_zarr.open_group(store).metadata.consolidated_metadata is not None
    assert as_zarr.open_group(Without(store)).metadata.consolidated_metadata is None
    with pytest.raises(TypeError, match="consolidated"):
        as_zarr.consolidate_metadata(Without(store))


def test_codecs_are_of_a_kind():
    abc, codecs = as_zarr.abc.codec, as_zarr.codecs
    assert isinstance(codecs.BloscCodec(), abc.BytesBytesCodec)
    assert isinstance(codecs.numcodecs.Delta(dtype="i4"), abc.ArrayArrayCodec)
    array = as_zarr.create_array({}, data=np.arange(9), filters=[codecs.numcodecs.Delta(dtype="<i8")])
    assert array.filters[0].to_dict()["name"] == "numcodecs.delta"
    assert array[3] == 3
    assert as_zarr.registry.get_codec_class("gzip") is codecs.GzipCodec


def test_settings_are_those_of_omnizarr():
    with as_zarr.config.set({"default_zarr_format": 2}):
        assert omnizarr.config.get("default_zarr_format") == 2 == as_zarr.config.config["default_zarr_format"]
        assert as_zarr.ones(2).metadata.zarr_format == 2
    assert as_zarr.config.get("array.order") == "C"
    assert as_zarr.config.get("nothing", 1) == 1


def test_info_has_the_names_of_both():
    group = as_zarr.group(zarr_format=2)
    array = group.create_array("a", shape=(2,), dtype="i4")
    assert group.info._zarr_format == group.info.zarr_format == 2
    assert array.info._compressors == array.compressors
    assert array.info_complete().chunks_stored == 0
    assert "Type" in repr(array.info)


def test_an_array_may_be_replaced_by_itself():
    group = as_zarr.group({})
    group["a"] = np.arange(4)
    group["a"] = group["a"].astype("float32")
    group.create_array("a", data=group["a"], overwrite=True)
    as_zarr.array(group["a"], store=group.store, path="a", overwrite=True)
    assert group["a"].dtype == "float32"
    assert group["a"][:].tolist() == [0, 1, 2, 3]


def test_a_group_that_is_missing_is_reported_in_the_terms_of_zarr_python(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No group found in store .*missing"):
        as_zarr.open_group(tmp_path / "missing", mode="r")


def test_metadata_of_arrays_has_the_names_of_zarr_python():
    core = import_module(f"{PACKAGE}.core.metadata")
    array = as_zarr.create_array({}, shape=(8,), dtype="i4", chunks=2, shards=4, fill_value=7, attributes={"a": 1})
    metadata = array.metadata
    assert isinstance(metadata, core.ArrayV3Metadata)
    assert metadata.codecs[0].index_codecs[0].endian.name == "little"
    assert (metadata.fill_value, metadata.chunks, metadata.attributes) == (7, (4,), {"a": 1})
    assert metadata.to_dict()["storage_transformers"] == ()
    assert core.ArrayV3Metadata.from_dict(metadata.to_dict()) == metadata
    old = as_zarr.create_array({}, shape=(8, 8), dtype="i4", order="F", zarr_format=2).metadata
    assert isinstance(old, core.ArrayV2Metadata)
    assert (old.order, old.dimension_separator, old.zarr_format) == ("F", ".", 2)


WAYS = {
    "path": lambda root: [root["a"], root["inner"], root["inner/b"], root[""], root["inner"]["b"]],
    "get": lambda root: [root.get("a"), root.get("inner"), root.get("inner/b")],
    "members": lambda root: [node for _, node in root.members()],
    "members below": lambda root: [node for _, node in root.members(max_depth=None)],
    "arrays": lambda root: [*root.array_values(), *(node for _, node in root.arrays())],
    "groups": lambda root: [*root.group_values(), *(node for _, node in root.groups())],
    "require": lambda root: [root.require_group("inner"), root.require_array("a", shape=(2, 3, 4), dtype="i8")],
}


@pytest.mark.parametrize("is_consolidated", [False, True], ids=["documents", "consolidated"])
@pytest.mark.parametrize("way", WAYS)
def test_members_of_a_group_have_the_members_of_zarr_python(way, is_consolidated):
    store = {}
    root = as_zarr.open_group(store, mode="w", zarr_format=2)
    values = np.arange(24).reshape(2, 3, 4)
    root.create_array("a", data=values)
    root.create_array("inner/b", data=values)
    if is_consolidated:
        as_zarr.consolidate_metadata(store)
    nodes = WAYS[way](as_zarr.open_group(store))
    assert {type(node) for node in nodes} <= {as_zarr.Array, as_zarr.Group}
    assert all(
        node[0, :, [1, 2]].shape == (3, 2) for node in nodes if isinstance(node, as_zarr.Array)
    )  # as oindex does
