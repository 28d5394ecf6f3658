from __future__ import annotations

import pytest

from omnizarr.errors import ConsolidatedMetadataError
from omnizarr.formats import consolidated

GROUP = {"zarr_format": 3, "node_type": "group"}
ZGROUP = {"zarr_format": 2}


def inline(**metadata):
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def test_inline_nodes_come_by_path_unread():
    assert consolidated.load_inline(inline(a=GROUP, b={"odd": 1})) == {
        "a": {"zarr.json": GROUP},
        "b": {"zarr.json": {"odd": 1}},
    }


def test_consolidated_groups_within_are_taken_in_too():
    document = inline(
        a={**GROUP, "consolidated_metadata": inline(b={**GROUP, "consolidated_metadata": inline(c=GROUP)})}
    )
    assert list(consolidated.load_inline(document)) == ["a", "a/b", "a/b/c"]


def test_the_outer_copy_counts_where_a_node_is_there_twice():
    document = inline(a={**GROUP, "consolidated_metadata": inline(b={"inner": 1})}, **{"a/b": {"outer": 1}})
    assert consolidated.load_inline(document)["a/b"] == {"zarr.json": {"outer": 1}}


def test_empty_blocks_in_nested_groups_add_nothing():
    document = inline(a={**GROUP, "consolidated_metadata": inline()})
    assert list(consolidated.load_inline(document)) == ["a"]


def test_a_broken_copy_does_not_hide_its_siblings():
    problems = []
    nodes = consolidated.load_inline(inline(a=3, b=GROUP), problems.append)
    assert list(nodes) == ["b"]
    assert [(problem.pointer, problem.kind) for problem in problems] == [
        ("/consolidated_metadata/metadata/a", ConsolidatedMetadataError)
    ]


def test_dump_inline_inverts_load_inline():
    document = inline(a=GROUP, **{"a/b": GROUP})
    assert consolidated.dump_inline(consolidated.load_inline(document)) == document


def test_keys_of_zmetadata_are_paths_and_document_names():
    document = {
        "zarr_consolidated_format": 1,
        "metadata": {".zgroup": ZGROUP, "a/b/.zarray": {"x": 1}, "a/b/.zattrs": {}, "a/b/0.0": "no document"},
    }
    assert consolidated.load_zmetadata(document) == {
        "": {".zgroup": ZGROUP},
        "a/b": {".zarray": {"x": 1}, ".zattrs": {}},
    }


def test_dump_zmetadata_inverts_load_zmetadata():
    document = {"metadata": {".zgroup": ZGROUP, "a/.zgroup": ZGROUP, "a/.zattrs": {}}, "zarr_consolidated_format": 1}
    assert consolidated.dump_zmetadata(consolidated.load_zmetadata(document)) == document


@pytest.mark.parametrize("document", [None, 1, [], {"zarr_consolidated_format": 1}, {"metadata": {}}])
def test_zmetadata_of_another_form_is_refused(document):
    with pytest.raises(ValueError, match=r"not an object|unknown format"):
        consolidated.load_zmetadata(document)
