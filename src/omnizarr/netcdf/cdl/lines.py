"""Lines of CDL: where they are broken, and what stands in them escaped.

Spec: ncdump's manual page; netcdf-c, ncdump/vardata.c (`lput`) and ncdump/utils.c (`escaped_name`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np

CONTINUED: Final = "    "

_NAME: Final = {
    **{code: f"\\%{code:02x}" for code in (*range(0x20), 0x7F)},
    **{ord(each): f"\\{each}" for each in " !\"#$%&'()*,:;<=>?[\\]^`{|}~"},
}
_LEADING_DIGIT: Final = re.compile(r"(?:^|(?<=/))[0-9]")
_CONTROLS: Final = {
    **{code: f"\\{code:03o}" for code in (*range(0x20), 0x7F)},
    **dict(zip(b"\b\f\n\r\t\v", [f"\\{each}" for each in "bfnrtv"], strict=True)),
}
_TEXT: Final = {**_CONTROLS, **{ord(each): f"\\{each}" for each in "\\'\""}}
_JSON: Final = {**_CONTROLS, **{ord(each): f"\\{each}" for each in '\\"'}}
_BYTES: Final = {**_TEXT, **{code: f"\\{code:03o}" for code in range(0x80, 0x100)}}
_BYTES_IN_LINES: Final = {**_BYTES, 0x0A: f'\\n",\n{CONTINUED}"'}


def escaped_name(name: str) -> str:
    r"""Return a name as CDL spells it; full names keep their slashes.

    >>> print(escaped_name("2 m temp."), escaped_name("größe"), escaped_name("5%"), escaped_name("a\tb"))
    \2\ m\ temp. größe \5\% a\%09b
    >>> print(escaped_name("/model/0"))
    /model/\0
    """
    return _LEADING_DIGIT.sub(r"\\\g<0>", name.translate(_NAME))


def quoted(text: str) -> str:
    r"""Return text as a string constant of CDL; what is not ASCII does not change.

    >>> print(quoted('a "b"\n\x00é'))
    "a \"b\"\n\000é"
    """
    return f'"{text.translate(_TEXT)}"'


def quoted_json(text: str) -> str:
    """Return the text of a special attribute as a string constant: as `quoted`, but apostrophes stay bare."""
    return f'"{text.translate(_JSON)}"'


def escaped_bytes(raw: bytes, *, in_lines: bool = False) -> str:
    r"""Return the values of a char variable as they stand between quotes: every byte beyond ASCII is octal.

    With `in_lines`, another string starts in a new line behind each newline.

    >>> print(escaped_bytes("é\nb".encode()))
    \303\251\nb
    """
    return raw.decode("latin-1").translate(_BYTES_IN_LINES if in_lines else _BYTES)


def width(text: str) -> int:
    """Return how far `text` moves the position in a line: ncdump counts bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


class Lines:
    """The position in a line, by which it is decided where the next line starts.

    Methods return what is to be printed.

    Attributes
    ----------
    length : int
        Of a line, two more than fit into it.
    position : int
        Bytes in the line so far, as far as ncdump counts them.
    indent : int
        Blanks before what belongs to the group.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._limit = length - 2
        self.position = 0
        self.indent = 0

    @property
    def margin(self) -> str:
        """The blanks before what belongs to the group."""
        return " " * self.indent

    def put(self, text: str) -> str:
        """Return `text`, on a new line if it does not fit into this one."""
        added = width(text)
        start = self._broken() if added > 2 and self.position + added > self._limit else ""
        self.position = self.indent if text.endswith("\n") else self.position + added
        return start + text

    def items(self, texts: Sequence[str]) -> str:
        """Return each text with a comma and a blank behind it, on as many lines as it takes.

        The same as ``put(f"{text}, ")`` for each, but not one by one.
        """
        text = ", ".join([*texts, ""])
        is_ascii = text.isascii()
        if is_ascii and self.position + len(text) <= self._limit:
            self.position += len(text)
            return text
        widths = np.fromiter(map(len if is_ascii else width, texts), np.intp, len(texts))
        ends = np.cumsum(widths + 2).tolist()
        parts = []
        done = before = 0
        while done < len(texts):
            fitting = bisect_right(ends, before + self._limit - self.position, done)
            if fitting == done:
                parts.append(self._broken())
                fitting += 1  # however long it is
            parts.extend((", ".join(texts[done:fitting]), ", "))
            self.position += ends[fitting - 1] - before
            done, before = fitting, ends[fitting - 1]
        return "".join(parts)

    def _broken(self) -> str:
        self.position = self.indent + len(CONTINUED)
        return f"\n{self.margin}{CONTINUED}"
