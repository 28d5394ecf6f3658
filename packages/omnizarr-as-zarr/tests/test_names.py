"""Names below `omnizarr_as_zarr` that few packages use, held against those of zarr-python."""

import asyncio
import pickle
from importlib import import_module

import numpy as np
import pytest

import omnizarr_as_zarr as as_zarr
from omnizarr_as_zarr.codecs import numcodecs
from omnizarr_as_zarr.core import common
from omnizarr_as_zarr.core import dtype as data_types
from omnizarr_as_zarr.core.buffer import NDArrayLike
from omnizarr_as_zarr.core.group import Attributes
from omnizarr_as_zarr.core.metadata import ArrayV2Metadata, ArrayV3Metadata
from omnizarr_as_zarr.errors import ZarrDeprecationWarning, ZarrUserWarning
from omnizarr_as_zarr.storage import MemoryStore, _utils

zarr = pytest.importorskip("zarr", minversion="3.1")

TRAITS = ("HasLength", "HasEndianness", "HasItemSize", "HasObjectCodec")


@pytest.mark.parametrize("trait", TRAITS)
def test_data_types_have_in_common_what_those_of_zarr_python_have(trait):
    theirs = import_module("zarr.core.dtype")
    wanted = getattr(import_module("zarr.core.dtype.common"), trait)
    registry = theirs.data_type_registry
    registry._lazy_load()
    expected = {kind.__name__ for kind in registry.contents.values() if issubclass(kind, wanted)}
    ours = data_types.data_type_registry.contents.values()
    assert {kind.__name__ for kind in ours if issubclass(kind, getattr(data_types, trait))} == expected


@pytest.mark.parametrize("path", ["", "/", "foo", "/foo/", "foo//bar", "\\foo\\bar", b"foo", None])
def test_paths_are_normalized_as_by_zarr_python(path):
    theirs = import_module("zarr.storage._utils").normalize_path
    assert _utils.normalize_path(path) == theirs(path)


@pytest.mark.parametrize("path", [".", "a/../b"])
def test_paths_that_lead_elsewhere_are_refused(path):
    with pytest.raises(ValueError, match=r"cannot contain"):
        _utils.normalize_path(path)


def test_paths_are_joined_and_cut_as_by_zarr_python():
    theirs = import_module("zarr.storage._utils")
    assert _utils._join_paths(["", "a", "b"]) == theirs._join_paths(["", "a", "b"])
    assert _utils._relativize_path(path="a/b", prefix="a") == theirs._relativize_path(path="a/b", prefix="a")
    with pytest.raises(ValueError, match="prefix"):
        _utils._relativize_path(path="b", prefix="a")
    with pytest.raises(ValueError, match="same"):
        _utils._normalize_paths(["a", "/a/"])


@pytest.mark.parametrize(("a", "b"), [(0, 3), (6, 3), (7, 3), (1, 10)])
def test_parts_are_counted_as_by_zarr_python(a, b):
    theirs = import_module("zarr.core.common")
    assert common.ceildiv(a, b) == theirs.ceildiv(a, b)
    assert common.product((a, b)) == theirs.product((a, b))


def test_results_are_arrays_by_isinstance():
    array = as_zarr.create_array({}, data=np.arange(4))
    assert isinstance(array[:], NDArrayLike)
    assert not isinstance(array[0].item(), NDArrayLike)


@pytest.mark.parametrize(("zarr_format", "kind"), [(2, ArrayV2Metadata), (3, ArrayV3Metadata)])
def test_metadata_is_made_of_its_document(zarr_format, kind):
    metadata = as_zarr.create_array({}, shape=(4,), dtype="i2", zarr_format=zarr_format).metadata
    made = kind.from_dict(metadata.to_dict())
    assert made == metadata
    assert isinstance(made, kind)


def test_attributes_are_made_of_a_node():
    group = as_zarr.create_group({})
    Attributes(group).put({"a": 1})
    assert dict(group.attrs) == {"a": 1}


def test_full_like_has_the_fill_value_of_its_model():
    model = as_zarr.create_array({}, shape=(4,), dtype="i2", fill_value=7)
    assert as_zarr.full_like(model)[:].tolist() == [7] * 4
    assert as_zarr.full_like(model, fill_value=8)[:].tolist() == [8] * 4


def test_consolidating_members_in_zarr_3_warns_and_in_zarr_2_does_not(recwarn):
    store = MemoryStore()
    as_zarr.create_group(store, path="a", zarr_format=2)
    as_zarr.consolidate_metadata(store)
    as_zarr.consolidate_metadata(as_zarr.create_group(MemoryStore(), zarr_format=3).store)
    assert not recwarn.list
    store = MemoryStore()
    as_zarr.create_group(store, path="a", zarr_format=3)
    with pytest.warns(ZarrUserWarning, match="not part in the Zarr format 3 specification"):
        as_zarr.consolidate_metadata(store)


def test_arrays_are_made_by_their_class():
    assert as_zarr.Array.create({}, shape=(4,), dtype="i2").shape == (4,)


class Counting(MemoryStore):
    """A store with a way of its own to read."""

    def __init__(self):
        super().__init__()
        self.read = []

    async def get(self, key, prototype=None, byte_range=None):
        self.read.append(key)
        return await super().get(key, prototype, byte_range)


def test_new_array_reads_none_of_the_documents_that_may_be_in_its_place():
    store = Counting()
    as_zarr.create_array(store, name="a", shape=(4,), dtype="i2")
    assert not [key for key in store.read if key.startswith("a/")]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_that_are_opened_to_be_created_hold_floats_by_default(zarr_format):
    assert as_zarr.open_array({}, mode="w", shape=(4,), zarr_format=zarr_format).dtype == np.float64
    assert as_zarr.open({}, mode="w", shape=(4,), zarr_format=zarr_format).dtype == np.float64


def test_codecs_of_numcodecs_warn():
    with pytest.warns(ZarrUserWarning, match="not in the Zarr version 3 specification"):
        numcodecs.Zlib(level=1)


def test_old_names_of_create_array_warn():
    group = as_zarr.create_group({})
    with pytest.warns(ZarrDeprecationWarning, match=r"Group\.create_array instead"):
        assert group.create_dataset("a", shape=(4,), dtype="i2").shape == (4,)
    with pytest.warns(ZarrDeprecationWarning, match=r"create_array"), pytest.warns(ZarrUserWarning, match="compressor"):
        assert group.array("b", shape=(4,), dtype="i2", data=np.arange(4))[:].tolist() == [0, 1, 2, 3]


def test_empty_path_deletes_the_group_itself():
    for module in (zarr, as_zarr):
        root = module.open_group({}, mode="w")
        root.create_group("a/b", attributes={"n": 1})
        root["c"] = np.arange(2)
        del root["a"][""]
        assert list(root.keys()) == ["c"]
        del root[""]
        assert dict(root.require_group("").attrs) == {}
        assert list(root.keys()) == []


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("path", ["", "/"])
def test_empty_path_is_the_group_as_it_is_stored(path, zarr_format):
    for module in (zarr, as_zarr):
        values = {}
        root = module.open_group(values, mode="w", zarr_format=zarr_format, attributes={"a": 1})
        module.open_group(values, mode="w", zarr_format=zarr_format)
        assert dict(root[path].attrs) == {}
        assert dict(asyncio.run(root._async_group.getitem(path)).attrs) == {}
        root[path].attrs.setdefault("a", 2)
        assert dict(module.open_group(values, mode="r").attrs) == {"a": 2}


def test_nodes_stay_what_they_are_when_they_are_pickled(tmp_path):
    root = as_zarr.open_group(tmp_path / "x.zarr", mode="w")
    for node in (root, root.create_array("a", data=np.arange(3))):
        for each in (node, getattr(node, "async_array", None) or node._async_group):
            copy = pickle.loads(pickle.dumps(each))
            assert type(copy) is type(each)
            assert copy.store_path == each.store_path
    assert copy.array[...].tolist() == [0, 1, 2]
