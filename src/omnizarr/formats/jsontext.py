"""Changing JSON within its own text, so that unchanged parts keep every space and digit.

`revised` changes the content of a text; `JSONText` changes what pointers name.

Spec: RFC 8259; pointers: RFC 6901.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from omnizarr.formats.reader import is_list, is_object, join
from omnizarr.formats.spelling import same
from omnizarr.model import JSON

_decoder = json.JSONDecoder()
_blank = re.compile(r"[ \t\n\r]*")
_ATOMS = frozenset({str, int, bool})
_tokens = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|(-?Infinity|NaN)', re.DOTALL)


class Place(NamedTuple):
    """The position of an object's member or a list's item in the text."""

    name: str
    start: int
    """Start of its name; for an item, of its value."""
    value: int
    stop: int


def revised(text: str, old: JSON, new: JSON, write: Callable[[JSON, str | None], str]) -> str:
    r"""Return a text with content `old` changed to content `new`. Equal values and members keep their text.

    Members of `text` that are neither in `old` nor in `new` stay. Equal members of `old` and `new` that are not
    in `text` are not written, because the text expresses them differently.

    Parameters
    ----------
    text : str
    old, new : JSON
    write : callable
        Returns the text of a new value. The second argument is the beginning of its further lines ("\n" and
        spaces; None: it has one line).

    Examples
    --------
    >>> revised('{"a":1e2, "b": [1,2], "c": 0}', {"a": 100.0, "b": [1, 2], "c": 0}, {"a": 100.0, "b": [1, 3]},
    ...         lambda value, margin: json.dumps(value))
    '{"a":1e2, "b": [1,3]}'
    """
    start = skip(text, 0)
    stop = stop_of(text, start)
    return text[:start] + Revision(text, write).value(start, stop, old, new, "\n") + text[stop:]


@dataclass(frozen=True, slots=True)
class Revision:
    """The comparison of a text with its new content."""

    text: str
    write: Callable[[JSON, str | None], str]

    def value(self, start: int, stop: int, old: JSON, new: JSON, margin: str | None) -> str:
        """Return the text of `new`, replacing the text from `start` to `stop` with content `old`."""
        if is_object(old) and is_object(new) and self.text[start] == "{":
            # Python compares objects fast, but considers 1 equal to 1.0, and NaN unequal to NaN.
            is_changed = old != new or not is_unchanged(old, new)
            return self._object(start, stop, old, new, margin) if is_changed else self.text[start:stop]
        if is_unchanged(old, new):
            return self.text[start:stop]
        if is_list(old) and is_list(new) and len(old) == len(new) and self.text[start] == "[":
            places = list(places_in(self.text, start))
            if len(places) == len(old):
                inner = self.margin(start, places[0].start) if places else None
                items = zip(places, old, new, strict=True)
                pieces = [self.value(place.value, place.stop, before, after, inner) for place, before, after in items]
                return self._in_place(start, stop, places, pieces)
        return self.write(new, margin)

    def _object(
        self, start: int, stop: int, old: Mapping[str, JSON], new: Mapping[str, JSON], margin: str | None
    ) -> str:
        places = list(places_in(self.text, start))
        if not places:
            return self.write(new, margin) if new else self.text[start:stop]
        there = {place.name: place for place in places}  # among repeated names, the last one counts
        inner = self.margin(start, places[0].start)
        between, colon = self.spacing(start, places)
        pieces: dict[str, str] = {}
        for name, value in new.items():
            place = there.get(name)
            if place is not None and name in old:
                changed = self.value(place.value, place.stop, old[name], value, inner)
                pieces[name] = self.text[place.start : place.value] + changed
            elif name not in old or not same(old[name], value):
                pieces[name] = f"{self.write(name, None)}:{colon}{self.write(value, inner)}"
        for name, place in there.items():
            if name not in old and name not in new:
                pieces[name] = self.text[place.start : place.stop]
        if list(pieces) == [place.name for place in places]:
            return self._in_place(start, stop, places, list(pieces.values()))
        if not pieces:
            return "{}"
        opening = self.text[start + 1 : places[0].start]
        return f"{{{opening}{between.join(pieces.values())}{self.text[places[-1].stop : stop]}"

    def _in_place(self, start: int, stop: int, places: Sequence[Place], pieces: Sequence[str]) -> str:
        """Return the text from `start` to `stop` with other pieces in the same positions."""
        parts = []
        for place, piece in zip(places, pieces, strict=True):
            parts += [self.text[start : place.start], piece]
            start = place.stop
        return "".join((*parts, self.text[start:stop]))

    def margin(self, start: int, first: int) -> str | None:
        """Return the beginning of each further line of a member; None if the members are on one line.

        `start` is the start of the object or list, `first` the start of its first member.
        """
        _, line_break, indentation = self.text[start + 1 : first].rpartition("\n")
        return line_break + indentation if line_break else None

    def spacing(self, start: int, places: Sequence[Place]) -> tuple[str, str]:
        """Return the text between the members of an object, and between a colon and its value."""
        first = places[0]
        colon = self.text[first.start : first.value].rpartition(":")[2]
        if len(places) > 1:
            return self.text[first.stop : places[1].start], colon
        return f",{self.text[start + 1 : first.start] or ' '}", colon


def is_unchanged(old: JSON, new: JSON) -> bool:
    """Whether two values are equal, with members of objects in the same order."""
    if old is new:
        return True
    if type(old) in _ATOMS:
        return type(old) is type(new) and old == new
    if is_object(old) and is_object(new):
        return list(old) == list(new) and all(map(is_unchanged, old.values(), new.values()))
    if is_list(old) and is_list(new):
        return len(old) == len(new) and all(map(is_unchanged, old, new))
    return same(old, new)


@dataclass(slots=True)
class JSONText:
    r"""A document as text. A NaN that is inserted is written as the unquoted token.

    Examples
    --------
    >>> text = JSONText('{"shape": [4],  "level":"3"}')
    >>> text.replace("/level", 3)
    >>> text.insert("", "filters", None)
    >>> text.text
    '{"shape": [4],  "level":3, "filters": null}'
    >>> text.remove("/level")
    >>> text.text
    '{"shape": [4],  "filters": null}'
    """

    text: str

    def get(self, pointer: str) -> JSON:
        """Return the value at a pointer. Raises KeyError if there is none."""
        value: JSON = _decoder.raw_decode(self.text, self.span(pointer)[0])[0]
        return value

    def span(self, pointer: str) -> tuple[int, int]:
        """Return start and end of the value at a pointer. Raises KeyError if there is none."""
        start = skip(self.text, 0)
        stop = stop_of(self.text, start)
        for name in _names(pointer):
            place = self._find(start, name)
            start, stop = place.value, place.stop
        return start, stop

    def replace(self, pointer: str, value: JSON) -> None:
        """Replace a value by another."""
        start, stop = self.span(pointer)
        self.text = self.text[:start] + json.dumps(value) + self.text[stop:]

    def insert(self, pointer: str, name: str, value: JSON) -> None:
        """Add a member to the end of an object, with the spacing of the others."""
        start, stop = self.span(pointer)
        places = list(places_in(self.text, start))
        written = json.dumps(value)
        if not places:
            self.text = f"{self.text[:start]}{{{json.dumps(name)}: {written}}}{self.text[stop:]}"
            return
        first, last = places[0], places[-1]
        before = self.text[start + 1 : first.start] or " "
        colon = self.text[first.start : first.value].rpartition(":")[2]
        member = f",{before}{json.dumps(name)}:{colon}{written}"
        self.text = self.text[: last.stop] + member + self.text[last.stop :]

    def insert_item(self, pointer: str, index: int, value: JSON) -> None:
        """Insert an item into a list that is not empty, before another or at the end."""
        places = list(places_in(self.text, self.span(pointer)[0]))
        written = json.dumps(value)
        if index < len(places):
            at = places[index].start
            self.text = f"{self.text[:at]}{written}, {self.text[at:]}"
        else:
            at = places[-1].stop
            self.text = f"{self.text[:at]}, {written}{self.text[at:]}"

    def remove(self, pointer: str) -> None:
        """Remove a member of an object."""
        above, _, name = pointer.rpartition("/")
        start = self.span(above)[0]
        places = list(places_in(self.text, start))
        number = max(i for i, place in enumerate(places) if place.name == next(_names(f"/{name}")))
        self._cut(start, places, number)

    def unrepeat(self) -> bool:
        """Remove members that are repeated with the same value, and return whether no repeated member is left."""
        pointer = self._repeated(0, "")
        while pointer is not None:
            start = self.span(pointer)[0]
            places = list(places_in(self.text, start))
            same = _same_again(self.text, places)
            if same is None:
                return False
            self._cut(start, places, same)
            pointer = self._repeated(0, "")
        return True

    def quote_nonfinite(self, keep: Sequence[str] = ()) -> None:
        """Quote bare NaN, Infinity and -Infinity, but not below the pointers `keep`."""
        kept = [self.span(pointer) for pointer in keep]

        def quote(match: re.Match[str]) -> str:
            is_kept = match[1] is None or any(start <= match.start() < stop for start, stop in kept)
            return match[0] if is_kept else f'"{match[1]}"'

        self.text = _tokens.sub(quote, self.text)

    def _cut(self, start: int, places: list[Place], number: int) -> None:
        if number + 1 < len(places):
            begin, end = places[number].start, places[number + 1].start
        else:
            begin, end = (places[number - 1].stop if number else start + 1), places[number].stop
        self.text = self.text[:begin] + self.text[end:]

    def _find(self, start: int, name: str) -> Place:
        found = None
        for place in places_in(self.text, start):
            if place.name == name:
                found = place  # among several, the last one counts
        if found is None:
            raise KeyError(name)
        return found

    def _repeated(self, start: int, pointer: str) -> str | None:
        """Return the pointer of an object with repeated members."""
        places = list(places_in(self.text, skip(self.text, start)))
        if len({place.name for place in places}) < len(places):
            return pointer
        for place in places:
            if self.text[place.value] in "{[":
                found = self._repeated(place.value, join(pointer, place.name))
                if found is not None:
                    return found
        return None


def _same_again(text: str, places: list[Place]) -> int | None:
    """Return the number of a member that repeats an earlier one; None if a repeated one differs."""
    seen: dict[str, str] = {}
    again = None
    for number, place in enumerate(places):
        value = json.dumps(_decoder.raw_decode(text, place.value)[0])
        if seen.setdefault(place.name, value) != value:
            return None
        if again is None and any(other.name == place.name for other in places[:number]):
            again = number
    return again


def _names(pointer: str) -> Iterator[str]:
    for name in pointer.split("/")[1:]:
        yield name.replace("~1", "/").replace("~0", "~")


def stop_of(text: str, start: int) -> int:
    """Return the end of the value that begins at a position."""
    stop: int = _decoder.raw_decode(text, start)[1]
    return stop


def skip(text: str, position: int) -> int:
    """Return the position of the next character that is not a blank."""
    match = _blank.match(text, position)
    return match.end() if match is not None else position


def places_in(text: str, start: int) -> Iterator[Place]:
    """Yield the members of an object, the items of a list; nothing for other values."""
    opening = text[start]
    if opening not in "{[":
        return
    position = skip(text, start + 1)
    number = 0
    while text[position] not in "}]":
        begin = position
        name = str(number)
        if opening == "{":
            name, position = _decoder.raw_decode(text, position)
            position = skip(text, skip(text, position) + 1)
        stop = stop_of(text, position)
        yield Place(name, begin, position, stop)
        number += 1
        position = skip(text, stop)
        if text[position] == ",":
            position = skip(text, position + 1)
