"""Texts of which only the attributes are parsed mean what the whole documents mean."""

from __future__ import annotations

import json

import pytest

from omnizarr.formats import documents
from omnizarr.formats.v2 import V2
from omnizarr.formats.v3 import V3

NUMPY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0.1,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}
OF_V2 = {
    "zarr_format": 2,
    "shape": [4],
    "chunks": [2],
    "dtype": "<i2",
    "compressor": None,
    "fill_value": None,
    "order": "C",
    "filters": None,
}
ATTRIBUTES = [
    {},
    {"units": "m", "scale": [1, 0.1, 1e300], "none": None},
    {"attributes": {"attributes": {}}, "fill_value": 0.1, "data_type": "float32"},
    {"text": '"attributes": {"a": 1}', "quoted": '\\"attributes": {'},
    {"nan": float("nan"), "ü": "\U0001f600"},
]


def loaded(dialect, texts):
    return dialect.load({name: documents.parse_part(text) for name, text in texts.items()})


def agree(dialect, texts):
    found = dialect.load_plain(texts, documents.parse_part)
    expected = loaded(dialect, texts)
    assert found is not None
    assert repr(found) == repr(expected)  # NaN equals NaN
    assert json.dumps(dialect.dump(found)) == json.dumps(dialect.dump(expected))
    assert dict(found.spellings).keys() == dict(expected.spellings).keys()
    return found


@pytest.mark.parametrize("attributes", ATTRIBUTES)
@pytest.mark.parametrize("is_last", [False, True])
def test_array_of_v3_is_the_one_in_the_whole_document(attributes, is_last):
    document = {**NUMPY, "attributes": attributes} if is_last else {"attributes": attributes, **NUMPY}
    for separators in (None, (",", ":")):
        found = agree(V3, {"zarr.json": json.dumps(document, separators=separators).encode()})
        assert json.dumps(found.attributes) == json.dumps(attributes)


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_array_of_v2_is_the_one_in_the_whole_documents(attributes):
    array = json.dumps(OF_V2).encode()
    found = agree(V2, {".zarray": array, ".zattrs": json.dumps(attributes).encode()})
    assert json.dumps(found.attributes) == json.dumps(attributes)
    assert agree(V2, {".zarray": array}).attributes == {}


@pytest.mark.parametrize(
    "change",
    [
        {"attributes": []},
        {"attributes": {}, "node_type": "group"},
        {"attributes": {}, "shape": []},
        {"attributes": {}, "shape": [-1, 2]},
        {"attributes": {}, "unknown": 1},
        {},
    ],
)
def test_anything_else_is_for_the_parser(change):
    text = json.dumps({**NUMPY, **change}).encode()
    assert V3.load_plain({"zarr.json": text}, documents.parse_part) is None


def test_attributes_of_an_extension_are_not_those_of_the_array():
    inner = {"must_understand": False, "attributes": {"a": 1}}
    for document in ({**NUMPY, "other": inner}, {"other": inner, **NUMPY, "attributes": {"b": 2}}):
        assert V3.load_plain({"zarr.json": json.dumps(document).encode()}, documents.parse_part) is None


@pytest.mark.parametrize("name", [b'"attributes" :', b'"attributes"\n:'])
def test_attributes_of_an_extension_are_not_those_of_an_array_whose_name_is_before_a_space(name):
    document = {**NUMPY, "other": {"must_understand": False, "attributes": {"a": 1}}, "last": {}}
    text = json.dumps(document, separators=(",", ":")).encode().replace(b'"last":', name)
    assert V3.load_plain({"zarr.json": text}, documents.parse_part) is None
    found = loaded(V3, {"zarr.json": text})
    assert (found.attributes, found.unknown["other"]["attributes"]) == ({}, {"a": 1})


def test_long_texts_are_not_remembered():
    long = {**NUMPY, "attributes": {"a": 1}, "other": {"must_understand": False, "text": "x" * 5000}}
    assert V3.load_plain({"zarr.json": json.dumps(long).encode()}, documents.parse_part) is None
    of_v2 = json.dumps({**OF_V2, "other": "x" * 5000}).encode()
    assert V2.load_plain({".zarray": of_v2, ".zattrs": b'{"a": 1}'}, documents.parse_part) is None
    short = json.dumps({**NUMPY, "attributes": {"text": "x" * 5000}}).encode()
    assert agree(V3, {"zarr.json": short}).attributes == {"text": "x" * 5000}


def test_a_changed_array_is_written_with_its_change():
    text = json.dumps({**NUMPY, "attributes": {"units": "m"}}).encode()
    found = agree(V3, {"zarr.json": text})
    other = agree(V3, {"zarr.json": text.replace(b'"m"', b'"km"')})
    assert (found.attributes, other.attributes) == ({"units": "m"}, {"units": "km"})


@pytest.mark.parametrize("attributes", [b"[]", b"1", b' {"a": 1}'])
def test_attributes_of_v2_that_are_no_object_are_for_the_parser(attributes):
    texts = {".zarray": json.dumps(OF_V2).encode(), ".zattrs": attributes}
    assert V2.load_plain(texts, documents.parse_part) is None
