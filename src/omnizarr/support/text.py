"""Text from documents and other sources, made safe to show."""

from __future__ import annotations


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
