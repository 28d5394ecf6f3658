import pytest

from omnizarr.errors import SelectionError
from omnizarr.indexing import pop_fields


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("x", ("x", ())),
        (["x"], (["x"], ())),
        (["x", "y"], (["x", "y"], ())),
        (("x", 0), ("x", 0)),
        ((slice(2), "x"), ("x", slice(2))),
        ((0, "x", 1), ("x", (0, 1))),
        (("x", "y", 0, 1), (["x", "y"], (0, 1))),
        ((["x", "y"], ...), (["x", "y"], ...)),
        (0, (None, 0)),
        ((0, 1), (None, (0, 1))),
        ((), (None, ())),
        ([0, 1], (None, [0, 1])),
        ([], (None, [])),
        (..., (None, ...)),
    ],
    ids=repr,
)
def test_fields_are_taken_out_of_the_selection(selection, expected):
    assert pop_fields(selection) == expected


@pytest.mark.parametrize("selection", [("x", "x"), (["x", "x"],), ("x", ["y", "x"])])
def test_field_named_twice_is_refused(selection):
    with pytest.raises(SelectionError, match="twice"):
        pop_fields(selection)
