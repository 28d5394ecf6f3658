"""Attributes as JSON: expected values are those of the NCZarr document, and of netCDF-C 4.10.1 where it differs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import NotRepresentableError
from omnizarr.formats.documents import parse, render
from omnizarr.netcdf import Attribute, types
from omnizarr.netcdf.layouts.attributes import fits, is_plain, read, type_of, unparse, write


def of(nc_type, *values):
    return Attribute(nc_type, np.array(values, nc_type.dtype))


NUMBERS = [each for each in types.TYPES.values() if not each.is_text]


@pytest.mark.parametrize(
    ("recorded", "nc_type"),
    [
        *((str(each.code), each) for each in types.TYPES.values()),
        *((f"<{each.dtype.str[1:]}", each) for each in NUMBERS),
        *((each.dtype.name, each) for each in NUMBERS),
        ("|i1", types.BYTE), (">f8", types.DOUBLE), (">S1", types.CHAR), ("<U1", types.CHAR), (">U1", types.CHAR),
        ("|J0", types.CHAR), ("|S1", types.STRING), ("|S128", types.STRING), ("char", types.CHAR), ("json", types.CHAR),
        ("string", types.STRING), ("bool", types.UBYTE), (4, types.INT),
        ("0", None), ("13", None), ("<f3", None), ("", None), (None, None), ([], None), ("²", None),
    ],
)  # fmt: skip
def test_types_are_recorded_in_four_ways(recorded, nc_type):
    assert type_of(recorded) is nc_type


@pytest.mark.parametrize(
    ("value", "recorded", "expected"),
    [
        (1, "<i1", of(types.BYTE, 1)),
        ([1, 2], "<i2", of(types.SHORT, 1, 2)),
        ([1.5], "5", of(types.FLOAT, 1.5)),  # netCDF-C 4.8.0 puts scalars into lists
        (2**64 - 1, "<u8", of(types.UINT64, 2**64 - 1)),
        (-(2**63), "<i8", of(types.INT64, -(2**63))),
        (["NaN", "Infinity", "-Infinity"], "<f8", of(types.DOUBLE, np.nan, np.inf, -np.inf)),
        ("nan", "<f4", of(types.FLOAT, np.nan)),
        (3.0, "<i4", of(types.INT, 3)),
        (True, "<u1", of(types.UBYTE, 1)),
        ([], "<i4", of(types.INT)),
        ("one", "|S128", of(types.STRING, "one")),
        (["one", ""], "|S128", of(types.STRING, "one", "")),
        ([], "|S128", of(types.STRING)),
        ("text", ">S1", Attribute(types.CHAR, "text")),
        (42, ">S1", Attribute(types.CHAR, "42")),  # what 4.9.2 makes of "42"
        (True, ">S1", Attribute(types.CHAR, "true")),
        ({"a": [1, 2.0]}, ">S1", Attribute(types.CHAR, '{"a": [1,2.0]}')),
        (["a", "b"], ">S1", Attribute(types.CHAR, '["a","b"]')),
        ({"a": None}, "|J0", Attribute(types.CHAR, '{"a": null}')),
    ],
)
def test_values_are_read_by_their_recorded_type(value, recorded, expected):
    assert read(value, recorded) == expected
    assert fits(value, recorded, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, of(types.INT, 1)), (-(2**31), of(types.INT, -(2**31))), (2**31, of(types.UINT, 2**31)),
        (-(2**31) - 1, of(types.INT64, -(2**31) - 1)), (2**32, of(types.INT64, 2**32)),
        (2**63 - 1, of(types.UINT64, 2**63 - 1)), (2**64 - 1, of(types.UINT64, 2**64 - 1)),
        (1.0, of(types.DOUBLE, 1)), (True, of(types.UBYTE, 1)), ([False, True], of(types.UBYTE, 0, 1)),
        ("x", Attribute(types.CHAR, "x")), (["x", "y"], of(types.STRING, "x", "y")),
        ([1, 2.5], of(types.DOUBLE, 1, 2.5)), ([1, 2**40], of(types.INT64, 1, 2**40)),
        ([1.5, "NaN"], of(types.DOUBLE, 1.5, np.nan)),
        ({}, Attribute(types.CHAR, "{}")), (None, Attribute(types.CHAR, "null")), ([], Attribute(types.CHAR, "[]")),
        ([[1], [2]], Attribute(types.CHAR, "[[1],[2]]")), ([1, "a"], Attribute(types.CHAR, '[1,"a"]')),
        ([1, None], Attribute(types.CHAR, "[1,null]")), (2**70, of(types.DOUBLE, 2.0**70)),
    ],
)  # fmt: skip
def test_values_without_a_type_are_read_by_their_looks(value, expected):
    assert read(value) == expected


@pytest.mark.parametrize(
    ("value", "recorded", "expected"),
    [
        (300, "<i1", of(types.INT, 300)),
        (1.5, "<i4", of(types.DOUBLE, 1.5)),
        (-1, "<u2", of(types.INT, -1)),
        ("abc", "<f8", Attribute(types.CHAR, "abc")),
        (1e300, "<f4", of(types.DOUBLE, 1e300)),
        (10**400, "<f8", Attribute(types.CHAR, str(10**400))),
    ],
)
def test_values_that_do_not_fit_their_recorded_type_are_not_changed(value, recorded, expected):
    assert read(value, recorded) == expected
    assert not fits(value, recorded, expected)


def test_a_fill_value_without_a_type_is_of_the_variables():
    assert read(-99, None, types.FLOAT) == of(types.FLOAT, -99)
    assert read("NaN", None, types.DOUBLE) == of(types.DOUBLE, np.nan)


@pytest.mark.parametrize("text", ["42", "1.50", "true", "null", '"q"', "", " ", "[1, 2", '{"a": 1, "a": 2}', "[1.50]",
    "[1e5]", '["\\u00e9"]', "[9007199254740993]", "[NaN]", "{'a': 1}", "[1e400]"])  # fmt: skip
def test_text_that_json_would_change_is_written_as_a_string(text):
    assert write(Attribute(types.CHAR, text), "S1") == (text, ">S1")


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.0]}', "[]", "[1,2]", '{"é":"ü"}', ' {\n"a" : null }\n', '["a b", "\\"", "\\n"]']
)
def test_text_that_is_json_is_written_as_json(text):
    value, recorded = write(Attribute(types.CHAR, text), "S1", as_json=True)
    assert (value, recorded) == (json.loads(text), ">S1")
    assert json.loads(read(value, recorded).value) == json.loads(text)
    assert write(Attribute(types.CHAR, text), "S1") == (text, ">S1")


@pytest.mark.parametrize("text", ["[1,2]", '{"a": 1}'])
def test_text_that_is_json_stays_text_where_no_type_is_recorded(text):
    assert write(Attribute(types.CHAR, text), "none") == (text, None)


def test_a_float_is_written_with_the_digits_that_make_it_equal_as_a_double():
    assert write(of(types.FLOAT, 0.1), "S1") == (float(np.float32(0.1)), "<f4")


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        (of(types.INT, 1), True), (of(types.DOUBLE, 0.5), True), (Attribute(types.CHAR, "x"), True),
        (of(types.STRING, "x", "y"), True), (of(types.STRING, "x"), False), (of(types.SHORT, 1), False),
        (of(types.FLOAT, 0.5), False), (of(types.DOUBLE, np.nan), False), (of(types.DOUBLE), False),
    ],
)  # fmt: skip
def test_types_that_values_show_are_plain(attribute, expected):
    assert is_plain(attribute, write(attribute, "none")[0]) is expected


def test_the_recorded_length_of_strings_holds_the_longest():
    assert write(of(types.STRING, "é" * 100, "x"), "S1")[1] == "|S200"


@pytest.mark.parametrize(
    ("attribute", "style"),
    [
        (of(types.STRING, "x"), "codes"), (of(types.STRING, "x"), "U1"),
        (Attribute(types.CHAR, 'say "hi"'), "codes"), (of(types.DOUBLE, np.nan), "codes"),
    ],
)  # fmt: skip
def test_what_old_releases_cannot_read_is_refused(attribute, style):
    with pytest.raises(NotRepresentableError):
        write(attribute, style)


TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\0\udcff\ud800"))


def vector(nc_type, raw):
    return Attribute(nc_type, np.frombuffer(raw[: len(raw) & -8], nc_type.dtype))


VECTORS = st.builds(vector, st.sampled_from(NUMBERS), st.binary(max_size=64))
STRINGS = st.lists(TEXTS, max_size=4).map(lambda items: Attribute(types.STRING, np.array([*items, None], object)[:-1]))


@given(
    VECTORS | STRINGS | TEXTS.map(lambda text: Attribute(types.CHAR, text)),
    st.sampled_from(["S1", "v3"]),
    st.booleans(),
)
def test_every_attribute_comes_back_with_its_type(attribute, style, as_json):
    value, recorded = write(attribute, style, as_json=as_json)
    found = read(parse(render({"a": value}))["a"], recorded)
    if isinstance(attribute.value, str) and not isinstance(value, str):
        assert (found.type, json.loads(found.value)) == (types.CHAR, json.loads(attribute.value))
    elif attribute.type.dtype.kind == "f":  # JSON has one NaN
        assert found.type is attribute.type
        np.testing.assert_array_equal(found.value, attribute.value)
        np.testing.assert_array_equal(
            np.signbit(found.value[found.value == 0]), np.signbit(attribute.value[attribute.value == 0])
        )
    else:
        assert found == attribute


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


@given(JSON, st.sampled_from([None, "<i1", "<u8", "<f4", "<f8", ">S1", "|S4", "|J0", "7", "x"]))
def test_every_json_is_some_attribute(value, recorded):
    found = read(value, recorded)
    assert found.type in types.TYPES.values()


@given(JSON)
def test_json_as_text_is_the_same_json(value):
    assert repr(json.loads(unparse(value))) == repr(value)
