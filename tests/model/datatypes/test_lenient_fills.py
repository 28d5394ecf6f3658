"""Fill values in another kind of JSON than the text has are read as zarr-python reads them."""

import json

import numpy as np
import pytest
import zarr

import omnizarr
from omnizarr.errors import MetadataError

V3 = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [3],
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "attributes": {"a": 1},
}
V2 = {
    "zarr_format": 2,
    "shape": [3],
    "chunks": [2],
    "compressor": None,
    "filters": None,
    "order": "C",
    "dimension_separator": ".",
}
READ_BY_BOTH = [
    ("bool", 0),
    ("bool", 1),
    ("bool", 0.0),
    ("bool", 1.0),
    ("int32", "-12"),
    ("uint64", "18446744073709551615"),
]
RECORD = {
    "name": "struct",
    "configuration": {"fields": [{"name": "a", "data_type": "bool"}, {"name": "b", "data_type": "int8"}]},
}


def written(directory, data_type, fill_value):
    document = {**V3, "data_type": data_type, "fill_value": fill_value}
    (directory / "zarr.json").write_text(json.dumps(document))
    return document


def notes(array):
    return [(note.pointer, note.message) for note in array.metadata.notes if note.pointer == "/fill_value"]


@pytest.mark.parametrize(("name", "fill_value"), READ_BY_BOTH)
def test_v3_is_read_as_by_zarr_python(name, fill_value, tmp_path):
    document = written(tmp_path, name, fill_value)
    array = omnizarr.open_array(tmp_path)
    theirs = zarr.open_array(tmp_path, mode="r")
    assert (array.dtype, array.fill_value) == (theirs.dtype, theirs.fill_value)
    np.testing.assert_array_equal(array[:], theirs[:])
    assert len(notes(array)) == 1
    array.attrs["a"] = 2
    assert json.loads((tmp_path / "zarr.json").read_text()) == {**document, "attributes": {"a": 2}}


@pytest.mark.parametrize(("name", "fill_value"), READ_BY_BOTH)
def test_check_reports_it_and_repair_mends_it(name, fill_value, tmp_path):
    written(tmp_path, name, fill_value)
    before = zarr.open_array(tmp_path, mode="r")[:]
    assert [found.pointer for found in omnizarr.check(tmp_path).findings if found.code == "fill-value-kind"] == [
        "/fill_value"
    ]
    omnizarr.repair(tmp_path, dry_run=False, backup=False)
    assert not [found for found in omnizarr.check(tmp_path).findings if found.code == "fill-value-kind"]
    np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[:], before)


@pytest.mark.parametrize(("name", "fill_value"), [("|b1", 0), ("|b1", 1.0)])
def test_v2_is_read_as_by_zarr_python(name, fill_value, tmp_path):
    (tmp_path / ".zarray").write_text(json.dumps({**V2, "dtype": name, "fill_value": fill_value}))
    array, theirs = omnizarr.open_array(tmp_path), zarr.open_array(tmp_path, mode="r")
    assert array.fill_value == theirs.fill_value
    np.testing.assert_array_equal(array[:], theirs[:])


def test_fields_of_records_are_read_so_too(tmp_path):
    written(tmp_path, RECORD, {"a": 1, "b": "5"})
    array = omnizarr.open_array(tmp_path)
    assert array[:].tolist() == [(True, 5)] * 3
    assert notes(array) == [("/fill_value", '{"a": 1, "b": "5"}, read as {"a": true, "b": 5}')]


@pytest.mark.parametrize(
    ("name", "fill_value"),
    [
        *[("bool", value) for value in (2, -1, 0.5, "true", "0", [], [1], {})],
        *[("int8", value) for value in ("1.0", "0x1", "300", 1.5, [1], True)],
        *[("float32", value) for value in ("inf", "1", [1.0], True)],
        *[("complex64", value) for value in (1, [1], "1")],
        (RECORD, {"a": 2, "b": 1}),
        (RECORD, {"a": 1}),
    ],
)
def test_what_is_not_valid_is_refused(name, fill_value, tmp_path):
    written(tmp_path, name, fill_value)
    with pytest.raises(MetadataError, match="fill value"):
        omnizarr.open_array(tmp_path)


@pytest.mark.parametrize(
    ("name", "fill_value"), [("bool", True), ("int8", 1), ("float32", 1.5), ("float32", "NaN"), ("complex64", [1, 2])]
)
def test_what_the_text_says_leaves_no_note(name, fill_value, tmp_path):
    written(tmp_path, name, fill_value)
    assert notes(omnizarr.open_array(tmp_path)) == []
