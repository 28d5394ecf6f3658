"""JSON is changed in its own text, and what is not meant stays as it was."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.dialects.jsontext import JSONText

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, min_size=1, max_size=4)


def pointer(name):
    return "/" + name.replace("~", "~0").replace("/", "~1")


@pytest.mark.parametrize(
    ("before", "at", "after"),
    [
        ('{"a": 1,  "b" :"3" }', "/b", '{"a": 1,  "b" :9 }'),
        ("[1, [2,3]]", "/1/0", "[1, [9,3]]"),
        ('{"a": 1, "a": 2}', "/a", '{"a": 1, "a": 9}'),
        ('{"x\\u002fy": {"~": 0}}', "/x~1y/~0", '{"x\\u002fy": {"~": 9}}'),
        (" 5\n", "", " 9\n"),
    ],
)
def test_value_is_replaced_and_all_else_stays(before, at, after):
    text = JSONText(before)
    text.replace(at, 9)
    assert text.text == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{"n": null}'),
        ("{ }", '{"n": null}'),
        ('{"a":1}', '{"a":1, "n":null}'),
        ('{\n    "a" : 1\n}', '{\n    "a" : 1,\n    "n": null\n}'),
    ],
)
def test_member_is_added_in_the_manner_of_the_others(before, after):
    text = JSONText(before)
    text.insert("", "n", None)
    assert text.text == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"n": 0}', "{}"),
        ('{"n": 0, "a": 1}', '{"a": 1}'),
        ('{"a": 1,\n "n": 0\n}', '{"a": 1\n}'),
        ('{"a": 1, "n": 0, "b": 2}', '{"a": 1, "b": 2}'),
    ],
)
def test_member_is_taken_out_with_its_comma(before, after):
    text = JSONText(before)
    text.remove("/n")
    assert text.text == after


@pytest.mark.parametrize(("index", "after"), [(0, "[9, 1,2]"), (1, "[1,9, 2]"), (2, "[1,2, 9]")])
def test_item_is_put_into_a_list(index, after):
    text = JSONText("[1,2]")
    text.insert_item("", index, 9)
    assert text.text == after


def test_member_that_is_there_again_with_the_same_value_is_taken_out():
    text = JSONText('{"a": [1, 2], "b": {"c": 1, "d": 0, "c": 1}, "a": [1,2]}')
    assert text.unrepeat()
    assert text.text == '{"a": [1, 2], "b": {"c": 1, "d": 0}}'


def test_members_of_one_name_that_differ_stay():
    text = JSONText('{"a": 1, "a": 1.0}')
    assert not text.unrepeat()
    assert text.text == '{"a": 1, "a": 1.0}'


def test_nonfinite_numbers_are_quoted_but_not_words_in_strings():
    text = JSONText(r'{"a": NaN, "NaN": "x NaN \" Infinity", "b": [-Infinity,Infinity]}')
    assert text.quote_nonfinite()
    assert text.text == r'{"a": "NaN", "NaN": "x NaN \" Infinity", "b": ["-Infinity","Infinity"]}'


def test_nonfinite_numbers_below_a_pointer_are_kept():
    text = JSONText('{"a": NaN, "attributes": {"x": NaN}}')
    assert not text.quote_nonfinite(["/attributes"])
    assert text.text == '{"a": "NaN", "attributes": {"x": NaN}}'


def test_pointer_to_nothing_is_a_key_error():
    with pytest.raises(KeyError):
        JSONText('{"a": 1}').get("/b")


@given(OBJECTS, VALUES, st.data(), st.sampled_from([None, 1, 4]))
def test_replaced_value_is_what_python_reads_back(document, value, data, indent):
    name = data.draw(st.sampled_from(sorted(document)))
    text = JSONText(json.dumps(document, indent=indent))
    text.replace(pointer(name), value)
    assert json.loads(text.text) == {**document, name: value}


@given(OBJECTS, VALUES, st.sampled_from([None, 1, 4]))
def test_added_and_removed_member_leaves_the_text_as_it_was(document, value, indent):
    before = json.dumps(document, indent=indent)
    name = max(document, key=len) + "x"
    text = JSONText(before)
    text.insert("", name, value)
    assert json.loads(text.text) == {**document, name: value}
    text.remove(pointer(name))
    assert text.text == before


@given(OBJECTS)
def test_document_without_repeated_members_is_left_alone(document):
    before = json.dumps(document)
    text = JSONText(before)
    assert text.unrepeat()
    assert text.quote_nonfinite()
    assert text.text == before
