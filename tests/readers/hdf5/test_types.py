"""Datatypes and filters of HDF5 that Zarr does not have as they are: vectors, odd numbers, JSON, nbit, ZFP, Blosc 2."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import LocalStore

PLUGINS = Path(__file__).parent / "data" / "plugins.h5"


def opened(path):
    return omnizarr.open_group(HDF5Store(LocalStore(path.parent, read_only=True), path.name), mode="r")


def low_level(file, name, kind, data, chain=(), chunk=(7,)):
    """Write a dataset of a datatype that only the low-level functions of h5py can make."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chain:
        properties.set_chunk(chunk)
    for each in chain:
        properties.set_filter(each, 0, (4,) if each == h5py.h5z.FILTER_DEFLATE else ())
    space = h5py.h5s.create_simple(data.shape)
    dataset = h5py.h5d.create(file.id, name.encode(), kind, space, properties)
    data = np.ascontiguousarray(data)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, h5py.h5t.py_create(data.dtype))


NBIT, ZLIB, SHUFFLE = h5py.h5z.FILTER_NBIT, h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE
CHAINS = {"plain": (), "nbit": (NBIT,), "nbit and zlib": (NBIT, ZLIB), "zlib": (SHUFFLE, ZLIB)}


@pytest.mark.parametrize("chain", CHAINS)
def test_numbers_with_odd_bits_are_numbers(chain, tmp_path):
    kinds, written, data = {}, {}, np.arange(-50, 50) * 1000
    for name, kind, precision, offset in (
        ("i4", h5py.h5t.STD_I32LE, 17, 3),
        ("u4", h5py.h5t.STD_U32BE, 18, 14),
        ("i8", h5py.h5t.STD_I64BE, 33, 1),
        ("i2", h5py.h5t.STD_I16LE, 9, 0),
        ("whole", h5py.h5t.STD_I32LE, 32, 0),
    ):
        kinds[name] = kind.copy()
        kinds[name].set_precision(precision)
        kinds[name].set_offset(offset)
    kinds["three bytes"] = h5py.h5t.STD_I32LE.copy()
    kinds["three bytes"].set_precision(24)
    kinds["three bytes"].set_size(3)
    kinds["f4"] = h5py.h5t.IEEE_F32BE.copy()
    kinds["f4"].set_fields(26, 20, 6, 7, 13)
    kinds["f4"].set_offset(7)
    kinds["f4"].set_precision(20)
    kinds["f4"].set_ebias(31)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, kind in kinds.items():
            values = (
                np.where(data == 0, np.inf, data / 2000)
                if name == "f4"
                else np.abs(data)
                if name == "u4"
                else data % 251
                if name == "i2"
                else data
            )
            low_level(file, name, kind, values, CHAINS[chain])
            written[name] = values
    root = opened(tmp_path / "x.h5")
    assert not root.store.notes
    for name, values in written.items():
        if name != "f4":
            np.testing.assert_array_equal(root[name][...], values, err_msg=name)
            assert root[name].dtype.kind == ("u" if name == "u4" else "i")
    with h5py.File(tmp_path / "x.h5") as file:
        np.testing.assert_array_equal(root["f4"][...], file["f4"][...])


def test_enumerations_of_odd_bits_are_numbers(tmp_path):
    four = h5py.h5t.STD_U8LE.copy()
    four.set_precision(4)
    kind = h5py.h5t.enum_create(four)
    for number, name in enumerate((b"RED", b"GREEN", b"BLUE")):
        kind.enum_insert(name, number)
    member = h5py.h5t.create(h5py.h5t.COMPOUND, 3)
    member.insert(b"colour", 0, kind)
    member.insert(b"other", 1, h5py.h5t.STD_I16LE)
    values = np.zeros(7, [("colour", "u1"), ("other", "i2")])
    values["colour"], values["other"] = np.arange(7) % 3, range(7)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, of_type, data in (("x", kind, np.ascontiguousarray(values["colour"])), ("y", member, values)):
            space = h5py.h5s.create_simple(data.shape)
            dataset = h5py.h5d.create(file.id, name.encode(), of_type, space)
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, of_type)
    root = opened(tmp_path / "x.h5")
    np.testing.assert_array_equal(root["x"][...], values["colour"])
    np.testing.assert_array_equal(root["y"][...], values)


@pytest.mark.parametrize("chain", CHAINS)
def test_compounds_with_odd_bits_and_arrays_are_records(chain, tmp_path):
    nine = h5py.h5t.STD_I16BE.copy()
    nine.set_precision(9)
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 40)
    kind.insert(b"a", 1, nine)
    kind.insert(b"b", 4, h5py.h5t.IEEE_F64LE)
    kind.insert(b"c", 13, h5py.h5t.array_create(nine, (3,)))
    inner = h5py.h5t.create(h5py.h5t.COMPOUND, 6)
    inner.insert(b"x", 0, nine)
    inner.insert(b"y", 2, h5py.h5t.IEEE_F32BE)
    kind.insert(b"d", 20, inner)  # libhdf5 cannot read arrays of compounds that it has packed by nbit
    kind.insert(b"e", 33, h5py.h5t.array_create(h5py.h5t.STD_U8LE, (2, 2)))
    data = np.zeros(
        100, [("a", "i2"), ("b", "f8"), ("c", "i2", 3), ("d", [("x", "i2"), ("y", "f4")]), ("e", "u1", (2, 2))]
    )
    data["a"], data["b"] = np.arange(100) - 50, np.arange(100) / 7
    data["c"] = np.arange(300).reshape(100, 3) - 150
    data["d"]["x"], data["d"]["y"] = np.arange(100) - 99, np.arange(100) / 3
    pairs = np.zeros(3, [("d", [("x", "i2"), ("y", ">f4")], 2)])
    pairs["d"]["x"], pairs["d"]["y"] = np.arange(6).reshape(3, 2), np.arange(6).reshape(3, 2) / 3
    data["e"] = np.arange(400).reshape(100, 2, 2) % 251
    with h5py.File(tmp_path / "x.h5", "w") as file:
        low_level(file, "x", kind, data, CHAINS[chain])
        file["y"], file["z"] = pairs, pairs["d"]
    root = opened(tmp_path / "x.h5")
    assert not root.store.notes
    assert root["x"].dtype == data.dtype
    np.testing.assert_array_equal(root["x"][...], data)
    np.testing.assert_array_equal(root["y"][...], pairs)
    for field in "xy":
        np.testing.assert_array_equal(root["z"][...][field], pairs["d"][field])


def test_values_that_are_not_stored_are_the_fill_value(tmp_path):
    dtype = np.dtype([("a", ">i2"), ("b", "u1", 2)])
    fill = np.array((7, [1, 2]), dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (5,), dtype, chunks=(2,), fillvalue=fill)[4] = (1, [3, 4])
        file.create_dataset("zeros", (5,), dtype, chunks=(2,))
        file.create_dataset("odd", (5,), np.dtype({"names": ["a"], "formats": [">i4"], "offsets": [3], "itemsize": 9}))
        file.create_dataset("lists", (3, 2), h5py.vlen_dtype("i4"), chunks=(2, 2))[2, 1] = [5, 6]
        file.create_dataset("json", (3,), np.dtype([("a", "i4"), ("b", h5py.string_dtype())]), chunks=(2,))
    root = opened(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        for name in ("x", "zeros", "odd"):
            found = root[name][...]
            for field in found.dtype.names:
                np.testing.assert_array_equal(found[field], file[name][field], err_msg=name)
    assert [each.tolist() for each in root["lists"][...].ravel()] == [[], [], [], [], [], [5, 6]]
    assert root["json"][...].tolist() == ['{"a": 0, "b": ""}'] * 3


ITEMS = ("i1", "i2", ">i4", "u8", "f2", ">f8", "c8", "?")


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
def test_lists_of_numbers_are_vectors(compression, tmp_path):
    rows = [[1, 2, 3], [], [0], list(range(5)) * 30]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for item in ITEMS:
            dataset = file.create_dataset(item, (2, 4), h5py.vlen_dtype(item), chunks=(1, 3), compression=compression)
            for column, row in enumerate(rows):
                dataset[1, column] = np.array(row, np.dtype(item).newbyteorder("="))
        file.create_dataset("whole", (2,), h5py.vlen_dtype("i2"))[1] = [3, 4]
        file.create_dataset("scalar", (), h5py.vlen_dtype("i2"))[()] = [3, 4]
        file["whole"].attrs["units"] = "K"
        file["x"] = [1, 2]
        file["x"].make_scale("x")
        file["whole"].dims[0].attach_scale(file["x"])
    root = opened(tmp_path / "x.h5")
    assert not root.store.notes
    for item in ITEMS:
        if item[0] == ">":
            continue  # h5py swaps the bytes of items that it writes, and those of items that it reads
        assert root[item].shape == (2, 4)
        found = root[item][...]
        assert [each.size for each in found[0]] == [0] * 4
        for row, each in zip(rows, found[1], strict=True):
            assert each.dtype == item
            np.testing.assert_array_equal(each, np.array(row, item))
    assert [each.tolist() for each in root["whole"][...]] == [[], [3, 4]]
    assert root["scalar"][()].tolist() == [3, 4]
    assert root["whole"].attrs["units"] == "K"
    assert root["whole"].dimension_names == ("x",)
    assert sorted(root) == sorted([*ITEMS, "whole", "scalar", "x"])
    assert sorted(key for key in root.store.list_prefix("whole")) == ["whole/.zarray", "whole/.zattrs", "whole/0"]


def test_what_zarr_has_no_type_for_is_json(tmp_path):
    text = h5py.string_dtype()
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["target"] = [1]
        dataset = file.create_dataset("texts", (2,), h5py.vlen_dtype(text))
        dataset[0] = np.array(["a", "Wärme"], object)
        pair = np.dtype([("a", "i2"), ("b", "f4")])
        file.create_dataset("pairs", (2,), h5py.vlen_dtype(pair))[1] = np.array([(1, 0.5), (2, 1)], pair)
        kind = [("n", "i4"), ("s", text), ("r", h5py.ref_dtype), ("v", h5py.vlen_dtype("i4")), ("t", "S3")]
        dataset = file.create_dataset("table", (2,), np.dtype(kind))
        dataset[0] = np.array((1, "ü", file["target"].ref, np.array([1, 2], "i4"), b"ab"), dataset.dtype)
    root = opened(tmp_path / "x.h5")
    assert sorted(root.store.notes) == [
        f"/{name}: shown as JSON texts, because Zarr has no such data type" for name in ("pairs", "table", "texts")
    ]
    assert [json.loads(each) for each in root["texts"][...]] == [["a", "Wärme"], []]
    assert [json.loads(each) for each in root["pairs"][...]] == [[], [{"a": 1, "b": 0.5}, {"a": 2, "b": 1}]]
    assert [json.loads(each) for each in root["table"][...]] == [
        {"n": 1, "s": "ü", "r": "/target", "v": [1, 2], "t": "ab"},
        {"n": 0, "s": "", "r": "", "v": [], "t": ""},
    ]


with h5py.File(PLUGINS) as plugins:
    NAMES = sorted(name for name in plugins if not name.endswith(" decoded"))


@pytest.mark.parametrize("name", NAMES)
def test_filters_that_frame_their_data_are_undone(name):
    pytest.importorskip(
        "zfpy" if name.startswith("zfp") else "imagecodecs", reason="the package of this filter is missing"
    )
    root = opened(PLUGINS)
    found, expected = root[name][...], root[f"{name} decoded"][...]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_file_of_plugins_has_their_filters():
    with h5py.File(PLUGINS) as file:
        used = {file[name].id.get_create_plist().get_filter(0)[0] for name in NAMES}
    assert used == {32013, 32026}
    assert len(NAMES) > 15


def test_records_with_arrays_and_a_fill_value_open_in_xarray(tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    dtype = np.dtype([("a", "i2"), ("b", "u1", 2)])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (3,), dtype, fillvalue=np.array((7, [1, 2]), dtype))[1] = (1, [3, 4])
        file["y"] = [1.5, 2]
    with xarray.open_dataset(tmp_path / "x.h5", engine="omnizarr") as data:
        assert data["x"].values["a"].tolist() == [7, 1, 7]
        assert data["x"].values["b"].tolist() == [[1, 2], [3, 4], [1, 2]]
        assert data["y"].values.tolist() == [1.5, 2]


def test_texts_end_where_their_datatype_says(tmp_path):
    data = np.array([b"ab\0cd ", b"xyz   ", b" a b c", b"      ", b""])
    record = h5py.h5t.create(h5py.h5t.COMPOUND, 24)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for padding in (h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD):
            kind = h5py.h5t.C_S1.copy()
            kind.set_size(6)
            kind.set_strpad(padding)
            record.insert(f"m{padding}".encode(), 7 * padding, kind)
            for name, chain in CHAINS.items():
                if "nbit" not in name:
                    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                    if chain:
                        properties.set_chunk((2,))
                        properties.set_deflate(4)
                    space = h5py.h5s.create_simple(data.shape)
                    dataset = h5py.h5d.create(file.id, f"{padding} {name}".encode(), kind, space, properties)
                    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, kind)
        dataset = h5py.h5d.create(file.id, b"record", record, h5py.h5s.create_simple(data.shape))
        raw = np.zeros(5, np.dtype({"names": "abc", "formats": ["S6"] * 3, "offsets": [0, 7, 14], "itemsize": 24}))
        for field in "abc":
            raw[field] = data
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, raw, record)
    root = opened(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert len(file) == 7
        for name in file:
            found = root[name][...]
            for field in found.dtype.names or (...,):
                np.testing.assert_array_equal(found[field], file[name][...][field], err_msg=name)
