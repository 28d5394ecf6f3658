"""How windows are typed."""

import pytest

from omnizarr.tools.advise.windows import Window, parse

SHAPE = (100, 20, 30)
NAMES = ("lat", "time", "lon")


@pytest.mark.parametrize(
    ("given", "lengths"),
    [
        ("*,1,1", (100, 1, 1)),
        (":, 1, 10", (100, 1, 10)),
        ("10:30,1,*", (20, 1, 30)),
        ("200,1,1", (100, 1, 1)),
        ((None, 5, 1), (100, 5, 1)),
        ("time series", (1, 20, 1)),
        ("series", (1, 20, 1)),
        ("maps", (1, 20, 30)),
        ("points", (1, 1, 1)),
        ("all", SHAPE),
        ("time=*,lat=10", (10, 20, 1)),
    ],
)
def test_window(given, lengths):
    (window,) = parse(given, SHAPE, NAMES)
    assert window.lengths == lengths
    assert window.weight == 1


def test_weights():
    windows = parse(["3x maps", "*,1,1", "0.5 x points"], SHAPE)
    assert [(window.name, window.weight) for window in windows] == [("maps", 3), ("*,1,1", 1), ("points", 0.5)]
    assert parse({"maps": 2, (1, 1, 1): 1}, SHAPE)[1] == Window("1,1,1", (1, 1, 1), 1)


def test_time_is_the_first_dimension_where_none_is_called_so():
    assert parse("time series", SHAPE, ("a", None, "c"))[0].lengths == (100, 1, 1)


@pytest.mark.parametrize(
    ("shape", "names"), [((5,), ["all"]), ((5, 6), ["rows", "columns"]), (SHAPE, ["time series", "maps"])]
)
def test_without_windows_no_direction_is_favoured(shape, names):
    assert [window.name for window in parse(None, shape)] == names


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("*,1", "2 lengths"),
        ("0,*,*", "at least 1"),
        ("often", "expected lengths"),
        ("depth=1", "no dimension 'depth'"),
        ({"maps": 0}, "more often than never"),
        ([], "one or more windows"),
    ],
)
def test_window_that_is_not_valid(given, message):
    with pytest.raises(ValueError, match=message):
        parse(given, SHAPE, NAMES)


def test_names_that_are_not_there():
    with pytest.raises(ValueError, match="no names of dimensions"):
        parse("time=*", SHAPE)
    with pytest.raises(ValueError, match="has no maps"):
        parse("maps", (3,))
