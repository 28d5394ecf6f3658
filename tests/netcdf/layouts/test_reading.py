"""Datasets of every layout, written by netCDF-C; what is expected is in the CDL that they were made from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr import Array
from omnizarr.errors import OmnizarrError
from omnizarr.netcdf import Attribute, types
from omnizarr.netcdf.files import planning
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts import LAYOUTS, load, read_group, read_stored, read_variable
from omnizarr.nodes import hierarchy

DATA = Path(__file__).parent.parent / "data" / "layouts"
WRITERS = ["A-4.8.0", "B-4.8.1", "B-4.9.0", "C-4.9.2", "D-4.9.3", "D-4.10.2"]
PURE = ["pure-4.9.0", "pure-4.9.2", "pure-4.10.2"]


def opened(name, path="", **options):
    return load(omnizarr.open_group(str(DATA / f"{name}.zip"), mode="r", path=path), **options)


def values(loaded, name):
    stored = loaded.variables[name].stored
    return Array(stored.where, stored.metadata)[...]


def char(text):
    return Attribute(types.CHAR, text)


def of(nc_type, *items):
    return Attribute(nc_type, np.array(items, nc_type.dtype))


TYPED = {
    "i8": of(types.BYTE, 1),
    "v": of(types.SHORT, 1, 2),
    "f": of(types.FLOAT, 1.5),
    "nonfin": of(types.DOUBLE, np.nan, np.inf, -np.inf),
    "u64": of(types.UINT64, 2**64 - 1),
    "text": char("42"),
    "q": char('it\'s "quoted"'),
    "e": char(""),
}


@pytest.mark.parametrize("name", WRITERS)
class TestWhatNetcdfCWrote:
    def test_its_layout_and_version_are_known(self, name):
        loaded = opened(name)
        assert (loaded.layout.name, loaded.version) == tuple(name.split("-"))

    def test_attributes_have_their_types(self, name):
        found = opened(name).root.variables["d"].attributes
        assert {each: found[each] for each in TYPED} == TYPED
        assert json.loads(found["json"].value) == {"a": [1, 2.0]}
        assert found["json"].type is types.CHAR

    def test_strings_are_no_text(self, name):
        found = opened(name).root.variables["d"].attributes
        has_strings = name[0] in "CD"
        assert ("s" in found) is has_strings
        if has_strings:
            assert found["s"] == of(types.STRING, "one")
            assert found["ss"] == of(types.STRING, "one", "two")

    def test_nothing_of_nczarr_is_an_attribute(self, name):
        loaded = opened(name)
        assert list(loaded.root.attributes) == ["title"]
        assert list(loaded.root.special) == ["_NCProperties", "_SuperblockVersion", "_IsNetcdf4", "_Format"]
        assert list(loaded.root.variables["f"].attributes) == ["_FillValue"]

    def test_dimensions_are_where_they_were_defined(self, name):
        root = opened(name).root
        t = DimensionHeader("t", 0, unlimited=True) if name[0] == "D" else DimensionHeader("t", 2)
        assert root.sizes() == {"/t": t, "/x": DimensionHeader("x", 3), "/sub/y": DimensionHeader("y", 2)}
        assert root.groups["sub"].variables["b"].dimensions == ("/sub/y", "/x")

    def test_members_are_in_the_order_of_their_definition(self, name):
        root = opened(name).root
        assert list(root.variables) == ["scalar", "d", "c", "f", "g", "ub"]
        assert list(root.groups) == ["sub"]

    def test_types_are_those_of_netcdf(self, name):
        root = opened(name).root
        assert {each.name: each.type.name for each in root.variables.values()} == {
            "scalar": "int", "d": "double", "c": "char", "f": "float", "g": "short", "ub": "int",
        }  # fmt: skip

    def test_data_are_read_right(self, name):
        loaded = opened(name)
        np.testing.assert_array_equal(values(loaded, "/d"), [1, 2, 3])
        np.testing.assert_array_equal(values(loaded, "/c"), [b"a", b"b", b"c"])
        np.testing.assert_array_equal(values(loaded, "/f"), [1, -99, 3])
        np.testing.assert_array_equal(values(loaded, "/ub"), [-2147483647] * 3)
        np.testing.assert_array_equal(values(loaded, "/sub/b"), [[1, 2, 3], [4, 5, 6]])

    def test_a_scalar_has_no_dimensions(self, name):
        loaded = opened(name)
        assert loaded.root.variables["scalar"].dimensions == ()
        assert loaded.variables["/scalar"].stored.is_scalar
        if loaded.version >= "4.9" or loaded.version.startswith("4.10"):
            assert values(loaded, "/scalar").item() == 42
        else:  # netCDF-C 4.8 lost it
            notes = [note.message for note in loaded.root.variables["scalar"].notes]
            assert "netCDF-C 4.8 stored the fill value in place of a scalar's data" in notes

    def test_the_default_fill_value_has_all_its_digits(self, name):
        stored = opened(name).variables["/d"].stored.metadata
        assert stored.fill_value == types.DOUBLE.default_fill

    def test_storage_is_shown_as_ncdump_does(self, name):
        found = opened(name).root.variables
        assert {each: attribute.python for each, attribute in found["d"].special.items()} == pytest.approx(
            {"_Storage": "chunked", "_ChunkSizes": 3, "_Endianness": "big"}
        )
        assert list(found["c"].special) == ["_Storage", "_ChunkSizes"]

    def test_mode_zarr_sees_zarr_alone(self, name):
        loaded = opened(name, mode="zarr")
        assert loaded.layout.name == "pure"
        assert "text" in loaded.root.variables["d"].attributes
        assert "/t" not in loaded.root.sizes()
        assert not any("nczarr" in each.lower() for each in loaded.root.attributes)


@pytest.mark.parametrize("name", PURE)
class TestPureZarrOfNetcdfC:
    def test_it_is_seen_with_the_names_that_xarray_has(self, name):
        loaded = opened(name)
        assert (loaded.layout.name, loaded.root.variables["d"].dimensions) == ("pure", ("/x",))

    def test_data_are_read_right(self, name):
        loaded = opened(name)
        np.testing.assert_array_equal(values(loaded, "/d"), [1, 2, 3])
        np.testing.assert_array_equal(values(loaded, "/c"), [b"a", b"b", b"c"])
        assert values(loaded, "/scalar").item() == 42

    def test_without_xarray_dimensions_are_anonymous(self, name):
        loaded = opened(name, xarray=False)
        assert loaded.root.variables["d"].dimensions == ("/_Anonymous_Dimension_3",)
        assert loaded.root.groups["sub"].variables["b"].dimensions == (
            "/_Anonymous_Dimension_2", "/_Anonymous_Dimension_3",
        )  # fmt: skip


class TestReferenceDatasets:
    def test_layout_a_with_the_names_of_development(self):
        loaded = opened("ref_oldformat_1a45ee025")
        root = loaded.root
        assert loaded.layout.name == "A"
        assert root.sizes() == {"/lat": DimensionHeader("lat", 8), "/g1/lon": DimensionHeader("lon", 10)}
        assert root.groups["g1"].variables["pos"].dimensions == ("/lat", "/g1/lon")
        assert root.groups["g1"].attributes == {"g1_attr": of(types.INT, 17)}
        assert root.variables["lat"].attributes == {"_FillValue": of(types.INT, -1), "lat_attr": char("latitude")}
        np.testing.assert_array_equal(values(loaded, "/lat"), range(1, 9))

    def test_a_null_fill_value_beside_fillvalue(self):
        loaded = opened("ref_oldkeys.file", "ref_oldkeys.file")
        assert loaded.root.variables["v"].attributes == {"_FillValue": of(types.INT, -1)}
        assert loaded.variables["/v"].stored.metadata.fill_value == -1
        assert "_NoFill" not in loaded.root.variables["v"].special
        np.testing.assert_array_equal(values(loaded, "/v").ravel(), range(48))

    def test_no_fill(self):
        variable = opened("ref_byte_fill_value_null.zarr", "ref_byte_fill_value_null.zarr").root.variables["byt"]
        assert (variable.type, variable.special["_NoFill"]) == (types.UBYTE, char("true"))
        assert variable.dimensions == ("/_Anonymous_Dim_20",) * 2

    def test_quotes(self):
        root = opened("ref_quotes_orig", "ref_quotes").root
        found = root.variables["fractional_snow_cover"].attributes
        assert found["ID"] == of(types.INT, 68)
        assert np.isnan(found["esa_cci_path"].value).all()
        assert found["orig_attrs"].value.startswith("{'comment': 'Grid cell fractional snow cover based on")

    def test_an_empty_shape_is_a_scalar(self):
        loaded = opened("ref_noshape.file", "ref_noshape.file")
        assert loaded.variables["/v"].stored.is_scalar


# -- of others ----------------------------------------------------------------------


def test_names_are_shared_with_the_groups_above_if_lengths_agree():
    root = omnizarr.create_group({}, zarr_format=2)
    for path, shape, names in [
        ("foo", (2, 3), ["x", "y"]), ("g/z", (4,), ["y"]), ("g/w", (2,), ["x"]), ("g/h/v", (4, 2), ["y", "x"]),
    ]:  # fmt: skip
        root.create_array(path, shape=shape, dtype="i2", attributes={"_ARRAY_DIMENSIONS": names})
    header = load(root).root
    assert header.sizes() == {
        "/x": DimensionHeader("x", 2), "/y": DimensionHeader("y", 3), "/g/y": DimensionHeader("y", 4),
    }  # fmt: skip
    assert header.groups["g"].variables["w"].dimensions == ("/x",)
    assert header.groups["g"].groups["h"].variables["v"].dimensions == ("/g/y", "/x")


def test_a_coordinate_variable_knows_the_length_of_its_dimension():
    root = omnizarr.create_group({}, zarr_format=2)
    root.create_array("a", shape=(5,), dtype="i2", attributes={"_ARRAY_DIMENSIONS": ["x"]})
    root.create_array("x", shape=(4,), dtype="i2", attributes={"_ARRAY_DIMENSIONS": ["x"]})
    header = load(root).root
    assert header.dimensions["x"].size == 4
    assert header.variables["a"].dimensions == ("/_Anonymous_Dimension_5",)
    assert header.variables["a"].notes


def test_names_of_zarr_v3_are_shared_in_the_root():
    root = omnizarr.create_group({}, zarr_format=3)
    root.create_array("a/v", shape=(3, 2), dtype="i2", dimension_names=["x", "t"])
    root.create_array("b/v", shape=(3, 4, 5), dtype="i2", dimension_names=["x", "t", None])
    loaded = load(root)
    assert loaded.layout.name == "pure-v3"
    assert loaded.root.groups["a"].variables["v"].dimensions == ("/x", "/a/t")
    assert loaded.root.groups["b"].variables["v"].dimensions == ("/x", "/b/t", "/_Anonymous_Dimension_5")


@pytest.mark.parametrize(
    ("dtype", "name", "kind", "dtype_seen"),
    [
        ("bool", "_bool_t", "enum", "u1"),
        ("complex64", "_Complex64_t", "compound", [("i", "f4"), ("j", "f4")]),
        ("complex128", "_Complex128_t", "compound", [("i", "f8"), ("j", "f8")]),
        ("V5", "_opaque_5_t", "opaque", "V5"),
        ([("a", "i2"), ("b", "f8")], "_v_t", "compound", [("a", "i2"), ("b", "f8")]),
    ],
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_types_that_netcdf_has_not_are_shown_as_user_types(dtype, name, kind, dtype_seen, zarr_format):
    root = omnizarr.create_group({}, zarr_format=zarr_format)
    root.create_array("v", shape=(2,), dtype=np.dtype(dtype))
    header = load(root).root
    shown = header.variables["v"].type
    assert (shown.name, shown.kind, shown.dtype) == (name, kind, np.dtype(dtype_seen))
    assert header.types == {name: shown}
    assert header.variables["v"].notes


@pytest.mark.parametrize(
    ("dtype", "nc_type"),
    [
        ("float16", "float"),
        ("M8[s]", "int64"),
        ("m8[ns]", "int64"),
        ("U7", "string"),
        ("S7", "string"),
        ("string", "string"),
    ],
)
def test_other_types_are_shown_as_the_nearest(dtype, nc_type):
    root = omnizarr.create_group({}, zarr_format=2)
    root.create_array("v", shape=(2,), dtype=dtype)
    assert load(root).root.variables["v"].type.name == nc_type


def test_a_type_that_is_unknown_is_left_out_with_a_note():
    root = omnizarr.create_group({}, zarr_format=3)
    root.create_array("v", shape=(2,), dtype="i2")
    document = json.loads(bytes(root.store.get("v/zarr.json")))
    root.store.set("v/zarr.json", json.dumps({**document, "data_type": "of.tomorrow"}).encode())
    header = load(root).root
    assert header.variables == {}
    assert "'v' is left out" in header.notes[0].message


# -- broken -----------------------------------------------------------------------------


def nczarr(tmp_path, group=None, array=None, shape=(3,), types_=None):
    root = omnizarr.create_group(str(tmp_path / "d"), zarr_format=2)
    root.create_array("v", shape=shape, dtype="i4")
    root["v"].attrs.update({"a": 1, "_nczarr_array": array, "_nczarr_attr": {"types": types_ or {"a": "<i2"}}})
    marks = {"dimensions": {"x": 3}, "arrays": ["v"], "groups": []} if group is None else group
    root.attrs.update({"_nczarr_group": marks, "_nczarr_superblock": {"version": "2.0.0"}})
    return omnizarr.open_group(str(tmp_path / "d"), mode="r")


@pytest.mark.parametrize(
    ("group", "array", "dimensions"),
    [
        (None, {"dimension_references": ["/x"]}, ("/x",)),
        (None, {"dimrefs": ["/x"]}, ("/x",)),
        (None, {"dimension_references": ["/nowhere/x"]}, ("/_Anonymous_Dimension_3",)),
        (None, {"dimension_references": ["/new"]}, ("/new",)),
        (None, {"dimension_references": ["x"]}, ("/_Anonymous_Dimension_3",)),
        (None, {"dimension_references": ["/x", "/x"]}, ("/_Anonymous_Dimension_3",)),
        (None, {"dimension_references": [1]}, ("/_Anonymous_Dimension_3",)),
        (None, {"dimension_references": "/x"}, ("/_Anonymous_Dimension_3",)),
        (None, {"dimension_references": []}, ("/_Anonymous_Dimension_3",)),
        (None, 1, ("/_Anonymous_Dimension_3",)),
        (None, {"scalar": 1, "dimension_references": ["/x"]}, ("/x",)),
        ({"dimensions": {"x": 4}}, {"dimension_references": ["/x"]}, ("/x",)),
        ({"dimensions": {"x": -4}}, {"dimension_references": ["/x"]}, ("/x",)),
        ({"dims": {"x": {"size": 7, "unlimited": 1}}}, {"dimension_references": ["/x"]}, ("/x",)),
        ({"dimensions": [1, {"size": 2}]}, {"dimension_references": ["/x"]}, ("/x",)),
        ({"arrays": 3, "groups": {"a": 1}}, {"dimension_references": ["/x"]}, ("/x",)),
        ({"arrays": ["gone"], "groups": ["v"]}, {"dimension_references": ["/x"]}, ("/x",)),
        ([], {"dimension_references": ["/x"]}, ("/x",)),
    ],
)
def test_broken_marks_never_hide_an_array(tmp_path, group, array, dimensions):
    header = load(nczarr(tmp_path, group, array)).root
    assert header.variables["v"].dimensions == dimensions
    assert all(reference in header.sizes() for reference in dimensions)


def test_what_is_broken_is_noted(tmp_path):
    group = {"dimensions": {"x": 4, "y": "long"}, "arrays": ["gone"]}
    header = load(nczarr(tmp_path, group, {"dimension_references": ["/x"]}, types_={"a": "<u1", "b": 3})).root
    messages = " ".join(note.message for note in header.notes)
    for word in ("'gone', which is not there", "'v' exists", "not a length of a dimension", "'x' has length 4"):
        assert word in messages


def test_an_unlimited_dimension_may_be_longer_than_its_array(tmp_path):
    group = {"dimensions": {"x": {"size": 7, "unlimited": 1}}, "arrays": ["v"]}
    header = load(nczarr(tmp_path, group, {"dimension_references": ["/x"]})).root
    assert header.dimensions["x"] == DimensionHeader("x", 7, unlimited=True)
    assert header.variables["v"].notes == ()


def test_marks_in_upper_case_within_attributes_are_found(tmp_path):
    root = nczarr(tmp_path, None, {"dimension_references": ["/x"]})
    path = tmp_path / "d" / "v" / ".zattrs"
    path.write_text(
        path.read_text()
        .replace("_nczarr_a", "_NCZARR_A")
        .replace("_NCZARR_Array", "_NCZARR_ARRAY")
        .replace("_NCZARR_Attr", "_NCZARR_ATTR")
    )
    variable = load(root).root.variables["v"]
    assert (variable.dimensions, variable.attributes["a"]) == (("/x",), of(types.SHORT, 1))


@pytest.mark.parametrize(
    ("name", "text"),
    [("v/.zarray", "{"), ("v/.zattrs", "{"), ("v/.zarray", "[]"), ("v/.zarray", '{"zarr_format": 2}')],
    ids=["no JSON", "no JSON in attributes", "a list", "members missing"],
)
def test_an_unreadable_node_is_noted_by_its_group(tmp_path, name, text):
    root = nczarr(tmp_path, {"arrays": ["v"]}, {"dimension_references": ["/x"]})
    (tmp_path / "d" / name).write_text(text)
    header = load(root).root
    assert header.variables == {}
    assert [note.message.startswith("'v' cannot be read: ") for note in header.notes] == [True]


def test_an_unreadable_node_below_a_group_is_noted_there(tmp_path):
    omnizarr.create_group(tmp_path / "d", zarr_format=2).create_group("g").create_array("w", shape=(1,), dtype="i2")
    (tmp_path / "d" / "g" / "w" / ".zarray").write_text("{")
    header = load(omnizarr.open_group(tmp_path / "d", mode="r")).root
    assert [note.message[:3] for note in header.groups["g"].notes] == ["'w'"]


def test_a_name_with_a_backslash_is_noted(tmp_path):
    # netCDF-C 4.10.1 makes the directory, which no store of Zarr has to find
    root = nczarr(tmp_path, {"arrays": ["v", "0\\"]}, {"dimension_references": ["/x"]})
    assert "no path in Zarr can name" in load(root).root.notes[0].message


# -- what netCDF-C 4.10.1 wrote of  char v(x); v:_FillValue = "1"; v:a = "1.50"; v:z = -0.;  and so on


def written_by_netcdf_c(tmp_path, attributes, types_, fill='""'):
    folder = tmp_path / "d" / "v"
    folder.mkdir(parents=True)
    (tmp_path / "d" / ".zgroup").write_text('{"zarr_format": 2}')
    (folder / ".zarray").write_text(
        f'{{"zarr_format": 2, "shape": [2], "dtype": ">S1", "chunks": [2], "fill_value": {fill}, "order": "C", '
        '"compressor": null, "filters": null}'
    )
    recorded = json.dumps({**types_, "_nczarr_array": "|J0", "_nczarr_attr": "|J0"})
    (folder / ".zattrs").write_text(
        f'{{{attributes}, "_nczarr_attr": {{"types": {recorded}}}, '
        '"_nczarr_array": {"dimension_references": ["/x"], "storage": "chunked"}}'
    )
    return omnizarr.open_group(tmp_path / "d", mode="r")


@pytest.mark.parametrize("digit", "0123456789")
def test_a_digit_that_fills_char_is_text(tmp_path, digit):
    root = written_by_netcdf_c(tmp_path, f'"_FillValue": {digit}', {"_FillValue": ">S1"}, fill=digit)
    loaded = load(root)
    assert loaded.root.variables["v"].attributes == {"_FillValue": char(digit)}
    assert loaded.root.variables["v"].type is types.CHAR
    np.testing.assert_array_equal(values(loaded, "/v"), [digit.encode()] * 2)


@pytest.mark.parametrize(
    "spelling", ["1.50", "-1.5e3", "-0", "00", "+1", ".5", "5.", "0x10", "TRUE", "true", "inf", "nan", "[1.50,2]"]
)
def test_text_that_became_a_number_is_as_it_was(tmp_path, spelling):
    root = written_by_netcdf_c(tmp_path, f'"a": {spelling}', {"a": ">S1"})
    assert load(root).root.variables["v"].attributes == {"a": char(spelling)}


@pytest.mark.parametrize(("spelling", "expected"), [("-0", [-0.0]), ("[0,-0]", [0.0, -0.0]), ("0", [0.0])])
def test_a_zero_of_floating_point_keeps_its_sign(tmp_path, spelling, expected):
    root = written_by_netcdf_c(tmp_path, f'"a": {spelling}', {"a": "<f8"})
    found = load(root).root.variables["v"].attributes["a"].value
    assert found.tobytes() == np.array(expected).tobytes()


def test_a_control_character_in_text_is_kept(tmp_path):
    root = written_by_netcdf_c(tmp_path, '"a": "b\x07ell\n"', {"a": ">S1"})
    assert load(root).root.variables["v"].attributes == {"a": char("b\x07ell\n")}


def test_a_variable_read_alone_keeps_spellings(tmp_path):
    root = written_by_netcdf_c(tmp_path, '"a": 1.50', {"a": ">S1"})
    loaded = load(root)
    where = loaded.variables["/v"].stored.where
    metadata = omnizarr.open_array(where, mode="r").metadata
    assert read_variable(where, metadata, loaded.layout, loaded.root.sizes()).attributes == {"a": char("1.50")}


@pytest.mark.parametrize(
    ("dtype", "name", "value", "expected"),
    [
        ("f4", "valid_range", ["-Infinity", "Infinity"], of(types.FLOAT, -np.inf, np.inf)),
        ("f8", "missing_value", "NaN", of(types.DOUBLE, np.nan)),
        ("i2", "missing_value", "NaN", char("NaN")),
        ("f8", "comment", "NaN", char("NaN")),
        ("f8", "missing_value", "nan", char("nan")),
        ("f4", "valid_range", [0, 1], of(types.INT, 0, 1)),
    ],
)
def test_words_for_floats_are_numbers_where_a_number_has_to_be(dtype, name, value, expected):
    # netCDF-C 4.10.2 writes missing_value = NaN so without marks, and reads text; CF: it is of the variable's type
    root = omnizarr.create_group({}, zarr_format=2)
    root.create_array("v", shape=(1,), dtype=dtype, attributes={name: value})
    assert load(root).root.variables["v"].attributes == {name: expected}


@pytest.mark.parametrize("fill", ["j", "\0"])
def test_char_of_layout_b_has_the_fill_value_of_its_document(tmp_path, fill):
    # netCDF-C 4.9.0 reads it so: a chunk may be missing only if all of it is that
    header = VariableHeader(
        name="v", type=types.CHAR, dimensions=("/x",), attributes={"_FillValue": char(fill)} if fill != "\0" else {}
    )
    sizes = {"/x": DimensionHeader("x", 2)}
    root = omnizarr.create_group(tmp_path / "d", zarr_format=2)
    (tmp_path / "d" / ".zgroup").write_text('{"zarr_format": 2, "_NCZARR_GROUP": {"dims": {"x": 2}}}')
    hierarchy.create(root.store_path / "v", LAYOUTS["B"].array(header, "", sizes, False))
    loaded = load(omnizarr.open_group(tmp_path / "d", mode="r"))
    assert loaded.layout.name == "B"
    np.testing.assert_array_equal(values(loaded, "/v"), [fill.strip("\0").encode()] * 2)


MEMBERS = [
    *("dimensions", "arrays", "groups", "dimension_references", "scalar", "storage", "types", "x", "a", "size"),
    *("unlimited", "name", "configuration", "type_alias", "attribute_types"),
]
WORDS = st.sampled_from(["/x", "x", "v", "/", "", "chunked", "scalar", "<i2", "NaN"])
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=12,
)


@given(ODD, ODD, ODD, st.sampled_from([2, 3]))
def test_no_marks_whatever_make_reading_fail(group, array, attr, zarr_format):
    root = omnizarr.create_group({}, zarr_format=zarr_format, attributes={"_nczarr_group": group, "_nczarr_attr": attr})
    marks = {"_nczarr_array": array, "_nczarr_attr": attr, "_ARRAY_DIMENSIONS": group, "a": 1}
    root.create_array("v", shape=(3,), dtype="i4", attributes=marks)
    header = load(root).root
    (dimension,) = header.variables["v"].dimensions
    assert header.sizes()[dimension].size == 3 or header.sizes()[dimension].unlimited


# -- one node, and requests ----------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_a_node_read_alone_says_the_same(name):
    root = omnizarr.open_group(str(DATA / f"{name}.zip"), mode="r")
    loaded = load(root)
    sizes = loaded.root.sizes()
    for path, each in loaded.variables.items():
        stored = each.stored
        group, _, variable = path.rpartition("/")
        metadata = omnizarr.open_array(stored.where, mode="r").metadata
        found = read_stored(stored.where, metadata, loaded.layout, sizes, group=group, version=loaded.version)
        expected = loaded.root.groups["sub"] if group else loaded.root
        assert found[0] == expected.variables[variable]
        assert found[1].metadata == stored.metadata
        assert read_variable(stored.where, metadata, loaded.layout, sizes).dimensions == found[0].dimensions
    header = read_group(root.store_path, root.metadata, loaded.layout)
    assert (header.dimensions, header.attributes) == (loaded.root.dimensions, loaded.root.attributes)
    assert header.special == {"_NCProperties": loaded.root.special["_NCProperties"]}
    assert (list(header.variables), list(header.groups)) == (list(loaded.root.variables), ["sub"])


def test_a_type_that_netcdf_cannot_know_is_an_error_when_read_alone():
    root = omnizarr.create_group({}, zarr_format=3)
    array = root.create_array("v", shape=(2,), dtype="i2")
    document = json.loads(bytes(root.store.get("v/zarr.json")))
    root.store.set("v/zarr.json", json.dumps({**document, "data_type": "of.tomorrow"}).encode())
    with pytest.raises(OmnizarrError, match="netCDF has no such type"):
        read_stored(array.store_path, root["v"]._metadata, load(root).layout, {})


def test_no_loss_of_a_dimension_is_said_where_a_classic_format_loses_the_group():
    x, v = DimensionHeader("x", 3), VariableHeader(name="v", type=types.INT, dimensions=("/a/x",))
    groups = {"a": GroupHeader(dimensions={"x": x}), "b": GroupHeader(variables={"v": v})}
    made = planning.plan(GroupHeader(groups=groups, variables={"w": replace(v, name="w")}), "NETCDF3_CLASSIC")
    assert made.root.variables["w"].dimensions == ("/x",)
    assert [(each.path, each.what) for each in made.losses] == [
        *[("w", "dimension /a/x"), ("a", "group with all in it"), ("b", "group with all in it")]
    ]


@pytest.mark.parametrize(("own", "expected"), [(3, "x"), (2, "x_1"), (None, "x")])
@pytest.mark.parametrize("home", ["a", "b/c"])
def test_dimension_in_no_group_above_is_named_and_replaced_in_netcdf4(tmp_path, home, own, expected):
    path = tmp_path / "d.zarr"
    with omnizarr.netcdf.Dataset(path, "w") as dataset:
        dataset.createDimension("r", 3)
        dataset.createGroup(home).createDimension("x", 3)
        group = dataset.createGroup("b")
        if own is not None:
            group.createDimension("x", own)
        group.createVariable("v", "i4", ("r",))[:] = [1, 2, 3]
    document = path / "b/v/.zattrs"
    document.write_text(document.read_text("utf-8").replace('"/r"', f'"/{home}/x"'), "utf-8")
    with omnizarr.netcdf.Dataset(path) as dataset:
        (found,) = dataset["b/v"].get_dims()
        assert (found.name, found.group().path, found.size) == ("x", f"/{home}", 3)
    (finding,) = [each for each in omnizarr.check(path).findings if each.code == "nczarr-repaired"]
    assert (finding.path, f"'/{home}/x' is in no group above the array" in finding.message) == ("b/v", True)
    netcdf4 = pytest.importorskip("netCDF4", reason="netCDF4-python is not installed")
    report = omnizarr.convert(path, tmp_path / "d.nc")
    assert f"dimension /{home}/x" in str(report)
    with netcdf4.Dataset(tmp_path / "d.nc") as dataset:
        assert (dataset["b/v"].dimensions, dataset["b/v"][:].tolist()) == ((expected,), [1, 2, 3])
        assert dataset["b"].dimensions[expected].size == 3
