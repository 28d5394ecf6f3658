"""Statistics of the elements of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnizarr.tools.counting import Stat


def stat(
    store: Any,
    *,
    path: str | None = None,
    zarr_format: int | str | None = None,
    skip_fill: bool = False,
    allow_pickle: bool = False,
    concurrency: int | None = None,
    scheduler: Any = None,
    max_memory: int | None = None,
    progress: Callable[..., Any] | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Stat:
    """Return statistics of an array, or of all arrays of a hierarchy.

    Smallest and largest element, mean, standard deviation, how many elements are NaN (or NaT) and how many equal the
    fill value, and how many chunks are missing. NaN are left out of the others, as in `numpy.nanmean`. Elements are
    taken as they are stored: neither masked, nor scaled, nor decoded as CF conventions ask for. Chunks that are missing
    are not read.

    Parameters
    ----------
    store : path, URL, Store, StorePath, Array, Group or mutable mapping
    path : str, optional
        Path within the store.
    zarr_format : int or str, optional
        Where documents of several formats are side by side, those to read.
    skip_fill : bool
        Leave elements that equal the fill value out of smallest, largest, mean and standard deviation.
    allow_pickle : bool
        Let pickled objects be read, which can run any code.
    concurrency, scheduler, progress, storage_options
        As for `convert`.
    max_memory : int, optional
        Bytes of elements in memory at a time, beside chunks that are being decoded; default: 96 MiB, unless one chunk
        has more. On a cluster, in each task.

    Returns
    -------
    Stat
        A sequence with an `ArrayStat` for each array.

    Raises
    ------
    NodeNotFoundError
        If there is no Zarr node.
    SchedulerError, StoreError

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=6, chunks=2, dtype="int16", fill_value=-1)
    >>> array[:3] = [7, 8, 10]
    >>> found = omnizarr.stat(array)[0]
    >>> found.minimum, found.maximum, found.mean, found.fill, found.missing
    (-1, 10, 3.6666666666666665, 3, 1)
    >>> omnizarr.stat(array, skip_fill=True)[0].minimum
    7
    """
    run = import_module("omnizarr.tools.counting.counter").run
    effort = import_module("omnizarr.tools.streaming.walking").Effort(max_memory, concurrency, allow_pickle)
    found: Stat = run(
        store,
        path=path,
        zarr_format=zarr_format,
        skip_fill=skip_fill,
        effort=effort,
        scheduler=scheduler,
        progress=progress,
        storage_options=storage_options,
    )
    return found
