"""NCZarr's lists of members after changes by the interface of Zarr. The judge is netCDF-C."""

import random
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.cli import main
from omnizarr.interop.xarray import to_zarr
from omnizarr.netcdf import Dataset
from omnizarr.nodes import hierarchy
from omnizarr.stores import LocalStore
from omnizarr.tools.edit import create
from tests.fakes import FaultyStore

dask_array = pytest.importorskip("dask.array", reason="has data that are read when they are written")
xarray = pytest.importorskip("xarray", reason="writes groups")
netcdf4 = pytest.importorskip("netCDF4", reason="reads NCZarr with netCDF-C")


@cache
def template(make, *args):
    """The files that a function makes below a path, by their paths: to make them once."""
    with TemporaryDirectory() as folder:
        top = Path(folder)
        make(top / "made", *args)
        return {each.relative_to(top / "made"): each.read_bytes() for each in top.rglob("*") if each.is_file()}


def copied(path, make, *args):
    for name, data in template(make, *args).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)


def dataset_of_ours(path, layout):
    with Dataset(path, "w", layout=layout) as dataset:
        dataset.createDimension("x", 3)
        for name in "ab":
            dataset.createVariable(name, "i2", ("x",))[:] = ord(name)
        inner = dataset.createGroup("g")
        inner.createDimension("y", 2)
        inner.createVariable("c", "i4", ("y",))[:] = 7


def made(path, layout="D"):
    copied(path, dataset_of_ours, layout)
    return omnizarr.open_group(path, mode="r+")


def plain_group(path):
    group = omnizarr.create_group(path, zarr_format=2)
    for name in ("n", "i/m"):
        group[name] = [1, 2]


def netcdf_file(path):
    with netcdf4.Dataset(path, "w") as dataset:
        dataset.createDimension("x", 3)
        dataset.createVariable("v", "i2", ("x",))[:] = 5
        inner = dataset.createGroup("k")
        inner.createDimension("y", 2)
        inner.createVariable("w", "i2", ("x", "y"))[:] = 6


def seen_by_netcdf(path):
    """The variables that netCDF-C finds, with their values."""
    found = {}

    def look(group, prefix):
        for name, each in group.variables.items():
            found[prefix + name] = each[...].tolist()
        for name, each in group.groups.items():
            look(each, f"{prefix}{name}/")

    with netcdf4.Dataset(f"file://{path}#mode=nczarr,file") as dataset:
        look(dataset, "")
    return found


def listed(path):
    with Dataset(path) as dataset:
        return {
            f"{group.path.lstrip('/')}/{name}".lstrip("/"): each[...].tolist()
            for group in (dataset, *dataset.groups.values())
            for name, each in group.variables.items()
        }


CHANGES = {
    "delete": lambda group: group.__delitem__("a"),
    "delete group": lambda group: group.__delitem__("g"),
    "delete below": lambda group: group.__delitem__("g/c"),
    "move": lambda group: group.move("a", "d"),
    "move group": lambda group: group.move("g", "h"),
    "copy": lambda group: group.copy("a", "d"),
    "copy group": lambda group: group.copy("g", "h"),
    "create group": lambda group: group.create_group("h"),
    "require group": lambda group: group.require_group("h"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_netcdf_c_sees_a_change_of_members(change, tmp_path):
    path = tmp_path / "x.zarr"
    group = made(path)
    CHANGES[change](group)
    assert seen_by_netcdf(path) == listed(path)
    assert not omnizarr.check(path).findings


@pytest.mark.parametrize(
    "add",
    [
        lambda group: group.create_array("a", data=np.zeros((2, 2)), overwrite=True),
        lambda group: group.create_array("n", shape=(3,), dtype="i2"),
        lambda group: group.__setitem__("a", [1.5, 2.5]),
        lambda group: group.require_array("n", (3,), "i2"),
        lambda group: create.make(group.store_path / "n", {"shape": (3,), "dtype": "i2"}, kind="array"),
    ],
)
def test_an_array_without_marks_is_not_listed_and_check_says_so(add, tmp_path):
    """netCDF-C opens no dataset that lists one."""
    path = tmp_path / "x.zarr"
    add(made(path))
    seen = seen_by_netcdf(path)
    assert seen["b"] == [ord("b")] * 3
    assert "n" not in seen
    assert "NCZarr does not list it" in str(omnizarr.check(path))


REPLACEMENTS = {
    "create_array": lambda path: omnizarr.create_array(path, name="a", data=[1.5, 2.5], overwrite=True),
    "create_array at it": lambda path: omnizarr.create_array(path / "a", shape=(2,), dtype="i4", overwrite=True),
    "create_array below": lambda path: omnizarr.create_array(path, name="g/c", shape=2, dtype="i4", overwrite=True),
    "create_group": lambda path: omnizarr.create_group(path, path="a", overwrite=True),
    "create_group at it": lambda path: omnizarr.create_group(path / "a", overwrite=True),
    "group": lambda path: omnizarr.group(path, path="a", overwrite=True),
    "open": lambda path: omnizarr.open(path / "a", mode="w"),
    "open_array": lambda path: omnizarr.open_array(path / "a", mode="w", shape=3, dtype="i2"),
    "open_array below": lambda path: omnizarr.open_array(path / "g/c", mode="w", shape=3, dtype="i2"),
    "open_group": lambda path: omnizarr.open_group(path, path="a", mode="w"),
    "open_group again": lambda path: omnizarr.open_group(path / "g", mode="w"),
    "from_array": lambda path: omnizarr.from_array(path, name="g", data=omnizarr.open(path)["b"], overwrite=True),
    "save_array": lambda path: omnizarr.save_array(path / "a", np.ones(3)),
    "save_group": lambda path: omnizarr.save_group(path / "a", n=np.ones(3)),
    "save_group of dask": lambda path: omnizarr.save_group(path, path="a", n=dask_array.ones(3, chunks=2)),
    "dask": lambda path: omnizarr.create_array(path, name="a", data=dask_array.ones(3, chunks=2), overwrite=True),
    "xarray": lambda path: to_zarr(xarray.Dataset({"n": ("z", dask_array.ones(3, chunks=2))}), path / "a", mode="w"),
    "copy": lambda path: omnizarr.copy(
        omnizarr.open(path)["g"], omnizarr.open(path, "r+"), name="a", if_exists="replace"
    ),
    "create_hierarchy": lambda path: [
        *omnizarr.create_hierarchy(store=path, nodes={"a": omnizarr.open(path)["b"].metadata}, overwrite=True)
    ],
    "command": lambda path: main(["create", str(path / "a"), "--shape", "2", "--dtype", "i2", "--overwrite"]),
}


@pytest.mark.parametrize("layout", ["A", "D", "v3"])
@pytest.mark.parametrize("change", REPLACEMENTS)
def test_a_node_that_a_function_replaces_is_listed_no_more_and_the_others_stay(change, layout, tmp_path):
    path = tmp_path / "x.zarr"
    made(path, layout)
    with omnizarr.config.set({"default_zarr_format": 3 if layout == "v3" else 2}):
        REPLACEMENTS[change](path)
    if layout == "D":
        assert seen_by_netcdf(path)["b"] == [ord("b")] * 3
    with Dataset(path) as dataset:
        assert dataset["b"].dimensions == ("x",)
    assert not [each for each in omnizarr.check(path).findings if "not there" in each.message]


@pytest.mark.parametrize("layout", ["v3", "xarray"])
@pytest.mark.parametrize("change", CHANGES)
def test_other_layouts_name_what_is_there(layout, change, tmp_path):
    path = tmp_path / "x.zarr"
    group = made(path, layout)
    before = listed(path)
    CHANGES[change](group)
    after = listed(path)
    assert {tuple(each) for each in after.values()} <= {tuple(each) for each in before.values()}
    assert not omnizarr.check(path).findings


@pytest.mark.parametrize("layout", ["A", "D", "v3"])
def test_nodes_that_are_required_and_there_stay_as_they_are(layout, tmp_path):
    path = tmp_path / "x.zarr"
    group = made(path, layout)
    group.require_array("a", (3,), "i2")
    group.require_array("g/c", (2,), "i4")
    group.require_group("g")
    with Dataset(path) as dataset:
        assert [dataset[name].dimensions for name in ("a", "b", "g/c")] == [("x",), ("x",), ("y",)]
    assert not omnizarr.check(path).findings


@pytest.mark.parametrize("layout", ["A", "D", "v3"])
@pytest.mark.parametrize(
    "change",
    [
        lambda group, at: group.__delitem__(f"{at}a"),
        lambda group, at: group.move(f"{at}a", f"{at}d"),
        lambda group, at: group.move(f"{at}g", f"{at}h"),
        lambda group, at: group.copy(f"{at}a", f"{at}g/d"),
        lambda group, at: group.__setitem__(f"{at}a", [1.5, 2.5]),
        lambda group, at: group.zeros_like(name=f"{at}a", data=np.ones(2), overwrite=True),
    ],
)
@pytest.mark.parametrize("at", ["", "x.zarr/"])
def test_lists_beside_documents_and_in_groups_below_are_renewed(layout, change, at, tmp_path):
    """As netCDF-C 4.8.0 has them, and where the group that you have is none of NCZarr."""
    omnizarr.create_group(tmp_path, zarr_format=3 if layout == "v3" else 2)
    made(tmp_path / "x.zarr", layout)
    change(omnizarr.open_group(tmp_path if at else tmp_path / "x.zarr", mode="r+"), at)
    with Dataset(tmp_path / "x.zarr") as dataset:
        assert dataset["b"].dimensions == ("x",)
        assert dataset["h" if "h" in dataset.groups else "g"]["c"].dimensions == ("y",)
    if layout == "D":
        assert "b" in seen_by_netcdf(tmp_path / "x.zarr")
    assert not [each for each in omnizarr.check(tmp_path).findings if "not there" in each.message]


@pytest.mark.parametrize("name", ["d", "g/h/d"])
@pytest.mark.parametrize("verb", ["copy", "move", "copy_node"])
def test_an_array_out_of_reach_of_its_dimension_is_not_listed(verb, name, tmp_path):
    """netCDF-C opens no dataset that lists one."""
    path = tmp_path / "x.zarr"
    group = made(path)
    group.create_group("g/h")
    if verb == "copy_node":
        done = str(omnizarr.copy_node(path / "g/c", path / name))
        assert ("which no group above it has" in done) == (name == "d")
    else:
        getattr(group, verb)("g/c", name)
    seen = seen_by_netcdf(path)
    assert ("b" in seen, name in seen) == (True, name == "g/h/d")
    assert ("NCZarr does not list it" in str(omnizarr.check(path))) == (name == "d")


@pytest.mark.parametrize("place", ["group", "path"])
def test_no_length_changes_that_is_beside_the_documents(place, tmp_path):
    """As netCDF-C 4.8.0 has the dimensions of an array."""
    path = tmp_path / "x.zarr"
    array = made(path, "A")["a"] if place == "group" else (made(path, "A"), omnizarr.open(path / "a", mode="r+"))[1]
    for change in (lambda: array.append([1]), lambda: array.resize(5), lambda: array.writer().append([1])):
        with pytest.raises(errors.NotRepresentableError, match="variable of NCZarr"):
            change()


def test_an_array_that_create_hierarchy_replaces_is_not_listed(tmp_path):
    path = tmp_path / "x.zarr"
    group = made(path)
    plain = omnizarr.create_array({}, shape=(2,), dtype="f4", zarr_format=2).metadata
    assert [name for name, _ in group.create_hierarchy({"a": plain, "n": plain}, overwrite=True)] == ["a", "n"]
    assert seen_by_netcdf(path).keys() == {"b", "g/c"}


@pytest.mark.parametrize("others", ["create_group", "__delitem__"])
def test_lists_of_a_plain_group_name_what_another_writer_has_just_created_or_removed(others, tmp_path, monkeypatch):
    path = tmp_path / "x.zarr"
    group = made(path)
    (path / "p").mkdir()
    (path / "p" / ".zgroup").write_text('{"zarr_format": 2}')
    (path / "p" / "old").mkdir()
    (path / "p" / "old" / ".zgroup").write_text('{"zarr_format": 2}')
    update, left = hierarchy.update, [f"p/{'new' if others == 'create_group' else 'old'}"]

    def slow(where, *args):
        if where.path == "p" and left:
            getattr(omnizarr.open_group(path, mode="r+"), others)(left.pop())
        return update(where, *args)

    monkeypatch.setattr(hierarchy, "update", slow)
    group.create_array("p/n", shape=3, dtype="i2")
    assert not left
    assert seen_by_netcdf(path).keys() == {"a", "b", "g/c"}
    with netcdf4.Dataset(f"file://{path}#mode=nczarr,file") as dataset:
        assert set(dataset["p"].groups) == ({"old", "new"} if others == "create_group" else set())


@pytest.mark.parametrize(
    "copy",
    [
        lambda source, group: omnizarr.copy(source["n"], group["p"]),
        lambda source, group: omnizarr.copy(source["i"], group["p"]),
        lambda source, group: omnizarr.copy_all(source, group["p"]),
        lambda source, group: omnizarr.copy_node(source.store_path, group.store_path / "p/k"),
    ],
)
def test_a_group_without_lists_has_some_after_arrays_of_others_were_copied_to_it(copy, tmp_path):
    path = tmp_path / "x.zarr"
    group = made(path)
    group.create_group("p")
    source = omnizarr.create_group(tmp_path / "y.zarr", zarr_format=2)
    for name in ("n", "i/m"):
        source[name] = [1, 2]
    copy(source, group)
    assert seen_by_netcdf(path).keys() == {"a", "b", "g/c"}
    assert omnizarr.open(path)["p"].nmembers(None) >= 1


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("is_consolidated", [False, True])
def test_a_copy_of_other_groups_in_a_dataset_is_complete_when_it_is_resumed(zarr_format, is_consolidated, tmp_path):
    """Its groups have got lists, which those of the source have not."""
    path = tmp_path / "x.zarr"
    made(path, "D" if zarr_format == 2 else "v3")
    source = omnizarr.create_group(tmp_path / "y.zarr", zarr_format=zarr_format)
    source["i/m"] = [1, 2]
    source.attrs["title"] = "t"
    if is_consolidated:
        omnizarr.consolidate_metadata(tmp_path / "y.zarr")
    assert omnizarr.copy_node(tmp_path / "y.zarr", path / "k").verified
    assert "_nczarr_group" in omnizarr.open(path)["k/i"].attrs
    assert omnizarr.copy_node(tmp_path / "y.zarr", path / "k", resume=True).remarks == (
        "the copy was complete already",
    )
    omnizarr.open_group(path / "k", mode="r+").attrs["title"] = "u"
    with pytest.raises(errors.NodeExistsError, match="differs from the source"):
        omnizarr.copy_node(tmp_path / "y.zarr", path / "k", resume=True)


@pytest.mark.parametrize("layout", ["D", "v3"])
@pytest.mark.parametrize("given", [(), ("nc",)])
def test_groups_that_list_learn_of_nodes_that_are_created_side_by_side(given, layout, tmp_path):
    """As in a store far away, by a group above the dataset that is none of NCZarr."""
    version = 3 if layout == "v3" else 2
    omnizarr.create_group(tmp_path, zarr_format=version)
    made(tmp_path / "nc", layout)
    nodes = {path: omnizarr.create_group({}, zarr_format=version).metadata for path in (*given, "nc/h", "nc/h/k")}
    group = omnizarr.open_group(FaultyStore(LocalStore(tmp_path), concurrency=8), mode="r+")
    assert [name for name, _ in group.create_hierarchy(nodes)] == sorted(nodes)
    lists = omnizarr.open(tmp_path)["nc"].attrs["_nczarr_group"]
    assert sorted(lists["subgroups" if layout == "v3" else "groups"]) == ["g", "h"]
    assert "_nczarr_group" not in omnizarr.open(tmp_path).attrs


def test_a_group_above_the_store_that_cannot_be_changed_is_told_of(tmp_path, monkeypatch):
    """The node was created: that must not fail."""
    path = tmp_path / "x.zarr"
    made(path)
    update = hierarchy.update

    def refused(where, *args):
        if where.path == "":
            raise errors.StoreAccessError("not yours", store=str(where.store))
        return update(where, *args)

    monkeypatch.setattr(hierarchy, "update", refused)
    with pytest.warns(UserWarning, match="NCZarr's lists in the groups above .* could not be renewed: .*not yours"):
        omnizarr.create_group(path / "h", zarr_format=2)
    with pytest.raises(errors.StoreAccessError, match="not yours"):
        omnizarr.open_group(path, mode="r+").create_group("k")


OURS = {"a", "b", "g/c"}
ARRIVALS = {
    # a function of the dataset, another one, a hierarchy without marks and a netCDF file; what netCDF-C sees then
    "convert a dataset": (
        lambda path, other, *_: omnizarr.convert(other, path / "h", zarr_format=2),
        OURS | {"h/a", "h/b", "h/g/c"},
    ),
    "convert to a store of the whole": (
        lambda path, other, *_: omnizarr.convert(other, omnizarr.open(path, "r+").store_path / "g/h", zarr_format=2),
        OURS | {"g/h/a", "g/h/b", "g/h/g/c"},
    ),
    "convert an array": (
        lambda path, *_: omnizarr.convert(path / "a", path / "g/d", zarr_format=2),
        OURS | {"g/d"},
    ),
    "convert an array out of reach": (lambda path, *_: omnizarr.convert(path / "g/c", path / "d", zarr_format=2), OURS),
    "convert others": (lambda path, _, plain, __: omnizarr.convert(plain, path / "h/k", zarr_format=2), OURS),
    "convert an array of others": (
        lambda path, _, plain, __: omnizarr.convert(plain / "n", path / "p/n", zarr_format=2),
        OURS,
    ),
    "convert over an array": (
        lambda path, other, *_: omnizarr.convert(other, path / "a", zarr_format=2, overwrite=True),
        {"b", "g/c", "a/a", "a/b", "a/g/c"},
    ),
    "convert over a group": (
        lambda path, _, plain, __: omnizarr.convert(plain / "n", path / "g", zarr_format=2, overwrite=True),
        {"a", "b"},
    ),
    "convert a file": (
        lambda path, _, __, file: omnizarr.convert(file, path / "h", zarr_format=2),
        OURS | {"h/v", "h/k/w"},
    ),
    "convert a file over an array": (
        lambda path, _, __, file: omnizarr.convert(file, f"file://{path}/a#mode=nczarr", zarr_format=2, overwrite=True),
        {"b", "g/c", "a/v", "a/k/w"},
    ),
    "rechunk": (lambda path, *_: omnizarr.rechunk(path / "a", path / "d", chunks=(2,)), OURS | {"d"}),
    "rechunk a group": (lambda path, *_: omnizarr.rechunk(path / "g", path / "h", chunks=(2,)), OURS | {"h/c"}),
    "copy_store": (
        lambda path, other, *_: omnizarr.copy_store(other, path, "", "h"),
        OURS | {"h/a", "h/b", "h/g/c"},
    ),
    "copy_store to a path": (
        lambda path, other, *_: omnizarr.copy_store(other / "g", path / "h"),
        OURS | {"h/c"},
    ),
    "copy_store of an array": (lambda path, *_: omnizarr.copy_store(path, path, "a", "g/d"), OURS | {"g/d"}),
    "copy_store of others": (
        lambda path, _, plain, __: omnizarr.copy_store(plain, path / "p", if_exists="skip"),
        OURS,
    ),
    "copy_store of some keys": (
        lambda path, other, *_: omnizarr.copy_store(other, path, "g", "", includes="^c/", excludes=".*"),
        OURS,
    ),
}


RARE = {
    *("convert to a store of the whole", "convert an array out of reach", "convert an array of others", "rechunk"),
    *("copy_store to a path", "copy_store of some keys"),
}


def with_slow(cases, is_slow):
    return [pytest.param(*case, marks=[pytest.mark.slow] if is_slow(*case) else []) for case in cases]


@pytest.mark.parametrize("way", with_slow(zip(ARRIVALS, strict=True), RARE.__contains__))
def test_what_is_converted_or_copied_by_keys_into_a_dataset_is_listed(way, tmp_path):
    path, other, plain, file = (tmp_path / name for name in ("x.zarr", "y.zarr", "z.zarr", "f.nc"))
    made(path).create_group("p")
    made(other)
    copied(plain, plain_group)
    copied(file, netcdf_file)
    arrive, expected = ARRIVALS[way]
    arrive(path, other, plain, file)
    seen = seen_by_netcdf(path)
    assert seen.keys() == expected
    assert seen["b"] == [ord("b")] * 3
    values = {"v": [5] * 3, "w": [[6] * 2] * 3, "c": [7] * 2, "d": [ord("a")] * 3, "a": [ord("a")] * 3}
    assert not [name for name, each in seen.items() if each != values.get(name.rpartition("/")[2], seen["b"])]


@pytest.mark.parametrize(
    ("source", "killed"),
    with_slow(
        product(["y.zarr", "z.zarr"], [None, 0, 1, 2, 3]),
        lambda source, killed: killed not in {"y.zarr": (None, 0, 2), "z.zarr": (1,)}[source],
    ),
)
def test_a_conversion_into_a_dataset_is_resumed_while_lists_are_renewed_and_after(
    source, killed, tmp_path, monkeypatch
):
    path = tmp_path / "x.zarr"
    made(path)
    made(tmp_path / "y.zarr")
    copied(tmp_path / "z.zarr", plain_group)
    update, left = hierarchy.update, [killed]

    def kill(*args):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= left[0] is not None
        return update(*args)

    with monkeypatch.context() as patched:
        if killed is not None:
            patched.setattr(hierarchy, "update", kill)
        try:
            omnizarr.convert(tmp_path / source, path / "h", zarr_format=2)
        except KeyboardInterrupt:
            assert killed is not None
    for _ in range(2):
        done = omnizarr.convert(tmp_path / source, path / "h", zarr_format=2, resume=True)
        assert all(node.verified for node in done.nodes if node.node_type == "array")
        assert seen_by_netcdf(path).keys() == OURS | ({"h/a", "h/b", "h/g/c"} if source == "y.zarr" else set())


@pytest.mark.parametrize(
    ("layout", "is_far"),
    with_slow(product(["A", "D", "v3"], [False, True]), lambda layout, is_far: is_far != (layout == "D")),
)
def test_lists_in_other_layouts_and_far_away_learn_of_a_conversion(layout, is_far, tmp_path):
    path, version = tmp_path / "x.zarr", 3 if layout == "v3" else 2
    made(path, layout)
    made(tmp_path / "y.zarr", layout)
    store = LocalStore(path)
    target = omnizarr.open_group(FaultyStore(store, concurrency=8) if is_far else store, mode="r+").store_path
    omnizarr.convert(tmp_path / "y.zarr/g", target / "h", zarr_format=version)
    omnizarr.convert(tmp_path / "y.zarr/g", target / "a", zarr_format=version, overwrite=True)
    with Dataset(path) as dataset:
        assert set(dataset.groups) == {"a", "g", "h"}
        assert set(dataset.variables) == {"b"}
    if layout != "A":
        lists = omnizarr.open(path).attrs["_nczarr_group"]
        assert sorted(lists["subgroups" if layout == "v3" else "groups"]) == ["a", "g", "h"]
    assert not [each for each in omnizarr.check(path).findings if "not there" in each.message]


CREATIONS = {
    "create_array": lambda at: omnizarr.create_array(**at, shape=(2,), dtype="i4", overwrite=True),
    "open_array": lambda at: omnizarr.open_array(**at, mode="w", shape=(2,), dtype="i4"),
    "create_group": lambda at: omnizarr.create_group(**at, overwrite=True),
    "open_group": lambda at: omnizarr.open_group(**at, mode="w"),
    "open": lambda at: omnizarr.open(**at, mode="w"),
    "require": lambda at: omnizarr.group(**at),
}


def is_in_reach(path, array):
    """Whether netCDF-C can read an array: it has marks, and groups above it have its dimensions."""
    mark = array.attrs.get("_nczarr_array")
    return mark is not None and all(
        f"/{path}".startswith(f"{name.rpartition('/')[0]}/") for name in mark["dimension_references"]
    )


@pytest.mark.parametrize("seed", [1, *(pytest.param(each, marks=pytest.mark.slow) for each in range(2, 8))])
def test_members_stay_known_after_many_changes(seed, tmp_path):
    path = tmp_path / "x.zarr"
    group = made(path)
    chosen = random.Random(seed)
    for number in range(30):
        nodes = dict(group.members(max_depth=None))
        above = chosen.choice(["", *(f"{at}/" for at, node in nodes.items() if isinstance(node, omnizarr.Group))])
        name, new = chosen.choice(sorted(nodes)), f"{above}n{number}"
        kind = chosen.choice(["delete", "move", "copy", "group", "create", "create", "command"])
        there = chosen.choice([name, new, f"{new}/m"]) if name != "b" else new
        if kind == "delete" and len(nodes) > 3:
            del group[name]
        elif kind == "move" and not new.startswith(f"{name}/"):
            group.move(name, new)
        elif kind == "copy" and not new.startswith(f"{name}/"):
            group.copy(name, new)
        elif kind == "create":
            make = chosen.choice([each for each in CREATIONS if each != "require" or there != name])
            key = "name" if make == "create_array" else "path"
            at = chosen.choice([{"store": path, key: there}, {"store": path / there}])
            with omnizarr.config.set({"default_zarr_format": 2}):
                CREATIONS[make](at)
        elif kind == "command":
            what = chosen.choice([["--group"], ["--shape=2", "--dtype=i2"]])
            main(["create", str(path / there), "--format", "2", "--overwrite", *what])
        else:
            group.create_group(new)
        arrays = {at: node for at, node in group.members(max_depth=None) if isinstance(node, omnizarr.Array)}
        expected = {at for at, node in arrays.items() if is_in_reach(at, node)}
        assert seen_by_netcdf(path).keys() == expected, (number, kind, name, there)
