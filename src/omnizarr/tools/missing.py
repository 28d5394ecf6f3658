"""Chunks that an array does not have stored."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.sizing.absent import MissingChunks


def missing(
    store: Any,
    *,
    path: str | None = None,
    inner: bool = False,
    progress: Callable[[int], object] | None = None,
    storage_options: Any = None,
) -> MissingChunks:
    """Return the chunks of an array that are not stored: reading them gives the fill value.

    That takes one listing, and memory of one bit per chunk; no chunk is read. What is returned yields coordinates,
    regions of elements or keys one by one, also of arrays with many millions of chunks.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array or mutable mapping
    path : str, optional
        Path of the array in the store.
    inner : bool, default False
        Of an array with shards, look for inner chunks: the index of each shard is read.
    progress : callable, optional
        Called with how many more keys have been looked at.
    storage_options : mapping, optional
        For a URL.

    Returns
    -------
    MissingChunks
        With `count`, `stored`, `expected`, and the iterators `coords`, `regions` and `keys`; iterating over it yields
        coordinates.

    Raises
    ------
    ContainsGroupError
        If there is a group.
    StoreError
        If the store fails, or cannot be listed and there are more than a million chunks to ask for.
    UnknownExtensionError
        If the grid or the chunk keys of the array are not known here.
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
    run = import_module("omnizarr.tools.sizing.absent").run
    found: MissingChunks = run(store, path=path, inner=inner, progress=progress, storage_options=storage_options)
    return found
