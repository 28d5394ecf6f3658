"""Paths and names of nodes, and the keys that they make.

Spec: Zarr v3 core, "Node names"; Zarr v2, "Logical storage paths".
"""

from __future__ import annotations

from collections.abc import Callable

from omnizarr.errors import NodeNameError

_V2 = 'Zarr v2, "Logical storage paths"'
_V3 = 'Zarr v3, "Node names"'
_DRAFT = 'Zarr v3 drafts of 2019 and 2020, "Node names"'
_DRAFT_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_V2_DOCUMENTS = (".zarray", ".zgroup", ".zattrs", ".zmetadata")


def prefix(path: str) -> str:
    """Return what all keys of the node at `path` begin with.

    >>> prefix("a/b"), prefix("")
    ('a/b/', '')
    """
    return f"{path}/" if path else ""


def key(path: str, document: str) -> str:
    """Return the store key of a document of the node at `path`."""
    return prefix(path) + document


def check_v3_name(name: str) -> None:
    """Raise NodeNameError unless a node of Zarr v3 can be called `name`."""
    _check_characters(name, _V3)
    if not name.strip("."):
        raise NodeNameError("a node name cannot consist of periods only", found=repr(name), spec=_V3)
    if name.startswith("__"):
        raise NodeNameError("node names that start with '__' are reserved", found=repr(name), spec=_V3)
    if name == "zarr.json":
        raise NodeNameError("a node cannot be called as its document is", found=repr(name), spec=_V3)


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


def normalize_v3(path: str) -> str:
    """Return a path without the slashes that a user may put before, behind and between names.

    Raises NodeNameError if a part of it is no node name.

    >>> normalize_v3("/ocean//temp/")
    'ocean/temp'
    """
    return _normalize(path, check_v3_name)


def normalize_draft(path: str) -> str:
    """Return a path without the slashes that a user may put before, behind and between names.

    Raises NodeNameError if a part of it is no node name.

    >>> normalize_draft("/ocean//temp/")
    'ocean/temp'
    """
    return _normalize(path, check_draft_name)


def normalize_v2(path: str) -> str:
    r"""Return a path as the specification of Zarr v2 normalises it: backslashes become slashes, extra slashes go.

    Raises NodeNameError if a part of it is no node name.

    >>> normalize_v2("\\ocean/temp//")
    'ocean/temp'
    """
    return _normalize(path, check_v2_name, path.replace("\\", "/"))


def _normalize(path: str, check: Callable[[str], None], with_slashes: str | None = None) -> str:
    """Return the names of a path, joined; `with_slashes` is the path with slashes between all of them."""
    names = [name for name in (with_slashes or path).split("/") if name]
    for name in names:
        try:
            check(name)
        except NodeNameError as error:
            raise error.add(path=path) from None
    return "/".join(names)


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
