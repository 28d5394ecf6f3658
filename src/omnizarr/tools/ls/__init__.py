"""The members of a group, in one line each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.nodes.options import StoreLike
    from omnizarr.tools.ls.report import Listing


def ls(
    store: StoreLike,
    *,
    path: str | None = None,
    recursive: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Listing:
    """Return the members of a group, with the shape and data type of arrays.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
        An array is its only member.
    path : str, optional
        Path of the group in the store.
    recursive : bool
        Whether to list everything below, with full paths.
    storage_options : mapping, optional
        Options of the store, if you pass a URL.

    Returns
    -------
    Listing
        A list of entries with `name`, `kind` ("array", "group" or "unreadable"), `shape`, `data_type` and `problem`.
        ``print`` shows one line for each, like ``h5ls``.

    Raises
    ------
    NodeNotFoundError
    StoreError
        If the store cannot list keys, and no document names the members.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> root["ocean/temp"] = [1.5, 2.5]
    >>> root["depth"] = [1, 2, 3]
    >>> print(omnizarr.ls(root))
    depth                    Array {3} int64
    ocean                    Group
    >>> [entry.name for entry in omnizarr.ls(root, recursive=True)]
    ['/', '/depth', '/ocean', '/ocean/temp']
    """
    found: Listing = import_module("omnizarr.tools.ls.report").run(**locals())
    return found
