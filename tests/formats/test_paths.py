from __future__ import annotations

import pytest

from omnizarr.errors import NodeNameError
from omnizarr.formats import DIALECTS, V2, V3


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "...", "zarr.json", "a\0b", "\ud800"], ids=ascii)
def test_v3_refuses_names(name):
    with pytest.raises(NodeNameError) as raised:
        V3.check_name(name)
    assert raised.value.spec == 'Zarr v3, "Node names"'
    assert raised.value.found is not None


@pytest.mark.parametrize(
    "name", ["a", "日本語", "-", "0", "a.b", "...a", "_a", "a__", ".a", "..a", "zarr.json5", "A b", "ü", "c", "\\"]
)
def test_v3_allows_names(name):
    V3.check_name(name)


@pytest.mark.parametrize("name", ["", "a/b", "a\\b", ".", "..", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "\0"])
def test_v2_refuses_names(name):
    with pytest.raises(NodeNameError):
        V2.check_name(name)


@pytest.mark.parametrize("name", ["a", "...", "__a", "zarr.json", ".a", "ü"])
def test_v2_allows_names(name):
    V2.check_name(name)


@pytest.mark.parametrize("name", ["__", "__a", "__xarray_dataarray_variable__", "__zarr"])
def test_names_that_v3_reserves_are_allowed_and_noted(name):
    V3.check_name(name)
    assert "reserves" in V3.why_reserved(name)
    for dialect in DIALECTS:
        if dialect is not V3:
            assert dialect.why_reserved(name) == ""
    assert V3.why_reserved(name[1:-1]) == ""


def test_documents_of_a_node_are_under_its_path():
    assert V3.keyspace.documents("a/b") == {"zarr.json": "a/b/zarr.json"}
    assert V3.keyspace.documents("") == {"zarr.json": "zarr.json"}
    assert V2.keyspace.documents("a")[".zarray"] == "a/.zarray"
    assert V2.keyspace.documents("")[".zattrs"] == ".zattrs"


def test_chunks_of_an_array_are_under_its_path():
    assert [dialect.keyspace.chunk_prefix(path) for dialect in (V2, V3) for path in ("", "a/b")] == [
        "",
        "a/b/",
        "",
        "a/b/",
    ]
