"""Every verb that changes a node keeps the consolidated metadata of all groups above it.

A group opened with its consolidated metadata is then equal to the group opened without, for us and for zarr-python.
"""

import asyncio
import json
import pickle
import warnings
from typing import NamedTuple

import numpy as np
import obstore.store
import pytest
import zarr

import omnizarr
from omnizarr import aio, errors
from omnizarr.cli import main
from omnizarr.netcdf import Dataset
from omnizarr.storage import StorePath
from omnizarr.stores import FsspecStore, LocalStore, MemoryStore, ObjectStore, PrefixStore
from omnizarr.tools.edit import attrs
from tests.fakes import FaultyStore

FORMATS = [2, 3, "3-draft2020"]
HOLDERS = ["", "g", "g/sub"]
"""Groups with consolidated metadata: each in another."""
SIX = np.arange(6, dtype="i8")
OTHER = np.array([0.5, 1.5, 2.5, 3.5])


class Place(NamedTuple):
    """A hierarchy with consolidated metadata, and another one beside it."""

    store: object
    source: object
    zarr_format: object

    def at(self, path):
        return StorePath(self.store, path)

    def open(self, path="", **options):
        return omnizarr.open(self.store, path=path, mode="r+", zarr_format=self.zarr_format, **options)


def build(store, zarr_format):
    root = omnizarr.create_group(store, zarr_format=zarr_format)
    for path in ("b", "g/a", "g/sub/x", "g/sub/deep/y"):
        root.create_array(path, data=SIX, chunks=2, attributes={"n": 1})
    return root


def holders(zarr_format):
    return HOLDERS[:1] if zarr_format == "3-draft2020" else HOLDERS


def consolidate(store, zarr_format):
    for path in reversed(holders(zarr_format)):
        omnizarr.consolidate_metadata(store, path, zarr_format)


@pytest.fixture(params=FORMATS)
def zarr_format(request):
    return request.param


@pytest.fixture(params=["memory", "directory"])
def place(request, zarr_format, tmp_path):
    is_memory = request.param == "memory"
    store = MemoryStore() if is_memory else LocalStore(tmp_path / "p.zarr")
    source = MemoryStore() if is_memory else LocalStore(tmp_path / "source.zarr")
    build(store, zarr_format)
    consolidate(store, zarr_format)
    other = omnizarr.create_group(source, zarr_format=zarr_format)
    for name in ("a", "c", "tree/one", "tree/two/three"):
        other.create_array(name, data=OTHER, chunks=3, attributes={"m": 2})
    return Place(store, source, zarr_format)


def content(group):
    """Return everything below a group: kinds, shapes, types, attributes and values by path."""
    return {
        path: (node.shape, str(node.dtype), dict(node.attrs), node[...].tolist())
        if hasattr(node, "shape")
        else dict(node.attrs)
        for path, node in group.members(max_depth=None)
    }


def check(store, zarr_format, paths=None, *, is_new=False):
    """Compare the groups that had consolidated metadata, if they are still there."""
    for path in holders(zarr_format) if paths is None else paths:
        try:
            plain = omnizarr.open_group(store, path=path, mode="r", zarr_format=zarr_format, use_consolidated=False)
        except (errors.NodeNotFoundError, errors.NodeExistsError):
            continue  # an array is there, or nothing
        try:
            known = omnizarr.open_group(store, path=path, mode="r", use_consolidated=True, check_consolidated=True)
        except errors.ConsolidatedMetadataError as error:
            assert "there is no consolidated" in str(error)  # noqa: PT017 - a new group is there
            assert path or is_new
            continue
        assert dict(known.attrs) == dict(plain.attrs)
        assert content(known) == content(plain)
        if zarr_format in (2, 3):
            check_zarr(store, path, zarr_format, content(plain))


def check_zarr(store, path, zarr_format, expected):
    """Let zarr-python look, too."""
    inner = as_zarr_python(store)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = zarr.open_group(inner, path=path, mode="r", zarr_format=zarr_format, use_consolidated=True)
        assert content(known) == expected


def as_zarr_python(store):
    if isinstance(store, LocalStore):
        return store.root
    values = {key: zarr.core.buffer.default_buffer_prototype().buffer.from_bytes(bytes(store.get(key)))
              for key in store.list_prefix("")}  # fmt: skip
    return zarr.storage.MemoryStore(values)


# -- nodes, reached in every way --------------------------------------------------------


def below(place, path):
    """Open a node by its own place, so that its store begins there."""
    if not isinstance(place.store, LocalStore) or place.zarr_format == "3-draft2020":
        return place.open(path)
    return omnizarr.open(f"{place.store.root}/{path}", mode="r+")


REACHED = {
    "group": lambda place, path: place.open(use_consolidated=True)[path],
    "inner group": lambda place, path: place.open("g")[path[2:]],
    "plain group": lambda place, path: place.open(use_consolidated=False)[path],
    "path": lambda place, path: place.open(path),
    "place": below,
    "pickled": lambda place, path: (
        pickle.loads(pickle.dumps(place.open(use_consolidated=True)[path]))
        if isinstance(place.store, LocalStore)
        else place.open(path)
    ),
}

ARRAYS = {
    "set an attribute": lambda array: array.attrs.update(late=1),
    "update_attributes": lambda array: array.update_attributes({"late": [1, "x"]}),
    "delete an attribute": lambda array: array.attrs.__delitem__("n"),
    "put attributes": lambda array: array.attrs.put({"only": 1}),
    "grow": lambda array: array.resize((9,)),
    "shrink": lambda array: array.resize((3,)),
    "append": lambda array: array.append(np.arange(5)),
}

GROUPS = {
    "set an attribute": lambda group: group.attrs.update(late=1),
    "update_attributes": lambda group: group.update_attributes({"late": 1}),
    "create_group": lambda group: group.create_group("new/er", attributes={"n": 2}),
    "create_group over a group": lambda group: group.create_group("deep", overwrite=True),
    "create_group over an array": lambda group: group.create_group("x", overwrite=True),
    "create_array": lambda group: group.create_array("new/er/still", data=OTHER),
    "create_array over an array": lambda group: group.create_array("x", data=OTHER, overwrite=True),
    "create_array over a group": lambda group: group.create_array("deep", data=OTHER, overwrite=True),
    "require_group": lambda group: group.require_group("new"),
    "require_group over a group": lambda group: group.require_group("deep", overwrite=True),
    "require_group over an array": lambda group: group.require_group("x", overwrite=True),
    "require_groups": lambda group: group.require_groups("n1", "n2/n3"),
    "require_array": lambda group: group.require_array("new", shape=(3,), dtype="f4"),
    "empty": lambda group: group.empty(name="new", shape=(3,)),
    "zeros": lambda group: group.zeros(name="new", shape=(3,)),
    "ones": lambda group: group.ones(name="new", shape=(3,)),
    "full": lambda group: group.full(name="new", shape=(3,), fill_value=7),
    "empty_like": lambda group: group.empty_like(name="new", data=OTHER),
    "full_like": lambda group: group.full_like(name="new", data=OTHER, fill_value=7),
    "setitem": lambda group: group.__setitem__("new", OTHER),
    "setitem over an array": lambda group: group.__setitem__("x", OTHER),
    "delitem": lambda group: group.__delitem__("x"),
    "delitem of a group": lambda group: group.__delitem__("deep"),
    "move": lambda group: group.move("x", "moved/there"),
    "move a group": lambda group: group.move("deep", "moved"),
}

OURS = {
    "copy": lambda group: group.copy("x", "copied"),
    "copy a group": lambda group: group.copy("deep", "new/copied"),
    "copy over an array": lambda group: group.copy("x", "deep/y", overwrite=True),
    "copy over a group": lambda group: group.copy("x", "deep", overwrite=True),
    "copy a group over an array": lambda group: group.copy("deep", "x", overwrite=True),
    "create_hierarchy": lambda group: list(group.create_hierarchy({"q/r": group["x"].metadata}, overwrite=True)),
    "create_hierarchy over a group": lambda group: list(
        group.create_hierarchy({"deep": group["x"].metadata}, overwrite=True)
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reached", REACHED)
@pytest.mark.parametrize("verb", ARRAYS)
def test_arrays(place, reached, verb):
    array = REACHED[reached](place, "g/sub/x")
    ARRAYS[verb](array)
    check(place.store, place.zarr_format)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("reached", REACHED)
@pytest.mark.parametrize("verb", [*GROUPS, *OURS])
def test_groups(place, reached, verb):
    group = REACHED[reached](place, "g/sub")
    {**GROUPS, **OURS}[verb](group)
    check(place.store, place.zarr_format)


@pytest.mark.parametrize("verb", [*ARRAYS, *GROUPS, *OURS])
def test_handles_from_before_and_other_handles(zarr_format, verb):
    """Those that were opened before there was consolidated metadata, and those that others use meanwhile."""
    store = MemoryStore()
    root = build(store, zarr_format)
    node = root["g/sub/x" if verb in ARRAYS else "g/sub"]
    consolidate(store, zarr_format)
    reader = omnizarr.open_group(store, use_consolidated=True)
    assert "g/sub/x" in dict(reader.members(max_depth=None))
    {**ARRAYS, **GROUPS, **OURS}[verb](node)
    check(store, zarr_format)
    assert content(reader) == content(omnizarr.open_group(store, use_consolidated=False))


@pytest.mark.parametrize("is_group", [True, False])
def test_nodes_to_be_awaited(place, is_group):
    async def change():
        if is_group:
            group = await aio.open_group(place.store, path="g/sub", mode="r+", zarr_format=place.zarr_format)
            await group.create_array("deep", data=OTHER, overwrite=True)
            await group.create_group("x", overwrite=True)
            await group.require_group("more")
            await group.setitem("set", OTHER)
            await group.move("set", "moved")
            await group.delitem("more")
            await group.update_attributes({"late": 1})
        else:
            array = await aio.open_array(place.store, path="g/sub/x", mode="r+", zarr_format=place.zarr_format)
            await array.append(np.arange(3))
            await array.resize((7,))
            await array.update_attributes({"late": 1})

    asyncio.run(change())
    check(place.store, place.zarr_format)


# -- stores that begin below a group ----------------------------------------------------


def fsspec_store(path):
    fsspec = pytest.importorskip("fsspec")
    return FsspecStore(fsspec.filesystem("memory"), path)


def object_store(path, bucket=obstore.store.MemoryStore()):  # noqa: B008 - one bucket
    return ObjectStore(bucket, prefix=path, concurrency=4)


BEGINNING = {
    "prefix": lambda path, inner=MemoryStore(): PrefixStore(inner, path),  # noqa: B008 - one store
    "bucket": object_store,
    "fsspec": fsspec_store,
}


@pytest.mark.parametrize("kind", BEGINNING)
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("verb", ["append", "set an attribute", "create_array over a group", "delitem"])
def test_stores_that_begin_below_a_group(kind, zarr_format, verb):
    name = f"data/{kind}{zarr_format}{verb.replace(' ', '')}.zarr"
    store = BEGINNING[kind](name)
    build(store, zarr_format)
    consolidate(store, zarr_format)
    if verb in ARRAYS:
        ARRAYS[verb](omnizarr.open(BEGINNING[kind](f"{name}/g/sub/x"), mode="r+"))
    else:
        GROUPS[verb](omnizarr.open(BEGINNING[kind](f"{name}/g/sub"), mode="r+"))
    check(store, zarr_format)


def test_group_above_that_cannot_be_changed_is_named_in_a_warning(tmp_path, monkeypatch):
    build(LocalStore(tmp_path / "p.zarr"), 3)
    consolidate(LocalStore(tmp_path / "p.zarr"), 3)
    array = omnizarr.open(tmp_path / "p.zarr" / "b", mode="r+")
    write = LocalStore.set

    def refused(store, key, value):
        if store.root == str(tmp_path / "p.zarr"):
            raise errors.StoreAccessError("denied")
        write(store, key, value)

    monkeypatch.setattr(LocalStore, "set", refused)
    with pytest.warns(UserWarning, match=r"may have consolidated metadata that is now stale: .*denied"):
        array.append([6, 7])
    assert array[...].tolist() == list(range(8))


def test_directories_that_are_no_groups_are_not_looked_into(tmp_path):
    build(LocalStore(tmp_path / "p.zarr"), 3)
    build(LocalStore(tmp_path / "p.zarr" / "plain" / "q.zarr"), 3)
    omnizarr.consolidate_metadata(tmp_path / "p.zarr")
    before = (tmp_path / "p.zarr" / "zarr.json").read_bytes()
    omnizarr.open(tmp_path / "p.zarr" / "plain" / "q.zarr" / "b", mode="r+").append([6])
    assert (tmp_path / "p.zarr" / "zarr.json").read_bytes() == before


# -- failures ---------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "verb", ["create_array over an array", "create_array over a group", "create_group over an array"]
)
def test_failures_after_something_was_removed(zarr_format, verb):
    store = FaultyStore(MemoryStore())
    build(store, zarr_format)
    consolidate(store, zarr_format)
    group = omnizarr.open_group(store, path="g/sub", mode="r+", zarr_format=zarr_format)
    for failing in ("set", "set_if_absent"):
        store.fail(failing)
    with pytest.raises(errors.StoreError):
        GROUPS[verb](group)
    store.reset()
    check(store, zarr_format)


# -- functions --------------------------------------------------------------------------


def netcdf(place, change):
    with Dataset(place.at("g/sub"), "r+") as dataset:
        change(dataset)


def converted(place, path, **options):
    omnizarr.convert(StorePath(place.source, path), place.at(f"g/sub/{path}"), zarr_format=place.zarr_format, **options)


def to_zarr(place, group, **options):
    xarray = pytest.importorskip("xarray")
    from omnizarr.interop.xarray import to_zarr as write

    data = xarray.Dataset({"v": ("time", OTHER)}, attrs={"title": "t"})
    write(data, StorePath(place.store, ""), group=group, zarr_format=place.zarr_format, **options)


FUNCTIONS = {
    "create_array": lambda p: omnizarr.create_array(p.at("g/sub/new"), data=OTHER),
    "create_array over an array": lambda p: omnizarr.create_array(p.store, name="g/a", data=OTHER, overwrite=True),
    "create_array over a group": lambda p: omnizarr.create_array(p.store, name="g/sub", data=OTHER, overwrite=True),
    "create_group": lambda p: omnizarr.create_group(p.store, path="g/n/m"),
    "create_group over a group": lambda p: omnizarr.create_group(p.store, path="g/sub", overwrite=True),
    "group over a group": lambda p: omnizarr.group(p.store, path="g/sub", overwrite=True),
    "open_group": lambda p: omnizarr.open_group(p.store, path="g/new", mode="a"),
    "open_group, w": lambda p: omnizarr.open_group(p.store, path="g/sub", mode="w"),
    "open_array": lambda p: omnizarr.open_array(p.at("g/new"), mode="a", shape=(3,), dtype="i2"),
    "open_array, w": lambda p: omnizarr.open_array(p.at("g/a"), mode="w", shape=(3,), dtype="i2"),
    "create": lambda p: omnizarr.create((3,), dtype="i2", store=p.store, path="g/new"),
    "zeros": lambda p: omnizarr.zeros((3,), store=p.store, path="g/a", overwrite=True),
    "full_like": lambda p: omnizarr.full_like(OTHER, fill_value=1, store=p.store, path="g/new"),
    "array": lambda p: omnizarr.array(OTHER, store=p.store, path="g/new"),
    "from_array": lambda p: omnizarr.from_array(p.store, data=OTHER, name="g/a", overwrite=True),
    "save": lambda p: omnizarr.save(p.at("g/saved"), one=OTHER, two=SIX),
    "save_array": lambda p: omnizarr.save_array(p.at("g/saved"), OTHER),
    "save_group": lambda p: omnizarr.save_group(p.at("g/saved"), one=OTHER),
    "create_hierarchy": lambda p: list(
        omnizarr.create_hierarchy(store=p.at("g"), nodes={"sub": p.open("b").metadata}, overwrite=True)
    ),
    "copy": lambda p: omnizarr.copy(omnizarr.open(p.source)["a"], p.open("g"), "new"),
    "copy over an array": lambda p: omnizarr.copy(omnizarr.open(p.source)["a"], p.open("g"), if_exists="replace"),
    "copy a group": lambda p: omnizarr.copy(omnizarr.open(p.source)["tree"], p.open("g/sub"), "t"),
    "copy with other chunks": lambda p: omnizarr.copy(
        omnizarr.open(p.source)["a"], p.open("g"), if_exists="replace", chunks=(1,)
    ),
    "copy without attributes": lambda p: omnizarr.copy(
        omnizarr.open(p.source)["a"], p.open("g"), "new", without_attrs=True
    ),
    "copy from NumPy": lambda p: omnizarr.copy(omnizarr.array(OTHER), p.open("g"), "new"),
    "copy_all": lambda p: omnizarr.copy_all(omnizarr.open(p.source), p.open("g"), if_exists="replace"),
    "copy_store": lambda p: omnizarr.copy_store(
        p.source, p.store, source_path="tree", dest_path="g/t", if_exists="replace"
    ),
    "copy_store into the root": lambda p: omnizarr.copy_store(p.source, p.store, if_exists="replace"),
    "copy_store of a part": lambda p: omnizarr.copy_store(p.source, p.store, excludes="two", if_exists="skip"),
    "copy_node": lambda p: omnizarr.copy_node(p.source, p.at("g/sub/t"), path="tree"),
    "copy_node over a group": lambda p: omnizarr.copy_node(p.source, p.at("g/sub"), path="tree", overwrite=True),
    "copy_node over an array": lambda p: omnizarr.copy_node(p.source, p.at("g/a"), path="a", overwrite=True),
    "move_node": lambda p: omnizarr.move_node(p.at("g/sub/deep"), p.at("moved")),
    "move_node away": lambda p: omnizarr.move_node(p.at("g/sub/deep"), StorePath(p.source, "moved")),
    "move_node hither": lambda p: omnizarr.move_node(StorePath(p.source, "tree"), p.at("g/sub/tree")),
    "delete_node": lambda p: omnizarr.delete_node(p.at("g/a")),
    "delete_node, a group": lambda p: omnizarr.delete_node(p.at("g/sub"), recursive=True),
    "convert": lambda p: converted(p, "tree"),
    "convert over an array": lambda p: omnizarr.convert(
        StorePath(p.source, "a"), p.at("g/a"), zarr_format=p.zarr_format, overwrite=True
    ),
    "rechunk": lambda p: omnizarr.rechunk(p.at("g/sub/x"), p.at("g/rechunked"), chunks=(3,)),
    "rechunk over an array": lambda p: omnizarr.rechunk(p.at("g/sub/x"), p.at("g/a"), chunks=(3,), overwrite=True),
    "edit attributes": lambda p: attrs.update(p.at("g/a"), {"late": 1}),
    "delete attributes": lambda p: attrs.delete(p.at("g/a"), ("n",)),
    "put attributes": lambda p: attrs.put(p.at("g/a"), {"late": 1}, {"n": 1}),
}

WITH_GROUPS = {
    "pyramid": lambda p: omnizarr.pyramid(
        omnizarr.create_array(p.source, name="plane", data=np.ones((8, 8)), chunks=4, zarr_format=p.zarr_format),
        p.at("g/image"),
        axes="yx",
    ),
    "netCDF: variable": lambda p: netcdf(
        p, lambda d: (d.createDimension("t", None), d.createVariable("v", "f4", ("t",)).__setitem__(slice(0, 4), OTHER))
    ),
    "netCDF: attributes": lambda p: netcdf(p, lambda d: (d.setncattr("late", 1), d["x"].setncattr("late", 2))),
    "netCDF: group": lambda p: netcdf(p, lambda d: d.createGroup("n").createGroup("m")),
    "netCDF: rename": lambda p: netcdf(p, lambda d: (d.renameVariable("x", "z"), d.renameGroup("deep", "shallow"))),
    "to_zarr": lambda p: to_zarr(p, "g/new"),
    "to_zarr without consolidating": lambda p: to_zarr(p, "g/new", consolidated=False),
    "to_zarr over a group": lambda p: to_zarr(p, "g/sub", mode="w", consolidated=False),
    "to_zarr beside": lambda p: to_zarr(p, "g/sub", mode="a", consolidated=False),
    "to_zarr, append": lambda p: (
        to_zarr(p, "g/new", consolidated=False),
        to_zarr(p, "g/new", append_dim="time", consolidated=False),
    ),
}


@pytest.mark.parametrize("verb", FUNCTIONS)
def test_functions(place, verb):
    FUNCTIONS[verb](place)
    check(place.store, place.zarr_format, is_new=verb == "copy_store into the root")


@pytest.mark.parametrize("verb", WITH_GROUPS)
def test_functions_of_conventions(place, verb):
    if place.zarr_format not in (2, 3):
        pytest.skip("these write v2 and v3")
    WITH_GROUPS[verb](place)
    check(place.store, place.zarr_format)


def test_conversion_in_place_of_a_group_below(tmp_path):
    store = LocalStore(tmp_path / "p.zarr")
    build(store, 2)
    consolidate(store, 2)
    omnizarr.convert(StorePath(store, "g/sub"), zarr_format=3, in_place=True, remove_old=True)
    document = json.loads(bytes(store.get(".zmetadata")))
    assert not [key for key in document["metadata"] if key.startswith("g/sub")]  # there is no place for Zarr v3
    check(store, 3, ["g/sub"])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "command",
    [
        ["create", "{}/g/sub/new", "--shape", "3", "--dtype", "i2"],
        ["resize", "{}/g/sub/x", "9"],
        ["attrs", "set", "{}/g/sub/x", "late=1"],
        ["rm", "{}/g/sub/x"],
        ["mv", "{}/g/sub/x", "{}/moved"],
        ["cp", "{}/g/sub/x", "{}/b", "--overwrite"],
    ],
    ids=lambda command: command[0],
)
def test_commands(tmp_path, zarr_format, command):
    store = LocalStore(tmp_path / "p.zarr")
    build(store, zarr_format)
    consolidate(store, zarr_format)
    assert main([part.format(store.root) for part in command]) == 0
    check(store, zarr_format)


class Counting(MemoryStore):
    """A store that notes the sizes of the documents that are written at its root."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def set(self, key, value):
        if "/" not in key:
            self.sizes.append(len(value))
        super().set(key, value)


def several(number, zarr_format, nested):
    source = omnizarr.create_group({}, zarr_format=zarr_format)
    for each in range(number):
        name = f"g{each % 3}/a{each}" if nested else f"a{each}"
        source.create_array(name, data=[1.0, 2.0], attributes={"number": each})
    return source


class TestTogether:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    @pytest.mark.parametrize("nested", [False, True])
    @pytest.mark.parametrize("options", [{}, {"dtype": "f4"}, {"without_attrs": True}])
    def test_copying_many_nodes_writes_consolidated_metadata_once(self, zarr_format, nested, options):
        written = {}
        for number in (10, 20, 40):
            store = Counting()
            omnizarr.create_group(store, zarr_format=zarr_format)
            omnizarr.consolidate_metadata(store)
            store.sizes.clear()
            source = several(number, zarr_format, nested)
            omnizarr.copy_all(source, omnizarr.open_group(store, mode="r+"), **options)
            assert len(store.sizes) == 1
            written[number] = sum(store.sizes)
            again = omnizarr.open_group(store, use_consolidated=True)
            assert [path for path, _ in again.members(None)] == [path for path, _ in source.members(None)]
        assert written[40] < 2.1 * written[20] < 4.5 * written[10]

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_also_after_a_failure(self, zarr_format):
        store = Counting()
        dest = omnizarr.create_group(store, zarr_format=zarr_format)
        dest.create_array("a5", data=[1])
        omnizarr.consolidate_metadata(store)
        store.sizes.clear()
        with pytest.raises(omnizarr.errors.NodeExistsError):
            omnizarr.copy_all(several(9, zarr_format, False), omnizarr.open_group(store, mode="r+"))
        assert len(store.sizes) == 1
        assert list(omnizarr.open_group(store, use_consolidated=True).keys()) == [f"a{n}" for n in range(6)]

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_copies_of_replaced_nodes_are_renewed_at_once(self, zarr_format):
        store, seen = Counting(), []
        dest = omnizarr.create_group(store, zarr_format=zarr_format)
        dest.create_array("a1", data=[1, 2, 3])
        omnizarr.consolidate_metadata(store)

        def look(text):
            there = omnizarr.open_group(store, use_consolidated=True)
            seen.append((text.split()[1], "a0" in there, there["a1"].shape))

        dest = omnizarr.open_group(store, mode="r+")
        omnizarr.copy_all(several(3, zarr_format, False), dest, if_exists="replace", log=look)
        assert seen == [
            ("/a0", False, (3,)),
            ("/a1", False, (3,)),
            ("/a2", False, (2,)),
        ]
        assert list(omnizarr.open_group(store, use_consolidated=True).keys()) == ["a0", "a1", "a2"]
