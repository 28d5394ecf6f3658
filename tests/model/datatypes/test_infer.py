"""From NumPy dtypes and words to types."""

import numpy as np
import pytest

from omnizarr.errors import MetadataError, UnknownDataTypeError
from omnizarr.model import Named
from omnizarr.model.datatypes import DataType, bind, from_numpy, parse

CODES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
OTHERS = ["S3", "U3", "V3", "M8", "m8", "M8[ns]", "m8[25us]", "M8[Y]", "m8[as]"]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", [*CODES, *OTHERS])
def test_numpy_dtypes_come_back_as_they_were(code, order):
    dtype = np.dtype(code).newbyteorder(order)
    named, found = from_numpy(dtype)
    assert bind(named, found).dtype == dtype


def test_string_dtypes_are_strings():
    assert from_numpy(np.dtypes.StringDType()) == (Named("string"), "<")
    assert from_numpy(np.dtypes.StringDType(na_object=None))[0] == Named("string")


def test_mixed_byte_orders_are_reported_field_by_field():
    named, order = from_numpy(np.dtype([("a", "<i2"), ("b", ">i2"), ("c", "u1")]))
    assert order == "<"
    assert named.configuration["fields"] == [
        {"name": "a", "data_type": "int16"},
        {"name": "b", "data_type": "int16", "byte_order": ">"},
        {"name": "c", "data_type": "uint8"},
    ]


def test_big_endian_records_carry_no_byte_order_of_their_own():
    named, order = from_numpy(np.dtype([("a", ">i2"), ("n", [("b", ">f4")])]))
    assert order == ">"
    assert "byte_order" not in str(named.configuration)


def test_padding_of_aligned_records_is_dropped():
    aligned = np.dtype([("a", "u1"), ("b", "<i4")], align=True)
    assert bind(*from_numpy(aligned)).dtype == np.dtype([("a", "u1"), ("b", "<i4")])


@pytest.mark.parametrize("dtype", ["S0", "U0", "V0", "O", np.longdouble, np.clongdouble, [], "(2,)i4"])
def test_what_zarr_has_no_name_for_is_refused_with_advice(dtype):
    with pytest.raises(UnknownDataTypeError) as caught:
        from_numpy(np.dtype(dtype))
    assert caught.value.remedy


def test_objects_are_refused_with_what_to_use_instead():
    with pytest.raises(UnknownDataTypeError, match=r"string.*bytes.*object codec"):
        from_numpy(np.dtype(object))


@pytest.mark.parametrize(
    ("what", "named"),
    [
        (int, Named("int64")),
        (float, Named("float64")),
        (bool, Named("bool")),
        (complex, Named("complex128")),
        (str, Named("string")),
        (bytes, Named("bytes")),
        ("str", Named("string")),
        ("string", Named("string")),
        ("bytes", Named("bytes")),
        ("float", Named("float64")),
        ("float32", Named("float32")),
        ("<f4", Named("float32")),
        ("i1", Named("int8")),
        ("r16", Named("r16")),
        ("complex_float32", Named("complex_float32")),
        ("variable_length_utf8", Named("variable_length_utf8")),
        (np.uint16, Named("uint16")),
        (np.dtype("V2"), Named("raw_bytes", {"length_bytes": 2})),
        ("<U3", Named("fixed_length_utf32", {"length_bytes": 12})),
        ("S3", Named("null_terminated_bytes", {"length_bytes": 3})),
        ("datetime64[ns]", Named("numpy.datetime64", {"unit": "ns", "scale_factor": 1})),
        ("m8", Named("numpy.timedelta64", {"unit": "generic", "scale_factor": 1})),
        ({"name": "raw_bytes", "configuration": {"length_bytes": 2}}, Named("raw_bytes", {"length_bytes": 2})),
        ({"name": "int8"}, Named("int8")),
        (Named("int8"), Named("int8")),
        (np.dtypes.StringDType(), Named("string")),
        ([("a", "<i4")], Named("struct", {"fields": [{"name": "a", "data_type": "int32"}]})),
        ([["a", "<i4"]], Named("struct", {"fields": [{"name": "a", "data_type": "int32"}]})),
    ],
)
def test_users_may_say_it_in_many_ways(what, named):
    assert parse(what).named == named


def test_a_byte_order_that_was_asked_for_is_kept():
    assert parse(">i2").dtype == np.dtype(">i2")


def test_a_data_type_is_itself():
    data_type = parse("int8")
    assert isinstance(data_type, DataType)
    assert parse(data_type) is data_type


@pytest.mark.parametrize("what", ["foo", "", None, 5, object, "O", [], "S", "U", {"configuration": {}}, [("a", "foo")]])
def test_other_things_are_no_types(what):
    with pytest.raises(UnknownDataTypeError):
        parse(what)


@pytest.mark.parametrize("what", [{"name": 5}, {"name": "int8", "configuration": 5}, {"name": "int8", "size": 1}])
def test_malformed_documents_are_refused(what):
    with pytest.raises(MetadataError):
        parse(what)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3", "int4", "uint2", "complex_float16"])
def test_types_of_ml_dtypes_come_back_as_they_were(name):
    pytest.importorskip("ml_dtypes", minversion="0.6")
    dtype = parse(name).dtype
    assert from_numpy(dtype)[0] == Named(name)
    assert parse(dtype.type).dtype == dtype
