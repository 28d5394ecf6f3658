"""Places whose names come near one that is not there: what "did you mean" names.

Looking for them must cost nothing where it is of no use: few directories are listed, and of a large one only a part.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

_MOST_ENTRIES: Final = 2000
_MOST_NAMES: Final = 3

Parts: TypeAlias = tuple[str, ...]
NamesIn: TypeAlias = Callable[[Parts], Iterable[str]]


def near_names(name: str, names: Iterable[str], most: int = _MOST_NAMES, likeness: float = 0.5) -> list[str]:
    """Return the names like one that is not among them, the most like it first.

    >>> near_names("temprature", ["salinity", "temperature"])
    ['temperature']
    """
    known = list(islice(names, _MOST_ENTRIES))
    same = [other for other in known if other.casefold() == name.casefold()]
    near = difflib.get_close_matches(name, known, n=most, cutoff=likeness)
    return list(dict.fromkeys([*same, *near]))[:most]


def meant(name: str, words: Iterable[str], most: int = 1) -> str | None:
    """Return the question whether one of a few fixed words was meant; None if none is like it.

    Such words often resemble each other, so they need a closer match than names of places.

    >>> meant("levle", ["level", "checksum"])
    "did you mean 'level'?"
    """
    return question(near_names(name, words, most, likeness=0.6))


def near_places(there: Parts, missing: Sequence[str], names_in: NamesIn) -> list[Parts]:
    """Return places like one that is not there: several of its parts may be misspelt.

    Parameters
    ----------
    there : tuple of str
        The part of the path that exists.
    missing : sequence of str
        The rest. The first of it does not exist.
    names_in : callable
        Returns the names of what lies at a place.

    Returns
    -------
    list of tuple of str
        Those that reach deepest, the most like it first; none if nothing comes near.
    """
    first = missing[0]
    found = [_completed((*there, name), missing[1:], names_in) for name in near_names(first, names_in(there))]
    depth = max(map(len, found), default=0)
    return [place for place in found if len(place) == depth]


def _completed(place: Parts, missing: Sequence[str], names_in: NamesIn) -> Parts:
    """Return the place as deep below `place` as names lead that are, or come near, those asked for."""
    for name in missing:
        names = list(islice(names_in(place), _MOST_ENTRIES))
        near = [name] if name in names else near_names(name, names)
        if not near:
            break
        place = (*place, near[0])
    return place


def question(places: Iterable[str | Path]) -> str | None:
    """Return what to ask the user; None if there is nothing to ask.

    >>> question(["ocean", "oceans"])
    "did you mean 'ocean' or 'oceans'?"
    """
    words = " or ".join(repr(str(place)) for place in places)
    return f"did you mean {words}?" if words else None


def near_directories(path: Path) -> list[Path]:
    """Return directories (and zip archives) like one that does not exist; `path` is absolute."""
    there = next((place for place in (path, *path.parents) if os.path.lexists(place)), path)
    if there == path:
        return []
    missing = path.relative_to(there).parts
    return [Path(*place) for place in near_places(there.parts, missing, _directories_in)]


def _directories_in(place: Parts) -> list[str]:
    try:
        with os.scandir(Path(*place)) as entries:
            return [
                entry.name
                for entry in islice(entries, _MOST_ENTRIES)
                if not entry.name.startswith(".") and (entry.name.endswith(".zip") or entry.is_dir())
            ]
    except OSError:
        return []  # without the right to list there are no suggestions
