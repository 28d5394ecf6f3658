"""Which values become images, lines and tables, and what these hold."""

import numpy as np
import pytest

from omnizarr.pictures.axes import Axis, ticks_between
from omnizarr.pictures.contents import Chart, Image, Page, Style, Subject, Table, content_of
from omnizarr.pictures.figure import figure_of
from omnizarr.pictures.numbers import numbers_of
from omnizarr.pictures.svg import of_figure
from omnizarr.pictures.terminal import Terminal, render


def along(*lengths):
    return tuple(Axis("", "", np.arange(length)) for length in lengths)


def content(values, **more):
    values = np.asarray(values)
    return content_of(Subject(values, along(*values.shape[:2]), **more), Style("gray", percentiles=(0, 100)))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.zeros((3, 4)), Image),
        (np.zeros((3, 4, 3), "u1"), Image),
        (np.zeros(5), Chart),
        (np.zeros(()), Table),
        (np.array(["a", "b"]), Table),
        (np.array([["a", "b"]]), Table),
        (np.zeros(2, [("a", "i4"), ("b", "2f8")]), Table),
        (np.zeros((), [("a", "i4"), ("b", "U3")]), Table),
        (np.array([[1, 2], None], object), Table),
        (np.zeros((0, 4)), Table),
    ],
)
def test_what_values_become(values, kind):
    assert isinstance(content(values), kind)


def test_levels_go_from_the_smallest_value_to_the_largest():
    image = content([[-1, 0], [1, 3]])
    assert image.levels.tolist() == [[0, 0.25], [0.5, 1]]
    assert image.pixels[..., 0].tolist() == [[0, 64], [128, 255]]
    assert image.legend.texts == ("-1", "3")


def test_infinities_have_the_colours_of_the_ends():
    image = content([[0, 1, np.inf, -np.inf]])
    assert image.levels.tolist() == [[0, 1, 1, 0]]


def test_missing_values_are_transparent_and_nan_is_not():
    image = content([[0, np.nan, -999, 1]], missing=np.array([[False, False, True, False]]))
    assert image.pixels[..., 3].tolist() == [[255, 255, 0, 255]]
    assert list(image.legend.remarks) == ["NaN 25 %", "missing 25 %"]


@pytest.mark.parametrize("values", [[[7, 7]], [[0, 0]], [[np.nan, np.nan]], [[np.inf, np.inf]], [[-1.7e308, 1.7e308]]])
def test_values_without_a_range_have_a_picture(values):
    image = content(values)
    assert image.pixels.shape == (1, 2, 4)
    assert image.legend.low < image.legend.high


def test_a_photograph_keeps_its_bytes():
    photograph = np.arange(24, dtype="u1").reshape(2, 3, 4)
    assert (content(photograph).pixels == photograph).all()
    assert (content(photograph[..., :3]).pixels[..., :3] == photograph[..., :3]).all()
    assert (content(photograph[..., :3]).pixels[..., 3] == 255).all()


def test_a_photograph_of_16_bits_is_stretched():
    pixels = content(np.array([[[0, 1000, 4000]]], "u2")).pixels
    assert pixels[0, 0].tolist() == [0, 64, 255, 255]


def test_style_refuses_what_is_not_valid():
    for wrong in ({"limits": (1, 1)}, {"percentiles": (98, 2)}, {"percentiles": (0, 101)}, {"colormap": "x"}):
        with pytest.raises(ValueError, match=next(iter(wrong.values())) if "colormap" in wrong else next(iter(wrong))):
            Style(**wrong)


def test_a_line_shows_all_its_values():
    chart = content([3.0, np.nan, -1, 1])
    np.testing.assert_array_equal(chart.levels, [1, np.nan, 0, 0.5])


def test_a_table_has_coordinates_fields_and_values():
    records = np.array([(1, "x"), (2, "y\x1b")], [("a", "i4"), ("b", "U2")])
    table = content_of(Subject(records, (Axis("time", "s", np.array([10, 20])),)))
    assert table.names == ("time [s]", "a", "b")
    assert table.rows == (("10", "1", "x"), ("20", "2", "y\\x1b"))


def test_an_element_that_is_not_square_is_drawn_so():
    tall = content_of(Subject(np.zeros((10, 10)), along(10, 10), element=3))
    assert tall.proportion == 3


def test_a_long_image_stays_within_bounds():
    assert content(np.zeros((1, 1000))).proportion == 0.25
    assert content(np.zeros((1000, 1))).proportion == 4


def test_notes_tell_of_values_and_of_the_selection():
    page = Page("t", content([[np.nan, 1]]), ("at time=0",))
    assert page.notes == "NaN 50 % · at time=0"


LARGEST = np.finfo("f8").max


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [
        np.array([LARGEST, -LARGEST, 0, np.inf, np.nan]),
        np.array([LARGEST, LARGEST]),
        np.array([-LARGEST]),
        np.array([np.finfo("f4").max, -np.finfo("f4").max], "f4"),
        np.array([5e-324, 0]),
        np.array([5e-324, 5e-324]),
        *(
            np.array([1, 7, 2**60, "NaT"], f"m8[{unit}]").view(f"{kind}8[{unit}]")
            for kind in "mM"
            for unit in ("ps", "fs", "as", "ns", "10us")
        ),
        *(np.array(["1970", "2020", "NaT"], f"M8[{unit}]") for unit in ("Y", "M", "W", "25Y", "D")),
        np.array([1, 5], "i8").view("M8"),
        np.array([1, 5], "i8").view("m8"),
        np.array(5).view("M8"),
    ],
    ids=lambda values: values.dtype.str,
)
def test_extreme_values_and_all_times_have_pictures(values):
    for shown in (values, values[None]) if values.ndim else (values,):
        page = Page("x", content(shown))
        assert "nan" not in figure_of(page, 400, 300).title
        assert render(page, Terminal(columns=40)).startswith("x\n")
        assert "NaN,NaN" not in of_figure(figure_of(page, 400, 300))


def test_a_line_goes_over_the_edge_to_infinity():
    lines = render(Page("x", content(np.array([0.0, 1, np.inf, 1, 0, -np.inf]))), Terminal(columns=40)).splitlines()
    assert len(lines) > 5


def test_the_largest_range_is_drawn_from_end_to_end():
    chart = content(np.array([-LARGEST, 0, LARGEST]))
    assert chart.levels.tolist() == [0, 0.5, 1]
    image = content(np.array([[-LARGEST, 0, LARGEST]]))
    assert image.levels.tolist() == [[0, 0.5, 1]]


def test_scale_of_the_largest_range_has_marks():
    ticks = ticks_between(numbers_of(np.array([-LARGEST, LARGEST])), -LARGEST, LARGEST, 5)
    assert [tick.text for tick in ticks] == ["-1e+308", "0", "1e+308"]
    np.testing.assert_allclose([tick.place for tick in ticks], [0.5 - 0.5e308 / LARGEST, 0.5, 0.5 + 0.5e308 / LARGEST])
