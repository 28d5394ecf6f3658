"""Attributes: names, types, and what is none."""

import netCDF4
import numpy as np
import pytest

from omnizarr.errors import MetadataError, NodeNameError, UnknownDataTypeError
from omnizarr.netcdf import Dataset

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


def test_what_is_there_is_found_by_its_path():
    dataset = Dataset({}, "w")
    dataset.createVariable("g/v", "i4")
    assert ["g/v" in dataset, "/g" in dataset, "v" in dataset, 0 in dataset] == [True, True, False, False]
    with pytest.raises(TypeError):
        dataset[0]
