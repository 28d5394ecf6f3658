"""Paths and names of nodes, and the keys that they make.

Spec: Zarr v3 core, "Node names"; Zarr v2, "Logical storage paths".
"""

from __future__ import annotations

from omnizarr.errors import NodeNameError

_V2 = 'Zarr v2, "Logical storage paths"'
_V3 = 'Zarr v3, "Node names"'
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


def normalize_v3(path: str) -> str:
    """Return a path without the slashes that a user may put before, behind and between names.

    Raises NodeNameError if a part of it is no node name.

    >>> normalize_v3("/ocean//temp/")
    'ocean/temp'
    """
    names = [name for name in path.split("/") if name]
    for name in names:
        try:
            check_v3_name(name)
        except NodeNameError as error:
            raise error.add(path=path) from None
    return "/".join(names)


def normalize_v2(path: str) -> str:
    r"""Return a path as the specification of Zarr v2 normalises it: backslashes become slashes, extra slashes go.

    Raises NodeNameError if a part of it is no node name.

    >>> normalize_v2("\\ocean/temp//")
    'ocean/temp'
    """
    names = [name for name in path.replace("\\", "/").split("/") if name]
    for name in names:
        try:
            check_v2_name(name)
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
