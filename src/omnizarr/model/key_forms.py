"""The form of chunk keys: a head, the coordinates with a separator, and a tail."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_COORDINATE: Final = "(0|[1-9][0-9]{0,19})"
"""A coordinate in a key. 2**64 - 1 has 20 digits: no coordinate has more."""
DOCUMENTS: Final = ("zarr.json", ".z")
"""Prefixes of the last parts of the keys of documents."""


@dataclass(frozen=True, slots=True)
class KeyEncoding:
    """A bound chunk key encoding.

    Attributes
    ----------
    name : str
        "default", "v2", or the name of another package. Names with ``omnizarr`` are for formats without a name for it.
    separator : str
        "/" or "."; in the draft of 2019, any text.

    Examples
    --------
    >>> from omnizarr.model import Named, keys
    >>> keys.bind(Named("default")).encode((1, 23, 45))
    'c/1/23/45'
    >>> keys.bind(Named("omnizarr.draft2020")).encode((1, 23, 45))
    'c1/23/45'
    >>> keys.bind(Named("v2")).decode("1.23.45", 3)
    (1, 23, 45)
    """

    name: str
    separator: str
    head: str = field(repr=False)
    tail: str = field(repr=False)
    scalar: str = field(repr=False)

    @property
    def affixes(self) -> tuple[str, str, str, str] | None:
        """Head, separator and tail of all keys, and the key without dimensions. None: only `encode` makes keys."""
        return self.head, self.separator, self.tail, self.scalar

    def check(self, ndim: int) -> None:
        """Raise MetadataError if chunks of arrays with `ndim` dimensions have no keys."""

    def encode(self, coords: tuple[int, ...]) -> str:
        """Return the key of the chunk at `coords`; ``"c"`` or ``"0"`` without dimensions."""
        return f"{self.head}{self.separator.join(map(str, coords))}{self.tail}" if coords else self.scalar

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        """Return the coordinates of `key` in an array of `ndim` dimensions; None if it is not a chunk key.

        Only the exact key that `encode` returns is decoded: ``"c/01"`` is not a chunk key.
        """
        if not ndim:
            return () if key == self.scalar else None
        found = _pattern(self.head, self.separator, self.tail, ndim).fullmatch(key)
        return None if found is None else tuple(map(int, found.groups()))


def _pattern(head: str, separator: str, tail: str, ndim: int) -> re.Pattern[str]:
    """Return the form of keys with coordinates in canonical decimal form."""
    coords = re.escape(separator).join([_COORDINATE] * ndim)
    return re.compile(f"{re.escape(head)}{coords}{re.escape(tail)}")
