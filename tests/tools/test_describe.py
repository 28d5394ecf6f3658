"""Facts of nodes, against what was written."""

import inspect
import sys

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import MemoryStore
from omnizarr.tools.describe import ArrayFacts, UnreadableFacts, describe, walk
from tests.fakes import UnlistableStore


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunks_present_are_counted_among_those_expected(zarr_format):
    values = {}
    array = omnizarr.create_array(
        values, shape=(10, 10), chunks=(3, 4), dtype="i4", zarr_format=zarr_format, fill_value=0
    )
    array[:3] = 1
    facts = describe(array)
    assert (facts.stored, facts.expected) == (3, 12)
    assert facts.bytes_stored == sum(map(len, values.values()))
    assert (facts.bytes_logical, facts.chunk_nbytes) == (400, 48)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_names_of_dimensions_are_facts_however_they_are_stored(zarr_format):
    options = {"dimension_names": ["x"]} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["x"]}}
    array = omnizarr.create_array({}, shape=(2,), dtype="i4", zarr_format=zarr_format, **options)
    assert describe(array).dimension_names == ("x",)


def test_shards_are_counted_not_their_chunks():
    array = omnizarr.create_array({}, shape=(16,), chunks=(2,), shards=(8,), dtype="i4", fill_value=0)
    array[0] = 1
    facts = describe(array)
    assert (facts.stored, facts.expected, facts.unit) == (1, 2, "shard")


def test_keys_beyond_the_shape_are_not_chunks():
    values = {}
    array = omnizarr.create_array(values, shape=(4,), chunks=(2,), dtype="i4")
    array[:] = 1
    values["c/7"] = b"left over"
    values["notes.txt"] = b"by hand"
    assert describe(array).stored == 2


def test_array_of_any_size_has_its_facts():
    facts = describe(omnizarr.create_array({}, shape=(2**63 - 1, 2**62), chunks=(1, 1), dtype="u2"))
    assert facts.expected == (2**63 - 1) * 2**62
    assert facts.bytes_logical == facts.expected * 2


def test_text_has_no_logical_size():
    array = omnizarr.create_array({}, data=np.array(["a"], np.dtypes.StringDType()))
    assert describe(array).bytes_logical is None


def test_unknown_codec_is_a_problem_of_that_array_alone():
    values = {}
    omnizarr.create_array(values, data=np.arange(3))
    values["zarr.json"] = bytes(values["zarr.json"]).replace(b'"zstd"', b'"mystery"')
    facts = describe(omnizarr.open(values))
    assert isinstance(facts, ArrayFacts)
    assert "mystery" in facts.problem
    assert facts.stored == 1


def test_what_the_store_cannot_list_hides_no_siblings():
    values = {}
    root = omnizarr.create_group(values)
    for name in ("a", "bad/group/x", "bad_array", "z"):
        root[name] = np.arange(3)
    store = UnlistableStore(MemoryStore(values), admits=False, below="bad")
    found = {node.path: describe(node) for _, node in walk(omnizarr.open(store, mode="r"))}
    assert isinstance(found["bad"], UnreadableFacts)
    assert "this store cannot list" in found["bad"].problem
    assert isinstance(found["bad_array"], ArrayFacts)
    assert found["bad_array"].stored is None  # unknown
    assert isinstance(found["z"], ArrayFacts)


def test_walk_gives_groups_before_their_members_with_their_depth():
    root = omnizarr.create_group({})
    root["a/b/c"] = np.arange(3)
    root["d"] = np.arange(3)
    assert [(depth, node.path) for depth, node in walk(root)] == [(0, "a"), (1, "a/b"), (2, "a/b/c"), (0, "d")]
    assert [node.path for _, node in walk(root, max_depth=0)] == ["a", "d"]


def test_walk_is_deeper_than_the_stack_of_python():
    depth = 250
    values = {
        "/".join(["g"] * level + ["zarr.json"]): b'{"zarr_format": 3, "node_type": "group"}' for level in range(depth)
    }
    root = omnizarr.open(values)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 120)
    try:
        assert sum(1 for _ in walk(root)) == depth - 1
    finally:
        sys.setrecursionlimit(before)
