from __future__ import annotations

from dataclasses import replace

import pytest

from omnizarr.formats import V3, scanning, spelling
from omnizarr.formats.documents import parse, render
from omnizarr.formats.spelling import LateSpellings, in_order_of, is_written_alike, same, without_copies
from omnizarr.model import UNDEFINED, GroupMetadata, Named, Spelling
from omnizarr.support.memo import ById

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


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"a": 1, "b": {"c": [1, NAN]}}, {"a": 1, "b": {"c": [1, NAN]}}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"c": 2, "b": 1}]}, False),
        ({"a": 1}, {"a": 1.0}, False),
    ],
)
def test_nodes_are_written_alike_if_all_members_have_the_same_order(left, right, expected):
    one, other = (GroupMetadata(dialect="v3", attributes=attributes) for attributes in (left, right))
    assert is_written_alike(one, other) is expected
    named = (Named("a", left), Named("a", right))
    one, other = (array(codecs=(codec,)) for codec in named)
    assert is_written_alike(one, other) is expected
    assert not is_written_alike(one, GroupMetadata(dialect="v3"))


def array(**members):
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "int8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}],
    }
    return replace(V3.load({"zarr.json": document}), **members)


@pytest.mark.parametrize("length", [10, 10**5])
def test_only_memos_of_long_documents_are_kept_with_them(monkeypatch, length):
    monkeypatch.setattr(spelling, "_recent", ById(2))
    made = []

    def make(number):
        made.append(number)
        return {"a": Spelling(number, {})}

    memos = [LateSpellings(make, number, length) for number in range(3)]
    for _ in range(2):
        for number, each in enumerate(memos):
            assert [each["a"].meaning, each["a"].meaning] == [number, number]
    assert made == ([0, 1, 2, 0, 1, 2] if length == 10 else [0, 1, 2])


def test_a_group_without_its_copies_is_written_as_before_without_parsing_them(monkeypatch):
    text = (
        b'{"node_type": "group", "attributes": {"b": 1e2, "a": 1}, "zarr_format": 3, "consolidated_metadata": {"kind":'
        b' "inline", "must_understand": false, "metadata": {"g": {"zarr_format": 3, "node_type": "group"}}}}'
    )
    if not scanning.is_possible():
        pytest.skip("the reference engine parses all copies")
    whole = V3.load({"zarr.json": parse(text)})
    late = V3.load_unread({"zarr.json": text})
    expected = V3.dump(replace(whole, consolidated=None))
    assert late.consolidated.keys() == whole.consolidated.keys() == {"g"}
    assert late.spellings._made is None
    found = V3.dump(without_copies(late))
    assert late.spellings._made is None
    assert V3.dump(without_copies(whole)) == expected
    assert list(found["zarr.json"].items()) == list(expected["zarr.json"].items())
    assert render(found["zarr.json"]) == render(expected["zarr.json"])
