"""Records."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError, UnknownDataTypeError
from omnizarr.model import Named
from omnizarr.model.datatypes import bind, from_numpy, parse

POINT = Named("struct", {"fields": [{"name": "x", "data_type": "float32"}, {"name": "y", "data_type": "float32"}]})

DTYPES = [
    np.dtype([("x", "<f4"), ("y", "<f4")]),
    np.dtype([("a", ">i4"), ("b", "S3"), ("n", [("x", "u1"), ("y", ">M8[s]")])]),
    np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "u1"), ("d", "V3")]),
    np.dtype([("a", "<i4", (2,)), ("b", ">c8", (2, 2)), ("n", [("x", "<f2", 3)], (2,))]),
    np.dtype([("t", "<m8[10us]"), ("z", "?")]),
]


def record(*fields):
    return Named("struct", {"fields": list(fields)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_records_come_back_as_they_were(dtype):
    assert bind(*from_numpy(dtype)).dtype == dtype


def test_fields_follow_the_byte_order_asked_for_unless_they_have_their_own():
    named = record(
        {"name": "a", "data_type": "int16"},
        {"name": "b", "data_type": "int16", "byte_order": "<"},
        {"name": "n", "data_type": {"name": "struct", "configuration": dict(POINT.configuration)}},
    )
    inner = [("x", ">f4"), ("y", ">f4")]
    assert bind(named, ">").dtype == np.dtype([("a", ">i2"), ("b", "<i2"), ("n", inner)])
    assert bind(named, "<").with_byte_order(">") == bind(named, ">")


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_every_bit_of_a_record_survives_a_document(dtype, data):
    data_type = bind(*from_numpy(dtype))
    bits = bytearray(data.draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize)))
    if "z" in (dtype.names or ()):
        bits[-1] &= 1  # a boolean is 0 or 1
    scalar = np.frombuffer(bytes(bits), dtype)[0]
    document = json.loads(json.dumps(data_type.fill_to_json(scalar), allow_nan=False))
    assert np.asarray(data_type.fill_from_json(document), dtype).tobytes() == bytes(bits)


def test_a_fill_value_is_an_object_with_every_field():
    data_type = bind(POINT)
    assert data_type.fill_from_json({"y": 4.56, "x": "NaN"})["y"] == np.float32(4.56)
    assert data_type.fill_to_json(np.array((1, 2), data_type.dtype)[()]) == {"x": 1.0, "y": 2.0}


def test_base64_holds_the_item_in_little_endian_whatever_the_order_in_memory():
    # zarr-extensions, structured: "little-endian if endian is absent"
    document = base64.b64encode(np.array([1.5, -2], "<f4").tobytes()).decode()
    for order in "<>":
        value = bind(POINT, order).fill_from_json(document)
        assert (float(value["x"]), float(value["y"])) == (1.5, -2)
    assert tuple(bind(POINT).fill_from_json("AAAAAAAAAAA=")) == (0, 0)  # the example of the text


@pytest.mark.parametrize("value", ["", 0, None])
def test_nothing_and_zero_are_the_zero_record(value):
    assert tuple(bind(POINT).fill_from_json(value)) == (0, 0)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"x": 1}, ""),
        ({"x": 1, "y": 2, "z": 3}, "/z"),
        ({"x": 1, "y": "two"}, "/y"),
        ({"x": 1, "y": None}, "/y"),
        ([1, 2], ""),
        ("AAAA", ""),
        ("?", ""),
        (1, ""),
        (True, ""),
    ],
)
def test_malformed_fill_values_are_refused(value, pointer):
    with pytest.raises(MetadataError) as caught:
        bind(POINT).fill_from_json(value)
    assert caught.value.pointer == f"/fill_value{pointer}"


def test_text_beyond_unicode_in_a_packed_fill_value_is_refused():
    data_type = parse([("a", "<U1")])
    with pytest.raises(MetadataError):
        data_type.fill_from_json(base64.b64encode(b"\xff\xff\xff\x7f").decode())


def test_sub_arrays_are_nested_lists():
    data_type = parse([("a", "<i2", (2, 2)), ("b", "u1")])
    assert data_type.fill_from_json({"a": [[1, 2], [3, 4]], "b": 5})["a"].tolist() == [[1, 2], [3, 4]]
    for wrong in ([1, 2, 3, 4], [[1, 2]], [[1, 2], [3]], 0, "x"):
        with pytest.raises(MetadataError):
            data_type.fill_from_json({"a": wrong, "b": 5})


def test_the_legacy_name_and_form_are_read():
    legacy = Named("structured", {"fields": [["x", "float32"], ["y", "float32"]]})
    assert bind(legacy).dtype == bind(POINT).dtype


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), (1, 2)),
        ([1, 2], (1, 2)),
        ({"y": 2, "x": 1}, (1, 2)),
        (np.array((1, 2), [("x", "<i4"), ("y", ">f8")])[()], (1, 2)),
        (np.array((1, 2), [("x", "<f4"), ("y", "<f4")]), (1, 2)),
        (np.array([1, 2], "<f4").tobytes(), (1, 2)),
        (0, (0, 0)),
    ],
)
def test_users_may_pass_records_in_many_forms(value, expected):
    assert tuple(bind(POINT).cast(value)) == expected


@pytest.mark.parametrize("value", [(1,), (1, 2, 3), {"x": 1}, {"x": 1, "z": 2}, b"abc", 7, "?", object(), (1, "x")])
def test_users_may_not_pass_other_things(value):
    with pytest.raises(MetadataError):
        bind(POINT).cast(value)


def test_sub_arrays_and_nested_records_may_be_arrays():
    data_type = parse([("a", "<i2", (2,)), ("n", [("x", "u1")])])
    value = data_type.cast((np.array([1, 2]), np.array((3,), [("x", "u1")])[()]))
    assert data_type.fill_to_json(value) == {"a": [1, 2], "n": {"x": 3}}


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        (None, ""),
        ([], ""),
        ("xy", ""),
        ({"x": "float32"}, ""),
        ([5], "/0"),
        ([["x"]], "/0"),
        ([{"name": "", "data_type": "int8"}], "/0/name"),
        ([{"name": 5, "data_type": "int8"}], "/0/name"),
        ([{"name": "a", "data_type": 5}], "/0/data_type"),
        ([{"name": "a"}], "/0/data_type"),
        ([{"name": "a", "data_type": "string"}], "/0/data_type"),
        ([{"name": "a", "data_type": "int8"}, {"name": "a", "data_type": "int8"}], "/1/name"),
        ([{"name": "a", "data_type": "int8", "offset": 5}], "/0/offset"),
        ([{"name": "a", "data_type": "int8", "byte_order": "|"}], "/0/byte_order"),
        ([{"name": "a", "data_type": "int8", "shape": 2}], "/0/shape"),
        ([{"name": "a", "data_type": "int8", "shape": [0]}], "/0/shape/0"),
        ([{"name": "a", "data_type": "int8", "shape": [2**20, 2**20]}], "/0/shape"),
        ([{"name": "a", "data_type": {"name": "raw_bytes"}}], "/0/data_type/configuration/length_bytes"),
    ],
)
def test_malformed_fields_are_refused(fields, pointer):
    with pytest.raises(MetadataError) as caught:
        bind(Named("struct", {"fields": fields}))
    assert caught.value.pointer == f"/data_type/configuration/fields{pointer}"


def test_an_unknown_type_of_a_field_is_named():
    with pytest.raises(UnknownDataTypeError) as caught:
        bind(record({"name": "a", "data_type": "int7"}))
    assert caught.value.found == "int7"
    assert caught.value.pointer == "/data_type/configuration/fields/0/data_type"


def test_a_record_too_large_for_numpy_is_refused():
    half = {"name": "raw_bytes", "configuration": {"length_bytes": 2**30}}
    with pytest.raises(MetadataError):
        bind(record({"name": "a", "data_type": half}, {"name": "b", "data_type": half}))


def test_sub_arrays_within_sub_arrays_are_counted_out():
    inner = {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8", "shape": [2**11]}]}}
    with pytest.raises(MetadataError):
        bind(record({"name": "n", "data_type": inner, "shape": [2**11]}))


def test_many_fields_and_levels_cost_little():
    bind(record(*({"name": f"f{i}", "data_type": "int8"} for i in range(20_000))))
    document = "int16"
    for i in range(30):
        field = {"name": "a", "data_type": document, "byte_order": "<>"[i % 2]}
        document = {"name": "struct", "configuration": {"fields": [field]}}
    for order in "<>":
        assert bind(Named("struct", document["configuration"]), order).dtype.itemsize == 2


def test_a_fill_value_is_no_view_of_the_array_it_was_taken_from():
    array = np.ones(1, bind(POINT).dtype)
    value = bind(POINT).cast(array[0])
    array[0] = (5, 5)
    assert tuple(value) == (1, 1)


def test_deep_nesting_is_refused():
    document = "int8"
    for _ in range(200):
        document = {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": document}]}}
    with pytest.raises(MetadataError):
        bind(Named("struct", document["configuration"]))
