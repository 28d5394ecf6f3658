"""Variables of types that a program defines: after a round trip h5py sees the same, or the report names the loss."""

from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import omnizarr
from omnizarr.errors import NotRepresentableError
from omnizarr.netcdf import files

BASES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
SHAPES = {"scalar": (), "fixed": (3,), "unlimited": (4,), "chunked": (4, 3)}
TARGETS = {
    "v3": (3, "{}"),
    "v2": (2, "{}"),
    "nczarr": (2, "file://{}#mode=nczarr"),
    "pure v2": (2, "file://{}#mode=zarr"),
    "pure v3": (3, "file://{}#mode=zarr"),
}


def enum_of(base):
    limits = np.iinfo(base)
    low = {"Low_est": int(limits.min)} if limits.min else {}
    return h5py.enum_dtype({**low, "Clear": 0, "Cu mulus": 1, "High": min(int(limits.max), 2**63 - 1)}, base)


def filled(dtype, shape):
    """Return values of all bytes that a type can have."""
    kinds = h5py.check_enum_dtype(dtype)
    if kinds is not None:
        return np.resize(np.array(list(kinds.values()), dtype), shape).astype(dtype)
    if dtype.kind == "b":
        return np.resize([True, False, True], shape)
    if dtype.kind == "V" and not dtype.names:
        return np.resize(np.array([b"ab\0cd", b"\xff\0\0\0\0"], dtype), shape)
    values = np.zeros(shape, dtype)
    for place in np.ndindex(*shape):
        seed = sum(place) + 1
        if dtype.kind == "c":
            values[place] = complex(seed, -seed)
            continue
        for name in dtype.names:
            field = dtype[name]
            if field.names:
                values[name][place] = tuple(seed for _ in field.names)
            else:
                values[name][place] = b"text" if field.base.kind == "S" else seed
    return values


def types_of_h5py():
    numbers = [("n", "<i4"), ("x", "<f8")]
    return {
        **{f"enum_{base}": enum_of(base) for base in BASES},
        "flag": np.dtype(bool),
        "pair": np.dtype("c16"),
        "flat": np.dtype(numbers),
        "padded": np.dtype([("a", "i1"), ("b", "<f8")], align=True),
        "texts": np.dtype([("id", "<i8"), ("name", "S10")]),
        "chars": np.dtype([("id", "<i8"), ("name", "S1", (6,))]),
        "nested": np.dtype([("id", "<i2"), ("in", numbers)]),
        "vector": np.dtype([("id", "<i2"), ("v", "<f4", (2, 3))]),
        "with_enum": np.dtype([("id", "<i2"), ("sky", enum_of("i1"))]),
        "with_bool": np.dtype([("id", "<i2"), ("ok", "?")]),
        "raw": np.dtype("V5"),
    }


def written(path, kind):
    """Write a file with a variable of each type; the unlimited dimension is as long as they make it."""
    with netCDF4.Dataset(path, "w") as made:
        made.createDimension("t", None)
        made.createDimension("x", 3)
        sky = made.createEnumType("i2", "sky_t", {"Clear": 0, "Rain": 300})
        names = {"scalar": (), "fixed": ("x",), "unlimited": ("t",), "chunked": ("t", "x")}[kind]
        deflate = {"zlib": True, "chunksizes": (2, 3)} if kind == "chunked" else {}
        variable = made.createVariable("sky", sky, names, fill_value=300, **deflate)
        variable[...] = np.resize(np.array([0, 300], "i2"), SHAPES[kind])
        own = made.createVariable("own", sky, names, **deflate)
        own[...] = np.resize(np.array([300, 0], "i2"), SHAPES[kind])
        own.flag_values = np.array([0, 300], "i2")
        own.flag_meanings = "dry wet"
    shape = SHAPES[kind]
    with h5py.File(path, "r+") as hdf5:
        for name, dtype in types_of_h5py().items():
            options = {"maxshape": [None if each == "t" else 3 for each in names]} if "t" in names else {}
            if kind == "chunked":
                options |= {"chunks": (2, 3), "compression": "gzip", "shuffle": True}
            dataset = hdf5.create_dataset(name, shape, dtype, **options)
            dataset[...] = filled(dtype, shape)
            for axis, each in enumerate(names):
                dataset.dims[axis].attach_scale(hdf5[each])
    return path


def seen(path):
    """Return what h5py sees of the variables: types, values, attributes of their own."""
    found = {}
    with h5py.File(path) as hdf5:
        for name, each in hdf5.items():
            if isinstance(each, h5py.Dataset) and not each.is_scale:
                attributes = {
                    key: (np.asarray(value).tolist(), h5py.check_enum_dtype(each.attrs.get_id(key).dtype))
                    for key, value in each.attrs.items()
                    if key not in {"DIMENSION_LIST", "_Netcdf4Coordinates", "_Netcdf4Dimid"}
                }
                found[name] = (_type(each.dtype), each.shape, _bytes(each), attributes)
    return found


def _packed(dtype):
    """Return a type without gaps, and without the byte order, which netCDF leaves to the machine."""
    if dtype.names:
        return np.dtype([(name, _packed(dtype[name])) for name in dtype.names])
    return np.dtype((_packed(dtype.base), dtype.shape)) if dtype.subdtype else dtype.newbyteorder("=")


def _type(dtype):
    inner = [h5py.check_enum_dtype(dtype[name]) for name in dtype.names or ()]
    return _packed(dtype), h5py.check_enum_dtype(dtype), inner


def _bytes(dataset):
    return np.asarray(dataset[()]).astype(_packed(dataset.dtype)).tobytes()


def lost(*reports):
    return {node.path for each in reports for node in each.nodes if node.losses}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("target", TARGETS)
def test_round_trip_keeps_or_names_every_variable(tmp_path, kind, target):
    source = written(tmp_path / "a.nc", kind)
    zarr_format, url = TARGETS[target]
    place = url.format(tmp_path / "a.zarr")
    there = omnizarr.convert(source, place, zarr_format=zarr_format)
    back = omnizarr.convert(place, tmp_path / "b.nc")
    wanted, found = seen(source), seen(tmp_path / "b.nc")
    differ = {name for name in wanted if found.get(name) != wanted[name]}
    named = lost(there, back)
    assert differ <= named
    if target in {"v2", "v3"}:  # nothing is named without need
        homeless = {"with_enum", "raw", "texts", "nested", "with_bool"} | ({"vector"} if target == "v3" else set())
        assert named - {""} <= homeless
        assert not differ - homeless
    if "t" in dict(files.plan(_root(tmp_path / "b.nc")).root.dimensions) and kind in {"unlimited", "chunked"}:
        assert _root(tmp_path / "b.nc").dimensions["t"].size == SHAPES[kind][0]
    if lost(there):
        with pytest.raises(NotRepresentableError, match="something would be lost"):
            omnizarr.convert(source, place, zarr_format=zarr_format, strict=True, dry_run=True)


def _root(path):
    with files.open_file(path) as source:
        return source.root


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_others_see_numbers_with_their_meanings(tmp_path: Path, zarr_format):
    source = written(tmp_path / "a.nc", "fixed")
    omnizarr.convert(source, tmp_path / "a.zarr", zarr_format=zarr_format)
    keep = [f"enum_{base}" for base in BASES]
    group = omnizarr.open_group(tmp_path / "a.zarr")
    for name, base in zip(keep, BASES, strict=True):
        members = {key.replace(" ", "_"): value for key, value in h5py.check_enum_dtype(enum_of(base)).items()}
        attrs = group[name].attrs  # HDF5 has an order of its own
        assert dict(zip(attrs["flag_meanings"].split(), attrs["flag_values"], strict=True)) == members
        np.testing.assert_array_equal(group[name][:], filled(enum_of(base), (3,)))
    assert group["own"].attrs["flag_meanings"] == "dry wet"
    np.testing.assert_array_equal(group["flat"][:], filled(types_of_h5py()["flat"], (3,)))
    if zarr_format == 3:  # in v2, zarr-python 3.1 knows no records in records
        with xr.open_zarr(tmp_path / "a.zarr", consolidated=False) as opened:
            assert opened["flag"].dtype == bool
            assert opened["flag"].values.tolist() == [True, False, True]
            assert opened["pair"].values.tolist() == filled(np.dtype("c16"), (3,)).tolist()
            assert opened["enum_u2"].attrs["flag_meanings"] == "Clear Cu_mulus High"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_changed_meanings_are_attributes_of_the_file(tmp_path, zarr_format):
    omnizarr.convert(written(tmp_path / "a.nc", "fixed"), tmp_path / "a.zarr", zarr_format=zarr_format)
    omnizarr.open_array(tmp_path / "a.zarr/enum_i1", mode="r+").attrs["flag_meanings"] = "a b c d"
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / "b.nc")
    with h5py.File(tmp_path / "b.nc") as hdf5:
        assert bytes(hdf5["enum_i1"].attrs["flag_meanings"]) == b"a b c d"
        assert h5py.check_enum_dtype(hdf5["enum_i1"].dtype) == h5py.check_enum_dtype(enum_of("i1"))


def test_types_of_one_name_in_several_groups_stay_apart(tmp_path):
    with h5py.File(tmp_path / "a.nc", "w") as hdf5:
        for group, members in {"a": {"No": 0}, "b": {"No": 1}, "a/c": {"No": 2}}.items():
            values = np.full(2, members["No"], h5py.enum_dtype(members, "i1"))
            hdf5.create_dataset(f"{group}/sky", data=values)
            hdf5.create_dataset(f"{group}/sky_t", data=values)
    omnizarr.convert(tmp_path / "a.nc", tmp_path / "a.zarr", strict=True)
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / "b.nc", strict=True)
    with h5py.File(tmp_path / "b.nc") as hdf5:
        for number, group in enumerate(["a", "b", "a/c"]):
            assert h5py.check_enum_dtype(hdf5[f"{group}/sky"].dtype) == {"No": number}
            assert hdf5[f"{group}/sky"][:].tolist() == [number, number]
