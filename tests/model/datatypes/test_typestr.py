"""Data types and fill values in the terms of Zarr v2."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError, NotRepresentableError, UnknownDataTypeError
from omnizarr.model import UNDEFINED, Named
from omnizarr.model.datatypes import bind, from_numpy, parse, typestr

TYPESTRS = [
    *("|b1", "|i1", "|u1", "|S4", "|V3", "<U3", ">U3", "<M8", ">m8", "<M8[ns]", ">M8[10us]", "<m8[25s]", "<M8[M]"),
    *(
        f"{order}{code}"
        for order in "<>"
        for code in ["i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
    ),
]
DESCRS = [
    [("a", "<i4"), ("b", ">f8", (2,)), ("c", "|S3")],
    [("n", [("x", "|u1"), ("y", "<i2", (2, 2))]), ("z", "<U2")],
    [("a", ">i4"), ("b", "|S3"), ("n", [("x", "|u1"), ("y", ">M8[s]")], (3,))],
    [("a", "<i4"), ("n", [("x", ">u2"), ("y", ">f4")]), ("m", [("x", ">u2"), ("y", "<f4")])],
]


def as_json(descr):
    return json.loads(json.dumps(descr))


@pytest.mark.parametrize("text", TYPESTRS)
def test_a_typestr_means_what_numpy_says(text):
    named, order = typestr.load(text)
    assert bind(named, order).dtype == np.dtype(text)
    assert typestr.dump(named, order) == text == np.dtype(text).str


@pytest.mark.parametrize("descr", DESCRS)
def test_a_descr_means_what_numpy_says(descr):
    named, order = typestr.load(as_json(descr))
    dtype = np.dtype(descr)
    assert bind(named, order).dtype == dtype
    assert typestr.dump(named, order) == as_json(descr) == as_json(dtype.descr)
    assert typestr.dump(*from_numpy(dtype)) == as_json(descr)


def test_fields_without_a_name_are_called_after_their_place():
    descr = np.dtype([("a", "u1"), ("b", "<i4")], align=True).descr
    assert descr[1] == ("", "|V3")
    named, order = typestr.load(as_json(descr))
    assert bind(named, order).dtype == np.dtype(descr)
    assert bind(named, order).dtype.names == ("a", "f1", "b")


def test_titles_are_ignored():
    descr = as_json(np.dtype([(("title", "a"), "<i4")]).descr)
    assert typestr.load(descr)[0].configuration["fields"] == [{"name": "a", "data_type": "int32"}]


@pytest.mark.parametrize(
    ("text", "name"),
    [("<u1", "uint8"), (">u1", "uint8"), ("u1", "uint8"), ("i1", "int8"), ("<i1", "int8"), ("<b1", "bool")],
)
def test_byte_orders_of_one_byte_types_do_not_matter(text, name):
    assert typestr.load(text) == (Named(name), "<")


def test_netcdf_writes_a_byte_order_before_S():
    assert typestr.load(">S1") == (Named("null_terminated_bytes", {"length_bytes": 1}), "<")


def test_mu_is_micro():
    named, order = typestr.load("<M8[μs]")
    assert bind(named, order).dtype == np.dtype("<M8[us]")


@pytest.mark.parametrize("text", ["|O", "|O8", "O"])
def test_objects_are_reported_by_their_filters(text):
    assert typestr.load(text) == (Named("omnizarr.object"), "<")


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4", "uint2"])
def test_tensorstore_writes_bare_names(name):
    assert typestr.load(name) == (Named(name), "<")
    assert typestr.dump(Named(name)) == name


def test_a_fill_value_of_a_bare_name_is_a_number():
    pytest.importorskip("ml_dtypes")
    assert typestr.fill_from_v2(1.5, parse("bfloat16")) == 1.5


@pytest.mark.parametrize("name", ["string", "bytes", "omnizarr.object", "variable_length_bytes"])
def test_what_has_no_fixed_size_is_an_object(name):
    assert typestr.dump(Named(name)) == "|O"


@pytest.mark.parametrize(
    ("named", "text"),
    [
        (Named("r24"), "|V3"),
        (Named("complex_float32"), "<c8"),
        (Named("structured", {"fields": [["x", "int16"]]}), [["x", "<i2"]]),
        (Named("numpy.datetime64", {"unit": "μs", "scale_factor": 1}), "<M8[us]"),
    ],
)
def test_other_names_have_a_typestr_too(named, text):
    assert typestr.dump(named) == text


@pytest.mark.parametrize(
    "named",
    [
        Named("complex_float16"),
        Named("someone.else"),
        Named("raw_bytes"),
        Named("struct", {"fields": [{"name": "a", "data_type": "bfloat16"}]}),
        Named("struct", {"fields": [{"name": "a", "data_type": "string"}]}),
    ],
)
def test_what_v2_cannot_express_is_refused(named):
    with pytest.raises(NotRepresentableError):
        typestr.dump(named)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        *((text, "") for text in ("", "i4", "|i4", "=i4", "<", "f", "U3", "|U3", "<U0", "|S", "|V", "|S-1", "|S0")),
        *((text, "") for text in ("|S99999999999", "<U1073741824", "<f4 ", "<f4[s]", "<M8[]", "<M8[min]", "<M8[0s]")),
        *((text, "") for text in ("<M8[99999999999s]", "<M8[s", "M8[s]", "<f4,<f4", "float32\n", "<i٤")),
        *((value, "") for value in (None, 5, True, {}, [])),
        ([5], "/0"),
        (["<f4"], "/0"),
        ([["a"]], "/0"),
        ([["a", "<f4", [2], 5]], "/0"),
        ([[5, "<f4"]], "/0/0"),
        ([["a", "i4"]], "/0/1"),
        ([["a", "<f4", "x"]], "/0/2"),
        ([["a", "<f4", [0]]], "/0/2"),
        ([["a", "<f4", [True]]], "/0/2"),
        ([["a", "<f4", True]], "/0/2"),
        ([["a", "<f4"], ["a", "<f4"]], "/1/0"),
        ([["f1", "<f4"], ["", "|V1"]], "/1/0"),
        ([["n", [["x", "<q9"]]]], "/0/1/0/1"),
    ],
)
def test_malformed_dtypes_are_refused(document, pointer):
    with pytest.raises(MetadataError) as caught:
        typestr.load(document)
    assert caught.value.pointer == f"/dtype{pointer}"
    assert caught.value.found is not None


@pytest.mark.parametrize("text", ["<f16", "<c32", "|J0", "<i3", "<q8", "|b4", "float32"])
def test_well_formed_strangers_are_unknown(text):
    with pytest.raises(MetadataError) as caught:
        typestr.load(text)
    assert isinstance(caught.value, UnknownDataTypeError) == (text != "float32")


def test_deep_nesting_is_refused():
    document = "<i4"
    for _ in range(5000):
        document = [["a", document]]
    with pytest.raises(MetadataError):
        typestr.load(document)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), st.lists))
def test_whatever_comes_only_metadata_errors_leave(document):
    try:
        named, order = typestr.load(document)
    except MetadataError:
        return
    assert typestr.dump(named, order) is not None


# Written by zarr 2.18.7 with NumPy 2.4.6, Python 3.11, in each case by
# the call of zarr.create with shape 2, the dtype, the fill value and compressor None; then the key ".zarray".
# Columns: dtype of the document, its fill_value, what the fill value was as bytes of an item.
ZARR2 = [
    ("|S4", "YWI=", b"ab\0\0"),
    ("|S4", "", b"\0\0\0\0"),
    ("|V3", "AQID", b"\1\2\3"),
    ("<U3", "a\u00f1", np.array("añ", "<U3").tobytes()),
    ([["a", ">i4"], ["b", "<f8", [2]]], "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", bytes(20)),
    ([["a", "|u1"], ["b", "<i4"]], "AQIAAAA=", b"\1\2\0\0\0"),
    ("<M8[ns]", -9223372036854775808, np.array("NaT", "<M8[ns]").tobytes()),
    ("<M8[D]", 0, bytes(8)),
    ("<m8[10us]", 5, np.array(5, "<m8[10us]").tobytes()),
    ("|b1", False, b"\0"),
    ("<c8", [1.0, -2.0], np.array(1 - 2j, "<c8").tobytes()),
    ("<i8", -9223372036854775808, np.array(-(2**63), "<i8").tobytes()),
    ("<u8", 18446744073709551615, b"\xff" * 8),
    ("<f4", "NaN", np.array(np.nan, "<f4").tobytes()),
    ("<f4", 1.100000023841858, np.array(1.1, "<f4").tobytes()),
    ("<f2", 1.099609375, np.array(1.1, "<f2").tobytes()),
]


@pytest.mark.parametrize(("dtype", "document", "data"), ZARR2)
def test_fill_values_of_zarr_2_are_read_and_written_back(dtype, document, data):
    data_type = bind(*typestr.load(dtype))
    value = typestr.fill_from_v2(document, data_type)
    assert np.asarray(data_type.fill_from_json(value), data_type.dtype).tobytes() == data
    assert typestr.fill_to_v2(value, data_type) == document
    assert typestr.dump(*typestr.load(dtype)) == dtype


def test_null_is_undefined():
    assert typestr.fill_from_v2(None, parse("int8")) is UNDEFINED
    assert typestr.fill_to_v2(UNDEFINED, parse("int8")) is None


@pytest.mark.parametrize("descr", DESCRS)
@given(data=st.data())
def test_items_of_records_survive_base64(descr, data):
    data_type = bind(*typestr.load(as_json(descr)))
    size = data_type.dtype.itemsize
    item = bytearray(data.draw(st.binary(min_size=size, max_size=size)))
    if "z" in data_type.dtype.names:  # text: small code points
        item[-8:] = np.array("hé", "<U2").tobytes()
    document = base64.b64encode(item).decode()
    assert typestr.fill_to_v2(typestr.fill_from_v2(document, data_type), data_type) == document


@pytest.mark.parametrize("value", [0, ""])
@pytest.mark.parametrize("what", ["S3", "V3", "U3", "string", "bytes", [("a", "<i4")]])
def test_nothing_and_zero_are_the_zero_of_every_kind_of_bytes(what, value):
    data_type = parse(what)
    read = data_type.fill_from_json(typestr.fill_from_v2(value, data_type))
    assert read == data_type.default_fill_value


def test_lists_of_one_and_numeric_booleans_are_read():
    assert typestr.fill_from_v2([-99], parse("<i4")) == -99  # netCDF-C 4.8.0
    assert typestr.fill_from_v2([9.96921e36], parse("<f8")) == 9.96921e36
    assert typestr.fill_from_v2(0, parse("bool")) is False


def test_r_types_are_base64_in_v2():
    data_type = parse("r24")
    assert typestr.fill_from_v2("AQID", data_type) == [1, 2, 3]
    assert typestr.fill_to_v2([1, 2, 3], data_type) == "AQID"


def test_a_nan_is_written_without_its_payload():
    assert typestr.fill_to_v2("0xffc00001", parse("float32")) == "NaN"
    assert typestr.fill_to_v2(["0xffc00001", 1.0], parse("complex64")) == ["NaN", 1.0]


def test_objects_keep_any_value():
    data_type = bind(Named("omnizarr.object"))
    for value in (0, "x", [1], {"a": 1}):
        assert typestr.fill_to_v2(typestr.fill_from_v2(value, data_type), data_type) == value


@pytest.mark.parametrize(
    ("what", "value"),
    [("S3", "YWJjZA=="), ("V3", "YWI="), ("<i4", 2**31), ("<i4", "x"), ("bool", 2), ([("a", "<i4")], "AAAA")],
)
def test_malformed_fill_values_are_refused(what, value):
    with pytest.raises(MetadataError) as caught:
        typestr.fill_from_v2(value, parse(what))
    assert caught.value.pointer == "/fill_value"
