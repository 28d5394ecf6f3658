"""Nodes with names that formats reserve, forbid or advise against: whatever other programs have written is there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import warnings
import zipfile

import numpy as np
import pytest

import omnizarr
from omnizarr import UnreadableNode, aio, netcdf
from omnizarr.cli import main
from omnizarr.errors import InvalidKeyError, NodeNameError, OmnizarrError
from omnizarr.stores import LMDBStore, LocalStore, ObjectStore, PrefixStore, SQLiteStore, ZipStore

zarr = pytest.importorskip("zarr", reason="zarr-python writes what is read here")
from omnizarr.interop.zarr_python import to_zarr_python  # noqa: E402

UNNAMED = "__xarray_dataarray_variable__"
FORMATS = [1, 2, "3-draft2019", "3-draft2020", 3]
ODD = [
    *(UNNAMED, "__a", "__", "__zmeta__", "__pycache__", "_nczarr_array", "_ARRAY_DIMENSIONS"),
    *(".zarray", ".zgroup", ".zattrs", ".zmetadata", ".nczgroup", "meta", "attrs", "data", "c", "0", "0.0", "c.0"),
    *("...", "....", ".a", "..a", "a.", "-", "~", "a:b", "con", "a.partial", "a.lock", "._a", ".DS_Store"),
    *(
        "ü",
        "u\u0308",
        "日本",
        "\u202e",
        "a b",
        " a",
        "a ",
        "a\n",
        "a\t",
        "a\x1b[31m",
        "a\x7f",
        "a%2Fb",
        "a?b*",
        "a#b",
        'a"b',
    ),
    *("A", "a", "x" * 255, "é" * 127),
]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such file names")


@pytest.fixture
def listed(capsys):
    """What a command prints."""

    def listed(*arguments, exit_code=0):
        capsys.readouterr()
        assert main([*map(str, arguments)]) == exit_code
        return capsys.readouterr().out

    return listed


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


@pytest.fixture(params=[(2, True), (2, False), (3, True), (3, False)], ids=str)
def unnamed(request, tmp_path):
    """An unnamed DataArray, as xarray stores it."""
    xr = pytest.importorskip("xarray", reason="xarray writes what is read here")
    zarr_format, consolidated = request.param
    array = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("x", "y"), coords={"x": [10, 20]}, attrs={"units": "K"})
    quietly(array.to_zarr, tmp_path / "x.zarr", zarr_format=zarr_format, consolidated=consolidated)
    return array, tmp_path / "x.zarr"


@pytest.mark.parametrize("use_consolidated", [None, False])
def test_unnamed_arrays_of_xarray_are_listed_and_read(unnamed, use_consolidated, listed):
    array, path = unnamed
    group = omnizarr.open_group(path, use_consolidated=use_consolidated)
    assert list(group) == [UNNAMED, "x"]
    assert [name for name, _ in group.members()] == [UNNAMED, "x"]
    assert UNNAMED in str(group.tree())
    assert UNNAMED in listed("tree", path)
    assert UNNAMED in listed("ls", path)
    assert UNNAMED in listed("info", path)
    np.testing.assert_array_equal(group[UNNAMED][:], array.values)
    np.testing.assert_array_equal(omnizarr.open(path / UNNAMED)[:], array.values)
    np.testing.assert_array_equal(omnizarr.open(path, path=UNNAMED)[:], array.values)


def test_unnamed_arrays_of_xarray_are_seen_as_netcdf_dask_and_zarr_python(unnamed):
    array, path = unnamed
    with netcdf.Dataset(path) as dataset:
        dataset.set_auto_maskandscale(False)
        np.testing.assert_array_equal(dataset.variables[UNNAMED][:], array.values)
    group = omnizarr.open_group(path)
    theirs = to_zarr_python(group)
    assert sorted(theirs.array_keys()) == [UNNAMED, "x"]
    np.testing.assert_array_equal(theirs[UNNAMED][:], array.values)
    pytest.importorskip("dask.array", reason="dask is one of the readers")
    from omnizarr.interop.dask import from_zarr

    np.testing.assert_array_equal(from_zarr(group[UNNAMED]).compute(), array.values)


def test_unnamed_arrays_of_xarray_are_seen_without_waiting(unnamed):
    array, path = unnamed

    async def read():
        group = await aio.open_group(path)
        names = [name async for name, _ in group.members()]
        return names, await (await group.getitem(UNNAMED)).getitem(...)

    names, values = asyncio.run(read())
    assert names == [UNNAMED, "x"]
    np.testing.assert_array_equal(values, array.values)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_unnamed_arrays_of_xarray_are_equal_in_xarray_after_conversion(unnamed, zarr_format, tmp_path):
    import xarray as xr

    array, path = unnamed
    report = omnizarr.convert(path, tmp_path / "new.zarr", zarr_format=zarr_format)
    assert [node.path for node in report.nodes if node.how != "left out"] == ["", UNNAMED, "x"]
    with xr.open_dataarray(tmp_path / "new.zarr", engine="zarr", consolidated=False) as found:
        xr.testing.assert_identical(found.load(), array)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_writes_unnamed_arrays_to_our_stores(zarr_format, tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is what writes")
    array = xr.DataArray(np.arange(3))
    store = LocalStore(tmp_path / "x.zarr")
    quietly(array.to_zarr, to_zarr_python(store), zarr_format=zarr_format)
    np.testing.assert_array_equal(omnizarr.open_group(store)[UNNAMED][:], array.values)
    again = quietly(xr.open_dataarray, to_zarr_python(store), engine="zarr")
    xr.testing.assert_identical(again.load(), array)


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_names_with_two_underscores_are_written_copied_and_moved_when_asked_for(zarr_format):
    store = {}
    omnizarr.create_array(store, name="__g/__a", data=np.arange(3, dtype="i4"), zarr_format=zarr_format)
    root = omnizarr.open_group(store)
    if zarr_format != 1:
        root.require_group("__h")
        root.copy("__g", "__copy")
        root.move("__g", "__moved")
        assert [path for path, _ in root.members(None)] == ["__copy", "__copy/__a", "__h", "__moved", "__moved/__a"]
        assert "__g" not in root
    found = [node for _, node in root.members(None) if isinstance(node, omnizarr.Array)]
    assert all(array[:].tolist() == [0, 1, 2] for array in found)
    assert root.get_array(found[0].path)[1] == 1


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_names_with_two_underscores_are_among_consolidated_metadata(zarr_format):
    store = {}
    omnizarr.create_group(store, zarr_format=zarr_format).create_array("__a", data=np.arange(3))
    quietly(omnizarr.consolidate_metadata, store)
    group = omnizarr.open_group(store, use_consolidated=True)
    assert list(group) == ["__a"]
    group["__a"].attrs["x"] = 1
    assert omnizarr.open_group(store, use_consolidated=True)["__a"].attrs["x"] == 1


@POSIX
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_members_are_those_that_zarr_python_has_written(zarr_format, tmp_path, listed):
    theirs = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=zarr_format)
    # They cannot be beside files of that name, and zarr-python does not list the last.
    taken = {2: {".zarray", ".zgroup", ".zattrs", ".zmetadata"}, 3: set()}[zarr_format]
    names = [name for name in ODD if name not in taken]
    for number, name in enumerate(names):
        theirs.create_array(name, shape=(2,), dtype="i4")[:] = number
    group = omnizarr.open_group(tmp_path / "x.zarr")
    assert list(group) == sorted(theirs.array_keys())
    assert [int(group[name][0]) for name in names] == list(range(len(names)))
    shown = listed("ls", tmp_path / "x.zarr")
    assert shown.count("\n") == len(names)
    assert str(group.tree()).count("\n") == len(names)
    assert listed("tree", tmp_path / "x.zarr").count("\n") >= len(names)


def hierarchy_with(names, zarr_format):
    """Return the values of a hierarchy whose members were renamed in the store."""
    made, values = {}, {}
    data = np.arange(2, dtype="i4")
    omnizarr.create_array(made, name="zz", data=data, compressors=None, zarr_format=zarr_format)
    for key, value in made.items():
        for name in names if "zz" in key else ("",):
            values[key.replace("zz", name)] = value
    return values


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_each_node_is_carried_or_reported_as_lost(zarr_format, to):
    unreachable = ["a\\b", ".omnizarr-x/", "C:"][: 2 if zarr_format in {1, 2, 3} else 1]
    names = [*ODD, *(name.rstrip("/") for name in unreachable)]
    source, target = hierarchy_with(names, zarr_format), {}
    assert {name for name, _ in omnizarr.open_group(source).members()} == set(names)
    report = omnizarr.convert(source, target, zarr_format=to)
    carried = {name: node[:].tolist() for name, node in omnizarr.open_group(target).members()}
    lost = {loss.path for loss in report.losses if loss.what.startswith("the node")}
    assert carried == {name: [0, 1] for name in set(names) - lost}
    assert lost >= {name.rstrip("/") for name in unreachable}
    if to == zarr_format == 2:
        assert lost == {"a\\b", ".omnizarr-x", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}
    if to == 3:
        assert lost - {"a\\b", ".omnizarr-x"} == {"...", "...."}
    with pytest.raises(OmnizarrError, match="would be lost"):
        omnizarr.convert(source, {}, zarr_format=to, strict=True)


def test_converting_says_that_a_name_is_reserved_in_the_new_format():
    report = omnizarr.convert(hierarchy_with(["__a"], 2), {}, zarr_format=3)
    assert report.is_lossless
    assert any("reserves names" in remark for remark in report.nodes[1].remarks)
    report = omnizarr.convert(hierarchy_with(["__a"], 3), {}, zarr_format=2)
    assert not any("reserves names" in remark for remark in report.nodes[1].remarks)


@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "a/./b", "...", "zarr.json", "a/zarr.json"])
def test_names_that_collide_with_paths_and_documents_of_v3_are_refused(name):
    root = omnizarr.create_group({})
    with pytest.raises(NodeNameError):
        root.create_group(name)
    with pytest.raises(NodeNameError):
        root.create_array(name, shape=(1,), dtype="i1")


@pytest.mark.parametrize("name", ["", ".", "..", ".zarray", "a/.zgroup", ".zattrs", ".zmetadata"])
def test_names_that_collide_with_paths_and_documents_of_v2_are_refused(name):
    root = omnizarr.create_group({}, zarr_format=2)
    with pytest.raises(NodeNameError):
        root.create_array(name, shape=(1,), dtype="i1")


def stores_with(values, tmp_path):
    """Yield stores with values under names that no key can have, put there past the store."""
    yield values
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, value in values.items():
            archive.writestr(name, value)
    yield ZipStore(tmp_path / "x.zip")
    import lmdb

    with lmdb.open(str(tmp_path / "x.lmdb"), map_size=2**24) as environment, environment.begin(write=True) as records:
        for name, value in values.items():
            records.put(name.encode(), value)
    yield LMDBStore(tmp_path / "x.lmdb")
    with SQLiteStore(tmp_path / "x.sqlite") as store:
        store.set("zarr.json", values["zarr.json"])
    import sqlite3

    with sqlite3.connect(tmp_path / "x.sqlite") as database:
        database.executemany("INSERT OR REPLACE INTO zarr VALUES (?, ?)", values.items())
    yield SQLiteStore(tmp_path / "x.sqlite")
    yield PrefixStore(omnizarr.stores.MemoryStore({f"p/{name}": value for name, value in values.items()}), "p")
    yield zarr.storage.MemoryStore(
        {name: zarr.core.buffer.cpu.Buffer.from_bytes(value) for name, value in values.items()}
    )
    if sys.platform != "win32":
        for name, value in values.items():
            place = tmp_path / "x.zarr" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(value)
        yield LocalStore(tmp_path / "x.zarr")
        yield f"file://{tmp_path}/x.zarr"
        fsspec = pytest.importorskip("fsspec", reason="fsspec is one of those that list")
        yield fsspec.get_mapper(f"local://{tmp_path}/x.zarr")
        yield zarr.storage.LocalStore(tmp_path / "x.zarr")


def test_what_a_store_has_no_keys_for_is_listed_as_unreadable_in_every_store(tmp_path):
    values = hierarchy_with(["good", "a\\b"], 3)
    for store in stores_with(values, tmp_path):
        found = dict(omnizarr.open_group(store, mode="r").members())
        assert list(found) == ["a\\b", "good"], store
        assert isinstance(found["a\\b"], UnreadableNode)
        assert isinstance(found["a\\b"].error, InvalidKeyError)
        assert "backslash" in str(found["a\\b"].error)
        assert found["a\\b"].error.remedy


@POSIX
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_directories_whose_names_are_not_unicode_are_listed(zarr_format, tmp_path, listed):
    theirs = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=zarr_format)
    theirs.create_array("a", shape=(2,), dtype="i4")
    shutil.copytree(os.fsencode(tmp_path / "x.zarr" / "a"), os.fsencode(tmp_path / "x.zarr") + b"/caf\xe9")
    group = omnizarr.open_group(tmp_path / "x.zarr")
    assert len(list(group)) == 2
    str(group.tree()).encode()
    assert "caf\\udce9" in listed("tree", tmp_path / "x.zarr", exit_code=1)
    report = omnizarr.convert(tmp_path / "x.zarr", {})
    str(report).encode()
    assert [loss.path for loss in report.losses] == ["caf\udce9"]
    report = omnizarr.check(tmp_path / "x.zarr")
    str(report).encode()
    assert [finding.code for finding in report if finding.severity == "error"] == ["unreachable-node"]


@POSIX
def test_nodes_behind_links_out_of_the_store_are_listed_and_reported_as_lost(tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("a", data=np.arange(3))
    omnizarr.create_array(tmp_path / "far.zarr", data=np.arange(3))
    (tmp_path / "x.zarr" / "linked").symlink_to(tmp_path / "far.zarr")
    assert [type(node) for _, node in root.members()] == [omnizarr.Array, UnreadableNode]
    report = omnizarr.convert(tmp_path / "x.zarr", {})
    assert [loss.path for loss in report.losses] == ["linked"]
    assert "out of the store" in report.losses[0].why
    assert [(f.code, f.path) for f in omnizarr.check(tmp_path / "x.zarr")] == [("unreachable-node", "linked")]
    with pytest.warns(UserWarning, match="'linked'"):
        omnizarr.consolidate_metadata(tmp_path / "x.zarr")


@POSIX
@pytest.mark.parametrize("action", ["copy", "move"])
def test_a_group_is_not_copied_or_moved_without_what_the_store_has_no_keys_for(action, tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("g/a", data=np.arange(3))
    shutil.copytree(tmp_path / "x.zarr" / "g" / "a", tmp_path / "x.zarr" / "g" / "b\\c")
    with pytest.raises(InvalidKeyError, match="backslash"):
        getattr(root, action)("g", "h")
    assert (tmp_path / "x.zarr" / "g" / "b\\c" / "zarr.json").exists()
    assert "h" not in root


def test_a_store_is_not_copied_without_what_it_has_no_keys_for():
    target = {}
    with pytest.raises(InvalidKeyError, match="backslash"):
        omnizarr.copy_store(hierarchy_with(["good", "a\\b"], 3), target)
    assert target == {}
    assert omnizarr.copy_store(hierarchy_with(["good", "__a"], 3), target).copied == 5
    assert omnizarr.copy_store({"zarr.json": b"{", "a/zarr.json": b"{"}, {}).copied == 2


def test_consolidated_metadata_is_made_without_what_the_store_has_no_keys_for():
    values = hierarchy_with(["good", "a\\b"], 3)
    with pytest.warns(UserWarning, match="has no keys for"):
        omnizarr.consolidate_metadata(values)
    found = json.loads(values["zarr.json"])["consolidated_metadata"]["metadata"]
    assert list(found) == ["good"]


def test_members_without_waiting_are_those_with_it_whatever_they_are_called(tmp_path):
    values = hierarchy_with(["good", "a\\b", "__a"], 3)

    async def read(store):
        group = await aio.open_group(store)
        return [(name, type(node).__name__) async for name, node in group.members()]

    obstore = pytest.importorskip("obstore", reason="obstore is what need not be waited for")
    far = obstore.store.MemoryStore()
    for name, value in values.items():
        if "\\" not in name:
            obstore.put(far, name, value)
    expected = [("__a", "AsyncArray"), ("a\\b", "UnreadableNode"), ("good", "AsyncArray")]
    assert asyncio.run(read(values)) == expected
    assert asyncio.run(read(ObjectStore(far))) == [each for each in expected if each[1] == "AsyncArray"]


@POSIX
def test_names_that_are_too_long_for_the_new_store_are_reported_as_lost(tmp_path):
    values = hierarchy_with(["x" * 300, "good"], 3)
    report = omnizarr.convert(values, tmp_path / "x.zarr", dry_run=True)
    assert [loss.path for loss in report.losses] == ["x" * 300]
    with pytest.raises(OmnizarrError, match="would be lost"):
        omnizarr.convert(values, tmp_path / "x.zarr", strict=True)
    assert omnizarr.convert(values, tmp_path / "x.zarr").losses == report.losses
    assert list(omnizarr.open_group(tmp_path / "x.zarr")) == ["good"]
    report = omnizarr.convert(hierarchy_with(["x" * 600, "good"], 3), LMDBStore(tmp_path / "x.lmdb"))
    assert [loss.path for loss in report.losses] == ["x" * 600]


def test_names_that_command_a_terminal_are_shown_escaped():
    group = omnizarr.open_group(hierarchy_with(["a\x1b[31m\n"], 3))
    assert "a\\x1b[31m\\n" in str(group.tree())
    assert repr(group["a\x1b[31m\n"]).startswith("<Array /a\\x1b[31m\\n ")
    report = omnizarr.convert(group.store, {})
    assert "/a\\x1b[31m\\n  array" in str(report.nodes[1])


def test_what_netcdf_cannot_name_or_read_is_reported_as_lost_by_conversions_to_files(tmp_path):
    netcdf4 = pytest.importorskip("netCDF4", reason="netCDF-C writes and reads the files")
    values = {**hierarchy_with([*ODD, "a\\b"], 3), "broken/zarr.json": b"{"}
    report = omnizarr.convert(values, tmp_path / "x.nc")
    with netcdf4.Dataset(tmp_path / "x.nc") as found:
        carried = set(found.variables)
    lost = {loss.path for loss in report.losses if loss.what == "variable"}
    unread = {loss.pointer.removeprefix("/members/") for loss in report.losses if loss.pointer}
    assert unread == {"a\\b", "broken"}
    assert carried | lost == set(ODD)
    assert {UNNAMED, "__a", "ü", "a b", "c.0"} <= carried
    assert {" a", "a ", "...", "a\n", "u\u0308"} <= lost


@pytest.mark.parametrize(("zarr_format", "lost"), [(2, {"a\\b"}), (3, {"a\\b", "zarr.json"})])
def test_what_zarr_cannot_name_is_reported_as_lost_by_conversions_of_files(zarr_format, lost, tmp_path):
    netcdf4 = pytest.importorskip("netCDF4", reason="netCDF-C writes and reads the files")
    names = ["__a", UNNAMED, "a\\b", "zarr.json", "a:b", "ü"]
    with netcdf4.Dataset(tmp_path / "x.nc", "w") as dataset:
        dataset.createDimension("x", 2)
        for name in names:
            dataset.createVariable(name, "i4", ("x",))[:] = [0, 1]
        dataset.createGroup("__g").createVariable("a\\b", "i4", ())
    report = omnizarr.convert(tmp_path / "x.nc", tmp_path / "x.zarr", zarr_format=zarr_format)
    assert {loss.path for loss in report.losses} == {*lost, "__g/a\\b"}
    found = omnizarr.open_group(tmp_path / "x.zarr")
    assert set(found) == {*names, "__g"} - lost
    assert found["__a"][:].tolist() == [0, 1]
