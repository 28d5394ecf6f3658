"""Completion of paths: files, and nodes inside hierarchies.

Directories and zip archives are read without the library, because importing it would make completion slow. Only regular
files and directories are looked at, documents up to a length, and all of it for a few seconds.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnizarr.support import workers
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.api import opening
    from omnizarr.cli import locate
    from omnizarr.nodes import group as groups
else:  # imported where directories and archives do not do
    groups = Lazy("omnizarr.nodes.group")
    locate = Lazy("omnizarr.cli.locate")
    opening = Lazy("omnizarr.api.opening")

_GROUP_OF_V2: Final = ".zgroup"
_ARRAY_OF_V2: Final = ".zarray"
_NODE: Final = "zarr.json"
_DOCUMENTS: Final = (_NODE, _GROUP_OF_V2, _ARRAY_OF_V2)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer would be waited for
_OF_V1: Final = ("meta", "attrs")
_MOST: Final = 5000
_SECONDS: Final = 3.0
"""Seconds that a shell waits."""
_LENGTH: Final = 1 << 20
"""Number of bytes of a document that are read."""


def complete(typed: str) -> list[str]:
    """Return the paths that begin with the typed text; paths that continue end with a slash.

    In a directory, these are its files; in a hierarchy its groups and arrays.
    """
    head, slash, tail = typed.rpartition("/")
    if "://" in head + slash:
        found = _in_time(lambda: _from_library(head)) if "://" in head else []
    else:
        folder = str(Path(head + slash).expanduser())
        found = _in_time(lambda: list(_local(folder, is_hidden=tail.startswith("."))))
    return sorted(f"{head}{slash}{name}" for name in found if name.startswith(tail))


def _local(folder: str, *, is_hidden: bool) -> Iterator[str]:
    place = Path(folder)
    if not place.is_dir():
        yield from _inside_file(place)
    elif _is_array(place):
        return
    elif _is_of_another_format(place):
        yield from _from_library(folder)
    elif _is_node(place) or any(map(_is_node, tuple(place.resolve().parents)[:8])):
        yield from (f"{name}{'' if _is_array(place / name) else '/'}" for name in _nodes(place))
    else:
        for entry in os.scandir(place):
            if is_hidden or not entry.name.startswith("."):
                yield f"{entry.name}/" if entry.is_dir() and not _is_array(Path(entry.path)) else entry.name


def _is_node(place: Path) -> bool:
    return any((place / name).exists() for name in _DOCUMENTS)


def _is_array(place: Path) -> bool:
    if (place / _ARRAY_OF_V2).exists():
        return True
    # The first bytes of a regular file; nothing if it is missing or something else, such as a pipe.
    path = place / _NODE
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file:
            text = file.read(_LENGTH) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        text = b""
    return b'"array"' in text and b'"data_type"' in text and b'"consolidated_metadata"' not in text


def _is_of_another_format(place: Path) -> bool:
    """Return whether only the library can recognise nodes: in Zarr v1, and in the drafts of v3."""
    return all((place / name).exists() for name in _OF_V1) or ((place / _NODE).exists() and (place / "meta").is_dir())


def _nodes(place: Path) -> Iterator[str]:
    """Yield the directories that are nodes, or lead to some."""
    for number, entry in enumerate(os.scandir(place)):
        if number == _MOST:
            return
        if entry.is_dir() and (_is_node(Path(entry.path)) or _leads_to_nodes(entry.path)):
            yield entry.name


def _leads_to_nodes(folder: str) -> bool:
    """Return whether a directory without a document is an implied group, because there is a node below it."""
    return any(
        entry.is_dir() and _is_node(Path(entry.path)) for _, entry in zip(range(100), os.scandir(folder), strict=False)
    )


def _inside_file(place: Path) -> Iterator[str]:
    inside: list[str] = []
    while not place.exists() and place.parent != place:
        inside.insert(0, place.name)
        place = place.parent
    if not (_is_of_another_format(place) if place.is_dir() else place.is_file()):
        return
    zipfile = import_module("zipfile")
    if place.is_dir() or not zipfile.is_zipfile(place):
        yield from _from_library(str(Path(place, *inside)))
        return
    with zipfile.ZipFile(place) as archive:

        def read(key: str) -> bytes:
            with archive.open(key) as file:
                return bytes(file.read(_LENGTH))

        yield from _members(archive.namelist(), "/".join(inside), read)


def _members(keys: Iterable[str], path: str, read: Callable[[str], bytes]) -> Iterator[str]:
    """Yield the nodes directly below a path; those that are groups with a slash."""
    known = set(keys)
    prefix = f"{path}/" if path else ""
    found: dict[str, bool] = {}
    for key in known:
        if key.startswith(prefix) and key.endswith(_DOCUMENTS):
            name, slash, rest = key[len(prefix) :].partition("/")
            if slash:
                found[name] = found.get(name, False) or rest not in _DOCUMENTS
    for name, leads_on in found.items():
        node = f"{prefix}{name}/"
        is_array = node + _ARRAY_OF_V2 in known or (node + _NODE in known and b'"data_type"' in read(node + _NODE))
        yield name if is_array and not leads_on else f"{name}/"


def _from_library(place: str) -> list[str]:
    """Return the members of a group of any format, in any store."""
    if "://" not in place:
        return _members_of(lambda: locate.open_node(place))
    # Consolidated metadata of any group above works even if the store cannot list.
    url, inside = place, ""
    while url.count("/") > 2:
        found = _members_of(partial(_from_group, url, inside or "/"))
        if found:
            return found
        url, _, name = url.rpartition("/")
        inside = f"{name}/{inside}".strip("/")
    return []


def _from_group(url: str, inside: str) -> Any:
    return opening.open_group(url, mode="r")[inside]


def _members_of(open_node: Callable[[], Any]) -> list[str]:
    with suppress(Exception):  # a group above may have it
        node = open_node()
        members = node.members() if isinstance(node, groups.Group) else ()
        return [f"{name}/" if isinstance(found, groups.Group) else name for name, found in members]
    return []


def _in_time(look: Callable[[], list[str]]) -> list[str]:
    """Return the result, or nothing if it fails or takes longer than a few seconds."""
    found: list[Any] = []

    def extend() -> None:
        with suppress(Exception):  # a shell can do nothing with an error
            found.extend(look())

    workers.start(extend, "omnizarr-completion").wait(_SECONDS)
    return list(found)
