"""The quick scanner of JSON: it accepts only what the parser accepts, and finds what Python's parser finds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from omnizarr.formats import documents, paths, scanning
from omnizarr.formats.documents import MAX_DEPTH
from omnizarr.formats.spelling import Document, same
from tests.repeats import runs

pytestmark = pytest.mark.skipif(not scanning.is_possible(), reason="without the native engine")

_NAMES = st.sampled_from(["a", "b", "ab", "shape", "é", "", " ", ",", "]", "}", ":", "true", "_nczarr_attr", ">S1"])
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _NAMES | st.just("\ud800")
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=5), max_leaves=20
)
_STYLES = st.sampled_from([{}, {"indent": 2}, {"ensure_ascii": False}, {"separators": (",", ":")}, {"indent": "\t"}])
_BITS = [
    *'{}[]",:\\ \t\n\r0123456789-+.eEu',
    *("true", "false", "null", "NaN", "Infinity", "-Infinity", '""', '"a":', '"a":1,', "\\u0041", "\\ud800", "\x00"),
    *("\x1f", "\x7f", "\ufeff", "\u2028", "é", "\U0001f300", "/", "'", "'a'", "//", "_nczarr_", '">S1"', "1e5", "01"),
    '"must_understand": "false"',
]

RUNS = runs(2)
"""Thousands of random texts: 1000 takes some minutes."""


class RepeatedError(ValueError):
    """An object has two members of one name."""


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise RepeatedError
    return dict(pairs)


def is_accepted(data: bytes) -> bool:
    """Whether Python's parser accepts a text without a byte order mark, and without repeated members."""
    try:
        json.loads(data.decode(), object_pairs_hook=unrepeated)
    except (ValueError, RecursionError):
        return False
    return True


def check(data: bytes) -> None:
    if not scanning.is_plain(data):
        return
    assert is_accepted(data)
    read = documents.parse(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanning, "is_plain", lambda _: False)
        reference = documents.parse(data)
    assert type(read) is type(reference)
    assert same(read, reference)
    assert documents.notes_of(reference) == ()
    if isinstance(read, Document) and isinstance(reference, Document):
        assert read.text == reference.text


@given(
    st.text(st.sampled_from('{}[]",:\\ 019-.eEunlNaf\n\t\x00é'), max_size=30)
    | st.lists(st.sampled_from(_BITS)).map("".join)
)
def test_texts_that_are_accepted_are_json(text):
    check(text.encode())


@given(st.binary(max_size=40))
def test_bytes_that_are_accepted_are_json(data):
    check(data)


@given(_VALUES, _STYLES, st.data())
def test_changed_documents_that_are_accepted_are_json(value, style, data):
    text = json.dumps(value, **style)
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 3)))
        text = text[:start] + data.draw(st.sampled_from(["", *_BITS])) + text[stop:]
    check(text.encode("utf-8", "surrogatepass"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcé"), inner, max_size=4),
    ),
    st.sampled_from([{"ensure_ascii": False}, {"ensure_ascii": False, "indent": 1}]),
)
def test_ordinary_documents_are_accepted(value, style):
    data = json.dumps(value, **style).encode("utf-8", "surrogatepass")
    assume(b"\xed" not in data)
    assume(b"_nczarr_" not in data)
    assert scanning.is_plain(data)


def texts(seed: int, count: int) -> Iterator[bytes]:
    """Yield random texts: documents, documents with a few changes, and arbitrary bits of JSON."""
    chance = random.Random(seed)
    scalars = (
        None,
        True,
        0,
        -1,
        2**64,
        0.5,
        -1e300,
        float("nan"),
        float("inf"),
        "",
        "a",
        "é",
        "\\",
        '"',
        "\x7f",
        "\U0001f300",
    )

    def value(depth: int) -> Any:
        kind = chance.random()
        if depth > 3 or kind < 0.5:
            return chance.choice(scalars)
        size = chance.randrange(4)
        if kind < 0.75:
            return [value(depth + 1) for _ in range(size)]
        return {chance.choice(("a", "b", "shape", "é", "", "_nczarr_x")): value(depth + 1) for _ in range(size)}

    styles = ({}, {"indent": 2}, {"ensure_ascii": False}, {"separators": (",", ":")})
    for _ in range(count):
        if chance.random() < 0.2:
            yield "".join(chance.choices(_BITS, k=chance.randrange(12))).encode()
            continue
        data = bytearray(json.dumps(value(0), **chance.choice(styles)).encode())
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
            start = chance.randrange(len(data) + 1)
            new = bytes([chance.randrange(256)]) if chance.random() < 0.3 else chance.choice(_BITS).encode()
            data[start : start + chance.randrange(3)] = chance.choice((b"", new))
        yield bytes(data)


@pytest.mark.parametrize("seed", range(RUNS))
def test_random_texts_that_are_accepted_are_json(seed):
    accepted = 0
    for data in texts(seed, 1000):
        check(data)
        accepted += scanning.is_plain(data)
    assert 200 < accepted < 800  # both answers are frequent


# In the manner of JSONTestSuite (github.com/nst/JSONTestSuite): what a parser must accept, and what it must reject.
ACCEPTED = [
    *("[]", "{}", "0", "-0", "[-0]", "1E22", "1e-2", "0e+1", "123.456e78", '""', '"\\u0060\\u012a\\u12AB"', "true"),
    *('"\\uD801\\udc37"', '"\\uDADA"', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"a/*b*/c/*d//e"', '"\x7f"', '"\u2028"', " [1] "),
    *('{"":0}', '{"a":{"a":{"a":[]}}}', "[[]   ]", "[1\n]", "NaN", "[-Infinity]", '"\\u0000"', "\r\n\t {}\t\n"),
]
REJECTED = [
    *("", " ", "[1,,2]", "[,1]", "[1,]", "[1", "1]", "[}", "{]", "[1 true]", "[a", '["a"', '["",]', "[1:2]", "[*]"),
    *('{"a" "b"}', '{"a":}', '{:"b"}', '{"a":1,}', '{"a":1,,"b":2}', "{1:1}", "{a:1}", "{'a':0}", '{"a":1}#', "{{}}"),
    *("-01", "01", "1.", ".1", "1e", "1e+", "0x1", "+1", "--1", "-", "1_000", "1 000", "-a", "Inf", "-NaN", "nan"),
    *(
        "nul",
        "tru",
        "True",
        "None",
        "undefined",
        '"a',
        '"\\',
        '"\\x00"',
        '"\\u00"',
        '"\\u00g0"',
        '"\\a"',
        '"\n"',
        '"\t"',
    ),
    *("\ufeff{}", "[1]x", "[1][2]", "1 2", "\x00", "[1]\x00", "\u00a01", "\x0c1", "<.>", "abc", "'a'", '["a\x00b"]'),
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_valid_texts_are_accepted(text):
    assert scanning.is_plain(text.encode())
    check(text.encode())


@pytest.mark.parametrize("text", REJECTED)
def test_invalid_texts_are_declined(text):
    assert not scanning.is_plain(text.encode())


@pytest.mark.parametrize(
    "data",
    [
        *(b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf5\x80\x80\x80"', b'"\xe2\x82"', b"\xff\xfe{\x00}\x00"),
        *(b'{"a":1,"a":1}', b'{"a":1,"\\u0061":1}', b'[{"x":{"b":0,"c":0,"b":0}}]'),
        *(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), b'{"a":' * 1000 + b"1" + b"}" * 1000, b"[" * 10**6),
        *(b"1" * 5000, b'{"_nczarr_array":{}}', b'{"dtype":">S1"}', b'{"must_understand": "false"}'),
        b"{" + b",".join(b'"n%d":0' % number for number in (*range(1000), 7)) + b"}",
    ],
)
def test_unusual_texts_are_left_to_the_parser(data):
    assert not scanning.is_plain(data)


def test_documents_can_be_as_deep_as_the_parser_allows():
    assert scanning.is_plain(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert scanning.is_plain(b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH)


@given(st.dictionaries(st.sampled_from(["a", "b", "c,", "é", "}", ""]), _VALUES), _STYLES, st.integers(0, 2))
def test_members_are_those_of_the_object(members, style, depth):
    path = ["x", "y"][:depth]
    whole: Any = members
    for name in reversed(path):
        whole = {"other": [members], name: whole, "last": {name: {}}}
    text = json.dumps(whole, **style).encode("utf-8", "surrogatepass")
    found = scanning.members(text, path)
    if found is None:
        assert not scanning.is_plain(text)
        return
    assert found.names == list(members)
    values = [found.value(number) for number in range(len(found.names))]
    assert [json.loads(value) for value in map(bytes.decode, values)] == [
        json.loads(json.dumps(value)) for value in members.values()
    ] or "NaN" in text.decode()
    assert same(json.loads(text[found.start : found.stop]), json.loads(json.dumps(members)))
    for name, start, stop in zip(found.names, found.bounds[::4], found.bounds[1::4], strict=True):
        assert json.loads(text[start:stop]) == name
    assert text.startswith(found.without()[: found.start])
    emptied: Any = {}
    for name in reversed(path):
        emptied = {"other": [members], name: emptied, "last": {name: {}}}
    assert same(json.loads(found.without()), json.loads(json.dumps(emptied)))


@pytest.mark.parametrize("text", ["{}", '{"a": [], "b": {"c": 1}}', '{"a": null}', "[]", '{"b": {"a": {}}}', "1"])
def test_objects_that_are_missing_have_no_members(text):
    assert scanning.members(text.encode(), ["a"]) is None


@given(st.sets(st.integers(0, 19)), st.sampled_from([None, 2]))
def test_members_that_were_left_out_can_be_put_back(kept, indent):
    text = json.dumps({"x": {f"n{number}": [number] for number in range(20)}, "y": 1}, indent=indent).encode()
    found = scanning.members(text, ["x"])
    numbers = sorted({0, 19, *kept})
    few = found.only(numbers)
    assert json.loads(few) == {"x": {f"n{number}": [number] for number in numbers}, "y": 1}
    assert found.restored(numbers, few) == (text, found.names)


_PARTS = st.sampled_from(["a", "b.c", ".", "..", "...", "", "a\\b", "a\0b", "é", "\ud800", ".zarray", " "])


@example(["a", ""])
@example(["", "a"])
@example(["..", "a"])
@example(["a", "b/..", "c"])
@example(["a\0b"])
@given(st.lists(st.lists(_PARTS, max_size=3).map("/".join), max_size=4))
def test_several_paths_are_checked_like_each(several):
    assert paths.are_paths(several) == all(map(paths.is_path, several))
