"""How many requests it takes: what remote stores are asked for, and how much of it side by side."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import obstore.store
import pytest

import omnizarr
from omnizarr.stores import MemoryStore, ObjectStore, verbs
from tests.fakes import DigestStore, FaultyStore

pytestmark = pytest.mark.rules

FAR = 32  # requests at once


def far(store, delay=0.0):
    """Return a store as one that is remote; it counts."""
    return FaultyStore(store, concurrency=FAR, delay=delay)


@pytest.fixture(scope="module")
def hierarchy():
    """A group of 500 arrays, with consolidated metadata in both formats."""
    made = {}
    for zarr_format in (2, 3):
        store = MemoryStore()
        root = omnizarr.open_group(store, mode="w", zarr_format=zarr_format)
        for number in range(500):
            root.create_array(f"a{number}", shape=(4,), dtype="f4", attributes={"number": number})
        omnizarr.consolidate_metadata(store)
        made[zarr_format] = store
    return made


def test_consolidated_hierarchy_of_500_arrays_opens_with_one_request(hierarchy):
    store = far(hierarchy[3])
    root = omnizarr.open_group(store)
    numbers = {array.attrs["number"] for _, array in root.arrays()}
    assert numbers == set(range(500))
    assert store.log == [("get", "zarr.json")]


def test_consolidated_hierarchy_of_v2_opens_with_four(hierarchy):
    store = far(hierarchy[2])
    root = omnizarr.open_group(store)
    assert len(dict(root.members())) == 500
    assert sorted(store.log) == [("get", name) for name in (".zattrs", ".zgroup", ".zmetadata", "zarr.json")]


@pytest.mark.parametrize("opener", [omnizarr.open, omnizarr.open_array])
def test_array_opens_with_one_request(hierarchy, opener):
    store = far(hierarchy[3])
    assert opener(store, path="a7", mode="r").attrs["number"] == 7
    assert store.log == [("get", "a7/zarr.json")]


def test_array_of_v2_opens_with_two_requests_at_once_if_the_format_is_stated(hierarchy):
    store = far(hierarchy[2], delay=0.1)
    assert omnizarr.open_array(store, path="a7", zarr_format=2).attrs["number"] == 7
    assert sorted(store.log) == [("get", "a7/.zarray"), ("get", "a7/.zattrs")]
    assert store.max_in_flight == 2


def test_members_without_consolidation_are_a_listing_and_gets_side_by_side():
    inner = MemoryStore()
    root = omnizarr.open_group(inner, mode="w")
    for number in range(1000):
        root.create_array(f"a{number}", shape=(4,), dtype="f4")
    store = far(inner, delay=0.02)
    members = omnizarr.open_group(store).members()
    assert [name for name, _ in members] == sorted(f"a{number}" for number in range(1000))
    assert store.requests == {"get": 1001, "list_dir": 1}
    assert store.max_in_flight == FAR


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_manual_says_how_many_requests_opening_and_listing_take(zarr_format):
    inner = MemoryStore()
    root = omnizarr.open_group(inner, mode="w", zarr_format=zarr_format)
    for number in range(7):
        root.create_array(f"a{number}", shape=(4,), dtype="f4")
    store = far(inner)
    omnizarr.open(store, path="a3", mode="r")
    opening = len(store.log)
    group = omnizarr.open_group(store, mode="r")
    store.log.clear()
    assert len(dict(group.members())) == 7
    once, each = len(store.log) % 7, len(store.log) // 7
    manual = Path(__file__).parents[1].joinpath("docs", "stores.md").read_text("utf-8")
    rows = dict(re.findall(r"(?m)^\| (open an array.*|list members.*) \| (.*) \|$", manual))
    listed = rows["list members without consolidated metadata"]
    if zarr_format == 3:
        assert rows["open an array, or a group, of Zarr v3"] == f"{opening}"
        assert listed.startswith(f"{once}, then {each} per member, all at once;")
    else:
        assert rows["open an array of Zarr v2"].startswith(f"{opening}, ")
        assert listed.endswith(f"of Zarr v2 {once}, then {each} per member")


@pytest.mark.parametrize(("zarr_format", "most"), [(None, 11), (3, 5), (2, 8)])
def test_missing_node_is_found_missing_without_asking_twice(zarr_format, most):
    inner = MemoryStore()
    root = omnizarr.open_group(inner, mode="w")
    for name in ("temp", "salt"):
        root.create_array(f"ocean/{name}", shape=(4,), dtype="f4")
    store = far(inner)
    with pytest.raises(omnizarr.errors.NodeNotFoundError, match="did you mean 'ocean/temp'"):
        omnizarr.open(store, path="ocean/tmep", mode="r", zarr_format=zarr_format)
    assert len(store.log) == len(set(store.log)) == most


def test_groups_of_one_depth_are_looked_into_side_by_side():
    inner = MemoryStore()
    root = omnizarr.open_group(inner, mode="w")
    for number in range(20):
        root.create_array(f"g{number}/b", shape=(4,), dtype="f4")
    store = far(inner, delay=0.1)
    assert len(omnizarr.open_group(store).members(max_depth=None)) == 40
    assert store.requests == {"get": 41, "list_dir": 21}
    assert store.max_in_flight == 20


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_chunks_arrive_side_by_side_one_request_each(engine):
    values = np.arange(100 * 64, dtype="f8").reshape(100, 64)
    inner = MemoryStore()
    omnizarr.create_array(inner, data=values, chunks=(1, 64))
    with omnizarr.config.set({"engine": engine}):
        store = far(inner, delay=0.1)
        array = omnizarr.open_array(store)
        store.reset()
        np.testing.assert_array_equal(array[:], values)
        assert sum(store.requests.values()) == 100
        assert store.max_in_flight == FAR


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_chunks_are_sent_side_by_side_one_request_each(engine):
    values = np.arange(100 * 64, dtype="f8").reshape(100, 64)
    store = far(MemoryStore(), delay=0.1)
    with omnizarr.config.set({"engine": engine}):
        array = omnizarr.create_array(store, shape=values.shape, dtype="f8", chunks=(1, 64))
        store.reset()
        array[:] = values
        assert store.requests == {"set": 100}
        assert store.max_in_flight == FAR
        np.testing.assert_array_equal(array[:], values)


@pytest.mark.parametrize(("concurrency", "most"), [(None, 4), (2, 2)])
@pytest.mark.parametrize("engine", ["reference", "native"])
def test_large_chunks_are_few_at_once(engine, concurrency, most, monkeypatch):
    # 128 MiB each: 256 MiB are two of them, and four are the least.
    inner = MemoryStore()
    chunk = 128 * 2**20
    omnizarr.create_array(inner, shape=(8 * chunk,), chunks=(chunk,), dtype="u1", fill_value=7, compressors="auto")
    store = far(inner, delay=0.05)
    with omnizarr.config.set({"engine": engine}):
        array = omnizarr.open_array(store, concurrency=concurrency)
        store.reset()
        assert (array[:: chunk // 2] == 7).all()
        assert store.max_in_flight == most


# -- shards -----------------------------------------------------------------------------


SHARDED = np.arange(64 * 4096, dtype="f8").reshape(64, 4096)


@pytest.fixture(scope="module")
def sharded():
    """A store of S3's kind in memory, with one shard of 2 MiB in it: 64 x 32 inner chunks of 1 KiB."""
    store = ObjectStore(obstore.store.MemoryStore(), concurrency=FAR)
    omnizarr.create_array(store, data=SHARDED, chunks=(1, 128), shards=(64, 4096), compressors=None)
    return store


@pytest.mark.parametrize(
    ("window", "spans"),
    [
        ((slice(0, 1), slice(0, 4096)), 1),  # a row: one run
        ((slice(0, 4), slice(128, 256)), 1),  # gaps of 31 KiB: closed
        ((slice(0, 64, 16), slice(0, 128)), 4),  # gaps of half a MiB: left
    ],
)
def test_window_over_a_shard_is_its_index_and_coalesced_ranges(sharded, window, spans, monkeypatch):
    store = FaultyStore(sharded)
    array = omnizarr.open_array(store)
    store.reset()
    asked = []
    known = type(store.store)._direct
    original = known[verbs.pinned]

    def pinned(asked_store, key):
        read = original(asked_store, key)

        def watched(parts):
            asked.append(parts)
            return read(parts)

        return watched

    monkeypatch.setitem(known, verbs.pinned, pinned)
    np.testing.assert_array_equal(array[window], SHARDED[window])
    index, ranges = asked
    assert index == [(-(64 * 32 * 16 + 4), None)]
    assert len(ranges) == spans


def test_whole_shard_is_one_request(sharded):
    store = FaultyStore(sharded)
    array = omnizarr.open_array(store)
    store.reset()
    np.testing.assert_array_equal(array[:], SHARDED)
    assert sum(store.requests.values()) == 1


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize("layout", [{"chunks": (1, 128), "shards": (64, 4096)}, {"chunks": (64, 4096)}])
def test_element_of_a_large_chunk_in_a_store_nearby_is_not_all_of_it(engine, layout):
    inner = MemoryStore()
    omnizarr.create_array(inner, data=SHARDED, compressors=None, **layout)
    store = FaultyStore(inner)
    with omnizarr.config.set({"engine": engine}):
        array = omnizarr.open_array(store)
        store.reset()
        assert array[3, 5] == SHARDED[3, 5]
        assert store.bytes_read < SHARDED.nbytes // 20


# -- each operation ---------------------------------------------------------------------


OPERATIONS = {
    "open array": ("", lambda store: omnizarr.open(store, path="g/a")),
    "open array, a": ("", lambda store: omnizarr.open_array(store, path="g/a", mode="a")),
    "open group": ("", omnizarr.open_group),
    "open group, a": ("", lambda store: omnizarr.open_group(store, mode="a")),
    "open consolidated": ("", lambda store: omnizarr.open_group(store, use_consolidated=True)),
    "create group, w": ("", lambda store: omnizarr.open_group(store, path="new", mode="w")),
    "group[name]": ("g", lambda group: group["a"]),
    "name in group": ("g", lambda group: "a" in group),
    "name not in group": ("g", lambda group: "b" in group),
    "get missing data": ("g", lambda group: group.get("b")),
    "members": ("/", lambda group: group.members(max_depth=None)),
    "list": ("g", list),
    "overwrite array": ("g", lambda group: group.create_array("a", shape=(4, 2), dtype="i4", overwrite=True)),
    "overwrite array of another rank": (
        "g",
        lambda group: group.create_array("a", shape=(4,), dtype="i4", overwrite=True),
    ),
    "create array": ("g", lambda group: group.create_array("new", shape=(4,), dtype="i4")),
    "create group": ("g", lambda group: group.create_group("new")),
    "require group": ("/", lambda group: group.require_group("g")),
    "require new group": ("/", lambda group: group.require_group("new")),
    "require array": ("g", lambda group: group.require_array("a", shape=(4, 6), dtype="i4")),
    "require new array": ("g", lambda group: group.require_array("b", shape=(4, 6), dtype="i4")),
    "delete array": ("g", lambda group: group.__delitem__("a")),
    "read attributes": ("g/a", lambda array: dict(array.attrs)),
    "change attributes": ("g/a", lambda array: array.attrs.update(x=1)),
    "change attributes of group": ("g", lambda group: group.attrs.update(x=1)),
    "append": ("g/a", lambda array: array.append(np.ones((2, 6)))),
    "grow": ("g/a", lambda array: array.resize((6, 6))),
    "shrink": ("g/a", lambda array: array.resize((2, 6))),
    "read a chunk": ("g/a", lambda array: array[:2, :3]),
    "write a chunk": ("g/a", lambda array: array.__setitem__((slice(0, 2), slice(0, 3)), 5)),
    "write part of a chunk": ("g/a", lambda array: array.__setitem__((0, 0), 5)),
    "consolidate": ("", omnizarr.consolidate_metadata),
}
"""What each begins with (a store, or an open node of it) and does; nodes are g and g/a, 4 x 6 in chunks of 2 x 3."""

EXPECTED = {
    3: {
        "open array": "get g/a/zarr.json",
        "open array, a": "get g/a/zarr.json",
        "open group": "get zarr.json",
        "open group, a": "get zarr.json",
        "open consolidated": "get zarr.json",
        "create group, w": (
            "get zarr.json, get new/zarr.json, get new/.zarray, get new/.zgroup, get new/.zmetadata, "
            "get new/meta, get new/__zmeta__, get new/omnizarr-conversion.json, set new/zarr.json"
        ),
        "group[name]": "get g/a/zarr.json",
        "name in group": "get g/a/zarr.json",
        "name not in group": (
            "get g/b/zarr.json, get g/b/.zarray, get g/b/.zattrs, get g/b/.zgroup, get g/b/.zmetadata, "
            "get g/b/meta, get g/b/__zmeta__, get g/zarr.json, list_dir g/b/"
        ),
        "get missing data": (
            "get g/b/zarr.json, get g/b/.zarray, get g/b/.zattrs, get g/b/.zgroup, get g/b/.zmetadata, "
            "get g/b/meta, get g/b/__zmeta__, get g/zarr.json, list_dir g/b/"
        ),
        "members": "list_dir , get g/zarr.json, list_dir g/, get g/a/zarr.json",
        "create array": (
            "get g/zarr.json, get zarr.json, get g/new/zarr.json, get g/new/.zarray, get g/new/.zgroup, "
            "get g/new/.zmetadata, get g/new/meta, get g/new/__zmeta__, set g/new/zarr.json"
        ),
        "create group": (
            "get g/zarr.json, get zarr.json, get g/new/zarr.json, get g/new/.zarray, get g/new/.zgroup, "
            "get g/new/.zmetadata, get g/new/meta, get g/new/__zmeta__, set g/new/zarr.json"
        ),
        "require group": "get g/zarr.json",
        "require new group": (
            "get new/zarr.json, get new/.zgroup, get new/.zattrs, get new/.zarray, get new/.zmetadata, "
            "get new/meta, get new/__zmeta__, get zarr.json, get new/zarr.json, "
            "get new/.zarray, get new/.zgroup, get new/.zmetadata, get new/meta, get new/__zmeta__, "
            "set new/zarr.json"
        ),
        "require array": "get g/a/zarr.json",
        "require new array": (
            "get g/b/zarr.json, get g/b/.zarray, get g/b/.zattrs, get g/b/.zgroup, get g/b/.zmetadata, "
            "get g/b/meta, get g/b/__zmeta__, get g/zarr.json, get zarr.json, get g/b/zarr.json, get g/b/.zarray, "
            "get g/b/.zgroup, get g/b/.zmetadata, get g/b/meta, get g/b/__zmeta__, set g/b/zarr.json"
        ),
        "list": "list_dir g/, get g/a/zarr.json",
        "overwrite array": (
            "get g/zarr.json, get zarr.json, get g/a/zarr.json, get g/a/zarr.json, list_prefix g/a/, "
            "delete g/a/zarr.json, delete_prefix g/a/, set g/a/zarr.json, exists .zmetadata, exists g/.zmetadata"
        ),
        "overwrite array of another rank": (
            "get g/zarr.json, get zarr.json, get g/a/zarr.json, get g/a/zarr.json, list_prefix g/a/, "
            "set g/a/omnizarr-conversion.json, delete g/a/zarr.json, list_dir g/a/, delete_prefix g/a/c/, "
            "delete g/a/omnizarr-conversion.json, delete_prefix g/a/, set g/a/zarr.json, exists .zmetadata, "
            "exists g/.zmetadata"
        ),
        "delete array": (
            "get g/a/zarr.json, delete_prefix g/a/, get zarr.json, exists .zmetadata, get g/zarr.json, "
            "exists g/.zmetadata"
        ),
        "read attributes": "",
        "change attributes": "get g/a/zarr.json, set g/a/zarr.json, get zarr.json, get g/zarr.json",
        "change attributes of group": "get g/zarr.json, set g/zarr.json, get zarr.json",
        "append": "get g/a/zarr.json, set g/a/c/2/0, set g/a/c/2/1, set g/a/zarr.json, get zarr.json, get g/zarr.json",
        "grow": (
            "get g/a/zarr.json, exists g/a/c/2/0, exists g/a/c/2/1, set g/a/zarr.json, get zarr.json, get g/zarr.json"
        ),
        "shrink": (
            "get g/a/zarr.json, set g/a/zarr.json, delete g/a/c/1/0, delete g/a/c/1/1, get zarr.json, get g/zarr.json"
        ),
        "read a chunk": "get g/a/c/0/0",
        "write a chunk": "set g/a/c/0/0",
        "write part of a chunk": "get g/a/c/0/0, set g/a/c/0/0",
        "consolidate": (
            "get zarr.json, get zarr.json, list_dir , get g/zarr.json, list_dir g/, get g/a/zarr.json, set zarr.json"
        ),
    },
    2: {
        "open array": "get g/a/zarr.json, get g/a/.zarray, get g/a/.zattrs",
        "open array, a": "get g/a/zarr.json, get g/a/.zarray, get g/a/.zattrs",
        "open group": "get zarr.json, get .zgroup, get .zattrs",
        "open group, a": "get zarr.json, get .zgroup, get .zattrs",
        "open consolidated": "get zarr.json, get .zgroup, get .zattrs, get .zmetadata",
        "create group, w": (
            "get zarr.json, get .zgroup, get .zattrs, get new/zarr.json, get new/.zarray, get new/.zgroup, "
            "get new/.zmetadata, get new/meta, get new/__zmeta__, get new/omnizarr-conversion.json, set new/.zgroup, "
            "exists .zmetadata"
        ),
        "group[name]": "get g/.zmetadata, get g/a/.zarray, get g/a/.zattrs",
        "name in group": "get g/.zmetadata, get g/a/.zarray, get g/a/.zattrs",
        "name not in group": (
            "get g/.zmetadata, get g/b/.zarray, get g/b/.zattrs, get g/b/.zgroup, get g/b/.zmetadata, "
            "get g/b/meta, get g/b/__zmeta__, get g/b/zarr.json, get g/zarr.json, get zarr.json, "
            "list_dir g/b/"
        ),
        "get missing data": (
            "get g/.zmetadata, get g/b/.zarray, get g/b/.zattrs, get g/b/.zgroup, get g/b/.zmetadata, "
            "get g/b/meta, get g/b/__zmeta__, get g/b/zarr.json, get g/zarr.json, get zarr.json, "
            "list_dir g/b/"
        ),
        "members": (
            "get .zmetadata, list_dir , get g/.zarray, get g/.zattrs, get g/.zgroup, list_dir g/, "
            "get g/a/.zarray, get g/a/.zattrs"
        ),
        "create array": (
            "get g/.zmetadata, get g/zarr.json, get g/.zgroup, get g/.zattrs, get zarr.json, get .zgroup, "
            "get .zattrs, get g/new/zarr.json, get g/new/.zarray, get g/new/.zgroup, get g/new/.zmetadata, "
            "get g/new/meta, get g/new/__zmeta__, set g/new/.zarray, exists .zmetadata, exists g/.zmetadata"
        ),
        "create group": (
            "get g/zarr.json, get g/.zgroup, get g/.zattrs, get zarr.json, get .zgroup, get .zattrs, "
            "get g/new/zarr.json, get g/new/.zarray, get g/new/.zgroup, get g/new/.zmetadata, get g/new/meta, "
            "get g/new/__zmeta__, set g/new/.zgroup, exists .zmetadata, exists g/.zmetadata, get g/.zmetadata"
        ),
        "require group": "get g/zarr.json, get g/.zgroup, get g/.zattrs, get .zmetadata",
        "require new group": (
            "get new/zarr.json, get new/.zgroup, get new/.zattrs, get new/.zarray, get new/.zmetadata, "
            "get new/meta, get new/__zmeta__, get zarr.json, get .zgroup, get .zattrs, get new/zarr.json, "
            "get new/.zarray, get new/.zgroup, get new/.zmetadata, get new/meta, get new/__zmeta__, "
            "set new/.zgroup, exists .zmetadata, get .zmetadata"
        ),
        "require array": "get g/.zmetadata, get g/a/zarr.json, get g/a/.zarray, get g/a/.zattrs",
        "list": "get g/.zmetadata, list_dir g/, get g/a/.zarray, get g/a/.zattrs",
        "overwrite array": (
            "get g/.zmetadata, get g/zarr.json, get g/.zgroup, get g/.zattrs, get zarr.json, get .zgroup, "
            "get .zattrs, get g/a/zarr.json, get g/a/.zarray, get g/a/zarr.json, get g/a/.zarray, "
            "get g/a/.zattrs, list_prefix g/a/, delete g/a/.zarray, delete g/a/.zattrs, "
            "delete_prefix g/a/, set g/a/.zarray, exists .zmetadata, "
            "get zarr.json, exists g/.zmetadata, get g/zarr.json"
        ),
        "delete array": (
            "get g/.zmetadata, get g/a/.zarray, get g/a/.zattrs, exists g/.nczgroup, delete_prefix g/a/, "
            "get zarr.json, exists .zmetadata, get g/zarr.json, exists g/.zmetadata"
        ),
        "read attributes": "",
        "change attributes": (
            "get g/a/.zarray, get g/a/.zattrs, set g/a/.zattrs, exists .zmetadata, exists g/.zmetadata"
        ),
        "change attributes of group": (
            "get g/.zgroup, get g/.zattrs, set g/.zattrs, exists .zmetadata, exists g/.zmetadata"
        ),
        "append": (
            "get g/a/.nczvar, get g/a/.nczarray, get g/a/.zarray, get g/a/.zattrs, set g/a/2.0, set g/a/2.1, "
            "set g/a/.zarray, exists .zmetadata, exists g/.zmetadata"
        ),
        "grow": (
            "get g/a/.nczvar, get g/a/.nczarray, get g/a/.zarray, get g/a/.zattrs, exists g/a/2.0, exists g/a/2.1, "
            "set g/a/.zarray, "
            "exists .zmetadata, exists g/.zmetadata"
        ),
        "shrink": (
            "get g/a/.nczvar, get g/a/.nczarray, get g/a/.zarray, get g/a/.zattrs, set g/a/.zarray, "
            "delete g/a/1.0, delete g/a/1.1, "
            "exists .zmetadata, exists g/.zmetadata"
        ),
        "read a chunk": "get g/a/0.0",
        "write a chunk": "set g/a/0.0",
        "write part of a chunk": "get g/a/0.0, set g/a/0.0",
        "consolidate": (
            "get zarr.json, get .zgroup, get .zattrs, get .zgroup, get .zattrs, list_dir , get g/.zarray, "
            "get g/.zattrs, get g/.zgroup, list_dir g/, get g/a/.zarray, get g/a/.zattrs, set .zmetadata"
        ),
    },
    "3-draft2019": {
        "open array": (
            "get g/a/zarr.json, get g/a/.zarray, get g/a/.zattrs, get g/a/.zgroup, get g/a/.zmetadata, "
            "get g/a/meta, get g/a/__zmeta__, get g/zarr.json, get zarr.json, get meta/root/g/a.array"
        ),
        "open group": "get zarr.json, get meta/root.group",
        "group[name]": "get meta/root/g/a.array",
        "name in group": "get meta/root/g/a.array",
        "name not in group": "get meta/root/g/b.array, get meta/root/g/b.group, list_dir meta/root/g/b/",
        "get missing data": "get meta/root/g/b.array, get meta/root/g/b.group, list_dir meta/root/g/b/",
        "members": (
            "list_dir meta/root/, get meta/root/g.array, get meta/root/g.group, list_dir meta/root/g/, "
            "get meta/root/g/a.array"
        ),
        "create array": (
            "get meta/root.group, get meta/root/g.group, list_dir meta/root/g/, get meta/root/g/new.array, "
            "get meta/root/g/new.group, set meta/root/g/new.array"
        ),
        "require group": "get meta/root/g.group",
        "require array": "get meta/root/g/a.array",
        "change attributes": "get meta/root/g/a.array, set meta/root/g/a.array",
        "change attributes of group": "get meta/root/g.group, set meta/root/g.group",
        "append": "get meta/root/g/a.array, set data/g/a/2.0, set data/g/a/2.1, set meta/root/g/a.array",
        "read a chunk": "get data/g/a/0.0",
        "write a chunk": "set data/g/a/0.0",
    },
    "3-draft2020": {
        "open array": (
            "get g/a/zarr.json, get g/a/.zarray, get g/a/.zattrs, get g/a/.zgroup, get g/a/.zmetadata, "
            "get g/a/meta, get g/a/__zmeta__, get g/zarr.json, get zarr.json, get meta/root/g/a.array.json"
        ),
        "open group": "get zarr.json, get meta/root.group.json",
        "group[name]": "get meta/root/g/a.array.json",
        "name in group": "get meta/root/g/a.array.json",
        "name not in group": "get meta/root/g/b.array.json, get meta/root/g/b.group.json, list_dir meta/root/g/b/",
        "get missing data": ("get meta/root/g/b.array.json, get meta/root/g/b.group.json, list_dir meta/root/g/b/"),
        "members": (
            "get meta/root/consolidated/.zmetadata, list_dir meta/root/, get meta/root/g.array.json, "
            "get meta/root/g.group.json, list_dir meta/root/g/, get meta/root/g/a.array.json"
        ),
        "create array": (
            "get meta/root.group.json, get meta/root/g.group.json, get meta/root/g/new.array.json, "
            "get meta/root/g/new.group.json, set meta/root/g/new.array.json, "
            "exists meta/root/consolidated/.zmetadata"
        ),
        "require group": "get meta/root/g.group.json, get meta/root/consolidated/.zmetadata",
        "require array": "get meta/root/g/a.array.json",
        "change attributes": (
            "get meta/root/g/a.array.json, set meta/root/g/a.array.json, exists meta/root/consolidated/.zmetadata"
        ),
        "change attributes of group": (
            "get meta/root/g.group.json, set meta/root/g.group.json, exists meta/root/consolidated/.zmetadata"
        ),
        "append": (
            "get meta/root/g/a.array.json, set data/root/g/a/c2/0, set data/root/g/a/c2/1, "
            "set meta/root/g/a.array.json, exists meta/root/consolidated/.zmetadata"
        ),
        "read a chunk": "get data/root/g/a/c0/0",
        "write a chunk": "set data/root/g/a/c0/0",
    },
}
"""What is asked for, in its order; locks are left out."""


def requests_of(operation, zarr_format, engine, *, consolidated=False):
    """Return what an operation asks a store for, locks left out, those of side by side in their order."""
    inner = MemoryStore()
    with omnizarr.config.set({"engine": engine}):
        group = omnizarr.create_group(inner, zarr_format=zarr_format).create_group("g")
        group.create_array("a", data=np.arange(24, dtype="i4").reshape(4, 6), chunks=(2, 3), attributes={"u": "m"})
        if consolidated:
            omnizarr.consolidate_metadata(inner)
        store = FaultyStore(inner)
        at, run = OPERATIONS[operation]
        start = store if not at else omnizarr.open(store, path=at.strip("/"), zarr_format=zarr_format)
        store.reset()
        run(start)
    return [f"{verb} {key}" for verb, key in store.log if verb != "lock"]


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize(
    ("zarr_format", "operation"), [(format_, name) for format_, table in EXPECTED.items() for name in table]
)
def test_operation_asks_for_each_thing_once(zarr_format, operation, engine):
    asked = requests_of(operation, zarr_format, engine, consolidated=operation == "open consolidated")
    assert ", ".join(asked) == EXPECTED[zarr_format][operation]


@pytest.mark.parametrize("operation", ["append", "grow", "shrink"])
def test_growth_far_away_does_not_ask_for_what_only_netcdf_c_4_8_0_wrote(operation):
    inner = MemoryStore()
    omnizarr.create_array(inner, data=np.zeros((4, 6), "i4"), chunks=(2, 3), zarr_format=2)
    array = omnizarr.open_array(store := far(inner), mode="r+", zarr_format=2)
    store.reset()
    OPERATIONS[operation][1](array)
    assert not [key for _, key in store.log if key and ".ncz" in key]
    assert [key for _, key in store.log if key == ".zarray"]


COPIED = {
    "change attributes": (
        "get g/a/zarr.json, set g/a/zarr.json, get zarr.json, get g/a/zarr.json, set zarr.json, get g/zarr.json"
    ),
    "append": (
        "get g/a/zarr.json, set g/a/c/2/0, set g/a/c/2/1, set g/a/zarr.json, "
        "get zarr.json, get g/a/zarr.json, set zarr.json, get g/zarr.json"
    ),
    "delete array": (
        "delete_prefix g/a/, get zarr.json, get g/a/zarr.json, set zarr.json, "
        "exists .zmetadata, get g/zarr.json, exists g/.zmetadata"
    ),
}


@pytest.mark.parametrize("operation", COPIED)
def test_copies_in_consolidated_metadata_are_renewed_with_two_reads(operation):
    inner = MemoryStore()
    root = omnizarr.create_group(inner)
    root.create_array("g/a", shape=(4, 6), chunks=(2, 3), dtype="i4", attributes={"u": "m"})
    omnizarr.consolidate_metadata(inner)
    store = FaultyStore(inner)
    at, run = OPERATIONS[operation]
    start = omnizarr.open_group(store, use_consolidated=True)[at.strip("/")]
    store.reset()
    run(start)
    assert ", ".join(f"{verb} {key}" for verb, key in store.log if verb != "lock") == COPIED[operation]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_groups_above_a_change_are_looked_at_side_by_side(zarr_format):
    inner = MemoryStore()
    omnizarr.create_array(inner, name="a/b/c/d", shape=(4,), dtype="i4", zarr_format=zarr_format)
    array = omnizarr.open_array(store := far(inner, delay=0.2), path="a/b/c/d", mode="r+", zarr_format=zarr_format)
    store.reset()
    array.resize((6,))
    asked = {2: ("exists", ".zmetadata"), 3: ("get", "zarr.json")}[zarr_format]
    above = [(verb, key) for verb, key in store.log if (verb, key.rpartition("/")[2]) == asked and "d/" not in key]
    assert sorted(key.rpartition("/")[0] for _, key in above) == ["", "a", "a/b", "a/b/c"]
    assert store.max_in_flight == 4


@pytest.fixture
def sent(monkeypatch):
    """The requests that object stores send: function of obstore, and key."""
    found = []
    call = ObjectStore._call

    def counted(store, function, *args, **how):
        if (name := getattr(function, "__name__", "").partition("_")[0]) in {"get", "head", "put", "list", "delete"}:
            found.append((name, args[1]))
        return call(store, function, *args, **how)

    monkeypatch.setattr(ObjectStore, "_call", counted)
    return found


@pytest.mark.parametrize(
    ("zarr_format", "expected"),
    [
        (3, "get zarr.json, get g/zarr.json, list g/new/, put g/new/zarr.json"),
        (
            2,
            (
                "get zarr.json, get .zgroup, get .zattrs, get g/zarr.json, get g/.zgroup, get g/.zattrs, list g/new/, "
                "put g/new/.zattrs, put g/new/.zarray, head .zmetadata, head g/.zmetadata"
            ),
        ),
    ],
)
@pytest.mark.parametrize("kind", ["array", "group"])
def test_node_in_an_object_store_is_created_with_a_listing_and_a_request_for_each_document(
    zarr_format, expected, kind, sent
):
    group = omnizarr.create_group(ObjectStore(obstore.store.MemoryStore()), path="g", zarr_format=zarr_format)
    sent.clear()
    if kind == "array":
        group.create_array("new", shape=(4,), dtype="i4", attributes={"u": "m"})
    else:
        group.create_group("new", attributes={"u": "m"})
        expected = expected.replace(".zarray", ".zgroup")
    assert [f"{verb} {key}" for verb, key in sent if verb != "get"] == [
        each for each in expected.split(", ") if not each.startswith("get")
    ]
    assert sorted(f"{verb} {key}" for verb, key in sent) == sorted(expected.split(", "))


@pytest.mark.parametrize("other", ["zarr.json", ".zarray", ".zgroup", ".zmetadata", "__zmeta__"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nothing_is_written_where_a_document_of_any_format_lies(zarr_format, other, sent):
    store = ObjectStore(obstore.store.MemoryStore())
    made = omnizarr.create_array({}, shape=(7,), dtype="u1", zarr_format=3 if other == "zarr.json" else 2)
    value = {
        "__zmeta__": b"{}",
        ".zgroup": b'{"zarr_format": 2}',
        ".zmetadata": b'{"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}}}',
    }.get(other)
    store.set(f"g/a/{other}", value or made.store.get(other))
    group = omnizarr.create_group(store, path="g", zarr_format=zarr_format)
    sent.clear()
    errors = omnizarr.errors
    with pytest.raises((errors.ContainsArrayError, errors.ContainsGroupError, errors.MetadataError)):
        group.create_array("a", shape=(4,), dtype="i4", attributes={"u": "m"})
    assert not [each for each in sent if each[0] == "put"]
    assert list(store.list_prefix("g/a/")) == [f"g/a/{other}"]


def test_whether_a_store_begins_below_a_group_is_asked_once():
    bucket = obstore.store.MemoryStore()
    store = far(ObjectStore(bucket, prefix="data/temp", concurrency=FAR))
    outside = far(ObjectStore(bucket, prefix="data", concurrency=FAR))
    store.above = lambda: (outside, "temp")
    array = omnizarr.create_array(store, shape=(4,), dtype="i4")
    for length in (5, 6, 7):
        array.resize((length,))
    assert sorted(outside.log) == [("exists", ".zgroup"), ("exists", ".zmetadata"), ("exists", "zarr.json")]


@pytest.mark.parametrize(("zarr_format", "copies"), [(2, ("exists", ".zmetadata")), (3, ("get", "zarr.json"))])
def test_copies_of_a_new_node_are_looked_for_in_its_format_alone(zarr_format, copies):
    bucket = obstore.store.MemoryStore()
    store = far(ObjectStore(bucket, prefix="data/temp", concurrency=FAR))
    outside = far(ObjectStore(bucket, prefix="data", concurrency=FAR))
    omnizarr.create_group(outside.store, zarr_format=zarr_format)
    store.above = lambda: (outside, "temp")
    omnizarr.create_array(store, shape=(4,), dtype="i4", zarr_format=zarr_format)
    groups = [("exists", ".zgroup"), ("exists", ".zmetadata"), ("exists", "zarr.json")]
    assert Counter(outside.log) <= Counter([*groups, copies])
    assert copies in outside.log


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_documents_that_hardly_any_node_has_are_asked_for_side_by_side(zarr_format):
    inner = MemoryStore()
    omnizarr.create_group(inner, zarr_format=zarr_format)
    store = far(inner, delay=0.2)
    group = omnizarr.open_group(store)
    store.reset()
    assert "b" not in group
    assert store.max_in_flight == 3


def test_documents_of_v1_are_asked_for_once(tmp_path):
    inner = MemoryStore()
    omnizarr.create_array(inner, data=np.arange(4, dtype="i4"), chunks=2, zarr_format=1)
    store = FaultyStore(inner)
    assert omnizarr.open(store).zarr_format == 1
    assert sorted(store.log) == [
        ("get", name)
        for name in (".zarray", ".zattrs", ".zgroup", ".zmetadata", "__zmeta__", "attrs", "meta", "zarr.json")
    ]


# -- each node of a hierarchy -------------------------------------------------------------


NODES = 200


@pytest.fixture(scope="module")
def many_nodes():
    """The values of a group of 10 groups with 20 arrays each, of which one chunk is stored."""
    inner = MemoryStore()
    root = omnizarr.open_group(inner, mode="w")
    for number in range(NODES):
        array = root.create_array(f"g{number % 10}/a{number}", shape=(4,), dtype="f4", attributes={"number": number})
        array[:] = number + 1
    return {key: inner.get(key) for key in inner.list()}


def read_only(values):
    return FaultyStore(MemoryStore(dict(values), read_only=True), concurrency=FAR, delay=0.005)


READING = {
    "stat": (omnizarr.stat, 1, {"list_prefix": 1}),
    "digest": (omnizarr.digest, 1, {"list_prefix": 1}),  # which finds files that are not Zarr, too
    "diff": (omnizarr.diff, 2, {"list_prefix": 2}),
}


@pytest.mark.parametrize("verb", READING)
def test_arrays_are_read_side_by_side_with_a_request_for_document_and_chunk_and_one_listing_for_all(many_nodes, verb):
    run, sides, listings = READING[verb]
    stores = [read_only(many_nodes) for _ in range(sides)]
    run(*stores)
    found = sum((store.requests for store in stores), start=Counter())
    assert found == {"get": sides * (2 * NODES + 11), "list_dir": sides * 11, **listings}
    assert max(store.max_in_flight for store in stores) >= FAR


@pytest.mark.parametrize("verb", READING)
def test_one_array_at_a_time_is_read_if_that_is_asked_for(many_nodes, verb):
    run, sides, _ = READING[verb]
    some = {key: value for key, value in many_nodes.items() if "/" not in key or key.startswith(("g0/zarr", "g0/a0/"))}
    stores = [read_only(some) for _ in range(sides)]
    run(*stores, concurrency=1)
    assert all(store.max_in_flight == 1 for store in stores)


def test_statistics_and_digests_are_those_of_a_store_nearby(many_nodes):
    near, far_away = MemoryStore(many_nodes), read_only(many_nodes)
    assert omnizarr.stat(far_away).arrays == omnizarr.stat(near).arrays
    assert omnizarr.digest(far_away) == omnizarr.digest(near)
    changed = MemoryStore({**many_nodes, "g3/a3/c/0": many_nodes["g4/a4/c/0"]})
    found = omnizarr.diff(read_only(many_nodes), far(changed))
    assert [(each.path, each.kind) for each in found.differences] == [("g3/a3", "values")]


def test_array_with_unreadable_chunks_is_a_problem_among_others(many_nodes):
    store = far(MemoryStore({**many_nodes, "g3/a3/c/0": b"broken"}))
    found = omnizarr.stat(store)
    assert len(found.arrays) == NODES - 1
    assert [path for path, _ in found.problems] == ["g3/a3"]


WRITTEN = ("set", "set_if_absent")


def written(store):
    return sum(store.requests[verb] for verb in WRITTEN)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nodes_are_created_together_with_one_listing_and_a_request_for_each_document(zarr_format):
    template = omnizarr.create_array({}, shape=(4,), dtype="f4", attributes={"x": 1}, zarr_format=zarr_format).metadata
    store = far(MemoryStore(), delay=0.02)
    made = dict(omnizarr.create_hierarchy(store=store, nodes={f"g{n % 4}/a{n}": template for n in range(64)}))
    assert len(made) == 64 + 4 + 1
    # the root is looked for; others replace nothing: what is at a new place is asked for by the request that writes
    documents = {2: 2 * 64 + 5, 3: 64 + 5}[zarr_format]
    assert written(store) == documents
    assert store.requests["list_prefix"] == 1
    assert {key for verb, key in store.log if verb == "get"} <= {key for _, key in store.log if "/" not in key}
    assert store.max_in_flight >= FAR
    assert dict(omnizarr.open_group(store.store).members(max_depth=None)).keys() == made.keys() - {""}


def test_created_nodes_replace_nothing_that_is_there(many_nodes):
    template = omnizarr.create_array({}, shape=(7,), dtype="i4").metadata
    store = far(MemoryStore(dict(many_nodes)))
    with pytest.raises(omnizarr.errors.ContainsArrayError, match="g3/a3"):
        list(omnizarr.create_hierarchy(store=store, nodes={"g3/new": template, "g3/a3": template}))
    assert omnizarr.open_array(store, path="g3/a3").shape == (4,)
    list(omnizarr.create_hierarchy(store=store, nodes={"g3/a3": template, "h/a": template}, overwrite=True))
    assert omnizarr.open_array(store, path="g3/a3").shape == (7,)
    assert store.store.get("g3/a3/c/0") is None
    with pytest.raises(omnizarr.errors.ContainsArrayError):
        list(omnizarr.create_hierarchy(store=store, nodes={"h/a/below": template}))


def test_nodes_created_together_are_in_consolidated_metadata_above():
    template = omnizarr.create_array({}, shape=(4,), dtype="f4").metadata
    store = far(MemoryStore())
    root = omnizarr.create_group(store)
    root.create_array("old", shape=(4,), dtype="f4")
    omnizarr.consolidate_metadata(store)
    list(omnizarr.open_group(store).create_hierarchy({f"g/a{n}": template for n in range(40)}))
    copied = omnizarr.open_group(store.store, use_consolidated=True)
    assert len(dict(copied.members(max_depth=None))) == 42


@pytest.mark.parametrize(("zarr_format", "documents"), [(2, 2), (3, 1)])
def test_nodes_are_converted_to_a_new_place_side_by_side_with_few_requests(many_nodes, zarr_format, documents):
    source, target = read_only(many_nodes), far(MemoryStore(), delay=0.02)
    omnizarr.convert(source, target, zarr_format=zarr_format)
    # document, chunk, and the chunk again to compare; what was listed to be copied is compared
    assert source.requests["get"] <= 3 * NODES + 30
    assert source.requests["list_prefix"] <= 2
    assert written(target) <= (documents + 1) * NODES + documents * 11 + 5
    assert target.requests["get"] <= NODES + 40  # the chunks are compared
    assert target.requests["list_prefix"] <= 2
    assert target.max_in_flight >= FAR // 2
    assert omnizarr.diff(MemoryStore(many_nodes), target.store).equal


@pytest.mark.parametrize(("zarr_format", "documents"), [(2, 2), (3, 1)])
def test_finished_conversion_is_resumed_side_by_side_with_documents_and_chunks_read_once(
    many_nodes, zarr_format, documents
):
    target = MemoryStore()
    omnizarr.convert(MemoryStore(many_nodes), target, zarr_format=zarr_format)
    source, finished = read_only(many_nodes), far(target, delay=0.02)
    done = omnizarr.convert(source, finished, zarr_format=zarr_format, resume=True)
    assert {node.how for node in done.nodes if node.node_type == "array"} == {"done before"}
    assert {node.verified for node in done.nodes if node.node_type == "array"} == {"values"}
    assert source.requests["get"] <= 2 * NODES + 30
    assert finished.requests["get"] <= (documents + 1) * (NODES + 11) + 10
    assert sum(store.requests["list_prefix"] for store in (source, finished)) <= 3
    assert finished.requests["list_dir"] <= 3
    assert finished.max_in_flight >= FAR // 2
    assert not written(finished)


def test_chunk_that_a_finished_conversion_lacks_or_has_too_many_is_found_on_resuming(many_nodes):
    target = MemoryStore()
    omnizarr.convert(MemoryStore(many_nodes), target, zarr_format=3)
    for lacking in (target, MemoryStore(many_nodes)):
        less = MemoryStore({key: lacking.get(key) for key in lacking.list() if key != "g3/a3/c/0"})
        source, finished = (MemoryStore(many_nodes), less) if lacking is target else (less, target)
        with pytest.raises(omnizarr.errors.ChunkError, match="g3/a3"):
            omnizarr.convert(far(source), far(finished), zarr_format=3, resume=True)


def test_arrays_without_chunks_are_deleted_without_reading_them(many_nodes, monkeypatch):
    monkeypatch.setattr("omnizarr.tools.edit.mentions.MOST_LOOKED_AT", 10)
    store = far(MemoryStore({key: value for key, value in many_nodes.items() if "/c/" not in key}), delay=0.005)
    omnizarr.delete_node(store, "g3", recursive=True)
    assert not [key for verb, key in store.log if verb == "get" and key.startswith("g3/a")]
    assert not [key for key in store.store.list() if key.startswith("g3/")]


@pytest.fixture(scope="module")
def many_chunks():
    """An array of v2 with 200 chunks, and what becomes of it in v3: the same bytes."""
    source, target = MemoryStore(), MemoryStore()
    values = np.arange(1, 801).reshape(200, 4)
    omnizarr.create_array(source, data=values, chunks=(1, 4), zarr_format=2, compressors=None)
    omnizarr.convert(source, target, zarr_format=3)
    return source, target


def with_digests(store, hidden="\0"):
    return far(DigestStore(store, hidden))


def test_chunks_of_which_both_stores_list_the_same_digest_are_not_read_on_resuming(many_chunks):
    source, target = map(with_digests, many_chunks)
    done = omnizarr.convert(source, target, zarr_format=3, resume=True)
    assert done.verified
    assert (done.nodes[0].how, done.nodes[0].verified) == ("done before", "bytes")
    assert "not read again" in done.nodes[0].remarks[0]
    assert source.requests["get"] + target.requests["get"] <= 12
    assert sum(store.requests[verb] for store in (source, target) for verb in ("list_prefix", "list_digests")) <= 3
    assert source.requests["exists"] + target.requests["exists"] <= 2


def test_only_chunks_without_a_digest_are_read_on_resuming(many_chunks):
    source, target = many_chunks
    source, target = with_digests(source, "10.0"), with_digests(target, "c/120/")
    assert omnizarr.convert(source, target, zarr_format=3, resume=True).verified
    read = {key for store in (source, target) for _, key in store.log if key.endswith(("/0", ".0"))}
    assert {"110.0", "c/10/0", "120.0", "c/120/0"} <= read
    assert len(read) == 6


@pytest.mark.parametrize("change", ["other", "more", "less"])
@pytest.mark.parametrize("changed", ["source", "target"])
def test_chunk_that_changed_since_a_conversion_is_found_by_its_digest(many_chunks, changed, change):
    stores = [MemoryStore({key: store.get(key) for key in store.list()}) for store in many_chunks]
    key = {"source": "7.0", "target": "c/7/0"}[changed]
    store, other = stores if changed == "source" else reversed(stores)
    match change:
        case "other":
            store.set(key, bytes(32))
        case "less":
            store.delete(key)
        case "more":
            other.delete({"source": "c/7/0", "target": "7.0"}[changed])
    with pytest.raises(omnizarr.errors.ChunkError, match="verification failed"):
        omnizarr.convert(*map(with_digests, stores), zarr_format=3, resume=True)


@pytest.mark.parametrize("options", [{}, {"compressors": "gzip"}, {"chunks": (3, 4)}])
def test_chunks_that_an_interrupted_conversion_wrote_are_listed(many_chunks, options):
    source, inner = many_chunks[0], MemoryStore()
    faulty = FaultyStore(inner)
    faulty.fail("set", 40, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(source, faulty, zarr_format=3, concurrency=1, **options)
    written = sum(key.startswith("c/") for key in inner.list())
    target = far(inner)
    done = omnizarr.convert(far(source), target, zarr_format=3, resume=True, **options)
    assert written > 30
    assert options or done.chunks() == 200 - written  # otherwise, blocks of chunks are written again
    assert target.requests["exists"] <= 40  # it was one for each chunk
    assert target.requests["list_prefix"] <= 4
    assert done.verified
    assert omnizarr.diff(source, inner).equal


@pytest.mark.parametrize("options", [{"compressors": "gzip"}, {"chunks": (3, 4)}])
def test_chunks_are_not_listed_in_vain_when_nothing_is_compared(many_chunks, options):
    """All chunks of the source are read then, so that broken ones are found."""
    source, inner = many_chunks[0], MemoryStore()
    faulty = FaultyStore(inner)
    faulty.fail("set", 40, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(source, faulty, zarr_format=3, concurrency=1, verify=False, **options)
    target = far(inner)
    omnizarr.convert(far(source), target, zarr_format=3, resume=True, verify=False, **options)
    assert not target.requests["list_prefix"]
    assert omnizarr.diff(source, inner).equal


def test_values_of_which_both_stores_list_the_same_digest_are_not_read_when_a_copy_is_resumed(many_chunks):
    source, inner = many_chunks[0], MemoryStore()
    faulty = FaultyStore(inner)
    faulty.fail("set", 150, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        omnizarr.copy_node(source, faulty)
    left = 201 - sum(1 for key in inner.list())
    inner.set("7.0", b"changed")
    for expected in (left + 2, 0):
        old, new = with_digests(source), with_digests(inner)
        done = omnizarr.copy_node(old, new, resume=True)
        assert done.keys - bool(expected) <= expected
        assert old.requests["get"] <= expected + 6
        assert new.requests["get"] <= 2 * expected + 10
        assert old.requests["exists"] <= 2
        assert {key: inner.get(key) for key in inner.list()} == {key: source.get(key) for key in source.list()}
    assert done.remarks == ("the copy was complete already",)


@pytest.mark.parametrize("few", [True, False])
def test_node_is_deleted_with_one_read_of_each_document(many_nodes, few, monkeypatch):
    monkeypatch.setattr("omnizarr.tools.edit.mentions.MOST_LOOKED_AT", 1000 if few else 1)
    store = far(MemoryStore(dict(many_nodes)), delay=0.005)
    omnizarr.delete_node(store, "g3", recursive=True)
    asked = Counter(key for verb, key in store.log if verb == "get" and key.startswith("g3/a"))
    assert set(asked.values()) == {1}
    assert sum(store.requests[verb] for verb in ("list_prefix", "list_sizes", "list_dir")) <= 6
    assert sorted(store.store.list()) == sorted(key for key in many_nodes if not key.startswith("g3/"))
