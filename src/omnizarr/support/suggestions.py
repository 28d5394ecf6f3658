"""Existing names similar to a missing one, for "did you mean".

Suggestions must cost little, because they may be useless: few directories are listed, and large ones only in part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import difflib
    import pathlib
    from pathlib import Path
else:  # when something is misspelt
    difflib = Lazy("difflib")
    pathlib = Lazy("pathlib")

_MOST_ENTRIES: Final = 2000
_MOST_NAMES: Final = 3

Parts: TypeAlias = tuple[str, ...]
NamesIn: TypeAlias = Callable[[Parts], Iterable[str]]


def near_names(name: str, names: Iterable[str], most: int = _MOST_NAMES, likeness: float = 0.5) -> list[str]:
    """Return existing names similar to a missing one, the most similar first.

    >>> near_names("temprature", ["salinity", "temperature"])
    ['temperature']
    """
    known = list(islice(names, _MOST_ENTRIES))
    same = [other for other in known if other.casefold() == name.casefold()]
    near = difflib.get_close_matches(name, known, n=most, cutoff=likeness)
    return list(dict.fromkeys([*same, *near]))[:most]


def meant(name: str, words: Iterable[str], most: int = 1) -> str | None:
    """Return the question whether one of a few fixed words was meant; None if no word is similar.

    Such words often resemble each other, so they must match more closely than names of places.

    >>> meant("levle", ["level", "checksum"])
    "did you mean 'level'?"
    """
    return question(near_names(name, words, most, likeness=0.6))


def near_places(there: Parts, missing: Sequence[str], names_in: NamesIn) -> list[Parts]:
    """Return places similar to a missing one. Several parts of its path may be misspelt.

    Parameters
    ----------
    there : tuple of str
        The existing part of the path.
    missing : sequence of str
        The rest of the path. Its first part does not exist.
    names_in : callable
        Returns the names at a place.

    Returns
    -------
    list of tuple of str
        The places that match the most parts, the most similar first. Empty if nothing is similar.
    """
    first = missing[0]
    found = [_completed((*there, name), missing[1:], names_in) for name in near_names(first, names_in(there))]
    depth = max(map(len, found), default=0)
    return [place for place in found if len(place) == depth]


def _completed(place: Parts, missing: Sequence[str], names_in: NamesIn) -> Parts:
    """Return the place below `place` that follows the names asked for, or similar ones, as deep as they exist."""
    for name in missing:
        names = list(islice(names_in(place), _MOST_ENTRIES))
        near = [name] if name in names else near_names(name, names)
        if not near:
            break
        place = (*place, near[0])
    return place


def question(places: Iterable[str | Path]) -> str | None:
    """Return the question to the user; None if there are no suggestions.

    >>> question(["ocean", "oceans"])
    "did you mean 'ocean' or 'oceans'?"
    """
    words = " or ".join(repr(str(place)) for place in places)
    return f"did you mean {words}?" if words else None


def near_directories(path: Path) -> list[Path]:
    """Return directories and zip archives similar to one that does not exist. `path` is absolute."""
    there = next((place for place in (path, *path.parents) if os.path.lexists(place)), path)
    if there == path:
        return []
    missing = path.relative_to(there).parts
    return [pathlib.Path(*place) for place in near_places(there.parts, missing, _directories_in)]


def _directories_in(place: Parts) -> list[str]:
    try:
        with os.scandir(pathlib.Path(*place)) as entries:
            return [
                entry.name
                for entry in islice(entries, _MOST_ENTRIES)
                if not entry.name.startswith(".") and (entry.name.endswith(".zip") or entry.is_dir())
            ]
    except OSError:
        return []  # without the right to list there are no suggestions
