"""Changing few members of a large text: the same result as the general way, without a walk through all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.formats import documents
from omnizarr.formats.jsontext import Revision, revised
from omnizarr.formats.spelling import revision
from omnizarr.formats.splicing import spliced

# Names that look like structure, like each other, and like values, and that are spelled with escapes.
_NAMES = st.sampled_from(
    ["a", "b", "ab", "a/b", "units", ": 1, ", ",", "]", "}", '"', "\\", "a\nb", "é", "\ud800", "", " a", "true", "0"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | _NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_NAMES, _VALUES, min_size=1, max_size=8)
_STYLES = st.sampled_from(
    [{}, {"indent": 2}, {"indent": 4, "ensure_ascii": False}, {"separators": (",", ":")}, {"separators": (" , ", " :")}]
)


def write(value: Any, margin: str | None) -> str:
    text = json.dumps(value, indent=None if margin is None else 2)
    return text if margin is None else text.replace("\n", margin)


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an object, and the same with a few members changed, removed and added at any depth, in any place."""
    old = draw(_OBJECTS)
    return old, draw(_changed(old))


@st.composite
def _changed(draw: st.DrawFn, old: dict[str, Any]) -> dict[str, Any]:
    new: dict[str, Any] = {}
    for name, value in old.items():
        if draw(st.integers(0, 5)) == 0:
            new.setdefault(draw(_NAMES), draw(_VALUES))
        match draw(st.sampled_from(["keep", "keep", "keep", "remove", "replace", "change"])):
            case "keep":
                new[name] = value
            case "replace":
                new[name] = draw(_VALUES)
            case "change":
                new[name] = draw(_changed(value)) if isinstance(value, dict) else value
    return new


@given(changes(), _STYLES)
def test_the_result_is_that_of_the_general_way(change: tuple[dict[str, Any], dict[str, Any]], style: Any) -> None:
    old, new = change
    text = f" {json.dumps(old, **style)}\n"
    found = spliced(Revision(text, write), json.loads(text), new)
    if found is not None:
        assert json.loads(found) == new
        assert list(json.loads(found)) == list(new)
        assert found == revised(text, json.loads(text), new, write)


@given(_OBJECTS, _OBJECTS)
def test_what_is_rendered_need_not_be_parsed(old: dict[str, Any], new: dict[str, Any]) -> None:
    read = documents.parse_shared(json.dumps(old).encode())
    data = documents.render_shared(revision({**old, **new}, read))
    known, parsed = documents.parse_shared(data), documents.parse(data)
    assert json.dumps(known) == json.dumps(parsed) == json.dumps({**old, **new})
    assert known.text == parsed.text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"a": 1, "b": {"a": 2}}', "a"),
        ('{"b": "\\"a\\": 3", "a": 1}', "a"),
        ('{"b": {"a": 2}, "\\u0061": 1}', "a"),
        ('{"b": {"x/y": 2}, "x\\/y": 1}', "x/y"),
        ('{"b": ["a"], "c": "a", "a": 1}', "a"),
        ('{"b": "x", ": ": 1}', ": "),
    ],
)
def test_a_member_is_not_mistreated_as_another(text: str, name: str) -> None:
    old = json.loads(text)
    found = spliced(Revision(text, write), old, {**old, name: 7})
    assert found is None or json.loads(found) == {**old, name: 7}


def test_one_of_many_members_is_changed_without_parsing_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def values_parsed(count: int) -> int:
        old = {f"name {number}": [number] for number in range(count)}
        text = json.dumps(old, indent=2)
        seen: list[int] = []
        monkeypatch.setattr("omnizarr.formats.splicing.stop_of", lambda text, at: seen.append(at) or _stop(text, at))
        new = {**old, "name 7": 0, "new": 1}
        del new["name 5"]
        assert json.loads(spliced(Revision(text, write), old, new) or "") == new
        return len(seen)

    assert values_parsed(10) == values_parsed(1000)


def _stop(text: str, at: int) -> int:
    return int(json.JSONDecoder().raw_decode(text, at)[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"a": {"size": 1}, "b": {"size": 2, "c": {"size": 3}}}',
            '{"a": {"size": 1}, "b": {"size": 7, "c": {"size": 3}}}',
        ),
        ('{"types": {"b": "x"}, "b": {"size":  2}}', '{"types": {"b": "x"}, "b": {"size":  7}}'),
        ('{"a": "\\"size\\": 1", "b": {"size": 2}, "size": 0}', '{"a": "\\"size\\": 1", "b": {"size": 7}, "size": 0}'),
    ],
)
def test_a_member_is_found_beside_others_of_its_name(text: str, expected: str) -> None:
    old = json.loads(text)
    new = {**old, "b": {**old["b"], "size": 7}}
    assert spliced(Revision(text, write), old, new) == expected


@pytest.mark.parametrize(
    "text", ['{"": null, "a": null, "b": null}', '{"x": 1, "": 2, "a": 3, "b": 4}', '{"b": 1, "": 2}']
)
def test_a_member_without_a_name_is_removed(text: str) -> None:
    old = json.loads(text)
    for new in ({"b": old["b"]}, {name: value for name, value in old.items() if name not in ("", "a")}):
        document = documents.parse_part(text.encode())
        assert json.loads(documents.render(revision(new, document))) == new
        found = spliced(Revision(text, write), old, new)
        assert found is None or json.loads(found) == new
