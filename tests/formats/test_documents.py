from __future__ import annotations

import copy
import datetime as dt
import json
import marshal
import math
import pickle
import re
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import omnizarr
from omnizarr import config
from omnizarr.errors import MetadataError
from omnizarr.formats.documents import MAX_DEPTH, is_same, parse, render, to_json
from omnizarr.formats.spelling import revision, same

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


def problems_in(data):
    problems = []
    parse(data, problems.append)
    return problems


@given(VALUES)
def test_parse_inverts_render(value):
    assert same(parse(render(value)), value)


@given(st.binary(max_size=60))
def test_any_bytes_parse_or_are_metadata_errors(data):
    problems = []
    value = parse(data, problems.append)
    assert value is None or not problems or all("more than once" in problem.message for problem in problems)


def test_bare_tokens_of_old_writers_become_floats():
    value = parse(b"[NaN, Infinity, -Infinity]")
    assert math.isnan(value[0])
    assert value[1:] == [math.inf, -math.inf]


def test_integers_do_not_go_through_floats():
    assert parse(b"[18446744073709551615, -9223372036854775808]") == [2**64 - 1, -(2**63)]


def test_byte_order_mark_is_ignored():
    assert parse(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_memoryviews_parse():
    assert parse(memoryview(b"[1]")) == [1]


def test_lone_surrogates_survive():
    assert render(parse(b'"\\ud800"')) == b'"\\ud800"'


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "document is empty"),
        (b"  \n", "document is empty"),
        (b"{", "document is not valid JSON (line 1, column 2)"),
        (b'{"a": 1,}', "document is not valid JSON"),
        (b'{"a": 1} x', "Extra data"),
        (b'{"a": .}', "document is not valid JSON"),
        (b'\xff\xfe{\x00"\x00', "document is not UTF-8 (byte 0)"),
        (b'{"a": "\xe9"}', "document is not UTF-8 (byte 7)"),
        (b"[" * 100_000, "document nests too deeply"),
        (b"[" * 400 + b"]" * 400, "document nests too deeply"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "document nests too deeply"),
        (b'{"a": 1' + b"0" * 10_000 + b"}", "document holds a number that cannot be read"),
    ],
)
def test_broken_bytes_are_problems(data, text):
    with pytest.raises(MetadataError) as raised:
        parse(data)
    assert text in str(raised.value)
    assert [text in problem.message + str(problem.error()) for problem in problems_in(data)] == [True]


def test_too_large_documents_are_refused_before_they_are_parsed():
    expected = "too large: found 11 bytes, expected at most 10 bytes"
    with config.set({"documents.max_bytes": 10}), pytest.raises(MetadataError, match=expected):
        parse(b" " * 11)


def test_depth_up_to_the_bound_is_read():
    data = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert parse(render(parse(data))) == json.loads(data)


def test_repeated_members_are_reported_with_their_place():
    problems = problems_in(b'{"a": 1, "b": [{"c": 1, "c": 2, "d/e": {"x": 1, "x": 1}}], "a": 3}')
    assert sorted(problem.pointer for problem in problems) == ["/a", "/b/0/c", "/b/0/d~1e/x"]
    assert problems[0].spec == "RFC 8259, section 4"


def test_the_last_of_repeated_members_counts():
    assert parse(b'{"a": 1, "a": 2}', [].append) == {"a": 2}


@given(VALUES)
@example({"empty": [{}, [], ""], "yes": True, "no": False, "none": None, "numbers": [0, 1, -1.5, 1e300, 2**64]})
@example({'"\\\n\u2028\ud800': "\x7f\x00\U0001f30a"})
def test_render_indents_as_the_standard_library_does(value):
    plain = to_json(value)
    expected = json.dumps(plain, indent=2, ensure_ascii=False)
    if any(0xD800 <= ord(character) < 0xE000 for character in expected):
        expected = json.dumps(plain, indent=2)
    assert render(value).decode() == _with_short_lists(expected)


def _with_short_lists(text):
    """Return indented JSON with lists of numbers, which no string can be taken for, on one line."""
    numbers = r"\[\n\s*([-0-9][-+0-9.eE,\s]*?)\n\s*\]"
    return re.sub(numbers, lambda found: "[" + re.sub(r",\s+", ", ", found[1]) + "]", text)


def test_render_is_json_in_utf8():
    data = render({"a": ["NaN", 1.5], "ü": "\u2028"})
    assert "ü".encode() in data
    assert json.loads(data, parse_constant=pytest.fail) == {"a": ["NaN", 1.5], "ü": "\u2028"}


@pytest.mark.parametrize("value", [math.nan, [math.inf, 1], {"a": [-math.inf, "x", [math.nan]]}])
def test_numbers_that_are_not_finite_are_the_tokens_of_the_standard_library(value):
    assert same(json.loads(render(value)), value)


@given(st.floats(), st.sampled_from([np.float64, np.longdouble, float]))
def test_strings_in_place_of_numbers_that_are_not_finite(number, kind):
    expected = number if math.isfinite(number) else json.dumps(number)
    assert same(to_json([{"a": kind(number)}], quotes_nonfinite=True), [{"a": expected}])


def test_render_escapes_what_utf8_cannot_say():
    data = render({"ü": "\udcff"})
    assert data.isascii()
    assert json.loads(data) == {"ü": "\udcff"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.float32(np.nan), math.nan),
        (np.longdouble(2), 2.0),
        (np.int64(-(2**63)), -(2**63)),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.array([0.5, np.inf]), [0.5, math.inf]),
        (np.array(3), 3),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([1, "x", None], dtype=object), [1, "x", None]),
        ((1, (2,)), [1, [2]]),
        ({"a": (np.int8(1),)}, {"a": [1]}),
    ],
)
def test_numpy_values_and_tuples_are_written_as_plain_json(value, expected):
    written = json.loads(render(value))
    assert same(written, expected)


@pytest.mark.parametrize(
    ("value", "pointer", "text"),
    [
        ({"a": {"when": dt.date(2020, 1, 1)}}, "/a/when", "type date has no form in JSON"),
        ({"a": [b"x"]}, "/a/0", "type bytes"),
        ({"a": {1, 2}}, "/a", "type set"),
        ({"a": 1j}, "/a", "type complex"),
        ({"a/b": object()}, "/a~1b", "type object"),
        ({"a": {1: 2}}, "/a", "names of an object's members are strings"),
        ({"a": np.datetime64("2020-01-01")}, "/a", "data type datetime64[D] have no form in JSON"),
        ({"a": np.complex64(1)}, "/a", "complex64"),
        ({"a": np.zeros(2, "S2")}, "/a", "convert them, for example with .astype(str)"),
        ({"a": 10**5000}, None, "number that cannot be written"),
    ],
)
def test_values_without_a_form_in_json_are_refused_by_name(value, pointer, text):
    with pytest.raises(MetadataError) as raised:
        render(value)
    assert raised.value.pointer == pointer
    assert text in str(raised.value)


def test_values_that_hold_themselves_are_refused():
    value: list[object] = []
    value.append(value)
    with pytest.raises(MetadataError, match="nests too deeply"):
        render(value)


def test_to_json_places_errors_below_the_pointer_given():
    with pytest.raises(MetadataError) as raised:
        to_json({"x": b""}, "/attributes")
    assert raised.value.pointer == "/attributes/x"


def test_reading_leaves_the_limits_of_the_interpreter_alone():
    limits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    problems_in(b"[" * 10_000)
    assert limits == (sys.getrecursionlimit(), sys.get_int_max_str_digits())


class TestTexts:
    """A document that was parsed is written as it was spelled."""

    TEXT = b'{"a":1e2, "b": [1,2],\r\n "c": "\\u00e9", "d": {"x": NaN} }\n'

    def test_parsed_document_is_written_as_it_was(self):
        assert render(parse(self.TEXT)) == self.TEXT

    def test_byte_order_mark_is_left_out(self):
        assert render(parse(b"\xef\xbb\xbf" + self.TEXT)) == self.TEXT

    def test_only_what_is_new_is_written_again(self):
        read = parse(self.TEXT)
        changed = revision({**read, "b": np.array([1, 3])}, read)
        assert render(changed) == self.TEXT.replace(b"[1,2]", b"[1,3]")

    def test_a_revision_of_a_revision_goes_back_to_the_text(self):
        read = parse(self.TEXT)
        once = revision({**read, "b": None}, read)
        assert render(revision({**once, "b": [1, 2]}, once)) == self.TEXT

    @pytest.mark.parametrize("kind", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
    def test_copies_know_the_text_too(self, kind):
        read = parse(self.TEXT)
        assert render(kind(read)) == self.TEXT
        assert render(kind(revision({**read, "b": 0}, read))) == self.TEXT.replace(b"[1,2]", b"0")

    def test_within_another_document_it_has_its_place(self):
        data = render({"first": parse(b'{"a":1e2,\n "b": {\n  "c": -0\n }\n}\n'), "second": 1})
        assert data == b'{\n  "first": {"a":1e2,\n   "b": {\n    "c": -0\n   }\n  },\n  "second": 1\n}'

    def test_within_a_large_document_it_has_one_line(self, monkeypatch):
        monkeypatch.setattr("omnizarr.formats.documents.MAX_INDENTED", 10)
        read = parse(b'{\n  "a": 1e2,\n  "b": " x \\n ",\n  "c": [\n    -0\n  ]\n}\n')
        data = render({"first": {"second": read}, "third": [1, {"x": math.nan}]})
        assert data == b'{"first": {"second": {"a": 1e2,"b": " x \\n ","c": [-0]}}, "third": [1, {"x": NaN}]}'

    def test_new_members_are_indented_as_their_neighbours(self):
        read = parse(b'{\n    "a": {\n        "b": 1e2\n    }\n}')
        changed = revision({"a": {"b": 100.0, "c": {"d": ["x"]}}}, read)
        inner = '{\n          "d": [\n            "x"\n          ]\n        }'
        assert render(changed).decode() == f'{{\n    "a": {{\n        "b": 1e2,\n        "c": {inner}\n    }}\n}}'

    @pytest.mark.parametrize("name", ["é", "\ud800"])
    def test_half_a_surrogate_pair_is_written_as_an_escape(self, name):
        read = parse('{"ü": "\\u00fc"}'.encode())
        data = render(revision({**read, name: name}, read))
        assert b'"\\u00fc"' in data
        assert json.loads(data) == {"ü": "ü", name: name}

    def test_what_is_no_json_becomes_json_when_it_changes(self):
        read = parse(b'{"a": +1, "b": 1e2, "c": .5}')
        assert render(revision({**read, "d": 0}, read)) == b'{"a": 1, "b": 1e2, "c": 0.5, "d": 0}'

    def test_to_json_gives_plain_dictionaries(self):
        plain = to_json({"a": parse(self.TEXT)})
        assert type(plain["a"]) is dict
        plain["a"]["b"].append(3)
        assert parse(self.TEXT)["b"] == [1, 2]

    @given(VALUES, VALUES)
    def test_what_is_written_is_what_is_meant(self, old, new):
        read = parse(json.dumps({"old": old, "both": new}).encode())
        changed = revision({"new": new, "both": new, "old": {"within": [old]}}, read)
        assert same(parse(render(changed)), changed)
        assert same(parse(render({"outer": changed, "read": read})), {"outer": changed, "read": read})


@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=4), st.data())
def test_documents_that_are_the_same_are_rendered_as_they_were_read(value, data):
    text = json.dumps(value, allow_nan=True).encode()
    old = parse(text)
    other = data.draw(st.permutations(list(value.items())).map(dict) | st.just(value) | st.just({**value, "a": 1}))
    assert is_same(dict(old), old)
    if is_same(other, old):
        assert render(revision(other, old)) == text
    if render(revision(other, old)) != text:
        assert not is_same(other, old)


@pytest.mark.parametrize("other", [b'{"a":1.0}', b'{"a":true}', b'{"a":[1]}', b'{"a":-0.0}', b'{"b":1}', b"{}"])
def test_documents_that_differ_in_type_alone_are_not_the_same(other):
    assert not is_same(parse(other), parse(b'{"a":1}'))
    assert not is_same(parse(other), parse(b'{"a":0.0}'))


def once(text, kind):
    """Return the number of a type that is nearest to a decimal number, half to even."""
    exact = Fraction(Decimal(text))
    with np.errstate(over="ignore"):
        near = np.array(float(text)).astype(kind)[()]
        around = [np.nextafter(near, kind(-np.inf)), near, np.nextafter(near, kind(np.inf))]
    finite = [each for each in around if np.isfinite(each)]
    return min(finite, key=lambda each: (abs(Fraction(float(each)) - exact), int(each.view(f"u{near.nbytes}")) & 1))


MIDDLE = "1.000000059604644775390625"  # between 1 and the next float32
TWICE = {
    "f4": [MIDDLE, f"{MIDDLE}001", "1.0000000596046448", "1.00000005960464477", "-1.0000000596046448",
           "3.4028235677973362e38", "8.3820735309e-29", "1.00000017881393432617187499", "7.006492321624085e-46"],
    "f2": ["1.00048828125", "1.0004882812500000001", "1.0014648437499999999999", "-1.0004882812500001"],
}  # fmt: skip


@pytest.mark.parametrize("texts", TWICE.items(), ids=str)
def test_fill_values_are_rounded_once(texts):
    """Zarr v3, "Data types" (zarr-specs 377): to the nearest number of the type, half to even."""
    kind = np.dtype(texts[0]).type
    for text in texts[1]:
        store = {}
        omnizarr.create_array(store, shape=(1,), dtype=kind, fill_value=7)
        stored = re.sub(rb'"fill_value": [0-9.]+', b'"fill_value": ' + text.encode(), store["zarr.json"])
        array = omnizarr.open_array({"zarr.json": stored})
        assert array[0] == once(text, kind), text
        group = {"zarr_format": 3, "node_type": "group"}
        listed = b'"consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"a": ' + stored
        consolidated = json.dumps(group).encode()[:-1] + b", " + listed + b"}}}"
        assert omnizarr.open_group({"zarr.json": consolidated, "a/zarr.json": b""})["a"][0] == once(text, kind)
        old = {}
        omnizarr.create_array(old, shape=(1,), dtype=kind, fill_value=7, zarr_format=2)
        old[".zarray"] = re.sub(rb'"fill_value": [0-9.]+', b'"fill_value": ' + text.encode(), old[".zarray"])
        assert omnizarr.open_array(old)[0] == once(text, kind)
        array.attrs["a"] = 1
        assert f'"fill_value": {text},'.encode() in array.store.get("zarr.json")


def test_attributes_that_look_like_types_are_not_rounded():
    store = {}
    omnizarr.create_array(store, shape=(1,), dtype="f4", fill_value=7, attributes={"a": 0})
    text = b'{"dtype": "f4", "shape": [], "fill_value": 0.10000000000000001}'
    stored = store["zarr.json"].replace(b'"a": 0', b'"a": ' + text)
    assert omnizarr.open_array({"zarr.json": stored}).attrs["a"]["fill_value"] == 0.1


def test_other_fill_values_and_attributes_stay_as_they_are():
    text = b"""{"a": 1.0000000596046448, "data_type": "float64", "fill_value": 1.0000000596046448,
        "b": {"data_type": "float32", "fill_value": "1.0000000596046448", "c": [1.0000000596046448]},
        "c": {"shape": [], "dtype": "<c8", "fill_value": [1.0000000596046448, 1e400]},
        "d": {"fill_value": 0.12345678901234568},
        "e": {"data_type": "float32", "fill_value": 1e-999999999, "f": 1.00000000000000000001}}"""
    found, plain = parse(text), json.loads(text)
    assert np.float32(found["c"]["fill_value"][0]) == np.nextafter(np.float32(1), np.float32(2))
    found["c"]["fill_value"][0] = plain["c"]["fill_value"][0]
    assert dict(found) == plain
    assert marshal.dumps(json.loads(json.dumps(dict(found))), 2) == marshal.dumps(plain, 2)
