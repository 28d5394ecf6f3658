"""netCDF-3, netCDF-4 and HDF5 files under the names of netCDF4-python, which reads the same."""

import pickle
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.errors import NotRepresentableError, ReadOnlyError, StoreClosedError

DATA = Path(__file__).parent / "data" / "files"
FILES = ["classic.nc", "data64.nc", "everything.nc", "filters.nc", "h5netcdf.nc", "netcdf4_classic.nc", "offset64.nc",
         "scipy.nc"]  # fmt: skip
HIDDEN = {"everything.nc": {"/g/x2"}}
"""Variables for which netCDF4-python takes another dimension of the same name, in a group above."""
KEYS = [..., 0, -1, slice(None, None, 2), slice(None, None, -1), [0]]
OF_PLANES = [(slice(0, 1), -1), (0, [0]), (slice(None), slice(0, 1))]


def pairs(theirs, ours):
    """Yield all variables, of both."""
    assert list(ours.dimensions) == list(theirs.dimensions)
    assert list(ours.groups) == list(theirs.groups)
    assert set(theirs.variables) <= set(ours.variables)  # netCDF4-python ignores opaque types
    for name, each in theirs.dimensions.items():
        found = ours.dimensions[name]
        assert (found.size, found.isunlimited(), len(found)) == (each.size, each.isunlimited(), len(each))
    for kind in ("enumtypes", "vltypes", "cmptypes"):
        assert list(getattr(ours, kind)) == list(getattr(theirs, kind))
    check_attributes(theirs, ours)
    for name, each in theirs.variables.items():
        yield each, ours.variables[name]
    for name, each in theirs.groups.items():
        yield from pairs(each, ours.groups[name])


def check_attributes(theirs, ours):
    assert ours.ncattrs() == theirs.ncattrs()
    for name in theirs.ncattrs():
        expected, found = theirs.getncattr(name), ours.getncattr(name)
        if isinstance(expected, str):  # from which netCDF4-python takes NULs
            assert found.replace("\0", "") == expected
            continue
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)


def check_values(found, expected):
    assert isinstance(found, np.ma.MaskedArray) == isinstance(expected, np.ma.MaskedArray)
    if isinstance(expected, str):
        assert found == expected
        return
    np.testing.assert_array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(expected))
    found, expected = np.ma.getdata(found), np.ma.getdata(expected)
    assert found.shape == expected.shape
    if expected.dtype == object:
        for one, other in zip(found.ravel(), expected.ravel(), strict=True):
            np.testing.assert_array_equal(one, other)
        return
    for field in expected.dtype.names or (...,):
        assert found[field].dtype == expected[field].dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[field], expected[field])


def check_file(path, skipped=()):
    with netCDF4.Dataset(path) as theirs, netcdf.Dataset(path) as ours:
        for name in ("data_model", "file_format", "disk_format"):
            assert getattr(ours, name) == getattr(theirs, name)
        count = 0
        for each, found in pairs(theirs, ours):
            if f"{each.group().path.rstrip('/')}/{each.name}" in skipped:
                continue
            count += 1
            check_attributes(each, found)
            assert (found.name, found.dimensions, found.shape) == (each.name, each.dimensions, each.shape)
            if each.dtype is str or each.dtype.names is None:  # fields: netCDF4-python aligns them
                assert found.dtype == (each.dtype if each.dtype is str else each.dtype.newbyteorder("="))
            assert found.chunking() == each.chunking()
            assert found.filters() == each.filters()
            np.testing.assert_array_equal(found.get_fill_value(), each.get_fill_value())
            for mask in (True, False):
                each.set_auto_maskandscale(mask)
                found.set_auto_maskandscale(mask)
                for key in KEYS[: len(KEYS) if each.ndim else 1] + OF_PLANES * (each.ndim == 2):
                    check_values(found[key], each[key])
        assert count


@pytest.mark.filterwarnings("ignore:WARNING. variable 'r' has unsupported datatype:UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_files_are_as_netcdf4_python_sees_them(name):
    check_file(DATA / name, HIDDEN.get(name, ()))


@pytest.fixture
def typed(tmp_path):
    """A file with types that users define, groups, strings, masks, and a record dimension."""
    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("t", None)
        ds.createDimension("x", 4)
        ds.createVariable("t", "f8", ("t",))[:] = [1, 2, 3]
        packed = ds.createVariable("packed", "i2", ("t", "x"), zlib=True, chunksizes=(2, 3), fill_value=-1)
        packed.scale_factor, packed.valid_min, packed.flags = np.float32(0.1), np.int16(10), np.array([1, 2], "u1")
        packed.names = ["a", "bc"]
        packed[:2] = np.ma.masked_equal(np.arange(8).reshape(2, 4), 3)
        kind = ds.createEnumType("u1", "kind", {"land": 1, "sea": 2})
        ds.createVariable("kinds", kind, ("x",), fill_value=1)[:3] = [1, 2, 1]
        lists = ds.createVLType("i4", "list_t")
        ds.createVariable("lists", lists, ("x",))[:] = np.array([np.arange(n, dtype="i4") for n in range(4)], object)
        ds.createVariable("texts", str, ("x",))[:] = np.array(["a", "bb", "", "cä"], object)
        ds.createVariable("text", str, ())[...] = "scalar"
        record = ds.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "record")
        ds.createVariable("records", record, ("x",))[:] = np.array([(n, n / 2) for n in range(4)], record.dtype)
        group = ds.createGroup("g/inner")
        group.createDimension("y", 2)
        group.createVariable("z", "u8", ("t", "y"))[:] = np.arange(4).reshape(2, 2)
        group.note = "text"
        ds.createVariable("scalar", "f4", ())[...] = 2.5
    return path


def test_types_of_users_groups_and_masks_are_as_netcdf4_python_sees_them(typed):
    check_file(typed)
    with netcdf.Dataset(typed) as ds:
        assert ds["kinds"].datatype.members == ds.enumtypes["kind"].enum_dict == {"land": 1, "sea": 2}
        assert not hasattr(ds["lists"].datatype, "enum_dict")
        assert ds["lists"].datatype.kind == "vlen"
        assert ds["g/inner/z"].shape == (3, 2)
        assert ds["packed"].endian() == "little"
        assert ds["texts"][1] == "bb"
        assert ds["lists"][3].tolist() == [0, 1, 2]


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_attributes_are_in_the_order_of_netcdf4_python_where_the_file_numbers_none(version, tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=version) as file:
        data = file.create_dataset("d", data=[1, 2])
        for name in "zbxa":
            data.attrs[name] = name
    check_file(path)


@pytest.mark.parametrize(
    "file_format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC"]
)
def test_records_of_classic_files_are_as_netcdf4_python_sees_them(tmp_path, file_format):
    with netCDF4.Dataset(tmp_path / "x.nc", "w", format=file_format) as ds:
        ds.createDimension("t", None)
        ds.createDimension("x", 3)
        for kind in ("i1", "i2", "i4", "f4", "f8", "S1"):
            made = ds.createVariable(kind, kind, ("t", "x"))
            made[:] = np.full((4, 3), b"a") if kind == "S1" else np.arange(12).reshape(4, 3)
            made.of = np.array([1, 2], "i2" if kind == "S1" else kind)
    check_file(tmp_path / "x.nc")


def test_a_file_can_only_be_read(typed):
    with netcdf.Dataset(typed) as ds:
        for change in (
            lambda: ds.createDimension("n", 3),
            lambda: ds.createVariable("n", "f4"),
            lambda: ds.createGroup("n"),
            lambda: ds.setncattr("title", "new"),
            lambda: ds.renameVariable("packed", "n"),
            lambda: ds.renameDimension("t", "n"),
            lambda: ds["packed"].setncattr("units", "m"),
            lambda: ds["packed"].delncattr("scale_factor"),
            lambda: ds["packed"].__setitem__(0, 1),
            lambda: setattr(ds["packed"], "units", "m"),
        ):
            with pytest.raises(ReadOnlyError, match=r"can only be read in place; convert it: omnizarr\.convert"):
                change()
    for mode in ("a", "r+", "w"):
        with pytest.raises(ReadOnlyError, match="can only be read"):
            netcdf.Dataset(typed, mode)
    with pytest.raises(StoreClosedError):
        ds["packed"][0]
    check_file(typed)


def test_files_are_pickled_printed_and_found_in_any_store(typed, tmp_path, http_server, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = http_server.fresh()
    (Path(place.directory) / "x.nc").write_bytes(typed.read_bytes())
    shown = omnizarr.open(typed)
    for source in ("x.nc", f"{place.url}/x.nc", shown.store, shown):
        with netcdf.Dataset(source) as ds:
            assert ds.dimensions["t"].isunlimited()
            assert ds["kinds"].datatype.members == {"land": 1, "sea": 2}
            assert ds["packed"].flags.dtype == "u1"
            for again in (pickle.loads(pickle.dumps(ds))["packed"], pickle.loads(pickle.dumps(ds["packed"]))):
                np.testing.assert_array_equal(again[0], ds["packed"][0])
            assert "short packed(t, x)" in repr(ds["packed"])
            assert "kind kinds(x)" in ds.tocdl()
            ds.sync()
            assert ds["packed"].shape == (3, 4)
            assert ds["packed"].array.shape == (2, 4)  # of which two rows are stored
    with netcdf.Dataset(typed) as ds, pytest.raises(NotRepresentableError, match="no array with such elements"):
        ds["lists"].array  # noqa: B018 - it raises


def test_variables_of_several_files_are_joined(tmp_path):
    for number in range(3):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w", format="NETCDF4_CLASSIC") as ds:
            ds.createDimension("t", None)
            ds.createVariable("v", "i2", ("t",), fill_value=-1)[:] = [number, -1, 5]
            ds["v"].scale_factor = 0.5
    with netCDF4.MFDataset(str(tmp_path / "*.nc")) as theirs, netcdf.MFDataset(str(tmp_path / "*.nc")) as ours:
        for key in (..., 4, slice(1, 8, 3), [0, 3, 8]):
            check_values(ours["v"][key], theirs["v"][key])
        assert ours["v"].chunking() == netCDF4.Dataset(tmp_path / "0.nc")["v"].chunking()
        assert [each.tolist() for each in (pickle.loads(pickle.dumps(ours))["v"][3:4],)] == [[0.5]]


def test_what_is_broken_or_elsewhere_is_named(typed, tmp_path):
    with h5py.File(typed, "a") as file:
        file["nothing"] = h5py.SoftLink("/none")
        file.attrs["half"] = np.float16(0.5)
    with netcdf.Dataset(typed) as ds:
        notes = {note.pointer: note.message for note in ds.all_notes()["/"]}
        assert "where nothing is" in notes["/variables/nothing"]
        assert "float16" in notes["/attributes/half"]
    (tmp_path / "out").mkdir()
    with h5py.File(tmp_path / "out" / "y.h5", "w") as file:
        file["v"] = h5py.ExternalLink("../x.nc", "packed")
    with netcdf.Dataset(tmp_path / "out" / "y.h5") as ds:
        assert "out of the directory" in ds.all_notes()["/"][0].message
        assert not ds.variables
    with netcdf.Dataset(tmp_path / "out" / "y.h5", storage_options={"references": "trusted"}) as ds:
        assert ds["v"].shape == (2, 4)
