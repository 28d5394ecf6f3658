"""Names of dimensions with coordinates, as they are typed: ``time=2020-01 lat=40:50``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from omnizarr.errors import SelectionError
from omnizarr.formats.conventions import moments
from omnizarr.nodes.labels import Label, Scalar

_NAMED: Final = re.compile(r"(?P<name>[^\W\d][^=\s:,\[\]'\"]*)=(?P<label>.*)", re.DOTALL)


def parse(texts: Iterable[str]) -> dict[str, Label]:
    """Return the label of each dimension; nothing if none of the texts names one.

    Raises SelectionError if only some name a dimension, or two name the same.

    >>> parse(["lat=40:50", "time=2020-01", "level=500,850"])
    {'lat': slice(40, 50, None), 'time': '2020-01', 'level': [500, 850]}
    >>> parse(["0:10", "::2"])
    {}
    """
    texts = [part for text in texts for part in _parts(text)]
    found: dict[str, Label] = {}
    for text in texts:
        match = _NAMED.fullmatch(text)
        if match is None:
            continue
        if match["name"] in found:
            raise SelectionError(f"dimension {match['name']!r} is selected twice", found=text)
        found[match["name"]] = _label(match["label"])
    if found and len(found) < len(texts):
        other = next(text for text in texts if not _NAMED.fullmatch(text))
        raise SelectionError(
            "positions and coordinates are mixed", found=other, expected="the name of a dimension for each: lat=40:50"
        )
    return found


def _parts(text: str) -> list[str]:
    """Return what one argument holds: several dimensions if it was typed in quotes."""
    text = text.strip()
    return re.split(r"[\s,]+(?=[^\W\d]\w*=)", text) if text.count("=") > 1 else [text]


def _label(text: str) -> Label:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    ends = _ends(text)
    if ends is not None:
        return slice(*(_scalar(end) if end else None for end in ends))
    if "," in text:
        return [_scalar(part.strip()) for part in text.split(",")]
    return _scalar(text)


def _ends(text: str) -> tuple[str, str] | None:
    """Return both ends of a slice, "" for an open one; None if it is none.

    A colon is also in times of day, so ``..`` separates ends too.

    >>> _ends("2020-01-01T12:00"), _ends("2020-01-01T12:00:2020-01-02"), _ends("40:"), _ends("a..b")
    (None, ('2020-01-01T12:00', '2020-01-02'), ('40', ''), ('a', 'b'))
    """
    if ".." in text:
        low, _, high = text.partition("..")
        return low.strip(), high.strip()
    if ":" not in text or moments.is_moment(text):
        return None
    places = [place for place, letter in enumerate(text) if letter == ":"]
    pairs = [(text[:place].strip(), text[place + 1 :].strip()) for place in places]
    if len(pairs) == 1:
        return pairs[0]
    for pair in pairs:
        if all(not end or ":" not in end or moments.is_moment(end) for end in pair):
            return pair
    raise SelectionError("not a slice of coordinates", found=text, expected="two ends: 40:50, or 2020-01..2020-03")


def _scalar(text: str) -> Scalar:
    """Return a number, if it is one, or text. A year stays text: it is a date if the coordinates are times.

    >>> _scalar("40"), _scalar("4e1"), _scalar("2020-01"), _scalar("'40'")
    (40, 40.0, '2020-01', '40')
    """
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
