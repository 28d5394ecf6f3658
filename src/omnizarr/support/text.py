"""Text from documents and other sources, made safe to show."""

from __future__ import annotations

from typing import Any


def visible(text: str) -> str:
    r"""Return text without control characters that would command a terminal. Names and attributes may contain anything.

    >>> visible("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def visible_lines(text: str) -> str:
    r"""Return text of several lines, each made `visible`. Tabs are kept.

    >>> visible_lines("a\x1b[2J\n\tb")
    'a\\x1b[2J\n\tb'
    """
    if text.isprintable():
        return text
    return "".join(character if character in "\n\t" else visible(character) for character in text)


def text_of_time(value: Any) -> str:
    """Return a time as NumPy writes it. NumPy cannot write a time without a unit: it becomes a number.

    >>> import numpy as np
    >>> text_of_time(np.datetime64("2026-02-01")), text_of_time(np.array(5).view("M8"))
    ('2026-02-01', '5')
    """
    try:
        return str(value)
    except ValueError:
        return str(value.astype("int64"))
