"""Text that is safe to print on any terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from omnizarr.support.text import visible

# ASCII for the symbols of `omnizarr.nodes.wording`.
_PLAIN: Final = str.maketrans({"×": "x", "·": "-", "…": "...", "→": "->"})


NOTES: Final = "notes"
"""The name of what a store says of contents that it does not show."""


@dataclass(frozen=True, slots=True)
class Branches:
    """The strokes of a tree."""

    tee: str
    corner: str
    bar: str
    gap: str = "    "


_DRAWN: Final = Branches("├── ", "└── ", "│   ")
_TYPED: Final = Branches("|-- ", "`-- ", "|   ")


def has_signs(stream: TextIO) -> bool:
    """Return whether a stream can show strokes and signs that are not ASCII."""
    try:
        "├└│×·…→".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def branches() -> Branches:
    """Return the strokes that stdout can show."""
    return _DRAWN if has_signs(sys.stdout) else _TYPED


def fit(text: str) -> str:
    """Return text with only those symbols that stdout can show."""
    return text if has_signs(sys.stdout) else text.translate(_PLAIN)


def one_line(text: str) -> str:
    r"""Return a message on one line.

    >>> one_line("first\nsecond")
    'first second'
    """
    return visible(" ".join(text.split("\n")))


class Discreet:
    """A stream that shows other text in place of secrets.

    Parameters
    ----------
    stream : TextIO
    hidings : mapping
        What to write instead of each secret, the longest first.
    """

    def __init__(self, stream: TextIO, hidings: Mapping[str, str]) -> None:
        self._stream = stream
        self._hidings = hidings

    def write(self, text: str) -> int:
        """Write text without the secrets."""
        for secret, shown in self._hidings.items():
            text = text.replace(secret, shown)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def shorten(text: str, limit: int) -> str:
    """Return text that is no longer than `limit` characters.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def to_json(value: Any, indent: int | None = None) -> str:
    """Return strict JSON; NaN and infinities become strings, as in fill values of Zarr v3.

    >>> to_json({"a": [1.5, float("nan"), float("-inf")]})
    '{"a": [1.5, "NaN", "-Infinity"]}'
    """
    text = json.dumps(_strict(value), indent=indent, ensure_ascii=not has_signs(sys.stdout), allow_nan=False)
    if text.isprintable():
        return text
    # Also escape control characters that JSON allows, but terminals interpret. Line breaks are those of the
    # indentation.
    return "".join(
        character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1] for character in text
    )


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124 - NaN alone differs from itself
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_strict(item) for item in value]
    return value


def note_lines(about: Mapping[str, Any], told: Iterable[str] = ()) -> Iterator[str]:
    """Yield a line for each note on what a store does not show, unless it was `told` before."""
    known = frozenset(told)
    yield from (fit(f"note: {visible(one_line(note))}") for note in about.get(NOTES, ()) if note not in known)
