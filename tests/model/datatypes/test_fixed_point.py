"""The proposed type ``binary_fixed_point``: integers in memory, numbers in fill values and where values are shown.

Types, ranges and the form of bits are those of its text; the rest is arithmetic of fractions.
"""

import json
from fractions import Fraction

import numpy as np
import pytest

import omnizarr
from omnizarr import cli, errors
from omnizarr.model import Named
from omnizarr.model.datatypes import bind
from omnizarr.nodes.packing import Packing


def fixed(base, **bits):
    return {"name": "binary_fixed_point", "configuration": {"base_data_type": base, **bits}}


Q15 = fixed("int16", fractional_bits=15, integer_bits=0)
BIG = {"name": "bytes", "configuration": {"endian": "big"}}


def bound(data_type):
    return bind(Named(data_type["name"], data_type["configuration"]))


@pytest.mark.parametrize(
    ("data_type", "lowest", "highest"),
    [  # the table of the text
        (Q15, -1, Fraction(2**15 - 1, 2**15)),
        (fixed("uint16", fractional_bits=8, integer_bits=8), 0, Fraction(2**16 - 1, 2**8)),
        (fixed("int32", fractional_bits=16, integer_bits=15), -32768, Fraction(2**31 - 1, 2**16)),
        (fixed("int16", integer_bits=1), -2, Fraction(2**15 - 1, 2**14)),  # Q1.14
        (fixed("uint8", fractional_bits=8), 0, Fraction(255, 256)),
    ],
)
def test_fill_values_are_the_numbers_that_integers_mean(data_type, lowest, highest):
    found = bound(data_type)
    limits = np.iinfo(data_type["configuration"]["base_data_type"])
    assert found.dtype == limits.dtype
    for number, integer in ((lowest, limits.min), (highest, limits.max), (0, 0)):
        assert found.fill_from_json(float(number)) == integer
        assert found.fill_to_json(integer) == float(number)
    for number in (float(highest) * 2, float(lowest) - 1, float(highest) / 2):  # too large, too small, in between
        with pytest.raises(errors.MetadataError):
            found.fill_from_json(number)


def test_bits_of_a_fill_value_are_hexadecimal_where_a_number_would_lose_some():
    found = bound(Q15)
    assert [found.fill_from_json(text) for text in ("0x0000", "0xffff", "0x8000", "0x4000")] == [0, -1, -32768, 16384]
    for text in ("0x00", "ffff", "NaN", ""):
        with pytest.raises(errors.MetadataError):
            found.fill_from_json(text)
    large = bound(fixed("int64", fractional_bits=60))
    assert large.fill_to_json(2**53 + 1) == "0x0020000000000001"
    assert large.fill_from_json("0x0020000000000001") == 2**53 + 1
    assert large.fill_to_json(-(2**62)) == -4.0
    assert bound(fixed("uint64", integer_bits=0)).fill_to_json(2**63) == 0.5


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"base_data_type": "int16"},
        {"base_data_type": "float32", "fractional_bits": 3},
        {"base_data_type": {"name": "int16"}, "fractional_bits": 3},
        {"base_data_type": "int16", "fractional_bits": 16},
        {"base_data_type": "int16", "fractional_bits": -1},
        {"base_data_type": "int16", "fractional_bits": True},
        {"base_data_type": "int16", "integer_bits": 1.0},
        {"base_data_type": "int16", "fractional_bits": 8, "integer_bits": 8},
        {"base_data_type": "uint16", "fractional_bits": 8, "integer_bits": 7},
        {"base_data_type": "int16", "fractional_bits": 8, "more": 1},
    ],
)
def test_other_types_are_refused(configuration):
    with pytest.raises(errors.MetadataError) as error:
        bind(Named("binary_fixed_point", configuration))
    assert error.value.pointer.startswith("/data_type/configuration")


@pytest.mark.parametrize(("serializer", "stored"), [("auto", "01000080ff7f"), (BIG, "000180007fff")])
def test_elements_are_the_stored_integers(serializer, stored):
    values = {}
    array = omnizarr.create_array(
        values, data=np.array([1, -32768, 32767], "i2"), dtype=Q15, compressors=None, serializer=serializer
    )
    assert values["c/0"] == bytes.fromhex(stored)
    assert omnizarr.open_array(values)[...].tolist() == [1, -32768, 32767]
    array[0] = [-7]
    assert array[0] == -7
    for other in (0.5, 1.0, np.array([0.5]), True, [None]):  # what they mean is not clear
        with pytest.raises(errors.ValueTypeError):
            array[:1] = other
    with pytest.raises(errors.MetadataError, match="stored integers"):
        omnizarr.create_array({}, shape=(1,), dtype=Q15, fill_value=0.5)
    with pytest.raises(errors.ValueTypeError):
        omnizarr.create_array({}, data=[0.5], dtype=Q15)


@pytest.mark.parametrize(
    "outer",
    [
        {"name": "optional", "configuration": Q15},
        {"name": "fixed_size_list", "configuration": {"base_data_type": Q15, "list_size": 2}},
        {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": Q15}]}},
    ],
)
def test_within_other_types_they_are_refused(outer):
    with pytest.raises(errors.UnknownDataTypeError, match="within others"):
        bound(outer)


def test_what_shows_values_shows_the_numbers(tmp_path, capsys):
    path = tmp_path / "a"
    array = omnizarr.create_array(path, data=np.array([16384, -32768], "i2"), dtype=Q15, dimension_names=["x"])
    assert Packing.of_array(array.metadata).floats(array[...]).tolist() == [0.5, -1.0]
    array.attrs["scale_factor"] = 4
    assert Packing.of_array(array.metadata).floats(array[...]).tolist() == [2.0, -4.0]
    assert cli.main(["info", str(path)]) == 0
    assert "binary_fixed_point[int16*2**-15]" in capsys.readouterr().out
    plain = omnizarr.create_array(tmp_path / "b", data=array[...], dimension_names=["x"])
    plain.attrs["scale_factor"] = 4
    assert "data type" in str(omnizarr.diff(path, tmp_path / "b"))


def test_arrays_of_other_scales_are_joined_by_what_they_mean():
    halves = omnizarr.create_array({}, data=np.array([1, 3], "i2"), dtype=fixed("int16", fractional_bits=1))
    quarters = omnizarr.create_array({}, data=np.array([1, 3], "i2"), dtype=fixed("int16", fractional_bits=2))
    assert omnizarr.concat([halves, quarters])[...].tolist() == [0.5, 1.5, 0.25, 0.75]
    assert omnizarr.concat([halves, halves])[...].tolist() == [1, 3, 1, 3]


def test_xarray_sees_the_numbers(tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    root = omnizarr.create_group(tmp_path)
    root.create_array("v", data=np.array([16384, -32768], "i2"), dtype=Q15, dimension_names=["x"])
    with xarray.open_dataset(tmp_path, engine="omnizarr") as dataset:
        assert dataset["v"].values.tolist() == [0.5, -1.0]


def test_conversion_keeps_the_type_in_v3_and_names_the_loss_in_others(tmp_path):
    values = np.array([1, -2, 16384], "i2")
    source = omnizarr.create_array(tmp_path / "a", data=values, dtype=Q15, fill_value=16384, chunks=(2,))
    document = source.documents()["zarr.json"]
    assert document["fill_value"] == 0.5
    omnizarr.convert(tmp_path / "a", tmp_path / "b", strict=True)
    assert json.loads((tmp_path / "b" / "zarr.json").read_bytes())["data_type"] == Q15
    with pytest.raises(errors.OmnizarrError, match="fixed-point"):
        omnizarr.convert(tmp_path / "a", tmp_path / "c", zarr_format=2, strict=True)
    report = omnizarr.convert(tmp_path / "a", tmp_path / "c", zarr_format=2)
    assert "3.0517578125e-05 times their integers" in str(report)
    found = omnizarr.open_array(tmp_path / "c")
    assert found.documents()[".zarray"]["dtype"] == "<i2"
    assert found.fill_value == 16384
    np.testing.assert_array_equal(found[...], values)
    assert "unregistered-extension" in str(omnizarr.check(tmp_path / "a"))
