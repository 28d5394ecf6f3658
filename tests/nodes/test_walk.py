"""The one walk through a hierarchy, and what every verb that uses it makes of stores that cannot list or fail."""

import random
import threading
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import xarray

import omnizarr
from omnizarr import UnreadableNode, netcdf
from omnizarr.errors import MetadataError, StoreError
from omnizarr.nodes import walk as walks
from omnizarr.nodes.walk import walk
from omnizarr.storage import StorePath, TranslatedStore
from omnizarr.stores import MemoryStore
from omnizarr.tools import describe, reaching
from omnizarr.tools.edit import mentions
from omnizarr.web.facts import Dataset
from tests.fakes import FaultyStore, UnlistableStore

pytestmark = pytest.mark.rules

TREE = {"": ["a", "d"], "a": ["a/b", "a/c"], "a/b": [], "a/c": ["a/c/e"], "d": ["d/f"]}
"""Nodes below each group; the others are arrays."""


def below(node):
    return None if node not in TREE else iter(TREE[node])


def recursively(node, depth=0):
    for inner in TREE.get(node, ()):
        yield depth, inner
        yield from recursively(inner, depth + 1)


class TestWalk:
    @pytest.mark.parametrize("concurrency", [1, 4])
    @pytest.mark.parametrize("max_depth", [None, 0, 1, 2, 9])
    def test_a_group_comes_before_its_members(self, max_depth, concurrency):
        expected = [(depth, node) for depth, node in recursively("") if max_depth is None or depth <= max_depth]
        assert list(walk("", below, max_depth=max_depth, concurrency=concurrency)) == expected

    @pytest.mark.parametrize(("max_depth", "expected"), [(0, {""}), (1, {"", "a", "d"}), (None, set(TREE))])
    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_each_group_is_looked_into_once_and_none_too_deep(self, max_depth, expected, concurrency):
        looked_into = []

        def listed(node):
            looked_into.append(node)
            yield from TREE[node]

        walked = walk(
            "", lambda node: listed(node) if node in TREE else None, max_depth=max_depth, concurrency=concurrency
        )
        list(walked)
        assert sorted(looked_into) == sorted(expected)

    def test_a_near_group_is_looked_into_when_the_walk_gets_there(self):
        looked_into = []

        def listed(node):
            looked_into.append(node)
            return below(node)

        assert [node for _, node in islice(walk("", listed), 2)] == ["a", "a/b"]
        assert "d" not in looked_into

    def test_far_groups_of_a_level_are_looked_into_at_the_same_time(self):
        both = threading.Barrier(2, timeout=20)

        def listed(node):
            if node in {"a", "d"}:
                both.wait()
            yield from TREE[node]

        found = walk("", lambda node: listed(node) if node in TREE else None, concurrency=4)
        assert len(list(found)) == 6

    @pytest.mark.parametrize("max_depth", [None, 1, 2])
    @pytest.mark.parametrize("seed", range(20))
    def test_a_large_far_hierarchy_is_walked_in_the_same_order_with_few_nodes_ahead(self, monkeypatch, seed, max_depth):
        monkeypatch.setattr(walks, "_AHEAD", 12)
        monkeypatch.setattr(walks, "_FIRST", 2)
        rng = random.Random(seed)
        tree, looked_into = {"": []}, []
        for number in range(200):
            above = rng.choice(list(tree)[-6:] if seed % 2 else list(tree)[:20])
            node = f"{above}/{number}"
            tree[above].append(node)
            if rng.random() < 0.5:
                tree[node] = []

        def listed(node):
            looked_into.append(node)
            yield from tree[node]

        def look(node):
            return listed(node) if node in tree else None

        expected = list(walk("", lambda node: iter(tree[node]) if node in tree else None, max_depth=max_depth))
        assert list(walk("", look, max_depth=max_depth, concurrency=4)) == expected
        assert len(looked_into) == len(set(looked_into))

    def test_few_nodes_of_a_large_far_hierarchy_wait(self, monkeypatch):
        monkeypatch.setattr(walks, "_AHEAD", 200)
        monkeypatch.setattr(walks, "_FIRST", 2)
        there, most = set(), 0

        class Node:
            def __init__(self, depth):
                self.depth = depth
                there.add(id(self))

            def __del__(self):
                there.discard(id(self))

        def look(node):
            return (Node(node.depth + 1) for _ in range(50)) if node.depth < 2 else None

        for _ in walk(Node(0), look, concurrency=4):
            most = max(most, len(there))
        assert 200 < most < 500  # of 2,550

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_a_hierarchy_may_be_deeper_than_the_stack_of_python(self, concurrency):
        walked = walk(0, lambda node: [node + 1] if node < 5000 else None, concurrency=concurrency)
        assert list(walked) == [(depth, depth + 1) for depth in range(5000)]

    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_what_the_store_raises_is_raised(self, concurrency):
        def listed(node):
            if node == "d":
                raise OSError("the store is gone")
            yield from TREE[node]

        with pytest.raises(OSError, match="gone"):
            list(walk("", lambda node: listed(node) if node in TREE else None, concurrency=concurrency))


# -- verbs and situations ----------------------------------------------------------------


def hierarchy(zarr_format, **attributes):
    values = {}
    root = omnizarr.create_group(values, zarr_format=zarr_format, attributes=attributes)
    root.create_array("g/t", data=np.arange(6), chunks=3)
    root.create_array("x", data=np.arange(6), chunks=2)
    return values


def nczarr(zarr_format):
    values = {}
    with netcdf.Dataset(values, "w", layout="D" if zarr_format == 2 else "v3") as dataset:
        dataset.createDimension("n", 6)
        dataset.createGroup("g").createVariable("t", "i8", ("n",))[:] = np.arange(6)
        dataset.createVariable("x", "i8", ("n",))[:] = np.arange(6)
    return values


def ome(zarr_format):
    image = [{"datasets": [{"path": "x"}, {"path": "g/t"}]}]
    return hierarchy(zarr_format, **({"multiscales": image} if zarr_format == 2 else {"ome": {"multiscales": image}}))


def consolidated(values):
    omnizarr.consolidate_metadata(values)
    return values


def broken(values):
    values[next(key for key in values if key in {"x/.zarray", "x/zarr.json"})] = b"{"
    return values


def without_documents(values):
    """Leave the documents of the root alone, with the copies that it has of others."""
    names = (".zarray", ".zgroup", ".zattrs", "zarr.json")
    return {key: value for key, value in values.items() if "/" not in key or not key.endswith(names)}


ALL, REST = ({"g/t", "x"}, set()), ({"g/t"}, {"x"})
SITUATIONS = {
    "near": (lambda n: MemoryStore(hierarchy(n)), ALL),
    "far": (lambda n: FaultyStore(MemoryStore(hierarchy(n)), concurrency=8), ALL),
    "one node is broken": (lambda n: MemoryStore(broken(hierarchy(n))), REST),
    "far, one node is broken": (lambda n: FaultyStore(MemoryStore(broken(hierarchy(n))), concurrency=8), REST),
    "consolidated": (lambda n: MemoryStore(consolidated(hierarchy(n))), ALL),
    "copies alone": (lambda n: MemoryStore(without_documents(consolidated(hierarchy(n)))), ALL),
    "unlistable, consolidated": (lambda n: UnlistableStore(MemoryStore(consolidated(hierarchy(n)))), ALL),
    "unlistable, copies alone": (
        lambda n: UnlistableStore(MemoryStore(without_documents(consolidated(hierarchy(n))))),
        ALL,
    ),
    "unlistable, named by NCZarr": (lambda n: UnlistableStore(MemoryStore(nczarr(n))), ALL),
    "unlistable, named by NCZarr, one node is broken": (
        lambda n: UnlistableStore(MemoryStore(broken(nczarr(n)))),
        REST,
    ),
    "unlistable, named by OME-Zarr": (lambda n: UnlistableStore(MemoryStore(ome(n))), ALL),
    "unlistable, one of OME-Zarr is broken": (lambda n: UnlistableStore(MemoryStore(broken(ome(n)))), REST),
    "unlistable, named by nothing": (lambda n: UnlistableStore(MemoryStore(hierarchy(n))), None),
}
"""Stores, and the arrays in them that can be read, and the nodes that cannot; None: the members cannot be known."""


def by_tree(store):
    group = reaching.with_members(omnizarr.open_group(store, mode="r"))
    reaching.check_members(group)
    nodes = [node for _, node in describe.walk(group)]
    arrays = {node.path for node in nodes if isinstance(node, omnizarr.Array)}
    return arrays, {node.path for node in nodes if not isinstance(node, omnizarr.Array | omnizarr.Group)}


def by_page(store):
    dataset = Dataset(omnizarr.open_group(store, mode="r"), "here")
    found = dataset.tree()
    if not found["total"]:
        raise StoreError(found["note"])
    nodes = [*found["nodes"], *dataset.tree("g")["nodes"]]
    arrays = {node["path"] for node in nodes if node["kind"] == "array"}
    return arrays, {node["path"] for node in nodes if "error" in node}


def by_du(store):
    found = omnizarr.du(store)
    if any(node.problem and not node.path for node in found.nodes):
        raise StoreError(found.unlisted)
    arrays = {node.path for node in found.nodes if node.node_type == "array"}
    return arrays, {node.path for node in found.nodes if node.node_type == "unreadable"}


def by_digest(store):
    return {node.path for node in omnizarr.digest(store).nodes if node.kind == "array"}, set()


def by_stat(store):
    found = omnizarr.stat(store)
    return {array.path for array in found.arrays}, {path for path, _ in found.problems}


def by_diff(store):
    found = omnizarr.diff(store, store)
    problems = {path for path, _ in found.problems}
    arrays = {"g/t", "x"} - problems
    assert (found.nodes, found.elements, found.differences) == (4, 6 * len(arrays), ())
    return arrays, problems


def by_convert(store):
    target = {}
    found = omnizarr.convert(store, target, zarr_format=3)
    members = omnizarr.open_group(target, mode="r").members(max_depth=None)
    arrays = {path for path, node in members if isinstance(node, omnizarr.Array)}
    return arrays, {node.path for node in found.nodes if node.how == "left out"}


def by_members(store):
    nodes = dict(omnizarr.open_group(store, mode="r").members(max_depth=None))
    arrays = {path for path, node in nodes.items() if isinstance(node, omnizarr.Array)}
    return arrays, {path for path, node in nodes.items() if isinstance(node, UnreadableNode)}


def by_search(store):
    dataset = Dataset(omnizarr.open_group(store, mode="r"), "here")
    nodes = dataset.search("")["nodes"]
    if any("error" in node and not node["path"] for node in nodes):
        raise StoreError(nodes[0]["error"])
    arrays = {node["path"] for node in nodes if node["kind"] == "array"}
    return arrays, {node["path"] for node in nodes if "error" in node}


def by_view(store):
    arrays, unreadable = by_members(TranslatedStore(store, 3))
    assert unreadable == set()  # the view leaves them out
    return arrays, {"g/t", "x"} - arrays


def by_check(store):
    found = omnizarr.check(store)
    problems = {each.path for each in found.findings if each.path and each.severity == "error"}
    if any("members of this group, which nothing names" in each.message for each in found.findings):
        raise StoreError("nothing names them")
    assert found.nodes == 4
    return {"g/t", "x"} - problems, problems


def by_copy_node(store):
    target = MemoryStore({})
    omnizarr.copy_node(store, target)
    return by_members(target)


def by_xarray(store):
    found = xarray.open_datatree(store, engine="omnizarr", mask_and_scale=False)
    arrays = {f"{node.path}/{name}".strip("/") for node in found.subtree for name in node.ds.variables}
    return arrays, {"g/t", "x"} - arrays


def by_netcdf(store):
    root = netcdf.Dataset(store)
    arrays = {f"{group.path}/{name}".strip("/") for group in [root, *root.groups.values()] for name in group.variables}
    return arrays, {"g/t", "x"} - arrays


VERBS = [
    *(by_members, by_tree, by_page, by_search, by_du, by_digest, by_stat, by_diff, by_convert, by_view, by_check),
    *(by_copy_node, by_xarray, by_netcdf),
]
OTHERWISE = {
    **{(by_digest, name): MetadataError for name, (_, expected) in SITUATIONS.items() if expected == REST},
    **{
        (verb, name): StoreError
        for verb in (by_digest, by_stat, by_diff, by_copy_node)
        for name in SITUATIONS
        if "OME" in name
    },
    (by_copy_node, "unlistable, named by NCZarr, one node is broken"): MetadataError,
    **{(verb, "unlistable, named by nothing"): StoreError for verb in VERBS},
    (by_du, "copies alone"): (set(), set()),
}
"""What is not as elsewhere: there is no digest of a part, as of all that a document names of what may be more, `du`
counts what is stored, and no verb takes unknown members for none."""


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("verb", VERBS)
def test_all_verbs_find_the_same_nodes(verb, situation, zarr_format):
    make, expected = SITUATIONS[situation]
    expected = OTHERWISE.get((verb, situation), expected)
    if isinstance(expected, type):
        with pytest.raises(expected):
            verb(make(zarr_format))
    else:
        assert verb(make(zarr_format)) == expected


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_that_there_may_be_others_than_ome_zarr_names_is_said_or_refused(zarr_format):
    store = UnlistableStore(MemoryStore(ome(zarr_format)))
    told = "members as OME-Zarr names them, there may be others"
    assert told in str(omnizarr.convert(store, {}, zarr_format=3))
    assert told in omnizarr.du(store).unlisted
    for refusing in (omnizarr.digest, omnizarr.stat, lambda place: omnizarr.copy_node(place, MemoryStore({}))):
        with pytest.raises(StoreError, match=f"cannot list: {told}"):
            refusing(store)


@pytest.mark.parametrize("key", ["g/zarr.json", "g/t/zarr.json", "x/zarr.json"])
def test_what_refers_to_moved_nodes_is_looked_for_in_one_walk(key):
    store = FaultyStore(MemoryStore(hierarchy(3)))
    assert mentions.around(StorePath(store)).keys() == {"", "g", "g/t", "x"}
    assert [asked for _, asked in store.log].count(key) == 1


def test_what_a_listing_raises_is_said_in_one_place():
    """`NOT_LISTED`, which forgets neither of the two."""
    root = Path(omnizarr.__file__).parent
    found = [path for path in root.rglob("*.py") if "StoreError, NotImplementedError" in path.read_text("utf-8")]
    assert found == [root / "stores" / "base.py"]
