"""Numbers are printed as ncdump prints them."""

from pathlib import Path

import numpy as np
import pytest

from omnizarr.netcdf import types
from omnizarr.netcdf.cdl import numbers
from omnizarr.netcdf.cdl.numbers import Precision

TABLE = Path(__file__).parents[1] / "data" / "cdl" / "numbers.tsv"


def table(name):
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    # Where ncdump prints the largest doubles, it prints what is read as infinity.
    rows = [row[1:] for row in rows if row[0] == name and not row[2].endswith("1.79769313486232e+308")]
    bits, data, attribute = map(list, zip(*rows, strict=True))
    dtype = types.TYPES[name].dtype
    values = np.array([int(each, 16) for each in bits], f"u{dtype.itemsize}").view(dtype)
    return types.TYPES[name], values, data, attribute


@pytest.mark.parametrize("name", ["float", "double"])
def test_data_are_as_ncdump_prints_them(name):
    nc_type, values, data, _ = table(name)
    assert numbers.data(values, nc_type, numbers.data_format(nc_type, Precision())) == data


@pytest.mark.parametrize("name", ["float", "double"])
def test_attributes_are_as_ncdump_prints_them(name):
    nc_type, values, _, attribute = table(name)
    assert numbers.attribute(values, nc_type, Precision()) == attribute


@pytest.mark.parametrize("name", ["float", "double"])
def test_nine_and_seventeen_digits_give_every_number_back(name):
    nc_type, values, _, _ = table(name)
    values = values[np.isfinite(values)]
    texts = numbers.data(values, nc_type, numbers.data_format(nc_type, Precision(9, 17)))
    assert np.array(texts, nc_type.dtype).tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("byte", "b"),
        ("short", "s"),
        ("int", ""),
        ("int64", "LL"),
        ("ubyte", "UB"),
        ("ushort", "US"),
        ("uint", "U"),
        ("uint64", "ULL"),
    ],
)
def test_whole_numbers_carry_their_type_in_attributes_only(name, suffix):
    nc_type = types.TYPES[name]
    ends = np.iinfo(nc_type.dtype)
    values = np.array([ends.min, 0, ends.max], nc_type.dtype)
    assert numbers.attribute(values, nc_type, Precision()) == [
        f"{ends.min}{suffix}",
        f"0{suffix}",
        f"{ends.max}{suffix}",
    ]
    assert numbers.data(values, nc_type, None) == [str(ends.min), "0", str(ends.max)]


# What printf of C prints for the conversion.
@pytest.mark.parametrize(
    ("dtype", "c_format", "value", "text"),
    [
        ("i1", "%x", -1, "ffffffff"),
        ("i2", "0x%04hx", 255, "0x00ff"),
        ("i8", "%llx", -1, "ffffffffffffffff"),
        ("u1", "%03u", 7, "007"),
        ("i4", "%+d %%", 5, "+5 %"),
        ("f4", "%9.3f", 1.5, "    1.500"),
        ("f8", "%-10.2e|", 1234.5, "1.23e+03  |"),
        ("f8", "%lf", 0.1, "0.100000"),
    ],
)
def test_format_of_c_is_followed(dtype, c_format, value, text):
    nc_type = types.of_dtype(np.dtype(dtype))
    conversion = numbers.data_format(nc_type, Precision(), c_format)
    assert numbers.data(np.array([value], dtype), nc_type, conversion) == [text]


@pytest.mark.parametrize(
    "c_format", ["", "%", "%s", "%d", "%n", "%999999999f", "%.999f", "no conversion", "%f %f", "%*f"]
)
def test_format_that_is_none_for_the_type_is_ignored(c_format):
    assert numbers.data_format(types.DOUBLE, Precision(), c_format) == "%.15g"


def test_precision_that_was_asked_for_counts_more_than_the_format_of_a_variable():
    assert numbers.data_format(types.FLOAT, Precision(3), "%9.4f") == "%.3g"
    assert numbers.data_format(types.DOUBLE, Precision(3), "%9.4f") == "%9.4f"


def test_infinity_and_nan_follow_no_format():
    values = np.array([np.nan, np.inf, -np.inf])
    assert numbers.data(values, types.DOUBLE, "%9.3f") == ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize("fill", [np.nan, np.inf, -np.inf, 0.0, -1.0, 9.969209968386869e36, 5e-324])
def test_fill_value_is_found_whatever_it_is(fill):
    others = np.array([1.0, 7.5, 1e300])
    assert numbers.is_fill(np.array([fill]), np.float64(fill)).all()
    assert not numbers.is_fill(others, np.float64(fill)).any()


def test_number_next_to_the_fill_value_does_not_read_as_it():
    value = np.nextafter(np.nextafter(np.float32(1), np.float32(2)), np.float32(2))
    (text,) = numbers.data(np.array([value]), types.FLOAT, "%.7g", np.float32(1))
    assert np.float32(text) == value


@pytest.mark.parametrize("nc_type", [types.FLOAT, types.DOUBLE])
@pytest.mark.parametrize("digits", [1, 3, 4, 7, 15])
def test_largest_number_does_not_read_as_infinity(nc_type, digits):
    largest = np.finfo(nc_type.dtype).max
    precision = Precision(digits, digits)
    values = np.array([largest, -largest])
    data = numbers.data(values, nc_type, numbers.data_format(nc_type, precision))
    attribute = [each.rstrip("f") for each in numbers.attribute(values, nc_type, precision)]
    assert np.isfinite(np.array([*data, *attribute], "f8").astype(nc_type.dtype)).all()
