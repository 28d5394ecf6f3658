"""Fill values before v2. What zarr 1.1.0 (NumPy 1.14.6) gave back for chunks that are missing is what they mean."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.formats.history import fills
from omnizarr.formats.spelling import same
from omnizarr.model import datatypes
from omnizarr.model.datatypes import typestr

RECORD = [["a", "|i1"], ["b", ">f4"]]
MIXED = [["a", "|i1"], ["b", "|S2"]]
NESTED = [["a", "|i1"], ["b", [["c", "<i2"], ["d", "<M8[s]"]]]]


def bind(dtype):
    return datatypes.bind(*typestr.load(dtype))


def load(value, dtype):
    """The form of v3, and the notes."""
    notes = []
    form = fills.load(value, bind(dtype), lambda pointer, message: notes.append(f"{pointer}: {message}"))
    return form, notes


def filled(value, dtype):
    """What the value fills with, as Python's value."""
    return bind(dtype).fill_from_json(load(value, dtype)[0]).item()


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("|S3", "ab", b"ab"),
        ("|S3", "", b""),
        ("|S8", "YWI=", b"YWI="),
        ("<U3", "ab", "ab"),
        (">U3", "\xe9\u4e2d", "\xe9\u4e2d"),
        ("|V3", 0, b"\0\0\0"),
        ("<i4", True, 1),
        ("<u8", 2**64 - 1, 2**64 - 1),
        ("<f4", True, 1.0),
        ("<f8", "Infinity", float("inf")),
        ("<f8", "-Infinity", float("-inf")),
        ("<f4", 1e300, float("inf")),
        ("<c8", 1.5, 1.5 + 0j),
        ("|b1", 1, True),
        ("|b1", 0.0, False),
        (RECORD, 1, (1, 1.0)),
        (RECORD, False, (0, 0.0)),
    ],
)
def test_a_value_fills_with_what_it_filled_with_in_zarr_1(dtype, value, expected):
    assert filled(value, dtype) == expected
    assert load(value, dtype)[1] == []


@pytest.mark.parametrize(
    ("dtype", "value", "expected", "note"),
    [
        ("|S3", 0, b"0", "0, read as the text '0', as NumPy casts it"),
        ("<U3", 0, "0", "0, read as the text '0', as NumPy casts it"),
        ("|S3", "abcdef", b"abc", "too long, cut to 'abc'"),
        ("<U3", "abcdef", "abc", "too long, cut to 'abc'"),
        ("<i4", 1.5, 1, "1.5, read as 1, as NumPy casts it"),
        ("<i4", -1.5, -1, "-1.5, read as -1, as NumPy casts it"),
        ("|u1", -1, 255, "-1 is out of range, read as 255, as NumPy casts it"),
        ("|u1", 300, 44, "300 is out of range, read as 44, as NumPy casts it"),
        ("<i4", 2**40, 0, "1099511627776 is out of range, read as 0, as NumPy casts it"),
        ("|b1", 2, True, "2, read as true"),
        (MIXED, 0, (0, b"0"), "0, read as the text '0', as NumPy casts it"),
        ("<f8", float("inf"), float("inf"), "a bare token that is not JSON, read as the string of the same name"),
    ],
)
def test_a_value_that_numpy_had_to_cast_leaves_a_note(dtype, value, expected, note):
    assert filled(value, dtype) == expected
    assert load(value, dtype)[1] == [f"/fill_value: {note}"]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("<M8[s]", 0, "1970-01-01T00:00:00"),
        ("<M8[s]", 5, "1970-01-01T00:00:05"),
        ("<M8[s]", "2000-01-01", "2000-01-01T00:00:00"),
        ("<M8[s]", "NaT", "NaT"),
        ("<M8[s]", -(2**63), "NaT"),
        ("<M8[D]", 1.5, "1970-01-02"),
    ],
)
def test_moments_are_counts_or_text(dtype, value, expected):
    found = bind(dtype).fill_from_json(load(value, dtype)[0])
    assert found.tobytes() == np.datetime64(expected, np.datetime_data(found.dtype)[0]).tobytes()


@pytest.mark.parametrize("value", ["NaN", float("nan")])
@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
def test_nan_is_a_string_or_a_bare_token(dtype, value):
    assert load(value, dtype)[0] == "NaN"


def test_a_bare_token_is_the_real_part_of_a_complex_number():
    assert load(float("nan"), "<c8")[0] == ["NaN", 0.0]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("<c8", [1, -2.5], 1 - 2.5j),
        ("|V3", "AQID", b"\1\2\3"),
        (RECORD, [1, 2.5], (1, 2.5)),
        (MIXED, [1, "ab"], (1, b"ab")),
        ([["a", "<i2", [2]]], [[1, 2]], ([1, 2],)),
    ],
)
def test_what_numpy_takes_from_no_json_has_the_form_of_v2(dtype, value, expected):
    found = filled(value, dtype)
    assert str(found) == str(expected).replace("([1, 2],)", str((np.array([1, 2], "<i2"),)))
    assert load(value, dtype)[1] == []


def test_a_number_fills_every_field_however_deep():
    assert load(0, NESTED)[0] == {"a": 0, "b": {"c": 0, "d": 0}}


def test_notes_point_into_the_list_of_fields():
    assert load([1, "abc"], MIXED)[1] == ["/fill_value/1: too long, cut to 'ab'"]


@pytest.mark.parametrize(
    ("dtype", "value", "pointer"),
    [
        ("<i4", "5", "/fill_value"),
        ("<i4", [7], "/fill_value"),
        ("<i4", float("nan"), "/fill_value"),
        ("<i8", 2**70, "/fill_value"),
        ("<i4", 1e30, "/fill_value"),
        ("<f8", "x", "/fill_value"),
        ("<f8", "0x7ff8000000000000", "/fill_value"),
        ("<f8", [1.5], "/fill_value"),
        ("<c8", [1], "/fill_value"),
        ("<c8", [1, "x"], "/fill_value/1"),
        ("<c8", "1+2j", "/fill_value"),
        ("|b1", "x", "/fill_value"),
        ("|b1", 2**70, "/fill_value"),
        ("|S3", "\xe9", "/fill_value"),
        ("|S3", ["a"], "/fill_value"),
        ("<U3", {}, "/fill_value"),
        pytest.param("<U3", 10**5000, "/fill_value", id="U3-huge"),
        ("|V3", "abc", "/fill_value"),
        ("|V3", "AQ==", "/fill_value"),
        ("<M8[s]", "yesterday", "/fill_value"),
        ("<M8[s]", 2**70, "/fill_value"),
        (RECORD, "x", "/fill_value"),
        (RECORD, [1], "/fill_value"),
        (RECORD, [1, "x"], "/fill_value/1"),
        (RECORD, {"a": 1, "b": 2}, "/fill_value"),
        ([["a", "<i2", [2]]], [[1]], "/fill_value/0"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(dtype, value, pointer):
    with pytest.raises(MetadataError) as raised:
        load(value, dtype)
    assert raised.value.pointer == pointer
    assert raised.value.expected


@pytest.mark.parametrize(
    ("dtype", "form", "expected"),
    [
        ("<i4", 7, 7),
        ("<f4", 1.5, 1.5),
        ("<f4", "NaN", "NaN"),
        ("<f4", "0x7fc00001", "NaN"),
        ("<f4", "-Infinity", "-Infinity"),
        ("<c8", [1.5, 0.0], 1.5),
        ("<c8", ["NaN", 0.0], "NaN"),
        ("<c8", [1.5, -0.0], [1.5, -0.0]),
        ("<c8", [0.0, "0x7fc00001"], [0.0, "NaN"]),
        ("|b1", True, True),
        ("|S3", "YWI=", "ab"),
        (">U3", "\xe9", "\xe9"),
        ("|V3", "AAAA", 0),
        ("|V3", "AQID", "AQID"),
        ("<M8[s]", -(2**63), -(2**63)),
        (RECORD, {"a": 0, "b": 0.0}, 0),
        (RECORD, {"a": 0, "b": -0.0}, [0, -0.0]),
        (RECORD, {"a": 1, "b": "NaN"}, [1, "NaN"]),
        (MIXED, {"a": 0, "b": ""}, [0, ""]),
        (MIXED, {"a": 0, "b": "MA=="}, [0, "0"]),
        (NESTED, {"a": 0, "b": {"c": 0, "d": 0}}, 0),
        (NESTED, {"a": 0, "b": {"c": 1, "d": 0}}, [0, [1, 0]]),
    ],
)
def test_a_value_is_written_as_numpy_takes_it_where_it_does(dtype, form, expected):
    assert same(fills.dump(form, bind(dtype)), expected)


def test_bytes_beyond_ascii_are_refused():
    with pytest.raises(NotRepresentableError) as raised:
        fills.dump(base64.b64encode(b"\xe9").decode(), bind("|S3"))
    assert "null" in raised.value.remedy


TYPES = ["|b1", "|i1", ">u2", "<i8", "<f2", ">f4", "<f8", ">c8", "<c16", "<U3", "|V3", ">M8[ms]", "<m8", RECORD, NESTED]


@given(st.sampled_from(TYPES), st.binary(min_size=64, max_size=64))
def test_load_inverts_dump_without_a_note(dtype, data):
    bound = bind(dtype)
    scalar = np.str_(data.decode("latin-1")[:3]) if dtype == "<U3" else np.frombuffer(data, bound.dtype, count=1)[0]
    written = fills.dump(bound.fill_to_json(scalar), bound)
    form, notes = load(written, dtype)
    assert notes == []
    assert same(fills.dump(form, bound), written)
    found = np.asarray(bound.fill_from_json(form), bound.dtype)
    # the payload of a NaN is lost
    assert found.tobytes() == np.asarray(scalar, bound.dtype).tobytes() or "NaN" in str(written)


@given(st.text(st.characters(max_codepoint=127), max_size=3))
def test_load_inverts_dump_of_ascii(text):
    form = base64.b64encode(text.encode().rstrip(b"\0")).decode()
    assert load(fills.dump(form, bind("|S3")), "|S3") == (form, [])
