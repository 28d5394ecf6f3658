"""Names of nodes, and their keys.

Spec: Zarr v3 core, "Node names"; Zarr v2, "Logical storage paths".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from omnizarr.errors import NodeNameError

_NAME = r"(?!\.\.?(?:/|\Z))[^/\\\x00\ud800-\udfff]++"
_V2 = 'Zarr v2, "Logical storage paths"'
_V3 = 'Zarr v3, "Node names"'
_DRAFT = 'Zarr v3 drafts of 2019 and 2020, "Node names"'
_DRAFT_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_is_path = re.compile(rf"{_NAME}(?:/{_NAME})*+").fullmatch
_FORBIDDEN = "//", "/./", "/../", "\\"
"""What no path contains that a slash is put around."""
_half_a_pair = re.compile("[\ud800-\udfff]").search
_V2_DOCUMENTS = (".zarray", ".zgroup", ".zattrs", ".zmetadata")


def prefix(path: str) -> str:
    """Return the prefix of all keys of the node at `path`.

    >>> prefix("a/b"), prefix("")
    ('a/b/', '')
    """
    return f"{path}/" if path else ""


def paths_above(path: str) -> Iterator[str]:
    """Yield the paths of the groups above a node, starting with that of the root; none of the root.

    >>> list(paths_above("a/b/c")), list(paths_above(""))
    (['', 'a', 'a/b'], [])
    """
    if path:
        yield ""
        end = path.find("/")
        while end >= 0:
            yield path[:end]
            end = path.find("/", end + 1)


def upwards(path: str) -> Iterator[str]:
    """Yield a path and those of the groups above it, ending with that of the root.

    >>> list(upwards("a/b/c")), list(upwards(""))
    (['a/b/c', 'a/b', 'a', ''], [''])
    """
    yield path
    while path:
        path = path.rpartition("/")[0]
        yield path


class Above:
    """Finds which of many paths are above a key.

    Only beginnings of the key as long as one of the paths are looked up: all beginnings of a key of 64 kB are 1 GB.

    Parameters
    ----------
    paths : collection of str

    Examples
    --------
    >>> list(Above({"a/b", "a", "", "c"}).of("a/b/c/d"))
    ['a/b', 'a', '']
    """

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = paths
        self._lengths = set(map(len, paths))

    def of(self, key: str) -> Iterator[str]:
        """Yield the paths that are above a key, the nearest first."""
        end = key.rfind("/")
        while end > 0:
            if end in self._lengths and key[:end] in self._paths:
                yield key[:end]
            end = key.rfind("/", 0, end)
        if "" in self._paths:
            yield ""


def key(path: str, document: str) -> str:
    """Return the store key of a document of the node at `path`."""
    return prefix(path) + document


def is_path(path: str) -> bool:
    r"""Return whether a path stays below its start, and all its parts are allowed in stores.

    >>> [is_path(path) for path in ("a/b", "...", "", "a//b", "/a", "a/../b", ".", "a\\b")]
    [True, True, False, False, False, False, False, False]
    """
    return _is_path(path) is not None


def are_paths(paths: Sequence[str]) -> bool:
    r"""Return whether `is_path` is true of all, in a tenth of the time.

    >>> are_paths(["a/b", "..."]), are_paths(["a", ".."]), are_paths(["a\0b"]), are_paths([""]), are_paths([])
    (True, False, False, False, True)
    """
    joined = "/" + "/\0/".join(paths) + "/"
    if joined.count("\0") != max(len(paths) - 1, 0) or any(part in joined for part in _FORBIDDEN):
        return not paths
    return joined.isascii() or _half_a_pair(joined) is None


def check_v3_name(name: str) -> None:
    """Raise NodeNameError unless a node of Zarr v3 can be called `name`."""
    _check_characters(name, _V3)
    if not name.strip("."):
        raise NodeNameError("a node name cannot consist of periods only", found=repr(name), spec=_V3)
    if name == "zarr.json":
        raise NodeNameError("a node cannot be called as its document is", found=repr(name), spec=_V3)


def reserved_in_v3(name: str) -> str:
    """Return why Zarr v3 reserves a name, though a node can have it; "" if it does not.

    >>> reserved_in_v3("__xarray_dataarray_variable__")
    "Zarr v3 reserves names that begin with '__'"
    """
    return "Zarr v3 reserves names that begin with '__'" if name.startswith("__") else ""


def check_v2_name(name: str) -> None:
    """Raise NodeNameError unless a node of Zarr v2 can be called `name`."""
    _check_characters(name, _V2)
    if name in {".", ".."}:
        raise NodeNameError("'.' and '..' cannot be node names", found=repr(name), spec=_V2)
    if "\\" in name:
        raise NodeNameError("a node name cannot contain a backslash", found=repr(name), spec=_V2)
    if name in _V2_DOCUMENTS:
        raise NodeNameError("a node cannot be called as its documents are", found=repr(name), spec=_V2)


def check_draft_name(name: str) -> None:
    """Raise NodeNameError unless a node of the drafts of Zarr v3 can be called `name`."""
    _check_characters(name, _DRAFT)
    if len(name) > 255 or not set(name) <= _DRAFT_ALPHABET:
        expected = "1 to 255 of the characters a-z A-Z 0-9 . _ -"
        raise NodeNameError("a node cannot have this name", found=repr(name), expected=expected, spec=_DRAFT)
    if not name.strip("."):
        raise NodeNameError("a node name cannot consist of periods only", found=repr(name), spec=_DRAFT)


def _check_characters(name: str, spec: str) -> None:
    if not isinstance(name, str):
        raise NodeNameError("a node name is a string", found=name, spec=spec)
    if not name:
        raise NodeNameError("a node name cannot be empty", found=repr(name), spec=spec)
    if "/" in name:
        raise NodeNameError("a node name cannot contain a slash", found=repr(name), spec=spec)
    if "\0" in name:
        raise NodeNameError("a node name cannot contain a NUL character", found=repr(name), spec=spec)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise NodeNameError("a node name must be encodable as UTF-8", found=repr(name), spec=spec) from None
