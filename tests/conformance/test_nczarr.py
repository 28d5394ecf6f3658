"""NCZarr, as Zarr and as netCDF; documents written by hand from the text."""

import json
import zipfile
import zlib

import numpy as np
import pytest

import omnizarr
from omnizarr.netcdf import Attribute, Dataset, types
from omnizarr.stores import ZipStore
from tests.conformance.raw import document, keys, store

pytestmark = pytest.mark.rules

GROUP = {"zarr_format": 2}
ARRAY = {
    "zarr_format": 2,
    "shape": [4],
    "chunks": [2],
    "dtype": "<i4",
    "compressor": {"id": "zlib", "level": 1},
    "filters": None,
    "fill_value": -1,
    "order": "C",
}
CHUNK = zlib.compress(np.arange(2, dtype="<i4").tobytes())


def test_pure_zarr_is_read_and_written_without_anything_of_nczarr():
    made = store({".zgroup": GROUP, "v/.zarray": ARRAY, "v/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]}, "v/0": CHUNK})
    root = omnizarr.open(made)
    assert root["v"][...].tolist() == [0, 1, -1, -1]
    root.create_array("w", data=np.arange(3))
    root.attrs["title"] = "pure"
    assert not any("nczarr" in key for key in keys(made))
    assert all("nczarr" not in name for key in (".zattrs", "w/.zarray") for name in document(made, key))


def test_nczarr_documents_are_zarr_with_more_attributes():
    group = {
        "_nczarr_superblock": {"version": "2.0.0"},
        "_nczarr_group": {"dimensions": {"x": 4}, "arrays": ["v"], "groups": []},
        "_nczarr_attr": {"types": {"title": ">S1"}},
        "title": "text",
    }
    array = {"_nczarr_array": {"dimension_references": ["/x"], "storage": "chunked"}}
    root = omnizarr.open(
        store({".zgroup": GROUP, ".zattrs": group, "v/.zarray": ARRAY, "v/.zattrs": array, "v/0": CHUNK})
    )
    assert list(root) == ["v"]
    assert dict(root.attrs) == group
    assert dict(root["v"].attrs) == array
    assert root["v"][...].tolist() == [0, 1, -1, -1]


# URLs


@pytest.mark.parametrize("name", ["testdata.file", "testdata.zip", "testdata.anyext"])
def test_the_extension_of_a_file_or_directory_does_not_matter(tmp_path, name):
    directory = tmp_path / "of" / name
    omnizarr.create_array(directory, data=np.arange(3), zarr_format=2)
    assert directory.is_dir() or name.endswith(".zip")
    assert omnizarr.open(directory)[...].tolist() == [0, 1, 2]


@pytest.mark.parametrize("storage", ["file", "zip"])
@pytest.mark.parametrize("mode", ["nczarr", "zarr"])
def test_caller_states_format_and_storage(tmp_path, mode, storage):
    with Dataset(f"file://{tmp_path.as_posix()}/x#mode={mode},{storage},v2", "w") as ds:
        ds.title = "test"
    place = tmp_path / "x"
    assert place.is_dir() == (storage == "file")
    with omnizarr.open(place, mode="r").store as opened:
        assert ("_nczarr_group" in document(opened, ".zattrs")) == (mode == "nczarr")


def test_existing_data_is_found_without_a_mode(tmp_path):
    for mode in ("nczarr,file", "nczarr,zip", "zarr,file", "zarr,zip", "nczarr,file,v3", "zarr,zip,v3"):
        place = tmp_path / mode.replace(",", "-")
        with Dataset(f"file://{place.as_posix()}#mode={mode}", "w") as ds:
            ds.title = mode
        with Dataset(place) as ds:
            assert (ds.title, "pure" in ds.layout, ds.zarr_format == 3) == (mode, "nczarr" not in mode, "v3" in mode)


def test_a_zip_archive_is_searched_by_the_list_of_all_its_entries(tmp_path):
    with zipfile.ZipFile(tmp_path / "testdata.zip", "w") as archive:
        for key, value in {
            ".zgroup": b'{"zarr_format": 2}',
            "g/h/.zgroup": b'{"zarr_format": 2}',
            "g/.zattrs": b"{}",
        }.items():
            archive.writestr(key, value)
    with ZipStore(tmp_path / "testdata.zip", mode="r") as archived:
        assert archived.list_dir("") == ([".zgroup"], ["g/"])
        assert archived.list_dir("g/") == (["g/.zattrs"], ["g/h/"])
        assert list(omnizarr.open(archived)["g"]) == ["h"]


@pytest.mark.parametrize(
    "value", [{"wkt": "GEOGCS[]", "projjson": {"id": [1, {"a": None}]}}, [[1, 2], [3]], None, True]
)
def test_attributes_may_be_any_json(value):
    made = store({".zgroup": GROUP, ".zattrs": {"_CRS": value}})
    group = omnizarr.open(made)
    assert group.attrs["_CRS"] == value
    group.attrs["other"] = value
    assert document(made, ".zattrs") == {"_CRS": value, "other": value}


def test_dimension_names_of_xarray_are_an_attribute():
    names = ["time", "lon", "lat"]
    array = {**ARRAY, "shape": [1, 2, 3], "chunks": [1, 2, 3]}
    opened = omnizarr.open(store({".zarray": array, ".zattrs": {"_ARRAY_DIMENSIONS": names}}))
    assert opened.attrs["_ARRAY_DIMENSIONS"] == names


# Attributes that are JSON


@pytest.mark.parametrize(
    ("value", "recorded", "expected"),
    [  # the cases of reading, with a type and without
        (3, "<i2", np.int16([3])),
        (3, None, np.int32([3])),
        (2.5, "<f4", np.float32([2.5])),
        (2.5, None, np.float64([2.5])),
        ("text", ">S1", "text"),
        ("text", None, "text"),
        ([1, 2], "<u8", np.uint64([1, 2])),
        ([1, 2], None, np.int32([1, 2])),
        ([1.5, 2], None, np.float64([1.5, 2])),
        ({"a": [1, {"b": None}]}, "|J0", {"a": [1, {"b": None}]}),
        ({"a": [1, {"b": None}]}, None, {"a": [1, {"b": None}]}),
        ([[1, 2], [3]], "|J0", [[1, 2], [3]]),
    ],
)
def test_attributes_are_read_by_their_type_or_else_by_their_value(value, recorded, expected):
    attributes = {"a": value, "_nczarr_attr": {"types": {} if recorded is None else {"a": recorded}}}
    found = Dataset(store({".zgroup": GROUP, ".zattrs": {**attributes, "_nczarr_superblock": {}}})).header.attributes
    if isinstance(expected, np.ndarray):
        assert found["a"] == Attribute(types.of_dtype(expected.dtype), expected)
    else:
        assert found["a"].type is types.CHAR
        assert (json.loads(found["a"].value) if isinstance(expected, dict | list) else found["a"].value) == expected


@pytest.mark.parametrize(
    ("value", "stored", "recorded"),
    [  # the cases of writing; for JSON the text has the type |J0, which netCDF-C refuses
        (np.int16(3), 3, "<i2"),
        (np.float32([1.5, 2]), [1.5, 2], "<f4"),
        ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}, ">S1"),
        ("no JSON", "no JSON", ">S1"),
    ],
)
def test_attributes_are_written_by_their_type(value, stored, recorded):
    values = store({})
    with Dataset(values, "w") as ds:
        ds.setncattr("a", value)
    found = document(values, ".zattrs")
    assert (found["a"], found["_nczarr_attr"]["types"]["a"]) == (stored, recorded)


# NCZarr on Zarr v3


def v3_group(attributes):
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def v3_array(shape, attributes, **fields):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes"}],
        "fill_value": 0,
        "attributes": attributes,
        **fields,
    }


def typed(**of_attributes):
    return {"attribute_types": [{"name": name, "configuration": {"type": t}} for name, t in of_attributes.items()]}


def written_v3():
    """Return what is written of a dataset on Zarr v3: dimensions here and below, attributes, char, string, ubyte."""
    values = store({})
    with Dataset(values, "w", zarr_format=3, layout="E") as ds:
        ds.title = "test"
        ds.history = np.int16([1, 2])
        ds.json = '{"a": [1, {"b": null}]}'
        ds.createDimension("d2", 2)
        inner = ds.createGroup("g1/g2")
        inner.createDimension("d1", None)
        inner.createVariable("v", "f4", ("d1", "/d2")).units = "m"
        for name, nc_type, length in (("c", "S1", None), ("u", "u1", None), ("s", str, 4)):
            ds.createVariable(name, nc_type, ("d2",), maxstrlen=length)
    return values


def attributes_of(values, key):
    return document(values, key)["attributes"]


def test_full_names_say_which_group_a_dimension_is_defined_in():
    def group(name, length, *subgroups):
        dimensions = [{"name": name, "size": length, "unlimited": 0}]
        return v3_group({"_nczarr_group": {"dimensions": dimensions, "arrays": [], "subgroups": list(subgroups)}})

    array = v3_array([3, 5], {"_nczarr_array": {"dimension_references": ["/d1", "/g1/g2/d2"]}})
    values = {"zarr.json": group("d1", 3, "g1"), "g1/zarr.json": group("d1", 4, "g2")}
    ds = Dataset(store({**values, "g1/g2/zarr.json": group("d2", 5), "g1/v/zarr.json": array}))
    assert [each.path for each in ds["g1/v"].get_dims()] == ["/d1", "/g1/g2/d2"]
    assert [each.group().path for each in ds["g1/v"].get_dims()] == ["/", "/g1/g2"]
    assert ds["g1/v"].shape == (3, 5)


def test_an_array_of_uint8_may_be_of_unsigned_bytes():
    values = written_v3()
    assert document(values, "u/zarr.json")["data_type"] == "uint8"
    assert "type_alias" not in attributes_of(values, "u/zarr.json")["_nczarr_array"]
    array = v3_array([2], {"_nczarr_array": {"dimension_references": ["/x"]}})
    ds = Dataset(store({"zarr.json": v3_group({"_nczarr_superblock": {}}), "u/zarr.json": array, "u/c/0": b"ab"}))
    assert (ds["u"].nctype, ds["u"][:].tolist()) == (types.UBYTE, [97, 98])


def test_an_array_of_uint8_may_be_of_char():
    values = written_v3()
    assert document(values, "c/zarr.json")["data_type"] == "uint8"
    assert attributes_of(values, "c/zarr.json")["_nczarr_array"]["type_alias"] == "char"
    array = v3_array([2], {"_nczarr_array": {"dimension_references": ["/x"], "type_alias": "char"}})
    ds = Dataset(store({"zarr.json": v3_group({"_nczarr_superblock": {}}), "c/zarr.json": array, "c/c/0": b"ab"}))
    assert (ds["c"].nctype, ds["c"][:].tolist()) == (types.CHAR, [b"a", b"b"])


def test_an_array_of_raw_bits_may_be_of_strings():
    values = written_v3()
    assert document(values, "s/zarr.json")["data_type"] == "r32"
    assert attributes_of(values, "s/zarr.json")["_nczarr_array"]["type_alias"] == "string"
    marks = {"_nczarr_array": {"dimension_references": ["/x"], "type_alias": "string"}}
    array = v3_array([2], marks, data_type="r32", fill_value=[0] * 4)
    chunk = "ab\0\0né\0".encode()
    ds = Dataset(store({"zarr.json": v3_group({"_nczarr_superblock": {}}), "s/zarr.json": array, "s/c/0": chunk}))
    assert (ds["s"].nctype, ds["s"][:].tolist()) == (types.STRING, ["ab", "né"])


def test_types_of_attributes_on_v3():
    values = written_v3()
    for key in (key for key in keys(values) if key.endswith("zarr.json")):
        found = attributes_of(values, key)
        listed = found["_nczarr_attrs"]["attribute_types"]
        assert sorted(each["name"] for each in listed) == sorted(found)  # one for each, itself included
    root = {
        each["name"]: each["configuration"]["type"]
        for each in attributes_of(values, "zarr.json")["_nczarr_attrs"]["attribute_types"]
    }
    assert (root["title"], root["history"], root["json"]) == ("char", "int16", "json")
    attributes = {"a": 1, "b": 1, "c": {"d": [1]}, "_nczarr_attrs": typed(a="uint8", b="float32", c="json")}
    found = Dataset(store({"zarr.json": v3_group(attributes)})).header.attributes
    assert {name: each.type.name for name, each in found.items()} == {"a": "ubyte", "b": "float", "c": "char"}
    assert found["c"].value == '{"d": [1]}'


def test_bool_is_an_enum_of_ubyte():
    array = v3_array([2], {}, data_type="bool", fill_value=False)
    ds = Dataset(store({"zarr.json": v3_group({}), "b/zarr.json": array, "b/c/0": b"\1\0"}))
    assert dict(ds.enumtypes["_bool_t"].members) == {"FALSE": 0, "TRUE": 1}
    assert (ds.enumtypes["_bool_t"].base, ds["b"].nctype) == (types.UBYTE, ds.enumtypes["_bool_t"])
    assert ds["b"][:].tolist() == [1, 0]


def test_complex64_is_a_compound_of_two_numbers():
    """Of float; the text says float64, which complex128 has."""
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    array = v3_array([1], {}, data_type="complex64", fill_value=[0, 0], codecs=codecs)
    chunk = np.array([1 + 2j], "<c8").tobytes()
    ds = Dataset(store({"zarr.json": v3_group({}), "z/zarr.json": array, "z/c/0": chunk}))
    assert ds.cmptypes["_Complex64_t"].dtype == np.dtype([("i", "f4"), ("j", "f4")])
    assert ds["z"][:].tolist() == [(1, 2)]


# Codecs


def test_a_codec_of_v2_has_its_parameters_beside_its_id():
    made = store({".zarray": ARRAY, "0": CHUNK})
    assert omnizarr.open(made)[:2].tolist() == [0, 1]
    created = store({})
    omnizarr.create_array(created, shape=(2,), dtype="i4", zarr_format=2, compressors={"id": "zlib", "level": 3})
    assert document(created, ".zarray")["compressor"] == {"id": "zlib", "level": 3}


def test_a_codec_of_v3_has_its_parameters_in_a_configuration():
    created = store({})
    gzip = {"name": "gzip", "configuration": {"level": 3}}
    omnizarr.create_array(created, shape=(2,), dtype="i1", zarr_format=3, compressors=gzip)
    assert document(created, "zarr.json")["codecs"][1] == gzip
