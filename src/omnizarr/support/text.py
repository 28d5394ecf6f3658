"""Text of others, made safe to show, and amounts in words."""

from __future__ import annotations

from typing import Any, Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


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


def size(nbytes: int) -> str:
    """Return a number of bytes in a suitable unit.

    >>> size(13915645), size(949), size(2**63)
    ('13.3 MiB', '949 B', '8.0 EiB')
    """
    if nbytes < 1024:
        return f"{nbytes} B"
    # Integers as long as possible: an array may have more bytes than a float can count.
    step = min((nbytes.bit_length() - 1) // 10, len(_UNITS))
    tenths = (nbytes * 10 + (1 << (10 * step - 1))) >> (10 * step)
    if tenths >= 10240 and step < len(_UNITS):
        step, tenths = step + 1, 10
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth} {_UNITS[step - 1]}" if whole < 10**9 else f"{whole:.2e} {_UNITS[step - 1]}"


def duration(seconds: float) -> str:
    """Return a time in suitable units.

    >>> duration(0.04), duration(7.62), duration(7), duration(75), duration(9000)
    ('0.04 s', '7.6 s', '7 s', '1 min 15 s', '2 h 30 min')
    """
    if isinstance(seconds, int) and seconds < 60:
        return f"{seconds} s"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def plural(count: int, word: str) -> str:
    """Return a number with its noun.

    >>> plural(1, "array"), plural(1200, "array")
    ('1 array', '1,200 arrays')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"
