"""Changing a few members of a large JSON document within its text, without parsing all of it.

A document may hold thousands of attributes, or copies of thousands of other documents. To change one member, its
name is searched for in the text, and text is inserted there. `omnizarr.formats.jsontext` has the general
algorithm, with the same result.

Spec: RFC 8259.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from json.encoder import encode_basestring
from typing import Final, NamedTuple

from omnizarr.formats.jsontext import Place, Revision, is_unchanged, places_in, skip, stop_of
from omnizarr.formats.reader import is_object
from omnizarr.model import JSON

_MANY: Final = 16
"""Maximum number of members to search for by name; for more, parsing everything costs less."""

_SHORT: Final = 16_384
"""Texts up to this length are parsed to find a member of a name that occurs several times."""

# Text between the quotes of two strings begins with one of these, which no searched name does.
_starts_with_structure = re.compile(r"[ \t\r\n,:\]}]").match
_spells_otherwise = re.compile(r"\\(?:/|u00[2-7])").search


class _Edit(NamedTuple):
    """A replacement of a part of the text."""

    start: int
    stop: int
    text: str


class _Impossible(Exception):  # noqa: N818
    """A member cannot be located by its name, or too much has changed."""


def spliced(revision: Revision, old: Mapping[str, JSON], new: Mapping[str, JSON]) -> str | None:
    r"""Return a text with content `old` changed to content `new`, like `omnizarr.formats.jsontext.revised`.

    Parameters
    ----------
    revision : Revision
        The text, and the function that writes new values.
    old : mapping
        The exact content of the text, without repeated members.
    new : mapping

    Returns
    -------
    str or None
        None if this is not possible: use the general algorithm.

    Examples
    --------
    >>> import json
    >>> revision = Revision('{"a":1e2, "b": [1,2], "c": 0}', lambda value, margin: json.dumps(value))
    >>> spliced(revision, {"a": 100.0, "b": [1, 2], "c": 0}, {"a": 100.0, "c": 7, "d": None})
    '{"a":1e2, "c": 7, "d":null}'
    """
    text = revision.text
    start = skip(text, 0)
    edits: list[_Edit] = []
    try:
        _edit_object(revision, start, old, new, edits)
    except _Impossible:
        return None
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        parts += [text[at : edit.start], edit.text]
        at = edit.stop
    return "".join((*parts, text[at:]))


def with_integers(text: str, name: str, values: Sequence[int]) -> str | None:
    """Return a text with other integers in a list that is a member of its outermost object.

    Examples
    --------
    >>> with_integers('{"shape": [3,4], "chunks": [1,4]}', "shape", (5, 4))
    '{"shape": [5,4], "chunks": [1,4]}'

    Returns
    -------
    str or None
        None if this is not possible: use the general algorithm.
    """
    try:
        at = _find(text, skip(text, 0), name).value
    except _Impossible:
        return None
    stop = text.find("]", at)
    parts = _integers(text[at:stop])
    if text[at] != "[" or len(parts) != 2 * len(values) + 1:
        return None
    parts[1::2] = map(str, values)
    return f"{text[:at]}{''.join(parts)}{text[stop:]}"


_integers = re.compile(r"(-?[0-9]+)").split
"""In ``"[1, 2"``: the text between integers, with the integers at odd positions."""


def _edit_object(
    revision: Revision, start: int, old: Mapping[str, JSON], new: Mapping[str, JSON], edits: list[_Edit]
) -> None:
    """Add the edits that change the object at `start` from content `old` to content `new`."""
    text = revision.text
    if list(old) == list(new):
        added, removed, is_same_order = frozenset[str](), frozenset[str](), True
        pairs = zip(new.items(), old.values(), strict=True)
        changed = [name for (name, value), before in pairs if before is not value]
    else:
        added, removed = frozenset(new.keys() - old.keys()), frozenset(old.keys() - new.keys())
        is_same_order = [name for name in old if name in new] == [name for name in new if name in old]
        changed = [name for name, value in new.items() if name not in added and old[name] is not value]
    if not is_same_order or len(removed) == len(old) or len(added) + len(removed) > _MANY:
        raise _Impossible
    if not changed and not added and not removed:
        return
    margin = revision.margin(start, skip(text, start + 1))
    for name in changed:
        _edit_member(revision, start, name, old[name], new[name], margin, edits)
    if removed:
        _remove(text, start, list(old), removed, edits)
    if added:
        _add(revision, start, new, added, margin, edits)
    if len(edits) > _MANY:
        raise _Impossible


def _edit_member(
    revision: Revision, start: int, name: str, old: JSON, new: JSON, margin: str | None, edits: list[_Edit]
) -> None:
    """Add the edits that change the value of one member of the object at `start`."""
    if is_object(old) and is_object(new) and old:
        before = len(edits)
        try:
            _edit_object(revision, _find(revision.text, start, name).value, old, new, edits)
        except _Impossible:
            del edits[before:]
        else:
            return
    if is_unchanged(old, new):
        return
    place = _find(revision.text, start, name)
    stop = stop_of(revision.text, place.value)
    edits.append(_Edit(place.value, stop, revision.value(place.value, stop, old, new, margin)))


def _remove(text: str, start: int, names: list[str], removed: frozenset[str], edits: list[_Edit]) -> None:
    """Add the edits that remove members. At least one member is kept."""
    run: str | None = None  # the first of several adjacent ones
    kept: str | None = None
    for name in names:
        if name in removed:
            run = name if run is None else run
            continue
        if run is not None:
            edits.append(_Edit(_find(text, start, run).start, _find(text, start, name).start, ""))
            run = None
        kept = name
    if run is not None and kept is not None:
        begin, end = (stop_of(text, _find(text, start, name).value) for name in (kept, names[-1]))
        edits.append(_Edit(begin, end, ""))


def _add(
    revision: Revision,
    start: int,
    new: Mapping[str, JSON],
    added: frozenset[str],
    margin: str | None,
    edits: list[_Edit],
) -> None:
    """Add the edits that insert members, each after the one that it follows, with the spacing of the first ones."""
    text = revision.text
    first_ones = list(islice(places_in(text, start), 2))
    comma, colon = revision.spacing(start, first_ones)
    at: int | None = None
    follows: str | None = None
    leading: list[str] = []
    for name, value in new.items():
        if name not in added:
            follows, at = name, None
            continue
        member = f"{revision.write(name, None)}:{colon}{revision.write(value, margin)}"
        if follows is None:
            leading.append(member)
            continue
        if at is None:
            at = stop_of(text, _find(text, start, follows).value)
        edits.append(_Edit(at, at, f"{comma}{member}"))
    if leading:
        at = first_ones[0].start
        kept = next(name for name in new if name not in added)
        # If the members before it are removed, it begins there.
        at = _find(text, start, kept).start
        edits.append(_Edit(at, at, "".join(f"{member}{comma}" for member in leading)))


def _find(text: str, start: int, name: str) -> Place:
    """Return the position of a member of the object at `start`, without its end.

    A string with this name before a colon, which is the only one from `start` on, must be that member, because
    the object has such a member. If there are others, the members are looked through. Raises _Impossible if these are
    large or several have the name, or if the name may be spelled with escapes.
    """
    quoted = encode_basestring(name)
    if not name or "\\" in quoted or _starts_with_structure(name):
        raise _Impossible
    if "\\" in text and (not name.isascii() or _spells_otherwise(text) is not None):
        raise _Impossible
    found: Place | None = None
    at = text.find(quoted, start)
    while at >= 0:
        # No string begins after a backslash.
        if text[at - 1] != "\\":
            colon = skip(text, at + len(quoted))
            if text[colon] == ":":
                if found is not None:
                    return _among_members(text, start, name)
                value = skip(text, colon + 1)
                found = Place(name, at, value, value)
        at = text.find(quoted, at + 1)
    if found is None:
        raise _Impossible
    return found


def _among_members(text: str, start: int, name: str) -> Place:
    """Return the position of a member of the object at `start`, of which objects within it have one, too."""
    if len(text) > _SHORT:
        raise _Impossible
    found = [place for place in places_in(text, start) if place.name == name]
    if len(found) != 1:
        raise _Impossible
    return found[0]
