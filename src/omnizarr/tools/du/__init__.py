"""The storage that a hierarchy takes, node by node."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.du.report import Usage


def du(
    store: Any,
    *,
    path: str | None = None,
    progress: Progress = None,
    storage_options: Any = None,
) -> Usage:
    """Return how many bytes and chunks a node and each node below take, like ``du`` for directories.

    A group counts with everything below it. Bytes are those of chunks, of documents, and of other files, which
    belong to no node: temporary files, chunks of no array, files of other programs. So the total is that of all
    files in the directory. This reads all documents once and lists the keys once. It reads no chunk.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    path : str, optional
        Path of the node in the store.
    progress : bool, callable or bar, optional
        As for `convert`; it counts keys.
    storage_options : mapping, optional
        Options of the store, if you pass a URL.

    Returns
    -------
    Usage
        It has `nodes` (`NodeUsage`: `bytes_stored`, `bytes_logical`, `stored`, `expected`, `ratio`, ...),
        `total`, `rows` and `to_dict`. ``print`` shows it.

    Raises
    ------
    NodeNotFoundError
        If there is no Zarr node.
    StoreError
        If the store fails. If it cannot list keys at all, sizes are None.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> temp = root.create_array("ocean/temp", shape=(4, 4), chunks=(2, 2), dtype="int16", compressors=None)
    >>> temp[:2] = 1
    >>> usage = omnizarr.du(root)
    >>> [(node.path, node.stored, node.expected, node.bytes_logical) for node in usage.nodes]
    [('ocean/temp', 2, 4, 32), ('ocean', 2, 4, 32), ('', 2, 4, 32)]
    >>> usage.total.chunks.nbytes
    16
    """
    usage: Usage = import_module("omnizarr.tools.du.measuring").run(**locals())
    return usage
