r"""JSON as netCDF-C wrote it before it was JSON.

Up to 4.8.1 it wrote quotes within strings as ``\'`` (and apostrophes as they are), and all versions write numbers as
users typed them: ``1.``, ``.5``, ``+1``. What else is broken stays broken.

Spec: RFC 8259, sections 6 and 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from omnizarr.model import JSON, Note

_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[-+.0-9][-+.0-9eE]*|[^-+.0-9"]+|"', re.DOTALL)
_ESCAPES: Final = re.compile(r"\\(.)", re.DOTALL)
_NUMBER: Final = re.compile(r"([-+]?)([0-9]*)(\.?)([0-9]*)((?:[eE][-+]?[0-9]+)?)")


class Mended(dict[str, JSON]):
    """A document that was not valid JSON, and is understood nevertheless.

    Attributes
    ----------
    notes : tuple of Note
        What it was.
    """

    notes: tuple[Note, ...] = ()


def mend(text: str) -> tuple[str, tuple[Note, ...]]:
    r"""Return text with what is known of netCDF-C put right, and notes of it; none if there is nothing of the kind.

    >>> mended, notes = mend('{"a": "say \\\'hi\\\'", "b": [1., .5, +1]}')
    >>> print(mended)
    {"a": "say \"hi\"", "b": [1.0, 0.5, 1]}
    >>> len(notes)
    2
    """
    found: set[str] = set()

    def mended(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == '"':
            return _ESCAPES.sub(_quote(found), token) if "\\'" in token else token
        return _number(token, found) if token[0] in "-+.0123456789" else token

    result = _TOKENS.sub(mended, text)
    return result, tuple(Note("", f"not valid JSON: {what}", "RFC 8259") for what in sorted(found))


def _quote(found: set[str]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        if match[1] != "'":
            return match[0]
        found.add("\\' in a string, taken as the quote \" that netCDF-C 4.8 wrote so")
        return '\\"'

    return replace


def _number(token: str, found: set[str]) -> str:
    match = _NUMBER.fullmatch(token)
    if match is None or not (match[2] or match[4]):
        return token
    sign, whole, point, fraction, exponent = match.groups()
    if sign != "+" and whole and (fraction or not point):
        return token
    found.add("a number with nothing on one side of its point, or with a plus, taken as what it means")
    return f"{sign.replace('+', '')}{whole or '0'}{'.' if point else ''}{fraction or ('0' if point else '')}{exponent}"
