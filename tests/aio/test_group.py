import asyncio
import warnings

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.errors import (
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
)
from omnizarr.metadata import GroupMetadata
from tests.aio.stores import KINDS, Counting, objects, run


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    with KINDS[request.param](tmp_path) as store:
        yield store


def filled(store, zarr_format=3, consolidated=False):
    root = omnizarr.create_group(store, zarr_format=zarr_format, attributes={"title": "all"})
    for path in ("a", "b/c", "b/d/e"):
        root.create_array(path, data=np.arange(6).reshape(2, 3), chunks=(1, 2), attributes={"at": path})
    root.create_group("b/empty")
    if consolidated:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            root = omnizarr.consolidate_metadata(store)
    return root


def shown(node):
    """Return what tells a node from others."""
    if isinstance(node, aio.AsyncArray | aio.AsyncGroup):
        node = node.array if isinstance(node, aio.AsyncArray) else node.group
    return type(node).__name__, node.path, getattr(node, "attrs", None), getattr(node, "shape", None)


def all_of(generator):
    async def collect():
        return [item async for item in generator]

    return run(collect())


@pytest.mark.parametrize("consolidated", [False, True], ids=["documents", "consolidated"])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("depth", [0, 1, None])
def test_members_are_those_without_await(store, zarr_format, consolidated, depth):
    root = filled(store, zarr_format, consolidated)
    group = run(aio.open_group(store))
    assert run(group.is_consolidated()) == root.is_consolidated == consolidated
    expected = [(path, shown(node)) for path, node in root.members(max_depth=depth)]
    found = all_of(group.members(max_depth=depth))
    assert [(path, shown(node)) for path, node in found] == expected
    assert all(type(node) in (aio.AsyncArray, aio.AsyncGroup) for _, node in found)
    assert all(node.store is store for _, node in found)
    assert run(group.nmembers(depth)) == len(expected)
    assert str(run(group.tree(depth))) == str(root.tree(level=depth))


def test_members_of_one_kind_are_distinguished(store):
    filled(store)
    group = run(aio.open_group(store, path="b"))
    assert all_of(group.keys()) == ["c", "d", "empty"]
    assert all_of(group.array_keys()) == ["c"]
    assert all_of(group.group_keys()) == ["d", "empty"]
    assert [array.path for array in all_of(group.array_values())] == ["b/c"]
    assert [each.path for each in all_of(group.group_values())] == ["b/d", "b/empty"]
    assert [name for name, _ in all_of(group.arrays())] == ["c"]
    assert [name for name, _ in all_of(group.groups())] == ["d", "empty"]


@pytest.mark.parametrize("consolidated", [False, True], ids=["documents", "consolidated"])
def test_nodes_are_found_by_their_paths(store, consolidated):
    filled(store, consolidated=consolidated)

    async def look():
        root = await aio.open_group(store)
        array = await root.getitem("b/d/e")
        assert type(await root.get_group("b")) is aio.AsyncGroup
        assert type(await root.get_array("b/c")) is aio.AsyncArray
        assert await root.getitem("") == root
        assert await root.contains("b/d")
        assert not await root.contains("b/x")
        assert await root.get("x", "nothing") == "nothing"
        return await array.getitem((slice(None), 1)), array.attrs

    values, attributes = run(look())
    assert values.tolist() == [1, 4]
    assert attributes == {"at": "b/d/e"}


@pytest.mark.parametrize("path", ["b/x", "a/under", "nothing/there", "b/../a", "b/cc"])
def test_missing_data_is_reported_as_without_await(store, path):
    root = filled(store)
    with pytest.raises(omnizarr.errors.OmnizarrError) as expected:
        root[path]
    with pytest.raises(omnizarr.errors.OmnizarrError) as found:
        run(aio.AsyncGroup(root).getitem(path))
    assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))


def test_nodes_of_the_other_kind_are_refused(store):
    group = aio.AsyncGroup(filled(store))
    with pytest.raises(ContainsGroupError):
        run(group.get_array("b"))
    with pytest.raises(ContainsArrayError):
        run(group.get_group("a"))
    with pytest.raises(ArrayNotFoundError):
        run(group.get_array("x"))


def test_broken_member_is_listed_beside_its_siblings(store):
    root = filled(store)
    store.set("b/c/zarr.json", b'{"zarr_format": 3, "node_type": "array"}')
    group = aio.AsyncGroup(root)
    found = dict(all_of(group.members(max_depth=None)))
    assert set(found) == set(dict(root.members(max_depth=None)))
    assert isinstance(found["b/c"], omnizarr.UnreadableNode)
    assert found["b/c"].store_path.store is store
    with pytest.raises(MetadataError):
        run(group.getitem("b/c"))


def test_nodes_are_made_changed_moved_and_removed(store):
    async def change():
        root = await aio.open_group(store, mode="w", attributes={"title": "new"})
        array = await root.create_array("x/y", shape=(3,), dtype="i2")
        await array.setitem(..., [1, 2, 3])
        await root.setitem("z", array)
        await root.setitem("z", np.arange(4))
        await root.require_array("z", shape=(4,), dtype="i8")
        await root.require_groups("g", "x")
        await (await root.require_group("g")).update_attributes({"k": [1]})
        await root.create_group("gone/deep")
        await root.delitem("gone")
        await root.move("x", "moved")
        await root.zeros(name="zeros", shape=(2,))
        await root.ones(name="ones", shape=(2,))
        await root.full(name="full", shape=(2,), fill_value=7)
        await root.empty(name="empty", shape=(2,))
        made = [
            path
            async for path, _ in root.create_hierarchy(
                {"h": GroupMetadata.from_dict({"zarr_format": 3, "node_type": "group"})}
            )
        ]
        assert made == ["h"]
        return root

    found = run(change())
    root = omnizarr.open_group(store)
    paths = [path for path, _ in root.members(max_depth=None)]
    assert paths == ["empty", "full", "g", "h", "moved", "moved/y", "ones", "z", "zeros"]
    assert root["moved/y"][...].tolist() == [1, 2, 3]
    assert root["z"][...].tolist() == [0, 1, 2, 3]
    assert root["g"].attrs == {"k": [1]}
    assert [root[name][...].tolist() for name in ("zeros", "ones", "full")] == [[0, 0], [1, 1], [7, 7]]
    assert found.attrs == {"title": "new"}
    with pytest.raises(NodeNotFoundError):
        run(found.delitem("gone"))
    with pytest.raises(ContainsGroupError):
        run(found.create_group("g"))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_changes_are_seen_in_consolidated_metadata(store, zarr_format):
    filled(store, zarr_format, consolidated=True)

    async def change():
        root = await aio.open_group(store)
        array = await root.getitem("b/c")
        assert await root.nmembers(None) == 6
        await array.resize(5, 5)
        await root.create_array("new", shape=(1,), dtype="i1")
        await root.delitem("a")
        return [(path, getattr(node, "shape", None)) async for path, node in root.members(max_depth=None)]

    found = run(change())
    root = omnizarr.open_consolidated(store)
    assert found == [(path, getattr(node, "shape", None)) for path, node in root.members(max_depth=None)]
    assert ("b/c", (5, 5)) in found
    assert [path for path, _ in found] == ["b", "b/c", "b/d", "b/d/e", "b/empty", "new"]


def test_group_says_about_itself_what_the_other_one_says(store):
    root = filled(store)
    group = aio.AsyncGroup(root)
    for name in ("metadata", "attrs", "store_path", "store", "path", "name", "basename", "read_only", "zarr_format"):
        assert getattr(group, name) == getattr(root, name), name
    assert run(group.info()) == root.info
    assert run(group.info_complete()) == root.info_complete()
    assert group == aio.AsyncGroup(root)
    assert repr(group) == repr(root).replace("<Group", "<AsyncGroup")


def test_refresh_sees_what_others_did(store):
    filled(store)
    group = run(aio.open_group(store))
    omnizarr.open_group(store).attrs["title"] = "other"
    assert group.attrs == {"title": "all"}
    run(group.refresh())
    assert group.attrs == {"title": "other"}


def test_read_only_group_is_not_changed(store):
    filled(store)
    group = run(aio.open_group(store, mode="r"))
    for change in (group.create_group("x"), group.delitem("a"), group.update_attributes({}), group.setitem("y", [1])):
        with pytest.raises(ReadOnlyError):
            run(change)


# -- requests ---------------------------------------------------------------------------


def test_members_are_asked_for_side_by_side(monkeypatch):
    store = objects(concurrency=64)
    root = omnizarr.create_group(store)
    for number in range(200):
        root.create_array(f"a{number:03}", shape=(number + 1,), dtype="i1")
    group = run(aio.open_group(store))
    counting = Counting(monkeypatch, delay=0.005)
    found = all_of(group.members())
    assert [node.shape for _, node in found] == [(number + 1,) for number in range(200)]
    assert counting.asked == {"list_with_delimiter": 1, "get_range": 200}
    assert counting.most == 64


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_members_are_not_asked_for(monkeypatch, zarr_format):
    store = objects()
    filled(store, zarr_format, consolidated=True)
    counting = Counting(monkeypatch)

    async def look():
        root = await aio.open_group(store)
        first = counting.total
        nodes = [path async for path, _ in root.members(max_depth=None)]
        await root.getitem("b/c")
        return first, counting.total, nodes

    first, total, nodes = run(look())
    assert len(nodes) == 6
    # Of v2 the copies are a document of their own, looked for when members are asked for.
    assert total <= {2: 5, 3: 1}[zarr_format]
    assert total - first == {2: 1, 3: 0}[zarr_format]


def test_failing_store_is_reported_as_without_await(monkeypatch):
    store = objects()
    root = filled(store)
    group = run(aio.open_group(store))
    counting = Counting(monkeypatch)
    counting.failures["some/where/b/c/zarr.json"] = PermissionError("injected")
    with pytest.raises(StoreError) as caught:
        run(group.getitem("b/c"))
    assert caught.value.key == "b/c/zarr.json"
    found = dict(all_of(group.members(max_depth=None)))
    assert isinstance(found["b/c"].error, StoreError)
    assert set(found) == set(dict(root.members(max_depth=None)))


def test_tasks_may_use_one_group_at_once(store):
    filled(store, 2, consolidated=True)

    async def look():
        root = await aio.open_group(store)
        return await asyncio.gather(*(root.getitem(path) for path in ["a", "b/c", "b/d/e"] * 20))

    assert {node.path for node in run(look())} == {"a", "b/c", "b/d/e"}
