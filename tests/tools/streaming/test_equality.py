"""`omnizarr.tools.streaming.equality`: what counts as equal."""

import numpy as np
import pytest

from omnizarr.tools.streaming.equality import first_difference

NAN, OTHER_NAN = np.array([0x7FC00000, 0x7FC00ABC], "u4").view("f4")
RECORDS = np.zeros(3, np.dtype({"names": ["a", "b"], "formats": ["i1", "f4"], "offsets": [0, 4], "itemsize": 8}))


@pytest.mark.parametrize(
    "values",
    [
        np.array([NAN, -0.0], "f4"),
        np.array([b"a\0", b""], "S2"),
        np.array(["a", ""], "T"),
        np.array([1, None, [1, {"a": float("nan")}], (2,)], object),
        np.array([np.arange(3), np.arange(2)], object),
        np.array("NaT", "M8[s]"),
        np.zeros((0, 3)),
        np.zeros(3, "V0"),
        np.zeros((2, 3), "V5"),
        RECORDS,
    ],
    ids=lambda values: f"{values.dtype.kind}{values.shape}",
)
def test_copy_of_an_array_does_not_differ(values):
    assert first_difference(values, values.copy()) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.array([NAN], "f4"), np.array([OTHER_NAN], "f4")),
        (np.array([0.0]), np.array([-0.0])),
        (np.array([b"a"], "S5"), np.array([b"b"], "S5")),
        (np.array(["a"], "T"), np.array(["b"], "T")),
        (np.array([1], object), np.array([1.0], object)),
        (np.array([[1, 2], None], object), np.array([[1, 3], None], object)),
        (np.array([None], object), np.array([0], object)),
    ],
    ids=["payload", "zero", "bytes", "text", "types", "lists", "none"],
)
def test_first_element_that_differs_is_named(left, right):
    assert first_difference(left, right) == (0,)


def test_place_is_that_of_the_first_in_c_order():
    left = np.zeros((3, 4, 2), "f4")
    right = left.copy()
    right[1, 2, 1] = right[2, 0, 0] = 1
    assert first_difference(left, right) == (1, 2, 1)


def test_bytes_between_fields_do_not_count():
    other = RECORDS.copy()
    other.view(np.uint8).reshape(3, 8)[:, 2] = 77
    assert first_difference(RECORDS, other) is None
    other["b"][2] = 1
    assert first_difference(RECORDS, other) == (2,)


def test_fields_that_are_arrays():
    left = np.zeros(4, [("a", "i2", (2, 2))])
    right = left.copy()
    right["a"][3, 1, 0] = 5
    assert first_difference(left, right) == (3,)
