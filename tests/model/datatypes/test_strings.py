"""Fill values of bytes and text."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError
from omnizarr.model import Named
from omnizarr.model.datatypes import bind

RAW = Named("raw_bytes", {"length_bytes": 3})
BITS = Named("r24")
FIXED = Named("null_terminated_bytes", {"length_bytes": 4})
UTF32 = Named("fixed_length_utf32", {"length_bytes": 12})


def check_error(named, value, pointer="/fill_value"):
    with pytest.raises(MetadataError) as caught:
        bind(named).fill_from_json(value)
    assert caught.value.pointer == pointer
    assert caught.value.found is not None
    assert caught.value.expected is not None


@pytest.mark.parametrize("named", [RAW, BITS])
@given(data=st.binary(min_size=3, max_size=3))
def test_raw_bytes_survive_a_document(named, data):
    data_type = bind(named)
    document = json.loads(json.dumps(data_type.fill_to_json(np.void(data))))
    assert data_type.fill_from_json(document).tobytes() == data


def test_r_types_are_written_as_numbers_and_raw_bytes_as_base64():
    assert bind(BITS).fill_to_json(np.void(b"\x01\x02\xff")) == [1, 2, 255]
    assert bind(RAW).fill_to_json(np.void(b"\x01\x02\xff")) == base64.b64encode(b"\x01\x02\xff").decode()


@pytest.mark.parametrize("named", [RAW, BITS])
def test_raw_bytes_are_read_in_both_forms(named):
    assert bind(named).fill_from_json([1, 2, 3]).tobytes() == b"\x01\x02\x03"
    assert bind(named).fill_from_json("AQID").tobytes() == b"\x01\x02\x03"


@pytest.mark.parametrize("named", [RAW, BITS, FIXED, UTF32, Named("string"), Named("bytes")])
@pytest.mark.parametrize("value", ["", 0, None])
def test_nothing_and_zero_are_the_zero_of_every_kind_of_bytes(named, value):
    data_type = bind(named)
    assert data_type.fill_from_json(value) == data_type.default_fill_value
    assert data_type.cast(value) == data_type.default_fill_value


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ([1, 2], ""),
        ([1, 2, 3, 4], ""),
        ("AQI=", ""),
        ("AQ!D", ""),
        ("AQIDé", ""),
        ({}, ""),
        (True, ""),
        (1, ""),
        ([1, 2, 256], "/2"),
        ([1, -1, 2], "/1"),
        ([True, 1, 2], "/0"),
        ([1.0, 1, 2], "/0"),
        ([[], 1, 2], "/0"),
    ],
)
def test_malformed_raw_bytes_are_refused(value, pointer):
    check_error(BITS, value, f"/fill_value{pointer}")
    check_error(RAW, value, f"/fill_value{pointer}")


@given(st.binary(max_size=4))
def test_fixed_bytes_survive_a_document(data):
    data_type = bind(FIXED)
    scalar = np.array(data, "S4")[()]
    document = json.loads(json.dumps(data_type.fill_to_json(scalar)))
    assert np.array(data_type.fill_from_json(document), "S4").tobytes() == np.array(data, "S4").tobytes()


def test_fixed_bytes_may_be_padded_in_the_document():
    assert bind(FIXED).fill_from_json(base64.b64encode(b"ab\0\0").decode()) == b"ab"
    check_error(FIXED, base64.b64encode(b"abcde").decode())


@given(st.text(st.characters(), max_size=3))
def test_fixed_text_survives_a_document(text):
    for order in "<>":
        data_type = bind(UTF32, order)
        scalar = np.array(text, data_type.dtype)[()]
        document = json.loads(json.dumps(data_type.fill_to_json(scalar)))
        read = np.array(data_type.fill_from_json(document), data_type.dtype)
        assert read.tobytes() == np.array(text, data_type.dtype).tobytes()


def test_text_longer_than_its_room_is_refused():
    check_error(UTF32, "four")
    with pytest.raises(MetadataError):
        bind(UTF32).cast("four")


@given(st.text(st.characters(codec="utf-8")))
def test_strings_survive_a_document(text):
    data_type = bind(Named("string"))
    assert data_type.fill_from_json(json.loads(json.dumps(data_type.fill_to_json(text)))) == text


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, ["x"]])
def test_other_things_are_no_strings(value):
    check_error(Named("string"), value)
    check_error(UTF32, value)


def test_a_lone_surrogate_is_no_string():
    check_error(Named("string"), "\ud800")


@given(st.binary())
def test_variable_length_bytes_survive_a_document(data):
    data_type = bind(Named("bytes"))
    assert data_type.fill_from_json(json.loads(json.dumps(data_type.fill_to_json(data)))) == data


def test_variable_length_bytes_are_read_in_both_forms():
    # zarr-extensions, bytes: both examples mean 0x01 0x02 0x03
    assert bind(Named("bytes")).fill_from_json([1, 2, 3]) == b"\x01\x02\x03"
    assert bind(Named("variable_length_bytes")).fill_from_json("AQID") == b"\x01\x02\x03"
    assert bind(Named("bytes")).fill_from_json([]) == b""


def test_strings_are_numpy_strings_in_memory_and_bytes_are_objects():
    assert bind(Named("string")).dtype == np.dtypes.StringDType()
    assert bind(Named("variable_length_utf8")).dtype == np.dtypes.StringDType()
    assert bind(Named("bytes")).dtype == np.dtype(object)
    assert not bind(Named("string")).is_fixed_size
    assert not bind(Named("bytes")).is_fixed_size


@pytest.mark.parametrize(
    ("named", "value", "scalar"),
    [
        (RAW, b"abc", b"abc"),
        (RAW, b"ab", b"ab\0"),
        (RAW, b"", b"\0\0\0"),
        (RAW, np.void(b"abc"), b"abc"),
        (RAW, np.array([1, 2, 3], "u1"), b"\1\2\3"),
        (FIXED, "ab", b"ab"),
        (FIXED, np.bytes_(b"ab"), b"ab"),
        (FIXED, bytearray(b"abcd"), b"abcd"),
        (UTF32, np.str_("añ"), "añ"),
        (Named("string"), np.str_("añ"), "añ"),
        (Named("bytes"), np.bytes_(b"\xff"), b"\xff"),
        (Named("bytes"), "é", "é".encode()),
    ],
)
def test_users_may_pass_what_fits(named, value, scalar):
    read = bind(named).cast(value)
    assert (read.tobytes() if isinstance(read, np.void) else read) == scalar


@pytest.mark.parametrize(
    ("named", "value"),
    [
        (RAW, b"abcd"),
        (RAW, np.void(b"ab")),
        (RAW, object()),
        (FIXED, b"abcde"),
        (FIXED, "é"),
        (FIXED, 1),
        (UTF32, b"ab"),
        (UTF32, 1),
        (Named("string"), b"ab"),
        (Named("string"), 5),
        (Named("bytes"), 5),
        (Named("bytes"), [300]),
    ],
)
def test_users_may_not_pass_what_does_not_fit(named, value):
    with pytest.raises(MetadataError):
        bind(named).cast(value)
