"""Where the members of objects are in a JSON text, without parsing it, by the native engine (``rust/src/json.rs``).

It answers for ordinary documents only. For all others, and where it is not built, use
`omnizarr.formats.documents.parse`, which defines what a document is.

Spec: RFC 8259.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from omnizarr.settings import engines


class Members(NamedTuple):
    """An object in a text, and where its members are, in bytes.

    Parameters
    ----------
    text : bytes
    start, stop : int
        Begin and end of the object, with its braces.
    names : list of str
    bounds : memoryview of int
        For each member: begin and end of its name with quotes, begin and end of its value.
    """

    text: bytes
    start: int
    stop: int
    names: list[str]
    bounds: memoryview

    def values(self) -> list[bytes]:
        """Return the texts of all values."""
        text = self.text
        return [text[start:stop] for start, stop in zip(self.bounds[2::4], self.bounds[3::4], strict=True)]

    def without(self) -> bytes:
        """Return the whole text, with an empty object in the place of this one."""
        return b"%b{}%b" % (self.text[: self.start], self.text[self.stop :])


def members(text: bytes, path: Sequence[str]) -> Members | None:
    """Return the members of the object at a path of names; None if it is missing, or for an unusual document.

    Examples
    --------
    >>> found = members(b'{"a": {"b": [1, 2], "c": {}}}', ["a"])
    >>> found is None or list(zip(found.names, found.values()))  # None without the native engine
    [('b', b'[1, 2]'), ('c', b'{}')]
    """
    scanner = _scanner("json_members")
    found = None if scanner is None else scanner(text, path)
    if found is None:
        return None
    start, stop, names, bounds = found
    return Members(text, start, stop, names, memoryview(bounds).cast("Q"))


def is_plain(text: bytes) -> bool:
    """Whether a document certainly is valid, not too deep, and without repeated members."""
    scanner = _scanner("is_plain_json")
    return scanner is not None and bool(scanner(text))


@cache
def _scanner(name: str) -> Callable[..., Any] | None:
    native = None if engines.choice() == "reference" else engines.module()
    return getattr(native, name, None)
