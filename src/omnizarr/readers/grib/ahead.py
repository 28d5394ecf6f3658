"""Heads of messages of a GRIB file on another machine, fetched before they are needed.

A message says how long it is, so that each is found by the one before: a request, and a wait, for each. Two things tell
more:

- An index beside the file: ``x.grib2.idx`` as wgrib2 writes it, or ``x.index`` with lines of JSON, as ECMWF does. It
  only says where to look: what is read is in the file itself.
- Messages of equal length: the next ones probably have it, too.

Then the heads of many messages are fetched at once.

Spec: the text inventory of wgrib2; the index files of ECMWF open data.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from contextlib import suppress
from itertools import islice
from typing import Final

from omnizarr.errors import OmnizarrError
from omnizarr.stores import verbs
from omnizarr.stores.manifests.file import File

TOGETHER: Final = 128
"""Heads that are fetched at once."""
_MOST_INDEX: Final = 1 << 25
_MOST_PLACES: Final = 1 << 18
_offset = re.compile(rb'"_offset" *: *([0-9]{1,18})').finditer
_line = re.compile(rb"^[0-9.]{1,20}:([0-9]{1,18}):", re.MULTILINE).finditer


class Ahead:
    """The heads of messages that are read soon.

    Parameters
    ----------
    file : File
    size : int
        The bytes of a head.
    """

    def __init__(self, file: File, size: int) -> None:
        self._file, self._size = file, size
        self._index: list[int] | None = None
        self._heads: dict[int, bytes] = {}
        self._guessed = 1
        self._length = 0

    def head(self, at: int, length: int) -> bytes | None:
        """Return the head of the message at a place, which follows one of a length; None if it is to be read alone."""
        found = self._heads.pop(at, None)
        if found is None:
            self._fetch(self._places(at, length))
            found = self._heads.pop(at, None)
        self._length = length
        return found

    def _places(self, at: int, length: int) -> list[int]:
        if self._index is None:
            self._index = _indexed(self._file)
        number = bisect_left(self._index, at)
        if number < len(self._index) and self._index[number] == at:
            return self._index[number : number + TOGETHER]
        is_regular = length == self._length and not self._heads
        self._guessed = min(2 * self._guessed, TOGETHER) if is_regular else 1
        return [at + length * number for number in range(self._guessed)]

    def _fetch(self, places: list[int]) -> None:
        size = self._file.size or 0
        inside = [place for place in places if place < size]
        self._heads = {}
        if len(inside) > 1:
            parts = self._file.read([(place, min(place + self._size, size)) for place in inside])
            self._heads = {place: bytes(part) for place, part in zip(inside, parts, strict=True)}


def _indexed(file: File) -> list[int]:
    """Return where messages begin, as an index beside the file says; nothing if there is none."""
    above, slash, name = file.key.rpartition("/")
    keys = [f"{file.key}.idx", f"{above}{slash}{name.rpartition('.')[0] or name}.index"]
    with suppress(OmnizarrError):  # an index only saves time
        for _, found in verbs.get_many_within(file.store, keys, _MOST_INDEX):
            if found is not None and (places := _parsed(bytes(found))):
                return places
    return []


def _parsed(index: bytes) -> list[int]:
    r"""Return the places in an index, in their order.

    >>> _parsed(b"1:0:d=2024010100:TMP:2 m:anl:\n2:740:d=2024010100:TMP:10 m:anl:\n")
    [0, 740]
    >>> _parsed(b'{"param": "2t", "_offset": 609, "_length": 20}\n')
    [609]
    """
    matches = (_offset if index.lstrip()[:1] == b"{" else _line)(index)
    return sorted({int(match[1]) for match in islice(matches, _MOST_PLACES)})
