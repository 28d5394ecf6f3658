"""Numbers of bytes, as people give them: a number, or text with a unit."""

from __future__ import annotations

import operator
import re
from typing import Any, Final

_text = re.compile(r"([0-9]+)\s*([kMGT]?)(i)?B?", re.IGNORECASE).fullmatch
EXPECTED: Final = "a number of bytes, as in 500MB or 2GiB"
"""What `nbytes` understands, in words."""


def nbytes(value: Any) -> int:
    """Return a number of bytes, which may be text with a unit: ``"500MB"``, ``"2 GiB"``.

    Raises TypeError for what is neither a number nor text, and ValueError for other text.

    >>> nbytes("500MB"), nbytes("2 GiB"), nbytes("4096"), nbytes(4096)
    (500000000, 2147483648, 4096, 4096)
    """
    if not isinstance(value, str):
        return operator.index(value)
    found = _text(value.strip())
    if found is None:
        raise ValueError(f"{value!r}: expected {EXPECTED}")
    unit = 1024 if found[3] else 1000
    return int(found[1]) * int(unit ** " KMGT".index(found[2].upper() or " "))


def limit(value: Any, name: str) -> int | None:
    """Return a limit of bytes, which may be text with a unit; None stays None.

    Raises ValueError for other text and for less than one byte, and TypeError for other types; both name the keyword.

    >>> limit("1 KiB", "max_memory")
    1024
    >>> limit("lots", "max_memory")
    Traceback (most recent call last):
    ValueError: max_memory='lots': expected a number of bytes, as in 500MB or 2GiB
    """
    if value is None:
        return None
    try:
        number = nbytes(value)
    except ValueError:
        number = 0
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected {EXPECTED}, or None") from None
    if number < 1:
        what = EXPECTED if isinstance(value, str) else "at least 1"
        raise ValueError(f"{name}={value!r}: expected {what}")
    return number
