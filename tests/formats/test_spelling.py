from __future__ import annotations

import pytest

from omnizarr.formats.spelling import in_order_of, same
from omnizarr.model import UNDEFINED, Named

NAN = float("nan")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        ({"a": [1]}, {"a": [True]}),
        (Named("a", {"x": 1}), Named("a", {"x": 1.0})),
        (Named("a"), Named("a", {}, must_understand=False)),
        (None, UNDEFINED),
    ],
)
def test_values_that_json_tells_apart_differ(left, right):
    assert not same(left, right)
    assert not same(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (NAN, float("nan")),
        ([1, 2], (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ((Named("a", {"x": [NAN]}),), [Named("a", {"x": [float("nan")]})]),
        (UNDEFINED, UNDEFINED),
    ],
)
def test_values_that_json_does_not_tell_apart_are_the_same(left, right):
    assert same(left, right)


def test_members_keep_their_order_and_new_ones_come_last():
    assert list(in_order_of({"a": 1, "b": 2, "c": 3}, {"c": 0, "x": 0, "a": 0})) == ["c", "a", "b"]
