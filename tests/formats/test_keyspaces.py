"""Keys of the variants of the draft: those of their texts, and of zarrita in 2020."""

from __future__ import annotations

import dataclasses

import pytest

from omnizarr.formats.history.draft2020 import dump, load
from omnizarr.formats.keyspaces import Early, Late
from omnizarr.model import GroupMetadata, Named

EARLY = Early(data="data", suffix="", glued=False, consolidated=None)
LATE = Late(meta="meta", data="data", consolidated=None)


def document(**grid):
    return {
        "shape": [4],
        "data_type": "<i4",
        "chunk_grid": {"type": "regular", "chunk_shape": [2], **grid},
        "chunk_memory_layout": "C",
        "fill_value": 0,
        "extensions": [],
        "attributes": {},
    }


def test_the_keys_of_july_2020_are_those_that_zarrita_wrote():
    assert EARLY.documents("marvin/android")["array"] == "meta/root/marvin/android.array"
    assert EARLY.documents("")["array"] == "meta/root.array"
    assert EARLY.chunk_prefix("marvin/android") == "data/marvin/android/"
    assert EARLY.chunk_prefix("") == "data/"


@pytest.mark.parametrize(
    ("grid", "separator"), [({}, "."), ({"separator": "."}, "."), ({"separator": "/"}, "/")], ids=str
)
def test_coordinates_are_separated_by_periods_unless_the_document_says_otherwise(grid, separator):
    metadata = load({"array": document(**grid)})
    settled = EARLY.settle(metadata)
    assert settled.chunk_key_encoding == Named("v2", {"separator": separator})
    assert EARLY.unsettle(settled) == metadata
    changed = dump(EARLY.unsettle(dataclasses.replace(settled, shape=(8,))))
    assert changed == {"array": {**document(**grid), "shape": [8]}}


def test_a_new_array_says_what_separates_its_coordinates():
    metadata = dataclasses.replace(load({"array": document(separator=".")}), spellings={})
    assert dump(EARLY.unsettle(EARLY.settle(metadata)))["array"]["chunk_grid"]["separator"] == "."


def test_groups_are_settled_unchanged():
    group = GroupMetadata(dialect="v3-draft2020")
    assert EARLY.unsettle(EARLY.settle(group)) == group


def test_the_keys_of_november_2022_are_those_of_its_tables():
    assert LATE.documents("") == {"array": "meta/array.json", "group": "meta/group.json"}
    assert LATE.documents("foo/bar")["group"] == "meta/foo/bar.group.json"
    assert LATE.chunk_prefix("foo/baz") + "c1/0" == "data/foo/baz/c1/0"
    assert LATE.child("array.json") is None
    assert LATE.child("foo.array.json") == "foo"
    assert dataclasses.replace(LATE, root="top").documents("top")["group"] == "top/meta/group.json"
