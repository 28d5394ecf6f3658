"""Marks beside pictures are at the right places, few enough, and round."""

import numpy as np
import pytest

from omnizarr.pictures.axes import Axis, round_numbers, ticks_between
from omnizarr.pictures.numbers import numbers_of


@pytest.mark.parametrize("most", [1, 2, 3, 5, 10])
@pytest.mark.parametrize(
    "coordinates",
    [
        np.arange(7),
        np.linspace(-90, 90, 181),
        np.linspace(90, -90, 181),
        np.array([1e-12, 2e-12]),
        np.array([1e300, 1.1e300]),
        np.array([5.0]),
        np.array([3.0, np.nan, 1]),
        np.array([1.0, 1.0, 1.0]),
        np.array(["a", "b\n", "c" * 100]),
        np.arange("2026-01", "2027-01", dtype="M8[M]"),
    ],
    ids=str,
)
def test_marks_are_few_and_are_on_the_axis(coordinates, most):
    ticks = Axis("", "", coordinates).ticks(most)
    assert 1 <= len(ticks) <= max(most, 1)
    assert all(0 <= tick.place <= 1 for tick in ticks)
    assert all(tick.text.isprintable() for tick in ticks)


@pytest.mark.parametrize(
    "coordinates", [np.linspace(-90, 90, 181), np.linspace(90, -90, 181), np.arange(0, 4000, 7) ** 2]
)
def test_numbers_stand_where_they_are(coordinates):
    for tick in Axis("", "", coordinates).ticks(8):
        at = np.interp(tick.place, np.linspace(0, 1, len(coordinates)), coordinates)
        assert at == pytest.approx(float(tick.text), abs=0.02 * np.ptp(coordinates))


def test_indices_have_no_fractions():
    assert [tick.text for tick in Axis("", "", np.arange(4)).ticks(10)] == ["0", "1", "2", "3"]


def test_no_elements_have_no_marks():
    assert Axis("", "", np.arange(0)).ticks(5) == []


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-1, 1), (230.1, 309.7), (1e-30, 3e-30), (-5e300, 5e300), (0.1, 0.100001)]
)
@pytest.mark.parametrize("most", [2, 3, 6])
def test_round_numbers_are_between(low, high, most):
    numbers, step = round_numbers(low, high, most)
    assert 1 <= len(numbers) <= most
    assert (numbers >= low - 1e-6 * step).all()
    assert (numbers <= high + 1e-6 * step).all()


def test_names_of_others_do_not_command_the_terminal():
    assert Axis("\x1b[2J", "m\n", np.arange(2)).title == "\\x1b[2J [m\\n]"


def test_scale_of_booleans_has_no_values_between():
    assert [tick.text for tick in ticks_between(numbers_of(np.array([True, False])), 0, 1, 9)] == ["False", "True"]
