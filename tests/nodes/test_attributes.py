"""`omnizarr.nodes.attributes`."""

import json
import math
import multiprocessing

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.nodes.attributes import to_json
from omnizarr.stores import MemoryStore

FORMATS = (2, 3)


@pytest.fixture(params=[(kind, zarr_format) for kind in ("array", "group") for zarr_format in FORMATS], ids=str)
def node(request):
    kind, zarr_format = request.param
    store = MemoryStore()
    if kind == "group":
        return omnizarr.create_group(store, zarr_format=zarr_format)
    return omnizarr.create_array(store, shape=3, dtype="i4", zarr_format=zarr_format)


def stored(node):
    return omnizarr.open(node.store).attrs.asdict()


def test_every_change_is_stored(node):
    attrs = node.attrs
    attrs["a"] = 1
    assert stored(node) == {"a": 1}
    attrs.update({"b": [1, 2]}, c="x")
    assert stored(node) == {"a": 1, "b": [1, 2], "c": "x"}
    del attrs["a"]
    assert stored(node) == {"b": [1, 2], "c": "x"}
    attrs.put({"d": None})
    assert stored(node) == {"d": None}
    assert attrs.setdefault("e", 5) == 5
    assert attrs.setdefault("e", 6) == 5
    assert attrs.pop("d") is None
    assert attrs.pop("nothing", 7) == 7
    assert attrs.popitem() == ("e", 5)
    assert stored(node) == {}
    attrs.update(a=1)
    attrs.clear()
    assert stored(node) == {}


def test_missing_key_is_a_key_error_and_changes_nothing(node):
    with pytest.raises(KeyError):
        node.attrs["a"]
    with pytest.raises(KeyError):
        del node.attrs["a"]
    with pytest.raises(KeyError):
        node.attrs.pop("a")
    with pytest.raises(KeyError):
        node.attrs.popitem()


def test_mapping(node):
    node.attrs.update(a=1, b={"c": [1]})
    assert len(node.attrs) == 2
    assert list(node.attrs) == ["a", "b"]
    assert "a" in node.attrs
    assert node.attrs == {"a": 1, "b": {"c": [1]}}
    assert repr(node.attrs) == "{'a': 1, 'b': {'c': [1]}}"


def test_what_is_returned_is_a_copy(node):
    node.attrs["list"] = [1, {"a": 2}]
    node.attrs["list"].append(3)
    node.attrs["list"][1]["a"] = 4
    node.attrs.asdict()["list"].append(5)
    assert node.attrs["list"] == [1, {"a": 2}]


def test_numpy_values_become_json(node):
    node.attrs.update(
        scalar=np.float32(0.5), integer=np.int64(7), array=np.arange(3), flag=np.True_, text=np.str_("x"), pair=(1, 2)
    )
    assert stored(node) == {
        "scalar": 0.5,
        "integer": 7,
        "array": [0, 1, 2],
        "flag": True,
        "text": "x",
        "pair": [1, 2],
    }


def test_a_node_with_a_nan_is_equal_to_itself_opened_again(node):
    node.attrs.update(nan=np.float32("nan"), values=[1, {"x": np.array([np.nan])}])
    assert omnizarr.open(node.store) == node
    assert node.attrs.asdict() == {"nan": math.nan, "values": [1, {"x": [math.nan]}]}


def test_numbers_that_are_not_finite_stay_numbers(node):
    node.attrs.update(nan=math.nan, low=-math.inf, high=[np.float64("inf")])
    assert math.isnan(node.attrs["nan"])
    assert math.isnan(stored(node)["nan"])
    assert (stored(node)["low"], stored(node)["high"]) == (-math.inf, [math.inf])


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"bytes", 1j, np.datetime64("2020-01-01")], ids=lambda value: type(value).__name__
)
def test_what_has_no_json_form_is_refused_whole(node, value):
    with pytest.raises(errors.MetadataError) as caught:
        node.attrs.update(good=1, bad=[value])
    assert caught.value.pointer == "/attributes/bad/0"
    assert caught.value.path == ""
    assert stored(node) == {}


def test_names_are_strings():
    with pytest.raises(errors.MetadataError):
        to_json({1: 2})
    with pytest.raises(errors.MetadataError):
        to_json([1])


def test_two_who_know_nothing_of_each_other_keep_both_changes(node):
    other = omnizarr.open(node.store)
    node.attrs["a"] = 1
    other.attrs["b"] = 2
    assert stored(node) == {"a": 1, "b": 2}
    assert other.attrs == {"a": 1, "b": 2}
    assert node.attrs == {"a": 1}
    node.attrs.refresh()
    assert node.attrs == {"a": 1, "b": 2}


def test_changing_attributes_keeps_what_others_did_to_the_array():
    store = MemoryStore()
    first = omnizarr.create_array(store, shape=3, dtype="i4")
    second = omnizarr.open_array(store)
    second.resize(5)
    first.attrs["a"] = 1
    assert omnizarr.open_array(store).shape == (5,)
    assert first.shape == (5,)
    assert first[...].shape == (5,)


def _add(path, number):
    for step in range(5):
        omnizarr.open(path).attrs[f"{number}-{step}"] = step


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_processes_lose_no_attribute(tmp_path, zarr_format):
    omnizarr.create_group(tmp_path, zarr_format=zarr_format)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_add, args=(tmp_path, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(omnizarr.open(tmp_path).attrs) == 15


def test_v2_without_attributes_has_no_document_for_them():
    store = MemoryStore()
    group = omnizarr.create_group(store, zarr_format=2)
    assert list(store.list()) == [".zgroup"]
    group.attrs["a"] = 1
    assert sorted(store.list()) == [".zattrs", ".zgroup"]


def test_unknown_members_of_the_document_survive():
    store = MemoryStore()
    group = omnizarr.create_group(store)
    document = {**group.documents()["zarr.json"], "extra": {"must_understand": False, "x": 1}}
    store.set("zarr.json", json.dumps(document).encode())
    omnizarr.open_group(store).attrs["a"] = 1
    assert json.loads(bytes(store.get("zarr.json")))["extra"] == {"must_understand": False, "x": 1}
