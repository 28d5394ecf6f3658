"""Text of others, fit to be shown."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""Return text of others without what would command a terminal: names and attributes may hold anything.

    >>> visible("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
