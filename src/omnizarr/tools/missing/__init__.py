"""Chunks of an array that are not stored."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.support.progress import Progress
    from omnizarr.tools.missing.absent import MissingChunks


def missing(
    store: Any,
    *,
    path: str | None = None,
    inner: bool = False,
    progress: Progress = None,
    storage_options: Any = None,
) -> MissingChunks:
    """Return the chunks of an array that are not stored. They read as the fill value.

    This takes one listing, and memory of one bit per chunk. No chunk is read. The result yields coordinates,
    regions of elements or keys one by one, also for arrays with many millions of chunks.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array or mutable mapping
    path : str, optional
        Path of the array in the store.
    inner : bool, default False
        Whether to look for inner chunks of shards. The index of each shard is then read.
    progress : bool, callable or bar, optional
        As for `convert`; it counts keys.
    storage_options : mapping, optional
        Options of the store, if you pass a URL.

    Returns
    -------
    MissingChunks
        It has `count`, `stored`, `expected`, and the iterators `coords`, `regions` and `keys`. Iterating over
        it yields coordinates.

    Raises
    ------
    ContainsGroupError
        If the node is a group.
    StoreError
        If the store fails; if it cannot be listed and the array has more than a million chunks.
    UnknownExtensionError
        If the grid or the chunk key encoding of the array is unknown.
    ShardIndexError
        With `inner`, if the index of a shard is broken.

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=(6, 4), chunks=(2, 2), dtype="int16", fill_value=0)
    >>> array[:2] = 1
    >>> absent = omnizarr.missing(array)
    >>> absent.count, list(absent)
    (4, [(1, 0), (1, 1), (2, 0), (2, 1)])
    >>> list(absent.regions())
    [(slice(2, 6, None), slice(0, 4, None))]
    >>> next(absent.keys())
    'c/1/0'
    """
    found: MissingChunks = import_module("omnizarr.tools.missing.absent").run(**locals())
    return found
