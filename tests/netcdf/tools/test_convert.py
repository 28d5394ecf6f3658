"""Conversions of netCDF files; netCDF4-python and h5py read the content of files, not omnizarr."""

import json
import os
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import netcdf
from omnizarr.errors import (
    ChunkError,
    GroupNotFoundError,
    MetadataError,
    MissingDependencyError,
    NodeExistsError,
    NodeNameError,
    NodeNotFoundError,
    NotRepresentableError,
    SettingError,
    StoreError,
)
from omnizarr.netcdf import Attribute, copying, files
from omnizarr.netcdf.files import writing
from omnizarr.netcdf.header import GroupHeader, VariableHeader
from tests.netcdf import generated

FORMATS = [2, 3]
NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
CLASSIC = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC"]


# Helpers: what is in a file, asked of netCDF4-python and of h5py


def seen(path):
    """Everything in a netCDF-4 file, in a form that compares exactly: attributes by their HDF5 type and bytes."""
    with netCDF4.Dataset(path) as dataset, h5py.File(path) as hdf5:
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
        return seen_group(dataset, hdf5)


def seen_group(group, hdf5):
    return {
        "dimensions": [(name, len(each), each.isunlimited()) for name, each in group.dimensions.items()],
        "attributes": seen_attributes(group, hdf5),
        "variables": {name: seen_variable(each, hdf5) for name, each in group.variables.items()},
        "groups": {name: seen_group(each, hdf5[name]) for name, each in group.groups.items()},
    }


def seen_variable(variable, hdf5):
    other = f"_nc4_non_coord_{variable.name}"
    stored = hdf5[other if other in hdf5 else variable.name]
    try:
        values = variable[...]
    except (IndexError, RuntimeError):  # netCDF4-python takes another dimension of the same name for its own
        values = stored[...]
    return {
        "type": str(variable.dtype),
        "order": variable.endian(),
        "dimensions": [f"{each.group().path.rstrip('/')}/{each.name}" for each in variable.get_dims()],
        "attributes": seen_attributes(variable, stored),
        "values": np.array(values, object).tolist() if variable.dtype is str else np.asarray(values).tobytes(),
    }


def seen_attributes(owner, hdf5):
    found = {}
    for name in owner.ncattrs():
        stored = h5py.h5a.open(hdf5.id, name.encode())
        kind, shape = stored.get_type(), stored.shape
        if isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str():
            raw = np.zeros((), f"S{kind.get_size()}")
            if stored.get_space().get_simple_extent_npoints():
                stored.read(raw, kind)
            found[name] = ("char", raw.tobytes())
        elif isinstance(kind, h5py.h5t.TypeStringID):
            values = np.empty(shape or (0,), h5py.string_dtype())
            if values.size:
                stored.read(values)
            found[name] = ("string", values.tolist())
        else:
            values = np.zeros(shape or (0,), kind.dtype)
            if values.size:
                stored.read(values)
            found[name] = (kind.dtype.str, values.tobytes())
    return found


@pytest.fixture
def old(tmp_path):
    """A netCDF-4 file with attributes of all types."""
    path = tmp_path / "old.nc"
    with netCDF4.Dataset(path, "w") as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("x", 3)
        sst = dataset.createVariable(
            "sst", ">f4", ("time", "x"), fill_value=np.float32(-9), zlib=True, chunksizes=(2, 2), endian="big"
        )
        sst[:] = np.arange(12, dtype="f4").reshape(4, 3)
        for code in NUMBERS:
            sst.setncattr(f"one_{code}", np.array(7, code))
            sst.setncattr(f"many_{code}", np.array([1, 2, 3], code))
        sst.units = "K"
        sst.setncattr_string("long_name", "sea")
        sst.setncattr_string("words", ["a", "b"])
        group = dataset.createGroup("g")
        group.createVariable("time", "i2", ("time",))[:] = [1, 2, 3, 4]
        group.createVariable("text", str, ("x",))[:] = np.array(["a", "", "Größe"], object)
        group.createVariable("letters", "S1", ("x",))[:] = np.array([b"a", b"\0", b"c"])
        group.createVariable("scalar", "u8")[...] = 2**64 - 1
        dataset.title = "hello"
    return path


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_file_comes_back_as_it_was(old, tmp_path, zarr_format):
    there = omnizarr.convert(old, tmp_path / "new.zarr", zarr_format=zarr_format)
    back = omnizarr.convert(tmp_path / "new.zarr", tmp_path / "back.nc")
    assert (there.losses, back.losses) == ((), ())
    assert there.verified
    assert back.verified
    assert seen(tmp_path / "back.nc") == seen(old)


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_attribute_types_are_kept_in_zarr(old, tmp_path, zarr_format):
    omnizarr.convert(old, tmp_path / "new.zarr", zarr_format=zarr_format)
    with netcdf.Dataset(tmp_path / "new.zarr") as dataset:
        for code in NUMBERS:
            assert dataset["sst"].getncattr(f"one_{code}").dtype == code
            assert dataset["sst"].getncattr(f"many_{code}").dtype == code


def test_account_says_what_was_done(old, tmp_path):
    done = omnizarr.convert(old, tmp_path / "new.zarr")
    assert (done.source_format, done.target_format) == ("netCDF-4", "v3")
    assert [(each.path, each.node_type, each.how, each.verified) for each in done.nodes] == [
        ("", "group", "documents", ""),
        ("sst", "array", "encoded", "values"),
        ("g", "group", "documents", ""),
        ("g/time", "array", "encoded", "values"),
        ("g/text", "array", "encoded", "values"),
        ("g/letters", "array", "encoded", "values"),
        ("g/scalar", "array", "encoded", "values"),
    ]
    assert done.nodes[1].chunks == 4
    assert done.nodes[1].nbytes > 0


@pytest.mark.parametrize("file_format", CLASSIC)
def test_classic_files_are_sources(tmp_path, file_format):
    with netCDF4.Dataset(tmp_path / "old.nc", "w", format=file_format) as dataset:
        dataset.createDimension("t", None)
        variable = dataset.createVariable("v", "i2", ("t",))
        variable[:] = [1, -2, 3]
        variable.setncattr("factor", np.float32(0.5))
        variable.setncattr("limits", np.array([1, 2], "i2"))
    done = omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr", zarr_format=2)
    assert done.losses == ()
    with netcdf.Dataset(tmp_path / "new.zarr") as dataset:
        assert dataset.dimensions["t"].isunlimited()
        assert dataset["v"][...].tolist() == [1, -2, 3]
        assert dataset["v"].factor.dtype == "f4"
        assert dataset["v"].limits.dtype == "i2"


def test_file_becomes_another_file(old, tmp_path):
    done = omnizarr.convert(old, tmp_path / "new.nc4")
    assert done.target_format == "netCDF-4"
    assert seen(tmp_path / "new.nc4") == seen(old)


def test_nan_payloads_and_signs_are_kept(tmp_path):
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FC12345, 0x80000000], "u4")
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.createDimension("x", len(bits))
        variable = dataset.createVariable("v", "f4", ("x",))
        variable.set_auto_maskandscale(False)
        variable[:] = bits.view("f4")
    for zarr_format in FORMATS:
        omnizarr.convert(tmp_path / "old.nc", tmp_path / f"{zarr_format}.zarr", zarr_format=zarr_format)
        omnizarr.convert(tmp_path / f"{zarr_format}.zarr", tmp_path / f"{zarr_format}.nc")
        with netCDF4.Dataset(tmp_path / f"{zarr_format}.nc") as dataset:
            dataset.set_auto_maskandscale(False)
            assert dataset["v"][:].view("u4").tolist() == bits.tolist()


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_long_strings_are_not_cut(tmp_path, zarr_format):
    texts = ["ü" * 100, "x" * 1000, ""]
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.createDimension("x", 3)
        dataset.createVariable("v", str, ("x",))[:] = np.array(texts, object)
    omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr", zarr_format=zarr_format)
    with netcdf.Dataset(tmp_path / "new.zarr") as dataset:
        assert dataset["v"][...].tolist() == texts


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_filters_and_order_of_bytes_are_kept(tmp_path, zarr_format):
    kinds = {
        "zlib": {"zlib": True, "complevel": 3},
        "plain": {"zlib": True, "shuffle": False},
        "zstd": {"compression": "zstd", "complevel": 5},
        "bzip2": {"compression": "bzip2", "complevel": 2},
        "checked": {"fletcher32": True},
    }
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.createDimension("x", 1000)
        for name, options in kinds.items():
            variable = dataset.createVariable(name, ">f4", ("x",), endian="big", chunksizes=(100,), **options)
            variable[:] = np.arange(1000)
    omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr", zarr_format=zarr_format)
    back = omnizarr.convert(tmp_path / "new.zarr", tmp_path / "back.nc")
    assert back.losses == ()
    with netCDF4.Dataset(tmp_path / "old.nc") as one, netCDF4.Dataset(tmp_path / "back.nc") as other:
        for name in kinds:
            assert other[name].filters() == one[name].filters()
            assert (other[name].chunking(), other[name].endian()) == (one[name].chunking(), one[name].endian())


# What cannot be carried


@pytest.fixture
def typed(tmp_path):
    """A file with types that a program defined."""
    with netCDF4.Dataset(tmp_path / "typed.nc", "w") as dataset:
        dataset.createDimension("x", 2)
        sky = dataset.createEnumType("u1", "sky", {"clear": 0, "cloudy": 1})
        pair = dataset.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair")
        rows = dataset.createVLType("i4", "rows")
        dataset.createVariable("clouds", sky, ("x",))[:] = [1, 0]
        dataset.createVariable("pairs", pair, ("x",))[:] = np.array([(1, 0.5), (2, 1.5)], pair.dtype)
        lists = dataset.createVariable("lists", rows, ("x",))
        lists[0], lists[1] = np.array([1, 2], "i4"), np.array([3], "i4")
        dataset.createVariable("plain", "i4", ("x",))[:] = [5, 6]
        dataset.setncattr("origin", np.array((7, 2.5), pair.dtype))
    return tmp_path / "typed.nc"


def test_variables_of_types_without_a_place_are_left_out_and_reported(typed, tmp_path):
    done = omnizarr.convert(typed, tmp_path / "new.zarr")
    told = {each.path for each in done.losses if not each.pointer}
    assert told == {"lists"}
    assert {each.path: each.how for each in done.nodes if each.node_type == "array"} == {
        "clouds": "encoded",
        "pairs": "encoded",
        "lists": "left out",
        "plain": "copied",
    }
    with netcdf.Dataset(tmp_path / "new.zarr") as dataset:
        assert list(dataset.variables) == ["clouds", "pairs", "plain"]


def test_types_of_users_are_reported(typed, tmp_path):
    pointers = {each.pointer for each in omnizarr.convert(typed, tmp_path / "x.zarr", dry_run=True).losses}
    assert pointers >= {"/types/rows"}


def test_user_defined_types_go_from_file_to_file(typed, tmp_path):
    done = omnizarr.convert(typed, tmp_path / "new.nc")
    assert done.is_lossless
    with h5py.File(tmp_path / "new.nc") as file:
        assert file.attrs["origin"].tolist() == [(7, 2.5)]
    with netCDF4.Dataset(tmp_path / "new.nc") as dataset:
        assert dataset["clouds"][:].tolist() == [1, 0]
        assert dataset["pairs"][:].tolist() == [(1, 0.5), (2, 1.5)]
        assert [each.tolist() for each in dataset["lists"][:]] == [[1, 2], [3]]


@pytest.mark.parametrize("target", ["new.zarr", "new.nc"])
def test_strict_refuses_before_anything_is_written(typed, tmp_path, target):
    with h5py.File(typed, "r+") as file:
        file.attrs["region"] = file["plain"].regionref[:1]
    with pytest.raises(NotRepresentableError, match="would be lost"):
        omnizarr.convert(typed, tmp_path / target, strict=True)
    assert not (tmp_path / target).exists()


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_what_pure_zarr_cannot_hold_is_reported(old, tmp_path, zarr_format):
    done = omnizarr.convert(old, f"file://{tmp_path}/new.zarr#mode=zarr", zarr_format=zarr_format)
    told = {(each.path, each.pointer): each for each in done.losses}
    assert ("", "/dimensions/time") in told
    assert told["sst", "/attributes/one_i2"].what == "attribute one_i2 = short [7]"
    assert told["sst", "/attributes/one_i2"].kept == "int [7]"
    assert ("sst", "/attributes/units") not in told
    assert done.verified


def test_booleans_of_zarr_become_an_enum(tmp_path):
    root = omnizarr.create_group(tmp_path / "old.zarr", zarr_format=3)
    root.create_array("flags", data=np.array([True, False]), dimension_names=["x"])
    done = omnizarr.convert(tmp_path / "old.zarr", tmp_path / "new.nc")
    assert done.verified
    with netCDF4.Dataset(tmp_path / "new.nc") as dataset:
        assert dataset["flags"][:].tolist() == [1, 0]


def test_text_that_is_json_stays_text(tmp_path):
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.settings = '{"a": [1, 2]}'
    done = omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr")
    assert done.losses == ()
    assert zarr.open_group(tmp_path / "new.zarr").attrs["settings"] == '{"a": [1, 2]}'


def test_blanks_of_json_in_text_are_reported_where_netcdf_c_has_json(tmp_path):
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.settings = '{"a": [1, 2]}'
    target = f"file://{tmp_path}/new.zarr#mode=nczarr,v2"
    (loss,) = omnizarr.convert(tmp_path / "old.nc", target).losses
    assert (loss.pointer, loss.kept) == ("/attributes/settings", "char '{\"a\": [1,2]}'")


def test_nothing_is_written_in_a_dry_run(old, tmp_path):
    omnizarr.convert(old, tmp_path / "zarr" / "new.zarr", zarr_format=2)
    before = sorted(tmp_path.rglob("*"))
    there = omnizarr.convert(old, tmp_path / "dry.zarr", dry_run=True)
    back = omnizarr.convert(tmp_path / "zarr" / "new.zarr", tmp_path / "dry.nc", dry_run=True)
    without = omnizarr.convert(old, dry_run=True)
    assert sorted(tmp_path.rglob("*")) == before
    assert [len(each.nodes) for each in (there, back, without)] == [7, 7, 7]
    assert not there.verified


# What is compared


def spoilt(monkeypatch, spoil):
    """Let what is read of a file be something else, from the second time on that a file is opened."""
    opened, times = files.open_file, []

    def open_file(path, **options):
        times.append(path)
        manager = opened(path)
        return manager if len(times) == 1 else _Spoilt(manager, spoil)

    monkeypatch.setattr(files, "open_file", open_file)


class _Spoilt:
    def __init__(self, manager, spoil):
        self._manager, self._spoil = manager, spoil

    def __enter__(self):
        return self._spoil(self._manager.__enter__())

    def __exit__(self, *error):
        return self._manager.__exit__(*error)


def other_values(source):
    def read(name, selection):
        values = source.read(name, selection).copy()
        if name == "/v":
            values.reshape(-1)[-1] = values.dtype.type(9)
        return values

    return source._replace(read=read)


def other_attribute(source):
    ((name, header),) = source.root.variables.items()
    changed = VariableHeader(
        name=name, type=header.type, dimensions=header.dimensions, attributes={"a": Attribute.of(np.int32(1))}
    )
    root = GroupHeader(dimensions=source.root.dimensions, variables={name: changed})
    return source._replace(root=root)


def other_dimension(source):
    longer = {name: type(each)(name, each.size, not each.unlimited) for name, each in source.root.dimensions.items()}
    root = GroupHeader(dimensions=longer, variables=source.root.variables)
    return source._replace(root=root)


def no_variable(source):
    return source._replace(root=GroupHeader(dimensions=source.root.dimensions))


@pytest.mark.parametrize("spoil", [other_values, other_attribute, other_dimension, no_variable])
@pytest.mark.parametrize("code", ["f4", "S1", str])
def test_difference_in_what_was_written_is_found(tmp_path, monkeypatch, spoil, code):
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.createDimension("x", 2)
        variable = dataset.createVariable("v", code, ("x",))
        variable[:] = np.array(["a", "b"], object if code is str else "S1") if code != "f4" else [1, 2]
        variable.setncattr("a", np.int16(1))
    (tmp_path / "new.nc").write_bytes(b"what was there")
    spoilt(monkeypatch, spoil)
    with pytest.raises(ChunkError, match=r"were written than were read|differs from what was read"):
        omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.nc", overwrite=True)
    assert (tmp_path / "new.nc").read_bytes() == b"what was there"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new.nc", "old.nc"]


def test_difference_in_a_chunk_of_zarr_is_found_and_nothing_stays(old, tmp_path, monkeypatch):
    write = copying.write

    def write_and_spoil(dataset, source, **options):
        write(dataset, source, **options)
        dataset["g/time"][2] = 99

    monkeypatch.setattr(copying, "write", write_and_spoil)
    with pytest.raises(ChunkError, match="differs") as caught:
        omnizarr.convert(old, tmp_path / "new.zarr")
    assert caught.value.path == "g/time"
    assert not (tmp_path / "new.zarr").exists()


def test_without_verify_nothing_is_read_again(old, tmp_path, monkeypatch):
    spoilt(monkeypatch, no_variable)
    done = omnizarr.convert(old, tmp_path / "new.nc", verify=False)
    assert not done.verified
    assert seen(tmp_path / "new.nc") == seen(old)


# What is interrupted


class _StoppedError(Exception):
    """Not one of omnizarr's."""


@pytest.mark.parametrize("target", ["new.zarr", "new.zip", "new.nc"])
@pytest.mark.parametrize("error", [_StoppedError, KeyboardInterrupt])
def test_interrupted_conversion_leaves_nothing(old, tmp_path, monkeypatch, target, error):
    def stop(*_, **__):
        raise error

    monkeypatch.setattr(netcdf.Variable, "write_raw", stop)
    monkeypatch.setattr(writing, "_storer", lambda _: stop)
    with pytest.raises(error):
        omnizarr.convert(old, tmp_path / target)
    assert [each.name for each in tmp_path.iterdir()] == ["old.nc"]


def test_interrupted_conversion_leaves_no_half_group_in_a_store(old, monkeypatch):
    def stop(*_, **__):
        raise _StoppedError

    monkeypatch.setattr(netcdf.Variable, "write_raw", stop)
    store = {}
    with pytest.raises(_StoppedError):
        omnizarr.convert(old, store)
    assert store == {}


def test_interrupted_replacement_leaves_the_old_file(old, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise _StoppedError

    (tmp_path / "new.nc").write_bytes(b"what was there")
    monkeypatch.setattr(writing, "_storer", lambda _: stop)
    with pytest.raises(_StoppedError):
        omnizarr.convert(old, tmp_path / "new.nc", overwrite=True)
    assert (tmp_path / "new.nc").read_bytes() == b"what was there"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["new.zarr", "new.zip", "file://{}/new.zarr#mode=nczarr,consolidated"])
def test_replacement_that_fails_leaves_the_old_hierarchy(old, tmp_path, monkeypatch, name):
    target = name.format(tmp_path) if "{}" in name else str(tmp_path / name)
    omnizarr.convert(old, target)
    with netcdf.Dataset(target, "r+") as dataset:
        dataset.old = 1
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr("omnizarr.netcdf.copying._copy", _stop)
        with pytest.raises(_StoppedError):
            omnizarr.convert(old, target, overwrite=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    omnizarr.convert(old, target, overwrite=True)
    with netcdf.Dataset(target) as dataset, netCDF4.Dataset(old) as expected:
        assert "old" not in dataset.ncattrs()
        assert sorted(dataset.variables) == sorted(expected.variables)


def _stop(*_, **__):
    raise _StoppedError


# Places


@pytest.mark.parametrize("target", ["new.zarr", "new.zip", "new.nc"])
def test_target_is_replaced_only_if_asked(old, tmp_path, target):
    omnizarr.convert(old, tmp_path / target)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        omnizarr.convert(old, tmp_path / target)
    done = omnizarr.convert(old, tmp_path / target, overwrite=True)
    assert done.verified


def test_source_is_never_overwritten(old):
    before = old.read_bytes()
    old.with_name("link.nc").symlink_to(old.name)
    os.link(old, old.with_name("hard.nc"))
    for target in (old, old.with_name("link.nc"), old.with_name("hard.nc"), old / "x.zarr", old.parent):
        with pytest.raises(NodeNameError, match="lie in each other"):
            omnizarr.convert(old, target, overwrite=True)
    assert old.read_bytes() == before


def test_file_is_not_written_into_its_source(old, tmp_path):
    omnizarr.convert(old, tmp_path / "a.zarr")
    with pytest.raises(NodeNameError):
        omnizarr.convert(tmp_path / "a.zarr", tmp_path / "a.zarr" / "x.nc")


def test_directory_that_is_called_as_a_file_is_zarr(old, tmp_path):
    (tmp_path / "dir.nc").mkdir()
    done = omnizarr.convert(old, tmp_path / "dir.nc", zarr_format=2)
    assert done.target_format == "v2"
    back = omnizarr.convert(tmp_path / "dir.nc", tmp_path / "back.nc")
    assert (back.source_format, back.target_format) == ("v2", "netCDF-4")


def test_urls_of_files_are_understood(old, tmp_path):
    omnizarr.convert(old, f"file://{tmp_path}/new.zarr#mode=nczarr,v2")
    assert (tmp_path / "new.zarr" / ".zgroup").exists()
    omnizarr.convert(f"file://{tmp_path}/new.zarr#mode=nczarr", tmp_path / "back.nc")
    assert seen(tmp_path / "back.nc") == seen(old)


def test_missing_source_is_named(tmp_path):
    with pytest.raises(NodeNotFoundError, match="no such file"):
        omnizarr.convert(tmp_path / "none.nc", tmp_path / "new.zarr")
    with pytest.raises(GroupNotFoundError):
        omnizarr.convert(tmp_path / "none.zarr", tmp_path / "new.nc")
    assert list(tmp_path.iterdir()) == []


def test_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "old.nc").write_text("no netCDF")
    with pytest.raises(StoreError, match="another format"):
        omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr")


def test_file_that_is_cut_off_is_refused(old, tmp_path):
    (tmp_path / "cut.nc").write_bytes(old.read_bytes()[:4000])
    with pytest.raises(MetadataError, match="shorter than it says"):
        omnizarr.convert(tmp_path / "cut.nc", tmp_path / "new.zarr")
    assert not (tmp_path / "new.zarr").exists()


def test_directory_that_is_missing_is_named(old, tmp_path):
    with pytest.raises(StoreError, match="no such directory"):
        omnizarr.convert(old, tmp_path / "none" / "new.nc")


def test_missing_library_is_named_where_one_is_needed(old, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "netCDF4", None)
    omnizarr.convert(old, tmp_path / "new.zarr")
    with pytest.raises(MissingDependencyError, match=r"omnizarr\[netcdf\]"):
        omnizarr.convert(tmp_path / "new.zarr", tmp_path / "new.nc")


@pytest.mark.parametrize(
    "options", [{"chunks": (2,)}, {"resume": True}, {"in_place": True}, {"path": "g"}, {"zarr_format": 1}], ids=str
)
def test_option_without_meaning_is_refused(old, tmp_path, options):
    with pytest.raises(SettingError):
        omnizarr.convert(old, tmp_path / "new.zarr", **options)
    assert not (tmp_path / "new.zarr").exists()


def test_target_is_needed(old):
    with pytest.raises(ValueError, match="give a target"):
        omnizarr.convert(old)


# Progress, and memory


class _Bar:
    def __init__(self, total, desc, unit, unit_scale):
        self.total, self.done, self.closed = total, 0, False
        _Bar.last = self

    def update(self, count):
        self.done += count

    def close(self):
        self.closed = True


@pytest.mark.parametrize("target", ["new.zarr", "new.nc"])
@pytest.mark.parametrize("verify", [True, False])
def test_progress_counts_to_its_total(old, tmp_path, target, verify):
    omnizarr.convert(old, tmp_path / target, progress=_Bar, verify=verify)
    values = 12 * 4 + 4 * 2 + 3 * 8 + 3 + 8
    assert (_Bar.last.total, _Bar.last.done, _Bar.last.closed) == (values * (1 + verify), values * (1 + verify), True)


def test_parts_that_are_compared_are_whole_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("omnizarr.netcdf.tools.planning._COMPARED", 1024)
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.createDimension("y", 64)
        dataset.createDimension("x", 64)
        dataset.createVariable("v", "f8", ("y", "x"), chunksizes=(64, 2))[:] = np.arange(4096.0).reshape(64, 64)
    read = []
    opened = files.open_file

    def open_file(path, **options):
        return _Spoilt(
            opened(path, **options), lambda source: source._replace(read=lambda *question: _noted(source, *question))
        )

    def _noted(source, name, selection):
        read.append(tuple((each.start, each.stop) for each in selection))
        return source.read(name, selection)

    monkeypatch.setattr(files, "open_file", open_file)
    omnizarr.convert(tmp_path / "old.nc", tmp_path / "new.zarr")
    compared = read[-32:]
    assert compared == [((0, 64), (start, start + 2)) for start in range(0, 64, 2)]


# Whatever Hypothesis thinks of


def is_no_json(attribute):
    """Text that is JSON becomes JSON, by the document's appendix C, and loses blanks; the account says so."""
    return not isinstance(attribute.value, str) or not attribute.value.startswith(("[", "{"))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=generated.datasets(generated.Allowed(attribute=is_no_json)), zarr_format=st.sampled_from(FORMATS))
def test_any_file_comes_back_as_it_was(tmp_path_factory, made, zarr_format):
    place = Path(tmp_path_factory.mktemp("any"))
    try:
        files.write_file(place / "old.nc", made.source())
    except NotRepresentableError:  # a group is called as a dimension; netCDF-C's blosc cannot make data smaller
        return
    there = omnizarr.convert(place / "old.nc", place / "new.zarr", zarr_format=zarr_format)
    back = omnizarr.convert(place / "new.zarr", place / "back.nc")
    assert there.losses == ()
    assert {each.why for each in back.losses} <= {"to netCDF-C a length of 0 means unlimited"}
    assert seen(place / "back.nc") == seen(place / "old.nc")


# Files of HDF5 that are not netCDF's


def marked(place):
    """Return the documents of a hierarchy in which NCZarr is mentioned."""
    return [path for path in Path(place).rglob("*") if path.name in DOCUMENTS and b"_nczarr" in path.read_bytes()]


DOCUMENTS = {"zarr.json", ".zattrs", ".zgroup", ".zarray"}


@pytest.mark.slow
def test_files_of_anndata_get_no_attributes_of_nczarr(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    obs = pandas.DataFrame({"n": pandas.array([1, None, 3], dtype="Int64"), "s": ["a", "b", "c"]}, index=list("xyz"))
    anndata.AnnData(np.eye(3, 4, dtype="f4"), obs=obs).write_h5ad(tmp_path / "x.h5ad")
    report = omnizarr.convert(tmp_path / "x.h5ad", tmp_path / "x.zarr", strict=True)
    assert not marked(tmp_path / "x.zarr")
    assert "no attributes of NCZarr" in str(report)
    found = anndata.read_zarr(tmp_path / "x.zarr")
    assert found.obs["n"].tolist() == [1, pandas.NA, 3]
    assert found.obs["s"].tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found.X, np.eye(3, 4))


def test_attributes_of_nczarr_are_written_on_request_and_where_more_would_be_lost(tmp_path):
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["x"] = np.arange(3)
        file.attrs["half"] = np.float32(0.5)
    with h5py.File(tmp_path / "named.h5", "w") as file:
        colours = h5py.enum_dtype({"red": 0, "blue": 1}, basetype="i1")
        file.create_dataset("colour", data=np.array([0, 1], "i1"), dtype=colours)
    omnizarr.convert(tmp_path / "plain.h5", tmp_path / "plain.zarr", strict=True)
    omnizarr.convert(tmp_path / "plain.h5", f"{tmp_path.as_uri()}/asked.zarr#mode=nczarr", zarr_format=2, strict=True)
    omnizarr.convert(tmp_path / "named.h5", tmp_path / "named.zarr", strict=True)
    assert [bool(marked(tmp_path / f"{name}.zarr")) for name in ("plain", "asked", "named")] == [False, True, True]
    with netCDF4.Dataset(f"{(tmp_path / 'asked.zarr').as_uri()}#mode=nczarr,file") as dataset:
        assert dataset["x"][:].tolist() == [0, 1, 2]
        assert dataset.half.dtype == np.dtype("f4")


def test_chunks_of_shards_become_the_chunks_of_a_file(tmp_path):
    values = np.arange(96, dtype="i4").reshape(8, 12)
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("a", data=values, chunks=(2, 3), shards=(8, 6), dimension_names=("y", "x"))
    assert omnizarr.convert(tmp_path / "x.zarr", tmp_path / "x.nc").verified
    with netCDF4.Dataset(tmp_path / "x.nc") as written:
        assert written["a"].chunking() == [2, 3]
        np.testing.assert_array_equal(written["a"][...], values)


def test_shards_that_are_compressed_as_a_whole_are_the_chunks_of_a_file(tmp_path):
    values = np.arange(96, dtype="i4").reshape(8, 12)
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("a", shape=(8, 12), dtype="i4", chunks=(2, 3), shards=(8, 6), dimension_names=("y", "x"))
    path = tmp_path / "x.zarr/a/zarr.json"
    document = json.loads(path.read_text())
    document["codecs"].append({"name": "gzip", "configuration": {"level": 1}})
    path.write_text(json.dumps(document))
    omnizarr.open_array(tmp_path / "x.zarr", path="a")[...] = values
    assert omnizarr.convert(tmp_path / "x.zarr", tmp_path / "x.nc").verified
    with netCDF4.Dataset(tmp_path / "x.nc") as written:
        assert written["a"].chunking() == [8, 6]
        np.testing.assert_array_equal(written["a"][...], values)


@pytest.mark.parametrize("shape", [["x", 2], [2], [-1, 10**30], [None, 2]])
def test_chunks_of_shards_that_are_wrong_are_named(tmp_path, shape):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("a", shape=(4, 4), dtype="i1", chunks=(2, 2), shards=(4, 4), dimension_names=("y", "x"))
    path = tmp_path / "x.zarr/a/zarr.json"
    document = json.loads(path.read_text())
    document["codecs"][0]["configuration"]["chunk_shape"] = shape
    path.write_text(json.dumps(document))
    with pytest.raises(MetadataError, match="shape of an inner chunk"):
        omnizarr.convert(tmp_path / "x.zarr", tmp_path / "x.nc")
