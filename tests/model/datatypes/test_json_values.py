"""The proposed type ``json``: Python values in memory, JSON texts in chunks of ``vlen-utf8``.

Stored bytes are put together here by the text of the codec: the number of elements, then the length and bytes of each.
"""

import copy
import json

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.model import Named
from omnizarr.model.datatypes import bind, json_values

DOCUMENT = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [3],
    "data_type": "json",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": {"some": "value"},  # the example of the text
    "codecs": [{"name": "vlen-utf8"}],
}


def stored(*items):
    parts = [len(items).to_bytes(4, "little")]
    for item in items:
        parts += [len(item).to_bytes(4, "little"), item]
    return b"".join(parts)


def of(*items, **members):
    values = {"zarr.json": json.dumps(DOCUMENT | members).encode()}
    return values if not items else values | {"c/0": stored(*items)}


def test_elements_are_texts_of_vlen_utf8():
    texts = [b'{ "a": [1, 2.5, null] }', '"\\u00fc ü"'.encode(), b"true"]
    array = omnizarr.open_array(of(*texts))
    assert array.dtype == object
    assert array[...].tolist() == [json.loads(text) for text in texts]
    assert omnizarr.open_array(of())[...].tolist() == [{"some": "value"}] * 3
    values = of()
    omnizarr.open_array(values, mode="r+")[...] = [{"a": (1, np.float32(0.5))}, "ü", [1, [2, None]]]
    assert values["c/0"] == stored(b'{"a":[1,0.5]}', '"ü"'.encode(), b"[1,[2,null]]")


@pytest.mark.parametrize("value", [None, True, 1, 1.5, -0.0, 2**70, "", "ü", [], [1, [2]], {}, {"a": {"b": [None]}}])
def test_every_value_is_an_element_and_a_fill_value(value):
    values = {}
    array = omnizarr.create_array(values, shape=(2, 2), dtype="json", chunks=(1, 2), fill_value=value)
    assert json.loads(bytes(values["zarr.json"]))["fill_value"] == value
    again = omnizarr.open_array(values)
    for found in (again.fill_value, again[1, 1], *again[...].flat):
        assert json_values.dumps(found) == json_values.dumps(value)
    array[0, 0] = "other"
    array[0, 0] = value
    assert [json_values.dumps(each) for each in again[...].flat] == [json_values.dumps(value)] * 4


def test_what_python_takes_for_equal_is_stored():
    array = omnizarr.create_array({}, shape=(1,), dtype="json", fill_value={"a": [1, 0.0]})
    for other in ({"a": [True, 0.0]}, {"a": [1, -0.0]}, {"a": [1.0, 0.0]}):
        array[0] = other
        assert json_values.dumps(array[0]) == json_values.dumps(other)


def test_elements_that_are_filled_are_values_of_their_own():
    array = omnizarr.create_array({}, shape=(3,), dtype="json", fill_value=[1])
    found = array[...]
    found[0].append(2)
    assert found.tolist() == [[1, 2], [1], [1]]
    assert array[...].tolist() == [[1], [1], [1]]


@pytest.mark.parametrize(
    "text",
    [b"", b"[1,", b"NaN", b"-Infinity", b"1e999", b'{"a":1,"a":2}', b"\xff", b"[" * 129 + b"]" * 129, b"[" * 10**5],
)
def test_other_texts_are_errors_that_name_the_element(text):
    array = omnizarr.open_array(of(b"1", text, b"2"))
    with pytest.raises(errors.ChunkError, match=r"not JSON.*element 1 of the chunk") as error:
        array[...]
    assert "c/0" in str(error.value)


def test_deep_values_are_read_to_a_limit():
    text = b"[" * 128 + b"]" * 128
    assert omnizarr.open_array(of(text, text, text))[0] == json.loads(text)


def _deep():
    value = []
    for _ in range(200):
        value = [value]
    return value


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, {"a": b"x"}, {1, 2}, "\ud800", _deep(), {"a": np.inf}])
def test_what_json_does_not_have_is_refused_before_anything_is_written(value):
    values = of()
    before = copy.deepcopy(values)
    with pytest.raises(errors.ValueTypeError):
        omnizarr.open_array(values, mode="r+")[...] = [1, 2, value]
    assert values == before
    with pytest.raises(errors.MetadataError):
        omnizarr.create_array({}, shape=(1,), dtype="json", fill_value=value)


@pytest.mark.parametrize("codec", ["vlen-bytes", "numcodecs.json2", "numcodecs.pickle", "zarrs.vlen_v2", "bytes"])
def test_other_codecs_are_refused(codec):
    with pytest.raises(errors.OmnizarrError):
        omnizarr.open_array(of(b"1", b"2", b"3", codecs=[{"name": codec}]))[...]
    shard = {"chunk_shape": [3], "codecs": [{"name": codec}], "index_codecs": [{"name": "bytes"}]}
    with pytest.raises(errors.OmnizarrError):
        omnizarr.open_array(of(b"1", codecs=[{"name": "sharding_indexed", "configuration": shard}]))[...]


def test_it_has_no_parameters_and_no_place_within_other_types():
    assert bind(Named("json")).dtype == object
    with pytest.raises(errors.MetadataError):
        bind(Named("json", {"a": 1}))
    with pytest.raises(errors.UnknownDataTypeError):
        bind(Named("optional", {"name": "json", "configuration": {}}))


def test_conversion_keeps_it_in_v3_and_refuses_others(tmp_path):
    array = omnizarr.create_array(
        tmp_path / "a", shape=(4, 4), dtype="json", chunks=(2, 2), shards=(4, 4), fill_value=[1, [2]]
    )
    array[0, 0] = {"a": 1}
    omnizarr.convert(tmp_path / "a", tmp_path / "b", strict=True)
    omnizarr.convert(tmp_path / "a", tmp_path / "c", chunks=(4, 1), shards=None, strict=True)
    for name in "bc":
        assert omnizarr.open_array(tmp_path / name)[...].tolist() == array[...].tolist()
        assert not omnizarr.diff(tmp_path / "a", tmp_path / name)
    assert omnizarr.open_array(tmp_path / "b").documents()["zarr.json"]["data_type"] == "json"
    with pytest.raises(errors.NotRepresentableError, match="data type json"):
        omnizarr.convert(tmp_path / "a", tmp_path / "v2", zarr_format=2, strict=True)
    with pytest.raises(errors.OmnizarrError):
        omnizarr.create_array({}, shape=(1,), dtype="json", zarr_format=2)
    assert "unregistered-extension" in str(omnizarr.check(tmp_path / "a", data=True))
