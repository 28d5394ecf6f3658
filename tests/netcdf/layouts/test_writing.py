"""What is written, in the terms of the NCZarr document and of netCDF-C, and read by netCDF-C 4.10."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zarr

import omnizarr
from omnizarr import Array, netcdf
from omnizarr.errors import NodeNameError, NotRepresentableError
from omnizarr.formats import V2, documents
from omnizarr.formats.conventions.nczarr_metadata import with_listed
from omnizarr.model import UNDEFINED, GroupMetadata, Named
from omnizarr.netcdf import Attribute, types
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts import LAYOUTS, load, new_special
from omnizarr.nodes import hierarchy
from omnizarr.storage import StorePath
from omnizarr.stores import resolve

NO_NAMES = {"A", "B", "C"}


def char(text):
    return Attribute(types.CHAR, text)


def strings(*items):
    return Attribute(types.STRING, np.array([*items, None], object)[:-1])


ATTRIBUTES = {
    "byte": Attribute.of(np.int8(-1)),
    "shorts": Attribute.of(np.int16([1, 2])),
    "float": Attribute.of(np.float32(0.1)),
    "uint64": Attribute.of(np.uint64(2**64 - 1)),
    "empty": Attribute(types.INT, np.zeros(0, "i4")),
    "number": char("42"),
    "truth": char("true"),
    "text": char("été ☃"),
    "none": char(""),
}


def example(layout):
    """Return a header with all that a layout can say."""
    attributes = dict(ATTRIBUTES)
    if layout != "A":
        attributes |= {
            "quoted": char('say "hi" \\ it\'s'),
            "nonfinite": Attribute.of(np.array([np.nan, np.inf, -np.inf])),
        }
    variables = [
        VariableHeader(name="scalar", type=types.INT, attributes={"units": char("m")}),
        VariableHeader(
            name="d",
            type=types.DOUBLE,
            dimensions=("/x",),
            attributes=attributes,
            special={} if layout in NO_NAMES else {"_Endianness": char("big")},
        ),
        VariableHeader(name="c", type=types.CHAR, dimensions=("/x",), attributes={"_FillValue": char("q")}),
    ]
    if layout not in {"A", "B"}:
        text = {"_nczarr_maxstrlen": Attribute.of(np.int32(8)), "_FillValue": strings("nö")}
        variables.append(VariableHeader(name="s", type=types.STRING, dimensions=("/x",), attributes=text))
    time = DimensionHeader("time", 2, LAYOUTS[layout].has_unlimited)
    variables.append(VariableHeader(name="t", type=types.SHORT, dimensions=("/time", "/x")))
    inner = VariableHeader(name="b", type=types.BYTE, dimensions=("/sub/y", "/x"))
    sub = GroupHeader(
        name="sub", dimensions={"y": DimensionHeader("y", 2)}, variables={"b": inner}, attributes={"n": char("x")}
    )
    return GroupHeader(
        dimensions={"x": DimensionHeader("x", 3), "time": time},
        variables={each.name: each for each in variables},
        attributes={"title": char("ö")},
        special=new_special(LAYOUTS[layout]),
        groups={"sub": sub},
    )


def store(path, layout, root, xarray=True):
    """Store a dataset without data, and return its variables' arrays by full name."""
    chosen = LAYOUTS[layout]
    base = StorePath(*resolve(str(path), "w"))
    arrays = {}

    def objects(where, marks):
        for name, document in marks.objects.items():
            where.store.set(where.prefix + name, documents.render(document))

    for group, header in root.walk():
        where = base / group if group else base
        marks = chosen.group(header, not group)
        metadata = GroupMetadata(dialect=f"v{chosen.zarr_format}", attributes=marks.attributes, unknown=marks.members)
        if chosen.lists_arrays:
            variables = header.variables.items()
            metadata = with_listed(
                metadata, {name: chosen.variable(each, group, root.sizes(), xarray).listed for name, each in variables}
            )
        hierarchy.create(where, metadata)
        objects(where, marks)
        for name, variable in header.variables.items():
            place = base / f"{group}/{name}"
            metadata = chosen.array(variable, group, root.sizes(), xarray)
            hierarchy.create(place, metadata)
            objects(place, chosen.variable(variable, group, root.sizes(), xarray))
            arrays[f"{group}/{name}"] = Array(place, metadata)
    return arrays


@pytest.mark.parametrize("layout", ["A", "B", "C", "D", "xarray", "v3", "E"])
def test_what_is_written_is_read_again(tmp_path, layout):
    root = example(layout)
    store(tmp_path / "d", layout, root)
    loaded = load(omnizarr.open_group(tmp_path / "d", mode="r"))
    assert (loaded.layout.name, loaded.version) == (layout, None)
    assert loaded.root.sizes() == root.sizes()
    for (path, expected), (found_path, found) in zip(root.walk(), loaded.root.walk(), strict=True):
        assert (found_path, found.attributes, list(found.variables)) == (
            path,
            expected.attributes,
            list(expected.variables),
        )
        for name, variable in expected.variables.items():
            there = found.variables[name]
            assert (there.type, there.dimensions) == (variable.type, variable.dimensions)
            comparable = {each: a for each, a in variable.attributes.items() if each != "nonfinite"}
            assert {each: a for each, a in there.attributes.items() if each != "nonfinite"} == comparable
            if "nonfinite" in variable.attributes:
                np.testing.assert_array_equal(
                    there.attributes["nonfinite"].value, variable.attributes["nonfinite"].value
                )
    assert loaded.root.special == root.special
    assert loaded.variables["/scalar"].stored.is_scalar


@pytest.mark.parametrize("layout", ["pure", "pure-v3"])
def test_pure_zarr_keeps_names_and_values(tmp_path, layout):
    root = example(layout)
    store(tmp_path / "d", layout, root)
    found = load(omnizarr.open_group(tmp_path / "d", mode="r")).root
    assert {name: each.dimensions for name, each in found.variables.items()} == {
        name: each.dimensions for name, each in root.variables.items()
    }
    assert {name: each.type for name, each in found.variables.items()} == {
        name: each.type for name, each in root.variables.items()
    }
    assert not any("nczarr_a" in text.read_text() for text in (tmp_path / "d").rglob(".z*"))


@pytest.mark.parametrize("layout", ["D"])
def test_netcdf_c_reads_it(tmp_path, newest, layout):
    root = example(layout)
    arrays = store(tmp_path / "d", layout, root)
    arrays["/scalar"][...] = 42
    arrays["/d"][:] = [1, 2, 3]
    arrays["/c"][:2] = [b"a", b"b"]
    arrays["/t"][:] = [[1, 2, 3], [4, 5, 6]]
    arrays["/sub/b"][:] = [[1, 2, 3], [4, 5, 6]]
    made = newest.read(f"file://{tmp_path}/d#mode=nczarr,file")
    assert made.root.sizes() == root.sizes()
    assert made.root.attributes["title"] == char("ö")
    found = made.root.variables["d"].attributes
    for name, attribute in root.variables["d"].attributes.items():
        if name not in {"nonfinite", "none"}:
            assert found[name] == attribute
    np.testing.assert_array_equal(found["nonfinite"].value, [np.nan, np.inf, -np.inf])
    assert made.root.variables["s"].attributes["_FillValue"] == strings("nö")
    np.testing.assert_array_equal(made.data["/d"].ravel(), [1, 2, 3])
    np.testing.assert_array_equal(made.data["/c"].ravel(), [b"a", b"b", b"q"])
    assert list(made.data["/s"].ravel()) == ["nö"] * 3
    np.testing.assert_array_equal(made.data["/t"], [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(made.data["/sub/b"], [[1, 2, 3], [4, 5, 6]])
    assert made.data["/scalar"].item() == 42


def of_document(path, layout, **fields):
    """Return the documents of a variable ``v(x)`` of a dataset with a group."""
    header = VariableHeader(**{"name": "v", "type": types.INT, "dimensions": ("/x",), **fields})
    dimensions = {"x": DimensionHeader("x", 3), "u": DimensionHeader("u", 5, unlimited=True)}
    root = GroupHeader(dimensions=dimensions, variables={"v": header}, groups={"g": GroupHeader(name="g")})
    store(path / "d", layout, root)

    def read(name):
        file = path / "d" / name
        return json.loads(file.read_bytes()) if file.exists() else None

    return read


class TestLayoutD:
    # as netCDF-C 4.10.1 writes the same dataset

    def test_group(self, tmp_path):
        read = of_document(tmp_path, "D")
        assert read(".zgroup") == {"zarr_format": 2}
        assert read(".zattrs") == {
            "_nczarr_group": {
                "dimensions": {"x": 3, "u": {"size": 5, "unlimited": 1}}, "arrays": ["v"], "groups": ["g"],
            },
            "_nczarr_superblock": {"version": "2.0.0"},
            "_nczarr_attr": {"types": {"_nczarr_group": "|J0", "_nczarr_superblock": "|J0", "_nczarr_attr": "|J0"}},
        }  # fmt: skip

    def test_variable(self, tmp_path):
        assert of_document(tmp_path, "D")("v/.zattrs") == {
            "_ARRAY_DIMENSIONS": ["x"],
            "_nczarr_array": {"dimension_references": ["/x"], "storage": "chunked"},
            "_nczarr_attr": {"types": {"_nczarr_array": "|J0", "_nczarr_attr": "|J0"}},
        }

    def test_scalar(self, tmp_path):
        read = of_document(tmp_path, "D", dimensions=())
        assert (read("v/.zarray")["shape"], read("v/.zarray")["chunks"]) == ([1], [1])
        assert read("v/.zattrs")["_ARRAY_DIMENSIONS"] == ["_scalar_"]
        expected = {"dimension_references": [], "scalar": 1, "storage": "chunked"}
        assert read("v/.zattrs")["_nczarr_array"] == expected

    @pytest.mark.parametrize(
        ("nc_type", "dtype", "fill"),
        [(types.CHAR, ">S1", ""), (types.STRING, "|S128", ""), (types.SHORT, "<i2", -32767), (types.UBYTE, "|u1", 255)],
    )
    def test_types_and_default_fill_values(self, tmp_path, nc_type, dtype, fill):
        document = of_document(tmp_path, "D", type=nc_type)("v/.zarray")
        assert (document["dtype"], document["fill_value"]) == (dtype, fill)

    def test_no_fill(self, tmp_path):
        assert of_document(tmp_path, "D", special={"_NoFill": char("true")})("v/.zarray")["fill_value"] is None

    def test_chunks_that_were_asked_for(self, tmp_path):
        special = {"_ChunkSizes": Attribute.of(np.int32([2]))}
        assert of_document(tmp_path, "D", special=special)("v/.zarray")["chunks"] == [2]

    def test_one_record_per_chunk(self, tmp_path):
        assert of_document(tmp_path, "D", dimensions=("/u", "/x"))("v/.zarray")["chunks"] == [1, 3]

    def test_chunks_of_4096_bytes_along_the_only_unlimited_dimension(self, tmp_path):
        assert of_document(tmp_path, "D", dimensions=("/u",))("v/.zarray")["chunks"] == [1024]

    def test_filters(self, tmp_path):
        special = {"_Shuffle": char("true"), "_DeflateLevel": Attribute.of(np.int32(4))}
        document = of_document(tmp_path, "D", special=special)("v/.zarray")
        assert document["compressor"] == {"id": "zlib", "level": 4}
        assert document["filters"][0]["id"] == "shuffle"

    def test_names_for_xarray_only_where_the_root_has_them(self):
        sizes = {"/x": DimensionHeader("x", 3), "/g/y": DimensionHeader("y", 3)}
        variable = LAYOUTS["D"].variable
        for group, dimensions, xarray in [("/g", ("/x",), True), ("", ("/g/y",), True), ("", ("/x",), False)]:
            header = VariableHeader(name="v", type=types.INT, dimensions=dimensions)
            assert "_ARRAY_DIMENSIONS" not in variable(header, group, sizes, xarray).attributes


class TestOlderLayouts:
    def test_layout_a_has_documents_of_its_own(self, tmp_path):
        # as netCDF-C 4.8.0
        read = of_document(tmp_path, "A", attributes={"a": Attribute.of(np.int16(1))})
        assert read(".nczarr") == {"zarr_format": 2, "nczarr_version": "1.0.0"}
        assert read(".nczgroup") == {"dims": {"x": 3, "u": 5}, "vars": ["v"], "groups": ["g"]}
        assert read("v/.nczvar") == {"dimrefs": ["/x"], "storage": "chunked"}
        assert read("v/.nczattr") == {"types": {"a": "3"}}
        assert read("v/.zattrs") == {"a": [1]}

    @pytest.mark.parametrize(("layout", "upper"), [("B", True), ("C", False)])
    def test_layouts_b_and_c_put_marks_into_the_documents(self, tmp_path, layout, upper):
        read = of_document(tmp_path, layout)
        found = {key: read(".zgroup")[key] for key in read(".zgroup") if key != "zarr_format"}
        expected = {
            "_nczarr_group": {"dims": {"x": 3, "u": 5}, "vars": ["v"], "groups": ["g"]},
            "_nczarr_superblock": {"version": "2.0.0"},
        }
        assert found == {key.upper() if upper else key: value for key, value in expected.items()}
        name = "_NCZARR_ARRAY" if upper else "_nczarr_array"
        assert read("v/.zarray")[name] == {"dimrefs": ["/x"], "storage": "chunked"}

    @pytest.mark.parametrize("layout", ["A", "B", "C"])
    def test_everything_is_little_endian(self, tmp_path, layout):
        assert of_document(tmp_path, layout, special={"_Endianness": char("big")})("v/.zarray")["dtype"] == "<i4"

    @pytest.mark.parametrize(("layout", "dtype"), [("A", "<U1"), ("B", "<U1"), ("C", ">S1")])
    def test_char(self, tmp_path, layout, dtype):
        assert of_document(tmp_path, layout, type=types.CHAR)("v/.zarray")["dtype"] == dtype

    @pytest.mark.parametrize(("layout", "dtype"), [("A", "<i1"), ("B", "|i1"), ("C", "|i1")])
    def test_byte(self, tmp_path, layout, dtype):
        # netCDF-C 4.8.0 dies of |i1
        assert of_document(tmp_path, layout, type=types.BYTE)("v/.zarray")["dtype"] == dtype

    @pytest.mark.parametrize("layout", ["A", "B"])
    def test_strings_are_refused(self, layout):
        header = VariableHeader(name="v", type=types.STRING)
        with pytest.raises(NotRepresentableError, match=f"layout {layout} of NCZarr has no such type"):
            LAYOUTS[layout].array(header, "", {}, True)


class TestLayoutE:
    # NCZarr, "Appendix E"

    def test_group(self, tmp_path):
        found = of_document(tmp_path, "E")("zarr.json")["attributes"]
        assert found["_nczarr_superblock"] == {"version": "3.0.0", "format": 3}
        assert found["_nczarr_group"] == {
            "dimensions": [{"name": "x", "size": 3, "unlimited": 0}, {"name": "u", "size": 5, "unlimited": 1}],
            "arrays": ["v"],
            "subgroups": ["g"],
        }

    @pytest.mark.parametrize(
        ("nc_type", "data_type", "alias"),
        [(types.INT, "int32", None), (types.CHAR, "uint8", "char"), (types.STRING, "r1024", "string")],
    )
    def test_variable(self, tmp_path, nc_type, data_type, alias):
        document = of_document(tmp_path, "E", type=nc_type, attributes={"a": char("x")})("v/zarr.json")
        assert (document["data_type"], document["dimension_names"]) == (data_type, ["x"])
        mark = document["attributes"]["_nczarr_array"]
        assert (mark["dimension_references"], mark.get("type_alias")) == (["/x"], alias)
        assert document["attributes"]["_nczarr_attrs"]["attribute_types"] == [
            {"name": "a", "configuration": {"type": "char"}},
            {"name": "_nczarr_array", "configuration": {"type": "json"}},
            {"name": "_nczarr_attrs", "configuration": {"type": "json"}},
        ]

    @pytest.mark.parametrize("layout", ["v3", "E", "pure-v3"])
    def test_a_big_endian_variable(self, layout):
        header = VariableHeader(name="v", type=types.INT, special={"_Endianness": char("big")})
        assert LAYOUTS[layout].array(header, "", {}, True).codecs == (Named("bytes", {"endian": "big"}),)


TEXT = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 1}}


class TestForXarray:
    # what xarray does with documents: xarray.backends.zarr, xarray.coding

    @pytest.mark.parametrize(
        ("nc_type", "data_type", "fill"),
        [(types.INT, "int32", -2147483647), (types.CHAR, TEXT, ""), (types.STRING, "string", "")],
    )
    def test_v3_has_the_data_types_that_zarr_python_reads(self, tmp_path, nc_type, data_type, fill):
        document = of_document(tmp_path, "v3", type=nc_type)("v/zarr.json")
        assert (document["data_type"], document["fill_value"]) == (data_type, fill)
        assert document["dimension_names"] == ["x"]

    def test_v3_has_no_marks_on_arrays(self, tmp_path):
        read = of_document(tmp_path, "v3", attributes={"a": char("x"), "b": Attribute.of(np.int16(1))})
        assert read("v/zarr.json")["attributes"] == {"a": "x", "b": 1}
        assert read("zarr.json")["attributes"]["_nczarr_arrays"] == {
            "v": {"dimension_references": ["/x"], "attribute_types": {"b": "int16"}}
        }

    @pytest.mark.parametrize(
        ("nc_type", "value", "written", "kept"),
        [
            (types.FLOAT, Attribute.of(np.float32(-9)), {"_FillValue": "AAAAAAAAIsA="}, None),
            (types.INT, Attribute.of(np.int32(-9)), {"_FillValue": -9}, None),
            (types.CHAR, char("x"), {"missing_value": "x"}, {"_FillValue": "x"}),
            (types.STRING, strings("no"), {"missing_value": "no"}, {"_FillValue": "no"}),
        ],
    )
    def test_v3_has_masks_in_the_form_that_xarray_reads(self, tmp_path, nc_type, value, written, kept):
        read = of_document(tmp_path, "v3", type=nc_type, attributes={"_FillValue": value})
        assert read("v/zarr.json")["attributes"] == written
        assert read("zarr.json")["attributes"]["_nczarr_arrays"]["v"].get("attributes") == kept

    @pytest.mark.parametrize("layout", ["xarray", "pure"])
    @pytest.mark.parametrize(("nc_type", "dtype"), [(types.CHAR, "|S1"), (types.STRING, "|S128"), (types.INT, "<i4")])
    def test_v2_has_no_fill_value_where_nothing_is_masked(self, layout, nc_type, dtype):
        header = VariableHeader(name="v", type=nc_type)
        made = LAYOUTS[layout].array(header, "", {}, True, True)
        document = V2.dump(made)[".zarray"]
        assert (document["dtype"], document["fill_value"], document["shape"]) == (dtype, None, [])

    @pytest.mark.parametrize("layout", ["xarray", "pure"])
    def test_v2_keeps_the_fill_value_of_what_may_stay_unwritten(self, layout):
        header = VariableHeader(name="v", type=types.INT)
        assert LAYOUTS[layout].array(header, "", {}, True, False).fill_value == -2147483647

    def test_v2_says_that_strings_of_a_fixed_length_are_text(self, tmp_path):
        read = of_document(tmp_path, "xarray", type=types.STRING)
        assert read("v/.zattrs")["_Encoding"] == "utf-8"
        assert read("v/.zattrs")["_nczarr_array"]["added"] == ["_Encoding"]

    def test_v2_names_dimensions_in_groups_too(self):
        sizes = {"/x": DimensionHeader("x", 3), "/g/y": DimensionHeader("y", 3)}
        header = VariableHeader(name="v", type=types.INT, dimensions=("/x", "/g/y"))
        assert LAYOUTS["xarray"].variable(header, "/g", sizes, True).attributes["_ARRAY_DIMENSIONS"] == ["x", "y"]

    def test_what_another_program_has_replaced_is_not_mistreated_as_what_was_there(self, tmp_path):
        read = of_document(tmp_path, "v3", type=types.STRING, attributes={"_FillValue": strings("q")})
        assert read("zarr.json")["attributes"]["_nczarr_arrays"]["v"]["added"] == ["missing_value"]
        zarr.create_array(
            tmp_path / "d",
            name="v",
            data=np.ones((1, 2), "i4"),
            dimension_names=["y", "n"],
            attributes={"missing_value": 5},
            overwrite=True,
        )
        found = load(omnizarr.open_group(tmp_path / "d", mode="r")).root.variables["v"]
        assert found.attributes == {"missing_value": Attribute.of(np.int32(5))}
        assert [each.rpartition("/")[2] for each in found.dimensions] == ["y", "n"]


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_names_of_nczarr_are_refused_for_attributes(layout):
    header = VariableHeader(name="v", type=types.INT, attributes={"_nczarr_array": char("x")})
    with pytest.raises(NotRepresentableError, match="count as one of NCZarr's own"):
        LAYOUTS[layout].variable(header, "", {}, True)


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_names_with_a_backslash_are_refused(layout):
    with pytest.raises(NodeNameError, match="backslash"):
        LAYOUTS[layout].group(GroupHeader(name="0\\"), False)
    with pytest.raises(NodeNameError, match="backslash"):
        LAYOUTS[layout].array(VariableHeader(name="0\\", type=types.INT), "", {}, True)


def test_a_user_type_is_refused():
    enum = types.UserType("e", "enum", np.dtype("u1"))
    with pytest.raises(NotRepresentableError, match="no such type"):
        LAYOUTS["D"].array(VariableHeader(name="v", type=enum), "", {}, True)


def test_an_undefined_fill_value_of_zarr_v3_is_the_default():
    header = VariableHeader(name="v", type=types.INT, special={"_NoFill": char("true")})
    assert LAYOUTS["v3"].array(header, "", {}, True).fill_value == -2147483647
    assert LAYOUTS["v3"].variable(header, "", {}, True).listed["fill"] == "none"
    assert LAYOUTS["pure"].array(header, "", {}, True).fill_value is UNDEFINED


@pytest.mark.parametrize("layout", ["A", "B", "C", "D"])
def test_nuls_at_the_end_of_a_text_are_left_out_where_netcdf_c_would_show_them_as_u0000(layout):
    dataset = netcdf.Dataset({}, "w", layout=layout)
    dataset.units = "mm\0"
    assert dataset.units == "mm"


@pytest.mark.parametrize(("layout", "shown"), [("xarray", "mm"), ("v3", "mm"), ("E", "mm\0")])
def test_nuls_at_the_end_of_a_text_are_counted_where_others_would_show_them(layout, shown):
    store = {}
    dataset = netcdf.Dataset(store, "w", layout=layout)
    dataset.units = "mm\0"
    dataset.createVariable("v", "i4").units = "m\0\0"
    assert omnizarr.open_group(store).attrs["units"] == shown
    assert netcdf.Dataset(store).units == "mm\0"
    assert netcdf.Dataset(store)["v"].units == "m\0\0"
