"""Quantization, bit for bit as netCDF-C and netCDF4-python do it."""

import itertools

import hypothesis.extra.numpy as arrays
import netCDF4
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netCDF4.utils import _quantize

from omnizarr.errors import SettingError
from omnizarr.netcdf import quantize

MODES = ("BitGroom", "GranularBitRound", "BitRound")
MOST = {("f4", "BitRound"): 23, ("f8", "BitRound"): 52, ("f4", "BitGroom"): 6, ("f8", "BitGroom"): 15}
NAMES = itertools.count()


def most(code, mode):
    return MOST[code, mode if mode == "BitRound" else "BitGroom"]


def by_netcdf(values, mode, digits, fill_value=None):
    """Return what netCDF-C stores, in a file of HDF5 that is only in memory."""
    with netCDF4.Dataset(f"quantized{next(NAMES)}.nc", "w", diskless=True) as dataset:
        names = [f"d{axis}" for axis in range(values.ndim)]
        for name, length in zip(names, values.shape, strict=True):
            dataset.createDimension(name, length)
        variable = dataset.createVariable(
            "v", values.dtype.str[1:], names, significant_digits=digits, quantize_mode=mode, fill_value=fill_value
        )
        dataset.set_auto_mask(False)
        variable[...] = values
        return variable[...]


def same_bits(one, other):
    unsigned = f"u{one.dtype.itemsize}"
    return one.dtype == other.dtype and np.array_equal(one.view(unsigned), other.view(unsigned))


@st.composite
def requests(draw):
    code = draw(st.sampled_from(["f4", "f8"]))
    mode = draw(st.sampled_from(MODES))
    digits = draw(st.integers(1, most(code, mode)))
    shape = draw(arrays.array_shapes(max_dims=2, max_side=12))
    width = 8 * int(code[1])
    elements = st.floats(width=width, allow_infinity=False) | st.sampled_from(
        [0.0, -0.0, 1.0, 10.0, 100.0, -1000.0, 0.5, 0.125, 2.0, 3.0, 1024.0, float(np.float32(9.96921e36))]
    )
    if width == 32:
        elements = elements.map(lambda value: float(np.float32(value)))
    return draw(arrays.arrays(code, shape, elements=elements)), mode, digits


@given(requests())
def test_bits_are_those_that_netcdf_c_stores(request):
    values, mode, digits = request
    with np.errstate(all="raise"):
        found = quantize.apply(values, mode, digits)
    assert same_bits(found, by_netcdf(values, mode, digits))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("code", ["f4", "f8"])
def test_every_power_of_ten_and_two_is_kept_as_netcdf_c_does(mode, code):
    top = 37 if code == "f4" else 300
    values = np.array([*(10.0**n for n in range(-top, top)), *(2.0**n for n in range(-120, 120))], code)
    values = np.concatenate([values, np.nextafter(values, 0, dtype=code), -values])
    for digits in range(1, most(code, mode) + 1):
        assert same_bits(quantize.apply(values, mode, digits), by_netcdf(values, mode, digits)), digits


@pytest.mark.parametrize("mode", MODES)
def test_fill_value_stays(mode):
    values = np.array([1.23456, -999.123, 9.876, -999.123], "f4")
    found = quantize.apply(values, mode, 2, np.float32(-999.123))
    assert same_bits(found, by_netcdf(values, mode, 2, np.float32(-999.123)))
    assert found[1] == values[1]
    assert found[3] == values[3]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("code", ["f4", "f8"])
def test_infinities_and_nan_stay(mode, code):
    values = np.array([np.inf, np.inf, -np.inf, -np.inf, np.nan, np.nan], code)
    assert same_bits(quantize.apply(values, mode, 1), values)


@pytest.mark.parametrize("mode", MODES)
def test_big_endian_values_stay_big_endian(mode):
    values = np.linspace(-3, 3, 7).astype(">f4")
    found = quantize.apply(values, mode, 2)
    assert found.dtype == np.dtype(">f4")
    assert same_bits(found.astype("f4"), quantize.apply(values.astype("f4"), mode, 2))


def test_values_given_are_left_alone():
    values = np.array([3.14159], "f8")
    quantize.apply(values, "BitRound", 2)
    assert values[0] == 3.14159


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_shape_without_extent_is_kept(shape):
    assert quantize.apply(np.zeros(shape, "f4"), "BitGroom", 3).shape == shape


@pytest.mark.parametrize("code", ["f4", "f8", "i4"])
@pytest.mark.parametrize("mode", [*MODES, "Bitgroom"])
@pytest.mark.parametrize("digits", [-1, 0, 1, 6, 7, 15, 16, 23, 24, 52, 53])
def test_range_of_digits_is_that_of_netcdf_c(code, mode, digits):
    try:
        by_netcdf(np.zeros(2, code), mode, digits)
    except (RuntimeError, ValueError):
        with pytest.raises(SettingError):
            quantize.check(mode, digits, np.dtype(code))
    else:
        quantize.check(mode, digits, np.dtype(code))


@pytest.mark.parametrize("values", [np.zeros(2, "i4"), np.zeros(2, "f2"), np.array(["a"])], ids=["i4", "f2", "text"])
def test_what_is_no_float_cannot_be_quantized(values):
    with pytest.raises(SettingError, match="only floats"):
        quantize.apply(values, "BitRound", 1)


def test_no_digits_cannot_be_kept():
    with pytest.raises(SettingError, match="0, expected 1 to 6"):
        quantize.apply(np.ones(2, "f4"), "BitGroom", 0)


def test_seven_digits_of_a_float_are_all_that_it_has():
    # netCDF-C 4.9 lets that be asked for
    values = np.array([3.14159274, 2.71828175], "f4")
    assert same_bits(quantize.apply(values, "BitGroom", 7), values)


@given(
    arrays.arrays("f8", 5, elements=st.floats(-1e12, 1e12)),
    st.integers(-12, 20),
    st.sampled_from(["f4", "f8", "i4"]),
)
def test_least_significant_digit_is_that_of_netcdf4_python(values, digit, code):
    values = np.clip(values, -1e9, 1e9).astype(code)
    found = quantize.least_significant_digit(values, digit)
    expected = _quantize(values, digit)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def test_masked_values_stay_masked():
    values = np.ma.masked_array([1.234, 5.678], [False, True])
    found = quantize.least_significant_digit(values, 1)
    assert found.mask.tolist() == [False, True]
    assert found[0] == 1.25


@pytest.mark.parametrize("digit", [400, -400, "one", None, float("nan"), float("inf")])
def test_digit_out_of_reach_is_refused(digit):
    with pytest.raises(SettingError):
        quantize.least_significant_digit(np.ones(2), digit)
