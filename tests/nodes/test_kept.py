"""Metadata that is kept in little memory is what was given, without spellings and copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from omnizarr.formats import V2, V3
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata
from omnizarr.nodes.kept import KeptNodes


def array(**members: object) -> ArrayMetadata:
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        **members,
    }
    metadata = V3.load({"zarr.json": document})
    assert isinstance(metadata, ArrayMetadata)
    return metadata


def old_array(**members: object) -> ArrayMetadata:
    document = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": ">i2", "order": "C", "compressor": None,
                "filters": None, "fill_value": None, **members}  # fmt: skip
    metadata = V2.load({".zarray": document, ".zattrs": {"units": "K"}})
    assert isinstance(metadata, ArrayMetadata)
    return metadata


NODES: Mapping[str, Metadata] = {
    "": GroupMetadata(dialect="v3", attributes={"title": "x", "nan": [float("inf"), None, True, 1.0]}),
    "a": array(),
    "b": array(shape=[40], attributes={"units": "m"}),
    "c": array(fill_value=7, dimension_names=["x"]),
    "d": array(data_type="float32", fill_value="NaN"),
    "e": old_array(),
    "f": old_array(dtype="<i2", fill_value=3),
    "g": GroupMetadata(dialect="v2", implicit=True),
    "h": GroupMetadata(dialect="v3", unknown={"extra": {"must_understand": False}}),
    "i": GroupMetadata(dialect="v3", unknown={"other": {"must_understand": False}}),
}


def kept(nodes: Mapping[str, Metadata]) -> KeptNodes:
    found = KeptNodes()
    for path, node in nodes.items():
        found.add(path, node)
    return found


@pytest.mark.parametrize("path", NODES)
def test_a_node_is_what_it_was(path: str) -> None:
    assert kept(NODES)[path] == NODES[path]


def test_nodes_have_the_order_in_which_they_were_added() -> None:
    found = kept(NODES)
    assert list(found) == list(NODES)
    assert list(reversed(found)) == list(reversed(NODES))
    assert len(found) == len(NODES)
    assert "a" in found
    assert "z" not in found


def test_arrays_are_told_from_groups() -> None:
    found = kept(NODES)
    assert [path for path in found if found.is_array(path)] == list("abcdef")


def test_copies_of_others_are_not_kept_but_that_there_are_some() -> None:
    found = kept({"": GroupMetadata(dialect="v3", consolidated={"a": {"zarr.json": {}}})})
    assert found[""] == GroupMetadata(dialect="v3", consolidated={})


def test_a_value_that_cannot_be_pickled_is_kept_as_it_is() -> None:
    made = replace(array(), attributes={"maker": lambda: None})
    assert kept({"a": made})["a"] == made
