"""JSON is changed in its own text, and what is not meant stays as it was."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.formats.jsontext import JSONText, revised

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
    text.quote_nonfinite()
    assert text.text == r'{"a": "NaN", "NaN": "x NaN \" Infinity", "b": ["-Infinity","Infinity"]}'


def test_nonfinite_numbers_below_a_pointer_are_kept():
    text = JSONText('{"a": NaN, "attributes": {"x": NaN}}')
    text.quote_nonfinite(["/attributes"])
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
    text.quote_nonfinite()
    assert text.text == before


def written(value, margin):
    return json.dumps(value)


def spelled(value, data):
    """Return JSON with blanks, escapes and numbers as another program might write them."""
    blank = st.sampled_from(["", " ", "\n  ", "\t", "\r\n"])
    if isinstance(value, dict):
        members = [f"{spelled(name, data)}{data.draw(blank)}:{spelled(each, data)}" for name, each in value.items()]
        return f"{{{data.draw(blank)}{f',{data.draw(blank)}'.join(members)}{data.draw(blank)}}}"
    if isinstance(value, list):
        return f"[{data.draw(blank)}{','.join(spelled(each, data) for each in value)}{data.draw(blank)}]"
    if isinstance(value, float):
        text = repr(value)
        return text if "e" in text else text + data.draw(st.sampled_from(["", "0", "e0", "E+0"]))
    if isinstance(value, str) and data.draw(st.booleans()):
        return '"' + "".join(f"\\u{unit:04X}" for unit in units(value)) + '"'
    return json.dumps(value)


def units(text):
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


@given(OBJECTS, OBJECTS, st.data())
def test_revised_text_says_what_is_new_and_keeps_what_is_old(old, new, data):
    kept = {name: old[name] for name in data.draw(st.sets(st.sampled_from(sorted(old))))}
    new = {**{f"{name}x": value for name, value in new.items()}, **kept}
    texts = {name: (spelled(name, data), spelled(value, data)) for name, value in old.items()}
    comma = data.draw(st.sampled_from([", ", ",\n  ", ","]))
    before = f"{{{comma.join(': '.join(pair) for pair in texts.values())}}}"
    after = revised(before, old, new, written)
    assert json.loads(after, object_pairs_hook=list) == json.loads(json.dumps(new), object_pairs_hook=list)
    assert all(": ".join(texts[name]) in after for name in kept)


@given(OBJECTS, st.data())
def test_a_text_is_not_touched_if_nothing_is_new(document, data):
    text = f" {spelled(document, data)}\n"
    assert revised(text, document, json.loads(json.dumps(document)), written) == text


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ('{"a":1, "b" : [1e2,2]}', {"a": 1, "b": [100.0, 3]}, '{"a":1, "b" : [1e2,3]}'),
        ('{"a":1, "b":2}', {"b": 2}, '{"b":2}'),
        ('{"a":1, "b":2}', {"b": 2, "a": 1}, '{"b":2, "a":1}'),
        ('{\n "a": 1\n}', {"a": 1, "c": 0}, '{\n "a": 1,\n "c": 0\n}'),
        ('{\n "a": 1\n}', {}, "{}"),
        ("{ }", {}, "{ }"),
        ("{ }", {"a": 1}, '{"a": 1}'),
        ('{"a": {"b":1e2, "c": 3}}', {"a": {"b": 100.0}}, '{"a": {"b":1e2}}'),
        ('{"a": [1e2]}', {"a": [100.0, 1]}, '{"a": [100.0, 1]}'),
        ('{"a": 1}', {"a": True}, '{"a": true}'),
        ('{"a": 1}', {"a": 1.0}, '{"a": 1.0}'),
        ('{"a": 0.00}', {"a": -0.0}, '{"a": -0.0}'),
        ('{"a": 0.00}', {"a": 0.0}, '{"a": 0.00}'),
        ('{"a": NaN,"b":0}', {"a": float("nan"), "b": 1}, '{"a": NaN,"b":1}'),
        ('{"\\u0061": {"x":[{"y" :1}]}}', {"a": {"x": [{"y": 2}]}}, '{"\\u0061": {"x":[{"y" :2}]}}'),
        ('{"a": 1, "a": 2}', {"a": 2, "b": 0}, '{"a": 2, "b": 0}'),
    ],
)
def test_text_is_revised_where_it_says_something_else(before, new, after):
    assert revised(before, json.loads(before), new, written) == after


def test_members_unknown_to_old_and_new_stay_and_those_said_in_another_way_are_not_said_twice():
    text = '{"a": "one", "hidden": 1, "b": 2}'
    said = {"a": 1, "b": 2, "meant": 3}
    assert revised(text, said, {"a": 1, "b": 3, "meant": 3}, written) == '{"a": "one", "b": 3, "hidden": 1}'
    assert revised(text, said, {"a": 1, "b": 2, "meant": 4}, written) == '{"a": "one", "b": 2, "meant": 4, "hidden": 1}'
