"""The proposed type ``fixed_size_list``, by its own name and as the home of arrays within records."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.model import Named
from omnizarr.model.datatypes import bind


def lists(base, size):
    return {"name": "fixed_size_list", "configuration": {"base_data_type": base, "list_size": size}}


BIG = {"name": "bytes", "configuration": {"endian": "big"}}
POINT = {
    "name": "struct",
    "configuration": {"fields": [{"name": "x", "data_type": "float32"}, {"name": "y", "data_type": "float32"}]},
}
MOMENT = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}


@pytest.mark.parametrize(
    ("data_type", "dtype", "fill"),
    [
        (lists("float32", 3), ("<f4", (3,)), [1.0, "NaN", -3.0]),
        (lists(MOMENT, 4), ("<M8[s]", (4,)), [0, 1, 2, -5]),
        (lists(POINT, 2), ([("x", "<f4"), ("y", "<f4")], (2,)), [{"x": 1.0, "y": 2.0}, {"x": 0.5, "y": -2.0}]),
        (lists(lists("int8", 2), 3), ("i1", (3, 2)), [[1, 2], [3, 4], [5, 6]]),
    ],
)
def test_lists_are_arrays_within_a_record(data_type, dtype, fill):
    found = bind(Named(data_type["name"], data_type["configuration"]))
    assert found.dtype == np.dtype([("items", *dtype)])
    assert json.loads(json.dumps(found.fill_to_json(found.fill_from_json(fill)))) == fill


def test_bytes_are_the_scalars_one_after_the_other():
    values = {}
    array = omnizarr.create_array(values, shape=(2,), dtype=lists("int16", 3), compressors=None, fill_value=[7, 8, 9])
    array["items"] = [[1, 2, 3], [4, 5, -6]]
    assert values["c/0"] == np.array([1, 2, 3, 4, 5, -6], "<i2").tobytes()
    again = omnizarr.open_array(values)
    assert again["items"].tolist() == [[1, 2, 3], [4, 5, -6]]
    assert again.metadata.fill_value == [7, 8, 9]
    big = omnizarr.create_array({}, shape=(2,), dtype=lists("int16", 3), serializer=BIG)
    assert big.metadata.codecs[0].configuration == {"endian": "big"}
    assert big.fill_value["items"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"base_data_type": "int8"},
        {"base_data_type": "int8", "list_size": 0},
        {"base_data_type": "int8", "list_size": True},
        {"base_data_type": "int8", "list_size": 2**31},
        {"base_data_type": lists("int8", 2**20), "list_size": 2**20},
        {"base_data_type": "string", "list_size": 2},
        {"base_data_type": "no such type", "list_size": 2},
        {"base_data_type": "int8", "list_size": 2, "more": 1},
    ],
)
def test_other_lists_are_refused(configuration):
    with pytest.raises(errors.OmnizarrError) as error:
        bind(Named("fixed_size_list", configuration))
    assert error.value.pointer.startswith("/data_type/configuration")


@pytest.mark.parametrize("fill", [[1, 2], [1, 2, 3, 4], 7, {"items": [1, 2, 3]}, [1, 2, "x"]])
def test_other_fill_values_are_refused(fill):
    with pytest.raises(errors.MetadataError):
        bind(Named("fixed_size_list", lists("int8", 3)["configuration"])).fill_from_json(fill)


def test_arrays_within_records_of_v2_are_carried_to_v3_and_back(tmp_path):
    record = np.dtype([("a", ">i2", (2, 3)), ("b", "f8"), ("n", [("q", "u1", (2,))])])
    values = np.zeros(3, record)
    values["a"], values["b"], values["n"]["q"] = np.arange(18).reshape(3, 2, 3), [1, 2, 3], 7
    omnizarr.create_array(tmp_path / "v2", data=values, zarr_format=2, fill_value=values[1])
    report = omnizarr.convert(tmp_path / "v2", tmp_path / "v3", strict=True)
    assert "fixed_size_list" in str(report)
    found = omnizarr.open_array(tmp_path / "v3")
    fields = found.documents()["zarr.json"]["data_type"]["configuration"]["fields"]
    assert fields[0] == {"name": "a", "data_type": lists(lists("int16", 3), 2)}
    np.testing.assert_array_equal(found[...], values)
    assert found.fill_value["a"].tolist() == values["a"][1].tolist()
    omnizarr.convert(tmp_path / "v3", tmp_path / "back", zarr_format=2, strict=True)
    back = omnizarr.open_array(tmp_path / "back")
    assert back.documents()[".zarray"]["dtype"][0] == ["a", "<i2", [2, 3]]
    np.testing.assert_array_equal(back[...], values)
