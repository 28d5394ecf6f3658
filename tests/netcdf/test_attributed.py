"""Attributes: names, types, and what is none."""

import netCDF4
import numpy as np
import pytest

from omnizarr.errors import MetadataError, NodeNameError, NotRepresentableError, UnknownDataTypeError
from omnizarr.netcdf import Dataset, files
from omnizarr.netcdf.layouts import LAYOUTS

COMPOSED, DECOMPOSED = "\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}"


def test_names_are_stored_in_the_normal_form_of_netcdf(tmp_path):
    def define(dataset):
        dataset.createDimension(DECOMPOSED, 2)
        dataset.createVariable(DECOMPOSED, "i4")
        dataset.createGroup(f"g{DECOMPOSED}")
        dataset.setncattr(DECOMPOSED, 1)

    def names(dataset):
        return [list(each) for each in (dataset.dimensions, dataset.variables, dataset.groups, dataset.ncattrs())]

    store = {}
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as theirs, Dataset(store, "w") as ours:
        define(theirs)
        define(ours)
        assert names(ours)[0] == [COMPOSED]
    with netCDF4.Dataset(tmp_path / "x.nc") as theirs, Dataset(store) as ours:
        assert names(ours) == names(theirs)


@pytest.mark.parametrize("name", ["", "a/b", "a\nb", "a ", " a", "-a", "a\x7f", 5, None])
def test_what_is_no_name_is_refused_everywhere(name):
    dataset = Dataset({}, "w")
    dataset.title = "x"
    for use in (dataset.createDimension, lambda each: dataset.setncattr(each, 1)):
        with pytest.raises(NodeNameError):
            use(name)
    with pytest.raises(NodeNameError):
        dataset.renameAttribute("title", name)
    assert (dataset.ncattrs(), dict(dataset.dimensions)) == (["title"], {})


@pytest.mark.parametrize(
    "value", [None, {}, {"a": 1}, 2**64, 1j, np.datetime64("2000-01-01"), np.float16(1), ValueError, [None]], ids=str
)
def test_a_value_without_a_netcdf_type_is_refused(value):
    dataset = Dataset({}, "w")
    with pytest.raises(UnknownDataTypeError) as caught:
        dataset.setncattr("a", value)
    assert caught.value.path == "@a"
    assert dataset.ncattrs() == []


@pytest.mark.parametrize("name", ["_NCProperties", "_ARRAY_DIMENSIONS", "_nczarr_attr", "_Storage", "_Codecs"])
def test_names_that_netcdf_keeps_are_neither_set_nor_taken(name):
    dataset = Dataset({}, "w")
    dataset.title = "x"
    with pytest.raises(NodeNameError):
        dataset.setncattr(name, "x")
    with pytest.raises(NodeNameError):
        dataset.renameAttribute("title", name)
    assert dataset.ncattrs() == ["title"]


def test_several_attributes_are_set_in_one_change_or_none():
    store = {}
    dataset = Dataset(store, "w")
    before = dict(store)
    with pytest.raises(UnknownDataTypeError):
        dataset.setncatts({"a": 1, "b": None})
    assert (store, dataset.ncattrs()) == (before, [])


def test_a_renamed_attribute_keeps_its_place():
    dataset = Dataset({}, "w")
    dataset.setncatts({"a": 1, "b": 2, "c": 3})
    dataset.renameAttribute("b", "x")
    assert dataset.ncattrs() == ["a", "x", "c"]
    with pytest.raises(MetadataError):
        dataset.renameAttribute("a", "c")


@pytest.mark.parametrize("fill", [b"\xff", COMPOSED, "ab", b"ab"])
@pytest.mark.parametrize("layout", ["A", "D", "v3"])
def test_a_char_is_filled_with_a_byte_of_ascii(layout, fill):
    dataset = Dataset({}, "w", layout=layout)
    with pytest.raises(MetadataError):
        dataset.createVariable("v", "S1", fill_value=fill)
    assert not dataset.variables


def test_existing_data_is_found_by_its_path():
    dataset = Dataset({}, "w")
    dataset.createVariable("g/v", "i4")
    assert ["g/v" in dataset, "/g" in dataset, "v" in dataset, 0 in dataset] == [True, True, False, False]
    with pytest.raises(TypeError):
        dataset[0]


VALUES = {
    "ascii": "m s-1",
    "beyond ascii": "Größe",
    "numpy text": np.str_("Größe"),
    "bytes": b"hello",
    "bytes beyond ascii": "Größe".encode(),
    "numpy bytes": np.bytes_(b"x"),
    "one text": ["abc"],
    "one text beyond ascii": ["Größe"],
    "texts": ["a", "Größe"],
    "texts in an array": np.array(["ab", "c"]),
    "list of bytes": [b"ab", b"c"],
    "chars": np.array([b"a", b"b"], "S1"),
    "number and text": [1, "a"],
    "short": np.int16(2),
    "shorts": np.array([1, 2], ">i2"),
    "double": 0.5,
    "large": 2**63,
}
HOWS = ["setncattr", "setncattr_string", "setncatts", "assignment"]


def set_attribute(node, how, value):
    if how == "assignment":
        node.a = value
    elif how == "setncatts":
        node.setncatts({"a": value})
    else:
        getattr(node, how)("a", value)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_types_of_attributes_are_those_that_netcdf4_python_stores(tmp_path, how, value):
    store = {}
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as theirs, Dataset(store, "w") as ours:
        for dataset in (theirs, ours):
            set_attribute(dataset, how, value)
            set_attribute(dataset.createVariable("v", "i4", ()), how, value)
            if how != "setncattr_string":
                dataset["v"].set_ncstring_attrs(True)
                dataset["v"].b = value
    with files.open_file(tmp_path / "x.nc") as theirs, Dataset(store) as ours:
        root = ours.as_source().root
        assert root.attributes == theirs.root.attributes
        assert root.variables["v"].attributes == theirs.root.variables["v"].attributes


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("value", [np.zeros((2, 2)), [["a", "b"], ["c", "d"]], np.zeros((1, 0), "S3")], ids=str)
def test_values_of_two_dimensions_are_refused_as_by_netcdf4_python(tmp_path, how, value):
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as theirs, Dataset({}, "w") as ours:
        for dataset in (theirs, ours):
            variable = dataset.createVariable("v", "i4", ())
            for node in (dataset, variable):
                with pytest.raises(ValueError, match="dimension"):
                    set_attribute(node, how, value)
                assert node.ncattrs() == []


@pytest.mark.parametrize("layout", ["A", "B"])
def test_text_beyond_ascii_is_char_in_layouts_without_strings(layout):
    store = {}
    with Dataset(store, "w", layout=layout) as dataset:
        dataset.a = "Größe"
        with pytest.raises(NotRepresentableError):
            dataset.setncattr_string("b", "Größe")
    with Dataset(store) as dataset:
        assert (dataset.a, dataset.getncattr_type("a")) == ("Größe", "char")


ROUNDED = {
    "BitGroom": "_QuantizeBitGroomNumberOfSignificantDigits",
    "GranularBitRound": "_QuantizeGranularBitRoundNumberOfSignificantDigits",
    "BitRound": "_QuantizeBitRoundNumberOfSignificantBits",
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", ROUNDED)
def test_how_numbers_are_rounded_is_an_attribute_as_in_netcdf4_python(tmp_path, layout, mode):
    def define(dataset):
        variable = dataset.createVariable("v", "f4", (), significant_digits=3, quantize_mode=mode)
        variable.units = "m"
        variable[...] = 1.11111

    def told(dataset):
        variable = dataset["v"]
        name = ROUNDED[mode]
        return variable.ncattrs(), variable.getncattr(name), variable.__dict__, variable.quantization(), variable[...]

    store = {}
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as theirs, Dataset(store, "w", layout=layout) as ours:
        define(theirs)
        define(ours)
    with netCDF4.Dataset(tmp_path / "x.nc", "a") as theirs, Dataset(store, "a") as ours:
        assert told(ours) == told(theirs)
        assert ours["v"].getncattr(ROUNDED[mode]).dtype == theirs["v"].getncattr(ROUNDED[mode]).dtype
        for dataset in (theirs, ours):
            dataset["v"].setncattr(ROUNDED[mode], np.int32(5))
    with netCDF4.Dataset(tmp_path / "x.nc", "a") as theirs, Dataset(store, "a") as ours:
        assert told(ours)[:4] == told(theirs)[:4]
        for dataset in (theirs, ours):
            dataset["v"].delncattr(ROUNDED[mode])
    with netCDF4.Dataset(tmp_path / "x.nc") as theirs, Dataset(store) as ours:
        assert (ours["v"].ncattrs(), ours["v"].quantization()) == (theirs["v"].ncattrs(), theirs["v"].quantization())
