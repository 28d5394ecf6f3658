"""What a node is, and how much of it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.nodes.info_card import ArrayInfo, GroupInfo
    from omnizarr.nodes.options import StoreLike


def info(
    store: StoreLike, *, path: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> ArrayInfo | GroupInfo:
    """Return what a node is: data type, shape, chunks, codecs; and how many chunks and bytes are stored.

    Every key below the node is listed to count chunks. `Array.info` and `Group.info` count nothing.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    path : str, optional
        Path of the node in the store.
    storage_options : mapping, optional
        Options of the store, if you pass a URL.

    Returns
    -------
    ArrayInfo or GroupInfo
        ``print`` shows it, and notebooks do. Its attributes are the facts.

    Raises
    ------
    NodeNotFoundError

    Examples
    --------
    >>> import omnizarr
    >>> values = {}
    >>> array = omnizarr.create_array(values, shape=(8,), chunks=(2,), dtype="int64")
    >>> array[:3] = 1
    >>> facts = omnizarr.info(values)
    >>> facts.shape, facts.chunks_stored, facts.chunks_expected
    ((8,), 2, 4)
    """
    node = import_module("omnizarr.api.opening").open(store, "r", path=path, storage_options=storage_options)
    found: ArrayInfo | GroupInfo = node.info_complete()
    return found
