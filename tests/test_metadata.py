"""`omnizarr.metadata`."""

import copy
import json
import pickle
from dataclasses import asdict, replace

import numpy as np
import pytest

import omnizarr
from omnizarr import errors, model
from omnizarr.metadata import ArrayMetadata, GroupMetadata

formats = pytest.mark.parametrize("zarr_format", [2, 3])


def array(zarr_format, **options):
    options = {"shape": (4, 6), "dtype": "float32", "chunks": (2, 3), "attributes": {"units": "K"}, **options}
    return omnizarr.create_array({}, zarr_format=zarr_format, **options)


@formats
def test_array_metadata_is_the_model(zarr_format):
    metadata = array(zarr_format).metadata
    assert isinstance(metadata, model.ArrayMetadata)
    assert (metadata.shape, metadata.attributes) == ((4, 6), {"units": "K"})


@formats
def test_format_data_type_and_dimensions(zarr_format):
    metadata = array(zarr_format).metadata
    assert (metadata.zarr_format, metadata.dtype, metadata.ndim) == (zarr_format, np.dtype("float32"), 2)


def test_dictionary_of_v3_is_the_document():
    node = array(3)
    assert node.metadata.to_dict() == json.loads(node.store.get("zarr.json"))


def test_dictionary_of_v2_holds_the_attributes_too():
    node = array(2)
    document = json.loads(node.store.get(".zarray"))
    assert node.metadata.to_dict() == {**document, "attributes": {"units": "K"}}


def test_dictionary_always_has_attributes():
    assert array(2, attributes=None).metadata.to_dict()["attributes"] == {}
    assert omnizarr.create_group({}).metadata.to_dict()["attributes"] == {}


@formats
@pytest.mark.parametrize("fill_value", [float("nan"), 1.5])
def test_dictionary_becomes_the_same_metadata(zarr_format, fill_value):
    metadata = array(zarr_format, fill_value=fill_value).metadata
    assert ArrayMetadata.from_dict(metadata.to_dict()) == metadata


@formats
def test_dictionary_of_a_group_becomes_the_same_metadata(zarr_format):
    metadata = omnizarr.create_group({}, zarr_format=zarr_format, attributes={"a": [1]}).metadata
    assert metadata.zarr_format == zarr_format
    assert GroupMetadata.from_dict(metadata.to_dict()) == metadata


@formats
def test_dictionary_of_zarr_python_is_understood(zarr_format):
    zarr = pytest.importorskip("zarr", reason="its dictionaries are read")
    theirs = zarr.create_array(
        {}, shape=(4, 6), dtype="float32", chunks=(2, 3), attributes={"units": "K"}, zarr_format=zarr_format
    )
    ours = ArrayMetadata.from_dict(theirs.metadata.to_dict())
    assert (ours.shape, ours.dtype, ours.attributes) == ((4, 6), np.dtype("float32"), {"units": "K"})
    group = zarr.create_group({}, zarr_format=zarr_format, attributes={"a": 1}).metadata.to_dict()
    assert GroupMetadata.from_dict(group).attributes == {"a": 1}


@pytest.mark.parametrize("document", [{}, [], None, {"zarr_format": 4}, {"zarr_format": 3, "node_type": "group"}])
def test_what_is_no_array_is_refused(document):
    with pytest.raises(errors.MetadataError):
        ArrayMetadata.from_dict(document)


@formats
def test_metadata_makes_new_nodes(zarr_format):
    metadata = ArrayMetadata.from_dict(array(zarr_format).metadata.to_dict())
    created = dict(omnizarr.create_hierarchy(store={}, nodes={"x": metadata}))
    assert created["x"].metadata == metadata
    created["x"].attrs["more"] = 1
    assert created["x"].attrs == {"units": "K", "more": 1}


@formats
def test_changed_copied_and_pickled_metadata_keeps_its_names(zarr_format):
    metadata = array(zarr_format).metadata
    assert pickle.loads(pickle.dumps(metadata)) == copy.deepcopy(metadata) == metadata
    assert replace(metadata, shape=(8, 6)).to_dict()["shape"] == [8, 6]


@pytest.mark.parametrize("zarr_format", [1, 2, "3-draft2019", "3-draft2020"])
def test_formats_without_dimension_names_have_no_such_member(zarr_format):
    metadata = array(zarr_format, fill_value=0, attributes={"_ARRAY_DIMENSIONS": ["y", "x"]}).metadata
    assert not hasattr(metadata, "dimension_names")
    assert "dimension_names" not in repr(metadata)
    assert "dimension_names" not in asdict(metadata)
    again = ArrayMetadata.of(metadata)
    assert again == metadata
    assert not hasattr(again, "dimension_names")


def test_members_for_dimension_names_are_there_where_zarr_python_has_them():
    zarr = pytest.importorskip("zarr", reason="its metadata are looked at")
    for zarr_format in (2, 3):
        theirs = zarr.create_array({}, shape=(4, 6), dtype="float32", zarr_format=zarr_format).metadata
        assert hasattr(array(zarr_format).metadata, "dimension_names") == hasattr(theirs, "dimension_names")


@formats
def test_metadata_makes_an_array(zarr_format):
    first = array(zarr_format)
    second = omnizarr.Array(first.store_path, first.metadata)
    assert second == first
    assert second.dimension_names is None
    assert replace(second.metadata, shape=(4, 6)) == first.metadata
    second.attrs["units"] = "C"
    assert first.store_path == second.store_path


@formats
def test_metadata_has_no_hash(zarr_format):
    with pytest.raises(TypeError, match="unhashable"):
        hash(array(zarr_format).metadata)


def test_metadata_equals_the_model_that_says_the_same():
    node = array(3)
    assert node.metadata == node._state.metadata
    assert node._state.metadata == node.metadata
    assert node.metadata != replace(node._state.metadata, shape=(1, 1))
    assert node.metadata != omnizarr.create_group({}).metadata


def test_copies_of_a_group_are_made_when_they_are_asked_for_and_belong_to_the_caller():
    values = {}
    root = omnizarr.create_group(values, zarr_format=3)
    for number in range(100):
        root.create_array(f"array{number:02}", shape=(number,), dtype="i1", attributes={"text": "x" * 800})
    omnizarr.consolidate_metadata(values)
    assert len(values["zarr.json"]) > 2**16
    metadata, other = (omnizarr.open_group(values, mode="r").metadata for _ in range(2))
    for copies in (other.consolidated, other.consolidated_metadata, pickle.loads(pickle.dumps(other)).consolidated):
        assert list(copies) == [f"array{number:02}" for number in range(100)]
        copies["array07"]["zarr.json"]["attributes"]["text"] = "other"
    document = json.loads(values["zarr.json"])
    assert json.loads(json.dumps(metadata.consolidated_metadata)) == {
        name: {"zarr.json": copy} for name, copy in document["consolidated_metadata"]["metadata"].items()
    }
    assert metadata.to_dict() == {**document, "attributes": {}}
    assert omnizarr.open_group(values, mode="r").metadata == metadata
