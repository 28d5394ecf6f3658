"""Where the members of objects are in a JSON text, without parsing it, by the native engine (``rust/src/json.rs``).

It answers for ordinary documents only. For all others, and where it is not built, use
`omnizarr.formats.documents.parse`, which defines what a document is.

Spec: RFC 8259.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from omnizarr.settings import engines


class Members(NamedTuple):
    """An object in a text, and where its members are, in bytes.

    Parameters
    ----------
    text : bytes
    path : sequence of str
        Names that lead to the object.
    start, stop : int
        Begin and end of the object, with its braces.
    names : list of str
    bounds : memoryview of int
        For each member: begin and end of its name with quotes, begin and end of its value.
    """

    text: bytes
    path: Sequence[str]
    start: int
    stop: int
    names: list[str]
    bounds: memoryview

    def value(self, number: int) -> bytes:
        """Return the text of a value."""
        return self.text[self.bounds[4 * number + 2] : self.bounds[4 * number + 3]]

    def without(self) -> bytes:
        """Return the whole text, with an empty object in the place of this one."""
        return b"%b{}%b" % (self.text[: self.start], self.text[self.stop :])

    def replaced(self, values: Mapping[str, bytes]) -> bytes:
        """Return the whole text, with an object of some of the members in the place of this one."""
        inside = b", ".join(b'"%b": %b' % (name.encode(), value) for name, value in values.items())
        return b"%b{%b}%b" % (self.text[: self.start], inside, self.text[self.stop :])

    def only(self, kept: Sequence[int]) -> bytes:
        """Return the whole text, without the members whose numbers are not `kept`.

        The numbers ascend, and the first and the last member are kept. Of ``{"b": 1, "c": 2, "d": 3}``, 0 and 2 are
        ``{"b": 1, "d": 3}``.
        """
        text = memoryview(self.text)
        parts: list[memoryview] = []
        at = 0
        for before, number in pairwise(kept):
            if number > before + 1:
                parts.append(text[at : self.bounds[4 * before + 4]])
                at = self.bounds[4 * number]
        return b"".join((*parts, text[at:]))

    def restored(self, kept: Sequence[int], text: bytes) -> tuple[bytes, list[str]] | None:
        """Return a changed text of `only` with the members that are missing there, and the names of all.

        They are inserted before the next one that was kept, which must not have been changed; None if it is missing.
        """
        changed = members(text, self.path)
        if changed is None:
            return None
        old = memoryview(self.text)
        numbers = {name: number for number, name in enumerate(changed.names)}
        parts: list[bytes | memoryview] = []
        at = 0
        names: list[str] = []
        done = 0
        for before, number in pairwise(kept):
            if number > before + 1:
                following = numbers.get(self.names[number])
                if following is None:
                    return None
                start = changed.bounds[4 * following]
                parts += [text[at:start], old[self.bounds[4 * before + 4] : self.bounds[4 * number]]]
                names += [*changed.names[done:following], *self.names[before + 1 : number]]
                at, done = start, following
        return b"".join((*parts, text[at:])), names + changed.names[done:]


def members(text: bytes, path: Sequence[str]) -> Members | None:
    """Return the members of the object at a path of names; None if it is missing, or for an unusual document.

    Of ``{"a": {"b": [1, 2], "c": {}}}`` at the path ``["a"]``, they are ``b`` and ``c``.
    """
    scanner = _scanner("json_members")
    found = None if scanner is None else scanner(text, path)
    if found is None:
        return None
    start, stop, names, bounds = found
    return Members(text, path, start, stop, names, memoryview(bounds).cast("Q"))


def is_plain(text: bytes) -> bool:
    """Whether a document certainly is valid, not too deep, without repeated members and peculiarities of netCDF-C."""
    scanner = _scanner("is_plain_json")
    return scanner is not None and bool(scanner(text))


def is_possible() -> bool:
    """Whether the native engine can answer."""
    return _scanner("json_members") is not None


@cache
def _scanner(name: str) -> Callable[..., Any] | None:
    is_refused = os.environ.get("OMNIZARR_ENGINE") == "reference"
    return None if is_refused else getattr(engines.module(), name, None)
