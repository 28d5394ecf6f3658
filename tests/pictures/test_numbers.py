"""Values of all data types as numbers, and how these are written."""

import ml_dtypes
import numpy as np
import pytest

from omnizarr.pictures.numbers import are_numbers, dates, decimal, numbers_of


@pytest.mark.parametrize(
    ("values", "floats"),
    [
        ([True, False], [1, 0]),
        (np.array([-3, 4], "i2"), [-3, 4]),
        (np.array([1.5, np.nan], "f2"), [1.5, np.nan]),
        (np.array([3 + 4j, -5], "c8"), [5, 5]),
        (np.array(["1970-01-03", "NaT"], "M8[D]"), [2, np.nan]),
        (np.array([7], "m8[h]"), [7]),
        (np.array([1.5, 2], ml_dtypes.bfloat16), [1.5, 2]),
    ],
)
def test_values_become_floats(values, floats):
    np.testing.assert_array_equal(numbers_of(np.asarray(values)).values, floats)


@pytest.mark.parametrize("dtype", ["U3", "S2", "O", [("a", "i4")], np.dtypes.StringDType(), "V4"])
def test_text_and_records_are_no_numbers(dtype):
    assert not are_numbers(np.dtype(dtype))


def test_magnitude_of_large_complex_numbers_is_finite():
    assert numbers_of(np.array([3e38 + 3e38j], "c8")).range == pytest.approx((4.24e38, 4.24e38), rel=0.01)


def test_missing_values_are_not_counted_as_nan():
    numbers = numbers_of(np.array([1, np.nan, -999]), np.array([False, False, True]))
    assert numbers.nan_count == 1
    assert numbers.range == (1, 1)
    assert numbers.missing.tolist() == [False, False, True]


def test_limits_are_percentiles_and_leave_infinities_out():
    numbers = numbers_of(np.array([*range(101), np.inf, -np.inf, np.nan]))
    assert numbers.limits((10, 90)) == (10, 90)


def test_limits_that_would_be_one_value_are_all_values():
    assert numbers_of(np.array([0.0] * 99 + [5])).limits((2, 98)) == (0, 5)
    assert numbers_of(np.array([np.nan])).limits((2, 98)) is None


@pytest.mark.parametrize(
    ("dtype", "value", "step", "text"),
    [
        ("f8", 273.15, 0.5, "273.1"),
        ("f8", -0.04, 0.5, "0.0"),
        ("f8", 2.5e-9, 1e-9, "2.5e-09"),
        ("i4", 6.4, 0.1, "6"),
        ("?", 1, 0, "True"),
        ("M8[s]", 86400 * 365, 86400 * 30, "1971-01-01"),
        ("M8[s]", 3600 * 5, 3600, "1970-01-01T05"),
        ("m8[D]", 3, 1, "3 days"),
    ],
)
def test_labels(dtype, value, step, text):
    assert numbers_of(np.zeros(1, dtype)).label(value, step) == text


def test_dates_lose_nothing():
    assert dates(np.array(["2026-01-01", "2026-02-01"], "M8[ns]")) == ["2026-01-01", "2026-02-01"]
    assert dates(np.array(["2026-01-01T00:00:30", "NaT"], "M8[s]")) == ["2026-01-01T00:00:30", "NaT"]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_written_as_such(value):
    assert decimal(value, 0.1) == str(value)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array(["2020", "1970"], "M8[Y]"), ["2020", "1970"]),
        (np.array(["2020-03"], "M8[M]"), ["2020-03"]),
        (np.array(["1970-01-01T00:00:00.000000000001"], "M8[ps]"), ["1970-01-01T00:00:00.000000000001"]),
        (np.array([5], "i8").view("M8"), ["5"]),
    ],
)
def test_dates_of_units_that_numpy_does_not_compare_keep_their_unit(values, texts):
    assert dates(values) == texts
    assert numbers_of(values).label(float(values.view("i8")[0]), 1.0) == texts[0]
