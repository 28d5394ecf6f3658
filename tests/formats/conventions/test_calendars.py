"""Calendars of CF: dates are those of cftime, in every calendar, and found again."""

import numpy as np
import pytest

from omnizarr.formats.conventions.calendars import CALENDARS, Times

NAMES = ("standard", "proleptic_gregorian", "noleap", "all_leap", "360_day", "julian")
DAYS = [*range(-700_000, 900_000, 9_973), *range(-141_500, -141_400), *range(10_900, 11_400), *range(-800, 800)]
"""Days from 1970: over 4,000 years, around 1582-10-15, and around leap days."""


@pytest.mark.parametrize("name", NAMES)
def test_dates_are_those_of_cftime(name):
    cftime = pytest.importorskip("cftime", reason="cftime is not installed")
    theirs = cftime.num2date(np.array(DAYS), "days since 1970-01-01", calendar=name, only_use_cftime_datetimes=True)
    calendar = CALENDARS[name]
    for days, date in zip(DAYS, theirs, strict=True):
        assert calendar.date(days) == (date.year, date.month, date.day), days
        assert calendar.days(date.year, date.month, date.day) == days
        assert calendar.has(date.year, date.month, date.day)


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("standard", (1582, 10, 10)),
        ("standard", (1900, 2, 29)),
        ("julian", (1901, 2, 29)),
        ("noleap", (2000, 2, 29)),
        ("360_day", (2000, 1, 31)),
        ("standard", (2000, 13, 1)),
        ("standard", (2000, 1, 0)),
    ],
)
def test_dates_that_are_none_are_told(name, date):
    assert not CALENDARS[name].has(*date)


@pytest.mark.parametrize(
    ("units", "values", "texts"),
    [
        ("days since 1999-12-29", [0, 1, 2], ["1999-12-29", "1999-12-30", "2000-01-01"]),
        ("hours since 2000-02-30", [0, 36.5], ["2000-02-30T00:00", "2000-03-01T12:30"]),
        ("seconds since 0001-01-01 23:59:59.5Z", [0, 0.75], ["0001-01-01T23:59:59.500", "0001-01-02T00:00:00.250"]),
        ("us since 9999-12-30T23:59", [60_000_001], ["10000-01-01T00:00:00.000001"]),
        ("days since 2000-01-01", [float("nan"), 1], ["NaT", "2000-01-02"]),
        ("days since 2000-01-01", [1e300, -1], ["NaT", "1999-12-30"]),
    ],
)
def test_texts_are_as_fine_as_all_need(units, values, texts):
    assert Times.of({"units": units, "calendar": "360_DAY"}).texts(np.array(values)).tolist() == texts


def test_a_text_is_as_fine_as_its_neighbours_are_far():
    times = Times.of({"units": "days since 2000-01-01", "calendar": "noleap"})
    assert [times.text(0.51, step) for step in (0, 0.01, 0.5, 30)] == [
        "2000-01-01T12:14:24",
        "2000-01-01T12:14",
        "2000-01-01T12",
        "2000-01-01",
    ]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"units": 5},
        {"units": "K"},
        {"units": "months since 2000-01-01"},
        {"units": "days since 2000-01-01", "calendar": "lunar"},
        {"units": "days since 2000-01-01", "calendar": 360},
        {"units": "days since 2001-02-29", "calendar": "noleap"},
    ],
)
def test_attributes_that_mean_no_time(said):
    assert Times.of(said) is None
